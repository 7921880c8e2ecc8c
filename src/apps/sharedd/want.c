/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about objects, and what the lead answers. */
#include "want.h"

#include <errno.h>
#include <stdio.h>

enum {
	CALL_MS = 1000,
	REPLY_MAX = 1 << 16,
};

static const char *const verbs[] = {[SHD_WANT_OPEN] = "open",
				    [SHD_WANT_CLOSE] = "close",
				    [SHD_WANT_RESIZE] = "resize",
				    [SHD_WANT_UNLINK] = "unlink"};

static json_t *write_body(const struct shd_want *w)
{
	json_t *body = w->id ? json_pack("{s:I}", "id", (json_int_t)w->id)
			     : json_pack("{s:s}", "name", w->name);

	if (w->kind == SHD_WANT_OPEN && w->creates) {
		(void)json_object_set_new(body, "create", json_true());
		(void)json_object_set_new(body, "exclusive",
					  json_boolean(w->is_exclusive));
		(void)json_object_set_new(body, "copies",
					  json_integer(w->wants_two ? 2 : 1));
	}
	if (w->kind == SHD_WANT_RESIZE)
		(void)json_object_set_new(
			body, "size",
			json_integer((json_int_t)w->length_bytes));
	return body;
}

static int read_answer(const json_t *tree, struct shd_got *out)
{
	int err = client_json_u64(tree, "id", INT64_MAX, &out->id);

	if (!err)
		err = client_json_u64(tree, "va", INT64_MAX, &out->va);
	if (!err)
		err = client_json_u64(tree, "length", INT64_MAX,
				      &out->length_bytes);
	if (!err)
		err = client_json_u64(tree, "reserved", INT64_MAX,
				      &out->reserved_bytes);
	out->is_new = json_is_true(json_object_get(tree, "new"));
	return err;
}

void shd_want_do(const struct client_caller *caller,
		 const struct client_node *lead, const char *member,
		 const struct shd_want *want, struct shd_got *out)
{
	json_t *reply = NULL;
	char path[128];

	*out = (struct shd_got){
		.kind = want->kind, .serial = want->serial, .id = want->id};
	(void)snprintf(path, sizeof(path), "/v1/shared/members/%s/%s", member,
		       verbs[want->kind]);
	out->err = client_call(caller, lead, "POST", path, write_body(want),
			       CALL_MS, REPLY_MAX, &reply);
	if (!out->err &&
	    (want->kind == SHD_WANT_OPEN || want->kind == SHD_WANT_RESIZE))
		out->err = read_answer(reply, out);
	json_decref(reply);
}
