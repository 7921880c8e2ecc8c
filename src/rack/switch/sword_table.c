/* SPDX-License-Identifier: Apache-2.0 */
/* SwordBox's tables: who is who, and which words are known. */
#include <errno.h>
#include <string.h>

#include "sword.h"

/* ---- connections -------------------------------------------------------- */

struct sword_server *sword_server_find(const struct sword *s,
				       const uint8_t ip[16])
{
	for (unsigned i = 0; i < s->server_top; i++)
		if (s->servers[i].used &&
		    memcmp(s->servers[i].end.header.dst_ip, ip, 16) == 0)
			return (struct sword_server *)&s->servers[i];
	return NULL;
}

/* The shared connection still points to some of its operations; a dead one to
 * nothing. */
static bool is_busy(struct sword *s, const struct sword_conn *c)
{
	return (c->in_state[SWORD_PLACED] | c->in_state[SWORD_ISSUED]) &&
	       !s->servers[c->server].end.dead;
}

void sword_conn_drop(struct sword *s, struct sword_conn *c)
{
	struct sword_op *ops = sword_ops(s, c);

	for (unsigned i = 0; i < SWORD_DEPTH; i++) {
		if (ops[i].state != SWORD_FREE && ops[i].state != SWORD_DONE)
			s->regions[ops[i].region].active--;
		sword_buffer_give(s, &ops[i]);
		sword_op_move(s, &ops[i], SWORD_FREE);
	}
	if (c->bulk_region >= 0)
		s->regions[c->bulk_region].bulk_conn = -1;
	tor_conns_unlink(&s->table, &c->id);
}

/* Ends a connection of which nobody told us that it has ended: its client, if
 * there is one, gets an error. */
static int end_idle(struct sword *s)
{
	uint64_t now_ns = tor_now_ns(s->tor);

	for (uint32_t i = 0; s->opt.idle_ns && i < s->opt.conns; i++) {
		struct sword_conn *c = &s->conns[i];

		if (now_ns - c->seen_ns < s->opt.idle_ns || is_busy(s, c))
			continue;
		sword_conn_drop(s, c);
		sword_count(s, SWORD_C_idle_ended);
		return 0;
	}
	return -ENOSPC;
}

int sword_conn_add(struct sword *s, const struct sword_conn *conn)
{
	uint32_t i;
	int err = tor_conns_place(&s->table, &conn->id, &i);

	if (err == -ENOSPC && !end_idle(s))
		err = tor_conns_place(&s->table, &conn->id, &i);
	if (err)
		return err;
	s->conns[i] = *conn;
	s->conns[i].seen_ns = tor_now_ns(s->tor);
	s->conns[i].in_state[SWORD_FREE] = UINT32_MAX;
	memset(sword_ops(s, &s->conns[i]), 0,
	       SWORD_DEPTH * sizeof(struct sword_op));
	tor_conns_link(&s->table, i);
	return 0;
}

int sword_conn_remove(struct sword *s, const struct sword_conn *like)
{
	struct sword_conn *c = tor_conns_same(&s->table, &like->id);

	if (!c)
		return -ENOENT;
	if (is_busy(s, c))
		return -EBUSY;
	sword_conn_drop(s, c);
	return 0;
}

/* ---- regions ------------------------------------------------------------ */

struct sword_region *sword_region_of(struct sword *s, unsigned server,
				     const struct wire_pkt *w)
{
	bool atomic = wire_opcodes[w->opcode].kind == WIRE_ATOMIC;
	uint64_t len = atomic ? 8 : w->dma_len;

	for (unsigned i = 0; i < SWORD_REGIONS; i++) {
		struct sword_region *r = &s->regions[i];

		if (!r->used || r->plain || r->server != server ||
		    r->rkey != w->rkey)
			continue;
		/* Written so that no sum can wrap. */
		if (w->va >= r->va ? w->va - r->va < r->len_bytes
				   : r->va - w->va < len)
			return r;
	}
	return NULL;
}

struct sword_region *sword_region_with(struct sword *s, unsigned server,
				       const struct wire_pkt *w)
{
	bool atomic = wire_opcodes[w->opcode].kind == WIRE_ATOMIC;
	uint64_t len = atomic ? 8 : w->dma_len;

	for (unsigned i = 0; i < SWORD_REGIONS; i++) {
		struct sword_region *r = &s->regions[i];

		if (r->used && r->server == server && r->rkey == w->rkey &&
		    w->va >= r->va && len <= r->len_bytes &&
		    w->va - r->va <= r->len_bytes - len)
			return r;
	}
	return NULL;
}

/* ---- words -------------------------------------------------------------- */

static struct sword_word *word_bucket(struct sword *s, unsigned server,
				      uint64_t va)
{
	uint64_t h = (va >> 3) * 0x9e3779b97f4a7c15ull + server;

	h ^= h >> 32;
	return s->words + (h & (s->word_buckets - 1)) * SWORD_WAYS;
}

struct sword_word *sword_word_get(struct sword *s, unsigned server, uint64_t va)
{
	struct sword_word *b = word_bucket(s, server, va);
	struct sword_word *victim = NULL;

	for (unsigned i = 0; i < SWORD_WAYS; i++) {
		struct sword_word *w = &b[i];

		if (w->server == server + 1 && w->va == va)
			return w;
		if (w->refs)
			continue;
		if (!victim || !w->server ||
		    (victim->server && w->used_ns < victim->used_ns))
			victim = w;
	}
	if (!victim)
		return NULL;
	if (victim->server)
		sword_count(s, SWORD_C_evictions);
	*victim =
		(struct sword_word){.va = va, .server = (uint8_t)(server + 1)};
	return victim;
}

void sword_words_forget(struct sword *s, const struct sword_region *r)
{
	for (uint32_t i = 0; i < s->word_buckets * SWORD_WAYS; i++) {
		struct sword_word *w = &s->words[i];

		if (w->server == r->server + 1 && w->va >= r->va &&
		    w->va - r->va < r->len_bytes)
			w->valid = false;
	}
}

void sword_words_of_server(struct sword *s, unsigned server)
{
	for (uint32_t i = 0; i < s->word_buckets * SWORD_WAYS; i++)
		if (s->words[i].server == server + 1)
			s->words[i] = (struct sword_word){0};
}

void sword_words_changed(struct sword *s, unsigned server, uint64_t va,
			 uint64_t len_bytes)
{
	for (uint64_t at = va & ~7ull; at < va + len_bytes; at += 8) {
		struct sword_word *b = word_bucket(s, server, at);

		for (unsigned i = 0; i < SWORD_WAYS; i++)
			if (b[i].server == server + 1 && b[i].va == at)
				b[i].valid = false;
	}
}
