/* SPDX-License-Identifier: Apache-2.0 */
/* Prints Table 1 and Figure 5. */
#include "phy_report.h"

static double ns(uint64_t ps)
{
	return (double)ps / (double)EDM_NS;
}

static const char *op_name(int op)
{
	return op == EDM_LAT_READ ? "read" : "write";
}

static void cell_print(FILE *f, const struct edm_table1_cell *c)
{
	char text[32];
	int n;

	if (!c->count && !c->extra_ps) {
		fprintf(f, " %14s", "0");
		return;
	}
	n = snprintf(text, sizeof(text), "%ux%.2f", c->count, ns(c->each_ps));
	if (c->extra_ps && n > 0 && (size_t)n < sizeof(text))
		(void)snprintf(text + n, sizeof(text) - (size_t)n, "+%.2f",
			       ns(c->extra_ps));
	fprintf(f, " %14s", text);
}

static void sums_print(FILE *f, const char *what,
		       uint64_t ps[EDM_LAT_STACKS][EDM_LAT_OPS])
{
	fprintf(f, "%-8s %-22s", "", what);
	for (int i = 0; i < EDM_LAT_STACKS * EDM_LAT_OPS; i++)
		fprintf(f, " %14.2f", ns(ps[i / EDM_LAT_OPS][i % EDM_LAT_OPS]));
	fputc('\n', f);
}

static void paper_print(FILE *f, const struct edm_table1 *t)
{
	fprintf(f, "%-8s %-22s", "", "total in the paper");
	for (int i = 0; i < EDM_LAT_STACKS * EDM_LAT_OPS; i++) {
		int s = i / EDM_LAT_OPS, op = i % EDM_LAT_OPS;

		fprintf(f, " %13s%c", edm_table1_paper(s, op)->text,
			edm_table1_agrees(t, s, op) ? ' ' : '*');
	}
	fprintf(f, "\n%-8s %-22s", "", "times EDM");
	for (int i = 0; i < EDM_LAT_STACKS * EDM_LAT_OPS; i++) {
		int s = i / EDM_LAT_OPS, op = i % EDM_LAT_OPS;

		fprintf(f, " %14.2f",
			(double)t->total_ps[s][op] /
				(double)t->total_ps[EDM_LAT_EDM][op]);
	}
	fprintf(f,
		"\n* does not follow from the paper's own lines. First block "
		"only: no serialization, no DRAM.\n"
		"Host and memory node on one cable, no switch: %.2f ns "
		"(measured by the authors: 153.6 to 158.7 ns).\n",
		ns(edm_lat_loopback_ps()));
}

void edm_table1_print(FILE *f)
{
	struct edm_table1 t;

	edm_table1(&t);
	fprintf(f, "Table 1: latency of an idle fabric, ns\n%-8s %-22s", "",
		"");
	for (int i = 0; i < EDM_LAT_STACKS * EDM_LAT_OPS; i++)
		fprintf(f, " %8s %5s", edm_lat_stack_name(i / EDM_LAT_OPS),
			op_name(i % EDM_LAT_OPS));
	fputc('\n', f);
	for (int k = 0; k < EDM_LAT_TABLE_LINES; k++) {
		fprintf(f, "%-8s %-22s", edm_lat_place_name(t.line[k].place),
			t.line[k].what);
		for (int i = 0; i < EDM_LAT_STACKS * EDM_LAT_OPS; i++)
			cell_print(f, &t.line[k].cell[i / EDM_LAT_OPS]
						     [i % EDM_LAT_OPS]);
		fputc('\n', f);
	}
	sums_print(f, "network stack", t.network_ps);
	sums_print(f, "total", t.total_ps);
	paper_print(f, &t);
}

void edm_table1_json(struct json_out *j)
{
	struct edm_table1 t;

	edm_table1(&t);
	json_out_array(j, "table1");
	for (int s = 0; s < EDM_LAT_STACKS; s++)
		for (int op = 0; op < EDM_LAT_OPS; op++) {
			json_out_object(j, NULL);
			json_out_string(j, "stack", edm_lat_stack_name(s));
			json_out_string(j, "op", op_name(op));
			json_out_double(j, "network_ns",
					ns(t.network_ps[s][op]));
			json_out_double(j, "total_ns", ns(t.total_ps[s][op]));
			json_out_double(j, "paper_ns",
					ns(edm_table1_paper(s, op)->ps));
			json_out_bool(j, "agrees",
				      edm_table1_agrees(&t, s, op));
			json_out_close(j);
		}
	json_out_close(j);
}

static void path_print(FILE *f, enum edm_lat_op op,
		       const struct edm_lat_path *p)
{
	uint64_t sum = 0;

	fprintf(f, "%-8s %-14s %-44s %6s %8s %8s\n", op_name(op), "part",
		"step", "cycles", "ns", "sum");
	for (uint32_t i = 0; i < p->stages; i++) {
		const struct edm_lat_stage *s = &p->stage[i];

		sum += s->ps;
		fprintf(f, "%-8s %-14s %-44s ", edm_lat_place_name(s->place),
			edm_lat_part_name(s->part), s->what);
		if (s->cycles)
			fprintf(f, "%6u", s->cycles);
		else
			fprintf(f, "%6s", "");
		fprintf(f, " %8.2f %8.2f\n", ns(s->ps), ns(sum));
	}
	for (int place = 0; place < EDM_LAT_PLACES; place++)
		for (int part = 0; part < EDM_LAT_PARTS; part++) {
			uint64_t ps = edm_lat_sum(p, place, part);

			if (ps)
				fprintf(f, "  in all: %-8s %-14s %8.2f ns\n",
					edm_lat_place_name(place),
					edm_lat_part_name(part), ns(ps));
		}
}

int edm_figure5_print(FILE *f, const struct edm_lat_config *c)
{
	struct edm_lat_path p;
	int err;

	for (int op = 0; op < EDM_LAT_OPS; op++) {
		err = edm_lat_path(op, c, &p);
		if (err)
			return err;
		if (op == EDM_LAT_READ)
			fprintf(f,
				"Figure 5: the steps of one EDM access of %u B "
				"at %u Gb/s\n",
				c->data_bytes, c->gbps);
		path_print(f, op, &p);
	}
	return 0;
}

int edm_figure5_json(struct json_out *j, const struct edm_lat_config *c)
{
	struct edm_lat_path p;
	int err = edm_lat_path(EDM_LAT_READ, c, &p);

	if (err)
		return err;
	json_out_array(j, "figure5");
	for (int op = 0; op < EDM_LAT_OPS; op++) {
		err = edm_lat_path(op, c, &p);
		ASSERT(!err); /* the same configuration as above */
		for (uint32_t i = 0; i < p.stages; i++) {
			const struct edm_lat_stage *s = &p.stage[i];

			json_out_object(j, NULL);
			json_out_string(j, "op", op_name(op));
			json_out_string(j, "place",
					edm_lat_place_name(s->place));
			json_out_string(j, "part", edm_lat_part_name(s->part));
			json_out_string(j, "step", s->what);
			json_out_u64(j, "cycles", s->cycles);
			json_out_double(j, "ns", ns(s->ps));
			json_out_close(j);
		}
	}
	json_out_close(j);
	return 0;
}
