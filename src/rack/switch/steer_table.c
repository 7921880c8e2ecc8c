/* SPDX-License-Identifier: Apache-2.0 */
/* Steering's tables: stores, connections, the keys that are written most, and
 * which key a version is of. */
#include <errno.h>
#include <string.h>

#include "steer.h"

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
	x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

/* ---- stores -------------------------------------------------------------- */

struct steer_store *steer_store_of(struct steer *s, const struct wire_pkt *w)
{
	for (unsigned i = 0; i < STEER_STORES; i++) {
		struct steer_store *t = &s->stores[i];
		uint64_t at = w->va - t->va - t->nodes_at;

		if (t->used && t->rkey == w->rkey &&
		    memcmp(t->server_ip, w->dst_ip, 16) == 0 &&
		    at < t->nodes * t->node_bytes && at % t->node_bytes == 0)
			return t;
	}
	return NULL;
}

/* Another store may get its place. */
void steer_store_remove(struct steer *s, unsigned store)
{
	for (size_t i = 0; i < (size_t)s->opt.conns * STEER_DEPTH; i++)
		if (s->ops[i].state != STEER_FREE && s->ops[i].store == store)
			steer_op_forget(s, &s->ops[i]);
	for (uint32_t i = 0; i < s->buckets * s->ways; i++) {
		struct steer_entry *e = &s->entries[i];

		if (!e->used || e->store != store)
			continue;
		steer_entry_break(e);
		e->used = false;
	}
	for (uint32_t i = 0; i <= s->past_mask; i++)
		if (s->past[i].store == store)
			s->past[i] = (struct steer_past){0};
	s->stores[store].used = false;
}

/* ---- connections --------------------------------------------------------- */

int steer_conn_add(struct steer *s, const struct steer_conn *conn)
{
	uint32_t i;
	int err = tor_conns_place(&s->table, &conn->id, &i);

	if (err)
		return err;
	s->conns[i] = *conn;
	tor_conns_link(&s->table, i);
	return 0;
}

static void drop_conn(struct steer *s, struct steer_conn *c)
{
	struct steer_op *ops = steer_ops(s, c);

	steer_read_let_go(s, c);
	for (unsigned i = 0; i < STEER_DEPTH; i++)
		steer_op_forget(s, &ops[i]);
	tor_conns_unlink(&s->table, &c->id);
}

int steer_conn_remove(struct steer *s, const struct steer_conn *like)
{
	struct steer_conn *c = tor_conns_same(&s->table, &like->id);

	if (!c)
		return -ENOENT;
	drop_conn(s, c);
	return 0;
}

void steer_server_remove(struct steer *s, const uint8_t server_ip[16])
{
	for (uint32_t i = 0; i < s->opt.conns; i++)
		if (s->conns[i].id.used &&
		    memcmp(s->conns[i].id.server_ip, server_ip, 16) == 0)
			drop_conn(s, &s->conns[i]);
}

/* ---- keys ---------------------------------------------------------------- */

/*
 * Which keys are written most: a sketch of counters, two for each key of which
 * the smaller one counts, halved now and then (Einziger and Friedman's TinyLFU,
 * in short). A key that finds its places taken gets one from the coldest of
 * them, if that is colder.
 */
static uint8_t *counter(struct steer *s, uint64_t h, unsigned which)
{
	return &s->sketch[(which ? h >> 32 : h) & (STEER_SKETCH - 1)];
}

static unsigned heat(struct steer *s, uint64_t h)
{
	return u32_min(*counter(s, h, 0), *counter(s, h, 1));
}

static void warm(struct steer *s, uint64_t h)
{
	for (unsigned i = 0; i < 2; i++) {
		uint8_t *c = counter(s, h, i);

		if (*c < UINT8_MAX)
			(*c)++;
	}
	if (++s->sketch_sum < STEER_SKETCH * 4)
		return;
	s->sketch_sum = 0;
	for (unsigned i = 0; i < STEER_SKETCH; i++)
		s->sketch[i] >>= 1;
}

static uint64_t key_hash(unsigned store, uint64_t key)
{
	return mix(key ^ mix(store + 1));
}

static struct steer_entry *bucket(struct steer *s, uint64_t h)
{
	return s->entries + (h >> 8) % s->buckets * s->ways;
}

struct steer_entry *steer_entry_find(struct steer *s, unsigned store,
				     uint64_t key)
{
	struct steer_entry *b = bucket(s, key_hash(store, key));

	for (unsigned i = 0; i < s->ways; i++)
		if (b[i].used && b[i].store == store && b[i].key == key)
			return &b[i];
	return NULL;
}

void steer_entry_break(struct steer_entry *e)
{
	e->epoch++;
	e->end = e->committed = e->open_ns = e->back_at = 0;
	e->last = (struct steer_ref){0};
	e->learns = true;
}

struct steer_entry *steer_entry_get(struct steer *s, unsigned store,
				    uint64_t key)
{
	uint64_t h = key_hash(store, key);
	struct steer_entry *e = steer_entry_find(s, store, key);
	struct steer_entry *b = bucket(s, h), *victim = NULL;
	unsigned coldest = UINT32_MAX;

	warm(s, h);
	if (e)
		return e;
	for (unsigned i = 0; i < s->ways && coldest; i++) {
		unsigned t =
			b[i].used ? heat(s, key_hash(b[i].store, b[i].key)) : 0;

		if (t < coldest) {
			coldest = t;
			victim = &b[i];
		}
	}
	if (victim->used && coldest >= heat(s, h)) {
		steer_count(s, STEER_C_not_admitted);
		return NULL;
	}
	steer_count(s, victim->used ? STEER_C_evictions : STEER_C_admitted);
	steer_entry_break(victim);
	/* In a place that nobody had the first append is a good guess; where
	 * keys compete, many wait. */
	victim->learns = victim->used;
	victim->used = true;
	victim->store = (uint8_t)store;
	victim->key = key;
	return victim;
}

/* ---- versions ------------------------------------------------------------ */

/* By number, so that the versions of one store do not drive each other out
 * where there is room for all. */
static struct steer_past *past_of(struct steer *s, unsigned store,
				  uint64_t offset)
{
	const struct steer_store *t = &s->stores[store];
	uint64_t number = (offset - t->nodes_at) / t->node_bytes;

	return &s->past[(number + mix(store)) & s->past_mask];
}

void steer_past_add(struct steer *s, unsigned store, uint64_t node,
		    uint64_t key)
{
	*past_of(s, store, vlist_offset(node)) =
		(struct steer_past){.offset = vlist_offset(node) + 1,
				    .key = key,
				    .store = (uint8_t)store};
}

struct steer_entry *steer_past_find(struct steer *s, unsigned store,
				    uint64_t offset)
{
	const struct steer_past *p = past_of(s, store, offset);

	return p->offset == offset + 1 && p->store == store
		       ? steer_entry_find(s, store, p->key)
		       : NULL;
}
