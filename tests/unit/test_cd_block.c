/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of files and queues: orders to nodes, what nodes say, what is lost,
 * and tickets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "base/hex.h"
#include "cd_bed.h"
#include "control/ctl_ticket.h"

static unsigned mine(struct bed *b, const char *line, const char *body)
{
	return ask(b, TOKEN_TENANT, line, body);
}

static void begin(struct bed *b)
{
	bed_make(b);
	make_tenant(b, 0);
	pass(b, 0);
	assert_int_equal(mine(b, "POST /v1/ns/f",
			      "{\"kind\":\"folder\","
			      "\"on_expiry\":\"keep\"}"),
			 201);
	assert_int_equal(mine(b, "POST /v1/ns/f/a", "{\"kind\":\"file\"}"),
			 201);
	assert_int_equal(mine(b, "POST /v1/ns/f/q", "{\"kind\":\"queue\"}"),
			 201);
}

/* A beat with that in it; its orders are in b->answer. */
static unsigned say(struct bed *b, const char *name, uint64_t epoch,
		    const char *run, const char *more)
{
	char line[80], body[2000];

	snprintf(line, sizeof(line), "POST /v1/nodes/%s/beat", name);
	snprintf(body, sizeof(body),
		 "{\"incarnation\":\"%s\",\"epoch\":%llu,\"used\":0%s}", run,
		 (unsigned long long)epoch, more);
	return ask(b, TOKEN_NODE, line, body);
}

static uint64_t lend(struct bed *b, const char *name, const char *run)
{
	uint64_t epoch = join(b, name, run);

	assert_int_equal(say(b, name, epoch, run, ",\"blocks\":[]"), 200);
	return epoch;
}

static json_t *orders(struct bed *b, const char *which)
{
	return json_object_get(json_object_get(b->answer, "block_orders"),
			       which);
}

static uint64_t of(const json_t *row, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(row, name));
}

static json_t *block(struct bed *b, size_t i)
{
	return json_array_get(json_object_get(b->answer, "blocks"), i);
}

static const char *text(const json_t *row, const char *name)
{
	const char *s = json_string_value(json_object_get(row, name));

	return s ? s : "";
}

static void map(struct bed *b, const char *path)
{
	char line[80];

	snprintf(line, sizeof(line), "GET /v1/map/f/%s", path);
	assert_int_equal(mine(b, line, NULL), 200);
}

static size_t grow(struct bed *b, const char *path, int after)
{
	char line[80], body[40];

	snprintf(line, sizeof(line), "POST /v1/blocks/f/%s", path);
	snprintf(body, sizeof(body), "{\"after\":%d}", after);
	assert_int_equal(mine(b, line, body), 200);
	return json_array_size(json_object_get(b->answer, "blocks"));
}

static void an_order_is_told_until_it_is_done(void **state)
{
	char said[200];
	struct bed b;
	uint64_t epoch, generation;

	(void)state;
	begin(&b);
	epoch = lend(&b, "m0", FIRST);
	assert_null(orders(&b, "make"));
	assert_int_equal(grow(&b, "a", -1), 1);
	assert_string_equal(text(block(&b, 0), "state"), "making");
	generation = of(block(&b, 0), "generation");
	for (int i = 0; i < 3; i++) {
		json_t *make;

		assert_int_equal(say(&b, "m0", epoch, FIRST, ",\"blocks\":[]"),
				 200);
		make = orders(&b, "make");
		assert_int_equal(json_array_size(make), 1);
		assert_int_equal(of(json_array_get(make, 0), "generation"),
				 generation);
		assert_int_equal(of(json_array_get(make, 0), "bytes"), 8 * MIB);
		assert_string_equal(text(json_array_get(make, 0), "tenant"),
				    "t");
		if (i == 1) { /* also by the next leader */
			bed_lead(&b, "c0");
			commit(&b);
		}
	}
	snprintf(said, sizeof(said), ",\"blocks\":[[0,%llu,4096,1]]",
		 (unsigned long long)generation);
	assert_int_equal(say(&b, "m0", epoch, FIRST, said), 200);
	assert_null(orders(&b, "make"));
	map(&b, "a");
	assert_string_equal(text(block(&b, 0), "state"), "ready");
	/* Its end, the same way. */
	assert_int_equal(mine(&b, "DELETE /v1/ns/f/a", NULL), 204);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(say(&b, "m0", epoch, FIRST, said), 200);
		assert_int_equal(json_array_size(orders(&b, "free")), 1);
		if (i == 1) {
			bed_lead(&b, "c0");
			commit(&b);
		}
	}
	/* The place is used again only now, under another number. */
	assert_int_equal(grow(&b, "q", -1), 1);
	assert_int_equal(of(block(&b, 0), "index"), 1);
	snprintf(said, sizeof(said), ",\"blocks\":[],\"freed\":[[0,%llu]]",
		 (unsigned long long)generation);
	assert_int_equal(say(&b, "m0", epoch, FIRST, said), 200);
	assert_int_equal(json_array_size(orders(&b, "free")), 0);
	assert_int_equal(grow(&b, "q", 0), 3);
	assert_int_equal(of(block(&b, 1), "index"), 0);
	assert_true(of(block(&b, 1), "generation") > generation);
	bed_end(&b);
}

static void runs_double_and_nodes_share(void **state)
{
	size_t at[2] = {0};
	struct bed b;

	(void)state;
	begin(&b);
	(void)lend(&b, "m0", FIRST);
	(void)lend(&b, "m1", FIRST);
	/* One that never speaks of blocks has none. */
	(void)join(&b, "m2", FIRST);
	assert_int_equal(grow(&b, "a", -1), 1);
	assert_int_equal(grow(&b, "a", -1), 1); /* it has one */
	assert_int_equal(grow(&b, "a", 0), 3);
	assert_int_equal(grow(&b, "a", 0), 3);
	assert_int_equal(grow(&b, "a", 2), 7);
	assert_int_equal(grow(&b, "a", 6), 15);
	bed_lead(&b, "c0");
	commit(&b);
	(void)lend(&b, "m0", FIRST);
	(void)lend(&b, "m1", FIRST);
	assert_int_equal(grow(&b, "a", 14), 31);
	assert_int_equal(grow(&b, "a", 30), 63);
	for (size_t i = 0; i < 63; i++) {
		assert_int_equal(of(block(&b, i), "number"), i);
		at[text(block(&b, i), "node")[1] - '0']++;
	}
	assert_true(at[0] > 25 && at[1] > 25);
	/* 128 blocks of 8 MiB are all that a node of 1 GiB has. */
	assert_int_equal(grow(&b, "a", 62), 95);
	assert_int_equal(grow(&b, "a", 94), 127);
	assert_int_equal(grow(&b, "a", 126), 159);
	assert_int_equal(grow(&b, "a", 158), 191);
	assert_int_equal(grow(&b, "a", 190), 223);
	assert_int_equal(grow(&b, "a", 222), 255);
	assert_int_equal(grow(&b, "a", 254), 256);
	assert_int_equal(mine(&b, "POST /v1/blocks/f/a", "{\"after\":255}"),
			 507);
	bed_end(&b);
}

static void runs_are_as_long_as_they_are_used_up_fast(void **state)
{
	struct bed b;

	(void)state;
	begin(&b);
	(void)lend(&b, "m0", FIRST);
	assert_int_equal(grow(&b, "a", -1), 1);
	/* A block in a second is slow. */
	b.clock_ns += 1000000000;
	assert_int_equal(grow(&b, "a", 0), 2);
	b.clock_ns += 50000000;
	assert_int_equal(grow(&b, "a", 1), 4);
	b.clock_ns += 50000000;
	assert_int_equal(grow(&b, "a", 3), 8);
	b.clock_ns += 1000000000;
	assert_int_equal(grow(&b, "a", 7), 10);
	b.clock_ns += 1000000000;
	assert_int_equal(grow(&b, "a", 9), 11);
	bed_end(&b);
}

/* Who asks knows how much will come. */
static void no_more_are_made_than_were_asked_for(void **state)
{
	struct bed b;

	(void)state;
	begin(&b);
	(void)lend(&b, "m0", FIRST);
	assert_int_equal(grow(&b, "a", -1), 1);
	assert_int_equal(
		mine(&b, "POST /v1/blocks/f/a", "{\"after\":0,\"most\":1}"),
		200);
	assert_null(block(&b, 2));
	assert_int_equal(grow(&b, "a", 1), 4); /* twice as many as before */
	bed_end(&b);
}

static void what_a_node_cannot_make_is_made_elsewhere(void **state)
{
	char said[200];
	struct bed b;
	uint64_t first, epoch[2];
	const char *node[] = {"m0", "m1"};
	unsigned at;

	(void)state;
	begin(&b);
	epoch[0] = lend(&b, "m0", FIRST);
	epoch[1] = lend(&b, "m1", FIRST);
	assert_int_equal(grow(&b, "a", -1), 1);
	first = of(block(&b, 0), "generation");
	at = text(block(&b, 0), "node")[1] == '1';
	snprintf(said, sizeof(said),
		 ",\"blocks\":[],\"failed\":[[0,%llu,\"-ENOSPC\"]]",
		 (unsigned long long)first);
	assert_int_equal(say(&b, node[at], epoch[at], FIRST, said), 200);
	/* It is to forget that number for ever. */
	assert_int_equal(json_array_size(orders(&b, "free")), 1);
	map(&b, "a");
	assert_null(block(&b, 0));
	assert_int_equal(grow(&b, "a", -1), 2);
	assert_string_equal(text(block(&b, 0), "node"), node[!at]);
	assert_string_equal(text(block(&b, 1), "node"), node[!at]);
	/* A quota ends everywhere. */
	snprintf(said, sizeof(said),
		 ",\"blocks\":[],\"failed\":[[0,%llu,\"-EDQUOT\"],[1,%llu,"
		 "\"-EDQUOT\"]]",
		 (unsigned long long)of(block(&b, 0), "generation"),
		 (unsigned long long)of(block(&b, 1), "generation"));
	assert_int_equal(say(&b, node[!at], epoch[!at], FIRST, said), 200);
	assert_int_equal(mine(&b, "POST /v1/blocks/f/a", "{}"), 507);
	assert_non_null(strstr(words(&b), "quota"));
	/* Who asks again may have more luck. */
	assert_true(grow(&b, "a", -1) > 0);
	bed_end(&b);
}

static const char *state_in(struct bed *b, const char *path)
{
	char line[80];

	snprintf(line, sizeof(line), "GET /v1/ns/f/%s", path);
	assert_int_equal(mine(b, line, NULL), 200);
	return text(b->answer, "state");
}

static void a_node_that_is_gone_takes_its_blocks_along(void **state)
{
	struct bed b;
	uint64_t epoch;

	(void)state;
	begin(&b);
	epoch = lend(&b, "m0", FIRST);
	assert_int_equal(grow(&b, "a", -1), 1);
	assert_string_equal(state_in(&b, "a"), "ready");
	/* Silent: lost for now. */
	for (int i = 0; i < 50; i++)
		pass(&b, 250);
	assert_string_equal(state_in(&b, "a"), "lost");
	assert_int_equal(mine(&b, "POST /v1/blocks/f/a", "{\"after\":0}"), 503);
	assert_int_equal(say(&b, "m0", epoch, FIRST, ",\"blocks\":[]"), 200);
	assert_string_equal(state_in(&b, "a"), "ready");
	/* Started anew: for good, whoever leads. */
	(void)lend(&b, "m0", SECOND);
	assert_null(orders(&b, "make"));
	for (int i = 0; i < 2; i++) {
		assert_string_equal(state_in(&b, "a"), "lost");
		assert_non_null(strstr(text(b.answer, "why"), "anew"));
		bed_lead(&b, "c0");
		commit(&b);
	}
	(void)lend(&b, "m0", SECOND);
	assert_int_equal(grow(&b, "q", -1), 1);
	assert_int_equal(of(block(&b, 0), "index"), 0);
	/* Forgotten: the same. */
	for (int i = 0; i < 50; i++)
		pass(&b, 250);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "DELETE /v1/nodes/m0", NULL),
			 204);
	assert_string_equal(state_in(&b, "q"), "lost");
	bed_lead(&b, "c0");
	commit(&b);
	assert_string_equal(state_in(&b, "q"), "lost");
	/* A lost one can be removed, and its name used. */
	assert_int_equal(mine(&b, "DELETE /v1/ns/f/a", NULL), 204);
	assert_int_equal(mine(&b, "POST /v1/ns/f/a", "{\"kind\":\"file\"}"),
			 201);
	bed_end(&b);
}

static void what_nobody_knows_is_freed(void **state)
{
	struct bed b;
	uint64_t epoch;

	(void)state;
	begin(&b);
	epoch = lend(&b, "m0", FIRST);
	assert_int_equal(say(&b, "m0", epoch, FIRST,
			     ",\"blocks\":[[7,99,0,0],[9,98,0,0]]"),
			 200);
	assert_int_equal(json_array_size(orders(&b, "free")), 2);
	assert_int_equal(say(&b, "m0", epoch, FIRST,
			     ",\"blocks\":[],\"freed\":[[7,99],[9,98]]"),
			 200);
	assert_null(orders(&b, "free"));
	bed_end(&b);
}

static void a_store_gives_back_what_is_drained_anywhere(void **state)
{
	unsigned long long g[3];
	char said[300];
	struct bed b;
	uint64_t epoch;

	(void)state;
	begin(&b);
	epoch = lend(&b, "m0", FIRST);
	assert_int_equal(mine(&b, "POST /v1/ns/f/kv", "{\"kind\":\"ekv\"}"),
			 201);
	/* One at a time. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(grow(&b, "kv", i - 1), i + 1);
	for (size_t i = 0; i < 3; i++)
		g[i] = (unsigned long long)of(block(&b, i), "generation");
	snprintf(said, sizeof(said),
		 ",\"blocks\":[[0,%llu,5,0],[1,%llu,0,3],[2,%llu,9,0]]", g[0],
		 g[1], g[2]);
	assert_int_equal(say(&b, "m0", epoch, FIRST, said), 200);
	assert_int_equal(json_array_size(orders(&b, "free")), 1);
	snprintf(said, sizeof(said), ",\"blocks\":[[0,%llu,0,3],[2,%llu,9,0]]",
		 g[0], g[2]);
	assert_int_equal(say(&b, "m0", epoch, FIRST, said), 200);
	map(&b, "kv");
	assert_int_equal(of(block(&b, 0), "number"), 2);
	assert_null(block(&b, 1));
	/* Never the last one, whatever is said. */
	snprintf(said, sizeof(said), ",\"blocks\":[[2,%llu,9,3]]", g[2]);
	assert_int_equal(say(&b, "m0", epoch, FIRST, said), 200);
	assert_int_equal(grow(&b, "kv", 2), 2);
	assert_int_equal(of(block(&b, 1), "number"), 3);
	bed_end(&b);
}

static void a_queue_gives_its_drained_front_back(void **state)
{
	unsigned long long g[3];
	char said[300];
	struct bed b;
	uint64_t epoch;

	(void)state;
	begin(&b);
	epoch = lend(&b, "m0", FIRST);
	assert_int_equal(grow(&b, "q", -1), 1);
	assert_int_equal(grow(&b, "q", 0), 3);
	for (size_t i = 0; i < 3; i++)
		g[i] = (unsigned long long)of(block(&b, i), "generation");
	/* The middle one first: order is kept. */
	snprintf(said, sizeof(said),
		 ",\"blocks\":[[0,%llu,0,1],[1,%llu,0,3],[2,%llu,9,0]]", g[0],
		 g[1], g[2]);
	assert_int_equal(say(&b, "m0", epoch, FIRST, said), 200);
	assert_null(orders(&b, "free"));
	snprintf(said, sizeof(said), ",\"blocks\":[[0,%llu,0,3],[2,%llu,0,3]]",
		 g[0], g[2]);
	assert_int_equal(say(&b, "m0", epoch, FIRST, said), 200);
	assert_int_equal(json_array_size(orders(&b, "free")), 2);
	map(&b, "q");
	assert_int_equal(of(block(&b, 0), "number"), 2);
	assert_null(block(&b, 1));
	assert_int_equal(grow(&b, "q", 2), 5);
	/* Also after that, by the next leader. */
	bed_lead(&b, "c0");
	commit(&b);
	assert_int_equal(say(&b, "m0", epoch, FIRST, ",\"blocks\":[]"), 200);
	assert_int_equal(json_array_size(orders(&b, "free")), 2);
	map(&b, "q");
	assert_int_equal(of(block(&b, 0), "number"), 2);
	bed_end(&b);
}

static void bad_beats_change_nothing(void **state)
{
	static const char *const bad[] = {
		",\"blocks\":{}",	    ",\"blocks\":[1]",
		",\"blocks\":[[]]",	    ",\"blocks\":[[0,1,2]]",
		",\"blocks\":[[-1,1,2,3]]", ",\"blocks\":[[65536,1,2,3]]",
		",\"blocks\":[[0,-1,2,3]]", ",\"blocks\":[[0,1,2,\"3\"]]",
		",\"freed\":[[0]]",	    ",\"freed\":7",
		",\"failed\":[[0,1]]",	    ",\"failed\":[[0,1,2]]",
	};
	struct bed b;
	uint64_t epoch;

	(void)state;
	begin(&b);
	epoch = lend(&b, "m0", FIRST);
	assert_int_equal(grow(&b, "a", -1), 1);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(say(&b, "m0", epoch, FIRST, bad[i]), 400);
	map(&b, "a");
	assert_string_equal(text(block(&b, 0), "state"), "making");
	/* Nor do beats of another run. */
	assert_int_equal(say(&b, "m0", epoch + 1, FIRST, ",\"blocks\":[]"),
			 410);
	assert_int_equal(say(&b, "m0", epoch, SECOND, ",\"blocks\":[]"), 410);
	bed_end(&b);
}

/* ---- tickets ------------------------------------------------------------ */

static int verify(struct bed *b, const struct ctl_ticket_keys *keys,
		  struct ctl_ticket *out)
{
	uint8_t bytes[CTL_TICKET_BYTES];

	map(b, "q");
	assert_true(hex_read(text(b->answer, "ticket"), bytes, sizeof(bytes)));
	return ctl_ticket_verify(bytes, keys, b->clock_ns / 1000000000, out);
}

static void hear_keys(struct bed *b, uint64_t epoch,
		      struct ctl_ticket_keys *keys)
{
	assert_int_equal(say(b, "m0", epoch, FIRST, ",\"blocks\":[]"), 200);
	assert_int_equal(
		ctl_ticket_keys_parse(json_object_get(b->answer, "ticket_keys"),
				      keys),
		0);
}

static void a_map_has_a_ticket_that_nodes_believe(void **state)
{
	struct ctl_ticket_keys keys, old;
	struct ctl_ticket t;
	struct bed b;
	uint64_t epoch, first;

	(void)state;
	begin(&b);
	epoch = lend(&b, "m0", FIRST);
	hear_keys(&b, epoch, &old);
	assert_int_equal(old.count, 1);
	assert_int_equal(verify(&b, &old, &t), 0);
	assert_string_equal(t.tenant, "t");
	assert_int_equal(t.kind, CTL_TICKET_QUEUE);
	assert_int_equal(t.object, number(&b, "object"));
	first = t.key_id;
	/* The next leader signs with the same key. */
	bed_lead(&b, "c0");
	commit(&b);
	assert_int_equal(verify(&b, &old, &t), 0);
	/* A day later there is another one, which signs a minute later. */
	pass(&b, 24 * 3600 * 1000ull);
	assert_int_equal(verify(&b, &old, &t), 0);
	hear_keys(&b, epoch, &keys);
	assert_int_equal(keys.count, 2);
	pass(&b, 61000);
	assert_int_equal(verify(&b, &old, &t), -ENOKEY);
	assert_int_equal(verify(&b, &keys, &t), 0);
	assert_true(t.key_id > first);
	/* And the old one goes. */
	pass(&b, 2 * 3600 * 1000ull + 1000);
	hear_keys(&b, epoch, &keys);
	assert_int_equal(keys.count, 1);
	assert_int_equal(verify(&b, &keys, &t), 0);
	bed_lead(&b, "c0");
	commit(&b);
	hear_keys(&b, epoch, &keys);
	assert_int_equal(keys.count, 1);
	bed_end(&b);
}

/* What is left on a node that shall be emptied is named, and is the last word
 * when the node has heard of it. */
static void a_node_is_known_with_all_that_is_on_it(void **state)
{
	char drained[64];
	struct bed b;
	uint64_t epoch;
	json_t *row;

	(void)state;
	begin(&b);
	epoch = lend(&b, "m0", FIRST);
	(void)grow(&b, "a", -1);
	(void)grow(&b, "a", 0);
	(void)grow(&b, "q", -1);
	assert_int_equal(say(&b, "m0", epoch, FIRST,
			     ",\"names\":[{\"tenant\":\"t\",\"name\":\"r\","
			     "\"size\":5}],\"names_complete\":true"),
			 200);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/nodes/m0/drain",
			     "{\"drain\":true}"),
			 200);
	assert_false(json_is_true(json_object_get(b.answer, "left_last")));
	assert_int_equal(say(&b, "m0", epoch, FIRST, ""), 200);
	snprintf(drained, sizeof(drained),
		 ",\"drained\":true,\"drain_order\":%llu",
		 (unsigned long long)number(&b, "drain_order"));
	assert_int_equal(say(&b, "m0", epoch, FIRST, drained), 200);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/nodes/m0", NULL), 200);
	assert_true(json_is_true(json_object_get(b.answer, "left_last")));
	assert_true(json_is_true(json_object_get(b.answer, "left_complete")));
	assert_int_equal(json_array_size(json_object_get(b.answer, "left")), 1);
	assert_int_equal(json_array_size(json_object_get(b.answer, "blocks")),
			 2);
	row = block(&b, 0);
	if (strcmp(text(row, "path"), "/f/a") != 0)
		row = block(&b, 1);
	assert_string_equal(text(row, "path"), "/f/a");
	assert_string_equal(text(row, "tenant"), "t");
	assert_string_equal(text(row, "kind"), "file");
	assert_true(of(row, "blocks") >= 2);
	assert_int_equal(of(row, "bytes"), of(row, "blocks") * 8 * MIB);
	/* What was removed is on its way out. */
	assert_int_equal(mine(&b, "DELETE /v1/ns/f/a", NULL), 204);
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/nodes/m0", NULL), 200);
	assert_int_equal(json_array_size(json_object_get(b.answer, "blocks")),
			 1);
	/* Not any more: it takes memory again. */
	assert_int_equal(ask(&b, TOKEN_ADMIN, "POST /v1/nodes/m0/drain",
			     "{\"drain\":false}"),
			 200);
	assert_false(json_is_true(json_object_get(b.answer, "left_last")));
	assert_int_equal(ask(&b, TOKEN_ADMIN, "GET /v1/nodes/m9", NULL), 404);
	bed_end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_order_is_told_until_it_is_done),
		cmocka_unit_test(runs_double_and_nodes_share),
		cmocka_unit_test(runs_are_as_long_as_they_are_used_up_fast),
		cmocka_unit_test(no_more_are_made_than_were_asked_for),
		cmocka_unit_test(what_a_node_cannot_make_is_made_elsewhere),
		cmocka_unit_test(a_node_that_is_gone_takes_its_blocks_along),
		cmocka_unit_test(what_nobody_knows_is_freed),
		cmocka_unit_test(a_queue_gives_its_drained_front_back),
		cmocka_unit_test(a_store_gives_back_what_is_drained_anywhere),
		cmocka_unit_test(bad_beats_change_nothing),
		cmocka_unit_test(a_map_has_a_ticket_that_nodes_believe),
		cmocka_unit_test(a_node_is_known_with_all_that_is_on_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
