/* SPDX-License-Identifier: Apache-2.0 */
/* SwordBox's tables: who is who, and which words are known. */
#include <errno.h>
#include <string.h>

#include "sword.h"

/* ---- connections -------------------------------------------------------- */

static uint32_t hash(const uint8_t a[16], const uint8_t b[16], uint32_t qpn)
{
	uint64_t x, y, h;

	memcpy(&x, a + 8, 8);
	memcpy(&y, b + 8, 8);
	h = (x * 0x9e3779b97f4a7c15ull) ^ (y * 0xc2b2ae3d27d4eb4full) ^ qpn;
	h *= 0xff51afd7ed558ccdull;
	return (uint32_t)(h >> 32);
}

static uint32_t *request_chain(struct sword *s, const uint8_t client[16],
			       const uint8_t server[16], uint32_t qpn)
{
	return &s->by_request[hash(client, server, qpn) & s->hash_mask];
}

static uint32_t *reply_chain(struct sword *s, const uint8_t client[16],
			     const uint8_t server[16], uint32_t qpn)
{
	return &s->by_reply[hash(server, client, qpn) & s->hash_mask];
}

struct sword_server *sword_server_find(struct sword *s, const uint8_t ip[16])
{
	for (unsigned i = 0; i < SWORD_SERVERS; i++)
		if (s->servers[i].used &&
		    memcmp(s->servers[i].header.dst_ip, ip, 16) == 0)
			return &s->servers[i];
	return NULL;
}

static const uint8_t *server_ip(const struct sword *s,
				const struct sword_conn *c)
{
	return s->servers[c->server].header.dst_ip;
}

static struct sword_conn *by_request(struct sword *s, const uint8_t client[16],
				     const uint8_t server[16], uint32_t qpn)
{
	uint32_t i = *request_chain(s, client, server, qpn);

	while (i) {
		struct sword_conn *c = &s->conns[i - 1];

		if (c->server_qpn == qpn &&
		    memcmp(c->client_ip, client, 16) == 0 &&
		    memcmp(server_ip(s, c), server, 16) == 0)
			return c;
		i = c->next_request;
	}
	return NULL;
}

static struct sword_conn *by_reply(struct sword *s, const uint8_t client[16],
				   const uint8_t server[16], uint32_t qpn)
{
	uint32_t i = *reply_chain(s, client, server, qpn);

	while (i) {
		struct sword_conn *c = &s->conns[i - 1];

		if (c->client_qpn == qpn &&
		    memcmp(c->client_ip, client, 16) == 0 &&
		    memcmp(server_ip(s, c), server, 16) == 0)
			return c;
		i = c->next_reply;
	}
	return NULL;
}

struct sword_conn *sword_conn_of_request(struct sword *s,
					 const struct wire_pkt *w)
{
	return by_request(s, w->src_ip, w->dst_ip, w->dest_qpn);
}

struct sword_conn *sword_conn_of_reply(struct sword *s,
				       const struct wire_pkt *w)
{
	return by_reply(s, w->dst_ip, w->src_ip, w->dest_qpn);
}

static void unlink_request(struct sword *s, uint32_t *at, uint32_t id)
{
	while (*at != id)
		at = &s->conns[*at - 1].next_request;
	*at = s->conns[id - 1].next_request;
}

static void unlink_reply(struct sword *s, uint32_t *at, uint32_t id)
{
	while (*at != id)
		at = &s->conns[*at - 1].next_reply;
	*at = s->conns[id - 1].next_reply;
}

/* The shared connection still points to some of its operations; a dead one to
 * nothing. */
static bool is_busy(struct sword *s, const struct sword_conn *c)
{
	const struct sword_op *ops = sword_ops(s, c);

	for (unsigned i = 0; i < SWORD_DEPTH; i++)
		if (ops[i].state == SWORD_PLACED ||
		    ops[i].state == SWORD_ISSUED)
			return !s->servers[c->server].dead;
	return false;
}

void sword_conn_drop(struct sword *s, struct sword_conn *c)
{
	const uint8_t *ip = server_ip(s, c);
	struct sword_op *ops = sword_ops(s, c);
	uint32_t id = (uint32_t)(c - s->conns) + 1;

	for (unsigned i = 0; i < SWORD_DEPTH; i++) {
		if (ops[i].state != SWORD_FREE && ops[i].state != SWORD_DONE)
			s->regions[ops[i].region].active--;
		sword_buffer_give(s, &ops[i]);
		ops[i].state = SWORD_FREE;
	}
	if (c->bulk_region >= 0)
		s->regions[c->bulk_region].bulk_conn = -1;
	unlink_request(s, request_chain(s, c->client_ip, ip, c->server_qpn),
		       id);
	unlink_reply(s, reply_chain(s, c->client_ip, ip, c->client_qpn), id);
	c->used = false;
}

/* The place of a connection that nobody told us has ended, or that of none: its
 * client, if there is one, gets an error. */
static uint32_t end_idle(struct sword *s)
{
	uint64_t now_ns = tor_now_ns(s->tor);

	for (uint32_t i = 0; s->opt.idle_ns && i < s->opt.conns; i++) {
		struct sword_conn *c = &s->conns[i];

		if (now_ns - c->seen_ns < s->opt.idle_ns || is_busy(s, c))
			continue;
		sword_conn_drop(s, c);
		sword_count(s, SWORD_C_idle_ended);
		return i;
	}
	return s->opt.conns;
}

int sword_conn_add(struct sword *s, const struct sword_conn *conn)
{
	const uint8_t *ip = server_ip(s, conn);
	uint32_t i = 0;
	uint32_t *chain;

	if (by_request(s, conn->client_ip, ip, conn->server_qpn) ||
	    by_reply(s, conn->client_ip, ip, conn->client_qpn))
		return -EEXIST;
	while (i < s->opt.conns && s->conns[i].used)
		i++;
	if (i == s->opt.conns)
		i = end_idle(s);
	if (i == s->opt.conns)
		return -ENOSPC;
	s->conns[i] = *conn;
	s->conns[i].seen_ns = tor_now_ns(s->tor);
	s->conns[i].used = true;
	memset(sword_ops(s, &s->conns[i]), 0,
	       SWORD_DEPTH * sizeof(struct sword_op));
	chain = request_chain(s, conn->client_ip, ip, conn->server_qpn);
	s->conns[i].next_request = *chain;
	*chain = i + 1;
	chain = reply_chain(s, conn->client_ip, ip, conn->client_qpn);
	s->conns[i].next_reply = *chain;
	*chain = i + 1;
	return 0;
}

int sword_conn_remove(struct sword *s, const struct sword_conn *like)
{
	struct sword_conn *c = by_request(s, like->client_ip,
					  server_ip(s, like), like->server_qpn);

	/* Both numbers: a queue pair may have another connection by now. */
	if (!c || c->client_qpn != like->client_qpn)
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
