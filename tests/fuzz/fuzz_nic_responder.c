/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole NIC against its peers: the input is a script of packets, posts, state
 * changes, revocations and time. Packets have their checksum made right, so
 * that they get behind the parser. Memory that no key opens stays as it was,
 * and everything the NIC sends is a packet.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "core/cq_priv.h"
#include "core/qp_priv.h"
#include "fuzz.h"

enum {
	QPS = 6,
	KEYS = 4,
	STEPS_MAX = 2000,
	REGION_BYTES = 4096,
	CANARY = 0x5a,
	QKEY = 3,
	CQ_SIZE = 32,
	WALK_ROOM = 3,
	WALK_NODE = 24,
};

/* Parts of the arena, each of REGION_BYTES; keys open only two of them. */
enum part {
	PART_GUARD_0,
	PART_OPEN, /* everything is allowed */
	PART_GUARD_1,
	PART_READ, /* may be read */
	PART_GUARD_2,
	PARTS,
};

struct script {
	const uint8_t *at;
	size_t left;
};

static uint8_t next_u8(struct script *s)
{
	if (s->left == 0)
		return 0;
	s->left--;
	return *s->at++;
}

static uint16_t next_u16(struct script *s)
{
	uint8_t low = next_u8(s);

	return (uint16_t)(low | next_u8(s) << 8);
}

struct fuzz {
	struct env env;
	struct script s;
	uint64_t now_ns;
	struct rng rng;
	bool full; /* the paths take nothing */
	uint32_t paths;
	uint8_t frame[WIRE_FRAME_MAX];
	struct nic *nic;
	struct nic_pd *pd[2];
	struct nic_cq *cq;
	struct nic_srq *srq;
	struct nic_mr *mr[KEYS];
	struct nic_mw *mw;
	struct nic_ah *ah;
	struct nic_qp *qp[QPS];
	struct nic_walk *walk[WALK_ROOM]; /* that are under way */
	uint64_t walk_at[WALK_ROOM];
	uint8_t *arena;
};

/* ---- env ----------------------------------------------------------------- */

static struct fuzz *fuzz_of(struct env *env)
{
	return container_of(env, struct fuzz, env);
}

static uint64_t env_now(struct env *env)
{
	return fuzz_of(env)->now_ns;
}

static void env_rand(struct env *env, void *buf, size_t len)
{
	rng_fill(&fuzz_of(env)->rng, buf, len);
}

static void *env_pages(struct env *env, size_t len)
{
	return calloc(1, len);
}

static void env_pages_free(struct env *env, void *pages, size_t len)
{
	free(pages);
}

static int env_open(struct env *env, const struct env_addr *dst, uint32_t qpn,
		    struct env_path **path)
{
	struct fuzz *f = fuzz_of(env);

	f->paths++;
	*path = (struct env_path *)f;
	return 0;
}

static void env_close(struct env *env, struct env_path *path)
{
	ASSERT(fuzz_of(env)->paths-- > 0);
}

static uint8_t *env_tx_begin(struct env *env, struct env_path *path, size_t max)
{
	struct fuzz *f = fuzz_of(env);

	ASSERT(max <= WIRE_FRAME_MAX);
	return f->full ? NULL : f->frame;
}

static void env_tx_end(struct env *env, struct env_path *path, size_t len)
{
	struct wire_pkt pkt;

	if (len)
		ASSERT(wire_parse(fuzz_of(env)->frame, len, &pkt) == WIRE_OK);
}

static const struct env_ops ops = {
	.now_ns = env_now,
	.random = env_rand,
	.pages_alloc = env_pages,
	.pages_free = env_pages_free,
	.path_open = env_open,
	.path_close = env_close,
	.tx_begin = env_tx_begin,
	.tx_end = env_tx_end,
};

static void on_cq_event(struct nic_cq *cq, void *owner)
{
	ASSERT(owner);
}

static void on_event(void *owner, enum ibv_event_type type)
{
	ASSERT(owner);
}

static const struct nic_upcalls upcalls = {
	.cq_event = on_cq_event,
	.async_event = on_event,
};

/* ---- a walker ------------------------------------------------------------ */

static int walk_start(void *ctx, struct nic_walk *walk)
{
	struct fuzz *f = ctx;

	ASSERT(walk->send_bytes <= walk->pad_room);
	ASSERT(walk->answer_bytes <= walk->pad_room);
	if (walk->program % 4 == 3)
		return -ENOENT;
	for (unsigned i = 0; i < WALK_ROOM; i++) {
		if (f->walk[i])
			continue;
		f->walk[i] = walk;
		f->walk_at[i] = walk->at;
		return 0;
	}
	return -EAGAIN;
}

static void walk_end(struct fuzz *f, unsigned i, uint8_t status)
{
	struct nic_walk *walk = f->walk[i];

	f->walk[i] = NULL;
	nic_walk_done(walk, status, f->walk_at[i], walk->iterations,
		      walk->pad[0]);
}

/* What memory says is the next pointer; all of the pad is used. */
static void walk_step(struct fuzz *f, unsigned i)
{
	static const uint8_t status[] = {
		[NIC_WALK_ELSEWHERE] = WALK_WIRE_ELSEWHERE,
		[NIC_WALK_FAULT] = WALK_WIRE_FAULT,
		[NIC_WALK_NO_RIGHT] = WALK_WIRE_NO_RIGHT,
	};
	struct nic_walk *walk = f->walk[i];
	bool stores = walk->program % 2;
	enum nic_walk_where where;
	uint8_t *host;

	where = nic_walk_reach(walk, f->walk_at[i], WALK_NODE, stores, &host);
	if (where != NIC_WALK_HERE) {
		walk_end(f, i, status[where]);
		return;
	}
	memset(walk->pad, host[0], walk->pad_room);
	if (stores)
		memset(host, 1 + (int)walk->iterations, WALK_NODE);
	memcpy(&f->walk_at[i], host + 1, sizeof(f->walk_at[i]));
	f->walk_at[i] %= 3 * REGION_BYTES + 64;
	if (walk->iterations-- % 8 == 0)
		walk_end(f, i, WALK_WIRE_DONE);
}

static bool walk_turn(void *ctx, uint32_t iterations)
{
	struct fuzz *f = ctx;
	bool more = false;

	for (unsigned i = 0; i < WALK_ROOM && iterations--; i++)
		if (f->walk[i])
			walk_step(f, i);
	for (unsigned i = 0; i < WALK_ROOM; i++)
		more |= f->walk[i] != NULL;
	return more;
}

static void walk_forget(void *ctx, struct nic_walk *walk)
{
	struct fuzz *f = ctx;
	unsigned i = 0;

	while (f->walk[i] != walk)
		ASSERT(++i < WALK_ROOM);
	f->walk[i] = NULL;
}

/* ---- the NIC and its objects --------------------------------------------- */

static const uint8_t our_ip[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t peer_ip[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};

static uint32_t peer_qpn(unsigned i)
{
	return 2u << NIC_QPN_INDEX_BITS | i;
}

static const enum ibv_qp_type qp_types[QPS] = {
	IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_RC, IBV_QPT_RC,
};

static uint8_t *part(const struct fuzz *f, enum part p)
{
	return f->arena + p * REGION_BYTES;
}

static void must(int err)
{
	ASSERT(err == 0);
}

/* Scripts ask for things that are not allowed: full queues, wrong states, bad
 * arguments. Both answers are fine. */
static void may_be_refused(int err)
{
	ASSERT(err == 0 || err == -EINVAL || err == -ENOMEM ||
	       err == -EOPNOTSUPP);
}

static void make_mr(struct fuzz *f, unsigned i)
{
	static const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			       IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
	static const int access[KEYS] = {all, IBV_ACCESS_REMOTE_READ,
					 all | IBV_ACCESS_ZERO_BASED, all};
	struct nic_mr_attr attr = {
		.addr = part(f, i == 1 ? PART_READ : PART_OPEN),
		.length = REGION_BYTES,
		.access = access[i],
	};

	attr.iova = (uintptr_t)attr.addr;
	must(nic_mr_reg(f->pd[i == 3], &attr, &f->mr[i]));
	/* One of them is a piece of a striped region, for walks. */
	if (i == 2)
		must(nic_mr_set_place(f->mr[i],
				      &(struct nic_place){.space = 7,
							  .index = 1,
							  .count = 3,
							  .shift = 8}));
}

static void modify(struct fuzz *f, unsigned i, enum ibv_qp_state state,
		   int mask)
{
	struct ibv_qp_attr a = {
		.qp_state = state,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = i == 1 ? IBV_MTU_1024 : IBV_MTU_256,
		.dest_qp_num = peer_qpn(i),
		.rq_psn = 0xfffff8,
		.sq_psn = 0xfffff8,
		.max_dest_rd_atomic = i == 5 ? 0 : 2,
		.max_rd_atomic = 2,
		.min_rnr_timer = 1,
		.timeout = 1,
		.retry_cnt = 2,
		.rnr_retry = i == 1 ? 7 : 1,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};

	memcpy(a.ah_attr.grh.dgid.raw, peer_ip, 16);
	may_be_refused(nic_qp_modify(f->qp[i], &a, mask));
}

static void step_up(struct fuzz *f, unsigned i)
{
	bool ud = qp_types[i] == IBV_QPT_UD;

	switch ((unsigned)nic_qp_state(f->qp[i])) {
	case IBV_QPS_RESET:
		modify(f, i, IBV_QPS_INIT,
		       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			       (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
		break;
	case IBV_QPS_INIT:
		modify(f, i, IBV_QPS_RTR,
		       ud ? IBV_QP_STATE
			  : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER);
		break;
	case IBV_QPS_RTR:
		modify(f, i, IBV_QPS_RTS,
		       ud ? IBV_QP_STATE | IBV_QP_SQ_PSN
			  : IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_MAX_QP_RD_ATOMIC);
		break;
	default:
		modify(f, i, IBV_QPS_RTS, IBV_QP_STATE);
	}
}

static void make_qp(struct fuzz *f, unsigned i)
{
	static const unsigned steps[QPS] = {3, 3, 2, 3, 1, 3};
	struct nic_qp_attr attr = {
		.type = qp_types[i],
		.send_cq = f->cq,
		.recv_cq = f->cq,
		.srq = i == 1 ? f->srq : NULL,
		.cap = {4, 4, 3, 3, 100},
		.sq_sig_all = i == 0,
		.owner = &f->qp[i],
	};
	unsigned n;

	must(nic_qp_create(f->pd[0], &attr, &f->qp[i]));
	if (i < 2)
		must(nic_qp_set_walk_pad(f->qp[i], i ? 900 : 100));
	for (n = 0; n < steps[i]; n++)
		step_up(f, i);
}

static void setup(struct fuzz *f)
{
	struct nic_config cfg = {.slot = 1, .gid_count = 1, .node_guid = 1};
	struct ibv_srq_attr srq = {.max_wr = 4, .max_sge = 2, .srq_limit = 2};
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};
	struct nic_walker walker = {f, walk_start, walk_turn, walk_forget};
	unsigned i;

	f->env.ops = &ops;
	f->now_ns = 1000;
	rng_init(&f->rng, 1);
	memcpy(cfg.gids[0].ip, our_ip, 16);
	f->arena = aligned_alloc(4096, PARTS * REGION_BYTES);
	ASSERT(f->arena);
	memset(f->arena, CANARY, PARTS * REGION_BYTES);
	must(nic_create(&f->env, &cfg, &f->nic));
	nic_set_upcalls(f->nic, &upcalls);
	must(nic_set_walker(f->nic, &walker));
	must(nic_pd_create(f->nic, &f->pd[0]));
	must(nic_pd_create(f->nic, &f->pd[1]));
	must(nic_cq_create(f->nic, CQ_SIZE, &f->cq, &f->cq));
	must(nic_srq_create(f->pd[0], &srq, &f->srq, &f->srq));
	memcpy(ah.grh.dgid.raw, peer_ip, 16);
	must(nic_ah_create(f->pd[0], &ah, &f->ah));
	must(nic_mw_alloc(f->pd[0], IBV_MW_TYPE_2, &f->mw));
	for (i = 0; i < KEYS; i++)
		make_mr(f, i);
	for (i = 0; i < QPS; i++)
		make_qp(f, i);
}

static void teardown(struct fuzz *f)
{
	unsigned i;

	for (i = 0; i < QPS; i++)
		nic_qp_destroy(f->qp[i]);
	for (i = 0; i < WALK_ROOM; i++)
		ASSERT(!f->walk[i]);
	must(nic_set_walker(f->nic, NULL));
	must(nic_mw_dealloc(f->mw));
	for (i = 0; i < KEYS; i++)
		must(nic_mr_dereg(f->mr[i]));
	nic_ah_destroy(f->ah);
	must(nic_srq_destroy(f->srq));
	must(nic_cq_destroy(f->cq));
	must(nic_pd_destroy(f->pd[0]));
	must(nic_pd_destroy(f->pd[1]));
	ASSERT(nic_outstanding(f->nic) == 0);
	nic_destroy(f->nic);
	ASSERT(f->paths == 0);
	free(f->arena);
}

static void check_memory(const struct fuzz *f)
{
	unsigned i;

	for (i = 0; i < PARTS; i++) {
		const uint8_t *p = part(f, (enum part)i);

		if (i != PART_OPEN)
			ASSERT(p[0] == CANARY &&
			       memcmp(p, p + 1, REGION_BYTES - 1) == 0);
	}
}

static void poll(struct fuzz *f)
{
	const struct nic_cqe *cqe;

	while ((cqe = nic_cq_peek(f->cq))) {
		ASSERT(cqe->status <= IBV_WC_GENERAL_ERR);
		ASSERT((struct nic_qp **)cqe->qp_owner >= f->qp &&
		       (struct nic_qp **)cqe->qp_owner < f->qp + QPS);
		nic_cq_pop(f->cq);
	}
}

/* ---- one step of the script -----------------------------------------------
 */

static uint32_t choose_key(struct fuzz *f)
{
	uint8_t n = next_u8(&f->s);

	if (n % 8 < KEYS)
		return nic_mr_key(f->mr[n % 8]);
	if (n % 8 == KEYS)
		return nic_mw_key(f->mw);
	return n % 8 == 5 ? nic_mr_key(f->mr[0]) + 1 : (uint32_t)n << 8;
}

/* Usually in the open region or near its ends. */
static uint64_t choose_va(struct fuzz *f)
{
	uint16_t n = next_u16(&f->s);
	enum part p = n & 0x4000 ? PART_READ : PART_OPEN;

	if (n & 0x8000) /* zero-based, or before the start */
		return (uint64_t)(int64_t)(int16_t)(n << 1);
	return (uintptr_t)part(f, p) + (n & 0x3fff) % (REGION_BYTES + 64);
}

static uint32_t choose_length(struct fuzz *f, uint32_t mtu)
{
	uint8_t n = next_u8(&f->s);

	switch (n % 8) {
	case 0:
		return 0;
	case 1:
		return 8;
	case 2:
		return mtu - 1;
	case 3:
		return mtu;
	case 4:
		return mtu + 1;
	case 5:
		return mtu * 2 + n;
	case 6:
		return n;
	default:
		return (uint32_t)n << 24;
	}
}

static uint8_t choose_opcode(struct fuzz *f)
{
	uint8_t n = next_u8(&f->s);

	while (!wire_opcodes[n].name)
		n++;
	return n;
}

/* Near the number that is expected. */
static uint32_t choose_psn(struct fuzz *f, const struct nic_qp *qp,
			   uint8_t opcode)
{
	int8_t off = (int8_t)next_u8(&f->s);
	uint32_t base = wire_opcodes[opcode].flags & WIRE_OP_RESPONSE
				? qp->req.una_psn
				: qp->rsp.epsn;

	if (off > 120)
		return wire_psn_add(base, (uint32_t)off << 16);
	/* Small steps are the interesting ones, and most often none. */
	return wire_psn_add(base, (uint32_t)(off / 64 * (off & 7)));
}

/* Offsets count from the region; most pads fit. */
static void choose_walk(struct fuzz *f, struct wire_pkt *pkt)
{
	uint8_t n = next_u8(&f->s);

	pkt->walk = (struct wire_walk){
		.at = pkt->va % (REGION_BYTES + 64),
		.program = n,
		.key = pkt->rkey,
		.left = n >> 4,
		.took = n,
		.pad_bytes = (uint16_t)(n == 255 ? 2000 : n % 104),
		.status = n % 8,
	};
	pkt->payload_len = u32_min(pkt->payload_len, (uint32_t)n * 4);
	if (n & 1 && wire_opcodes[pkt->opcode].flags & WIRE_OP_RESPONSE)
		pkt->payload_len = pkt->walk.pad_bytes;
}

static void send_packet(struct fuzz *f)
{
	static uint8_t payload[WIRE_MTU_MAX];
	static uint8_t frame[WIRE_FRAME_MAX];
	struct nic_qp *qp = f->qp[next_u8(&f->s) % QPS];
	uint32_t mtu = qp->mtu ? qp->mtu : 256;
	uint8_t flags = next_u8(&f->s);
	struct wire_pkt pkt = {
		.opcode = choose_opcode(f),
		.ttl = 64,
		.src_port = 0xc000,
		.ack_req = flags & 1,
		.solicited = flags & 2,
		.pkey = flags & 4 && flags & 8 ? 0x1234 : 0xffff,
		.dest_qpn = qp->qpn,
		.src_qpn = qp->dest_qpn,
		.qkey = QKEY,
	};
	size_t len;

	pkt.psn = choose_psn(f, qp, pkt.opcode);
	pkt.rkey = choose_key(f);
	pkt.va = choose_va(f);
	if (wire_opcodes[pkt.opcode].flags & WIRE_OP_PAYLOAD) {
		pkt.payload = payload;
		pkt.payload_len = u32_min(choose_length(f, mtu), WIRE_MTU_MAX);
	}
	pkt.dma_len = flags & 16 ? choose_length(f, mtu) : pkt.payload_len;
	pkt.syndrome = flags & 32 ? next_u8(&f->s) : WIRE_ACK_UNLIMITED;
	pkt.atomic = (struct atomic_op){
		.is_add = wire_opcodes[pkt.opcode].flags & WIRE_OP_ADD,
		.swap_add = flags,
		.compare = flags,
		.swap_mask = flags & 64 ? UINT64_MAX : flags,
		.compare_mask = flags & 64 ? UINT64_MAX : flags,
		.boundary = flags,
	};
	if (wire_opcodes[pkt.opcode].flags & WIRE_OP_WALK)
		choose_walk(f, &pkt);
	memcpy(pkt.src_ip, peer_ip, 16);
	memcpy(pkt.dst_ip, our_ip, 16);
	if ((flags & 0xc0) == 0xc0)
		pkt.src_ip[15] = next_u8(&f->s);
	len = wire_build(&pkt, frame);
	/* Sometimes damaged, and then dropped. */
	if (next_u8(&f->s) == 255)
		frame[next_u16(&f->s) % len] ^= 1;
	nic_input(f->nic, frame, len, NIC_FROM_NET);
}

static void send_raw(struct fuzz *f)
{
	size_t n = next_u8(&f->s);
	uint8_t *exact;

	n = n < f->s.left ? n : f->s.left;
	exact = malloc(n ? n : 1); /* so that ASan guards its end */
	ASSERT(exact);
	memcpy(exact, f->s.at, n);
	f->s.at += n;
	f->s.left -= n;
	nic_input(f->nic, exact, n, NIC_FROM_NET);
	free(exact);
}

/* Local buffers are in the open region, or have no valid key. */
static int choose_sge(struct fuzz *f, struct ibv_sge *sge)
{
	int i, n = next_u8(&f->s) % 4;

	for (i = 0; i < n; i++) {
		uint16_t at = next_u16(&f->s);

		sge[i].addr = (uintptr_t)part(f, PART_OPEN) + at % REGION_BYTES;
		sge[i].length = choose_length(f, 256) % 2048;
		sge[i].lkey =
			at & 0x8000 ? choose_key(f) : nic_mr_key(f->mr[0]);
	}
	return n;
}

static void post_recv(struct fuzz *f)
{
	struct ibv_sge sge[3];
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = sge};
	uint8_t n = next_u8(&f->s);

	wr.num_sge = choose_sge(f, sge);
	if (n % 8 == 7)
		may_be_refused(nic_srq_post(f->srq, &wr));
	else
		may_be_refused(nic_qp_post_recv(f->qp[n % QPS], &wr));
}

static void post_send(struct fuzz *f)
{
	struct nic_qp *qp = f->qp[next_u8(&f->s) % QPS];
	uint8_t flags = next_u8(&f->s);
	struct ibv_sge sge[3];
	struct nic_masked_atomic m = {.is_add = flags & 1};
	struct nic_send_extra extra = {
		.ah = f->ah, .mw = f->mw, .bind_mr = f->mr[0]};
	struct nic_walk_request walk = {.program = flags,
					.iterations = flags,
					.send_bytes = flags % 64};
	struct ibv_send_wr wr = {
		.wr_id = 2,
		.sg_list = sge,
		.opcode = (enum ibv_wr_opcode)(next_u8(&f->s) % 12),
		.send_flags = flags & 0xf,
	};

	wr.num_sge = choose_sge(f, sge);
	if (wr.opcode == IBV_WR_BIND_MW) {
		wr.bind_mw.rkey = nic_mw_key(f->mw) ^ (flags & 1);
		wr.bind_mw.bind_info.addr = choose_va(f);
		wr.bind_mw.bind_info.length = choose_length(f, 256);
		wr.bind_mw.bind_info.mw_access_flags = flags & 0xe;
	} else if (qp->type == IBV_QPT_UD) {
		wr.wr.ud.remote_qpn = peer_qpn(flags);
		wr.wr.ud.remote_qkey = QKEY;
	} else {
		wr.wr.rdma.remote_addr = choose_va(f);
		wr.wr.rdma.rkey = choose_key(f);
		wr.invalidate_rkey = nic_mw_key(f->mw);
	}
	if (flags & 0x80)
		extra.masked = &m;
	if (!extra.masked && wr.opcode == 11) { /* none that verbs has */
		walk.at = wr.wr.rdma.remote_addr;
		walk.rkey = wr.wr.rdma.rkey;
		extra.walk = &walk;
	}
	may_be_refused(nic_qp_post_send(qp, &wr, &extra));
	if (!(flags & 0x40))
		nic_qp_kick(qp);
}

/* As a remote operation on the queue's memory would. */
static void scribble(struct fuzz *f)
{
	struct sendq *q = &f->qp[next_u8(&f->s) % QPS]->sq;
	uint16_t at = next_u16(&f->s);

	q->wqes[at % (q->block_count * WQE_BLOCK_BYTES)] = next_u8(&f->s);
}

static void change_state(struct fuzz *f)
{
	uint8_t n = next_u8(&f->s);
	enum ibv_qp_state any;
	unsigned i = n % QPS;

	switch (n / QPS % 5) {
	case 0:
		modify(f, i, IBV_QPS_RESET, IBV_QP_STATE);
		break;
	case 1:
		modify(f, i, IBV_QPS_ERR, IBV_QP_STATE);
		break;
	case 2:
		modify(f, i, IBV_QPS_SQD, IBV_QP_STATE);
		break;
	case 3:
		any = (enum ibv_qp_state)(next_u8(&f->s) % 8);
		modify(f, i, any, next_u16(&f->s) << 4 | n);
		break;
	default:
		step_up(f, i);
	}
}

static void revoke(struct fuzz *f)
{
	unsigned i = next_u8(&f->s) % KEYS;

	if (nic_mr_dereg(f->mr[i]) == 0)
		make_mr(f, i);
}

static void pass_time(struct fuzz *f)
{
	uint64_t ns = next_u8(&f->s);

	f->now_ns += ns << (next_u8(&f->s) % 24);
	nic_tick(f->nic);
}

static void step(struct fuzz *f)
{
	uint8_t what = next_u8(&f->s);

	switch (what % 16) {
	case 0:
		send_raw(f);
		break;
	case 1:
	case 2:
		post_recv(f);
		break;
	case 3:
		post_send(f);
		break;
	case 4:
		change_state(f);
		break;
	case 5:
		pass_time(f);
		break;
	case 6:
		revoke(f);
		break;
	case 7:
		f->full = !f->full;
		break;
	case 8:
		(void)nic_flush(f->nic); /* whether there is more */
		break;
	case 9:
		scribble(f);
		break;
	case 10:
		nic_cq_arm(f->cq, what & 16);
		if (what == 0xfa)
			nic_path_down(f->nic, (struct env_path *)f);
		break;
	default:
		send_packet(f);
	}
	if (!(what & 0x80))
		poll(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	struct fuzz f = {.s = {data, len_bytes}};
	unsigned n;

	setup(&f);
	for (n = 0; f.s.left && n < STEPS_MAX; n++)
		step(&f);
	poll(&f);
	check_memory(&f);
	teardown(&f);
	return 0;
}
