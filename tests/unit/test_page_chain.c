/* SPDX-License-Identifier: Apache-2.0 */
/* Pages by chains of work requests, and by the processor: the same store, the
 * same page frames, and every page frame in exactly one place whatever
 * stops. */
#define LOOP_GRANTS
#include "page_rig.h"

#include "pageframe/pframe_priv.h"

enum {
	PFRAMES = 64,
	BYTES = 4096,
};

static uint8_t buf[BYTES], want[BYTES];

static int put(struct page_store *s, uint64_t page, uint64_t version)
{
	rig_fill(buf, BYTES, page, version);
	return page_put(s, page, buf);
}

static void expect(struct page_store *s, uint64_t page, uint64_t version)
{
	memset(buf, 0, BYTES);
	assert_int_equal(page_get(s, page, buf), 0);
	rig_fill(want, BYTES, page, version);
	assert_memory_equal(buf, want, BYTES);
}

static void live(unsigned without)
{
	struct page_store_options o = {
		.pages = 200, .mode = PAGE_CHAIN, .chain_without = without};
	struct page_store *s;
	struct page_stats st;
	struct rig r;

	rig_make(&r, 1);
	rig_make_pool(&r, PFRAMES, BYTES);
	s = rig_store(&r, &o);
	assert_int_equal(put(s, 7, 1), 0);
	expect(s, 7, 1);
	assert_int_equal(put(s, 7, 2), 0);
	expect(s, 7, 2);
	assert_int_equal(pframe_pool_free(r.pool), PFRAMES - 1);
	assert_int_equal(page_drop(s, 7), 0);
	assert_int_equal(page_get(s, 7, buf), -ENODATA);
	assert_int_equal(pframe_pool_free(r.pool), PFRAMES);
	/* Many times round all rings. */
	for (uint64_t i = 0; i < 3000; i++) {
		assert_int_equal(put(s, i % 60, i), 0);
		expect(s, i % 60, i);
		if (i % 3 == 0)
			assert_int_equal(page_drop(s, i % 60), 0);
	}
	page_store_stats(s, &st);
	assert_int_equal(st.allocated_bytes, st.used_pages * BYTES);
	page_store_close(s);
	assert_int_equal(pframe_pool_free(r.pool), PFRAMES);
	rig_break(&r);
}

static void test_life(void **state)
{
	live(0);
	live(PAGE_CLIENT_INDICES);
}

/* Every page frame is free, once. */
static void expect_all_free(struct rig *r)
{
	const struct pframe_pool *p = r->pool;
	uint8_t seen[PFRAMES] = {0};
	uint64_t n = p->places_bytes / PFRAME_PLACE_BYTES;

	(void)pframe_pool_mend(r->pool);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t pframe = pframe_be64(atomic_load(&p->places[i]));
		uint64_t k = (pframe - (uintptr_t)p->pframes) / BYTES;

		if (!pframe)
			continue;
		assert_true(pframe_pool_has(p, pframe));
		assert_int_equal(seen[k], 0);
		seen[k] = 1;
	}
	assert_int_equal(pframe_pool_free(p), pframe_pool_count(p));
}

/* The processor's mode on the same page frames: each wait lets the server
 * work. */
static void test_two_sided(void **state)
{
	struct page_store_options o = {.pages = 80, .mode = PAGE_TWO_SIDED};
	struct page_store *s;
	struct rig r;

	rig_make(&r, 1);
	rig_make_pool(&r, PFRAMES, BYTES);
	s = rig_store(&r, &o);
	for (uint64_t i = 0; i < 500; i++) {
		assert_int_equal(put(s, i % 60, i), 0);
		expect(s, i % 60, i);
		if (i % 3 == 0)
			assert_int_equal(page_drop(s, i % 60), 0);
	}
	for (uint64_t i = 0; i < PFRAMES; i++)
		assert_int_equal(put(s, i, 7), 0);
	assert_int_equal(put(s, PFRAMES, 7), -ENOSPC);
	assert_int_equal(page_get(s, PFRAMES, buf), -EHOSTDOWN);
	assert_int_equal(page_drop(s, 3), 0);
	assert_int_equal(put(s, PFRAMES, 8), 0);
	expect(s, PFRAMES, 8);
	page_store_close(s);
	expect_all_free(&r);
	rig_break(&r);
}

static void expect_used(const struct rig *r, uint64_t used)
{
	assert_int_equal(pframe_space_used(r->node[0].space), used);
	assert_int_equal(pframe_pool_free(r->pool), PFRAMES - used);
	assert_int_equal(pframe_space_touched_bytes(r->node[0].space),
			 used * BYTES);
}

/* Memory of the client's own: it takes as much as there are pages, each of
 * which is charged as a page frame. */
static void test_sparse(void **state)
{
	struct page_store_options o = {.pages = 200, .mode = PAGE_SPARSE};
	struct page_store *s;
	struct rig r;

	rig_make(&r, 1);
	rig_make_pool(&r, PFRAMES, BYTES);
	s = rig_store(&r, &o);
	assert_int_equal(put(s, 0, 1), 0);
	expect_used(&r, 1);
	for (uint64_t i = 1; i < 500; i++) {
		uint64_t page = 1 + i % 60;

		assert_int_equal(put(s, page, i), 0);
		expect(s, page, i);
		if (i % 3 == 0)
			assert_int_equal(page_drop(s, page), 0);
	}
	for (uint64_t i = 1; i < 200; i++)
		assert_int_equal(page_drop(s, i), 0);
	expect_used(&r, 1);
	for (uint64_t i = 1; i < PFRAMES; i++)
		assert_int_equal(put(s, 3 * i, 7), 0);
	assert_int_equal(put(s, 199, 7), -ENOSPC);
	expect_used(&r, PFRAMES);
	assert_int_equal(page_drop(s, 3), 0);
	expect_used(&r, PFRAMES - 1);
	assert_int_equal(put(s, 199, 8), 0);
	expect(s, 199, 8);
	expect(s, 6, 7);
	page_store_close(s);
	expect_all_free(&r);
	rig_break(&r);
}

static uint64_t used_of(const struct rig *r)
{
	return pframe_space_used(r->node[0].space);
}

/* Who stores page after page finds room there already; who does not is given
 * what it needs. A full pool has no less room for that: what was asked for
 * ahead goes first. */
static void room_is_asked_for_ahead(void **state)
{
	struct page_store_options o = {.pages = 64 * 8, .mode = PAGE_SPARSE};
	struct page_store *s;
	struct rig r;

	rig_make(&r, 1);
	rig_make_pool(&r, PFRAMES, BYTES);
	s = rig_store(&r, &o);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(put(s, 10 * i, i), 0);
	assert_int_equal(used_of(&r), 20);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(page_drop(s, 10 * i), 0);
	assert_int_equal(used_of(&r), 0);

	for (uint64_t i = 0; i < 20; i++) {
		uint64_t before = used_of(&r);

		assert_int_equal(put(s, i, i), 0);
		/* From the second one on half of them find it there. */
		assert_true(i < 12 || used_of(&r) > i + 1);
		assert_true(used_of(&r) <= before + 16);
	}
	for (uint64_t i = 20; i < 50; i++)
		assert_int_equal(put(s, i, i), 0);
	assert_true(used_of(&r) > 50);
	/* Where the pool ends, that room goes to the pages that are stored. */
	for (uint64_t i = 50; i < PFRAMES; i++)
		assert_int_equal(put(s, 5 * i, i), 0);
	assert_int_equal(put(s, 500, 7), -ENOSPC);
	expect_used(&r, PFRAMES);
	for (uint64_t i = 0; i < PFRAMES; i++)
		expect(s, i < 50 ? i : 5 * i, i);
	for (uint64_t i = 1; i < PFRAMES; i++)
		assert_int_equal(page_drop(s, i < 50 ? i : 5 * i), 0);
	expect_used(&r, 1);
	page_store_close(s);
	expect_all_free(&r);
	rig_break(&r);
}

struct worker {
	struct pframe_server *server;
	atomic_bool stops;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load(&w->stops))
		if (!pframe_server_step(w->server))
			sched_yield();
	return NULL;
}

/* Guests come and go while the server's thread works. */
static void test_server_thread(void **state)
{
	struct page_store_options o = {.pages = 20, .mode = PAGE_TWO_SIDED};
	struct worker w = {0};
	pthread_t thread;
	struct rig r;

	rig_make(&r, 1);
	rig_make_pool(&r, PFRAMES, BYTES);
	r.has_thread = true;
	w.server = r.server;
	assert_int_equal(pthread_create(&thread, NULL, work, &w), 0);
	for (unsigned i = 0; i < 8; i++) {
		struct page_store *s = rig_store(&r, &o);

		for (uint64_t p = 0; p < 20; p++)
			assert_int_equal(put(s, p, i), 0);
		for (uint64_t p = 0; p < 20; p++)
			expect(s, p, i);
		page_store_close(s);
	}
	atomic_store(&w.stops, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	expect_all_free(&r);
	rig_break(&r);
}

/* More stores than page frames: some fail, nothing else does, and when pages
 * come back there is room again. */
static void exhaust(unsigned without)
{
	enum {
		OPS = 60
	};
	struct page_store_options o = {
		.pages = 200, .mode = PAGE_CHAIN, .chain_without = without};
	static uint8_t space[OPS][BYTES];
	struct page_op ops[OPS], *list[OPS], *done[OPS];
	unsigned ended = 0, stored = 0;
	struct page_store *s;
	struct rig r;

	rig_make(&r, 1);
	rig_make_pool(&r, PFRAMES, BYTES);
	s = rig_store(&r, &o);
	for (uint64_t p = 0; p < 30; p++)
		assert_int_equal(put(s, p, 1), 0);
	for (unsigned i = 0; i < OPS; i++) {
		ops[i] = (struct page_op){
			.kind = PAGE_STORE, .page = 100 + i, .buf = space[i]};
		rig_fill(space[i], BYTES, 100 + i, 1);
		list[i] = &ops[i];
	}
	assert_int_equal(page_submit(s, list, OPS), OPS);
	while (ended < OPS)
		ended += (unsigned)page_poll(s, done, OPS);
	for (unsigned i = 0; i < OPS; i++) {
		if (ops[i].result == 0) {
			expect(s, 100 + i, 1);
			stored++;
		} else {
			assert_int_equal(ops[i].result, -ENOSPC);
		}
	}
	assert_int_equal(stored, PFRAMES - 30);
	assert_int_equal(pframe_pool_free(r.pool), 0);
	for (uint64_t p = 0; p < 30; p++) {
		expect(s, p, 1);
		assert_int_equal(page_drop(s, p), 0);
	}
	(void)pframe_pool_mend(r.pool);
	for (uint64_t p = 0; p < 30; p++)
		assert_int_equal(put(s, p, 2), 0);
	for (uint64_t p = 0; p < 30; p++)
		expect(s, p, 2);
	page_store_close(s);
	expect_all_free(&r);
	rig_break(&r);
}

static void test_exhausted(void **state)
{
	exhaust(0);
	exhaust(PAGE_CLIENT_INDICES);
}

/* The client's end breaks while the node still executes what has arrived: no
 * page is mapped later than we believe. */
static void test_broken_link(void **state)
{
	enum {
		OPS = 16
	};
	struct page_store_options o = {.pages = 50, .mode = PAGE_CHAIN};
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	static uint8_t space[OPS][BYTES];
	struct page_op ops[OPS], *list[OPS], *done[OPS];
	unsigned ended = 0;
	struct page_store *s;
	struct rig r;

	rig_make(&r, 1);
	rig_make_pool(&r, PFRAMES, BYTES);
	s = rig_store(&r, &o);
	for (unsigned i = 0; i < OPS; i++) {
		ops[i] = (struct page_op){
			.kind = PAGE_STORE, .page = i, .buf = space[i]};
		rig_fill(space[i], BYTES, i, 1);
		list[i] = &ops[i];
	}
	assert_int_equal(page_submit(s, list, OPS), OPS);
	assert_int_equal(
		ibv_modify_qp(r.node[0].link[1 + PAGE_CHAIN_UNMAPPED].qp, &err,
			      IBV_QP_STATE),
		0);
	while (ended < OPS)
		ended += (unsigned)page_poll(s, done, OPS);
	for (unsigned i = 0; i < OPS; i++)
		assert_true(ops[i].result == 0 || ops[i].result == -ECONNRESET);
	for (unsigned i = 0; i < OPS; i++)
		assert_int_equal(put(s, i, 2), 0);
	for (unsigned i = 0; i < OPS; i++)
		expect(s, i, 2);
	page_store_close(s);
	expect_all_free(&r);
	rig_break(&r);
}

/* ---- chains that stop --------------------------------------------------- */

/* Every request of the program in turn is made one that the NIC refuses: as if
 * the client had died, or the node, right before it. */
static void stop_before(enum page_chain kind, unsigned without,
			unsigned request)
{
	struct page_store_options o = {.pages = 50,
				       .mode = PAGE_CHAIN,
				       .deadline_ms = 50,
				       .chain_without = without};
	struct pframe_chain *c;
	struct page_store *s;
	unsigned at = 0;
	struct rig r;

	rig_make(&r, 1);
	rig_make_pool(&r, PFRAMES, BYTES);
	s = rig_store(&r, &o);
	c = r.node[0].chain[kind];
	for (uint64_t p = 0; p < 20; p++)
		assert_int_equal(put(s, p, 1), 0);
	if (kind == PAGE_CHAIN_UNMAPPED)
		at += 20 * c->blocks; /* as many have run */
	while (request--)
		at += (unsigned)((be32toh(c->work[at].ctrl.qpn_ds) + 3) / 4);
	/* The opcode alone may be written by the chain itself. */
	c->work[at].ctrl.opmod_idx_opcode = htobe32(0xff);
	c->work[at].ctrl.qpn_ds = 0;
	if (kind == PAGE_CHAIN_UNMAPPED)
		assert_true(put(s, 30, 1) != 0);
	else
		assert_int_equal(page_drop(s, 5), 0); /* the backend is lost */
	page_store_close(s);
	expect_all_free(&r);
	rig_break(&r);
}

static void test_every_step(void **state)
{
	for (unsigned i = 1; i < 10; i++)
		stop_before(PAGE_CHAIN_UNMAPPED, 0, i);
	for (unsigned i = 1; i < 8; i++)
		stop_before(PAGE_CHAIN_INVALIDATE, 0, i);
	for (unsigned i = 1; i < 50; i += 7)
		stop_before(PAGE_CHAIN_UNMAPPED, PAGE_WITHOUT_ALL, i);
	for (unsigned i = 1; i < 13; i++)
		stop_before(PAGE_CHAIN_UNMAPPED, PAGE_WITHOUT_DECISION, i);
	for (unsigned i = 1; i < 10; i++)
		stop_before(PAGE_CHAIN_UNMAPPED, PAGE_CLIENT_INDICES, i);
	for (unsigned i = 1; i < 8; i++)
		stop_before(PAGE_CHAIN_INVALIDATE, PAGE_CLIENT_INDICES, i);
}

/* ---- chains without optimisations --------------------------------------- */

/* What the client leaves to the chain, the chain does: it finds the entry, and
 * takes a page frame only for who has none. */
static void test_without(void **state)
{
	for (unsigned without = 1; without <= PAGE_WITHOUT_ALL; without++) {
		struct page_store_options o = {.pages = 50,
					       .mode = PAGE_CHAIN,
					       .chain_without = without};
		struct page_store *s;
		struct rig r;

		rig_make(&r, 1);
		rig_make_pool(&r, PFRAMES, BYTES);
		s = rig_store(&r, &o);
		for (unsigned v = 1; v <= 3; v++) {
			for (uint64_t p = 0; p < 40; p += v)
				assert_int_equal(put(s, p, v), 0);
			for (uint64_t p = 0; p < 40; p += v)
				expect(s, p, v);
			assert_int_equal(pframe_space_used(r.node[0].space),
					 40);
		}
		for (uint64_t p = 0; p < 40; p += 2)
			assert_int_equal(page_drop(s, p), 0);
		assert_int_equal(pframe_space_used(r.node[0].space), 20);
		for (uint64_t p = 0; p < 40; p++)
			assert_int_equal(put(s, p, 4), 0);
		for (uint64_t p = 0; p < 40; p++)
			expect(s, p, 4);
		assert_int_equal(pframe_space_used(r.node[0].space), 40);
		page_store_close(s);
		expect_all_free(&r);
		rig_break(&r);
	}
}

/* ---- indices that the client sends ------------------------------------- */

/* All requests and receives are such that a ConnectX has them, and no opcode
 * is new. */
static void expect_hardware(const struct pframe_chain *c)
{
	const union aqdv_wqe *end = c->work + (size_t)c->ring * c->blocks;

	for (const union aqdv_wqe *w = c->work; w < end;
	     w += (be32toh(w->ctrl.qpn_ds) + 3) / 4) {
		uint32_t opcode = be32toh(w->ctrl.opmod_idx_opcode) & 0xff;

		if (opcode != AQDV_WQE_WAIT && opcode != AQDV_WQE_SEND_ENABLE)
			continue;
		assert_int_equal(w->control.order.step, 0);
		assert_int_equal(w->control.order.base, 0);
	}
	for (uint32_t i = 0; i < c->ring; i++)
		assert_int_equal(c->front[2 * i + 1].control.order.step, 0);
	for (uint32_t i = 0; i < c->ring * c->recv_segs; i++)
		assert_true(
			!(be32toh(c->recv[i].byte_count) & AQDV_WQE_INLINE));
}

/* As many under way as there may be, again and again: each slot's indices are
 * the right ones whatever of the ring has not run yet. */
static void the_client_can_count(void **state)
{
	enum {
		OPS = 48
	};
	struct page_store_options o = {.pages = 200,
				       .mode = PAGE_CHAIN,
				       .depth = 16,
				       .chain_without = PAGE_CLIENT_INDICES};
	static uint8_t space[OPS][BYTES];
	struct page_op ops[OPS], *list[OPS], *done[OPS];
	struct page_store *s;
	struct rig r;

	rig_make(&r, 1);
	rig_make_pool(&r, PFRAMES, BYTES);
	s = rig_store(&r, &o);
	for (unsigned i = 0; i < PAGE_CHAIN_COUNT; i++)
		expect_hardware(r.node[0].chain[i]);
	for (unsigned turn = 0; turn < 200; turn++) {
		unsigned ended = 0, sent = 0;

		for (unsigned i = 0; i < OPS; i++) {
			bool is_load = turn % 4 == 3;

			ops[i] = (struct page_op){
				.kind = turn % 5 == 4 ? PAGE_INVALIDATE
					: is_load     ? PAGE_LOAD
						      : PAGE_STORE,
				.page = i,
				.buf = space[i]};
			if (ops[i].kind == PAGE_STORE)
				rig_fill(space[i], BYTES, i, turn);
			list[i] = &ops[i];
		}
		while (ended < OPS) {
			int n = page_submit(s, list + sent, OPS - sent);

			sent += n > 0 ? (unsigned)n : 0;
			ended += (unsigned)page_poll(s, done, OPS);
		}
		for (unsigned i = 0; i < OPS; i++)
			assert_true(ops[i].result == 0 ||
				    (ops[i].kind == PAGE_LOAD &&
				     ops[i].result == -ENODATA));
		if (ops[0].kind == PAGE_STORE)
			for (unsigned i = 0; i < OPS; i++)
				expect(s, i, turn);
	}
	page_store_close(s);
	expect_all_free(&r);
	rig_break(&r);
}

/* ---- clients that lie --------------------------------------------------- */

/* One call with whatever address, on the store's own connection. */
static void lie(struct rig *r, enum page_chain kind, uint64_t entry)
{
	static uint8_t text[64 + BYTES];
	struct ibv_mr *mr =
		ibv_reg_mr(r->pair.pd, text, sizeof(text), PAIR_ACCESS);
	struct ibv_sge sge = {.addr = (uintptr_t)text,
			      .length = kind == PAGE_CHAIN_LOAD		? 24
					: kind == PAGE_CHAIN_INVALIDATE ? 12
									: BYTES,
			      .lkey = mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND_WITH_IMM,
				       .imm_data = htobe32((uint32_t)entry),
				       .sg_list = &sge,
				       .num_sge = 1};
	struct client_link *l = &r->node[0].link[1 + kind];
	be64 where = be64_put(entry);

	memcpy(text, &where, sizeof(where));
	if (kind == PAGE_CHAIN_LOAD) {
		*(be64 *)(text + 8) = be64_put((uintptr_t)text);
		*(be32 *)(text + 16) = be32_put(mr->rkey);
	}
	assert_int_equal(ibv_post_send(l->qp, &wr, &bad), 0);
	for (unsigned i = 0; i < 20000; i++) {
		struct ibv_wc wc;

		(void)ibv_poll_cq(l->cq, 1, &wc);
		if (pframe_chain_is_broken(r->node[0].chain[kind]))
			break;
	}
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void expect_why(const struct pframe_space *space, enum page_chain kind,
		       unsigned what)
{
	int why = pframe_space_why(space, kind);

	if (what < 3)
		assert_int_equal(why, -EFAULT);
	else
		assert_int_equal(why, kind == PAGE_CHAIN_UNMAPPED ? -EEXIST
								  : -ENOENT);
}

/* A store that the node refuses does not look like one without room. */
static void test_refused(void **state)
{
	struct page_store_options o = {.pages = 50, .mode = PAGE_CHAIN};
	struct page_store *s;
	struct rig r;

	rig_make(&r, 1);
	rig_make_pool(&r, PFRAMES, BYTES);
	s = rig_store(&r, &o);
	assert_int_equal(put(s, 1, 1), 0);
	lie(&r, PAGE_CHAIN_UNMAPPED, 50 * 8);
	assert_int_equal(put(s, 2, 1), -EREMOTEIO);
	assert_int_equal(put(s, 2, 2), 0);
	expect(s, 2, 2);
	expect(s, 1, 1);
	page_store_close(s);
	expect_all_free(&r);
	rig_break(&r);
}

static void test_lies(void **state)
{
	struct page_store_options o = {.pages = 50, .mode = PAGE_CHAIN};

	for (unsigned kind = 0; kind < PAGE_CHAIN_COUNT; kind++) {
		for (unsigned what = 0; what < 4; what++) {
			struct page_store *good, *bad;
			struct rig r;

			rig_make(&r, 2);
			rig_make_pool(&r, PFRAMES, BYTES);
			o.nodes = 1;
			bad = rig_store(&r, &o);
			good = rig_store(&r, &o);
			assert_int_equal(put(good, 1, 1), 0);
			assert_int_equal(put(bad, 1, 2), 0);
			lie(&r, kind,
			    what == 0	? 8 + 3 /* halves of two */
			    : what == 1 ? (uint64_t)-8
			    : what == 2 ? 50 * 8
			    /* mapped where it must not be, and the reverse */
			    : kind == PAGE_CHAIN_UNMAPPED ? 8
							  : 16);
			assert_true(
				pframe_chain_is_broken(r.node[0].chain[kind]));
			expect_why(r.node[0].space, kind, what);
			expect(good, 1, 1);
			assert_int_equal(put(good, 2, 1), 0);
			expect(good, 2, 1);
			page_store_close(bad);
			page_store_close(good);
			expect_all_free(&r);
			rig_break(&r);
		}
	}
}

static void inner_connections_cannot_be_guessed(void **state)
{
	struct page_store_options o = {.pages = 8, .mode = PAGE_CHAIN};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr work, back;
	struct page_store *s;
	uint32_t seen = 0;
	struct rig r;

	rig_make(&r, 1);
	rig_make_pool(&r, PFRAMES, BYTES);
	s = rig_store(&r, &o);
	for (unsigned k = 0; k < PAGE_CHAIN_COUNT; k++) {
		const struct pframe_chain *c = r.node[0].chain[k];

		assert_int_equal(ibv_query_qp(c->work_qp, &work, ~0, &init), 0);
		assert_int_equal(ibv_query_qp(c->back_qp, &back, ~0, &init), 0);
		/* Nobody asks this end for anything. */
		assert_int_equal(work.qp_access_flags, 0);
		assert_int_equal(work.rq_psn, back.sq_psn);
		assert_int_equal(work.sq_psn, back.rq_psn);
		seen |= work.rq_psn | work.sq_psn;
	}
	/* All eight are 0 once in 2^192 runs. */
	assert_int_not_equal(seen, 0);
	page_store_close(s);
	rig_break(&r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(inner_connections_cannot_be_guessed),
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_two_sided),
		cmocka_unit_test(test_sparse),
		cmocka_unit_test(room_is_asked_for_ahead),
		cmocka_unit_test(test_server_thread),
		cmocka_unit_test(test_exhausted),
		cmocka_unit_test(test_broken_link),
		cmocka_unit_test(test_every_step),
		cmocka_unit_test(test_without),
		cmocka_unit_test(the_client_can_count),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
