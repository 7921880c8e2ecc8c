/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames on their way back to the queue. An answer to a load is read from its
 * frame until the client has acknowledged it, because one that is lost, or that
 * finds no receive, is sent again. So a frame that was taken out of the table
 * waits for all answers that had begun by then, of whichever guest of the
 * space: only they can name it.
 *
 * Answers are counted in two phases. The frames that leave wait for the answers
 * of the other phase, which become fewer only; those that come meanwhile are
 * the next to leave. So a client that never stops loading gives back
 * nevertheless, and one that takes no answers holds up nobody but its own
 * space.
 *
 * All under the lock of the space's server.
 */
#include <stdlib.h>

#include "base/plant.h"
#include "frame_priv.h"

struct leaver {
	struct list node; /* of the space's `leaving` or `waiting` */
	uint64_t frame;
	struct frame_guest *guest; /* that is answered; NULL: it is gone */
	uint32_t slot;
};

static void finish(struct frame_space *s, struct leaver *l)
{
	struct frame_guest *guest = l->guest;
	uint32_t slot = l->slot;

	list_remove(&l->node);
	frame_space_give(s, l->frame);
	free(l);
	if (guest)
		frame_guest_gone_back(guest, slot);
}

static void go_on(struct frame_space *s)
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

unsigned frame_load_begin(struct frame_space *s)
{
	s->loads[s->phase]++;
	return s->phase;
}

void frame_load_end(struct frame_space *s, unsigned phase)
{
	s->loads[phase]--;
	go_on(s);
}

enum frame_leave frame_leave(struct frame_space *s, uint64_t index,
			     struct frame_guest *guest, uint32_t slot)
{
	struct leaver *l = NULL;
	uint64_t frame;

	if ((s->loads[0] || s->loads[1]) && !PLANTED(leave_early)) {
		l = malloc(sizeof(*l));
		if (!l)
			return FRAME_STAYS;
	}
	frame = frame_space_take(s, index);
	if (!frame) {
		free(l);
		return FRAME_NONE;
	}
	if (!l) {
		frame_space_give(s, frame);
		return FRAME_LEFT;
	}
	*l = (struct leaver){.frame = frame, .guest = guest, .slot = slot};
	list_append(&s->waiting, &l->node);
	go_on(s);
	return FRAME_LEAVES;
}

static void forget(struct list *all, const struct frame_guest *guest)
{
	for (struct list *at = all->next; at != all; at = at->next) {
		struct leaver *l = container_of(at, struct leaver, node);

		if (l->guest == guest)
			l->guest = NULL;
	}
}

void frame_leave_forget(struct frame_space *s, const struct frame_guest *guest)
{
	forget(&s->leaving, guest);
	forget(&s->waiting, guest);
}
