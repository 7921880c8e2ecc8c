/* SPDX-License-Identifier: Apache-2.0 */
/* What memory nodes declare about walks: themselves, and pieces of regions. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "cross.h"
#include "words.h"

enum {
	SHIFT_MIN = 6,
	SHIFT_MAX = 62,
};

int cross_parse(const char *options, uint32_t *spaces)
{
	struct tor_words p;

	tor_words_parse(&p, "walk", options);
	*spaces = (uint32_t)tor_words_opt(&p, "spaces", CROSS_SPACES_MAX,
					  CROSS_SPACES);
	return tor_words_end(&p);
}

/* ---- spaces by number ---------------------------------------------------- */

static uint32_t first_place(const struct cross *c, uint32_t number)
{
	return (number ^ number >> 16) * 0x9e3779b1u & c->by_number_mask;
}

struct cross_space *cross_space_find(const struct cross *c, uint32_t number)
{
	uint32_t i = first_place(c, number), which;

	while ((which = c->by_number[i])) {
		if (c->spaces[which - 1].number == number)
			return &c->spaces[which - 1];
		i = (i + 1) & c->by_number_mask;
	}
	return NULL;
}

/* Control calls are few: the table is made anew. */
static void number_spaces(struct cross *c)
{
	memset(c->by_number, 0,
	       (c->by_number_mask + 1) * sizeof(*c->by_number));
	for (uint32_t k = 0; k < c->space_count; k++) {
		uint32_t i = first_place(c, c->spaces[k].number);

		if (!c->spaces[k].used)
			continue;
		while (c->by_number[i])
			i = (i + 1) & c->by_number_mask;
		c->by_number[i] = k + 1;
	}
}

/* From now on; the time of packets may be older. */
static uint64_t settle_ns(const struct cross *c)
{
	return env_now_ns(tor_env(c->tor)) + CROSS_SETTLE_MS * 1000000ull;
}

static int make_space(struct cross *c, const struct cross_space *like,
		      struct cross_space **out)
{
	struct cross_space *s = NULL;

	for (uint32_t i = 0; i < c->space_count && !s; i++)
		if (!c->spaces[i].used)
			s = &c->spaces[i];
	if (!s)
		return error_set(-ENOSPC, "walk: up to %u regions",
				 c->space_count);
	*s = *like;
	s->piece = calloc(like->count, sizeof(*s->piece));
	if (!s->piece)
		return error_set(-ENOMEM, "walk: no memory for a region");
	s->used = true;
	/* Perhaps it had these pieces. */
	s->settled_ns = c->settled_ns;
	number_spaces(c);
	*out = s;
	return 0;
}

/* Pieces of that node are gone; a space without any is forgotten. */
static bool forget_pieces(struct cross *c, struct cross_space *s,
			  const struct cross_node *node)
{
	bool found = false, empty = true;

	for (uint32_t i = 0; i < s->count; i++) {
		if (s->piece[i].node == node) {
			s->piece[i] = (struct cross_piece){.node = NULL};
			s->settled_ns = c->settled_ns = settle_ns(c);
			found = true;
		}
		empty &= !s->piece[i].node;
	}
	if (empty) {
		free(s->piece);
		*s = (struct cross_space){.used = false};
		number_spaces(c);
	}
	return found;
}

/* ---- words --------------------------------------------------------------- */

static void read_text(struct tor_words *p, const char *key, char *out,
		      size_t size_bytes)
{
	const char *v = tor_words_get(p, key);

	if (v && v[0] && strlen(v) < size_bytes)
		snprintf(out, size_bytes, "%s", v);
	else if (!p->err)
		p->err = error_set(-EINVAL, "walk: %s needs 1 to %zu letters",
				   key, size_bytes - 1);
}

/* A node is its address and the slot of its queue pairs. NULL: not declared. */
static struct cross_node *find_node(struct cross *c, const uint8_t ip[16],
				    uint32_t qpn)
{
	for (unsigned i = 0; i < CROSS_NODES; i++) {
		struct cross_node *n = &c->nodes[i];

		if (n->used && memcmp(n->ip, ip, 16) == 0 &&
		    tor_is_same_slot(c->tor, n->qpn, qpn))
			return n;
	}
	return NULL;
}

static struct cross_node *read_node(struct cross *c, struct tor_words *p,
				    uint32_t *qpn)
{
	struct cross_node *n;
	uint8_t ip[16];

	tor_words_ip(p, "server", ip);
	*qpn = tor_words_u32(p, "qpn", WIRE_QPN_MASK);
	n = find_node(c, ip, *qpn);
	if (!n && !p->err)
		p->err = error_set(-ENOENT, "walk: that node was not declared");
	return n;
}

static void forget_node(struct cross *c, struct cross_node *n)
{
	for (uint32_t i = 0; i < c->space_count; i++)
		if (c->spaces[i].used)
			(void)forget_pieces(c, &c->spaces[i], n);
	n->used = false;
}

/* A node that comes anew, perhaps elsewhere, has nothing any more of what it
 * declared before. */
static int add_node(struct cross *c, struct tor_words *p)
{
	struct cross_node new = {
		.used = true,
		.qpn = tor_words_u32(p, "qpn", WIRE_QPN_MASK),
		.mtu_bytes = (uint32_t)tor_words_opt(p, "mtu", WIRE_MTU_MAX,
						     WIRE_MTU_MAX),
	};
	struct cross_node *n;
	int err;

	read_text(p, "name", new.name, sizeof(new.name));
	tor_words_ip(p, "server", new.ip);
	tor_words_ip(p, "own_ip", new.own_ip);
	err = tor_words_end(p);
	if (err)
		return err;
	if (wire_is_ipv4(new.ip) != wire_is_ipv4(new.own_ip))
		return error_set(-EINVAL,
				 "walk: server and own_ip are of two kinds");
	n = find_node(c, new.ip, new.qpn);
	for (unsigned i = 0; i < CROSS_NODES; i++) {
		if (c->nodes[i].used && strcmp(c->nodes[i].name, new.name) == 0)
			forget_node(c, &c->nodes[i]);
		if (!n && !c->nodes[i].used)
			n = &c->nodes[i];
	}
	if (!n)
		return error_set(-ENOSPC, "walk: up to %d nodes", CROSS_NODES);
	err = tor_own_add(c->tor, new.own_ip);
	if (err)
		return error_set(err, "walk: too many own addresses");
	forget_node(c, n);
	*n = new;
	return 0;
}

static int check_space(const struct cross_space *want, uint32_t index)
{
	if (want->number == 0 || want->count < 2 ||
	    want->count > CROSS_PIECES || index >= want->count ||
	    want->shift < SHIFT_MIN || want->shift > SHIFT_MAX)
		return error_set(-EINVAL, "walk: no region is like that");
	return 0;
}

static int add_piece(struct cross *c, struct tor_words *p)
{
	struct cross_space want = {
		.number = tor_words_u32(p, "space", UINT32_MAX),
		.count = tor_words_u32(p, "count", UINT32_MAX),
		.shift = tor_words_u32(p, "shift", UINT32_MAX),
	};
	uint32_t index = tor_words_u32(p, "index", UINT32_MAX);
	struct cross_piece piece = {
		.qkey = tor_words_u32(p, "qkey", UINT32_MAX),
		.rkey = tor_words_u32(p, "rkey", UINT32_MAX),
	};
	struct cross_space *s;
	int err;

	piece.node = read_node(c, p, &piece.qpn);
	read_text(p, "of", want.of, sizeof(want.of));
	read_text(p, "token", want.token, sizeof(want.token));
	err = tor_words_end(p);
	if (!err)
		err = check_space(&want, index);
	if (err)
		return err;
	s = cross_space_find(c, want.number);
	if (!s)
		err = make_space(c, &want, &s);
	else if (s->count != want.count || s->shift != want.shift ||
		 strcmp(s->of, want.of) != 0 ||
		 strcmp(s->token, want.token) != 0 ||
		 (s->piece[index].node && s->piece[index].node != piece.node))
		err = error_set(-EEXIST,
				"walk: another region has this number");
	if (err)
		return err;
	if (s->piece[index].node && (s->piece[index].rkey != piece.rkey ||
				     s->piece[index].qpn != piece.qpn))
		s->settled_ns = settle_ns(c);
	s->piece[index] = piece;
	return 0;
}

/* One region's piece, or, without a space, all of a node. */
static int forget(struct cross *c, struct tor_words *p)
{
	bool one = tor_words_get(p, "space");
	uint32_t number = one ? tor_words_u32(p, "space", UINT32_MAX) : 0, qpn;
	struct cross_node *n = read_node(c, p, &qpn);
	struct cross_space *s;
	int err = tor_words_end(p);

	if (err)
		return err;
	if (!one) {
		forget_node(c, n);
		return 0;
	}
	s = cross_space_find(c, number);
	return s && forget_pieces(c, s, n)
		       ? 0
		       : error_set(-ENOENT, "walk: the piece was not declared");
}

/* ---- what is known ------------------------------------------------------- */

static void show_space(const struct cross_space *s, struct json_out *out)
{
	json_out_object(out, NULL);
	json_out_string(out, "region", s->of);
	json_out_u64(out, "space", s->number);
	json_out_u64(out, "stripe_bytes", 1ull << s->shift);
	json_out_array(out, "nodes");
	for (uint32_t i = 0; i < s->count; i++)
		json_out_string(out, NULL,
				s->piece[i].node ? s->piece[i].node->name : "");
	json_out_close(out);
	json_out_close(out);
}

static int show(const struct cross *c, struct json_out *out)
{
	char ip[INET6_ADDRSTRLEN];

	json_out_array(out, "nodes");
	for (unsigned i = 0; i < CROSS_NODES; i++) {
		const struct cross_node *n = &c->nodes[i];

		if (!n->used)
			continue;
		json_out_object(out, NULL);
		json_out_string(out, "name", n->name);
		json_out_string(out, "ip",
				inet_ntop(AF_INET6, n->ip, ip, sizeof(ip)));
		json_out_bool(out, "reachable",
			      tor_port_of(c->tor, n->ip, n->qpn) != NULL);
		json_out_close(out);
	}
	json_out_close(out);
	json_out_array(out, "regions");
	for (uint32_t i = 0; i < c->space_count; i++)
		if (c->spaces[i].used)
			show_space(&c->spaces[i], out);
	json_out_close(out);
	return 0;
}

int cross_control(void *state, const char *text, struct json_out *out)
{
	enum {
		NODE,
		PIECE,
		GONE,
		SHOW
	};
	static const char *const verbs[] = {"node", "piece", "gone", "show",
					    NULL};
	struct cross *c = state;
	struct tor_words p;
	int verb = tor_words_verb(&p, "walk", verbs, text);

	switch (verb) {
	case NODE:
		return add_node(c, &p);
	case PIECE:
		return add_piece(c, &p);
	case GONE:
		return forget(c, &p);
	case SHOW:
		return out ? show(c, out) : 0;
	default:
		return verb;
	}
}
