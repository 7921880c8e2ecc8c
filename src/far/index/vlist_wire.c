/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: requests are posted together, in order, and the last one is waited
 * for. One batch is one round trip. */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "vlist_priv.h"

enum {
	WAIT_LOOKS = 256, /* polls between looks at the clock */
	WR_ID = 1,
};

/* Requests end by themselves, with an error if need be; this is for a NIC that
 * has lost one. */
#define WAIT_NS_MAX 60000000000ull

void vlist_begin(struct vlist_client *c)
{
	c->wr_count = 0;
}

/* NULL: a test has stopped this client here. */
static struct ibv_send_wr *next(struct vlist_client *c, enum vlist_point point,
				const void *local, uint32_t len_bytes)
{
	struct ibv_send_wr *w = &c->wr[c->wr_count];
	struct ibv_sge *s = &c->sge[c->wr_count];

	if (UNLIKELY(c->config.crash != NULL) && !c->is_crashed)
		c->is_crashed = c->config.crash(c->config.ctx, point);
	if (UNLIKELY(c->is_crashed))
		return NULL;
	ASSERT(c->wr_count < VLIST_WR_MAX);
	c->wr_count++;
	*s = (struct ibv_sge){.addr = (uintptr_t)local,
			      .length = len_bytes,
			      .lkey = c->mr->lkey};
	*w = (struct ibv_send_wr){.num_sge = 1, .sg_list = s};
	return w;
}

static void add_rdma(struct vlist_client *c, enum vlist_point point,
		     enum ibv_wr_opcode opcode, uint64_t offset,
		     const void *local, uint32_t len_bytes)
{
	struct ibv_send_wr *w = next(c, point, local, len_bytes);

	if (!w)
		return;
	w->opcode = opcode;
	w->wr.rdma.remote_addr = c->port.addr + offset;
	w->wr.rdma.rkey = c->port.rkey;
}

void vlist_add_read(struct vlist_client *c, uint64_t offset, void *local,
		    uint32_t len_bytes)
{
	c->stats.sent_reads++;
	add_rdma(c, VLIST_POINT_READ, IBV_WR_RDMA_READ, offset, local,
		 len_bytes);
}

void vlist_add_write(struct vlist_client *c, enum vlist_point point,
		     uint64_t offset, const void *local, uint32_t len_bytes)
{
	c->stats.sent_writes++;
	add_rdma(c, point, IBV_WR_RDMA_WRITE, offset, local, len_bytes);
}

void vlist_add_cas(struct vlist_client *c, enum vlist_point point,
		   uint64_t offset, uint64_t compare, uint64_t swap,
		   uint64_t *answer)
{
	struct ibv_send_wr *w = next(c, point, answer, sizeof(*answer));

	if (!w)
		return;
	c->stats.sent_atomics++;
	w->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	w->wr.atomic.remote_addr = c->port.addr + offset;
	w->wr.atomic.rkey = c->port.rkey;
	w->wr.atomic.compare_add = compare;
	w->wr.atomic.swap = swap;
}

static int broken(struct vlist_client *c, const char *why, int code)
{
	c->is_broken = true;
	return error_set(-ESTALE,
			 "the connection to the store is broken: %s %d", why,
			 code);
}

static int post(struct vlist_client *c)
{
	struct ibv_send_wr *bad;
	int err;

	for (unsigned i = 0; i + 1 < c->wr_count; i++)
		c->wr[i].next = &c->wr[i + 1];
	c->wr[c->wr_count - 1].send_flags = IBV_SEND_SIGNALED;
	c->wr[c->wr_count - 1].wr_id = WR_ID;
	err = ibv_post_send(c->port.link->qp, c->wr, &bad);
	return err ? broken(c, "posting", abs(err)) : 0;
}

static int wait(struct vlist_client *c)
{
	uint64_t give_up_ns = 0;
	struct ibv_wc wc;

	for (unsigned looks = 1;; looks++) {
		int n = ibv_poll_cq(c->port.link->cq, 1, &wc);

		if (n < 0)
			return broken(c, "polling", n);
		if (n > 0 && wc.status != IBV_WC_SUCCESS)
			return broken(c, "status", (int)wc.status);
		if (n > 0)
			return 0;
		client_clock_relax(c->clock);
		if (looks % WAIT_LOOKS)
			continue;
		if (!give_up_ns)
			give_up_ns = vlist_now_ns(c) + WAIT_NS_MAX;
		else if (vlist_now_ns(c) > give_up_ns)
			return broken(c, "waiting", ETIMEDOUT);
	}
}

int vlist_run(struct vlist_client *c)
{
	int err = 0;

	if (c->is_broken)
		return -ESTALE;
	if (c->wr_count) {
		c->stats.trips++;
		err = post(c);
		if (!err)
			err = wait(c);
	}
	c->wr_count = 0;
	return err ? err : c->is_crashed ? -ESHUTDOWN : 0;
}

int vlist_read_now(struct vlist_client *c, uint64_t offset, void *local,
		   uint32_t len_bytes)
{
	vlist_begin(c);
	vlist_add_read(c, offset, local, len_bytes);
	return vlist_run(c);
}

int vlist_cas_now(struct vlist_client *c, enum vlist_point point,
		  uint64_t offset, uint64_t compare, uint64_t swap,
		  uint64_t *old)
{
	int err;

	vlist_begin(c);
	vlist_add_cas(c, point, offset, compare, swap, &c->atom[1]);
	err = vlist_run(c);
	if (!err)
		*old = c->atom[1];
	return err;
}

void vlist_pause(struct vlist_client *c, uint64_t ns)
{
	uint64_t end = vlist_now_ns(c) + ns;

	while (vlist_now_ns(c) < end)
		client_clock_relax(c->clock);
}
