/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of one-sided requests. */
#include "trip.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

enum {
	WAIT_LOOKS = 256, /* polls between looks at the clock */
	WR_ID = 1,
};

/* Requests end by themselves, with an error if need be; this is for a NIC that
 * has lost one. */
#define WAIT_NS_MAX 60000000000ull

void trip_begin(struct trip *f)
{
	f->count = 0;
}

/* NULL: a test has stopped this client here. */
static struct ibv_send_wr *next(struct trip *f, int point, const void *local,
				uint32_t len_bytes)
{
	struct ibv_send_wr *w = &f->wr[f->count];
	struct ibv_sge *s = &f->sge[f->count];

	if (UNLIKELY(f->crash != NULL) && !f->is_crashed)
		f->is_crashed = f->crash(f->ctx, point);
	if (UNLIKELY(f->is_crashed || f->is_broken))
		return NULL;
	ASSERT(f->count < TRIP_WR_MAX);
	f->count++;
	*s = (struct ibv_sge){.addr = (uintptr_t)local,
			      .length = len_bytes,
			      .lkey = f->mr->lkey};
	*w = (struct ibv_send_wr){.num_sge = 1, .sg_list = s};
	return w;
}

static struct ibv_send_wr *add_rdma(struct trip *f, int point,
				    const struct trip_space *s,
				    enum ibv_wr_opcode opcode, uint64_t offset,
				    const void *local, uint32_t len_bytes)
{
	struct ibv_send_wr *w = next(f, point, local, len_bytes);

	if (!w)
		return NULL;
	w->opcode = opcode;
	w->wr.rdma.remote_addr = s->addr + offset;
	w->wr.rdma.rkey = s->rkey;
	return w;
}

void trip_read(struct trip *f, int point, const struct trip_space *s,
	       uint64_t offset, void *local, uint32_t len_bytes)
{
	struct ibv_send_wr *w = add_rdma(f, point, s, IBV_WR_RDMA_READ, offset,
					 local, len_bytes);

	/* The soft NIC, which has masked atomics, executes in the order of
	 * arrival; of others only those that are fenced wait for the atomic
	 * before them. */
	if (w && !f->link->has_masked_atomics && f->count > 1)
		w->send_flags = IBV_SEND_FENCE;
}

void trip_write(struct trip *f, int point, const struct trip_space *s,
		uint64_t offset, const void *local, uint32_t len_bytes)
{
	(void)add_rdma(f, point, s, IBV_WR_RDMA_WRITE, offset, local,
		       len_bytes);
}

void trip_cas(struct trip *f, int point, const struct trip_space *s,
	      uint64_t offset, uint64_t compare, uint64_t swap,
	      uint64_t *answer)
{
	struct ibv_send_wr *w = next(f, point, answer, sizeof(*answer));

	if (!w)
		return;
	w->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	w->wr.atomic.remote_addr = s->addr + offset;
	w->wr.atomic.rkey = s->rkey;
	w->wr.atomic.compare_add = compare;
	w->wr.atomic.swap = swap;
}

static int broken(struct trip *f, const char *why, int code)
{
	f->is_broken = true;
	return error_set(-ESTALE,
			 "the connection to the index is broken: %s %d", why,
			 code);
}

static int post(struct trip *f)
{
	struct ibv_send_wr *bad;
	int err;

	for (unsigned i = 0; i + 1 < f->count; i++)
		f->wr[i].next = &f->wr[i + 1];
	f->wr[f->count - 1].send_flags |= IBV_SEND_SIGNALED;
	f->wr[f->count - 1].wr_id = WR_ID;
	err = ibv_post_send(f->link->qp, f->wr, &bad);
	return err ? broken(f, "posting", abs(err)) : 0;
}

static int wait(struct trip *f)
{
	uint64_t give_up_ns = 0;
	struct ibv_wc wc;

	for (unsigned looks = 1;; looks++) {
		int n = ibv_poll_cq(f->link->cq, 1, &wc);

		if (n < 0)
			return broken(f, "polling", n);
		if (n > 0 && wc.status != IBV_WC_SUCCESS)
			return broken(f, "status", (int)wc.status);
		if (n > 0)
			return 0;
		client_clock_relax(f->clock);
		if (looks % WAIT_LOOKS)
			continue;
		if (!give_up_ns)
			give_up_ns = trip_now_ns(f) + WAIT_NS_MAX;
		else if (trip_now_ns(f) > give_up_ns)
			return broken(f, "waiting", ETIMEDOUT);
	}
}

int trip_run(struct trip *f)
{
	int err = 0;

	if (f->is_broken)
		return -ESTALE;
	if (f->count) {
		f->trips++;
		err = post(f);
		if (!err)
			err = wait(f);
	}
	f->count = 0;
	return err ? err : f->is_crashed ? -ESHUTDOWN : 0;
}

void trip_pause(struct trip *f, uint64_t ns)
{
	uint64_t end = trip_now_ns(f) + ns;

	do
		client_clock_relax(f->clock);
	while (trip_now_ns(f) < end);
}
