/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the controller is told of moves, and tells: where a mover died between
 * the two last steps, the controller hears from the one node what it has given
 * and from the other what waits for that.
 */
#include <string.h>

#include "move.h"

static void add_given(const struct mem_node *node, json_t *beat)
{
	json_t *ids = json_array();

	for (unsigned i = 0; i < MEM_GIVEN_MAX; i++) {
		char id[CTL_INCARNATION_TEXT];

		if (!node->given[i].id)
			continue;
		ctl_incarnation_format(node->given[i].id, id);
		(void)json_array_append_new(ids, json_string(id));
	}
	(void)json_object_set_new(beat, "given", ids);
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
	if (node->given_count)
		add_given(node, beat);
	if (json_array_size(sealed))
		(void)json_object_set(beat, "sealed", sealed);
	json_decref(sealed);
	(void)json_object_set_new(beat, "moving", json_integer(moving));
	(void)json_object_set_new(beat, "moved",
				  json_integer((json_int_t)node->given_count));
}

void move_hear(struct mem_node *node, const json_t *answer)
{
	const json_t *ids = json_object_get(answer, "take"), *text;
	size_t at;

	json_array_foreach(ids, at, text)
	{
		uint64_t id;

		if (!json_is_string(text) ||
		    move_parse_id("take", json_string_value(text), &id))
			continue;
		for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
			const struct mem_region *r = node->regions[i];

			/* Those of one move are one tenant's. */
			if (r && r->move.id == id &&
			    r->move.stage == MEM_STAGE_SEALED &&
			    move_take(node, r->tenant, id) == 0)
				break;
		}
	}
}
