/* SPDX-License-Identifier: Apache-2.0 */
/* The application's side of the rings, with an engine that is a function here:
 * it sees only the shared bytes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the four above. */
#include <cmocka.h>

#include "base/error.h"
#include "base/rng.h"
#include "client/link.h"
#include "offload/ring.h"

enum {
	ENTRIES = 16,
	DATA = 4096,
	FAR = 1 << 16,
};

struct bed {
	struct offload_ring ring;
	uint8_t *mem;
	uint8_t far[FAR];
	/* the engine's */
	struct offload_red red;
	uint32_t next;
};

static struct bed *bed_make(void)
{
	struct bed *b = calloc(1, sizeof(*b));
	struct offload_map map;

	assert_non_null(b);
	assert_int_equal(offload_map_make(ENTRIES, DATA, DATA, &map), 0);
	b->mem = aligned_alloc(4096, align_up(map.total_bytes, 4096));
	assert_non_null(b->mem);
	memset(b->mem, 0, map.total_bytes);
	assert_int_equal(offload_ring_init(&b->ring, &map, b->mem, "test"), 0);
	assert_int_equal(offload_ring_add(&b->ring, FAR, false), 0);
	return b;
}

static void bed_free(struct bed *b)
{
	offload_ring_release(&b->ring);
	free(b->mem);
	free(b);
}

static void publish(struct bed *b)
{
	struct offload_preamble *p = (void *)b->mem;
	uint64_t word;

	memcpy(&word, &b->red.done, sizeof(word));
	atomic_store((_Atomic uint64_t *)(void *)&p->red.done, word);
}

/* Executes at most `max` requests. */
static unsigned engine(struct bed *b, unsigned max)
{
	struct offload_preamble *p = (void *)b->mem;
	struct offload_map map;
	unsigned n = 0;

	assert_int_equal(offload_preamble_check(p, UINT64_MAX, &map), 0);
	for (; n < max && b->next != p->green.tail; n++, b->next++) {
		struct offload_meta *m =
			(void *)(b->mem + map.meta_at +
				 (b->next & map.mask) * sizeof(*m));

		if (m->rw_type == OFFLOAD_READ) {
			memcpy(b->mem + map.rdata_at + m->resp_addr,
			       b->far + m->req_addr, m->len_bytes);
			b->red.done.reads++;
		} else {
			assert_int_equal(m->rw_type, OFFLOAD_WRITE);
			memcpy(b->far + m->resp_addr,
			       b->mem + map.wdata_at + m->req_addr,
			       m->len_bytes);
			b->red.done.writes++;
		}
	}
	publish(b);
	return n;
}

static void test_one_of_each(void **state)
{
	struct bed *b = bed_make();
	uint64_t in = 42, out = 0;
	int64_t w, r;

	w = offload_ring_write(&b->ring, 0, 128, &in, 8);
	in = 1; /* it was copied */
	r = offload_ring_read(&b->ring, 0, 128, &out, 8);
	assert_true(w > 0 && r > 0 && w != r);
	assert_int_equal(offload_id_kind(w), OFFLOAD_WR);
	assert_int_equal(offload_id_kind(r), OFFLOAD_RD);
	assert_int_equal(offload_id_seq(w), 1);
	assert_int_equal(offload_ring_look(&b->ring), 0);
	assert_int_equal(offload_ring_result(&b->ring, w), 0);
	assert_int_equal(offload_ring_pending(&b->ring), 2);
	assert_int_equal(engine(b, 1), 1);
	assert_int_equal(offload_ring_look(&b->ring), 0);
	assert_int_equal(offload_ring_result(&b->ring, w), 1);
	assert_int_equal(offload_ring_result(&b->ring, r), 0);
	engine(b, 1);
	assert_int_equal(out, 0); /* only a look fills it */
	assert_int_equal(offload_ring_look(&b->ring), 0);
	assert_int_equal(out, 42);
	assert_int_equal(offload_ring_result(&b->ring, r), 1);
	assert_int_equal(offload_ring_result(&b->ring, r + 1), -EINVAL);
	assert_int_equal(offload_ring_result(&b->ring, -EAGAIN), -EINVAL);
	assert_int_equal(offload_ring_result(&b->ring, 0), -EINVAL);
	bed_free(b);
}

static void test_refusals(void **state)
{
	static uint8_t buf[DATA];
	static const struct {
		uint32_t region;
		uint64_t offset;
		size_t len;
		int err;
	} rows[] = {
		{1, 0, 8, -EBADF},
		{OFFLOAD_REGIONS_MAX, 0, 8, -EBADF},
		{UINT32_MAX, 0, 8, -EBADF},
		{0, FAR, 1, -ERANGE},
		{0, FAR - 7, 8, -ERANGE},
		{0, UINT64_MAX, 8, -ERANGE},
		{0, UINT64_MAX - 7, 8, -ERANGE},
		{0, 0, 0, -EMSGSIZE},
		{0, 0, DATA / 2 + 1, -EMSGSIZE},
		{0, 0, SIZE_MAX, -EMSGSIZE},
	};
	struct bed *b = bed_make();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(offload_ring_read(&b->ring, rows[i].region,
						   rows[i].offset, buf,
						   rows[i].len),
				 rows[i].err);
		assert_int_equal(offload_ring_write(&b->ring, rows[i].region,
						    rows[i].offset, buf,
						    rows[i].len),
				 rows[i].err);
	}
	assert_int_equal(offload_ring_pending(&b->ring), 0);
	assert_int_equal(offload_ring_add(&b->ring, 64, true), 1);
	assert_int_equal(offload_ring_write(&b->ring, 1, 0, buf, 8), -EACCES);
	assert_true(offload_ring_read(&b->ring, 1, 0, buf, 8) > 0);
	offload_ring_bound(&b->ring, 1, 64, -ESTALE);
	assert_int_equal(offload_ring_read(&b->ring, 1, 0, buf, 8), -ESTALE);
	while (offload_ring_add(&b->ring, 1, false) >= 0)
		;
	assert_int_equal(b->ring.region_count, OFFLOAD_REGIONS_MAX);
	bed_free(b);
}

static void test_full(void **state)
{
	static uint8_t buf[DATA];
	struct bed *b = bed_make();
	unsigned i;

	for (i = 0; i < ENTRIES; i++)
		assert_true(offload_ring_read(&b->ring, 0, i, buf, 1) > 0);
	assert_int_equal(offload_ring_read(&b->ring, 0, 0, buf, 1), -EAGAIN);
	assert_int_equal(offload_ring_write(&b->ring, 0, 0, buf, 1), -EAGAIN);
	engine(b, 1);
	assert_int_equal(offload_ring_look(&b->ring), 0);
	assert_true(offload_ring_write(&b->ring, 0, 0, buf, 1) > 0);
	assert_int_equal(offload_ring_write(&b->ring, 0, 0, buf, 1), -EAGAIN);
	engine(b, ENTRIES);
	assert_int_equal(offload_ring_look(&b->ring), 0);
	/* The data ring, of which one half and then the other is taken. */
	assert_true(offload_ring_write(&b->ring, 0, 0, buf, DATA / 2) > 0);
	assert_int_equal(offload_ring_write(&b->ring, 0, 0, buf, DATA / 2),
			 -EAGAIN); /* it would cross the end */
	assert_true(offload_ring_read(&b->ring, 0, 0, buf, DATA / 4) > 0);
	engine(b, ENTRIES);
	assert_int_equal(offload_ring_look(&b->ring), 0);
	assert_true(offload_ring_write(&b->ring, 0, 0, buf, DATA / 2) > 0);
	bed_free(b);
}

static void test_failures(void **state)
{
	struct bed *b = bed_make();
	uint64_t out = 7;
	int64_t r1, r2, r3;

	r1 = offload_ring_read(&b->ring, 0, 0, &out, 8);
	r2 = offload_ring_read(&b->ring, 0, 0, &out, 8);
	b->mem[b->ring.map.status_at] = EHOSTDOWN;
	b->mem[b->ring.map.status_at + 1] = 255; /* no errno at all */
	engine(b, 2);
	assert_int_equal(offload_ring_look(&b->ring), 0);
	assert_int_equal(out, 7);
	assert_int_equal(offload_ring_result(&b->ring, r1), -EHOSTDOWN);
	assert_int_equal(offload_ring_result(&b->ring, r2), -EREMOTEIO);
	for (unsigned i = 0; i < ENTRIES; i++) {
		r3 = offload_ring_read(&b->ring, 0, 0, &out, 8);
		assert_true(r3 > 0);
		engine(b, 1);
		assert_int_equal(offload_ring_look(&b->ring), 0);
		assert_int_equal(offload_ring_result(&b->ring, r3), 1);
	}
	bed_free(b);
}

/* Records of one line that are taken together, of which each may have failed,
 * at any place of the rings: those and no others keep what they had. */
static void test_failures_among_others(void **state)
{
	enum {
		LINE = 64,
		COUNT = 11
	};
	struct bed *b = bed_make();
	struct rng rng;

	rng_init(&rng, 3);
	for (unsigned i = 0; i < FAR; i++)
		b->far[i] = (uint8_t)(i / LINE * 7 + 1);
	for (unsigned round = 0; round < 2000; round++) {
		uint8_t got[COUNT][LINE] = {{0}};
		uint64_t record[COUNT];
		int64_t id[COUNT];
		unsigned bad = (unsigned)rng_below(&rng, 2 * COUNT);

		for (unsigned i = 0; i < COUNT; i++) {
			record[i] = rng_below(&rng, FAR / LINE);
			id[i] = offload_ring_read(&b->ring, 0, record[i] * LINE,
						  got[i], LINE);
			assert_true(id[i] > 0);
			if (i == bad)
				b->ring.status[(b->ring.tail - 1) &
					       b->ring.map.mask] = EIO;
		}
		engine(b, COUNT);
		assert_int_equal(offload_ring_look(&b->ring), 0);
		for (unsigned i = 0; i < COUNT; i++) {
			assert_int_equal(offload_ring_result(&b->ring, id[i]),
					 i == bad ? -EIO : 1);
			for (unsigned k = 0; k < LINE; k++)
				assert_int_equal(
					got[i][k],
					i == bad ? 0
						 : b->far[record[i] * LINE]);
		}
	}
	bed_free(b);
}

/* Whatever the engine writes, nothing outside the rings is touched. */
static uint64_t later(void *ctx)
{
	return *(uint64_t *)ctx += 100;
}

/* What ends is counted with its bytes; the first of 256 is timed for all that
 * end until it is done. */
static void test_tally(void **state)
{
	struct bed *b = bed_make();
	struct tally *t = calloc(1, sizeof(*t));
	uint64_t time_ns = 0;
	const struct client_clock clock = {.now_ns = later, .ctx = &time_ns};
	char buf[64];

	b->ring.tally = t;
	b->ring.clock = &clock;
	assert_true(offload_ring_read(&b->ring, 0, 0, buf, 10) > 0);
	assert_true(offload_ring_write(&b->ring, 0, 64, buf, 20) > 0);
	assert_int_equal(t->count[TALLY_READS], 0); /* under way */
	engine(b, 2);
	assert_int_equal(offload_ring_look(&b->ring), 0);
	assert_int_equal(t->count[TALLY_READS], 1);
	assert_int_equal(t->count[TALLY_WRITES], 1);
	assert_int_equal(t->count[TALLY_READ_BYTES], 10);
	assert_int_equal(t->count[TALLY_WRITE_BYTES], 20);
	assert_int_equal(t->latency.sum, 100);
	for (unsigned i = 0; i < 540; i++) {
		assert_true(offload_ring_read(&b->ring, 0, 0, buf, 1) > 0);
		engine(b, 1);
		assert_int_equal(offload_ring_look(&b->ring), 0);
	}
	assert_int_equal(t->count[TALLY_READS], 541);
	assert_int_equal(time_ns, 600); /* two looks for each of three */
	assert_in_range(hist_count(&t->latency), 500, 542);
	free(t);
	bed_free(b);
}

static void test_nonsense(void **state)
{
	static const struct offload_done rows[] = {
		{2, 0}, {0, 1}, {UINT32_MAX, 0}, {0, UINT32_MAX}, {1, 1u << 31},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bed *b = bed_make();
		uint64_t out = 7;

		assert_true(offload_ring_read(&b->ring, 0, 0, &out, 8) > 0);
		b->red.done = rows[i];
		publish(b);
		assert_int_equal(offload_ring_look(&b->ring), -EPROTO);
		assert_int_equal(out, 7);
		b->red.done = (struct offload_done){1, 0};
		publish(b);
		assert_int_equal(offload_ring_look(&b->ring), -EPROTO);
		assert_int_equal(offload_ring_read(&b->ring, 0, 0, &out, 8),
				 -EPROTO);
		bed_free(b);
	}
}

static void test_backwards(void **state)
{
	struct bed *b = bed_make();
	uint64_t out;

	assert_true(offload_ring_read(&b->ring, 0, 0, &out, 8) > 0);
	engine(b, 1);
	assert_int_equal(offload_ring_look(&b->ring), 0);
	b->red.done.reads = 0;
	publish(b);
	assert_int_equal(offload_ring_look(&b->ring), -EPROTO);
	/* It says what it saw: whoever reads that cannot look any more. */
	assert_non_null(strstr(error_last(), "0 reads and 0 writes, 1 and 0 "
					     "were known, 1 and 0 issued"));
	bed_free(b);
}

static void test_map(void **state)
{
	static const struct {
		uint64_t entries, wdata, rdata;
		int err;
	} rows[] = {
		{16, 4096, 4096, 0},
		{65536, 256 << 20, 256 << 20, 0},
		{8, 4096, 4096, -EINVAL},
		{17, 4096, 4096, -EINVAL},
		{131072, 4096, 4096, -EINVAL},
		{16, 2048, 4096, -EINVAL},
		{16, 4096, 4097, -EINVAL},
		{16, 4096, 512 << 20, -EINVAL},
		{UINT64_MAX, UINT64_MAX, UINT64_MAX, -EINVAL},
		{0, 0, 0, -EINVAL},
	};
	struct offload_preamble p;
	struct offload_map m, back;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(offload_map_make(rows[i].entries,
						  rows[i].wdata, rows[i].rdata,
						  &m),
				 rows[i].err);
	assert_int_equal(offload_map_make(1024, 8192, 4096, &m), 0);
	assert_true(m.meta_at % 64 == 0 && m.wdata_at % 4096 == 0 &&
		    m.rdata_at == m.wdata_at + 8192 &&
		    m.total_bytes == m.rdata_at + 4096);
	memset(&p, 0, sizeof(p));
	offload_preamble_init(&p, &m, "test");
	assert_int_equal(offload_preamble_check(&p, m.total_bytes, &back), 0);
	assert_memory_equal(&m, &back, sizeof(m));
	assert_int_equal(offload_preamble_check(&p, m.total_bytes - 1, &back),
			 -EBADMSG);
	p.geometry.entries = le32_put(2048);
	assert_int_equal(offload_preamble_check(&p, m.total_bytes, &back),
			 -EBADMSG);
	p.geometry.entries = le32_put(1000);
	assert_int_equal(offload_preamble_check(&p, m.total_bytes, &back),
			 -EBADMSG);
	p.header.major = le32_put(9);
	assert_true(offload_preamble_check(&p, m.total_bytes, &back) < 0);
}

/* Many laps of random sizes against a plain array. */
static void test_laps(void **state)
{
	static uint8_t model[FAR], buf[DATA], got[ENTRIES][DATA / 2];
	struct {
		int64_t id;
		uint64_t offset;
		size_t len;
	} open[ENTRIES];
	struct bed *b = bed_make();
	struct rng rng;
	unsigned count = 0, done = 0;

	rng_init(&rng, 1);
	while (done < 20000) {
		size_t len = 1 + rng_below(&rng, DATA / 2);
		uint64_t offset = rng_below(&rng, FAR - len + 1);
		int64_t id;

		if (rng_below(&rng, 2) && count < ENTRIES) {
			id = offload_ring_read(&b->ring, 0, offset, got[count],
					       len);
			if (id > 0) {
				open[count].id = id;
				open[count].offset = offset;
				open[count++].len = len;
			}
		} else if (count == 0) { /* no read sees it too early */
			memset(buf, (int)rng_below(&rng, 256), len);
			id = offload_ring_write(&b->ring, 0, offset, buf, len);
			if (id > 0)
				memcpy(model + offset, buf, len);
		}
		if (rng_below(&rng, 4) && count < ENTRIES)
			continue;
		engine(b, ENTRIES);
		assert_int_equal(offload_ring_look(&b->ring), 0);
		for (unsigned i = 0; i < count; i++) {
			assert_int_equal(
				offload_ring_result(&b->ring, open[i].id), 1);
			assert_memory_equal(got[i], model + open[i].offset,
					    open[i].len);
		}
		done += count + 1;
		count = 0;
	}
	bed_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_one_of_each),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_failures_among_others),
		cmocka_unit_test(test_tally),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_backwards),
		cmocka_unit_test(test_laps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
