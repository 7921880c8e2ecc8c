/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Freeing versions of some keys, in steps of one round trip each, so that the
 * steps can ride along with the requests of writes:
 *
 *	heads	what the keys' entries say
 *	look	what the newest versions are, as often as it takes
 *	move	the entries point to those
 *
 * Heads come before looks, so what is found to be the newest is not before what
 * the entry said. Each has a round trip of its own: a READ whose answer is lost
 * is executed again, and then perhaps after the one behind it. (Atomics would
 * not be, but a NIC executes few of them on one word.)
 */
#include <errno.h>

#include "vlist_priv.h"

enum {
	LOW_SHARE = 4, /* less of it free than this part of all is little */
};

static struct vlist_node *node_of(struct vlist_client *c, unsigned k)
{
	return (struct vlist_node *)(c->kit.stage + (size_t)k * 4096);
}

STATIC_ASSERT((int)VLIST_SCAN_BATCH * 4096 <= (int)KIT_STAGE_BYTES,
	      "a node each");

static bool is_open(const struct vlist_old *o)
{
	return !o->is_newest && !o->is_lost;
}

static uint64_t head_at(const struct vlist_old *o)
{
	return o->entry + offsetof(struct vlist_entry, head);
}

/* ---- whose ----------------------------------------------------------------
 */

static bool has_key(const struct vlist_gather *g, uint64_t key)
{
	for (unsigned k = 0; k < g->count; k++)
		if (g->old[k].key == key)
			return true;
	return false;
}

int vlist_gather_key_of(struct vlist_client *c, struct vlist_gather *g,
			uint32_t i)
{
	const struct vlist_mine *mine = &c->mine[i];
	const struct vlist_memo *m = vlist_memo_find(c, mine->key);
	struct vlist_old *o = &g->old[g->count];
	uint64_t head;
	int err = 0;

	if (g->count == VLIST_SCAN_BATCH || has_key(g, mine->key))
		return 0;
	*o = (struct vlist_old){.mine = i,
				.mine_generation = mine->generation,
				.newest = VLIST_NONE,
				.key = mine->key,
				.place = vlist_mine_pointer(c, i)};
	if (m) {
		o->entry = m->entry;
		o->newest = m->newest;
		o->newest_generation = m->newest_generation;
		if (m->place)
			o->place = m->place;
	}
	if (!o->entry)
		err = vlist_entry_find(c, o->key, &o->entry, &head);
	if (!err)
		g->count++;
	return err;
}

/* Whether the version's key can be looked after without another request; with
 * `seldom`, only one whose entry this client will not move by its writes soon:
 * those that all write are moved by all, and who comes late has worked in
 * vain. */
static bool is_worth_it(struct vlist_client *c, uint32_t i, bool seldom)
{
	const struct vlist_mine *mine = &c->mine[i];
	const struct vlist_memo *m = vlist_memo_find(c, mine->key);

	if (mine->state != VLIST_MINE_USED || !m || !m->entry)
		return false;
	return !seldom || m->writes < 2;
}

void vlist_ride_begin(struct vlist_client *c)
{
	struct vlist_gather *g = &c->ride;

	if (g->stage != VLIST_GATHER_IDLE || vlist_pool_may_grow(c) ||
	    c->free_count * LOW_SHARE >= c->mine_count)
		return;
	g->count = 0;
	for (unsigned k = 0; k < 2 * VLIST_RIDE_LOOKS && g->count < VLIST_RIDE;
	     k++) {
		uint32_t i = c->scan_at++ % c->mine_count;

		if (is_worth_it(c, i, k < VLIST_RIDE_LOOKS))
			(void)!vlist_gather_key_of(c, g, i); /* has room */
	}
	vlist_gather_start(g);
}

/* ---- steps ----------------------------------------------------------------
 */

void vlist_gather_start(struct vlist_gather *g)
{
	g->stage = g->count ? VLIST_GATHER_HEADS : VLIST_GATHER_IDLE;
	g->looks = 0;
}

void vlist_gather_add(struct vlist_client *c, struct vlist_gather *g)
{
	for (unsigned k = 0; k < g->count; k++) {
		struct vlist_old *o = &g->old[k];

		switch (g->stage) {
		case VLIST_GATHER_IDLE:
			return;
		case VLIST_GATHER_HEADS:
			kit_read(&c->kit.main, head_at(o), &c->heads[k], 8);
			break;
		case VLIST_GATHER_LOOK:
			if (is_open(o))
				kit_read(&c->kit.main, vlist_offset(o->place),
					 node_of(c, k),
					 c->config.no_steer ? VLIST_NODE_HEAD
							    : c->g.node_bytes);
			break;
		case VLIST_GATHER_MOVE:
			c->heads[k] = o->head;
			if (o->is_newest && o->head != o->place)
				kit_cas(&c->kit.main, VLIST_POINT_HEAD,
					head_at(o), o->head, o->place,
					&c->heads[k]);
		}
	}
}

static bool judge(struct vlist_client *c, struct vlist_old *o,
		  const struct vlist_node *n)
{
	uint64_t self, next;

	switch (vlist_judge(c, n, o->key, o->place, !c->config.no_steer, &self,
			    &next)) {
	case VLIST_NEWEST:
		o->place = self;
		o->is_newest = true;
		break;
	case VLIST_OLD:
		o->place = next;
		return true;
	case VLIST_STALE:
	case VLIST_ASTRAY:
	case VLIST_UNVOUCHED:
		o->is_lost = true;
	}
	return false;
}

static void take_looks(struct vlist_client *c, struct vlist_gather *g)
{
	unsigned open = 0;

	for (unsigned k = 0; k < g->count; k++)
		if (is_open(&g->old[k]))
			open += judge(c, &g->old[k], node_of(c, k));
	if (!open || ++g->looks == VLIST_SCAN_LOOKS)
		g->stage = VLIST_GATHER_MOVE;
}

static void free_one(struct vlist_client *c, uint32_t i, uint32_t generation,
		     uint64_t but)
{
	if (c->mine[i].state != VLIST_MINE_USED ||
	    c->mine[i].generation != generation ||
	    vlist_mine_pointer(c, i) == but)
		return;
	vlist_node_give(c, i);
	c->stats.collected++;
}

/* All of this client's versions that there were before the look, but for the
 * newest one of all, which the entry points to now. */
static void free_key(struct vlist_client *c, const struct vlist_old *o)
{
	if (o->newest != VLIST_NONE &&
	    c->mine[o->newest].generation == o->newest_generation &&
	    c->mine[o->newest].state == VLIST_MINE_USED) {
		vlist_collect_older(c, o->newest);
		free_one(c, o->newest, o->newest_generation, o->place);
	}
	free_one(c, o->mine, o->mine_generation, o->place);
}

static void take_moves(struct vlist_client *c, struct vlist_gather *g)
{
	for (unsigned k = 0; k < g->count; k++) {
		const struct vlist_old *o = &g->old[k];

		if (!o->is_newest ||
		    (c->heads[k] != o->head && c->heads[k] != o->place))
			continue;
		c->stats.heads += o->head != o->place;
		free_key(c, o);
	}
	g->stage = VLIST_GATHER_IDLE;
}

void vlist_gather_take(struct vlist_client *c, struct vlist_gather *g)
{
	switch (g->stage) {
	case VLIST_GATHER_IDLE:
		break;
	case VLIST_GATHER_HEADS:
		for (unsigned k = 0; k < g->count; k++)
			g->old[k].head = c->heads[k];
		g->stage = VLIST_GATHER_LOOK;
		break;
	case VLIST_GATHER_LOOK:
		take_looks(c, g);
		break;
	case VLIST_GATHER_MOVE:
		take_moves(c, g);
	}
}

int vlist_gather_run(struct vlist_client *c, struct vlist_gather *g)
{
	int err = 0;

	vlist_gather_start(g);
	while (!err && g->stage != VLIST_GATHER_IDLE) {
		kit_begin(&c->kit);
		vlist_gather_add(c, g);
		err = kit_run(&c->kit);
		if (!err)
			vlist_gather_take(c, g);
	}
	return err;
}
