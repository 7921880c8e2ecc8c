/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for blocks that come: made ahead of demand, within its limits, and
 * never in the way of those who want room. */
#define LOOP_GRANTS
#include "verbs_pair.h"

#include <string.h>
#include <unistd.h>

#include "memnode/stock.h"

enum {
	BLOCK = 256 << 10,
	POOL = 128 * BLOCK,
	TRIES = 5000,
};

struct rig {
	struct pair pair;
	struct env env;
	_Atomic uint64_t clock_ns;
	struct mem_node *node;
	struct mem_stock *stock;
};

static uint64_t rig_now(struct env *env)
{
	struct rig *r = container_of(env, struct rig, env);

	return atomic_load_explicit(&r->clock_ns, memory_order_relaxed);
}

static const struct env_ops rig_ops = {.now_ns = rig_now};

static void start(struct rig *r, uint64_t limit_bytes)
{
	memset(r, 0, sizeof(*r));
	r->env.ops = &rig_ops;
	atomic_init(&r->clock_ns, 1000000000);
	r->node = calloc(1, sizeof(*r->node));
	assert_non_null(r->node);
	pthread_mutex_init(&r->node->lock, NULL);
	r->node->pool_bytes = POOL;
	r->node->env = &r->env;
	r->node->context = pair_open(&r->pair);
	assert_int_equal(mem_stock_create(r->node, limit_bytes, &r->stock), 0);
}

static void stop(struct rig *r)
{
	mem_stock_destroy(r->stock);
	pair_close(&r->pair);
	pthread_mutex_destroy(&r->node->lock);
	free(r->node);
}

/* What a node does with it, and gives back. */
static bool take(struct rig *r, uint64_t size_bytes)
{
	bool is_ready, is_used = false;
	struct memory m;

	pthread_mutex_lock(&r->node->lock);
	is_ready = mem_stock_take(r->stock, size_bytes, &m, &is_used);
	pthread_mutex_unlock(&r->node->lock);
	if (is_ready) {
		assert_true(m.size_bytes == size_bytes);
		assert_false(is_used);
		for (uint64_t i = 0; i < size_bytes; i++)
			assert_int_equal(((uint8_t *)m.addr)[i], 0);
		memset(m.addr, 7, size_bytes);
		memory_free(r->node, &m);
	}
	return is_ready;
}

static uint64_t bytes(struct rig *r)
{
	uint64_t n;

	pthread_mutex_lock(&r->node->lock);
	n = mem_stock_bytes(r->stock);
	pthread_mutex_unlock(&r->node->lock);
	return n;
}

/* A millisecond later. */
static void tick(struct rig *r)
{
	atomic_fetch_add_explicit(&r->clock_ns, 1000000, memory_order_relaxed);
}

static void until(struct rig *r, uint64_t want)
{
	for (unsigned i = 0; i < TRIES && bytes(r) != want; i++) {
		(void)usleep(1000);
		tick(r);
	}
	assert_true(bytes(r) == want);
}

static void use(struct rig *r, uint64_t used_bytes)
{
	pthread_mutex_lock(&r->node->lock);
	r->node->used_bytes = used_bytes;
	mem_stock_yield(r->stock, 0);
	pthread_mutex_unlock(&r->node->lock);
}

static void as_much_as_was_taken_is_ready(void **state)
{
	struct rig r;

	(void)state;
	start(&r, POOL);
	assert_true(bytes(&r) == 0);
	assert_false(take(&r, BLOCK));
	until(&r, BLOCK);
	/* Zeros, also of memory that was written to. */
	assert_true(take(&r, BLOCK));
	until(&r, 2 * BLOCK);
	assert_true(take(&r, BLOCK));
	until(&r, 3 * BLOCK);
	/* Another size has its own. */
	assert_false(take(&r, 2 * BLOCK));
	until(&r, 5 * BLOCK);
	assert_true(take(&r, 2 * BLOCK));
	stop(&r);
}

static void there_is_a_limit(void **state)
{
	struct rig r;

	(void)state;
	start(&r, 2 * STOCK_FRESH_PART * BLOCK);
	for (unsigned i = 0; i < 6; i++)
		(void)take(&r, BLOCK);
	until(&r, 2 * BLOCK);
	stop(&r);
	/* A part of the pool, whatever is asked for. */
	start(&r, POOL);
	for (unsigned i = 0; i < POOL / BLOCK; i++)
		(void)take(&r, BLOCK);
	until(&r, POOL / STOCK_POOL_PART / STOCK_FRESH_PART);
	stop(&r);
	start(&r, 0);
	for (unsigned i = 0; i < 6; i++)
		assert_false(take(&r, BLOCK));
	assert_true(bytes(&r) == 0);
	stop(&r);
}

static void whoever_wants_room_has_it(void **state)
{
	struct rig r;

	(void)state;
	start(&r, POOL);
	for (unsigned i = 0; i < 4; i++)
		(void)take(&r, BLOCK);
	until(&r, 4 * BLOCK);
	use(&r, POOL - 3 * BLOCK);
	assert_true(bytes(&r) == 3 * BLOCK);
	use(&r, POOL);
	assert_true(bytes(&r) == 0);
	/* And nothing is made where a part of the pool is not free. */
	use(&r, POOL - POOL / STOCK_POOL_PART);
	assert_false(take(&r, BLOCK));
	(void)usleep(20000);
	assert_true(bytes(&r) == 0);
	use(&r, 0);
	assert_false(take(&r, BLOCK));
	until(&r, 6 * BLOCK);
	stop(&r);
}

/* A block that ends: true, its memory is the stock's. */
static bool give(struct rig *r, bool was_handed, void **at)
{
	struct memory m;
	bool is_taken;

	assert_int_equal(memory_prepare(r->node, BLOCK, &m), 0);
	*at = m.addr;
	memset(m.addr, 7, BLOCK);
	if (was_handed)
		loop_grant_hand(m.addr);
	pthread_mutex_lock(&r->node->lock);
	is_taken = mem_stock_give(r->stock, &m);
	pthread_mutex_unlock(&r->node->lock);
	if (!is_taken)
		memory_free(r->node, &m);
	return is_taken;
}

/* It is cleared, or says that it is not. */
static void *take_one(struct rig *r)
{
	bool is_there = false, is_used = false;
	struct memory m = {0};
	void *at;

	/* While it is cleared it is not there. */
	for (unsigned i = 0; i < TRIES && !is_there; i++) {
		pthread_mutex_lock(&r->node->lock);
		is_there = mem_stock_take(r->stock, BLOCK, &m, &is_used);
		pthread_mutex_unlock(&r->node->lock);
		if (!is_there)
			(void)usleep(1000);
	}
	assert_true(is_there);
	for (unsigned i = 0; i < BLOCK; i++)
		assert_int_equal(((uint8_t *)m.addr)[i], is_used ? 7 : 0);
	at = m.addr;
	memory_free(r->node, &m);
	return at;
}

static void what_nobody_has_mapped_is_used_again(void **state)
{
	struct rig r;
	void *at, *got;

	(void)state;
	start(&r, 2 * BLOCK);
	/* Nobody has asked for any. */
	assert_false(give(&r, false, &at));
	assert_false(take(&r, BLOCK));
	until(&r, BLOCK);
	assert_false(give(&r, true, &at));
	assert_true(give(&r, false, &at));
	until(&r, 2 * BLOCK);
	assert_false(give(&r, false, &got)); /* that is enough */
	/* No more is made: the two are all there is. */
	use(&r, POOL - POOL / STOCK_POOL_PART - BLOCK);
	got = take_one(&r);
	assert_true(got == at || take_one(&r) == at);
	stop(&r);
}

static void it_goes_back_when_nobody_wants_any(void **state)
{
	struct rig r;

	(void)state;
	start(&r, POOL);
	for (unsigned i = 0; i < 3; i++)
		(void)take(&r, BLOCK);
	until(&r, 3 * BLOCK);
	atomic_fetch_add_explicit(&r.clock_ns,
				  (STOCK_IDLE_S + 1) * 1000000000ull,
				  memory_order_relaxed);
	until(&r, 0);
	stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_much_as_was_taken_is_ready),
		cmocka_unit_test(there_is_a_limit),
		cmocka_unit_test(whoever_wants_room_has_it),
		cmocka_unit_test(what_nobody_has_mapped_is_used_again),
		cmocka_unit_test(it_goes_back_when_nobody_wants_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
