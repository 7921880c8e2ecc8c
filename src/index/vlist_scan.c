/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking for versions to collect, of keys that this client does not write
 * often enough to come across them: those that are not the newest, once the
 * key's entry points behind them. Many keys at a time, because each takes a few
 * small requests, and all versions of a key at once.
 */
#include <errno.h>

#include "error.h"
#include "vlist_priv.h"

/* A version that perhaps has a successor. */
struct old {
	uint32_t mine;
	uint64_t key;
	uint64_t entry;
	uint64_t head;	/* as read */
	uint64_t place; /* a committed version, perhaps the newest */
	bool is_newest;
	bool is_lost;
};

static bool is_candidate(const struct vlist_mine *m)
{
	return m->state == VLIST_MINE_USED || m->state == VLIST_MINE_LIMBO;
}

static bool is_picked(const struct vlist_client *c, const uint32_t *picked,
		      unsigned n, uint64_t key)
{
	for (unsigned k = 0; k < n; k++)
		if (c->mine[picked[k]].key == key)
			return true;
	return false;
}

/* Up to VLIST_SCAN_BATCH of them, of different keys; returns how many. */
static unsigned pick(struct vlist_client *c, uint32_t picked[VLIST_SCAN_BATCH],
		     uint32_t *left)
{
	unsigned n = 0;

	while (n < VLIST_SCAN_BATCH && *left) {
		uint32_t i = c->scan_at++ % c->mine_count;

		(*left)--;
		if (is_candidate(&c->mine[i]) &&
		    !is_picked(c, picked, n, c->mine[i].key))
			picked[n++] = i;
	}
	return n;
}

/* ---- versions of which it is known that they were committed -------------- */

static struct vlist_node *node_of(struct vlist_client *c, unsigned k)
{
	return (struct vlist_node *)(c->stage + (size_t)k * 4096);
}

STATIC_ASSERT((int)VLIST_SCAN_BATCH * 4096 <= (int)VLIST_STAGE_BYTES,
	      "a node each");

static bool is_open(const struct old *o)
{
	return !o->is_newest && !o->is_lost;
}

/*
 * Heads first, then what might be the newest: so what is found to be the newest
 * is not before what the entry said. Each in a round trip of its own: a READ
 * whose answer is lost is executed again, and then perhaps after the one behind
 * it. (Atomics would not be, but of one word there are few in a second.)
 */
static int read_heads(struct vlist_client *c, struct old *o, unsigned n)
{
	int err;

	vlist_begin(c);
	for (unsigned k = 0; k < n; k++)
		vlist_add_read(c,
			       o[k].entry + offsetof(struct vlist_entry, head),
			       &c->words[k], 8);
	err = vlist_run(c);
	for (unsigned k = 0; k < n; k++)
		o[k].head = c->words[k];
	return err;
}

static int look(struct vlist_client *c, const struct old *o, unsigned n)
{
	vlist_begin(c);
	for (unsigned k = 0; k < n; k++)
		if (is_open(&o[k]))
			vlist_add_read(c, vlist_offset(o[k].place),
				       node_of(c, k),
				       c->config.no_steer ? VLIST_NODE_HEAD
							  : c->g.node_bytes);
	return vlist_run(c);
}

static unsigned judge(struct vlist_client *c, struct old *o, unsigned n)
{
	unsigned open = 0;

	for (unsigned k = 0; k < n; k++) {
		uint64_t self, next;

		if (!is_open(&o[k]))
			continue;
		switch (vlist_judge(c, node_of(c, k), o[k].key, o[k].place,
				    !c->config.no_steer, &self, &next)) {
		case VLIST_NEWEST:
			o[k].place = self;
			o[k].is_newest = true;
			break;
		case VLIST_OLD:
			o[k].place = next;
			open++;
			break;
		case VLIST_STALE:
		case VLIST_ASTRAY:
		case VLIST_UNVOUCHED:
			o[k].is_lost = true;
		}
	}
	return open;
}

static void done(struct vlist_client *c, uint32_t i)
{
	vlist_node_give(c, i);
	c->stats.collected++;
}

/* All of this client's versions of the key but the newest one of all, which
 * the entry points to now. */
static void collect_key(struct vlist_client *c, const struct old *o)
{
	const struct vlist_memo *m = vlist_memo_find(c, o->key);
	uint32_t i = m ? m->newest : VLIST_NONE;

	if (i != VLIST_NONE && c->mine[i].generation == m->newest_generation &&
	    c->mine[i].state == VLIST_MINE_USED) {
		vlist_collect_older(c, i);
		if (vlist_mine_pointer(c, i) != o->place)
			done(c, i);
	}
	if (c->mine[o->mine].state == VLIST_MINE_USED &&
	    vlist_mine_pointer(c, o->mine) != o->place)
		done(c, o->mine);
}

/* Entries move on to the newest versions. */
static int move_heads(struct vlist_client *c, const struct old *o, unsigned n)
{
	int err;

	vlist_begin(c);
	for (unsigned k = 0; k < n; k++) {
		c->words[k] = o[k].head;
		if (o[k].is_newest && o[k].head != o[k].place)
			vlist_add_cas(
				c, VLIST_POINT_HEAD,
				o[k].entry + offsetof(struct vlist_entry, head),
				o[k].head, o[k].place, &c->words[k]);
	}
	err = vlist_run(c);
	for (unsigned k = 0; !err && k < n; k++) {
		if (!o[k].is_newest ||
		    (c->words[k] != o[k].head && c->words[k] != o[k].place))
			continue;
		c->stats.heads += o[k].head != o[k].place;
		collect_key(c, &o[k]);
	}
	return err;
}

static int collect(struct vlist_client *c, struct old *o, unsigned n)
{
	unsigned open = n;
	int err = read_heads(c, o, n);
	for (unsigned i = 0; !err && open && i < VLIST_SCAN_LOOKS; i++) {
		err = look(c, o, n);
		if (!err)
			open = judge(c, o, n);
	}
	return err || !n ? err : move_heads(c, o, n);
}

static int prepare(struct vlist_client *c, uint32_t i, struct old *o)
{
	const struct vlist_memo *m = vlist_memo_find(c, c->mine[i].key);
	uint64_t head;

	*o = (struct old){.mine = i,
			  .key = c->mine[i].key,
			  .entry = m ? m->entry : 0,
			  .place = m && m->place ? m->place
						 : vlist_mine_pointer(c, i)};
	return o->entry ? 0 : vlist_entry_find(c, o->key, &o->entry, &head);
}

/* ---- the others -----------------------------------------------------------
 */

/* One of unknown outcome: only if the way from the entry leads over it. */
static int collect_doubtful(struct vlist_client *c, uint32_t i)
{
	uint64_t key = c->mine[i].key, target = vlist_mine_pointer(c, i);
	uint64_t entry, head, last = 0, old;
	enum vlist_found found;
	int err = vlist_read_now(c, c->mine[i].offset, &c->words[0], 8);

	if (err || !vlist_is_pointer(c->words[0]))
		return err; /* nothing follows it */
	err = vlist_entry_find(c, key, &entry, &head);
	if (err)
		return err == -ENOENT ? 0 : err;
	if (!head)
		return 0;
	err = vlist_walk(c, key, head, target, VLIST_SCAN_STEPS, &found, &last);
	if (err || found != VLIST_FOUND || !vlist_is_pointer(last))
		return err;
	err = vlist_cas_now(c, VLIST_POINT_HEAD,
			    entry + offsetof(struct vlist_entry, head), head,
			    last, &old);
	if (err || old != head)
		return err;
	c->stats.heads++;
	done(c, i);
	return 0;
}

static int scan_some(struct vlist_client *c, const uint32_t *picked, unsigned n)
{
	struct old old[VLIST_SCAN_BATCH];
	unsigned count = 0;
	int err = 0;

	for (unsigned k = 0; !err && k < n && !vlist_is_late(c); k++) {
		if (c->mine[picked[k]].state == VLIST_MINE_LIMBO)
			err = collect_doubtful(c, picked[k]);
		else
			err = prepare(c, picked[k], &old[count++]);
	}
	return err ? err : collect(c, old, count);
}

int vlist_scan(struct vlist_client *c)
{
	uint32_t left = u32_min(c->mine_count, VLIST_SCAN_NODES);
	uint32_t picked[VLIST_SCAN_BATCH];
	unsigned n;
	int err = 0;

	c->stats.scans++;
	while (!err && c->mine_count && (n = pick(c, picked, &left)))
		err = scan_some(c, picked, n);
	return err;
}
