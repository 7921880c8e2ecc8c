/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a round trip: added, posted, waited for. */
#include "trip.h"

#include <errno.h>
#include <stdlib.h>

#include "client/verbs_api.h"

int rig_trip_open(struct rig_trip *t, struct client_link *link,
		  struct rig_region *region, size_t buf_bytes)
{
	*t = (struct rig_trip){.link = link, .region = region};
	t->buf = calloc(1, buf_bytes);
	if (t->buf)
		t->mr = link->verbs->reg_mr(link->pd, t->buf, buf_bytes,
					    IBV_ACCESS_LOCAL_WRITE);
	return t->mr ? 0 : -ENOMEM;
}

void rig_trip_close(struct rig_trip *t)
{
	if (t->mr)
		(void)t->link->verbs->dereg_mr(t->mr);
	free(t->buf);
	*t = (struct rig_trip){0};
}

static struct ibv_send_wr *add(struct rig_trip *t, enum ibv_wr_opcode opcode,
			       uint32_t buf_at, uint32_t len_bytes)
{
	unsigned i = t->count++;

	ASSERT(i < RIG_TRIP_MAX);
	t->sge[i] = (struct ibv_sge){.addr = (uintptr_t)t->buf + buf_at,
				     .length = len_bytes,
				     .lkey = t->mr->lkey};
	t->wr[i] = (struct ibv_send_wr){
		.opcode = opcode, .sg_list = &t->sge[i], .num_sge = 1};
	if (i)
		t->wr[i - 1].next = &t->wr[i];
	return &t->wr[i];
}

void rig_trip_add(struct rig_trip *t, enum ibv_wr_opcode opcode, uint64_t at,
		  uint32_t buf_at, uint32_t len_bytes)
{
	struct ibv_send_wr *wr = add(t, opcode, buf_at, len_bytes);

	wr->wr.rdma.remote_addr = t->region->addr + at;
	wr->wr.rdma.rkey = t->region->rkey;
}

void rig_trip_add_cas(struct rig_trip *t, uint64_t at, uint32_t buf_at,
		      uint64_t compare, uint64_t swap)
{
	struct ibv_send_wr *wr = add(t, IBV_WR_ATOMIC_CMP_AND_SWP, buf_at, 8);

	wr->wr.atomic.remote_addr = t->region->addr + at;
	wr->wr.atomic.rkey = t->region->rkey;
	wr->wr.atomic.compare_add = compare;
	wr->wr.atomic.swap = swap;
}

int rig_trip_go(struct rig_trip *t)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	t->wr[t->count - 1].send_flags = IBV_SEND_SIGNALED;
	t->count = 0;
	if (ibv_post_send(t->link->qp, t->wr, &bad))
		return -EIO;
	while ((n = ibv_poll_cq(t->link->cq, 1, &wc)) == 0)
		client_clock_relax(t->link->clock);
	return n == 1 && wc.status == IBV_WC_SUCCESS ? 0 : -EIO;
}
