/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/tenants, for the administrator. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "ruled.h"

json_t *tenant_describe(const struct mem_tenant *t)
{
	json_t *tree = json_pack("{s:s, s:I, s:I, s:o, s:b}", "name", t->name,
				 "quota", (json_int_t)t->quota_bytes, "used",
				 (json_int_t)(t->used_bytes + t->page_bytes),
				 "limits", tenant_limit_json(t, false),
				 "ending", t->state == MEM_TENANT_ENDING);

	for (unsigned i = 0; i < MEM_LIMIT_COUNT; i++)
		(void)json_object_set_new(
			tree, tenant_limit_name((enum mem_limit)i),
			json_integer((json_int_t)t->taken[i]));
	return tree;
}

int tenant_of_call(const struct mem_node *node, const struct ctl_call *call,
		   struct mem_tenant **out)
{
	struct mem_tenant *t = tenant_find(node, call->segment[0]);

	if (!t || t->state == MEM_TENANT_ENDING)
		return error_set(-ENOENT, "there is no tenant %s",
				 call->segment[0]);
	*out = t;
	return 0;
}

int tenant_pick_token(struct mem_node *node, const json_t *body,
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

int tenant_save_or(struct mem_node *node, tenant_undo_fn undo,
		   struct mem_tenant *t, const void *before)
{
	char words[ERROR_TEXT_MAX];
	int err = tenant_file_save(node);

	if (!err)
		return 0;
	(void)snprintf(words, sizeof(words), "%s", error_last());
	undo(node, t, before);
	if (tenant_file_save(node))
		log_warn("memnode", "%s", error_last());
	return error_set(err, "%s", words);
}

static void undo_create(struct mem_node *node, struct mem_tenant *t,
			const void *before)
{
	(void)before;
	tenant_remove(node, t);
}

static int create(struct mem_node *node, const json_t *body, const char *name,
		  const struct ctl_token_hash *hash, struct mem_tenant **out)
{
	uint64_t quota = 0;
	int err = ctl_field_u64(body, "quota", false, 0, INT64_MAX, &quota);

	if (!err)
		err = tenant_add(node, name, hash, out);
	if (err)
		return err;
	(*out)->quota_bytes = quota;
	err = tenant_limit_parse(node, body, *out);
	if (err) {
		tenant_remove(node, *out);
		return err;
	}
	err = tenant_save_or(node, undo_create, *out, NULL);
	if (!err)
		(*out)->state = MEM_TENANT_LIVE;
	return err;
}

void handle_tenant_create(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct ctl_token_hash hash;
	char token[CTL_TOKEN_TEXT];
	struct mem_tenant *t = NULL;
	const char *name;
	json_t *tree;
	int err = ctl_field_string(call->body, "name", true, &name);

	if (!err)
		err = tenant_pick_token(node, call->body, token);
	if (!err)
		err = ctl_token_hash(token, &hash);
	if (!err) {
		tenant_change_begin(node);
		err = create(node, call->body, name, &hash, &t);
		tenant_change_end(node);
	}
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	tree = tenant_describe(t);
	(void)json_object_set_new(tree, "token", json_string(token));
	ctl_reply_json(call->reply, 201, tree);
}

void handle_tenant_list(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	json_t *rows = json_array();

	for (unsigned i = 0; i < node->tenant_count; i++)
		(void)json_array_append_new(rows,
					    tenant_describe(node->tenants[i]));
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "tenants", rows));
}

/* With the names of what it has, so that who removes it sees what is lost. */
void handle_tenant_get(void *ctx, struct ctl_call *call)
{
	const struct mem_node *node = ctx;
	json_t *tree, *names = json_array();
	struct mem_tenant *t = NULL;
	int err = tenant_of_call(node, call, &t);

	if (err) {
		json_decref(names);
		ctl_reply_last_error(call->reply, err);
		return;
	}
	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		const struct mem_region *r = node->regions[i];

		if (r && r->tenant == t)
			(void)json_array_append_new(
				names,
				json_pack("{s:s, s:I}", "name", r->name, "size",
					  (json_int_t)r->size_bytes));
	}
	tree = tenant_describe(t);
	(void)json_object_set_new(tree, "names", names);
	ctl_reply_json(call->reply, 200, tree);
}

struct settings {
	uint64_t quota_bytes;
	uint64_t limit[MEM_LIMIT_COUNT];
	bool is_set[MEM_LIMIT_COUNT];
};

static void undo_patch(struct mem_node *node, struct mem_tenant *t,
		       const void *before)
{
	const struct settings *s = before;

	(void)node;
	t->quota_bytes = s->quota_bytes;
	memcpy(t->limit, s->limit, sizeof(t->limit));
	memcpy(t->is_set, s->is_set, sizeof(t->is_set));
}

static int patch(struct mem_node *node, struct ctl_call *call,
		 struct mem_tenant **out)
{
	struct settings before;
	struct mem_tenant *t;
	uint64_t quota;
	int err = tenant_of_call(node, call, out);

	if (!err)
		err = ruled_check(node, *out);
	if (err)
		return err;
	t = *out;
	before.quota_bytes = quota = t->quota_bytes;
	memcpy(before.limit, t->limit, sizeof(t->limit));
	memcpy(before.is_set, t->is_set, sizeof(t->is_set));
	if (!json_object_get(call->body, "quota") &&
	    !json_object_get(call->body, "limits"))
		return error_set(-EINVAL, "\"quota\" or \"limits\" is what "
					  "can be changed");
	err = ctl_field_u64(call->body, "quota", false, 0, INT64_MAX, &quota);
	if (!err)
		err = tenant_limit_parse(node, call->body, t);
	if (err)
		return err;
	t->quota_bytes = quota;
	return tenant_save_or(node, undo_patch, t, &before);
}

void handle_tenant_patch(void *ctx, struct ctl_call *call)
{
	struct mem_tenant *t = NULL;
	int err;

	tenant_change_begin(ctx);
	err = patch(ctx, call, &t);
	tenant_change_end(ctx);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200, tenant_describe(t));
}

static void undo_delete(struct mem_node *node, struct mem_tenant *t,
			const void *before)
{
	(void)node;
	(void)before;
	t->state = MEM_TENANT_LIVE;
}

/* The file comes first: what it does not hold cannot come back. */
static int strike(struct mem_node *node, struct ctl_call *call,
		  struct mem_tenant **out)
{
	int err = tenant_of_call(node, call, out);

	if (!err)
		err = ruled_check(node, *out);
	if (err)
		return err;
	if (strcmp((*out)->name, "default") == 0)
		return error_set(-EACCES, "the tenant default always exists");
	(*out)->state = MEM_TENANT_LEAVING;
	err = tenant_save_or(node, undo_delete, *out, NULL);
	if (!err)
		(*out)->state = MEM_TENANT_ENDING;
	return err;
}

void handle_tenant_delete(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_tenant *t = NULL;
	int err;

	tenant_change_begin(node);
	err = strike(node, call, &t);
	tenant_change_end(node);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	tenant_end(node, t);
	ctl_reply_none(call->reply);
}
