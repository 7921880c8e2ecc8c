/* SPDX-License-Identifier: Apache-2.0 */
/* Beats that wait: for orders, then for the commit of what they tell of. */
#include "control/ctl_server.h"

#include "cd_wait.h"

bool cd_waits_hold(struct cd_waits *w, const struct ctl_request *request,
		   const struct cd_held *held)
{
	struct cd_wait *b = w->wait;
	uint64_t id;

	while (b < w->wait + CD_WAITS_MAX && b->id)
		b++;
	if (b == w->wait + CD_WAITS_MAX || ctl_hold(request, &id))
		return false;
	*b = (struct cd_wait){.id = id, .held = *held};
	w->count++;
	return true;
}

static void forget(struct cd_waits *w, struct cd_wait *b)
{
	ctl_reply_release(&b->reply);
	*b = (struct cd_wait){0};
	w->count--;
}

bool cd_waits_gone(struct cd_waits *w, struct cd_core *core, uint64_t id)
{
	for (struct cd_wait *b = w->wait; b < w->wait + CD_WAITS_MAX; b++) {
		if (b->id != id)
			continue;
		cd_core_broke(core, &b->held);
		forget(w, b);
		return true;
	}
	return false;
}

/* Who has hung up meanwhile is told of by `gone`. */
static void send(struct cd_waits *w, struct ctl_server *http, struct cd_wait *b)
{
	if (ctl_server_answer(http, b->id, &b->reply) == 0)
		forget(w, b);
}

static void answer(struct cd_waits *w, struct cd_core *core,
		   struct ctl_server *http, struct cd_wait *b)
{
	enum cd_settled how;

	if (!b->has_reply && cd_core_is_due(core, &b->held)) {
		cd_core_answer(core, &b->held, &b->reply);
		b->mark = cd_core_mark(core);
		b->has_reply = true;
	}
	/* What there is to say has to wait for the ledger; that the controller
	 * is there, or is not sure to lead, has not. */
	if (b->has_reply && cd_core_is_late(core, &b->held, b->mark)) {
		ctl_reply_release(&b->reply);
		b->reply = (struct ctl_reply){0};
		cd_core_put_off(core, &b->reply);
		send(w, http, b);
		return;
	}
	how = b->has_reply ? cd_core_settled(core, b->mark) : CD_PENDING;
	if (how == CD_PENDING)
		return;
	if (how != CD_COMMITTED)
		cd_core_excuse(core, how, &b->reply);
	send(w, http, b);
}

void cd_waits_answer(struct cd_waits *w, struct cd_core *core,
		     struct ctl_server *http)
{
	for (struct cd_wait *b = w->wait; b < w->wait + CD_WAITS_MAX; b++)
		if (b->id)
			answer(w, core, http, b);
}
