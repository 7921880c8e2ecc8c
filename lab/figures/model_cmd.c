/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim nic-model`: prints the cost model beside what was published. */
#include "model_check.h"

#include <stdio.h>
#include <string.h>

static const struct constant {
	const char *name;
	unsigned long long value;
	const char *unit;
	const char *kind;
	const char *source;
} constants[] = {
#define MODEL_LINE(name, value, unit, kind, source) \
	{#name, (value), unit, #kind, source},
	MODEL_CONSTANTS(MODEL_LINE)
#undef MODEL_LINE
};

static const char usage[] =
	"usage: aquifer sim nic-model [--constants] [--json]\n"
	"Prints the host cost model against the published figures it stands\n"
	"for: figure, what was measured, published, model, model/published.\n"
	"  --constants  print every constant with its kind and source instead\n"
	"  --json       print one JSON object\n"
	"A row outside its tolerance is printed as \"off\".\n"
	"Figures n.m are of the dissertation behind RCuckoo and SwordBox,\n"
	"\"data\" of its author's data files, \"ODRP\" of the NSDI 2025 "
	"paper.\n";

static const char *verdict_name(const struct model_row *r)
{
	switch (model_row_verdict(r)) {
	case MODEL_REPRODUCED:
		return "reproduced";
	case MODEL_OFF:
		return "off";
	case MODEL_NOT_MODELLED:
		break;
	}
	return "not modelled";
}

/* Our strings hold no control characters; quotes are the only care. */
static void json_string(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putchar('\\');
		putchar(*s);
	}
	putchar('"');
}

static void constants_print(bool json)
{
	if (json)
		printf("{\"sim\":\"nic-model\",\"constants\":[");
	for (size_t i = 0; i < ARRAY_LEN(constants); i++) {
		const struct constant *k = &constants[i];

		if (!json) {
			printf("%-20s %10llu %-8s %-9s %s\n", k->name, k->value,
			       k->unit, k->kind, k->source);
			continue;
		}
		printf("%s{\"name\":\"%s\",\"value\":%llu,\"unit\":\"%s\","
		       "\"kind\":\"%s\",\"source\":",
		       i ? "," : "", k->name, k->value, k->unit, k->kind);
		json_string(k->source);
		putchar('}');
	}
	if (json)
		printf("]}\n");
}

static void row_print_json(const struct model_row *r, bool first)
{
	printf("%s{\"figure\":", first ? "" : ",");
	json_string(r->figure);
	printf(",\"what\":");
	json_string(r->what);
	printf(",\"unit\":\"%s\",\"published\":%.4g,\"tolerance\":%.2g,",
	       r->unit, r->published, r->tolerance);
	if (r->model < 0)
		printf("\"model\":null,\"ratio\":null,");
	else
		printf("\"model\":%.4g,\"ratio\":%.3f,", r->model,
		       r->model / r->published);
	printf("\"verdict\":\"%s\"}", verdict_name(r));
}

static void row_print(const struct model_row *r)
{
	printf("%-8s %-46s %9.4g ", r->figure, r->what, r->published);
	if (r->model < 0)
		printf("%9s %6s", "-", "-");
	else
		printf("%9.4g %6.2f", r->model, r->model / r->published);
	printf("  %-8s %s\n", r->unit, verdict_name(r));
}

static int rows_print(bool json)
{
	struct model_row rows[MODEL_ROWS_MAX];
	size_t n = 0, off = 0, left_out = 0;
	int err = model_check_run(&model_connectx5, rows, &n);

	if (err) {
		fprintf(stderr, "nic-model: %s\n", strerror(-err));
		return 1;
	}
	if (json)
		printf("{\"sim\":\"nic-model\",\"rows\":[");
	else
		printf("%-8s %-46s %9s %9s %6s  %-8s %s\n", "figure", "what",
		       "published", "model", "ratio", "unit", "verdict");
	for (size_t i = 0; i < n; i++) {
		enum model_verdict v = model_row_verdict(&rows[i]);

		off += v == MODEL_OFF;
		left_out += v == MODEL_NOT_MODELLED;
		if (json)
			row_print_json(&rows[i], i == 0);
		else
			row_print(&rows[i]);
	}
	if (json)
		printf("],\"reproduced\":%zu,\"off\":%zu,"
		       "\"not_modelled\":%zu}\n",
		       n - off - left_out, off, left_out);
	else
		printf("%zu reproduced, %zu off, %zu not modelled\n",
		       n - off - left_out, off, left_out);
	return 0;
}

int sim_model_cmd(int argc, char **argv)
{
	bool json = false, list = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json")) {
			json = true;
		} else if (!strcmp(argv[i], "--constants")) {
			list = true;
		} else if (!strcmp(argv[i], "--help") ||
			   !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			return 0;
		} else {
			fprintf(stderr, "nic-model: unknown argument %s\n%s",
				argv[i], usage);
			return 2;
		}
	}
	if (!list)
		return rows_print(json);
	constants_print(json);
	return 0;
}
