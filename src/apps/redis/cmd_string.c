/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on the value of a key. */
#include <errno.h>
#include <string.h>

#include "command.h"
#include "number.h"
#include "store.h"

/* ---- reading ------------------------------------------------------------ */

void redis_get(struct call *c)
{
	int err = call_get(c, call_arg(c, 1), &c->gateway->scratch);

	if (!err) {
		c->gateway->stats.hits++;
		reply_bulk(c->out, c->gateway->scratch.buf,
			   c->gateway->scratch.len);
	} else if (err == -ENOENT) {
		c->gateway->stats.misses++;
		reply_nil(c->out);
	}
}

/* The length of a value, 0 without one; false after an answer. */
static bool value_length(struct call *c, size_t *len)
{
	struct resp_str key = call_arg(c, 1);
	int err = store_length(c->gateway, key, len);

	if (err == -ENOENT)
		*len = 0;
	if (!err || err == -ENOENT)
		return true;
	reply_kv_error(c->out, err);
	return false;
}

void redis_strlen(struct call *c)
{
	size_t len;

	if (value_length(c, &len))
		reply_int(c->out, (int64_t)len);
}

/* As Redis counts: from the end where negative, and cut to what there is. */
static bool clip_range(int64_t *start, int64_t *end, int64_t len)
{
	if (*start < 0 && *end < 0 && *start > *end)
		return false;
	if (*start < 0)
		*start = *start < -len ? 0 : *start + len;
	if (*end < 0)
		*end = *end < -len ? 0 : *end + len;
	if (*end >= len)
		*end = len - 1;
	return len > 0 && *start <= *end;
}

void redis_getrange(struct call *c)
{
	struct reply *value = &c->gateway->scratch;
	int64_t start, end;
	int err;

	if (!call_int(c, 2, &start) || !call_int(c, 3, &end))
		return;
	err = call_get(c, call_arg(c, 1), value);
	if (err && err != -ENOENT)
		return;
	if (err || !clip_range(&start, &end, (int64_t)value->len))
		reply_bulk(c->out, "", 0);
	else
		reply_bulk(c->out, value->buf + start,
			   (size_t)(end - start) + 1);
}

/* ---- changing one key under its locks ----------------------------------- */

/* What the functions below hand to aq_kv_modify. */
struct change {
	struct call *c;
	struct resp_str value; /* the command's argument */
	unsigned put_flags;    /* AQ_KV_NX, AQ_KV_XX, AQ_KV_KEEP_TTL */
	uint64_t expire_at_ms;
	size_t offset;
	long double add;
	bool existed;
	bool stored;
};

enum {
	/* What a change may end with beside the table's own errors. */
	CHANGE_TOO_BIG = -E2BIG,
	CHANGE_NO_FLOAT = -EBADMSG,
	CHANGE_NO_RESULT = -EOVERFLOW,
	CHANGE_NO_MEMORY = -ENOMEM,
};

void reply_change_error(struct reply *r, int err)
{
	switch (err) {
	case CHANGE_TOO_BIG:
		reply_error(r, "ERR string exceeds maximum allowed size "
			       "(proto-max-bulk-len)");
		break;
	case CHANGE_NO_FLOAT:
		reply_error(r, "ERR value is not a valid float");
		break;
	case CHANGE_NO_RESULT:
		reply_error(r, "ERR increment would produce NaN or Infinity");
		break;
	case CHANGE_NO_MEMORY:
		reply_error(r, "ERR no memory");
		break;
	default:
		reply_kv_error(r, err);
	}
}

/* Runs it; false after an answer. */
static bool change_run(struct change *ch, aq_kv_change_fn fn)
{
	struct resp_str key = call_arg(ch->c, 1);
	int err = store_modify(ch->c->gateway, key, fn, ch);

	if (err)
		reply_change_error(ch->c->out, err);
	return !err;
}

/* Keeps the old value for the answer; the function may run several times. */
static int keep_old(struct change *ch, const struct aq_kv_change *kv)
{
	struct reply *old = &ch->c->gateway->scratch;

	ch->existed = kv->value != NULL;
	ch->stored = false;
	old->len = 0;
	reply_bytes(old, kv->value, kv->value_len);
	if (!old->is_lost)
		return 0;
	old->is_lost = false;
	return CHANGE_NO_MEMORY;
}

static void answer_old(struct change *ch)
{
	struct reply *old = &ch->c->gateway->scratch;

	if (ch->existed)
		reply_bulk(ch->c->out, old->buf, old->len);
	else
		reply_nil(ch->c->out);
}

/* Stores what stands in gateway->made. */
static int store_made(struct change *ch, struct aq_kv_change *kv)
{
	struct reply *made = &ch->c->gateway->made;

	if (made->is_lost) {
		made->is_lost = false;
		return CHANGE_NO_MEMORY;
	}
	if (made->len > AQ_KV_VALUE_MAX)
		return CHANGE_TOO_BIG;
	kv->verdict = AQ_KV_STORE;
	kv->new_value = made->len ? made->buf : "";
	kv->new_value_len = made->len;
	ch->stored = true;
	return 0;
}

static int set_fn(struct aq_kv_change *kv, void *user)
{
	struct change *ch = user;
	int err = keep_old(ch, kv);

	kv->verdict = AQ_KV_KEEP;
	if (err || (ch->put_flags & AQ_KV_NX && ch->existed) ||
	    (ch->put_flags & AQ_KV_XX && !ch->existed))
		return err;
	ch->c->gateway->made.len = 0;
	reply_bytes(&ch->c->gateway->made, ch->value.p, ch->value.len);
	if (!(ch->put_flags & AQ_KV_KEEP_TTL))
		kv->expire_at_ms = ch->expire_at_ms;
	return store_made(ch, kv);
}

/* ---- SET and its relatives ---------------------------------------------- */

/* When a value ends, by the number at `i`; false: it was answered. */
static bool read_expiry(struct call *c, uint32_t i, unsigned flags,
			uint64_t *expire_at_ms)
{
	int64_t n, when_ms;

	if (!call_int(c, i, &n))
		return false;
	if (n <= 0) {
		reply_error(c->out, "ERR invalid expire time in '%s' command",
			    c->command->name);
		return false;
	}
	if (!call_when(c, i, flags, &when_ms))
		return false;
	*expire_at_ms = (uint64_t)when_ms;
	return true;
}

enum expiry {
	EXPIRY_NONE,
	EXPIRY_TAKEN,
	EXPIRY_ANSWERED, /* with an error */
};

/* One of EX, PX, EXAT, PXAT with its number. */
static enum expiry take_expiry(struct call *c, uint32_t i,
			       uint64_t *expire_at_ms)
{
	unsigned flags = 0;

	if (call_is(c, i, "ex") || call_is(c, i, "exat"))
		flags |= COMMAND_SECONDS;
	if (call_is(c, i, "exat") || call_is(c, i, "pxat"))
		flags |= COMMAND_ABSOLUTE;
	if (!flags && !call_is(c, i, "px"))
		return EXPIRY_NONE;
	if (*expire_at_ms || i + 1 == c->argc) {
		call_syntax_error(c);
		return EXPIRY_ANSWERED;
	}
	return read_expiry(c, i + 1, flags, expire_at_ms) ? EXPIRY_TAKEN
							  : EXPIRY_ANSWERED;
}

static bool set_options(struct call *c, struct change *ch, bool *get)
{
	for (uint32_t i = 3; i < c->argc; i++) {
		enum expiry taken = take_expiry(c, i, &ch->expire_at_ms);

		if (taken == EXPIRY_ANSWERED)
			return false;
		if (taken == EXPIRY_TAKEN)
			i++;
		else if (call_is(c, i, "nx"))
			ch->put_flags |= AQ_KV_NX;
		else if (call_is(c, i, "xx"))
			ch->put_flags |= AQ_KV_XX;
		else if (call_is(c, i, "keepttl"))
			ch->put_flags |= AQ_KV_KEEP_TTL;
		else if (call_is(c, i, "get"))
			*get = true;
		else
			ch->put_flags |= AQ_KV_NX | AQ_KV_XX; /* refused */
	}
	if ((ch->put_flags & AQ_KV_NX && ch->put_flags & AQ_KV_XX) ||
	    (ch->put_flags & AQ_KV_KEEP_TTL && ch->expire_at_ms)) {
		call_syntax_error(c);
		return false;
	}
	return true;
}

/* 1: stored; 0: a condition was not met; -1: answered. */
static int put(struct call *c, uint32_t value_arg, const struct change *ch)
{
	struct resp_str key = call_arg(c, 1);
	struct resp_str value = call_arg(c, value_arg);
	struct aq_kv_put_options o = {.flags = ch->put_flags,
				      .expire_at_ms = ch->expire_at_ms};
	int err = store_put(c->gateway, key, value, &o);

	if (err == -EEXIST || (err == -ENOENT && ch->put_flags & AQ_KV_XX))
		return 0;
	if (err)
		reply_kv_error(c->out, err);
	return err ? -1 : 1;
}

void redis_set(struct call *c)
{
	struct change ch = {.c = c, .value = call_arg(c, 2)};
	bool get = false;
	int stored;

	if (!set_options(c, &ch, &get))
		return;
	if (get) {
		if (change_run(&ch, set_fn))
			answer_old(&ch);
		return;
	}
	stored = put(c, 2, &ch);
	if (stored > 0)
		reply_simple(c->out, "OK");
	else if (stored == 0)
		reply_nil(c->out);
}

void redis_setnx(struct call *c)
{
	struct change ch = {.c = c, .put_flags = AQ_KV_NX};
	int stored = put(c, 2, &ch);

	if (stored >= 0)
		reply_int(c->out, stored);
}

void redis_setex(struct call *c)
{
	struct change ch = {.c = c};

	if (read_expiry(c, 2, c->command->flags, &ch.expire_at_ms) &&
	    put(c, 3, &ch) > 0)
		reply_simple(c->out, "OK");
}

void redis_getset(struct call *c)
{
	struct change ch = {.c = c, .value = call_arg(c, 2)};

	if (change_run(&ch, set_fn))
		answer_old(&ch);
}

/* ---- reading and changing ----------------------------------------------- */

static int getdel_fn(struct aq_kv_change *kv, void *user)
{
	struct change *ch = user;
	int err = keep_old(ch, kv);

	kv->verdict = ch->existed ? AQ_KV_DELETE : AQ_KV_KEEP;
	return err;
}

void redis_getdel(struct call *c)
{
	struct change ch = {.c = c};

	if (change_run(&ch, getdel_fn))
		answer_old(&ch);
}

/* The value stays; only its end changes. */
static int getex_fn(struct aq_kv_change *kv, void *user)
{
	struct change *ch = user;
	int err = keep_old(ch, kv);

	kv->verdict = AQ_KV_KEEP;
	if (err || !ch->existed)
		return err;
	kv->verdict = AQ_KV_STORE;
	kv->new_value = kv->value;
	kv->new_value_len = kv->value_len;
	kv->expire_at_ms = ch->expire_at_ms;
	return 0;
}

void redis_getex(struct call *c)
{
	struct change ch = {.c = c};
	bool persist = false;

	for (uint32_t i = 2; i < c->argc; i++) {
		enum expiry taken = take_expiry(c, i, &ch.expire_at_ms);

		if (taken == EXPIRY_ANSWERED)
			return;
		if (taken == EXPIRY_TAKEN) {
			i++;
		} else if (call_is(c, i, "persist") && c->argc == 3) {
			persist = true;
		} else {
			call_syntax_error(c);
			return;
		}
	}
	if (!persist && !ch.expire_at_ms)
		redis_get(c);
	else if (change_run(&ch, getex_fn))
		answer_old(&ch);
}

void redis_append(struct call *c)
{
	struct store_append a = {.value = call_arg(c, 2),
				 .made = &c->gateway->made};
	int err = store_modify(c->gateway, call_arg(c, 1), store_append_fn, &a);

	if (err)
		reply_change_error(c->out, err);
	else
		reply_int(c->out, (int64_t)a.len);
}

static int setrange_fn(struct aq_kv_change *kv, void *user)
{
	struct change *ch = user;
	struct reply *made = &ch->c->gateway->made;
	size_t end = ch->offset + ch->value.len;

	made->len = 0;
	if (!reply_reserve(made, u64_max(end, kv->value_len)))
		return store_made(ch, kv);
	reply_bytes(made, kv->value, kv->value_len);
	if (made->len < end) {
		memset(made->buf + made->len, 0, end - made->len);
		made->len = end;
	}
	memcpy(made->buf + ch->offset, ch->value.p, ch->value.len);
	return store_made(ch, kv);
}

void redis_setrange(struct call *c)
{
	struct change ch = {.c = c, .value = call_arg(c, 3)};
	int64_t offset;
	size_t len;

	if (!call_int(c, 2, &offset))
		return;
	if (offset < 0) {
		reply_error(c->out, "ERR offset is out of range");
		return;
	}
	if (ch.value.len == 0) {
		if (value_length(c, &len))
			reply_int(c->out, (int64_t)len);
		return;
	}
	if ((uint64_t)offset + ch.value.len > AQ_KV_VALUE_MAX) {
		reply_change_error(c->out, CHANGE_TOO_BIG);
		return;
	}
	ch.offset = (size_t)offset;
	if (change_run(&ch, setrange_fn))
		reply_int(c->out, (int64_t)c->gateway->made.len);
}

/* ---- counting ----------------------------------------------------------- */

static void add(struct call *c, int64_t by)
{
	struct resp_str key = call_arg(c, 1);
	int64_t result;
	int err = store_incr(c->gateway, key, by, &result);

	if (err)
		reply_kv_error(c->out, err);
	else
		reply_int(c->out, result);
}

void redis_incr(struct call *c)
{
	add(c, 1);
}

void redis_decr(struct call *c)
{
	add(c, -1);
}

void redis_incrby(struct call *c)
{
	int64_t by;

	if (call_int(c, 2, &by))
		add(c, by);
}

void redis_decrby(struct call *c)
{
	int64_t by;

	if (!call_int(c, 2, &by))
		return;
	if (by == INT64_MIN)
		reply_error(c->out, "ERR decrement would overflow");
	else
		add(c, -by);
}

static int incrbyfloat_fn(struct aq_kv_change *kv, void *user)
{
	struct change *ch = user;
	struct reply *made = &ch->c->gateway->made;
	char text[NUMBER_FLOAT_TEXT_MAX];
	long double v = 0;

	if (kv->value && !number_parse_float(kv->value, kv->value_len, &v))
		return CHANGE_NO_FLOAT;
	v += ch->add;
	if (!__builtin_isfinite(v))
		return CHANGE_NO_RESULT;
	made->len = 0;
	reply_bytes(made, text, number_format_float(v, text));
	return store_made(ch, kv);
}

void redis_incrbyfloat(struct call *c)
{
	struct change ch = {.c = c};
	struct resp_str by = call_arg(c, 2);

	if (!number_parse_float(by.p, by.len, &ch.add))
		reply_change_error(c->out, CHANGE_NO_FLOAT);
	else if (change_run(&ch, incrbyfloat_fn))
		reply_bulk(c->out, c->gateway->made.buf, c->gateway->made.len);
}
