/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of waiting clients, which share commits, beside a bare loop of
 * sqlite on the same disk. */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "control_bench.h"
#include "loadgen.h"
#include "place.h"
#include "shield.h"
#include "ticks.h"

enum {
	REQUEST_BYTES = 512,
	DIGITS = 6,
	WARM = 1200, /* commits of the peer, before the first round */
};

#define WARM_NS 3000000000ull /* at most */

/* Each of them has its tenant, whose quota it changes, again as soon as it is
 * answered. */
struct clients {
	struct loadgen lines;
	struct loadgen_result result;
	char request[CONTROL_WAITING][REQUEST_BYTES];
};

/* "quota":1000000000 and up: ten digits, of which the last six count. */
static void write_request(struct clients *c, const struct control_bed *bed,
			  unsigned i)
{
	static const char body[] = "{\"quota\":1000000000}";
	struct loadgen_line *l = &c->lines.line[i];
	int n = snprintf(c->request[i], REQUEST_BYTES,
			 "PATCH /v1/tenants/t%u HTTP/1.1\r\nHost: c0\r\n"
			 "Authorization: Bearer %s\r\nContent-Type: "
			 "application/json\r\nContent-Length: %zu\r\n\r\n%s",
			 i, bed->admin, sizeof(body) - 1, body);

	l->request = c->request[i];
	l->request_bytes = (size_t)n;
	l->digits = c->request[i] + n - 1 - DIGITS;
	l->digit_count = DIGITS;
}

static int make_clients(struct control_bed *bed, struct clients *c)
{
	int err = 0;

	/* The first change makes a tenant. */
	for (unsigned i = 0; i < CONTROL_WAITING && !err; i++)
		err = control_bed_change(bed, 0, bed->http, i, 0);
	if (!err)
		err = loadgen_open_unix(&c->lines,
					bed->at[0].address + strlen("unix:"),
					CONTROL_WAITING, loadgen_whole_http);
	for (unsigned i = 0; i < CONTROL_WAITING && !err; i++)
		write_request(c, bed, i);
	return err;
}

static int run_clients(struct clients *c, unsigned window_ms,
		       struct conduct_track *t, unsigned round)
{
	int err = loadgen_run(&c->lines, window_ms * 1000000ull, &c->result);

	if (!err)
		conduct_record(t, round, c->result.answers,
			       c->result.elapsed_ns);
	return err;
}

/* ---- the peer ----------------------------------------------------------- */

static int bare_open(const struct control_bed *bed, sqlite3 **db,
		     sqlite3_stmt **put)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/bare.db", bed->dir);
	if (sqlite3_open(path, db) != SQLITE_OK ||
	    sqlite3_exec(*db,
			 "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
			 "CREATE TABLE row(key TEXT PRIMARY KEY, value TEXT)",
			 NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(*db, "INSERT OR REPLACE INTO row VALUES(?, ?)",
			       -1, put, NULL) != SQLITE_OK)
		return error_set(-EIO, "sqlite: %s", sqlite3_errmsg(*db));
	return 0;
}

/* Each statement is a transaction of its own. */
static int bare_put(sqlite3 *db, sqlite3_stmt *put, uint64_t i)
{
	char key[16], value[48];

	(void)snprintf(key, sizeof(key), "t%u",
		       (unsigned)(i % CONTROL_WAITING));
	(void)snprintf(value, sizeof(value), "{\"quota\":%llu,\"limits\":{}}",
		       (unsigned long long)(i % 1000 + 1) << 20);
	(void)sqlite3_bind_text(put, 1, key, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(put, 2, value, -1, SQLITE_STATIC);
	if (sqlite3_step(put) != SQLITE_DONE)
		return error_set(-EIO, "sqlite: %s", sqlite3_errmsg(db));
	(void)sqlite3_reset(put); /* the step has told */
	return 0;
}

static int run_bare(sqlite3 *db, sqlite3_stmt *put, unsigned window_ms,
		    struct conduct_track *t, unsigned round)
{
	uint64_t start = bench_now_ns();
	uint64_t end = start + window_ms * 1000000ull, done = 0;
	int err = 0;

	while (!err && bench_now_ns() < end)
		err = bare_put(db, put, done++);
	conduct_record(t, round, done, bench_now_ns() - start);
	return err;
}

/* A log that still grows makes each commit dearer: from its first checkpoint on
 * (1,000 pages) it is written over. */
static int warm_bare(sqlite3 *db, sqlite3_stmt *put)
{
	uint64_t end = bench_now_ns() + WARM_NS;
	int err = 0;

	for (unsigned i = 0; i < WARM && !err && bench_now_ns() < end; i++)
		err = bare_put(db, put, i);
	return err;
}

/* ---- both --------------------------------------------------------------- */

static int run_rounds(struct bench *b, const struct control_bed *bed,
		      struct clients *c, struct conduct_track *track)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *put = NULL;
	int err = bare_open(bed, &db, &put);

	if (!err)
		err = warm_bare(db, put);
	for (unsigned i = 0; i < b->rounds && !err; i++) {
		err = run_clients(c, b->window_ms, &track[0], i);
		if (!err)
			err = run_bare(db, put, b->window_ms, &track[1], i);
	}
	(void)sqlite3_finalize(put);
	(void)sqlite3_close(db);
	return err;
}

int control_bench_commit(struct bench *b)
{
	static const struct subject_desc what[] = {
		{.name = "changes_16",
		 .what = "changes of 16 waiting clients, sqlite store"},
		{.name = "sqlite_bare",
		 .what = "single-row commits in a loop, same disk"},
	};
	struct conduct_track *track = calloc(2, sizeof(*track));
	struct clients *c = calloc(1, sizeof(*c));
	struct control_bed bed;
	double seconds, commits = 0, changes = 0;
	int err;

	if (!track || !c) {
		free(track);
		free(c);
		return bench_fail(b, -ENOMEM, "no memory");
	}
	track[0].desc = &what[0];
	track[1].desc = &what[1];
	err = control_bed_make(&bed);
	bed.cores = PLACE_UNBOUND;
	(void)shield_enter_nice();
	if (!err)
		err = control_bed_start(&bed, 0);
	if (!err)
		err = control_bed_await(&bed, &seconds);
	if (!err)
		err = make_clients(&bed, c);
	if (!err) {
		commits = control_bed_metric(&bed,
					     "aquifer_control_commits_total");
		err = run_rounds(b, &bed, c, track);
		commits = control_bed_metric(&bed,
					     "aquifer_control_commits_total") -
			  commits;
	}
	loadgen_close(&c->lines);
	free(c);
	control_bed_end(&bed);
	if (err)
		(void)bench_fail(b, err, "%s", error_last());
	for (unsigned i = 0; i < b->rounds; i++)
		changes += (double)track[0].round[i].ops;
	if (!err) {
		bench_report_tracks(b, "commit", track, 2, NULL);
		(void)bench_row(b, "commit", "changes_per_commit",
				changes / commits, "changes",
				"that share one transaction");
	}
	free(track);
	return err;
}
