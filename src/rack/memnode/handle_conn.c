/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/connect and /v1/connections. */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/hex.h"
#include "blocks.h"

enum {
	GID_CHARS = 32,
};

static int parse_access(const char *text, bool *read_only)
{
	*read_only = strcmp(text, "r") == 0;
	if (*read_only || strcmp(text, "rw") == 0)
		return 0;
	return error_set(-EINVAL, "\"access\" is \"r\" or \"rw\"");
}

static int parse_peer(const json_t *body, struct conn_peer *peer)
{
	const char *proto, *access = "rw";
	uint64_t patience_ms = 0;
	struct ctl_pair pair;
	int err = ctl_field_string(body, "proto", true, &proto);

	peer->client = "";
	if (!err)
		err = ctl_proto_check(proto);
	if (!err)
		err = ctl_field_pair(body, &pair);
	if (!err)
		err = ctl_field_string(body, "access", false, &access);
	if (!err)
		err = parse_access(access, &peer->read_only);
	if (!err)
		err = ctl_field_string(body, "client", false, &peer->client);
	if (!err)
		err = ctl_field_u64(body, "patience_ms", false, 0,
				    MEM_PATIENCE_MAX_MS, &patience_ms);
	if (err)
		return err;
	peer->patience_ms = (uint32_t)patience_ms;
	memcpy(peer->gid.raw, pair.gid, sizeof(pair.gid));
	peer->qpn = pair.qpn;
	peer->psn = pair.psn;
	peer->mtu = pair.mtu;
	peer->rd_atomic = pair.rd_atomic;
	return 0;
}

static json_t *caps_json(const struct mem_node *node)
{
	const uint32_t masked = AQDV_CAP_MASKED_CAS | AQDV_CAP_MASKED_FAA;
	json_t *caps = json_array();

	if ((node->nic_caps & masked) == masked)
		(void)json_array_append_new(caps,
					    json_string("masked_atomics"));
	if (node->nic_caps & AQDV_CAP_DIRECT)
		(void)json_array_append_new(caps, json_string("direct"));
	if (node->walks) {
		(void)json_array_append_new(caps, json_string("walks"));
		(void)json_array_append_new(caps, json_string("gather"));
	}
	return caps;
}

/* "pages" and "owner": a connection that works on the pages of another. */
static int parse_role(struct mem_node *node, const struct ctl_call *call,
		      struct conn_peer *peer)
{
	const char *role = NULL, *owner;
	struct mem_conn *c = NULL;
	uint64_t without = 0;
	int err = ctl_field_string(call->body, "pages", false, &role);

	peer->role = MEM_ROLE_PLAIN;
	peer->owner = NULL;
	peer->without = 0;
	if (err || !role)
		return err;
	while (++peer->role < MEM_ROLE_COUNT &&
	       strcmp(role, space_role_name(peer->role)) != 0)
		;
	if (peer->role == MEM_ROLE_COUNT)
		return error_set(-EINVAL, "\"pages\" is not '%.20s'", role);
	err = ctl_field_string(call->body, "owner", true, &owner);
	if (!err)
		err = ctl_field_u64(call->body, "without", false, 0,
				    PAGE_WITHOUT_ALL, &without);
	peer->without = (unsigned)without;
	if (!err)
		err = conn_find(node, call->caller, owner, &c);
	if (!err && !c->owns_space)
		err = error_set(-EINVAL, "connection %s has no pages", owner);
	if (!err)
		peer->owner = c;
	return err;
}

/* "walk": how many walks it may have under way, and the pad of each. They take
 * the places of READs. */
static int parse_walk(const json_t *body, struct conn_peer *peer)
{
	const json_t *walk = json_object_get(body, "walk");
	uint64_t depth = 0, bytes = 0;
	int err;

	peer->walk_depth = 0;
	peer->walk_bytes = 0;
	if (!walk)
		return 0;
	if (!json_is_object(walk) || json_object_size(walk) != 2)
		return error_set(-EINVAL,
				 "\"walk\" is an object with \"depth\" and "
				 "\"bytes\"");
	err = ctl_field_u64(walk, "depth", true, 1, MEM_WALK_DEPTH_MAX, &depth);
	if (!err)
		err = ctl_field_u64(walk, "bytes", true, 1, AQDV_WALK_PAD_MAX,
				    &bytes);
	if (err)
		return error_prefix(err, "\"walk\": ");
	peer->walk_depth = (uint32_t)depth;
	peer->walk_bytes = (uint32_t)bytes;
	return 0;
}

/* "auth": whether it can have its packets carry a MAC. */
static int parse_auth(const struct mem_node *node, const json_t *body)
{
	const char *auth = "none";
	int err = ctl_field_string(body, "auth", false, &auth);

	if (!err && node->has_auth && strcmp(auth, "psk") != 0)
		err = error_set(-EPERM,
				"this node authenticates packets (nic.auth = "
				"psk), and this client cannot");
	return err;
}

static void add_auth(json_t *tree, const struct mem_node *node,
		     const struct conn_answer *answer)
{
	char text[2 * AQDV_AUTH_KEY_BYTES + 1];

	if (!node->has_auth)
		return;
	hex_write(text, answer->auth_key, AQDV_AUTH_KEY_BYTES);
	(void)json_object_set_new(tree, "auth", json_string(text));
	explicit_bzero(text, sizeof(text));
}

/* How far each connection of the session came that has ended. */
static json_t *finals_json(const struct mem_session *s)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < s->final_count; i++)
		(void)json_array_append_new(
			rows,
			json_pack("{s:s, s:I}", "connection", s->final[i].conn,
				  "psn", (json_int_t)s->final[i].psn));
	return rows;
}

/* What a token that was handed on makes of a wish. */
static int narrow_peer(const struct ctl_call *call, struct conn_peer *peer)
{
	const struct mem_narrow *n = call->scope;
	int err = ctl_token_hash(call->request->token, &peer->token);

	peer->narrow_id = n ? n->id : 0;
	if (err || !n)
		return err;
	/* What may be done with blocks is in the controller's ticket. */
	if ((peer->role != MEM_ROLE_PLAIN &&
	     !(peer->role == MEM_ROLE_BLOCKS && n->is_ruled)) ||
	    peer->walk_depth || json_object_get(call->body, "session"))
		return error_set(-EACCES,
				 n->is_ruled ? "this token is for regions and "
					       "blocks: no walks, pages or "
					       "sessions"
					     : "this token is for regions: no "
					       "walks, pages, blocks or "
					       "sessions");
	peer->read_only |= !n->may_write;
	return 0;
}

void handle_connect(void *ctx, struct ctl_call *call)
{
	char id[CTL_BOND_TEXT], gid[GID_CHARS + 1];
	struct mem_node *node = ctx;
	struct conn_answer answer;
	struct mem_session *session = NULL;
	struct conn_peer peer;
	struct mem_conn *c;
	const char *id_text = NULL;
	json_t *tree;
	int err = parse_peer(call->body, &peer);

	if (!err)
		err = parse_auth(node, call->body);
	if (!err)
		err = parse_walk(call->body, &peer);
	if (!err)
		err = parse_role(node, call, &peer);
	if (!err)
		err = block_conn_parse(call->body, &peer);
	if (!err)
		err = narrow_peer(call, &peer);
	if (!err)
		err = ctl_field_string(call->body, "session", false, &id_text);
	if (!err && id_text)
		err = session_take(node, call->caller, id_text, &session);
	/* The session may be that of the owner, which has just ended. */
	if (!err && peer.owner && peer.owner->life.ended)
		err = error_set(-ESTALE, "the owner of the pages was the "
					 "session's connection, which has "
					 "ended; connect again");
	if (!err)
		err = conn_create(node, call->caller, &peer, &answer, &c);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	ctl_bond_format(c->nonce, c->slot, id);
	hex_write(gid, answer.gid.raw, sizeof(answer.gid.raw));
	tree = json_pack("{s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:i, s:o}",
			 "proto", CTL_PROTO, "connection", id, "gid", gid,
			 "qpn", (json_int_t)c->qp->qp_num, "psn",
			 (json_int_t)answer.psn, "mtu", 128 << answer.mtu,
			 "rd_atomic", (int)answer.rd_atomic, "heartbeat_ms",
			 MEM_HEARTBEAT_MS, "ack_timeout",
			 (int)answer.ack_timeout, "caps", caps_json(node));
	add_auth(tree, node, &answer);
	explicit_bzero(answer.auth_key, sizeof(answer.auth_key));
	if (session) {
		(void)json_object_set_new(tree, "finals", finals_json(session));
		session->conn = c;
		c->session = session;
	}
	ctl_reply_json(call->reply, 200, tree);
}

void handle_conn_list(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	uint64_t now_ns = env_now_ns(node->env);
	json_t *rows = json_array();

	for (unsigned i = 0; i < MEM_CONN_MAX; i++) {
		const struct mem_conn *c = node->conns[i];
		char id[CTL_BOND_TEXT];

		if (!c || c->tenant != call->caller)
			continue;
		ctl_bond_format(c->nonce, c->slot, id);
		(void)json_array_append_new(
			rows,
			json_pack(
				"{s:s, s:s, s:s, s:i, s:I}", "connection", id,
				"client", c->client, "access",
				c->read_only ? "r" : "rw", "grants",
				(int)c->grant_count, "silent_ms",
				(json_int_t)((now_ns - c->seen_ns) / 1000000)));
	}
	ctl_reply_json(call->reply, 200,
		       json_pack("{s:o}", "connections", rows));
}

/* Who comes with a token that was handed on has the connections that were made
 * with it. */
static int find_own(struct mem_node *node, const struct ctl_call *call,
		    const char *id, struct mem_conn **out)
{
	const struct mem_narrow *n = call->scope;
	int err = conn_find(node, call->caller, id, out);

	if (!err && n && (*out)->narrow_id != n->id)
		err = error_set(-ESTALE, "there is no such connection");
	/* Whatever it asks for, it lives. */
	if (!err)
		(*out)->seen_ns = env_now_ns(node->env);
	return err;
}

int handle_find_conn(struct mem_node *node, struct ctl_call *call,
		     struct mem_conn **out)
{
	return find_own(node, call, call->segment[0], out);
}

void handle_conn_heartbeat(void *ctx, struct ctl_call *call)
{
	struct mem_conn *c;
	int err = handle_find_conn(ctx, call, &c);

	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_none(call->reply);
}

static int live(void *ctx, struct ctl_call *call, const char *id)
{
	struct mem_conn *c;

	return find_own(ctx, call, id, &c);
}

void handle_heartbeat(void *ctx, struct ctl_call *call)
{
	ctl_bonds_heartbeat(ctx, call, "connections", MEM_HEARTBEAT_MAX, live);
}

void handle_disconnect(void *ctx, struct ctl_call *call)
{
	struct mem_conn *c;
	int err = handle_find_conn(ctx, call, &c);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	conn_end(ctx, c, MEM_END_CLOSED);
	/* Now, not at the next tick: who comes after the answer finds room. */
	region_expire(ctx);
	ctl_reply_none(call->reply);
}
