/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two NICs and a wire between them, for tests: a clock that the test moves, a
 * queue of frames that it can inspect, drop, double, damage and deliver.
 */
#ifndef AQ_TEST_NIC_PAIR_H
#define AQ_TEST_NIC_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "core/nic.h"
#include "wire/wire.h"

enum {
	PAIR_QUEUE = 4096,
};

struct pair_frame {
	size_t len;
	unsigned to;   /* which NIC it goes to */
	uint32_t from; /* as its receiver is told */
	uint8_t bytes[WIRE_FRAME_MAX];
};

struct pair;

struct pair_env {
	struct env env;
	struct pair *pair;
	unsigned index;
	struct nic *nic;
};

struct pair {
	struct pair_env side[2];
	uint64_t now_ns;
	struct rng rng;
	struct pair_frame *queue;
	uint32_t head, tail;
	uint32_t capacity;     /* frames the wire takes before it is full */
	uint32_t window_bytes; /* not 0: the wire loses, and takes so much */
	enum env_peer peer;    /* what is known of it ... */
	uint64_t turns;	       /* ... how often it had its turn ... */
	uint64_t since_turns;  /* ... and since when that was asked for */
	bool near; /* both have one address, with a cable between them */
	uint32_t paths_open, paths_opened;
	/* Random words go through it, when set. */
	uint32_t (*shape)(struct pair *p, uint32_t word);
	unsigned shape_calls;
};

enum {
	OWNER_EVENTS = 16,
};

/* Owner of a test's QP, CQ or SRQ: what the NIC told about it. */
struct owner {
	unsigned cq_events;
	unsigned event_count, event_next;
	enum ibv_event_type events[OWNER_EVENTS];
};

static inline void owner_cq_event(struct nic_cq *cq, void *owner)
{
	((struct owner *)owner)->cq_events++;
}

static inline void owner_async_event(void *owner, enum ibv_event_type type)
{
	struct owner *o = owner;

	o->events[o->event_count++ % OWNER_EVENTS] = type;
}

static const struct nic_upcalls pair_upcalls = {
	.cq_event = owner_cq_event,
	.async_event = owner_async_event,
};

static inline void expect_event(struct owner *o, enum ibv_event_type type)
{
	assert_true(o->event_next < o->event_count);
	assert_int_equal(o->events[o->event_next++ % OWNER_EVENTS], type);
}

static inline void expect_no_event(const struct owner *o)
{
	assert_int_equal(o->event_next, o->event_count);
}

static uint64_t pair_now(struct env *env)
{
	return container_of(env, struct pair_env, env)->pair->now_ns;
}

static void pair_random(struct env *env, void *buf, size_t len)
{
	struct pair *p = container_of(env, struct pair_env, env)->pair;
	uint32_t word;

	rng_fill(&p->rng, buf, len);
	if (p->shape && len == sizeof(word)) {
		memcpy(&word, buf, len);
		word = p->shape(p, word);
		p->shape_calls++;
		memcpy(buf, &word, len);
	}
}

static void pair_relax(struct env *env)
{
}

static void *pair_pages(struct env *env, size_t len)
{
	return calloc(1, len);
}

static void pair_pages_free(struct env *env, void *pages, size_t len)
{
	free(pages);
}

/* The path is the env of the side that it leads to: QPN slots are 1 and 2. */
static int pair_path_open(struct env *env, const struct env_addr *dst,
			  uint32_t qpn, struct env_path **path)
{
	struct pair *p = container_of(env, struct pair_env, env)->pair;
	uint32_t slot = qpn >> NIC_QPN_INDEX_BITS;

	/* Management is sent to whoever has the address. */
	if (qpn == NIC_GSI_INDEX)
		slot = dst->ip[15];
	if (slot != 1 && slot != 2)
		return -EHOSTUNREACH;
	*path = (struct env_path *)&p->side[slot - 1];
	p->paths_open++;
	p->paths_opened++;
	return 0;
}

static void pair_path_close(struct env *env, struct env_path *path)
{
	struct pair *p = container_of(env, struct pair_env, env)->pair;

	assert_true(p->paths_open > 0);
	p->paths_open--;
}

static uint8_t *pair_tx_begin(struct env *env, struct env_path *path,
			      size_t max)
{
	struct pair *p = container_of(env, struct pair_env, env)->pair;

	/* A port's buffers are of this size: more could never be had. */
	assert_true(max <= WIRE_FRAME_MAX);
	if (p->head - p->tail >= p->capacity)
		return NULL;
	return p->queue[p->head % PAIR_QUEUE].bytes;
}

static void pair_tx_end(struct env *env, struct env_path *path, size_t len)
{
	struct pair *p = container_of(env, struct pair_env, env)->pair;
	struct pair_frame *f = &p->queue[p->head % PAIR_QUEUE];

	if (len == 0)
		return;
	f->len = len;
	f->to = ((struct pair_env *)path)->index;
	f->from = p->near ? container_of(env, struct pair_env, env)->index + 1
			  : NIC_FROM_NET;
	p->head++;
}

static uint32_t pair_from(struct env *env, struct env_path *path)
{
	const struct pair_env *to = (const struct pair_env *)path;

	return to->pair->near ? to->index + 1 : NIC_FROM_NET;
}

static uint64_t pair_turns(struct env *env, struct env_path *path)
{
	return container_of(env, struct pair_env, env)->pair->turns;
}

static enum env_peer pair_peer(struct env *env, struct env_path *path,
			       uint64_t since_turns)
{
	struct pair *p = container_of(env, struct pair_env, env)->pair;

	p->since_turns = since_turns;
	return p->peer;
}

static uint32_t pair_window(struct env *env, struct env_path *path)
{
	return container_of(env, struct pair_env, env)->pair->window_bytes;
}

static const struct env_ops pair_env_ops = {
	.now_ns = pair_now,
	.random = pair_random,
	.relax = pair_relax,
	.pages_alloc = pair_pages,
	.pages_free = pair_pages_free,
	.path_open = pair_path_open,
	.path_close = pair_path_close,
	.tx_begin = pair_tx_begin,
	.tx_end = pair_tx_end,
	.path_from = pair_from,
	.path_turns = pair_turns,
	.path_peer = pair_peer,
	.path_window_bytes = pair_window,
};

static inline void pair_init_as(struct pair *p, bool near)
{
	unsigned i;

	memset(p, 0, sizeof(*p));
	p->near = near;
	p->now_ns = 1000;
	p->capacity = 1024;
	rng_init(&p->rng, 42);
	p->queue = calloc(PAIR_QUEUE, sizeof(*p->queue));
	assert_non_null(p->queue);
	for (i = 0; i < 2; i++) {
		struct nic_config cfg = {
			.slot = i + 1,
			.own_is_near = near,
			.gid_count = 2,
			.node_guid = i + 1,
		};
		static const uint8_t ip4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
		static const uint8_t ip6[16] = {0xfd, 0xaa, [15] = 1};

		memcpy(cfg.gids[0].ip, ip4, 16);
		memcpy(cfg.gids[1].ip, ip6, 16);
		cfg.gids[0].ip[15] = cfg.gids[1].ip[15] =
			(uint8_t)(near ? 1 : i + 1);
		cfg.gids[0].mac[0] = cfg.gids[1].mac[0] = 2;
		p->side[i].env.ops = &pair_env_ops;
		p->side[i].pair = p;
		p->side[i].index = i;
		assert_int_equal(
			nic_create(&p->side[i].env, &cfg, &p->side[i].nic), 0);
		nic_set_upcalls(p->side[i].nic, &pair_upcalls);
	}
}

static inline void pair_init(struct pair *p)
{
	pair_init_as(p, false);
}

static inline void pair_release(struct pair *p)
{
	nic_destroy(p->side[0].nic);
	nic_destroy(p->side[1].nic);
	assert_int_equal(p->paths_open, 0);
	free(p->queue);
}

static inline void pair_deliver(struct pair *p)
{
	struct pair_frame f = p->queue[p->tail++ % PAIR_QUEUE];

	nic_input(p->side[f.to].nic, f.bytes, f.len, f.from);
}

/* Until nothing moves any more; the clock stands still. */
static inline void pair_run(struct pair *p)
{
	unsigned steps = 0;
	bool more = true;

	while (more) {
		while (p->tail != p->head)
			pair_deliver(p);
		more = nic_flush(p->side[0].nic);
		more |= nic_flush(p->side[1].nic);
		more |= nic_has_walks(p->side[0].nic) ||
			nic_has_walks(p->side[1].nic);
		more |= p->tail != p->head;
		assert_true(++steps < 100000);
	}
}

static inline void pair_advance(struct pair *p, uint64_t ns)
{
	p->now_ns += ns;
	nic_tick(p->side[0].nic);
	nic_tick(p->side[1].nic);
	pair_run(p);
}

/* ---- one connection ----------------------------------------------------- */

enum {
	END_BYTES = 1 << 18,
	END_PSN = 0xfffff0, /* wraps soon */
	END_RD_ATOMIC = 8,
	END_WR = 64,
	END_SGE = 32,
	END_INLINE = 256,
};

struct end {
	struct nic *nic;
	struct nic_pd *pd;
	struct nic_cq *scq, *rcq;
	struct nic_srq *srq;
	struct nic_qp *qp;
	struct nic_mr *mr;
	uint8_t *mem;
	uint32_t key;
	struct owner qp_o, scq_o, rcq_o, srq_o;
};

struct conn {
	struct pair p;
	struct end e[2];
	enum ibv_mtu mtu;
};

enum {
	END_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
		     IBV_ACCESS_MW_BIND,
};

/* A queue pair on what `e` has already. */
static inline void end_add_qp(struct end *e, enum ibv_qp_type type)
{
	struct nic_qp_attr qp = {
		.type = type,
		.cap = {.max_send_wr = END_WR,
			.max_recv_wr = END_WR,
			.max_send_sge = END_SGE,
			.max_recv_sge = END_SGE,
			.max_inline_data = END_INLINE},
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.srq = e->srq,
		.owner = &e->qp_o,
	};

	assert_int_equal(nic_qp_create(e->pd, &qp, &e->qp), 0);
}

/* A second queue pair with the domain, queues and memory of `base`; only the
 * queue pair is its own. */
static inline void end_share(struct end *e, const struct end *base,
			     enum ibv_qp_type type)
{
	*e = *base;
	memset(&e->qp_o, 0, sizeof(e->qp_o));
	end_add_qp(e, type);
}

static inline void end_init(struct end *e, struct nic *nic,
			    enum ibv_qp_type type)
{
	struct nic_mr_attr mr = {.length = END_BYTES, .access = END_ACCESS};

	e->nic = nic;
	e->mem = aligned_alloc(4096, END_BYTES);
	assert_non_null(e->mem);
	memset(e->mem, 0, END_BYTES);
	mr.addr = e->mem;
	mr.iova = (uintptr_t)e->mem;
	assert_int_equal(nic_pd_create(nic, &e->pd), 0);
	assert_int_equal(nic_cq_create(nic, 256, &e->scq_o, &e->scq), 0);
	assert_int_equal(nic_cq_create(nic, 256, &e->rcq_o, &e->rcq), 0);
	assert_int_equal(nic_mr_reg(e->pd, &mr, &e->mr), 0);
	e->key = nic_mr_key(e->mr);
	end_add_qp(e, type);
}

static inline void end_release(struct end *e)
{
	if (e->qp)
		nic_qp_destroy(e->qp);
	if (e->srq)
		assert_int_equal(nic_srq_destroy(e->srq), 0);
	assert_int_equal(nic_mr_dereg(e->mr), 0);
	assert_int_equal(nic_cq_destroy(e->scq), 0);
	assert_int_equal(nic_cq_destroy(e->rcq), 0);
	assert_int_equal(nic_pd_destroy(e->pd), 0);
	free(e->mem);
}

static inline void end_connect(struct end *e, const struct end *peer,
			       enum ibv_mtu mtu)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = END_ACCESS & 0xf,
	};

	assert_int_equal(nic_qp_modify(e->qp, &a,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = mtu;
	a.dest_qp_num = nic_qp_number(peer->qp);
	a.rq_psn = END_PSN;
	a.max_dest_rd_atomic = END_RD_ATOMIC;
	a.min_rnr_timer = 1;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	memcpy(a.ah_attr.grh.dgid.raw, nic_get_config(peer->nic)->gids[0].ip,
	       16);
	assert_int_equal(nic_qp_modify(e->qp, &a,
				       IBV_QP_STATE | IBV_QP_AV |
					       IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC |
					       IBV_QP_MIN_RNR_TIMER),
			 0);
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = END_PSN;
	a.timeout = 10;
	a.retry_cnt = 3;
	a.rnr_retry = 3;
	a.max_rd_atomic = END_RD_ATOMIC;
	assert_int_equal(
		nic_qp_modify(e->qp, &a,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

static inline void conn_init_as(struct conn *c, enum ibv_mtu mtu, bool near)
{
	memset(c, 0, sizeof(*c));
	pair_init_as(&c->p, near);
	c->mtu = mtu;
	end_init(&c->e[0], c->p.side[0].nic, IBV_QPT_RC);
	end_init(&c->e[1], c->p.side[1].nic, IBV_QPT_RC);
	end_connect(&c->e[0], &c->e[1], mtu);
	end_connect(&c->e[1], &c->e[0], mtu);
}

static inline void conn_init(struct conn *c, enum ibv_mtu mtu)
{
	conn_init_as(c, mtu, false);
}

static inline void qp_to(struct nic_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = {.qp_state = state};

	assert_int_equal(nic_qp_modify(qp, &a, IBV_QP_STATE), 0);
}

/* After a failure: both ends start again. Enough time goes by for the guard to
 * forget what happened. */
static inline void conn_restart(struct conn *c)
{
	c->p.tail = c->p.head;
	c->p.now_ns += 11000000000ull;
	qp_to(c->e[0].qp, IBV_QPS_RESET);
	qp_to(c->e[1].qp, IBV_QPS_RESET);
	end_connect(&c->e[0], &c->e[1], c->mtu);
	end_connect(&c->e[1], &c->e[0], c->mtu);
}

static inline void conn_release(struct conn *c)
{
	end_release(&c->e[0]);
	end_release(&c->e[1]);
	pair_release(&c->p);
}

/* Takes one completion off a queue and checks it. */
static inline struct nic_cqe expect_cqe(struct nic_cq *cq, uint64_t wr_id,
					enum ibv_wc_status status)
{
	const struct nic_cqe *cqe = nic_cq_peek(cq);
	struct nic_cqe copy;

	assert_non_null(cqe);
	copy = *cqe;
	nic_cq_pop(cq);
	assert_int_equal(copy.status, status);
	assert_int_equal(copy.wr_id, wr_id);
	return copy;
}

static inline void expect_no_cqe(struct nic_cq *cq)
{
	assert_null(nic_cq_peek(cq));
}

/* A request over [at, at + len) of both ends' memory. */
static inline int post(struct end *e, const struct end *peer,
		       enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t at,
		       uint32_t len)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->mem + at, .length = len, .lkey = e->key};
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = len ? 1 : 0,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
	int err;

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->mem + at;
		wr.wr.atomic.rkey = peer->key;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 7;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->mem + at;
		wr.wr.rdma.rkey = peer->key;
	}
	err = nic_qp_post_send(e->qp, &wr, NULL);
	if (!err)
		nic_qp_kick(e->qp);
	return err;
}

static inline int post_recv(struct end *e, uint64_t wr_id, uint32_t at,
			    uint32_t len)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->mem + at, .length = len, .lkey = e->key};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	return nic_qp_post_recv(e->qp, &wr);
}

static inline uint64_t counter(const struct end *e, enum nic_counter c)
{
	return nic_counter_get(e->nic, c);
}

/* One operation of end 0 on end 1's memory under any key and address; its
 * status. Local bytes are at offset 0. Failed connections are renewed. */
static inline enum ibv_wc_status remote_op(struct conn *c,
					   enum ibv_wr_opcode opcode,
					   uint32_t rkey, uint64_t va,
					   uint32_t len)
{
	struct end *a = &c->e[0];
	struct ibv_sge sge = {
		.addr = (uintptr_t)a->mem, .length = len, .lkey = a->key};
	struct ibv_send_wr wr = {
		.wr_id = 77,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
	const struct nic_cqe *cqe;
	enum ibv_wc_status status;

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = va;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = va;
		wr.wr.rdma.rkey = rkey;
	}
	assert_int_equal(nic_qp_post_send(a->qp, &wr, NULL), 0);
	nic_qp_kick(a->qp);
	pair_run(&c->p);
	cqe = nic_cq_peek(a->scq);
	assert_non_null(cqe);
	status = (enum ibv_wc_status)cqe->status;
	nic_cq_pop(a->scq);
	if (status != IBV_WC_SUCCESS)
		conn_restart(c);
	return status;
}

/* ---- packets made by hand ----------------------------------------------- */

/* As `from` would send it to `to`; the caller fills in the rest. */
static inline struct wire_pkt packet(const struct end *from,
				     const struct end *to, uint8_t opcode,
				     uint32_t psn)
{
	struct wire_pkt pkt = {
		.opcode = opcode,
		.psn = psn & WIRE_PSN_MASK,
		.ttl = 64,
		.src_port = 0xc000,
		.mig_req = true,
		.ack_req = true,
		.pkey = 0xffff,
		.dest_qpn = nic_qp_number(to->qp),
		.src_qpn = nic_qp_number(from->qp),
		.rkey = to->key,
		.va = (uintptr_t)to->mem,
		.syndrome = WIRE_ACK_UNLIMITED,
	};

	memcpy(pkt.src_ip, nic_get_config(from->nic)->gids[0].ip, 16);
	memcpy(pkt.dst_ip, nic_get_config(to->nic)->gids[0].ip, 16);
	return pkt;
}

static inline void inject_from(const struct end *to, const struct wire_pkt *pkt,
			       uint32_t from)
{
	uint8_t frame[WIRE_FRAME_MAX];
	size_t len = wire_build(pkt, frame);

	nic_input(to->nic, frame, len, from);
}

static inline void inject(const struct end *to, const struct wire_pkt *pkt)
{
	inject_from(to, pkt, NIC_FROM_NET);
}

/* The next frame that is on the wire; false: none. */
static inline bool take_packet(struct pair *p, struct wire_pkt *pkt)
{
	const struct pair_frame *f = &p->queue[p->tail % PAIR_QUEUE];

	if (p->tail == p->head)
		return false;
	assert_int_equal(wire_parse(f->bytes, f->len, pkt), WIRE_OK);
	p->tail++;
	return true;
}

/* The next frame is an acknowledgement with this syndrome and number. */
static inline void expect_ack(struct pair *p, uint8_t syndrome, uint32_t psn)
{
	struct wire_pkt pkt;

	assert_true(take_packet(p, &pkt));
	assert_int_equal(pkt.opcode, WIRE_RC_ACK);
	assert_int_equal(pkt.syndrome, syndrome);
	assert_int_equal(pkt.psn, psn & WIRE_PSN_MASK);
}

#endif
