/* SPDX-License-Identifier: Apache-2.0 */
/* Which events are possible in a state. */
#include "base/plant.h"
#include "mind_world.h"

struct list {
	const struct mind_world *w;
	struct mind_event *event;
	unsigned count;
};

static void add(struct list *l, enum mind_event_kind kind, uint32_t machine,
		uint32_t at, uint32_t arg)
{
	ASSERT(l->count < MIND_EVENTS_MAX);
	l->event[l->count++] = (struct mind_event){
		(uint8_t)kind, (uint8_t)machine, (uint8_t)at, (uint8_t)arg};
}

static bool has_right(const struct mind_machine *m, uint32_t p)
{
	return m->pages[p].right != COH_NONE;
}

static bool is_held(const struct mind_world *w, uint32_t machine, uint8_t lane)
{
	uint32_t slot = machine * w->dir.lanes + lane;

	return w->slots[slot].state == COH_SLOT_HOLDING && w->held[slot];
}

/* A store that changes nothing in the model is none: no other copy is fresh. */
static bool is_alone(const struct mind_world *w, uint32_t page)
{
	for (uint8_t n = 0; n < COH_TWO; n++) {
		if (w->memory[n][page])
			return false;
		for (uint8_t i = 0; i < w->queue_len[n][page]; i++)
			if (w->queue[n][page][i].fresh)
				return false;
	}
	for (uint32_t i = 0; i < w->config->machines; i++) {
		const struct mind_machine *m = &w->machine[i];

		if (m->give[page].fresh)
			return false;
		for (uint8_t l = 0; l < w->dir.lanes; l++)
			if (m->get[l].fresh || is_held(w, i, l))
				return false;
	}
	return true;
}

static void list_programs(struct list *l, uint32_t i)
{
	const struct mind_world *w = l->w;
	const struct mind_machine *m = &w->machine[i];

	for (uint32_t p = 0; p < w->config->pages; p++) {
		uint32_t most =
			p && w->config->read_only ? COH_READ : COH_WRITE;

		for (uint32_t r = COH_READ; r <= most; r++)
			if (m->want[p] == COH_NONE && m->pages[p].right < r)
				add(l, MIND_E_touch, i, p, r);
		if (m->pages[p].right == COH_WRITE && !is_alone(w, p))
			add(l, MIND_E_store, i, p, 0);
		if (w->config->evict && has_right(m, p) &&
		    m->pages[p].get == COH_NONE && !m->pages[p].giving &&
		    m->cache.link == COH_CACHE_MEMBER)
			add(l, MIND_E_evict, i, p, 0);
	}
}

static bool is_sharer(const struct mind_world *w, uint32_t i,
		      const struct coh_range *r)
{
	for (uint32_t p = 0; p < r->count; p++) {
		const struct coh_dir_entry *e =
			coh_dir_find(&w->dir, r->page + p);

		if (e && e->sharers & 1u << i)
			return true;
	}
	return false;
}

/* Whether coh_cache_leave would take it; and the directory believes that the
 * machine has something there, or it would be for nothing. */
static bool may_leave(const struct mind_world *w, uint32_t i, uint32_t region)
{
	const struct mind_machine *m = &w->machine[i];
	const struct coh_range r = mind_leave_range(w->config, region);
	uint32_t first = (uint32_t)r.page;

	if (!w->config->evict || m->cache.link != COH_CACHE_MEMBER ||
	    first + r.count > w->config->pages || !is_sharer(w, i, &r))
		return false;
	for (uint32_t k = 0; k < mind_region_count(w->config); k++)
		if ((m->jobs[k].state != COH_JOB_FREE &&
		     coh_range_meets(&m->jobs[k].inval.range, &r)) ||
		    coh_range_has(&m->leaves[k].range, first))
			return false;
	for (uint32_t p = first; p < first + r.count; p++)
		if (has_right(m, p) || m->pages[p].get != COH_NONE ||
		    m->pages[p].giving)
			return false;
	return true;
}

/* Requests for the machine are under way, or a give-back is held. */
static bool is_writing(const struct mind_world *w, uint32_t i, bool or_reading)
{
	bool is = w->machine[i].is_held[0];

	for (uint8_t n = 0; n < COH_TWO; n++)
		for (uint32_t p = 0; p < w->config->pages; p++)
			for (uint8_t k = 0; k < w->queue_len[n][p]; k++) {
				const struct mind_request *r =
					&w->queue[n][p][k];

				is |= r->machine == i &&
				      (r->write || or_reading);
			}
	return is;
}

/* As the switch says that it has gone through all that the machine had. */
static bool may_note(const struct mind_world *w, uint32_t i)
{
	return !(w->dir.members & 1u << i) && !w->machine[i].gone_at &&
	       w->kept & 1u << i &&
	       (!w->config->copies || PLANTED(coh_gone_early) ||
		!is_writing(w, i, false));
}

/* A dead machine comes back, with nothing, when all know that it was dead and
 * nothing is under way to memory for it. */
static bool may_join(const struct mind_world *w, uint32_t i)
{
	bool may =
		!w->machine[i].alive && !((w->dir.members | w->kept) & 1u << i);

	for (uint8_t l = 0; l < w->dir.lanes; l++)
		may &= w->slots[i * w->dir.lanes + l].state == COH_SLOT_FREE;
	return may && !is_writing(w, i, true);
}

static void list_machine(struct list *l, uint32_t i)
{
	const struct mind_world *w = l->w;
	const struct mind_machine *m = &w->machine[i];

	for (uint32_t p = 0; p < w->config->pages; p++) {
		if (m->get[p].way == MIND_THERE)
			add(l, MIND_E_get, i, p, 0);
		if (m->get[p].way >= MIND_BACK)
			add(l, MIND_E_answer, i, p, 0);
		if (m->give[p].way == MIND_THERE)
			add(l, MIND_E_give, i, p, 0);
		if (m->give[p].way == MIND_BACK)
			add(l, MIND_E_given, i, p, 0);
	}
	for (uint32_t r = 0; r < mind_region_count(w->config); r++) {
		if (m->has_fin[r])
			add(l, MIND_E_fin, i, r, 0);
		if (m->has_inval[r])
			add(l, MIND_E_inval, i, r, 0);
		if (m->evict[r].way == MIND_THERE)
			add(l, MIND_E_evicted, i, r, 0);
		if (m->evict[r].way == MIND_BACK)
			add(l, MIND_E_left, i, r, 0);
		if (m->alive && may_leave(w, i, r))
			add(l, MIND_E_leave, i, r, 0);
	}
	if (m->clean.way == MIND_THERE)
		add(l, MIND_E_clean, i, 0, 0);
	if (m->clean.way == MIND_BACK)
		add(l, MIND_E_cleaned, i, 0, 0);
	if (m->alive && m->cache.link == COH_CACHE_CUT)
		add(l, MIND_E_connect, i, 0, 0);
	if (!m->alive && (w->dir.members & 1u << i || m->gone_at))
		add(l, MIND_E_gone, i, 0, 0);
	if (may_note(w, i))
		add(l, MIND_E_noted, i, 0, 0);
	if (may_join(w, i))
		add(l, MIND_E_join, i, 0, 0);
	if (m->alive && w->machine_may_die)
		add(l, MIND_E_die, i, 0, 0);
	if (m->alive)
		list_programs(l, i);
}

static void list_region(struct list *l, uint32_t r)
{
	const struct mind_world *w = l->w;
	uint32_t first = r * mind_unit_pages(w->config);
	const struct coh_dir_entry *e = coh_dir_find(&w->dir, first);
	bool idle = !w->dir.unclean;
	bool is_held =
		e && e->page == first &&
		(e->state == COH_DIR_SHARED || e->state == COH_DIR_MODIFIED);

	if (w->config->recall && is_held)
		add(l, MIND_E_recall, 0, r, 0);
	if (w->config->split && is_held && e->order &&
	    w->dir.used < w->dir.entry_count)
		add(l, MIND_E_split, 0, r, 0);
	if (w->config->split && is_held && !e->order && !first)
		add(l, MIND_E_merge, 0, r, 0);
	for (uint32_t p = 0; p < w->config->pages; p++)
		idle &= !w->queue_len[0][p] && !w->queue_len[1][p];
	if (idle && ((e && e->state == COH_DIR_LOST) || w->dir.lost))
		add(l, MIND_E_repair, 0, r, 0);
}

/* Of each page's requests at each node any number may have been executed; there
 * are two pages, or two nodes. */
static void list_switch_dies(struct list *l)
{
	const struct mind_world *w = l->w;
	uint32_t second =
		w->config->pages > 1 ? w->queue_len[0][1] : w->queue_len[1][0];
	bool may_return =
		w->kept_counts == MIND_BOTH && (w->is_away[0] || w->is_away[1]);

	for (uint32_t a = 0; a <= w->queue_len[0][0]; a++)
		for (uint32_t b = 0; b <= second; b++)
			for (uint32_t away = 0; away <= may_return; away++)
				add(l, MIND_E_switch_dies, 0, away, a | b << 3);
}

static void list_nodes(struct list *l)
{
	const struct mind_world *w = l->w;

	for (uint8_t n = 0; n < mind_node_count(w->config); n++) {
		for (uint32_t p = 0; p < w->config->pages; p++)
			if (w->queue_len[n][p])
				add(l, MIND_E_memory, 0, p, n);
		/* One that is alone is lost with all that it had, as where
		 * there are no copies. */
		for (uint32_t a = 0;
		     w->node_may_die && w->counts == MIND_BOTH &&
		     a <= w->queue_len[n][0];
		     a++)
			add(l, MIND_E_node_dies, 0, n, a);
	}
	if (w->kept_counts == MIND_BOTH && (w->is_away[0] || w->is_away[1]))
		add(l, MIND_E_single, 0, 0, 0);
	if (w->kept_counts != w->counts)
		add(l, MIND_E_told, 0, 0, 0);
	if (w->config->goes_on && w->dir.lost && !w->dir.unclean)
		add(l, MIND_E_spread, 0, 0, 0);
}

unsigned mind_events(const struct mind_world *w,
		     struct mind_event event[MIND_EVENTS_MAX])
{
	struct list l = {.w = w, .event = event};

	for (uint32_t i = 0; i < w->config->machines; i++)
		list_machine(&l, i);
	for (uint32_t r = 0; r < mind_region_count(w->config); r++)
		list_region(&l, r);
	list_nodes(&l);
	if (w->switch_may_die)
		list_switch_dies(&l);
	return l.count;
}
