/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real processes and atomics through a switch: one server, some clients. Each
 * adds to a word and takes a lock made of a word to count in another. Without
 * arguments the switch only forwards; with "swordbox" everything is declared to
 * that program first, as a control plane does. With "steer" a store is declared
 * to that one instead, and each client appends versions to the one list in it,
 * behind the last of its own, where the end seldom is.
 *
 * usage: switch_atomics CLIENTS OPERATIONS [swordbox|steer SWITCH]
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wire/vlist_layout.h"

enum {
	CLIENTS_MAX = 8,
	WORD_SUM = 0,	/* everybody adds here */
	WORD_LOCK = 1,	/* 0: free; else its holder */
	WORD_COUNT = 2, /* changed by READ and WRITE under the lock */
	WORDS = 4,
	OPS_MAX = 1000, /* appends of a client */
	NODE_WORDS = 16,
	NODE_BYTES = 8 * NODE_WORDS,
	APPEND_BYTES = VLIST_NODE_HEAD + VLIST_NODE_TAIL,
	PSN = 0x1234,
	SHARED_PSN = 0x777,
	OWN_QPN = 0x800001,
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
		 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
};

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint64_t *mem;
	union ibv_gid gid;
};

/* What two ends tell each other. */
struct hello {
	uint32_t qpn;
	uint32_t rkey;
	uint64_t addr;
	union ibv_gid gid;
};

static void die(const char *what)
{
	fprintf(stderr, "switch_atomics: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void need(bool ok, const char *what)
{
	if (!ok)
		die(what);
}

static void open_end(struct end *e, size_t words)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list && list[0], "no device");
	e->context = ibv_open_device(list[0]);
	need(e->context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	e->pd = ibv_alloc_pd(e->context);
	e->cq = ibv_create_cq(e->context, 64, NULL, NULL, 0);
	need(e->pd && e->cq, "pd and cq");
	e->mem = calloc(words, sizeof(*e->mem));
	need(e->mem != NULL, "calloc");
	e->mr = ibv_reg_mr(e->pd, e->mem, words * sizeof(*e->mem), ACCESS);
	need(e->mr != NULL, "ibv_reg_mr");
	/* 1: of the IP address. */
	need(ibv_query_gid(e->context, 1, 1, &e->gid) == 0, "gid");
}

static struct ibv_qp *make_qp(struct end *e)
{
	struct ibv_qp_init_attr attr = {.send_cq = e->cq,
					.recv_cq = e->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {16, 1, 1, 1, 0}};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = ACCESS};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &attr);

	need(qp != NULL, "ibv_create_qp");
	need(ibv_modify_qp(qp, &init,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_ACCESS_FLAGS) == 0,
	     "INIT");
	return qp;
}

static void connect_qp(struct ibv_qp *qp, const union ibv_gid *gid,
		       uint32_t qpn, uint32_t rq_psn, bool answers_only)
{
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = qpn,
				  .rq_psn = rq_psn,
				  .max_dest_rd_atomic = 16,
				  .min_rnr_timer = 12,
				  .ah_attr = {.is_global = 1,
					      .port_num = 1,
					      .grh = {.dgid = *gid,
						      .sgid_index = 1,
						      .hop_limit = 64}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .sq_psn = PSN,
				  .max_rd_atomic = 16};

	need(ibv_modify_qp(qp, &rtr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER) == 0,
	     "RTR");
	if (!answers_only)
		need(ibv_modify_qp(qp, &rts,
				   IBV_QP_STATE | IBV_QP_TIMEOUT |
					   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					   IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC) == 0,
		     "RTS");
}

/* ---- a client ------------------------------------------------------------ */

struct client {
	struct end e;
	struct ibv_qp *qp;
	struct hello far;
};

/* A list of which only the last is signaled. */
static void post(struct client *c, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	need(ibv_post_send(c->qp, wr, &bad) == 0, "ibv_post_send");
	while ((n = ibv_poll_cq(c->e.cq, 1, &wc)) == 0)
		;
	if (n < 0 || wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "switch_atomics: status %d\n", wc.status);
		exit(1);
	}
}

static uint64_t run(struct client *c, enum ibv_wr_opcode opcode, unsigned word,
		    uint64_t a, uint64_t b)
{
	struct ibv_sge sge = {(uintptr_t)c->e.mem, 8, c->e.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED};

	c->e.mem[0] = a;
	wr.wr.rdma.remote_addr = c->far.addr + 8 * word;
	wr.wr.rdma.rkey = c->far.rkey;
	if (opcode != IBV_WR_RDMA_READ && opcode != IBV_WR_RDMA_WRITE) {
		wr.wr.atomic.remote_addr = c->far.addr + 8 * word;
		wr.wr.atomic.rkey = c->far.rkey;
		wr.wr.atomic.compare_add = a;
		wr.wr.atomic.swap = b;
	}
	post(c, &wr);
	return c->e.mem[0];
}

static void count_under_lock(struct client *c, uint64_t id)
{
	uint64_t v;

	while (run(c, IBV_WR_ATOMIC_CMP_AND_SWP, WORD_LOCK, 0, id) != 0)
		usleep(50);
	v = run(c, IBV_WR_RDMA_READ, WORD_COUNT, 0, 0);
	(void)run(c, IBV_WR_RDMA_WRITE, WORD_COUNT, v + 1, 0);
	/* Both ways to let go. */
	if (id & 1)
		(void)run(c, IBV_WR_RDMA_WRITE, WORD_LOCK, 0, 0);
	else if (run(c, IBV_WR_ATOMIC_CMP_AND_SWP, WORD_LOCK, id, 0) != id)
		exit(3);
}

static void add_all(struct client *c, unsigned id, unsigned ops)
{
	uint64_t last = 0;

	for (unsigned i = 0; i < ops; i++) {
		uint64_t v = run(c, IBV_WR_ATOMIC_FETCH_AND_ADD, WORD_SUM,
				 id + 1, 0);

		if (i && v <= last) {
			fprintf(stderr, "the sum went back\n");
			exit(2);
		}
		last = v;
		if (i % 8 == 0)
			count_under_lock(c, id + 1);
	}
}

/* The version that a client appends as its number `i`. The first version of
 * all is nobody's. */
static uint64_t version(unsigned id, unsigned i)
{
	return vlist_pointer(NODE_BYTES * (1 + (uint64_t)id * OPS_MAX + i), 1);
}

/* The version, and a compare-and-swap on `place`, which the switch may let
 * happen elsewhere; what was there before. */
static uint64_t append(struct client *c, uint64_t self, uint64_t place)
{
	struct vlist_node n = {.next = le64_put(vlist_end_of(self)),
			       .self = le64_put(self)};
	uint64_t *old = c->e.mem + NODE_WORDS;
	struct ibv_sge word = {(uintptr_t)old, 8, c->e.mr->lkey};
	struct ibv_sge bytes = {(uintptr_t)c->e.mem, APPEND_BYTES,
				c->e.mr->lkey};
	struct ibv_send_wr cas = {.sg_list = &word,
				  .num_sge = 1,
				  .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
				  .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr wr = {.next = &cas,
				 .sg_list = &bytes,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE};

	memcpy(c->e.mem, &n, sizeof(n));
	wr.wr.rdma.remote_addr = c->far.addr + vlist_offset(self);
	wr.wr.rdma.rkey = c->far.rkey;
	cas.wr.atomic.remote_addr = c->far.addr + vlist_offset(place);
	cas.wr.atomic.rkey = c->far.rkey;
	cas.wr.atomic.compare_add = vlist_end_of(place);
	cas.wr.atomic.swap = self;
	post(c, &wr);
	return *old & ~VLIST_COMMITTED;
}

static void append_all(struct client *c, unsigned id, unsigned ops)
{
	uint64_t place = vlist_pointer(0, 1), old;

	for (unsigned i = 0; i < ops; i++) {
		/* A pointer is one to the version that was there first. */
		while (vlist_is_pointer(old = append(c, version(id, i), place)))
			place = old;
		place = version(id, i);
	}
}

static void client(int fd, unsigned id, unsigned ops, bool appends)
{
	struct client c;
	struct hello own;
	char go;

	open_end(&c.e, 2 * NODE_WORDS);
	c.qp = make_qp(&c.e);
	own = (struct hello){c.qp->qp_num, 0, 0, c.e.gid};
	need(write(fd, &own, sizeof(own)) == sizeof(own), "write");
	need(read(fd, &c.far, sizeof(c.far)) == sizeof(c.far), "read");
	connect_qp(c.qp, &c.far.gid, c.far.qpn, PSN, false);
	need(write(fd, "c", 1) == 1 && read(fd, &go, 1) == 1, "go");
	(appends ? append_all : add_all)(&c, id, ops);
	exit(0);
}

/* ---- the server ---------------------------------------------------------- */

static void tell(const char *name, const char *fmt, ...)
{
	char call[512], line[700];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(call, sizeof(call), fmt, ap);
	va_end(ap);
	snprintf(line, sizeof(line),
		 "\"$AQUIFER\" switch --name %s --tell '%s' "
		 ">/dev/null",
		 name, call);
	need(system(line) == 0, call);
}

static void declare_server(struct end *e, const char *name)
{
	struct ibv_qp *shared = make_qp(e);
	union ibv_gid own = e->gid;

	own.raw[15] = 250;
	connect_qp(shared, &own, OWN_QPN, SHARED_PSN, true);
	tell(name,
	     "swordbox server ip=127.0.0.1 own_ip=127.0.0.250 qpn=%u "
	     "own_qpn=%u psn=%u",
	     shared->qp_num, OWN_QPN, SHARED_PSN);
	tell(name,
	     "swordbox region server=127.0.0.1 rkey=%u va=%" PRIu64 " len=%u",
	     e->mr->rkey, (uint64_t)(uintptr_t)e->mem, WORDS * 8);
}

/* A list of one version, behind which all others go. */
static void declare_store(struct end *e, const char *name, unsigned clients)
{
	e->mem[0] = vlist_end_of(vlist_pointer(0, 1));
	e->mem[1] = vlist_pointer(0, 1);
	tell(name,
	     "steer store server=127.0.0.1 rkey=%u va=%" PRIu64
	     " nodes_at=0 nodes=%u node_bytes=%u",
	     e->mr->rkey, (uint64_t)(uintptr_t)e->mem, 1 + clients * OPS_MAX,
	     NODE_BYTES);
}

/* Follows the list: every version is in it, and those of a client are in the
 * order in which it appended them. */
static int check_list(const struct end *e, unsigned clients, unsigned ops)
{
	unsigned count[CLIENTS_MAX] = {0}, all = 0;
	uint64_t word = e->mem[0];

	for (; vlist_is_pointer(word); all++) {
		uint64_t at = vlist_offset(word) / NODE_BYTES;
		unsigned id = (unsigned)((at - 1) / OPS_MAX);

		if (!at || id >= clients || word != version(id, count[id])) {
			fprintf(stderr, "no version of anybody's turn\n");
			return 1;
		}
		count[id]++;
		word = e->mem[at * NODE_WORDS];
	}
	if (all == clients * ops)
		return 0;
	fprintf(stderr, "%u of %u versions\n", all, clients * ops);
	return 1;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int check(const struct end *e, unsigned clients, unsigned ops)
{
	uint64_t sum = (uint64_t)clients * (clients + 1) / 2 * ops;
	uint64_t count = (uint64_t)clients * ((ops + 7) / 8);

	if (e->mem[WORD_SUM] == sum && e->mem[WORD_COUNT] == count &&
	    e->mem[WORD_LOCK] == 0)
		return 0;
	fprintf(stderr,
		"sum %" PRIu64 " of %" PRIu64 ", count %" PRIu64 " of %" PRIu64
		", lock %" PRIu64 "\n",
		e->mem[WORD_SUM], sum, e->mem[WORD_COUNT], count,
		e->mem[WORD_LOCK]);
	return 1;
}

int main(int argc, char **argv)
{
	unsigned clients = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
	unsigned ops = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	const char *name = argc > 4 ? argv[4] : NULL;
	bool appends = name && !strcmp(argv[3], "steer");
	int fd[CLIENTS_MAX][2];
	struct end e;
	int failed = 0, status;
	double start;
	char c;

	if (clients < 1 || clients > CLIENTS_MAX || ops < 1 ||
	    (appends && ops > OPS_MAX))
		return 2;
	for (unsigned i = 0; i < clients; i++) {
		need(socketpair(AF_UNIX, SOCK_STREAM, 0, fd[i]) == 0, "pair");
		if (fork() == 0)
			client(fd[i][1], i, ops, appends);
	}
	open_end(&e, appends ? NODE_WORDS * (1 + clients * OPS_MAX) : WORDS);
	if (appends)
		declare_store(&e, name, clients);
	else if (name)
		declare_server(&e, name);
	for (unsigned i = 0; i < clients; i++) {
		struct ibv_qp *qp = make_qp(&e);
		struct hello far,
			own = {qp->qp_num, e.mr->rkey, (uintptr_t)e.mem, e.gid};

		need(read(fd[i][0], &far, sizeof(far)) == sizeof(far), "read");
		connect_qp(qp, &far.gid, far.qpn, PSN, false);
		if (appends)
			tell(name,
			     "steer conn server=127.0.0.1 client=127.0.0.1 "
			     "client_qpn=%u server_qpn=%u fresh=1",
			     far.qpn, qp->qp_num);
		else if (name)
			tell(name,
			     "swordbox conn server=127.0.0.1 client=127.0.0.1 "
			     "client_qpn=%u server_qpn=%u psn=%u",
			     far.qpn, qp->qp_num, PSN);
		need(write(fd[i][0], &own, sizeof(own)) == sizeof(own),
		     "write");
		need(read(fd[i][0], &c, 1) == 1, "read");
	}
	if (name && !appends)
		tell(name, "swordbox ready");
	start = now_s();
	for (unsigned i = 0; i < clients; i++)
		need(write(fd[i][0], "g", 1) == 1, "write");
	for (unsigned i = 0; i < clients; i++) {
		need(wait(&status) > 0, "wait");
		failed |= status != 0;
	}
	printf("%.0f operations per second\n",
	       (double)clients * ops / (now_s() - start));
	return failed | (appends ? check_list : check)(&e, clients, ops);
}
