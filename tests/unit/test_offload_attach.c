/* SPDX-License-Identifier: Apache-2.0 */
/* When an attempt to attach gives a memory node up: one that was used before
 * has had the time of an attempt, others only what there is. What is asked for
 * in the name of an engine that gathers. And which engine is tried first. */
#include "client_fake.h"
#include "offload/async_priv.h"

enum {
	DEADLINE_MS = 3000,
	SHARE_MS = DEADLINE_MS / ASYNC_ATTACH_SHARE,
	LEFT_MS = 100, /* what the engine has left of an attempt */
	ENOUGH = SHARE_MS / LEFT_MS,
};

enum manner {
	SILENT,
	REFUSES, /* the connection: nobody is there */
	DENIES,	 /* with an answer */
	CONNECTS,
	GATHERS,     /* it connects, and says that it can */
	HAS_NO_ROOM, /* the same, but not for walks */
};

struct scene {
	struct fake_rack *f;
	struct aq_async *a;
	enum manner manner;
	unsigned walks; /* connections that were to carry some */
	unsigned conns;
};

static int connects(struct scene *s, const struct client_http_request *req,
		    struct client_http_reply *reply)
{
	bool walks = strstr(req->body, "\"walk\"");

	s->walks += walks;
	s->conns++;
	if (walks && s->manner == HAS_NO_ROOM)
		return fake_error(s->f, reply, 507, "EDQUOT");
	return fake_say(s->f, reply, 200,
			"{\"connection\":\"%016x-0\",\"gid\":"
			"\"00000000000000000000ffff7f000001\",\"qpn\":%u,"
			"\"psn\":6,\"mtu\":4096,\"rd_atomic\":16,"
			"\"caps\":[\"walks\"%s]}",
			s->conns, s->conns,
			s->manner == CONNECTS ? "" : ",\"gather\"");
}

static int answer(void *ctx, struct client_http *h,
		  const struct client_http_request *req,
		  struct client_http_reply *reply)
{
	struct scene *s = ctx;

	if (s->manner == DENIES)
		return fake_error(s->f, reply, 403, "EACCES");
	if (s->manner >= CONNECTS)
		return connects(s, req, reply);
	if (s->manner == SILENT)
		s->f->now_ns += req->timeout_ms * 1000000ull;
	return error_set(-EHOSTDOWN, "no answer");
}

/* One attempt, which has LEFT_MS for the node. */
static int attempt(struct scene *s, enum manner manner)
{
	struct client_caller caller = {.send = answer, .send_ctx = s};
	json_t *end = json_pack("{s:i, s:i}", "qpn", 1, "psn", 1);
	json_t *ends = json_pack("{s:O, s:O}", "read", end, "write", end);
	json_t *row = json_object();
	int err;

	s->manner = manner;
	err = offload_async_node_connect(
		s->a, 0, &caller, "00000000000000000000ffff7f000001", ends,
		s->f->now_ns + LEFT_MS * 1000000ull, row);
	if (!err)
		assert_int_equal(
			json_integer_value(json_object_get(row, "err")),
			-s->a->node[0].err);
	json_decref(row);
	json_decref(ends);
	json_decref(end);
	return err;
}

static struct scene open_scene(void **state, bool was_used)
{
	struct scene s = {.f = *state, .a = calloc(1, sizeof(*s.a))};

	assert_non_null(s.a);
	assert_int_equal(
		client_rack_open(NULL, &fake_transport, s.f, &s.a->rack), 0);
	assert_int_equal(aq_rack_set_deadline(s.a->rack, DEADLINE_MS), 0);
	s.a->node_count = 1;
	s.a->node[0].conn_epoch = was_used;
	for (unsigned k = 0; k < OFFLOAD_KINDS; k++)
		client_bond_init(&s.a->node[0].bond[k], 0);
	return s;
}

static void close_scene(struct scene *s)
{
	aq_rack_close(s->a->rack);
	free(s->a);
}

static void test_a_used_node_has_the_time_of_an_attempt(void **state)
{
	struct scene s = open_scene(state, true);

	for (unsigned i = 1; i < ENOUGH; i++) {
		assert_int_equal(attempt(&s, SILENT), -EAGAIN);
		assert_int_equal(s.a->node[0].err, 0);
	}
	assert_int_equal(attempt(&s, SILENT), 0);
	assert_int_equal(s.a->node[0].err, -EHOSTDOWN);
	/* It is lost now, and not waited for again. */
	assert_int_equal(attempt(&s, SILENT), 0);
	assert_int_equal(s.a->node[0].err, -EHOSTDOWN);
	close_scene(&s);
}

static void test_silence_ends_with_an_answer(void **state)
{
	struct scene s = open_scene(state, true);

	for (unsigned i = 1; i < ENOUGH; i++)
		assert_int_equal(attempt(&s, SILENT), -EAGAIN);
	assert_int_equal(attempt(&s, DENIES), 0);
	assert_int_equal(s.a->node[0].err, -EACCES);
	s.a->node[0].err = 0; /* as if it had let us in */
	assert_int_equal(attempt(&s, SILENT), -EAGAIN);
	close_scene(&s);
}

static void test_who_refuses_is_gone_at_once(void **state)
{
	struct scene s = open_scene(state, true);

	assert_int_equal(attempt(&s, REFUSES), 0);
	assert_int_equal(s.a->node[0].err, -EHOSTDOWN);
	close_scene(&s);
}

/* It must not keep those that answer from being used. */
static void test_a_new_node_has_what_there_is(void **state)
{
	struct scene s = open_scene(state, false);

	assert_int_equal(attempt(&s, SILENT), 0);
	assert_int_equal(s.a->node[0].err, -EHOSTDOWN);
	close_scene(&s);
}

/* ---- gathering ------------------------------------------------------------
 */

/* What the engine is told: how much an answer of the node may bring; 0: it
 * gathers nothing. */
static json_int_t gathers(struct scene *s, enum manner manner, bool can_engine)
{
	struct client_caller caller = {.send = answer, .send_ctx = s};
	json_t *row = json_object(),
	       *ends = json_pack("{s:{s:i, s:i}, s:{s:i, s:i}}", "read", "qpn",
				 1, "psn", 1, "write", "qpn", 2, "psn", 1);
	json_int_t bytes;

	if (can_engine)
		(void)json_object_set_new(
			json_object_get(ends, "read"), "walk",
			json_pack("{s:i, s:i}", "depth", 16, "bytes", 4032));
	s->manner = manner;
	s->walks = 0;
	assert_int_equal(offload_async_node_connect(
				 s->a, 0, &caller,
				 "00000000000000000000ffff7f000001", ends,
				 s->f->now_ns + LEFT_MS * 1000000ull, row),
			 0);
	assert_int_equal(s->a->node[0].err, 0);
	assert_null(json_object_get(json_object_get(row, "write"), "gather"));
	bytes = json_integer_value(
		json_object_get(json_object_get(row, "read"), "gather"));
	json_decref(row);
	json_decref(ends);
	return bytes;
}

static void a_node_gathers_if_it_can(void **state)
{
	struct scene s = open_scene(state, false);

	s.a->memory = calloc(1, sizeof(struct offload_preamble));
	assert_non_null(s.a->memory);
	assert_int_equal(gathers(&s, GATHERS, true), 4032);
	assert_int_equal(s.walks, 1); /* that of reads */
	assert_int_equal(gathers(&s, HAS_NO_ROOM, true), 0);
	assert_int_equal(s.walks, 1);
	assert_int_equal(gathers(&s, CONNECTS, true), 0);
	assert_int_equal(s.walks, 0);
	assert_int_equal(gathers(&s, GATHERS, false), 0);
	s.a->is_direct = true;
	assert_int_equal(gathers(&s, GATHERS, true), 0);
	assert_int_equal(s.walks, 0);
	offload_async_node_forget(s.a, 0);
	free(s.a->memory);
	close_scene(&s);
}

/* ---- which engine ---------------------------------------------------------
 */

/* What each of three engines answers; NULL: it does not. */
struct engines {
	struct fake_rack *f;
	const char *says[3];
	unsigned asked;
	bool has_token;
};

static int answer_status(void *ctx, struct client_http *h,
			 const struct client_http_request *req,
			 struct client_http_reply *reply)
{
	struct engines *e = ctx;
	const char *says = e->says[req->address[strlen("unix:/e")] - '0'];

	assert_string_equal(req->path, "/v1/status");
	e->asked++;
	e->has_token = e->has_token || req->token;
	return says ? fake_say(e->f, reply, 200, "%s", says)
		    : error_set(-EHOSTDOWN, "no answer");
}

/* The order as digits, "201". */
static const char *choose(struct engines *e, const struct aq_async *a,
			  unsigned count)
{
	static const struct client_node nodes[3] = {
		{.name = "e0", .address = "unix:/e0"},
		{.name = "e1", .address = "unix:/e1"},
		{.name = "e2", .address = "unix:/e2"}};
	struct client_caller caller = {.send = answer_status,
				       .send_ctx = e,
				       .token = "the application's"};
	static char text[4];
	unsigned order[CLIENT_NODE_MAX];
	unsigned n = offload_async_choose(a, &caller, nodes, count, 10, order);

	assert_true(n <= count);
	for (unsigned i = 0; i < n; i++)
		text[i] = (char)('0' + order[i]);
	text[n] = '\0';
	return text;
}

#define SAYS(n)	  "{\"sessions\":" #n ",\"sessions_max\":9}"
#define SWITCH(n) "{\"sessions\":" #n ",\"sessions_max\":9,\"switch\":\"s1\"}"

static void the_engine_with_the_fewest_threads_is_first(void **state)
{
	struct engines e = {.f = *state, {SAYS(3), SAYS(1), SAYS(2)}, 0, false};
	struct aq_async a = {0};

	assert_string_equal(choose(&e, &a, 3), "120");
	assert_false(e.has_token);
	/* One that is full comes behind all that are not, silence last. */
	e.says[1] = SAYS(9);
	assert_string_equal(choose(&e, &a, 3), "201");
	e.says[2] = NULL;
	assert_string_equal(choose(&e, &a, 3), "012");
	/* An answer that says nothing is none. */
	e.says[1] = "{\"sessions\":-1}";
	e.says[2] = "{\"sessions\":\"0\"}";
	assert_int_equal(choose(&e, &a, 3)[0], '0');
	e.says[0] = "[]";
	assert_int_equal(strlen(choose(&e, &a, 3)), 3);
}

static void a_context_stays_where_it_is_served(void **state)
{
	struct engines e = {.f = *state, {SAYS(0), SAYS(8), SAYS(2)}, 0, false};
	struct aq_async a = {.served_by = "e1"};

	assert_string_equal(choose(&e, &a, 3), "102");
	e.says[1] = NULL;
	assert_string_equal(choose(&e, &a, 3), "021");
}

static void engines_of_one_kind_share_the_work(void **state)
{
	struct engines e = {
		.f = *state, {SWITCH(5), SAYS(0), SWITCH(4)}, 0, false};
	struct aq_async a = {0};

	assert_string_equal(choose(&e, &a, 3), "201");
	e.says[0] = SAYS(5);
	assert_string_equal(choose(&e, &a, 3), "102");
}

/* A name, or one engine only, leaves nothing to ask for. */
static void where_there_is_no_choice_nobody_is_asked(void **state)
{
	struct engines e = {.f = *state, {SAYS(0), SAYS(0), SAYS(0)}, 0, false};
	struct aq_async a = {.engine_name = "e2"}, any = {0};

	assert_string_equal(choose(&e, &a, 3), "2");
	assert_string_equal(choose(&e, &a, 2), "");
	assert_string_equal(choose(&e, &any, 1), "0");
	assert_string_equal(choose(&e, &any, 0), "");
	assert_int_equal(e.asked, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_used_node_has_the_time_of_an_attempt),
		TEST(test_silence_ends_with_an_answer),
		TEST(test_who_refuses_is_gone_at_once),
		TEST(test_a_new_node_has_what_there_is),
		TEST(a_node_gathers_if_it_can),
		TEST(the_engine_with_the_fewest_threads_is_first),
		TEST(a_context_stays_where_it_is_served),
		TEST(engines_of_one_kind_share_the_work),
		TEST(where_there_is_no_choice_nobody_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
