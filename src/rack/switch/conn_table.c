/* SPDX-License-Identifier: Apache-2.0 */
/* Hash chains over a program's connections. */
#include "conn_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int tor_conns_init(struct tor_conns *t, uint32_t count, size_t conn_bytes)
{
	uint32_t chains = u32_pow2_ceil(count * 2);

	*t = (struct tor_conns){.first = calloc(count, conn_bytes),
				.conn_bytes = conn_bytes,
				.count = count,
				.hash_mask = chains - 1};
	for (unsigned i = 0; i < TOR_WAYS; i++)
		t->heads[i] = calloc(chains, sizeof(*t->heads[i]));
	return t->first && t->heads[TOR_REQUEST] && t->heads[TOR_REPLY]
		       ? 0
		       : -ENOMEM;
}

void tor_conns_release(struct tor_conns *t)
{
	free(t->first);
	free(t->heads[TOR_REQUEST]);
	free(t->heads[TOR_REPLY]);
}

static struct tor_conn *at(const struct tor_conns *t, uint32_t index)
{
	return (struct tor_conn *)(t->first + index * t->conn_bytes);
}

static uint32_t *head(const struct tor_conns *t, enum tor_way way,
		      const uint8_t client[16], const uint8_t server[16],
		      uint32_t qpn)
{
	uint64_t x, y, h;

	memcpy(&x, client + 8, 8);
	memcpy(&y, server + 8, 8);
	h = (x * 0x9e3779b97f4a7c15ull) ^ (y * 0xc2b2ae3d27d4eb4full) ^ qpn;
	h *= 0xff51afd7ed558ccdull;
	return &t->heads[way][h >> 32 & t->hash_mask];
}

static struct tor_conn *find(const struct tor_conns *t, enum tor_way way,
			     const uint8_t client[16], const uint8_t server[16],
			     uint32_t qpn)
{
	uint32_t i = *head(t, way, client, server, qpn);

	while (i) {
		struct tor_conn *c = at(t, i - 1);

		if (c->qpn[way] == qpn &&
		    memcmp(c->client_ip, client, 16) == 0 &&
		    memcmp(c->server_ip, server, 16) == 0)
			return c;
		i = c->next[way];
	}
	return NULL;
}

void *tor_conns_find(const struct tor_conns *t, enum tor_way way,
		     const struct wire_pkt *w)
{
	return way == TOR_REQUEST
		       ? find(t, way, w->src_ip, w->dst_ip, w->dest_qpn)
		       : find(t, way, w->dst_ip, w->src_ip, w->dest_qpn);
}

static struct tor_conn *find_like(const struct tor_conns *t, enum tor_way way,
				  const struct tor_conn *like)
{
	return find(t, way, like->client_ip, like->server_ip, like->qpn[way]);
}

void *tor_conns_same(const struct tor_conns *t, const struct tor_conn *like)
{
	struct tor_conn *c = find_like(t, TOR_REQUEST, like);

	return c && c->qpn[TOR_REPLY] == like->qpn[TOR_REPLY] ? c : NULL;
}

int tor_conns_place(const struct tor_conns *t, const struct tor_conn *like,
		    uint32_t *index)
{
	if (find_like(t, TOR_REQUEST, like) || find_like(t, TOR_REPLY, like))
		return -EEXIST;
	for (uint32_t i = 0; i < t->count; i++) {
		if (!at(t, i)->used) {
			*index = i;
			return 0;
		}
	}
	return -ENOSPC;
}

void tor_conns_link(struct tor_conns *t, uint32_t index)
{
	struct tor_conn *c = at(t, index);

	c->used = true;
	for (enum tor_way way = 0; way < TOR_WAYS; way++) {
		uint32_t *first =
			head(t, way, c->client_ip, c->server_ip, c->qpn[way]);

		c->next[way] = *first;
		*first = index + 1;
	}
}

void tor_conns_unlink(struct tor_conns *t, struct tor_conn *c)
{
	for (enum tor_way way = 0; way < TOR_WAYS; way++) {
		uint32_t *i =
			head(t, way, c->client_ip, c->server_ip, c->qpn[way]);

		while (at(t, *i - 1) != c)
			i = &at(t, *i - 1)->next[way];
		*i = c->next[way];
	}
	c->used = false;
}

void tor_conn_read(struct tor_words *p, struct tor_conn *c)
{
	c->qpn[TOR_REPLY] = tor_words_u32(p, "client_qpn", WIRE_QPN_MASK);
	c->qpn[TOR_REQUEST] = tor_words_u32(p, "server_qpn", WIRE_QPN_MASK);
	tor_words_ip(p, "server", c->server_ip);
	tor_words_ip(p, "client", c->client_ip);
}

int tor_conn_error(const char *program, int err)
{
	return err ? error_set(err, "%s: the connection %s", program,
			       err == -EEXIST	? "was declared already"
			       : err == -EBUSY	? "has operations on their way"
			       : err == -ENOENT ? "was not declared"
						: "finds no room")
		   : 0;
}
