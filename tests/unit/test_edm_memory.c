/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes with memory: what one wrote another reads, over several fabrics; a
 * reader beside a writer sees whole chunks; read-modify-writes are executed
 * once whatever is lost, and make locks; order where bytes overlap; memory that
 * does not answer; what is refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "edm/edm_kv.h"
#include "edm/edm_memory.h"

enum {
	NODES = 6,
	HOME = 5, /* whose memory is shared */
	BYTES = 1 << 16,
	LONG = 5840,
	ADDS = 60,
	LOCKED = 12,
};

static struct edm_memory *memory(const struct edm_config *with)
{
	struct edm_config c;
	struct edm_memory *m;

	edm_config_init(&c);
	if (with)
		c = *with;
	c.nodes = NODES;
	assert_int_equal(edm_memory_create(&c, BYTES, &m), 0);
	return m;
}

static void post(struct edm_memory *m, struct edm_request r)
{
	assert_int_equal(edm_memory_post(m, &r), 0);
}

static struct edm_completion next(struct edm_memory *m)
{
	struct edm_completion c;

	assert_true(edm_memory_poll(m, EDM_NEVER, &c));
	return c;
}

static struct edm_completion do_it(struct edm_memory *m, struct edm_request r)
{
	post(m, r);
	return next(m);
}

static struct edm_request read_of(uint16_t src, uint64_t at, uint32_t bytes)
{
	return (struct edm_request){EDM_READ, src, HOME, at, at,
				    bytes,    0,   {0},	 src};
}

static struct edm_request write_of(uint16_t src, uint64_t at, uint32_t bytes)
{
	return (struct edm_request){EDM_WRITE, src, HOME, at, at,
				    bytes,     0,   {0},  src};
}

static struct edm_request rmw_of(uint16_t src, uint64_t at, enum edm_modify how,
				 uint64_t a, uint64_t b)
{
	return (struct edm_request){EDM_RMW, src, HOME,	  0,  at,
				    8,	     how, {a, b}, src};
}

static uint64_t word(struct edm_memory *m, uint16_t node, uint64_t at)
{
	uint64_t v;

	memcpy(&v, edm_memory_at(m, node) + at, 8);
	return v;
}

/* ---- bytes --------------------------------------------------------------- */

static void test_reads_what_another_wrote(void **state)
{
	for (int proto = EDM_PROTO_EDM; proto < EDM_PROTO_COUNT; proto++) {
		struct edm_config c;
		struct edm_memory *m;

		edm_config_init(&c);
		c.proto = (enum edm_proto)proto;
		m = memory(&c);
		for (unsigned i = 0; i < LONG; i++)
			edm_memory_at(m, 0)[100 + i] = (uint8_t)(i * 7);
		assert_false(do_it(m, write_of(0, 100, LONG)).null);
		assert_false(do_it(m, read_of(1, 100, LONG)).null);
		assert_memory_equal(edm_memory_at(m, 1) + 100,
				    edm_memory_at(m, 0) + 100, LONG);
		/* And nothing beside it. */
		assert_int_equal(edm_memory_at(m, HOME)[99], 0);
		assert_int_equal(edm_memory_at(m, HOME)[100 + LONG], 0);
		assert_int_equal(
			do_it(m, rmw_of(2, 8, EDM_FETCH_ADD, 5, 0)).value, 0);
		assert_int_equal(word(m, HOME, 8), 5);
		edm_memory_destroy(m);
	}
}

/* A lone message with memory takes what one without takes. */
static void test_times(void **state)
{
	struct edm_memory *m = memory(NULL);
	struct edm_completion w = do_it(m, write_of(0, 0, 64));
	struct edm_completion r = do_it(m, read_of(0, 0, 64));

	assert_int_equal(w.end_ps - w.start_ps, 302720);
	assert_int_equal(r.end_ps - r.start_ps, 305280);
	edm_memory_destroy(m);
}

/* A write comes chunk by chunk: who reads meanwhile gets a beginning of it, cut
 * at a chunk. */
static void test_whole_chunks(void **state)
{
	unsigned cuts = 0;

	for (uint64_t wait = 0; wait < 700; wait += 50) {
		struct edm_memory *m = memory(NULL);
		struct edm_completion none;
		const uint8_t *got = edm_memory_at(m, 1);
		unsigned length = 0;

		memset(edm_memory_at(m, 0), 1, LONG);
		post(m, write_of(0, 0, LONG));
		assert_false(edm_memory_poll(m, wait * EDM_NS, &none));
		post(m, read_of(1, 0, LONG));
		(void)next(m);
		(void)next(m);
		while (length < LONG && got[length])
			length++;
		for (unsigned i = length; i < LONG; i++)
			assert_int_equal(got[i], 0);
		assert_true(length == LONG || length % EDM_CHUNK_PAPER == 0);
		cuts += length > 0 && length < LONG;
		edm_memory_destroy(m);
	}
	assert_true(cuts > 0);
}

/* ---- read, modify, write ------------------------------------------------- */

/* All nodes add to one word; returns the sum of what they were told. */
static uint64_t add_all(struct edm_memory *m, unsigned *nulls)
{
	unsigned left[HOME], busy = HOME;
	uint64_t sum = 0;

	for (uint16_t i = 0; i < HOME; i++) {
		left[i] = ADDS - 1;
		post(m, rmw_of(i, 0, EDM_FETCH_ADD, 1, 0));
	}
	while (busy) {
		struct edm_completion c = next(m);
		uint16_t who = (uint16_t)c.tag;

		sum += c.value;
		*nulls += c.null;
		if (left[who]) {
			left[who]--;
			post(m, rmw_of(who, 0, EDM_FETCH_ADD, 1, 0));
		} else {
			busy--;
		}
	}
	return sum;
}

static void test_adds_are_executed_once(void **state)
{
	const uint64_t n = ADDS * HOME;

	for (int how = 0; how < 4; how++) {
		struct edm_config c;
		struct edm_memory *m;
		unsigned nulls = 0;
		uint64_t sum;

		edm_config_init(&c);
		c.loss_ppm = how == 1 ? 50000 : 0;
		c.timer_ps = how == 1 ? 5 * EDM_US : 0;
		c.read_retries = 50;
		c.mirror = how >= 2;
		c.mirror_skew_ps = how >= 2 ? 3000 : 0;
		c.fail_switch_ps = how == 3 ? 3 * EDM_US : 0;
		m = memory(&c);
		sum = add_all(m, &nulls);
		assert_int_equal(nulls, 0);
		assert_int_equal(word(m, HOME, 0), n);
		/* Everybody was told another value: 0 to n - 1. */
		assert_int_equal(sum, n * (n - 1) / 2);
		edm_memory_destroy(m);
	}
}

static void test_modifies(void **state)
{
	struct edm_memory *m = memory(NULL);

	assert_int_equal(do_it(m, rmw_of(0, 8, EDM_COMPARE_SWAP, 0, 7)).value,
			 0);
	assert_int_equal(do_it(m, rmw_of(1, 8, EDM_COMPARE_SWAP, 0, 9)).value,
			 7);
	assert_int_equal(word(m, HOME, 8), 7);
	assert_int_equal(do_it(m, rmw_of(1, 8, EDM_SWAP, 4, 0)).value, 7);
	/* RRES brings what was there to the local word, too. */
	assert_int_equal(word(m, 1, 0), 7);
	assert_int_equal(word(m, HOME, 8), 4);
	edm_memory_destroy(m);
}

/* A lock by compare-and-swap around a read and a write of a counter. */
static void test_lock(void **state)
{
	struct edm_memory *m = memory(NULL);
	enum {
		TRY,
		LOOK,
		STORE,
		UNLOCK,
		OVER
	} at[HOME] = {TRY};
	unsigned left[HOME], running = HOME;

	for (uint16_t i = 0; i < HOME; i++) {
		left[i] = LOCKED;
		post(m, rmw_of(i, 8, EDM_COMPARE_SWAP, 0, 1u + i));
	}
	while (running) {
		struct edm_completion c = next(m);
		uint16_t i = (uint16_t)c.tag;
		uint64_t v;

		if (at[i] == TRY && !c.value) {
			at[i] = LOOK;
			post(m, read_of(i, 16, 8));
		} else if (at[i] == TRY) {
			post(m, rmw_of(i, 8, EDM_COMPARE_SWAP, 0, 1u + i));
		} else if (at[i] == LOOK) {
			v = word(m, i, 16) + 1;
			memcpy(edm_memory_at(m, i) + 16, &v, 8);
			at[i] = STORE;
			post(m, write_of(i, 16, 8));
		} else if (at[i] == STORE) {
			at[i] = UNLOCK;
			post(m, rmw_of(i, 8, EDM_SWAP, 0, 0));
		} else if (--left[i]) {
			at[i] = TRY;
			post(m, rmw_of(i, 8, EDM_COMPARE_SWAP, 0, 1u + i));
		} else {
			at[i] = OVER;
			running--;
		}
	}
	assert_int_equal(word(m, HOME, 16), LOCKED * HOME);
	edm_memory_destroy(m);
}

/* ---- order, failure, refusal --------------------------------------------- */

/* A read behind a write of the same node sees it; a write behind a read does
 * not change what is read; others do not wait. */
static void test_own_order(void **state)
{
	struct edm_memory *m = memory(NULL);

	memset(edm_memory_at(m, 0), 1, 4096);
	post(m, write_of(0, 0, 4096));
	memset(edm_memory_at(m, 0), 2, 4096);
	post(m, read_of(0, 4000, 64));	/* waits for the write */
	post(m, write_of(0, 4000, 64)); /* and this one for the read */
	post(m, read_of(0, 8192, 64));
	assert_int_equal(edm_memory_held(m), 2);
	for (int i = 0; i < 4; i++)
		assert_false(next(m).null);
	assert_int_equal(edm_memory_at(m, 0)[4000], 1);
	assert_int_equal(edm_memory_at(m, HOME)[4000], 2);
	assert_int_equal(edm_memory_at(m, HOME)[3999], 1);
	edm_memory_destroy(m);
}

static void test_dead_memory(void **state)
{
	struct edm_config c;
	struct edm_memory *m;

	edm_config_init(&c);
	c.timer_ps = 5 * EDM_US;
	c.fail_node_ps = 1;
	c.fail_port = HOME;
	m = memory(&c);
	assert_true(do_it(m, read_of(0, 0, 64)).null);
	assert_true(do_it(m, rmw_of(0, 0, EDM_FETCH_ADD, 1, 0)).null);
	edm_memory_destroy(m);
}

static void test_refused(void **state)
{
	struct edm_memory *m = memory(NULL);
	struct edm_request r[] = {read_of(0, BYTES - 63, 64),
				  read_of(0, 0, 0),
				  read_of(NODES, 0, 64),
				  read_of(HOME, 0, 64),
				  rmw_of(0, 4, EDM_FETCH_ADD, 1, 0),
				  read_of(0, UINT64_MAX, 64)};

	for (unsigned i = 0; i < ARRAY_LEN(r); i++)
		assert_int_equal(edm_memory_post(m, &r[i]), -ERANGE);
	r[0] = read_of(0, 0, 64);
	for (unsigned i = 0; i < 256; i++)
		post(m, r[0]);
	assert_int_equal(edm_memory_post(m, &r[0]), -EAGAIN);
	for (unsigned i = 0; i < 256; i++)
		(void)next(m);
	post(m, r[0]);
	edm_memory_destroy(m);
}

/* ---- the store of figure 7 ----------------------------------------------- */

static void test_kv(void **state)
{
	struct edm_kv_config c = {.proto = EDM_PROTO_EDM,
				  .gbps = 25,
				  .remote = 0.5,
				  .writes = 0.5,
				  .requests = 500,
				  .seed = 1};
	struct edm_kv_result a, b;

	assert_int_equal(edm_kv_run(&c, &a), 0);
	assert_int_equal(a.wrong, 0);
	assert_true(a.remote > 0.4 && a.remote < 0.6);
	assert_true(a.deviation_ns > 100);
	/* The seed and the fabric matter; without remote keys neither does. */
	c.seed = 2;
	assert_int_equal(edm_kv_run(&c, &b), 0);
	assert_true(a.mean_ns != b.mean_ns);
	c.proto = EDM_PROTO_CXL;
	assert_int_equal(edm_kv_run(&c, &a), 0);
	assert_true(a.mean_ns < b.mean_ns);
	c.remote = 0;
	assert_int_equal(edm_kv_run(&c, &a), 0);
	assert_true(a.mean_ns == 82);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_what_another_wrote),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_whole_chunks),
		cmocka_unit_test(test_adds_are_executed_once),
		cmocka_unit_test(test_modifies),
		cmocka_unit_test(test_lock),
		cmocka_unit_test(test_own_order),
		cmocka_unit_test(test_dead_memory),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_kv),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
