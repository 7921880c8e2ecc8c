/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often callers may ask, so that nobody has all of the core's lock: each
 * tenant as its limit "requests" says, whatever its addresses are, and who
 * brings no token that is known here by where it comes from. Renewals may go
 * twice as deep into debt: a tenant that asks too often does not lose its
 * leases by it. The administrator and nodes are not counted.
 */
#include "base/env.h"
#include "tree_priv.h"

enum {
	BURST_S = 2, /* seconds' worth at once */
};

static uint32_t limit_of(const struct cd_tenant *t)
{
	json_int_t n =
		json_integer_value(json_object_get(t->limits, "requests"));

	return n > 0 && n < CD_REQUESTS ? (uint32_t)n : CD_REQUESTS;
}

bool cd_rate_take(struct cd_core *core, const struct ctl_call *call,
		  const struct cd_who *who)
{
	const char *origin = call->request->origin;
	bool is_tenant = who->role == CD_ROLE_TENANT;
	uint32_t per_s =
		is_tenant ? limit_of(who->tenant) : CD_STRANGER_REQUESTS;
	uint32_t burst_s =
		call->route->run == cd_handle_renew ? 2 * BURST_S : BURST_S;
	uint64_t wait_ns = 0;

	/* No connection: a test, or the simulator. */
	if (!origin || who->role == CD_ROLE_ADMIN || who->role == CD_ROLE_NODE)
		return true;
	if (ctl_bucket_take(
		    is_tenant ? &who->tenant->bucket
			      : ctl_origins_bucket(&core->origins, origin),
		    per_s, burst_s * per_s, env_now_ns(core->env), &wait_ns))
		return true;
	core->too_many++;
	ctl_reply_too_many(call->reply, is_tenant ? who->tenant->name : origin,
			   wait_ns);
	return false;
}
