/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered index over a quiet network: every operation, every limit, round
 * trips, locks that are handed on, clients that die at every single request,
 * and far memory that lies. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "index/tree_node.h"
#include "tree_rig.h"

/* ---- operations --------------------------------------------------------- */

static void a_few_keys(struct rig *r)
{
	struct tree_client *a = client(r), *b = client(r);
	char buf[VALUE_MAX + 1] = {0};
	size_t len;

	check_get(a, "x", NULL);
	put(a, "x", "one");
	check_get(b, "x", "one");
	put(b, "x", "");
	check_get(a, "x", "");
	put(b, "xy", "longer");
	put(b, "w", "before");
	put(a, "x", "1234");
	assert_int_equal(tree_get(b, "x", 1, buf, 2, &len), -EMSGSIZE);
	assert_int_equal(len, 4);
	assert_memory_equal(buf, "12", 2);
	assert_int_equal(tree_del(b, "x", 1), 0);
	assert_int_equal(tree_del(b, "x", 1), -ENOENT);
	check_get(a, "x", NULL);
	check_get(a, "xy", "longer");
	assert_int_equal(tree_put(a, "x", 1, buf, sizeof(buf)), -EMSGSIZE);
	assert_int_equal(tree_put(a, "", 0, "x", 1), -EINVAL);
	assert_int_equal(tree_put(a, "1234567890123", 13, "x", 1), -EINVAL);
	check_whole(a, 2);
	tree_client_destroy(a);
	tree_client_destroy(b);
}

static void writes_reads_deletes(void **state)
{
	play(&small, a_few_keys);
}

struct seen {
	char last[KEY_MAX + 1];
	unsigned count, stop_at;
};

static int see(void *user, const void *key, size_t key_len, const void *value,
	       size_t len)
{
	struct seen *s = user;
	char text[KEY_MAX + 1] = {0};

	memcpy(text, key, key_len);
	assert_true(strcmp(s->last, text) < 0);
	memcpy(s->last, text, sizeof(text));
	s->count++;
	return s->count == s->stop_at ? 77 : 0;
}

static void check_scan(struct tree_client *c, const char *from, const char *to,
		       bool after, unsigned stop_at, unsigned want)
{
	struct tree_range range = {.from = from,
				   .from_len = strlen(from),
				   .to = to,
				   .to_len = to ? strlen(to) : 0,
				   .is_after = after};
	struct seen s = {.stop_at = stop_at};

	assert_int_equal(tree_scan(c, &range, see, &s), stop_at ? 77 : 0);
	assert_int_equal(s.count, want);
}

static void many_keys(struct rig *r)
{
	struct tree_client *a = client(r), *b = client(r);
	char key[KEY_MAX];
	struct rng rng;

	rng_init(&rng, 3);
	/* Both ends of the order, and anywhere. */
	for (unsigned i = 0; i < 100; i++)
		put(a, number(500 + i, key), "up");
	for (unsigned i = 0; i < 100; i++)
		put(b, number(499 - i, key), "down");
	for (unsigned i = 0; i < 100; i++)
		put(i % 2 ? a : b, number(200 + (i * 37) % 100, key), "mix");
	assert_true(tree_client_stats(a)->grown + tree_client_stats(b)->grown >
		    1);
	check_whole(a, 300);
	check_get(b, "k00599", "up");
	check_get(a, "k00400", "down");
	check_get(b, "k00237", "mix");
	check_scan(a, "", NULL, false, 0, 300);
	check_scan(b, "k00300", "k00400", false, 0, 0);
	check_scan(b, "k00450", "k00550", false, 0, 100);
	check_scan(b, "k00450", "k00550", true, 0, 99);
	check_scan(b, "k0045", NULL, false, 7, 7);
	/* With a warm cache a read is one trip and a write two; a scan reads
	 * several leaves in one. */
	for (unsigned i = 400; i < 600; i++)
		check_get(a, number(i, key), i < 500 ? "down" : "up");
	{
		struct tree_stats s = *tree_client_stats(a);

		check_get(a, "k00555", "up");
		put(a, "k00555", "new");
		check_scan(a, "", NULL, false, 0, 300);
		assert_int_equal(tree_client_stats(a)->get_trips - s.get_trips,
				 1);
		assert_int_equal(tree_client_stats(a)->put_trips - s.put_trips,
				 2);
		assert_true(
			2 * (tree_client_stats(a)->scan_trips - s.scan_trips) <
			tree_client_stats(a)->leaves - s.leaves);
	}
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(
			tree_del(i % 2 ? a : b, number(400 + i, key), 6), 0);
	check_whole(a, 200);
	check_scan(b, "", NULL, false, 0, 200);
	assert_true(tree_client_stats(a)->pruned +
			    tree_client_stats(b)->pruned >
		    10);
	tree_client_destroy(a);
	tree_client_destroy(b);
}

static void splits_and_scans(void **state)
{
	play(&small, many_keys);
}

/* ---- memory ------------------------------------------------------------- */

static void window(struct rig *r)
{
	struct tree_client *a = client(r), *b;
	char key[KEY_MAX];
	int err = 0;

	/* A window that moves on: much more than fits at one time. */
	for (unsigned i = 0; i < 3000; i++) {
		put(a, number(i, key), "v");
		if (i >= 200)
			assert_int_equal(tree_del(a, number(i - 200, key), 6),
					 0);
	}
	check_whole(a, 200);
	check_scan(a, "", NULL, false, 0, 200);
	tree_client_destroy(a);
	/* Another one gets what that has left. */
	b = client(r);
	for (unsigned i = 0; i < 400; i++)
		put(b, number(50000 + i, key), "w");
	assert_true(tree_client_stats(b)->adopted > 0);
	for (unsigned i = 0; i < 10000 && !err; i++)
		err = tree_put(b, number(60000 + i, key), 6, "z", 1);
	assert_int_equal(err, -ENOSPC);
	check_get(b, "k50001", "w");
	/* What is there can still be changed. */
	put(b, "k50001", "y");
	check_whole(b, UINT64_MAX);
	tree_client_destroy(b);
}

static void memory_is_used_again(void **state)
{
	play(&small, window);
}

/* ---- locks that are handed on ------------------------------------------- */

struct thread {
	struct rig *r;
	struct tree_client *c;
	unsigned index;
};

static void hammer(void *arg)
{
	struct thread *t = arg;
	char key[KEY_MAX];

	for (unsigned i = 0; i < 60; i++)
		put(t->c, number(i % 3, key), "h");
	t->r->busy--;
}

static void at_home(struct rig *r)
{
	struct thread t[3];
	struct tree_locals *locals;
	uint64_t handed = 0, fails = 0;

	assert_int_equal(tree_locals_create(&r->g, &locals), 0);
	r->busy = ARRAY_LEN(t);
	for (unsigned i = 0; i < ARRAY_LEN(t); i++) {
		t[i] = (struct thread){.r = r,
				       .c = client_with(r, false, locals)};
		assert_int_equal(
			rig_host_spawn(r->host, "thread", hammer, &t[i]), 0);
	}
	while (r->busy)
		client_clock_relax(&r->host->clock);
	for (unsigned i = 0; i < ARRAY_LEN(t); i++) {
		handed += tree_client_stats(t[i].c)->handed;
		fails += tree_client_stats(t[i].c)->lock_fails;
		tree_client_destroy(t[i].c);
	}
	/* Nobody ever found the far lock taken: all waited at home. */
	assert_int_equal(fails, 0);
	assert_true(handed > 60);
	tree_locals_destroy(locals);
}

static void locks_are_handed_on(void **state)
{
	play(&small, at_home);
}

/* ---- death -------------------------------------------------------------- */

enum deed {
	DEED_PUT,   /* into a leaf with room */
	DEED_SPLIT, /* into a full one, whose parent is full, too */
	DEED_ROOT,  /* that splits the root */
	DEED_DEL,
	DEED_EMPTY, /* the last one of a leaf */
	DEEDS,
};

static enum deed deed;

static unsigned keys_before(void)
{
	return deed == DEED_ROOT ? 6 : 60;
}

/* The key that is changed, and how. */
static int do_deed(struct tree_client *c, const char **key)
{
	switch (deed) {
	case DEED_DEL:
		*key = "k00031";
		return tree_del(c, *key, 6);
	case DEED_EMPTY:
		*key = "k00000";
		for (unsigned i = 0; i < 3; i++) {
			static const char *const row[] = {"k00024", "k00025",
							  "k00026"};
			int err = tree_del(c, row[i], 6);

			if (err)
				return err;
		}
		return tree_del(c, "k00027", 6);
	case DEED_PUT:
		*key = "k00030";
		return tree_put(c, *key, 6, "new", 3);
	case DEED_SPLIT:
	case DEED_ROOT:
	case DEEDS:
	default:
		*key = "k00030x";
		for (char x = 'a'; x < 'l'; x++) {
			char text[] = "k00030?";
			int err;

			text[6] = x;
			err = tree_put(c, text, 7, "new", 3);
			if (err)
				return err;
		}
		return tree_put(c, *key, 7, "new", 3);
	}
}

/* A client dies before its n-th request; others must find all keys but perhaps
 * that one, be able to change it, and the index whole. */
static void die_at(struct rig *r, unsigned n, bool *is_over)
{
	struct tree_client *a, *b = client(r);
	const char *key = NULL;
	struct seen s = {0};
	struct tree_range all = {0};
	char text[KEY_MAX];
	int err;

	for (unsigned i = 0; i < keys_before(); i++)
		put(b, number(i, text), "old");
	a = client_with(r, true, NULL);
	r->countdown = n;
	err = do_deed(a, &key);
	*is_over = !err && r->countdown;
	assert_true(err == 0 || err == -ESHUTDOWN);
	r->countdown = 0;
	assert_int_equal(tree_client_is_crashed(a), err == -ESHUTDOWN);
	for (unsigned i = 0; i < keys_before(); i++) {
		bool gone = (deed == DEED_DEL && i == 31) ||
			    (deed == DEED_EMPTY && i >= 24 && i < 28);
		bool new = deed == DEED_PUT &&i == 30;
		char buf[VALUE_MAX];
		size_t len;

		number(i, text);
		if (!gone && !new) {
			check_get(b, text, "old");
			continue;
		}
		err = tree_get(b, text, 6, buf, sizeof(buf), &len);
		assert_true(err == 0 || (gone && err == -ENOENT));
	}
	put(b, key, "mine");
	check_get(b, key, "mine");
	for (unsigned i = 20; i < 40; i++)
		put(b, number(i, text), "mine");
	assert_int_equal(tree_scan(b, &all, see, &s), 0);
	check_whole(b, s.count);
	tree_client_destroy(a);
	for (unsigned i = 0; i < keys_before(); i++)
		(void)!tree_del(b, number(i, text), 6);
	check_whole(b, UINT64_MAX);
	tree_client_destroy(b);
}

static void wipe(struct rig *r)
{
	struct kit_remote p = remote_open(r);

	memset(r->region->mem, 0, r->region->size_bytes);
	memset(r->locks->mem, 0, r->locks->size_bytes);
	assert_int_equal(tree_format(&p, &r->g), 0);
}

static void die_everywhere(struct rig *r)
{
	bool is_over = false;

	for (unsigned n = 1; !is_over; n++) {
		if (n > 1)
			wipe(r);
		die_at(r, n, &is_over);
		assert_true(n < 400);
	}
}

static void death_at_every_request(void **state)
{
	for (deed = 0; deed < DEEDS; deed++)
		play(&small, die_everywhere);
}

/* ---- memory that lies ---------------------------------------------------- */

/* A node's bytes with another content that is whole: fences, state, level and
 * pointers that make no sense together. */
static void lie_whole(struct rig *r, struct rng *rng, uint8_t *at)
{
	struct tree_node *n = (struct tree_node *)at;
	uint64_t any = tree_pointer((uint32_t)rng_below(rng, 40),
				    (uint32_t)rng_below(rng, 3));
	struct tree_key high = {(const uint8_t *)"k0002x", 6};

	switch (rng_below(rng, 5)) {
	case 0:
		tree_node_set_state(&r->g, n, TREE_NODE_DEAD);
		break;
	case 1:
		tree_node_set_end(&r->g, n, high, true, any);
		tree_node_renew(&r->g, n);
		break;
	case 2:
		n->level = (uint8_t)rng_below(rng, TREE_LEVELS_MAX);
		tree_node_set_state(&r->g, n, TREE_NODE_LIVE);
		break;
	case 3:
		n->sibling = le64_put(any);
		tree_node_set_state(&r->g, n, TREE_NODE_LIVE);
		break;
	default:
		n->self = le64_put(any);
		tree_node_set_state(&r->g, n, TREE_NODE_LIVE);
	}
}

static void lie(struct rig *r, struct rng *rng)
{
	for (unsigned i = 0; i < 3; i++) {
		uint8_t *at = r->region->mem + r->g.node_offset +
			      rng_below(rng, 40) * r->g.node_bytes;

		if (rng_below(rng, 3))
			lie_whole(r, rng, at);
		else
			at[rng_below(rng, r->g.node_bytes)] ^= 0x20;
	}
	if (!rng_below(rng, 4))
		r->region->mem[TREE_ROOT_AT + rng_below(rng, 8)] ^= 1;
	if (!rng_below(rng, 4))
		r->locks->mem[rng_below(rng, r->locks->size_bytes)] ^= 0x81;
}

static int see_any(void *user, const void *key, size_t key_len,
		   const void *value, size_t len)
{
	return 0;
}

/* Everything ends, with whatever result: no crash, no loop. */
static void use_lies(struct rig *r, uint64_t seed)
{
	struct tree_config cfg = {.deadline_ms = 2, .cache_nodes = 8};
	struct kit_remote p = remote_open(r);
	struct tree_client *c = client(r), *d;
	struct tree_range all = {0};
	struct tree_report report;
	char key[KEY_MAX], buf[VALUE_MAX];
	struct rng rng;
	size_t len;

	rng_init(&rng, seed);
	for (unsigned i = 0; i < 60; i++)
		put(c, number(i, key), "old");
	tree_client_destroy(c);
	assert_int_equal(tree_client_create(&p, &r->g, &cfg, &d), 0);
	lie(r, &rng);
	for (unsigned i = 0; i < 40; i++) {
		number((unsigned)rng_below(&rng, 80), key);
		switch (rng_below(&rng, 4)) {
		case 0:
			(void)!tree_get(d, key, 6, buf, sizeof(buf), &len);
			break;
		case 1:
			(void)!tree_put(d, key, 6, "new", 3);
			break;
		case 2:
			(void)!tree_del(d, key, 6);
			break;
		default:
			(void)!tree_scan(d, &all, see_any, NULL);
		}
	}
	(void)!tree_check(d, &report);
	tree_client_destroy(d);
}

static void liar(struct rig *r)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		if (seed > 1)
			wipe(r);
		use_lies(r, seed);
	}
}

static void far_memory_may_lie(void **state)
{
	play(&small, liar);
}

/* ---- slots -------------------------------------------------------------- */

/* A client that is stopped at one of its requests for its slot, and another one
 * that comes meanwhile and takes that for death. */
struct sleeper {
	struct rig *r;
	unsigned points; /* requests for slots so far */
	unsigned stop_at;
	bool is_armed; /* sleeps once more, under a lock */
	bool is_gone[CONNS];
	struct tree_client *other;
	int other_err;
};

static struct sleeper sleeper;

static int sleeper_is_alive(void *ctx, const char *conn)
{
	return !sleeper.is_gone[atoi(conn)];
}

static struct kit_remote sleeper_remote(struct rig *r)
{
	struct kit_remote p = remote_open(r);

	p.is_alive = sleeper_is_alive;
	return p;
}

static bool sleeper_point(void *ctx, int point)
{
	struct sleeper *s = ctx;

	if (point == TREE_POINT_SLOT && ++s->points == s->stop_at) {
		struct tree_config cfg = {.deadline_ms = 200};
		struct kit_remote p = sleeper_remote(s->r);

		s->other_err =
			tree_client_create(&p, &s->r->g, &cfg, &s->other);
	}
	if (s->is_armed && point == TREE_POINT_ENTRY) {
		s->is_armed = false;
		if (s->other)
			put(s->other, "c", "C");
	}
	return false;
}

static void sleep_once(struct rig *r)
{
	struct tree_config cfg = {
		.deadline_ms = 200, .crash = sleeper_point, .ctx = &sleeper};
	struct tree_config plain = {.deadline_ms = 200};
	struct kit_remote before = sleeper_remote(r), p;
	struct tree_client *c = NULL;
	int err;

	/* The slot has the name of one that left, and is not there any more. */
	assert_int_equal(tree_client_create(&before, &r->g, &plain, &c), 0);
	tree_client_destroy(c);
	sleeper.r = r;
	sleeper.is_gone[atoi(before.conn)] = true;
	c = NULL;
	p = sleeper_remote(r);
	err = tree_client_create(&p, &r->g, &cfg, &c);
	/* There is one slot: one of them has it, unless nobody came. */
	assert_true(err == 0 || err == -EAGAIN);
	if (sleeper.points >= sleeper.stop_at)
		assert_int_equal(!err + !sleeper.other_err, 1);
	sleeper.is_armed = true;
	if (c && !err)
		put(c, "b", "B");
	else
		put(sleeper.other, "c", "C");
	check_get(c ? c : sleeper.other, c ? "b" : "c", c ? "B" : "C");
	check_whole(c ? c : sleeper.other, 1);
	tree_client_destroy(c);
	tree_client_destroy(sleeper.other);
}

/* It slept after it had made the slot its own and before it had said who it is:
 * the slot still had its predecessor's name, so the other one ended that, took
 * the slot, and both wrote under the same locks. */
static void a_slot_has_one_client(void **state)
{
	struct tree_options one = small;
	unsigned stop_at = 1;

	one.clients = 1;
	do {
		sleeper = (struct sleeper){.stop_at = stop_at};
		play(&one, sleep_once);
	} while (sleeper.points >= stop_at++);
	assert_true(stop_at > 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slot_has_one_client),
		cmocka_unit_test(writes_reads_deletes),
		cmocka_unit_test(splits_and_scans),
		cmocka_unit_test(memory_is_used_again),
		cmocka_unit_test(locks_are_handed_on),
		cmocka_unit_test(death_at_every_request),
		cmocka_unit_test(far_memory_may_lie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
