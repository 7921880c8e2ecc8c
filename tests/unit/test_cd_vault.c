/* SPDX-License-Identifier: Apache-2.0 */
/* Images: what expires is written before it is freed, whoever leads and
 * whatever the vault says; what is loaded is another object. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "cd_bed.h"

#define SAID 3000

/* A node that makes what it is told to, and says how tasks end. */
struct node {
	uint64_t epoch;
	json_t *blocks; /* [index, generation, used, flags] */
	json_t *freed;
	json_t *tasks; /* what it says of them */
	json_t *last;  /* the tasks that it was told last */
};

static unsigned mine(struct bed *b, const char *line, const char *body)
{
	return ask(b, TOKEN_TENANT, line, body);
}

static const char *text(const json_t *row, const char *name)
{
	const char *s = json_string_value(json_object_get(row, name));

	return s ? s : "";
}

static void start(struct bed *b)
{
	const struct cd_config config = {
		.name = "c0",
		.env = &b->env,
		.admin_token = TOKEN_ADMIN,
		.node_token = TOKEN_NODE,
		.default_token = TOKEN_DEFAULT,
		.vault = "/vault",
	};

	assert_int_equal(cd_core_create(&config, &b->core), 0);
	bed_lead(b, "c0");
}

static void begin(struct bed *b, struct node *n)
{
	*b = (struct bed){.env.ops = &bed_ops, .clock_ns = 1000000000};
	assert_int_equal(ledger_store_create(&b->store), 0);
	assert_int_equal(ledger_mem_open(b->store, &b->ledger), 0);
	start(b);
	make_tenant(b, 0);
	pass(b, 0);
	*n = (struct node){.blocks = json_array(),
			   .freed = json_array(),
			   .tasks = json_array()};
	n->epoch = join(b, "m0", FIRST);
}

static void finish(struct bed *b, struct node *n)
{
	json_decref(n->blocks);
	json_decref(n->freed);
	json_decref(n->tasks);
	json_decref(n->last);
	bed_end(b);
}

static void forget(json_t *rows, const json_t *place)
{
	json_t *row;
	size_t i;

	json_array_foreach(rows, i,
			   row) if (json_equal(json_array_get(row, 1),
					       json_array_get(place, 1)))
	{
		(void)json_array_remove(rows, i);
		return;
	}
}

static void obey(struct bed *b, struct node *n)
{
	json_t *orders = json_object_get(b->answer, "block_orders"), *row;
	size_t i;

	json_array_foreach(json_object_get(orders, "make"), i, row)
	{
		json_t *made =
			json_pack("[O, O, i, i]", json_object_get(row, "index"),
				  json_object_get(row, "generation"), 100, 0);

		forget(n->blocks, made);
		(void)json_array_append_new(n->blocks, made);
	}
	json_array_foreach(json_object_get(orders, "free"), i, row)
	{
		forget(n->blocks, row);
		(void)json_array_append(n->freed, row);
	}
	json_decref(n->last);
	n->last = json_incref(json_object_get(b->answer, "tasks"));
	if (!n->last)
		n->last = json_array();
}

/* One beat. */
static void beats(struct bed *b, struct node *n)
{
	json_t *body = json_pack(
		"{s:s, s:I, s:i, s:O, s:O, s:O}", "incarnation", FIRST, "epoch",
		(json_int_t)n->epoch, "used", 0, "blocks", n->blocks, "freed",
		n->freed, "tasks", n->tasks);
	char *said = json_dumps(body, 0);

	assert_int_equal(ask(b, TOKEN_NODE, "POST /v1/nodes/m0/beat", said),
			 200);
	free(said);
	json_decref(body);
	(void)json_array_clear(n->freed);
	(void)json_array_clear(n->tasks);
	obey(b, n);
}

/* Ends all tasks of the last answer that are of that kind: how many. */
static unsigned ends(struct node *n, const char *kind, const char *how,
		     unsigned flags)
{
	unsigned count = 0;
	json_t *row;
	size_t i;

	json_array_foreach(n->last, i, row)
	{
		if (strcmp(text(row, "do"), kind) != 0)
			continue;
		assert_string_equal(text(row, "vault"), "/vault");
		(void)json_array_append_new(
			n->tasks,
			json_pack("{s:O, s:s, s:s, s:i, s:s, s:i}", "id",
				  json_object_get(row, "id"), "end", how, "why",
				  strcmp(how, "done") ? "No space left" : "",
				  "bytes", 172, "crc", "00000000000000aa",
				  "flags", (int)flags));
		count++;
	}
	return count;
}

/* A file of one block in a folder with a lease of a second. */
static void make_file(struct bed *b, struct node *n)
{
	assert_int_equal(mine(b, "POST /v1/ns/f",
			      "{\"kind\":\"folder\",\"lease_ms\":1000}"),
			 201);
	assert_string_equal(text(b->answer, "on_expiry"), "flush");
	assert_int_equal(mine(b, "POST /v1/ns/f/a", "{\"kind\":\"file\"}"),
			 201);
	beats(b, n);
	assert_int_equal(mine(b, "POST /v1/blocks/f/a", "{}"), 200);
	beats(b, n);
	beats(b, n);
	assert_int_equal(json_array_size(n->blocks), 1);
}

static void expire(struct bed *b)
{
	for (unsigned i = 0; i < 10; i++)
		pass(b, 250);
}

static const char *state_now(struct bed *b)
{
	assert_int_equal(mine(b, "GET /v1/ns/f/a", NULL), 200);
	return text(b->answer, "state");
}

static void nothing_is_freed_before_its_image_is_complete(void **state)
{
	struct node n;
	struct bed b;

	(void)state;
	begin(&b, &n);
	make_file(&b, &n);
	expire(&b);
	assert_string_equal(state_now(&b), "flushing");
	assert_int_equal(mine(&b, "GET /v1/map/f/a", NULL), 410);
	beats(&b, &n);
	assert_true(json_is_true(
		json_object_get(json_array_get(n.last, 0), "freeze")));
	assert_int_equal(ends(&n, "save", "done", 0), 1);
	assert_int_equal(json_array_size(n.blocks), 1);
	beats(&b, &n);
	beats(&b, &n);
	assert_int_equal(json_array_size(n.blocks), 1);
	assert_int_equal(ends(&n, "manifest", "done", 0), 1);
	assert_string_equal(state_now(&b), "flushing");
	beats(&b, &n);
	assert_string_equal(state_now(&b), "flushed");
	beats(&b, &n);
	assert_int_equal(json_array_size(n.blocks), 0);
	assert_int_equal(mine(&b, "GET /v1/map/f/a", NULL), 410);
	assert_non_null(strstr(words(&b), "t/f+a@"));
	finish(&b, &n);
}

static void a_vault_that_fails_is_asked_again_with_pauses(void **state)
{
	unsigned tries = 0;
	const json_t *move;
	struct node n;
	struct bed b;

	(void)state;
	begin(&b, &n);
	make_file(&b, &n);
	expire(&b);
	/* A minute: pauses double up to eight seconds. */
	for (unsigned i = 0; i < 240; i++) {
		beats(&b, &n);
		tries += ends(&n, "save", "-ENOSPC", 0);
		pass(&b, 250);
	}
	assert_in_range(tries, 8, 16);
	assert_string_equal(state_now(&b), "flushing");
	assert_non_null(strstr(text(b.answer, "why"), "No space"));
	assert_int_equal(json_array_size(n.blocks), 1);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/status", NULL), 200);
	assert_int_equal(
		json_integer_value(json_object_get(
			json_object_get(b.answer, "vault"), "failing")),
		1);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/overview", NULL), 200);
	assert_non_null(strstr(b.text, "and the vault: No space"));
	/* The page has it, also that of its tenant, and nobody else's. */
	move = json_array_get(json_object_get(b.answer, "moves"), 0);
	assert_string_equal(text(move, "kind"), "flush");
	assert_string_equal(text(move, "state"), "fails");
	assert_non_null(strstr(text(move, "why"), "No space"));
	assert_int_equal(mine(&b, "GET /v1/overview", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(b.answer, "moves")),
			 1);
	assert_null(json_object_get(b.answer, "vault"));
	assert_int_equal(ask(&b, TOKEN_DEFAULT, "GET /v1/overview", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(b.answer, "moves")),
			 0);
	for (unsigned i = 0; i < 60; i++) {
		beats(&b, &n);
		(void)ends(&n, "save", "done", 0);
		(void)ends(&n, "manifest", "done", 0);
		pass(&b, 250);
	}
	assert_string_equal(state_now(&b), "flushed");
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/overview", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(b.answer, "moves")),
			 0);
	assert_int_equal(
		json_integer_value(json_object_get(
			json_object_get(b.answer, "vault"), "flushed")),
		1);
	finish(&b, &n);
}

static void a_vault_that_says_nothing_is_an_alarm(void **state)
{
	struct node n;
	struct bed b;

	(void)state;
	begin(&b, &n);
	make_file(&b, &n);
	expire(&b);
	for (unsigned i = 0; i < 60; i++) {
		beats(&b, &n);
		pass(&b, 250);
	}
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/overview", NULL), 200);
	assert_non_null(strstr(b.text, "the vault is slow"));
	assert_int_equal(json_array_size(n.blocks), 1);
	finish(&b, &n);
}

static void a_new_leader_begins_with_another_image(void **state)
{
	char before[80], after[80];
	struct node n;
	struct bed b;

	(void)state;
	begin(&b, &n);
	make_file(&b, &n);
	expire(&b);
	beats(&b, &n);
	snprintf(before, sizeof(before), "%s",
		 text(json_array_get(n.last, 0), "image"));
	(void)ends(&n, "save", "done", 0);
	bed_lead(&b, "c0");
	pass(&b, 250);
	beats(&b, &n); /* with the end of a task that nobody knows */
	pass(&b, 250);
	beats(&b, &n);
	assert_string_equal(state_now(&b), "flushing");
	snprintf(after, sizeof(after), "%s",
		 text(json_array_get(n.last, 0), "image"));
	for (unsigned i = 0; i < 8; i++) {
		(void)ends(&n, "save", "done", 0);
		(void)ends(&n, "manifest", "done", 0);
		(void)ends(&n, "erase", "done", 0);
		beats(&b, &n);
		pass(&b, 250);
	}
	assert_string_equal(state_now(&b), "flushed");
	assert_int_equal(json_array_size(n.blocks), 0);
	assert_string_not_equal(before, after);
	/* It is the same to the next one. */
	bed_lead(&b, "c0");
	assert_string_equal(state_now(&b), "flushed");
	finish(&b, &n);
}

static void what_is_loaded_is_another_object(void **state)
{
	uint64_t before, after;
	json_t *load;
	struct node n;
	struct bed b;

	(void)state;
	begin(&b, &n);
	make_file(&b, &n);
	assert_int_equal(mine(&b, "GET /v1/ns/f/a", NULL), 200);
	before = number(&b, "id");
	expire(&b);
	for (unsigned i = 0; i < 6; i++) {
		beats(&b, &n);
		(void)ends(&n, "save", "done", 0);
		(void)ends(&n, "manifest", "done", 0);
	}
	assert_string_equal(state_now(&b), "flushed");
	assert_int_equal(mine(&b, "POST /v1/load/f/a", NULL), 202);
	assert_string_equal(state_now(&b), "loading");
	assert_int_equal(mine(&b, "GET /v1/map/f/a", NULL), 429);
	/* A leader that comes in the middle goes on. */
	bed_lead(&b, "c0");
	pass(&b, 250);
	assert_int_equal(ask(&b, TOKEN_NODE, "POST /v1/nodes/m0/beat",
			     "{\"incarnation\":\"" FIRST
			     "\",\"epoch\":0,\"blocks\":[]}"),
			 410);
	n.epoch = join(&b, "m0", FIRST);
	beats(&b, &n);
	load = json_object_get(
		json_array_get(json_object_get(json_object_get(b.answer,
							       "block_orders"),
					       "make"),
			       0),
		"load");
	assert_string_equal(text(load, "vault"), "/vault");
	assert_int_equal(json_integer_value(json_object_get(load, "object")),
			 before);
	beats(&b, &n);
	pass(&b, 250);
	assert_string_equal(state_now(&b), "ready");
	after = number(&b, "id");
	assert_int_not_equal(before, after);
	assert_int_equal(mine(&b, "GET /v1/map/f/a", NULL), 200);
	finish(&b, &n);
}

static void a_load_that_fails_leaves_the_image(void **state)
{
	char said[200];
	struct node n;
	struct bed b;
	json_t *make;

	(void)state;
	begin(&b, &n);
	make_file(&b, &n);
	expire(&b);
	for (unsigned i = 0; i < 6; i++) {
		beats(&b, &n);
		(void)ends(&n, "save", "done", 0);
		(void)ends(&n, "manifest", "done", 0);
	}
	assert_int_equal(mine(&b, "POST /v1/load/f/a", NULL), 202);
	beats(&b, &n);
	make = json_array_get(json_array_get(n.blocks, 0), 1);
	snprintf(said, sizeof(said),
		 "{\"incarnation\":\"" FIRST "\",\"epoch\":%llu,\"blocks\":[],"
		 "\"failed\":[[0,%lld,\"-EBADMSG\",\"0.blk is refused\"]]}",
		 (unsigned long long)n.epoch,
		 (long long)json_integer_value(make));
	assert_int_equal(ask(&b, TOKEN_NODE, "POST /v1/nodes/m0/beat", said),
			 200);
	assert_string_equal(state_now(&b), "flushed");
	assert_string_equal(text(b.answer, "why"), "0.blk is refused");
	assert_non_null(json_object_get(b.answer, "image"));
	finish(&b, &n);
}

static void the_image_of_a_removed_name_is_erased(void **state)
{
	unsigned erased = 0;
	struct node n;
	struct bed b;

	(void)state;
	begin(&b, &n);
	make_file(&b, &n);
	expire(&b);
	for (unsigned i = 0; i < 6; i++) {
		beats(&b, &n);
		(void)ends(&n, "save", "done", 0);
		(void)ends(&n, "manifest", "done", 0);
	}
	assert_int_equal(mine(&b, "DELETE /v1/ns/f", "{\"recursive\":true}"),
			 204);
	bed_lead(&b, "c0"); /* rows are enough to know it */
	n.epoch = join(&b, "m0", FIRST);
	for (unsigned i = 0; i < 6; i++) {
		beats(&b, &n);
		erased += ends(&n, "erase", "done", 0);
		pass(&b, 250);
	}
	assert_int_equal(erased, 1);
	finish(&b, &n);
}

static void a_flush_that_was_asked_for_fails_at_once(void **state)
{
	struct node n;
	struct bed b;

	(void)state;
	begin(&b, &n);
	make_file(&b, &n);
	assert_int_equal(mine(&b, "PATCH /v1/ns/f", "{\"on_expiry\":\"keep\"}"),
			 200);
	assert_int_equal(mine(&b, "POST /v1/flush/f", NULL), 202);
	assert_int_equal(mine(&b, "POST /v1/flush/f/a", NULL), 409);
	beats(&b, &n);
	assert_false(json_is_true(
		json_object_get(json_array_get(n.last, 0), "freeze")));
	assert_int_equal(ends(&n, "save", "-EACCES", 0), 1);
	beats(&b, &n);
	assert_string_equal(state_now(&b), "ready");
	assert_null(json_object_get(b.answer, "flush"));
	assert_string_equal(text(b.answer, "why"), "No space left");
	assert_int_equal(mine(&b, "POST /v1/flush/nothing", NULL), 404);
	finish(&b, &n);
}

static bool says(const json_t *row, const char *name)
{
	return json_is_true(json_object_get(row, name));
}

/* All blocks are halted before one is saved, also one that comes meanwhile. */
static void a_frozen_flush_halts_before_it_saves(void **state)
{
	struct node n;
	struct bed b;

	(void)state;
	begin(&b, &n);
	make_file(&b, &n);
	assert_int_equal(mine(&b, "POST /v1/flush/f/a", "{\"freeze\":1}"), 400);
	assert_int_equal(mine(&b, "POST /v1/flush/f/a", "{\"freeze\":true}"),
			 202);
	beats(&b, &n);
	assert_int_equal(ends(&n, "save", "done", 1), 0);
	assert_int_equal(mine(&b, "POST /v1/blocks/f/a", "{\"after\":0}"), 200);
	assert_int_equal(ends(&n, "halt", "done", 1), 1);
	beats(&b, &n); /* makes it */
	assert_int_equal(ends(&n, "save", "done", 1), 0);
	beats(&b, &n);
	pass(&b, 10);
	beats(&b, &n);
	assert_int_equal(ends(&n, "save", "done", 1), 0);
	assert_true(ends(&n, "halt", "done", 1) > 0);
	beats(&b, &n);
	beats(&b, &n);
	assert_true(says(json_array_get(n.last, 0), "halted"));
	assert_false(says(json_array_get(n.last, 0), "freeze"));
	assert_true(ends(&n, "save", "done", 1) > 1);
	beats(&b, &n);
	beats(&b, &n);
	assert_int_equal(ends(&n, "manifest", "done", 0), 1);
	beats(&b, &n);
	assert_string_equal(state_now(&b), "ready");
	assert_non_null(json_object_get(b.answer, "image"));
	/* One that is not saved in time is given up. */
	assert_int_equal(mine(&b, "POST /v1/flush/f/a", "{\"freeze\":true}"),
			 202);
	beats(&b, &n);
	assert_true(ends(&n, "halt", "done", 1) > 1);
	beats(&b, &n);
	beats(&b, &n);
	assert_true(ends(&n, "save", "-ETIMEDOUT", 1) > 1);
	beats(&b, &n);
	assert_string_equal(state_now(&b), "ready");
	assert_null(json_object_get(b.answer, "flush"));
	assert_non_null(strstr(text(b.answer, "why"), "No space"));
	finish(&b, &n);
}

static void beats_that_say_nonsense_are_refused(void **state)
{
	static const char *const bad[] = {
		"{}",
		"[1]",
		"[{\"id\":1}]",
		"[{\"id\":-1,\"end\":\"done\"}]",
		"[{\"id\":1,\"end\":7}]",
		"[{\"id\":1,\"end\":\"done\",\"bytes\":-2}]",
	};
	char said[SAID];
	struct node n;
	struct bed b;

	(void)state;
	begin(&b, &n);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		snprintf(said, sizeof(said),
			 "{\"incarnation\":\"" FIRST
			 "\",\"epoch\":%llu,\"tasks\":%s}",
			 (unsigned long long)n.epoch, bad[i]);
		assert_int_equal(
			ask(&b, TOKEN_NODE, "POST /v1/nodes/m0/beat", said),
			400);
	}
	finish(&b, &n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_freed_before_its_image_is_complete),
		cmocka_unit_test(a_vault_that_fails_is_asked_again_with_pauses),
		cmocka_unit_test(a_vault_that_says_nothing_is_an_alarm),
		cmocka_unit_test(a_new_leader_begins_with_another_image),
		cmocka_unit_test(what_is_loaded_is_another_object),
		cmocka_unit_test(a_load_that_fails_leaves_the_image),
		cmocka_unit_test(the_image_of_a_removed_name_is_erased),
		cmocka_unit_test(a_flush_that_was_asked_for_fails_at_once),
		cmocka_unit_test(a_frozen_flush_halts_before_it_saves),
		cmocka_unit_test(beats_that_say_nonsense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
