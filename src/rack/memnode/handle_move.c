/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/moves. */
#include <errno.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "move.h"

static void answer(struct ctl_call *call, int err)
{
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_none(call->reply);
}

/* The regions that a body names, all of them fit to leave. */
static int parse_regions(const struct mem_node *node,
			 const struct ctl_call *call,
			 struct mem_region *out[MEM_MOVE_REGIONS],
			 unsigned *count)
{
	const json_t *names = json_object_get(call->body, "regions"), *row;
	size_t i;
	int err = 0;

	if (!json_is_array(names) || !json_array_size(names) ||
	    json_array_size(names) > MEM_MOVE_REGIONS)
		return error_set(-EINVAL, "\"regions\" is a list of 1 to %d",
				 MEM_MOVE_REGIONS);
	json_array_foreach(names, i, row)
	{
		const char *name = json_string_value(row);

		if (!name)
			return error_set(-EINVAL, "\"regions\" has names");
		out[i] = region_find(node, call->caller, name);
		err = move_check(node, call->caller, name, out[i]);
		if (!err)
			err = move_may_leave(out[i]);
		for (size_t k = 0; !err && k < i; k++)
			if (out[k] == out[i])
				err = error_set(-EINVAL,
						"\"regions\" has %s twice",
						name);
		if (err)
			return err;
	}
	*count = (unsigned)json_array_size(names);
	return 0;
}

void handle_move_create(void *ctx, struct ctl_call *call)
{
	struct mem_region *region[MEM_MOVE_REGIONS];
	struct mem_node *node = ctx;
	unsigned count = 0;
	uint64_t id = 0, ms = 0;
	json_t *rows;
	int err = move_field_id(call->body, "move", true, &id);

	if (!err)
		err = ctl_field_u64(call->body, "ms", true, 1, MEM_MOVE_MS_MAX,
				    &ms);
	if (!err)
		err = move_may_begin(node, call->caller, id);
	if (!err)
		err = parse_regions(node, call, region, &count);
	if (!err)
		err = move_leave(node, id, env_now_ns(node->env) + ms * 1000000,
				 region, count);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	rows = json_array();
	for (unsigned i = 0; i < count; i++)
		(void)json_array_append_new(
			rows, handle_region_describe(node, region[i]));
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "regions", rows));
}

static const char *stage_name(enum mem_stage stage)
{
	static const char *const names[] = {
		[MEM_STAGE_HOME] = "home",
		[MEM_STAGE_LEAVING] = "leaving",
		[MEM_STAGE_GONE] = "given",
		[MEM_STAGE_SEALED] = "sealed",
		[MEM_STAGE_ARRIVING] = "arriving",
	};

	return names[stage];
}

static json_t *row_of(uint64_t id, const char *name, enum mem_stage stage,
		      const struct mem_move *move)
{
	char text[CTL_INCARNATION_TEXT];

	ctl_incarnation_format(id, text);
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "move", text, "region",
			 name, "state", stage_name(stage), "from",
			 move ? move->from : "", "from_run",
			 move ? move->from_run : "");
}

/* What moves, and what has moved away and was not taken yet, as far as is known
 * here. */
void handle_move_list(void *ctx, struct ctl_call *call)
{
	const struct mem_node *node = ctx;
	const struct mem_tenant *t = call->caller;
	json_t *rows = json_array();

	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		const struct mem_region *r = node->regions[i];

		/* GONE is said below. */
		if (r && r->tenant == t && r->move.stage != MEM_STAGE_HOME &&
		    r->move.stage != MEM_STAGE_GONE)
			(void)json_array_append_new(
				rows, row_of(r->move.id, r->name, r->move.stage,
					     &r->move));
	}
	for (unsigned i = 0; i < MEM_GIVEN_MAX; i++) {
		const struct mem_given *g = &node->given[i];

		if (g->id && strcmp(g->tenant, t->name) == 0)
			(void)json_array_append_new(
				rows,
				row_of(g->id, g->name, MEM_STAGE_GONE, NULL));
	}
	ctl_reply_json(call->reply, 200,
		       json_pack("{s:o, s:s}", "moves", rows, "incarnation",
				 node->incarnation));
}

/* The mover lives; and has copied everything. */
void handle_move_patch(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	const json_t *seal = json_object_get(call->body, "seal");
	uint64_t id = 0, ms = 0;
	bool any = false;
	int err = move_parse_id("move", call->segment[0], &id);

	if (!err)
		err = ctl_field_u64(call->body, "ms", true, 1, MEM_MOVE_MS_MAX,
				    &ms);
	if (!err && seal && !json_is_boolean(seal))
		err = error_set(-EINVAL, "\"seal\" is true or false");
	for (unsigned i = 0; !err && i < MEM_REGION_MAX; i++) {
		struct mem_region *r = node->regions[i];

		if (!r || r->tenant != call->caller || r->move.id != id ||
		    !r->move.until_ns)
			continue;
		any = true;
		r->move.until_ns = env_now_ns(node->env) + ms * 1000000;
		if (json_is_true(seal) && r->move.stage == MEM_STAGE_ARRIVING)
			r->move.stage = MEM_STAGE_SEALED;
	}
	answer(call, err || any ? err : move_none(id));
}

void handle_move_give(void *ctx, struct ctl_call *call)
{
	const char *to = NULL;
	uint64_t id = 0;
	int err = move_parse_id("move", call->segment[0], &id);

	if (!err)
		err = ctl_field_string(call->body, "to", true, &to);
	if (!err && !ctl_name_is_valid(to, MEM_NODE_NAME_MAX))
		err = error_set(-EINVAL, "\"to\" is a node's name");
	if (!err)
		err = move_give(ctx, call->caller, id, to);
	answer(call, err);
}

void handle_move_take(void *ctx, struct ctl_call *call)
{
	uint64_t id = 0;
	int err = move_parse_id("move", call->segment[0], &id);

	if (!err)
		err = move_take(ctx, call->caller, id);
	answer(call, err);
}

void handle_move_delete(void *ctx, struct ctl_call *call)
{
	uint64_t id = 0;
	int err = move_parse_id("move", call->segment[0], &id);

	if (!err)
		err = move_end(ctx, call->caller, id);
	answer(call, err);
}
