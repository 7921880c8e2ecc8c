/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory at a node: segments, members, terms, and what is lost, with the
 * switch's own program behind its socket. */
#include "mem_fixture.h"

#include "base/json_out.h"
#include "switch_socket.h"
#include "wire/coherence_wire.h"

#define M (1ull << 20)

#define TOKEN_OTHER                        \
	"44444444444444444444444444444444" \
	"44444444444444444444444444444444"
#define ENDS                                                                 \
	"\"proto\":\"1.0\",\"gid\":\"00000000000000000000ffff0a000009\","    \
	"\"mtu\":4096,\"talk\":{\"qpn\":5,\"psn\":7},\"lanes\":[{\"qpn\":6," \
	"\"psn\":8},{\"qpn\":9,\"psn\":8}]"

struct bed {
	struct mem_fixture f;
	struct switch_socket at;
	char id[64]; /* of the last member */
};

static int start(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	switch_socket_start(&b->at);
	b->f.config.switch_path = b->at.path;
	b->f.config.shared_bytes = 64 * M;
	fixture_start(&b->f);
	*state = b;
	return 0;
}

static int stop(void **state)
{
	struct bed *b = *state;

	fixture_stop(&b->f);
	switch_socket_stop(&b->at);
	free(b);
	return 0;
}

/* The node looks at the switch, some times, 0.5 s apart. */
static void look(struct bed *b, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		b->f.clock_ns += 500000000;
		mem_node_tick(b->f.node);
		switch_socket_pass(&b->at, 500000000);
	}
}

/* What the switch says; the caller frees it. */
static json_t *at_switch(struct bed *b, const char *line)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	json_t *tree;

	assert_non_null(f);
	pthread_mutex_lock(&b->at.lock);
	switch_socket_answer(&b->at, line, f);
	pthread_mutex_unlock(&b->at.lock);
	fclose(f);
	tree = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(tree);
	return tree;
}

static uint64_t shown(struct bed *b, const char *name)
{
	json_t *tree = at_switch(b, "tell coherence show");
	json_t *v = json_object_get(tree, name);
	uint64_t n = json_is_array(v) ? json_array_size(v)
				      : (uint64_t)json_integer_value(v);

	json_decref(tree);
	return n;
}

static void add_other(struct bed *b)
{
	assert_int_equal(ask_as(&b->f, TOKEN_ADMIN, "POST /v1/tenants",
				"{\"name\":\"other\",\"token\":\"" TOKEN_OTHER
				"\"}"),
			 201);
}

static void make(struct bed *b, const char *name, uint64_t size)
{
	char body[128];

	snprintf(body, sizeof(body), "{\"name\":\"%s\",\"size\":%llu}", name,
		 (unsigned long long)size);
	assert_int_equal(ask(&b->f, "POST /v1/shared/segments", body), 201);
}

static void join(struct bed *b)
{
	assert_int_equal(ask(&b->f, "POST /v1/shared/members",
			     "{\"name\":\"h1\"," ENDS "}"),
			 201);
	snprintf(b->id, sizeof(b->id), "%s", answer_text(&b->f, "member"));
}

static unsigned of_member(struct bed *b, const char *method, const char *what,
			  const char *body)
{
	char line[128];

	snprintf(line, sizeof(line), "%s /v1/shared/members/%s%s", method,
		 b->id, what);
	return ask(&b->f, line, body);
}

/* ---- segments -------------------------------------------------------------
 */

static void a_segment_has_one_address(void **state)
{
	struct bed *b = *state;
	uint64_t va;

	make(b, "a", 5000);
	va = answer_u64(&b->f, "va");
	assert_int_equal(va, COHERENCE_BASE);
	assert_int_equal(answer_u64(&b->f, "size"), 8192);
	assert_int_equal(answer_u64(&b->f, "reserved"), 2 * M);
	make(b, "b", 3 * M);
	assert_int_equal(answer_u64(&b->f, "va") % (4 * M), 0);
	assert_int_equal(ask(&b->f, "GET /v1/shared/segments/a", NULL), 200);
	assert_int_equal(answer_u64(&b->f, "va"), va);
	assert_string_equal(answer_text(&b->f, "right"), "rw");
	assert_int_equal(ask(&b->f, "GET /v1/shared/segments", NULL), 200);
	assert_int_equal(
		json_array_size(json_object_get(b->f.answer, "segments")), 2);
	assert_int_equal(pool_used(&b->f), 0); /* it is beside the pool */
	assert_true(shown(b, "rights") > 1);
}

static void bad_requests_are_refused(void **state)
{
	static const struct {
		const char *line, *body;
		unsigned status;
	} row[] = {
		{"POST /v1/shared/segments", "{}", 400},
		{"POST /v1/shared/segments", "{\"name\":\"x\",\"size\":0}",
		 400},
		{"POST /v1/shared/segments",
		 "{\"name\":\"x\",\"size\":1152921504606846976}", 507},
		{"POST /v1/shared/segments",
		 "{\"name\":\"x\",\"size\":67108865}", 507},
		{"POST /v1/shared/segments", "{\"name\":\".x\",\"size\":1}",
		 400},
		{"POST /v1/shared/segments", "{\"name\":\"a\",\"size\":1}",
		 409},
		{"POST /v1/shared/segments",
		 "{\"name\":\"x\",\"size\":1,\"more\":1}", 400},
		{"GET /v1/shared/segments/x", NULL, 404},
		{"GET /v1/shared/segments/other/a", NULL, 404},
		{"GET /v1/shared/segments/nobody/a", NULL, 404},
		{"DELETE /v1/shared/segments/x", NULL, 404},
		{"POST /v1/shared/segments/x/repair", NULL, 404},
		{"POST /v1/shared/segments/x/allow",
		 "{\"tenant\":\"other\",\"right\":\"r\"}", 404},
		{"POST /v1/shared/segments/a/allow",
		 "{\"tenant\":\"nobody\",\"right\":\"r\"}", 404},
		{"POST /v1/shared/segments/a/allow",
		 "{\"tenant\":\"default\",\"right\":\"r\"}", 400},
		{"POST /v1/shared/segments/a/allow",
		 "{\"tenant\":\"other\",\"right\":\"w\"}", 400},
		{"POST /v1/shared/segments/a/allow",
		 "{\"tenant\":\"other\",\"right\":\"r\",\"offset\":4096}", 400},
		{"POST /v1/shared/segments/a/allow",
		 "{\"tenant\":\"other\",\"right\":\"r\",\"offset\":8388608}",
		 400},
		{"POST /v1/shared/segments/a/allow",
		 "{\"tenant\":\"other\",\"right\":\"r\",\"length\":4096}", 400},
		{"POST /v1/shared/segments/a/allow",
		 "{\"tenant\":\"other\",\"right\":\"r\",\"length\":8388609}",
		 400},
		{"POST /v1/shared/members", "{}", 400},
		{"POST /v1/shared/members", "{\"name\":\"/\"," ENDS "}", 400},
		{"POST /v1/shared/members",
		 "{\"name\":\"h\",\"proto\":\"1.0\",\"gid\":\"00\","
		 "\"talk\":{\"qpn\":5,\"psn\":7},\"lanes\":[]}",
		 400},
		{"POST /v1/shared/members",
		 "{\"name\":\"h\",\"proto\":\"1.0\",\"gid\":"
		 "\"00000000000000000000ffff0a000009\",\"talk\":5,"
		 "\"lanes\":[{\"qpn\":6,\"psn\":8}]}",
		 400},
		{"POST /v1/shared/members",
		 "{\"name\":\"h\",\"proto\":\"1.0\",\"gid\":"
		 "\"00000000000000000000ffff0a000009\",\"talk\":{\"qpn\":5,"
		 "\"psn\":7},\"lanes\":[]}",
		 400},
		{"POST /v1/shared/members",
		 "{\"name\":\"h\",\"proto\":\"1.0\",\"gid\":"
		 "\"00000000000000000000ffff0a000009\",\"talk\":{\"qpn\":5,"
		 "\"psn\":7},\"lanes\":[{\"qpn\":6}]}",
		 400},
		{"POST /v1/shared/members/x/beat", NULL, 400},
		{"POST /v1/shared/members/00000000000000010000/beat", NULL,
		 410},
		{"POST /v1/shared/members/0000000000000001ffff/beat", NULL,
		 410},
		{"POST /v1/shared/members/00000000000000010000/connect",
		 "{" ENDS "}", 410},
		{"DELETE /v1/shared/members/00000000000000010000", NULL, 410},
	};
	struct bed *b = *state;

	add_other(b);
	make(b, "a", 8 * M);
	for (unsigned i = 0; i < ARRAY_LEN(row); i++)
		if (ask(&b->f, row[i].line, row[i].body) != row[i].status)
			fail_msg("%s %s: %s", row[i].line,
				 row[i].body ? row[i].body : "",
				 error_code(&b->f));
	assert_int_equal(shown(b, "members"), 0);
	assert_int_equal(ask(&b->f, "GET /v1/shared/segments", NULL), 200);
	assert_int_equal(
		json_array_size(json_object_get(b->f.answer, "segments")), 1);
}

static void memory_is_charged_and_comes_back(void **state)
{
	struct bed *b = *state;
	uint64_t id;

	add_other(b);
	assert_int_equal(ask_as(&b->f, TOKEN_ADMIN, "PATCH /v1/tenants/other",
				"{\"quota\":4194304}"),
			 200);
	assert_int_equal(ask_as(&b->f, TOKEN_OTHER, "POST /v1/shared/segments",
				"{\"name\":\"a\",\"size\":4194305}"),
			 507);
	assert_string_equal(error_code(&b->f), "-EDQUOT");
	assert_int_equal(ask_as(&b->f, TOKEN_OTHER, "POST /v1/shared/segments",
				"{\"name\":\"a\",\"size\":4194304}"),
			 201);
	id = answer_u64(&b->f, "id");
	make(b, "a", 32 * M);
	assert_int_equal(ask(&b->f, "POST /v1/shared/segments",
			     "{\"name\":\"b\",\"size\":33554432}"),
			 507);
	assert_int_equal(ask_as(&b->f, TOKEN_OTHER,
				"DELETE /v1/shared/segments/a", NULL),
			 204);
	make(b, "b", 32 * M);
	assert_int_equal(ask(&b->f, "DELETE /v1/shared/segments/b", NULL), 204);
	assert_int_equal(ask_as(&b->f, TOKEN_OTHER, "POST /v1/shared/segments",
				"{\"name\":\"a\",\"size\":4194304}"),
			 201);
	assert_true(answer_u64(&b->f, "id") > id);
}

static uint64_t used(struct bed *b)
{
	assert_int_equal(ask_as(&b->f, TOKEN_ADMIN, "GET /v1/status", NULL),
			 200);
	return (uint64_t)json_integer_value(json_object_get(
		json_object_get(b->f.answer, "shared"), "used"));
}

/* Who makes segments without end is told so, and harms nobody. */
static void ten_thousand_segments(void **state)
{
	struct bed *b = *state;
	unsigned made = 0;
	char text[96];

	for (unsigned i = 0; i < 10000; i++) {
		unsigned status;

		snprintf(text, sizeof(text), "{\"name\":\"s%u\",\"size\":1}",
			 i);
		status = ask(&b->f, "POST /v1/shared/segments", text);
		assert_true(status == 201 || status == 507);
		made += status == 201;
	}
	assert_int_equal(made, 64 / 2);
	assert_int_equal(used(b), 64 * M);
	for (unsigned i = 0; i < made; i++) {
		snprintf(text, sizeof(text), "DELETE /v1/shared/segments/s%u",
			 i);
		assert_int_equal(ask(&b->f, text, NULL), 204);
	}
	make(b, "a", 64 * M);
}

/* A small segment takes a place of 2 MiB: that is what its owner pays for, or
 * one with a small quota could use up what all tenants share. */
static void small_segments_are_charged_their_places(void **state)
{
	struct bed *b = *state;

	assert_int_equal(ask_as(&b->f, TOKEN_ADMIN, "POST /v1/tenants",
				"{\"name\":\"other\",\"token\":\"" TOKEN_OTHER
				"\",\"quota\":4194304}"),
			 201);
	for (char name = 'a'; name <= 'b'; name++) {
		char body[64];

		snprintf(body, sizeof(body), "{\"name\":\"%c\",\"size\":1}",
			 name);
		assert_int_equal(ask_as(&b->f, TOKEN_OTHER,
					"POST /v1/shared/segments", body),
				 201);
	}
	assert_int_equal(ask_as(&b->f, TOKEN_OTHER, "POST /v1/shared/segments",
				"{\"name\":\"c\",\"size\":1}"),
			 507);
	assert_string_equal(error_code(&b->f), "-EDQUOT");
	assert_int_equal(used(b), 4 * M);
	assert_int_equal(ask_as(&b->f, TOKEN_OTHER,
				"DELETE /v1/shared/segments/a", NULL),
			 204);
	look(b, 2);
	assert_int_equal(ask_as(&b->f, TOKEN_OTHER, "POST /v1/shared/segments",
				"{\"name\":\"c\",\"size\":1}"),
			 201);
}

static void an_object_gets_its_length_later_and_outlives_its_name(void **state)
{
	struct bed *b = *state;
	char body[64];
	uint64_t id, va;

	join(b);
	assert_int_equal(of_member(b, "POST", "/open", "{\"name\":\"o\"}"),
			 404);
	assert_int_equal(of_member(b, "POST", "/open",
				   "{\"name\":\"o\",\"create\":true}"),
			 201);
	id = answer_u64(&b->f, "id");
	assert_int_equal(answer_u64(&b->f, "size"), 0);
	assert_int_equal(of_member(b, "POST", "/open",
				   "{\"name\":\"o\",\"create\":true}"),
			 200);
	assert_int_equal(answer_u64(&b->f, "id"), id);
	assert_int_equal(of_member(b, "POST", "/open",
				   "{\"name\":\"o\",\"create\":true,"
				   "\"exclusive\":true}"),
			 409);
	snprintf(body, sizeof(body), "{\"id\":%llu,\"size\":5000}",
		 (unsigned long long)id);
	assert_int_equal(of_member(b, "POST", "/resize", body), 200);
	va = answer_u64(&b->f, "va");
	assert_int_equal(answer_u64(&b->f, "length"), 5000);
	assert_int_equal(answer_u64(&b->f, "size"), 8192);
	assert_int_equal(used(b), 2 * M); /* all of its place */
	/* Longer within its place, at the same address; never shorter. */
	assert_int_equal(of_member(b, "POST", "/resize",
				   "{\"name\":\"o\",\"size\":2097152}"),
			 200);
	assert_int_equal(answer_u64(&b->f, "va"), va);
	assert_int_equal(used(b), 2 * M);
	assert_int_equal(of_member(b, "POST", "/resize",
				   "{\"name\":\"o\",\"size\":2097153}"),
			 507);
	assert_string_equal(error_code(&b->f), "-ENOSPC");
	assert_int_not_equal(
		of_member(b, "POST", "/resize", "{\"name\":\"o\",\"size\":1}"),
		200);
	/* Without a name it is there for who knows it. */
	assert_int_equal(of_member(b, "POST", "/unlink", "{\"name\":\"o\"}"),
			 204);
	assert_int_equal(ask(&b->f, "GET /v1/shared/segments/o", NULL), 404);
	snprintf(body, sizeof(body), "{\"id\":%llu}", (unsigned long long)id);
	assert_int_equal(of_member(b, "POST", "/open", body), 200);
	assert_int_equal(answer_u64(&b->f, "va"), va);
	assert_int_equal(used(b), 2 * M);
	assert_int_equal(of_member(b, "POST", "/close", body), 204);
	assert_int_equal(of_member(b, "POST", "/open", body), 404);
	look(b, 2);
	assert_int_equal(used(b), 0);
}

/* Programs make and remove objects faster than a node ticks. */
static void memory_of_removed_objects_is_there_for_the_next(void **state)
{
	struct bed *b = *state;
	char body[64];

	join(b);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t id;

		assert_int_equal(of_member(b, "POST", "/open",
					   "{\"name\":\"o\",\"create\":true}"),
				 201);
		id = answer_u64(&b->f, "id");
		assert_int_equal(
			of_member(b, "POST", "/resize",
				  "{\"name\":\"o\",\"size\":67108864}"),
			200);
		assert_int_equal(
			of_member(b, "POST", "/unlink", "{\"name\":\"o\"}"),
			204);
		snprintf(body, sizeof(body), "{\"id\":%llu}",
			 (unsigned long long)id);
		assert_int_equal(of_member(b, "POST", "/close", body), 204);
	}
}

/* There is an end to names, and nothing is broken behind it. */
static void ten_thousand_segments_are_too_many(void **state)
{
	struct bed *b = *state;
	char body[64];
	unsigned made = 0, refused = 0;

	join(b);
	assert_int_equal(ask_as(&b->f, TOKEN_ADMIN, "PATCH /v1/tenants/default",
				"{\"limits\":{\"regions\":4000}}"),
			 200);
	for (unsigned i = 0; i < 10000; i++) {
		snprintf(body, sizeof(body),
			 "{\"name\":\"o%u\",\"create\":true}", i);
		if (of_member(b, "POST", "/open", body) == 201) {
			made++;
			continue;
		}
		refused++;
		assert_string_equal(error_code(&b->f), "-EAGAIN");
	}
	assert_int_equal(made, 4000);
	assert_int_equal(refused, 6000);
	assert_int_equal(ask(&b->f, "GET /v1/shared/segments/o3999", NULL),
			 200);
	assert_int_equal(ask(&b->f, "GET /v1/shared/segments/o4000", NULL),
			 404);
}

/* Whatever a cache has the directory must know. */
static void what_a_cache_has_is_compared(void **state)
{
	static const struct {
		const char *body;
		unsigned status;
	} bad[] = {
		{"{}", 400},
		{"{\"machine\":0,\"term\":1}", 400},
		{"{\"machine\":0,\"term\":1,\"held\":5}", 400},
		{"{\"machine\":0,\"term\":1,\"held\":[5]}", 400},
		{"{\"machine\":0,\"term\":1,\"held\":[[1,4096,0]]}", 400},
		{"{\"machine\":0,\"term\":1,\"held\":[[-4096,4096,0]]}", 400},
		{"{\"machine\":0,\"term\":1,\"held\":[[0,4194304,0]]}", 400},
		{"{\"machine\":0,\"term\":1,\"held\":[0,0,0,0,0,0,0,0,0]}",
		 400},
		{"{\"machine\":1,\"term\":1,\"held\":[]}", 404},
		{"{\"machine\":16,\"term\":1,\"held\":[]}", 400},
	};
	struct bed *b = *state;
	char body[160];

	make(b, "a", 1);
	join(b);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(
			ask(&b->f, "POST /v1/shared/check", bad[i].body),
			bad[i].status);
	assert_int_equal(ask(&b->f, "GET /v1/shared/segments/a", NULL), 200);
	snprintf(body, sizeof(body),
		 "{\"machine\":0,\"term\":1,\"held\":[[%llu,8192,0],[%llu,4096,"
		 "1]]}",
		 (unsigned long long)answer_u64(&b->f, "va"),
		 (unsigned long long)answer_u64(&b->f, "va"));
	assert_int_equal(ask(&b->f, "POST /v1/shared/check", body), 200);
	assert_int_equal(json_array_size(json_object_get(b->f.answer, "wrong")),
			 3);
	/* What is of another term is given back first. */
	body[strlen("{\"machine\":0,\"term\":")] = '2';
	assert_int_equal(ask(&b->f, "POST /v1/shared/check", body), 200);
	assert_int_equal(json_array_size(json_object_get(b->f.answer, "wrong")),
			 0);
}

/* Copies are asked for with the object, and its memory is refused when it is
 * made where there is no second node; then it may be tried again. */
static void an_object_of_two_copies_needs_two_nodes(void **state)
{
	struct bed *b = *state;

	join(b);
	assert_int_equal(of_member(b, "POST", "/open",
				   "{\"name\":\"o\",\"create\":true,"
				   "\"copies\":3}"),
			 400);
	assert_int_equal(of_member(b, "POST", "/open",
				   "{\"name\":\"o\",\"create\":true,"
				   "\"copies\":2}"),
			 201);
	assert_int_equal(answer_u64(&b->f, "copies"), 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(of_member(b, "POST", "/resize",
					   "{\"name\":\"o\",\"size\":1}"),
				 507);
		assert_string_equal(error_code(&b->f), "-ENOSPC");
		look(b, 2);
		assert_int_equal(used(b), 0);
	}
	/* Whoever opens it later gets it as it was made. */
	assert_int_equal(of_member(b, "POST", "/open",
				   "{\"name\":\"o\",\"create\":true}"),
			 200);
	assert_int_equal(answer_u64(&b->f, "copies"), 2);
	assert_int_equal(of_member(b, "POST", "/unlink", "{\"name\":\"o\"}"),
			 204);
}

static void objects_of_a_machine_that_is_gone_go_too(void **state)
{
	struct bed *b = *state;

	join(b);
	assert_int_equal(of_member(b, "POST", "/open",
				   "{\"name\":\"o\",\"create\":true}"),
			 201);
	assert_int_equal(
		of_member(b, "POST", "/resize", "{\"name\":\"o\",\"size\":1}"),
		200);
	assert_int_equal(of_member(b, "POST", "/unlink", "{\"name\":\"o\"}"),
			 204);
	assert_int_equal(used(b), 2 * M);
	assert_int_equal(of_member(b, "DELETE", "", NULL), 204);
	for (unsigned i = 0; i < 8 && used(b); i++)
		look(b, 2);
	assert_int_equal(used(b), 0);
}

static unsigned allow(struct bed *b, const char *more)
{
	char body[128];

	snprintf(body, sizeof(body), "{\"tenant\":\"other\",%s}", more);
	return ask(&b->f, "POST /v1/shared/segments/a/allow", body);
}

/* The switch has room for 8,192 pieces of rights: a segment is one or few,
 * whatever its size, because all of its place is its owner's. Others have a
 * right to what there is of it, also when it grows. */
static void odd_sizes_take_few_rules(void **state)
{
	struct bed *b = *state;
	uint64_t of_owner;

	add_other(b);
	join(b);
	make(b, "a", 2 * M - 4096);
	make(b, "b", 2 * M - 4096); /* beside it: both are one piece */
	assert_int_equal(shown(b, "rights"), 1);
	make(b, "c", 8 * M - 4096);
	of_owner = shown(b, "rights");
	assert_int_equal(of_owner, 2);
	/* 511 pages: nine pieces. */
	assert_int_equal(allow(b, "\"right\":\"r\""), 204);
	assert_int_equal(shown(b, "rights"), of_owner + 9);
	assert_int_equal(of_member(b, "POST", "/resize",
				   "{\"name\":\"a\",\"size\":2097152}"),
			 200);
	assert_int_equal(shown(b, "rights"), of_owner + 9);
	assert_int_equal(allow(b, "\"right\":\"none\""), 204);
	assert_int_equal(shown(b, "rights"), of_owner);
	assert_int_equal(ask(&b->f, "DELETE /v1/shared/segments/c", NULL), 204);
	assert_int_equal(shown(b, "rights"), 1);
}

static const char *right_of_other(struct bed *b)
{
	unsigned status = ask_as(&b->f, TOKEN_OTHER,
				 "GET /v1/shared/segments/default/a", NULL);

	return status == 200 ? answer_text(&b->f, "right") : "-";
}

static void another_tenant_has_what_it_is_allowed(void **state)
{
	struct bed *b = *state;
	uint64_t rights;

	add_other(b);
	make(b, "a", 8 * M);
	rights = shown(b, "rights");
	assert_string_equal(right_of_other(b), "-");
	assert_int_equal(allow(b, "\"right\":\"r\""), 204);
	assert_string_equal(right_of_other(b), "r");
	assert_true(shown(b, "rights") > rights);
	assert_int_equal(allow(b, "\"right\":\"rw\",\"offset\":2097152,"
				  "\"length\":2097152"),
			 204);
	assert_string_equal(right_of_other(b), "rw");
	assert_int_equal(allow(b, "\"right\":\"none\",\"offset\":2097152,"
				  "\"length\":2097152"),
			 204);
	assert_string_equal(right_of_other(b), "r");
	/* It is not the owner. */
	assert_int_equal(ask_as(&b->f, TOKEN_OTHER,
				"DELETE /v1/shared/segments/a", NULL),
			 404);
	assert_int_equal(allow(b, "\"right\":\"none\""), 204);
	assert_string_equal(right_of_other(b), "-");
	assert_int_equal(shown(b, "rights"), rights);
	/* The parts that are remembered are few. */
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(allow(b, i % 2 ? "\"right\":\"r\""
						: "\"right\":\"rw\""),
				 204);
}

static void a_tenant_takes_its_segments_along(void **state)
{
	struct bed *b = *state;

	add_other(b);
	make(b, "a", 8 * M);
	assert_int_equal(allow(b, "\"right\":\"r\""), 204);
	assert_int_equal(ask_as(&b->f, TOKEN_OTHER, "POST /v1/shared/segments",
				"{\"name\":\"a\",\"size\":33554432}"),
			 201);
	assert_int_equal(ask_as(&b->f, TOKEN_OTHER, "POST /v1/shared/members",
				"{\"name\":\"h2\"," ENDS "}"),
			 201);
	assert_int_equal(
		ask_as(&b->f, TOKEN_ADMIN, "DELETE /v1/tenants/other", NULL),
		204);
	look(b, 4);
	assert_int_equal(shown(b, "members"), 0);
	make(b, "b", 32 * M);
	add_other(b);
	assert_string_equal(right_of_other(b), "-");
}

/* ---- members --------------------------------------------------------------
 */

static void a_machine_joins_and_leaves(void **state)
{
	struct bed *b = *state;
	json_t *keys;

	join(b);
	assert_int_equal(answer_u64(&b->f, "number"), 0);
	assert_int_equal(answer_u64(&b->f, "term"), 1);
	assert_false(json_is_true(json_object_get(b->f.answer, "was_member")));
	assert_int_equal(json_array_size(json_object_get(b->f.answer, "lanes")),
			 2);
	keys = json_object_get(b->f.answer, "keys");
	assert_true(json_integer_value(json_object_get(keys, "read")) !=
		    json_integer_value(json_object_get(keys, "write")));
	assert_int_equal(shown(b, "members"), 1);
	assert_int_equal(of_member(b, "POST", "/beat", "{}"), 200);
	assert_int_equal(answer_u64(&b->f, "term"), 1);
	/* Nothing is connected twice in a term. */
	assert_int_equal(of_member(b, "POST", "/connect", "{" ENDS "}"), 409);
	assert_int_equal(of_member(b, "DELETE", "", NULL), 204);
	assert_int_equal(of_member(b, "POST", "/beat", "{}"), 410);
	look(b, 3);
	assert_int_equal(shown(b, "members"), 0);
	join(b);
	assert_int_equal(answer_u64(&b->f, "number"), 0);
}

static void sixteen_machines_at_most(void **state)
{
	struct bed *b = *state;

	assert_int_equal(ask_as(&b->f, TOKEN_ADMIN, "PATCH /v1/tenants/default",
				"{\"limits\":{\"machines\":16}}"),
			 200);
	for (unsigned i = 0; i < 16; i++) {
		char body[512];

		snprintf(body, sizeof(body),
			 "{\"name\":\"h\",\"proto\":\"1.0\",\"gid\":"
			 "\"00000000000000000000ffff0a0000%02x\",\"talk\":"
			 "{\"qpn\":5,\"psn\":7},\"lanes\":[{\"qpn\":6,"
			 "\"psn\":8}]}",
			 i + 1);
		assert_int_equal(ask(&b->f, "POST /v1/shared/members", body),
				 201);
		assert_int_equal(answer_u64(&b->f, "number"), i);
	}
	assert_int_equal(ask(&b->f, "POST /v1/shared/members",
			     "{\"name\":\"h\"," ENDS "}"),
			 429);
	assert_int_equal(shown(b, "members"), 0xffff);
}

/* Places of machines are few: one tenant leaves some to others. */
static unsigned join_other(struct bed *b)
{
	return ask_as(&b->f, TOKEN_OTHER, "POST /v1/shared/members",
		      "{\"name\":\"h\"," ENDS "}");
}

static void a_tenant_has_its_share_of_machines(void **state)
{
	struct bed *b = *state;
	char line[128];

	add_other(b);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(join_other(b), 201);
	snprintf(line, sizeof(line), "DELETE /v1/shared/members/%s",
		 answer_text(&b->f, "member"));
	assert_int_equal(join_other(b), 429);
	join(b);
	assert_int_equal(answer_u64(&b->f, "number"), 4);
	/* One that leaves makes room, as soon as the switch knows. */
	assert_int_equal(ask_as(&b->f, TOKEN_OTHER, line, NULL), 204);
	look(b, 4);
	assert_int_equal(join_other(b), 201);
	assert_int_equal(join_other(b), 429);
}

static void a_silent_machine_is_expelled(void **state)
{
	struct bed *b = *state;

	join(b);
	look(b, 9); /* 4.5 s */
	assert_int_equal(of_member(b, "POST", "/beat", "{}"), 200);
	look(b, 9);
	assert_int_equal(of_member(b, "POST", "/beat", "{}"), 200);
	look(b, 12);
	assert_int_equal(of_member(b, "POST", "/beat", "{}"), 410);
	assert_int_equal(shown(b, "members"), 0);
	assert_int_equal(ask(&b->f, "GET /v1/shared/members", NULL), 200);
	assert_int_equal(
		json_array_size(json_object_get(b->f.answer, "members")), 0);
}

/* A node that did not run has heard no beats. */
static void a_paused_node_expels_nobody(void **state)
{
	struct bed *b = *state;

	join(b);
	look(b, 2);
	b->f.clock_ns += 20000000000ull;
	mem_node_tick(b->f.node);
	assert_int_equal(of_member(b, "POST", "/beat", "{}"), 200);
	assert_int_equal(shown(b, "members"), 1);
}

/* ---- terms ----------------------------------------------------------------
 */

static void another_switch_begins_another_term(void **state)
{
	struct bed *b = *state;

	make(b, "a", 8 * M);
	join(b);
	switch_socket_renew(&b->at);
	look(b, 1);
	assert_int_equal(shown(b, "term"), 2);
	assert_int_equal(shown(b, "unclean"), 1);
	assert_int_equal(shown(b, "nodes"), 1);
	assert_true(shown(b, "rights") > 0);
	assert_int_equal(shown(b, "machines"), 0);
	assert_int_equal(of_member(b, "POST", "/beat", "{}"), 200);
	assert_int_equal(answer_u64(&b->f, "term"), 2);
	assert_int_equal(of_member(b, "POST", "/connect", "{" ENDS "}"), 200);
	assert_int_equal(answer_u64(&b->f, "term"), 2);
	assert_int_equal(answer_u64(&b->f, "number"), 0);
	assert_true(json_is_true(json_object_get(b->f.answer, "was_member")));
	assert_int_equal(shown(b, "machines"), 1);
	/* It is unclean until it says otherwise, on its talk. */
	assert_int_equal(shown(b, "unclean"), 1);
	assert_int_equal(ask(&b->f, "POST /v1/shared/segments/a/repair", NULL),
			 200);
}

static void who_dies_with_the_switch_loses_all(void **state)
{
	struct bed *b = *state;
	uint64_t rights;

	make(b, "a", 8 * M);
	make(b, "b", 8 * M);
	rights = shown(b, "rights");
	join(b);
	switch_socket_renew(&b->at);
	look(b, 14);
	assert_int_equal(of_member(b, "POST", "/beat", "{}"), 410);
	assert_int_equal(shown(b, "members"), 0);
	assert_int_equal(ask(&b->f, "GET /v1/shared/segments/a", NULL), 200);
	assert_int_equal(answer_u64(&b->f, "lost"), 8 * M);
	assert_string_equal(answer_text(&b->f, "lost_by"), "h1");
	assert_int_equal(shown(b, "rights"), 0);
	/* Also for the next switch; what is made now is not lost. */
	switch_socket_renew(&b->at);
	look(b, 1);
	assert_int_equal(shown(b, "rights"), 0);
	make(b, "c", 2 * M);
	assert_int_equal(answer_u64(&b->f, "lost"), 0);
	/* One at a time. */
	assert_int_equal(ask(&b->f, "POST /v1/shared/segments/a/repair", NULL),
			 200);
	assert_int_equal(answer_u64(&b->f, "lost"), 0);
	assert_int_equal(ask(&b->f, "GET /v1/shared/segments/b", NULL), 200);
	assert_int_equal(answer_u64(&b->f, "lost"), 8 * M);
	assert_int_equal(ask(&b->f, "POST /v1/shared/segments/b/repair", NULL),
			 200);
	assert_true(shown(b, "rights") >= rights);
}

static unsigned wrong(struct bed *b)
{
	assert_int_equal(ask(&b->f, "GET /v1/shared/check", NULL), 200);
	return (unsigned)json_array_size(json_object_get(b->f.answer, "wrong"));
}

/* What switch and node say differs only if somebody meddles. */
static void contradictions_are_found(void **state)
{
	static const char *const lines[] = {
		"tell coherence gone machine=0",
		"tell coherence machine machine=3 ip=10.0.0.7 qpn=5 psn=1 "
		"own_ip=10.0.0.250 own_qpn=77 own_psn=1",
		"tell coherence begin term=9 by=m0",
	};
	struct bed *b = *state;

	make(b, "a", 8 * M);
	join(b);
	assert_int_equal(wrong(b), 0);
	/* A machine that the switch has given up is no contradiction. */
	json_decref(at_switch(b, lines[0]));
	assert_int_equal(wrong(b), 0);
	look(b, 2);
	json_decref(at_switch(b, lines[1]));
	assert_int_equal(wrong(b), 1);
	json_decref(at_switch(b, lines[2]));
	assert_int_equal(wrong(b), 2); /* the term, and no memory */
}

static void metrics_count_it(void **state)
{
	struct bed *b = *state;
	struct ctl_request q = {
		.method = CTL_GET, .path = "/metrics", .is_local = true};
	struct ctl_reply r = {0};

	make(b, "a", 8 * M);
	join(b);
	mem_node_handle(b->f.node, &q, &r);
	assert_int_equal(r.status, 200);
	assert_non_null(memmem(r.body, r.body_bytes,
			       "\naquifer_shared_used_bytes 8388608\n", 35));
	assert_non_null(memmem(r.body, r.body_bytes,
			       "\naquifer_shared_machines 1\n", 27));
	ctl_reply_release(&r);
}

static void a_node_that_comes_again_begins_anew(void **state)
{
	struct bed *b = *state;

	make(b, "a", 8 * M);
	join(b);
	fixture_stop(&b->f);
	fixture_start(&b->f);
	assert_int_equal(shown(b, "term"), 2);
	assert_int_equal(shown(b, "members"), 0);
	assert_int_equal(shown(b, "rights"), 0);
	assert_int_equal(of_member(b, "POST", "/beat", "{}"), 410);
	assert_int_equal(ask(&b->f, "GET /v1/shared/segments/a", NULL), 404);
}

/* Rights, machines and all that is lost are kept by one node. */
static void one_node_leads(void **state)
{
	struct bed *b = *state;
	struct mem_fixture second = b->f;

	second.answer = NULL;
	second.node = NULL;
	second.config.name = "m1";
	second.config.env = &second.env;
	assert_int_equal(mem_node_create(&second.config, &second.node), 0);
	assert_int_equal(ask(&second, "POST /v1/shared/segments",
			     "{\"name\":\"a\",\"size\":1}"),
			 503);
	fixture_stop(&second);
	make(b, "a", 1);
}

static void without_a_switch_nothing_is_promised(void **state)
{
	struct bed *b = *state;

	make(b, "a", 8 * M);
	pthread_mutex_lock(&b->at.lock);
	b->at.hangs = true;
	pthread_mutex_unlock(&b->at.lock);
	assert_int_equal(ask(&b->f, "POST /v1/shared/segments",
			     "{\"name\":\"b\",\"size\":1}"),
			 503);
	assert_int_equal(ask(&b->f, "POST /v1/shared/members",
			     "{\"name\":\"h1\"," ENDS "}"),
			 503);
	/* It is told later. */
	assert_int_equal(ask(&b->f, "DELETE /v1/shared/segments/a", NULL), 204);
	pthread_mutex_lock(&b->at.lock);
	b->at.hangs = false;
	pthread_mutex_unlock(&b->at.lock);
	look(b, 4);
	assert_int_equal(shown(b, "rights"), 0);
	assert_int_equal(shown(b, "members"), 0);
	make(b, "b", 64 * M);
}

static void settings_that_cannot_be_are_refused(void **state)
{
	struct mem_fixture f = {.config = {.name = "m0",
					   .pool_bytes = FIXTURE_POOL,
					   .default_token = TOKEN_DEFAULT,
					   .admin_token = TOKEN_ADMIN,
					   .shared_bytes = 2 * M}};

	verbs_set_provider(loop_provider());
	f.env.ops = &fixture_ops;
	f.config.env = &f.env;
	assert_int_equal(mem_node_create(&f.config, &f.node), -EINVAL);
	f.config.switch_path = "/nowhere";
	f.config.shared_bytes = 2 * M + 4096;
	assert_int_equal(mem_node_create(&f.config, &f.node), -EINVAL);
	/* A switch that comes later. */
	f.config.shared_bytes = 2 * M;
	assert_int_equal(mem_node_create(&f.config, &f.node), 0);
	assert_int_equal(ask(&f, "POST /v1/shared/segments",
			     "{\"name\":\"a\",\"size\":1}"),
			 503);
	assert_int_equal(ask(&f, "GET /v1/status", NULL), 200);
	assert_false(json_is_true(
		json_object_get(json_object_get(f.answer, "shared"), "ready")));
	fixture_stop(&f);
}

static void other_nodes_have_none(void **state)
{
	struct mem_fixture f = {0};

	fixture_start(&f);
	assert_int_equal(ask(&f, "POST /v1/shared/segments",
			     "{\"name\":\"a\",\"size\":1}"),
			 405);
	assert_int_equal(ask(&f, "GET /v1/shared/segments", NULL), 200);
	assert_int_equal(ask(&f, "GET /v1/shared/segments/a", NULL), 404);
	assert_int_equal(ask(&f, "POST /v1/shared/members",
			     "{\"name\":\"h1\"," ENDS "}"),
			 405);
	assert_int_equal(ask(&f, "GET /v1/shared/members", NULL), 200);
	assert_int_equal(ask(&f, "GET /v1/status", NULL), 200);
	assert_null(json_object_get(f.answer, "shared"));
	fixture_stop(&f);
}

#define BED(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BED(a_segment_has_one_address),
		BED(bad_requests_are_refused),
		BED(memory_is_charged_and_comes_back),
		BED(ten_thousand_segments),
		BED(small_segments_are_charged_their_places),
		BED(odd_sizes_take_few_rules),
		BED(another_tenant_has_what_it_is_allowed),
		BED(a_tenant_takes_its_segments_along),
		BED(a_machine_joins_and_leaves),
		BED(sixteen_machines_at_most),
		BED(a_tenant_has_its_share_of_machines),
		BED(a_silent_machine_is_expelled),
		BED(a_paused_node_expels_nobody),
		BED(another_switch_begins_another_term),
		BED(who_dies_with_the_switch_loses_all),
		BED(contradictions_are_found),
		BED(metrics_count_it),
		BED(a_node_that_comes_again_begins_anew),
		BED(one_node_leads),
		BED(without_a_switch_nothing_is_promised),
		BED(an_object_gets_its_length_later_and_outlives_its_name),
		BED(memory_of_removed_objects_is_there_for_the_next),
		BED(an_object_of_two_copies_needs_two_nodes),
		BED(ten_thousand_segments_are_too_many),
		BED(what_a_cache_has_is_compared),
		BED(objects_of_a_machine_that_is_gone_go_too),
		cmocka_unit_test(settings_that_cannot_be_are_refused),
		cmocka_unit_test(other_nodes_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
