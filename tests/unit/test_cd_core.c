/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's core on a ledger in memory and a clock that only moves when
 * told to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cd_bed.h"

static void bad_words_name_the_field(void **state)
{
	static const struct {
		const char *line, *body, *says;
	} rows[] = {
		{"POST /v1/nodes",
		 "{\"name\":\"M\",\"kind\":\"memory\","
		 "\"address\":\"a\",\"incarnation\":\"" FIRST "\"}",
		 "\"name\""},
		{"POST /v1/nodes", "{\"name\":\"m\",\"kind\":\"toaster\"}",
		 "\"kind\""},
		{"POST /v1/nodes",
		 "{\"name\":\"m\",\"kind\":\"memory\","
		 "\"address\":\"a b\",\"incarnation\":"
		 "\"" FIRST "\"}",
		 "\"address\""},
		{"POST /v1/nodes",
		 "{\"name\":\"m\",\"kind\":\"memory\","
		 "\"address\":\"a\",\"incarnation\":\"1\"}",
		 "\"incarnation\""},
		{"POST /v1/nodes",
		 "{\"name\":\"m\",\"kind\":\"memory\","
		 "\"address\":\"a\",\"incarnation\":\"" FIRST "\",\"size\":-1}",
		 "size"},
		{"POST /v1/nodes",
		 "{\"name\":\"m\",\"kind\":\"memory\","
		 "\"address\":\"a\",\"incarnation\":\"" FIRST
		 "\",\"zone\":\"../x\"}",
		 "\"zone\""},
		{"POST /v1/nodes", "{\"name\":7}", "name"},
		{"POST /v1/nodes", "{\"nome\":\"m\"}", "nome"},
		{"POST /v1/nodes", "[]", "object"},
		{"POST /v1/nodes", "{", ""},
		{"POST /v1/tenants", "{\"name\":\"a/b\"}", "name"},
		{"POST /v1/tenants", "{\"name\":\"a\",\"quota\":\"1G\"}",
		 "quota"},
		{"POST /v1/tenants", "{\"name\":\"a\",\"token\":\"x\"}",
		 "\"token\""},
		{"POST /v1/tenants",
		 "{\"name\":\"a\",\"limits\":{\"apples\":1}}", "apples"},
		{"POST /v1/tenants",
		 "{\"name\":\"a\",\"limits\":{\"walks\":-1}}", "walks"},
		{"POST /v1/tenants", "{\"name\":\"a\",\"name\":\"b\"}", ""},
		{"POST /v1/place", "{\"size\":0}", "size"},
		{"POST /v1/place", "{\"size\":1,\"copies\":17}", "copies"},
		{"POST /v1/place", "{\"size\":1,\"policy\":\"x\"}", "policy"},
		{"POST /v1/tenants/t/tokens", "{\"ttl_s\":0}", "ttl_s"},
		{"PATCH /v1/tenants/t", "{}", "quota"},
	};
	struct bed b;

	bed_make(&b);
	make_tenant(&b, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(
			ask(&b, TOKEN_ADMIN, rows[i].line, rows[i].body), 400);
		if (!strstr(words(&b), rows[i].says))
			fail_msg("%s %s: %s", rows[i].line, rows[i].body,
				 words(&b));
	}
	bed_end(&b);
}

/* The sum of what nodes may use stays within the quota; what one does not use
 * another one gets. */
static void a_quota_is_shared(void **state)
{
	uint64_t e0, e1;
	struct bed b;

	bed_make(&b);
	make_tenant(&b, 100 * MIB);
	e0 = join(&b, "m0", FIRST);
	e1 = join(&b, "m1", FIRST);
	assert_int_equal(beat(&b, "m0", e0, 0, 0, 0, 40 * MIB),
			 40 * MIB + 60 * MIB / 8);
	assert_int_equal(beat(&b, "m1", e1, 0, 0, 0, 60 * MIB), 0);
	/* m0 is asked for what it does not use, and gives it back. */
	assert_int_equal(beat(&b, "m0", e0, 40 * MIB, 40 * MIB, 1, 0),
			 40 * MIB);
	assert_int_equal(beat(&b, "m1", e1, 0, 0, 0, 60 * MIB), 60 * MIB);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/tenants/t", NULL), 200);
	assert_int_equal(number(&b, "allowed"), 100 * MIB);
	assert_int_equal(number(&b, "used"), 40 * MIB);
	/* More than there is: refused at once, and told. */
	(void)beat(&b, "m0", e0, 40 * MIB, 40 * MIB, 1, 101 * MIB);
	assert_true(json_is_true(json_object_get(
		json_array_get(json_object_get(b.answer, "shares"), 0),
		"refused")));
	bed_end(&b);
}

/* Late and wrong reports do not make a node's allowance smaller than what it
 * may use. */
static void old_reports_lower_nothing(void **state)
{
	uint64_t e0, again;
	char body[200];
	struct bed b;

	bed_make(&b);
	make_tenant(&b, 800 * MIB);
	e0 = join(&b, "m0", FIRST);
	assert_int_equal(beat(&b, "m0", e0, 0, 0, 0, 8 * MIB),
			 8 * MIB + CD_STEP_BYTES);
	/* It has not heard of version 1 yet. */
	assert_int_equal(beat(&b, "m0", e0, 0, 0, 0, 0),
			 8 * MIB + CD_STEP_BYTES);
	assert_int_equal(beat(&b, "m0", e0, 8 * MIB, 20 * MIB, 1, 0), 20 * MIB);
	assert_int_equal(beat(&b, "m0", e0, 8 * MIB, 50 * MIB, 1, 0), 20 * MIB);
	/* A new run keeps the allowance, and old beats are not heard. */
	again = join(&b, "m0", SECOND);
	assert_true(again > e0);
	snprintf(body, sizeof(body),
		 "{\"incarnation\":\"" FIRST "\",\"epoch\":%llu,\"shares\":[]}",
		 (unsigned long long)e0);
	assert_int_equal(ask(&b, TOKEN_NODE, "POST /v1/nodes/m0/beat", body),
			 410);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/tenants/t", NULL), 200);
	assert_int_equal(number(&b, "allowed"), 20 * MIB);
	bed_end(&b);
}

static void silence_is_noticed(void **state)
{
	uint64_t e0;
	struct bed b;

	bed_make(&b);
	make_tenant(&b, 100 * MIB);
	e0 = join(&b, "m0", FIRST);
	(void)beat(&b, "m0", e0, 0, 0, 0, 10 * MIB);
	assert_string_equal(state_of(&b, "m0"), "up");
	assert_int_equal(ask(&b, TOKEN_ADMIN, "DELETE /v1/nodes/m0", NULL),
			 409);
	pass(&b, 2999);
	assert_string_equal(state_of(&b, "m0"), "up");
	pass(&b, 1);
	assert_string_equal(state_of(&b, "m0"), "suspect");
	(void)beat(&b, "m0", e0, 0, 0, 0, 0);
	assert_string_equal(state_of(&b, "m0"), "up");
	pass(&b, 10000);
	assert_string_equal(state_of(&b, "m0"), "down");
	/* A new leader gives it all its time again. */
	bed_lead(&b, "c0");
	assert_string_equal(state_of(&b, "m0"), "up");
	pass(&b, 9999);
	assert_string_equal(state_of(&b, "m0"), "suspect");
	pass(&b, 1);
	assert_string_equal(state_of(&b, "m0"), "down");
	/* What it may use counts until it is forgotten. */
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/tenants/t", NULL), 200);
	assert_true(number(&b, "allowed") >= 10 * MIB);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "DELETE /v1/nodes/m0", NULL),
			 204);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/tenants/t", NULL), 200);
	assert_int_equal(number(&b, "allowed"), 0);
	bed_lead(&b, "c0");
	assert_string_equal(state_of(&b, "m0"), "none");
	bed_end(&b);
}

/* A beat that stays held; *held is what the process around the core keeps. */
static void hold(struct bed *b, const char *name, uint64_t epoch,
		 struct cd_held *held)
{
	char path[80], body[200];
	struct ctl_reply reply = {0};
	struct ctl_request q = {
		.method = CTL_POST,
		.path = path,
		.token = TOKEN_NODE,
		.body = body,
	};

	snprintf(path, sizeof(path), "/v1/nodes/%s/beat", name);
	snprintf(body, sizeof(body),
		 "{\"incarnation\":\"" FIRST "\",\"epoch\":%llu}",
		 (unsigned long long)epoch);
	q.body_bytes = strlen(body);
	cd_core_handle(b->core, &q, &reply, held);
	assert_true(held->is_held);
	assert_int_equal(reply.status, 0);
}

static unsigned answer_to(struct bed *b, const struct cd_held *held)
{
	struct ctl_reply reply = {0};
	unsigned status;

	assert_true(cd_core_is_due(b->core, held));
	cd_core_answer(b->core, held, &reply);
	status = reply.status;
	ctl_reply_release(&reply);
	return status;
}

/* Suspect at once, down a second later, up by the next beat; a connection that
 * another one has replaced tells nothing. */
static void a_broken_beat_is_noticed(void **state)
{
	struct cd_held first, second;
	uint64_t epoch;
	struct bed b;

	bed_make(&b);
	epoch = join(&b, "m0", FIRST);
	(void)beat(&b, "m0", epoch, 0, 0, 0, 0);
	hold(&b, "m0", epoch, &first);
	hold(&b, "m0", epoch, &second);
	assert_int_equal(answer_to(&b, &first), 204);
	cd_core_broke(b.core, &first);
	assert_string_equal(state_of(&b, "m0"), "up");
	cd_core_broke(b.core, &second);
	assert_string_equal(state_of(&b, "m0"), "suspect");
	pass(&b, 999);
	assert_string_equal(state_of(&b, "m0"), "suspect");
	(void)beat(&b, "m0", epoch, 0, 0, 0, 0);
	assert_string_equal(state_of(&b, "m0"), "up");
	pass(&b, 2);
	assert_string_equal(state_of(&b, "m0"), "up");
	hold(&b, "m0", epoch, &first);
	cd_core_broke(b.core, &first);
	pass(&b, 1000);
	assert_string_equal(state_of(&b, "m0"), "down");
	/* It may live, and take the last answer for fresh. */
	assert_int_equal(ask(&b, TOKEN_ADMIN, "DELETE /v1/nodes/m0", NULL),
			 409);
	assert_non_null(strstr(words(&b), "may live"));
	pass(&b, 9000);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "DELETE /v1/nodes/m0", NULL),
			 204);
	bed_end(&b);
}

/* What there is to say comes as the answer, at once. */
static void orders_end_a_held_beat(void **state)
{
	struct cd_held held;
	uint64_t epoch;
	struct bed b;

	bed_make(&b);
	epoch = join(&b, "m0", FIRST);
	(void)beat(&b, "m0", epoch, 0, 0, 0, 0);
	hold(&b, "m0", epoch, &held);
	snprintf(held.tenants, sizeof(held.tenants), "%s",
		 json_string_value(json_object_get(b.answer, "tenants_name")));
	assert_false(cd_core_is_due(b.core, &held));
	make_tenant(&b, 0);
	assert_int_equal(answer_to(&b, &held), 200);
	hold(&b, "m0", epoch, &held);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/nodes/m0/drain", "{}"),
			 200);
	assert_int_equal(answer_to(&b, &held), 200);
	/* Who says goodbye leaves nothing behind that waits. */
	hold(&b, "m0", epoch, &held);
	assert_int_equal(ask(&b, TOKEN_NODE, "POST /v1/nodes/m0/leave",
			     "{\"incarnation\":\"" FIRST "\"}"),
			 204);
	assert_int_equal(answer_to(&b, &held), 200);
	cd_core_broke(b.core, &held);
	assert_string_equal(state_of(&b, "m0"), "down");
	assert_int_equal(ask(&b, TOKEN_ADMIN, "DELETE /v1/nodes/m0", NULL),
			 204);
	bed_end(&b);
}

/* A change that is not committed holds up what could tell of it, but not the
 * word that the controller is there, or that it does not know. */
static void a_slow_ledger_puts_beats_off(void **state)
{
	struct ctl_request q = {
		.method = CTL_POST,
		.path = "/v1/nodes/m0/drain",
		.token = TOKEN_ADMIN,
	};
	struct ctl_reply reply = {0};
	struct cd_held held, change;
	uint64_t epoch, mark;
	struct bed b;

	bed_make(&b);
	epoch = join(&b, "m0", FIRST);
	(void)beat(&b, "m0", epoch, 0, 0, 0, 0);
	hold(&b, "m0", epoch, &held);
	cd_core_handle(b.core, &q, &reply, &change);
	assert_int_equal(reply.status, 200);
	assert_false(change.is_hint);
	ctl_reply_release(&reply);
	assert_int_equal(answer_to(&b, &held), 200);
	mark = cd_core_mark(b.core);
	assert_false(cd_core_is_late(b.core, &held, mark));
	b.clock_ns += 1999 * 1000000ull;
	assert_false(cd_core_is_late(b.core, &held, mark));
	b.clock_ns += 1000000;
	assert_true(cd_core_is_late(b.core, &held, mark));
	reply = (struct ctl_reply){0};
	cd_core_put_off(b.core, &reply);
	assert_int_equal(reply.status, 204);
	/* Not sure any more: nodes may look for another one at once. */
	hold(&b, "m0", epoch, &held);
	assert_false(cd_core_is_late(b.core, &held, mark));
	cd_core_keep(b.core, b.clock_ns);
	assert_true(cd_core_is_late(b.core, &held, mark));
	reply = (struct ctl_reply){0};
	cd_core_put_off(b.core, &reply);
	assert_int_equal(reply.status, 503);
	ctl_reply_release(&reply);
	/* What is committed has nothing to wait for. */
	cd_core_keep(b.core, UINT64_MAX);
	commit(&b);
	b.clock_ns += 5000 * 1000000ull;
	assert_false(cd_core_is_late(b.core, &held, mark));
	bed_end(&b);
}

static void two_processes_cannot_have_one_name(void **state)
{
	static const char elsewhere[] =
		"{\"name\":\"m0\",\"kind\":\"memory\",\"address\":\"unix:/x\","
		"\"incarnation\":\"" SECOND "\"}";
	static const char engine[] =
		"{\"name\":\"m0\",\"kind\":\"engine\",\"address\":\"unix:/x\","
		"\"incarnation\":\"" SECOND "\"}";
	uint64_t e0;
	struct bed b;

	bed_make(&b);
	e0 = join(&b, "m0", FIRST);
	(void)beat(&b, "m0", e0, 0, 0, 0, 0);
	assert_int_equal(ask(&b, TOKEN_NODE, "POST /v1/nodes", elsewhere), 409);
	assert_int_equal(ask(&b, TOKEN_NODE, "POST /v1/nodes", engine), 409);
	/* The same place is the same node, started anew. */
	(void)join(&b, "m0", SECOND);
	pass(&b, 11000);
	assert_int_equal(ask(&b, TOKEN_NODE, "POST /v1/nodes", elsewhere), 200);
	bed_end(&b);
}

/* Nothing is told that a failure could take back. */
static void a_failed_commit_changes_nothing(void **state)
{
	struct bed b;

	bed_make(&b);
	b.commit_err = -ENOSPC;
	assert_int_equal(
		ask(&b, TOKEN_ADMIN, "POST /v1/tenants", "{\"name\":\"t\"}"),
		503);
	assert_non_null(strstr(words(&b), "nothing was changed"));
	assert_non_null(strstr(words(&b), "disk is gone"));
	assert_false(cd_core_leads(b.core));
	assert_int_equal(
		ask(&b, TOKEN_ADMIN, "POST /v1/tenants", "{\"name\":\"t\"}"),
		503);
	bed_lead(&b, "c0");
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/tenants/t", NULL), 404);
	/* One whose end is not known is said to be that, and found later. */
	b.commit_err = LEDGER_UNKNOWN;
	b.commit_anyway = true;
	assert_int_equal(
		ask(&b, TOKEN_ADMIN, "POST /v1/tenants", "{\"name\":\"t\"}"),
		503);
	assert_non_null(strstr(words(&b), "may have been made or not"));
	bed_lead(&b, "c0");
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/tenants/t", NULL), 200);
	bed_end(&b);
}

static void who_does_not_lead_says_who_does(void **state)
{
	struct bed b;

	bed_make(&b);
	make_tenant(&b, 0);
	cd_core_clear(b.core);
	assert_int_equal(ledger_read(b.ledger, cd_core_row, b.core), 0);
	assert_int_equal(cd_core_ready(b.core, "https://c1:7100", "c1 leads"),
			 0);
	assert_int_equal(
		ask(&b, TOKEN_ADMIN, "POST /v1/tenants", "{\"name\":\"x\"}"),
		421);
	assert_string_equal(
		json_string_value(json_object_get(b.answer, "leader")),
		"https://c1:7100");
	/* It may be looked at. */
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/tenants/t", NULL), 200);
	assert_int_equal(ask(&b, NULL, "GET /v1/status", NULL), 200);
	assert_false(json_is_true(json_object_get(b.answer, "leads")));
	bed_end(&b);
}

/* Who may have been replaced answers nothing about changes, not even no. */
static void a_lease_that_is_over_says_nothing(void **state)
{
	struct bed b;
	uint64_t e0;

	bed_make(&b);
	make_tenant(&b, 0);
	e0 = join(&b, "m0", FIRST);
	cd_core_keep(b.core, b.clock_ns + 1000);
	(void)beat(&b, "m0", e0, 0, 0, 0, 0);
	b.clock_ns += 1000;
	assert_int_equal(ask(&b, TOKEN_ADMIN, "DELETE /v1/tenants/none", NULL),
			 503);
	assert_int_equal(ask(&b, TOKEN_NODE, "POST /v1/nodes/m0/beat", "{}"),
			 503);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/tenants/t", NULL), 200);
	cd_core_keep(b.core, b.clock_ns + 1);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "DELETE /v1/tenants/none", NULL),
			 404);
	bed_end(&b);
}

/* All that was answered is there after another controller has read the rows. */
static void rows_survive(void **state)
{
	struct cd_core *old;
	struct bed b;
	uint64_t e0;

	bed_make(&b);
	make_tenant(&b, 100 * MIB);
	e0 = join(&b, "m0", FIRST);
	(void)beat(&b, "m0", e0, 0, 0, 0, 10 * MIB);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/tenants/t/tokens",
			     "{\"ttl_s\":60,\"token\":\"" TOKEN_OTHER "\"}"),
			 201);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/nodes/m0/drain", NULL),
			 200);
	old = b.core;
	bed_core(&b);
	cd_core_destroy(old);
	bed_lead(&b, "c0");
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/tenants/t", NULL), 200);
	assert_int_equal(number(&b, "quota"), 100 * MIB);
	assert_true(number(&b, "allowed") >= 10 * MIB);
	assert_int_equal(number(&b, "tokens"), 2);
	assert_int_equal(ask(&b, TOKEN_OTHER, "GET /v1/nodes", NULL), 200);
	/* The same run goes on with its beats. */
	(void)beat(&b, "m0", e0, 10 * MIB, 10 * MIB, 1, 0);
	assert_string_equal(state_of(&b, "m0"), "draining");
	/* A token with an end has one. */
	cd_core_tick(b.core, 61);
	commit(&b);
	assert_int_equal(ask(&b, TOKEN_OTHER, "GET /v1/nodes", NULL), 401);
	assert_int_equal(ask(&b, TOKEN_TENANT, "GET /v1/nodes", NULL), 200);
	bed_end(&b);
}

static void wrong_rows_spoil_all(void **state)
{
	static const struct {
		const char *kind, *key, *value;
	} rows[] = {
		{"node", "m0", "{}"},
		{"node", "M0",
		 "{\"kind\":\"memory\",\"address\":\"a\","
		 "\"zone\":\"\",\"incarnation\":\"" FIRST
		 "\",\"epoch\":1,\"size\":1,\"drain\":false}"},
		{"node", "m0", "[]"},
		{"node", "m0", "{"},
		{"tenant", "a", "{\"quota\":-1,\"limits\":{}}"},
		{"tenant", "a", "{\"quota\":1}"},
		{"token", "xyz", "{\"tenant\":\"a\",\"id\":0,\"until\":0}"},
		{"token", TOKEN_OTHER,
		 "{\"tenant\":\"nobody\",\"id\":0,\"until\":0}"},
		{"toaster", "a", "{}"},
	};
	struct bed b;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bed_make(&b);
		cd_core_clear(b.core);
		assert_int_equal(cd_core_row(b.core, rows[i].kind, rows[i].key,
					     rows[i].value),
				 -EBADMSG);
		bed_end(&b);
	}
	bed_make(&b);
	cd_core_clear(b.core);
	assert_int_equal(cd_core_row(b.core, "allowance", "a",
				     "{\"bytes\":1,\"version\":1,"
				     "\"open\":false}"),
			 0);
	assert_int_equal(cd_core_lead(b.core, 9), -EBADMSG);
	bed_end(&b);
	bed_make(&b);
	cd_core_clear(b.core);
	assert_int_equal(
		cd_core_row(b.core, "given", "m0/xyz", "{\"number\":1}"), 0);
	assert_int_equal(cd_core_lead(b.core, 9), -EBADMSG);
	bed_end(&b);
}

static const char *placed(struct bed *b, unsigned i)
{
	json_t *row = json_array_get(json_object_get(b->answer, "nodes"), i);

	return json_string_value(json_object_get(row, "name"));
}

static uint64_t join_zone(struct bed *b, const char *name, const char *zone)
{
	char body[300];

	snprintf(body, sizeof(body),
		 "{\"name\":\"%s\",\"kind\":\"memory\",\"address\":"
		 "\"unix:/%s\",\"incarnation\":\"" FIRST "\",\"size\":1000,"
		 "\"zone\":\"%s\"}",
		 name, name, zone);
	assert_int_equal(ask(b, TOKEN_NODE, "POST /v1/nodes", body), 200);
	return number(b, "epoch");
}

/* Going down and coming back is known, and nothing is written for it. */
static void a_node_that_flaps_makes_no_work(void **state)
{
	uint64_t epoch, mark;
	struct bed b;

	bed_make(&b);
	make_tenant(&b, 64 * MIB);
	epoch = join(&b, "m0", FIRST);
	(void)beat(&b, "m0", epoch, 0, 0, 0, 0);
	pass(&b, 1000);
	mark = cd_core_mark(b.core);
	for (unsigned i = 0; i < 20; i++) {
		pass(&b, 11000);
		assert_string_equal(state_of(&b, "m0"), "down");
		(void)beat(&b, "m0", epoch, 0, 0, 0, 0);
		assert_string_equal(state_of(&b, "m0"), "up");
	}
	assert_int_equal(cd_core_mark(b.core), mark);
	bed_end(&b);
}

static void memory_goes_where_there_is_most(void **state)
{
	static const uint64_t used[] = {100, 200, 300, 400};
	uint64_t epoch[4];
	struct bed b;

	bed_make(&b);
	for (unsigned i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof(name), "m%u", i);
		epoch[i] = join_zone(&b, name, i < 2 ? "left" : "right");
		(void)beat(&b, name, epoch[i], used[i], 0, 0, 0);
	}
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/place",
			     "{\"size\":1,\"copies\":2,\"policy\":\"least\"}"),
			 200);
	assert_string_equal(placed(&b, 0), "m0");
	assert_string_equal(placed(&b, 1), "m1");
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/place",
			     "{\"size\":1,\"copies\":3}"),
			 200);
	assert_string_equal(placed(&b, 0), "m0");
	assert_string_equal(placed(&b, 1), "m2");
	assert_string_equal(placed(&b, 2), "m1");
	/* Not all who ask before the next beat go to one node. */
	assert_int_equal(
		ask(&b, TOKEN_ADMIN, "POST /v1/place", "{\"size\":500}"), 200);
	assert_string_equal(placed(&b, 0), "m0");
	assert_int_equal(
		ask(&b, TOKEN_ADMIN, "POST /v1/place", "{\"size\":500}"), 200);
	assert_string_equal(placed(&b, 0), "m1");
	/* Nothing on those that are drained, or silent. */
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/nodes/m2/drain", NULL),
			 200);
	(void)beat(&b, "m0", epoch[0], 0, 0, 0, 0);
	pass(&b, 3000);
	(void)beat(&b, "m2", epoch[2], 0, 0, 0, 0);
	(void)beat(&b, "m3", epoch[3], 400, 0, 0, 0);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/place", "{\"size\":1}"),
			 200);
	assert_string_equal(placed(&b, 0), "m3");
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/place",
			     "{\"size\":1,\"copies\":2}"),
			 507);
	bed_end(&b);
}

/* A node that ran alone brings its tenants along; no name is overwritten. */
static void tenants_of_a_lone_node_are_taken_over(void **state)
{
	char body[600];
	struct bed b;
	uint64_t e0;

	bed_make(&b);
	make_tenant(&b, 7 * MIB);
	e0 = join(&b, "m0", FIRST);
	snprintf(body, sizeof(body),
		 "{\"incarnation\":\"" FIRST "\",\"epoch\":%llu,\"own\":["
		 "{\"name\":\"mine\",\"quota\":5,\"token_sha256\":\"%s\","
		 "\"limits\":{\"regions\":3}},"
		 "{\"name\":\"t\",\"quota\":5,\"token_sha256\":\"%s\"},"
		 "{\"name\":\"../x\"}],\"conflicts\":[\"t\"]}",
		 (unsigned long long)e0, T64("1"), T64("2"));
	assert_int_equal(ask(&b, TOKEN_NODE, "POST /v1/nodes/m0/beat", body),
			 200);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/tenants/mine", NULL),
			 200);
	assert_int_equal(number(&b, "quota"), 5);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/tenants/t", NULL), 200);
	assert_int_equal(number(&b, "quota"), 7 * MIB);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/nodes", NULL), 200);
	assert_string_equal(
		json_string_value(json_array_get(
			json_object_get(
				json_array_get(
					json_object_get(b.answer, "nodes"), 0),
				"conflicts"),
			0)),
		"t");
	bed_end(&b);
}

static void a_tenant_sees_its_own(void **state)
{
	char body[400];
	struct bed b;
	uint64_t e0;

	bed_make(&b);
	make_tenant(&b, 0);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/tenants",
			     "{\"name\":\"u\",\"token\":\"" TOKEN_OTHER "\"}"),
			 201);
	e0 = join(&b, "m0", FIRST);
	snprintf(body, sizeof(body),
		 "{\"incarnation\":\"" FIRST "\",\"epoch\":%llu,\"names\":["
		 "{\"tenant\":\"t\",\"name\":\"far\",\"size\":1},"
		 "{\"tenant\":\"t\",\"name\":\"wide.0-2-10\",\"size\":1}],"
		 "\"names_complete\":true}",
		 (unsigned long long)e0);
	assert_int_equal(ask(&b, TOKEN_NODE, "POST /v1/nodes/m0/beat", body),
			 200);
	assert_int_equal(ask(&b, TOKEN_TENANT, "GET /v1/names/far", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(b.answer, "pieces")),
			 1);
	assert_true(json_is_true(json_object_get(b.answer, "complete")));
	assert_int_equal(ask(&b, TOKEN_TENANT, "GET /v1/names/wide", NULL),
			 200);
	assert_int_equal(json_array_size(json_object_get(b.answer, "pieces")),
			 1);
	assert_int_equal(ask(&b, TOKEN_OTHER, "GET /v1/names/far", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(b.answer, "pieces")),
			 0);
	assert_int_equal(ask(&b, TOKEN_OTHER, "GET /v1/nodes", NULL), 200);
	assert_null(json_object_get(
		json_array_get(json_object_get(b.answer, "nodes"), 0), "used"));
	bed_end(&b);
}

/* Quotas that come, go and change. */
static void a_quota_may_come_later(void **state)
{
	uint64_t e0;
	struct bed b;

	bed_make(&b);
	make_tenant(&b, 0);
	e0 = join(&b, "m0", FIRST);
	assert_int_equal(beat(&b, "m0", e0, 50 * MIB, 0, 0, 0), UINT64_MAX);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "PATCH /v1/tenants/t",
			     "{\"quota\":20971520}"),
			 200);
	/* It uses more than it may: that counts, and nothing more is given. */
	(void)beat(&b, "m0", e0, 50 * MIB, 50 * MIB, 1, 0);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/tenants/t", NULL), 200);
	assert_int_equal(number(&b, "allowed"), 50 * MIB);
	assert_int_equal(beat(&b, "m0", e0, 50 * MIB, 50 * MIB, 1, 51 * MIB),
			 50 * MIB);
	assert_int_equal(beat(&b, "m0", e0, 5 * MIB, 5 * MIB, 1, 0), 5 * MIB);
	assert_int_equal(beat(&b, "m0", e0, 5 * MIB, 5 * MIB, 1, 20 * MIB),
			 20 * MIB);
	bed_end(&b);
}

/* Those who wait share a transaction, as many as it may have; one of them is
 * not torn apart. */
static void who_waits_shares_a_transaction(void **state)
{
	enum {
		CLIENTS = 60
	};
	struct ledger_change change[LEDGER_CHANGES_MAX];
	uint64_t mark[CLIENTS];
	struct bed b;

	bed_make(&b);
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct ctl_reply reply = {0};
		struct cd_held held;
		char body[40];
		struct ctl_request q = {
			.method = CTL_POST,
			.path = "/v1/tenants",
			.token = TOKEN_ADMIN,
			.body = body,
		};

		/* A row of the tenant and one of its token. */
		snprintf(body, sizeof(body), "{\"name\":\"t%u\"}", i);
		q.body_bytes = strlen(body);
		cd_core_handle(b.core, &q, &reply, &held);
		assert_int_equal(reply.status, 201);
		mark[i] = cd_core_mark(b.core);
		assert_int_equal(cd_core_settled(b.core, mark[i]), CD_PENDING);
		ctl_reply_release(&reply);
	}
	assert_int_equal(cd_core_waiting(b.core), 2 * CLIENTS);
	assert_int_equal(cd_core_batch(b.core, change), LEDGER_CHANGES_MAX);
	cd_core_committed(b.core, 0);
	assert_int_equal(cd_core_settled(b.core, mark[49]), CD_COMMITTED);
	assert_int_equal(cd_core_settled(b.core, mark[50]), CD_PENDING);
	assert_int_equal(cd_core_batch(b.core, change),
			 2 * CLIENTS - LEDGER_CHANGES_MAX);
	cd_core_committed(b.core, 0);
	assert_int_equal(cd_core_settled(b.core, mark[59]), CD_COMMITTED);
	assert_int_equal(cd_core_waiting(b.core), 0);
	bed_end(&b);
}

/* A beat that changes more rows than a transaction takes is done in parts. */
static void a_beat_of_many_rows_is_done_in_parts(void **state)
{
	enum {
		TENANTS = LEDGER_CHANGES_MAX + 20
	};
	json_t *shares = json_array();
	struct bed b;
	char line[200], *body;
	json_t *said;

	bed_make(&b);
	for (unsigned i = 0; i < TENANTS; i++) {
		snprintf(
			line, sizeof(line),
			"{\"name\":\"t%u\",\"quota\":%llu,\"token\":\"%064x\"}",
			i, 4 * MIB, i + 1);
		assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/tenants", line),
				 201);
		snprintf(line, sizeof(line), "t%u", i);
		(void)json_array_append_new(
			shares,
			json_pack("{s:s, s:i, s:i, s:i, s:I}", "tenant", line,
				  "used", 0, "limit", 0, "version", 0, "wish",
				  (json_int_t)MIB));
	}
	said = json_pack("{s:s, s:I, s:i, s:o}", "incarnation", FIRST, "epoch",
			 (json_int_t)join(&b, "m0", FIRST), "used", 0, "shares",
			 shares);
	body = json_dumps(said, JSON_COMPACT);
	assert_int_equal(ask(&b, TOKEN_NODE, "POST /v1/nodes/m0/beat", body),
			 200);
	assert_int_equal(json_array_size(json_object_get(b.answer, "shares")) >=
				 TENANTS,
			 1);
	assert_int_equal(cd_core_waiting(b.core), 0);
	free(body);
	json_decref(said);
	bed_end(&b);
}

static json_int_t ops_of(struct bed *b, uint64_t epoch, uint64_t ops)
{
	char body[200];

	snprintf(body, sizeof(body),
		 "{\"incarnation\":\"" FIRST "\",\"epoch\":%llu,\"ops\":%llu}",
		 (unsigned long long)epoch, (unsigned long long)ops);
	assert_int_equal(ask(b, TOKEN_NODE, "POST /v1/nodes/m0/beat", body),
			 200);
	assert_int_equal(ask(b, TOKEN_ADMIN, "GET /v1/overview", NULL), 200);
	return json_integer_value(json_object_get(
		json_array_get(json_object_get(b->answer, "nodes"), 0),
		"ops_per_s"));
}

static void operations_of_a_node_are_counted_by_the_second(void **state)
{
	struct bed b;
	uint64_t epoch;

	(void)state;
	bed_make(&b);
	make_tenant(&b, 0);
	epoch = join(&b, "m0", FIRST);
	assert_int_equal(ops_of(&b, epoch, 1000000), 0);
	b.clock_ns += 1000000000;
	assert_int_equal(ops_of(&b, epoch, 1500000), 500000);
	/* News that come at once make no rate of their own. */
	b.clock_ns += 1000000;
	assert_int_equal(ops_of(&b, epoch, 1500009), 500000);
	b.clock_ns += 1999000000;
	assert_int_equal(ops_of(&b, epoch, 1700000), 100000);
	/* It was started anew. */
	b.clock_ns += 1000000000;
	assert_int_equal(ops_of(&b, epoch, 7), 0);
	/* A tenant learns nothing of it. */
	assert_int_equal(ask(&b, TOKEN_TENANT, "GET /v1/overview", NULL), 200);
	assert_null(strstr(b.text, "ops_per_s"));
	bed_end(&b);
}

/* How many of `count` requests are answered with 429, all at one time. */
static unsigned too_many(struct bed *b, const char *origin, const char *token,
			 enum ctl_method method, const char *path,
			 unsigned count, unsigned *retry_s)
{
	struct ctl_request q = {.method = method,
				.path = path,
				.token = token,
				.origin = origin};
	unsigned n = 0;

	while (count--) {
		struct ctl_reply reply = {0};
		struct cd_held held;

		cd_core_handle(b->core, &q, &reply, &held);
		n += reply.status == 429;
		*retry_s = reply.retry_s;
		ctl_reply_release(&reply);
	}
	return n;
}

static void who_asks_too_often_is_told_to_wait(void **state)
{
	const unsigned burst = 2 * CD_STRANGER_REQUESTS;
	unsigned retry_s = 0;
	struct bed b;

	(void)state;
	bed_make(&b);
	make_tenant(&b, 0);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "PATCH /v1/tenants/t",
			     "{\"limits\":{\"requests\":10}}"),
			 200);
	/* By its address, also with a token that nobody has. */
	assert_int_equal(too_many(&b, "192.0.2.1", NULL, CTL_GET, "/v1/status",
				  burst, &retry_s),
			 0);
	assert_int_equal(too_many(&b, "192.0.2.1", TOKEN_STRANGER, CTL_GET,
				  "/v1/nodes", 3, &retry_s),
			 3);
	assert_int_equal(retry_s, 1);
	assert_int_equal(too_many(&b, "192.0.2.2", NULL, CTL_GET, "/v1/status",
				  3, &retry_s),
			 0);
	/* A tenant by its name, wherever it is; others are not disturbed. */
	assert_int_equal(too_many(&b, "192.0.2.1", TOKEN_TENANT, CTL_GET,
				  "/v1/nodes", 15, &retry_s),
			 0);
	assert_int_equal(too_many(&b, "192.0.2.3", TOKEN_TENANT, CTL_GET,
				  "/v1/nodes", 15, &retry_s),
			 10);
	assert_int_equal(too_many(&b, "192.0.2.3", TOKEN_DEFAULT, CTL_GET,
				  "/v1/nodes", 15, &retry_s),
			 0);
	/* Its leases live on for longer. */
	assert_int_equal(too_many(&b, "192.0.2.3", TOKEN_TENANT, CTL_POST,
				  "/v1/renew", 25, &retry_s),
			 5);
	assert_int_equal(too_many(&b, "192.0.2.1", TOKEN_ADMIN, CTL_GET,
				  "/v1/tenants", burst + 5, &retry_s),
			 0);
	b.clock_ns += 1000000000;
	assert_int_equal(too_many(&b, "192.0.2.1", NULL, CTL_GET, "/v1/status",
				  CD_STRANGER_REQUESTS + 7, &retry_s),
			 7);
	bed_end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			operations_of_a_node_are_counted_by_the_second),
		cmocka_unit_test(who_asks_too_often_is_told_to_wait),
		cmocka_unit_test(a_beat_of_many_rows_is_done_in_parts),
		cmocka_unit_test(bad_words_name_the_field),
		cmocka_unit_test(a_quota_is_shared),
		cmocka_unit_test(old_reports_lower_nothing),
		cmocka_unit_test(silence_is_noticed),
		cmocka_unit_test(a_broken_beat_is_noticed),
		cmocka_unit_test(orders_end_a_held_beat),
		cmocka_unit_test(a_slow_ledger_puts_beats_off),
		cmocka_unit_test(two_processes_cannot_have_one_name),
		cmocka_unit_test(a_failed_commit_changes_nothing),
		cmocka_unit_test(who_does_not_lead_says_who_does),
		cmocka_unit_test(a_lease_that_is_over_says_nothing),
		cmocka_unit_test(rows_survive),
		cmocka_unit_test(wrong_rows_spoil_all),
		cmocka_unit_test(a_node_that_flaps_makes_no_work),
		cmocka_unit_test(memory_goes_where_there_is_most),
		cmocka_unit_test(tenants_of_a_lone_node_are_taken_over),
		cmocka_unit_test(a_tenant_sees_its_own),
		cmocka_unit_test(a_quota_may_come_later),
		cmocka_unit_test(who_waits_shares_a_transaction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
