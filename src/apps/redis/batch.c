/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of all clients that were read in one turn and are one operation of
 * the table each, run together. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc.h"
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

/* One of EX, PX, EXAT, PXAT with its number. */
static bool read_end(struct resp_str word, const struct client *s,
		     const char *buf, uint32_t i, struct aq_kv_op *op)
{
	bool is_seconds = str_is(word, "ex") || str_is(word, "exat");
	bool is_absolute = str_is(word, "exat") || str_is(word, "pxat");
	unsigned flags = (is_seconds ? COMMAND_SECONDS : 0u) |
			 (is_absolute ? COMMAND_ABSOLUTE : 0u);
	int64_t n, when_ms;

	if ((!flags && !str_is(word, "px")) || op->expire_at_ms ||
	    i >= s->parser.argc || !read_number(s, buf, i, &n) || n <= 0 ||
	    !command_when(flags, n, &when_ms))
		return false;
	op->expire_at_ms = (uint64_t)when_ms;
	return true;
}

/* SET with its options; false: the command says what is wrong with them, or has
 * to answer with the value before. */
static bool make_set(struct gateway *g, const struct client *s, const char *buf,
		     struct aq_kv_op *op)
{
	if (s->parser.argc < 3)
		return false;
	make_put(s, buf, 2, op);
	for (uint32_t i = 3; i < s->parser.argc; i++) {
		struct resp_str word = resp_arg(&s->parser, buf, i);

		if (str_is(word, "nx"))
			op->flags |= AQ_KV_NX;
		else if (str_is(word, "xx"))
			op->flags |= AQ_KV_XX;
		else if (str_is(word, "keepttl"))
			op->flags |= AQ_KV_KEEP_TTL;
		else if (read_end(word, s, buf, ++i, op))
			reap_wake(g);
		else
			return false;
	}
	return !(op->flags & AQ_KV_NX && op->flags & AQ_KV_XX) &&
	       !(op->flags & AQ_KV_KEEP_TTL && op->expire_at_ms);
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

static bool make_append(struct gateway *g, const struct client *s,
			const char *buf, struct aq_kv_op *op)
{
	struct store_append *a = &g->batch_work[g->batch_len].append;

	if (s->parser.argc != 3)
		return false;
	*a = (struct store_append){.value = resp_arg(&s->parser, buf, 2),
				   .made = &g->made};
	op->kind = AQ_KV_OP_MODIFY;
	op->fn = store_append_fn;
	op->fn_user = a;
	return true;
}

static bool make_persist(struct gateway *g, const struct client *s,
			 struct aq_kv_op *op)
{
	op->kind = AQ_KV_OP_MODIFY;
	op->fn = store_persist_fn;
	op->fn_user = &g->batch_work[g->batch_len].end;
	return s->parser.argc == 2;
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
	if (cmd->run == redis_set)
		return make_set(g, s, buf, op);
	if (cmd->run == redis_setnx) {
		if (s->parser.argc != 3)
			return false;
		make_put(s, buf, 2, op);
		op->flags = AQ_KV_NX;
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
	if (cmd->run == redis_append)
		return make_append(g, s, buf, op);
	if (cmd->run == redis_persist)
		return make_persist(g, s, op);
	return make_sum(g, s, cmd, buf, op);
}

/* The bit of a key among those that are read; others may have the same. */
static uint64_t *read_word(struct gateway *g, struct resp_str key,
			   uint64_t *bit)
{
	uint64_t at = crc32c(0, key.p, key.len) % (64 * BATCH_READ_WORDS);

	*bit = UINT64_C(1) << (at % 64);
	return &g->batch_read[at / 64];
}

/* A value that is too long for the batch is read again after it. So a change of
 * its key must not be in the same batch. */
static void keep_apart(struct gateway *g, const struct command *cmd,
		       struct resp_str key)
{
	uint64_t bit, *word;

	if (cmd->run == redis_get) {
		word = read_word(g, key, &bit);
		*word |= bit;
		g->batch_has_reads = true;
	} else if (g->batch_has_reads) {
		word = read_word(g, key, &bit);
		if (*word & bit)
			batch_flush(g);
	}
}

bool batch_add(struct gateway *g, struct client *s, const struct command *cmd,
	       const char *buf)
{
	struct aq_kv_op *op;
	struct resp_str key;

	if (s->parser.argc < 2)
		return false;
	key = resp_arg(&s->parser, buf, 1);
	if (key.len < 1 || key.len > AQ_KV_KEY_MAX)
		return false;
	keep_apart(g, cmd, key);
	op = &g->batch[g->batch_len];
	*op = (struct aq_kv_op){
		.key = key.p,
		.key_len = key.len,
		.user = s,
	};
	if (!make_op(g, s, cmd, buf, op))
		return false;
	g->batch_changes += op->kind != AQ_KV_OP_GET;
	g->batch_command[g->batch_len] = cmd;
	if (++g->batch_len == BATCH_OPS)
		batch_flush(g);
	return true;
}

/* A value that did not fit; it is read once more, alone. */
static void answer_long_get(struct call *c, const struct aq_kv_op *op)
{
	struct reply *scratch = &c->gateway->scratch;
	struct resp_str key = {op->key, op->key_len};
	int err = call_get(c, key, scratch);

	if (!err)
		reply_bulk(c->out, scratch->buf, scratch->len);
	else if (err == -ENOENT)
		reply_nil(c->out);
}

void call_answer_get(struct call *c, const struct aq_kv_op *op)
{
	struct gateway *g = c->gateway;

	g->stats.hits += !op->err || op->err == -EMSGSIZE;
	g->stats.misses += op->err == -ENOENT;
	if (!op->err)
		reply_bulk(c->out, op->value, op->len);
	else if (op->err == -ENOENT)
		reply_nil(c->out);
	else if (op->err == -EMSGSIZE)
		answer_long_get(c, op);
	else
		reply_kv_error(c->out, op->err);
}

static void answer_put(struct client *s, const struct command *cmd,
		       const struct aq_kv_op *op)
{
	bool is_met = !op->err;

	/* A condition that was not met is no error. */
	if (op->err && op->err != -EEXIST &&
	    !(op->err == -ENOENT && op->flags & AQ_KV_XX))
		reply_kv_error(&s->out, op->err);
	else if (cmd->run == redis_setnx)
		reply_int(&s->out, is_met);
	else if (is_met)
		reply_simple(&s->out, "OK");
	else
		reply_nil(&s->out);
}

static void answer_modify(struct client *s, const struct aq_kv_op *op)
{
	const union batch_work *work = op->fn_user;

	if (op->err)
		reply_change_error(&s->out, op->err);
	else if (op->fn == store_append_fn)
		reply_int(&s->out, (int64_t)work->append.len);
	else if (op->fn == store_sum_fn)
		reply_int(&s->out, work->sum.result);
	else
		reply_int(&s->out, work->end.done);
}

static void answer_op(struct call *c, const struct aq_kv_op *op)
{
	if (op->kind == AQ_KV_OP_GET)
		call_answer_get(c, op);
	else if (op->kind == AQ_KV_OP_PUT)
		answer_put(c->client, c->command, op);
	else if (op->kind == AQ_KV_OP_MODIFY)
		answer_modify(c->client, op);
	else if (!op->err || op->err == -ENOENT)
		reply_int(c->out, !op->err);
	else
		reply_kv_error(c->out, op->err);
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
		answer_op(&c, &g->batch[i]);
	call_count(&c, mark);
}

int batch_run(struct gateway *g, uint32_t count, uint32_t changes)
{
	/* One change waits for another thread's in the table, if for any. */
	bool is_shared = changes > 1 && g->group->count > 1;
	int err;

	if (is_shared)
		group_changes_begin(g->group);
	err = aq_kv_batch(g->kv_client, g->batch, count);
	if (is_shared)
		group_changes_end(g->group);
	return err;
}

void batch_flush(struct gateway *g)
{
	uint32_t count = g->batch_len;
	uint64_t start_ns;
	int err;

	if (!count)
		return;
	g->batch_len = 0;
	if (g->batch_has_reads)
		memset(g->batch_read, 0, sizeof(g->batch_read));
	g->batch_has_reads = false;
	start_ns = clock_mono_ns();
	err = batch_run(g, count, g->batch_changes);
	g->batch_changes = 0;
	for (uint32_t i = 0; i < count; i++)
		answer(g, i, err);
	hist_record_many(&g->latency, clock_mono_ns() - start_ns, count);
}
