/* SPDX-License-Identifier: Apache-2.0 */
/* The play "walk": its world and its end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "figures/commands.h"
#include "rig/tor_net.h"
#include "sim/fiber.h"
#include "walk_play_priv.h"

#define LIMIT_PS (4 * SIM_S)
#define TICK_PS	 (250 * SIM_MS)

/* ---- the world ----------------------------------------------------------- */

/* A region of the guest's own, with a ring in it. */
static int open_guest(struct wp *p)
{
	struct wp_hand *g = &p->guest;
	int err = walk_region_create(p->keeper.rack, "guest", WP_STRIPE, 1);

	if (!err)
		err = wp_hand_attach(g, "guest", 1, true);
	for (unsigned i = 1; i <= WP_GUEST_RING && !err; i++)
		wp_hand_look(g, i)->next = wp_offset(i % WP_GUEST_RING + 1);
	return err;
}

/* Programs that read what is not theirs are refused by every node. */
static void try_bad_images(struct wp *p)
{
	for (unsigned i = 0; i < 2; i++) {
		json_t *reply;
		int err = walk_rack_ask(p->keeper.rack, 0, "POST", "/v1/walks",
					wp_bad_image(i), &reply);

		json_decref(reply);
		p->n->refused += err == -EINVAL;
		if (err != -EINVAL)
			play_fail(&p->run,
				  "a program that reads outside of its window "
				  "was taken: %d",
				  err);
	}
}

static void wait_for_all(struct wp *p)
{
	bool all = false;

	while (!all) {
		sim_fiber_sleep_ps(p->run.sim, 20 * SIM_US);
		all = p->trouble_done && p->writer_done && p->guest_done;
		for (unsigned i = 0; i < WP_WALKERS; i++)
			all = all && p->walker[i].done;
	}
}

/* Makes the region, lets the others begin, and looks at what they leave. */
static void keeper_main(void *arg)
{
	struct wp *p = arg;
	int err = wp_generation_begin(p);

	if (!err)
		err = open_guest(p);
	try_bad_images(p);
	for (unsigned i = 0; i < WP_WALKERS && !err; i++)
		err = wp_walker_open(&p->walker[i]);
	if (!err)
		err = rig_host_spawn(p->writer.host, "writer", wp_writer_main,
				     &p->writer);
	if (!err)
		err = rig_host_spawn(p->guest.host, "guest", wp_guest_main,
				     &p->guest);
	if (!err)
		err = sim_fiber_spawn(p->run.sim, "trouble", wp_trouble_main,
				      p);
	if (err) {
		play_fail(&p->run, "the play cannot start: %d, %s", err,
			  error_last());
		sim_stop(p->run.sim);
		return;
	}
	wait_for_all(p);
	wp_check_visits(p);
	p->run.running = 0;
	sim_stop(p->run.sim);
}

static void ticks_main(void *arg)
{
	struct wp *p = arg;

	for (;;) {
		sim_fiber_sleep_ps(p->run.sim, TICK_PS);
		walk_nodes_tick(&p->nodes);
	}
}

static void draw_nodes(struct wp *p)
{
	struct rng *r = &p->run.rand;

	p->nodes.run = &p->run;
	p->nodes.count = sim_rand_range(r, 1, WALK_NODES_MAX);
	p->nodes.call_ps = sim_rand_range(r, 5, 60) * SIM_US;
	p->nodes.config = (struct mem_walk_config){
		.has_jit = sim_rand_below(r, 2),
		.iterations = 1u << sim_rand_range(r, 1, 12),
	};
}

/* Half of the racks have their NICs at a switch. Other fabrics have none. */
static int open_switch(struct wp *p)
{
	const struct rig_tor_config cfg = {.programs = {"walk"},
					   .program_count = 1};

	if (sim_rand_below(&p->run.rand, 2) || p->run.opt->fabric)
		return 0;
	return rig_tor_create(p->run.net, &cfg, &p->nodes.tor);
}

static int open_world(struct play_run *run)
{
	struct wp *p = (struct wp *)run;
	struct rig_stage_config cfg = {.relax_max_ps = 20 * SIM_US};
	struct rng *r = &run->rand;
	int err;

	p->n = (struct walk_play_counts *)run->res->count;
	p->now = p->gen;
	p->now->number = 1;
	sim_rand_init(r, run->opt->seed, 56);
	cfg.link.latency_ps = sim_rand_range(r, 300, 3000) * SIM_NS;
	cfg.link.bits_per_s = 25000000000ull;
	cfg.chain_ps = sim_rand_range(r, 100, 20000) * SIM_NS;
	cfg.link.faults = play_draw_faults(r, 20000, 40000, 20000, 10000);
	err = play_stage_open(run, &cfg);
	draw_nodes(p);
	if (!err)
		err = open_switch(p);
	for (unsigned i = 0; i < p->nodes.count && !err; i++)
		err = walk_node_start(&p->nodes, i);
	wp_field_draw(p);
	if (!err)
		err = wp_hand_open(p, &p->keeper, "keeper", 60);
	if (!err)
		err = wp_hand_open(p, &p->writer, "writer", 61);
	if (!err)
		err = wp_hand_open(p, &p->guest, "guest", 62);
	for (unsigned i = 0; i < WP_WALKERS; i++) {
		p->walker[i].p = p;
		p->walker[i].index = i;
		sim_rand_init(&p->walker[i].rand, run->opt->seed, 70 + i);
	}
	run->running = 1;
	if (!err)
		err = sim_fiber_spawn(run->sim, "ticks", ticks_main, p);
	return err ? err
		   : rig_host_spawn(p->keeper.host, "keeper", keeper_main, p);
}

/* ---- the end ------------------------------------------------------------- */

static int judge(struct play_run *run)
{
	struct wp *p = (struct wp *)run;

	for (unsigned i = 0; i < p->nodes.count; i++) {
		struct sim_host *host = p->nodes.node[i].host->sim_host;

		p->n->walks += sim_host_counter(host, NIC_C_walks);
		p->n->iterations +=
			sim_host_counter(host, NIC_C_walk_iterations);
	}
	return 0;
}

static void close_world(struct play_run *run)
{
	struct wp *p = (struct wp *)run;

	for (unsigned i = 0; i < WP_WALKERS; i++)
		wp_walker_close(&p->walker[i]);
	aq_walks_close(p->guest_walks);
	aq_walk_close(p->guest_walk);
	wp_hand_close(&p->keeper);
	wp_hand_close(&p->writer);
	wp_hand_close(&p->guest);
	walk_nodes_close(&p->nodes);
	rig_tor_destroy(p->nodes.tor);
}

/* ---- the table ----------------------------------------------------------- */

static const struct opt options[] = {
	PLAY_OPTION_FABRIC,
	PLAY_OPTION_PCAP,
	OPT_END,
};

static const enum plant bugs[] = {
	PLANT_reexecute_walk,	 PLANT_stale_window,
	PLANT_walk_wrong_stripe, PLANT_walk_forward_store,
	PLANT_walk_any_pointer,	 PLANT_walk_no_join,
	PLANT_walk_no_bound,	 PLANT_none,
};
static const struct play_count counts[] = {WALK_PLAY_COUNTS(PLAY_COUNT_ROW)};

const struct play walk_play = {
	.name = "walk",
	.summary = "walks over structures that change, nodes and clients that "
		   "die",
	.about = "Shipped memory nodes and the library of walks in a simulated "
		 "rack, half of them with the switch and its program walk. "
		 "Lists, hash chains and a tree in a striped region are "
		 "walked, by nodes and by clients, while WRITEs, "
		 "compare-and-swaps and walks change them; frames are lost, "
		 "doubled, reordered and damaged; nodes, clients and the "
		 "switch are killed, the region is resized and replaced, "
		 "programs are "
		 "dropped, keys taken back. Lookups and changes of each key "
		 "must be linearizable, every byte that comes back must once "
		 "have been written there, stores must happen once or, with "
		 "an error, at most once, and every walk must end within its "
		 "deadline.",
	.counts = counts,
	.count_count = ARRAY_LEN(counts),
	.bugs = bugs,
	.options = options,
	.options_bytes = sizeof(struct walk_play_options),
	.figures = &walk_figures,
	.world_bytes = sizeof(struct wp),
	.limit_ps = LIMIT_PS,
	.has_history = true,
	.model = LIN_MODEL_KV,
	.open = open_world,
	.judge = judge,
	.close = close_world,
};
