/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/connect and /v1/connections. */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"
#include "error.h"
#include "mem_priv.h"

enum {
	GID_CHARS = 32,
	RD_ATOMIC_MAX = 255,
	PSN_MAX = 0xffffff,
	GRANT_ID_TEXT = 16 + 1,
};

static int parse_gid(const char *text, union ibv_gid *out)
{
	if (strlen(text) != GID_CHARS ||
	    strspn(text, "0123456789abcdefABCDEF") != GID_CHARS)
		return error_set(-EINVAL, "\"gid\" has %d hex digits",
				 GID_CHARS);
	for (unsigned i = 0; i < sizeof(out->raw); i++) {
		char byte[3] = {text[2 * i], text[2 * i + 1], 0};

		out->raw[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
	return 0;
}

static void format_gid(const union ibv_gid *gid, char out[GID_CHARS + 1])
{
	for (unsigned i = 0; i < sizeof(gid->raw); i++)
		(void)snprintf(out + 2 * i, 3, "%02x", gid->raw[i]);
}

static int parse_mtu(uint64_t bytes, enum ibv_mtu *out)
{
	for (unsigned m = IBV_MTU_256; m <= IBV_MTU_4096; m++) {
		if (128ull << m == bytes) {
			*out = (enum ibv_mtu)m;
			return 0;
		}
	}
	return error_set(-EINVAL, "\"mtu\" is 256, 512, 1024, 2048 or 4096");
}

static int parse_access(const char *text, bool *read_only)
{
	*read_only = strcmp(text, "r") == 0;
	if (*read_only || strcmp(text, "rw") == 0)
		return 0;
	return error_set(-EINVAL, "\"access\" is \"r\" or \"rw\"");
}

static int parse_peer(const json_t *body, struct conn_peer *peer)
{
	uint64_t qpn, psn, mtu = 4096, rd_atomic = 16, patience_ms = 0;
	const char *proto, *gid, *access = "rw";
	int err = ctl_field_string(body, "proto", true, &proto);

	peer->client = "";
	if (!err)
		err = ctl_proto_check(proto);
	if (!err)
		err = ctl_field_string(body, "gid", true, &gid);
	if (!err)
		err = parse_gid(gid, &peer->gid);
	if (!err)
		err = ctl_field_u64(body, "qpn", true, 2, PSN_MAX, &qpn);
	if (!err)
		err = ctl_field_u64(body, "psn", true, 0, PSN_MAX, &psn);
	if (!err)
		err = ctl_field_u64(body, "mtu", false, 256, 4096, &mtu);
	if (!err)
		err = parse_mtu(mtu, &peer->mtu);
	if (!err)
		err = ctl_field_u64(body, "rd_atomic", false, 1, RD_ATOMIC_MAX,
				    &rd_atomic);
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
	peer->qpn = (uint32_t)qpn;
	peer->psn = (uint32_t)psn;
	peer->rd_atomic = (uint8_t)rd_atomic;
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
		err = ctl_field_u64(call->body, "without", false, 0, UINT8_MAX,
				    &without);
	peer->without = (unsigned)without;
	if (!err)
		err = conn_find(node, call->caller, owner, &c);
	if (!err && !c->owns_space)
		err = error_set(-EINVAL, "connection %s has no pages", owner);
	if (!err)
		peer->owner = c;
	return err;
}

void handle_connect(void *ctx, struct ctl_call *call)
{
	char id[CONN_ID_TEXT], gid[GID_CHARS + 1];
	struct mem_node *node = ctx;
	struct conn_answer answer;
	struct mem_session *session = NULL;
	struct conn_peer peer;
	struct mem_conn *c;
	const char *id_text = NULL;
	json_t *tree;
	int err = parse_peer(call->body, &peer);

	if (!err)
		err = parse_role(node, call, &peer);
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
	conn_id_format(c, id);
	format_gid(&answer.gid, gid);
	tree = json_pack("{s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:i, s:o}",
			 "proto", CTL_PROTO, "connection", id, "gid", gid,
			 "qpn", (json_int_t)c->qp->qp_num, "psn",
			 (json_int_t)answer.psn, "mtu", 128 << answer.mtu,
			 "rd_atomic", (int)answer.rd_atomic, "heartbeat_ms",
			 MEM_HEARTBEAT_MS, "ack_timeout",
			 (int)answer.ack_timeout, "caps", caps_json(node));
	if (session) {
		if (session->has_final)
			(void)json_object_set_new(
				tree, "final_psn",
				json_integer(session->final_psn));
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
		char id[CONN_ID_TEXT];

		if (!c || c->tenant != call->caller)
			continue;
		conn_id_format(c, id);
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

static int find(struct mem_node *node, struct ctl_call *call,
		struct mem_conn **out)
{
	int err = conn_find(node, call->caller, call->segment[0], out);

	/* Whatever it asks for, it lives. */
	if (!err)
		(*out)->seen_ns = env_now_ns(node->env);
	return err;
}

void handle_heartbeat(void *ctx, struct ctl_call *call)
{
	struct mem_conn *c;
	int err = find(ctx, call, &c);

	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_none(call->reply);
}

void handle_disconnect(void *ctx, struct ctl_call *call)
{
	struct mem_conn *c;
	int err = find(ctx, call, &c);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	conn_end(ctx, c, MEM_END_CLOSED);
	ctl_reply_none(call->reply);
}

static int parse_rights(const char *text, int *access)
{
	static const struct {
		const char *text;
		int access;
	} rights[] = {
		{"r", IBV_ACCESS_REMOTE_READ},
		{"rw", IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE},
		{"rwa", IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_ATOMIC},
	};

	for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
		if (strcmp(rights[i].text, text) == 0) {
			*access = rights[i].access;
			return 0;
		}
	}
	return error_set(-EINVAL, "\"rights\" is \"r\", \"rw\" or \"rwa\"");
}

/* What is asked for, checked against what there is. */
static int parse_wish(struct mem_node *node, struct ctl_call *call,
		      const struct mem_conn *conn, struct grant_wish *w,
		      struct mem_region **out)
{
	const json_t *revocable = json_object_get(call->body, "revocable");
	struct mem_region *region;
	const char *name, *rights;
	int err = ctl_field_string(call->body, "region", true, &name);

	w->offset = 0;
	w->length = 0;
	if (!err)
		err = ctl_field_string(call->body, "rights", true, &rights);
	if (!err)
		err = parse_rights(rights, &w->access);
	if (!err)
		err = ctl_field_u64(call->body, "offset", false, 0, INT64_MAX,
				    &w->offset);
	if (!err)
		err = ctl_field_u64(call->body, "length", false, 0, INT64_MAX,
				    &w->length);
	if (!err && revocable && !json_is_boolean(revocable))
		err = error_set(-EINVAL, "\"revocable\" is true or false");
	if (err)
		return err;
	w->revocable = json_is_true(revocable);
	if (conn->role != MEM_ROLE_PLAIN)
		return error_set(-EACCES, "this connection has no regions");
	if (conn->read_only && w->access != IBV_ACCESS_REMOTE_READ)
		return error_set(-EACCES, "this connection may only read");
	region = region_find(node, call->caller, name);
	if (!region)
		return error_set(-ENOENT, "there is no region %.63s", name);
	if (region->busy)
		return error_set(-EBUSY,
				 "region %s is being made, changed or deleted",
				 name);
	if (w->offset >= region->size_bytes)
		return error_set(-EINVAL,
				 "\"offset\" lies behind the region's end");
	if (w->length == 0)
		w->length = region->size_bytes - w->offset;
	if (w->length > region->size_bytes - w->offset)
		return error_set(-EINVAL,
				 "\"length\" reaches behind the region's end");
	*out = region;
	return 0;
}

void handle_grant_create(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	char id[GRANT_ID_TEXT];
	struct mem_region *r = NULL;
	struct grant_wish w;
	struct mem_grant *g = NULL;
	struct mem_conn *c;
	int err = find(node, call, &c);

	if (!err)
		err = parse_wish(node, call, c, &w, &r);
	if (!err)
		err = grant_create(node, c, r, &w, &g);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	(void)snprintf(id, sizeof(id), "%016" PRIx64, g->id);
	ctl_reply_json(
		call->reply, 200,
		json_pack("{s:s, s:I, s:I, s:I, s:I, s:i, s:s, s:b}", "grant",
			  id, "rkey",
			  (json_int_t)(g->mw ? g->mw->rkey : r->mr->rkey),
			  "addr", (json_int_t)((uintptr_t)r->addr + w.offset),
			  "length", (json_int_t)w.length, "epoch",
			  (json_int_t)r->epoch, "region_id", (int)r->id,
			  "incarnation", node->incarnation, "revocable",
			  g->mw != NULL));
}

void handle_grant_delete(void *ctx, struct ctl_call *call)
{
	char id[GRANT_ID_TEXT];
	struct mem_conn *c;
	struct list *at;
	int err = find(ctx, call, &c);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	for (at = c->grants.next; at != &c->grants; at = at->next) {
		struct mem_grant *g = container_of(at, struct mem_grant, node);

		(void)snprintf(id, sizeof(id), "%016" PRIx64, g->id);
		if (strcmp(id, call->segment[1]) != 0)
			continue;
		grant_end(ctx, c, g);
		ctl_reply_none(call->reply);
		return;
	}
	ctl_reply_error(call->reply, -ENOENT, "there is no grant %s",
			call->segment[1]);
}
