/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/shared/segments. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "shared_priv.h"

static const char *right_word(enum coh_right right)
{
	return right == COH_WRITE ? "rw" : right == COH_READ ? "r" : "none";
}

json_t *segment_describe(const struct mem_shared *s,
			 const struct mem_segment *g,
			 const struct mem_tenant *caller)
{
	json_t *row =
		json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:I}",
			  "name", g->name, "tenant", g->tenant->name, "id",
			  (json_int_t)g->id, "va", (json_int_t)segment_va(g),
			  "size", (json_int_t)g->size_bytes, "length",
			  (json_int_t)g->length_bytes, "reserved",
			  (json_int_t)g->part.bytes, "right",
			  right_word(segment_right(g, caller)), "lost",
			  (json_int_t)lost_bytes(s, g));

	if (g->part.bytes) {
		const struct mem_shared_node *n = &s->nodes[g->where];

		(void)json_object_set_new(row, "node", json_string(n->name));
		(void)json_object_set_new(row, "away",
					  json_boolean(!n->is_here));
	}
	(void)json_object_set_new(row, "copies", json_integer(g->copies));
	(void)json_object_set_new(row, "on_loss",
				  json_string(g->goes_on ? "last" : "error"));
	if (g->has_copy)
		(void)json_object_set_new(
			row, "copy", json_string(s->nodes[g->copy_node].name));
	/* Until all is over, so that whoever waits for that may move again: a
	 * move that is noted has left its former place in s->move. */
	if (s->move.segment == g)
		(void)json_object_set_new(
			row, s->move.is_copy ? "copying" : "moving",
			json_string(s->nodes[s->move.is_noted ? g->where
							      : s->move.node]
					    .name));
	if (g->lost_by[0] && lost_bytes(s, g))
		(void)json_object_set_new(row, "lost_by",
					  json_string(g->lost_by));
	return row;
}

/* The caller's own one in the path. */
static int find_own(const struct mem_node *node, const struct ctl_call *call,
		    struct mem_segment **out)
{
	*out = node->shared ? segment_find(node->shared, call->caller,
					   call->segment[0])
			    : NULL;
	return *out ? 0
		    : error_set(-ENOENT, "there is no segment %s",
				call->segment[0]);
}

void handle_segment_create(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_segment *g;
	struct mem_segment_wish wish = {0};
	const char *on_loss = "error";
	uint64_t copies = 1;
	int err = ctl_field_string(call->body, "name", true, &wish.name);

	if (!err)
		err = ctl_field_u64(call->body, "size", true, 1, INT64_MAX,
				    &wish.size_bytes);
	if (!err)
		err = ctl_field_u64(call->body, "copies", false, 1, 2, &copies);
	if (!err)
		err = ctl_field_string(call->body, "on_loss", false, &on_loss);
	wish.copies = (uint8_t)copies;
	wish.goes_on = !err && on_loss && strcmp(on_loss, "last") == 0;
	if (!err && !wish.goes_on && on_loss && strcmp(on_loss, "error") != 0)
		err = error_set(-EINVAL,
				"\"on_loss\" is \"error\" or \"last\"");
	if (!err)
		err = shared_check(node);
	if (!err && node->shared->all_lost)
		err = error_set(-EHOSTDOWN,
				"machines are still being cleaned "
				"up after the switch was restarted");
	if (!err)
		err = segment_create(node, call->caller, &wish, &g);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 201,
			       segment_describe(node->shared, g, call->caller));
}

void handle_segment_list(void *ctx, struct ctl_call *call)
{
	const struct mem_node *node = ctx;
	json_t *rows = json_array();

	for (unsigned i = 0; node->shared && i < MEM_SEGMENT_MAX; i++) {
		const struct mem_segment *g = node->shared->segments[i];

		if (g && !g->is_leaving && !g->is_unlinked &&
		    segment_right(g, call->caller) != COH_NONE)
			(void)json_array_append_new(
				rows, segment_describe(node->shared, g,
						       call->caller));
	}
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "segments", rows));
}

void handle_segment_get(void *ctx, struct ctl_call *call)
{
	struct mem_segment *g;
	int err = find_own(ctx, call, &g);

	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(
			call->reply, 200,
			segment_describe(((struct mem_node *)ctx)->shared, g,
					 call->caller));
}

/* What a tenant may not use is not there for it. */
void handle_segment_get_of(void *ctx, struct ctl_call *call)
{
	const struct mem_node *node = ctx;
	const struct mem_tenant *owner = tenant_find(node, call->segment[0]);
	const struct mem_segment *g =
		owner && node->shared
			? segment_find(node->shared, owner, call->segment[1])
			: NULL;

	if (!g || segment_right(g, call->caller) == COH_NONE)
		ctl_reply_error(call->reply, -ENOENT,
				"there is no segment %s of tenant %s",
				call->segment[1], call->segment[0]);
	else
		ctl_reply_json(call->reply, 200,
			       segment_describe(node->shared, g, call->caller));
}

/* ---- rights ---------------------------------------------------------------
 */

static int right_field(const json_t *body, enum coh_right *right)
{
	const char *text;
	int err = ctl_field_string(body, "right", true, &text);

	if (err)
		return err;
	for (*right = COH_NONE; *right <= COH_WRITE; (*right)++)
		if (strcmp(text, right_word(*right)) == 0)
			return 0;
	return error_set(-EINVAL, "\"right\" is \"none\", \"r\" or \"rw\"");
}

/* A machine that may write a page of a region may give back all of it, so
 * rights end where regions do. */
static int range_fields(const json_t *body, const struct mem_segment *g,
			struct mem_allow *a)
{
	int err =
		ctl_field_u64(body, "offset", false, 0, INT64_MAX, &a->offset);

	if (!err && (a->offset % ARENA_STEP || a->offset >= g->size_bytes))
		err = error_set(-EINVAL,
				"\"offset\" is a multiple of %s in the segment",
				SIZE_TEXT(ARENA_STEP));
	a->length = err ? 0 : g->size_bytes - a->offset;
	if (!err)
		err = ctl_field_u64(body, "length", false, 1,
				    g->size_bytes - a->offset, &a->length);
	if (!err && a->length % ARENA_STEP &&
	    a->offset + a->length != g->size_bytes)
		err = error_set(-EINVAL,
				"\"length\" is a multiple of %s, or all that "
				"follows",
				SIZE_TEXT(ARENA_STEP));
	return err;
}

static int tenant_field(const struct mem_node *node,
			const struct ctl_call *call, struct mem_allow *a)
{
	const char *name;
	int err = ctl_field_string(call->body, "tenant", true, &name);

	if (err)
		return err;
	a->tenant = tenant_find(node, name);
	if (!a->tenant || a->tenant->state != MEM_TENANT_LIVE)
		return error_set(-ENOENT, "there is no tenant %.32s", name);
	if (a->tenant == call->caller)
		return error_set(-EINVAL, "the segment is that tenant's own");
	return 0;
}

void handle_segment_allow(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_allow a = {0};
	struct mem_segment *g;
	int err = find_own(node, call, &g);

	if (!err)
		err = tenant_field(node, call, &a);
	if (!err)
		err = right_field(call->body, &a.right);
	if (!err)
		err = range_fields(call->body, g, &a);
	if (!err)
		err = shared_check(node);
	if (!err)
		err = segment_allow(node, g, &a);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_none(call->reply);
}

/* ---- the rest -------------------------------------------------------------
 */

void handle_segment_repair(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_segment *g;
	int err = find_own(node, call, &g);

	if (!err)
		err = shared_check(node);
	if (!err)
		err = lost_repair(node, g);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200,
			       segment_describe(node->shared, g, call->caller));
}

void handle_segment_delete(void *ctx, struct ctl_call *call)
{
	struct mem_segment *g;
	int err = find_own(ctx, call, &g);

	if (!err)
		err = segment_delete(ctx, g);
	/* Now, if no machine has a page of it: who comes after the answer finds
	 * room. Else the tick does it. */
	if (!err)
		(void)!lead_free_segments(ctx);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_none(call->reply);
}
