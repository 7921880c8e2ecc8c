/* SPDX-License-Identifier: Apache-2.0 */
/* The play's world: drawn from the seed, played, judged. */
#include "offload_play.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "figures/commands.h"
#include "offload_play_priv.h"
#include "rig/tor_net.h"

enum {
	REQUESTS = 80, /* of each thread */
	STREAM_WORLD = 9000,
	STREAM_THREAD = 9001,
	END_S = 30,
};

/* ---- the world ---------------------------------------------------------- */

static struct sim_link draw_link(struct op *p)
{
	struct rng *r = &p->run.rand;

	p->faults = (struct sim_faults){
		.loss_ppm = sim_rand_range(r, 100, 20000),
		.dup_ppm = sim_rand_range(r, 100, 20000),
		.reorder_ppm = sim_rand_range(r, 100, 50000),
		.corrupt_ppm = sim_rand_range(r, 100, 5000),
		.reorder_max_ps = sim_rand_range(r, 1, 20) * SIM_US};
	if (p->point)
		memset(&p->faults, 0, sizeof(p->faults));
	return (struct sim_link){.latency_ps =
					 sim_rand_range(r, 200, 3000) * SIM_NS,
				 .bits_per_s = 100000000000ull,
				 .queue_frames = sim_rand_below(r, 2) ? 0 : 64,
				 .faults = p->faults};
}

static int thread_open(struct op *p, struct rig_host *host)
{
	struct rng *r = &p->run.rand;
	struct op_thread *t = calloc(1, sizeof(*t));
	uint32_t scale = p->run.opt->scale ? (uint32_t)p->run.opt->scale : 100;

	if (!t)
		return -ENOMEM;
	t->p = p;
	t->index = p->thread_count;
	p->thread[p->thread_count++] = t;
	t->window =
		sim_rand_below(r, 3) ? sim_rand_range(r, 1, 4) : OP_WINDOW_MAX;
	t->left = REQUESTS * scale / 100;
	t->own_at =
		OP_KEYS_MAX * OP_SLOT_BYTES + (uint64_t)t->index * OP_OWN_BYTES;
	memset(t->known, 1, sizeof(t->known));
	sim_rand_init(&t->rand, p->seed, STREAM_THREAD + t->index);
	return rig_app_open(&p->rig, host, 16u << sim_rand_below(r, 3),
			    16384u << sim_rand_below(r, 2),
			    16384u << sim_rand_below(r, 2), &t->app);
}

static int threads_open(struct op *p)
{
	char name[RIG_NAME_MAX];
	int err = 0;

	p->host_count = sim_rand_range(&p->run.rand, 1, OP_HOSTS_MAX);
	for (uint32_t i = 0; i < p->host_count && !err; i++) {
		uint32_t threads = sim_rand_range(&p->run.rand, 1, 3);

		snprintf(name, sizeof(name), "app%u", i);
		err = rig_host_add(p->run.stage, name, &p->host[i]);
		while (!err && threads--)
			err = thread_open(p, p->host[i]);
	}
	return err;
}

static void draw_engine(struct op *p)
{
	static const uint32_t batches[] = {0, 1, 4};
	struct rng *r = &p->run.rand;

	p->engine_config = (struct offload_engine_config){
		.batch = batches[sim_rand_below(r, 3)],
		.flush_ns = sim_rand_below(r, 2) ? 0 : 2000};
	p->rig.mtu = sim_rand_range(r, IBV_MTU_256, IBV_MTU_4096);
	p->keys = sim_rand_range(r, 3, OP_KEYS_MAX);
	p->slot_bytes = 8 * sim_rand_range(r, 1, OP_SLOT_BYTES / 8);
	p->may_lose_node = p->rig.node_count > 1 && sim_rand_below(r, 2) == 0;
}

/* The switch between all, if it is an engine. */
static int switch_open(struct op *p)
{
	const struct offload_play_options *o =
		(const struct offload_play_options *)p->run.opt;
	static const unsigned fetch[] = {1, 8, 42}, tell[] = {1, 4, 32};
	struct rig_tor_config cfg = {.programs = {p->program},
				     .program_count = 1};
	struct rng *r = &p->run.rand;
	int err;

	if (o->engine == OFFLOAD_SPOT)
		return 0;
	/* The preamble is one packet. */
	p->rig.mtu = p->rig.mtu == IBV_MTU_256 ? IBV_MTU_512 : p->rig.mtu;
	snprintf(p->program, sizeof(p->program),
		 "cowbird:sessions=512,requests=%u,fetch=%u,tell=%u,filter=%s",
		 sim_rand_below(r, 2) ? 1024 : 16, fetch[sim_rand_below(r, 3)],
		 tell[sim_rand_below(r, 3)],
		 sim_rand_below(r, 2) ? "on" : "off");
	err = rig_tor_create(rig_stage_net(p->run.stage), &cfg, &p->tor);
	p->rig.tor = p->tor;
	return err;
}

static int start(struct op *p)
{
	char name[RIG_NAME_MAX];
	int err = switch_open(p);

	if (!err)
		err = op_engine_start(p, &p->engine);
	if (!err && p->point)
		rig_engine_kill_at(p->engine, p->point, p->point_when);
	for (uint32_t i = 0; i < p->thread_count && !err; i++) {
		struct op_thread *t = p->thread[i];

		snprintf(name, sizeof(name), "thread%u", i);
		err = rig_attach(p->engine, t->app);
		if (!err)
			err = rig_host_spawn(t->app->host, name, op_thread_main,
					     t);
	}
	if (!err)
		err = sim_fiber_spawn(p->run.sim, "faults", op_fault_main, p);
	return err;
}

/* Which seed, and in which way its engine dies, if the play is about that. */
static void choose(struct op *p)
{
	const struct offload_play_options *o =
		(const struct offload_play_options *)p->run.opt;

	p->seed = o->common.seed;
	if (!o->points)
		return;
	p->point = (p->seed - 1) / OFFLOAD_POINT_WHENS + 1;
	p->point_when = (unsigned)((p->seed - 1) % OFFLOAD_POINT_WHENS);
	p->seed = o->points_seed;
}

static int open_world(struct play_run *run)
{
	struct op *p = (struct op *)run;
	struct rig_stage_config cfg = {0};
	uint64_t bytes =
		OP_KEYS_MAX * OP_SLOT_BYTES + OP_THREADS_MAX * OP_OWN_BYTES;
	uint32_t nodes, shift;
	int err;

	p->n = (struct offload_play_counts *)run->res->count;
	choose(p);
	sim_rand_init(&run->rand, p->seed, STREAM_WORLD);
	cfg.seed = p->seed;
	cfg.link = draw_link(p);
	err = play_stage_open(run, &cfg);
	if (err)
		return err;
	nodes = sim_rand_range(&run->rand, 1, 3);
	shift = sim_rand_range(&run->rand, 9, 12);
	bytes = (bytes / (nodes << shift) + 1) * (nodes << shift);
	err = rig_init(&p->rig, run->stage, nodes, 1, bytes, shift);
	if (err)
		return err;
	draw_engine(p);
	/* Not drawn, so that all else of a seed stays as it is. */
	if (p->seed % 2 == 0)
		err = rig_gather(&p->rig);
	if (err)
		return err;
	/* Memory is zeroed, and 0 is the first number of every record. */
	lin_history_set_initial(run->history, lin_int(0));
	run->next_value = 1;
	err = threads_open(p);
	return err ? err : start(p);
}

/* ---- judging ------------------------------------------------------------ */

/* With all quiet, the memory is what the last reads of all threads saw. */
static void check_own(struct op *p)
{
	for (uint32_t i = 0; i < p->thread_count; i++) {
		const struct op_thread *t = p->thread[i];

		for (uint32_t b = 0; b < OP_OWN_BYTES; b++) {
			uint64_t at = t->own_at + b;

			if (t->app->host->killed || !t->known[b] ||
			    p->rig.node[rig_node_of(&p->rig, at)].host->killed)
				continue;
			if (*rig_byte(&p->rig, at) == t->shadow[b])
				continue;
			play_fail(&p->run,
				  "byte %u of thread %u's own is %u at "
				  "the end, %u was written last",
				  b, i, *rig_byte(&p->rig, at), t->shadow[b]);
			return;
		}
	}
}

static int judge(struct play_run *r)
{
	struct op *p = (struct op *)r;

	if (r->end != SIM_END_STOPPED)
		play_fail(r, "the simulation ended by itself: %d", (int)r->end);
	for (uint32_t i = 0; i < p->rig.engine_count; i++) {
		const uint64_t *e = p->rig.engine[i]->counters;

		p->n->skipped += e[OFFLOAD_C_SKIPPED];
		p->n->conflicts += e[OFFLOAD_C_CONFLICTS];
		p->n->probes += e[OFFLOAD_C_PROBES];
		p->n->publications += e[OFFLOAD_C_PUBLICATIONS];
		p->n->gathers += e[OFFLOAD_C_GATHERS];
	}
	p->n->doorbells = p->rig.engine[0]->host
				  ? p->rig.engine[0]->host->meter.doorbells
				  : rig_tor_frames(p->tor);
	if (!r->res->violations)
		check_own(p);
	return 0;
}

static void close_world(struct play_run *r)
{
	struct op *p = (struct op *)r;

	rig_release(&p->rig);
	rig_tor_destroy(p->tor);
	for (uint32_t i = 0; i < p->thread_count; i++)
		free(p->thread[i]);
}

/* ---- the table ---------------------------------------------------------- */

/* How many doorbells there are is known after a run without a kill. */
static int prepare(struct play_options *opt, struct sim_batch *batch)
{
	struct offload_play_options *o = (struct offload_play_options *)opt;
	static struct play_result res;
	int err;

	if (!o->points)
		return 0;
	o->points_seed = batch->one ? batch->from : 1;
	opt->seed = UINT64_MAX;
	err = play_seed(&offload_play, opt, &res);
	batch->one = false;
	batch->unit = "point";
	batch->from = 1;
	batch->to = OFFLOAD_POINT_WHENS *
		    ((struct offload_play_counts *)res.count)->doorbells;
	return err;
}

static const enum plant bugs[] = {
	PLANT_no_order,	   PLANT_early_ack, PLANT_no_skip,
	PLANT_old_final,   PLANT_no_fence,  PLANT_late_ring,
	PLANT_other_bytes, PLANT_red_now,   PLANT_none,
};

static const struct opt options[] = {
	OPT_FLAG(struct offload_play_options, points, "points",
		 "kill the engine of one seed before, inside and after each of "
		 "its doorbells, the switch at each of its frames, with no "
		 "other fault"),
	OPT_CHOICE(struct offload_play_options, engine, "engine",
		   "spot|switch|both",
		   "a process (the default), a program of the switch, or one "
		   "after the other"),
	PLAY_OPTION_SCALE,
	PLAY_OPTION_FABRIC,
	OPT_TEXT(struct play_options, history_file, "history", "FILE",
		 "one seed: write what the threads saw, for 'aquifer sim check "
		 "--initial 0'"),
	PLAY_OPTION_PCAP,
	OPT_END,
};

static const struct play_count counts[] = {OFFLOAD_PLAY_COUNTS(PLAY_COUNT_ROW)};

const struct play offload_play = {
	.name = "offload",
	.summary = "asynchronous far memory while engines are killed",
	.about = "Asynchronous far memory over a bad network: engines are "
		 "killed and followed by others, memory nodes and applications "
		 "die; what the threads saw must be linearizable.",
	.counts = counts,
	.count_count = ARRAY_LEN(counts),
	.bugs = bugs,
	.options = options,
	.options_bytes = sizeof(struct offload_play_options),
	.figures = &offload_figures,
	.prepare = prepare,
	.world_bytes = sizeof(struct op),
	.limit_ps = END_S * SIM_S,
	.has_history = true,
	.model = LIN_MODEL_REGISTER,
	.open = open_world,
	.judge = judge,
	.close = close_world,
};
