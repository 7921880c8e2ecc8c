/* SPDX-License-Identifier: Apache-2.0 */
/* A switch with ports whose frames are kept, and a clock that a test moves. */
#ifndef AQ_TEST_TOR_RIG_H
#define AQ_TEST_TOR_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "switch/tor_program.h"

enum {
	RIG_PORTS = 8,
	RIG_KEPT = 4096,
};

struct rig_port {
	struct tor_port *port;
	bool full;
	unsigned got; /* frames since the last rig_clear */
	unsigned flushes;
	size_t len[RIG_KEPT];
	uint8_t *frame[RIG_KEPT];
};

struct rig {
	struct env env;
	uint64_t now_ns;
	struct rng rng;
	struct tor *tor;
	struct rig_port ports[RIG_PORTS];
};

static inline uint64_t rig_now(struct env *env)
{
	return container_of(env, struct rig, env)->now_ns;
}

static inline void rig_random(struct env *env, void *buf, size_t len_bytes)
{
	rng_fill(&container_of(env, struct rig, env)->rng, buf, len_bytes);
}

static inline uint8_t *rig_tx_begin(void *ctx, size_t len_bytes)
{
	struct rig_port *p = ctx;

	if (p->full)
		return NULL;
	assert_true(p->got < RIG_KEPT);
	/* Exactly as long, so that ASan guards its end. */
	free(p->frame[p->got]);
	p->frame[p->got] = malloc(len_bytes);
	assert_non_null(p->frame[p->got]);
	return p->frame[p->got];
}

static inline void rig_tx_end(void *ctx, size_t len_bytes)
{
	struct rig_port *p = ctx;

	p->len[p->got++] = len_bytes;
}

static inline bool rig_tx(void *ctx, const uint8_t *frame, size_t len_bytes,
			  const void *hint)
{
	uint8_t *to = rig_tx_begin(ctx, len_bytes);

	if (!to)
		return false;
	memcpy(to, frame, len_bytes);
	rig_tx_end(ctx, len_bytes);
	return true;
}

static inline void rig_flush(void *ctx)
{
	((struct rig_port *)ctx)->flushes++;
}

static const struct tor_port_ops rig_port_ops = {.tx = rig_tx,
						 .tx_begin = rig_tx_begin,
						 .tx_end = rig_tx_end,
						 .flush = rig_flush};
static const struct env_ops rig_env_ops = {.now_ns = rig_now,
					   .random = rig_random};

static inline void rig_add_port(struct rig *r, unsigned i)
{
	char name[8] = {'p', (char)('0' + i)};
	struct tor_port_config cfg = {
		.name = name, .ops = &rig_port_ops, .ctx = &r->ports[i]};

	assert_int_equal(tor_port_add(r->tor, &cfg, &r->ports[i].port), 0);
}

static inline struct rig *rig_create(unsigned ports, uint32_t slot_shift)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct tor_config cfg = {.slot_shift = slot_shift};

	assert_non_null(r);
	r->env.ops = &rig_env_ops;
	r->now_ns = 1000000;
	rng_init(&r->rng, 1);
	cfg.env = &r->env;
	assert_int_equal(tor_create(&cfg, &r->tor), 0);
	for (unsigned i = 0; i < ports; i++)
		rig_add_port(r, i);
	return r;
}

static inline void rig_destroy(struct rig *r)
{
	tor_destroy(r->tor);
	for (unsigned i = 0; i < RIG_PORTS; i++)
		for (unsigned k = 0; k < RIG_KEPT; k++)
			free(r->ports[i].frame[k]);
	free(r);
}

static inline void rig_clear(struct rig *r)
{
	for (unsigned i = 0; i < RIG_PORTS; i++)
		r->ports[i].got = 0;
}

static inline void rig_input(struct rig *r, unsigned port, const void *frame,
			     size_t len_bytes)
{
	uint8_t *exact = malloc(len_bytes ? len_bytes : 1);

	assert_non_null(exact);
	memcpy(exact, frame, len_bytes);
	tor_begin(r->tor);
	tor_input(r->ports[port].port, exact, len_bytes, NULL);
	tor_end(r->tor);
	free(exact);
}

static inline void rig_pass(struct rig *r, uint64_t ns)
{
	r->now_ns += ns;
	tor_tick(r->tor);
}

/* Host n has the MAC 02:00:00:00:00:n and the address 10.0.0.n. */
static inline void rig_addresses(struct wire_pkt *pkt, uint8_t from, uint8_t to)
{
	const uint8_t src[16] = {[10] = 0xff, 0xff, 10, 0, 0, from};
	const uint8_t dst[16] = {[10] = 0xff, 0xff, 10, 0, 0, to};

	memcpy(pkt->src_ip, src, 16);
	memcpy(pkt->dst_ip, dst, 16);
	memset(pkt->src_mac, 0, 6);
	memset(pkt->dst_mac, 0, 6);
	pkt->src_mac[0] = pkt->dst_mac[0] = 2;
	pkt->src_mac[5] = from;
	pkt->dst_mac[5] = to;
	pkt->ttl = 64;
	pkt->src_port = 0xc000;
	pkt->pkey = 0xffff;
}

static inline void rig_send(struct rig *r, unsigned port,
			    const struct wire_pkt *pkt)
{
	uint8_t frame[WIRE_FRAME_MAX];

	rig_input(r, port, frame, wire_build(pkt, frame));
}

/* The i-th frame that left through a port, which must be a whole packet. */
static inline struct wire_pkt rig_got(const struct rig *r, unsigned port,
				      unsigned i)
{
	const struct rig_port *p = &r->ports[port];
	struct wire_pkt pkt;

	assert_true(i < p->got);
	assert_int_equal(wire_parse(p->frame[i], p->len[i], &pkt), WIRE_OK);
	return pkt;
}

/* Each host of 1..n says something, so that all are known. */
static inline void rig_introduce(struct rig *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct wire_pkt pkt = {.opcode = WIRE_RC_ACK};

		rig_addresses(&pkt, (uint8_t)(i + 1), 250);
		rig_send(r, i, &pkt);
	}
	rig_clear(r);
}

#endif
