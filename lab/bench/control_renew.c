/* SPDX-License-Identifier: Apache-2.0 */
/* Renewals of leases: kept connections over TCP on loopback, beside PINGs of
 * redis-server, and many paths in a request beside one. Whoever answers has one
 * core, whoever asks the other one. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "control_bench.h"
#include "kv_bench.h"
#include "loadgen.h"
#include "place.h"
#include "shield.h"
#include "ticks.h"

enum {
	LINES = 50,
	BATCH = 100, /* paths of a request */
	REQUEST_BYTES = 8192,
	PAPER_KOPS = 42,     /* Jiffy's controller, one core */
	PAPER_LATENCY = 370, /* us */
};

struct renew {
	struct control_bed bed;
	struct kv_redis *redis; /* NULL: there is none, or none is needed */
	unsigned redis_port;
	char token[CLIENT_TOKEN_MAX];
	/* Of the controller and of its peer: processor time, and what was done
	 * in it. */
	struct {
		uint64_t cpu_ns, answers;
	} cost[2];
	struct loadgen lines, pings;
	struct loadgen_result result;
	char request[LINES][REQUEST_BYTES];
};

/* ---- what is asked ------------------------------------------------------- */

/* The request of one line: `count` paths from its own on. */
static void write_request(struct renew *r, unsigned line, unsigned count)
{
	char body[BATCH * 16 + 16];
	size_t len = (size_t)sprintf(body, "{\"paths\":[");

	for (unsigned i = 0; i < count; i++)
		len += (size_t)sprintf(body + len, "%s\"/bench/t%u\"",
				       i ? "," : "", (line + i) % BATCH);
	len += (size_t)sprintf(body + len, "]}");
	r->lines.line[line].request = r->request[line];
	r->lines.line[line].request_bytes = (size_t)snprintf(
		r->request[line], REQUEST_BYTES,
		"POST /v1/renew HTTP/1.1\r\nHost: c0\r\nAuthorization: Bearer "
		"%s\r\nContent-Type: application/json\r\nContent-Length: "
		"%zu\r\n\r\n%s",
		r->token, len, body);
}

static int run(struct renew *r, struct loadgen *g, unsigned window_ms,
	       unsigned ops, struct conduct_track *t, unsigned round)
{
	struct hist *h = &r->result.latency_ns;
	unsigned who = g == &r->pings;
	pid_t pid = who ? r->redis->pid : r->bed.control[0];
	uint64_t cpu_ns = shield_process_ns(pid);
	int err = loadgen_run(g, window_ms * 1000000ull, &r->result);

	if (err)
		return err;
	r->cost[who].cpu_ns += shield_process_ns(pid) - cpu_ns;
	r->cost[who].answers += r->result.answers;
	conduct_record(t, round, r->result.answers * ops, r->result.elapsed_ns);
	t->round[round].series[0] = (struct side_series){
		.count = r->result.answers,
		.p50_ns = (double)hist_percentile(h, HIST_MEDIAN),
		.p99_ns = (double)hist_percentile(h, HIST_P99),
		.p999_ns = (double)hist_percentile(h, HIST_P999),
	};
	return 0;
}

/* ---- life --------------------------------------------------------------- */

static int start(struct renew *r)
{
	double seconds;
	int err = control_bed_make(&r->bed);

	r->bed.port = control_bed_port();
	r->bed.cores = PLACE_SERVER;
	if (!err)
		err = control_bed_start(&r->bed, 0);
	if (!err)
		err = control_bed_await(&r->bed, &seconds);
	if (!err)
		err = client_token_read(NULL, r->bed.rundir, RACK_TOKEN_DEFAULT,
					r->token);
	if (!err)
		err = control_bed_job(&r->bed, r->token, "bench", BATCH);
	(void)shield_pin(SHIELD_CPU_CLIENT);
	(void)shield_enter_nice();
	return err ? err
		   : loadgen_open(&r->lines, (uint16_t)r->bed.port, LINES,
				  loadgen_whole_http);
}

static void end(struct renew *r)
{
	loadgen_close(&r->lines);
	loadgen_close(&r->pings);
	shield_leave();
	kv_redis_stop(r->redis);
	control_bed_end(&r->bed);
	free(r);
}

/* ---- beside redis-server ------------------------------------------------ */

static int start_peer(struct renew *r, struct conduct_track *t)
{
	static const char ping[] = "*1\r\n$4\r\nPING\r\n";
	unsigned port = control_bed_port();
	int err;

	if (kv_redis_start(0, (uint16_t)port, &r->redis)) {
		kv_redis_is_missing(t);
		return 0;
	}
	err = loadgen_open(&r->pings, (uint16_t)port, LINES,
			   loadgen_whole_pong);
	for (unsigned i = 0; i < LINES; i++) {
		r->pings.line[i].request = ping;
		r->pings.line[i].request_bytes = sizeof(ping) - 1;
	}
	return err;
}

/* One connection by itself: what an operation takes when nobody is in its way,
 * in microseconds. */
static int ask_alone(struct renew *r, unsigned window_ms, double *us)
{
	int err;

	r->lines.count = 1;
	err = loadgen_run(&r->lines, window_ms * 1000000ull, &r->result);
	r->lines.count = LINES;
	*us = (double)hist_percentile(&r->result.latency_ns, HIST_MEDIAN) /
	      1000;
	return err;
}

/* Thousand answers in a second of its processor time. */
static double per_core(const struct renew *r, unsigned who)
{
	return r->cost[who].cpu_ns ? (double)r->cost[who].answers * 1e6 /
					     (double)r->cost[who].cpu_ns
				   : NAN;
}

static void report_paper(struct bench *b, const struct renew *r, double us)
{
	json_t *row = bench_row(
		b, "renew", "per_core", per_core(r, 0), "kops/core",
		"renewals per second of the controller's processor time; "
		"Pocket's controller: 90; one leader per rack, so nothing here "
		"scales over 64 cores");

	if (r->redis)
		(void)bench_row(b, "renew", "ping_core", per_core(r, 1),
				"kops/core", "the same of redis-server");
	(void)json_object_set_new(row, "paper", json_integer(PAPER_KOPS));
	row = bench_row(b, "renew", "alone", us, "us",
			"a renewal while nobody else asks");
	(void)json_object_set_new(row, "paper", json_integer(PAPER_LATENCY));
}

static int run_both(struct bench *b, struct renew *r,
		    struct conduct_track track[2], double *us)
{
	int err = 0;

	for (unsigned i = 0; i < LINES; i++)
		write_request(r, i, 1);
	err = ask_alone(r, b->window_ms, us);
	for (unsigned i = 0; i < b->rounds && !err; i++) {
		err = run(r, &r->lines, b->window_ms, 1, &track[0], i);
		if (!err && r->redis)
			err = run(r, &r->pings, b->window_ms, 1, &track[1], i);
	}
	return err;
}

int control_bench_renew(struct bench *b)
{
	static const struct subject_desc what[] = {
		{.name = "renew_50",
		 .what = "renewals of 50 connections over TCP, a path each"},
		{.name = "ping_50",
		 .what = "redis-server, PING, 50 connections, no pipeline"},
	};
	struct conduct_track *track = calloc(2, sizeof(*track));
	struct renew *r = calloc(1, sizeof(*r));
	double us = NAN;
	int err;

	if (!track || !r) {
		free(track);
		free(r);
		return bench_fail(b, -ENOMEM, "no memory");
	}
	track[0].desc = &what[0];
	track[1].desc = &what[1];
	err = start(r);
	if (!err)
		err = start_peer(r, &track[1]);
	if (!err)
		err = run_both(b, r, track, &us);
	if (err) {
		(void)bench_fail(b, err, "%s", error_last());
	} else {
		bench_report_tracks(b, "renew", track, 2, NULL);
		report_paper(b, r, us);
	}
	end(r);
	free(track);
	return err;
}

/* ---- many paths in one request ------------------------------------------ */

int control_bench_batch(struct bench *b)
{
	static const struct subject_desc what[] = {
		{.name = "paths_100",
		 .what = "paths renewed, 100 in a request, 50 connections"},
		{.name = "paths_1", .what = "the same, one in a request"},
	};
	static const unsigned paths[] = {BATCH, 1};
	struct conduct_track *track = calloc(2, sizeof(*track));
	struct renew *r = calloc(1, sizeof(*r));
	int err;

	if (!track || !r) {
		free(track);
		free(r);
		return bench_fail(b, -ENOMEM, "no memory");
	}
	err = start(r);
	for (unsigned i = 0; i < b->rounds * 2 && !err; i++) {
		track[i % 2].desc = &what[i % 2];
		for (unsigned k = 0; k < LINES; k++)
			write_request(r, k, paths[i % 2]);
		err = run(r, &r->lines, b->window_ms, paths[i % 2],
			  &track[i % 2], i / 2);
	}
	if (err)
		(void)bench_fail(b, err, "%s", error_last());
	else
		bench_report_tracks(b, "batch", track, 2, NULL);
	end(r);
	free(track);
	return err;
}
