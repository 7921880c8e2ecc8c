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
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rundir.h"
#include "bench.h"
#include "client/client.h"
#include "fair.h"
#include "guard.h"
#include "place.h"
#include "ticks.h"

enum {
	SETTLE_MS = 20, /* after a change of mode */
	NODE_TRIES = 2000,
	START_TRIES = 30000,
	TIMEOUT_MS = 5000,
	REPLY_BYTES = 65536,
	QUOTA_MB = 64,
	FLOOD_ITSELF = FAIR_QUIT, /* the third row, after the two modes */
	ROWS,
};

struct run {
	unsigned window_ms, processes;
	char dir[64];
	char token[CLIENT_TOKEN_MAX]; /* of the hostile tenant */
	pid_t node, side[FAIR_PROCESSES_MAX + 1];
	unsigned sides;
	struct fair_page *page;
	struct conduct_track track[ROWS];
};

static void nap_ms(unsigned ms)
{
	(void)usleep(ms * 1000);
}

/* ---- the node and its tenants ------------------------------------------- */

static int start_node(struct run *r)
{
	int err = place_make(r->dir, "fair");

	if (err)
		return error_set(err, "%s cannot be made", r->dir);
	(void)setenv("AQUIFER_RUNDIR", r->dir, 1);
	(void)setenv("AQUIFER_CONFIG", "/dev/null", 1); /* nobody's settings */
	r->node = place_start_aquifer(PLACE_SERVER, "memory", "--size", "256M",
				      (char *)NULL);
	return r->node < 0
		       ? error_set((int)r->node, "no process can be started")
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
			_exit(fair_work(r->page) ? 1 : 0);
		(void)setenv("AQUIFER_TOKEN", r->token, 1);
		_exit(fair_flood(r->page, index - 1) ? 1 : 0);
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
		/* FAIR-1: who counts as ready has set up. */
		for (unsigned k = 0;
		     !err && k < START_TRIES &&
		     atomic_load_explicit(&r->page->ready,
					  memory_order_acquire) <= i;
		     k++)
			nap_ms(1);
	}
	/* FAIR-2: who sees a failure sees why. */
	if (!err &&
	    atomic_load_explicit(&r->page->failed, memory_order_acquire))
		err = error_set(-EIO, "%s", r->page->why);
	/* FAIR-1 */
	if (!err && atomic_load_explicit(&r->page->ready,
					 memory_order_acquire) <= r->processes)
		err = error_set(-ETIMEDOUT, "the clients do not start");
	return err;
}

static void stop_all(struct run *r)
{
	if (r->page)
		atomic_store_explicit(&r->page->mode, FAIR_QUIT,
				      memory_order_relaxed);
	while (r->sides)
		(void)waitpid(r->side[--r->sides], NULL, 0);
	place_end(r->node);
	place_remove(r->dir);
}

/* ---- rounds ------------------------------------------------------------- */

static int run_window(struct run *r, enum fair_mode mode, unsigned round)
{
	uint64_t worked, flooded, since_ns, node_ns;

	atomic_store_explicit(&r->page->mode, mode, memory_order_relaxed);
	nap_ms(SETTLE_MS);
	since_ns = bench_now_ns();
	worked = atomic_load_explicit(&r->page->worked, memory_order_relaxed);
	flooded = atomic_load_explicit(&r->page->flooded, memory_order_relaxed);
	node_ns = guard_process_ns(r->node);
	nap_ms(r->window_ms);
	worked = atomic_load_explicit(&r->page->worked, memory_order_relaxed) -
		 worked;
	flooded =
		atomic_load_explicit(&r->page->flooded, memory_order_relaxed) -
		flooded;
	node_ns = guard_process_ns(r->node) - node_ns;
	since_ns = bench_now_ns() - since_ns;
	conduct_record(&r->track[mode], round, worked, since_ns);
	r->track[mode].round[round].more[SUBJECT_MORE_CPU] =
		(double)node_ns / (double)since_ns;
	if (mode == FAIR_FLOOD)
		conduct_record(&r->track[FLOOD_ITSELF], round, flooded,
			       since_ns);
	/* FAIR-2 */
	if (atomic_load_explicit(&r->page->failed, memory_order_acquire))
		return error_set(-EIO, "%s", r->page->why);
	return 0;
}

static int run_rounds(struct run *r, unsigned rounds)
{
	int err = start_node(r);

	if (!err)
		err = make_tenant(r);
	if (!err)
		err = start_sides(r);
	/* The first flood shows how busy it makes its processes; the next one
	 * takes its place. */
	if (!err)
		err = run_window(r, FAIR_FLOOD, 0);
	r->track[FAIR_FLOOD].kept = r->track[FLOOD_ITSELF].kept = 0;
	for (unsigned i = 0; i < rounds && !err; i++) {
		err = run_window(r, FAIR_BUSY, i);
		if (!err)
			err = run_window(r, FAIR_FLOOD, i);
	}
	stop_all(r);
	return err;
}

/* The node's part of its core. */
static void add_core(struct bench *b, const struct conduct_group *g,
		     const struct conduct_track *t, json_t *row)
{
	if (t != &g->track[FLOOD_ITSELF])
		json_object_set_new(
			row, "node_core",
			json_real(conduct_more(t, SUBJECT_MORE_CPU, false)));
}

static int run(struct bench *b)
{
	static const struct subject_desc beside[ROWS] = {
		[FAIR_BUSY] = {.name = "beside_busy",
			       .what = "READs beside processes that only use "
				       "their core"},
		[FAIR_FLOOD] = {.name = "beside_flood",
				.what = "READs beside processes that flood"},
		[FLOOD_ITSELF] = {.name = "flood", .what = "the flood itself"},
	};
	struct run *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return bench_fail(b, -ENOMEM, "no memory");
	for (unsigned i = 0; i < ROWS; i++)
		r->track[i].desc = &beside[i];
	r->window_ms = b->window_ms;
	r->processes = (unsigned)bench_number(b, "processes");
	r->page = mmap(NULL, sizeof(*r->page), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r->page == MAP_FAILED) {
		free(r);
		return bench_fail(b, -ENOMEM, "no memory");
	}
	err = run_rounds(r, b->rounds);
	for (unsigned i = 0; i < ROWS && err; i++)
		snprintf(r->track[i].why, sizeof(r->track[i].why), "%s",
			 error_last());
	bench_report_tracks(b, "fair", r->track, ROWS, add_core);
	free(r);
	return err;
}

static const struct bench_option options[] = {
	BENCH_OPTION("processes", "N", "processes of the tenant who floods", 1,
		     FAIR_PROCESSES_MAX, 6, 6),
	{.name = NULL},
};
static const struct bench_ratio ratios[] = {
	BENCH_RATIO("fair_under_flood",
		    "READs beside a tenant whose processes flood / beside one "
		    "whose "
		    "processes only use their core",
		    "fair", ">=", 0.5, "beside_flood", "beside_busy",
		    METRIC_RATE, NULL),
	{.name = NULL},
};

static const char *const columns[] = {"node_core", NULL};

const struct bench_def bench_fair = {
	.name = "fair",
	.summary = "a tenant beside another one who floods the memory node",
	.about = "One tenant READs 64 bytes, 16 at a time, from a memory node "
		 "of its own, beside another\none whose processes flood the "
		 "node or keep their core busy, in turns.\n",
	.rounds = 9,
	.rounds_quick = 2,
	.window_ms = 400,
	.window_ms_quick = 100,
	.options = options,
	.ratios = ratios,
	.columns = columns,
	.run = run,
};
