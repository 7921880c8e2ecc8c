/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway beside redis-server, in turns, as redis-benchmark sees them: 50
 * clients with 16 commands each under way, or one, on unix sockets, one core
 * for the server and one for the clients. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "kv_bench.h"
#include "offload_bench.h"
#include "place.h"
#include "shield.h"

#define OURS(name_)                                                      \
	{                                                                \
		.name = name_, .what = "aquifer redis, direct port, 50 " \
				       "clients, unix socket"            \
	}
#define PEER(name_)                                                            \
	{                                                                      \
		.name = name_, .what = "redis-server, 50 clients, unix socket" \
	}

/* What redis-benchmark is asked for. */
static const struct contest {
	const char *test;   /* its name of it */
	const char *answer; /* how its line begins */
	struct subject_desc ours, peer;
	unsigned pipeline;
	unsigned requests_per_ms;
	/* Beside the node, which has nothing to do: reads are loads. For SETs
	 * it has, and then they must not wait for each other's time slices. */
	bool is_pinned;
	/* Half of the clients SET all the while, and do not count. */
	bool has_setters;
} contests[] = {
	{"get", "\"GET\",\"", OURS("gateway_get_p16"), PEER("redis_get_p16"),
	 KV_BENCH_PIPELINE, 500, true, false},
	{"set", "\"SET\",\"", OURS("gateway_set_p16"),
	 PEER("redis_set_p16_c50"), KV_BENCH_PIPELINE, 150, false, false},
	{"set", "\"SET\",\"", OURS("gateway_set_p1"), PEER("redis_set_p1_c50"),
	 1, 50, false, false},
	{"incr", "\"INCR\",\"", OURS("gateway_incr_p16"),
	 PEER("redis_incr_p16_c50"), KV_BENCH_PIPELINE, 150, false, false},
	{"get", "\"GET\",\"", OURS("gateway_mixed"), PEER("redis_mixed"), 1, 20,
	 false, true},
};

enum {
	CLIENTS = 50,
	POOL_BYTES = 192 << 20,
	RECORDS_MAX = 20000, /* our SETs are slower than our GETs */
	LINE_MAX_BYTES = 512,
	COMMAND_MAX_BYTES = 1024,
	CONTESTS = ARRAY_LEN(contests),
};

struct gateway {
	pid_t pid;
	char dir[64];
	char path[96];
};

static int gateway_start(uint64_t records, bool is_pinned, struct gateway *g)
{
	char capacity[32];
	int fd, err = place_make(g->dir, "gateway");

	if (err)
		return err;
	snprintf(g->path, sizeof(g->path), "%s/s", g->dir);
	snprintf(capacity, sizeof(capacity), "%llu",
		 (unsigned long long)records * 3); /* does not grow */
	g->pid = place_start_aquifer(
		is_pinned ? PLACE_SERVER : PLACE_UNBOUND, "redis", "--port",
		"none", "--socket", g->path, "--table", "gateway", "--capacity",
		capacity, "--values", "16M", (char *)NULL);
	err = place_dial(g->path, &g->pid, &fd);
	if (!err) {
		err = kv_redis_fill(fd, records);
		close(fd);
	}
	return err;
}

/* The command line; those who SET beside it end with it. */
static void make_command(const struct contest *k, const char *path,
			 uint64_t records, unsigned requests,
			 char command[COMMAND_MAX_BYTES])
{
	char setters[COMMAND_MAX_BYTES / 2] = "";
	unsigned long long keys = records;

	if (k->has_setters)
		snprintf(setters, sizeof(setters),
			 "redis-benchmark -s %s -t set -c %d -n 100000000 "
			 "-r %llu >/dev/null 2>&1 & trap \"kill $!; wait\" 0; ",
			 path, CLIENTS / 2, keys);
	snprintf(command, COMMAND_MAX_BYTES,
		 "%sredis-benchmark -s %s -t %s -P %u -c %d -n %u -r %llu "
		 "--csv 2>/dev/null",
		 setters, path, k->test, k->pipeline,
		 k->has_setters ? CLIENTS / 2 : CLIENTS, requests, keys);
}

/* The number at this place of a line of words in quotes; 0: none. */
static double field(const char *line, unsigned at)
{
	for (unsigned i = 0; i < 2 * at + 1 && line; i++) {
		line = strchr(line, '"');
		line = line ? line + 1 : NULL;
	}
	return line ? strtod(line, NULL) : 0;
}

/* What Debian's redis-benchmark says. */
static int run_clients(const struct contest *k, const char *path,
		       uint64_t records, unsigned window_ms,
		       struct conduct_track *t, unsigned round)
{
	enum {
		RATE = 1,
		P50 = 4,
		P99 = 6
	}; /* ms but for the first */
	char command[COMMAND_MAX_BYTES], line[LINE_MAX_BYTES];
	unsigned requests = window_ms * k->requests_per_ms;
	struct side_series lat = {.count = requests};
	double rate = 0;
	FILE *p;

	make_command(k, path, records, requests, command);
	fflush(NULL);
	p = popen(command, "re");
	if (!p)
		return -errno;
	while (fgets(line, sizeof(line), p)) {
		if (strncmp(line, k->answer, strlen(k->answer)) != 0)
			continue;
		rate = field(line, RATE);
		lat.p50_ns = field(line, P50) * 1e6;
		lat.p99_ns = field(line, P99) * 1e6;
	}
	if (pclose(p) != 0 || rate <= 0)
		return -EIO;
	conduct_record(t, round, requests,
		       (uint64_t)((double)requests * 1e9 / rate));
	t->round[round].series[0] = lat;
	return 0;
}

static int run_contest(struct bench *b, const struct contest *k,
		       struct kv_redis *r, uint64_t records,
		       struct conduct_track track[2])
{
	struct gateway g = {0};
	int err = gateway_start(records, k->is_pinned, &g);

	(void)shield_pin(SHIELD_CPU_CLIENT);
	(void)shield_enter_nice();
	for (unsigned i = 0; i < b->rounds && !err; i++) {
		err = run_clients(k, g.path, records, b->window_ms, &track[0],
				  i);
		if (!err)
			err = run_clients(k, r->path, records, b->window_ms,
					  &track[1], i);
	}
	shield_leave();
	place_end(g.pid);
	place_remove(g.dir);
	return err;
}

static int run_contests(struct bench *b, struct kv_redis *r,
			struct conduct_track *track)
{
	uint64_t records = u64_min(bench_number(b, "records"), RECORDS_MAX);
	struct offload_rack *rack = NULL;
	int err = kv_redis_fill(r->fd, records);

	if (!err)
		err = offload_rack_start(POOL_BYTES, &rack);
	for (unsigned i = 0; i < CONTESTS && !err; i++)
		err = run_contest(b, &contests[i], r, records, &track[2 * i]);
	offload_rack_stop(rack);
	return err ? bench_fail(b, err, "the gateway: %s", strerror(-err)) : 0;
}

int kv_bench_gateway(struct bench *b)
{
	struct conduct_track *track = calloc(2 * CONTESTS, sizeof(*track));
	struct kv_redis *r = NULL;
	int err = 0;

	if (!track)
		return bench_fail(b, -ENOMEM, "no memory");
	for (unsigned i = 0; i < 2 * CONTESTS; i++)
		track[i].desc =
			i % 2 ? &contests[i / 2].peer : &contests[i / 2].ours;
	if (kv_redis_start(0, 0, &r))
		for (unsigned i = 0; i < 2 * CONTESTS; i++)
			kv_redis_is_missing(&track[i]);
	else
		err = run_contests(b, r, track);
	if (!err)
		bench_report_tracks(b, "gateway", track, 2 * CONTESTS, NULL);
	kv_redis_stop(r);
	free(track);
	return err;
}
