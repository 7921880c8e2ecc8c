/* SPDX-License-Identifier: Apache-2.0 */
/* The engine against a rack that executes packet by packet. */
#include "base/error.h"
#include "offload_bed.h"

/* ---- plain service ------------------------------------------------------ */

static void test_read_and_write(void **state)
{
	struct bed *b = bed_make(1, 1, 64, 8192);
	uint8_t in[1000], out[1000];
	int64_t w, r;

	bed_region(b, 1, 0, BED_NODE_BYTES);
	bed_start(b);
	for (unsigned i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 3 + 1);
	w = offload_ring_write(&b->ring, 0, 77, in, sizeof(in));
	r = offload_ring_read(&b->ring, 0, 77, out, sizeof(out));
	assert_true(w > 0 && r > 0);
	bed_settle(b);
	assert_int_equal(offload_ring_result(&b->ring, w), 1);
	assert_int_equal(offload_ring_result(&b->ring, r), 1);
	/* The read waited for the write that it overlaps. */
	assert_memory_equal(in, out, sizeof(in));
	assert_memory_equal(in, b->node_mem[0] + 77, sizeof(in));
	assert_int_equal(b->counters[OFFLOAD_C_CONFLICTS] > 0, 1);
	assert_int_equal(b->bad_access, 0);
	bed_free(b);
}

/* Random requests against a model, over laps of all rings. */
static void check_model(uint64_t seed, uint32_t nodes, uint32_t shift,
			uint32_t gather_bytes)
{
	enum {
		SIZE = 40000,
		LEN_MAX = 2000,
	};
	static uint8_t model[SIZE], want[64][LEN_MAX], got[64][LEN_MAX];
	struct bed *b = bed_make(seed, nodes, 64, 8192);
	size_t len[64];
	unsigned count = 0;

	memset(model, 0, sizeof(model));
	b->gather_bytes = gather_bytes;
	bed_region(b, nodes, shift, SIZE);
	bed_start(b);
	for (unsigned done = 0; done < 3000; done++) {
		size_t n = 1 + rng_below(&b->rng,
					 rng_below(&b->rng, 4) ? 64 : LEN_MAX);
		uint64_t at = rng_below(&b->rng, SIZE - n);
		int64_t id;

		if (count < 64 && rng_below(&b->rng, 2)) {
			id = offload_ring_read(&b->ring, 0, at, got[count], n);
			if (id > 0) {
				memcpy(want[count], model + at, n);
				len[count++] = n;
			}
		} else {
			uint8_t buf[LEN_MAX];

			rng_fill(&b->rng, buf, n);
			id = offload_ring_write(&b->ring, 0, at, buf, n);
			if (id > 0)
				memcpy(model + at, buf, n);
		}
		assert_true(id > 0 || id == -EAGAIN);
		for (unsigned k = rng_below(&b->rng, 20) ? 1 : 200; k; k--)
			bed_step(b);
		if (id == -EAGAIN || count == 64) {
			bed_settle(b);
			for (unsigned i = 0; i < count; i++)
				assert_memory_equal(want[i], got[i], len[i]);
			count = 0;
		}
	}
	bed_settle(b);
	for (uint64_t i = 0; i < SIZE; i++)
		if (*bed_at(b, 0, i) != model[i])
			fail_msg("seed %llu: byte %llu",
				 (unsigned long long)seed,
				 (unsigned long long)i);
	assert_int_equal(b->bad_access, 0);
	assert_int_equal(b->counters[OFFLOAD_C_ERRORS], 0);
	assert_int_equal(b->counters[OFFLOAD_C_GATHERS] > 0, gather_bytes > 0);
	assert_true(b->places >= 2 * b->counters[OFFLOAD_C_GATHERS]);
	bed_free(b);
}

static void test_model(void **state)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		check_model(seed, 1, 0, 0);
		check_model(seed, 3, 8, 0);
		check_model(seed, 2, 12, 0);
		/* The same where nodes gather, with pads of any size. */
		check_model(seed, 1, 0, 4032);
		check_model(seed, 3, 8, 256 + 170 * (uint32_t)seed);
		check_model(seed, 2, 12, 4032);
	}
}

/* A lone request is told at once, whatever the batch. */
static void test_lone_request(void **state)
{
	struct bed *b = bed_make(1, 1, 64, 8192);
	uint64_t out;

	b->config.batch = 64;
	b->config.flush_ns = 1000000000;
	bed_region(b, 1, 0, BED_NODE_BYTES);
	bed_start(b);
	for (unsigned i = 0; i < 5; i++) {
		uint64_t start = b->now_ns;

		assert_true(offload_ring_read(&b->ring, 0, 0, &out, 8) > 0);
		bed_settle(b);
		assert_true(b->now_ns - start < 100000000);
	}
	bed_free(b);
}

/* Runs everything that can run, in the engine's favour: always 1 us. */
static void round_trip(struct bed *b)
{
	b->now_ns += 1000;
	for (unsigned i = 0; i < 300; i++) {
		(void)offload_engine_step(b->engine);
		while (bed_packet(b, b->ring_qp))
			;
		for (unsigned n = 0; n < b->node_count; n++) {
			while (bed_packet(b, b->node_qp[n][OFFLOAD_RD]))
				;
			while (bed_packet(b, b->node_qp[n][OFFLOAD_WR]))
				;
		}
	}
}

static void test_batches(void **state)
{
	struct bed *b = bed_make(1, 1, 64, 8192);
	uint64_t out[64];

	bed_region(b, 1, 0, BED_NODE_BYTES);
	bed_start(b);
	round_trip(b);
	b->counters[OFFLOAD_C_PUBLICATIONS] = 0;
	for (unsigned i = 0; i < 64; i++)
		assert_true(offload_ring_read(&b->ring, 0, 8 * i, &out[i], 8) >
			    0);
	for (unsigned i = 0; i < 4; i++)
		round_trip(b);
	assert_int_equal(offload_ring_look(&b->ring), 0);
	assert_int_equal(offload_ring_pending(&b->ring), 0);
	/* Not one by one: one probe, one fetch, and few publications. */
	assert_true(b->counters[OFFLOAD_C_PUBLICATIONS] <= 3);
	assert_true(b->counters[OFFLOAD_C_FETCHES] <= 2);
	bed_free(b);
}

/* Reads `count` words that are `step` apart and counts work requests. */
static unsigned wrs_of(struct bed *b, unsigned count, unsigned from, int step)
{
	unsigned before = b->node_qp[0][OFFLOAD_RD]->tail;
	uint64_t out[64], want;

	for (unsigned i = 0; i < count; i++)
		assert_true(
			offload_ring_read(&b->ring, 0,
					  (uint64_t)((int)from + (int)i * step),
					  &out[i], 8) > 0);
	for (unsigned i = 0; i < 4; i++)
		round_trip(b);
	assert_int_equal(offload_ring_look(&b->ring), 0);
	assert_int_equal(offload_ring_pending(&b->ring), 0);
	for (unsigned i = 0; i < count; i++) {
		memcpy(&want, b->node_mem[0] + (int)from + (int)i * step, 8);
		assert_true(out[i] == want);
	}
	return b->node_qp[0][OFFLOAD_RD]->tail - before;
}

/* Records that lie one behind the other need one READ. */
static void neighbours_are_read_at_once(void **state)
{
	struct bed *b = bed_make(1, 1, 64, 8192);

	bed_region(b, 1, 0, BED_NODE_BYTES);
	for (unsigned i = 0; i < BED_NODE_BYTES; i++)
		b->node_mem[0][i] = (uint8_t)(i * 31 + i / 256);
	bed_start(b);
	round_trip(b);
	/* The engine may have to look twice for all of them. */
	assert_true(wrs_of(b, 60, 800, 8) <= 3);
	assert_int_equal(wrs_of(b, 60, 1600, -8), 60);
	assert_int_equal(wrs_of(b, 60, 800, 16), 60);
	bed_free(b);
}

/* Small records anywhere need a request for many of them, records in order
 * still one READ, and a lone one does not become a gather. */
static void small_records_are_gathered(void **state)
{
	struct bed *b = bed_make(1, 1, 64, 8192);

	b->gather_bytes = 4032;
	bed_region(b, 1, 0, BED_NODE_BYTES);
	for (unsigned i = 0; i < BED_NODE_BYTES; i++)
		b->node_mem[0][i] = (uint8_t)(i * 31 + i / 256);
	bed_start(b);
	round_trip(b);
	assert_true(wrs_of(b, 60, 1600, -8) <= 3);
	assert_true(wrs_of(b, 60, 800, 16) <= 3);
	assert_true(b->counters[OFFLOAD_C_GATHERS] >= 2);
	assert_int_equal(b->places, 120);
	b->counters[OFFLOAD_C_GATHERS] = 0;
	assert_int_equal(wrs_of(b, 1, 800, 0), 1);
	assert_true(wrs_of(b, 60, 800, 8) <= 3);
	assert_int_equal(b->counters[OFFLOAD_C_GATHERS], 0);
	bed_free(b);
}

/* A node that cannot do what it was asked for is lost, as with a READ. */
static void a_gather_that_fails_ends_the_session(void **state)
{
	struct bed *b = bed_make(1, 1, 64, 8192);
	uint64_t out[4];

	b->gather_bytes = 4032;
	b->gather_status = AQDV_WALK_FAULT;
	bed_region(b, 1, 0, BED_NODE_BYTES);
	bed_start(b);
	round_trip(b);
	for (unsigned i = 0; i < 4; i++)
		assert_true(offload_ring_read(&b->ring, 0, 64 * i, &out[i], 8) >
			    0);
	for (unsigned i = 0; i < 4; i++)
		round_trip(b);
	assert_int_equal(offload_session_err(b->session), -EHOSTDOWN);
	assert_int_equal(offload_ring_pending(&b->ring), 4);
	bed_free(b);
}

static void test_idle_is_cheap(void **state)
{
	struct bed *b = bed_make(1, 1, 64, 8192);

	bed_region(b, 1, 0, BED_NODE_BYTES);
	bed_start(b);
	for (unsigned i = 0; i < 10; i++)
		round_trip(b);
	b->counters[OFFLOAD_C_PROBES] = 0;
	for (unsigned i = 0; i < 10000; i++) { /* 1 s */
		uint64_t next;

		b->now_ns += 100000;
		(void)offload_engine_step(b->engine);
		while (bed_packet(b, b->ring_qp))
			;
		(void)offload_engine_step(b->engine);
		next = offload_engine_next_ns(b->engine);
		assert_true(next > b->now_ns);
	}
	assert_true(b->counters[OFFLOAD_C_PROBES] <= 160);
	assert_true(b->counters[OFFLOAD_C_PROBES] >= 100);
	bed_free(b);
}

/* Two applications on one engine: the second one's bed lends its memory and
 * queue pairs, and its completions go to the first one's queue. */
static void share_engine(struct bed *a, struct bed *b)
{
	bed_start(b);
	offload_session_remove(b->session);
	offload_engine_destroy(b->engine);
	b->engine = NULL;
	/* What it had posted is forgotten with it. */
	b->ring_qp->head = b->ring_qp->tail;
	assert_int_equal(
		offload_session_add(a->engine, &b->config, &b->session), 0);
}

static void unshare_engine(struct bed *b)
{
	offload_session_remove(b->session);
	b->session = NULL;
	for (unsigned i = 0; i < b->node_count; i++)
		for (unsigned k = 0; k < OFFLOAD_KINDS; k++)
			free(b->node_qp[i][k]);
	free(b->ring_qp);
	bed_free(b);
}

static void run_all(struct bed *b, struct bed *queue)
{
	while (bed_packet(b, b->ring_qp))
		;
	for (unsigned i = 0; i < b->node_count; i++)
		while (bed_packet(b, b->node_qp[i][OFFLOAD_RD]) ||
		       bed_packet(b, b->node_qp[i][OFFLOAD_WR]))
			;
	while (b != queue && b->wc_head != b->wc_tail)
		queue->wc[queue->wc_tail++ % BED_CQ] =
			b->wc[b->wc_head++ % BED_CQ];
}

static void step_both(struct bed *a, struct bed *b)
{
	a->now_ns += 1000;
	(void)offload_engine_step(a->engine);
	run_all(a, a);
	run_all(b, a);
}

static void test_fair(void **state)
{
	static uint8_t buf[8192];
	struct bed *a = bed_make(1, 1, 64, 1 << 19);
	struct bed *b = bed_make(2, 1, 1024, 1 << 19);
	uint64_t large = 0, small = 0;

	bed_region(a, 1, 0, BED_NODE_BYTES);
	bed_region(b, 1, 0, BED_NODE_BYTES);
	bed_start(a);
	share_engine(a, b);
	for (unsigned i = 0; i < 3000; i++) {
		while (offload_ring_read(&a->ring, 0, 0, buf, 8192) > 0)
			;
		while (offload_ring_read(&b->ring, 0, 0, buf, 256) > 0)
			;
		step_both(a, b);
		assert_int_equal(offload_ring_look(&a->ring), 0);
		assert_int_equal(offload_ring_look(&b->ring), 0);
	}
	large = a->ring.done[OFFLOAD_RD] * 8192;
	small = b->ring.done[OFFLOAD_RD] * 256;
	/* 32 times as large, but not 32 times as much. */
	assert_true(small > 0 && large > 0);
	assert_true(large <= 2 * small && small <= 2 * large);
	unshare_engine(b);
	bed_free(a);
}

/* ---- bad ring contents -------------------------------------------------- */

static void test_bad_metadata(void **state)
{
	static const struct {
		struct offload_meta meta;
		int result; /* -EBADMSG: the session ends */
	} rows[] = {
		{{0, 0, 8, 0, 0}, -EBADMSG},
		{{3, 0, 8, 0, 0}, -EBADMSG},
		{{0xffff, 0xffff, UINT32_MAX, UINT64_MAX, UINT64_MAX},
		 -EBADMSG},
		{{OFFLOAD_READ, 1, 8, 0, 0}, -EBADF},
		{{OFFLOAD_READ, 0xffff, 8, 0, 0}, -EBADF},
		{{OFFLOAD_READ, 0, 0, 0, 0}, -EMSGSIZE},
		{{OFFLOAD_READ, 0, 4097, 0, 0}, -EMSGSIZE},
		{{OFFLOAD_READ, 0, UINT32_MAX, 0, 0}, -EMSGSIZE},
		{{OFFLOAD_READ, 0, 8, BED_NODE_BYTES, 0}, -ERANGE},
		{{OFFLOAD_READ, 0, 8, BED_NODE_BYTES - 7, 0}, -ERANGE},
		{{OFFLOAD_READ, 0, 8, UINT64_MAX - 3, 0}, -ERANGE},
		{{OFFLOAD_READ, 0, 8, 0, 8192 - 7}, -EINVAL},
		{{OFFLOAD_READ, 0, 8, 0, UINT64_MAX}, -EINVAL},
		{{OFFLOAD_READ, 0, 8, 0, UINT64_MAX - 7}, -EINVAL},
		{{OFFLOAD_WRITE, 0, 8, 8185, 0}, -EINVAL},
		{{OFFLOAD_WRITE, 0, 8, UINT64_MAX, 0}, -EINVAL},
		{{OFFLOAD_WRITE, 0, 8, 0, UINT64_MAX}, -ERANGE},
		{{OFFLOAD_WRITE, 2, 8, 0, 0}, -EBADF},
		{{OFFLOAD_READ, 0, 8, 0, 0}, 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed *b = bed_make(i, 1, 64, 8192);
		uint64_t out, good;
		int64_t id, next;

		bed_region(b, 1, 0, BED_NODE_BYTES);
		id = rows[i].meta.rw_type == OFFLOAD_WRITE
			     ? offload_ring_write(&b->ring, 0, 0, &out, 8)
			     : offload_ring_read(&b->ring, 0, 0, &out, 8);
		next = offload_ring_read(&b->ring, 0, 64, &good, 8);
		b->ring.meta[0] = rows[i].meta;
		bed_start(b);
		if (rows[i].result == -EBADMSG) {
			for (unsigned k = 0; k < 2000; k++)
				bed_step(b);
			assert_int_equal(offload_session_err(b->session),
					 -EBADMSG);
			/* The application is told. */
			assert_int_equal(
				((struct offload_preamble *)(void *)b->ring_mem)
					->state.err,
				EBADMSG);
		} else {
			bed_settle(b);
			assert_int_equal(offload_ring_result(&b->ring, id),
					 rows[i].result);
			assert_int_equal(offload_ring_result(&b->ring, next),
					 1);
		}
		assert_int_equal(b->bad_access, 0);
		bed_free(b);
	}
}

static void test_bad_counts(void **state)
{
	static const struct {
		uint32_t tail, wdata_tail;
		uint64_t head, head_reads;
		struct offload_done done;
	} rows[] = {
		{65, 0, 0, 0, {0, 0}},	       {UINT32_MAX, 0, 0, 0, {0, 0}},
		{0, 0, 1, 0, {0, 0}},	       {0, 0, 5, 6, {0, 0}},
		{5, 0, 5, 5, {UINT32_MAX, 0}}, {5, 0, 5, 5, {5, 70}},
		{0, 0, UINT64_MAX, 0, {0, 0}},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed *b = bed_make(i, 1, 64, 8192);
		struct offload_preamble *p = (void *)b->ring_mem;

		bed_region(b, 1, 0, BED_NODE_BYTES);
		p->green.tail = rows[i].tail;
		p->green.wdata_tail = rows[i].wdata_tail;
		p->red.head = rows[i].head;
		p->red.head_reads = rows[i].head_reads;
		p->red.done = rows[i].done;
		bed_start(b);
		for (unsigned k = 0; k < 2000; k++)
			bed_step(b);
		assert_int_equal(offload_session_err(b->session), -EBADMSG);
		bed_free(b);
	}
}

/* The same while it runs. */
static void test_bad_green(void **state)
{
	static const struct offload_green rows[] = {
		{65, 0},   {UINT32_MAX, 0}, {1u << 31, 0},
		{1, 8193}, {1, UINT32_MAX},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed *b = bed_make(i, 1, 64, 8192);
		struct offload_preamble *p = (void *)b->ring_mem;

		bed_region(b, 1, 0, BED_NODE_BYTES);
		bed_start(b);
		for (unsigned k = 0; k < 500; k++)
			bed_step(b);
		assert_int_equal(offload_session_err(b->session), 0);
		p->green = rows[i];
		for (unsigned k = 0; k < 5000; k++)
			bed_step(b);
		assert_int_equal(offload_session_err(b->session), -EBADMSG);
		bed_free(b);
	}
}

static void test_bad_sessions(void **state)
{
	struct bed *b = bed_make(1, 1, 64, 8192);
	struct offload_session_config c;
	struct offload_session *s;

	bed_region(b, 1, 0, BED_NODE_BYTES);
	bed_start(b);
	c = b->config;
	c.epoch = 0;
	assert_int_equal(offload_session_add(b->engine, &c, &s), -EINVAL);
	c = b->config;
	c.region[0].piece[0].node = 1;
	assert_int_equal(offload_session_add(b->engine, &c, &s), -EINVAL);
	c = b->config;
	c.region[0].piece_count = OFFLOAD_NODES_MAX + 1;
	assert_int_equal(offload_session_add(b->engine, &c, &s), -EINVAL);
	c = b->config;
	c.region[0].piece[0].size_bytes--; /* smaller than the region */
	assert_int_equal(offload_session_add(b->engine, &c, &s), -EINVAL);
	c = b->config;
	c.node[0].mtu_bytes = 1000;
	assert_int_equal(offload_session_add(b->engine, &c, &s), -EINVAL);
	c = b->config;
	c.ring_bytes = 100;
	assert_int_equal(offload_session_add(b->engine, &c, &s), -EINVAL);
	c = b->config;
	c.ring_bytes = 1ull << 40;
	assert_int_equal(offload_session_add(b->engine, &c, &s), -ENOSPC);
	bed_free(b);
}

/* ---- faults ------------------------------------------------------------- */

static void test_lost_node(void **state)
{
	struct bed *b = bed_make(1, 2, 64, 8192);
	uint8_t out[1024];
	int64_t id[4];

	bed_region(b, 2, 8, 2048);
	bed_start(b);
	id[0] = offload_ring_read(&b->ring, 0, 0, out, 8);
	bed_settle(b);
	bed_fail(b, b->node_qp[1][OFFLOAD_RD]);
	id[1] = offload_ring_read(&b->ring, 0, 256, out, 8);
	for (unsigned k = 0; k < 5000; k++)
		bed_step(b);
	assert_int_equal(offload_session_err(b->session), -EHOSTDOWN);
	assert_int_equal(
		((struct offload_preamble *)(void *)b->ring_mem)->state.err,
		EHOSTDOWN);
	/* Whoever attaches again knows that the node is gone. */
	b->node_is_lost[1] = true;
	bed_start(b);
	id[2] = offload_ring_write(&b->ring, 0, 0, out, 1024);
	id[3] = offload_ring_read(&b->ring, 0, 0, out, 256);
	bed_settle(b);
	assert_int_equal(offload_ring_result(&b->ring, id[0]), 1);
	assert_int_equal(offload_ring_result(&b->ring, id[1]), -EHOSTDOWN);
	assert_int_equal(offload_ring_result(&b->ring, id[2]), -EHOSTDOWN);
	assert_int_equal(offload_ring_result(&b->ring, id[3]), 1);
	bed_free(b);
}

/* A write over three stripes, the middle one at a node that is gone: both
 * others are executed, because whoever follows counts on their packets. */
static void test_lost_middle(void **state)
{
	const uint32_t stripe = 1 << 9;
	static uint8_t data[3 << 9];
	struct bed *b = bed_make(7, 2, 64, 8192);
	int64_t id;

	bed_region(b, 2, 9, 8 * stripe);
	b->node_is_lost[1] = true;
	bed_start(b);
	memset(data, 0x5a, sizeof(data));
	id = offload_ring_write(&b->ring, 0, 0, data, sizeof(data));
	assert_true(id > 0);
	bed_settle(b);
	assert_int_equal(offload_ring_result(&b->ring, id), -EHOSTDOWN);
	assert_int_equal(*bed_at(b, 0, 0), 0x5a);
	assert_int_equal(*bed_at(b, 0, 2 * stripe), 0x5a);
	bed_free(b);
}

/* Of two nodes that a session has requests for, the first takes none: what is
 * for the second must not be left for the engine's next session to post. */
static void test_failed_post(void **state)
{
	static const uint8_t mine[8] = "session";
	struct bed *a = bed_make(1, 2, 64, 8192);
	struct bed *b = bed_make(2, 2, 64, 8192);
	uint8_t out[8];
	int64_t id;

	bed_region(a, 2, 8, 2048);
	bed_region(b, 2, 8, 2048);
	bed_start(a);
	share_engine(a, b);
	a->node_qp[0][OFFLOAD_RD]->is_failed = true;
	assert_true(offload_ring_read(&a->ring, 0, 0, out, 8) > 0);
	assert_true(offload_ring_read(&a->ring, 0, 256, out, 8) > 0);
	for (unsigned i = 0; i < 1000 && !offload_session_err(a->session); i++)
		step_both(a, b);
	assert_int_equal(offload_session_err(a->session), -EHOSTDOWN);
	assert_int_equal(a->node_qp[1][OFFLOAD_RD]->tail, 1);
	memcpy(bed_at(b, 0, 256), mine, 8);
	id = offload_ring_read(&b->ring, 0, 256, out, 8);
	assert_true(id > 0);
	for (unsigned i = 0; i < 1000; i++)
		step_both(a, b);
	assert_int_equal(offload_ring_look(&b->ring), 0);
	assert_int_equal(offload_ring_result(&b->ring, id), 1);
	assert_memory_equal(out, mine, 8);
	assert_int_equal(b->node_qp[1][OFFLOAD_RD]->tail, 1);
	unshare_engine(b);
	bed_free(a);
}

static void test_lost_application(void **state)
{
	struct bed *b = bed_make(1, 1, 64, 8192);

	bed_region(b, 1, 0, BED_NODE_BYTES);
	bed_start(b);
	for (unsigned k = 0; k < 500; k++)
		bed_step(b);
	bed_fail(b, b->ring_qp);
	for (unsigned k = 0; k < 500; k++)
		bed_step(b);
	assert_int_equal(offload_session_err(b->session), -ECONNRESET);
	bed_free(b);
}

/*
 * Every packet of every write takes effect exactly once, however often the
 * engine is killed. Each write fills its bytes with its own number; the node's
 * memory is watched packet by packet through a second, "other" writer: after a
 * write has reached a place, the other one overwrites it with 0xff, and an
 * engine that repeats the write would undo that.
 */
static void check_takeover(uint64_t seed, uint32_t nodes, uint32_t shift)
{
	enum {
		SIZE = 16384,
		WRITES = 200,
		LEN_MAX = 1500,
	};
	static uint8_t buf[LEN_MAX];
	struct bed *b = bed_make(seed, nodes, 64, 8192);
	uint64_t next = 0, kills = 0, at = 0;
	unsigned count = 0;

	bed_region(b, nodes, shift, SIZE);
	bed_start(b);
	while (count < WRITES) {
		size_t len =
			1 + rng_below(&b->rng,
				      rng_below(&b->rng, 2) ? 300 : LEN_MAX);
		int64_t id;

		if (rng_below(&b->rng, 3) == 0 && at + len < SIZE) {
			memset(buf, 0x55, len);
			id = offload_ring_write(&b->ring, 0, at, buf, len);
			assert_true(id > 0 || id == -EAGAIN);
			if (id > 0) {
				at += len;
				count++;
			}
		}
		if (at + LEN_MAX >= SIZE)
			break;
		for (unsigned k = (unsigned)rng_below(&b->rng, 30); k; k--)
			bed_step(b);
		/* The other writer. */
		for (uint64_t i = next; i < at; i++)
			if (*bed_at(b, 0, i) == 0x55)
				*bed_at(b, 0, i) = 0xff;
		assert_int_equal(offload_ring_look(&b->ring), 0);
		if (rng_below(&b->rng, 6) == 0) {
			bed_start(b);
			kills++;
		}
	}
	for (unsigned k = 0; k < 100000 && offload_ring_pending(&b->ring);
	     k++) {
		bed_step(b);
		for (uint64_t i = 0; i < at; i++)
			if (*bed_at(b, 0, i) == 0x55)
				*bed_at(b, 0, i) = 0xff;
		assert_int_equal(offload_ring_look(&b->ring), 0);
	}
	if (offload_ring_pending(&b->ring))
		fail_msg("seed %llu: %u are left over, session %d",
			 (unsigned long long)seed,
			 offload_ring_pending(&b->ring),
			 offload_session_err(b->session));
	assert_int_equal(b->ring.failures, 0);
	for (uint64_t i = 0; i < at; i++)
		if (*bed_at(b, 0, i) != 0xff)
			fail_msg("seed %llu: byte %llu was never written",
				 (unsigned long long)seed,
				 (unsigned long long)i);
	assert_true(kills > 0);
	bed_free(b);
}

/* Counts how often each byte changes to 0x55: the other writer turned it to
 * 0xff, so a second 0x55 would be a repeated write. */
static void check_once(uint64_t seed, uint32_t nodes, uint32_t shift)
{
	enum {
		SIZE = 12000,
		LEN_MAX = 1500,
	};
	static uint8_t buf[LEN_MAX];
	static uint8_t hits[SIZE];
	struct bed *b = bed_make(seed, nodes, 16, 8192);
	uint64_t at = 0;
	unsigned kills = 0;

	memset(hits, 0, sizeof(hits));
	memset(buf, 0x55, sizeof(buf));
	bed_region(b, nodes, shift, SIZE);
	bed_start(b);
	while (at + LEN_MAX < SIZE || offload_ring_pending(&b->ring)) {
		size_t len = 1 + rng_below(&b->rng, LEN_MAX);

		if (at + LEN_MAX < SIZE &&
		    offload_ring_write(&b->ring, 0, at, buf, len) > 0)
			at += len;
		for (unsigned k = (unsigned)rng_below(&b->rng, 40); k; k--) {
			uint64_t before = b->packets;

			bed_step(b);
			if (b->packets == before)
				continue;
			for (uint64_t i = 0; i < at; i++)
				if (*bed_at(b, 0, i) == 0x55) {
					*bed_at(b, 0, i) = 0xff;
					hits[i]++;
				}
		}
		assert_int_equal(offload_ring_look(&b->ring), 0);
		if (kills < 60 && rng_below(&b->rng, 3) == 0) {
			bed_start(b);
			kills++;
		}
	}
	assert_int_equal(b->ring.failures, 0);
	for (uint64_t i = 0; i < at; i++)
		if (hits[i] != 1)
			fail_msg("seed %llu: byte %llu was written %u times",
				 (unsigned long long)seed,
				 (unsigned long long)i, hits[i]);
	bed_free(b);
}

/* Long writes, and an engine that never gets more than a few packets done. */
static void check_packets(uint64_t seed, uint32_t nodes, uint32_t shift)
{
	enum {
		LEN = 4000,
	};
	static uint8_t buf[LEN], hits[2 * LEN];
	struct bed *b = bed_make(seed, nodes, 16, 8192);
	unsigned kills = 0;

	memset(hits, 0, sizeof(hits));
	memset(buf, 0x55, sizeof(buf));
	bed_region(b, nodes, shift, 2 * LEN);
	bed_start(b);
	assert_true(offload_ring_write(&b->ring, 0, 0, buf, LEN) > 0);
	assert_true(offload_ring_write(&b->ring, 0, LEN, buf, LEN) > 0);
	while (offload_ring_pending(&b->ring)) {
		uint64_t quota = rng_below(&b->rng, 4);

		while (offload_ring_pending(&b->ring) &&
		       (quota || kills > 100)) {
			uint64_t got = 0;

			bed_step(b);
			for (uint64_t i = 0; i < 2 * LEN; i++)
				if (*bed_at(b, 0, i) == 0x55) {
					*bed_at(b, 0, i) = 0xff;
					hits[i]++;
					got = 1;
				}
			quota -= quota ? got : 0;
			assert_int_equal(offload_ring_look(&b->ring), 0);
		}
		bed_start(b);
		kills++;
	}
	assert_int_equal(b->ring.failures, 0);
	for (uint64_t i = 0; i < 2 * LEN; i++)
		if (hits[i] != 1)
			fail_msg("seed %llu: byte %llu was written %u times",
				 (unsigned long long)seed,
				 (unsigned long long)i, hits[i]);
	bed_free(b);
}

static void test_takeover(void **state)
{
	for (uint64_t seed = 1; seed <= 12; seed++) {
		if (seed <= 5) {
			check_packets(seed, 1, 0);
			check_packets(seed, 2, 8);
			check_packets(seed, 3, 10);
		}
		check_takeover(seed, 1, 0);
		check_once(seed, 1, 0);
		check_once(seed, 2, 8);
		check_once(seed, 3, 9);
	}
}

/* The node was restarted or forgot: nobody knows, so nothing is repeated. */
static void test_unknown_fate(void **state)
{
	struct bed *b = bed_make(3, 1, 64, 8192);
	uint8_t buf[64];
	int64_t id, later;

	memset(buf, 0x55, sizeof(buf));
	bed_region(b, 1, 0, BED_NODE_BYTES);
	bed_start(b);
	bed_settle(b);
	for (unsigned k = 0; k < 500; k++)
		bed_step(b);
	id = offload_ring_write(&b->ring, 0, 0, buf, sizeof(buf));
	while (b->node_mem[0][0] == 0)
		bed_step(b);
	b->node_mem[0][0] = 0xff;
	bed_kill(b);
	b->has_final[0] = false;
	for (unsigned i = 0; i < 3; i++) { /* also when that one dies, too */
		bed_start(b);
		for (unsigned k = 0; k < 20 * i; k++)
			bed_step(b);
	}
	later = offload_ring_write(&b->ring, 0, 128, buf, sizeof(buf));
	bed_settle(b);
	assert_int_equal(offload_ring_result(&b->ring, id), -EREMOTEIO);
	assert_int_equal(offload_ring_result(&b->ring, later), 1);
	assert_int_equal(b->node_mem[0][0], 0xff);
	bed_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_and_write),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_lone_request),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(neighbours_are_read_at_once),
		cmocka_unit_test(small_records_are_gathered),
		cmocka_unit_test(a_gather_that_fails_ends_the_session),
		cmocka_unit_test(test_idle_is_cheap),
		cmocka_unit_test(test_fair),
		cmocka_unit_test(test_bad_metadata),
		cmocka_unit_test(test_bad_counts),
		cmocka_unit_test(test_bad_green),
		cmocka_unit_test(test_bad_sessions),
		cmocka_unit_test(test_lost_node),
		cmocka_unit_test(test_lost_middle),
		cmocka_unit_test(test_failed_post),
		cmocka_unit_test(test_lost_application),
		cmocka_unit_test(test_takeover),
		cmocka_unit_test(test_unknown_fate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
