/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, and the way to one. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "number.h"

enum {
	W = COMMAND_WRITE,
	R = COMMAND_READONLY,
	F = COMMAND_FAST,
	N = COMMAND_NO_AUTH,
	B = COMMAND_BATCH,
	S = COMMAND_SECONDS,
	A = COMMAND_ABSOLUTE,
	COMMAND_NAME_MAX = 16,
	COMPLAINT_ARGS_BYTES = 128, /* as in Redis */
};

const struct command redis_commands[] = {
	{"append", redis_append, 3, W | F, 1, 1, 1},
	{"auth", redis_auth, -2, F | N, 0, 0, 0},
	{"client", redis_client, -2, 0, 0, 0, 0},
	{"command", redis_command, -1, 0, 0, 0, 0},
	{"config", redis_config, -2, 0, 0, 0, 0},
	{"dbsize", redis_dbsize, 1, R | F, 0, 0, 0},
	{"decr", redis_decr, 2, W | F, 1, 1, 1},
	{"decrby", redis_decrby, 3, W | F, 1, 1, 1},
	{"del", redis_del, -2, W, 1, -1, 1},
	{"echo", redis_echo, 2, F, 0, 0, 0},
	{"exists", redis_exists, -2, R | F, 1, -1, 1},
	{"expire", redis_expire, -3, W | F | S, 1, 1, 1},
	{"expireat", redis_expire, -3, W | F | S | A, 1, 1, 1},
	{"expiretime", redis_ttl, 2, R | F | S | A, 1, 1, 1},
	{"flushall", redis_flushall, -1, W, 0, 0, 0},
	{"flushdb", redis_flushall, -1, W, 0, 0, 0},
	{"get", redis_get, 2, R | F | B, 1, 1, 1},
	{"getdel", redis_getdel, 2, W | F, 1, 1, 1},
	{"getex", redis_getex, -2, W | F, 1, 1, 1},
	{"getrange", redis_getrange, 4, R, 1, 1, 1},
	{"getset", redis_getset, 3, W | F, 1, 1, 1},
	{"hello", redis_hello, -1, F | N, 0, 0, 0},
	{"incr", redis_incr, 2, W | F, 1, 1, 1},
	{"incrby", redis_incrby, 3, W | F, 1, 1, 1},
	{"incrbyfloat", redis_incrbyfloat, 3, W | F, 1, 1, 1},
	{"info", redis_info, -1, 0, 0, 0, 0},
	{"keys", redis_keys, 2, R, 0, 0, 0},
	{"mget", redis_mget, -2, R | F, 1, -1, 1},
	{"mset", redis_mset, -3, W, 1, -1, 2},
	{"persist", redis_persist, 2, W | F, 1, 1, 1},
	{"pexpire", redis_expire, -3, W | F, 1, 1, 1},
	{"pexpireat", redis_expire, -3, W | F | A, 1, 1, 1},
	{"pexpiretime", redis_ttl, 2, R | F | A, 1, 1, 1},
	{"ping", redis_ping, -1, F, 0, 0, 0},
	{"psetex", redis_setex, 4, W, 1, 1, 1},
	{"pttl", redis_ttl, 2, R | F, 1, 1, 1},
	{"quit", redis_quit, -1, F | N, 0, 0, 0},
	{"reset", redis_reset, 1, F | N, 0, 0, 0},
	{"scan", redis_scan, -2, R, 0, 0, 0},
	{"select", redis_select, 2, F, 0, 0, 0},
	{"set", redis_set, -3, W | B, 1, 1, 1},
	{"setex", redis_setex, 4, W | S, 1, 1, 1},
	{"setnx", redis_setnx, 3, W | F, 1, 1, 1},
	{"setrange", redis_setrange, 4, W, 1, 1, 1},
	{"strlen", redis_strlen, 2, R | F, 1, 1, 1},
	{"substr", redis_getrange, 4, R, 1, 1, 1},
	{"time", redis_time, 1, F, 0, 0, 0},
	{"touch", redis_exists, -2, R | F, 1, -1, 1},
	{"ttl", redis_ttl, 2, R | F | S, 1, 1, 1},
	{"type", redis_type, 2, R | F, 1, 1, 1},
	{"unlink", redis_del, -2, W | F, 1, -1, 1},
	{0},
};

const struct command *command_find(struct resp_str name)
{
	size_t low = 0, high = ARRAY_LEN(redis_commands) - 1;
	char text[COMMAND_NAME_MAX];

	if (name.len >= sizeof(text) || memchr(name.p, 0, name.len))
		return NULL;
	memcpy(text, name.p, name.len);
	text[name.len] = 0;
	while (low < high) {
		size_t mid = (low + high) / 2;
		int order = strcasecmp(text, redis_commands[mid].name);

		if (order == 0)
			return &redis_commands[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

/* ---- what commands share ------------------------------------------------ */

bool str_is(struct resp_str s, const char *word)
{
	return s.len == strlen(word) && strncasecmp(s.p, word, s.len) == 0;
}

bool call_is(const struct call *c, uint32_t i, const char *word)
{
	return str_is(call_arg(c, i), word);
}

bool call_int(struct call *c, uint32_t i, int64_t *out)
{
	struct resp_str s = call_arg(c, i);

	if (number_parse(s.p, s.len, out))
		return true;
	reply_error(c->out, "ERR value is not an integer or out of range");
	return false;
}

static bool key_ok(struct reply *out, struct resp_str key)
{
	if (key.len >= 1 && key.len <= AQ_KV_KEY_MAX)
		return true;
	reply_error(out, "ERR a key has 1 to %d bytes here", AQ_KV_KEY_MAX);
	return false;
}

bool call_key_ok(struct call *c, uint32_t i)
{
	return key_ok(c->out, call_arg(c, i));
}

void call_syntax_error(struct call *c)
{
	reply_error(c->out, "ERR syntax error");
}

int call_get(struct call *c, struct resp_str key, struct reply *into)
{
	struct aq_kv_client *client = c->gateway->kv_client;
	size_t len = BATCH_VALUE_BYTES;
	int err;

	into->len = 0;
	do {
		/* Somebody may make it longer between two tries. */
		if (!reply_reserve(into, len)) {
			into->is_lost = false;
			reply_error(c->out, "ERR no memory");
			return -ENOMEM;
		}
		err = aq_kv_get(client, key.p, key.len, into->buf,
				into->capacity, &len);
	} while (err == -EMSGSIZE);
	if (err && err != -ENOENT)
		reply_kv_error(c->out, err);
	if (!err)
		into->len = len;
	return err;
}

/* ---- running ------------------------------------------------------------ */

static void answer_unknown(struct call *c)
{
	char args[COMPLAINT_ARGS_BYTES + 8];
	struct resp_str name = call_arg(c, 0);
	size_t len = 0;

	args[0] = 0;
	for (uint32_t i = 1; i < c->argc && len < COMPLAINT_ARGS_BYTES; i++) {
		struct resp_str a = call_arg(c, i);

		len += (size_t)snprintf(
			args + len, sizeof(args) - len, "'%.*s' ",
			(int)u64_min(a.len, COMPLAINT_ARGS_BYTES - len), a.p);
		len = u64_min(len, sizeof(args) - 1);
	}
	reply_error(c->out,
		    "ERR unknown command '%.*s', with args beginning with: %s",
		    (int)u64_min(name.len, COMPLAINT_ARGS_BYTES), name.p, args);
}

static bool arity_ok(const struct command *cmd, uint32_t argc)
{
	return cmd->arity >= 0 ? argc == (uint32_t)cmd->arity
			       : argc >= (uint32_t)-cmd->arity;
}

void command_run(struct gateway *g, struct client *s, const char *buf)
{
	struct call c = {
		.gateway = g,
		.client = s,
		.out = &s->out,
		.argc = s->parser.argc,
		.buf = buf,
	};

	g->stats.commands++;
	/* Most clients say again what they said before. */
	if (!s->last || !str_is(call_arg(&c, 0), s->last->name))
		s->last = command_find(call_arg(&c, 0));
	c.command = s->last;
	if (c.command && c.command->flags & COMMAND_BATCH && s->is_trusted &&
	    batch_add(g, s, c.command, buf))
		return;
	batch_flush(g);
	if (!c.command) {
		answer_unknown(&c);
	} else if (!arity_ok(c.command, c.argc)) {
		reply_error(c.out,
			    "ERR wrong number of arguments for '%s' command",
			    c.command->name);
	} else if (!s->is_trusted && !(c.command->flags & COMMAND_NO_AUTH)) {
		reply_error(c.out, "NOAUTH Authentication required.");
	} else if (c.command->key_first == 1 && !call_key_ok(&c, 1)) {
		return; /* answered */
	} else {
		c.command->run(&c);
	}
}
