/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd in front of a handler. */
#include "ctl_server.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl_http.h"
#include "error.h"
#include "listen_priv.h"
#include "log.h"

/* One listening socket. */
struct door {
	struct ctl_server *server;
	struct MHD_Daemon *daemon;
	bool is_local;
};

struct ctl_server {
	ctl_handle_fn handle;
	void *ctx;
	char *unix_path;
	char *cert; /* PEM text; libmicrohttpd keeps pointers */
	char *key;
	uint16_t port;
	struct door local;
	struct door tcp;
};

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

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection,
				  const char *url, const char *method,
				  const char *version, const char *data,
				  size_t *data_bytes, void **request_cls)
{
	struct door *door = cls;
	struct inbound *in = *request_cls;
	struct ctl_reply reply = {0};
	struct ctl_request request;

	(void)version; /* libmicrohttpd has seen to it */
	if (!in) {
		in = calloc(1, sizeof(*in));
		*request_cls = in;
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
		.is_local = door->is_local,
	};
	door->server->handle(door->server->ctx, &request, &reply);
	return send_reply(connection, &reply);
}

static void on_completed(void *cls, struct MHD_Connection *connection,
			 void **request_cls,
			 enum MHD_RequestTerminationCode code)
{
	struct inbound *in = *request_cls;

	(void)cls;
	(void)connection;
	(void)code;
	if (in)
		free(in->body);
	free(in);
	*request_cls = NULL;
}

static void on_log(void *cls, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

static void on_log(void *cls, const char *fmt, va_list ap)
{
	char text[256];

	(void)cls;
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	text[strcspn(text, "\n")] = 0;
	log_debug("control", "http: %s", text);
}

/* Names cannot hold anything that needs escaping, so nothing is decoded: what
 * is compared is what was sent. */
static size_t keep_escapes(void *cls, struct MHD_Connection *connection,
			   char *text)
{
	(void)cls;
	(void)connection;
	return strlen(text);
}

static int door_open(struct ctl_server *s, struct door *door, int fd)
{
	unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD |
			 MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
			 MHD_USE_ITC | MHD_USE_ERROR_LOG;
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, s->cert},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, s->key},
		{MHD_OPTION_END, 0, NULL},
	};
	static struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
	bool secure = !door->is_local && s->cert;

	door->server = s;
	door->daemon = MHD_start_daemon(
		flags | (secure ? MHD_USE_TLS : 0), 0, NULL, NULL, on_request,
		door, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)CTL_SERVER_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)CTL_SERVER_IDLE_S, MHD_OPTION_THREAD_STACK_SIZE,
		(size_t)CTL_SERVER_STACK_BYTES,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CTL_SERVER_MEMORY_BYTES, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, NULL, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes,
		NULL, MHD_OPTION_ARRAY, secure ? tls : none, MHD_OPTION_END);
	if (door->daemon)
		return 0;
	(void)close(fd); /* nobody took it over */
	if (secure)
		return error_set(-EINVAL, "cannot start the TLS server: are "
					  "--tls-cert and --tls-key PEM files "
					  "that belong together?");
	return error_set(-EIO, "cannot start the HTTP server");
}

static int read_pem(const char *path, char **out)
{
	char *text = calloc(1, CTL_SERVER_PEM_MAX + 1);
	FILE *f = fopen(path, "re");
	size_t n = 0;
	int err = 0;

	if (!text || !f)
		err = text ? -errno : -ENOMEM;
	if (!err) {
		n = fread(text, 1, CTL_SERVER_PEM_MAX + 1, f);
		if (ferror(f) || n == 0 || n > CTL_SERVER_PEM_MAX)
			err = -EINVAL;
	}
	if (f)
		(void)fclose(f); /* only read */
	if (err) {
		free(text);
		return error_set(err, "cannot read %s: %s", path,
				 strerror(-err));
	}
	text[n] = 0;
	*out = text;
	return 0;
}

static int open_tcp(struct ctl_server *s, const struct ctl_server_config *c)
{
	int err = 0, fd;

	if (!c->tls_cert != !c->tls_key)
		return error_set(-EINVAL,
				 "TLS needs both a certificate and a key");
	if (c->tls_cert)
		err = read_pem(c->tls_cert, &s->cert);
	if (!err && c->tls_key)
		err = read_pem(c->tls_key, &s->key);
	if (err)
		return err;
	fd = listen_tcp(c->listen, &s->port);
	if (fd < 0)
		return fd;
	return door_open(s, &s->tcp, fd);
}

int ctl_server_start(const struct ctl_server_config *c, struct ctl_server **out)
{
	struct ctl_server *s = calloc(1, sizeof(*s));
	int err, fd;

	if (!s)
		return error_set(-ENOMEM, "no memory for the HTTP server");
	s->handle = c->handle;
	s->ctx = c->ctx;
	s->local.is_local = true;
	err = c->listen ? open_tcp(s, c) : 0;
	if (!err) {
		fd = listen_unix(c->unix_path);
		err = fd < 0 ? fd : door_open(s, &s->local, fd);
		if (fd >= 0)
			s->unix_path = strdup(c->unix_path);
	}
	if (err) {
		ctl_server_stop(s);
		return err;
	}
	*out = s;
	return 0;
}

uint16_t ctl_server_port(const struct ctl_server *s)
{
	return s->port;
}

static void door_quiesce(struct door *door)
{
	MHD_socket fd;

	if (!door->daemon)
		return;
	fd = MHD_quiesce_daemon(door->daemon);
	if (fd != MHD_INVALID_SOCKET)
		(void)close(fd); /* a listening socket */
}

void ctl_server_quiesce(struct ctl_server *s)
{
	/* The name first: nobody may find a socket that will not answer. */
	if (s->unix_path) {
		(void)unlink(s->unix_path); /* gone already: just as well */
		free(s->unix_path);
		s->unix_path = NULL;
	}
	door_quiesce(&s->local);
	door_quiesce(&s->tcp);
}

void ctl_server_stop(struct ctl_server *s)
{
	ctl_server_quiesce(s);
	if (s->local.daemon)
		MHD_stop_daemon(s->local.daemon);
	if (s->tcp.daemon)
		MHD_stop_daemon(s->tcp.daemon);
	free(s->cert);
	free(s->key);
	free(s);
}
