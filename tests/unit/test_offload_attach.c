/* SPDX-License-Identifier: Apache-2.0 */
/* When an attempt to attach gives a memory node up: one that was used before
 * has had the time of an attempt, others only what there is. */
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
};

struct scene {
	struct fake_rack *f;
	struct aq_async *a;
	enum manner manner;
};

static int answer(void *ctx, struct client_http *h,
		  const struct client_http_request *req,
		  struct client_http_reply *reply)
{
	struct scene *s = ctx;

	if (s->manner == DENIES)
		return fake_error(s->f, reply, 403, "EACCES");
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

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_used_node_has_the_time_of_an_attempt),
		TEST(test_silence_ends_with_an_answer),
		TEST(test_who_refuses_is_gone_at_once),
		TEST(test_a_new_node_has_what_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
