/* SPDX-License-Identifier: Apache-2.0 */
/* Changes on their way to the ledger, in the order in which they were made. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"
#include "cd_page_priv.h"

json_int_t cd_int(uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : (json_int_t)n;
}

void cd_stage_group(struct cd_core *core)
{
	core->group++;
}

static void staged_free(struct cd_staged *s)
{
	free(s->kind);
	free(s->key);
	free(s->value);
	free(s);
}

/* Without memory the change cannot be made to last, so the core resigns. */
void cd_stage(struct cd_core *core, const char *kind, const char *key,
	      json_t *value)
{
	struct cd_staged *s = calloc(1, sizeof(*s));
	size_t len;

	core->staged++;
	if (s) {
		s->number = core->staged;
		s->group = core->group;
		s->kind = strdup(kind);
		s->key = strdup(key);
		s->value = value ? ctl_json_text(value, &len) : NULL;
	}
	if (!s || !s->kind || !s->key || (value && !s->value)) {
		if (s)
			staged_free(s);
		json_decref(value);
		cd_core_resign(core, "the controller has no memory left");
		return;
	}
	json_decref(value);
	*core->last = s;
	core->last = &s->next;
}

void cd_stage_node(struct cd_core *core, const struct cd_node *n)
{
	cd_stage(core, "node", n->name,
		 json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:b}", "kind",
			   cd_kind_name(n->kind), "address", n->address, "zone",
			   n->zone, "incarnation", n->incarnation, "epoch",
			   cd_int(n->epoch), "size", cd_int(n->size_bytes),
			   "drain", n->drain));
}

void cd_stage_tenant(struct cd_core *core, const struct cd_tenant *t)
{
	cd_stage(core, "tenant", t->name,
		 json_pack("{s:I, s:O}", "quota", cd_int(t->quota), "limits",
			   t->limits));
}

void cd_stage_token(struct cd_core *core, const struct cd_tenant *t,
		    const struct cd_token *k)
{
	char hash[CTL_TOKEN_TEXT];

	ctl_token_hash_format(&k->hash, hash);
	cd_stage(core, "token", hash,
		 json_pack("{s:s, s:i, s:I}", "tenant", t->name, "id",
			   (int)k->id, "until", cd_int(k->until_s)));
}

void cd_stage_share(struct cd_core *core, const struct cd_tenant *t,
		    const struct cd_node *n)
{
	const struct cd_share *s = &t->share[n->slot];
	char key[2 * CD_NAME_MAX + 2];

	(void)snprintf(key, sizeof(key), "%s/%s", t->name, n->name);
	cd_stage(core, "allowance", key,
		 json_pack("{s:I, s:I, s:b}", "bytes", cd_int(s->bytes),
			   "version", cd_int(s->version), "open", s->open));
}

/* ---- transactions ------------------------------------------------------- */

unsigned cd_core_batch(struct cd_core *core,
		       struct ledger_change out[LEDGER_CHANGES_MAX])
{
	unsigned count = 0, whole = 0;
	const struct cd_staged *s;
	size_t bytes = 0;

	ASSERT(!core->flight);
	for (s = core->first; s && count < LEDGER_CHANGES_MAX; s = s->next) {
		bytes += s->value ? strlen(s->value) : 0;
		if (whole && bytes > LEDGER_COMMIT_BYTES)
			break;
		out[count++] =
			(struct ledger_change){s->kind, s->key, s->value};
		if (!s->next || s->next->group != s->group)
			whole = count;
	}
	/* More than a transaction takes: in parts, in their order, so that what
	 * others hang on goes last. */
	if (!whole)
		whole = count;
	core->flight = whole;
	return whole;
}

unsigned cd_core_waiting(const struct cd_core *core)
{
	return (unsigned)(core->staged - core->committed);
}

static void pop(struct cd_core *core)
{
	struct cd_staged *s = core->first;

	core->first = s->next;
	if (!core->first)
		core->last = &core->first;
	staged_free(s);
}

void cd_stage_drop(struct cd_core *core, int err)
{
	bool may_be = err == LEDGER_UNKNOWN && !PLANTED(ctl_unknown_failed);

	while (core->first)
		pop(core);
	core->flight = 0;
	core->past[core->generation % CD_PAST].committed = core->committed;
	core->past[core->generation % CD_PAST].rest =
		may_be ? CD_UNKNOWN : CD_FAILED;
	core->generation++;
	cd_events_drop(core, core->committed);
	core->committed = core->staged;
}

void cd_core_committed(struct cd_core *core, int err)
{
	unsigned count = core->flight;

	core->flight = 0;
	if (err) {
		core->failures++;
		(void)snprintf(core->failure, sizeof(core->failure), "%s",
			       error_last());
		cd_stage_drop(core, err);
		cd_core_resign(core, core->failure);
		return;
	}
	core->commits++;
	while (count-- && core->first) {
		core->committed = core->first->number;
		pop(core);
	}
}

uint64_t cd_core_mark(const struct cd_core *core)
{
	return core->generation << CD_MARK_BITS | core->staged;
}

enum cd_settled cd_core_settled(const struct cd_core *core, uint64_t mark)
{
	uint64_t number = mark & ((1ull << CD_MARK_BITS) - 1);
	uint64_t generation = mark >> CD_MARK_BITS;

	if (PLANTED(ctl_answer_early))
		return CD_COMMITTED;
	if (generation == core->generation)
		return core->committed >= number ? CD_COMMITTED : CD_PENDING;
	if (core->generation - generation > CD_PAST)
		return CD_UNKNOWN;
	return core->past[generation % CD_PAST].committed >= number
		       ? CD_COMMITTED
		       : core->past[generation % CD_PAST].rest;
}

void cd_core_excuse(const struct cd_core *core, enum cd_settled how,
		    struct ctl_reply *reply)
{
	ctl_reply_release(reply);
	memset(reply, 0, sizeof(*reply));
	ctl_reply_error(reply, -EHOSTDOWN, "%s: %s",
			how == CD_FAILED ? "nothing was changed"
					 : "the change may have been made or "
					   "not; look before you try again",
			how == CD_PENDING  ? "the ledger does not answer"
			: core->failure[0] ? core->failure
					   : core->why);
	reply->status = 503;
}
