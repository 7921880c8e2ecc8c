/* SPDX-License-Identifier: Apache-2.0 */
/* The host cost model beside the figures that it was calibrated on. */
#include <math.h>
#include <string.h>

#include "figures.h"

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
		row->row = rows[i];
		row->p.x_name = rows[i].what;
		row->p.published = rows[i].published;
		if (model_row_verdict(&rows[i]) == MODEL_NOT_MODELLED)
			row->row.model = NAN;
		else
			row->holds =
				model_row_verdict(&rows[i]) == MODEL_REPRODUCED;
		row->ratio = row->row.model / rows[i].published;
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

const struct figure_system model_figures = {
	.name = "nic-model",
	.source = "S. Grant's dissertation and its data files; ODRP",
	.summary = "The host cost model beside the published figures on which "
		   "it was calibrated.",
	.figures = figures,
	.columns = columns,
	.row_bytes = sizeof(struct model_figure_row),
	.run = run,
};

int model_figure_cmd(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--figure"))
			return figure_cmd(&model_figures, argc, argv);
	return sim_model_cmd(argc, argv);
}
