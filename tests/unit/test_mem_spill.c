/* SPDX-License-Identifier: Apache-2.0 */
/* The spill tier: parts, zeros, and a disk that fails. */
#include "memnode/spill.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/landing.h"

enum {
	SIZE = 1 << 20,
};

static char dir[] = "/tmp/aquifer-spill-XXXXXX";

static struct spill *open_one(void)
{
	struct spill *s = NULL;

	assert_int_equal(spill_open(dir, SIZE, &s), 0);
	return s;
}

/* The descriptor of the tier's file, which has no name. */
static int find_file(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int fd = -1;

	assert_non_null(d);
	while ((e = readdir(d))) {
		char path[300], to[300] = "";

		(void)snprintf(path, sizeof(path), "/proc/self/fd/%s",
			       e->d_name);
		if (readlink(path, to, sizeof(to) - 1) > 0 &&
		    strncmp(to, dir, strlen(dir)) == 0)
			fd = atoi(e->d_name);
	}
	(void)closedir(d);
	assert_true(fd >= 0);
	return fd;
}

static void parts_do_not_overlap_and_end(void **state)
{
	struct spill *s = open_one();
	uint8_t *a = NULL, *b = NULL, *c = NULL;

	assert_int_equal(spill_take(s, SIZE / 2, (void **)&a), 0);
	assert_int_equal(spill_take(s, SIZE / 4, (void **)&b), 0);
	assert_int_equal(spill_used(s), SIZE / 4 * 3);
	assert_int_equal(spill_take(s, SIZE / 2, (void **)&c), -ENOSPC);
	assert_true(a + SIZE / 2 <= b || b + SIZE / 4 <= a);
	spill_give(s, a, SIZE / 2);
	assert_int_equal(spill_take(s, SIZE / 2, (void **)&c), 0);
	spill_give(s, b, SIZE / 4);
	spill_give(s, c, SIZE / 2);
	assert_int_equal(spill_used(s), 0);
	spill_close(s);
}

static void what_is_taken_again_is_zeros(void **state)
{
	struct spill *s = open_one();
	uint8_t *a = NULL;

	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(spill_take(s, SIZE, (void **)&a), 0);
		for (size_t i = 0; i < SIZE; i += 511)
			assert_int_equal(a[i], 0);
		memset(a, 'x', SIZE);
		spill_give(s, a, SIZE);
	}
	spill_close(s);
}

static void a_folder_or_size_that_cannot_be_is_refused(void **state)
{
	struct spill *s = NULL;

	assert_int_equal(spill_open("/nonexistent/folder", SIZE, &s), -ENOENT);
	assert_true(spill_open(dir, 1ull << 60, &s) < 0);
	assert_null(s);
}

static void a_page_that_the_disk_does_not_bring_is_zeros_and_bad(void **state)
{
	struct spill *s = open_one();
	uint8_t *a = NULL, *b = NULL;

	assert_int_equal(spill_take(s, SPILL_UNIT, (void **)&a), 0);
	assert_int_equal(spill_take(s, SPILL_UNIT, (void **)&b), 0);
	memset(a, 'x', SPILL_UNIT);
	memset(b, 'x', SPILL_UNIT);
	/* Touching what is beyond a file's end is the same fault. */
	assert_int_equal(ftruncate(find_file(), b - a), 0);
	assert_int_equal(a[0], 'x');
	assert_int_equal(b[0], 0);
	b[1] = 'y';
	assert_false(spill_is_bad(s, a, SPILL_UNIT));
	assert_true(spill_is_bad(s, b, SPILL_UNIT));
	assert_int_equal(spill_errors(s), 1);
	/* It is never handed out again. */
	spill_give(s, b, SPILL_UNIT);
	for (unsigned i = 0; i < SIZE / SPILL_UNIT - 2; i++) {
		uint8_t *more = NULL;

		assert_int_equal(spill_take(s, SPILL_UNIT, (void **)&more), 0);
		assert_ptr_not_equal(more, b);
	}
	spill_close(s);
}

static size_t touch(void *a, const void *b, uintptr_t c)
{
	return *(volatile uint8_t *)a + 1u;
}

/* As the NIC and the block server do it. */
static void who_expects_the_fault_hears_of_it(void **state)
{
	struct spill *s = open_one();
	uint8_t *a = NULL;

	assert_int_equal(spill_take(s, SPILL_UNIT, (void **)&a), 0);
	assert_int_equal(ftruncate(find_file(), 0), 0);
	assert_int_equal(landing_call(a, NULL, 0, touch, (uintptr_t)a,
				      (uintptr_t)a + SPILL_UNIT),
			 0);
	spill_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_do_not_overlap_and_end),
		cmocka_unit_test(what_is_taken_again_is_zeros),
		cmocka_unit_test(a_folder_or_size_that_cannot_be_is_refused),
		cmocka_unit_test(
			a_page_that_the_disk_does_not_bring_is_zeros_and_bad),
		cmocka_unit_test(who_expects_the_fault_hears_of_it),
	};
	int failed;

	if (!mkdtemp(dir))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)rmdir(dir);
	return failed;
}
