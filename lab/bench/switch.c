/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench switch`: the switch beside a bare forwarder, and READs and a
 * table through it beside a cable, in turns. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "bench.h"
#include "peers.h"
#include "place.h"
#include "switch_bench.h"
#include "switchd/switchd.h"

/* ---- the switch ---------------------------------------------------------- */

static char rack[32]; /* of its own; its name is made by run() */

/* The switches: one for traffic, and those whose processor time is measured. */
enum {
	PLAIN,
	FORWARD,
	SWORD,
	STEER,
	SWITCHES,
};

static const struct {
	const char *name, *program;
} switches[SWITCHES] = {
	[PLAIN] = {SWITCH_NAME, NULL},
	[FORWARD] = {SWITCH_FORWARD, NULL},
	[SWORD] = {SWITCH_SWORD, "swordbox:open,rto_us=900000"},
	[STEER] = {SWITCH_STEER, "steer:resend_us=900000"},
};

static pid_t pids[SWITCHES];

struct own_switch {
	struct daemon daemon;
	int ready_fd;
};

static void say_ready(struct daemon *d)
{
	(void)!write(container_of(d, struct own_switch, daemon)->ready_fd, "r",
		     1);
}

static int start_switch(struct bench *b, unsigned which)
{
	const char *program = switches[which].program;
	struct switchd_options opt = {.yields = 400,
				      .programs = {program},
				      .program_count = program != NULL};
	struct own_switch s = {
		.daemon = {.options = {.rack = rack,
				       .name = switches[which].name,
				       .is_unconfined = true},
			   .kind = &switchd_daemon,
			   .self = &opt,
			   .ready = say_ready}};
	pid_t *pid = &pids[which];
	int fds[2];
	char c;

	fflush(NULL);
	if (pipe(fds) < 0 || (*pid = fork()) < 0)
		return bench_fail(b, -errno, "no process for the switch");
	if (*pid == 0) {
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
	return c ? 0 : bench_fail(b, -EIO, "the switch does not start");
}

/* ---- the subjects -------------------------------------------------------- */

#define PARAM(depth_, at_)                                         \
	&(const struct switch_param)                               \
	{                                                          \
		.depth = depth_, .is_at_switch = at_, .rack = rack \
	}
#define ENDS(switch_, number_, has_, moved_, one_list_)                        \
	&(const struct switch_param)                                           \
	{                                                                      \
		.rack = rack, .name = name_of_##switch_,                       \
		.pid = &pids[switch_], .number = number_, .has_program = has_, \
		.is_moved = moved_, .is_one_list = one_list_                   \
	}
#define name_of_FORWARD SWITCH_FORWARD
#define name_of_SWORD	SWITCH_SWORD
#define name_of_STEER	SWITCH_STEER
/* Without special priorities a process may wait long for its turn on a busy
 * machine: the acknowledgement timeout is a second. */
#define READ(depth_)                                                           \
	&(const struct ours_param)                                             \
	{                                                                      \
		.block = 64, .depth = depth_, .qp_count = 1, .ack_timeout = 18 \
	}
#define SUBJECT(name_, what_, ops_, param_, switch_)                        \
	&(const struct subject_desc)                                        \
	{                                                                   \
		.name = name_, .what = what_, .ops = ops_, .param = param_, \
		.at_switch = switch_, .is_plain = true                      \
	}

static struct conduct_group groups[] = {
	{"frames",
	 METRIC_RATE,
	 {SUBJECT("ring3", "bare rings of 64 B slots through a forwarder",
		  &switch_ring3_ops, PARAM(64, false), NULL),
	  SUBJECT("switch_frames", "62 B frames through the switch and back",
		  &switch_pump_ops, PARAM(64, true), SWITCH_NAME)},
	 2,
	 NULL},
	{"read_lat",
	 METRIC_P50,
	 {SUBJECT("ring3_single", "one slot at a time through a forwarder",
		  &switch_ring3_ops, PARAM(1, false), NULL),
	  SUBJECT("switch_read64_single",
		  "READ 64 B through the switch, one outstanding", &ours_ops,
		  READ(1), SWITCH_NAME)},
	 2,
	 NULL},
	{"read_rate",
	 METRIC_RATE,
	 {SUBJECT("cable_read64", "READ 64 B over a cable, 64 outstanding",
		  &ours_ops, READ(64), NULL),
	  SUBJECT("switch_read64",
		  "READ 64 B through the switch, 64 outstanding", &ours_ops,
		  READ(64), SWITCH_NAME)},
	 2,
	 NULL},
	{"kv_rate",
	 METRIC_RATE,
	 {SUBJECT("cable_kv", "table reads over a cable, 16 under way",
		  &switch_kv_ops, PARAM(16, false), NULL),
	  SUBJECT("switch_kv", "table reads through the switch, 16 under way",
		  &switch_kv_ops, PARAM(16, true), SWITCH_NAME)},
	 2,
	 NULL},
	{"kv_single",
	 METRIC_RATE,
	 {SUBJECT("cable_kv_single",
		  "table operations over a cable, 1 of 16 a change",
		  &switch_kv_ops, PARAM(1, false), NULL),
	  SUBJECT("switch_kv_single",
		  "table operations through the switch, 1 of 16 a change",
		  &switch_kv_ops, PARAM(1, true), SWITCH_NAME)},
	 2,
	 NULL},
	{"cas",
	 METRIC_RATE,
	 {SUBJECT("forward_cas", "compare-and-swaps, only forwarded",
		  &switch_sword_ops, ENDS(FORWARD, 0, false, false, false),
		  NULL),
	  SUBJECT("swordbox_cas", "compare-and-swaps that swordbox replaces",
		  &switch_sword_ops, ENDS(SWORD, 1, true, false, false), NULL),
	  SUBJECT("swordbox_moved", "the same on moved connections",
		  &switch_sword_ops, ENDS(SWORD, 2, true, true, false), NULL)},
	 3,
	 NULL},
	{"append",
	 METRIC_RATE,
	 {SUBJECT("forward_append", "appends to version lists, only forwarded",
		  &switch_steer_ops, ENDS(FORWARD, 3, false, false, false),
		  NULL),
	  SUBJECT("steer_append", "appends where their clients know the end",
		  &switch_steer_ops, ENDS(STEER, 4, true, false, false), NULL),
	  SUBJECT("steer_steered", "appends that steer sends to the end",
		  &switch_steer_ops, ENDS(STEER, 5, true, false, true), NULL)},
	 3,
	 NULL},
};

static const struct bench_ratio ratios[] = {
	BENCH_NUMBER("swordbox_cas_rate",
		     "million compare-and-swaps of one word that the switch "
		     "replaces per second of one core (published: 2.8)",
		     "cas", ">=", 2),
	BENCH_NUMBER("swordbox_moved_rate",
		     "the same on connections that are the switch's", "cas",
		     NULL, 0),
	BENCH_NUMBER("forward_cas_rate",
		     "compare-and-swaps that it only forwards", "cas", NULL, 0),
	BENCH_NUMBER("steer_steered_rate",
		     "million appends to one list that the switch sends to its "
		     "end, per second of one core",
		     "append", NULL, 0),
	BENCH_NUMBER("steer_append_rate",
		     "the same, a list for each connection: nothing to steer",
		     "append", NULL, 0),
	BENCH_NUMBER("forward_append_rate", "appends that it only forwards",
		     "append", NULL, 0),
	BENCH_RATIO("fwd_rate_vs_ring3",
		    "small packets forwarded per second / bare forwarder",
		    "frames", ">=", 0.5, "switch_frames", "ring3", METRIC_RATE,
		    NULL),
	BENCH_RATIO(
		"via_switch_lat_vs_ring3",
		"64 B READ through the switch / round trip of the forwarder",
		"read_lat", "<=", 2, "switch_read64_single", "ring3_single",
		METRIC_P50, NULL),
	BENCH_RATIO("read_rate_via_switch_vs_cable",
		    "64 B READs per second through the switch / over a cable",
		    "read_rate", NULL, 0, "switch_read64", "cable_read64",
		    METRIC_RATE, NULL),
	BENCH_RATIO("kv_rate_via_switch_vs_cable",
		    "table reads per second, 16 under way", "kv_rate",
		    ">=", 0.5, "switch_kv", "cable_kv", METRIC_RATE, NULL),
	BENCH_RATIO(
		"kv_single_via_switch_vs_cable",
		"table operations per second, one at a time, 1 of 16 a change",
		"kv_single", ">=", 0.6, "switch_kv_single", "cable_kv_single",
		METRIC_RATE, NULL),
	{.name = NULL},
};

/* What the switch does with a second of a core, in its best round: other load
 * takes cores and caches away between two packets, and gives nothing. */
static void add_per_core(struct bench *b, const struct conduct_track *t)
{
	double best = 0;
	char name[48];

	for (unsigned i = 0; i < CONDUCT_ROUNDS_MAX; i++) {
		double v = t->round[i].more[SIDE_MORE_PER_CORE];

		best = t->is_clean[i] && v > best ? v : best;
	}
	snprintf(name, sizeof(name), "%s_rate", t->desc->name);
	bench_ratio_add(b, name, best);
}

/* Each frame is forwarded twice. */
static void add_packets(struct bench *b, const struct conduct_group *g,
			const struct conduct_track *t, json_t *row)
{
	double v = json_number_value(json_object_get(row, "value"));

	if (t->desc->ops == &switch_sword_ops ||
	    t->desc->ops == &switch_steer_ops)
		add_per_core(b, t);

	if (t->desc->ops == &switch_pump_ops)
		(void)bench_row(b, g->name, "switch_packets", 2 * v,
				"packets/s", "forwarded by the switch");
}

static int run(struct bench *b)
{
	/* More processes than cores: none has one to itself, and what others
	 * use of them is no reason to discard a round. All subjects take turns,
	 * because one that rests for long is soon scheduled when its turn
	 * comes: in pairs, on a busy machine, the times were the scheduler's.
	 */
	struct conduct_options opt = {.rounds = b->rounds,
				      .window_ns = b->window_ms * 1000000ull,
				      .keep_all = true,
				      .is_together = true};
	char dir[64] = "";
	int rc = place_make(dir, "bench");

	if (rc < 0)
		return bench_fail(b, rc, "no folder for the switch");
	/* What a rack leaves in it is nobody's afterwards. */
	(void)setenv("AQUIFER_RUNDIR", dir, 1);
	snprintf(rack, sizeof(rack), "bench-%d", (int)getpid());
	(void)setenv("AQUIFER_RACK_NAME", rack, 1);
	for (unsigned i = 0; i < SWITCHES && rc == 0; i++)
		rc = start_switch(b, i);
	if (rc == 0)
		rc = bench_run_groups(b, groups, ARRAY_LEN(groups), &opt,
				      add_packets);
	for (unsigned i = 0; i < SWITCHES; i++)
		place_end(pids[i]);
	place_remove(dir);
	return rc;
}

static const char *const columns[] = {"p50", "p99", "n", "rounds", NULL};

const struct bench_def bench_switch = {
	.name = "switch",
	.summary = "the switch beside a bare forwarder, READs through it",
	.about = "Frames, READs and a table through 'aquifer switch', bare "
		 "rings through a forwarder,\nand the same without a switch, "
		 "take turns: two or three processes each.\n",
	.rounds = 9,
	.rounds_quick = 3,
	.window_ms = 100,
	.window_ms_quick = 20,
	.ratios = ratios,
	.columns = columns,
	.run = run,
};
