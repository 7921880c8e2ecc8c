/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of a lone message, found by simulating it and remembered. One table
 * serves all runs of one configuration of protocol, latency and framing; what
 * else differs between runs (load, seed, sizes) does not touch lone messages.
 * Threads share it under its lock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "edm_run.h"
#include "edm_timing.h"

enum {
	SLOTS = 1 << 16, /* more than all sizes times operations in use */
	PROBES = 64,
};

/* All that the time of a lone message of a rival may depend on. No padding:
 * keys are compared as bytes. */
struct key {
	uint32_t bytes, gbps, chunk_bytes, cxl_credits, mem_ps;
	uint16_t op, proto;
	uint16_t latency, framing;
	uint32_t flags;
};

STATIC_ASSERT(sizeof(struct key) == 32, "no padding");

struct slot {
	struct key key;
	uint64_t ps; /* 0: empty */
};

struct edm_unloaded {
	pthread_mutex_t lock;
	struct slot slot[SLOTS];
};

int edm_unloaded_create(struct edm_unloaded **out)
{
	struct edm_unloaded *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	if (pthread_mutex_init(&u->lock, NULL)) {
		free(u);
		return -ENOMEM;
	}
	*out = u;
	return 0;
}

void edm_unloaded_destroy(struct edm_unloaded *u)
{
	if (!u)
		return;
	pthread_mutex_destroy(&u->lock);
	free(u);
}

static struct key key_of(const struct edm_config *c, enum edm_op op,
			 uint32_t bytes)
{
	return (struct key){
		.bytes = bytes,
		.gbps = c->gbps,
		.chunk_bytes = c->chunk_bytes,
		.cxl_credits = c->cxl_credits,
		.mem_ps = c->mem_ps,
		.op = (uint16_t)op,
		.proto = (uint16_t)c->proto,
		.latency = (uint16_t)c->latency,
		.framing = (uint16_t)c->framing,
		.flags = (uint32_t)c->published | (uint32_t)c->cxl_voq << 1 |
			 (uint32_t)c->cxl_fifo << 2 |
			 (uint32_t)c->fastpass_free << 3 |
			 (uint32_t)c->asic << 4,
	};
}

static uint32_t hash_of(const struct key *k)
{
	const uint8_t *p = (const uint8_t *)k;
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < sizeof(*k); i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return (uint32_t)(h >> 32 ^ h);
}

static void lone_done(void *owner, const struct edm_msg *m)
{
	*(bool *)owner = true;
}

static int simulate(const struct edm_config *c, enum edm_op op, uint32_t bytes,
		    uint64_t *out)
{
	struct edm_config lone = *c;
	struct edm_result *r = calloc(1, sizeof(*r));
	struct edm_arrival a = {
		.at_ps = EDM_US, .bytes = bytes, .src = 0, .dst = 1, .op = op};
	struct edm_run *run;
	bool done = false;
	int rc;

	if (!r)
		return -ENOMEM;
	/* Two nodes are enough, and their tables are small. */
	lone.nodes = 2;
	lone.pattern = EDM_PATTERN_UNIFORM;
	lone.fail_port = 0;
	rc = edm_run_create(&lone, r, &run);
	if (!rc) {
		run->on_done = lone_done;
		run->owner = &done;
		(void)edm_run_submit(run, &a);
		while (!done && edm_queue_count(run->q))
			edm_run_until(run, edm_queue_next_ps(run->q));
		*out = edm_queue_now(run->q) - a.at_ps;
		edm_run_destroy(run);
		rc = done ? 0 : -EPROTO;
	}
	free(r);
	return rc;
}

static int found_or_made(struct edm_unloaded *u, const struct edm_config *c,
			 enum edm_op op, uint32_t bytes, uint64_t *out)
{
	struct key key = key_of(c, op, bytes);
	uint32_t at = hash_of(&key);

	for (unsigned i = 0; i < PROBES; i++) {
		struct slot *s = &u->slot[(at + i) % SLOTS];
		int rc;

		if (s->ps && !memcmp(&s->key, &key, sizeof(key))) {
			*out = s->ps;
			return 0;
		}
		if (s->ps)
			continue;
		rc = simulate(c, op, bytes, &s->ps);
		if (rc) {
			s->ps = 0;
			return rc;
		}
		s->key = key;
		*out = s->ps;
		return 0;
	}
	return simulate(c, op, bytes, out);
}

int edm_unloaded_ps(struct edm_unloaded *u, const struct edm_config *c,
		    enum edm_op op, uint32_t bytes, uint64_t *out)
{
	int rc;

	if (c->proto == EDM_PROTO_EDM) {
		*out = edm_timing_alone_ps(c, op, bytes);
		return 0;
	}
	pthread_mutex_lock(&u->lock);
	rc = found_or_made(u, c, op, bytes, out);
	pthread_mutex_unlock(&u->lock);
	return rc;
}
