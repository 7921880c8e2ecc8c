/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/tokens: what a tenant hands on. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "mem_priv.h"

/* Routes for those who come with such a token. Walks and pages are left out:
 * they work on all that the tenant has. */
static void (*const routes[])(void *ctx, struct ctl_call *call) = {
	handle_status,	   handle_region_list,	handle_region_get,
	handle_connect,	   handle_heartbeat,	handle_conn_heartbeat,
	handle_disconnect, handle_grant_create, handle_grant_delete,
};

int narrow_check_route(const struct ctl_route *route)
{
	for (unsigned i = 0; i < ARRAY_LEN(routes); i++)
		if (routes[i] == route->run)
			return 0;
	return error_set(-EACCES, "this token is for what is there already, "
				  "and for nothing else");
}

int narrow_check_region(const struct ctl_call *call, const char *name,
			bool writes)
{
	const struct mem_narrow *n = call->scope;

	if (n && !narrow_allows(n, name))
		return error_set(-ENOENT, "there is no region %.63s", name);
	if (n && writes && !n->may_write)
		return error_set(-EACCES, "this token may only read");
	return 0;
}

static void format_id(uint64_t id, char out[MEM_NARROW_ID_TEXT])
{
	(void)snprintf(out, MEM_NARROW_ID_TEXT, "%016" PRIx64, id);
}

static json_t *describe(const struct mem_narrow *n, uint64_t now_ns)
{
	char id[MEM_NARROW_ID_TEXT];

	format_id(n->id, id);
	return json_pack("{s:s, s:s, s:s, s:I}", "id", id, "regions",
			 n->regions, "rights", n->may_write ? "rw" : "r",
			 "ms_left",
			 (json_int_t)((n->until_ns - now_ns) / 1000000));
}

static int parse(const struct mem_node *node, const json_t *body,
		 struct mem_narrow *wish)
{
	const char *regions = "*", *rights = "r", *token;
	uint64_t ms = 0;
	int err = ctl_field_string(body, "token", true, &token);

	if (!err)
		err = ctl_token_hash(token, &wish->token);
	if (!err)
		err = ctl_field_string(body, "regions", false, &regions);
	if (!err && !narrow_regions_are_valid(regions))
		err = error_set(-EINVAL, "\"regions\" is a region's name, or "
					 "the beginning of some and '*'");
	if (!err)
		err = ctl_field_string(body, "rights", false, &rights);
	if (!err && strcmp(rights, "r") != 0 && strcmp(rights, "rw") != 0)
		err = error_set(-EINVAL, "\"rights\" is \"r\" or \"rw\"");
	if (!err)
		err = ctl_field_u64(body, "ms", true, MEM_NARROW_MS_MIN,
				    MEM_NARROW_MS_MAX, &ms);
	if (err)
		return err;
	(void)snprintf(wish->regions, sizeof(wish->regions), "%s", regions);
	wish->may_write = rights[1] == 'w';
	wish->until_ns = env_now_ns(node->env) + ms * 1000000;
	return 0;
}

/* Another's token, of whatever kind. */
static bool is_taken(struct mem_node *node, const struct mem_tenant *mine,
		     const struct ctl_token_hash *hash)
{
	struct mem_narrow *n;
	struct mem_tenant *t = tenant_of_narrow(node, hash, &n);

	return tenant_of_token(node, hash) ||
	       ctl_token_hash_equal(&node->admin, hash) ||
	       (t && (t != mine || n->is_ruled));
}

/* Connections that were made with it end with it; the tick does the same for
 * those whose time is over. */
static void end_conns(struct mem_node *node, const struct mem_tenant *t,
		      uint64_t id)
{
	for (unsigned i = 0; i < MEM_CONN_MAX; i++)
		if (node->conns[i] && node->conns[i]->tenant == t &&
		    node->conns[i]->narrow_id == id)
			conn_end(node, node->conns[i], MEM_END_TENANT);
}

void handle_narrow_create(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_tenant *t = call->caller;
	struct mem_narrow wish = {0}, *former;
	uint64_t now_ns = env_now_ns(node->env), id = 0;
	int err = parse(node, call->body, &wish);

	if (!err)
		err = ctl_token_hash(call->request->token, &wish.by);
	if (!err && is_taken(node, t, &wish.token))
		err = error_set(-EEXIST, "this token is in use already");
	former = err ? NULL : narrow_find(&t->narrows, &wish.token, now_ns);
	if (former)
		end_conns(node, t, former->id);
	if (!err)
		err = narrow_make(&t->narrows, &wish, now_ns, &id);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	wish.id = id;
	ctl_reply_json(call->reply, 201, describe(&wish, now_ns));
}

void handle_narrow_list(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	const struct mem_tenant *t = call->caller;
	uint64_t now_ns = env_now_ns(node->env);
	json_t *rows = json_array();

	for (unsigned i = 0; i < MEM_NARROW_MAX; i++) {
		const struct mem_narrow *n = &t->narrows.row[i];

		if (n->id && n->until_ns > now_ns)
			(void)json_array_append_new(rows, describe(n, now_ns));
	}
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "tokens", rows));
}

/* By the token's hash, which is the same at every node, and tells nobody the
 * token. */
void handle_narrow_delete(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_tenant *t = call->caller;
	struct ctl_token_hash hash;
	struct mem_narrow *n = NULL;
	const char *token;
	int err = ctl_field_string(call->body, "token", true, &token);

	if (!err)
		err = ctl_token_hash(token, &hash);
	if (!err) {
		n = narrow_find(&t->narrows, &hash, env_now_ns(node->env));
		err = n && !n->is_ruled
			      ? 0
			      : error_set(-ENOENT, "there is no such token");
	}
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	end_conns(node, t, n->id);
	(void)narrow_end(&t->narrows, n->id); /* it was just found */
	ctl_reply_none(call->reply);
}
