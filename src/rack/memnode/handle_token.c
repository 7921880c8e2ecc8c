/* SPDX-License-Identifier: Apache-2.0 */
/* Other tokens: of tenants, and of the administrator. Whoever came with the old
 * one is shut out at once. */
#include <errno.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/lock.h"
#include "ruled.h"

static bool is_default(const struct mem_tenant *t)
{
	return strcmp(t->name, "default") == 0;
}

/* Disks take their time, so not under the lock; a change is under way, and no
 * other one begins. */
static int keep(struct mem_node *node, bool is_admin, const char *text)
{
	int err;

	lock_assert_mutex_held(&node->lock);
	ASSERT(node->is_changing);
	if (!node->keep_token)
		return error_set(-EACCES, "this node cannot change its token");
	pthread_mutex_unlock(&node->lock);
	err = node->keep_token(node->keep_ctx, is_admin, text);
	pthread_mutex_lock(&node->lock);
	return err;
}

static void undo_token(struct mem_node *node, struct mem_tenant *t,
		       const void *before)
{
	const struct ctl_token_hash *hash = before;

	(void)node;
	t->token = *hash;
}

static int check_free(const struct mem_node *node,
		      const struct ctl_token_hash *hash)
{
	return tenant_of_token(node, hash) ||
			       ctl_token_hash_equal(&node->admin, hash)
		       ? error_set(-EEXIST, "this token is in use already")
		       : 0;
}

/* The token of "default" is a file; of others the node keeps the hash. `text`
 * is NULL where nobody shall know the token. */
static int change(struct mem_node *node, struct mem_tenant *t,
		  const struct ctl_token_hash *hash, const char *text)
{
	const struct ctl_token_hash before = t->token;
	int err = check_free(node, hash);

	if (err)
		return err;
	if (is_default(t)) {
		err = keep(node, false, text);
		if (!err)
			t->token = *hash;
		return err;
	}
	t->token = *hash;
	return tenant_save_or(node, undo_token, t, &before);
}

static int patch(struct mem_node *node, struct ctl_call *call, const char *text,
		 struct mem_tenant **out)
{
	struct ctl_token_hash hash;
	int err = tenant_of_call(node, call, out);

	if (!err)
		err = ruled_check(node, *out);
	if (!err)
		err = ctl_token_hash(text, &hash);
	/* Who asks again because an answer was lost changes nothing. */
	if (err || ctl_token_hash_equal(&(*out)->token, &hash))
		return err;
	err = change(node, *out, &hash, text);
	if (!err) {
		narrow_end_all(&(*out)->narrows);
		switch_walk_tenant_changed(node, *out);
		tenant_end_conns(node, *out, false);
	}
	return err;
}

void handle_token_patch(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	char text[CTL_TOKEN_TEXT];
	struct mem_tenant *t = NULL;
	json_t *tree;
	int err = tenant_pick_token(node, call->body, text);

	if (!err) {
		tenant_change_begin(node);
		err = patch(node, call, text, &t);
		tenant_change_end(node);
	}
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	tree = tenant_describe(t);
	(void)json_object_set_new(tree, "token", json_string(text));
	ctl_reply_json(call->reply, 200, tree);
}

static int revoke(struct mem_node *node, struct ctl_call *call)
{
	struct ctl_token_hash hash;
	struct mem_tenant *t;
	int err = tenant_of_call(node, call, &t);

	if (!err)
		err = ruled_check(node, t);
	if (err)
		return err;
	if (is_default(t))
		return error_set(-EACCES,
				 "the tenant default always has a token; give "
				 "it another one");
	/* No token has this hash, or nobody knows it. */
	env_random(node->env, hash.bytes, sizeof(hash.bytes));
	err = change(node, t, &hash, NULL);
	if (!err) {
		narrow_end_all(&t->narrows);
		switch_walk_tenant_changed(node, t);
		tenant_end_conns(node, t, false);
	}
	return err;
}

void handle_token_delete(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	int err;

	tenant_change_begin(node);
	err = revoke(node, call);
	tenant_change_end(node);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_none(call->reply);
}

static int patch_admin(struct mem_node *node, const char *text)
{
	struct ctl_token_hash hash;
	int err = ctl_token_hash(text, &hash);

	if (err || ctl_token_hash_equal(&node->admin, &hash))
		return err;
	err = check_free(node, &hash);
	if (!err)
		err = keep(node, true, text);
	if (!err)
		node->admin = hash;
	return err;
}

void handle_admin_token_patch(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	char text[CTL_TOKEN_TEXT];
	int err = tenant_pick_token(node, call->body, text);

	if (!err) {
		tenant_change_begin(node);
		err = patch_admin(node, text);
		tenant_change_end(node);
	}
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200,
			       json_pack("{s:s}", "token", text));
}
