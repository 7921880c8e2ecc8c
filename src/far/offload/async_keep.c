/* SPDX-License-Identifier: Apache-2.0 */
/* Looks after a context: notices that the engine or a node is lost, which the
 * rack's heartbeat finds out, and attaches anew. */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <string.h>

#include "async_priv.h"
#include "base/error.h"
#include "base/log.h"

/* 0, or the engine's own word that it has stopped serving us. */
static uint32_t state_err(const struct aq_async *a)
{
	struct offload_preamble *p = a->memory;
	struct offload_state state;
	uint64_t word;

	/* RED-1: the engine WRITEs it whole, after what it speaks of. */
	word = atomic_load_explicit((_Atomic uint64_t *)(void *)&p->state,
				    memory_order_acquire);
	memcpy(&state, &word, sizeof(state));
	return state.epoch == a->epoch ? state.err : 0;
}

/* Whether someone has forgotten us, or the engine does not answer. A memory
 * node that is only slow is not lost: the engine would notice. */
static bool is_forgotten(const struct aq_async *a)
{
	if (client_bond_is_lost(&a->bond))
		return true;
	for (uint32_t i = 0; i < a->node_count; i++) {
		const struct async_node *n = &a->node[i];

		for (unsigned k = 0; k < OFFLOAD_KINDS && !n->err; k++)
			if (client_bond_is_lost(&n->bond[k]))
				return true;
	}
	return false;
}

static uint64_t word_at(const void *p)
{
	/* Nothing hangs on it. */
	return atomic_load_explicit((const _Atomic uint64_t *)p,
				    memory_order_relaxed);
}

/*
 * An engine in a switch that does not answer is one whose control process hangs
 * or is gone, and the switch serves on; or the switch is gone as well, and no
 * request ends. Each ends or fails while somebody serves: nodes that do not
 * answer are given up before.
 */
static bool is_stuck(struct aq_async *a)
{
	const struct offload_preamble *p = a->memory;
	uint64_t now_ns = client_keep_now_ns(a->rack);
	uint64_t done = word_at(&p->red.done);
	uint64_t word = word_at(&p->green);
	struct offload_green green;

	memcpy(&green, &word, sizeof(green));
	if (!client_bond_is_silent(&a->bond) ||
	    green.tail == (uint32_t)word_at(&p->red.head) ||
	    done != a->seen_done || a->stuck_ns == 0) {
		a->seen_done = done;
		a->stuck_ns = now_ns;
	}
	return now_ns - a->stuck_ns >
	       async_share_ms(a, ASYNC_ENGINE_SHARE) * 1000000ull;
}

static bool is_healthy(struct aq_async *a)
{
	uint32_t err = state_err(a);

	if (err) {
		log_info("offload", "the engine has stopped serving: %s",
			 error_text((int)err));
		return false;
	}
	return aqdv_peer_gone(a->end.qp) != 1 && !is_forgotten(a) &&
	       !is_stuck(a);
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
	if (now_ns - a->lost_ns >
	    async_share_ms(a, ASYNC_PATIENCE_SHARE) * 1000000ull)
		atomic_store_explicit(&a->lost,
				      err == -EACCES ? -EACCES : -EHOSTDOWN,
				      memory_order_relaxed);
}

void offload_async_tick(struct client_keepalive *k,
			const struct client_caller *caller)
{
	struct aq_async *a = container_of(k, struct aq_async, keepalive);
	uint64_t now_ns;

	/* Whoever holds it is attaching or ending the context. */
	if (pthread_mutex_trylock(&a->lock))
		return;
	now_ns = client_keep_now_ns(a->rack);
	if (!a->is_attached || !is_healthy(a))
		attach_again(a, caller);
	else if (has_lost_node(a) && now_ns > a->retry_ns)
		attach_again(a, caller);
	pthread_mutex_unlock(&a->lock);
}
