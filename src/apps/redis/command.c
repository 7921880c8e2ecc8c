/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, and the way to one. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "number.h"
#include "store.h"

enum {
	W = COMMAND_WRITE,
	R = COMMAND_READONLY,
	F = COMMAND_FAST,
	N = COMMAND_NO_AUTH,
	B = COMMAND_BATCH,
	S = COMMAND_SECONDS,
	A = COMMAND_ABSOLUTE,
	I = COMMAND_NOW,
	X = COMMAND_NO_MULTI,
	T = COMMAND_TABLE,
	COMMAND_NAME_MAX = 16,
	COMPLAINT_ARGS_BYTES = 128, /* as in Redis */
	WHY_MAX = TABLE_WHY_MAX + 80,
};

const struct command redis_commands[] = {
	{"append", redis_append, 3, W | F | B, 1, 1, 1},
	{"auth", redis_auth, -2, F | N | X, 0, 0, 0},
	{"client", redis_client, -2, X, 0, 0, 0},
	{"command", redis_command, -1, 0, 0, 0, 0},
	{"config", redis_config, -2, 0, 0, 0, 0},
	{"dbsize", redis_dbsize, 1, R | F | X, 0, 0, 0},
	{"decr", redis_decr, 2, W | F | B, 1, 1, 1},
	{"decrby", redis_decrby, 3, W | F | B, 1, 1, 1},
	{"del", redis_del, -2, W | B, 1, -1, 1},
	{"discard", redis_discard, 1, F | I, 0, 0, 0},
	{"echo", redis_echo, 2, F, 0, 0, 0},
	{"exec", redis_exec, 1, I | T, 0, 0, 0},
	{"exists", redis_exists, -2, R | F, 1, -1, 1},
	{"expire", redis_expire, -3, W | B | F | S, 1, 1, 1},
	{"expireat", redis_expire, -3, W | B | F | S | A, 1, 1, 1},
	{"expiretime", redis_ttl, 2, R | F | S | A, 1, 1, 1},
	{"flushall", redis_flushall, -1, W | X, 0, 0, 0},
	{"flushdb", redis_flushall, -1, W | X, 0, 0, 0},
	{"get", redis_get, 2, R | F | B, 1, 1, 1},
	{"getdel", redis_getdel, 2, W | F, 1, 1, 1},
	{"getex", redis_getex, -2, W | F, 1, 1, 1},
	{"getrange", redis_getrange, 4, R, 1, 1, 1},
	{"getset", redis_getset, 3, W | F, 1, 1, 1},
	{"hello", redis_hello, -1, F | N | X, 0, 0, 0},
	{"incr", redis_incr, 2, W | F | B, 1, 1, 1},
	{"incrby", redis_incrby, 3, W | F | B, 1, 1, 1},
	{"incrbyfloat", redis_incrbyfloat, 3, W | F, 1, 1, 1},
	{"info", redis_info, -1, X, 0, 0, 0},
	{"keys", redis_keys, 2, R | X, 0, 0, 0},
	{"mget", redis_mget, -2, R | F, 1, -1, 1},
	{"mset", redis_mset, -3, W, 1, -1, 2},
	{"multi", redis_multi, 1, F | I, 0, 0, 0},
	{"persist", redis_persist, 2, W | F | B, 1, 1, 1},
	{"pexpire", redis_expire, -3, W | B | F, 1, 1, 1},
	{"pexpireat", redis_expire, -3, W | B | F | A, 1, 1, 1},
	{"pexpiretime", redis_ttl, 2, R | F | A, 1, 1, 1},
	{"ping", redis_ping, -1, F | T, 0, 0, 0},
	{"psetex", redis_setex, 4, W | B, 1, 1, 1},
	{"pttl", redis_ttl, 2, R | F, 1, 1, 1},
	{"quit", redis_quit, -1, F | N | I, 0, 0, 0},
	{"reset", redis_reset, 1, F | N | I, 0, 0, 0},
	{"scan", redis_scan, -2, R | X, 0, 0, 0},
	{"select", redis_select, 2, F, 0, 0, 0},
	{"set", redis_set, -3, W | B, 1, 1, 1},
	{"setex", redis_setex, 4, W | B | S, 1, 1, 1},
	{"setnx", redis_setnx, 3, W | F | B, 1, 1, 1},
	{"setrange", redis_setrange, 4, W, 1, 1, 1},
	{"strlen", redis_strlen, 2, R | F, 1, 1, 1},
	{"substr", redis_getrange, 4, R, 1, 1, 1},
	{"time", redis_time, 1, F, 0, 0, 0},
	{"touch", redis_exists, -2, R | F, 1, -1, 1},
	{"ttl", redis_ttl, 2, R | F | S, 1, 1, 1},
	{"type", redis_type, 2, R | F, 1, 1, 1},
	{"unlink", redis_del, -2, W | F | B, 1, -1, 1},
	{"unwatch", redis_unwatch, 1, F, 0, 0, 0},
	{"watch", redis_watch, -2, F | I | T, 1, -1, 1},
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
	int err = store_get(c->gateway, key, into);

	if (err == -ENOMEM)
		reply_error(c->out, "ERR no memory");
	else if (err && err != -ENOENT)
		reply_kv_error(c->out, err);
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

/* Whether a command cannot run because the table is lost. */
static bool needs_lost_table(const struct gateway *g, const struct command *cmd)
{
	return g->table.status == TABLE_LOST &&
	       cmd->flags & (COMMAND_READONLY | COMMAND_WRITE | COMMAND_TABLE);
}

/* A refused EXEC says that it is the end of its transaction, too. */
static void refuse(struct call *c, const char *code, const char *why)
{
	if (c->command->run == redis_exec) {
		multi_release(&c->client->multi);
		reply_error(c->out,
			    "EXECABORT Transaction discarded because of: %s",
			    why);
	} else {
		reply_error(c->out, "%s %s", code, why);
	}
}

/* Why a command that is known by its name is neither executed nor queued.
 * False: it was answered. */
static bool is_allowed(struct call *c)
{
	const struct command *cmd = c->command;
	char why[WHY_MAX];

	if (!arity_ok(cmd, c->argc)) {
		(void)snprintf(why, sizeof(why),
			       "wrong number of arguments for '%s' command",
			       cmd->name);
		refuse(c, "ERR", why);
	} else if (!c->client->is_trusted && !(cmd->flags & COMMAND_NO_AUTH)) {
		refuse(c, "NOAUTH", "Authentication required.");
	} else if (c->client->multi.is_on && cmd->flags & COMMAND_NO_MULTI) {
		refuse(c, "ERR", "Command not allowed inside a transaction");
	} else if (needs_lost_table(c->gateway, cmd)) {
		(void)snprintf(
			why, sizeof(why), "far memory: table %s is lost: %s",
			c->gateway->options->table, c->gateway->table.why);
		refuse(c, "ERR", why);
	} else {
		return cmd->key_first != 1 || call_key_ok(c, 1);
	}
	return false;
}

static void queue(struct call *c)
{
	struct multi *m = &c->client->multi;
	int err = multi_queue(m, c->command, c->argc, c->span, c->buf,
			      c->gateway->options->query_bytes_max);

	if (!err) {
		reply_simple(c->out, "QUEUED");
		return;
	}
	m->is_aborted = true;
	if (err == -E2BIG)
		reply_error(c->out,
			    "ERR a transaction has at most %d commands, and "
			    "not more bytes than --query-limit",
			    MULTI_COMMANDS_MAX);
	else
		reply_error(c->out, "ERR no memory");
}

STATIC_ASSERT(ARRAY_LEN(redis_commands) <= COMMANDS_MAX, "commands");

void call_count(const struct call *c, size_t mark)
{
	struct gateway_stats *s = &c->gateway->stats;
	size_t row = (size_t)(c->command - redis_commands);

	s->calls[row]++;
	s->errors[row] += c->out->len > mark && c->out->buf[mark] == '-';
}

void command_call(struct call *c)
{
	size_t mark = c->out->len;
	uint64_t start_ns = clock_mono_ns();

	c->command->run(c);
	call_count(c, mark);
	/* Those of a transaction are in the time of its EXEC. */
	if (!c->gateway->stage)
		hist_record(&c->gateway->latency, clock_mono_ns() - start_ns);
}

void command_run(struct gateway *g, struct client *s, const char *buf)
{
	struct call c = {
		.gateway = g,
		.client = s,
		.out = &s->out,
		.argc = s->parser.argc,
		.span = s->parser.span,
		.buf = buf,
	};

	g->stats.commands++;
	/* Most clients say again what they said before. */
	if (!s->last || !str_is(call_arg(&c, 0), s->last->name))
		s->last = command_find(call_arg(&c, 0));
	c.command = s->last;
	if (c.command && c.command->flags & COMMAND_BATCH && s->is_trusted &&
	    !s->multi.is_on && g->table.status != TABLE_LOST &&
	    batch_add(g, s, c.command, buf))
		return;
	batch_flush(g);
	if (!c.command)
		answer_unknown(&c);
	else if (is_allowed(&c)) {
		if (s->multi.is_on && !(c.command->flags & COMMAND_NOW))
			queue(&c);
		else
			command_call(&c);
		return;
	}
	/* It was refused, so what it was to be a part of must not happen. */
	g->stats.rejected++;
	s->multi.is_aborted |= s->multi.is_on;
}
