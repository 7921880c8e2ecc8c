/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A full block of a store is split while a client gets values of it. The mover
 * asks, waits, and goes on, so what it reads from the source goes over its own
 * link twice, one way after the other. Gets and the mover's reads leave the
 * source one after the other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "efig_costs.h"
#include "efig_ekv.h"
#include "efig_path.h"
#include "sim/sim.h"

enum {
	VALUE_BYTES = 100000,
	KEYS_MAX = 4096,
	GETS_MAX = 1 << 16,
	LARGE = 4096, /* more is pulled or pushed by the node */
};

struct move {
	enum efig_link link;
	struct efig_ekv kv;
	struct rng rng;
	unsigned keys;
	uint64_t now_ps;  /* of the mover */
	uint64_t get_ps;  /* when the next get is sent */
	uint64_t free_ps; /* the source's link */
	uint64_t wait_ps; /* since then a get waits for its slot; 0: none */
	uint64_t wait_key;
	bool is_from_source; /* the last large message */
	double *us;
	unsigned gets;
};

/* The node sends so many bytes, not before that time; when they are there. */
static uint64_t leave(struct move *m, uint64_t at_ps, uint64_t bytes)
{
	uint64_t start = u64_max(at_ps, m->free_ps);

	m->free_ps = start + efig_bytes_ps(m->link, bytes);
	return start + efig_message_ps(m->link, bytes);
}

/* Gets that were sent until then. */
static void get_until(struct move *m, uint64_t end_ps)
{
	while (m->get_ps <= end_ps && m->gets < GETS_MAX) {
		uint64_t key =
			m->wait_ps ? m->wait_key : rng_below(&m->rng, m->keys);
		uint64_t sent = m->wait_ps ? m->wait_ps : m->get_ps, there;
		bool waits = false;
		unsigned at;

		if (!efig_ekv_get(&m->kv, key, &at, &waits))
			waits = true; /* it is just where it goes */
		if (waits) { /* asked again, when the batch may be there */
			m->wait_ps = sent;
			m->wait_key = key;
			m->get_ps += 2 * efig_message_ps(m->link, 0) +
				     efig_costs.execute_ps;
			continue;
		}
		m->wait_ps = 0;
		there = m->get_ps + efig_message_ps(m->link, 0) +
			efig_costs.execute_ps;
		/* The target's link has nothing else to do. */
		there = at ? there + efig_message_ps(m->link, VALUE_BYTES)
			   : leave(m, there, VALUE_BYTES);
		m->us[m->gets++] = (double)(there - sent) / (double)SIM_US;
		m->get_ps = there;
	}
}

/* A message of the mover and its answer. */
static void message(void *ctx, uint64_t bytes)
{
	struct move *m = ctx;

	get_until(m, m->now_ps);
	m->now_ps += efig_message_ps(m->link, 0) + efig_costs.execute_ps;
	if (bytes > LARGE) {
		/* By WRITE to the mover, or by READ from it. */
		m->is_from_source ^= true;
		m->now_ps = m->is_from_source
				    ? leave(m, m->now_ps, bytes)
				    : m->now_ps + efig_message_ps(m->link, 0) +
					      efig_message_ps(m->link, bytes);
	}
	m->now_ps += efig_message_ps(m->link, 0);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(double *us, unsigned count, double q)
{
	qsort(us, count, sizeof(*us), by_value);
	return count ? us[(unsigned)(q * (count - 1))] : 0;
}

static int fill(struct move *m)
{
	while (m->keys < KEYS_MAX && m->kv.count == 1) {
		const struct blk_block *b =
			efig_rack_block(m->kv.rack, &m->kv.place[0]);

		if (b->ekv.live * 1000 >= b->ekv.room * 940)
			return 0;
		if (!efig_ekv_put(&m->kv, m->keys++, VALUE_BYTES))
			return -EPROTO;
	}
	return -EPROTO;
}

static int split(struct move *m, struct efig_move_result *out)
{
	uint64_t start;

	get_until(m, SIM_S / 4);
	out->before_p50_us = quantile(m->us, m->gets, 0.5);
	out->before_p99_us = quantile(m->us, m->gets, 0.99);
	m->gets = 0;
	start = m->now_ps = m->get_ps;
	memset(&m->kv.moved, 0, sizeof(m->kv.moved));
	m->kv.message = message;
	m->kv.ctx = m;
	if (!efig_ekv_split(&m->kv, 0))
		return -EPROTO;
	out->split_ms = (double)(m->now_ps - start) / (double)SIM_MS +
			efig_grow_us(m->link) / 1e3;
	out->moved_mb = (double)m->kv.moved.bytes / 2e6;
	out->messages = (double)m->kv.moved.messages;
	out->gets = m->gets;
	out->during_p50_us = quantile(m->us, m->gets, 0.5);
	out->during_p99_us = quantile(m->us, m->gets, 0.99);
	return 0;
}

int efig_move_run(enum efig_link link, uint64_t seed,
		  struct efig_move_result *out)
{
	struct efig_rack_config config = {.nodes = 2,
					  .tenants = 1,
					  .node_bytes = 1ull << 30,
					  .seed = seed};
	struct move *m = calloc(1, sizeof(*m));
	struct efig_rack *rack = NULL;
	int err = m ? efig_rack_open(&config, &rack) : -ENOMEM;

	if (err) {
		free(m);
		return err;
	}
	*out = (struct efig_move_result){0};
	*m = (struct move){.link = link,
			   .get_ps = SIM_US,
			   .kv = {.rack = rack, .path = "/f/kv", .high = 1001}};
	rng_init(&m->rng, seed);
	m->us = calloc(GETS_MAX, sizeof(*m->us));
	err = m->us ? 0 : -ENOMEM;
	if (!err &&
	    efig_rack_ask(rack, 0, CTL_POST, "/v1/ns/f",
			  json_pack("{s:s}", "kind", "folder"), NULL) != 201)
		err = -EPROTO;
	if (!err)
		err = efig_ekv_open(&m->kv, 128ull << 20);
	if (!err)
		err = fill(m);
	if (!err)
		err = split(m, out);
	efig_ekv_close(&m->kv);
	efig_rack_close(rack);
	free(m->us);
	free(m);
	return err;
}
