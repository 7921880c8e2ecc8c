/* SPDX-License-Identifier: Apache-2.0 */
/* An engine on a list of nodes, for tests: node i has key i, value 10 i and
 * leads to node i + 1. Include cmocka.h before it. */
#ifndef WALK_RIG_H
#define WALK_RIG_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "walk/build.h"
#include "walk/engine.h"

enum {
	NODES = 4096,
	NODE_BYTES = 32,
	HERE_BYTES = NODES * NODE_BYTES,
	ELSE_BYTES = 2 * HERE_BYTES, /* offsets up to here are another's */
	SECRET = 5 * NODE_BYTES,     /* no right to this one */
};

struct node {
	uint64_t key, value, next, bound;
};

struct walk {
	struct test *t;
	uint8_t pad[16];
	bool is_over;
	enum walk_status status;
	uint64_t at;
	uint32_t left, took;
};

struct test {
	struct node nodes[NODES];
	struct walk_engine *engine;
	struct walk_program *find;
	struct walk_build *build;
	uint32_t epoch;
	uint32_t asked;	 /* how often the host said where something is */
	uint64_t around; /* bytes that it says more than it was asked for */
	uint32_t over;
	struct walk *again; /* started by the next `done` */
};

static inline enum walk_reach reach(void *ctx, void *handle, uint64_t at,
				    uint32_t len, bool write,
				    struct walk_span *span)
{
	struct test *t = ctx;

	t->asked++;
	assert_false(write);
	assert_int_equal(len, NODE_BYTES);
	if (at == SECRET)
		return WALK_REACH_NO_RIGHT;
	if (at % NODE_BYTES || at >= ELSE_BYTES)
		return WALK_REACH_FAULT;
	if (at >= HERE_BYTES)
		return WALK_REACH_ELSEWHERE;
	*span = (struct walk_span){at, len + t->around,
				   (uint8_t *)t->nodes + at};
	return WALK_REACH_HERE;
}

static inline int begin(struct test *t, struct walk *w, const void *tenant,
			uint64_t at, uint64_t key, uint32_t left);

static inline void done(void *ctx, void *handle, enum walk_status status,
			uint64_t at, uint32_t left, uint32_t took)
{
	struct test *t = ctx;
	struct walk *w = handle, *again = t->again;

	assert_false(w->is_over);
	w->is_over = true;
	w->status = status;
	w->at = at;
	w->left = left;
	w->took = took;
	t->over++;
	t->again = NULL;
	if (again)
		assert_int_equal(begin(t, again, t, NODE_BYTES, 1, 10), 0);
}

/* Pad: key, then the value that is found. A bound above 7 faults; a pointer
 * with the top bit fails. */
static inline void make_find(struct test *t)
{
	struct walk_image image;
	int other;

	t->build = walk_build_create("find", 0, NODE_BYTES, 16, 0);
	other = walk_build_label(t->build);
	walk_build_op(t->build, WALK_OP_LDN8, 3, 0, 0, 24);
	walk_build_op(t->build, WALK_OP_BND, 0, 3, 0, 7);
	walk_build_op(t->build, WALK_OP_LDN8, 1, 0, 0, 0);
	walk_build_op(t->build, WALK_OP_LDP8, 2, 0, 0, 0);
	walk_build_jump(t->build, WALK_OP_JNE, 1, 2, other);
	walk_build_op(t->build, WALK_OP_LDN8, 1, 0, 0, 8);
	walk_build_op(t->build, WALK_OP_STP8, 0, 1, 0, 8);
	walk_build_op(t->build, WALK_OP_RET, 0, 0, 0, 0);
	walk_build_place(t->build, other);
	walk_build_op(t->build, WALK_OP_LDN8, 1, 0, 0, 16);
	walk_build_op(t->build, WALK_OP_GO, 0, 1, 0, 0);
	if (walk_build_end(t->build, 0, &image, NULL) ||
	    walk_program_open(&image, NULL, &t->find))
		fail_msg("%s", error_last());
}

/* Node i has key i, value 10 i and leads to i + 1; the last one to 0. */
static inline int set_up(void **state)
{
	struct test *t = calloc(1, sizeof(*t));
	const struct walk_host host = {
		.ctx = t, .reach = reach, .done = done, .epoch = &t->epoch};

	if (!t)
		return -1;
	for (uint64_t i = 0; i < NODES; i++)
		t->nodes[i] = (struct node){
			i, 10 * i, i + 1 < NODES ? (i + 1) * NODE_BYTES : 0, 0};
	/* Around the one that may not be read. */
	t->nodes[4].next = 6 * NODE_BYTES;
	make_find(t);
	assert_int_equal(walk_engine_open(&host, &t->engine), 0);
	*state = t;
	return 0;
}

static inline int tear_down(void **state)
{
	struct test *t = *state;

	walk_engine_close(t->engine);
	walk_program_close(t->find);
	walk_build_destroy(t->build);
	free(t);
	return 0;
}

static inline int begin(struct test *t, struct walk *w, const void *tenant,
			uint64_t at, uint64_t key, uint32_t left)
{
	struct walk_job job = {
		.program = t->find,
		.handle = w,
		.tenant = tenant,
		.pad = w->pad,
		.given_bytes = 8,
		.at = at,
		.left = left,
	};

	memset(w, 0, sizeof(*w));
	memset(w->pad, 0xaa, sizeof(w->pad));
	memcpy(w->pad, &key, 8);
	return walk_engine_start(t->engine, &job);
}

static inline void run_all(struct test *t)
{
	for (int i = 0; i < 10000; i++) {
		if (!walk_engine_turn(t->engine, 64))
			return;
	}
	fail_msg("walks do not end");
}

static inline uint64_t found(const struct walk *w)
{
	uint64_t v;

	memcpy(&v, w->pad + 8, 8);
	return v;
}

#endif
