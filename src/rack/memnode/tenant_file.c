/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants outlive the node; memory does not. One JSON file, replaced as a
 * whole, holds names, quotas and hashes of tokens, never a token.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/lock.h"
#include "ruled.h"
#include "state_file.h"

enum {
	FILE_VERSION = 1,
};

static int load_one(struct mem_node *node, json_t *row)
{
	struct ctl_token_hash token;
	const char *name, *hash;
	struct mem_tenant *t = NULL;
	uint64_t quota = 0;
	int err;

	err = ctl_field_string(row, "name", true, &name);
	if (!err)
		err = ctl_field_u64(row, "quota", false, 0, INT64_MAX, &quota);
	if (!err)
		t = tenant_find(node, name);
	if (!err && !t) { /* the token of "default" is the rack's */
		err = ctl_field_string(row, "token_sha256", true, &hash);
		if (!err)
			err = ctl_token_hash_parse(hash, &token);
		if (!err)
			err = tenant_add(node, name, &token, &t);
	}
	if (err)
		return err;
	tenant_limit_cut(node, row);
	err = tenant_limit_parse(node, row, t);
	if (err)
		return err;
	t->quota_bytes = quota;
	t->state = MEM_TENANT_LIVE;
	return ruled_load(t, row);
}

int tenant_file_load(struct mem_node *node)
{
	const json_t *rows, *version;
	json_error_t why;
	json_t *tree, *row;
	struct stat st;
	size_t i;
	int err = 0;

	if (!node->state_path || access(node->state_path, F_OK) < 0)
		return 0;
	if (stat(node->state_path, &st) < 0 || st.st_size > MEM_STATE_FILE_MAX)
		return error_set(-E2BIG, "%s is too large", node->state_path);
	tree = json_load_file(node->state_path, JSON_REJECT_DUPLICATES, &why);
	if (!tree)
		return error_set(-EBADMSG, "%s: line %d: %s", node->state_path,
				 why.line, why.text);
	version = json_object_get(tree, "version");
	rows = json_object_get(tree, "tenants");
	if (json_integer_value(version) != FILE_VERSION ||
	    !json_is_array(rows)) {
		err = error_set(-EPROTONOSUPPORT, "not version %d",
				FILE_VERSION);
	} else {
		json_array_foreach(rows, i, row)
		{
			err = load_one(node, row);
			if (err)
				break;
		}
	}
	json_decref(tree);
	return err ? error_prefix(err, "%s: ", node->state_path) : 0;
}

static json_t *to_json(const struct mem_node *node)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < node->tenant_count; i++) {
		const struct mem_tenant *t = node->tenants[i];
		char hash[CTL_TOKEN_TEXT];

		if (t->state == MEM_TENANT_LEAVING ||
		    t->state == MEM_TENANT_ENDING)
			continue;
		ctl_token_hash_format(&t->token, hash);
		(void)json_array_append_new(
			rows,
			json_pack("{s:s, s:I, s:s, s:o, s:b, s:o}", "name",
				  t->name, "quota", (json_int_t)t->quota_bytes,
				  "token_sha256", hash, "limits",
				  tenant_limit_json(t, true), "ruled",
				  t->is_ruled, "more_sha256",
				  ruled_tokens_json(t)));
	}
	return json_pack("{s:i, s:o}", "version", FILE_VERSION, "tenants",
			 rows);
}

int tenant_file_save(struct mem_node *node)
{
	json_t *tree;
	char *text;
	int err;

	lock_assert_mutex_held(&node->lock);
	if (!node->state_path)
		return 0;
	ASSERT(node->is_changing);
	tree = to_json(node);
	pthread_mutex_unlock(&node->lock); /* disks take their time */
	text = tree ? json_dumps(tree, JSON_INDENT(1)) : NULL;
	json_decref(tree);
	err = text ? state_file_replace(node->state_path, text) : -ENOMEM;
	free(text);
	pthread_mutex_lock(&node->lock);
	return err ? error_set(-ENOSPC, "cannot save %s: %s", node->state_path,
			       strerror(-err))
		   : 0;
}
