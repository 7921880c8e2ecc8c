/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a connection on a real host, for tests: memory, queues and one
 * queue pair. Ends may live in one process or in several; what a peer needs to
 * know is in struct end_card, which can be sent through a pipe.
 */
#ifndef AQ_TEST_OS_END_H
#define AQ_TEST_OS_END_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rundir.h"
#include "os/os.h"

enum {
	END_BYTES = 1 << 16,
	END_REMOTE = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_REMOTE_ATOMIC,
};

/* Hosts start their engines in forked children as well, which the thread
 * sanitizer does not expect. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

struct end_card {
	uint32_t qpn;
	uint32_t rkey;
	uint64_t addr;
	uint8_t gid[16];
};

struct end {
	struct nic_host *host;
	struct nic_pd *pd;
	struct nic_cq *cq;
	struct nic_mr *mr;
	struct nic_qp *qp;
	uint8_t *mem;
	bool granted;
	uint64_t watched;
	/* Of end_connect: a request that is not answered is sent again after
	 * 4.096 us * 2^timeout, and given up after eight attempts. */
	uint8_t timeout;
	struct end_card card;
};

/* Unlike assert_*, works in a forked child as well. */
#define NEED(cond)                                                             \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, \
				__LINE__, #cond);                              \
			abort();                                               \
		}                                                              \
	} while (0)

static inline uint64_t test_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static inline void test_sleep_ms(unsigned ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}

static inline void test_rundir_remove(void)
{
	char command[128];

	/* Not by a child that ends: its parent goes on. */
	if (atoi(getenv("TEST_RUNDIR_OF")) != (int)getpid())
		return;
	snprintf(command, sizeof(command), "rm -rf %s",
		 getenv("AQUIFER_RUNDIR"));
	NEED(system(command) == 0);
}

/* A runtime directory of this process and its children alone. */
static inline void test_rundir(void)
{
	char top[] = "/tmp/aquifer-unit.XXXXXX", pid[16];

	if (getenv("TEST_RUNDIR_OF"))
		return;
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	NEED(mkdtemp(top) && setenv("AQUIFER_RUNDIR", top, 1) == 0);
	NEED(setenv("TEST_RUNDIR_OF", pid, 1) == 0);
	NEED(atexit(test_rundir_remove) == 0);
}

/* A rack of this process and its children alone. */
static inline void test_config(struct os_config *cfg)
{
	test_rundir();
	os_config_init(cfg);
	snprintf(cfg->rack, sizeof(cfg->rack), "test-%d", (int)getpid());
}

static inline struct nic_host *test_host(const struct os_config *cfg)
{
	struct nic_host *host;

	NEED(os_host_open(cfg, &host) == 0);
	return host;
}

enum end_memory {
	END_PLAIN,
	END_GRANT,
	END_GRANT_READ_ONLY,
	END_WATCHED, /* plain, and peers may reach it */
};

static inline void end_init(struct end *e, struct nic_host *host,
			    enum end_memory memory)
{
	int remote = memory == END_GRANT_READ_ONLY ? IBV_ACCESS_REMOTE_READ
						   : END_REMOTE;
	struct nic_mr_attr mr = {
		.length = END_BYTES,
		.access = IBV_ACCESS_LOCAL_WRITE | remote,
	};
	struct nic_qp_attr qp = {
		.type = IBV_QPT_RC,
		.owner = e,
		.cap = {.max_send_wr = 64,
			.max_recv_wr = 64,
			.max_send_sge = 4,
			.max_recv_sge = 4},
	};
	void *p = NULL;

	*e = (struct end){.host = host,
			  .granted = memory == END_GRANT ||
				     memory == END_GRANT_READ_ONLY,
			  .timeout = 14};
	if (e->granted)
		NEED(host->ops->grant_alloc(host, END_BYTES,
					    memory == END_GRANT_READ_ONLY
						    ? NIC_GRANT_READ_ONLY
						    : 0,
					    &p) == 0);
	else
		p = aligned_alloc(4096, END_BYTES);
	NEED(p);
	e->mem = p;
	memset(e->mem, 0, END_BYTES);
	mr.addr = e->mem;
	mr.iova = (uintptr_t)e->mem;
	if (memory == END_WATCHED)
		e->watched = host->ops->memory_watch(host, p, END_BYTES);
	mr.is_watched = e->watched;
	lock_take(&host->lock);
	NEED(nic_pd_create(host->nic, &e->pd) == 0);
	NEED(nic_cq_create(host->nic, 256, e, &e->cq) == 0);
	NEED(nic_mr_reg(e->pd, &mr, &e->mr) == 0);
	qp.send_cq = qp.recv_cq = e->cq;
	NEED(nic_qp_create(e->pd, &qp, &e->qp) == 0);
	lock_drop(&host->lock);
	e->card.qpn = nic_qp_number(e->qp);
	e->card.rkey = nic_mr_key(e->mr);
	e->card.addr = (uintptr_t)e->mem;
	memcpy(e->card.gid, nic_get_config(host->nic)->gids[1].ip, 16);
}

/* Without its memory: grants are freed by the test that made them. */
static inline void end_release(struct end *e)
{
	lock_take(&e->host->lock);
	nic_qp_destroy(e->qp);
	if (e->mr)
		NEED(nic_mr_dereg(e->mr) == 0);
	NEED(nic_cq_destroy(e->cq) == 0);
	NEED(nic_pd_destroy(e->pd) == 0);
	lock_drop(&e->host->lock);
	if (e->watched)
		e->host->ops->memory_unwatch(e->host, e->mem, END_BYTES,
					     e->watched);
	if (!e->granted)
		free(e->mem);
	else if (e->mem)
		NEED(e->host->ops->grant_free(e->host, e->mem) == 0);
}

static inline void end_connect_hops(struct end *e, const struct end_card *peer,
				    uint8_t hop_limit)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = END_REMOTE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.max_dest_rd_atomic = 8,
		.max_rd_atomic = 8,
		.min_rnr_timer = 1,
		.timeout = e->timeout,
		.retry_cnt = 7,
		.rnr_retry = 3,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};

	a.ah_attr.grh.sgid_index = 1;
	a.ah_attr.grh.hop_limit = hop_limit;
	memcpy(a.ah_attr.grh.dgid.raw, peer->gid, 16);
	lock_take(&e->host->lock);
	NEED(nic_qp_modify(e->qp, &a,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_ACCESS_FLAGS) == 0);
	a.qp_state = IBV_QPS_RTR;
	NEED(nic_qp_modify(e->qp, &a,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER) == 0);
	a.qp_state = IBV_QPS_RTS;
	NEED(nic_qp_modify(e->qp, &a,
			   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_MAX_QP_RD_ATOMIC) == 0);
	lock_drop(&e->host->lock);
}

static inline void end_connect(struct end *e, const struct end_card *peer)
{
	end_connect_hops(e, peer, 0);
}

/* Over [at, at + len) of both memories. Atomics add 1, or swap 1 for 7. */
static inline void end_post_flags(struct end *e, const struct end_card *peer,
				  enum ibv_wr_opcode opcode, uint32_t at,
				  uint32_t len, unsigned flags)
{
	struct ibv_sge sge = {(uintptr_t)e->mem + at, len, nic_mr_key(e->mr)};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED | flags,
	};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = peer->addr + at;
		wr.wr.atomic.rkey = peer->rkey;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 7;
	} else {
		wr.wr.rdma.remote_addr = peer->addr + at;
		wr.wr.rdma.rkey = peer->rkey;
	}
	lock_take(&e->host->lock);
	NEED(nic_qp_post_send(e->qp, &wr, NULL) == 0);
	nic_qp_kick(e->qp);
	lock_drop(&e->host->lock);
}

static inline void end_post(struct end *e, const struct end_card *peer,
			    enum ibv_wr_opcode opcode, uint32_t at,
			    uint32_t len)
{
	end_post_flags(e, peer, opcode, at, len, 0);
}

static inline void end_post_recv(struct end *e, uint32_t at, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)e->mem + at, len, nic_mr_key(e->mr)};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	lock_take(&e->host->lock);
	NEED(nic_qp_post_recv(e->qp, &wr) == 0);
	lock_drop(&e->host->lock);
}

/* Waits for one completion, driving or leaving it to the engine. Returns its
 * status, or -ETIMEDOUT. */
static inline int end_wait(struct end *e, bool drive, unsigned timeout_ms)
{
	uint64_t until = test_now_ns() + timeout_ms * 1000000ull;

	for (;;) {
		const struct nic_cqe *cqe = nic_cq_peek(e->cq);

		if (cqe) {
			int status = cqe->status;

			nic_cq_pop(e->cq);
			return status;
		}
		if (test_now_ns() > until)
			return -ETIMEDOUT;
		if (drive)
			e->host->ops->drive(e->host);
		env_relax(e->host->env);
	}
}

/*
 * Before and after the test touches memory that a peer reads or writes. The
 * order is given by the frames in between, which two mappings of one memory
 * hide from the thread sanitizer.
 */
static inline void end_sync(struct end *e)
{
	lock_take(&e->host->lock);
	lock_drop(&e->host->lock);
}

/* One request, driven to its end. */
static inline int end_do(struct end *e, const struct end_card *peer,
			 enum ibv_wr_opcode opcode, uint32_t at, uint32_t len)
{
	end_post(e, peer, opcode, at, len);
	return end_wait(e, true, 5000);
}

static inline struct os_stats test_stats(struct nic_host *host)
{
	struct os_stats s;

	os_host_stats(host, &s);
	return s;
}

/* Sockets of the rack whose owner lives; files of the dead do not count. */
static inline unsigned test_sockets_of(const char *rack)
{
	char path[RUNDIR_PATH_MAX];
	const struct dirent *e;
	unsigned n = 0;
	DIR *d;

	NEED(rundir_path(rack, path) == 0);
	d = opendir(path);
	NEED(d);
	while ((e = readdir(d))) {
		struct sockaddr_un sa = {.sun_family = AF_UNIX};
		int fd;

		if (e->d_type != DT_SOCK)
			continue;
		fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		NEED(fd >= 0);
		NEED(snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", path,
			      e->d_name) < (int)sizeof(sa.sun_path));
		/* Of another type than ours: nobody notices. */
		n += connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 &&
		     errno == EPROTOTYPE;
		close(fd);
	}
	closedir(d);
	return n;
}

#endif
