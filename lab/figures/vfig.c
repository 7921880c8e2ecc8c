/* SPDX-License-Identifier: Apache-2.0 */
/* A point: its machines, its threads, what they measure. */
#include "vfig.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fiber.h"
#include "vfig_priv.h"

enum {
	NODES_PER_THREAD = 256,
	CHUNK_NODES = 64,
	DEADLINE_MS = 10000,
};

const char *const vfig_system_names[VFIG_SYSTEMS] = {
	[VFIG_PLAIN] = "plain",	    [VFIG_WRITES] = "writes",
	[VFIG_FULL] = "full",	    [VFIG_FUSEE] = "fusee-like",
	[VFIG_CAS] = "cas",	    [VFIG_CAS_REPLACED] = "replaced",
	[VFIG_CAS_MOVED] = "moved",
};

const char *const vfig_steer_names[VFIG_STEER_COUNTS] = {
#define NAME(name) #name,
	VFIG_STEER(NAME)
#undef NAME
};

static bool has_store(const struct vfig *f)
{
	return f->cfg->system != VFIG_FUSEE;
}

/* ---- keys ---------------------------------------------------------------- */

static void make_keys(struct vfig *f)
{
	double sum = 0, theta = f->cfg->theta_milli / 1000.0;

	for (unsigned i = 0; i < VFIG_KEYS; i++)
		f->cumulative[i] = sum += pow(i + 1, -theta);
	for (unsigned i = 0; i < VFIG_KEYS; i++)
		f->cumulative[i] /= sum;
}

uint64_t vfig_key(const struct vfig *f, struct rng *r)
{
	double u = rng_double(r);
	unsigned low = 0, high = VFIG_KEYS - 1;

	while (low < high) {
		unsigned mid = (low + high) / 2;

		if (f->cumulative[mid] < u)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* ---- threads ------------------------------------------------------------- */

static int nothing(void *ctx, const char *conn)
{
	return 0;
}

static int is_alive(void *ctx, const char *conn)
{
	return 1;
}

static int open_store(struct vfig_thread *t)
{
	struct vfig *f = t->f;
	struct vlist_config cfg = {.deadline_ms = DEADLINE_MS,
				   .cache_keys = 4 * VFIG_KEYS,
				   .no_steer = f->cfg->system != VFIG_FULL,
				   .shortcut = !f->cfg->private_places,
				   .places = f->places[t->index % VFIG_HOSTS]};
	struct kit_remote remote = {.link = t->link,
				    .addr = f->region->addr,
				    .size_bytes = f->region->size_bytes,
				    .rkey = f->region->rkey,
				    .fence = nothing,
				    .is_alive = is_alive,
				    .ctx = t};

	snprintf(remote.conn, sizeof(remote.conn), "%u", t->index);
	return vlist_client_create(&remote, &f->g, &cfg, &t->store);
}

static int get(struct vfig_thread *t, uint64_t key)
{
	uint8_t buf[VFIG_VALUE];
	size_t len;

	return has_store(t->f)
		       ? vlist_get(t->store, key, buf, sizeof(buf), &len)
		       : vfig_fusee_get(t, key);
}

static int put(struct vfig_thread *t, uint64_t key)
{
	uint8_t buf[VFIG_VALUE];

	memset(buf, (int)key, sizeof(buf));
	return has_store(t->f) ? vlist_put(t->store, key, buf, sizeof(buf))
			       : vfig_fusee_put(t, key);
}

/* READs of versions and compare-and-swaps, the ones in vain included. */
static uint64_t attempts(const struct vfig_thread *t)
{
	const struct vlist_stats *s;

	if (!t->store)
		return t->attempts;
	s = vlist_client_stats(t->store);
	return s->gets + s->appends + s->chases + s->unvouched;
}

static uint64_t now_ns(const struct vfig *f)
{
	return sim_now_ns(rig_stage_sim(f->stage));
}

static uint64_t trips(const struct vfig_thread *t)
{
	return t->store ? vlist_client_stats(t->store)->trips : 0;
}

static void record(struct vfig *f, bool is_write, uint64_t took,
		   uint64_t took_ns)
{
	hist_record(is_write ? &f->writes : &f->reads, took_ns);
	if (took)
		hist_record(&f->trips[is_write][u64_min(took, VFIG_TRIPS) - 1],
			    took_ns);
}

static void work(struct vfig_thread *t)
{
	struct vfig *f = t->f;

	for (;;) {
		bool is_write = rng_below(&t->rng, 100) < f->cfg->write_percent;
		uint64_t key = vfig_key(f, &t->rng), start = now_ns(f);
		uint64_t before = trips(t);
		bool counts = f->is_measuring;
		int err = is_write ? put(t, key) : get(t, key);

		if (!f->is_measuring)
			continue;
		if (err && err != -ENOENT) {
			f->res->errors++;
			client_clock_relax(t->link->clock);
			continue;
		}
		t->done++;
		/* What began before the span is only counted as done. */
		if (counts || f->is_measuring)
			record(f, is_write, trips(t) - before,
			       now_ns(f) - start);
	}
}

static void thread_main(void *arg)
{
	struct vfig_thread *t = arg;
	struct vfig *f = t->f;
	int err;

	/* The first one has filled the store by then. */
	while (t->index && !f->ready)
		sim_fiber_sleep_ps(rig_stage_sim(f->stage), SIM_US);
	err = has_store(f) ? open_store(t) : vfig_fusee_open(t);
	for (uint64_t key = 0; !t->index && !err && key < VFIG_KEYS; key++)
		err = put(t, key);
	if (err) {
		f->res->errors++;
		return;
	}
	if (t->index && has_store(f))
		vlist_client_learn(t->store, f->thread[0].store);
	f->ready++;
	while (f->ready < f->cfg->threads)
		sim_fiber_sleep_ps(rig_stage_sim(f->stage), SIM_US);
	work(t);
}

/* ---- measuring ----------------------------------------------------------- */

static uint64_t link_bytes(const struct vfig *f)
{
	return sim_port_bytes(sim_host_port(f->node->sim_host));
}

/* Adds what was done so far to the result, or takes it away from it. */
static void count_work(struct vfig *f, bool before)
{
	uint64_t sign = before ? UINT64_MAX : 1; /* -1 */
	uint64_t *sum = (uint64_t *)&f->res->work;

	for (unsigned i = 0; i < f->cfg->threads; i++) {
		struct vlist_client *c = f->thread[i].store;
		const uint64_t *n =
			c ? (const uint64_t *)vlist_client_stats(c) : NULL;

		for (size_t k = 0; n && k < sizeof(f->res->work) / 8; k++)
			sum[k] += sign * n[k];
	}
	for (unsigned i = 0; i < VFIG_STEER_COUNTS; i++)
		f->res->steer[i] +=
			sign * rig_tor_count(f->steer.tor, vfig_steer_names[i]);
}

static void measure(void *arg)
{
	struct vfig *f = arg;
	struct sim *sim = rig_stage_sim(f->stage);
	uint64_t done = 0, tries = 0;

	while (f->ready < f->cfg->threads && !f->res->errors)
		sim_fiber_sleep_ps(sim, SIM_US);
	sim_fiber_sleep_ps(sim, f->cfg->warm_ps);
	for (unsigned i = 0; i < f->cfg->threads; i++) {
		f->thread[i].done = 0;
		f->thread[i].before = attempts(&f->thread[i]);
	}
	count_work(f, true);
	f->bytes_before = link_bytes(f);
	f->is_measuring = true;
	sim_fiber_sleep_ps(sim, f->cfg->span_ps);
	f->is_measuring = false;
	count_work(f, false);
	for (unsigned i = 0; i < f->cfg->threads; i++) {
		done += f->thread[i].done;
		tries += attempts(&f->thread[i]) - f->thread[i].before;
	}
	f->res->done = done;
	f->res->mops = (double)done * 1e6 / (double)f->cfg->span_ps;
	f->res->success = tries ? (double)done / (double)tries : 0;
	f->res->bytes =
		done ? (double)(link_bytes(f) - f->bytes_before) / (double)done
		     : 0;
	sim_stop(sim);
}

static void finish_trips(struct vfig *f, unsigned kind, uint64_t all)
{
	for (unsigned i = 0; i < VFIG_TRIPS; i++) {
		const struct hist *h = &f->trips[kind][i];

		f->res->trips[kind][i] = (struct vfig_trips){
			.share = all ? (double)hist_count(h) / (double)all : 0,
			.p50_us = (double)hist_percentile(h, HIST_MEDIAN) / 1e3,
			.p99_us = (double)hist_percentile(h, HIST_P99) / 1e3};
	}
}

static void finish(struct vfig *f)
{
	struct vfig_result *r = f->res;

	r->reads = hist_count(&f->reads);
	r->writes = hist_count(&f->writes);
	r->read_p50_us = (double)hist_percentile(&f->reads, HIST_MEDIAN) / 1e3;
	r->read_p99_us = (double)hist_percentile(&f->reads, HIST_P99) / 1e3;
	r->write_p50_us =
		(double)hist_percentile(&f->writes, HIST_MEDIAN) / 1e3;
	r->write_p99_us = (double)hist_percentile(&f->writes, HIST_P99) / 1e3;
	finish_trips(f, 0, r->reads);
	finish_trips(f, 1, r->writes);
	r->evictions = rig_tor_count(f->steer.tor, "evictions");
}

/* ---- the world ----------------------------------------------------------- */

static int make_switch(struct vfig *f)
{
	bool steers =
		f->cfg->system == VFIG_WRITES || f->cfg->system == VFIG_FULL;
	char options[128];

	/* Whose switch reads no frames needs none of ours without a program,
	 * and cannot have one. */
	if (f->cfg->fabric && f->cfg->fabric->plug)
		return steers ? -EOPNOTSUPP : 0;
	snprintf(options, sizeof(options), "mode=%s,keys=%u,history=%u",
		 f->cfg->system == VFIG_WRITES ? "writes" : "both",
		 f->cfg->steer_keys ? f->cfg->steer_keys : 4 * VFIG_KEYS,
		 1 << 18);
	return rig_steer_create(&f->steer, rig_stage_net(f->stage), f->node,
				f->region, &f->g, steers ? options : NULL);
}

static int make_machines(struct vfig *f)
{
	struct vlist_options o = {.keys = VFIG_KEYS,
				  .versions = VFIG_KEYS +
					      (uint64_t)f->cfg->threads *
						      NODES_PER_THREAD,
				  .value_max = VFIG_VALUE,
				  .clients = f->cfg->threads + 1,
				  .chunk_nodes = CHUNK_NODES};
	int err = vlist_geometry_make(&o, &f->g);

	if (!err)
		err = rig_host_add(f->stage, "node", &f->node);
	if (!err)
		err = rig_region_create(f->node,
					has_store(f) ? f->g.size_bytes
						     : vfig_fusee_bytes(f->cfg),
					false, &f->region);
	for (unsigned i = 0; !err && i < VFIG_HOSTS; i++) {
		err = rig_host_add(f->stage, "machine", &f->hosts[i]);
		if (!err && has_store(f) && !f->cfg->private_places)
			err = vlist_places_create(4 * VFIG_KEYS, &f->places[i]);
	}
	return err ? err : make_switch(f);
}

static void format(void *arg)
{
	struct vfig *f = arg;
	struct kit_remote remote = {.link = f->thread[0].link,
				    .addr = f->region->addr,
				    .size_bytes = f->region->size_bytes,
				    .rkey = f->region->rkey};

	if (has_store(f) && vlist_format(&remote, &f->g)) {
		f->res->errors++;
		return;
	}
	thread_main(&f->thread[0]);
}

static int start_threads(struct vfig *f)
{
	int err = 0;

	for (unsigned i = 0; !err && i < f->cfg->threads; i++) {
		struct vfig_thread *t = &f->thread[i];

		t->f = f;
		t->index = i;
		t->host = f->hosts[i % VFIG_HOSTS];
		rng_init_stream(&t->rng, f->cfg->seed, i);
		err = rig_link_open(t->host, f->region, NULL, &t->link);
		if (err)
			break;
		if (f->steer.tor)
			rig_steer_fresh(&f->steer, f->node, t->host, t->link);
		err = rig_host_spawn(t->host, "thread",
				     i ? thread_main : format,
				     i ? (void *)t : f);
	}
	return err;
}

int vfig_run(const struct vfig_config *cfg, struct vfig_result *res)
{
	struct rig_stage_config sc = {
		.seed = cfg->seed, .hardware = true, .fabric = cfg->fabric};
	struct vfig *f;
	int err;

	memset(res, 0, sizeof(*res));
	if (cfg->system >= VFIG_STORES)
		return vfig_cas_run(cfg, res);
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->cfg = cfg;
	f->res = res;
	hist_init(&f->reads);
	hist_init(&f->writes);
	make_keys(f);
	f->thread = calloc(cfg->threads, sizeof(*f->thread));
	err = f->thread ? rig_stage_create(&sc, &f->stage) : -ENOMEM;
	if (!err)
		err = make_machines(f);
	if (!err)
		err = start_threads(f);
	if (!err)
		err = sim_fiber_spawn(rig_stage_sim(f->stage), "measure",
				      measure, f);
	if (!err) {
		(void)sim_run_until(rig_stage_sim(f->stage), 10 * SIM_S);
		finish(f);
	}
	if (f->stage)
		sim_fiber_kill_all(rig_stage_sim(f->stage));
	for (unsigned i = 0; f->thread && i < cfg->threads; i++) {
		vlist_client_abandon(f->thread[i].store);
		vfig_fusee_close(&f->thread[i]);
	}
	for (unsigned i = 0; i < VFIG_HOSTS; i++)
		vlist_places_destroy(f->places[i]);
	rig_steer_destroy(&f->steer);
	rig_stage_destroy(f->stage);
	free(f->thread);
	free(f);
	return err;
}
