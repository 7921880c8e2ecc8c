/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim paging`: runs the points, prints them beside the paper. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_out.h"
#include "paging_cmd.h"
#include "paging_costs.h"
#include "paging_figure.h"
#include "sim/batch.h"

static const char usage[] =
	"usage: aquifer sim paging [--figure 1|7|8|9|10|11|12|all] [--quick]\n"
	"                          [--seed N] [--jobs N] [--json]\n"
	"       aquifer sim paging --constants\n"
	"Far paging at the scale of the ODRP paper: up to eight clients with "
	"up "
	"to\n"
	"24 workers and one memory node, on the model of its hardware. Page "
	"stores,\n"
	"chains and the page server are the shipped code. Prints the figures, "
	"and\n"
	"the paper's numbers beside ours.\n"
	"  --figure     which; all of them without it\n"
	"  --quick      few and small points, which prove nothing\n"
	"  --seed N     of all randomness (default 1)\n"
	"  --jobs N     points at a time\n"
	"  --constants  what the node's processor costs, with sources\n"
	"Exit code 1 when a point could not be run or lost a page; a number "
	"that is\n"
	"not the paper's is no failure.\n";

enum {
	EXIT_RAN = 0,
	EXIT_BROKEN = 1,
	EXIT_USAGE = 2,
};

struct running {
	struct paging_figure *f;
	uint32_t done;
	bool shows; /* how far it is */
};

struct outcome {
	int err;
	struct paging_result res;
};

/* Points are numbered from 1, as seeds are. */
static int run(void *ctx, uint64_t number, void *result)
{
	struct running *r = ctx;
	struct outcome *o = result;

	o->err = paging_run(&r->f->point[number - 1].cfg, &o->res);
	return 0;
}

static const char *add(void *ctx, uint64_t number, const void *result)
{
	const struct outcome *o = result;
	struct running *r = ctx;
	struct paging_point *p = &r->f->point[number - 1];

	p->err = o->err;
	p->res = o->res;
	r->done++;
	if (r->shows)
		fprintf(stderr, "\r%u of %u points ", r->done, r->f->count);
	if (o->err)
		return "a point could not be run";
	return o->res.failed ? "a page was not what was stored" : NULL;
}

/* ---- text --------------------------------------------------------------- */

static void print_head(const struct paging_point *p)
{
	printf("\nfigure %s, by %s\n%-34s %5s", p->figure, p->along, "", "");
	if (p->cfg.program)
		printf(" %9s %8s %6s %6s %8s %6s %6s %6s\n", "time ms",
		       "Mreq/s", "cores", "used", "faults", "load%", "map%",
		       "new%");
	else
		printf(" %9s %8s %8s %6s\n", "Mop/s", "mean us", "p99 us",
		       "cores");
}

static void print_point(const struct paging_point *p)
{
	const struct paging_result *r = &p->res;
	double all = (double)u64_max(r->loads + r->mapped + r->unmapped, 1);

	printf("%-34s %5u", p->series, p->x);
	if (p->err)
		printf("  not run: %s\n", strerror(-p->err));
	else if (p->cfg.program)
		printf(" %9.2f %8.3f %6.2f %6.3f %8" PRIu64
		       " %6.1f %6.1f %6.1f\n",
		       r->elapsed_ms, r->mops, r->cores, r->utilisation,
		       r->faults, 100 * (double)r->loads / all,
		       100 * (double)r->mapped / all,
		       100 * (double)r->unmapped / all);
	else
		printf(" %9.3f %8.2f %8.2f %6.2f\n", r->mops, r->mean_us,
		       r->p99_us, r->cores);
	if (r->failed)
		printf("  %" PRIu64 " pages were wrong\n", r->failed);
}

static void print_claim(const struct paging_claim *c)
{
	printf("%-8s %-56s %8.3f %8.3f", c->figure, c->name, c->here,
	       c->published);
	if (c->sense)
		printf("  %s %.2f: %s", c->sense > 0 ? ">=" : "<=", c->bound,
		       paging_claim_holds(c) ? "yes" : "NO");
	printf("\n");
}

static void print_text(const struct paging_figure *f)
{
	const char *last = "";
	uint32_t i;

	for (i = 0; i < f->count; i++) {
		if (strcmp(last, f->point[i].figure))
			print_head(&f->point[i]);
		last = f->point[i].figure;
		print_point(&f->point[i]);
	}
	if (f->claims)
		printf("\n%-8s %-56s %8s %8s  %s\n", "figure", "", "here",
		       "paper", "asked");
	for (i = 0; i < f->claims; i++)
		print_claim(&f->claim[i]);
}

static int print_constants(void)
{
#define PRINT(name, value, unit, kind, source)       \
	printf("%-16s %12llu %-6s %-9s %s\n", #name, \
	       (unsigned long long)(value), unit, #kind, source);
	PAGING_COSTS(PRINT)
#undef PRINT
	return EXIT_RAN;
}

/* ---- JSON --------------------------------------------------------------- */

static void json_point(struct json_out *j, const struct paging_point *p)
{
	const struct paging_result *r = &p->res;

	json_out_object(j, NULL);
	json_out_string(j, "figure", p->figure);
	json_out_string(j, "series", p->series);
	json_out_string(j, "along", p->along);
	json_out_u64(j, "x", p->x);
	json_out_string(j, "mode", page_mode_name(p->cfg.mode));
	json_out_u64(j, "clients", p->cfg.clients);
	json_out_u64(j, "workers", p->cfg.workers);
	json_out_u64(j, "ops", r->ops);
	json_out_double(j, "mops", r->mops);
	json_out_double(j, "mean_us", r->mean_us);
	json_out_double(j, "p99_us", r->p99_us);
	json_out_double(j, "elapsed_ms", r->elapsed_ms);
	json_out_double(j, "cores", r->cores);
	json_out_double(j, "utilisation", r->utilisation);
	json_out_u64(j, "faults", r->faults);
	json_out_u64(j, "loads", r->loads);
	json_out_u64(j, "mapped_stores", r->mapped);
	json_out_u64(j, "unmapped_stores", r->unmapped);
	json_out_u64(j, "chain_steps", r->steps);
	json_out_u64(j, "failed", r->failed);
	json_out_i64(j, "error", p->err);
	json_out_close(j);
}

static void print_json(const struct paging_figure *f, bool quick)
{
	struct json_out j;
	uint32_t i;

	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "paging");
	json_out_bool(&j, "quick", quick);
	json_out_array(&j, "points");
	for (i = 0; i < f->count; i++)
		json_point(&j, &f->point[i]);
	json_out_close(&j);
	json_out_array(&j, "claims");
	for (i = 0; i < f->claims; i++) {
		const struct paging_claim *c = &f->claim[i];

		json_out_object(&j, NULL);
		json_out_string(&j, "figure", c->figure);
		json_out_string(&j, "name", c->name);
		json_out_double(&j, "here", c->here);
		json_out_double(&j, "published", c->published);
		if (c->sense) {
			json_out_string(&j, "asked",
					c->sense > 0 ? ">=" : "<=");
			json_out_double(&j, "bound", c->bound);
			json_out_bool(&j, "holds", paging_claim_holds(c));
		}
		json_out_close(&j);
	}
	json_out_close(&j);
	json_out_close(&j);
	(void)!json_out_end(&j);
}

/* ---- the command -------------------------------------------------------- */

struct arguments {
	const char *figure;
	uint64_t seed;
	unsigned jobs;
	bool quick;
	bool json;
	bool constants;
};

static int run_all(const struct arguments *a, struct paging_figure *f)
{
	struct running r = {.f = f, .shows = isatty(STDERR_FILENO) == 1};
	struct sim_batch batch = {.from = 1,
				  .to = f->count,
				  .jobs = a->jobs,
				  .ctx = &r,
				  .result_bytes = sizeof(struct outcome),
				  .run = run,
				  .add = add};
	struct sim_batch_sum sum = {0};
	int err = sim_batch_run(&batch, &sum);

	if (r.shows)
		fprintf(stderr, "\n");
	if (err)
		return EXIT_BROKEN;
	/* Small points say nothing about the paper's. */
	if (!a->quick)
		paging_figure_judge(f);
	if (a->json)
		print_json(f, a->quick);
	else
		print_text(f);
	return sum.violated ? EXIT_BROKEN : EXIT_RAN;
}

static int take_value(struct arguments *a, const char *name, const char *value)
{
	uint64_t n;

	if (!value)
		return -EINVAL;
	if (strcmp(name, "--figure") == 0) {
		a->figure = value;
		return 0;
	}
	if (!sim_batch_parse_u64(value, &n))
		return -EINVAL;
	if (strcmp(name, "--seed") == 0)
		a->seed = n;
	else if (strcmp(name, "--jobs") == 0 && n && n <= SIM_BATCH_JOBS_MAX)
		a->jobs = (unsigned)n;
	else
		return -EINVAL;
	return 0;
}

static int take_arguments(struct arguments *a, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i];

		if (strcmp(name, "--quick") == 0)
			a->quick = true;
		else if (strcmp(name, "--json") == 0)
			a->json = true;
		else if (strcmp(name, "--constants") == 0)
			a->constants = true;
		else if (take_value(a, name, argv[++i])) /* ends with NULL */
			return -EINVAL;
	}
	return 0;
}

int paging_figure_cmd(int argc, char **argv)
{
	struct arguments a = {
		.figure = "all", .seed = 1, .jobs = sim_batch_jobs()};
	struct paging_figure *f;
	int rc;

	if (argc > 1 &&
	    (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(usage, stdout);
		return EXIT_RAN;
	}
	if (take_arguments(&a, argc, argv)) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	if (a.constants)
		return print_constants();
	f = calloc(1, sizeof(*f));
	if (!f)
		return EXIT_BROKEN;
	if (paging_figure_plan(f, a.figure, a.quick, a.seed)) {
		fprintf(stderr,
			"sim paging: there is no figure %s; 1, 7 to 12, all\n",
			a.figure);
		free(f);
		return EXIT_USAGE;
	}
	rc = run_all(&a, f);
	free(f);
	return rc;
}
