/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of whole programs: one for every work and place, as JSON and as a
 * table. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "run_plan.h"

static json_t *make_row(const struct run_group *g, enum run_place place)
{
	return json_pack(
		"{s:s, s:I, s:I, s:s}", "work", run_work_name(g->work.kind),
		"bytes", (json_int_t)g->work.bytes, "local",
		(json_int_t)g->local_bytes, "place", run_place_name(place));
}

static void add_rows(json_t *rows, const struct run_group *g)
{
	const char *unit = run_group_is_per_fault(g) ? "us/fault" : "s";

	for (unsigned i = 0; i < g->cells; i++) {
		const struct run_cell *c = &g->cell[i];
		json_t *row = make_row(g, c->place);

		if (c->missing)
			json_object_set_new(row, "void",
					    json_sprintf("no %s", c->missing));
		else
			json_object_update_new(row,
					       json_pack("{s:f, s:s}", "median",
							 run_group_median(g, c),
							 "unit", unit));
		json_array_append_new(rows, row);
	}
}

static void add_counts(json_t *rows, const struct run_plan *p)
{
	for (unsigned i = 0; i < p->counts; i++) {
		const struct run_counted *c = &p->count[i].counted;
		json_t *row;

		if (!p->count[i].is_there)
			continue;
		row = make_row(&p->group[RUN_GROUP_TOUCH], p->count[i].place);
		json_object_update_new(
			row,
			json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
				  "faults", (json_int_t)c->faults, "loads",
				  (json_int_t)c->loads, "first_touches",
				  (json_int_t)c->first_touches,
				  "second_chances",
				  (json_int_t)c->second_chances, "stored",
				  (json_int_t)c->stored, "far_in_bytes",
				  (json_int_t)c->far_in_bytes, "far_out_bytes",
				  (json_int_t)c->far_out_bytes));
		json_array_append_new(rows, row);
	}
}

int run_rows(const struct run_rows_plan *plan, json_t **rows, json_t *verdicts)
{
	unsigned rounds = u32_min(plan->rounds, RUN_ROUNDS_MAX);
	struct run_plan *p = calloc(2, sizeof(*p));
	int err = p ? 0 : -ENOMEM, missed = 0;

	*rows = json_array();
	for (unsigned i = 0; i < 2 && !err; i++) {
		run_plan_init(&p[i], i == 1, plan->quick);
		err = run_plan_run(&p[i], rounds);
		for (unsigned k = 0; k < p[i].groups && !err; k++)
			add_rows(*rows, &p[i].group[k]);
	}
	if (!err) {
		add_counts(*rows, &p[0]);
		missed = (int)run_judge(&p[0], verdicts);
	}
	free(p);
	return err ? err : missed;
}

/* ---- as a table --------------------------------------------------------- */

static void print_counts(const json_t *row)
{
	printf("%10lld faults: %lld from far memory (%lld bytes), %lld first "
	       "touches, %lld came back in time; %lld stored (%lld bytes)\n",
	       json_integer_value(json_object_get(row, "faults")),
	       json_integer_value(json_object_get(row, "loads")),
	       json_integer_value(json_object_get(row, "far_in_bytes")),
	       json_integer_value(json_object_get(row, "first_touches")),
	       json_integer_value(json_object_get(row, "second_chances")),
	       json_integer_value(json_object_get(row, "stored")),
	       json_integer_value(json_object_get(row, "far_out_bytes")));
}

void run_rows_print(const json_t *rows)
{
	const json_t *row, *why;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		printf("%-14s %5lldM %4lldM here  %-16s ",
		       json_string_value(json_object_get(row, "work")),
		       json_integer_value(json_object_get(row, "bytes")) >> 20,
		       json_integer_value(json_object_get(row, "local")) >> 20,
		       json_string_value(json_object_get(row, "place")));
		why = json_object_get(row, "void");
		if (why)
			printf("void: %s\n", json_string_value(why));
		else if (json_object_get(row, "loads"))
			print_counts(row);
		else
			printf("%10.3f %s\n",
			       json_number_value(
				       json_object_get(row, "median")),
			       json_string_value(json_object_get(row, "unit")));
	}
}
