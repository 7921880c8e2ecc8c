/* SPDX-License-Identifier: Apache-2.0 */
/* Walks from node to node: which packet becomes which. */
#include "cross.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define NAME(name) #name,
	CROSS_COUNTERS(NAME)
#undef NAME
};

static void note(struct cross *c, enum cross_counter which)
{
	c->c[which]++;
}

/* ---- who is where -------------------------------------------------------- */

/* Whether a packet came from that node: its address can be written by anybody,
 * its port cannot. */
static bool is_from(const struct cross *c, const struct tor_pkt *pkt,
		    const struct cross_node *node)
{
	return pkt->in && memcmp(pkt->wire.src_ip, node->ip, 16) == 0 &&
	       tor_port_of(c->tor, node->ip, node->qpn) == pkt->in;
}

static bool is_from_any(const struct cross *c, const struct tor_pkt *pkt)
{
	for (unsigned i = 0; i < CROSS_NODES; i++)
		if (c->nodes[i].used && is_from(c, pkt, &c->nodes[i]))
			return true;
	return false;
}

static bool is_from_space(const struct cross *c, const struct tor_pkt *pkt,
			  const struct cross_space *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->piece[i].node && is_from(c, pkt, s->piece[i].node))
			return true;
	return false;
}

/* The piece where the walk goes on with so large a payload; NULL: that is for
 * its client to find out, as where the node that sent it here is said to have
 * it. */
static const struct cross_piece *next_piece(const struct cross *c,
					    const struct tor_pkt *pkt,
					    const struct cross_space *s,
					    size_t payload_bytes)
{
	const struct wire_walk *w = &pkt->wire.walk;
	const struct cross_piece *p;

	/* With one change more it would look like one that stays. */
	if (!s || w->status != WALK_WIRE_ELSEWHERE || w->left == 0 ||
	    w->hops + 1 >= WALK_WIRE_HOPS_MAX ||
	    tor_now_ns(c->tor) < s->settled_ns)
		return NULL;
	p = &s->piece[(w->at >> s->shift) % s->count];
	return p->node && payload_bytes <= p->node->mtu_bytes &&
			       !is_from(c, pkt, p->node) &&
			       tor_port_of(c->tor, p->node->ip, p->qpn)
		       ? p
		       : NULL;
}

/* ---- what leaves --------------------------------------------------------- */

static uint32_t code_of(const struct cross *c, const struct wire_walk_origin *o)
{
	return (uint32_t)siphash(&c->key, NULL, 0, (const uint8_t *)o,
				 offsetof(struct wire_walk_origin, code));
}

/* `payload` is the origin and the pad. */
static void carry_on(struct cross *c, const struct wire_walk *walk,
		     const struct cross_piece *to, const uint8_t *payload,
		     uint32_t payload_bytes)
{
	struct wire_pkt out = {
		.opcode = WIRE_UD_WALK_ON,
		.ttl = 64,
		.src_port = 0xc0de,
		.pkey = 0xffff,
		.dest_qpn = to->qpn,
		.qkey = to->qkey,
		.src_qpn = CROSS_QPN,
		.walk = *walk,
		.payload = payload,
		.payload_len = payload_bytes,
	};

	memcpy(out.src_ip, to->node->own_ip, 16);
	memcpy(out.dst_ip, to->node->ip, 16);
	out.walk.key = to->rkey;
	out.walk.status = 0;
	out.walk.hops++;
	tor_emit(c->self, NULL, &out);
}

/* As if the first node had answered. */
static void answer(struct cross *c, const struct wire_walk *walk,
		   const struct wire_walk_origin *o, const uint8_t *pad)
{
	uint32_t syndrome_msn = be32_get(o->syndrome_msn);
	struct wire_pkt out = {
		.opcode = WIRE_RC_WALK_ANSWER,
		.ttl = 64,
		.src_port = 0xc0de,
		.pkey = 0xffff,
		.dest_qpn = be32_get(o->dest_qpn),
		.psn = be32_get(o->psn),
		.syndrome = (uint8_t)(syndrome_msn >> 24),
		.msn = syndrome_msn & 0xffffff,
		.walk = *walk,
		.payload = pad,
		.payload_len = walk->pad_bytes,
	};

	memcpy(out.src_ip, o->src_ip, 16);
	memcpy(out.dst_ip, o->dst_ip, 16);
	memcpy(out.src_mac, o->src_mac, 6);
	memcpy(out.dst_mac, o->dst_mac, 6);
	out.walk.key = be32_get(o->space);
	tor_emit(c->self, NULL, &out);
}

/* ---- what comes ---------------------------------------------------------- */

static void make_origin(const struct cross *c, const struct wire_pkt *w,
			struct wire_walk_origin *o)
{
	*o = (struct wire_walk_origin){
		.dest_qpn = be32_put(w->dest_qpn),
		.psn = be32_put(w->psn),
		.syndrome_msn = be32_put((uint32_t)w->syndrome << 24 | w->msn),
		.space = be32_put(w->walk.key),
	};
	memcpy(o->src_ip, w->src_ip, 16);
	memcpy(o->dst_ip, w->dst_ip, 16);
	memcpy(o->src_mac, w->src_mac, 6);
	memcpy(o->dst_mac, w->dst_mac, 6);
	o->code = be32_put(code_of(c, o));
}

/* Of a node to a client: if the walk goes on elsewhere, it does so now. */
static enum tor_verdict on_answer(struct cross *c, const struct tor_pkt *pkt)
{
	const struct wire_pkt *w = &pkt->wire;
	const struct cross_space *s = cross_space_find(c, w->walk.key);
	const struct cross_piece *to;
	struct wire_walk_origin origin;

	if (w->walk.status != WALK_WIRE_ELSEWHERE ||
	    w->walk.hops >= WALK_WIRE_HOPS_MAX)
		return TOR_PASS;
	to = next_piece(c, pkt, s, sizeof(origin) + w->payload_len);
	/* Packets with a code of their own cannot be made here. */
	if (!to || w->has_mac || !is_from_space(c, pkt, s) ||
	    w->payload_len != w->walk.pad_bytes ||
	    w->payload_len > sizeof(c->payload) - sizeof(origin)) {
		note(c, CROSS_C_passed);
		return TOR_PASS;
	}
	make_origin(c, w, &origin);
	memcpy(c->payload, &origin, sizeof(origin));
	memcpy(c->payload + sizeof(origin), w->payload, w->payload_len);
	note(c, CROSS_C_carried);
	carry_on(c, &w->walk, to, c->payload,
		 (uint32_t)sizeof(origin) + w->payload_len);
	return TOR_TAKEN;
}

/* Of a node to us. */
static enum tor_verdict on_back(struct cross *c, const struct tor_pkt *pkt)
{
	const struct wire_pkt *w = &pkt->wire;
	const struct cross_piece *to;
	struct wire_walk_origin origin;

	if (!tor_is_own(c->tor, w->dst_ip) || !is_from_any(c, pkt) ||
	    w->payload_len < sizeof(origin) ||
	    w->payload_len - sizeof(origin) != w->walk.pad_bytes)
		goto forged;
	memcpy(&origin, w->payload, sizeof(origin));
	if (be32_get(origin.code) != code_of(c, &origin))
		goto forged;
	to = next_piece(c, pkt, cross_space_find(c, be32_get(origin.space)),
			w->payload_len);
	if (to) {
		note(c, CROSS_C_onward);
		carry_on(c, &w->walk, to, w->payload, w->payload_len);
	} else {
		note(c, CROSS_C_answered);
		answer(c, &w->walk, &origin, w->payload + sizeof(origin));
	}
	return TOR_TAKEN;

forged:
	note(c, CROSS_C_forged_back);
	return TOR_DROP;
}

static enum tor_verdict cross_packet(void *state, struct tor_pkt *pkt)
{
	struct cross *c = state;

	switch (pkt->wire.opcode) {
	case WIRE_RC_WALK_ANSWER:
		return on_answer(c, pkt);
	case WIRE_UD_WALK_ON:
		note(c, CROSS_C_forged_on);
		return TOR_DROP;
	case WIRE_UD_WALK_BACK:
		return on_back(c, pkt);
	default:
		return TOR_PASS;
	}
}

static bool cross_wants(const void *state, const uint8_t src_ip[16],
			const uint8_t dst_ip[16])
{
	const struct cross *c = state;

	for (unsigned i = 0; i < CROSS_NODES; i++)
		if (c->nodes[i].used &&
		    (memcmp(c->nodes[i].ip, src_ip, 16) == 0 ||
		     memcmp(c->nodes[i].ip, dst_ip, 16) == 0))
			return true;
	return tor_is_own(c->tor, dst_ip);
}

/* ---- life ---------------------------------------------------------------- */

static void cross_release(void *state)
{
	struct cross *c = state;

	for (uint32_t i = 0; c->spaces && i < c->space_count; i++)
		free(c->spaces[i].piece);
	free(c->spaces);
	free(c->by_number);
}

static int cross_init(void *state, struct tor_instance *self,
		      const char *options)
{
	struct cross *c = state;
	uint8_t key[SIPHASH_KEY_BYTES];
	int err = cross_parse(options, &c->space_count);

	if (err)
		return err;
	c->self = self;
	c->tor = tor_instance_tor(self);
	c->c = tor_instance_counters(self);
	env_random(tor_env(c->tor), key, sizeof(key));
	c->key = siphash_key(key);
	c->by_number_mask = u32_pow2_ceil(2 * c->space_count) - 1;
	c->by_number = calloc(c->by_number_mask + 1, sizeof(*c->by_number));
	c->spaces = calloc(c->space_count, sizeof(*c->spaces));
	return c->by_number && c->spaces ? 0 : -ENOMEM;
}

static unsigned cross_tables(const void *state,
			     struct tor_table table[TOR_TABLE_MAX])
{
	const struct cross *c = state;
	unsigned n = 0;

	/* Address and port; our address, and its MTU. */
	table[n++] =
		(struct tor_table){"nodes", CROSS_NODES, 128 + 16, 128 + 13, 1};
	/* Number; count and shift of its stripes. */
	table[n++] = (struct tor_table){"spaces", c->space_count, 32, 7 + 6, 1};
	/* Which nodes have a piece of it. */
	table[n++] = (struct tor_table){"nodes of spaces", c->space_count, 32,
					CROSS_NODES, 1};
	/* Space and number of the piece; node, queue pair, its key, the
	 * region's. As many as spaces of four nodes have. */
	table[n++] = (struct tor_table){"pieces", 4ull * c->space_count, 32 + 6,
					6 + 24 + 32 + 32, 1};
	return n;
}

const struct tor_program tor_walk = {
	.name = "walk",
	.help = "carries walks on from memory node to memory node",
	.counter_names = names,
	.counter_count = CROSS_COUNTER_COUNT,
	.state_bytes = sizeof(struct cross),
	.init = cross_init,
	.release = cross_release,
	.packet = cross_packet,
	.wants = cross_wants,
	.control = cross_control,
	.tables = cross_tables,
};
