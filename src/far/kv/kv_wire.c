/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches: requests are collected, posted together in order, and waited for at
 * the last of them, which alone is signaled. One batch is one round trip.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kv_priv.h"

enum {
	WR_BATCH = UINT32_MAX, /* the wr_id of a batch; others are reads */
	WAIT_LOOKS = 256,      /* polls between looks at the clock */
	BIG_ALIGN = 4096,
};

/* Requests end by themselves, with an error if need be; this is for a NIC that
 * has lost one. */
#define WAIT_NS_MAX 60000000000ull

const char *kv_point_name(enum kv_point point)
{
	static const char *const names[] = {
		[KV_POINT_INTENT] = "intent", [KV_POINT_EXTENT] = "extent",
		[KV_POINT_MAP] = "map",	      [KV_POINT_LOCK] = "lock",
		[KV_POINT_READ] = "read",     [KV_POINT_ROW] = "row",
		[KV_POINT_ROW_TAIL] = "crc",  [KV_POINT_FREE] = "free",
		[KV_POINT_UNLOCK] = "unlock", [KV_POINT_IDLE] = "idle",
		[KV_POINT_LEASE] = "lease",   [KV_POINT_FENCE] = "fence",
		[KV_POINT_MEND] = "mend",     [KV_POINT_STATE] = "state",
		[KV_POINT_LEAF] = "leaf",
	};

	return point < KV_POINT_COUNT ? names[point] : "?";
}

void kv_begin(struct kv_leaf *c)
{
	c->wr_count = 0;
}

/* NULL: a test has stopped this client here, or it has no connection; then
 * kv_post says so. */
static struct kv_wr *next(struct kv_leaf *c, enum kv_point point)
{
	if (UNLIKELY(c->config.crash != NULL) && !c->is_crashed)
		c->is_crashed = c->config.crash(c->config.ctx, point);
	if (UNLIKELY(c->is_crashed || c->is_broken))
		return NULL;
	ASSERT(c->wr_count < KV_WR_MAX);
	return &c->wr[c->wr_count++];
}

static uint32_t key_of(const struct kv_leaf *c, const void *p)
{
	const uint8_t *b = p;

	return c->big && b >= c->big && b < c->big + c->big_bytes
		       ? c->big_mr->lkey
		       : c->mr->lkey;
}

static void put_rdma(struct kv_leaf *c, struct kv_wr *w,
		     enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey,
		     const void *local, uint64_t len_bytes)
{
	w->is_masked = false;
	w->sge = (struct ibv_sge){.addr = (uintptr_t)local,
				  .length = (uint32_t)len_bytes,
				  .lkey = key_of(c, local)};
	w->ib = (struct ibv_send_wr){
		.opcode = opcode,
		.num_sge = 1,
		.sg_list = &w->sge,
		.wr.rdma = {.remote_addr = addr, .rkey = rkey}};
}

void kv_add_read(struct kv_leaf *c, enum kv_point point, uint64_t offset,
		 void *to, uint64_t len_bytes)
{
	struct kv_wr *w = next(c, point);

	if (!w)
		return;
	put_rdma(c, w, IBV_WR_RDMA_READ, c->port.addr + offset, c->port.rkey,
		 to, len_bytes);
	/* NICs with masked atomics execute in the order of arrival; of others
	 * only those that are fenced wait for the atomic before them. */
	if (!c->port.link->has_masked_atomics)
		w->ib.send_flags = IBV_SEND_FENCE;
}

void kv_add_write(struct kv_leaf *c, enum kv_point point, uint64_t offset,
		  const void *from, uint64_t len_bytes)
{
	struct kv_wr *w = next(c, point);

	if (w)
		put_rdma(c, w, IBV_WR_RDMA_WRITE, c->port.addr + offset,
			 c->port.rkey, from, len_bytes);
}

static void put_cas(struct kv_leaf *c, struct kv_wr *w, uint64_t addr,
		    uint32_t rkey, uint64_t compare, uint64_t swap,
		    enum kv_atom answer)
{
	w->is_masked = false;
	w->sge = (struct ibv_sge){.addr = (uintptr_t)&c->atom[answer],
				  .length = 8,
				  .lkey = c->mr->lkey};
	w->ib = (struct ibv_send_wr){.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
				     .num_sge = 1,
				     .sg_list = &w->sge,
				     .wr.atomic = {.remote_addr = addr,
						   .rkey = rkey,
						   .compare_add = compare,
						   .swap = swap}};
}

void kv_add_cas(struct kv_leaf *c, enum kv_point point, uint64_t offset,
		uint64_t compare, uint64_t swap, enum kv_atom answer)
{
	struct kv_wr *w = next(c, point);

	if (w)
		put_cas(c, w, c->port.addr + offset, c->port.rkey, compare,
			swap, answer);
}

static void put_masked(struct kv_leaf *c, struct kv_wr *w, uint64_t word,
		       uint64_t compare_mask, uint64_t swap, uint64_t swap_mask,
		       enum kv_atom answer)
{
	w->is_masked = true;
	w->sge = (struct ibv_sge){.addr = (uintptr_t)&c->atom[answer],
				  .length = 8,
				  .lkey = c->mr->lkey};
	w->masked = (struct aqdv_masked_wr){
		.sg_list = &w->sge,
		.num_sge = 1,
		.remote_addr = c->port.lock_addr + kv_lock_at(word),
		.rkey = c->port.lock_rkey,
		.cas = {.compare_mask = compare_mask,
			.swap = swap,
			.swap_mask = swap_mask}};
}

void kv_add_lock(struct kv_leaf *c, uint64_t word, uint64_t mask,
		 enum kv_atom answer)
{
	struct kv_wr *w = next(c, KV_POINT_LOCK);

	if (!w)
		return;
	if (c->g.flags & KV_WORD_LOCKS)
		put_cas(c, w, c->port.lock_addr + kv_lock_at(word),
			c->port.lock_rkey, 0, kv_lock_holder(c->slot, c->epoch),
			answer);
	else
		put_masked(c, w, word, mask, mask, mask, answer);
}

void kv_add_unlock_of(struct kv_leaf *c, uint64_t word, uint64_t mask,
		      uint64_t holder)
{
	struct kv_wr *w = next(c, KV_POINT_UNLOCK);

	if (!w)
		return;
	if (c->g.flags & KV_WORD_LOCKS)
		put_cas(c, w, c->port.lock_addr + kv_lock_at(word),
			c->port.lock_rkey, holder, 0, KV_ATOM_UNLOCK);
	else
		put_masked(c, w, word, 0, 0, mask, KV_ATOM_UNLOCK);
}

void kv_add_unlock(struct kv_leaf *c, uint64_t word, uint64_t mask)
{
	kv_add_unlock_of(c, word, mask, kv_lock_holder(c->slot, c->epoch));
}

void kv_add_lock_read(struct kv_leaf *c, uint64_t word, void *to,
		      uint64_t len_bytes)
{
	struct kv_wr *w = next(c, KV_POINT_READ);

	if (w)
		put_rdma(c, w, IBV_WR_RDMA_READ,
			 c->port.lock_addr + kv_lock_at(word),
			 c->port.lock_rkey, to, len_bytes);
}

/* Requests of one kind that follow each other are posted as one list. */
static int post_run(struct kv_leaf *c, unsigned from, unsigned to)
{
	struct ibv_qp *qp = c->port.link->qp;
	struct aqdv_masked_wr *bad_masked;
	struct ibv_send_wr *bad;
	unsigned i;

	if (c->wr[from].is_masked) {
		for (i = from; i + 1 < to; i++)
			c->wr[i].masked.next = &c->wr[i + 1].masked;
		return -abs(aqdv_post_masked_cas(qp, &c->wr[from].masked,
						 &bad_masked));
	}
	for (i = from; i + 1 < to; i++)
		c->wr[i].ib.next = &c->wr[i + 1].ib;
	return -abs(ibv_post_send(qp, &c->wr[from].ib, &bad));
}

int kv_post(struct kv_leaf *c, uint64_t wr_id)
{
	unsigned from, to;
	struct kv_wr *last;

	if (c->is_broken)
		return -ESTALE;
	if (!c->wr_count)
		return c->is_crashed ? -ESHUTDOWN : 0;
	last = &c->wr[c->wr_count - 1];
	if (last->is_masked) {
		last->masked.send_flags |= IBV_SEND_SIGNALED;
		last->masked.wr_id = wr_id;
	} else {
		last->ib.send_flags |= IBV_SEND_SIGNALED;
		last->ib.wr_id = wr_id;
	}
	for (from = 0; from < c->wr_count; from = to) {
		int err;

		for (to = from + 1; to < c->wr_count; to++)
			if (c->wr[to].is_masked != c->wr[from].is_masked)
				break;
		err = post_run(c, from, to);
		if (err) {
			c->is_broken = true;
			return error_set(err, "the NIC refused a request");
		}
	}
	c->wr_count = 0;
	return 0;
}

static int broken(struct kv_leaf *c, enum ibv_wc_status status)
{
	/* The first reason counts; the rest only follows. */
	if (!c->is_broken)
		(void)error_set(-ESTALE,
				"the connection to the table is broken: "
				"status %d",
				(int)status);
	c->is_broken = true;
	return -ESTALE;
}

int kv_poll_once(struct kv_leaf *c, bool *batch_done)
{
	struct ibv_wc wc[KV_POLL_BATCH];
	int i, err = 0, n = ibv_poll_cq(c->port.link->cq, KV_POLL_BATCH, wc);

	if (n < 0)
		return broken(c, IBV_WC_GENERAL_ERR);
	if (n > 0)
		c->polled_ns = kv_now_ns(c);
	for (i = 0; i < n; i++) {
		int one = 0;

		if (wc[i].status != IBV_WC_SUCCESS)
			one = broken(c, wc[i].status);
		if (one)
			err = one;
		else if (wc[i].wr_id == WR_BATCH)
			*batch_done = true;
		else
			kv_get_completed(c, (uint32_t)wc[i].wr_id, one);
	}
	if (n == 0)
		kv_relax(c);
	return err;
}

int kv_run(struct kv_leaf *c)
{
	uint64_t give_up_ns = 0, posted_ns = kv_now_ns(c);
	unsigned looks = 0;
	bool is_done = false;
	bool has_work = c->wr_count > 0;
	int err = kv_post(c, WR_BATCH);

	if (err)
		return err;
	if (!has_work)
		return c->is_crashed ? -ESHUTDOWN : 0;
	c->trips++;
	while (!is_done && !err) {
		err = kv_poll_once(c, &is_done);
		if (++looks % WAIT_LOOKS)
			continue;
		if (!give_up_ns)
			give_up_ns = kv_now_ns(c) + WAIT_NS_MAX;
		else if (kv_now_ns(c) > give_up_ns)
			err = broken(c, IBV_WC_RESP_TIMEOUT_ERR);
	}
	if (!err)
		kv_pace_best(&c->pace, c->polled_ns - posted_ns);
	return err ? err : c->is_crashed ? -ESHUTDOWN : 0;
}

int kv_cas_now(struct kv_leaf *c, enum kv_point point, uint64_t offset,
	       uint64_t compare, uint64_t swap, uint64_t *old)
{
	int err;

	kv_begin(c);
	kv_add_cas(c, point, offset, compare, swap, KV_ATOM_OTHER);
	err = kv_run(c);
	if (!err)
		*old = c->atom[KV_ATOM_OTHER];
	return err;
}

int kv_read_now(struct kv_leaf *c, uint64_t offset, void *to,
		uint64_t len_bytes)
{
	uint64_t done, part;
	int err = 0;

	for (done = 0; done < len_bytes && !err; done += part) {
		part = u64_min(len_bytes - done, KV_WRITE_BYTES);
		kv_begin(c);
		kv_add_read(c, KV_POINT_READ, offset + done,
			    (uint8_t *)to + done, part);
		err = kv_run(c);
	}
	return err;
}

void kv_pause(struct kv_leaf *c, uint64_t ns)
{
	uint64_t end = kv_now_ns(c) + ns;

	do {
		kv_relax(c);
		/* Its connection's end is seen when it is needed again. */
		if (c->outer)
			kv_beat(c->outer);
	} while (kv_now_ns(c) < end);
}

int kv_past_deadline(struct kv_leaf *c)
{
	return kv_now_ns(c) > c->deadline_ns
		       ? error_set(-ETIMEDOUT,
				   "others kept the key's locks for too long")
		       : 0;
}

int kv_big_reserve(struct kv_leaf *c, uint64_t bytes)
{
	const struct client_verbs *v = c->port.link->verbs;
	uint8_t *p;

	if (bytes <= c->big_bytes)
		return 0;
	bytes = align_up(bytes, BIG_ALIGN);
	p = aligned_alloc(BIG_ALIGN, bytes);
	if (!p)
		return error_set(-ENOMEM, "no memory for a large value");
	memset(p, 0, bytes);
	if (c->big_mr)
		(void)v->dereg_mr(c->big_mr);
	free(c->big);
	c->big = p;
	c->big_bytes = bytes;
	c->big_mr =
		v->reg_mr(c->port.link->pd, p, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (c->big_mr)
		return 0;
	free(c->big);
	c->big = NULL;
	c->big_bytes = 0;
	return error_set(-ENOMEM, "the NIC registers no memory");
}
