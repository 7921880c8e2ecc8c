/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/ns/PATH: another name, other options, no name at all. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "tree_priv.h"

static int find(const struct cd_core *core, const struct ctl_call *call,
		struct cd_tenant **t, struct cd_at *at)
{
	int err = cd_tenant_of_names(call, t);

	if (!err)
		err = cd_path_find(core, (*t)->name,
				   call->rest ? call->rest : "", at);
	if (!err && !at->prefix)
		err = error_set(-EINVAL, "the path names nothing");
	return err ? err : cd_scope_check_change(core, at);
}

/* ---- moving ------------------------------------------------------------- */

static void move_object(struct cd_core *core, struct cd_object *o,
			struct cd_prefix *to, const char *leaf)
{
	cd_object_detach(o);
	cd_object_attach(to, o);
	(void)snprintf(o->name, sizeof(o->name), "%s", leaf);
	cd_stage_object(core, o);
}

/* A root stays one, a folder stays in its root. */
static int move_prefix(struct cd_core *core, struct cd_prefix *p,
		       struct cd_prefix *to, const char *leaf)
{
	struct cd_prefix *from;
	int err;

	if (cd_prefix_is_root(p) && !to) {
		cd_unstage_job(core, p->job);
		(void)snprintf(p->job->name, sizeof(p->job->name), "%s", leaf);
		cd_stage_job(core, p->job);
		return 0;
	}
	if (p->job->has_plan || (to && to->job->has_plan))
		return error_set(-EOPNOTSUPP, "tasks of a plan keep their "
					      "names and places");
	if (!to || to->job != p->job)
		return error_set(-EXDEV,
				 "folders can be moved within their "
				 "root /%s only",
				 p->job->name);
	if (cd_prefix_is_below(to, p))
		return error_set(-EINVAL, "a folder cannot be moved into "
					  "itself");
	from = p->parent[0];
	err = cd_prefix_link(to, p);
	if (err)
		return err;
	cd_prefix_unlink(from, p);
	/* The same parent twice: unlink took the first of both. */
	(void)snprintf(p->name, sizeof(p->name), "%s", leaf);
	err = cd_job_sort(p->job);
	if (err)
		cd_core_resign(core, "the controller has no memory left");
	else
		cd_stage_prefix(core, p);
	return err;
}

static int move(struct cd_core *core, const char *tenant,
		const struct cd_at *at, const char *path)
{
	char leaf[CD_STEP_MAX + 1];
	struct cd_at to;
	bool taken;
	int err = cd_path_split(core, tenant, path, &to, leaf);

	if (err)
		return err;
	taken = to.prefix ? cd_object_find(to.prefix, leaf) ||
				    cd_prefix_child(to.prefix, leaf)
			  : cd_job_find(core, tenant, leaf) != NULL;
	if (taken)
		return error_set(-EEXIST, "there is a %.200s already", path);
	if (!at->object)
		return move_prefix(core, at->prefix, to.prefix, leaf);
	if (!to.prefix)
		return error_set(-EINVAL,
				 "a %s lies in a folder or below a "
				 "task: /FOLDER/%s",
				 cd_object_kind_name(at->object->kind), leaf);
	move_object(core, at->object, to.prefix, leaf);
	return 0;
}

void cd_handle_ns_patch(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	const char *to = NULL;
	struct cd_tenant *t = NULL;
	struct cd_at at = {0};
	bool options = json_object_get(call->body, "lease_ms") ||
		       json_object_get(call->body, "on_expiry");
	int err = find(core, call, &t, &at);

	if (!err)
		err = ctl_field_string(call->body, "to", false, &to);
	if (!err && !to == !options)
		err = error_set(-EINVAL, "a change is \"to\", or \"lease_ms\" "
					 "and \"on_expiry\"");
	if (!err && options && (at.object || !cd_prefix_is_root(at.prefix)))
		err = error_set(-EINVAL, "\"lease_ms\" and \"on_expiry\" are "
					 "those of the root of a path");
	if (!err && options) {
		err = cd_job_options(core, call->body, at.prefix->job);
		if (!err)
			cd_stage_job(core, at.prefix->job);
	}
	if (!err && to) {
		err = move(core, t->name, &at, to);
		if (err)
			err = error_prefix(err, "\"to\": ");
	}
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200,
			       at.object ? cd_describe_object(core, at.object)
					 : cd_describe_prefix(core, at.prefix));
}

/* ---- removing ----------------------------------------------------------- */

static void remove_at(struct cd_core *core, const struct cd_at *at)
{
	if (at->object) {
		cd_unstage_id(core, "object", at->object->id);
		cd_object_remove(core, at->object);
	} else if (cd_prefix_is_root(at->prefix)) {
		cd_unstage_job(core, at->prefix->job);
		cd_job_free(core, at->prefix->job);
	} else {
		cd_unstage_id(core, "prefix", at->prefix->id);
		cd_prefix_remove(core, at->prefix);
	}
}

void cd_handle_ns_delete(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	const json_t *all = json_object_get(call->body, "recursive");
	struct cd_tenant *t = NULL;
	struct cd_at at = {0};
	int err = find(core, call, &t, &at);

	if (!err && all && !json_is_boolean(all))
		err = error_set(-EINVAL, "\"recursive\" is true or false");
	if (!err && !at.object && !json_is_true(all) &&
	    (at.prefix->child_count || at.prefix->objects))
		err = error_set(-ENOTEMPTY,
				"/%.200s is not empty; "
				"\"recursive\" removes all of it",
				call->rest);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	remove_at(core, &at);
	ctl_reply_none(call->reply);
}
