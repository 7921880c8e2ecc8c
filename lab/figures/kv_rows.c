/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of figures about key-value stores: how they are planned and run, and
 * what is shown of them. */
#include "kv_rows.h"

#include "sim/sim.h"

void kv_rows_line(struct figure_run *r, const char *panel, const char *series,
		  struct kv_fig_config *c, uint32_t *member, uint32_t scale,
		  const uint32_t *x, size_t count, size_t quick_step)
{
	bool quick = r->options->quick;

	for (size_t i = 0; i < count; i += quick ? quick_step : 1) {
		struct kv_row *row = figure_add(r, panel, series, x[i]);

		*member = x[i] * scale;
		row->cfg = *c;
		row->cfg.seed = ((const struct kv_rows_args *)r->options)->seed;
		if (!quick)
			continue;
		row->cfg.clients = u32_min(c->clients, 24);
		row->cfg.capacity =
			u64_min(c->capacity ? c->capacity : 20000, 20000);
		row->cfg.span_ps = c->failures ? 5 * SIM_MS : 50 * SIM_US;
		row->cfg.warm_ps = 0;
	}
}

#define C(member, name, decimals) \
	FIGURE_COLUMN(struct kv_row, member, name, decimals)

#define R(name, decimals) C(res.name, #name, decimals)
#define JSON		  FIGURE_JSON_ONLY

const struct figure_column kv_rows_columns[] = {
	C(p.panel, "panel", JSON),
	C(p.series, "series", 0),
	C(p.x, "x", 0),
	C(cfg.clients, "clients", 0),
	R(ops, JSON),
	R(mops, 2),
	R(read_p50_us, 2),
	R(read_p99_us, 2),
	R(change_p50_us, 2),
	R(change_p99_us, 2),
	C(res.bytes, "bytes_per_op", 0),
	C(res.messages, "messages_per_op", 2),
	R(trips_p50, 0),
	R(trips_p99, 0),
	C(res.locks_p50, "lock_trips_p50", 0),
	C(res.locks_p99, "lock_trips_p99", 0),
	R(second_share, 3),
	R(deaths, 0),
	R(failed, 0),
	C(p.err, "error", JSON),
	{.name = NULL},
};

int kv_rows_point(void *row)
{
	struct kv_row *x = row;

	x->cfg.fabric = x->p.fabric;
	return kv_fig_run(&x->cfg, &x->res);
}

const struct kv_rows_args kv_rows_defaults = {.f = {.jobs = 1}, .seed = 1};

const struct opt kv_rows_options[] = {
	OPT_U64(struct kv_rows_args, seed, "seed", "N", 0, UINT64_MAX,
		"of all chance (default 1)"),
	FIGURE_OPTION_FABRIC,
	OPT_END,
};
