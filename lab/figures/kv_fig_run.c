/* SPDX-License-Identifier: Apache-2.0 */
/* Sets a point up, runs it for a span, counts. */
#include "kv_fig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kv_fig_priv.h"
#include "sim/model.h"
#include "sim/net.h"

enum {
	CAPACITY = 200000,
	FAILURE_MS = 100, /* as published */
	PPM = 1000000,
};

#define PAPER_RECORDS 90000000ull
#define LOAD_PS	      (1000ull * SIM_MS) /* until all clients are ready */
#define FILL_PS	      (60000ull * SIM_MS)
#define END_PS	      (200ull * SIM_MS) /* to come to an end */
#define END_DEATHS    10ull /* times the failure time, where some died */

static const struct kvf_ops *const stores[KV_FIG_STORES] = {
	[KV_FIG_TABLE] = &kvf_table_ops, [KV_FIG_FUSEE] = &kvf_fusee_ops,
	[KV_FIG_VLIST] = &kvf_vlist_ops, [KV_FIG_TREE] = &kvf_tree_ops,
	[KV_FIG_TREE8] = &kvf_tree8_ops,
};

const char *kv_fig_store_name(enum kv_fig_store store)
{
	return stores[store]->name;
}

/* ---- clients ------------------------------------------------------------ */

/* Popular ones are as popular as among the paper's records; those of the tail
 * share what there are here. */
static uint64_t next_record(struct kvf_client *c)
{
	const struct ycsb_keys *k = &c->f->keys;

	return ycsb_keys_scatter(k, ycsb_keys_rank(k, &c->rng)) % c->f->records;
}

static void step(struct kvf_client *c, const struct kvf_ops *ops)
{
	struct kvf *f = c->f;
	uint64_t start_ps = sim_now_ps(f->sim), ns;
	bool is_doomed = c->doom != 0;
	bool is_read = rng_chance_ppm(&c->rng, f->cfg.read_ppm) && !is_doomed;
	bool is_insert = !is_read && (f->cfg.inserts || is_doomed);
	uint64_t record =
		is_insert
			? f->records + c->inserted++ * f->cfg.clients + c->index
			: next_record(c);
	int err = is_read ? ops->read(c, record) : ops->change(c, record);

	ns = (sim_now_ps(f->sim) - start_ps) / SIM_NS;
	if (is_insert && !err)
		f->added++;
	/* What it does to die is no part of the load. */
	if (!f->is_measuring || is_doomed)
		return;
	if (err) {
		f->res->failed++;
		return;
	}
	f->ops++;
	if (is_read) {
		f->reads++;
		hist_record(&f->read_ns, ns);
	} else {
		f->changes++;
		hist_record(&f->change_ns, ns);
	}
}

static void client_main(void *arg)
{
	struct kvf_client *c = arg;
	const struct kvf_ops *ops = stores[c->f->cfg.store];
	int err = ops->open(c);

	if (err)
		c->f->err = err;
	c->f->loading--;
	while (!err && !c->f->is_stopping && !c->f->err)
		step(c, ops);
	ops->close(c);
	c->f->running--;
}

/* Somebody dies in its next change, so many times per second. */
static void killer(void *arg)
{
	struct kvf *f = arg;
	struct rng rng;

	rng_init_stream(&rng, f->cfg.seed, 999);
	while (!f->is_stopping) {
		struct kvf_client *c =
			&f->client[rng_below(&rng, f->cfg.clients)];

		sim_fiber_sleep_ps(f->sim, 1000ull * SIM_MS / f->cfg.failures);
		if (!f->is_stopping && !c->doom)
			c->doom = 1 + (unsigned)rng_below(&rng, 12);
	}
	f->running--;
}

/* ---- what is there at the start ----------------------------------------- */

int kvf_fence_nobody(void *ctx, const char *conn)
{
	return 0;
}

int kvf_all_are_alive(void *ctx, const char *conn)
{
	return 1;
}

struct filling {
	struct kvf *f;
	int (*load)(struct kvf_client *c);
	bool is_over;
	int err;
};

static void loader_main(void *arg)
{
	struct filling *l = arg;

	l->err = l->load(&l->f->loader);
	l->is_over = true;
}

int kvf_load(struct kvf *f, int (*load)(struct kvf_client *c))
{
	struct filling l = {.f = f, .load = load};
	int err;

	f->loader = (struct kvf_client){.f = f, .index = f->cfg.clients};
	err = rig_host_add(f->stage, "loader", &f->loader.host);
	if (!err)
		err = rig_host_spawn(f->loader.host, "loader", loader_main, &l);
	if (err)
		return err;
	while (!l.is_over && sim_now_ps(f->sim) < FILL_PS)
		(void)sim_run_until(f->sim, sim_now_ps(f->sim) + SIM_MS);
	return l.is_over ? l.err : -ETIMEDOUT;
}

/* ---- the world ---------------------------------------------------------- */

static int open_all(struct kvf *f)
{
	struct rig_stage_config cfg = {
		.seed = f->cfg.seed,
		.hardware = true,
		.fabric = f->cfg.fabric,
		.relax_max_ps = stores[f->cfg.store]->waits_at_home
					? model_connectx5.home_wait_ps
					: 0};
	int err = rig_stage_create(&cfg, &f->stage);
	uint32_t i;

	if (err)
		return err;
	f->sim = rig_stage_sim(f->stage);
	for (i = 0; i < f->nodes && !err; i++)
		err = rig_host_add(f->stage, "node", &f->node[i]);
	if (!err)
		err = stores[f->cfg.store]->prepare(f);
	for (i = 0; i < f->cfg.clients && !err; i++) {
		struct kvf_client *c = &f->client[i];

		c->f = f;
		c->index = i;
		rng_init_stream(&c->rng, f->cfg.seed, i);
		err = rig_host_add(f->stage, "client", &c->host);
		if (!err)
			err = rig_host_spawn(c->host, "client", client_main, c);
		f->running += !err;
		f->loading += !err;
	}
	if (!err && f->cfg.failures) {
		err = rig_host_spawn(f->node[0], "killer", killer, f);
		f->running += !err;
	}
	return err;
}

struct totals {
	uint64_t bytes, requests;
};

static struct totals totals_of(const struct kvf *f)
{
	struct totals t = {0};
	uint32_t i;

	for (i = 0; i < f->nodes; i++)
		t.bytes += sim_port_bytes(sim_host_port(f->node[i]->sim_host));
	for (i = 0; i < f->cfg.clients; i++)
		t.requests += f->client[i].host->meter.requests;
	return t;
}

static double percentile(const struct hist *h, uint32_t p)
{
	return (double)hist_percentile(h, p);
}

static void sum_up(struct kvf *f, const struct totals *a,
		   const struct totals *b, uint64_t span_ps)
{
	struct kv_fig_result *r = f->res;
	double ops = f->ops ? (double)f->ops : 1;

	r->ops = f->ops;
	r->reads = f->reads;
	r->changes = f->changes;
	r->mops = (double)f->ops / (double)span_ps * 1e6;
	r->read_p50_us = percentile(&f->read_ns, HIST_MEDIAN) / 1e3;
	r->read_p99_us = percentile(&f->read_ns, HIST_P99) / 1e3;
	r->change_p50_us = percentile(&f->change_ns, HIST_MEDIAN) / 1e3;
	r->change_p99_us = percentile(&f->change_ns, HIST_P99) / 1e3;
	r->bytes = (double)(b->bytes - a->bytes) / ops;
	r->messages = (double)(b->requests - a->requests) / ops;
	r->trips_p50 = percentile(&f->trips, HIST_MEDIAN);
	r->trips_p99 = percentile(&f->trips, HIST_P99);
	r->locks_p50 = percentile(&f->lock_tries, HIST_MEDIAN);
	r->locks_p99 = percentile(&f->lock_tries, HIST_P99);
	if (f->searches)
		r->second_share =
			1 - (double)f->searches_failed / (double)f->searches;
}

/* Until the time is over, or the table is as full as asked for. */
static void run_span(struct kvf *f)
{
	uint64_t end_ps = sim_now_ps(f->sim) + f->cfg.span_ps;
	uint64_t full = f->cfg.capacity * f->cfg.fill_to_ppm / PPM;

	if (!f->cfg.fill_to_ppm) {
		(void)sim_run_until(f->sim, end_ps);
		return;
	}
	end_ps = sim_now_ps(f->sim) + END_PS;
	while (f->records + f->added < full && sim_now_ps(f->sim) < end_ps &&
	       !f->err)
		(void)sim_run_until(f->sim, sim_now_ps(f->sim) + 10 * SIM_US);
}

static void measure(struct kvf *f)
{
	struct totals a, b;
	uint64_t begin_ps, end_ps, late_ps = sim_now_ps(f->sim) + LOAD_PS;

	while (f->loading && !f->err && sim_now_ps(f->sim) < late_ps)
		(void)sim_run_until(f->sim, sim_now_ps(f->sim) + 100 * SIM_US);
	(void)sim_run_until(f->sim, sim_now_ps(f->sim) + f->cfg.warm_ps);
	a = totals_of(f);
	f->is_measuring = true;
	begin_ps = sim_now_ps(f->sim);
	run_span(f);
	f->is_measuring = false;
	end_ps = sim_now_ps(f->sim);
	b = totals_of(f);
	sum_up(f, &a, &b, end_ps - begin_ps);
	f->is_stopping = true;
	(void)sim_run_until(f->sim, end_ps + END_PS +
					    (f->cfg.failures ? END_DEATHS : 0) *
						    f->cfg.failure_ms * SIM_MS);
}

static void set_defaults(struct kvf *f, const struct kv_fig_config *cfg)
{
	struct kv_fig_config *c = &f->cfg;

	*c = *cfg;
	c->capacity = c->capacity ? c->capacity : CAPACITY;
	c->fill_ppm = c->fill_ppm ? c->fill_ppm : 900000;
	c->entry_bytes = c->entry_bytes ? c->entry_bytes : 16;
	c->value_bytes = c->value_bytes ? c->value_bytes : 4;
	c->rows_per_lock = c->rows_per_lock ? c->rows_per_lock : 16;
	c->failure_ms = c->failure_ms ? c->failure_ms : FAILURE_MS;
	c->warm_ps = c->warm_ps ? c->warm_ps : 100 * SIM_US;
	c->span_ps = c->span_ps ? c->span_ps : 300 * SIM_US;
	f->records = u64_max(c->capacity * c->fill_ppm / PPM, 1);
	f->nodes = c->store == KV_FIG_TREE8 ? KV_FIG_NODES : 1;
	hist_init(&f->read_ns);
	hist_init(&f->change_ns);
	hist_init(&f->trips);
	hist_init(&f->lock_tries);
}

int kv_fig_run(const struct kv_fig_config *cfg, struct kv_fig_result *res)
{
	double theta = cfg->theta_milli ? cfg->theta_milli / 1e3 : YCSB_THETA;
	struct kvf *f = calloc(1, sizeof(*f));
	int err;

	memset(res, 0, sizeof(*res));
	if (!f)
		return -ENOMEM;
	if (!cfg->clients || cfg->clients > KV_FIG_CLIENTS_MAX ||
	    cfg->store >= KV_FIG_STORES) {
		free(f);
		return -EINVAL;
	}
	f->res = res;
	set_defaults(f, cfg);
	f->client = calloc(cfg->clients, sizeof(*f->client));
	err = f->client ? ycsb_keys_init(&f->keys,
					 cfg->uniform ? YCSB_UNIFORM
						      : YCSB_ZIPFIAN,
					 PAPER_RECORDS, theta)
			: -ENOMEM;
	if (!err)
		err = open_all(f);
	if (!err) {
		measure(f);
		err = f->err ? f->err : f->running ? -ETIMEDOUT : 0;
	}
	if (f->stage) {
		sim_fiber_kill_all(f->sim);
		stores[f->cfg.store]->release(f);
		rig_stage_destroy(f->stage);
	}
	free(f->client);
	free(f);
	return err;
}
