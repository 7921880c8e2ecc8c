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

static const char *const ablation[] = {
	"unmapped_naive_ns",	    "unmapped_with_decision_ns",
	"unmapped_with_address_ns", "unmapped_with_recycle_ns",
	"unmapped_with_swap_ns",
};

/* The two halves of the report. */
enum {
	PART_PAGES = 1,
	PART_PROGRAMS = 2,
	PART_ALL = PART_PAGES | PART_PROGRAMS,
	PROGRAM_ROUNDS = 3,
};

struct options {
	bool json, quick, check;
	unsigned rounds, window_ms;
	unsigned parts;
};

static void usage(FILE *to)
{
	fprintf(to,
		"usage: aquifer bench paging [--json] [--quick] [--check] "
		"[--rounds N] [--window MS]\n"
		"                            [--only pages|programs]\n"
		"Pages of 4 KiB in far memory: loaded and stored by chains of "
		"work requests in the\n"
		"memory node's NIC, by its processor, and by plain READs and "
		"WRITEs, in turns, over\n"
		"the shared memory cable and over UDP. Then programs on such "
		"pages (aquifer run),\n"
		"beside local memory and the kernel's swapping (zram and a "
		"file: needs root).\n"
		"  --rounds N   default 7; of programs 3\n"
		"  --only PART  pages or programs\n"
		"  --window MS  of each measurement (default 100)\n"
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

static int parse_part(const char *text, unsigned *out)
{
	if (strcmp(text, "pages") == 0)
		*out = PART_PAGES;
	else if (strcmp(text, "programs") == 0)
		*out = PART_PROGRAMS;
	else
		return -EINVAL;
	return 0;
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
		else if (c == 'o')
			rc = parse_part(optarg, &o->parts);
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

/* How many miss their bound. */
static unsigned judge(json_t *const port[PAGING_PORT_COUNT], json_t *out)
{
	bool falls = true;
	unsigned missed = 0;

	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		double x = value(port, bounds[i].port, bounds[i].name);
		bool kept = (!bounds[i].least || x >= bounds[i].least) &&
			    (!bounds[i].most || x <= bounds[i].most);

		json_object_set_new(out, bounds[i].name,
				    verdict(bounds[i].least ? ">=" : "<=",
					    bounds[i].least ? bounds[i].least
							    : bounds[i].most,
					    x, kept));
		missed += !kept;
	}
	for (size_t i = 1; i < sizeof(ablation) / sizeof(ablation[0]); i++)
		falls &= value(port, PAGING_SHM, ablation[i]) <
			 value(port, PAGING_SHM, ablation[i - 1]);
	json_object_set_new(
		out, "ablation",
		verdict("falls", 0,
			value(port, PAGING_SHM, ablation[4]) /
				value(port, PAGING_SHM, ablation[0]),
			falls));
	return missed + !falls;
}

static void print_table(json_t *const port[PAGING_PORT_COUNT])
{
	const char *name;
	json_t *v;

	printf("%-30s %14s %14s\n", "", "shm", "udp");
	json_object_foreach(port[PAGING_SHM], name, v)
		printf("%-30s %14.5g %14.5g\n", name, json_number_value(v),
		       value(port, PAGING_UDP, name));
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
	all = json_pack("{s:s, s:s, s:o, s:b, s:O*, s:O*, s:O*, s:O}", "bench",
			"paging", "commit", BENCH_COMMIT, "machine",
			machine_json(&machine), "quick", quick, "shm",
			port[PAGING_SHM], "udp", port[PAGING_UDP], "programs",
			rows, "bounds", verdicts);
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
				     : 7,
		.window_ms = o->window_ms ? o->window_ms
			     : o->quick	  ? 10
					  : 100,
		.pages = o->quick ? 512 : 4096,
	};
	int err = 0;

	for (unsigned i = 0; i < PAGING_PORT_COUNT && !err; i++)
		err = paging_measure(&plan, (enum paging_port)i, &port[i]);
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

static void print_text(json_t *const port[PAGING_PORT_COUNT], json_t *rows,
		       json_t *verdicts)
{
	if (port[PAGING_SHM])
		print_table(port);
	run_rows_print(rows);
	print_verdicts(verdicts);
}

int bench_paging_cmd(int argc, char **argv)
{
	struct options o = {.parts = PART_ALL};
	json_t *port[PAGING_PORT_COUNT] = {0}, *rows = NULL, *verdicts;
	int missed = 0, more = 0, rc;

	/* What this program starts itself as. */
	if (argc == 6 && strcmp(argv[1], "--work") == 0)
		return run_work_from(argv + 2);
	rc = parse(argc, argv, &o);
	if (rc >= 0)
		return rc;
	verdicts = json_object();
	if (o.parts & PART_PAGES)
		missed = measure_pages(&o, port, verdicts);
	if (missed >= 0 && o.parts & PART_PROGRAMS)
		more = measure_programs(&o, &rows, verdicts);
	if (missed >= 0 && more >= 0 && o.json)
		print_json(port, rows, verdicts, o.quick);
	else if (missed >= 0 && more >= 0)
		print_text(port, rows, verdicts);
	for (unsigned i = 0; i < PAGING_PORT_COUNT; i++)
		json_decref(port[i]);
	json_decref(rows);
	json_decref(verdicts);
	if (missed < 0 || more < 0)
		return EXIT_FAILED;
	return o.check && missed + more ? EXIT_MISSED : EXIT_RAN;
}
