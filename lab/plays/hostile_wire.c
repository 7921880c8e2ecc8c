/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of the hostile tenant: forged in the name of others, with the numbers
 * and keys of their connections, and recorded ones sent again. All leave by its
 * own port.
 */
#include <string.h>

#include "client/verbs_api.h"
#include "hostile_play_priv.h"

enum {
	FORGED_BYTES = 16,
	SOURCE_PORT = 0xc000,
	HOPS = 64,
};

static const uint8_t *ip_of(const struct rig_host *h)
{
	return sim_port_addr(sim_host_port(h->sim_host))->ip;
}

static void emit(struct hp_foe *f, const uint8_t *bytes, size_t len_bytes)
{
	struct sim_port *port = sim_host_port(f->host->sim_host);
	struct sim_frame *frame = sim_port_tx_begin(port, len_bytes);

	if (!frame)
		return;
	memcpy(frame->bytes, bytes, len_bytes);
	sim_port_tx_end(port, frame, len_bytes, 0);
}

static void build(struct hp_foe *f, struct wire_pkt *pkt,
		  const struct rig_host *from, const struct rig_host *to)
{
	static const uint8_t payload[FORGED_BYTES] = "forged.";
	uint8_t frame[WIRE_FRAME_MAX];

	memcpy(pkt->src_ip, ip_of(from), sizeof(pkt->src_ip));
	memcpy(pkt->dst_ip, ip_of(to), sizeof(pkt->dst_ip));
	pkt->ttl = HOPS;
	pkt->src_port = SOURCE_PORT;
	pkt->pkey = 0xffff;
	if (wire_opcodes[pkt->opcode].flags & WIRE_OP_PAYLOAD) {
		pkt->payload = payload;
		pkt->payload_len = sizeof(payload);
	}
	f->p->n->forged++;
	emit(f, frame, wire_build(pkt, frame));
}

/* ---- in somebody's name ------------------------------------------------- */

static uint32_t psn_of(struct ibv_qp *qp, bool is_sender)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {0};

	if (ibv_query_qp(qp, &attr, IBV_QP_RQ_PSN | IBV_QP_SQ_PSN, &init))
		return 0;
	return is_sender ? attr.sq_psn : attr.rq_psn;
}

/* Mostly the right one. */
static uint32_t some_psn(struct hp_foe *f, uint32_t right)
{
	switch (sim_rand_below(&f->rand, 6)) {
	case 0:
		return (uint32_t)rng_u64(&f->rand) & WIRE_PSN_MASK;
	case 1:
		return wire_psn_add(right, sim_rand_below(&f->rand, 4));
	case 2:
		return wire_psn_add(right, WIRE_PSN_MASK -
						   sim_rand_below(&f->rand, 4));
	default:
		return right;
	}
}

/* A request to the node, as if the tenant had sent it. */
static void forge_request(struct hp_foe *f, const struct hp_client *c)
{
	static const uint8_t opcodes[] = {
		WIRE_RC_WRITE_ONLY, WIRE_RC_READ_REQ,	   WIRE_RC_CAS,
		WIRE_RC_SEND_ONLY,  WIRE_RC_SEND_ONLY_IMM, WIRE_RC_WRITE_LAST,
		WIRE_RC_SEND_FIRST};
	unsigned page = sim_rand_below(&f->rand, PAGE_CHAIN_COUNT);
	struct ibv_qp *qp = c->conn.far_qp;
	struct wire_pkt pkt = {
		.opcode = opcodes[sim_rand_below(&f->rand, ARRAY_LEN(opcodes))],
		.va = (uintptr_t)c->tenant.mem,
		.rkey = sim_rand_below(&f->rand, 4)
				? c->tenant.mr->rkey
				: (uint32_t)rng_u64(&f->rand),
		.dma_len = FORGED_BYTES,
		.ack_req = true};

	if (c->page[page].far_qp && sim_rand_below(&f->rand, 2))
		qp = c->page[page].far_qp;
	pkt.dest_qpn = qp->qp_num;
	pkt.psn = some_psn(f, psn_of(qp, false));
	pkt.atomic.swap_add = rng_u64(&f->rand);
	build(f, &pkt, sim_rand_below(&f->rand, 8) ? c->host : f->host,
	      f->p->node);
}

/* An answer to the tenant, as if the node had sent it. */
static void forge_answer(struct hp_foe *f, const struct hp_client *c)
{
	static const uint8_t syndromes[] = {WIRE_ACK_UNLIMITED, WIRE_NAK_PSN,
					    WIRE_NAK_ACCESS, WIRE_NAK_OP,
					    WIRE_RNR_NAK};
	static const uint8_t opcodes[] = {WIRE_RC_ACK, WIRE_RC_ACK,
					  WIRE_RC_READ_RESP_ONLY,
					  WIRE_RC_ATOMIC_ACK};
	struct ibv_qp *qp = sim_rand_below(&f->rand, 2) ? c->conn.near_qp
							: c->page[0].near_qp;
	struct wire_pkt pkt = {
		.opcode = opcodes[sim_rand_below(&f->rand, ARRAY_LEN(opcodes))],
		.syndrome = syndromes[sim_rand_below(&f->rand,
						     ARRAY_LEN(syndromes))],
		.dest_qpn = qp->qp_num};

	/* The number of the last request is one before the next. */
	pkt.psn = some_psn(f, wire_psn_add(psn_of(qp, true), WIRE_PSN_MASK));
	build(f, &pkt, sim_rand_below(&f->rand, 8) ? f->p->node : f->host,
	      c->host);
}

void hp_wire_forge(struct hp_foe *f)
{
	const struct hp_client *c =
		&f->p->client[sim_rand_below(&f->rand, HP_HONEST)];

	if (sim_rand_below(&f->rand, 2))
		forge_request(f, c);
	else
		forge_answer(f, c);
}

/* All numbers that a queue pair of the node may have, with the packet number
 * of one that has never got a packet, in the name of the node itself: queue
 * pairs inside it are connected to each other. */
void hp_wire_sweep(struct hp_foe *f)
{
	uint32_t slot =
		f->p->client[0].conn.far_qp->qp_num >> NIC_QPN_INDEX_BITS;

	/* Once is enough. */
	if (f->p->n->sweeps)
		return;
	f->p->n->sweeps++;
	for (uint32_t i = 0; i < 1u << NIC_QPN_INDEX_BITS; i++) {
		struct wire_pkt pkt = {.opcode = WIRE_RC_WRITE_ONLY,
				       .dest_qpn =
					       slot << NIC_QPN_INDEX_BITS | i,
				       .rkey = (uint32_t)rng_u64(&f->rand),
				       .dma_len = FORGED_BYTES};

		build(f, &pkt, f->p->node, f->p->node);
	}
}

/* ---- again -------------------------------------------------------------- */

void hp_wire_tap(void *ctx, const uint8_t *frame, size_t len_bytes)
{
	struct hp_foe *f = ctx;
	struct hp_tape *t =
		&f->tape[f->tape_count < HP_TAPES
				 ? f->tape_count
				 : sim_rand_below(&f->tape_rand, HP_TAPES)];

	if (len_bytes > sizeof(t->bytes))
		return;
	if (f->tape_count < HP_TAPES)
		f->tape_count++;
	memcpy(t->bytes, frame, len_bytes);
	t->len_bytes = (uint32_t)len_bytes;
}

void hp_wire_replay(struct hp_foe *f)
{
	struct hp_tape t;

	if (!f->tape_count)
		return;
	/* The tap may put another one in its place. */
	t = f->tape[sim_rand_below(&f->rand, f->tape_count)];
	f->p->n->replayed++;
	emit(f, t.bytes, t.len_bytes);
}
