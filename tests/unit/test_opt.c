/* SPDX-License-Identifier: Apache-2.0 */
/* Options by a table: every kind, every mistake, and what --help says. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/hex.h"
#include "base/opt.h"

struct args {
	bool flag;
	uint32_t bits, choice, number;
	uint64_t large, bytes;
	double real;
	uint32_t ppm;
	uint64_t ns;
	const char *text, *word;
	int called;
};

static int take(void *args, const char *word)
{
	struct args *a = args;

	a->called = atoi(word);
	return a->called ? 0 : error_set(-EINVAL, "--call: not '%s'", word);
}

static const struct opt table[] = {
	OPT_FLAG(struct args, flag, "flag", "a flag"),
	OPT_BITS(struct args, bits, 1u << 2, "two", "bit two"),
	OPT_BITS(struct args, bits, 1u << 3, "three", "bit three"),
	OPT_TEXT(struct args, text, "text", "WORD", "any word"),
	OPT_WORD(struct args, word, "word", "a|bc", "one of them"),
	OPT_CHOICE(struct args, choice, "choice", "x|y|z", "which"),
	OPT_U32(struct args, number, "number", "N", 3, 9, "from 3 to 9"),
	OPT_U64(struct args, large, "large", "N", 0, UINT64_MAX, "any"),
	OPT_SIZE(struct args, bytes, "bytes", "SIZE", 1024, 1 << 20, "memory"),
	OPT_REAL(struct args, real, "real", "X", 10, "with decimals"),
	OPT_SCALED64(struct args, ns, "ns", "NS", 4, 1000, "in ps"),
	OPT_SCALED32(struct args, ppm, "ppm", "X", 1, 1000000, "a share"),
	OPT_CALL(take, "call", "N", "a function"),
	OPT_END,
};

/* A line of words, as a command gets them; argv[0] is the command. */
static enum opt_result parse(const char *line, enum opt_words accept,
			     struct args *a, int *words)
{
	static char text[200];
	static char *argv[40];
	int argc = 0;

	snprintf(text, sizeof(text), "cmd %s", line);
	for (char *w = strtok(text, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	memset(a, 0, sizeof(*a));
	return opt_parse(table, "cmd", argc, argv, accept, a, words);
}

static void every_kind_reaches_its_member(void **state)
{
	struct args a;
	int words;

	assert_int_equal(parse("--flag --two --three --text t --word bc "
			       "--choice z --number 9 --large 0x10 "
			       "--bytes 64K --real 0.5 --ns 2.5 --ppm 0.25 "
			       "--call 7",
			       OPT_WORDS_NONE, &a, &words),
			 OPT_DONE);
	assert_true(a.flag);
	assert_int_equal(a.bits, 12);
	assert_string_equal(a.text, "t");
	assert_string_equal(a.word, "bc");
	assert_int_equal(a.choice, 2);
	assert_int_equal(a.number, 9);
	assert_int_equal(a.large, 16);
	assert_int_equal(a.bytes, 65536);
	assert_true(a.real == 0.5);
	assert_int_equal(a.ns, 2500);
	assert_int_equal(a.ppm, 250000);
	assert_int_equal(a.called, 7);
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *line, *words;
	} rows[] = {
		{"--odd", "cmd has no option '--odd'; see 'aquifer help cmd'"},
		{"-x", "cmd has no option '-x'"},
		{"--two -xy", "cmd has no option '-x'"},
		{"--flag=1", "--flag takes no value, not '--flag=1'"},
		{"--flga",
		 "cmd has no option '--flga'; did you mean '--flag'?"},
		{"--byets 1K", "did you mean '--bytes'?"},
		{"--text", "--text needs a value: --text WORD"},
		{"--word b", "--word is a or bc, not 'b'"},
		{"--choice q", "--choice is x, y or z, not 'q'"},
		{"--number 2", "--number: value '2' is not allowed; a whole "
			       "number from 3 to 9"},
		{"--number -4", "--number: value '-4'"},
		{"--bytes 2M", "--bytes: value '2M' is not allowed; bytes"},
		{"--real nan", "--real is a number from 0 to 10, not 'nan'"},
		{"--ppm 1.5", "--ppm is a number from 0 to 1, not '1.5'"},
		{"--ns -1", "--ns is a number from 0 to 4, not '-1'"},
		{"--call x", "--call: not 'x'"},
		{"--flag more", "cmd does not understand 'more'"},
	};
	struct args a;
	int words;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(
			parse(rows[i].line, OPT_WORDS_NONE, &a, &words),
			OPT_WRONG);
		if (!strstr(error_last(), rows[i].words))
			fail_msg("%s: %s", rows[i].line, error_last());
	}
	assert_int_equal(parse("--flag -h", OPT_WORDS_NONE, &a, &words),
			 OPT_HELP);
}

static void words_stand_where_they_may(void **state)
{
	struct args a;
	int words;

	assert_int_equal(parse("one --flag two", OPT_WORDS_ANY, &a, &words),
			 OPT_DONE);
	assert_true(a.flag);
	assert_int_equal(words, 2); /* of four: behind the option */
	assert_int_equal(
		parse("--two ls --flag", OPT_WORDS_PROGRAM, &a, &words),
		OPT_DONE);
	assert_false(a.flag); /* it is the program's */
	assert_int_equal(words, 2);
}

static void help_has_every_option_in_lines_of_79(void **state)
{
	char *text = NULL, *line;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	unsigned found = 0;

	opt_help(table, f);
	assert_int_equal(fclose(f), 0);
	assert_non_null(strstr(text, "  --bytes SIZE"));
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		assert_true(strlen(line) < 80);
		found += strncmp(line, "  --", 4) == 0;
	}
	assert_int_equal(found, ARRAY_LEN(table) - 1);
	free(text);
}

static void sizes_and_counts_of_words(void **state)
{
	uint64_t bytes;
	uint32_t n;

	assert_int_equal(opt_size("SIZE", "3K", &bytes), 0);
	assert_int_equal(bytes, 3072);
	assert_int_equal(opt_size("SIZE", "3X", &bytes), -EINVAL);
	assert_memory_equal(error_last(), "SIZE: ", 6);
	assert_int_equal(opt_count_or_all("--nodes", "all", 4, 99, &n), 0);
	assert_int_equal(n, 99);
	assert_int_equal(opt_count_or_all("--nodes", "4", 4, 99, &n), 0);
	assert_int_equal(n, 4);
	assert_int_equal(opt_count_or_all("--nodes", "0", 4, 99, &n), -EINVAL);
}

static void hex_digits_are_read_and_written(void **state)
{
	static const char *const bad[] = {"",	  "00ff1", "00ff100",
					  "0gff", "00 f",  "00ff1z"};
	uint8_t bytes[3];
	char text[7];

	assert_true(hex_read("00fF1a", bytes, 3));
	assert_memory_equal(bytes, "\0\xff\x1a", 3);
	hex_write(text, bytes, 3);
	assert_string_equal(text, "00ff1a");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(hex_read(bad[i], bytes, 3));
	assert_false(hex_read(NULL, bytes, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_reaches_its_member),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(words_stand_where_they_may),
		cmocka_unit_test(help_has_every_option_in_lines_of_79),
		cmocka_unit_test(sizes_and_counts_of_words),
		cmocka_unit_test(hex_digits_are_read_and_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
