/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench switch`: the switch beside a bare forwarder, and READs through
 * it, in turns. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "bench.h"
#include "bench_commit.h"
#include "machine.h"
#include "stats.h"
#include "switchd/switchd.h"
#include "ticks.h"
#include "trio.h"

enum {
	RAN = 0,
	FAILED = 1,
	USAGE = 2,
	MISSED = 3,
	ROUNDS = 9,
	ROUNDS_QUICK = 3,
	ROUNDS_MAX = 101,
	WINDOW_MS = 100,
	WINDOW_MS_QUICK = 20,
	SUBJECTS = 10,
	RATIOS = 5,
};

static const char usage[] =
	"usage: aquifer bench switch [--json] [--quick] [--check]\n"
	"                            [--rounds N] [--window MS]\n"
	"Three processes each (client, switch, server) take turns: frames,\n"
	"READs and a table through 'aquifer switch', bare rings through a\n"
	"forwarder, and the same without a switch.\n"
	"  --quick   short rounds: shows that it works, proves nothing\n"
	"  --check   exit code 3 when a ratio misses its bound\n";

struct options {
	bool json, quick, check;
	unsigned rounds, window_ms;
};

struct subject {
	const struct trio_ops *ops;
	uint32_t depth;
	struct trio trio;
	double rate[ROUNDS_MAX]; /* operations per second */
	double p50_ns[ROUNDS_MAX];
	unsigned count;
};

/* In the order in which they take turns. */
enum {
	RING_RATE,
	PUMP_RATE,
	RING_LAT,
	READ_LAT,
	CABLE_RATE,
	READ_RATE,
	KV_CABLE_RATE,
	KV_RATE,
	KV_CABLE_LAT,
	KV_LAT,
};

struct run {
	struct options o;
	struct subject subject[SUBJECTS];
	char rack[32];
	pid_t switch_pid;
};

struct ratio {
	const char *name;
	const char *meaning;
	double value;
	double bound; /* 0: printed only */
	bool at_least;
};

/* ---- the switch ---------------------------------------------------------- */

struct bench_switch {
	struct daemon daemon;
	int ready_fd;
};

static void say_ready(struct daemon *d)
{
	(void)!write(container_of(d, struct bench_switch, daemon)->ready_fd,
		     "r", 1);
}

static int start_switch(struct run *r)
{
	struct switchd_options opt = {.yields = 400};
	struct bench_switch s = {.daemon = {.options = {.rack = r->rack,
							.name = "bench",
							.is_unconfined = true},
					    .kind = &switchd_daemon,
					    .self = &opt,
					    .ready = say_ready}};
	int fds[2];
	char c;

	if (pipe(fds) < 0)
		return -errno;
	fflush(NULL);
	r->switch_pid = fork();
	if (r->switch_pid < 0)
		return -errno;
	if (r->switch_pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		s.ready_fd = fds[1];
		if (daemon_run(&s.daemon))
			fprintf(stderr, "bench switch: %s\n", error_last());
		_exit(0);
	}
	close(fds[1]);
	/* It says a letter, or ends and closes the pipe. */
	c = (char)(read(fds[0], &c, 1) == 1 ? 'r' : 0);
	close(fds[0]);
	return c ? 0 : -EIO;
}

static void stop_switch(struct run *r)
{
	if (r->switch_pid <= 0)
		return;
	kill(r->switch_pid, SIGTERM);
	(void)waitpid(r->switch_pid, NULL, 0);
}

/* ---- rounds -------------------------------------------------------------- */

static int run_rounds(struct run *r)
{
	for (unsigned i = 0; i < r->o.rounds; i++) {
		for (unsigned k = 0; k < SUBJECTS; k++) {
			struct subject *s = &r->subject[k];
			struct trio_result res;
			int rc = trio_round(&s->trio,
					    r->o.window_ms * 1000000ull, &res);

			if (rc < 0) {
				fprintf(stderr, "bench switch: %s: %s\n",
					s->ops->name, s->trio.page->why);
				return rc;
			}
			s->rate[s->count] =
				(double)res.ops * 1e9 / (double)res.elapsed_ns;
			s->p50_ns[s->count++] = res.p50_ns;
		}
	}
	return 0;
}

static int run_all(struct run *r)
{
	static const struct {
		const struct trio_ops *ops;
		uint32_t depth;
	} plan[SUBJECTS] = {
		[RING_RATE] = {&trio_ring3, 64},
		[PUMP_RATE] = {&trio_pump, 64},
		[RING_LAT] = {&trio_ring3, 1},
		[READ_LAT] = {&trio_read, 1},
		[CABLE_RATE] = {&trio_cable, 64},
		[READ_RATE] = {&trio_read, 64},
		[KV_CABLE_RATE] = {&trio_kv_cable, 16},
		[KV_RATE] = {&trio_kv_switch, 16},
		[KV_CABLE_LAT] = {&trio_kv_cable, 1},
		[KV_LAT] = {&trio_kv_switch, 1},
	};
	int rc = start_switch(r);

	for (unsigned k = 0; rc == 0 && k < SUBJECTS; k++) {
		struct subject *s = &r->subject[k];

		s->ops = plan[k].ops;
		s->depth = plan[k].depth;
		rc = trio_start(&s->trio, s->ops, s->depth, r->rack, "bench");
		if (rc < 0)
			fprintf(stderr, "bench switch: %s does not start: %s\n",
				s->ops->name,
				s->trio.page ? s->trio.page->why : "memory");
	}
	if (rc == 0)
		rc = run_rounds(r);
	for (unsigned k = 0; k < SUBJECTS; k++)
		trio_stop(&r->subject[k].trio);
	stop_switch(r);
	return rc;
}

/* ---- the outcome --------------------------------------------------------- */

static double median(const double *v, unsigned count)
{
	double copy[ROUNDS_MAX];

	memcpy(copy, v, count * sizeof(*v));
	return stats_median(copy, count);
}

/* Of the ratios of each round: its two sides ran one after the other. */
static double median_ratio(const double *a, const double *b, unsigned count)
{
	double q[ROUNDS_MAX];

	for (unsigned i = 0; i < count; i++)
		q[i] = b[i] > 0 ? a[i] / b[i] : 0;
	return stats_median(q, count);
}

static unsigned judge(const struct run *r, struct ratio out[RATIOS])
{
	const struct subject *s = r->subject;

	out[0] = (struct ratio){
		"fwd_rate_vs_ring3",
		"small packets forwarded per second / bare forwarder",
		median_ratio(s[PUMP_RATE].rate, s[RING_RATE].rate,
			     s[PUMP_RATE].count),
		0.5, true};
	out[1] = (struct ratio){
		"via_switch_lat_vs_ring3",
		"64 B READ through the switch / round trip of the forwarder",
		median_ratio(s[READ_LAT].p50_ns, s[RING_LAT].p50_ns,
			     s[READ_LAT].count),
		2, false};
	out[2] = (struct ratio){
		"read_rate_via_switch_vs_cable",
		"64 B READs per second through the switch / over a cable",
		median_ratio(s[READ_RATE].rate, s[CABLE_RATE].rate,
			     s[READ_RATE].count),
		0, true};
	out[3] = (struct ratio){"kv_rate_via_switch_vs_cable",
				"table reads per second, 16 under way",
				median_ratio(s[KV_RATE].rate,
					     s[KV_CABLE_RATE].rate,
					     s[KV_RATE].count),
				0.5, true};
	out[4] = (struct ratio){
		"kv_single_via_switch_vs_cable",
		"table operations per second, one at a time, 1 of 16 a change",
		median_ratio(s[KV_LAT].rate, s[KV_CABLE_LAT].rate,
			     s[KV_LAT].count),
		0, true};
	return RATIOS;
}

static bool kept(const struct ratio *q)
{
	return q->bound == 0 ||
	       (q->at_least ? q->value >= q->bound : q->value <= q->bound);
}

static void print_text(const struct run *r, const struct ratio *q, unsigned n)
{
	printf("%-16s %6s %14s %12s  %s\n", "subject", "depth", "per second",
	       "p50 ns", "what");
	for (unsigned k = 0; k < SUBJECTS; k++) {
		const struct subject *s = &r->subject[k];

		printf("%-16s %6u %14.0f %12.0f  %s\n", s->ops->name, s->depth,
		       median(s->rate, s->count), median(s->p50_ns, s->count),
		       s->ops->what);
	}
	printf("packets forwarded per second by the switch: %.0f\n\n",
	       2 * median(r->subject[PUMP_RATE].rate,
			  r->subject[PUMP_RATE].count));
	for (unsigned i = 0; i < n; i++)
		printf("%-30s %8.3f  %s %.2f %s  (%s)\n", q[i].name, q[i].value,
		       q[i].bound == 0 ? ""
		       : q[i].at_least ? ">="
				       : "<=",
		       q[i].bound,
		       q[i].bound == 0 ? "printed"
		       : kept(&q[i])   ? "kept"
				       : "missed",
		       q[i].meaning);
}

static json_t *rows_json(const struct run *r)
{
	json_t *rows = json_array();

	for (unsigned k = 0; k < SUBJECTS; k++) {
		const struct subject *s = &r->subject[k];

		(void)json_array_append_new(
			rows,
			json_pack("{s:s, s:s, s:i, s:i, s:f, s:f}", "subject",
				  s->ops->name, "what", s->ops->what, "depth",
				  (int)s->depth, "rounds", (int)s->count,
				  "per_s", median(s->rate, s->count), "p50_ns",
				  median(s->p50_ns, s->count)));
	}
	return rows;
}

static int print_json(const struct run *r, const struct ratio *q, unsigned n)
{
	json_t *ratios = json_object(), *bounds = json_object(), *tree;
	struct machine m;
	int rc;

	machine_describe(&m);
	for (unsigned i = 0; i < n; i++) {
		(void)json_object_set_new(ratios, q[i].name,
					  json_real(q[i].value));
		if (q[i].bound != 0)
			(void)json_object_set_new(
				bounds, q[i].name,
				json_pack("{s:s, s:f, s:b}", "kind",
					  q[i].at_least ? "at_least"
							: "at_most",
					  "bound", q[i].bound, "kept",
					  kept(&q[i])));
	}
	tree = json_pack(
		"{s:s, s:s, s:b, s:{s:s, s:s, s:i}, s:f, s:o, s:o, s:o}",
		"bench", "switch", "commit", BENCH_COMMIT, "quick", r->o.quick,
		"machine", "cpu", m.cpu, "kernel", m.kernel, "cpus",
		(int)m.cpu_count, "packets_per_s",
		2 * median(r->subject[PUMP_RATE].rate,
			   r->subject[PUMP_RATE].count),
		"rows", rows_json(r), "ratios", ratios, "bounds", bounds);
	rc = tree && json_dumpf(tree, stdout, JSON_INDENT(2)) == 0 ? 0 : -EIO;
	printf("\n");
	json_decref(tree);
	return rc;
}

/* ---- the command --------------------------------------------------------- */

static bool parse_count(const char *text, unsigned max, unsigned *out)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (end == text || *end || v < 1 || v > max || *text == '-')
		return false;
	*out = (unsigned)v;
	return true;
}

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'},
		{"check", no_argument, NULL, 'c'},
		{"rounds", required_argument, NULL, 'r'},
		{"window", required_argument, NULL, 'w'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	bool ok = true;
	int c;

	optind = 0;
	while (ok && (c = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
		if (c == 'h') {
			fputs(usage, stdout);
			return RAN;
		}
		o->json |= c == 'j';
		o->quick |= c == 'q';
		o->check |= c == 'c';
		if (c == 'r')
			ok = parse_count(optarg, ROUNDS_MAX, &o->rounds);
		else if (c == 'w')
			ok = parse_count(optarg, 10000, &o->window_ms);
		else if (c == '?')
			ok = false;
	}
	if (!ok || optind != argc) {
		fputs(usage, stderr);
		return USAGE;
	}
	if (!o->rounds)
		o->rounds = o->quick ? ROUNDS_QUICK : ROUNDS;
	if (!o->window_ms)
		o->window_ms = o->quick ? WINDOW_MS_QUICK : WINDOW_MS;
	return -1;
}

int bench_switch_cmd(int argc, char **argv)
{
	static struct run r;
	struct ratio q[RATIOS];
	unsigned n;
	int rc = parse(argc, argv, &r.o);

	if (rc >= 0)
		return rc;
	/* A rack of its own. */
	snprintf(r.rack, sizeof(r.rack), "bench-%d", (int)getpid());
	if (run_all(&r) < 0)
		return FAILED;
	n = judge(&r, q);
	if (r.o.json) {
		if (print_json(&r, q, n) < 0)
			return FAILED;
	} else {
		print_text(&r, q, n);
	}
	for (unsigned i = 0; r.o.check && i < n; i++)
		if (!kept(&q[i]))
			return MISSED;
	return RAN;
}
