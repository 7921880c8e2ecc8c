/* SPDX-License-Identifier: Apache-2.0 */
/* The play "swordbox": its world, its control plane, its end. */
#include "sword_play.h"

#include <errno.h>

#include "base/error.h"
#include "sim/fiber.h"
#include "sword_play_priv.h"
#include "wire/wire.h"

static int declare_all(struct sp *p)
{
	uint32_t psn = (uint32_t)rng_u64(&p->run.rand) & WIRE_PSN_MASK;

	return rig_sword_declare_as(
		&p->sword, 0x800000 + sim_rand_below(&p->run.rand, 0x10000),
		psn);
}

/* ---- what goes wrong ----------------------------------------------------- */

static void director(void *arg)
{
	struct sp *p = arg;
	struct sim_faults none = {0};
	unsigned restarts = 0;

	if (sim_rand_below(&p->run.rand, 2))
		restarts = sim_rand_range(&p->run.rand, 1, 3);
	while (restarts-- && p->run.running) {
		sim_fiber_sleep_ps(p->run.sim,
				   sim_rand_range(&p->run.rand, 50, 3000) *
					   SIM_US);
		if (rig_tor_restart(p->sword.tor)) {
			play_fail(&p->run,
				  "the switch cannot be started again");
			return;
		}
		p->n->restarts++;
		sim_fiber_sleep_ps(p->run.sim,
				   sim_rand_range(&p->run.rand, 1, 500) *
					   SIM_US);
		if (declare_all(p)) {
			play_fail(&p->run, "declaring again: %s", error_last());
			return;
		}
	}
	sim_fiber_sleep_ps(p->run.sim,
			   sim_rand_range(&p->run.rand, 1, 20) * SIM_MS);
	for (unsigned i = 0;; i++) {
		struct sim_port *port = sim_net_port(p->run.net, i);

		if (!port)
			break;
		sim_port_set_faults(port, &none);
	}
}

/* ---- the end ------------------------------------------------------------- */

/* What the switch's program has counted. */
static int judge(struct play_run *r)
{
	struct sp *p = (struct sp *)r;
	struct sword_play_counts *n = p->n;

	n->replaced = rig_tor_count(p->sword.tor, "replaced");
	n->failed = rig_tor_count(p->sword.tor, "failed");
	n->repeated = rig_tor_count(p->sword.tor, "repeated");
	n->coalesced = rig_tor_count(p->sword.tor, "coalesced");
	n->refused = rig_tor_count(p->sword.tor, "refused_order");
	n->shared_resent = rig_tor_count(p->sword.tor, "shared_resent");
	n->moved = rig_tor_count(p->sword.tor, "moved_reads") +
		   rig_tor_count(p->sword.tor, "moved_writes") +
		   rig_tor_count(p->sword.tor, "moved_atomics");
	n->gaps = rig_tor_count(p->sword.tor, "gaps");
	return 0;
}

/* ---- the world ----------------------------------------------------------- */

static int make_hosts(struct sp *p)
{
	unsigned hosts = sim_rand_range(&p->run.rand, 1, 3);
	struct rig_sword *s = &p->sword;
	int err = rig_host_add(p->run.stage, "server", &s->server);

	if (!err)
		err = rig_region_create(s->server, SP_ALL * 8, false,
					&s->region);
	for (unsigned i = 0; !err && i < hosts; i++)
		err = rig_host_add(p->run.stage, "client", &p->hosts[i]);
	p->host_count = hosts;
	s->words_bytes = SP_WORDS * 8;
	s->plain_at = SP_DATA * 8;
	return err;
}

static int make_switch(struct sp *p)
{
	static const char lossy[] = "fault:loss=10%,only=write";
	struct rig_tor_config cfg = {0};

	/* On both sides of it, and nowhere else. */
	if (p->is_gappy)
		cfg.programs[cfg.program_count++] = lossy;
	cfg.programs[cfg.program_count++] = "swordbox:rto_us=500";
	if (p->is_gappy)
		cfg.programs[cfg.program_count++] = lossy;
	return rig_tor_create(p->run.net, &cfg, &p->sword.tor);
}

static int open_world(struct play_run *run)
{
	struct sp *p = (struct sp *)run;
	struct rig_stage_config cfg = {0};
	struct rng *r = &run->rand;
	int err;

	p->n = (struct sword_play_counts *)run->res->count;
	sim_rand_init(r, run->opt->seed, 99);
	cfg.link.latency_ps = sim_rand_range(r, 300, 3000) * SIM_NS;
	cfg.link.bits_per_s = 25000000000ull;
	p->is_gappy = run->opt->seed % 4 == 3;
	cfg.link.faults = play_draw_faults(r, 30000, 10000, 20000, 5000);
	if (p->is_gappy)
		cfg.link.faults = (struct sim_faults){0};
	err = play_stage_open(run, &cfg);
	if (err)
		return err;
	lin_history_set_initial(run->history, lin_int(0));
	err = make_hosts(p);
	if (!err)
		err = make_switch(p);
	if (!err)
		err = declare_all(p);
	if (!err)
		err = sp_clients_start(p);
	return err ? err : sim_fiber_spawn(run->sim, "director", director, p);
}

static void close_world(struct play_run *r)
{
	struct sp *p = (struct sp *)r;

	sp_clients_stop(p);
	rig_sword_destroy(&p->sword);
}

/* ---- the table ----------------------------------------------------------- */

static const enum plant bugs[] = {
	PLANT_early_issue, PLANT_early_answer, PLANT_repeat,
	PLANT_fail_swaps,  PLANT_blind_write,  PLANT_skip_lost,
	PLANT_pass_reads,  PLANT_own_path,     PLANT_move_gaps,
	PLANT_move_stale,  PLANT_move_nak,     PLANT_move_twice,
	PLANT_none,
};

static const struct play_count counts[] = {SWORD_PLAY_COUNTS(PLAY_COUNT_ROW)};

const struct play sword_play = {
	.name = "swordbox",
	.summary = "atomics replaced by the switch, histories checked",
	.about =
		"Clients compare and swap, add, read and write shared words "
		"through a switch that replaces atomics, over a bad network "
		"and while the switch is killed and started again. The history "
		"must be linearizable.",
	.counts = counts,
	.count_count = ARRAY_LEN(counts),
	.bugs = bugs,
	.options_bytes = sizeof(struct play_options),
	.world_bytes = sizeof(struct sp),
	.limit_ps = 1500 * SIM_MS,
	.has_history = true,
	.model = LIN_MODEL_KV,
	.open = open_world,
	.judge = judge,
	.close = close_world,
};
