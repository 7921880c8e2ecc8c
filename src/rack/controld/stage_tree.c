/* SPDX-License-Identifier: Apache-2.0 */
/* Names and blocks on their way to the ledger, and rows that belong to nothing
 * any more. */
#include <stdio.h>
#include <stdlib.h>

#include "vault_priv.h"

/* ---- out ---------------------------------------------------------------- */

static void job_key(const struct cd_job *job, char out[LEDGER_KEY_MAX])
{
	(void)snprintf(out, LEDGER_KEY_MAX, "%s/%s", job->tenant, job->name);
}

void cd_stage_job(struct cd_core *core, const struct cd_job *job)
{
	char key[LEDGER_KEY_MAX];

	job_key(job, key);
	cd_stage(core, "job", key,
		 json_pack("{s:I, s:b, s:i, s:b, s:b, s:i}", "id",
			   cd_int(cd_job_root(job)->id), "plan", job->has_plan,
			   "lease_ms", (int)job->lease_ms, "keep", job->keep,
			   "flush", job->flush, "copies", (int)job->copies));
}

void cd_unstage_job(struct cd_core *core, const struct cd_job *job)
{
	char key[LEDGER_KEY_MAX];

	job_key(job, key);
	cd_stage(core, "job", key, NULL);
}

void cd_unstage_id(struct cd_core *core, const char *kind, uint64_t id)
{
	char key[CD_ID_TEXT];

	cd_id_format(id, key);
	cd_stage(core, kind, key, NULL);
}

void cd_stage_prefix(struct cd_core *core, const struct cd_prefix *p)
{
	json_t *parents = json_array();
	char key[CD_ID_TEXT];

	for (unsigned i = 0; i < p->parent_count; i++)
		(void)json_array_append_new(
			parents, json_integer(cd_int(p->parent[i]->id)));
	cd_id_format(p->id, key);
	cd_stage(core, "prefix", key,
		 json_pack("{s:s, s:o}", "name", p->name, "parents", parents));
}

void cd_stage_object(struct cd_core *core, const struct cd_object *o)
{
	char key[CD_ID_TEXT];

	cd_id_format(o->id, key);
	cd_stage(core, "object", key,
		 json_pack("{s:I, s:s, s:s, s:I, s:I, s:s, s:s, s:I, s:i}",
			   "prefix", cd_int(o->prefix->id), "name", o->name,
			   "kind", cd_object_kind_name(o->kind), "block_bytes",
			   cd_int(o->block_bytes), "bound", cd_int(o->bound),
			   "lost", o->lost, "state", cd_object_state_name(o),
			   "image", cd_int(o->image ? o->image->id : 0),
			   "copies", (int)o->copies));
}

void cd_stage_block(struct cd_core *core, const struct cd_block *b)
{
	char key[LEDGER_KEY_MAX];

	(void)snprintf(key, sizeof(key), "%s/%05u", b->node->name, b->index);
	cd_stage(core, "block", key,
		 json_pack("{s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:b}",
			   "generation", cd_int(b->generation), "object",
			   cd_int(b->object ? b->object->id : 0), "number",
			   cd_int(b->number), "bytes", cd_int(b->bytes), "run",
			   b->run, "identity", cd_int(b->identity), "epoch",
			   cd_int(b->epoch), "since", cd_int(b->since), "full",
			   b->is_full));
}

void cd_stage_part(struct cd_core *core)
{
	if (++core->tree->part % CD_PART == 0)
		cd_stage_group(core);
}

/* ---- litter ------------------------------------------------------------- */

/* Without memory it stays until somebody reads all rows. Keys are ids, which
 * are never used again: so this may happen at any time. */
void cd_litter_add(struct cd_core *core, const char *kind, const char *key)
{
	struct cd_litter *l = calloc(1, sizeof(*l));

	if (!l)
		return;
	l->kind = kind;
	(void)snprintf(l->key, sizeof(l->key), "%s", key);
	l->next = core->tree->litter;
	core->tree->litter = l;
}

void cd_litter_id(struct cd_core *core, const char *kind, uint64_t id)
{
	char key[CD_ID_TEXT];

	cd_id_format(id, key);
	cd_litter_add(core, kind, key);
}

static struct cd_litter *pop(struct cd_core *core)
{
	struct cd_litter *l = core->tree->litter;

	core->tree->litter = l->next;
	return l;
}

void cd_litter_clear(struct cd_core *core)
{
	while (core->tree->litter)
		free(pop(core));
}

/* Some at each tick: others' changes share the disk. */
void cd_litter_tick(struct cd_core *core)
{
	if (core->tree->litter)
		cd_stage_group(core);
	for (unsigned i = 0; i < 8 * CD_PART && core->tree->litter; i++) {
		struct cd_litter *l = pop(core);

		cd_stage(core, l->kind, l->key, NULL);
		cd_stage_part(core);
		free(l);
	}
	cd_stage_group(core);
}
