/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant of `aquifer bench fair` does with one NIC: requests, pages, and
 * frames past the NIC. Every step is short, so that tenants take turns. */
#include <aquifer/aquifer.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "fair.h"
#include "place.h"
#include "ticks.h"
#include "verbs/verbs.h"

enum {
	STEP = 8, /* requests that one step begins */
	SMALL_BYTES = 64,
	LARGE_BYTES = 4096,
	REGION_BYTES = 1 << 20,
	KEY_BYTES = REGION_BYTES - 4096, /* not all of it: nobody maps it */
	BUF_BYTES = FAIR_DEPTH_MAX * LARGE_BYTES,
	PAGES = 64,
};

#define DRAIN_NS 20000000000ull

/* ---- life -----------------------------------------------------------------
 */

static int open_link(struct fair_nic *nic, unsigned at)
{
	/* Less than all rights is a window, which nobody maps. */
	struct client_link_options o = {.send_depth = nic->depth,
					.rd_atomic = nic->depth,
					.rights = CLIENT_LINK_WRITE};
	int err;

	client_link_close(nic->link[at]);
	nic->link[at] = NULL;
	nic->under_way[at] = 0;
	err = client_link_open(nic->rack, nic->name, &o, &nic->link[at]);
	return err ? err
		   : client_link_key(nic->link[at], nic->name, KEY_BYTES,
				     &nic->key[at]);
}

static int open_links(struct fair_nic *nic, unsigned links)
{
	int err = 0;

	for (; !err && nic->link_count < links; nic->link_count++)
		err = open_link(nic, nic->link_count);
	if (err)
		return err;
	nic->mr = nic->link[0]->verbs->reg_mr(
		nic->link[0]->pd, nic->buf, BUF_BYTES, IBV_ACCESS_LOCAL_WRITE);
	return nic->mr ? 0 : error_set(-ENOMEM, "no memory region is left");
}

static int open_pages(struct fair_nic *nic, enum page_mode mode,
		      struct fair_pages *p)
{
	struct page_store_options o = {.pages = PAGES,
				       .mode = mode,
				       .depth = nic->depth,
				       .has_no_checksum = true,
				       .is_unmapped = true};
	char full[64];
	int err;

	snprintf(full, sizeof(full), "%s-%s", nic->name, page_mode_name(mode));
	err = page_store_open(nic->rack, full, &o, &p->store);
	if (!err)
		err = page_register(p->store, nic->buf, BUF_BYTES);
	for (unsigned i = 0; i < PAGES && !err; i++)
		err = page_put(p->store, i, nic->buf);
	for (unsigned i = 0; i < nic->depth; i++) {
		p->op[i].buf = nic->buf + (size_t)i * LARGE_BYTES;
		p->idle[p->idle_count++] = &p->op[i];
	}
	return err;
}

int fair_nic_open(struct fair_nic *nic, const char *name, unsigned links,
		  uint32_t depth)
{
	int err;

	nic->depth = depth;
	snprintf(nic->name, sizeof(nic->name), "%s", name);
	fair_tap_init(nic);
	verbs_set_provider(&nic->provider);
	nic->buf = aligned_alloc(LARGE_BYTES, BUF_BYTES);
	if (!nic->buf)
		return error_set(-ENOMEM, "no memory");
	memset(nic->buf, 0, BUF_BYTES);
	err = place_rack(&nic->rack);
	if (!err)
		err = aq_region_create(nic->rack, name, REGION_BYTES, NULL,
				       &nic->region);
	if (!err)
		err = open_links(nic, links);
	if (!err)
		err = open_pages(nic, PAGE_CHAIN, &nic->chain);
	if (!err)
		err = open_pages(nic, PAGE_TWO_SIDED, &nic->message);
	return err;
}

/* ---- requests -------------------------------------------------------------
 */

static const struct {
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
} requests[FAIR_KINDS] = {
	[FAIR_READ_SMALL] = {IBV_WR_RDMA_READ, SMALL_BYTES},
	[FAIR_READ] = {IBV_WR_RDMA_READ, LARGE_BYTES},
	[FAIR_WRITE] = {IBV_WR_RDMA_WRITE, LARGE_BYTES},
	[FAIR_ATOMIC] = {IBV_WR_ATOMIC_FETCH_AND_ADD, 8},
	[FAIR_AGAIN_READ_SMALL] = {IBV_WR_RDMA_READ, SMALL_BYTES},
	[FAIR_AGAIN_READ] = {IBV_WR_RDMA_READ, LARGE_BYTES},
	[FAIR_AGAIN_WRITE] = {IBV_WR_RDMA_WRITE, LARGE_BYTES},
	[FAIR_AGAIN_ATOMIC] = {IBV_WR_ATOMIC_FETCH_AND_ADD, 8},
	[FAIR_UNREADY] = {IBV_WR_SEND, SMALL_BYTES},
	[FAIR_BAD_KEY] = {IBV_WR_RDMA_READ, SMALL_BYTES},
	[FAIR_DAMAGED] = {IBV_WR_RDMA_WRITE, LARGE_BYTES},
};

static int post(struct fair_nic *nic, unsigned at, enum fair_kind kind)
{
	uint32_t bytes = requests[kind].bytes;
	uint64_t to = nic->key[at].addr + nic->next % (KEY_BYTES - LARGE_BYTES);
	struct ibv_sge sge = {.addr = (uintptr_t)nic->buf + nic->next % 16 * 64,
			      .length = bytes,
			      .lkey = nic->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .send_flags = IBV_SEND_SIGNALED,
				       .opcode = requests[kind].opcode};

	if (kind == FAIR_ATOMIC || kind == FAIR_AGAIN_ATOMIC) {
		wr.wr.atomic.remote_addr = to & ~(uint64_t)7;
		wr.wr.atomic.rkey = nic->key[at].rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = to;
		wr.wr.rdma.rkey = nic->key[at].rkey;
	}
	nic->next += SMALL_BYTES;
	nic->under_way[at]++;
	return -ibv_post_send(nic->link[at]->qp, &wr, &bad);
}

/* How many ended. */
static int look(struct fair_nic *nic, unsigned at)
{
	struct ibv_wc wc[2 * STEP];
	int n = ibv_poll_cq(nic->link[at]->cq, 2 * STEP, wc);

	for (int i = 0; i < n; i++) {
		nic->under_way[at]--;
		if (wc[i].status != IBV_WC_SUCCESS)
			return error_set(-EREMOTEIO, "a request ended with %s",
					 ibv_wc_status_str(wc[i].status));
	}
	return n;
}

static int step_requests(struct fair_nic *nic, enum fair_kind kind)
{
	unsigned at = nic->link_at++ % nic->link_count;
	int n = look(nic, at), err = 0;

	for (unsigned i = 0;
	     i < 2 * STEP && nic->under_way[at] < nic->depth && !err && n >= 0;
	     i++)
		err = post(nic, at, kind);
	return err ? error_set(err, "a request is not taken") : n;
}

/* ---- pages ----------------------------------------------------------------
 */

static int take_pages(struct fair_pages *p)
{
	struct page_op *done[STEP];
	int n = page_poll(p->store, done, STEP), err = 0;

	for (int i = 0; i < n; i++) {
		err = done[i]->result ? done[i]->result : err;
		p->idle[p->idle_count++] = done[i];
	}
	return err ? error_set(err, "a page operation failed") : n;
}

static int step_pages(struct fair_nic *nic, struct fair_pages *p)
{
	for (unsigned i = 0; i < STEP && p->idle_count; i++) {
		struct page_op *op = p->idle[p->idle_count - 1];

		op->kind =
			nic->is_hostile && p->next % 2 ? PAGE_STORE : PAGE_LOAD;
		op->page = p->next++ / 2 % PAGES;
		if (page_submit(p->store, &op, 1) != 1)
			return error_set(-EIO, "a page operation is refused");
		p->idle_count--;
	}
	return take_pages(p);
}

/* ---- frames past the NIC --------------------------------------------------
 */

static bool is_frames(enum fair_kind kind)
{
	return kind >= FAIR_AGAIN_READ_SMALL;
}

/* The answers are read, and mean nothing to the NIC. */
static int step_frames(struct fair_nic *nic)
{
	int n = fair_frame_send(nic);
	int err = look(nic, 0);

	return err < 0 ? err : n;
}

/* On a connection of its own, which it may break. */
static int record_frame(struct fair_nic *nic, enum fair_kind kind)
{
	unsigned at = nic->link_count;
	uint64_t end_ns = bench_now_ns() + DRAIN_NS;
	int err = open_link(nic, at), n = 0;

	nic->frame_bytes = 0;
	fair_tap_want(nic);
	if (!err)
		err = post(nic, at, kind);
	/* A message that nobody receives stays under way. */
	while (!err && n == 0 && kind != FAIR_UNREADY) {
		n = look(nic, at);
		if (n < 0 || bench_now_ns() > end_ns)
			err = n < 0 ? n : -ETIMEDOUT;
	}
	if (!err && !nic->frame_bytes)
		err = -ETIMEDOUT;
	if (err)
		return error_set(err, "no frame can be had");
	fair_frame_spoil(nic, kind);
	return 0;
}

/* ---- all of them ----------------------------------------------------------
 */

int fair_nic_begin(struct fair_nic *nic, enum fair_kind kind)
{
	return is_frames(kind) ? record_frame(nic, kind) : 0;
}

int fair_nic_step(struct fair_nic *nic, enum fair_kind kind)
{
	if (kind == FAIR_CHAIN)
		return step_pages(nic, &nic->chain);
	if (kind == FAIR_MESSAGE)
		return step_pages(nic, &nic->message);
	if (is_frames(kind))
		return step_frames(nic);
	return step_requests(nic, kind);
}

/* Whatever is in a cable is read when a request that comes last is answered. */
int fair_nic_drain(struct fair_nic *nic, enum fair_kind kind)
{
	uint64_t end_ns = bench_now_ns() + DRAIN_NS;
	uint32_t left = 1;
	int err = is_frames(kind) ? post(nic, 0, FAIR_READ_SMALL) : 0;

	while (!err && left) {
		int n = 0;

		left = 0;
		for (unsigned i = 0; i < nic->link_count && n >= 0; i++) {
			n = look(nic, i);
			left += nic->under_way[i];
		}
		if (n >= 0 && page_pending(nic->chain.store))
			n = take_pages(&nic->chain);
		if (n >= 0 && page_pending(nic->message.store))
			n = take_pages(&nic->message);
		left += page_pending(nic->chain.store) +
			page_pending(nic->message.store);
		if (n < 0)
			err = n;
		else if (left && bench_now_ns() > end_ns)
			err = error_set(-ETIMEDOUT, "the flood does not end");
	}
	return err;
}
