/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of a transaction, the keys that it watches, and its stage. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "redis/command.h"
#include "redis/store.h"

enum {
	PLENTY = 1 << 20,
};

static struct resp_str str(const char *text)
{
	return (struct resp_str){text, strlen(text)};
}

/* Queues a command given as words. */
static int queue(struct multi *m, const char *words, uint64_t bytes_max)
{
	struct resp_parser p = {0};
	struct resp_limits limits = {.bulk_max = PLENTY};
	char line[256];
	int len = snprintf(line, sizeof(line), "%s\r\n", words), err;
	const struct command *cmd;

	assert_int_equal(resp_parse(&p, line, (size_t)len, &limits), 1);
	cmd = command_find(resp_arg(&p, line, 0));
	assert_non_null(cmd);
	err = multi_queue(m, cmd, p.argc, p.span, line, bytes_max);
	memset(line, '!', sizeof(line)); /* the queue has its own copy */
	resp_parser_release(&p);
	return err;
}

static void expect_keys(const struct multi *m, const char *want)
{
	struct aq_kv_key keys[8];
	char text[128] = "";
	uint32_t count;

	assert_int_equal(multi_keys(m, keys, 8, &count), 0);
	for (uint32_t i = 0; i < count; i++) {
		strncat(text, keys[i].key, keys[i].key_len);
		strcat(text, " ");
	}
	assert_string_equal(text, want);
}

static void a_queue_has_each_key_once(void **state)
{
	struct aq_kv_change none = {0};
	struct multi m = {.is_on = true};
	struct aq_kv_key keys[8];
	uint32_t count;

	(void)state;
	assert_int_equal(multi_watch(&m, str("seen"), &none, PLENTY), 0);
	assert_int_equal(queue(&m, "set a 1", PLENTY), 0);
	assert_int_equal(queue(&m, "mset b 1 a 2", PLENTY), 0);
	assert_int_equal(queue(&m, "ping", PLENTY), 0);
	assert_int_equal(queue(&m, "del c seen b \"\"", PLENTY), 0);
	assert_int_equal(m.count, 4);
	expect_keys(&m, "seen a b c ");
	assert_int_equal(multi_keys(&m, keys, 3, &count), -E2BIG);
	multi_discard(&m);
	assert_false(m.is_on);
	expect_keys(&m, "seen ");
	multi_unwatch(&m);
	assert_int_equal(m.bytes, 0);
}

static void a_queue_is_bounded(void **state)
{
	struct multi m = {.is_on = true};
	uint64_t bytes;
	int err = 0;

	(void)state;
	while (!err)
		err = queue(&m, "set key value", 4096);
	assert_int_equal(err, -E2BIG);
	assert_in_range(m.bytes, 1024, 4096);
	multi_release(&m);
	assert_int_equal(m.bytes, 0);
	for (unsigned i = 0; i < MULTI_COMMANDS_MAX; i++)
		assert_int_equal(queue(&m, "ping", UINT64_MAX), 0);
	bytes = m.bytes;
	assert_int_equal(queue(&m, "ping", UINT64_MAX), -E2BIG);
	assert_int_equal(m.bytes, bytes);
	multi_release(&m);
}

static void watched_keys_are_bounded(void **state)
{
	struct aq_kv_change big = {.value = "xxxxxxxx", .value_len = 8};
	struct multi m = {0};
	char key[8];

	(void)state;
	assert_int_equal(multi_watch(&m, str("k"), &big, 16), -E2BIG);
	for (int i = 0; i < MULTI_WATCH_MAX; i++) {
		(void)snprintf(key, sizeof(key), "k%u", (unsigned)i % 1000);
		assert_int_equal(multi_watch(&m, str(key), &big, PLENTY), 0);
		assert_true(multi_is_watched(&m, str(key)));
	}
	assert_int_equal(multi_watch(&m, str("more"), &big, PLENTY), -E2BIG);
	assert_false(multi_is_watched(&m, str("more")));
	multi_release(&m);
	assert_int_equal(m.bytes, 0);
}

static void a_watched_key_differs_by_value_or_end(void **state)
{
	struct aq_kv_change there = {.value = "v", .value_len = 1};
	struct aq_kv_change empty = {.value = "", .value_len = 0};
	struct aq_kv_change other = {.value = "w", .value_len = 1};
	struct aq_kv_change ends = there;
	struct aq_kv_change gone = {0};
	struct multi m = {0};

	(void)state;
	ends.expire_at_ms = 7;
	assert_int_equal(multi_watch(&m, str("k"), &there, PLENTY), 0);
	assert_int_equal(multi_watch(&m, str("n"), &gone, PLENTY), 0);
	assert_true(watched_is_same(&m.watch[0], &there));
	assert_false(watched_is_same(&m.watch[0], &other));
	assert_false(watched_is_same(&m.watch[0], &empty));
	assert_false(watched_is_same(&m.watch[0], &ends));
	assert_false(watched_is_same(&m.watch[0], &gone));
	assert_true(watched_is_same(&m.watch[1], &gone));
	assert_false(watched_is_same(&m.watch[1], &empty));
	multi_release(&m);
}

/* ---- the stage ------------------------------------------------------------
 */

static int get(struct gateway *g, const char *key, char *text)
{
	struct reply r = {0};
	int err = store_get(g, str(key), &r);

	if (!err) {
		memcpy(text, r.buf, r.len);
		text[r.len] = 0;
	}
	reply_release(&r);
	return err;
}

static void commands_see_what_came_before_them(void **state)
{
	static const struct aq_kv_key keys[] = {{"a", 1}, {"b", 1}, {"c", 1}};
	struct aq_kv_change ch[3] = {{.value = "1", .value_len = 1}, {0}, {0}};
	struct aq_kv_put_options nx = {.flags = AQ_KV_NX};
	struct gateway *g = calloc(1, sizeof(*g));
	struct stage s;
	char text[64];
	int64_t n;
	size_t len;

	(void)state;
	assert_non_null(g);
	assert_int_equal(stage_init(&s, keys, 3), 0);
	stage_begin(&s, ch);
	g->stage = &s;
	assert_int_equal(store_incr(g, str("a"), 41, &n), 0);
	assert_int_equal(n, 42);
	assert_int_equal(get(g, "a", text), 0);
	assert_string_equal(text, "42");
	assert_int_equal(store_put(g, str("a"), str("x"), &nx), -EEXIST);
	assert_int_equal(store_put(g, str("b"), str("xyz"), &nx), 0);
	assert_int_equal(store_length(g, str("b"), &len), 0);
	assert_int_equal(len, 3);
	assert_int_equal(store_incr(g, str("b"), 1, &n), -EINVAL);
	assert_int_equal(store_del(g, str("c")), -ENOENT);
	assert_int_equal(store_put(g, str("c"), str("v"), NULL), 0);
	assert_int_equal(store_del(g, str("c")), 0);
	assert_int_equal(get(g, "c", text), -ENOENT);
	/* A key that nobody has locked. */
	assert_int_equal(get(g, "other", text), -EINVAL);
	stage_end(&s, ch);
	assert_int_equal(ch[0].verdict, AQ_KV_STORE);
	assert_memory_equal(ch[0].new_value, "42", 2);
	assert_int_equal(ch[1].verdict, AQ_KV_STORE);
	assert_int_equal(ch[1].new_value_len, 3);
	assert_int_equal(ch[2].verdict, AQ_KV_KEEP);
	/* The table calls again: everything begins anew. */
	stage_begin(&s, ch);
	assert_int_equal(store_del(g, str("a")), 0);
	stage_end(&s, ch);
	assert_int_equal(ch[0].verdict, AQ_KV_DELETE);
	assert_int_equal(ch[1].verdict, AQ_KV_KEEP);
	stage_release(&s);
	free(g);
}

static void what_has_expired_is_gone_in_a_stage(void **state)
{
	static const struct aq_kv_key key = {"a", 1};
	struct aq_kv_change ch = {.value = "1", .value_len = 1};
	struct aq_kv_put_options past = {.expire_at_ms = 5};
	struct gateway *g = calloc(1, sizeof(*g));
	struct stage s;
	char text[8];

	(void)state;
	assert_non_null(g);
	assert_int_equal(stage_init(&s, &key, 1), 0);
	stage_begin(&s, &ch);
	g->stage = &s;
	assert_int_equal(store_put(g, str("a"), str("2"), &past), 0);
	assert_int_equal(get(g, "a", text), -ENOENT);
	stage_end(&s, &ch);
	assert_int_equal(ch.verdict, AQ_KV_DELETE);
	stage_release(&s);
	free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_has_each_key_once),
		cmocka_unit_test(a_queue_is_bounded),
		cmocka_unit_test(watched_keys_are_bounded),
		cmocka_unit_test(a_watched_key_differs_by_value_or_end),
		cmocka_unit_test(commands_see_what_came_before_them),
		cmocka_unit_test(what_has_expired_is_gone_in_a_stage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
