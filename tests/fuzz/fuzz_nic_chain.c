/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed queues with anything in them: the input fills the rings of three
 * queue pairs of one NIC, connected in loops, with requests that name real
 * keys, queues and places more often than chance would. They may rewrite each
 * other. Every chain ends, and memory that no key opens stays as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "core/cq_priv.h"
#include "core/qp_priv.h"
#include "fuzz.h"

enum {
	QPS = 4, /* the last is an ordinary one */
	MANAGED = 3,
	BLOCKS = 8,
	RECVS = 4,
	RING_BYTES = BLOCKS * WQE_BLOCK_BYTES,
	RECV_BYTES = RECVS * WQE_SEG_BYTES * 2,
	OPEN_BYTES = 4096, /* rings first, then room to play */
	GUARD_BYTES = 4096,
	CANARY = 0x5a,
	MAX_STEPS = 500,
	FRAMES = 64,
	ROUNDS = 2000,
};

struct frame {
	size_t len;
	uint8_t bytes[WIRE_FRAME_MAX];
};

struct fuzz {
	struct env env;
	const uint8_t *at;
	size_t left;
	uint64_t now_ns;
	struct rng rng;
	struct frame *frames; /* that the NIC sends to itself */
	uint32_t head, tail;
	struct nic *nic;
	struct nic_pd *pd;
	struct nic_cq *counting, *plain;
	struct nic_mr *mr;
	struct nic_qp *qp[QPS];
	uint8_t *arena; /* guard, open, guard */
};

static uint8_t next_u8(struct fuzz *f)
{
	if (f->left == 0)
		return 0;
	f->left--;
	return *f->at++;
}

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
	*path = (struct env_path *)fuzz_of(env);
	return 0;
}

static void env_close(struct env *env, struct env_path *path)
{
}

static uint8_t *env_tx_begin(struct env *env, struct env_path *path, size_t max)
{
	struct fuzz *f = fuzz_of(env);

	return f->head - f->tail < FRAMES ? f->frames[f->head % FRAMES].bytes
					  : NULL;
}

static void env_tx_end(struct env *env, struct env_path *path, size_t len)
{
	struct fuzz *f = fuzz_of(env);
	struct wire_pkt pkt;

	if (len == 0)
		return;
	ASSERT(wire_parse(f->frames[f->head % FRAMES].bytes, len, &pkt) ==
	       WIRE_OK);
	f->frames[f->head++ % FRAMES].len = len;
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

/* ---- the NIC ------------------------------------------------------------- */

static uint8_t *open_memory(const struct fuzz *f)
{
	return f->arena + GUARD_BYTES;
}

static void add_qp(struct fuzz *f, unsigned i)
{
	uintptr_t base = (uintptr_t)open_memory(f) + i * RING_BYTES;
	uint32_t key = nic_mr_key(f->mr);
	struct nic_chain_attr chain = {
		.flags = next_u8(f) & 3,
		.sq_addr = base,
		.sq_lkey = key,
		.sq_blocks = BLOCKS,
		.rq_addr = (uintptr_t)open_memory(f) + MANAGED * RING_BYTES +
			   i * RECV_BYTES,
		.rq_lkey = key,
		.rq_entries = RECVS,
		.rq_segs = 2,
		.rq_dbr_addr = (uintptr_t)open_memory(f) + OPEN_BYTES - 64,
		.rq_dbr_lkey = key,
		.max_steps = MAX_STEPS,
	};
	struct nic_qp_attr attr = {
		.type = IBV_QPT_RC,
		.cap = {.max_recv_wr = 1, .max_recv_sge = 1},
		.send_cq = next_u8(f) & 1 ? f->plain : f->counting,
		.recv_cq = next_u8(f) & 1 ? f->plain : f->counting,
		.chain = i < MANAGED ? &chain : NULL,
		.owner = f,
	};

	ASSERT(nic_qp_create(f->pd, &attr, &f->qp[i]) == 0);
}

static void setup(struct fuzz *f)
{
	struct nic_config cfg = {.slot = 1, .gid_count = 1};
	struct nic_mr_attr mr = {
		.length = OPEN_BYTES,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
	unsigned i;

	f->env.ops = &ops;
	f->now_ns = 1000;
	rng_init(&f->rng, 1);
	cfg.gids[0].ip[10] = cfg.gids[0].ip[11] = 0xff;
	cfg.gids[0].ip[15] = 1;
	f->frames = calloc(FRAMES, sizeof(*f->frames));
	f->arena = aligned_alloc(4096, OPEN_BYTES + 2 * GUARD_BYTES);
	ASSERT(f->frames && f->arena);
	memset(f->arena, CANARY, OPEN_BYTES + 2 * GUARD_BYTES);
	mr.addr = open_memory(f);
	mr.iova = (uintptr_t)mr.addr;
	ASSERT(nic_create(&f->env, &cfg, &f->nic) == 0);
	ASSERT(nic_pd_create(f->nic, &f->pd) == 0);
	ASSERT(nic_cq_create(f->nic, 8, f, &f->counting) == 0);
	ASSERT(nic_cq_create(f->nic, 1024, f, &f->plain) == 0);
	ASSERT(nic_cq_make_counting(f->counting) == 0);
	ASSERT(nic_mr_reg(f->pd, &mr, &f->mr) == 0);
	for (i = 0; i < QPS; i++)
		add_qp(f, i);
}

static void connect(struct fuzz *f, unsigned i, unsigned to)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = 0xf,
	};

	ASSERT(nic_qp_modify(f->qp[i], &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS) == 0);
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_256;
	a.dest_qp_num = nic_qp_number(f->qp[to]);
	a.max_dest_rd_atomic = 4;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	memcpy(a.ah_attr.grh.dgid.raw, f->nic->cfg.gids[0].ip, 16);
	ASSERT(nic_qp_modify(f->qp[i], &a,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER) == 0);
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 5;
	a.retry_cnt = 1;
	a.rnr_retry = 1;
	a.max_rd_atomic = 4;
	ASSERT(nic_qp_modify(f->qp[i], &a,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* ---- requests ------------------------------------------------------------ */

/* A place in the open memory, now and then just outside. */
static uint64_t place_of(struct fuzz *f)
{
	uint32_t at = (uint32_t)next_u8(f) * 16 + (next_u8(f) & 0xf);

	return (uintptr_t)open_memory(f) + at - (next_u8(f) == 0xff ? 32 : 0);
}

static void put_data(struct fuzz *f, struct wqe_data *d)
{
	d->addr = be64_put(place_of(f));
	d->byte_count = be32_put(next_u8(f) & 0x3f);
	d->lkey = be32_put(nic_mr_key(f->mr) ^ (next_u8(f) == 0xff));
}

static void put_request(struct fuzz *f, uint8_t *block)
{
	static const uint8_t opcodes[] = {
		WQE_NOP,	 WQE_WRITE,	  WQE_WRITE_IMM,
		WQE_SEND,	 WQE_READ,	  WQE_CAS,
		WQE_FAA,	 WQE_MASKED_CAS,  WQE_MASKED_FAA,
		WQE_WAIT,	 WQE_SEND_ENABLE, WQE_RECV_ENABLE,
		WQE_LOCAL_INVAL, WQE_BIND_MW,	  0x1f,
	};
	struct wqe_ctrl *ctrl = (struct wqe_ctrl *)block;
	struct wqe_raddr *raddr = (struct wqe_raddr *)(block + 16);
	struct wqe_order *order = (struct wqe_order *)(block + 16);
	uint8_t opcode = opcodes[next_u8(f) % ARRAY_LEN(opcodes)];
	bool is_order = opcode == WQE_WAIT || opcode == WQE_SEND_ENABLE ||
			opcode == WQE_RECV_ENABLE;
	bool is_amo = opcode >= WQE_CAS && opcode <= WQE_MASKED_FAA;
	uint8_t extra = next_u8(f);

	ctrl->opmod_idx_opcode = be32_put(opcode);
	ctrl->qpn_ds = be32_put(is_order ? 2 : is_amo ? 4 : 3);
	if (extra & 0x80)
		ctrl->qpn_ds = be32_put(extra & 0x3f);
	ctrl->flags = next_u8(f);
	if (is_order) {
		order->index = be32_put(next_u8(f));
		order->step = be32_put(next_u8(f) & 7);
		order->number = be32_put(
			opcode == WQE_WAIT
				? nic_cq_number(f->counting)
				: nic_qp_number(f->qp[next_u8(f) % QPS]));
		return;
	}
	raddr->addr = be64_put(place_of(f));
	raddr->rkey = be32_put(nic_mr_key(f->mr));
	put_data(f, (struct wqe_data *)(block + 32));
	put_data(f, (struct wqe_data *)(block + 48));
	if (is_amo)
		((struct wqe_data *)(block + 48))->byte_count = be32_put(8);
}

static void fill(struct fuzz *f)
{
	uint8_t *open = open_memory(f);
	uint32_t i;

	memset(open, 0, OPEN_BYTES);
	for (i = 0; i < MANAGED * BLOCKS; i++)
		put_request(f, open + i * WQE_BLOCK_BYTES);
	for (i = 0; i < MANAGED * RECVS * 2; i++)
		put_data(f, (struct wqe_data *)(open + MANAGED * RING_BYTES +
						i * WQE_SEG_BYTES));
	/* And whatever the input says, wherever it says. */
	while (f->left >= 3) {
		uint32_t at = (uint32_t)next_u8(f) << 4 | (next_u8(f) & 0xf);

		open[at % OPEN_BYTES] = next_u8(f);
	}
}

static void run(struct fuzz *f)
{
	uint32_t rounds = 0;

	while (rounds++ < ROUNDS) {
		bool more = nic_flush(f->nic);

		while (f->tail != f->head) {
			struct frame *in = &f->frames[f->tail++ % FRAMES];

			nic_input(f->nic, in->bytes, in->len, NIC_FROM_NET);
			more = true;
		}
		if (!more) {
			if (nic_next_deadline_ns(f->nic) == UINT64_MAX)
				break;
			f->now_ns += 1000000;
			nic_tick(f->nic);
		}
		while (nic_cq_peek(f->plain))
			nic_cq_pop(f->plain);
	}
	/* Nobody paid for more than this: connecting, enabling, and what an
	 * ordinary queue pair completes. */
	ASSERT(nic_counter_get(f->nic, NIC_C_chain_steps) <=
	       20ull * MAX_STEPS * MANAGED * MANAGED);
	ASSERT(!nic_has_chains(f->nic));
}

static void check_guards(const struct fuzz *f)
{
	uint32_t i;

	for (i = 0; i < GUARD_BYTES; i++) {
		ASSERT(f->arena[i] == CANARY);
		ASSERT(f->arena[GUARD_BYTES + OPEN_BYTES + i] == CANARY);
	}
}

static void teardown(struct fuzz *f)
{
	unsigned i;

	for (i = 0; i < QPS; i++)
		nic_qp_destroy(f->qp[i]);
	ASSERT(nic_mr_dereg(f->mr) == 0);
	ASSERT(nic_cq_destroy(f->counting) == 0);
	ASSERT(nic_cq_destroy(f->plain) == 0);
	ASSERT(nic_pd_destroy(f->pd) == 0);
	nic_destroy(f->nic);
	free(f->frames);
	free(f->arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {.at = data, .left = size};
	unsigned i;

	setup(&f);
	fill(&f);
	connect(&f, 0, 3);
	connect(&f, 3, 0);
	connect(&f, 1, 2);
	connect(&f, 2, 1);
	for (i = 0; i < MANAGED; i++) {
		(void)!nic_qp_enable_recv(f.qp[i], RECVS);
		(void)!nic_qp_enable_send(f.qp[i], BLOCKS);
		nic_qp_kick(f.qp[i]);
	}
	run(&f);
	check_guards(&f);
	teardown(&f);
	return 0;
}
