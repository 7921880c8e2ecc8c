/* SPDX-License-Identifier: Apache-2.0 */
/* Counter files: counting, reading, dead owners, forks, and damaged files. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/counter.h"
#include "base/error.h"
#include "base/rng.h"

static char top[64];

static int setup(void **state)
{
	strcpy(top, "/tmp/test_counter_XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static int count_one(const char *path, void *ctx)
{
	unsigned *n = ctx;

	(*n)++;
	return 0;
}

static unsigned files_listed(void)
{
	unsigned n = 0;

	assert_int_equal(counter_dir_each(top, count_one, &n), 0);
	return n;
}

/* The view of one name in a snapshot of the file; false if it has none. */
static bool look(const char *path, const char *name, struct counter_view *view)
{
	struct counter_snapshot *s;
	unsigned cursor = 0;
	bool found = false;

	assert_int_equal(counter_snapshot_read(path, &s), 0);
	while (!found && counter_snapshot_next(s, &cursor, view))
		found = strcmp(view->name, name) == 0;
	view->hist = NULL;
	counter_snapshot_free(s);
	return found;
}

static const char *const names[] = {"rx_packets", "rx_bytes", "wait_ns"};
static const char *const help[] = {"packets", "bytes", NULL};

static void test_count_and_read(void **state)
{
	struct counter_snapshot *s;
	struct counter_view view;
	struct counter_file *f;
	uint64_t *v, *g;
	struct hist *h;
	unsigned cursor = 0, seen = 0;
	char want[128];

	assert_int_equal(counter_file_create(top, "my app/", 64, 2, &f), 0);
	snprintf(want, sizeof(want), "%s/counters/%d-my_app_", top,
		 (int)getpid());
	assert_string_equal(counter_file_path(f), want);
	v = counter_file_group(f, "nic", names, help, 3);
	assert_non_null(v);
	assert_int_equal((uintptr_t)v % CACHE_LINE, 0);
	v[0] += 7;
	v[1] = UINT64_MAX;
	g = counter_file_gauge(f, "depth", "slots", "queue depth");
	assert_non_null(g);
	*g = 5;
	h = counter_file_hist(f, "latency", "ns", "of a READ");
	assert_non_null(h);
	hist_record_many(h, 1000, 9);

	assert_true(look(want, "nic.rx_packets", &view));
	assert_int_equal(view.kind, COUNTER_COUNT);
	assert_int_equal(view.value, 7);
	assert_string_equal(view.help, "packets");
	assert_true(look(want, "nic.rx_bytes", &view));
	assert_true(view.value == UINT64_MAX);
	assert_string_equal(view.unit, "bytes");
	assert_true(look(want, "nic.wait_ns", &view));
	assert_string_equal(view.unit, "ns");
	assert_string_equal(view.help, "");
	assert_true(look(want, "depth", &view));
	assert_int_equal(view.kind, COUNTER_GAUGE);
	assert_int_equal(view.value, 5);

	assert_int_equal(counter_snapshot_read(want, &s), 0);
	assert_int_equal(counter_snapshot_pid(s), getpid());
	while (counter_snapshot_next(s, &cursor, &view)) {
		seen++;
		if (view.kind == COUNTER_HIST) {
			assert_int_equal(hist_count(view.hist), 9);
			assert_int_equal(
				hist_percentile(view.hist, HIST_MEDIAN), 1000);
		}
	}
	assert_int_equal(seen, 5);
	counter_snapshot_free(s);
	assert_int_equal(files_listed(), 1);
	counter_file_destroy(f);
	assert_int_equal(access(want, F_OK), -1);
	assert_int_equal(files_listed(), 0);
}

static void test_release_and_reuse(void **state)
{
	struct counter_view view;
	struct counter_file *f;
	const char *path;
	uint64_t *first, *again;
	unsigned i;

	assert_int_equal(counter_file_create(top, "p", 8, 1, &f), 0);
	path = counter_file_path(f);
	for (i = 0; i < 100; i++) {
		first = counter_file_group(f, "a", names, help, 3);
		assert_non_null(first);
		assert_int_equal(first[1], 0);
		first[1] = 9;
		assert_true(look(path, "a.rx_bytes", &view));
		counter_file_release(f, first);
		assert_false(look(path, "a.rx_bytes", &view));
	}
	again = counter_file_group(f, "b", names, help, 3);
	assert_ptr_equal(again, first);
	counter_file_release(f, NULL);
	counter_file_destroy(f);
}

/* A full file hides what does not fit, and works. */
static void test_full(void **state)
{
	struct counter_view view;
	struct counter_file *f;
	struct hist *h1, *h2;
	uint64_t *v;

	assert_int_equal(counter_file_create(top, "p", 4, 1, &f), 0);
	v = counter_file_group(f, "a", names, help, 3);
	assert_non_null(v);
	h1 = counter_file_hist(f, "h1", "ns", "");
	assert_non_null(h1);
	assert_true(look(counter_file_path(f), "h1", &view));
	h2 = counter_file_hist(f, "h2", "ns", "");
	assert_non_null(h2);
	hist_record(h2, 5);
	assert_false(look(counter_file_path(f), "h2", &view));
	v = counter_file_group(f, "b", names, help, 3);
	assert_non_null(v);
	v[2] = 1;
	assert_false(look(counter_file_path(f), "b.wait_ns", &view));
	counter_file_release(f, v);
	counter_file_destroy(f);

	assert_int_equal(counter_file_create(top, "p", 0, 0, &f), -EINVAL);
	assert_int_equal(
		counter_file_create(top, "p", COUNTER_ENTRY_LIMIT + 1, 0, &f),
		-EINVAL);
	assert_int_equal(
		counter_file_create(top, "p", 1, COUNTER_HIST_LIMIT + 1, &f),
		-EINVAL);
	assert_int_equal(counter_file_create(top, "p", COUNTER_ENTRY_LIMIT,
					     COUNTER_HIST_LIMIT, &f),
			 0);
	v = counter_file_group(f, "a", names, help, 3);
	assert_non_null(v);
	assert_true(look(counter_file_path(f), "a.rx_bytes", &view));
	counter_file_destroy(f);
}

static void test_heap(void **state)
{
	static const char *const dirs[] = {NULL, "/nonexistent/rack",
					   "/proc/self"};
	size_t i;

	for (i = 0; i < ARRAY_LEN(dirs); i++) {
		struct counter_file *f;
		uint64_t *v;

		assert_int_equal(counter_file_create(dirs[i], "p", 8, 1, &f),
				 0);
		assert_null(counter_file_path(f));
		v = counter_file_group(f, "a", names, NULL, 3);
		assert_non_null(v);
		v[0]++;
		assert_non_null(counter_file_hist(f, "h", "ns", ""));
		counter_file_destroy(f);
	}
}

/* Two files of one name in one process do not meet. */
static void test_same_name(void **state)
{
	struct counter_file *a, *b;

	assert_int_equal(counter_file_create(top, "p", 8, 0, &a), 0);
	assert_int_equal(counter_file_create(top, "p", 8, 0, &b), 0);
	assert_string_not_equal(counter_file_path(a), counter_file_path(b));
	assert_int_equal(files_listed(), 2);
	counter_file_destroy(a);
	assert_int_equal(files_listed(), 1);
	counter_file_destroy(b);
	assert_int_equal(files_listed(), 0);
}

/* kill -9 leaves a file, which the next start or listing removes. */
static void test_killed_owner(void **state)
{
	struct counter_file *f;
	int ready[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (counter_file_create(top, "victim", 8, 0, &f) ||
		    write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(files_listed(), 1); /* alive: stays */
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(counter_dir_clean(top), 1);
	assert_int_equal(files_listed(), 0);
	close(ready[0]);
	close(ready[1]);
}

/* Cleaners that run all the time never take a living owner's file away, though
 * they may see it before it is locked. */
static void test_clean_race(void **state)
{
	struct counter_file *f;
	int status;
	pid_t parent = getpid(), pid;
	unsigned i;

	assert_int_equal(counter_file_create(top, "p", 8, 0, &f), 0);
	counter_file_destroy(f);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		while (getppid() == parent)
			(void)counter_dir_clean(top); /* how many, is open */
		_exit(0);
	}
	for (i = 0; i < 1000; i++) {
		assert_int_equal(counter_file_create(top, "p", 8, 0, &f), 0);
		assert_non_null(counter_file_path(f));
		assert_int_equal(access(counter_file_path(f), F_OK), 0);
		counter_file_destroy(f);
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(files_listed(), 0);
}

static void test_fork(void **state)
{
	struct counter_file *f;
	int status;
	pid_t pid;

	assert_int_equal(counter_file_create(top, "parent", 8, 0, &f), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		counter_file_destroy(f);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* Neither removed by the child nor unlocked by its close. */
	assert_int_equal(access(counter_file_path(f), F_OK), 0);
	assert_int_equal(files_listed(), 1);
	counter_file_destroy(f);
}

/* A child that lives on does not keep the file of a dead parent. */
static void test_orphan(void **state)
{
	int to_child[2], from_child[2], status;
	struct counter_file *f;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(to_child), 0);
	assert_int_equal(pipe(from_child), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		uint64_t *v;

		if (counter_file_create(top, "p", 8, 0, &f))
			_exit(1);
		v = counter_file_gauge(f, "g", "", "");
		if (!v || fork() > 0)
			_exit(v ? 0 : 1); /* the owner dies, uncleanly */
		counter_file_after_fork(f);
		*v = 1; /* still mapped */
		close(to_child[1]);
		if (write(from_child[1], "x", 1) != 1)
			_exit(1);
		(void)!read(to_child[0], &byte, 1); /* until the test ends */
		counter_file_destroy(f);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(from_child[0], &byte, 1), 1);
	assert_int_equal(counter_dir_clean(top), 1);
	close(to_child[0]);
	close(to_child[1]);
	close(from_child[0]);
	close(from_child[1]);
}

/* Killed between making the hidden file and giving it its name. */
static void test_abandoned(void **state)
{
	struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct counter_file *f;
	char path[128];

	assert_int_equal(counter_file_create(top, "p", 8, 0, &f), 0);
	snprintf(path, sizeof(path), "%s/counters/.77-p", top);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(counter_dir_clean(top), 0); /* perhaps in the making */
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	assert_int_equal(counter_dir_clean(top), 1);
	assert_int_equal(access(path, F_OK), -1);
	counter_file_destroy(f);
}

/* Other files in the directory are none of the cleaner's business. */
static void test_strangers(void **state)
{
	char path[128];
	struct counter_file *f;

	assert_int_equal(counter_file_create(top, "p", 8, 0, &f), 0);
	snprintf(path, sizeof(path), "%s/counters/notes", top);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	snprintf(path, sizeof(path), "%s/counters/12-link", top);
	assert_int_equal(symlink("notes", path), 0);
	snprintf(path, sizeof(path), "%s/counters/13-pipe", top);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(counter_dir_clean(top), 0);
	assert_int_equal(files_listed(), 3); /* ours, link, pipe */
	{
		struct counter_snapshot *s;

		assert_int_equal(counter_snapshot_read(path, &s), -EBADMSG);
		snprintf(path, sizeof(path), "%s/counters/12-link", top);
		assert_int_equal(counter_snapshot_read(path, &s), -ELOOP);
	}
	counter_file_destroy(f);
	assert_int_equal(counter_dir_clean("/nonexistent"), 0);
}

static void *read_image(const char *path, size_t *size)
{
	FILE *f = fopen(path, "r");
	void *image = malloc(1 << 20);

	assert_non_null(f);
	assert_non_null(image);
	*size = fread(image, 1, 1 << 20, f);
	fclose(f);
	return image;
}

static void write_image(const char *path, const void *image, size_t size)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(image, 1, size, f), size);
	fclose(f);
}

/* Reads everything of a file that may be damaged. */
static int consume(const char *path)
{
	struct counter_snapshot *s;
	struct counter_view view;
	unsigned cursor = 0;
	int err = counter_snapshot_read(path, &s);

	if (err)
		return err;
	while (counter_snapshot_next(s, &cursor, &view)) {
		assert_true(strlen(view.name) < COUNTER_NAME_MAX);
		assert_true(strlen(view.help) < COUNTER_HELP_MAX);
		if (view.kind == COUNTER_HIST)
			(void)hist_percentile(view.hist, HIST_P999);
	}
	counter_snapshot_free(s);
	return 0;
}

/* Out of line: gcc 12 with UBSan takes a memset here for one at address 0. */
static __attribute__((noinline)) void fill(char *text, int byte, size_t size)
{
	memset(text, byte, size);
}

static void test_damaged(void **state)
{
	struct counter_file *f;
	struct counter_header *h;
	struct counter_entry *e;
	uint8_t *good, *bad;
	char path[128];
	struct rng rng;
	size_t size, i;

	assert_int_equal(counter_file_create(top, "p", 8, 1, &f), 0);
	assert_non_null(counter_file_group(f, "a", names, help, 3));
	assert_non_null(counter_file_hist(f, "h", "ns", "hist"));
	good = read_image(counter_file_path(f), &size);
	bad = read_image(counter_file_path(f), &size);
	snprintf(path, sizeof(path), "%s/image", top);

	/* Cut anywhere. */
	for (i = 0; i < size; i += i < 256 ? 1 : 397) {
		write_image(path, good, i);
		assert_int_equal(consume(path), -EBADMSG);
	}
	/* Fields that point outside. */
	h = (struct counter_header *)bad;
	e = (struct counter_entry *)(h + 1);
#define DAMAGE(statement, want)                        \
	do {                                           \
		memcpy(bad, good, size);               \
		statement;                             \
		write_image(path, bad, size);          \
		assert_int_equal(consume(path), want); \
	} while (0)
	DAMAGE((void)0, 0);
	DAMAGE(atomic_store(&h->entry_count, 9), -EBADMSG);
	DAMAGE(atomic_store(&h->entry_count, UINT32_MAX), -EBADMSG);
	DAMAGE(h->entry_capacity = UINT32_MAX, -EBADMSG);
	DAMAGE(h->entries_offset = UINT32_MAX, -EBADMSG);
	DAMAGE(h->entries_offset = 0, -EBADMSG);
	DAMAGE(h->values_offset = 0, -EBADMSG);
	DAMAGE(h->values_offset = UINT32_MAX, -EBADMSG);
	DAMAGE(h->layout.major = le32_put(9), -EBADMSG); /* checksum */
	DAMAGE(e[0].offset = UINT32_MAX, 0);
	DAMAGE(e[0].offset = 0, 0);
	DAMAGE(e[3].offset = (uint32_t)size - 8, 0);
	DAMAGE(e[3].offset += 4, 0);
	DAMAGE(atomic_store(&e[0].kind, COUNTER_HIST), 0);
	DAMAGE(atomic_store(&e[0].kind, 99), 0);
	DAMAGE(fill(e[0].name, 0xff, COUNTER_NAME_MAX), 0);
	DAMAGE(fill(e[0].help, 'x', COUNTER_HELP_MAX), 0);
	DAMAGE(memset(bad + h->values_offset, 0xff, size - h->values_offset),
	       0);
	/* Random bytes in random places past the layout header: the checksum
	 * would refuse them before. */
	rng_init(&rng, 1);
	for (i = 0; i < 500; i++) {
		unsigned k;

		memcpy(bad, good, size);
		for (k = 0; k < 4; k++)
			bad[64 + rng_below(&rng, 64 + 4 * 128)] =
				(uint8_t)rng_u64(&rng);
		write_image(path, bad, size);
		(void)consume(path); /* whatever it says, it must not crash */
	}
	free(good);
	free(bad);
	counter_file_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		CASE(test_count_and_read), CASE(test_release_and_reuse),
		CASE(test_full),	   CASE(test_heap),
		CASE(test_same_name),	   CASE(test_killed_owner),
		CASE(test_clean_race),	   CASE(test_fork),
		CASE(test_orphan),	   CASE(test_abandoned),
		CASE(test_strangers),	   CASE(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
