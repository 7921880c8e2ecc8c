/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams of the play: each may be lost, but whatever arrives must be
 * something that was sent, whole, and no more often than the network copied
 * it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_priv.h"

enum {
	GRH_BYTES = 40,
	BODY_MAX = 1500,
	RECVS = 16,
	SENDS = 16,
	SENT_MAX = 512,
	QKEY = 0x1234567,
	/* The frame itself and one copy. */
	ARRIVALS_MAX = 2,
};

struct sent {
	struct vs_node *to;
	uint32_t off; /* in the sender's source area */
	uint32_t len;
	uint32_t imm;
	bool with_imm;
	unsigned arrivals;
};

struct vs_ud {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah[VS_NODE_MAX];
	struct vs_slots recvs;
	struct vs_recv posted[RECVS];
	struct vs_area ids; /* the first eight bytes of each datagram */
	struct ibv_mr *ids_mr;
	unsigned sending;
	unsigned sent_count;
	struct sent sent[SENT_MAX];
	struct rng rand;
};

static int to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {
		.qp_state = state, .port_num = 1, .qkey = QKEY};
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	if (state == IBV_QPS_RTS)
		mask |= IBV_QP_SQ_PSN;
	return -ibv_modify_qp(qp, &attr, mask);
}

static int create_qp(struct vs_node *node, struct vs_ud *ud)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD,
					.sq_sig_all = 1,
					.cap = {.max_send_wr = SENDS,
						.max_recv_wr = RECVS,
						.max_send_sge = 2,
						.max_recv_sge = 4}};
	int err;

	ud->cq = ibv_create_cq(node->ctx, SENDS + RECVS, NULL, NULL, 0);
	if (!ud->cq)
		return -errno;
	attr.send_cq = ud->cq;
	attr.recv_cq = ud->cq;
	ud->qp = ibv_create_qp(node->pd, &attr);
	if (!ud->qp)
		return -errno;
	err = to_state(ud->qp, IBV_QPS_INIT);
	if (!err)
		err = to_state(ud->qp, IBV_QPS_RTR);
	return err ? err : to_state(ud->qp, IBV_QPS_RTS);
}

int vs_ud_create(struct vs_node *node)
{
	struct vs_ud *ud = calloc(1, sizeof(*ud));
	int err;

	if (!ud)
		return -ENOMEM;
	node->ud = ud;
	sim_rand_init(&ud->rand, node->vs->run.opt->seed, 300 + node->index);
	err = create_qp(node, ud);
	if (!err)
		err = vs_slots_init(node, &ud->recvs, RECVS,
				    GRH_BYTES + 8 + BODY_MAX + 8 * VS_SLOT_GAP);
	if (!err)
		err = vs_area_add(node, 8 * SENT_MAX, &ud->ids);
	if (err)
		return err;
	memset(ud->ids.base, 0, ud->ids.len_bytes);
	ud->ids_mr = vs_reg(node, &ud->ids, 0);
	if (!ud->ids_mr)
		return -errno;
	for (unsigned i = 0; i < node->vs->node_count; i++) {
		struct ibv_ah_attr attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = node->vs->nodes[i].gid,
				.hop_limit = 64}};

		ud->ah[i] = ibv_create_ah(node->pd, &attr);
		if (!ud->ah[i])
			return -errno;
	}
	return 0;
}

/* In teardown nothing uses these any more, and a leak is found by the
 * protection domain, which refuses to go. */
void vs_ud_destroy(struct vs_node *node)
{
	struct vs_ud *ud = node->ud;

	if (!ud)
		return;
	for (unsigned i = 0; i < VS_NODE_MAX; i++) {
		if (ud->ah[i])
			(void)ibv_destroy_ah(ud->ah[i]);
	}
	if (ud->qp)
		(void)ibv_destroy_qp(ud->qp);
	if (ud->cq)
		(void)ibv_destroy_cq(ud->cq);
	if (ud->ids_mr)
		(void)ibv_dereg_mr(ud->ids_mr);
	vs_slots_release(&ud->recvs);
	free(ud);
	node->ud = NULL;
}

static void post_recv(struct vs_node *node)
{
	struct vs_ud *ud = node->ud;
	struct ibv_sge sge[4];
	struct ibv_recv_wr wr = {.sg_list = sge}, *bad;
	struct vs_recv recv = {.posted = true,
			       .room = GRH_BYTES + 8 + BODY_MAX};
	int slot = vs_slot_take(node->vs, &ud->recvs, &ud->rand, recv.room, 4,
				recv.pieces, &recv.piece_count);

	if (slot < 0)
		return;
	recv.id = VS_ID_RECV | VS_ID_UD | (unsigned)slot;
	ud->posted[slot] = recv;
	for (unsigned i = 0; i < recv.piece_count; i++)
		sge[i] = (struct ibv_sge){.addr = ud->recvs.area.iova +
						  recv.pieces[i].off,
					  .length = recv.pieces[i].len,
					  .lkey = ud->recvs.mr->lkey};
	wr.wr_id = recv.id;
	wr.num_sge = (int)recv.piece_count;
	if (ibv_post_recv(ud->qp, &wr, &bad))
		vs_fail(node->vs, "node %u: posting a datagram receive failed",
			node->index);
}

static void send_one(struct vs_node *node)
{
	struct vs *vs = node->vs;
	struct vs_ud *ud = node->ud;
	struct sent *s = &ud->sent[ud->sent_count];
	unsigned to = sim_rand_below(&ud->rand, vs->node_count);
	uint64_t id = (uint64_t)node->index << 32 | ud->sent_count;
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = {.wr_id = VS_ID_UD | ud->sent_count,
				 .sg_list = sge,
				 .num_sge = 2},
			   *bad;

	s->to = &vs->nodes[to];
	s->len = sim_rand_below(&ud->rand, BODY_MAX + 1);
	s->off = sim_rand_below(&ud->rand, VS_SOURCE_BYTES - BODY_MAX);
	s->imm = (uint32_t)rng_u64(&ud->rand);
	s->with_imm = sim_rand_below(&ud->rand, 2);
	memcpy(ud->ids.base + 8 * ud->sent_count, &id, 8);
	sge[0] = (struct ibv_sge){.addr = ud->ids.iova + 8 * ud->sent_count,
				  .length = 8,
				  .lkey = ud->ids_mr->lkey};
	sge[1] = (struct ibv_sge){.addr = node->source.iova + s->off,
				  .length = s->len,
				  .lkey = node->source_mr->lkey};
	wr.opcode = s->with_imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
	wr.imm_data = s->imm;
	wr.wr.ud.ah = ud->ah[to];
	wr.wr.ud.remote_qpn = s->to->ud->qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	ud->sent_count++;
	ud->sending++;
	vs->n->datagrams++;
	if (ibv_post_send(ud->qp, &wr, &bad))
		vs_fail(vs, "node %u: posting a datagram failed", node->index);
}

/* The datagram as one piece, without its GRH. */
static uint32_t collect(const struct vs_ud *ud, const struct vs_recv *recv,
			uint32_t len, uint8_t *out)
{
	uint8_t all[GRH_BYTES + 8 + BODY_MAX];
	uint32_t at = 0;

	for (unsigned i = 0; i < recv->piece_count; i++) {
		uint32_t n = u32_min(recv->pieces[i].len, len - at);

		memcpy(all + at, ud->recvs.area.base + recv->pieces[i].off, n);
		at += n;
	}
	memcpy(out, all + GRH_BYTES, len - GRH_BYTES);
	return len - GRH_BYTES;
}

static void check_arrived(struct vs_node *node, const struct ibv_wc *wc,
			  const struct vs_recv *recv)
{
	struct vs *vs = node->vs;
	uint8_t body[8 + BODY_MAX];
	struct vs_node *from;
	struct sent *s;
	uint64_t id;
	uint32_t len;

	if (wc->byte_len < GRH_BYTES + 8 || wc->byte_len > recv->room ||
	    !(wc->wc_flags & IBV_WC_GRH)) {
		vs_fail(vs, "node %u: a datagram of %u bytes, flags %u",
			node->index, wc->byte_len, (unsigned)wc->wc_flags);
		return;
	}
	len = collect(node->ud, recv, wc->byte_len, body);
	memcpy(&id, body, 8);
	from = id >> 32 < vs->node_count ? &vs->nodes[id >> 32] : NULL;
	s = from && (uint32_t)id < from->ud->sent_count
		    ? &from->ud->sent[(uint32_t)id]
		    : NULL;
	if (!s || s->to != node || len != s->len + 8 ||
	    memcmp(body + 8, from->source.base + s->off, s->len) != 0 ||
	    wc->src_qp != from->ud->qp->qp_num ||
	    s->with_imm != !!(wc->wc_flags & IBV_WC_WITH_IMM) ||
	    (s->with_imm && wc->imm_data != s->imm))
		vs_fail(vs, "node %u: a datagram that nobody sent like that",
			node->index);
	else if (++s->arrivals > ARRIVALS_MAX)
		vs_fail(vs, "node %u: a datagram arrived %u times", node->index,
			s->arrivals);
}

static void complete(struct vs_node *node, const struct ibv_wc *wc)
{
	struct vs_ud *ud = node->ud;
	struct vs *vs = node->vs;
	unsigned slot = (unsigned)(wc->wr_id & 0xff);
	struct vs_recv *recv = &ud->posted[slot % RECVS];

	if (wc->status != IBV_WC_SUCCESS) {
		vs_fail(vs, "node %u: a datagram request failed with %u",
			node->index, wc->status);
	} else if (!(wc->wr_id & VS_ID_RECV)) {
		ud->sending--;
	} else if (!recv->posted) {
		vs_fail(vs, "node %u: a datagram receive completed twice",
			node->index);
	} else {
		recv->posted = false;
		vs->n->datagrams_received++;
		check_arrived(node, wc, recv);
		vs_slot_give(vs, &ud->recvs, slot, recv->pieces,
			     recv->piece_count, NULL, 0, "datagram");
	}
}

void vs_ud_step(struct vs_node *node)
{
	struct vs_ud *ud = node->ud;
	struct ibv_wc wc[8];
	int n;

	while ((n = ibv_poll_cq(ud->cq, 8, wc)) > 0) {
		for (int i = 0; i < n; i++) {
			sim_note(node->vs->run.sim, SIM_NOTE_COMPLETION,
				 &wc[i].wr_id, 8);
			complete(node, &wc[i]);
		}
	}
	for (unsigned i = sim_rand_below(&ud->rand, 4); i > 0; i--)
		post_recv(node);
	if (ud->sending < SENDS && ud->sent_count < SENT_MAX &&
	    node->vs->phase == VS_CHAOS)
		send_one(node);
}
