/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of `aquifer bench fair`: one who works, and those who flood. */
#include <aquifer/aquifer.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "client/link.h"
#include "client/verbs_api.h"
#include "fair.h"
#include "page/page_store.h"
#include "place.h"
#include "ticks.h"

enum {
	WORK_DEPTH = 16,
	WORK_BYTES = 64,
	FLOOD_LINKS = 16, /* queue pairs of one process */
	FLOOD_DEPTH = 64, /* requests under way on each */
	FLOOD_BYTES = 4096,
	REGION_BYTES = 1 << 20,
	PAGES = 64,
	BUF_BYTES = FLOOD_DEPTH * FLOOD_BYTES,
	BUSY_NS = 10000,      /* between two looks at what to do */
	NAP_ASKED_NS = 20000, /* as base/relax.c does */
	NAP_NS = 80000,	      /* what becomes of it */
};

struct side {
	struct fair_page *page;
	struct aq_rack *rack;
	struct aq_region *region;
	struct client_link *link[FLOOD_LINKS];
	unsigned link_count;
	uint32_t depth, bytes;
	struct ibv_mr *mr;
	uint8_t *buf;
	uint64_t next;
	/* The processor's time for the flood so far, and how long it slept;
	 * what is still to be slept in its stead. */
	uint64_t cpu_ns, slept_ns;
	int64_t rest_ns;
	uint64_t since_ns, since_cpu_ns, since_queued_ns;
};

static int mode_of(struct side *s)
{
	return atomic_load_explicit(&s->page->mode, memory_order_relaxed);
}

static void add(_Atomic uint64_t *count, int n)
{
	if (n > 0)
		(void)atomic_fetch_add_explicit(count, (uint64_t)n,
						memory_order_relaxed);
}

/* ---- as busy as in a flood ----------------------------------------------- */

static uint64_t cpu_ns(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* How long this thread was ready to run, and another one ran. */
static uint64_t queued_ns(void)
{
	unsigned long long ran, queued;
	FILE *f = fopen("/proc/thread-self/schedstat", "re");
	int n = f ? fscanf(f, "%llu %llu", &ran, &queued) : 0;

	if (f)
		fclose(f);
	return n == 2 ? queued : 0;
}

static void flood_begins(struct side *s)
{
	s->since_ns = bench_now_ns();
	s->since_cpu_ns = cpu_ns();
	s->since_queued_ns = queued_ns();
}

static void flood_ends(struct side *s)
{
	uint64_t cpu = cpu_ns() - s->since_cpu_ns;
	uint64_t queued = queued_ns() - s->since_queued_ns;
	uint64_t all = bench_now_ns() - s->since_ns;

	s->cpu_ns += cpu;
	s->slept_ns += all > cpu + queued ? all - cpu - queued : 0;
}

/*
 * Wants the core as the flood did: uses it as long as the flood did between two
 * naps, then naps. It does not yield, and does not wait by the library: who
 * waits in vain hardly uses the core, and the node would have four times as
 * much of it as beside the flood.
 */
static void be_busy(struct side *s)
{
	uint64_t stop = cpu_ns() + BUSY_NS, before;

	while (cpu_ns() < stop)
		;
	s->rest_ns +=
		s->cpu_ns ? (int64_t)(BUSY_NS * s->slept_ns / s->cpu_ns) : 0;
	if (s->rest_ns < NAP_NS)
		return;
	before = bench_now_ns();
	(void)nanosleep(&(struct timespec){.tv_nsec = NAP_ASKED_NS}, NULL);
	s->rest_ns -= (int64_t)(bench_now_ns() - before);
}

/* ---- READs -------------------------------------------------------------- */

static int side_open(struct side *s, const char *name, unsigned links,
		     uint32_t depth, uint32_t bytes)
{
	/* Less than all rights is a window, which nobody maps. */
	struct client_link_options o = {.send_depth = depth,
					.rd_atomic = depth,
					.rights = CLIENT_LINK_WRITE};
	int err = place_rack(&s->rack);

	s->depth = depth;
	s->bytes = bytes;
	s->buf = aligned_alloc(4096, BUF_BYTES);
	if (!err && !s->buf)
		err = -ENOMEM;
	if (!err)
		err = aq_region_create(s->rack, name, REGION_BYTES, NULL,
				       &s->region);
	while (!err && s->link_count < links) {
		err = client_link_open(s->rack, name, &o,
				       &s->link[s->link_count]);
		if (!err)
			s->link_count++;
		/* One domain for all buffers of a process. */
		if (!err && !s->mr) {
			s->mr = s->link[0]->verbs->reg_mr(
				s->link[0]->pd, s->buf, BUF_BYTES,
				IBV_ACCESS_LOCAL_WRITE);
			err = s->mr ? 0 : -ENOMEM;
		}
	}
	return err;
}

static void side_close(struct side *s)
{
	if (s->mr)
		(void)s->link[0]->verbs->dereg_mr(s->mr);
	while (s->link_count)
		client_link_close(s->link[--s->link_count]);
	if (s->region)
		aq_region_close(s->region);
	if (s->rack)
		aq_rack_close(s->rack);
	free(s->buf);
}

static int post(struct side *s, struct client_link *l, uint64_t slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s->buf + slot * s->bytes,
			      .length = s->bytes,
			      .lkey = s->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.wr_id = slot,
		      .sg_list = &sge,
		      .num_sge = 1,
		      .send_flags = IBV_SEND_SIGNALED,
		      .opcode = IBV_WR_RDMA_READ,
		      .wr.rdma = {.remote_addr =
					  l->addr + s->next % REGION_BYTES,
				  .rkey = l->rkey}};

	s->next += s->bytes;
	return -ibv_post_send(l->qp, &wr, &bad);
}

/* Takes what has ended on a link, and posts as many again. */
static int turn(struct side *s, struct client_link *l, bool again)
{
	struct ibv_wc wc[FLOOD_DEPTH];
	int n = ibv_poll_cq(l->cq, (int)s->depth, wc), err = 0;

	for (int i = 0; i < n && !err; i++) {
		err = wc[i].status == IBV_WC_SUCCESS ? 0 : -EREMOTEIO;
		if (!err && again)
			err = post(s, l, wc[i].wr_id);
	}
	return err ? error_set(err, "a READ ended with %s",
			       n > 0 ? ibv_wc_status_str(wc[0].status) : "-")
		   : n;
}

static int fill(struct side *s)
{
	int err = 0;

	for (unsigned i = 0; i < s->link_count; i++)
		for (uint32_t k = 0; k < s->depth && !err; k++)
			err = post(s, s->link[i], k);
	return err;
}

static int drain(struct side *s)
{
	uint64_t left = (uint64_t)s->link_count * s->depth;

	while (left)
		for (unsigned i = 0; i < s->link_count; i++) {
			int n = turn(s, s->link[i], false);

			if (n < 0)
				return n;
			left -= (uint64_t)n;
		}
	return 0;
}

/* ---- lives -------------------------------------------------------------- */

static int end(struct side *s, int err)
{
	if (err) {
		snprintf(s->page->why, sizeof(s->page->why), "%s",
			 error_last());
		/* FAIR-2: after the reason. */
		(void)atomic_fetch_add_explicit(&s->page->failed, 1,
						memory_order_release);
	}
	side_close(s);
	return err;
}

int fair_work(struct fair_page *page)
{
	struct side s = {.page = page};
	int err = side_open(&s, "work", 1, WORK_DEPTH, WORK_BYTES);

	if (!err)
		err = fill(&s);
	/* FAIR-1 */
	(void)atomic_fetch_add_explicit(&page->ready, 1, memory_order_release);
	while (!err && mode_of(&s) != FAIR_QUIT) {
		int n = turn(&s, s.link[0], true);

		err = n < 0 ? n : 0;
		add(&page->worked, n);
	}
	return end(&s, err);
}

static int flood_reads(struct side *s)
{
	int err = fill(s);

	flood_begins(s);
	while (!err && mode_of(s) == FAIR_FLOOD)
		for (unsigned i = 0; i < s->link_count && !err; i++) {
			int n = turn(s, s->link[i], true);

			err = n < 0 ? n : 0;
			add(&s->page->flooded, n);
		}
	flood_ends(s);
	return err ? err : drain(s);
}

static int flood_pages(struct side *s, struct page_store *store)
{
	struct page_op ops[FLOOD_DEPTH] = {0}, *done[FLOOD_DEPTH];
	unsigned under_way = 0;
	int n = FLOOD_DEPTH, err = 0;

	for (unsigned i = 0; i < FLOOD_DEPTH; i++) {
		ops[i].buf = s->buf + (size_t)i * FLOOD_BYTES;
		done[i] = &ops[i];
	}
	flood_begins(s);
	do {
		for (int i = 0; i < n && mode_of(s) == FAIR_FLOOD; i++) {
			done[i]->kind = s->next % 2 ? PAGE_LOAD : PAGE_STORE;
			done[i]->page = s->next++ / 2 % PAGES;
			if (page_submit(store, &done[i], 1) != 1)
				return error_set(-EIO, "a page is refused");
			under_way++;
		}
		n = page_poll(store, done, FLOOD_DEPTH);
		for (int i = 0; i < n; i++)
			err = done[i]->result ? done[i]->result : err;
		under_way -= (unsigned)n;
		add(&s->page->flooded, n);
	} while (!err && under_way);
	flood_ends(s);
	return err;
}

static int flood_open(struct side *s, unsigned index, struct page_store **store)
{
	struct page_store_options o = {.pages = PAGES,
				       .mode = index % 3 == 1 ? PAGE_CHAIN
							      : PAGE_TWO_SIDED,
				       .depth = FLOOD_DEPTH,
				       .has_no_checksum = true,
				       .is_unmapped = true};
	char name[32];
	int err;

	snprintf(name, sizeof(name), "flood-%u", index);
	err = side_open(s, name, index % 3 ? 1 : FLOOD_LINKS, FLOOD_DEPTH,
			FLOOD_BYTES);
	if (!err && index % 3)
		err = page_store_open(s->rack, name, &o, store);
	if (!err && *store)
		err = page_register(*store, s->buf, BUF_BYTES);
	return err;
}

int fair_flood(struct fair_page *page, unsigned index)
{
	struct side s = {.page = page};
	struct page_store *store = NULL;
	int err = flood_open(&s, index, &store);

	/* FAIR-1 */
	(void)atomic_fetch_add_explicit(&page->ready, 1, memory_order_release);
	while (!err && mode_of(&s) != FAIR_QUIT)
		if (mode_of(&s) == FAIR_FLOOD)
			err = store ? flood_pages(&s, store) : flood_reads(&s);
		else
			be_busy(&s);
	if (store)
		page_store_close(store);
	return end(&s, err);
}
