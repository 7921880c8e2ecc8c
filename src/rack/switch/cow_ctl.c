/* SPDX-License-Identifier: Apache-2.0 */
/* Cowbird's options, and how sessions are declared, piece by piece. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"
#include "cow.h"
#include "words.h"

enum {
	MTU_MIN = 512, /* the preamble is one packet */
};

/* How many completions are told together. */
static uint32_t parse_tell(struct tor_words *p)
{
	const char *word = tor_words_get(p, "tell");

	return word && strcmp(word, "each") == 0
		       ? 1
		       : (uint32_t)tor_words_opt(p, "tell", 1024, COW_BATCH);
}

int cow_parse(const char *text, struct cow_options *out)
{
	static const char *const switches[] = {"on", "off"};
	struct tor_words p;

	tor_words_parse(&p, "cowbird", text);
	*out = (struct cow_options){
		.sessions = (uint32_t)tor_words_opt(
			&p, "sessions", COW_SESSIONS_MAX, COW_SESSIONS),
		.requests = (uint32_t)tor_words_opt(
			&p, "requests", COW_REQUESTS_MAX, COW_REQUESTS),
		.fetch = (uint32_t)tor_words_opt(&p, "fetch", COW_FETCH,
						 COW_FETCH),
		.batch = parse_tell(&p),
		.flush_ns = tor_words_opt(&p, "flush_us", 1000000,
					  COW_FLUSH_NS / 1000) *
			    1000,
		.probe_ns = tor_words_opt(&p, "probe_us", 1000000,
					  COW_PROBE_NS / 1000) *
			    1000,
		.rto_ns = tor_words_opt(&p, "rto_us", 1000000,
					END_TX_RTO_NS / 1000) *
			  1000,
		.filter = tor_words_pick(&p, "filter", switches, 2) == 0,
	};
	return tor_words_end(&p);
}

/* ---- sessions by number ---------------------------------------------------
 */

static struct cow_session *session_find(struct cow *c, uint32_t id)
{
	for (uint32_t i = 0; i < c->opt.sessions; i++)
		if (c->sessions[i].used && c->sessions[i].id == id)
			return &c->sessions[i];
	return NULL;
}

/* The one that a call is about, which must be in this state of declaration. */
static struct cow_session *session_told(struct cow *c, struct tor_words *p)
{
	uint32_t id = tor_words_u32(p, "id", UINT32_MAX);
	struct cow_session *s = p->err ? NULL : session_find(c, id);

	if (!p->err && !s)
		p->err = error_set(-ENOENT, "cowbird: there is no session %u",
				   id);
	else if (s && s->state != COW_TOLD)
		p->err = error_set(-EBUSY, "cowbird: session %u has begun", id);
	return p->err ? NULL : s;
}

/* The connections of an end: told with a prefix where there are several. */
static void read_end(struct tor_words *p, const char *qpn, const char *psn,
		     const struct cow_session *s, unsigned number,
		     struct cow_end *e)
{
	e->at.own_qpn = s->own_qpn + number;
	e->tx = (struct end_tx){
		.header = {.ttl = 64, .src_port = 0xc0de, .pkey = 0xffff},
		.qpn = tor_words_u32(p, qpn, WIRE_QPN_MASK),
		.una_psn = tor_words_u32(p, psn, WIRE_PSN_MASK)};
	memcpy(e->tx.header.src_ip, s->own_ip, 16);
}

/* Frames to another switch's NICs would be lost here. */
static int check_place(const struct cow *c, const struct cow_end *e)
{
	char ip[INET6_ADDRSTRLEN];

	if (tor_reaches(c->tor, e->tx.header.dst_ip, e->tx.qpn))
		return 0;
	return error_set(
		-EHOSTUNREACH,
		"cowbird: the NIC %s with queue pair %u is not at "
		"this switch",
		inet_ntop(AF_INET6, e->tx.header.dst_ip, ip, sizeof(ip)),
		e->tx.qpn);
}

static void read_owner(struct tor_words *p, struct cow_session *s)
{
	const char *owner = tor_words_get(p, "owner");

	if (owner && strlen(owner) > COW_OWNER_MAX && !p->err)
		p->err = error_set(-EINVAL,
				   "cowbird: owner has up to %d letters",
				   COW_OWNER_MAX);
	else if (owner)
		memcpy(s->owner, owner, strlen(owner) + 1);
}

static int add_session(struct cow *c, struct tor_words *p)
{
	struct cow_session *s = c->sessions;
	uint32_t id = tor_words_u32(p, "id", UINT32_MAX);
	uint8_t own_ip[16];
	int err;

	tor_words_ip(p, "own_ip", own_ip);
	if (p->err)
		return p->err;
	if (session_find(c, id))
		return error_set(-EEXIST, "cowbird: session %u is there", id);
	while (s < c->sessions + c->opt.sessions && s->used)
		s++;
	if (s == c->sessions + c->opt.sessions)
		return error_set(-ENOSPC,
				 "cowbird: up to %u sessions; 'sessions=' is "
				 "how many",
				 c->opt.sessions);
	*s = (struct cow_session){.cow = c, .id = id};
	err = cow_session_init(s);
	if (err) {
		cow_session_release(s);
		return error_set(err, "cowbird: no memory for a session");
	}
	memcpy(s->own_ip, own_ip, 16);
	read_owner(p, s);
	s->own_qpn = tor_words_u32(p, "own_qpn", WIRE_QPN_MASK);
	s->mtu = tor_words_u32(p, "mtu", WIRE_MTU_MAX);
	s->ring_addr = tor_words_u64(p, "addr", UINT64_MAX);
	s->ring_bytes = tor_words_u64(p, "bytes", 1ull << 32);
	s->ring_rkey = tor_words_u32(p, "rkey", UINT32_MAX);
	s->epoch = tor_words_u32(p, "epoch", UINT32_MAX);
	s->batch = (uint32_t)tor_words_opt(p, "batch", 1024, s->batch);
	s->flush_ns = 1000 *
		      tor_words_opt(p, "flush_us", 1000000, s->flush_ns / 1000);
	s->patience_ns = 1000000 * tor_words_opt(p, "patience_ms", 1000000,
						 COW_PATIENCE_NS / 1000000);
	read_end(p, "qpn", "psn", s, 0, s->ring);
	s->ring->reads =
		(uint32_t)tor_words_opt(p, "reads", END_TX_WINDOW, COW_READS);
	tor_words_ip(p, "app", s->ring->tx.header.dst_ip);
	err = tor_words_end(p);
	if (!err && (s->mtu < MTU_MIN || s->mtu & (s->mtu - 1)))
		err = error_set(-EINVAL, "cowbird: mtu is 512 to 4096");
	if (!err && (s->own_qpn % COW_ENDS || !s->epoch))
		err = error_set(-EINVAL,
				"cowbird: own_qpn is a multiple of %d, epoch "
				"at least 1",
				COW_ENDS);
	if (!err &&
	    wire_is_ipv4(s->own_ip) != wire_is_ipv4(s->ring->tx.header.dst_ip))
		err = error_set(-EINVAL, "cowbird: addresses of two kinds");
	if (!err)
		err = check_place(c, s->ring);
	if (!err)
		err = cow_end_init(s->ring, s);
	if (err) {
		cow_session_release(s);
		return err;
	}
	s->used = true;
	c->changes++;
	return 0;
}

static int add_node(struct cow *c, struct tor_words *p)
{
	struct cow_session *s = session_told(c, p);
	bool has_final = tor_words_get(p, "final_psn");
	struct cow_node n = {.err = -(int)tor_words_opt(p, "err", 255, 0)};
	struct cow_end end[OFFLOAD_KINDS] = {0};
	uint32_t reads =
		(uint32_t)tor_words_opt(p, "reads", END_TX_WINDOW, COW_READS);
	int err;

	if (!s)
		return p->err;
	if (s->node_count == OFFLOAD_NODES_MAX)
		return error_set(-ENOSPC, "cowbird: up to %d nodes",
				 OFFLOAD_NODES_MAX);
	if (has_final)
		n.final = (struct offload_final){
			true, tor_words_u32(p, "final_epoch", UINT32_MAX),
			tor_words_u32(p, "final_psn", WIRE_PSN_MASK)};
	if (!n.err) {
		unsigned number = 1 + 2 * s->node_count;

		read_end(p, "read_qpn", "read_psn", s, number,
			 &end[OFFLOAD_RD]);
		read_end(p, "write_qpn", "write_psn", s, number + 1,
			 &end[OFFLOAD_WR]);
		for (unsigned k = 0; k < OFFLOAD_KINDS; k++)
			tor_words_ip(p, "ip", end[k].tx.header.dst_ip);
	}
	err = tor_words_end(p);
	if (!err && !n.err &&
	    wire_is_ipv4(s->own_ip) != wire_is_ipv4(end[0].tx.header.dst_ip))
		err = error_set(-EINVAL, "cowbird: addresses of two kinds");
	for (unsigned k = 0; k < OFFLOAD_KINDS && !err && !n.err; k++)
		err = check_place(c, &end[k]);
	for (unsigned k = 0; k < OFFLOAD_KINDS && !err && !n.err; k++) {
		n.end[k] = malloc(sizeof(*n.end[k]));
		if (!n.end[k]) {
			err = error_set(-ENOMEM, "cowbird: no memory");
			break;
		}
		*n.end[k] = end[k];
		n.end[k]->node = (uint8_t)s->node_count;
		n.end[k]->reads = reads;
		err = cow_end_init(n.end[k], s);
	}
	if (!err) {
		s->node[s->node_count++] = n;
		return 0;
	}
	for (unsigned k = 0; k < OFFLOAD_KINDS; k++) {
		if (n.end[k])
			cow_end_stop(n.end[k]);
		free(n.end[k]);
	}
	return err;
}

static int add_region(struct cow *c, struct tor_words *p)
{
	struct cow_session *s = session_told(c, p);
	struct offload_region_config r = {
		.size_bytes = tor_words_u64(p, "size", 1ull << 48),
		.stripe_shift =
			(uint32_t)tor_words_opt(p, "stripe_shift", 40, 8),
		.is_read_only = tor_words_get(p, "read_only"),
		.err = -(int)tor_words_opt(p, "err", 255, 0),
	};
	int err = tor_words_end(p);

	if (err)
		return err;
	if (s->region_count == COW_REGIONS)
		return error_set(-ENOSPC, "cowbird: up to %d regions",
				 COW_REGIONS);
	s->region[s->region_count++] = r;
	return 0;
}

/* Of the region that was declared last. */
static int add_piece(struct cow *c, struct tor_words *p)
{
	struct cow_session *s = session_told(c, p);
	struct offload_piece_config piece = {
		.node = tor_words_u32(p, "node", OFFLOAD_NODES_MAX - 1),
		.read_rkey = tor_words_u32(p, "read_rkey", UINT32_MAX),
		.write_rkey = tor_words_u32(p, "write_rkey", UINT32_MAX),
		.addr = tor_words_u64(p, "addr", UINT64_MAX),
		.size_bytes = tor_words_u64(p, "size", 1ull << 48),
	};
	struct offload_region_config *r;
	int err = tor_words_end(p);

	if (err)
		return err;
	if (!s->region_count)
		return error_set(-EINVAL, "cowbird: a piece of no region");
	r = &s->region[s->region_count - 1];
	if (r->piece_count == OFFLOAD_NODES_MAX)
		return error_set(-ENOSPC, "cowbird: up to %d pieces",
				 OFFLOAD_NODES_MAX);
	r->piece[r->piece_count++] = piece;
	return 0;
}

static int start(struct cow *c, struct tor_words *p)
{
	struct cow_session *s = session_told(c, p);
	int err = tor_words_end(p);

	for (uint32_t i = 0; !err && i < s->region_count; i++)
		if (offload_region_check(&s->region[i], s->node_count))
			err = error_set(-EINVAL, "cowbird: region %u cannot be",
					i);
	if (!err)
		cow_session_start(s);
	return err;
}

static int end(struct cow *c, struct tor_words *p)
{
	uint32_t id = tor_words_u32(p, "id", UINT32_MAX);
	struct cow_session *s = session_find(c, id);
	int err = tor_words_end(p);

	if (err)
		return err;
	if (!s)
		return error_set(-ENOENT, "cowbird: there is no session %u",
				 id);
	cow_session_release(s);
	return 0;
}

/* ---- show -----------------------------------------------------------------
 */

/* All sessions take long to tell, and whoever asks often has no use for them
 * while there is nothing new. */
static int show(struct cow *c, struct tor_words *p, struct json_out *out)
{
	static const char *const states[] = {"declared", "start", "resume",
					     "base",	 "run",	  "broken"};
	uint64_t known = tor_words_opt(p, "unless", UINT64_MAX, 0);
	char ip[INET6_ADDRSTRLEN];
	int err = tor_words_end(p);

	if (err || !out)
		return err;
	json_out_u64(out, "changes", c->changes);
	if (known == c->changes)
		return 0;
	json_out_array(out, "sessions");
	for (uint32_t i = 0; i < c->opt.sessions; i++) {
		const struct cow_session *s = &c->sessions[i];

		if (!s->used)
			continue;
		json_out_object(out, NULL);
		json_out_u64(out, "id", s->id);
		json_out_string(out, "owner", s->owner);
		json_out_string(out, "application",
				inet_ntop(AF_INET6, s->ring->tx.header.dst_ip,
					  ip, sizeof(ip)));
		json_out_string(out, "state", states[s->state]);
		json_out_u64(out, "err", (uint64_t)-s->err);
		json_out_u64(out, "epoch", s->epoch);
		json_out_u64(out, "own_qpn", s->own_qpn);
		json_out_u64(out, "requests", s->fetched - s->head);
		json_out_close(out);
	}
	json_out_close(out);
	return 0;
}

int cow_control(void *state, const char *text, struct json_out *out)
{
	enum {
		SESSION,
		NODE,
		REGION,
		PIECE,
		START,
		END,
		SHOW
	};
	static const char *const verbs[] = {"session", "node",	"region",
					    "piece",   "start", "end",
					    "show",    NULL};
	struct cow *c = state;
	struct tor_words p;
	int verb = tor_words_verb(&p, "cowbird", verbs, text);

	switch (verb) {
	case SESSION:
		return add_session(c, &p);
	case NODE:
		return add_node(c, &p);
	case REGION:
		return add_region(c, &p);
	case PIECE:
		return add_piece(c, &p);
	case START:
		return start(c, &p);
	case END:
		return end(c, &p);
	case SHOW:
		return show(c, &p, out);
	default:
		return verb;
	}
}
