/* SPDX-License-Identifier: Apache-2.0 */
/* Table 1 and figure 5 as charts. */
#include "edm_table.h"
#include "phy_report.h"

static double ns(uint64_t ps)
{
	return (double)ps / 1000;
}

int edm_table1_chart(const char *dir)
{
	double y[EDM_LAT_OPS * EDM_LAT_STACKS];
	const char *x[EDM_LAT_STACKS];
	const struct edm_chart c = {
		.title = "Table 1: a 64 B access of an idle fabric",
		.x_label = "stack",
		.y_label = "ns",
		.x = x,
		.points = EDM_LAT_STACKS,
		.series = EDM_LAT_OPS,
		.name = {"read", "write"},
		.y = y,
		.log_y = true,
		.bars = true,
	};
	struct edm_table1 t;

	edm_table1(&t);
	for (int s = 0; s < EDM_LAT_STACKS; s++) {
		x[s] = edm_lat_stack_name(s);
		for (int op = 0; op < EDM_LAT_OPS; op++)
			y[op * EDM_LAT_STACKS + s] = ns(t.total_ps[s][op]);
	}
	return edm_chart_write(&c, dir, "table1");
}

enum {
	POINTS = EDM_LAT_OPS * EDM_LAT_PLACES,
};

int edm_figure5_chart(const char *dir, const struct edm_lat_config *config)
{
	static const char *const x[POINTS] = {
		"r compute", "r switch", "r memory", "r link",
		"w compute", "w switch", "w memory", "w link"};
	double y[EDM_LAT_PARTS * POINTS];
	struct edm_chart c = {
		.title = "Figure 5: where an EDM access spends its time",
		.x_label = "r: read, w: write",
		.y_label = "ns",
		.x = x,
		.points = POINTS,
		.series = EDM_LAT_PARTS,
		.y = y,
		.bars = true,
	};
	struct edm_lat_path p;
	int err;

	for (int op = 0; op < EDM_LAT_OPS; op++) {
		err = edm_lat_path(op, config, &p);
		if (err)
			return err;
		for (int part = 0; part < EDM_LAT_PARTS; part++) {
			c.name[part] = edm_lat_part_name(part);
			for (int place = 0; place < EDM_LAT_PLACES; place++)
				y[part * POINTS + op * EDM_LAT_PLACES + place] =
					ns(edm_lat_sum(&p, place, part));
		}
	}
	return edm_chart_write(&c, dir, "figure5");
}
