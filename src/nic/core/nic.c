/* SPDX-License-Identifier: Apache-2.0 */
/* The device: what comes in is filtered and given to its queue pair, what is
 * waiting gets its turn to be sent. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "access_priv.h"
#include "auth_priv.h"
#include "base/landing.h"
#include "turn_priv.h"

const char *const nic_counter_names[NIC_COUNTER_COUNT] = {
#define COUNTER_NAME(name, help) [NIC_C_##name] = #name,
	NIC_COUNTERS(COUNTER_NAME)
#undef COUNTER_NAME
};

const char *const nic_counter_help[NIC_COUNTER_COUNT] = {
#define COUNTER_HELP(name, help) [NIC_C_##name] = help,
	NIC_COUNTERS(COUNTER_HELP)
#undef COUNTER_HELP
};

/* ---- life --------------------------------------------------------------- */

int nic_create(struct env *env, const struct nic_config *cfg, struct nic **out)
{
	struct nic *nic;

	if (cfg->slot >= NIC_SLOT_COUNT || cfg->gid_count == 0 ||
	    cfg->gid_count > NIC_GID_MAX || cfg->mtu > WIRE_MTU_MAX ||
	    (cfg->mtu && cfg->mtu < NIC_MTU_MIN))
		return -EINVAL;
	nic = aligned_alloc(CACHE_LINE, align_up(sizeof(*nic), CACHE_LINE));
	if (!nic)
		return -ENOMEM;
	memset(nic, 0, sizeof(*nic));
	nic->env = env;
	nic->cfg = *cfg;
	if (!cfg->mtu)
		nic->cfg.mtu = WIRE_MTU_MAX;
	nic->counters = cfg->counters;
	if (!nic->counters) {
		nic->own_counters =
			calloc(NIC_COUNTER_COUNT, sizeof(*nic->own_counters));
		nic->counters = nic->own_counters;
	}
	nic->qps = calloc(NIC_QP_MAX, sizeof(*nic->qps));
	if (!nic->counters || !nic->qps || key_table_init(&nic->keys)) {
		free(nic->own_counters);
		free(nic->qps);
		free(nic);
		return -ENOMEM;
	}
	list_init(&nic->ready);
	nic->turn_end = UINT64_MAX;
	list_init(&nic->held);
	list_init(&nic->walk_waits);
	timer_wheel_init(&nic->wheel, env_now_ns(env));
	*out = nic;
	return 0;
}

void nic_destroy(struct nic *nic)
{
	ASSERT(nic->qp_count == 0 && nic->cq_count == 0 && nic->pd_count == 0);
	ud_paths_close(nic);
	cq_numbers_release(nic);
	key_table_release(&nic->keys);
	free(nic->own_counters);
	free(nic->qps);
	free(nic);
}

void nic_set_upcalls(struct nic *nic, const struct nic_upcalls *up)
{
	nic->up = up;
}

const struct nic_config *nic_get_config(const struct nic *nic)
{
	return &nic->cfg;
}

uint64_t nic_counter_get(const struct nic *nic, enum nic_counter c)
{
	return nic->counters[c];
}

uint32_t nic_outstanding(const struct nic *nic)
{
	return atomic_load_explicit(&nic->outstanding, memory_order_relaxed);
}

void nic_query_device(const struct nic *nic, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){
		.node_guid = nic->cfg.node_guid,
		.sys_image_guid = nic->cfg.node_guid,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffff000,
		.max_qp = NIC_QP_MAX / 2,
		.max_qp_wr = NIC_QP_WR_MAX,
		.device_cap_flags =
			IBV_DEVICE_CURR_QP_STATE_MOD |
			IBV_DEVICE_PORT_ACTIVE_EVENT |
			IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
			IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
			IBV_DEVICE_MEM_MGT_EXTENSIONS,
		.max_sge = NIC_SGE_MAX,
		.max_sge_rd = NIC_SGE_MAX,
		.max_cq = NIC_CQ_MAX,
		.max_cqe = NIC_CQE_MAX,
		.max_mr = NIC_MR_MAX,
		.max_pd = NIC_PD_MAX,
		.max_qp_rd_atom = NIC_RD_ATOMIC_MAX,
		.max_res_rd_atom = NIC_RD_ATOMIC_MAX * (NIC_QP_MAX / 2),
		.max_qp_init_rd_atom = NIC_RD_ATOMIC_MAX,
		/* Atomics are CPU instructions; still promise only what every
		 * path keeps. */
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_mw = NIC_MW_MAX,
		.max_ah = NIC_AH_MAX,
		.max_srq = NIC_SRQ_MAX,
		.max_srq_wr = NIC_SRQ_WR_MAX,
		.max_srq_sge = NIC_SGE_MAX,
		.max_pkeys = 1,
		.local_ca_ack_delay = 15,
		.phys_port_cnt = 1,
	};
}

enum ibv_mtu nic_active_mtu(const struct nic *nic)
{
	enum ibv_mtu m = IBV_MTU_4096;

	while (m > IBV_MTU_256 && 128u << m > nic->cfg.mtu)
		m--;
	return m;
}

enum ibv_mtu nic_path_mtu(struct nic *nic, const uint8_t ip[16])
{
	enum ibv_mtu m = nic_active_mtu(nic);
	struct env_addr dst = {.mac = {0}};
	uint32_t bytes = 0;

	memcpy(dst.ip, ip, sizeof(dst.ip));
	if (nic->env->ops->addr_payload_bytes)
		bytes = nic->env->ops->addr_payload_bytes(nic->env, &dst);
	while (bytes && m > IBV_MTU_256 && 128u << m > bytes)
		m--;
	return m;
}

void nic_lower_mtu(struct nic *nic, uint32_t mtu)
{
	nic->cfg.mtu =
		u32_min(nic->cfg.mtu, mtu < NIC_MTU_MIN ? NIC_MTU_MIN : mtu);
}

void nic_query_port(const struct nic *nic, struct ibv_port_attr *attr)
{
	*attr = (struct ibv_port_attr){
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = nic_active_mtu(nic),
		.gid_tbl_len = (int)nic->cfg.gid_count,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = NIC_MSG_BYTES_MAX,
		.pkey_tbl_len = 1,
		.active_width = 2,  /* 4X */
		.active_speed = 32, /* EDR */
		.phys_state = 5,    /* link up */
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
}

/* ---- frames ------------------------------------------------------------- */

static inline void tx_end(struct nic *nic, struct env_path *path, size_t len)
{
	count(nic, NIC_C_tx_frames);
	nic->counters[NIC_C_tx_bytes] += len;
	nic->env->ops->tx_end(nic->env, path, len);
}

static size_t build(struct nic_qp *qp, uint8_t *frame)
{
	const struct wire_pkt *out = &qp->out;
	const struct wire_stamp *stamp =
		wire_stamps_find(&qp->nic->stamps, qp->flow, out->opcode,
				 out->solicited, out->payload_len);
	size_t len;

	if (LIKELY(stamp != NULL)) {
		struct wire_vary v = wire_vary_of(out);

		return wire_stamp_build(stamp, &v, frame);
	}
	if (UNLIKELY(out->has_mac))
		auth_sign(qp, frame);
	len = wire_build(out, frame);
	wire_stamps_learn_tx(&qp->nic->stamps, qp->flow, out);
	return len;
}

static size_t build_far(void *frame, const void *unused, uintptr_t qp)
{
	return build((struct nic_qp *)qp, frame);
}

HOT void nic_tx(struct nic_qp *qp, struct env_path *path, uint8_t *frame)
{
	tx_end(qp->nic, path, build(qp, frame));
}

int nic_send(struct nic_qp *qp)
{
	struct env *env = qp->nic->env;
	uint8_t *frame = env->ops->tx_begin(
		env, qp->path, wire_frame_bound(qp->out.payload_len));
	uintptr_t payload = (uintptr_t)qp->out.payload;
	size_t len;

	if (UNLIKELY(!frame))
		return 0;
	/* A payload that is pointed to is registered memory. */
	len = payload ? landing_call(frame, NULL, (uintptr_t)qp, build_far,
				     payload, payload + qp->out.payload_len)
		      : build(qp, frame);
	if (UNLIKELY(len == 0)) {
		env->ops->tx_end(env, qp->path, 0);
		return -EFAULT;
	}
	tx_end(qp->nic, qp->path, len);
	return 1;
}

HOT int nic_send_stamped(struct nic_qp *qp, const struct wire_stamp *stamp,
			 const struct wire_vary *v)
{
	struct env *env = qp->nic->env;
	uint8_t *frame;
	size_t len;

	if (LIKELY(env->ops->tx_begin_exact != NULL))
		frame = env->ops->tx_begin_exact(env, qp->path,
						 stamp->frame_len);
	else
		frame = env->ops->tx_begin(
			env, qp->path, wire_frame_bound(stamp->payload_len));
	if (UNLIKELY(!frame))
		return 0;
	len = v->payload ? touch_stamp(stamp, v, frame)
			 : wire_stamp_build(stamp, v, frame);
	if (UNLIKELY(len == 0)) {
		env->ops->tx_end(env, qp->path, 0);
		return -EFAULT;
	}
	tx_end(qp->nic, qp->path, len);
	return 1;
}

static void count_parse_error(struct nic *nic, enum wire_error err)
{
	static const enum nic_counter counter[] = {
		[WIRE_E_SHORT] = NIC_C_drop_short,
		[WIRE_E_NOT_ROCE] = NIC_C_drop_not_roce,
		[WIRE_E_IP] = NIC_C_drop_ip,
		[WIRE_E_LENGTH] = NIC_C_drop_length,
		[WIRE_E_ICRC] = NIC_C_drop_icrc,
		[WIRE_E_VERSION] = NIC_C_drop_version,
		[WIRE_E_OPCODE] = NIC_C_drop_opcode,
		[WIRE_E_PAYLOAD] = NIC_C_drop_payload,
	};

	count(nic, counter[err]);
}

bool nic_is_ours(const struct nic *nic, const uint8_t ip[16])
{
	unsigned i;

	for (i = 0; i < nic->cfg.gid_count; i++)
		if (memcmp(nic->cfg.gids[i].ip, ip, 16) == 0)
			return true;
	return false;
}

static bool pkey_matches(uint16_t a, uint16_t b)
{
	/* The same partition, and not two limited members of it. */
	return ((a ^ b) & 0x7fff) == 0 && (a & 0x7fff) && ((a | b) & 0x8000);
}

/*
 * A connection has one way, and its packets come by that one only. A datagram
 * names its sender: on a cable that must be who holds the other end, and one of
 * another host comes from the network or from a process that receives for the
 * whole host.
 */
static bool came_its_way(const struct nic *nic, const struct nic_qp *qp,
			 const struct wire_pkt *pkt, uint32_t from)
{
	bool by_net = from == NIC_FROM_NET || (from & NIC_FROM_FORWARDS);
	uint32_t slot = from & NIC_FROM_MASK;

	if (qp->type != IBV_QPT_UD)
		return slot == qp->from || (by_net && qp->from == NIC_FROM_NET);
	if (!nic_is_ours(nic, pkt->src_ip))
		return by_net;
	return slot == pkt->src_qpn >> NIC_QPN_INDEX_BITS ||
	       (by_net && !nic->cfg.own_is_near);
}

/* Silent drops (IBA 9.6.1): NIC_COUNTER_COUNT when the packet is fine. */
static enum nic_counter filter(struct nic *nic, const struct nic_qp *qp,
			       const struct wire_pkt *pkt, uint32_t from)
{
	const struct wire_opcode *op = &wire_opcodes[pkt->opcode];
	bool ud = qp->type == IBV_QPT_UD;

	if (ud != (op->transport == WIRE_UD))
		return NIC_C_drop_transport;
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD &&
	    qp->state != IBV_QPS_SQE &&
	    (qp->state != IBV_QPS_RTR || (op->flags & WIRE_OP_RESPONSE)))
		return NIC_C_drop_qp_state;
	if (!ud && (memcmp(pkt->src_ip, qp->out.dst_ip, 16) ||
		    memcmp(pkt->dst_ip, qp->out.src_ip, 16)))
		return NIC_C_drop_peer;
	if (!came_its_way(nic, qp, pkt, from) && !PLANTED(any_path) &&
	    !(PLANTED(any_inner) && nic_is_ours(nic, pkt->src_ip)))
		return NIC_C_drop_path;
	if (pkt->has_mac != auth_is_on(qp))
		return NIC_C_drop_auth;
	if (!pkey_matches(pkt->pkey, 0xffff))
		return NIC_C_drop_pkey;
	if (guess_drops(nic, qp, pkt))
		return NIC_C_drop_blocked;
	return NIC_COUNTER_COUNT;
}

/* The peer is ready, whatever became of the message that says so: who waits
 * for that one learns it here, once (IBA 11.6.3.1). */
static COLD void tell_established(struct nic_qp *qp)
{
	if (!qp->established_told)
		qp_event(qp, IBV_EVENT_COMM_EST);
	qp->established_told = true;
}

/* It has passed the filter. */
static void input_rc(struct nic_qp *qp, const struct wire_pkt *pkt)
{
	if (UNLIKELY(qp->state == IBV_QPS_RTR))
		tell_established(qp);
	if (wire_opcodes[pkt->opcode].flags & WIRE_OP_RESPONSE)
		completer_input(qp, pkt);
	else
		responder_input(qp, pkt);
}

static COLD void input_with_mac(struct nic_qp *qp, const struct wire_pkt *pkt)
{
	struct wire_pkt checked = *pkt;

	if (auth_check(qp, &checked))
		input_rc(qp, &checked);
	else
		count(qp->nic, NIC_C_drop_auth);
}

/* A packet; the one of `stamp`, if that is not NULL. */
static void input(struct nic *nic, const struct wire_pkt *pkt,
		  const uint8_t *frame, struct wire_rx_stamp *stamp,
		  uint32_t from)
{
	struct nic_qp *qp;
	enum nic_counter drop;

	qp = qp_find(nic, pkt->dest_qpn);
	if (UNLIKELY(!qp)) {
		count(nic, nic_is_ours(nic, pkt->dst_ip) ? NIC_C_drop_qpn
							 : NIC_C_drop_dst_ip);
		return;
	}
	drop = filter(nic, qp, pkt, from);
	if (UNLIKELY(drop != NIC_COUNTER_COUNT)) {
		count(nic, drop);
		return;
	}
	nic->input_pd = qp->pd->turns;
	if (UNLIKELY(qp->type == IBV_QPT_UD)) {
		if (!nic_is_ours(nic, pkt->dst_ip)) {
			count(nic, NIC_C_drop_dst_ip);
			return;
		}
		ud_input(qp, pkt, frame);
		return;
	}
	if (UNLIKELY(pkt->has_mac)) {
		input_with_mac(qp, pkt);
		return;
	}
	if (stamp)
		stamp->flow = qp->flow;
	input_rc(qp, pkt);
}

/* The same, for what comes most: queue pairs of one flow have one answer to
 * what the filter asks about the packet. */
static inline void input_stamped(struct nic *nic, struct wire_rx_stamp *stamp,
				 const uint8_t *frame, uint32_t from)
{
	struct nic_qp *qp = qp_find(nic, stamp->pkt.dest_qpn);

	if (UNLIKELY(!qp || qp->flow != stamp->flow || !qp->flow ||
		     qp->from != (from & NIC_FROM_MASK) ||
		     qp->state != IBV_QPS_RTS || nic->guess.blocked_until_ns)) {
		input(nic, &stamp->pkt, frame, stamp, from);
		return;
	}
	nic->input_pd = qp->pd->turns;
	if (stamp->is_response)
		completer_input(qp, &stamp->pkt);
	else
		responder_input(qp, &stamp->pkt);
}

/* Test-only damage: takes a frame with a wrong checksum for a right one. */
static COLD void input_anyway(struct nic *nic, const uint8_t *frame,
			      size_t len_bytes, uint32_t from)
{
	uint8_t copy[WIRE_FRAME_MAX];
	struct wire_pkt pkt;
	enum wire_error err;
	uint32_t icrc;
	size_t end = len_bytes - WIRE_ICRC_BYTES;

	if (len_bytes > sizeof(copy)) {
		count_parse_error(nic, WIRE_E_ICRC);
		return;
	}
	memcpy(copy, frame, len_bytes);
	icrc = wire_icrc(copy + WIRE_ETH_BYTES, end - WIRE_ETH_BYTES);
	memcpy(copy + end, &icrc, sizeof(icrc));
	err = wire_parse(copy, len_bytes, &pkt);
	if (err)
		count_parse_error(nic, err);
	else
		input(nic, &pkt, frame, NULL, from);
}

static void input_unknown(struct nic *nic, const uint8_t *frame,
			  size_t len_bytes, uint32_t from)
{
	struct wire_pkt pkt;
	enum wire_error err = wire_parse(frame, len_bytes, &pkt);

	if (LIKELY(!err)) {
		wire_stamps_learn_rx(&nic->stamps, &pkt, frame, len_bytes);
		input(nic, &pkt, frame, NULL, from);
	} else if (err == WIRE_E_ICRC && PLANTED(skip_icrc)) {
		input_anyway(nic, frame, len_bytes, from);
	} else {
		count_parse_error(nic, err);
	}
}

HOT void nic_input(struct nic *nic, const uint8_t *frame, size_t len_bytes,
		   uint32_t from)
{
	struct wire_rx_stamp *stamp =
		wire_stamps_parse(&nic->stamps, frame, len_bytes);

	count(nic, NIC_C_rx_frames);
	nic->counters[NIC_C_rx_bytes] += len_bytes;
	if (LIKELY(stamp != NULL))
		input_stamped(nic, stamp, frame, from);
	else
		input_unknown(nic, frame, len_bytes, from);
}

uint64_t nic_take_domain(struct nic *nic, bool *is_greedy)
{
	struct nic_pd *pd = nic->input_pd;
	uint64_t now = nic->counters[NIC_C_rx_frames] +
		       (nic->counters[NIC_C_rx_bytes] >> NIC_TURN_SHIFT);
	uint64_t work = now - nic->input_work;

	nic->input_pd = NULL;
	nic->input_work = now;
	*is_greedy = true;
	if (UNLIKELY(!pd))
		return 0;
	turn_count(pd, work);
	*is_greedy = nic->crowd && turn_is_greedy(pd);
	return (uintptr_t)pd;
}

HOT void nic_foretell(const struct nic *nic, const uint8_t *frame,
		      size_t len_bytes)
{
	enum {
		BTH_AT = WIRE_ETH_BYTES + WIRE_IP4_BYTES + WIRE_UDP_BYTES,
		RETH_AT = BTH_AT + WIRE_BTH_BYTES,
		READ_BYTES = RETH_AT + 16 + WIRE_ICRC_BYTES,
	};
	const struct nic_key *k;
	uint64_t va, offset;
	uint32_t rkey;

	if (len_bytes != READ_BYTES || frame[BTH_AT] != WIRE_RC_READ_REQ)
		return;
	memcpy(&va, frame + RETH_AT, sizeof(va));
	memcpy(&rkey, frame + RETH_AT + sizeof(va), sizeof(rkey));
	k = key_find(&nic->keys, BYTES_BE(32, rkey));
	if (!k)
		return;
	offset = BYTES_BE(64, va) - k->iova;
	if (offset < k->length)
		PREFETCH(k->host + offset);
}

HOT bool nic_input_if_intact(struct nic *nic, const uint8_t *frame,
			     size_t len_bytes, uint32_t from)
{
	struct wire_pkt pkt;
	enum wire_error err = wire_parse(frame, len_bytes, &pkt);

	if (UNLIKELY(err == WIRE_E_ICRC))
		return false;
	count(nic, NIC_C_rx_frames);
	nic->counters[NIC_C_rx_bytes] += len_bytes;
	if (UNLIKELY(err))
		count_parse_error(nic, err);
	else
		input(nic, &pkt, frame, NULL, from);
	return true;
}

COLD void nic_tell_witness(const struct nic_qp *qp, enum nic_deed_kind kind,
			   uint32_t psn, uint32_t packets, uint8_t syndrome)
{
	const struct nic_witness *w = qp->nic->cfg.witness;
	struct nic_deed deed = {
		.kind = kind,
		.qpn = qp->qpn,
		.psn = psn,
		.packets = packets,
		.syndrome = syndrome,
	};

	w->saw(w->ctx, &deed);
}

/* ---- turns
 * ----------------------------------------------------------------------------
 */

void nic_tick(struct nic *nic)
{
	timer_wheel_advance(&nic->wheel, env_now_ns(nic->env));
}

uint64_t nic_next_deadline_ns(const struct nic *nic)
{
	return timer_wheel_next_ns(&nic->wheel);
}

void nic_path_down(struct nic *nic, struct env_path *path)
{
	uint32_t i;

	ud_path_down(nic, path);
	for (i = 0; i < NIC_QP_MAX; i++) {
		struct nic_qp *qp = nic->qps[i];

		if (!qp || qp->path != path)
			continue;
		qp->path_down = true;
		/* With a timer, retries run out by themselves, which leaves
		 * programs that both end at the same time in peace. */
		if (qp->timeout)
			continue;
		/* Without one, who waits for an answer would wait for ever; who
		 * waits for nothing learns it with the next request. */
		qp->peer_gone = true;
		if (qp->state == IBV_QPS_RTS && qp->sq.tail != qp->sq.head) {
			count(nic, NIC_C_retry_exceeded);
			qp_complete_send(qp, IBV_WC_RETRY_EXC_ERR);
			qp_fail(qp);
		}
	}
}
