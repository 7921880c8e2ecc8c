/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of waiting clients, which share commits, beside a bare loop of
 * sqlite on the same disk. */
#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "control_bench.h"
#include "ticks.h"

struct client {
	struct control_bed *bed;
	struct client_http *http;
	unsigned tenant;
	atomic_bool *stop; /* carries no other data: relaxed */
	uint64_t done;
	int err;
	pthread_t thread;
	char why[200];
};

static void *work(void *arg)
{
	struct client *c = arg;

	while (!c->err &&
	       !atomic_load_explicit(c->stop, memory_order_relaxed)) {
		c->err = control_bed_change(c->bed, 0, c->http, c->tenant,
					    c->done);
		c->done += !c->err;
	}
	if (c->err)
		(void)snprintf(c->why, sizeof(c->why), "%s", error_last());
	return NULL;
}

static int run_clients(struct control_bed *bed, unsigned window_ms,
		       struct conduct_track *t, unsigned round)
{
	const struct timespec window = {window_ms / 1000,
					window_ms % 1000 * 1000000l};
	struct client c[CONTROL_WAITING] = {{0}};
	atomic_bool stop = false;
	uint64_t start = bench_now_ns(), done = 0;
	unsigned n = 0;
	int err = 0;

	for (; n < CONTROL_WAITING && !err; n++) {
		c[n].bed = bed;
		c[n].tenant = n;
		c[n].stop = &stop;
		err = client_http_create(&c[n].http);
		if (!err &&
		    (err = -pthread_create(&c[n].thread, NULL, work, &c[n])))
			client_http_destroy(c[n].http);
		if (err)
			break;
	}
	if (!err)
		(void)nanosleep(&window, NULL);
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	for (unsigned i = 0; i < n; i++) {
		(void)pthread_join(c[i].thread, NULL);
		client_http_destroy(c[i].http);
		done += c[i].done;
		if (c[i].err)
			err = error_set(c[i].err, "%s", c[i].why);
	}
	conduct_record(t, round, done, bench_now_ns() - start);
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
static int run_bare(sqlite3 *db, sqlite3_stmt *put, unsigned window_ms,
		    struct conduct_track *t, unsigned round)
{
	uint64_t start = bench_now_ns();
	uint64_t end = start + window_ms * 1000000ull, done = 0;
	char key[16], value[48];

	while (bench_now_ns() < end) {
		(void)snprintf(key, sizeof(key), "t%u",
			       (unsigned)(done % CONTROL_WAITING));
		(void)snprintf(value, sizeof(value),
			       "{\"quota\":%llu,\"limits\":{}}",
			       (unsigned long long)(done % 1000 + 1) << 20);
		(void)sqlite3_bind_text(put, 1, key, -1, SQLITE_STATIC);
		(void)sqlite3_bind_text(put, 2, value, -1, SQLITE_STATIC);
		if (sqlite3_step(put) != SQLITE_DONE)
			return error_set(-EIO, "sqlite: %s",
					 sqlite3_errmsg(db));
		(void)sqlite3_reset(put); /* the step has told */
		done++;
	}
	conduct_record(t, round, done, bench_now_ns() - start);
	return 0;
}

/* ---- both --------------------------------------------------------------- */

static int run_rounds(struct bench *b, struct control_bed *bed,
		      struct conduct_track *track)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *put = NULL;
	int err = bare_open(bed, &db, &put);

	/* The first round of clients makes their tenants. */
	if (!err)
		err = run_clients(bed, 1, &track[0], 0);
	track[0].kept = 0;
	for (unsigned i = 0; i < b->rounds && !err; i++) {
		err = run_clients(bed, b->window_ms, &track[0], i);
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
	struct control_bed bed;
	double seconds, commits = 0, changes = 0;
	int err;

	if (!track)
		return bench_fail(b, -ENOMEM, "no memory");
	track[0].desc = &what[0];
	track[1].desc = &what[1];
	err = control_bed_make(&bed);
	if (!err)
		err = control_bed_start(&bed, 0);
	if (!err)
		err = control_bed_await(&bed, &seconds);
	if (!err) {
		commits = control_bed_metric(&bed,
					     "aquifer_control_commits_total");
		err = run_rounds(b, &bed, track);
		commits = control_bed_metric(&bed,
					     "aquifer_control_commits_total") -
			  commits;
	}
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
