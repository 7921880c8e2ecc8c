/* SPDX-License-Identifier: Apache-2.0 */
/* The search: states, their table, edges of progress, and the way back. */
#include "mind_search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	EDGES_PER_STATE = 8, /* of progress, on average; or it gives up */
	NO_STATE = 0,	     /* in the table; numbers there are one more */
};

struct search {
	const struct mind_config *config;
	bool strict;
	uint64_t max;
	uint32_t words; /* of a packed state that are used */
	/* Reserved for `max` states; pages come as they are touched. */
	uint64_t *state;
	uint32_t *parent;
	uint32_t *table;
	uint64_t table_size; /* a power of two */
	uint32_t *edge;
	uint64_t *edge_end; /* of each state's edges */
	uint8_t *quiet;
	uint64_t count, edge_count, edge_max;
};

/* ---- memory -------------------------------------------------------------- */

static void *reserve(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void give_back(void *p, uint64_t bytes)
{
	if (p)
		munmap(p, bytes);
}

static uint64_t state_bytes(const struct search *s)
{
	return s->max * s->words * sizeof(uint64_t);
}

static void release(struct search *s)
{
	give_back(s->state, state_bytes(s));
	give_back(s->parent, s->max * sizeof(*s->parent));
	give_back(s->table, s->table_size * sizeof(*s->table));
	give_back(s->edge, s->edge_max * sizeof(*s->edge));
	give_back(s->edge_end, s->max * sizeof(*s->edge_end));
	give_back(s->quiet, s->max);
}

static int prepare(struct search *s)
{
	s->table_size = 1;
	while (s->table_size < 2 * s->max)
		s->table_size *= 2;
	s->edge_max = s->max * EDGES_PER_STATE;
	s->state = reserve(state_bytes(s));
	s->parent = reserve(s->max * sizeof(*s->parent));
	s->table = reserve(s->table_size * sizeof(*s->table));
	s->edge = reserve(s->edge_max * sizeof(*s->edge));
	s->edge_end = reserve(s->max * sizeof(*s->edge_end));
	s->quiet = reserve(s->max);
	return s->state && s->parent && s->table && s->edge && s->edge_end &&
			       s->quiet
		       ? 0
		       : -ENOMEM;
}

/* ---- states -------------------------------------------------------------- */

static uint64_t hash(const uint64_t *word, uint32_t words)
{
	uint64_t h = 0x2545f4914f6cdd1dull;

	for (uint32_t i = 0; i < words; i++) {
		h = (h ^ word[i]) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	return h ^ h >> 32;
}

static uint64_t *state_at(const struct search *s, uint64_t i)
{
	return &s->state[i * s->words];
}

/* The number of a state, new or not. -ENOSPC. */
static int64_t insert(struct search *s, const struct mind_packed *p,
		      uint32_t parent)
{
	uint64_t at = hash(p->word, s->words) & (s->table_size - 1);

	for (uint32_t i = s->words; i < MIND_WORDS_MAX; i++)
		ASSERT(!p->word[i]);
	while (s->table[at] != NO_STATE) {
		uint64_t i = s->table[at] - 1;

		if (!memcmp(state_at(s, i), p->word, s->words * 8))
			return (int64_t)i;
		at = (at + 1) & (s->table_size - 1);
	}
	if (s->count == s->max)
		return -ENOSPC;
	memcpy(state_at(s, s->count), p->word, s->words * 8);
	s->parent[s->count] = parent;
	s->table[at] = (uint32_t)++s->count;
	return (int64_t)s->count - 1;
}

static void packed_at(const struct search *s, uint64_t i, struct mind_packed *p)
{
	memset(p, 0, sizeof(*p));
	memcpy(p->word, state_at(s, i), s->words * 8);
}

/* ---- the way to a state -------------------------------------------------- */

static int keep_trace(const struct search *s, uint32_t end,
		      const struct mind_packed *last, struct mind_result *res)
{
	uint32_t n = 1;

	for (uint32_t i = end; i; i = s->parent[i])
		n++;
	res->trace = calloc(n + 1, sizeof(*res->trace));
	if (!res->trace)
		return -ENOMEM;
	res->trace_length = n;
	for (uint32_t i = end, k = n; k--; i = s->parent[i])
		packed_at(s, i, &res->trace[k]);
	if (last)
		res->trace[res->trace_length++] = *last;
	return 0;
}

bool mind_follow(struct mind_world *w, const struct mind_packed *to,
		 struct mind_event *event)
{
	struct mind_event events[MIND_EVENTS_MAX];
	unsigned n = mind_events(w, events);

	for (unsigned i = 0; i < n; i++) {
		struct mind_world next;
		struct mind_packed p;

		mind_world_copy(&next, w);
		mind_apply(&next, &events[i]);
		mind_pack(&next, &p);
		if (memcmp(&p, to, sizeof(p)) != 0)
			continue;
		*event = events[i];
		mind_world_copy(w, &next);
		return true;
	}
	return false;
}

/* ---- search -------------------------------------------------------------- */

static int broken(struct search *s, uint32_t from, const struct mind_packed *to,
		  const char *wrong, struct mind_result *res)
{
	res->verdict = MIND_BROKEN;
	res->wrong = wrong;
	return keep_trace(s, from, to, res);
}

/* One event of state `from`. -ENOSPC: there is no room for its result. */
static int take_event(struct search *s, uint32_t from,
		      const struct mind_world *w, const struct mind_event *e,
		      struct mind_result *res)
{
	struct mind_world next;
	struct mind_packed p;
	const char *wrong;
	int64_t to;

	mind_world_copy(&next, w);
	mind_apply(&next, e);
	mind_pack(&next, &p);
	res->transitions++;
	wrong = mind_judge(&next, s->strict);
	if (wrong)
		return broken(s, from, &p, wrong, res);
	to = insert(s, &p, from);
	if (to < 0)
		return (int)to;
	if (mind_event_is_progress(e) && to != from) {
		if (s->edge_count == s->edge_max)
			return -ENOSPC;
		s->edge[s->edge_count++] = (uint32_t)to;
	}
	return 0;
}

static int expand(struct search *s, uint32_t i, struct mind_result *res)
{
	struct mind_event events[MIND_EVENTS_MAX];
	struct mind_packed p;
	struct mind_world w;
	unsigned n;
	int err = 0;

	packed_at(s, i, &p);
	mind_unpack(s->config, &p, &w);
	s->quiet[i] = mind_is_quiet(&w);
	n = mind_events(&w, events);
	for (unsigned k = 0; k < n && !err && !res->wrong; k++)
		err = take_event(s, i, &w, &events[k], res);
	s->edge_end[i] = s->edge_count;
	return err;
}

static bool leads_to_quiet(const struct search *s, uint64_t i)
{
	for (uint64_t k = i ? s->edge_end[i - 1] : 0; k < s->edge_end[i]; k++)
		if (s->quiet[s->edge[k]])
			return true;
	return false;
}

/* The first state in which nothing can happen any more shows best what went
 * wrong; if there is none, the first one from which no way leads out. */
static int show_stuck(struct search *s, struct mind_result *res)
{
	uint32_t stuck = UINT32_MAX, dead = UINT32_MAX;

	for (uint32_t i = (uint32_t)s->count; i--;) {
		if (s->quiet[i])
			continue;
		stuck = i;
		if (s->edge_end[i] == (i ? s->edge_end[i - 1] : 0))
			dead = i;
	}
	if (stuck == UINT32_MAX)
		return 0;
	res->verdict = MIND_STUCK;
	res->wrong = "something waits for ever";
	return keep_trace(s, dead != UINT32_MAX ? dead : stuck, NULL, res);
}

/* Marks what can become quiet, from the last states back, until no more is
 * found. */
static int find_stuck(struct search *s, struct mind_result *res)
{
	bool more = true;

	while (more) {
		more = false;
		for (uint64_t i = s->count; i--;)
			if (!s->quiet[i] && leads_to_quiet(s, i))
				s->quiet[i] = more = true;
	}
	return show_stuck(s, res);
}

static int run(struct search *s, struct mind_result *res)
{
	uint64_t layer_end = 1;
	int err = 0;

	for (uint64_t i = 0; i < s->count && !res->wrong && !err; i++) {
		if (i == layer_end) {
			layer_end = s->count;
			res->depth++;
		}
		err = expand(s, (uint32_t)i, res);
	}
	res->states = s->count;
	if (err == -ENOSPC) {
		res->verdict = MIND_LIMIT;
		return 0;
	}
	if (err || res->wrong)
		return err;
	return find_stuck(s, res);
}

/* How many words the packed states of this configuration have. */
static uint32_t count_words(const struct mind_config *config)
{
	return config->pages * config->machines > 2 || config->copies
		       ? MIND_WORDS_MAX
		       : 5;
}

int mind_search(const struct mind_config *config, uint64_t states_max,
		bool strict, struct mind_result *res)
{
	struct search s = {
		.config = config,
		.strict = strict,
		.max = states_max,
		.words = count_words(config),
	};
	struct mind_packed first;
	struct mind_world w;
	int err;

	*res = (struct mind_result){0};
	err = prepare(&s);
	if (!err) {
		mind_world_init(&w, config);
		mind_pack(&w, &first);
		err = insert(&s, &first, 0) < 0 ? -ENOMEM : run(&s, res);
	}
	release(&s);
	return err;
}

void mind_result_release(struct mind_result *res)
{
	free(res->trace);
	res->trace = NULL;
}
