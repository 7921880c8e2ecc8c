/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trying for several locks at once, all of them or none, so nobody waits while
 * it holds one. The rows that they guard are read behind them in the same
 * batch, or, where the table is mapped, loaded once the locks are held.
 */
#include <errno.h>
#include <string.h>

#include "kv_priv.h"

/* How many rows from this one on are neighbours and needed. */
static unsigned run_of(const struct kv_rows *rows, unsigned from)
{
	unsigned end = from + 1;

	while (end < rows->count && rows->state[end] == KV_ROW_NEEDED &&
	       rows->number[end] == rows->number[end - 1] + 1)
		end++;
	return end - from;
}

static void set_here(struct kv_rows *rows, unsigned from, unsigned count)
{
	memset(&rows->state[from], KV_ROW_HERE, count);
}

/* The READs of those that are needed. */
static void add_rows(struct kv_replica *c, const struct kv_rows *rows)
{
	for (unsigned i = 0, n; i < rows->count; i += n) {
		n = 1;
		if (rows->state[i] != KV_ROW_NEEDED)
			continue;
		n = run_of(rows, i);
		kit_read(&c->kit.main, kv_row_at(&c->g, rows->number[i]),
			 rows->bytes + (size_t)i * c->g.row_bytes,
			 (uint64_t)n * c->g.row_bytes);
	}
}

static struct aqdv_read read_of(struct kv_replica *c,
				const struct kv_rows *rows, unsigned from,
				unsigned count)
{
	return (struct aqdv_read){
		.remote_addr = c->kit.remote.look_addr +
			       kv_row_at(&c->g, rows->number[from]),
		.to = rows->bytes + (size_t)from * c->g.row_bytes,
		.rkey = c->kit.remote.look_rkey,
		.len_bytes = count * c->g.row_bytes};
}

/* As loads, as far as that goes. */
static void load_mapped(struct kv_replica *c, struct kv_rows *rows)
{
	struct aqdv_read list[KV_MANY_ROWS];
	uint16_t from[KV_MANY_ROWS];
	unsigned i, n, count = 0;
	int done;

	for (i = 0; i < rows->count; i += n) {
		n = 1;
		if (rows->state[i] != KV_ROW_NEEDED)
			continue;
		n = run_of(rows, i);
		from[count] = (uint16_t)i;
		list[count++] = read_of(c, rows, i, n);
	}
	done = aqdv_read_now(c->kit.remote.link->qp, list, count);
	for (i = 0; (int)i < done; i++)
		set_here(rows, from[i], list[i].len_bytes / c->g.row_bytes);
}

/* What could not be loaded is READ. The locks are held, so what is read stays
 * true. */
static int load(struct kv_replica *c, struct kv_rows *rows)
{
	int err = 0;

	load_mapped(c, rows);
	if (UNLIKELY(memchr(rows->state, KV_ROW_NEEDED, rows->count))) {
		kit_begin(&c->kit);
		add_rows(c, rows);
		err = kit_run(&c->kit);
	}
	return err;
}

int kv_row_load(struct kv_replica *c, struct kv_rows *rows, unsigned at)
{
	struct aqdv_read one = read_of(c, rows, at, 1);
	int err = 0;

	if (aqdv_read_now(c->kit.remote.link->qp, &one, 1) != 1)
		err = kit_read_now(&c->kit.main,
				   kv_row_at(&c->g, rows->number[at]), one.to,
				   c->g.row_bytes);
	if (!err)
		rows->state[at] = KV_ROW_HERE;
	return err;
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
		add_rows(c, t->rows);
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
