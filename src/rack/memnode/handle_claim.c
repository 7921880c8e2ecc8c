/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/claims. */
#include <errno.h>

#include "base/env.h"
#include "base/error.h"
#include "mem_priv.h"

static int name_check(const char *what, const char *text, unsigned max)
{
	if (ctl_name_is_valid(text, max))
		return 0;
	return error_set(-EINVAL,
			 "\"%s\" has 1 to %u letters, digits, '-', '_' and "
			 "'.', and does not begin with '-' or '.'",
			 what, max);
}

static void answer(struct ctl_call *call, int err)
{
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_none(call->reply);
}

void handle_claim_create(void *ctx, struct ctl_call *call)
{
	const struct mem_node *node = ctx;
	struct mem_tenant *tenant = call->caller;
	const char *name = NULL, *holder = NULL;
	uint64_t ms = 0, now_ns = env_now_ns(node->env);
	int err = ctl_field_string(call->body, "name", true, &name);

	if (!err)
		err = name_check("name", name, MEM_REGION_NAME_MAX);
	if (!err)
		err = ctl_field_string(call->body, "holder", true, &holder);
	if (!err)
		err = name_check("holder", holder, MEM_CLAIM_HOLDER_MAX);
	if (!err)
		err = ctl_field_u64(call->body, "ms", true, 1, MEM_CLAIM_MS_MAX,
				    &ms);
	if (!err)
		err = claim_take(&tenant->claims, name, holder, now_ns,
				 now_ns + ms * 1000000);
	answer(call, err);
}

void handle_claim_delete(void *ctx, struct ctl_call *call)
{
	const struct mem_node *node = ctx;
	struct mem_tenant *tenant = call->caller;

	answer(call, claim_drop(&tenant->claims, call->segment[0],
				call->segment[1], env_now_ns(node->env)));
}
