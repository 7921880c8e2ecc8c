/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that leave a node, and that arrive: one node plays either end, and
 * the mover is whoever asks. */
#include "mem_fixture.h"

#define ID    "00000000000000a1"
#define OTHER "00000000000000a2"
#define LEAVE(move, names, ms) \
	"{\"move\":\"" move "\",\"regions\":" names ",\"ms\":" ms "}"
#define ARRIVE                                                            \
	"{\"name\":\"r\",\"size\":8192,\"move\":\"" ID                    \
	"\",\"birth\":\"00000000000000b1\",\"from\":\"m9\",\"from_run\":" \
	"\"00000000000000c1\",\"ms\":1000}"

enum {
	LATE_MS = 2000, /* than the lease */
};

struct row {
	const char *line, *body;
	unsigned status;
	const char *code;
};

static void run_rows(struct mem_fixture *f, const struct row *rows,
		     size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned status = ask(f, rows[i].line, rows[i].body);

		if (status != rows[i].status)
			fail_msg("row %zu, %s: %u", i, rows[i].line, status);
		if (rows[i].code)
			assert_string_equal(error_code(f), rows[i].code);
	}
}

static void pass(struct mem_fixture *f, uint64_t ms)
{
	f->clock_ns += ms * 1000000;
	mem_node_tick(f->node);
}

static void make(struct mem_fixture *f)
{
	fixture_start(f);
	mem_node_joined(f->node);
	assert_int_equal(
		ask(f, "POST /v1/regions", "{\"name\":\"r\",\"size\":8192}"),
		201);
	assert_int_equal(
		ask(f, "POST /v1/regions", "{\"name\":\"s\",\"size\":4096}"),
		201);
}

static void bad_requests_are_refused(void **state)
{
	static const struct row rows[] = {
		{"POST /v1/moves", "{}", 400, "-EINVAL"},
		{"POST /v1/moves", LEAVE("12", "[\"r\"]", "9"), 400, "-EINVAL"},
		{"POST /v1/moves", LEAVE("0000000000000000", "[\"r\"]", "9"),
		 400, "-EINVAL"},
		{"POST /v1/moves", LEAVE(ID, "[]", "9"), 400, "-EINVAL"},
		{"POST /v1/moves", LEAVE(ID, "\"r\"", "9"), 400, "-EINVAL"},
		{"POST /v1/moves", LEAVE(ID, "[7]", "9"), 400, "-EINVAL"},
		{"POST /v1/moves", LEAVE(ID, "[\"r\",\"r\"]", "9"), 400,
		 "-EINVAL"},
		{"POST /v1/moves",
		 LEAVE(ID, "[\"r\",\"s\",\"t\",\"u\",\"v\"]", "9"), 400,
		 "-EINVAL"},
		{"POST /v1/moves", LEAVE(ID, "[\"x\"]", "9"), 404, "-ENOENT"},
		{"POST /v1/moves", LEAVE(ID, "[\"r\"]", "0"), 400, "-EINVAL"},
		{"POST /v1/moves", LEAVE(ID, "[\"r\"]", "60001"), 400,
		 "-EINVAL"},
		{"PATCH /v1/moves/" ID, "{\"ms\":9}", 404, "-ENOENT"},
		{"PATCH /v1/moves/x", "{\"ms\":9}", 400, "-EINVAL"},
		{"POST /v1/moves/" ID "/give", "{\"to\":\"m1\"}", 404,
		 "-ENOENT"},
		{"POST /v1/moves/" ID "/give", "{}", 400, "-EINVAL"},
		{"POST /v1/moves/" ID "/give", "{\"to\":\"a b\"}", 400,
		 "-EINVAL"},
		{"POST /v1/moves/" ID "/take", NULL, 404, "-ENOENT"},
		{"DELETE /v1/moves/" ID, NULL, 404, "-ENOENT"},
		{"POST /v1/regions",
		 "{\"name\":\"a\",\"size\":1,\"move\":\"" ID "\"}", 400,
		 "-EINVAL"},
		{"GET /v1/regions/r", NULL, 200, NULL},
	};
	struct mem_fixture f = {0};

	make(&f);
	run_rows(&f, rows, ARRAY_LEN(rows));
	fixture_stop(&f);
}

static void a_region_that_leaves_is_in_nobodys_hands(void **state)
{
	static const struct row rows[] = {
		{"POST /v1/moves", LEAVE(ID, "[\"r\",\"s\"]", "1000"), 200,
		 NULL},
		{"GET /v1/regions/r", NULL, 409, "-EBUSY"},
		{"PATCH /v1/regions/r", "{\"size\":4096}", 409, "-EBUSY"},
		{"DELETE /v1/regions/s", NULL, 409, "-EBUSY"},
		{"POST /v1/moves", LEAVE(OTHER, "[\"r\"]", "1000"), 409,
		 "-EBUSY"},
		{"POST /v1/moves/" OTHER "/give", "{\"to\":\"m1\"}", 404,
		 "-ENOENT"},
		{"POST /v1/moves/" ID "/take", NULL, 404, "-ENOENT"},
		{"DELETE /v1/moves/" ID, NULL, 204, NULL},
		{"GET /v1/regions/r", NULL, 200, NULL},
		{"GET /v1/regions/s", NULL, 200, NULL},
	};
	struct mem_fixture f = {0};
	uint64_t epoch;

	make(&f);
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 200);
	epoch = answer_u64(&f, "epoch");
	run_rows(&f, rows, ARRAY_LEN(rows));
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 200);
	assert_int_not_equal(answer_u64(&f, "epoch"), epoch);
	assert_int_equal(pool_used(&f), 8192 + 4096);
	fixture_stop(&f);
}

static void a_dead_mover_leaves_it_where_it_is(void **state)
{
	struct mem_fixture f = {0};

	make(&f);
	assert_int_equal(
		ask(&f, "POST /v1/moves", LEAVE(ID, "[\"r\"]", "1000")), 200);
	/* Signs of life keep it on its way. */
	for (unsigned i = 0; i < 4; i++) {
		pass(&f, 600);
		assert_int_equal(
			ask(&f, "PATCH /v1/moves/" ID, "{\"ms\":1000}"), 204);
		assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 409);
	}
	pass(&f, LATE_MS);
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 200);
	/* Who comes late cannot give it any more. */
	assert_int_equal(
		ask(&f, "POST /v1/moves/" ID "/give", "{\"to\":\"m1\"}"), 404);
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 200);
	fixture_stop(&f);
}

static void what_is_given_is_gone_and_its_name_waits(void **state)
{
	static const struct row rows[] = {
		{"POST /v1/moves", LEAVE(ID, "[\"r\",\"s\"]", "1000"), 200,
		 NULL},
		{"POST /v1/moves/" ID "/give", "{\"to\":\"m1\"}", 204, NULL},
		/* An answer was lost: once more. */
		{"POST /v1/moves/" ID "/give", "{\"to\":\"m1\"}", 204, NULL},
		{"GET /v1/regions/r", NULL, 409, "-EBUSY"},
		{"GET /v1/regions/s", NULL, 409, "-EBUSY"},
	};
	struct mem_fixture f = {0};

	make(&f);
	run_rows(&f, rows, ARRAY_LEN(rows));
	assert_int_equal(pool_used(&f), 0);
	assert_int_equal(ask(&f, "GET /v1/moves", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(f.answer, "moves")),
			 2);
	/* The other node has it. */
	assert_int_equal(ask(&f, "DELETE /v1/moves/" ID, NULL), 204);
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 404);
	assert_int_equal(ask(&f, "GET /v1/moves", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(f.answer, "moves")),
			 0);
	fixture_stop(&f);
}

static void a_name_does_not_wait_for_ever(void **state)
{
	struct mem_fixture f = {0};
	json_t *beat = json_object();

	make(&f);
	assert_int_equal(
		ask(&f, "POST /v1/moves", LEAVE(ID, "[\"r\"]", "1000")), 200);
	assert_int_equal(
		ask(&f, "POST /v1/moves/" ID "/give", "{\"to\":\"m1\"}"), 204);
	pass(&f, MEM_GIVEN_MS + 1);
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 404);
	/* But that it was given is said as long as nobody has taken it. */
	mem_node_say(f.node, beat);
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(beat, "given"), 0)),
			    ID);
	assert_int_equal(json_integer_value(json_object_get(beat, "moved")), 1);
	json_decref(beat);
	fixture_stop(&f);
}

static void what_arrives_is_hidden_until_it_is_taken(void **state)
{
	static const struct row rows[] = {
		{"POST /v1/regions", ARRIVE, 201, NULL},
		{"GET /v1/regions/r", NULL, 404, "-ENOENT"},
		{"DELETE /v1/regions/r", NULL, 404, "-ENOENT"},
		{"POST /v1/moves/" ID "/take", NULL, 404, "-ENOENT"},
		{"PATCH /v1/moves/" ID, "{\"ms\":1000,\"seal\":7}", 400,
		 "-EINVAL"},
		{"PATCH /v1/moves/" ID, "{\"ms\":1000,\"seal\":true}", 204,
		 NULL},
		{"GET /v1/regions/r", NULL, 404, "-ENOENT"},
	};
	struct mem_fixture f = {0};

	fixture_start(&f);
	run_rows(&f, rows, ARRAY_LEN(rows));
	assert_int_equal(ask(&f, "GET /v1/regions", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(f.answer, "regions")),
			 0);
	/* A sealed one stays, whatever became of the mover. */
	pass(&f, 10 * LATE_MS);
	assert_int_equal(ask(&f, "POST /v1/moves/" ID "/take", NULL), 204);
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 200);
	assert_string_equal(answer_text(&f, "birth"), "00000000000000b1");
	fixture_stop(&f);
}

static void a_copy_that_is_not_whole_ends_with_its_mover(void **state)
{
	struct mem_fixture f = {0};

	fixture_start(&f);
	assert_int_equal(ask(&f, "POST /v1/regions", ARRIVE), 201);
	assert_int_equal(pool_used(&f), 8192);
	pass(&f, LATE_MS);
	assert_int_equal(pool_used(&f), 0);
	assert_int_equal(ask(&f, "POST /v1/regions", ARRIVE), 201);
	assert_int_equal(
		ask(&f, "PATCH /v1/moves/" ID, "{\"ms\":1000,\"seal\":true}"),
		204);
	assert_int_equal(ask(&f, "DELETE /v1/moves/" ID, NULL), 204);
	assert_int_equal(pool_used(&f), 0);
	fixture_stop(&f);
}

/* The mover died after the other node had given it. */
static void the_controller_says_that_it_was_given(void **state)
{
	struct mem_fixture f = {0};
	json_t *beat = json_object(), *row,
	       *none = json_pack("{s:[s]}", "take", OTHER),
	       *answer = json_pack("{s:[s, i]}", "take", ID, 7);

	fixture_start(&f);
	assert_int_equal(ask(&f, "POST /v1/regions", ARRIVE), 201);
	mem_node_hear(f.node, answer); /* it is not whole */
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 404);
	assert_int_equal(
		ask(&f, "PATCH /v1/moves/" ID, "{\"ms\":1000,\"seal\":true}"),
		204);
	mem_node_say(f.node, beat);
	row = json_array_get(json_object_get(beat, "sealed"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "move")),
			    ID);
	assert_string_equal(json_string_value(json_object_get(row, "from")),
			    "m9");
	assert_int_equal(json_array_size(json_object_get(beat, "names")), 0);
	mem_node_hear(f.node, none);
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 404);
	mem_node_hear(f.node, answer);
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 200);
	json_decref(none);
	json_decref(beat);
	json_decref(answer);
	fixture_stop(&f);
}

/* How many moves a beat names there. */
static unsigned said(struct mem_fixture *f, const char *list)
{
	json_t *beat = json_object();
	unsigned n;

	mem_node_say(f->node, beat);
	n = (unsigned)json_array_size(json_object_get(beat, list));
	json_decref(beat);
	return n;
}

/* The mover died before it said so: the one says what it has taken, and the
 * other, who is told, forgets what it gave. */
static void what_was_taken_is_forgotten_by_who_gave(void **state)
{
	json_t *took = json_pack("{s:[s]}", "take", ID),
	       *ends = json_pack("{s:[i, s]}", "end", 7, OTHER);
	struct mem_fixture f = {0};

	fixture_start(&f);
	mem_node_joined(f.node);
	/* The one side. */
	assert_int_equal(ask(&f, "POST /v1/regions", ARRIVE), 201);
	assert_int_equal(
		ask(&f, "PATCH /v1/moves/" ID, "{\"ms\":1000,\"seal\":true}"),
		204);
	assert_int_equal(said(&f, "taken"), 0);
	mem_node_hear(f.node, took);
	mem_node_hear(f.node, took);
	assert_int_equal(said(&f, "taken"), 1);
	pass(&f, MEM_TAKEN_MS + 1);
	assert_int_equal(said(&f, "taken"), 0);
	/* The other one, more often than a tenant may have given at a time. */
	for (unsigned i = 1; i <= MEM_GIVEN_MAX / 4 + 1; i++) {
		assert_int_equal(ask(&f, "POST /v1/regions",
				     "{\"name\":\"g\",\"size\":4096}"),
				 201);
		assert_int_equal(ask(&f, "POST /v1/moves",
				     LEAVE(OTHER, "[\"g\"]", "1000")),
				 200);
		assert_int_equal(ask(&f, "POST /v1/moves/" OTHER "/give",
				     "{\"to\":\"m9\"}"),
				 204);
		/* The answer may have been lost. */
		mem_node_hear(f.node, ends);
		assert_int_equal(ask(&f, "POST /v1/moves/" OTHER "/give",
				     "{\"to\":\"m9\"}"),
				 204);
		pass(&f, MEM_GIVEN_MS + 1);
		assert_int_equal(said(&f, "given"), 1);
		mem_node_hear(f.node, took);
		assert_int_equal(said(&f, "given"), 1);
		mem_node_hear(f.node, ends);
		assert_int_equal(said(&f, "given"), 0);
	}
	json_decref(took);
	json_decref(ends);
	fixture_stop(&f);
}

/* The mover died before: the copy is nobody's. */
static void a_copy_that_never_counts_ends(void **state)
{
	struct mem_fixture f = {0};
	json_t *answer = json_pack("{s:[s, s]}", "drop", OTHER, ID);

	fixture_start(&f);
	assert_int_equal(ask(&f, "POST /v1/regions", ARRIVE), 201);
	assert_int_equal(
		ask(&f, "PATCH /v1/moves/" ID, "{\"ms\":1000,\"seal\":true}"),
		204);
	assert_int_equal(pool_used(&f), 8192);
	mem_node_hear(f.node, answer);
	assert_int_equal(pool_used(&f), 0);
	assert_int_equal(ask(&f, "POST /v1/moves/" ID "/take", NULL), 404);
	/* What is there by now under the name is left alone. */
	assert_int_equal(
		ask(&f, "POST /v1/regions", "{\"name\":\"r\",\"size\":8192}"),
		201);
	mem_node_hear(f.node, answer);
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 200);
	json_decref(answer);
	fixture_stop(&f);
}

/* A request that comes late could else give what was written since away. */
static void a_move_that_was_given_up_does_not_begin_again(void **state)
{
	struct mem_fixture f = {0};
	json_t *beat = json_object();

	make(&f);
	assert_int_equal(
		ask(&f, "POST /v1/moves", LEAVE(ID, "[\"r\"]", "1000")), 200);
	pass(&f, LATE_MS);
	assert_int_equal(
		ask(&f, "POST /v1/moves", LEAVE(ID, "[\"r\"]", "1000")), 410);
	assert_int_equal(ask(&f, "GET /v1/regions/r", NULL), 200);
	mem_node_say(f.node, beat);
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(beat, "kept"), 0)),
			    ID);
	assert_int_equal(
		ask(&f, "POST /v1/moves", LEAVE(OTHER, "[\"r\"]", "1000")),
		200);
	json_decref(beat);
	fixture_stop(&f);
}

/* A controller that knows the run before would take a copy of this one for all
 * that is left of it. */
static void only_a_run_that_is_known_lets_go(void **state)
{
	static const struct row rows[] = {
		{"POST /v1/regions", "{\"name\":\"r\",\"size\":8192}", 201,
		 NULL},
		{"POST /v1/moves", LEAVE(ID, "[\"r\"]", "1000"), 429,
		 "-EAGAIN"},
		{"GET /v1/regions/r", NULL, 200, NULL},
	};
	struct mem_fixture f = {0};

	fixture_start(&f);
	run_rows(&f, rows, ARRAY_LEN(rows));
	mem_node_joined(f.node);
	assert_int_equal(
		ask(&f, "POST /v1/moves", LEAVE(ID, "[\"r\"]", "1000")), 200);
	fixture_stop(&f);
}

static unsigned give_one(struct mem_fixture *f, const char *token, unsigned i)
{
	char line[64], body[128];

	snprintf(body, sizeof(body), "{\"name\":\"g%u\",\"size\":4096}", i);
	assert_int_equal(ask_as(f, token, "POST /v1/regions", body), 201);
	snprintf(body, sizeof(body),
		 "{\"move\":\"%016x\",\"regions\":[\"g%u\"],\"ms\":1000}",
		 i + 1, i);
	assert_int_equal(ask_as(f, token, "POST /v1/moves", body), 200);
	snprintf(line, sizeof(line), "POST /v1/moves/%016x/give", i + 1);
	return ask_as(f, token, line, "{\"to\":\"m1\"}");
}

/* What was given and not taken is remembered: one tenant cannot take all places
 * for that, so that others can still move. */
static void a_tenant_gives_its_share(void **state)
{
	struct mem_fixture f = {0};
	char token[80];

	fixture_start(&f);
	mem_node_joined(f.node);
	assert_int_equal(ask_as(&f, TOKEN_ADMIN, "POST /v1/tenants",
				"{\"name\":\"other\"}"),
			 201);
	snprintf(token, sizeof(token), "%s", answer_text(&f, "token"));
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(give_one(&f, token, i), 204);
	assert_int_equal(give_one(&f, token, 64), 429);
	assert_int_equal(ask_as(&f, token, "GET /v1/regions/g64", NULL), 409);
	assert_int_equal(give_one(&f, TOKEN_DEFAULT, 65), 204);
	fixture_stop(&f);
}

static void moves_of_others_are_not_there(void **state)
{
	struct mem_fixture f = {0};
	char token[80];

	make(&f);
	assert_int_equal(ask_as(&f, TOKEN_ADMIN, "POST /v1/tenants",
				"{\"name\":\"other\"}"),
			 201);
	snprintf(token, sizeof(token), "%s", answer_text(&f, "token"));
	assert_int_equal(ask_as(&f, token, "POST /v1/moves",
				LEAVE(ID, "[\"r\"]", "1000")),
			 404);
	assert_int_equal(
		ask(&f, "POST /v1/moves", LEAVE(ID, "[\"r\"]", "1000")), 200);
	assert_int_equal(ask_as(&f, token, "POST /v1/moves/" ID "/give",
				"{\"to\":\"m1\"}"),
			 404);
	assert_int_equal(ask_as(&f, token, "DELETE /v1/moves/" ID, NULL), 404);
	assert_int_equal(ask_as(&f, token, "GET /v1/moves", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(f.answer, "moves")),
			 0);
	fixture_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_requests_are_refused),
		cmocka_unit_test(a_region_that_leaves_is_in_nobodys_hands),
		cmocka_unit_test(a_dead_mover_leaves_it_where_it_is),
		cmocka_unit_test(what_is_given_is_gone_and_its_name_waits),
		cmocka_unit_test(a_name_does_not_wait_for_ever),
		cmocka_unit_test(what_arrives_is_hidden_until_it_is_taken),
		cmocka_unit_test(a_copy_that_is_not_whole_ends_with_its_mover),
		cmocka_unit_test(the_controller_says_that_it_was_given),
		cmocka_unit_test(what_was_taken_is_forgotten_by_who_gave),
		cmocka_unit_test(a_copy_that_never_counts_ends),
		cmocka_unit_test(a_move_that_was_given_up_does_not_begin_again),
		cmocka_unit_test(moves_of_others_are_not_there),
		cmocka_unit_test(only_a_run_that_is_known_lets_go),
		cmocka_unit_test(a_tenant_gives_its_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
