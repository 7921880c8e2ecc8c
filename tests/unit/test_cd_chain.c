/* SPDX-License-Identifier: Apache-2.0 */
/* Who is a member of a chain: what the controller decides when nodes go, come
 * and are to be emptied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cd_bed.h"

enum {
	NODES = 3,
	BEAT_MS = 250,
};

/* A node that makes what it is told to, believes each chain, and has a whole
 * copy at once. */
struct node {
	uint64_t epoch;
	bool is_dead;
	json_t *blocks;	 /* [index, generation, used, flags] */
	json_t *chained; /* [index, generation, epoch, whole] */
	json_t *freed;
	json_t *tasks; /* what it says of them */
};

struct rack {
	struct bed bed;
	struct node node[NODES];
};

static const char *const names[NODES] = {"m0", "m1", "m2"};

static unsigned mine(struct rack *r, const char *line, const char *body)
{
	return ask(&r->bed, TOKEN_TENANT, line, body);
}

static const char *text(const json_t *row, const char *name)
{
	const char *s = json_string_value(json_object_get(row, name));

	return s ? s : "";
}

/* Replaces the row of that generation, or takes it away. */
static void set_row(json_t *rows, const json_t *generation, json_t *fresh)
{
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (!json_equal(json_array_get(row, 1), generation))
			continue;
		(void)json_array_remove(rows, i);
		break;
	}
	if (fresh)
		(void)json_array_append_new(rows, fresh);
}

static void obey_blocks(struct node *n, const json_t *orders)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(orders, "make"), i, row)
	{
		json_t *g = json_object_get(row, "generation");

		set_row(n->blocks, g,
			json_pack("[O, O, i, i]", json_object_get(row, "index"),
				  g, 100, 0));
	}
	json_array_foreach(json_object_get(orders, "free"), i, row)
	{
		set_row(n->blocks, json_array_get(row, 1), NULL);
		set_row(n->chained, json_array_get(row, 1), NULL);
		(void)json_array_append(n->freed, row);
	}
}

static void obey(struct node *n, const json_t *answer)
{
	json_t *row;
	size_t i;

	obey_blocks(n, json_object_get(answer, "block_orders"));
	json_array_foreach(json_object_get(answer, "chains"), i, row)
	{
		json_t *g = json_object_get(row, "generation");

		set_row(n->chained, g,
			json_pack("[O, O, O, i]", json_object_get(row, "index"),
				  g, json_object_get(row, "epoch"), 1));
	}
	json_array_foreach(json_object_get(answer, "tasks"), i, row)
	{
		(void)json_array_append_new(
			n->tasks,
			json_pack("{s:O, s:s, s:s, s:i, s:s, s:i}", "id",
				  json_object_get(row, "id"), "end", "done",
				  "why", "", "bytes", 172, "crc",
				  "00000000000000aa", "flags", 0));
	}
}

static void beats(struct rack *r, unsigned i)
{
	struct node *n = &r->node[i];
	char line[64], *said;
	json_t *body = json_pack(
		"{s:s, s:I, s:i, s:b, s:O, s:O, s:O, s:O}", "incarnation",
		FIRST, "epoch", (json_int_t)n->epoch, "used", 0, "drained",
		false, "blocks", n->blocks, "chained", n->chained, "freed",
		n->freed, "tasks", n->tasks);

	said = json_dumps(body, 0);
	json_decref(body);
	(void)snprintf(line, sizeof(line), "POST /v1/nodes/%s/beat", names[i]);
	assert_int_equal(ask(&r->bed, TOKEN_NODE, line, said), 200);
	free(said);
	(void)json_array_clear(n->freed);
	(void)json_array_clear(n->tasks);
	obey(n, r->bed.answer);
}

/* Time goes on; those that live beat. */
static void go_on(struct rack *r, unsigned ms)
{
	for (; ms; ms -= BEAT_MS) {
		for (unsigned i = 0; i < NODES; i++)
			if (!r->node[i].is_dead)
				beats(r, i);
		pass(&r->bed, BEAT_MS);
	}
}

static void begin(struct rack *r, const char *root)
{
	const struct cd_config config = {
		.name = "c0",
		.env = &r->bed.env,
		.admin_token = TOKEN_ADMIN,
		.node_token = TOKEN_NODE,
		.default_token = TOKEN_DEFAULT,
		.vault = "/vault",
	};
	struct bed *b = &r->bed;

	*r = (struct rack){
		.bed = {.env.ops = &bed_ops, .clock_ns = 1000000000}};
	assert_int_equal(ledger_store_create(&b->store), 0);
	assert_int_equal(ledger_mem_open(b->store, &b->ledger), 0);
	assert_int_equal(cd_core_create(&config, &b->core), 0);
	bed_lead(b, "c0");
	make_tenant(b, 0);
	for (unsigned i = 0; i < NODES; i++)
		r->node[i] = (struct node){.epoch = join(b, names[i], FIRST),
					   .blocks = json_array(),
					   .chained = json_array(),
					   .freed = json_array(),
					   .tasks = json_array()};
	go_on(r, 1000);
	assert_int_equal(mine(r, "POST /v1/ns/f", root), 201);
	assert_int_equal(
		mine(r, "POST /v1/ns/f/a", "{\"kind\":\"file\",\"copies\":2}"),
		201);
	assert_int_equal(mine(r, "POST /v1/blocks/f/a", "{}"), 200);
	go_on(r, 1000);
}

static void end(struct rack *r)
{
	for (unsigned i = 0; i < NODES; i++) {
		json_decref(r->node[i].blocks);
		json_decref(r->node[i].chained);
		json_decref(r->node[i].freed);
		json_decref(r->node[i].tasks);
	}
	bed_end(&r->bed);
}

/* "m0 > m1", and so on. */
static void chain_now(struct rack *r, char out[80])
{
	assert_int_equal(mine(r, "GET /v1/ns/f/a", NULL), 200);
	(void)snprintf(out, 80, "%s",
		       json_string_value(json_array_get(
			       json_object_get(r->bed.answer, "chains"), 0)));
}

/* Which node is first in the chain. */
static unsigned head_of(const char *chain)
{
	unsigned i = 0;

	while (i < NODES && strncmp(chain, names[i], 2) != 0)
		i++;
	assert_in_range(i, 0, NODES - 1);
	return i;
}

#define KEEPS  "{\"kind\":\"folder\",\"lease_ms\":3600000}"
#define BRIEFS "{\"kind\":\"folder\",\"lease_ms\":1000}"

static void a_node_that_is_down_is_replaced(void **state)
{
	char before[80], after[80];
	struct rack r;
	unsigned head;

	(void)state;
	begin(&r, KEEPS);
	chain_now(&r, before);
	assert_int_equal(strlen(before), strlen("m0 > m1"));
	head = head_of(before);
	r.node[head].is_dead = true;
	go_on(&r, 15000);
	chain_now(&r, after);
	assert_int_equal(strlen(after), strlen("m0 > m1"));
	assert_null(strstr(after, names[head]));
	/* The former second one is first: it has all that was answered. */
	assert_memory_equal(after, before + strlen("m0 > "), 2);
	end(&r);
}

static void the_last_one_that_lives_is_kept(void **state)
{
	struct rack r;

	(void)state;
	begin(&r, KEEPS);
	for (unsigned i = 0; i < NODES; i++)
		r.node[i].is_dead = true;
	go_on(&r, 15000);
	assert_int_equal(mine(&r, "GET /v1/ns/f/a", NULL), 200);
	assert_string_equal(text(r.bed.answer, "state"), "lost");
	assert_int_equal(
		json_integer_value(json_object_get(r.bed.answer, "copies_now")),
		0);
	/* Its rows are there, for nodes that were away only. */
	for (unsigned i = 0; i < NODES; i++)
		r.node[i].is_dead = false;
	go_on(&r, 2000);
	assert_int_equal(mine(&r, "GET /v1/ns/f/a", NULL), 200);
	assert_int_equal(
		json_integer_value(json_object_get(r.bed.answer, "copies_now")),
		2);
	end(&r);
}

static void a_node_that_is_drained_is_left(void **state)
{
	char chain[80], line[64];
	struct rack r;
	unsigned head;

	(void)state;
	begin(&r, KEEPS);
	chain_now(&r, chain);
	head = head_of(chain);
	(void)snprintf(line, sizeof(line), "POST /v1/nodes/%s/drain",
		       names[head]);
	assert_int_equal(ask(&r.bed, TOKEN_ADMIN, line, "{\"drain\":true}"),
			 200);
	go_on(&r, 5000);
	chain_now(&r, chain);
	assert_int_equal(strlen(chain), strlen("m0 > m1"));
	assert_null(strstr(chain, names[head]));
	assert_int_equal(json_array_size(r.node[head].blocks), 0);
	end(&r);
}

/* The head dies when the lease is over: the next one is saved. */
static void what_expires_is_saved_from_a_copy(void **state)
{
	char chain[80];
	struct rack r;

	(void)state;
	begin(&r, BRIEFS);
	chain_now(&r, chain);
	r.node[head_of(chain)].is_dead = true;
	go_on(&r, 20000);
	assert_int_equal(mine(&r, "GET /v1/ns/f/a", NULL), 200);
	assert_string_equal(text(r.bed.answer, "state"), "flushed");
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_that_is_down_is_replaced),
		cmocka_unit_test(the_last_one_that_lives_is_kept),
		cmocka_unit_test(a_node_that_is_drained_is_left),
		cmocka_unit_test(what_expires_is_saved_from_a_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
