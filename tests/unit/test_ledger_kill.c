/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 between any two system calls of a commit leaves either state: a
 * writer is traced, and each time killed one call later, until a commit ends
 * before that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/error.h"
#include "etcd_rig.h"

enum {
	CALLS_MAX = 2000, /* of a commit */
	ROWS_TEXT = 400,
};

/* What a writer works on: a new one each time. */
struct place {
	char dir[64];
	char store[112];
	char rack[16];
	struct ledger_place where;
};

static void make_file(struct place *p)
{
	snprintf(p->dir, sizeof(p->dir), "/tmp/aq-ledger-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->store, sizeof(p->store), "sqlite:%s/c.db", p->dir);
	p->where = (struct ledger_place){.store = p->store};
}

static void remove_file(const struct place *p)
{
	static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
	char path[128];

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		snprintf(path, sizeof(path), "%s/c.db%s", p->dir, ends[i]);
		(void)unlink(path); /* some are not there */
	}
	assert_int_equal(rmdir(p->dir), 0);
}

/* ---- the writer --------------------------------------------------------- */

static int commit(struct ledger *l, uint64_t term, unsigned n)
{
	char value[32];
	const struct ledger_change c[2] = {{"node", "m0", value},
					   {"tenant", "t0", value}};

	snprintf(value, sizeof(value), "{\"n\":%u}", n);
	return ledger_commit(l, term, c, 2);
}

/* Only its second commit is watched. */
static _Noreturn void write_twice(const struct place *p)
{
	struct ledger *l;
	uint64_t term;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(77);
	if (ledger_open(&p->where, &l) || ledger_lead(l, "a", &term) ||
	    commit(l, term, 1))
		_exit(1);
	(void)raise(SIGSTOP);
	_exit(commit(l, term, 2) ? 1 : 0);
}

/* Lets it run to its next stop at a call. False: it has ended, with that
 * status. */
static bool to_next_call(pid_t pid, int *status)
{
	int signal = 0;

	for (;;) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL,
					(void *)(intptr_t)signal),
				 0);
		assert_int_equal(waitpid(pid, status, 0), pid);
		if (!WIFSTOPPED(*status))
			return false;
		if (WSTOPSIG(*status) == (SIGTRAP | 0x80))
			return true;
		signal = WSTOPSIG(*status);
	}
}

/* Kills it before its call number `calls`. False: it has done all before
 * that. */
static bool kill_before(const struct place *p, unsigned calls)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid)
		write_twice(p);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip(); /* nobody may be traced here */
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	assert_int_equal(
		ptrace(PTRACE_SETOPTIONS, pid, NULL,
		       (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)),
		0);
	/* Each call stops twice: before it and after it. */
	for (unsigned i = 0; i <= 2 * calls; i++) {
		if (to_next_call(pid, &status))
			continue;
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		return false;
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return true;
}

/* ---- what is left ------------------------------------------------------- */

static int print_row(void *user, const char *kind, const char *key,
		     const char *value)
{
	char *out = user;

	snprintf(out + strlen(out), ROWS_TEXT - strlen(out), "%s %s %s;", kind,
		 key, value);
	return 0;
}

/* 1 or 2: which commit was the last. All else is half of one. */
static unsigned last_commit(const struct place *p)
{
	char rows[ROWS_TEXT] = "";
	unsigned node = 0, tenant = 0;
	struct ledger *l;

	assert_int_equal(ledger_open(&p->where, &l), 0);
	assert_int_equal(ledger_read(l, print_row, rows), 0);
	ledger_close(l);
	if (sscanf(rows, "node m0 {\"n\":%u};tenant t0 {\"n\":%u};", &node,
		   &tenant) != 2 ||
	    node != tenant || node < 1 || node > 2)
		fail_msg("half a commit: %s", rows);
	return node;
}

/* Whoever comes next can lead and change it. */
static void goes_on(const struct place *p)
{
	struct ledger *l;
	uint64_t term;

	assert_int_equal(ledger_open(&p->where, &l), 0);
	assert_int_equal(ledger_lead(l, "b", &term), 0);
	assert_int_equal(commit(l, term, 1), 0);
	ledger_close(l);
}

/* How many calls a commit has; both states were seen. */
static unsigned sweep(void (*make)(struct place *p),
		      void (*end)(const struct place *p), struct place *p)
{
	unsigned seen[3] = {0}, calls = 0;
	bool was_killed = true;

	while (was_killed && calls < CALLS_MAX) {
		make(p);
		was_killed = kill_before(p, calls++);
		seen[last_commit(p)]++;
		if (end)
			end(p);
	}
	assert_false(was_killed);
	assert_true(seen[1] && seen[2]);
	print_message("%u calls: %u times before, %u times after\n", calls,
		      seen[1], seen[2]);
	return calls;
}

static void end_file(const struct place *p)
{
	goes_on(p);
	remove_file(p);
}

static void of_sqlite(void **state)
{
	struct place p;

	(void)state;
	assert_true(sweep(make_file, end_file, &p) > 5);
}

/* Each in a rack of its own: the lease of a killed one lives for a while. */
static void make_rack(struct place *p)
{
	static unsigned racks;

	snprintf(p->rack, sizeof(p->rack), "k%u", racks++);
	p->where = (struct ledger_place){.store = p->store, .rack = p->rack};
}

static void of_etcd(void **state)
{
	struct etcd_rig rig;
	struct place p;

	(void)state;
	if (!etcd_rig_start(&rig)) {
		print_message("etcd is not installed\n");
		skip();
	}
	snprintf(p.store, sizeof(p.store), "%s", rig.store);
	assert_true(sweep(make_rack, NULL, &p) > 5);
	etcd_rig_end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_sqlite),
		cmocka_unit_test(of_etcd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
