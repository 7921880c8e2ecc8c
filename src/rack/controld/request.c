/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: whose token it is, who may call what, and what is refused by who
 * does not lead. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "cd_page_priv.h"
#include "tree_priv.h"

/* No early end: the time tells nothing about whose token it was. */
static void recognise_hash(struct cd_core *core,
			   const struct ctl_token_hash *hash,
			   struct cd_who *who)
{
	struct cd_tenant *owner = NULL;
	enum cd_role role;

	who->narrow = cd_narrow_find(core, hash, &owner);
	if (who->narrow) {
		who->role = CD_ROLE_TENANT;
		who->tenant = owner;
	}
	for (unsigned i = 0; i < core->tenant_count; i++) {
		struct cd_tenant *t = core->tenant[i];

		for (unsigned k = 0; k < t->token_count; k++) {
			if (!ctl_token_hash_equal(&t->token[k].hash, hash) ||
			    cd_token_is_over(core, &t->token[k]))
				continue;
			who->role = CD_ROLE_TENANT;
			who->tenant = t;
		}
	}
	if (ctl_token_hash_equal(&core->default_hash, hash)) {
		who->role = CD_ROLE_TENANT;
		who->tenant = cd_tenant_find(core, "default");
	}
	role = cd_role_of(core, hash);
	if (role != CD_ROLE_NONE)
		who->role = role;
	if (ctl_token_hash_equal(&core->node_hash, hash))
		who->role = CD_ROLE_NODE;
	if (ctl_token_hash_equal(&core->admin, hash))
		who->role = CD_ROLE_ADMIN;
}

static void recognise(struct cd_core *core, const char *token,
		      struct cd_who *who)
{
	const struct ctl_token_hash *by;
	struct ctl_token_hash hash;

	if (!token || ctl_token_hash(token, &hash))
		return;
	memcpy(who->by, hash.bytes, sizeof(who->by));
	by = cd_look_right(core, &hash);
	recognise_hash(core, by ? by : &hash, who);
	/* Its right is another token's, as long as that is somebody's. */
	if (by)
		who->role = who->role == CD_ROLE_ADMIN ||
					    who->role == CD_ROLE_TENANT
				    ? CD_ROLE_LOOK
				    : CD_ROLE_NONE;
}

/* -EPERM: nobody we know; -EACCES: somebody who may not. Programs of this
 * machine may look at nodes and names, as they may in the runtime directory. */
static int authorize(const struct ctl_call *call, const struct cd_who *who)
{
	enum cd_level level = call->route->level;

	if (level == CD_LEVEL_ANY)
		return 0;
	if (who->role == CD_ROLE_LOOK && level != CD_LEVEL_LOOK)
		return error_set(-EACCES, "this token may only look");
	if (level == CD_LEVEL_TENANT && call->request->is_local && !who->narrow)
		return 0;
	if (!call->request->token)
		return error_set(-EPERM,
				 "this needs a header 'Authorization: Bearer "
				 "TOKEN'");
	if (who->role == CD_ROLE_NONE)
		return error_set(-EPERM, "the token is not known here");
	if (level == CD_LEVEL_ADMIN && who->role != CD_ROLE_ADMIN)
		return error_set(-EACCES, "only the administrator may do this");
	if (level == CD_LEVEL_NODE && who->role != CD_ROLE_ADMIN &&
	    who->role != CD_ROLE_NODE)
		return error_set(-EACCES, "only nodes may do this");
	return who->narrow ? cd_scope_check_route(call, who->narrow) : 0;
}

/* A map has a ticket, which only the leader signs. */
static bool is_change(const struct ctl_call *call)
{
	return call->request->method != CTL_GET ||
	       call->route->run == cd_handle_map_get;
}

/* What nodes said last, and where memory may go: whoever asks asks the nodes
 * themselves then, so it does not wait for changes that are not certain yet. */
static bool is_hint(const struct ctl_call *call)
{
	static void (*const hints[])(void *ctx, struct ctl_call *call) = {
		cd_handle_status,   cd_handle_metrics, cd_handle_node_list,
		cd_handle_name_get, cd_handle_place,   cd_handle_overview,
		cd_handle_history,  cd_handle_page,
	};

	for (size_t i = 0; i < ARRAY_LEN(hints); i++)
		if (hints[i] == call->route->run)
			return true;
	return false;
}

/* Nothing is said by who does not know; nothing is changed by who does not
 * lead. 421 names who does. */
static bool refuse(const struct cd_core *core, struct ctl_call *call)
{
	json_t *tree;

	if (cd_core_is_sure(core) || call->route->run == cd_handle_status ||
	    call->route->run == cd_handle_page ||
	    (core->is_loaded && !is_change(call)))
		return false;
	if (!core->leader[0]) {
		ctl_reply_error(call->reply, -EHOSTDOWN,
				"nothing was changed: %s",
				core->leads ? "the controller has not reached "
					      "its ledger for too long"
					    : core->why);
		call->reply->status = 503;
		return true;
	}
	tree = json_pack("{s:{s:s, s:s+}, s:s}", "error", "code", "-EHOSTDOWN",
			 "message", "another controller leads: ", core->leader,
			 "leader", core->leader);
	ctl_reply_json(call->reply, 421, tree);
	return true;
}

static void run(struct cd_core *core, struct ctl_call *call, struct cd_who *who)
{
	struct cd_scope scope;
	int err = 0;

	recognise(core, call->request->token, who);
	cd_audit_remember(call, who, who->held);
	who->held->is_hint = is_hint(call);
	call->caller = who;
	/* A tenant sees its own, wherever it comes from. */
	call->sees_all = who->role == CD_ROLE_ADMIN ||
			 who->role == CD_ROLE_NODE ||
			 (who->role == CD_ROLE_NONE && call->request->is_local);
	if (!cd_rate_take(core, call, who))
		return;
	err = authorize(call, who);
	if (err == -EPERM) {
		ctl_reply_last_error(call->reply, -EACCES);
		call->reply->status = 401; /* with a token it may be allowed */
		return;
	}
	if (!err && refuse(core, call))
		return;
	if (!err)
		err = ctl_body_parse(call->request->body,
				     call->request->body_bytes, &call->body);
	if (!err)
		err = cd_route_check_body(call);
	cd_audit_name(call, who->held);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	cd_scope_begin(core, who, &scope);
	call->route->run(core, call);
	core->scope = NULL;
}

void cd_core_handle(struct cd_core *core, const struct ctl_request *request,
		    struct ctl_reply *reply, struct cd_held *held)
{
	struct ctl_call call = {.request = request, .reply = reply};
	struct cd_who who = {.held = held};
	int err;

	*held = (struct cd_held){0};
	error_clear();
	core->requests++;
	cd_stage_group(core);
	err = ctl_route_find(cd_routes.route, cd_routes.route_count,
			     request->method, request->path, &call);
	if (err)
		ctl_reply_last_error(reply, err);
	else
		run(core, &call, &who);
	if (reply->status >= 400)
		core->refused++;
	json_decref(call.body);
}
