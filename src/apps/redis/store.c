/* SPDX-License-Identifier: Apache-2.0 */
/* Commands' way to the keys: the table's operations, or the same on a stage. */
#include "store.h"

#include <errno.h>

#include "client.h"

/* ---- the same on a stage --------------------------------------------------
 */

struct look {
	struct reply *into; /* NULL: only how long it is */
	size_t len;
	uint64_t expire_at_ms;
};

static int look_fn(struct aq_kv_change *ch, void *user)
{
	struct look *l = user;

	if (!ch->value)
		return -ENOENT;
	l->len = ch->value_len;
	l->expire_at_ms = ch->expire_at_ms;
	if (!l->into)
		return 0;
	l->into->len = 0;
	reply_bytes(l->into, ch->value, ch->value_len);
	if (!l->into->is_lost)
		return 0;
	l->into->is_lost = false;
	return -ENOMEM;
}

struct put {
	struct resp_str value;
	struct aq_kv_put_options options;
};

static int put_fn(struct aq_kv_change *ch, void *user)
{
	const struct put *p = user;

	if (p->options.flags & AQ_KV_NX && ch->value)
		return -EEXIST;
	if (p->options.flags & AQ_KV_XX && !ch->value)
		return -ENOENT;
	if (!(p->options.flags & AQ_KV_KEEP_TTL))
		ch->expire_at_ms = p->options.expire_at_ms;
	ch->new_value = p->value.p;
	ch->new_value_len = p->value.len;
	ch->verdict = AQ_KV_STORE;
	return 0;
}

static int del_fn(struct aq_kv_change *ch, void *user)
{
	(void)user;
	ch->verdict = AQ_KV_DELETE;
	return ch->value ? 0 : -ENOENT;
}

int store_sum_fn(struct aq_kv_change *ch, void *user)
{
	struct store_sum *n = user;
	int64_t now = 0;

	if (ch->value && !number_parse(ch->value, ch->value_len, &now))
		return -EINVAL;
	if (__builtin_add_overflow(now, n->add, &n->result))
		return -ERANGE;
	ch->new_value = n->text;
	ch->new_value_len = number_format(n->result, n->text);
	ch->verdict = AQ_KV_STORE;
	return 0;
}

static bool end_is_allowed(const struct store_end *e, uint64_t current_ms)
{
	/* No end is later than any other. */
	bool later = current_ms && e->when_ms > (int64_t)current_ms;
	bool sooner = !current_ms || e->when_ms < (int64_t)current_ms;

	return !(e->flags & STORE_END_NX && current_ms) &&
	       !(e->flags & STORE_END_XX && !current_ms) &&
	       !(e->flags & STORE_END_GT && !later) &&
	       !(e->flags & STORE_END_LT && !sooner);
}

int store_end_fn(struct aq_kv_change *ch, void *user)
{
	struct store_end *e = user;

	e->done = ch->value && end_is_allowed(e, ch->expire_at_ms);
	ch->verdict = AQ_KV_KEEP;
	if (!e->done)
		return 0;
	if (e->when_ms <= e->now_ms) {
		ch->verdict = AQ_KV_DELETE;
		return 0;
	}
	ch->verdict = AQ_KV_STORE;
	ch->new_value = ch->value;
	ch->new_value_len = ch->value_len;
	ch->expire_at_ms = (uint64_t)e->when_ms;
	return 0;
}

int store_persist_fn(struct aq_kv_change *ch, void *user)
{
	struct store_end *e = user;

	e->done = ch->value && ch->expire_at_ms;
	ch->verdict = e->done ? AQ_KV_STORE : AQ_KV_KEEP;
	ch->new_value = ch->value;
	ch->new_value_len = ch->value_len;
	ch->expire_at_ms = 0;
	return 0;
}

int store_append_fn(struct aq_kv_change *ch, void *user)
{
	struct store_append *a = user;
	struct reply *made = a->made;

	made->len = 0;
	reply_bytes(made, ch->value, ch->value_len);
	reply_bytes(made, a->value.p, a->value.len);
	if (made->is_lost) {
		made->is_lost = false;
		return -ENOMEM;
	}
	if (made->len > AQ_KV_VALUE_MAX)
		return -E2BIG;
	ch->verdict = AQ_KV_STORE;
	ch->new_value = made->len ? made->buf : "";
	ch->new_value_len = a->len = made->len;
	return 0;
}

/* ---- either ---------------------------------------------------------------
 */

int store_get(struct gateway *g, struct resp_str key, struct reply *into)
{
	struct look l = {.into = into};
	size_t len = BATCH_VALUE_BYTES;
	int err;

	if (g->stage)
		return stage_modify(g->stage, key, look_fn, &l);
	into->len = 0;
	do {
		/* Another client may make it longer between two tries. */
		if (!reply_reserve(into, len)) {
			into->is_lost = false;
			return -ENOMEM;
		}
		err = aq_kv_get(g->kv_client, key.p, key.len, into->buf,
				into->capacity, &len);
	} while (err == -EMSGSIZE);
	if (!err)
		into->len = len;
	return err;
}

int store_length(struct gateway *g, struct resp_str key, size_t *len)
{
	struct look l = {0};
	int err;

	if (g->stage) {
		err = stage_modify(g->stage, key, look_fn, &l);
		*len = l.len;
		return err;
	}
	err = aq_kv_get(g->kv_client, key.p, key.len, NULL, 0, len);
	return err == -EMSGSIZE ? 0 : err;
}

int store_expiry(struct gateway *g, struct resp_str key, uint64_t *expire_at_ms)
{
	struct look l = {0};
	int err;

	if (!g->stage)
		return aq_kv_expiry(g->kv_client, key.p, key.len, expire_at_ms);
	err = stage_modify(g->stage, key, look_fn, &l);
	*expire_at_ms = l.expire_at_ms;
	return err;
}

int store_put(struct gateway *g, struct resp_str key, struct resp_str value,
	      const struct aq_kv_put_options *options)
{
	struct put p = {.value = value};

	if (!g->stage)
		return aq_kv_put(g->kv_client, key.p, key.len, value.p,
				 value.len, options);
	if (options)
		p.options = *options;
	return stage_modify(g->stage, key, put_fn, &p);
}

int store_del(struct gateway *g, struct resp_str key)
{
	return g->stage ? stage_modify(g->stage, key, del_fn, NULL)
			: aq_kv_del(g->kv_client, key.p, key.len);
}

int store_incr(struct gateway *g, struct resp_str key, int64_t add,
	       int64_t *result)
{
	struct store_sum n = {.add = add};
	int err;

	if (!g->stage)
		return aq_kv_incr(g->kv_client, key.p, key.len, add, result);
	err = stage_modify(g->stage, key, store_sum_fn, &n);
	*result = n.result;
	return err;
}

int store_modify(struct gateway *g, struct resp_str key, aq_kv_change_fn fn,
		 void *user)
{
	return g->stage ? stage_modify(g->stage, key, fn, user)
			: aq_kv_modify(g->kv_client, key.p, key.len, fn, user);
}
