/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a controller, rows of its ledger and time, one per line:
 *
 *   <who><METHOD> <path> <body>
 *   !<kind> <key> <value>		a row for another controller
 *   .					a second
 *
 * <who> is a (administrator), n (node), d (tenant default), c (the last code
 * that was handed out), s (the last token that was), or anything else (nobody).
 * In path and body '@' stands for the last epoch of a node. Whatever comes,
 * every answer has a known status, and is JSON where it says so; a row is taken
 * or refused; a session learns nothing but what it may look at.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "control/ctl_http.h"
#include "controld/controld.h"
#include "fuzz.h"

#define T8(c)  c c c c c c c c
#define T64(c) T8(T8(c))

enum {
	LINE_MAX_BYTES = 1024,
	LINES_MAX = 64,
	WORD_BYTES = 80,
};

struct world {
	struct env env;
	uint64_t clock_ns, wall_s;
	uint8_t random;
	struct cd_core *core, *reader;
	char code[WORD_BYTES], token[WORD_BYTES];
	unsigned long long epoch;
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

static int open_page(void *ctx, uint16_t *port)
{
	(void)ctx;
	*port = 7170;
	return 0;
}

static struct cd_core *create(struct world *w)
{
	const struct cd_config config = {
		.name = "c0",
		.env = &w->env,
		.admin_token = T64("a"),
		.node_token = T64("b"),
		.default_token = T64("c"),
		.open_page = open_page,
	};
	struct cd_core *core = NULL;
	int err = cd_core_create(&config, &core);

	ASSERT(err == 0);
	cd_core_clear(core);
	return core;
}

/* All that is staged reaches the disk. */
static void commit(struct world *w)
{
	struct ledger_change change[LEDGER_CHANGES_MAX];

	while (cd_core_leads(w->core) && cd_core_batch(w->core, change))
		cd_core_committed(w->core, 0);
}

static void keep(char out[WORD_BYTES], const json_t *tree, const char *name)
{
	const char *s = json_string_value(json_object_get(tree, name));

	if (s)
		(void)snprintf(out, WORD_BYTES, "%s", s);
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
	keep(w->code, tree, "code");
	keep(w->token, tree, "token");
	if (json_object_get(tree, "epoch"))
		w->epoch = (unsigned long long)json_integer_value(
			json_object_get(tree, "epoch"));
	json_decref(tree);
}

static const char *token_of(const struct world *w, char who)
{
	switch (who) {
	case 'a':
		return T64("a");
	case 'n':
		return T64("b");
	case 'd':
		return T64("c");
	case 'c':
		return w->code;
	case 's':
		return w->token;
	default:
		return NULL;
	}
}

static void ask(struct world *w, char who, char *text)
{
	char *path = strchr(text, ' ');
	char *body = path ? strchr(path + 1, ' ') : NULL;
	struct ctl_request q = {
		.path = "", .token = token_of(w, who), .is_local = who != 'x'};
	struct ctl_reply r = {0};
	struct cd_held held;

	if (path)
		*path++ = 0;
	if (body)
		*body++ = 0;
	q.method = ctl_method_parse(text);
	q.path = path ? path : "";
	q.body = body;
	q.body_bytes = body ? strlen(body) : 0;
	cd_core_handle(w->core, &q, &r, &held);
	if (held.is_held)
		cd_core_answer(w->core, &held, &r);
	commit(w);
	check(w, &r);
	ctl_reply_release(&r);
}

static void row(struct world *w, char *text)
{
	char *key = strchr(text, ' ');
	char *value = key ? strchr(key + 1, ' ') : NULL;
	int err;

	if (!value)
		return;
	*key++ = 0;
	*value++ = 0;
	err = cd_core_row(w->reader, text, key, value);
	ASSERT(err == 0 || err == -EBADMSG);
}

static void run_line(struct world *w, const char *line, size_t len)
{
	char text[LINE_MAX_BYTES];
	size_t used = 0;

	for (size_t i = 1; i < len && used + 32 < sizeof(text); i++) {
		if (line[i] == '@')
			used += (size_t)snprintf(text + used, 32, "%llu",
						 w->epoch);
		else if (line[i])
			text[used++] = line[i];
	}
	text[used] = 0;
	if (len && line[0] == '.') {
		w->clock_ns += 1000000000;
		cd_core_tick(w->core, ++w->wall_s);
		commit(w);
	} else if (len && line[0] == '!') {
		row(w, text);
	} else if (len) {
		ask(w, line[0], text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	struct world w = {
		.env.ops = &ops, .clock_ns = 1000000000, .wall_s = 1000000000};
	const char *at = (const char *)data;
	const char *end = at + len_bytes;
	int err;

	w.core = create(&w);
	w.reader = create(&w);
	err = cd_core_lead(w.core, 1);
	ASSERT(err == 0);
	cd_core_keep(w.core, UINT64_MAX);
	cd_core_tick(w.core, w.wall_s);
	for (unsigned i = 0; i < LINES_MAX && at < end; i++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((stop ? stop : end) - at);

		run_line(&w, at, len);
		at += len + 1;
	}
	/* What was read can be led with, or is refused in words. */
	err = cd_core_lead(w.reader, 2);
	ASSERT(err == 0 || err == -EBADMSG);
	cd_core_destroy(w.reader);
	cd_core_destroy(w.core);
	return 0;
}
