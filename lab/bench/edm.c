/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `aquifer bench edm`: the simulated fabric's promises. Times are virtual, so
 * they are the same on every machine; only events_per_s is not.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bench.h"
#include "bench_commit.h"
#include "edm/edm_bench.h"
#include "machine.h"

enum {
	RAN = 0,
	FAILED = 1,
	USAGE = 2,
	MISSED = 3,
};

static const char usage[] =
	"usage: aquifer bench edm [--quick] [--check] [--jobs N] [--json]\n"
	"Simulates EDM at 64 B and with five applications and prints ratios "
	"to\n"
	"unloaded times, beside the bounds that they must keep.\n"
	"  --quick  a tenth of the length; averages have not settled then\n"
	"  --check  exit code 3 when a bound is missed\n"
	"  --jobs   threads (all processors)\n"
	"  --json   one JSON object\n";

static bool kept(const struct edm_bench_row *r)
{
	if (r->bound == 0)
		return true;
	return r->at_least ? r->value >= r->bound : r->value <= r->bound;
}

static const char *verdict(const struct edm_bench_row *r)
{
	if (r->bound == 0)
		return "printed";
	return kept(r) ? "kept" : "missed";
}

static void print_text(const struct edm_bench_row *rows, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct edm_bench_row *r = &rows[i];

		printf("%-26s %12.4g  %-8s", r->name, r->value, verdict(r));
		if (r->bound != 0)
			printf(" %s %-8.4g",
			       r->at_least ? ">=" : "<=", r->bound);
		else
			printf(" %11s", "");
		printf(" %s\n", r->what);
	}
}

static int print_json(const struct edm_bench_row *rows, unsigned n, bool quick)
{
	json_t *list = json_array(), *ratios = json_object(), *top;
	struct machine m;
	int rc;

	machine_describe(&m);
	for (unsigned i = 0; i < n; i++) {
		const struct edm_bench_row *r = &rows[i];
		json_t *row = json_pack("{s:s, s:s, s:f, s:s}", "name", r->name,
					"what", r->what, "value", r->value,
					"verdict", verdict(r));

		if (row && r->bound != 0) {
			json_object_set_new(row, "bound", json_real(r->bound));
			json_object_set_new(
				row, "must",
				json_string(r->at_least ? ">=" : "<="));
		}
		json_array_append_new(list, row);
		json_object_set_new(ratios, r->name, json_real(r->value));
	}
	top = json_pack("{s:s, s:s, s:b, s:{s:s, s:s, s:i}, s:o, s:o}", "bench",
			"edm", "commit", BENCH_COMMIT, "quick", (int)quick,
			"machine", "cpu", m.cpu, "kernel", m.kernel, "cores",
			(int)m.cpu_count, "rows", list, "ratios", ratios);
	if (!top)
		return FAILED;
	rc = json_dumpf(top, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) <
		     0 ||
	     fputc('\n', stdout) == EOF;
	json_decref(top);
	return rc ? FAILED : RAN;
}

int bench_edm_cmd(int argc, char **argv)
{
	struct edm_bench_row rows[EDM_BENCH_MAX];
	bool quick = false, check = false, json = false;
	long jobs = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n = 0;
	int rc;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--quick")) {
			quick = true;
		} else if (!strcmp(argv[i], "--check")) {
			check = true;
		} else if (!strcmp(argv[i], "--json")) {
			json = true;
		} else if (!strcmp(argv[i], "--jobs") && i + 1 < argc &&
			   sscanf(argv[i + 1], "%ld", &jobs) == 1 && jobs > 0 &&
			   jobs <= 64) {
			i++;
		} else if (!strcmp(argv[i], "--help") ||
			   !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			return RAN;
		} else {
			fprintf(stderr,
				"aquifer: bench edm does not understand '%s'\n",
				argv[i]);
			return USAGE;
		}
	}
	rc = edm_bench_run(quick, jobs > 0 ? (uint32_t)jobs : 1, true, rows,
			   &n);
	if (rc) {
		fprintf(stderr, "aquifer: bench edm: %s\n", error_last());
		return FAILED;
	}
	rc = RAN;
	if (json)
		rc = print_json(rows, n, quick);
	else
		print_text(rows, n);
	for (unsigned i = 0; check && !rc && i < n; i++)
		if (!kept(&rows[i]))
			rc = MISSED;
	return rc;
}
