/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All keys of a store, with their values, in no order. An entry of the index
 * stays where it is and is never given back, so one walk over the buckets meets
 * every key that was there when it began.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "vlist_priv.h"

enum {
	AT_ONCE = KIT_STAGE_BYTES / VLIST_BUCKET_BYTES, /* buckets */
};

struct walk {
	struct vlist_client *c;
	vlist_pair_fn each;
	void *user;
	struct vlist_entry *entry; /* AT_ONCE buckets of them */
	uint8_t *value;
	size_t value_bytes;
};

static int read_buckets(struct walk *w, uint64_t at, uint64_t count)
{
	struct vlist_client *c = w->c;
	int err = -ESTALE;

	kit_set_deadline(&c->kit, c->config.deadline_ms);
	for (unsigned i = 0; i < KIT_RECONNECTS && err == -ESTALE; i++) {
		err = c->kit.is_broken ? vlist_reconnect(c) : 0;
		if (!err)
			err = kit_read_now(&c->kit.main, at, c->kit.stage,
					   count * VLIST_BUCKET_BYTES);
	}
	if (!err)
		memcpy(w->entry, c->kit.stage, count * VLIST_BUCKET_BYTES);
	return err;
}

/* What the entry says is remembered before the key is read, which saves the
 * search for it. */
static int give(struct walk *w, uint64_t at, const struct vlist_entry *e)
{
	uint64_t key = le64_get(e->key1) - 1, head = le64_get(e->head);
	struct vlist_memo *m;
	be64 name = be64_put(key);
	size_t len;
	int err;

	if (!le64_get(e->key1) || !head)
		return 0;
	m = vlist_memo(w->c, key);
	m->entry = at;
	if (!m->place && vlist_pointer_is_sane(&w->c->g, head))
		vlist_place_set(w->c, m, head, false);
	err = vlist_get(w->c, key, w->value, w->value_bytes, &len);
	if (err)
		return err == -ENOENT ? 0 : err;
	return w->each(w->user, &name, sizeof(name), w->value, len);
}

static int walk(struct walk *w)
{
	const struct vlist_geometry *g = &w->c->g;
	uint64_t b, n;
	int err = 0;

	for (b = 0; b < g->bucket_count && !err; b += n) {
		uint64_t at = g->bucket_offset + b * VLIST_BUCKET_BYTES;

		n = u64_min(g->bucket_count - b, AT_ONCE);
		err = read_buckets(w, at, n);
		for (uint64_t i = 0; i < n * VLIST_BUCKET && !err; i++)
			err = give(w, at + i * VLIST_ENTRY_BYTES, &w->entry[i]);
	}
	return err;
}

int vlist_each(struct vlist_client *c, vlist_pair_fn each, void *user)
{
	struct walk w = {.c = c,
			 .each = each,
			 .user = user,
			 .entry = malloc(KIT_STAGE_BYTES),
			 .value = malloc(c->g.node_bytes),
			 .value_bytes = c->g.node_bytes};
	int err = w.entry && w.value ? walk(&w)
				     : error_set(-ENOMEM, "no memory to walk");

	free(w.entry);
	free(w.value);
	return err;
}
