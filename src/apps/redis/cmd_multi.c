/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transactions. EXEC is one aq_kv_unit over all keys of the queued commands and
 * all watched ones: they are locked together, the watched ones are compared
 * with what they were, the commands run on a stage, and what they left becomes
 * visible at once.
 */
#include <errno.h>

#include "base/error.h"
#include "command.h"
#include "store.h"

enum {
	EXEC_DIRTY = -ECANCELED, /* a watched key has changed */
};

void redis_multi(struct call *c)
{
	struct multi *m = &c->client->multi;

	if (m->is_on) {
		reply_error(c->out, "ERR MULTI calls can not be nested");
		return;
	}
	m->is_on = true;
	reply_simple(c->out, "OK");
}

void redis_discard(struct call *c)
{
	struct multi *m = &c->client->multi;

	if (!m->is_on) {
		reply_error(c->out, "ERR DISCARD without MULTI");
		return;
	}
	multi_release(m);
	reply_simple(c->out, "OK");
}

void redis_unwatch(struct call *c)
{
	/* Inside EXEC all are forgotten at its end anyway. */
	if (!c->gateway->stage)
		multi_unwatch(&c->client->multi);
	reply_simple(c->out, "OK");
}

/* ---- WATCH ----------------------------------------------------------------
 */

struct watching {
	struct call *c;
	struct resp_str key;
	int err;
};

static int watch_fn(struct aq_kv_change *now, void *user)
{
	struct watching *w = user;
	struct gateway *g = w->c->gateway;

	now->verdict = AQ_KV_KEEP;
	/* It may be called again, after it has noted the key. */
	if (!multi_is_watched(&w->c->client->multi, w->key))
		w->err = multi_watch(&w->c->client->multi, w->key, now,
				     g->options->query_bytes_max);
	return 0;
}

void redis_watch(struct call *c)
{
	if (c->client->multi.is_on) {
		reply_error(c->out, "ERR WATCH inside MULTI is not allowed");
		return;
	}
	for (uint32_t i = 1; i < c->argc; i++) {
		struct watching w = {.c = c, .key = call_arg(c, i)};
		int err;

		if (!call_key_ok(c, i))
			return;
		if (multi_is_watched(&c->client->multi, w.key))
			continue;
		err = store_modify(c->gateway, w.key, watch_fn, &w);
		if (err) {
			reply_kv_error(c->out, err);
			return;
		}
		if (w.err) {
			reply_error(c->out,
				    "ERR more than %d keys, or more bytes than "
				    "--query-limit, cannot be watched",
				    MULTI_WATCH_MAX);
			return;
		}
	}
	reply_simple(c->out, "OK");
}

/* ---- EXEC -----------------------------------------------------------------
 */

struct execution {
	struct call *c;
	struct stage stage;
	size_t mark; /* where its answers begin */
};

static void run_queued(struct call *c, const struct queued *q)
{
	struct call one = {.gateway = c->gateway,
			   .client = c->client,
			   .out = c->out,
			   .command = q->command,
			   .argc = q->argc,
			   .buf = q->bytes,
			   .span = q->span};

	command_call(&one);
}

/* Under the locks of all keys; it may be called again. */
static int exec_fn(struct aq_kv_change *changes, void *user)
{
	struct execution *x = user;
	const struct multi *m = &x->c->client->multi;

	x->c->out->len = x->mark;
	/* Watched keys stand first. */
	for (uint32_t i = 0; i < m->watch_count; i++)
		if (!watched_is_same(&m->watch[i], &changes[i]))
			return EXEC_DIRTY;
	stage_begin(&x->stage, changes);
	x->c->gateway->stage = &x->stage;
	reply_array(x->c->out, m->count);
	for (uint32_t i = 0; i < m->count; i++)
		run_queued(x->c, m->command[i]);
	x->c->gateway->stage = NULL;
	stage_end(&x->stage, changes);
	return 0;
}

static void answer_failure(struct call *c, int err)
{
	switch (err) {
	case EXEC_DIRTY:
		reply_nil_array(c->out);
		break;
	case -EXDEV:
		reply_error(c->out,
			    "CROSSSLOT Keys in request don't hash to the same "
			    "slot: %s; nothing was executed",
			    error_last());
		break;
	case -ESTALE:
		reply_error(c->out,
			    "ERR far memory: this gateway was taken for dead "
			    "meanwhile: the transaction was executed entirely "
			    "or not at all");
		break;
	case -E2BIG:
		reply_error(c->out, "ERR %s; nothing was executed",
			    error_last());
		break;
	default:
		reply_kv_error(c->out, err);
	}
}

static int execute(struct call *c)
{
	struct aq_kv_key keys[AQ_KV_UNIT_KEYS];
	struct execution x = {.c = c, .mark = c->out->len};
	uint32_t count;
	int err = multi_keys(&c->client->multi, keys, AQ_KV_UNIT_KEYS, &count);

	if (err)
		return error_set(err,
				 "a transaction has at most %d different keys "
				 "here",
				 AQ_KV_UNIT_KEYS);
	err = stage_init(&x.stage, keys, count);
	if (err)
		return err;
	err = count ? aq_kv_unit(c->gateway->kv_client, keys, count, exec_fn,
				 &x)
		    : exec_fn(NULL, &x);
	stage_release(&x.stage);
	if (err)
		c->out->len = x.mark;
	return err;
}

void redis_exec(struct call *c)
{
	struct multi *m = &c->client->multi;
	int err;

	if (!m->is_on) {
		reply_error(c->out, "ERR EXEC without MULTI");
		return;
	}
	if (m->is_aborted) {
		reply_error(c->out, "EXECABORT Transaction discarded because "
				    "of previous errors.");
	} else {
		err = execute(c);
		if (err)
			answer_failure(c, err);
	}
	multi_release(m);
}
