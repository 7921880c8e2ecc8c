/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of several keys. Outside of a transaction their keys go to the table
 * together, so that many take hardly longer than one. They are not one step:
 * others may see some of the keys changed and some not yet.
 */
#include <errno.h>

#include "command.h"
#include "store.h"

/* Before anything is done. */
static bool are_keys_ok(struct call *c, uint32_t step)
{
	for (uint32_t i = 1; i < c->argc; i += step)
		if (!call_key_ok(c, i))
			return false;
	return true;
}

/* The same on a stage, one by one. */
static int run_staged(struct gateway *g, const struct aq_kv_op *op)
{
	const struct resp_str key = {op->key, op->key_len};
	const struct resp_str value = {op->value, op->value_len};
	size_t len;
	int err;

	if (op->kind == AQ_KV_OP_PUT)
		return store_put(g, key, value, NULL);
	if (op->kind == AQ_KV_OP_DEL)
		return store_del(g, key);
	/* It is there; who wants the value reads it alone. */
	err = store_length(g, key, &len);
	return err ? err : -EMSGSIZE;
}

/*
 * Runs the command's keys from an argument on, as many as a batch has, and
 * returns how many that were; g->batch has what became of each. The batch of
 * other commands is empty while one runs alone.
 */
static uint32_t run_keys(struct call *c, uint32_t at, uint32_t step,
			 struct aq_kv_op like)
{
	struct gateway *g = c->gateway;
	uint32_t n = 0;

	for (; at < c->argc && n < BATCH_OPS; at += step, n++) {
		struct aq_kv_op *op = &g->batch[n];
		struct resp_str key = call_arg(c, at);

		*op = like;
		op->key = key.p;
		op->key_len = key.len;
		if (like.kind == AQ_KV_OP_PUT) {
			struct resp_str value = call_arg(c, at + 1);

			op->value = (void *)(uintptr_t)value.p; /* only read */
			op->value_len = value.len;
		} else if (like.value_len) {
			op->value = g->batch_value[n];
		}
		if (g->stage)
			op->err = run_staged(g, op);
	}
	/* Each has its own error, also when the batch has failed. */
	if (!g->stage)
		(void)batch_run(g, n, like.kind == AQ_KV_OP_GET ? 0 : n);
	return n;
}

/* An array that has errors instead of values where a node is lost: the client
 * sees which ones. */
void redis_mget(struct call *c)
{
	const struct aq_kv_op like = {.kind = AQ_KV_OP_GET,
				      .value_len = BATCH_VALUE_BYTES};
	uint32_t n;

	if (!are_keys_ok(c, 1))
		return;
	reply_array(c->out, c->argc - 1);
	for (uint32_t at = 1; at < c->argc; at += n) {
		n = run_keys(c, at, 1, like);
		for (uint32_t i = 0; i < n && !c->out->is_lost; i++)
			call_answer_get(c, &c->gateway->batch[i]);
		if (c->out->is_lost)
			return;
	}
}

void redis_mset(struct call *c)
{
	const struct aq_kv_op like = {.kind = AQ_KV_OP_PUT};
	uint32_t n;

	if (c->argc % 2 == 0) {
		reply_error(c->out,
			    "ERR wrong number of arguments for 'mset' command");
		return;
	}
	if (!are_keys_ok(c, 2))
		return;
	for (uint32_t at = 1; at < c->argc; at += 2 * n) {
		n = run_keys(c, at, 2, like);
		for (uint32_t i = 0; i < n; i++)
			if (c->gateway->batch[i].err) {
				reply_kv_error(c->out,
					       c->gateway->batch[i].err);
				return;
			}
	}
	reply_simple(c->out, "OK");
}

/* Answers how many keys there are, or were. */
static void count_keys(struct call *c, struct aq_kv_op like)
{
	int64_t count = 0;
	uint32_t n;

	if (!are_keys_ok(c, 1))
		return;
	for (uint32_t at = 1; at < c->argc; at += n) {
		n = run_keys(c, at, 1, like);
		for (uint32_t i = 0; i < n; i++) {
			int err = c->gateway->batch[i].err;

			/* Too long for a buffer of no bytes. */
			if (err && err != -ENOENT && err != -EMSGSIZE) {
				reply_kv_error(c->out, err);
				return;
			}
			count += err != -ENOENT;
		}
	}
	reply_int(c->out, count);
}

void redis_del(struct call *c)
{
	count_keys(c, (struct aq_kv_op){.kind = AQ_KV_OP_DEL});
}

void redis_exists(struct call *c)
{
	count_keys(c, (struct aq_kv_op){.kind = AQ_KV_OP_GET});
}
