/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /v1/shared/members/ID/open and its relatives: segments as objects of POSIX
 * and System V shared memory. An object is found or made by its name, gets its
 * length later, and lives without a name for as long as a machine has it open.
 */
#include <errno.h>

#include "base/error.h"
#include "shared_priv.h"

/* Who asks, and the object that "name" or "id" of the body says; *out is NULL
 * if there is no such name. */
static int find(const struct mem_node *node, const struct ctl_call *call,
		struct mem_member **m, const char **name,
		struct mem_segment **out)
{
	uint64_t id = 0;
	int err = node->shared ? member_find(node->shared, call->caller,
					     call->segment[0], m)
			       : error_set(-ESTALE, "this node has no shared "
						    "memory");

	if (!err)
		err = ctl_field_string(call->body, "name", false, name);
	if (!err)
		err = ctl_field_u64(call->body, "id", !*name, 1, INT64_MAX,
				    &id);
	if (err)
		return err;
	*out = id ? segment_find_id(node->shared, call->caller, id)
		  : segment_find(node->shared, call->caller, *name);
	return !*out && id ? error_set(-ENOENT, "there is no segment %llu",
				       (unsigned long long)id)
			   : 0;
}

/* The same where it must be there. */
static int find_there(const struct mem_node *node, const struct ctl_call *call,
		      struct mem_member **m, struct mem_segment **out)
{
	const char *name = NULL;
	int err = find(node, call, m, &name, out);

	return !err && !*out
		       ? error_set(-ENOENT, "there is no segment %s", name)
		       : err;
}

static uint16_t bit_of(const struct mem_node *node, const struct mem_member *m)
{
	return (uint16_t)(1u << (m - node->shared->members));
}

void handle_object_open(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_segment *g = NULL;
	struct mem_member *m = NULL;
	const char *name = NULL;
	bool creates = json_is_true(json_object_get(call->body, "create"));
	bool is_only = json_is_true(json_object_get(call->body, "exclusive"));
	bool is_new = false;
	uint64_t copies = 1;
	json_t *tree;
	int err = find(node, call, &m, &name, &g);

	if (!err)
		err = ctl_field_u64(call->body, "copies", false, 1, 2, &copies);
	if (!err && g && creates && is_only)
		err = error_set(-EEXIST, "there is a segment %s already", name);
	if (!err && !g && !creates)
		err = error_set(-ENOENT, "there is no segment %s", name);
	if (!err && !g) {
		err = segment_create(
			node, call->caller,
			&(struct mem_segment_wish){.name = name,
						   .copies = (uint8_t)copies},
			&g);
		is_new = !err;
	}
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	g->users |= bit_of(node, m);
	tree = segment_describe(node->shared, g, call->caller);
	(void)json_object_set_new(tree, "new", json_boolean(is_new));
	ctl_reply_json(call->reply, is_new ? 201 : 200, tree);
}

void handle_object_close(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_segment *g = NULL;
	struct mem_member *m = NULL;
	int err = find_there(node, call, &m, &g);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	g->users &= (uint16_t)~bit_of(node, m);
	segment_sweep(node); /* the tick gives its memory back */
	ctl_reply_none(call->reply);
}

void handle_object_resize(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_segment *g = NULL;
	struct mem_member *m = NULL;
	uint64_t length = 0;
	int err = find_there(node, call, &m, &g);

	if (!err)
		err = ctl_field_u64(call->body, "size", true, 0, INT64_MAX / 2,
				    &length);
	if (!err)
		err = shared_check(node);
	if (!err)
		err = segment_resize(node, g, length);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200,
			       segment_describe(node->shared, g, call->caller));
}

void handle_object_unlink(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_segment *g = NULL;
	struct mem_member *m = NULL;
	int err = find_there(node, call, &m, &g);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	g->is_unlinked = true;
	segment_sweep(node);
	ctl_reply_none(call->reply);
}
