/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths: /JOB/TASK/TASK/OBJECT or /FOLDER/FOLDER/OBJECT. In a job every walk
 * along the edges of its plan is an address of the task at its end; since names
 * of tasks are unique in a job, a walk may also begin at any task.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "tree_priv.h"

/* The next name; *path is behind it. 0: there is none, and the path ends. */
static int next_step(const char **path, char out[CD_STEP_MAX + 1])
{
	size_t len = strcspn(*path, "/");

	(void)snprintf(out, CD_STEP_MAX + 1, "%.*s", (int)len, *path);
	if (len > CD_STEP_MAX || !ctl_name_is_valid(out, CD_STEP_MAX))
		return error_set(-EINVAL,
				 "a name in a path has 1 to %d letters, "
				 "digits, '-', '_' and '.', and does not begin "
				 "with '-' or '.'",
				 CD_STEP_MAX);
	*path += len;
	if (**path == '/')
		(*path)++;
	return 0;
}

static int unknown(const struct cd_core *core, const char *path)
{
	return error_set(-ENOENT, "there is no /%.200s%s",
			 path[0] == '/' ? path + 1 : path,
			 cd_scope_shown(core) ? ", or not for this token" : "");
}

/* One step down. */
static int step(const struct cd_core *core, const char *tenant,
		const char *name, struct cd_at *at)
{
	const struct cd_prefix *p = at->prefix;
	const struct cd_job *job;

	if (at->object)
		return -ENOENT; /* nothing is below an object */
	if (!p) {
		job = cd_job_find(core, tenant, name);
		at->prefix = job ? cd_job_root(job) : NULL;
		return job ? 0 : -ENOENT;
	}
	at->object = cd_object_find(p, name);
	if (at->object)
		return 0;
	at->prefix = cd_prefix_child(p, name);
	return at->prefix ? 0 : -ENOENT;
}

int cd_path_look(const struct cd_core *core, const char *tenant,
		 const char *path, struct cd_at *out)
{
	const char *rest = path + (path[0] == '/');
	char name[CD_STEP_MAX + 1];
	int err = 0;

	*out = (struct cd_at){0};
	while (!err && *rest) {
		err = next_step(&rest, name);
		if (!err && step(core, tenant, name, out))
			return unknown(core, path);
	}
	return err;
}

int cd_path_find(const struct cd_core *core, const char *tenant,
		 const char *path, struct cd_at *out)
{
	int err;

	if (!path[path[0] == '/'])
		return cd_scope_root(core, out);
	err = cd_path_look(core, tenant, path, out);
	return err || cd_scope_has(core, out) ? err : unknown(core, path);
}

int cd_path_split(const struct cd_core *core, const char *tenant,
		  const char *path, struct cd_at *out,
		  char leaf[CD_STEP_MAX + 1])
{
	const char *rest = path + (path[0] == '/');
	int err = 0;

	*out = (struct cd_at){0};
	if (!*rest)
		return error_set(-EINVAL, "the path names nothing");
	while (!err) {
		err = next_step(&rest, leaf);
		if (err || !*rest)
			break;
		if (step(core, tenant, leaf, out))
			return unknown(core, path);
		if (out->object && cd_scope_has(core, out))
			return error_set(
				-ENOTDIR, "'%s' in the path is a %s", leaf,
				cd_object_kind_name(out->object->kind));
	}
	return err || cd_scope_has(core, out) ? err : unknown(core, path);
}

bool cd_prefix_is_below(const struct cd_prefix *p, const struct cd_prefix *top)
{
	while (p != top && !cd_prefix_is_root(p))
		p = p->parent[0];
	return p == top;
}

/* The way up that the caller may know of. */
static const struct cd_prefix *above(const struct cd_core *core,
				     const struct cd_prefix *p)
{
	for (unsigned i = 0; core && i < p->parent_count; i++)
		if (cd_scope_has_prefix(core, p->parent[i]))
			return p->parent[i];
	return p->parent[0];
}

/* From the end, by the first parent of each; a long walk begins at the first
 * task that fits. It ends at `top`, which has the path `head`. */
static void format(const struct cd_core *core, const struct cd_prefix *top,
		   const char *head, const struct cd_prefix *p,
		   const struct cd_object *o, char out[CTL_PATH_MAX])
{
	char text[CTL_PATH_MAX];
	size_t at = sizeof(text) - 1;
	size_t root = strlen(head);
	const char *name = o ? o->name : NULL;

	text[at] = 0;
	for (;;) {
		if (name) {
			size_t len = strlen(name);

			if (at < root + len + 1)
				break;
			at -= len;
			memcpy(text + at, name, len);
			text[--at] = '/';
		}
		if (p == top || cd_prefix_is_root(p))
			break;
		name = p->name;
		p = above(core, p);
	}
	(void)snprintf(out, CTL_PATH_MAX, "%s%s", head, text + at);
}

void cd_path_format(const struct cd_prefix *p, const struct cd_object *o,
		    char out[CTL_PATH_MAX])
{
	char head[CD_STEP_MAX + 2];

	(void)snprintf(head, sizeof(head), "/%s", p->job->name);
	format(NULL, cd_job_root(p->job), head, p, o, out);
}

void cd_path_show(const struct cd_core *core, const struct cd_prefix *p,
		  const struct cd_object *o, char out[CTL_PATH_MAX])
{
	const struct cd_scope *s = cd_scope_shown(core);

	if (!s)
		cd_path_format(p, o, out);
	else if (s->at.object)
		(void)snprintf(out, CTL_PATH_MAX, "%s", s->narrow->path);
	else
		format(core, s->at.prefix, s->narrow->path, p, o, out);
}
