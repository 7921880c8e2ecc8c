/* SPDX-License-Identifier: Apache-2.0 */
/* Deaths, what they lose, and how things go on after them. */
#include <string.h>

#include "mind_priv.h"

/* ---- deaths -------------------------------------------------------------- */

static void forget_sent(struct mind_machine *m)
{
	memset(m->get, 0, sizeof(m->get));
	memset(m->give, 0, sizeof(m->give));
	memset(m->evict, 0, sizeof(m->evict));
	memset(&m->clean, 0, sizeof(m->clean));
	memset(m->has_fin, 0, sizeof(m->has_fin));
	memset(m->has_inval, 0, sizeof(m->has_inval));
}

void mind_die(struct mind_world *w, struct mind_machine *m)
{
	struct coh_cache_out out;

	w->machine_may_die = false;
	coh_cache_expelled(&m->cache, &out);
	m->alive = false;
	memset(m->fresh, 0, sizeof(m->fresh));
	memset(m->want, 0, sizeof(m->want));
	memset(m->has_inval, 0, sizeof(m->has_inval));
	for (uint32_t p = 0; p < w->config->pages; p++) {
		if (m->get[p].way >= MIND_BACK)
			m->get[p] = (struct mind_msg){0};
		if (m->give[p].way >= MIND_BACK)
			m->give[p] = (struct mind_msg){0};
		if (m->evict[p].way >= MIND_BACK)
			m->evict[p] = (struct mind_msg){0};
	}
	if (m->clean.way >= MIND_BACK)
		m->clean.way = MIND_NOWHERE;
}

static bool is_fresh_anywhere(const struct mind_world *w, uint32_t page)
{
	bool fresh = false;

	for (uint8_t n = 0; n < COH_TWO; n++) {
		/* What does not count is nowhere. */
		if (!(w->counts >> n & 1) || w->is_away[n])
			continue;
		fresh |= w->memory[n][page];
		for (uint8_t i = 0; i < w->queue_len[n][page]; i++)
			fresh |= w->queue[n][page][i].fresh;
	}
	for (uint8_t i = 0; i < w->config->machines; i++)
		fresh |= w->machine[i].fresh[page];
	return fresh;
}

/* The last store is lost, and it was said so: from now on it is what memory
 * will have after the requests under way. */
static void decree(struct mind_world *w, uint32_t page)
{
	if (!is_fresh_anywhere(w, page))
		mind_node_decree(w, (uint8_t)page);
}

void mind_gone(struct mind_world *w, uint8_t machine)
{
	struct mind_machine *m = &w->machine[machine];
	struct coh_dir_out out;
	uint32_t at = m->gone_at;
	bool more;

	if (!at)
		forget_sent(m);
	more = coh_dir_gone(&w->dir, machine, &at, &out);
	mind_dir_did(w, &out, false);
	m->gone_at = (uint8_t)(more ? at : 0);
	w->doubt |= w->config->keep_going || w->config->goes_on;
}

void mind_join(struct mind_world *w, uint8_t machine)
{
	struct mind_machine *m = &w->machine[machine];
	struct coh_cache_out out;
	int err = coh_dir_join(&w->dir, machine);

	ASSERT(!err);
	w->kept |= (uint16_t)(1u << machine);
	m->alive = true;
	coh_cache_init(&m->cache);
	coh_cache_connect(&m->cache, w->dir.term, false, &out);
}

/* As mind_node_cut. */
void mind_switch_dies(struct mind_world *w, unsigned executed, bool stays_away)
{
	w->switch_may_die = false;
	mind_node_cut(w, executed, stays_away);
	memset(w->held, 0, sizeof(w->held));
	for (uint8_t i = 0; i < w->config->machines; i++) {
		forget_sent(&w->machine[i]);
		w->machine[i].gone_at = 0;
		coh_cache_cut(&w->machine[i].cache);
	}
	coh_dir_init(&w->dir, w->dir.term + 1, w->kept, w->kept_lost);
	for (uint8_t r = 0; r < mind_region_count(w->config); r++)
		if (w->kept_region_lost[r]) {
			struct coh_range range = region_range(w, r);

			coh_dir_set_lost(&w->dir, &range);
		}
}

void mind_keeper_notes(struct mind_world *w, uint8_t machine)
{
	w->kept &= (uint16_t) ~(1u << machine);
	w->kept_lost = w->dir.lost;
	for (uint8_t r = 0; r < mind_region_count(w->config); r++) {
		const struct coh_dir_entry *e =
			coh_dir_find(&w->dir, region_range(w, r).page);

		w->kept_region_lost[r] = e && e->state == COH_DIR_LOST;
	}
}

void mind_repair(struct mind_world *w, uint8_t region)
{
	struct coh_dir_out out;
	bool all = w->dir.lost;
	struct coh_range r = region_range(w, region);
	const struct coh_dir_entry *e = coh_dir_find(&w->dir, r.page);
	int err;

	/* What a machine that died with the switch gave back last one node may
	 * have, and the other one not. */
	if (all && w->counts == MIND_BOTH)
		mind_node_drop(w);
	if (e) /* the whole region, however large it is by now */
		r = (struct coh_range){e->page, coh_dir_pages(e)};
	err = coh_dir_repair(&w->dir, r.page, &out);
	ASSERT(!err);
	mind_dir_did(w, &out, false);
	w->kept_lost = false;
	for (uint32_t p = 0; p < w->config->pages; p++) {
		if (coh_range_has(&r, p))
			w->kept_region_lost[region_at(w, p)] = false;
		if (all || coh_range_has(&r, p))
			decree(w, p);
	}
}

/* A store may have been lost, and the others go on, which the directory has
 * counted: once no machine has anything of a former term, memory's bytes count,
 * and what a dead switch had under way to it may be lost, too. */
void mind_resolve_doubt(struct mind_world *w)
{
	w->doubt = false;
	for (uint32_t p = 0; p < w->config->pages; p++) {
		decree(w, p);
		w->doubt |= w->queue_len[0][p] || w->queue_len[1][p];
	}
}
