/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/jobs: a plan as a whole; and /v1/renew. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "vault_priv.h"

int cd_tenant_of_names(const struct ctl_call *call, struct cd_tenant **out)
{
	const struct cd_who *who = call->caller;

	*out = who->tenant;
	return who->role == CD_ROLE_TENANT
		       ? 0
		       : error_set(-EACCES, "names belong to tenants; use a "
					    "tenant's token");
}

const char *cd_job_expiry(const struct cd_job *job)
{
	return job->keep ? "keep" : job->flush ? "flush" : "drop";
}

int cd_job_options(const struct cd_core *core, const json_t *body,
		   struct cd_job *job)
{
	const char *expiry = cd_job_expiry(job);
	uint64_t lease = job->lease_ms, copies = u32_max(job->copies, 1);
	int err = ctl_field_u64(body, "lease_ms", false, CD_LEASE_MIN_MS,
				CD_LEASE_MAX_MS, &lease);

	if (!err)
		err = ctl_field_string(body, "on_expiry", false, &expiry);
	if (!err)
		err = ctl_field_u64(body, "copies", false, 1, CD_CHAIN_MAX,
				    &copies);
	if (!err && strcmp(expiry, "drop") != 0 &&
	    strcmp(expiry, "keep") != 0 && strcmp(expiry, "flush") != 0)
		err = error_set(-EINVAL, "\"on_expiry\" is flush, drop or "
					 "keep");
	if (!err && strcmp(expiry, "flush") == 0 && !core->vault[0] &&
	    !job->flush)
		err = error_set(-EINVAL,
				"\"on_expiry\" is flush, and the "
				"controller has no vault (rack.vault)");
	if (err)
		return err;
	job->lease_ms = (uint32_t)lease;
	job->copies = (unsigned)copies;
	job->keep = strcmp(expiry, "keep") == 0;
	job->flush = strcmp(expiry, "flush") == 0;
	job->due_ns = 0;
	return 0;
}

/* Its tasks in parts, and last its own row, which makes them visible. */
void cd_job_stage_all(struct cd_core *core, const struct cd_job *job)
{
	for (unsigned i = 1; i < job->count; i++) {
		cd_stage_prefix(core, job->order[i]);
		cd_stage_part(core);
	}
	cd_stage_job(core, job);
}

static int create(struct cd_core *core, const struct cd_tenant *t,
		  const json_t *body, struct cd_job **out)
{
	const json_t *plan = json_object_get(body, "plan");
	const char *name = NULL;
	struct cd_job *job;
	int err = ctl_field_string(body, "name", true, &name);

	if (!err && !ctl_name_is_valid(name, CD_STEP_MAX))
		err = error_set(-EINVAL,
				"\"name\" has 1 to %d letters, digits, '-', "
				"'_' and '.', and does not begin with '-' or "
				"'.'",
				CD_STEP_MAX);
	if (!err && cd_job_find(core, t->name, name))
		err = error_set(-EEXIST, "there is a /%s already", name);
	if (!err)
		err = cd_names_admit(core, t->name,
				     1 + (unsigned)json_object_size(plan), 0);
	if (!err)
		err = cd_job_add(core, t->name, name, cd_id_take(core), &job);
	if (err)
		return err;
	job->has_plan = true;
	err = cd_job_options(core, body, job);
	if (!err && plan)
		err = cd_plan_build(core, job, plan);
	if (err) {
		/* Nothing of it is a row. */
		cd_job_free(core, job);
		return err;
	}
	*out = job;
	return 0;
}

void cd_handle_job_create(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct cd_tenant *t = NULL;
	struct cd_job *job = NULL;
	int err = cd_tenant_of_names(call, &t);

	if (!err)
		err = create(core, t, call->body, &job);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	cd_job_stage_all(core, job);
	ctl_reply_json(call->reply, 201,
		       cd_describe_prefix(core, cd_job_root(job)));
}

void cd_handle_job_list(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	struct cd_tenant *t = NULL;
	const struct cd_job *job;
	json_t *rows;
	int err = cd_tenant_of_names(call, &t);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	rows = json_array();
	for (job = cd_job_first(core, t->name); job; job = job->next)
		if (strcmp(job->tenant, t->name) == 0 &&
		    cd_scope_has_prefix(core, cd_job_root(job)))
			(void)json_array_append_new(
				rows,
				cd_describe_prefix(core, cd_job_root(job)));
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "jobs", rows));
}

/* ---- renewing ----------------------------------------------------------- */

static int check_paths(const json_t *paths)
{
	const json_t *v;
	size_t i;

	if (!json_is_array(paths))
		return error_set(-EINVAL, "\"paths\" is a list of paths");
	if (json_array_size(paths) > CD_RENEW_MAX)
		return error_set(-E2BIG, "\"paths\" has %d at most",
				 CD_RENEW_MAX);
	json_array_foreach(paths, i, v)
	{
		if (!json_is_string(v))
			return error_set(-EINVAL,
					 "\"paths\" is a list of paths");
	}
	return 0;
}

/* The shortest period of all: who renews at a third of it is safe. */
void cd_handle_renew(void *ctx, struct ctl_call *call)
{
	struct cd_core *core = ctx;
	const json_t *paths = json_object_get(call->body, "paths"), *v;
	json_t *unknown = json_array(), *expired = json_array();
	uint64_t period = CD_LEASE_MAX_MS;
	struct cd_tenant *t = NULL;
	size_t i;
	int err = cd_tenant_of_names(call, &t);

	if (!err)
		err = check_paths(paths);
	json_array_foreach(err ? NULL : paths, i, v)
	{
		struct cd_at at;

		if (cd_path_find(core, t->name, json_string_value(v), &at) ||
		    !at.prefix) {
			(void)json_array_append(unknown,
						(json_t *)(uintptr_t)v);
			continue;
		}
		/* As the last tick has found it, which drops what expires. */
		if (at.prefix->life == CD_EXPIRED)
			(void)json_array_append(expired,
						(json_t *)(uintptr_t)v);
		cd_lease_renew(core, at.prefix);
		period = u64_min(period, at.prefix->job->lease_ms);
	}
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200,
			       json_pack("{s:I, s:O, s:O}", "period_ms",
					 cd_int(period), "unknown", unknown,
					 "expired", expired));
	json_decref(unknown);
	json_decref(expired);
}
