/* SPDX-License-Identifier: Apache-2.0 */
/* A request's body, its budget, and its end. */
#include "exchange_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "listener_priv.h"
#include "plain_priv.h"

/* ---- the budget -----------------------------------------------------------
 */

static atomic_size_t *share_of(struct ctl_exchange *e)
{
	const struct caller_key *key = &e->caller->key;
	unsigned hash = key->is_user;

	for (unsigned i = 0; i < sizeof(key->bytes); i++)
		hash = hash * 31 + key->bytes[i];
	return &e->listener->budget.of[hash % BODY_SHARES];
}

/* Numbers only, which order nothing. */
static void give_back(struct ctl_exchange *e)
{
	atomic_fetch_sub_explicit(&e->listener->budget.all, e->charged,
				  memory_order_relaxed);
	atomic_fetch_sub_explicit(share_of(e), e->charged,
				  memory_order_relaxed);
	e->charged = 0;
}

static bool charge(struct ctl_exchange *e, size_t bytes)
{
	size_t all, share;

	all = atomic_fetch_add_explicit(&e->listener->budget.all, bytes,
					memory_order_relaxed);
	share = atomic_fetch_add_explicit(share_of(e), bytes,
					  memory_order_relaxed);
	e->charged += bytes;
	return all + bytes <= BODY_BUDGET && share + bytes <= BODY_BUDGET / 2;
}

/* ---- life ---------------------------------------------------------------- */

struct ctl_exchange *exchange_create(struct listener *listener,
				     struct MHD_Connection *connection,
				     struct caller *caller, size_t body_max)
{
	struct ctl_exchange *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->listener = listener;
	e->connection = connection;
	e->caller = caller;
	e->body_max = body_max;
	list_init(&e->link);
	return e;
}

void exchange_destroy(struct ctl_exchange *e)
{
	if (!e)
		return;
	give_back(e);
	ctl_reply_release(&e->reply);
	free(e->body);
	free(e->head);
	free(e);
}

static void drop_body(struct ctl_exchange *e)
{
	give_back(e);
	free(e->body);
	e->body = NULL;
	e->capacity = 0;
}

static bool grow(struct ctl_exchange *e, size_t want)
{
	size_t capacity = u64_min(u64_max(2 * want, 1024), e->body_max);
	char *more;

	if (capacity > BODY_SMALL && !charge(e, capacity - e->charged))
		return false;
	more = realloc(e->body, capacity);
	if (!more)
		return false;
	e->body = more;
	e->capacity = capacity;
	return true;
}

void exchange_take_body(struct ctl_exchange *e, const char *data, size_t len)
{
	size_t want = e->bytes + len;

	e->bytes = want;
	if (want > e->body_max) {
		drop_body(e);
		e->bytes = e->body_max + 1; /* sticks */
		return;
	}
	if (!e->is_starved && want > e->capacity && !grow(e, want)) {
		drop_body(e);
		e->is_starved = true;
	}
	if (!e->is_starved)
		memcpy(e->body + want - len, data, len);
}

void exchange_suspend(struct ctl_exchange *e)
{
	if (e->connection)
		MHD_suspend_connection(e->connection);
	/* Of a line nothing is read while it is served. */
}

void exchange_finish(struct ctl_exchange *e)
{
	if (e->line) {
		plain_finish(e);
		return;
	}
	callers_phase(&e->listener->callers, e->caller, CALLER_READS,
		      clock_mono_ns());
	e->has_reply = true;
	MHD_resume_connection(e->connection);
}
