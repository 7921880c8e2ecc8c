/* SPDX-License-Identifier: Apache-2.0 */
/* Every route of the controller, for everybody, and with every wrong body. The
 * table of routes is the controller's own: a route without a row here fails,
 * and so does a member of a body that nobody has tried to get wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "cd_bed.h"

/* Tokens of this test, beside those of the bed. */
#define TOKEN_EXPIRED	   T64("1")
#define TOKEN_REVOKED	   T64("2")
#define TOKEN_ROLE_ADMIN   T64("3")
#define TOKEN_ROLE_NODE	   T64("4")
#define TOKEN_ROLE_EXPIRED T64("5")
#define TOKEN_ROLE_REVOKED T64("6")

/* What may be done with it, with a body that is right. `t` is a tenant that has
 * TOKEN_TENANT and a region, `u` one that has TOKEN_OTHER, m0 a node that is
 * up, m1 one that has left. */
struct row {
	const char *route; /* "GET /v1/nodes/:" */
	const char *path;
	const char *body; /* an object; %E: m0's epoch */
	/* Nobody that is known; t, u, nodes, administrators; and a program of
	 * this machine without a token. */
	unsigned none, tenant, other, node, admin, local;
};

#define INC(x) "\"incarnation\":\"" x "\""

static const struct row rows[] = {
	{"GET /v1/status", "/v1/status", "{}", 200, 200, 200, 200, 200, 200},
	{"GET /metrics", "/metrics", "{}", 401, 200, 200, 200, 200, 200},
	{"POST /v1/nodes", "/v1/nodes",
	 "{\"name\":\"m2\",\"kind\":\"memory\",\"address\":\"unix:/m2\","
	 "\"zone\":\"z\",\"size\":1048576,\"proto\":\"1.0\"," INC(SECOND) "}",
	 401, 403, 403, 200, 200, 401},
	{"POST /v1/nodes/:/beat", "/v1/nodes/m0/beat",
	 "{" INC(FIRST) ",\"epoch\":%E,\"used\":1,\"regions\":1,"
			"\"connections\":1,\"tenants\":\"1.1\",\"names_"
			"complete\":true,"
			"\"shares\":[{\"tenant\":\"t\",\"used\":1,\"limit\":1,"
			"\"version\":0,"
			"\"wish\":0}],\"names\":[{\"tenant\":\"t\",\"name\":"
			"\"r\","
			"\"size\":1}],\"own\":[],\"conflicts\":[\"u\"],"
			"\"given\":[\"" FIRST "\"],\"taken\":[\"" FIRST
			"\"],\"kept\":[\"" SECOND
			"\"],\"sealed\":[{\"move\":\"" FIRST
			"\",\"from\":\"m0\",\"run\":\"" FIRST "\"}],"
			"\"moving\":1,\"moved\":2}",
	 401, 403, 403, 200, 200, 401},
	{"POST /v1/nodes/:/leave", "/v1/nodes/m0/leave", "{" INC(FIRST) "}",
	 401, 403, 403, 204, 204, 401},
	{"GET /v1/nodes", "/v1/nodes", "{}", 401, 200, 200, 200, 200, 200},
	{"GET /v1/nodes/:", "/v1/nodes/m0", "{}", 401, 403, 403, 403, 200, 401},
	{"POST /v1/nodes/:/drain", "/v1/nodes/m0/drain", "{\"drain\":true}",
	 401, 403, 403, 403, 200, 401},
	{"DELETE /v1/nodes/:", "/v1/nodes/m1", "{}", 401, 403, 403, 403, 204,
	 401},
	{"GET /v1/names/:", "/v1/names/hidden-r", "{}", 401, 200, 200, 403, 403,
	 403},
	{"POST /v1/place", "/v1/place",
	 "{\"size\":4096,\"copies\":1,\"policy\":\"least\"}", 401, 200, 200,
	 200, 200, 200},
	{"POST /v1/tenants", "/v1/tenants",
	 "{\"name\":\"new\",\"token\":\"" T64(
		 "7") "\",\"quota\":4096,"
		      "\"limits\":{\"regions\":3}}",
	 401, 403, 403, 403, 201, 401},
	{"GET /v1/tenants", "/v1/tenants", "{}", 401, 403, 403, 403, 200, 401},
	{"GET /v1/tenants/:", "/v1/tenants/hidden-t", "{}", 401, 403, 403, 403,
	 200, 401},
	{"PATCH /v1/tenants/:", "/v1/tenants/hidden-t",
	 "{\"quota\":8192,\"limits\":{\"requests\":3}}", 401, 403, 403, 403,
	 200, 401},
	{"DELETE /v1/tenants/:", "/v1/tenants/hidden-t", "{}", 401, 403, 403,
	 403, 204, 401},
	{"PATCH /v1/tenants/:/token", "/v1/tenants/hidden-t/token",
	 "{\"token\":\"" T64("8") "\"}", 401, 403, 403, 403, 200, 401},
	{"DELETE /v1/tenants/:/token", "/v1/tenants/hidden-t/token", "{}", 401,
	 403, 403, 403, 204, 401},
	{"GET /v1/tenants/:/tokens", "/v1/tenants/hidden-t/tokens", "{}", 401,
	 403, 403, 403, 200, 401},
	{"POST /v1/tenants/:/tokens", "/v1/tenants/hidden-t/tokens",
	 "{\"token\":\"" T64("9") "\",\"ttl_s\":60,\"path\":\"/hidden-f\","
				  "\"rights\":\"r\"}",
	 401, 403, 403, 403, 201, 401},
	{"DELETE /v1/tenants/:/tokens/:", "/v1/tenants/hidden-t/tokens/0", "{}",
	 401, 403, 403, 403, 204, 401},
	{"PATCH /v1/tenants/:/tokens/:", "/v1/tenants/hidden-t/tokens/0",
	 "{\"ttl_s\":60}", 401, 403, 403, 403, 204, 401},
	/* The bed has no files, so this one may not be changed. */
	{"PATCH /v1/admin/token", "/v1/admin/token",
	 "{\"token\":\"" T64("7") "\"}", 401, 403, 403, 403, 403, 401},
	{"GET /v1/audit", "/v1/audit", "{}", 401, 403, 403, 403, 200, 401},
	{"GET /v1/roles/:/tokens", "/v1/roles/node/tokens", "{}", 401, 403, 403,
	 403, 200, 401},
	{"POST /v1/roles/:/tokens", "/v1/roles/node/tokens",
	 "{\"token\":\"" T64("7") "\",\"ttl_s\":60}", 401, 403, 403, 403, 201,
	 401},
	{"DELETE /v1/roles/:/tokens/:", "/v1/roles/node/tokens/1", "{}", 401,
	 403, 403, 403, 204, 401},
	{"GET /", "/", "{}", 200, 200, 200, 200, 200, 200},
	{"GET /page.css", "/page.css", "{}", 200, 200, 200, 200, 200, 200},
	{"GET /page.js", "/page.js", "{}", 200, 200, 200, 200, 200, 200},
	{"GET /icon.svg", "/icon.svg", "{}", 200, 200, 200, 200, 200, 200},
	{"GET /v1/overview", "/v1/overview", "{}", 401, 200, 200, 403, 200,
	 401},
	{"GET /v1/history/:/:", "/v1/history/used/60", "{}", 401, 200, 200, 403,
	 200, 401},
	{"POST /v1/look", "/v1/look", "{}", 401, 200, 200, 403, 200, 403},
	/* Only a code is one; test_cd_page has them. */
	{"POST /v1/look/token", "/v1/look/token", "{}", 401, 401, 401, 401, 401,
	 401},
	/* Names are a tenant's alone. */
	{"GET /v1/jobs", "/v1/jobs", "{}", 401, 200, 200, 403, 403, 403},
	{"POST /v1/jobs", "/v1/jobs",
	 "{\"name\":\"j\",\"plan\":{\"a\":[]},\"lease_ms\":1000,"
	 "\"on_expiry\":\"drop\"}",
	 401, 201, 201, 403, 403, 403},
	{"POST /v1/renew", "/v1/renew", "{\"paths\":[\"/f\"]}", 401, 200, 200,
	 403, 403, 403},
	{"GET /v1/ns", "/v1/ns", "{}", 401, 200, 200, 403, 403, 403},
	{"GET /v1/ns/*", "/v1/ns/hidden-f", "{}", 401, 200, 404, 403, 403, 403},
	{"POST /v1/ns/*", "/v1/ns/hidden-f/q",
	 "{\"kind\":\"queue\",\"block_bytes\":65536,\"bound\":5}", 401, 201,
	 404, 403, 403, 403},
	{"PATCH /v1/ns/*", "/v1/ns/hidden-f/hidden-o",
	 "{\"to\":\"/hidden-f/p\"}", 401, 200, 404, 403, 403, 403},
	{"DELETE /v1/ns/*", "/v1/ns/hidden-f/hidden-o", "{\"recursive\":true}",
	 401, 204, 404, 403, 403, 403},
	{"GET /v1/tree", "/v1/tree", "{}", 401, 200, 200, 403, 403, 403},
	{"GET /v1/tree/*", "/v1/tree/hidden-f", "{}", 401, 200, 404, 403, 403,
	 403},
	{"GET /v1/map/*", "/v1/map/hidden-f/hidden-o", "{}", 401, 200, 404, 403,
	 403, 403},
	/* No node lends blocks here. */
	{"POST /v1/blocks/*", "/v1/blocks/hidden-f/hidden-o", "{\"after\":-1}",
	 401, 507, 404, 403, 403, 403},
	/* There is no vault, and it need not be loaded. */
	{"POST /v1/flush/*", "/v1/flush/hidden-f/hidden-o", "{}", 401, 400, 404,
	 403, 403, 403},
	{"POST /v1/load/*", "/v1/load/hidden-f/hidden-o", "{}", 401, 202, 404,
	 403, 403, 403},
};

static const struct row *row_of(const struct ctl_route *r)
{
	char line[100];

	snprintf(line, sizeof(line), "%s %s", ctl_method_name(r->method),
		 r->pattern);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].route, line) == 0)
			return &rows[i];
	fail_msg("%s has no row in this test", line);
	return NULL;
}

static void every_route_has_a_row(void **state)
{
	for (unsigned i = 0; i < cd_routes.route_count; i++) {
		assert_non_null(row_of(&cd_routes.route[i]));
		if (!cd_route_members(&cd_routes.route[i]))
			fail_msg("%s takes any body",
				 cd_routes.route[i].pattern);
	}
	assert_int_equal(cd_routes.route_count, ARRAY_LEN(rows));
}

/* ---- who may ------------------------------------------------------------- */

/* A controller that knows all of the above; the epoch of m0. */
static uint64_t world(struct bed *b)
{
	static const char node_tokens[] = "POST /v1/roles/node/tokens";
	static const char t_tokens[] = "POST /v1/tenants/hidden-t/tokens";
	char body[300];
	uint64_t epoch;

	bed_make(b);
	cd_core_tick(b->core, 1000);
#define ADMIN(line, body, status) \
	assert_int_equal(ask(b, TOKEN_ADMIN, line, body), status)
	ADMIN("POST /v1/tenants",
	      "{\"name\":\"hidden-t\",\"token\":\"" TOKEN_TENANT "\"}", 201);
	ADMIN("POST /v1/tenants",
	      "{\"name\":\"u\",\"token\":\"" TOKEN_OTHER "\"}", 201);
	ADMIN("POST /v1/roles/admin/tokens",
	      "{\"token\":\"" TOKEN_ROLE_ADMIN "\"}", 201);
	ADMIN(node_tokens, "{\"token\":\"" TOKEN_ROLE_NODE "\"}", 201);
	ADMIN(node_tokens, "{\"token\":\"" TOKEN_ROLE_EXPIRED "\",\"ttl_s\":5}",
	      201);
	ADMIN(node_tokens, "{\"token\":\"" TOKEN_ROLE_REVOKED "\"}", 201);
	ADMIN("DELETE /v1/roles/node/tokens/3", NULL, 204);
	ADMIN(t_tokens, "{\"token\":\"" TOKEN_EXPIRED "\",\"ttl_s\":5}", 201);
	ADMIN(t_tokens, "{\"token\":\"" TOKEN_REVOKED "\"}", 201);
	ADMIN("DELETE /v1/tenants/hidden-t/tokens/2", NULL, 204);
#undef ADMIN
	assert_int_equal(ask(b, TOKEN_TENANT, "POST /v1/ns/hidden-f/hidden-o",
			     "{\"kind\":\"file\",\"make_parents\":true}"),
			 201);
	(void)join(b, "m1", FIRST);
	assert_int_equal(ask(b, TOKEN_NODE, "POST /v1/nodes/m1/leave",
			     "{" INC(FIRST) "}"),
			 204);
	epoch = join(b, "m0", FIRST);
	snprintf(body, sizeof(body),
		 "{" INC(FIRST) ",\"epoch\":%llu,\"names\":[{\"tenant\":"
				"\"hidden-t\",\"name\":\"hidden-r\",\"size\":"
				"4096}]}",
		 (unsigned long long)epoch);
	assert_int_equal(ask(b, TOKEN_NODE, "POST /v1/nodes/m0/beat", body),
			 200);
	/* No tick: a token's time is over all the same. */
	cd_core_wall(b->core, 1005);
	return epoch;
}

/* %E in a body. */
static void fill_epoch(const char *body, uint64_t epoch, char *out, size_t size)
{
	const char *at = strstr(body, "%E");

	if (at)
		snprintf(out, size, "%.*s%llu%s", (int)(at - body), body,
			 (unsigned long long)epoch, at + 2);
	else
		snprintf(out, size, "%s", body);
}

static unsigned ask_row(struct bed *b, const struct row *r, uint64_t epoch,
			bool is_local, const char *token, const char *body)
{
	char line[600], text[8192];

	snprintf(line, sizeof(line), "%.*s %s", (int)strcspn(r->route, " "),
		 r->route, r->path);
	fill_epoch(body, epoch, text, sizeof(text));
	return ask_from(b, is_local, token, line, text);
}

/* Others learn nothing of t. */
static void check_hidden(const struct bed *b, const struct row *r,
			 const char *who)
{
	char *text = b->text ? strstr(b->text, "hidden-") : NULL;

	if (text && !strstr(r->path, "hidden-"))
		fail_msg("%s tells %s of %.40s", r->route, who, text);
	/* What the path says may be repeated; what is behind it not. */
	if (b->text && strstr(b->text, "unix:/m0") &&
	    strcmp(r->route, "GET /v1/names/:") == 0)
		fail_msg("%s tells %s where it is", r->route, who);
}

static void only_those_who_may(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		const struct {
			const char *who, *token;
			unsigned status;
			bool is_local, is_kept_out;
		} callers[] = {
			{"nobody", NULL, r->none, false, true},
			{"a stranger", TOKEN_STRANGER, r->none, false, true},
			{"no token", "none", r->none, false, true},
			{"an empty token", "", r->none, false, true},
			{"expired", TOKEN_EXPIRED, r->none, false, true},
			{"revoked", TOKEN_REVOKED, r->none, false, true},
			{"an expired node", TOKEN_ROLE_EXPIRED, r->none, false,
			 true},
			{"a revoked node", TOKEN_ROLE_REVOKED, r->none, false,
			 true},
			{"its tenant", TOKEN_TENANT, r->tenant, false, false},
			{"its tenant here", TOKEN_TENANT, r->tenant, true,
			 false},
			{"another tenant", TOKEN_OTHER, r->other, false, true},
			{"another tenant here", TOKEN_OTHER, r->other, true,
			 true},
			{"default", TOKEN_DEFAULT, r->other, false, true},
			{"a node", TOKEN_NODE, r->node, false, false},
			{"a node's role", TOKEN_ROLE_NODE, r->node, false,
			 false},
			{"the administrator", TOKEN_ADMIN, r->admin, false,
			 false},
			{"an administrator's role", TOKEN_ROLE_ADMIN, r->admin,
			 false, false},
			{"this machine", NULL, r->local, true, false},
		};

		for (size_t k = 0; k < ARRAY_LEN(callers); k++) {
			struct bed b;
			uint64_t epoch = world(&b);
			unsigned status =
				ask_row(&b, r, epoch, callers[k].is_local,
					callers[k].token, r->body);

			if (status != callers[k].status)
				fail_msg("%s by %s: %u, not %u: %s", r->route,
					 callers[k].who, status,
					 callers[k].status, words(&b));
			if (callers[k].is_kept_out)
				check_hidden(&b, r, callers[k].who);
			bed_end(&b);
		}
	}
}

/* ---- who may only look ----------------------------------------------------
 */

/* The token of a page that was opened with that one. */
static void open_page(struct bed *b, const char *token, char out[80])
{
	char code[80];

	assert_int_equal(ask(b, token, "POST /v1/look", NULL), 200);
	snprintf(code, sizeof(code), "%s",
		 json_string_value(json_object_get(b->answer, "code")));
	assert_int_equal(ask(b, code, "POST /v1/look/token", NULL), 200);
	snprintf(out, 80, "%s",
		 json_string_value(json_object_get(b->answer, "token")));
	/* A code is good for that alone, and once. */
	assert_int_equal(ask(b, code, "GET /v1/overview", NULL), 401);
	assert_int_equal(ask(b, code, "POST /v1/look/token", NULL), 401);
}

/* A route that is not here is closed to them, also a new one. */
static unsigned status_of_look(const struct row *r)
{
	static const char *const open[] = {
		"GET /v1/overview", "GET /v1/history/:/:",
		"GET /v1/status",   "GET /",
		"GET /page.css",    "GET /page.js",
		"GET /icon.svg",
	};

	for (size_t i = 0; i < ARRAY_LEN(open); i++)
		if (strcmp(r->route, open[i]) == 0)
			return 200;
	return strcmp(r->route, "POST /v1/look/token") == 0 ? 401 : 403;
}

static void a_page_only_looks(void **state)
{
	static const struct {
		const char *opener;
		bool is_kept_out;
	} pages[] = {{TOKEN_ADMIN, false},
		     {TOKEN_ROLE_ADMIN, false},
		     {TOKEN_TENANT, false},
		     {TOKEN_OTHER, true}};

	for (unsigned i = 0; i < cd_routes.route_count; i++) {
		const struct row *r = row_of(&cd_routes.route[i]);

		for (size_t k = 0; k < 2 * ARRAY_LEN(pages); k++) {
			char page[80];
			struct bed b;
			uint64_t epoch = world(&b);
			unsigned status;

			open_page(&b, pages[k / 2].opener, page);
			status = ask_row(&b, r, epoch, k % 2, page, r->body);
			if (status != status_of_look(r))
				fail_msg("%s by a page: %u: %s", r->route,
					 status, words(&b));
			if (pages[k / 2].is_kept_out)
				check_hidden(&b, r, "another tenant's page");
			bed_end(&b);
		}
	}
}

/* ---- wrong bodies -------------------------------------------------------- */

enum kind {
	NUMBER,
	SIGNED, /* a number from -1 on */
	WORD,	/* a string that must be of some form */
	TEXT,	/* any string that is not too long */
	FLAG,
	LIST,
	OBJECT,
};

struct field {
	const char *name;
	enum kind kind;
	bool is_required;
	const char *bad[8]; /* of its own: JSON, where NULL ends it */
};

/* Names mean the same in all bodies, but for `required`. */
static const struct field fields[] = {
	{"name",
	 WORD,
	 true,
	 {"\"\"", "\"a/b\"", "\".\"", "\"a b\"", "\"\\u0001\""}},
	{"kind", WORD, true, {"\"toaster\"", "\"Memory\""}},
	{"address",
	 WORD,
	 true,
	 {"\"\"", "\"a b\"", "\"a\\\\b\"", "\"\\u0007\""}},
	{"zone", WORD, false, {"\"../x\"", "\"a b\""}},
	{"incarnation", WORD, true, {"\"1\"", "\"000000000000000G\""}},
	{"size", NUMBER, false, {NULL}},
	{"proto", WORD, false, {"\"\"", "\"2.0\"", "\"1\"", "\"1.x\""}},
	{"epoch", NUMBER, true, {NULL}},
	{"used", NUMBER, false, {NULL}},
	{"regions", NUMBER, false, {NULL}},
	{"connections", NUMBER, false, {NULL}},
	{"ops", NUMBER, false, {NULL}},
	{"tenants", TEXT, false, {NULL}},
	{"names_complete", FLAG, false, {NULL}},
	{"shares",
	 LIST,
	 false,
	 {"[{}]", "[{\"tenant\":7}]", "[{\"tenant\":\"t\",\"used\":-1}]",
	  "[{\"tenant\":\"t\",\"limit\":\"x\"}]",
	  "[{\"tenant\":\"t\",\"wish\":1.5}]"}},
	{"names",
	 LIST,
	 false,
	 {"[{}]", "[{\"name\":\"a\"}]", "[{\"tenant\":\"t\",\"name\":7}]",
	  "[{\"tenant\":\"t\",\"name\":\"a\",\"size\":-1}]",
	  "[{\"tenant\":\"t\",\"name\":\"a\",\"more\":1}]"}},
	{"own", LIST, false, {NULL}},
	{"conflicts", LIST, false, {"[{}]"}},
	{"drain", FLAG, false, {NULL}},
	{"drained", FLAG, false, {NULL}},
	{"freeze", FLAG, false, {NULL}},
	{"drain_order", NUMBER, false, {NULL}},
	{"spill", NUMBER, false, {NULL}},
	{"spilled", NUMBER, false, {NULL}},
	{"copies", NUMBER, false, {"0", "17"}},
	{"policy", WORD, false, {"\"\"", "\"most\""}},
	{"token", WORD, false, {"\"\"", "\"short\"", "\"" T8("0123456G") "\""}},
	{"quota", NUMBER, false, {NULL}},
	{"limits",
	 OBJECT,
	 false,
	 {"{\"apples\":1}", "{\"walks\":-1}", "{\"walks\":\"x\"}"}},
	{"ttl_s", NUMBER, false, {"0", "31622401"}},
	{"path",
	 WORD,
	 false,
	 {"\"\"", "\"/\"", "\"a\"", "\"/a/\"", "\"/a//b\"", "\"/..\""}},
	{"rights", WORD, false, {"\"\"", "\"w\"", "\"rwx\""}},
	{"blocks", LIST, false, {"[[]]", "[[0,1,2]]", "[[65536,1,2,3]]"}},
	{"freed", LIST, false, {"[[]]", "[[0,-1]]"}},
	{"failed", LIST, false, {"[[]]", "[[0,1]]", "[[0,1,2]]"}},
	{"tasks", LIST, false, {"[[]]", "[{\"id\":1}]"}},
	{"chained", LIST, false, {"[[]]", "[[1,2,3]]", "[[0,1,2,-1]]"}},
	{"links", LIST, false, {"[[]]", "[{\"peer\":1}]"}},
	{"given", LIST, false, {"[7]", "[\"12\"]"}},
	{"kept", LIST, false, {"[7]", "[\"12\"]"}},
	{"taken", LIST, false, {"[7]", "[\"12\"]"}},
	{"sealed", LIST, false, {"[[]]", "[{\"move\":\"12\"}]"}},
	{"moving", NUMBER, false, {NULL}},
	{"moved", NUMBER, false, {NULL}},
	{"plan",
	 OBJECT,
	 false,
	 {"{\"a\":7}", "{\"a\":[\"b\"]}", "{\"a\":[\"a\"]}", "{\"..\":[]}"}},
	{"lease_ms", NUMBER, false, {"99", "86400001"}},
	{"on_expiry", WORD, false, {"\"\"", "\"flush\""}},
	{"paths", LIST, true, {NULL}},
	{"parents", LIST, false, {NULL}},
	{"make_parents", FLAG, false, {NULL}},
	{"block_bytes", NUMBER, false, {"0", "65535", "65537", "2147483648"}},
	{"bound", NUMBER, false, {"0"}},
	{"to", WORD, false, {"\"\"", "\"/\"", "\"/a//b\"", "\"/..\""}},
	{"recursive", FLAG, false, {NULL}},
	{"back", FLAG, false, {NULL}},
	{"after", SIGNED, false, {NULL}},
	{"most", NUMBER, false, {"0"}},
};

static const struct field *field_of(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (strlen(fields[i].name) == len &&
		    memcmp(fields[i].name, name, len) == 0)
			return &fields[i];
	fail_msg("nobody tries to get \"%.*s\" wrong", (int)len, name);
	return NULL;
}

static bool is_required(const struct row *r, const struct field *f)
{
	return f->is_required || (strcmp(f->name, "size") == 0 &&
				  strcmp(r->path, "/v1/place") == 0);
}

/* Somebody who may, and what becomes of it. */
static const char *token_for(const struct row *r)
{
	return r->admin == 403 && r->tenant != 403 ? TOKEN_TENANT : TOKEN_ADMIN;
}

static unsigned status_for(const struct row *r)
{
	return r->admin == 403 && r->tenant != 403 ? r->tenant : r->admin;
}

/* It must be refused, in words that name the field, and nothing may change: the
 * right body is taken afterwards. */
static void try_bad(const struct row *r, const char *name, const char *body)
{
	struct bed b;
	uint64_t epoch = world(&b);
	unsigned status = ask_row(&b, r, epoch, false, token_for(r), body);

	if (status < 400 || status > 499 || !strstr(words(&b), name))
		fail_msg("%s, \"%s\" wrong in %.200s: %u %s", r->route, name,
			 body, status, words(&b));
	status = ask_row(&b, r, epoch, false, token_for(r), r->body);
	if (status != status_for(r))
		fail_msg("%s after %.200s: %u %s", r->route, body, status,
			 words(&b));
	bed_end(&b);
}

static void append(char out[8192], const char *piece)
{
	size_t len = strlen(out);
	int put = 0;

	if (*piece)
		put = snprintf(out + len, 8192 - len, "%s%s",
			       len > 1 ? "," : "", piece);
	assert_true(put >= 0 && (size_t)put < 8192 - len);
}

/* The right body with another value of one member; value NULL: without it. Text
 * is put together, because numbers that JSON's library does not make are tried,
 * too, and the epoch is filled in later. */
static void try_value(const struct row *r, const struct field *f,
		      const char *value)
{
	char text[8192], body[8192] = "{", *rest;
	json_t *tree;

	fill_epoch(r->body, 1, text, sizeof(text));
	tree = json_loads(text, 0, NULL);
	assert_non_null(tree);
	json_object_del(tree, f->name);
	json_object_del(tree, "epoch");
	rest = json_dumps(tree, JSON_COMPACT);
	json_decref(tree);
	if (value) {
		snprintf(text, sizeof(text), "\"%s\":%s", f->name, value);
		append(body, text);
	}
	if (strstr(r->body, "%E") && strcmp(f->name, "epoch") != 0)
		append(body, "\"epoch\":%E");
	rest[strlen(rest) - 1] = 0;
	append(body, rest + 1);
	snprintf(body + strlen(body), sizeof(body) - strlen(body), "}");
	try_bad(r, f->name, body);
	free(rest);
}

static void try_kind(const struct row *r, const struct field *f)
{
	static const char *const wrong[] = {
		[NUMBER] = "\"7\" true null [] {} -1 1.5 "
			   "9223372036854775808 1e999",
		[SIGNED] = "\"7\" true null [] {} -2 1.5 "
			   "-9223372036854775809",
		[WORD] = "7 true null [] {} \"\\u0000\" \"\\ud800\"",
		[TEXT] = "7 true null [] {}",
		[FLAG] = "7 \"true\" null [] {}",
		[LIST] = "7 \"x\" true null {} [7]",
		[OBJECT] = "7 \"x\" true null []",
	};
	char text[100], *rest = text, *value, longest[5100];

	snprintf(text, sizeof(text), "%s", wrong[f->kind]);
	while ((value = strsep(&rest, " ")))
		try_value(r, f, value);
	for (size_t i = 0; i < ARRAY_LEN(f->bad) && f->bad[i]; i++)
		try_value(r, f, f->bad[i]);
	if (f->kind == WORD || f->kind == TEXT) {
		memset(longest, 'a', 5000);
		longest[0] = '"';
		snprintf(longest + 5000, 100, "\"");
		try_value(r, f, longest);
	}
	if (is_required(r, f))
		try_value(r, f, NULL);
}

static void wrong_bodies_are_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		const struct ctl_route *route = NULL;
		const char *word;
		char body[1024], twice[1200];

		for (unsigned k = 0; k < cd_routes.route_count; k++)
			if (row_of(&cd_routes.route[k]) == r)
				route = &cd_routes.route[k];
		snprintf(body, sizeof(body), "{\"zzz\":1}");
		try_bad(r, "zzz", body);
		word = cd_route_members(route);
		while (*word) {
			size_t n = strcspn(word, " ");
			const struct field *f = field_of(word, n);

			try_kind(r, f);
			snprintf(twice, sizeof(twice), "{\"%s\":1,\"%s\":1}",
				 f->name, f->name);
			try_bad(r, f->name, twice);
			word += n + (word[n] == ' ');
		}
	}
}

/* ---- wrong paths --------------------------------------------------------- */

static void wrong_paths_are_refused(void **state)
{
	static const char *const bad[] = {
		"..",
		".",
		"%00",
		"%2e%2e",
		"a%20b",
		"a\x01"
		"b",
		"nobody",
		/* 64 characters */
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aa",
	};

	for (unsigned i = 0; i < cd_routes.route_count; i++) {
		const struct ctl_route *route = &cd_routes.route[i];
		const struct row *r = row_of(route);
		const char *colon = strchr(route->pattern, ':');

		/* A name that nobody has is one that is not there. */
		if (!colon || strcmp(r->route, "GET /v1/names/:") == 0)
			continue;
		for (size_t k = 0; k < ARRAY_LEN(bad); k++) {
			struct row other = *r;
			struct bed b;
			uint64_t epoch = world(&b);
			char path[200];
			unsigned status;

			snprintf(path, sizeof(path), "%.*s%s%s",
				 (int)(colon - route->pattern), route->pattern,
				 bad[k],
				 strchr(colon + 1, ':') ? "/tokens/0"
							: colon + 1);
			other.path = path;
			status = ask_row(&b, &other, epoch, false, TOKEN_ADMIN,
					 r->body);
			if (status < 400 || status > 499 || !*words(&b))
				fail_msg("%s: %u %s", path, status, words(&b));
			bed_end(&b);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_route_has_a_row),
		cmocka_unit_test(only_those_who_may),
		cmocka_unit_test(a_page_only_looks),
		cmocka_unit_test(wrong_bodies_are_refused),
		cmocka_unit_test(wrong_paths_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
