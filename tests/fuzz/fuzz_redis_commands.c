/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All commands of the gateway, on a table in local memory. First the bytes are
 * one client's, whatever they are. Then those of its commands that depend on
 * nothing but the keys run twice, one by one and as one transaction: answers
 * and keys must be the same.
 */
#include "fake_kv.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "fuzz.h"
#include "redis/command.h"

enum {
	INPUT_MAX = 4096,
	COMMANDS_SOME = 100,
	OFFSET_DIGITS = 4, /* of a SETRANGE: longer ones are only slow */
};

static struct redis_options options = {
	.table = "t",
	.clients_max = 1,
	.query_bytes_max = 1 << 20,
	.output_bytes_max = 16 << 20,
	.clients_bytes_max = 64 << 20,
};

struct side {
	struct aq_kv_client table;
	struct group group;
	struct gateway gateway;
	struct client client;
};

static struct side *side_make(void)
{
	struct side *s = calloc(1, sizeof(*s));

	if (!s || group_init(&s->group))
		abort();
	group_add(&s->group, &s->gateway);
	group_turn_begin(&s->group);
	s->gateway.options = &options;
	s->gateway.kv_client = &s->table;
	list_init(&s->gateway.clients);
	hist_init(&s->gateway.latency);
	client_init(&s->client, &s->gateway, "fuzz");
	return s;
}

static void side_end(struct side *s)
{
	multi_release(&s->client.multi);
	if (s->client.multi.bytes || s->gateway.stage)
		abort();
	client_release(&s->gateway, &s->client);
	reply_release(&s->gateway.scratch);
	reply_release(&s->gateway.made);
	group_turn_end(&s->group);
	group_release(&s->group);
	fake_release(&s->table);
	free(s);
}

static void feed(struct side *s, const void *bytes, size_t len)
{
	const uint8_t *from = bytes;

	while (len && !s->client.is_ending && !s->client.out.is_lost) {
		size_t space, part;
		char *at;

		if (client_space(&s->gateway, &s->client, &at, &space))
			break;
		part = len < space ? len : space;
		memcpy(at, from, part);
		from += part;
		len -= part;
		client_filled(&s->gateway, &s->client, part);
		batch_flush(&s->gateway);
		/* It would wait for its answers to be read. */
		if (client_is_full(&s->client))
			break;
	}
}

/* Neither times nor the server's own state. */
static bool is_pure(const struct command *cmd, const struct resp_parser *p,
		    const char *buf)
{
	static const char *const names[] = {
		"append", "decr",   "decrby", "del",	     "echo",
		"exists", "get",    "getdel", "getrange",    "getset",
		"incr",	  "incrby", "mget",   "incrbyfloat", "mset",
		"set",	  "setnx",  "strlen", "setrange",    "substr",
		"touch",  "type",   "unlink", NULL};
	struct resp_str key;

	for (unsigned i = 0; !cmd || strcmp(cmd->name, names[i]); i++)
		if (!cmd || !names[i + 1])
			return false;
	if (cmd->run == redis_set && p->argc != 3)
		return false;
	if (cmd->run == redis_setrange &&
	    (p->argc != 4 || resp_arg(p, buf, 2).len > OFFSET_DIGITS))
		return false;
	if (cmd->arity >= 0 ? p->argc != (uint32_t)cmd->arity
			    : p->argc < (uint32_t)-cmd->arity)
		return false;
	if (!cmd->key_first)
		return true;
	key = resp_arg(p, buf, 1);
	return key.len >= 1 && key.len <= AQ_KV_KEY_MAX;
}

static void put_command(struct reply *to, const struct resp_parser *p,
			const char *buf)
{
	reply_array(to, p->argc);
	for (uint32_t i = 0; i < p->argc; i++) {
		struct resp_str a = resp_arg(p, buf, i);

		reply_bulk(to, a.p, a.len);
	}
}

/* The pure commands of the input, one after the other; how many. */
static unsigned pick(const uint8_t *data, size_t size, struct reply *to)
{
	struct resp_limits limits = {.bulk_max = INPUT_MAX};
	char *copy = fake_copy(data, size);
	struct resp_parser p = {0};
	unsigned count = 0;
	size_t at = 0;

	while (at < size && count < COMMANDS_SOME &&
	       resp_parse(&p, copy + at, size - at, &limits) == 1) {
		if (p.argc && is_pure(command_find(resp_arg(&p, copy + at, 0)),
				      &p, copy + at)) {
			put_command(to, &p, copy + at);
			count++;
		}
		at += p.at;
		resp_parser_next(&p);
	}
	resp_parser_release(&p);
	free(copy);
	return count;
}

static void compare_tables(struct aq_kv_client *a, struct aq_kv_client *b)
{
	uint64_t in_a, in_b;

	(void)aq_kv_count(a, &in_a);
	(void)aq_kv_count(b, &in_b);
	if (in_a != in_b)
		abort();
	for (unsigned i = 0; i < FAKE_KEYS; i++) {
		const struct fake_item *x = &a->item[i], *y;

		if (!x->key)
			continue;
		y = fake_find(b, x->key, x->key_len);
		if (!y || x->value_len != y->value_len ||
		    memcmp(x->value, y->value, x->value_len) != 0)
			abort();
	}
}

/* What EXEC answered, without the head of the array; NULL: an error. */
static const char *after_head(const struct reply *out, size_t from, size_t *len)
{
	const char *end = memchr(out->buf + from, '\n', out->len - from);

	if (out->buf[from] != '*' || !end)
		return NULL;
	*len = (size_t)(out->buf + out->len - end - 1);
	return end + 1;
}

static void compare(const struct reply *commands, unsigned count)
{
	struct side *alone = side_make(), *together = side_make();
	size_t mark, len = 0;
	const char *answers;

	feed(alone, commands->buf, commands->len);
	feed(together, "MULTI\r\n", 7);
	feed(together, commands->buf, commands->len);
	if (together->client.multi.count != count)
		abort();
	mark = together->client.out.len;
	feed(together, "EXEC\r\n", 6);
	if (client_is_full(&alone->client) || together->client.out.len == mark)
		goto out;
	answers = after_head(&together->client.out, mark, &len);
	if (!answers) /* more keys than a transaction may have */
		goto out;
	if (len != alone->client.out.len ||
	    memcmp(answers, alone->client.out.buf, len) != 0)
		abort();
	compare_tables(&alone->table, &together->table);
out:
	side_end(alone);
	side_end(together);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reply commands = {0};
	struct side *s;
	unsigned count;

	if (size > INPUT_MAX)
		return 0;
	error_clear();
	s = side_make();
	feed(s, data, size);
	side_end(s);
	count = pick(data, size, &commands);
	if (count)
		compare(&commands, count);
	reply_release(&commands);
	return 0;
}
