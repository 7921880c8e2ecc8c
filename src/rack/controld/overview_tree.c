/* SPDX-License-Identifier: Apache-2.0 */
/* Names of jobs for the page: what there is below each, and how long its lease
 * has left. */
#include <stdio.h>
#include <string.h>

#include "cd_page_priv.h"
#include "tree_priv.h"

enum {
	CHAIN_TEXT = CD_CHAIN_MAX * 40 + 64,
};

/* Rows, and how many more there would be. */
struct shown {
	struct cd_core *core;
	json_t *rows;
	uint64_t left_off;
};

/* By who does not lead no lease is counted. */
static void add_lease(struct shown *s, json_t *row, const struct cd_prefix *p)
{
	json_t *lease;

	if (!s->core->leads)
		return;
	lease = cd_lease_json(s->core, p);
	(void)json_object_set(row, "lease", json_object_get(lease, "state"));
	if (json_object_get(lease, "left_ms"))
		(void)json_object_set(row, "left_ms",
				      json_object_get(lease, "left_ms"));
	json_decref(lease);
}

static unsigned full_copies(const struct cd_block *head)
{
	unsigned n = 0;

	for (const struct cd_block *b = head; b; b = b->next)
		n += !b->identity || b->is_full;
	return n;
}

/* The nodes of its last block, in the order of its chain, one that joins in
 * brackets; and how many blocks have fewer copies than they shall have. */
static void add_chain(json_t *row, const struct cd_object *o)
{
	char text[CHAIN_TEXT] = "";
	unsigned thin = 0;
	size_t n = 0;

	if (!o->block_count)
		return;
	for (const struct cd_block *b = o->block[o->block_count - 1]; b;
	     b = b->next) {
		bool joins = b->identity && !b->is_full;

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%.32s%s",
				      n ? " > " : "", joins ? "(" : "",
				      b->node->name, joins ? ")" : "");
		ASSERT(n < sizeof(text));
	}
	for (unsigned i = 0; i < o->block_count; i++)
		thin += full_copies(o->block[i]) < o->copies;
	if (thin)
		(void)snprintf(text + n, sizeof(text) - n,
			       "; %u of %u blocks lack copies", thin,
			       o->block_count);
	(void)json_object_set_new(row, "chain", json_string(text));
}

static void add_row(struct shown *s, const struct cd_prefix *p,
		    const struct cd_object *o)
{
	char path[CTL_PATH_MAX];
	uint64_t used = 0;
	json_t *row;

	if (json_array_size(s->rows) >= CD_NAMES_SHOWN) {
		s->left_off++;
		return;
	}
	cd_path_format(p, o, path);
	row = json_pack("{s:s, s:s, s:s}", "path", path, "tenant",
			p->job->tenant, "kind",
			o ? cd_object_kind_name(o->kind) : cd_prefix_kind(p));
	for (unsigned i = 0; o && i < o->block_count; i++)
		used += o->block[i]->used_bytes;
	if (o)
		(void)json_object_update_new(
			row, json_pack("{s:s, s:I, s:I, s:i}", "state",
				       cd_object_lost(o) ? "lost" : "ready",
				       "used", cd_int(used), "bytes",
				       cd_int(o->block_count * o->block_bytes),
				       "blocks", (int)o->block_count));
	if (o)
		add_chain(row, o);
	add_lease(s, row, p);
	(void)json_array_append_new(s->rows, row);
}

void cd_overview_tree(struct cd_core *core, const struct cd_tenant *only,
		      json_t *tree)
{
	struct shown s = {.core = core, .rows = json_array()};

	for (unsigned i = 0; i < ARRAY_LEN(core->tree->jobs); i++) {
		const struct cd_job *job = core->tree->jobs[i];

		for (; job; job = job->next) {
			if (only && strcmp(job->tenant, only->name) != 0)
				continue;
			for (unsigned k = 0; k < job->count; k++) {
				const struct cd_prefix *p = job->order[k];

				add_row(&s, p, NULL);
				for (const struct cd_object *o = p->objects; o;
				     o = o->next)
					add_row(&s, p, o);
			}
		}
	}
	(void)json_object_set_new(tree, "ns", s.rows);
	(void)json_object_set_new(tree, "ns_left_off",
				  json_integer(cd_int(s.left_off)));
}
