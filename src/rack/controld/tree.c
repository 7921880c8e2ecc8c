/* SPDX-License-Identifier: Apache-2.0 */
/* Roots of tenants and the prefixes below them: a graph without cycles. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "vault_priv.h"

static struct cd_job **slot_of(struct cd_tree *tree, const char *tenant)
{
	unsigned hash = 0;

	for (; *tenant; tenant++)
		hash = hash * 31 + (unsigned char)*tenant;
	return &tree->jobs[hash % ARRAY_LEN(tree->jobs)];
}

/* ---- life --------------------------------------------------------------- */

int cd_tree_create(struct cd_tree **out)
{
	struct cd_tree *tree = calloc(1, sizeof(*tree));

	if (!tree)
		return error_set(-ENOMEM, "no memory for names");
	tree->id_next = tree->id_mark = 1;
	tree->late_prefix = json_object();
	tree->late_object = json_object();
	tree->late_block = json_object();
	tree->late_image = json_object();
	*out = tree;
	return 0;
}

void cd_tree_clear(struct cd_core *core)
{
	struct cd_tree *tree = core->tree;

	for (unsigned i = 0; i < ARRAY_LEN(tree->jobs); i++)
		while (tree->jobs[i])
			cd_job_free(core, tree->jobs[i]);
	cd_vault_clear(core);
	cd_litter_clear(core);
	tree->id_next = tree->id_mark = 1;
	tree->ticked_ns = 0;
	memset(tree->key, 0, sizeof(tree->key));
	tree->key_count = 0;
	(void)json_object_clear(tree->late_prefix);
	(void)json_object_clear(tree->late_object);
	(void)json_object_clear(tree->late_block);
	(void)json_object_clear(tree->late_image);
}

void cd_tree_destroy(struct cd_core *core)
{
	struct cd_tree *tree = core->tree;

	if (!tree)
		return;
	cd_tree_clear(core);
	free(tree->prefixes.row);
	free(tree->objects.row);
	free(tree->images.row);
	free(tree->moving.row);
	json_decref(tree->late_prefix);
	json_decref(tree->late_object);
	json_decref(tree->late_block);
	json_decref(tree->late_image);
	free(tree);
	core->tree = NULL;
}

void cd_tree_tick(struct cd_core *core)
{
	cd_lease_tick(core);
	if (!cd_core_is_sure(core))
		return;
	cd_keys_tick(core);
	cd_litter_tick(core);
	cd_vault_tick(core);
	cd_stage_group(core);
	cd_chains_tick(core);
}

/* ---- jobs --------------------------------------------------------------- */

struct cd_prefix *cd_job_root(const struct cd_job *job)
{
	return job->order[0];
}

struct cd_job *cd_job_first(const struct cd_core *core, const char *tenant)
{
	struct cd_job *job = *slot_of(core->tree, tenant);

	while (job && strcmp(job->tenant, tenant) != 0)
		job = job->next;
	return job;
}

struct cd_job *cd_job_find(const struct cd_core *core, const char *tenant,
			   const char *name)
{
	struct cd_job *job = *slot_of(core->tree, tenant);

	while (job && (strcmp(job->tenant, tenant) != 0 ||
		       strcmp(job->name, name) != 0))
		job = job->next;
	return job;
}

static int check_count(const struct cd_core *core, const char *tenant)
{
	unsigned count = 0;

	for (const struct cd_job *j = cd_job_first(core, tenant); j;
	     j = j->next)
		count += strcmp(j->tenant, tenant) == 0;
	return count < CD_JOBS_MAX
		       ? 0
		       : error_set(-EAGAIN,
				   "a tenant has %d jobs and folders "
				   "at most",
				   CD_JOBS_MAX);
}

int cd_job_add(struct cd_core *core, const char *tenant, const char *name,
	       uint64_t id, struct cd_job **out)
{
	struct cd_job **at = slot_of(core->tree, tenant);
	struct cd_prefix *root;
	struct cd_job *job;
	int err = check_count(core, tenant);

	if (err)
		return err;
	job = calloc(1, sizeof(*job));
	if (!job)
		return error_set(-ENOMEM, "no memory for a job");
	(void)snprintf(job->tenant, sizeof(job->tenant), "%s", tenant);
	(void)snprintf(job->name, sizeof(job->name), "%s", name);
	job->lease_ms = CD_LEASE_MS;
	job->flush = core->vault[0] != 0;
	/* At the end: tenants that share a slot, and their jobs, stay in the
	 * order in which they came. */
	while (*at)
		at = &(*at)->next;
	*at = job;
	core->tree->job_count++;
	/* A root's name is the job's, which may change. */
	err = cd_prefix_add(core, job, "", id, &root);
	if (err) {
		cd_job_free(core, job);
		return err;
	}
	*out = job;
	return 0;
}

static void prefix_free(struct cd_core *core, struct cd_prefix *p)
{
	while (p->objects) {
		cd_litter_id(core, "object", p->objects->id);
		cd_object_remove(core, p->objects);
	}
	cd_ids_remove(&core->tree->prefixes, p->id);
	free(p->parent);
	free(p->child);
	free(p);
}

void cd_job_free(struct cd_core *core, struct cd_job *job)
{
	struct cd_job **at = slot_of(core->tree, job->tenant);

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	core->tree->job_count--;
	for (unsigned i = 0; i < job->count; i++) {
		if (!cd_prefix_is_root(job->order[i]))
			cd_litter_id(core, "prefix", job->order[i]->id);
		prefix_free(core, job->order[i]);
	}
	free(job->order);
	free(job->by_name);
	free(job);
}

void cd_jobs_remove(struct cd_core *core, const char *tenant)
{
	struct cd_job *job;

	core->tree->part = 0;
	while ((job = cd_job_first(core, tenant)) != NULL) {
		cd_unstage_job(core, job);
		cd_stage_part(core);
		cd_job_free(core, job);
	}
}

/* ---- prefixes ----------------------------------------------------------- */

bool cd_prefix_is_root(const struct cd_prefix *p)
{
	return p->parent_count == 0;
}

const char *cd_prefix_kind(const struct cd_prefix *p)
{
	if (!p->job->has_plan)
		return "folder";
	return cd_prefix_is_root(p) ? "job" : "task";
}

/* Where the name is, or would be, among those that are sorted. */
static unsigned name_place(const struct cd_job *job, const char *name)
{
	unsigned low = 0, high = job->count;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;

		if (strcmp(job->by_name[mid]->name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int grow(struct cd_job *job)
{
	unsigned room = job->count ? 2 * job->count : 8;
	struct cd_prefix **order, **by_name;

	/* Full when it is a power of two from 8 on. */
	if (job->count && (job->count < 8 || job->count & (job->count - 1)))
		return 0;
	order = realloc(job->order, room * sizeof(*order));
	if (order)
		job->order = order;
	by_name = realloc(job->by_name, room * sizeof(*by_name));
	if (by_name)
		job->by_name = by_name;
	return order && by_name ? 0 : error_set(-ENOMEM, "no memory for names");
}

int cd_prefix_add(struct cd_core *core, struct cd_job *job, const char *name,
		  uint64_t id, struct cd_prefix **out)
{
	struct cd_prefix *p = NULL;
	unsigned at;
	int err = grow(job);

	if (!err && core->tree->prefixes.count >= CD_PREFIXES_MAX)
		err = error_set(-EAGAIN,
				"a rack has %d folders and tasks at "
				"most",
				CD_PREFIXES_MAX);
	if (!err) {
		p = calloc(1, sizeof(*p));
		err = p ? cd_ids_add(&core->tree->prefixes, id, p)
			: error_set(-ENOMEM, "no memory for a name");
	}
	if (err) {
		free(p);
		return err;
	}
	p->id = id;
	p->job = job;
	p->renewed_ns = core->tree->lease_ns;
	(void)snprintf(p->name, sizeof(p->name), "%s", name);
	at = name_place(job, name);
	memmove(job->by_name + at + 1, job->by_name + at,
		(job->count - at) * sizeof(*job->by_name));
	job->by_name[at] = p;
	job->order[job->count++] = p;
	job->due_ns = 0;
	*out = p;
	return 0;
}

static int append(struct cd_prefix ***list, unsigned count,
		  struct cd_prefix *one)
{
	struct cd_prefix **more = *list;

	if (!(count & (count - 1)))
		more = realloc(*list, (count ? 2 * count : 1) * sizeof(*more));
	if (!more)
		return error_set(-ENOMEM, "no memory for names");
	*list = more;
	more[count] = one;
	return 0;
}

int cd_prefix_link(struct cd_prefix *parent, struct cd_prefix *child)
{
	int err;

	if (child->parent_count == CD_PARENTS_MAX)
		return error_set(-E2BIG,
				 "a task has %d parents at most; '%s' "
				 "has more",
				 CD_PARENTS_MAX, child->name);
	err = append(&parent->child, parent->child_count, child);
	if (!err)
		err = append(&child->parent, child->parent_count, parent);
	if (err)
		return err;
	parent->child_count++;
	child->parent_count++;
	return 0;
}

static void strike(struct cd_prefix **list, unsigned *count,
		   const struct cd_prefix *one)
{
	for (unsigned i = 0; i < *count; i++) {
		if (list[i] != one)
			continue;
		(*count)--;
		memmove(list + i, list + i + 1, (*count - i) * sizeof(*list));
		return;
	}
}

void cd_prefix_unlink(struct cd_prefix *parent, struct cd_prefix *child)
{
	strike(parent->child, &parent->child_count, child);
	strike(child->parent, &child->parent_count, parent);
}

/* Those whose parents are all placed come next; who is never placed is in a
 * cycle, or behind one. */
int cd_job_sort(struct cd_job *job)
{
	struct cd_prefix **sorted = malloc(job->count * sizeof(*sorted));
	const struct cd_prefix *left = NULL;
	unsigned placed = 0;

	if (!sorted)
		return error_set(-ENOMEM, "no memory for names");
	for (unsigned i = 0; i < job->count; i++) {
		job->order[i]->mark = job->order[i]->parent_count;
		if (!job->order[i]->parent_count)
			sorted[placed++] = job->order[i];
	}
	for (unsigned i = 0; i < placed; i++)
		for (unsigned k = 0; k < sorted[i]->child_count; k++)
			if (!--sorted[i]->child[k]->mark)
				sorted[placed++] = sorted[i]->child[k];
	for (unsigned i = 0; i < job->count; i++)
		if (job->order[i]->mark)
			left = job->order[i];
	if (!left)
		memcpy(job->order, sorted, job->count * sizeof(*sorted));
	free(sorted);
	return left ? error_set(-ELOOP,
				"the plan has a cycle; '%s' is in it "
				"or behind it",
				left->name)
		    : 0;
}

void cd_prefix_remove(struct cd_core *core, struct cd_prefix *target)
{
	struct cd_job *job = target->job;
	unsigned kept = 0, named = 0;

	/* mark 1: it goes, because nothing that stays leads to it. */
	for (unsigned i = 0; i < job->count; i++) {
		struct cd_prefix *p = job->order[i];
		bool goes = p->parent_count != 0;

		for (unsigned k = 0; k < p->parent_count; k++)
			goes &= p->parent[k]->mark == 1;
		p->mark = goes || p == target;
	}
	for (unsigned i = 0; i < job->count; i++) {
		struct cd_prefix *p = job->order[i];

		for (unsigned k = p->parent_count; k-- > 0;)
			if (p->mark || p->parent[k]->mark)
				cd_prefix_unlink(p->parent[k], p);
		if (!job->by_name[i]->mark)
			job->by_name[named++] = job->by_name[i];
	}
	for (unsigned i = 0; i < job->count; i++) {
		struct cd_prefix *p = job->order[i];

		if (!p->mark) {
			job->order[kept++] = p;
			continue;
		}
		if (p != target)
			cd_litter_id(core, "prefix", p->id);
		prefix_free(core, p);
	}
	/* Room stays as it is; grow() looks at powers of two only. */
	job->count = kept;
}

struct cd_prefix *cd_prefix_child(const struct cd_prefix *p, const char *name)
{
	struct cd_job *job = p->job;
	struct cd_prefix *found = NULL;

	if (job->has_plan) {
		unsigned at = name_place(job, name);

		if (at < job->count &&
		    strcmp(job->by_name[at]->name, name) == 0)
			found = job->by_name[at];
		if (!found || cd_prefix_is_root(p))
			return found;
	}
	for (unsigned i = 0; i < p->child_count; i++)
		if (found ? p->child[i] == found
			  : strcmp(p->child[i]->name, name) == 0)
			return p->child[i];
	return NULL;
}
