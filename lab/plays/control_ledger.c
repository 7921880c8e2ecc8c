/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ledger of `aquifer sim control` says after each transaction, whoever
 * made it: allowances of a tenant within its quota and none below what its node
 * may use, one block at a place and one place for a block, one block of each
 * number in an object, one thing of each name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control_world.h"

static uint64_t number_of(const json_t *row, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(row, name));
}

/* ---- allowances ---------------------------------------------------------- */

static void take_allowance(struct world *w, const char *key, const json_t *row)
{
	const char *slash = strchr(key, '/');
	unsigned node = slash ? (unsigned)(slash[2] - '0') : NODES;

	for (unsigned t = 0; t < TENANTS && node < NODES; t++) {
		uint64_t sum = 0;

		if (strncmp(key, control_tenants[t], (size_t)(slash - key)) ||
		    strlen(control_tenants[t]) != (size_t)(slash - key))
			continue;
		w->rows.allowance[t][node] = number_of(row, "bytes");
		for (unsigned i = 0; i < NODES; i++)
			sum += w->rows.allowance[t][i];
		if (sum > w->quota[t])
			world_wrong(w,
				    "rows let nodes hand out %llu KiB of %s, "
				    "and its quota is %llu KiB",
				    (unsigned long long)(sum >> 10),
				    control_tenants[t],
				    (unsigned long long)(w->quota[t] >> 10));
	}
}

/* What a node may use is known to whoever leads next. */
void ledger_judge_step(struct world *w)
{
	for (unsigned t = 0; t < TENANTS; t++)
		for (unsigned i = 0; i < NODES; i++)
			if (w->node[i].share[t].limit_bytes >
			    w->rows.allowance[t][i])
				world_wrong(w,
					    "node m%u may use more of %s than "
					    "its row says",
					    i, control_tenants[t]);
}

/* ---- blocks -------------------------------------------------------------- */

static bool is_same_block(const struct block_row *a, const struct block_row *b)
{
	return a->object && a->object == b->object && a->number == b->number;
}

static void judge_block(struct world *w, unsigned node, unsigned index,
			const struct block_row *b)
{
	const struct block_row *was = &w->rows.block[node][index];

	if (was->generation && was->generation != b->generation)
		world_wrong(w, "a place of node m%u has two blocks", node);
	if (w->rows.ended[b->generation % OWNERS] == b->generation)
		world_wrong(w, "a block that has ended is there again");
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned k = 0; k < BLOCK_ROWS; k++) {
			const struct block_row *other = &w->rows.block[i][k];

			if (other == was || !other->generation)
				continue;
			if (other->generation == b->generation)
				world_wrong(w, "a block is at two places");
			if (is_same_block(other, b) &&
			    (!b->identity || other->identity != b->identity))
				world_wrong(w, "an object has two blocks of "
					       "the same number");
			else if (is_same_block(other, b) && i == node)
				world_wrong(w, "two copies of a block are at "
					       "one node");
		}
}

static void take_block(struct world *w, const char *key, const json_t *row)
{
	unsigned node = (unsigned)(key[1] - '0');
	unsigned index = (unsigned)strtoul(key + 3, NULL, 10);
	const struct block_row b = {
		.generation = number_of(row, "generation"),
		.object = number_of(row, "object"),
		.number = number_of(row, "number"),
		.identity = number_of(row, "identity"),
		.is_full = json_is_true(json_object_get(row, "full"))};
	struct block_row *at;

	if (node >= NODES || index >= BLOCK_ROWS)
		return;
	at = &w->rows.block[node][index];
	if (row)
		judge_block(w, node, index, &b);
	else if (at->generation)
		w->rows.ended[at->generation % OWNERS] = at->generation;
	*at = b;
}

/* ---- names --------------------------------------------------------------- */

/* The row of that key, or a free one; NULL: there is none. */
static struct name_row *name_row(struct world *w, const char *kind,
				 const char *key)
{
	struct name_row *free_row = NULL;

	for (unsigned i = 0; i < NAME_ROWS; i++) {
		struct name_row *n = &w->rows.name[i];

		if (n->kind[0] == kind[0] && strcmp(n->key, key) == 0)
			return n;
		if (!n->kind[0] && !free_row)
			free_row = n;
	}
	return free_row;
}

static void judge_name(struct world *w, const struct name_row *new,
		       const struct name_row *was)
{
	if (was->kind[0] && was->id != new->id)
		world_wrong(w, "name %s is that of two things", new->key);
	for (unsigned i = 0; i < NAME_ROWS; i++) {
		const struct name_row *n = &w->rows.name[i];

		if (n != was && n->kind[0] == new->kind[0] && new->parent &&
		    n->parent == new->parent && !strcmp(n->name, new->name))
			world_wrong(w, "two things in one folder are named %s",
				    new->name);
	}
}

/* A root is known by its name, what is below it by its number. */
static void take_name(struct world *w, const char *kind, const char *key,
		      const json_t *row)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	const char *lost = json_string_value(json_object_get(row, "lost"));
	struct name_row *at = name_row(w, kind, key), new = {0};

	if (!at)
		return;
	if (row) {
		(void)snprintf(new.kind, sizeof(new.kind), "%s", kind);
		(void)snprintf(new.key, sizeof(new.key), "%s", key);
		(void)snprintf(new.name, sizeof(new.name), "%s",
			       name ? name : "");
		new.id = number_of(row, "id");
		new.parent = number_of(row, "prefix");
		new.is_lost = lost &&lost[0];
		judge_name(w, &new, at);
	}
	*at = new;
}

/* ---- copies -------------------------------------------------------------- */

static bool has_full(const struct world *w, uint64_t identity)
{
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned k = 0; k < BLOCK_ROWS; k++) {
			const struct block_row *b = &w->rows.block[i][k];

			if (b->identity == identity && b->object && b->is_full)
				return true;
		}
	return false;
}

static bool has_root(const struct world *w, uint64_t id)
{
	for (unsigned i = 0; i < NAME_ROWS; i++)
		if (w->rows.name[i].kind[0] == 'j' && w->rows.name[i].id == id)
			return true;
	return false;
}

/* What is gone has no name any more, or lies in what has none. */
static bool is_there(const struct world *w, uint64_t object)
{
	for (unsigned i = 0; i < NAME_ROWS; i++) {
		const struct name_row *n = &w->rows.name[i];

		if (n->kind[0] == 'o' && strtoull(n->key, NULL, 16) == object)
			return !n->is_lost && has_root(w, n->parent);
	}
	return false;
}

/* Somebody has all of each block, or its object is known to be lost. */
void ledger_judge_all(struct world *w)
{
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned k = 0; k < BLOCK_ROWS; k++) {
			const struct block_row *b = &w->rows.block[i][k];

			if (b->identity && b->object && !b->is_full &&
			    !has_full(w, b->identity) && is_there(w, b->object))
				world_wrong(w, "no copy of a block counts, and "
					       "its object is not lost");
		}
}

/* ---- all ----------------------------------------------------------------- */

void ledger_judge_change(struct world *w, const struct ledger_change *c)
{
	json_t *row = c->value ? json_loads(c->value, 0, NULL) : NULL;

	if (strcmp(c->kind, "allowance") == 0)
		take_allowance(w, c->key, row);
	else if (strcmp(c->kind, "block") == 0)
		take_block(w, c->key, row);
	else if (strcmp(c->kind, "job") == 0 || strcmp(c->kind, "object") == 0)
		take_name(w, c->kind, c->key, row);
	json_decref(row);
}
