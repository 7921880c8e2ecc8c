/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the two sides of a subject; nothing here is measured. */
#include "offload_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "ours_conn.h"
#include "pair/pair.h"

enum {
	ACK_TIMEOUT = 18, /* 1 s: a server between its rounds may be starved */
};

struct conn {
	struct client_link link;
	struct ibv_mr *mr;
};

struct conn_hello {
	union ibv_gid gid;
	uint64_t addr;
	uint64_t size_bytes;
	uint32_t rkey;
	uint32_t qpn;
};

static int open_device(struct side *s, struct client_link *l)
{
	struct ibv_device **list = l->verbs->get_device_list(NULL);

	if (list && list[0])
		l->context = l->verbs->open_device(list[0]);
	if (list)
		l->verbs->free_device_list(list);
	if (!l->context)
		return side_fail(s, -ENODEV, "no RDMA device");
	l->pd = l->verbs->alloc_pd(l->context);
	if (!l->pd)
		return side_fail(s, -ENOMEM, "protection domain");
	l->cq = l->verbs->create_cq(l->context, 2 * CONN_DEPTH, NULL, NULL, 0);
	return l->cq ? 0 : side_fail(s, -ENOMEM, "completion queue");
}

static int make_qp(struct side *s, struct client_link *l)
{
	struct ibv_qp_init_attr init = {
		.send_cq = l->cq,
		.recv_cq = l->cq,
		.cap = {.max_send_wr = CONN_DEPTH,
			.max_recv_wr = CONN_RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	int rc;

	l->qp = l->verbs->create_qp(l->pd, &init);
	if (!l->qp)
		return side_fail(s, -ENOMEM, "queue pair");
	rc = pair_init(l->verbs->modify_qp, l->qp,
		       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	return rc < 0 ? side_fail(s, rc, "queue pair to INIT") : 0;
}

static int exchange(struct side *s, struct conn *c, void *memory,
		    size_t memory_bytes)
{
	struct client_link *l = &c->link;
	struct conn_hello mine = {.qpn = l->qp->qp_num,
				  .addr = (uintptr_t)memory,
				  .size_bytes = memory_bytes,
				  .rkey = c->mr ? c->mr->rkey : 0};
	struct conn_hello peer;
	int rc;

	if (l->verbs->query_gid(l->context, 1, l->verbs->gid_index, &mine.gid))
		return side_fail(s, -EIO, "address");
	rc = side_exchange(s, &mine, &peer, sizeof(mine));
	if (rc < 0)
		return rc;
	l->addr = peer.addr;
	l->size_bytes = peer.size_bytes;
	l->rkey = peer.rkey;
	return ours_connect_qp(s, l->qp, peer.qpn, &peer.gid, IBV_MTU_4096, 16,
			       ACK_TIMEOUT);
}

int conn_open(struct side *s, void *memory, size_t memory_bytes,
	      struct client_link **out)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct client_link *l;
	int rc;

	if (!c)
		return side_fail(s, -ENOMEM, "connection");
	l = &c->link;
	l->verbs = client_verbs_choose();
	l->clock = client_clock_real();
	rc = open_device(s, l);
	if (rc == 0)
		rc = make_qp(s, l);
	if (rc == 0 && memory) {
		c->mr = l->verbs->reg_mr(l->pd, memory, memory_bytes,
					 IBV_ACCESS_LOCAL_WRITE |
						 IBV_ACCESS_REMOTE_READ |
						 IBV_ACCESS_REMOTE_WRITE);
		if (!c->mr)
			rc = side_fail(s, -ENOMEM, "memory region");
	}
	if (rc == 0)
		rc = exchange(s, c, memory, memory_bytes);
	if (rc < 0) {
		conn_close(l);
		return rc;
	}
	*out = l;
	return 0;
}

void conn_close(struct client_link *l)
{
	struct conn *c = (struct conn *)l;

	if (!l)
		return;
	/* Results are in; an object that will not go ends with the process. */
	if (l->qp)
		(void)l->verbs->destroy_qp(l->qp);
	if (c->mr)
		(void)l->verbs->dereg_mr(c->mr);
	if (l->cq)
		(void)l->verbs->destroy_cq(l->cq);
	if (l->pd)
		(void)l->verbs->dealloc_pd(l->pd);
	if (l->context)
		(void)l->verbs->close_device(l->context);
	free(c);
}
