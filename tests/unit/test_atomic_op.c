/* SPDX-License-Identifier: Apache-2.0 */
/* Masked atomics against a model that works bit by bit. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/atomic_op.h"
#include "base/rng.h"

static const struct {
	struct atomic_op op;
	uint64_t old, new;
} table[] = {
	/* plain compare-and-swap */
	{{.compare = 5,
	  .swap_add = 9,
	  .swap_mask = ~0ull,
	  .compare_mask = ~0ull},
	 5,
	 9},
	{{.compare = 5,
	  .swap_add = 9,
	  .swap_mask = ~0ull,
	  .compare_mask = ~0ull},
	 6,
	 6},
	/* only some bits are compared, only some replaced */
	{{.compare = 0x05,
	  .compare_mask = 0x0f,
	  .swap_add = 0xff00,
	  .swap_mask = 0xf000},
	 0x1235,
	 0xf235},
	{{.compare = 0x05,
	  .compare_mask = 0x0f,
	  .swap_add = 0xff00,
	  .swap_mask = 0xf000},
	 0x1234,
	 0x1234},
	/* no bit compared: always */
	{{.swap_add = 7, .swap_mask = ~0ull}, 1234, 7},
	/* no bit replaced: never visible */
	{{.swap_add = 7, .compare_mask = ~0ull}, 0, 0},
	/* plain fetch-and-add, with wrap */
	{{.is_add = true, .swap_add = 3}, 4, 7},
	{{.is_add = true, .swap_add = 1}, ~0ull, 0},
	/* two fields of 32 bits: the low one wraps, the high one keeps */
	{{.is_add = true, .swap_add = 1, .boundary = 1ull << 31 | 1ull << 63},
	 0x00000007ffffffff,
	 0x0000000700000000},
	{{.is_add = true,
	  .swap_add = 0x0000000100000001,
	  .boundary = 1ull << 31},
	 0x00000007ffffffff,
	 0x0000000800000000},
	/* every bit a field of its own: exclusive or */
	{{.is_add = true, .swap_add = 0xff, .boundary = ~0ull}, 0x0f, 0xf0},
	/* four fields of 16 */
	{{.is_add = true,
	  .swap_add = 0x0001ffff00010002,
	  .boundary = 0x8000800080008000},
	 0xffff0001fffeffff,
	 0x00000000ffff0001},
};

static void test_table(void **state)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(table); i++) {
		uint64_t word = table[i].old;

		assert_true(atomic_op_result(&table[i].op, table[i].old) ==
			    table[i].new);
		assert_true(atomic_op_execute(&table[i].op, &word) ==
			    table[i].old);
		assert_true(word == table[i].new);
	}
}

/* A full adder per bit; the carry stops at the top bit of a field. */
static uint64_t model_add(uint64_t a, uint64_t b, uint64_t boundary)
{
	unsigned bit, carry = 0;
	uint64_t out = 0;

	for (bit = 0; bit < 64; bit++) {
		unsigned sum = (unsigned)(a >> bit & 1) +
			       (unsigned)(b >> bit & 1) + carry;

		out |= (uint64_t)(sum & 1) << bit;
		carry = boundary >> bit & 1 ? 0 : sum >> 1;
	}
	return out;
}

static uint64_t model_cas(const struct atomic_op *op, uint64_t old)
{
	uint64_t out = 0;
	unsigned bit;

	for (bit = 0; bit < 64; bit++)
		if ((op->compare_mask >> bit & 1) &&
		    (op->compare >> bit & 1) != (old >> bit & 1))
			return old;
	for (bit = 0; bit < 64; bit++) {
		uint64_t from = op->swap_mask >> bit & 1 ? op->swap_add : old;

		out |= from & 1ull << bit;
	}
	return out;
}

static uint64_t sparse(struct rng *r)
{
	uint64_t v = rng_u64(r);
	uint64_t n = rng_below(r, 5);

	while (n--)
		v &= rng_u64(r);
	return v;
}

static void test_model(void **state)
{
	struct rng r;
	unsigned i;

	rng_init(&r, 11);
	for (i = 0; i < 100000; i++) {
		uint64_t old = rng_u64(&r), want, word = old;
		struct atomic_op op = {
			.is_add = rng_chance_ppm(&r, 500000),
			.swap_add = rng_u64(&r),
			.swap_mask = sparse(&r),
			.compare_mask = sparse(&r),
			.boundary = sparse(&r),
		};

		/* Otherwise hardly any comparison would succeed. */
		op.compare = old ^ (sparse(&r) & sparse(&r));
		want = op.is_add ? model_add(old, op.swap_add, op.boundary)
				 : model_cas(&op, old);
		assert_true(atomic_op_result(&op, old) == want);
		assert_true(atomic_op_execute(&op, &word) == old);
		assert_true(word == want);
	}
}

enum {
	ROUNDS = 20000,
};

/* Each adds to both 32-bit fields; no addition is lost. */
static void *add_fields(void *arg)
{
	struct atomic_op op = {.is_add = true,
			       .swap_add = 1ull << 32 | 3,
			       .boundary = 1ull << 31};
	unsigned i;

	for (i = 0; i < ROUNDS; i++)
		(void)atomic_op_execute(&op, arg); /* the old value */
	return NULL;
}

static void test_threads(void **state)
{
	uint64_t word = 0;
	pthread_t t[2];
	unsigned i;

	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, add_fields, &word),
				 0);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert_true(word == ((2ull * ROUNDS) << 32 | 6ull * ROUNDS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
