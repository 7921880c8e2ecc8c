/* SPDX-License-Identifier: Apache-2.0 */
/* The play "swordbox": its world, its control plane, its end. */
#include "sword_play.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "rig/tor_sword.h"
#include "sim/fiber.h"
#include "sword_play_priv.h"
#include "wire/wire.h"

#define LIMIT_PS (1500 * SIM_MS)

void sp_fail(struct sp *p, const char *fmt, ...)
{
	va_list ap;

	if (p->res->violations++)
		return;
	va_start(ap, fmt);
	vsnprintf(p->res->first, sizeof(p->res->first), fmt, ap);
	va_end(ap);
}

/* ---- the control plane ---------------------------------------------------
 */

static const uint8_t *host_ip(struct scenario_host *h)
{
	return sim_port_addr(sim_host_port(h->sim_host))->ip;
}

int sp_declare_conn(struct sp *p, const struct scenario_pair *pair, bool moved)
{
	char server[INET6_ADDRSTRLEN], client[INET6_ADDRSTRLEN];

	scenario_ip_text(host_ip(p->server), server);
	scenario_ip_text(host_ip(pair->near), client);
	return scenario_tor_tell(
		p->tor,
		"swordbox conn server=%s client=%s client_qpn=%u "
		"server_qpn=%u psn=%u%s",
		server, client, pair->near_qp->qp_num, pair->far_qp->qp_num,
		pair->near_psn, moved ? " moved=1" : "");
}

void sp_end_conn(struct sp *p, uint8_t client_ip[16], uint32_t client_qpn,
		 uint32_t server_qpn)
{
	char server[INET6_ADDRSTRLEN], client[INET6_ADDRSTRLEN];

	scenario_ip_text(host_ip(p->server), server);
	scenario_ip_text(client_ip, client);
	/* What is on its way keeps it for a while; nobody uses it again. */
	(void)!scenario_tor_tell(
		p->tor,
		"swordbox end server=%s client=%s client_qpn=%u "
		"server_qpn=%u",
		server, client, client_qpn, server_qpn);
}

/* The old shared connection ends before the switch hears of a new one. */
static int declare_all(struct sp *p)
{
	uint32_t psn = (uint32_t)sim_rand_u64(&p->rand) & WIRE_PSN_MASK;
	uint32_t own_qpn = 0x800000 + sim_rand_below(&p->rand, 0x10000);
	char server[INET6_ADDRSTRLEN], own[INET6_ADDRSTRLEN];
	uint8_t own_ip[16];
	int err;

	if (p->shared)
		(void)ibv_destroy_qp(p->shared);
	p->shared = NULL;
	memcpy(own_ip, host_ip(p->server), 16);
	own_ip[15] = 250;
	scenario_ip_text(host_ip(p->server), server);
	scenario_ip_text(own_ip, own);
	err = scenario_sword_shared(p->server, own_ip, own_qpn, psn,
				    &p->shared);
	if (!err)
		err = scenario_tor_tell(
			p->tor,
			"swordbox server ip=%s own_ip=%s qpn=%u own_qpn=%u "
			"psn=%u",
			server, own, p->shared->qp_num, own_qpn, psn);
	if (!err)
		err = scenario_tor_tell(
			p->tor,
			"swordbox region server=%s rkey=%u va=%" PRIu64
			" len=%u",
			server, p->region->rkey, p->region->addr, SP_WORDS * 8);
	if (!err)
		err = scenario_tor_tell(
			p->tor,
			"swordbox region server=%s rkey=%u va=%" PRIu64
			" len=%u plain=1",
			server, p->region->rkey, p->region->addr + SP_DATA * 8,
			(SP_ALL - SP_DATA) * 8);
	return err ? err : scenario_tor_tell(p->tor, "swordbox ready");
}

/* ---- what goes wrong ----------------------------------------------------- */

static void director(void *arg)
{
	struct sp *p = arg;
	struct sim_faults none = {0};
	unsigned restarts = 0;

	if (!p->opt->no_restart && sim_rand_below(&p->rand, 2))
		restarts = sim_rand_range(&p->rand, 1, 3);
	while (restarts-- && p->running) {
		sim_fiber_sleep_ps(scenario_stage_sim(p->stage),
				   sim_rand_range(&p->rand, 50, 3000) * SIM_US);
		if (scenario_tor_restart(p->tor)) {
			sp_fail(p, "the switch cannot be started again");
			return;
		}
		p->epoch++;
		p->res->counts.restarts++;
		sim_fiber_sleep_ps(scenario_stage_sim(p->stage),
				   sim_rand_range(&p->rand, 1, 500) * SIM_US);
		if (declare_all(p)) {
			sp_fail(p, "declaring again: %s", error_last());
			return;
		}
	}
	sim_fiber_sleep_ps(scenario_stage_sim(p->stage),
			   sim_rand_range(&p->rand, 1, 20) * SIM_MS);
	for (unsigned i = 0;; i++) {
		struct sim_port *port =
			sim_net_port(scenario_stage_net(p->stage), i);

		if (!port)
			break;
		sim_port_set_faults(port, &none);
	}
}

/* ---- the end ------------------------------------------------------------- */

static void add_program_counts(struct sp *p)
{
	struct sword_play_counts *c = &p->res->counts;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct json_out out;

	if (!f)
		return;
	json_out_init(&out, f);
	json_out_object(&out, NULL);
	tor_report(scenario_tor_get(p->tor), &out);
	json_out_close(&out);
	if (json_out_end(&out) == 0 && fclose(f) == 0) {
		c->replaced += sp_number(text, "replaced");
		c->failed += sp_number(text, "failed");
		c->repeated += sp_number(text, "repeated");
		c->coalesced += sp_number(text, "coalesced");
		c->refused += sp_number(text, "refused_order");
		c->shared_resent += sp_number(text, "shared_resent");
		c->moved += sp_number(text, "moved_reads") +
			    sp_number(text, "moved_writes") +
			    sp_number(text, "moved_atomics");
		c->gaps += sp_number(text, "gaps");
	}
	free(text);
}

uint64_t sp_number(const char *json, const char *key)
{
	char quoted[64];
	const char *at;

	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	at = strstr(json, quoted);
	return at ? strtoull(at + strlen(quoted), NULL, 10) : 0;
}

static void finish(struct sp *p)
{
	const struct sim_net_stats *st =
		sim_net_stats(scenario_stage_net(p->stage));
	struct sim *sim = scenario_stage_sim(p->stage);
	struct sword_play_counts *c = &p->res->counts;
	struct lin_result lin;
	int err;

	if (p->running)
		sp_fail(p, "%u clients have not finished", p->running);
	err = lin_check(p->history, LIN_MODEL_KV, NULL, &lin);
	if (err)
		sp_fail(p, "the checker failed: %d", err);
	else if (lin.verdict == LIN_VIOLATED) {
		sp_fail(p, "not linearizable: %s", lin.text);
		if (p->opt->trace)
			lin_show_key(p->history, lin.key, lin.op, 400,
				     p->opt->trace);
	} else if (lin.verdict == LIN_UNKNOWN)
		sp_fail(p, "the checker gave up");
	c->checked = lin_history_op_count(p->history);
	c->steps = lin.steps;
	c->frames = st->sent;
	c->lost = st->lost;
	c->duplicated = st->duplicated;
	c->reordered = st->reordered;
	c->corrupted = st->corrupted;
	c->events = sim_event_count(sim);
	c->virtual_us = sim_now_ns(sim) / 1000;
	p->res->hash = sim_trace_hash(sim);
	add_program_counts(p);
}

/* ---- the world ----------------------------------------------------------- */

static int make_hosts(struct sp *p)
{
	unsigned hosts = sim_rand_range(&p->rand, 1, 3);
	int err = scenario_host_add(p->stage, "server", &p->server);

	if (!err)
		err = scenario_region_create(p->server, SP_ALL * 8, false,
					     &p->region);
	for (unsigned i = 0; !err && i < hosts; i++)
		err = scenario_host_add(p->stage, "client", &p->hosts[i]);
	p->host_count = hosts;
	return err;
}

static int make_switch(struct sp *p)
{
	static const char lossy[] = "fault:loss=10%,only=write";
	struct scenario_tor_config cfg = {0};

	snprintf(p->program, sizeof(p->program), "swordbox:rto_us=500");
	/* On both sides of it, and nowhere else. */
	if (p->is_gappy)
		cfg.programs[cfg.program_count++] = lossy;
	cfg.programs[cfg.program_count++] = p->program;
	if (p->is_gappy)
		cfg.programs[cfg.program_count++] = lossy;
	return scenario_tor_create(scenario_stage_net(p->stage), &cfg, &p->tor);
}

static int make_world(struct sp *p)
{
	struct scenario_stage_config cfg = {.seed = p->opt->seed,
					    .trace = p->opt->trace};
	struct sim_rand *r = &p->rand;
	int err;

	sim_rand_init(r, p->opt->seed, 99);
	cfg.link.latency_ps = sim_rand_range(r, 300, 3000) * SIM_NS;
	cfg.link.bits_per_s = 25000000000ull;
	p->is_gappy = p->opt->seed % 4 == 3;
	cfg.link.faults.loss_ppm = sim_rand_below(r, 30000);
	cfg.link.faults.dup_ppm = sim_rand_below(r, 10000);
	cfg.link.faults.reorder_ppm = sim_rand_below(r, 20000);
	cfg.link.faults.reorder_max_ps = 20 * SIM_US;
	cfg.link.faults.corrupt_ppm = sim_rand_below(r, 5000);
	if (p->is_gappy)
		cfg.link.faults = (struct sim_faults){0};
	err = scenario_stage_create(&cfg, &p->stage);
	if (err)
		return err;
	sim_net_hide_addresses(scenario_stage_net(p->stage));
	err = lin_history_create(&p->history);
	if (!err) {
		lin_history_set_initial(p->history, lin_int(0));
		err = make_hosts(p);
	}
	if (!err)
		err = make_switch(p);
	if (!err)
		err = declare_all(p);
	if (!err)
		err = sp_clients_start(p);
	return err ? err
		   : sim_fiber_spawn(scenario_stage_sim(p->stage), "director",
				     director, p);
}

const enum plant sword_play_bugs[] = {
	PLANT_early_issue, PLANT_early_answer, PLANT_repeat,
	PLANT_fail_swaps,  PLANT_blind_write,  PLANT_skip_lost,
	PLANT_pass_reads,  PLANT_own_path,     PLANT_move_gaps,
	PLANT_move_stale,  PLANT_move_nak,     PLANT_move_twice,
	PLANT_none,
};

int sword_play_run(const struct sword_play_options *opt,
		   struct sword_play_result *res)
{
	struct sp *p = calloc(1, sizeof(*p));
	int err;

	plant_set(opt->bug);
	memset(res, 0, sizeof(*res));
	if (!p)
		return -ENOMEM;
	p->opt = opt;
	p->res = res;
	err = make_world(p);
	if (!err) {
		(void)sim_run_until(scenario_stage_sim(p->stage), LIMIT_PS);
		finish(p);
	}
	if (p->shared)
		(void)ibv_destroy_qp(p->shared);
	sp_clients_stop(p);
	if (p->tor)
		scenario_tor_destroy(p->tor);
	if (p->stage)
		scenario_stage_destroy(p->stage);
	lin_history_destroy(p->history);
	free(p);
	return err;
}
