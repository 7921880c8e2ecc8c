/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and blocks at a controller, one request per line:
 *
 *   <who><METHOD> <path> <body>
 *
 * <who> is d (a tenant), n (a node) or a (the administrator); a line of 't'
 * lets a quarter of a second pass, one of 'f' makes another leader. '@' stands
 * for the epoch of the last join, '#' for the generation of the last block in a
 * map. Whatever comes, every answer has a known status and is JSON; and who
 * leads next has the same names and maps, read from rows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "controld/controld.h"
#include "fuzz.h"
#include "ledger/ledger_mem.h"

enum {
	LINE_MAX_BYTES = 1024,
	LINES_MAX = 64,
};

#define T8(c)  c c c c c c c c
#define T64(c) T8(T8(c))

struct world {
	struct env env;
	uint64_t clock_ns;
	uint8_t random;
	struct cd_core *core;
	struct ledger_store *store;
	struct ledger *ledger;
	long long epoch, generation;
};

static uint64_t now_ns(struct env *env)
{
	return container_of(env, struct world, env)->clock_ns;
}

static void fill(struct env *env, void *buf, size_t len)
{
	memset(buf, ++container_of(env, struct world, env)->random, len);
}

static const struct env_ops ops = {.now_ns = now_ns, .random = fill};

static void lead(struct world *w)
{
	uint64_t term;
	int err = ledger_lead(w->ledger, "c0", &term);

	ASSERT(!err);
	cd_core_clear(w->core);
	err = ledger_read(w->ledger, cd_core_row, w->core);
	ASSERT(!err);
	err = cd_core_lead(w->core, term);
	ASSERT(!err);
	cd_core_keep(w->core, UINT64_MAX);
}

/* What is staged is of the shape that ledgers take, and in whole groups. */
static void commit(struct world *w)
{
	struct ledger_change change[LEDGER_CHANGES_MAX];
	unsigned count;

	while ((count = cd_core_batch(w->core, change))) {
		int err = ledger_commit(w->ledger, cd_core_term(w->core),
					change, count);

		ASSERT(!err);
		cd_core_committed(w->core, 0);
	}
	ASSERT(cd_core_settled(w->core, cd_core_mark(w->core)) == CD_COMMITTED);
}

static void tick(struct world *w)
{
	w->clock_ns += CD_TICK_MS * 1000000ull;
	cd_core_tick(w->core, w->clock_ns / 1000000000);
	commit(w);
}

static json_t *handle(struct world *w, const struct ctl_request *q)
{
	struct ctl_reply r = {0};
	struct cd_held held;
	json_t *tree = NULL;

	cd_core_handle(w->core, q, &r, &held);
	if (held.is_held)
		cd_core_answer(w->core, &held, &r);
	commit(w);
	ASSERT(r.status >= 200 && r.status < 600 && r.status != 500);
	if (r.body && strcmp(r.content_type, "application/json") == 0) {
		tree = json_loadb(r.body, r.body_bytes, 0, NULL);
		ASSERT(json_is_object(tree));
		ASSERT((r.status >= 400) == !!json_object_get(tree, "error"));
	}
	ctl_reply_release(&r);
	return tree;
}

static void remember(struct world *w, const json_t *tree)
{
	const json_t *blocks = json_object_get(tree, "blocks");
	const json_t *last = json_array_get(
		blocks,
		json_array_size(blocks) ? json_array_size(blocks) - 1 : 0);
	const json_t *v = json_object_get(tree, "epoch");

	if (last)
		w->generation =
			json_integer_value(json_object_get(last, "generation"));
	else if (v)
		w->epoch = json_integer_value(v);
}

static void expand(const struct world *w, const char *in, size_t len,
		   char out[LINE_MAX_BYTES])
{
	size_t used = 0;

	for (size_t i = 0; i < len && used + 24 < LINE_MAX_BYTES; i++) {
		if (in[i] == '@' || in[i] == '#')
			used += (size_t)sprintf(out + used, "%lld",
						in[i] == '@' ? w->epoch
							     : w->generation);
		else
			out[used++] = in[i];
	}
	out[used] = 0;
}

static void run_line(struct world *w, const char *line, size_t len)
{
	char text[LINE_MAX_BYTES], *path, *body;
	struct ctl_request q = {.path = ""};
	json_t *tree;

	if (!len || line[0] == 't' || line[0] == 'f') {
		if (len && line[0] == 'f')
			lead(w);
		tick(w);
		return;
	}
	expand(w, line + 1, len - 1, text);
	path = strchr(text, ' ');
	body = path ? strchr(path + 1, ' ') : NULL;
	if (path)
		*path++ = 0;
	if (body)
		*body++ = 0;
	q.method = ctl_method_parse(text);
	q.path = path ? path : "";
	q.body = body;
	q.body_bytes = body ? strlen(body) : 0;
	q.token = line[0] == 'd'   ? T64("3")
		  : line[0] == 'n' ? T64("2")
		  : line[0] == 'a' ? T64("1")
				   : NULL;
	tree = handle(w, &q);
	remember(w, tree);
	json_decref(tree);
}

/* All names, without what is soft. */
static json_t *names_of(struct world *w)
{
	static const char *const soft[] = {"lease", "used", "state", "why"};
	struct ctl_request q = {
		.method = CTL_GET, .path = "/v1/tree", .token = T64("3")};
	json_t *tree = handle(w, &q), *row, *names;
	size_t i;

	names = json_object();
	json_array_foreach(json_object_get(tree, "names"), i, row)
	{
		char key[32];

		for (size_t k = 0; k < ARRAY_LEN(soft); k++)
			(void)json_object_del(row, soft[k]);
		(void)snprintf(key, sizeof(key), "%lld",
			       json_integer_value(json_object_get(row, "id")));
		(void)json_object_set(names, key, row);
	}
	json_decref(tree);
	return names;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	struct world w = {.env = {.ops = &ops}, .clock_ns = 1000000000};
	const struct cd_config config = {
		.name = "c0",
		.env = &w.env,
		.admin_token = T64("1"),
		.node_token = T64("2"),
		.default_token = T64("3"),
	};
	const char *at = (const char *)data, *end = at + len_bytes;
	json_t *before, *after;
	int err = ledger_store_create(&w.store);

	ASSERT(!err);
	err = ledger_mem_open(w.store, &w.ledger);
	ASSERT(!err);
	err = cd_core_create(&config, &w.core);
	ASSERT(!err);
	lead(&w);
	tick(&w);
	for (unsigned i = 0; i < LINES_MAX && at < end; i++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((stop ? stop : end) - at);

		run_line(&w, at, len);
		at += len + 1;
	}
	before = names_of(&w);
	lead(&w);
	after = names_of(&w);
	ASSERT(json_equal(before, after));
	json_decref(before);
	json_decref(after);
	cd_core_destroy(w.core);
	ledger_close(w.ledger);
	ledger_store_destroy(w.store);
	return 0;
}
