/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `aquifer bench fair`: what a tenant gets beside one who does its worst. The
 * one who works has a core of its own; the hostile processes share the other
 * with the memory node. In half of the windows they flood the node, in the
 * other half they keep that core as busy and send nothing: so the scheduler
 * gives the node about the same time in both, which is printed, and the ratio
 * is how the node divides it.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rundir.h"
#include "bench.h"
#include "bench_commit.h"
#include "client/client.h"
#include "fair.h"
#include "guard.h"
#include "machine.h"
#include "stats.h"

enum {
	RAN = 0,
	FAILED = 1,
	USAGE = 2,
	MISSED = 3,
	ROUNDS = 9,
	ROUNDS_QUICK = 2,
	ROUNDS_MAX = 101,
	WINDOW_MS = 400,
	WINDOW_MS_QUICK = 100,
	SETTLE_MS = 20, /* after a change of mode */
	PROCESSES = 6,
	NODE_TRIES = 2000,
	START_TRIES = 30000,
	TIMEOUT_MS = 5000,
	REPLY_BYTES = 65536,
	QUOTA_MB = 64,
};

#define BOUND 0.5

static const char usage[] =
	"usage: aquifer bench fair [--json] [--quick] [--check]\n"
	"                          [--rounds N] [--window MS] [--processes N]\n"
	"One tenant READs 64 bytes, 16 at a time, from a memory node of its "
	"own,\n"
	"beside another one with N processes (6) that flood the node or keep\n"
	"their core busy, in turns.\n"
	"  --quick   short rounds: shows that it works, proves nothing\n"
	"  --check   exit code 3 when the ratio misses its bound\n";

struct run {
	bool json, quick, check;
	unsigned rounds, window_ms, processes;
	char dir[64];
	char token[CLIENT_TOKEN_MAX]; /* of the hostile tenant */
	pid_t node, side[FAIR_PROCESSES_MAX + 1];
	unsigned sides;
	struct fair_page *page;
	double rate[FAIR_QUIT][ROUNDS_MAX], flood[ROUNDS_MAX];
	double core[FAIR_QUIT][ROUNDS_MAX]; /* the node's part of it */
	double ratio;
};

static void nap_ms(unsigned ms)
{
	struct timespec t = {.tv_sec = ms / 1000,
			     .tv_nsec = ms % 1000 * 1000000l};

	(void)nanosleep(&t, NULL);
}

static double now_s(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the node and its tenants ------------------------------------------- */

static int start_node(struct run *r)
{
	snprintf(r->dir, sizeof(r->dir), "/tmp/aquifer-fair-%d", (int)getpid());
	if (mkdir(r->dir, 0700))
		return error_set(-errno, "%s cannot be made", r->dir);
	(void)setenv("AQUIFER_RUNDIR", r->dir, 1);
	(void)setenv("AQUIFER_CONFIG", "/dev/null", 1); /* nobody's settings */
	fflush(NULL);
	r->node = fork();
	if (r->node < 0)
		return error_set(-errno, "no process can be started");
	if (r->node == 0) {
		int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		(void)guard_pin(GUARD_CPU_SERVER);
		(void)guard_enter_nice();
		if (fd >= 0)
			(void)dup2(fd, STDOUT_FILENO);
		execl(machine_aquifer(), "aquifer", "memory", "--size", "256M",
		      (char *)NULL);
		_exit(127);
	}
	return 0;
}

static int ask_tenant(struct client_http *http, const struct client_node *node,
		      const char *admin, struct run *r)
{
	const struct client_caller caller = {.http = http, .token = admin};
	json_t *reply = NULL;
	int err = client_call(&caller, node, "POST", "/v1/tenants",
			      json_pack("{s:s, s:I}", "name", "flood", "quota",
					(json_int_t)QUOTA_MB << 20),
			      TIMEOUT_MS, REPLY_BYTES, &reply);

	if (!err)
		err = client_json_word(reply, "token", r->token,
				       sizeof(r->token));
	json_decref(reply);
	return err;
}

/* The node starts beside us. */
static int make_tenant(struct run *r)
{
	struct client_node nodes[CLIENT_NODE_MAX];
	char rundir[RUNDIR_PATH_MAX], admin[CLIENT_TOKEN_MAX];
	struct client_http *http;
	int err = rundir_path("local", rundir);

	if (err)
		return err;
	err = client_http_create(&http);
	if (err)
		return err;
	err = -ENOENT;
	for (unsigned i = 0; err && i < NODE_TRIES; i++) {
		nap_ms(5);
		err = client_token_read(rundir, "admin-token", admin);
		if (!err && client_nodes_find(NULL, rundir, nodes) != 1)
			err = error_set(-ENOENT, "the node does not start");
		if (!err)
			err = ask_tenant(http, &nodes[0], admin, r);
	}
	client_http_destroy(http);
	return err;
}

/* ---- the clients -------------------------------------------------------- */

static int start_side(struct run *r, unsigned index)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return error_set(-errno, "no process can be started");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)guard_pin(index ? GUARD_CPU_SERVER : GUARD_CPU_CLIENT);
		(void)guard_enter_nice();
		/* Who naps and wakes up takes the core from who works: then the
		 * node would have less of it beside the flood. */
		if (index)
			(void)sched_setscheduler(
				0, SCHED_BATCH,
				&(struct sched_param){.sched_priority = 0});
		if (index == 0)
			_exit(fair_work(r->page) ? FAILED : RAN);
		(void)setenv("AQUIFER_TOKEN", r->token, 1);
		_exit(fair_flood(r->page, index - 1) ? FAILED : RAN);
	}
	r->side[r->sides++] = pid;
	return 0;
}

static int start_sides(struct run *r)
{
	int err = 0;

	for (unsigned i = 0; i <= r->processes && !err; i++) {
		err = start_side(r, i);
		/* One after the other: they share a core. */
		for (unsigned k = 0; !err && k < START_TRIES &&
				     atomic_load(&r->page->ready) <= i;
		     k++)
			nap_ms(1);
	}
	if (!err && atomic_load(&r->page->failed))
		err = error_set(-EIO, "%s", r->page->why);
	if (!err && atomic_load(&r->page->ready) <= r->processes)
		err = error_set(-ETIMEDOUT, "the clients do not start");
	return err;
}

static int remove_one(const char *path, const struct stat *st, int kind,
		      struct FTW *ftw)
{
	(void)!remove(path); /* what will not go stays in /tmp */
	return 0;
}

static void stop_all(struct run *r)
{
	if (r->page)
		atomic_store(&r->page->mode, FAIR_QUIT);
	while (r->sides)
		(void)waitpid(r->side[--r->sides], NULL, 0);
	if (r->node > 0) {
		(void)kill(r->node, SIGTERM);
		(void)waitpid(r->node, NULL, 0);
	}
	if (r->dir[0])
		(void)nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- rounds ------------------------------------------------------------- */

static int run_window(struct run *r, enum fair_mode mode, unsigned round)
{
	uint64_t worked, flooded, node_ns;
	double since;

	atomic_store(&r->page->mode, mode);
	nap_ms(SETTLE_MS);
	since = now_s();
	worked = atomic_load(&r->page->worked);
	flooded = atomic_load(&r->page->flooded);
	node_ns = guard_process_ns(r->node);
	nap_ms(r->window_ms);
	worked = atomic_load(&r->page->worked) - worked;
	flooded = atomic_load(&r->page->flooded) - flooded;
	node_ns = guard_process_ns(r->node) - node_ns;
	since = now_s() - since;
	r->rate[mode][round] = (double)worked / since;
	r->core[mode][round] = (double)node_ns * 1e-9 / since;
	if (mode == FAIR_FLOOD)
		r->flood[round] = (double)flooded / since;
	if (atomic_load(&r->page->failed))
		return error_set(-EIO, "%s", r->page->why);
	return 0;
}

static int run_all(struct run *r)
{
	double ratio[ROUNDS_MAX];
	int err;

	r->page = mmap(NULL, sizeof(*r->page), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r->page == MAP_FAILED) {
		r->page = NULL;
		return error_set(-ENOMEM, "no memory");
	}
	err = start_node(r);
	if (!err)
		err = make_tenant(r);
	if (!err)
		err = start_sides(r);
	/* The first flood shows how busy it makes its processes. */
	if (!err)
		err = run_window(r, FAIR_FLOOD, 0);
	for (unsigned i = 0; i < r->rounds && !err; i++) {
		err = run_window(r, FAIR_BUSY, i);
		if (!err)
			err = run_window(r, FAIR_FLOOD, i);
		ratio[i] =
			r->rate[FAIR_BUSY][i] > 0
				? r->rate[FAIR_FLOOD][i] / r->rate[FAIR_BUSY][i]
				: 0;
	}
	stop_all(r);
	if (!err)
		r->ratio = stats_median(ratio, r->rounds);
	return err;
}

/* ---- the outcome -------------------------------------------------------- */

static void print_text(struct run *r)
{
	printf("%-28s %14s %14s\n", "subject", "per second", "node's core");
	printf("%-28s %14.0f %14.3f\n", "beside busy processes",
	       stats_median(r->rate[FAIR_BUSY], r->rounds),
	       stats_median(r->core[FAIR_BUSY], r->rounds));
	printf("%-28s %14.0f %14.3f\n", "beside the flood",
	       stats_median(r->rate[FAIR_FLOOD], r->rounds),
	       stats_median(r->core[FAIR_FLOOD], r->rounds));
	printf("%-28s %14.0f\n\n", "the flood itself",
	       stats_median(r->flood, r->rounds));
	printf("%-28s %8.3f  >= %.2f %s  (READs beside a tenant with %u "
	       "processes that flood / beside one whose processes only use "
	       "their core)\n",
	       "fair_under_flood", r->ratio, BOUND,
	       r->ratio >= BOUND ? "kept" : "missed", r->processes);
}

static int print_json(struct run *r)
{
	struct machine m;
	json_t *tree;
	int rc;

	machine_describe(&m);
	tree = json_pack(
		"{s:s, s:s, s:b, s:{s:s, s:s, s:i}, s:i, s:[{s:s, s:f, s:f}, "
		"{s:s, s:f, s:f}, {s:s, s:f}], s:{s:f}, s:{s:{s:s, s:f, s:b}}}",
		"bench", "fair", "commit", BENCH_COMMIT, "quick", r->quick,
		"machine", "cpu", m.cpu, "kernel", m.kernel, "cpus",
		(int)m.cpu_count, "processes", (int)r->processes, "rows",
		"subject", "beside_busy", "per_s",
		stats_median(r->rate[FAIR_BUSY], r->rounds), "node_core",
		stats_median(r->core[FAIR_BUSY], r->rounds), "subject",
		"beside_flood", "per_s",
		stats_median(r->rate[FAIR_FLOOD], r->rounds), "node_core",
		stats_median(r->core[FAIR_FLOOD], r->rounds), "subject",
		"flood", "per_s", stats_median(r->flood, r->rounds), "ratios",
		"fair_under_flood", r->ratio, "bounds", "fair_under_flood",
		"kind", "at_least", "bound", BOUND, "kept", r->ratio >= BOUND);
	rc = tree && json_dumpf(tree, stdout, JSON_INDENT(2)) == 0 ? 0 : -EIO;
	printf("\n");
	json_decref(tree);
	return rc;
}

static bool take_number(const char *text, unsigned most, unsigned *out)
{
	char *rest;
	unsigned long v = strtoul(text, &rest, 10);

	*out = (unsigned)v;
	return *text && !*rest && v >= 1 && v <= most;
}

static int parse(struct run *r, int argc, char **argv)
{
	static const struct option all[] = {
		{"json", no_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'},
		{"check", no_argument, NULL, 'c'},
		{"rounds", required_argument, NULL, 'r'},
		{"window", required_argument, NULL, 'w'},
		{"processes", required_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	bool good = true;
	int c;

	optind = 1;
	while (good && (c = getopt_long(argc, argv, "", all, NULL)) != -1)
		switch (c) {
		case 'j':
			r->json = true;
			break;
		case 'q':
			r->quick = true;
			break;
		case 'c':
			r->check = true;
			break;
		case 'r':
			good = take_number(optarg, ROUNDS_MAX, &r->rounds);
			break;
		case 'w':
			good = take_number(optarg, 60000, &r->window_ms);
			break;
		case 'p':
			good = take_number(optarg, FAIR_PROCESSES_MAX,
					   &r->processes);
			break;
		case 'h':
			fputs(usage, stdout);
			return -1;
		default:
			good = false;
		}
	if (good && optind == argc)
		return 0;
	fputs(usage, stderr);
	return USAGE;
}

int bench_fair_cmd(int argc, char **argv)
{
	struct run *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return FAILED;
	r->processes = PROCESSES;
	rc = parse(r, argc, argv);
	if (rc) {
		free(r);
		return rc < 0 ? RAN : rc;
	}
	if (!r->rounds)
		r->rounds = r->quick ? ROUNDS_QUICK : ROUNDS;
	if (!r->window_ms)
		r->window_ms = r->quick ? WINDOW_MS_QUICK : WINDOW_MS;
	if (run_all(r)) {
		fprintf(stderr, "bench fair: %s\n", error_last());
		rc = FAILED;
	} else if (r->json) {
		rc = print_json(r) ? FAILED : RAN;
	} else {
		print_text(r);
	}
	if (rc == RAN && r->check && r->ratio < BOUND)
		rc = MISSED;
	free(r);
	return rc;
}
