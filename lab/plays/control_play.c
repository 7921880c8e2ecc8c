/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim control`: runs, bugs, and what was found. */
#include "control_play.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/complaint.h"
#include "base/error.h"
#include "base/json_out.h"
#include "base/log.h"
#include "base/opt.h"
#include "control_world.h"

enum {
	EXIT_USAGE = 2,
	FAILOVERS = 300,
};

const enum plant control_bugs[] = {
	PLANT_ctl_no_guard,	  PLANT_ctl_answer_early,
	PLANT_ctl_unknown_failed, PLANT_ctl_any_version,
	PLANT_ctl_any_epoch,	  PLANT_ctl_join_resets,
	PLANT_ctl_no_reload,	  PLANT_ctl_old_clock,
	PLANT_ctl_create_twice,	  PLANT_ctl_name_twice,
	PLANT_ctl_forget_up,	  PLANT_ctl_sum_up,
	PLANT_ctl_keep_limit,	  PLANT_ctl_no_lease,
	PLANT_ctl_old_lease,	  PLANT_ctl_reuse_early,
	PLANT_ctl_any_run,	  PLANT_ctl_ids_again,
	PLANT_ctl_take_ungiven,	  PLANT_ctl_take_silent,
	PLANT_ctl_take_over,	  PLANT_ctl_given_unsaved,
	PLANT_ctl_drop_ungiven,	  PLANT_ctl_drain_unsaved,
	PLANT_ctl_left_early,	  PLANT_ctl_admit_early,
	PLANT_ctl_cut_last,	  PLANT_none,
};

/* Peace: leases run out, and all memory comes back. */
static void play_end(struct world *w)
{
	uint64_t end_ns = w->now_ns + END_MS * MS;

	w->is_ending = true;
	while (w->now_ns < end_ns && world_step(w))
		;
	blocks_judge_end(w);
	regions_judge_end(w);
}

int control_play(const struct control_options *o, struct control_result *out)
{
	struct world *w = calloc(1, sizeof(*w));
	int err = w ? world_open(w, o, out) : -ENOMEM;

	while (!err && out->failovers < o->failovers && world_step(w))
		;
	if (!err)
		play_end(w);
	if (!err)
		world_close(w);
	free(w);
	return err;
}

/* ---- the command -------------------------------------------------------- */

struct arguments {
	bool json;
	const char *bug;
	uint64_t seed, seeds, failovers;
	enum plant plant;
};

static const struct opt options[] = {
	OPT_U64(struct arguments, seed, "seed", "N", 0, UINT64_MAX - 1000000,
		"the first seed (1)"),
	OPT_U64(struct arguments, seeds, "seeds", "N", 1, 1000000,
		"so many of them (1)"),
	OPT_U64(struct arguments, failovers, "failovers", "N", 1, 1000000000,
		"of each seed (300)"),
	OPT_TEXT(struct arguments, bug, "bug", "NAME",
		 "plant a bug, to check the checks; 'list' names them"),
	OPT_FLAG(struct arguments, json, "json", "print one JSON object"),
	OPT_END,
};

static void print_usage(FILE *f)
{
	fputs("usage: aquifer sim control [OPTION...]\n", f);
	opt_help_text("Plays three controllers on one ledger with four nodes, "
		      "on virtual time: messages are lost, doubled and late, "
		      "leaders are killed, stopped and cut off, clocks drift "
		      "by a tenth, answers of the ledger are lost. After every "
		      "step nodes together may hand out no more than the "
		      "quota, no answered change is lost and no failed one "
		      "appears, no older term is heard after a newer one, and "
		      "every node has its time before it is said to be down. "
		      "Programs with names renew leases and let files and "
		      "queues grow: no lease is shorter than its period, no "
		      "block has two owners, no name is made twice, what "
		      "was written is there while "
		      "its map says so, and at the end all memory is back. "
		      "Nodes are drained, and movers that die before any step "
		      "take regions from one to the other: each is at one "
		      "node, has what was written last, and is lost only with "
		      "its node; a drained node gets nothing new.",
		      f);
	opt_help(options, f);
	opt_help_text("Exit code 0: all promises held, or with --bug it was "
		      "found; 1: not; 2: wrong arguments.",
		      f);
}

static void print_text(uint64_t seed, const struct control_result *r)
{
	printf("seed %" PRIu64 ": %" PRIu64 " failovers in %" PRIu64
	       " s of virtual time, %" PRIu64 " steps, %" PRIu64
	       " beats, %" PRIu64 " joins, %" PRIu64 " grants, %" PRIu64
	       " refusals, %" PRIu64 " changes of tenants, %" PRIu64
	       " renewals, %" PRIu64 " blocks made, %" PRIu64 " maps, %" PRIu64
	       " writes to regions, %" PRIu64 " moves, %" PRIu64
	       " settled by the controller, %" PRIu64 " commits, %" PRIu64
	       " of an older term, %" PRIu64 " unknown, hash %016" PRIx64
	       ": %s\n",
	       seed, r->failovers, r->virtual_s, r->steps, r->beats, r->joins,
	       r->grants, r->refused, r->changes, r->renewals, r->blocks,
	       r->maps, r->writes, r->moves, r->settled, r->commits, r->stale,
	       r->unknown, r->hash, r->wrong[0] ? r->wrong : "holds");
}

static void print_json(struct json_out *j, uint64_t seed,
		       const struct control_result *r)
{
	json_out_object(j, NULL);
	json_out_u64(j, "seed", seed);
	json_out_u64(j, "failovers", r->failovers);
	json_out_u64(j, "virtual_s", r->virtual_s);
	json_out_u64(j, "steps", r->steps);
	json_out_u64(j, "beats", r->beats);
	json_out_u64(j, "breaks", r->breaks);
	json_out_u64(j, "joins", r->joins);
	json_out_u64(j, "grants", r->grants);
	json_out_u64(j, "refusals", r->refused);
	json_out_u64(j, "changes", r->changes);
	json_out_u64(j, "renewals", r->renewals);
	json_out_u64(j, "again", r->again);
	json_out_u64(j, "blocks", r->blocks);
	json_out_u64(j, "chain_writes", r->chain_writes);
	json_out_u64(j, "copies", r->copies);
	json_out_u64(j, "maps", r->maps);
	json_out_u64(j, "writes", r->writes);
	json_out_u64(j, "moves", r->moves);
	json_out_u64(j, "settled", r->settled);
	json_out_u64(j, "commits", r->commits);
	json_out_u64(j, "stale", r->stale);
	json_out_u64(j, "unknown", r->unknown);
	json_out_u64(j, "hash", r->hash);
	if (r->wrong[0])
		json_out_string(j, "violation", r->wrong);
	json_out_close(j);
}

/* The exit code: with a bug the first finding is enough. */
static int run(const struct arguments *a, struct json_out *j)
{
	bool found = false;

	for (uint64_t i = 0; i < a->seeds && !found; i++) {
		const struct control_options o = {a->seed + i, a->failovers};
		struct control_result r;

		if (control_play(&o, &r)) {
			complain(-ENOMEM, "sim control: no memory");
			return EXIT_USAGE;
		}
		if (j)
			print_json(j, o.seed, &r);
		else
			print_text(o.seed, &r);
		found = r.wrong[0] != '\0';
	}
	return found == (a->plant != PLANT_none) ? 0 : 1;
}

static int run_json(const struct arguments *a)
{
	struct json_out j;
	int code;

	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "control");
	json_out_string(&j, "bug", plant_name(a->plant));
	json_out_array(&j, "seeds");
	code = run(a, &j);
	json_out_close(&j);
	json_out_close(&j);
	return json_out_end(&j) ? EXIT_USAGE : code;
}

int control_play_cmd(int argc, char **argv)
{
	struct arguments a = {.seed = 1, .seeds = 1, .failovers = FAILOVERS};
	int code, words = argc;
	enum opt_result parsed = opt_parse(options, "sim control", argc, argv,
					   OPT_WORDS_NONE, &a, &words);

	if (parsed == OPT_HELP) {
		print_usage(stdout);
		return 0;
	}
	if (parsed == OPT_DONE && a.bug && !strcmp(a.bug, "list")) {
		plant_print(control_bugs);
		return 0;
	}
	if (parsed == OPT_DONE && a.bug) {
		a.plant = plant_find(control_bugs, a.bug);
		if (a.plant == PLANT_none) {
			(void)error_set(-EINVAL,
					"--bug: there is none named '%s'",
					a.bug);
			parsed = OPT_WRONG;
		}
	}
	if (parsed == OPT_WRONG) {
		complain(0, "sim control: %s", error_last());
		if (!complaint_is_json())
			print_usage(stderr);
		return EXIT_USAGE;
	}
	/* Deaths and failures are what it is about. */
	if (!log_enabled(LOG_LEVEL_INFO))
		log_setup(LOG_LEVEL_ERR, complaint_is_json());
	plant_set(a.plant);
	code = a.json ? run_json(&a) : run(&a, NULL);
	plant_set(PLANT_none);
	return code;
}
