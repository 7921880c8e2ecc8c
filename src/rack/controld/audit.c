/* SPDX-License-Identifier: Apache-2.0 */
/* Who asked for what, and how it ended: /v1/audit, and the lines behind it. */
#include <stdio.h>

#include "base/env.h"
#include "tree_priv.h"

void cd_audit_remember(const struct ctl_call *call, const struct cd_who *who,
		       struct cd_held *held)
{
	(void)snprintf(held->who, sizeof(held->who), "%s",
		       who->role == CD_ROLE_TENANT ? who->tenant->name
						   : cd_role_name(who->role));
	held->is_quiet = call->route->run == cd_handle_node_beat ||
			 call->route->run == cd_handle_place ||
			 call->route->run == cd_handle_renew;
}

void cd_audit_name(const struct ctl_call *call, struct cd_held *held)
{
	const char *name =
		json_string_value(json_object_get(call->body, "name"));

	if (name)
		(void)snprintf(held->name, sizeof(held->name), "%.*s",
			       CD_NAME_MAX, name);
}

struct ctl_audit_entry cd_audit_entry(const struct ctl_request *request,
				      const struct cd_held *held,
				      const struct ctl_reply *reply)
{
	return (struct ctl_audit_entry){
		.request = request,
		.event = {.who = held->who,
			  .name = held->name,
			  .is_quiet = held->is_quiet},
		.status = reply->status,
	};
}

void cd_core_audit(struct cd_core *core, const struct ctl_audit_entry *entry,
		   unsigned count)
{
	if (core->audit)
		ctl_audit_note_all(core->audit, entry, count,
				   env_now_ns(core->env));
}

void cd_handle_audit(void *ctx, struct ctl_call *call)
{
	const struct cd_core *core = ctx;

	ctl_reply_json(call->reply, 200,
		       json_pack("{s:o}", "events",
				 core->audit ? ctl_audit_last(core->audit)
					     : json_array()));
}
