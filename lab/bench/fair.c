/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `aquifer bench fair`: what a tenant gets beside one who does its worst. The
 * node has a core of its own, and the tenants the other one, half each
 * (fair_client.c); in half of the windows one of them floods the node, in the
 * other half it does nothing with its time. The ratio is how the node divides
 * its own.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rundir.h"
#include "bench.h"
#include "client/client.h"
#include "fair.h"
#include "place.h"
#include "shield.h"
#include "stats.h"

enum {
	NODE_TRIES = 2000,
	NODE_TRY_US = 5000,
	TIMEOUT_MS = 5000,
	REPLY_BYTES = 65536,
	QUOTA_MB = 64,
};

/* Who works, and who floods beside it. */
static const struct fair_pair pairs[] = {
#define READS_BESIDE(name, what, flood)                                     \
	{                                                                   \
		"reads_" name, "READs beside " what, FAIR_READ_SMALL, flood \
	}
	READS_BESIDE("read64", "READs of 64 B", FAIR_READ_SMALL),
	READS_BESIDE("read4k", "READs of 4 KiB", FAIR_READ),
	READS_BESIDE("write4k", "WRITEs of 4 KiB", FAIR_WRITE),
	READS_BESIDE("atomic", "atomics", FAIR_ATOMIC),
	READS_BESIDE("chain", "pages by chains", FAIR_CHAIN),
	READS_BESIDE("message", "pages by messages", FAIR_MESSAGE),
	READS_BESIDE("again_read64", "an old READ again",
		     FAIR_AGAIN_READ_SMALL),
	READS_BESIDE("again_read4k", "an old READ of 4 KiB", FAIR_AGAIN_READ),
	READS_BESIDE("again_write4k", "an old WRITE of 4 KiB",
		     FAIR_AGAIN_WRITE),
	READS_BESIDE("again_atomic", "an old atomic", FAIR_AGAIN_ATOMIC),
	READS_BESIDE("unready", "messages that get NAKs", FAIR_UNREADY),
	READS_BESIDE("bad_key", "requests with a bad key", FAIR_BAD_KEY),
	READS_BESIDE("damaged", "damaged frames of 4 KiB", FAIR_DAMAGED),
#undef READS_BESIDE
#define CHAINS_BESIDE(name, what, flood)                                    \
	{                                                                   \
		"chains_" name, "pages by chains beside " what, FAIR_CHAIN, \
			flood                                               \
	}
	CHAINS_BESIDE("read4k", "READs of 4 KiB", FAIR_READ),
	CHAINS_BESIDE("chain", "the same", FAIR_CHAIN),
	CHAINS_BESIDE("message", "pages by messages", FAIR_MESSAGE),
	CHAINS_BESIDE("again_read4k", "an old READ of 4 KiB", FAIR_AGAIN_READ),
#undef CHAINS_BESIDE
#define MESSAGES_BESIDE(name, what, flood)                          \
	{                                                           \
		"messages_" name, "pages by messages beside " what, \
			FAIR_MESSAGE, flood                         \
	}
	MESSAGES_BESIDE("read4k", "READs of 4 KiB", FAIR_READ),
	MESSAGES_BESIDE("chain", "pages by chains", FAIR_CHAIN),
	MESSAGES_BESIDE("message", "the same", FAIR_MESSAGE),
	MESSAGES_BESIDE("again_read4k", "an old READ of 4 KiB",
			FAIR_AGAIN_READ),
#undef MESSAGES_BESIDE
};

struct run {
	struct fair_plan plan;
	char dir[64];
	char token[CLIENT_TOKEN_MAX]; /* of the hostile tenant */
	struct fair_page *page;
};

/* ---- the node and its tenants ------------------------------------------- */

static int start_node(struct run *r)
{
	int err = place_make(r->dir, "fair");

	if (err)
		return error_set(err, "%s cannot be made", r->dir);
	(void)setenv("AQUIFER_RUNDIR", r->dir, 1);
	(void)setenv("AQUIFER_CONFIG", "/dev/null", 1); /* nobody's settings */
	r->plan.node = place_start_aquifer(PLACE_SERVER, "memory", "--size",
					   "256M", (char *)NULL);
	return r->plan.node < 0 ? error_set((int)r->plan.node,
					    "no process can be started")
				: 0;
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
		(void)usleep(NODE_TRY_US);
		err = client_token_read(NULL, rundir, RACK_TOKEN_ADMIN, admin);
		if (!err && client_nodes_find(NULL, rundir, nodes) != 1)
			err = error_set(-ENOENT, "the node does not start");
		if (!err)
			err = ask_tenant(http, &nodes[0], admin, r);
	}
	client_http_destroy(http);
	return err;
}

/* ---- the outcome -------------------------------------------------------- */

static int measure(struct run *r)
{
	pid_t pid;
	int err;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return error_set(-errno, "no process can be started");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(fair_client(&r->plan, r->page) ? 1 : 0);
	}
	err = place_wait(pid);
	return err ? error_set(err, "%s",
			       r->page->why[0] ? r->page->why
					       : "the clients ended")
		   : 0;
}

static double rate(uint64_t count, uint64_t elapsed_ns)
{
	return (double)count * 1e9 / (double)elapsed_ns;
}

/* Its row; the median over the rounds of what was left. */
static double report(struct bench *b, const struct run *r, unsigned at)
{
	double left[CONDUCT_ROUNDS_MAX], alone[CONDUCT_ROUNDS_MAX],
		beside[CONDUCT_ROUNDS_MAX], flood[CONDUCT_ROUNDS_MAX];
	unsigned n = 0;
	double median;
	json_t *row;

	for (unsigned i = 0; i < b->rounds; i++) {
		const struct fair_round *one = &r->page->round[at][i];

		if (!one->worked[0])
			continue; /* the node did not run at all */
		alone[n] = rate(one->worked[0], one->elapsed_ns[0]);
		beside[n] = rate(one->worked[1], one->elapsed_ns[1]);
		flood[n] = rate(one->flooded, one->elapsed_ns[1]);
		left[n] = beside[n] / alone[n];
		n++;
	}
	if (!n) {
		bench_row_failed(b, "fair", pairs[at].name, "ratio",
				 "the node did not run");
		return NAN;
	}
	median = stats_median(left, n);
	row = bench_row(b, "fair", pairs[at].name, median, "ratio",
			pairs[at].what);
	/* Sorted by now. */
	json_object_update_new(
		row,
		json_pack("{s:f, s:f, s:f, s:f, s:f, s:i, s:s}", "min", left[0],
			  "max", left[n - 1], "alone", stats_median(alone, n),
			  "beside", stats_median(beside, n), "flood",
			  stats_median(flood, n), "rounds", (int)n, "guard",
			  shield_name((enum shield_kind)r->page->shield)));
	return median;
}

static bool is_wanted(const struct run *r, unsigned at)
{
	return !r->plan.only || strcmp(r->plan.only, pairs[at].name) == 0;
}

/* The worst of them, unless one gave no number. */
static void report_all(struct bench *b, const struct run *r)
{
	double worst = INFINITY;

	for (unsigned i = 0; i < ARRAY_LEN(pairs); i++) {
		double left = is_wanted(r, i) ? report(b, r, i) : INFINITY;

		if (!(left >= worst) && !isnan(worst))
			worst = left;
	}
	bench_ratio_add(b, "fair_under_flood", worst);
}

static int check_pair(const struct run *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ARRAY_LEN(pairs); i++)
		n += is_wanted(r, i);
	return n ? 0
		 : error_set(-EINVAL, "there is no row %.40s", r->plan.only);
}

static int run_all(struct run *r)
{
	int err = check_pair(r);

	if (err)
		return err;
	err = start_node(r);
	if (!err)
		err = make_tenant(r);
	if (!err)
		err = measure(r);
	place_end(r->plan.node);
	place_remove(r->dir);
	return err;
}

static int run(struct bench *b)
{
	size_t bytes = sizeof(struct fair_page) +
		       ARRAY_LEN(pairs) * sizeof(struct fair_round) *
			       CONDUCT_ROUNDS_MAX;
	struct run r = {.plan = {.pair = pairs,
				 .pairs = ARRAY_LEN(pairs),
				 .rounds = b->rounds,
				 .window_ms = b->window_ms,
				 .nics = (unsigned)bench_number(b, "nics"),
				 .only = bench_word(b, "pair"),
				 .token = r.token}};
	int err;

	r.page = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r.page == MAP_FAILED)
		return bench_fail(b, -ENOMEM, "no memory");
	err = run_all(&r);
	if (err) {
		bench_row_failed(b, "fair", "all", "ratio", error_last());
		(void)bench_fail(b, err, "%s", error_last());
	} else {
		report_all(b, &r);
	}
	(void)munmap(r.page, bytes);
	return err;
}

static const struct bench_option options[] = {
	BENCH_OPTION("nics", "N", "NICs of the tenant who floods", 1,
		     FAIR_NICS_MAX, 4, 2),
	BENCH_WORD("pair", "NAME", "only this row"),
	{.name = NULL},
};
static const struct bench_ratio ratios[] = {
	BENCH_NUMBER("fair_under_flood",
		     "what a tenant gets beside another one who floods the "
		     "node / beside one who does nothing; the worst row",
		     "fair", ">=", 0.5),
	{.name = NULL},
};

static const char *const columns[] = {"min",	"max",	 "alone",
				      "beside", "flood", NULL};

const struct bench_def bench_fair = {
	.name = "fair",
	.summary = "a tenant beside another one who floods the memory node",
	.about = "One tenant of a memory node works, 16 operations at a time, "
		 "beside another one who floods\nthe node in every second "
		 "window. Each of them has half of a core.\n",
	.rounds = 9,
	.rounds_quick = 1,
	.window_ms = 40,
	.window_ms_quick = 20,
	.options = options,
	.ratios = ratios,
	.columns = columns,
	.run = run,
};
