/* SPDX-License-Identifier: Apache-2.0 */
/* The play "mind": its world, its fate, its end. */
#include "mind_play.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "figures/commands.h"
#include "mind_play_priv.h"

#define KEEPER_NS 200000ull
#define REST_NS	  20000000000ull

/* ---- what goes wrong -------------------------------------------------------
 */

void mp_switch_is_new(void *ctx)
{
	struct mp *p = ctx;

	p->n->switch_deaths++;
	p->has_switch_died = true;
	p->has_begun = false;
	if (p->silent >= 0) /* and it answers again, with what it has */
		sim_port_set_down(
			sim_host_port(p->nodes[p->silent].host->sim_host),
			false);
	p->silent = -1;
}

/* All threads have ended: what is under way comes to its end in peace. */
static void no_more_faults(struct mp *p)
{
	static const struct sim_faults none;
	struct sim_port *port;

	rig_tor_restart_at(p->tor, 0, 0, mp_switch_is_new, p);
	p->victim = -1;
	for (unsigned i = 0; (port = sim_net_port(p->run.net, i)); i++)
		sim_port_set_faults(port, &none);
}

/* Regions are split, joined and recalled at any time. */
static void disturb(struct mp *p)
{
	static const char *const verbs[] = {"split", "join", "recall"};
	uint32_t page = sim_rand_below(&p->run.rand, p->page_count);

	if (!p->has_begun)
		return;
	/* Most of them cannot, because the region is busy or as small. */
	(void)!rig_tor_tell(p->tor, "coherence %s va=%llu size=4096",
			    verbs[sim_rand_below(&p->run.rand, 3)],
			    COHERENCE_BASE +
				    (uint64_t)page * COHERENCE_PAGE_BYTES);
}

static void kill_node(struct mp *p)
{
	unsigned i = sim_rand_below(&p->run.rand, p->node_count);

	if (p->has_copies && sim_rand_below(&p->run.rand, 3)) {
		p->silent = (int)i;
		sim_port_set_down(sim_host_port(p->nodes[i].host->sim_host),
				  true);
		p->n->node_silences++;
		return;
	}
	p->nodes[i].is_dead = true;
	p->n->node_deaths++;
	rig_host_kill(p->nodes[i].host);
}

/* The switch waits for no FIN. */
static bool is_switch_idle(struct mp *p)
{
	char answer[8192];
	const char *at = answer;

	rig_tor_ask(p->tor, "coherence show", answer, sizeof(answer));
	while ((at = strstr(at, "\"unanswered\":"))) {
		at += strlen("\"unanswered\":");
		if (*at != '0')
			return false;
	}
	return true;
}

static bool is_idle(struct mp *p)
{
	for (unsigned i = 0; i < p->machine_count; i++)
		if (!mp_machine_is_idle(&p->machines[i]))
			return false;
	return !p->going && !p->to_tell && p->has_begun && is_switch_idle(p);
}

/* The keeper, and fate, until all threads have ended and nothing is under way.
 */
static void director(void *arg)
{
	struct mp *p = arg;
	bool kills_node =
		p->has_copies ? sim_rand_below(&p->run.rand, 4)
			      : !p->litmus.shape && p->run.opt->seed % 11 == 5;
	uint64_t kill_ns = sim_rand_below(&p->run.rand, 3000000);
	uint64_t rest_ns = 0;

	for (;;) {
		sim_fiber_sleep_ns(p->run.sim, KEEPER_NS);
		if (!mp_keeper_run(p))
			break;
		if (kills_node && play_now_ns(&p->run) > kill_ns) {
			kills_node = false;
			kill_node(p);
		}
		if (p->run.running > 1) {
			if (sim_rand_below(&p->run.rand, 3) == 0)
				disturb(p);
			continue;
		}
		if (!rest_ns) {
			no_more_faults(p);
			rest_ns = play_now_ns(&p->run) + REST_NS;
		}
		if (is_idle(p))
			break;
		if (play_now_ns(&p->run) > rest_ns) {
			play_fail(&p->run, "it does not come to rest");
			break;
		}
	}
	p->is_over = true;
	p->run.running--;
}

/* ---- the end
 * ----------------------------------------------------------------- */

static bool is_known(struct mp *p, uint32_t page, unsigned machine, bool writes)
{
	char line[64], answer[256];
	const char *at;

	snprintf(line, sizeof(line), "coherence find va=%llu",
		 COHERENCE_BASE + (uint64_t)page * COHERENCE_PAGE_BYTES);
	rig_tor_ask(p->tor, line, answer, sizeof(answer));
	at = strstr(answer, "\"sharers\":");
	return at && strtoul(at + 10, NULL, 10) >> machine & 1 &&
	       (!writes || strstr(answer, "\"state\":\"M\""));
}

/* Two nodes that live, and that the switch has not given up. */
static bool has_two(const struct mp *p, uint32_t page)
{
	return p->has_copies && p->alone[page >= MP_PAGES / 2] < 0 &&
	       !p->nodes[0].is_dead && !p->nodes[1].is_dead && p->silent < 0;
}

/* Of one page: one writer or readers, whom the switch knows; copies have the
 * last stores, and so has memory unless somebody has newer ones. */
static void check_page(struct mp *p, uint32_t page)
{
	bool is_dirty = false, is_lost = p->all_lost || p->is_page_lost[page];
	unsigned writers = 0, holders = 0;

	is_lost |= p->nodes[mp_node_of(p, page)].is_dead;
	for (unsigned i = 0; i < p->machine_count; i++) {
		const struct mp_machine *m = &p->machines[i];

		if (m->is_dead || m->mmu[page] == COH_NONE)
			continue;
		holders++;
		writers += m->mmu[page] == COH_WRITE;
		is_dirty |= m->coh.cache.pages[page].dirty;
		if (!is_lost &&
		    !is_known(p, page, i, m->mmu[page] == COH_WRITE))
			play_fail(&p->run,
				  "machine %u has page %u, and the switch does "
				  "not know",
				  i, page);
		if (memcmp(m->mem[page], p->shadow[page],
			   COHERENCE_PAGE_BYTES) != 0)
			play_fail(&p->run, "machine %u has an old page %u", i,
				  page);
	}
	if (writers > 1 || (writers && holders > 1))
		play_fail(&p->run, "page %u has %u writers and %u holders",
			  page, writers, holders);
	if (!is_dirty && !is_lost &&
	    memcmp(mp_memory_of(p, page), p->shadow[page],
		   COHERENCE_PAGE_BYTES) != 0)
		play_fail(&p->run, "a store to page %u is lost", page);
	if (!is_dirty && !is_lost && has_two(p, page) &&
	    memcmp(mp_memory_at(p, 0, page), mp_memory_at(p, 1, page),
		   COHERENCE_PAGE_BYTES) != 0)
		play_fail(&p->run, "page %u has two copies that differ", page);
}

static void count(struct mp *p)
{
	struct mind_play_counts *n = p->n;

	n->gets = rig_tor_count(p->tor, "gets");
	n->gets_again = rig_tor_count(p->tor, "gets_again");
	n->gives = rig_tor_count(p->tor, "gives");
	n->invals = rig_tor_count(p->tor, "invals");
	n->false_invals = rig_tor_count(p->tor, "false_invals");
	n->recalls = rig_tor_count(p->tor, "recalls");
	n->waits = rig_tor_count(p->tor, "waits");
	n->splits = rig_tor_count(p->tor, "splits");
	n->joins = rig_tor_count(p->tor, "joins");
	n->resent = rig_tor_count(p->tor, "end_resent");
}

static void perform(struct play_run *r)
{
	struct mp *p = (struct mp *)r;
	char answer[256];

	while (r->running && sim_now_ps(r->sim) < r->play->limit_ps &&
	       !r->res->violations)
		if (sim_run_until(r->sim, sim_now_ps(r->sim) + SIM_MS) !=
		    SIM_END_TIME)
			break;
	if (r->running && !r->res->violations) {
		char report[256];

		sim_fiber_report(r->sim, report, sizeof(report));
		play_fail(r, "%u have not finished: %s", r->running, report);
	}
	count(p);
	if (r->res->violations)
		return;
	for (uint32_t i = 0; i < p->page_count; i++)
		check_page(p, i);
	/* One memory node that is away is no reason to refuse anything. */
	if (p->has_copies && !p->n->machine_deaths && p->n->failed)
		play_fail(r, "%" PRIu64 " operations were refused",
			  p->n->failed);
	rig_tor_ask(p->tor, "coherence check", answer, sizeof(answer));
	if (!strstr(answer, "\"wrong\":\"\""))
		play_fail(r, "the switch: %s", answer);
}

/* ---- the world
 * ----------------------------------------------------------------- */

static int make_nodes(struct mp *p)
{
	int err = 0;

	for (unsigned i = 0; !err && i < p->node_count; i++)
		err = rig_coh_node_init(&p->nodes[i], p->run.stage,
					MP_PAGES * COHERENCE_PAGE_BYTES);
	return err;
}

/* Beside other programs, in any order: their packets are not its own. */
static int make_switch(struct mp *p)
{
	static const char *const beside[] = {"swordbox:open", "steer"};
	struct rng *r = &p->run.rand;
	struct rig_tor_config cfg = {0};
	unsigned at = sim_rand_below(r, 3);

	snprintf(p->program, sizeof(p->program),
		 "coherence:entries=%u,region_pages=%u,rto_us=%u,epoch_ms=%u,"
		 "fin_ms=30000,peer_ms=30000",
		 sim_rand_below(r, 2) ? sim_rand_range(r, 1, 6) : 64,
		 1u << sim_rand_below(r, 4), sim_rand_range(r, 200, 2000),
		 sim_rand_range(r, 1, 20));
	for (unsigned i = 0; i < 3; i++)
		cfg.programs[cfg.program_count++] =
			i == at ? p->program : beside[i - (i > at)];
	return rig_tor_create(p->run.net, &cfg, &p->tor);
}

/* Who dies when, by the seed: a machine at a step, the switch at a frame. */
static void draw_fate(struct mp *p)
{
	struct rng *r = &p->run.rand;
	uint64_t kind = p->run.opt->seed % 4;

	if (p->node_count > 1 && !p->has_copies && sim_rand_below(r, 3))
		p->move_ns = 1 + sim_rand_below(r, 2000000);
	p->victim = -1;
	p->may_repair = sim_rand_below(r, 2);
	if (!p->litmus.shape && kind & 1) {
		p->victim = (int)sim_rand_below(r, p->machine_count);
		p->death_point =
			(enum rig_coh_step)sim_rand_below(r, RIG_COH_STEPS);
		p->death_countdown = sim_rand_range(r, 1, 12);
	}
	if (kind & 2)
		rig_tor_restart_at(p->tor, sim_rand_range(r, 20, 1500),
				   sim_rand_below(r, RIG_KILL_WHENS),
				   mp_switch_is_new, p);
}

static int open_world(struct play_run *run)
{
	struct mp *p = (struct mp *)run;
	struct rig_stage_config cfg = {.relax_max_ps = 5 * SIM_MS};
	struct rng *r = &run->rand;
	unsigned shapes = 0;
	int err;

	p->n = (struct mind_play_counts *)run->res->count;
	sim_rand_init(r, run->opt->seed, 77);
	cfg.link.latency_ps = sim_rand_range(r, 300, 3000) * SIM_NS;
	cfg.link.bits_per_s = 25000000000ull;
	cfg.link.faults = play_draw_faults(r, 20000, 10000, 20000, 5000);
	err = play_stage_open(run, &cfg);
	if (err)
		return err;
	lin_history_set_initial(run->history, lin_int(0));
	p->mtu = (enum ibv_mtu)sim_rand_range(r, IBV_MTU_256, IBV_MTU_4096);
	p->machine_count = sim_rand_below(r, 6) ? sim_rand_range(r, 2, 4)
						: sim_rand_range(r, 5, 8);
	p->node_count = sim_rand_range(r, 1, MP_NODES);
	p->has_copies = p->node_count > 1 && sim_rand_below(r, 2);
	p->dies_unnoted = p->has_copies && sim_rand_below(r, 2);
	p->alone[0] = p->alone[1] = p->silent = -1;
	p->page_count =
		p->node_count > 1 ? MP_PAGES : sim_rand_range(r, 1, MP_PAGES);
	while (mind_litmus_shapes[shapes].name)
		shapes++;
	if (sim_rand_below(r, 4) == 0) {
		p->litmus.shape =
			&mind_litmus_shapes[sim_rand_below(r, shapes)];
		p->page_count = MP_PAGES;
	}
	err = make_nodes(p);
	for (unsigned i = 0; !err && i < p->machine_count; i++)
		err = mp_machine_start(p, i);
	if (!err)
		err = make_switch(p);
	if (!err)
		err = mp_keeper_start(p);
	if (err)
		return err;
	draw_fate(p);
	err = mp_threads_start(p);
	run->running += !err;
	return err ? err : sim_fiber_spawn(run->sim, "director", director, p);
}

static void close_world(struct play_run *r)
{
	struct mp *p = (struct mp *)r;

	for (unsigned i = 0; i < p->machine_count; i++)
		mp_machine_stop(&p->machines[i]);
	for (unsigned i = 0; i < p->node_count; i++)
		rig_coh_node_release(&p->nodes[i]);
	rig_tor_destroy(p->tor);
}

/* ---- the table
 * ------------------------------------------------------------------- */

static const char *point_name(unsigned point)
{
	static const char *const names[] = {
#define NAME(text) text,
		MP_POINTS(NAME)
#undef NAME
	};

	return point < ARRAY_LEN(names) ? names[point] : NULL;
}

static const enum plant bugs[] = {
	PLANT_mind_answer_early,
	PLANT_mind_no_clean,
	PLANT_mind_forget_owner,
	PLANT_mind_forget_reader,
	PLANT_mind_fin_early,
	PLANT_mind_late_protect,
	PLANT_mind_split_forgets,
	PLANT_mind_join_owners,
	PLANT_coh_ack_early,
	PLANT_coh_old_bytes,
	PLANT_coh_hold_old,
	PLANT_coh_no_serial,
	PLANT_coh_move_old,
	PLANT_coh_pair_one,
	PLANT_coh_pair_early,
	PLANT_skip_lost,
	PLANT_none,
};

static const struct play_count counts[] = {MIND_PLAY_COUNTS(PLAY_COUNT_ROW)};

const struct play mind_play = {
	.name = "mind",
	.summary = "machines share memory through the switch; --model: all "
		   "states of the protocol",
	.about =
		"Machines with the shipped half of a cache and a simulated MMU "
		"share pages through the shipped switch, over a bad network, "
		"with tiny caches, a small directory, splits, joins and "
		"recalls, while a machine dies at a named step, the switch at "
		"any frame, a memory node at any time; two nodes may have all "
		"pages. Each load must see the "
		"last store; histories must be linearizable; litmus shapes end "
		"as an order of their steps does; switch, caches and memory "
		"must agree at the end. 'aquifer sim mind --model --help' "
		"explains the check of all states.",
	.figures = &mind_figures,
	.counts = counts,
	.count_count = ARRAY_LEN(counts),
	.bugs = bugs,
	.options_bytes = sizeof(struct play_options),
	.point_name = point_name,
	.world_bytes = sizeof(struct mp),
	.limit_ps = 120 * SIM_S,
	.has_history = true,
	.model = LIN_MODEL_KV,
	.open = open_world,
	.perform = perform,
	.close = close_world,
};
