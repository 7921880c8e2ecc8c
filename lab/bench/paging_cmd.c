/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench paging`: its options, and the report. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_commit.h"
#include "machine_json.h"
#include "paging_bench.h"
#include "run_bench.h"

enum {
	EXIT_RAN = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_MISSED = 3,
	PROGRAM_ROUNDS = 3,
};

/* What the ratios must be, and over which port that is asked. */
static const struct bound {
	const char *name;
	enum paging_port port;
	double least, most; /* 0: no such bound */
} bounds[] = {
	{"load_rate_vs_read4k", PAGING_UDP, 0.92, 0},
	{"load_lat_vs_read4k", PAGING_SHM, 0, 1.5},
	{"mapped_lat_vs_write4k", PAGING_SHM, 0, 1.5},
	{"unmapped_lat_vs_write4k", PAGING_SHM, 0, 2.5},
	{"utilisation", PAGING_SHM, 1, 1},
	{"engine_cpu_chain_vs_two_sided", PAGING_SHM, 0, 0.8},
};

/* Each of the one before it, in the same round. */
static const char *const ablation[] = {
	"with_decision_vs_naive",
	"with_address_vs_decision",
	"with_recycle_vs_address",
	"with_swap_vs_recycle",
};

struct options {
	bool json, quick, check;
	unsigned rounds, window_ms;
	const char *port; /* NULL: all */
	const char *only; /* "pages", "programs"; NULL: both */
};

static void usage(FILE *to)
{
	fprintf(to,
		"usage: aquifer bench paging [--json] [--quick] [--check] "
		"[--rounds N] [--window MS]\n"
		"                            [--port shm|udp|direct] [--only "
		"pages|programs]\n"
		"Pages of 4 KiB in far memory: loaded and stored by chains of "
		"work requests in the\n"
		"memory node's NIC, by its processor, and by plain READs and "
		"WRITEs, in turns, over\n"
		"the shared memory cable and over UDP; and by loads and stores "
		"to mapped memory.\n"
		"  --rounds N   default 25\n"
		"  --window MS  of each measurement (default 30)\n"
		"Then programs on such pages (aquifer run), beside local "
		"memory and the kernel's\n"
		"swapping to zram and to a file (needs root).\n"
		"  --port NAME  only pages, and only over this one\n"
		"  --only PART  pages or programs\n"
		"  --quick      short: shows that it works, proves nothing\n"
		"  --check      exit code 3 when a number misses its bound\n"
		"  --json       one JSON object\n");
}

static int parse_number(const char *text, unsigned long max, unsigned *out)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || v == 0 || v > max)
		return -EINVAL;
	*out = (unsigned)v;
	return 0;
}

static int parse_port(const char *text, const char **out)
{
	for (unsigned i = 0; i < PAGING_PORT_COUNT; i++) {
		const char *name = paging_port_name((enum paging_port)i);

		if (strcmp(name, text) == 0) {
			*out = name;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_part(const char *text, const char **out)
{
	*out = text;
	return strcmp(text, "pages") == 0 || strcmp(text, "programs") == 0
		       ? 0
		       : -EINVAL;
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
		{"port", required_argument, NULL, 'p'},
		{"only", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c, rc = 0;

	optind = 0;
	while (rc == 0 && (c = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
		if (c == 'h') {
			usage(stdout);
			return EXIT_RAN;
		}
		o->json |= c == 'j';
		o->quick |= c == 'q';
		o->check |= c == 'c';
		if (c == 'r')
			rc = parse_number(optarg, 101, &o->rounds);
		else if (c == 'w')
			rc = parse_number(optarg, 10000, &o->window_ms);
		else if (c == 'p')
			rc = parse_port(optarg, &o->port);
		else if (c == 'o')
			rc = parse_part(optarg, &o->only);
		else if (c == '?')
			rc = -EINVAL;
	}
	if (rc == 0 && optind == argc)
		return -1;
	usage(stderr);
	return EXIT_USAGE;
}

/* ---- the report --------------------------------------------------------- */

static double value(json_t *const port[PAGING_PORT_COUNT], unsigned at,
		    const char *name)
{
	return json_number_value(json_object_get(port[at], name));
}

static json_t *verdict(const char *must, double bound, double x, bool kept)
{
	return json_pack("{s:s, s:f, s:f, s:b}", "must", must, "bound", bound,
			 "value", x, "kept", kept);
}

/* The worst step: each must be faster than the one before. */
static unsigned judge_ablation(json_t *const port[PAGING_PORT_COUNT],
			       json_t *out)
{
	double worst = 0;

	for (size_t i = 0; i < sizeof(ablation) / sizeof(ablation[0]); i++) {
		double x = value(port, PAGING_SHM, ablation[i]);

		worst = x > worst ? x : worst;
	}
	json_object_set_new(out, "ablation", verdict("<", 1, worst, worst < 1));
	return worst >= 1;
}

/* How many miss their bound. */
static unsigned judge(json_t *const port[PAGING_PORT_COUNT], json_t *out)
{
	unsigned missed = 0;

	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		double x = value(port, bounds[i].port, bounds[i].name);
		bool kept;

		if (!port[bounds[i].port])
			continue;
		kept = (!bounds[i].least || x >= bounds[i].least) &&
		       (!bounds[i].most || x <= bounds[i].most);

		json_object_set_new(out, bounds[i].name,
				    verdict(bounds[i].least ? ">=" : "<=",
					    bounds[i].least ? bounds[i].least
							    : bounds[i].most,
					    x, kept));
		missed += !kept;
	}
	return missed + (port[PAGING_SHM] ? judge_ablation(port, out) : 0);
}

static void print_cell(const json_t *port, const char *name)
{
	const json_t *v = json_object_get(port, name);

	if (v)
		printf(" %14.5g", json_number_value(v));
	else
		printf(" %14s", "-");
}

static void print_table(json_t *const port[PAGING_PORT_COUNT])
{
	json_t *names = json_object(), *v;
	const char *name;

	printf("%-30s", "");
	for (unsigned i = 0; i < PAGING_PORT_COUNT; i++) {
		if (!port[i])
			continue;
		printf(" %14s", paging_port_name((enum paging_port)i));
		(void)json_object_update_missing(names, port[i]);
	}
	printf("\n");
	json_object_foreach(names, name, v)
	{
		printf("%-30s", name);
		for (unsigned i = 0; i < PAGING_PORT_COUNT; i++)
			if (port[i])
				print_cell(port[i], name);
		printf("\n");
	}
	json_decref(names);
}

static void print_verdicts(json_t *verdicts)
{
	const char *name;
	json_t *v, *why;

	json_object_foreach(verdicts, name, v)
	{
		why = json_object_get(v, "void");
		if (why) {
			printf("%-30s void: %s\n", name,
			       json_string_value(why));
			continue;
		}
		printf("%-30s %10.4g  %s %g  %s\n", name,
		       json_number_value(json_object_get(v, "value")),
		       json_string_value(json_object_get(v, "must")),
		       json_number_value(json_object_get(v, "bound")),
		       json_is_true(json_object_get(v, "kept")) ? "kept"
								: "MISSED");
	}
}

static void print_json(json_t *const port[PAGING_PORT_COUNT], json_t *rows,
		       json_t *verdicts, bool quick)
{
	struct machine machine;
	json_t *all;

	machine_describe(&machine);
	all = json_pack("{s:s, s:s, s:o, s:b, s:O}", "bench", "paging",
			"commit", BENCH_COMMIT, "machine",
			machine_json(&machine), "quick", quick, "bounds",
			verdicts);
	for (unsigned i = 0; i < PAGING_PORT_COUNT; i++)
		if (port[i])
			json_object_set(all,
					paging_port_name((enum paging_port)i),
					port[i]);
	if (rows)
		json_object_set(all, "programs", rows);
	(void)json_dumpf(all, stdout, JSON_INDENT(2));
	printf("\n");
	json_decref(all);
}

/* How many miss their bound, or -errno. */
static int measure_pages(const struct options *o,
			 json_t *port[PAGING_PORT_COUNT], json_t *verdicts)
{
	struct paging_plan plan = {
		.rounds = o->rounds  ? o->rounds
			  : o->quick ? 1
				     : 25,
		.window_ms = o->window_ms ? o->window_ms
			     : o->quick	  ? 10
					  : 30,
		.pages = o->quick ? 512 : 4096,
	};
	int err = 0;

	for (unsigned i = 0; i < PAGING_PORT_COUNT && !err; i++) {
		enum paging_port p = (enum paging_port)i;

		if (!o->port || strcmp(o->port, paging_port_name(p)) == 0)
			err = paging_measure(&plan, p, &port[i]);
	}
	return err ? err : (int)judge(port, verdicts);
}

static int measure_programs(const struct options *o, json_t **rows,
			    json_t *verdicts)
{
	struct run_rows_plan plan = {.rounds = o->rounds  ? o->rounds
					       : o->quick ? 1
							  : PROGRAM_ROUNDS,
				     .quick = o->quick};

	return run_rows(&plan, rows, verdicts);
}

static bool wants(const struct options *o, const char *part)
{
	return o->only ? strcmp(o->only, part) == 0
		       : !o->port || strcmp(part, "pages") == 0;
}

int bench_paging_cmd(int argc, char **argv)
{
	struct options o = {0};
	json_t *port[PAGING_PORT_COUNT] = {0}, *rows = NULL, *verdicts;
	int missed = 0, more = 0, rc;

	/* What this program starts itself as. */
	if (argc == 6 && strcmp(argv[1], "--work") == 0)
		return run_work_from(argv + 2);
	rc = parse(argc, argv, &o);
	if (rc >= 0)
		return rc;
	verdicts = json_object();
	if (wants(&o, "pages"))
		missed = measure_pages(&o, port, verdicts);
	if (missed >= 0 && wants(&o, "programs"))
		more = measure_programs(&o, &rows, verdicts);
	if (missed >= 0 && more >= 0 && o.json) {
		print_json(port, rows, verdicts, o.quick);
	} else if (missed >= 0 && more >= 0) {
		if (wants(&o, "pages"))
			print_table(port);
		run_rows_print(rows);
		print_verdicts(verdicts);
	}
	for (unsigned i = 0; i < PAGING_PORT_COUNT; i++)
		json_decref(port[i]);
	json_decref(rows);
	json_decref(verdicts);
	if (missed < 0 || more < 0)
		return EXIT_FAILED;
	return o.check && missed + more ? EXIT_MISSED : EXIT_RAN;
}
