/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion events: an armed CQ tells once, and exactly when a completion of
 * the asked kind has come since.
 */
#include <poll.h>

#include "verbs_priv.h"

enum {
	QUIET_CHECKS = 32, /* one empty poll in so many looks for an event */
};

void vs_notify_seen(struct vs_node *node, unsigned cq, bool solicited)
{
	struct vs_arm *arm = &node->arms[cq];

	arm->due |= arm->mode == VS_ARM_ANY ||
		    (arm->mode == VS_ARM_SOLICITED && solicited);
}

/* Takes every event that is there and marks whose it is. */
static bool take_events(struct vs_node *node, bool got[VS_CQ_MAX])
{
	struct pollfd fd = {.fd = node->channel->fd, .events = POLLIN};

	while (poll(&fd, 1, 0) == 1) {
		struct ibv_cq *cq;
		void *context;
		unsigned c = 0;

		if (ibv_get_cq_event(node->channel, &cq, &context))
			return false;
		ibv_ack_cq_events(cq, 1);
		while (c < node->cq_count && node->cqs[c] != cq)
			c++;
		if (c == node->cq_count || got[c])
			return false;
		got[c] = true;
	}
	return true;
}

void vs_notify_check(struct vs_node *node, unsigned cq)
{
	struct vs *vs = node->vs;
	struct vs_arm *arm = &node->arms[cq];
	bool got[VS_CQ_MAX] = {false};

	if (arm->mode != VS_ARM_NONE && !arm->due &&
	    sim_rand_below(&vs->run.rand, QUIET_CHECKS))
		return;
	if (arm->mode != VS_ARM_NONE && !take_events(node, got)) {
		vs_fail(vs, "node %u: an event of no CQ, or twice",
			node->index);
		return;
	}
	/* Events of the node's other CQs are remembered for their turn. */
	for (unsigned c = 0; c < node->cq_count; c++)
		node->arms[c].told |= got[c];
	if (arm->mode != VS_ARM_NONE && arm->told != arm->due) {
		vs_fail(vs, "node %u: CQ %u: armed for %s, %s", node->index, cq,
			arm->mode == VS_ARM_ANY ? "any" : "solicited",
			arm->due ? "but no event came"
				 : "an event without a reason");
		return;
	}
	if (arm->mode != VS_ARM_NONE && !arm->due)
		return;
	*arm = (struct vs_arm){.mode = sim_rand_below(&vs->run.rand, 2)
					       ? VS_ARM_ANY
					       : VS_ARM_SOLICITED};
	if (ibv_req_notify_cq(node->cqs[cq], arm->mode == VS_ARM_SOLICITED))
		vs_fail(vs, "node %u: ibv_req_notify_cq failed", node->index);
}
