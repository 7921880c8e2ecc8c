/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim switch --figure`: SwordBox's figures as tables and as JSON. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "sim/batch.h"
#include "vfig_figure.h"

struct arguments {
	const struct vfig_figure *figure; /* NULL: all of them */
	bool has_figure;
	unsigned jobs;
	bool quick;
	bool json;
	bool detail;
	struct vfig_choice choice;
};

static const char usage[] =
	"usage: aquifer sim switch --figure NAME|all [--quick] [--jobs N]\n"
	"                          [--system NAME] [--threads N] [--writes N]\n"
	"                          [--detail] [--json]\n"
	"A figure of SwordBox on the costs of hardware (aquifer sim "
	"nic-model),\n"
	"with the published numbers beside ours. --system, --threads and\n"
	"--writes choose points of it; --detail prints what clients and "
	"switch\n"
	"did per finished operation. NAME is one of\n";

static void print_usage(FILE *out)
{
	fputs(usage, out);
	for (const struct vfig_figure *f = vfig_figures; f->name; f++)
		fprintf(out, "  %-6s %s\n", f->name, f->what);
}

static bool parse_system(const char *text, enum vfig_system *out)
{
	for (unsigned i = 0; i < VFIG_SYSTEMS; i++)
		if (!strcmp(text, vfig_system_names[i])) {
			*out = (enum vfig_system)i;
			return true;
		}
	return false;
}

static int parse(struct arguments *a, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		uint64_t v;

		if (!strcmp(argv[i], "--json")) {
			a->json = true;
		} else if (!strcmp(argv[i], "--detail")) {
			a->detail = true;
		} else if (!strcmp(argv[i], "--system") && i + 1 < argc) {
			if (!parse_system(argv[++i], &a->choice.system))
				return -EINVAL;
		} else if (!strcmp(argv[i], "--threads") && i + 1 < argc &&
			   sim_batch_parse_u64(argv[i + 1], &v) && v &&
			   v <= VFIG_THREADS_MAX) {
			a->choice.threads = (uint32_t)v;
			i++;
		} else if (!strcmp(argv[i], "--writes") && i + 1 < argc &&
			   sim_batch_parse_u64(argv[i + 1], &v) && v <= 100) {
			a->choice.write_percent_1 = (uint32_t)v + 1;
			i++;
		} else if (!strcmp(argv[i], "--quick")) {
			a->quick = true;
		} else if (!strcmp(argv[i], "--figure") && i + 1 < argc) {
			a->figure = vfig_figure_find(argv[++i]);
			a->has_figure = true;
			if (!a->figure && strcmp(argv[i], "all"))
				return -EINVAL;
		} else if (!strcmp(argv[i], "--jobs") && i + 1 < argc &&
			   sim_batch_parse_u64(argv[i + 1], &v) && v &&
			   v <= SIM_BATCH_JOBS_MAX) {
			a->jobs = (unsigned)v;
			i++;
		} else {
			return -EINVAL;
		}
	}
	return a->has_figure ? 0 : -EINVAL;
}

static void print_count(const char *name, uint64_t n, uint64_t done)
{
	if (n && done)
		printf("    %-16s %10.4f\n", name, (double)n / (double)done);
}

/* Where the tail comes from. */
static void print_trips(const struct vfig_result *r)
{
	static const char *const kinds[] = {"reads", "writes"};
	static const char *const counts[VFIG_TRIPS] = {"1", "2", "more"};

	for (unsigned k = 0; k < ARRAY_LEN(kinds); k++)
		for (unsigned i = 0; i < VFIG_TRIPS; i++) {
			const struct vfig_trips *t = &r->trips[k][i];

			if (t->share > 0)
				printf("    %-6s of %-4s trips %6.2f %%, half "
				       "within %7.1f us, p99 %7.1f us\n",
				       kinds[k], counts[i], 100 * t->share,
				       t->p50_us, t->p99_us);
		}
}

/* What was done per finished operation. */
static void print_detail(const struct vfig_result *r)
{
#define ROW(name, help) print_count(#name, r->work.name, r->done);
	VLIST_STATS(ROW)
#undef ROW
	for (unsigned i = 0; i < VFIG_STEER_COUNTS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "switch %s", vfig_steer_names[i]);
		print_count(name, r->steer[i], r->done);
	}
	print_trips(r);
}

static void print_text(const struct vfig_grid *g, bool detail)
{
	printf("figure %s: %s\n%-12s %7s %6s %5s %8s %8s %8s %9s %9s\n",
	       g->figure->name, g->figure->what, "steering", "threads",
	       "writes", "keys", "Mops", "success", "B/op", "read p99",
	       "write p99");
	for (unsigned i = 0; i < g->count; i++) {
		const struct vfig_config *c = &g->config[i];
		const struct vfig_result *r = &g->point[i];
		char name[32];

		snprintf(name, sizeof(name), "%s%s",
			 vfig_system_names[c->system],
			 c->in_device ? "/nic" : "");
		printf("%-12s %7u %4u %% %5u %8.3f %6.1f %% %8.0f %7.1fus "
		       "%7.1fus\n",
		       name, c->threads, c->write_percent,
		       c->steer_keys ? c->steer_keys : VFIG_KEYS, r->mops,
		       100 * r->success, r->bytes, r->read_p99_us,
		       r->write_p99_us);
		if (detail)
			print_detail(r);
		if (r->errors)
			printf("  %llu operations failed\n",
			       (unsigned long long)r->errors);
	}
	printf("\n%-44s  %9s  %8s\n", "claim", "published", "ours");
	for (unsigned i = 0; i < g->claim_count; i++) {
		const struct vfig_claim *c = &g->claim[i];

		printf("%-44s  %s%7.1f  %8.1f %-4s  %s  %s\n", c->what,
		       c->at_most ? "<=" : "  ", c->published, c->ours, c->unit,
		       vfig_claim_holds(c) ? "holds" : "short", c->note);
	}
}

static void json_point(struct json_out *j, const struct vfig_config *c,
		       const struct vfig_result *r)
{
	json_out_object(j, NULL);
	json_out_string(j, "steering", vfig_system_names[c->system]);
	json_out_bool(j, "in_device", c->in_device);
	json_out_u64(j, "threads", c->threads);
	json_out_u64(j, "write_percent", c->write_percent);
	json_out_u64(j, "keys_steered",
		     c->steer_keys ? c->steer_keys : VFIG_KEYS);
	json_out_double(j, "theta", c->theta_milli / 1000.0);
	json_out_double(j, "mops", r->mops);
	json_out_double(j, "success_share", r->success);
	json_out_double(j, "bytes_per_op", r->bytes);
	json_out_double(j, "read_p50_us", r->read_p50_us);
	json_out_double(j, "read_p99_us", r->read_p99_us);
	json_out_double(j, "write_p50_us", r->write_p50_us);
	json_out_double(j, "write_p99_us", r->write_p99_us);
	json_out_u64(j, "reads", r->reads);
	json_out_u64(j, "writes", r->writes);
	json_out_u64(j, "evictions", r->evictions);
	json_out_u64(j, "errors", r->errors);
	json_out_object(j, "per_op");
#define ROW(name, help)           \
	json_out_double(j, #name, \
			r->done ? (double)r->work.name / (double)r->done : 0);
	VLIST_STATS(ROW)
#undef ROW
	json_out_close(j);
	json_out_object(j, "switch_per_op");
	for (unsigned i = 0; i < VFIG_STEER_COUNTS; i++)
		json_out_double(j, vfig_steer_names[i],
				r->done ? (double)r->steer[i] / (double)r->done
					: 0);
	json_out_close(j);
	json_out_close(j);
}

static int print_json(const struct vfig_grid *g)
{
	struct json_out j;

	/* One object per figure and line. */
	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "switch");
	json_out_string(&j, "figure", g->figure->name);
	json_out_string(&j, "what", g->figure->what);
	json_out_array(&j, "points");
	for (unsigned i = 0; i < g->count; i++)
		json_point(&j, &g->config[i], &g->point[i]);
	json_out_close(&j);
	json_out_array(&j, "claims");
	for (unsigned i = 0; i < g->claim_count; i++) {
		const struct vfig_claim *c = &g->claim[i];

		json_out_object(&j, NULL);
		json_out_string(&j, "what", c->what);
		if (!isnan(c->published))
			json_out_double(&j, "published", c->published);
		json_out_double(&j, "ours", c->ours);
		json_out_string(&j, "unit", c->unit);
		json_out_bool(&j, "holds", vfig_claim_holds(c));
		json_out_close(&j);
	}
	json_out_close(&j);
	json_out_close(&j);
	return json_out_end(&j);
}

static int run_one(const struct vfig_figure *figure, const struct arguments *a)
{
	struct vfig_grid *grid = calloc(1, sizeof(*grid));
	int err = grid ? vfig_figure_run(figure, &a->choice, a->jobs, a->quick,
					 grid)
		       : -ENOMEM;

	if (!err && a->json)
		err = print_json(grid);
	else if (!err)
		print_text(grid, a->detail);
	free(grid);
	return err;
}

int vfig_cmd(int argc, char **argv)
{
	struct arguments a = {.jobs = sim_batch_jobs(),
			      .choice = {.system = VFIG_SYSTEMS}};
	int err = 0;

	if (parse(&a, argc, argv)) {
		print_usage(stderr);
		return 2;
	}
	if (a.figure)
		err = run_one(a.figure, &a);
	for (const struct vfig_figure *f = vfig_figures;
	     !err && !a.figure && f->name; f++) {
		err = run_one(f, &a);
		/* It has none of the points that were asked for. */
		err = err == -ENOENT ? 0 : err;
	}
	if (err)
		fprintf(stderr, "sim switch: %s\n", strerror(-err));
	return err ? 1 : 0;
}
