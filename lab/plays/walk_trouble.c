/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in the play "walk", and the generations of its region. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "rig/tor_net.h"
#include "sim/fiber.h"
#include "walk_play_priv.h"

enum {
	EVENTS_MAX = 6,
	PAUSE_US_MAX = 400,
	REVOKED_US = 300, /* how long nothing may move */
	FRAMES_MAX = 200,
	/* Nodes look at their switch twice a second. */
	NOTICED_MS = 800,
};

/* ---- generations --------------------------------------------------------- */

static int make_region(struct wp *p)
{
	struct wp_hand *k = &p->keeper;
	int err;

	p->size_bytes = WP_STRIPES * WP_STRIPE;
	err = walk_region_create(k->rack, "live", p->size_bytes,
				 p->nodes.count);
	if (!err)
		err = wp_hand_attach(k, "live", p->nodes.count, false);
	return err;
}

int wp_generation_begin(struct wp *p)
{
	struct wp_generation *g = p->now;
	int err = make_region(p);

	if (err)
		return err;
	p->keeper.g = g;
	wp_field_fill(p, &p->keeper);
	g->is_ready = true;
	return 0;
}

/* The region is about to go: from here on everything may fail. */
static void generation_end(struct wp *p)
{
	p->now->is_lost = true;
	p->now->is_ready = false;
	p->now++;
	p->now->number = p->now[-1].number + 1;
}

static void begin_again(struct wp *p)
{
	int err = wp_generation_begin(p);

	if (err)
		play_fail(&p->run, "the region cannot be made again: %d, %s",
			  err, error_last());
}

/* Visits that walks under way may have made. */
static unsigned under_way(const struct wp *p, unsigned station)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WP_WALKERS; i++)
		for (unsigned k = 0; k < WP_DEPTH; k++) {
			const struct wp_op *o = &p->walker[i].op[k];

			n += o->busy && o->g == p->now && o->kind == WP_ADD &&
			     station >= o->key && station <= o->last;
		}
	return n;
}

void wp_check_visits(struct wp *p)
{
	const struct wp_generation *g = p->now;

	for (unsigned i = 0; i < WP_LIST; i++) {
		uint64_t have = wp_hand_look(&p->keeper, p->list[i])->tally;
		uint64_t most = g->acked[i] + g->unknown[i] + under_way(p, i);

		if (have < g->acked[i] || have > most)
			play_fail(&p->run,
				  "station %u was visited %" PRIu64
				  " times, but walks that ended well visited "
				  "it %u times, and others at most %" PRIu64,
				  i, have, g->acked[i], most - g->acked[i]);
	}
}

/* ---- one thing each ------------------------------------------------------ */

static void drop_program(struct wp *p, struct rng *r)
{
	const struct wp_walker *w = &p->walker[0];
	char path[64];
	struct aq_walk_info info;
	json_t *reply;
	int err;

	if (!w->walk[0][0])
		return;
	aq_walk_info(w->walk[sim_rand_below(r, WP_KINDS)][0], &info);
	snprintf(path, sizeof(path), "/v1/walks/%016" PRIx64, info.hash);
	err = walk_rack_ask(p->keeper.rack, sim_rand_below(r, p->nodes.count),
			    "DELETE", path, NULL, &reply);
	json_decref(reply);
	p->n->dropped += !err;
}

static void resize(struct wp *p)
{
	int err;

	wp_check_visits(p);
	wp_hand_detach(&p->keeper);
	p->resizes++;
	p->is_resizing = true;
	p->size_bytes += p->nodes.count * WP_STRIPE;
	err = walk_region_resize(p->keeper.rack, "live", p->size_bytes,
				 p->nodes.count);
	p->is_resizing = false;
	if (!err)
		err = wp_hand_attach(&p->keeper, "live", p->nodes.count, false);
	if (err) {
		play_fail(&p->run, "no resize: %d, %s", err, error_last());
		return;
	}
	wp_check_visits(p);
	p->n->resizes++;
}

static void replace(struct wp *p)
{
	wp_check_visits(p);
	wp_hand_detach(&p->keeper);
	generation_end(p);
	walk_region_delete(p->keeper.rack, "live", p->nodes.count);
	begin_again(p);
	p->n->replaced++;
}

static void kill_node(struct wp *p, struct rng *r)
{
	unsigned i = sim_rand_below(r, p->nodes.count);

	wp_check_visits(p);
	wp_hand_detach(&p->keeper);
	generation_end(p);
	p->guest_lost |= i == 0;
	walk_node_kill(&p->nodes, i);
	/* Peers on one machine learn it at once, others by their timers. */
	if (sim_rand_below(r, 2))
		rig_host_tell_gone(p->nodes.node[i].host);
	sim_fiber_sleep_ps(p->run.sim, sim_rand_below(r, 50000) * SIM_US / 10);
	/* Now and then for longer than anybody waits. */
	if (sim_rand_below(r, 8) == 0)
		sim_fiber_sleep_ps(p->run.sim,
				   2 * WALK_DEADLINE_MS * 1000ull * SIM_US);
	p->n->nodes_killed++;
	if (walk_node_start(&p->nodes, i)) {
		play_fail(&p->run, "a node cannot start: %s", error_last());
		return;
	}
	walk_region_delete(p->keeper.rack, "live", p->nodes.count);
	begin_again(p);
}

/* No node has a connection of that process. */
static void check_forgotten(struct wp *p, const char *name)
{
	for (unsigned i = 0; i < p->nodes.count; i++) {
		json_t *reply, *row;
		size_t k;

		if (walk_rack_ask(p->keeper.rack, i, "GET", "/v1/connections",
				  NULL, &reply))
			continue;
		json_array_foreach(json_object_get(reply, "connections"), k,
				   row)
		{
			const char *client = json_string_value(
				json_object_get(row, "client"));

			if (client && strcmp(client, name) == 0)
				play_fail(&p->run,
					  "node %u keeps a connection of %s, "
					  "which is dead",
					  i, name);
		}
		json_decref(reply);
	}
}

/* Its walks may have been executed, or not. */
static void abandon(struct wp *p, struct wp_walker *w)
{
	for (unsigned k = 0; k < WP_DEPTH; k++) {
		struct wp_op *o = &w->op[k];

		if (!o->busy)
			continue;
		if (o->kind == WP_ADD)
			for (unsigned i = o->key; i <= o->last; i++)
				o->g->unknown[i]++;
		if (o->op >= 0)
			lin_return(p->run.history, o->op, LIN_INFO,
				   LIN_SAID_NOTHING, lin_nil(),
				   play_now_ns(&p->run));
	}
}

static void kill_client(struct wp *p, struct rng *r)
{
	struct wp_walker *w = &p->walker[sim_rand_below(r, WP_WALKERS)];
	struct rig_host *host = w->host;

	while (!w->done && walk_rack_is_asking(w->rack))
		sim_fiber_sleep_ps(p->run.sim, SIM_US);
	if (w->done)
		return;
	rig_host_kill(host);
	abandon(p, w);
	wp_walker_close(w);
	rig_host_tell_gone(host);
	for (unsigned i = 0; i < p->nodes.count; i++)
		while (p->nodes.node[i].busy)
			sim_fiber_sleep_ps(p->run.sim, SIM_US);
	walk_nodes_tick(&p->nodes);
	check_forgotten(p, host->name);
	p->n->clients_killed++;
	if (wp_walker_open(w))
		play_fail(&p->run, "a client cannot come back: %s",
			  error_last());
}

/* From the moment when its key is taken back the guest changes nothing. */
static void revoke(struct wp *p)
{
	uint64_t before;
	int err;

	if (p->guest_done || p->guest_lost ||
	    walk_rack_is_asking(p->guest.rack))
		return;
	walk_rack_bar(p->guest.rack, true);
	p->is_revoked = true;
	err = walk_rack_revoke(p->keeper.rack, p->guest.rack);
	before = wp_guest_visits(p);
	sim_fiber_sleep_ps(p->run.sim, REVOKED_US * SIM_US);
	if (wp_guest_visits(p) != before)
		play_fail(&p->run,
			  "after its key was taken back, a walk made %" PRIu64
			  " iterations",
			  wp_guest_visits(p) - before);
	walk_rack_bar(p->guest.rack, false);
	p->n->revoked += !err;
}

/* At one of the next frames: before it, in the middle of it, or after it. */
static void on_restarted(void *ctx)
{
	struct wp *p = ctx;

	p->n->switch_killed++;
}

/* A new switch knows nothing, and carries nothing on, until nodes have noticed:
 * walks go on by way of their clients. */
static void kill_switch(struct wp *p, struct rng *r)
{
	if (!p->nodes.tor)
		return;
	rig_tor_restart_at(p->nodes.tor,
			   rig_tor_frames(p->nodes.tor) +
				   sim_rand_range(r, 1, FRAMES_MAX),
			   sim_rand_below(r, RIG_KILL_WHENS), on_restarted, p);
	if (sim_rand_below(r, 2))
		return;
	sim_fiber_sleep_ps(p->run.sim, PAUSE_US_MAX * SIM_US);
	p->is_paused = true;
	sim_fiber_sleep_ps(p->run.sim, NOTICED_MS * SIM_MS);
	p->is_paused = false;
}

/* ---- all of it ----------------------------------------------------------- */

void wp_trouble_main(void *arg)
{
	struct wp *p = arg;
	struct rng r;
	unsigned events;

	sim_rand_init(&r, p->run.opt->seed, 77);
	events = sim_rand_below(&r, EVENTS_MAX + 1);
	for (unsigned i = 0; i < events; i++) {
		sim_fiber_sleep_ps(p->run.sim,
				   sim_rand_below(&r, PAUSE_US_MAX) * SIM_US);
		switch (sim_rand_below(&r, 12)) {
		case 0:
		case 1:
			drop_program(p, &r);
			break;
		case 2:
		case 3:
			resize(p);
			break;
		case 4:
			replace(p);
			break;
		case 5:
			kill_node(p, &r);
			break;
		case 6:
		case 7:
			kill_client(p, &r);
			break;
		case 8:
		case 9:
			kill_switch(p, &r);
			break;
		default:
			revoke(p);
		}
	}
	p->trouble_done = true;
}
