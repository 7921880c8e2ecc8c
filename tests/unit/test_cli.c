/* SPDX-License-Identifier: Apache-2.0 */
/* The command table, the guess at typos, the choice of NIC, the places. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli.h"
#include "cli/cli_check.h"
#include "cli/cli_nic.h"
#include "cli/cli_place.h"
#include "cli/cli_swap.h"
#include "page/page_store.h"
#include "run/run.h"

static void test_nearest(void **state)
{
	static const struct {
		const char *typed, *meant;
	} rows[] = {
		{"doctr", "doctor"},  {"inof", "info"},
		{"exce", "exec"},     {"versoin", "version"},
		{"ver", "version"},   {"h", "help"},
		{"zzzzzz", NULL},     {"", NULL},
		{"frobnicate", NULL}, {"infoinfoinfoinfo", NULL},
		{"kvs", "kv"},	      {"pu", "up"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct cli_command *c =
			cli_command_nearest(cli_commands, rows[i].typed);

		if (rows[i].meant) {
			assert_non_null(c);
			assert_string_equal(c->name, rows[i].meant);
		} else {
			assert_null(c);
		}
	}
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* A network card is no RDMA adapter; one of InfiniBand or Mellanox is. */
static void test_adapters_are_found(void **state)
{
	static const struct {
		const char *class, *vendor;
		bool is_adapter;
	} rows[] = {
		{"0x020000\n", "0x8086\n", false},
		{"0x030000\n", "0x15b3\n", false},
		{"0x020000\n", "0x15b3\n", true},
		{"0x020700\n", "0x1fc1\n", true},
	};
	char bus[] = "/tmp/aquifer-bus.XXXXXX", dev[64], found[96];

	assert_non_null(mkdtemp(bus));
	assert_false(cli_check_find_adapter("/nonexistent", found));
	assert_false(cli_check_find_adapter(bus, found));
	snprintf(dev, sizeof(dev), "%s/0000:01:00.0", bus);
	assert_int_equal(mkdir(dev, 0700), 0);
	assert_false(cli_check_find_adapter(bus, found));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		put(dev, "class", rows[i].class);
		put(dev, "vendor", rows[i].vendor);
		assert_int_equal(cli_check_find_adapter(bus, found),
				 rows[i].is_adapter);
	}
	assert_string_equal(found, "0000:01:00.0");
	snprintf(found, sizeof(found), "%s/class", dev);
	assert_int_equal(unlink(found), 0);
	snprintf(found, sizeof(found), "%s/vendor", dev);
	assert_int_equal(unlink(found), 0);
	assert_int_equal(rmdir(dev), 0);
	assert_int_equal(rmdir(bus), 0);
}

static void test_tables_are_complete(void **state)
{
	for (const struct cli_command *c = cli_commands; c->name; c++) {
		assert_non_null(c->run);
		assert_non_null(c->summary);
		assert_true(strlen(c->summary) < 60);
		assert_null(strchr(c->usage, '\n'));
		assert_true(c->options || c->run == cmd_lab);
		assert_ptr_equal(cli_command_find(cli_commands, c->name), c);
	}
	for (const struct cli_check *c = cli_checks; c->name; c++) {
		assert_non_null(c->why);
		assert_non_null(c->run);
	}
}

/* A fresh folder, removed by the test that made it. */
static void make_dir(char path[64])
{
	strcpy(path, "/tmp/aquifer-test-XXXXXX");
	assert_non_null(mkdtemp(path));
}

static void test_nic_choice(void **state)
{
	char dir[64], device[96];
	struct cli_nic nic;

	make_dir(dir);
	cli_nic_make("auto", dir, &nic);
	assert_true(nic.soft);
	assert_non_null(strstr(nic.why, dir));
	snprintf(device, sizeof(device), "%s/mlx5_0", dir);
	assert_int_equal(mkdir(device, 0700), 0);
	cli_nic_make("auto", dir, &nic);
	assert_false(nic.soft);
	assert_non_null(strstr(nic.why, "mlx5_0"));
	cli_nic_make("soft", dir, &nic);
	assert_true(nic.soft);
	cli_nic_make("hw", "/nonexistent", &nic);
	assert_false(nic.soft);
	assert_int_equal(rmdir(device), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void test_place(void **state)
{
	static const char *const steps[] = {"/src", "/src/nic",
					    "/src/nic/verbs"};
	char dir[64], found[PATH_MAX], file[128], sub[96];
	int fd;

	make_dir(dir);
	assert_int_equal(cli_place_verbs_libdir_at(dir, found), -ENOENT);
	assert_non_null(strstr(found, "lib/aquifer/verbs"));
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		snprintf(sub, sizeof(sub), "%s%s", dir, steps[i]);
		assert_int_equal(mkdir(sub, 0700), 0);
	}
	snprintf(file, sizeof(file), "%s/libibverbs.so.1", sub);
	fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(cli_place_verbs_libdir_at(dir, found), 0);
	assert_string_equal(found, sub);
	assert_int_equal(unlink(file), 0);
	for (size_t i = ARRAY_LEN(steps); i-- > 0;) {
		snprintf(sub, sizeof(sub), "%s%s", dir, steps[i]);
		assert_int_equal(rmdir(sub), 0);
	}
	assert_int_equal(rmdir(dir), 0);
}

static void test_args(void **state)
{
	const struct cli_command *exec = cli_command_find(cli_commands, "exec");
	char *good[] = {"exec", "--nic", "soft", "--", "ls", "--json", NULL};
	char *bad_nic[] = {"exec", "--nic", "fast", "ls", NULL};
	char *no_value[] = {"exec", "--nic", NULL};
	char *unknown[] = {"exec", "--frob", NULL};
	struct cli_args args = {0};
	struct cli_words words;

	assert_int_equal(
		cli_parse(exec, 6, good, OPT_WORDS_PROGRAM, &args, &words),
		CLI_GO);
	assert_string_equal(args.nic, "soft");
	assert_false(args.json);
	assert_int_equal(words.count, 2);
	assert_string_equal(words.word[0], "ls");
	assert_int_equal(
		cli_parse(exec, 4, bad_nic, OPT_WORDS_PROGRAM, &args, &words),
		CLI_USAGE);
	assert_int_equal(
		cli_parse(exec, 2, no_value, OPT_WORDS_PROGRAM, &args, &words),
		CLI_USAGE);
	assert_int_equal(
		cli_parse(exec, 2, unknown, OPT_WORDS_PROGRAM, &args, &words),
		CLI_USAGE);
}

/* A line of /proc/swaps is about one device only, and may be anything. */
static void test_swap_device(void **state)
{
	static const char line[] = "/dev/nbd0      partition	65532	"
				   "	512		-2";
	struct swap_device d = {0};

	assert_false(swap_device_parse("Filename Type Size Used Priority",
				       "/dev/nbd0", &d));
	assert_false(swap_device_parse("", "/dev/nbd0", &d));
	assert_false(swap_device_parse(line, "/dev/nbd", &d));
	assert_false(d.is_swap);
	assert_true(swap_device_parse(line, "/dev/nbd0", &d));
	assert_true(d.is_swap);
	assert_int_equal(d.size_bytes, 65532ull << 10);
	assert_int_equal(d.used_bytes, 512 << 10);
	assert_int_equal(d.priority, -2);
	assert_int_equal(swap_device_check_name("/dev/nbd12"), 0);
	assert_int_equal(swap_device_check_name("/dev/nbd"), -EINVAL);
	assert_int_equal(swap_device_check_name("/dev/nbd0p1"), -EINVAL);
	assert_int_equal(swap_device_check_name("nbd0"), -EINVAL);
	assert_true(swap_server_is_name("swap-nbd0"));
	assert_false(swap_server_is_name("m0"));
}

/* What run and swap list in --help is what the page store takes. */
static void all_modes_are_listed(void **state)
{
	char words[] = RUN_MODES;
	unsigned count = 0;
	enum page_mode mode;

	for (char *w = strtok(words, "|"); w; w = strtok(NULL, "|"), count++)
		assert_int_equal(page_mode_parse(w, &mode), 0);
	assert_int_equal(count, PAGE_MODE_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_adapters_are_found),
		cmocka_unit_test(test_tables_are_complete),
		cmocka_unit_test(test_nic_choice),
		cmocka_unit_test(test_place),
		cmocka_unit_test(test_args),
		cmocka_unit_test(test_swap_device),
		cmocka_unit_test(all_modes_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
