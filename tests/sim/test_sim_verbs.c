/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "verbs" over some seeds: no violation, every kind of fault
 * happens in every run, the same seed gives the same hash. And its checks are
 * checked: each planted bug must be found. SEEDS in the environment sets the
 * number of seeds.
 */
#include "../unit/play_test.h"
#include "plays/verbs_play.h"

enum {
	SEEDS_DEFAULT = 40,
	BUG_SEEDS = 60,
	SWITCH_SEEDS = 6,
};

static struct play_sum sum;
static const struct verbs_play_counts *n = (const void *)sum.count;

static void hold(const struct verbs_play_options *opt, uint64_t seeds)
{
	const struct verbs_play_counts *hit = (const void *)sum.hit;

	play_test_hold(&verbs_play, &opt->common, seeds, &sum);
	/* Each kind of fault in each run. */
	assert_true(hit->lost == seeds && hit->duplicated == seeds);
	assert_true(hit->reordered == seeds && hit->corrupted == seeds);
}

static void test_seeds(void **state)
{
	struct verbs_play_options opt = {0};

	hold(&opt, play_test_seeds(SEEDS_DEFAULT));
	/* What must have happened somewhere for the run to mean something. */
	assert_true(n->path_full && n->rnr);
	assert_true(n->resets && n->flushes);
	assert_true(n->duplicate_atomics && n->duplicate_reads);
	assert_true(n->walks && n->walk_waits && n->duplicate_walks);
	assert_true(n->timeouts && n->retries);
	assert_true(n->bad_ops && n->cuts);
	/* Sessions end with a request that is refused, if nobody crashed. */
	assert_true(n->refused > sum.batch.runs);
	assert_true(n->datagrams_received && n->sends_inv);
	assert_true(n->masked && n->crashes);
}

/* Over a network of machines: marks, a full switch, and no violation. */
static void test_udp_seeds(void **state)
{
	struct verbs_play_options opt = {.udp = true};

	hold(&opt, play_test_seeds(SEEDS_DEFAULT) / 2);
	assert_true(n->marked && n->switch_full);
	assert_true(n->timeouts && n->retries);
}

/* Connections with keys: what loss, doubling, reordering and damage leave of
 * them is the same. */
static void test_auth_seeds(void **state)
{
	struct verbs_play_options opt = {.auth = true};

	hold(&opt, play_test_seeds(SEEDS_DEFAULT) / 2);
	assert_true(n->duplicate_atomics && n->duplicate_reads);
	assert_true(n->walks && n->duplicate_walks);
	assert_true(n->resets && n->crashes);
}

/* A switch forwards packets with a MAC like all others, also with programs that
 * leave them alone. One that changes them and makes their ICRC right does harm
 * without a MAC, and none with. (Datagrams, of which SENDs may be, have none.)
 */
static void test_switch_that_forges(void **state)
{
	struct verbs_play_options opt = {
		.auth = true,
		.is_switched = true,
		.tor = {.programs = {"steer", "fault:forge=1%,only=write+read+"
					      "atomic+response+ack+atomic_ack"},
			.program_count = 2},
	};
	struct sim_batch b = {.from = 1, .to = SWITCH_SEEDS, .jobs = 1};

	play_test_hold(&switch_play, &opt.common, SWITCH_SEEDS, &sum);
	assert_true(n->forwarded > 0);
	opt.auth = false;
	assert_int_equal(play_seeds(&switch_play, &opt.common, &b, &sum), 0);
	assert_int_equal(sum.batch.violated, SWITCH_SEEDS);
}

static void test_same_seed_same_hash(void **state)
{
	struct sim_batch b = {.from = 2, .to = 2, .jobs = 1};
	struct verbs_play_options opt = {.common.seed = 2};
	static struct play_result two;

	play_test_repeats(&verbs_play, &opt.common, 1);
	/* In another process as well. */
	assert_int_equal(play_seed(&verbs_play, &opt.common, &two), 0);
	assert_int_equal(play_seeds(&verbs_play, &opt.common, &b, &sum), 0);
	assert_true(sum.hash == two.hash * 5);
}

/* By what the responder says that it did: without its record, a requester that
 * runs out of retries behind a refusal cannot be told from a lost answer. */
static void test_nak_that_overtakes_answers(void **state)
{
	struct verbs_play_options opt = {0};

	play_test_finds(&verbs_play, &opt.common, PLANT_nak_first, BUG_SEEDS,
			&sum);
	assert_non_null(
		strstr(sum.batch.first, "the peer answered and refused"));
}

static void test_planted_bugs(void **state)
{
	struct verbs_play_options opt = {0};

	play_test_finds_all(&verbs_play, &opt.common, BUG_SEEDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_udp_seeds),
		cmocka_unit_test(test_auth_seeds),
		cmocka_unit_test(test_switch_that_forges),
		cmocka_unit_test(test_same_seed_same_hash),
		cmocka_unit_test(test_nak_that_overtakes_answers),
		cmocka_unit_test(test_planted_bugs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
