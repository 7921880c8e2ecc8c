/* SPDX-License-Identifier: Apache-2.0 */
/* From rows of the ledger to what the controller knows. A row that is not as
 * this release writes them spoils all: half a registry is worse than none. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/plant.h"
#include "cd_page_priv.h"
#include "vault_priv.h"

/* ---- things ------------------------------------------------------------- */

struct cd_node *cd_node_find(const struct cd_core *core, const char *name)
{
	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		if (core->node[i] && strcmp(core->node[i]->name, name) == 0)
			return core->node[i];
	return NULL;
}

struct cd_tenant *cd_tenant_find(const struct cd_core *core, const char *name)
{
	for (unsigned i = 0; i < core->tenant_count; i++)
		if (strcmp(core->tenant[i]->name, name) == 0)
			return core->tenant[i];
	return NULL;
}

static void share_reset(struct cd_share *s)
{
	*s = (struct cd_share){.open = true};
}

int cd_node_add(struct cd_core *core, const char *name, struct cd_node **out)
{
	struct cd_node *n;
	unsigned slot = 0;

	while (slot < CD_NODES_MAX && core->node[slot])
		slot++;
	if (slot == CD_NODES_MAX)
		return error_set(-EAGAIN, "a controller knows %d nodes at most",
				 CD_NODES_MAX);
	n = calloc(1, sizeof(*n));
	if (!n)
		return error_set(-ENOMEM, "no memory for a node");
	(void)snprintf(n->name, sizeof(n->name), "%s", name);
	n->slot = slot;
	n->seen_ns = env_now_ns(core->env);
	n->conflicts = json_array();
	n->was_given = json_object();
	core->node[slot] = n;
	core->node_count++;
	for (unsigned i = 0; i < core->tenant_count; i++)
		share_reset(&core->tenant[i]->share[slot]);
	*out = n;
	return 0;
}

void cd_node_free(struct cd_core *core, struct cd_node *n)
{
	cd_tasks_drop(core, NULL, NULL, n);
	cd_blocks_forget(n);
	core->node[n->slot] = NULL;
	core->node_count--;
	json_decref(n->names);
	json_decref(n->conflicts);
	json_decref(n->links);
	json_decref(n->was_given);
	json_decref(n->given);
	json_decref(n->kept);
	json_decref(n->taken);
	json_decref(n->sealed);
	free(n);
}

int cd_tenant_add(struct cd_core *core, const char *name,
		  struct cd_tenant **out)
{
	struct cd_tenant *t;

	if (core->tenant_count == CD_TENANTS_MAX)
		return error_set(-EAGAIN, "a rack has %d tenants at most",
				 CD_TENANTS_MAX);
	t = calloc(1, sizeof(*t));
	if (!t)
		return error_set(-ENOMEM, "no memory for a tenant");
	(void)snprintf(t->name, sizeof(t->name), "%s", name);
	t->limits = json_object();
	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		share_reset(&t->share[i]);
	core->tenant[core->tenant_count++] = t;
	*out = t;
	return 0;
}

void cd_tenant_free(struct cd_core *core, struct cd_tenant *t)
{
	for (unsigned i = 0; i < core->tenant_count; i++) {
		if (core->tenant[i] != t)
			continue;
		core->tenant[i] = core->tenant[--core->tenant_count];
		break;
	}
	cd_narrows_free(t);
	json_decref(t->limits);
	free(t);
}

/* ---- rows --------------------------------------------------------------- */

static int text_of(const json_t *row, const char *name, char *out, size_t size)
{
	const char *text = NULL;
	int err = ctl_field_string(row, name, true, &text);

	if (err)
		return err;
	if (strlen(text) >= size)
		return error_set(-EINVAL, "\"%s\" is too long", name);
	(void)snprintf(out, size, "%s", text);
	return 0;
}

static int flag_of(const json_t *row, const char *name, bool *out)
{
	const json_t *v = json_object_get(row, name);

	if (!json_is_boolean(v))
		return error_set(-EINVAL, "\"%s\" is true or false", name);
	*out = json_is_true(v);
	return 0;
}

static int node_row(struct cd_core *core, const char *key, const json_t *row)
{
	const char *kind = NULL;
	struct cd_node *n;
	int err;

	if (!rundir_rack_is_valid(key) || cd_node_find(core, key))
		return error_set(-EINVAL, "the name is none, or comes twice");
	err = cd_node_add(core, key, &n);
	if (!err)
		err = ctl_field_string(row, "kind", true, &kind);
	if (!err)
		err = cd_kind_parse(kind, &n->kind);
	if (!err)
		err = text_of(row, "address", n->address, sizeof(n->address));
	if (!err)
		err = text_of(row, "zone", n->zone, sizeof(n->zone));
	if (!err)
		err = text_of(row, "incarnation", n->incarnation,
			      sizeof(n->incarnation));
	if (!err)
		err = ctl_field_u64(row, "epoch", true, 0, INT64_MAX,
				    &n->epoch);
	if (!err)
		err = ctl_field_u64(row, "size", true, 0, INT64_MAX,
				    &n->size_bytes);
	return err ? err : flag_of(row, "drain", &n->drain);
}

static int tenant_row(struct cd_core *core, const char *key, const json_t *row)
{
	json_t *limits = json_object_get(row, "limits");
	struct cd_tenant *t = cd_tenant_find(core, key);
	int err = 0;

	if (!ctl_name_is_valid(key, CD_NAME_MAX) || (t && t->has_row))
		return error_set(-EINVAL, "the name is none, or comes twice");
	if (!json_is_object(limits))
		return error_set(-EINVAL, "\"limits\" is an object");
	if (!t)
		err = cd_tenant_add(core, key, &t);
	if (!err)
		err = ctl_field_u64(row, "quota", true, 0, INT64_MAX,
				    &t->quota);
	if (err)
		return err;
	json_decref(t->limits);
	t->limits = json_incref(limits);
	t->has_row = true;
	return 0;
}

static int token_row(struct cd_core *core, const char *key, const json_t *row)
{
	const char *tenant = NULL, *role = NULL;
	struct cd_role_token r = {0};
	struct cd_token k = {0};
	struct cd_tenant *t;
	uint64_t id = 0;
	int err = ctl_token_hash_parse(key, &k.hash);

	if (!err)
		err = ctl_field_string(row, "role", false, &role);
	if (!err)
		err = role ? cd_role_parse(role, &r.role)
			   : ctl_field_string(row, "tenant", true, &tenant);
	if (!err)
		err = ctl_field_u64(row, "id", true, 0, INT32_MAX, &id);
	if (!err)
		err = ctl_field_u64(row, "until", true, 0, INT64_MAX,
				    &k.until_s);
	if (err)
		return err;
	k.id = (unsigned)id;
	if (role && core->role_token_count == CD_ROLE_TOKENS_MAX)
		return error_set(-EINVAL, "there are too many of roles");
	if (role) {
		r.token = k;
		core->role_token[core->role_token_count++] = r;
		return 0;
	}
	t = cd_tenant_find(core, tenant);
	if (!t || t->token_count == CD_TOKENS_MAX)
		return error_set(-EINVAL,
				 "there is no tenant %.32s, or it has too many",
				 tenant);
	t->token[t->token_count++] = k;
	return 0;
}

/* Rows of nodes that were forgotten in the middle are struck off by
 * cd_core_lead: their kind comes before "node". */
static int share_row(struct cd_core *core, const char *key, const json_t *row)
{
	const char *slash = strchr(key, '/');
	char tenant[CD_NAME_MAX + 1];
	struct cd_share s = {0};
	struct cd_tenant *t;
	struct cd_node *n;
	int err;

	if (!slash || slash - key > CD_NAME_MAX)
		return error_set(-EINVAL, "the key is TENANT/NODE");
	(void)snprintf(tenant, sizeof(tenant), "%.*s", (int)(slash - key), key);
	err = ctl_field_u64(row, "bytes", true, 0, INT64_MAX, &s.bytes);
	if (!err)
		err = ctl_field_u64(row, "version", true, 0, INT64_MAX,
				    &s.version);
	if (!err)
		err = flag_of(row, "open", &s.open);
	if (err)
		return err;
	t = cd_tenant_find(core, tenant);
	n = cd_node_find(core, slash + 1);
	if (t && n)
		t->share[n->slot] = s;
	else
		cd_stage(core, "allowance", key, NULL);
	return 0;
}

static int take_row(struct cd_core *core, const char *kind, const char *key,
		    const json_t *row)
{
	if (strcmp(kind, "node") == 0)
		return node_row(core, key, row);
	if (strcmp(kind, "tenant") == 0)
		return tenant_row(core, key, row);
	if (strcmp(kind, "token") == 0)
		return token_row(core, key, row);
	if (strcmp(kind, "token_narrow") == 0)
		return cd_narrow_row(core, key, row);
	if (strcmp(kind, "allowance") == 0)
		return share_row(core, key, row);
	if (strcmp(kind, "given") == 0)
		return cd_given_row(core, key, row);
	if (strcmp(kind, "look") == 0)
		return cd_look_row(core, key, row);
	return error_set(-EINVAL, "this release knows no such kind");
}

/* Kinds that need nodes and tenants, which come after them. */
static const char *const late_kinds[] = {"allowance", "given"};

/* Keeps a row of such a kind until all are there. False: it is of another. */
static bool put_late(struct cd_core *core, const char *kind, const char *key,
		     json_t *row, int *err)
{
	json_t *rows;

	for (size_t i = 0; i < ARRAY_LEN(late_kinds); i++) {
		if (strcmp(kind, late_kinds[i]) != 0)
			continue;
		if (!json_object_get(core->late, kind))
			(void)json_object_set_new(core->late, kind,
						  json_object());
		rows = json_object_get(core->late, kind);
		*err = json_object_set(rows, key, row)
			       ? error_set(-ENOMEM, "no memory for rows")
			       : 0;
		return true;
	}
	return false;
}

int cd_core_row(void *ctx, const char *kind, const char *key, const char *value)
{
	struct cd_core *core = ctx;
	struct ledger_change c = {kind, key, value};
	json_t *row = json_loads(value, JSON_REJECT_DUPLICATES, NULL);
	int err = ledger_change_check(&c);

	if (PLANTED(ctl_no_reload) && core->term) {
		json_decref(row);
		return 0;
	}
	if (!err && !json_is_object(row))
		err = error_set(-EINVAL, "the value is no object");
	if (!err && !put_late(core, kind, key, row, &err) &&
	    !cd_tree_row(core, kind, key, row, &err))
		err = take_row(core, kind, key, row);
	json_decref(row);
	if (!err)
		return 0;
	return error_prefix(err == -ENOMEM ? err : -EBADMSG,
			    "row %.16s %.70s: ", kind, key);
}

int cd_rows_end(struct cd_core *core)
{
	const char *kind, *key;
	json_t *rows, *row;
	int err = 0;

	json_object_foreach(core->late, kind, rows)
		json_object_foreach(rows, key, row)
	{
		err = take_row(core, kind, key, row);
		if (err)
			return error_prefix(-EBADMSG, "row %.16s %.70s: ", kind,
					    key);
	}
	(void)json_object_clear(core->late);
	return cd_tree_rows_end(core);
}
