/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that a tenant hands on, and those that a controller rules: what each
 * route says to them, and their end. */
#include "mem_fixture.h"
#include "memnode/narrow.h"

#define N	"cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define N2	"dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
#define GID	"\"gid\":\"00000000000000000000ffff7f000001\""
#define CONNECT "{\"proto\":\"1.0\"," GID ",\"qpn\":17,\"psn\":1"
#define S	1000000000ull

/* Regions a.1, a.2 and b; a token for what begins with "a." */
static void start(struct mem_fixture *f, const char *rights)
{
	char body[256];

	fixture_start(f);
	assert_int_equal(
		ask(f, "POST /v1/regions", "{\"name\":\"a.1\",\"size\":4096}"),
		201);
	assert_int_equal(
		ask(f, "POST /v1/regions", "{\"name\":\"a.2\",\"size\":4096}"),
		201);
	assert_int_equal(
		ask(f, "POST /v1/regions", "{\"name\":\"b\",\"size\":4096}"),
		201);
	snprintf(body, sizeof(body),
		 "{\"token\":\"" N "\",\"regions\":\"a.*\",\"rights\":\"%s\","
		 "\"ms\":10000}",
		 rights);
	assert_int_equal(ask(f, "POST /v1/tokens", body), 201);
}

static void make_conn(struct mem_fixture *f, const char *token, char path[64])
{
	assert_int_equal(ask_as(f, token, "POST /v1/connect", CONNECT "}"),
			 200);
	snprintf(path, 64, "POST /v1/connections/%s/grants",
		 answer_text(f, "connection"));
}

static void each_route_knows_it(void **state)
{
	static const struct {
		const char *line, *body;
		unsigned status;
	} rows[] = {
		{"GET /v1/status", NULL, 200},
		{"GET /metrics", NULL, 200}, /* on the socket, as for anybody */
		{"GET /v1/regions/a.1", NULL, 200},
		{"GET /v1/regions/b", NULL, 404},
		{"GET /v1/regions/a.3", NULL, 404},
		{"POST /v1/heartbeat", "{\"connections\":[]}", 200},
		{"POST /v1/connect", CONNECT ",\"session\":\"s\"}", 403},
		{"POST /v1/connect",
		 CONNECT ",\"walk\":{\"depth\":1,\"bytes\":64}}", 403},
		/* All the rest is the tenant's own. */
		{"POST /v1/regions", "{\"name\":\"a.3\",\"size\":1}", 403},
		{"PATCH /v1/regions/a.1", "{\"size\":1}", 403},
		{"DELETE /v1/regions/a.1", NULL, 403},
		{"POST /v1/claims",
		 "{\"name\":\"a.1\",\"holder\":\"h\",\"ms\":1}", 403},
		{"DELETE /v1/claims/a.1/h", NULL, 403},
		{"GET /v1/connections", NULL, 403},
		{"GET /v1/grants", NULL, 403},
		{"GET /v1/walks", NULL, 403},
		{"POST /v1/walks", "{\"image\":\"00\"}", 403},
		{"GET /v1/tokens", NULL, 403},
		{"POST /v1/tokens", "{\"token\":\"" N2 "\",\"ms\":1000}", 403},
		{"DELETE /v1/tokens", "{\"token\":\"" N "\"}", 403},
		{"GET /v1/tenants", NULL, 403},
		{"PATCH /v1/tenants/default/token", NULL, 403},
		{"PATCH /v1/admin/token", NULL, 403},
	};
	struct mem_fixture f = {0};

	start(&f, "r");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned got = ask_as(&f, N, rows[i].line, rows[i].body);

		if (got != rows[i].status)
			fail_msg("%s: %u", rows[i].line, got);
	}
	assert_int_equal(ask_as(&f, N, "GET /v1/regions", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(f.answer, "regions")),
			 2);
	/* Another tenant has nothing to do with it. */
	assert_int_equal(ask_as(&f, N2, "GET /v1/regions", NULL), 401);
	fixture_stop(&f);
}

static void it_reads_its_regions_through_its_connections(void **state)
{
	struct mem_fixture f = {0};
	char mine[64], tenants[64];

	start(&f, "r");
	make_conn(&f, N, mine);
	make_conn(&f, TOKEN_DEFAULT, tenants);
	assert_int_equal(
		ask_as(&f, N, mine, "{\"region\":\"a.1\",\"rights\":\"r\"}"),
		200);
	/* Nobody can map it, so it ends when it is told to. */
	assert_true(json_is_true(json_object_get(f.answer, "revocable")));
	assert_int_equal(
		ask_as(&f, N, mine, "{\"region\":\"a.1\",\"rights\":\"rw\"}"),
		403);
	assert_int_equal(
		ask_as(&f, N, mine, "{\"region\":\"a.1\",\"rights\":\"rwa\"}"),
		403);
	assert_int_equal(
		ask_as(&f, N, mine, "{\"region\":\"b\",\"rights\":\"r\"}"),
		404);
	/* The tenant's connections are not its own, even if it knows one. */
	assert_int_equal(
		ask_as(&f, N, tenants, "{\"region\":\"a.1\",\"rights\":\"r\"}"),
		410);
	fixture_stop(&f);
}

static void one_for_writing_writes_only_its_regions(void **state)
{
	struct mem_fixture f = {0};
	char mine[64];

	start(&f, "rw");
	make_conn(&f, N, mine);
	assert_int_equal(
		ask_as(&f, N, mine, "{\"region\":\"a.2\",\"rights\":\"rwa\"}"),
		200);
	assert_int_equal(
		ask_as(&f, N, mine, "{\"region\":\"b\",\"rights\":\"rw\"}"),
		404);
	assert_int_equal(ask_as(&f, N, "DELETE /v1/regions/a.2", NULL), 403);
	fixture_stop(&f);
}

static unsigned conn_count(struct mem_fixture *f)
{
	assert_int_equal(ask(f, "GET /v1/connections", NULL), 200);
	return (unsigned)json_array_size(
		json_object_get(f->answer, "connections"));
}

static void its_time_over_its_connections_end(void **state)
{
	struct mem_fixture f = {0};
	char mine[64], tenants[64];

	start(&f, "r");
	make_conn(&f, N, mine);
	make_conn(&f, TOKEN_DEFAULT, tenants);
	f.clock_ns += 4 * S;
	mem_node_tick(f.node);
	assert_int_equal(conn_count(&f), 2);
	/* Heartbeats of both, so that only the token's end is left. */
	assert_int_equal(
		ask_as(&f, N, mine, "{\"region\":\"a.1\",\"rights\":\"r\"}"),
		200);
	assert_int_equal(
		ask(&f, tenants, "{\"region\":\"a.1\",\"rights\":\"r\"}"), 200);
	f.clock_ns += 4 * S;
	mem_node_tick(f.node);
	assert_int_equal(conn_count(&f), 2);
	assert_int_equal(
		ask(&f, tenants, "{\"region\":\"a.1\",\"rights\":\"r\"}"), 200);
	f.clock_ns += 3 * S;
	assert_int_equal(ask_as(&f, N, "GET /v1/regions", NULL), 401);
	mem_node_tick(f.node);
	assert_int_equal(conn_count(&f), 1);
	assert_int_equal(ask(&f, "GET /v1/tokens", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(f.answer, "tokens")),
			 0);
	fixture_stop(&f);
}

static void it_ends_when_the_tenant_says_so(void **state)
{
	struct mem_fixture f = {0};
	char mine[64];

	start(&f, "r");
	make_conn(&f, N, mine);
	/* Again: it opens something else, and the former connections end. */
	assert_int_equal(ask(&f, "POST /v1/tokens",
			     "{\"token\":\"" N "\",\"regions\":\"b\","
			     "\"ms\":5000}"),
			 201);
	assert_int_equal(conn_count(&f), 0);
	assert_int_equal(ask_as(&f, N, "GET /v1/regions/a.1", NULL), 404);
	assert_int_equal(ask_as(&f, N, "GET /v1/regions/b", NULL), 200);
	/* Parts of it have its name and a dot; others only begin like it. */
	assert_int_equal(
		ask(&f, "POST /v1/regions", "{\"name\":\"b.0\",\"size\":1}"),
		201);
	assert_int_equal(
		ask(&f, "POST /v1/regions", "{\"name\":\"bb\",\"size\":1}"),
		201);
	assert_int_equal(ask_as(&f, N, "GET /v1/regions/b.0", NULL), 200);
	assert_int_equal(ask_as(&f, N, "GET /v1/regions/bb", NULL), 404);
	make_conn(&f, N, mine);
	assert_int_equal(ask(&f, "DELETE /v1/tokens", "{\"token\":\"" N2 "\"}"),
			 404);
	assert_int_equal(ask(&f, "DELETE /v1/tokens", "{\"token\":\"" N "\"}"),
			 204);
	assert_int_equal(conn_count(&f), 0);
	assert_int_equal(ask_as(&f, N, "GET /v1/regions", NULL), 401);
	fixture_stop(&f);
}

static void a_new_token_of_the_tenant_ends_it(void **state)
{
	struct mem_fixture f = {0};
	char team[80], mine[64];

	start(&f, "r");
	assert_int_equal(ask_as(&f, TOKEN_ADMIN, "POST /v1/tenants",
				"{\"name\":\"team\"}"),
			 201);
	snprintf(team, sizeof(team), "%s", answer_text(&f, "token"));
	assert_int_equal(ask_as(&f, team, "POST /v1/tokens",
				"{\"token\":\"" N2 "\",\"ms\":5000}"),
			 201);
	/* One tenant's cannot be taken by another, nor a whole one. */
	assert_int_equal(ask_as(&f, team, "POST /v1/tokens",
				"{\"token\":\"" N "\",\"ms\":5000}"),
			 409);
	assert_int_equal(ask_as(&f, team, "POST /v1/tokens",
				"{\"token\":\"" TOKEN_DEFAULT
				"\",\"ms\":5000}"),
			 409);
	make_conn(&f, N2, mine);
	assert_int_equal(ask_as(&f, N2, "GET /v1/regions/a.1", NULL), 404);
	assert_int_equal(
		ask_as(&f, TOKEN_ADMIN, "PATCH /v1/tenants/team/token", NULL),
		200);
	assert_int_equal(ask_as(&f, N2, "GET /v1/regions", NULL), 401);
	assert_int_equal(ask_as(&f, N, "GET /v1/regions", NULL), 200);
	fixture_stop(&f);
}

static void wrong_wishes_are_named(void **state)
{
	static const char *const bad[] = {
		"{}",
		"{\"token\":\"12\",\"ms\":5000}",
		"{\"token\":\"" N2 "\"}",
		"{\"token\":\"" N2 "\",\"ms\":999}",
		"{\"token\":\"" N2 "\",\"ms\":2592000001}",
		"{\"token\":\"" N2 "\",\"ms\":\"5000\"}",
		"{\"token\":\"" N2 "\",\"ms\":5000,\"rights\":\"w\"}",
		"{\"token\":\"" N2 "\",\"ms\":5000,\"rights\":\"\"}",
		"{\"token\":\"" N2 "\",\"ms\":5000,\"regions\":\"\"}",
		"{\"token\":\"" N2 "\",\"ms\":5000,\"regions\":\"a*b\"}",
		"{\"token\":\"" N2 "\",\"ms\":5000,\"regions\":\"**\"}",
		"{\"token\":\"" N2 "\",\"ms\":5000,\"regions\":\"../a\"}",
		"{\"token\":\"" N2 "\",\"ms\":5000,\"more\":1}",
	};
	struct mem_fixture f = {0};
	char body[160];

	start(&f, "r");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (ask(&f, "POST /v1/tokens", bad[i]) != 400)
			fail_msg("%s", bad[i]);
	/* There is a limit. */
	for (unsigned i = 1; i < MEM_NARROW_MAX; i++) {
		snprintf(body, sizeof(body),
			 "{\"token\":\"%064x\",\"ms\":5000}", i);
		assert_int_equal(ask(&f, "POST /v1/tokens", body), 201);
	}
	assert_int_equal(ask(&f, "POST /v1/tokens",
			     "{\"token\":\"" N2 "\",\"ms\":5000}"),
			 429);
	f.clock_ns += 6 * S; /* some have ended */
	assert_int_equal(ask(&f, "POST /v1/tokens",
			     "{\"token\":\"" N2 "\",\"ms\":5000}"),
			 201);
	fixture_stop(&f);
}

/* ---- those of a controller ----------------------------------------------- */

#define READER \
	"8888888888888888888888888888888888888888888888888888888888888888"
#define BELOW "9999999999999999999999999999999999999999999999999999999999999999"
#define BLOCKS                                                               \
	",\"blocks\":{\"version\":3,\"session\":\"000102030405060708090a0b0" \
	"c0d0e0f\"}}"

static json_t *ruled(const char *token, unsigned left_ms, const char *regions,
		     const char *rights)
{
	struct ctl_token_hash hash;
	char text[CTL_TOKEN_TEXT];

	assert_int_equal(ctl_token_hash(token, &hash), 0);
	ctl_token_hash_format(&hash, text);
	return json_pack("{s:s, s:i, s:s, s:s}", "token", text, "left_ms",
			 (int)left_ms, "regions", regions, "rights", rights);
}

/* The controller's list has default with these. */
static void hear(struct mem_fixture *f, json_t *rows)
{
	json_t *answer = json_pack(
		"{s:[{s:s, s:b, s:i, s:{}, s:[], s:[], s:o}]}", "tenants",
		"name", "default", "has_quota", 0, "quota", 0, "limits",
		"tokens", "tokens_left_ms", "narrow", rows);

	mem_node_hear(f->node, answer);
	json_decref(answer);
}

static void a_controllers_open_what_it_says(void **state)
{
	struct mem_fixture f = {0};
	char reads[64], below[64];

	start(&f, "rw");
	hear(&f, json_pack("[o, o]", ruled(READER, 0, "*", "r"),
			   ruled(BELOW, 5000, "", "rw")));
	assert_int_equal(ask_as(&f, READER, "GET /v1/regions/b", NULL), 200);
	make_conn(&f, READER, reads);
	assert_int_equal(ask_as(&f, READER, reads,
				"{\"region\":\"b\",\"rights\":\"r\"}"),
			 200);
	assert_int_equal(ask_as(&f, READER, reads,
				"{\"region\":\"b\",\"rights\":\"rw\"}"),
			 403);
	/* One for a path has no region, whatever it may do with blocks. */
	make_conn(&f, BELOW, below);
	assert_int_equal(
		ask_as(&f, BELOW, below, "{\"region\":\"b\",\"rights\":\"r\"}"),
		404);
	assert_int_equal(ask_as(&f, BELOW, "GET /v1/regions", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(f.answer, "regions")),
			 0);
	assert_int_equal(ask_as(&f, BELOW, "POST /v1/regions",
				"{\"name\":\"c\",\"size\":1}"),
			 403);
	assert_int_equal(ask_as(&f, BELOW, "POST /v1/connect",
				CONNECT ",\"session\":\"s\"}"),
			 403);
	/* A tenant's own opens no blocks; a ticket is looked at later. */
	assert_int_equal(ask_as(&f, N, "POST /v1/connect", CONNECT BLOCKS),
			 403);
	assert_int_not_equal(
		ask_as(&f, BELOW, "POST /v1/connect", CONNECT BLOCKS), 403);
	/* The tenant neither sees nor ends nor changes them. */
	assert_int_equal(ask(&f, "GET /v1/tokens", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(f.answer, "tokens")),
			 1);
	assert_int_equal(
		ask(&f, "DELETE /v1/tokens", "{\"token\":\"" READER "\"}"),
		404);
	assert_int_equal(ask(&f, "POST /v1/tokens",
			     "{\"token\":\"" BELOW "\",\"ms\":5000}"),
			 409);
	fixture_stop(&f);
}

static void a_controllers_end_with_its_list(void **state)
{
	struct mem_fixture f = {0};
	unsigned before;
	char path[64];

	start(&f, "rw");
	make_conn(&f, N, path);
	hear(&f, json_pack("[o, o]", ruled(READER, 0, "*", "r"),
			   ruled(BELOW, 5000, "", "rw")));
	make_conn(&f, READER, path);
	make_conn(&f, BELOW, path);
	before = conn_count(&f);
	/* The same list again ends nothing. */
	hear(&f, json_pack("[o, o]", ruled(BELOW, 5000, "", "rw"),
			   ruled(READER, 0, "*", "r")));
	assert_int_equal(conn_count(&f), before);
	/* What opens something else now begins anew. */
	hear(&f, json_pack("[o, o]", ruled(BELOW, 5000, "", "r"),
			   ruled(READER, 0, "*", "r")));
	assert_int_equal(conn_count(&f), before - 1);
	hear(&f, json_pack("[o]", ruled(BELOW, 5000, "", "r")));
	assert_int_equal(conn_count(&f), before - 2);
	assert_int_equal(ask_as(&f, READER, "GET /v1/regions", NULL), 401);
	assert_int_equal(ask_as(&f, BELOW, "GET /v1/regions", NULL), 200);
	/* Its time is the node's own. */
	f.clock_ns += 5 * S;
	assert_int_equal(ask_as(&f, BELOW, "GET /v1/regions", NULL), 401);
	/* The tenant's own are left. */
	assert_int_equal(ask_as(&f, N, "GET /v1/regions", NULL), 200);
	/* One that the tenant has made is the controller's from then on. */
	hear(&f, json_pack("[o]", ruled(N, 0, "*", "r")));
	assert_int_equal(ask_as(&f, N, "GET /v1/regions/b", NULL), 200);
	hear(&f, json_array());
	assert_int_equal(ask_as(&f, N, "GET /v1/regions", NULL), 401);
	fixture_stop(&f);
}

static void wrong_lists_of_a_controller_open_nothing(void **state)
{
	struct mem_fixture f = {0};
	json_t *bad[] = {
		json_string("x"),
		json_object(),
		ruled(READER, 0, "*", "w"),
		ruled(READER, 0, "a*b", "r"),
		json_pack("{s:s, s:i, s:s, s:s}", "token", "short", "left_ms",
			  0, "regions", "*", "rights", "r"),
		json_pack("{s:s, s:i, s:s, s:s}", "token", READER, "left_ms",
			  -1, "regions", "*", "rights", "r"),
	};
	json_t *many = json_array();

	start(&f, "r");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		hear(&f, json_pack("[o]", bad[i]));
		assert_int_equal(ask_as(&f, READER, "GET /v1/regions", NULL),
				 401);
	}
	for (unsigned i = 0; i <= MEM_NARROW_RULED_MAX; i++)
		json_array_append_new(many, ruled(READER, 0, "*", "r"));
	hear(&f, many);
	assert_int_equal(ask_as(&f, READER, "GET /v1/regions", NULL), 401);
	fixture_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_route_knows_it),
		cmocka_unit_test(it_reads_its_regions_through_its_connections),
		cmocka_unit_test(one_for_writing_writes_only_its_regions),
		cmocka_unit_test(its_time_over_its_connections_end),
		cmocka_unit_test(it_ends_when_the_tenant_says_so),
		cmocka_unit_test(a_new_token_of_the_tenant_ends_it),
		cmocka_unit_test(wrong_wishes_are_named),
		cmocka_unit_test(a_controllers_open_what_it_says),
		cmocka_unit_test(a_controllers_end_with_its_list),
		cmocka_unit_test(wrong_lists_of_a_controller_open_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
