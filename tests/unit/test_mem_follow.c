/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of two nodes: one leads, the other one offers its arena, with
 * the switch's own program behind its socket. */
#include "mem_fixture.h"

#include <unistd.h>

#include "base/json_out.h"
#include "switch_socket.h"
#include "wire/coherence_wire.h"

#define M (1ull << 20)

struct bed {
	struct mem_fixture lead, other;
	struct switch_socket at;
};

static void start_other(struct bed *b)
{
	b->other = (struct mem_fixture){.config = b->lead.config,
					.env = b->lead.env,
					.clock_ns = b->lead.clock_ns};
	b->other.config.name = "m1";
	b->other.config.shared_lead = "m0";
	b->other.config.env = &b->other.env;
	assert_int_equal(mem_node_create(&b->other.config, &b->other.node), 0);
}

static int start(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	switch_socket_start(&b->at);
	b->lead.config.switch_path = b->at.path;
	b->lead.config.shared_bytes = 16 * M;
	fixture_start(&b->lead);
	start_other(b);
	*state = b;
	return 0;
}

static int stop(void **state)
{
	struct bed *b = *state;

	if (b->other.node)
		fixture_stop(&b->other);
	fixture_stop(&b->lead);
	switch_socket_stop(&b->at);
	free(b);
	return 0;
}

/* Both look at the switch, some times, 0.5 s apart. */
static void look(struct bed *b, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		b->lead.clock_ns += 500000000;
		b->other.clock_ns += 500000000;
		if (b->other.node)
			mem_node_tick(b->other.node);
		mem_node_tick(b->lead.node);
		switch_socket_pass(&b->at, 500000000);
	}
}

static unsigned create(struct bed *b, const char *name, uint64_t size)
{
	char body[128];

	snprintf(body, sizeof(body), "{\"name\":\"%s\",\"size\":%llu}", name,
		 (unsigned long long)size);
	return ask(&b->lead, "POST /v1/shared/segments", body);
}

static unsigned of(struct bed *b, const char *method, const char *name,
		   const char *rest)
{
	char line[128];

	snprintf(line, sizeof(line), "%s /v1/shared/segments/%s%s", method,
		 name, rest);
	return ask(&b->lead, line, NULL);
}

static void is_at(struct bed *b, const char *name, const char *node)
{
	assert_int_equal(of(b, "GET", name, ""), 200);
	assert_string_equal(answer_text(&b->lead, "node"), node);
}

static bool flag(struct bed *b, const char *name, const char *key)
{
	assert_int_equal(of(b, "GET", name, ""), 200);
	return json_is_true(json_object_get(b->lead.answer, key));
}

static uint64_t lost(struct bed *b, const char *name)
{
	assert_int_equal(of(b, "GET", name, ""), 200);
	return answer_u64(&b->lead, "lost");
}

static void is_sound(struct bed *b)
{
	const json_t *wrong;

	assert_int_equal(ask(&b->lead, "GET /v1/shared/check", NULL), 200);
	wrong = json_object_get(b->lead.answer, "wrong");
	if (json_array_size(wrong))
		fail_msg("%s", json_string_value(json_array_get(wrong, 0)));
}

static json_t *status_of(struct mem_fixture *f)
{
	assert_int_equal(ask_as(f, TOKEN_ADMIN, "GET /v1/status", NULL), 200);
	return json_object_get(f->answer, "shared");
}

static uint64_t used_of(struct bed *b, size_t node)
{
	const json_t *rows = json_object_get(status_of(&b->lead), "nodes");

	return (uint64_t)json_integer_value(
		json_object_get(json_array_get(rows, node), "used"));
}

static uint64_t term(struct bed *b)
{
	return (uint64_t)json_integer_value(
		json_object_get(status_of(&b->lead), "term"));
}

static void end_other(struct bed *b)
{
	fixture_stop(&b->other);
	b->other.node = NULL;
}

static void segments_go_to_the_least_used_node(void **state)
{
	struct bed *b = *state;
	uint64_t va;

	look(b, 1);
	assert_int_equal(create(b, "a", 4 * M), 201);
	is_at(b, "a", "m0");
	assert_int_equal(create(b, "b", 2 * M), 201);
	is_at(b, "b", "m1");
	/* Behind the lead's arena, which is all that machines know. */
	va = answer_u64(&b->lead, "va");
	assert_int_equal(va, COHERENCE_BASE + 16 * M);
	assert_int_equal(json_integer_value(json_object_get(status_of(&b->lead),
							    "extent")),
			 32 * M);
	assert_int_equal(create(b, "c", 1), 201);
	is_at(b, "c", "m1");
	/* One that is full is passed over; and then all are. */
	assert_int_equal(create(b, "d", 16 * M), 507);
	assert_int_equal(create(b, "e", 8 * M), 201);
	is_at(b, "e", "m0");
	assert_int_equal(create(b, "f", 8 * M), 201);
	is_at(b, "f", "m1");
	assert_int_equal(create(b, "g", 8 * M), 507);
	is_sound(b);
}

static void a_node_that_follows_is_asked_for_nothing(void **state)
{
	struct bed *b = *state;
	const json_t *shared;

	look(b, 2);
	assert_int_equal(ask(&b->other, "POST /v1/shared/segments",
			     "{\"name\":\"a\",\"size\":1}"),
			 405);
	shared = status_of(&b->other);
	assert_string_equal(json_string_value(json_object_get(shared, "lead")),
			    "m0");
	assert_true(json_is_true(json_object_get(shared, "ready")));
	assert_null(json_object_get(shared, "extent"));
}

static void parts_of_another_node_become_zeros_first(void **state)
{
	struct bed *b = *state;

	look(b, 1);
	assert_int_equal(create(b, "a", 4 * M), 201);
	assert_int_equal(create(b, "b", 16 * M), 201);
	is_at(b, "b", "m1");
	assert_int_equal(of(b, "DELETE", "b", ""), 204);
	/* Nobody has it, and it is not free before its node has said so. */
	assert_int_equal(used_of(b, 1), 16 * M);
	assert_int_equal(create(b, "c", 16 * M), 507);
	is_sound(b);
	look(b, 4);
	assert_int_equal(used_of(b, 1), 0);
	assert_int_equal(create(b, "c", 16 * M), 201);
	is_sound(b);
}

static void another_switch_is_ready_when_both_are_there(void **state)
{
	struct bed *b = *state;

	look(b, 1);
	assert_int_equal(create(b, "a", 4 * M), 201);
	assert_int_equal(create(b, "b", 4 * M), 201);
	switch_socket_renew(&b->at);
	b->lead.clock_ns += 500000000;
	mem_node_tick(b->lead.node);
	assert_int_equal(create(b, "c", 1), 503);
	look(b, 2);
	assert_int_equal(create(b, "c", 1), 201);
	assert_int_equal(lost(b, "b"), 0);
	assert_int_equal(term(b), 2);
	is_sound(b);
}

static void a_node_that_ends_takes_its_own_along(void **state)
{
	struct bed *b = *state;

	look(b, 1);
	assert_int_equal(create(b, "a", 4 * M), 201);
	assert_int_equal(create(b, "b", 4 * M), 201);
	end_other(b);
	/* Another switch waits for it for a while, and then no more. */
	switch_socket_renew(&b->at);
	look(b, 2);
	assert_int_equal(create(b, "c", 1), 503);
	look(b, 4);
	assert_int_equal(create(b, "c", 1), 201);
	is_at(b, "c", "m0");
	assert_true(flag(b, "b", "away"));
	assert_false(flag(b, "a", "away"));
	assert_int_equal(of(b, "POST", "b", "/repair"), 503);
	is_sound(b);
	/* It comes again with zeros: a person decides whether that will do. */
	start_other(b);
	look(b, 4);
	assert_false(flag(b, "b", "away"));
	assert_int_equal(lost(b, "b"), 4 * M);
	assert_int_equal(lost(b, "a"), 0);
	assert_int_equal(lost(b, "c"), 0);
	is_sound(b);
	assert_int_equal(of(b, "POST", "b", "/repair"), 200);
	assert_int_equal(lost(b, "b"), 0);
	is_sound(b);
}

/* Also if nobody has noticed that it was away. */
static void a_node_that_was_restarted_is_not_the_same(void **state)
{
	struct bed *b = *state;

	look(b, 1);
	assert_int_equal(create(b, "a", 4 * M), 201);
	assert_int_equal(create(b, "b", 4 * M), 201);
	assert_int_equal(create(b, "c", 4 * M), 201);
	assert_int_equal(of(b, "DELETE", "b", ""), 204);
	end_other(b);
	start_other(b);
	look(b, 4);
	assert_int_equal(term(b), 2);
	assert_int_equal(lost(b, "a"), 0);
	assert_int_equal(lost(b, "c"), 0);
	assert_int_equal(used_of(b, 1), 0);
	is_sound(b);
	assert_int_equal(create(b, "d", 4 * M), 201);
	is_at(b, "d", "m1");
	end_other(b);
	b->lead.config.shared_bytes = 8 * M;
	start_other(b);
	look(b, 4);
	/* As large as it was, or it is not taken. */
	assert_int_equal(lost(b, "d"), 0);
	assert_false(
		json_is_true(json_object_get(status_of(&b->other), "ready")));
}

static unsigned move(struct bed *b, const char *name, const char *node)
{
	char line[128], body[64];

	snprintf(line, sizeof(line), "POST /v1/shared/segments/%s/move", name);
	snprintf(body, sizeof(body), "{\"node\":\"%s\"}", node);
	return ask(&b->lead, line, body);
}

/* Here no node ever answers the switch's packets. */
static void a_move_that_fails_leaves_all_as_it_was(void **state)
{
	struct bed *b = *state;

	look(b, 1);
	assert_int_equal(create(b, "a", 4 * M), 201);
	assert_int_equal(move(b, "a", "m7"), 404);
	assert_int_equal(move(b, "x", "m1"), 404);
	assert_int_equal(ask(&b->lead, "POST /v1/shared/segments/a/move", "{}"),
			 400);
	assert_int_equal(move(b, "a", "m0"), 200);
	assert_null(json_object_get(b->lead.answer, "moving"));
	assert_int_equal(ask_as(&b->lead, TOKEN_ADMIN,
				"PATCH /v1/tenants/default",
				"{\"quota\":6291456}"),
			 200);
	assert_int_equal(move(b, "a", "m1"), 507);
	assert_string_equal(error_code(&b->lead), "-EDQUOT");
	assert_int_equal(ask_as(&b->lead, TOKEN_ADMIN,
				"PATCH /v1/tenants/default",
				"{\"quota\":8388608}"),
			 200);
	assert_int_equal(move(b, "a", "m1"), 200);
	assert_string_equal(answer_text(&b->lead, "moving"), "m1");
	assert_string_equal(answer_text(&b->lead, "node"), "m0");
	assert_int_equal(used_of(b, 1), 4 * M);
	is_sound(b);
	/* One at a time; and it is paid for. */
	assert_int_equal(move(b, "a", "m1"), 409);
	assert_int_equal(create(b, "b", 1), 507);
	look(b, 12);
	is_at(b, "a", "m0");
	assert_null(json_object_get(b->lead.answer, "moving"));
	assert_int_equal(used_of(b, 0), 4 * M);
	assert_int_equal(create(b, "b", 1), 201);
	is_sound(b);
}

/* The next switch is told where it was, and the other place is free. */
static void a_move_ends_with_its_switch(void **state)
{
	struct bed *b = *state;

	look(b, 1);
	assert_int_equal(create(b, "a", 4 * M), 201);
	assert_int_equal(move(b, "a", "m1"), 200);
	switch_socket_renew(&b->at);
	look(b, 4);
	is_at(b, "a", "m0");
	assert_null(json_object_get(b->lead.answer, "moving"));
	assert_int_equal(used_of(b, 1), 0);
	is_sound(b);
	assert_int_equal(move(b, "a", "m1"), 200);
	assert_int_equal(of(b, "DELETE", "a", ""), 204);
	look(b, 12); /* the copies wait for a node that says nothing */
	assert_int_equal(used_of(b, 0), 0);
	assert_int_equal(used_of(b, 1), 0);
	is_sound(b);
}

/* ---- two copies ------------------------------------------------------------
 */

static unsigned create_two(struct bed *b, const char *name, uint64_t size)
{
	char body[128];

	snprintf(body, sizeof(body),
		 "{\"name\":\"%s\",\"size\":%llu,\"copies\":2}", name,
		 (unsigned long long)size);
	return ask(&b->lead, "POST /v1/shared/segments", body);
}

/* Which node has the second copy, or will; "": none. */
static const char *second(struct bed *b, const char *name, const char *key)
{
	const char *text;

	assert_int_equal(of(b, "GET", name, ""), 200);
	text = json_string_value(json_object_get(b->lead.answer, key));
	return text ? text : "";
}

static void two_nodes_have_a_place_and_are_paid_for(void **state)
{
	struct bed *b = *state;

	look(b, 1);
	assert_int_equal(ask(&b->lead, "POST /v1/shared/segments",
			     "{\"name\":\"a\",\"size\":1,\"copies\":3}"),
			 400);
	assert_int_equal(ask(&b->lead, "POST /v1/shared/segments",
			     "{\"name\":\"a\",\"size\":1,\"on_loss\":\"x\"}"),
			 400);
	assert_int_equal(ask_as(&b->lead, TOKEN_ADMIN,
				"PATCH /v1/tenants/default",
				"{\"quota\":6291456}"),
			 200);
	assert_int_equal(create_two(b, "a", 4 * M), 507);
	assert_string_equal(error_code(&b->lead), "-EDQUOT");
	assert_int_equal(ask_as(&b->lead, TOKEN_ADMIN,
				"PATCH /v1/tenants/default",
				"{\"quota\":33554432}"),
			 200);
	assert_int_equal(create_two(b, "a", 4 * M), 201);
	is_at(b, "a", "m0");
	assert_string_equal(second(b, "a", "copy"), "m1");
	assert_int_equal(used_of(b, 0), 4 * M);
	assert_int_equal(used_of(b, 1), 4 * M);
	assert_int_equal(move(b, "a", "m1"), 409);
	is_sound(b);
	/* One node has room, and that is not enough. */
	assert_int_equal(create(b, "b", 8 * M), 201);
	assert_int_equal(create_two(b, "c", 8 * M), 507);
	assert_string_equal(error_code(&b->lead), "-ENOSPC");
	is_sound(b);
	look(b, 4);
	assert_int_equal(used_of(b, 0) + used_of(b, 1), 16 * M);
	is_sound(b);
	assert_int_equal(of(b, "DELETE", "a", ""), 204);
	look(b, 4);
	assert_int_equal(used_of(b, 0) + used_of(b, 1), 8 * M);
	is_sound(b);
}

static void one_of_two_nodes_goes_on_alone(void **state)
{
	struct bed *b = *state;

	look(b, 1);
	assert_int_equal(create(b, "x", 2 * M), 201);
	assert_int_equal(create_two(b, "a", 4 * M), 201);
	is_at(b, "a", "m1");
	end_other(b);
	switch_socket_renew(&b->at);
	look(b, 6);
	is_at(b, "a", "m0");
	assert_string_equal(second(b, "a", "copy"), "");
	assert_int_equal(lost(b, "a"), 0);
	is_sound(b);
	/* Back, and with zeros: another copy is begun there. */
	start_other(b);
	look(b, 6);
	is_at(b, "a", "m0");
	assert_int_equal(lost(b, "a"), 0);
	assert_string_equal(second(b, "a", "copying"), "m1");
	is_sound(b);
}

/* ---- a lead that is killed -------------------------------------------------
 */

static char kept_dir[] = "/tmp/aquifer-lead.XXXXXX";
static char kept_path[64];

static int start_kept(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	snprintf(kept_dir, sizeof(kept_dir), "/tmp/aquifer-lead.XXXXXX");
	assert_non_null(mkdtemp(kept_dir));
	snprintf(kept_path, sizeof(kept_path), "%s/m0.tenants.json", kept_dir);
	switch_socket_start(&b->at);
	b->lead.config.switch_path = b->at.path;
	b->lead.config.shared_bytes = 16 * M;
	b->lead.config.state_path = kept_path;
	fixture_start(&b->lead);
	start_other(b);
	*state = b;
	return 0;
}

static int stop_kept(void **state)
{
	char path[96];

	(void)stop(state);
	snprintf(path, sizeof(path), "%s/m0.shared.json", kept_dir);
	assert_int_equal(access(path, F_OK), -1); /* it was stopped */
	(void)unlink(kept_path);
	(void)unlink(path);
	(void)rmdir(kept_dir);
	return 0;
}

/* The file of a node that had no time to remove it. */
static void kill_lead(struct bed *b)
{
	char path[96], aside[96];

	snprintf(path, sizeof(path), "%s/m0.shared.json", kept_dir);
	snprintf(aside, sizeof(aside), "%s/aside", kept_dir);
	assert_int_equal(link(path, aside), 0);
	fixture_stop(&b->lead);
	assert_int_equal(rename(aside, path), 0);
	b->lead.node = NULL;
	fixture_start(&b->lead);
	b->lead.clock_ns = b->other.clock_ns;
}

static void a_killed_lead_goes_on_with_what_others_have(void **state)
{
	struct bed *b = *state;
	uint64_t va;

	look(b, 1);
	assert_int_equal(create(b, "a", 2 * M), 201);
	is_at(b, "a", "m0");
	assert_int_equal(create(b, "b", 2 * M), 201);
	is_at(b, "b", "m1");
	va = answer_u64(&b->lead, "va");
	assert_int_equal(create_two(b, "c", 4 * M), 201);
	is_at(b, "c", "m0");
	look(b, 1);
	kill_lead(b);
	look(b, 4);
	assert_int_equal(term(b), 2);
	/* It was in the memory that is gone. */
	assert_int_equal(of(b, "GET", "a", ""), 404);
	is_at(b, "b", "m1");
	assert_int_equal(answer_u64(&b->lead, "va"), va);
	assert_int_equal(lost(b, "b"), 0);
	is_at(b, "c", "m1");
	assert_int_equal(lost(b, "c"), 0);
	assert_string_equal(second(b, "c", "copying"), "m0");
	/* The address of c, and nothing of a. */
	assert_int_equal(used_of(b, 0), 4 * M);
	assert_int_equal(used_of(b, 1), 6 * M);
	is_sound(b);
	assert_int_equal(create(b, "a", 2 * M), 201);
	is_sound(b);
}

/* What was to become zeros is not forgotten with the process. */
static void a_killed_lead_knows_what_is_not_zeros(void **state)
{
	struct bed *b = *state;

	look(b, 1);
	assert_int_equal(create(b, "a", 4 * M), 201);
	assert_int_equal(create(b, "b", 16 * M), 201);
	is_at(b, "b", "m1");
	assert_int_equal(of(b, "DELETE", "b", ""), 204);
	assert_int_equal(used_of(b, 1), 16 * M);
	kill_lead(b);
	mem_node_tick(b->lead.node);
	assert_int_equal(used_of(b, 1), 16 * M);
	look(b, 5);
	assert_int_equal(used_of(b, 1), 0);
	is_sound(b);
}

#define KEPT(test) cmocka_unit_test_setup_teardown(test, start_kept, stop_kept)
#define BED(test)  cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BED(segments_go_to_the_least_used_node),
		BED(a_node_that_follows_is_asked_for_nothing),
		BED(parts_of_another_node_become_zeros_first),
		BED(another_switch_is_ready_when_both_are_there),
		BED(a_node_that_ends_takes_its_own_along),
		BED(a_node_that_was_restarted_is_not_the_same),
		BED(a_move_that_fails_leaves_all_as_it_was),
		BED(a_move_ends_with_its_switch),
		BED(two_nodes_have_a_place_and_are_paid_for),
		BED(one_of_two_nodes_goes_on_alone),
		KEPT(a_killed_lead_goes_on_with_what_others_have),
		KEPT(a_killed_lead_knows_what_is_not_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
