/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of whole programs: one for every work and place. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_plan.h"

enum {
	PROGRAM_ROUNDS = 3,
};

static void add_place(json_t *row, const struct run_group *g,
		      enum run_place place)
{
	json_object_update_new(row, json_pack("{s:I, s:I, s:s}", "bytes",
					      (json_int_t)g->work.bytes,
					      "local_bytes",
					      (json_int_t)g->local_bytes,
					      "place", run_place_name(place)));
}

static void add_rows(struct bench *b, const struct run_group *g)
{
	const char *unit = run_group_is_per_fault(g) ? "us/fault" : "s";
	const char *work = run_work_name(g->work.kind);

	for (unsigned i = 0; i < g->cells; i++) {
		const struct run_cell *c = &g->cell[i];
		char why[160];

		snprintf(why, sizeof(why), "needs %s",
			 c->missing ? c->missing : "");
		if (c->missing)
			bench_row_failed(b, "programs", work, unit, why);
		else
			(void)bench_row(b, "programs", work,
					run_group_median(g, c), unit,
					run_place_name(c->place));
		add_place(json_array_get(b->rows, json_array_size(b->rows) - 1),
			  g, c->place);
	}
}

static void add_count(struct bench *b, const struct run_plan *p,
		      const struct run_plan_count *at)
{
	const struct run_counted *c = &at->counted;
	json_t *row =
		bench_row(b, "programs", "far_bytes", (double)c->far_in_bytes,
			  "bytes", "sent by the node's NIC in a counted run");

	add_place(row, &p->group[RUN_GROUP_TOUCH], at->place);
	json_object_update_new(
		row,
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "faults",
			  (json_int_t)c->faults, "loads", (json_int_t)c->loads,
			  "first_touches", (json_int_t)c->first_touches,
			  "second_chances", (json_int_t)c->second_chances,
			  "stored", (json_int_t)c->stored, "far_in_bytes",
			  (json_int_t)c->far_in_bytes, "far_out_bytes",
			  (json_int_t)c->far_out_bytes));
}

int run_rows(struct bench *b, bool programs)
{
	unsigned most = b->has_rounds ? RUN_ROUNDS_MAX : PROGRAM_ROUNDS;
	unsigned rounds = u32_min(b->rounds, most);
	struct run_plan *p = calloc(2, sizeof(*p));
	int err = p ? 0 : bench_fail(b, -ENOMEM, "no memory");

	for (unsigned i = 0; i < (programs ? 2 : 1) && !err; i++) {
		run_plan_init(&p[i], i == 1, b->quick);
		if (!programs)
			run_plan_keep_touches(&p[i]);
		err = run_plan_run(b, &p[i], rounds);
		if (err)
			err = bench_fail(b, err, "no rack: %s", strerror(-err));
		for (unsigned k = 0; k < p[i].groups && !err; k++)
			add_rows(b, &p[i].group[k]);
	}
	for (unsigned i = 0; !err && i < p[0].counts; i++)
		if (p[0].count[i].is_there)
			add_count(b, &p[0], &p[0].count[i]);
	if (!err)
		run_judge(b, &p[0]);
	free(p);
	return err;
}
