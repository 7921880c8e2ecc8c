/* SPDX-License-Identifier: Apache-2.0 */
/* The core: its life, who leads, its routes and who may call them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/plant.h"
#include "cd_page_priv.h"
#include "vault_priv.h"

static const struct ctl_route routes[] = {
	{CTL_GET, "/v1/status", cd_handle_status, CD_LEVEL_ANY},
	{CTL_GET, "/metrics", cd_handle_metrics, CD_LEVEL_TENANT},
	{CTL_POST, "/v1/nodes", cd_handle_node_join, CD_LEVEL_NODE},
	{CTL_POST, "/v1/nodes/:/beat", cd_handle_node_beat, CD_LEVEL_NODE},
	{CTL_POST, "/v1/nodes/:/leave", cd_handle_node_leave, CD_LEVEL_NODE},
	{CTL_GET, "/v1/nodes", cd_handle_node_list, CD_LEVEL_TENANT},
	{CTL_POST, "/v1/nodes/:/drain", cd_handle_node_drain, CD_LEVEL_ADMIN},
	{CTL_DELETE, "/v1/nodes/:", cd_handle_node_forget, CD_LEVEL_ADMIN},
	{CTL_GET, "/v1/names/:", cd_handle_name_get, CD_LEVEL_TENANT},
	{CTL_POST, "/v1/place", cd_handle_place, CD_LEVEL_TENANT},
	{CTL_POST, "/v1/tenants", cd_handle_tenant_create, CD_LEVEL_ADMIN},
	{CTL_GET, "/v1/tenants", cd_handle_tenant_list, CD_LEVEL_ADMIN},
	{CTL_GET, "/v1/tenants/:", cd_handle_tenant_get, CD_LEVEL_ADMIN},
	{CTL_PATCH, "/v1/tenants/:", cd_handle_tenant_patch, CD_LEVEL_ADMIN},
	{CTL_DELETE, "/v1/tenants/:", cd_handle_tenant_delete, CD_LEVEL_ADMIN},
	{CTL_PATCH, "/v1/tenants/:/token", cd_handle_token_patch,
	 CD_LEVEL_ADMIN},
	{CTL_DELETE, "/v1/tenants/:/token", cd_handle_token_delete,
	 CD_LEVEL_ADMIN},
	{CTL_GET, "/v1/tenants/:/tokens", cd_handle_token_list, CD_LEVEL_ADMIN},
	{CTL_POST, "/v1/tenants/:/tokens", cd_handle_token_create,
	 CD_LEVEL_ADMIN},
	{CTL_DELETE, "/v1/tenants/:/tokens/:", cd_handle_token_end,
	 CD_LEVEL_ADMIN},
	{CTL_PATCH, "/v1/admin/token", cd_handle_admin_token, CD_LEVEL_ADMIN},
	{CTL_GET, "/v1/jobs", cd_handle_job_list, CD_LEVEL_TENANT},
	{CTL_POST, "/v1/jobs", cd_handle_job_create, CD_LEVEL_TENANT},
	{CTL_POST, "/v1/renew", cd_handle_renew, CD_LEVEL_TENANT},
	{CTL_GET, "/v1/ns", cd_handle_ns_get, CD_LEVEL_TENANT},
	{CTL_GET, "/v1/ns/*", cd_handle_ns_get, CD_LEVEL_TENANT},
	{CTL_POST, "/v1/ns/*", cd_handle_ns_make, CD_LEVEL_TENANT},
	{CTL_PATCH, "/v1/ns/*", cd_handle_ns_patch, CD_LEVEL_TENANT},
	{CTL_DELETE, "/v1/ns/*", cd_handle_ns_delete, CD_LEVEL_TENANT},
	{CTL_GET, "/v1/tree", cd_handle_tree_get, CD_LEVEL_TENANT},
	{CTL_GET, "/v1/tree/*", cd_handle_tree_get, CD_LEVEL_TENANT},
	{CTL_GET, "/v1/map/*", cd_handle_map_get, CD_LEVEL_TENANT},
	{CTL_POST, "/v1/blocks/*", cd_handle_map_grow, CD_LEVEL_TENANT},
	{CTL_POST, "/v1/flush/*", cd_handle_flush, CD_LEVEL_TENANT},
	{CTL_POST, "/v1/load/*", cd_handle_load, CD_LEVEL_TENANT},
	{CTL_GET, "/v1/audit", cd_handle_audit, CD_LEVEL_ADMIN},
	{CTL_GET, "/v1/roles/:/tokens", cd_handle_role_list, CD_LEVEL_ADMIN},
	{CTL_POST, "/v1/roles/:/tokens", cd_handle_role_create, CD_LEVEL_ADMIN},
	{CTL_DELETE, "/v1/roles/:/tokens/:", cd_handle_role_end,
	 CD_LEVEL_ADMIN},
	{CTL_GET, "/", cd_handle_page, CD_LEVEL_ANY},
	{CTL_GET, "/page.css", cd_handle_page, CD_LEVEL_ANY},
	{CTL_GET, "/page.js", cd_handle_page, CD_LEVEL_ANY},
	{CTL_GET, "/icon.svg", cd_handle_page, CD_LEVEL_ANY},
	{CTL_GET, "/v1/overview", cd_handle_overview, CD_LEVEL_LOOK},
	{CTL_GET, "/v1/history/:/:", cd_handle_history, CD_LEVEL_LOOK},
	{CTL_POST, "/v1/look", cd_handle_look, CD_LEVEL_TENANT},
	{CTL_POST, "/v1/look/token", cd_handle_look_token, CD_LEVEL_ANY},
};

/* Every route has a row here: what is not known is refused. */
static const struct ctl_members members[] = {
	{cd_handle_status, ""},
	{cd_handle_metrics, ""},
	{cd_handle_node_list, ""},
	{cd_handle_node_forget, ""},
	{cd_handle_name_get, ""},
	{cd_handle_tenant_list, ""},
	{cd_handle_tenant_get, ""},
	{cd_handle_tenant_delete, ""},
	{cd_handle_token_delete, ""},
	{cd_handle_token_list, ""},
	{cd_handle_token_end, ""},
	{cd_handle_role_list, ""},
	{cd_handle_role_end, ""},
	{cd_handle_audit, ""},
	{cd_handle_page, ""},
	{cd_handle_overview, ""},
	{cd_handle_history, ""},
	{cd_handle_node_join, "name kind address zone incarnation size proto"},
	{cd_handle_node_beat,
	 "incarnation epoch used regions connections tenants shares names "
	 "names_complete own conflicts blocks freed failed tasks"},
	{cd_handle_node_leave, "incarnation"},
	{cd_handle_node_drain, "drain"},
	{cd_handle_place, "size copies policy"},
	{cd_handle_tenant_create, "name token quota limits"},
	{cd_handle_tenant_patch, "quota limits"},
	{cd_handle_token_patch, "token"},
	{cd_handle_token_create, "token ttl_s"},
	{cd_handle_admin_token, "token"},
	{cd_handle_role_create, "token ttl_s"},
	{cd_handle_look, ""},
	{cd_handle_look_token, ""},
	{cd_handle_job_list, ""},
	{cd_handle_ns_get, ""},
	{cd_handle_tree_get, ""},
	{cd_handle_map_get, ""},
	{cd_handle_job_create, "name plan lease_ms on_expiry"},
	{cd_handle_renew, "paths"},
	{cd_handle_ns_make,
	 "kind parents make_parents lease_ms on_expiry block_bytes bound"},
	{cd_handle_ns_patch, "to lease_ms on_expiry"},
	{cd_handle_ns_delete, "recursive"},
	{cd_handle_map_grow, "after"},
	{cd_handle_flush, ""},
	{cd_handle_load, ""},
};

static const struct ctl_body_max body_max[] = {
	{cd_handle_node_beat, CD_BEAT_BYTES},
	{cd_handle_job_create, CD_PLAN_BYTES}, /* of the largest plan */
};

const struct ctl_routes cd_routes = {
	.route = routes,
	.route_count = ARRAY_LEN(routes),
	.body_max = body_max,
	.body_max_count = ARRAY_LEN(body_max),
};

const char *cd_route_members(const struct ctl_route *route)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (members[i].run == route->run)
			return members[i].words;
	return NULL;
}

/* ---- life --------------------------------------------------------------- */

/* Its token is each machine's own file; nodes report what it uses. */
static int add_default(struct cd_core *core)
{
	struct cd_tenant *t;

	return cd_tenant_add(core, "default", &t);
}

int cd_core_create(const struct cd_config *c, struct cd_core **out)
{
	struct cd_core *core = calloc(1, sizeof(*core));
	int err;

	if (!core)
		return error_set(-ENOMEM, "no memory for the controller");
	(void)snprintf(core->name, sizeof(core->name), "%s", c->name);
	core->env = c->env;
	core->audit = c->audit;
	core->keep_token = c->keep_token;
	core->keep_ctx = c->keep_ctx;
	core->open_page = c->open_page;
	core->page_ctx = c->page_ctx;
	(void)snprintf(core->vault, sizeof(core->vault), "%s",
		       c->vault ? c->vault : "");
	core->last = &core->first;
	core->late = json_object();
	core->events = cd_events_create();
	core->history = cd_history_create();
	core->looks = cd_looks_create();
	core->start_ns = env_now_ns(c->env);
	(void)snprintf(core->why, sizeof(core->why), "the controller starts");
	err = core->events && core->history && core->looks
		      ? ctl_token_hash(c->admin_token, &core->admin)
		      : error_set(-ENOMEM, "no memory for the controller");
	if (!err)
		err = ctl_token_hash(c->node_token, &core->node_hash);
	if (!err)
		err = ctl_token_hash(c->default_token, &core->default_hash);
	if (!err)
		err = add_default(core);
	if (!err)
		err = cd_tree_create(&core->tree);
	if (err) {
		cd_core_destroy(core);
		return err;
	}
	*out = core;
	return 0;
}

static void forget_all(struct cd_core *core)
{
	if (core->tree)
		cd_tree_clear(core);
	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		if (core->node[i])
			cd_node_free(core, core->node[i]);
	while (core->tenant_count)
		cd_tenant_free(core, core->tenant[0]);
	core->role_token_count = 0;
	if (core->looks)
		cd_looks_clear(core->looks);
	(void)json_object_clear(core->late);
}

void cd_core_destroy(struct cd_core *core)
{
	forget_all(core);
	cd_tree_destroy(core);
	cd_stage_drop(core, 0);
	json_decref(core->late);
	cd_looks_destroy(core->looks);
	cd_history_destroy(core->history);
	cd_events_destroy(core->events);
	free(core);
}

/* ---- leading ------------------------------------------------------------ */

void cd_core_clear(struct cd_core *core)
{
	core->leads = core->is_loaded = false;
	if (core->first)
		cd_stage_drop(core, core->flight ? LEDGER_UNKNOWN : -ESTALE);
	if (PLANTED(ctl_no_reload) && core->term)
		return;
	forget_all(core);
	if (add_default(core))
		log_err("controld", "%s", error_last());
}

int cd_core_ready(struct cd_core *core, const char *leader, const char *why)
{
	int err = cd_rows_end(core);

	cd_stage_drop(core, -ESTALE);
	(void)snprintf(core->leader, sizeof(core->leader), "%s",
		       leader ? leader : "");
	(void)snprintf(core->why, sizeof(core->why), "%s", why);
	core->is_loaded = !err;
	return err;
}

int cd_core_lead(struct cd_core *core, uint64_t term)
{
	uint64_t now = env_now_ns(core->env);
	int err = cd_rows_end(core);

	if (err)
		return err;
	core->leader[0] = 0;
	core->term = term;
	core->joins = 0;
	core->tenants_version = 1;
	core->is_loaded = core->leads = true;
	core->until_ns = 0;
	/* Silence towards another leader does not count. */
	for (unsigned i = 0; i < CD_NODES_MAX; i++) {
		if (!core->node[i])
			continue;
		core->node[i]->state = CD_UP;
		core->node[i]->seen_ns =
			PLANTED(ctl_old_clock) ? now - 9500000000ull : now;
	}
	cd_tree_lead(core);
	log_info("controld", "%s leads in term %llu: %u nodes, %u tenants",
		 core->name, (unsigned long long)term, core->node_count,
		 core->tenant_count);
	cd_event_seen(core, CD_ABOUT_CONTROLLER, core->name,
		      "leads in term %llu", (unsigned long long)term);
	return 0;
}

void cd_core_resign(struct cd_core *core, const char *why)
{
	if (core->leads) {
		log_warn("controld", "%s does not lead any more: %s",
			 core->name, why);
		cd_event_seen(core, CD_ABOUT_CONTROLLER, core->name,
			      "does not lead any more: %s", why);
	}
	core->leads = false;
	if (why != core->why)
		(void)snprintf(core->why, sizeof(core->why), "%s", why);
	if (core->first)
		cd_stage_drop(core, core->flight ? LEDGER_UNKNOWN : -ESTALE);
	/* Who waits for orders goes elsewhere. */
	cd_order_all(core);
}

void cd_core_keep(struct cd_core *core, uint64_t until_ns)
{
	core->until_ns = until_ns;
}

bool cd_core_is_sure(const struct cd_core *core)
{
	return core->leads && (env_now_ns(core->env) < core->until_ns ||
			       PLANTED(ctl_no_lease));
}

bool cd_core_leads(const struct cd_core *core)
{
	return core->leads;
}

uint64_t cd_core_term(const struct cd_core *core)
{
	return core->term;
}

void cd_core_wall(struct cd_core *core, uint64_t wall_s)
{
	if (!core->wall_s) {
		core->wall_s = wall_s;
		cd_events_date(core);
	}
	core->wall_s = wall_s;
}

void cd_core_tick(struct cd_core *core, uint64_t wall_s)
{
	cd_core_wall(core, wall_s);
	if (!core->leads)
		return;
	cd_stage_group(core);
	cd_nodes_tick(core);
	cd_tokens_tick(core);
	cd_roles_tick(core);
	cd_looks_tick(core);
	cd_history_tick(core);
	cd_stage_group(core);
	cd_tree_tick(core);
}

/* ---- requests ----------------------------------------------------------- */

/* No early end: the time tells nothing about whose token it was. */
static void recognise_hash(struct cd_core *core,
			   const struct ctl_token_hash *hash,
			   struct cd_who *who)
{
	enum cd_role role;

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
	if (level == CD_LEVEL_TENANT && call->request->is_local)
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
	return 0;
}

/* A map has a ticket, which only the leader signs. */
static bool is_change(const struct ctl_call *call)
{
	return call->request->method != CTL_GET ||
	       call->route->run == cd_handle_map_get;
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
	int err = 0;

	recognise(core, call->request->token, who);
	cd_audit_remember(call, who, who->held);
	call->caller = who;
	/* A tenant sees its own, wherever it comes from. */
	call->sees_all = who->role == CD_ROLE_ADMIN ||
			 who->role == CD_ROLE_NODE ||
			 (who->role == CD_ROLE_NONE && call->request->is_local);
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
		err = ctl_body_check(call, members, ARRAY_LEN(members));
	cd_audit_remember(call, who, who->held);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		call->route->run(core, call);
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
	err = ctl_route_find(routes, ARRAY_LEN(routes), request->method,
			     request->path, &call);
	if (err)
		ctl_reply_last_error(reply, err);
	else
		run(core, &call, &who);
	if (reply->status >= 400)
		core->refused++;
	json_decref(call.body);
}
