/* SPDX-License-Identifier: Apache-2.0 */
/* The real transport: a NIC, one completion queue per thread, one RC queue pair
 * per connection, connected through the node's HTTP interface. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "base/lock.h"
#include "client_priv.h"

enum {
	RD_ATOMIC = 16,
	STAGING_BYTES = CLIENT_SLOT_COUNT * CLIENT_SLOT_BYTES,
};

/* ---- the device and the thread's part ----------------------------------- */

static int open_soft(const char *rack, struct ibv_context **out)
{
	const struct client_verbs *v = client_verbs_choose();
	struct ibv_device **list = v->get_device_list(NULL);

	if (list && list[0])
		*out = v->open_in_rack(list[0], rack);
	if (list)
		v->free_device_list(list);
	return *out ? 0
		    : error_prefix(-ENODEV,
				   "the %s NIC cannot be opened: ", v->name);
}

/* A device that is named is wanted; else only who says so gets hardware, since
 * the rack's nodes may be on this host's soft NIC. */
static bool wants_system(const struct config *c)
{
	const char *mode = config_string(c, "nic", "mode");

	return strcmp(mode, "hw") == 0 ||
	       (strcmp(mode, "auto") == 0 &&
		config_string(c, "nic", "device")[0]);
}

int client_device_open(struct aq_rack *rack)
{
	const struct client_verbs *v = client_verbs_choose();
	int err;

	lock_assert_mutex_held(&rack->lock);
	if (rack->context)
		return 0;
	if (wants_system(rack->config)) {
		v = &rack->system_verbs;
		err = client_verbs_system(
			config_string(rack->config, "nic", "device"),
			config_string(rack->config, "nic", "address"),
			&rack->system_verbs, &rack->context);
	} else {
		err = open_soft(rack->name, &rack->context);
	}
	if (err) {
		rack->context = NULL;
		return err;
	}
	rack->pd = v->alloc_pd(rack->context);
	if (!rack->pd) {
		(void)v->close_device(rack->context);
		rack->context = NULL;
		return error_set(-ENOMEM, "no protection domain");
	}
	rack->verbs = v;
	return 0;
}

static void close_device(struct aq_rack *rack)
{
	if (!rack->context)
		return;
	/* All that hung on them is gone, so neither can fail. */
	(void)rack->verbs->dealloc_pd(rack->pd);
	(void)rack->verbs->close_device(rack->context);
}

static int thread_open(struct client_thread *t)
{
	struct aq_rack *rack = t->rack;
	int err;

	pthread_mutex_lock(&rack->lock);
	err = client_device_open(rack);
	pthread_mutex_unlock(&rack->lock);
	if (err)
		return err;
	t->staging = aligned_alloc(4096, STAGING_BYTES);
	if (!t->staging)
		return error_set(-ENOMEM, "no memory for transfers");
	memset(t->staging, 0, STAGING_BYTES);
	t->mr = rack->verbs->reg_mr(rack->pd, t->staging, STAGING_BYTES,
				    IBV_ACCESS_LOCAL_WRITE);
	if (!t->mr)
		goto err_free;
	t->cq = rack->verbs->create_cq(rack->context,
				       2 * CLIENT_SLOT_COUNT * CLIENT_NODE_MAX,
				       NULL, NULL, 0);
	if (!t->cq)
		goto err_dereg;
	return 0;

err_dereg:
	(void)rack->verbs->dereg_mr(t->mr);
err_free:
	free(t->staging);
	t->staging = NULL;
	return error_set(-ENOMEM, "the NIC has no more queues or keys");
}

static void thread_close(struct client_thread *t)
{
	(void)t->rack->verbs->destroy_cq(t->cq);
	(void)t->rack->verbs->dereg_mr(t->mr);
	free(t->staging);
}

/* ---- connecting --------------------------------------------------------- */

static int make_qp(struct client_conn *conn)
{
	struct client_thread *t = conn->thread;
	struct ibv_qp_init_attr attr = {
		.send_cq = t->cq,
		.recv_cq = t->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 2 * CLIENT_SLOT_COUNT,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	conn->qp = t->rack->verbs->create_qp(t->rack->pd, &attr);
	if (!conn->qp)
		return error_set(-ENOMEM, "the NIC has no queue pair left");
	return client_join_init(t->rack->verbs, conn->qp, 0);
}

static void conn_close(struct client_conn *conn)
{
	if (conn->qp)
		(void)conn->thread->rack->verbs->destroy_qp(conn->qp);
	conn->qp = NULL;
	client_join_end(conn->thread, &conn->bond);
}

static int conn_open(struct client_conn *conn, uint64_t deadline_ns)
{
	struct client_far far;
	int err;

	conn->bond.id[0] = '\0';
	err = make_qp(conn);
	if (!err)
		err = client_join(conn->thread, conn->qp, RD_ATOMIC, NULL, true,
				  deadline_ns, &conn->bond, &far);
	if (err)
		conn_close(conn);
	else
		client_join_peer(conn->thread->rack, &far, conn->peer);
	return err;
}

/* ---- moving data -------------------------------------------------------- */

/* Completions may outlive their queue pair; the generation tells. */
static uint64_t wr_id_of(const struct client_conn *conn, uint32_t slot)
{
	return (uint64_t)conn->generation << 32 | conn->node << 8 | slot;
}

static int conn_post(struct client_conn *conn, const struct client_op *op)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[CLIENT_READ] = IBV_WR_RDMA_READ,
		[CLIENT_WRITE] = IBV_WR_RDMA_WRITE,
		[CLIENT_CAS] = IBV_WR_ATOMIC_CMP_AND_SWP,
		[CLIENT_FAA] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct client_thread *t = conn->thread;
	struct ibv_sge sge = {
		.addr = (uintptr_t)t->staging +
			(uint64_t)op->slot * CLIENT_SLOT_BYTES,
		.length = op->len_bytes,
		.lkey = t->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = wr_id_of(conn, op->slot),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcodes[op->kind],
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	int err;

	if (op->kind == CLIENT_READ || op->kind == CLIENT_WRITE) {
		wr.wr.rdma.remote_addr = op->remote_addr;
		wr.wr.rdma.rkey = op->rkey;
	} else {
		wr.wr.atomic.remote_addr = op->remote_addr;
		wr.wr.atomic.rkey = op->rkey;
		wr.wr.atomic.compare_add = op->compare_add;
		wr.wr.atomic.swap = op->swap;
	}
	err = ibv_post_send(conn->qp, &wr, &bad);
	return err ? error_set(-err, "the NIC refused a request") : 0;
}

static int thread_poll(struct client_thread *t, struct client_done *done,
		       unsigned max)
{
	struct ibv_wc wc[CLIENT_SLOT_COUNT];
	int i, count = 0;
	int n = ibv_poll_cq(t->cq, (int)u32_min(max, CLIENT_SLOT_COUNT), wc);

	if (n < 0)
		return error_set(-EIO, "the completion queue cannot be polled");
	for (i = 0; i < n; i++) {
		uint32_t node = wc[i].wr_id >> 8 & 0xff;
		struct client_conn *conn = &t->conn[node % CLIENT_NODE_MAX];

		if (!conn->is_open || conn->generation != wc[i].wr_id >> 32)
			continue;
		done[count].slot = wc[i].wr_id & 0xff;
		done[count++].err = client_wc_errno(wc[i].status);
	}
	return count;
}

const struct client_transport *client_transport_verbs(void)
{
	static const struct client_transport self = {
		.now_ns = client_real_now_ns,
		.relax = client_real_relax,
		.thread_open = thread_open,
		.thread_close = thread_close,
		.conn_open = conn_open,
		.conn_close = conn_close,
		.post = conn_post,
		.poll = thread_poll,
		.rack_close = close_device,
	};

	return &self;
}
