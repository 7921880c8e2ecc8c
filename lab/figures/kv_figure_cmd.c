/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim kv --figure`: runs the points, prints them and the claims. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_out.h"
#include "kv_figure.h"
#include "sim/batch.h"

enum {
	EXIT_RAN = 0,
	EXIT_BROKEN = 1,
	EXIT_USAGE = 2,
};

struct running {
	struct kv_figure *k;
	uint32_t done;
	bool shows; /* how far it is */
};

struct outcome {
	int err;
	struct kv_fig_result res;
};

/* Points are numbered from 1, as seeds are. */
static int run(void *ctx, uint64_t number, void *result)
{
	struct running *r = ctx;
	struct outcome *o = result;

	o->err = kv_fig_run(&r->k->point[number - 1].cfg, &o->res);
	return 0;
}

static const char *add(void *ctx, uint64_t number, const void *result)
{
	const struct outcome *o = result;
	struct running *r = ctx;
	struct kv_figure_point *p = &r->k->point[number - 1];

	p->err = o->err;
	p->res = o->res;
	r->done++;
	if (r->shows)
		fprintf(stderr, "\r%u of %u points ", r->done, r->k->count);
	return o->err ? "a point could not be run" : NULL;
}

/* ---- text --------------------------------------------------------------- */

static void print_point(const struct kv_figure_point *p)
{
	const struct kv_fig_result *r = &p->res;

	printf("%-26s %7" PRIu64 " %8.2f %8.2f %8.2f %8.2f %8.2f %7.0f %6.2f "
	       "%4.0f %5.0f %4.0f %5.0f",
	       p->series, p->x, r->mops, r->read_p50_us, r->read_p99_us,
	       r->change_p50_us, r->change_p99_us, r->bytes, r->messages,
	       r->trips_p50, r->trips_p99, r->locks_p50, r->locks_p99);
	if (r->second_share > 0)
		printf(" %6.3f", r->second_share);
	if (r->deaths)
		printf("  %" PRIu64 " died", r->deaths);
	if (r->failed)
		printf("  %" PRIu64 " failed", r->failed);
	printf(p->err ? "  ERROR %s\n" : "%s\n",
	       p->err ? strerror(-p->err) : "");
}

static void print_text(const struct kv_figure *k)
{
	const char *last = "";
	uint32_t i;

	for (i = 0; i < k->count; i++) {
		const struct kv_figure_point *p = &k->point[i];

		if (strcmp(last, p->figure)) {
			printf("\nfigure %s, by %s\n", p->figure, p->along);
			printf("%-26s %7s %8s %8s %8s %8s %8s %7s %6s %4s %5s "
			       "%4s %5s %6s\n",
			       "", "", "Mops", "read50", "read99", "chg50",
			       "chg99 us", "B/op", "msg/op", "rt50", "rt99",
			       "lk50", "lk99", "second");
		}
		last = p->figure;
		print_point(p);
	}
	if (k->claims)
		printf("\n%-30s %-5s %9s  %s\n", "claim", "fig", "here",
		       "published");
	for (i = 0; i < k->claims; i++)
		printf("%-30s %-5s %9.3f  %s: %s\n", k->claim[i].name,
		       k->claim[i].figure, k->claim[i].value,
		       k->claim[i].published,
		       kv_figure_holds(&k->claim[i]) ? "holds here"
						     : "NOT here");
}

/* ---- JSON --------------------------------------------------------------- */

static void json_point(struct json_out *j, const struct kv_figure_point *p)
{
	const struct kv_fig_result *r = &p->res;

	json_out_object(j, NULL);
	json_out_string(j, "figure", p->figure);
	json_out_string(j, "series", p->series);
	json_out_string(j, "along", p->along);
	json_out_u64(j, "x", p->x);
	json_out_u64(j, "clients", p->cfg.clients);
	json_out_u64(j, "ops", r->ops);
	json_out_double(j, "mops", r->mops);
	json_out_double(j, "read_p50_us", r->read_p50_us);
	json_out_double(j, "read_p99_us", r->read_p99_us);
	json_out_double(j, "change_p50_us", r->change_p50_us);
	json_out_double(j, "change_p99_us", r->change_p99_us);
	json_out_double(j, "bytes_per_op", r->bytes);
	json_out_double(j, "messages_per_op", r->messages);
	json_out_double(j, "trips_p50", r->trips_p50);
	json_out_double(j, "trips_p99", r->trips_p99);
	json_out_double(j, "lock_trips_p50", r->locks_p50);
	json_out_double(j, "lock_trips_p99", r->locks_p99);
	json_out_double(j, "second_share", r->second_share);
	json_out_u64(j, "deaths", r->deaths);
	json_out_u64(j, "failed", r->failed);
	json_out_i64(j, "error", p->err);
	json_out_close(j);
}

static void print_json(const struct kv_figure *k, bool quick)
{
	struct json_out j;
	uint32_t i;

	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "kv-figures");
	json_out_bool(&j, "quick", quick);
	json_out_array(&j, "points");
	for (i = 0; i < k->count; i++)
		json_point(&j, &k->point[i]);
	json_out_close(&j);
	json_out_array(&j, "claims");
	for (i = 0; i < k->claims; i++) {
		json_out_object(&j, NULL);
		json_out_string(&j, "name", k->claim[i].name);
		json_out_string(&j, "figure", k->claim[i].figure);
		json_out_string(&j, "published", k->claim[i].published);
		json_out_double(&j, "value", k->claim[i].value);
		json_out_bool(&j, "holds", kv_figure_holds(&k->claim[i]));
		json_out_close(&j);
	}
	json_out_close(&j);
	json_out_close(&j);
	(void)!json_out_end(&j);
}

int kv_figure_cmd(const char *which, bool quick, bool json, unsigned jobs)
{
	struct running r = {.shows = isatty(STDERR_FILENO) == 1};
	struct sim_batch batch = {.from = 1,
				  .jobs = jobs,
				  .ctx = &r,
				  .result_bytes = sizeof(struct outcome),
				  .run = run,
				  .add = add};
	struct sim_batch_sum sum = {0};
	int rc;

	r.k = calloc(1, sizeof(*r.k));
	if (!r.k)
		return EXIT_BROKEN;
	if (kv_figure_plan(r.k, which, quick)) {
		fprintf(stderr,
			"sim kv: there is no figure %s; 3.7, 3.9 to 3.20, "
			"all\n",
			which);
		free(r.k);
		return EXIT_USAGE;
	}
	batch.to = r.k->count;
	rc = sim_batch_run(&batch, &sum);
	if (r.shows)
		fprintf(stderr, "\n");
	if (!rc) {
		/* Small points say nothing about the paper's. */
		if (!quick)
			kv_figure_judge(r.k);
		if (json)
			print_json(r.k, quick);
		else
			print_text(r.k);
	}
	free(r.k);
	return rc || sum.violated ? EXIT_BROKEN : EXIT_RAN;
}
