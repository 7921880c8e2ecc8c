/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim nic-model`: the host cost model beside the figures that it was
 * calibrated on, as figures or as one list, and its constants. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/complaint.h"
#include "base/error.h"
#include "base/json_out.h"
#include "figures.h"

static const char *const verdicts[] = {
	[MODEL_REPRODUCED] = "reproduced",
	[MODEL_OFF] = "off",
	[MODEL_NOT_MODELLED] = "not modelled",
};

static void fill(struct model_figure_row *to, const struct model_row *row)
{
	enum model_verdict v = model_row_verdict(row);

	to->row = *row;
	to->holds = v == MODEL_REPRODUCED;
	to->verdict = verdicts[v];
	if (v == MODEL_NOT_MODELLED)
		to->row.model = NAN;
	to->ratio = to->row.model / row->published;
}

/* All rows of the check are run, which takes well under a second; those of this
 * figure are kept. Each unit has a panel. */
static int plan(struct figure_run *r)
{
	struct model_row rows[MODEL_ROWS_MAX];
	size_t count = 0;
	int err = model_check_run(&model_connectx5, rows, &count);

	for (size_t i = 0; i < count && !err; i++) {
		struct model_figure_row *row;
		char name[16];

		/* A name with a blank would be two. */
		snprintf(name, sizeof(name), "%s", rows[i].figure);
		if (strchr(name, ' '))
			*strchr(name, ' ') = '-';
		if (strcmp(name, r->figure->name))
			continue;
		row = figure_add(r, rows[i].unit, "model", (double)i);
		row->p.x_name = rows[i].what;
		row->p.published = rows[i].published;
		fill(row, &rows[i]);
	}
	return err;
}

static int run(struct figure_run *r)
{
	return 0; /* the plan has run them */
}

static const struct figure figures[] = {
	{"1.1", "requests in flight", "", FIGURE_BARS, "model", plan, NULL,
	 NULL},
	{"1.2", "compare and swap", "", FIGURE_BARS, "model", plan, NULL, NULL},
	{"2.1", "queue pairs", "", FIGURE_BARS, "model", plan, NULL, NULL},
	{"2.2", "order across queue pairs", "", FIGURE_BARS, "model", plan,
	 NULL, NULL},
	{"2.3", "what replaces compare and swap", "", FIGURE_BARS, "model",
	 plan, NULL, NULL},
	{"3.1", "latency by size", "", FIGURE_BARS, "model", plan, NULL, NULL},
	{"data", "the author's data files", "", FIGURE_BARS, "model", plan,
	 NULL, NULL},
	{"ODRP-10", "ODRP: rates of pages", "", FIGURE_BARS, "model", plan,
	 NULL, NULL},
	{"ODRP-11", "ODRP: latency of pages", "", FIGURE_BARS, "model", plan,
	 NULL, NULL},
	{"ODRP-12", "ODRP: what chains save", "", FIGURE_BARS, "model", plan,
	 NULL, NULL},
	{.name = NULL},
};

#define C(member, name, decimals) \
	FIGURE_COLUMN(struct model_figure_row, member, name, decimals)

static const struct figure_column columns[] = {
	C(row.what, "what", 0),		  C(row.unit, "unit", 0),
	C(row.published, "published", 2), C(row.tolerance, "tolerance", 2),
	C(row.model, "model", 2),	  C(ratio, "ratio", 2),
	C(holds, "reproduced", 0),	  {.name = NULL},
};

/* Its points are always the same. */
static const struct figure_takes takes[] = {{NULL, NULL}};

const struct figure_system model_figures = {
	.name = "nic-model",
	.source = "S. Grant's dissertation and its data files; ODRP",
	.summary = "The host cost model beside the published figures on which "
		   "it was calibrated.",
	.figures = figures,
	.columns = columns,
	.takes = takes,
	.row_bytes = sizeof(struct model_figure_row),
	.run = run,
};

/* ---- lists --------------------------------------------------------------- */

void model_constants_print(const struct model_constant *rows, size_t count,
			   struct json_out *j)
{
#define K(member, decimals) \
	FIGURE_COLUMN(struct model_constant, member, #member, decimals)
	static const struct figure_column constant[] = {
		K(name, 0), K(value, 0),  K(unit, 0),
		K(kind, 0), K(source, 0), {.name = NULL}};
#undef K

	if (j)
		figure_table_json(j, "constants", constant, rows, sizeof(*rows),
				  count);
	else
		figure_table(stdout, constant, rows, sizeof(*rows), count);
}

/* The rows of all figures, and how many have which verdict. */
static int print_rows(struct json_out *j)
{
	static const struct figure_column list[] = {
		C(row.figure, "figure", 0),
		C(row.what, "what", 0),
		C(row.published, "published", 3),
		C(row.tolerance, "tolerance", FIGURE_JSON_ONLY),
		C(row.model, "model", 3),
		C(ratio, "ratio", 2),
		C(row.unit, "unit", 0),
		C(verdict, "verdict", 0),
		{.name = NULL}};
	struct model_figure_row rows[MODEL_ROWS_MAX];
	struct model_row plain[MODEL_ROWS_MAX];
	size_t count = 0, of[ARRAY_LEN(verdicts)] = {0};
	int err = model_check_run(&model_connectx5, plain, &count);

	if (err)
		return err;
	for (size_t i = 0; i < count; i++) {
		fill(&rows[i], &plain[i]);
		of[model_row_verdict(&plain[i])]++;
	}
	if (!j) {
		figure_table(stdout, list, rows, sizeof(*rows), count);
		for (unsigned v = 0; v < ARRAY_LEN(of); v++)
			printf("%s%zu %s", v ? ", " : "", of[v], verdicts[v]);
		putchar('\n');
		return 0;
	}
	figure_table_json(j, "rows", list, rows, sizeof(*rows), count);
	json_out_u64(j, "reproduced", of[MODEL_REPRODUCED]);
	json_out_u64(j, "off", of[MODEL_OFF]);
	json_out_u64(j, "not_modelled", of[MODEL_NOT_MODELLED]);
	return 0;
}

struct list_options {
	bool json, constants;
};

static const struct opt list_options[] = {
	OPT_FLAG(struct list_options, constants, "constants",
		 "print every constant with its kind and source instead"),
	OPT_FLAG(struct list_options, json, "json", "print one JSON object"),
	OPT_END,
};

static void usage(FILE *out)
{
	fputs("usage: aquifer sim nic-model [--constants] [--json]\n"
	      "       aquifer sim nic-model --figure NAME|all [OPTION...]\n",
	      out);
	opt_help_text("Prints the host cost model against the published "
		      "figures it stands for: figure, what was measured, "
		      "published, model, model/published. A row outside its "
		      "tolerance is printed as \"off\". Figures n.m are of the "
		      "dissertation behind RCuckoo and SwordBox, \"data\" of "
		      "its author's data files, \"ODRP\" of the NSDI 2025 "
		      "paper.",
		      out);
	opt_help(list_options, out);
}

static int print_list(const struct list_options *o)
{
	static const struct model_constant constants[] = {
		MODEL_CONSTANTS(MODEL_CONSTANT)};
	struct json_out j;
	int err = 0;

	if (o->json) {
		json_out_init(&j, stdout);
		json_out_object(&j, NULL);
		json_out_string(&j, "sim", "nic-model");
	}
	if (o->constants)
		model_constants_print(constants, ARRAY_LEN(constants),
				      o->json ? &j : NULL);
	else
		err = print_rows(o->json ? &j : NULL);
	if (!o->json)
		return err;
	json_out_close(&j);
	return json_out_end(&j) ? -EIO : err;
}

int model_figure_cmd(int argc, char **argv)
{
	struct list_options o = {0};
	enum opt_result parsed;
	int words;

	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "--figure", 8))
			return figure_cmd(&model_figures, NULL, argc, argv);
	parsed = opt_parse(list_options, "sim nic-model", argc, argv,
			   OPT_WORDS_NONE, &o, &words);
	if (parsed == OPT_HELP) {
		usage(stdout);
		return FIGURE_RAN;
	}
	if (parsed == OPT_WRONG) {
		if (!complaint_is_json())
			usage(stderr);
		complain(0, "%s", error_last());
		return FIGURE_USAGE;
	}
	return print_list(&o) ? FIGURE_BROKEN : FIGURE_RAN;
}
