/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the controller's process: on which thread they are handled, and
 * what their replies wait for. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cd_serve_priv.h"

enum {
	SURE_MS = 3000,	    /* that a change waits for the ledger */
	QUICK_NS = 2000000, /* that a thread of the server waits for the core */
	QUICK_BYTES = 4096, /* of a body */
};

/* There may be something to commit, and then an order for a node that waits; or
 * there is such an order already. */
static void wake(struct cd_server *s)
{
	unsigned waiting = cd_core_waiting(s->core);

	if (!waiting)
		cd_server_due(s);
	else if (waiting >= s->wanted)
		(void)pthread_cond_signal(&s->staged);
}

/* The ledger has had a transaction for longer than callers have patience. */
static bool is_stalled(const struct cd_server *s)
{
	return s->flight_ns &&
	       clock_mono_ns() - s->flight_ns > CD_STALL_MS * 1000000ull;
}

/* Nobody who asks next has to wait until the answers are written. */
void cd_server_settle(struct cd_server *s)
{
	struct ctl_server *http = s->http;
	struct cd_unsettleds settled;

	if (!http)
		return;
	cd_unsettled_take(&s->unsettled, s->core, is_stalled(s), &settled);
	if (!settled.first)
		return;
	pthread_mutex_unlock(&s->lock);
	cd_unsettled_send(&settled, s->core, http);
	pthread_mutex_lock(&s->lock);
}

/* Whoever only looks or renews has changed nothing, and no node waits for it.
 */
static bool is_news(const struct ctl_request *request)
{
	return request->method != CTL_GET && !cd_request_is_renewal(request);
}

/* For who cannot be answered later: on the caller's thread. */
static void settle(struct cd_server *s, uint64_t mark, struct ctl_reply *reply)
{
	enum cd_settled how;

	while ((how = cd_core_settled(s->core, mark)) == CD_PENDING &&
	       !is_stalled(s))
		cd_server_wait(s, &s->settled, CD_HOLD_MS);
	if (how != CD_COMMITTED)
		cd_core_excuse(s->core, how, reply);
}

/* The reply leaves when what it tells of is certain. */
static void answer(struct cd_server *s, const struct ctl_request *request,
		   const struct cd_held *held, struct ctl_reply *reply)
{
	uint64_t mark = cd_core_mark(s->core);
	struct ctl_audit_entry entry;

	if (!held->is_hint && (is_news(request) || cd_core_waiting(s->core)))
		wake(s);
	if (!held->is_hint && cd_core_settled(s->core, mark) != CD_COMMITTED) {
		if (cd_unsettled_hold(&s->unsettled, s->core, request, held,
				      reply))
			return;
		settle(s, mark, reply);
	}
	entry = cd_audit_entry(request, held, reply);
	cd_core_audit(s->core, &entry, 1);
}

static bool is_for_nodes(const struct ctl_request *request)
{
	return strncmp(request->path, "/v1/nodes", 9) == 0;
}

/* Nothing more is begun that nobody would wait for. */
static bool refuse(const struct cd_server *s, const struct ctl_request *request,
		   struct ctl_reply *reply)
{
	if (request->method == CTL_GET || is_for_nodes(request) ||
	    cd_request_is_renewal(request) || !is_stalled(s))
		return false;
	ctl_reply_error(
		reply, -EHOSTDOWN,
		"nothing was changed: the ledger has not answered for "
		"%u s",
		(unsigned)((clock_mono_ns() - s->flight_ns) / 1000000000));
	reply->status = 503;
	return true;
}

/* A leader whose ledger is silent is not asked for changes at once: etcd has
 * another leader of its own within two seconds. Nodes come again by themselves,
 * and would take all threads meanwhile. */
static void await_ledger(struct cd_server *s, const struct ctl_request *request)
{
	uint64_t end = clock_mono_ms() + SURE_MS;

	while (request->method != CTL_GET && !is_for_nodes(request) &&
	       !s->ends && cd_core_leads(s->core) &&
	       !cd_core_is_sure(s->core) && clock_mono_ms() < end)
		cd_server_wait(s, &s->settled, CD_TICK_MS);
}

void cd_server_handle(void *ctx, const struct ctl_request *request,
		      struct ctl_reply *reply)
{
	struct cd_server *s = ctx;
	struct cd_held held;

	pthread_mutex_lock(&s->lock);
	await_ledger(s, request);
	cd_core_wall(s->core, (uint64_t)time(NULL));
	if (refuse(s, request, reply)) {
		pthread_mutex_unlock(&s->lock);
		return;
	}
	cd_core_handle(s->core, request, reply, &held);
	if (held.is_held && cd_waits_hold(&s->waits, request, &held)) {
		wake(s);
	} else {
		if (held.is_held)
			cd_core_answer(s->core, &held, reply);
		answer(s, request, &held, reply);
	}
	pthread_mutex_unlock(&s->lock);
}

/* What programs ask for often, whose handlers do little and touch no file: they
 * wait for the ledger at most, and are held for that. */
static bool may_be_quick(const struct ctl_request *q)
{
	size_t len = strlen(q->path);

	if (cd_request_is_renewal(q))
		return true;
	if (q->body_bytes > QUICK_BYTES || !ctl_may_hold(q))
		return false;
	if (q->method == CTL_PATCH)
		return strncmp(q->path, "/v1/ns/", 7) == 0 ||
		       (strncmp(q->path, "/v1/tenants/", 12) == 0 &&
			(len < 6 || strcmp(q->path + len - 6, "/token") != 0));
	return q->method == CTL_POST &&
	       (strncmp(q->path, "/v1/ns/", 7) == 0 ||
		strncmp(q->path, "/v1/blocks/", 11) == 0);
}

/* On the thread that reads requests, so that no other one has to be woken.
 * Whoever has the lock for long (a plan of 10,000 tasks, all rows read anew)
 * must not hold up other connections. A renewal stages nothing, so where
 * nothing else is being committed it waits for nothing at all. */
bool cd_server_quick(void *ctx, const struct ctl_request *request,
		     struct ctl_reply *reply)
{
	struct cd_server *s = ctx;
	struct timespec until;
	struct cd_held held;
	bool is_quick;

	if (!may_be_quick(request))
		return false;
	until = clock_timespec(clock_mono_ns() + QUICK_NS);
	if (pthread_mutex_clocklock(&s->lock, CLOCK_MONOTONIC, &until) != 0)
		return false;
	is_quick = cd_core_is_sure(s->core) && !is_stalled(s) &&
		   (ctl_may_hold(request) || !cd_core_waiting(s->core));
	if (is_quick) {
		cd_core_wall(s->core, (uint64_t)time(NULL));
		cd_core_handle(s->core, request, reply, &held);
		answer(s, request, &held, reply);
	}
	pthread_mutex_unlock(&s->lock);
	return is_quick;
}

/* A node has hung up, or the server ends. */
void cd_server_gone(void *ctx, uint64_t id)
{
	struct cd_server *s = ctx;

	pthread_mutex_lock(&s->lock);
	if (cd_waits_gone(&s->waits, s->core, id))
		wake(s);
	pthread_mutex_unlock(&s->lock);
}
