/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All states that can be reached, breadth first. Every state is kept whole (not
 * only a hash of it), so nothing is missed. Afterwards each state must be able
 * to become quiet by progress alone: deliveries, executions, the notice of a
 * death. That is what "nothing waits for ever" means here.
 */
#ifndef AQ_MODEL_MIND_SEARCH_H
#define AQ_MODEL_MIND_SEARCH_H

#include "mind_world.h"

enum mind_verdict {
	MIND_HOLDS,
	MIND_BROKEN, /* a promise */
	MIND_STUCK,  /* a state that cannot become quiet */
	MIND_LIMIT,  /* more states than were allowed; none of them is wrong */
};

struct mind_result {
	enum mind_verdict verdict;
	const char *wrong; /* what, or NULL */
	uint64_t states;   /* with symmetric ones folded */
	uint64_t transitions;
	uint32_t depth;		   /* of the deepest one */
	uint32_t trace_length;	   /* of the way to what is wrong */
	struct mind_packed *trace; /* the states of that way, and one more */
};

/* -ENOMEM. `strict`: as mind_judge. The result is released by the caller. */
int mind_search(const struct mind_config *config, uint64_t states_max,
		bool strict, struct mind_result *res) MUST_CHECK;
void mind_result_release(struct mind_result *res);

/* The event that leads from `w` to a state that is packed like that; `w` then
 * is that state. False: there is none. */
bool mind_follow(struct mind_world *w, const struct mind_packed *to,
		 struct mind_event *event);

#endif
