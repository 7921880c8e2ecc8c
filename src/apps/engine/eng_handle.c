/* SPDX-License-Identifier: Apache-2.0 */
/* Routes and who may call them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"
#include "base/log.h"
#include "eng_priv.h"
#include "pair/pair.h"

static json_t *qp_json(const struct eng_qp *l)
{
	return json_pack("{s:I, s:I}", "qpn", (json_int_t)l->qpn, "psn",
			 (json_int_t)l->psn);
}

static void add_auth(json_t *tree, const struct eng_far *far)
{
	char text[2 * AQDV_AUTH_KEY_BYTES + 1];

	if (!far->has_auth)
		return;
	hex_write(text, far->auth_key, AQDV_AUTH_KEY_BYTES);
	(void)json_object_set_new(tree, "auth", json_string(text));
	explicit_bzero(text, sizeof(text));
}

/* The address that the application's queue pair talks to. */
static int own_gid(const struct eng *eng, const struct eng_session *s,
		   union ibv_gid *gid)
{
	const union ibv_gid *far = &s->application.gid;
	uint8_t index;

	if (!eng->at_switch)
		return pair_gid(eng->context, far, &index, gid);
	memcpy(gid->raw, ctl_switch_ip(far->raw), sizeof(gid->raw));
	return 0;
}

static void answer_open(struct eng *eng, struct ctl_call *call,
			const struct eng_session *s)
{
	char id[CTL_BOND_TEXT], text[ENG_GID_TEXT];
	json_t *nodes = json_array(), *tree;
	union ibv_gid gid;
	int err = own_gid(eng, s, &gid);

	if (err) {
		json_decref(nodes);
		(void)error_set(err, "the NIC has no RoCEv2 address");
		ctl_reply_last_error(call->reply, err);
		return;
	}
	hex_write(text, gid.raw, sizeof(gid.raw));
	for (unsigned i = 0; i < s->node_count; i++) {
		json_t *read = qp_json(&s->node[i][0]);

		/* What walks it would like to have answered there. */
		if (eng->can_gather)
			(void)json_object_set_new(
				read, "walk",
				json_pack("{s:i, s:i}", "depth",
					  OFFLOAD_GATHERS, "bytes",
					  AQDV_WALK_PAD_MAX));
		(void)json_array_append_new(
			nodes, json_pack("{s:o, s:o}", "read", read, "write",
					 qp_json(&s->node[i][1])));
	}
	ctl_bond_format(s->nonce, s->slot, id);
	tree = json_pack(
		"{s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:o, s:b, s:b}",
		"proto", CTL_PROTO, "session", id, "gid", text, "qpn",
		(json_int_t)s->ring.qpn, "psn", (json_int_t)s->ring.psn, "mtu",
		128 << s->application.mtu, "rd_atomic",
		(int)s->application.rd_atomic, "heartbeat_ms", ENG_HEARTBEAT_MS,
		"nodes", nodes, "can_auth", eng->can_auth, "in_switch",
		eng->at_switch != NULL);
	add_auth(tree, &s->application);
	ctl_reply_json(call->reply, 200, tree);
}

static void handle_open(void *ctx, struct ctl_call *call)
{
	struct eng_session *wish = calloc(1, sizeof(*wish)), *s = NULL;
	struct eng *eng = ctx;
	int err = wish ? eng_parse_open(call->body, wish)
		       : error_set(-ENOMEM, "no memory for a session");

	if (!err)
		err = eng_session_open(eng, wish, &s);
	free(wish);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		answer_open(eng, call, s);
}

static int connect_nodes(struct eng *eng, struct eng_session *s,
			 struct eng_far far[OFFLOAD_NODES_MAX][2])
{
	int err = 0;

	for (unsigned i = 0; i < s->node_count && !err; i++) {
		if (s->config.node[i].err)
			continue;
		err = eng_qp_connect(eng, &s->node[i][0], &far[i][0],
				     s->within_ms);
		if (!err)
			err = eng_qp_connect(eng, &s->node[i][1], &far[i][1],
					     s->within_ms);
	}
	return err;
}

static int start(struct eng *eng, struct ctl_call *call, struct eng_session *s)
{
	struct eng_far far[OFFLOAD_NODES_MAX][2];
	int err;

	if (s->is_started)
		return error_set(-EEXIST, "this session was started already");
	memset(far, 0, sizeof(far));
	err = eng_parse_start(call->body, s, far);
	if (!err)
		err = eng->at_switch ? eng_switch_session_start(eng, s, far)
				     : connect_nodes(eng, s, far);
	explicit_bzero(far, sizeof(far));
	return err ? err : eng_session_start(eng, s);
}

static void handle_start(void *ctx, struct ctl_call *call)
{
	struct eng *eng = ctx;
	struct eng_session *s;
	int err = eng_session_find(eng, call->segment[0], &s);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	err = start(eng, call, s);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		/* Its queue pairs may be anywhere by now. */
		if (err != -EEXIST)
			eng_session_end(eng, s);
		return;
	}
	ctl_reply_none(call->reply);
}

static int live(void *ctx, struct ctl_call *call, const char *id)
{
	struct eng *eng = ctx;
	struct eng_session *s;
	int err = eng_session_find(eng, id, &s);

	if (!err)
		s->seen_ns = client_clock_now_ns(eng->clock);
	return err;
}

static void handle_heartbeat(void *ctx, struct ctl_call *call)
{
	ctl_bonds_heartbeat(ctx, call, "sessions", ENG_HEARTBEAT_MAX, live);
}

static void handle_end(void *ctx, struct ctl_call *call)
{
	struct eng *eng = ctx;
	struct eng_session *s;
	int err = eng_session_find(eng, call->segment[0], &s);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	eng_session_end(eng, s);
	ctl_reply_none(call->reply);
}

/* Without the ids: all applications have the same token, and who knows an id
 * may end the session. It is told only to who has opened it. */
static void handle_list(void *ctx, struct ctl_call *call)
{
	struct eng *eng = ctx;
	json_t *rows = json_array();

	for (unsigned i = 0; i < ENG_SESSION_MAX; i++) {
		const struct eng_session *s = eng->session[i];

		if (!s)
			continue;
		(void)json_array_append_new(
			rows,
			json_pack("{s:i, s:s, s:i, s:i, s:i, s:i, s:i}", "slot",
				  (int)i, "client", s->client, "thread",
				  s->worker ? (int)(s->worker - eng->worker)
					    : 0,
				  "nodes", (int)s->node_count, "regions",
				  (int)s->config.region_count, "pending",
				  (int)eng_session_pending(s), "err",
				  -eng_session_err(s)));
	}
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "sessions", rows));
}

static const struct ctl_route routes[] = {
	{CTL_GET, "/v1/status", eng_handle_status, ENG_LEVEL_ANY},
	{CTL_GET, "/metrics", eng_handle_metrics, ENG_LEVEL_METRICS},
	{CTL_GET, "/v1/sessions", handle_list, ENG_LEVEL_CLIENT},
	{CTL_POST, "/v1/sessions", handle_open, ENG_LEVEL_CLIENT},
	{CTL_POST, "/v1/sessions/:/start", handle_start, ENG_LEVEL_CLIENT},
	{CTL_POST, "/v1/heartbeat", handle_heartbeat, ENG_LEVEL_CLIENT},
	{CTL_DELETE, "/v1/sessions/:", handle_end, ENG_LEVEL_CLIENT},
};

static const struct ctl_members members[] = {
	{handle_open,
	 "proto client gid qpn psn mtu rd_atomic ring nodes epoch batch "
	 "flush_us node_timeout_ms auth"},
	{handle_start, "nodes regions"},
	{handle_heartbeat, "sessions"},
};

static bool may_call(const struct eng *eng, const struct ctl_call *call)
{
	const struct ctl_request *req = call->request;
	struct ctl_token_hash hash;

	if (call->route->level == ENG_LEVEL_ANY ||
	    (call->route->level == ENG_LEVEL_METRICS && req->is_local))
		return true;
	return req->token && ctl_token_hash(req->token, &hash) == 0 &&
	       ctl_token_hash_equal(&eng->token, &hash);
}

/* One token opens an engine, so callers are told apart by where they are. Who
 * has the token may ask more often, and heartbeats go through for longer. */
static bool take_rate(struct eng *eng, const struct ctl_call *call, bool may,
		      uint64_t *wait_ns)
{
	bool is_client = may && call->request->token;
	uint32_t per_s = is_client ? ENG_REQUESTS : ENG_STRANGER_REQUESTS;
	uint32_t burst_s = call->route->run == handle_heartbeat ? 4 : 2;
	char who[CTL_RATE_ORIGIN_TEXT];
	bool taken;

	if (!call->request->origin)
		return true; /* no connection: a test */
	(void)snprintf(who, sizeof(who), "%s%s", is_client ? "+" : "",
		       call->request->origin);
	pthread_mutex_lock(&eng->rate_lock);
	taken = ctl_bucket_take(ctl_origins_bucket(&eng->origins, who), per_s,
				burst_s * per_s,
				client_clock_now_ns(eng->clock), wait_ns);
	pthread_mutex_unlock(&eng->rate_lock);
	return taken;
}

static void run(struct eng *eng, struct ctl_call *call)
{
	bool may = may_call(eng, call);
	uint64_t wait_ns = 0;
	int err;

	if (!take_rate(eng, call, may, &wait_ns)) {
		ctl_reply_too_many(call->reply, call->request->origin, wait_ns);
		return;
	}
	if (!may) {
		ctl_reply_error(call->reply, -EACCES,
				"this needs the engine's token: the file "
				"engine-token in its runtime directory");
		call->reply->status = 401;
		return;
	}
	err = ctl_body_parse(call->request->body, call->request->body_bytes,
			     &call->body);
	if (!err)
		err = ctl_body_check(call, members, ARRAY_LEN(members));
	if (err) {
		ctl_reply_last_error(call->reply, err);
		json_decref(call->body);
		return;
	}
	eng_enter(eng);
	call->route->run(eng, call);
	eng_leave(eng);
	json_decref(call->body);
}

/* The number of a session is the right to end it, so paths are not written as
 * they came. */
static void audit(struct eng *eng, const struct ctl_call *call)
{
	struct ctl_audit_event e = {
		.who = call->reply->status == 401 ? "" : "client",
		.path = call->route ? call->route->pattern : NULL,
		.is_quiet = call->route && call->route->run == handle_heartbeat,
	};

	if (eng->audit)
		ctl_audit_note(eng->audit, call->request, &e,
			       call->reply->status,
			       client_clock_now_ns(eng->clock));
}

void eng_handle(void *ctx, const struct ctl_request *request,
		struct ctl_reply *reply)
{
	struct ctl_call call = {.request = request, .reply = reply};
	int err;

	error_clear();
	err = ctl_route_find(routes, ARRAY_LEN(routes), request->method,
			     request->path, &call);
	if (err)
		ctl_reply_last_error(reply, err);
	else
		run(ctx, &call);
	audit(ctx, &call);
	log_debug("engine", "%s %.100s: %u", ctl_method_name(request->method),
		  request->path, reply->status);
}
