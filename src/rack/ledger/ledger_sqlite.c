/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows in a file of sqlite. One process at a time has it, by a lock beside the
 * file; its term counts the starts. People may look at it with sqlite3 while
 * that process runs: one table, and a view for each kind.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "ledger.h"

enum {
	APPLICATION_ID = 0x61716374, /* "aqct" */
	BUSY_MS = 2000,		     /* somebody looks at it */
	PATH_BYTES = 512,
};

struct sqlite_ledger {
	struct ledger base;
	sqlite3 *db;
	sqlite3_stmt *begin, *commit, *put, *drop, *term;
	int lock_fd;
	char path[PATH_BYTES];
};

static const char schema[] =
	"CREATE TABLE row(kind TEXT NOT NULL, key TEXT NOT NULL,"
	" value TEXT NOT NULL CHECK(json_valid(value)), term INTEGER NOT NULL,"
	" PRIMARY KEY(kind, key)) WITHOUT ROWID;"
	"CREATE TABLE lead(one INTEGER PRIMARY KEY CHECK(one = 1),"
	" term INTEGER NOT NULL, who TEXT NOT NULL);"
	"INSERT INTO lead VALUES(1, 0, '');"
	"CREATE VIEW node AS SELECT key AS name, value->>'kind' AS kind,"
	" value->>'address' AS address, value->>'size' AS size,"
	" value->>'drain' AS drain FROM row WHERE kind = 'node';"
	"CREATE VIEW tenant AS SELECT key AS name, value->>'quota' AS quota"
	" FROM row WHERE kind = 'tenant';"
	"CREATE VIEW allowance AS SELECT key AS tenant_at_node,"
	" value->>'bytes' AS bytes, value->>'version' AS version"
	" FROM row WHERE kind = 'allowance';";

static struct sqlite_ledger *of(struct ledger *l)
{
	return container_of(l, struct sqlite_ledger, base);
}

/* ---- errors ------------------------------------------------------------- */

static int code_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EBADMSG;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EAGAIN;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_CANTOPEN:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_CONSTRAINT:
		return -EINVAL;
	default:
		return -EIO;
	}
}

static int fail(const struct sqlite_ledger *s, int rc, const char *what)
{
	return error_set(code_of(rc), "%s: cannot %s: %s", s->path, what,
			 s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc));
}

static int execute(const struct sqlite_ledger *s, const char *sql,
		   const char *what)
{
	int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : fail(s, rc, what);
}

/* ---- transactions ------------------------------------------------------- */

static int run(sqlite3_stmt *q)
{
	int rc = sqlite3_step(q);

	(void)sqlite3_reset(q); /* the step has told */
	return rc;
}

static int begin(struct sqlite_ledger *s)
{
	int rc = run(s->begin);

	return rc == SQLITE_DONE ? 0 : fail(s, rc, "begin a change");
}

static void roll_back(struct sqlite_ledger *s)
{
	/* What sqlite has taken back by itself needs it no more. */
	if (!sqlite3_get_autocommit(s->db))
		(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

/* A commit whose bytes may be in the file, but not for certain, has an unknown
 * end: the next start may find it there. */
static int end(struct sqlite_ledger *s)
{
	int rc = run(s->commit);
	int err;

	if (rc == SQLITE_DONE)
		return 0;
	err = fail(s, rc, "commit");
	roll_back(s);
	return err == -EIO ? LEDGER_UNKNOWN : err;
}

static int term_now(struct sqlite_ledger *s, uint64_t *term)
{
	int rc = sqlite3_step(s->term);
	int err = 0;

	if (rc == SQLITE_ROW)
		*term = (uint64_t)sqlite3_column_int64(s->term, 0);
	else
		err = fail(s, rc, "read the term");
	(void)sqlite3_reset(s->term); /* the step has told */
	return err;
}

static int check_term(struct sqlite_ledger *s, uint64_t term)
{
	uint64_t now = 0;
	int err = term_now(s, &now);

	return err || now == term
		       ? err
		       : error_set(-ESTALE,
				   "another controller has changed %s, in term "
				   "%llu",
				   s->path, (unsigned long long)now);
}

static int apply(struct sqlite_ledger *s, uint64_t term,
		 const struct ledger_change *c)
{
	sqlite3_stmt *q = c->value ? s->put : s->drop;
	int rc;

	(void)sqlite3_bind_text(q, 1, c->kind, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(q, 2, c->key, -1, SQLITE_STATIC);
	if (c->value) {
		(void)sqlite3_bind_text(q, 3, c->value, -1, SQLITE_STATIC);
		(void)sqlite3_bind_int64(q, 4, (sqlite3_int64)term);
	}
	rc = run(q);
	(void)sqlite3_clear_bindings(q);
	return rc == SQLITE_DONE ? 0 : fail(s, rc, "change a row");
}

static int sqlite_commit(struct ledger *l, uint64_t term,
			 const struct ledger_change *change, unsigned count)
{
	struct sqlite_ledger *s = of(l);
	int err = begin(s);

	if (err)
		return err;
	err = check_term(s, term);
	for (unsigned i = 0; i < count && !err; i++)
		err = apply(s, term, &change[i]);
	if (!err)
		return end(s);
	roll_back(s);
	return err;
}

static int sqlite_read(struct ledger *l, ledger_row_fn each, void *user)
{
	struct sqlite_ledger *s = of(l);
	sqlite3_stmt *q;
	int rc = sqlite3_prepare_v2(s->db,
				    "SELECT kind, key, value FROM row ORDER BY "
				    "kind, key",
				    -1, &q, NULL);
	int err = 0;

	if (rc != SQLITE_OK)
		return fail(s, rc, "read rows");
	while (!err && (rc = sqlite3_step(q)) == SQLITE_ROW)
		err = each(user, (const char *)sqlite3_column_text(q, 0),
			   (const char *)sqlite3_column_text(q, 1),
			   (const char *)sqlite3_column_text(q, 2));
	if (!err && rc != SQLITE_DONE)
		err = fail(s, rc, "read rows");
	(void)sqlite3_finalize(q); /* the last step has told */
	return err;
}

/* ---- leading ------------------------------------------------------------ */

static int sqlite_lead(struct ledger *l, const char *who, uint64_t *term)
{
	struct sqlite_ledger *s = of(l);
	sqlite3_stmt *q = NULL;
	int rc, err;

	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0)
		return error_set(-EBUSY, "another controller has %s", s->path);
	err = begin(s);
	if (err)
		return err;
	rc = sqlite3_prepare_v2(s->db,
				"UPDATE lead SET term = term + 1, who = ?1", -1,
				&q, NULL);
	if (rc == SQLITE_OK) {
		(void)sqlite3_bind_text(q, 1, who, -1, SQLITE_STATIC);
		rc = sqlite3_step(q);
	}
	if (rc != SQLITE_DONE)
		err = fail(s, rc, "begin a term");
	(void)sqlite3_finalize(q); /* the step has told */
	if (!err)
		err = term_now(s, term);
	if (!err)
		return end(s);
	roll_back(s);
	return err;
}

/* The lock is ours until the process ends. */
static int sqlite_keep(struct ledger *l, uint64_t term)
{
	(void)l;
	(void)term;
	return 0;
}

static int sqlite_leader(struct ledger *l, char who[LEDGER_WHO_MAX])
{
	struct sqlite_ledger *s = of(l);
	sqlite3_stmt *q;
	int rc =
		sqlite3_prepare_v2(s->db, "SELECT who FROM lead", -1, &q, NULL);
	int err = rc == SQLITE_OK ? 0 : fail(s, rc, "see who leads");

	if (!err && sqlite3_step(q) == SQLITE_ROW &&
	    sqlite3_column_bytes(q, 0) > 0)
		(void)snprintf(who, LEDGER_WHO_MAX, "%s",
			       (const char *)sqlite3_column_text(q, 0));
	else if (!err)
		err = error_set(-ENOENT, "nobody leads");
	(void)sqlite3_finalize(q); /* only read */
	return err;
}

static int sqlite_term(struct ledger *l, uint64_t *term)
{
	return term_now(of(l), term);
}

static int sqlite_raise(struct ledger *l, uint64_t term)
{
	struct sqlite_ledger *s = of(l);
	char sql[96];

	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0)
		return error_set(-EBUSY, "another controller has %s", s->path);
	(void)snprintf(sql, sizeof(sql),
		       "UPDATE lead SET term = max(term, %lld)",
		       (long long)term);
	return execute(s, sql, "count terms from there");
}

/* ---- opening ------------------------------------------------------------ */

static int pragma_int(const struct sqlite_ledger *s, const char *sql, int *out)
{
	sqlite3_stmt *q;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);
	int err = 0;

	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int(q, 0);
	else
		err = fail(s, rc, "be read");
	(void)sqlite3_finalize(q); /* the step has told */
	return err;
}

static int is_sound(const struct sqlite_ledger *s)
{
	sqlite3_stmt *q;
	int rc = sqlite3_prepare_v2(s->db, "PRAGMA quick_check(1)", -1, &q,
				    NULL);
	int err = 0;

	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc != SQLITE_ROW)
		err = fail(s, rc, "be checked");
	else if (strcmp((const char *)sqlite3_column_text(q, 0), "ok") != 0)
		err = error_set(-EBADMSG,
				"%s is damaged (%.80s); take it away, or "
				"restore it from a copy",
				s->path,
				(const char *)sqlite3_column_text(q, 0));
	(void)sqlite3_finalize(q); /* the step has told */
	return err;
}

/* An empty file becomes a ledger; any other one must be one already. */
static int settle(struct sqlite_ledger *s)
{
	int id = 0, version = 0, tables = 0;
	int err = pragma_int(s, "PRAGMA application_id", &id);
	char sql[sizeof(schema) + 128];

	if (!err)
		err = pragma_int(s, "PRAGMA user_version", &version);
	if (!err)
		err = pragma_int(s, "SELECT count(*) FROM sqlite_master",
				 &tables);
	if (err)
		return err;
	if (!id && !version && !tables) {
		(void)snprintf(sql, sizeof(sql),
			       "BEGIN IMMEDIATE;PRAGMA application_id = %d;"
			       "PRAGMA user_version = %d;%sCOMMIT",
			       APPLICATION_ID, LEDGER_SCHEMA, schema);
		err = execute(s, sql, "become a ledger");
		if (err)
			roll_back(s);
		return err;
	}
	if (id != APPLICATION_ID)
		return error_set(-EBADMSG, "%s is a database, but no ledger",
				 s->path);
	if (version != LEDGER_SCHEMA)
		return error_set(-EPROTONOSUPPORT,
				 "%s has schema %d, this program knows %d; use "
				 "the release that wrote it",
				 s->path, version, LEDGER_SCHEMA);
	return is_sound(s);
}

static int prepare(const struct sqlite_ledger *s, const char *sql,
		   sqlite3_stmt **out)
{
	int rc = sqlite3_prepare_v2(s->db, sql, -1, out, NULL);

	return rc == SQLITE_OK ? 0 : fail(s, rc, "be used");
}

static int open_file(struct sqlite_ledger *s)
{
	char lock[PATH_BYTES + 8];
	int rc, err;

	(void)snprintf(lock, sizeof(lock), "%s-lock", s->path);
	s->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->lock_fd < 0)
		return error_set(-errno, "cannot make %s: %s", lock,
				 strerror(errno));
	rc = sqlite3_open_v2(s->path, &s->db,
			     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
				     SQLITE_OPEN_NOMUTEX,
			     NULL);
	if (rc != SQLITE_OK)
		return fail(s, rc, "be opened");
	(void)sqlite3_busy_timeout(s->db, BUSY_MS);
	err = settle(s);
	if (!err)
		err = execute(s,
			      "PRAGMA journal_mode = WAL;"
			      "PRAGMA synchronous = FULL",
			      "be set up");
	if (!err)
		err = prepare(s, "BEGIN IMMEDIATE", &s->begin);
	if (!err)
		err = prepare(s, "COMMIT", &s->commit);
	if (!err)
		err = prepare(s, "INSERT OR REPLACE INTO row VALUES(?,?,?,?)",
			      &s->put);
	if (!err)
		err = prepare(s, "DELETE FROM row WHERE kind = ? AND key = ?",
			      &s->drop);
	return err ? err : prepare(s, "SELECT term FROM lead", &s->term);
}

static void sqlite_close(struct ledger *l)
{
	struct sqlite_ledger *s = of(l);

	(void)sqlite3_finalize(s->begin);
	(void)sqlite3_finalize(s->commit);
	(void)sqlite3_finalize(s->put);
	(void)sqlite3_finalize(s->drop);
	(void)sqlite3_finalize(s->term);
	/* Each commit has reached the disk by itself. */
	(void)sqlite3_close(s->db);
	if (s->lock_fd >= 0)
		(void)close(s->lock_fd); /* gives the lock back */
	free(s);
}

static const struct ledger_ops sqlite_ops = {
	.lead = sqlite_lead,
	.keep = sqlite_keep,
	.leader = sqlite_leader,
	.term = sqlite_term,
	.raise = sqlite_raise,
	.read = sqlite_read,
	.commit = sqlite_commit,
	.close = sqlite_close,
};

int ledger_sqlite_open(const char *path, struct ledger **out)
{
	struct sqlite_ledger *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return error_set(-ENOMEM, "no memory for a ledger");
	s->base.ops = &sqlite_ops;
	s->lock_fd = -1;
	if ((size_t)snprintf(s->path, sizeof(s->path), "%s", path) >=
	    sizeof(s->path))
		err = error_set(-ENAMETOOLONG, "%.60s... is too long", path);
	else
		err = open_file(s);
	if (err) {
		sqlite_close(&s->base);
		return err;
	}
	*out = &s->base;
	return 0;
}
