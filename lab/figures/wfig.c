/* SPDX-License-Identifier: Apache-2.0 */
/* A point: its data, a run for latency, a run for the rate, and what they say.
 */
#include "wfig.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nic.h"
#include "sim/model.h"
#include "walk/rule.h"
#include "wfig_costs.h"
#include "wfig_priv.h"

enum {
	SAMPLE = 400,
	/* The rate is taken over so many unloaded latencies and requests of
	 * each thread, at least. */
	SPAN = 12,
	ROUNDS = 3,
	SPAN_MAX = 1000,
};

const struct wfig_costs wfig_costs = {WFIG_COSTS(MODEL_VALUE)};

static const char *const system_names[] = {
	"walk", "walk, switch", "rpc", "rpc-arm", "reads", "cache",
};

const char *wfig_system_name(enum wfig_system system)
{
	return system_names[system];
}

/* ---- without time ------------------------------------------------------- */

/* What a point does not have has no value. */
void wfig_result_clear(struct wfig_result *res)
{
	*res = (struct wfig_result){
		.mean_us = NAN,
		.p99_us = NAN,
		.traverse_us = NAN,
		.share = NAN,
		.kops = NAN,
		.trips = NAN,
		.memory_share = NAN,
		.network_share = NAN,
		.logic_use = NAN,
		.memory_use = NAN,
		.memory_ns = NAN,
		.logic_ns = NAN,
		.wait_ns = NAN,
	};
}

static void take_ratio(struct wfig_result *res)
{
	const double load = (double)wfig_costs.load_ps;
	const double step = (double)wfig_costs.step_ps;
	const double longest = (double)res->longest;

	res->ratio = res->cost * step / load;
	res->ratio_longest = longest * step / load;
	res->ratio_cycle = longest * (double)wfig_costs.cycle_ps / load;
	res->offloads = walk_rule_offloads(longest * step, load);
}

/* A formula, as the paper's; nothing is cached. */
static void take_cxl(struct wfig_result *res)
{
	const double local = (double)wfig_costs.cxl_local_ps;
	const double far = (double)wfig_costs.cxl_far_ps;
	const double node = (double)wfig_costs.cxl_node_ps;
	const double hops = res->crossings * (double)wfig_costs.cxl_hop_ps;
	const double all = res->visits * local;

	res->cxl_slowdown = (res->visits * far + hops) / all;
	res->cxl_walk_slowdown =
		(far + res->visits * (local + node) + hops / 2) / all;
}

void wfig_sample(const struct wfig_data *d, uint32_t ops, uint64_t seed,
		 struct wfig_result *res)
{
	struct wfig_visit all = {0};
	struct wfig_ask ask;
	uint64_t crossed = 0;
	struct rng r;

	sim_rand_init(&r, seed, 55);
	for (uint32_t i = 0; i < ops; i++) {
		struct wfig_visit v = {0};

		wfig_data_ask(d, &r, &ask);
		wfig_data_walk(d, &ask, &v);
		all.visits += v.visits;
		all.crossings += v.crossings;
		all.cost += v.cost;
		crossed += v.crossings > 0;
		res->wrong += !v.right;
	}
	res->visits = (double)all.visits / ops;
	res->crossings = (double)all.crossings / ops;
	res->crossed = (double)crossed / ops;
	res->pointers = (double)all.crossings / (double)(all.visits - ops);
	res->cost = (double)all.cost / (double)all.visits;
	res->longest = d->program->facts.longest;
	take_ratio(res);
	take_cxl(res);
}

uint64_t wfig_work_ps(enum wfig_app app, double visits, double cost)
{
	const uint64_t permille[] = {
		[WFIG_WEB] = wfig_costs.web_permille,
		[WFIG_RANGE] = wfig_costs.range_permille,
		[WFIG_TSV] = wfig_costs.tsv_permille,
	};
	double local_ps = visits * ((double)wfig_costs.dram_ps +
				    cost * (double)wfig_costs.cpu_step_ps);

	return (uint64_t)(local_ps * (double)(1000 - permille[app]) /
			  (double)permille[app]);
}

/* ---- runs --------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sums over the nodes' pipelines. */
static void add_pipes(const struct wfig_phase *p, struct wfig_pipes_sums *sum)
{
	*sum = (struct wfig_pipes_sums){0};
	for (uint32_t i = 0; i < WFIG_NODES_MAX && p->pipes[i]; i++) {
		const struct wfig_pipes_sums *s = wfig_pipes_sums(p->pipes[i]);

		sum->iterations += s->iterations;
		sum->memory_ps += s->memory_ps;
		sum->logic_ps += s->logic_ps;
		sum->wait_ps += s->wait_ps;
		sum->memory_busy_ps += s->memory_busy_ps;
		sum->logic_busy_ps += s->logic_busy_ps;
		sum->bus_busy_ps += s->bus_busy_ps;
	}
}

static void take_latency(const struct wfig_phase *p, struct wfig_result *res)
{
	struct wfig_pipes_sums s;
	double n = (double)p->ops;

	add_pipes(p, &s);
	qsort(p->latency_ps, p->ops, sizeof(*p->latency_ps), compare);
	res->mean_us = (double)p->total_ps / n / (double)SIM_US;
	res->p99_us = (double)p->latency_ps[p->ops - 1 - p->ops / 100] /
		      (double)SIM_US;
	res->traverse_us = (double)p->traverse_ps / n / (double)SIM_US;
	res->share = (double)p->traverse_ps / (double)p->total_ps;
	res->trips = (double)p->trips / n;
	if (s.iterations) {
		double each = (double)s.iterations * (double)SIM_NS;

		res->memory_ns = (double)s.memory_ps / each;
		res->logic_ns = (double)s.logic_ps / each;
		res->wait_ns = (double)s.wait_ps / each;
	}
}

/* Nodes that were added and are in no chain. */
static uint64_t count_lost(const struct wfig_phase *p)
{
	const struct wfig_data *d = p->data;
	uint64_t found = 0;

	for (uint64_t k = 0; p->added && k < d->count; k += WFIG_WEB_CHAIN) {
		uint64_t at = wfig_data_chain(d, k);
		struct wfig_chain_node n;

		for (; at; at = n.next) {
			memcpy(&n, p->region[0]->mem + at, sizeof(n));
			found += at >= d->spare;
		}
	}
	return p->added - found;
}

/* One thread, with the application's work. */
static int run_latency(const struct wfig_config *cfg, const struct wfig_data *d,
		       uint64_t work_ps, struct wfig_result *res)
{
	struct wfig_phase *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	*p = (struct wfig_phase){.cfg = cfg,
				 .data = d,
				 .threads = 1,
				 .work_ps = work_ps,
				 .ops_max = cfg->ops};
	p->latency_ps = calloc(cfg->ops, sizeof(*p->latency_ps));
	err = p->latency_ps ? wfig_phase_open(p) : -ENOMEM;
	if (!err)
		err = wfig_phase_spawn(p);
	if (!err && sim_run_until(p->sim, SIM_S) != SIM_END_STOPPED)
		err = -EIO;
	if (!err)
		take_latency(p, res);
	if (!err)
		res->wrong += count_lost(p);
	res->wrong += p->wrong;
	wfig_phase_close(p);
	free(p->latency_ps);
	free(p);
	return err;
}

static void take_rate(const struct wfig_phase *p, uint64_t span_ps,
		      uint64_t bytes, struct wfig_result *res)
{
	const struct wfig_config *c = p->cfg;
	double nodes = p->data->cfg.nodes, span = (double)span_ps;
	struct wfig_pipes_sums s;

	add_pipes(p, &s);
	res->kops = (double)p->ops / (span / (double)SIM_MS);
	res->network_share =
		(double)bytes * (double)model_connectx5.link_ps_per_byte / span;
	if (wfig_has_walker(c->system))
		res->memory_share = (double)s.bus_busy_ps / span / nodes;
	if (!wfig_is_accelerator(c->system))
		return;
	res->memory_use = (double)s.memory_busy_ps / span / nodes /
			  wfig_or_else(c->memory, wfig_costs.memory_pipes);
	res->logic_use = (double)s.logic_busy_ps / span / nodes /
			 wfig_or_else(c->logic, wfig_costs.logic_pipes);
}

/* What the client has received. */
static uint64_t client_bytes(const struct wfig_phase *p)
{
	return sim_host_counter(p->host->sim_host, NIC_C_rx_bytes);
}

/* Until there were enough requests; the time that it took. */
static uint64_t run_on(struct wfig_phase *p, uint32_t rounds, uint32_t span,
		       uint64_t unit_ps)
{
	uint64_t from_ps = sim_now_ps(p->sim);

	p->ops = 0;
	for (uint32_t i = 0;
	     i < span || (p->ops < rounds * p->threads && i < SPAN_MAX); i++)
		(void)sim_run_until(p->sim, sim_now_ps(p->sim) + unit_ps);
	return sim_now_ps(p->sim) - from_ps;
}

/* All threads, without it. */
static int run_rate(const struct wfig_config *cfg, const struct wfig_data *d,
		    struct wfig_result *res)
{
	struct wfig_phase *p = calloc(1, sizeof(*p));
	uint64_t unit_ps = (uint64_t)(res->traverse_us * (double)SIM_US);
	uint64_t bytes, took_ps;
	int err;

	if (!p)
		return -ENOMEM;
	*p = (struct wfig_phase){
		.cfg = cfg,
		.data = d,
		.threads = (uint32_t)wfig_costs.client_threads * d->cfg.nodes};
	err = wfig_phase_open(p);
	if (!err)
		err = wfig_phase_spawn(p);
	if (!err) {
		(void)run_on(p, 1, 2, unit_ps); /* until all are under way */
		for (uint32_t i = 0; i < WFIG_NODES_MAX && p->pipes[i]; i++)
			wfig_pipes_reset(p->pipes[i]);
		bytes = client_bytes(p);
		took_ps = run_on(p, ROUNDS, SPAN, unit_ps);
		take_rate(p, took_ps, client_bytes(p) - bytes, res);
	}
	res->wrong += p->wrong;
	wfig_phase_close(p);
	free(p);
	return err;
}

int wfig_run(const struct wfig_config *cfg, struct wfig_result *res)
{
	struct wfig_data *d;
	int err = wfig_data_create(&cfg->data, &d);

	if (err)
		return err;
	wfig_result_clear(res);
	wfig_sample(d, SAMPLE, cfg->seed, res);
	err = run_latency(cfg, d,
			  wfig_work_ps(cfg->data.app, res->visits, res->cost),
			  res);
	if (!err && cfg->has_rate)
		err = run_rate(cfg, d, res);
	wfig_data_destroy(d);
	return err;
}
