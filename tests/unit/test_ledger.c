/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in transactions: the same promises of both back ends, and what a file
 * must not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "ledger/ledger.h"
#include "ledger/ledger_mem.h"

struct bed {
	char dir[64];
	char path[96];
};

static void bed_make(struct bed *b)
{
	snprintf(b->dir, sizeof(b->dir), "/tmp/aq-ledger-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	snprintf(b->path, sizeof(b->path), "%s/c.db", b->dir);
}

static void bed_end(struct bed *b)
{
	static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
	char path[128];

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		snprintf(path, sizeof(path), "%s%s", b->path, ends[i]);
		(void)unlink(path);
	}
	assert_int_equal(rmdir(b->dir), 0);
}

static int print_row(void *user, const char *kind, const char *key,
		     const char *value)
{
	char *out = user;

	snprintf(out + strlen(out), 400 - strlen(out), "%s %s %s;", kind, key,
		 value);
	return 0;
}

static void expect_rows(struct ledger *l, const char *want)
{
	char got[400] = "";

	assert_int_equal(ledger_read(l, print_row, got), 0);
	assert_string_equal(got, want);
}

/* What every back end promises. */
static void promises(struct ledger *l)
{
	const struct ledger_change two[] = {{"node", "m0", "{\"a\":1}"},
					    {"node", "m1", "{}"}};
	const struct ledger_change other[] = {{"node", "m0", NULL},
					      {"tenant", "a", "{\"q\":2}"},
					      {"node", "gone", NULL}};
	struct ledger_change many[LEDGER_CHANGES_MAX + 1];
	struct ledger_change bad = {"node", "m 1", "{}"};
	uint64_t first = 0, second = 0;

	assert_int_equal(ledger_lead(l, "unix:/a", &first), 0);
	assert_int_equal(ledger_commit(l, first, two, 2), 0);
	expect_rows(l, "node m0 {\"a\":1};node m1 {};");
	assert_int_equal(ledger_commit(l, first, other, 3), 0);
	expect_rows(l, "node m1 {};tenant a {\"q\":2};");
	/* The shape of rows, before anything happens. */
	assert_int_equal(ledger_commit(l, first, &bad, 1), -EINVAL);
	bad = (struct ledger_change){"seventeen-letters", "m", "{}"};
	assert_int_equal(ledger_commit(l, first, &bad, 1), -EINVAL);
	bad = (struct ledger_change){"", "m", "{}"};
	assert_int_equal(ledger_commit(l, first, &bad, 1), -EINVAL);
	for (unsigned i = 0; i <= LEDGER_CHANGES_MAX; i++)
		many[i] = two[0];
	assert_int_equal(ledger_commit(l, first, many, LEDGER_CHANGES_MAX + 1),
			 -EINVAL);
	assert_int_equal(ledger_commit(l, first, many, LEDGER_CHANGES_MAX), 0);
	/* A new term ends the old one. */
	assert_int_equal(ledger_lead(l, "unix:/a", &second), 0);
	assert_true(second > first);
	assert_int_equal(ledger_commit(l, first, other, 3), -ESTALE);
	assert_int_equal(ledger_commit(l, second, other, 3), 0);
	expect_rows(l, "node m1 {};tenant a {\"q\":2};");
}

static void memory_keeps_its_promises(void **state)
{
	struct ledger *l;

	assert_int_equal(ledger_open("memory", &l), 0);
	promises(l);
	ledger_close(l);
}

static void a_file_keeps_its_promises(void **state)
{
	char leader[LEDGER_WHO_MAX], text[128];
	struct ledger *l;
	uint64_t term;
	struct bed b;

	bed_make(&b);
	snprintf(text, sizeof(text), "sqlite:%s", b.path);
	assert_int_equal(ledger_open(text, &l), 0);
	promises(l);
	ledger_close(l);
	/* And it is still there. */
	assert_int_equal(ledger_open(text, &l), 0);
	expect_rows(l, "node m1 {};tenant a {\"q\":2};");
	assert_int_equal(ledger_leader(l, leader), 0);
	assert_string_equal(leader, "unix:/a");
	assert_int_equal(ledger_lead(l, "unix:/b", &term), 0);
	assert_int_equal(term, 3);
	ledger_close(l);
	bed_end(&b);
}

/* Two processes: the second one does not lead, and sees the rows. */
static void a_file_has_one_leader(void **state)
{
	const struct ledger_change c = {"node", "m0", "{}"};
	struct ledger *a, *b;
	uint64_t term;
	struct bed bed;

	bed_make(&bed);
	assert_int_equal(ledger_sqlite_open(bed.path, &a), 0);
	assert_int_equal(ledger_sqlite_open(bed.path, &b), 0);
	assert_int_equal(ledger_lead(a, "a", &term), 0);
	assert_int_equal(ledger_commit(a, term, &c, 1), 0);
	assert_int_equal(ledger_lead(b, "b", &term), -EBUSY);
	expect_rows(b, "node m0 {};");
	ledger_close(a);
	assert_int_equal(ledger_lead(b, "b", &term), 0);
	assert_int_equal(term, 2);
	ledger_close(b);
	bed_end(&bed);
}

static void execute(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_newer_or_foreign_file_is_refused(void **state)
{
	struct ledger *l;
	struct bed b;

	bed_make(&b);
	assert_int_equal(ledger_sqlite_open(b.path, &l), 0);
	ledger_close(l);
	execute(b.path, "PRAGMA user_version = 7");
	assert_int_equal(ledger_sqlite_open(b.path, &l), -EPROTONOSUPPORT);
	assert_non_null(strstr(error_last(), "schema 7"));
	assert_non_null(strstr(error_last(), "knows 1"));
	bed_end(&b);

	bed_make(&b);
	execute(b.path, "CREATE TABLE mine(x)");
	assert_int_equal(ledger_sqlite_open(b.path, &l), -EBADMSG);
	assert_non_null(strstr(error_last(), "no ledger"));
	bed_end(&b);

	bed_make(&b);
	assert_int_equal(ledger_open("sqlite:", &l), -EINVAL);
	assert_int_equal(ledger_open("etcd:x", &l), -EINVAL);
	assert_int_equal(ledger_sqlite_open("/nowhere/c.db", &l), -ENOENT);
	assert_int_equal(rmdir(b.dir), 0);
}

static int count_row(void *user, const char *kind, const char *key,
		     const char *value)
{
	++*(unsigned *)user;
	return 0;
}

/* Whatever byte is wrong: it is refused, or all rows are as they were. */
static void a_damaged_file_is_never_half_read(void **state)
{
	struct ledger_change c[40];
	unsigned refused = 0, rows;
	char key[40][8];
	struct ledger *l;
	uint64_t term;
	long size;
	struct bed b;
	FILE *f;

	bed_make(&b);
	assert_int_equal(ledger_sqlite_open(b.path, &l), 0);
	assert_int_equal(ledger_lead(l, "a", &term), 0);
	for (unsigned i = 0; i < 40; i++) {
		snprintf(key[i], sizeof(key[i]), "m%u", i);
		c[i] = (struct ledger_change){"node", key[i],
					      "{\"address\":\"somewhere\"}"};
	}
	assert_int_equal(ledger_commit(l, term, c, 40), 0);
	ledger_close(l);
	f = fopen(b.path, "r+");
	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	size = ftell(f);
	for (long at = 0; at < size; at += 97) {
		int was;

		assert_int_equal(fseek(f, at, SEEK_SET), 0);
		was = fgetc(f);
		assert_int_equal(fseek(f, at, SEEK_SET), 0);
		assert_int_equal(fputc(was ^ 0xff, f), was ^ 0xff);
		assert_int_equal(fflush(f), 0);
		rows = 0;
		if (ledger_sqlite_open(b.path, &l)) {
			refused++;
		} else {
			/* One text may be another one now, which is for who
			 * reads rows to see; but none is lost. */
			if (ledger_read(l, count_row, &rows))
				refused++;
			else
				assert_int_equal(rows, 40);
			ledger_close(l);
		}
		assert_int_equal(fseek(f, at, SEEK_SET), 0);
		assert_int_equal(fputc(was, f), was);
		assert_int_equal(fflush(f), 0);
	}
	(void)fclose(f);
	assert_true(refused > 10);
	assert_int_equal(truncate(b.path, 100), 0);
	assert_int_equal(ledger_sqlite_open(b.path, &l), -EBADMSG);
	bed_end(&b);
}

/* kill -9 while it commits: either all of a transaction or nothing. */
static void a_killed_writer_leaves_whole_transactions(void **state)
{
	struct bed b;

	bed_make(&b);
	for (unsigned round = 0; round < 12; round++) {
		char rows[400] = "", *at;
		unsigned pairs = 0;
		struct ledger *l;
		pid_t pid = fork();

		if (pid == 0) {
			uint64_t term;

			if (ledger_sqlite_open(b.path, &l) ||
			    ledger_lead(l, "a", &term))
				_exit(1);
			for (unsigned i = 0;; i++) {
				char value[32];
				struct ledger_change c[2] = {
					{"node", "m0", value},
					{"tenant", "t0", value}};

				snprintf(value, sizeof(value), "{\"n\":%u}", i);
				if (ledger_commit(l, term, c, 2))
					_exit(2);
			}
		}
		usleep(3000 + round * 2500);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(ledger_sqlite_open(b.path, &l), 0);
		assert_int_equal(ledger_read(l, print_row, rows), 0);
		ledger_close(l);
		for (at = rows; (at = strstr(at, "{\"n\":")); at++)
			pairs++;
		assert_true(pairs == 0 || pairs == 2);
		if (pairs == 2) {
			unsigned n0, n1;

			assert_int_equal(sscanf(rows,
						"node m0 {\"n\":%u};tenant t0 "
						"{\"n\":%u};",
						&n0, &n1),
					 2);
			assert_int_equal(n0, n1);
		}
	}
	bed_end(&b);
}

/* Several handles of one store, as several controllers of one etcd. */
static void a_lease_ends(void **state)
{
	const struct ledger_change c = {"node", "m0", "{}"};
	struct ledger_store *s;
	struct ledger *a, *b;
	uint64_t one, two;
	char who[LEDGER_WHO_MAX];

	assert_int_equal(ledger_store_create(&s), 0);
	ledger_store_set_lease(s, 2000);
	assert_int_equal(ledger_mem_open(s, &a), 0);
	assert_int_equal(ledger_mem_open(s, &b), 0);
	assert_int_equal(ledger_leader(a, who), -ENOENT);
	assert_int_equal(ledger_lead(a, "a", &one), 0);
	assert_int_equal(ledger_lead(b, "b", &two), -EBUSY);
	assert_int_equal(ledger_leader(b, who), 0);
	assert_string_equal(who, "a");
	ledger_store_set_now(s, 1900);
	assert_int_equal(ledger_keep(a, one), 0);
	ledger_store_set_now(s, 3800);
	assert_int_equal(ledger_lead(b, "b", &two), -EBUSY);
	ledger_store_set_now(s, 4000);
	assert_int_equal(ledger_lead(b, "b", &two), 0);
	assert_int_equal(ledger_keep(a, one), -ESTALE);
	assert_int_equal(ledger_commit(a, one, &c, 1), -ESTALE);
	expect_rows(b, "");
	assert_int_equal(ledger_commit(b, two, &c, 1), 0);
	assert_int_equal(ledger_store_term(s), two);
	ledger_close(a);
	ledger_close(b);
	ledger_store_destroy(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_keeps_its_promises),
		cmocka_unit_test(a_file_keeps_its_promises),
		cmocka_unit_test(a_file_has_one_leader),
		cmocka_unit_test(a_newer_or_foreign_file_is_refused),
		cmocka_unit_test(a_damaged_file_is_never_half_read),
		cmocka_unit_test(a_killed_writer_leaves_whole_transactions),
		cmocka_unit_test(a_lease_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
