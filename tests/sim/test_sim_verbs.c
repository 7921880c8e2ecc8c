/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenario "verbs" over some seeds: no violation, every kind of fault
 * happens in every run, the same seed gives the same hash. And its checks are
 * checked: each planted bug must be found. SEEDS in the environment sets the
 * number of seeds.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plays/verbs_cmd.h"

enum {
	SEEDS_DEFAULT = 40,
	BUG_SEEDS = 60,
	JOBS = 2,
};

static uint64_t seeds(void)
{
	const char *s = getenv("SEEDS");
	uint64_t n = s ? strtoull(s, NULL, 10) : 0;

	return n ? n : SEEDS_DEFAULT;
}

static void test_seeds(void **state)
{
	struct sim_verbs_batch b = {.from = 1, .to = seeds(), .jobs = JOBS};
	static struct sim_verbs_sum sum;

	assert_int_equal(sim_verbs_run_batch(&b, &sum), 0);
	if (sum.violated)
		print_error("seed %" PRIu64 ": %s\n", sum.first_seed,
			    sum.first);
	assert_int_equal(sum.violated, 0);
	assert_int_equal(sum.runs, b.to);
	assert_int_equal(sum.missing_kind, 0);
	/* What must have happened somewhere for the run to mean something. */
	assert_true(sum.counts.path_full && sum.counts.rnr);
	assert_true(sum.counts.resets && sum.counts.flushes);
	assert_true(sum.counts.duplicate_atomics && sum.counts.duplicate_reads);
	assert_true(sum.counts.timeouts && sum.counts.retries);
	assert_true(sum.counts.bad_ops && sum.counts.cuts);
	/* Sessions end with a request that is refused, if nobody crashed. */
	assert_true(sum.counts.refused > sum.runs);
	assert_true(sum.counts.datagrams_received && sum.counts.sends_inv);
	assert_true(sum.counts.masked && sum.counts.crashes);
}

/* Over a network of machines: marks, a full switch, and no violation. */
static void test_udp_seeds(void **state)
{
	struct sim_verbs_batch b = {
		.from = 1, .to = seeds() / 2, .jobs = JOBS, .udp = true};
	static struct sim_verbs_sum sum;

	assert_int_equal(sim_verbs_run_batch(&b, &sum), 0);
	if (sum.violated)
		print_error("seed %" PRIu64 ": %s\n", sum.first_seed,
			    sum.first);
	assert_int_equal(sum.violated, 0);
	assert_int_equal(sum.missing_kind, 0);
	assert_true(sum.counts.marked && sum.counts.switch_full);
	assert_true(sum.counts.timeouts && sum.counts.retries);
}

/* Connections with keys: what loss, doubling, reordering and damage leave of
 * them is the same. */
static void test_auth_seeds(void **state)
{
	struct sim_verbs_batch b = {
		.from = 1, .to = seeds() / 2, .jobs = JOBS, .auth = true};
	static struct sim_verbs_sum sum;

	assert_int_equal(sim_verbs_run_batch(&b, &sum), 0);
	if (sum.violated)
		print_error("seed %" PRIu64 ": %s\n", sum.first_seed,
			    sum.first);
	assert_int_equal(sum.violated, 0);
	assert_int_equal(sum.missing_kind, 0);
	assert_true(sum.counts.duplicate_atomics && sum.counts.duplicate_reads);
	assert_true(sum.counts.resets && sum.counts.crashes);
}

static uint64_t hash_of(uint64_t seed)
{
	struct sim_verbs_options opt = {.seed = seed};
	static struct sim_verbs_result res;

	assert_int_equal(sim_verbs_run(&opt, &res), 0);
	assert_int_equal(res.violations, 0);
	return res.hash;
}

static void test_same_seed_same_hash(void **state)
{
	uint64_t one = hash_of(1), two = hash_of(2);
	struct sim_verbs_batch b = {.from = 2, .to = 2, .jobs = 1};
	static struct sim_verbs_sum sum;

	assert_int_not_equal(one, two);
	assert_int_equal(one, hash_of(1));
	assert_int_equal(two, hash_of(2));
	/* In another process as well. */
	assert_int_equal(sim_verbs_run_batch(&b, &sum), 0);
	assert_int_equal(sum.hash, two * 5);
}

/* By what the responder says that it did: without its record, a requester that
 * runs out of retries behind a refusal cannot be told from a lost answer. */
static void test_nak_that_overtakes_answers(void **state)
{
	struct sim_verbs_batch b = {.from = 1,
				    .to = BUG_SEEDS,
				    .jobs = JOBS,
				    .stop_at_first = true};
	static struct sim_verbs_sum sum;

	b.bug = PLANT_nak_first;
	assert_int_equal(sim_verbs_run_batch(&b, &sum), 0);
	assert_true(sum.violated > 0);
	assert_non_null(strstr(sum.first, "the peer answered and refused"));
}

static void test_planted_bugs(void **state)
{
	static struct sim_verbs_sum sum;
	unsigned missed = 0;

	for (const enum plant *bug = sim_verbs_bugs; *bug; bug++) {
		struct sim_verbs_batch b = {.from = 1,
					    .to = BUG_SEEDS,
					    .jobs = JOBS,
					    .bug = *bug,
					    .stop_at_first = true};

		assert_int_equal(sim_verbs_run_batch(&b, &sum), 0);
		if (!sum.violated) {
			print_error("%s was not found\n", plant_name(*bug));
			missed++;
		} else {
			print_message("%s: seed %" PRIu64 ": %s\n",
				      plant_name(*bug), sum.first_seed,
				      sum.first);
		}
	}
	assert_int_equal(missed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_udp_seeds),
		cmocka_unit_test(test_auth_seeds),
		cmocka_unit_test(test_same_seed_same_hash),
		cmocka_unit_test(test_nak_that_overtakes_answers),
		cmocka_unit_test(test_planted_bugs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
