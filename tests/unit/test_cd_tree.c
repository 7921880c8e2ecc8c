/* SPDX-License-Identifier: Apache-2.0 */
/* Names of elastic memory: plans, paths, leases, and what becomes of them when
 * another one leads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "cd_bed.h"

#define A_JOB "{\"name\":\"j\",\"lease_ms\":1000,\"plan\":"
/* The paper's example. */
#define PAPER                                                                  \
	A_JOB "{\"t1\":[],\"t2\":[],\"t4\":[],\"t3\":[\"t1\",\"t2\"],"         \
	      "\"t5\":[\"t4\"],\"t6\":[\"t4\"],\"t7\":[\"t3\",\"t5\",\"t6\"]," \
	      "\"t8\":[\"t7\"],\"t9\":[\"t8\"]}}"

static unsigned mine(struct bed *b, const char *line, const char *body)
{
	return ask(b, TOKEN_TENANT, line, body);
}

static void begin(struct bed *b)
{
	bed_make(b);
	make_tenant(b, 0);
	pass(b, 0);
}

/* As the daemon ticks. */
static void wait_ms(struct bed *b, unsigned ms)
{
	for (; ms >= 250; ms -= 250)
		pass(b, 250);
	if (ms)
		pass(b, ms);
}

static const char *lease(struct bed *b, const char *path)
{
	char line[200];

	snprintf(line, sizeof(line), "GET /v1/ns%s", path);
	if (mine(b, line, NULL) != 200)
		return "gone";
	return json_string_value(
		json_object_get(json_object_get(b->answer, "lease"), "state"));
}

static bool is_there(struct bed *b, const char *path)
{
	char line[200];
	unsigned status;

	snprintf(line, sizeof(line), "GET /v1/ns%s", path);
	status = mine(b, line, NULL);
	assert_true(status == 200 || status == 404);
	return status == 200;
}

static void fail_over(struct bed *b)
{
	bed_lead(b, "c0");
	commit(b);
}

/* ---- plans and paths ---------------------------------------------------- */

static void bad_plans_are_refused_in_words(void **state)
{
	static const struct {
		const char *body;
		unsigned status;
		const char *words;
	} rows[] = {
		{A_JOB "{\"a\":[\"b\"],\"b\":[\"a\"]}}", 400, "cycle"},
		{A_JOB "{\"a\":[\"a\"]}}", 400, "cycle"},
		{A_JOB "{\"r\":[],\"a\":[\"r\",\"b\"],\"b\":[\"a\"]}}", 400,
		 "cycle"},
		{A_JOB "{\"a\":[\"x\"]}}", 400, "parent 'x' of task 'a'"},
		{A_JOB "{\"a\":[],\"b\":[\"a\",\"a\"]}}", 400, "twice"},
		{A_JOB "{\"a\":[7]}}", 400, "no text"},
		{A_JOB "{\"a\":\"b\"}}", 400, "no list of parents"},
		{A_JOB "[]}", 400, "\"plan\" is an object"},
		{A_JOB "{\"..\":[]}}", 400, "no name"},
		{A_JOB "{\".a\":[]}}", 400, "no name"},
		{A_JOB "{\"a/b\":[]}}", 400, "no name"},
		{A_JOB "{\"\":[]}}", 400, "no name"},
		{A_JOB "{\"a\\u0001\":[]}}", 400, "no name"},
		{A_JOB "{\"a b\":[]}}", 400, "no name"},
		{A_JOB "{\"a\":[],\"a\":[]}}", 400, ""},
		{A_JOB "{\"" T64("a") "\":[]}}", 400, "no name"},
		{"{\"name\":\"a/b\"}", 400, "\"name\""},
		{"{\"name\":\"..\"}", 400, "\"name\""},
		{"{\"name\":\"\"}", 400, "\"name\""},
		{"{\"name\":7}", 400, "\"name\""},
		{"{}", 400, "\"name\""},
		{"{\"name\":\"j\",\"lease_ms\":99}", 400, "\"lease_ms\""},
		{"{\"name\":\"j\",\"lease_ms\":86400001}", 400, "\"lease_ms\""},
		{"{\"name\":\"j\",\"lease_ms\":\"1\"}", 400, "\"lease_ms\""},
		{"{\"name\":\"j\",\"on_expiry\":\"flush\"}", 400, "no vault"},
		{"{\"name\":\"j\",\"on_expiry\":\"sell\"}", 400,
		 "flush, drop or keep"},
		{"{\"name\":\"j\",\"colour\":1}", 400, "colour"},
	};
	struct bed b;

	(void)state;
	begin(&b);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(mine(&b, "POST /v1/jobs", rows[i].body),
				 rows[i].status);
		assert_non_null(strstr(words(&b), rows[i].words));
		assert_false(is_there(&b, "/j"));
	}
	/* Nothing of them is left. */
	assert_int_equal(mine(&b, "POST /v1/jobs", PAPER), 201);
	bed_end(&b);
}

/* A chain, so that all edges are there, too. */
static char *plan_of(unsigned tasks)
{
	char *text = malloc(64 + tasks * 40), *at = text;

	assert_non_null(text);
	at += sprintf(at, A_JOB "{\"t0\":[]");
	for (unsigned i = 1; i < tasks; i++)
		at += sprintf(at, ",\"t%u\":[\"t%u\"]", i, i - 1);
	(void)sprintf(at, "}}");
	return text;
}

static void ten_thousand_tasks_and_not_one_more(void **state)
{
	char *fits = plan_of(10000), *more = plan_of(10001);
	struct bed b;

	(void)state;
	begin(&b);
	assert_int_equal(mine(&b, "POST /v1/jobs", more), 413);
	assert_non_null(strstr(words(&b), "10000 tasks"));
	assert_int_equal(mine(&b, "POST /v1/jobs", fits), 201);
	assert_int_equal(number(&b, "tasks"), 10000);
	/* Walks may begin at any task, or nobody could name the last one. */
	assert_true(is_there(&b, "/j/t0/t1/t2"));
	assert_true(is_there(&b, "/j/t9998/t9999"));
	fail_over(&b);
	assert_true(is_there(&b, "/j/t9998/t9999"));
	assert_int_equal(mine(&b, "DELETE /v1/ns/j", "{\"recursive\":true}"),
			 204);
	wait_ms(&b, 20000);
	assert_int_equal(mine(&b, "POST /v1/jobs", fits), 201);
	free(fits);
	free(more);
	bed_end(&b);
}

/* The names of a rack are bounded, so one tenant leaves most of them to others:
 * of 200,000 tasks and folders it has a quarter. */
static void a_tenant_has_its_share_of_names(void **state)
{
	char *plan = plan_of(10000), *name = strstr(plan, "\"j\"") + 1;
	struct bed b;

	(void)state;
	begin(&b);
	for (*name = 'a'; *name < 'e'; (*name)++)
		assert_int_equal(mine(&b, "POST /v1/jobs", plan), 201);
	assert_int_equal(mine(&b, "POST /v1/jobs", plan), 429);
	assert_non_null(strstr(words(&b), "of 50000"));
	assert_false(is_there(&b, "/e"));
	/* Less still fits, also where another one leads. */
	fail_over(&b);
	assert_int_equal(mine(&b, "POST /v1/jobs", plan), 429);
	assert_int_equal(mine(&b, "POST /v1/ns/f", "{\"kind\":\"folder\"}"),
			 201);
	assert_int_equal(mine(&b, "DELETE /v1/ns/a", "{\"recursive\":true}"),
			 204);
	assert_int_equal(mine(&b, "POST /v1/jobs", plan), 201);
	free(plan);
	bed_end(&b);
}

static void every_walk_is_an_address(void **state)
{
	static const char *const good[] = {
		"/j",	       "/j/",	       "/j/t1/t3/t7",
		"/j/t2/t3/t7", "/j/t4/t5/t7",  "/j/t4/t6/t7/t8/t9",
		"/j/t7",       "/j/t5/t7/out", "/j/t2/t3/t7/out"};
	static const char *const bad[] = {"/j/t1/t5", "/j/t7/t3",    "/j/t1/t7",
					  "/j/t9/t1", "/j/t7/out/x", "/k",
					  "/j/none"};
	struct bed b;
	uint64_t id;

	(void)state;
	begin(&b);
	assert_int_equal(mine(&b, "POST /v1/jobs", PAPER), 201);
	assert_int_equal(
		mine(&b, "POST /v1/ns/j/t4/t5/t7/out", "{\"kind\":\"file\"}"),
		201);
	id = number(&b, "id");
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(is_there(&b, good[i]));
	assert_int_equal(number(&b, "id"), id);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(is_there(&b, bad[i]));
	assert_int_equal(
		mine(&b, "POST /v1/ns/j/t2/t3/t7/out", "{\"kind\":\"queue\"}"),
		409);
	fail_over(&b);
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(is_there(&b, good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(is_there(&b, bad[i]));
	bed_end(&b);
}

/* Each request on a tree of folders and a job; and its words. */
static void bad_requests_change_nothing(void **state)
{
	static const struct {
		const char *line, *body;
		unsigned status;
		const char *words;
	} rows[] = {
		{"POST /v1/ns/", "{\"kind\":\"folder\"}", 400, "nothing"},
		{"POST /v1/ns/f/..", "{\"kind\":\"folder\"}", 400, "letters"},
		{"POST /v1/ns/f//x", "{\"kind\":\"folder\"}", 400, "letters"},
		{"POST /v1/ns/f/a%20b", "{\"kind\":\"file\"}", 400, "letters"},
		{"POST /v1/ns/f/\x01", "{\"kind\":\"file\"}", 400, "letters"},
		{"POST /v1/ns/f/" T64("n"), "{\"kind\":\"file\"}", 400,
		 "letters"},
		{"POST /v1/ns/f/g", "{\"kind\":\"folder\"}", 409, "already"},
		{"POST /v1/ns/f/o/x", "{\"kind\":\"file\"}", 400, "is a file"},
		{"POST /v1/ns/f/x", "{\"kind\":\"task\"}", 400, "no tasks"},
		{"POST /v1/ns/j/x", "{\"kind\":\"folder\"}", 400, "tasks"},
		{"POST /v1/ns/x", "{\"kind\":\"file\"}", 400, "/FOLDER/x"},
		{"POST /v1/ns/f/x", "{\"kind\":\"heap\"}", 400, "\"kind\""},
		{"POST /v1/ns/f/x", "{}", 400, "\"kind\""},
		{"POST /v1/ns/f/x", "{\"kind\":\"file\",\"bound\":3}", 400,
		 "only a queue"},
		{"POST /v1/ns/f/x", "{\"kind\":\"queue\",\"bound\":0}", 400,
		 "\"bound\""},
		{"POST /v1/ns/f/x", "{\"kind\":\"file\",\"block_bytes\":65535}",
		 400, "\"block_bytes\""},
		{"POST /v1/ns/f/x", "{\"kind\":\"file\",\"block_bytes\":65537}",
		 400, "power of two"},
		{"POST /v1/ns/f/x",
		 "{\"kind\":\"file\",\"block_bytes\":2147483648}", 400,
		 "\"block_bytes\""},
		{"POST /v1/ns/f/x", "{\"kind\":\"folder\",\"lease_ms\":1000}",
		 400, "root"},
		{"POST /v1/ns/f/x", "{\"kind\":\"file\",\"parents\":[]}", 400,
		 "only a task"},
		{"POST /v1/ns/j/x", "{\"kind\":\"task\",\"parents\":[\"q\"]}",
		 400, "no task 'q'"},
		{"POST /v1/ns/j/t1/t2", "{\"kind\":\"task\"}", 409, "already"},
		{"POST /v1/ns/none/x", "{\"kind\":\"file\"}", 404, "/none/x"},
		{"PATCH /v1/ns/f/g", "{}", 400, "\"to\""},
		{"PATCH /v1/ns/f/g", "{\"to\":\"/f/o\"}", 409, "already"},
		{"PATCH /v1/ns/f/g", "{\"to\":\"/f/g/h/i\"}", 400, "itself"},
		{"PATCH /v1/ns/f/g", "{\"to\":\"/e/g\"}", 400, "within"},
		{"PATCH /v1/ns/f/o", "{\"to\":\"/o\"}", 400, "/FOLDER/o"},
		{"PATCH /v1/ns/j/t1", "{\"to\":\"/j/x\"}", 405, "keep"},
		{"PATCH /v1/ns/f/g", "{\"lease_ms\":1000}", 400, "root"},
		{"DELETE /v1/ns/f", NULL, 409, "not empty"},
		{"DELETE /v1/ns/f/none", NULL, 404, "/f/none"},
		{"DELETE /v1/ns/", NULL, 400, "nothing"},
		{"GET /v1/map/f/g", NULL, 400, "is a folder"},
		{"GET /v1/map/f/none", NULL, 404, "/f/none"},
		{"POST /v1/blocks/f/o", "{\"after\":\"1\"}", 400, "\"after\""},
		{"POST /v1/blocks/f/o", "{\"after\":-2}", 400, "\"after\""},
		{"POST /v1/blocks/f/o", "{\"most\":0}", 400, "\"most\""},
		{"POST /v1/blocks/f/o", "{}", 507, "no node"},
		{"POST /v1/renew", "{\"paths\":\"/f\"}", 400, "\"paths\""},
		{"POST /v1/renew", "{\"paths\":[1]}", 400, "\"paths\""},
	};
	struct bed b;
	json_t *before, *after;

	(void)state;
	begin(&b);
	assert_int_equal(mine(&b, "POST /v1/jobs", PAPER), 201);
	assert_int_equal(mine(&b, "POST /v1/ns/e", "{\"kind\":\"folder\"}"),
			 201);
	assert_int_equal(mine(&b, "POST /v1/ns/f/g/h",
			      "{\"kind\":\"folder\",\"make_parents\":true}"),
			 201);
	assert_int_equal(mine(&b, "POST /v1/ns/f/o", "{\"kind\":\"file\"}"),
			 201);
	assert_int_equal(mine(&b, "GET /v1/tree", NULL), 200);
	before = json_incref(json_object_get(b.answer, "names"));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(mine(&b, rows[i].line, rows[i].body),
				 rows[i].status);
		assert_non_null(strstr(words(&b), rows[i].words));
	}
	assert_int_equal(mine(&b, "GET /v1/tree", NULL), 200);
	after = json_object_get(b.answer, "names");
	assert_true(json_equal(before, after));
	json_decref(before);
	bed_end(&b);
}

static void names_move_and_go(void **state)
{
	struct bed b;
	uint64_t id;

	(void)state;
	begin(&b);
	assert_int_equal(mine(&b, "POST /v1/ns/f/g/h",
			      "{\"kind\":\"folder\",\"make_parents\":true}"),
			 201);
	assert_int_equal(
		mine(&b, "POST /v1/ns/f/g/h/part", "{\"kind\":\"file\"}"), 201);
	id = number(&b, "id");
	assert_int_equal(mine(&b, "POST /v1/ns/f/k", "{\"kind\":\"folder\"}"),
			 201);
	assert_int_equal(mine(&b, "PATCH /v1/ns/f/g", "{\"to\":\"/f/k/gg\"}"),
			 200);
	assert_int_equal(mine(&b, "PATCH /v1/ns/f", "{\"to\":\"/r\"}"), 200);
	assert_int_equal(
		mine(&b, "PATCH /v1/ns/r/k/gg/h/part", "{\"to\":\"/r/done\"}"),
		200);
	fail_over(&b);
	assert_false(is_there(&b, "/f"));
	assert_false(is_there(&b, "/r/g"));
	assert_false(is_there(&b, "/r/k/gg/h/part"));
	assert_true(is_there(&b, "/r/k/gg/h"));
	assert_true(is_there(&b, "/r/done"));
	assert_int_equal(number(&b, "id"), id);
	assert_int_equal(mine(&b, "DELETE /v1/ns/r/k", "{\"recursive\":true}"),
			 204);
	assert_false(is_there(&b, "/r/k/gg/h"));
	assert_int_equal(mine(&b, "DELETE /v1/ns/r/done", NULL), 204);
	assert_int_equal(mine(&b, "DELETE /v1/ns/r", NULL), 204);
	fail_over(&b);
	assert_false(is_there(&b, "/r"));
	bed_end(&b);
}

/* What is reached by another way stays. */
static void a_task_goes_with_what_only_it_leads_to(void **state)
{
	struct bed b;

	(void)state;
	begin(&b);
	assert_int_equal(mine(&b, "POST /v1/jobs", PAPER), 201);
	assert_int_equal(mine(&b, "DELETE /v1/ns/j/t4", "{\"recursive\":true}"),
			 204);
	for (int i = 0; i < 2; i++) {
		assert_false(is_there(&b, "/j/t4"));
		assert_false(is_there(&b, "/j/t5"));
		assert_true(is_there(&b, "/j/t1/t3/t7/t8/t9"));
		fail_over(&b);
	}
	assert_int_equal(mine(&b, "DELETE /v1/ns/j/t3", "{\"recursive\":true}"),
			 204);
	assert_false(is_there(&b, "/j/t9"));
	assert_true(is_there(&b, "/j/t1"));
	bed_end(&b);
}

static void tenants_see_their_own_names_only(void **state)
{
	struct bed b;

	(void)state;
	begin(&b);
	assert_int_equal(mine(&b, "POST /v1/jobs", PAPER), 201);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/tenants",
			     "{\"name\":\"u\",\"token\":\"" TOKEN_OTHER "\"}"),
			 201);
	assert_int_equal(ask(&b, TOKEN_OTHER, "GET /v1/ns/j", NULL), 404);
	assert_int_equal(ask(&b, TOKEN_OTHER, "GET /v1/jobs", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(b.answer, "jobs")), 0);
	assert_int_equal(ask(&b, TOKEN_OTHER, "POST /v1/jobs", PAPER), 201);
	assert_int_equal(
		ask(&b, TOKEN_OTHER, "DELETE /v1/ns/j", "{\"recursive\":true}"),
		204);
	assert_true(is_there(&b, "/j"));
	/* Nobody's names: not the administrator's, not a node's. */
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/ns/j", NULL), 403);
	assert_int_equal(ask(&b, TOKEN_NODE, "GET /v1/map/j/x", NULL), 403);
	assert_int_equal(ask(&b, NULL, "GET /v1/ns/j", NULL), 401);
	/* A tenant takes its names along. */
	assert_int_equal(ask(&b, TOKEN_ADMIN, "DELETE /v1/tenants/t", NULL),
			 204);
	make_tenant(&b, 0);
	assert_false(is_there(&b, "/j"));
	fail_over(&b);
	assert_false(is_there(&b, "/j"));
	bed_end(&b);
}

static void only_a_tenants_token_opens_names(void **state)
{
	static const struct {
		const char *line, *body;
		unsigned tenant;
	} rows[] = {
		{"GET /v1/jobs", NULL, 200},
		{"POST /v1/jobs", "{\"name\":\"k\"}", 201},
		{"GET /v1/ns", NULL, 200},
		{"GET /v1/ns/k", NULL, 200},
		{"GET /v1/tree", NULL, 200},
		{"GET /v1/tree/k", NULL, 200},
		{"POST /v1/ns/k/o", "{\"kind\":\"file\"}", 201},
		{"PATCH /v1/ns/k/o", "{\"to\":\"/k/p\"}", 200},
		{"GET /v1/map/k/p", NULL, 200},
		{"POST /v1/blocks/k/p", "{}", 507},
		{"POST /v1/renew", "{\"paths\":[\"/k\"]}", 200},
		{"DELETE /v1/ns/k/p", NULL, 204},
	};
	static const struct {
		const char *token;
		unsigned status;
	} others[] = {
		{NULL, 401},
		{TOKEN_STRANGER, 401},
		{"no token at all", 401},
		{TOKEN_NODE, 403},
		{TOKEN_ADMIN, 403},
	};
	struct bed b;

	(void)state;
	begin(&b);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (size_t k = 0; k < ARRAY_LEN(others); k++)
			assert_int_equal(ask(&b, others[k].token, rows[i].line,
					     rows[i].body),
					 others[k].status);
		assert_int_equal(mine(&b, rows[i].line, rows[i].body),
				 rows[i].tenant);
	}
	/* Without a token over the machine's own socket: nobody's names. */
	assert_int_equal(ask_from(&b, true, NULL, "GET /v1/ns", NULL), 403);
	bed_end(&b);
}

/* ---- leases ------------------------------------------------------------- */

static void renewing_reaches_parents_and_descendants(void **state)
{
	static const struct {
		const char *path, *lease;
	} rows[] = {
		{"/j/t3", "live"},  {"/j/t5", "live"},	{"/j/t6", "live"},
		{"/j/t7", "live"},  {"/j/t8", "live"},	{"/j/t9", "live"},
		{"/j/t1", "grace"}, {"/j/t2", "grace"}, {"/j/t4", "grace"},
	};
	struct bed b;

	(void)state;
	begin(&b);
	assert_int_equal(mine(&b, "POST /v1/jobs", PAPER), 201);
	wait_ms(&b, 750);
	assert_int_equal(mine(&b, "POST /v1/renew",
			      "{\"paths\":[\"/j/t4/t5/t7\",\"/no\"]}"),
			 200);
	assert_int_equal(number(&b, "period_ms"), 1000);
	assert_int_equal(json_array_size(json_object_get(b.answer, "unknown")),
			 1);
	wait_ms(&b, 500);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(lease(&b, rows[i].path), rows[i].lease);
	bed_end(&b);
}

static void a_lease_has_its_period_and_its_grace(void **state)
{
	struct bed b;

	(void)state;
	begin(&b);
	assert_int_equal(mine(&b, "POST /v1/jobs", PAPER), 201);
	assert_int_equal(mine(&b, "POST /v1/ns/j/t1/o", "{\"kind\":\"file\"}"),
			 201);
	wait_ms(&b, 750);
	assert_string_equal(lease(&b, "/j/t1"), "live");
	wait_ms(&b, 1000);
	assert_string_equal(lease(&b, "/j/t1"), "grace");
	assert_true(is_there(&b, "/j/t1/o"));
	/* One of them lives on, so the job does. */
	assert_int_equal(mine(&b, "POST /v1/renew", "{\"paths\":[\"/j/t9\"]}"),
			 200);
	wait_ms(&b, 500);
	assert_string_equal(lease(&b, "/j/t1"), "expired");
	assert_false(is_there(&b, "/j/t1/o"));
	assert_string_equal(lease(&b, "/j/t9"), "live");
	/* Its name can be used again. */
	assert_int_equal(mine(&b, "POST /v1/renew", "{\"paths\":[\"/j/t1\"]}"),
			 200);
	assert_int_equal(json_array_size(json_object_get(b.answer, "expired")),
			 1);
	assert_string_equal(lease(&b, "/j/t1"), "live");
	wait_ms(&b, 2250);
	assert_string_equal(lease(&b, "/j"), "gone");
	fail_over(&b);
	assert_string_equal(lease(&b, "/j"), "gone");
	bed_end(&b);
}

static void a_new_leader_gives_the_full_period(void **state)
{
	struct bed b;

	(void)state;
	begin(&b);
	assert_int_equal(mine(&b, "POST /v1/jobs", PAPER), 201);
	for (int i = 0; i < 8; i++) {
		wait_ms(&b, 1750);
		fail_over(&b);
	}
	assert_true(is_there(&b, "/j/t1"));
	/* And the clock stands while nobody can be sure to lead. */
	cd_core_keep(b.core, 0);
	wait_ms(&b, 10000);
	cd_core_keep(b.core, UINT64_MAX);
	wait_ms(&b, 250);
	assert_true(is_there(&b, "/j/t1"));
	/* Nor does it run while the process is stopped. */
	b.clock_ns += 60000000000ull;
	wait_ms(&b, 250);
	assert_true(is_there(&b, "/j/t1"));
	wait_ms(&b, 2250);
	assert_false(is_there(&b, "/j"));
	bed_end(&b);
}

static void what_is_kept_has_no_end(void **state)
{
	struct bed b;

	(void)state;
	begin(&b);
	assert_int_equal(mine(&b, "POST /v1/ns/f",
			      "{\"kind\":\"folder\",\"lease_ms\":100,"
			      "\"on_expiry\":\"keep\"}"),
			 201);
	assert_int_equal(mine(&b, "POST /v1/ns/f/o", "{\"kind\":\"queue\"}"),
			 201);
	wait_ms(&b, 5000);
	assert_string_equal(lease(&b, "/f"), "kept");
	fail_over(&b);
	assert_true(is_there(&b, "/f/o"));
	assert_int_equal(mine(&b, "PATCH /v1/ns/f", "{\"on_expiry\":\"drop\"}"),
			 200);
	wait_ms(&b, 500);
	assert_false(is_there(&b, "/f"));
	bed_end(&b);
}

/* ---- failures ----------------------------------------------------------- */

static void a_plan_is_there_as_a_whole_or_not_at_all(void **state)
{
	char *plan = plan_of(500);
	struct bed b;

	(void)state;
	begin(&b);
	/* Each of its transactions fails once. */
	for (unsigned at = 0; at < 8; at++) {
		struct ctl_request q = {.method = CTL_POST,
					.path = "/v1/jobs",
					.token = TOKEN_TENANT,
					.body = plan,
					.body_bytes = strlen(plan)};
		struct ledger_change change[LEDGER_CHANGES_MAX];
		struct ctl_reply reply = {0};
		struct cd_held held;
		unsigned count, done = 0;
		bool fails = false;

		cd_core_handle(b.core, &q, &reply, &held);
		assert_int_equal(reply.status, 201);
		ctl_reply_release(&reply);
		while (!fails && (count = cd_core_batch(b.core, change))) {
			fails = done++ == at;
			if (!fails)
				assert_int_equal(
					ledger_commit(b.ledger,
						      cd_core_term(b.core),
						      change, count),
					0);
			cd_core_committed(b.core, fails ? -EIO : 0);
		}
		fail_over(&b);
		assert_int_equal(is_there(&b, "/j"), !fails);
		if (!fails)
			assert_int_equal(mine(&b, "DELETE /v1/ns/j",
					      "{\"recursive\":true}"),
					 204);
		wait_ms(&b, 1000);
	}
	free(plan);
	bed_end(&b);
}

static void damaged_rows_are_refused(void **state)
{
	static const struct {
		const char *kind, *key, *value;
	} rows[] = {
		{"rack", "ids", "{\"next\":0}"},
		{"rack", "other", "{}"},
		{"rack", "ticket-key-0000000001",
		 "{\"seed\":\"00\",\"made\":1}"},
		{"job", "t",
		 "{\"id\":9,\"plan\":true,\"lease_ms\":1000,"
		 "\"keep\":false}"},
		{"job", "t/..",
		 "{\"id\":9,\"plan\":true,\"lease_ms\":1000,"
		 "\"keep\":false}"},
		{"job", "t/a",
		 "{\"id\":9,\"plan\":1,\"lease_ms\":1000,"
		 "\"keep\":false}"},
		{"job", "t/a",
		 "{\"id\":9,\"plan\":true,\"lease_ms\":1,"
		 "\"keep\":false}"},
		{"prefix", "9", "{\"name\":\"a\",\"parents\":[1]}"},
		{"prefix", "0000000000000009",
		 "{\"name\":\"/\",\"parents\":[1]}"},
		{"prefix", "0000000000000009",
		 "{\"name\":\"a\",\"parents\":[]}"},
		{"prefix", "0000000000000009",
		 "{\"name\":\"a\",\"parents\":[\"b\"]}"},
		{"object", "x", "{\"prefix\":1,\"name\":\"o\"}"},
		{"block", "m0", "{}"},
		{"block", "m0/70000", "{}"},
		{"block", "m0/00001", "{\"generation\":1}"},
	};
	struct bed b;

	(void)state;
	begin(&b);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int err;

		cd_core_clear(b.core);
		err = cd_core_row(b.core, rows[i].kind, rows[i].key,
				  rows[i].value);
		if (!err)
			err = cd_core_ready(b.core, NULL, "a test");
		assert_int_equal(err, -EBADMSG);
	}
	fail_over(&b);
	bed_end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_plans_are_refused_in_words),
		cmocka_unit_test(ten_thousand_tasks_and_not_one_more),
		cmocka_unit_test(a_tenant_has_its_share_of_names),
		cmocka_unit_test(every_walk_is_an_address),
		cmocka_unit_test(bad_requests_change_nothing),
		cmocka_unit_test(names_move_and_go),
		cmocka_unit_test(a_task_goes_with_what_only_it_leads_to),
		cmocka_unit_test(tenants_see_their_own_names_only),
		cmocka_unit_test(only_a_tenants_token_opens_names),
		cmocka_unit_test(renewing_reaches_parents_and_descendants),
		cmocka_unit_test(a_lease_has_its_period_and_its_grace),
		cmocka_unit_test(a_new_leader_gives_the_full_period),
		cmocka_unit_test(what_is_kept_has_no_end),
		cmocka_unit_test(a_plan_is_there_as_a_whole_or_not_at_all),
		cmocka_unit_test(damaged_rows_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
