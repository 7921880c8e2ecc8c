/* SPDX-License-Identifier: Apache-2.0 */
/* A controller's core on a ledger in memory and a clock that only moves when
 * told to. Included after cmocka.h. */
#ifndef AQ_TEST_CD_BED_H
#define AQ_TEST_CD_BED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "controld/controld.h"
#include "ledger/ledger_mem.h"

#define T8(c)	       c c c c c c c c
#define T64(c)	       T8(T8(c))
#define TOKEN_ADMIN    T64("a")
#define TOKEN_NODE     T64("b")
#define TOKEN_DEFAULT  T64("c")
#define TOKEN_TENANT   T64("d")
#define TOKEN_OTHER    T64("e")
#define TOKEN_STRANGER T64("f")
#define MIB	       (1ull << 20)
#define FIRST	       "0000000000000001"
#define SECOND	       "0000000000000002"

struct bed {
	struct env env;
	uint64_t clock_ns;
	struct cd_core *core;
	struct ledger *ledger;
	struct ledger_store *store;
	json_t *answer;
	char *text;	    /* of the same */
	int commit_err;	    /* of the next transaction */
	bool commit_anyway; /* it happens all the same */
};

static inline uint64_t bed_now(struct env *env)
{
	return container_of(env, struct bed, env)->clock_ns;
}

static inline void bed_random(struct env *env, void *buf, size_t len)
{
	static uint8_t next;

	memset(buf, ++next, len);
	*(uint8_t *)buf = (uint8_t)~next; /* none of the tokens above */
}

static const struct env_ops bed_ops = {.now_ns = bed_now, .random = bed_random};

static inline void bed_lead(struct bed *b, const char *who)
{
	uint64_t term;

	assert_int_equal(ledger_lead(b->ledger, who, &term), 0);
	cd_core_clear(b->core);
	assert_int_equal(ledger_read(b->ledger, cd_core_row, b->core), 0);
	assert_int_equal(cd_core_lead(b->core, term), 0);
	cd_core_keep(b->core, UINT64_MAX);
}

static inline int bed_page(void *ctx, uint16_t *port)
{
	(void)ctx;
	*port = 7170;
	return 0;
}

static inline void bed_core(struct bed *b)
{
	const struct cd_config config = {
		.name = "c0",
		.env = &b->env,
		.admin_token = TOKEN_ADMIN,
		.node_token = TOKEN_NODE,
		.default_token = TOKEN_DEFAULT,
		.open_page = bed_page,
	};

	assert_int_equal(cd_core_create(&config, &b->core), 0);
}

static inline void bed_make(struct bed *b)
{
	*b = (struct bed){.env.ops = &bed_ops, .clock_ns = 1000000000};
	assert_int_equal(ledger_store_create(&b->store), 0);
	assert_int_equal(ledger_mem_open(b->store, &b->ledger), 0);
	bed_core(b);
	bed_lead(b, "c0");
}

static inline void bed_end(struct bed *b)
{
	json_decref(b->answer);
	free(b->text);
	cd_core_destroy(b->core);
	ledger_close(b->ledger);
	ledger_store_destroy(b->store);
}

static inline void commit(struct bed *b)
{
	struct ledger_change change[LEDGER_CHANGES_MAX];
	unsigned count;

	while (cd_core_leads(b->core) &&
	       (count = cd_core_batch(b->core, change))) {
		int err = b->commit_err;

		if (!err || b->commit_anyway)
			assert_int_equal(ledger_commit(b->ledger,
						       cd_core_term(b->core),
						       change, count),
					 0);
		b->commit_err = 0;
		if (err)
			(void)error_set(err, "the disk is gone");
		cd_core_committed(b->core, err);
	}
}

/* "POST /v1/nodes"; the status, after the commit. */
static inline unsigned ask_from(struct bed *b, bool is_local, const char *token,
				const char *line, const char *body)
{
	struct ctl_reply reply = {0};
	struct ctl_request q = {
		.token = token,
		.path = strchr(line, ' ') + 1,
		.body = body,
		.body_bytes = body ? strlen(body) : 0,
		.is_local = is_local,
	};
	struct cd_held held;
	enum cd_settled how;
	char method[16];
	uint64_t mark;
	unsigned status;

	snprintf(method, sizeof(method), "%.*s", (int)strcspn(line, " "), line);
	q.method = ctl_method_parse(method);
	cd_core_handle(b->core, &q, &reply, &held);
	if (held.is_held)
		cd_core_answer(b->core, &held, &reply);
	mark = cd_core_mark(b->core);
	commit(b);
	how = cd_core_settled(b->core, mark);
	assert_int_not_equal(how, CD_PENDING);
	if (how != CD_COMMITTED)
		cd_core_excuse(b->core, how, &reply);
	json_decref(b->answer);
	free(b->text);
	b->text = reply.body ? strndup(reply.body, reply.body_bytes) : NULL;
	b->answer = reply.body
			    ? json_loadb(reply.body, reply.body_bytes, 0, NULL)
			    : NULL;
	status = reply.status;
	ctl_reply_release(&reply);
	return status;
}

static inline unsigned ask(struct bed *b, const char *token, const char *line,
			   const char *body)
{
	return ask_from(b, false, token, line, body);
}

static inline uint64_t number(struct bed *b, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(b->answer, name));
}

static inline const char *words(struct bed *b)
{
	json_t *e = json_object_get(b->answer, "error");
	const char *text = json_string_value(json_object_get(e, "message"));

	return text ? text : "";
}

static inline uint64_t join(struct bed *b, const char *name,
			    const char *incarnation)
{
	char body[300];

	snprintf(body, sizeof(body),
		 "{\"name\":\"%s\",\"kind\":\"memory\",\"address\":"
		 "\"unix:/%s\",\"incarnation\":\"%s\",\"size\":1073741824}",
		 name, name, incarnation);
	assert_int_equal(ask(b, TOKEN_NODE, "POST /v1/nodes", body), 200);
	return number(b, "epoch");
}

/* A beat about the tenant t; the allowance that is told. */
static inline uint64_t beat(struct bed *b, const char *name, uint64_t epoch,
			    uint64_t used, uint64_t limit, uint64_t version,
			    uint64_t wish)
{
	char line[80], body[400];
	json_t *row;
	size_t i;

	snprintf(line, sizeof(line), "POST /v1/nodes/%s/beat", name);
	snprintf(body, sizeof(body),
		 "{\"incarnation\":\"" FIRST "\",\"epoch\":%llu,\"used\":%llu,"
		 "\"shares\":[{\"tenant\":\"t\",\"used\":%llu,\"limit\":%llu,"
		 "\"version\":%llu,\"wish\":%llu}]}",
		 (unsigned long long)epoch, (unsigned long long)used,
		 (unsigned long long)used, (unsigned long long)limit,
		 (unsigned long long)version, (unsigned long long)wish);
	assert_int_equal(ask(b, TOKEN_NODE, line, body), 200);
	json_array_foreach(json_object_get(b->answer, "shares"), i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "tenant")),
			   "t") == 0)
			return (uint64_t)json_integer_value(
				json_object_get(row, "bytes"));
	}
	return UINT64_MAX;
}

static inline void make_tenant(struct bed *b, uint64_t quota)
{
	char body[200];

	snprintf(body, sizeof(body),
		 "{\"name\":\"t\",\"quota\":%llu,\"token\":\"" TOKEN_TENANT
		 "\"}",
		 (unsigned long long)quota);
	assert_int_equal(ask(b, TOKEN_ADMIN, "POST /v1/tenants", body), 201);
}

static inline const char *state_of(struct bed *b, const char *name)
{
	json_t *row;
	size_t i;

	assert_int_equal(ask(b, TOKEN_ADMIN, "GET /v1/nodes", NULL), 200);
	json_array_foreach(json_object_get(b->answer, "nodes"), i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "name")),
			   name) == 0)
			return json_string_value(json_object_get(row, "state"));
	}
	return "none";
}

static inline void pass(struct bed *b, uint64_t ms)
{
	b->clock_ns += ms * 1000000;
	cd_core_tick(b->core, b->clock_ns / 1000000000);
	commit(b);
}

#endif
