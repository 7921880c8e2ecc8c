/* SPDX-License-Identifier: Apache-2.0 */
/* The core: its routes, its life, and whether it leads. */
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
	{CTL_GET, "/v1/nodes/:", cd_handle_node_get, CD_LEVEL_ADMIN},
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
	{CTL_PATCH, "/v1/tenants/:/tokens/:", cd_handle_token_renew,
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
	{cd_handle_node_get, ""},
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
	 "incarnation epoch used regions connections ops tenants shares names "
	 "names_complete own conflicts drained drain_order spill spilled "
	 "blocks freed failed "
	 "tasks given kept taken sealed moving moved chained links"},
	{cd_handle_node_leave, "incarnation"},
	{cd_handle_node_drain, "drain"},
	{cd_handle_place, "size copies policy"},
	{cd_handle_tenant_create, "name token quota limits"},
	{cd_handle_tenant_patch, "quota limits"},
	{cd_handle_token_patch, "token"},
	{cd_handle_token_create, "token ttl_s path rights"},
	{cd_handle_token_renew, "ttl_s"},
	{cd_handle_admin_token, "token"},
	{cd_handle_role_create, "token ttl_s"},
	{cd_handle_look, ""},
	{cd_handle_look_token, ""},
	{cd_handle_job_list, ""},
	{cd_handle_ns_get, ""},
	{cd_handle_tree_get, ""},
	{cd_handle_map_get, ""},
	{cd_handle_job_create, "name plan lease_ms on_expiry copies"},
	{cd_handle_renew, "paths"},
	{cd_handle_ns_make,
	 "kind parents make_parents lease_ms on_expiry block_bytes bound "
	 "copies"},
	{cd_handle_ns_patch, "to lease_ms on_expiry"},
	{cd_handle_ns_delete, "recursive"},
	{cd_handle_map_grow, "after most"},
	{cd_handle_flush, "freeze"},
	{cd_handle_load, "back"},
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

int cd_route_check_body(struct ctl_call *call)
{
	return ctl_body_check(call, members, ARRAY_LEN(members));
}

const char *cd_route_members(const struct ctl_route *route)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (members[i].run == route->run)
			return members[i].words;
	return NULL;
}

bool cd_request_is_renewal(const struct ctl_request *request)
{
	return request->method == CTL_POST &&
	       strcmp(request->path, "/v1/renew") == 0;
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
	if (c->vault_key)
		core->vault_key = *c->vault_key;
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
	vault_key_forget(&core->vault_key);
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
