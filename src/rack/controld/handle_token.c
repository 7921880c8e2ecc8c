/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: several of one tenant, each perhaps with an end, and those that are
 * files of this machine. Only hashes are kept. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "cd_priv.h"

int cd_token_pick(struct cd_core *core, const json_t *body,
		  char text[CTL_TOKEN_TEXT], struct ctl_token_hash *hash)
{
	uint8_t bytes[CTL_TOKEN_BYTES];
	const char *given = NULL;
	int err = ctl_field_string(body, "token", false, &given);

	if (err)
		return err;
	if (given && !ctl_token_is_valid(given))
		return error_set(-EINVAL,
				 "\"token\" has %d lower-case hex digits",
				 CTL_TOKEN_CHARS);
	if (given) {
		memcpy(text, given, CTL_TOKEN_TEXT);
	} else {
		env_random(core->env, bytes, sizeof(bytes));
		ctl_token_format(bytes, text);
	}
	return ctl_token_hash(text, hash);
}

struct cd_tenant *cd_token_owner(const struct cd_core *core,
				 const struct ctl_token_hash *hash)
{
	struct cd_tenant *found = NULL;

	for (unsigned i = 0; i < core->tenant_count; i++)
		for (unsigned k = 0; k < core->tenant[i]->token_count; k++)
			if (ctl_token_hash_equal(
				    &core->tenant[i]->token[k].hash, hash))
				found = core->tenant[i];
	return found;
}

int cd_token_check(const struct cd_core *core,
		   const struct ctl_token_hash *hash)
{
	bool is_role = false;

	for (unsigned i = 0; i < core->role_token_count; i++)
		is_role |= ctl_token_hash_equal(&core->role_token[i].token.hash,
						hash);
	return is_role || cd_token_owner(core, hash) ||
			       cd_narrow_has(core, hash) ||
			       ctl_token_hash_equal(&core->admin, hash) ||
			       ctl_token_hash_equal(&core->node_hash, hash) ||
			       ctl_token_hash_equal(&core->default_hash, hash)
		       ? error_set(-EEXIST, "this token is in use already")
		       : 0;
}

unsigned cd_token_next_id(const struct cd_tenant *t)
{
	unsigned id = 0;

	for (unsigned i = 0; i < t->token_count; i++)
		id = u32_max(id, t->token[i].id + 1);
	for (unsigned i = 0; i < t->narrow_count; i++)
		id = u32_max(id, t->narrow[i]->token.id + 1);
	return id;
}

void cd_token_add(struct cd_core *core, struct cd_tenant *t,
		  const struct ctl_token_hash *hash, uint64_t until_s)
{
	unsigned id = cd_token_next_id(t);
	struct cd_token *k = &t->token[t->token_count++];

	*k = (struct cd_token){.hash = *hash, .id = id, .until_s = until_s};
	cd_stage_token(core, t, k);
}

void cd_token_end(struct cd_core *core, struct cd_tenant *t, unsigned at)
{
	char hash[CTL_TOKEN_TEXT];

	ctl_token_hash_format(&t->token[at].hash, hash);
	cd_stage(core, "token", hash, NULL);
	t->token[at] = t->token[--t->token_count];
}

void cd_tokens_end(struct cd_core *core, struct cd_tenant *t)
{
	while (t->token_count)
		cd_token_end(core, t, 0);
	while (t->narrow_count)
		cd_narrow_end(core, t, 0);
}

uint64_t cd_token_left_ms(const struct cd_core *core, const struct cd_token *k)
{
	return k->until_s ? (k->until_s - core->wall_s) * 1000 : 0;
}

bool cd_token_is_over(const struct cd_core *core, const struct cd_token *k)
{
	return k->until_s && k->until_s <= core->wall_s;
}

/* ---- tokens of this machine: files -------------------------------------- */

static int keep(struct cd_core *core, bool is_admin, const char *text)
{
	struct ctl_token_hash *mine =
		is_admin ? &core->admin : &core->default_hash;
	struct ctl_token_hash hash;
	int err = ctl_token_hash(text, &hash);

	/* Who asks again because an answer was lost changes nothing. */
	if (err || ctl_token_hash_equal(mine, &hash))
		return err;
	err = cd_token_check(core, &hash);
	if (!err && !core->keep_token)
		err = error_set(-EACCES, "this token cannot be changed");
	if (!err)
		err = core->keep_token(core->keep_ctx, is_admin, text);
	if (!err)
		*mine = hash;
	return err;
}

static void change_file(struct cd_core *core, struct ctl_call *call,
			bool is_admin, const char *text)
{
	int err = keep(core, is_admin, text);

	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200,
			       json_pack("{s:s}", "token", text));
}

void cd_handle_admin_token(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct ctl_token_hash hash;
	char token[CTL_TOKEN_TEXT];
	int err = cd_token_pick(core, call->body, token, &hash);

	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		change_file(core, call, true, token);
}

/* ---- tokens of tenants -------------------------------------------------- */

/* One new token in place of all that there are. */
void cd_handle_token_patch(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct ctl_token_hash hash;
	char token[CTL_TOKEN_TEXT];
	struct cd_tenant *t = NULL;
	int err = cd_tenant_of_call(core, call, &t);

	if (!err)
		err = cd_token_pick(core, call->body, token, &hash);
	if (!err && cd_tenant_is_default(t)) {
		change_file(core, call, false, token);
		return;
	}
	if (!err && cd_token_owner(core, &hash) != t)
		err = cd_token_check(core, &hash);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	cd_tokens_end(core, t);
	cd_token_add(core, t, &hash, 0);
	cd_tenants_changed(core);
	cd_reply_tenant(core, call, 200, t, token);
}

void cd_handle_token_delete(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct cd_tenant *t = NULL;
	int err = cd_tenant_of_call(core, call, &t);

	if (!err && cd_tenant_is_default(t))
		err = error_set(-EACCES,
				"the tenant default always has a token; give "
				"it another one");
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	cd_tokens_end(core, t);
	cd_tenants_changed(core);
	ctl_reply_none(call->reply);
}

void cd_handle_token_list(void *ctx, struct ctl_call *call)
{
	const struct cd_core *core = ctx;
	struct cd_tenant *t = NULL;
	json_t *rows;
	int err = cd_tenant_of_call(core, call, &t);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	rows = json_array();
	for (unsigned i = 0; i < t->token_count; i++)
		(void)json_array_append_new(
			rows, json_pack("{s:i, s:I}", "id", (int)t->token[i].id,
					"until", cd_int(t->token[i].until_s)));
	for (unsigned i = 0; i < t->narrow_count; i++)
		(void)json_array_append_new(rows,
					    cd_narrow_describe(t->narrow[i]));
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "tokens", rows));
}

static int check_whole(const struct cd_tenant *t)
{
	if (cd_tenant_is_default(t))
		return error_set(-EACCES, "the token of default is a file of "
					  "each machine; only one for a path "
					  "or for reading can be added");
	return t->token_count < CD_TOKENS_MAX
		       ? 0
		       : error_set(-EAGAIN, "a tenant has %d tokens at most",
				   CD_TOKENS_MAX);
}

/* Makes what the body wants; its description. */
static int create(struct cd_core *core, struct cd_tenant *t, const json_t *body,
		  const struct ctl_token_hash *hash, json_t **out)
{
	struct cd_narrow n = {.token.hash = *hash};
	uint64_t ttl_s = 0;
	int err = ctl_field_u64(body, "ttl_s", false, 1, CD_TOKEN_TTL_MAX_S,
				&ttl_s);

	if (!err)
		err = cd_narrow_parse(body, &n);
	if (err)
		return err;
	n.token.id = cd_token_next_id(t);
	n.token.until_s = ttl_s ? core->wall_s + ttl_s : 0;
	err = cd_narrow_is_less(&n) ? cd_narrow_add(core, t, &n)
				    : check_whole(t);
	if (!err && !cd_narrow_is_less(&n))
		cd_token_add(core, t, hash, n.token.until_s);
	if (!err)
		*out = cd_narrow_describe(&n);
	return err;
}

void cd_handle_token_create(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct ctl_token_hash hash;
	char token[CTL_TOKEN_TEXT];
	struct cd_tenant *t = NULL;
	json_t *tree = NULL;
	int err = cd_tenant_of_call(core, call, &t);

	if (!err)
		err = cd_token_pick(core, call->body, token, &hash);
	if (!err)
		err = cd_token_check(core, &hash);
	if (!err)
		err = create(core, t, call->body, &hash, &tree);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	cd_tenants_changed(core);
	(void)json_object_set_new(tree, "name", json_string(t->name));
	(void)json_object_set_new(tree, "token", json_string(token));
	ctl_reply_json(call->reply, 201, tree);
}

/* Ends the one of that number, of whichever kind. */
static int end_one(struct cd_core *core, struct cd_tenant *t, const char *id)
{
	char text[16];

	for (unsigned i = 0; i < t->token_count; i++) {
		(void)snprintf(text, sizeof(text), "%u", t->token[i].id);
		if (strcmp(text, id) != 0)
			continue;
		cd_token_end(core, t, i);
		return 0;
	}
	for (unsigned i = 0; i < t->narrow_count; i++) {
		(void)snprintf(text, sizeof(text), "%u",
			       t->narrow[i]->token.id);
		if (strcmp(text, id) != 0)
			continue;
		cd_narrow_end(core, t, i);
		return 0;
	}
	return error_set(-ENOENT, "tenant %s has no token %.20s", t->name, id);
}

void cd_handle_token_end(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct cd_tenant *t = NULL;
	int err = cd_tenant_of_call(core, call, &t);

	if (!err)
		err = end_one(core, t, call->segment[1]);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	cd_tenants_changed(core);
	ctl_reply_none(call->reply);
}

/* Its end is that far from now. */
static int renew(struct cd_core *core, struct cd_tenant *t, const char *id,
		 uint64_t ttl_s)
{
	char text[16];

	for (unsigned i = 0; i < t->token_count; i++) {
		struct cd_token *k = &t->token[i];

		(void)snprintf(text, sizeof(text), "%u", k->id);
		if (strcmp(text, id) != 0)
			continue;
		k->until_s = core->wall_s + ttl_s;
		cd_stage_token(core, t, k);
		return 0;
	}
	return error_set(-ENOENT,
			 "tenant %s has no token %.20s for all that is its own",
			 t->name, id);
}

void cd_handle_token_renew(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct cd_tenant *t = NULL;
	uint64_t ttl_s = 0;
	int err = cd_tenant_of_call(core, call, &t);

	if (!err)
		err = ctl_field_u64(call->body, "ttl_s", true, 1,
				    CD_TOKEN_TTL_MAX_S, &ttl_s);
	if (!err)
		err = renew(core, t, call->segment[1], ttl_s);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	cd_tenants_changed(core);
	ctl_reply_none(call->reply);
}

void cd_tokens_tick(struct cd_core *core)
{
	bool ended = false;

	for (unsigned i = 0; i < core->tenant_count; i++) {
		struct cd_tenant *t = core->tenant[i];

		for (unsigned k = t->token_count; k-- > 0;) {
			if (!cd_token_is_over(core, &t->token[k]))
				continue;
			log_info("controld", "token %u of %s has ended",
				 t->token[k].id, t->name);
			cd_token_end(core, t, k);
			ended = true;
		}
		ended |= cd_narrows_tick(core, t);
		if (ended)
			cd_stage_group(core);
	}
	if (ended)
		cd_tenants_changed(core);
}
