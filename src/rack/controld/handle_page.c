/* SPDX-License-Identifier: Apache-2.0 */
/* The page, and how a browser gets the right to look. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/secret.h"
#include "cd_page_priv.h"

/* Nothing but what this controller serves: no other host, no script in the
 * text, no frame around it. A page of another release must not be kept. */
static const struct ctl_header headers[] = {
	{"Content-Security-Policy",
	 "default-src 'self'; base-uri 'none'; form-action 'none'; "
	 "frame-ancestors 'none'"},
	{"Cache-Control", "no-cache"},
	{"Referrer-Policy", "no-referrer"},
	{"X-Content-Type-Options", "nosniff"},
	{NULL, NULL},
};

static const struct cd_page_file *find(const char *path)
{
	for (unsigned i = 0; i < cd_page_file_count; i++)
		if (strcmp(cd_page_files[i].path, path) == 0)
			return &cd_page_files[i];
	return NULL;
}

void cd_handle_page(void *ctx, struct ctl_call *call)
{
	const struct cd_page_file *file = find(call->request->path);
	char *copy = file ? malloc(file->len_bytes) : NULL;

	(void)ctx;
	if (!copy) {
		ctl_reply_error(call->reply, file ? -ENOMEM : -ENOENT,
				"there is no %.40s", call->request->path);
		return;
	}
	memcpy(copy, file->bytes, file->len_bytes);
	ctl_reply_text(call->reply, copy, file->len_bytes, file->type);
	call->reply->headers = headers;
}

/* Programs of this machine get a port of its loopback, where a browser of this
 * machine finds the page; others know the address at which they asked. */
static int open_port(struct cd_core *core, const struct ctl_call *call,
		     uint16_t *port)
{
	*port = 0;
	if (!call->request->is_local)
		return 0;
	if (!core->open_page)
		return error_set(-EACCES, "this controller serves no page");
	return core->open_page(core->page_ctx, port);
}

void cd_handle_look(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	const struct cd_who *who = call->caller;
	struct ctl_token_hash by;
	char code[CTL_TOKEN_TEXT];
	uint16_t port = 0;
	json_t *tree;
	int err = who->role == CD_ROLE_ADMIN || who->role == CD_ROLE_TENANT
			  ? ctl_token_hash(call->request->token, &by)
			  : error_set(-EACCES, "only tenants and the "
					       "administrator may look");

	if (!err)
		err = open_port(core, call, &port);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	cd_look_offer(core, &by, port, code);
	tree = json_pack("{s:s, s:i, s:s}", "code", code, "seconds",
			 CD_CODE_MS / 1000, "sees",
			 who->role == CD_ROLE_ADMIN ? "" : who->tenant->name);
	if (port)
		(void)json_object_set_new(tree, "port", json_integer(port));
	ctl_reply_json(call->reply, 200, tree);
	secret_forget(code);
}

/* The code comes as a token does, so that guessing is slowed down in the same
 * way. */
void cd_handle_look_token(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	const char *code = call->request->token;
	char token[CTL_TOKEN_TEXT];
	uint64_t until_s = 0;
	int err = cd_look_redeem(core, code ? code : "", token, &until_s);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		if (err == -EPERM)
			call->reply->status = 401;
		return;
	}
	ctl_reply_json(call->reply, 200,
		       json_pack("{s:s, s:I}", "token", token, "until",
				 cd_int(until_s)));
	secret_forget(token);
}
