/* SPDX-License-Identifier: Apache-2.0 */
/* What replicas that answer say about their table, and names of regions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kv/kv_table_priv.h"

/* "PHASE[ROLE] of name/shard/copy, with keys" of a table of 2 shards. */
static struct kv_seen seen(uint32_t name, uint32_t shard, uint32_t copy,
			   enum kv_role role, enum kv_phase phase,
			   uint32_t next, uint64_t keys)
{
	return (struct kv_seen){
		.id = {name, shard, copy},
		.is_read = true,
		.g = {.rows = 10,
		      .entries = 8,
		      .shard_count = 2,
		      .copy_count = role == KV_ROLE_ONLY && copy == 0 ? 1 : 2,
		      .name = name,
		      .generation = name},
		.state = kv_state_word(role, phase, next),
		.keys = keys};
}

static struct kv_seen paired(uint32_t shard, uint32_t copy, uint64_t keys)
{
	return seen(0, shard, copy, copy ? KV_ROLE_SECOND : KV_ROLE_FIRST,
		    KV_PHASE_STABLE, 0, keys);
}

static struct aq_kv_listed judge(const struct kv_seen *s, size_t count)
{
	struct aq_kv_listed out = {0};

	kv_survey_judge(s, count, &out);
	return out;
}

static void all_copies_make_a_whole_table(void **state)
{
	struct kv_seen s[] = {paired(0, 0, 5), paired(0, 1, 4), paired(1, 0, 6),
			      paired(1, 1, 6)};
	struct aq_kv_listed t = judge(s, 4);

	assert_int_equal(t.condition, AQ_KV_WHOLE);
	assert_true(t.has_keys);
	assert_int_equal(t.keys, 11); /* each shard's first copy */
	assert_int_equal(t.capacity, 160);
	assert_int_equal(t.shards, 2);
	assert_int_equal(t.copies, 2);
	assert_false(t.is_resizing);
}

static void a_missing_copy_loses_no_keys(void **state)
{
	struct kv_seen s[] = {paired(0, 1, 5), paired(1, 0, 6),
			      paired(1, 1, 6)};
	struct aq_kv_listed t = judge(s, 3);

	assert_int_equal(t.condition, AQ_KV_COPY_LOST);
	assert_int_equal(t.shards_single, 1);
	assert_int_equal(t.keys, 11);
	/* The other one is there again, but was left behind. */
	s[0].state = kv_state_word(KV_ROLE_ONLY, KV_PHASE_STABLE, 0);
	t = judge(s, 3);
	assert_int_equal(t.condition, AQ_KV_COPY_LOST);
}

static void a_copy_that_was_left_behind_does_not_count(void **state)
{
	struct kv_seen s[] = {paired(0, 0, 3), paired(0, 1, 9), paired(1, 0, 6),
			      paired(1, 1, 6)};
	struct aq_kv_listed t;

	s[1].state = kv_state_word(KV_ROLE_ONLY, KV_PHASE_STABLE, 0);
	t = judge(s, 4);
	assert_int_equal(t.condition, AQ_KV_COPY_LOST);
	assert_int_equal(t.keys, 15);
}

static void a_missing_shard_is_lost_and_nobody_counts(void **state)
{
	struct kv_seen s[3] = {paired(0, 0, 5), paired(0, 1, 5)};
	struct aq_kv_listed t = judge(s, 2);

	assert_int_equal(t.condition, AQ_KV_PART_LOST);
	assert_int_equal(t.shards_lost, 1);
	assert_false(t.has_keys);
	/* Its region is there, but somebody has deleted the locks. */
	s[2] = (struct kv_seen){.id = {0, 1, 0}, .is_damaged = true};
	assert_int_equal(judge(s, 3).condition, AQ_KV_DAMAGED);
	assert_int_equal(judge(&s[2], 1).condition, AQ_KV_DAMAGED);
	assert_int_equal(judge(s, 0).condition, AQ_KV_DAMAGED);
}

static void the_generation_that_serves_counts(void **state)
{
	enum kv_role only = KV_ROLE_ONLY;
	struct kv_seen s[] = {
		seen(1, 0, 0, only, KV_PHASE_STABLE, 0, 5),
		seen(1, 1, 0, only, KV_PHASE_STABLE, 0, 5),
		/* begun and left */
		seen(2, 0, 0, only, KV_PHASE_YOUNG, 0, 0),
		seen(3, 0, 0, only, KV_PHASE_YOUNG, 0, 4),
		seen(3, 1, 0, only, KV_PHASE_YOUNG, 0, 9),
	};
	struct aq_kv_listed t = judge(s, 5);

	assert_int_equal(t.generation, 1);
	assert_int_equal(t.keys, 10);
	assert_false(t.is_resizing);
	s[0].state = kv_state_word(only, KV_PHASE_FROZEN, 3);
	t = judge(s, 5);
	assert_true(t.is_resizing);
	assert_int_equal(t.keys, 13); /* in the next one are more */
	assert_int_equal(t.condition, AQ_KV_WHOLE);
	s[0].state = s[1].state = kv_state_word(only, KV_PHASE_DONE, 3);
	t = judge(s, 5);
	assert_int_equal(t.generation, 3);
	assert_int_equal(t.keys, 13);
	/* Without it nothing is left. */
	assert_int_equal(judge(s, 3).condition, AQ_KV_DAMAGED);
}

static void names_of_regions_are_taken_apart_exactly(void **state)
{
	static const char *const bad[] = {
		"kv-0000000-",	"kv-000000-users",  "ka-0000000-users",
		"kv-00000g0-x", "kv-00AB000-users", "kv- 000000-users",
		"users",	"kv-0000000users",  "",
		"kv",
	};
	char name[AQ_KV_NAME_MAX + 1], again[KIT_REGION_BYTES];
	struct kv_region r;

	assert_int_equal(kv_region_parse("kl-00ab021-a-b", &r), 0);
	assert_string_equal(r.table, "a-b");
	assert_true(r.is_locks);
	assert_int_equal(r.id.name, 0xab);
	assert_int_equal(r.id.shard, 2);
	assert_int_equal(r.id.copy, 1);
	kv_region_name(r.table, &r.id, true, again);
	assert_string_equal(again, "kl-00ab021-a-b");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (aq_kv_owns_region(bad[i], name))
			fail_msg("'%s' is a part of %s", bad[i], name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_copies_make_a_whole_table),
		cmocka_unit_test(a_missing_copy_loses_no_keys),
		cmocka_unit_test(a_copy_that_was_left_behind_does_not_count),
		cmocka_unit_test(a_missing_shard_is_lost_and_nobody_counts),
		cmocka_unit_test(the_generation_that_serves_counts),
		cmocka_unit_test(names_of_regions_are_taken_apart_exactly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
