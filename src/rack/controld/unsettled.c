/* SPDX-License-Identifier: Apache-2.0 */
/* Replies that wait for a commit. */
#include <stdlib.h>
#include <string.h>

#include "cd_unsettled.h"
#include "control/ctl_server.h"

struct cd_unsettled {
	struct cd_unsettled *next;
	uint64_t id; /* of ctl_hold_briefly */
	uint64_t mark;
	struct cd_held held;
	struct ctl_reply reply;
	/* What the audit log wants to know; the request itself is gone. */
	struct ctl_request request;
	char text[]; /* path, peer and certificate */
};

/* ---- copies of requests -------------------------------------------------- */

static size_t bytes_of(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static const char *copy(char **at, const char *text)
{
	char *to = *at;

	if (!text)
		return NULL;
	memcpy(to, text, strlen(text) + 1);
	*at += strlen(text) + 1;
	return to;
}

static struct cd_unsettled *create(const struct ctl_request *q)
{
	struct cd_unsettled *w =
		malloc(sizeof(*w) + bytes_of(q->path) + bytes_of(q->peer) +
		       bytes_of(q->certificate));
	char *at;

	if (!w)
		return NULL;
	at = w->text;
	w->next = NULL;
	w->request = (struct ctl_request){
		.method = q->method,
		.is_local = q->is_local,
		.path = copy(&at, q->path),
		.peer = copy(&at, q->peer),
		.certificate = copy(&at, q->certificate),
	};
	return w;
}

static void destroy(struct cd_unsettled *w)
{
	ctl_reply_release(&w->reply);
	free(w);
}

/* ---- the list ------------------------------------------------------------ */

static void append(struct cd_unsettleds *u, struct cd_unsettled *w)
{
	if (u->last)
		u->last->next = w;
	else
		u->first = w;
	u->last = w;
}

bool cd_unsettled_hold(struct cd_unsettleds *u, const struct cd_core *core,
		       const struct ctl_request *request,
		       const struct cd_held *held, struct ctl_reply *reply)
{
	struct cd_unsettled *w;

	if (!request->exchange)
		return false;
	w = create(request);
	if (!w)
		return false;
	w->mark = cd_core_mark(core);
	w->held = *held;
	w->reply = (struct ctl_reply){0};
	if (ctl_hold_briefly(request, &w->id)) {
		destroy(w);
		return false;
	}
	w->reply = *reply;
	*reply = (struct ctl_reply){0};
	append(u, w);
	return true;
}

/* The first one, if it is settled: what was staged later is settled later. */
static struct cd_unsettled *take(struct cd_unsettleds *u, struct cd_core *core,
				 bool is_stalled)
{
	struct cd_unsettled *w = u->first;
	enum cd_settled how = w ? cd_core_settled(core, w->mark) : CD_PENDING;

	if (!w || (how == CD_PENDING && !is_stalled))
		return NULL;
	u->first = w->next;
	if (!u->first)
		u->last = NULL;
	if (how != CD_COMMITTED)
		cd_core_excuse(core, how, &w->reply);
	return w;
}

void cd_unsettled_take(struct cd_unsettleds *u, struct cd_core *core,
		       bool is_stalled, struct cd_unsettleds *out)
{
	struct cd_unsettled *w;

	*out = (struct cd_unsettleds){0};
	while ((w = take(u, core, is_stalled))) {
		w->next = NULL;
		append(out, w);
	}
}

static void audit(const struct cd_unsettleds *u, struct cd_core *core)
{
	struct ctl_audit_entry entry[LEDGER_CHANGES_MAX];
	unsigned count = 0;

	for (const struct cd_unsettled *w = u->first; w; w = w->next) {
		entry[count++] =
			cd_audit_entry(&w->request, &w->held, &w->reply);
		if (count == ARRAY_LEN(entry) || !w->next) {
			cd_core_audit(core, entry, count);
			count = 0;
		}
	}
}

void cd_unsettled_send(struct cd_unsettleds *u, struct cd_core *core,
		       struct ctl_server *http)
{
	/* What is answered is on record; and who is answered first does not
	 * take the processor from this thread before the last one is. */
	audit(u, core);
	while (u->first) {
		struct cd_unsettled *w = u->first;

		u->first = w->next;
		/* Who has hung up meanwhile wants no answer. */
		(void)!ctl_server_answer(http, w->id, &w->reply);
		destroy(w);
	}
	u->last = NULL;
}

void cd_unsettled_free(struct cd_unsettleds *u)
{
	while (u->first) {
		struct cd_unsettled *w = u->first;

		u->first = w->next;
		destroy(w);
	}
	u->last = NULL;
}
