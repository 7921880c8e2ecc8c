/* SPDX-License-Identifier: Apache-2.0 */
/* Tallies: counting and finding them again, and files of clients that lie. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/tally.h"

enum {
	IMAGE_MAX = 1 << 20,
	ENTRIES = 3 * TALLY_ENTRIES + 2,
};

static char top[64];

static int setup(void **state)
{
	strcpy(top, "/tmp/test_tally_XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static struct counter_file *new_file(void)
{
	struct counter_file *f;

	assert_int_equal(counter_file_create(top, "client", ENTRIES, 3, &f), 0);
	assert_non_null(counter_file_path(f));
	return f;
}

/* How many there are; the last that is of that kind is in *out, with its
 * median. */
static unsigned look(const char *path, enum tally_kind kind,
		     struct tally_view *out, uint64_t *median)
{
	struct counter_snapshot *s;
	struct tally_view t;
	unsigned cursor = 0, n = 0;

	assert_int_equal(counter_snapshot_read(path, &s), 0);
	assert_int_equal(counter_snapshot_pid(s), getpid());
	assert_string_equal(counter_snapshot_process(s), "client");
	assert_true(counter_snapshot_start_ns(s) > 0);
	while (tally_next(s, &cursor, &t)) {
		n++;
		if (t.kind != kind)
			continue;
		*out = t;
		*median =
			t.latency ? hist_percentile(t.latency, HIST_MEDIAN) : 0;
		out->latency = NULL; /* it goes with the snapshot */
	}
	counter_snapshot_free(s);
	return n;
}

static void test_count_and_read(void **state)
{
	static const char *const names[] = {"refreshes", "connects"};
	struct counter_file *f = new_file();
	struct tally *kv = tally_create(f, 0, TALLY_KV, "users", "ann"), *run;
	struct tally_probe probe = {0};
	struct tally_view t;
	uint64_t median;

	assert_non_null(kv);
	assert_non_null(counter_file_group(f, "client.0", names, NULL, 2));
	run = tally_create(f, 7, TALLY_RUN, "run-17", "");
	assert_non_null(run);
	tally_done_bytes(kv, TALLY_READS, 100);
	tally_done_bytes(kv, TALLY_WRITES, 30);
	tally_done(kv, TALLY_ERRORS);
	hist_record(&kv->latency, 20);
	tally_probe_start(&probe, &t, 1000);
	assert_false(tally_probe_is_idle(&probe));
	probe.ended = 3;
	tally_probe_end(&probe, run, 1024);
	assert_true(tally_probe_is_idle(&probe));
	assert_int_equal(hist_count(&run->latency), 3);

	assert_int_equal(look(counter_file_path(f), TALLY_KV, &t, &median), 2);
	assert_int_equal(t.number, 0);
	assert_string_equal(t.object, "users");
	assert_string_equal(t.tenant, "ann");
	assert_int_equal(t.count[TALLY_READS], 1);
	assert_int_equal(t.count[TALLY_READ_BYTES], 100);
	assert_int_equal(t.count[TALLY_WRITE_BYTES], 30);
	assert_int_equal(t.count[TALLY_ERRORS], 1);
	assert_int_equal(median, 20);
	assert_int_equal(look(counter_file_path(f), TALLY_RUN, &t, &median), 2);
	assert_int_equal(t.number, 7);
	assert_string_equal(t.object, "run-17");
	assert_int_equal(median, 24);

	/* One that is given back is gone; its room serves the next. */
	counter_file_release(f, kv);
	assert_int_equal(look(counter_file_path(f), TALLY_RUN, &t, &median), 1);
	kv = tally_create(f, 8, TALLY_INDEX, "names", "bob");
	assert_int_equal(look(counter_file_path(f), TALLY_INDEX, &t, &median),
			 2);
	assert_int_equal(t.count[TALLY_READS], 0);
	assert_int_equal(median, 0);
	assert_string_equal(t.tenant, "bob");

	/* Whole or not at all: a file that is full shows no half of one. */
	assert_non_null(tally_create(f, 9, TALLY_NBD, "d", ""));
	assert_non_null(tally_create(f, 10, TALLY_NBD, "e", ""));
	assert_int_equal(look(counter_file_path(f), TALLY_NBD, &t, &median), 3);
	assert_string_equal(t.object, "d");
	counter_file_destroy(f);
}

/* ---- files of clients that lie ------------------------------------------- */

struct image {
	uint8_t good[IMAGE_MAX], bad[IMAGE_MAX];
	size_t size_bytes;
	char path[128];
};

/* Everything that a reader asks for; how many tallies there are, or -errno. */
static int consume(const struct image *im)
{
	struct counter_snapshot *s;
	struct tally_view t;
	unsigned cursor = 0;
	int fd, err, n = 0;

	fd = open(im->path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, im->bad, im->size_bytes), im->size_bytes);
	close(fd);
	err = counter_snapshot_read(im->path, &s);
	if (err)
		return err;
	for (; tally_next(s, &cursor, &t); n++) {
		struct hist sum = {0};

		assert_true(n < ENTRIES);
		assert_true(t.kind < TALLY_KIND_COUNT);
		assert_true(strlen(t.object) < sizeof(t.object));
		for (const char *c = t.object; *c; c++)
			assert_true(*c >= 0x20 && *c < 0x7f);
		assert_true(strlen(t.tenant) < sizeof(t.tenant));
		if (t.latency) {
			hist_merge(&sum, t.latency);
			(void)hist_percentile(&sum, HIST_P99);
			(void)hist_count(&sum);
		}
	}
	counter_snapshot_free(s);
	return n;
}

static void load_image(struct image *im, const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, im->good, IMAGE_MAX);
	assert_true(n > 0 && n < IMAGE_MAX);
	close(fd);
	im->size_bytes = (size_t)n;
	snprintf(im->path, sizeof(im->path), "%s/counters/%d-lies", top,
		 (int)getpid());
}

static void test_lies(void **state)
{
	static struct image im;
	struct counter_file *f = new_file();
	struct counter_header *h = (struct counter_header *)im.bad;
	struct counter_entry *e = (struct counter_entry *)(h + 1);
	struct tally *one, *two;
	struct rng rng;

	one = tally_create(f, 0, TALLY_KV, "users", "ann");
	two = tally_create(f, 1, TALLY_RUN, "run-1", "bob");
	assert_non_null(one);
	assert_non_null(two);
	hist_record(&two->latency, 5);
	load_image(&im, counter_file_path(f));
#define LIE(statement, want)                            \
	do {                                            \
		memcpy(im.bad, im.good, im.size_bytes); \
		statement;                              \
		assert_int_equal(consume(&im), want);   \
	} while (0)
#define NAME(i, text) strcpy(e[i].name, text)
#define TEXT(i)	      ((char *)im.bad + e[i].offset)
	LIE((void)0, 2);
	/* Of another process. */
	LIE(h->pid = 1, -EBADMSG);
	/* Names that are none, or of another tally. */
	LIE(NAME(0, "tally."), 2);
	LIE(NAME(0, "tally..reads"), 2);
	LIE(NAME(0, "tally.-1.reads"), 2);
	LIE(NAME(0, "tally.99999999999999999999.reads"), 2);
	LIE(NAME(0, "tally.0"), 2);
	LIE(NAME(1, "tally.1.reads"), 2);
	LIE(memset(e[0].name, '9', COUNTER_NAME_MAX), 2);
	/* Values of another kind, or elsewhere. */
	LIE(atomic_store(&e[TALLY_COUNT].kind, COUNTER_COUNT), 1);
	LIE(atomic_store(&e[0].kind, COUNTER_TEXT), 2);
	LIE(atomic_store(&e[0].kind, COUNTER_HIST), 2);
	LIE(e[TALLY_COUNT].offset = (uint32_t)im.size_bytes - 8, 1);
	LIE(e[TALLY_COUNT].offset = 0, 1);
	LIE(e[TALLY_ENTRIES - 1].offset = UINT32_MAX - 7, 2);
	LIE(e[TALLY_ENTRIES - 1].offset = (uint32_t)im.size_bytes - 64, 2);
	/* Texts without an end, and for terminals. */
	LIE(memset(TEXT(TALLY_COUNT + 1), 'x', COUNTER_TEXT_MAX), 2);
	LIE(strcpy(TEXT(TALLY_COUNT + 1), "\033[2J\n\"\\"), 2);
	LIE(strcpy(TEXT(TALLY_COUNT), "teapot"), 2); /* a kind of its own */
	LIE(TEXT(TALLY_COUNT)[0] = 0, 1);
	/* Numbers as large as can be. */
	LIE(memset(im.bad + h->values_offset, 0xff,
		   im.size_bytes - h->values_offset),
	    2);
	rng_init(&rng, 1);
	for (unsigned i = 0; i < 2000; i++) {
		memcpy(im.bad, im.good, im.size_bytes);
		for (unsigned k = 0; k < 6; k++)
			im.bad[64 +
			       rng_below(&rng, 64 + 2 * TALLY_ENTRIES * 128)] =
				(uint8_t)rng_u64(&rng);
		(void)consume(&im); /* whatever it says, it must not crash */
	}
	counter_file_destroy(f);
}

static void test_names(void **state)
{
	for (unsigned i = 0; i < TALLY_KIND_COUNT; i++)
		assert_true(strlen(tally_kind_name((enum tally_kind)i)) < 16);
	assert_string_equal(tally_kind_name((enum tally_kind)99), "other");
	assert_string_equal(tally_count_name(TALLY_READ_BYTES), "read_bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_count_and_read, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_lies, setup, teardown),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
