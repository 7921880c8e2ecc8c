/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a replica, and how long a client may rely on it.
 *
 * A client that has seen the state may work for one term without looking again,
 * counted from before it asked; after that a look goes along with its requests,
 * behind them, which proves them as well. Who changes what others rely on does
 * it in two steps: it makes a state that nobody gets a term from (FREEZING, or
 * RISING at the second copy), and outlasts the terms that there are. Clocks
 * only have to run at about the same speed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"
#include "kv_priv.h"

void kv_add_state(struct kv_replica *c, void *to)
{
	kit_read(&c->kit.main, kv_lease_at(&c->g, KV_LEASE_STATE), to, 8);
}

bool kv_state_note(struct kv_replica *c, uint64_t word, uint64_t asked_ns)
{
	c->state = word;
	if (word != c->expect) {
		c->valid_ns = 0;
		return false;
	}
	if (kv_state_phase(word) != KV_PHASE_FREEZING)
		c->valid_ns = u64_max(c->valid_ns, asked_ns + c->term_ns);
	return true;
}

static int look(struct kv_replica *c, uint64_t *asked_ns)
{
	*asked_ns = kit_now_ns(&c->kit);
	return kit_read_now(&c->kit.main, kv_lease_at(&c->g, KV_LEASE_STATE),
			    &c->atom[KV_ATOM_STATE], 8);
}

int kv_state_confirm(struct kv_replica *c)
{
	uint64_t asked_ns;
	int err;

	if (kit_now_ns(&c->kit) <= c->valid_ns)
		return 0;
	err = look(c, &asked_ns);
	if (err)
		return err;
	return kv_state_note(c, c->atom[KV_ATOM_STATE], asked_ns) ? 0
								  : KV_E_VIEW;
}

int kv_state_adopt(struct kv_replica *c)
{
	uint64_t asked_ns;
	int err = look(c, &asked_ns);

	if (err)
		return err;
	c->expect = c->atom[KV_ATOM_STATE];
	(void)kv_state_note(c, c->expect, asked_ns);
	return 0;
}

int kv_state_move(struct kv_replica *c, uint64_t to)
{
	uint64_t old;
	int err = kit_cas_now(&c->kit.main, KV_POINT_STATE,
			      kv_lease_at(&c->g, KV_LEASE_STATE), c->expect, to,
			      &old);

	if (err)
		return err;
	c->valid_ns = 0;
	if (old != c->expect) {
		c->state = old;
		return KV_E_VIEW;
	}
	c->expect = c->state = to;
	return 0;
}

void kv_state_outlast(struct kv_replica *c)
{
	if (!PLANTED(kv_terms))
		kv_pause(c, c->term_ns + c->term_ns / 4);
}

/* ---- locks -------------------------------------------------------------- */

/* Locks that have not been seen free, or with another holder, yet. */
struct pending {
	uint64_t *word;
	uint64_t count;
	uint64_t first; /* one of them */
	bool any;
};

static int look_at_locks(struct kv_replica *c, struct pending *p, bool is_first)
{
	uint64_t at, i, n, v;
	int err = 0;

	p->any = false;
	for (at = 0; at < p->count && !err; at += n) {
		n = u64_min(p->count - at, KIT_STAGE_BYTES / 8);
		err = kit_read_now(&c->kit.locks, kv_lock_at(at), c->kit.stage,
				   8 * n);
		for (i = 0; i < n && !err; i++) {
			memcpy(&v, c->kit.stage + 8 * i, sizeof(v));
			if (is_first)
				p->word[at + i] = v;
			else if (!(c->g.flags & KV_WORD_LOCKS))
				p->word[at + i] &= v;
			else if (p->word[at + i] != v)
				p->word[at + i] = 0;
			if (p->word[at + i] && !p->any) {
				p->any = true;
				p->first = at + i;
			}
		}
	}
	return err;
}

int kv_locks_outlast(struct kv_replica *c)
{
	struct pending p = {.count = (c->g.lock_bytes - kv_lock_at(0)) / 8};
	uint64_t since = kit_now_ns(&c->kit);
	int err;

	if (PLANTED(kv_locks))
		return 0;
	p.word = calloc(p.count, sizeof(p.word[0]));
	if (!p.word)
		return error_set(-ENOMEM, "no memory for the locks");
	err = look_at_locks(c, &p, true);
	while (!err && p.any) {
		uint64_t mask = c->g.flags & KV_WORD_LOCKS ? UINT64_MAX
							   : p.word[p.first];

		kv_pause(c, KV_LEASE_POLL_NS);
		if (kit_now_ns(&c->kit) - since > c->kit.failure_ns / 2) {
			err = kv_recover(c, p.first, mask);
			since = kit_now_ns(&c->kit);
		}
		if (!err)
			err = kv_past_deadline(c);
		if (!err)
			err = look_at_locks(c, &p, false);
	}
	free(p.word);
	return err;
}
