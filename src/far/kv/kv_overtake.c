/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts that nobody needs any more. A put that waits for its key's locks reads
 * the key's rows with every try. If the key's entry has changed between two of
 * these looks, and by somebody who did not look at what was there before
 * (KV_E_PUT), then this put may count as made immediately before that change:
 * both happened while it was under way, and nobody can have seen anything
 * between them. So of many clients that put the same key at once one writes,
 * and the others are done when they see it.
 *
 * A look without the locks sees what a read sees: the entry is in one of its
 * rows, or while it moves in both with the same contents; so what was seen
 * later is not older. Moving changes the place of an entry and not its bytes.
 */
#include <string.h>

#include "base/plant.h"
#include "kv_priv.h"

bool kv_is_overtaken(struct kv_replica *c, struct kv_overtake *o,
		     uint8_t *const row[2])
{
	const uint8_t *entry = NULL;
	struct kv_item item;
	unsigned i;
	bool is_other;

	for (i = 0; i < 2 && !entry; i++) {
		uint32_t skip = 0;
		int at;

		if (!row[i] || !kv_row_is_whole(&c->g, row[i]))
			continue;
		at = kv_row_find(&c->g, row[i], o->place, o->key, o->key_len,
				 &skip, &item);
		/* By its hash alone it may be another key's. */
		if (at >= 0 && item.key)
			entry = kv_entry(&c->g, row[i], (unsigned)at);
	}
	if (!entry)
		return false;
	is_other =
		o->has_entry && memcmp(o->entry, entry, c->g.entry_bytes) != 0;
	o->has_entry = true;
	memcpy(o->entry, entry, c->g.entry_bytes);
	return is_other && (entry[0] & KV_E_PUT || PLANTED(kv_overtake));
}
