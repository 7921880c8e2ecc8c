/* SPDX-License-Identifier: Apache-2.0 */
/* What libmicrohttpd calls for each request of a listener: in its connection's
 * own thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "ctl_http.h"
#include "listener_priv.h"

/* A request on its way in; owned by its connection's thread. */
struct inbound {
	size_t bytes; /* that came, kept or not */
	size_t capacity;
	char *body;
};

static void take_body(struct inbound *in, const char *data, size_t len)
{
	size_t want = in->bytes + len;

	in->bytes = want;
	if (want > CTL_BODY_MAX) {
		free(in->body);
		in->body = NULL;
		in->capacity = 0;
		in->bytes = CTL_BODY_MAX + 1; /* sticks */
		return;
	}
	if (want > in->capacity) {
		size_t capacity =
			u64_min(u64_max(2 * want, 1024), CTL_BODY_MAX);
		char *more = realloc(in->body, capacity);

		if (!more) {
			in->bytes = CTL_BODY_MAX + 1;
			return;
		}
		in->body = more;
		in->capacity = capacity;
	}
	memcpy(in->body + want - len, data, len);
}

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

	response = MHD_create_response_from_buffer(
		reply->body_bytes, reply->body,
		reply->body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	if (!response) {
		ctl_reply_release(reply);
		return MHD_NO;
	}
	if (reply->content_type)
		ok = MHD_add_response_header(response,
					     MHD_HTTP_HEADER_CONTENT_TYPE,
					     reply->content_type);
	if (ok == MHD_YES && reply->status == 401)
		ok = MHD_add_response_header(
			response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
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
	if (listener->is_local || listener->is_secure ||
	    caller_key_is_loopback(&c->key) ||
	    atomic_exchange_explicit(&listener->has_warned, true,
				     memory_order_relaxed))
		return;
	log_warn("control",
		 "%s sent a token in clear: whoever sees the network can use "
		 "it; see --tls-cert",
		 c->text);
}

/* Wrong tokens are answered later and later. Meanwhile the connection can be
 * ended like one that has not finished its request. */
static void delay(struct listener *listener, struct caller *c)
{
	unsigned ms =
		strangers_count(&listener->strangers, &c->key, clock_mono_ns());
	struct timespec until;

	if (!ms)
		return;
	callers_phase(&listener->callers, c, CALLER_SENDS, clock_mono_ns());
	until = clock_timespec(clock_mono_ns() + ms * 1000000ull);
	pthread_mutex_lock(&listener->lock);
	while (!listener->stops &&
	       pthread_cond_timedwait(&listener->stop, &listener->lock,
				      &until) == 0)
		;
	pthread_mutex_unlock(&listener->lock);
}

enum MHD_Result listener_request(void *cls, struct MHD_Connection *connection,
				 const char *url, const char *method,
				 const char *version, const char *data,
				 size_t *data_bytes, void **request_cls)
{
	struct listener *listener = cls;
	struct inbound *in = *request_cls;
	struct caller *c = caller_of(connection);
	struct ctl_reply reply = {0};
	struct ctl_request request;

	(void)version; /* libmicrohttpd has seen to it */
	if (!c)
		return MHD_NO; /* not accepted by us */
	if (!in) {
		in = calloc(1, sizeof(*in));
		*request_cls = in;
		callers_phase(&listener->callers, c, CALLER_SENDS,
			      clock_mono_ns());
		return in ? MHD_YES : MHD_NO;
	}
	if (*data_bytes) {
		take_body(in, data, *data_bytes);
		*data_bytes = 0;
		return MHD_YES;
	}
	request = (struct ctl_request){
		.method = ctl_method_parse(method),
		.path = url,
		.token = bearer(connection),
		.body = in->body,
		.body_bytes = in->bytes,
		.is_local = listener->is_local,
		.peer = c->text,
	};
	if (request.token)
		warn_clear(listener, c);
	callers_phase(&listener->callers, c, CALLER_SERVED, clock_mono_ns());
	listener->handle(listener->ctx, &request, &reply);
	if (reply.status == 401 && request.token)
		delay(listener, c);
	callers_phase(&listener->callers, c, CALLER_READS, clock_mono_ns());
	return send_reply(connection, &reply);
}

void listener_completed(void *cls, struct MHD_Connection *connection,
			void **request_cls,
			enum MHD_RequestTerminationCode code)
{
	struct caller *c = caller_of(connection);
	struct inbound *in = *request_cls;
	struct listener *listener = cls;

	(void)code;
	if (c)
		callers_phase(&listener->callers, c, CALLER_IDLE,
			      clock_mono_ns());
	if (in)
		free(in->body);
	free(in);
	*request_cls = NULL;
}

void listener_log(void *cls, const char *fmt, va_list ap)
{
	char text[256];

	(void)cls;
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
