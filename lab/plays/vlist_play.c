/* SPDX-License-Identifier: Apache-2.0 */
/* The play "index": its world, its clients, its end. */
#include "vlist_play.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "figures/commands.h"
#include "index/vlist.h"
#include "play_client.h"
#include "rig/tor_steer.h"
#include "sim/fiber.h"

enum {
	CLIENTS_MAX = 6,
	KEYS = 4,
	OPS = 40,
	OPS_ABSENT = 160,
	FAILURE_MS = 12,
	DEADLINE_MS = 150,
	VALUE_MAX = 64,
	PLACES = 4, /* fewer than keys: they drive each other out */
	RESTARTS_MAX = 3,
	ABSENCES = 40,
	FEW_CLIENTS = 2,
	VERSIONS_FEW = 32,
	FRAMES_MAX = 1 << 19, /* 20 times what is usual */
};

/* What a seed is about. */
enum vp_mood {
	VP_ROUGH, /* everything goes wrong */
	/* Nothing is lost and nobody dies; only some connections pass the
	 * switch by. Then nothing may fail. */
	VP_CALM,
	/* Again and again the switch is told of no connection for a while, and
	 * keeps what it knew. Memory is so small that it is used again in the
	 * meantime. */
	VP_ABSENT,
};

struct vp_client {
	struct play_client base;
	struct vlist_client *store;
};

struct vp {
	struct play_run run;
	struct vlist_play_counts *n;
	struct rig_host *node;
	struct rig_steer steer;
	struct vlist_geometry g;
	struct vlist_places *places; /* of those that are of one process */
	struct vp_client client[CLIENTS_MAX];
	uint32_t bypass_of; /* one connection of so many; 0: none */
	enum vp_mood mood;
	struct play_store store;
};

static struct vp *vp_of(const struct vp_client *c)
{
	return (struct vp *)c->base.run;
}

/* Of some connections it hears nothing. */
static void tell_switch(struct play_client *c, struct rig_conn *conn,
			bool is_new)
{
	struct vp *p = (struct vp *)c->run;

	if (!is_new) {
		rig_steer_end(&p->steer, p->node, conn->host, conn->link);
		return;
	}
	conn->is_known =
		!p->bypass_of || sim_rand_below(&c->rand, p->bypass_of) != 0;
	p->n->bypasses += !conn->is_known;
	if (conn->is_known)
		rig_steer_fresh(&p->steer, p->node, conn->host, conn->link);
}

/* ---- life --------------------------------------------------------------- */

static struct vlist_client *store_of(const struct play_client *c)
{
	return ((const struct vp_client *)c)->store;
}

static bool is_crashed(const struct play_client *c)
{
	return vlist_client_is_crashed(store_of(c));
}

static int create(struct play_client *client, struct kit_remote *remote,
		  const void *config)
{
	struct vp_client *c = (struct vp_client *)client;
	int err = vlist_client_create(remote, &vp_of(c)->g, config, &c->store);

	if (err)
		c->store = NULL;
	return err;
}

static int open_store(struct play_client *client)
{
	struct vp *p = (struct vp *)client->run;
	bool is_together = sim_rand_below(&client->rand, 2);
	struct vlist_config cfg = {
		.deadline_ms = DEADLINE_MS,
		.shortcut = sim_rand_below(&client->rand, 2),
		.places = is_together ? p->places : NULL,
		.collect_every = sim_rand_range(&client->rand, 1, 6),
		.cache_keys = 2,
		.no_steer = sim_rand_below(&client->rand, 8) == 0,
		.crash = play_client_crash,
		.ctx = client};

	return play_store_open(client, create, &cfg);
}

static void close_store(struct play_client *client)
{
	struct vp_client *c = (struct vp_client *)client;
	struct vlist_play_counts *n = vp_of(c)->n;
	const struct vlist_stats *s = vlist_client_stats(c->store);

	n->chases += s->chases;
	n->steered_reads += s->steered_reads;
	n->steered_appends += s->steered_appends;
	n->unvouched += s->unvouched;
	n->verified += s->verified;
	n->abandoned += s->abandoned;
	n->unknown += s->unknown;
	n->fenced += s->fenced;
	n->collected += s->collected;
	n->adopted += s->adopted;
	n->appends_failed += s->appends - s->appends_first;
	vlist_client_destroy(c->store);
	c->store = NULL;
}

/* ---- operations --------------------------------------------------------- */

static size_t value_bytes(const struct play_run *r, uint64_t id)
{
	return 8 + id % (VALUE_MAX - 8);
}

/* In a calm world one error is enough to be seen. */
static int ended(struct vp *p, int err)
{
	if (err && err != -ENOSPC && err != -ENOENT && p->mood == VP_CALM)
		sim_stop(p->run.sim);
	return err;
}

static int get(struct play_client *c, unsigned key, uint8_t *buf, size_t *len)
{
	return ended((struct vp *)c->run,
		     vlist_get(store_of(c), key, buf, VALUE_MAX, len));
}

static int put(struct play_client *c, unsigned key, const uint8_t *value,
	       size_t len)
{
	return ended((struct vp *)c->run,
		     vlist_put(store_of(c), key, value, len));
}

static int del(struct play_client *c, unsigned key)
{
	return ended((struct vp *)c->run, vlist_del(store_of(c), key));
}

static void step(struct play_client *client)
{
	unsigned key = sim_rand_below(&client->rand, KEYS);

	if (sim_rand_below(&client->rand, 2))
		key = 0; /* one is hot */
	if (((const struct vp *)client->run)->mood == VP_ROUGH)
		play_client_arm(client, 8, 6);
	switch (sim_rand_below(&client->rand, 8)) {
	case 0:
	case 1:
	case 2:
		(void)play_get(client, key);
		break;
	case 3:
		play_del(client, key);
		break;
	default:
		play_put(client, key);
	}
}

/* ---- what goes wrong ---------------------------------------------------- */

/* A switch that has forgotten everything, and is told of some connections. */
static void restart(struct vp *p)
{
	if (rig_steer_restart(&p->steer)) {
		play_fail(&p->run, "the switch cannot be started again");
		return;
	}
	p->n->restarts++;
	for (unsigned i = 0; i < p->store.conns.count; i++)
		if (p->store.conns.at[i].link && p->store.conns.at[i].is_known)
			rig_steer_conn(&p->steer, p->node,
				       p->store.conns.at[i].host,
				       p->store.conns.at[i].link);
}

/* All connections are from now on none of the switch's business, or are. */
static void tell_all(struct vp *p, bool is_known)
{
	for (unsigned i = 0; i < p->store.conns.count; i++) {
		struct rig_conn *c = &p->store.conns.at[i];

		if (!c->link || c->is_dead || c->is_known == is_known)
			continue;
		c->is_known = is_known;
		if (is_known)
			rig_steer_conn(&p->steer, p->node, c->host, c->link);
		else
			rig_steer_end(&p->steer, p->node, c->host, c->link);
		p->n->absences += !is_known;
	}
}

static void pause_us(struct vp *p, uint32_t from, uint32_t to)
{
	sim_fiber_sleep_ps(p->run.sim,
			   sim_rand_range(&p->run.rand, from, to) * SIM_US);
}

static void director(void *arg)
{
	struct vp *p = arg;
	unsigned restarts =
		p->mood == VP_ROUGH
			? sim_rand_below(&p->run.rand, RESTARTS_MAX + 1)
			: 0;
	unsigned absences = p->mood == VP_ABSENT ? ABSENCES : 0;

	while (restarts && restarts-- && p->run.running) {
		pause_us(p, 20, 1500);
		restart(p);
	}
	while (absences && absences-- && p->run.running) {
		pause_us(p, 20, 300);
		tell_all(p, false);
		pause_us(p, 100, 1500);
		tell_all(p, true);
	}
}

/* ---- the end ------------------------------------------------------------ */

static int check(struct play_client *c)
{
	struct vlist_report r;
	int err = vlist_check(store_of(c), &r);

	if (!err && (r.bad_entries || r.bad_nodes || r.loops))
		play_fail(c->run,
			  "the store: %" PRIu64 " bad entries, %" PRIu64
			  " bad nodes, %" PRIu64 " loops",
			  r.bad_entries, r.bad_nodes, r.loops);
	return err;
}

static int judge(struct play_run *r)
{
	struct vp *p = (struct vp *)r;
	struct vlist_play_counts *n = p->n;

	if (p->mood == VP_CALM && n->timeouts + n->stale + n->fenced)
		play_fail(r, "nothing was lost, and operations failed");
	n->sent_again = rig_tor_count(p->steer.tor, "sent_again");
	n->held = rig_tor_count(p->steer.tor, "held");
	n->other_uses = rig_tor_count(p->steer.tor, "other_uses");
	return 0;
}

/* ---- the world ---------------------------------------------------------- */

static int format(struct play_run *r, struct kit_remote *remote)
{
	return vlist_format(remote, &((struct vp *)r)->g);
}

static int make_hosts(struct vp *p)
{
	struct rng *r = &p->run.rand;
	bool is_absent = p->mood == VP_ABSENT;
	uint32_t versions =
		is_absent ? VERSIONS_FEW : sim_rand_range(r, 60, 200);
	struct vlist_options o = {.keys = 2 * KEYS,
				  .versions = versions,
				  .value_max = VALUE_MAX,
				  .clients = 2 * CLIENTS_MAX,
				  .failure_ms = FAILURE_MS,
				  .chunk_nodes = sim_rand_range(r, 4, 8)};
	int err = vlist_geometry_make(&o, &p->g);
	struct rig_host *host;
	unsigned clients;

	if (!err)
		err = vlist_places_create(PLACES, &p->places);
	if (!err)
		err = rig_host_add(p->run.stage, "node", &p->node);
	if (!err)
		err = rig_region_create(p->node, p->g.size_bytes, false,
					&p->store.region);
	clients = sim_rand_range(r, 2, is_absent ? FEW_CLIENTS : CLIENTS_MAX);
	for (unsigned i = 0; i < clients && !err; i++) {
		err = rig_host_add(p->run.stage, "client", &host);
		if (!err)
			play_client_init(&p->run, &p->client[i].base, host);
	}
	return err;
}

static int open_world(struct play_run *run)
{
	static const enum vp_mood moods[] = {VP_ROUGH, VP_ROUGH, VP_CALM,
					     VP_ABSENT};
	const struct vlist_play_options *opt =
		(const struct vlist_play_options *)run->opt;
	struct vp *p = (struct vp *)run;
	struct rig_stage_config cfg = {0};
	struct rng *r = &run->rand;
	int err;

	p->n = (struct vlist_play_counts *)run->res->count;
	p->mood = moods[run->opt->seed % ARRAY_LEN(moods)];
	run->ops = p->mood == VP_ABSENT ? OPS_ABSENT : OPS;
	run->store = &p->store;
	p->store.tell = tell_switch;
	run->trouble = director;
	sim_rand_init(r, run->opt->seed, 78);
	cfg.link.latency_ps = sim_rand_range(r, 300, 3000) * SIM_NS;
	cfg.link.bits_per_s = 25000000000ull;
	if (p->mood != VP_CALM && sim_rand_below(r, 4))
		cfg.link.faults =
			play_draw_faults(r, 40000, 10000, 20000, 2000);
	p->bypass_of = p->mood == VP_CALM || sim_rand_below(r, 2) ? 3 : 0;
	err = play_stage_open(run, &cfg);
	if (err)
		return err;
	err = make_hosts(p);
	if (!err)
		err = rig_steer_create(
			&p->steer, run->net, p->node, p->store.region, &p->g,
			opt->steer == VLIST_STEER_ON ? "" : NULL);
	return err ? err : play_clients_start(run);
}

static void close_world(struct play_run *r)
{
	struct vp *p = (struct vp *)r;

	/* Of those who were stopped in the middle. */
	for (unsigned i = 0; i < r->client_count; i++)
		vlist_client_abandon(p->client[i].store);
	rig_steer_destroy(&p->steer);
	vlist_places_destroy(p->places);
}

/* ---- the table ---------------------------------------------------------- */

static void sum_up(struct play_result *to, const struct play_result *res,
		   bool steer)
{
	for (unsigned i = 0; i < PLAY_COUNTS_MAX; i++)
		to->count[i] += res->count[i];
	for (unsigned i = 0; i < PLAY_POINTS_MAX; i++)
		to->died_at[i] += res->died_at[i];
	to->hash = to->hash * 31 + res->hash;
	if (res->violations && !to->violations)
		snprintf(to->first, sizeof(to->first), "steering %s: %.480s",
			 steer ? "on" : "off", res->first);
	to->violations += res->violations;
}

/* Without steering, with it, or both ways. */
static int run(const struct play_options *opt, struct play_result *res)
{
	struct vlist_play_options o = *(const struct vlist_play_options *)opt;
	static struct play_result one;
	unsigned wanted = o.steer;
	int err = 0;

	memset(res, 0, sizeof(*res));
	for (o.steer = VLIST_STEER_OFF; o.steer && !err; o.steer--) {
		if (wanted != VLIST_STEER_BOTH && wanted != o.steer)
			continue;
		err = play_world(&vlist_play, &o.common, &one);
		if (!err)
			sum_up(res, &one, o.steer == VLIST_STEER_ON);
	}
	return err;
}

static const char *point_name(unsigned point)
{
	static const char *const names[] = {
#define NAME(name, help) help,
		VLIST_POINTS(NAME)
#undef NAME
	};

	return point < ARRAY_LEN(names) ? names[point] : NULL;
}

static const enum plant bugs[] = {
	PLANT_vouch_appends, PLANT_vouch_reads, PLANT_no_break,
	PLANT_hide_next,     PLANT_other_use,	PLANT_commit_failed,
	PLANT_trust_all,     PLANT_none,
};

static const struct opt options[] = {
	OPT_CHOICE(struct vlist_play_options, steer, "steer", "both|on|off",
		   "each seed both ways (default), with steering, or without "
		   "it"),
	OPT_END,
};

static const struct play_count counts[] = {VLIST_PLAY_COUNTS(PLAY_COUNT_ROW)};

const struct play vlist_play = {
	.name = "index",
	.kind = "versions",
	.summary = "a version-list store, with and without steering by the "
		   "switch; --kind tree: an ordered index",
	.about = "Clients read, write and delete keys of a version-list store "
		 "through a switch, over a bad network; clients die or sleep, "
		 "and the switch is killed and started again. The history must "
		 "be linearizable and the store whole, whether the switch "
		 "steers appends and reads or not.",
	.footnote =
		"--kind tree: the ordered index instead; it has a --help of "
		"its own.",
	.counts = counts,
	.count_count = ARRAY_LEN(counts),
	.bugs = bugs,
	.options = options,
	.options_bytes = sizeof(struct vlist_play_options),
	.figures = &index_figures,
	.point_name = point_name,
	.run = run,
	.world_bytes = sizeof(struct vp),
	.limit_ps = 10000 * SIM_MS,
	.has_history = true,
	.model = LIN_MODEL_KV,
	.moves = {.failure_ms = FAILURE_MS,
		  .value_bytes = value_bytes,
		  .open = open_store,
		  .close = close_store,
		  .is_crashed = is_crashed,
		  .step = step,
		  .get = get,
		  .put = put,
		  .del = del,
		  .format = format,
		  .check = check,
		  .frames_max = FRAMES_MAX},
	.open = open_world,
	.judge = judge,
	.close = close_world,
};
