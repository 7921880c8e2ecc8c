/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several operations at once: reads are under way together, on any leaves.
 * Where a read needs more than one leaf, or what it was told may not count, it
 * is done again and waited for.
 */
#include <errno.h>

#include "error.h"
#include "kv_client_priv.h"

static bool has_key(const struct aq_kv_op *op)
{
	return op->key && op->key_len >= 1 && op->key_len <= AQ_KV_KEY_MAX;
}

static void tell(struct aq_kv_client *c, struct aq_kv_op *op)
{
	c->done[(c->done_head + c->done_count) % c->depth] = op;
	c->done_count++;
}

/* A read that nobody has answered for good. */
static void read_again(struct aq_kv_client *c, struct aq_kv_op *op)
{
	op->err = kv_client_read(c, op, NULL);
}

void kv_async_collect(struct aq_kv_client *c, struct kv_leaf *leaf)
{
	for (; leaf->done_count; leaf->done_count--) {
		tell(c, leaf->done[leaf->done_head]);
		leaf->done_head = (leaf->done_head + 1) % leaf->depth;
	}
}

void kv_async_abandon(struct aq_kv_client *c, struct kv_leaf *leaf)
{
	uint32_t i;

	kv_async_collect(c, leaf);
	for (i = 0; i < leaf->depth && leaf->gets_busy; i++) {
		struct kv_get *g = &leaf->get[i];

		if (g->state == KV_GET_IDLE || g->state == KV_GET_DONE)
			continue;
		g->state = KV_GET_IDLE;
		leaf->gets_busy--;
		g->op->err = KV_E_VIEW;
		tell(c, g->op);
	}
}

int kv_async_settle(struct aq_kv_client *c, struct kv_leaf *leaf)
{
	bool any = false;
	uint32_t i;
	int err;

	if (LIKELY(!leaf->gets_busy && !leaf->done_count))
		return 0;
	err = kv_get_drain(leaf, NULL);
	if (leaf->is_broken)
		kv_async_abandon(c, leaf);
	else if (err)
		return err;
	kv_async_collect(c, leaf);
	for (i = 0; i < c->done_count; i++) {
		struct aq_kv_op *op = c->done[(c->done_head + i) % c->depth];

		if (op->err != KV_E_VIEW)
			continue;
		read_again(c, op);
		any = true;
	}
	/* The leaf may be gone. */
	return any ? KV_E_VIEW : 0;
}

/* The leaf that alone can answer, or NULL. */
static struct kv_leaf *simple_leaf(struct aq_kv_client *c,
				   const struct aq_kv_op *op, bool is_change)
{
	struct kv_route r;
	int err = kv_client_route(c, kv_client_hash(c, op->key, op->key_len),
				  is_change, &r);

	return err || r.older || r.second || r.leaf->is_broken ? NULL : r.leaf;
}

static int submit_get(struct aq_kv_client *c, struct aq_kv_op *op)
{
	struct kv_leaf *leaf = simple_leaf(c, op, false);
	struct kv_get *g;

	if (UNLIKELY(!leaf)) {
		op->err = kv_client_read(c, op, NULL);
		tell(c, op);
		return 0;
	}
	leaf->deadline_ns = c->deadline_ns;
	return kv_get_start(leaf, op, &g);
}

static void do_change(struct aq_kv_client *c, struct aq_kv_op *op)
{
	struct aq_kv_put_options o = {.flags = op->flags,
				      .expire_at_ms = op->expire_at_ms};

	op->err = op->kind == AQ_KV_OP_PUT
			  ? aq_kv_put(c, op->key, op->key_len, op->value,
				      op->value_len, &o)
			  : aq_kv_del(c, op->key, op->key_len);
	tell(c, op);
}

int aq_kv_submit(struct aq_kv_client *c, struct aq_kv_op *op)
{
	int err = 0;

	if (!has_key(op))
		return error_set(-EINVAL, "a key has 1 to %d bytes, not %zu",
				 AQ_KV_KEY_MAX, op->key_len);
	if (op->kind > AQ_KV_OP_DEL)
		return error_set(-EINVAL, "there is no operation %u", op->kind);
	if (c->under_way >= c->depth)
		return -EAGAIN;
	if (c->under_way == 0)
		err = kv_client_begin(c);
	if (err)
		return err;
	op->err = 0;
	op->len = 0;
	if (op->kind == AQ_KV_OP_GET)
		err = submit_get(c, op);
	else
		do_change(c, op);
	if (!err)
		c->under_way++;
	return err;
}

/* ---- telling ------------------------------------------------------------ */

static int step(struct aq_kv_client *c, struct kv_leaf *leaf)
{
	int err = leaf->gets_busy ? kv_get_step(leaf) : 0;

	if (UNLIKELY(err && leaf->is_broken && !leaf->is_crashed)) {
		kv_async_abandon(c, leaf);
		err = 0;
	}
	kv_async_collect(c, leaf);
	return err;
}

/* One look at every leaf that has something under way or done. */
static int look(struct aq_kv_client *c)
{
	uint32_t i, s, k;
	int err = 0;

	for (i = 0; i < KV_ERAS_MAX && !err; i++) {
		struct kv_era *e = c->era[i];

		for (s = 0; e && s < e->g.shard_count && !err; s++)
			for (k = 0; k < e->g.copy_count && !err; k++)
				if (e->shard[s].leaf[k])
					err = step(c, e->shard[s].leaf[k]);
	}
	return err;
}

int aq_kv_poll(struct aq_kv_client *c, struct aq_kv_op **done, unsigned max,
	       bool wait)
{
	unsigned n = 0;
	int err;

	do {
		err = look(c);
	} while (!err && wait && c->done_count == 0 && c->under_way);
	for (; n < max && c->done_count; n++) {
		done[n] = c->done[c->done_head];
		c->done_head = (c->done_head + 1) % c->depth;
		c->done_count--;
		if (UNLIKELY(done[n]->err == KV_E_VIEW))
			read_again(c, done[n]);
	}
	c->under_way -= n;
	return n ? (int)n : err;
}

/* Puts from *started on that can be done together: at one leaf alone. */
static int batch_puts(struct aq_kv_client *c, struct aq_kv_op *ops,
		      size_t count, size_t *started, size_t *ended)
{
	size_t n = 1, left = count - *started;
	struct kv_leaf *leaf;
	int err;

	ops += *started;
	if (left < 2 || ops[0].kind != AQ_KV_OP_PUT ||
	    ops[1].kind != AQ_KV_OP_PUT || !has_key(&ops[0]))
		return 0;
	leaf = simple_leaf(c, &ops[0], true);
	if (!leaf)
		return 0;
	while (n < left && ops[n].kind == AQ_KV_OP_PUT && has_key(&ops[n]) &&
	       (c->era[0]->g.shard_count == 1 ||
		simple_leaf(c, &ops[n], true) == leaf))
		n++;
	if (n < 2)
		return 0;
	err = kv_async_settle(c, leaf);
	if (err)
		return err == KV_E_VIEW ? 0 : err;
	n = kv_many_put(leaf, ops, n);
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
