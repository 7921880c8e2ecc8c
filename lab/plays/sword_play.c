/* SPDX-License-Identifier: Apache-2.0 */
/* The play "swordbox": its world, its control plane, its end. */
#include "sword_play.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "rig/tor_sword.h"
#include "sim/fiber.h"
#include "sword_play_priv.h"
#include "wire/wire.h"

/* ---- the control plane -------------------------------------------------- */

static const uint8_t *host_ip(struct rig_host *h)
{
	return sim_port_addr(sim_host_port(h->sim_host))->ip;
}

int sp_declare_conn(struct sp *p, const struct rig_pair *pair, bool moved)
{
	char server[INET6_ADDRSTRLEN], client[INET6_ADDRSTRLEN];

	rig_ip_text(host_ip(p->server), server);
	rig_ip_text(host_ip(pair->near), client);
	return rig_tor_tell(p->tor,
			    "swordbox conn server=%s client=%s client_qpn=%u "
			    "server_qpn=%u psn=%u%s",
			    server, client, pair->near_qp->qp_num,
			    pair->far_qp->qp_num, pair->near_psn,
			    moved ? " moved=1" : "");
}

void sp_end_conn(struct sp *p, uint8_t client_ip[16], uint32_t client_qpn,
		 uint32_t server_qpn)
{
	char server[INET6_ADDRSTRLEN], client[INET6_ADDRSTRLEN];

	rig_ip_text(host_ip(p->server), server);
	rig_ip_text(client_ip, client);
	/* What is on its way keeps it for a while; nobody uses it again. */
	(void)!rig_tor_tell(p->tor,
			    "swordbox end server=%s client=%s client_qpn=%u "
			    "server_qpn=%u",
			    server, client, client_qpn, server_qpn);
}

/* The old shared connection ends before the switch hears of a new one. */
static int declare_all(struct sp *p)
{
	uint32_t psn = (uint32_t)rng_u64(&p->run.rand) & WIRE_PSN_MASK;
	uint32_t own_qpn = 0x800000 + sim_rand_below(&p->run.rand, 0x10000);
	char server[INET6_ADDRSTRLEN], own[INET6_ADDRSTRLEN];
	uint8_t own_ip[16];
	int err;

	if (p->shared)
		(void)ibv_destroy_qp(p->shared);
	p->shared = NULL;
	memcpy(own_ip, host_ip(p->server), 16);
	own_ip[15] = 250;
	rig_ip_text(host_ip(p->server), server);
	rig_ip_text(own_ip, own);
	err = rig_sword_shared(p->server, own_ip, own_qpn, psn, &p->shared);
	if (!err)
		err = rig_tor_tell(
			p->tor,
			"swordbox server ip=%s own_ip=%s qpn=%u own_qpn=%u "
			"psn=%u",
			server, own, p->shared->qp_num, own_qpn, psn);
	if (!err)
		err = rig_tor_tell(
			p->tor,
			"swordbox region server=%s rkey=%u va=%" PRIu64
			" len=%u",
			server, p->region->rkey, p->region->addr, SP_WORDS * 8);
	if (!err)
		err = rig_tor_tell(
			p->tor,
			"swordbox region server=%s rkey=%u va=%" PRIu64
			" len=%u plain=1",
			server, p->region->rkey, p->region->addr + SP_DATA * 8,
			(SP_ALL - SP_DATA) * 8);
	return err ? err : rig_tor_tell(p->tor, "swordbox ready");
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
		if (rig_tor_restart(p->tor)) {
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

	n->replaced = rig_tor_count(p->tor, "replaced");
	n->failed = rig_tor_count(p->tor, "failed");
	n->repeated = rig_tor_count(p->tor, "repeated");
	n->coalesced = rig_tor_count(p->tor, "coalesced");
	n->refused = rig_tor_count(p->tor, "refused_order");
	n->shared_resent = rig_tor_count(p->tor, "shared_resent");
	n->moved = rig_tor_count(p->tor, "moved_reads") +
		   rig_tor_count(p->tor, "moved_writes") +
		   rig_tor_count(p->tor, "moved_atomics");
	n->gaps = rig_tor_count(p->tor, "gaps");
	return 0;
}

/* ---- the world ----------------------------------------------------------- */

static int make_hosts(struct sp *p)
{
	unsigned hosts = sim_rand_range(&p->run.rand, 1, 3);
	int err = rig_host_add(p->run.stage, "server", &p->server);

	if (!err)
		err = rig_region_create(p->server, SP_ALL * 8, false,
					&p->region);
	for (unsigned i = 0; !err && i < hosts; i++)
		err = rig_host_add(p->run.stage, "client", &p->hosts[i]);
	p->host_count = hosts;
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
	return rig_tor_create(p->run.net, &cfg, &p->tor);
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

	if (p->shared)
		(void)ibv_destroy_qp(p->shared);
	sp_clients_stop(p);
	if (p->tor)
		rig_tor_destroy(p->tor);
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
