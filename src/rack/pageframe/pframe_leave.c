/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page frames on their way back to the queue. An answer to a load is read from
 * its page frame until the client has acknowledged it, because one that is
 * lost, or that finds no receive, is sent again. So a page frame that was taken
 * out of the table waits for all answers that had begun by then, of whichever
 * guest of the space: only they can name it.
 *
 * Answers are counted in two phases. The page frames that leave wait for the
 * answers of the other phase, which become fewer only; those that come
 * meanwhile are the next to leave. So a client that never stops loading gives
 * back nevertheless, and one that takes no answers holds up nobody but its own
 * space.
 *
 * All under the lock of the space's server.
 */
#include <stdlib.h>

#include "base/plant.h"
#include "pframe_priv.h"

struct leaver {
	struct list node; /* of the space's `leaving` or `waiting` */
	uint64_t pframe;
	struct pframe_guest *guest; /* that is answered; NULL: it is gone */
	uint32_t slot;
};

static void finish(struct pframe_space *s, struct leaver *l)
{
	struct pframe_guest *guest = l->guest;
	uint32_t slot = l->slot;

	list_remove(&l->node);
	pframe_space_give(s, l->pframe);
	free(l);
	if (guest)
		pframe_guest_gone_back(guest, slot);
}

static void go_on(struct pframe_space *s)
{
	for (;;) {
		/* Whenever nothing leaves, the other phase is empty. */
		if (!list_is_empty(&s->leaving) && s->loads[!s->phase])
			return;
		while (!list_is_empty(&s->leaving))
			finish(s, container_of(s->leaving.next, struct leaver,
					       node));
		if (list_is_empty(&s->waiting))
			return;
		list_take(&s->waiting, &s->leaving);
		s->phase = !s->phase;
	}
}

unsigned pframe_load_begin(struct pframe_space *s)
{
	s->loads[s->phase]++;
	return s->phase;
}

void pframe_load_end(struct pframe_space *s, unsigned phase)
{
	s->loads[phase]--;
	go_on(s);
}

enum pframe_leave pframe_leave(struct pframe_space *s, uint64_t index,
			       struct pframe_guest *guest, uint32_t slot)
{
	struct leaver *l = NULL;
	uint64_t pframe;

	if ((s->loads[0] || s->loads[1]) && !PLANTED(leave_early)) {
		l = malloc(sizeof(*l));
		if (!l)
			return PFRAME_STAYS;
	}
	pframe = pframe_space_take(s, index);
	if (!pframe) {
		free(l);
		return PFRAME_NONE;
	}
	if (!l) {
		pframe_space_give(s, pframe);
		return PFRAME_LEFT;
	}
	*l = (struct leaver){.pframe = pframe, .guest = guest, .slot = slot};
	list_append(&s->waiting, &l->node);
	go_on(s);
	return PFRAME_LEAVES;
}

static void forget(struct list *all, const struct pframe_guest *guest)
{
	for (struct list *at = all->next; at != all; at = at->next) {
		struct leaver *l = container_of(at, struct leaver, node);

		if (l->guest == guest)
			l->guest = NULL;
	}
}

void pframe_leave_forget(struct pframe_space *s,
			 const struct pframe_guest *guest)
{
	forget(&s->leaving, guest);
	forget(&s->waiting, guest);
}
