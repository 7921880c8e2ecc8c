/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes on plain verbs. The target frees a large block under its region
 * and maps other memory there; the requester writes, reads and adds to it. It
 * gets an error each time, the new memory stays as it is, and another
 * connection between the two goes on.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	BLOCK_BYTES = 8 << 20,
	SMALL_BYTES = 4096,
	CANARY = 0x5c,
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	CONNECTIONS = 4, /* the last one is the honest one */
};

#define NEED(cond)                                                           \
	do {                                                                 \
		if (!(cond)) {                                               \
			fprintf(stderr, "%s: line %d: %s\n", role, __LINE__, \
				#cond);                                      \
			_exit(1);                                            \
		}                                                            \
	} while (0)

static const char *role = "requester";

struct card {
	union ibv_gid gid;
	uint32_t qpn[CONNECTIONS];
	uint32_t rkey;
	uint32_t small_rkey;
	uint64_t addr;
	uint64_t small_addr;
};

struct side {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[CONNECTIONS];
	struct ibv_mr *mr, *small_mr;
	uint8_t *block, *small;
	struct card card;
};

static void side_open(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	NEED(list && list[0]);
	ctx = ibv_open_device(list[0]);
	NEED(ctx);
	s->pd = ibv_alloc_pd(ctx);
	s->cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	NEED(s->pd && s->cq);
	init.send_cq = init.recv_cq = s->cq;
	for (int i = 0; i < CONNECTIONS; i++) {
		s->qp[i] = ibv_create_qp(s->pd, &init);
		NEED(s->qp[i]);
		s->card.qpn[i] = s->qp[i]->qp_num;
	}
	s->block = malloc(BLOCK_BYTES);
	s->small = calloc(1, SMALL_BYTES);
	NEED(s->block && s->small);
	memset(s->block, 1, BLOCK_BYTES);
	s->mr = ibv_reg_mr(s->pd, s->block, BLOCK_BYTES, ACCESS);
	s->small_mr = ibv_reg_mr(s->pd, s->small, SMALL_BYTES, ACCESS);
	NEED(s->mr && s->small_mr);
	NEED(ibv_query_gid(ctx, 1, 1, &s->card.gid) == 0);
	s->card.rkey = s->mr->rkey;
	s->card.addr = (uintptr_t)s->block;
	s->card.small_rkey = s->small_mr->rkey;
	s->card.small_addr = (uintptr_t)s->small;
}

static void side_connect(struct side *s, const struct card *peer)
{
	for (int i = 0; i < CONNECTIONS; i++) {
		struct ibv_qp_attr a = {
			.qp_state = IBV_QPS_INIT,
			.port_num = 1,
			.qp_access_flags = ACCESS,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = peer->qpn[i],
			.max_dest_rd_atomic = 4,
			.max_rd_atomic = 4,
			.min_rnr_timer = 1,
			.timeout = 18,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.ah_attr = {.is_global = 1, .port_num = 1},
		};

		a.ah_attr.grh.sgid_index = 1;
		a.ah_attr.grh.hop_limit = 64;
		a.ah_attr.grh.dgid = peer->gid;
		NEED(ibv_modify_qp(s->qp[i], &a,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					   IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
		     0);
		a.qp_state = IBV_QPS_RTR;
		NEED(ibv_modify_qp(s->qp[i], &a,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					   IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER) == 0);
		a.qp_state = IBV_QPS_RTS;
		NEED(ibv_modify_qp(s->qp[i], &a,
				   IBV_QP_STATE | IBV_QP_SQ_PSN |
					   IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY |
					   IBV_QP_MAX_QP_RD_ATOMIC) == 0);
	}
}

static void exchange(struct side *s, int in, int out, struct card *peer)
{
	NEED(write(out, &s->card, sizeof(s->card)) == sizeof(s->card));
	NEED(read(in, peer, sizeof(*peer)) == sizeof(*peer));
	side_connect(s, peer);
	NEED(write(out, "c", 1) == 1);
	NEED(read(in, &(char){0}, 1) == 1);
}

/* One request of 8 bytes; its status. */
static enum ibv_wc_status ask(struct side *s, int connection,
			      enum ibv_wr_opcode opcode, uint64_t addr,
			      uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)s->small, 8, s->small_mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = opcode,
					 .send_flags = IBV_SEND_SIGNALED,
				 };
	struct ibv_wc wc;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	NEED(ibv_post_send(s->qp[connection], &wr, &bad) == 0);
	while (ibv_poll_cq(s->cq, 1, &wc) == 0)
		;
	return wc.status;
}

/* The block is a mapping of its own, because it is large. */
static int target(int in, int out)
{
	struct side s = {0};
	struct card peer;
	uint8_t *mapped;
	/* Not all of it: the NIC's own threads may map something meanwhile,
	 * which the kernel puts at the upper end. */
	size_t bytes = BLOCK_BYTES / 8;

	role = "target";
	side_open(&s);
	exchange(&s, in, out, &peer);
	NEED(read(in, &(char){0}, 1) == 1);
	mapped = (uint8_t *)((uintptr_t)s.block & ~(uintptr_t)4095);
	free(s.block);
	NEED(mmap(mapped, bytes, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		  0) == mapped);
	memset(mapped, CANARY, bytes);
	NEED(write(out, "u", 1) == 1);
	NEED(read(in, &(char){0}, 1) == 1);
	for (size_t i = 0; i < bytes; i++)
		NEED(mapped[i] == CANARY);
	return 0;
}

static void requester(int in, int out)
{
	static const enum ibv_wr_opcode opcode[] = {
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct side s = {0};
	struct card peer;

	side_open(&s);
	exchange(&s, in, out, &peer);
	NEED(ask(&s, CONNECTIONS - 1, opcode[0], peer.small_addr,
		 peer.small_rkey) == IBV_WC_SUCCESS);
	NEED(write(out, "f", 1) == 1);
	NEED(read(in, &(char){0}, 1) == 1);
	for (int i = 0; i < CONNECTIONS - 1; i++) {
		NEED(ask(&s, i, opcode[i], peer.addr, peer.rkey) ==
		     IBV_WC_REM_OP_ERR);
		NEED(ask(&s, CONNECTIONS - 1, opcode[i], peer.small_addr,
			 peer.small_rkey) == IBV_WC_SUCCESS);
	}
	NEED(write(out, "q", 1) == 1);
}

int main(void)
{
	int to[2], from[2], status;
	pid_t child;

	NEED(pipe(to) == 0 && pipe(from) == 0);
	child = fork();
	NEED(child >= 0);
	if (child == 0)
		_exit(target(to[0], from[1]));
	close(from[1]);
	requester(from[0], to[1]);
	NEED(waitpid(child, &status, 0) == child);
	NEED(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	puts("what came later is as it was");
	return 0;
}
