/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking for versions to collect, of keys that this client does not write
 * often enough to come across them: those that have a successor, once the
 * key's entry points behind them.
 */
#include <errno.h>

#include "error.h"
#include "vlist_priv.h"

static bool is_candidate(const struct vlist_mine *m)
{
	return m->state == VLIST_MINE_USED || m->state == VLIST_MINE_LIMBO;
}

/* Up to VLIST_WR_MAX of them; returns how many. */
static unsigned pick(struct vlist_client *c, uint32_t picked[VLIST_WR_MAX],
		     uint32_t *left)
{
	unsigned n = 0;

	while (n < VLIST_WR_MAX && *left) {
		uint32_t i = c->scan_at++ % c->mine_count;

		(*left)--;
		if (is_candidate(&c->mine[i]))
			picked[n++] = i;
	}
	return n;
}

/*
 * Frees one that has a successor. Its key's entry points to it or to one before
 * it, and is moved on; or to one behind it, when the way from there to the end
 * does not lead over it; of one whose outcome is not known only the first will
 * do.
 */
static int collect(struct vlist_client *c, uint32_t i)
{
	uint64_t key = c->mine[i].key, target = vlist_mine_pointer(c, i);
	uint64_t entry, head, last = 0, old;
	enum vlist_found found;
	int err = vlist_entry_find(c, key, &entry, &head);

	if (err)
		return err == -ENOENT ? 0 : err;
	if (!head)
		return 0;
	err = vlist_walk(c, key, head, target, VLIST_SCAN_STEPS, &found, &last);
	if (err || found == VLIST_LOST)
		return err;
	if (found == VLIST_NOT_THERE && c->mine[i].state != VLIST_MINE_USED)
		return 0;
	if (found == VLIST_FOUND) {
		if (!vlist_is_pointer(last))
			return 0;
		err = vlist_cas_now(c, VLIST_POINT_HEAD,
				    entry + offsetof(struct vlist_entry, head),
				    head, last, &old);
		if (err || old != head)
			return err;
		c->stats.heads++;
	}
	vlist_node_give(c, i);
	c->stats.collected++;
	return 0;
}

int vlist_scan(struct vlist_client *c)
{
	uint32_t left = u32_min(c->mine_count, VLIST_SCAN_NODES);
	uint32_t picked[VLIST_WR_MAX];
	unsigned n;
	int err = 0;

	c->stats.scans++;
	while (!err && (n = pick(c, picked, &left))) {
		uint64_t next[VLIST_WR_MAX];

		vlist_begin(c);
		for (unsigned k = 0; k < n; k++)
			vlist_add_read(c, c->mine[picked[k]].offset,
				       &c->words[k], sizeof(c->words[k]));
		err = vlist_run(c);
		for (unsigned k = 0; k < n; k++)
			next[k] = c->words[k];
		for (unsigned k = 0; !err && k < n; k++)
			if (vlist_is_pointer(next[k]) && !vlist_is_late(c))
				err = collect(c, picked[k]);
	}
	return err;
}
