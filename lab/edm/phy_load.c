/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the two links of an experiment with IP load and compares them. */
#include "phy_load.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "phy_link.h"

enum {
	PENDING_FRAMES = 256, /* between the two MACs; few fit on a link */
};

struct run {
	const struct edm_load_config *config;
	struct edm_phy_link *link;
	struct rng arrivals; /* of messages; the same in both runs */
	struct rng frame_rng;
	uint8_t frame[EDM_FRAME_MAX];
	double next_frame; /* block time of the next offer */
	double frame_period;
	uint64_t taken_at[PENDING_FRAMES];
	uint64_t frames_taken, frames_got;
	uint64_t transit_sum, transit_max;
	/* Of each message. */
	uint64_t *made, *first, *last;
	uint32_t sent, begun, got;
};

static double exponential(struct rng *r, double mean)
{
	return -log(1 - rng_double(r)) * mean;
}

static double frame_gap(struct run *r)
{
	return exponential(&r->frame_rng,
			   r->frame_period * 1000 / r->config->frame_permille);
}

/* Frames of one size arrive at random times and wait for the MAC; at full load
 * there is always one. */
static const uint8_t *frame_next(void *owner, uint32_t *len_bytes)
{
	struct run *r = owner;
	uint64_t now = r->link->now;

	if (r->config->frame_permille < 1000) {
		if (r->next_frame > (double)now)
			return NULL;
		r->next_frame += frame_gap(r);
	}
	r->taken_at[r->frames_taken++ % PENDING_FRAMES] = now;
	*len_bytes = r->config->frame_bytes - EDM_FCS_BYTES;
	return r->frame;
}

static void frame_got(void *owner, const uint8_t *frame, uint32_t len_bytes)
{
	struct run *r = owner;
	uint64_t took = r->link->now + 1 -
			r->taken_at[r->frames_got++ % PENDING_FRAMES];

	r->transit_sum += took;
	r->transit_max = u64_max(r->transit_max, took);
}

static void message_got(void *owner, const struct wire_mem_head *head,
			const uint8_t *payload, uint32_t len_bytes)
{
	struct run *r = owner;

	r->last[r->got++] = r->link->now;
}

static void control_got(void *owner, enum wire_block_kind kind,
			const struct wire_mem_head *head)
{
}

static int run_open(struct run *r, const struct edm_load_config *c, bool frames)
{
	struct edm_phy_link_config lc = {
		.phy = {.md = c->md, .start_align = 8},
		.policy = c->policy,
		.seed = c->seed,
		.source = frames && c->frame_permille ? frame_next : NULL,
		.frames = frame_got,
		.frame_owner = r,
		.memory = {message_got, control_got, r},
	};

	memset(r, 0, sizeof(*r));
	r->config = c;
	rng_init_stream(&r->arrivals, c->seed, 1);
	rng_init_stream(&r->frame_rng, c->seed, 2);
	rng_fill(&r->frame_rng, r->frame, sizeof(r->frame));
	/* Preamble, frame, gap: in blocks, on average. */
	r->frame_period = (8 + c->frame_bytes + EDM_GAP_BYTES) / 8.0;
	r->made = calloc(3 * (size_t)c->messages, sizeof(*r->made));
	if (!r->made)
		return -ENOMEM;
	r->first = r->made + c->messages;
	r->last = r->first + c->messages;
	return edm_phy_link_create(&lc, &r->link);
}

static void run_close(struct run *r)
{
	free(r->made);
	edm_phy_link_destroy(r->link);
}

/* Until every message has arrived. */
static int run_all(struct run *r)
{
	const struct edm_load_config *c = r->config;
	const struct edm_phy_config phy = {.md = c->md, .start_align = 8};
	struct wire_mem_head head = {.op = WIRE_MEM_RRES,
				     .size_bytes = c->message_bytes};
	double mean = edm_msg_blocks(&phy, c->message_bytes) * 1000.0 /
		      c->memory_permille;
	static const uint8_t payload[EDM_MSG_BYTES_MAX];
	double next = exponential(&r->arrivals, mean);
	struct edm_tx_out out;
	int err;

	while (r->got < c->messages) {
		while (r->sent < c->messages && next <= (double)r->link->now) {
			err = edm_phy_tx_message(&r->link->tx, &head, payload);
			if (err)
				return error_set(
					err,
					"memory load %u permille: more "
					"than the link carries beside "
					"the frames",
					c->memory_permille);
			r->made[r->sent++] = r->link->now;
			next += exponential(&r->arrivals, mean);
		}
		edm_phy_link_step(r->link, &out);
		if (out.slot == EDM_SLOT_MEMORY && out.first)
			r->first[r->begun++] = r->link->now;
	}
	return 0;
}

static void compare(const struct run *r, const struct run *alone,
		    struct edm_load_result *out)
{
	uint32_t n = r->config->messages;
	double first = 0, whole = 0, base = 0;

	for (uint32_t i = 0; i < n; i++) {
		/* Frames never make a message come earlier. */
		uint64_t f = r->first[i] - alone->first[i];
		uint64_t w = r->last[i] - alone->last[i];

		ASSERT(r->first[i] >= alone->first[i]);
		ASSERT(r->last[i] >= alone->last[i]);
		first += (double)f;
		whole += (double)w;
		base += (double)(alone->last[i] + 1 - alone->made[i]);
		out->first_rise_max = u32_max(out->first_rise_max, (uint32_t)f);
		out->whole_rise_max = u32_max(out->whole_rise_max, (uint32_t)w);
	}
	out->first_rise_mean = first / n;
	out->whole_rise_mean = whole / n;
	out->alone_mean = base / n;
}

/* What was to be carried, in the link's time: all of it, or the frames that
 * were sent and those that still wait. */
static double offered(struct run *r)
{
	uint64_t n = r->frames_taken;

	if (r->config->frame_permille == 0 || r->config->frame_permille == 1000)
		return r->config->frame_permille / 1000.0;
	for (; r->next_frame <= (double)r->link->now; n++)
		r->next_frame += frame_gap(r);
	return (double)n * r->frame_period / (double)r->link->now;
}

static void summarize(struct run *r, struct edm_load_result *out)
{
	const struct edm_tx_stats *s = &r->link->tx.stats;
	double now = (double)r->link->now;

	out->blocks = r->link->now;
	out->block_wait_max = s->head_wait_max;
	out->first_wait_max = s->first_wait_max;
	out->offered = offered(r);
	out->carried = (double)r->frames_got * r->frame_period / now;
	out->frames = r->frames_got;
	out->transit_mean =
		r->frames_got ? (double)r->transit_sum / (double)r->frames_got
			      : 0;
	out->transit_plain =
		edm_frame_blocks(r->config->frame_bytes - EDM_FCS_BYTES);
	out->transit_max = r->transit_max;
	out->fifo_max = s->fifo_max;
	out->buffer_max = r->link->rx.stats.buffer_max;
	out->reused =
		(double)s->gaps_reused / (double)s->blocks[EDM_SLOT_MEMORY];
}

static int config_check(const struct edm_load_config *c)
{
	if (!c->frame_bytes)
		return error_set(-EINVAL, "frames of 0 bytes: 64 to 9018 are "
					  "possible");
	if (c->frame_permille > 1000)
		return error_set(-EINVAL,
				 "an IP load of %u permille is more "
				 "than the link",
				 c->frame_permille);
	if (!c->memory_permille || c->memory_permille > 1000)
		return error_set(-EINVAL,
				 "a memory load of %u permille: 1 to "
				 "1000 are possible",
				 c->memory_permille);
	return edm_phy_link_check(c->frame_bytes, c->message_bytes, c->messages,
				  EDM_LOAD_MESSAGES_MAX);
}

int edm_load_run(const struct edm_load_config *c, struct edm_load_result *out)
{
	struct edm_load_result result = {0};
	struct run *runs;
	int err = config_check(c);

	if (err)
		return err;
	runs = calloc(2, sizeof(*runs));
	if (!runs)
		return -ENOMEM;
	for (int i = 0; i < 2 && !err; i++) {
		err = run_open(&runs[i], c, i == 0);
		if (!err)
			err = run_all(&runs[i]);
	}
	if (!err) {
		compare(&runs[0], &runs[1], &result);
		summarize(&runs[0], &result);
		*out = result;
	}
	run_close(&runs[0]);
	run_close(&runs[1]);
	free(runs);
	return err;
}
