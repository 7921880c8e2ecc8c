/* SPDX-License-Identifier: Apache-2.0 */
/* States and events in words. Machines are A, B, C; pages 0, 1. */
#include <stdarg.h>
#include <stdio.h>

#include "mind_world.h"

struct text {
	char *at;
	size_t left;
};

static void PRINTF(2, 3) say(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	n = n < 0 ? 0 : (int)u64_min((uint64_t)n, t->left - 1);
	t->at += n;
	t->left -= (size_t)n;
}

static char name(uint32_t machine)
{
	return (char)('A' + machine);
}

static void say_set(struct text *t, uint32_t set)
{
	say(t, "{");
	for (uint32_t i = 0; i < MIND_MACHINES_MAX; i++)
		if (set & 1u << i)
			say(t, "%c", name(i));
	say(t, "}");
}

/* ---- events -------------------------------------------------------------- */

static void say_program(struct text *t, const struct mind_event *e)
{
	char m = name(e->machine);

	switch (e->kind) {
	case MIND_E_touch:
		say(t, "%c: a thread %s page %u", m,
		    e->arg == COH_WRITE ? "writes to" : "reads", e->at);
		break;
	case MIND_E_store:
		say(t, "%c: stores to page %u", m, e->at);
		break;
	case MIND_E_evict:
		say(t, "%c: evicts page %u", m, e->at);
		break;
	case MIND_E_leave:
		say(t, "%c: sends EVICT of region %u", m, e->at);
		break;
	case MIND_E_recall:
		say(t, "switch: recalls region %u", e->at);
		break;
	case MIND_E_split:
		say(t, "switch: splits region %u", e->at);
		break;
	case MIND_E_merge:
		say(t, "switch: joins region %u with the next", e->at);
		break;
	case MIND_E_die:
		say(t, "%c: DIES", m);
		break;
	case MIND_E_switch_dies:
		say(t,
		    "switch: DIES, another one starts; memory has executed "
		    "%u of its requests%s",
		    (e->arg & 7u) + (e->arg >> 3),
		    e->at ? "; the silent node does not come back" : "");
		break;
	case MIND_E_node_dies:
		say(t,
		    "memory node %u: FALLS SILENT, with %u of its requests "
		    "executed",
		    e->at, e->arg);
		break;
	case MIND_E_join:
		say(t, "%c: is started again, and joins", m);
		break;
	default:
		say(t, "operator: repairs region %u", e->at);
		break;
	}
}

static const char *right_name(uint32_t right)
{
	static const char *const names[] = {"none", "read", "write"};

	return names[right];
}

static void say_progress(struct text *t, const struct mind_world *w,
			 const struct mind_event *e)
{
	const struct mind_machine *m = &w->machine[e->machine];
	const struct mind_request *q =
		&w->queue[e->kind == MIND_E_memory ? e->arg : 0][e->at][0];
	char c = name(e->machine);

	switch (e->kind) {
	case MIND_E_get:
		say(t, "switch: takes %c's get to %s page %u", c,
		    right_name(m->asked[e->at].right),
		    (unsigned)m->asked[e->at].page);
		break;
	case MIND_E_give:
		say(t, "switch: takes %c's give-back of page %u", c, e->at);
		break;
	case MIND_E_fin:
		say(t, "switch: takes %c's FIN of region %u", c, e->at);
		break;
	case MIND_E_evicted:
		say(t, "switch: takes %c's EVICT of region %u", c, e->at);
		break;
	case MIND_E_clean:
		say(t, "switch: takes %c's CLEAN", c);
		break;
	case MIND_E_inval:
		say(t, "%c: takes INVAL of region %u to %s", c, e->at,
		    right_name(m->inval[e->at].to));
		break;
	case MIND_E_answer:
		say(t, "%c: takes the %s to its get of page %u", c,
		    m->get[e->at].way == MIND_REFUSED ? "refusal" : "answer",
		    (unsigned)m->lanes[e->at].page);
		break;
	case MIND_E_given:
		say(t, "%c: its give-back of page %u is complete", c, e->at);
		break;
	case MIND_E_left:
		say(t, "%c: its EVICT of region %u is complete", c, e->at);
		break;
	case MIND_E_cleaned:
		say(t, "%c: its CLEAN is complete", c);
		break;
	case MIND_E_memory:
		say(t, "memory node %u: %s page %u %s %c", e->arg,
		    q->write ? "writes" : "reads", e->at,
		    q->write ? "of" : "for", name(q->machine));
		break;
	case MIND_E_gone:
		say(t, "switch: %c is gone", c);
		break;
	case MIND_E_noted:
		say(t, "keeper: notes that %c is gone, and what is lost", c);
		break;
	case MIND_E_single:
		say(t, "keeper: notes that one node counts alone");
		break;
	case MIND_E_told:
		say(t, "keeper: tells the switch so");
		break;
	case MIND_E_spread:
		say(t, "keeper: goes on with memory's bytes");
		break;
	default:
		say(t, "%c: connects to the new switch", c);
		break;
	}
}

void mind_event_text(const struct mind_world *w, const struct mind_event *e,
		     char *text, size_t size_bytes)
{
	struct text t = {text, size_bytes};

	if (mind_event_is_progress(e))
		say_progress(&t, w, e);
	else
		say_program(&t, e);
}

/* ---- states -------------------------------------------------------------- */

static void say_entry(struct text *t, const struct coh_dir_entry *e)
{
	say(t, "%s", coh_dir_state_name((enum coh_dir_state)e->state));
	say_set(t, e->sharers);
	if (e->waiting) {
		say(t, " waits for ");
		say_set(t, e->waiting);
	}
}

static void say_machine(struct text *t, const struct mind_world *w, uint32_t i)
{
	static const char *const links[] = {" cut", " cleans", " cleaned", ""};
	static const char *const ways[] = {"", ">", ">m", "<", "<no"};
	const struct mind_machine *m = &w->machine[i];

	say(t, "  %c", name(i));
	if (!m->alive) {
		say(t, " dead");
		return;
	}
	say(t, "%s", links[m->cache.link]);
	for (uint32_t p = 0; p < w->config->pages; p++) {
		const struct coh_cache_page *page = &m->pages[p];

		say(t, " %s%s%s", right_name(page->right),
		    page->right && !m->fresh[p] ? "(old)" : "",
		    page->dirty ? "*" : "");
		if (page->get)
			say(t, " get%s", ways[m->get[p].way]);
		if (page->giving)
			say(t, " give%s%s", ways[m->give[p].way],
			    m->is_held[p] ? " held" : "");
	}
	for (uint32_t r = 0; r < mind_region_count(w->config); r++) {
		if (m->jobs[r].state != COH_JOB_FREE)
			say(t, " invalidates");
		if (m->has_inval[r])
			say(t, " INVAL<");
		if (m->has_fin[r])
			say(t, " FIN>");
		if (m->evict[r].way)
			say(t, " EVICT%s", ways[m->evict[r].way]);
	}
	if (m->clean.way)
		say(t, " CLEAN%s", ways[m->clean.way]);
}

static void say_node(struct text *t, const struct mind_world *w, uint8_t n)
{
	say(t, "  memory");
	for (uint32_t p = 0; p < w->config->pages; p++)
		say(t, " %s%s", w->memory[n][p] ? "fresh" : "old",
		    w->queue_len[n][p] ? ".." : "");
	if (w->is_away[n])
		say(t, " silent");
	if (!(w->counts >> n & 1))
		say(t, " does not count");
}

void mind_world_text(const struct mind_world *w, char *text, size_t size_bytes)
{
	struct text t = {text, size_bytes};

	say(&t, "dir");
	if (w->dir.lost)
		say(&t, " lost");
	if (w->dir.unclean) {
		say(&t, " unclean ");
		say_set(&t, w->dir.unclean);
	}
	for (uint32_t r = 0; r < mind_region_count(w->config); r++) {
		const struct coh_dir_entry *e =
			coh_dir_find(&w->dir, r * mind_unit_pages(w->config));

		say(&t, " ");
		if (e)
			say_entry(&t, e);
		else
			say(&t, "I");
	}
	for (uint32_t i = 0; i < w->config->machines; i++)
		say_machine(&t, w, i);
	for (uint8_t n = 0; n < mind_node_count(w->config); n++)
		say_node(&t, w, n);
}
