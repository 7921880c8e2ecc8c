/* SPDX-License-Identifier: Apache-2.0 */
/* Who is told when, and what an answer means. */
#include "heartbeat_plan.h"
#include "base/plant.h"

#include <errno.h>
#include <string.h>

void heartbeat_plan_init(struct heartbeat_plan *p, uint32_t ids_max)
{
	memset(p, 0, sizeof(*p));
	p->ids_max = PLANTED(beats_in_turn) ? 1 : ids_max;
}

/* ---- requests ----------------------------------------------------------- */

static bool is_someone_busy(const struct heartbeat_plan *p)
{
	for (unsigned i = 0; i < HEARTBEAT_TARGETS; i++)
		if (p->target[i].is_busy || p->target[i].is_due)
			return true;
	return false;
}

/* The bonds that did not fit go at once, unless the target does not answer. */
static bool is_time(const struct heartbeat_pace *t, uint64_t now_ns)
{
	return now_ns >= t->next_ns || (t->has_more && !t->has_failed);
}

/* Whether this target's request takes bonds in this look. */
static bool is_open(const struct heartbeat_plan *p, struct heartbeat_pace *t,
		    uint32_t heartbeat_ms, uint64_t now_ns)
{
	if (t->is_due)
		return true;
	if (t->is_busy || !is_time(t, now_ns) ||
	    (PLANTED(beats_in_turn) && is_someone_busy(p)))
		return false;
	t->is_due = true;
	t->heartbeat_ms = heartbeat_ms;
	t->named = 0;
	if (!t->has_more)
		t->cycle++;
	t->has_more = false;
	return true;
}

void heartbeat_plan_look(struct heartbeat_plan *p, struct list *bonds,
			 uint32_t heartbeat_ms, uint64_t now_ns,
			 heartbeat_name_fn name, void *ctx)
{
	struct list *l;

	for (unsigned i = 0; i < HEARTBEAT_TARGETS; i++)
		p->target[i].is_used = false;
	for (l = bonds->next; l != bonds; l = l->next) {
		struct client_bond *bond =
			container_of(l, struct client_bond, link);
		struct heartbeat_pace *t = &p->target[bond->node];

		t->is_used = true;
		if (!is_open(p, t, heartbeat_ms, now_ns) ||
		    bond->cycle == t->cycle)
			continue;
		if (t->named == p->ids_max) {
			t->has_more = true;
		} else if (name(ctx, bond->node, bond)) {
			bond->cycle = t->cycle;
			t->named++;
		}
	}
	/* Nothing to say: those that did not fit have gone since, or there is
	 * no memory for their names. */
	for (unsigned i = 0; i < HEARTBEAT_TARGETS; i++)
		if (p->target[i].is_due && !p->target[i].named)
			heartbeat_plan_fail(p, i, now_ns);
}

bool heartbeat_plan_is_due(const struct heartbeat_plan *p, uint32_t index)
{
	return p->target[index].is_due;
}

void heartbeat_plan_start(struct heartbeat_plan *p, uint32_t index,
			  uint64_t now_ns)
{
	struct heartbeat_pace *t = &p->target[index];

	t->is_due = false;
	t->is_busy = true;
	t->start_ns = now_ns;
}

void heartbeat_plan_fail(struct heartbeat_plan *p, uint32_t index,
			 uint64_t now_ns)
{
	struct heartbeat_pace *t = &p->target[index];

	t->is_due = false;
	t->is_busy = false;
	t->has_failed = true;
	t->next_ns = u64_max(t->next_ns, now_ns + CLIENT_KEEP_MS * 1000000ull);
}

uint64_t heartbeat_plan_wait_ns(const struct heartbeat_plan *p,
				uint32_t heartbeat_ms, uint64_t now_ns)
{
	uint64_t left_ns = heartbeat_ms * 1000000ull;

	if (PLANTED(beats_in_turn) && is_someone_busy(p))
		return left_ns;
	for (unsigned i = 0; i < HEARTBEAT_TARGETS; i++) {
		const struct heartbeat_pace *t = &p->target[i];

		if (!t->is_used || t->is_busy)
			continue;
		left_ns = is_time(t, now_ns)
				  ? 0
				  : u64_min(left_ns, t->next_ns - now_ns);
	}
	return left_ns;
}

/* ---- answers ------------------------------------------------------------ */

/* Whether it is certain that nobody there knows us. A node that is only slow is
 * not lost: its silence has a deadline of its own in every operation. */
static bool are_all_lost(uint32_t index, int err, bool may_live,
			 uint64_t took_ns)
{
	if (!err)
		return false;
	if (err == -ENOENT || err == -ESTALE || err == -EACCES)
		return true;
	return index < CLIENT_NODE_MAX && err == -EHOSTDOWN && !may_live &&
	       took_ns < CLIENT_HEARTBEAT_TIMEOUT_MS * 1000000ull / 2;
}

enum heartbeat_loss heartbeat_plan_end(struct heartbeat_plan *p, uint32_t index,
				       int err, bool may_live, uint64_t now_ns)
{
	struct heartbeat_pace *t = &p->target[index];

	t->is_busy = false;
	/* Those that did not fit are next: one that is slow hears of all of
	 * them, sooner or later, and not of the first again and again. */
	t->has_failed = err && !PLANTED(beats_in_turn);
	/* A little sooner than it has to be: threads are late at times. */
	t->next_ns = t->start_ns + t->heartbeat_ms * 900000ull;
	if (are_all_lost(index, err, may_live, now_ns - t->start_ns))
		return HEARTBEAT_LOSS_ALL;
	if (!err)
		return HEARTBEAT_LOSS_SOME;
	/* Of engines there are others. */
	return index >= CLIENT_NODE_MAX ? HEARTBEAT_LOSS_SILENT
					: HEARTBEAT_LOSS_NONE;
}

void heartbeat_plan_hear(const struct heartbeat_plan *p, uint32_t index,
			 struct list *bonds, bool is_silent)
{
	for (struct list *l = bonds->next; l != bonds; l = l->next) {
		struct client_bond *bond =
			container_of(l, struct client_bond, link);

		if (bond->node != index ||
		    bond->cycle != p->target[index].cycle)
			continue;
		/* L2, pairs with L3. */
		if (bond->is_patient)
			atomic_store_explicit(&bond->is_silent, is_silent,
					      memory_order_relaxed);
		else if (is_silent)
			/* L2, pairs with L3. */
			atomic_store_explicit(&bond->is_lost, true,
					      memory_order_relaxed);
	}
}

void heartbeat_plan_lose(const struct heartbeat_plan *p, uint32_t index,
			 struct list *bonds, heartbeat_is_named_fn is_named,
			 void *ctx)
{
	struct list *l;

	for (l = bonds->next; l != bonds; l = l->next) {
		struct client_bond *bond =
			container_of(l, struct client_bond, link);

		/* L2, pairs with L3. */
		if (bond->node == index &&
		    bond->cycle == p->target[index].cycle &&
		    (!is_named || is_named(ctx, bond->id)))
			atomic_store_explicit(&bond->is_lost, true,
					      memory_order_relaxed);
	}
}
