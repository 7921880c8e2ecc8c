/* SPDX-License-Identifier: Apache-2.0 */
/* The part of <aquifer/kv.h> that the gateway calls, in local memory: a few
 * keys in an array. One translation unit includes it. */
#ifndef AQ_FAKE_KV_H
#define AQ_FAKE_KV_H

#include <aquifer/kv.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "redis/number.h"

enum {
	FAKE_KEYS = 256,
};

struct fake_item {
	char *key, *value; /* key NULL: free */
	size_t key_len, value_len;
	uint64_t expire_at_ms;
};

struct aq_kv_client {
	struct fake_item item[FAKE_KEYS];
	/* How often a scan begins anew, as where a table grows meanwhile. */
	unsigned scans_again;
};

static void fake_drop(struct fake_item *i)
{
	free(i->key);
	free(i->value);
	*i = (struct fake_item){0};
}

static void fake_release(struct aq_kv_client *c)
{
	for (unsigned i = 0; i < FAKE_KEYS; i++)
		fake_drop(&c->item[i]);
}

static struct fake_item *fake_find(struct aq_kv_client *c, const void *key,
				   size_t key_len)
{
	for (unsigned i = 0; i < FAKE_KEYS; i++)
		if (c->item[i].key && c->item[i].key_len == key_len &&
		    memcmp(c->item[i].key, key, key_len) == 0)
			return &c->item[i];
	return NULL;
}

static char *fake_copy(const void *bytes, size_t len)
{
	char *p = malloc(len + 1);

	if (!p)
		abort();
	if (len)
		memcpy(p, bytes, len);
	return p;
}

static struct aq_kv_change fake_look(struct aq_kv_client *c, const void *key,
				     size_t key_len)
{
	struct fake_item *i = fake_find(c, key, key_len);
	struct aq_kv_change ch = {.verdict = AQ_KV_KEEP};

	if (i) {
		ch.value = i->value;
		ch.value_len = i->value_len;
		ch.expire_at_ms = i->expire_at_ms;
	}
	return ch;
}

static int fake_apply(struct aq_kv_client *c, const void *key, size_t key_len,
		      const struct aq_kv_change *ch)
{
	struct fake_item *i = fake_find(c, key, key_len), new;

	if (ch->verdict == AQ_KV_KEEP)
		return 0;
	if (ch->verdict == AQ_KV_DELETE) {
		if (i)
			fake_drop(i);
		return 0;
	}
	new = (struct fake_item){
		.key = fake_copy(key, key_len),
		.key_len = key_len,
		.value = fake_copy(ch->new_value, ch->new_value_len),
		.value_len = ch->new_value_len,
		.expire_at_ms = ch->expire_at_ms};
	for (unsigned n = 0; n < FAKE_KEYS && !i; n++)
		if (!c->item[n].key)
			i = &c->item[n];
	if (!i) {
		fake_drop(&new);
		return -ENOSPC;
	}
	fake_drop(i);
	*i = new;
	return 0;
}

int aq_kv_modify(struct aq_kv_client *c, const void *key, size_t key_len,
		 aq_kv_change_fn fn, void *user)
{
	struct aq_kv_change ch = fake_look(c, key, key_len);
	int err = fn(&ch, user);

	return err ? err : fake_apply(c, key, key_len, &ch);
}

/* Calls `fn` twice, as the table may. */
int aq_kv_unit(struct aq_kv_client *c, const struct aq_kv_key *keys,
	       size_t count, aq_kv_unit_fn fn, void *user)
{
	struct aq_kv_change ch[AQ_KV_UNIT_KEYS];
	int err = 0;

	if (count > AQ_KV_UNIT_KEYS)
		abort();
	for (unsigned again = 0; again < 2 && !err; again++) {
		for (size_t i = 0; i < count; i++)
			ch[i] = fake_look(c, keys[i].key, keys[i].key_len);
		err = fn(ch, user);
	}
	for (size_t i = 0; i < count && !err; i++)
		err = fake_apply(c, keys[i].key, keys[i].key_len, &ch[i]);
	return err;
}

int aq_kv_get(struct aq_kv_client *c, const void *key, size_t key_len,
	      void *buf, size_t buf_bytes, size_t *len)
{
	struct aq_kv_change ch = fake_look(c, key, key_len);
	size_t part = ch.value_len < buf_bytes ? ch.value_len : buf_bytes;

	if (!ch.value)
		return -ENOENT;
	*len = ch.value_len;
	if (part)
		memcpy(buf, ch.value, part);
	return buf && part < ch.value_len ? -EMSGSIZE : 0;
}

int aq_kv_put(struct aq_kv_client *c, const void *key, size_t key_len,
	      const void *value, size_t value_len,
	      const struct aq_kv_put_options *o)
{
	struct aq_kv_change ch = fake_look(c, key, key_len);
	uint32_t flags = o ? o->flags : 0;

	if (flags & AQ_KV_NX && ch.value)
		return -EEXIST;
	if (flags & AQ_KV_XX && !ch.value)
		return -ENOENT;
	if (!(flags & AQ_KV_KEEP_TTL))
		ch.expire_at_ms = o ? o->expire_at_ms : 0;
	ch.new_value = value;
	ch.new_value_len = value_len;
	ch.verdict = AQ_KV_STORE;
	return fake_apply(c, key, key_len, &ch);
}

int aq_kv_del(struct aq_kv_client *c, const void *key, size_t key_len)
{
	struct fake_item *i = fake_find(c, key, key_len);

	if (i)
		fake_drop(i);
	return i ? 0 : -ENOENT;
}

int aq_kv_incr(struct aq_kv_client *c, const void *key, size_t key_len,
	       int64_t add, int64_t *result)
{
	struct aq_kv_change ch = fake_look(c, key, key_len);
	char text[NUMBER_TEXT_MAX];
	int64_t now = 0;

	if (ch.value && !number_parse(ch.value, ch.value_len, &now))
		return -EINVAL;
	if (__builtin_add_overflow(now, add, result))
		return -ERANGE;
	ch.new_value = text;
	ch.new_value_len = number_format(*result, text);
	ch.verdict = AQ_KV_STORE;
	return fake_apply(c, key, key_len, &ch);
}

int aq_kv_expiry(struct aq_kv_client *c, const void *key, size_t key_len,
		 uint64_t *expire_at_ms)
{
	struct aq_kv_change ch = fake_look(c, key, key_len);

	*expire_at_ms = ch.expire_at_ms;
	return ch.value ? 0 : -ENOENT;
}

int aq_kv_batch(struct aq_kv_client *c, struct aq_kv_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct aq_kv_op *op = &ops[i];
		struct aq_kv_put_options o = {.flags = op->flags,
					      .expire_at_ms = op->expire_at_ms};

		if (op->kind == AQ_KV_OP_GET)
			op->err = aq_kv_get(c, op->key, op->key_len, op->value,
					    op->value_len, &op->len);
		else if (op->kind == AQ_KV_OP_PUT)
			op->err = aq_kv_put(c, op->key, op->key_len, op->value,
					    op->value_len, &o);
		else if (op->kind == AQ_KV_OP_DEL)
			op->err = aq_kv_del(c, op->key, op->key_len);
		else
			op->err = aq_kv_modify(c, op->key, op->key_len, op->fn,
					       op->fn_user);
	}
	return 0;
}

int aq_kv_scan(struct aq_kv_client *c, uint64_t *cursor, uint64_t rows,
	       unsigned flags, aq_kv_item_fn each, void *user)
{
	(void)rows;
	(void)flags;
	for (unsigned n = 0; n < FAKE_KEYS * (c->scans_again + 1); n++) {
		const struct fake_item *i = &c->item[n % FAKE_KEYS];
		struct aq_kv_item item = {.key = i->key,
					  .key_len = i->key_len,
					  .expire_at_ms = i->expire_at_ms};
		int stop = item.key ? each(&item, user) : 0;

		if (stop)
			return stop;
	}
	*cursor = 0;
	return 0;
}

int aq_kv_count(struct aq_kv_client *c, uint64_t *count)
{
	*count = 0;
	for (unsigned i = 0; i < FAKE_KEYS; i++)
		*count += c->item[i].key != NULL;
	return 0;
}

void aq_kv_get_info(const struct aq_kv *kv, struct aq_kv_info *info)
{
	(void)kv;
	*info = (struct aq_kv_info){.rows = FAKE_KEYS, .entries_per_row = 1};
}

void aq_kv_client_stats(const struct aq_kv_client *c, struct aq_kv_stats *stats)
{
	(void)c;
	*stats = (struct aq_kv_stats){0};
}

const char *aq_last_error(void)
{
	return "";
}

/* ---- what a gateway calls that looks for its table: never here ------------
 */

int aq_rack_open(const char *name, struct aq_rack **rack)
{
	(void)name;
	(void)rack;
	return -EHOSTDOWN;
}

void aq_rack_close(struct aq_rack *rack)
{
	(void)rack;
}

int aq_rack_set_deadline(struct aq_rack *rack, uint32_t milliseconds)
{
	(void)rack;
	(void)milliseconds;
	return -EHOSTDOWN;
}

uint32_t aq_rack_deadline(const struct aq_rack *rack)
{
	(void)rack;
	return 0;
}

int aq_kv_open(struct aq_rack *rack, const char *name, struct aq_kv **kv)
{
	(void)rack;
	(void)name;
	(void)kv;
	return -EHOSTDOWN;
}

int aq_kv_create(struct aq_rack *rack, const char *name,
		 const struct aq_kv_options *options, struct aq_kv **kv)
{
	(void)options;
	return aq_kv_open(rack, name, kv);
}

void aq_kv_close(struct aq_kv *kv)
{
	(void)kv;
}

int aq_kv_client_open(struct aq_kv *kv,
		      const struct aq_kv_client_options *options,
		      struct aq_kv_client **c)
{
	(void)kv;
	(void)options;
	(void)c;
	return -EHOSTDOWN;
}

void aq_kv_client_close(struct aq_kv_client *c)
{
	(void)c;
}

int aq_kv_get_health(struct aq_kv_client *c, struct aq_kv_health *health)
{
	(void)c;
	(void)health;
	return -EHOSTDOWN;
}

#endif
