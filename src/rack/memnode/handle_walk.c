/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/walks, and what else the node says about walks. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"
#include "walks_priv.h"

static json_t *describe(struct mem_walks *w, const struct mem_program *p)
{
	const struct walk_image *image = walk_program_image(p->program);
	char id[MEM_WALK_ID_TEXT];
	uint64_t runs, iterations;

	lock_take(&w->lock);
	runs = p->runs;
	iterations = p->iterations;
	lock_drop(&w->lock);
	(void)snprintf(id, sizeof(id), "%016" PRIx64, p->hash);
	return json_pack(
		"{s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:b, s:b, s:I, s:I, s:I}",
		"hash", id, "name", image->name, "instructions",
		(json_int_t)image->count, "longest",
		(json_int_t)p->program->facts.longest, "load_from",
		(int)image->load_lo, "load_bytes", (int)image->load_bytes,
		"pad_bytes", (int)image->pad_bytes, "stores",
		(image->flags & WALK_STORES) != 0, "translated",
		walk_program_is_translated(p->program), "bytes",
		(json_int_t)p->charged_bytes, "runs", (json_int_t)runs,
		"iterations", (json_int_t)iterations);
}

static int check_nic(const struct mem_node *node)
{
	return node->walks ? 0
			   : error_set(-EOPNOTSUPP,
				       "this node's NIC executes no walks");
}

/* The bytes of "image", on the heap. */
static int image_field(const struct ctl_call *call, void **bytes, size_t *len)
{
	const char *text;
	int err = ctl_field_string(call->body, "image", true, &text);

	if (err)
		return err;
	*len = strlen(text) / 2;
	if (*len == 0 || *len > WALK_IMAGE_MAX)
		return error_set(-EINVAL,
				 "\"image\" has 1 to %d bytes, as hexadecimal "
				 "digits",
				 WALK_IMAGE_MAX);
	*bytes = malloc(*len);
	if (!*bytes)
		return error_set(-ENOMEM, "no memory for a walk");
	if (hex_read(text, *bytes, *len))
		return 0;
	free(*bytes);
	return error_set(-EINVAL, "\"image\" is not hexadecimal");
}

void handle_walk_create(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_program *p;
	size_t len_bytes = 0;
	void *bytes = NULL;
	bool is_new;
	int err = check_nic(node);

	if (!err)
		err = image_field(call, &bytes, &len_bytes);
	if (!err) {
		err = walks_add(node, call->caller, bytes, len_bytes, &p,
				&is_new);
		free(bytes);
	}
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, is_new ? 201 : 200,
			       describe(node->walks, p));
}

struct listing {
	struct mem_walks *walks;
	json_t *rows;
};

static void add_row(void *ctx, struct mem_program *p)
{
	struct listing *l = ctx;

	(void)json_array_append_new(l->rows, describe(l->walks, p));
}

void handle_walk_list(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct listing l = {.walks = node->walks, .rows = json_array()};

	if (node->walks)
		walks_each(node, call->caller, add_row, &l);
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "walks", l.rows));
}

/* The one in the path. */
static int find(struct mem_node *node, const struct ctl_call *call,
		struct mem_program **out)
{
	const char *text = call->segment[0];
	uint8_t bytes[8];
	uint64_t hash = 0;
	int err = check_nic(node);

	if (err)
		return err;
	if (!hex_read(text, bytes, sizeof(bytes)))
		return error_set(-EINVAL,
				 "a walk is named by 16 hexadecimal digits");
	for (unsigned i = 0; i < sizeof(bytes); i++)
		hash = hash << 8 | bytes[i];
	*out = walks_find(node, call->caller, hash);
	return *out ? 0 : error_set(-ENOENT, "there is no walk %s", text);
}

void handle_walk_get(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	const struct walk_image *image;
	struct mem_program *p;
	uint8_t *bytes;
	char *text;
	json_t *tree;
	size_t len;
	int err = find(node, call, &p);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	tree = describe(node->walks, p);
	image = walk_program_image(p->program);
	len = walk_image_bytes(image);
	bytes = malloc(len);
	text = malloc(2 * len + 1);
	if (bytes && text) {
		walk_image_write(image, bytes);
		hex_write(text, bytes, len);
		(void)json_object_set_new(tree, "image", json_string(text));
	}
	free(bytes);
	free(text);
	ctl_reply_json(call->reply, 200, tree);
}

void handle_walk_delete(void *ctx, struct ctl_call *call)
{
	struct mem_program *p;
	int err = find(ctx, call, &p);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	walks_remove(ctx, p);
	ctl_reply_none(call->reply);
}

json_t *walks_describe(const struct mem_node *node)
{
	const struct mem_walk_config *c = &node->walks->config;

	return json_pack("{s:i, s:i, s:b, s:I, s:[i,i,i,i]}", "iterations",
			 (int)c->iterations, "longest", (int)c->longest, "jit",
			 c->has_jit, "step_ps", (json_int_t)c->gauge.step_ps,
			 "load_ns", (int)c->gauge.load_ns[0],
			 (int)c->gauge.load_ns[1], (int)c->gauge.load_ns[2],
			 (int)c->gauge.load_ns[3]);
}
