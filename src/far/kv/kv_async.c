/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several operations at once. Reads are under way together, on any replicas.
 * Where a read needs more than one replica, or what it was told may not count,
 * it is done again and waited for.
 *
 * Changes wait until somebody polls, or something has to come after them. Then
 * they go together: their locks in one round trip, their rows in another. They
 * do not start before, because a client must not hold locks while its
 * application does something else: others would take it for dead.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
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

void kv_async_collect(struct aq_kv_client *c, struct kv_replica *replica)
{
	for (; replica->done_count; replica->done_count--) {
		tell(c, replica->done[replica->done_head]);
		replica->done_head = (replica->done_head + 1) % replica->depth;
	}
}

void kv_async_abandon(struct aq_kv_client *c, struct kv_replica *replica)
{
	uint32_t i;

	kv_async_collect(c, replica);
	for (i = 0; i < replica->depth && replica->gets_busy; i++) {
		struct kv_get *g = &replica->get[i];

		if (g->state == KV_GET_IDLE || g->state == KV_GET_DONE)
			continue;
		g->state = KV_GET_IDLE;
		replica->gets_busy--;
		if (!g->op)
			continue;
		g->op->err = KV_E_VIEW;
		tell(c, g->op);
	}
}

int kv_async_quiet(struct aq_kv_client *c, struct kv_replica *replica)
{
	int err;

	if (LIKELY(!replica->gets_busy && !replica->done_count))
		return 0;
	err = kv_get_drain(replica, NULL);
	if (replica->kit.is_broken) {
		kv_async_abandon(c, replica);
		err = 0;
	}
	kv_async_collect(c, replica);
	return err;
}

int kv_async_settle(struct aq_kv_client *c, struct kv_replica *replica)
{
	bool any = false;
	uint32_t i;
	int err = kv_async_quiet(c, replica);

	if (err)
		return err;
	for (i = 0; i < c->done_count; i++) {
		struct aq_kv_op *op = c->done[(c->done_head + i) % c->depth];

		if (op->err != KV_E_VIEW)
			continue;
		read_again(c, op);
		any = true;
	}
	/* The replica may be gone. */
	return any ? KV_E_VIEW : 0;
}

/* The replica that alone can do it, in one step, or NULL. */
static struct kv_replica *simple_replica(struct aq_kv_client *c,
					 const struct aq_kv_op *op)
{
	bool is_change = op->kind != AQ_KV_OP_GET;
	struct kv_route r;
	int err = kv_client_route(c, kv_client_hash(c, op->key, op->key_len),
				  is_change, &r);

	if (err || r.older || r.second || r.replica->kit.is_broken ||
	    (is_change && r.leaves_graves))
		return NULL;
	return r.replica;
}

/* Where a key's bit is among those of the changes. */
static uint64_t *seen_word(struct aq_kv_client *c, const struct aq_kv_op *op,
			   uint64_t *bit)
{
	uint64_t at =
		kv_client_hash(c, op->key, op->key_len) % (64 * KV_SEEN_WORDS);

	*bit = 1ull << (at % 64);
	return &c->change_seen[at / 64];
}

/* Whether a change of its key comes first. */
static bool is_waited_for(struct aq_kv_client *c, const struct aq_kv_op *op)
{
	uint64_t bit;

	if (LIKELY(!(*seen_word(c, op, &bit) & bit)))
		return false;
	for (uint32_t i = 0; i < c->change_count; i++)
		if (c->change[i]->key_len == op->key_len &&
		    !memcmp(c->change[i]->key, op->key, op->key_len))
			return true;
	return false;
}

static int submit_get(struct aq_kv_client *c, struct aq_kv_op *op)
{
	struct kv_replica *replica;
	struct kv_get *g;
	int err = -EAGAIN;

	if (UNLIKELY(c->change_count) && is_waited_for(c, op))
		kv_async_flush(c);
	replica = simple_replica(c, op);
	if (LIKELY(replica != NULL)) {
		replica->kit.deadline_ns = c->deadline_ns;
		err = kv_get_start(replica, op, false, &g);
	}
	if (UNLIKELY(err == -EAGAIN)) {
		op->err = kv_client_read(c, op, NULL);
		tell(c, op);
		err = 0;
	}
	return err;
}

/* ---- changes ------------------------------------------------------------ */

static void do_alone(struct aq_kv_client *c, struct aq_kv_op *op)
{
	struct aq_kv_put_options o = {.flags = op->flags,
				      .expire_at_ms = op->expire_at_ms};

	if (op->kind == AQ_KV_OP_PUT)
		op->err = kv_client_put(c, op->key, op->key_len, op->value,
					op->value_len, &o);
	else if (op->kind == AQ_KV_OP_DEL)
		op->err = kv_client_del(c, op->key, op->key_len);
	else
		op->err = kv_client_modify(c, op->key, op->key_len, op->fn,
					   op->fn_user);
}

/* As many from the first on as one replica does together; how many are done,
 * and whether the next one goes alone. */
static size_t do_together(struct aq_kv_client *c, struct aq_kv_op *const *ops,
			  size_t count, bool *next_alone)
{
	struct kv_replica *replica =
		count < 2 ? NULL : simple_replica(c, ops[0]);
	size_t n = 1;

	*next_alone = true;
	if (!replica)
		return 0;
	while (n < count && (c->era[0]->g.shard_count == 1 ||
			     simple_replica(c, ops[n]) == replica))
		n++;
	if (n < 2 || kv_async_settle(c, replica))
		return 0;
	return kv_many_run(replica, ops, n, next_alone);
}

/* A change that goes alone. Nodes that did not answer the ones before it are
 * not waited for again: `down` has a bit for each shard. */
static void do_next(struct aq_kv_client *c, struct aq_kv_op *op, uint64_t *down)
{
	uint64_t hash = kv_client_hash(c, op->key, op->key_len);
	uint64_t bit = UINT64_C(1)
		       << kv_shard_of(hash, c->era[0]->g.shard_count);

	if (*down & bit)
		op->err = -EHOSTDOWN;
	else
		do_alone(c, op);
	if (op->err == -EHOSTDOWN)
		*down |= bit;
}

STATIC_ASSERT(KV_SHARDS_MAX <= 64, "bits of shards");

static void forget_changes(struct aq_kv_client *c)
{
	c->change_count = 0;
	memset(c->change_seen, 0, sizeof(c->change_seen));
}

void kv_async_flush(struct aq_kv_client *c)
{
	bool alone = false;
	uint64_t down = 0;
	uint32_t at = 0;

	if (c->is_flushing)
		return;
	c->is_flushing = true;
	while (at < c->change_count) {
		struct aq_kv_op **ops = &c->change[at];
		size_t n = 1, i;

		if (!alone) {
			n = do_together(c, ops, c->change_count - at, &alone);
		} else {
			do_next(c, ops[0], &down);
			alone = false;
		}
		for (i = 0; i < n; i++)
			tell(c, ops[i]);
		at += (uint32_t)n;
	}
	forget_changes(c);
	c->is_flushing = false;
}

static void submit_change(struct aq_kv_client *c, struct aq_kv_op *op)
{
	uint64_t bit;

	if (c->change_count == KV_CHANGES_MAX)
		kv_async_flush(c);
	*seen_word(c, op, &bit) |= bit;
	c->change[c->change_count++] = op;
}

int aq_kv_submit(struct aq_kv_client *c, struct aq_kv_op *op)
{
	int err = 0;

	if (!has_key(op))
		return error_set(-EINVAL, "a key has 1 to %d bytes, not %zu",
				 AQ_KV_KEY_MAX, op->key_len);
	if (op->kind > AQ_KV_OP_MODIFY ||
	    (op->kind == AQ_KV_OP_MODIFY && !op->fn))
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
		submit_change(c, op);
	if (err)
		return err;
	kv_count_submit(c, op);
	c->under_way++;
	return 0;
}

/* ---- telling ------------------------------------------------------------ */

static int step(struct aq_kv_client *c, struct kv_replica *replica)
{
	int err = replica->gets_busy ? kv_get_step(replica) : 0;

	if (UNLIKELY(err && replica->kit.is_broken &&
		     !replica->kit.is_crashed)) {
		kv_async_abandon(c, replica);
		err = 0;
	}
	kv_async_collect(c, replica);
	return err;
}

/* One look at every replica that has something under way or done. */
static int look(struct aq_kv_client *c)
{
	uint32_t i, s, k;
	int err = 0;

	if (c->change_count)
		kv_async_flush(c);
	for (i = 0; i < KV_ERAS_MAX && !err; i++) {
		struct kv_era *e = c->era[i];

		for (s = 0; e && s < e->g.shard_count && !err; s++)
			for (k = 0; k < e->g.copy_count && !err; k++)
				if (e->shard[s].replica[k])
					err = step(c, e->shard[s].replica[k]);
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
		kv_count_poll(c, done[n]);
	}
	c->under_way -= n;
	return n ? (int)n : err;
}

/* ---- batches ------------------------------------------------------------ */

/* Reads end in memory of the client, whoever waits for them. */
static void forget_reads(struct kv_replica *replica, int err)
{
	for (uint32_t i = 0; i < replica->depth && replica->gets_busy; i++) {
		struct kv_get *g = &replica->get[i];

		if (g->state == KV_GET_IDLE || g->state == KV_GET_DONE ||
		    !g->op)
			continue;
		g->op->err = err;
		kv_get_withdraw(replica, g);
	}
	replica->done_count = 0;
}

/* Whoever is told of a failure gives the memory of the operations back. So none
 * of them may be known here any more: changes that have not begun never do. */
static void forget_all(struct aq_kv_client *c, int err)
{
	for (uint32_t i = 0; i < c->change_count; i++)
		c->change[i]->err = err;
	forget_changes(c);
	for (uint32_t i = 0; i < KV_ERAS_MAX; i++) {
		struct kv_era *e = c->era[i];

		for (uint32_t s = 0; e && s < e->g.shard_count; s++)
			for (uint32_t k = 0; k < e->g.copy_count; k++)
				if (e->shard[s].replica[k])
					forget_reads(e->shard[s].replica[k],
						     err);
	}
	for (; c->done_count; c->done_count--) {
		struct aq_kv_op *op = c->done[c->done_head];

		if (op->err == KV_E_VIEW)
			op->err = err;
		c->done_head = (c->done_head + 1) % c->depth;
	}
	c->under_way = 0;
	c->probe = (struct tally_probe){0};
}

/* As many as there is room for; an operation that cannot be has its answer. */
static int submit_more(struct aq_kv_client *c, struct aq_kv_op *ops,
		       size_t count, size_t *started, size_t *ended)
{
	int err = 0;

	while (*started < count && !err) {
		struct aq_kv_op *op = &ops[*started];

		err = aq_kv_submit(c, op);
		if (err == -EINVAL) {
			op->err = err;
			++*ended;
			err = 0;
		}
		*started += !err;
	}
	return err == -EAGAIN ? 0 : err;
}

int aq_kv_batch(struct aq_kv_client *c, struct aq_kv_op *ops, size_t count)
{
	struct aq_kv_op *done[KV_POLL_BATCH];
	size_t started = 0, ended = 0;
	int err = 0, n;

	if (c->under_way)
		return error_set(-EBUSY, "operations that were submitted are "
					 "under way; poll until they are done");
	while (ended < count && !err) {
		err = submit_more(c, ops, count, &started, &ended);
		if (err)
			break;
		n = aq_kv_poll(c, done, KV_POLL_BATCH, true);
		if (n < 0)
			err = n;
		else
			ended += (size_t)n;
	}
	if (err)
		forget_all(c, err);
	for (; err && started < count; started++)
		ops[started].err = err;
	return err;
}
