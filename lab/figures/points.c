/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the points of a figure in several processes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "figures.h"
#include "sim/batch.h"
#include "sim/net_fabric.h"

struct running {
	struct figure_run *r;
	size_t done;
	bool shows; /* how far it is */
};

/* Points are numbered from 1, as seeds are. What comes back is the error and
 * the result's bytes of the row. */
static int run(void *ctx, uint64_t number, void *result)
{
	struct figure_run *r = ((struct running *)ctx)->r;
	const struct figure_system *s = r->system;
	char *row = figure_row(r, number - 1);
	int err = s->point(row);

	memcpy(result, &err, sizeof(err));
	memcpy((char *)result + sizeof(err), row + s->result_at,
	       s->result_bytes);
	return 0;
}

static const char *add(void *ctx, uint64_t number, const void *result)
{
	struct running *a = ctx;
	const struct figure_system *s = a->r->system;
	struct figure_point *p = figure_row(a->r, number - 1);

	memcpy(&p->err, result, sizeof(p->err));
	memcpy((char *)p + s->result_at, (const char *)result + sizeof(p->err),
	       s->result_bytes);
	a->done++;
	if (a->shows)
		fprintf(stderr, "\r%zu of %zu points%s", a->done, a->r->count,
			a->done == a->r->count ? "\n" : " ");
	return NULL;
}

static const struct sim_fabric_choice *fabric_of(const struct figure_options *o)
{
	return o->fabric && o->fabrics ? sim_fabric_find(o->fabrics, o->fabric)
				       : NULL;
}

/* Points that this fabric cannot have. */
static void leave_out(struct figure_run *r)
{
	size_t bytes = r->system->row_bytes, kept = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct figure_point *p = figure_row(r, i);

		if (p->fabric && p->err == -EOPNOTSUPP)
			continue;
		if (kept != i)
			memcpy(figure_row(r, kept), p, bytes);
		kept++;
	}
	r->count = kept;
}

int figure_points_run(struct figure_run *r)
{
	struct running a = {.r = r, .shows = isatty(STDERR_FILENO) == 1};
	struct sim_batch batch = {.from = 1,
				  .to = r->count,
				  .jobs = r->options->jobs,
				  .ctx = &a,
				  .result_bytes =
					  sizeof(int) + r->system->result_bytes,
				  .run = run,
				  .add = add};
	struct sim_batch_sum sum;
	int err;

	for (size_t i = 0; i < r->count; i++) {
		struct figure_point *p = figure_row(r, i);

		/* Whose process dies never comes back. */
		p->err = -ECHILD;
		p->fabric = fabric_of(r->options);
	}
	err = sim_batch_run(&batch, &sum);
	if (err)
		return error_set(err, "the points could not be run");
	leave_out(r);
	return 0;
}
