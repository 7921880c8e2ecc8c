/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "verbs": the client at each endpoint, the director that makes
 * trouble and heals it, and the final checks.
 */
#include "verbs_play.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "figures/commands.h"
#include "read_alone.h"
#include "verbs_priv.h"

enum {
	CHAOS_QUOTA = 90,
	FINAL_QUOTA = 12,
	DATAGRAM_STEPS = 60,
	READ_BYTES = 64,
};

#define CHAOS_LIMIT_PS (400 * SIM_MS)
#define HEAL_LIMIT_PS  (20 * SIM_S)
#define DATAGRAM_PS    (300 * SIM_US)

void vs_trace(struct vs *vs, const char *fmt, ...)
{
	va_list ap;

	if (!vs->run.opt->trace)
		return;
	fprintf(vs->run.opt->trace, "%12" PRIu64 "     client   ",
		sim_now_ns(vs->run.sim));
	va_start(ap, fmt);
	vfprintf(vs->run.opt->trace, fmt, ap);
	va_end(ap);
	fputc('\n', vs->run.opt->trace);
}

/* ---- the client at one end ---------------------------------------------- */

/* In the healed network: nothing of the chaos is left on this connection. */
static bool calm(const struct vs_ep *ep)
{
	return ep->sq_head == ep->sq_tail && !ep->failed_send &&
	       !ep->flush_seen && !ep->short_seen;
}

/* Is this end unfit for the strict part? It may have failed while it had
 * nothing outstanding to say so, or have receives that are too small. */
static bool broken(struct vs_ep *ep)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ep->failed_cause || ep->node->crashed)
		return true;
	for (uint32_t i = ep->rq_head; i != ep->rq_tail; i++) {
		if (ep->rq[i % VS_RQ_MAX].room < VS_MSG_MAX)
			return true;
	}
	if (ibv_query_qp(ep->qp, &attr, IBV_QP_STATE, &init))
		vs_fail(ep->s->vs, "%s: ibv_query_qp failed", ep->name);
	return attr.qp_state != IBV_QPS_RTS;
}

static void start_final(struct vs_conn *s)
{
	unsigned quota = FINAL_QUOTA;

	/* A limited number of RNR retries is no promise of delivery. */
	if (s->ep[0].rnr_retry < 7 || s->ep[1].rnr_retry < 7 ||
	    broken(&s->ep[0]) || broken(&s->ep[1])) {
		vs_conn_break(s);
		return;
	}
	s->final = true;
	vs_trace(s->vs, "connection %u: calm", s->index);
	for (unsigned i = 0; i < 2; i++) {
		s->ep[i].posted = 0;
		s->ep[i].quota = quota;
		s->ep[i].held = false;
	}
}

static bool finished(const struct vs_ep *ep)
{
	return ep->posted == ep->quota && ep->sq_head == ep->sq_tail &&
	       !ep->msg_first;
}

/* All went well; the last thing is a request that one end must refuse, behind
 * some that it owes answers to. The error ends the connection. */
static void start_parting(struct vs_conn *s)
{
	s->final = false;
	s->parting = true;
	vs_trace(s->vs, "connection %u: parting", s->index);
	vs_post_parting(&s->ep[sim_rand_below(&s->vs->run.rand, 2)]);
}

static void step_run(struct vs_ep *ep)
{
	struct vs_conn *s = ep->s;
	struct vs *vs = s->vs;

	vs_post_recvs(ep);
	if (s->parting)
		return;
	if (vs->phase == VS_HEALED && !s->final) {
		/* Healed before all was posted: one more request, signaled as
		 * every last one, tells that those before it are done. */
		if (ep->unsignaled && ep->posted < ep->quota) {
			ep->quota = ep->posted + 1;
			vs_post_sends(ep);
		}
		if (calm(ep) && (calm(ep->peer) || ep->peer->node->crashed))
			start_final(s);
		return;
	}
	if (ep->posted < ep->quota && sim_rand_below(&ep->rand, 3))
		vs_post_sends(ep);
	if (s->final) {
		if (finished(ep) && finished(ep->peer))
			start_parting(s);
	} else if (sim_rand_chance(&ep->rand, vs->break_ppm)) {
		ep->broke = true;
		vs_ep_fail_qp(ep);
		vs_conn_break(s);
	}
}

static void client(void *arg)
{
	struct vs_ep *ep = arg;
	struct vs *vs = ep->s->vs;

	while (!vs_over(vs) && !ep->node->crashed) {
		unsigned got = vs_poll(ep->node);

		if (vs_over(vs))
			break;
		if (ep->s->state == VS_RUN)
			step_run(ep);
		else if (ep->s->state == VS_DRAIN)
			vs_conn_drain(ep);
		else
			break;
		if (!got && sim_rand_below(&ep->rand, 2))
			env_relax(sim_host_env(ep->node->host));
		else
			sim_fiber_sleep_ns(
				vs->run.sim,
				sim_rand_range(&ep->rand, 50, 20000));
	}
	vs->run.running--;
}

static void datagrams(void *arg)
{
	struct vs_node *node = arg;
	struct vs *vs = node->vs;

	for (unsigned i = 0; i < DATAGRAM_STEPS && !vs_over(vs); i++) {
		if (node->crashed)
			break;
		vs_ud_step(node);
		sim_fiber_sleep_ps(vs->run.sim,
				   sim_rand_below(&vs->run.rand, 1000) *
					   (DATAGRAM_PS / 1000));
	}
	vs->run.running--;
}

/* ---- the director ------------------------------------------------------- */

static bool chaos_done(const struct vs *vs)
{
	for (unsigned i = 0; i < vs->conn_count; i++) {
		const struct vs_conn *s = &vs->conns[i];

		if (s->state == VS_DEAD)
			continue;
		for (unsigned side = 0; side < 2; side++) {
			if (s->ep[side].posted < s->ep[side].quota)
				return false;
		}
	}
	return true;
}

static struct vs_conn *any_conn(struct vs *vs)
{
	return &vs->conns[sim_rand_below(&vs->run.rand, vs->conn_count)];
}

static bool between(const struct vs_conn *s, const struct vs_node *a,
		    const struct vs_node *b)
{
	return (s->ep[0].node == a && s->ep[1].node == b) ||
	       (s->ep[0].node == b && s->ep[1].node == a);
}

static void cut_for_a_while(struct vs *vs)
{
	struct vs_conn *s = any_conn(vs);
	struct sim_port *a = sim_host_port(s->ep[0].node->host);
	struct sim_port *b = sim_host_port(s->ep[1].node->host);

	vs->n->cuts++;
	vs_trace(vs, "director: cut node %u from node %u", s->ep[0].node->index,
		 s->ep[1].node->index);
	for (unsigned i = 0; i < vs->conn_count; i++) {
		if (between(&vs->conns[i], s->ep[0].node, s->ep[1].node))
			vs->conns[i].was_cut = true;
	}
	sim_net_set_cut(a, b, true);
	sim_fiber_sleep_ps(vs->run.sim,
			   sim_rand_range(&vs->run.rand, 20, 8000) * SIM_US);
	sim_net_set_cut(a, b, false);
}

static void mark_broken(struct vs *vs, struct vs_node *at, struct vs_node *peer)
{
	for (unsigned i = 0; i < vs->conn_count; i++) {
		for (unsigned side = 0; side < 2; side++) {
			struct vs_ep *ep = &vs->conns[i].ep[side];

			if (ep->node != at || ep->peer->node != peer)
				continue;
			ep->failed_cause = true;
			ep->s->was_cut = true;
		}
	}
}

static void report_path_down(struct vs *vs, struct vs_node *at,
			     struct vs_node *peer)
{
	if (at->crashed)
		return;
	vs->n->path_downs++;
	vs_trace(vs, "director: node %u hears that node %u is gone", at->index,
		 peer->index);
	mark_broken(vs, at, peer);
	sim_host_path_down(at->host, peer->host);
}

static void crash(struct vs *vs)
{
	struct vs_node *node =
		&vs->nodes[sim_rand_below(&vs->run.rand, vs->node_count)];

	vs->n->crashes++;
	vs_trace(vs, "director: node %u crashes", node->index);
	node->crashed = true;
	sim_host_crash(node->host);
	for (unsigned i = 0; i < vs->conn_count; i++) {
		struct vs_conn *s = &vs->conns[i];

		/* Nobody is left to drain it. */
		if (s->ep[0].node->crashed && s->ep[1].node->crashed) {
			vs_conn_settle(s);
			s->state = VS_DEAD;
		}
	}
	for (unsigned i = 0; i < vs->node_count; i++) {
		if (sim_rand_below(&vs->run.rand, 2))
			report_path_down(vs, &vs->nodes[i], node);
	}
}

static void heal(struct vs *vs)
{
	static const struct sim_faults none;

	vs_trace(vs, "director: the network is healed");
	vs->phase = VS_HEALED;
	for (unsigned i = 0; i < vs->node_count; i++)
		sim_port_set_faults(sim_host_port(vs->nodes[i].host), &none);
}

static void director(void *arg)
{
	struct vs *vs = arg;
	uint64_t start_ps = sim_now_ps(vs->run.sim);
	bool may_crash =
		vs->node_count > 2 && sim_rand_below(&vs->run.rand, 6) == 0;

	while (!vs_over(vs) && !chaos_done(vs) &&
	       sim_now_ps(vs->run.sim) < start_ps + CHAOS_LIMIT_PS) {
		uint32_t what = sim_rand_below(&vs->run.rand, 100);

		sim_fiber_sleep_ps(vs->run.sim,
				   sim_rand_range(&vs->run.rand, 10, 1000) *
					   SIM_US);
		if (what < 2) {
			cut_for_a_while(vs);
		} else if (what < 3) {
			struct vs_conn *s = any_conn(vs);

			report_path_down(vs, s->ep[0].node, s->ep[1].node);
		} else if (what < 15 && may_crash) {
			may_crash = false;
			crash(vs);
		}
	}
	heal(vs);
	vs->run.running--;
}

/* ---- one run ------------------------------------------------------------ */

static int spawn_all(struct vs *vs)
{
	unsigned scale =
		vs->run.opt->scale ? (unsigned)vs->run.opt->scale : 100;
	int err = 0;

	for (unsigned i = 0; !err && i < vs->conn_count; i++) {
		for (unsigned side = 0; !err && side < 2; side++) {
			struct vs_ep *ep = &vs->conns[i].ep[side];

			ep->quota = CHAOS_QUOTA * scale / 100;
			err = sim_fiber_spawn(vs->run.sim, ep->name, client,
					      ep);
			vs->run.running += !err;
		}
	}
	for (unsigned i = 0; !err && i < vs->node_count; i++) {
		err = sim_fiber_spawn(vs->run.sim, "datagrams", datagrams,
				      &vs->nodes[i]);
		vs->run.running += !err;
	}
	if (!err)
		err = sim_fiber_spawn(vs->run.sim, "director", director, vs);
	vs->run.running += !err;
	return err;
}

static void describe_unfinished(struct vs *vs)
{
	for (unsigned i = 0; i < vs->conn_count; i++) {
		struct vs_conn *s = &vs->conns[i];

		if (s->state == VS_DONE || s->state == VS_DEAD)
			continue;
		vs_fail(vs,
			"not finished long after the network healed: "
			"connection %u, state %u, epoch %u; %s: %u of %u "
			"posted, %u outstanding, %s; %s: %u of %u posted, %u "
			"outstanding, %s",
			s->index, s->state, s->epoch, s->ep[0].name,
			s->ep[0].posted, s->ep[0].quota,
			s->ep[0].sq_tail - s->ep[0].sq_head,
			s->ep[0].msg_first ? "messages under way" : "",
			s->ep[1].name, s->ep[1].posted, s->ep[1].quota,
			s->ep[1].sq_tail - s->ep[1].sq_head,
			s->ep[1].msg_first ? "messages under way" : "");
		return;
	}
}

static void final_checks(struct vs *vs)
{
	for (unsigned i = 0; i < vs->conn_count; i++) {
		for (unsigned side = 0; side < 2; side++) {
			struct vs_ep *ep = &vs->conns[i].ep[side];

			if (ep->node->crashed)
				continue;
			vs_shadow_final(ep);
			vs_slots_check(vs, &ep->land, "a landing");
			vs_slots_check(vs, &ep->rq_slots, "a receive");
		}
	}
	for (unsigned i = 0; i < vs->node_count; i++) {
		struct vs_node *node = &vs->nodes[i];

		vs_areas_check(node);
		vs_shared_final(node);
		vs_walk_final(node);
		vs_slots_check(vs, &node->srq_slots, "a shared receive");
		if (sim_host_counter(node->host, NIC_C_cq_overflows))
			vs_fail(vs, "node %u: a completion queue overflowed",
				i);
	}
}

static void trace_counters(struct vs *vs)
{
	for (unsigned i = 0; vs->run.opt->trace && i < vs->node_count; i++)
		for (unsigned k = 0; k < NIC_COUNTER_COUNT; k++) {
			uint64_t v = sim_host_counter(vs->nodes[i].host,
						      (enum nic_counter)k);

			if (v)
				vs_trace(vs, "node %u: %s %" PRIu64, i,
					 nic_counter_names[k], v);
		}
}

static int judge(struct play_run *r)
{
	struct vs *vs = (struct vs *)r;
	struct verbs_play_counts *c = vs->n;

	for (unsigned i = 0; i < vs->node_count; i++) {
		const struct sim_host *h = vs->nodes[i].host;

		c->rnr += sim_host_counter(h, NIC_C_rnr_naks_sent);
		c->retries += sim_host_counter(h, NIC_C_retries);
		c->timeouts += sim_host_counter(h, NIC_C_timeouts);
		c->duplicate_atomics +=
			sim_host_counter(h, NIC_C_duplicate_atomics);
		c->duplicate_reads +=
			sim_host_counter(h, NIC_C_duplicate_reads);
		c->duplicate_walks +=
			sim_host_counter(h, NIC_C_duplicate_walks);
		c->walk_waits += sim_host_counter(h, NIC_C_walk_waits);
		c->icrc_drops += sim_host_counter(h, NIC_C_drop_icrc);
	}
	trace_counters(vs);
	/* Let every client see that it is over and end. */
	vs->phase = VS_OVER;
	sim_run_until(r->sim, sim_now_ps(r->sim) + SIM_S);
	if (vs->tor)
		c->forwarded =
			tor_counter(rig_tor_get(vs->tor), TOR_C_forwarded);
	return 0;
}

static void perform(struct play_run *r)
{
	struct vs *vs = (struct vs *)r;
	uint64_t limit_ps = sim_now_ps(r->sim) + CHAOS_LIMIT_PS + HEAL_LIMIT_PS;

	while (r->running && sim_now_ps(r->sim) < limit_ps &&
	       !r->res->violations) {
		enum sim_end end =
			sim_run_until(r->sim, sim_now_ps(r->sim) + SIM_MS);

		if (end != SIM_END_TIME)
			break;
	}
	if (r->running && !r->res->violations)
		describe_unfinished(vs);
	if (!r->res->violations)
		final_checks(vs);
}

static void draw_world(struct vs *vs)
{
	struct rng *r = &vs->run.rand;

	sim_rand_init(r, vs->run.opt->seed, 1);
	vs->faults.loss_ppm = sim_rand_range(r, 8000, 100000);
	vs->faults.dup_ppm = sim_rand_range(r, 8000, 100000);
	vs->faults.reorder_ppm = sim_rand_range(r, 8000, 200000);
	vs->faults.corrupt_ppm = sim_rand_range(r, 8000, 30000);
	vs->faults.mark_ppm = sim_rand_range(r, 0, 50000);
	vs->faults.reorder_max_ps = sim_rand_range(r, 1, 100) * SIM_US;
	/* Half of the runs have a mild network, or little would ever finish
	 * before the next loss. */
	vs->mild = sim_rand_below(r, 2);
	if (vs->mild) {
		vs->faults.loss_ppm = u32_max(vs->faults.loss_ppm / 10, 8000);
		vs->faults.corrupt_ppm =
			u32_max(vs->faults.corrupt_ppm / 5, 8000);
	}
	/* A network of machines: rarer faults, but it is congested at times. */
	if (vs->opt->udp) {
		vs->faults.loss_ppm = sim_rand_range(r, 8000, 30000);
		vs->faults.dup_ppm = sim_rand_range(r, 4000, 10000);
		vs->faults.reorder_ppm = sim_rand_range(r, 4000, 50000);
		vs->faults.corrupt_ppm = sim_rand_range(r, 4000, 8000);
		vs->faults.mark_ppm = 0;
	}
	/* Each one ends a connection: in half of the runs there are few. */
	vs->bad_ppm = sim_rand_range(r, 1000, 3000);
	if (sim_rand_below(r, 2))
		vs->bad_ppm = sim_rand_range(r, 3000, 15000);
	vs->break_ppm = sim_rand_below(r, 2) ? sim_rand_below(r, 1500) : 0;
	vs->len_class = sim_rand_range(r, 1, 3);
}

static int open_world(struct play_run *r)
{
	struct vs *vs = (struct vs *)r;
	int err = sim_create(r->opt->seed, &r->sim);

	vs->opt = (const struct verbs_play_options *)r->opt;
	vs->n = (struct verbs_play_counts *)r->res->count;
	if (!err)
		err = sim_rack_create(r->sim, &vs->rack);
	if (err)
		return err;
	r->net = sim_rack_net(vs->rack);
	sim_net_set_trace(r->net, r->opt->trace);
	err = sim_net_set_pcap(r->net, r->opt->pcap);
	if (!err)
		err = sim_fabric_plug(r->opt->fabric, r->net, VS_NODE_MAX);
	if (err)
		return err;
	sim_net_set_tap(r->net, vs_wire_check, vs);
	sim_net_set_fault_tap(r->net, vs_record_harm, vs);
	draw_world(vs);
	err = vs_world_create(vs);
	if (!err && vs->opt->is_switched)
		err = rig_tor_create(r->net, &vs->opt->tor, &vs->tor);
	return err ? err : spawn_all(vs);
}

static void close_world(struct play_run *r)
{
	struct vs *vs = (struct vs *)r;

	if (vs->rack) {
		vs_world_destroy(vs);
		if (vs->tor)
			rig_tor_destroy(vs->tor);
		sim_rack_destroy(vs->rack);
	}
	if (r->sim)
		sim_destroy(r->sim);
}

/* ---- the tables --------------------------------------------------------- */

/* A wrong program is said once, and not by every seed. */
static int check_programs(const struct rig_tor_config *cfg)
{
	struct rig_tor *t;
	struct sim_net *net;
	struct sim *sim;
	int err = sim_create(1, &sim);

	if (err)
		return err;
	err = sim_net_create(sim, &net);
	if (!err) {
		err = rig_tor_create(net, cfg, &t);
		if (!err)
			rig_tor_destroy(t);
		sim_net_destroy(net);
	}
	sim_destroy(sim);
	return err;
}

static int prepare(struct play_options *opt, struct sim_batch *batch)
{
	struct verbs_play_options *o = (struct verbs_play_options *)opt;

	return opt->fabric
		       ? sim_read_alone_ps(opt->fabric, READ_BYTES, &o->read_ps)
		       : 0;
}

static int prepare_switch(struct play_options *opt, struct sim_batch *batch)
{
	struct verbs_play_options *o = (struct verbs_play_options *)opt;

	o->is_switched = true;
	return check_programs(&o->tor);
}

static void report(const struct play_options *opt, struct json_out *j)
{
	const struct verbs_play_options *o =
		(const struct verbs_play_options *)opt;
	double ns = (double)o->read_ps / 1000;

	if (!opt->fabric)
		return;
	if (j)
		json_out_double(j, "read_64_ns", ns);
	else
		printf("%12.2f  ns for a lone READ of %d B over %s\n", ns,
		       READ_BYTES, opt->fabric->name);
}

static int take_program(void *to, const char *value)
{
	struct rig_tor_config *cfg = &((struct verbs_play_options *)to)->tor;

	if (cfg->program_count == RIG_TOR_PROGRAMS)
		return error_set(-EINVAL, "--program: there are too many");
	cfg->programs[cfg->program_count++] = value;
	return 0;
}

static const enum plant bugs[] = {
	PLANT_skip_duplicate_check,
	PLANT_reexecute_atomic,
	PLANT_reexecute_walk,
	PLANT_ack_early,
	PLANT_drop_flush,
	PLANT_double_completion,
	PLANT_skip_icrc,
	PLANT_skip_last_byte,
	PLANT_read_wrong_offset,
	PLANT_complete_lost_read,
	PLANT_retry_from_next,
	PLANT_forget_rnr,
	PLANT_swap_completions,
	PLANT_stale_psn,
	PLANT_nak_first,
	PLANT_none,
};

#define OPTIONS                                                             \
	OPT_FLAG(struct verbs_play_options, udp, "udp",                     \
		 "a network of machines: slower, with a switch that marks " \
		 "frames and overflows"),                                   \
		OPT_FLAG(struct verbs_play_options, auth, "auth",           \
			 "connections have keys, and their packets a MAC"), \
		PLAY_OPTION_SCALE, PLAY_OPTION_PCAP

static const struct opt options[] = {
	OPTIONS,
	PLAY_OPTION_FABRIC,
	OPT_END,
};

static const struct opt switch_options[] = {
	OPTIONS,
	OPT_CALL(take_program, "program", "NAME[:OPTIONS]",
		 "a program on the path, in the order given; see "
		 "aquifer-switch(1)"),
	OPT_END,
};

static const struct play_count counts[] = {VERBS_PLAY_COUNTS(PLAY_COUNT_ROW)};

#define COMMON                                                            \
	.counts = counts, .count_count = ARRAY_LEN(counts), .bugs = bugs, \
	.options_bytes = sizeof(struct verbs_play_options),               \
	.world_bytes = sizeof(struct vs), .open = open_world,             \
	.perform = perform, .judge = judge, .close = close_world

const struct play verbs_play = {
	.name = "verbs",
	.summary = "the NIC over a faulty network, every byte checked",
	.about = "Random verbs operations between simulated hosts, every "
		 "effect checked, and every completion compared with what its "
		 "target did. With --fabric, the time of a lone 64 B READ is "
		 "printed.",
	.options = options,
	.prepare = prepare,
	.report = report,
	COMMON,
};

const struct play switch_play = {
	.name = "switch",
	.summary = "verbs through the programmable switch and its programs",
	.about = "The play of 'aquifer sim verbs' through the shipped switch: "
		 "every frame passes it and its programs, and every effect is "
		 "checked.",
	.options = switch_options,
	.figures = &switch_figures,
	.prepare = prepare_switch,
	COMMON,
};
