/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: files good and bad, who beats whom, and the words of errors. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/config.h"
#include "base/config_named.h"
#include "base/error.h"
#include "base/log.h"

static int load_text(struct config *c, const char *text)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int err;

	assert_non_null(f);
	err = config_load_stream(c, f, "rack.ini");
	fclose(f);
	return err;
}

static void test_defaults(void **state)
{
	struct config *c;
	unsigned i;

	assert_int_equal(config_create(&c), 0);
	assert_string_equal(config_string(c, "rack", "name"), "local");
	assert_string_equal(config_string(c, "nic", "mode"), "auto");
	assert_string_equal(config_string(c, "nic", "mode"), "auto");
	assert_string_equal(config_string(c, "nic", "address"), "127.0.0.1");
	assert_int_equal(config_int(c, "nic", "vendor_part_id"), 4119);
	assert_int_equal(config_int(c, "nic", "engine_yields"), 400);
	assert_int_equal(config_int(c, "nic", "mtu"), 4096);
	for (i = 0; i < config_key_count(); i++) {
		assert_string_equal(config_where_at(c, i), "default");
		assert_true(strlen(config_key_at(i)->help) > 0);
	}
	config_destroy(c);
}

static void test_good_file(void **state)
{
	struct config *c;
	int index;

	assert_int_equal(config_create(&c), 0);
	assert_int_equal(load_text(c, "# a rack\n"
				      "[rack]\n"
				      "name = lab-7   ; inline\n"
				      "\n"
				      "[nic]\n"
				      "mode = soft\n"
				      "\tmtu: 0x400\n"
				      "  address = fe80::1"),
			 0);
	assert_string_equal(config_string(c, "rack", "name"), "lab-7");
	assert_string_equal(config_string(c, "nic", "mode"), "soft");
	assert_int_equal(config_int(c, "nic", "mtu"), 1024);
	assert_string_equal(config_string(c, "nic", "address"), "fe80::1");
	index = config_key_find("nic", "mtu");
	assert_string_equal(config_where_at(c, (unsigned)index), "rack.ini:7");
	assert_string_equal(config_text_at(c, (unsigned)index), "0x400");
	config_destroy(c);
}

static void test_bad_files(void **state)
{
	char long_line[600] = "[nic]\nmode = ";
	const struct {
		const char *text, *words;
	} table[] = {
		{"[nic]\nmtu = 100\n",
		 "rack.ini:2: nic.mtu: value '100' is not allowed; a power of "
		 "two, a whole number from 256 to 4096"},
		{"[nic]\nmtu = 1500\n", "rack.ini:2: nic.mtu: value '1500'"},
		{"[nic]\nmtu = -1\n", "rack.ini:2: nic.mtu"},
		{"[nic]\nmtu = 512x\n", "rack.ini:2: nic.mtu"},
		{"[nic]\nmtu =\n", "rack.ini:2: nic.mtu: value ''"},
		{"[nic]\nvendor_part_id = 99999999999999999999999\n",
		 "rack.ini:2: nic.vendor_part_id"},
		{"[nic]\nmode = fast\n",
		 "value 'fast' is not allowed; one of auto|soft|hw"},
		{"[nic]\nmode = aut\n", "value 'aut' is not allowed"},
		{"[nic]\nmode =\n", "value '' is not allowed"},
		{"[nic]\naddress = 10.0.0\n", "an IPv4 or IPv6 address"},
		{"[rack]\nname = Lab\n", "1 to 32 of a-z, 0-9 and '-'"},
		{"[nic]\n\nmode=hw\nmut = 1024\n",
		 "rack.ini:4: unknown key 'mut' in section [nic]; known: mode, "
		 "device, address, addresses, port, auth, loss_ppm, "
		 "vendor_part_id, "
		 "engine_yields, cm_keepalive_ms, mtu, watch_unmap"},
		{"[net]\nmtu = 1024\n",
		 "rack.ini:2: unknown section [net]; known: rack, nic"},
		{"mtu = 1024\n", "rack.ini:1: unknown section []"},
		{"[nic]\nmtu = 1024\nmode = hw\nmtu = 512\n",
		 "rack.ini:4: nic.mtu is already set in line 2"},
		{"[nic]\nmtu 1024\n", "rack.ini:2: expected [section]"},
		{"[nic\nmtu = 1024\n", "rack.ini:1: expected [section]"},
		{long_line, "rack.ini:2: the line is longer than"},
	};
	size_t i;

	memset(long_line + strlen(long_line), 'x', 500);
	for (i = 0; i < ARRAY_LEN(table); i++) {
		struct config *c;

		assert_int_equal(config_create(&c), 0);
		error_clear();
		if (load_text(c, table[i].text) != -EINVAL)
			fail_msg("case %zu was accepted", i);
		if (!strstr(error_last(), table[i].words))
			fail_msg("case %zu says: %s", i, error_last());
		config_destroy(c);
	}
}

static void test_precedence(void **state)
{
	unsigned mtu = (unsigned)config_key_find("nic", "mtu");
	struct config *c;

	setenv("AQUIFER_NIC_MTU", "1024", 1);
	assert_int_equal(config_create(&c), 0);
	assert_int_equal(config_int(c, "nic", "mtu"), 1024);
	/* The file is read later and still loses. */
	assert_int_equal(load_text(c, "[nic]\nmtu = 512\nmode = soft\n"), 0);
	assert_int_equal(config_int(c, "nic", "mtu"), 1024);
	assert_string_equal(config_where_at(c, mtu), "AQUIFER_NIC_MTU");
	assert_string_equal(config_string(c, "nic", "mode"), "soft");
	assert_int_equal(config_set(c, "--mtu", "nic", "mtu", "2048"), 0);
	assert_int_equal(config_int(c, "nic", "mtu"), 2048);
	assert_string_equal(config_where_at(c, mtu), "--mtu");
	/* Loading again changes nothing that is stronger. */
	assert_int_equal(load_text(c, "[nic]\nmtu = 256\n"), 0);
	assert_int_equal(config_int(c, "nic", "mtu"), 2048);
	/* A bad value is an error even where it would lose. */
	assert_int_equal(load_text(c, "[nic]\nmtu = 3\n"), -EINVAL);
	config_destroy(c);

	setenv("AQUIFER_NIC_MTU", "12", 1);
	assert_int_equal(config_create(&c), -EINVAL);
	assert_memory_equal(error_last(), "AQUIFER_NIC_MTU: nic.mtu: ", 26);
	unsetenv("AQUIFER_NIC_MTU");
}

static void test_options(void **state)
{
	char big[CONFIG_VALUE_MAX + 1];
	struct config *c;

	assert_int_equal(config_create(&c), 0);
	assert_int_equal(config_set(c, "--set", "nic", "mode", "hw"), 0);
	assert_string_equal(config_string(c, "nic", "mode"), "hw");
	assert_int_equal(config_set(c, "--set", "nic", "mode", ""), -EINVAL);
	assert_int_equal(config_set(c, "--set", "nic", "no", "1"), -EINVAL);
	assert_non_null(strstr(error_last(), "--set: unknown key 'no'"));
	memset(big, '1', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	assert_int_equal(config_set(c, "--x", "nic", "address", big), -EINVAL);
	assert_non_null(strstr(error_last(), "longer than"));
	assert_string_equal(config_string(c, "nic", "mode"), "hw");
	config_destroy(c);
}

static void test_numbers(void **state)
{
	static const struct config_key size = {
		.kind = CONFIG_SIZE, .min = 1024, .max = 1ull << 50};
	static const struct config_key flag = {.kind = CONFIG_BOOL};
	static const struct {
		const struct config_key *key;
		const char *text;
		int64_t number; /* -1: refused */
	} table[] = {
		{&size, "1K", 1024},
		{&size, "1024", 1024},
		{&size, "3M", 3 << 20},
		{&size, "2G", 2ll << 30},
		{&size, "1T", 1ll << 40},
		{&size, "1023", -1},
		{&size, "1k", 1024},
		{&size, "1KB", 1024},
		{&size, "64mb", 64 << 20},
		{&size, "1GiB", 1 << 30},
		{&size, "1.5GiB", 3 << 29},
		{&size, "1.000001M", (1 << 20) + 1},
		{&size, "0.5K", -1}, /* too small */
		{&size, "1.5", -1},
		{&size, "1.K", -1},
		{&size, ".5M", -1},
		{&size, "1.5.5M", -1},
		{&size, "1.0000001M", -1},
		{&size, "1,5M", -1},
		{&size, "1Ki", -1},
		{&size, "1KBB", -1},
		{&size, "1iB", -1},
		{&size, "1e3", -1},
		{&size, "1 K", -1},
		{&size, " 1K", -1},
		{&size, "+1K", -1},
		{&size, "0x1000", -1},
		{&size, "18446744073709551615T", -1},
		{&size, "2048T", -1},
		{&size, "K", -1},
		{&size, "", -1},
		{&flag, "yes", 1},
		{&flag, "true", 1},
		{&flag, "on", 1},
		{&flag, "1", 1},
		{&flag, "no", 0},
		{&flag, "false", 0},
		{&flag, "off", 0},
		{&flag, "0", 0},
		{&flag, "2", -1},
		{&flag, "", -1},
		{&flag, "no|yes", -1},
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(table); i++) {
		uint64_t number = 77;
		int err =
			config_key_parse(table[i].key, table[i].text, &number);

		if (table[i].number < 0
			    ? err != -EINVAL || number != 77
			    : err != 0 || number != (uint64_t)table[i].number)
			fail_msg("'%s' gave %d, %llu", table[i].text, err,
				 (unsigned long long)number);
	}
	assert_int_equal(config_key_parse(&size, "1", &(uint64_t){0}), -EINVAL);
	assert_non_null(strstr(error_last(), "from 1K to 1024T"));
}

static void test_find_file(void **state)
{
	char dir[] = "/tmp/test_config_XXXXXX";
	char path[CONFIG_PATH_MAX], sub[64], file[64];
	struct config *c;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(sub, sizeof(sub), "%s/aquifer", dir);
	snprintf(file, sizeof(file), "%s/aquifer/rack.ini", dir);
	assert_int_equal(rmdir(dir), 0);
	setenv("XDG_CONFIG_HOME", dir, 1);
	if (access("/etc/aquifer/rack.ini", F_OK)) {
		assert_int_equal(config_find_file(path), -ENOENT);
		assert_int_equal(config_open(NULL, &c), 0);
		config_destroy(c);
	}
	setenv("AQUIFER_CONFIG", file, 1);
	assert_int_equal(config_find_file(path), 0);
	assert_string_equal(path, file);
	assert_int_equal(config_open(NULL, &c), -ENOENT);
	assert_non_null(strstr(error_last(), "rack.ini: cannot be opened"));
	unsetenv("AQUIFER_CONFIG");

	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(mkdir(sub, 0700), 0);
	f = fopen(file, "w");
	assert_non_null(f);
	fputs("[nic]\nmode=soft\n", f);
	fclose(f);
	assert_int_equal(config_open(NULL, &c), 0);
	assert_string_equal(config_string(c, "nic", "mode"), "soft");
	config_destroy(c);
	assert_int_equal(config_open(dir, &c), -EIO); /* a directory */
	unsetenv("XDG_CONFIG_HOME");
	unlink(file);
	rmdir(sub);
	rmdir(dir);
}

static void test_named_sections(void **state)
{
	static const char *const bad[] = {
		"[memory]\nsize = 1G\n",
		"[memory A]\n",
		"[memory a b]\n",
		"[disk d]\n",
		"[memory a]\nsize = 1\n",
		"[memory a]\naddress = x:1\n",
		"[node n]\naddress = here\n",
		"[memory a]\nsize = 1G\nsize = 2G\n",
		"[memory a]\nlisten = :80x\n[nic]\nmtu = 3\n",
	};
	struct config *c;

	assert_int_equal(config_create(&c), 0);
	assert_int_equal(config_named_count(c, "memory"), 0);
	assert_int_equal(load_text(c, "[memory m0]\n"
				      "[memory big]\n"
				      "  size = 4G\n"
				      "listen = 0.0.0.0:7000\n"
				      "[nic]\nmtu = 512\n"
				      "[node far]\naddress = h:1\nca = /x\n"),
			 0);
	assert_int_equal(config_named_count(c, "memory"), 2);
	assert_string_equal(config_named_name(c, "memory", 0), "m0");
	assert_string_equal(config_named_text(c, "memory", 0, "size"), "1G");
	assert_string_equal(config_named_text(c, "memory", 0, "listen"), "");
	assert_string_equal(config_named_text(c, "memory", 1, "size"), "4G");
	assert_string_equal(config_named_text(c, "memory", 1, "listen"),
			    "0.0.0.0:7000");
	assert_int_equal(config_named_count(c, "node"), 1);
	assert_string_equal(config_named_text(c, "node", 0, "address"), "h:1");
	assert_int_equal(config_int(c, "nic", "mtu"), 512);
	config_destroy(c);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(config_create(&c), 0);
		assert_int_equal(load_text(c, bad[i]), -EINVAL);
		assert_non_null(strstr(error_last(), "rack.ini:"));
		config_destroy(c);
	}
}

static void test_named_limit(void **state)
{
	struct config *c;
	char text[64];

	assert_int_equal(config_create(&c), 0);
	for (unsigned i = 0; i < CONFIG_NAMED_MAX; i++) {
		snprintf(text, sizeof(text), "[memory m%u]\n", i);
		assert_int_equal(load_text(c, text), 0);
	}
	assert_int_equal(load_text(c, "[memory more]\n"), -EINVAL);
	assert_int_equal(load_text(c, "[memory m5]\nsize = 2G\n"), 0);
	config_destroy(c);
}

static unsigned nodes_for(const char *path, const char *file_rack)
{
	struct config *c;
	unsigned count;

	if (file_rack)
		setenv(CONFIG_RACK_VARIABLE, file_rack, 1);
	assert_int_equal(config_open(path, &c), 0);
	count = config_named_count(c, "node");
	config_destroy(c);
	unsetenv(CONFIG_RACK_VARIABLE);
	return count;
}

static void sections_of_another_rack_are_left_out(void **state)
{
	char path[] = "/tmp/aquifer-test-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "[rack]\nname = a\n[node m]\naddress = x:1\n") >
		    0);
	close(fd);
	assert_int_equal(nodes_for(path, NULL), 1);
	assert_int_equal(nodes_for(path, "a"), 1);
	assert_int_equal(nodes_for(path, "b"), 0);
	setenv("AQUIFER_RACK_NAME", "b", 1);
	assert_int_equal(nodes_for(path, NULL), 1);
	assert_int_equal(nodes_for(path, "a"), 0);
	unsetenv("AQUIFER_RACK_NAME");
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_good_file),
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_find_file),
		cmocka_unit_test(test_named_sections),
		cmocka_unit_test(test_named_limit),
		cmocka_unit_test(sections_of_another_rack_are_left_out),
	};
	unsigned i;

	for (i = 0; i < config_key_count(); i++) {
		char name[96];

		snprintf(name, sizeof(name), "AQUIFER_%s_%s",
			 config_key_at(i)->section, config_key_at(i)->key);
		for (char *s = name; *s; s++)
			*s = *s >= 'a' && *s <= 'z' ? (char)(*s - 32) : *s;
		unsetenv(name);
	}
	unsetenv("AQUIFER_CONFIG");
	unsetenv(CONFIG_RACK_VARIABLE);
	setenv("HOME", "/nonexistent", 1);
	log_setup(LOG_LEVEL_ERR, false);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
