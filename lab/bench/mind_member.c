/* SPDX-License-Identifier: Apache-2.0 */
/* Joins, and does what the cache says; its pages have no bytes of their own. */
#include "mind_member.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "base/rundir.h"
#include "bench.h"
#include "client/shared.h"
#include "place.h"
#include "ticks.h"

enum {
	JOIN_MS = 100,
};

#define PATIENCE_NS 60000000000ull

/* ---- what the cache says ---------------------------------------------------
 */

static void give(struct mind_member *m, uint64_t page)
{
	uint32_t slot = 0;
	uint8_t *room = shd_nic_give_room(&m->nic, &slot);

	ASSERT(room);
	memset(room, (int)page, COHERENCE_PAGE_BYTES);
	shd_nic_give(&m->nic, slot, page);
}

static void say(struct mind_member *m, const struct coh_record *r,
		enum shd_done_kind kind, uint32_t index)
{
	shd_nic_say(&m->nic, r, kind, index);
}

static void act(struct mind_member *m)
{
	for (uint32_t i = 0; i < m->out.count; i++) {
		const struct coh_cache_action *a = &m->out.action[i];
		struct coh_record r = {.kind = COHERENCE_FIN, .fin = a->fin};

		switch (a->kind) {
		case COH_CACHE_GET:
			shd_nic_get(&m->nic, &a->get);
			break;
		case COH_CACHE_GIVE:
			give(m, a->range.page);
			break;
		case COH_CACHE_FIN:
			say(m, &r, SHD_DONE_FIN, 0);
			m->fins++;
			break;
		case COH_CACHE_EVICT:
			r.kind = COHERENCE_EVICT;
			r.range = a->range;
			say(m, &r, SHD_DONE_EVICT, a->index);
			break;
		case COH_CACHE_CLEAN:
			r.kind = COHERENCE_CLEAN;
			r.term = a->term;
			say(m, &r, SHD_DONE_CLEAN, 0);
			break;
		case COH_CACHE_FAIL:
			m->is_lost = true;
			break;
		/* There are no programs. */
		case COH_CACHE_MAP:
		case COH_CACHE_PROTECT:
		case COH_CACHE_UNMAP:
		case COH_CACHE_HIDE:
		case COH_CACHE_UNHIDE:
			break;
		}
	}
	m->out.count = 0;
}

static void take(struct mind_member *m, const struct shd_done *d)
{
	switch (d->kind) {
	case SHD_DONE_LANE:
		coh_cache_answer(&m->cache, (uint8_t)d->index, &m->out);
		m->answers++;
		break;
	case SHD_DONE_GIVE:
		coh_cache_given(&m->cache, shd_nic_given(&m->nic, d->index),
				&m->out);
		break;
	case SHD_DONE_EVICT:
		coh_cache_left(&m->cache, (uint8_t)d->index);
		break;
	case SHD_DONE_CLEAN:
		coh_cache_cleaned(&m->cache);
		break;
	case SHD_DONE_RECORD:
		if (d->record.kind == COHERENCE_INVAL)
			coh_cache_inval(&m->cache, &d->record.inval, &m->out);
		else
			m->is_lost = true; /* nothing here is ever refused */
		break;
	case SHD_DONE_BROKEN:
		m->is_lost = true;
		break;
	case SHD_DONE_FIN:
		break;
	}
	act(m);
}

bool mind_member_turn(struct mind_member *m)
{
	struct shd_done d;

	while (!m->is_lost && shd_nic_next(&m->nic, &d))
		take(m, &d);
	return !m->is_lost;
}

enum coh_touch mind_member_get(struct mind_member *m, uint64_t page,
			       enum coh_right right)
{
	enum coh_touch t = coh_cache_touch(&m->cache, page, right, &m->out);

	act(m);
	return t;
}

void mind_member_drop(struct mind_member *m, uint64_t page)
{
	(void)!coh_cache_evict(&m->cache, page, &m->out); /* or later */
	act(m);
}

/* ---- joining ----------------------------------------------------------------
 */

static int make_cache(struct mind_member *m)
{
	uint64_t pages = shd_lead_size(m->lead) >> COHERENCE_PAGE_SHIFT;

	m->cache = (struct coh_cache){.lanes = m->lanes,
				      .jobs = m->jobs,
				      .leaves = m->leaves,
				      .first_page = coherence_arena(0) >>
						    COHERENCE_PAGE_SHIFT,
				      .page_count = (uint32_t)pages,
				      .lane_count = COHERENCE_LANES,
				      .job_count = COH_CACHE_JOBS_MAX,
				      .leave_count = MIND_MEMBER_LEAVES};
	m->cache.pages = calloc(pages, sizeof(*m->cache.pages));
	if (!m->cache.pages)
		return error_set(-ENOMEM, "no memory for the table of pages");
	coh_cache_init(&m->cache);
	return 0;
}

static int join(struct mind_member *m)
{
	uint64_t end_ns = bench_now_ns() + PATIENCE_NS;
	struct shd_news news = {0};
	struct shd_ends ends;
	int err = shd_nic_renew(&m->nic, &ends);

	if (err)
		return err;
	shd_lead_connect(m->lead, &ends);
	err = shd_lead_start(m->lead);
	while (!err && !news.has_place) {
		struct pollfd p = {.fd = shd_lead_fd(m->lead),
				   .events = POLLIN};

		(void)poll(&p, 1, JOIN_MS);
		shd_lead_news(m->lead, &news);
		if (bench_now_ns() > end_ns)
			err = error_set(news.err ? news.err : -ETIMEDOUT,
					"the lead takes no machine");
	}
	if (!err)
		err = shd_nic_connect(&m->nic, &news.place, &ends);
	if (err)
		return err;
	m->cache.machine = news.place.number;
	coh_cache_connect(&m->cache, news.place.term, news.place.was_member,
			  &m->out);
	act(m);
	return 0;
}

int mind_member_open(struct mind_member *m, const char *name)
{
	char rundir[RUNDIR_PATH_MAX];
	struct config *config;
	int err;

	memset(m, 0, sizeof(*m));
	err = config_open(NULL, &config);
	if (err)
		return err;
	err = rundir_path(getenv("AQUIFER_RACK_NAME"), rundir);
	if (!err)
		err = shd_lead_open(config, rundir, name, &m->lead);
	config_destroy(config);
	if (!err)
		err = make_cache(m);
	if (!err)
		err = shd_nic_open(&m->nic);
	return err ? err : join(m);
}

void mind_member_close(struct mind_member *m)
{
	if (m->lead)
		shd_lead_close(m->lead);
	shd_nic_close(&m->nic);
	free(m->cache.pages);
}

int mind_member_segment(const char *name, uint64_t *page)
{
	struct client_lead lead;
	struct aq_rack *rack;
	json_t *reply = NULL;
	uint64_t va = 0;
	char path[96];
	int err = place_rack(&rack);

	if (err)
		return err;
	err = client_shared_find(rack, &lead);
	(void)snprintf(path, sizeof(path), "/v1/shared/segments/%s", name);
	if (!err)
		err = client_shared_call(rack, &lead, "GET", path, NULL,
					 &reply);
	if (!err)
		err = client_json_u64(reply, "va", UINT64_MAX, &va);
	*page = va >> COHERENCE_PAGE_SHIFT;
	json_decref(reply);
	aq_rack_close(rack);
	return err;
}
