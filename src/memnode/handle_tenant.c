/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/tenants, for the administrator. */
#include <errno.h>
#include <string.h>

#include "env.h"
#include "error.h"
#include "log.h"
#include "mem_priv.h"

static json_t *describe(const struct mem_tenant *t)
{
	return json_pack("{s:s, s:I, s:I, s:i, s:i}", "name", t->name, "quota",
			 (json_int_t)t->quota_bytes, "used",
			 (json_int_t)(t->used_bytes + t->page_bytes), "regions",
			 (int)t->region_count, "connections",
			 (int)t->conn_count);
}

static int find(struct mem_node *node, struct ctl_call *call,
		struct mem_tenant **out)
{
	struct mem_tenant *t = tenant_find(node, call->segment[0]);

	if (!t)
		return error_set(-ENOENT, "there is no tenant %s",
				 call->segment[0]);
	*out = t;
	return 0;
}

/* A token that the administrator brings makes the tenant the same on several
 * nodes; without one we make it. */
static int pick_token(struct mem_node *node, const json_t *body,
		      char text[CTL_TOKEN_TEXT])
{
	uint8_t bytes[CTL_TOKEN_BYTES];
	const char *given = NULL;
	int err = ctl_field_string(body, "token", false, &given);

	if (err)
		return err;
	if (given) {
		if (!ctl_token_is_valid(given))
			return error_set(-EINVAL,
					 "\"token\" has %d lower-case hex "
					 "digits",
					 CTL_TOKEN_CHARS);
		memcpy(text, given, CTL_TOKEN_TEXT);
		return 0;
	}
	env_random(node->env, bytes, sizeof(bytes));
	ctl_token_format(bytes, text);
	return 0;
}

void handle_tenant_create(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct ctl_token_hash hash;
	char token[CTL_TOKEN_TEXT];
	struct mem_tenant *t = NULL;
	uint64_t quota = 0;
	const char *name;
	int err = ctl_field_string(call->body, "name", true, &name);

	if (!err)
		err = ctl_field_u64(call->body, "quota", false, 0, INT64_MAX,
				    &quota);
	if (!err)
		err = pick_token(node, call->body, token);
	if (!err)
		err = ctl_token_hash(token, &hash);
	if (!err)
		err = tenant_add(node, name, quota, &hash, &t);
	if (!err) {
		err = tenant_file_save(node);
		if (err)
			tenant_remove(node, t);
	}
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	log_info("memnode", "tenant %s made", name);
	ctl_reply_json(call->reply, 201,
		       json_pack("{s:s, s:I, s:s}", "name", name, "quota",
				 (json_int_t)quota, "token", token));
}

void handle_tenant_list(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	json_t *rows = json_array();

	for (unsigned i = 0; i < node->tenant_count; i++)
		(void)json_array_append_new(rows, describe(node->tenants[i]));
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "tenants", rows));
}

void handle_tenant_patch(void *ctx, struct ctl_call *call)
{
	struct mem_tenant *t = NULL;
	uint64_t quota, old;
	int err = find(ctx, call, &t);

	if (!err)
		err = ctl_field_u64(call->body, "quota", true, 0, INT64_MAX,
				    &quota);
	if (!err) {
		old = t->quota_bytes;
		t->quota_bytes = quota;
		err = tenant_file_save(ctx);
		if (err)
			t->quota_bytes = old;
	}
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200, describe(t));
}

static bool has_busy_region(const struct mem_node *node,
			    const struct mem_tenant *t)
{
	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		const struct mem_region *r = node->regions[i];

		if (r && r->tenant == t && r->busy)
			return true;
	}
	return false;
}

/* Its connections end and its memory is given back. */
static int clear(struct mem_node *node, struct mem_tenant *t)
{
	/* The regions' deletion lets the lock go: nobody may come in by this
	 * token meanwhile, and an unknown hash is one that nobody has. */
	env_random(node->env, &t->token, sizeof(t->token));
	for (unsigned i = 0; i < MEM_CONN_MAX; i++)
		if (node->conns[i] && node->conns[i]->tenant == t)
			conn_destroy(node, node->conns[i], MEM_END_TENANT);
	space_reap_tenant(node, t);
	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		struct mem_region *r = node->regions[i];
		int err = r && r->tenant == t ? region_delete(node, r) : 0;

		if (err)
			return err;
	}
	return 0;
}

void handle_tenant_delete(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_tenant *t = NULL;
	int err = find(node, call, &t);

	if (!err && strcmp(t->name, "default") == 0)
		err = error_set(-EACCES, "the tenant default always exists");
	if (!err && has_busy_region(node, t))
		err = error_set(-EBUSY,
				"a region of tenant %s is being made, "
				"changed or deleted",
				t->name);
	if (!err)
		err = clear(node, t);
	if (!err) {
		tenant_remove(node, t);
		err = tenant_file_save(node);
	}
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_none(call->reply);
}
