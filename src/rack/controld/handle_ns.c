/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/ns/PATH: what names are, making, moving and removing them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"
#include "vault_priv.h"

static const char *path_of(const struct ctl_call *call)
{
	return call->rest ? call->rest : "";
}

enum {
	CHAINS_SHOWN = 32,
};

/* ---- looking ------------------------------------------------------------ */

/* Of each block, up to CHAINS_SHOWN of them: "m0 > m1 > (m2)", where m2 joins;
 * and how many there are now, at least. */
static void describe_chains(const struct cd_object *o, json_t *row)
{
	json_t *rows = json_array();
	unsigned least = o->copies;

	for (unsigned i = 0; i < o->block_count; i++) {
		char text[CD_CHAIN_MAX * (CD_NAME_MAX + 8)] = "";
		unsigned full = 0;
		size_t used = 0;

		for (const struct cd_block *b = o->block[i]; b; b = b->next) {
			bool is_up = b->node->state != CD_DOWN;

			full += b->is_full && is_up;
			used += (size_t)snprintf(
				text + used, sizeof(text) - used,
				b->is_full ? "%s%s%s" : "%s(%s%s)",
				used ? " > " : "", b->node->name,
				is_up ? "" : " down");
		}
		least = u32_min(least, full);
		if (i < CHAINS_SHOWN)
			(void)json_array_append_new(rows, json_string(text));
	}
	(void)json_object_set_new(row, "copies", json_integer((int)o->copies));
	(void)json_object_set_new(row, "copies_now", json_integer((int)least));
	(void)json_object_set_new(row, "chains", rows);
}

json_t *cd_describe_object(struct cd_core *core, const struct cd_object *o)
{
	const char *lost = cd_object_lost(o);
	char path[CTL_PATH_MAX];
	uint64_t used = 0;
	json_t *row;

	for (unsigned i = 0; i < o->block_count; i++)
		used += o->block[i]->used_bytes;
	cd_path_show(core, o->prefix, o, path);
	row = json_pack("{s:s, s:s, s:s, s:I, s:s, s:i, s:I, s:I, s:I, s:o}",
			"path", path, "name", o->name, "kind",
			cd_object_kind_name(o->kind), "id", cd_int(o->id),
			"state", lost ? "lost" : cd_object_state_name(o),
			"blocks", (int)o->block_count, "block_bytes",
			cd_int(o->block_bytes), "bytes",
			cd_int(o->block_count * o->block_bytes), "used",
			cd_int(used), "lease", cd_lease_json(core, o->prefix));
	(void)json_object_set_new(row, "parent",
				  json_integer(cd_int(o->prefix->id)));
	if (lost || o->trouble[0])
		(void)json_object_set_new(
			row, "why", json_string(lost ? lost : o->trouble));
	if (o->image)
		(void)json_object_set_new(row, "image",
					  cd_image_json(o->image));
	if (o->flush)
		(void)json_object_set_new(row, "flush", cd_flush_json(o));
	if (o->kind == CD_QUEUE)
		(void)json_object_set_new(row, "bound",
					  json_integer(cd_int(o->bound)));
	if (o->copies > 1)
		describe_chains(o, row);
	return row;
}

json_t *cd_describe_prefix(struct cd_core *core, const struct cd_prefix *p)
{
	json_t *parents = json_array(), *row;
	char path[CTL_PATH_MAX];

	for (unsigned i = 0; i < p->parent_count; i++)
		if (!cd_prefix_is_root(p->parent[i]) &&
		    cd_scope_has_prefix(core, p->parent[i]))
			(void)json_array_append_new(
				parents, json_string(p->parent[i]->name));
	cd_path_show(core, p, NULL, path);
	row = json_pack("{s:s, s:s, s:s, s:I, s:o, s:s, s:o}", "path", path,
			"name", cd_prefix_is_root(p) ? p->job->name : p->name,
			"kind", cd_prefix_kind(p), "id", cd_int(p->id), "lease",
			cd_lease_json(core, p), "on_expiry",
			cd_job_expiry(p->job), "parents", parents);
	/* Of several the first, for who draws a tree. */
	if (!cd_prefix_is_root(p))
		(void)json_object_set_new(
			row, "parent", json_integer(cd_int(p->parent[0]->id)));
	else if (p->job->has_plan)
		(void)json_object_set_new(row, "tasks",
					  json_integer(p->job->count - 1));
	return row;
}

static json_t *entries_of(struct cd_core *core, const char *tenant,
			  const struct cd_prefix *p)
{
	json_t *rows = json_array();
	const struct cd_job *job = p ? NULL : cd_job_first(core, tenant);

	for (; job; job = job->next)
		if (strcmp(job->tenant, tenant) == 0)
			(void)json_array_append_new(
				rows,
				cd_describe_prefix(core, cd_job_root(job)));
	for (unsigned i = 0; p && i < p->child_count; i++)
		(void)json_array_append_new(
			rows, cd_describe_prefix(core, p->child[i]));
	for (const struct cd_object *o = p ? p->objects : NULL; o; o = o->next)
		(void)json_array_append_new(rows, cd_describe_object(core, o));
	return rows;
}

void cd_handle_ns_get(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct cd_tenant *t = NULL;
	struct cd_at at = {0};
	json_t *tree;
	int err = cd_tenant_of_names(call, &t);

	if (!err)
		err = cd_path_find(core, t->name, path_of(call), &at);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	tree = at.object ? cd_describe_object(core, at.object)
	       : at.prefix
		       ? cd_describe_prefix(core, at.prefix)
		       : json_pack("{s:s, s:s}", "path", "/", "kind", "root");
	if (!at.object)
		(void)json_object_set_new(tree, "entries",
					  entries_of(core, t->name, at.prefix));
	ctl_reply_json(call->reply, 200, tree);
}

/* A parent that is in the answer, too: those have a mark. */
static void add_below(struct cd_core *core, const struct cd_prefix *p,
		      json_t *rows)
{
	json_t *row = cd_describe_prefix(core, p);

	for (unsigned i = p->parent_count; i-- > 0;)
		if (p->parent[i]->mark)
			(void)json_object_set_new(
				row, "parent",
				json_integer(cd_int(p->parent[i]->id)));
	(void)json_array_append_new(rows, row);
	for (const struct cd_object *o = p->objects; o; o = o->next)
		(void)json_array_append_new(rows, cd_describe_object(core, o));
}

/* All below a prefix, each once, parents first. */
void cd_handle_tree_get(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	const struct cd_job *job;
	struct cd_tenant *t = NULL;
	struct cd_at at = {0};
	json_t *rows;
	int err = cd_tenant_of_names(call, &t);

	if (!err)
		err = cd_path_find(core, t->name, path_of(call), &at);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	rows = json_array();
	job = at.prefix ? at.prefix->job : cd_job_first(core, t->name);
	for (; job; job = at.prefix ? NULL : job->next) {
		if (strcmp(job->tenant, t->name) != 0)
			continue;
		for (unsigned i = 0; i < job->count && !at.object; i++) {
			struct cd_prefix *p = job->order[i];

			p->mark = !at.prefix || p == at.prefix;
			for (unsigned k = 0; k < p->parent_count; k++)
				p->mark |= p->parent[k]->mark;
			if (p->mark && json_array_size(rows) < CD_LIST_MAX)
				add_below(core, p, rows);
		}
	}
	if (at.object)
		(void)json_array_append_new(
			rows, cd_describe_object(core, at.object));
	ctl_reply_json(call->reply, 200,
		       json_pack("{s:b, s:o}", "complete",
				 json_array_size(rows) < CD_LIST_MAX, "names",
				 rows));
}

/* ---- making ------------------------------------------------------------- */

static int is_free(const struct cd_core *core, const char *tenant,
		   const struct cd_at *at, const char *leaf)
{
	bool taken = at->prefix ? cd_object_find(at->prefix, leaf) ||
					  cd_prefix_child(at->prefix, leaf)
				: cd_job_find(core, tenant, leaf) != NULL;

	return taken && !PLANTED(ctl_name_twice)
		       ? error_set(-EEXIST, "there is a %s already", leaf)
		       : 0;
}

static int make_folder(struct cd_core *core, const char *tenant,
		       struct cd_prefix *parent, const char *leaf,
		       const json_t *body, struct cd_prefix **out)
{
	struct cd_job *job;
	int err;

	if (parent && (json_object_get(body, "lease_ms") ||
		       json_object_get(body, "on_expiry")))
		return error_set(-EINVAL, "\"lease_ms\" and \"on_expiry\" are "
					  "those of the root of a path");
	if (parent && parent->job->count > CD_TASKS_MAX)
		return error_set(-E2BIG,
				 "/%s has %d folders or tasks, which "
				 "is all that it can have",
				 parent->job->name, CD_TASKS_MAX);
	err = cd_names_admit(core, tenant, 1, 0);
	if (err)
		return err;
	if (!parent) {
		err = cd_job_add(core, tenant, leaf, cd_id_take(core), &job);
		if (err)
			return err;
		err = cd_job_options(core, body, job);
		if (err) {
			cd_job_free(core, job);
			return err;
		}
		*out = cd_job_root(job);
		cd_stage_job(core, job);
		return 0;
	}
	err = cd_prefix_add(core, parent->job, leaf, cd_id_take(core), out);
	if (err)
		return err;
	err = cd_prefix_link(parent, *out);
	if (err) /* half a name is in memory, and no row of it */
		cd_core_resign(core, "the controller has no memory left");
	else
		cd_stage_prefix(core, *out);
	return err;
}

/* Further parents are named in the body; the path names one. */
static int link_more(struct cd_prefix *task, const json_t *body)
{
	const json_t *rows = json_object_get(body, "parents"), *row;
	size_t i;
	int err = 0;

	json_array_foreach(rows, i, row)
	{
		const char *name = json_string_value(row);
		struct cd_prefix *p =
			cd_prefix_child(cd_job_root(task->job), name);
		bool is_there = p == task;

		for (unsigned k = 0; k < task->parent_count; k++)
			is_there |= task->parent[k] == p;
		if (!is_there && !err)
			err = cd_prefix_link(p, task);
	}
	return err;
}

static int check_parents(const struct cd_core *core,
			 const struct cd_prefix *parent, const char *leaf,
			 const json_t *body)
{
	const json_t *rows = json_object_get(body, "parents"), *row;
	size_t i;

	if (rows &&
	    (!json_is_array(rows) || json_array_size(rows) >= CD_PARENTS_MAX))
		return error_set(-EINVAL,
				 "\"parents\" is a list of tasks, %d "
				 "at most",
				 CD_PARENTS_MAX - 1);
	json_array_foreach(rows, i, row)
	{
		const char *name = json_string_value(row);
		const struct cd_prefix *p =
			name ? cd_prefix_child(cd_job_root(parent->job), name)
			     : NULL;

		if (!p || !cd_scope_has_prefix(core, p))
			return error_set(-EINVAL,
					 "\"parents\": there is no task "
					 "'%.64s' in /%s",
					 name ? name : "(no text)",
					 parent->job->name);
		if (cd_object_find(p, leaf))
			return error_set(-EEXIST,
					 "task %s has a file or queue %s "
					 "already",
					 name, leaf);
	}
	return 0;
}

static int make_task(struct cd_core *core, struct cd_prefix *parent,
		     const char *leaf, const json_t *body,
		     struct cd_prefix **out)
{
	int err = check_parents(core, parent, leaf, body);

	if (!err && cd_prefix_child(cd_job_root(parent->job), leaf))
		err = error_set(-EEXIST, "/%s has a task %s already",
				parent->job->name, leaf);
	if (!err)
		err = make_folder(core, parent->job->tenant, parent, leaf, body,
				  out);
	if (!err && json_object_get(body, "parents")) {
		err = link_more(*out, body);
		if (err)
			cd_core_resign(core,
				       "the controller has no memory left");
		else
			cd_stage_prefix(core, *out);
	}
	return err;
}

static int make_object(struct cd_core *core, struct cd_prefix *p,
		       const char *leaf, enum cd_object_kind kind,
		       const json_t *body, struct cd_object **out)
{
	uint64_t bytes = CD_BLOCK_BYTES, bound = 0;
	uint64_t copies = u32_max(p->job->copies, 1);
	int err = ctl_field_u64(body, "block_bytes", false, CD_BLOCK_MIN,
				CD_BLOCK_MAX, &bytes);

	if (!err && bytes & (bytes - 1))
		err = error_set(-EINVAL, "\"block_bytes\" is a power of two");
	if (!err)
		err = ctl_field_u64(body, "bound", false, 1, INT64_MAX, &bound);
	if (!err && bound && kind != CD_QUEUE)
		err = error_set(-EINVAL, "only a queue has a \"bound\"");
	if (!err)
		err = ctl_field_u64(body, "copies", false, 1, CD_CHAIN_MAX,
				    &copies);
	if (!err)
		err = cd_names_admit(core, p->job->tenant, 0, 1);
	if (!err)
		err = cd_object_add(core, p, leaf, cd_id_take(core), out);
	if (err)
		return err;
	(*out)->kind = kind;
	(*out)->block_bytes = bytes;
	(*out)->bound = bound;
	(*out)->copies = (unsigned)copies;
	core->tree->has_copies |= copies > 1;
	(*out)->epoch = (*out)->id;
	cd_lease_renew(core, p);
	cd_stage_object(core, *out);
	return 0;
}

static int make(struct cd_core *core, const char *tenant,
		const struct cd_at *parent, const char *leaf,
		const json_t *body, struct cd_at *out)
{
	struct cd_prefix *p = parent->prefix;
	const char *kind = NULL;
	enum cd_object_kind of;
	bool is_folder, is_task;
	int err = ctl_field_string(body, "kind", true, &kind);

	if (err)
		return err;
	/* "prefix": whichever of them belongs there. */
	if (strcmp(kind, "prefix") == 0)
		kind = p && p->job->has_plan ? "task" : "folder";
	is_folder = strcmp(kind, "folder") == 0;
	is_task = strcmp(kind, "task") == 0;
	if (!is_folder && !is_task)
		err = cd_object_kind_parse(kind, &of);
	if (!err && !is_folder && !p)
		err = error_set(-EINVAL,
				"a %s lies in a folder or below a "
				"task: /FOLDER/%s",
				kind, leaf);
	if (!err && p && (is_folder || is_task) && is_task != p->job->has_plan)
		err = error_set(-EINVAL,
				is_task ? "/%s is a folder, and has no tasks"
					: "/%s is a job, and has tasks, no "
					  "folders",
				p->job->name);
	if (!err && !is_folder && !is_task &&
	    (json_object_get(body, "lease_ms") ||
	     json_object_get(body, "on_expiry")))
		err = error_set(-EINVAL, "\"lease_ms\" and \"on_expiry\" are "
					 "those of the root of a path");
	if (!err && !is_task && json_object_get(body, "parents"))
		err = error_set(-EINVAL, "only a task has \"parents\"");
	if (!err)
		err = is_free(core, tenant, parent, leaf);
	if (err)
		return err;
	if (is_folder)
		return make_folder(core, tenant, p, leaf, body, &out->prefix);
	if (is_task)
		return make_task(core, p, leaf, body, &out->prefix);
	return make_object(core, p, leaf, of, body, &out->object);
}

/* "make_parents": folders that are missing on the way. One transaction, as
 * all of a request. */
static int make_way(struct cd_core *core, const char *tenant, const char *path)
{
	char part[CTL_PATH_MAX], leaf[CD_STEP_MAX + 1];
	const char *end = path + (path[0] == '/');
	json_t *body = json_pack("{s:s}", "kind", "folder");
	int err = 0;

	while (!err && (end = strchr(end, '/')) != NULL && end[1]) {
		struct cd_at at, out = {0};

		(void)snprintf(part, sizeof(part), "%.*s", (int)(end - path),
			       path);
		end++;
		/* What is above a token's path is no reason to stop. */
		if (cd_path_look(core, tenant, part, &at) == 0)
			continue;
		err = cd_path_split(core, tenant, part, &at, leaf);
		if (!err)
			err = make(core, tenant, &at, leaf, body, &out);
	}
	json_decref(body);
	return err;
}

void cd_handle_ns_make(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	const json_t *way = json_object_get(call->body, "make_parents");
	char leaf[CD_STEP_MAX + 1];
	struct cd_at parent, out = {0};
	struct cd_tenant *t = NULL;
	int err = cd_tenant_of_names(call, &t);

	if (!err && way && !json_is_boolean(way))
		err = error_set(-EINVAL, "\"make_parents\" is true or false");
	if (!err && json_is_true(way))
		err = make_way(core, t->name, path_of(call));
	if (!err)
		err = cd_path_split(core, t->name, path_of(call), &parent,
				    leaf);
	if (!err)
		err = make(core, t->name, &parent, leaf, call->body, &out);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 201,
			       out.object
				       ? cd_describe_object(core, out.object)
				       : cd_describe_prefix(core, out.prefix));
}
