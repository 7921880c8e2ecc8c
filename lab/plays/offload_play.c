/* SPDX-License-Identifier: Apache-2.0 */
/* The play's world: drawn from the seed, played, judged. */
#include "offload_play.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "offload_play_priv.h"
#include "sim/lin_file.h"

enum {
	REQUESTS = 80, /* of each thread */
	STREAM_WORLD = 9000,
	STREAM_THREAD = 9001,
	PLAY_END_S = 30,
};

const enum plant offload_play_bugs[] = {
	PLANT_no_order, PLANT_early_ack, PLANT_no_skip, PLANT_old_final,
	PLANT_no_fence, PLANT_late_ring, PLANT_none};

void play_violation(struct play *p, const char *fmt, ...)
{
	va_list ap;

	if (p->res->violations++)
		return;
	va_start(ap, fmt);
	vsnprintf(p->res->first, sizeof(p->res->first), fmt, ap);
	va_end(ap);
	if (p->opt->trace)
		fprintf(p->opt->trace, "%llu violation: %s\n",
			(unsigned long long)sim_now_ns(p->sim), p->res->first);
}

/* ---- the world ---------------------------------------------------------- */

static struct sim_link draw_link(struct play *p)
{
	struct sim_rand *r = &p->rand;

	p->faults = (struct sim_faults){
		.loss_ppm = sim_rand_range(r, 100, 20000),
		.dup_ppm = sim_rand_range(r, 100, 20000),
		.reorder_ppm = sim_rand_range(r, 100, 50000),
		.corrupt_ppm = sim_rand_range(r, 100, 5000),
		.reorder_max_ps = sim_rand_range(r, 1, 20) * SIM_US};
	if (p->opt->point)
		memset(&p->faults, 0, sizeof(p->faults));
	return (struct sim_link){.latency_ps =
					 sim_rand_range(r, 200, 3000) * SIM_NS,
				 .bits_per_s = 100000000000ull,
				 .queue_frames = sim_rand_below(r, 2) ? 0 : 64,
				 .faults = p->faults};
}

static int thread_open(struct play *p, struct scenario_host *host)
{
	struct sim_rand *r = &p->rand;
	struct play_thread *t = calloc(1, sizeof(*t));
	uint32_t scale = p->opt->scale ? p->opt->scale : 100;

	if (!t)
		return -ENOMEM;
	t->play = p;
	t->index = p->thread_count;
	p->thread[p->thread_count++] = t;
	t->window = sim_rand_below(r, 3) ? sim_rand_range(r, 1, 4)
					 : PLAY_WINDOW_MAX;
	t->left = REQUESTS * scale / 100;
	t->own_at = PLAY_KEYS_MAX * PLAY_SLOT_BYTES +
		    (uint64_t)t->index * PLAY_OWN_BYTES;
	memset(t->known, 1, sizeof(t->known));
	sim_rand_init(&t->rand, p->opt->seed, STREAM_THREAD + t->index);
	return rig_app_open(&p->rig, host, 16u << sim_rand_below(r, 3),
			    16384u << sim_rand_below(r, 2),
			    16384u << sim_rand_below(r, 2), &t->app);
}

static int threads_open(struct play *p)
{
	char name[SCENARIO_NAME_MAX];
	int err = 0;

	p->host_count = sim_rand_range(&p->rand, 1, PLAY_HOSTS_MAX);
	for (uint32_t i = 0; i < p->host_count && !err; i++) {
		uint32_t threads = sim_rand_range(&p->rand, 1, 3);

		snprintf(name, sizeof(name), "app%u", i);
		err = scenario_host_add(p->stage, name, &p->host[i]);
		while (!err && threads--)
			err = thread_open(p, p->host[i]);
	}
	return err;
}

static void draw_engine(struct play *p)
{
	static const uint32_t batches[] = {0, 1, 4};
	struct sim_rand *r = &p->rand;

	p->engine_config = (struct offload_engine_config){
		.batch = batches[sim_rand_below(r, 3)],
		.flush_ns = sim_rand_below(r, 2) ? 0 : 2000};
	p->rig.mtu = sim_rand_range(r, IBV_MTU_256, IBV_MTU_4096);
	p->keys = sim_rand_range(r, 3, PLAY_KEYS_MAX);
	p->slot_bytes = 8 * sim_rand_range(r, 1, PLAY_SLOT_BYTES / 8);
	p->may_lose_node = p->rig.node_count > 1 && sim_rand_below(r, 2) == 0;
}

static int start(struct play *p)
{
	char name[SCENARIO_NAME_MAX];
	int err = play_engine_start(p, &p->engine);

	if (!err && p->opt->point) {
		p->engine->host->meter.kill_at = p->opt->point;
		p->engine->host->meter.kill_when = p->opt->point_when;
	}
	for (uint32_t i = 0; i < p->thread_count && !err; i++) {
		struct play_thread *t = p->thread[i];

		snprintf(name, sizeof(name), "thread%u", i);
		err = rig_attach(p->engine, t->app);
		if (!err)
			err = scenario_host_spawn(t->app->host, name,
						  play_thread_main, t);
	}
	if (!err)
		err = sim_fiber_spawn(p->sim, "faults", play_fault_main, p);
	return err;
}

static int world_open(struct play *p)
{
	struct scenario_stage_config cfg = {.seed = p->opt->seed,
					    .fabric = p->opt->fabric,
					    .trace = p->opt->trace,
					    .pcap = p->opt->pcap};
	uint64_t bytes = PLAY_KEYS_MAX * PLAY_SLOT_BYTES +
			 PLAY_THREADS_MAX * PLAY_OWN_BYTES;
	uint32_t nodes, shift;
	int err = lin_history_create(&p->history);

	if (err)
		return err;
	sim_rand_init(&p->rand, p->opt->seed, STREAM_WORLD);
	cfg.link = draw_link(p);
	err = scenario_stage_create(&cfg, &p->stage);
	if (err)
		return err;
	p->sim = scenario_stage_sim(p->stage);
	nodes = sim_rand_range(&p->rand, 1, 3);
	shift = sim_rand_range(&p->rand, 9, 12);
	bytes = (bytes / (nodes << shift) + 1) * (nodes << shift);
	err = rig_init(&p->rig, p->stage, nodes, 1, bytes, shift);
	if (err)
		return err;
	draw_engine(p);
	/* Memory is zeroed, and 0 is the first number of every record. */
	lin_history_set_initial(p->history, lin_int(0));
	p->next_value = 1;
	err = threads_open(p);
	return err ? err : start(p);
}

/* ---- judging ------------------------------------------------------------ */

static void check_history(struct play *p)
{
	struct lin_result res;
	int err = lin_check(p->history, LIN_MODEL_REGISTER, NULL, &res);

	p->res->counts.checked += res.ops;
	p->res->counts.steps += res.steps;
	if (err)
		play_violation(p, "the history could not be checked: error %d",
			       -err);
	else if (res.verdict != LIN_LINEARIZABLE)
		play_violation(p, "%s", res.text);
	if (p->opt->trace && res.verdict == LIN_VIOLATED)
		lin_show_key(p->history, res.key, res.op, 60, p->opt->trace);
	if (p->opt->history && lin_history_write(p->history, p->opt->history))
		play_violation(p, "the history could not be written");
}

/* With all quiet, the memory is what the last reads of all threads saw. */
static void check_own(struct play *p)
{
	for (uint32_t i = 0; i < p->thread_count; i++) {
		const struct play_thread *t = p->thread[i];

		for (uint32_t b = 0; b < PLAY_OWN_BYTES; b++) {
			uint64_t at = t->own_at + b;

			if (t->app->host->killed || !t->known[b] ||
			    p->rig.node[rig_node_of(&p->rig, at)].host->killed)
				continue;
			if (*rig_byte(&p->rig, at) == t->shadow[b])
				continue;
			play_violation(p,
				       "byte %u of thread %u's own is %u at "
				       "the end, %u was written last",
				       b, i, *rig_byte(&p->rig, at),
				       t->shadow[b]);
			return;
		}
	}
}

static void take_counts(struct play *p)
{
	const struct sim_net_stats *n =
		sim_net_stats(scenario_stage_net(p->stage));
	struct offload_play_counts *c = &p->res->counts;

	c->frames = n->sent;
	c->lost = n->lost;
	c->duplicated = n->duplicated;
	c->reordered = n->reordered;
	c->corrupted = n->corrupted;
	c->events = sim_event_count(p->sim);
	c->virtual_us = sim_now_ns(p->sim) / 1000;
	for (uint32_t i = 0; i < p->rig.engine_count; i++) {
		const uint64_t *e = p->rig.engine[i]->counters;

		c->skipped += e[OFFLOAD_C_SKIPPED];
		c->conflicts += e[OFFLOAD_C_CONFLICTS];
		c->probes += e[OFFLOAD_C_PROBES];
		c->publications += e[OFFLOAD_C_PUBLICATIONS];
	}
	p->res->doorbells = p->rig.engine[0]->host->meter.doorbells;
	p->res->hash = sim_trace_hash(p->sim);
}

static void play_close(struct play *p)
{
	rig_release(&p->rig);
	scenario_stage_destroy(p->stage);
	lin_history_destroy(p->history);
	for (uint32_t i = 0; i < p->thread_count; i++)
		free(p->thread[i]);
	free(p);
}

int offload_play_run(const struct offload_play_options *opt,
		     struct offload_play_result *res)
{
	struct play *p = calloc(1, sizeof(*p));
	enum sim_end end;
	int err;

	plant_set(opt->bug);
	if (!p)
		return -ENOMEM;
	memset(res, 0, sizeof(*res));
	p->opt = opt;
	p->res = res;
	err = world_open(p);
	if (!err) {
		end = sim_run_until(p->sim,
				    sim_now_ps(p->sim) + PLAY_END_S * SIM_S);
		if (end != SIM_END_STOPPED)
			play_violation(p, "the simulation ended by itself: %d",
				       (int)end);
		take_counts(p);
		check_history(p);
		if (!res->violations)
			check_own(p);
	}
	play_close(p);
	return err;
}
