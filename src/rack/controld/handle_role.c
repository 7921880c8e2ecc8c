/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of a role that is no tenant's: of administrators and of nodes, beside
 * those that are files of the controller's machine. Each can be taken back by
 * itself. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "cd_priv.h"

const char *cd_role_name(enum cd_role role)
{
	static const char *const names[] = {"", "tenant", "node", "admin",
					    "look"};

	return names[role];
}

int cd_role_parse(const char *text, enum cd_role *out)
{
	if (strcmp(text, "node") != 0 && strcmp(text, "admin") != 0)
		return error_set(-EINVAL, "a role is admin or node");
	*out = text[0] == 'n' ? CD_ROLE_NODE : CD_ROLE_ADMIN;
	return 0;
}

void cd_role_stage(struct cd_core *core, const struct cd_role_token *r)
{
	char hash[CTL_TOKEN_TEXT];

	ctl_token_hash_format(&r->token.hash, hash);
	cd_stage(core, "token", hash,
		 json_pack("{s:s, s:i, s:I}", "role", cd_role_name(r->role),
			   "id", (int)r->token.id, "until",
			   cd_int(r->token.until_s)));
}

static void end(struct cd_core *core, unsigned at)
{
	char hash[CTL_TOKEN_TEXT];

	ctl_token_hash_format(&core->role_token[at].token.hash, hash);
	cd_stage(core, "token", hash, NULL);
	core->role_token[at] = core->role_token[--core->role_token_count];
}

enum cd_role cd_role_of(const struct cd_core *core,
			const struct ctl_token_hash *hash)
{
	enum cd_role found = CD_ROLE_NONE;

	for (unsigned i = 0; i < core->role_token_count; i++) {
		const struct cd_role_token *r = &core->role_token[i];

		if (ctl_token_hash_equal(&r->token.hash, hash) &&
		    !cd_token_is_over(core, &r->token))
			found = r->role;
	}
	return found;
}

void cd_roles_tick(struct cd_core *core)
{
	for (unsigned i = core->role_token_count; i-- > 0;) {
		const struct cd_role_token *r = &core->role_token[i];

		if (!cd_token_is_over(core, &r->token))
			continue;
		log_info("controld", "token %u of role %s has ended",
			 r->token.id, cd_role_name(r->role));
		end(core, i);
	}
}

/* ---- /v1/roles/ROLE/tokens ---------------------------------------------- */

static json_t *describe(const struct cd_role_token *r)
{
	return json_pack("{s:i, s:I}", "id", (int)r->token.id, "until",
			 cd_int(r->token.until_s));
}

void cd_handle_role_list(void *ctx, struct ctl_call *call)
{
	const struct cd_core *core = ctx;
	enum cd_role role;
	json_t *rows;
	int err = cd_role_parse(call->segment[0], &role);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	rows = json_array();
	for (unsigned i = 0; i < core->role_token_count; i++)
		if (core->role_token[i].role == role)
			(void)json_array_append_new(
				rows, describe(&core->role_token[i]));
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "tokens", rows));
}

static unsigned next_id(const struct cd_core *core)
{
	unsigned id = 0;

	for (unsigned i = 0; i < core->role_token_count; i++)
		if (core->role_token[i].token.id >= id)
			id = core->role_token[i].token.id + 1;
	return id;
}

void cd_handle_role_create(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct cd_role_token r = {0};
	char token[CTL_TOKEN_TEXT];
	uint64_t ttl_s = 0;
	json_t *tree;
	int err = cd_role_parse(call->segment[0], &r.role);

	if (!err)
		err = ctl_field_u64(call->body, "ttl_s", false, 1,
				    CD_TOKEN_TTL_MAX_S, &ttl_s);
	if (!err)
		err = cd_token_pick(core, call->body, token, &r.token.hash);
	if (!err)
		err = cd_token_check(core, &r.token.hash);
	if (!err && core->role_token_count == CD_ROLE_TOKENS_MAX)
		err = error_set(-EAGAIN, "there are %d tokens of roles at most",
				CD_ROLE_TOKENS_MAX);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	r.token.id = next_id(core);
	r.token.until_s = ttl_s ? core->wall_s + ttl_s : 0;
	core->role_token[core->role_token_count++] = r;
	cd_role_stage(core, &r);
	tree = describe(&r);
	(void)json_object_set_new(tree, "token", json_string(token));
	ctl_reply_json(call->reply, 201, tree);
}

void cd_handle_role_end(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	enum cd_role role;
	unsigned i = 0;
	char id[16];
	int err = cd_role_parse(call->segment[0], &role);

	for (; !err && i < core->role_token_count; i++) {
		(void)snprintf(id, sizeof(id), "%u",
			       core->role_token[i].token.id);
		if (core->role_token[i].role == role &&
		    strcmp(id, call->segment[1]) == 0)
			break;
	}
	if (!err && i == core->role_token_count)
		err = error_set(-ENOENT, "role %s has no token %.20s",
				call->segment[0], call->segment[1]);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	end(core, i);
	ctl_reply_none(call->reply);
}
