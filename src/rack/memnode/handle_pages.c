/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/connections/ID/pages. */
#include <errno.h>
#include <inttypes.h>

#include "base/env.h"
#include "base/error.h"
#include "mem_priv.h"

static json_t *describe(const struct mem_space *s)
{
	uint32_t bytes = pframe_pool_each_bytes(s->pframes->pool);

	return json_pack(
		"{s:i, s:I, s:I, s:I}", "bytes", (int)bytes, "used",
		(json_int_t)(pframe_space_used(s->space) * bytes), "pool",
		(json_int_t)(pframe_pool_count(s->pframes->pool) * bytes),
		"touched", (json_int_t)pframe_space_touched_bytes(s->space));
}

static enum space_kind kind_of(const json_t *body)
{
	if (json_is_true(json_object_get(body, "sparse")))
		return SPACE_SPARSE;
	return json_is_true(json_object_get(body, "pieces")) ? SPACE_PIECES
							     : SPACE_PFRAMES;
}

static int check_version(const json_t *body)
{
	uint64_t version = 1; /* of those that did not say */
	int err =
		ctl_field_u64(body, "version", false, 1, UINT32_MAX, &version);

	if (!err && version != PAGE_WIRE_VERSION)
		err = error_set(-EPROTONOSUPPORT,
				"the client's messages about pages are of "
				"version %" PRIu64 ", the node's of version %d",
				version, PAGE_WIRE_VERSION);
	return err;
}

void handle_pages_create(void *ctx, struct ctl_call *call)
{
	uint64_t count, bytes, depth = 64;
	struct mem_conn *c;
	int err = handle_find_conn(ctx, call, &c);

	if (!err)
		err = check_version(call->body);
	if (!err)
		err = ctl_field_u64(call->body, "count", true, 1, INT64_MAX,
				    &count);
	if (!err && count > MEM_PAGE_COUNT_MAX)
		err = error_set(-EINVAL,
				"a client has at most %llu pages on a node, "
				"and %llu were asked for: take fewer bytes, "
				"or more nodes",
				(unsigned long long)MEM_PAGE_COUNT_MAX,
				(unsigned long long)count);
	if (!err)
		err = ctl_field_u64(call->body, "bytes", true, PFRAME_BYTES_MIN,
				    PFRAME_BYTES_MAX, &bytes);
	if (!err)
		err = ctl_field_u64(call->body, "depth", false, 1,
				    MEM_PAGE_DEPTH_MAX, &depth);
	if (!err)
		err = space_create(ctx, c, count, (uint32_t)bytes,
				   (uint32_t)depth, kind_of(call->body));
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 201, describe(c->space));
}

void handle_pages_get(void *ctx, struct ctl_call *call)
{
	struct mem_conn *c;
	int err = handle_find_conn(ctx, call, &c);

	if (!err && !c->space)
		err = error_set(-ENOENT, "the connection has no pages");
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200, describe(c->space));
}

/* Also ends chains that have stopped, so that what they had in their hands
 * counts: who asks does it because one did. */
static void end_stopped(struct mem_node *node, const struct mem_space *s)
{
	for (unsigned i = 0; i < MEM_CONN_MAX; i++) {
		struct mem_conn *c = node->conns[i];

		if (c && c->space == s && space_conn_is_broken(c))
			conn_end(node, c, MEM_END_BROKEN);
	}
}

void handle_pages_mapped(void *ctx, struct ctl_call *call)
{
	const json_t *list = json_object_get(call->body, "pages"), *value;
	json_t *mapped = NULL;
	struct mem_conn *c;
	struct mem_space *s;
	size_t i;
	int why, err = handle_find_conn(ctx, call, &c);

	if (!err && (!c->space || !json_is_array(list) ||
		     json_array_size(list) > 2 * MEM_PAGE_DEPTH_MAX))
		err = error_set(-EINVAL, "\"pages\" is a list of numbers");
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	s = c->space;
	end_stopped(ctx, s);
	/* Perhaps also c itself, but its owner only if it is the same. */
	if (s->life.ended) {
		ctl_reply_error(call->reply, -ESTALE,
				"the connection has ended; connect again");
		return;
	}
	mapped = json_array();
	json_array_foreach(list, i, value)
	{
		json_int_t index = json_integer_value(value);

		(void)json_array_append_new(
			mapped, json_boolean(pframe_space_is_mapped(
					s->space, (uint64_t)index)));
	}
	why = pframe_space_why(s->space, PAGE_CHAIN_UNMAPPED);
	ctl_reply_json(call->reply, 200,
		       json_pack("{s:o, s:b, s:s}", "mapped", mapped, "full",
				 why == -ENOSPC, "stopped",
				 why ? pframe_why_text(why) : ""));
}
