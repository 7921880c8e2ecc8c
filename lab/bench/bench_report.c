/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a run: rows, ratios, verdicts; as a table for people or as the
 * JSON object that is the same for all. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/complaint.h"
#include "bench.h"
#include "machine.h"
#include "report/figure.h"

void bench_open(struct bench *b)
{
	const struct bench_def *def = b->def;

	if (!b->rounds)
		b->rounds = b->quick ? def->rounds_quick : def->rounds;
	if (!b->window_ms)
		b->window_ms = b->quick ? def->window_ms_quick : def->window_ms;
	b->rows = json_array();
	b->ratios = json_object();
	b->bounds = json_object();
	b->voids = json_object();
}

void bench_close(struct bench *b)
{
	json_decref(b->rows);
	json_decref(b->ratios);
	json_decref(b->bounds);
	json_decref(b->voids);
}

/* ---- rows, ratios, words ------------------------------------------------- */

json_t *bench_row(struct bench *b, const char *group, const char *name,
		  double value, const char *unit, const char *what)
{
	json_t *row;

	if (!isfinite(value)) {
		bench_row_failed(b, group, name, unit, "it gave no number");
		return json_array_get(b->rows, json_array_size(b->rows) - 1);
	}
	row = json_pack("{s:s, s:s, s:f, s:s, s:s}", "group", group, "name",
			name, "value", value, "unit", unit, "what",
			what ? what : "");
	(void)json_array_append_new(b->rows, row);
	return row;
}

void bench_row_failed(struct bench *b, const char *group, const char *name,
		      const char *unit, const char *why)
{
	(void)json_array_append_new(
		b->rows, json_pack("{s:s, s:s, s:s, s:s}", "group", group,
				   "name", name, "unit", unit, "error", why));
}

static const struct bench_ratio *ratio_of(const struct bench *b,
					  const char *name)
{
	const struct bench_ratio *r = b->def->ratios;

	while (r->name && strcmp(r->name, name) != 0)
		r++;
	ASSERT(r->name);
	return r;
}

static bool is_kept(const struct bench_ratio *r, double value)
{
	if (strcmp(r->must, "==") == 0)
		return value == r->bound;
	if (strcmp(r->must, "<") == 0)
		return value < r->bound;
	return r->must[0] == '<' ? value <= r->bound : value >= r->bound;
}

void bench_ratio_add(struct bench *b, const char *name, double value)
{
	const struct bench_ratio *r = ratio_of(b, name);

	if (!bench_wants_ratio(b, r))
		return;
	if (!isfinite(value)) {
		bench_void(b, name, "it gave no number");
		return;
	}
	(void)json_object_set_new(b->ratios, name, json_real(value));
	if (r->must)
		(void)json_object_set_new(
			b->bounds, name,
			json_pack("{s:s, s:f, s:f, s:b}", "must", r->must,
				  "bound", r->bound, "value", value, "kept",
				  (int)is_kept(r, value)));
}

void bench_void(struct bench *b, const char *name, const char *fmt, ...)
{
	char why[BENCH_WHY_BYTES];
	va_list ap;

	if (!bench_wants_ratio(b, ratio_of(b, name)))
		return;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	(void)json_object_set_new(b->voids, name, json_string(why));
}

int bench_fail(struct bench *b, int rc, const char *fmt, ...)
{
	va_list ap;

	if (b->why[0])
		return rc;
	va_start(ap, fmt);
	vsnprintf(b->why, sizeof(b->why), fmt, ap);
	va_end(ap);
	complain(0, "bench %s: %s", b->def->name, b->why);
	return rc;
}

void bench_progress(const struct bench *b, const char *fmt, ...)
{
	char text[BENCH_WHY_BYTES];
	json_t *line;
	va_list ap;

	if (!b->is_one_of_all && !isatty(STDERR_FILENO))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!complaint_is_json()) {
		fprintf(stderr, "bench %s: %s\n", b->def->name, text);
		return;
	}
	line = json_pack("{s:s, s:s}", "bench", b->def->name, "progress", text);
	(void)json_dumpf(line, stderr, JSON_COMPACT);
	fputc('\n', stderr);
	json_decref(line);
}

/* ---- JSON ---------------------------------------------------------------- */

/* Every ratio that was wanted has a number, or the reason why it has none. */
static void complete(struct bench *b)
{
	for (const struct bench_ratio *r = b->def->ratios; r->name; r++)
		if (bench_wants_ratio(b, r) &&
		    !json_object_get(b->ratios, r->name) &&
		    !json_object_get(b->voids, r->name))
			bench_void(b, r->name, "%s",
				   b->why[0] ? b->why : "not measured");
}

static json_t *settings(const struct bench *b)
{
	json_t *o = json_pack("{s:i}", "rounds", (int)b->rounds);
	const struct bench_option *own = b->def->options;

	if (b->window_ms)
		json_object_set_new(o, "window_ms",
				    json_integer((json_int_t)b->window_ms));
	if (b->only)
		json_object_set_new(o, "only", json_string(b->only));
	for (unsigned i = 0; own && own[i].name; i++)
		if (own[i].max)
			json_object_set_new(
				o, own[i].name,
				json_integer((json_int_t)bench_number(
					b, own[i].name)));
		else if (b->word[i])
			json_object_set_new(o, own[i].name,
					    json_string(b->word[i]));
	return o;
}

json_t *bench_object(struct bench *b)
{
	complete(b);
	return json_pack("{s:s, s:s, s:b, s:o, s:o, s:O, s:O, s:O, s:O}",
			 "bench", b->def->name, "commit", report_commit(),
			 "quick", (int)b->quick, "settings", settings(b),
			 "machine", machine_json(), "rows", b->rows, "ratios",
			 b->ratios, "bounds", b->bounds, "void", b->voids);
}

/* ---- for people ---------------------------------------------------------- */

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void cell(const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);
	double x = json_number_value(v);
	int width = (int)strlen(key) > 9 ? (int)strlen(key) : 9;

	if (json_is_string(v))
		printf("  %*s", width, json_string_value(v));
	else if (!v)
		printf("  %*s", width, "-");
	else
		printf(fabs(x) < 1000 ? "  %*.4g" : "  %*.0f", width, x);
}

static void print_head(const struct bench *b, const json_t *machine)
{
	printf("aquifer bench %s, commit %s%s\n", b->def->name, report_commit(),
	       b->quick ? ", quick: for a look, not for a verdict" : "");
	printf("%s, %lld cores, kernel %s; %u rounds", text_of(machine, "cpu"),
	       json_integer_value(json_object_get(machine, "cores")),
	       text_of(machine, "kernel"), b->rounds);
	if (b->window_ms)
		printf(" of %u ms", b->window_ms);
	printf("\n");
}

static int widest(const json_t *rows, const char *key)
{
	const json_t *row;
	size_t i, most = strlen(key);

	json_array_foreach(rows, i, row)
	{
		size_t len = strlen(text_of(row, key));

		most = len > most ? len : most;
	}
	return (int)most;
}

static void print_rows(const struct bench *b)
{
	static const char *const none[] = {NULL};
	const char *const *more = b->def->columns ? b->def->columns : none;
	int group = widest(b->rows, "group"), name = widest(b->rows, "name");
	const json_t *row;
	size_t i;

	printf("\n%-*s  %-*s  %12s %-9s", group, "group", name, "name", "value",
	       "unit");
	for (const char *const *c = more; *c; c++)
		printf("  %9s", *c);
	printf("\n");
	json_array_foreach(b->rows, i, row)
	{
		const json_t *v = json_object_get(row, "value");
		double x = json_number_value(v);

		printf("%-*s  %-*s  ", group, text_of(row, "group"), name,
		       text_of(row, "name"));
		if (!v) {
			printf("failed: %s\n", text_of(row, "error"));
			continue;
		}
		printf(fabs(x) < 1000 ? "%12.4g" : "%12.0f", x);
		printf(" %-9s", text_of(row, "unit"));
		for (const char *const *c = more; *c; c++)
			cell(row, *c);
		printf("  %s\n", text_of(row, "what"));
	}
}

static const char *verdict(const struct bench *b, const char *name)
{
	const json_t *bound = json_object_get(b->bounds, name);

	if (json_object_get(b->voids, name))
		return "void";
	if (!bound)
		return "-";
	return json_is_true(json_object_get(bound, "kept")) ? "kept" : "MISSED";
}

static void print_ratio(const struct bench *b, const struct bench_ratio *r)
{
	const json_t *v = json_object_get(b->ratios, r->name);
	char bound[32] = "";

	if (r->must)
		snprintf(bound, sizeof(bound), "%s %g", r->must, r->bound);
	printf("%-33s ", r->name);
	if (v)
		printf("%10.4g", json_number_value(v));
	else
		printf("%10s", "-");
	printf("  %8s  %s", bound, verdict(b, r->name));
	if (r->paper)
		printf("  (the paper: %s)", r->paper);
	printf("\n");
}

/* The ratios; last, where one looks first, what could not be judged and why,
 * and how many are kept. */
static void print_ratios(const struct bench *b)
{
	unsigned kept = 0, missed = 0;
	const json_t *v;
	const char *name;

	printf("\n%-33s %10s  %8s  %s\n", "ratio", "measured", "must be",
	       "verdict");
	for (const struct bench_ratio *r = b->def->ratios; r->name; r++)
		if (bench_wants_ratio(b, r))
			print_ratio(b, r);
	json_object_foreach(b->bounds, name, v)
	{
		if (json_is_true(json_object_get(v, "kept")))
			kept++;
		else
			missed++;
	}
	printf("\n");
	json_object_foreach(b->voids, name, v)
		printf("void: %s: %s\n", name, json_string_value(v));
	printf("ratios: %u kept, %u missed, %zu void\n", kept, missed,
	       json_object_size(b->voids));
}

void bench_print(struct bench *b)
{
	json_t *o = bench_object(b);

	if (b->json) {
		(void)json_dumpf(o, stdout,
				 JSON_INDENT(1) | JSON_REAL_PRECISION(9));
		printf("\n");
	} else {
		print_head(b, json_object_get(o, "machine"));
		print_rows(b);
		print_ratios(b);
	}
	json_decref(o);
}

int bench_exit_code(const struct bench *b)
{
	const char *name;
	json_t *v;

	if (b->why[0])
		return BENCH_FAILED;
	json_object_foreach(b->bounds, name,
			    v) if (b->check &&
				   !json_is_true(json_object_get(
					   v, "kept"))) return BENCH_MISSED;
	return BENCH_RAN;
}
