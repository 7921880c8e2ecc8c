/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of elastic memory: the workload is what is said of it, the rack
 * gives back what it lent, jobs end and use no more than there is, slots that
 * move are all there afterwards, and chains take longer the longer they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "figures/efig.h"
#include "figures/efig_ekv.h"

#define MIB (1ull << 20)

static struct efig_rack *rack_of(unsigned nodes, uint64_t bytes)
{
	struct efig_rack_config c = {
		.nodes = nodes, .tenants = 1, .node_bytes = bytes, .seed = 1};
	struct efig_rack *r;

	assert_int_equal(efig_rack_open(&c, &r), 0);
	return r;
}

static void folder(struct efig_rack *r, uint64_t lease_ms)
{
	assert_int_equal(
		efig_rack_ask(r, 0, CTL_POST, "/v1/ns/f",
			      json_pack("{s:s, s:I, s:s}", "kind", "folder",
					"lease_ms", (json_int_t)lease_ms,
					"on_expiry", "drop"),
			      NULL),
		201);
}

static void the_workload_has_jobs_of_all_sizes(void **state)
{
	struct efig_work w;
	double sum = 0;

	(void)state;
	assert_int_equal(efig_work_make(&w, 100, 1), 0);
	assert_int_equal(w.jobs, 500);
	for (unsigned i = 0; i < w.jobs; i++) {
		assert_true(w.job[i].tenant < w.tenants);
		assert_true(w.job[i].start_s < w.window_s);
		assert_true(!i || w.job[i].start_s >= w.job[i - 1].start_s);
		/* The last output leaves the rack. */
		assert_int_equal(w.job[i].stage[w.job[i].stages - 1].bytes, 0);
		assert_true(efig_job_s(&w.job[i]) > 0);
	}
	for (unsigned t = 0; t < w.tenants; t++)
		sum += w.tenant_peak[t];
	assert_true(w.mean > 0 && w.mean < w.peak && w.peak <= sum);
	efig_work_free(&w);
}

static void what_is_not_renewed_is_given_back(void **state)
{
	struct efig_rack *r = rack_of(2, 64 * MIB);
	struct efig_place p[8];
	unsigned count;

	(void)state;
	folder(r, 1000);
	assert_int_equal(
		efig_rack_ask(r, 0, CTL_POST, "/v1/ns/f/a",
			      json_pack("{s:s, s:I}", "kind", "file",
					"block_bytes", (json_int_t)(16 * MIB)),
			      NULL),
		201);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(efig_rack_grow(r, 0, "/f/a", (int)i - 1, &p[i],
						1, &count),
				 0);
	assert_int_equal(efig_rack_allocated(r), 128 * MIB);
	assert_non_null(efig_rack_block(r, &p[7]));
	/* All is taken. */
	assert_true(efig_rack_grow(r, 0, "/f/a", 7, p, 1, &count) < 0);
	/* Lease and grace. */
	efig_rack_run(r, 10000000000ull);
	assert_int_equal(efig_rack_allocated(r), 0);
	assert_null(efig_rack_block(r, &p[7]));
	efig_rack_close(r);
}

static void slots_that_move_are_all_there(void **state)
{
	struct efig_rack *r = rack_of(2, 64 * MIB);
	struct efig_ekv kv = {
		.rack = r, .path = "/f/kv", .high = 950, .low = 50};
	uint64_t used;
	unsigned at;
	bool waits;

	(void)state;
	folder(r, 3600000);
	assert_int_equal(efig_ekv_open(&kv, MIB), 0);
	for (unsigned i = 0; i < 1000; i++)
		assert_true(efig_ekv_put(&kv, i, 10000));
	used = efig_ekv_used(&kv);
	assert_true(used > 10000000 && used < 11000000);
	assert_true(kv.count > 10 && kv.moved.moves >= kv.count - 1);
	for (unsigned i = 0; i < 1000; i++)
		assert_true(efig_ekv_get(&kv, i, &at, &waits) && !waits);
	for (unsigned i = 0; i < 990; i++)
		assert_true(efig_ekv_delete(&kv, i));
	/* Blocks that were merged went back. */
	assert_true(kv.count < 10);
	efig_rack_run(r, 8000000000ull);
	assert_int_equal(efig_rack_allocated(r), kv.count * MIB);
	for (unsigned i = 990; i < 1000; i++)
		assert_true(efig_ekv_get(&kv, i, &at, &waits));
	assert_false(efig_ekv_get(&kv, 5, &at, &waits));
	efig_ekv_close(&kv);
	efig_rack_close(r);
}

static void jobs_end_and_use_what_there_is(void **state)
{
	double all[EFIG_RULES];

	(void)state;
	for (unsigned rule = 0; rule < EFIG_RULES; rule++)
		for (unsigned i = 0; i < 2; i++) {
			struct efig_jobs_config c = {.rule = rule,
						     .capacity = i ? 0.2 : 1.2,
						     .lease_ms = 10000,
						     .block_bytes = 64 * MIB,
						     .removes = true,
						     .parts = 500,
						     .seed = 1};
			struct efig_jobs_result res;

			assert_int_equal(efig_jobs_run(&c, &res), 0);
			assert_int_equal((int)res.jobs, 100);
			assert_true(res.use > 0 && res.use <= 1);
			assert_true(res.allocated >= res.use - 1e-9 &&
				    res.allocated <= 1 + 1e-9);
			assert_true(res.times >= 0.99);
			if (!i)
				all[rule] = res.times;
			else
				assert_true(res.times >= all[rule] - 1e-9);
			assert_true(!i || res.spilled > 0.1);
		}
}

static void longer_chains_take_longer(void **state)
{
	double before = 0;

	(void)state;
	for (unsigned n = 1; n <= 5; n++) {
		struct efig_chain_result res;

		assert_int_equal(efig_chain_run(n, EFIG_LINK_100G, &res), 0);
		assert_true(res.write_us > before + 1);
		assert_true(res.read_us > 1);
		before = res.write_us;
	}
}

static void the_last_subscriber_waits_for_all(void **state)
{
	struct efig_tell_result one, many;

	(void)state;
	assert_int_equal(efig_tell_run(1, EFIG_LINK_10G, &one), 0);
	assert_int_equal(efig_tell_run(512, EFIG_LINK_10G, &many), 0);
	assert_true(one.last_us == one.mean_us);
	assert_true(many.last_us > many.mean_us && many.mean_us > one.mean_us);
}

static void structures_follow_the_workload(void **state)
{
	(void)state;
	for (unsigned k = 0; k < EFIG_STRUCTURES; k++) {
		struct efig_life_config c = {.structure = k,
					     .block_bytes = 16 * MIB,
					     .lease_ms = 1000,
					     .high = 950,
					     .seconds = 3,
					     .seed = 1};
		struct efig_life_result res;

		assert_int_equal(efig_life_run(&c, &res), 0);
		assert_true(res.used_mb > 1);
		assert_true(res.allocated_mb >= res.used_mb);
		assert_true(res.surplus > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_workload_has_jobs_of_all_sizes),
		cmocka_unit_test(what_is_not_renewed_is_given_back),
		cmocka_unit_test(slots_that_move_are_all_there),
		cmocka_unit_test(jobs_end_and_use_what_there_is),
		cmocka_unit_test(longer_chains_take_longer),
		cmocka_unit_test(the_last_subscriber_waits_for_all),
		cmocka_unit_test(structures_follow_the_workload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
