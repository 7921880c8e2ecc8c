/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of <aquifer/kv.h> on one key, and several at once. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"
#include "base/size.h"
#include "kv_client_priv.h"

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
		       : error_set(-E2BIG, "a value has at most %s",
				   SIZE_TEXT(AQ_KV_VALUE_MAX));
}

/* ---- reading ------------------------------------------------------------ */

/* Both copies of a shard vouch for what the first says; see kv_pair.c. */
static bool is_vouched(const struct kv_route *r)
{
	return !r->second || kit_now_ns(&r->second->kit) <= r->second->valid_ns;
}

int kv_client_read_replica(struct aq_kv_client *c, struct kv_replica *replica,
			   struct aq_kv_op *op, uint64_t *expire_at_ms,
			   bool *has_entry)
{
	int err = kv_async_quiet(c, replica);

	if (err)
		return err;
	err = kv_replica_read(replica, op, expire_at_ms, has_entry);
	c->answered_ns = replica->kit.polled_ns;
	return err;
}

static int read_once(struct aq_kv_client *c, struct aq_kv_op *op,
		     uint64_t *expire_at_ms)
{
	struct kv_route r;
	bool has_entry;
	int err = kv_client_route(c, kv_client_hash(c, op->key, op->key_len),
				  false, &r);

	if (err)
		return err;
	err = kv_client_read_replica(c, r.replica, op, expire_at_ms,
				     &has_entry);
	if (!is_vouched(&r))
		return KV_E_VIEW;
	if (err == -ENOENT && r.older && !has_entry)
		err = kv_client_read_replica(c, r.older, op, expire_at_ms,
					     NULL);
	return err;
}

int kv_client_read(struct aq_kv_client *c, struct aq_kv_op *op,
		   uint64_t *expire_at_ms)
{
	unsigned tries = 0;
	int err;

	for (;;) {
		err = read_once(c, op, expire_at_ms);
		if (LIKELY(!err || err == -ENOENT || err == -EMSGSIZE))
			return err;
		if (err == -ESTALE) /* nothing was changed */
			err = KV_E_VIEW;
		err = kv_client_again(c, err, &tries);
		if (err)
			return err;
	}
}

static int read_one(struct aq_kv_client *c, struct aq_kv_op *op,
		    uint64_t *expire_at_ms)
{
	int err = kv_client_begin(c);

	return err ? err : kv_client_read(c, op, expire_at_ms);
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
	return kv_count(c, TALLY_READS, u64_min(op.len, buf_bytes), err);
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
	return kv_count(c, TALLY_READS, 0, err);
}

/* ---- changing ----------------------------------------------------------- */

int kv_client_change(struct aq_kv_client *c, struct kv_mod *m)
{
	struct kv_change_ctx x = {.client = c};
	struct kv_route *r = &x.route;
	bool has_waited = false;
	unsigned tries = 0;
	int err = check_key(m->key, m->key_len);

	if (!err)
		err = kv_client_begin(c);
	m->ctx = &x;
	while (!err) {
		err = kv_client_route(c, kv_client_hash(c, m->key, m->key_len),
				      true, r);
		if (!err) {
			m->mirror = r->second ? kv_pair_mirror : NULL;
			m->older = r->older ? kv_grow_older : NULL;
			m->leaves_graves =
				r->leaves_graves && !PLANTED(kv_graves);
			err = kv_async_settle(c, r->replica);
		}
		if (!err)
			err = kv_room_check(c, r, 1);
		if (!err) {
			err = kv_replica_change(r->replica, m);
			c->answered_ns = r->replica->kit.polled_ns;
		}
		if (UNLIKELY(err == -ENOSPC)) { /* nothing has happened */
			err = kv_room_await(c, r, &has_waited);
			if (!err)
				continue;
		}
		/* Only these say that nothing has happened. */
		if (LIKELY(err != KV_E_VIEW && err != -EHOSTDOWN))
			break;
		err = kv_client_again(c, err, &tries);
	}
	m->ctx = NULL;
	return err;
}

int kv_client_put(struct aq_kv_client *c, const void *key, size_t key_len,
		  const void *value, size_t value_len,
		  const struct aq_kv_put_options *options)
{
	struct kv_put p = {.value = value ? value : "",
			   .len = value_len,
			   .flags = options ? options->flags : 0,
			   .expire_at_ms = options ? options->expire_at_ms : 0};
	struct kv_mod m = {.key = key, .key_len = key_len, .put = &p};
	int err = check_value(value_len);

	if (!err)
		err = kv_client_change(c, &m);
	c->past.puts += !err;
	return err;
}

int aq_kv_put(struct aq_kv_client *c, const void *key, size_t key_len,
	      const void *value, size_t value_len,
	      const struct aq_kv_put_options *options)
{
	return kv_count(
		c, TALLY_WRITES, value_len,
		kv_client_put(c, key, key_len, value, value_len, options));
}

static int del_fn(struct aq_kv_change *ch, void *user)
{
	bool *was_there = user;

	*was_there = ch->value != NULL;
	ch->verdict = AQ_KV_DELETE; /* one that has expired goes, too */
	return 0;
}

int kv_client_del(struct aq_kv_client *c, const void *key, size_t key_len)
{
	bool was_there = false;
	struct kv_mod m = {.key = key,
			   .key_len = key_len,
			   .fn = del_fn,
			   .user = &was_there,
			   .needs_old = true};
	int err = kv_client_change(c, &m);

	return err ? err : was_there ? 0 : -ENOENT;
}

int aq_kv_del(struct aq_kv_client *c, const void *key, size_t key_len)
{
	return kv_count(c, TALLY_DELETES, 0, kv_client_del(c, key, key_len));
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
		err = kv_client_change(c, &m);
	if (!err)
		*swapped = s.swapped;
	return kv_count(c, TALLY_ATOMICS, 0, err);
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
	int err = kv_client_change(c, &m);

	if (!err && result)
		*result = n.result;
	return kv_count(c, TALLY_ATOMICS, 0, err);
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

	return kv_client_change(c, &m);
}

int aq_kv_modify(struct aq_kv_client *c, const void *key, size_t key_len,
		 aq_kv_change_fn fn, void *user)
{
	return kv_count(c, TALLY_ATOMICS, 0,
			kv_client_modify(c, key, key_len, fn, user));
}

int kv_client_modify(struct aq_kv_client *c, const void *key, size_t key_len,
		     aq_kv_change_fn fn, void *user)
{
	struct kv_mod m = {.key = key,
			   .key_len = key_len,
			   .fn = fn,
			   .user = user,
			   .needs_value = true};

	return kv_count(c, TALLY_ATOMICS, 0, kv_client_change(c, &m));
}
