/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of all clients that were read in one turn and are one operation of
 * the table each, run together. */
#include <errno.h>

#include "base/clock.h"
#include "command.h"
#include "number.h"

/* A number among the arguments; false: it is answered by the command itself. */
static bool read_number(const struct client *s, const char *buf, uint32_t i,
			int64_t *n)
{
	struct resp_str text = resp_arg(&s->parser, buf, i);

	return number_parse(text.p, text.len, n);
}

/* What the argument adds. */
static bool read_sum(const struct client *s, const struct command *cmd,
		     const char *buf, int64_t *add)
{
	bool is_less = cmd->run == redis_decr || cmd->run == redis_decrby;

	*add = 1;
	if (cmd->run == redis_incrby || cmd->run == redis_decrby)
		if (!read_number(s, buf, 2, add) || *add == INT64_MIN)
			return false;
	if (is_less)
		*add = -*add;
	return true;
}

static void make_put(const struct client *s, const char *buf, uint32_t i,
		     struct aq_kv_op *op)
{
	struct resp_str value = resp_arg(&s->parser, buf, i);

	op->kind = AQ_KV_OP_PUT;
	op->value = (void *)(uintptr_t)value.p; /* only read */
	op->value_len = value.len;
}

/* A value with an end. */
static bool make_setex(struct gateway *g, const struct client *s,
		       const struct command *cmd, const char *buf,
		       struct aq_kv_op *op)
{
	int64_t n, when_ms;

	if (s->parser.argc != 4 || !read_number(s, buf, 2, &n) || n <= 0 ||
	    !command_when(cmd->flags, n, &when_ms))
		return false;
	make_put(s, buf, 3, op);
	op->expire_at_ms = (uint64_t)when_ms;
	reap_wake(g);
	return true;
}

/* EXPIRE and its relatives, without options. */
static bool make_end(struct gateway *g, const struct client *s,
		     const struct command *cmd, const char *buf,
		     struct aq_kv_op *op)
{
	struct store_end *e = &g->batch_work[g->batch_len].end;
	int64_t n;

	*e = (struct store_end){.now_ms = (int64_t)clock_real_ms()};
	if (s->parser.argc != 3 || !read_number(s, buf, 2, &n) ||
	    !command_when(cmd->flags, n, &e->when_ms))
		return false;
	op->kind = AQ_KV_OP_MODIFY;
	op->fn = store_end_fn;
	op->fn_user = e;
	reap_wake(g);
	return true;
}

static bool make_sum(struct gateway *g, const struct client *s,
		     const struct command *cmd, const char *buf,
		     struct aq_kv_op *op)
{
	struct store_sum *sum = &g->batch_work[g->batch_len].sum;

	op->kind = AQ_KV_OP_MODIFY;
	op->fn = store_sum_fn;
	op->fn_user = sum;
	return (int)s->parser.argc == cmd->arity &&
	       read_sum(s, cmd, buf, &sum->add);
}

/* The operation that the command is; false: it is more than one. */
static bool make_op(struct gateway *g, const struct client *s,
		    const struct command *cmd, const char *buf,
		    struct aq_kv_op *op)
{
	if (cmd->run == redis_get) {
		op->kind = AQ_KV_OP_GET;
		op->value = g->batch_value[g->batch_len];
		op->value_len = BATCH_VALUE_BYTES;
		return s->parser.argc == 2;
	}
	if (cmd->run == redis_set) {
		if (s->parser.argc != 3)
			return false;
		make_put(s, buf, 2, op);
		return true;
	}
	if (cmd->run == redis_del) {
		op->kind = AQ_KV_OP_DEL;
		return s->parser.argc == 2;
	}
	if (cmd->run == redis_setex)
		return make_setex(g, s, cmd, buf, op);
	if (cmd->run == redis_expire)
		return make_end(g, s, cmd, buf, op);
	return make_sum(g, s, cmd, buf, op);
}

bool batch_add(struct gateway *g, struct client *s, const struct command *cmd,
	       const char *buf)
{
	struct aq_kv_op *op = &g->batch[g->batch_len];
	struct resp_str key;

	if (s->parser.argc < 2)
		return false;
	key = resp_arg(&s->parser, buf, 1);
	if (key.len < 1 || key.len > AQ_KV_KEY_MAX)
		return false;
	*op = (struct aq_kv_op){
		.key = key.p,
		.key_len = key.len,
		.user = s,
	};
	if (!make_op(g, s, cmd, buf, op))
		return false;
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

static void answer_get(struct gateway *g, struct client *s,
		       const struct aq_kv_op *op)
{
	g->stats.hits += !op->err || op->err == -EMSGSIZE;
	g->stats.misses += op->err == -ENOENT;
	if (!op->err)
		reply_bulk(&s->out, op->value, op->len);
	else if (op->err == -ENOENT)
		reply_nil(&s->out);
	else if (op->err == -EMSGSIZE)
		answer_long_get(g, s, op);
	else
		reply_kv_error(&s->out, op->err);
}

static void answer_op(struct gateway *g, struct client *s,
		      const struct aq_kv_op *op)
{
	const union batch_work *work = op->fn_user;

	if (op->kind == AQ_KV_OP_GET)
		answer_get(g, s, op);
	else if (op->kind == AQ_KV_OP_DEL && (!op->err || op->err == -ENOENT))
		reply_int(&s->out, !op->err);
	else if (op->err)
		reply_kv_error(&s->out, op->err);
	else if (op->kind == AQ_KV_OP_PUT)
		reply_simple(&s->out, "OK");
	else if (op->fn == store_end_fn)
		reply_int(&s->out, work->end.done);
	else
		reply_int(&s->out, work->sum.result);
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
