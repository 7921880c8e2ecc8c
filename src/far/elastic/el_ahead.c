/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for blocks that will be needed soon, beside whoever fills those that
 * there are: a question to the controller takes as long as some ten appends. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread.h"
#include "el_priv.h"

static void *run(void *arg)
{
	struct el_ahead *a = arg;

	a->err = el_map_grow(a->rack, a->path, a->after, a->most,
			     el_now_ns() + EL_AHEAD_MS * 1000000ull, &a->map);
	/* ELAHEAD-1: who sees that it is over sees the map. */
	atomic_store_explicit(&a->is_over, true, memory_order_release);
	return NULL;
}

void el_ahead_ask(struct el_object *o, uint64_t after, unsigned most)
{
	struct el_ahead *a = &o->ahead;

	if (a->is_asked)
		return;
	a->rack = o->rack;
	a->path = o->path;
	a->after = after;
	a->most = most;
	a->map = NULL;
	a->by = getpid();
	/* Relaxed: the thread is not there yet. */
	atomic_store_explicit(&a->is_over, false, memory_order_relaxed);
	a->is_asked = thread_start(&a->thread, run, a) == 0;
}

/* What a thread of the parent does is not heard in a child of fork. */
static void end(struct el_ahead *a)
{
	if (a->by == getpid())
		(void)pthread_join(a->thread, NULL);
	else
		a->err = -ECHILD;
	a->is_asked = false;
}

void el_ahead_take(struct el_object *o, bool waits)
{
	struct el_ahead *a = &o->ahead;

	/* ELAHEAD-1, with run. */
	if (!a->is_asked ||
	    (!waits &&
	     !atomic_load_explicit(&a->is_over, memory_order_acquire)))
		return;
	end(a);
	/* Whoever needs a block finds out why there is none. */
	if (!a->err && el_map_take_longer(o, a->map))
		error_clear();
	if (!a->err)
		json_decref(a->map);
	a->map = NULL;
}

void el_ahead_drop(struct el_object *o)
{
	struct el_ahead *a = &o->ahead;

	if (!a->is_asked)
		return;
	end(a);
	if (!a->err)
		json_decref(a->map);
	a->map = NULL;
}
