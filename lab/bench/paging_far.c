/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of raw requests and of page operations against one memory node. */
#include "paging_far.h"

#include <aquifer/aquifer.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hist.h"
#include "client/verbs_api.h"
#include "place.h"
#include "shield.h"
#include "ticks.h"

enum {
	CLOCK_EVERY = 16,
	STRIDE = 7919, /* a prime: pages in an order that nobody guesses */
};

static void begin(struct paging_far *f, struct far_window *w)
{
	hist_init(f->times);
	*w = (struct far_window){.node_cpu_ns = shield_process_ns(f->node),
				 .client_cpu_ns = shield_process_ns(0),
				 .wall_ns = bench_now_ns()};
}

static void end(const struct paging_far *f, struct far_window *w, uint64_t ops)
{
	w->wall_ns = bench_now_ns() - w->wall_ns;
	w->node_cpu_ns = shield_process_ns(f->node) - w->node_cpu_ns;
	w->client_cpu_ns = shield_process_ns(0) - w->client_cpu_ns;
	w->ops = ops;
	w->median_ns = hist_percentile(f->times, HIST_MEDIAN);
}

static void one_begins(struct paging_far *f, unsigned depth)
{
	if (depth == 1)
		f->begun_ns = bench_now_ns();
}

static void one_ended(struct paging_far *f, unsigned depth)
{
	if (depth == 1)
		hist_record(f->times, bench_now_ns() - f->begun_ns);
}

/* ---- life --------------------------------------------------------------- */

int far_open(struct paging_far *f, uint64_t pages, bool may_map)
{
	/* Less than all rights is a window, which nobody maps. */
	struct client_link_options o = {.send_depth = FAR_DEPTH,
					.rd_atomic = FAR_DEPTH,
					.rights = may_map ? CLIENT_LINK_ALL
							  : CLIENT_LINK_WRITE};
	int err = place_rack(&f->rack);

	f->pages = pages;
	f->may_map = may_map;
	f->buf = aligned_alloc(4096, FAR_DEPTH * FAR_BYTES);
	f->times = calloc(1, sizeof(*f->times));
	if (!err && (!f->buf || !f->times))
		err = -ENOMEM;
	if (!err)
		err = aq_region_create(f->rack, "raw", pages * FAR_BYTES, NULL,
				       &f->region);
	if (!err)
		err = client_link_open(f->rack, "raw", &o, &f->raw);
	if (err)
		return err;
	memset(f->buf, 0x5a, FAR_DEPTH * FAR_BYTES);
	f->raw_mr =
		f->raw->verbs->reg_mr(f->raw->pd, f->buf, FAR_DEPTH * FAR_BYTES,
				      IBV_ACCESS_LOCAL_WRITE);
	return f->raw_mr ? 0 : -ENOMEM;
}

void far_close(struct paging_far *f)
{
	if (f->raw_mr)
		(void)f->raw->verbs->dereg_mr(f->raw_mr);
	client_link_close(f->raw);
	aq_region_close(f->region);
	aq_rack_close(f->rack);
	free(f->buf);
	free(f->times);
}

int far_store(struct paging_far *f, enum page_mode mode, unsigned without,
	      struct page_store **out)
{
	/* Plain READs have no checksum either. */
	struct page_store_options o = {.pages = f->pages,
				       .mode = mode,
				       .depth = FAR_DEPTH,
				       .has_no_checksum = true,
				       .is_unmapped = !f->may_map,
				       .patience_ms = PLACE_PATIENCE_MS,
				       .chain_without = without};
	int err = page_store_open(f->rack, "bench", &o, out);

	return err ? err : page_register(*out, f->buf, FAR_DEPTH * FAR_BYTES);
}

static uint64_t next_page(struct paging_far *f)
{
	f->next = (f->next + STRIDE) % f->pages;
	return f->next;
}

/* ---- windows ------------------------------------------------------------ */

static int post_raw(struct paging_far *f, enum page_kind kind, uint64_t slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)f->buf + slot * FAR_BYTES,
			      .length = FAR_BYTES,
			      .lkey = f->raw_mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.wr_id = slot,
		      .sg_list = &sge,
		      .num_sge = 1,
		      .send_flags = IBV_SEND_SIGNALED,
		      .opcode = kind == PAGE_LOAD ? IBV_WR_RDMA_READ
						  : IBV_WR_RDMA_WRITE,
		      .wr.rdma = {.remote_addr = f->raw->addr +
						 next_page(f) * FAR_BYTES,
				  .rkey = f->raw->rkey}};

	return -ibv_post_send(f->raw->qp, &wr, &bad);
}

int far_raw(struct paging_far *f, enum page_kind kind, unsigned depth,
	    unsigned window_ms, struct far_window *out)
{
	uint64_t stop, ended = 0, posted = 0, looks = 0;
	bool over = false;
	int err = 0;

	begin(f, out);
	stop = out->wall_ns + window_ms * 1000000ull;
	one_begins(f, depth);
	while (!err && posted < depth)
		err = post_raw(f, kind, posted++);
	while (!err && ended < posted) {
		struct ibv_wc wc[FAR_DEPTH];
		int n = ibv_poll_cq(f->raw->cq, FAR_DEPTH, wc);

		for (int i = 0; i < n && !err; i++) {
			err = wc[i].status == IBV_WC_SUCCESS ? 0 : -EREMOTEIO;
			ended++;
			one_ended(f, depth);
			one_begins(f, depth);
			if (!over && !err) {
				err = post_raw(f, kind, wc[i].wr_id);
				posted++;
			}
		}
		if (++looks % CLOCK_EVERY == 0)
			over = bench_now_ns() > stop;
	}
	end(f, out, ended);
	return err;
}

int far_pages(struct paging_far *f, struct page_store *s, enum page_kind kind,
	      unsigned depth, unsigned window_ms, uint64_t most,
	      struct far_window *out)
{
	struct page_op ops[FAR_DEPTH] = {0}, *done[FAR_DEPTH];
	uint64_t stop, ended = 0, posted = 0, looks = 0;
	bool over = false, timed = most == 0;
	int n = (int)depth, err = 0;

	if (timed)
		most = UINT64_MAX;
	for (unsigned i = 0; i < depth; i++) {
		ops[i].kind = kind;
		ops[i].buf = f->buf + i * FAR_BYTES;
		done[i] = &ops[i];
	}
	begin(f, out);
	stop = out->wall_ns + window_ms * 1000000ull;
	do {
		for (int i = 0; i < n; i++) {
			if (over || posted == most)
				break;
			done[i]->page = next_page(f);
			one_begins(f, depth);
			if (page_submit(s, &done[i], 1) != 1)
				return -EIO;
			posted++;
		}
		n = page_poll(s, done, depth);
		if (n)
			one_ended(f, depth);
		for (int i = 0; i < n; i++)
			err = done[i]->result ? done[i]->result : err;
		ended += (uint64_t)n;
		if (timed && ++looks % CLOCK_EVERY == 0)
			over = bench_now_ns() > stop;
	} while (!err && (ended < posted || (!over && posted < most)));
	end(f, out, ended);
	return err;
}
