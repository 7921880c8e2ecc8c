/* SPDX-License-Identifier: Apache-2.0 */
/* The node: its life, its routes, who may call them, and the tick. */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/rundir.h"
#include "blocks.h"
#include "census.h"
#include "move.h"
#include "ruled.h"
#include "spill.h"
#include "stock.h"
#include "task.h"
#include "walks_priv.h"

enum {
	PORT = 1,
	CQ_DEPTH = 256,
};

const struct ctl_route node_routes[] = {
	{CTL_GET, "/v1/status", handle_status, MEM_LEVEL_ANY},
	{CTL_GET, "/metrics", handle_metrics, MEM_LEVEL_METRICS},
	{CTL_POST, "/v1/claims", handle_claim_create, MEM_LEVEL_TENANT},
	{CTL_DELETE, "/v1/claims/:/:", handle_claim_delete, MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/moves", handle_move_create, MEM_LEVEL_TENANT},
	{CTL_GET, "/v1/moves", handle_move_list, MEM_LEVEL_TENANT},
	{CTL_PATCH, "/v1/moves/:", handle_move_patch, MEM_LEVEL_TENANT_QUIET},
	{CTL_POST, "/v1/moves/:/give", handle_move_give, MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/moves/:/take", handle_move_take, MEM_LEVEL_TENANT},
	{CTL_DELETE, "/v1/moves/:", handle_move_delete, MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/regions", handle_region_create, MEM_LEVEL_TENANT},
	{CTL_GET, "/v1/regions", handle_region_list, MEM_LEVEL_TENANT},
	{CTL_GET, "/v1/regions/:", handle_region_get, MEM_LEVEL_TENANT},
	{CTL_PATCH, "/v1/regions/:", handle_region_patch, MEM_LEVEL_TENANT},
	{CTL_DELETE, "/v1/regions/:", handle_region_delete, MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/connect", handle_connect, MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/heartbeat", handle_heartbeat, MEM_LEVEL_TENANT_QUIET},
	{CTL_GET, "/v1/connections", handle_conn_list, MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/connections/:/heartbeat", handle_conn_heartbeat,
	 MEM_LEVEL_TENANT_QUIET},
	{CTL_DELETE, "/v1/connections/:", handle_disconnect, MEM_LEVEL_TENANT},
	{CTL_GET, "/v1/grants", handle_grant_list, MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/connections/:/grants", handle_grant_create,
	 MEM_LEVEL_TENANT},
	{CTL_DELETE, "/v1/connections/:/grants/:", handle_grant_delete,
	 MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/connections/:/pages", handle_pages_create,
	 MEM_LEVEL_TENANT},
	{CTL_GET, "/v1/connections/:/pages", handle_pages_get,
	 MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/connections/:/pages/mapped", handle_pages_mapped,
	 MEM_LEVEL_TENANT_QUIET},
	{CTL_POST, "/v1/walks", handle_walk_create, MEM_LEVEL_TENANT},
	{CTL_GET, "/v1/walks", handle_walk_list, MEM_LEVEL_TENANT},
	{CTL_GET, "/v1/walks/:", handle_walk_get, MEM_LEVEL_TENANT},
	{CTL_DELETE, "/v1/walks/:", handle_walk_delete, MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/shared/segments", handle_segment_create,
	 MEM_LEVEL_TENANT},
	{CTL_GET, "/v1/shared/segments", handle_segment_list, MEM_LEVEL_TENANT},
	{CTL_GET, "/v1/shared/segments/:", handle_segment_get,
	 MEM_LEVEL_TENANT},
	{CTL_GET, "/v1/shared/segments/:/:", handle_segment_get_of,
	 MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/shared/segments/:/allow", handle_segment_allow,
	 MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/shared/segments/:/repair", handle_segment_repair,
	 MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/shared/segments/:/move", handle_segment_move,
	 MEM_LEVEL_TENANT},
	{CTL_DELETE, "/v1/shared/segments/:", handle_segment_delete,
	 MEM_LEVEL_TENANT},
	{CTL_GET, "/v1/shared/check", handle_shared_check, MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/shared/check", handle_held_check, MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/shared/members", handle_member_join, MEM_LEVEL_TENANT},
	{CTL_GET, "/v1/shared/members", handle_member_list, MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/shared/members/:/connect", handle_member_connect,
	 MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/shared/members/:/beat", handle_member_beat,
	 MEM_LEVEL_TENANT_QUIET},
	{CTL_DELETE, "/v1/shared/members/:", handle_member_leave,
	 MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/shared/members/:/open", handle_object_open,
	 MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/shared/members/:/close", handle_object_close,
	 MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/shared/members/:/resize", handle_object_resize,
	 MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/shared/members/:/unlink", handle_object_unlink,
	 MEM_LEVEL_TENANT},
	{CTL_POST, "/v1/tenants", handle_tenant_create, MEM_LEVEL_ADMIN},
	{CTL_GET, "/v1/tenants", handle_tenant_list, MEM_LEVEL_ADMIN},
	{CTL_GET, "/v1/tenants/:", handle_tenant_get, MEM_LEVEL_ADMIN},
	{CTL_PATCH, "/v1/tenants/:", handle_tenant_patch, MEM_LEVEL_ADMIN},
	{CTL_DELETE, "/v1/tenants/:", handle_tenant_delete, MEM_LEVEL_ADMIN},
	{CTL_PATCH, "/v1/tenants/:/token", handle_token_patch, MEM_LEVEL_ADMIN},
	{CTL_DELETE, "/v1/tenants/:/token", handle_token_delete,
	 MEM_LEVEL_ADMIN},
	{CTL_PATCH, "/v1/admin/token", handle_admin_token_patch,
	 MEM_LEVEL_ADMIN},
	{CTL_POST, "/v1/tokens", handle_narrow_create, MEM_LEVEL_TENANT},
	{CTL_GET, "/v1/tokens", handle_narrow_list, MEM_LEVEL_TENANT},
	{CTL_DELETE, "/v1/tokens", handle_narrow_delete, MEM_LEVEL_TENANT},
};
const unsigned node_route_count = ARRAY_LEN(node_routes);

/* Only walks, and lists of many connections, are larger. */
static const struct ctl_body_max body_max[] = {
	{handle_claim_create, MEM_BODY_SMALL},
	{handle_claim_delete, MEM_BODY_SMALL},
	{handle_move_create, MEM_BODY_SMALL},
	{handle_move_patch, MEM_BODY_SMALL},
	{handle_move_give, MEM_BODY_SMALL},
	{handle_move_take, MEM_BODY_SMALL},
	{handle_move_delete, MEM_BODY_SMALL},
	{handle_region_create, MEM_BODY_SMALL},
	{handle_region_patch, MEM_BODY_SMALL},
	{handle_region_delete, MEM_BODY_SMALL},
	{handle_connect, MEM_BODY_SMALL},
	{handle_grant_create, MEM_BODY_SMALL},
	{handle_pages_create, MEM_BODY_SMALL},
	{handle_segment_create, MEM_BODY_SMALL},
	{handle_segment_allow, MEM_BODY_SMALL},
	{handle_segment_repair, MEM_BODY_SMALL},
	{handle_segment_move, MEM_BODY_SMALL},
	{handle_segment_delete, MEM_BODY_SMALL},
	{handle_member_join, MEM_BODY_SMALL},
	{handle_member_connect, MEM_BODY_SMALL},
	{handle_member_beat, MEM_BODY_SMALL},
	{handle_member_leave, MEM_BODY_SMALL},
	{handle_held_check, MEM_BODY_SMALL},
	{handle_object_open, MEM_BODY_SMALL},
	{handle_object_close, MEM_BODY_SMALL},
	{handle_object_resize, MEM_BODY_SMALL},
	{handle_object_unlink, MEM_BODY_SMALL},
	{handle_tenant_create, MEM_BODY_SMALL},
	{handle_tenant_patch, MEM_BODY_SMALL},
	{handle_token_patch, MEM_BODY_SMALL},
	{handle_admin_token_patch, MEM_BODY_SMALL},
	{handle_narrow_create, MEM_BODY_SMALL},
	{handle_narrow_delete, MEM_BODY_SMALL},
};

const struct ctl_routes mem_routes = {node_routes, ARRAY_LEN(node_routes),
				      body_max, ARRAY_LEN(body_max)};

static const struct ctl_members members[] = {
	{handle_claim_create, "name holder ms"},
	{handle_move_create, "move regions ms"},
	{handle_move_patch, "ms seal"},
	{handle_move_give, "to"},
	{handle_region_create,
	 "name size memory owner switch nodes_at nodes node_bytes part_of move "
	 "birth from from_run ms"},
	{handle_region_patch, "size force"},
	{handle_region_delete, "force"},
	{handle_connect,
	 "proto gid qpn psn mtu rd_atomic access caps client patience_ms auth "
	 "session pages owner without walk blocks"},
	{handle_heartbeat, "connections"},
	{handle_grant_create, "region rights offset length revocable move"},
	{handle_pages_create, "version count bytes depth pieces sparse"},
	{handle_pages_mapped, "pages"},
	{handle_walk_create, "image"},
	{handle_segment_create, "name size copies on_loss"},
	{handle_segment_allow, "tenant right offset length"},
	{handle_held_check, "machine term held"},
	{handle_member_join, "proto name gid mtu talk lanes"},
	{handle_member_connect, "proto gid mtu talk lanes"},
	{handle_tenant_create, "name token quota limits"},
	{handle_tenant_patch, "quota limits"},
	{handle_token_patch, "token"},
	{handle_admin_token_patch, "token"},
	{handle_narrow_create, "token regions rights ms"},
	{handle_narrow_delete, "token"},
};

/* One more place: requests that no route took. */
STATIC_ASSERT(ARRAY_LEN(node_routes) < MEM_ROUTE_MAX, "request counters");

/* ---- life --------------------------------------------------------------- */

static int open_nic(struct mem_node *node)
{
	struct aqdv_device_attr extra = {0};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	if (list && list[0])
		node->context = ibv_open_device(list[0]);
	if (list)
		ibv_free_device_list(list);
	if (!node->context)
		return error_set(-ENODEV,
				 "no RDMA device can be opened; 'aquifer "
				 "doctor' says more");
	if (ibv_query_device(node->context, &node->device) ||
	    ibv_query_port(node->context, PORT, &port))
		return error_set(-EIO, "the NIC does not say what it can");
	node->mtu = port.active_mtu;
	if (aqdv_query_device(node->context, &extra) == 0)
		node->nic_caps = extra.caps;
	tenant_limit_init(node);
	if (node->has_auth && !(node->nic_caps & AQDV_CAP_AUTH))
		return error_set(-EOPNOTSUPP,
				 "nic.auth = psk: this NIC cannot authenticate "
				 "packets");
	node->cq = ibv_create_cq(node->context, CQ_DEPTH, NULL, NULL, 0);
	if (!node->cq)
		return error_set(-errno, "no completion queue: %s",
				 strerror(errno));
	return 0;
}

static int add_default_tenant(struct mem_node *node, const char *token)
{
	struct ctl_token_hash hash;
	struct mem_tenant *t;
	int err = ctl_token_hash(token, &hash);

	if (!err)
		err = tenant_add(node, "default", &hash, &t);
	if (!err)
		t->state = MEM_TENANT_LIVE;
	return err;
}

static void set_default(uint32_t *limit, uint32_t value)
{
	*limit = *limit ? *limit : value;
}

static void set_vault(struct vault_place *v, const struct mem_node_config *c)
{
	const char *region = c->vault_region && *c->vault_region
				     ? c->vault_region
				     : "us-east-1";

	(void)snprintf(v->path, sizeof(v->path), "%s",
		       c->vault ? c->vault : "");
	(void)snprintf(v->region, sizeof(v->region), "%s", region);
	if (c->vault_endpoint && *c->vault_endpoint)
		(void)snprintf(v->endpoint, sizeof(v->endpoint), "%s",
			       c->vault_endpoint);
	else
		(void)snprintf(v->endpoint, sizeof(v->endpoint),
			       "https://s3.%s.amazonaws.com", v->region);
}

/* An adapter pins what it registers, which the kernel does not permit of
 * files. */
static int open_spill(struct mem_node *node, const struct mem_node_config *c)
{
	if (!c->spill_dir)
		return 0;
	if (!(node->nic_caps & AQDV_CAP_DIRECT))
		return error_set(-EOPNOTSUPP,
				 "a node with a hardware adapter has no spill "
				 "tier");
	return spill_open(c->spill_dir, c->spill_bytes, &node->spill);
}

int mem_node_create(const struct mem_node_config *c, struct mem_node **out)
{
	struct mem_node *node;
	uint64_t first_epoch, incarnation;
	pthread_condattr_t attr;
	int err;

	if (!rundir_rack_is_valid(c->name) || c->pool_bytes == 0 ||
	    c->pool_bytes > INT64_MAX)
		return error_set(-EINVAL,
				 "a node has a name of 1 to %d of a-z, 0-9 and "
				 "'-', and a pool",
				 MEM_NODE_NAME_MAX);
	node = calloc(1, sizeof(*node));
	if (!node)
		return error_set(-ENOMEM, "no memory for the node");
	pthread_mutex_init(&node->lock, NULL);
	pthread_cond_init(&node->changed, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&node->granted, &attr);
	pthread_condattr_destroy(&attr);
	node->conflicts = json_array();
	list_init(&node->inside);
	list_init(&node->ended);
	list_init(&node->sessions);
	list_init(&node->ended_spaces);
	(void)snprintf(node->name, sizeof(node->name), "%s", c->name);
	node->env = c->env;
	node->start_ns = env_now_ns(c->env);
	node->pool_bytes = c->pool_bytes;
	node->has_numa = c->has_numa;
	node->numa = c->numa;
	set_vault(&node->vault, c);
	node->audit = c->audit;
	node->has_auth = c->has_auth;
	node->keep_token = c->keep_token;
	node->keep_ctx = c->keep_ctx;
	node->walk_config = c->walk;
	set_default(&node->walk_config.iterations, MEM_WALK_ITERATIONS);
	set_default(&node->walk_config.longest, MEM_WALK_LONGEST);
	set_default(&node->walk_config.programs, MEM_WALK_PROGRAMS);
	/* Random, so that a node that was restarted does not repeat the epochs
	 * that clients still remember; half of them are left to count up. */
	env_random(c->env, &first_epoch, sizeof(first_epoch));
	node->last_epoch = (uint32_t)first_epoch & INT32_MAX;
	node->last_region_id = (uint16_t)(first_epoch >> 32);
	env_random(c->env, &incarnation, sizeof(incarnation));
	ctl_incarnation_format(incarnation, node->incarnation);
	err = ctl_token_hash(c->admin_token, &node->admin);
	if (!err && c->state_path) {
		node->state_path = strdup(c->state_path);
		err = node->state_path ? 0
				       : error_set(-ENOMEM, "no memory left");
	}
	if (!err && c->rundir)
		err = census_create(c->rundir, &node->census);
	if (!err)
		err = open_nic(node);
	if (!err)
		err = open_spill(node, c);
	if (!err)
		err = walks_open(node);
	if (!err)
		err = add_default_tenant(node, c->default_token);
	if (!err)
		err = tenant_file_load(node);
	if (!err && c->shared_bytes)
		err = shared_open(node, c);
	node->at_switch.ctl.carry = c->switch_carry;
	node->at_switch.ctl.carry_ctx = c->switch_ctx;
	if (!err && c->switch_path)
		err = declare_open(node, c->switch_path);
	/* Last: its thread is the first beside this one, which has no lock. */
	if (!err)
		err = mem_stock_create(node, c->ready_bytes, &node->stock);
	if (err) {
		mem_node_destroy(node);
		return err;
	}
	*out = node;
	return 0;
}

void mem_node_destroy(struct mem_node *node)
{
	struct mem_visit visit;
	int err;

	mem_tasks_stop(node);
	mem_stock_stop(node->stock);
	node_enter(node, &visit);
	for (unsigned i = 0; i < MEM_CONN_MAX; i++)
		if (node->conns[i])
			conn_end(node, node->conns[i], MEM_END_STOP);
	space_reap(node);
	mem_blocks_end(node, NULL);
	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		err = node->regions[i] ? region_delete(node, node->regions[i])
				       : 0;
		ASSERT(err ==
		       0); /* no request is on its way, so none is busy */
	}
	declare_close(node);
	shared_close(node);
	while (node->tenant_count)
		tenant_remove(node, node->tenants[0]);
	walks_close(node);
	node_leave(node, &visit);
	page_thread_stop(node);
	mem_blocks_stop(node);
	mem_stock_destroy(node->stock);
	if (node->cq)
		(void)ibv_destroy_cq(node->cq); /* unused by now */
	if (node->context)
		(void)ibv_close_device(node->context); /* the end anyway */
	pthread_cond_destroy(&node->granted);
	pthread_cond_destroy(&node->changed);
	json_decref(node->conflicts);
	pthread_mutex_destroy(&node->lock);
	census_destroy(node->census);
	spill_close(node->spill);
	free(node->state_path);
	free(node);
}

const char *mem_node_incarnation(const struct mem_node *node)
{
	return node->incarnation;
}

/* ---- requests ----------------------------------------------------------- */

static void count_request(struct mem_node *node, unsigned route,
			  unsigned status)
{
	struct mem_request_count *c = &node->requests[route];

	for (unsigned i = 0; i < MEM_STATUS_COUNT; i++) {
		if (c->count[i] && c->status[i] != status)
			continue;
		c->status[i] = status;
		c->count[i]++;
		return;
	}
}

/* A request, with what can be found out about it without the lock. */
struct inquiry {
	struct ctl_call call;
	struct ctl_token_hash hash;
	bool has_hash;
	bool is_admin;
	int body_err; /* of call.body, with its words */
	char body_words[ERROR_TEXT_MAX];
	char who[MEM_TENANT_NAME_MAX + 24]; /* for the audit log */
};

/* Whose token it is: a tenant's, one that a tenant has handed on, or the
 * administrator's. */
static void identify(struct mem_node *node, struct inquiry *q)
{
	struct mem_narrow *narrow = NULL;
	struct mem_tenant *tenant;

	if (!q->has_hash)
		return;
	tenant = tenant_of_token(node, &q->hash);
	if (!tenant)
		tenant = tenant_of_narrow(node, &q->hash, &narrow);
	if (tenant && tenant->state != MEM_TENANT_LIVE)
		tenant = NULL;
	q->is_admin = ctl_token_hash_equal(&node->admin, &q->hash);
	q->call.caller = tenant;
	q->call.scope = tenant ? narrow : NULL;
	if (q->is_admin || tenant)
		(void)snprintf(q->who, sizeof(q->who), "%s",
			       q->is_admin ? "admin" : tenant->name);
	if (q->call.scope)
		(void)snprintf(q->who, sizeof(q->who), "%s:%" PRIu64,
			       tenant->name, narrow->id);
}

/* -EPERM: nobody we know; -EACCES: somebody who may not. */
static int authorize(struct mem_node *node, struct inquiry *q)
{
	struct ctl_call *call = &q->call;
	const struct ctl_request *req = call->request;
	enum mem_level level = call->route->level;

	identify(node, q);
	call->sees_all = q->is_admin || req->is_local;
	if (level == MEM_LEVEL_ANY ||
	    (level == MEM_LEVEL_METRICS && req->is_local))
		return 0;
	if (!req->token)
		return error_set(-EPERM,
				 "this needs a header 'Authorization: Bearer "
				 "TOKEN'");
	if (!call->caller && !q->is_admin)
		return error_set(-EPERM, "the token is not known here");
	if (level != MEM_LEVEL_ADMIN && level != MEM_LEVEL_METRICS &&
	    !call->caller)
		return error_set(-EACCES, "the administrator's token has no "
					  "regions; use a tenant's");
	if (level == MEM_LEVEL_ADMIN && !q->is_admin)
		return error_set(-EACCES, "only the administrator may do this");
	return call->scope ? narrow_check_route(call->route) : 0;
}

/* What lacked an allowance is tried again when the controller has granted it.
 */
static void run_route(struct mem_node *node, struct ctl_call *call)
{
	uint64_t deadline_ns =
		env_now_ns(node->env) + MEM_GRANT_MS * 1000000ull;

	call->route->run(node, call);
	while (call->reply->status == 507 &&
	       ruled_await(node, call->caller, deadline_ns)) {
		ctl_reply_release(call->reply);
		call->route->run(node, call);
	}
}

static void run_locked(struct mem_node *node, struct inquiry *q)
{
	struct ctl_call *call = &q->call;
	int err = authorize(node, q);
	uint64_t wait_ns = 0;

	if (!q->is_admin && !rate_take(node, call, &wait_ns)) {
		ctl_reply_too_many(call->reply,
				   *q->who ? q->who : call->request->origin,
				   wait_ns);
	} else if (err == -EPERM) {
		ctl_reply_last_error(call->reply, -EACCES);
		call->reply->status = 401; /* with a token it may be allowed */
	} else if (err) {
		ctl_reply_last_error(call->reply, err);
	} else if (q->body_err) {
		ctl_reply_error(call->reply, q->body_err, "%s", q->body_words);
	} else {
		run_route(node, call);
	}
}

/* Hashing and parsing are not done under the lock. */
static void prepare(struct inquiry *q)
{
	const struct ctl_request *req = q->call.request;

	q->has_hash = req->token && ctl_token_hash(req->token, &q->hash) == 0;
	q->body_err = ctl_body_parse(req->body, req->body_bytes, &q->call.body);
	if (!q->body_err)
		q->body_err =
			ctl_body_check(&q->call, members, ARRAY_LEN(members));
	if (q->body_err)
		(void)snprintf(q->body_words, sizeof(q->body_words), "%s",
			       error_last());
	error_clear();
}

static void audit(struct mem_node *node, const struct inquiry *q)
{
	const struct ctl_call *call = &q->call;
	struct ctl_audit_event e = {
		.who = q->who,
		.name = json_string_value(json_object_get(call->body, "name")),
		.is_quiet = call->route &&
			    call->route->level == MEM_LEVEL_TENANT_QUIET,
	};

	if (node->audit)
		ctl_audit_note(node->audit, call->request, &e,
			       call->reply->status, env_now_ns(node->env));
}

void mem_node_handle(void *ctx, const struct ctl_request *request,
		     struct ctl_reply *reply)
{
	struct mem_node *node = ctx;
	struct inquiry q = {.call = {.request = request, .reply = reply}};
	unsigned route = node_route_count;
	struct mem_visit visit;
	int err;

	error_clear();
	err = ctl_route_find(node_routes, node_route_count, request->method,
			     request->path, &q.call);
	if (!err)
		prepare(&q);
	node_enter(node, &visit);
	if (err) {
		ctl_reply_last_error(reply, err);
	} else {
		route = (unsigned)(q.call.route - node_routes);
		run_locked(node, &q);
		shared_note_call(node, request);
	}
	count_request(node, route, reply->status);
	walks_reap(node);
	space_reap(node);
	node_leave(node, &visit);
	audit(node, &q);
	json_decref(q.call.body);
	log_debug("memnode", "%s %.100s: %u", ctl_method_name(request->method),
		  request->path, reply->status);
}

/* ---- the tick ----------------------------------------------------------- */

static bool is_broken(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0 &&
	       attr.qp_state == IBV_QPS_ERR;
}

static bool is_silent(const struct mem_node *node, const struct mem_conn *c,
		      uint64_t now_ns)
{
	uint64_t since_ns = u64_max(c->seen_ns, node->awake.since_ns);

	/* What works on another's pages ends with that one. */
	return (c->role == MEM_ROLE_PLAIN || c->role == MEM_ROLE_BLOCKS) &&
	       now_ns > since_ns &&
	       now_ns - since_ns > c->patience_ms * 1000000ull;
}

void mem_node_tick(struct mem_node *node)
{
	struct mem_visit visit;
	uint64_t now_ns;

	declare_tick(node);
	if (node->census)
		census_tick(node->census, env_now_ns(node->env));
	node_enter(node, &visit);
	now_ns = env_now_ns(node->env);
	awake_look(&node->awake, now_ns, MEM_PAUSE_MS * 1000000ull);
	for (unsigned i = 0; i < MEM_CONN_MAX; i++) {
		struct mem_conn *c = node->conns[i];

		if (!c)
			continue;
		if (is_silent(node, c, now_ns))
			conn_end(node, c, MEM_END_SILENT);
		else if (c->narrow_id && !narrow_is_live(&c->tenant->narrows,
							 c->narrow_id, now_ns))
			conn_end(node, c, MEM_END_TENANT);
		else if (aqdv_peer_gone(c->qp) == 1)
			conn_end(node, c, MEM_END_GONE);
		else if (is_broken(c->qp) || space_conn_is_broken(c))
			conn_end(node, c, MEM_END_BROKEN);
	}
	session_expire(node, NULL);
	region_expire(node);
	move_tick(node);
	ruled_tick(node);
	tenant_tick(node);
	space_tick(node);
	mem_blocks_tick(node);
	walks_reap(node);
	space_reap(node);
	node_leave(node, &visit);
}
