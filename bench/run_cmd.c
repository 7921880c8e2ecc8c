/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench run`: its options, rounds in turns, and the report. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_commit.h"
#include "machine_json.h"
#include "offload_bench.h"
#include "run_bench.h"

enum {
	EXIT_RAN = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_MISSED = 3,
	ROUNDS_MAX = 21,
};

struct options {
	bool json, quick, check;
	unsigned rounds;
};

/* Two places of one work, in turns. */
struct duel {
	const char *ratio;
	double most; /* of ours / theirs */
	struct run_work work;
	uint64_t local_bytes;
	enum run_place theirs;
	const char *their_name;
	double ours_ns[ROUNDS_MAX], theirs_ns[ROUNDS_MAX];
	unsigned rounds;
	bool failed;
};

static void usage(FILE *to)
{
	fprintf(to,
		"usage: aquifer bench run [--json] [--quick] [--check] "
		"[--rounds N]\n"
		"Programs under `aquifer run`, on a rack of their own: random "
		"touches with a quarter\n"
		"of the memory here beside swapping to zram under an equal "
		"limit (needs root), and\n"
		"a quicksort with half of its memory here beside all of it. In "
		"turns, medians.\n"
		"  --rounds N  of each (default 3)\n"
		"  --quick     small: shows that it works, proves nothing\n"
		"  --check     exit code 3 when a ratio misses its bound\n"
		"  --json      one JSON object\n");
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(const double *values, unsigned n)
{
	double v[ROUNDS_MAX];

	memcpy(v, values, n * sizeof(*v));
	qsort(v, n, sizeof(*v), compare);
	return n ? v[n / 2] : 0;
}

static void fight(struct duel *d)
{
	for (unsigned i = 0; i < d->rounds && !d->failed; i++) {
		uint64_t ours = 0, theirs = 0;
		int err;

		d->work.seed = 1 + i;
		err = run_work_spawn(&d->work, RUN_PLACE_FAR, d->local_bytes,
				     &ours);
		if (!err)
			err = run_work_spawn(&d->work, d->theirs,
					     d->local_bytes, &theirs);
		d->ours_ns[i] = (double)ours;
		d->theirs_ns[i] = (double)theirs;
		d->failed = err != 0;
	}
}

/* Of one touch that misses, or of the whole sort. */
static double per_unit(const struct duel *d, double ns)
{
	double missing = 1 - (double)d->local_bytes / (double)d->work.bytes;

	if (d->work.kind == RUN_WORK_SORT)
		return ns / 1e9;
	return ns / 1e3 / (double)d->work.touches / missing;
}

static void add_row(json_t *rows, const struct duel *d, const char *name,
		    const double *ns)
{
	json_array_append_new(
		rows,
		json_pack("{s:s, s:s, s:f, s:s}", "group", d->ratio, "name",
			  name, "median", per_unit(d, median(ns, d->rounds)),
			  "unit",
			  d->work.kind == RUN_WORK_SORT ? "s" : "us/fault"));
}

/* Whether the bound is kept; a duel that did not take place has no ratio. */
static bool conclude(const struct duel *d, json_t *rows, json_t *ratios)
{
	double ratio;

	if (d->failed) {
		json_object_set_new(ratios, d->ratio, json_null());
		return true;
	}
	add_row(rows, d, "aquifer run", d->ours_ns);
	add_row(rows, d, d->their_name, d->theirs_ns);
	ratio = median(d->ours_ns, d->rounds) / median(d->theirs_ns, d->rounds);
	json_object_set_new(ratios, d->ratio, json_real(ratio));
	return ratio <= d->most;
}

static void print_table(const json_t *rows, json_t *ratios)
{
	const char *name;
	json_t *v, *row;
	size_t i;

	json_array_foreach(rows, i, row)
		printf("%-24s %-14s %10.2f %s\n",
		       json_string_value(json_object_get(row, "group")),
		       json_string_value(json_object_get(row, "name")),
		       json_number_value(json_object_get(row, "median")),
		       json_string_value(json_object_get(row, "unit")));
	json_object_foreach(ratios, name, v)
	{
		if (json_is_null(v))
			printf("%-24s not measured\n", name);
		else
			printf("%-24s %.3f\n", name, json_number_value(v));
	}
}

static int run_all(const struct options *o)
{
	uint64_t mib = 1 << 20;
	struct duel duel[] = {
		{.ratio = "fault_elapsed_vs_zram",
		 .most = 0.75,
		 .work = {RUN_WORK_TOUCH, (o->quick ? 32 : 512) * mib,
			  o->quick ? 5000 : 300000, 0},
		 .local_bytes = (o->quick ? 8 : 128) * mib,
		 .theirs = RUN_PLACE_ZRAM,
		 .their_name = "zram",
		 .rounds = o->rounds},
		{.ratio = "quicksort50_vs_local",
		 .most = 1.5,
		 .work = {RUN_WORK_SORT, (o->quick ? 16 : 1024) * mib, 0, 0},
		 .local_bytes = (o->quick ? 8 : 512) * mib,
		 .theirs = RUN_PLACE_LOCAL,
		 .their_name = "local",
		 .rounds = o->rounds},
	};
	json_t *rows = json_array(), *ratios = json_object();
	struct offload_rack *rack;
	struct machine machine;
	bool kept = true;

	if (offload_rack_start((o->quick ? 256 : 2560) * mib, &rack) != 0) {
		fprintf(stderr, "aquifer: bench run: no rack\n");
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < ARRAY_LEN(duel); i++) {
		fight(&duel[i]);
		kept &= conclude(&duel[i], rows, ratios);
	}
	offload_rack_stop(rack);
	machine_describe(&machine);
	if (o->json) {
		json_t *all = json_pack("{s:s, s:s, s:o, s:O, s:O}", "bench",
					"run", "commit", BENCH_COMMIT,
					"machine", machine_json(&machine),
					"rows", rows, "ratios", ratios);

		(void)json_dumpf(all, stdout, JSON_INDENT(2));
		(void)puts("");
		json_decref(all);
	} else {
		print_table(rows, ratios);
	}
	json_decref(rows);
	json_decref(ratios);
	return o->check && !kept ? EXIT_MISSED : EXIT_RAN;
}

/* What this program starts itself as: --work KIND BYTES TOUCHES SEED. */
static int be_work(char **argv)
{
	struct run_work w = {
		.kind = strcmp(argv[0], "sort") == 0 ? RUN_WORK_SORT
						     : RUN_WORK_TOUCH,
		.bytes = strtoull(argv[1], NULL, 10),
		.touches = strtoull(argv[2], NULL, 10),
		.seed = strtoull(argv[3], NULL, 10),
	};

	return run_work_main(&w);
}

int bench_run_cmd(int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'},
		{"check", no_argument, NULL, 'c'},
		{"rounds", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options o = {.rounds = 3};
	int c;

	if (argc == 6 && strcmp(argv[1], "--work") == 0)
		return be_work(argv + 2);
	optind = 0;
	while ((c = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
		switch (c) {
		case 'j':
			o.json = true;
			break;
		case 'q':
			o.quick = true;
			break;
		case 'c':
			o.check = true;
			break;
		case 'r':
			o.rounds = (unsigned)atoi(optarg);
			break;
		case 'h':
			usage(stdout);
			return EXIT_RAN;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (optind != argc || o.rounds < 1 || o.rounds > ROUNDS_MAX) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (o.quick)
		o.rounds = 1;
	return run_all(&o);
}
