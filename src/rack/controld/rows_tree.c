/* SPDX-License-Identifier: Apache-2.0 */
/* From rows of the ledger to names and blocks. What belongs to nothing is
 * struck off; what is not as it was written spoils all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"
#include "base/plant.h"
#include "base/rundir.h"
#include "vault_priv.h"

/* ---- in ----------------------------------------------------------------- */

static int name_of(const json_t *row, char out[CD_STEP_MAX + 1])
{
	const char *text = NULL;
	int err = ctl_field_string(row, "name", true, &text);

	if (!err && !ctl_name_is_valid(text, CD_STEP_MAX))
		err = error_set(-EINVAL, "\"name\" is none");
	if (!err)
		(void)snprintf(out, CD_STEP_MAX + 1, "%s", text);
	return err;
}

static int flag_of(const json_t *row, const char *name, bool *out)
{
	const json_t *v = json_object_get(row, name);

	if (!json_is_boolean(v))
		return error_set(-EINVAL, "\"%s\" is true or false", name);
	*out = json_is_true(v);
	return 0;
}

static int key_row(struct cd_core *core, const char *key, const json_t *row)
{
	struct cd_tree *tree = core->tree;
	struct cd_key *k = &tree->key[tree->key_count];
	const char *seed = NULL;
	int err = ctl_field_string(row, "seed", true, &seed);

	if (!err && tree->key_count == CD_KEYS_MAX)
		err = error_set(-EINVAL, "there are too many keys");
	if (!err)
		err = ctl_field_u64(row, "made", true, 0, INT64_MAX,
				    &k->made_s);
	if (!err && (sscanf(key, "ticket-key-%10u", &k->id) != 1 ||
		     !hex_read(seed, k->seed, sizeof(k->seed))))
		err = error_set(-EINVAL, "it is no key");
	if (err)
		return err;
	ctl_ticket_public(k->seed, k->public);
	tree->key_count++;
	return 0;
}

static int rack_row(struct cd_core *core, const char *key, const json_t *row)
{
	struct cd_tree *tree = core->tree;
	int err;

	if (strncmp(key, "ticket-key-", 11) == 0)
		return key_row(core, key, row);
	if (strcmp(key, "ids") != 0)
		return error_set(-EINVAL, "this release knows no such row");
	err = ctl_field_u64(row, "next", true, 1, INT64_MAX / 2,
			    &tree->id_mark);
	if (PLANTED(ctl_ids_again) && !err)
		tree->id_mark = 1000;
	tree->id_next = tree->id_mark;
	return err;
}

static int job_row(struct cd_core *core, const char *key, const json_t *row)
{
	const char *slash = strchr(key, '/');
	char tenant[CD_NAME_MAX + 1];
	uint64_t id = 0, lease = 0;
	struct cd_job *job = NULL;
	int err = 0;

	if (!slash || slash - key > CD_NAME_MAX ||
	    !ctl_name_is_valid(slash + 1, CD_STEP_MAX))
		return error_set(-EINVAL, "the key is TENANT/NAME");
	(void)snprintf(tenant, sizeof(tenant), "%.*s", (int)(slash - key), key);
	err = ctl_field_u64(row, "id", true, 1, INT64_MAX, &id);
	if (!err && cd_ids_find(&core->tree->prefixes, id))
		err = error_set(-EINVAL, "its id comes twice");
	if (!err)
		err = ctl_field_u64(row, "lease_ms", true, CD_LEASE_MIN_MS,
				    CD_LEASE_MAX_MS, &lease);
	if (!err)
		err = cd_job_add(core, tenant, slash + 1, id, &job);
	if (!err)
		err = flag_of(row, "plan", &job->has_plan);
	if (!err)
		err = flag_of(row, "keep", &job->keep);
	/* Rows of an earlier release have none. */
	if (!err) {
		job->lease_ms = (uint32_t)lease;
		job->flush = json_is_true(json_object_get(row, "flush"));
		job->copies = (unsigned)json_integer_value(
			json_object_get(row, "copies"));
	}
	return err;
}

bool cd_tree_row(struct cd_core *core, const char *kind, const char *key,
		 json_t *row, int *err)
{
	struct cd_tree *tree = core->tree;
	const struct {
		const char *kind;
		json_t *late;
	} late[] = {
		{"prefix", tree->late_prefix},
		{"object", tree->late_object},
		{"block", tree->late_block},
		{"image", tree->late_image},
	};

	for (size_t i = 0; i < ARRAY_LEN(late); i++) {
		if (strcmp(kind, late[i].kind) != 0)
			continue;
		*err = json_object_set(late[i].late, key, row)
			       ? error_set(-ENOMEM, "no memory for rows")
			       : 0;
		return true;
	}
	if (strcmp(kind, "rack") == 0)
		*err = rack_row(core, key, row);
	else if (strcmp(kind, "job") == 0)
		*err = job_row(core, key, row);
	else
		return false;
	return true;
}

/* ---- the end: what needs others ----------------------------------------- */

static int parents_check(const json_t *row)
{
	const json_t *parents = json_object_get(row, "parents"), *v;
	size_t i;

	if (!json_is_array(parents) || !json_array_size(parents))
		return error_set(-EINVAL, "\"parents\" is a list of ids");
	json_array_foreach(parents, i, v)
	{
		if (!json_is_integer(v) || json_integer_value(v) <= 0)
			return error_set(-EINVAL,
					 "\"parents\" is a list of ids");
	}
	return 0;
}

/* Whether all of it that is there is in one job; and in which. */
static struct cd_job *job_of_parents(const struct cd_core *core,
				     const json_t *row, const json_t *rows)
{
	unsigned steps = 0;

	/* By first parents up to a root; a chain that does not end is none. */
	while (row && steps++ <= CD_TASKS_MAX + 1) {
		const json_t *parents = json_object_get(row, "parents"), *v;
		const json_t *next = NULL;
		size_t i;

		json_array_foreach(parents, i, v)
		{
			uint64_t id = (uint64_t)json_integer_value(v);
			struct cd_prefix *p =
				cd_ids_find(&core->tree->prefixes, id);
			char key[CD_ID_TEXT];

			if (p)
				return p->job;
			cd_id_format(id, key);
			if (!next)
				next = json_object_get(rows, key);
		}
		row = next;
	}
	return NULL;
}

static int prefix_row(struct cd_core *core, const char *key, const json_t *row,
		      const json_t *rows)
{
	char name[CD_STEP_MAX + 1];
	struct cd_prefix *p;
	struct cd_job *job;
	uint64_t id = 0;
	int err = name_of(row, name);

	if (!err)
		err = parents_check(row);
	if (!err &&
	    (!cd_id_parse(key, &id) || cd_ids_find(&core->tree->prefixes, id)))
		err = error_set(-EINVAL, "the key is no id, or comes twice");
	if (err)
		return err;
	job = job_of_parents(core, row, rows);
	if (!job) {
		cd_litter_add(core, "prefix", key);
		return 0;
	}
	return cd_prefix_add(core, job, name, id, &p);
}

static int link_prefix(struct cd_core *core, struct cd_prefix *p,
		       const json_t *row)
{
	const json_t *parents = json_object_get(row, "parents"), *v;
	int err = 0;
	size_t i;

	json_array_foreach(parents, i, v)
	{
		struct cd_prefix *q = cd_ids_find(
			&core->tree->prefixes, (uint64_t)json_integer_value(v));

		if (q && q->job == p->job && !err)
			err = cd_prefix_link(q, p);
	}
	if (!err && !p->parent_count)
		err = error_set(-EINVAL, "it has no parent in its job");
	return err;
}

static int object_row(struct cd_core *core, const char *key, const json_t *row)
{
	const char *kind = NULL, *lost = NULL, *state = "ready";
	char name[CD_STEP_MAX + 1];
	uint64_t id = 0, prefix = 0, copies = 1;
	struct cd_object *o = NULL;
	struct cd_prefix *p;
	int err = name_of(row, name);

	if (!err && !cd_id_parse(key, &id))
		err = error_set(-EINVAL, "the key is no id");
	if (!err)
		err = ctl_field_u64(row, "prefix", true, 1, INT64_MAX, &prefix);
	p = err ? NULL : cd_ids_find(&core->tree->prefixes, prefix);
	if (!err && !p) {
		cd_litter_add(core, "object", key);
		return 0;
	}
	if (!err && cd_object_find(p, name))
		err = error_set(-EINVAL, "its name comes twice");
	if (!err)
		err = cd_object_add(core, p, name, id, &o);
	if (!err)
		err = ctl_field_string(row, "kind", true, &kind);
	if (!err)
		err = cd_object_kind_parse(kind, &o->kind);
	if (!err)
		err = ctl_field_u64(row, "block_bytes", true, CD_BLOCK_MIN,
				    CD_BLOCK_MAX, &o->block_bytes);
	if (!err)
		err = ctl_field_u64(row, "bound", true, 0, INT64_MAX,
				    &o->bound);
	if (!err)
		err = ctl_field_string(row, "lost", true, &lost);
	if (!err)
		err = ctl_field_string(row, "state", false, &state);
	if (!err)
		err = cd_object_state_parse(state, o);
	if (!err)
		err = ctl_field_u64(row, "image", false, 0, INT64_MAX,
				    &o->image_id);
	if (!err)
		err = ctl_field_u64(row, "copies", false, 1, CD_COPIES_MAX,
				    &copies);
	if (!err) {
		o->copies = (unsigned)copies;
		core->tree->has_copies |= copies > 1;
		(void)snprintf(o->lost, sizeof(o->lost), "%s", lost);
		o->epoch = core->tree->id_mark;
	}
	return err;
}

/* NODE/INDEX */
static int block_key(const struct cd_core *core, const char *key,
		     struct cd_node **node, unsigned *index)
{
	const char *slash = strchr(key, '/');
	char name[CD_NAME_MAX + 1], end;

	if (!slash || slash - key > CD_NAME_MAX ||
	    sscanf(slash + 1, "%5u%c", index, &end) != 1 ||
	    *index >= CD_BLOCKS_MAX)
		return error_set(-EINVAL, "the key is NODE/INDEX");
	(void)snprintf(name, sizeof(name), "%.*s", (int)(slash - key), key);
	*node = cd_node_find(core, name);
	return 0;
}

static int block_row(struct cd_core *core, const char *key, const json_t *row)
{
	uint64_t object = 0, generation = 0, number = 0, bytes = 0;
	uint64_t identity = 0, epoch = 0, since = 0;
	const char *run = NULL;
	struct cd_object *o = NULL;
	struct cd_node *n = NULL;
	struct cd_block *b;
	unsigned index = 0;
	int err = block_key(core, key, &n, &index);

	if (!err)
		err = ctl_field_u64(row, "object", true, 0, INT64_MAX, &object);
	if (!err)
		err = ctl_field_u64(row, "generation", true, 1, INT64_MAX,
				    &generation);
	if (!err)
		err = ctl_field_u64(row, "number", true, 0, INT64_MAX, &number);
	if (!err)
		err = ctl_field_u64(row, "bytes", true, CD_BLOCK_MIN,
				    CD_BLOCK_MAX, &bytes);
	if (!err)
		err = ctl_field_u64(row, "identity", false, 0, INT64_MAX,
				    &identity);
	if (!err)
		err = ctl_field_u64(row, "epoch", false, 0, INT64_MAX, &epoch);
	if (!err)
		err = ctl_field_u64(row, "since", false, 0, INT64_MAX, &since);
	if (!err)
		err = ctl_field_string(row, "run", true, &run);
	if (!err && strlen(run) >= CTL_INCARNATION_TEXT)
		err = error_set(-EINVAL, "\"run\" is too long");
	if (err)
		return err;
	o = cd_ids_find(&core->tree->objects, object);
	if (!n) { /* it was forgotten in the middle */
		if (o && !identity)
			cd_object_lose(core, o, "its node is forgotten");
		cd_stage(core, "block", key, NULL);
		cd_stage_part(core);
		return 0;
	}
	err = cd_block_add(n, index, &b);
	if (err)
		return err;
	b->generation = generation;
	b->number = number;
	b->bytes = bytes;
	b->identity = identity;
	b->epoch = epoch;
	b->since = since;
	b->is_full = json_is_true(json_object_get(row, "full"));
	(void)snprintf(b->run, sizeof(b->run), "%s", run);
	if (o)
		o->run *=
			o->run < CD_RUN_MAX && o->block_count >= o->run ? 2 : 1;
	return cd_block_own(b, o);
}

static int prefixes_end(struct cd_core *core, const char **key)
{
	struct cd_tree *tree = core->tree;
	json_t *rows = tree->late_prefix, *row;
	uint64_t id = 0;
	int err = 0;

	json_object_foreach(rows, *key, row)
	{
		err = prefix_row(core, *key, row, rows);
		if (err)
			return err;
	}
	json_object_foreach(rows, *key, row)
	{
		struct cd_prefix *p = cd_id_parse(*key, &id)
					      ? cd_ids_find(&tree->prefixes, id)
					      : NULL;

		err = p ? link_prefix(core, p, row) : 0;
		if (err)
			return err;
	}
	for (unsigned i = 0; i < ARRAY_LEN(tree->jobs); i++)
		for (struct cd_job *j = tree->jobs[i]; j && !err; j = j->next)
			err = cd_job_sort(j);
	*key = "of a job";
	return err;
}

/* Jobs of tenants that were removed in the middle. */
static void drop_orphans(struct cd_core *core)
{
	for (unsigned i = 0; i < ARRAY_LEN(core->tree->jobs); i++) {
		struct cd_job *next, *job = core->tree->jobs[i];

		for (; job; job = next) {
			next = job->next;
			if (cd_tenant_find(core, job->tenant))
				continue;
			cd_unstage_job(core, job);
			cd_stage_part(core);
			cd_job_free(core, job);
		}
	}
}

int cd_tree_rows_end(struct cd_core *core)
{
	struct cd_tree *tree = core->tree;
	const char *kind = "prefix", *key = "";
	json_t *row;
	int err = prefixes_end(core, &key);

	if (!err) {
		kind = "object";
		json_object_foreach(tree->late_object, key, row)
		{
			err = object_row(core, key, row);
			if (err)
				break;
		}
	}
	if (!err) {
		kind = "block";
		json_object_foreach(tree->late_block, key, row)
		{
			err = block_row(core, key, row);
			if (err)
				break;
		}
	}
	if (!err) {
		kind = "image";
		json_object_foreach(tree->late_image, key, row)
		{
			err = cd_image_row(core, key, row);
			if (err)
				break;
		}
	}
	if (!err)
		err = cd_vault_rows_end(core);
	if (err)
		return error_prefix(err == -ENOMEM ? err : -EBADMSG,
				    "row %s %.70s: ", kind, key);
	(void)json_object_clear(tree->late_prefix);
	(void)json_object_clear(tree->late_object);
	(void)json_object_clear(tree->late_block);
	(void)json_object_clear(tree->late_image);
	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		if (core->node[i])
			cd_blocks_lose(core, core->node[i]);
	drop_orphans(core);
	return 0;
}
