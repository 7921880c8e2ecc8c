/* SPDX-License-Identifier: Apache-2.0 */
/* A folder as vault: objects as a whole or not at all, and names that lead
 * nowhere else. What S3 answers, and its credentials, as texts; vault_s3 has a
 * server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "vault_priv.h"

static struct vault_place place;

static int make(void **state)
{
	(void)state;
	(void)snprintf(place.path, sizeof(place.path),
		       "/tmp/aquifer-vault.XXXXXX");
	return mkdtemp(place.path) ? 0 : -1;
}

static int end(void **state)
{
	char path[VAULT_PLACE_MAX + 32];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/t", place.path);
	(void)rmdir(path);
	return rmdir(place.path);
}

static int put(const char *image, const char *object, const char *text)
{
	struct iovec parts[2] = {
		{(void *)(uintptr_t)text, strlen(text)},
		{(void *)(uintptr_t) "!", 1},
	};

	return vault_put(&place, image, object, parts, 2);
}

static void an_object_is_replaced_as_a_whole(void **state)
{
	size_t bytes = 0;
	void *data = NULL;

	(void)state;
	assert_int_equal(put("t/a@1.2", "0.blk", "first"), 0);
	assert_int_equal(put("t/a@1.2", "0.blk", "second"), 0);
	assert_int_equal(
		vault_get(&place, "t/a@1.2", "0.blk", 100, &data, &bytes), 0);
	assert_int_equal(bytes, 7);
	assert_memory_equal(data, "second!", 7);
	free(data);
	assert_int_equal(
		vault_get(&place, "t/a@1.2", "0.blk", 6, &data, &bytes),
		-EFBIG);
	assert_int_equal(
		vault_get(&place, "t/a@1.2", "1.blk", 100, &data, &bytes),
		-ENOENT);
	assert_int_equal(vault_remove(&place, "t/a@1.2", "0.blk"), 0);
	assert_int_equal(vault_remove(&place, "t/a@1.2", "0.blk"), 0);
	assert_int_equal(put("t/a@1.2", "1.blk", "more"), 0);
	assert_int_equal(vault_erase(&place, "t/a@1.2"), 0);
	assert_int_equal(vault_erase(&place, "t/a@1.2"), 0);
	assert_int_equal(
		vault_get(&place, "t/a@1.2", "1.blk", 100, &data, &bytes),
		-ENOENT);
}

/* Somebody else may write to the place. */
static void a_link_is_not_followed(void **state)
{
	char link[VAULT_PLACE_MAX + 32], away[VAULT_PLACE_MAX + 32];
	struct stat st;

	(void)state;
	assert_int_equal(put("t/a@1.2", "0.blk", "first"), 0);
	(void)snprintf(away, sizeof(away), "%s/away", place.path);
	(void)snprintf(link, sizeof(link), "%s/t/a@1.2/0.blk.new", place.path);
	assert_int_equal(symlink(away, link), 0);
	assert_int_equal(put("t/a@1.2", "0.blk", "second"), -ELOOP);
	assert_int_equal(stat(away, &st), -1);
	assert_int_equal(put("t/a@1.2", "0.blk", "third"), 0);
	assert_int_equal(vault_erase(&place, "t/a@1.2"), 0);
}

static void names_stay_below_the_place(void **state)
{
	static const char *const bad[] = {
		"",	 "t",	 "/t/a",  "t/",	   "t/..", "../a",
		"t/a/b", "t/.a", "t/a b", "t/a\n", ".t/a",
	};
	char far[400];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_false(vault_image_is_valid(bad[i]));
		assert_int_equal(put(bad[i], "0.blk", "x"), -EINVAL);
		assert_int_equal(vault_erase(&place, bad[i]), -EINVAL);
	}
	memset(far, 'a', sizeof(far));
	far[1] = '/';
	far[sizeof(far) - 1] = 0;
	assert_false(vault_image_is_valid(far));
	assert_int_equal(put("t/a", "../b", "x"), -EINVAL);
	assert_int_equal(put("t/a", ".b", "x"), -EINVAL);
	assert_true(vault_image_is_valid("t/wc+t7+out@12.13"));
	assert_false(vault_place_is_valid("vault"));
	assert_true(vault_place_is_valid("s3://bucket"));
	assert_true(vault_place_is_valid("s3://bucket/far/away"));
	assert_false(vault_place_is_valid("s3://"));
	assert_false(vault_place_is_valid("s3://bucket/"));
	assert_false(vault_place_is_valid("s3://bucket//x"));
	assert_false(vault_place_is_valid("s3://bucket/../x"));
	assert_false(vault_place_is_valid("s3://what?ever"));
}

/* What is not mounted is not made up. */
static void a_place_that_is_missing_is_an_error(void **state)
{
	const struct vault_place none = {.path = "/tmp/aquifer-vault.none"};
	struct iovec part = {(void *)(uintptr_t) "x", 1};

	(void)state;
	assert_int_equal(vault_put(&none, "t/a", "0.blk", &part, 1), -ENOENT);
	assert_int_equal(vault_erase(&none, "t/a"), -ENOENT);
	assert_int_equal(access("/tmp/aquifer-vault.none", F_OK), -1);
}

/* Nobody listens there, and nobody waits for that. */
static void a_server_that_is_away_is_an_error(void **state)
{
	struct vault_place p = {.path = "s3://bucket/prefix",
				.endpoint = "http://127.0.0.1:1",
				.region = "us-east-1",
				.key = {.id = "someone", .secret = "hush"}};
	struct iovec part = {(void *)(uintptr_t) "x", 1};
	size_t bytes;
	void *data;

	(void)state;
	assert_int_equal(vault_put(&p, "t/a", "0.blk", &part, 1), -EIO);
	assert_non_null(strstr(error_last(), "s3://bucket/prefix/t/a/0.blk"));
	assert_null(strstr(error_last(), "hush"));
	assert_int_equal(vault_get(&p, "t/a", "0.blk", 9, &data, &bytes), -EIO);
	assert_int_equal(vault_erase(&p, "t/a"), -EIO);
}

static void elements_are_found_or_left_out(void **state)
{
	static const char text[] =
		"<?xml version=\"1.0\"?><List><Name>b</Name><Contents><Key>a/0."
		"blk</Key></Contents><Keys>no</Keys><Key>a&amp;b</Key><Key>much"
		"-too-long</Key><Key></Key><Key>a/1.blk</Key><Key>open";
	const char *at = text, *end = text + sizeof(text) - 1;
	char out[10];

	(void)state;
	assert_true(vault_xml_next(&at, end, "Key", out, sizeof(out)));
	assert_string_equal(out, "a/0.blk");
	assert_true(vault_xml_next(&at, end, "Key", out, sizeof(out)));
	assert_string_equal(out, "");
	assert_true(vault_xml_next(&at, end, "Key", out, sizeof(out)));
	assert_string_equal(out, "a/1.blk");
	assert_false(vault_xml_next(&at, end, "Key", out, sizeof(out)));
	assert_false(vault_xml_next(&at, end, "Key", out, sizeof(out)));
}

static void credentials_are_those_of_the_first_profile(void **state)
{
	static const struct {
		const char *text;
		int err;
	} trials[] = {
		{"[default]\naws_access_key_id = ID1\n"
		 "aws_secret_access_key=s3cr/et+==\r\n"
		 "[other]\naws_access_key_id = ID2\n",
		 0},
		{"aws_secret_access_key = s3cr/et+==\n# no\nx\n"
		 "aws_access_key_id=ID1",
		 0},
		{"", -EINVAL},
		{"aws_access_key_id = ID1\n", -EINVAL},
		{"[a]\naws_access_key_id = ID1\n[b]\n"
		 "aws_secret_access_key = s\n",
		 -EINVAL},
		{"aws_access_key_id = I D\naws_secret_access_key = s", -EINVAL},
		{"aws_access_key_id = I:D\naws_secret_access_key = s", -EINVAL},
		{"aws_access_key_id =\naws_secret_access_key = s", -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(trials); i++) {
		struct vault_key key;

		assert_int_equal(vault_key_parse(trials[i].text,
						 strlen(trials[i].text), &key),
				 trials[i].err);
		if (trials[i].err) {
			assert_int_equal(key.id[0] | key.secret[0], 0);
			continue;
		}
		assert_string_equal(key.id, "ID1");
		assert_string_equal(key.secret, "s3cr/et+==");
		assert_string_equal(key.session, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			an_object_is_replaced_as_a_whole, make, end),
		cmocka_unit_test_setup_teardown(a_link_is_not_followed, make,
						end),
		cmocka_unit_test_setup_teardown(names_stay_below_the_place,
						make, end),
		cmocka_unit_test(a_place_that_is_missing_is_an_error),
		cmocka_unit_test(a_server_that_is_away_is_an_error),
		cmocka_unit_test(elements_are_found_or_left_out),
		cmocka_unit_test(credentials_are_those_of_the_first_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
