/* SPDX-License-Identifier: Apache-2.0 */
/* What may happen next, and what the shipped code makes of it. */
#include <string.h>

#include "mind_priv.h"

/* ---- what the switch does ------------------------------------------------ */

static void send_back(struct mind_world *w, uint8_t machine,
		      struct mind_msg *msg, uint8_t way, bool fresh)
{
	bool alive = w->machine[machine].alive;

	*msg = (struct mind_msg){alive ? way : MIND_NOWHERE, alive && fresh};
}

static void send_inval(struct mind_world *w, const struct coh_dir_action *a)
{
	struct mind_machine *m = &w->machine[a->machine];
	uint8_t r = region_at(w, a->inval.range.page);

	if (!m->alive)
		return;
	if (m->has_inval[r])
		w->wrong = "a machine gets two INVALs of one region at once";
	m->has_inval[r] = true;
	m->inval[r] = a->inval;
}

/* `fresh`: the bytes that came with the event. */
void mind_dir_did(struct mind_world *w, const struct coh_dir_out *out,
		  bool fresh)
{
	for (uint32_t i = 0; i < out->count; i++) {
		const struct coh_dir_action *a = &out->action[i];
		struct mind_machine *m = &w->machine[a->machine];
		struct mind_msg *get = &m->get[a->lane];
		bool *held = &w->held[a->machine * w->dir.lanes + a->lane];

		switch (a->kind) {
		case COH_DIR_READ:
			mind_node_read(w, (uint8_t)a->page, a->machine,
				       a->lane);
			break;
		case COH_DIR_HOLD:
			*held = fresh;
			break;
		case COH_DIR_ANSWER:
			send_back(w, a->machine, get, MIND_BACK, fresh);
			break;
		case COH_DIR_ANSWER_HELD:
			send_back(w, a->machine, get, MIND_BACK, *held);
			*held = false;
			break;
		case COH_DIR_WRITE:
			mind_node_write(w, (uint8_t)a->page, a->machine, fresh);
			break;
		case COH_DIR_REFUSE_GIVE:
			w->wrong = "a machine's stores are refused";
			break;
		case COH_DIR_REFUSE_GET:
			w->wrong = "a machine's get is refused";
			break;
		case COH_DIR_REFUSE_LOST:
			send_back(w, a->machine, get, MIND_REFUSED, false);
			break;
		case COH_DIR_INVAL:
			send_inval(w, a);
			break;
		}
	}
	w->dir.hand = 0;
}

/* ---- what machines do ---------------------------------------------------- */

static void send_fin(struct mind_world *w, struct mind_machine *m,
		     const struct coh_fin *fin)
{
	uint8_t r = region_at(w, fin->range.page);

	if (m->has_fin[r])
		w->wrong = "two FINs of one machine are under way";
	m->has_fin[r] = true;
	m->fin[r] = *fin;
}

static void cache_did(struct mind_world *w, struct mind_machine *m,
		      const struct coh_cache_out *out, bool fresh)
{
	for (uint32_t i = 0; i < out->count; i++) {
		const struct coh_cache_action *a = &out->action[i];
		uint64_t page = a->range.page;

		switch (a->kind) {
		case COH_CACHE_MAP:
			m->fresh[page] = fresh;
			break;
		case COH_CACHE_UNMAP:
			for (uint32_t k = 0; k < a->range.count; k++)
				m->fresh[page + k] = false;
			break;
		case COH_CACHE_GET:
			m->get[a->get.lane].way = MIND_THERE;
			m->asked[a->get.lane] = a->get;
			break;
		case COH_CACHE_GIVE:
			m->give[page] =
				(struct mind_msg){MIND_THERE, m->fresh[page]};
			break;
		case COH_CACHE_FIN:
			send_fin(w, m, &a->fin);
			break;
		case COH_CACHE_EVICT:
			m->evict[region_at(w, page)].way = MIND_THERE;
			break;
		case COH_CACHE_CLEAN:
			m->clean.way = MIND_THERE;
			break;
		case COH_CACHE_FAIL:
			m->want[page] = COH_NONE;
			break;
		case COH_CACHE_PROTECT:
		case COH_CACHE_HIDE:
		case COH_CACHE_UNHIDE:
			break;
		}
	}
}

/* Threads that wait touch again after every event. */
static void touch_again(struct mind_world *w, struct mind_machine *m)
{
	struct coh_cache_out out;

	for (uint32_t p = 0; p < w->config->pages; p++) {
		if (m->want[p] == COH_NONE)
			continue;
		if (coh_cache_touch(&m->cache, p, (enum coh_right)m->want[p],
				    &out) == COH_TOUCH_HIT)
			m->want[p] = COH_NONE;
		cache_did(w, m, &out, false);
	}
}

static void store(struct mind_world *w, uint8_t machine, uint8_t page)
{
	for (uint8_t n = 0; n < COH_TWO; n++) {
		w->memory[n][page] = false;
		for (uint8_t i = 0; i < w->queue_len[n][page]; i++)
			w->queue[n][page][i].fresh = false;
	}
	for (uint8_t i = 0; i < w->config->machines; i++) {
		struct mind_machine *m = &w->machine[i];

		m->fresh[page] = i == machine;
		m->give[page].fresh = false;
		for (uint8_t l = 0; l < w->dir.lanes; l++) {
			uint16_t s = (uint16_t)(i * w->dir.lanes + l);

			if (m->lanes[l].page == page)
				m->get[l].fresh = false;
			if (w->slots[s].page == page)
				w->held[s] = false;
		}
	}
}

/* ---- progress ------------------------------------------------------------ */

/* A message reaches the switch. */
static void reach_switch(struct mind_world *w, const struct mind_event *e)
{
	struct coh_dir_out out;
	struct mind_machine *m = &w->machine[e->machine];
	struct coh_range range = mind_leave_range(w->config, e->at);
	bool fresh = false;

	out.count = 0;
	switch (e->kind) {
	case MIND_E_get:
		m->get[e->at].way = MIND_NOWHERE;
		coh_dir_get(&w->dir, &m->asked[e->at], &out);
		break;
	case MIND_E_give:
		fresh = m->give[e->at].fresh;
		m->give[e->at] = (struct mind_msg){0};
		coh_dir_give(&w->dir, e->machine, e->at, &out);
		break;
	case MIND_E_fin:
		m->has_fin[e->at] = false;
		coh_dir_fin(&w->dir, e->machine, &m->fin[e->at], &out);
		break;
	case MIND_E_evicted:
		coh_dir_evict(&w->dir, e->machine, &range, &out);
		send_back(w, e->machine, &m->evict[e->at], MIND_BACK, false);
		break;
	default:
		coh_dir_clean(&w->dir, e->machine, w->dir.term, &out);
		send_back(w, e->machine, &m->clean, MIND_BACK, false);
		break;
	}
	mind_dir_did(w, &out, fresh);
}

/* Something reaches a machine, or its programs want something. */
static void reach_machine(struct mind_world *w, const struct mind_event *e)
{
	struct mind_machine *m = &w->machine[e->machine];
	struct coh_cache *c = &m->cache;
	struct coh_range range = mind_leave_range(w->config, e->at);
	struct mind_msg *get = &m->get[e->at];
	struct coh_cache_out out;
	bool fresh = get->fresh;
	bool refused = get->way == MIND_REFUSED;
	int err = 0;

	out.count = 0;
	switch (e->kind) {
	case MIND_E_touch:
		m->want[e->at] = e->arg;
		break;
	case MIND_E_evict:
		err = coh_cache_evict(c, e->at, &out);
		break;
	case MIND_E_leave:
		err = coh_cache_leave(c, &range, &out);
		break;
	case MIND_E_inval:
		m->has_inval[e->at] = false;
		coh_cache_inval(c, &m->inval[e->at], &out);
		break;
	case MIND_E_answer:
		*get = (struct mind_msg){0};
		if (refused)
			coh_cache_refused(c, e->at, &out);
		else
			coh_cache_answer(c, e->at, &out);
		break;
	case MIND_E_given:
		m->give[e->at] = (struct mind_msg){0};
		coh_cache_given(c, e->at, &out);
		break;
	case MIND_E_left:
		m->evict[e->at].way = MIND_NOWHERE;
		for (uint8_t i = 0; i < c->leave_count; i++)
			if (m->leaves[i].range.count &&
			    region_at(w, m->leaves[i].range.page) == e->at)
				coh_cache_left(c, i);
		break;
	case MIND_E_cleaned:
		m->clean.way = MIND_NOWHERE;
		coh_cache_cleaned(c);
		break;
	default:
		coh_cache_connect(c, w->dir.term, true, &out);
		break;
	}
	ASSERT(!err);
	cache_did(w, m, &out, fresh);
	touch_again(w, m);
}

/* As an epoch of bounded splitting may do, whatever the counts say; what the
 * directory refuses stays as it is. */
static void resize(struct mind_world *w, const struct mind_event *e)
{
	uint64_t page = region_range(w, e->at).page;

	for (uint32_t i = 0; i < w->dir.entry_count; i++) {
		struct coh_dir_entry *at = &w->entries[i];

		if (at->state == COH_DIR_FREE || at->page != page)
			continue;
		if (e->kind == MIND_E_split)
			(void)coh_dir_split(&w->dir, at);
		else
			(void)coh_dir_merge(&w->dir, at);
		return;
	}
}

void mind_apply(struct mind_world *w, const struct mind_event *e)
{
	struct coh_dir_out out;

	switch (e->kind) {
	case MIND_E_store:
		store(w, e->machine, e->at);
		break;
	case MIND_E_recall:
		coh_dir_recall(&w->dir, region_range(w, e->at).page, &out);
		mind_dir_did(w, &out, false);
		break;
	case MIND_E_split:
	case MIND_E_merge:
		resize(w, e);
		break;
	case MIND_E_die:
		mind_die(w, &w->machine[e->machine]);
		break;
	case MIND_E_join:
		mind_join(w, e->machine);
		break;
	case MIND_E_gone:
		mind_gone(w, e->machine);
		break;
	case MIND_E_noted:
		mind_keeper_notes(w, e->machine);
		break;
	case MIND_E_switch_dies:
		mind_switch_dies(w, e->arg, e->at);
		break;
	case MIND_E_node_dies:
		mind_node_dies(w, e->at, e->arg);
		break;
	case MIND_E_single:
		mind_node_single(w);
		break;
	case MIND_E_told:
		mind_node_told(w);
		break;
	case MIND_E_repair:
	case MIND_E_spread:
		mind_repair(w, e->at);
		break;
	case MIND_E_memory:
		mind_node_executes(w, e->arg, e->at);
		break;
	case MIND_E_get:
	case MIND_E_give:
	case MIND_E_fin:
	case MIND_E_evicted:
	case MIND_E_clean:
		reach_switch(w, e);
		break;
	case MIND_E_touch:
	case MIND_E_evict:
	case MIND_E_leave:
	case MIND_E_inval:
	case MIND_E_answer:
	case MIND_E_given:
	case MIND_E_left:
	case MIND_E_cleaned:
	case MIND_E_connect:
		reach_machine(w, e);
		break;
	}
	/* While all is lost nobody reads, and the keeper chooses a node first.
	 */
	if (w->doubt && !w->dir.unclean && !w->dir.lost)
		mind_resolve_doubt(w);
}
