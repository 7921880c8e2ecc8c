/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of what a node's memory moves, in folders like the kernel's. */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "run/bandwidth.h"

struct folder {
	char top[64], resctrl[96], system[96];
	struct bandwidth_roots roots;
};

/* Writes a file below the folder, with all folders above it. */
static void put(const struct folder *f, const char *path, const char *text)
{
	char full[512];
	FILE *out;

	(void)snprintf(full, sizeof(full), "%s/%s", f->top, path);
	for (char *at = full + strlen(f->top) + 1; (at = strchr(at, '/'));
	     at++) {
		*at = '\0';
		(void)mkdir(full, 0700);
		*at = '/';
	}
	out = fopen(full, "w");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static int set_up(void **state)
{
	struct folder *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	(void)snprintf(f->top, sizeof(f->top), "%s/aquifer-bw.XXXXXX",
		       getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(f->top));
	(void)snprintf(f->resctrl, sizeof(f->resctrl), "%s/resctrl", f->top);
	(void)snprintf(f->system, sizeof(f->system), "%s/system", f->top);
	f->roots = (struct bandwidth_roots){f->resctrl, f->system};
	*state = f;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind,
		      struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	struct folder *f = *state;

	(void)nftw(f->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

/* Two sockets: processors 0 and 1 of node 0 share cache 0, 2 has cache 7 of the
 * same node, and 3 is node 1's. */
static void make_machine(const struct folder *f)
{
	put(f, "system/node/node0/cpu0", "");
	put(f, "system/node/node0/cpu1", "");
	put(f, "system/node/node0/cpu2", "");
	put(f, "system/node/node0/cpulist", "0-2\n");
	put(f, "system/node/node1/cpu3", "");
	put(f, "system/cpu/cpu0/cache/index3/id", "0\n");
	put(f, "system/cpu/cpu1/cache/index3/id", "0\n");
	put(f, "system/cpu/cpu2/cache/index3/id", "7\n");
	put(f, "system/cpu/cpu3/cache/index3/id", "1\n");
	put(f, "resctrl/mon_data/mon_L3_00/mbm_local_bytes", "1000\n");
	put(f, "resctrl/mon_data/mon_L3_07/mbm_local_bytes", "20\n");
	put(f, "resctrl/mon_data/mon_L3_01/mbm_local_bytes", "300000\n");
}

static void counters_of_a_nodes_caches_are_added_up(void **state)
{
	struct folder *f = *state;
	struct bandwidth b;
	uint64_t bytes;

	make_machine(f);
	assert_int_equal(bandwidth_open(&b, &f->roots, 0), 0);
	assert_int_equal(bandwidth_read(&b, &bytes), 0);
	assert_int_equal(bytes, 1020);
	put(f, "resctrl/mon_data/mon_L3_00/mbm_local_bytes", "5000\n");
	assert_int_equal(bandwidth_read(&b, &bytes), 0);
	assert_int_equal(bytes, 5020);
	bandwidth_close(&b);
	assert_int_equal(bandwidth_open(&b, &f->roots, 1), 0);
	assert_int_equal(bandwidth_read(&b, &bytes), 0);
	assert_int_equal(bytes, 300000);
	bandwidth_close(&b);
}

/* The root's counters do not have the tasks of other control groups in them; a
 * control group's do have those of its monitoring groups. */
static void all_control_groups_count_once(void **state)
{
	struct folder *f = *state;
	struct bandwidth b;
	uint64_t bytes;

	make_machine(f);
	put(f, "resctrl/batch/mon_data/mon_L3_00/mbm_local_bytes", "4000000\n");
	put(f, "resctrl/batch/mon_data/mon_L3_01/mbm_local_bytes", "1\n");
	put(f, "resctrl/batch/mon_groups/a/mon_data/mon_L3_00/mbm_local_bytes",
	    "3000000\n");
	put(f, "resctrl/mon_groups/b/mon_data/mon_L3_00/mbm_local_bytes",
	    "900\n");
	put(f, "resctrl/info/L3_MON/mon_features", "mbm_local_bytes\n");
	put(f, "resctrl/cpus", "f\n");
	assert_int_equal(bandwidth_open(&b, &f->roots, 0), 0);
	assert_int_equal(bandwidth_read(&b, &bytes), 0);
	assert_int_equal(bytes, 4001020);
	bandwidth_close(&b);
}

/* The guard would be blind for ever. Reading a folder fails as reading a
 * removed counter does. */
static void a_group_that_goes_takes_its_counters_along(void **state)
{
	struct folder *f = *state;
	struct bandwidth b;
	uint64_t bytes;

	make_machine(f);
	put(f, "resctrl/batch/mon_data/mon_L3_00/mbm_local_bytes/gone", "");
	put(f, "resctrl/other/mon_data/mon_L3_07/mbm_local_bytes", "500\n");
	assert_int_equal(bandwidth_open(&b, &f->roots, 0), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(bandwidth_read(&b, &bytes), 0);
		assert_int_equal(bytes, 1520);
	}
	bandwidth_close(&b);
	/* All of them. */
	put(f, "system/node/node2/cpu9", "");
	put(f, "system/cpu/cpu9/cache/index3/id", "9\n");
	put(f, "resctrl/mon_data/mon_L3_09/mbm_local_bytes/gone", "");
	assert_int_equal(bandwidth_open(&b, &f->roots, 2), 0);
	assert_int_equal(bandwidth_read(&b, &bytes), -EIO);
	assert_int_equal(bandwidth_read(&b, &bytes), -EIO);
	bandwidth_close(&b);
}

static void what_is_no_number_is_an_error(void **state)
{
	static const char *const row[] = {
		"Unavailable\n", "Error\n", "",
		"-1\n",		 "12x\n",   "99999999999999999999999\n"};
	struct folder *f = *state;

	make_machine(f);
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct bandwidth b;
		uint64_t bytes = 42;

		put(f, "resctrl/mon_data/mon_L3_07/mbm_local_bytes", row[i]);
		assert_int_equal(bandwidth_open(&b, &f->roots, 0), 0);
		assert_int_equal(bandwidth_read(&b, &bytes), -EIO);
		assert_int_equal(bytes, 42);
		bandwidth_close(&b);
	}
}

static void without_counters_there_is_nothing_to_open(void **state)
{
	struct folder *f = *state;
	struct bandwidth b;

	assert_int_equal(bandwidth_open(&b, &f->roots, 0), -ENOENT);
	put(f, "system/node/node0/cpu0", "");
	put(f, "system/cpu/cpu0/cache/index3/id", "0\n");
	assert_int_equal(bandwidth_open(&b, &f->roots, 0), -ENOENT);
	assert_int_equal(b.count, 0);
	bandwidth_close(&b);
}

static void firmware_promises_megabytes(void **state)
{
	struct folder *f = *state;

	assert_int_equal(bandwidth_promised(&f->roots, 0), 0);
	put(f, "system/node/node0/access0/initiators/read_bandwidth",
	    "102400\n");
	assert_int_equal(bandwidth_promised(&f->roots, 0), 102400000000ull);
	put(f, "system/node/node0/access0/initiators/read_bandwidth", "?\n");
	assert_int_equal(bandwidth_promised(&f->roots, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			counters_of_a_nodes_caches_are_added_up, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(all_control_groups_count_once,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_group_that_goes_takes_its_counters_along, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_number_is_an_error,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			without_counters_there_is_nothing_to_open, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(firmware_promises_megabytes,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
