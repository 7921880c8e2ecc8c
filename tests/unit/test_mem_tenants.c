/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants: what each may have of what all share, and that the end of one is all
 * or nothing. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "control/ctl_token.h"
#include "mem_fixture.h"

#define A      TOKEN_ADMIN
#define T8(c)  c c c c c c c c
#define T64(c) T8(T8(c))

static void make_tenant(struct mem_fixture *f, const char *body, char token[80])
{
	assert_int_equal(ask_as(f, A, "POST /v1/tenants", body), 201);
	snprintf(token, 80, "%s", answer_text(f, "token"));
}

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

static uint64_t tenant_number(struct mem_fixture *f, const char *tenant,
			      const char *object, const char *name)
{
	json_t *row;
	size_t i;

	assert_int_equal(ask_as(f, A, "GET /v1/tenants", NULL), 200);
	json_array_foreach(json_object_get(f->answer, "tenants"), i, row)
	{
		json_t *in = object ? json_object_get(row, object) : row;

		if (strcmp(json_string_value(json_object_get(row, "name")),
			   tenant) == 0)
			return (uint64_t)json_integer_value(
				json_object_get(in, name));
	}
	fail_msg("there is no tenant %s", tenant);
	return 0;
}

/* However much one takes, another one gets something. */
static void one_tenant_cannot_take_all(void **state)
{
	struct mem_fixture f = {.config = {0}};
	char greedy[80], modest[80], id[32], body[160];
	unsigned status = 201;

	fixture_start(&f);
	make_tenant(&f, "{\"name\":\"greedy\"}", greedy);
	make_tenant(&f, "{\"name\":\"modest\"}", modest);
	for (unsigned i = 0; status == 201; i++) {
		snprintf(body, sizeof(body),
			 "{\"name\":\"d%u\",\"size\":65536,"
			 "\"memory\":\"device\"}",
			 i);
		status = ask_as(&f, greedy, "POST /v1/regions", body);
	}
	assert_int_equal(status, 507);
	assert_string_equal(error_code(&f), "-EDQUOT");
	assert_int_equal(tenant_number(&f, "greedy", NULL, "device"),
			 tenant_number(&f, "greedy", "limits", "device"));
	assert_int_equal(ask_as(&f, modest, "POST /v1/regions",
				"{\"name\":\"d\",\"size\":64,"
				"\"memory\":\"device\"}"),
			 201);
	/* Sessions cost a place also when their connection has ended. */
	status = 200;
	for (unsigned i = 0; status == 200; i++) {
		snprintf(body, sizeof(body), ",\"session\":\"%032x\"", i);
		status = connect_as(&f, greedy, body, id);
		if (status == 200) {
			snprintf(body, sizeof(body),
				 "DELETE /v1/connections/%s", id);
			assert_int_equal(ask_as(&f, greedy, body, NULL), 204);
		}
	}
	assert_int_equal(status, 429);
	assert_int_equal(connect_as(&f, modest,
				    ",\"session\":"
				    "\"ffffffffffffffffffffffffffffffff\"",
				    id),
			 200);
	/* Those were never used for anything, and do not stay for long. */
	f.clock_ns += (MEM_SESSION_UNUSED_S + 1) * 1000000000ull;
	mem_node_tick(f.node);
	assert_int_equal(tenant_number(&f, "greedy", NULL, "sessions"), 0);
	fixture_stop(&f);
}

/* A node that has less by now begins all the same. */
static void limits_shrink_with_the_node(void **state)
{
	char dir[] = "/tmp/aquifer-limits.XXXXXX", path[64], token[80];
	struct mem_fixture f = {
		.config = {.state_path = path, .walk = {.programs = 64}}};

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/tenants", dir);
	fixture_start(&f);
	make_tenant(&f,
		    "{\"name\":\"t\",\"limits\":{\"walks\":50,"
		    "\"regions\":7}}",
		    token);
	fixture_stop(&f);
	f.config.walk.programs = 8;
	fixture_start(&f);
	assert_int_equal(tenant_number(&f, "t", "limits", "walks"), 8);
	assert_int_equal(tenant_number(&f, "t", "limits", "regions"), 7);
	assert_int_equal(ask_as(&f, token, "GET /v1/regions", NULL), 200);
	fixture_stop(&f);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void limits_are_set_and_seen(void **state)
{
	static const char *const bad[] = {
		"{\"limits\":{\"regions\":4001}}",
		"{\"limits\":{\"regions\":-1}}",
		"{\"limits\":{\"apples\":1}}",
		"{\"limits\":7}",
		"{\"limits\":[]}",
	};
	struct mem_fixture f = {.config = {0}};
	char token[80], line[96], id[32];
	char body[256];

	fixture_start(&f);
	make_tenant(&f, "{\"name\":\"t\",\"limits\":{\"regions\":1}}", token);
	assert_int_equal(tenant_number(&f, "t", "limits", "regions"), 1);
	assert_int_equal(tenant_number(&f, "default", "limits", "regions"),
			 2000);
	assert_int_equal(ask_as(&f, token, "POST /v1/regions",
				"{\"name\":\"a\",\"size\":4096}"),
			 201);
	assert_int_equal(ask_as(&f, token, "POST /v1/regions",
				"{\"name\":\"b\",\"size\":1}"),
			 429);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/t", bad[i]),
				 400);
	assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/t",
				"{\"limits\":{\"regions\":2,\"grants\":1,"
				"\"connections\":2,\"servers\":1}}"),
			 200);
	assert_int_equal(ask_as(&f, token, "POST /v1/regions",
				"{\"name\":\"b\",\"size\":1}"),
			 201);
	assert_int_equal(connect_as(&f, token, "", id), 200);
	snprintf(line, sizeof(line), "POST /v1/connections/%s/grants", id);
	snprintf(body, sizeof(body), "{\"region\":\"a\",\"rights\":\"r\"}");
	assert_int_equal(ask_as(&f, token, line, body), 200);
	assert_int_equal(ask_as(&f, token, line, body), 429);
	assert_int_equal(tenant_number(&f, "t", NULL, "grants"), 1);
	/* The processor's connections count twice over. */
	snprintf(line, sizeof(line), "POST /v1/connections/%s/pages", id);
	assert_int_equal(ask_as(&f, token, line,
				"{\"version\":3,\"count\":1,\"bytes\":4096}"),
			 201);
	assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/t",
				"{\"limits\":{\"servers\":0}}"),
			 200);
	snprintf(body, sizeof(body), ",\"pages\":\"server\",\"owner\":\"%s\"",
		 id);
	assert_int_equal(connect_as(&f, token, body, line), 429);
	snprintf(body, sizeof(body), ",\"pages\":\"load\",\"owner\":\"%s\"",
		 id);
	assert_int_equal(connect_as(&f, token, body, line), 200);
	assert_int_equal(connect_as(&f, token, "", line), 429);
	assert_int_equal(tenant_number(&f, "t", NULL, "connections"), 2);
	fixture_stop(&f);
}

/* A tenant that cannot be taken out of the file stays, with all it has. */
static void deleting_is_all_or_nothing(void **state)
{
	char dir[] = "/tmp/aquifer-state.XXXXXX", path[64], token[80], id[32];
	struct mem_fixture f = {.config = {.state_path = path}};
	char there[80];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x/tenants", dir);
	snprintf(there, sizeof(there), "%s/x", dir);
	assert_int_equal(mkdir(there, 0700), 0);
	fixture_start(&f);
	make_tenant(&f, "{\"name\":\"t\",\"limits\":{\"grants\":5}}", token);
	assert_int_equal(ask_as(&f, token, "POST /v1/regions",
				"{\"name\":\"a\",\"size\":4096}"),
			 201);
	assert_int_equal(connect_as(&f, token, "", id), 200);
	/* No file can be made there any more. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(there), 0);
	assert_int_equal(ask_as(&f, A, "DELETE /v1/tenants/t", NULL), 507);
	assert_int_equal(ask_as(&f, token, "GET /v1/regions/a", NULL), 200);
	assert_int_equal(ask_as(&f, token, "GET /v1/connections", NULL), 200);
	assert_int_equal(
		json_array_size(json_object_get(f.answer, "connections")), 1);
	assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/t", "{\"quota\":9}"),
			 507);
	assert_int_equal(tenant_number(&f, "t", NULL, "quota"), 0);
	assert_int_equal(ask_as(&f, A, "POST /v1/tenants", "{\"name\":\"u\"}"),
			 507);
	assert_int_equal(ask_as(&f, A, "DELETE /v1/tenants/u", NULL), 404);
	/* And when it can be written, it is gone for good. */
	assert_int_equal(mkdir(there, 0700), 0);
	assert_int_equal(
		ask_as(&f, A, "PATCH /v1/tenants/t", "{\"quota\":8192}"), 200);
	mem_node_destroy(f.node);
	fixture_start(&f);
	assert_int_equal(tenant_number(&f, "t", NULL, "quota"), 8192);
	assert_int_equal(tenant_number(&f, "t", "limits", "grants"), 5);
	assert_int_equal(ask_as(&f, token, "GET /v1/regions", NULL), 200);
	assert_int_equal(ask_as(&f, A, "DELETE /v1/tenants/t", NULL), 204);
	assert_int_equal(ask_as(&f, token, "GET /v1/regions", NULL), 401);
	mem_node_destroy(f.node);
	fixture_start(&f);
	assert_int_equal(ask_as(&f, token, "GET /v1/regions", NULL), 401);
	fixture_stop(&f);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(there), 0);
	assert_int_equal(rmdir(dir), 0);
}

static size_t conn_count(struct mem_fixture *f, const char *token)
{
	assert_int_equal(ask_as(f, token, "GET /v1/connections", NULL), 200);
	return json_array_size(json_object_get(f->answer, "connections"));
}

/* Who has the old one is out at once; what the tenant has stays. */
static void another_token_shuts_the_old_one_out(void **state)
{
	char dir[] = "/tmp/aquifer-state.XXXXXX", path[64], id[32];
	struct mem_fixture f = {.config = {.state_path = path}};
	char first[80], second[80], body[128], id2[32];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/tenants", dir);
	fixture_start(&f);
	make_tenant(&f, "{\"name\":\"t\"}", first);
	assert_int_equal(ask_as(&f, first, "POST /v1/regions",
				"{\"name\":\"a\",\"size\":4096}"),
			 201);
	assert_int_equal(connect_as(&f, first, "", id), 200);
	assert_int_equal(connect_as(&f, TOKEN_DEFAULT, "", id2), 200);
	assert_int_equal(ask_as(&f, first, "PATCH /v1/tenants/t/token", "{}"),
			 403);
	assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/t/token", "{}"), 200);
	snprintf(second, sizeof(second), "%s", answer_text(&f, "token"));
	assert_string_not_equal(first, second);
	assert_int_equal(ask_as(&f, first, "GET /v1/regions", NULL), 401);
	assert_int_equal(ask_as(&f, second, "GET /v1/regions/a", NULL), 200);
	assert_int_equal(conn_count(&f, second), 0);
	assert_int_equal(conn_count(&f, TOKEN_DEFAULT), 1);
	/* The same again changes nothing: an answer may have been lost. */
	assert_int_equal(connect_as(&f, second, "", id), 200);
	snprintf(body, sizeof(body), "{\"token\":\"%s\"}", second);
	assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/t/token", body), 200);
	assert_int_equal(conn_count(&f, second), 1);
	/* Nobody gets a token that somebody has. */
	assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/t/token",
				"{\"token\":\"" TOKEN_DEFAULT "\"}"),
			 409);
	assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/t/token",
				"{\"token\":\"" TOKEN_ADMIN "\"}"),
			 409);
	assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/t/token",
				"{\"token\":\"short\"}"),
			 400);
	assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/no/token", "{}"),
			 404);
	/* It holds after a restart, too. */
	mem_node_destroy(f.node);
	fixture_start(&f);
	assert_int_equal(ask_as(&f, first, "GET /v1/regions", NULL), 401);
	assert_int_equal(ask_as(&f, second, "GET /v1/regions", NULL), 200);
	assert_int_equal(connect_as(&f, second, "", id), 200);
	assert_int_equal(ask_as(&f, A, "DELETE /v1/tenants/t/token", NULL),
			 204);
	assert_int_equal(ask_as(&f, second, "GET /v1/regions", NULL), 401);
	assert_int_equal(tenant_number(&f, "t", NULL, "connections"), 0);
	assert_int_equal(
		ask_as(&f, A, "DELETE /v1/tenants/default/token", NULL), 403);
	/* Without the disk nothing changes. */
	assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/t/token", body), 200);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/t/token", "{}"), 507);
	assert_int_equal(ask_as(&f, second, "GET /v1/regions", NULL), 200);
	fixture_stop(&f);
}

/* The controller's list: one tenant with these tokens, each with the time that
 * it has left. */
static void hear(struct mem_fixture *f, unsigned count,
		 const char *const token[], const unsigned left_ms[])
{
	json_t *hashes = json_array(), *left = json_array(), *answer;

	for (unsigned i = 0; i < count; i++) {
		struct ctl_token_hash hash;
		char text[CTL_TOKEN_TEXT];

		assert_int_equal(ctl_token_hash(token[i], &hash), 0);
		ctl_token_hash_format(&hash, text);
		json_array_append_new(hashes, json_string(text));
		json_array_append_new(left, json_integer(left_ms[i]));
	}
	answer = json_pack("{s:[{s:s, s:b, s:i, s:{}, s:o, s:o}]}", "tenants",
			   "name", "t", "has_quota", 0, "quota", 0, "limits",
			   "tokens", hashes, "tokens_left_ms", left);
	mem_node_hear(f->node, answer);
	json_decref(answer);
}

/* What was made with a token ends with it, and nothing else; one that has an
 * end needs nobody to end it, and does not outlive the node. */
static void tokens_of_the_rack_end_alone(void **state)
{
	static const char *const token[] = {T64("5"), T64("6"), T64("7")};
	static const unsigned left[] = {0, 5000, 0};
	static const char *const kept[] = {T64("5"), T64("6")};
	char dir[] = "/tmp/aquifer-state.XXXXXX", path[64], id[32];
	struct mem_fixture f = {.config = {.state_path = path}};

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/tenants", dir);
	fixture_start(&f);
	hear(&f, 3, token, left);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(connect_as(&f, token[i], "", id), 200);
	assert_int_equal(ask_as(&f, token[2], "POST /v1/tokens",
				"{\"token\":\"" T64("8") "\",\"ms\":60000}"),
			 201);
	assert_int_equal(ask_as(&f, T64("8"), "GET /v1/regions", NULL), 200);
	hear(&f, 2, kept, left);
	assert_int_equal(ask_as(&f, token[2], "GET /v1/regions", NULL), 401);
	assert_int_equal(ask_as(&f, T64("8"), "GET /v1/regions", NULL), 401);
	assert_int_equal(conn_count(&f, token[0]), 2);
	f.clock_ns += 4900 * 1000000ull;
	assert_int_equal(ask_as(&f, token[1], "GET /v1/regions", NULL), 200);
	f.clock_ns += 200 * 1000000ull;
	assert_int_equal(ask_as(&f, token[1], "GET /v1/regions", NULL), 401);
	/* Its client is alive, and is ended all the same. */
	assert_int_equal(tenant_number(&f, "t", NULL, "connections"), 2);
	mem_node_tick(f.node);
	assert_int_equal(tenant_number(&f, "t", NULL, "connections"), 1);
	hear(&f, 3, token, left);
	mem_node_destroy(f.node);
	fixture_start(&f);
	assert_int_equal(ask_as(&f, token[0], "GET /v1/regions", NULL), 200);
	assert_int_equal(ask_as(&f, token[1], "GET /v1/regions", NULL), 401);
	assert_int_equal(ask_as(&f, token[2], "GET /v1/regions", NULL), 200);
	fixture_stop(&f);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

struct kept {
	int err;
	bool is_admin;
	char token[80];
};

static int keep(void *ctx, bool is_admin, const char *token)
{
	struct kept *k = ctx;

	if (k->err)
		return error_set(k->err, "not now");
	k->is_admin = is_admin;
	snprintf(k->token, sizeof(k->token), "%s", token);
	return 0;
}

/* The tokens of the rack are kept by whoever started the node. */
static void the_racks_own_tokens_change(void **state)
{
	struct kept kept = {.err = -EACCES};
	struct mem_fixture f = {
		.config = {.keep_token = keep, .keep_ctx = &kept}};

	fixture_start(&f);
	assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/default/token",
				"{\"token\":\"" TOKEN_NOBODY "\"}"),
			 403);
	assert_int_equal(ask(&f, "GET /v1/regions", NULL), 200);
	kept.err = 0;
	assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/default/token",
				"{\"token\":\"" TOKEN_NOBODY "\"}"),
			 200);
	assert_string_equal(kept.token, TOKEN_NOBODY);
	assert_false(kept.is_admin);
	assert_int_equal(ask(&f, "GET /v1/regions", NULL), 401);
	assert_int_equal(ask_as(&f, TOKEN_NOBODY, "GET /v1/regions", NULL),
			 200);
	assert_int_equal(ask_as(&f, A, "PATCH /v1/admin/token",
				"{\"token\":\"" TOKEN_DEFAULT "\"}"),
			 200);
	assert_true(kept.is_admin);
	assert_int_equal(ask_as(&f, A, "GET /v1/tenants", NULL), 401);
	assert_int_equal(ask_as(&f, TOKEN_DEFAULT, "GET /v1/tenants", NULL),
			 200);
	fixture_stop(&f);
}

static void one_tenant_is_shown_with_its_regions(void **state)
{
	struct mem_fixture f = {.config = {0}};
	char token[80];
	json_t *row;

	fixture_start(&f);
	make_tenant(&f, "{\"name\":\"t\"}", token);
	assert_int_equal(ask(&f, "POST /v1/regions",
			     "{\"name\":\"mine\",\"size\":4096}"),
			 201);
	assert_int_equal(ask_as(&f, token, "POST /v1/regions",
				"{\"name\":\"a\",\"size\":8192}"),
			 201);
	assert_int_equal(ask_as(&f, token, "GET /v1/tenants/t", NULL), 403);
	assert_int_equal(ask_as(&f, A, "GET /v1/tenants/u", NULL), 404);
	assert_int_equal(ask_as(&f, A, "GET /v1/tenants/t", NULL), 200);
	assert_int_equal(answer_u64(&f, "regions"), 1);
	assert_int_equal(json_array_size(json_object_get(f.answer, "names")),
			 1);
	row = json_array_get(json_object_get(f.answer, "names"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "name")),
			    "a");
	fixture_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_tenant_cannot_take_all),
		cmocka_unit_test(limits_shrink_with_the_node),
		cmocka_unit_test(limits_are_set_and_seen),
		cmocka_unit_test(deleting_is_all_or_nothing),
		cmocka_unit_test(another_token_shuts_the_old_one_out),
		cmocka_unit_test(tokens_of_the_rack_end_alone),
		cmocka_unit_test(the_racks_own_tokens_change),
		cmocka_unit_test(one_tenant_is_shown_with_its_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
