/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway beside redis-server, in turns, as redis-benchmark sees them: 50
 * clients with 16 GETs or SETs each under way, on unix sockets, one core for
 * the server and one for the clients. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "guard.h"
#include "kv_bench.h"
#include "machine.h"
#include "offload_bench.h"

/* What redis-benchmark is asked for. */
static const struct contest {
	const char *ratio;
	const char *test;   /* its name of it */
	const char *answer; /* how its line begins */
	const char *ours, *peer;
	unsigned requests_per_ms;
	/* Beside the node, which has nothing to do: reads are loads. For SETs
	 * it has, and then they must not wait for each other's time slices. */
	bool is_pinned;
} contests[] = {
	{"gateway_p16_vs_redis_p16", "get", "\"GET\",\"", "gateway_get_p16",
	 "redis_get_p16", 500, true},
	{"gateway_set_p16_vs_redis", "set", "\"SET\",\"", "gateway_set_p16",
	 "redis_set_p16_c50", 150, false},
};

enum {
	CLIENTS = 50,
	POOL_BYTES = 192 << 20,
	RECORDS_MAX = 20000, /* our SETs are slower than our GETs */
	ROUNDS_MAX = 101,
	LINE_MAX_BYTES = 512,
};

struct gateway {
	pid_t pid;
	char dir[64];
	char path[96];
};

static void unpin(void)
{
	cpu_set_t both;

	CPU_ZERO(&both);
	CPU_SET(GUARD_CPU_CLIENT, &both);
	CPU_SET(GUARD_CPU_SERVER, &both);
	(void)!sched_setaffinity(0, sizeof(both), &both); /* or as it was */
}

static void run_gateway(const struct gateway *g, uint64_t records,
			bool is_pinned)
{
	char capacity[32];

	snprintf(capacity, sizeof(capacity), "%llu",
		 (unsigned long long)records * 5 / 4);
	if (is_pinned)
		(void)guard_pin(GUARD_CPU_SERVER);
	else
		unpin();
	(void)guard_enter_nice();
	if (freopen("/dev/null", "w", stdout))
		execl(machine_aquifer(), "aquifer", "redis", "--port", "none",
		      "--socket", g->path, "--table", "gateway", "--capacity",
		      capacity, "--values", "16M", (char *)NULL);
	_exit(127);
}

static int gateway_start(uint64_t records, bool is_pinned, struct gateway *g)
{
	int fd, err;

	snprintf(g->dir, sizeof(g->dir), "/tmp/aquifer-gateway-XXXXXX");
	if (!mkdtemp(g->dir))
		return -errno;
	snprintf(g->path, sizeof(g->path), "%s/s", g->dir);
	fflush(NULL);
	g->pid = fork();
	if (g->pid == 0)
		run_gateway(g, records, is_pinned);
	err = g->pid < 0 ? -errno : kv_redis_dial(g->path, &g->pid, &fd);
	if (!err) {
		err = kv_redis_fill(fd, records);
		close(fd);
	}
	return err;
}

static void gateway_stop(struct gateway *g)
{
	if (g->pid > 0) {
		kill(g->pid, SIGTERM);
		(void)waitpid(g->pid, NULL, 0);
	}
	(void)unlink(g->path);
	(void)rmdir(g->dir);
}

/* What Debian's redis-benchmark says. */
static int run_clients(const struct contest *k, const char *path,
		       uint64_t records, unsigned window_ms, double *rate)
{
	char command[LINE_MAX_BYTES], line[LINE_MAX_BYTES];
	FILE *p;

	snprintf(command, sizeof(command),
		 "redis-benchmark -s %s -t %s -P %d -c %d -n %u -r %llu --csv "
		 "2>/dev/null",
		 path, k->test, KV_BENCH_PIPELINE, CLIENTS,
		 window_ms * k->requests_per_ms, (unsigned long long)records);
	*rate = 0;
	fflush(NULL);
	p = popen(command, "re");
	if (!p)
		return -errno;
	while (fgets(line, sizeof(line), p))
		if (strncmp(line, k->answer, 7) == 0)
			*rate = strtod(line + 7, NULL);
	return pclose(p) == 0 && *rate > 0 ? 0 : -EIO;
}

static void report(struct kv_bench *b, const struct contest *k,
		   double rate[2][ROUNDS_MAX])
{
	double ours = kv_bench_median(rate[0], b->rounds);
	double peer = kv_bench_median(rate[1], b->rounds);

	kv_bench_row(b, k->ratio, k->ours, ours, "op/s",
		     "aquifer redis, direct port, 50 clients, unix socket");
	kv_bench_row(b, k->ratio, k->peer, peer, "op/s",
		     "redis-server, 50 clients, unix socket");
	kv_bench_row(b, k->ratio, "best_over_best",
		     rate[0][b->rounds - 1] / rate[1][b->rounds - 1], "ratio",
		     "the best round of each; decides nothing");
	json_object_set_new(b->ratios, k->ratio, json_real(ours / peer));
}

static int measure(struct kv_bench *b, const struct contest *k,
		   struct kv_redis *r, const struct gateway *g,
		   uint64_t records)
{
	double rate[2][ROUNDS_MAX];
	unsigned i;
	int err = 0;

	for (i = 0; i < b->rounds && !err; i++) {
		err = run_clients(k, g->path, records, b->window_ms,
				  &rate[0][i]);
		if (!err)
			err = run_clients(k, kv_redis_path(r), records,
					  b->window_ms, &rate[1][i]);
	}
	if (!err)
		report(b, k, rate);
	return err;
}

static int run_contest(struct kv_bench *b, const struct contest *k,
		       struct kv_redis *r, uint64_t records)
{
	struct gateway g = {0};
	int err = gateway_start(records, k->is_pinned, &g);

	(void)guard_pin(GUARD_CPU_CLIENT);
	(void)guard_enter_nice();
	if (!err)
		err = measure(b, k, r, &g, records);
	guard_leave();
	gateway_stop(&g);
	return err;
}

int kv_bench_gateway(struct kv_bench *b)
{
	uint64_t records = u64_min(b->records, RECORDS_MAX);
	struct offload_rack *rack = NULL;
	struct kv_redis *r = NULL;
	unsigned i;
	int err;

	if (kv_redis_start(0, &r)) {
		for (i = 0; i < ARRAY_LEN(contests); i++)
			json_object_set_new(
				b->voids, contests[i].ratio,
				json_string("redis-server does not start; "
					    "is it installed?"));
		return 0;
	}
	err = kv_redis_fill(kv_redis_fd(r), records);
	if (!err)
		err = offload_rack_start(POOL_BYTES, &rack);
	for (i = 0; i < ARRAY_LEN(contests) && !err; i++)
		err = run_contest(b, &contests[i], r, records);
	if (rack)
		offload_rack_stop(rack);
	kv_redis_stop(r);
	if (err)
		fprintf(stderr, "aquifer bench kv: the gateway: %s\n",
			strerror(-err));
	return err;
}
