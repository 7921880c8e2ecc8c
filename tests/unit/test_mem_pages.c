/* SPDX-License-Identifier: Apache-2.0 */
/* What a memory node offers for paging: spaces, the connections that work on
 * them, and that all of it ends with the one that asked for it. */
#define LOOP_GRANTS
#include "mem_fixture.h"

#include "memnode/mem_priv.h"
#include "pageframe/pframe_priv.h"
#include "wire/page_wire.h"

/* The peer is nobody: nothing is sent here. */
static unsigned connect_as(struct mem_fixture *f, const char *token,
			   const char *more, char id[32])
{
	char body[512];
	unsigned status;

	snprintf(body, sizeof(body),
		 "{\"proto\":\"1.0\",\"gid\":"
		 "\"00000000000000000000ffff7f000001\",\"qpn\":99,\"psn\":7%s}",
		 more);
	status = ask_as(f, token, "POST /v1/connect", body);
	if (status == 200)
		snprintf(id, 32, "%s", answer_text(f, "connection"));
	return status;
}

static unsigned join(struct mem_fixture *f, const char *role, const char *owner)
{
	char more[128], id[32];

	snprintf(more, sizeof(more), ",\"pages\":\"%s\",\"owner\":\"%s\"", role,
		 owner);
	return connect_as(f, TOKEN_DEFAULT, more, id);
}

static unsigned make_pages(struct mem_fixture *f, const char *id,
			   const char *body)
{
	char line[96], all[256];
	size_t len = strlen(body) - 1;

	snprintf(line, sizeof(line), "POST /v1/connections/%s/pages", id);
	snprintf(all, sizeof(all), "%.*s%s\"version\":%d}", (int)len, body,
		 len > 1 ? "," : "", PAGE_WIRE_VERSION);
	return ask(f, line, all);
}

static void end(struct mem_fixture *f, const char *id)
{
	char line[96];

	snprintf(line, sizeof(line), "DELETE /v1/connections/%s", id);
	assert_int_equal(ask(f, line, NULL), 204);
}

static void test_spaces(void **state)
{
	static const char *const bad[] = {
		"{}",
		"{\"count\":0,\"bytes\":4096}",
		"{\"count\":1,\"bytes\":4095}",
		"{\"count\":1,\"bytes\":32}",
		"{\"count\":1,\"bytes\":2097152}",
		"{\"count\":1,\"bytes\":4096,\"depth\":0}",
		"{\"count\":1,\"bytes\":4096,\"depth\":5000}",
		"{\"count\":999999999999,\"bytes\":4096}",
	};
	struct mem_fixture f = {0};
	char id[32], line[96];

	fixture_start(&f);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", id), 200);
	snprintf(line, sizeof(line), "GET /v1/connections/%s/pages", id);
	assert_int_equal(ask(&f, line, NULL), 404);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(make_pages(&f, id, bad[i]), 400);
	/* Who speaks of pages in another way is told so: 426. */
	snprintf(line, sizeof(line), "POST /v1/connections/%s/pages", id);
	assert_int_equal(ask(&f, line, "{\"count\":9,\"bytes\":4096}"), 426);
	assert_int_equal(
		ask(&f, line, "{\"version\":2,\"count\":9,\"bytes\":4096}"),
		426);
	assert_int_equal(pool_used(&f), 0);
	assert_int_equal(
		make_pages(&f, id, "{\"count\":9,\"bytes\":4096,\"depth\":4}"),
		201);
	snprintf(line, sizeof(line), "GET /v1/connections/%s/pages", id);
	/* Its pages, and a table. */
	assert_int_equal(pool_used(&f), 10 * 4096);
	assert_int_equal(make_pages(&f, id, "{\"count\":9,\"bytes\":4096}"),
			 409);
	assert_int_equal(ask(&f, line, NULL), 200);
	assert_int_equal(answer_u64(&f, "used"), 0);
	snprintf(line, sizeof(line), "POST /v1/connections/%s/pages/mapped",
		 id);
	assert_int_equal(ask(&f, line, "{\"pages\":7}"), 400);
	assert_int_equal(ask(&f, line, "{\"pages\":[0,8,9,-1,\"x\"]}"), 200);
	assert_int_equal(json_array_size(json_object_get(f.answer, "mapped")),
			 5);
	end(&f, id);
	assert_int_equal(pool_used(&f), 0);
	fixture_stop(&f);
}

/* Room for all pages that there may be, once, and a page for their table. */
static void test_quota(void **state)
{
	struct mem_fixture f = {0};
	char id[32], token[80], line[96];

	fixture_start(&f);
	assert_int_equal(ask_as(&f, TOKEN_ADMIN, "POST /v1/tenants",
				"{\"name\":\"t\",\"quota\":65536}"),
			 201);
	snprintf(token, sizeof(token), "%s", answer_text(&f, "token"));
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(connect_as(&f, token, "", id), 200);
		snprintf(line, sizeof(line), "POST /v1/connections/%s/pages",
			 id);
		assert_int_equal(ask_as(&f, token, line,
					"{\"version\":3,\"count\":16,"
					"\"bytes\":4096}"),
				 507);
		assert_string_equal(error_code(&f), "-EDQUOT");
		assert_int_equal(ask_as(&f, token, line,
					"{\"version\":3,\"count\":15,"
					"\"bytes\":4096}"),
				 201);
		assert_int_equal(ask_as(&f, token, "POST /v1/regions",
					"{\"name\":\"r\",\"size\":4096}"),
				 507);
		snprintf(line, sizeof(line), "DELETE /v1/connections/%s", id);
		assert_int_equal(ask_as(&f, token, line, NULL), 204);
	}
	fixture_stop(&f);
}

static void test_members(void **state)
{
	static const char *const chains[] = {"load", "mapped", "unmapped",
					     "invalidate"};
	struct mem_fixture f = {0};
	char id[32], other[32], line[96];

	fixture_start(&f);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", id), 200);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", other), 200);
	assert_int_equal(join(&f, "load", id), 400); /* it has no pages */
	assert_int_equal(
		make_pages(&f, id, "{\"count\":9,\"bytes\":4096,\"depth\":4}"),
		201);
	assert_int_equal(join(&f, "plain", id), 400);
	assert_int_equal(join(&f, "", id), 400);
	assert_int_equal(join(&f, "load", "00000000000000000000"), 410);
	assert_int_equal(join(&f, "load", other), 400);
	for (size_t i = 0; i < ARRAY_LEN(chains); i++)
		assert_int_equal(join(&f, chains[i], id), 200);
	assert_int_equal(join(&f, "load", id), 409);
	/* Chains or the processor, not both. */
	assert_int_equal(join(&f, "server", id), 409);
	assert_string_equal(error_code(&f), "-EBUSY");
	end(&f, id);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", id), 200);
	assert_int_equal(
		make_pages(&f, id, "{\"count\":9,\"bytes\":4096,\"depth\":4}"),
		201);
	assert_int_equal(join(&f, "server", id), 200);
	assert_int_equal(join(&f, "load", id), 409);
	/* A member has no regions, and no pages of its own. */
	assert_int_equal(
		ask(&f, "POST /v1/regions", "{\"name\":\"r\",\"size\":4096}"),
		201);
	{
		char more[128], member[32];

		snprintf(more, sizeof(more),
			 ",\"pages\":\"server\",\"owner\":\"%s\"", id);
		assert_int_equal(connect_as(&f, TOKEN_DEFAULT, more, member),
				 200);
		snprintf(line, sizeof(line), "POST /v1/connections/%s/grants",
			 member);
		assert_int_equal(
			ask(&f, line, "{\"region\":\"r\",\"rights\":\"rw\"}"),
			403);
		assert_int_equal(
			make_pages(&f, member, "{\"count\":1,\"bytes\":4096}"),
			409);
	}
	mem_node_tick(f.node);
	end(&f, id);
	assert_int_equal(ask(&f, "GET /v1/status", NULL), 200);
	assert_int_equal(answer_u64(&f, "connections"), 1);
	fixture_stop(&f);
}

/* Continuing the session of the pages' owner ends the owner, and the pages
 * with it: there is nothing left to join. */
static void joining_ends_the_owner_it_names(void **state)
{
	static const char *const roles[] = {"server", "load", "mapped",
					    "unmapped", "invalidate"};
	const char session[] =
		",\"session\":\"00112233445566778899aabbccddeeff\"";
	struct mem_fixture f = {0};
	char id[32], more[256], member[32];

	fixture_start(&f);
	for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
		assert_int_equal(connect_as(&f, TOKEN_DEFAULT, session, id),
				 200);
		assert_int_equal(
			make_pages(&f, id, "{\"count\":9,\"bytes\":4096}"),
			201);
		snprintf(more, sizeof(more),
			 ",\"pages\":\"%s\",\"owner\":\"%s\"%s", roles[i], id,
			 session);
		assert_int_equal(connect_as(&f, TOKEN_DEFAULT, more, member),
				 410);
		assert_int_equal(ask(&f, "GET /v1/status", NULL), 200);
		assert_int_equal(answer_u64(&f, "connections"), 0);
		assert_int_equal(pool_used(&f), 0);
	}
	fixture_stop(&f);
}

/* A region that belongs to a connection. */
static void test_owned_region(void **state)
{
	struct mem_fixture f = {0};
	char id[32], body[128];

	fixture_start(&f);
	assert_int_equal(ask(&f, "POST /v1/regions",
			     "{\"name\":\"r\",\"size\":4096,\"owner\":\"x\"}"),
			 400);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", id), 200);
	snprintf(body, sizeof(body),
		 "{\"name\":\"r\",\"size\":4096,\"owner\":\"%s\"}", id);
	assert_int_equal(ask(&f, "POST /v1/regions", body), 201);
	mem_node_tick(f.node);
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 200);
	end(&f, id);
	mem_node_tick(f.node);
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 404);
	assert_int_equal(pool_used(&f), 0);
	fixture_stop(&f);
}

static unsigned conns(struct mem_fixture *f)
{
	assert_int_equal(ask(f, "GET /v1/connections", NULL), 200);
	return (unsigned)json_array_size(
		json_object_get(f->answer, "connections"));
}

/* A client with memory of its own that touches what it was not given. */
static void test_greedy(void **state)
{
	struct mem_fixture f = {0};
	char id[32], line[96];
	uint8_t *memory;

	fixture_start(&f);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", id), 200);
	assert_int_equal(
		make_pages(&f, id,
			   "{\"count\":9,\"bytes\":2048,\"sparse\":true}"),
		400);
	assert_int_equal(
		make_pages(&f, id,
			   "{\"count\":64,\"bytes\":4096,\"sparse\":true}"),
		201);
	assert_int_equal(loop_grants[0].len_bytes, 64 * 4096);
	memory = loop_grants[0].addr;
	memset(memory, 1, MEM_SPARSE_SLACK);
	snprintf(line, sizeof(line), "GET /v1/connections/%s/pages", id);
	assert_int_equal(ask(&f, line, NULL), 200);
	assert_int_equal(answer_u64(&f, "touched"), MEM_SPARSE_SLACK);
	for (unsigned i = 0; i < 3; i++)
		mem_node_tick(f.node);
	assert_int_equal(conns(&f), 1);
	memory[MEM_SPARSE_SLACK] = 1;
	mem_node_tick(f.node);
	assert_int_equal(conns(&f), 1);
	mem_node_tick(f.node);
	assert_int_equal(conns(&f), 0);
	assert_null(loop_grants[0].addr);
	assert_int_equal(pool_used(&f), 0);
	fixture_stop(&f);
}

static void make_tenant(struct mem_fixture *f, const char *quota,
			char token[80])
{
	char body[64];

	snprintf(body, sizeof(body), "{\"name\":\"t\",\"quota\":%s}", quota);
	assert_int_equal(ask_as(f, TOKEN_ADMIN, "POST /v1/tenants", body), 201);
	snprintf(token, 80, "%s", answer_text(f, "token"));
}

static void a_tenant_takes_no_more_of_the_pool_than_its_quota(void **state)
{
	static const unsigned sizes[] = {64,   128,  256,  512,
					 1024, 2048, 4096, 8192};
	char id[32], token[80], line[96], body[64];
	struct mem_fixture f = {0};

	fixture_start(&f);
	make_tenant(&f, "131072", token);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		assert_int_equal(connect_as(&f, token, "", id), 200);
		snprintf(line, sizeof(line), "POST /v1/connections/%s/pages",
			 id);
		snprintf(body, sizeof(body),
			 "{\"version\":3,\"count\":1,\"bytes\":%u}", sizes[i]);
		assert_int_equal(ask_as(&f, token, line, body), 201);
	}
	assert_in_range(pool_used(&f), 8 * 4096, 131072);
	assert_int_equal(
		ask(&f, "POST /v1/regions", "{\"name\":\"r\",\"size\":786432}"),
		201);
	assert_int_equal(ask_as(&f, TOKEN_ADMIN, "DELETE /v1/tenants/t", NULL),
			 204);
	assert_int_equal(pool_used(&f), 786432);
	fixture_stop(&f);
}

static void pages_have_half_of_what_is_left_and_give_it_back(void **state)
{
	char first[32], second[32], line[96];
	struct mem_fixture f = {0};

	fixture_start(&f);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", first), 200);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", second), 200);
	/* More than the pool has are refused, however small. */
	assert_int_equal(
		make_pages(&f, first, "{\"count\":257,\"bytes\":4096}"), 507);
	assert_int_equal(
		make_pages(&f, first, "{\"count\":268435456,\"bytes\":64}"),
		507);
	assert_int_equal(
		make_pages(&f, first, "{\"count\":256,\"bytes\":4096}"), 201);
	assert_int_equal(answer_u64(&f, "pool"), 126 * 4096);
	assert_int_equal(
		make_pages(&f, second, "{\"count\":256,\"bytes\":4096}"), 201);
	assert_int_equal(answer_u64(&f, "pool"), (126 + 62) * 4096);
	end(&f, first);
	snprintf(line, sizeof(line), "GET /v1/connections/%s/pages", second);
	assert_int_equal(ask(&f, line, NULL), 200);
	assert_int_equal(answer_u64(&f, "pool"), 62 * 4096);
	end(&f, second);
	assert_int_equal(pool_used(&f), 0);
	fixture_stop(&f);
}

static uint64_t charged(struct mem_fixture *f)
{
	json_t *rows, *row;
	size_t i;

	assert_int_equal(ask_as(f, TOKEN_ADMIN, "GET /v1/tenants", NULL), 200);
	rows = json_object_get(f->answer, "tenants");
	json_array_foreach(rows, i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "name")),
			   "default") == 0)
			return (uint64_t)json_integer_value(
				json_object_get(row, "used"));
	}
	return 0;
}

static void tables_and_buffers_are_charged(void **state)
{
	uint64_t pages = 64 * 4096, table, now;
	struct mem_fixture f = {0};
	char id[32];

	fixture_start(&f);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", id), 200);
	assert_int_equal(
		make_pages(&f, id, "{\"count\":64,\"bytes\":4096,\"depth\":8}"),
		201);
	table = charged(&f) - pages;
	assert_in_range(table, 64 * 8, 4096);
	assert_int_equal(pool_used(&f), pages + table);
	assert_int_equal(join(&f, "server", id), 200);
	now = charged(&f);
	/* A page per request that may be under way. */
	assert_true(now >= pages + table + 8 * 4096);
	assert_int_equal(pool_used(&f), now);
	end(&f, id);
	assert_int_equal(charged(&f), 0);
	assert_int_equal(pool_used(&f), 0);
	fixture_stop(&f);
}

/* The one that takes page frames ends whenever there are none. */
static void a_chain_finds_its_room_again_at_a_full_node(void **state)
{
	char id[32], chain[32], more[96], body[96];
	struct mem_fixture f = {0};
	uint64_t used;

	fixture_start(&f);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", id), 200);
	assert_int_equal(
		make_pages(&f, id, "{\"count\":64,\"bytes\":4096,\"depth\":8}"),
		201);
	snprintf(more, sizeof(more), ",\"pages\":\"unmapped\",\"owner\":\"%s\"",
		 id);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, more, chain), 200);
	used = pool_used(&f);
	end(&f, chain);
	snprintf(body, sizeof(body), "{\"name\":\"rest\",\"size\":%llu}",
		 (unsigned long long)(FIXTURE_POOL - used));
	assert_int_equal(ask(&f, "POST /v1/regions", body), 201);
	assert_int_equal(pool_used(&f), FIXTURE_POOL);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, more, chain), 200);
	/* There is none for others. */
	assert_int_equal(join(&f, "load", id), 507);
	end(&f, id);
	assert_int_equal(pool_used(&f), FIXTURE_POOL - used);
	assert_int_equal(charged(&f), FIXTURE_POOL - used);
	fixture_stop(&f);
}

/* ---- what takes long ----------------------------------------------------- */

struct slow {
	struct mem_fixture f; /* with an answer of its own */
	char line[96];
	const char *body;
	unsigned status;
	atomic_bool is_done;
};

static void *ask_slowly(void *arg)
{
	struct slow *s = arg;

	s->status = ask(&s->f, s->line, s->body);
	atomic_store(&s->is_done, true);
	return NULL;
}

static void start_slow(struct mem_fixture *f, struct slow *s, pthread_t *thread)
{
	s->f = *f;
	s->f.answer = NULL;
	atomic_init(&s->is_done, false);
	assert_int_equal(pthread_create(thread, NULL, ask_slowly, s), 0);
}

static void end_slow(struct slow *s, pthread_t thread, unsigned status)
{
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(s->status, status);
	json_decref(s->f.answer);
}

/* While page frames are added or withdrawn, which we hold up, others are
 * answered.
 */
static void nobody_waits_while_spaces_come_and_go(void **state)
{
	static const char body[] =
		"{\"version\":3,\"count\":16,\"bytes\":4096}";
	struct mem_fixture f = {0};
	char first[32], second[32];
	struct pframe_pool *pool;
	struct slow s = {.body = body};
	pthread_t thread;
	uint64_t before;

	fixture_start(&f);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", first), 200);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", second), 200);
	assert_int_equal(make_pages(&f, first, "{\"count\":16,\"bytes\":4096}"),
			 201);
	before = pool_used(&f);
	pool = f.node->conns[0]->space->pframes->pool;

	pthread_mutex_lock(&pool->lock);
	snprintf(s.line, sizeof(s.line), "POST /v1/connections/%s/pages",
		 second);
	start_slow(&f, &s, &thread);
	while (pool_used(&f) == before) /* it is charged first */
		sched_yield();
	assert_false(atomic_load(&s.is_done));
	pthread_mutex_unlock(&pool->lock);
	end_slow(&s, thread, 201);
	assert_int_equal(pool_used(&f), 2 * before);

	pthread_mutex_lock(&pool->lock);
	snprintf(s.line, sizeof(s.line), "DELETE /v1/connections/%s", second);
	s.body = NULL;
	start_slow(&f, &s, &thread);
	while (conns(&f) != 1)
		sched_yield();
	assert_false(atomic_load(&s.is_done));
	pthread_mutex_unlock(&pool->lock);
	end_slow(&s, thread, 204);
	assert_int_equal(pool_used(&f), before);
	fixture_stop(&f);
}

/* The connection ends while its pages are being made. */
static void pages_without_an_owner_are_given_back(void **state)
{
	static const char body[] =
		"{\"version\":3,\"count\":16,\"bytes\":4096}";
	struct mem_fixture f = {0};
	char first[32], second[32];
	struct pframe_pool *pool;
	struct slow s = {.body = body};
	pthread_t thread;
	uint64_t before;

	fixture_start(&f);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", first), 200);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", second), 200);
	assert_int_equal(make_pages(&f, first, "{\"count\":16,\"bytes\":4096}"),
			 201);
	before = pool_used(&f);
	pool = f.node->conns[0]->space->pframes->pool;
	pthread_mutex_lock(&pool->lock);
	snprintf(s.line, sizeof(s.line), "POST /v1/connections/%s/pages",
		 second);
	start_slow(&f, &s, &thread);
	while (pool_used(&f) == before)
		sched_yield();
	end(&f, second);
	pthread_mutex_unlock(&pool->lock);
	end_slow(&s, thread, 410);
	assert_int_equal(pool_used(&f), before);
	fixture_stop(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spaces),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_members),
		cmocka_unit_test(joining_ends_the_owner_it_names),
		cmocka_unit_test(test_owned_region),
		cmocka_unit_test(test_greedy),
		cmocka_unit_test(
			a_tenant_takes_no_more_of_the_pool_than_its_quota),
		cmocka_unit_test(
			pages_have_half_of_what_is_left_and_give_it_back),
		cmocka_unit_test(tables_and_buffers_are_charged),
		cmocka_unit_test(a_chain_finds_its_room_again_at_a_full_node),
		cmocka_unit_test(nobody_waits_while_spaces_come_and_go),
		cmocka_unit_test(pages_without_an_owner_are_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
