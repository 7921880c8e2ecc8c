/* SPDX-License-Identifier: Apache-2.0 */
/* Shipped chains of one to five members, with a client that waits for each of
 * its changes; every message takes its time, and each node has one thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "block/blk_chain.h"
#include "efig_costs.h"
#include "efig_path.h"
#include "sim/sim.h"

enum {
	BLOCK_BYTES = 1 << 20,
	VALUE_BYTES = 64,
	WAYS = 256,
	CHANGES = 100,
	TICK_MS = 5,
	SETTLE_MS = 2000, /* until leases are there */
};

struct chains;

struct member {
	struct chains *all;
	struct blk_block block;
	struct blk_chain chain;
	void *mem;
	uint64_t busy_ps; /* its thread, until then */
};

struct way {
	uint64_t at_ps;
	unsigned to;
	size_t length;
	uint8_t *bytes; /* NULL: unused */
};

struct chains {
	unsigned length;
	enum efig_link link;
	struct member member[BLK_CHAIN_MAX];
	struct way way[WAYS];
	uint64_t now_ps;
	bool is_done;
	uint64_t done_ps;
};

static uint64_t now_ns(const struct chains *c)
{
	return c->now_ps / SIM_NS;
}

/* ---- what a chain asks for ----------------------------------------------- */

static bool send(void *ctx, const struct blk_member *to,
		 struct blk_link_message *m)
{
	struct member *n = ctx;
	struct chains *c = n->all;

	for (unsigned i = 0; i < WAYS; i++) {
		struct way *w = &c->way[i];

		if (w->bytes)
			continue;
		w->bytes = malloc(sizeof(struct blk_link_wire) + m->bytes);
		if (!w->bytes)
			return false;
		w->length = blk_link_build(m, w->bytes);
		w->to = to->node;
		w->at_ps = n->busy_ps + efig_message_ps(c->link, w->length);
		return true;
	}
	return false;
}

static bool is_held(void *ctx)
{
	return false;
}

static void done(void *ctx, const struct blk_answer *a)
{
	struct member *n = ctx;

	n->all->is_done = a->status == BLOCK_OK;
	n->all->done_ps = n->busy_ps;
}

static void freed(void *ctx)
{
}

/* ---- time ---------------------------------------------------------------- */

/* The node's thread takes the message when it has done all before. */
static void work(struct chains *c, struct member *n)
{
	n->busy_ps = u64_max(n->busy_ps, c->now_ps) + efig_costs.execute_ps;
}

static struct way *next_way(struct chains *c)
{
	struct way *best = NULL;

	for (unsigned i = 0; i < WAYS; i++)
		if (c->way[i].bytes && (!best || c->way[i].at_ps < best->at_ps))
			best = &c->way[i];
	return best;
}

static void deliver(struct chains *c, struct way *w)
{
	struct member *n = &c->member[w->to];
	struct blk_link_message m;
	struct way in = *w;

	w->bytes = NULL;
	c->now_ps = u64_max(c->now_ps, in.at_ps);
	work(c, n);
	if (!blk_link_parse(in.bytes, in.length, &m))
		blk_chain_hear(&n->chain, &m, now_ns(c));
	free(in.bytes);
}

static void run_until(struct chains *c, uint64_t end_ps)
{
	while (c->now_ps < end_ps) {
		uint64_t tick =
			(c->now_ps / (TICK_MS * SIM_MS) + 1) * TICK_MS * SIM_MS;
		struct way *w = next_way(c);

		if (w && w->at_ps <= tick) {
			deliver(c, w);
			continue;
		}
		c->now_ps = tick;
		for (unsigned i = 0; i < c->length; i++) {
			struct member *n = &c->member[i];

			n->busy_ps = u64_max(n->busy_ps, c->now_ps);
			blk_chain_tick(&n->chain, now_ns(c));
			if (i + 1 == c->length)
				(void)blk_chain_may_read(&n->chain, now_ns(c));
		}
	}
}

/* ---- a client ------------------------------------------------------------ */

static struct blk_request put(uint64_t sequence, const uint8_t *value)
{
	static const uint8_t session[BLOCK_SESSION_BYTES] = {1};

	return (struct blk_request){.session = session,
				    .opcode = BLOCK_PUT,
				    .sequence = sequence,
				    .acked = sequence - 1,
				    .length = VALUE_BYTES,
				    .value = value,
				    .inside_room = BLOCK_INSIDE_MAX};
}

static int change(struct chains *c, uint64_t sequence, double *us)
{
	static const uint8_t value[VALUE_BYTES] = {1};
	struct blk_request q = put(sequence, value);
	struct member *head = &c->member[0];
	uint64_t start_ps = c->now_ps;
	struct blk_answer a;
	uint8_t *place;

	c->now_ps += efig_message_ps(c->link, VALUE_BYTES);
	c->is_done = false;
	work(c, head);
	if (c->length == 1) {
		place = blk_begin(&head->block, &q, &a);
		if (place) {
			memcpy(place, value, sizeof(value));
			blk_finish(&head->block, &q, &a);
		}
		done(head, &a);
	} else if (!blk_chain_is_open(&head->chain) ||
		   blk_chain_change(&head->chain, &q, &a, &place, now_ns(c)) !=
			   BLK_CHAIN_TAKEN) {
		return -EIO;
	}
	for (struct way *w; !c->is_done && (w = next_way(c));)
		deliver(c, w);
	if (!c->is_done)
		return -EIO;
	c->now_ps =
		u64_max(c->now_ps, c->done_ps + efig_message_ps(c->link, 0));
	*us += (double)(c->now_ps - start_ps) / (double)SIM_US;
	return 0;
}

/* ---- life ---------------------------------------------------------------- */

static int add_member(struct chains *c, unsigned i)
{
	struct member *n = &c->member[i];
	struct blk_options o = {.kind = BLOCK_QUEUE,
				.size_bytes = BLOCK_BYTES,
				.generation = i + 1,
				.identity = c->length > 1,
				.is_first = true};
	struct blk_chain_carrier carrier = {.ctx = n,
					    .send = send,
					    .is_held = is_held,
					    .done = done,
					    .freed = freed};
	struct blk_chain_config config = {
		.epoch = 1, .count = c->length, .full = c->length, .at = i};

	n->all = c;
	n->mem = aligned_alloc(64, BLOCK_BYTES);
	if (!n->mem)
		return -ENOMEM;
	memset(n->mem, 0, BLOCK_BYTES);
	if (blk_init(&n->block, &o, n->mem)) {
		free(n->mem);
		n->mem = NULL;
		return -ENOMEM;
	}
	blk_chain_init(&n->chain, &n->block, true, &carrier);
	for (unsigned k = 0; k < c->length; k++)
		config.member[k] =
			(struct blk_member){.node = k, .generation = k + 1};
	if (c->length > 1)
		blk_chain_configure(&n->chain, &config, now_ns(c));
	return 0;
}

int efig_chain_run(unsigned length, enum efig_link link,
		   struct efig_chain_result *out)
{
	struct chains *c = calloc(1, sizeof(*c));
	int err = c ? 0 : -ENOMEM;

	if (!c)
		return err;
	*c = (struct chains){.length = length, .link = link, .now_ps = SIM_S};
	*out = (struct efig_chain_result){0};
	for (unsigned i = 0; i < length && !err; i++)
		err = add_member(c, i);
	if (!err && length > 1)
		run_until(c, c->now_ps + SETTLE_MS * SIM_MS);
	for (unsigned i = 0; i < CHANGES && !err; i++)
		err = change(c, i + 1, &out->write_us);
	out->write_us /= CHANGES;
	if (!err && length > 1 &&
	    !blk_chain_may_read(&c->member[length - 1].chain, now_ns(c)))
		err = -EIO;
	/* The last member answers alone. */
	out->read_us =
		(double)(efig_message_ps(link, 0) + efig_costs.execute_ps +
			 efig_message_ps(link, VALUE_BYTES)) /
		(double)SIM_US;
	for (unsigned i = 0; i < length; i++)
		if (c->member[i].mem) {
			blk_release(&c->member[i].block);
			free(c->member[i].mem);
		}
	for (unsigned i = 0; i < WAYS; i++)
		free(c->way[i].bytes);
	free(c);
	return err;
}
