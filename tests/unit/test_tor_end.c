/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of the switch: who gets their packets, messages of several packets in
 * both directions, and addresses that hosts can find. */
#include "tor_rig.h"

#include <stdio.h>

#include "base/error.h"
#include "switch/end_rx.h"
#include "switch/end_tx.h"
#include "switch/tor_priv.h"

enum {
	PEER = 1, /* host, at port 0 */
	OTHER = 2,
	OWN = 250,
	OWN_QPN = 0x700,
	PEER_QPN = 0x33,
	MTU = 256,
};

/* An end with both halves, as a program would have it. */
struct both {
	struct tor_end at;
	struct end_tx tx;
	struct end_rx rx;
	uint64_t counters[END_TX_C_dead + 1];
	uint64_t naks;
	unsigned packets;
	/* What was asked, and what came. */
	uint64_t va;
	uint32_t len_bytes, first_psn;
	const uint8_t *payload; /* of WRITEs, 64 bytes; or NULL */
	uint32_t got_bytes;
	uint8_t got[4096];
	unsigned lost;
	/* Messages that were heard. */
	struct end_rx_message message;
	uint8_t heard[4096];
	unsigned whole, wrong;
};

static void set_ip(uint8_t ip[16], uint8_t last)
{
	const uint8_t to[16] = {[10] = 0xff, 0xff, 10, 0, 0, last};

	memcpy(ip, to, 16);
}

static bool describe(struct end_tx *e, uint32_t psn, struct wire_pkt *w)
{
	const struct both *b = container_of(e, struct both, tx);
	uint32_t at = (uint32_t)wire_psn_diff(psn, b->first_psn) * MTU;

	w->rkey = 5;
	w->va = b->va + at;
	w->dma_len = b->len_bytes - at;
	w->payload = b->payload;
	w->payload_len = b->payload ? 64 : 0;
	return true;
}

static void executed(struct end_tx *e, uint32_t psn, const struct wire_pkt *w)
{
	struct both *b = container_of(e, struct both, tx);

	if (!w)
		return;
	memcpy(b->got + b->got_bytes, w->payload, w->payload_len);
	b->got_bytes += w->payload_len;
}

static void lost(struct end_tx *e)
{
	container_of(e, struct both, tx)->lost++;
}

static bool push(struct end_tx *e)
{
	return false;
}

static void hear(struct both *b, const struct wire_pkt *w)
{
	int step = end_rx_step(&b->rx, w->psn);
	enum end_rx_part part;

	end_rx_hear(&b->rx, w, PEER_QPN);
	if (step > 0)
		end_rx_gap(&b->rx);
	if (step)
		return;
	b->message.bytes = b->heard;
	part = end_rx_part(&b->message, w, MTU, sizeof(b->heard));
	b->wrong += part == END_RX_WRONG;
	b->whole += part == END_RX_WHOLE;
	end_rx_take(&b->rx, 1, part == END_RX_WHOLE);
	if (part == END_RX_WHOLE)
		end_rx_ack(&b->rx, w->psn, b->rx.next_msn, WIRE_ACK_UNLIMITED);
}

static void on_packet(struct tor_end *at, const struct wire_pkt *w)
{
	struct both *b = container_of(at, struct both, at);

	b->packets++;
	if (wire_opcodes[w->opcode].flags & WIRE_OP_RESPONSE)
		end_tx_reply(&b->tx, w);
	else
		hear(b, w);
}

static void make_end(struct rig *r, unsigned program, struct both *b)
{
	static const struct end_tx_ops ops = {.describe = describe,
					      .executed = executed,
					      .lost = lost,
					      .push = push};

	*b = (struct both){
		.at = {.self = &r->tor->programs[program],
		       .own_qpn = OWN_QPN,
		       .peer_qpn = PEER_QPN,
		       .packet = on_packet},
		.tx = {.header = {.ttl = 64, .pkey = 0xffff},
		       .qpn = PEER_QPN,
		       .una_psn = 0xfffffe,
		       .rto_ns = END_TX_RTO_NS},
		.rx = {.self = &r->tor->programs[program], .next_psn = 10},
	};
	b->rx.naks = &b->naks;
	set_ip(b->at.own_ip, OWN);
	set_ip(b->at.peer_ip, PEER);
	memcpy(b->tx.header.src_ip, b->at.own_ip, 16);
	memcpy(b->tx.header.dst_ip, b->at.peer_ip, 16);
	end_tx_init(&b->tx, b->at.self, &ops, b->counters);
	assert_int_equal(tor_end_add(&b->at), 0);
}

static struct rig *make(struct both *b, const char *first, const char *second)
{
	struct rig *r = rig_create(3, 24);

	rig_introduce(r, 3);
	assert_int_equal(tor_program_add_text(r->tor, first), 0);
	assert_int_equal(tor_program_add_text(r->tor, second), 0);
	make_end(r, 1, b);
	return r;
}

static void destroy(struct rig *r, struct both *b)
{
	tor_end_remove(&b->at);
	end_tx_stop(&b->tx);
	rig_destroy(r);
}

static struct wire_pkt from_peer(uint8_t opcode, uint32_t psn)
{
	struct wire_pkt w = {.opcode = opcode,
			     .psn = psn,
			     .dest_qpn = OWN_QPN,
			     .syndrome = WIRE_ACK_UNLIMITED,
			     .rkey = 7,
			     .va = 0x1000};

	rig_addresses(&w, PEER, OWN);
	return w;
}

static void fill(uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
}

/* ---- who gets packets -----------------------------------------------------
 */

/* What the end sends leaves by the peer's port. */
static void end_asks(struct rig *r, struct both *b)
{
	b->va = 0x9000;
	b->len_bytes = 8;
	b->first_psn = b->tx.next_psn;
	tor_begin(r->tor);
	end_tx_send(&b->tx, WIRE_RC_READ_REQ, 8);
	tor_end(r->tor);
	assert_int_equal(r->ports[0].got, 1);
}

/* Swordbox that is not ready drops everything that it sees. */
static void programs_see_no_packets_of_ends(void **state)
{
	struct both b;
	struct rig *r = make(&b, "swordbox", "swordbox");
	struct wire_pkt w = from_peer(WIRE_RC_ACK, 1);

	rig_send(r, 0, &w);
	assert_int_equal(b.packets, 1);
	end_asks(r, &b);
	assert_int_equal(rig_got(r, 0, 0).va, 0x9000);
	/* Others of the same network are dropped by it as ever. */
	rig_addresses(&w, PEER, OTHER);
	rig_send(r, 0, &w);
	assert_int_equal(r->ports[1].got, 0);
	destroy(r, &b);
}

static void faults_in_front_of_the_owner_see_them(void **state)
{
	struct both b;
	struct rig *r = make(&b, "fault:pattern=x", "swordbox:open");
	struct wire_pkt w = from_peer(WIRE_RC_ACK, 1);

	rig_send(r, 0, &w);
	assert_int_equal(b.packets, 0);
	destroy(r, &b);
	r = make(&b, "fault:pattern=2", "swordbox:open");
	rig_send(r, 0, &w);
	assert_int_equal(b.packets, 2);
	destroy(r, &b);
}

static void only_the_peer_reaches_an_end(void **state)
{
	struct both b, c;
	struct rig *r = make(&b, "swordbox:open", "swordbox:open");
	struct wire_pkt w = from_peer(WIRE_RC_ACK, 1);

	w.src_ip[15] = OTHER;
	rig_send(r, 1, &w);
	w = from_peer(WIRE_RC_ACK, 1);
	w.dest_qpn++;
	rig_send(r, 0, &w);
	assert_int_equal(b.packets, 0);
	assert_int_equal(tor_counter(r->tor, TOR_C_own_late), 2);
	/* A number is had once towards a peer, and again towards another. */
	c = b;
	c.at.is_added = false;
	assert_int_equal(tor_end_add(&c.at), -EEXIST);
	c.at.peer_ip[15] = OTHER;
	assert_int_equal(tor_end_add(&c.at), 0);
	tor_end_remove(&c.at);
	tor_end_remove(&c.at);
	destroy(r, &b);
}

/* What the peer is said to have sent, from port `from`, does (not) arrive. */
static void hears_from(struct rig *r, struct both *b, unsigned from,
		       bool arrives)
{
	struct wire_pkt w = from_peer(WIRE_RC_ACK, 1);
	uint64_t forged = tor_counter(r->tor, TOR_C_forged);
	unsigned packets = b->packets;

	rig_send(r, from, &w);
	assert_int_equal(b->packets, packets + arrives);
	assert_int_equal(tor_counter(r->tor, TOR_C_forged), forged + !arrives);
}

/* Anybody can write the peer's address. */
static void another_port_does_not_speak_for_the_peer(void **state)
{
	struct both b;
	struct rig *r = make(&b, "swordbox:open", "swordbox:open");

	hears_from(r, &b, 0, true);
	/* Nor if it talks so much that the address is learned there. */
	hears_from(r, &b, 1, false);
	hears_from(r, &b, 1, false);
	hears_from(r, &b, 0, true);
	/* Where its port went away, the peer may come back by another one. */
	tor_port_remove(r->ports[0].port);
	hears_from(r, &b, 2, true);
	hears_from(r, &b, 1, false);
	destroy(r, &b);
}

/* Of several NICs with one address, the number says which one it is. */
static void nor_does_its_neighbour_of_the_same_address(void **state)
{
	struct both b;
	struct rig *r = rig_create(3, 8);
	uint8_t ip[16];

	set_ip(ip, PEER);
	assert_int_equal(tor_port_claim(r->ports[0].port, ip, PEER_QPN >> 8),
			 0);
	assert_int_equal(
		tor_port_claim(r->ports[1].port, ip, (PEER_QPN >> 8) + 1), 0);
	assert_int_equal(tor_program_add(r->tor, "swordbox", "open"), 0);
	make_end(r, 0, &b);
	hears_from(r, &b, 0, true);
	hears_from(r, &b, 1, false);
	hears_from(r, &b, 2, false);
	/* The one is unplugged: the other one is no more it than before. */
	tor_port_remove(r->ports[0].port);
	hears_from(r, &b, 1, false);
	destroy(r, &b);
}

/* A host that says that it is the switch could write where an end may. */
static void nobody_speaks_for_the_end(void **state)
{
	struct both b;
	struct rig *r = make(&b, "walk", "swordbox:open");
	struct wire_pkt w = {.opcode = WIRE_RC_WRITE_ONLY,
			     .dest_qpn = PEER_QPN,
			     .ack_req = true};
	uint8_t frame[WIRE_FRAME_MAX];
	size_t len;

	rig_addresses(&w, OWN, PEER);
	for (unsigned i = 0; i < 3; i++)
		rig_send(r, 1, &w);
	/* Another protocol's packet, and one whose ICRC is wrong. */
	len = wire_build(&w, frame);
	frame[len - 1] ^= 1;
	rig_input(r, 1, frame, len);
	frame[WIRE_ETH_BYTES + 9] = 6;
	rig_input(r, 1, frame, len);
	assert_int_equal(r->ports[0].got, 0);
	assert_int_equal(tor_counter(r->tor, TOR_C_forged), 5);
	/* The end itself does. */
	end_asks(r, &b);
	destroy(r, &b);
}

/* ---- READs of several packets ---------------------------------------------
 */

static void answer(struct rig *r, const struct both *b, uint32_t i,
		   uint8_t opcode, const uint8_t *bytes)
{
	struct wire_pkt w = from_peer(opcode, wire_psn_add(b->first_psn, i));

	w.payload = bytes + i * MTU;
	w.payload_len = u32_min(MTU, b->len_bytes - i * MTU);
	rig_send(r, 0, &w);
}

static void ask(struct rig *r, struct both *b, uint32_t len_bytes)
{
	b->va = 0x10000;
	b->len_bytes = len_bytes;
	b->first_psn = b->tx.next_psn;
	tor_begin(r->tor);
	end_tx_read(&b->tx, len_bytes, MTU);
	tor_end(r->tor);
}

static void a_read_has_as_many_answers_as_the_path_wants(void **state)
{
	uint8_t bytes[1000];
	struct both b;
	struct rig *r = make(&b, "swordbox", "swordbox");

	fill(bytes, sizeof(bytes));
	ask(r, &b, sizeof(bytes));
	assert_int_equal(r->ports[0].got, 1);
	assert_int_equal(rig_got(r, 0, 0).dma_len, 1000);
	assert_int_equal(b.tx.answers, 1);
	assert_int_equal(end_tx_room(&b.tx), END_TX_WINDOW - 4);
	answer(r, &b, 0, WIRE_RC_READ_RESP_FIRST, bytes);
	answer(r, &b, 1, WIRE_RC_READ_RESP_MIDDLE, bytes);
	answer(r, &b, 2, WIRE_RC_READ_RESP_MIDDLE, bytes);
	assert_int_equal(b.tx.answers, 1);
	answer(r, &b, 3, WIRE_RC_READ_RESP_LAST, bytes);
	assert_int_equal(b.tx.answers, 0);
	assert_int_equal(b.got_bytes, 1000);
	assert_memory_equal(b.got, bytes, 1000);
	destroy(r, &b);
}

/* The second packet is lost: what is missing is asked for, and no more. */
static void a_read_goes_on_where_it_broke(void **state)
{
	uint8_t bytes[1000];
	struct both b;
	struct rig *r = make(&b, "swordbox", "swordbox");
	struct wire_pkt w;

	fill(bytes, sizeof(bytes));
	ask(r, &b, sizeof(bytes));
	answer(r, &b, 0, WIRE_RC_READ_RESP_FIRST, bytes);
	rig_clear(r);
	answer(r, &b, 2, WIRE_RC_READ_RESP_MIDDLE, bytes);
	assert_int_equal(r->ports[0].got, 1);
	w = rig_got(r, 0, 0);
	assert_int_equal(w.psn, wire_psn_add(b.first_psn, 1));
	assert_int_equal(w.va, 0x10000 + MTU);
	assert_int_equal(w.dma_len, 1000 - MTU);
	answer(r, &b, 1, WIRE_RC_READ_RESP_FIRST, bytes);
	answer(r, &b, 2, WIRE_RC_READ_RESP_MIDDLE, bytes);
	/* The rest is lost, too; and then comes the timer. */
	rig_clear(r);
	rig_pass(r, 4 * END_TX_RTO_NS);
	w = rig_got(r, 0, 0);
	assert_int_equal(w.va, 0x10000 + 3 * MTU);
	assert_int_equal(w.dma_len, 1000 - 3 * MTU);
	answer(r, &b, 3, WIRE_RC_READ_RESP_ONLY, bytes);
	assert_memory_equal(b.got, bytes, 1000);
	assert_int_equal(b.tx.una_psn, b.tx.next_psn);
	destroy(r, &b);
}

static void answers_of_another_length_are_none(void **state)
{
	uint8_t bytes[1000];
	struct both b;
	struct rig *r = make(&b, "swordbox", "swordbox");
	struct wire_pkt w;

	fill(bytes, sizeof(bytes));
	ask(r, &b, 1000);
	w = from_peer(WIRE_RC_READ_RESP_FIRST, b.first_psn);
	w.payload = bytes;
	w.payload_len = 64;
	rig_send(r, 0, &w);
	w = from_peer(WIRE_RC_ATOMIC_ACK, b.first_psn);
	rig_send(r, 0, &w);
	assert_int_equal(b.got_bytes, 0);
	assert_int_equal(b.tx.una_psn, b.first_psn);
	destroy(r, &b);
}

/* ---- frames of which the beginning is known -------------------------------
 */

/* The i-th frame of a port is what wire_build makes of the packet in it. */
static struct wire_pkt got_as_built(const struct rig *r, unsigned port,
				    unsigned i)
{
	struct wire_pkt w = rig_got(r, port, i);
	uint8_t again[WIRE_FRAME_MAX];

	assert_int_equal(wire_build(&w, again), r->ports[port].len[i]);
	assert_memory_equal(again, r->ports[port].frame[i],
			    r->ports[port].len[i]);
	return w;
}

static void send_one(struct rig *r, struct both *b, uint64_t va,
		     const uint8_t *payload)
{
	b->va = va;
	b->payload = payload;
	b->len_bytes = 64;
	b->first_psn = b->tx.next_psn;
	tor_begin(r->tor);
	end_tx_send(&b->tx, payload ? WIRE_RC_WRITE_ONLY : WIRE_RC_READ_REQ,
		    64);
	tor_end(r->tor);
}

static unsigned stamps_made(const struct rig *r, unsigned port)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WIRE_STAMP_COUNT; i++)
		n += r->ports[port].port->stamps.tx[i].key != 0;
	return n;
}

static void what_an_end_sends_often_is_as_it_was(void **state)
{
	uint8_t bytes[64];
	struct both b;
	struct rig *r = make(&b, "swordbox", "swordbox");
	uint64_t sent = tor_port_counter(r->ports[0].port, TOR_P_tx_frames);

	for (unsigned i = 0; i < 40; i++) {
		struct wire_pkt w;

		for (unsigned k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)(k * i);
		send_one(r, &b, 0x1000 + i, i % 2 ? bytes : NULL);
		w = got_as_built(r, 0, i);
		assert_int_equal(w.va, 0x1000 + i);
		assert_int_equal(w.rkey, 5);
		assert_int_equal(w.dma_len, 64);
		assert_int_equal(w.psn, b.first_psn);
		assert_int_equal(w.dest_qpn, PEER_QPN);
		assert_true(w.ack_req);
		assert_int_equal(w.payload_len, i % 2 ? 64 : 0);
		if (i % 2)
			assert_memory_equal(w.payload, bytes, 64);
	}
	assert_int_equal(stamps_made(r, 0), 2);
	assert_int_equal(tor_counter(r->tor, TOR_C_rewritten), 40);
	assert_int_equal(tor_port_counter(r->ports[0].port, TOR_P_tx_frames),
			 sent + 40);
	/* There is no room, or the port is down. */
	r->ports[0].full = true;
	send_one(r, &b, 0, NULL);
	assert_int_equal(tor_port_counter(r->ports[0].port, TOR_P_tx_full), 1);
	r->ports[0].full = false;
	tor_port_set_up(r->ports[0].port, false);
	send_one(r, &b, 0, NULL);
	assert_int_equal(tor_port_counter(r->ports[0].port, TOR_P_tx_down), 1);
	assert_int_equal(r->ports[0].got, 40);
	destroy(r, &b);
}

/* Its address is heard by another port: what is sent leaves there. */
static void an_end_follows_its_peer(void **state)
{
	struct both b;
	struct rig *r = make(&b, "swordbox:open", "swordbox:open");
	struct wire_pkt w = {.opcode = WIRE_RC_ACK};

	for (unsigned i = 0; i < 4; i++)
		send_one(r, &b, i, NULL);
	assert_int_equal(r->ports[0].got, 4);
	rig_addresses(&w, PEER, OTHER);
	rig_send(r, 2, &w);
	for (unsigned i = 0; i < 4; i++)
		send_one(r, &b, i, NULL);
	assert_int_equal(r->ports[0].got, 4);
	assert_int_equal(r->ports[2].got, 4);
	tor_port_remove(r->ports[2].port);
	send_one(r, &b, 7, NULL);
	/* Nobody knows where: it is sent to all that are left. */
	assert_int_equal(got_as_built(r, 0, 4).va, 7);
	destroy(r, &b);
}

static size_t answer_frame(const struct both *b, const uint8_t *bytes,
			   uint8_t *frame)
{
	struct wire_pkt w = from_peer(WIRE_RC_READ_RESP_ONLY, b->first_psn);

	w.payload = bytes;
	w.payload_len = 64;
	return wire_build(&w, frame);
}

/* One bit of an answer is wrong: it has no effect, or it is one that the ICRC
 * leaves out and that says nothing. */
static void flip(struct rig *r, struct both *b, const uint8_t *bytes,
		 size_t bit)
{
	uint8_t frame[WIRE_FRAME_MAX];
	size_t n;

	send_one(r, b, 0x1000, NULL);
	n = answer_frame(b, bytes, frame);
	assert_true(bit / 8 < n);
	frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
	b->got_bytes = 0;
	rig_input(r, 0, frame, n);
	if (b->got_bytes == 0) {
		n = answer_frame(b, bytes, frame);
		rig_input(r, 0, frame, n);
	}
	assert_int_equal(b->got_bytes, 64);
	assert_memory_equal(b->got, bytes, 64);
	assert_int_equal(b->tx.una_psn, b->tx.next_psn);
}

static void answers_of_a_known_kind_are_checked_as_ever(void **state)
{
	uint8_t bytes[64], frame[WIRE_FRAME_MAX];
	struct both b;
	struct rig *r = make(&b, "swordbox", "swordbox");
	uint64_t forged, roce;
	size_t n;

	fill(bytes, sizeof(bytes));
	for (unsigned i = 0; i < 4; i++) {
		b.got_bytes = 0;
		send_one(r, &b, 0x1000, NULL);
		n = answer_frame(&b, bytes, frame);
		rig_input(r, 0, frame, n);
		assert_int_equal(b.got_bytes, 64);
	}
	for (size_t bit = 0; bit < n * 8; bit++)
		flip(r, &b, bytes, bit);
	/* From another port, and for an end that is gone. */
	send_one(r, &b, 0x1000, NULL);
	n = answer_frame(&b, bytes, frame);
	b.got_bytes = 0;
	forged = tor_counter(r->tor, TOR_C_forged);
	for (unsigned i = 0; i < 4; i++)
		rig_input(r, 1, frame, n);
	assert_int_equal(tor_counter(r->tor, TOR_C_forged), forged + 4);
	assert_int_equal(b.got_bytes, 0);
	roce = tor_port_counter(r->ports[0].port, TOR_P_rx_roce);
	rig_input(r, 0, frame, n);
	assert_int_equal(b.got_bytes, 64);
	assert_int_equal(tor_port_counter(r->ports[0].port, TOR_P_rx_roce),
			 roce + 1);
	tor_end_remove(&b.at);
	rig_input(r, 0, frame, n);
	assert_int_equal(b.got_bytes, 64);
	destroy(r, &b);
}

/* ---- messages that are heard ----------------------------------------------
 */

static void part(struct rig *r, uint8_t opcode, uint32_t psn,
		 const uint8_t *bytes, uint32_t len_bytes, uint32_t of)
{
	struct wire_pkt w = from_peer(opcode, psn);

	w.payload = bytes;
	w.payload_len = len_bytes;
	w.dma_len = of;
	rig_send(r, 0, &w);
}

static void messages_are_put_together(void **state)
{
	uint8_t bytes[600];
	struct both b;
	struct rig *r = make(&b, "swordbox", "swordbox");
	struct wire_pkt w;

	fill(bytes, sizeof(bytes));
	part(r, WIRE_RC_WRITE_FIRST, 10, bytes, MTU, 600);
	part(r, WIRE_RC_WRITE_MIDDLE, 11, bytes + MTU, MTU, 0);
	assert_int_equal(r->ports[0].got, 0);
	part(r, WIRE_RC_WRITE_LAST, 12, bytes + 2 * MTU, 600 - 2 * MTU, 0);
	assert_int_equal(b.whole, 1);
	assert_memory_equal(b.heard, bytes, 600);
	assert_int_equal(b.message.va, 0x1000);
	w = rig_got(r, 0, 0);
	assert_int_equal(w.psn, 12);
	assert_int_equal(w.msn, 1);
	assert_int_equal(w.dest_qpn, PEER_QPN);
	part(r, WIRE_RC_SEND_ONLY, 13, bytes, 40, 0);
	assert_int_equal(b.whole, 2);
	assert_int_equal(b.message.got_bytes, 40);
	/* One that is missing is asked for once. */
	part(r, WIRE_RC_SEND_ONLY, 15, bytes, 40, 0);
	part(r, WIRE_RC_SEND_ONLY, 16, bytes, 40, 0);
	assert_int_equal(b.naks, 1);
	assert_int_equal(rig_got(r, 0, 2).psn, 14);
	destroy(r, &b);
}

static void parts_that_fit_nothing_are_wrong(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t len_bytes, of;
	} bad[] = {
		{WIRE_RC_WRITE_MIDDLE, MTU, 0}, {WIRE_RC_WRITE_LAST, 8, 0},
		{WIRE_RC_SEND_LAST, 8, 0},	{WIRE_RC_WRITE_FIRST, 8, 600},
		{WIRE_RC_WRITE_ONLY, 8, 600},	{WIRE_RC_WRITE_ONLY, 0, 600},
		{WIRE_RC_SEND_ONLY_IMM, 8, 0},	{WIRE_RC_SEND_ONLY_INV, 8, 0},
		{WIRE_RC_READ_REQ, 0, 8},	{WIRE_RC_CAS, 0, 0},
	};
	static const uint8_t bytes[MTU + 4];

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		struct both b;
		struct rig *r = make(&b, "swordbox", "swordbox");

		part(r, bad[i].opcode, 10, bytes, bad[i].len_bytes, bad[i].of);
		if (b.wrong != 1 || b.whole)
			fail_msg("row %u", i);
		destroy(r, &b);
	}
}

/* ---- addresses ------------------------------------------------------------
 */

static struct rig *make_address(const char *program, const uint8_t ip[16])
{
	struct rig *r = rig_create(3, 24);

	assert_int_equal(tor_address_set(r->tor, ip), 0);
	if (program)
		assert_int_equal(tor_program_add_text(r->tor, program), 0);
	return r;
}

static void arp_finds_the_switch(void **state)
{
	static const uint8_t own[16] = {[10] = 0xff, 0xff, 10, 0, 0, OWN};
	static const uint8_t own_mac[6] = {2, 0xa9, 10, 0, 0, OWN};
	uint8_t ask4[42] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,  0, 0,  0, 0,
			    1,	  8,	6,    0,    1,	  8,	0,  6, 4,  0, 1,
			    2,	  0,	0,    0,    0,	  1,	10, 0, 0,  1, 0,
			    0,	  0,	0,    0,    0,	  10,	0,  0, OWN};
	struct rig *r = make_address(NULL, own);
	const uint8_t *f;

	rig_input(r, 0, ask4, sizeof(ask4));
	assert_int_equal(r->ports[0].got, 1);
	assert_int_equal(r->ports[1].got, 0);
	f = r->ports[0].frame[0];
	assert_int_equal(r->ports[0].len[0], sizeof(ask4));
	assert_memory_equal(f, ask4 + 6, 6);
	assert_memory_equal(f + 6, own_mac, 6);
	assert_int_equal(f[21], 2);
	assert_memory_equal(f + 22, own_mac, 6);
	assert_memory_equal(f + 28, ask4 + 38, 4);
	assert_memory_equal(f + 32, ask4 + 22, 10);
	/* Another's address, an answer, and a frame that is cut: forwarded. */
	ask4[41]++;
	rig_input(r, 0, ask4, sizeof(ask4));
	ask4[41]--;
	ask4[21] = 2;
	rig_input(r, 0, ask4, sizeof(ask4));
	rig_input(r, 0, ask4, sizeof(ask4) - 1);
	assert_int_equal(r->ports[0].got, 1);
	assert_int_equal(r->ports[1].got, 3);
	rig_destroy(r);
}

static void neighbours_find_the_switch(void **state)
{
	static const uint8_t own[16] = {0xfd, 0, [15] = OWN};
	/* From fd00::1 to the group of fd00::fa; made by hand. */
	uint8_t ask6[14 + 40 + 32] = {0x33, 0x33, 0xff, 0, 0,	 OWN,  2,   0,
				      0,    0,	  0,	1, 0x86, 0xdd, 0x60};
	uint8_t *ip = ask6 + 14, *msg = ip + 40;
	struct rig *r = make_address("swordbox:open", own);
	const uint8_t *f;
	uint64_t sum = 58 + 32;

	ip[5] = 32;
	ip[6] = 58;
	ip[7] = 255;
	ip[8] = 0xfd;
	ip[23] = 1;
	ip[24] = 0xff;
	ip[25] = 2;
	ip[35] = 1;
	ip[36] = 0xff;
	ip[39] = OWN;
	msg[0] = 135;
	memcpy(msg + 8, own, 16);
	msg[24] = 1;
	msg[25] = 1;
	memcpy(msg + 26, ask6 + 6, 6);
	for (unsigned i = 0; i < 64; i += 2)
		sum += (unsigned)ip[8 + i] << 8 | ip[9 + i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	msg[2] = (uint8_t)(sum >> 8);
	msg[3] = (uint8_t)sum;
	rig_input(r, 0, ask6, sizeof(ask6));
	assert_int_equal(r->ports[0].got, 1);
	f = r->ports[0].frame[0];
	assert_int_equal(f[54], 136);
	assert_memory_equal(f + 22, own, 16);
	assert_memory_equal(f + 38, ip + 8, 16);
	assert_memory_equal(f + 62, own, 16);
	assert_int_equal(f[58], 0x60);
	/* Its checksum is right. */
	sum = 58 + 32;
	for (unsigned i = 0; i < 64; i += 2)
		sum += (unsigned)f[22 + i] << 8 | f[23 + i];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	assert_int_equal(sum, 0xffff);
	/* A wrong checksum, or a router between: no answer. */
	msg[3] ^= 1;
	rig_input(r, 0, ask6, sizeof(ask6));
	msg[3] ^= 1;
	ip[7] = 254;
	rig_input(r, 0, ask6, sizeof(ask6));
	assert_int_equal(r->ports[0].got, 1);
	rig_destroy(r);
}

/* What an end sends has Ethernet addresses that a host's NIC takes. */
static void frames_of_ends_have_ethernet_addresses(void **state)
{
	static const uint8_t own[16] = {[10] = 0xff, 0xff, 10, 0, 0, OWN};
	static const uint8_t own_mac[6] = {2, 0xa9, 10, 0, 0, OWN};
	static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, PEER};
	struct both b;
	struct rig *r = make_address("swordbox:open", own);

	rig_introduce(r, 3);
	make_end(r, 0, &b);
	ask(r, &b, 8);
	assert_memory_equal(rig_got(r, 0, 0).src_mac, own_mac, 6);
	assert_memory_equal(rig_got(r, 0, 0).dst_mac, peer_mac, 6);
	destroy(r, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_see_no_packets_of_ends),
		cmocka_unit_test(faults_in_front_of_the_owner_see_them),
		cmocka_unit_test(only_the_peer_reaches_an_end),
		cmocka_unit_test(another_port_does_not_speak_for_the_peer),
		cmocka_unit_test(nor_does_its_neighbour_of_the_same_address),
		cmocka_unit_test(nobody_speaks_for_the_end),
		cmocka_unit_test(a_read_has_as_many_answers_as_the_path_wants),
		cmocka_unit_test(a_read_goes_on_where_it_broke),
		cmocka_unit_test(answers_of_another_length_are_none),
		cmocka_unit_test(what_an_end_sends_often_is_as_it_was),
		cmocka_unit_test(an_end_follows_its_peer),
		cmocka_unit_test(answers_of_a_known_kind_are_checked_as_ever),
		cmocka_unit_test(messages_are_put_together),
		cmocka_unit_test(parts_that_fit_nothing_are_wrong),
		cmocka_unit_test(arp_finds_the_switch),
		cmocka_unit_test(neighbours_find_the_switch),
		cmocka_unit_test(frames_of_ends_have_ethernet_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
