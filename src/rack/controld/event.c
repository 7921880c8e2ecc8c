/* SPDX-License-Identifier: Apache-2.0 */
/* What happened lately, in words, for people who look at the page. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cd_page_priv.h"

enum {
	TEXT_BYTES = 120,
};

struct event {
	uint64_t id;	 /* counted from 1 */
	uint64_t at_s;	 /* time of day */
	bool is_lost;	 /* it has not happened after all */
	uint64_t staged; /* the change that it tells of; 0: none */
	enum cd_about about;
	char name[CD_NAME_MAX + 1];
	char text[TEXT_BYTES];
};

struct cd_events {
	uint64_t count; /* ever */
	struct event event[CD_EVENTS_MAX];
};

struct cd_events *cd_events_create(void)
{
	return calloc(1, sizeof(struct cd_events));
}

void cd_events_destroy(struct cd_events *e)
{
	free(e);
}

PRINTF(5, 0)
static void add(struct cd_core *core, uint64_t staged, enum cd_about about,
		const char *name, const char *fmt, va_list ap)
{
	struct cd_events *all = core->events;
	struct event *e = &all->event[all->count++ % CD_EVENTS_MAX];

	*e = (struct event){
		.id = all->count,
		.at_s = core->wall_s,
		.staged = staged,
		.about = about,
	};
	(void)snprintf(e->name, sizeof(e->name), "%s", name);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
}

void cd_event_seen(struct cd_core *core, enum cd_about about, const char *name,
		   const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(core, 0, about, name, fmt, ap);
	va_end(ap);
}

void cd_event_staged(struct cd_core *core, enum cd_about about,
		     const char *name, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(core, core->staged, about, name, fmt, ap);
	va_end(ap);
}

void cd_events_drop(struct cd_core *core, uint64_t committed)
{
	for (unsigned i = 0; core->events && i < CD_EVENTS_MAX; i++)
		if (core->events->event[i].staged > committed)
			core->events->event[i].is_lost = true;
}

void cd_events_date(struct cd_core *core)
{
	for (unsigned i = 0; i < CD_EVENTS_MAX; i++)
		if (!core->events->event[i].at_s)
			core->events->event[i].at_s = core->wall_s;
}

json_t *cd_events_json(const struct cd_core *core, const struct cd_tenant *only)
{
	static const char *const abouts[] = {"controller", "node", "tenant"};
	const struct cd_events *all = core->events;
	json_t *rows = json_array();

	for (uint64_t i = 0; i < CD_EVENTS_MAX && i < all->count; i++) {
		const struct event *e =
			&all->event[(all->count - 1 - i) % CD_EVENTS_MAX];

		if (e->is_lost || (only && e->about == CD_ABOUT_TENANT &&
				   strcmp(e->name, only->name) != 0))
			continue;
		(void)json_array_append_new(
			rows, json_pack("{s:I, s:I, s:s, s:s, s:s}", "id",
					cd_int(e->id), "at", cd_int(e->at_s),
					"kind", abouts[e->about], "name",
					e->name, "text", e->text));
	}
	return rows;
}
