/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench kv`: its options, and the report. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_commit.h"
#include "kv_bench.h"
#include "machine_json.h"

enum {
	EXIT_RAN = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_MISSED = 3,
};

/* What the ratios and counts must be. */
static const struct bound {
	const char *name;
	double least, most; /* 0: no such bound */
} bounds[] = {
	{"rtt_read_inline", 0, 1},
	{"rtt_read_extent", 0, 2},
	{"rtt_update", 0, 2},
	{"rtt_delete", 0, 2},
	{"rtt_insert_median", 0, 2},
	{"max_fill", 0.95, 0},
	{"single_mcas_share", 0.97, 0},
	{"kv_c_vs_redis_p1", 5, 0},
	{"kv_c_async_vs_redis_p16", 2, 0},
	{"kv_a_vs_redis_p1", 3, 0},
	{"gateway_p16_vs_redis_p16", 0.7, 0},
};

struct options {
	bool json, quick, check;
	const char *only; /* fill, trips, speed, gateway */
	unsigned rounds, window_ms;
	unsigned long entries, records, seeds;
};

static void usage(FILE *to)
{
	fprintf(to,
		"usage: aquifer bench kv [--json] [--quick] [--check] "
		"[--only PART]\n"
		"                        [--entries N] [--records N] "
		"[--rounds N] [--window MS]\n"
		"                        [--fill-seeds N]\n"
		"The key-value table: how full it gets and how many locks an "
		"insert takes (the\n"
		"shipped search over local memory), round trips of each "
		"operation (counted, on a\n"
		"rack of its own), and operations per second beside "
		"redis-server, in turns:\n"
		"of a client, and of `aquifer redis` as redis-benchmark sees "
		"it.\n"
		"  --only PART  fill, trips, speed or gateway\n"
		"  --entries N  of the table that is filled (default "
		"10000000)\n"
		"  --fill-seeds N  fill it with so many other seeds of the "
		"hash, too\n"
		"  --records N  of the speed test (default 100000)\n"
		"  --rounds N   of the speed test (default 7)\n"
		"  --window MS  of one of them (default 200)\n"
		"  --quick      short: shows that it works, proves nothing\n"
		"  --check      exit code 3 when a number misses its bound\n"
		"  --json       one JSON object\n");
}

static int parse_number(const char *text, unsigned long max, unsigned long *out)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || v == 0 || v > max)
		return -EINVAL;
	*out = v;
	return 0;
}

static int parse_one(int c, struct options *o)
{
	unsigned long v = 0;
	int rc = 0;

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
	case 'o':
		o->only = optarg;
		return strcmp(optarg, "fill") && strcmp(optarg, "trips") &&
				       strcmp(optarg, "speed") &&
				       strcmp(optarg, "gateway")
			       ? -EINVAL
			       : 0;
	case 'e':
		return parse_number(optarg, 1000000000, &o->entries);
	case 's':
		return parse_number(optarg, 1000, &o->seeds);
	case 'n':
		return parse_number(optarg, 9999999, &o->records);
	case 'r':
		rc = parse_number(optarg, 101, &v);
		o->rounds = (unsigned)v;
		return rc;
	case 'w':
		rc = parse_number(optarg, 10000, &v);
		o->window_ms = (unsigned)v;
		return rc;
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
		{"only", required_argument, NULL, 'o'},
		{"entries", required_argument, NULL, 'e'},
		{"records", required_argument, NULL, 'n'},
		{"fill-seeds", required_argument, NULL, 's'},
		{"rounds", required_argument, NULL, 'r'},
		{"window", required_argument, NULL, 'w'},
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
		rc = parse_one(c, o);
	}
	if (rc == 0 && optind == argc)
		return -1;
	usage(stderr);
	return EXIT_USAGE;
}

void kv_bench_row(struct kv_bench *b, const char *group, const char *name,
		  double value, const char *unit, const char *what)
{
	json_array_append_new(b->rows,
			      json_pack("{s:s, s:s, s:f, s:s, s:s}", "group",
					group, "name", name, "median", value,
					"unit", unit, "what", what));
}

/* How many miss their bound. */
static unsigned judge(const struct kv_bench *b, json_t *out)
{
	unsigned missed = 0;

	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		const json_t *v = json_object_get(b->ratios, bounds[i].name);
		double x = json_number_value(v);
		bool kept = (!bounds[i].least || x >= bounds[i].least) &&
			    (!bounds[i].most || x <= bounds[i].most);

		if (!v)
			continue;
		json_object_set_new(
			out, bounds[i].name,
			json_pack("{s:s, s:f, s:b}", "must",
				  bounds[i].least ? ">=" : "<=", "bound",
				  bounds[i].least ? bounds[i].least
						  : bounds[i].most,
				  "kept", kept));
		missed += !kept;
	}
	return missed;
}

static void print_table(const struct kv_bench *b, const json_t *verdicts)
{
	const char *name;
	const json_t *v;
	json_t *row;
	size_t i;

	json_array_foreach(b->rows, i, row)
		printf("%-24s %-24s %14.4g %-12s %s\n",
		       json_string_value(json_object_get(row, "group")),
		       json_string_value(json_object_get(row, "name")),
		       json_number_value(json_object_get(row, "median")),
		       json_string_value(json_object_get(row, "unit")),
		       json_string_value(json_object_get(row, "what")));
	json_object_foreach((json_t *)verdicts, name, row) printf(
		"%-26s %10.4g  %s %g  %s\n", name,
		json_number_value(json_object_get(b->ratios, name)),
		json_string_value(json_object_get(row, "must")),
		json_number_value(json_object_get(row, "bound")),
		json_is_true(json_object_get(row, "kept")) ? "kept" : "MISSED");
	json_object_foreach(b->voids, name, v)
		printf("%-26s void: %s\n", name, json_string_value(v));
}

static int measure(struct kv_bench *b, const char *only)
{
	int err = 0;

	if (!only || strcmp(only, "fill") == 0)
		err = kv_bench_fill(b);
	if (!err && (!only || strcmp(only, "trips") == 0))
		err = kv_bench_trips(b);
	if (!err && (!only || strcmp(only, "speed") == 0))
		err = kv_bench_speed(b);
	if (!err && (!only || strcmp(only, "gateway") == 0))
		err = kv_bench_gateway(b);
	return err;
}

int bench_kv_cmd(int argc, char **argv)
{
	struct options o = {0};
	struct machine machine;
	struct kv_bench b;
	json_t *verdicts;
	unsigned missed;
	int rc = parse(argc, argv, &o);

	if (rc >= 0)
		return rc;
	b = (struct kv_bench){.fill_seeds = (unsigned)o.seeds,
			      .fill_entries = o.entries ? o.entries
					      : o.quick ? 100000
							: 10000000,
			      .trips_entries = o.quick ? 5000 : 20000,
			      .records = o.records ? o.records
					 : o.quick ? 5000
						   : 100000,
			      .rounds = o.rounds  ? o.rounds
					: o.quick ? 1
						  : 7,
			      .window_ms = o.window_ms ? o.window_ms
					   : o.quick   ? 20
						       : 200,
			      .rows = json_array(),
			      .ratios = json_object(),
			      .voids = json_object()};
	verdicts = json_object();
	machine_describe(&machine);
	rc = measure(&b, o.only);
	missed = judge(&b, verdicts);
	if (!rc && o.json) {
		json_t *all =
			json_pack("{s:s, s:s, s:o, s:b, s:O, s:O, s:O, s:O}",
				  "bench", "kv", "commit", BENCH_COMMIT,
				  "machine", machine_json(&machine), "quick",
				  o.quick, "rows", b.rows, "ratios", b.ratios,
				  "void", b.voids, "bounds", verdicts);

		(void)json_dumpf(all, stdout, JSON_INDENT(2));
		printf("\n");
		json_decref(all);
	} else if (!rc) {
		print_table(&b, verdicts);
	}
	json_decref(b.rows);
	json_decref(b.ratios);
	json_decref(b.voids);
	json_decref(verdicts);
	return rc ? EXIT_FAILED : o.check && missed ? EXIT_MISSED : EXIT_RAN;
}
