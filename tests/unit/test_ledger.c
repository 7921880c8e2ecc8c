/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in transactions: the same promises of all back ends, with a real etcd;
 * what a file and what is in etcd must not be; copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "etcd_rig.h"
#include "ledger/etcd_call.h"
#include "ledger/etcd_text.h"
#include "ledger/ledger_copy.h"
#include "ledger/ledger_mem.h"

struct bed {
	char dir[64];
	char path[96];
	char store[112];
};

static struct etcd_rig *rig_of(void **state)
{
	return *state;
}

static void bed_make(struct bed *b)
{
	snprintf(b->dir, sizeof(b->dir), "/tmp/aq-ledger-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	snprintf(b->path, sizeof(b->path), "%s/c.db", b->dir);
	snprintf(b->store, sizeof(b->store), "sqlite:%s", b->path);
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

/* ---- back ends ---------------------------------------------------------- */

enum kind {
	MEMORY,
	FILE_OF_SQLITE,
	ETCD,
	KINDS,
};

/* A place for rows, and handles of it. */
struct place {
	enum kind kind;
	struct ledger_store *store;
	struct bed bed;
	struct ledger_place where;
	char rack[16];
};

/* Each place in etcd is a rack of its own. False: there is no etcd here. */
static bool place_make(void **state, enum kind kind, struct place *p)
{
	static unsigned racks;

	*p = (struct place){.kind = kind};
	if (kind == MEMORY) {
		assert_int_equal(ledger_store_create(&p->store), 0);
	} else if (kind == FILE_OF_SQLITE) {
		bed_make(&p->bed);
		p->where.store = p->bed.store;
	} else {
		snprintf(p->rack, sizeof(p->rack), "r%u", racks++);
		p->where = (struct ledger_place){.store = rig_of(state)->store,
						 .rack = p->rack};
	}
	return kind != ETCD || rig_of(state)->pid;
}

static struct ledger *place_open(struct place *p)
{
	struct ledger *l;

	if (p->kind == MEMORY)
		assert_int_equal(ledger_mem_open(p->store, &l), 0);
	else
		assert_int_equal(ledger_open(&p->where, &l), 0);
	return l;
}

static void place_end(struct place *p)
{
	if (p->kind == MEMORY)
		ledger_store_destroy(p->store);
	else if (p->kind == FILE_OF_SQLITE)
		bed_end(&p->bed);
}

/* The same test of every back end. */
static void for_all(void **state, void (*test)(struct place *p))
{
	for (int k = 0; k < KINDS; k++) {
		struct place p;

		if (place_make(state, k, &p))
			test(&p);
		else
			print_message("etcd is not installed\n");
		place_end(&p);
	}
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

static void keeps_and_remembers(struct place *p)
{
	struct ledger *l = place_open(p);
	char who[LEDGER_WHO_MAX];
	uint64_t before, term;

	promises(l);
	assert_int_equal(ledger_leader(l, who), 0);
	assert_string_equal(who, "unix:/a");
	assert_int_equal(ledger_term(l, &before), 0);
	ledger_close(l);
	/* And it is still there. */
	l = place_open(p);
	expect_rows(l, "node m1 {};tenant a {\"q\":2};");
	assert_int_equal(ledger_lead(l, "b", &term), 0);
	assert_true(term > before);
	ledger_close(l);
}

static void all_keep_their_promises(void **state)
{
	for_all(state, keeps_and_remembers);
}

/* Two controllers: the second one does not lead, and sees the rows. */
static void one_at_a_time(struct place *p)
{
	const struct ledger_change c = {"node", "m0", "{}"};
	struct ledger *a = place_open(p), *b = place_open(p);
	uint64_t one, two;

	assert_int_equal(ledger_lead(a, "a", &one), 0);
	assert_int_equal(ledger_commit(a, one, &c, 1), 0);
	assert_int_equal(ledger_lead(b, "b", &two), -EBUSY);
	expect_rows(b, "node m0 {};");
	assert_int_equal(ledger_raise(b, 99), -EBUSY);
	/* What is unchanged need not be read again. */
	assert_int_equal(ledger_lead(b, "b", &two), -EBUSY);
	assert_int_equal(b->is_unchanged, p->kind == ETCD);
	assert_int_equal(ledger_commit(a, one, &c, 1), 0);
	assert_int_equal(ledger_lead(b, "b", &two), -EBUSY);
	assert_false(b->is_unchanged);
	assert_int_equal(ledger_keep(a, one), 0);
	ledger_close(a);
	assert_int_equal(ledger_lead(b, "b", &two), 0);
	assert_true(two > one);
	ledger_close(b);
}

static void one_leads_at_a_time(void **state)
{
	for_all(state, one_at_a_time);
}

/* Terms go on from where they were in another ledger. */
static void counts_from(struct place *p)
{
	const struct ledger_change c = {"node", "m0", "{}"};
	struct ledger *l = place_open(p);
	uint64_t term;

	assert_int_equal(ledger_raise(l, 100000), 0);
	assert_int_equal(ledger_raise(l, 5), 0);
	assert_int_equal(ledger_lead(l, "a", &term), 0);
	assert_true(term > 100000 && term < 200000);
	assert_int_equal(ledger_commit(l, 1, &c, 1), -ESTALE);
	assert_int_equal(ledger_commit(l, term - 100000, &c, 1), -ESTALE);
	assert_int_equal(ledger_keep(l, term), 0);
	assert_int_equal(ledger_commit(l, term, &c, 1), 0);
	ledger_close(l);
}

static void terms_go_on(void **state)
{
	for_all(state, counts_from);
}

/* ---- copies ------------------------------------------------------------- */

enum {
	MANY = 257, /* rows: more than two transactions */
};

static void fill(struct ledger *l, uint64_t term)
{
	struct ledger_change c[LEDGER_CHANGES_MAX];
	char key[LEDGER_CHANGES_MAX][16];

	for (unsigned i = 0; i < MANY;) {
		unsigned n = 0;

		for (; n < LEDGER_CHANGES_MAX && i < MANY; n++, i++) {
			snprintf(key[n], sizeof(key[n]), "m%03u", i);
			c[n] = (struct ledger_change){"node", key[n],
						      "{\"text\":\"\u00e4\"}"};
		}
		assert_int_equal(ledger_commit(l, term, c, n), 0);
	}
}

static int count_row(void *user, const char *kind, const char *key,
		     const char *value)
{
	++*(unsigned *)user;
	return 0;
}

/* From each back end to each. */
static void move_rows(void **state, enum kind from, enum kind to)
{
	struct ledger_copy c = {0}, again = {0};
	struct place a, b;
	struct ledger *l;
	uint64_t term;
	unsigned rows = 0;
	char *text;
	size_t len;
	bool is_there = place_make(state, from, &a);

	is_there &= place_make(state, to, &b);
	if (is_there) {
		l = place_open(&a);
		assert_int_equal(ledger_lead(l, "a", &term), 0);
		fill(l, term);
		assert_int_equal(ledger_copy_read(l, &c), 0);
		assert_int_equal(c.rows.count, MANY);
		assert_true(c.term >= term);
		text = ledger_copy_print(&c, &len);
		assert_non_null(text);
		assert_int_equal(ledger_copy_parse(text, len, &again), 0);
		free(text);
		ledger_close(l);
		l = place_open(&b);
		assert_int_equal(ledger_copy_write(l, &again), 0);
		assert_int_equal(ledger_read(l, count_row, &rows), 0);
		assert_int_equal(rows, MANY);
		ledger_close(l);
		l = place_open(&b);
		assert_int_equal(ledger_copy_write(l, &again), -EEXIST);
		assert_non_null(strstr(error_last(), "257 rows"));
		assert_int_equal(ledger_lead(l, "b", &term), 0);
		assert_true(term > c.term);
		ledger_close(l);
		ledger_copy_free(&c);
		ledger_copy_free(&again);
	}
	place_end(&a);
	place_end(&b);
}

static void rows_move_between_all(void **state)
{
	for (int from = 0; from < KINDS; from++)
		for (int to = 0; to < KINDS; to++)
			move_rows(state, from, to);
}

/* A load that has broken off: nobody reads it, and it can be done again. */
static void is_never_half(struct place *p)
{
	const struct ledger_change half[] = {
		{"node", "left", "{}"},
		{LEDGER_HALF_KIND, LEDGER_HALF_KEY, "{}"}};
	struct ledger_copy c = {.term = 7};
	struct ledger *l = place_open(p);
	unsigned rows = 0;
	uint64_t term;

	assert_int_equal(ledger_lead(l, "load", &term), 0);
	assert_int_equal(ledger_commit(l, term, half, 2), 0);
	assert_int_equal(ledger_read(l, count_row, &rows), -EBADMSG);
	assert_non_null(strstr(error_last(), "do it again"));
	assert_int_equal(ledger_rows_add(&c.rows, "node", "m0", "{}"), 0);
	ledger_close(l);
	l = place_open(p);
	assert_int_equal(ledger_copy_write(l, &c), 0);
	expect_rows(l, "node m0 {};");
	ledger_close(l);
	ledger_copy_free(&c);
}

static void a_load_that_breaks_off_is_not_read(void **state)
{
	for_all(state, is_never_half);
}

static void texts_that_are_no_copy(void **state)
{
#define HEAD "{\"aquifer\":\"ledger\",\"schema\":1,\"term\":3,\"rows\":1}\n"
	static const struct {
		const char *text;
		int err;
		const char *words;
	} rows[] = {
		{"", -EBADMSG, "0 rows"},
		{"hello\n", -EBADMSG, "line 1"},
		{"{}\n", -EBADMSG, "no dump"},
		{"{\"aquifer\":\"ledger\",\"schema\":9}", -EPROTONOSUPPORT,
		 "schema 9, this program knows 1"},
		{"{\"aquifer\":\"ledger\",\"schema\":1}", -EBADMSG, "term"},
		{"{\"aquifer\":\"ledger\",\"schema\":1,\"term\":-1}", -EBADMSG,
		 "term"},
		{HEAD, -EBADMSG, "0 rows and should have 1"},
		{HEAD "{\"kind\":\"node\"}", -EBADMSG, "line 2"},
		{HEAD "{\"kind\":\"node\",\"key\":\"m 0\",\"value\":{}}",
		 -EBADMSG, "no blank"},
		{HEAD "{\"kind\":\"node\",\"key\":\"m0\",\"value\":1}",
		 -EBADMSG, "line 2"},
		{HEAD "{\"kind\":\"load\",\"key\":\"m0\",\"value\":{}}",
		 -EBADMSG, "place"},
		{HEAD "{\"kind\":\"node\",\"key\":\"m0\",\"value\":{}}\n"
		      "{\"kind\":\"node\",\"key\":\"m0\",\"value\":{}}",
		 -EBADMSG, "place"},
		{HEAD "{\"kind\":\"node\",\"key\":\"m0\",\"value\":{}}\n"
		      "{\"kind\":\"node\",\"key\":\"m1\",\"value\":{}}",
		 -EBADMSG, "2 rows"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ledger_copy c;

		assert_int_equal(ledger_copy_parse(rows[i].text,
						   strlen(rows[i].text), &c),
				 rows[i].err);
		if (!strstr(error_last(), rows[i].words))
			fail_msg("%zu: '%s'", i, error_last());
	}
}

/* ---- files -------------------------------------------------------------- */

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
	assert_int_equal(ledger_sqlite_open("/nowhere/c.db", &l), -ENOENT);
	assert_int_equal(rmdir(b.dir), 0);
}

/* Ten members. */
#define TEN                                                           \
	"etcd:http://a,http://a,http://a,http://a,http://a,http://a," \
	"http://a,http://a,http://a,http://a"

static void no_places(void **state)
{
	static const char *const texts[] = {
		"sqlite:",
		"etcd:",
		"etcd:x",
		"etcd:http://",
		"etcd:http://a:1,",
		"etcd:ftp://a:1",
		"etcd:http://a:1/path",
		"etcd:http://user@a:1",
		"etcd:http://a b:1",
		"mysql:x",
		TEN,
	};
	struct ledger_place p = {.cert = "only.pem"};
	struct ledger *l;

	p.store = "etcd:https://a:1";
	assert_int_equal(ledger_open(&p, &l), -EINVAL);
	p.cert = NULL;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		p.store = texts[i];
		assert_int_equal(ledger_open(&p, &l), -EINVAL);
	}
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

/* ---- etcd --------------------------------------------------------------- */

/* A question to etcd that is not the ledger's own. */
static json_t *ask_etcd(void **state, const char *path, json_t *body)
{
	const struct ledger_place none = {0};
	struct etcd_call *c;
	json_t *answer = NULL;

	assert_int_equal(etcd_call_open(rig_of(state)->url, &none, &c), 0);
	assert_int_equal(etcd_call_ask(c, path, body, 0, NULL, &answer), 0);
	etcd_call_close(c);
	return answer;
}

static bool has_etcd(void **state, struct place *p)
{
	if (place_make(state, ETCD, p))
		return true;
	skip();
	return false;
}

/* Who was away for longer than its lease, and comes back: whatever it still
 * wants to write is refused. */
static void a_lease_of_etcd_ends(void **state)
{
	const struct ledger_change c = {"node", "m0", "{}"};
	struct ledger *a, *b;
	uint64_t one, two;
	struct place p;
	int err;

	if (!has_etcd(state, &p))
		return;
	a = place_open(&p);
	b = place_open(&p);
	assert_int_equal(ledger_lead(a, "a", &one), 0);
	assert_int_equal(ledger_commit(a, one, &c, 1), 0);
	do {
		usleep(50000);
		err = ledger_lead(b, "b", &two);
	} while (err == -EBUSY);
	assert_int_equal(err, 0);
	assert_true(two > one);
	assert_int_equal(ledger_commit(a, one, &c, 1), -ESTALE);
	assert_int_equal(ledger_keep(a, one), -ESTALE);
	assert_int_equal(ledger_commit(a, one, &c, 1), -ESTALE);
	expect_rows(b, "node m0 {};");
	/* Its end does not end the other one's term. */
	ledger_close(a);
	assert_int_equal(ledger_keep(b, two), 0);
	assert_int_equal(ledger_commit(b, two, &c, 1), 0);
	ledger_close(b);
}

static int take_meta(void *user, const struct etcd_kv *kv)
{
	void **both = user;

	return etcd_meta_take(both[0], both[1], kv);
}

static void meta_of(void **state, const struct place *p, struct etcd_meta *m)
{
	char prefix[32], last[ETCD_KEY_MAX];
	void *both[] = {m, prefix};
	json_t *answer;
	bool more;

	*m = (struct etcd_meta){0};
	snprintf(prefix, sizeof(prefix), "aquifer/%s/", p->rack);
	answer = ask_etcd(state, "/v3/kv/range", etcd_ask_meta(prefix));
	assert_int_equal(
		etcd_answer_range(answer, take_meta, both, last, &more), 0);
	json_decref(answer);
}

/* A transaction whose answer was lost has happened, and the same one again is
 * known for it; so is one that comes late. */
static void a_copy_of_a_transaction_happens_once(void **state)
{
	const struct ledger_change c = {"node", "m0", "{\"n\":1}"};
	const struct ledger_change d = {"node", "m0", "{\"n\":2}"};
	struct etcd_term t;
	struct etcd_meta m;
	struct ledger *l;
	struct place p;
	uint64_t term;
	char prefix[32];

	if (!has_etcd(state, &p))
		return;
	snprintf(prefix, sizeof(prefix), "aquifer/%s/", p.rack);
	l = place_open(&p);
	assert_int_equal(ledger_lead(l, "a", &term), 0);
	meta_of(state, &p, &m);
	t = (struct etcd_term){m.lead_create, m.lead_mod, m.lead_lease, 0};
	/* As if another member had done it, and nobody had heard of that. */
	json_decref(ask_etcd(state, "/v3/kv/txn",
			     etcd_ask_commit(prefix, &t, "a", &c, 1)));
	assert_int_equal(ledger_commit(l, term, &c, 1), 0);
	assert_int_equal(ledger_commit(l, term, &d, 1), 0);
	/* The first one again, late. */
	json_decref(ask_etcd(state, "/v3/kv/txn",
			     etcd_ask_commit(prefix, &t, "a", &c, 1)));
	expect_rows(l, "node m0 {\"n\":2};");
	assert_int_equal(ledger_commit(l, term, &c, 1), 0);
	ledger_close(l);
}

static json_t *coded(const char *text)
{
	char out[128];

	sodium_bin2base64(out, sizeof(out), (const unsigned char *)text,
			  strlen(text), sodium_base64_VARIANT_ORIGINAL);
	return json_string(out);
}

static void put(void **state, const struct place *p, const char *rest,
		const char *value)
{
	char key[64];

	snprintf(key, sizeof(key), "aquifer/%s/%s", p->rack, rest);
	json_decref(ask_etcd(state, "/v3/kv/put",
			     json_pack("{s:o, s:o}", "key", coded(key), "value",
				       coded(value))));
}

/* Whatever somebody else has written there is never half read. */
static void what_is_no_ledger_in_etcd(void **state)
{
	static const struct {
		const char *key, *value;
		int err;
		const char *words;
	} rows[] = {
		{".schema", "7", -EPROTONOSUPPORT,
		 "has schema 7, this program knows 1"},
		{".schema", "x", -EBADMSG, "no number"},
		{".lead", "nobody", -EBADMSG, "names nobody"},
		{".term", "99999999999999999999", -EBADMSG, "no number"},
		{"node", "{}", -EBADMSG, "no row"},
		{"node/m 0", "{}", -EBADMSG, "no blank"},
		{"Node/m0", "{}", -EBADMSG, "a-z"},
		{"node/m0", "{}", -EBADMSG, "no schema"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned count = 0;
		struct ledger *l;
		struct place p;
		uint64_t term;

		if (!has_etcd(state, &p))
			return;
		put(state, &p, rows[i].key, rows[i].value);
		l = place_open(&p);
		assert_int_equal(ledger_read(l, count_row, &count),
				 rows[i].err);
		if (!strstr(error_last(), rows[i].words))
			fail_msg("%s: '%s'", rows[i].key, error_last());
		if (rows[i].key[0] == '.')
			assert_int_equal(ledger_lead(l, "a", &term),
					 rows[i].err);
		ledger_close(l);
	}
}

/* The leader does away with what nobody needs. */
static void the_history_is_compacted(void **state)
{
	const struct ledger_change c = {"node", "m0", "{}"};
	const struct ledger_place none = {0};
	struct etcd_call *call;
	struct ledger *l;
	json_t *answer;
	struct place p;
	uint64_t term;

	if (!has_etcd(state, &p))
		return;
	l = place_open(&p);
	assert_int_equal(ledger_lead(l, "a", &term), 0);
	assert_int_equal(ledger_keep(l, term), 0);
	for (unsigned i = 0; i < 620; i++) {
		assert_int_equal(ledger_commit(l, term, &c, 1), 0);
		if (i % 100 == 0)
			assert_int_equal(ledger_keep(l, term), 0);
	}
	assert_int_equal(ledger_keep(l, term), 0);
	assert_int_equal(etcd_call_open(rig_of(state)->url, &none, &call), 0);
	assert_int_equal(etcd_call_ask(call, "/v3/kv/range",
				       etcd_ask_rows("aquifer/", NULL, term), 0,
				       NULL, &answer),
			 -EAGAIN);
	assert_non_null(strstr(error_last(), "compacted"));
	etcd_call_close(call);
	expect_rows(l, "node m0 {};");
	ledger_close(l);
}

/* Nobody there: nothing has happened, and that is known. */
static void without_an_etcd(void **state)
{
	const struct ledger_change c = {"node", "m0", "{}"};
	struct ledger_place where = {0};
	unsigned rows = 0;
	struct ledger *l;
	char store[80];
	uint64_t term;

	snprintf(store, sizeof(store),
		 "etcd:http://127.0.0.1:%u,http://127.0.0.1:%u",
		 etcd_rig_port(), etcd_rig_port());
	where.store = store;
	assert_int_equal(ledger_open(&where, &l), 0);
	assert_int_equal(ledger_lead(l, "a", &term), -EHOSTDOWN);
	assert_int_equal(ledger_read(l, count_row, &rows), -EHOSTDOWN);
	assert_non_null(strstr(error_last(), "no member of etcd"));
	assert_int_equal(ledger_commit(l, 1, &c, 1), -ESTALE);
	ledger_close(l);
}

static int start(void **state)
{
	static struct etcd_rig rig;

	*state = &rig;
	if (!etcd_rig_start(&rig))
		print_message("etcd is not installed: its tests are left "
			      "out\n");
	return 0;
}

static int end(void **state)
{
	etcd_rig_end(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_keep_their_promises),
		cmocka_unit_test(one_leads_at_a_time),
		cmocka_unit_test(terms_go_on),
		cmocka_unit_test(rows_move_between_all),
		cmocka_unit_test(a_load_that_breaks_off_is_not_read),
		cmocka_unit_test(texts_that_are_no_copy),
		cmocka_unit_test(no_places),
		cmocka_unit_test(a_newer_or_foreign_file_is_refused),
		cmocka_unit_test(a_damaged_file_is_never_half_read),
		cmocka_unit_test(a_killed_writer_leaves_whole_transactions),
		cmocka_unit_test(a_lease_ends),
		cmocka_unit_test(a_lease_of_etcd_ends),
		cmocka_unit_test(a_copy_of_a_transaction_happens_once),
		cmocka_unit_test(what_is_no_ledger_in_etcd),
		cmocka_unit_test(the_history_is_compacted),
		cmocka_unit_test(without_an_etcd),
	};

	return cmocka_run_group_tests(tests, start, end);
}
