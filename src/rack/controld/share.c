/* SPDX-License-Identifier: Apache-2.0 */
/* Allowances: how a quota of the rack is shared out among its nodes. Why it is
 * safe is in cd_priv.h. */
#include "base/log.h"
#include "base/plant.h"
#include "cd_priv.h"

uint64_t cd_share_sum(const struct cd_core *core, const struct cd_tenant *t)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < CD_NODES_MAX; i++) {
		if (!core->node[i] ||
		    (PLANTED(ctl_sum_up) && core->node[i]->state == CD_DOWN))
			continue;
		sum += t->share[i].bytes;
	}
	return sum;
}

void cd_share_report(struct cd_core *core, struct cd_tenant *t,
		     struct cd_node *n, uint64_t version, uint64_t limit)
{
	struct cd_share *s = &t->share[n->slot];

	if (!t->quota || (version != s->version && !PLANTED(ctl_any_version)))
		return;
	if (limit < s->bytes || (s->open && limit > s->bytes)) {
		s->bytes = limit;
		s->open = false;
		cd_stage_share(core, t, n);
	}
}

/* What others could give back if they were asked to: what they do not use, as
 * far as they have said. */
static uint64_t least_sum(const struct cd_core *core, const struct cd_tenant *t,
			  const struct cd_node *without)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < CD_NODES_MAX; i++) {
		const struct cd_node *n = core->node[i];
		const struct cd_share *s = &t->share[i];

		if (!n || n == without)
			continue;
		sum += n->state == CD_UP ? u64_min(s->used, s->bytes)
					 : s->bytes;
	}
	return sum;
}

/* A part more than is needed, so that the next region needs no grant; but not
 * while others wait. */
static uint64_t step_of(const struct cd_tenant *t, uint64_t left)
{
	return t->squeeze ? 0 : u64_min(CD_STEP_BYTES, left / CD_STEP_PART);
}

static void grant(struct cd_core *core, struct cd_tenant *t, struct cd_node *n,
		  uint64_t bytes)
{
	struct cd_share *s = &t->share[n->slot];

	s->bytes = bytes;
	s->version++;
	s->open = false;
	s->wish = 0;
	cd_stage_share(core, t, n);
	cd_order(n);
}

static void refuse(struct cd_share *s, struct cd_node *n)
{
	s->is_refused = true;
	s->wish = 0;
	cd_order(n);
}

void cd_share_ask_anew(struct cd_core *core, struct cd_tenant *t)
{
	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		t->share[i].told = t->share[i].gave = false;
	if (t->squeeze)
		cd_order_all(core);
}

/* Whether all others that can be asked have said what they use. */
static bool all_gave(const struct cd_core *core, const struct cd_tenant *t,
		     const struct cd_node *without)
{
	for (unsigned i = 0; i < CD_NODES_MAX; i++) {
		const struct cd_node *n = core->node[i];

		if (n && n != without && n->state == CD_UP &&
		    t->share[i].bytes && !t->share[i].gave)
			return false;
	}
	return true;
}

/* True: it must wait until others have given back. */
static bool serve_one(struct cd_core *core, struct cd_tenant *t,
		      struct cd_node *n)
{
	struct cd_share *s = &t->share[n->slot];
	uint64_t sum = cd_share_sum(core, t);
	uint64_t others = sum > s->bytes ? sum - s->bytes : 0;

	if (s->wish <= s->bytes) {
		s->wish = 0; /* it does not know yet what it has */
		cd_order(n);
	} else if (s->wish <= t->quota && others <= t->quota - s->wish) {
		uint64_t left = t->quota - s->wish - others;

		grant(core, t, n, s->wish + step_of(t, left));
	} else if (s->wish > t->quota ||
		   (all_gave(core, t, n) &&
		    least_sum(core, t, n) > t->quota - s->wish)) {
		refuse(s, n);
	} else {
		return true;
	}
	return false;
}

void cd_share_serve(struct cd_core *core, struct cd_tenant *t)
{
	bool squeezed = t->squeeze, waits = false;

	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		if (core->node[i] && t->share[i].wish)
			waits |= serve_one(core, t, core->node[i]);
	t->squeeze = waits;
	if (squeezed != waits)
		cd_share_ask_anew(core, t);
}

/* Nodes that had no limit may use what they like until they know. */
void cd_share_requota(struct cd_core *core, struct cd_tenant *t, uint64_t quota)
{
	bool begins = !t->quota && quota;

	t->quota = quota;
	t->squeeze = false;
	for (unsigned i = 0; i < CD_NODES_MAX; i++) {
		struct cd_share *s = &t->share[i];

		if (!core->node[i] || !begins ||
		    core->node[i]->kind != CD_MEMORY)
			continue;
		s->version++;
		s->open = true;
		cd_stage_share(core, t, core->node[i]);
	}
	if (quota)
		cd_share_serve(core, t);
}
