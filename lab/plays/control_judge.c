/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold after every step of `aquifer sim control`. */
#include <stdio.h>
#include <string.h>

#include "control_world.h"

enum {
	/* The longest second of a clock that drifts, in thousandths. */
	SLOW_CLOCK = 1112,
};

/* What all processes that live may hand out stays within the quota. Who was
 * killed hands out nothing. */
void judge_step(struct world *w)
{
	for (unsigned t = 0; t < TENANTS; t++) {
		uint64_t limit = 0;

		for (unsigned i = 0; i < NODES; i++) {
			const struct node *n = &w->node[i];

			limit += n->share[t].limit_bytes;
			if (n->used[t] > n->share[t].limit_bytes)
				world_wrong(w,
					    "node m%u uses more of %s than it "
					    "may",
					    i, control_tenants[t]);
		}
		if (limit > w->quota[t])
			world_wrong(w,
				    "nodes may hand out %llu KiB of %s, and "
				    "its quota is %llu KiB",
				    (unsigned long long)(limit >> 10),
				    control_tenants[t],
				    (unsigned long long)(w->quota[t] >> 10));
	}
}

static void judge_node(struct world *w, const struct controller *c,
		       const char *name, const char *state)
{
	unsigned i = (unsigned)(name[1] - '0');
	uint64_t since = i < NODES ? u64_max(c->lead_ns, c->heard_ns[i]) : 0;
	uint64_t after_ms = CD_DOWN_MS;

	if (i < NODES && c->broke_ns[i] >= since) {
		since = c->broke_ns[i];
		after_ms = CD_BROKEN_MS;
	}
	if (i < NODES && strcmp(state, "down") == 0 &&
	    (w->now_ns - since) * SLOW_CLOCK / 1000 < after_ms * MS)
		world_wrong(w,
			    "node %s is said to be down %llu ms after its "
			    "beat, or after the leader began",
			    name,
			    (unsigned long long)((w->now_ns - since) / MS));
}

/* Who leads gives every node its time, and knows all that have joined. */
void judge_tick(struct world *w, unsigned controller)
{
	struct controller *c = &w->controller[controller];
	struct ctl_request r = {.method = CTL_GET,
				.path = "/v1/nodes",
				.token = control_token_admin};
	struct ctl_reply reply = {0};
	struct cd_held held;
	json_t *tree, *row;
	size_t i;

	if (!cd_core_leads(c->core))
		return;
	cd_core_handle(c->core, &r, &reply, &held);
	tree = reply.body ? json_loadb(reply.body, reply.body_bytes, 0, NULL)
			  : NULL;
	json_array_foreach(json_object_get(tree, "nodes"), i, row) judge_node(
		w, c, json_string_value(json_object_get(row, "name")),
		json_string_value(json_object_get(row, "state")));
	json_decref(tree);
	ctl_reply_release(&reply);
}
