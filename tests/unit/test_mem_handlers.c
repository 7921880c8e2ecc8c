/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a memory node, good and bad: regions, tenants, quotas, limits. */
#include "mem_fixture.h"

#include <unistd.h>

#include "base/release.h"
#include "memnode/claim.h"

struct row {
	const char *token;
	const char *line;
	const char *body;
	unsigned status;
	const char *code; /* NULL: no error */
};

static void run_rows(struct mem_fixture *f, const struct row *rows,
		     size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned got =
			ask_as(f, rows[i].token, rows[i].line, rows[i].body);
		const char *code = error_code(f);

		if (got != rows[i].status || !code != !rows[i].code ||
		    (code && strcmp(code, rows[i].code) != 0))
			fail_msg("row %zu: %s %s: %u %s", i, rows[i].line,
				 rows[i].body ? rows[i].body : "", got,
				 code ? code : "");
	}
}

#define D TOKEN_DEFAULT
#define A TOKEN_ADMIN

static void test_table(void **state)
{
	static const struct row rows[] = {
		{NULL, "GET /v1/status", NULL, 200, NULL},
		{NULL, "GET /v1/nothing", NULL, 404, "-ENOENT"},
		{NULL, "POST /v1/status", NULL, 405, "-EOPNOTSUPP"},
		/* who asks */
		{NULL, "GET /v1/regions", NULL, 401, "-EACCES"},
		{"", "GET /v1/regions", NULL, 401, "-EACCES"},
		{"short", "GET /v1/regions", NULL, 401, "-EACCES"},
		{TOKEN_NOBODY, "GET /v1/regions", NULL, 401, "-EACCES"},
		{A, "GET /v1/regions", NULL, 403, "-EACCES"},
		{D, "GET /v1/tenants", NULL, 403, "-EACCES"},
		{D, "POST /v1/tenants", "{\"name\":\"x\"}", 403, "-EACCES"},
		{D, "GET /v1/regions", NULL, 200, NULL},
		{A, "GET /v1/tenants", NULL, 200, NULL},
		/* what is said */
		{D, "POST /v1/regions", "{", 400, "-EINVAL"},
		{D, "POST /v1/regions", "[]", 400, "-EINVAL"},
		{D, "POST /v1/regions", "", 400, "-EINVAL"},
		{D, "POST /v1/regions", "{\"name\":\"r\"}", 400, "-EINVAL"},
		{D, "POST /v1/regions", "{\"size\":1}", 400, "-EINVAL"},
		{D, "POST /v1/regions", "{\"name\":1,\"size\":1}", 400,
		 "-EINVAL"},
		{D, "POST /v1/regions", "{\"name\":\"r\",\"size\":\"1\"}", 400,
		 "-EINVAL"},
		{D, "POST /v1/regions", "{\"name\":\"r\",\"size\":0}", 400,
		 "-EINVAL"},
		{D, "POST /v1/regions", "{\"name\":\"r\",\"size\":-1}", 400,
		 "-EINVAL"},
		{D, "POST /v1/regions", "{\"name\":\"r\",\"size\":1e3}", 400,
		 "-EINVAL"},
		{D, "POST /v1/regions", "{\"name\":\"../r\",\"size\":1}", 400,
		 "-EINVAL"},
		{D, "POST /v1/regions", "{\"name\":\"\",\"size\":1}", 400,
		 "-EINVAL"},
		{D, "POST /v1/regions", "{\"name\":\"r\\u0000\",\"size\":1}",
		 400, "-EINVAL"},
		{D, "POST /v1/regions",
		 "{\"name\":\"r\",\"size\":281474976710656}", 400, "-EINVAL"},
		/* what there is */
		{D, "POST /v1/regions", "{\"name\":\"r\",\"size\":2000000}",
		 507, "-ENOSPC"},
		{D, "POST /v1/regions", "{\"name\":\"r\",\"size\":5000}", 201,
		 NULL},
		{D, "POST /v1/regions", "{\"name\":\"r\",\"size\":5000}", 409,
		 "-EEXIST"},
		{D, "GET /v1/regions/r", NULL, 200, NULL},
		{D, "GET /v1/regions/s", NULL, 404, "-ENOENT"},
		{D, "PATCH /v1/regions/s", "{\"size\":1}", 404, "-ENOENT"},
		{D, "PATCH /v1/regions/r", "{}", 400, "-EINVAL"},
		{D, "PATCH /v1/regions/r", "{\"size\":2000000}", 507,
		 "-ENOSPC"},
		{D, "PATCH /v1/regions/r", "{\"size\":9000}", 200, NULL},
		{D, "DELETE /v1/regions/s", NULL, 404, "-ENOENT"},
		{D, "DELETE /v1/regions/r", NULL, 204, NULL},
		{D, "DELETE /v1/regions/r", NULL, 404, "-ENOENT"},
	};
	struct mem_fixture f = {0};

	fixture_start(&f);
	run_rows(&f, rows, ARRAY_LEN(rows));
	assert_int_equal(pool_used(&f), 0);
	fixture_stop(&f);
}

static void parts_are_changed_by_force_only(void **state)
{
	static const struct row rows[] = {
		{D, "POST /v1/regions",
		 "{\"name\":\"a\",\"size\":5000,\"part_of\":\"users\"}", 400,
		 "-EINVAL"},
		{D, "POST /v1/regions",
		 "{\"name\":\"a\",\"size\":5000,\"part_of\":\"kv a b\"}", 400,
		 "-EINVAL"},
		{D, "POST /v1/regions",
		 "{\"name\":\"a\",\"size\":5000,\"part_of\":7}", 400,
		 "-EINVAL"},
		{D, "POST /v1/regions",
		 "{\"name\":\"a\",\"size\":5000,\"part_of\":\"kv users\"}", 201,
		 NULL},
		{D, "DELETE /v1/regions/a", NULL, 403, "-EPERM"},
		{D, "DELETE /v1/regions/a", "{\"force\":false}", 403, "-EPERM"},
		{D, "DELETE /v1/regions/a", "{\"force\":1}", 400, "-EINVAL"},
		{D, "PATCH /v1/regions/a", "{\"size\":9000}", 403, "-EPERM"},
		{D, "PATCH /v1/regions/a", "{\"size\":9000,\"force\":true}",
		 200, NULL},
		{D, "DELETE /v1/regions/a", "{\"force\":true}", 204, NULL},
		{D, "GET /v1/regions/a", NULL, 404, "-ENOENT"},
	};
	struct mem_fixture f = {0};

	fixture_start(&f);
	run_rows(&f, rows, ARRAY_LEN(rows));
	fixture_stop(&f);
}

#define CLAIM(name, holder, ms) \
	"{\"name\":" name ",\"holder\":" holder ",\"ms\":" ms "}"

static void a_name_has_one_claim(void **state)
{
	static const struct row rows[] = {
		{NULL, "POST /v1/claims", CLAIM("\"n\"", "\"a\"", "9"), 401,
		 "-EACCES"},
		{D, "POST /v1/claims", "{\"name\":\"n\"}", 400, "-EINVAL"},
		{D, "POST /v1/claims", CLAIM("\"../n\"", "\"a\"", "9"), 400,
		 "-EINVAL"},
		{D, "POST /v1/claims", CLAIM("\"n\"", "\"\"", "9"), 400,
		 "-EINVAL"},
		{D, "POST /v1/claims", CLAIM("\"n\"", "\"a\"", "0"), 400,
		 "-EINVAL"},
		{D, "POST /v1/claims", CLAIM("\"n\"", "\"a\"", "60001"), 400,
		 "-EINVAL"},
		{D, "POST /v1/claims", CLAIM("\"n\"", "\"a\"", "9"), 204, NULL},
		{D, "POST /v1/claims", CLAIM("\"n\"", "\"b\"", "9"), 409,
		 "-EBUSY"},
		{D, "POST /v1/claims", CLAIM("\"n\"", "\"a\"", "9"), 204, NULL},
		{D, "POST /v1/claims", CLAIM("\"m\"", "\"b\"", "9"), 204, NULL},
		{D, "DELETE /v1/claims/n/b", NULL, 404, "-ENOENT"},
		{D, "DELETE /v1/claims/n", NULL, 404, "-ENOENT"},
		{D, "DELETE /v1/claims/n/a", NULL, 204, NULL},
		{D, "DELETE /v1/claims/n/a", NULL, 404, "-ENOENT"},
		{D, "POST /v1/claims", CLAIM("\"n\"", "\"b\"", "9"), 204, NULL},
	};
	struct mem_fixture f = {0};
	char body[80], other[80];
	unsigned i;

	fixture_start(&f);
	run_rows(&f, rows, ARRAY_LEN(rows));
	/* Another tenant's names are others. */
	assert_int_equal(
		ask_as(&f, A, "POST /v1/tenants", "{\"name\":\"other\"}"), 201);
	snprintf(other, sizeof(other), "%s", answer_text(&f, "token"));
	assert_int_equal(ask_as(&f, other, "POST /v1/claims",
				CLAIM("\"n\"", "\"c\"", "9")),
			 204);
	/* They end by themselves, and only so many can be held. */
	f.clock_ns += 10 * 1000000;
	for (i = 0; i < MEM_CLAIM_MAX; i++) {
		snprintf(body, sizeof(body), CLAIM("\"n%u\"", "\"c\"", "9"), i);
		assert_int_equal(ask(&f, "POST /v1/claims", body), 204);
	}
	assert_int_equal(
		ask(&f, "POST /v1/claims", CLAIM("\"n\"", "\"c\"", "9")), 429);
	f.clock_ns += 10 * 1000000;
	assert_int_equal(
		ask(&f, "POST /v1/claims", CLAIM("\"n0\"", "\"d\"", "9")), 204);
	fixture_stop(&f);
}

static void test_connect_table(void **state)
{
#define GID "\"gid\":\"00000000000000000000ffff7f000001\""
	static const struct row rows[] = {
		{D, "POST /v1/connect", "{}", 400, "-EINVAL"},
		{D, "POST /v1/connect",
		 "{\"proto\":\"2.0\"," GID ",\"qpn\":17,\"psn\":1}", 426,
		 "-EPROTONOSUPPORT"},
		{D, "POST /v1/connect",
		 "{\"proto\":\"one\"," GID ",\"qpn\":17,\"psn\":1}", 400,
		 "-EINVAL"},
		{D, "POST /v1/connect",
		 "{\"proto\":\"1.0\",\"gid\":\"00\",\"qpn\":17,\"psn\":1}", 400,
		 "-EINVAL"},
		{D, "POST /v1/connect",
		 "{\"proto\":\"1.0\"," GID ",\"qpn\":16777216,\"psn\":1}", 400,
		 "-EINVAL"},
		{D, "POST /v1/connect",
		 "{\"proto\":\"1.0\"," GID ",\"qpn\":17,\"psn\":16777216}", 400,
		 "-EINVAL"},
		{D, "POST /v1/connect",
		 "{\"proto\":\"1.0\"," GID
		 ",\"qpn\":17,\"psn\":1,\"mtu\":1000}",
		 400, "-EINVAL"},
		{D, "POST /v1/connect",
		 "{\"proto\":\"1.0\"," GID
		 ",\"qpn\":17,\"psn\":1,\"access\":\"w\"}",
		 400, "-EINVAL"},
		{D, "POST /v1/connect",
		 "{\"proto\":\"1.0\"," GID
		 ",\"qpn\":17,\"psn\":1,\"client\":[]}",
		 400, "-EINVAL"},
		{D, "POST /v1/connect",
		 "{\"proto\":\"1.0\"," GID
		 ",\"qpn\":17,\"psn\":1,\"rd_atomic\":0}",
		 400, "-EINVAL"},
		{D, "POST /v1/connect",
		 "{\"proto\":\"1.9\"," GID ",\"qpn\":17,\"psn\":1,"
		 "\"client\":\"-a b\\n\u00e4\"}",
		 200, NULL},
		{D, "POST /v1/connections/xyz/heartbeat", NULL, 400, "-EINVAL"},
		{D, "POST /v1/connections/00000000000000000000/heartbeat", NULL,
		 410, "-ESTALE"},
		{D, "POST /v1/connections/0000000000000000ffff/heartbeat", NULL,
		 410, "-ESTALE"},
		{D, "DELETE /v1/connections/00000000000000000000", NULL, 410,
		 "-ESTALE"},
	};
	struct mem_fixture f = {0};

	fixture_start(&f);
	run_rows(&f, rows, ARRAY_LEN(rows));
	assert_int_equal(ask(&f, "GET /v1/connections", NULL), 200);
	assert_int_equal(
		json_array_size(json_object_get(f.answer, "connections")), 1);
	/* A name may be anything, but it is printed. */
	assert_string_equal(
		json_string_value(json_object_get(
			json_array_get(json_object_get(f.answer, "connections"),
				       0),
			"client")),
		"-a b???");
	fixture_stop(&f);
}

static void test_oversize(void **state)
{
	struct ctl_request q = {.method = CTL_POST,
				.path = "/v1/regions",
				.token = D,
				.body_bytes = CTL_BODY_MAX + 1};
	struct ctl_reply reply = {0};
	struct mem_fixture f = {0};

	fixture_start(&f);
	mem_node_handle(f.node, &q, &reply);
	assert_int_equal(reply.status, 413);
	ctl_reply_release(&reply);
	fixture_stop(&f);
}

/* Status of so many requests for a path, until one differs from 200. */
static unsigned ask_often(struct mem_fixture *f, const struct ctl_request *q,
			  unsigned count, unsigned *retry_s)
{
	unsigned status = 200;

	while (count-- && status == 200) {
		struct ctl_reply reply = {0};

		mem_node_handle(f->node, q, &reply);
		status = reply.status;
		*retry_s = reply.retry_s;
		ctl_reply_release(&reply);
	}
	return status;
}

static void callers_without_a_token_are_counted_by_origin(void **state)
{
	const unsigned burst = 2 * MEM_STRANGER_REQUESTS;
	struct ctl_request q = {
		.method = CTL_GET, .path = "/v1/status", .origin = "192.0.2.1"};
	struct mem_fixture f = {0};
	unsigned retry_s = 0;

	fixture_start(&f);
	assert_int_equal(ask_often(&f, &q, burst, &retry_s), 200);
	assert_int_equal(ask_often(&f, &q, 1, &retry_s), 429);
	assert_int_equal(retry_s, 1);
	/* A token that is not known does not help, nor does the path. */
	q.token = "0123456789abcdef0123456789abcdef"
		  "0123456789abcdef0123456789abcdef";
	assert_int_equal(ask_often(&f, &q, 1, &retry_s), 429);
	q.path = "/v1/regions";
	assert_int_equal(ask_often(&f, &q, 1, &retry_s), 429);
	/* A tenant and the administrator from there are served, and so is
	 * everybody else. */
	q.token = D;
	assert_int_equal(ask_often(&f, &q, 100, &retry_s), 200);
	q.token = TOKEN_ADMIN;
	q.path = "/v1/tenants";
	assert_int_equal(ask_often(&f, &q, 20000, &retry_s), 200);
	q = (struct ctl_request){
		.method = CTL_GET, .path = "/v1/status", .origin = "192.0.2.2"};
	assert_int_equal(ask_often(&f, &q, 1, &retry_s), 200);
	f.clock_ns += 1000000000;
	q.origin = "192.0.2.1";
	assert_int_equal(ask_often(&f, &q, MEM_STRANGER_REQUESTS, &retry_s),
			 200);
	fixture_stop(&f);
}

static void heartbeats_go_through_for_longer(void **state)
{
	struct ctl_request q = {
		.method = CTL_GET, .path = "/v1/regions", .token = D};
	struct mem_fixture f = {0};
	unsigned retry_s = 0;

	fixture_start(&f);
	assert_int_equal(ask_often(&f, &q, MEM_REQUESTS, &retry_s), 200);
	assert_int_equal(ask_often(&f, &q, 1, &retry_s), 429);
	q.method = CTL_POST;
	q.path = "/v1/heartbeat";
	q.body = "{\"connections\":[]}";
	q.body_bytes = strlen(q.body);
	assert_int_equal(ask_often(&f, &q, 100, &retry_s), 200);
	assert_int_equal(ask_often(&f, &q, 2 * MEM_REQUESTS, &retry_s), 429);
	fixture_stop(&f);
}

static void test_epochs(void **state)
{
	struct mem_fixture f = {0};
	uint64_t id, epoch;

	fixture_start(&f);
	assert_int_equal(
		ask(&f, "POST /v1/regions", "{\"name\":\"r\",\"size\":5000}"),
		201);
	assert_int_equal(pool_used(&f), 8192); /* whole pages */
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 200);
	id = answer_u64(&f, "id");
	epoch = answer_u64(&f, "epoch");
	assert_true(id >= 1 && id <= MEM_REGION_ID_MAX);
	assert_string_equal(answer_text(&f, "node"), "m0");
	/* The same size changes nothing, another one does. */
	assert_int_equal(ask(&f, "PATCH /v1/regions/r", "{\"size\":5000}"),
			 200);
	assert_int_equal(answer_u64(&f, "epoch"), epoch);
	assert_int_equal(ask(&f, "PATCH /v1/regions/r", "{\"size\":20000}"),
			 200);
	assert_int_equal(answer_u64(&f, "epoch"), epoch + 1);
	assert_int_equal(answer_u64(&f, "id"), id);
	assert_int_equal(pool_used(&f), 20480);
	assert_int_equal(ask(&f, "PATCH /v1/regions/r", "{\"size\":1}"), 200);
	assert_int_equal(pool_used(&f), 4096);
	/* A new one of the same name is another one. */
	assert_int_equal(ask(&f, "DELETE /v1/regions/r", NULL), 204);
	assert_int_equal(
		ask(&f, "POST /v1/regions", "{\"name\":\"r\",\"size\":5000}"),
		201);
	assert_int_not_equal(answer_u64(&f, "id"), id);
	assert_true(answer_u64(&f, "epoch") > epoch + 1);
	fixture_stop(&f);
}

static void test_tenants(void **state)
{
	static const struct row bad[] = {
		{A, "POST /v1/tenants", "{}", 400, "-EINVAL"},
		{A, "POST /v1/tenants", "{\"name\":\"a b\"}", 400, "-EINVAL"},
		{A, "POST /v1/tenants", "{\"name\":\"t\"}", 409, "-EEXIST"},
		{A, "POST /v1/tenants", "{\"name\":\"default\"}", 409,
		 "-EEXIST"},
		{A, "POST /v1/tenants",
		 "{\"name\":\"x\",\"token\":\"" TOKEN_ADMIN "\"}", 409,
		 "-EEXIST"},
		{A, "POST /v1/tenants", "{\"name\":\"x\",\"token\":\"12\"}",
		 400, "-EINVAL"},
		{A, "PATCH /v1/tenants/x", "{\"quota\":1}", 404, "-ENOENT"},
		{A, "PATCH /v1/tenants/t", "{}", 400, "-EINVAL"},
		{A, "DELETE /v1/tenants/default", NULL, 403, "-EACCES"},
		{A, "DELETE /v1/tenants/x", NULL, 404, "-ENOENT"},
	};
	struct mem_fixture f = {0};
	char token[80];

	fixture_start(&f);
	assert_int_equal(ask_as(&f, A, "POST /v1/tenants",
				"{\"name\":\"t\",\"quota\":8192}"),
			 201);
	snprintf(token, sizeof(token), "%s", answer_text(&f, "token"));
	run_rows(&f, bad, ARRAY_LEN(bad));
	/* A name space of its own. */
	assert_int_equal(
		ask(&f, "POST /v1/regions", "{\"name\":\"r\",\"size\":4096}"),
		201);
	assert_int_equal(ask_as(&f, token, "GET /v1/regions/r", NULL), 404);
	assert_int_equal(ask_as(&f, token, "POST /v1/regions",
				"{\"name\":\"r\",\"size\":8192}"),
			 201);
	/* A quota, also for growing; and it can be changed. */
	assert_int_equal(ask_as(&f, token, "POST /v1/regions",
				"{\"name\":\"s\",\"size\":1}"),
			 507);
	assert_string_equal(error_code(&f), "-EDQUOT");
	assert_int_equal(
		ask_as(&f, token, "PATCH /v1/regions/r", "{\"size\":8193}"),
		507);
	assert_int_equal(
		ask_as(&f, A, "PATCH /v1/tenants/t", "{\"quota\":12288}"), 200);
	assert_int_equal(
		ask_as(&f, token, "PATCH /v1/regions/r", "{\"size\":8193}"),
		200);
	/* The end of a tenant gives everything back, and its token ends. */
	assert_int_equal(ask_as(&f, A, "DELETE /v1/tenants/t", NULL), 204);
	assert_int_equal(ask_as(&f, token, "GET /v1/regions", NULL), 401);
	assert_int_equal(pool_used(&f), 4096);
	fixture_stop(&f);
}

static void test_limits(void **state)
{
	struct mem_fixture f = {.config = {0}};
	char body[128];
	unsigned made = 0;

	fixture_start(&f);
	assert_int_equal(ask_as(&f, A, "PATCH /v1/tenants/default",
				"{\"limits\":{\"regions\":2}}"),
			 200);
	for (unsigned i = 0; i < 3; i++) {
		snprintf(body, sizeof(body), "{\"name\":\"r%u\",\"size\":1}",
			 i);
		made += ask(&f, "POST /v1/regions", body) == 201;
	}
	assert_int_equal(made, 2);
	assert_string_equal(error_code(&f), "-EAGAIN");
	made = 1; /* default */
	for (unsigned i = 0; i < MEM_TENANT_MAX; i++) {
		snprintf(body, sizeof(body), "{\"name\":\"t%u\"}", i);
		made += ask_as(&f, A, "POST /v1/tenants", body) == 201;
	}
	assert_int_equal(made, MEM_TENANT_MAX);
	assert_string_equal(error_code(&f), "-EAGAIN");
	fixture_stop(&f);
}

static void test_persistence(void **state)
{
	char dir[] = "/tmp/aquifer-state.XXXXXX", path[64], token[80];
	struct mem_fixture f = {.config = {.state_path = path}};
	char text[4096] = {0};
	FILE *file;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/tenants", dir);
	fixture_start(&f);
	assert_int_equal(ask_as(&f, A, "POST /v1/tenants",
				"{\"name\":\"t\",\"quota\":8192}"),
			 201);
	snprintf(token, sizeof(token), "%s", answer_text(&f, "token"));
	assert_int_equal(
		ask_as(&f, A, "PATCH /v1/tenants/default", "{\"quota\":4096}"),
		200);
	fixture_stop(&f);
	/* No token in the file. */
	file = fopen(path, "r");
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	assert_null(strstr(text, token));
	assert_null(strstr(text, TOKEN_DEFAULT));

	fixture_start(&f);
	assert_int_equal(ask_as(&f, token, "GET /v1/regions", NULL), 200);
	assert_int_equal(
		ask(&f, "POST /v1/regions", "{\"name\":\"r\",\"size\":4097}"),
		507);
	fixture_stop(&f);
	/* A file that is damaged stops the node; nobody loses tenants. */
	file = fopen(path, "w");
	fputs("{\"version\":1,\"tenants\":[{\"name\":\"t\"}]}", file);
	fclose(file);
	assert_int_equal(mem_node_create(&f.config, &f.node), -EINVAL);
	file = fopen(path, "w");
	fputs("{", file);
	fclose(file);
	assert_int_equal(mem_node_create(&f.config, &f.node), -EBADMSG);
	file = fopen(path, "w");
	fputs("{\"version\":2,\"tenants\":[]}", file);
	fclose(file);
	assert_int_equal(mem_node_create(&f.config, &f.node), -EPROTONOSUPPORT);
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
}

/* A member that nobody knows is a mistake, and named; nothing is done. */
static void test_unknown(void **state)
{
	struct ctl_request stranger = {.method = CTL_GET, .path = "/v1/status"};
	struct ctl_reply reply = {0};
	struct mem_fixture f = {0};

	fixture_start(&f);
	assert_int_equal(
		ask(&f, "POST /v1/regions",
		    "{\"name\":\"r\",\"size\":4096,\"colour\":\"red\"}"),
		400);
	assert_non_null(strstr(
		json_string_value(json_object_get(
			json_object_get(f.answer, "error"), "message")),
		"\"colour\" is not known here; this request has: name size"));
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 404);
	/* Half a name, or two of them, are none. */
	assert_int_equal(ask(&f, "POST /v1/regions",
			     "{\"name\":\"r\",\"size\":4096,\"own\":1}"),
			 400);
	assert_int_equal(ask(&f, "POST /v1/regions",
			     "{\"name\":\"r\",\"size\":4096,\"name size\":1}"),
			 400);
	assert_int_equal(ask_as(&f, A, "POST /v1/tenants",
				"{\"name\":\"t\",\"qouta\":1}"),
			 400);
	/* Who has a token may know whose it is, and what answers. */
	assert_int_equal(ask(&f, "GET /v1/status", NULL), 200);
	assert_string_equal(answer_text(&f, "tenant"), "default");
	assert_string_equal(answer_text(&f, "version"), AQ_RELEASE);
	mem_node_handle(f.node, &stranger, &reply);
	assert_int_equal(reply.status, 200);
	assert_null(strstr(reply.body, "version"));
	assert_null(strstr(reply.body, "tenant"));
	ctl_reply_release(&reply);
	fixture_stop(&f);
}

static void test_metrics(void **state)
{
	struct ctl_request q = {
		.method = CTL_GET, .path = "/metrics", .is_local = true};
	struct ctl_reply reply = {0};
	struct mem_fixture f = {0};
	char token[80];

	fixture_start(&f);
	assert_int_equal(
		ask(&f, "POST /v1/regions", "{\"name\":\"r\",\"size\":4096}"),
		201);
	assert_int_equal(ask_as(&f, NULL, "GET /v1/regions", NULL), 401);
	assert_int_equal(ask_as(&f, A, "POST /v1/tenants", "{\"name\":\"t\"}"),
			 201);
	snprintf(token, sizeof(token), "%s", answer_text(&f, "token"));
	mem_node_handle(f.node, &q, &reply);
	assert_int_equal(reply.status, 200);
	assert_non_null(strstr(reply.body, "\naquifer_pool_used_bytes 4096\n"));
	assert_non_null(strstr(reply.body, "\naquifer_build_info{version="));
	assert_non_null(strstr(reply.body,
			       "\naquifer_requests_total{method=\"GET\",route="
			       "\"/v1/regions\",status=\"401\"} 1\n"));
	assert_non_null(strstr(reply.body, "counter=\"rx_frames\""));
	assert_non_null(strstr(reply.body, "tenant=\"t\""));
	/* From outside it needs a token, and a tenant sees itself only. */
	ctl_reply_release(&reply);
	q.is_local = false;
	mem_node_handle(f.node, &q, &reply);
	assert_int_equal(reply.status, 401);
	q.token = D;
	mem_node_handle(f.node, &q, &reply);
	assert_int_equal(reply.status, 200);
	assert_null(strstr(reply.body, "tenant=\"t\""));
	assert_non_null(strstr(reply.body, "tenant=\"default\""));
	/* What the NIC counts tells about others. */
	assert_null(strstr(reply.body, "aquifer_nic"));
	assert_null(strstr(reply.body, "aquifer_requests"));
	assert_null(strstr(reply.body, "aquifer_pool"));
	ctl_reply_release(&reply);
	q.token = A;
	mem_node_handle(f.node, &q, &reply);
	assert_int_equal(reply.status, 200);
	assert_non_null(strstr(reply.body, "counter=\"rx_frames\""));
	assert_non_null(strstr(reply.body, "tenant=\"t\""));
	ctl_reply_release(&reply);
	/* The same of the status: others' regions are not counted. */
	assert_int_equal(
		ask(&f, "POST /v1/regions", "{\"name\":\"s\",\"size\":4096}"),
		201);
	q.path = "/v1/status";
	q.token = token;
	mem_node_handle(f.node, &q, &reply);
	assert_non_null(strstr(reply.body, "\"regions\":0"));
	assert_non_null(strstr(reply.body, "\"used\":0"));
	assert_null(strstr(reply.body, "\"tenants\""));
	ctl_reply_release(&reply);
	q.token = NULL;
	mem_node_handle(f.node, &q, &reply);
	assert_int_equal(reply.status, 200);
	assert_non_null(strstr(reply.body, "\"incarnation\""));
	assert_null(strstr(reply.body, "\"pool\""));
	ctl_reply_release(&reply);
	fixture_stop(&f);
}

static void test_bad_nodes(void **state)
{
	static const char *const names[] = {
		"", "M0", "m_0", "m/0", "m0123456789012345678901234567890123"};
	struct mem_fixture f = {0};

	fixture_start(&f);
	fixture_stop(&f);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		f.config.name = names[i];
		assert_int_equal(mem_node_create(&f.config, &f.node), -EINVAL);
	}
	f.config.name = "m0";
	f.config.pool_bytes = 0;
	assert_int_equal(mem_node_create(&f.config, &f.node), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(parts_are_changed_by_force_only),
		cmocka_unit_test(a_name_has_one_claim),
		cmocka_unit_test(test_connect_table),
		cmocka_unit_test(test_oversize),
		cmocka_unit_test(callers_without_a_token_are_counted_by_origin),
		cmocka_unit_test(heartbeats_go_through_for_longer),
		cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_tenants),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_persistence),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_bad_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
