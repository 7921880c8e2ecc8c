/* SPDX-License-Identifier: Apache-2.0 */
/* The commands, and what their functions share. */
#ifndef AQ_REDIS_COMMAND_H
#define AQ_REDIS_COMMAND_H

#include "client.h"

struct call {
	struct gateway *gateway;
	struct client *client;
	struct reply *out;
	const struct command *command;
	uint32_t argc;
	const struct resp_span *span; /* see call_arg */
	const char *buf;
};

enum command_flags {
	COMMAND_WRITE = 1u << 0,
	COMMAND_READONLY = 1u << 1,
	COMMAND_FAST = 1u << 2,
	COMMAND_NO_AUTH = 1u << 3,  /* also before AUTH */
	COMMAND_BATCH = 1u << 4,    /* may run together with its neighbours */
	COMMAND_SECONDS = 1u << 5,  /* its times are in seconds, not ms */
	COMMAND_ABSOLUTE = 1u << 6, /* its times are since 1970, not relative */
	COMMAND_NOW = 1u << 7,	    /* inside MULTI, too, it is not queued */
	COMMAND_NO_MULTI = 1u << 8, /* it is refused there */
	COMMAND_TABLE = 1u << 9, /* needs the table, as reads and writes do */
};

struct command {
	const char *name; /* lower case */
	void (*run)(struct call *c);
	int arity; /* with the name; negative: at least */
	unsigned flags;
	/* As COMMAND INFO tells it. */
	int key_first, key_last, key_step;
};

/* Ends with a row whose name is NULL; in the order of the names. */
extern const struct command redis_commands[];

const struct command *command_find(struct resp_str name);
/* Runs the command that the client's parser has read, or answers why not. */
void command_run(struct gateway *g, struct client *s, const char *buf);
/* Calls the command's function, and counts. */
void command_call(struct call *c);
/* Counts a command whose answer begins at `mark` of its output. */
void call_count(const struct call *c, size_t mark);

/* Runs the collected commands and answers them in their order. Until then the
 * buffers of these clients must not change. */
void batch_flush(struct gateway *g);
/* Whether the command was added to the batch: GET, SET without the option GET,
 * SETNX, SETEX, APPEND, DEL of one key, INCR, EXPIRE without options, PERSIST,
 * and their relatives. */
bool batch_add(struct gateway *g, struct client *s, const struct command *cmd,
	       const char *buf);
/* Runs the first operations of g->batch, so many of them changes. As
 * aq_kv_batch. */
int batch_run(struct gateway *g, uint32_t count, uint32_t changes);
/* Answers a GET of it. */
void call_answer_get(struct call *c, const struct aq_kv_op *op);

static inline struct resp_str call_arg(const struct call *c, uint32_t i)
{
	return (struct resp_str){c->buf + c->span[i].at, c->span[i].len};
}

/* Whether the argument is that word, whatever its case. */
bool call_is(const struct call *c, uint32_t i, const char *word);
bool str_is(struct resp_str s, const char *word);

/* A number, or an answer that there is none. */
bool call_int(struct call *c, uint32_t i, int64_t *out);
/* Whether the key is valid; if not, answers so. */
bool call_key_ok(struct call *c, uint32_t i);
void call_syntax_error(struct call *c);

/*
 * The whole value of a key into `into`, which is emptied before. 0, -ENOENT, or
 * an error, which is answered.
 */
int call_get(struct call *c, struct resp_str key, struct reply *into);

/* What a function of a change ended with, beside the table's own errors:
 * -E2BIG, -EBADMSG (no float), -EOVERFLOW (no result), -ENOMEM. */
void reply_change_error(struct reply *r, int err);

/* ---- cmd_string.c ------------------------------------------------------- */

void redis_get(struct call *c);
void redis_set(struct call *c);
void redis_setnx(struct call *c);
void redis_setex(struct call *c);
void redis_getset(struct call *c);
void redis_getdel(struct call *c);
void redis_getex(struct call *c);
void redis_strlen(struct call *c);
void redis_getrange(struct call *c);
void redis_setrange(struct call *c);
void redis_append(struct call *c);
void redis_incr(struct call *c);
void redis_decr(struct call *c);
void redis_incrby(struct call *c);
void redis_decrby(struct call *c);
void redis_incrbyfloat(struct call *c);

/* ---- cmd_key.c ---------------------------------------------------------- */

void redis_type(struct call *c);
void redis_expire(struct call *c);
void redis_ttl(struct call *c);
void redis_persist(struct call *c);
void redis_keys(struct call *c);
void redis_scan(struct call *c);
void redis_dbsize(struct call *c);
void redis_flushall(struct call *c);

/* Converts a time, as COMMAND_SECONDS and COMMAND_ABSOLUTE say, to milliseconds
 * since 1970; false: there is no such time. */
bool command_when(unsigned flags, int64_t n, int64_t *when_ms);
/* The same of an argument; false after an answer. */
bool call_when(struct call *c, uint32_t i, unsigned flags, int64_t *when_ms);

/* ---- cmd_many.c --------------------------------------------------------- */

void redis_mget(struct call *c);
void redis_mset(struct call *c);
void redis_del(struct call *c);
void redis_exists(struct call *c);

/* ---- cmd_multi.c --------------------------------------------------------- */

void redis_multi(struct call *c);
void redis_exec(struct call *c);
void redis_discard(struct call *c);
void redis_watch(struct call *c);
void redis_unwatch(struct call *c);

/* ---- cmd_server.c, cmd_client.c ----------------------------------------- */

void redis_ping(struct call *c);
void redis_echo(struct call *c);
void redis_select(struct call *c);
void redis_time(struct call *c);
void redis_info(struct call *c);
void redis_config(struct call *c);
void redis_command(struct call *c);
void redis_auth(struct call *c);
void redis_hello(struct call *c);
void redis_client(struct call *c);
void redis_quit(struct call *c);
void redis_reset(struct call *c);

#endif
