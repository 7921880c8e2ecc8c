/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: who works for a client, one after the other. An offload engine that
 * takes over must know that its predecessor's requests have no effect any more,
 * and which of them had one. Ending the queue pair gives the first, the packet
 * number that it expected next the second: a reliable connection executes
 * packets in order, each once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/lock.h"
#include "mem_priv.h"

static struct mem_session *find(struct mem_node *node,
				const struct mem_tenant *tenant, const char *id)
{
	struct list *at;

	for (at = node->sessions.next; at != &node->sessions; at = at->next) {
		struct mem_session *s =
			container_of(at, struct mem_session, node);

		if (s->tenant == tenant && strcmp(s->id, id) == 0)
			return s;
	}
	return NULL;
}

static void forget(struct mem_node *node, struct mem_session *s)
{
	list_remove(&s->node);
	node->session_count--;
	tenant_give(s->tenant, MEM_LIMIT_SESSIONS, 1);
	life_end(node, &s->life);
}

/* Who never had anything executed has nothing to take over: its place is for
 * somebody else soon. */
static uint64_t keep_ns(const struct mem_session *s)
{
	return (s->was_used ? MEM_SESSION_KEEP_S : MEM_SESSION_UNUSED_S) *
	       1000000000ull;
}

void session_expire(struct mem_node *node, const struct mem_tenant *tenant)
{
	uint64_t now_ns = env_now_ns(node->env);
	struct list *at, *next;

	for (at = node->sessions.next; at != &node->sessions; at = next) {
		struct mem_session *s =
			container_of(at, struct mem_session, node);

		next = at->next;
		if (!s->conn && (tenant ? s->tenant == tenant
					: now_ns - s->ended_ns > keep_ns(s)))
			forget(node, s);
	}
}

static int make(struct mem_node *node, struct mem_tenant *tenant,
		const char *id, struct mem_session **out)
{
	struct mem_session *s;
	int err;

	if (node->session_count == MEM_SESSION_MAX)
		return error_set(-EAGAIN, "this node has %d sessions at most",
				 MEM_SESSION_MAX);
	err = tenant_take(tenant, MEM_LIMIT_SESSIONS, 1);
	if (err)
		return err;
	s = calloc(1, sizeof(*s));
	if (!s) {
		tenant_give(tenant, MEM_LIMIT_SESSIONS, 1);
		return error_set(-ENOMEM, "no memory for a session");
	}
	s->tenant = tenant;
	memcpy(s->id, id, MEM_SESSION_CHARS + 1);
	s->ended_ns = env_now_ns(node->env);
	list_append(&node->sessions, &s->node);
	node->session_count++;
	*out = s;
	return 0;
}

int session_take(struct mem_node *node, struct mem_tenant *tenant,
		 const char *id, struct mem_session **out)
{
	struct mem_session *s;

	lock_assert_mutex_held(&node->lock);
	if (strlen(id) != MEM_SESSION_CHARS ||
	    strspn(id, "0123456789abcdef") != MEM_SESSION_CHARS)
		return error_set(-EINVAL, "\"session\" has %d hex digits",
				 MEM_SESSION_CHARS);
	s = find(node, tenant, id);
	if (!s)
		return make(node, tenant, id, out);
	if (s->conn)
		conn_end(node, s->conn, MEM_END_FENCED);
	*out = s;
	return 0;
}

/*
 * A client that had no answer tries again, and then asks about a connection
 * before the one that it never heard of. Those have done nothing, and are
 * forgotten first.
 */
static struct mem_final *final_place(struct mem_session *s)
{
	unsigned i = 0;

	if (s->final_count < MEM_FINALS)
		return &s->final[s->final_count++];
	while (i < MEM_FINALS && s->final[i].was_used)
		i++;
	i = i == MEM_FINALS ? 0 : i;
	memmove(&s->final[i], &s->final[i + 1],
		(MEM_FINALS - 1 - i) * sizeof(s->final[0]));
	return &s->final[MEM_FINALS - 1];
}

void session_note_end(struct mem_node *node, struct mem_conn *c)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init;
	struct mem_session *s = c->session;
	struct mem_final *f;
	bool is_known;

	if (!s)
		return;
	/* In the error state nothing is executed, so the number is final. A
	 * queue pair that cannot be asked leaves its fate unknown. */
	is_known = ibv_modify_qp(c->qp, &attr, IBV_QP_STATE) == 0 &&
		   ibv_query_qp(c->qp, &attr, IBV_QP_RQ_PSN, &init) == 0;
	if (is_known) {
		f = final_place(s);
		*f = (struct mem_final){.psn = attr.rq_psn,
					.was_used =
						attr.rq_psn != c->client_psn};
		conn_id_format(c, f->conn);
	}
	/* Whose number cannot be known may have done anything. */
	s->was_used |= !is_known || attr.rq_psn != c->client_psn;
	s->ended_ns = env_now_ns(node->env);
	s->conn = NULL;
	c->session = NULL;
}
