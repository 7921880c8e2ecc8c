/* SPDX-License-Identifier: Apache-2.0 */
/* What a gateway tells over HTTP. No key and no value is in it. */
#include "http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "command.h"
#include "control/ctl_metrics.h"

int http_view_init(struct http_view *v, const char *table, uint32_t threads)
{
	*v = (struct http_view){.table = table, .count = threads};
	v->part = calloc(threads, sizeof(*v->part));
	if (!v->part)
		return error_set(-ENOMEM, "no memory for the metrics");
	for (uint32_t i = 0; i < threads; i++) {
		v->part[i].start_ms = v->part[i].turn_ms = clock_mono_ms();
		hist_init(&v->part[i].latency);
	}
	return -pthread_mutex_init(&v->lock, NULL);
}

void http_view_release(struct http_view *v)
{
	if (!v->part)
		return;
	(void)pthread_mutex_destroy(&v->lock); /* nobody has it */
	free(v->part);
}

void http_publish(struct http_view *v, uint32_t thread, const struct gateway *g)
{
	struct http_part *p = &v->part[thread];

	pthread_mutex_lock(&v->lock);
	p->turn_ms = clock_mono_ms();
	p->start_ms = g->start_ms;
	p->client_count = g->client_count;
	p->client_bytes =
		atomic_load_explicit(&g->client_bytes, memory_order_relaxed);
	p->state = g->table;
	p->stats = g->stats;
	p->latency = g->latency;
	pthread_mutex_unlock(&v->lock);
}

/* All threads see the same table, one perhaps a moment later: the worst that
 * one knows of it counts, and losses are counted once. */
static void add_state(struct table_state *to, const struct table_state *s)
{
	uint64_t losses = u64_max(to->losses, s->losses);
	uint64_t makes = to->makes + s->makes;

	if (s->status > to->status)
		*to = *s;
	to->losses = losses;
	to->makes = makes;
}

/* Under the lock. */
static const struct http_part *sum_up(struct http_view *v)
{
	struct http_part *sum = &v->sum;

	*sum = v->part[0];
	for (uint32_t i = 1; i < v->count; i++) {
		const struct http_part *p = &v->part[i];

		sum->turn_ms = u64_min(sum->turn_ms, p->turn_ms);
		sum->client_count += p->client_count;
		sum->client_bytes += p->client_bytes;
		add_state(&sum->state, &p->state);
		gateway_stats_add(&sum->stats, &p->stats);
		hist_merge(&sum->latency, &p->latency);
	}
	return sum;
}

/* ---- /health --------------------------------------------------------------
 */

static void answer_health(void *ctx, struct ctl_call *call)
{
	struct http_view *v = ctx;
	uint64_t now_ms = clock_mono_ms();
	const struct http_part *p;
	char slow[TABLE_WHY_MAX];
	const char *status, *why;
	json_t *tree;
	bool is_ok;

	pthread_mutex_lock(&v->lock);
	p = sum_up(v);
	status = table_status_name(p->state.status);
	why = p->state.why;
	is_ok = p->state.status == TABLE_OK;
	if (is_ok && now_ms > p->turn_ms + HTTP_TURN_MAX_MS) {
		(void)snprintf(slow, sizeof(slow),
			       "the gateway has been busy with one turn for "
			       "%llu s",
			       (unsigned long long)(now_ms - p->turn_ms) /
				       1000);
		status = "stuck";
		why = slow;
		is_ok = false;
	}
	tree = json_pack("{s:s, s:s, s:I, s:i, s:I}", "status", status, "table",
			 v->table, "since_s",
			 (json_int_t)(now_ms - p->state.since_ms) / 1000,
			 "clients", (int)p->client_count, "uptime_s",
			 (json_int_t)(now_ms - p->start_ms) / 1000);
	if (tree && !is_ok)
		(void)json_object_set_new(tree, "reason", json_string(why));
	if (tree && p->state.has_keys)
		(void)json_object_set_new(
			tree, "keys", json_integer((json_int_t)p->state.keys));
	pthread_mutex_unlock(&v->lock);
	ctl_reply_json(call->reply, is_ok ? 200 : 503, tree);
}

/* ---- /metrics -------------------------------------------------------------
 */

#define NAME(what) "aquifer_redis_" what

static void write_commands(struct ctl_metrics *m, const struct http_part *p)
{
	ctl_metrics_family(m, CTL_METRIC_COUNTER, NAME("commands_total"),
			   "Commands that were executed.");
	for (unsigned i = 0; redis_commands[i].name; i++) {
		const char *labels[] = {"command", redis_commands[i].name};

		if (p->stats.calls[i])
			ctl_metrics_sample(m, p->stats.calls[i], labels, 1);
	}
	ctl_metrics_family(m, CTL_METRIC_COUNTER, NAME("command_errors_total"),
			   "Commands that were answered with an error.");
	for (unsigned i = 0; redis_commands[i].name; i++) {
		const char *labels[] = {"command", redis_commands[i].name};

		if (p->stats.errors[i])
			ctl_metrics_sample(m, p->stats.errors[i], labels, 1);
	}
}

static void write_counters(struct ctl_metrics *m, const struct http_part *p)
{
	const struct gateway_stats *s = &p->stats;
	const struct {
		const char *name, *help;
		uint64_t value;
	} rows[] = {
		{NAME("commands_rejected_total"),
		 "Commands that were neither executed nor queued.",
		 s->rejected},
		{NAME("connections_total"), "Clients that have connected.",
		 s->connections},
		{NAME("connections_refused_total"),
		 "Clients for which there was no place.",
		 s->connections_refused},
		{NAME("clients_ended_total"),
		 "Clients that had more bytes than they may.",
		 s->query_limit + s->output_limit + s->evicted},
		{NAME("protocol_errors_total"),
		 "Clients that sent what is no command.", s->errors_protocol},
		{NAME("wrong_passwords_total"), "Passwords that were wrong.",
		 s->wrong_passwords},
		{NAME("keyspace_hits_total"), "GETs that found a value.",
		 s->hits},
		{NAME("keyspace_misses_total"), "GETs that found none.",
		 s->misses},
		{NAME("received_bytes_total"), "Bytes from clients.",
		 s->bytes_in},
		{NAME("sent_bytes_total"), "Bytes to clients.", s->bytes_out},
		{NAME("table_lost_total"), "How often the table was lost.",
		 p->state.losses},
		{NAME("table_made_total"), "How often it was made anew.",
		 p->state.makes},
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		ctl_metrics_one(m, CTL_METRIC_COUNTER, rows[i].name,
				rows[i].help, rows[i].value);
}

static void write_all(struct ctl_metrics *m, struct http_view *v)
{
	const struct http_part *p = sum_up(v);
	const char *labels[] = {"table", v->table};

	ctl_metrics_family(m, CTL_METRIC_GAUGE, NAME("table_up"),
			   "1: all of the table answers.");
	ctl_metrics_sample(m, p->state.status == TABLE_OK, labels, 1);
	if (p->state.has_keys)
		ctl_metrics_one(m, CTL_METRIC_GAUGE, NAME("keys"),
				"Keys of the table.", p->state.keys);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, NAME("uptime_seconds"),
			"Time since the gateway started.",
			(clock_mono_ms() - p->start_ms) / 1000);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, NAME("clients"),
			"Clients that are connected.", p->client_count);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, NAME("client_buffer_bytes"),
			"Memory of their commands and answers.",
			p->client_bytes);
	write_commands(m, p);
	write_counters(m, p);
	ctl_metrics_family(m, CTL_METRIC_HISTOGRAM,
			   NAME("command_duration_seconds"),
			   "Time that a command took, with those that it was "
			   "executed together with.");
	ctl_metrics_latency(m, &p->latency, NULL, 0);
	ctl_metrics_build(m);
}

static void answer_metrics(void *ctx, struct ctl_call *call)
{
	struct http_view *v = ctx;
	struct ctl_metrics m;
	size_t text_bytes;
	char *text;
	int err = ctl_metrics_init(&m);

	if (!err) {
		pthread_mutex_lock(&v->lock);
		write_all(&m, v);
		pthread_mutex_unlock(&v->lock);
		err = ctl_metrics_end(&m, &text, &text_bytes);
	}
	if (err)
		ctl_reply_error(call->reply, err, "no memory for the metrics");
	else
		ctl_reply_text(call->reply, text, text_bytes, CTL_METRICS_TYPE);
}

static const struct ctl_route routes[] = {
	{CTL_GET, "/health", answer_health, 0},
	{CTL_GET, "/metrics", answer_metrics, 0},
};

void http_answer(struct http_view *v, const struct ctl_request *request,
		 struct ctl_reply *reply)
{
	struct ctl_call call = {.request = request, .reply = reply};
	int err;

	error_clear();
	err = ctl_route_find(routes, ARRAY_LEN(routes), request->method,
			     request->path, &call);
	if (err)
		ctl_reply_last_error(reply, err);
	else
		call.route->run(v, &call);
}
