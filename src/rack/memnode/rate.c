/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often callers may ask, so that nobody has all of the node's lock: each
 * tenant as its limit "requests" says, whatever its addresses are, and who
 * brings no token that is known here by where it comes from. Heartbeats may go
 * twice as deep into debt: a tenant that asks too often does not lose its
 * connections by it.
 */
#include "base/env.h"
#include "mem_priv.h"

enum {
	BURST_S = 2, /* seconds' worth at once */
};

bool rate_take(struct mem_node *node, const struct ctl_call *call,
	       uint64_t *wait_ns)
{
	const char *origin = call->request->origin;
	struct mem_tenant *t = call->caller;
	bool is_quiet = call->route->level == MEM_LEVEL_TENANT_QUIET;
	uint32_t per_s = t ? (uint32_t)t->limit[MEM_LIMIT_REQUESTS]
			   : MEM_STRANGER_REQUESTS;

	if (t)
		t->taken[MEM_LIMIT_REQUESTS]++;
	else if (!origin)
		return true; /* no connection: a test, or the simulator */
	return ctl_bucket_take(t ? &t->bucket
				 : ctl_origins_bucket(&node->origins, origin),
			       per_s, (is_quiet ? 2 : 1) * BURST_S * per_s,
			       env_now_ns(node->env), wait_ns);
}
