/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the parts of one direction of a link. */
#include "phy_link.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

enum {
	SETTLE_BLOCKS = 64, /* block lock; two would do for the descrambler */
};

/* What an idle line does before anybody sends: the ends find their step. */
static void settle(struct edm_line *l)
{
	struct wire_block idle = wire_block_idle();

	for (int i = 0; i < SETTLE_BLOCKS; i++) {
		(void)edm_descramble(&l->rx,
				     edm_scramble(&l->tx, idle.payload));
		edm_lock_feed(&l->lock, idle.sync);
	}
}

int edm_phy_link_create(const struct edm_phy_link_config *c,
			struct edm_phy_link **out)
{
	struct edm_phy_link *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	rng_init(&l->rng, c->seed);
	if (c->source)
		edm_mac_tx_init(&l->mac_tx, c->phy.start_align, c->source,
				c->frame_owner);
	edm_mac_rx_init(&l->mac_rx, c->phy.start_align, c->frames,
			c->frame_owner);
	edm_line_init(&l->line, c->error_rate, c->seed);
	err = edm_phy_tx_init(&l->tx, &c->phy, c->policy,
			      c->source ? &l->mac_tx : NULL, &l->rng);
	if (!err)
		err = edm_phy_rx_init(&l->rx, &c->phy, &c->memory);
	if (err) {
		free(l);
		return err;
	}
	settle(&l->line);
	*out = l;
	return 0;
}

void edm_phy_link_destroy(struct edm_phy_link *l)
{
	free(l);
}

unsigned edm_phy_link_step(struct edm_phy_link *l, struct edm_tx_out *sent)
{
	struct wire_block on_line, to_mac;
	unsigned flips;

	edm_phy_tx_step(&l->tx, sent);
	flips = edm_line_carry(&l->line, &sent->block, &on_line);
	edm_phy_rx_step(&l->rx, &on_line, &to_mac);
	edm_mac_rx_step(&l->mac_rx, &to_mac);
	l->now++;
	return flips;
}

bool edm_phy_link_quiet(const struct edm_phy_link *l)
{
	return !edm_phy_tx_backlog(&l->tx) && !l->tx.fifo_count &&
	       !l->tx.stops && !l->mac_tx.in_frame && !l->rx.in_frame &&
	       l->rx.out == l->rx.done && !l->mac_rx.in_frame;
}

int edm_phy_link_check(uint32_t frame_bytes, uint32_t message_bytes,
		       uint32_t messages, uint32_t messages_max)
{
	if (frame_bytes && (frame_bytes < EDM_FRAME_MIN + EDM_FCS_BYTES ||
			    frame_bytes > EDM_FRAME_MAX + EDM_FCS_BYTES))
		return error_set(-EINVAL,
				 "frames of %u bytes: 64 to 9018 are possible",
				 frame_bytes);
	if (!message_bytes || message_bytes > EDM_MSG_BYTES_MAX)
		return error_set(-EINVAL,
				 "messages of %u bytes: 1 to %d are possible",
				 message_bytes, EDM_MSG_BYTES_MAX);
	if (!messages || messages > messages_max)
		return error_set(-EINVAL, "%u messages: 1 to %u are possible",
				 messages, messages_max);
	return 0;
}
