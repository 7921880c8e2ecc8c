/* SPDX-License-Identifier: Apache-2.0 */
/* Routes, bodies, names, versions and replies, without any socket. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the four above. */
#include <cmocka.h>

#include "base/error.h"
#include "control/ctl_http.h"

static const struct ctl_route routes[] = {
	{CTL_GET, "/a", NULL, 0},   {CTL_POST, "/a", NULL, 0},
	{CTL_GET, "/a/:", NULL, 0}, {CTL_DELETE, "/a/:/b/:", NULL, 0},
	{CTL_GET, "/t/*", NULL, 0}, {CTL_GET, "/t/:/c/*", NULL, 0},
};

static int find(enum ctl_method m, const char *path, struct ctl_call *call)
{
	return ctl_route_find(routes, ARRAY_LEN(routes), m, path, call);
}

static void test_routes(void **state)
{
	static const struct {
		enum ctl_method method;
		const char *path;
		int want; /* a row, or -errno */
	} rows[] = {
		{CTL_GET, "/a", 0},
		{CTL_POST, "/a", 1},
		{CTL_GET, "/a/x", 2},
		{CTL_DELETE, "/a/x/b/y", 3},
		{CTL_DELETE, "/a", -EOPNOTSUPP},
		{CTL_OTHER, "/a/x", -EOPNOTSUPP},
		{CTL_GET, "", -ENOENT},
		{CTL_GET, "/", -ENOENT},
		{CTL_GET, "/a/", -ENOENT},
		{CTL_GET, "/a/x/", -ENOENT},
		{CTL_GET, "/ab", -ENOENT},
		{CTL_DELETE, "/a//b/y", -ENOENT},
		{CTL_DELETE, "/a/x/b/", -ENOENT},
		{CTL_GET, "/t", -ENOENT},
		{CTL_GET, "/t/", 4},
		{CTL_GET, "/t/x/y/z", 4},
		{CTL_GET, "/t//", 4},
		{CTL_POST, "/t/x", -EOPNOTSUPP},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ctl_call call = {0};
		int rc = find(rows[i].method, rows[i].path, &call);

		if (rc == 0)
			rc = (int)(call.route - routes);
		if (rc != rows[i].want)
			fail_msg("%s: %d", rows[i].path, rc);
	}
}

static void test_segments(void **state)
{
	struct ctl_call call = {0};
	char path[CTL_PATH_MAX + 8] = "/a/";

	assert_int_equal(find(CTL_DELETE, "/a/one/b/two", &call), 0);
	assert_string_equal(call.segment[0], "one");
	assert_string_equal(call.segment[1], "two");
	memset(path + 3, 'x', CTL_SEGMENT_MAX - 1);
	assert_int_equal(find(CTL_GET, path, &call), 0);
	assert_int_equal(strlen(call.segment[0]), CTL_SEGMENT_MAX - 1);
	path[3 + CTL_SEGMENT_MAX - 1] = 'x';
	assert_int_equal(find(CTL_GET, path, &call), -E2BIG);
	memset(path + 3, 'x', CTL_PATH_MAX);
	assert_int_equal(find(CTL_GET, path, &call), -E2BIG);
}

static void the_rest_of_a_path_is_as_it_was_sent(void **state)
{
	struct ctl_call call = {0};

	assert_int_equal(find(CTL_GET, "/t/job/t3/../%2f/", &call), 0);
	assert_string_equal(call.rest, "job/t3/../%2f/");
	assert_int_equal(find(CTL_GET, "/t/", &call), 0);
	assert_string_equal(call.rest, "");
	assert_int_equal(find(CTL_GET, "/a/x", &call), 0);
	assert_null(call.rest);
	assert_int_equal(
		ctl_route_find(routes + 5, 1, CTL_GET, "/t/x/c/y/z", &call), 0);
	assert_string_equal(call.segment[0], "x");
	assert_string_equal(call.rest, "y/z");
}

static void run_large(void *ctx, struct ctl_call *call)
{
	ctl_reply_none(call->reply);
}

static void run_small(void *ctx, struct ctl_call *call)
{
	ctl_reply_error(call->reply, -EINVAL, "small");
}

static void bodies_have_a_limit_per_route(void **state)
{
	static const struct ctl_route table[] = {
		{CTL_POST, "/large", run_large, 0},
		{CTL_POST, "/small/:", run_small, 0},
		{CTL_POST, "/other/*", NULL, 0},
	};
	static const struct ctl_body_max max[] = {{run_small, 10},
						  {run_large, 1 << 20}};
	const struct ctl_routes all = {table, 3, max, 2};
	char path[2 * CTL_PATH_MAX] = "/small/";

	assert_int_equal(ctl_routes_body_max(&all, CTL_POST, "/large"),
			 1 << 20);
	assert_int_equal(ctl_routes_body_max(&all, CTL_POST, "/small/x"), 10);
	assert_int_equal(ctl_routes_body_max(&all, CTL_GET, "/small/x"),
			 CTL_BODY_MAX);
	assert_int_equal(ctl_routes_body_max(&all, CTL_POST, "/other/a/b"),
			 CTL_BODY_MAX);
	assert_int_equal(ctl_routes_body_max(&all, CTL_POST, "/none"),
			 CTL_BODY_MAX);
	memset(path + 7, 'x', sizeof(path) - 8);
	assert_int_equal(ctl_routes_body_max(&all, CTL_POST, path),
			 CTL_BODY_MAX);
}

static void test_bodies(void **state)
{
	static const struct {
		const char *text;
		int want;
	} rows[] = {
		{"", 0},
		{"{}", 0},
		{"{\"a\": 1}", 0},
		{"{\"a\": \"[[[[[[[[[[[[[[\\\"[[[[[\"}", 0},
		{"[]", -EINVAL},
		{"1", -EINVAL},
		{"{", -EINVAL},
		{"{}x", -EINVAL},
		{"{\"a\": 1, \"a\": 2}", -EINVAL},
		{"{\"a\": \"\xff\"}", -EINVAL},
		{"{\"a\":[[[[[[[0]]]]]]]}", 0},
		{"{\"a\":[[[[[[[[0]]]]]]]]}", -EINVAL},
	};
	json_t *tree;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int rc = ctl_body_parse(rows[i].text, strlen(rows[i].text),
					&tree);

		if (rc != rows[i].want)
			fail_msg("%s: %d", rows[i].text, rc);
		if (rc == 0)
			json_decref(tree);
	}
	assert_int_equal(ctl_body_parse(NULL, CTL_BODY_MAX + 1, &tree), -E2BIG);
}

static void test_fields(void **state)
{
	json_t *body = json_pack("{s:i, s:s, s:i, s:f}", "n", 7, "s", "text",
				 "negative", -1, "real", 1.5);
	const char *s = "before";
	uint64_t n = 99;

	assert_int_equal(ctl_field_u64(body, "n", true, 0, 7, &n), 0);
	assert_int_equal(n, 7);
	assert_int_equal(ctl_field_u64(body, "none", false, 0, 7, &n), 0);
	assert_int_equal(n, 7);
	assert_int_equal(ctl_field_u64(body, "none", true, 0, 7, &n), -EINVAL);
	assert_non_null(strstr(error_last(), "none"));
	assert_int_equal(ctl_field_u64(body, "n", true, 0, 6, &n), -EINVAL);
	assert_int_equal(ctl_field_u64(body, "n", true, 8, 9, &n), -EINVAL);
	assert_int_equal(ctl_field_u64(body, "s", false, 0, 9, &n), -EINVAL);
	assert_int_equal(ctl_field_u64(body, "real", false, 0, 9, &n), -EINVAL);
	assert_int_equal(ctl_field_u64(body, "negative", false, 0, 9, &n),
			 -EINVAL);
	assert_int_equal(ctl_field_string(body, "s", true, &s), 0);
	assert_string_equal(s, "text");
	assert_int_equal(ctl_field_string(body, "n", false, &s), -EINVAL);
	assert_int_equal(ctl_field_string(body, "none", true, &s), -EINVAL);
	json_object_set_new(body, "nul", json_stringn("a\0b", 3));
	assert_int_equal(ctl_field_string(body, "nul", true, &s), -EINVAL);
	json_decref(body);
}

static void test_names(void **state)
{
	static const char *const good[] = {"a", "A.b_c-9", "_x", "0"};
	static const char *const bad[] = {"",	  "-a",	 ".a",
					  "a/b",  "a b", "a\n",
					  "\xc3", "a%b", "abcdefghi"};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(ctl_name_is_valid(good[i], 8));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(ctl_name_is_valid(bad[i], 8));
}

static void test_versions(void **state)
{
	static const struct {
		const char *text;
		int want;
	} rows[] = {
		{"1.0", 0},
		{"1.7", 0},
		{"1.123", 0},
		{"2.0", -EPROTONOSUPPORT},
		{"0.9", -EPROTONOSUPPORT},
		{"1", -EINVAL},
		{"", -EINVAL},
		{"1.", -EINVAL},
		{".1", -EINVAL},
		{"-1.0", -EINVAL},
		{"1.0x", -EINVAL},
		{" 1.0", -EINVAL},
		{"99999999999999999999.0", -EPROTONOSUPPORT},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (ctl_proto_check(rows[i].text) != rows[i].want)
			fail_msg("%s", rows[i].text);
	assert_int_equal(ctl_proto_check("7.1"), -EPROTONOSUPPORT);
	assert_non_null(strstr(error_last(), "7.1"));
	assert_non_null(strstr(error_last(), CTL_PROTO));
}

static void test_replies(void **state)
{
	struct ctl_reply r = {0};
	json_t *root, *tree;

	ctl_reply_error(&r, -ENOSPC, "no %d \"bytes\"", 5);
	assert_int_equal(r.status, 507);
	root = json_loadb(r.body, r.body_bytes, 0, NULL);
	tree = json_object_get(root, "error");
	assert_string_equal(json_string_value(json_object_get(tree, "code")),
			    "-ENOSPC");
	assert_string_equal(json_string_value(json_object_get(tree, "message")),
			    "no 5 \"bytes\"");
	assert_true(json_is_string(json_object_get(tree, "advice")));
	json_decref(root);
	ctl_reply_error(&r, -EINVAL, "\xff");
	assert_int_equal(r.status, 400);
	assert_null(r.body);
	ctl_reply_json(&r, 201, NULL);
	assert_int_equal(r.status, 507);
	ctl_reply_none(&r);
	assert_int_equal(r.status, 204);
	assert_null(r.body);
	ctl_reply_release(&r);
}

static void test_statuses(void **state)
{
	static const struct {
		int code;
		unsigned status;
	} rows[] = {
		{-EINVAL, 400}, {-EACCES, 403},		 {-ENOENT, 404},
		{-EEXIST, 409}, {-EBUSY, 409},		 {-ESTALE, 410},
		{-E2BIG, 413},	{-EPROTONOSUPPORT, 426}, {-EAGAIN, 429},
		{-ENOSPC, 507}, {-EDQUOT, 507},		 {-EIO, 500},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(ctl_status_of(rows[i].code), rows[i].status);
	assert_int_equal(ctl_method_parse("PATCH"), CTL_PATCH);
	assert_int_equal(ctl_method_parse("patch"), CTL_OTHER);
	assert_string_equal(ctl_method_name(CTL_DELETE), "DELETE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_routes),
		cmocka_unit_test(the_rest_of_a_path_is_as_it_was_sent),
		cmocka_unit_test(bodies_have_a_limit_per_route),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_statuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
