/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linearizability checker: tables of good and bad histories, random ones
 * made from a correct object, the same with a planted mistake, and limits. A
 * slow checker that tries every order agrees on small ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/rng.h"
#include "sim/lin.h"

/* ---- tables ------------------------------------------------------------- */

/*
 * A history in few letters. Each word is one event:
 *   1w5  process 1 invokes write 5      1.   it returns: done
 *   1r   invokes read                   1=5  returns 5 (- is nil)
 *   1c56 invokes cas 5 -> 6             1+   returns yes   1!  returns no
 *   1d   delete, 1i5 insert, 1u5 update, 1a5 fetch-and-add
 *   1x   failed: did not happen         1?   nobody knows
 */
struct table_row {
	const char *events;
	enum lin_verdict verdict;
};

static const struct table_row table[] = {
	{"", LIN_LINEARIZABLE},
	{"1r 1=-", LIN_LINEARIZABLE},
	{"1r 1=1", LIN_VIOLATED},
	{"1w1 1. 1r 1=1", LIN_LINEARIZABLE},
	{"1w1 1. 1r 1=-", LIN_VIOLATED},
	{"1w1 2r 2=- 1.", LIN_LINEARIZABLE},
	{"1w1 2r 2=1 1.", LIN_LINEARIZABLE},
	/* once seen, it stays */
	{"1w1 2r 2=1 3r 3=- 1.", LIN_VIOLATED},
	{"1w1 2r 3r 3=- 2=1 1.", LIN_LINEARIZABLE},
	{"1w1 2w2 1. 2. 3r 3=1 4r 4=2", LIN_VIOLATED},
	{"1w1 2w2 1. 2. 3r 3=1 4r 4=1", LIN_LINEARIZABLE},
	{"1w1 2w2 3r 3=1 4r 4=2 1. 2.", LIN_LINEARIZABLE},
	{"1w1 2w2 3r 3=1 4r 4=2 5r 5=1 1. 2.", LIN_VIOLATED},
	/* a failed write must not be seen, an unknown one may be, or not */
	{"1w1 1x 2r 2=1", LIN_VIOLATED},
	{"1w1 1x 2r 2=-", LIN_LINEARIZABLE},
	{"1w1 1? 2r 2=1", LIN_LINEARIZABLE},
	{"1w1 1? 2r 2=-", LIN_LINEARIZABLE},
	{"1w1 1? 2r 2=- 2r 2=1", LIN_LINEARIZABLE},
	{"1w1 1? 2r 2=1 2r 2=-", LIN_VIOLATED},
	{"1w1 1? 2w2 2. 2r 2=1 2r 2=2", LIN_VIOLATED},
	{"1w1 1? 2w2 2. 2r 2=2 2r 2=1", LIN_LINEARIZABLE},
	{"1w1 2w2 2. 2r 2=2 2r 2=1", LIN_LINEARIZABLE}, /* never returns */
	/* it was invoked too late to be what was read */
	{"2r 2=1 1w1 1?", LIN_VIOLATED},
	{"1w1 1? 2r 2=2", LIN_VIOLATED},
	{"1r 1? 2r 2=-", LIN_LINEARIZABLE},
	/* compare and swap */
	{"1w1 1. 1c12 1+ 1r 1=2", LIN_LINEARIZABLE},
	{"1w1 1. 1c12 1+ 1r 1=1", LIN_VIOLATED},
	{"1w1 1. 1c12 2c13 1+ 2+", LIN_VIOLATED},
	{"1w1 1. 1c12 2c13 1+ 2!", LIN_LINEARIZABLE},
	{"1w1 1. 1c12 2c23 1+ 2+ 3r 3=3", LIN_LINEARIZABLE},
	{"1w1 1. 1c12 1! 1r 1=1", LIN_VIOLATED},
	{"1w1 1. 1c21 1! 1r 1=1", LIN_LINEARIZABLE},
	{"1w1 1. 1c12 1? 2r 2=1 2r 2=2", LIN_LINEARIZABLE},
	{"1w1 1. 1c12 1? 2r 2=2 2r 2=1", LIN_VIOLATED},
	{"1w1 1. 1c12 1x 2r 2=2", LIN_VIOLATED},
	{"1w1 1? 2c21 2!", LIN_LINEARIZABLE},
	{"1w1 1? 2c12 2+ 3r 3=2", LIN_LINEARIZABLE},
	{"1w1 1? 2w3 2. 2c31 2!", LIN_LINEARIZABLE}, /* w1 explains it */
	/* keys that come and go */
	{"1i1 1+ 1i2 1! 1r 1=1", LIN_LINEARIZABLE},
	{"1i1 1+ 1i2 1+", LIN_VIOLATED},
	{"1i1 2i2 1+ 2!", LIN_LINEARIZABLE},
	{"1i1 2i2 1+ 2+", LIN_VIOLATED},
	{"1u1 1!", LIN_LINEARIZABLE},
	{"1u1 1+", LIN_VIOLATED},
	{"1w1 1. 1d 1+ 1r 1=-", LIN_LINEARIZABLE},
	{"1w1 1. 1d 1+ 1r 1=1", LIN_VIOLATED},
	{"1w1 1. 1d 2d 1+ 2+", LIN_VIOLATED},
	{"1w1 1. 1d 2d 1+ 2!", LIN_LINEARIZABLE},
	{"1w1 1. 1d 1? 2d 2! 3r 3=-", LIN_LINEARIZABLE},
	{"1w1 1. 1d 1? 2u2 2+ 2r 2=2 2r 2=-", LIN_LINEARIZABLE},
	{"1w1 1. 1d 1. 2d 2. 2r 2=-", LIN_LINEARIZABLE},
	/* adding */
	{"1a1 1=0 1a1 1=1 1r 1=2", LIN_LINEARIZABLE},
	{"1a1 2a1 1=0 2=0", LIN_VIOLATED},
	{"1a1 2a1 1=1 2=0", LIN_LINEARIZABLE},
	{"1a1 1=0 2a1 2=0", LIN_VIOLATED},
	{"1a1 1? 2a1 2=1", LIN_LINEARIZABLE},
	{"1a1 1? 2a1 2=2", LIN_VIOLATED},
	{"1a5 1. 2r 2=5", LIN_LINEARIZABLE},
};

static struct lin_value digit(char c)
{
	return c == '-' ? lin_nil() : lin_int((uint64_t)(c - '0'));
}

static int64_t invoke(struct lin_history *h, uint32_t process,
		      struct lin_value key, enum lin_call call,
		      struct lin_value a, struct lin_value b)
{
	int64_t op = lin_invoke(h, process, key, call, a, b, 0);

	assert_true(op >= 0);
	return op;
}

static void play(struct lin_history *h, const char *events)
{
	static const char letters[] = "rwcdiua"; /* as enum lin_call */
	int64_t open[10] = {0};

	for (const char *e = events; *e; e += strcspn(e, " "), e += *e == ' ') {
		unsigned p = (unsigned)(e[0] - '0');
		const char *call = strchr(letters, e[1]);

		if (call) {
			struct lin_value a = lin_nil(), b = lin_nil();

			if (e[2] && e[2] != ' ')
				a = digit(e[2]);
			if (e[1] == 'c')
				b = digit(e[3]);
			open[p] = invoke(h, p, lin_nil(),
					 (enum lin_call)(call - letters), a, b);
		} else if (e[1] == '=') {
			lin_return_got(h, open[p], digit(e[2]), 0);
		} else if (e[1] == '.') {
			lin_return_ok(h, open[p], 0);
		} else if (e[1] == '+' || e[1] == '!') {
			lin_return(h, open[p], LIN_OK,
				   e[1] == '+' ? LIN_YES : LIN_NO, lin_nil(),
				   0);
		} else {
			lin_return(h, open[p],
				   e[1] == 'x' ? LIN_FAIL : LIN_INFO,
				   LIN_SAID_NOTHING, lin_nil(), 0);
		}
	}
}

static enum lin_verdict verdict_of(const struct lin_history *h,
				   enum lin_model model)
{
	struct lin_result res;

	assert_int_equal(lin_check(h, model, NULL, &res), 0);
	assert_int_equal(res.verdict == LIN_LINEARIZABLE, !res.text[0]);
	return res.verdict;
}

static void test_table(void **state)
{
	struct lin_history *h;

	(void)state;
	assert_int_equal(lin_history_create(&h), 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		lin_history_clear(h);
		play(h, table[i].events);
		if (verdict_of(h, LIN_MODEL_KV) != table[i].verdict)
			fail_msg("%s: %s", table[i].events,
				 lin_verdict_name(verdict_of(h, LIN_MODEL_KV)));
	}
	lin_history_destroy(h);
}

/* ---- random histories --------------------------------------------------- */

/* A client of the random object. */
struct client {
	int64_t op; /* -1: idle */
	uint32_t key;
	enum lin_call call;
	struct lin_value a, b, got;
	enum lin_said said;
	bool done; /* took effect */
};

struct object {
	struct rng rng;
	struct lin_history *h;
	struct lin_value *value; /* by key */
	uint32_t keys;
	uint64_t unique;
	uint32_t info_ppm;
	bool all_calls;
	bool few_values; /* values repeat */
};

static void client_invoke(struct object *o, struct client *c, uint32_t process)
{
	static const enum lin_call calls[] = {
		LIN_READ, LIN_WRITE,  LIN_READ,	  LIN_WRITE,
		LIN_CAS,  LIN_DELETE, LIN_INSERT, LIN_UPDATE,
	};
	uint64_t n = o->few_values ? rng_below(&o->rng, 3) : o->unique++;

	c->call = calls[rng_below(&o->rng, o->all_calls ? 8 : 4)];
	c->key = (uint32_t)rng_below(&o->rng, o->keys);
	c->a = lin_int(n);
	c->b = lin_nil();
	if (c->call == LIN_CAS) {
		c->b = c->a;
		c->a = rng_below(&o->rng, 2) ? o->value[c->key] : lin_int(1);
	}
	c->done = false;
	c->op = invoke(o->h, process, lin_int(c->key), c->call, c->a, c->b);
}

/* The whole effect, at one point between call and return. */
static void client_effect(struct object *o, struct client *c)
{
	struct lin_value *v = &o->value[c->key];
	bool holds = true;

	c->got = *v;
	switch (c->call) {
	case LIN_READ:
		break;
	case LIN_CAS:
		holds = lin_value_equal(*v, c->a);
		if (holds)
			*v = c->b;
		break;
	case LIN_DELETE:
		holds = v->kind != LIN_NIL;
		*v = lin_nil();
		break;
	case LIN_INSERT:
	case LIN_UPDATE:
		holds = (v->kind == LIN_NIL) == (c->call == LIN_INSERT);
		if (holds)
			*v = c->a;
		break;
	case LIN_WRITE:
	case LIN_FAA:
	case LIN_CALLS:
		*v = c->a;
		break;
	}
	c->said = holds ? LIN_YES : LIN_NO;
	c->done = true;
}

static void client_return(struct object *o, struct client *c)
{
	if (rng_chance_ppm(&o->rng, o->info_ppm))
		lin_return(o->h, c->op, LIN_INFO, LIN_SAID_NOTHING, lin_nil(),
			   0);
	else
		lin_return(o->h, c->op, LIN_OK, c->said, c->got, 0);
	c->op = -1;
}

static void make_history(struct object *o, uint32_t clients, uint32_t ops)
{
	struct client *c = calloc(clients, sizeof(*c));
	uint32_t made = 0;

	assert_non_null(c);
	for (uint32_t i = 0; i < clients; i++)
		c[i].op = -1;
	for (uint32_t i = 0; i < o->keys; i++)
		o->value[i] = lin_nil();
	while (made < ops) {
		uint32_t i = (uint32_t)rng_below(&o->rng, clients);

		if (c[i].op < 0) {
			client_invoke(o, &c[i], i);
			made++;
		} else if (!c[i].done) {
			/* Some never take effect and never return. */
			if (rng_chance_ppm(&o->rng, o->info_ppm))
				c[i].op = -1;
			else
				client_effect(o, &c[i]);
		} else {
			client_return(o, &c[i]);
		}
	}
	free(c);
}

static void test_random_good(void **state)
{
	struct lin_value value[4];
	struct object o = {.value = value};

	(void)state;
	assert_int_equal(lin_history_create(&o.h), 0);
	for (uint64_t seed = 1; seed <= 600; seed++) {
		enum lin_verdict v;

		rng_init(&o.rng, seed);
		lin_history_clear(o.h);
		o.keys = 1 + seed % 4;
		o.all_calls = seed % 2;
		o.few_values = seed % 3 == 0;
		o.info_ppm = seed % 5 ? 0 : 20000;
		o.unique = 0;
		make_history(&o, (uint32_t)rng_between(&o.rng, 1, 8), 120);
		v = verdict_of(o.h,
			       o.all_calls ? LIN_MODEL_KV : LIN_MODEL_REGISTER);
		if (v != LIN_LINEARIZABLE)
			fail_msg("seed %u: %s", (unsigned)seed,
				 lin_verdict_name(v));
	}
	lin_history_destroy(o.h);
}

/* A stale read behind everything else: an old value, read after a later write
 * has returned and nothing is open any more. */
static void test_random_stale(void **state)
{
	struct lin_value value[2];
	struct object o = {.value = value, .keys = 2};
	unsigned planted = 0;

	(void)state;
	assert_int_equal(lin_history_create(&o.h), 0);
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct lin_result res;
		struct lin_value key = lin_int(seed % 2);
		int64_t op;

		rng_init(&o.rng, seed);
		lin_history_clear(o.h);
		o.unique = 0;
		o.all_calls = seed % 3 == 0;
		make_history(&o, (uint32_t)rng_between(&o.rng, 1, 6), 100);
		for (uint64_t n = 1000; n < 1003; n++) {
			op = invoke(o.h, 0, key, LIN_WRITE, lin_int(n),
				    lin_nil());
			lin_return_ok(o.h, op, 0);
		}
		op = invoke(o.h, 1, key, LIN_READ, lin_nil(), lin_nil());
		lin_return_got(o.h, op, lin_int(1001), 0);
		assert_int_equal(lin_check(o.h, LIN_MODEL_KV, NULL, &res), 0);
		assert_int_equal(res.verdict, LIN_VIOLATED);
		assert_int_equal(res.keys_violated, 1);
		assert_true(lin_value_equal(res.key, key));
		/* It names the read, not some later or earlier return. */
		assert_true(res.op == op);
		planted++;
	}
	assert_int_equal(planted, 300);
	lin_history_destroy(o.h);
}

/* ---- against every order ------------------------------------------------ */

enum {
	SMALL_OPS = 6,
};

/* One operation of a small history; times are distinct. */
struct small_op {
	enum lin_call call; /* read, write, cas that succeeded */
	uint64_t value;	    /* 0: none */
	uint64_t to_value;  /* of a cas */
	uint32_t from, to;
	bool open; /* nobody knows whether it happened */
};

static bool small_fits(const struct small_op *op, uint64_t now)
{
	return op->call == LIN_WRITE || op->value == now;
}

static uint64_t small_after(const struct small_op *op, uint64_t now)
{
	if (op->call == LIN_READ)
		return now;
	return op->call == LIN_CAS ? op->to_value : op->value;
}

/* Tries all orders that respect real time. */
static bool slow(const struct small_op *op, unsigned count, unsigned done,
		 uint64_t now)
{
	bool all = true;

	for (unsigned i = 0; i < count; i++)
		all = all && (op[i].open || (done >> i & 1));
	if (all)
		return true;
	for (unsigned i = 0; i < count; i++) {
		bool first = !(done >> i & 1);

		for (unsigned k = 0; first && k < count; k++)
			first = (done >> k & 1) || op[k].open ||
				op[k].to > op[i].from;
		if (first && small_fits(&op[i], now) &&
		    slow(op, count, done | 1u << i, small_after(&op[i], now)))
			return true;
	}
	return false;
}

static void small_make(struct rng *r, struct small_op *op, bool hard)
{
	uint32_t place[2 * SMALL_OPS];

	for (uint32_t i = 0; i < 2 * SMALL_OPS; i++)
		place[i] = i;
	for (uint32_t i = 2 * SMALL_OPS - 1; i > 0; i--) {
		uint32_t k = (uint32_t)rng_below(r, i + 1), t = place[i];

		place[i] = place[k];
		place[k] = t;
	}
	for (unsigned i = 0; i < SMALL_OPS; i++) {
		uint32_t a = place[2 * i], b = place[2 * i + 1];

		op[i] = (struct small_op){
			.call = (enum lin_call)rng_below(r, hard ? 3 : 2),
			.open = hard && rng_below(r, 5) == 0,
			.from = a < b ? a : b,
			.to = a < b ? b : a,
		};
		op[i].value = rng_between(r, op[i].call == LIN_READ ? 0 : 1, 4);
		op[i].to_value = rng_between(r, 1, 4);
	}
}

static struct lin_value small_value(uint64_t v)
{
	return v ? lin_int(v) : lin_nil();
}

static void small_record(struct lin_history *h, const struct small_op *op)
{
	int64_t number[SMALL_OPS];

	lin_history_clear(h);
	for (uint32_t at = 0; at < 2 * SMALL_OPS; at++) {
		for (uint32_t i = 0; i < SMALL_OPS; i++) {
			struct lin_value v = small_value(op[i].value);

			if (op[i].from == at)
				number[i] =
					invoke(h, i, lin_nil(), op[i].call, v,
					       small_value(op[i].to_value));
			if (op[i].to != at || op[i].open)
				continue;
			if (op[i].call == LIN_WRITE)
				lin_return_ok(h, number[i], 0);
			else
				lin_return_got(h, number[i], v, 0);
		}
	}
}

static void test_every_order(void **state)
{
	struct lin_history *h;
	struct rng r;
	unsigned good[2] = {0, 0};

	(void)state;
	rng_init(&r, 7);
	assert_int_equal(lin_history_create(&h), 0);
	for (unsigned i = 0; i < 20000; i++) {
		struct small_op op[SMALL_OPS];
		bool hard = i % 2, expected;

		small_make(&r, op, hard);
		small_record(h, op);
		expected = slow(op, SMALL_OPS, 0, 0);
		good[hard] += expected;
		if ((verdict_of(h, LIN_MODEL_CAS_REGISTER) ==
		     LIN_LINEARIZABLE) != expected)
			fail_msg("history %u: expected %d", i, expected);
	}
	/* Both kinds were among them. */
	assert_in_range(good[0], 300, 9700);
	assert_in_range(good[1], 300, 9700);
	lin_history_destroy(h);
}

/* ---- limits ------------------------------------------------------------- */

/* Many writes at once and then a read of none of them: every order must be
 * refused, and there are too many. */
static void hard_history(struct lin_history *h)
{
	int64_t op[40];

	for (uint32_t i = 0; i < 40; i++)
		op[i] = invoke(h, i, lin_nil(), LIN_CAS, lin_int(i % 5),
			       lin_int((i * 7 + 3) % 5));
	for (uint32_t i = 0; i < 40; i++)
		lin_return(h, op[i], LIN_OK, LIN_YES, lin_nil(), 0);
}

static void test_limits(void **state)
{
	struct lin_limits few = {.steps = 1000};
	struct lin_limits small = {.steps = 2000000, .cache_bytes = 4096};
	struct lin_history *h;
	struct lin_result res;
	int64_t op;

	(void)state;
	assert_int_equal(lin_history_create(&h), 0);
	lin_history_set_initial(h, lin_int(0));
	hard_history(h);
	assert_int_equal(lin_check(h, LIN_MODEL_KV, &few, &res), 0);
	assert_int_equal(res.verdict, LIN_UNKNOWN);
	assert_int_equal(res.keys_unknown, 1);
	assert_int_equal(res.steps, 1000);
	assert_non_null(strstr(res.text, "limit"));
	assert_int_equal(lin_check(h, LIN_MODEL_KV, &small, &res), 0);
	assert_int_not_equal(res.verdict, LIN_LINEARIZABLE);
	/* Another key's certain violation outweighs it. */
	op = invoke(h, 0, lin_int(9), LIN_READ, lin_nil(), lin_nil());
	lin_return_got(h, op, lin_int(77), 0);
	few.steps = 100000;
	assert_int_equal(lin_check(h, LIN_MODEL_KV, &few, &res), 0);
	assert_true(res.verdict == LIN_UNKNOWN || res.keys_violated);
	lin_history_destroy(h);
}

static void test_models(void **state)
{
	struct lin_history *h;
	struct lin_result res;
	enum lin_model model;

	(void)state;
	assert_int_equal(lin_history_create(&h), 0);
	play(h, "1c12 1!");
	assert_int_equal(lin_check(h, LIN_MODEL_REGISTER, NULL, &res), -22);
	assert_non_null(strstr(error_last(), "register"));
	assert_int_equal(verdict_of(h, LIN_MODEL_CAS_REGISTER),
			 LIN_LINEARIZABLE);
	lin_history_clear(h);
	play(h, "1a2 1=0");
	assert_int_equal(verdict_of(h, LIN_MODEL_COUNTER), LIN_LINEARIZABLE);
	lin_history_set_initial(h, lin_int(5));
	assert_int_equal(verdict_of(h, LIN_MODEL_COUNTER), LIN_VIOLATED);
	assert_int_equal(lin_model_find("kv", &model), 0);
	assert_int_equal(model, LIN_MODEL_KV);
	assert_int_equal(lin_model_find("queue", &model), -2);
	lin_history_destroy(h);
}

/* Sixteen clients on one key, many crashes: it must stay quick. */
static void test_large(void **state)
{
	struct lin_value value[100];
	struct object o = {.value = value, .keys = 1};

	(void)state;
	assert_int_equal(lin_history_create(&o.h), 0);
	rng_init(&o.rng, 1);
	make_history(&o, 16, 20000);
	assert_int_equal(verdict_of(o.h, LIN_MODEL_REGISTER), LIN_LINEARIZABLE);
	lin_history_clear(o.h);
	o.keys = 100;
	o.info_ppm = 10000;
	make_history(&o, 16, 50000);
	assert_int_equal(verdict_of(o.h, LIN_MODEL_REGISTER), LIN_LINEARIZABLE);
	lin_history_destroy(o.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_random_good),
		cmocka_unit_test(test_random_stale),
		cmocka_unit_test(test_every_order),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_models),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
