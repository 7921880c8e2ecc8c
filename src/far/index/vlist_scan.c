/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking for versions to collect, of keys that this client does not write
 * often enough to come across them: many keys at a time. Who writes steadily
 * does this beside its writes (vlist_gather.c) and seldom comes here.
 */
#include <errno.h>

#include "base/error.h"
#include "vlist_priv.h"

/* One of unknown outcome: only if the way from the entry leads over it. */
static int collect_doubtful(struct vlist_client *c, uint32_t i)
{
	uint64_t key = c->mine[i].key, target = vlist_mine_pointer(c, i);
	uint64_t entry, head, last = 0, old;
	enum vlist_found found;
	int err = kit_read_now(&c->kit.main, c->mine[i].offset, c->word, 8);

	if (err || !vlist_is_pointer(*c->word))
		return err; /* nothing follows it */
	err = vlist_entry_find(c, key, &entry, &head);
	if (err)
		return err == -ENOENT ? 0 : err;
	if (!head)
		return 0;
	err = vlist_walk(c, key, head, target, VLIST_SCAN_STEPS, &found, &last);
	if (err || found != VLIST_FOUND || !vlist_is_pointer(last))
		return err;
	err = kit_cas_now(&c->kit.main, VLIST_POINT_HEAD,
			  entry + offsetof(struct vlist_entry, head), head,
			  last, &old);
	if (err || old != head)
		return err;
	c->stats.heads++;
	vlist_node_give(c, i);
	c->stats.collected++;
	return 0;
}

int vlist_scan(struct vlist_client *c)
{
	uint32_t left = u32_min(c->mine_count, VLIST_SCAN_NODES);
	struct vlist_gather g = {0};
	int err = 0;

	c->stats.scans++;
	while (!err && left && !kit_is_late(&c->kit)) {
		uint32_t i = c->scan_at++ % c->mine_count;

		left--;
		if (c->mine[i].state == VLIST_MINE_LIMBO)
			err = collect_doubtful(c, i);
		else if (c->mine[i].state == VLIST_MINE_USED)
			err = vlist_gather_key_of(c, &g, i);
		if (err || (left && g.count < VLIST_SCAN_BATCH))
			continue;
		err = vlist_gather_run(c, &g);
		g.count = 0;
	}
	return err;
}
