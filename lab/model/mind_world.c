/* SPDX-License-Identifier: Apache-2.0 */
/* The first state of a rack, and copies of states. */
#include "mind_world.h"

#include <string.h>

static const struct coh_range all_pages = {0, MIND_PAGES_MAX};

static void bind_machine(struct mind_machine *m)
{
	m->cache.pages = m->pages;
	m->cache.lanes = m->lanes;
	m->cache.jobs = m->jobs;
	m->cache.leaves = m->leaves;
}

static void bind(struct mind_world *w)
{
	w->dir.entries = w->entries;
	w->dir.slots = w->slots;
	w->dir.buckets = &w->bucket;
	for (uint32_t i = 0; i < w->config->machines; i++)
		bind_machine(&w->machine[i]);
}

void mind_world_init(struct mind_world *w, const struct mind_config *config)
{
	uint8_t regions = (uint8_t)mind_region_count(config);

	memset(w, 0, sizeof(*w));
	w->config = config;
	w->dir.machines = (uint8_t)config->machines;
	w->dir.lanes = (uint8_t)config->pages;
	w->dir.entry_count = config->entries;
	w->dir.bucket_count = 1;
	w->dir.region_pages = config->region_pages;
	w->dir.keep_going = config->keep_going;
	w->dir.goes_on = &all_pages;
	w->dir.goes_on_count = config->goes_on;
	w->machine_may_die = config->machine_dies;
	w->switch_may_die = config->switch_dies;
	w->node_may_die = config->node_dies;
	w->counts = w->kept_counts = config->copies ? MIND_BOTH : 1;
	bind(w);
	coh_dir_init(&w->dir, 1, 0, false);
	for (uint8_t i = 0; i < config->machines; i++) {
		struct mind_machine *m = &w->machine[i];
		int err = coh_dir_join(&w->dir, i);

		ASSERT(!err);
		m->alive = true;
		w->kept |= (uint16_t)(1u << i);
		m->cache.machine = i;
		m->cache.page_count = config->pages;
		m->cache.lane_count = (uint8_t)config->pages;
		m->cache.job_count = m->cache.leave_count = regions;
		coh_cache_init(&m->cache);
		m->cache.term = 1;
		m->cache.link = COH_CACHE_MEMBER;
	}
	for (uint8_t n = 0; n < mind_node_count(config); n++)
		for (uint32_t p = 0; p < config->pages; p++)
			w->memory[n][p] = true;
}

void mind_world_copy(struct mind_world *to, const struct mind_world *from)
{
	memcpy(to, from, sizeof(*to));
	bind(to);
}
