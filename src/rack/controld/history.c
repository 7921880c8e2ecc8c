/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers over time, of the rack and of each tenant: seconds of the last five
 * minutes, tens of seconds of the last hour, five minutes of the last day. A
 * value is the largest of its step. All rings have their size from the start; a
 * tenant's are made when it is first seen, 45 KiB, and go when it is gone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cd_page_priv.h"

enum {
	RINGS = 3,
	POINTS = 300 + 360 + 288, /* of all rings */
};

static const struct {
	unsigned step_s, points, first;
} rings[RINGS] = {
	{1, 300, 0},
	{10, 360, 300},
	{300, 288, 660},
};

/* Missing: the controller did not run, or nothing can be said. */
#define NOTHING UINT64_MAX

/* Of a tenant, or with NULL of the rack. */
typedef uint64_t (*series_fn)(const struct cd_core *core,
			      const struct cd_tenant *of);

struct point {
	uint64_t step; /* time of day by the ring's step; 0: never set */
	uint64_t value;
};

enum {
	SERIES = 3,
};

struct subject {
	char name[CD_NAME_MAX + 1];
	struct point point[SERIES][POINTS];
};

struct cd_history {
	uint64_t noted_s; /* the second that was noted last */
	struct subject rack;
	struct subject *tenant[CD_TENANTS_MAX]; /* NULL: free */
};

/* ---- series -------------------------------------------------------------- */

uint64_t cd_tenant_used(const struct cd_core *core, const struct cd_tenant *t)
{
	uint64_t used = 0;

	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		used += core->node[i] ? t->share[i].used : 0;
	return used;
}

uint64_t cd_tenant_allocated(const struct cd_core *core,
			     const struct cd_tenant *t)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		if (core->node[i])
			bytes += u64_max(t->share[i].used,
					 t->quota ? t->share[i].bytes : 0);
	return bytes;
}

static bool is_there(const struct cd_node *n)
{
	return n && n->kind == CD_MEMORY && n->state != CD_DOWN;
}

static uint64_t capacity(const struct cd_core *core, const struct cd_tenant *of)
{
	uint64_t bytes = 0;

	if (of)
		return of->quota ? of->quota : NOTHING;
	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		bytes +=
			is_there(core->node[i]) ? core->node[i]->size_bytes : 0;
	return bytes;
}

static uint64_t allocated(const struct cd_core *core,
			  const struct cd_tenant *of)
{
	uint64_t bytes = 0;

	if (of)
		return cd_tenant_allocated(core, of);
	for (unsigned i = 0; i < core->tenant_count; i++)
		bytes += cd_tenant_allocated(core, core->tenant[i]);
	return bytes;
}

static uint64_t used(const struct cd_core *core, const struct cd_tenant *of)
{
	uint64_t bytes = 0;

	if (of)
		return cd_tenant_used(core, of);
	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		bytes +=
			is_there(core->node[i]) ? core->node[i]->used_bytes : 0;
	return bytes;
}

static const struct {
	const char *name;
	series_fn get;
} series_table[SERIES] = {
	{"capacity", capacity},
	{"allocated", allocated},
	{"used", used},
};

/* ---- life ---------------------------------------------------------------- */

struct cd_history *cd_history_create(void)
{
	return calloc(1, sizeof(struct cd_history));
}

void cd_history_destroy(struct cd_history *h)
{
	for (unsigned i = 0; h && i < CD_TENANTS_MAX; i++)
		free(h->tenant[i]);
	free(h);
}

static struct subject *find(const struct cd_history *h, const char *name)
{
	for (unsigned i = 0; i < CD_TENANTS_MAX; i++)
		if (h->tenant[i] && strcmp(h->tenant[i]->name, name) == 0)
			return h->tenant[i];
	return NULL;
}

/* NULL: there is no memory, and its numbers are missing. */
static struct subject *find_or_add(struct cd_history *h, const char *name)
{
	struct subject *s = find(h, name);
	unsigned at = 0;

	if (s)
		return s;
	while (at < CD_TENANTS_MAX && h->tenant[at])
		at++;
	/* Those that are gone have been let go. */
	ASSERT(at < CD_TENANTS_MAX);
	s = h->tenant[at] = calloc(1, sizeof(*s));
	if (s)
		memcpy(s->name, name, strlen(name) + 1);
	return s;
}

static void note(const struct cd_core *core, struct subject *s,
		 const struct cd_tenant *of)
{
	for (unsigned i = 0; i < SERIES; i++) {
		uint64_t value = series_table[i].get(core, of);

		for (unsigned r = 0; r < RINGS; r++) {
			uint64_t step = core->wall_s / rings[r].step_s;
			struct point *p = &s->point[i][rings[r].first +
						       step % rings[r].points];

			if (p->step != step || p->value == NOTHING ||
			    (value != NOTHING && value > p->value))
				*p = (struct point){step, value};
		}
	}
}

static void let_go(const struct cd_core *core)
{
	struct cd_history *h = core->history;

	for (unsigned i = 0; i < CD_TENANTS_MAX; i++) {
		if (!h->tenant[i] || cd_tenant_find(core, h->tenant[i]->name))
			continue;
		free(h->tenant[i]);
		h->tenant[i] = NULL;
	}
}

void cd_history_tick(struct cd_core *core)
{
	struct cd_history *h = core->history;

	if (core->wall_s == h->noted_s)
		return;
	h->noted_s = core->wall_s;
	note(core, &h->rack, NULL);
	let_go(core);
	for (unsigned i = 0; i < core->tenant_count; i++) {
		struct subject *s = find_or_add(h, core->tenant[i]->name);

		if (s)
			note(core, s, core->tenant[i]);
	}
}

/* ---- answers ------------------------------------------------------------- */

static json_t *values(const struct cd_core *core, const struct subject *s,
		      unsigned series, unsigned ring, unsigned count)
{
	uint64_t last = core->history->noted_s / rings[ring].step_s;
	json_t *list = json_array();

	for (unsigned i = 0; i < count; i++) {
		uint64_t step = last - (count - 1 - i);
		const struct point *p =
			s ? &s->point[series][rings[ring].first +
					      step % rings[ring].points]
			  : NULL;
		bool is_set = p && p->step == step && p->value != NOTHING;

		(void)json_array_append_new(
			list,
			is_set ? json_integer(cd_int(p->value)) : json_null());
	}
	return list;
}

int cd_history_json(const struct cd_core *core, const struct cd_tenant *of,
		    const char *name, unsigned seconds, json_t **out)
{
	const struct cd_history *h = core->history;
	unsigned ring = 0, series = 0, count;
	uint64_t step_s;

	while (series < SERIES && strcmp(series_table[series].name, name) != 0)
		series++;
	if (series == SERIES)
		return error_set(-ENOENT,
				 "there is no series '%.40s'; capacity, "
				 "allocated, used",
				 name);
	while (ring + 1 < RINGS &&
	       seconds > rings[ring].step_s * rings[ring].points)
		ring++;
	step_s = rings[ring].step_s;
	count = (unsigned)u64_min((seconds + step_s - 1) / step_s,
				  rings[ring].points);
	/* Not before there was any time. */
	count = (unsigned)u64_min(count, h->noted_s / step_s + 1);
	*out = json_pack("{s:s, s:I, s:I, s:o}", "series", name, "step_s",
			 cd_int(step_s), "until",
			 cd_int(h->noted_s / step_s * step_s), "values",
			 values(core, of ? find(h, of->name) : &h->rack, series,
				ring, count));
	return 0;
}
