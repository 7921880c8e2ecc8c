/* SPDX-License-Identifier: Apache-2.0 */
/* Sets a figure's point up, runs it for a span, counts. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fig_priv.h"
#include "sim/model_host.h"
#include "sim/net.h"

const struct offload_costs offload_costs = {OFFLOAD_COSTS(MODEL_VALUE)};

/* ---- processor time ----------------------------------------------------- */

void fig_work(struct fig_thread *t, uint64_t ps)
{
	t->owed_ps += ps * 100 / t->fig->slow_percent;
}

void fig_comm(struct fig_thread *t, uint64_t ps)
{
	uint64_t whole = ps * 100 / t->fig->slow_percent;

	t->owed_ps += whole;
	t->comm_ps += whole;
}

void fig_issue_cost(struct fig_thread *t, uint64_t ps)
{
	uint64_t before_ps = t->comm_ps;

	fig_comm(t, ps);
	t->issue_ps += t->comm_ps - before_ps;
}

void fig_settle(struct fig_thread *t)
{
	uint64_t ps = t->owed_ps;

	t->owed_ps = 0;
	if (ps)
		sim_fiber_sleep_ps(t->fig->sim, ps);
}

void fig_wait(struct fig_thread *t)
{
	uint64_t from_ps;

	fig_settle(t);
	from_ps = sim_now_ps(t->fig->sim);
	client_clock_relax(&t->fig->host->clock);
	t->comm_ps += sim_now_ps(t->fig->sim) - from_ps;
	t->wait_ps += sim_now_ps(t->fig->sim) - from_ps;
}

/* ---- records ------------------------------------------------------------ */

static uint8_t record_byte(uint64_t record)
{
	return (uint8_t)(record * 167 + 13);
}

/* A record is looked at: a far one was put into the cache by the NIC. */
static void look_at_record(struct fig_thread *t, bool far)
{
	uint32_t bytes = t->fig->cfg.bytes;
	uint64_t lines = (bytes + CACHE_LINE - 1) / CACHE_LINE;

	if (t->fig->cfg.has_record)
		return;
	fig_work(t, offload_costs.check_ps_per_byte * bytes);
	if (far)
		fig_work(t, offload_costs.dma_line_ps * lines);
	else
		fig_work(t, offload_costs.record_ps +
				    offload_costs.record_line_ps * (lines - 1));
}

void fig_complete(struct fig_thread *t, uint32_t place, const uint8_t *data)
{
	struct fig *fig = t->fig;
	struct fig_flight *f = &t->flight[place];
	uint32_t bytes = fig->cfg.bytes;

	look_at_record(t, data != NULL);
	if (data && (data[0] != record_byte(f->record) ||
		     data[bytes - 1] != record_byte(f->record)))
		fig->res->wrong++;
	if (fig->measuring && f->issued_ps >= fig->begin_ps)
		hist_record(&fig->latency,
			    (sim_now_ps(fig->sim) + t->owed_ps - f->issued_ps) /
				    SIM_NS);
	f->issued_ps = 0;
	t->free[t->frees++] = place;
	t->requests++;
	t->far++;
}

static void fill_region(struct fig *fig)
{
	uint32_t bytes = fig->cfg.bytes;

	/* Records divide stripes, so each is in one piece. */
	for (uint64_t i = 0; i < FIG_REGION_BYTES / bytes; i++)
		memset(rig_byte(&fig->rig, i * bytes), record_byte(i), bytes);
}

/* ---- the application ---------------------------------------------------- */

static void one_request(struct fig_thread *t, const struct fig_ops *ops)
{
	const struct fig_config *c = &t->fig->cfg;
	struct fig_flight *f;
	uint32_t place;

	fig_work(t, c->app_ps);
	if (!rng_chance_ppm(&t->rng, c->far_ppm)) {
		look_at_record(t, false);
		t->requests++;
		fig_settle(t);
		return;
	}
	while (!t->frees) {
		ops->look(t);
		if (!t->frees)
			fig_wait(t);
	}
	place = t->free[--t->frees];
	f = &t->flight[place];
	f->record = rng_below(&t->rng, FIG_REGION_BYTES / c->bytes);
	/* The wait for earlier work is not this request's. */
	fig_settle(t);
	f->issued_ps = sim_now_ps(t->fig->sim);
	ops->issue(t, place);
	fig_settle(t);
}

static void thread_main(void *arg)
{
	struct fig_thread *t = arg;
	const struct fig_ops *ops = &fig_ops[t->fig->cfg.device];

	t->start_ps = sim_now_ps(t->fig->sim);
	for (;;) {
		for (uint32_t i = 0;
		     i < (t->fig->cfg.burst ? t->depth : FIG_LOOK_EVERY); i++)
			one_request(t, ops);
		do {
			ops->look(t);
			if (t->fig->cfg.burst && t->frees < t->depth)
				fig_wait(t);
		} while (t->fig->cfg.burst && t->frees < t->depth);
	}
}

static int thread_open(struct fig *fig, uint32_t index)
{
	struct fig_thread *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	fig->thread[index] = t;
	t->fig = fig;
	t->index = index;
	t->depth = fig->cfg.depth;
	for (uint32_t i = 0; i < t->depth; i++)
		t->free[t->frees++] = i;
	t->buf = aligned_alloc(
		4096, align_up((uint64_t)t->depth * fig->cfg.bytes, 4096));
	rng_init_stream(&t->rng, fig->cfg.seed, index);
	if (!t->buf)
		return -ENOMEM;
	memset(t->buf, 0, (size_t)t->depth * fig->cfg.bytes);
	return fig_ops[fig->cfg.device].open(t);
}

/* ---- the engine's processor --------------------------------------------- */

static uint64_t engine_cost_ps(struct rig_engine *e, unsigned work)
{
	const struct rig_meter *m = &e->host->meter;
	uint64_t requests = e->counters[OFFLOAD_C_READS] -
			    e->seen_counters[OFFLOAD_C_READS];
	uint64_t doorbells = m->doorbells - e->seen.doorbells;
	uint64_t wrs = m->requests - e->seen.requests;
	uint64_t cqes = m->completions - e->seen.completions;

	/* Engines on one machine share its meter; each step is one engine's. */
	for (uint32_t i = 0; i < e->rig->engine_count; i++)
		e->rig->engine[i]->seen = *m;
	e->seen_counters[OFFLOAD_C_READS] = e->counters[OFFLOAD_C_READS];
	return offload_costs.engine_turn_ps +
	       requests * offload_costs.engine_request_ps +
	       doorbells * model_connectx5.cpu_post_ps +
	       (wrs - doorbells) * offload_costs.wqe_ps +
	       cqes * model_connectx5.cpu_poll_ps;
}

static int engines_open(struct fig *fig)
{
	struct offload_engine_config c = {.batch = fig->cfg.batch,
					  .flush_ns = fig->cfg.flush_ns,
					  .probe_min_ns = fig->cfg.probe_ns};
	uint32_t count = fig->cfg.device == FIG_COW ? fig->cfg.engines : 0;
	struct rig_host *host = NULL;
	int err = 0;

	for (uint32_t i = 0; i < count && !err; i++) {
		struct rig_engine *e = NULL;

		err = rig_engine_open(&fig->rig, "engine", host, &c, &e);
		if (err)
			break;
		e->cost_ps = engine_cost_ps;
		host = e->host;
	}
	return err;
}

/* ---- one point ---------------------------------------------------------- */

static int open_all(struct fig *fig)
{
	struct rig_stage_config cfg = {.seed = fig->cfg.seed,
				       .hardware = true,
				       .fabric = fig->cfg.fabric};
	bool is_switch = fig->cfg.device == FIG_SWITCH;
	bool is_message = fig->cfg.device == FIG_TWO_SIDED ||
			  fig->cfg.device == FIG_REDY ||
			  fig->cfg.device == FIG_BLOCKING;
	/* All that READ have as many queue pairs. */
	uint32_t rails = is_message ? 1 : FIG_RAILS;
	int err = rig_stage_create(&cfg, &fig->stage);

	if (err)
		return err;
	fig->sim = rig_stage_sim(fig->stage);
	err = rig_init(&fig->rig, fig->stage, rails, rails, FIG_REGION_BYTES,
		       FIG_STRIPE_SHIFT);
	if (err)
		return err;
	fill_region(fig);
	if (fig->cfg.rdma_first)
		sim_net_set_classes(rig_stage_net(fig->stage));
	err = rig_host_add(fig->stage, "app", &fig->host);
	if (!err && fig->cfg.nic_mpps)
		sim_model_host_limit(fig->host->model,
				     fig->cfg.nic_mpps * 1000000ull);
	if (!err && fig->cfg.tcp)
		err = fig_tcp_start(fig);
	if (!err)
		err = is_switch ? fig_switch_open(fig) : engines_open(fig);
	for (uint32_t i = 0; i < fig->cfg.threads && !err; i++) {
		err = thread_open(fig, i);
		if (!err)
			err = rig_host_spawn(fig->host, "thread", thread_main,
					     fig->thread[i]);
	}
	return err;
}

struct totals {
	uint64_t requests, far, comm_ps, issue_ps, wait_ps, busy_ps;
	uint64_t tcp_bytes, tcp_packets;
	uint64_t wire_bytes, packets;
	struct fig_switch_counts sw;
};

static struct totals totals_of(struct fig *fig)
{
	const struct sim_port *port = sim_host_port(fig->host->sim_host);
	struct totals x = {.wire_bytes = sim_port_bytes(port),
			   .packets = sim_port_frames(port),
			   .sw = fig_switch_counts(fig)};

	for (uint32_t i = 0; i < fig->cfg.threads; i++) {
		x.requests += fig->thread[i]->requests;
		x.far += fig->thread[i]->far;
		x.comm_ps += fig->thread[i]->comm_ps;
		x.issue_ps += fig->thread[i]->issue_ps;
		x.wait_ps += fig->thread[i]->wait_ps;
	}
	for (uint32_t i = 0; i < fig->rig.engine_count; i++)
		x.busy_ps += fig->rig.engine[i]->work_ps;
	x.tcp_bytes = fig->tcp ? fig_tcp_bytes(fig) : 0;
	x.tcp_packets = fig->tcp ? fig_tcp_packets(fig) : 0;
	return x;
}

/* Packets, for each far request. */
static void measure_packets(struct fig_result *r, const struct totals *a,
			    const struct totals *b, double span_ps)
{
	double far = (double)u64_max(b->far - a->far, 1);

	/* A frame of TCP is counted where it waits, a little before it leaves;
	 * beside nothing that may be one more. */
	double tcp = (double)(b->tcp_packets - a->tcp_packets);

	r->nic_packets = fmax((double)(b->packets - a->packets) - tcp, 0) / far;
	r->program_packets = (double)(b->sw.packets - a->sw.packets) / far;
	r->told = (double)(b->sw.told - a->sw.told) / far;
	r->recirculated =
		(double)(b->sw.recirculated - a->sw.recirculated) / far;
	r->probes_per_us =
		(double)(b->sw.probes - a->sw.probes) / span_ps * 1e6;
	r->lost = b->sw.lost;
}

/* The caller's own time for a far request. */
static void measure_caller(struct fig_result *r, const struct totals *a,
			   const struct totals *b)
{
	double far = (double)u64_max(b->far - a->far, 1) * SIM_NS;

	r->issue_ns = (double)(b->issue_ps - a->issue_ps) / far;
	r->caller_ns =
		(double)(b->comm_ps - a->comm_ps - (b->wait_ps - a->wait_ps)) /
		far;
	r->poll_ns = r->caller_ns - r->issue_ns;
}

static void measure(struct fig *fig)
{
	struct fig_result *r = fig->res;
	struct totals a, b;
	double span_ps = (double)fig->cfg.span_ps;
	double threads = fig->cfg.threads;

	sim_run_until(fig->sim, sim_now_ps(fig->sim) + fig->cfg.warm_ps);
	a = totals_of(fig);
	fig->measuring = true;
	fig->begin_ps = sim_now_ps(fig->sim);
	sim_run_until(fig->sim, fig->begin_ps + fig->cfg.span_ps);
	b = totals_of(fig);
	r->requests = b.requests - a.requests;
	r->mops = (double)r->requests / span_ps * 1e6;
	r->comm = (double)(b.comm_ps - a.comm_ps) / span_ps / threads;
	r->p50_us = (double)hist_percentile(&fig->latency, HIST_MEDIAN) / 1e3;
	r->p99_us = (double)hist_percentile(&fig->latency, HIST_P99) / 1e3;
	if (fig->rig.engine_count)
		r->engine_busy = (double)(b.busy_ps - a.busy_ps) / span_ps /
				 fig->rig.engine_count;
	/* A turn is booked when it begins, so some of it is outside. */
	if (r->engine_busy > 1)
		r->engine_busy = 1;
	if (r->requests)
		r->wire_bytes = (double)(b.wire_bytes - a.wire_bytes -
					 (b.tcp_bytes - a.tcp_bytes)) /
				(double)r->requests;
	measure_caller(r, &a, &b);
	measure_packets(r, &a, &b, span_ps);
	r->tcp_gbps = (double)(b.tcp_bytes - a.tcp_bytes) * 8e3 / span_ps;
}

static void close_all(struct fig *fig)
{
	if (fig->stage)
		sim_fiber_kill_all(fig->sim);
	fig_tcp_release(fig);
	for (uint32_t i = 0; i < FIG_THREADS_MAX; i++) {
		struct fig_thread *t = fig->thread[i];

		if (!t)
			continue;
		fig_verbs_close(t);
		free(t->buf);
		fig_talk_close(&t->talk);
		free(t->redy);
		free(t);
	}
	rig_release(&fig->rig);
	fig_switch_close(fig);
	rig_stage_destroy(fig->stage);
	free(fig);
}

static uint32_t or_else(uint32_t value, uint32_t other)
{
	return value ? value : other;
}

/* An engine on hardware has other times than on this machine. */
static void defaults(struct fig_program *p)
{
	p->tell = or_else(p->tell, 32);
	p->fetch = or_else(p->fetch, 42);
	p->probe_us = or_else(p->probe_us, 2);
	p->flush_us = or_else(p->flush_us, 2);
}

int fig_run(const struct fig_config *cfg, struct fig_result *res)
{
	struct fig *fig = calloc(1, sizeof(*fig));
	uint32_t busy = cfg->threads * (cfg->device == FIG_REDY ? 2 : 1);
	int err;

	if (!fig)
		return -ENOMEM;
	memset(res, 0, sizeof(*res));
	if (!cfg->threads || cfg->threads > FIG_THREADS_MAX ||
	    cfg->depth > FIG_DEPTH_MAX || !cfg->bytes) {
		free(fig);
		return -EINVAL;
	}
	fig->cfg = *cfg;
	fig->cfg.depth = cfg->depth ? cfg->depth : FIG_DEPTH;
	fig->cfg.engines = cfg->engines ? cfg->engines : 1;
	defaults(&fig->cfg.program);
	fig->res = res;
	/* Only I/O threads of the library itself are held against it: whether
	 * application threads share cores is the same for all devices. */
	fig->slow_percent =
		cfg->device == FIG_REDY && busy > offload_costs.cores
			? offload_costs.smt_percent
			: 100;
	hist_init(&fig->latency);
	err = open_all(fig);
	if (!err)
		measure(fig);
	close_all(fig);
	return err;
}
