/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of a tenant that open less: for names at a path and below it, for
 * reading, or both. Every route of the controller's own table is tried with
 * each of them; routes that this file does not name must be closed to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "cd_bed.h"
#include "control/ctl_ticket.h"
#include "control/ctl_token.h"

#define TOKEN_READER T64("1") /* of everything */
#define TOKEN_BELOW  T64("2") /* /f/sub */
#define TOKEN_BOTH   T64("3") /* /f/sub, reading */
#define TOKEN_TASK   T64("4") /* /j/t3 of a plan */
#define TOKEN_FILE   T64("5") /* /f/sub/o alone */
#define TOKEN_ABSENT T64("6") /* /g, which is not there */

static void add(struct bed *b, const char *token, const char *more)
{
	char body[300];

	snprintf(body, sizeof(body), "{\"token\":\"%s\",%s}", token, more);
	assert_int_equal(ask(b, TOKEN_ADMIN, "POST /v1/tenants/t/tokens", body),
			 201);
}

static void make(struct bed *b, const char *path, const char *kind)
{
	char line[100], body[100];

	snprintf(line, sizeof(line), "POST /v1/ns%s", path);
	snprintf(body, sizeof(body), "{\"kind\":\"%s\"}", kind);
	assert_int_equal(ask(b, TOKEN_TENANT, line, body), 201);
}

/* The tenant t with /f/sub/o, /f/veiled/o, /other, the paper's plan /j, and a
 * region; a node that lends nothing. */
static void world(struct bed *b)
{
	char body[300];
	uint64_t epoch;

	bed_make(b);
	cd_core_tick(b->core, 1000);
	make_tenant(b, 0);
	make(b, "/f", "folder");
	make(b, "/f/sub", "folder");
	make(b, "/f/sub/o", "file");
	make(b, "/f/veiled", "folder");
	make(b, "/f/veiled/o", "file");
	make(b, "/other", "folder");
	assert_int_equal(
		ask(b, TOKEN_TENANT, "POST /v1/jobs",
		    "{\"name\":\"j\",\"plan\":{\"t1\":[],\"t2\":[],\"t4\":[],"
		    "\"t3\":[\"t1\",\"t2\"],\"t5\":[\"t4\"],\"t7\":[\"t5\","
		    "\"t3\"],\"t8\":[\"t7\"]}}"),
		201);
	make(b, "/j/t3/o", "file");
	make(b, "/j/t1/o1", "file");
	add(b, TOKEN_READER, "\"rights\":\"r\"");
	add(b, TOKEN_BELOW, "\"path\":\"/f/sub\"");
	add(b, TOKEN_BOTH, "\"path\":\"/f/sub\",\"rights\":\"r\",\"ttl_s\":60");
	add(b, TOKEN_TASK, "\"path\":\"/j/t3\"");
	add(b, TOKEN_FILE, "\"path\":\"/f/sub/o\",\"rights\":\"rw\"");
	add(b, TOKEN_ABSENT, "\"path\":\"/g\"");
	epoch = join(b, "m0", FIRST);
	snprintf(body, sizeof(body),
		 "{\"incarnation\":\"" FIRST "\",\"epoch\":%llu,\"names\":"
		 "[{\"tenant\":\"t\",\"name\":\"veiled-r\",\"size\":4096}]}",
		 (unsigned long long)epoch);
	assert_int_equal(ask(b, TOKEN_NODE, "POST /v1/nodes/m0/beat", body),
			 200);
}

/* ---- every route --------------------------------------------------------- */

/* What the route answers to each; the path is one inside /f/sub. Whatever is
 * not here is 403, or 401 where nobody but the administrator or a node goes. */
static const struct row {
	const char *route, *path, *body;
	unsigned reader, below, both;
} rows[] = {
	{"GET /v1/status", "/v1/status", NULL, 200, 200, 200},
	{"GET /", "/", NULL, 200, 200, 200},
	{"GET /page.css", "/page.css", NULL, 200, 200, 200},
	{"GET /page.js", "/page.js", NULL, 200, 200, 200},
	{"GET /icon.svg", "/icon.svg", NULL, 200, 200, 200},
	{"POST /v1/look/token", "/v1/look/token", NULL, 401, 401, 401},
	{"GET /v1/nodes", "/v1/nodes", NULL, 200, 200, 200},
	{"GET /metrics", "/metrics", NULL, 200, 403, 403},
	{"GET /v1/names/:", "/v1/names/veiled-r", NULL, 200, 403, 403},
	{"GET /v1/overview", "/v1/overview", NULL, 200, 403, 403},
	{"GET /v1/history/:/:", "/v1/history/used/60", NULL, 200, 403, 403},
	{"POST /v1/look", "/v1/look", NULL, 200, 403, 403},
	{"GET /v1/jobs", "/v1/jobs", NULL, 200, 200, 200},
	{"POST /v1/renew", "/v1/renew", "{\"paths\":[\"/f/sub\"]}", 403, 200,
	 403},
	{"GET /v1/ns", "/v1/ns", NULL, 200, 200, 200},
	{"GET /v1/ns/*", "/v1/ns/f/sub/o", NULL, 200, 200, 200},
	{"POST /v1/ns/*", "/v1/ns/f/sub/new", "{\"kind\":\"folder\"}", 403, 201,
	 403},
	{"PATCH /v1/ns/*", "/v1/ns/f/sub/o", "{\"to\":\"/f/sub/p\"}", 403, 200,
	 403},
	{"DELETE /v1/ns/*", "/v1/ns/f/sub/o", NULL, 403, 204, 403},
	{"GET /v1/tree", "/v1/tree", NULL, 200, 200, 200},
	{"GET /v1/tree/*", "/v1/tree/f/sub", NULL, 200, 200, 200},
	{"GET /v1/map/*", "/v1/map/f/sub/o", NULL, 200, 200, 200},
	/* No node lends blocks here. */
	{"POST /v1/blocks/*", "/v1/blocks/f/sub/o", "{\"after\":-1}", 403, 507,
	 403},
	/* There is no vault here, and nothing to load. */
	{"POST /v1/flush/*", "/v1/flush/f/sub/o", NULL, 403, 400, 403},
	{"POST /v1/load/*", "/v1/load/f/sub/o", NULL, 403, 202, 403},
};

static const struct row *row_of(const struct ctl_route *r, char line[100])
{
	snprintf(line, 100, "%s %s", ctl_method_name(r->method), r->pattern);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].route, line) == 0)
			return &rows[i];
	return NULL;
}

/* A path of the route, with something in the place of each name. */
static void fill(const char *pattern, char *out, size_t size)
{
	size_t n = 0;

	for (; *pattern && n + 2 < size; pattern++) {
		bool is_name = *pattern == ':' || *pattern == '*';

		out[n++] = is_name ? 't' : *pattern;
	}
	out[n] = 0;
}

static void try_route(const struct ctl_route *r, const char *token,
		      unsigned status, bool is_local)
{
	char line[200], text[100], path[100];
	const struct row *row = row_of(r, text);
	struct bed b;
	unsigned got;

	world(&b);
	fill(r->pattern, path, sizeof(path));
	snprintf(line, sizeof(line), "%s %s", ctl_method_name(r->method),
		 row ? row->path : path);
	got = ask_from(&b, is_local, token, line, row ? row->body : NULL);
	if (got != status)
		fail_msg("%s with %.1s%s: %u, not %u: %s", text, token,
			 is_local ? " here" : "", got, status, words(&b));
	if (strcmp(token, TOKEN_READER) != 0 && b.text &&
	    strstr(b.text, "veiled") && !strstr(line, "veiled"))
		fail_msg("%s tells of %s", text, strstr(b.text, "veiled"));
	bed_end(&b);
}

static void every_route_knows_them(void **state)
{
	for (unsigned i = 0; i < cd_routes.route_count; i++) {
		const struct ctl_route *r = &cd_routes.route[i];
		char text[100];
		const struct row *row = row_of(r, text);

		for (int is_local = 0; is_local < 2; is_local++) {
			try_route(r, TOKEN_READER, row ? row->reader : 403,
				  is_local);
			try_route(r, TOKEN_BELOW, row ? row->below : 403,
				  is_local);
			try_route(r, TOKEN_BOTH, row ? row->both : 403,
				  is_local);
		}
	}
}

/* ---- a subtree ----------------------------------------------------------- */

static void nothing_outside_the_path_is_there(void **state)
{
	static const struct {
		const char *token, *line, *body;
		unsigned status;
	} tries[] = {
		{TOKEN_BELOW, "GET /v1/ns/f", NULL, 404},
		{TOKEN_BELOW, "GET /v1/ns/other", NULL, 404},
		{TOKEN_BELOW, "GET /v1/ns/absent", NULL, 404},
		{TOKEN_BELOW, "GET /v1/ns/f/veiled/o", NULL, 404},
		{TOKEN_BELOW, "GET /v1/tree/f", NULL, 404},
		{TOKEN_BELOW, "GET /v1/map/f/veiled/o", NULL, 404},
		{TOKEN_BELOW, "POST /v1/blocks/f/veiled/o", NULL, 404},
		{TOKEN_BELOW, "POST /v1/ns/f/new", "{\"kind\":\"folder\"}",
		 404},
		{TOKEN_BELOW, "POST /v1/ns/new", "{\"kind\":\"folder\"}", 404},
		{TOKEN_BELOW, "POST /v1/ns/f/veiled/o/x",
		 "{\"kind\":\"folder\"}", 404},
		{TOKEN_BELOW, "POST /v1/ns/new/a/b",
		 "{\"kind\":\"folder\",\"make_parents\":true}", 404},
		{TOKEN_BELOW, "POST /v1/ns/f/sub/a/b",
		 "{\"kind\":\"folder\",\"make_parents\":true}", 201},
		{TOKEN_BELOW, "PATCH /v1/ns/f/sub/o", "{\"to\":\"/f/o\"}", 404},
		{TOKEN_BELOW, "PATCH /v1/ns/f/veiled/o",
		 "{\"to\":\"/f/sub/o\"}", 404},
		{TOKEN_BELOW, "DELETE /v1/ns/f/veiled", "{\"recursive\":true}",
		 404},
		/* Its own place stays. */
		{TOKEN_BELOW, "GET /v1/ns/f/sub", NULL, 200},
		{TOKEN_BELOW, "DELETE /v1/ns/f/sub", "{\"recursive\":true}",
		 403},
		{TOKEN_BELOW, "PATCH /v1/ns/f/sub", "{\"to\":\"/f/sub/x\"}",
		 403},
		{TOKEN_FILE, "GET /v1/map/f/sub/o", NULL, 200},
		{TOKEN_FILE, "GET /v1/ns", NULL, 200},
		{TOKEN_FILE, "GET /v1/ns/f/sub", NULL, 404},
		{TOKEN_FILE, "DELETE /v1/ns/f/sub/o", NULL, 403},
		{TOKEN_FILE, "POST /v1/ns/f/sub/p", "{\"kind\":\"file\"}", 404},
		/* In a plan a task has several addresses. */
		{TOKEN_TASK, "GET /v1/ns/j/t3", NULL, 200},
		{TOKEN_TASK, "GET /v1/ns/j/t1/t3", NULL, 200},
		{TOKEN_TASK, "GET /v1/ns/j/t2/t3/t7", NULL, 200},
		{TOKEN_TASK, "GET /v1/ns/j/t4/t5/t7/t8", NULL, 200},
		{TOKEN_TASK, "GET /v1/map/j/t1/t3/o", NULL, 200},
		{TOKEN_TASK, "GET /v1/ns/j", NULL, 404},
		{TOKEN_TASK, "GET /v1/ns/j/t1", NULL, 404},
		{TOKEN_TASK, "GET /v1/ns/j/t5", NULL, 404},
		{TOKEN_TASK, "GET /v1/map/j/t1/o1", NULL, 404},
		{TOKEN_TASK, "POST /v1/ns/j/t7/t9",
		 "{\"kind\":\"task\",\"parents\":[\"t3\"]}", 201},
		{TOKEN_TASK, "POST /v1/ns/j/t7/ta",
		 "{\"kind\":\"task\",\"parents\":[\"t5\"]}", 400},
		{TOKEN_TASK, "POST /v1/ns/j/t1/ta", "{\"kind\":\"task\"}", 404},
		{TOKEN_TASK, "DELETE /v1/ns/j/t3", NULL, 403},
		{TOKEN_TASK, "DELETE /v1/ns/j/t4/t5/t7/t8", NULL, 204},
		{TOKEN_TASK, "POST /v1/jobs", "{\"name\":\"k\"}", 403},
		/* What is not there yet is not made by it. */
		{TOKEN_ABSENT, "GET /v1/ns", NULL, 404},
		{TOKEN_ABSENT, "POST /v1/ns/g", "{\"kind\":\"folder\"}", 404},
		{TOKEN_ABSENT, "GET /v1/jobs", NULL, 200},
		/* Another token's path is not an own one. */
		{TOKEN_TASK, "GET /v1/ns/f/sub", NULL, 404},
		{TOKEN_BELOW, "GET /v1/ns/j/t3", NULL, 404},
	};

	for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
		struct bed b;
		unsigned got;

		world(&b);
		got = ask(&b, tries[i].token, tries[i].line, tries[i].body);
		if (got != tries[i].status)
			fail_msg("%s with %.1s: %u, not %u: %s", tries[i].line,
				 tries[i].token, got, tries[i].status,
				 words(&b));
		bed_end(&b);
	}
}

static const char *text_of(struct bed *b, const char *name)
{
	const char *s = json_string_value(json_object_get(b->answer, name));

	return s ? s : "";
}

static void answers_name_only_what_it_sees(void **state)
{
	struct bed b;

	world(&b);
	/* Without a path it sees its own place. */
	assert_int_equal(ask(&b, TOKEN_BELOW, "GET /v1/ns", NULL), 200);
	assert_string_equal(text_of(&b, "path"), "/f/sub");
	assert_int_equal(ask(&b, TOKEN_BELOW, "GET /v1/tree", NULL), 200);
	assert_null(strstr(b.text, "veiled"));
	assert_non_null(strstr(b.text, "/f/sub/o"));
	assert_int_equal(ask(&b, TOKEN_BELOW, "GET /v1/jobs", NULL), 200);
	assert_string_equal(b.text, "{\"jobs\":[]}");
	/* t7 has t5 as its first parent, which is not below t3. */
	assert_int_equal(ask(&b, TOKEN_TENANT, "GET /v1/ns/j/t8", NULL), 200);
	assert_string_equal(text_of(&b, "path"), "/j/t4/t5/t7/t8");
	assert_int_equal(ask(&b, TOKEN_TASK, "GET /v1/ns/j/t8", NULL), 200);
	assert_string_equal(text_of(&b, "path"), "/j/t3/t7/t8");
	assert_int_equal(ask(&b, TOKEN_TASK, "GET /v1/tree", NULL), 200);
	assert_null(strstr(b.text, "t1"));
	assert_null(strstr(b.text, "t5"));
	assert_int_equal(ask(&b, TOKEN_TASK, "GET /v1/ns/j/t7", NULL), 200);
	assert_null(strstr(b.text, "t5"));
	assert_int_equal(ask(&b, TOKEN_FILE, "GET /v1/map/f/sub/o", NULL), 200);
	assert_string_equal(text_of(&b, "path"), "/f/sub/o");
	/* Renewals of what is elsewhere are of nothing. */
	assert_int_equal(ask(&b, TOKEN_BELOW, "POST /v1/renew",
			     "{\"paths\":[\"/f/sub\",\"/other\",\"/absent\"]}"),
			 200);
	assert_int_equal(json_array_size(json_object_get(b.answer, "unknown")),
			 2);
	bed_end(&b);
}

/* ---- tickets ------------------------------------------------------------- */

static void read_ticket(struct bed *b, const char *token,
			struct ctl_ticket *out)
{
	static const char line[] = "GET /v1/map/f/sub/o";
	uint8_t bytes[CTL_TICKET_BYTES];
	struct ctl_ticket_keys keys;
	char text[CTL_TICKET_TEXT], body[200];
	uint64_t epoch = join(b, "m1", FIRST);

	assert_int_equal(ask(b, token, line, NULL), 200);
	snprintf(text, sizeof(text), "%s", text_of(b, "ticket"));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		unsigned byte;

		assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
		bytes[i] = (uint8_t)byte;
	}
	snprintf(body, sizeof(body),
		 "{\"incarnation\":\"" FIRST "\",\"epoch\":%llu}",
		 (unsigned long long)epoch);
	assert_int_equal(ask(b, TOKEN_NODE, "POST /v1/nodes/m1/beat", body),
			 200);
	assert_int_equal(
		ctl_ticket_keys_parse(json_object_get(b->answer, "ticket_keys"),
				      &keys),
		0);
	assert_int_equal(ctl_ticket_verify(bytes, &keys, 1000, out), 0);
}

static void tickets_are_as_narrow(void **state)
{
	struct ctl_token_hash hash;
	struct ctl_ticket t;
	struct bed b;

	world(&b);
	read_ticket(&b, TOKEN_TENANT, &t);
	assert_int_equal(t.rights, CTL_TICKET_READ | CTL_TICKET_CHANGE);
	assert_int_equal(t.end_s, 1000 + 3600);
	/* It is of no use over connections of another token. */
	assert_int_equal(ctl_token_hash(TOKEN_TENANT, &hash), 0);
	assert_memory_equal(t.by, hash.bytes, sizeof(t.by));
	read_ticket(&b, TOKEN_BELOW, &t);
	assert_int_equal(t.rights, CTL_TICKET_READ | CTL_TICKET_CHANGE);
	read_ticket(&b, TOKEN_READER, &t);
	assert_int_equal(t.rights, CTL_TICKET_READ);
	/* It ends with the token. */
	read_ticket(&b, TOKEN_BOTH, &t);
	assert_int_equal(t.rights, CTL_TICKET_READ);
	assert_int_equal(t.end_s, 1060);
	bed_end(&b);
}

static void a_reader_does_not_prolong_a_lease(void **state)
{
	struct bed b;

	world(&b);
	for (unsigned i = 0; i < 8; i++) {
		pass(&b, 1000);
		assert_int_equal(
			ask(&b, TOKEN_READER, "GET /v1/map/f/sub/o", NULL),
			200);
	}
	for (unsigned i = 0; i < 60; i++)
		pass(&b, 1000);
	assert_int_equal(ask(&b, TOKEN_READER, "GET /v1/map/f/sub/o", NULL),
			 404);
	bed_end(&b);
}

/* ---- life ---------------------------------------------------------------- */

static json_t *told(struct bed *b, const char *tenant)
{
	uint64_t epoch = join(b, "m1", FIRST);
	char body[200];
	json_t *row;
	size_t i;

	snprintf(body, sizeof(body),
		 "{\"incarnation\":\"" FIRST "\",\"epoch\":%llu}",
		 (unsigned long long)epoch);
	assert_int_equal(ask(b, TOKEN_NODE, "POST /v1/nodes/m1/beat", body),
			 200);
	json_array_foreach(json_object_get(b->answer, "tenants"), i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "name")),
			   tenant) == 0)
			return json_object_get(row, "narrow");
	}
	return NULL;
}

static void nodes_learn_what_they_open(void **state)
{
	struct bed b;
	json_t *list;

	world(&b);
	list = told(&b, "t");
	assert_int_equal(json_array_size(list), 6);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *row = json_array_get(list, i);
		const char *regions =
			json_string_value(json_object_get(row, "regions"));

		assert_string_equal(regions, i == 0 ? "*" : "");
		assert_string_equal(
			json_string_value(json_object_get(row, "rights")),
			i == 0 || i == 2 ? "r" : "rw");
		assert_int_equal(
			json_integer_value(json_object_get(row, "left_ms")),
			i == 2 ? 60000 : 0);
	}
	/* The whole ones are as before. */
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/tenants/t/tokens", NULL),
			 200);
	assert_int_equal(json_array_size(json_object_get(b.answer, "tokens")),
			 7);
	bed_end(&b);
}

static void they_survive_a_leader_and_end(void **state)
{
	struct cd_core *old;
	struct bed b;

	world(&b);
	old = b.core;
	bed_core(&b);
	cd_core_destroy(old);
	bed_lead(&b, "c0");
	cd_core_wall(b.core, 1001);
	assert_int_equal(ask(&b, TOKEN_READER, "GET /v1/ns/f", NULL), 200);
	assert_int_equal(ask(&b, TOKEN_READER, "POST /v1/jobs", NULL), 403);
	assert_int_equal(ask(&b, TOKEN_BOTH, "GET /v1/ns/f", NULL), 404);
	/* Its time is over at once, and the next tick takes it away. */
	cd_core_wall(b.core, 1060);
	assert_int_equal(ask(&b, TOKEN_BOTH, "GET /v1/ns/f/sub", NULL), 401);
	cd_core_tick(b.core, 1060);
	commit(&b);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/tenants/t/tokens", NULL),
			 200);
	assert_int_equal(json_array_size(json_object_get(b.answer, "tokens")),
			 6);
	/* One by its number; a new whole one in place of all. */
	assert_int_equal(
		ask(&b, TOKEN_ADMIN, "DELETE /v1/tenants/t/tokens/2", NULL),
		204);
	assert_int_equal(ask(&b, TOKEN_BELOW, "GET /v1/ns/f/sub", NULL), 401);
	assert_int_equal(ask(&b, TOKEN_READER, "GET /v1/ns/f/sub", NULL), 200);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "PATCH /v1/tenants/t/token",
			     "{\"token\":\"" T64("8") "\"}"),
			 200);
	assert_int_equal(ask(&b, TOKEN_READER, "GET /v1/ns/f/sub", NULL), 401);
	bed_lead(&b, "c0");
	assert_int_equal(json_array_size(told(&b, "t")), 0);
	bed_end(&b);
}

static void a_page_sees_what_its_reader_sees(void **state)
{
	char session[80];
	struct bed b;

	world(&b);
	assert_int_equal(ask(&b, TOKEN_READER, "POST /v1/look", NULL), 200);
	snprintf(session, sizeof(session), "%s", text_of(&b, "code"));
	assert_int_equal(ask(&b, session, "POST /v1/look/token", NULL), 200);
	snprintf(session, sizeof(session), "%s", text_of(&b, "token"));
	assert_int_equal(ask(&b, session, "GET /v1/overview", NULL), 200);
	assert_int_equal(ask(&b, session, "GET /v1/ns/f", NULL), 403);
	assert_int_equal(
		ask(&b, TOKEN_ADMIN, "DELETE /v1/tenants/t/tokens/1", NULL),
		204);
	assert_int_equal(ask(&b, session, "GET /v1/overview", NULL), 401);
	bed_end(&b);
}

static void there_is_a_limit_and_no_token_twice(void **state)
{
	char body[200];
	struct bed b;

	world(&b);
	for (unsigned i = 6; i < CD_NARROW_MAX; i++) {
		snprintf(body, sizeof(body),
			 "{\"token\":\"%064x\",\"rights\":\"r\"}", i);
		assert_int_equal(
			ask(&b, TOKEN_ADMIN, "POST /v1/tenants/t/tokens", body),
			201);
	}
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/tenants/t/tokens",
			     "{\"rights\":\"r\"}"),
			 429);
	/* A whole one has places of its own. */
	assert_int_equal(
		ask(&b, TOKEN_ADMIN, "POST /v1/tenants/t/tokens", "{}"), 201);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/tenants/t/tokens",
			     "{\"token\":\"" TOKEN_BELOW "\"}"),
			 409);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "PATCH /v1/tenants/t/token",
			     "{\"token\":\"" TOKEN_BELOW "\"}"),
			 409);
	/* The tenant default has its file, and may have these beside it. */
	assert_int_equal(
		ask(&b, TOKEN_ADMIN, "POST /v1/tenants/default/tokens", "{}"),
		403);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/tenants/default/tokens",
			     "{\"rights\":\"r\",\"token\":\"" T64("7") "\"}"),
			 201);
	assert_int_equal(ask(&b, T64("7"), "GET /v1/ns", NULL), 200);
	assert_int_equal(json_array_size(told(&b, "default")), 1);
	bed_end(&b);
}

static void wrong_rows_spoil_all(void **state)
{
	static const char *const bad[] = {
		"{\"tenant\":\"default\",\"id\":0,\"until\":0}",
		"{\"tenant\":\"default\",\"id\":0,\"until\":0,\"rights\":"
		"\"rw\"}",
		"{\"tenant\":\"default\",\"id\":0,\"until\":0,\"rights\":"
		"\"w\"}",
		"{\"tenant\":\"default\",\"id\":0,\"until\":0,\"path\":\"/\"}",
		"{\"tenant\":\"default\",\"id\":0,\"until\":0,\"path\":7}",
		"{\"tenant\":\"nobody\",\"id\":0,\"until\":0,\"rights\":\"r\"}",
		"{\"id\":0,\"until\":0,\"rights\":\"r\"}",
		"{\"tenant\":\"default\",\"until\":0,\"rights\":\"r\"}",
	};
	struct bed b;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		bed_make(&b);
		cd_core_clear(b.core);
		if (cd_core_row(b.core, "token_narrow", TOKEN_OTHER, bad[i]) !=
		    -EBADMSG)
			fail_msg("%s", bad[i]);
		bed_end(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_route_knows_them),
		cmocka_unit_test(nothing_outside_the_path_is_there),
		cmocka_unit_test(answers_name_only_what_it_sees),
		cmocka_unit_test(tickets_are_as_narrow),
		cmocka_unit_test(a_reader_does_not_prolong_a_lease),
		cmocka_unit_test(nodes_learn_what_they_open),
		cmocka_unit_test(they_survive_a_leader_and_end),
		cmocka_unit_test(a_page_sees_what_its_reader_sees),
		cmocka_unit_test(there_is_a_limit_and_no_token_twice),
		cmocka_unit_test(wrong_rows_spoil_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
