/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/tenants, for the administrator: as at a memory node, for all nodes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/plant.h"
#include "cd_page_priv.h"
#include "tree_priv.h"

void cd_tenants_changed(struct cd_core *core)
{
	core->tenants_version++;
}

void cd_tenants_name(const struct cd_core *core, char out[32])
{
	(void)snprintf(out, 32, "%llu.%llu", (unsigned long long)core->term,
		       (unsigned long long)core->tenants_version);
}

static void add_token(const struct cd_core *core, const struct cd_token *k,
		      json_t *hashes, json_t *left)
{
	char hash[CTL_TOKEN_TEXT];

	if (cd_token_is_over(core, k))
		return;
	ctl_token_hash_format(&k->hash, hash);
	(void)json_array_append_new(hashes, json_string(hash));
	(void)json_array_append_new(
		left, json_integer(cd_int(cd_token_left_ms(core, k))));
}

json_t *cd_tenants_json(const struct cd_core *core)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < core->tenant_count; i++) {
		const struct cd_tenant *t = core->tenant[i];
		json_t *hashes = json_array(), *left = json_array();

		for (unsigned k = 0; k < t->token_count; k++)
			add_token(core, &t->token[k], hashes, left);
		(void)json_array_append_new(
			rows,
			json_pack("{s:s, s:b, s:I, s:O, s:o, s:o, s:o}", "name",
				  t->name, "has_quota", t->quota != 0, "quota",
				  cd_int(t->quota), "limits", t->limits,
				  "tokens", hashes, "tokens_left_ms", left,
				  "narrow", cd_narrows_json(core, t)));
	}
	return rows;
}

bool cd_tenant_is_default(const struct cd_tenant *t)
{
	return strcmp(t->name, "default") == 0;
}

int cd_tenant_of_call(const struct cd_core *core, const struct ctl_call *call,
		      struct cd_tenant **out)
{
	*out = cd_tenant_find(core, call->segment[0]);
	return *out ? 0
		    : error_set(-ENOENT, "there is no tenant %s",
				call->segment[0]);
}

/* ---- bodies ------------------------------------------------------------- */

static int check_limits(const json_t *body)
{
	static const char *const kinds[] = {
		"device",   "regions", "connections", "servers", "grants",
		"sessions", "walks",   "machines",    "requests"};
	json_t *limits = json_object_get(body, "limits"), *v;
	const char *name;

	if (limits && !json_is_object(limits))
		return error_set(-EINVAL, "\"limits\" is an object");
	json_object_foreach(limits, name, v)
	{
		size_t i = 0;

		while (i < ARRAY_LEN(kinds) && strcmp(kinds[i], name) != 0)
			i++;
		if (i == ARRAY_LEN(kinds))
			return error_set(-EINVAL,
					 "\"limits\" has no '%.30s'; device, "
					 "regions, connections, servers, "
					 "grants, sessions, walks, machines, "
					 "requests",
					 name);
		if (!json_is_integer(v) || json_integer_value(v) < 0)
			return error_set(
				-EINVAL,
				"\"limits\": \"%s\" is a number from 0", name);
	}
	return 0;
}

/* ---- answers ------------------------------------------------------------ */

static json_t *describe(const struct cd_core *core, const struct cd_tenant *t)
{
	uint64_t used = 0, regions = 0, connections = 0;
	json_t *nodes = json_object();

	for (unsigned i = 0; i < CD_NODES_MAX; i++) {
		const struct cd_share *s = &t->share[i];

		if (!core->node[i])
			continue;
		used += s->used;
		regions += s->regions;
		connections += s->connections;
		if (s->used || s->bytes)
			(void)json_object_set_new(
				nodes, core->node[i]->name,
				json_pack("{s:I, s:I}", "used", cd_int(s->used),
					  "allowance", cd_int(s->bytes)));
	}
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:O, s:b, s:I, s:o, s:i}",
			 "name", t->name, "quota", cd_int(t->quota), "used",
			 cd_int(used), "regions", cd_int(regions),
			 "connections", cd_int(connections), "limits",
			 t->limits, "ending", 0, "allowed",
			 cd_int(cd_share_sum(core, t)), "at", nodes, "tokens",
			 (int)t->token_count);
}

void cd_reply_tenant(const struct cd_core *core, struct ctl_call *call,
		     unsigned status, const struct cd_tenant *t,
		     const char *token)
{
	json_t *tree = describe(core, t);

	if (token)
		(void)json_object_set_new(tree, "token", json_string(token));
	ctl_reply_json(call->reply, status, tree);
}

/* ---- create ------------------------------------------------------------- */

static int settle(struct cd_core *core, struct cd_tenant *t, const json_t *body)
{
	json_t *limits = json_object_get(body, "limits");
	uint64_t quota = t->quota;
	int err = ctl_field_u64(body, "quota", false, 0, INT64_MAX, &quota);

	if (!err)
		err = check_limits(body);
	if (err)
		return err;
	if (limits)
		(void)json_object_update(t->limits, limits);
	if (quota != t->quota)
		cd_share_requota(core, t, quota);
	t->has_row = true;
	cd_stage_tenant(core, t);
	cd_tenants_changed(core);
	return 0;
}

/* Who asks again because an answer was lost changes nothing but what was
 * changed. */
static int create(struct cd_core *core, const json_t *body, const char *name,
		  const struct ctl_token_hash *hash, struct cd_tenant **out)
{
	struct cd_tenant *t = cd_tenant_find(core, name);
	uint64_t quota = 0;
	int err;

	if (t && !PLANTED(ctl_create_twice)) {
		*out = t;
		if (cd_token_owner(core, hash) == t)
			return settle(core, t, body);
		return error_set(-EEXIST,
				 "there is a tenant %s already, with another "
				 "token",
				 name);
	}
	if (!ctl_name_is_valid(name, CD_NAME_MAX))
		return error_set(-EINVAL,
				 "a tenant's name has 1 to %d letters, digits, "
				 "'-', '_' and '.'",
				 CD_NAME_MAX);
	err = cd_token_check(core, hash);
	if (!err)
		err = ctl_field_u64(body, "quota", false, 0, INT64_MAX, &quota);
	if (!err)
		err = check_limits(body);
	if (!err && !t)
		err = cd_tenant_add(core, name, &t);
	if (err)
		return err;
	t->quota = quota;
	*out = t;
	err = settle(core, t, body);
	ASSERT(err == 0); /* checked before */
	cd_token_add(core, t, hash, 0);
	cd_event_staged(core, CD_ABOUT_TENANT, t->name, "is made");
	return 0;
}

void cd_handle_tenant_create(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct ctl_token_hash hash;
	char token[CTL_TOKEN_TEXT];
	struct cd_tenant *t = NULL;
	const char *name = NULL;
	unsigned before = core->tenant_count;
	int err = ctl_field_string(call->body, "name", true, &name);

	if (!err)
		err = cd_token_pick(core, call->body, token, &hash);
	if (!err)
		err = create(core, call->body, name, &hash, &t);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		cd_reply_tenant(core, call,
				core->tenant_count > before ? 201 : 200, t,
				token);
}

static int adopt(struct cd_core *core, const json_t *row)
{
	const char *name = NULL, *text = NULL;
	struct ctl_token_hash hash;
	struct cd_tenant *t;
	uint64_t quota = 0;
	int err = json_is_object(row)
			  ? ctl_field_string(row, "name", true, &name)
			  : -EINVAL;

	if (!err)
		err = ctl_field_string(row, "token_sha256", true, &text);
	if (!err)
		err = ctl_token_hash_parse(text, &hash);
	if (!err)
		err = ctl_field_u64(row, "quota", false, 0, INT64_MAX, &quota);
	if (!err)
		err = check_limits(row);
	if (!err && !ctl_name_is_valid(name, CD_NAME_MAX))
		err = -EINVAL;
	/* The node compares what it has with what it is told. */
	if (err || cd_tenant_find(core, name))
		return err;
	err = cd_token_check(core, &hash);
	if (!err)
		err = cd_tenant_add(core, name, &t);
	if (err)
		return err;
	t->quota = quota;
	err = settle(core, t, row);
	cd_token_add(core, t, &hash, 0);
	log_info("controld", "tenant %s is taken over from a node", name);
	cd_event_staged(core, CD_ABOUT_TENANT, name,
			"is taken over from a node");
	return err;
}

void cd_tenant_adopt(struct cd_core *core, const json_t *rows)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) if (adopt(core, row)) log_warn(
		"controld", "a node's tenant is left out: %s", error_last());
}

/* ---- the rest ----------------------------------------------------------- */

void cd_handle_tenant_list(void *ctx, struct ctl_call *call)
{
	const struct cd_core *core = ctx;
	json_t *rows = json_array();

	for (unsigned i = 0; i < core->tenant_count; i++)
		(void)json_array_append_new(rows,
					    describe(core, core->tenant[i]));
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "tenants", rows));
}

/* With the names of what it has, so that who removes it sees what is lost. */
void cd_handle_tenant_get(void *ctx, struct ctl_call *call)
{
	const struct cd_core *core = ctx;
	json_t *names = json_array(), *tree, *row;
	struct cd_tenant *t = NULL;
	int err = cd_tenant_of_call(core, call, &t);
	size_t k;

	for (unsigned i = 0; !err && i < CD_NODES_MAX; i++) {
		if (!core->node[i])
			continue;
		json_array_foreach(core->node[i]->names, k, row)
		{
			const char *of = json_string_value(
				json_object_get(row, "tenant"));

			if (of && strcmp(of, t->name) == 0)
				(void)json_array_append(names, row);
		}
	}
	if (err) {
		json_decref(names);
		ctl_reply_last_error(call->reply, err);
		return;
	}
	tree = describe(core, t);
	(void)json_object_set_new(tree, "names", names);
	ctl_reply_json(call->reply, 200, tree);
}

void cd_handle_tenant_patch(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct cd_tenant *t = NULL;
	int err = cd_tenant_of_call(core, call, &t);

	if (!err && !json_object_get(call->body, "quota") &&
	    !json_object_get(call->body, "limits"))
		err = error_set(-EINVAL, "\"quota\" or \"limits\" is what can "
					 "be changed");
	if (!err)
		err = settle(core, t, call->body);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	cd_event_staged(core, CD_ABOUT_TENANT, t->name,
			"has other limits: quota %llu bytes",
			(unsigned long long)t->quota);
	cd_reply_tenant(core, call, 200, t, NULL);
}

/* Nodes learn it from the list that has it no more, and give its memory back
 * then. */
void cd_handle_tenant_delete(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	char key[2 * CD_NAME_MAX + 2];
	struct cd_tenant *t = NULL;
	int err = cd_tenant_of_call(core, call, &t);

	if (!err && cd_tenant_is_default(t))
		err = error_set(-EACCES, "the tenant default always exists");
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	cd_tokens_end(core, t);
	for (unsigned i = 0; i < CD_NODES_MAX; i++) {
		const struct cd_share *s = &t->share[i];

		if (!core->node[i] || (!s->version && !s->bytes))
			continue;
		(void)snprintf(key, sizeof(key), "%s/%s", t->name,
			       core->node[i]->name);
		cd_stage(core, "allowance", key, NULL);
	}
	cd_stage(core, "tenant", t->name, NULL);
	cd_event_staged(core, CD_ABOUT_TENANT, t->name, "is removed");
	cd_jobs_remove(core, t->name);
	cd_tenant_free(core, t);
	cd_tenants_changed(core);
	ctl_reply_none(call->reply);
}
