// SPDX-License-Identifier: Apache-2.0
// Two of these on two NICs do every RC operation on each other and compare the
// bytes: WRITE, READ, SEND, the atomics, a late receive, a wrong key. With -a
// also what few programs use, so that every opcode is seen: immediate data with
// a WRITE, SENDs that invalidate, datagrams. With -l packets may get lost: the
// one NAK of a fatal error, too, after which the peer is silent.
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	BUF = 256 * 1024,  // each of the two halves of the memory
	SLOT = 128 * 1024, // receives begin here in the second half
	WAIT_S = 30,
	ATOMIC_AT = 64,
	RNR_US = 100000,
};

struct side {
	uint64_t addr;
	uint32_t rkey;
	uint32_t qpn;
	uint32_t psn;
	uint32_t mtu;
	union ibv_gid gid;
};

struct check {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t *mem; // first half: the peer's; second half: ours
	struct side me;
	struct side peer;
	int gid;
	int tcp;
	int rounds;
	uint8_t rnr_retry;
	bool lossy;
};

static void die(const char *format, ...)
{
	va_list ap;
	int err = errno;

	va_start(ap, format);
	fprintf(stderr, "verbs_check: ");
	vfprintf(stderr, format, ap);
	fprintf(stderr, " (errno: %s)\n", strerror(err));
	va_end(ap);
	exit(1);
}

static void send_all(struct check *c, const void *data, size_t len)
{
	if (send(c->tcp, data, len, MSG_NOSIGNAL) != (ssize_t)len)
		die("the peer is gone");
}

static void recv_all(struct check *c, void *data, size_t len)
{
	if (recv(c->tcp, data, len, MSG_WAITALL) != (ssize_t)len)
		die("no word from the peer");
}

// Both have come here.
static void meet(struct check *c, char step)
{
	char other = 0;

	send_all(c, &step, 1);
	recv_all(c, &other, 1);
	if (other != step)
		die("the peer is at step %c instead of %c", other, step);
}

static uint8_t pattern(size_t i, uint32_t seed)
{
	uint32_t x = (uint32_t)i * 2654435761u + seed * 40503u;

	return (uint8_t)(x >> 13 ^ x >> 24);
}

static void fill(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = pattern(i, seed);
}

static void compare(const uint8_t *p, size_t len, uint32_t seed,
		    const char *what)
{
	for (size_t i = 0; i < len; i++) {
		if (p[i] != pattern(i, seed))
			die("%s of %zu bytes: byte %zu is %#x, not %#x", what,
			    len, i, p[i], pattern(i, seed));
	}
}

static struct ibv_wc wait_wc(struct check *c)
{
	struct ibv_wc wc;
	time_t end = time(NULL) + WAIT_S;
	int n;

	while ((n = ibv_poll_cq(c->cq, 1, &wc)) == 0) {
		if (time(NULL) > end)
			die("no completion in %d s", WAIT_S);
	}
	if (n < 0)
		die("poll: %d", n);
	return wc;
}

static struct ibv_wc expect_wc(struct check *c, enum ibv_wc_status status,
			       const char *what)
{
	struct ibv_wc wc = wait_wc(c);

	if (wc.status != status)
		die("%s: %s instead of %s", what, ibv_wc_status_str(wc.status),
		    ibv_wc_status_str(status));
	return wc;
}

static void post_recv(struct check *c, size_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)c->mem + BUF + SLOT,
			      .length = (uint32_t)len,
			      .lkey = c->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(c->qp, &wr, &bad))
		die("post_recv");
}

static struct ibv_send_wr request(struct check *c, struct ibv_sge *sge,
				  enum ibv_wr_opcode opcode, size_t len)
{
	*sge = (struct ibv_sge){.addr = (uintptr_t)c->mem + BUF,
				.length = (uint32_t)len,
				.lkey = c->mr->lkey};
	return (struct ibv_send_wr){
		.sg_list = sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = c->peer.addr, .rkey = c->peer.rkey}};
}

static void post(struct check *c, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (ibv_post_send(c->qp, wr, &bad))
		die("post_send of opcode %d", (int)wr->opcode);
}

static void operate(struct check *c, enum ibv_wr_opcode opcode, size_t len,
		    const char *what)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(c, &sge, opcode, len);

	wr.imm_data = htonl((uint32_t)len);
	post(c, &wr);
	(void)expect_wc(c, IBV_WC_SUCCESS, what);
}

static void make_qp(struct check *c)
{
	struct ibv_qp_init_attr init = {.send_cq = c->cq,
					.recv_cq = c->cq,
					.cap = {.max_send_wr = 32,
						.max_recv_wr = 32,
						.max_send_sge = 1,
						.max_recv_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_LOCAL_WRITE |
						      IBV_ACCESS_REMOTE_READ |
						      IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_REMOTE_ATOMIC};

	c->qp = ibv_create_qp(c->pd, &init);
	if (!c->qp)
		die("create_qp");
	if (ibv_modify_qp(c->qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  IBV_QP_ACCESS_FLAGS))
		die("INIT");
	c->me.qpn = c->qp->qp_num;
	// Near the end of the numbers, so that they wrap around.
	c->me.psn = 0xffffff - c->me.qpn % 64;
}

// A new pair of QPs, in place of one that an error may have ended.
static void join(struct check *c)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};

	if (c->qp && ibv_destroy_qp(c->qp))
		die("destroy_qp");
	make_qp(c);
	send_all(c, &c->me, sizeof(c->me));
	recv_all(c, &c->peer, sizeof(c->peer));
	attr.path_mtu = c->me.mtu < c->peer.mtu ? c->me.mtu : c->peer.mtu;
	attr.dest_qp_num = c->peer.qpn;
	attr.rq_psn = c->peer.psn;
	attr.max_dest_rd_atomic = 16;
	attr.min_rnr_timer = 14; // 1.28 ms
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = c->peer.gid;
	attr.ah_attr.grh.sgid_index = (uint8_t)c->gid;
	attr.ah_attr.grh.hop_limit = 64;
	if (ibv_modify_qp(c->qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER))
		die("RTR");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 17, // 537 ms
				    // With 7, rxe never gives up.
				    .retry_cnt = 6,
				    .rnr_retry = c->rnr_retry,
				    .sq_psn = c->me.psn,
				    .max_rd_atomic = 16};
	if (ibv_modify_qp(c->qp, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				  IBV_QP_MAX_QP_RD_ATOMIC))
		die("RTS");
	meet(c, 'j');
}

static const size_t sizes[] = {1, 5, 1024, 1025, 4096, 65537};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

// WRITE, then READ the same bytes back; the other side looks at them as well.
static void write_read(struct check *c, bool active)
{
	for (size_t i = 0; i < N_SIZES; i++) {
		size_t len = sizes[i];
		uint32_t seed = 17 + (uint32_t)i;

		if (active) {
			fill(c->mem + BUF, len, seed);
			operate(c, IBV_WR_RDMA_WRITE, len, "WRITE");
			memset(c->mem + BUF, 0, len);
			operate(c, IBV_WR_RDMA_READ, len, "READ");
			compare(c->mem + BUF, len, seed, "READ");
		}
		meet(c, 'w');
		if (!active) {
			compare(c->mem, len, seed, "WRITE");
			memset(c->mem, 0, len);
		}
		meet(c, 'v');
	}
}

// Many at once, so that losses hit requests in the middle of a queue.
static void read_queue(struct check *c, bool active)
{
	enum {
		DEPTH = 16,
		LEN = 3000
	};
	int posted = 0, done = 0;

	if (!active)
		fill(c->mem, (size_t)DEPTH * LEN, 99);
	meet(c, 'q');
	while (active && done < c->rounds) {
		for (; posted < c->rounds && posted < done + DEPTH; posted++) {
			struct ibv_sge sge;
			struct ibv_send_wr wr =
				request(c, &sge, IBV_WR_RDMA_READ, LEN);
			size_t at = (size_t)(posted % DEPTH) * LEN;

			memset(c->mem + BUF + at, 0, LEN);
			sge.addr += at;
			wr.wr.rdma.remote_addr += at;
			post(c, &wr);
		}
		(void)expect_wc(c, IBV_WC_SUCCESS, "queued READ");
		done++;
		if (done == posted && posted % DEPTH == 0)
			compare(c->mem + BUF, (size_t)DEPTH * LEN, 99,
				"queued READ");
	}
	meet(c, 'r');
}

static void sends(struct check *c, bool active)
{
	for (size_t i = 0; i < N_SIZES; i++) {
		size_t len = sizes[i];
		uint32_t seed = 40 + (uint32_t)i;
		struct ibv_wc wc;

		if (active)
			fill(c->mem + BUF, len, seed);
		else
			post_recv(c, len);
		meet(c, 's');
		if (active) {
			operate(c, IBV_WR_SEND_WITH_IMM, len, "SEND");
		} else {
			wc = expect_wc(c, IBV_WC_SUCCESS, "receive");
			if (wc.byte_len != len ||
			    wc.imm_data != htonl((uint32_t)len))
				die("%u bytes received instead of %zu",
				    wc.byte_len, len);
			compare(c->mem + BUF + SLOT, len, seed, "SEND");
		}
		meet(c, 't');
	}
}

// One atomic; returns what was there before.
static uint64_t atomic(struct check *c, enum ibv_wr_opcode opcode, uint64_t a,
		       uint64_t swap)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(c, &sge, opcode, 8);
	uint64_t old;

	wr.wr.atomic.remote_addr = c->peer.addr + ATOMIC_AT;
	wr.wr.atomic.rkey = c->peer.rkey;
	wr.wr.atomic.compare_add = a;
	wr.wr.atomic.swap = swap;
	post(c, &wr);
	(void)expect_wc(c, IBV_WC_SUCCESS, "atomic");
	memcpy(&old, c->mem + BUF, sizeof(old));
	return old;
}

static void atomics(struct check *c, bool active)
{
	uint64_t value = 0x0123456789abcdefull, step = 0x100000001ull;

	if (!active)
		memcpy(c->mem + ATOMIC_AT, &value, sizeof(value));
	meet(c, 'a');
	for (int i = 0; active && i < c->rounds; i++) {
		uint64_t old = atomic(c, IBV_WR_ATOMIC_FETCH_AND_ADD, step, 0);

		if (old != value)
			die("FAA gave %#llx", (unsigned long long)old);
		value += step;
		old = atomic(c, IBV_WR_ATOMIC_CMP_AND_SWP, value, value + 7);
		if (old != value)
			die("CAS gave %#llx", (unsigned long long)old);
		value += 7;
		old = atomic(c, IBV_WR_ATOMIC_CMP_AND_SWP, value + 1, 0);
		if (old != value)
			die("failing CAS gave %#llx", (unsigned long long)old);
	}
	meet(c, 'b');
	if (!active) {
		uint64_t end;

		value += (uint64_t)c->rounds * (step + 7);
		memcpy(&end, c->mem + ATOMIC_AT, sizeof(end));
		if (end != value)
			die("the atomics left %#llx", (unsigned long long)end);
	}
}

// The receive comes when the SEND has waited for a while.
static void late_receive(struct check *c, bool active)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(c, &sge, IBV_WR_SEND, 2500);

	if (active)
		fill(c->mem + BUF, 2500, 7);
	meet(c, 'l');
	if (active) {
		post(c, &wr);
		(void)expect_wc(c, IBV_WC_SUCCESS, "SEND without a receive");
	} else {
		(void)usleep(RNR_US);
		post_recv(c, 2500);
		(void)expect_wc(c, IBV_WC_SUCCESS, "late receive");
		compare(c->mem + BUF + SLOT, 2500, 7, "late SEND");
	}
	meet(c, 'm');
}

// What must fail, must fail with the right word, and ends the QP.
static void must_fail(struct check *c, bool active, struct ibv_send_wr wr,
		      enum ibv_wc_status status, const char *what)
{
	struct ibv_sge sge;
	struct ibv_send_wr next;
	struct ibv_wc wc;

	meet(c, 'e');
	if (active) {
		post(c, &wr);
		wc = wait_wc(c);
		if (wc.status != status &&
		    !(c->lossy && wc.status == IBV_WC_RETRY_EXC_ERR))
			die("%s: %s instead of %s", what,
			    ibv_wc_status_str(wc.status),
			    ibv_wc_status_str(status));
		next = request(c, &sge, IBV_WR_RDMA_READ, 8);
		post(c, &next);
		(void)expect_wc(c, IBV_WC_WR_FLUSH_ERR, "READ after an error");
	}
	meet(c, 'f');
	join(c);
}

static void errors(struct check *c, bool active)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(c, &sge, IBV_WR_RDMA_READ, 64);

	wr.wr.rdma.rkey ^= 0x55;
	must_fail(c, active, wr, IBV_WC_REM_ACCESS_ERR, "READ, wrong key");
	wr = request(c, &sge, IBV_WR_RDMA_WRITE, 5000);
	wr.wr.rdma.remote_addr += 2 * BUF - 4999;
	must_fail(c, active, wr, IBV_WC_REM_ACCESS_ERR, "WRITE beyond the end");
	c->rnr_retry = 2;
	join(c);
	wr = request(c, &sge, IBV_WR_SEND, 100);
	c->rnr_retry = 7;
	must_fail(c, active, wr, IBV_WC_RNR_RETRY_EXC_ERR, "SEND for nobody");
}

// WRITE with immediate data takes a receive at the other side.
static void write_imm(struct check *c, bool active, size_t len)
{
	struct ibv_wc wc;

	if (active)
		fill(c->mem + BUF, len, 61);
	else
		post_recv(c, 0);
	meet(c, 'i');
	if (active) {
		operate(c, IBV_WR_RDMA_WRITE_WITH_IMM, len, "WRITE with imm");
	} else {
		wc = expect_wc(c, IBV_WC_SUCCESS, "receive of imm");
		if (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM ||
		    wc.imm_data != htonl((uint32_t)len))
			die("wrong immediate data");
		compare(c->mem, len, 61, "WRITE with imm");
	}
	meet(c, 'k');
}

static void plain_send(struct check *c, bool active, size_t len)
{
	if (active)
		fill(c->mem + BUF, len, 62);
	else
		post_recv(c, len);
	meet(c, 'p');
	if (active) {
		operate(c, IBV_WR_SEND, len, "plain SEND");
	} else {
		(void)expect_wc(c, IBV_WC_SUCCESS, "plain receive");
		compare(c->mem + BUF + SLOT, len, 62, "plain SEND");
	}
	meet(c, 'o');
}

// The passive side offers a window; the SEND ends it.
static void send_inv(struct check *c, bool active, size_t len)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_mw *mw = NULL;
	struct ibv_sge sge;
	struct ibv_wc wc;
	uint32_t key = 0;

	if (!active) {
		mw = ibv_alloc_mw(c->pd, IBV_MW_TYPE_2);
		if (!mw)
			die("alloc_mw");
		key = ibv_inc_rkey(mw->rkey);
		wr.bind_mw.mw = mw;
		wr.bind_mw.rkey = key;
		wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
			.mr = c->mr,
			.addr = (uintptr_t)c->mem,
			.length = 4096,
			.mw_access_flags = IBV_ACCESS_REMOTE_READ};
		post(c, &wr);
		(void)expect_wc(c, IBV_WC_SUCCESS, "bind");
		post_recv(c, len);
		send_all(c, &key, sizeof(key));
		wc = expect_wc(c, IBV_WC_SUCCESS, "receive that invalidates");
		if (!(wc.wc_flags & IBV_WC_WITH_INV) ||
		    wc.invalidated_rkey != key)
			die("nothing was invalidated");
		compare(c->mem + BUF + SLOT, len, 63, "SEND that invalidates");
		if (ibv_dealloc_mw(mw))
			die("dealloc_mw");
	} else {
		recv_all(c, &key, sizeof(key));
		fill(c->mem + BUF, len, 63);
		wr = request(c, &sge, IBV_WR_SEND_WITH_INV, len);
		wr.invalidate_rkey = key;
		post(c, &wr);
		(void)expect_wc(c, IBV_WC_SUCCESS, "SEND that invalidates");
	}
	meet(c, 'n');
}

static struct ibv_qp *make_ud(struct check *c)
{
	struct ibv_qp_init_attr init = {.send_cq = c->cq,
					.recv_cq = c->cq,
					.cap = {.max_send_wr = 4,
						.max_recv_wr = 4,
						.max_send_sge = 1,
						.max_recv_sge = 1},
					.qp_type = IBV_QPT_UD};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11223344};
	struct ibv_qp *qp = ibv_create_qp(c->pd, &init);

	if (!qp || ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					 IBV_QP_PORT | IBV_QP_QKEY))
		die("UD INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		die("UD RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		die("UD RTS");
	return qp;
}

// A datagram each without and with immediate data.
static void datagrams(struct check *c, bool active)
{
	enum {
		GRH = 40,
		LEN = 333
	};
	struct ibv_ah_attr to = {.is_global = 1,
				 .port_num = 1,
				 .grh = {.dgid = c->peer.gid,
					 .sgid_index = (uint8_t)c->gid,
					 .hop_limit = 64}};
	struct ibv_qp *ud = make_ud(c), *rc = c->qp;
	struct ibv_ah *ah = ibv_create_ah(c->pd, &to);
	uint32_t qpn = ud->qp_num, other;

	if (!ah)
		die("create_ah");
	send_all(c, &qpn, sizeof(qpn));
	recv_all(c, &other, sizeof(other));
	for (int imm = 0; imm < 2; imm++) {
		struct ibv_sge sge;
		struct ibv_send_wr wr = request(
			c, &sge, imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, LEN);

		c->qp = ud;
		if (!active)
			post_recv(c, GRH + LEN);
		meet(c, 'u');
		if (active) {
			fill(c->mem + BUF, LEN, 64);
			wr.imm_data = htonl(77);
			wr.wr.ud.ah = ah;
			wr.wr.ud.remote_qpn = other;
			wr.wr.ud.remote_qkey = 0x11223344;
			post(c, &wr);
			(void)expect_wc(c, IBV_WC_SUCCESS, "datagram");
		} else {
			(void)expect_wc(c, IBV_WC_SUCCESS, "datagram receive");
			compare(c->mem + BUF + SLOT + GRH, LEN, 64, "datagram");
		}
		meet(c, 'd');
		c->qp = rc;
	}
	(void)ibv_destroy_ah(ah);
	(void)ibv_destroy_qp(ud);
}

static void rarer(struct check *c, bool active)
{
	static const size_t lens[] = {700, 5000};

	for (int i = 0; i < 2; i++) {
		write_imm(c, active, lens[i]);
		plain_send(c, active, lens[i]);
		send_inv(c, active, lens[i]);
	}
	datagrams(c, active);
}

static void open_nic(struct check *c, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	for (int i = 0; list && list[i] && !c->ctx; i++) {
		if (!name || !strcmp(name, ibv_get_device_name(list[i])))
			c->ctx = ibv_open_device(list[i]);
	}
	if (!c->ctx)
		die("no NIC %s", name ? name : "");
	ibv_free_device_list(list);
	c->pd = ibv_alloc_pd(c->ctx);
	c->cq = ibv_create_cq(c->ctx, 64, NULL, NULL, 0);
	c->mem = aligned_alloc(4096, 2 * BUF);
	if (!c->pd || !c->cq || !c->mem)
		die("no PD or CQ");
	memset(c->mem, 0, 2 * BUF);
	c->mr = ibv_reg_mr(c->pd, c->mem, 2 * BUF,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_ATOMIC |
				   IBV_ACCESS_MW_BIND);
	if (!c->mr || ibv_query_port(c->ctx, 1, &port) ||
	    ibv_query_gid(c->ctx, 1, c->gid, &c->me.gid))
		die("no MR, port or GID");
	c->me.mtu = (uint32_t)port.active_mtu;
	c->me.addr = (uintptr_t)c->mem;
	c->me.rkey = c->mr->rkey;
}

static void open_tcp(struct check *c, const char *host, int port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port)};
	struct timeval limit = {.tv_sec = 2 * WAIT_S};
	int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (host) {
		if (inet_pton(AF_INET, host, &sa.sin_addr) != 1 ||
		    connect(s, (struct sockaddr *)&sa, sizeof(sa)))
			die("connect to %s", host);
		c->tcp = s;
	} else {
		(void)setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one,
				 sizeof(one));
		if (bind(s, (struct sockaddr *)&sa, sizeof(sa)) || listen(s, 1))
			die("listen");
		c->tcp = accept(s, NULL, NULL);
		if (c->tcp < 0)
			die("accept");
		(void)close(s);
	}
	(void)setsockopt(c->tcp, SOL_SOCKET, SO_RCVTIMEO, &limit,
			 sizeof(limit));
}

int main(int argc, char **argv)
{
	struct check c = {.rounds = 100, .rnr_retry = 7};
	const char *name = NULL, *host;
	int opt, port = 18600;
	bool active, all = false;

	while ((opt = getopt(argc, argv, "ad:g:ln:p:")) != -1) {
		if (opt == 'a')
			all = true;
		else if (opt == 'l')
			c.lossy = true;
		else if (opt == 'd')
			name = optarg;
		else if (opt == 'g')
			c.gid = atoi(optarg);
		else if (opt == 'n')
			c.rounds = atoi(optarg);
		else if (opt == 'p')
			port = atoi(optarg);
		else
			return 2;
	}
	host = argv[optind];
	open_nic(&c, name);
	open_tcp(&c, host, port);
	join(&c);
	// First the one who came, then the other.
	for (int turn = 0; turn < 2; turn++) {
		active = (turn == 0) == (host != NULL);
		write_read(&c, active);
		read_queue(&c, active);
		sends(&c, active);
		atomics(&c, active);
		late_receive(&c, active);
		if (all)
			rarer(&c, active);
		errors(&c, active);
		printf("turn %d ok\n", turn);
	}
	return 0;
}
