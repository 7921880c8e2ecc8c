/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One point of figure 2.9: threads compare and swap one word, as those do who
 * all want the same lock, with one request each on its way: as it is, replaced
 * in the switch, or moved to the shared connection as well.
 */
#include <errno.h>
#include <stdlib.h>

#include "rig/tor_sword.h"
#include "sim/fiber.h"
#include "sim/model.h"
#include "vfig_priv.h"

enum {
	BUFFER = 64,
	REGION = 4096,
};

struct cas;

struct cas_thread {
	struct cas *f;
	struct client_link *link;
	struct rig_trip trip;
	uint64_t done;
};

struct cas {
	const struct vfig_config *cfg;
	struct vfig_result *res;
	struct rig_stage *stage;
	struct rig_host *node;
	struct rig_host *hosts[VFIG_HOSTS];
	struct rig_region *region;
	struct rig_sword sword;
	struct cas_thread *thread;
	struct hist latency;
	bool is_measuring;
};

static bool is_replaced(const struct cas *f)
{
	return f->cfg->system != VFIG_CAS;
}

/* ---- threads ---------------------------------------------------------------
 */

static void thread_main(void *arg)
{
	struct cas_thread *t = arg;
	struct sim *sim = rig_stage_sim(t->f->stage);

	for (uint64_t turn = 0;; turn++) {
		uint64_t start = sim_now_ns(sim);

		/* Takes the lock and gives it back, by turns, whether it has
		 * it or not. */
		rig_trip_add_cas(&t->trip, 0, 0, turn & 1, ~turn & 1);
		if (rig_trip_go(&t->trip)) {
			t->f->res->errors++;
			return;
		}
		if (!t->f->is_measuring)
			continue;
		t->done++;
		hist_record(&t->f->latency, sim_now_ns(sim) - start);
	}
}

static int start_thread(struct cas *f, unsigned i)
{
	struct client_link_options o = {.send_depth = 4};
	struct rig_host *host = f->hosts[i % VFIG_HOSTS];
	struct cas_thread *t = &f->thread[i];
	int err = rig_link_open(host, f->region, &o, &t->link);

	t->f = f;
	if (!err)
		err = rig_trip_open(&t->trip, t->link, f->region, BUFFER);
	if (!err && is_replaced(f))
		err = rig_sword_conn(
			&f->sword, host, t->link,
			f->cfg->system == VFIG_CAS_MOVED ? " moved=1" : "");
	return err ? err : rig_host_spawn(host, "thread", thread_main, t);
}

/* ---- all of it ---------------------------------------------------------- */

static void measure(void *arg)
{
	struct cas *f = arg;
	struct sim *sim = rig_stage_sim(f->stage);
	struct sim_port *port = sim_host_port(f->node->sim_host);
	uint64_t before;

	sim_fiber_sleep_ps(sim, f->cfg->warm_ps);
	before = sim_port_bytes(port);
	f->is_measuring = true;
	sim_fiber_sleep_ps(sim, f->cfg->span_ps);
	f->is_measuring = false;
	for (unsigned i = 0; i < f->cfg->threads; i++)
		f->res->done += f->thread[i].done;
	f->res->mops = (double)f->res->done * 1e6 / (double)f->cfg->span_ps;
	f->res->success = 1;
	if (f->res->done)
		f->res->bytes = (double)(sim_port_bytes(port) - before) /
				(double)f->res->done;
	f->res->write_p50_us =
		(double)hist_percentile(&f->latency, HIST_MEDIAN) / 1e3;
	f->res->write_p99_us =
		(double)hist_percentile(&f->latency, HIST_P99) / 1e3;
	sim_stop(sim);
}

static int make_switch(struct cas *f)
{
	struct rig_tor_config none = {.program_count = 0};
	struct sim_net *net = rig_stage_net(f->stage);

	if (f->cfg->fabric && f->cfg->fabric->plug)
		return is_replaced(f) ? -EOPNOTSUPP : 0;
	if (f->cfg->on_core)
		f->sword.packet_ps = model_connectx5.switch_core_ps;
	return is_replaced(f) ? rig_sword_create(&f->sword, net, f->node,
						 f->region, "")
			      : rig_tor_create(net, &none, &f->sword.tor);
}

static int play(struct cas *f)
{
	struct rig_stage_config sc = {.seed = f->cfg->seed,
				      .hardware = true,
				      .fabric = f->cfg->fabric};
	int err = rig_stage_create(&sc, &f->stage);

	if (!err)
		err = rig_host_add(f->stage, "node", &f->node);
	if (!err)
		err = rig_region_create(f->node, REGION, f->cfg->in_device,
					&f->region);
	for (unsigned i = 0; !err && i < VFIG_HOSTS; i++)
		err = rig_host_add(f->stage, "machine", &f->hosts[i]);
	if (!err)
		err = make_switch(f);
	for (unsigned i = 0; !err && i < f->cfg->threads; i++)
		err = start_thread(f, i);
	if (!err)
		err = sim_fiber_spawn(rig_stage_sim(f->stage), "measure",
				      measure, f);
	if (!err)
		(void)sim_run_until(rig_stage_sim(f->stage), SIM_S);
	return err;
}

int vfig_cas_run(const struct vfig_config *cfg, struct vfig_result *res)
{
	struct cas f = {.cfg = cfg, .res = res};
	int err;

	hist_init(&f.latency);
	f.thread = calloc(cfg->threads, sizeof(*f.thread));
	err = f.thread ? play(&f) : -ENOMEM;
	if (f.stage)
		sim_fiber_kill_all(rig_stage_sim(f.stage));
	for (unsigned i = 0; f.thread && i < cfg->threads; i++) {
		rig_trip_close(&f.thread[i].trip);
		if (f.thread[i].link)
			rig_link_close(f.thread[i].link);
	}
	rig_sword_destroy(&f.sword);
	rig_stage_destroy(f.stage);
	free(f.thread);
	return err;
}
