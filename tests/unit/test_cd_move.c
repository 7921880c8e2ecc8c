/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that move, as the controller hears of them: the one node says what it
 * has given or kept, the other what waits for that. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cd_bed.h"
#include "controld/cd_limits.h"

#define MOVE  "00000000000000a1"
#define OTHER "00000000000000a2"
#define SEALED                                                \
	"\"sealed\":[{\"move\":\"" MOVE "\",\"from\":\"m0\"," \
	"\"run\":\"" FIRST "\"}]"

/* A beat of the node in that run, with more in it. */
static void say(struct bed *b, const char *name, const char *run,
		uint64_t epoch, const char *more)
{
	char line[80], body[400];

	snprintf(line, sizeof(line), "POST /v1/nodes/%s/beat", name);
	snprintf(body, sizeof(body),
		 "{\"incarnation\":\"%s\",\"epoch\":%llu,%s}", run,
		 (unsigned long long)epoch, more);
	assert_int_equal(ask(b, TOKEN_NODE, line, body), 200);
}

/* What the answer to the last beat orders for the move. */
static const char *order(struct bed *b)
{
	static const char *const orders[] = {"take", "drop"};
	const char *found = "nothing";

	for (unsigned i = 0; i < ARRAY_LEN(orders); i++) {
		json_t *ids = json_object_get(b->answer, orders[i]);

		if (!ids)
			continue;
		assert_string_equal(found, "nothing");
		assert_int_equal(json_array_size(ids), 1);
		assert_string_equal(json_string_value(json_array_get(ids, 0)),
				    MOVE);
		found = orders[i];
	}
	return found;
}

static void what_was_given_is_taken_and_what_was_kept_ends(void **state)
{
	uint64_t m0, m1;
	struct bed b;

	bed_make(&b);
	m0 = join(&b, "m0", FIRST);
	m1 = join(&b, "m1", FIRST);
	say(&b, "m0", FIRST, m0, "\"given\":[\"" OTHER "\"],\"moving\":1");
	say(&b, "m1", FIRST, m1, SEALED);
	assert_string_equal(order(&b), "nothing");
	say(&b, "m0", FIRST, m0, "\"kept\":[\"" MOVE "\"]");
	say(&b, "m1", FIRST, m1, SEALED);
	assert_string_equal(order(&b), "drop");
	say(&b, "m0", FIRST, m0, "\"given\":[\"" MOVE "\"]");
	say(&b, "m1", FIRST, m1, SEALED);
	assert_string_equal(order(&b), "take");
	bed_end(&b);
}

/* By the node that has it: whoever moved it may have died since. */
static void what_was_taken_is_over_for_who_gave(void **state)
{
	uint64_t m0, m1;
	struct bed b;
	json_t *ends;

	bed_make(&b);
	m0 = join(&b, "m0", FIRST);
	m1 = join(&b, "m1", FIRST);
	say(&b, "m0", FIRST, m0, "\"given\":[\"" OTHER "\",\"" MOVE "\"]");
	assert_null(json_object_get(b.answer, "end"));
	say(&b, "m1", FIRST, m1, SEALED);
	assert_string_equal(order(&b), "take");
	say(&b, "m0", FIRST, m0, "\"given\":[\"" OTHER "\",\"" MOVE "\"]");
	assert_null(json_object_get(b.answer, "end"));
	say(&b, "m1", FIRST, m1, "\"taken\":[\"" MOVE "\"]");
	assert_null(json_object_get(b.answer, "end"));
	say(&b, "m0", FIRST, m0, "\"given\":[\"" OTHER "\",\"" MOVE "\"]");
	ends = json_object_get(b.answer, "end");
	assert_int_equal(json_array_size(ends), 1);
	assert_string_equal(json_string_value(json_array_get(ends, 0)), MOVE);
	bed_end(&b);
}

/* A join of a run before may come late; a beat cannot. The copy of a run that
 * has ended without a word may be older than the region was. */
static void the_copy_of_a_run_that_ended_without_a_word_ends(void **state)
{
	uint64_t m0, m1;
	struct bed b;

	bed_make(&b);
	(void)join(&b, "m0", FIRST);
	m1 = join(&b, "m1", FIRST);
	m0 = join(&b, "m0", SECOND);
	say(&b, "m1", FIRST, m1, SEALED);
	assert_string_equal(order(&b), "nothing");
	say(&b, "m0", SECOND, m0, "\"moving\":0");
	say(&b, "m1", FIRST, m1, SEALED);
	assert_string_equal(order(&b), "drop");
	bed_end(&b);
}

/* By whoever leads, and whatever has become of the node since. */
static void what_was_given_is_remembered(void **state)
{
	uint64_t m0, m1;
	struct bed b;

	bed_make(&b);
	m0 = join(&b, "m0", FIRST);
	m1 = join(&b, "m1", FIRST);
	say(&b, "m0", FIRST, m0, "\"given\":[\"" MOVE "\"]");
	say(&b, "m0", FIRST, m0, "\"moving\":0");
	m0 = join(&b, "m0", SECOND);
	say(&b, "m0", SECOND, m0, "\"moving\":0");
	say(&b, "m1", FIRST, m1, SEALED);
	assert_string_equal(order(&b), "take");
	bed_lead(&b, "c1");
	say(&b, "m1", FIRST, m1, SEALED);
	assert_string_equal(order(&b), "take");
	say(&b, "m0", SECOND, m0, "\"moving\":0");
	say(&b, "m1", FIRST, m1, SEALED);
	assert_string_equal(order(&b), "take");
	bed_end(&b);
}

/* A beat whose rows were not committed was not answered either: no promise was
 * made, and the next leader goes by what it knows. */
static void what_was_not_committed_was_not_given(void **state)
{
	uint64_t m0, m1;
	struct bed b;
	char body[200];

	bed_make(&b);
	m0 = join(&b, "m0", FIRST);
	m1 = join(&b, "m1", FIRST);
	snprintf(body, sizeof(body),
		 "{\"incarnation\":\"" FIRST
		 "\",\"epoch\":%llu,\"given\":[\"" MOVE "\"]}",
		 (unsigned long long)m0);
	b.commit_err = -EIO;
	assert_int_equal(ask(&b, TOKEN_NODE, "POST /v1/nodes/m0/beat", body),
			 503);
	bed_lead(&b, "c1");
	m0 = join(&b, "m0", SECOND);
	say(&b, "m0", SECOND, m0, "\"moving\":0");
	say(&b, "m1", FIRST, m1, SEALED);
	assert_string_equal(order(&b), "drop");
	bed_end(&b);
}

/* One row: kind, key, value. */
static int note_given(void *user, const char *kind, const char *key,
		      const char *value)
{
	json_t *keys = user;

	(void)value;
	if (strcmp(kind, "given") == 0)
		(void)json_array_append_new(keys, json_string(key));
	return 0;
}

/* How many moves of nodes are rows; *found: whether that one is. */
static size_t rows_of(struct bed *b, const char *wanted, bool *found)
{
	json_t *keys = json_array(), *key;
	size_t i, count;

	assert_int_equal(ledger_read(b->ledger, note_given, keys), 0);
	*found = false;
	json_array_foreach(keys, i, key) *found |=
		strcmp(json_string_value(key), wanted) == 0;
	count = json_array_size(keys);
	json_decref(keys);
	return count;
}

/* The oldest go, but none that its node still speaks of. */
static void so_many_are_remembered_and_a_forgotten_node_has_none(void **state)
{
	char more[80];
	struct bed b;
	uint64_t m0;
	bool found;

	bed_make(&b);
	m0 = join(&b, "m0", FIRST);
	for (int i = 1; i <= CD_WAS_GIVEN_MAX + 3; i++) {
		snprintf(more, sizeof(more), "\"given\":[\"%016x\",\"%016x\"]",
			 1, i);
		say(&b, "m0", FIRST, m0, more);
		if (i == CD_WAS_GIVEN_MAX)
			bed_lead(&b, "c1");
	}
	assert_int_equal(rows_of(&b, "m0/0000000000000001", &found),
			 CD_WAS_GIVEN_MAX);
	assert_true(found);
	(void)rows_of(&b, "m0/0000000000000004", &found);
	assert_false(found);
	(void)rows_of(&b, "m0/0000000000000005", &found);
	assert_true(found);
	pass(&b, 11000);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "DELETE /v1/nodes/m0", NULL),
			 204);
	assert_int_equal(rows_of(&b, "", &found), 0);
	bed_end(&b);
}

/* The node repeats what it was told last. */
static void say_drained(struct bed *b, const char *run, uint64_t epoch)
{
	char more[80];

	snprintf(more, sizeof(more), "\"drained\":%s,\"drain_order\":%llu",
		 json_is_true(json_object_get(b->answer, "drain")) ? "true"
								   : "false",
		 (unsigned long long)number(b, "drain_order"));
	say(b, "m0", run, epoch, more);
}

static bool is_last(struct bed *b)
{
	assert_int_equal(ask(b, TOKEN_ADMIN, "GET /v1/nodes/m0", NULL), 200);
	return json_is_true(json_object_get(b->answer, "left_last"));
}

static void drain(struct bed *b, const char *body)
{
	assert_int_equal(ask(b, TOKEN_ADMIN, "POST /v1/nodes/m0/drain", body),
			 200);
}

/* It may have made something before it heard. */
static void each_run_hears_of_the_drain(void **state)
{
	struct bed b;
	uint64_t m0;

	bed_make(&b);
	m0 = join(&b, "m0", FIRST);
	drain(&b, NULL);
	say(&b, "m0", FIRST, m0, "\"drained\":false");
	assert_false(is_last(&b));
	say(&b, "m0", FIRST, m0, "\"drained\":false");
	say_drained(&b, FIRST, m0);
	assert_true(is_last(&b));
	m0 = join(&b, "m0", SECOND);
	assert_false(is_last(&b));
	say(&b, "m0", SECOND, m0, "\"drained\":false");
	say_drained(&b, SECOND, m0);
	assert_true(is_last(&b));
	bed_end(&b);
}

/* What it says of the one before, or to another leader, does not count. */
static void each_drain_is_heard_of(void **state)
{
	struct bed b;
	uint64_t m0;

	bed_make(&b);
	m0 = join(&b, "m0", FIRST);
	drain(&b, NULL);
	say(&b, "m0", FIRST, m0, "\"drained\":false");
	say_drained(&b, FIRST, m0);
	drain(&b, "{\"drain\":false}");
	drain(&b, NULL);
	assert_false(is_last(&b));
	say(&b, "m0", FIRST, m0, "\"drained\":true,\"drain_order\":1");
	assert_false(is_last(&b));
	say(&b, "m0", FIRST, m0, "\"drained\":true");
	say_drained(&b, FIRST, m0);
	assert_true(is_last(&b));
	bed_lead(&b, "c1");
	assert_false(is_last(&b));
	say(&b, "m0", FIRST, m0, "\"drained\":true");
	assert_false(is_last(&b));
	say(&b, "m0", FIRST, m0, "\"drained\":true");
	say_drained(&b, FIRST, m0);
	assert_true(is_last(&b));
	bed_end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			what_was_given_is_taken_and_what_was_kept_ends),
		cmocka_unit_test(what_was_taken_is_over_for_who_gave),
		cmocka_unit_test(
			the_copy_of_a_run_that_ended_without_a_word_ends),
		cmocka_unit_test(what_was_given_is_remembered),
		cmocka_unit_test(what_was_not_committed_was_not_given),
		cmocka_unit_test(
			so_many_are_remembered_and_a_forgotten_node_has_none),
		cmocka_unit_test(each_run_hears_of_the_drain),
		cmocka_unit_test(each_drain_is_heard_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
