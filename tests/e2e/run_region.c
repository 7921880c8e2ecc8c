/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered memory that is far, while other threads want its place:
 *
 *   run_region PLAY SEED
 *
 * A requester WRITEs pages into a region, READs them back and adds to words of
 * it; the NIC of whoever owns the region finds pages that are not there. Every
 * word is checked at both ends. The plays: "self" is one process, "pair" two,
 * and "grant" two, where the region is memory of aqdv_alloc that the requester
 * maps, and only its own buffers are far.
 */
#include <aquifer/aqdv.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/wait.h>

#include "run_press.h"

enum {
	PAGES = 1024,	   /* of the region ... */
	COUNTERS = 64,	   /* ... and behind them, with a counter each */
	STAGE_PAGES = 512, /* of the requester */
	SLOT_PAGES = 8,	   /* of one request at most */
	DEPTH = 8,	   /* requests under way */
	ROUNDS = 100,	   /* of DEPTH requests each */
	REGION_BYTES = (PAGES + COUNTERS) * PAGE,
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
};

/* What one end tells the other. */
struct card {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t rkey;
	uint64_t addr;
};

struct side {
	struct ibv_context *context;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint64_t *mem;
	struct card card, peer;
};

/* What the requester has done. */
struct ledger {
	uint64_t version[PAGES]; /* how often each page was written */
	uint64_t added[COUNTERS];
};

static void side_open(struct side *s, uint64_t *mem, uint64_t pages)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = DEPTH,
						.max_recv_wr = 1,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_pd *pd = ibv_alloc_pd(s->context);

	s->mem = mem;
	s->cq = ibv_create_cq(s->context, 2 * DEPTH, NULL, NULL, 0);
	CHECK(pd && s->cq);
	init.send_cq = init.recv_cq = s->cq;
	s->qp = ibv_create_qp(pd, &init);
	s->mr = ibv_reg_mr(pd, mem, pages * PAGE, ACCESS);
	CHECK(s->qp && s->mr);
	CHECK(ibv_query_gid(s->context, 1, 1, &s->card.gid) == 0);
	s->card.qpn = s->qp->qp_num;
	s->card.rkey = s->mr->rkey;
	s->card.addr = (uintptr_t)mem;
}

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context =
		list && list[0] ? ibv_open_device(list[0]) : NULL;

	CHECK(context);
	return context;
}

static void side_connect(struct side *s)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = ACCESS,
				.path_mtu = IBV_MTU_4096,
				.dest_qp_num = s->peer.qpn,
				.max_dest_rd_atomic = DEPTH,
				.max_rd_atomic = DEPTH,
				.min_rnr_timer = 1,
				.timeout = 20,
				.retry_cnt = 7,
				.rnr_retry = 7,
				.ah_attr = {.is_global = 1, .port_num = 1}};

	a.ah_attr.grh.sgid_index = 1;
	a.ah_attr.grh.hop_limit = 64;
	a.ah_attr.grh.dgid = s->peer.gid;
	CHECK(ibv_modify_qp(s->qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS) == 0);
	a.qp_state = IBV_QPS_RTR;
	CHECK(ibv_modify_qp(s->qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER) == 0);
	a.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(s->qp, &a,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* ---- the requester ------------------------------------------------------- */

struct request {
	enum ibv_wr_opcode opcode;
	uint64_t page; /* of the region */
	uint64_t pages;
	uint64_t *stage;
};

static uint64_t number_of(const struct ledger *l, uint64_t page)
{
	return l->version[page] * PAGES + page;
}

static void post(struct side *s, const struct request *r, uint64_t id)
{
	uint64_t at = s->peer.addr + r->page * PAGE;
	struct ibv_sge sge = {.addr = (uintptr_t)r->stage,
			      .length = (uint32_t)r->pages * PAGE,
			      .lkey = s->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = id,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .send_flags = IBV_SEND_SIGNALED,
				       .opcode = r->opcode};

	if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = sizeof(uint64_t);
		wr.wr.atomic.remote_addr = at;
		wr.wr.atomic.rkey = s->peer.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = at;
		wr.wr.rdma.rkey = s->peer.rkey;
	}
	CHECK(ibv_post_send(s->qp, &wr, &bad) == 0);
}

static void check_done(const struct request *r, struct ledger *l)
{
	if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		CHECK(r->stage[0] == l->added[r->page - PAGES]++);
	else
		for (uint64_t i = 0; i < r->pages; i++)
			check_page(r->stage + i * WORDS,
				   number_of(l, r->page + i));
}

/* Requests of a round are for pages of their own, so that the order in which
 * they are executed does not matter. */
static void choose(struct request *r, unsigned i, uint64_t random,
		   struct ledger *l)
{
	enum {
		EACH = PAGES / DEPTH
	};

	r->pages = 1 + random % SLOT_PAGES;
	r->page = i * EACH + (random >> 8) % (EACH - SLOT_PAGES);
	r->opcode = random >> 32 & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
	if ((random >> 40) % 8 == 0) {
		r->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		r->page = PAGES + i * (COUNTERS / DEPTH) +
			  (random >> 8) % (COUNTERS / DEPTH);
	}
	if (r->opcode != IBV_WR_RDMA_WRITE)
		return;
	for (uint64_t k = 0; k < r->pages; k++) {
		l->version[r->page + k]++;
		fill_page(r->stage + k * WORDS, number_of(l, r->page + k));
	}
}

static void request_all(struct side *s, struct ledger *l)
{
	struct request r[DEPTH];
	uint64_t slot = 0;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < DEPTH; i++, slot++) {
			r[i].stage =
				s->mem + slot % (STAGE_PAGES / SLOT_PAGES) *
						 SLOT_PAGES * WORDS;
			choose(&r[i], i, mix(slot << 20), l);
		}
		for (unsigned i = 0; i < DEPTH; i++)
			post(s, &r[i], i);
		for (unsigned left = DEPTH; left;) {
			struct ibv_wc wc;
			int n = ibv_poll_cq(s->cq, 1, &wc);

			CHECK(n >= 0);
			if (!n)
				continue;
			CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id < DEPTH);
			check_done(&r[wc.wr_id], l);
			left--;
		}
	}
}

/* ---- the region ---------------------------------------------------------- */

static void fill_region(uint64_t *mem)
{
	for (uint64_t i = 0; i < PAGES; i++)
		fill_page(mem + i * WORDS, i);
}

static void check_region(const uint64_t *mem, const struct ledger *l)
{
	for (uint64_t i = 0; i < PAGES; i++)
		check_page(mem + i * WORDS, number_of(l, i));
	for (uint64_t i = 0; i < COUNTERS; i++)
		CHECK(mem[(PAGES + i) * WORDS] == l->added[i]);
}

static void play_self(void)
{
	struct side target = {0}, requester = {0};
	static struct ledger ledger;

	target.context = requester.context = open_device();
	side_open(&target, map(PAGES + COUNTERS), PAGES + COUNTERS);
	fill_region(target.mem);
	side_open(&requester, map(STAGE_PAGES), STAGE_PAGES);
	target.peer = requester.card;
	requester.peer = target.card;
	side_connect(&target);
	side_connect(&requester);
	request_all(&requester, &ledger);
	check_region(target.mem, &ledger);
}

static void say(int fd, const void *what, size_t bytes)
{
	CHECK(write(fd, what, bytes) == (ssize_t)bytes);
}

static void hear(int fd, void *what, size_t bytes)
{
	for (size_t got = 0; got < bytes;) {
		ssize_t n = read(fd, (uint8_t *)what + got, bytes - got);

		CHECK(n > 0);
		got += (size_t)n;
	}
}

static void exchange(struct side *s, int in, int out)
{
	char ready = 0;

	say(out, &s->card, sizeof(s->card));
	hear(in, &s->peer, sizeof(s->peer));
	side_connect(s);
	say(out, &ready, 1);
	hear(in, &ready, 1);
}

/* Of our library only, which is not the one that this program is linked to. */
static uint64_t direct_ops(struct side *s)
{
	int (*get)(struct ibv_context *, const char *, uint64_t *) =
		dlsym(RTLD_DEFAULT, "aqdv_get_counter");
	uint64_t count = 0;

	CHECK(get && get(s->context, "direct_ops", &count) == 0);
	return count;
}

static void requester_main(int in, int out, bool is_mapped)
{
	struct side s = {.context = open_device()};
	static struct ledger ledger;

	side_open(&s, map(STAGE_PAGES), STAGE_PAGES);
	exchange(&s, in, out);
	request_all(&s, &ledger);
	CHECK(!is_mapped == !direct_ops(&s));
	say(out, &ledger, sizeof(ledger));
	hear(in, &(char){0}, 1);
}

static uint64_t *grant(struct ibv_context *context)
{
	int (*alloc)(struct ibv_context *, size_t, unsigned, void **) =
		dlsym(RTLD_DEFAULT, "aqdv_alloc");
	void *mem = NULL;

	CHECK(alloc && alloc(context, REGION_BYTES, 0, &mem) == 0);
	return mem;
}

static bool is_here(uint64_t *page)
{
	unsigned char here = 0;

	CHECK(mincore(page, PAGE, &here) == 0);
	return here & 1;
}

/* The owner leaves the region to its NIC. It looks at a page now and then, so
 * that some come for it, too, and finds that many are not there. */
static void play_pair(bool is_mapped)
{
	struct side s = {0};
	static struct ledger ledger;
	uint64_t away = 0;
	int to[2], from[2], status;
	struct pollfd news;
	pid_t pid;

	CHECK(pipe(to) == 0 && pipe(from) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		requester_main(to[0], from[1], is_mapped);
		_exit(0);
	}
	(void)close(from[1]);
	s.context = open_device();
	side_open(&s, is_mapped ? grant(s.context) : map(PAGES + COUNTERS),
		  PAGES + COUNTERS);
	fill_region(s.mem);
	exchange(&s, from[0], to[1]);
	news = (struct pollfd){.fd = from[0], .events = POLLIN};
	for (uint64_t i = 0; poll(&news, 1, 1) == 0; i++) {
		uint64_t *page = s.mem + mix(i) % PAGES * WORDS;

		away += !is_here(page);
		(void)atomic_load((_Atomic uint64_t *)page);
	}
	CHECK(is_mapped || away);
	hear(from[0], &ledger, sizeof(ledger));
	check_region(s.mem, &ledger);
	say(to[1], "q", 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void play(const char *name)
{
	if (!strcmp(name, "self"))
		play_self();
	else if (!strcmp(name, "pair"))
		play_pair(false);
	else {
		CHECK(!strcmp(name, "grant"));
		play_pair(true);
	}
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	seed = strtoull(argv[2], NULL, 10);
	return run_pressed(play, argv[1]);
}
