/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of a tenant that open less than all it has: for names at a path and
 * below it, for reading only, or both; perhaps with an end. What a request with
 * such a token may do is in scope.c. Nodes learn of each what it opens there:
 * regions for reading, where it has no path, and connections for blocks, where
 * a ticket says the rest.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "cd_priv.h"

/* ---- texts --------------------------------------------------------------- */

static int check_path(const char *path)
{
	char name[CD_NAME_TEXT_MAX + 1];

	if (path[0] != '/' || !path[1] || strlen(path) > CD_TOKEN_PATH_MAX)
		return -EINVAL;
	while (*path) {
		size_t len = strcspn(++path, "/");

		if (len > CD_NAME_TEXT_MAX)
			return -EINVAL;
		(void)snprintf(name, sizeof(name), "%.*s", (int)len, path);
		if (!ctl_name_is_valid(name, CD_NAME_TEXT_MAX))
			return -EINVAL;
		path += len;
	}
	return 0;
}

int cd_narrow_parse(const json_t *body, struct cd_narrow *out)
{
	const char *path = NULL, *rights = NULL;
	int err = ctl_field_string(body, "path", false, &path);

	if (!err && path && check_path(path))
		err = error_set(-EINVAL,
				"\"path\" is one of names, as /job/task, with "
				"%d characters at most",
				CD_TOKEN_PATH_MAX);
	if (!err)
		err = ctl_field_string(body, "rights", false, &rights);
	if (!err && rights && strcmp(rights, "r") != 0 &&
	    strcmp(rights, "rw") != 0)
		err = error_set(-EINVAL, "\"rights\" is \"r\" or \"rw\"");
	if (err)
		return err;
	(void)snprintf(out->path, sizeof(out->path), "%s", path ? path : "");
	out->reads = rights && !rights[1];
	return 0;
}

bool cd_narrow_is_less(const struct cd_narrow *n)
{
	return n->reads || n->path[0];
}

static const char *rights_of(const struct cd_narrow *n)
{
	return n->reads ? "r" : "rw";
}

json_t *cd_narrow_describe(const struct cd_narrow *n)
{
	json_t *row =
		json_pack("{s:i, s:I, s:s}", "id", (int)n->token.id, "until",
			  cd_int(n->token.until_s), "rights", rights_of(n));

	if (n->path[0])
		(void)json_object_set_new(row, "path", json_string(n->path));
	return row;
}

/* ---- rows ---------------------------------------------------------------- */

static int put(struct cd_tenant *t, const struct cd_narrow *n)
{
	struct cd_narrow *own;

	if (t->narrow_count == CD_NARROW_MAX)
		return error_set(-EAGAIN,
				 "a tenant has %d tokens at most that are for "
				 "a path or for reading",
				 CD_NARROW_MAX);
	own = malloc(sizeof(*own));
	if (!own)
		return error_set(-ENOMEM, "no memory for a token");
	*own = *n;
	t->narrow[t->narrow_count++] = own;
	return 0;
}

int cd_narrow_add(struct cd_core *core, struct cd_tenant *t,
		  const struct cd_narrow *wish)
{
	struct cd_narrow n = *wish;
	char hash[CTL_TOKEN_TEXT];
	int err;

	n.token.id = cd_token_next_id(t);
	err = put(t, &n);
	if (err)
		return err;
	ctl_token_hash_format(&n.token.hash, hash);
	cd_stage(core, "token_narrow", hash,
		 json_pack("{s:s, s:i, s:I, s:s*, s:s}", "tenant", t->name,
			   "id", (int)n.token.id, "until",
			   cd_int(n.token.until_s), "path",
			   n.path[0] ? n.path : NULL, "rights", rights_of(&n)));
	return 0;
}

int cd_narrow_row(struct cd_core *core, const char *key, const json_t *row)
{
	struct cd_narrow n = {0};
	const char *tenant = NULL;
	struct cd_tenant *t;
	uint64_t id = 0;
	int err = ctl_token_hash_parse(key, &n.token.hash);

	if (!err)
		err = ctl_field_string(row, "tenant", true, &tenant);
	if (!err)
		err = ctl_field_u64(row, "id", true, 0, INT32_MAX, &id);
	if (!err)
		err = ctl_field_u64(row, "until", true, 0, INT64_MAX,
				    &n.token.until_s);
	if (!err)
		err = cd_narrow_parse(row, &n);
	if (!err && !cd_narrow_is_less(&n))
		err = error_set(-EINVAL, "it opens everything");
	if (err)
		return err;
	n.token.id = (unsigned)id;
	t = cd_tenant_find(core, tenant);
	return t ? put(t, &n)
		 : error_set(-EINVAL, "there is no tenant %.32s", tenant);
}

void cd_narrow_end(struct cd_core *core, struct cd_tenant *t, unsigned at)
{
	char hash[CTL_TOKEN_TEXT];

	ctl_token_hash_format(&t->narrow[at]->token.hash, hash);
	cd_stage(core, "token_narrow", hash, NULL);
	free(t->narrow[at]);
	t->narrow[at] = t->narrow[--t->narrow_count];
}

void cd_narrows_free(struct cd_tenant *t)
{
	while (t->narrow_count)
		free(t->narrow[--t->narrow_count]);
}

bool cd_narrows_tick(struct cd_core *core, struct cd_tenant *t)
{
	bool ended = false;

	for (unsigned i = t->narrow_count; i-- > 0;) {
		if (!cd_token_is_over(core, &t->narrow[i]->token))
			continue;
		log_info("controld", "token %u of %s has ended",
			 t->narrow[i]->token.id, t->name);
		cd_narrow_end(core, t, i);
		ended = true;
	}
	return ended;
}

/* ---- whose it is --------------------------------------------------------- */

/* No early end: the time tells nothing about whose token it was. */
const struct cd_narrow *cd_narrow_find(const struct cd_core *core,
				       const struct ctl_token_hash *hash,
				       struct cd_tenant **owner)
{
	const struct cd_narrow *found = NULL;

	for (unsigned i = 0; i < core->tenant_count; i++) {
		struct cd_tenant *t = core->tenant[i];

		for (unsigned k = 0; k < t->narrow_count; k++) {
			const struct cd_narrow *n = t->narrow[k];

			if (!ctl_token_hash_equal(&n->token.hash, hash) ||
			    cd_token_is_over(core, &n->token))
				continue;
			found = n;
			*owner = t;
		}
	}
	return found;
}

bool cd_narrow_has(const struct cd_core *core,
		   const struct ctl_token_hash *hash)
{
	bool found = false;

	for (unsigned i = 0; i < core->tenant_count; i++)
		for (unsigned k = 0; k < core->tenant[i]->narrow_count; k++)
			found |= ctl_token_hash_equal(
				&core->tenant[i]->narrow[k]->token.hash, hash);
	return found;
}

/* Regions have no paths: who is let in to one has none of them. */
json_t *cd_narrows_json(const struct cd_core *core, const struct cd_tenant *t)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < t->narrow_count; i++) {
		const struct cd_narrow *n = t->narrow[i];
		char hash[CTL_TOKEN_TEXT];

		if (cd_token_is_over(core, &n->token))
			continue;
		ctl_token_hash_format(&n->token.hash, hash);
		(void)json_array_append_new(
			rows,
			json_pack("{s:s, s:I, s:s, s:s}", "token", hash,
				  "left_ms",
				  cd_int(cd_token_left_ms(core, &n->token)),
				  "regions", n->path[0] ? "" : "*", "rights",
				  rights_of(n)));
	}
	return rows;
}
