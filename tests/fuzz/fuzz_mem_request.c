/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a memory node, one per line:
 *
 *   <who><METHOD> <path> <body>
 *
 * <who> is d (tenant), a (administrator) or anything else (nobody). In path and
 * body '@' stands for the last connection's id, '#' for the last grant's, '%'
 * for that of the last machine that shares memory, '$' for the image of a small
 * walk and '^' for its hash, so that inputs reach what depends on them.
 * Whatever comes, every answer has a known status and is JSON, the pool's books
 * balance, and nothing is left over.
 */
#include <stdio.h>

#include "../unit/switch_socket.h"
#include "../unit/verbs_loop.h"
#include "base/hex.h"
#include "control/ctl_http.h"
#include "fuzz.h"
#include "memnode/memnode.h"
#include "verbs/verbs.h"
#include "walk/build.h"

enum {
	LINE_MAX_BYTES = 1024,
	LINES_MAX = 64,
	POOL_BYTES = 1 << 20,
	SHARED_BYTES = 8 << 20,
	IMAGE_DIGITS = 2 * (WALK_HEADER_BYTES + 8),
};

static const char token_default[] = "11111111111111111111111111111111"
				    "11111111111111111111111111111111";
static const char token_admin[] = "22222222222222222222222222222222"
				  "22222222222222222222222222222222";

struct world {
	struct env env;
	uint64_t clock_ns;
	struct mem_node *node;
	char connection[64];
	char grant[64];
	char member[64];
	char image[IMAGE_DIGITS + 1];
	char hash[17];
};

static uint64_t now_ns(struct env *env)
{
	return container_of(env, struct world, env)->clock_ns += 1000000;
}

static const struct env_ops ops = {
	.now_ns = now_ns,
	.random = loop_random,
	.relax = loop_relax,
};

static size_t put(char *out, size_t used, const char *text, size_t len)
{
	if (used + len < LINE_MAX_BYTES) {
		memcpy(out + used, text, len);
		used += len;
	}
	return used;
}

/* Replaces @ and the others. */
static size_t expand(const struct world *w, const char *in, size_t len,
		     char out[LINE_MAX_BYTES])
{
	size_t used = 0;

	for (size_t i = 0; i < len; i++) {
		if (in[i] == '@')
			used = put(out, used, w->connection,
				   strlen(w->connection));
		else if (in[i] == '#')
			used = put(out, used, w->grant, strlen(w->grant));
		else if (in[i] == '%')
			used = put(out, used, w->member, strlen(w->member));
		else if (in[i] == '$')
			used = put(out, used, w->image, strlen(w->image));
		else if (in[i] == '^')
			used = put(out, used, w->hash, strlen(w->hash));
		else
			used = put(out, used, &in[i], 1);
	}
	out[used] = 0;
	return used;
}

static void keep(char out[64], const json_t *tree, const char *name)
{
	const char *s = json_string_value(json_object_get(tree, name));

	if (s)
		(void)snprintf(out, 64, "%s", s);
}

static void check(struct world *w, const struct ctl_reply *r)
{
	json_t *tree;

	ASSERT(r->status >= 200 && r->status < 600 && r->status != 500);
	if (!r->body || strcmp(r->content_type, "application/json") != 0)
		return;
	tree = json_loadb(r->body, r->body_bytes, 0, NULL);
	ASSERT(json_is_object(tree));
	ASSERT((r->status >= 400) == !!json_object_get(tree, "error"));
	keep(w->connection, tree, "connection");
	keep(w->grant, tree, "grant");
	keep(w->member, tree, "member");
	json_decref(tree);
}

static void handle(struct world *w, const struct ctl_request *q)
{
	struct ctl_reply r = {0};

	mem_node_handle(w->node, q, &r);
	check(w, &r);
	ctl_reply_release(&r);
}

static void run_line(struct world *w, const char *line, size_t len)
{
	char text[LINE_MAX_BYTES];
	size_t used = len ? expand(w, line + 1, len - 1, text) : 0;
	char *path, *body;
	struct ctl_request q = {.path = ""};

	if (used == 0)
		return;
	path = strchr(text, ' ');
	body = path ? strchr(path + 1, ' ') : NULL;
	if (path)
		*path++ = 0;
	if (body)
		*body++ = 0;
	q.method = ctl_method_parse(text);
	q.path = path ? path : "";
	q.body = body;
	q.body_bytes = body ? used - (size_t)(body - text) : 0;
	q.token = line[0] == 'd'   ? token_default
		  : line[0] == 'a' ? token_admin
				   : NULL;
	q.is_local = line[0] != 'x';
	handle(w, &q);
}

/* After everything is deleted, all of the pool is free. */
static void check_books(struct world *w)
{
	struct ctl_request q = {
		.method = CTL_GET, .path = "/v1/status", .is_local = true};
	struct ctl_reply r = {0};
	json_t *tree, *pool, *shared;

	mem_node_handle(w->node, &q, &r);
	tree = json_loadb(r.body, r.body_bytes, 0, NULL);
	pool = json_object_get(tree, "pool");
	ASSERT(json_integer_value(json_object_get(pool, "used")) <= POOL_BYTES);
	ASSERT(json_integer_value(json_object_get(pool, "used")) +
		       json_integer_value(json_object_get(pool, "free")) ==
	       POOL_BYTES);
	shared = json_object_get(tree, "shared");
	ASSERT(json_integer_value(json_object_get(shared, "used")) <=
	       SHARED_BYTES);
	json_decref(tree);
	ctl_reply_release(&r);
}

/* One that is done at once. */
static void make_image(struct world *w)
{
	struct walk_build *b = walk_build_create("ret", 0, 8, 0, 0);
	uint8_t bytes[IMAGE_DIGITS / 2];
	struct walk_image image;
	int err;

	walk_build_op(b, WALK_OP_RET, 0, 0, 0, 0);
	err = walk_build_end(b, 0, &image, NULL);
	ASSERT(err == 0 && walk_image_bytes(&image) == sizeof(bytes));
	walk_image_write(&image, bytes);
	hex_write(w->image, bytes, sizeof(bytes));
	(void)snprintf(w->hash, sizeof(w->hash), "%016llx",
		       (unsigned long long)image.hash);
	walk_build_destroy(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	struct world w = {.env = {.ops = &ops}, .clock_ns = 1};
	struct mem_node_config config = {
		.name = "m0",
		.pool_bytes = POOL_BYTES,
		.shared_bytes = SHARED_BYTES,
		.switch_path = "here",
		.switch_carry = switch_socket_carry,
		.switch_ctx = switch_socket_one(),
		.default_token = token_default,
		.admin_token = token_admin,
		.env = &w.env,
	};
	const char *at = (const char *)data;
	const char *end = at + len_bytes;
	int err;

	verbs_set_provider(loop_provider());
	make_image(&w);
	err = mem_node_create(&config, &w.node);
	ASSERT(err == 0);
	for (unsigned i = 0; i < LINES_MAX && at < end; i++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((stop ? stop : end) - at);

		run_line(&w, at, len);
		mem_node_tick(w.node);
		at += len + 1;
	}
	check_books(&w);
	mem_node_destroy(w.node);
	return 0;
}
