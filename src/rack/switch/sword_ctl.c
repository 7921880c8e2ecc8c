/* SPDX-License-Identifier: Apache-2.0 */
/* SwordBox's options, and what the control plane declares. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "sword.h"
#include "words.h"

/* NULL: there is none, or another error came before. */
static struct sword_server *get_server(struct sword *s, struct tor_words *p,
				       const char *key)
{
	struct sword_server *v;
	uint8_t ip[16];

	tor_words_ip(p, key, ip);
	v = sword_server_find(s, ip);
	if (!v && !p->err)
		p->err = error_set(-ENOENT,
				   "swordbox: that server was not declared");
	return v;
}

/* ---- options ------------------------------------------------------------- */

int sword_parse(const char *text, struct sword_options *out)
{
	struct tor_words p;

	tor_words_parse(&p, "swordbox", text);
	*out = (struct sword_options){
		.conns = (uint32_t)tor_words_opt(&p, "conns", SWORD_CONNS_MAX,
						 SWORD_CONNS),
		.words = (uint32_t)tor_words_opt(&p, "words", SWORD_WORDS_MAX,
						 SWORD_WORDS),
		.rto_ns = tor_words_opt(&p, "rto_us", 1000000,
					END_TX_RTO_NS / 1000) *
			  1000,
		.open = tor_words_get(&p, "open")};
	if (tor_words_get(&p, "idle_s"))
		out->idle_ns =
			tor_words_u64(&p, "idle_s", 1u << 30) * 1000000000;
	return tor_words_end(&p);
}

/* ---- control calls ------------------------------------------------------- */

/* What was on its way on a shared connection that is gone has no known fate:
 * its connections end here, and their clients find out. */
static void forget_server(struct sword *s, struct sword_server *v)
{
	sword_shared_stop(v);
	v->first = NULL;
	for (uint32_t i = 0; i < s->opt.conns; i++) {
		struct sword_conn *c = &s->conns[i];

		if (c->id.used && c->server == v->index)
			sword_conn_drop(s, c);
	}
	sword_words_of_server(s, v->index);
	for (unsigned i = 0; i < SWORD_REGIONS; i++)
		if (s->regions[i].server == v->index)
			s->regions[i].used = false;
	v->used = false;
}

/* What is told of a server; the rest of *v is zero. */
static int read_server(struct tor_words *p, struct sword_server *v)
{
	const char *name = tor_words_get(p, "name");

	*v = (struct sword_server){
		.used = true,
		.mtu = (uint32_t)tor_words_opt(p, "mtu", WIRE_MTU_MAX,
					       SWORD_MTU),
		.end =
			{
				.header = {.ttl = 64,
					   .src_port = 0xc0de,
					   .pkey = 0xffff},
				.qpn = tor_words_u32(p, "qpn", WIRE_QPN_MASK),
				.una_psn =
					tor_words_u32(p, "psn", WIRE_PSN_MASK),
			},
		.at = {.own_qpn = tor_words_u32(p, "own_qpn", WIRE_QPN_MASK)},
	};
	tor_words_ip(p, "ip", v->end.header.dst_ip);
	tor_words_ip(p, "own_ip", v->end.header.src_ip);
	if (name)
		snprintf(v->name, sizeof(v->name), "%s", name);
	if (!p->err && wire_is_ipv4(v->end.header.dst_ip) !=
			       wire_is_ipv4(v->end.header.src_ip))
		return error_set(-EINVAL, "swordbox: addresses of two kinds");
	return tor_words_end(p);
}

static int add_server(struct sword *s, struct tor_words *p)
{
	struct sword_server new, *v;
	unsigned i = 0;
	int err = read_server(p, &new);

	if (err)
		return err;
	v = sword_server_find(s, new.end.header.dst_ip);
	/* One would cut the other's connections off. */
	if (v && strcmp(v->name, new.name) != 0)
		return error_set(-EEXIST,
				 "swordbox: '%s' has this address; give each "
				 "server one of its own",
				 v->name);
	if (v)
		forget_server(s, v);
	while (i < SWORD_SERVERS && s->servers[i].used)
		i++;
	if (i == SWORD_SERVERS)
		return error_set(-ENOSPC, "swordbox: up to %d servers",
				 SWORD_SERVERS);
	s->servers[i] = new;
	s->server_top = u32_max(s->server_top, i + 1);
	err = sword_shared_init(s, &s->servers[i], i);
	if (err)
		s->servers[i].used = false;
	return err;
}

/* It ends, with its connections and regions. */
static int remove_server(struct sword *s, struct tor_words *p)
{
	struct sword_server *v = get_server(s, p, "ip");
	int err = tor_words_end(p);

	if (!err)
		forget_server(s, v);
	return err;
}

static int add_region(struct sword *s, struct tor_words *p)
{
	struct sword_server *v = get_server(s, p, "server");
	struct sword_region r = {.used = true,
				 .plain = tor_words_get(p, "plain"),
				 .rkey = tor_words_u32(p, "rkey", UINT32_MAX),
				 .va = tor_words_u64(p, "va", UINT64_MAX),
				 .len_bytes =
					 tor_words_u64(p, "len", 1ull << 47),
				 .bulk_conn = -1};
	unsigned i = 0;
	int err = tor_words_end(p);

	if (err)
		return err;
	if (r.va % 8 || r.len_bytes % 8 || !r.len_bytes ||
	    r.va + r.len_bytes < r.va)
		return error_set(-EINVAL, "swordbox: a region is whole words");
	while (i < SWORD_REGIONS && s->regions[i].used)
		i++;
	if (i == SWORD_REGIONS)
		return error_set(-ENOSPC, "swordbox: up to %d regions",
				 SWORD_REGIONS);
	r.server = v->index;
	s->regions[i] = r;
	return 0;
}

/* Its memory is used for something else from now on. */
static int remove_region(struct sword *s, struct tor_words *p)
{
	struct sword_server *v = get_server(s, p, "server");
	uint32_t rkey = tor_words_u32(p, "rkey", UINT32_MAX);
	int err = tor_words_end(p);

	if (err)
		return err;
	for (unsigned i = 0; i < SWORD_REGIONS; i++) {
		struct sword_region *r = &s->regions[i];

		if (!r->used || r->server != v->index || r->rkey != rkey)
			continue;
		if (r->active || r->bulk_conn >= 0)
			return error_set(-EBUSY, "swordbox: the region has "
						 "operations on their way");
		sword_words_forget(s, r);
		r->used = false;
		return 0;
	}
	return error_set(-ENOENT, "swordbox: the region was not declared");
}

static void read_conn(struct sword *s, struct tor_words *p,
		      struct sword_conn *c)
{
	struct sword_server *v = get_server(s, p, "server");

	*c = (struct sword_conn){.bulk_region = -1, .server = v ? v->index : 0};
	tor_conn_read(p, &c->id);
}

static int add_conn(struct sword *s, struct tor_words *p)
{
	struct sword_conn c;
	int err;

	read_conn(s, p, &c);
	c.moved = tor_words_get(p, "moved");
	c.rx = (struct end_rx){
		.self = s->self,
		.is_guise = true,
		.naks = &s->c[SWORD_C_naks_sent],
		.next_psn = tor_words_u32(p, "psn", WIRE_PSN_MASK),
	};
	c.old_psn = wire_psn_add(c.rx.next_psn, WIRE_PSN_MASK);
	err = tor_words_end(p);
	return err ? err : tor_conn_error("swordbox", sword_conn_add(s, &c));
}

static int remove_conn(struct sword *s, struct tor_words *p)
{
	struct sword_conn c;
	int err;

	read_conn(s, p, &c);
	err = tor_words_end(p);
	return err ? err : tor_conn_error("swordbox", sword_conn_remove(s, &c));
}

static int show(struct sword *s, struct json_out *out)
{
	unsigned conns = 0, words = 0;

	for (uint32_t i = 0; i < s->opt.conns; i++)
		conns += s->conns[i].id.used;
	for (uint32_t i = 0; i < s->word_buckets * SWORD_WAYS; i++)
		words += s->words[i].valid;
	json_out_bool(out, "ready", s->ready);
	json_out_u64(out, "connections", conns);
	json_out_u64(out, "words", words);
	json_out_array(out, "servers");
	for (unsigned i = 0; i < SWORD_SERVERS; i++) {
		const struct sword_server *v = &s->servers[i];
		char ip[INET6_ADDRSTRLEN];

		if (!v->used)
			continue;
		json_out_object(out, NULL);
		json_out_string(out, "name", v->name);
		json_out_string(out, "ip",
				inet_ntop(AF_INET6, v->end.header.dst_ip, ip,
					  sizeof(ip)));
		json_out_u64(out, "qpn", v->end.qpn);
		json_out_u64(out, "next_psn", v->end.next_psn);
		json_out_u64(out, "una_psn", v->end.una_psn);
		json_out_bool(out, "dead", v->end.dead);
		json_out_close(out);
	}
	json_out_close(out);
	return 0;
}

int sword_control(void *state, const char *text, struct json_out *out)
{
	enum {
		SERVER,
		LEAVE,
		REGION,
		GONE,
		CONN,
		END,
		READY,
		SHOW
	};
	static const char *const verbs[] = {"server", "leave", "region",
					    "gone",   "conn",  "end",
					    "ready",  "show",  NULL};
	struct sword *s = state;
	struct tor_words p;
	int verb = tor_words_verb(&p, "swordbox", verbs, text);

	switch (verb) {
	case SERVER:
		return add_server(s, &p);
	case LEAVE:
		return remove_server(s, &p);
	case REGION:
		return add_region(s, &p);
	case GONE:
		return remove_region(s, &p);
	case CONN:
		return add_conn(s, &p);
	case END:
		return remove_conn(s, &p);
	case READY:
		s->ready = true;
		return 0;
	case SHOW:
		return out ? show(s, out) : 0;
	default:
		return verb;
	}
}
