/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold in every state, and when a state is quiet. */
#include "mind_world.h"

static const char *judge_page(const struct mind_world *w, uint32_t p)
{
	unsigned readers = 0, writers = 0;

	for (uint32_t i = 0; i < w->config->machines; i++) {
		const struct mind_machine *m = &w->machine[i];
		enum coh_right right = coh_cache_right(&m->cache, p);

		if (!m->alive || right == COH_NONE)
			continue;
		if (!m->fresh[p])
			return "a machine can read old bytes";
		readers++;
		writers += right == COH_WRITE;
	}
	if (writers && readers > 1)
		return "a machine can write what another one can read";
	return NULL;
}

/* Nobody would ever hear from it: a region would wait for its FIN for ever. */
static bool has_gone(const struct mind_world *w)
{
	uint32_t there = w->dir.members;

	for (uint32_t i = 0; i < w->config->machines; i++)
		there |= (uint32_t)(w->machine[i].gone_at != 0) << i;
	for (uint32_t i = 0; i < w->dir.entry_count; i++)
		if (w->entries[i].state != COH_DIR_FREE &&
		    w->entries[i].sharers & ~there)
			return true;
	return false;
}

const char *mind_judge(const struct mind_world *w, bool strict)
{
	const char *wrong = w->wrong;

	if (!wrong && has_gone(w))
		wrong = "a machine that is gone has a region for ever";
	for (uint32_t p = 0; !wrong && p < w->config->pages; p++)
		wrong = judge_page(w, p);
	if (wrong || !strict)
		return wrong;
	wrong = coh_dir_check(&w->dir);
	for (uint32_t i = 0; !wrong && i < w->config->machines; i++)
		wrong = coh_cache_check(&w->machine[i].cache);
	return wrong;
}

static bool is_machine_quiet(const struct mind_world *w, uint32_t i)
{
	const struct mind_machine *m = &w->machine[i];

	if (m->clean.way != MIND_NOWHERE || m->is_held[0])
		return false;
	for (uint32_t p = 0; p < w->config->pages; p++)
		if (m->get[p].way != MIND_NOWHERE ||
		    m->give[p].way != MIND_NOWHERE ||
		    m->evict[p].way != MIND_NOWHERE || m->has_fin[p] ||
		    m->has_inval[p])
			return false;
	if (!m->alive)
		return !((w->dir.members | w->kept) & 1u << i);
	if (m->cache.link != COH_CACHE_MEMBER || m->cache.giving)
		return false;
	for (uint32_t p = 0; p < w->config->pages; p++)
		if (m->want[p] != COH_NONE || m->pages[p].get != COH_NONE)
			return false;
	for (uint32_t r = 0; r < mind_region_count(w->config); r++)
		if (m->jobs[r].state != COH_JOB_FREE ||
		    m->leaves[r].range.count)
			return false;
	return true;
}

bool mind_is_quiet(const struct mind_world *w)
{
	for (uint32_t i = 0; i < w->config->machines; i++)
		if (!is_machine_quiet(w, i))
			return false;
	for (uint32_t p = 0; p < w->config->pages; p++)
		if (w->queue_len[0][p] || w->queue_len[1][p])
			return false;
	for (uint32_t i = 0; i < (uint32_t)(w->dir.machines * w->dir.lanes);
	     i++)
		if (w->slots[i].state != COH_SLOT_FREE)
			return false;
	for (uint32_t i = 0; i < w->dir.entry_count; i++)
		if (w->entries[i].waiting)
			return false;
	return true;
}
