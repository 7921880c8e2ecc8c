/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who hurts the play: kills engines at random times and at chosen doorbells,
 * replaces engines that run on, kills a memory node or an application; and who
 * plays the rack's controller: sees which sessions serve no more and has
 * another engine follow.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/error.h"
#include "offload_play_priv.h"

enum {
	WATCH_NS = 50000, /* how often the controller looks */
	INCIDENTS_MAX = 6,
	DOORBELLS_MAX = 150,
	POINT_WAIT_NS = 5000000,
	FINISH_NS = 2000000000, /* after healing everything ends by then */
};

#define HELD_UP_MAX_PS (1000 * SIM_US)

int op_engine_start(struct op *p, struct rig_engine **out)
{
	const struct offload_play_options *o =
		(const struct offload_play_options *)p->run.opt;
	char name[RIG_NAME_MAX];

	if (o->engine == OFFLOAD_SWITCH ||
	    (o->engine == OFFLOAD_BOTH && sim_rand_below(&p->run.rand, 2)))
		return rig_engine_open_switch(&p->rig, out);
	snprintf(name, sizeof(name), "engine%u", p->engines++);
	return rig_engine_open(&p->rig, name, NULL, &p->engine_config, out);
}

static void nap(struct op *p, uint32_t min_ns, uint32_t max_ns)
{
	sim_fiber_sleep_ns(p->run.sim,
			   sim_rand_range(&p->run.rand, min_ns, max_ns));
}

static void attach(struct op *p, struct rig_app *a)
{
	int err = rig_attach(p->engine, a);

	p->n->takeovers++;
	if (err)
		play_fail(&p->run, "a session could not be added: %s (%d)",
			  error_last(), -err);
}

/* A new engine takes everything over, one application thread after another. */
static void replace(struct op *p)
{
	int err = op_engine_start(p, &p->engine);

	if (err) {
		play_fail(&p->run, "no engine could be started: error %d",
			  -err);
		return;
	}
	for (uint32_t i = 0; i < p->thread_count; i++) {
		if (p->thread[i]->app->host->killed)
			continue;
		attach(p, p->thread[i]->app);
		if (!p->healed && sim_rand_below(&p->run.rand, 2))
			nap(p, 10, 5000);
	}
}

/* ---- the controller ----------------------------------------------------- */

static bool all_done(const struct op *p)
{
	for (uint32_t i = 0; i < p->thread_count; i++) {
		if (!p->thread[i]->done)
			return false;
	}
	return true;
}

/* Sessions that ended with a fault begin anew; those of a dead engine too. */
static void watch(struct op *p)
{
	if (rig_engine_is_dead(p->engine)) {
		if (!p->healed)
			nap(p, 1000, 2000000);
		replace(p);
	}
	for (uint32_t i = 0; i < p->thread_count; i++) {
		struct rig_app *a = p->thread[i]->app;

		if (!a->host->killed && (a->session->engine != p->engine ||
					 rig_session_err(a->session)))
			attach(p, a);
	}
}

/* ---- incidents ---------------------------------------------------------- */

static void kill_engine(struct op *p)
{
	p->n->kills++;
	rig_engine_kill(p->engine);
}

static void kill_at_point(struct op *p)
{
	struct rig_engine *e = p->engine;
	uint32_t at = sim_rand_range(&p->run.rand, 1, DOORBELLS_MAX);

	rig_engine_kill_at(e, at, sim_rand_below(&p->run.rand, RIG_KILL_WHENS));
	for (uint64_t t = 0;
	     t < POINT_WAIT_NS && !rig_engine_is_dead(e) && !all_done(p);
	     t += WATCH_NS)
		sim_fiber_sleep_ns(p->run.sim, WATCH_NS);
	if (e->host)
		e->host->meter.kill_at = 0;
	p->n->point_kills += rig_engine_is_dead(e);
}

static void set_node_faults(struct op *p, const struct sim_faults *f)
{
	for (unsigned i = 0; i < p->rig.node_count; i++)
		sim_port_set_faults(
			sim_host_port(p->rig.node[i].host->sim_host), f);
}

/* A switch has no cable of its own to cut, and makes nothing again once the
 * rings are closed to it. But what it has sent may hang in the network until
 * another one has written the same place. */
static void hold_up_frames(struct op *p)
{
	struct sim_faults slow = p->faults;

	slow.reorder_ppm = 300000;
	slow.reorder_max_ps = HELD_UP_MAX_PS;
	set_node_faults(p, &slow);
	nap(p, 1000, 60000);
	set_node_faults(p, &p->faults);
}

/* The old one is not dead: it was slow, or cut off for a while. */
static void replace_running(struct op *p)
{
	struct rig_engine *old = p->engine;
	struct sim_port *port =
		old->host ? sim_host_port(old->host->sim_host) : NULL;
	bool cut = port && sim_rand_below(&p->run.rand, 2) == 0;

	p->n->zombies++;
	if (cut) {
		sim_port_set_down(port, true);
		nap(p, 1000, 300000);
	}
	if (!port)
		hold_up_frames(p);
	replace(p);
	if (cut) {
		nap(p, 1000, 300000);
		sim_port_set_down(port, false);
	}
}

static void kill_node(struct op *p)
{
	uint32_t i = sim_rand_below(&p->run.rand, p->rig.node_count);

	if (!p->may_lose_node || p->n->node_deaths)
		return;
	p->n->node_deaths++;
	rig_host_kill(p->rig.node[i].host);
}

static void kill_app(struct op *p)
{
	struct rig_host *h = p->host[p->host_count - 1];

	if (p->host_count == 1 || h->killed)
		return;
	p->n->app_deaths++;
	rig_host_kill(h);
	for (uint32_t i = 0; i < p->thread_count; i++) {
		if (p->thread[i]->app->host == h)
			op_thread_died(p->thread[i]);
	}
}

static void incident(struct op *p)
{
	static void (*const kinds[])(struct op *) = {
		kill_engine,	 kill_at_point, kill_at_point, replace_running,
		replace_running, kill_node,	kill_node,     kill_app,
	};

	nap(p, 1000, 800000);
	kinds[sim_rand_below(&p->run.rand, ARRAY_LEN(kinds))](p);
	nap(p, 100, 300000);
	watch(p);
}

static void heal(struct op *p)
{
	static const struct sim_faults none;

	p->healed = true;
	for (unsigned i = 0; i < p->host_count; i++)
		sim_port_set_faults(sim_host_port(p->host[i]->sim_host), &none);
	set_node_faults(p, &none);
	for (unsigned i = 0; i < p->rig.engine_count; i++)
		if (p->rig.engine[i]->host)
			sim_port_set_faults(
				sim_host_port(p->rig.engine[i]->host->sim_host),
				&none);
	watch(p);
}

void op_fault_main(void *arg)
{
	struct op *p = arg;
	uint32_t incidents =
		p->point ? 0 : sim_rand_range(&p->run.rand, 2, INCIDENTS_MAX);
	uint64_t end_ns;

	for (uint32_t i = 0; i < incidents && !all_done(p); i++)
		incident(p);
	if (!p->point)
		heal(p);
	end_ns = sim_now_ns(p->run.sim) + FINISH_NS;
	while (!all_done(p) && sim_now_ns(p->run.sim) < end_ns) {
		sim_fiber_sleep_ns(p->run.sim, WATCH_NS);
		watch(p);
	}
	for (uint32_t i = 0; i < p->thread_count; i++) {
		const struct op_thread *t = p->thread[i];

		if (!t->done)
			play_fail(&p->run,
				  "thread %u did not finish in %d s after "
				  "healing: %u requests under way, %u to "
				  "come",
				  i, FINISH_NS / 1000000000,
				  offload_ring_pending(&t->app->ring), t->left);
	}
	sim_stop(p->run.sim);
}
