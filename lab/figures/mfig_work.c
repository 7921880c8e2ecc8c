/* SPDX-License-Identifier: Apache-2.0 */
/* The workloads: which page comes next. */
#include "mfig_work.h"

#include "mfig_costs.h"

enum {
	PAGE = 4096,
	/* Quarters of R-MAT: 0.57, 0.19, 0.19, 0.05. An edge's source bit is 0
	 * with a / (a + c) or b / (b + d), by the bit of its end. */
	RMAT_ZERO_PPM = 750000,
	RMAT_ONE_PPM = 791667,
	ITEMS_PER_PAGE = 3,
	FORWARD = 0,
	BACKWARD = 1,
};

/* ---- training
 * ------------------------------------------------------------------ */

/* Forward: a page of weights is read, and activations of the thread's images
 * are written; backward: both are read, and one thread of all writes the page
 * of weights. Images are divided among threads, and so are activations. */
static struct mfig_step next_tf(struct mfig_walker *w)
{
	const struct mfig_program *p = w->program;
	uint32_t weights = p->shared_pages, page = w->at;
	uint32_t images = (uint32_t)mfig_costs.batch * 10 / p->threads;

	/* Tenths of images are units; activations are due by weights. */
	if (w->owed >= weights) {
		uint64_t at = w->own_at++ % w->own_count;

		w->owed -= weights;
		if (w->phase)
			at = w->own_count - 1 - at;
		return (struct mfig_step){
			.page = w->own + (uint32_t)at,
			.accesses = (uint32_t)mfig_costs.line_accesses,
			.writes = w->phase == FORWARD};
	}
	if (w->edge_page) { /* the update of the page before */
		page = w->edge_page - 1;
		w->edge_page = 0;
		return (struct mfig_step){
			.page = page,
			.accesses = (uint32_t)mfig_costs.line_accesses,
			.writes = true};
	}
	if (w->phase == BACKWARD)
		page = weights - 1 - page;
	w->owed += w->own_count;
	if (w->phase == BACKWARD && page % p->threads == w->index)
		w->edge_page = page + 1;
	if (++w->at == weights) {
		w->at = 0;
		w->phase = !w->phase;
	}
	return (struct mfig_step){
		.page = page,
		.accesses = u32_max(
			images * (uint32_t)mfig_costs.image_accesses / 10, 1),
		.units = images};
}

/* ---- PageRank
 * ------------------------------------------------------------------ */

static uint32_t draw_source(struct mfig_walker *w, uint32_t vertex,
			    uint32_t vertices)
{
	uint32_t source = 0;
	uint64_t random = rng_u64(&w->rng);

	for (uint32_t bit = 1; bit < vertices; bit <<= 1) {
		/* 20 bits of chance for each are too many for one number. */
		uint32_t ppm = vertex & bit ? RMAT_ONE_PPM : RMAT_ZERO_PPM;

		random = random * 6364136223846793005ull + 1442695040888963407;
		if ((random >> 33) * 1000000 >> 31 >= ppm)
			source |= bit;
	}
	return source;
}

/* Of each vertex of the thread: its list of edges, the value at the other end
 * of each, and then its own value is written, in place. */
static struct mfig_step next_gc(struct mfig_walker *w)
{
	const struct mfig_program *p = w->program;
	uint32_t per_page = PAGE / (uint32_t)mfig_costs.edge_bytes;
	uint32_t vertices = p->shared_pages * per_page;
	uint32_t degree = (uint32_t)mfig_costs.degree;
	uint32_t first = (uint32_t)((uint64_t)vertices * w->index / p->threads);
	uint32_t count =
		(uint32_t)((uint64_t)vertices * (w->index + 1) / p->threads) -
		first;
	uint32_t vertex = first + w->at;
	uint32_t edges =
		p->shared_pages + (uint32_t)((uint64_t)vertex * degree /
					     per_page % p->rest_pages);

	if (w->edge_page != edges) {
		w->edge_page = edges;
		return (struct mfig_step){
			.page = edges,
			.accesses = (uint32_t)mfig_costs.line_accesses};
	}
	if (w->phase++ < degree)
		return (struct mfig_step){
			.page = draw_source(w, vertex, vertices) / per_page,
			.accesses = 1 + (uint32_t)mfig_costs.edge_accesses,
			.units = 1};
	w->phase = 0;
	w->at = (w->at + 1) % count;
	return (struct mfig_step){
		.page = vertex / per_page, .accesses = 1, .writes = true};
}

/* ---- key-value stores
 * ---------------------------------------------------------- */

/* The bucket, and the item. */
static struct mfig_step next_kvs(struct mfig_walker *w)
{
	const struct mfig_program *p = w->program;

	if (w->phase++ == 0) {
		w->op = ycsb_next(&w->ycsb);
		return (struct mfig_step){
			.page = p->lock_pages +
				(uint32_t)(ycsb_key(w->op.record) %
					   p->bucket_pages),
			.accesses = (uint32_t)mfig_costs.op_accesses / 2};
	}
	w->phase = 0;
	return (struct mfig_step){
		.page = p->shared_pages +
			(uint32_t)(w->op.record / ITEMS_PER_PAGE),
		.accesses = (uint32_t)mfig_costs.op_accesses / 2,
		.units = 1,
		.writes = w->op.kind != YCSB_READ};
}

/* The lock of the key is taken, the bucket is read, the item's references are
 * counted in it; an update also moves it in a list whose head all share; the
 * lock is given up. */
static struct mfig_step next_memcached(struct mfig_walker *w)
{
	const struct mfig_program *p = w->program;
	uint32_t accesses = (uint32_t)mfig_costs.op_accesses / 4;
	uint64_t key;

	if (w->phase == 0)
		w->op = ycsb_next(&w->ycsb);
	key = ycsb_key(w->op.record);
	switch (w->phase++) {
	case 0:
		return (struct mfig_step){
			.page = (uint32_t)(key % p->lock_pages),
			.accesses = accesses,
			.writes = true};
	case 1:
		return (struct mfig_step){
			.page = p->lock_pages +
				(uint32_t)(key % p->bucket_pages),
			.accesses = accesses};
	case 2:
		return (struct mfig_step){
			.page = p->shared_pages +
				(uint32_t)(w->op.record / ITEMS_PER_PAGE),
			.accesses = accesses,
			.writes = true};
	case 3:
		if (w->op.kind != YCSB_READ)
			return (struct mfig_step){.page = p->lru_page,
						  .accesses = 1,
						  .writes = true};
		break;
	default:
		break;
	}
	w->phase = 0;
	return (struct mfig_step){.page = (uint32_t)(key % p->lock_pages),
				  .accesses = accesses,
				  .units = 1,
				  .writes = true};
}

/* ---- any page
 * ------------------------------------------------------------------ */

static struct mfig_step next_uniform(struct mfig_walker *w)
{
	const struct mfig_config *cfg = w->program->cfg;
	uint32_t pages = w->program->shared_pages;
	bool shared = rng_below(&w->rng, 100) < cfg->share_percent;

	return (struct mfig_step){
		.page = (shared ? 0 : pages * (1 + w->index)) +
			(uint32_t)rng_below(&w->rng, pages),
		.accesses = 1,
		.units = 1,
		.writes = rng_below(&w->rng, 100) >= cfg->read_percent};
}

/* ---- life
 * ---------------------------------------------------------------------- */

struct mfig_step mfig_walker_next(struct mfig_walker *w)
{
	switch (w->program->cfg->work) {
	case MFIG_TF:
		return next_tf(w);
	case MFIG_GC:
		return next_gc(w);
	case MFIG_MA:
	case MFIG_MC:
		return next_memcached(w);
	case MFIG_KVS_A:
	case MFIG_KVS_C:
		return next_kvs(w);
	case MFIG_UNIFORM:
	case MFIG_WORKS:
		break;
	}
	return next_uniform(w);
}

static int init_store(struct mfig_program *p, bool has_locks)
{
	uint64_t items;

	p->lock_pages = has_locks ? (uint32_t)mfig_costs.locks * 64 / PAGE : 0;
	items = (uint64_t)(p->cfg->pages - p->lock_pages - 1) * PAGE /
		(mfig_costs.item_bytes + 8);
	p->bucket_pages = (uint32_t)(items * 8 / PAGE) + 1;
	p->lru_page = p->lock_pages + p->bucket_pages;
	p->shared_pages = p->lru_page + 1;
	p->rest_pages = p->cfg->pages - p->shared_pages;
	return ycsb_keys_init(&p->keys, YCSB_ZIPFIAN,
			      (uint64_t)p->rest_pages * ITEMS_PER_PAGE,
			      YCSB_THETA);
}

int mfig_program_init(struct mfig_program *p, const struct mfig_config *cfg)
{
	*p = (struct mfig_program){.cfg = cfg,
				   .threads = cfg->machines * cfg->threads};
	switch (cfg->work) {
	case MFIG_TF:
		p->shared_pages = (uint32_t)(mfig_costs.weights_bytes /
					     mfig_costs.scale / PAGE);
		break;
	case MFIG_GC:
		p->shared_pages = u32_pow2_ceil(
			cfg->pages / ((uint32_t)mfig_costs.degree + 1));
		break;
	case MFIG_MA:
	case MFIG_MC:
		return init_store(p, true);
	case MFIG_KVS_A:
	case MFIG_KVS_C:
		return init_store(p, false);
	case MFIG_UNIFORM:
	case MFIG_WORKS:
		/* One part for all, and one for each thread. */
		p->shared_pages = cfg->pages / (p->threads + 1);
		return 0;
	}
	p->rest_pages = cfg->pages - p->shared_pages;
	return 0;
}

void mfig_walker_init(struct mfig_walker *w, const struct mfig_program *p,
		      uint32_t index)
{
	uint64_t rest = p->rest_pages;

	*w = (struct mfig_walker){.program = p, .index = index};
	rng_init_stream(&w->rng, p->cfg->seed, 1000 + index);
	w->own_count = u32_max((uint32_t)(rest / p->threads), 1);
	w->own = p->shared_pages + index * w->own_count;
	ycsb_init(&w->ycsb,
		  p->cfg->work == MFIG_MA || p->cfg->work == MFIG_KVS_A
			  ? YCSB_A
			  : YCSB_C,
		  &p->keys, p->cfg->seed, index);
}
