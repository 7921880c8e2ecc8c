/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A requester and its target, two processes on real ports: good requests with a
 * refused one behind them. Each good one must succeed, and the refused one end
 * with its reason. Prints a line per case; exit code 1 if any round went wrong.
 *
 * usage: verbs_refused ROUNDS [ADDRESS OF THE TARGET]
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	BYTES = 1 << 20,
	DEPTH = 32,
	GOOD_MAX = 8,
	RD_ATOMIC = 16,
	RECV_BYTES = 64,
	TIMEOUT = 18, /* a second: slow is not lost */
	PSN = 0x1234,
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
		 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
};

enum wrong {
	PAST_END, /* a WRITE behind the region */
	TOO_LONG, /* a SEND that is longer than its receive */
	TOO_MANY, /* one READ more than the target agreed to */
	REVOKED,  /* the region goes away under READs */
};

static const struct refusal {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t len;
	unsigned good; /* requests */
	enum wrong wrong;
	enum ibv_wc_status status;
} cases[] = {
	{"READ of 8 B, past the end", IBV_WR_RDMA_READ, 8, 1, PAST_END,
	 IBV_WC_REM_ACCESS_ERR},
	{"READ of 1 MB, past the end", IBV_WR_RDMA_READ, BYTES, 1, PAST_END,
	 IBV_WC_REM_ACCESS_ERR},
	{"READ of 64 KB, too long", IBV_WR_RDMA_READ, 65536, 4, TOO_LONG,
	 IBV_WC_REM_INV_REQ_ERR},
	{"FETCH_ADD, past the end", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, GOOD_MAX,
	 PAST_END, IBV_WC_REM_ACCESS_ERR},
	{"FETCH_ADD, too long", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 1, TOO_LONG,
	 IBV_WC_REM_INV_REQ_ERR},
	{"READ of 1 MB, revoked", IBV_WR_RDMA_READ, BYTES, GOOD_MAX, REVOKED,
	 IBV_WC_REM_ACCESS_ERR},
	{"READ of 1 MB, too many", IBV_WR_RDMA_READ, BYTES, 2, TOO_MANY,
	 IBV_WC_REM_INV_REQ_ERR},
};

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t *mem;
	int talk;
};

/* What two ends tell each other. */
struct hello {
	uint32_t qpn;
	uint32_t rkey;
	uint64_t addr;
	union ibv_gid gid;
};

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "verbs_refused: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void open_end(struct end *e)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list && list[0], "no device");
	e->context = ibv_open_device(list[0]);
	need(e->context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	e->pd = ibv_alloc_pd(e->context);
	e->cq = ibv_create_cq(e->context, 4 * DEPTH, NULL, NULL, 0);
	need(e->pd && e->cq, "pd and cq");
	e->mr = ibv_reg_mr(e->pd, e->mem, BYTES, ACCESS);
	need(e->mr != NULL, "ibv_reg_mr");
}

static void swap_hello(struct end *e, struct hello *peer)
{
	struct hello mine = {.qpn = e->qp->qp_num,
			     .rkey = e->mr->rkey,
			     .addr = (uintptr_t)e->mem};

	/* 1: of the IP address. */
	need(!ibv_query_gid(e->context, 1, 1, &mine.gid), "ibv_query_gid");
	need(write(e->talk, &mine, sizeof(mine)) == sizeof(mine), "write");
	need(recv(e->talk, peer, sizeof(*peer), MSG_WAITALL) == sizeof(*peer),
	     "read");
}

static void connect_end(struct end *e, struct hello *peer, uint8_t dest_rd)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.send_cq = e->cq,
					.recv_cq = e->cq,
					.sq_sig_all = 1,
					.cap = {.max_send_wr = DEPTH,
						.max_recv_wr = DEPTH,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = ACCESS};

	e->qp = ibv_create_qp(e->pd, &init);
	need(e->qp != NULL, "ibv_create_qp");
	need(!ibv_modify_qp(e->qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS),
	     "INIT");
	swap_hello(e, peer);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.rq_psn = PSN,
		.max_dest_rd_atomic = dest_rd,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid,
				    .sgid_index = 1,
				    .hop_limit = 64}},
	};
	need(!ibv_modify_qp(e->qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = TIMEOUT,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .sq_psn = PSN,
				 .max_rd_atomic = RD_ATOMIC};
	need(!ibv_modify_qp(e->qp, &a,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

static void say(struct end *e)
{
	need(write(e->talk, "", 1) == 1, "write");
}

static void hear(struct end *e)
{
	char c;

	need(read(e->talk, &c, 1) == 1, "read");
}

/* ---- the target ---------------------------------------------------------- */

static void serve(struct end *e, const struct refusal *k)
{
	struct ibv_sge sge = {.addr = (uintptr_t)e->mem + BYTES / 2,
			      .length = RECV_BYTES,
			      .lkey = e->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct hello peer;

	connect_end(e, &peer,
		    k->wrong == TOO_MANY ? (uint8_t)k->good : RD_ATOMIC);
	need(!ibv_post_recv(e->qp, &wr, &bad), "ibv_post_recv");
	say(e);
	/* Asleep meanwhile: its NIC serves. */
	hear(e);
	if (k->wrong == REVOKED) {
		need(!ibv_dereg_mr(e->mr), "ibv_dereg_mr");
		e->mr = ibv_reg_mr(e->pd, e->mem, BYTES, ACCESS);
		need(e->mr != NULL, "ibv_reg_mr");
		hear(e);
	}
	need(!ibv_destroy_qp(e->qp), "ibv_destroy_qp");
}

/* ---- the requester ------------------------------------------------------- */

static void fill(const struct end *e, const struct hello *peer,
		 const struct refusal *k, bool wrong, struct ibv_send_wr *wr,
		 struct ibv_sge *sge)
{
	*sge = (struct ibv_sge){.addr = (uintptr_t)e->mem,
				.length = k->len,
				.lkey = e->mr->lkey};
	*wr = (struct ibv_send_wr){
		.opcode = k->opcode, .sg_list = sge, .num_sge = 1};
	if (wrong && k->wrong == PAST_END) {
		sge->length = 8;
		wr->opcode = IBV_WR_RDMA_WRITE;
		wr->wr.rdma.remote_addr = peer->addr + BYTES - 7;
		wr->wr.rdma.rkey = peer->rkey;
	} else if (wrong && k->wrong == TOO_LONG) {
		sge->length = RECV_BYTES + 1;
		wr->opcode = IBV_WR_SEND;
	} else if (k->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = peer->addr;
		wr->wr.atomic.rkey = peer->rkey;
		wr->wr.atomic.compare_add = 1;
	} else {
		wr->wr.rdma.remote_addr = peer->addr;
		wr->wr.rdma.rkey = peer->rkey;
	}
}

/* How the request may end; `last` is how the one before it did. */
static bool is_right(const struct refusal *k, unsigned i,
		     enum ibv_wc_status last, enum ibv_wc_status status)
{
	/* Some were answered in time, one was not, and that is the reason. */
	if (k->wrong == REVOKED)
		return last == IBV_WC_SUCCESS
			       ? status == IBV_WC_SUCCESS || status == k->status
			       : status == IBV_WC_WR_FLUSH_ERR;
	/* The target may have answered one before the last came. */
	if (i == k->good && k->wrong == TOO_MANY && status == IBV_WC_SUCCESS)
		return true;
	return status == (i < k->good ? IBV_WC_SUCCESS : k->status);
}

/* Did all go as it must? */
static bool run(struct end *e, const struct refusal *k, const uint64_t *word)
{
	struct ibv_send_wr wr[GOOD_MAX + 1], *bad;
	struct ibv_sge sge[GOOD_MAX + 1];
	uint64_t before = *word;
	enum ibv_wc_status last = IBV_WC_SUCCESS;
	struct hello peer;
	struct ibv_wc wc;
	bool ok = true;
	unsigned i;

	connect_end(e, &peer, RD_ATOMIC);
	hear(e);
	for (i = 0; i <= k->good; i++) {
		fill(e, &peer, k, i == k->good, &wr[i], &sge[i]);
		wr[i].wr_id = i;
		wr[i].next = i < k->good ? &wr[i + 1] : NULL;
	}
	need(!ibv_post_send(e->qp, wr, &bad), "ibv_post_send");
	for (i = 0; i <= k->good; i++) {
		while (ibv_poll_cq(e->cq, 1, &wc) == 0)
			;
		if (k->wrong == REVOKED && i == 0)
			say(e);
		if (ok && (wc.wr_id != i || !is_right(k, i, last, wc.status))) {
			ok = false;
			printf("  request %" PRIu64 ": %s\n", wc.wr_id,
			       ibv_wc_status_str(wc.status));
		}
		last = wc.status;
	}
	if (k->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD &&
	    *word != before + k->good) {
		ok = false;
		printf("  %" PRIu64 " of %u adds\n", *word - before, k->good);
	}
	need(!ibv_destroy_qp(e->qp), "ibv_destroy_qp");
	say(e);
	return ok;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	uint8_t *shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct end e = {0};
	unsigned wrong = 0;
	int talk[2], status;
	pid_t pid;

	need(shared != MAP_FAILED, "mmap");
	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, talk), "socketpair");
	pid = fork();
	need(pid >= 0, "fork");
	e.talk = talk[pid == 0];
	close(talk[pid != 0]);
	if (pid == 0 && argc > 2)
		need(!setenv("AQUIFER_NIC_ADDRESS", argv[2], 1), "setenv");
	e.mem = pid ? calloc(1, BYTES) : shared;
	need(e.mem != NULL, "memory");
	open_end(&e);
	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		unsigned good = 0;

		for (unsigned i = 0; i < rounds; i++) {
			if (pid == 0)
				serve(&e, &cases[c]);
			else
				good += run(&e, &cases[c],
					    (const uint64_t *)(void *)shared);
		}
		if (pid == 0)
			continue;
		printf("%-28s %u of %u\n", cases[c].name, good, rounds);
		fflush(stdout);
		wrong += good != rounds;
	}
	if (pid == 0)
		return 0;
	need(waitpid(pid, &status, 0) == pid && status == 0, "the target");
	return wrong ? 1 : 0;
}
