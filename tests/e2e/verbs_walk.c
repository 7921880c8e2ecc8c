/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks between two processes: verbs_walk TARGET REQUESTER, two addresses. The
 * target sets a walker and sleeps, so only its NIC thread executes; each walk
 * adds up a list and counts its visit in every node. The requester keeps
 * several under way, with READs between them, and looks at the end whether each
 * was executed once.
 */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	NODES = 48,
	NODE_BYTES = 256,
	BYTES = NODES * NODE_BYTES,
	DEPTH = 8,
	WALKS = 400,
	LIST_BYTES = 128,
	ROOM = 4, /* fewer than there are */
	PROGRAM = 5,
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		 IBV_ACCESS_REMOTE_READ,
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

struct node {
	uint64_t next, value, visits;
};

struct card {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t qpn, rkey;
};

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	void *mem;
	struct card card;
};

/* ---- the target ---------------------------------------------------------- */

struct walker {
	struct {
		struct aqdv_walk *walk;
		uint64_t at;
		uint32_t took;
	} slot[ROOM];
};

static int start(void *ctx, struct aqdv_walk *walk)
{
	struct walker *w = ctx;

	if (walk->program != PROGRAM)
		return -ENOENT;
	for (unsigned i = 0; i < ROOM; i++) {
		if (w->slot[i].walk)
			continue;
		w->slot[i].walk = walk;
		w->slot[i].at = walk->at;
		w->slot[i].took = 0;
		return 0;
	}
	return -EAGAIN;
}

static void step(struct walker *w, unsigned i)
{
	struct aqdv_walk *walk = w->slot[i].walk;
	enum aqdv_walk_status status = AQDV_WALK_DONE;
	uint64_t at = w->slot[i].at, *sum = (void *)walk->pad;
	uint8_t *host;

	if (w->slot[i].took == walk->iterations) {
		status = AQDV_WALK_MORE;
	} else if (aqdv_walk_reach(walk, at, sizeof(struct node), true,
				   &host) != AQDV_WALK_HERE) {
		status = AQDV_WALK_FAULT;
	} else {
		struct node *n = (void *)host;

		w->slot[i].took++;
		n->visits++;
		*sum += n->value;
		if (n->next) {
			w->slot[i].at = n->next;
			return;
		}
	}
	w->slot[i].walk = NULL;
	walk->answer_bytes = sizeof(*sum);
	aqdv_walk_done(walk, status, at, walk->iterations - w->slot[i].took,
		       w->slot[i].took);
}

static bool turn(void *ctx, uint32_t iterations)
{
	struct walker *w = ctx;
	bool more = true;

	while (more && iterations >= ROOM) {
		more = false;
		for (unsigned i = 0; i < ROOM; i++) {
			if (!w->slot[i].walk)
				continue;
			step(w, i);
			iterations--;
			more |= w->slot[i].walk != NULL;
		}
	}
	return more;
}

static void forget(void *ctx, struct aqdv_walk *walk)
{
	struct walker *w = ctx;

	for (unsigned i = 0; i < ROOM; i++)
		if (w->slot[i].walk == walk)
			w->slot[i].walk = NULL;
}

/* ---- both ---------------------------------------------------------------- */

static void side_open(struct side *s, const char *address)
{
	static const uint8_t key[AQDV_AUTH_KEY_BYTES] = {7, 7, 7};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 2 * DEPTH,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_device **list;

	NEED(setenv("AQUIFER_NIC_ADDRESS", address, 1) == 0);
	list = ibv_get_device_list(NULL);
	NEED(list && list[0]);
	s->ctx = ibv_open_device(list[0]);
	NEED(s->ctx);
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 4 * DEPTH, NULL, NULL, 0);
	NEED(s->pd && s->cq);
	init.send_cq = init.recv_cq = s->cq;
	s->qp = ibv_create_qp(s->pd, &init);
	NEED(s->qp);
	/* It counts where packets go over a network. */
	NEED(aqdv_qp_set_auth(s->qp, key, sizeof(key)) == 0);
	NEED(aqdv_alloc(s->ctx, BYTES, 0, &s->mem) == 0);
	s->mr = ibv_reg_mr(s->pd, s->mem, BYTES, ACCESS);
	NEED(s->mr && ibv_query_gid(s->ctx, 1, 1, &s->card.gid) == 0);
	s->card.qpn = s->qp->qp_num;
	s->card.rkey = s->mr->rkey;
	s->card.addr = (uintptr_t)s->mem;
}

static void side_connect(struct side *s, int in, int out, struct card *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = DEPTH,
		.max_rd_atomic = DEPTH,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};

	NEED(write(out, &s->card, sizeof(s->card)) == sizeof(s->card));
	NEED(read(in, peer, sizeof(*peer)) == sizeof(*peer));
	a.dest_qp_num = peer->qpn;
	a.ah_attr.grh.sgid_index = 1;
	a.ah_attr.grh.hop_limit = 64;
	a.ah_attr.grh.dgid = peer->gid;
	NEED(ibv_modify_qp(s->qp, &a,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_ACCESS_FLAGS) == 0);
	a.qp_state = IBV_QPS_RTR;
	NEED(ibv_modify_qp(s->qp, &a,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER) == 0);
	a.qp_state = IBV_QPS_RTS;
	NEED(ibv_modify_qp(s->qp, &a,
			   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_MAX_QP_RD_ATOMIC) == 0);
	NEED(write(out, "c", 1) == 1 && read(in, &(char){0}, 1) == 1);
}

static int target(const char *address, int in, int out)
{
	static struct walker w;
	struct aqdv_walker hook = {&w, start, turn, forget};
	uint64_t walks, again;
	struct side s = {0};
	struct card peer;

	role = "target";
	side_open(&s, address);
	NEED(aqdv_set_walker(s.ctx, &hook) == 0);
	NEED(aqdv_qp_set_walk_pad(s.qp, 64) == 0);
	for (unsigned i = 0; i < NODES; i++) {
		struct node *n = (void *)((uint8_t *)s.mem + i * NODE_BYTES);

		n->next = i + 1 < NODES ? (i + 1) * NODE_BYTES : 0;
		n->value = i;
	}
	side_connect(&s, in, out, &peer);
	NEED(read(in, &(char){0}, 1) == 1);
	NEED(aqdv_get_counter(s.ctx, "walks", &walks) == 0 && walks == WALKS);
	NEED(aqdv_get_counter(s.ctx, "duplicate_walks", &again) == 0);
	printf("%lu walks, %lu requests came again\n", walks, again);
	NEED(ibv_destroy_qp(s.qp) == 0);
	NEED(aqdv_set_walker(s.ctx, NULL) == 0);
	return 0;
}

/* ---- the requester ------------------------------------------------------- */

static void post_walk(struct side *s, const struct card *peer, uint64_t id)
{
	uint8_t *list = (uint8_t *)s->mem + id % DEPTH * LIST_BYTES;
	struct ibv_sge sge = {(uintptr_t)list, AQDV_WALK_RESULT_BYTES + 8,
			      s->mr->lkey};
	struct aqdv_walk_wr *bad, wr = {
					  .wr_id = id,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .send_flags = IBV_SEND_SIGNALED,
					  .program = PROGRAM,
					  .rkey = peer->rkey,
					  .iterations = NODES,
					  .send_bytes = 8,
				  };

	/* The sum begins at the walk's number. */
	memset(list, 0xee, LIST_BYTES);
	memcpy(list + AQDV_WALK_RESULT_BYTES, &id, sizeof(id));
	NEED(aqdv_post_walk(s->qp, &wr, &bad) == 0);
}

static void check_walk(struct side *s, uint64_t id)
{
	uint8_t *list = (uint8_t *)s->mem + id % DEPTH * LIST_BYTES;
	struct aqdv_walk_result r;
	uint64_t sum;

	memcpy(&r, list, sizeof(r));
	memcpy(&sum, list + sizeof(r), sizeof(sum));
	NEED(r.status == AQDV_WALK_DONE && r.took == NODES && r.left == 0);
	NEED(sum == id + NODES * (NODES - 1) / 2);
}

static void post_read(struct side *s, const struct card *peer, uint64_t addr,
		      uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)s->mem + BYTES / 2,
			      sizeof(struct node), s->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = id,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_READ,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = peer->rkey;
	NEED(ibv_post_send(s->qp, &wr, &bad) == 0);
}

static uint64_t wait_for(struct side *s)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(s->cq, 1, &wc);
	while (n == 0);
	NEED(n == 1 && wc.status == IBV_WC_SUCCESS);
	return wc.wr_id;
}

static void requester(const char *address, int in, int out)
{
	struct side s = {0};
	struct card peer;
	uint64_t posted = 0;

	side_open(&s, address);
	side_connect(&s, in, out, &peer);
	for (uint64_t id = 0; id < WALKS; id++) {
		while (posted < WALKS && posted < id + DEPTH)
			post_walk(&s, &peer, posted++);
		/* One READ in between, which is answered in its turn. */
		if (id % DEPTH == 0)
			post_read(&s, &peer, peer.addr, UINT64_MAX);
		while (wait_for(&s) == UINT64_MAX)
			;
		check_walk(&s, id);
	}
	for (uint64_t i = 0; i < NODES; i++) {
		struct node n;

		post_read(&s, &peer, peer.addr + i * NODE_BYTES, i);
		while (wait_for(&s) == UINT64_MAX)
			;
		memcpy(&n, (uint8_t *)s.mem + BYTES / 2, sizeof(n));
		NEED(n.visits == WALKS);
	}
	NEED(write(out, "e", 1) == 1);
}

int main(int argc, char **argv)
{
	int there[2], back[2], status;
	pid_t child;

	NEED(argc == 3 && pipe(there) == 0 && pipe(back) == 0);
	child = fork();
	NEED(child >= 0);
	/* Who is left alone sees the end of its pipe. */
	if (child == 0) {
		close(there[1]);
		close(back[0]);
		exit(target(argv[1], there[0], back[1]));
	}
	close(there[0]);
	close(back[1]);
	requester(argv[2], back[0], there[1]);
	NEED(waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
