/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translates frames of a simulated host into operations of the cost model. It
 * reads headers only as far as times need them, and judges nothing: whether a
 * frame is any good is the NIC's business.
 */
#include "model_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/nic.h"
#include "fiber.h"
#include "model_busy.h"
#include "wire/wire.h"
#include "wire/wqe.h"

enum {
	/* Queue pairs that sent within one of the last two epochs are
	 * active. */
	STAMPS = 4096,
};

#define EPOCH_PS (4 * SIM_US)

struct model_host {
	struct sim *sim;
	struct model_params params; /* as given */
	struct model_nic *nic;
	uint32_t device_key[MODEL_HOST_DEVICE_KEYS_MAX];
	uint32_t device_keys;
	/* Requests of one queue pair at one moment share a doorbell. */
	uint64_t burst_at_ps;
	uint32_t burst_qpn;
	uint32_t burst_count;
	uint64_t epoch;
	uint32_t active_now, active_before;
	uint64_t stamp[STAMPS]; /* 1 + epoch of the last request */
	bool has_chains;	/* messages start chains, no processor */
	uint64_t packet_ps;	/* between two packets, any way; 0: no limit */
	struct model_busy packets;
};

/* What a frame says that costs time. */
struct peek {
	const struct wire_opcode *opcode;
	uint32_t dest_qpn;
	uint32_t peer; /* the other end's address, mixed with its QPN */
	uint32_t rkey;
	uint32_t dma_bytes;
	uint32_t payload_bytes;
	uint64_t addr;
};

static uint32_t get_be(const uint8_t *b, unsigned n)
{
	uint32_t v = 0;

	while (n--)
		v = v << 8 | *b++;
	return v;
}

static bool peek(const uint8_t *f, size_t len, struct peek *out)
{
	bool ipv4 = len > 13 && f[12] == 0x08 && f[13] == 0;
	size_t ip_bytes = ipv4 ? WIRE_IP4_BYTES : WIRE_IP6_BYTES;
	size_t bth = WIRE_ETH_BYTES + ip_bytes + WIRE_UDP_BYTES;
	size_t ext = bth + WIRE_BTH_BYTES, rest;
	const struct wire_opcode *op;

	if (len < ext + WIRE_ICRC_BYTES)
		return false;
	op = &wire_opcodes[f[bth]];
	if (!op->name || len < ext + op->ext_bytes + WIRE_ICRC_BYTES)
		return false;
	rest = len - ext - op->ext_bytes - WIRE_ICRC_BYTES;
	*out = (struct peek){
		.opcode = op,
		.dest_qpn = get_be(f + bth + 5, 3),
		.peer = get_be(f + WIRE_ETH_BYTES + ip_bytes - 4, 4) *
				2654435761u +
			get_be(f + bth + 5, 3),
		.payload_bytes =
			op->flags & WIRE_OP_PAYLOAD ? (uint32_t)rest : 0};
	if (op->flags & (WIRE_OP_RETH | WIRE_OP_ATOMIC)) {
		out->addr = (uint64_t)get_be(f + ext, 4) << 32 |
			    get_be(f + ext + 4, 4);
		out->rkey = get_be(f + ext + 8, 4);
	}
	if (op->flags & WIRE_OP_RETH)
		out->dma_bytes = get_be(f + ext + 12, 4);
	return true;
}

static bool is_device_key(const struct model_host *mh, uint32_t rkey)
{
	for (uint32_t i = 0; i < mh->device_keys; i++)
		if (mh->device_key[i] == rkey)
			return true;
	return false;
}

static enum model_kind kind_of(const struct wire_opcode *op)
{
	switch ((enum wire_kind)op->kind) {
	case WIRE_READ:
	case WIRE_READ_RESP:
	case WIRE_WALK: /* as their packets; iterations cost nothing here */
	case WIRE_WALK_ANSWER:
	case WIRE_WALK_ON:
	case WIRE_WALK_BACK:
		return MODEL_READ;
	case WIRE_ATOMIC:
		return op->flags & WIRE_OP_ADD ? MODEL_FAA : MODEL_CAS;
	case WIRE_ATOMIC_ACK:
		return MODEL_CAS;
	case WIRE_SEND:
		return MODEL_SEND;
	case WIRE_WRITE:
	case WIRE_ACK:
		break;
	}
	return MODEL_WRITE;
}

static struct model_op op_of(const struct model_host *mh, const struct peek *p)
{
	uint32_t flags = p->opcode->flags;
	struct model_op op = {
		.kind = kind_of(p->opcode),
		.bytes = p->payload_bytes,
		.addr = p->addr,
		.in_device = is_device_key(mh, p->rkey),
		.continues = !(flags & WIRE_OP_FIRST),
		.active_qps = 1,
	};

	if (p->opcode->kind == WIRE_ATOMIC ||
	    p->opcode->kind == WIRE_ATOMIC_ACK)
		op.bytes = 8;
	/* The first packet of an answer waits for its own data only. */
	if (p->opcode->kind == WIRE_READ)
		op.bytes =
			u32_min(p->dma_bytes, (uint32_t)mh->params.mtu_bytes);
	/* These three stand for whole messages. */
	if (p->opcode->kind == WIRE_READ || p->opcode->kind == WIRE_ACK ||
	    p->opcode->kind == WIRE_ATOMIC_ACK)
		op.continues = false;
	return op;
}

/* Counts the queue pairs with requests lately, this one included. */
static uint32_t active_qps(struct model_host *mh, uint32_t qpn, uint64_t now)
{
	uint64_t epoch = now / EPOCH_PS;
	uint64_t *stamp = &mh->stamp[qpn * 2654435761u % STAMPS];

	if (epoch != mh->epoch) {
		mh->active_before = epoch == mh->epoch + 1 ? mh->active_now : 0;
		mh->active_now = 0;
		mh->epoch = epoch;
	}
	if (*stamp != epoch + 1) {
		*stamp = epoch + 1;
		mh->active_now++;
	}
	return u32_max(mh->active_now, mh->active_before);
}

/*
 * A program that posts pays for the doorbell; what the NIC sends by itself
 * (later parts, repetitions) it has already. Entries beyond those that travel
 * with a doorbell are fetched.
 */
static uint64_t doorbell(struct model_host *mh, const struct model_op *op,
			 uint64_t now)
{
	if (!sim_fiber_inside(mh->sim))
		return now;
	if (mh->burst_at_ps != now || mh->burst_qpn != op->qpn) {
		mh->burst_at_ps = now;
		mh->burst_qpn = op->qpn;
		mh->burst_count = 0;
	}
	if (!op->continues)
		mh->burst_count++;
	/* Each fetched entry crosses the bus once, not with every later one. */
	if (mh->burst_count > mh->params.push_wqes + 1)
		return model_post_more(mh->nic, now);
	return model_post(mh->nic, op, mh->burst_count, now);
}

/* A packet, in or out, has its turn. */
static uint64_t take_packet(struct model_host *mh)
{
	uint64_t now = sim_now_ps(mh->sim);

	return mh->packet_ps
		       ? model_busy_take(&mh->packets, now, mh->packet_ps, NULL)
		       : now;
}

static uint64_t rx_ready_ps(void *ctx, struct sim_host *host,
			    const uint8_t *frame, size_t len_bytes)
{
	struct model_host *mh = ctx;
	uint64_t now = take_packet(mh);
	struct model_op op;
	struct peek p;

	if (!peek(frame, len_bytes, &p))
		return now;
	op = op_of(mh, &p);
	op.qpn = p.dest_qpn;
	if (p.opcode->flags & WIRE_OP_RESPONSE)
		return model_complete(mh->nic, &op, now);
	op.notifies = (p.opcode->flags & WIRE_OP_RECV) && !mh->has_chains;
	return model_rx_request(mh->nic, &op, now, NULL);
}

static enum model_kind chain_kind(uint8_t opcode)
{
	switch (opcode) {
	case WQE_READ:
		return MODEL_READ;
	case WQE_FAA:
	case WQE_MASKED_FAA:
		return MODEL_FAA;
	case WQE_CAS:
	case WQE_MASKED_CAS:
		return MODEL_CAS;
	default:
		return MODEL_WRITE;
	}
}

/* Queues whose requests rewrite each other are fetched one by one. What leaves
 * this host pays for the rest as a frame. */
static uint64_t chain_ready_ps(void *ctx, struct sim_host *host,
			       const struct nic_chain_step *step)
{
	struct model_host *mh = ctx;
	uint64_t now = sim_now_ps(mh->sim);
	struct model_op op = {.kind = chain_kind(step->opcode),
			      .bytes = step->bytes,
			      .qpn = step->qpn,
			      .addr = step->addr};

	mh->has_chains = true;
	if (step->opcode == WQE_WAIT || step->opcode == WQE_SEND_ENABLE ||
	    step->opcode == WQE_RECV_ENABLE)
		return model_chain_order(mh->nic, now);
	if (!step->is_near)
		return model_chain_fetch(mh->nic, now);
	return model_chain_local(mh->nic, &op, step->pieces, false, now);
}

static uint64_t tx_ready_ps(void *ctx, struct sim_host *host,
			    const uint8_t *frame, size_t len_bytes)
{
	struct model_host *mh = ctx;
	uint64_t now = take_packet(mh);
	struct model_op op;
	struct peek p;

	if (!peek(frame, len_bytes, &p))
		return now;
	op = op_of(mh, &p);
	/* An RC frame does not name its sender; its receiver is as good. */
	op.qpn = p.peer;
	if (p.opcode->flags & WIRE_OP_RESPONSE)
		return model_tx_response(mh->nic, &op, now);
	op.active_qps = active_qps(mh, op.qpn, now);
	return model_tx_request(mh->nic, &op, doorbell(mh, &op, now));
}

int sim_model_host_create(struct sim *sim, const struct model_params *params,
			  uint64_t seed, struct model_host **out)
{
	struct model_host *mh = calloc(1, sizeof(*mh));
	struct model_params inner = *params;
	int err;

	if (!mh)
		return -ENOMEM;
	mh->sim = sim;
	mh->params = *params;
	/* The simulated network has the link, its pollers their own delay. */
	inner.link_ps_per_byte = 0;
	inner.cpu_poll_ps = 0;
	err = model_nic_create(&inner, seed, &mh->nic);
	if (err) {
		free(mh);
		return err;
	}
	*out = mh;
	return 0;
}

void sim_model_host_destroy(struct model_host *mh)
{
	if (!mh)
		return;
	model_nic_destroy(mh->nic);
	free(mh);
}

void sim_model_host_config(struct model_host *mh, struct sim_host_config *cfg)
{
	const struct model_params *p = &mh->params;

	cfg->link.latency_ps = p->cable_ps;
	cfg->link.bits_per_s = 8 * SIM_S / u64_max(p->link_ps_per_byte, 1);
	cfg->relax_ps = p->cpu_poll_ps;
	cfg->model = (struct sim_host_model){.ctx = mh,
					     .rx_ready_ps = rx_ready_ps,
					     .tx_ready_ps = tx_ready_ps,
					     .chain_ready_ps = chain_ready_ps};
}

int sim_model_host_add_device_key(struct model_host *mh, uint32_t rkey)
{
	if (mh->device_keys == MODEL_HOST_DEVICE_KEYS_MAX)
		return -ENOSPC;
	mh->device_key[mh->device_keys++] = rkey;
	return 0;
}

void sim_model_host_limit(struct model_host *mh, uint64_t packets_per_s)
{
	mh->packet_ps = packets_per_s ? SIM_S / packets_per_s : 0;
}

bool sim_model_host_take(struct model_host *mh, bool rdma_first,
			 uint64_t *at_ps)
{
	*at_ps = sim_now_ps(mh->sim);
	if (mh->packet_ps && rdma_first &&
	    !model_busy_has_room(&mh->packets, *at_ps, at_ps))
		return false;
	*at_ps = take_packet(mh);
	return true;
}
