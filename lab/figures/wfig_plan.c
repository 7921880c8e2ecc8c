/* SPDX-License-Identifier: Apache-2.0 */
/* The points of PULSE's figures. */
#include "wfig_plan.h"

#include <stdio.h>

#include "wfig_costs.h"

enum {
	SIZE = 65536, /* nodes of a structure: 16 MiB */
	SAMPLE_SIZE = 262144,
	QUICK_SIZE = 8192,
	SAMPLE = 2000, /* requests */
	OPS = 300,
	QUICK_OPS = 30,
	WINDOW = 119, /* of tsv, unless all are shown */
	MB_OF_ALL = 32768,
};

static const uint32_t windows[] = {38, 65, 119, 227};

static const char *const place_names[] = {"partitioned", "granules", "random"};

/* ---- points ------------------------------------------------------------- */

/* A point on the network; its series is the application and `name`. */
static struct wfig_row *add(struct figure_run *r, enum wfig_app app,
			    enum wfig_system system, uint32_t nodes,
			    const char *name, double x)
{
	const struct wfig_figure_options *o =
		(const struct wfig_figure_options *)r->options;
	struct wfig_row *q = figure_add(r, wfig_app_name(app), "", x);

	snprintf(q->p.series, sizeof(q->p.series), "%s %s", wfig_app_name(app),
		 name);
	q->app = wfig_app_name(app);
	q->system = wfig_system_name(system);
	q->dist = app == WFIG_TSV ? "uniform" : "zipfian";
	q->nodes = nodes;
	q->is_run = true;
	q->cfg = (struct wfig_config){
		.data = {.app = app,
			 .place = app == WFIG_WEB ? WFIG_PARTITIONED
						  : WFIG_GRANULES,
			 .dist = app == WFIG_TSV ? YCSB_UNIFORM : YCSB_ZIPFIAN,
			 .nodes = nodes,
			 .size = r->options->quick ? QUICK_SIZE : SIZE,
			 .visits = WINDOW,
			 .seed = o->seed},
		.system = system,
		.ops = r->options->quick ? QUICK_OPS : OPS,
		.seed = o->seed,
	};
	q->place = place_names[q->cfg.data.place];
	return q;
}

/* A point of requests without a network. */
static struct wfig_row *add_sample(struct figure_run *r, enum wfig_app app,
				   uint32_t nodes, const char *name, double x)
{
	struct wfig_row *q = add(r, app, WFIG_WALK, nodes, name, x);

	q->is_run = false;
	q->system = NULL;
	q->cfg.ops = SAMPLE;
	if (!r->options->quick)
		q->cfg.data.size = SAMPLE_SIZE;
	return q;
}

int wfig_plan_motivation(struct figure_run *r)
{
	static const uint32_t ppm[] = {62500, 125000, 250000, 500000, 1000000};

	for (unsigned a = 0; a < WFIG_APPS; a++)
		for (unsigned i = 0; i < ARRAY_LEN(ppm); i++) {
			struct wfig_row *q =
				add(r, (enum wfig_app)a, WFIG_CACHE, 1, "cache",
				    ppm[i] / 1e4);

			q->cfg.cache_ppm = ppm[i];
		}
	return 0;
}

/* Allocations, as parts of the structure. */
int wfig_plan_crossings(struct figure_run *r)
{
	static const uint32_t parts[] = {32, 128, 512, 2048};

	for (unsigned a = 0; a < WFIG_APPS; a++)
		for (unsigned i = 0; i < ARRAY_LEN(parts); i++) {
			double mb = (double)MB_OF_ALL / parts[i];
			struct wfig_row *q = add_sample(r, (enum wfig_app)a, 4,
							"requests", mb);

			q->granule_mb = mb;
			q->cfg.data.granule = q->cfg.data.size / parts[i] * 256;
		}
	return 0;
}

int wfig_plan_apps(struct figure_run *r)
{
	for (unsigned a = 0; a < WFIG_APPS; a++)
		for (unsigned s = 0; s < WFIG_SYSTEMS; s++)
			for (uint32_t n = 1; n <= WFIG_NODES_MAX;
			     n += r->options->quick ? 3 : 1) {
				enum wfig_system system = (enum wfig_system)s;

				add(r, (enum wfig_app)a, system, n,
				    wfig_system_name(system), n)
					->cfg.has_rate = true;
			}
	return 0;
}

int wfig_plan_windows(struct figure_run *r)
{
	static const enum wfig_system systems[] = {WFIG_WALK, WFIG_RPC,
						   WFIG_CACHE};

	for (unsigned s = 0; s < ARRAY_LEN(systems); s++)
		for (unsigned i = 0; i < ARRAY_LEN(windows); i++) {
			struct wfig_row *q =
				add(r, WFIG_TSV, systems[s], 1,
				    wfig_system_name(systems[s]), windows[i]);

			q->cfg.data.visits = windows[i];
			q->cfg.has_rate = true;
		}
	return 0;
}

int wfig_plan_ratio(struct figure_run *r)
{
	for (unsigned a = 0; a < WFIG_APPS; a++)
		add_sample(r, (enum wfig_app)a, 1, "walk", a)->p.x_name =
			wfig_app_name((enum wfig_app)a);
	return 0;
}

/* Parts of an iteration on one node; the way between nodes on two. */
int wfig_plan_breakdown(struct figure_run *r)
{
	for (unsigned a = 0; a < WFIG_APPS; a++)
		for (uint32_t n = 1; n <= 2; n++) {
			add(r, (enum wfig_app)a, WFIG_WALK, n, "bounce", n)
				->cfg.has_rate = true;
			if (n == 2 && a != WFIG_WEB)
				add(r, (enum wfig_app)a, WFIG_SWITCH, n,
				    "switch", n)
					->cfg.has_rate = true;
		}
	return 0;
}

int wfig_plan_placement(struct figure_run *r)
{
	static const enum wfig_system systems[] = {WFIG_WALK, WFIG_SWITCH};
	static const enum wfig_place places[] = {WFIG_PARTITIONED,
						 WFIG_GRANULES, WFIG_RANDOM};

	for (unsigned a = WFIG_RANGE; a < WFIG_APPS; a++)
		for (unsigned s = 0; s < ARRAY_LEN(systems); s++)
			for (unsigned i = 0; i < ARRAY_LEN(places); i++) {
				struct wfig_row *q =
					add(r, (enum wfig_app)a, systems[s], 4,
					    wfig_system_name(systems[s]), i);

				q->cfg.data.place = places[i];
				q->place = q->p.x_name = place_names[places[i]];
			}
	return 0;
}

/* Chains that become longer, beside looking through one. */
int wfig_plan_insert(struct figure_run *r)
{
	static const struct {
		const char *name;
		enum wfig_change change;
	} kinds[] = {
		{"miss", WFIG_MISS},
		{"append", WFIG_APPEND},
		{"append, allocate", WFIG_ALLOCATE},
	};

	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
		struct wfig_row *q =
			add(r, WFIG_WEB, WFIG_WALK, 1, kinds[i].name, i);

		q->p.x_name = kinds[i].name;
		q->cfg.change = kinds[i].change;
	}
	return 0;
}

int wfig_plan_skew(struct figure_run *r)
{
	static const enum wfig_system systems[] = {WFIG_WALK, WFIG_RPC,
						   WFIG_CACHE};

	for (unsigned a = 0; a < WFIG_TSV; a++)
		for (unsigned s = 0; s < ARRAY_LEN(systems); s++)
			for (unsigned d = 0; d < 2; d++) {
				struct wfig_row *q =
					add(r, (enum wfig_app)a, systems[s], 1,
					    wfig_system_name(systems[s]), d);

				q->cfg.data.dist =
					d ? YCSB_ZIPFIAN : YCSB_UNIFORM;
				q->dist = q->p.x_name =
					d ? "zipfian" : "uniform";
			}
	return 0;
}

int wfig_plan_cxl(struct figure_run *r)
{
	for (unsigned a = 0; a < WFIG_APPS; a++)
		for (uint32_t n = 1; n <= 4; n += 3)
			(void)add_sample(r, (enum wfig_app)a, n, "CXL", n);
	return 0;
}

/* Logic pipelines beside four memory pipelines, which loads keep for all their
 * time, as in the proof, or overlap in, as measured. */
int wfig_plan_eta(struct figure_run *r)
{
	for (unsigned a = 0; a < WFIG_APPS; a++)
		for (unsigned serial = 0; serial < 2; serial++)
			for (uint32_t m = 1; m <= 4; m++) {
				struct wfig_row *q =
					add(r, (enum wfig_app)a, WFIG_WALK, 1,
					    serial ? "serial" : "overlapped",
					    m / 4.0);

				q->cfg.logic = m;
				q->cfg.memory = 4;
				q->cfg.is_serial = serial;
				q->cfg.has_rate = true;
			}
	return 0;
}

/* More memory pipelines with as many logic ones as the rule needs; and a walk
 * that the rule would not offload, beside READs by the client. */
int wfig_plan_pipes(struct figure_run *r)
{
	for (unsigned a = 0; a < WFIG_APPS; a++)
		for (uint32_t n = 4; n <= 16; n *= 2) {
			struct wfig_row *q = add(r, (enum wfig_app)a, WFIG_WALK,
						 1, "walk", n);

			q->cfg.memory = n;
			q->cfg.logic = n * 3 / 4;
			q->cfg.has_rate = true;
			q = add(r, (enum wfig_app)a, WFIG_WALK, 1,
				"walk, 4 ns a step", n);
			q->cfg.memory = n;
			q->cfg.logic = n * 3 / 4;
			q->cfg.step_ps = wfig_costs.cycle_ps;
			q->cfg.has_rate = true;
		}
	for (unsigned a = 0; a < WFIG_APPS; a++)
		add(r, (enum wfig_app)a, WFIG_READS, 1, "reads", 4)
			->cfg.has_rate = true;
	return 0;
}
