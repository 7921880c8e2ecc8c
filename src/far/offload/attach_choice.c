/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which engine a context attaches to. One that serves it already keeps it; else
 * the engines say how many application threads they have, and it goes to the
 * one that has the fewest. Engines are told apart by kind: those that are like
 * the first of the rack share the work, and the others, a process beside
 * engines in a switch or the other way round, are there for when they fail.
 */
#include <string.h>
#include <unistd.h>

#include "async_priv.h"
#include "base/error.h"
#include "base/log.h"

enum rank {
	RANK_SERVES, /* it had the context before */
	RANK_FREE,
	RANK_OTHER_KIND,
	RANK_FULL,
	RANK_SILENT, /* it may only be slow */
};

struct candidate {
	enum rank rank;
	bool is_switch;
	uint64_t sessions;
	unsigned turn; /* among equals */
};

static struct candidate ask(const struct client_caller *caller,
			    const struct client_node *engine, uint32_t ask_ms)
{
	struct candidate c = {.rank = RANK_SILENT};
	struct client_caller own = *caller;
	const json_t *sessions, *most;
	json_t *reply = NULL;
	int err;

	/* Engines do not see the application's, and need none for this. */
	own.token = NULL;
	err = client_call(&own, engine, "GET", "/v1/status", NULL, ask_ms,
			  CLIENT_REPLY_MAX, &reply);
	sessions = json_object_get(reply, "sessions");
	most = json_object_get(reply, "sessions_max");
	if (err) {
		log_debug("offload", "engine %s: %s", engine->name,
			  error_last());
	} else if (json_is_integer(sessions) &&
		   json_integer_value(sessions) >= 0) {
		c.sessions = (uint64_t)json_integer_value(sessions);
		c.is_switch = json_is_string(json_object_get(reply, "switch"));
		c.rank = json_is_integer(most) &&
					 json_integer_value(sessions) >=
						 json_integer_value(most)
				 ? RANK_FULL
				 : RANK_FREE;
	}
	json_decref(reply);
	return c;
}

static bool is_before(const struct candidate *x, const struct candidate *y)
{
	if (x->rank != y->rank)
		return x->rank < y->rank;
	if (x->sessions != y->sessions)
		return x->sessions < y->sessions;
	return x->turn < y->turn;
}

static void ask_all(const struct aq_async *a,
		    const struct client_caller *caller,
		    const struct client_node *engines, unsigned count,
		    uint32_t ask_ms, struct candidate c[CLIENT_NODE_MAX])
{
	/* Not the same for all that come at the same time. */
	unsigned first =
		(unsigned)((uintptr_t)a->memory / 4096) + (unsigned)getpid();
	int kind = -1;

	for (unsigned i = 0; i < count; i++) {
		c[i] = ask(caller, &engines[i], ask_ms);
		c[i].turn = (first + i) % count;
		if (c[i].rank == RANK_SILENT)
			continue;
		if (kind < 0)
			kind = c[i].is_switch;
		if (!strcmp(engines[i].name, a->served_by))
			c[i].rank = RANK_SERVES;
		else if (c[i].rank == RANK_FREE && c[i].is_switch != kind)
			c[i].rank = RANK_OTHER_KIND;
	}
}

unsigned offload_async_choose(const struct aq_async *a,
			      const struct client_caller *caller,
			      const struct client_node *engines, unsigned count,
			      uint32_t ask_ms, unsigned order[CLIENT_NODE_MAX])
{
	struct candidate c[CLIENT_NODE_MAX];
	unsigned n = 0;

	if (a->engine_name[0]) {
		for (unsigned i = 0; i < count; i++)
			if (!strcmp(a->engine_name, engines[i].name))
				order[n++] = i;
		return n;
	}
	if (count > 1)
		ask_all(a, caller, engines, count, ask_ms, c);
	for (unsigned i = 0; i < count; i++) {
		unsigned at = n++;

		for (; at > 0 && is_before(&c[i], &c[order[at - 1]]); at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	return n;
}
