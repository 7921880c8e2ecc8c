/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the controller is told of moves, and tells: where a mover died between
 * the last steps, the controller hears from the one node what it has given, or
 * has kept for good, and from the other what waits for that.
 */
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "move.h"

static void add_id(json_t *ids, uint64_t id)
{
	char text[CTL_INCARNATION_TEXT];

	if (!id)
		return;
	ctl_incarnation_format(id, text);
	(void)json_array_append_new(ids, json_string(text));
}

/* Only where there are any: a controller of a release before knows none. */
static void add_ids(const struct mem_node *node, json_t *beat)
{
	json_t *given = json_array(), *kept = json_array(),
	       *taken = json_array();
	uint64_t now_ns = env_now_ns(node->env);

	for (unsigned i = 0; i < MEM_GIVEN_MAX; i++) {
		add_id(given, node->given[i].id);
		add_id(kept, node->kept[i]);
		if (node->taken[i].until_ns > now_ns)
			add_id(taken, node->taken[i].id);
	}
	if (node->given_count)
		(void)json_object_set(beat, "given", given);
	if (json_array_size(kept))
		(void)json_object_set(beat, "kept", kept);
	if (json_array_size(taken))
		(void)json_object_set(beat, "taken", taken);
	json_decref(given);
	json_decref(kept);
	json_decref(taken);
}

void move_say(const struct mem_node *node, json_t *beat)
{
	json_t *sealed = json_array();
	json_int_t moving = 0;

	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		const struct mem_region *r = node->regions[i];
		char id[CTL_INCARNATION_TEXT];

		moving += r && r->move.stage == MEM_STAGE_LEAVING;
		if (!r || r->move.stage != MEM_STAGE_SEALED ||
		    json_array_size(sealed) == MEM_GIVEN_MAX)
			continue;
		ctl_incarnation_format(r->move.id, id);
		(void)json_array_append_new(sealed,
					    json_pack("{s:s, s:s, s:s}", "move",
						      id, "from", r->move.from,
						      "run", r->move.from_run));
	}
	add_ids(node, beat);
	if (json_array_size(sealed))
		(void)json_object_set(beat, "sealed", sealed);
	json_decref(sealed);
	(void)json_object_set_new(beat, "moving", json_integer(moving));
	(void)json_object_set_new(beat, "moved",
				  json_integer((json_int_t)node->given_count));
}

/* The tenant whose sealed regions are those of the move; NULL: none is. Those
 * of one move are one tenant's. */
static const struct mem_tenant *sealed_by(const struct mem_node *node,
					  const json_t *text, uint64_t *id)
{
	if (!json_is_string(text) ||
	    move_parse_id("take", json_string_value(text), id))
		return NULL;
	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		const struct mem_region *r = node->regions[i];

		if (r && r->move.id == *id && r->move.stage == MEM_STAGE_SEALED)
			return r->tenant;
	}
	return NULL;
}

static void settle(struct mem_node *node, const json_t *ids,
		   int (*how)(struct mem_node *node,
			      const struct mem_tenant *tenant, uint64_t id))
{
	const json_t *text;
	size_t at;

	json_array_foreach(ids, at, text)
	{
		uint64_t id = 0;
		const struct mem_tenant *t = sealed_by(node, text, &id);

		if (t && how(node, t, id))
			log_warn("memnode", "%s", error_last());
	}
}

/* Regions that were given are at the other node. */
static void forget_given(struct mem_node *node, const json_t *ids)
{
	const json_t *text;
	uint64_t id;
	size_t at;

	json_array_foreach(ids, at, text)
	{
		if (json_is_string(text) &&
		    !move_parse_id("end", json_string_value(text), &id))
			move_settled(node, id);
	}
}

void move_hear(struct mem_node *node, const json_t *answer)
{
	forget_given(node, json_object_get(answer, "end"));
	settle(node, json_object_get(answer, "take"), move_take);
	settle(node, json_object_get(answer, "drop"), move_end);
}
