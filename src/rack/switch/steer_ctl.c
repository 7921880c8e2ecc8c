/* SPDX-License-Identifier: Apache-2.0 */
/* Steering's options, and what the control plane declares. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "steer.h"
#include "words.h"

int steer_parse(const char *text, struct steer_options *out)
{
	static const char *const modes[] = {"both", "writes", "reads"};
	struct tor_words p;
	unsigned mode;

	tor_words_parse(&p, "steer", text);
	*out = (struct steer_options){
		.conns = (uint32_t)tor_words_opt(&p, "conns", STEER_CONNS_MAX,
						 STEER_CONNS),
		.keys = (uint32_t)tor_words_opt(&p, "keys", STEER_KEYS_MAX,
						STEER_KEYS),
		.history = (uint32_t)tor_words_opt(
			&p, "history", STEER_HISTORY_MAX, STEER_HISTORY),
		.resend_ns = tor_words_opt(&p, "resend_us", 10000000,
					   STEER_RESEND_NS / 1000) *
			     1000};
	mode = tor_words_pick(&p, "mode", modes, ARRAY_LEN(modes));
	out->writes = mode != 2;
	out->reads = mode != 1;
	return tor_words_end(&p);
}

/* ---- control calls ------------------------------------------------------- */

static int add_store(struct steer *s, struct tor_words *p)
{
	struct steer_store t = {
		.used = true,
		.rkey = tor_words_u32(p, "rkey", UINT32_MAX),
		.va = tor_words_u64(p, "va", UINT64_MAX),
		.nodes_at = tor_words_u64(p, "nodes_at", VLIST_SIZE_MAX),
		.nodes = tor_words_u64(p, "nodes", UINT64_C(1) << 34),
		.node_bytes = tor_words_u32(p, "node_bytes", WIRE_MTU_MAX)};
	unsigned i = 0;
	int err;

	tor_words_ip(p, "server", t.server_ip);
	err = tor_words_end(p);
	if (err)
		return err;
	if (t.node_bytes < VLIST_NODE_HEAD || t.node_bytes % 8 || t.va % 8 ||
	    t.nodes_at % 8 || t.nodes * t.node_bytes > VLIST_SIZE_MAX)
		return error_set(-EINVAL, "steer: no store is like that");
	while (i < STEER_STORES && s->stores[i].used)
		i++;
	if (i == STEER_STORES)
		return error_set(-ENOSPC, "steer: up to %d stores",
				 STEER_STORES);
	s->stores[i] = t;
	return 0;
}

static int read_conn(struct tor_words *p, struct steer_conn *c)
{
	*c = (struct steer_conn){/* nothing was sent on it yet */
				 .is_sure = tor_words_opt(p, "fresh", 1, 0)};
	tor_conn_read(p, &c->id);
	return tor_words_end(p);
}

static int add_conn(struct steer *s, struct tor_words *p)
{
	struct steer_conn c;
	int err = read_conn(p, &c);

	return err ? err : tor_conn_error("steer", steer_conn_add(s, &c));
}

static int end_conn(struct steer *s, struct tor_words *p)
{
	struct steer_conn c;
	int err = read_conn(p, &c);

	return err ? err : tor_conn_error("steer", steer_conn_remove(s, &c));
}

/* A store, or, without a key, all that is known of a server. */
static int forget(struct steer *s, struct tor_words *p)
{
	bool one = tor_words_get(p, "rkey"), found = false;
	uint32_t rkey = one ? tor_words_u32(p, "rkey", UINT32_MAX) : 0;
	uint8_t ip[16];
	int err;

	tor_words_ip(p, "server", ip);
	err = tor_words_end(p);
	if (err)
		return err;
	for (unsigned i = 0; i < STEER_STORES; i++) {
		const struct steer_store *t = &s->stores[i];

		if (!t->used || memcmp(t->server_ip, ip, 16) != 0 ||
		    (one && t->rkey != rkey))
			continue;
		steer_store_remove(s, i);
		found = true;
	}
	if (!one)
		steer_server_remove(s, ip);
	return one && !found
		       ? error_set(-ENOENT, "steer: the store was not declared")
		       : 0;
}

static int show(struct steer *s, struct json_out *out)
{
	unsigned conns = 0, keys = 0, known = 0, stores = 0, waiting = 0;

	for (unsigned i = 0; i < STEER_STORES; i++)
		stores += s->stores[i].used;
	for (uint32_t i = 0; i < s->opt.conns; i++)
		conns += s->conns[i].id.used;
	for (uint32_t i = 0; i < s->buckets * s->ways; i++) {
		keys += s->entries[i].used;
		known += s->entries[i].used && s->entries[i].end;
	}
	for (uint32_t i = s->waiting_first; i; i = s->ops[i - 1].next)
		waiting++;
	json_out_u64(out, "stores", stores);
	json_out_u64(out, "connections", conns);
	json_out_u64(out, "keys", keys);
	json_out_u64(out, "ends_known", known);
	json_out_u64(out, "appends_without_answer", waiting);
	return 0;
}

int steer_control(void *state, const char *text, struct json_out *out)
{
	enum {
		STORE,
		GONE,
		CONN,
		END,
		SHOW
	};
	static const char *const verbs[] = {"store", "gone", "conn",
					    "end",   "show", NULL};
	struct steer *s = state;
	struct tor_words p;
	int verb = tor_words_verb(&p, "steer", verbs, text);

	switch (verb) {
	case STORE:
		return add_store(s, &p);
	case GONE:
		return forget(s, &p);
	case CONN:
		return add_conn(s, &p);
	case END:
		return end_conn(s, &p);
	case SHOW:
		return out ? show(s, out) : 0;
	default:
		return verb;
	}
}
