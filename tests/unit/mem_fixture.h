/* SPDX-License-Identifier: Apache-2.0 */
/* A memory node on the looped NIC, a clock that only moves when told to, and
 * one-line requests. */
#ifndef AQ_TEST_MEM_FIXTURE_H
#define AQ_TEST_MEM_FIXTURE_H

#include "verbs_pair.h"

#include <stdio.h>

#include "control/ctl_http.h"
#include "memnode/mem_limits.h"
#include "memnode/memnode.h"

#define TOKEN_DEFAULT                      \
	"11111111111111111111111111111111" \
	"11111111111111111111111111111111"
#define TOKEN_ADMIN                        \
	"22222222222222222222222222222222" \
	"22222222222222222222222222222222"
#define TOKEN_NOBODY                       \
	"33333333333333333333333333333333" \
	"33333333333333333333333333333333"

enum {
	FIXTURE_POOL = 1 << 20,
};

struct mem_fixture {
	struct env env;
	uint64_t clock_ns;
	struct mem_node *node;
	struct mem_node_config config;
	json_t *answer; /* of the last request */
};

static uint64_t fixture_now(struct env *env)
{
	return container_of(env, struct mem_fixture, env)->clock_ns++;
}

static void fixture_relax(struct env *env)
{
}

static const struct env_ops fixture_ops = {
	.now_ns = fixture_now,
	.random = loop_random,
	.relax = fixture_relax,
};

static inline void fixture_start(struct mem_fixture *f)
{
	verbs_set_provider(loop_provider());
	f->env.ops = &fixture_ops;
	f->clock_ns = 1000000000;
	f->config.name = "m0";
	f->config.pool_bytes = FIXTURE_POOL;
	f->config.default_token = TOKEN_DEFAULT;
	f->config.admin_token = TOKEN_ADMIN;
	f->config.env = &f->env;
	assert_int_equal(mem_node_create(&f->config, &f->node), 0);
}

static inline void fixture_stop(struct mem_fixture *f)
{
	json_decref(f->answer);
	f->answer = NULL;
	mem_node_destroy(f->node);
	f->node = NULL;
}

/* "POST /v1/regions"; returns the status and keeps the answer. */
static inline unsigned ask_as(struct mem_fixture *f, const char *token,
			      const char *line, const char *body)
{
	struct ctl_reply reply = {0};
	char method[16];
	struct ctl_request q = {
		.token = token,
		.path = strchr(line, ' ') + 1,
		.body = body,
		.body_bytes = body ? strlen(body) : 0,
		.is_local = true,
	};
	unsigned status;

	snprintf(method, sizeof(method), "%.*s", (int)strcspn(line, " "), line);
	q.method = ctl_method_parse(method);
	mem_node_handle(f->node, &q, &reply);
	json_decref(f->answer);
	f->answer = reply.body
			    ? json_loadb(reply.body, reply.body_bytes, 0, NULL)
			    : NULL;
	status = reply.status;
	ctl_reply_release(&reply);
	return status;
}

static inline unsigned ask(struct mem_fixture *f, const char *line,
			   const char *body)
{
	return ask_as(f, TOKEN_DEFAULT, line, body);
}

static inline uint64_t answer_u64(struct mem_fixture *f, const char *name)
{
	json_t *j = json_object_get(f->answer, name);

	assert_true(json_is_integer(j));
	return (uint64_t)json_integer_value(j);
}

static inline const char *answer_text(struct mem_fixture *f, const char *name)
{
	const char *s = json_string_value(json_object_get(f->answer, name));

	assert_non_null(s);
	return s;
}

static inline const char *error_code(struct mem_fixture *f)
{
	json_t *e = json_object_get(f->answer, "error");

	return json_string_value(json_object_get(e, "code"));
}

static inline uint64_t pool_used(struct mem_fixture *f)
{
	assert_int_equal(ask(f, "GET /v1/status", NULL), 200);
	return (uint64_t)json_integer_value(
		json_object_get(json_object_get(f->answer, "pool"), "used"));
}

#endif
