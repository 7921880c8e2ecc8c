/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of Clover (Tsai, Shan and Zhang, ATC 2020), with the requests, sizes
 * and numbers of its public code. The versions of a key are a chain, and the
 * clients of one machine remember together where they saw its end. Reads: that
 * version together with the key's shortcut; who does not find the end there
 * goes to where the shortcut points, once, and then from version to version.
 * Changes: a new version is written, then linked to the end by CAS; who is
 * refused looks for the end as reads do and tries again. A collector on each
 * machine moves shortcuts, 32 at a time.
 *
 * The metadata server is left out: everybody knows where each key was at the
 * start, memory comes for free and is never collected. All of it flatters it.
 */
#include <errno.h>
#include <stdlib.h>

#include "kv_fig_rival.h"

enum {
	VERSION_HEAD = 8,   /* the next one */
	VERSION_UNIT = 128, /* of its values */
	AREA_VERSIONS = 2048,
	SHORTCUTS = 32, /* that are moved together */
	BUF_VERSION = 0,
	BUF_SHORTCUT = 4096,
	BUF_ANSWER = 4104,
	BUF_LINK = 4112, /* one word for each of a batch */
	BUF_NEW = 4160,
	HOPS_MAX = 100000,
};

#define COLLECTOR_PS (1 * SIM_US) /* between looks for work */

struct move {
	uint32_t record, version;
};

/* What the clients of one machine share. */
struct machine {
	struct kvf *f;
	struct scenario_host *host; /* of one of its clients */
	uint32_t *known;	    /* by record: the last version seen */
	unsigned due;
	struct move move[SHORTCUTS];
};

struct clover {
	uint64_t version_bytes;
	uint64_t versions_at;
	struct scenario_region *region;
	struct machine machine[KV_FIG_MACHINES];
};

static int prepare(struct kvf *f)
{
	struct clover *u = calloc(1, sizeof(*u));
	uint64_t bytes, i, *shortcut;
	unsigned m;
	int err;

	if (!u)
		return -ENOMEM;
	f->rival = u;
	u->version_bytes =
		VERSION_HEAD + align_up(f->cfg.value_bytes, VERSION_UNIT);
	u->versions_at = align_up(f->cfg.capacity * 8, 4096);
	/* Version 0 is nobody's, so that 0 is no successor. */
	bytes = u->versions_at + (1 + f->cfg.capacity +
				  (uint64_t)f->cfg.clients * AREA_VERSIONS) *
					 u->version_bytes;
	err = scenario_region_create(f->node[0], bytes, false, &u->region);
	if (err)
		return err;
	shortcut = (uint64_t *)(void *)u->region->mem;
	for (i = 0; i < f->cfg.capacity; i++)
		shortcut[i] = 1 + i;
	for (m = 0; m < KV_FIG_MACHINES; m++) {
		u->machine[m].f = f;
		u->machine[m].known =
			calloc(f->cfg.capacity, sizeof(u->machine[m].known[0]));
		if (!u->machine[m].known)
			return -ENOMEM;
		for (i = 0; i < f->cfg.capacity; i++)
			u->machine[m].known[i] = (uint32_t)(1 + i);
	}
	return 0;
}

static struct machine *machine_of(struct kvf_client *c)
{
	struct clover *u = c->f->rival;

	return &u->machine[c->index % KV_FIG_MACHINES];
}

static uint64_t at_version(const struct clover *u, uint64_t version)
{
	return u->versions_at + version * u->version_bytes;
}

/* ---- the collector ------------------------------------------------------ */

static int move_shortcuts(struct kvf_client *me, struct machine *mc)
{
	struct clover *u = mc->f->rival;
	struct move move[SHORTCUTS];
	unsigned i, k, n = mc->due;
	int err = 0;

	for (i = 0; i < n; i++)
		move[i] = mc->move[i];
	mc->due = 0;
	for (i = 0; i < n && !err; i += k) {
		for (k = 0; k < RIVAL_REQUESTS_MAX && i + k < n; k++) {
			*rival_word(me->rival, BUF_LINK + 8 * k) =
				move[i + k].version;
			rival_write(me->rival, u->region,
				    move[i + k].record * 8ull, BUF_LINK + 8 * k,
				    8);
		}
		err = rival_go(me, me->rival, 0);
	}
	return err;
}

static void collect(void *arg)
{
	struct machine *mc = arg;
	struct clover *u = mc->f->rival;
	struct kvf_client me = {.f = mc->f, .host = mc->host};
	int err = rival_open(&me, &u->region, 1, (struct rival **)&me.rival);

	while (!err && !mc->f->is_stopping) {
		if (mc->due == SHORTCUTS)
			err = move_shortcuts(&me, mc);
		else
			sim_fiber_sleep_ps(mc->f->sim, COLLECTOR_PS);
	}
	rival_close(me.rival);
	mc->f->running--;
}

/* Where it has more to do than it can, one is forgotten: shortcuts are hints.
 */
static void submit(struct machine *mc, uint64_t record, uint64_t version)
{
	if (mc->due < SHORTCUTS)
		mc->move[mc->due++] =
			(struct move){(uint32_t)record, (uint32_t)version};
}

static int open_one(struct kvf_client *c)
{
	struct machine *mc = machine_of(c);
	struct clover *u = c->f->rival;
	int err = rival_open(c, &u->region, 1, (struct rival **)&c->rival);

	if (err || mc->host)
		return err;
	mc->host = c->host;
	err = scenario_host_spawn(mc->host, "collector", collect, mc);
	c->f->running += !err;
	return err;
}

/* ---- operations --------------------------------------------------------- */

/* From *version on to the end of the chain: each look reads `bytes` of it. */
static int chase(struct kvf_client *c, uint64_t record, uint32_t bytes,
		 uint64_t *version)
{
	struct clover *u = c->f->rival;
	struct rival *v = c->rival;
	bool has_shortcut = false;
	uint64_t next, hops;
	int err;

	for (hops = 0; hops < HOPS_MAX && !c->f->is_stopping; hops++) {
		rival_read(v, u->region, at_version(u, *version), BUF_VERSION,
			   bytes);
		if (!has_shortcut)
			rival_read(v, u->region, record * 8, BUF_SHORTCUT, 8);
		err = rival_go(c, v, 0);
		next = *rival_word(v, BUF_VERSION);
		if (err || !next)
			return err;
		if (!has_shortcut && *rival_word(v, BUF_SHORTCUT) != *version)
			next = *rival_word(v, BUF_SHORTCUT);
		has_shortcut = true;
		*version = next;
	}
	return c->f->is_stopping ? 0 : -ELOOP;
}

static int read_one(struct kvf_client *c, uint64_t record)
{
	struct clover *u = c->f->rival;
	struct machine *mc = machine_of(c);
	uint64_t version;
	int err;

	record %= c->f->cfg.capacity;
	version = mc->known[record];
	err = chase(c, record, (uint32_t)u->version_bytes, &version);
	if (!err)
		mc->known[record] = (uint32_t)version;
	return err;
}

static int change_one(struct kvf_client *c, uint64_t record)
{
	struct clover *u = c->f->rival;
	struct rival *v = c->rival;
	struct machine *mc = machine_of(c);
	uint64_t fresh = 1 + c->f->cfg.capacity +
			 (uint64_t)c->index * AREA_VERSIONS +
			 c->inserted % AREA_VERSIONS;
	uint64_t version;
	int err;

	record %= c->f->cfg.capacity;
	c->inserted++;
	*rival_word(v, BUF_NEW) = 0;
	rival_write(v, u->region, at_version(u, fresh), BUF_NEW,
		    (uint32_t)u->version_bytes);
	err = rival_go(c, v, 0);
	version = mc->known[record];
	while (!err && !c->f->is_stopping) {
		rival_cas(v, u->region, at_version(u, version), BUF_ANSWER, 0,
			  fresh);
		err = rival_go(c, v, 0);
		if (err || !*rival_word(v, BUF_ANSWER))
			break;
		err = chase(c, record, VERSION_HEAD, &version);
	}
	if (err)
		return err;
	mc->known[record] = (uint32_t)fresh;
	submit(mc, record, fresh);
	return 0;
}

static void close_one(struct kvf_client *c)
{
	rival_close(c->rival);
	c->rival = NULL;
}

static void release(struct kvf *f)
{
	struct clover *u = f->rival;
	unsigned m;

	for (m = 0; u && m < KV_FIG_MACHINES; m++)
		free(u->machine[m].known);
	free(u);
}

const struct kvf_ops kvf_clover_ops = {
	.name = "clover-like",
	.prepare = prepare,
	.open = open_one,
	.read = read_one,
	.change = change_one,
	.close = close_one,
	.release = release,
};
