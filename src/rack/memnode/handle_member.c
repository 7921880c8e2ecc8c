/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/shared/members: machines that share memory. */
#include <errno.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/hex.h"
#include "coherence/lease.h"
#include "shared_priv.h"

enum {
	GID_CHARS = 32,
	MS = 1000000,
};

/* ---- what a machine says --------------------------------------------------
 */

/* A queue pair: `what` has "qpn" and "psn"; the rest is the same for all. */
static int end_field(const json_t *body, const char *what, const json_t *row,
		     struct ctl_pair *out)
{
	json_t *whole;
	int err;

	if (!json_is_object(row) || json_object_size(row) != 2)
		return error_set(-EINVAL,
				 "\"%s\" is an object with \"qpn\" and \"psn\"",
				 what);
	whole = json_copy((json_t *)(uintptr_t)row);
	(void)json_object_set(whole, "gid", json_object_get(body, "gid"));
	if (json_object_get(body, "mtu"))
		(void)json_object_set(whole, "mtu",
				      json_object_get(body, "mtu"));
	err = ctl_field_pair(whole, out);
	json_decref(whole);
	return err ? error_prefix(err, "\"%s\": ", what) : 0;
}

static int ends_fields(const json_t *body, struct mem_member_ends *out)
{
	const json_t *lanes = json_object_get(body, "lanes"), *row;
	struct ctl_pair pair;
	const char *proto;
	size_t i;
	int err = ctl_field_string(body, "proto", true, &proto);

	if (!err)
		err = ctl_proto_check(proto);
	if (!err)
		err = end_field(body, "talk", json_object_get(body, "talk"),
				&pair);
	if (err)
		return err;
	memcpy(out->gid.raw, pair.gid, sizeof(pair.gid));
	out->mtu = pair.mtu;
	out->talk = (struct mem_member_end){pair.qpn, pair.psn};
	out->lanes = (unsigned)json_array_size(lanes);
	if (!json_is_array(lanes) || !out->lanes || out->lanes > COH_LANES_MAX)
		return error_set(-EINVAL, "\"lanes\" is a list of 1 to %d",
				 COH_LANES_MAX);
	json_array_foreach(lanes, i, row)
	{
		err = end_field(body, "lanes", row, &pair);
		if (err)
			return err;
		out->lane[i] = (struct mem_member_end){pair.qpn, pair.psn};
	}
	return 0;
}

/* ---- what it is told ------------------------------------------------------
 */

static void reply_end(struct mem_node *node, struct ctl_call *call,
		      unsigned status, const struct mem_member *m,
		      bool was_member)
{
	const struct mem_shared *s = node->shared;
	unsigned number = (unsigned)(m - s->members);
	char id[CTL_BOND_TEXT], gid[GID_CHARS + 1];
	json_t *lanes = json_array(), *tree;

	ctl_bond_format(m->nonce, number, id);
	hex_write(gid, m->own_gid.raw, sizeof(m->own_gid.raw));
	for (unsigned i = 0; i < m->lanes; i++)
		(void)json_array_append_new(
			lanes, json_pack("{s:I}", "qpn",
					 (json_int_t)(m->own_qpn + 1 + i)));
	tree = json_pack(
		"{s:s, s:s, s:i, s:I, s:b, s:s, s:s, s:i, s:{s:I, s:I}, s:o, "
		"s:{s:I, s:I, s:I}}",
		"proto", CTL_PROTO, "member", id, "number", (int)number, "term",
		(json_int_t)s->term, "was_member", was_member, "incarnation",
		node->incarnation, "gid", gid, "mtu", (int)m->mtu_bytes, "talk",
		"qpn", (json_int_t)m->own_qpn, "psn", (json_int_t)m->own_psn,
		"lanes", lanes, "keys", "read", (json_int_t)m->key[COH_READ],
		"write", (json_int_t)m->key[COH_WRITE], "give",
		(json_int_t)m->key[COH_NONE]);
	(void)json_object_set_new(tree, "heartbeat_ms",
				  json_integer(COH_HEARTBEAT_NS / MS));
	(void)json_object_set_new(tree, "lease_ms",
				  json_integer(COH_LEASE_NS / MS));
	ctl_reply_json(call->reply, status, tree);
}

static int find(const struct mem_node *node, const struct ctl_call *call,
		struct mem_member **out)
{
	return node->shared
		       ? member_find(node->shared, call->caller,
				     call->segment[0], out)
		       : error_set(-ESTALE, "this node has no shared memory");
}

/* ---- routes ---------------------------------------------------------------
 */

void handle_member_join(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_member_ends ends;
	struct mem_member *m;
	const char *name;
	int err = ctl_field_string(call->body, "name", true, &name);

	if (!err && !ctl_name_is_valid(name, MEM_MEMBER_NAME_MAX))
		err = error_set(-EINVAL,
				"a machine's name has 1 to %d letters, digits, "
				"'-', '_' and '.'",
				MEM_MEMBER_NAME_MAX);
	if (!err)
		err = ends_fields(call->body, &ends);
	if (!err)
		err = shared_check(node);
	if (!err)
		err = member_join(node, call->caller, name, &ends, &m);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		reply_end(node, call, 201, m, false);
}

void handle_member_connect(void *ctx, struct ctl_call *call)
{
	struct mem_member_ends ends;
	struct mem_member *m;
	int err = find(ctx, call, &m);

	if (!err)
		err = ends_fields(call->body, &ends);
	if (!err)
		err = member_connect(ctx, m, &ends);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		reply_end(ctx, call, 200, m, true);
}

void handle_member_beat(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_member *m;
	int err = find(node, call, &m);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	m->beat_ns = env_now_ns(node->env);
	ctl_reply_json(call->reply, 200,
		       json_pack("{s:I, s:I}", "term",
				 (json_int_t)(node->shared->is_ready
						      ? node->shared->term
						      : 0),
				 "extent",
				 (json_int_t)shared_node_extent(node->shared)));
}

void handle_member_leave(void *ctx, struct ctl_call *call)
{
	struct mem_member *m;
	int err = find(ctx, call, &m);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	member_expel(m, "it leaves");
	ctl_reply_none(call->reply);
}

void handle_member_list(void *ctx, struct ctl_call *call)
{
	const struct mem_node *node = ctx;
	const struct mem_shared *s = node->shared;
	uint64_t now_ns = env_now_ns(node->env);
	json_t *rows = json_array();

	for (unsigned i = 0; s && i < COH_MACHINES_MAX; i++) {
		const struct mem_member *m = &s->members[i];
		char id[CTL_BOND_TEXT];

		if (!m->used || m->tenant != call->caller)
			continue;
		ctl_bond_format(m->nonce, i, id);
		(void)json_array_append_new(
			rows,
			json_pack("{s:s, s:i, s:s, s:i, s:I, s:s}", "member",
				  id, "number", (int)i, "name", m->name,
				  "lanes", (int)m->lanes, "silent_ms",
				  (json_int_t)((now_ns - m->beat_ns) / MS),
				  "state",
				  m->is_going	    ? "gone"
				  : m->is_connected ? "member"
						    : "unclean"));
	}
	ctl_reply_json(call->reply, 200,
		       json_pack("{s:o, s:I}", "members", rows, "term",
				 (json_int_t)(s && s->is_ready ? s->term : 0)));
}
