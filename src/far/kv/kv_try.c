/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trying for several locks at once, all of them or none, so nobody waits while
 * it holds one. The rows that they guard are read behind them in the same
 * batch, or, where the table is mapped, loaded once the locks are held.
 */
#include <errno.h>
#include <stdlib.h>

#include "kv_priv.h"

/* How many rows from this one on are neighbours. */
static unsigned run_of(const struct kv_rows *rows, unsigned from)
{
	unsigned end = from + 1;

	while (end < rows->count &&
	       rows->number[end] == rows->number[end - 1] + 1)
		end++;
	return end - from;
}

/* The READs of those from this one on. */
static void add_rows(struct kv_replica *c, const struct kv_rows *rows,
		     unsigned from)
{
	for (unsigned i = from, n; i < rows->count; i += n) {
		n = run_of(rows, i);
		kit_read(&c->kit.main, kv_row_at(&c->g, rows->number[i]),
			 rows->bytes + (size_t)i * c->g.row_bytes,
			 (uint64_t)n * c->g.row_bytes);
	}
}

/* As loads, as far as that goes; how many of the rows. */
static unsigned load_mapped(struct kv_replica *c, const struct kv_rows *rows)
{
	struct aqdv_read list[KV_MANY_ROWS];
	unsigned i, n, count = 0, loaded = 0;
	int done;

	for (i = 0; i < rows->count; i += n) {
		n = run_of(rows, i);
		list[count++] = (struct aqdv_read){
			.remote_addr = c->kit.remote.look_addr +
				       kv_row_at(&c->g, rows->number[i]),
			.to = rows->bytes + (size_t)i * c->g.row_bytes,
			.rkey = c->kit.remote.look_rkey,
			.len_bytes = n * c->g.row_bytes};
	}
	done = aqdv_read_now(c->kit.remote.link->qp, list, count);
	for (i = 0; (int)i < done; i++)
		loaded += list[i].len_bytes / c->g.row_bytes;
	return loaded;
}

/* The locks are held, so what is read stays true. */
static int load(struct kv_replica *c, const struct kv_rows *rows)
{
	unsigned loaded = load_mapped(c, rows);

	if (LIKELY(loaded == rows->count))
		return 0;
	kit_begin(&c->kit);
	add_rows(c, rows, loaded);
	return kit_run(&c->kit);
}

void kv_try_add(struct kv_replica *c, struct kv_try *t)
{
	t->start_ns = kit_now_ns(&c->kit);
	t->asks_state = kv_state_is_due(c, t->start_ns);
	kv_note_recent(c, t->set);
	kv_add_intent(c, t->set);
	for (unsigned i = 0; i < t->set->count; i++)
		kv_add_lock(c, t->set->group[i].word, t->set->group[i].mask,
			    (enum kv_atom)(KV_ATOM_GROUP + i));
	if (t->rows && !c->kit.remote.look_rkey)
		add_rows(c, t->rows, 0);
	if (t->asks_state)
		kv_add_state(c, &c->atom[KV_ATOM_STATE]);
}

int kv_try_end(struct kv_replica *c, const struct kv_try *t)
{
	const struct kv_lockset *set = t->set;
	struct kv_lockset held;
	int err;

	held.count = 0;
	for (unsigned i = 0; i < set->count; i++)
		if (!(c->atom[KV_ATOM_GROUP + i] & set->group[i].mask))
			held.group[held.count++] = set->group[i];
	c->stats.lock_tries += set->count;
	c->stats.lock_fails += set->count - held.count;
	if (held.count < set->count) {
		err = kv_locks_drop(c, &held, held.count);
		return err ? err : -EAGAIN;
	}
	c->stats.lock_sets++;
	c->stats.lock_sets_single += set->count == 1;
	err = kv_locks_check(c, set, t->asks_state, t->start_ns);
	if (!err && t->rows && c->kit.remote.look_rkey)
		err = load(c, t->rows);
	return err;
}

int kv_locks_try(struct kv_replica *c, const struct kv_lockset *set)
{
	struct kv_try t = {.set = set};
	int err;

	kit_begin(&c->kit);
	kv_try_add(c, &t);
	err = kit_run(&c->kit);
	return err ? err : kv_try_end(c, &t);
}
