/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on keys: whether they are there, how long, and which there are. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "command.h"
#include "glob.h"
#include "number.h"
#include "store.h"

enum {
	SCAN_COUNT_DEFAULT = 10,
	SCAN_COUNT_MAX = 1 << 20,
	KEYS_ROWS = 1024, /* of one step */
};

void redis_type(struct call *c)
{
	size_t len;
	int err = store_length(c->gateway, call_arg(c, 1), &len);

	if (err && err != -ENOENT)
		reply_kv_error(c->out, err);
	else
		reply_simple(c->out, err ? "none" : "string");
}

/* ---- when a key ends ---------------------------------------------------- */

bool command_when(unsigned flags, int64_t n, int64_t *when_ms)
{
	int64_t now_ms =
		flags & COMMAND_ABSOLUTE ? 0 : (int64_t)clock_real_ms();

	return !(flags & COMMAND_SECONDS &&
		 __builtin_mul_overflow(n, 1000, &n)) &&
	       !__builtin_add_overflow(n, now_ms, when_ms);
}

bool call_when(struct call *c, uint32_t i, unsigned flags, int64_t *when_ms)
{
	int64_t n;

	if (!call_int(c, i, &n))
		return false;
	if (!command_when(flags, n, when_ms)) {
		reply_error(c->out, "ERR invalid expire time in '%s' command",
			    c->command->name);
		return false;
	}
	reap_wake(c->gateway);
	return true;
}

static bool expire_options(struct call *c, unsigned *flags)
{
	static const char *const words[] = {"nx", "xx", "gt", "lt"};

	for (uint32_t i = 3; i < c->argc; i++) {
		unsigned bit = 0;

		while (bit < ARRAY_LEN(words) && !call_is(c, i, words[bit]))
			bit++;
		if (bit == ARRAY_LEN(words)) {
			struct resp_str a = call_arg(c, i);

			reply_error(c->out, "ERR Unsupported option %.*s",
				    (int)u64_min(a.len, 64), a.p);
			return false;
		}
		*flags |= 1u << bit;
	}
	if (*flags & STORE_END_NX && *flags != STORE_END_NX) {
		reply_error(c->out, "ERR NX and XX, GT or LT options at the "
				    "same time are not compatible");
		return false;
	}
	if (*flags & STORE_END_GT && *flags & STORE_END_LT) {
		reply_error(c->out, "ERR GT and LT options at the same time "
				    "are not compatible");
		return false;
	}
	return true;
}

void redis_expire(struct call *c)
{
	struct store_end e = {.now_ms = (int64_t)clock_real_ms()};
	struct resp_str key = call_arg(c, 1);
	int err;

	if (!call_when(c, 2, c->command->flags, &e.when_ms) ||
	    !expire_options(c, &e.flags))
		return;
	err = store_modify(c->gateway, key, store_end_fn, &e);
	if (err)
		reply_kv_error(c->out, err);
	else
		reply_int(c->out, e.done);
}

void redis_persist(struct call *c)
{
	struct resp_str key = call_arg(c, 1);
	struct store_end e = {0};
	int err = store_modify(c->gateway, key, store_persist_fn, &e);

	if (err)
		reply_kv_error(c->out, err);
	else
		reply_int(c->out, e.done);
}

/* -2: no such key; -1: it has no end. */
void redis_ttl(struct call *c)
{
	struct resp_str key = call_arg(c, 1);
	uint64_t end_ms;
	int64_t left_ms;
	int err = store_expiry(c->gateway, key, &end_ms);

	if (err == -ENOENT) {
		reply_int(c->out, -2);
	} else if (err) {
		reply_kv_error(c->out, err);
	} else if (end_ms == 0) {
		reply_int(c->out, -1);
	} else {
		left_ms = (int64_t)end_ms;
		if (!(c->command->flags & COMMAND_ABSOLUTE))
			left_ms -= (int64_t)clock_real_ms();
		if (left_ms < 0)
			left_ms = 0;
		reply_int(c->out, c->command->flags & COMMAND_SECONDS
					  ? (left_ms + 500) / 1000
					  : left_ms);
	}
}

/* ---- which keys there are ----------------------------------------------- */

struct keys {
	struct resp_str pattern;
	bool all; /* no pattern */
	uint64_t now_ms;
	struct reply *into; /* bulk strings */
	size_t count;
};

static int add_key(const struct aq_kv_item *item, void *user)
{
	struct keys *k = user;
	struct resp_str key = {item->key, item->key_len};

	if (item->expire_at_ms && item->expire_at_ms <= k->now_ms)
		return 0;
	if (k->all || glob_match(k->pattern, key, false)) {
		reply_bulk(k->into, key.p, key.len);
		k->count++;
	}
	return 0;
}

static void keys_begin(struct call *c, struct keys *k)
{
	*k = (struct keys){.all = true,
			   .now_ms = clock_real_ms(),
			   .into = &c->gateway->scratch};
	k->into->len = 0;
}

/* A step, or all of them; false after an answer. */
static bool keys_scan(struct call *c, struct keys *k, uint64_t *cursor,
		      uint64_t rows)
{
	int err = aq_kv_scan(c->gateway->kv_client, cursor, rows,
			     AQ_KV_SCAN_KEYS, add_key, k);

	if (err) {
		reply_kv_error(c->out, err);
		return false;
	}
	if (k->into->is_lost) {
		k->into->is_lost = false;
		reply_error(c->out, "ERR no memory for so many keys");
		return false;
	}
	return true;
}

void redis_keys(struct call *c)
{
	uint64_t cursor = 0;
	struct keys k;

	keys_begin(c, &k);
	k.pattern = call_arg(c, 1);
	k.all = str_is(k.pattern, "*");
	do {
		if (!keys_scan(c, &k, &cursor, KEYS_ROWS))
			return;
	} while (cursor);
	reply_array(c->out, k.count);
	reply_bytes(c->out, k.into->buf, k.into->len);
}

/* MATCH, COUNT and TYPE; false after an answer. */
static bool scan_options(struct call *c, struct keys *k, int64_t *count,
			 bool *no_type)
{
	for (uint32_t i = 2; i < c->argc; i += 2) {
		if (i + 1 == c->argc) {
			call_syntax_error(c);
			return false;
		}
		if (call_is(c, i, "match")) {
			k->pattern = call_arg(c, i + 1);
			k->all = false;
		} else if (call_is(c, i, "count")) {
			if (!call_int(c, i + 1, count))
				return false;
			if (*count < 1) {
				call_syntax_error(c);
				return false;
			}
		} else if (call_is(c, i, "type")) {
			*no_type = !call_is(c, i + 1, "string");
		} else {
			call_syntax_error(c);
			return false;
		}
	}
	return true;
}

void redis_scan(struct call *c)
{
	struct resp_str text = call_arg(c, 1);
	int64_t count = SCAN_COUNT_DEFAULT, start;
	char digits[NUMBER_TEXT_MAX];
	struct aq_kv_info info;
	bool no_type = false;
	uint64_t cursor;
	struct keys k;

	if (!number_parse(text.p, text.len, &start) || start < 0) {
		reply_error(c->out, "ERR invalid cursor");
		return;
	}
	keys_begin(c, &k);
	if (!scan_options(c, &k, &count, &no_type))
		return;
	aq_kv_get_info(c->gateway->kv, &info);
	cursor = (uint64_t)start;
	count = (int64_t)u64_min((uint64_t)count, SCAN_COUNT_MAX);
	if (!keys_scan(c, &k, &cursor,
		       1 + (uint64_t)count / u32_max(info.entries_per_row, 1)))
		return;
	if (no_type) {
		k.count = 0;
		k.into->len = 0;
	}
	reply_array(c->out, 2);
	reply_bulk(c->out, digits, number_format((int64_t)cursor, digits));
	reply_array(c->out, k.count);
	reply_bytes(c->out, k.into->buf, k.into->len);
}

void redis_dbsize(struct call *c)
{
	uint64_t count;
	int err = aq_kv_count(c->gateway->kv_client, &count);

	if (err)
		reply_kv_error(c->out, err);
	else
		reply_int(c->out, (int64_t)count);
}

/* Keys that others set meanwhile may stay. */
void redis_flushall(struct call *c)
{
	int err = reap_all(c->gateway);

	if (err)
		reply_kv_error(c->out, err);
	else
		reply_simple(c->out, "OK");
}
