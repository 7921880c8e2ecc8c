/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench offload`: its options, and the run from rack to report. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "offload_report.h"
#include "probe.h"

enum {
	EXIT_RAN = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_MISSED = 3,
	ROUNDS_DEFAULT = 9,
	ROUNDS_QUICK = 1,
	WINDOW_MS_DEFAULT = 100,
	WINDOW_MS_QUICK = 20,
	WINDOW_MS_MAX = 10 * 1000,
	RECORDS_DEFAULT = 2 << 20,
	RECORDS_QUICK = 32 << 10,
	RECORDS_MIN = 1000,
	RECORDS_MAX = 100 * 1000 * 1000,
	STORE_MB_DEFAULT = 72, /* of the paper's 18 GB: a part of 256 */
	STORE_MB_QUICK = 16,
	STORE_MB_MIN = 8,
	STORE_MB_MAX = 32 << 10,
};

struct options {
	bool json;
	bool quick;
	bool check;
	bool busy;
	unsigned rounds; /* 0: not given; as the others */
	unsigned window_ms;
	unsigned records;
	unsigned store_mb;
	const char *only;
	const char *dir;
};

static void usage(FILE *to)
{
	fprintf(to,
		"usage: aquifer bench offload [--json] [--quick] [--check] "
		"[--busy]\n"
		"                             [--rounds N] [--window MS] "
		"[--only NAME]\n"
		"                             [--records N] [--store MB] "
		"[--dir DIR]\n"
		"Measures an application whose records are in far memory: "
		"local memory, a file,\n"
		"verbs in several ways, and requests that an engine executes "
		"(Cowbird), in turns,\n"
		"on a rack of its own.\n"
		"  --quick       short: shows that it works, proves nothing\n"
		"  --rounds N    rounds per subject (default %d)\n"
		"  --window MS   length of a round (default %d)\n"
		"  --records N   records of the hash probe (default %d)\n"
		"  --store MB    records in the store (default %d, the paper's "
		"18 GB / 256)\n"
		"  --dir DIR     where the file is (default /var/tmp)\n"
		"  --only NAME   only the ratios and groups whose name "
		"contains NAME\n"
		"  --busy        keep rounds in which others used the cores, "
		"too\n"
		"  --check       exit code %d when a ratio misses its bound\n"
		"  --json        one JSON object\n",
		ROUNDS_DEFAULT, WINDOW_MS_DEFAULT, RECORDS_DEFAULT,
		STORE_MB_DEFAULT, EXIT_MISSED);
}

static int parse_count(const char *text, unsigned min, unsigned max,
		       unsigned *out)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || *end || end == text || v < min || v > max || *text == '-')
		return -EINVAL;
	*out = (unsigned)v;
	return 0;
}

static int parse_one(int c, struct options *o)
{
	switch (c) {
	case 'j':
		o->json = true;
		return 0;
	case 'q':
		o->quick = true;
		return 0;
	case 'c':
		o->check = true;
		return 0;
	case 'b':
		o->busy = true;
		return 0;
	case 'o':
		o->only = optarg;
		return 0;
	case 'd':
		o->dir = optarg;
		return strlen(optarg) < OFFLOAD_PATH_MAX ? 0 : -EINVAL;
	case 'r':
		return parse_count(optarg, 1, CONDUCT_ROUNDS_MAX, &o->rounds);
	case 'w':
		return parse_count(optarg, 1, WINDOW_MS_MAX, &o->window_ms);
	case 'n':
		return parse_count(optarg, RECORDS_MIN, RECORDS_MAX,
				   &o->records);
	case 's':
		return parse_count(optarg, STORE_MB_MIN, STORE_MB_MAX,
				   &o->store_mb);
	default:
		return -EINVAL;
	}
}

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'},
		{"check", no_argument, NULL, 'c'},
		{"busy", no_argument, NULL, 'b'},
		{"rounds", required_argument, NULL, 'r'},
		{"window", required_argument, NULL, 'w'},
		{"records", required_argument, NULL, 'n'},
		{"store", required_argument, NULL, 's'},
		{"dir", required_argument, NULL, 'd'},
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
		}
		rc = parse_one(c, o);
	}
	if (rc == 0 && optind == argc)
		return -1;
	usage(stderr);
	return EXIT_USAGE;
}

static unsigned pick(unsigned given, bool quick, unsigned brief, unsigned full)
{
	return given ? given : quick ? brief : full;
}

static bool is_probe(const struct offload_group *g)
{
	return g->ops != &offload_log_ops;
}

/* Far memory that the groups need, and which regions to fill. */
static uint64_t count_memory(const struct offload_plan *plan, const char *only,
			     uint32_t *sizes, unsigned *size_count)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < plan->group_count; i++) {
		const struct offload_group *g = &plan->group[i];
		bool known = false;

		if (!offload_plan_wants(only, g))
			continue;
		/* A store of each way, and room for its spread. */
		if (!is_probe(g)) {
			total += g->subject_count *
				 (plan->cfg.log_bytes / 8 * 9 + (8 << 20));
			continue;
		}
		for (unsigned k = 0; k < *size_count; k++)
			known = known || sizes[k] == g->record_bytes;
		if (known)
			continue;
		sizes[(*size_count)++] = g->record_bytes;
		total += probe_far_bytes(plan->cfg.probe_records,
					 g->record_bytes) +
			 (4 << 20);
	}
	return total;
}

static int run_groups(struct offload_plan *plan, struct offload_report *r,
		      const struct options *o)
{
	unsigned count = 0;

	for (unsigned i = 0; i < plan->group_count; i++) {
		const struct subject_desc *desc[CONDUCT_GROUP_MAX];
		struct offload_group *g = &plan->group[i];

		if (!offload_plan_wants(o->only, g))
			continue;
		for (unsigned k = 0; k < g->subject_count; k++)
			desc[k] = &g->subject[k].desc;
		conduct_group(g->track, desc, g->subject_count, &r->opt);
		g->is_run = true;
		count++;
		if (!o->json)
			offload_report_group(r, g, stdout);
	}
	return count ? 0 : -ENOENT;
}

static int exit_code(const struct offload_plan *plan, const struct options *o,
		     unsigned rounds)
{
	struct plan_verdict v;

	for (unsigned i = 0; i < plan->group_count; i++)
		for (unsigned k = 0; k < plan->group[i].subject_count; k++)
			if (plan->group[i].track[k].why[0])
				return EXIT_FAILED;
	for (unsigned i = 0; o->check && i < offload_ratio_count; i++) {
		if (!offload_ratio_wanted(o->only, &offload_ratios[i]))
			continue;
		offload_judge(plan, &offload_ratios[i], rounds, &v);
		if (!v.is_void && !v.is_kept)
			return EXIT_MISSED;
	}
	return EXIT_RAN;
}

static int measure(struct offload_plan *plan, const struct options *o,
		   const struct subject_world *world)
{
	struct offload_report r = {
		.quick = o->quick, .only = o->only, .plan = plan};

	r.opt.rounds = pick(o->rounds, o->quick, ROUNDS_QUICK, ROUNDS_DEFAULT);
	r.opt.window_ns = 1000000ull * pick(o->window_ms, o->quick,
					    WINDOW_MS_QUICK, WINDOW_MS_DEFAULT);
	r.opt.world = world;
	r.opt.keep_all = o->busy;
	machine_describe(&r.machine);
	if (!o->json)
		offload_report_head(&r, stdout);
	if (run_groups(plan, &r, o) < 0) {
		fprintf(stderr,
			"aquifer bench offload: nothing is called '%s'\n",
			o->only);
		return EXIT_USAGE;
	}
	if (!o->json)
		offload_report_tail(&r, stdout);
	else if (offload_report_json(&r, stdout) < 0)
		return EXIT_FAILED;
	return exit_code(plan, o, r.opt.rounds);
}

static int run(const struct options *o)
{
	struct offload_plan *plan = calloc(1, sizeof(*plan));
	uint32_t sizes[OFFLOAD_GROUP_MAX];
	struct offload_rack *rack;
	unsigned size_count = 0;
	uint64_t pool;
	int rc;

	if (!plan)
		return EXIT_FAILED;
	plan->cfg.probe_records =
		pick(o->records, o->quick, RECORDS_QUICK, RECORDS_DEFAULT);
	plan->cfg.log_bytes = (uint64_t)pick(o->store_mb, o->quick,
					     STORE_MB_QUICK, STORE_MB_DEFAULT)
			      << 20;
	snprintf(plan->cfg.dir, sizeof(plan->cfg.dir), "%s",
		 o->dir ? o->dir : "/var/tmp");
	offload_plan_init(plan);
	pool = count_memory(plan, o->only, sizes, &size_count);
	rc = offload_rack_start(pool, &rack);
	if (rc < 0) {
		fprintf(stderr,
			"aquifer bench offload: no rack: %s; 'aquifer up' may "
			"say why\n",
			strerror(-rc));
		free(plan);
		return EXIT_FAILED;
	}
	rc = offload_prepare(&plan->cfg, sizes, size_count);
	rc = rc < 0 ? EXIT_FAILED : measure(plan, o, offload_rack_world(rack));
	offload_rack_stop(rack);
	free(plan);
	return rc;
}

int bench_offload_cmd(int argc, char **argv)
{
	struct options o = {0};
	int rc = parse(argc, argv, &o);

	return rc >= 0 ? rc : run(&o);
}
