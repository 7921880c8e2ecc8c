/* SPDX-License-Identifier: Apache-2.0 */
/* The frame ring: order and content between two threads, full and empty, wrap,
 * a consumer that dozes, and everything a hostile other side can write into
 * it. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "os/cable_ring.h"

#define NEVER_NS 3600000000000ull

struct pair {
	struct ring_ctl *ctl;
	uint8_t *data;
	uint32_t size_bytes;
	struct ring_tx tx;
	struct ring_rx rx;
	uint32_t frames;
	bool dozes; /* the consumer, between frames */
};

static void pair_init(struct pair *p, uint32_t size_bytes)
{
	p->size_bytes = size_bytes;
	p->ctl = aligned_alloc(128, sizeof(*p->ctl));
	p->data = aligned_alloc(4096, size_bytes);
	assert_non_null(p->ctl);
	assert_non_null(p->data);
	memset(p->ctl, 0, sizeof(*p->ctl));
	memset(p->data, 0, size_bytes);
	ring_tx_init(&p->tx, p->ctl, p->data, size_bytes);
	ring_rx_init(&p->rx, p->ctl, p->data, size_bytes);
}

static void pair_release(struct pair *p)
{
	free(p->data);
	free(p->ctl);
}

static uint32_t xorshift(uint32_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 17;
	*s ^= *s << 5;
	return *s;
}

/* Short frames mostly, as on a real cable, and every length now and then. */
static size_t frame_len(uint32_t *seed)
{
	uint32_t r = xorshift(seed);

	if (r % 4 == 0)
		return 1 + xorshift(seed) % OS_FRAME_MAX;
	return 1 + xorshift(seed) % 200;
}

static void fill(uint8_t *frame, size_t len, uint32_t n)
{
	for (size_t i = 0; i < len; i++)
		frame[i] = (uint8_t)(n * 131 + i * 7 + 0x80);
}

static bool holds(const uint8_t *frame, size_t len, uint32_t n)
{
	for (size_t i = 0; i < len; i++)
		if (frame[i] != (uint8_t)(n * 131 + i * 7 + 0x80))
			return false;
	return true;
}

static void *produce(void *arg)
{
	struct pair *p = arg;
	uint32_t seed = 12345;

	for (uint32_t n = 0; n < p->frames; n++) {
		size_t len = frame_len(&seed);
		/* Reserve more than is used, now and then nothing is sent. */
		size_t max = len + n % 3 > OS_FRAME_MAX ? len : len + n % 3;
		uint8_t *frame;
		uint64_t pos;

		while (!(frame = ring_reserve(&p->tx, max)))
			sched_yield();
		fill(frame, max, n);
		if (n % 17 == 0) {
			while (!(frame = ring_reserve(&p->tx, len)))
				sched_yield();
			fill(frame, len, n);
		}
		pos = p->tx.pos;
		ring_publish(&p->tx, len);
		if (p->dozes)
			ring_rouse(&p->tx, pos);
	}
	return NULL;
}

/* Its end is the next frame: no time that anybody would wait for. */
static void await_frame(struct pair *p)
{
	struct doze_word word;

	if (!p->dozes)
		sched_yield();
	else if (ring_doze_word(&p->rx, &word))
		assert_true(doze_wait(&word, 1, NEVER_NS));
}

static void run_stress(uint32_t size_bytes, uint32_t frames, bool dozes)
{
	struct pair p;
	pthread_t thread;
	uint32_t seed = 12345;

	pair_init(&p, size_bytes);
	p.frames = frames;
	p.dozes = dozes;
	assert_int_equal(pthread_create(&thread, NULL, produce, &p), 0);
	for (uint32_t n = 0; n < frames; n++) {
		size_t expect = frame_len(&seed);
		const uint8_t *frame;
		size_t len = 0;

		while (!(frame = ring_peek(&p.rx, &len))) {
			assert_false(p.rx.broken);
			ring_rx_publish(&p.rx);
			await_frame(&p);
		}
		assert_int_equal(len, expect);
		assert_true(holds(frame, len, n));
		ring_release(&p.rx);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(ring_ready(&p.rx));
	ring_rx_publish(&p.rx);
	assert_true(ring_tx_refresh(&p.tx));
	assert_true(ring_tx_all_read(&p.tx));
	pair_release(&p);
}

static void test_stress_small(void **state)
{
	run_stress(OS_RING_BYTES_MIN, 30000, false);
}

static void test_stress_large(void **state)
{
	run_stress(OS_RING_BYTES, 60000, false);
}

/* A frame that nobody is roused for ends the test by the suite's time. Markers
 * of a small ring are what a consumer waits for, too. */
static void test_stress_dozing(void **state)
{
	run_stress(OS_RING_BYTES_MIN, 500, true);
}

static void test_doze_ends(void **state)
{
	struct doze_word words[DOZE_WORDS_MAX];
	struct pair p;

	pair_init(&p, OS_RING_BYTES_MIN);
	assert_true(ring_doze_word(&p.rx, &words[0]));
	for (unsigned i = 1; i < ARRAY_LEN(words); i++)
		words[i] = words[0];
	/* By time; and at once by a frame that came before the wait. */
	assert_true(doze_wait(words, 1, 1));
	assert_non_null(ring_reserve(&p.tx, 60));
	ring_publish(&p.tx, 60);
	assert_true(doze_wait(words, 1, NEVER_NS));
	/* The same for any of several, where the kernel has it (5.16). */
	if (doze_wait(words, 2, 1))
		assert_true(doze_wait(words, ARRAY_LEN(words), NEVER_NS));
	assert_false(ring_doze_word(&p.rx, &words[0]));
	/* There is nothing to wait for any more. */
	p.rx.broken = true;
	assert_false(ring_doze_word(&p.rx, &words[0]));
	/* No memory of ours: an error, and no sleep. */
	words[0].at = NULL;
	assert_false(doze_wait(words, 1, NEVER_NS));
	doze_rouse(NULL);
	pair_release(&p);
}

static void test_full_and_empty(void **state)
{
	struct pair p;
	size_t len;
	unsigned sent = 0;

	pair_init(&p, OS_RING_BYTES_MIN);
	assert_null(ring_peek(&p.rx, &len));
	for (;;) {
		uint8_t *frame = ring_reserve(&p.tx, 62);

		if (!frame)
			break;
		fill(frame, 62, sent++);
		ring_publish(&p.tx, 62);
	}
	/* An ACK takes one line, and one line always stays free. */
	assert_int_equal(sent, OS_RING_BYTES_MIN / 64 - 1);
	for (unsigned n = 0; n < sent; n++) {
		const uint8_t *frame = ring_peek(&p.rx, &len);

		assert_non_null(frame);
		assert_int_equal(len, 62);
		assert_true(holds(frame, len, n));
		ring_release(&p.rx);
	}
	assert_null(ring_peek(&p.rx, &len));
	ring_rx_publish(&p.rx);
	/* The largest frame fits an empty ring from any position in it. */
	for (unsigned n = 0; n < 4 * OS_RING_BYTES_MIN / 64; n++) {
		uint8_t *frame = ring_reserve(&p.tx, OS_FRAME_MAX);

		assert_non_null(frame);
		fill(frame, 100, n);
		ring_publish(&p.tx, 100);
		frame = (uint8_t *)(uintptr_t)ring_peek(&p.rx, &len);
		assert_non_null(frame);
		assert_true(holds(frame, len, n));
		ring_release(&p.rx);
		ring_rx_publish(&p.rx);
	}
	pair_release(&p);
}

/* What lies ahead is a hint: the frame, or nothing; never outside the ring. */
static void test_peek_ahead(void **state)
{
	enum {
		LEN = 74,
		SMALL = OS_RING_BYTES_MIN
	};
	struct pair p;
	uint8_t *frame;
	size_t len;

	pair_init(&p, SMALL);
	for (uint32_t n = 0; n < 3; n++) {
		frame = ring_reserve(&p.tx, LEN);
		fill(frame, LEN, n);
		ring_publish(&p.tx, LEN);
	}
	frame = ring_reserve(&p.tx, 20);
	ring_publish(&p.tx, 20); /* of another length */
	assert_non_null(ring_peek(&p.rx, &len));
	for (uint32_t n = 1; n < 3; n++)
		assert_true(holds(ring_peek_ahead(&p.rx, len, n), len, n));
	assert_null(ring_peek_ahead(&p.rx, len, 3));
	assert_null(ring_peek_ahead(&p.rx, len, 4)); /* nothing yet */

	/* A header in the last unit whose frame would go beyond the end. */
	p.rx.pos = SMALL - 2 * RING_UNIT;
	p.rx.record_bytes = RING_UNIT;
	atomic_store(ring_header(p.data, SMALL - RING_UNIT),
		     (uint16_t)(RING_READY | LEN));
	assert_null(ring_peek_ahead(&p.rx, LEN, 1));
	pair_release(&p);
}

static void test_hostile_header(void **state)
{
	static const struct {
		uint16_t header;
		bool at_start; /* else in the last unit of the ring */
	} bad[] = {
		{RING_READY, true},		      /* no length */
		{1, true},			      /* not ready, not zero */
		{RING_WRAP, true},		      /* marker, not ready */
		{RING_READY | RING_WRAP, true},	      /* marker at the start */
		{RING_READY | RING_WRAP | 64, false}, /* marker with length */
		{RING_READY | 63, false},	      /* beyond the end */
		{RING_READY | (OS_FRAME_MAX + 1), true},
		{0xffff, true},
		{0x7fff, true},
	};

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		struct pair p;
		size_t len;

		pair_init(&p, OS_RING_BYTES_MIN);
		if (!bad[i].at_start)
			p.rx.pos = OS_RING_BYTES_MIN - RING_UNIT;
		atomic_store(ring_header(p.data, p.rx.pos & (p.size_bytes - 1)),
			     bad[i].header);
		assert_null(ring_peek(&p.rx, &len));
		assert_true(p.rx.broken);
		/* Once broken, it stays so. */
		atomic_store(ring_header(p.data, p.rx.pos & (p.size_bytes - 1)),
			     RING_READY | 10);
		assert_null(ring_peek(&p.rx, &len));
		pair_release(&p);
	}
}

/* A producer that writes random bytes everywhere never moves the consumer out
 * of the ring and never makes it loop. */
static void test_hostile_bytes(void **state)
{
	uint32_t seed = 99;

	for (unsigned round = 0; round < 200; round++) {
		struct pair p;
		size_t len;
		unsigned n = 0;

		pair_init(&p, OS_RING_BYTES_MIN);
		for (uint32_t i = 0; i < p.size_bytes; i++)
			p.data[i] = (uint8_t)xorshift(&seed);
		for (uint32_t i = 0; i < p.size_bytes; i += RING_UNIT)
			if (xorshift(&seed) % 8)
				atomic_store(ring_header(p.data, i),
					     (uint16_t)(RING_READY |
							xorshift(&seed) % 900));
		while (n < 100000) {
			const uint8_t *frame = ring_peek(&p.rx, &len);

			if (!frame)
				break;
			assert_true(frame > p.data);
			assert_true(frame + len <= p.data + p.size_bytes);
			ring_release(&p.rx);
			n++;
		}
		assert_true(n == 100000 || p.rx.broken || !ring_ready(&p.rx));
		pair_release(&p);
	}
}

static void test_hostile_read_pos(void **state)
{
	static const uint64_t bad[] = {64, 1, UINT64_MAX, 1ull << 40};

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		struct pair p;

		pair_init(&p, OS_RING_BYTES_MIN);
		atomic_store(&p.ctl->read_pos, bad[i]);
		assert_false(ring_tx_refresh(&p.tx));
		assert_true(p.tx.broken);
		pair_release(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stress_small),
		cmocka_unit_test(test_stress_large),
		cmocka_unit_test(test_stress_dozing),
		cmocka_unit_test(test_doze_ends),
		cmocka_unit_test(test_full_and_empty),
		cmocka_unit_test(test_peek_ahead),
		cmocka_unit_test(test_hostile_header),
		cmocka_unit_test(test_hostile_bytes),
		cmocka_unit_test(test_hostile_read_pos),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
