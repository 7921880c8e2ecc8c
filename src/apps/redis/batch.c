/* SPDX-License-Identifier: Apache-2.0 */
/* GETs and SETs of all clients that were read in one turn, run together. */
#include <errno.h>

#include "base/clock.h"
#include "command.h"

bool batch_add(struct gateway *g, struct client *s, const struct command *cmd,
	       const char *buf)
{
	bool is_get = cmd->run == redis_get;
	struct aq_kv_op *op = &g->batch[g->batch_len];
	struct resp_str key, value;

	if (s->parser.argc != (is_get ? 2 : 3))
		return false;
	key = resp_arg(&s->parser, buf, 1);
	if (key.len < 1 || key.len > AQ_KV_KEY_MAX)
		return false;
	*op = (struct aq_kv_op){
		.kind = is_get ? AQ_KV_OP_GET : AQ_KV_OP_PUT,
		.key = key.p,
		.key_len = key.len,
		.user = s,
	};
	if (is_get) {
		op->value = g->batch_value[g->batch_len];
		op->value_len = BATCH_VALUE_BYTES;
	} else {
		value = resp_arg(&s->parser, buf, 2);
		op->value = (void *)(uintptr_t)value.p; /* only read */
		op->value_len = value.len;
	}
	g->batch_command[g->batch_len] = cmd;
	if (++g->batch_len == BATCH_OPS)
		batch_flush(g);
	return true;
}

/* A value that did not fit; it is read once more, alone. */
static void answer_long_get(struct gateway *g, struct client *s,
			    const struct aq_kv_op *op)
{
	struct call c = {.gateway = g, .client = s, .out = &s->out};
	struct resp_str key = {op->key, op->key_len};
	int err = call_get(&c, key, &g->scratch);

	if (!err)
		reply_bulk(&s->out, g->scratch.buf, g->scratch.len);
	else if (err == -ENOENT)
		reply_nil(&s->out);
}

static void answer_op(struct gateway *g, struct client *s,
		      const struct aq_kv_op *op)
{
	bool is_get = op->kind == AQ_KV_OP_GET;

	if (is_get) {
		g->stats.hits += !op->err || op->err == -EMSGSIZE;
		g->stats.misses += op->err == -ENOENT;
	}
	if (!op->err && is_get)
		reply_bulk(&s->out, op->value, op->len);
	else if (!op->err)
		reply_simple(&s->out, "OK");
	else if (is_get && op->err == -ENOENT)
		reply_nil(&s->out);
	else if (is_get && op->err == -EMSGSIZE)
		answer_long_get(g, s, op);
	else
		reply_kv_error(&s->out, op->err);
}

/* One answer, and whether it was an error. */
static void answer(struct gateway *g, uint32_t i, int err)
{
	struct client *s = g->batch[i].user;
	struct call c = {.gateway = g,
			 .client = s,
			 .out = &s->out,
			 .command = g->batch_command[i]};
	size_t mark = s->out.len;

	if (err)
		reply_kv_error(&s->out, err);
	else
		answer_op(g, s, &g->batch[i]);
	call_count(&c, mark);
}

void batch_flush(struct gateway *g)
{
	uint32_t count = g->batch_len;
	uint64_t start_ns;
	int err;

	if (!count)
		return;
	g->batch_len = 0;
	start_ns = clock_mono_ns();
	err = aq_kv_batch(g->kv_client, g->batch, count);
	for (uint32_t i = 0; i < count; i++)
		answer(g, i, err);
	hist_record_many(&g->latency, clock_mono_ns() - start_ns, count);
}
