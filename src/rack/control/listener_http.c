/* SPDX-License-Identifier: Apache-2.0 */
/* What libmicrohttpd calls for each request of a listener, on one of its few
 * threads, and the worker's part: nothing here may wait. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "ctl_http.h"
#include "head_priv.h"
#include "listener_priv.h"
#include "plain_priv.h"

static const char *bearer(struct MHD_Connection *connection)
{
	static const char scheme[] = "Bearer ";
	const char *value = MHD_lookup_connection_value(
		connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);

	if (!value || strncasecmp(value, scheme, sizeof(scheme) - 1) != 0)
		return NULL;
	return value + sizeof(scheme) - 1;
}

/* Gives the reply to libmicrohttpd, which takes the body over. */
static enum MHD_Result send_reply(struct MHD_Connection *connection,
				  struct ctl_reply *reply)
{
	struct MHD_Response *response;
	enum MHD_Result ok = MHD_YES;
	char seconds[16];

	response = MHD_create_response_from_buffer(
		reply->body_bytes, reply->body,
		reply->body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	if (!response) {
		ctl_reply_release(reply);
		return MHD_NO;
	}
	reply->body = NULL; /* the response has it */
	if (reply->content_type)
		ok = MHD_add_response_header(response,
					     MHD_HTTP_HEADER_CONTENT_TYPE,
					     reply->content_type);
	if (ok == MHD_YES && reply->status == 401)
		ok = MHD_add_response_header(
			response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	for (const struct ctl_header *h = reply->headers;
	     ok == MHD_YES && h && h->name; h++)
		ok = MHD_add_response_header(response, h->name, h->value);
	if (ok == MHD_YES && reply->retry_s) {
		(void)snprintf(seconds, sizeof(seconds), "%u", reply->retry_s);
		ok = MHD_add_response_header(
			response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
	}
	if (ok == MHD_YES)
		ok = MHD_queue_response(connection, reply->status, response);
	MHD_destroy_response(response);
	return ok;
}

static struct caller *caller_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* A token that anybody on the way can read. */
static void warn_clear(struct listener *listener, const struct caller *c)
{
	if (listener->is_local || listener->tls ||
	    caller_key_is_loopback(&c->key) ||
	    atomic_exchange_explicit(&listener->has_warned, true,
				     memory_order_relaxed))
		return;
	log_warn("control",
		 "%s sent a token in clear: whoever sees the network can use "
		 "it; see --tls-cert",
		 c->text);
}

/* ---- on a worker --------------------------------------------------------- */

/* Wrong tokens are answered later and later. Meanwhile the connection can be
 * ended like one that has not finished its request. */
static void finish(struct ctl_exchange *e)
{
	struct listener *listener = e->listener;
	unsigned ms = 0;

	if (e->reply.status == 401 && e->request.token)
		ms = strangers_count(&listener->strangers, &e->caller->key,
				     clock_mono_ns());
	if (!ms) {
		exchange_finish(e);
		return;
	}
	callers_phase(&listener->callers, e->caller, CALLER_SENDS,
		      clock_mono_ns());
	held_delay(e, ms);
}

void listener_handle(struct ctl_exchange *e)
{
	const struct listener *listener = e->listener;
	bool is_held = false;
	struct ctl_reply reply = {0};

	e->is_held = &is_held;
	if (e->is_starved)
		ctl_reply_error(&reply, -ENOMEM,
				"too many large requests at the same time");
	else
		listener->handle(listener->ctx, &e->request, &reply);
	/* Who holds it may have answered it, and e is gone. */
	if (is_held) {
		ctl_reply_release(&reply);
		return;
	}
	e->reply = reply;
	finish(e);
}

/* ---- on a thread of libmicrohttpd ---------------------------------------- */

static size_t body_max(const struct listener *listener, enum ctl_method method,
		       const char *path)
{
	return listener->routes
		       ? ctl_routes_body_max(listener->routes, method, path)
		       : CTL_BODY_MAX;
}

static enum MHD_Result begin(struct listener *listener,
			     struct MHD_Connection *connection,
			     struct caller *c, const char *method,
			     const char *url, void **request_cls)
{
	callers_phase(&listener->callers, c, CALLER_SENDS, clock_mono_ns());
	*request_cls = exchange_create(
		listener, connection, c,
		body_max(listener, ctl_method_parse(method), url));
	return *request_cls ? MHD_YES : MHD_NO;
}

static void look_after_workers(struct listener *listener)
{
	/* HTTP-1: if the thread has not looked yet, it will see the request;
	 * else it is woken. */
	if (!atomic_exchange_explicit(&listener->is_set, true,
				      memory_order_seq_cst))
		listener_wake(listener);
}

/* Once for each connection, and again for one that was refused. */
static bool knows_caller(struct listener *listener,
			 struct MHD_Connection *connection, struct caller *c)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	if (c->certificate[0])
		return true;
	if (info && tls_check_caller(listener->tls, info->tls_session,
				     c->certificate) == 0)
		return true;
	c->certificate[0] = 0;
	return false;
}

enum quick {
	QUICK_NOT,
	QUICK_DONE,
	QUICK_HELD, /* it may be answered and gone by now */
};

static enum quick try_quick(struct ctl_exchange *e)
{
	const struct listener *listener = e->listener;
	struct ctl_reply reply = {0};
	bool is_held = false;

	if (!listener->quick || e->is_starved)
		return QUICK_NOT;
	e->is_held = &is_held;
	e->is_reading = true;
	if (!listener->quick(listener->ctx, &e->request, &reply)) {
		e->is_reading = false;
		return QUICK_NOT;
	}
	if (is_held)
		return QUICK_HELD;
	e->reply = reply;
	return QUICK_DONE;
}

bool listener_serve(struct ctl_exchange *e)
{
	struct listener *listener = e->listener;
	bool waits = false;
	enum quick how;

	e->request.body = e->body;
	e->request.body_bytes = e->bytes;
	if (e->request.token)
		warn_clear(listener, e->caller);
	how = try_quick(e);
	if (how == QUICK_HELD)
		return false;
	if (how == QUICK_DONE && e->reply.status == 401) {
		/* It may have to be delayed, as those of workers are. */
		exchange_suspend(e);
		finish(e);
		return false;
	}
	if (how == QUICK_DONE)
		return true;
	callers_phase(&listener->callers, e->caller, CALLER_SERVED,
		      clock_mono_ns());
	if (workers_submit(&listener->workers, e, &waits)) {
		if (waits)
			look_after_workers(listener);
		return false;
	}
	ctl_reply_error(&e->reply, -ECANCELED, "the server ends");
	return true;
}

struct ctl_exchange *listener_begin(struct listener *listener,
				    struct line *line, const struct head *h,
				    char *text)
{
	enum ctl_method method = ctl_method_parse(h->method);
	struct caller *c = line->caller;
	struct ctl_exchange *e = exchange_create(
		listener, NULL, c, body_max(listener, method, h->path));

	if (!e) {
		free(text);
		return NULL;
	}
	e->line = line;
	e->head = text;
	e->request = (struct ctl_request){
		.method = method,
		.path = h->path,
		.token = h->token,
		.is_local = listener->is_local,
		.peer = c->text,
		.origin = c->origin,
		.exchange = e,
	};
	return e;
}

/* ---- for libmicrohttpd --------------------------------------------------- */

static enum MHD_Result answer_now(struct ctl_exchange *e)
{
	callers_phase(&e->listener->callers, e->caller, CALLER_READS,
		      clock_mono_ns());
	return send_reply(e->connection, &e->reply);
}

enum MHD_Result listener_request(void *cls, struct MHD_Connection *connection,
				 const char *url, const char *method,
				 const char *version, const char *data,
				 size_t *data_bytes, void **request_cls)
{
	struct listener *listener = cls;
	struct ctl_exchange *e = *request_cls;
	struct caller *c = caller_of(connection);

	(void)version; /* libmicrohttpd has seen to it */
	if (!c)
		return MHD_NO; /* not accepted by us */
	if (!e)
		return begin(listener, connection, c, method, url, request_cls);
	if (*data_bytes) {
		exchange_take_body(e, data, *data_bytes);
		*data_bytes = 0;
		return MHD_YES;
	}
	if (e->has_reply)
		return send_reply(connection, &e->reply);
	if (listener->tls && tls_needs_caller(listener->tls) &&
	    !knows_caller(listener, connection, c)) {
		ctl_reply_last_error(&e->reply, -EACCES);
		return answer_now(e);
	}
	e->request = (struct ctl_request){
		.method = ctl_method_parse(method),
		.path = url,
		.token = bearer(connection),
		.is_local = listener->is_local,
		.peer = c->text,
		.origin = c->origin,
		.certificate = c->certificate[0] ? c->certificate : NULL,
		.exchange = e,
	};
	return listener_serve(e) ? answer_now(e) : MHD_YES;
}

void listener_completed(void *cls, struct MHD_Connection *connection,
			void **request_cls,
			enum MHD_RequestTerminationCode code)
{
	struct caller *c = caller_of(connection);
	struct listener *listener = cls;

	(void)code;
	if (c)
		callers_phase(&listener->callers, c, CALLER_IDLE,
			      clock_mono_ns());
	exchange_destroy(*request_cls);
	*request_cls = NULL;
}

void listener_log(void *cls, const char *fmt, va_list ap)
{
	char text[256];

	(void)cls;
	/* It complains twice of each request on a unix socket, which has no
	 * options of TCP. */
	if (!log_enabled(LOG_LEVEL_DEBUG))
		return;
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	text[strcspn(text, "\n")] = 0;
	log_debug("control", "http: %s", text);
}

size_t listener_keep_escapes(void *cls, struct MHD_Connection *connection,
			     char *text)
{
	(void)cls;
	(void)connection;
	return strlen(text);
}
