/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: {"task": ["parent", ...], ...} in one request. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "tree_priv.h"

static int check_task(const char *name, const json_t *parents)
{
	if (!ctl_name_is_valid(name, CD_STEP_MAX))
		return error_set(-EINVAL,
				 "\"plan\": '%.64s' is no name of a task: 1 "
				 "to %d letters, digits, '-', '_' and '.'",
				 name, CD_STEP_MAX);
	if (!json_is_array(parents))
		return error_set(-EINVAL,
				 "\"plan\": task '%s' has no list of parents",
				 name);
	return 0;
}

/* Tasks without parents are children of the job. */
static int link_task(struct cd_job *job, struct cd_prefix *task,
		     const json_t *parents)
{
	const json_t *row;
	size_t i;
	int err = 0;

	if (!json_array_size(parents))
		return cd_prefix_link(cd_job_root(job), task);
	json_array_foreach(parents, i, row)
	{
		const char *name = json_string_value(row);
		struct cd_prefix *p =
			name ? cd_prefix_child(cd_job_root(job), name) : NULL;

		if (!p)
			return error_set(-EINVAL,
					 "\"plan\": the parent '%.64s' of task "
					 "'%s' is no task of the plan",
					 name ? name : "(no text)", task->name);
		for (unsigned k = 0; k < task->parent_count; k++)
			if (task->parent[k] == p)
				return error_set(-EINVAL,
						 "\"plan\": task '%s' names "
						 "its parent '%s' twice",
						 task->name, name);
		err = cd_prefix_link(p, task);
		if (err)
			return err;
	}
	return 0;
}

int cd_plan_build(struct cd_core *core, struct cd_job *job, const json_t *plan)
{
	struct cd_prefix *task;
	const char *name;
	json_t *parents;
	int err;

	if (!json_is_object(plan))
		return error_set(-EINVAL, "\"plan\" is an object of tasks");
	if (json_object_size(plan) > CD_TASKS_MAX)
		return error_set(-E2BIG, "\"plan\" has %d tasks at most",
				 CD_TASKS_MAX);
	json_object_foreach((json_t *)(uintptr_t)plan, name, parents)
	{
		err = check_task(name, parents);
		if (!err)
			err = cd_prefix_add(core, job, name, cd_id_take(core),
					    &task);
		if (err)
			return err;
	}
	json_object_foreach((json_t *)(uintptr_t)plan, name, parents)
	{
		err = link_task(job, cd_prefix_child(cd_job_root(job), name),
				parents);
		if (err)
			return err;
	}
	return cd_job_sort(job);
}
