/* SPDX-License-Identifier: Apache-2.0 */
/* Who may look at a controller's page, what is shown to whom, and what is
 * remembered: on a ledger in memory and a clock that only moves when told to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
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
#define WALL	       1000000000ull
#define PORT	       7170

struct desk {
	struct env env;
	uint64_t clock_ns, wall_s;
	uint8_t random;
	struct cd_core *core;
	struct ledger *ledger;
	struct ledger_store *store;
	json_t *answer;
	char *text; /* of the last answer */
	bool fails; /* the next transaction */
};

static uint64_t desk_now(struct env *env)
{
	return container_of(env, struct desk, env)->clock_ns;
}

static void desk_random(struct env *env, void *buf, size_t len)
{
	memset(buf, ++container_of(env, struct desk, env)->random, len);
}

static const struct env_ops desk_ops = {.now_ns = desk_now,
					.random = desk_random};

static int open_page(void *ctx, uint16_t *port)
{
	(void)ctx;
	*port = PORT;
	return 0;
}

static int read_rows(struct desk *d)
{
	uint64_t term;
	int err;

	assert_int_equal(ledger_lead(d->ledger, "c0", &term), 0);
	cd_core_clear(d->core);
	err = ledger_read(d->ledger, cd_core_row, d->core);
	if (err)
		return err;
	assert_int_equal(cd_core_lead(d->core, term), 0);
	cd_core_keep(d->core, UINT64_MAX);
	cd_core_tick(d->core, d->wall_s);
	return 0;
}

static void start(struct desk *d)
{
	const struct cd_config config = {
		.name = "c0",
		.env = &d->env,
		.admin_token = TOKEN_ADMIN,
		.node_token = TOKEN_NODE,
		.default_token = TOKEN_DEFAULT,
		.open_page = open_page,
	};

	assert_int_equal(cd_core_create(&config, &d->core), 0);
}

static void desk_make(struct desk *d)
{
	*d = (struct desk){
		.env.ops = &desk_ops, .clock_ns = 1000000000, .wall_s = WALL};
	assert_int_equal(ledger_store_create(&d->store), 0);
	assert_int_equal(ledger_mem_open(d->store, &d->ledger), 0);
	start(d);
	assert_int_equal(read_rows(d), 0);
}

static void desk_end(struct desk *d)
{
	json_decref(d->answer);
	free(d->text);
	cd_core_destroy(d->core);
	ledger_close(d->ledger);
	ledger_store_destroy(d->store);
}

static void commit(struct desk *d)
{
	struct ledger_change change[LEDGER_CHANGES_MAX];
	unsigned count;

	while (cd_core_leads(d->core) &&
	       (count = cd_core_batch(d->core, change))) {
		int err = d->fails ? error_set(-EIO, "the disk is gone")
				   : ledger_commit(d->ledger,
						   cd_core_term(d->core),
						   change, count);

		d->fails = false;
		cd_core_committed(d->core, err);
	}
}

/* Seconds, one by one, as the process would let them pass. */
static void pass(struct desk *d, unsigned seconds)
{
	while (seconds--) {
		d->clock_ns += 1000000000;
		cd_core_tick(d->core, ++d->wall_s);
		commit(d);
	}
}

/* "GET /v1/overview"; the status. */
static unsigned ask_from(struct desk *d, bool is_local, const char *token,
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
	cd_core_handle(d->core, &q, &reply, &held);
	if (held.is_held)
		cd_core_answer(d->core, &held, &reply);
	mark = cd_core_mark(d->core);
	commit(d);
	how = cd_core_settled(d->core, mark);
	if (how != CD_COMMITTED)
		cd_core_excuse(d->core, how, &reply);
	json_decref(d->answer);
	free(d->text);
	d->text = strndup(reply.body ? reply.body : "", reply.body_bytes);
	d->answer = json_loads(d->text, 0, NULL);
	status = reply.status;
	ctl_reply_release(&reply);
	return status;
}

static unsigned ask(struct desk *d, const char *token, const char *line,
		    const char *body)
{
	return ask_from(d, false, token, line, body);
}

static void make_tenant(struct desk *d, const char *name, const char *token)
{
	char body[200];

	snprintf(body, sizeof(body),
		 "{\"name\":\"%s\",\"quota\":1048576,\"token\":\"%s\"}", name,
		 token);
	assert_int_equal(ask(d, TOKEN_ADMIN, "POST /v1/tenants", body), 201);
}

static void copy_word(struct desk *d, const char *key, char out[80])
{
	snprintf(out, 80, "%s",
		 json_string_value(json_object_get(d->answer, key)));
}

static void get_code(struct desk *d, const char *token, char code[80])
{
	assert_int_equal(ask_from(d, true, token, "POST /v1/look", NULL), 200);
	copy_word(d, "code", code);
}

/* A session by the right of that token. */
static void look(struct desk *d, const char *token, char session[80])
{
	char code[80];

	get_code(d, token, code);
	assert_int_equal(ask(d, code, "POST /v1/look/token", NULL), 200);
	copy_word(d, "token", session);
}

static unsigned see(struct desk *d, const char *token)
{
	return ask(d, token, "GET /v1/overview", NULL);
}

/* ---- tests ----------------------------------------------------------------
 */

/* Every route of the page, and some others, by everybody. */
static void a_session_may_only_look(void **state)
{
	static const struct {
		const char *line, *body;
		unsigned none, tenant, node, admin, looker;
	} rows[] = {
		{"GET /", NULL, 200, 200, 200, 200, 200},
		{"GET /page.js", NULL, 200, 200, 200, 200, 200},
		{"GET /page.css", NULL, 200, 200, 200, 200, 200},
		{"GET /icon.svg", NULL, 200, 200, 200, 200, 200},
		{"GET /index.html", NULL, 404, 404, 404, 404, 404},
		{"GET /v1/status", NULL, 200, 200, 200, 200, 200},
		{"GET /v1/overview", NULL, 401, 200, 403, 200, 200},
		{"GET /v1/history/used/60", NULL, 401, 200, 403, 200, 200},
		{"GET /v1/history/apples/60", NULL, 401, 404, 403, 404, 404},
		{"GET /v1/history/used/0", NULL, 401, 400, 403, 400, 400},
		{"GET /v1/history/used/86401", NULL, 401, 400, 403, 400, 400},
		{"GET /v1/history/used/1x", NULL, 401, 400, 403, 400, 400},
		{"GET /v1/history/used/-1", NULL, 401, 400, 403, 400, 400},
		{"POST /v1/look", NULL, 401, 200, 403, 200, 403},
		{"POST /v1/look", "{\"x\":1}", 401, 400, 400, 400, 403},
		{"POST /v1/look/token", NULL, 401, 401, 401, 401, 401},
		{"GET /metrics", NULL, 401, 200, 200, 200, 403},
		{"GET /v1/nodes", NULL, 401, 200, 200, 200, 403},
		{"GET /v1/names/x", NULL, 401, 200, 403, 403, 403},
		{"GET /v1/tenants", NULL, 401, 403, 403, 200, 403},
		{"POST /v1/place", "{\"size\":1}", 401, 507, 507, 507, 403},
		{"POST /v1/nodes", "{}", 401, 403, 400, 400, 403},
		{"POST /v1/tenants", "{}", 401, 403, 403, 400, 403},
		{"PATCH /v1/admin/token", "{}", 401, 403, 403, 403, 403},
	};
	char all[80], own[80];
	struct desk d;

	desk_make(&d);
	make_tenant(&d, "mine", TOKEN_TENANT);
	look(&d, TOKEN_ADMIN, all);
	look(&d, TOKEN_TENANT, own);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *line = rows[i].line, *body = rows[i].body;

		assert_int_equal(ask(&d, NULL, line, body), rows[i].none);
		assert_int_equal(ask(&d, TOKEN_STRANGER, line, body),
				 rows[i].none);
		assert_int_equal(ask(&d, TOKEN_TENANT, line, body),
				 rows[i].tenant);
		assert_int_equal(ask(&d, TOKEN_NODE, line, body), rows[i].node);
		assert_int_equal(ask(&d, TOKEN_ADMIN, line, body),
				 rows[i].admin);
		assert_int_equal(ask(&d, all, line, body), rows[i].looker);
		assert_int_equal(ask(&d, own, line, body), rows[i].looker);
	}
	/* Being on the machine is no right by itself. */
	assert_int_equal(ask_from(&d, true, NULL, "POST /v1/look", NULL), 403);
	assert_int_equal(ask_from(&d, true, all, "POST /v1/look", NULL), 403);
	assert_int_equal(ask_from(&d, true, NULL, "GET /v1/overview", NULL),
			 401);
	desk_end(&d);
}

static void a_code_works_once_and_for_a_minute(void **state)
{
	char code[80], second[80];
	struct desk d;

	desk_make(&d);
	get_code(&d, TOKEN_ADMIN, code);
	assert_int_equal(json_integer_value(json_object_get(d.answer, "port")),
			 PORT);
	/* Who asks from elsewhere knows the address already. */
	assert_int_equal(ask(&d, TOKEN_ADMIN, "POST /v1/look", NULL), 200);
	assert_null(json_object_get(d.answer, "port"));
	assert_int_equal(see(&d, code), 401);
	pass(&d, 59);
	assert_int_equal(ask(&d, code, "POST /v1/look/token", NULL), 200);
	assert_int_equal(ask(&d, code, "POST /v1/look/token", NULL), 401);
	assert_non_null(strstr(d.text, "aquifer dashboard"));
	get_code(&d, TOKEN_ADMIN, second);
	pass(&d, 60);
	assert_int_equal(ask(&d, second, "POST /v1/look/token", NULL), 401);
	desk_end(&d);
}

static void a_session_ends_with_what_it_came_from(void **state)
{
	char first[80], second[80], third[80];
	struct desk d;

	desk_make(&d);
	make_tenant(&d, "mine", TOKEN_TENANT);
	make_tenant(&d, "theirs", TOKEN_OTHER);
	look(&d, TOKEN_TENANT, first);
	look(&d, TOKEN_OTHER, second);
	look(&d, TOKEN_ADMIN, third);
	assert_int_equal(see(&d, first), 200);
	assert_int_equal(
		ask(&d, TOKEN_ADMIN, "DELETE /v1/tenants/mine/token", NULL),
		204);
	assert_int_equal(see(&d, first), 401);
	assert_int_equal(
		ask(&d, TOKEN_ADMIN, "DELETE /v1/tenants/theirs", NULL), 204);
	assert_int_equal(see(&d, second), 401);
	assert_int_equal(see(&d, third), 200);
	pass(&d, 30);
	d.wall_s += CD_LOOK_S - 31;
	cd_core_tick(d.core, d.wall_s);
	assert_int_equal(see(&d, third), 200);
	pass(&d, 1);
	assert_int_equal(see(&d, third), 401);
	assert_int_equal(cd_core_page_port(d.core), 0);
	desk_end(&d);
}

static void a_session_outlives_the_controller(void **state)
{
	char session[80];
	struct desk d;

	desk_make(&d);
	make_tenant(&d, "mine", TOKEN_TENANT);
	look(&d, TOKEN_TENANT, session);
	cd_core_destroy(d.core);
	start(&d);
	assert_int_equal(read_rows(&d), 0);
	assert_int_equal(cd_core_page_port(d.core), PORT);
	assert_int_equal(see(&d, session), 200);
	assert_non_null(strstr(d.text, "\"sees\":\"mine\""));
	desk_end(&d);
}

static void one_token_has_few_sessions(void **state)
{
	char session[CD_LOOKS_EACH + 1][80], other[80];
	struct desk d;

	desk_make(&d);
	make_tenant(&d, "mine", TOKEN_TENANT);
	look(&d, TOKEN_ADMIN, other);
	for (unsigned i = 0; i <= CD_LOOKS_EACH; i++) {
		look(&d, TOKEN_TENANT, session[i]);
		pass(&d, 1);
	}
	assert_int_equal(see(&d, session[0]), 401);
	for (unsigned i = 1; i <= CD_LOOKS_EACH; i++)
		assert_int_equal(see(&d, session[i]), 200);
	assert_int_equal(see(&d, other), 200);
	desk_end(&d);
}

static void rows_that_are_none_spoil_the_ledger(void **state)
{
	static const struct {
		const char *key, *value;
	} rows[] = {
		{"x", "{\"by\":\"" TOKEN_OTHER
		      "\",\"until\":9,\"at\":\"c0\",\"port\":1}"},
		{TOKEN_OTHER, "{\"by\":\"x\",\"until\":9,\"at\":\"c0\","
			      "\"port\":1}"},
		{TOKEN_OTHER, "{\"by\":\"" TOKEN_OTHER
			      "\",\"until\":0,\"at\":\"c0\",\"port\":1}"},
		{TOKEN_OTHER,
		 "{\"by\":\"" TOKEN_OTHER "\",\"until\":9,\"port\":1}"},
		{TOKEN_OTHER,
		 "{\"by\":\"" TOKEN_OTHER "\",\"until\":9,\"at\":\"" TOKEN_OTHER
		 "\",\"port\":1}"},
		{TOKEN_OTHER, "{\"by\":\"" TOKEN_OTHER
			      "\",\"until\":9,\"at\":\"c0\",\"port\":65536}"},
		{TOKEN_OTHER, "{}"},
	};
	struct desk d;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct ledger_change change = {"look", rows[i].key,
						     rows[i].value};

		desk_make(&d);
		assert_int_equal(ledger_commit(d.ledger, cd_core_term(d.core),
					       &change, 1),
				 0);
		assert_int_equal(read_rows(&d), -EBADMSG);
		desk_end(&d);
	}
}

/* ---- what is shown --------------------------------------------------------
 */

#define INCARNATION "0000000000000001"

/* A node with names of two tenants, one of them made of HTML. */
static void join_and_beat(struct desk *d)
{
	char body[600];

	assert_int_equal(
		ask(d, TOKEN_NODE, "POST /v1/nodes",
		    "{\"name\":\"m0\",\"kind\":\"memory\",\"address\":\"a\","
		    "\"incarnation\":\"" INCARNATION "\",\"size\":4194304}"),
		200);
	snprintf(body, sizeof(body),
		 "{\"incarnation\":\"" INCARNATION
		 "\",\"epoch\":%lld,\"used\":3000,\"regions\":3,\"names\":["
		 "{\"tenant\":\"mine\",\"name\":\"<b>bold</b>\",\"size\":1000},"
		 "{\"tenant\":\"theirs\",\"name\":\"secret\",\"size\":2000}],"
		 "\"names_complete\":true,\"shares\":[{\"tenant\":\"mine\","
		 "\"used\":1000,\"regions\":1},{\"tenant\":\"theirs\","
		 "\"used\":2000,\"regions\":2}]}",
		 (long long)json_integer_value(
			 json_object_get(d->answer, "epoch")));
	assert_int_equal(ask(d, TOKEN_NODE, "POST /v1/nodes/m0/beat", body),
			 200);
}

static void a_tenant_sees_its_own_only(void **state)
{
	char all[80], own[80];
	struct desk d;

	desk_make(&d);
	make_tenant(&d, "mine", TOKEN_TENANT);
	make_tenant(&d, "theirs", TOKEN_OTHER);
	join_and_beat(&d);
	pass(&d, 1);
	look(&d, TOKEN_ADMIN, all);
	look(&d, TOKEN_TENANT, own);
	assert_int_equal(see(&d, all), 200);
	assert_non_null(strstr(d.text, "secret"));
	assert_non_null(strstr(d.text, "<b>bold</b>"));
	assert_non_null(strstr(d.text, "\"size\":4194304"));
	assert_int_equal(see(&d, own), 200);
	assert_non_null(strstr(d.text, "<b>bold</b>"));
	assert_non_null(strstr(d.text, "\"used\":1000"));
	assert_null(strstr(d.text, "theirs"));
	assert_null(strstr(d.text, "secret"));
	assert_null(strstr(d.text, "3000"));
	assert_null(strstr(d.text, "4194304"));
	/* Also where the machine's own programs see more. */
	assert_int_equal(ask_from(&d, true, own, "GET /v1/overview", NULL),
			 200);
	assert_null(strstr(d.text, "theirs"));
	assert_int_equal(ask(&d, all, "GET /v1/history/used/1", NULL), 200);
	assert_non_null(strstr(d.text, "\"values\":[3000]"));
	assert_int_equal(ask(&d, own, "GET /v1/history/used/1", NULL), 200);
	assert_non_null(strstr(d.text, "\"values\":[1000]"));
	assert_int_equal(ask(&d, own, "GET /v1/history/capacity/1", NULL), 200);
	assert_non_null(strstr(d.text, "\"values\":[1048576]"));
	desk_end(&d);
}

/* Names of jobs with the state of their leases, which run out. */
static void jobs_are_shown_to_their_owner(void **state)
{
	char all[80], own[80];
	struct desk d;

	(void)state;
	desk_make(&d);
	make_tenant(&d, "mine", TOKEN_TENANT);
	make_tenant(&d, "theirs", TOKEN_OTHER);
	assert_int_equal(
		ask(&d, TOKEN_TENANT, "POST /v1/jobs",
		    "{\"name\":\"j\",\"plan\":{\"a\":[],\"b\":[\"a\"]},"
		    "\"lease_ms\":2000}"),
		201);
	assert_int_equal(ask(&d, TOKEN_OTHER, "POST /v1/ns/hidden/f",
			     "{\"kind\":\"file\",\"make_parents\":true}"),
			 201);
	pass(&d, 1);
	look(&d, TOKEN_ADMIN, all);
	look(&d, TOKEN_TENANT, own);
	assert_int_equal(see(&d, own), 200);
	assert_int_equal(json_array_size(json_object_get(d.answer, "ns")), 3);
	assert_non_null(strstr(d.text, "\"path\":\"/j/a/b\""));
	assert_non_null(strstr(d.text, "\"lease\":\"live\""));
	assert_non_null(strstr(d.text, "\"left_ms\":"));
	assert_null(strstr(d.text, "hidden"));
	assert_int_equal(see(&d, all), 200);
	assert_int_equal(json_array_size(json_object_get(d.answer, "ns")), 5);
	assert_non_null(strstr(d.text, "\"path\":\"/hidden/f\""));
	assert_non_null(strstr(d.text, "\"blocks\":0"));
	/* Ticks are late here: each counts as half a second. */
	pass(&d, 4);
	assert_int_equal(see(&d, own), 200);
	assert_non_null(strstr(d.text, "\"lease\":\"grace\""));
	pass(&d, 4);
	assert_int_equal(see(&d, own), 200);
	assert_int_equal(json_array_size(json_object_get(d.answer, "ns")), 0);
	/* A lease that is shortened may be over at once, which the answer was
	 * the first to see; then no tick dropped it. */
	assert_int_equal(ask(&d, TOKEN_TENANT, "POST /v1/ns/short",
			     "{\"kind\":\"folder\"}"),
			 201);
	pass(&d, 4);
	assert_int_equal(ask(&d, TOKEN_TENANT, "PATCH /v1/ns/short",
			     "{\"lease_ms\":500}"),
			 200);
	assert_non_null(strstr(d.text, "\"state\":\"expired\""));
	pass(&d, 1);
	assert_int_equal(see(&d, own), 200);
	assert_int_equal(json_array_size(json_object_get(d.answer, "ns")), 0);
	desk_end(&d);
}

static void history_has_gaps_and_steps(void **state)
{
	struct desk d;

	desk_make(&d);
	make_tenant(&d, "mine", TOKEN_TENANT);
	make_tenant(&d, "theirs", TOKEN_OTHER);
	join_and_beat(&d);
	pass(&d, 2);
	d.wall_s += 3; /* the controller did not run */
	pass(&d, 1);
	assert_int_equal(ask(&d, TOKEN_ADMIN, "GET /v1/history/used/6", NULL),
			 200);
	assert_non_null(
		strstr(d.text, "\"values\":[3000,3000,null,null,null,3000]"));
	assert_non_null(strstr(d.text, "\"step_s\":1"));
	/* The node is down after ten seconds, and takes its memory along; the
	 * step of ten seconds has the largest value. */
	pass(&d, 310);
	assert_int_equal(ask(&d, TOKEN_ADMIN, "GET /v1/history/used/300", NULL),
			 200);
	assert_null(strstr(d.text, "3000"));
	assert_int_equal(json_array_size(json_object_get(d.answer, "values")),
			 300);
	assert_int_equal(ask(&d, TOKEN_ADMIN, "GET /v1/history/used/301", NULL),
			 200);
	assert_non_null(strstr(d.text, "3000"));
	assert_non_null(strstr(d.text, "\"step_s\":10"));
	assert_int_equal(
		ask(&d, TOKEN_ADMIN, "GET /v1/history/used/86400", NULL), 200);
	assert_non_null(strstr(d.text, "\"step_s\":300"));
	assert_int_equal(json_array_size(json_object_get(d.answer, "values")),
			 288);
	/* Of a tenant that was removed nothing is left for the next one. */
	assert_int_equal(ask(&d, TOKEN_ADMIN, "DELETE /v1/tenants/mine", NULL),
			 204);
	pass(&d, 1);
	make_tenant(&d, "mine", TOKEN_TENANT);
	pass(&d, 1);
	assert_int_equal(ask(&d, TOKEN_TENANT, "GET /v1/history/used/3", NULL),
			 200);
	assert_non_null(strstr(d.text, "\"values\":[null,null,0]"));
	desk_end(&d);
}

static void events_tell_what_happened(void **state)
{
	struct desk d;

	desk_make(&d);
	join_and_beat(&d);
	assert_int_equal(see(&d, TOKEN_ADMIN), 200);
	assert_non_null(strstr(d.text, "joins from a"));
	assert_non_null(strstr(d.text, "leads in term 1"));
	pass(&d, 4);
	assert_int_equal(see(&d, TOKEN_ADMIN), 200);
	assert_non_null(strstr(d.text, "is suspect"));
	assert_null(strstr(d.text, "is down"));
	pass(&d, 7);
	assert_int_equal(see(&d, TOKEN_ADMIN), 200);
	assert_non_null(strstr(d.text, "is down"));
	/* A change that was lost has not happened. */
	d.fails = true;
	assert_int_equal(ask(&d, TOKEN_ADMIN, "POST /v1/tenants",
			     "{\"name\":\"ghost\"}"),
			 503);
	assert_int_equal(read_rows(&d), 0);
	assert_int_equal(see(&d, TOKEN_ADMIN), 200);
	assert_null(strstr(d.text, "ghost"));
	assert_non_null(strstr(d.text, "does not lead any more"));
	for (unsigned i = 0; i < CD_EVENTS_MAX; i++)
		assert_int_equal(ask(&d, TOKEN_ADMIN, "POST /v1/nodes/m0/drain",
				     "{\"drain\":true}"),
				 200);
	assert_int_equal(see(&d, TOKEN_ADMIN), 200);
	assert_int_equal(json_array_size(json_object_get(d.answer, "events")),
			 CD_EVENTS_MAX);
	assert_null(strstr(d.text, "joins from a"));
	desk_end(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_may_only_look),
		cmocka_unit_test(a_code_works_once_and_for_a_minute),
		cmocka_unit_test(a_session_ends_with_what_it_came_from),
		cmocka_unit_test(a_session_outlives_the_controller),
		cmocka_unit_test(one_token_has_few_sessions),
		cmocka_unit_test(rows_that_are_none_spoil_the_ledger),
		cmocka_unit_test(a_tenant_sees_its_own_only),
		cmocka_unit_test(jobs_are_shown_to_their_owner),
		cmocka_unit_test(history_has_gaps_and_steps),
		cmocka_unit_test(events_tell_what_happened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
