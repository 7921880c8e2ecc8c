/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: the life of a store's way to one node. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "client/link.h"
#include "client/verbs_api.h"
#include "page_priv.h"

static const struct page_lane_ops *ops_of(enum page_mode mode)
{
	static const struct page_lane_ops *const ops[PAGE_MODE_COUNT] = {
		[PAGE_STATIC] = &page_lane_static,
		[PAGE_DYNAMIC_1M] = &page_lane_dynamic,
		[PAGE_DYNAMIC_4K] = &page_lane_dynamic,
		[PAGE_TWO_SIDED] = &page_lane_two_sided,
		[PAGE_CHAIN] = &page_lane_chain,
		[PAGE_SPARSE] = &page_lane_dynamic,
	};

	return ops[mode];
}

static void close_grant(struct page_lane *lane)
{
	struct page_wiring *w = &lane->store->wiring;

	if (lane->has_grant)
		w->close(w->ctx, &lane->grant);
	memset(&lane->grant, 0, sizeof(lane->grant));
	lane->has_grant = false;
}

int page_lane_open(struct page_lane *lane, uint32_t node)
{
	struct page_store *s = lane->store;
	struct page_wish wish = {
		.mode = s->o.mode,
		.index_count = s->per_node * s->o.copies,
		.page_bytes = s->o.page_bytes,
		.depth = s->slot_count,
		.without = s->o.chain_without,
		.is_unmapped = s->o.is_unmapped,
		.patience_ms = s->o.patience_ms,
		.name = s->name,
	};
	int err;

	lane->ops = ops_of(s->o.mode);
	if (!lane->ops)
		return error_set(-EOPNOTSUPP, "there is no mode %s here",
				 page_mode_name(s->o.mode));
	err = s->wiring.open(s->wiring.ctx, node, &wish, &lane->grant);
	if (err)
		return err;
	lane->has_grant = true;
	lane->node = node;
	lane->busy = 0;
	lane->is_lost = lane->is_failing = false;
	s->clock = lane->grant.link[0]->clock;
	s->verbs = lane->grant.link[0]->verbs;
	s->pd = lane->grant.link[0]->pd;
	err = lane->ops->start(lane);
	if (err)
		close_grant(lane);
	return err;
}

void page_lane_close(struct page_lane *lane)
{
	if (!lane->has_grant)
		return;
	lane->ops->release(lane);
	lane->own = NULL;
	close_grant(lane);
}

/* In the error state nothing arrives any more. */
static void stop_links(struct page_lane *lane)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	for (unsigned i = 0; i < GRANT_LINKS_MAX; i++) {
		struct client_link *link = lane->grant.link[i];

		if (link)
			(void)link->verbs->modify_qp(link->qp, &attr,
						     IBV_QP_STATE);
	}
}

void page_lane_lose(struct page_lane *lane)
{
	struct page_store *s = lane->store;
	uint32_t i, copy;

	if (lane->why)
		log_warn("page", "node %s is lost to %s: %s",
			 lane->grant.node_name, s->name, lane->why);
	lane->is_failing = false;
	lane->is_lost = true;
	s->stats.nodes_lost++;
	stop_links(lane);
	for (i = 0; i < s->slot_count && lane->busy; i++) {
		for (copy = 0; copy < s->o.copies; copy++) {
			const struct page_slot *slot = &s->slot[i];

			if (slot->op && slot->waiting & 1u << copy &&
			    page_copy_lane(s, slot->op->page, copy) == lane)
				page_job_end(s, i << JOB_COPY_BITS | copy,
					     -EHOSTDOWN);
		}
	}
}

void page_notice(struct page_store *s)
{
	for (uint32_t i = 0; i < s->lane_count; i++) {
		struct page_lane *lane = &s->lane[i];

		if (lane->is_lost || !page_lane_seems_lost(lane))
			continue;
		lane->why = "it has ended the connection";
		page_lane_lose(lane);
	}
}

void page_lose_node(struct page_store *s, const char *node)
{
	for (uint32_t i = 0; i < s->lane_count; i++) {
		struct page_lane *lane = &s->lane[i];

		if (lane->is_lost || strcmp(lane->grant.node_name, node) != 0)
			continue;
		lane->why = NULL; /* it was said */
		page_lane_lose(lane);
	}
}

uint64_t page_lane_asked_bytes(struct page_lane *lane)
{
	const struct page_wiring *w = &lane->store->wiring;

	return w->used_bytes(w->ctx, &lane->grant);
}

bool page_lane_seems_lost(const struct page_lane *lane)
{
	const struct page_wiring *w = &lane->store->wiring;

	return w->is_lost && w->is_lost(w->ctx, &lane->grant);
}
