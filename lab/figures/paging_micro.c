/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that do one kind of operation again and again. */
#include <string.h>

#include "paging_priv.h"

enum {
	OLD_PAGES = 64,	   /* that are there from the start */
	NEW_PAGES = 16384, /* to be stored for the first time */
	PIECES = 64,	   /* to be asked for */
	PIECE_PAGES = 256, /* of 1 MB */
};

/* One operation under way. */
struct slot {
	struct page_op op;
	uint64_t begun_ps;
};

static bool stores_new(const struct paging_config *cfg)
{
	return cfg->work == PAGING_UNMAPPED || cfg->work == PAGING_ALLOCATE;
}

static uint32_t stride(const struct paging_config *cfg)
{
	return cfg->work == PAGING_ALLOCATE && cfg->mode == PAGE_DYNAMIC_1M
		       ? PIECE_PAGES
		       : 1;
}

uint64_t paging_micro_pages(const struct paging_config *cfg)
{
	if (!stores_new(cfg))
		return OLD_PAGES;
	return stride(cfg) > 1 ? (uint64_t)PIECES * PIECE_PAGES : NEW_PAGES;
}

static void mark(uint8_t *buf, uint64_t page)
{
	memcpy(buf, &page, sizeof(page));
}

static void prepare(struct paging_worker *w)
{
	for (uint64_t i = 0; i < OLD_PAGES && !w->p->err; i++) {
		mark(w->buf, i);
		w->p->err = page_put(w->store, i, w->buf);
	}
}

static void begin(struct paging_worker *w, struct slot *s, uint64_t *next)
{
	const struct paging_config *cfg = &w->p->cfg;
	struct page_op *op = &s->op;

	if (stores_new(cfg)) {
		op->page = *next;
		*next += stride(cfg);
		if (op->page >= w->p->pages) {
			w->p->is_stopping = true; /* there are enough */
			return;
		}
	} else {
		op->page = sim_rand_below(&w->rand, OLD_PAGES);
	}
	op->kind = cfg->work == PAGING_LOAD ? PAGE_LOAD : PAGE_STORE;
	if (op->kind == PAGE_STORE)
		mark(op->buf, op->page);
	s->begun_ps = sim_now_ps(w->p->sim);
	if (page_submit(w->store, &(struct page_op *){op}, 1) != 1)
		w->p->err = -1;
}

static void end(struct paging_worker *w, const struct slot *s)
{
	struct paging *p = w->p;
	uint64_t ns = (sim_now_ps(p->sim) - s->begun_ps) / SIM_NS;
	bool is_right = s->op.result == 0 &&
			(s->op.kind == PAGE_STORE ||
			 memcmp(s->op.buf, &s->op.page, sizeof(uint64_t)) == 0);

	if (!is_right)
		p->res->failed++;
	if (!p->is_measuring)
		return;
	p->res->ops++;
	p->latency_sum_ns += ns;
	hist_record(&p->latency_ns, ns);
}

static void run(struct paging_worker *w)
{
	struct slot slot[PAGE_DEPTH] = {0};
	struct page_op *done[PAGE_DEPTH];
	uint64_t next = 0;

	for (uint32_t i = 0; i < w->p->cfg.depth; i++) {
		slot[i].op.buf = w->buf + (size_t)i * PAGE_BYTES;
		begin(w, &slot[i], &next);
	}
	while (!w->p->is_stopping && !w->p->err) {
		int n = page_poll(w->store, done, PAGE_DEPTH);

		for (int i = 0; i < n && !w->p->is_stopping; i++) {
			struct slot *s = container_of(done[i], struct slot, op);

			end(w, s);
			begin(w, s, &next);
		}
		if (n <= 0)
			client_clock_relax(&w->host->clock);
	}
}

void paging_micro_main(void *arg)
{
	struct paging_worker *w = arg;
	struct paging *p = w->p;

	if (!stores_new(&p->cfg))
		prepare(w);
	p->preparing--;
	while (p->preparing && !p->err)
		sim_fiber_sleep_ps(p->sim, SIM_US);
	/* Workers do not start in step. */
	sim_fiber_sleep_ps(p->sim, sim_rand_below(&w->rand, 4000) * SIM_NS);
	run(w);
	p->running--;
}
