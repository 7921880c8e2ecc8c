/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a link with bit errors and compares what comes with what was sent. */
#include "phy_errors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "phy_link.h"

enum {
	DRAIN_BLOCKS = 3 * EDM_FRAME_BLOCKS_MAX,
};

struct run {
	const struct edm_errors_config *config;
	struct edm_phy_link *link;
	struct edm_errors_result result;
	uint8_t frame[EDM_FRAME_MAX];
	uint8_t payload[EDM_MSG_BYTES_MAX];
	/* What the receiver handed over in this block time. */
	bool came;
	struct wire_mem_head came_head;
	uint32_t came_bytes;
	uint8_t came_payload[EDM_MSG_BYTES_MAX];
	bool closing;
};

static const uint8_t *frame_next(void *owner, uint32_t *len_bytes)
{
	struct run *r = owner;

	if (r->closing)
		return NULL;
	*len_bytes = r->config->frame_bytes - EDM_FCS_BYTES;
	r->result.frames_sent++;
	return r->frame;
}

static void frame_got(void *owner, const uint8_t *frame, uint32_t len_bytes)
{
	struct run *r = owner;
	bool right = len_bytes == r->config->frame_bytes - EDM_FCS_BYTES &&
		     !memcmp(frame, r->frame, len_bytes);

	if (right)
		r->result.frames_right++;
	else
		r->result.frames_wrong++;
}

static void message_got(void *owner, const struct wire_mem_head *head,
			const uint8_t *payload, uint32_t len_bytes)
{
	struct run *r = owner;

	r->came = true;
	r->came_head = *head;
	r->came_bytes = len_bytes;
	memcpy(r->came_payload, payload, len_bytes);
}

/* A notification or grant that nobody sent: this link carries none. */
static void control_got(void *owner, enum wire_block_kind kind,
			const struct wire_mem_head *head)
{
	((struct run *)owner)->result.phantoms++;
}

/* Message n, made from its number, so that nothing has to be kept. */
static struct wire_mem_head message_make(struct run *r, uint64_t n)
{
	struct rng rng;

	rng_init_stream(&rng, r->config->seed, 1000 + n);
	rng_fill(&rng, r->payload, r->config->message_bytes);
	return (struct wire_mem_head){
		.op = WIRE_MEM_RRES,
		.size_bytes = r->config->message_bytes,
		.node = (uint16_t)rng_below(&rng, WIRE_MEM_NODES),
		.id = (uint8_t)n,
		.last = n & 1,
	};
}

/* The line delays nothing, so a message arrives in the block time in which its
 * last block is sent, or it is not the one that was sent. */
static void judge(struct run *r, const struct edm_tx_out *out, uint64_t *ended)
{
	bool ends = out->slot == EDM_SLOT_MEMORY && out->last;
	struct wire_mem_head h;

	if (ends && !r->came)
		r->result.lost++;
	if (!ends && r->came)
		r->result.phantoms++;
	if (ends && r->came) {
		h = message_make(r, *ended);
		if (r->came_bytes == r->config->message_bytes &&
		    r->came_head.op == h.op && r->came_head.node == h.node &&
		    r->came_head.id == h.id && r->came_head.last == h.last &&
		    r->came_head.class == h.class &&
		    !memcmp(r->came_payload, r->payload, r->came_bytes))
			r->result.right++;
		else
			r->result.wrong++;
	}
	*ended += ends;
	r->came = false;
}

static int run_all(struct run *r)
{
	uint64_t sent = 0, ended = 0;
	uint32_t drain = 0;
	struct edm_tx_out out;
	int err;

	while (ended < r->config->messages || drain++ < DRAIN_BLOCKS) {
		if (sent < r->config->messages &&
		    !edm_phy_tx_backlog(&r->link->tx)) {
			struct wire_mem_head h = message_make(r, sent++);

			err = edm_phy_tx_message(&r->link->tx, &h, r->payload);
			if (err)
				return err;
		}
		r->closing = ended == r->config->messages;
		edm_phy_link_step(r->link, &out);
		judge(r, &out, &ended);
	}
	r->result.sent = sent;
	return 0;
}

static int config_check(const struct edm_errors_config *c)
{
	if (c->error_rate < 0 || c->error_rate >= 0.5)
		return error_set(-EINVAL,
				 "a bit error rate of %g: 0 to 0.5 "
				 "are possible",
				 c->error_rate);
	return edm_phy_link_check(c->frame_bytes, c->message_bytes, c->messages,
				  EDM_ERRORS_MESSAGES_MAX);
}

int edm_errors_run(const struct edm_errors_config *c,
		   struct edm_errors_result *out)
{
	struct edm_phy_link_config lc = {
		.phy = c->phy,
		.policy = EDM_TX_FAIR,
		.error_rate = c->error_rate,
		.seed = c->seed,
		.source = c->frame_bytes ? frame_next : NULL,
		.frames = frame_got,
		.memory = {message_got, control_got, NULL},
	};
	struct run *r;
	struct rng rng;
	int err = config_check(c);

	if (err)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->config = c;
	rng_init_stream(&rng, c->seed, 3);
	rng_fill(&rng, r->frame, sizeof(r->frame));
	lc.frame_owner = r;
	lc.memory.owner = r;
	err = edm_phy_link_create(&lc, &r->link);
	if (!err) {
		err = run_all(r);
		r->result.bits = r->link->line.bits;
		r->result.flips = r->link->line.errors;
		r->result.rx = r->link->rx.stats;
		r->result.frames_fcs = r->link->mac_rx.stats.bad_fcs;
		r->result.lock_lost = r->link->line.lock.lost;
		if (!err)
			*out = r->result;
		edm_phy_link_destroy(r->link);
	}
	free(r);
	return err;
}
