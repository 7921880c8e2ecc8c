/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim mind --model`: cases, bugs, and what was found. */
#include "mind_cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/complaint.h"
#include "base/error.h"
#include "base/json_out.h"
#include "base/opt.h"
#include "mind_search.h"

enum {
	EXIT_USAGE = 2,
	TEXT_MAX = 512,
};

#define STATES_DEFAULT 40000000ull

#define ONE                                                         \
	.pages = 1, .region_pages = 1, .entries = 1, .evict = true, \
	.recall = true
#define TWO  ONE, .machines = 2
#define PAIR .machines = 2, .pages = 2, .entries = 1
#define PAIR_SPLIT                                                  \
	.machines = 2, .pages = 2, .entries = 2, .region_pages = 2, \
	.split = true
#define COPIES TWO, .copies = true, .node_dies = true
#define DEATHS .machine_dies = true, .switch_dies = true

const struct mind_case mind_cases[] = {
	{"calm", "2 machines, 1 page, eviction and recall", false, {TWO}},
	{"machine",
	 "as calm, and one machine dies",
	 false,
	 {TWO, .machine_dies = true}},
	{"switch",
	 "as calm, and the switch dies",
	 false,
	 {TWO, .switch_dies = true}},
	{"both",
	 "as calm, and a machine and the switch die",
	 false,
	 {TWO, DEATHS}},
	{"last",
	 "as both, and memory's bytes count after a loss",
	 false,
	 {TWO, DEATHS, .keep_going = true}},
	{"last-page",
	 "as last, said of the page and not of the switch",
	 false,
	 {TWO, DEATHS, .goes_on = true}},
	{"pool",
	 "2 machines, 2 regions, 1 directory entry",
	 false,
	 {PAIR, .region_pages = 1}},
	{"copies",
	 "2 machines, 1 page at two nodes, of which one falls silent",
	 false,
	 {COPIES}},
	{"copies-switch",
	 "as copies, and the switch dies",
	 false,
	 {COPIES, .switch_dies = true}},
	{"copies-both",
	 "as copies, and a machine and the switch die",
	 true,
	 {COPIES, DEATHS}},
	{"copies-last",
	 "as copies-both, and memory's bytes count after a loss",
	 true,
	 {COPIES, DEATHS, .goes_on = true}},
	{"three",
	 "3 machines, 1 page, eviction, recall, both deaths",
	 true,
	 {ONE, .machines = 3, DEATHS}},
	{"region",
	 "2 machines, a region of 2 pages, eviction",
	 true,
	 {PAIR, .region_pages = 2, .evict = true}},
	{"pool-switch",
	 "as pool, and the switch dies",
	 true,
	 {PAIR, .region_pages = 1, .switch_dies = true}},
	{"pool-machine",
	 "as pool, and one machine dies",
	 true,
	 {PAIR, .region_pages = 1, .machine_dies = true}},
	{"region-switch",
	 "a region of 2 pages, and the switch dies",
	 true,
	 {PAIR, .region_pages = 2, .switch_dies = true}},
	{"region-machine",
	 "a region of 2 pages, and one machine dies",
	 true,
	 {PAIR, .region_pages = 2, .machine_dies = true}},
	{"split",
	 "a region of 2 pages that is split and joined",
	 true,
	 {PAIR_SPLIT}},
	{"split-machine",
	 "as split, one page only read, and one machine dies",
	 true,
	 {PAIR_SPLIT, .read_only = true, .machine_dies = true}},
	{"split-switch",
	 "as split, one page only read, and the switch dies",
	 true,
	 {PAIR_SPLIT, .read_only = true, .switch_dies = true}},
	{.name = NULL},
};

const enum plant mind_bugs[] = {
	PLANT_mind_answer_early,     PLANT_mind_grant_late,
	PLANT_mind_forget_reader,    PLANT_mind_drop_queue,
	PLANT_mind_no_room,	     PLANT_mind_no_clean,
	PLANT_mind_forget_owner,     PLANT_mind_fin_early,
	PLANT_mind_ignore_granted,   PLANT_mind_clean_early,
	PLANT_mind_get_beside_evict, PLANT_mind_get_beside_give,
	PLANT_mind_late_protect,     PLANT_mind_split_forgets,
	PLANT_mind_join_owners,	     PLANT_mind_split_gone,
	PLANT_coh_pair_early,	     PLANT_coh_pair_other,
	PLANT_coh_gone_early,	     PLANT_none,
};

struct arguments {
	bool model, full, json;
	const char *bug, *one;
	uint64_t states_max;
	enum plant plant;
};

static const struct opt options[] = {
	OPT_FLAG(struct arguments, model, "model",
		 "check all states of the protocol; without it, seeds are "
		 "played"),
	OPT_TEXT(struct arguments, one, "case", "NAME",
		 "one case (all but the long ones)"),
	OPT_FLAG(struct arguments, full, "full", "the long cases, too"),
	OPT_TEXT(struct arguments, bug, "bug", "NAME",
		 "plant a bug, to check the checks; 'list' names them"),
	OPT_U64(struct arguments, states_max, "states", "N", 1, UINT32_MAX - 1,
		"give a case up after so many (40000000)"),
	OPT_FLAG(struct arguments, json, "json", "print one JSON object"),
	OPT_END,
};

static void print_usage(FILE *f)
{
	fputs("usage: aquifer sim mind --model [OPTION...]\n", f);
	opt_help_text("Plays all that can happen to the directory and the "
		      "caches of coherent shared memory, with a few machines "
		      "and pages: every order of messages, evictions, recalls, "
		      "deaths. In every state there must be one writer or "
		      "readers only, no reader of old bytes, and a way by "
		      "which all that waits comes to its end (docs/mind.md).",
		      f);
	opt_help(options, f);
	fputs("cases:\n", f);
	for (const struct mind_case *c = mind_cases; c->name; c++)
		fprintf(f, "  %-15s%s%s\n", c->name, c->what,
			c->full ? " (--full)" : "");
	opt_help_text("Exit code 0: no violation, or with --bug one was found; "
		      "1: a violation, or the bug was not found; 2: wrong "
		      "arguments, or not all states could be looked at.",
		      f);
}

/* ---- results ------------------------------------------------------------- */

/* Calls `line` for each step of the way: what happens, and what is then. */
static void each_step(const struct mind_config *config,
		      const struct mind_result *res,
		      void (*line)(void *to, uint32_t step, const char *event,
				   const char *state),
		      void *to)
{
	char event[TEXT_MAX], state[TEXT_MAX];
	struct mind_world w, before;
	struct mind_event e;

	mind_world_init(&w, config);
	for (uint32_t i = 1; i < res->trace_length; i++) {
		mind_world_copy(&before, &w);
		if (!mind_follow(&w, &res->trace[i], &e))
			return;
		mind_event_text(&before, &e, event, sizeof(event));
		mind_world_text(&w, state, sizeof(state));
		line(to, i, event, state);
	}
}

static void print_step(void *to, uint32_t step, const char *event,
		       const char *state)
{
	printf("%4u  %s\n        %s\n", step, event, state);
}

static void print_text(const struct mind_case *c, const struct mind_result *res,
		       double seconds)
{
	static const char *const verdicts[] = {"holds", "BROKEN", "STUCK",
					       "gave up"};

	printf("%-15s%-8s %9" PRIu64 " states %11" PRIu64
	       " transitions  depth %3u  %6.1f s  %s\n",
	       c->name, verdicts[res->verdict], res->states, res->transitions,
	       res->depth, seconds, c->what);
	if (!res->wrong)
		return;
	printf("\n%s, after %u steps (* dirty, > to the switch, < to the "
	       "machine):\n",
	       res->wrong, res->trace_length - 1);
	each_step(&c->config, res, print_step, NULL);
}

static void json_step(void *to, uint32_t step, const char *event,
		      const char *state)
{
	struct json_out *j = to;

	json_out_object(j, NULL);
	json_out_string(j, "event", event);
	json_out_string(j, "state", state);
	json_out_close(j);
}

static void print_json(struct json_out *j, const struct mind_case *c,
		       const struct mind_result *res, double seconds)
{
	static const char *const verdicts[] = {"holds", "broken", "stuck",
					       "limit"};

	json_out_object(j, NULL);
	json_out_string(j, "case", c->name);
	json_out_string(j, "verdict", verdicts[res->verdict]);
	json_out_u64(j, "states", res->states);
	json_out_u64(j, "transitions", res->transitions);
	json_out_u64(j, "depth", res->depth);
	json_out_double(j, "seconds", seconds);
	if (res->wrong) {
		json_out_string(j, "violation", res->wrong);
		json_out_array(j, "trace");
		each_step(&c->config, res, json_step, j);
		json_out_close(j);
	}
	json_out_close(j);
}

/* ---- runs ---------------------------------------------------------------- */

static double now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* With a bug only promises are judged, so that it is seen by its effect. */
static int run_case(const struct arguments *a, const struct mind_case *c,
		    struct json_out *j, enum mind_verdict *verdict)
{
	struct mind_result res;
	double start = now_seconds();
	int err = mind_search(&c->config, a->states_max, a->plant == PLANT_none,
			      &res);

	if (err)
		return err;
	if (j)
		print_json(j, c, &res, now_seconds() - start);
	else
		print_text(c, &res, now_seconds() - start);
	fflush(stdout);
	*verdict = res.verdict;
	mind_result_release(&res);
	return 0;
}

static bool is_chosen(const struct arguments *a, const struct mind_case *c)
{
	return a->one ? !strcmp(a->one, c->name) : a->full || !c->full;
}

static int run(const struct arguments *a, struct json_out *j)
{
	bool found = false, limit = false;

	for (const struct mind_case *c = mind_cases; c->name && !found; c++) {
		enum mind_verdict verdict = MIND_HOLDS;
		int err = is_chosen(a, c) ? run_case(a, c, j, &verdict) : 0;

		if (err) {
			complain(err, "sim mind: %s", strerror(-err));
			return EXIT_USAGE;
		}
		found |= verdict == MIND_BROKEN || verdict == MIND_STUCK;
		limit |= verdict == MIND_LIMIT;
	}
	if (a->plant != PLANT_none)
		return found ? 0 : 1;
	return found ? 1 : limit ? EXIT_USAGE : 0;
}

static int run_json(const struct arguments *a)
{
	struct json_out j;
	int code;

	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "mind");
	json_out_string(&j, "bug", plant_name(a->plant));
	json_out_array(&j, "cases");
	code = run(a, &j);
	json_out_close(&j);
	json_out_close(&j);
	return json_out_end(&j) ? EXIT_USAGE : code;
}

static int check(struct arguments *a)
{
	const struct mind_case *c = mind_cases;

	while (a->one && c->name && strcmp(c->name, a->one) != 0)
		c++;
	if (!c->name)
		return error_set(-EINVAL, "--case: there is none named '%s'",
				 a->one);
	if (a->bug)
		a->plant = plant_find(mind_bugs, a->bug);
	if (a->bug && a->plant == PLANT_none)
		return error_set(-EINVAL, "--bug: there is none named '%s'",
				 a->bug);
	return 0;
}

int mind_model_cmd(int argc, char **argv)
{
	struct arguments a = {.states_max = STATES_DEFAULT};
	int code, words = argc;
	enum opt_result parsed = opt_parse(options, "sim mind", argc, argv,
					   OPT_WORDS_NONE, &a, &words);

	if (parsed == OPT_HELP) {
		print_usage(stdout);
		return 0;
	}
	if (parsed == OPT_DONE && a.bug && !strcmp(a.bug, "list")) {
		plant_print(mind_bugs);
		return 0;
	}
	if (parsed == OPT_WRONG || check(&a)) {
		complain(0, "sim mind: %s", error_last());
		if (!complaint_is_json())
			print_usage(stderr);
		return EXIT_USAGE;
	}
	plant_set(a.plant);
	code = a.json ? run_json(&a) : run(&a, NULL);
	plant_set(PLANT_none);
	return code;
}
