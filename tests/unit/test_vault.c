/* SPDX-License-Identifier: Apache-2.0 */
/* A folder as vault: objects as a whole or not at all, and names that lead
 * nowhere else. */
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

#include "vault.h"

static char place[64];

static int make(void **state)
{
	(void)state;
	(void)snprintf(place, sizeof(place), "/tmp/aquifer-vault.XXXXXX");
	return mkdtemp(place) ? 0 : -1;
}

static int end(void **state)
{
	char path[128];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/t", place);
	(void)rmdir(path);
	return rmdir(place);
}

static int put(const char *image, const char *object, const char *text)
{
	struct iovec parts[2] = {
		{(void *)(uintptr_t)text, strlen(text)},
		{(void *)(uintptr_t) "!", 1},
	};

	return vault_put(place, image, object, parts, 2);
}

static void an_object_is_replaced_as_a_whole(void **state)
{
	size_t bytes = 0;
	void *data = NULL;

	(void)state;
	assert_int_equal(put("t/a@1.2", "0.blk", "first"), 0);
	assert_int_equal(put("t/a@1.2", "0.blk", "second"), 0);
	assert_int_equal(
		vault_get(place, "t/a@1.2", "0.blk", 100, &data, &bytes), 0);
	assert_int_equal(bytes, 7);
	assert_memory_equal(data, "second!", 7);
	free(data);
	assert_int_equal(vault_get(place, "t/a@1.2", "0.blk", 6, &data, &bytes),
			 -EFBIG);
	assert_int_equal(
		vault_get(place, "t/a@1.2", "1.blk", 100, &data, &bytes),
		-ENOENT);
	assert_int_equal(vault_remove(place, "t/a@1.2", "0.blk"), 0);
	assert_int_equal(vault_remove(place, "t/a@1.2", "0.blk"), 0);
	assert_int_equal(put("t/a@1.2", "1.blk", "more"), 0);
	assert_int_equal(vault_erase(place, "t/a@1.2"), 0);
	assert_int_equal(vault_erase(place, "t/a@1.2"), 0);
	assert_int_equal(
		vault_get(place, "t/a@1.2", "1.blk", 100, &data, &bytes),
		-ENOENT);
}

/* Somebody else may write to the place. */
static void a_link_is_not_followed(void **state)
{
	char link[160], away[128];
	struct stat st;

	(void)state;
	assert_int_equal(put("t/a@1.2", "0.blk", "first"), 0);
	(void)snprintf(away, sizeof(away), "%s/away", place);
	(void)snprintf(link, sizeof(link), "%s/t/a@1.2/0.blk.new", place);
	assert_int_equal(symlink(away, link), 0);
	assert_int_equal(put("t/a@1.2", "0.blk", "second"), -ELOOP);
	assert_int_equal(stat(away, &st), -1);
	assert_int_equal(put("t/a@1.2", "0.blk", "third"), 0);
	assert_int_equal(vault_erase(place, "t/a@1.2"), 0);
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
		assert_int_equal(vault_erase(place, bad[i]), -EINVAL);
	}
	memset(far, 'a', sizeof(far));
	far[1] = '/';
	far[sizeof(far) - 1] = 0;
	assert_false(vault_image_is_valid(far));
	assert_int_equal(put("t/a", "../b", "x"), -EINVAL);
	assert_int_equal(put("t/a", ".b", "x"), -EINVAL);
	assert_true(vault_image_is_valid("t/wc+t7+out@12.13"));
	assert_false(vault_place_is_valid("vault"));
}

/* What is not mounted is not made up. */
static void a_place_that_is_missing_is_an_error(void **state)
{
	struct iovec part = {(void *)(uintptr_t) "x", 1};

	(void)state;
	assert_int_equal(
		vault_put("/tmp/aquifer-vault.none", "t/a", "0.blk", &part, 1),
		-ENOENT);
	assert_int_equal(vault_erase("/tmp/aquifer-vault.none", "t/a"),
			 -ENOENT);
	assert_int_equal(access("/tmp/aquifer-vault.none", F_OK), -1);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
