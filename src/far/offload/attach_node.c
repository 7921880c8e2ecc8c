/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching, the memory nodes' part: connections for the engine's queue pairs
 * and keys for the regions, asked for in the application's name. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "async_priv.h"
#include "base/error.h"
#include "base/log.h"

enum {
	PSN_MASK = 0xffffff,
	RD_ATOMIC = 128, /* where the devices can */
	MTU_BYTES = 4096,
	TICK_NS = 2000000,
};

int offload_async_end_parse(const json_t *tree, struct async_end *out)
{
	const char *gid = json_string_value(json_object_get(tree, "gid"));
	int err;

	if (!gid || strlen(gid) != 32 ||
	    strspn(gid, "0123456789abcdefABCDEF") != 32)
		return error_set(-EPROTO, "the answer has no usable 'gid'");
	memcpy(out->gid, gid, 33);
	err = client_json_u64(tree, "qpn", PSN_MASK, &out->qpn);
	if (!err)
		err = client_json_u64(tree, "psn", PSN_MASK, &out->psn);
	if (!err)
		err = client_json_u64(tree, "mtu", 4096, &out->mtu);
	if (!err)
		err = client_json_u64(tree, "rd_atomic", 128, &out->rd_atomic);
	return err;
}

struct job {
	struct aq_async *a;
	struct async_node *n;
	uint32_t index;
	const struct client_caller *caller;
	uint64_t deadline_ns;
};

static int ask(const struct job *j, const char *path, json_t *body,
	       json_t **reply)
{
	uint64_t now = client_keep_now_ns(j->a->rack);
	uint32_t ms =
		j->deadline_ns <= now
			? 1
			: (uint32_t)((j->deadline_ns - now) / 1000000 + 1);

	return client_call(j->caller,
			   client_keep_node(j->a->rack, j->n->rack_node),
			   "POST", path, body, ms, CLIENT_REPLY_MAX, reply);
}

/* How far the engine's predecessor came, if it had begun to tell. The node may
 * have made another connection since, in an attempt whose answer was lost. */
static void take_final(const struct job *j, const json_t *reply)
{
	const struct offload_preamble *p = j->a->memory;
	uint32_t told = p->red.node[OFFLOAD_NODES_MAX - 1 - j->index].epoch;
	const json_t *rows = json_object_get(reply, "finals");
	struct async_node *n = j->n;

	if (n->conn_epoch == 0 || told != n->conn_epoch)
		return;
	n->has_final = false;
	n->final_epoch = n->conn_epoch;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		const char *id =
			json_string_value(json_object_get(row, "connection"));
		uint64_t psn;

		if (!id || strcmp(id, n->conn_id) != 0 ||
		    client_json_u64(row, "psn", PSN_MASK, &psn))
			continue;
		n->has_final = true;
		n->final_psn = (uint32_t)psn;
	}
}

static bool has_cap(const json_t *reply, const char *cap)
{
	const json_t *caps = json_object_get(reply, "caps"), *row;
	size_t i;

	json_array_foreach(caps, i, row)
	{
		const char *word = json_string_value(row);

		if (word && strcmp(word, cap) == 0)
			return true;
	}
	return false;
}

/* A connection for the engine's queue pair. `walk` is what walks it may send,
 * or NULL. */
static int ask_for_one(const struct job *j, unsigned kind, const char *gid,
		       const json_t *near, json_t *walk, json_t **reply)
{
	uint64_t qpn, psn;
	json_t *body;
	int err = client_json_u64(near, "qpn", PSN_MASK, &qpn);

	if (!err)
		err = client_json_u64(near, "psn", PSN_MASK, &psn);
	if (err)
		return err;
	body = json_pack("{s:s, s:s, s:I, s:I, s:i, s:i, s:s, s:s}", "proto",
			 "1.0", "gid", gid, "qpn", (json_int_t)qpn, "psn",
			 (json_int_t)psn, "mtu", MTU_BYTES, "rd_atomic",
			 RD_ATOMIC, "access",
			 kind == OFFLOAD_RD && !j->a->is_direct ? "r" : "rw",
			 "client", "engine");
	if (walk)
		(void)json_object_set(body, "walk", walk);
	if (j->a->now.can_auth)
		(void)json_object_set_new(body, "auth", json_string("psk"));
	/* Only writes must not be repeated. */
	if (kind == OFFLOAD_WR)
		(void)json_object_set_new(body, "session",
					  json_string(j->a->session));
	return ask(j, "/v1/connect", body, reply);
}

/*
 * What the engine would like to gather with: many reads in one walk, if the
 * node can. Not where it maps the memory. What walks take of the tenant's share
 * may be too much; then each read is a READ, as at nodes that do not gather.
 */
static json_t *wish_of(const struct job *j, unsigned kind, const json_t *near)
{
	return kind == OFFLOAD_RD && j->n->can_gather && !j->a->is_direct
		       ? json_object_get(near, "walk")
		       : NULL;
}

/* `gid` is the engine's, `near` its queue pair; `row` gets the node's. */
static int connect_one(const struct job *j, unsigned kind, const char *gid,
		       const json_t *near, json_t *row)
{
	json_t *walk = wish_of(j, kind, near), *reply = NULL;
	struct client_auth auth = {0};
	struct async_end far;
	int err = ask_for_one(j, kind, gid, near, walk, &reply);

	if (err && walk && err != -EHOSTDOWN) {
		walk = NULL;
		err = ask_for_one(j, kind, gid, near, NULL, &reply);
	}
	if (!err)
		err = client_json_word(reply, "connection", j->n->bond[kind].id,
				       CLIENT_ID_MAX);
	if (!err)
		err = client_bond_add(j->a->rack, &j->n->bond[kind],
				      ASYNC_HEARTBEAT_MS);
	if (!err)
		err = offload_async_end_parse(reply, &far);
	if (!err)
		err = client_auth_parse(j->a->rack, reply, "node", &auth);
	explicit_bzero(&auth, sizeof(auth));
	if (!err && kind == OFFLOAD_WR) {
		j->n->can_gather = has_cap(reply, "gather");
		take_final(j, reply);
		j->n->conn_epoch = j->a->epoch;
		memcpy(j->n->conn_id, j->n->bond[kind].id, CLIENT_ID_MAX);
	}
	/* The key is handed on as it came; "O*" leaves out what is not
	 * there. */
	if (!err)
		(void)json_object_set_new(
			row, kind == OFFLOAD_RD ? "read" : "write",
			json_pack("{s:s, s:I, s:I, s:I, s:I, s:O*, s:O*}",
				  "gid", far.gid, "qpn", (json_int_t)far.qpn,
				  "psn", (json_int_t)far.psn, "mtu",
				  (json_int_t)far.mtu, "rd_atomic",
				  (json_int_t)far.rd_atomic, "auth",
				  json_object_get(reply, "auth"), "gather",
				  json_object_get(walk, "bytes")));
	json_decref(reply);
	return err;
}

/* All rights make a key that may be mapped. Never for writes: the engine's
 * would leave no trace at the node. */
static const char *rights_of(const struct job *j, const struct async_region *r,
			     unsigned kind)
{
	if (kind == OFFLOAD_WR)
		return "rw";
	return j->a->is_direct && !r->shape.is_read_only ? "rwa" : "r";
}

static int grant_one(const struct job *j, struct async_region *r,
		     uint32_t piece, unsigned kind)
{
	struct client_map *m = &r->shape.map;
	char path[CLIENT_PATH_MAX], name[CLIENT_PIECE_NAME_MAX];
	uint64_t rkey, addr, length, id, incarnation;
	json_t *reply = NULL;
	int err;

	piece_name_write(r->shape.name, piece, m->piece_count, m->stripe_shift,
			 name);
	snprintf(path, sizeof(path), "/v1/connections/%s/grants",
		 j->n->bond[kind].id);
	err = ask(j, path,
		  json_pack("{s:s, s:s}", "region", name, "rights",
			    rights_of(j, r, kind)),
		  &reply);
	if (!err)
		err = client_json_u64(reply, "rkey", UINT32_MAX, &rkey);
	if (!err)
		err = client_json_u64(reply, "addr", INT64_MAX, &addr);
	if (!err)
		err = client_json_u64(reply, "length", INT64_MAX, &length);
	if (!err)
		err = client_json_u64(reply, "region_id", UINT16_MAX, &id);
	if (!err)
		err = client_json_hex(reply, "incarnation", &incarnation);
	json_decref(reply);
	if (err == -ENOENT ||
	    (!err && (id != m->piece[piece].id ||
		      incarnation != m->piece[piece].incarnation))) {
		log_info("offload", "region %s is gone", r->shape.name);
		r->err = -ESTALE;
		return 0;
	}
	if (err)
		return err;
	r->piece[piece].rkey[kind] = (uint32_t)rkey;
	r->piece[piece].addr = addr;
	m->piece[piece].size_bytes = length;
	return 0;
}

static int grant_all(const struct job *j)
{
	struct aq_async *a = j->a;
	int err = 0;

	for (uint32_t i = 0; i < a->region_count && !err; i++) {
		struct async_region *r = a->region[i];

		for (uint32_t p = 0; p < r->shape.map.piece_count; p++) {
			if (r->piece[p].node != j->index || r->err || err)
				continue;
			err = grant_one(j, r, p, OFFLOAD_RD);
			if (!err && !r->err && !r->shape.is_read_only)
				err = grant_one(j, r, p, OFFLOAD_WR);
		}
	}
	return err;
}

void offload_async_node_forget(struct aq_async *a, uint32_t i)
{
	for (unsigned k = 0; k < OFFLOAD_KINDS; k++)
		client_bond_remove(a->rack, &a->node[i].bond[k]);
}

/* A node that was used so far, and had less time to answer than an attempt has
 * (its engine may have used that up), is not given up for it. One that refuses
 * is gone: that comes at once. */
static bool may_be_slow(struct aq_async *a, struct async_node *n,
			uint64_t began_ns, uint64_t deadline_ns)
{
	uint64_t now_ns = client_keep_now_ns(a->rack);

	/* The call counts in milliseconds, and may end one too early. */
	if (now_ns + TICK_NS < deadline_ns)
		return false;
	if (!n->silent_ns)
		n->silent_ns = began_ns;
	return now_ns - n->silent_ns <
	       async_share_ms(a, ASYNC_ATTACH_SHARE) * 1000000ull;
}

int offload_async_node_connect(struct aq_async *a, uint32_t i,
			       const struct client_caller *caller,
			       const char *gid, const json_t *ends,
			       uint64_t deadline_ns, json_t *row)
{
	struct job j = {.a = a,
			.n = &a->node[i],
			.index = i,
			.caller = caller,
			.deadline_ns = deadline_ns};
	struct async_node *n = &a->node[i];
	uint64_t began_ns = client_keep_now_ns(a->rack);
	bool was_used = n->conn_epoch != 0 && !n->err;
	int err;

	offload_async_node_forget(a, i);
	for (unsigned k = 0; k < OFFLOAD_KINDS; k++) {
		n->bond[k].id[0] = '\0';
		atomic_store_explicit(&n->bond[k].is_lost, false,
				      memory_order_relaxed);
	}
	err = connect_one(&j, OFFLOAD_WR, gid, json_object_get(ends, "write"),
			  row);
	if (!err)
		err = connect_one(&j, OFFLOAD_RD, gid,
				  json_object_get(ends, "read"), row);
	if (!err)
		err = grant_all(&j);
	if (err == -EHOSTDOWN && was_used &&
	    may_be_slow(a, n, began_ns, deadline_ns)) {
		offload_async_node_forget(a, i);
		return -EAGAIN;
	}
	n->silent_ns = 0;
	if (err && err != -EACCES)
		err = -EHOSTDOWN;
	if (err && !n->err)
		log_warn("offload", "a memory node cannot be used: %s",
			 error_last());
	/* What there is of a node that is not used ends by our silence. */
	if (err)
		offload_async_node_forget(a, i);
	n->err = err;
	(void)json_object_set_new(row, "err", json_integer(-err));
	if (n->has_final)
		(void)json_object_set_new(row, "final",
					  json_pack("{s:I, s:I}", "epoch",
						    (json_int_t)n->final_epoch,
						    "psn",
						    (json_int_t)n->final_psn));
	return 0;
}
