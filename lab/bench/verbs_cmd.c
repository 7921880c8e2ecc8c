/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench verbs`: its options, and the run from plan to report. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "guard.h"
#include "report.h"

enum {
	EXIT_RAN = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_MISSED = 3,
	ROUNDS_DEFAULT = 9,
	ROUNDS_QUICK = 3,
	WINDOW_MS_DEFAULT = 100,
	WINDOW_MS_QUICK = 20,
	WINDOW_MS_MAX = 10 * 1000,
};

struct options {
	bool json;
	bool quick;
	bool check;
	unsigned rounds;    /* 0: not given */
	unsigned window_ms; /* 0: not given */
	const char *only;
};

static void usage(FILE *to)
{
	fprintf(to,
		"usage: aquifer bench verbs [--json] [--quick] [--check]\n"
		"                           [--rounds N] [--window MS] "
		"[--only NAME]\n"
		"Measures READs on the soft NIC and its peers (a raw ring, "
		"UCX, memcpy),\n"
		"in turns, one process per core.\n"
		"  --quick       short rounds: shows that it works, proves "
		"nothing\n"
		"  --rounds N    rounds per subject (default %d)\n"
		"  --window MS   length of a round (default %d)\n"
		"  --only NAME   only the groups whose name contains NAME:\n",
		ROUNDS_DEFAULT, WINDOW_MS_DEFAULT);
	for (unsigned i = 0; i < plan_group_count; i++)
		fprintf(to, "                  %s\n", plan_groups[i].name);
	fprintf(to,
		"  --check       exit code %d when a ratio misses its "
		"bound\n",
		EXIT_MISSED);
}

static int parse_count(const char *text, unsigned max, unsigned *out)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || *end || end == text || v < 1 || v > max || *text == '-')
		return -EINVAL;
	*out = (unsigned)v;
	return 0;
}

static bool is_known(const char *name)
{
	for (unsigned i = 0; i < plan_group_count; i++)
		if (strstr(plan_groups[i].name, name))
			return true;
	return false;
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
		{"only", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c, rc = 0;

	optind = 0; /* start anew: the caller may have parsed before us */
	while (rc == 0 && (c = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
		if (c == 'h') {
			usage(stdout);
			return EXIT_RAN;
		} else if (c == 'j') {
			o->json = true;
		} else if (c == 'q') {
			o->quick = true;
		} else if (c == 'c') {
			o->check = true;
		} else if (c == 'o') {
			o->only = optarg;
		} else if (c == 'r') {
			rc = parse_count(optarg, CONDUCT_ROUNDS_MAX,
					 &o->rounds);
		} else if (c == 'w') {
			rc = parse_count(optarg, WINDOW_MS_MAX, &o->window_ms);
		} else {
			rc = -EINVAL;
		}
	}
	if (rc == 0 && o->only && !is_known(o->only)) {
		fprintf(stderr, "aquifer bench verbs: nothing is called '%s'\n",
			o->only);
		return EXIT_USAGE;
	}
	if (rc == 0 && optind == argc)
		return -1;
	usage(stderr);
	return EXIT_USAGE;
}

static void run_groups(struct report *r, const struct options *o)
{
	for (unsigned i = 0; i < plan_group_count; i++) {
		const struct plan_group *p = &plan_groups[i];
		struct report_group *g = &r->group[r->group_count];

		if (o->only && !strstr(p->name, o->only))
			continue;
		g->plan = p;
		conduct_group(g->track, p->subject, p->subject_count, &r->opt);
		if (p->is_ratio)
			plan_judge(p, g->track, r->opt.rounds, &g->verdict);
		r->group_count++;
		if (!o->json)
			report_group(r, g, stdout);
	}
}

/* Failed subjects make a failed run; a peer that is not installed does not. */
static int exit_code(const struct report *r, const struct options *o)
{
	for (unsigned i = 0; i < r->group_count; i++) {
		const struct report_group *g = &r->group[i];

		for (unsigned k = 0; k < g->plan->subject_count; k++)
			if (g->track[k].why[0] && !g->track[k].desc->ucx_mode)
				return EXIT_FAILED;
		if (o->check && g->plan->is_ratio && !g->verdict.is_void &&
		    !g->verdict.is_kept)
			return EXIT_MISSED;
	}
	return EXIT_RAN;
}

static unsigned pick(unsigned given, bool quick, unsigned brief, unsigned full)
{
	return given ? given : quick ? brief : full;
}

static int run(const struct options *o)
{
	struct report r = {.quick = o->quick};
	char *helper = machine_find_helper("aquifer-bench-ucx");
	int rc = EXIT_RAN;

	r.opt.rounds = pick(o->rounds, o->quick, ROUNDS_QUICK, ROUNDS_DEFAULT);
	r.opt.window_ns = 1000000ull * pick(o->window_ms, o->quick,
					    WINDOW_MS_QUICK, WINDOW_MS_DEFAULT);
	r.opt.helper = helper;
	r.group = calloc(plan_group_count, sizeof(*r.group));
	if (!r.group) {
		free(helper);
		return EXIT_FAILED;
	}
	machine_describe(&r.machine);
	if (!o->json)
		report_head(&r, stdout);
	run_groups(&r, o);
	if (o->json) {
		rc = report_json(&r, stdout) < 0 ? EXIT_FAILED : EXIT_RAN;
	} else {
		report_tail(&r, stdout);
	}
	if (rc == EXIT_RAN)
		rc = exit_code(&r, o);
	free(r.group);
	free(helper);
	return rc;
}

int bench_verbs_cmd(int argc, char **argv)
{
	struct options o = {0};
	int rc = parse(argc, argv, &o);

	return rc >= 0 ? rc : run(&o);
}
