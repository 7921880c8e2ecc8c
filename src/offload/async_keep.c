/* SPDX-License-Identifier: Apache-2.0 */
/* Looks after a context on the rack's thread: notices that the engine or a node
 * is lost, and attaches anew. */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "async_priv.h"
#include "error.h"
#include "log.h"

/* 0, or the engine's own word that it has stopped serving us. */
static uint32_t state_err(const struct aq_async *a)
{
	struct offload_preamble *p = a->memory;
	struct offload_state state;
	uint64_t word;

	/* The engine writes it whole. */
	word = atomic_load_explicit((_Atomic uint64_t *)(void *)&p->state,
				    memory_order_acquire);
	memcpy(&state, &word, sizeof(state));
	return state.epoch == a->epoch ? state.err : 0;
}

static int beat(const struct client_caller *caller,
		const struct client_node *node, const char *kind,
		const char *id, uint32_t within_ms)
{
	char path[CLIENT_PATH_MAX];
	json_t *reply = NULL;
	int err;

	snprintf(path, sizeof(path), "/v1/%s/%s/heartbeat", kind, id);
	err = client_call(caller, node, "POST", path, NULL, within_ms,
			  CLIENT_REPLY_MAX, &reply);
	json_decref(reply);
	return err;
}

/* Whether someone has forgotten us, or the engine cannot be reached. */
static bool beats_fail(struct aq_async *a, const struct client_caller *caller)
{
	/* Not long enough to keep us from hearing what the engine says of it.
	 */
	uint32_t node_ms = u32_min(ASYNC_BEAT_TIMEOUT_MS,
				   async_share_ms(a, ASYNC_ATTACH_SHARE));
	struct client_caller own = *caller;
	int err;

	own.token = a->engine_token;
	err = beat(&own, &a->now.engine, "sessions", a->now.id,
		   ASYNC_BEAT_TIMEOUT_MS);
	if (err)
		return true;
	for (uint32_t i = 0; i < a->node_count; i++) {
		struct async_node *n = &a->node[i];

		for (unsigned k = 0; k < OFFLOAD_KINDS && !n->err; k++) {
			err = beat(caller,
				   client_keep_node(a->rack, n->rack_node),
				   "connections", n->conn[k], node_ms);
			/* A node that is only slow is not lost: the engine
			 * would notice. */
			if (err == -ENOENT || err == -ESTALE || err == -EACCES)
				return true;
			if (err) /* nor would it answer the second question */
				break;
		}
	}
	return false;
}

static bool is_healthy(struct aq_async *a, const struct client_caller *caller,
		       uint64_t now_ns)
{
	uint32_t err = state_err(a);

	if (err) {
		log_info("offload", "the engine has stopped serving: %s",
			 error_text((int)err));
		return false;
	}
	if (aqdv_peer_gone(a->end.qp) == 1)
		return false;
	if (now_ns < a->beat_ns)
		return true;
	a->beat_ns = now_ns + ASYNC_BEAT_MS * 1000000ull;
	return !beats_fail(a, caller);
}

static bool has_lost_node(const struct aq_async *a)
{
	for (uint32_t i = 0; i < a->node_count; i++)
		if (a->node[i].err)
			return true;
	return false;
}

static void attach_again(struct aq_async *a, const struct client_caller *caller)
{
	uint32_t ms =
		u32_min(ASYNC_ATTACH_MS, async_share_ms(a, ASYNC_ATTACH_SHARE));
	/* Heartbeats without an answer took their time. */
	uint64_t now_ns = client_keep_now_ns(a->rack);
	int err = offload_async_attach(a, caller, now_ns + ms * 1000000ull);

	now_ns = client_keep_now_ns(a->rack);
	a->retry_ns = now_ns + ASYNC_RETRY_MS * 1000000ull;
	if (!err) {
		a->lost_ns = 0;
		/* E0, pairs with E1. */
		atomic_store_explicit(&a->lost, 0, memory_order_relaxed);
		return;
	}
	if (a->lost_ns == 0) {
		a->lost_ns = now_ns;
		log_info("offload", "no engine: %s", error_last());
	}
	if (now_ns - a->lost_ns > ASYNC_PATIENCE_MS * 1000000ull)
		atomic_store_explicit(&a->lost,
				      err == -EACCES ? -EACCES : -EHOSTDOWN,
				      memory_order_relaxed);
}

void offload_async_tick(struct client_keeper *k,
			const struct client_caller *caller)
{
	struct aq_async *a = container_of(k, struct aq_async, keeper);
	uint64_t now_ns;

	/* Whoever holds it is attaching or ending the context. */
	if (pthread_mutex_trylock(&a->lock))
		return;
	now_ns = client_keep_now_ns(a->rack);
	if (!a->is_attached || !is_healthy(a, caller, now_ns))
		attach_again(a, caller);
	else if (has_lost_node(a) && now_ns > a->retry_ns)
		attach_again(a, caller);
	pthread_mutex_unlock(&a->lock);
}
