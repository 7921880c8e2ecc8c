/* SPDX-License-Identifier: Apache-2.0 */
/* A node's half of allowances: a limit grows by grants only, and what is given
 * back in words is given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "uplink/up_share.h"

#define M (1ull << 20)

static bool hear(struct up_share *s, const char *text, uint64_t used)
{
	json_t *row = json_loads(text, 0, NULL);
	bool changed = up_share_hear(s, row, used);

	json_decref(row);
	return changed;
}

static uint64_t said(struct up_share *s, const char *member, uint64_t used)
{
	json_t *row = up_share_say(s, "a", used);
	uint64_t n = (uint64_t)json_integer_value(json_object_get(row, member));

	json_decref(row);
	return n;
}

static void a_limit_grows_by_grants_only(void **state)
{
	struct up_share s = {0};

	assert_true(up_share_may(&s, 0, 1ull << 60));
	up_share_rule(&s, true, 3 * M);
	assert_false(up_share_may(&s, 3 * M, 1));
	assert_true(hear(&s, "{\"bytes\":8388608,\"version\":2}", 3 * M));
	assert_true(up_share_may(&s, 3 * M, 5 * M));
	assert_false(up_share_may(&s, 3 * M, 5 * M + 1));
	assert_false(up_share_may(&s, 3 * M, UINT64_MAX));
	/* Older and equal ones change nothing, whatever they say. */
	assert_false(hear(&s, "{\"bytes\":99999999,\"version\":2}", 3 * M));
	assert_false(hear(&s, "{\"bytes\":1,\"version\":1}", 3 * M));
	assert_int_equal(s.limit_bytes, 8 * M);
	/* What is used is used. */
	assert_true(hear(&s, "{\"bytes\":0,\"version\":3}", 3 * M));
	assert_int_equal(s.limit_bytes, 3 * M);
	/* Nonsense is left out. */
	assert_false(hear(&s, "{\"bytes\":-1,\"version\":9}", 0));
	assert_false(hear(&s, "{\"bytes\":1,\"version\":\"9\"}", 0));
	assert_false(hear(&s, "{\"version\":9}", 0));
	assert_false(hear(&s, "[]", 0));
	assert_int_equal(s.version, 3);
}

static void what_is_not_needed_goes_back(void **state)
{
	struct up_share s = {
		.has_quota = true, .limit_bytes = 500 * M, .version = 1};

	assert_int_equal(said(&s, "limit", 100 * M), 100 * M + UP_SLACK_BYTES);
	assert_int_equal(s.limit_bytes, 100 * M + UP_SLACK_BYTES);
	assert_false(hear(&s, "{\"bytes\":500,\"version\":1,\"squeeze\":true}",
			  100 * M));
	s.wish_bytes = 120 * M;
	assert_int_equal(said(&s, "limit", 100 * M), 120 * M);
	/* What is there already is not asked for again. */
	assert_int_equal(said(&s, "wish", 100 * M), 0);
	s.wish_bytes = 121 * M;
	assert_int_equal(said(&s, "wish", 100 * M), 121 * M);
	s.wish_bytes = 0;
	assert_int_equal(said(&s, "limit", 100 * M), 100 * M);
	assert_true(hear(&s, "{\"bytes\":1,\"version\":1,\"refused\":true}",
			 100 * M));
	assert_int_equal(s.refusals, 1);
	up_share_join(&s, 90 * M);
	assert_int_equal(s.limit_bytes, 90 * M);
	assert_int_equal(s.version, 0);
	/* Without a quota there is no limit to speak of. */
	up_share_rule(&s, false, 90 * M);
	assert_int_equal(said(&s, "limit", 90 * M), 0);
	assert_true(up_share_may(&s, 90 * M, 1ull << 50));
}

static int take(struct up_state *u, const char *text, uint64_t sent_ns)
{
	json_t *answer = json_loads(text, 0, NULL);
	int err = up_state_hear(u, answer, sent_ns);

	json_decref(answer);
	return err;
}

static void an_older_term_is_not_heard(void **state)
{
	struct up_state u = {0};

	assert_false(up_state_is_fresh(&u, 1));
	assert_int_equal(take(&u, "{\"term\":5,\"epoch\":7}", 1000), 0);
	assert_int_equal(take(&u, "{\"term\":4,\"epoch\":9}", 2000), -ESTALE);
	assert_int_equal(u.epoch, 7);
	assert_int_equal(take(&u, "{\"epoch\":9}", 2000), -EPROTO);
	assert_int_equal(take(&u, "{\"term\":6}", 2000), -EPROTO);
	assert_int_equal(take(&u,
			      "{\"term\":6,\"epoch\":8,"
			      "\"tenants_name\":\"6.1\"}",
			      3000),
			 0);
	assert_string_equal(u.tenants, "6.1");
	assert_true(up_state_is_fresh(&u, 3000 + 7999000000ull));
	assert_false(up_state_is_fresh(&u, 3000 + 8001000000ull));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_grows_by_grants_only),
		cmocka_unit_test(what_is_not_needed_goes_back),
		cmocka_unit_test(an_older_term_is_not_heard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
