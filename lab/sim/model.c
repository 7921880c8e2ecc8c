/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host cost model: resources of one NIC, each with the time at which it
 * is free again. Leaves events and frames to the caller.
 */
#include "model.h"

#include "model_busy.h"
#include "model_limits.h"

#include <errno.h>
#include <stdlib.h>

const struct model_params model_connectx5 = {MODEL_CONSTANTS(MODEL_VALUE)};

/* Something that excludes others that name the same tag. */
struct hold {
	uint64_t tag;
	uint64_t free_ps;
};

struct qp_state {
	uint32_t qpn;
	bool used;
	uint64_t rx_free_ps;	/* the responder takes its next message */
	uint64_t last_reply_ps; /* replies are made in order of requests */
	uint64_t last_sent_ps;	/* and messages leave in order */
	uint64_t last_done_ps;	/* completions are seen in order */
};

struct cache_way {
	uint32_t qpn_plus1; /* 0: empty */
	uint64_t used_at;
};

struct model_nic {
	struct model_params p;
	uint64_t rng;
	struct model_busy link;
	struct model_busy tx;
	struct model_busy rx;
	struct model_busy reads;
	struct model_busy atomics;
	struct model_busy pcie_up;   /* NIC to host: posted writes */
	struct model_busy pcie_down; /* host to NIC: read completions */
	struct model_busy misses;
	struct model_busy chain;
	uint64_t next_stall_ps;
	uint64_t tick;
	uint32_t cache_sets;
	struct model_counters count;
	struct hold bucket[MODEL_BUCKETS_MAX];
	struct hold line[MODEL_LINES];
	struct qp_state qp[MODEL_QPS_MAX];
	struct cache_way cache[MODEL_CACHE_MAX / MODEL_CACHE_WAYS]
			      [MODEL_CACHE_WAYS];
};

static uint64_t mix(uint64_t v)
{
	v ^= v >> 30;
	v *= 0xbf58476d1ce4e5b9ull;
	v ^= v >> 27;
	v *= 0x94d049bb133111ebull;
	return v ^ v >> 31;
}

/* Uniform in [0, 2^16). */
static uint64_t rng_16(struct model_nic *nic)
{
	nic->rng += 0x9e3779b97f4a7c15ull;
	return mix(nic->rng) >> 48;
}

/* Takes a resource for `busy_ps`: when it was taken. */
static uint64_t take(struct model_busy *busy, uint64_t now, uint64_t busy_ps)
{
	return model_busy_take(busy, now, busy_ps, NULL);
}

/* The same: when it was given back. */
static uint64_t use(struct model_busy *busy, uint64_t now, uint64_t busy_ps)
{
	uint64_t end = now;

	(void)model_busy_take(busy, now, busy_ps, &end);
	return end;
}

int model_nic_create(const struct model_params *params, uint64_t seed,
		     struct model_nic **out)
{
	struct model_nic *nic;

	if (params->atomic_slots == 0 || params->atomic_buckets == 0 ||
	    params->atomic_buckets > MODEL_BUCKETS_MAX ||
	    params->qp_cache < MODEL_CACHE_WAYS ||
	    params->qp_cache > MODEL_CACHE_MAX || params->mtu_bytes == 0 ||
	    params->pcie_payload_bytes == 0)
		return -EINVAL;
	nic = calloc(1, sizeof(*nic));
	if (!nic)
		return -ENOMEM;
	nic->p = *params;
	nic->rng = mix(seed + 1);
	nic->cache_sets = (uint32_t)(params->qp_cache / MODEL_CACHE_WAYS);
	nic->next_stall_ps = (params->stall_every_ps * 2 >> 16) * rng_16(nic);
	*out = nic;
	return 0;
}

void model_nic_destroy(struct model_nic *nic)
{
	free(nic);
}

void model_nic_counters(const struct model_nic *nic, struct model_counters *out)
{
	*out = nic->count;
}

/* ---- wire and PCIe ------------------------------------------------------ */

enum wire_bytes {
	/* Preamble and gap 20, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4,
	 * FCS 4. */
	WIRE_FRAME = 82,
	WIRE_RETH = 16,
	WIRE_ATOMIC_ETH = 28,
	WIRE_AETH = 4,
	WIRE_ATOMIC_ACK = 12, /* AETH and the old value */
};

static uint64_t frames(const struct model_params *p, uint64_t bytes)
{
	return bytes == 0 ? 1 : (bytes + p->mtu_bytes - 1) / p->mtu_bytes;
}

static bool is_atomic(const struct model_op *op)
{
	return op->kind == MODEL_CAS || op->kind == MODEL_FAA;
}

uint64_t model_request_bytes(const struct model_params *p,
			     const struct model_op *op)
{
	if (is_atomic(op))
		return WIRE_FRAME + WIRE_ATOMIC_ETH;
	if (op->kind == MODEL_READ)
		return WIRE_FRAME + WIRE_RETH;
	return frames(p, op->bytes) * WIRE_FRAME + op->bytes +
	       (op->kind == MODEL_WRITE ? WIRE_RETH : 0);
}

uint64_t model_response_bytes(const struct model_params *p,
			      const struct model_op *op)
{
	uint64_t n = frames(p, op->bytes);

	if (is_atomic(op))
		return WIRE_FRAME + WIRE_ATOMIC_ACK;
	if (op->kind != MODEL_READ)
		return WIRE_FRAME + WIRE_AETH;
	/* Middle packets of a READ response carry no AETH. */
	return n * WIRE_FRAME + u64_min(n, 2) * WIRE_AETH + op->bytes;
}

uint64_t model_path_ps(const struct model_params *p, unsigned switches)
{
	return p->cable_ps * (switches + 1ull) + p->switch_ps * switches;
}

uint64_t model_pcie_ps(const struct model_params *p, uint64_t bytes)
{
	uint64_t tlps =
		(bytes + p->pcie_payload_bytes - 1) / p->pcie_payload_bytes;

	return (bytes + tlps * p->pcie_tlp_bytes) * p->pcie_ps_per_byte;
}

/* When the NIC has read `bytes` of host memory. */
static uint64_t pcie_read(struct model_nic *nic, uint64_t bytes, uint64_t now)
{
	return use(&nic->pcie_down, now + nic->p.pcie_read_ps,
		   model_pcie_ps(&nic->p, bytes));
}

/* When `bytes` that the NIC writes are in host memory. */
static uint64_t pcie_write(struct model_nic *nic, uint64_t bytes, uint64_t now)
{
	return use(&nic->pcie_up, now, model_pcie_ps(&nic->p, bytes)) +
	       nic->p.pcie_post_ps;
}

/* ---- queue pairs -------------------------------------------------------- */

/*
 * Finds or makes the state of a queue pair. A full table recycles the first
 * entry of the probe: its queue pair forgets when it was busy, no more.
 */
static struct qp_state *qp_get(struct model_nic *nic, uint32_t qpn)
{
	uint32_t first = (uint32_t)mix(qpn) % MODEL_QPS_MAX;

	for (uint32_t i = 0; i < MODEL_QP_PROBES; i++) {
		struct qp_state *qp = &nic->qp[(first + i) % MODEL_QPS_MAX];

		if (qp->used && qp->qpn == qpn)
			return qp;
		if (!qp->used) {
			*qp = (struct qp_state){.qpn = qpn, .used = true};
			return qp;
		}
	}
	nic->qp[first] = (struct qp_state){.qpn = qpn, .used = true};
	return &nic->qp[first];
}

/* The context of a queue pair must be on the NIC: when it is. */
static uint64_t qp_context(struct model_nic *nic, uint32_t qpn, uint64_t now)
{
	struct cache_way *set =
		nic->cache[(uint32_t)mix(qpn) % nic->cache_sets];
	struct cache_way *oldest = &set[0];

	nic->tick++;
	for (uint32_t i = 0; i < MODEL_CACHE_WAYS; i++) {
		if (set[i].qpn_plus1 == qpn + 1) {
			set[i].used_at = nic->tick;
			return now;
		}
		if (set[i].used_at < oldest->used_at)
			oldest = &set[i];
	}
	/* The first fetches after start are not what a cache miss costs. */
	bool cold = oldest->qpn_plus1 == 0;

	oldest->qpn_plus1 = qpn + 1;
	oldest->used_at = nic->tick;
	if (cold)
		return now;
	nic->count.qp_misses++;
	return take(&nic->misses, now, nic->p.qp_miss_ps) + nic->p.pcie_read_ps;
}

/* What a queue pair sends leaves in order, whatever each had to wait for. */
static uint64_t qp_send(struct model_nic *nic, uint32_t qpn, uint64_t bytes,
			uint64_t now)
{
	struct qp_state *qp = qp_get(nic, qpn);

	qp->last_sent_ps = use(&nic->link, u64_max(now, qp->last_sent_ps),
			       bytes * nic->p.link_ps_per_byte);
	return qp->last_sent_ps;
}

/* ---- the requester ------------------------------------------------------ */

uint64_t model_post(struct model_nic *nic, const struct model_op *op,
		    uint32_t wqes, uint64_t now)
{
	uint64_t t = now + nic->p.cpu_post_ps + nic->p.pcie_post_ps;

	if (wqes > nic->p.push_wqes)
		return pcie_read(nic, wqes * nic->p.wqe_bytes, t);
	if ((op->kind == MODEL_WRITE || op->kind == MODEL_SEND) &&
	    op->bytes <= nic->p.inline_bytes)
		t += op->bytes * nic->p.push_ps_per_byte;
	return t;
}

uint64_t model_post_more(struct model_nic *nic, uint64_t now)
{
	return pcie_read(nic, nic->p.wqe_bytes,
			 now + nic->p.cpu_post_ps + nic->p.pcie_post_ps);
}

uint64_t model_tx_request(struct model_nic *nic, const struct model_op *op,
			  uint64_t now)
{
	const struct model_params *p = &nic->p;
	uint64_t others = op->active_qps > 1 ? op->active_qps - 1 : 0;
	uint64_t t = op->continues ? now : qp_context(nic, op->qpn, now);

	t += u64_min(others, p->qp_sched_max - 1) * p->qp_sched_ps;
	if ((op->kind == MODEL_WRITE || op->kind == MODEL_SEND) &&
	    op->bytes > p->inline_bytes)
		t = pcie_read(nic, op->bytes, t);
	t = take(&nic->tx, t, op->continues ? 0 : p->message_ps) + p->nic_tx_ps;
	return qp_send(nic, op->qpn, model_request_bytes(p, op), t);
}

uint64_t model_complete(struct model_nic *nic, const struct model_op *op,
			uint64_t now)
{
	struct qp_state *qp = qp_get(nic, op->qpn);
	uint64_t t = now + nic->p.nic_rx_ps;

	if (op->kind == MODEL_READ || is_atomic(op))
		t = pcie_write(nic, op->bytes, t);
	else
		t += nic->p.pcie_post_ps;
	qp->last_done_ps = u64_max(qp->last_done_ps, t + nic->p.cpu_poll_ps);
	return qp->last_done_ps;
}

/* ---- the responder ------------------------------------------------------ */

/*
 * Now and then one access to host memory takes long: address translation,
 * refresh, a CPU's burst. It is a rate in time, not per operation, because a
 * loaded queue pair keeps its full rate. Other queue pairs go on, so this is
 * what reorders operations across queue pairs.
 */
static uint64_t stall(struct model_nic *nic, uint64_t now)
{
	uint64_t u, len;

	if (nic->p.stall_every_ps == 0 || now < nic->next_stall_ps)
		return 0;
	nic->next_stall_ps =
		now + (nic->p.stall_every_ps * 2 >> 16) * rng_16(nic);
	nic->count.stalls++;
	/* The cube of a uniform number: mostly short, seldom the longest. */
	u = rng_16(nic);
	len = nic->p.stall_max_ps >> 16;
	return len * (u * u >> 16) / 65536 * u;
}

static uint64_t atomic_hold_ps(const struct model_params *p,
			       const struct model_op *op)
{
	if (op->kind == MODEL_FAA)
		return op->in_device ? p->faa_device_ps : p->faa_host_ps;
	return op->in_device ? p->cas_device_ps : p->cas_host_ps;
}

/*
 * One atomic at a time per bucket: in host memory it holds the bucket and one
 * of few slots for a PCIe round trip, in device memory the bucket only. The
 * slots are booked as one resource that is as many times faster.
 */
static uint64_t rx_atomic(struct model_nic *nic, const struct model_op *op,
			  uint64_t now)
{
	struct hold *bucket = &nic->bucket[op->addr % nic->p.atomic_buckets];
	uint64_t hold_ps = atomic_hold_ps(&nic->p, op);
	uint64_t start = take(&nic->reads, now, nic->p.read_engine_ps);

	if (bucket->free_ps > start)
		nic->count.atomic_waits++;
	start = u64_max(start, bucket->free_ps);
	if (!op->in_device) {
		start = take(&nic->atomics, start,
			     hold_ps / nic->p.atomic_slots);
		start += stall(nic, start);
	}
	bucket->tag = op->addr;
	bucket->free_ps = start + hold_ps;
	return start + hold_ps;
}

/*
 * Plain accesses to one cache line exclude each other where the published
 * data shows it, and wait for an atomic on the same word.
 */
static uint64_t line_wait(struct model_nic *nic, const struct model_op *op,
			  uint64_t now)
{
	struct hold *bucket = &nic->bucket[op->addr % nic->p.atomic_buckets];
	uint64_t tag = (op->addr / CACHE_LINE) << 1 | op->in_device;
	struct hold *line = &nic->line[mix(tag) % MODEL_LINES];
	uint64_t hold_ps = 0, start = now;

	if (op->kind == MODEL_READ && !op->in_device)
		hold_ps = nic->p.line_read_host_ps;
	else if (op->kind == MODEL_WRITE && op->in_device)
		hold_ps = nic->p.line_write_device_ps;
	if (bucket->tag == op->addr)
		start = u64_max(start, bucket->free_ps);
	if (hold_ps == 0)
		return start;
	if (line->tag == tag)
		start = u64_max(start, line->free_ps);
	line->tag = tag;
	line->free_ps = start + hold_ps;
	return start;
}

static uint64_t rx_read(struct model_nic *nic, const struct model_op *op,
			uint64_t now)
{
	uint64_t t = line_wait(nic, op, now);

	t = take(&nic->reads, t, nic->p.read_engine_ps);
	if (op->in_device)
		return t;
	/* Only this access is late: the bus is not booked for its stall. */
	return pcie_read(nic, op->bytes, t) + stall(nic, t);
}

/* One queue pair takes one message after the other. */
static uint64_t rx_begin(struct model_nic *nic, struct qp_state *qp,
			 const struct model_op *op, uint64_t now)
{
	const struct model_params *p = &nic->p;
	uint64_t t;

	if (op->continues)
		return u64_max(now + p->nic_rx_ps, qp->rx_free_ps);
	t = qp_context(nic, op->qpn, now);
	t = take(&nic->rx, t, p->message_ps) + p->nic_rx_ps;
	t = u64_max(t, qp->rx_free_ps);
	qp->rx_free_ps = t + (op->in_device ? p->qp_device_ps : p->qp_host_ps);
	return t;
}

uint64_t model_rx_request(struct model_nic *nic, const struct model_op *op,
			  uint64_t now, uint64_t *memory_ps)
{
	struct qp_state *qp = qp_get(nic, op->qpn);
	uint64_t t = rx_begin(nic, qp, op, now), visible;

	nic->count.ops++;
	if (is_atomic(op)) {
		visible = t = rx_atomic(nic, op, t);
	} else if (op->kind == MODEL_READ) {
		visible = t = rx_read(nic, op, t);
	} else {
		t = line_wait(nic, op, t);
		visible = t;
		if (!op->in_device) {
			uint64_t late = stall(nic, t);

			visible = pcie_write(nic, op->bytes, t) + late;
			t = op->notifies ? visible : t + late;
		}
	}
	t = u64_max(t, qp->last_reply_ps);
	qp->last_reply_ps = t;
	if (memory_ps)
		*memory_ps = u64_max(visible, t);
	return t;
}

uint64_t model_tx_response(struct model_nic *nic, const struct model_op *op,
			   uint64_t now)
{
	uint64_t t = now;

	/* The data of a long READ streams in while it is sent. */
	if (op->continues && !op->in_device)
		t = use(&nic->pcie_down, t, model_pcie_ps(&nic->p, op->bytes));
	/* The receive pipeline makes acknowledgements; data is sent like a
	 * message. */
	if (op->kind == MODEL_READ || is_atomic(op))
		t = take(&nic->tx, t, op->continues ? 0 : nic->p.message_ps) +
		    nic->p.nic_tx_ps;
	return qp_send(nic, op->qpn, model_response_bytes(&nic->p, op), t);
}

/* ---- chains of work requests on the NIC --------------------------------- */

static uint64_t chain_begin(struct model_nic *nic, bool fetched, uint64_t now)
{
	uint64_t t = take(&nic->chain, now, nic->p.chain_wr_ps);

	return fetched ? t : pcie_read(nic, nic->p.wqe_bytes, t);
}

uint64_t model_chain_local(struct model_nic *nic, const struct model_op *op,
			   uint32_t sges, bool fetched, uint64_t now)
{
	const struct model_params *p = &nic->p;
	uint64_t begun = chain_begin(nic, fetched, now), t;

	/* Out and in again through the NIC's own pipelines. */
	t = take(&nic->tx, begun, p->message_ps) + p->nic_tx_ps;
	t = take(&nic->rx, t, p->message_ps) + p->nic_rx_ps;
	if (op->kind == MODEL_WRITE || op->kind == MODEL_SEND) {
		t = pcie_read(nic, op->bytes, t);
		(void)pcie_write(nic, op->bytes, t); /* nobody waits for it */
		return begun;
	}
	t = is_atomic(op) ? rx_atomic(nic, op, t) : rx_read(nic, op, t);
	return t + p->nic_tx_ps + p->nic_rx_ps +
	       (sges > 1 ? sges - 1 : 0) * p->chain_sge_ps;
}

uint64_t model_chain_remote(struct model_nic *nic, const struct model_op *op,
			    bool fetched, uint64_t now)
{
	uint64_t t = chain_begin(nic, fetched, now);

	if (op->bytes > nic->p.inline_bytes)
		t = pcie_read(nic, op->bytes, t);
	t = take(&nic->tx, t, nic->p.message_ps) + nic->p.nic_tx_ps;
	return qp_send(nic, op->qpn, model_request_bytes(&nic->p, op), t);
}

uint64_t model_chain_fetch(struct model_nic *nic, uint64_t now)
{
	return chain_begin(nic, false, now);
}

uint64_t model_chain_order(struct model_nic *nic, uint64_t now)
{
	return take(&nic->chain, now, nic->p.chain_wr_ps) +
	       nic->p.chain_order_ps;
}
