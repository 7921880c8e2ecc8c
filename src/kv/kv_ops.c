/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of <aquifer/kv.h> on one key, and several at once. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "kv_priv.h"

static int check_key(const void *key, size_t key_len)
{
	return key && key_len >= 1 && key_len <= AQ_KV_KEY_MAX
		       ? 0
		       : error_set(-EINVAL, "a key has 1 to %d bytes, not %zu",
				   AQ_KV_KEY_MAX, key_len);
}

static int check_value(size_t len)
{
	return len <= AQ_KV_VALUE_MAX
		       ? 0
		       : error_set(-E2BIG, "a value has at most %d bytes",
				   AQ_KV_VALUE_MAX);
}

/* ---- reading ------------------------------------------------------------ */

/* Reads may be tried again: after a lost connection, too. */
static int read_one(struct aq_kv_client *c, struct aq_kv_op *op,
		    uint64_t *expire_at_ms)
{
	struct kv_get *g;
	int err, tries = 0;

	do {
		err = kv_op_begin(c);
		if (!err)
			err = kv_get_drain(c, NULL);
		if (!err)
			err = kv_get_start(c, op, &g);
		if (!err)
			err = kv_get_drain(c, g);
		if (!err) {
			if (expire_at_ms)
				*expire_at_ms = g->expire_at_ms;
			/* It is the last that was done. */
			c->done_count--;
			return op->err;
		}
	} while (c->is_broken && tries++ == 0);
	return kv_op_end(c, err);
}

int aq_kv_get(struct aq_kv_client *c, const void *key, size_t key_len,
	      void *buf, size_t buf_bytes, size_t *len)
{
	struct aq_kv_op op = {.key = key,
			      .key_len = key_len,
			      .value = buf,
			      .value_len = buf_bytes};
	int err = check_key(key, key_len);

	if (err)
		return err;
	err = read_one(c, &op, NULL);
	if ((!err || err == -EMSGSIZE) && len)
		*len = op.len;
	return err;
}

int aq_kv_expiry(struct aq_kv_client *c, const void *key, size_t key_len,
		 uint64_t *expire_at_ms)
{
	struct aq_kv_op op = {.key = key, .key_len = key_len};
	uint64_t end = 0;
	int err = check_key(key, key_len);

	if (err)
		return err;
	err = read_one(c, &op, &end);
	if (!err)
		*expire_at_ms = end;
	return err;
}

/* ---- changing ----------------------------------------------------------- */

static int change(struct aq_kv_client *c, struct kv_mod *m)
{
	int err = check_key(m->key, m->key_len);

	if (!err)
		err = kv_op_begin(c);
	if (!err)
		err = kv_get_drain(c, NULL);
	if (!err)
		err = kv_mod_run(c, m);
	return kv_op_end(c, err);
}

struct put {
	const void *value;
	size_t len;
	uint32_t flags;
	uint64_t expire_at_ms;
};

static int put_fn(struct aq_kv_change *ch, void *user)
{
	const struct put *p = user;

	if (p->flags & AQ_KV_NX && ch->value)
		return -EEXIST;
	if (p->flags & AQ_KV_XX && !ch->value)
		return -ENOENT;
	if (!(p->flags & AQ_KV_KEEP_TTL))
		ch->expire_at_ms = p->expire_at_ms;
	ch->new_value = p->value;
	ch->new_value_len = p->len;
	ch->verdict = AQ_KV_STORE;
	return 0;
}

int aq_kv_put(struct aq_kv_client *c, const void *key, size_t key_len,
	      const void *value, size_t value_len,
	      const struct aq_kv_put_options *options)
{
	struct put p = {.value = value ? value : "",
			.len = value_len,
			.flags = options ? options->flags : 0,
			.expire_at_ms = options ? options->expire_at_ms : 0};
	struct kv_mod m = {.key = key,
			   .key_len = key_len,
			   .fn = put_fn,
			   .user = &p,
			   .put_value = p.value,
			   .put_len = value_len,
			   .put_expire_at_ms = p.expire_at_ms};
	int err = check_value(value_len);

	if (err)
		return err;
	err = change(c, &m);
	c->stats.puts += !err;
	return err;
}

static int del_fn(struct aq_kv_change *ch, void *user)
{
	bool *was_there = user;

	*was_there = ch->value != NULL;
	ch->verdict = AQ_KV_DELETE; /* one that has expired goes, too */
	return 0;
}

int aq_kv_del(struct aq_kv_client *c, const void *key, size_t key_len)
{
	bool was_there = false;
	struct kv_mod m = {.key = key,
			   .key_len = key_len,
			   .fn = del_fn,
			   .user = &was_there};
	int err = change(c, &m);

	return err ? err : was_there ? 0 : -ENOENT;
}

struct cas {
	const void *expected, *desired;
	size_t expected_len, desired_len;
	bool swapped;
};

static int cas_fn(struct aq_kv_change *ch, void *user)
{
	struct cas *s = user;

	if (!ch->value)
		return -ENOENT;
	s->swapped = ch->value_len == s->expected_len &&
		     memcmp(ch->value, s->expected, ch->value_len) == 0;
	if (s->swapped) {
		ch->new_value = s->desired;
		ch->new_value_len = s->desired_len;
		ch->verdict = AQ_KV_STORE;
	}
	return 0;
}

int aq_kv_cas(struct aq_kv_client *c, const void *key, size_t key_len,
	      const void *expected, size_t expected_len, const void *desired,
	      size_t desired_len, bool *swapped)
{
	struct cas s = {.expected = expected ? expected : "",
			.expected_len = expected_len,
			.desired = desired ? desired : "",
			.desired_len = desired_len};
	struct kv_mod m = {.key = key,
			   .key_len = key_len,
			   .fn = cas_fn,
			   .user = &s,
			   .needs_value = true};
	int err = check_value(desired_len);

	if (!err)
		err = change(c, &m);
	if (!err)
		*swapped = s.swapped;
	return err;
}

enum {
	NUMBER_BYTES = 21, /* -9223372036854775808 and a NUL */
};

struct incr {
	int64_t add;
	int64_t result;
	char text[NUMBER_BYTES];
};

/* Digits with a sign and nothing else, as Redis has it. */
static int parse_number(const char *p, size_t len, int64_t *out)
{
	bool negative = len && p[0] == '-';
	uint64_t limit = (uint64_t)INT64_MAX + negative, v = 0;
	size_t i = negative;

	if (len == i || (p[i] == '0' && len > 1))
		return -EINVAL;
	for (; i < len; i++) {
		unsigned digit = (unsigned)(p[i] - '0');

		if (digit > 9 || v > (limit - digit) / 10)
			return -EINVAL;
		v = v * 10 + digit;
	}
	*out = negative ? (int64_t)(0 - v) : (int64_t)v;
	return 0;
}

static int incr_fn(struct aq_kv_change *ch, void *user)
{
	struct incr *n = user;
	int64_t now = 0;

	if (ch->value && parse_number(ch->value, ch->value_len, &now))
		return error_set(-EINVAL, "the value is not a number");
	if (__builtin_add_overflow(now, n->add, &n->result))
		return error_set(-ERANGE, "the number has no 64 bits");
	ch->new_value = n->text;
	ch->new_value_len = (size_t)snprintf(n->text, sizeof(n->text), "%lld",
					     (long long)n->result);
	ch->verdict = AQ_KV_STORE;
	return 0;
}

int aq_kv_incr(struct aq_kv_client *c, const void *key, size_t key_len,
	       int64_t add, int64_t *result)
{
	struct incr n = {.add = add};
	struct kv_mod m = {.key = key,
			   .key_len = key_len,
			   .fn = incr_fn,
			   .user = &n,
			   .needs_value = true};
	int err = change(c, &m);

	if (!err && result)
		*result = n.result;
	return err;
}

static int expire_fn(struct aq_kv_change *ch, void *user)
{
	if (!ch->value)
		return -ENOENT;
	ch->expire_at_ms = *(const uint64_t *)user;
	ch->new_value = ch->value;
	ch->new_value_len = ch->value_len;
	ch->verdict = AQ_KV_STORE;
	return 0;
}

int aq_kv_expire(struct aq_kv_client *c, const void *key, size_t key_len,
		 uint64_t expire_at_ms)
{
	struct kv_mod m = {.key = key,
			   .key_len = key_len,
			   .fn = expire_fn,
			   .user = &expire_at_ms,
			   .needs_value = true};

	return change(c, &m);
}

int aq_kv_modify(struct aq_kv_client *c, const void *key, size_t key_len,
		 aq_kv_change_fn fn, void *user)
{
	struct kv_mod m = {.key = key,
			   .key_len = key_len,
			   .fn = fn,
			   .user = user,
			   .needs_value = true};

	return change(c, &m);
}

/* ---- several at once ---------------------------------------------------- */

static void tell(struct aq_kv_client *c, struct aq_kv_op *op)
{
	c->done[(c->done_head + c->done_count) % c->depth] = op;
	c->done_count++;
}

/* A change waits for the reads before it, so everybody sees this client's
 * operations in their order. */
static int submit_change(struct aq_kv_client *c, struct aq_kv_op *op)
{
	struct aq_kv_put_options o = {.flags = op->flags,
				      .expire_at_ms = op->expire_at_ms};
	int err;

	if (c->gets_busy + c->done_count >= c->depth)
		return -EAGAIN;
	err = kv_get_drain(c, NULL);
	if (err)
		return err;
	op->err = op->kind == AQ_KV_OP_PUT
			  ? aq_kv_put(c, op->key, op->key_len, op->value,
				      op->value_len, &o)
			  : aq_kv_del(c, op->key, op->key_len);
	tell(c, op);
	return 0;
}

int aq_kv_submit(struct aq_kv_client *c, struct aq_kv_op *op)
{
	struct kv_get *g;
	int err = check_key(op->key, op->key_len);

	if (err)
		return err;
	if (op->kind > AQ_KV_OP_DEL)
		return error_set(-EINVAL, "there is no operation %u", op->kind);
	if (c->gets_busy == 0) {
		err = kv_op_begin(c);
		if (err)
			return err;
	}
	op->err = 0;
	op->len = 0;
	return op->kind == AQ_KV_OP_GET ? kv_get_start(c, op, &g)
					: submit_change(c, op);
}

int aq_kv_poll(struct aq_kv_client *c, struct aq_kv_op **done, unsigned max,
	       bool wait)
{
	unsigned n = 0;
	int err = 0;

	do {
		err = kv_get_step(c);
	} while (!err && wait && c->done_count == 0 && c->gets_busy);
	for (; n < max && c->done_count; n++) {
		done[n] = c->done[c->done_head];
		c->done_head = (c->done_head + 1) % c->depth;
		c->done_count--;
	}
	return n ? (int)n : kv_op_end(c, err);
}

/* Puts from *started on that can be done together. */
static int batch_puts(struct aq_kv_client *c, struct aq_kv_op *ops,
		      size_t count, size_t *started, size_t *ended)
{
	int err = 0;
	size_t n;

	if (count - *started < 2 || ops[*started].kind != AQ_KV_OP_PUT ||
	    ops[*started + 1].kind != AQ_KV_OP_PUT)
		return 0;
	err = kv_get_drain(c, NULL);
	if (err)
		return kv_op_end(c, err);
	n = kv_many_put(c, ops + *started, count - *started);
	*started += n;
	*ended += n;
	return 0;
}

int aq_kv_batch(struct aq_kv_client *c, struct aq_kv_op *ops, size_t count)
{
	struct aq_kv_op *done[KV_POLL_BATCH];
	size_t started = 0, ended = 0;
	int err = 0, n;

	while (ended < count && !err) {
		while (started < count && !err) {
			err = batch_puts(c, ops, count, &started, &ended);
			if (err || started == count)
				break;
			err = aq_kv_submit(c, &ops[started]);
			if (!err)
				started++;
		}
		if (err == -EAGAIN)
			err = 0;
		if (err || ended == count)
			break;
		n = aq_kv_poll(c, done, KV_POLL_BATCH, true);
		if (n < 0)
			err = n;
		else
			ended += (size_t)n;
	}
	return err;
}

int aq_kv_repair(struct aq_kv_client *c)
{
	int err = kv_op_begin(c);

	if (!err)
		err = kv_get_drain(c, NULL);
	if (!err)
		err = kv_reap(c);
	return kv_op_end(c, err);
}

void aq_kv_client_stats(const struct aq_kv_client *c, struct aq_kv_stats *stats)
{
	*stats = c->stats;
}
