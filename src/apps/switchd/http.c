/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of a switch, and who may call them. */
#include "http.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "control/ctl_audit.h"
#include "control/ctl_metrics.h"
#include "control/ctl_rate.h"
#include "control/ctl_token.h"
#include "switchd.h"

enum {
	REQUESTS = 500,		/* a second, of one address */
	STRANGER_REQUESTS = 50, /* ... without a token that is known */
	BURST_S = 2,		/* seconds' worth at once */
};

enum level {
	LEVEL_ANY,
	LEVEL_RACK, /* the administrator, or a node */
};

struct switch_http {
	const struct daemon *daemon;
	struct ctl_token_hash admin, node;
	/* One call at a time: the switch listens to a few, and the rest of
	 * them belongs to the programs of its machine. */
	pthread_mutex_t ask_lock;
	pthread_mutex_t rate_lock; /* of all that follows */
	struct ctl_origins origins;
};

/* ---- asking the switch --------------------------------------------------- */

/* Its answer, a JSON object, on the heap. */
static int ask(struct switch_http *h, const char *line, char **text,
	       size_t *text_bytes)
{
	FILE *f;
	int err;

	*text = NULL;
	f = open_memstream(text, text_bytes);
	if (!f)
		return error_set(-ENOMEM, "no memory for the answer");
	pthread_mutex_lock(&h->ask_lock);
	err = switchd_ask(h->daemon->rack, h->daemon->options.name, line, f);
	pthread_mutex_unlock(&h->ask_lock);
	if (fclose(f) != 0 && !err)
		err = error_set(-ENOMEM, "no memory for the answer");
	if (!err)
		return 0;
	free(*text);
	*text = NULL;
	/* What the switch does not want is the caller's mistake; that it does
	 * not answer is not. */
	return err == -EREMOTEIO  ? -EINVAL
	       : err == -EMSGSIZE ? err
				  : -EHOSTDOWN;
}

static void forward(struct switch_http *h, struct ctl_call *call,
		    const char *line)
{
	size_t text_bytes;
	char *text;
	int err = ask(h, line, &text, &text_bytes);

	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_text(call->reply, text, text_bytes,
			       "application/json");
}

/* ---- routes -------------------------------------------------------------- */

static void handle_health(void *ctx, struct ctl_call *call)
{
	struct switch_http *h = ctx;
	size_t text_bytes;
	char *text;
	int err = ask(h, "hello", &text, &text_bytes);

	free(text);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200,
			       json_pack("{s:s, s:s}", "status", "ok", "switch",
					 h->daemon->options.name));
}

static void handle_hello(void *ctx, struct ctl_call *call)
{
	forward(ctx, call, "hello");
}

static void handle_stats(void *ctx, struct ctl_call *call)
{
	forward(ctx, call, "stats");
}

static void handle_resources(void *ctx, struct ctl_call *call)
{
	forward(ctx, call, "resources");
}

static void handle_tell(void *ctx, struct ctl_call *call)
{
	char line[SWITCHD_REQUEST_MAX];
	const char *text = NULL;
	int err = ctl_field_string(call->body, "text", true, &text);

	for (const char *c = text; !err && *c; c++)
		if ((unsigned char)*c < ' ')
			err = error_set(-EINVAL,
					"\"text\" is one line, without control "
					"characters");
	if (!err && (size_t)snprintf(line, sizeof(line), "tell %s", text) >=
			    sizeof(line))
		err = error_set(-EINVAL, "\"text\" has %zu characters at most",
				sizeof(line) - sizeof("tell "));
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		forward(ctx, call, line);
}

/* ---- /metrics ------------------------------------------------------------ */

/* All numbers of an object are counters, but for the one that names it. */
static void write_counters(struct ctl_metrics *m, const json_t *of,
			   const char *const *more, unsigned more_count)
{
	const char *labels[6] = {"counter"};
	const char *key;
	json_t *value;

	for (unsigned i = 0; i < 2 * more_count; i++)
		labels[2 + i] = more[i];
	json_object_foreach((json_t *)(uintptr_t)of, key, value)
	{
		if (!json_is_integer(value) || strcmp(key, "id") == 0)
			continue;
		labels[1] = key;
		ctl_metrics_sample(m, (uint64_t)json_integer_value(value),
				   labels, 1 + more_count);
	}
}

/* A program may be there twice, so its place on the path is told, too. */
static void write_list(struct ctl_metrics *m, const json_t *list,
		       const char *name, const char *help, const char *label)
{
	const json_t *of;
	char place[24];
	size_t i;

	ctl_metrics_family(m, CTL_METRIC_COUNTER, name, help);
	json_array_foreach(list, i, of)
	{
		const char *labels[] = {
			label, json_string_value(json_object_get(of, "name")),
			"place", place};

		(void)snprintf(place, sizeof(place), "%zu", i);
		if (labels[1])
			write_counters(m, of, labels, 2);
	}
}

static int write_metrics(const json_t *stats, char **text, size_t *text_bytes)
{
	const json_t *ports = json_object_get(stats, "ports");
	struct ctl_metrics m;
	int err = ctl_metrics_init(&m);

	if (err)
		return error_set(err, "no memory for the metrics");
	ctl_metrics_build(&m);
	ctl_metrics_one(&m, CTL_METRIC_GAUGE, "aquifer_switch_ports",
			"Ports that are up.", json_array_size(ports));
	ctl_metrics_family(&m, CTL_METRIC_COUNTER,
			   "aquifer_switch_events_total",
			   "What happened to frames.");
	write_counters(&m, json_object_get(stats, "counters"), NULL, 0);
	write_list(&m, ports, "aquifer_switch_port_events_total",
		   "What happened at a port.", "port");
	write_list(&m, json_object_get(stats, "programs"),
		   "aquifer_switch_program_events_total",
		   "What a program on the path did.", "program");
	err = ctl_metrics_end(&m, text, text_bytes);
	return err ? error_set(err, "no memory for the metrics") : 0;
}

static void handle_metrics(void *ctx, struct ctl_call *call)
{
	size_t text_bytes;
	char *text = NULL;
	json_t *stats = NULL;
	int err = ask(ctx, "stats", &text, &text_bytes);

	if (!err) {
		stats = json_loadb(text, text_bytes, 0, NULL);
		if (!stats)
			err = error_set(-EPROTO, "the switch says what is no "
						 "JSON");
	}
	free(text);
	if (!err)
		err = write_metrics(stats, &text, &text_bytes);
	json_decref(stats);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_text(call->reply, text, text_bytes, CTL_METRICS_TYPE);
}

static const struct ctl_route routes[] = {
	{CTL_GET, "/health", handle_health, LEVEL_ANY},
	{CTL_GET, "/metrics", handle_metrics, LEVEL_RACK},
	{CTL_GET, "/v1/hello", handle_hello, LEVEL_RACK},
	{CTL_GET, "/v1/stats", handle_stats, LEVEL_RACK},
	{CTL_GET, "/v1/resources", handle_resources, LEVEL_RACK},
	{CTL_POST, "/v1/tell", handle_tell, LEVEL_RACK},
};

static const struct ctl_members members[] = {
	{handle_health, ""}, {handle_metrics, ""},   {handle_hello, ""},
	{handle_stats, ""},  {handle_resources, ""}, {handle_tell, "text"},
};

/* ---- who may ------------------------------------------------------------- */

/* "" where the token is nobody's. */
static const char *name_of(const struct switch_http *h,
			   const struct ctl_request *request)
{
	struct ctl_token_hash hash;

	if (!request->token || ctl_token_hash(request->token, &hash))
		return "";
	if (ctl_token_hash_equal(&h->admin, &hash))
		return "admin";
	return ctl_token_hash_equal(&h->node, &hash) ? "node" : "";
}

static bool take_rate(struct switch_http *h, const struct ctl_request *request,
		      const char *who, uint64_t *wait_ns)
{
	uint32_t per_s = who[0] ? REQUESTS : STRANGER_REQUESTS;
	char name[CTL_RATE_ORIGIN_TEXT];
	bool taken;

	if (!request->origin)
		return true; /* no connection: a test */
	(void)snprintf(name, sizeof(name), "%s%s", who[0] ? "+" : "",
		       request->origin);
	pthread_mutex_lock(&h->rate_lock);
	taken = ctl_bucket_take(ctl_origins_bucket(&h->origins, name), per_s,
				BURST_S * per_s, clock_mono_ns(), wait_ns);
	pthread_mutex_unlock(&h->rate_lock);
	return taken;
}

static void run(struct switch_http *h, struct ctl_call *call, const char *who)
{
	const struct ctl_request *request = call->request;
	int err;

	if (call->route->level == LEVEL_RACK && !who[0]) {
		ctl_reply_error(call->reply, -EACCES,
				"this needs the administrator's token, or that "
				"of nodes: admin-token or node-token of the "
				"rack");
		call->reply->status = 401;
		return;
	}
	err = ctl_body_parse(request->body, request->body_bytes, &call->body);
	if (!err)
		err = ctl_body_check(call, members, ARRAY_LEN(members));
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		call->route->run(h, call);
	json_decref(call->body);
}

void switch_http_handle(struct switch_http *h,
			const struct ctl_request *request,
			struct ctl_reply *reply)
{
	struct ctl_call call = {.request = request, .reply = reply};
	struct ctl_audit_event e = {.who = name_of(h, request)};
	uint64_t wait_ns = 0;
	int err;

	error_clear();
	err = ctl_route_find(routes, ARRAY_LEN(routes), request->method,
			     request->path, &call);
	if (!take_rate(h, request, e.who, &wait_ns))
		ctl_reply_too_many(reply, request->origin, wait_ns);
	else if (err)
		ctl_reply_last_error(reply, err);
	else
		run(h, &call, e.who);
	if (h->daemon->audit)
		ctl_audit_note(h->daemon->audit, request, &e, reply->status,
			       clock_mono_ns());
}

/* ---- life ---------------------------------------------------------------- */

static int take_token(const struct daemon *d, enum rack_token_kind kind,
		      struct ctl_token_hash *out)
{
	char token[SECRET_TEXT];
	int err = daemon_token(d, kind, token);

	if (!err)
		err = ctl_token_hash(token, out);
	secret_forget(token);
	return err;
}

int switch_http_create(const struct daemon *d, struct switch_http **out)
{
	struct switch_http *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return error_set(-ENOMEM, "no memory for HTTP");
	h->daemon = d;
	pthread_mutex_init(&h->ask_lock, NULL);
	pthread_mutex_init(&h->rate_lock, NULL);
	err = take_token(d, RACK_TOKEN_ADMIN, &h->admin);
	if (!err)
		err = take_token(d, RACK_TOKEN_NODE, &h->node);
	if (err) {
		switch_http_destroy(h);
		return err;
	}
	*out = h;
	return 0;
}

void switch_http_destroy(struct switch_http *h)
{
	if (!h)
		return;
	pthread_mutex_destroy(&h->rate_lock);
	pthread_mutex_destroy(&h->ask_lock);
	free(h);
}
