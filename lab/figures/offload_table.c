/* SPDX-License-Identifier: Apache-2.0 */
/* Figures as tables and as JSON; the constants behind them. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json_out.h"
#include "offload_costs.h"
#include "offload_figure.h"

static void print_cell(const struct figure *f, const struct fig_result *r)
{
	if (f->kind == FIGURE_LATENCY)
		printf("  %6.2f / %6.2f", r->p50_us, r->p99_us);
	else if (f->kind == FIGURE_TCP)
		printf("  %15.2f", r->tcp_gbps);
	else
		printf("  %8.2f", r->mops);
}

static bool holds(const struct figure_claim *c)
{
	return c->at_most ? c->ours <= c->paper : c->ours >= c->paper;
}

static void print_claims(const struct figure_grid *g)
{
	printf("\n%-46s  %8s  %8s\n", "claim", "paper", "ours");
	for (unsigned i = 0; i < g->claim_count; i++) {
		const struct figure_claim *c = &g->claim[i];

		printf("%-46s  %s%6.1f  %8.1f %-2s  %-5s  %s\n", c->what,
		       c->at_most ? "<=" : ">=", c->paper, c->ours, c->unit,
		       holds(c) ? "holds" : "short", c->note);
	}
}

void offload_figure_print(const struct figure_grid *g)
{
	const struct figure *f = g->figure;
	int width = f->kind == FIGURE_MOPS ? 8 : 15;

	printf("figure %s: %s\n%6s %8s", f->name, f->what, "bytes", "threads");
	for (unsigned c = 0; c < g->columns; c++)
		printf("  %*s", width, f->column[c].name);
	if (f->kind == FIGURE_MOPS)
		printf("  engine-1");
	puts("");
	for (unsigned s = 0; s < g->sizes; s++) {
		for (unsigned t = 0; t < g->threads; t++) {
			double busy = 0;

			printf("%6u %8u", f->bytes[s], f->threads[t]);
			for (unsigned c = 0; c < g->columns; c++) {
				const struct fig_result *r =
					figure_point(g, s, t, c);

				print_cell(f, r);
				if (f->column[c].engines == 1)
					busy = r->engine_busy;
			}
			if (f->kind == FIGURE_MOPS)
				printf("  %6.0f %%", 100 * busy);
			puts("");
		}
	}
	print_claims(g);
}

static void json_point(struct json_out *j, const struct figure_grid *g,
		       unsigned s, unsigned t, unsigned c)
{
	const struct fig_result *r = figure_point(g, s, t, c);

	json_out_object(j, NULL);
	json_out_u64(j, "bytes", g->figure->bytes[s]);
	json_out_u64(j, "threads", g->figure->threads[t]);
	json_out_string(j, "way", g->figure->column[c].name);
	json_out_string(j, "device",
			fig_device_name(g->figure->column[c].device));
	json_out_u64(j, "engine_cores", g->figure->column[c].engines);
	json_out_double(j, "mops", r->mops);
	json_out_double(j, "communication_share", r->comm);
	json_out_double(j, "p50_us", r->p50_us);
	json_out_double(j, "p99_us", r->p99_us);
	json_out_double(j, "engine_busy", r->engine_busy);
	json_out_double(j, "wire_bytes_per_request", r->wire_bytes);
	if (g->figure->kind == FIGURE_TCP)
		json_out_double(j, "tcp_gbps", r->tcp_gbps);
	json_out_u64(j, "requests", r->requests);
	json_out_close(j);
}

int offload_figure_json(const struct figure_grid *g)
{
	struct json_out j;

	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "offload");
	json_out_string(&j, "figure", g->figure->name);
	json_out_string(&j, "what", g->figure->what);
	json_out_array(&j, "points");
	for (unsigned s = 0; s < g->sizes; s++)
		for (unsigned t = 0; t < g->threads; t++)
			for (unsigned c = 0; c < g->columns; c++)
				json_point(&j, g, s, t, c);
	json_out_close(&j);
	json_out_array(&j, "claims");
	for (unsigned i = 0; i < g->claim_count; i++) {
		const struct figure_claim *c = &g->claim[i];

		json_out_object(&j, NULL);
		json_out_string(&j, "what", c->what);
		json_out_double(&j, "paper", c->paper);
		json_out_double(&j, "ours", c->ours);
		json_out_string(&j, "unit", c->unit);
		json_out_string(&j, "sense",
				c->at_most ? "at most" : "at least");
		json_out_bool(&j, "holds", holds(c));
		json_out_string(&j, "note", c->note);
		json_out_close(&j);
	}
	json_out_close(&j);
	json_out_close(&j);
	return json_out_end(&j);
}

void offload_costs_print(void)
{
#define PRINT(name, value, unit, kind, source)                                 \
	printf("%-22s %8" PRIu64 " %-5s %-9s %s\n", #name, offload_costs.name, \
	       unit, #kind, source);
	OFFLOAD_COSTS(PRINT)
#undef PRINT
}
