/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaching rings to an engine. The application is in the middle, because only
 * it may speak for itself at the memory nodes: the engine makes queue pairs,
 * the application has the nodes connect them and hands the keys over. The
 * engine never sees the application's token, and what it was given ends with
 * it.
 *
 * The order is that of engine.h: first the old engine loses the rings and the
 * nodes, then the new one begins.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async_priv.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/log.h"
#include "pair/pair.h"

enum {
	RD_ATOMIC = 128, /* where the devices can */
};

static uint32_t left_ms(const struct aq_async *a, uint64_t deadline_ns)
{
	uint64_t now = client_keep_now_ns(a->rack);

	return deadline_ns <= now
		       ? 1
		       : (uint32_t)((deadline_ns - now) / 1000000 + 1);
}

/* One of so many that are asked in turn: if it hangs, the others must have time
 * left, or they would be taken for lost, too. */
static uint64_t share_ns(const struct aq_async *a, uint64_t deadline_ns,
			 uint32_t parts)
{
	uint64_t now = client_keep_now_ns(a->rack);

	return deadline_ns <= now ? deadline_ns
				  : now + (deadline_ns - now) / parts;
}

static uint32_t ask_ms(const struct aq_async *a, uint64_t deadline_ns,
		       unsigned count)
{
	uint32_t all_ms = left_ms(a, deadline_ns) / ASYNC_ASK_SHARE;

	return u32_max(1, u32_min(ASYNC_ASK_MS, all_ms / u32_max(count, 1)));
}

static int ask_engine(struct aq_async *a, const struct client_caller *caller,
		      const char *method, const char *path, json_t *body,
		      uint64_t deadline_ns, json_t **reply)
{
	struct client_caller own = *caller;

	own.token = a->engine_token;
	return client_call(&own, &a->now.engine, method, path, body,
			   left_ms(a, deadline_ns), CLIENT_REPLY_MAX, reply);
}

/* ---- the application's queue pair --------------------------------------- */

static void end_qp(struct aq_async *a, struct async_qp *q)
{
	if (q->qp)
		(void)a->device.verbs->destroy_qp(q->qp);
	q->qp = NULL;
}

void offload_async_fence(struct aq_async *a)
{
	struct offload_preamble *p = a->memory;

	end_qp(a, &a->end);
	a->is_attached = false;
	/* Nobody else writes it now. */
	memset(&p->state, 0, sizeof(p->state));
}

static int make_qp(struct aq_async *a, struct async_qp *q)
{
	struct ibv_qp_init_attr attr = {.send_cq = a->cq,
					.recv_cq = a->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1,
						.max_recv_wr = 1,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	int err;

	q->qp = a->device.verbs->create_qp(a->device.pd, &attr);
	if (!q->qp)
		return error_set(-ENOMEM, "the NIC has no queue pair left");
	err = pair_psn(&q->psn);
	if (err)
		return error_set(err, "the kernel gives no random numbers");
	err = pair_init(a->device.verbs->modify_qp, q->qp,
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	return err ? error_set(err, "the queue pair cannot be set up") : 0;
}

static int start_qp(struct aq_async *a, struct async_qp *q,
		    const struct async_end *far)
{
	/* It never sends. Without a timer the NIC remembers when the engine's
	 * process is gone. */
	struct pair_end end = {
		.gid_index = (uint8_t)a->device.verbs->gid_index,
		.qpn = (uint32_t)far->qpn,
		.psn = (uint32_t)far->psn,
		.own_psn = q->psn,
		.mtu = pair_mtu(far->mtu),
		.reads_in = (uint8_t)u64_min(far->rd_atomic, RD_ATOMIC),
		.reads_out = 1,
		.rnr_timer = PAIR_RNR_TIMER,
	};
	int err =
		hex_read(far->gid, end.gid.raw, sizeof(end.gid.raw))
			? pair_connect(a->device.verbs->modify_qp, q->qp, &end)
			: -EPROTO;

	return err ? error_set(err, "the queue pair cannot be connected") : 0;
}

/* ---- the engine --------------------------------------------------------- */

static int own_gid(const struct aq_async *a, char text[33])
{
	union ibv_gid gid;

	if (a->device.verbs->query_gid(a->device.context, PAIR_PORT,
				       a->device.verbs->gid_index, &gid))
		return error_set(-ENODEV, "the NIC has no RoCEv2 address");
	hex_write(text, gid.raw, sizeof(gid.raw));
	return 0;
}

static int open_session(struct aq_async *a, const struct client_caller *caller,
			uint64_t deadline_ns, json_t **reply)
{
	char gid[33], who[32];
	json_t *body;
	int err = own_gid(a, gid);

	if (err)
		return err;
	snprintf(who, sizeof(who), "%.31s", program_invocation_short_name);
	body = json_pack(
		"{s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:{s:I, s:I, "
		"s:I}, s:i, s:I, s:I, s:I, s:I}",
		"proto", "1.0", "client", who, "gid", gid, "qpn",
		(json_int_t)a->end.qp->qp_num, "psn", (json_int_t)a->end.psn,
		"mtu", client_verbs_mtu(a->device.verbs, a->device.context),
		"rd_atomic", RD_ATOMIC, "ring", "addr",
		(json_int_t)(uintptr_t)a->memory, "size",
		(json_int_t)a->memory_bytes, "rkey", (json_int_t)a->mr->rkey,
		"nodes", (int)a->node_count, "epoch", (json_int_t)a->epoch,
		"batch", (json_int_t)a->batch, "flush_us",
		(json_int_t)a->flush_us, "node_timeout_ms",
		(json_int_t)async_share_ms(a, ASYNC_ENGINE_SHARE));
	client_auth_offer(a->device.verbs, body);
	return ask_engine(a, caller, "POST", "/v1/sessions", body, deadline_ns,
			  reply);
}

static json_t *region_row(const struct async_region *r)
{
	const struct client_map *m = &r->shape.map;
	json_t *pieces = json_array();

	for (uint32_t i = 0; i < m->piece_count; i++)
		(void)json_array_append_new(
			pieces,
			json_pack("{s:i, s:I, s:I, s:I, s:I}", "node",
				  (int)r->piece[i].node, "addr",
				  (json_int_t)r->piece[i].addr, "size",
				  (json_int_t)m->piece[i].size_bytes,
				  "read_rkey",
				  (json_int_t)r->piece[i].rkey[OFFLOAD_RD],
				  "write_rkey",
				  (json_int_t)r->piece[i].rkey[OFFLOAD_WR]));
	return json_pack("{s:i, s:I, s:i, s:b, s:o}", "err", -r->err, "size",
			 (json_int_t)m->size_bytes, "stripe_shift",
			 (int)m->stripe_shift, "read_only",
			 (int)r->shape.is_read_only, "pieces", pieces);
}

static int start_session(struct aq_async *a, const struct client_caller *caller,
			 json_t *nodes, uint64_t deadline_ns)
{
	json_t *regions = json_array(), *reply = NULL;
	char path[CLIENT_PATH_MAX];
	int err;

	for (uint32_t i = 0; i < a->region_count; i++)
		(void)json_array_append_new(regions, region_row(a->region[i]));
	snprintf(path, sizeof(path), "/v1/sessions/%s/start", a->now.id);
	err = ask_engine(
		a, caller, "POST", path,
		json_pack("{s:O, s:o}", "nodes", nodes, "regions", regions),
		deadline_ns, &reply);
	json_decref(reply);
	return err;
}

/* What the rings may be told about each region from here on. */
static void set_bounds(struct aq_async *a)
{
	for (uint32_t i = 0; i < a->region_count; i++) {
		struct async_region *r = a->region[i];

		r->shape.map.size_bytes = client_map_size(&r->shape.map);
		offload_ring_bound(&a->ring, i, r->shape.map.size_bytes,
				   r->err);
	}
}

/* Not before the engine's answer to the start, which may take its time, but
 * now: it has less patience than we have. */
static int start_heartbeat(struct aq_async *a)
{
	atomic_store_explicit(&a->bond.is_lost, false, memory_order_relaxed);
	atomic_store_explicit(&a->bond.is_silent, false, memory_order_relaxed);
	a->bond.is_patient = a->now.in_switch;
	a->stuck_ns = 0;
	memcpy(a->bond.id, a->now.id, sizeof(a->bond.id));
	return client_bond_add_engine(a->rack, &a->bond, &a->now.engine,
				      a->engine_token, ASYNC_HEARTBEAT_MS);
}

static int attach_to(struct aq_async *a, const struct client_caller *caller,
		     uint64_t deadline_ns)
{
	json_t *reply = NULL, *rows = NULL;
	struct client_auth auth = {0};
	struct async_end far;
	int err = make_qp(a, &a->end);

	if (!err)
		err = open_session(a, caller, deadline_ns, &reply);
	if (!err)
		err = client_json_word(reply, "session", a->now.id,
				       sizeof(a->now.id));
	if (!err)
		err = offload_async_end_parse(reply, &far);
	if (!err)
		err = client_auth_parse(a->rack, reply, "engine", &auth);
	if (!err) {
		a->now.in_switch =
			json_is_true(json_object_get(reply, "in_switch"));
		err = start_heartbeat(a);
	}
	if (!err)
		err = client_auth_use(a->device.verbs, a->end.qp, &auth);
	if (!err)
		err = start_qp(a, &a->end, &far);
	if (!err) {
		a->now.can_auth =
			json_is_true(json_object_get(reply, "can_auth"));
		rows = json_array();
		for (uint32_t i = 0; i < a->node_count && !err; i++) {
			json_t *row = json_object();

			err = offload_async_node_connect(
				a, i, caller, far.gid,
				json_array_get(json_object_get(reply, "nodes"),
					       i),
				share_ns(a, deadline_ns, a->node_count - i + 1),
				row);
			(void)json_array_append_new(rows, row);
		}
		if (!err) {
			set_bounds(a);
			err = start_session(a, caller, rows, deadline_ns);
		}
	}
	json_decref(rows);
	json_decref(reply);
	return err;
}

/* ---- all of it ---------------------------------------------------------- */

/* Whether the engine knows that this session is over. */
static bool tell_end(struct aq_async *a, const struct client_caller *caller,
		     const struct async_session *s, uint32_t within_ms)
{
	struct client_caller own = *caller;
	char path[CLIENT_PATH_MAX];
	json_t *reply = NULL;
	int err;

	own.token = a->engine_token;
	snprintf(path, sizeof(path), "/v1/sessions/%s", s->id);
	err = client_call(&own, &s->engine, "DELETE", path, NULL, within_ms,
			  CLIENT_REPLY_MAX, &reply);
	if (err)
		log_debug("offload", "an engine was not told: %s",
			  error_last());
	json_decref(reply);
	return !err || err == -ESTALE;
}

/* An engine that cannot be told now is told later, see end_left. Of several the
 * first: the others were never served. */
static void end_session(struct aq_async *a, const struct client_caller *caller,
			uint32_t within_ms)
{
	client_bond_remove(a->rack, &a->bond);
	if (a->now.id[0] && !tell_end(a, caller, &a->now, within_ms) &&
	    !a->left.id[0])
		a->left = a->now;
	a->now.id[0] = '\0';
}

/* An engine that was only slow runs by now, and asks rings that are gone. It
 * would take that for a fault. */
static void end_left(struct aq_async *a, const struct client_caller *caller,
		     uint32_t within_ms)
{
	if (a->left.id[0])
		(void)tell_end(a, caller, &a->left, within_ms);
	a->left.id[0] = '\0';
}

/* An engine that did not take us. Its words are kept: it may have forgotten the
 * session already, and say so. */
static void leave(struct aq_async *a, const struct client_caller *caller)
{
	char words[ERROR_TEXT_MAX];
	int err = error_last_code();

	snprintf(words, sizeof(words), "%s", error_last());
	end_session(a, caller, ASYNC_BYE_MS);
	offload_async_fence(a);
	(void)error_set(err, "%s", words);
}

int offload_async_attach(struct aq_async *a, const struct client_caller *caller,
			 uint64_t deadline_ns)
{
	struct client_node engines[CLIENT_NODE_MAX];
	unsigned order[CLIENT_NODE_MAX], count, tried;
	int err = 0;

	/* In this order: one that reads from a queue pair that is gone takes
	 * this for a fault. */
	end_session(a, caller, ASYNC_BYE_MS);
	offload_async_fence(a);
	count = client_keep_engines(a->rack, engines);
	client_keep_engine_token(a->rack, a->engine_token);
	tried = offload_async_choose(a, caller, engines, count,
				     ask_ms(a, deadline_ns, count), order);
	for (unsigned i = 0; i < tried; i++) {
		const struct client_node *e = &engines[order[i]];

		a->now.engine = *e;
		a->epoch++;
		err = attach_to(a, caller, share_ns(a, deadline_ns, tried - i));
		if (!err) {
			a->is_attached = true;
			memcpy(a->served_by, e->name, sizeof(a->served_by));
			end_left(a, caller, ASYNC_BYE_MS);
			return 0;
		}
		leave(a, caller);
	}
	/* Whoever had us before has no right to be the first any more. */
	a->served_by[0] = '\0';
	if (!tried && a->engine_name[0])
		return error_set(-ENOENT, "the rack has no engine %s",
				 a->engine_name);
	if (!tried)
		return error_set(-ENOENT, "the rack has no engine; `aquifer "
					  "up` or `aquifer engine` starts one");
	return err;
}

void offload_async_detach(struct aq_async *a,
			  const struct client_caller *caller)
{
	char path[CLIENT_PATH_MAX];
	json_t *reply;

	/* As above, with all the patience there is: nobody tells it later. */
	end_left(a, caller, ASYNC_BYE_MS);
	end_session(a, caller, aq_rack_deadline(a->rack));
	offload_async_fence(a);
	for (uint32_t i = 0; i < a->node_count; i++) {
		for (unsigned k = 0; k < OFFLOAD_KINDS; k++) {
			const struct client_bond *bond = &a->node[i].bond[k];

			if (a->node[i].err || !bond->id[0])
				continue;
			snprintf(path, sizeof(path), "/v1/connections/%s",
				 bond->id);
			reply = NULL;
			/* The node would find out by itself, but later. */
			(void)!client_call(
				caller,
				client_keep_node(a->rack, a->node[i].rack_node),
				"DELETE", path, NULL, ASYNC_NODE_BYE_MS,
				CLIENT_REPLY_MAX, &reply);
			json_decref(reply);
		}
	}
}
