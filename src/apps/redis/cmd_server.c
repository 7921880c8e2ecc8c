/* SPDX-License-Identifier: Apache-2.0 */
/* Commands about the server. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "command.h"
#include "glob.h"
#include "number.h"

enum {
	SETTING_TEXT_MAX = 320,
};

void redis_time(struct call *c)
{
	char text[NUMBER_TEXT_MAX];
	struct timespec ts = clock_timespec(clock_real_ns());

	reply_array(c->out, 2);
	reply_bulk(c->out, text, number_format(ts.tv_sec, text));
	reply_bulk(c->out, text, number_format(ts.tv_nsec / 1000, text));
}

/* ---- INFO --------------------------------------------------------------- */

static void line(struct reply *r, const char *fmt, ...) PRINTF(2, 3);

static void line(struct reply *r, const char *fmt, ...)
{
	char text[SETTING_TEXT_MAX];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	reply_bytes(r, text, u64_min((uint64_t)len, sizeof(text) - 1));
	reply_bytes(r, "\r\n", 2);
}

/* What INFO tells of: this thread's gateway, and what all have counted. */
struct totals {
	const struct gateway *g;
	struct gateway_stats stats;
	struct group_sum sum;
};

static void info_server(const struct totals *t, struct reply *r)
{
	const struct gateway *g = t->g;

	line(r, "# Server");
	line(r, "redis_version:%s", GATEWAY_REDIS_VERSION);
	line(r, "redis_mode:standalone");
	line(r, "process_id:%d", (int)getpid());
	line(r, "tcp_port:%u", g->port);
	line(r, "uptime_in_seconds:%" PRIu64,
	     (clock_mono_ms() - g->start_ms) / 1000);
	line(r, "aquifer_table:%s", g->options->table);
	line(r, "aquifer_table_status:%s", table_status_name(g->table.status));
	line(r, "aquifer_table_status_seconds:%" PRIu64,
	     (clock_mono_ms() - g->table.since_ms) / 1000);
	if (g->table.status != TABLE_OK)
		line(r, "aquifer_table_reason:%s", g->table.why);
}

static void info_clients(const struct totals *t, struct reply *r)
{
	line(r, "# Clients");
	line(r, "connected_clients:%u", t->sum.client_count);
	line(r, "maxclients:%u", t->g->options->clients_max);
}

static void info_memory(const struct totals *t, struct reply *r)
{
	const struct gateway *g = t->g;
	struct aq_kv_health health;
	struct aq_kv_info info;

	line(r, "# Memory");
	line(r, "maxmemory_policy:noeviction");
	line(r, "mem_clients_normal:%" PRIu64, t->sum.client_bytes);
	/* Memory of a table that is lost is nobody's. */
	if (g->table.status == TABLE_LOST)
		return;
	aq_kv_get_info(g->kv, &info);
	if (aq_kv_get_health(g->kv_client, &health))
		return;
	line(r, "far_entries:%" PRIu64, health.capacity);
	/* One that has grown since it was opened has another size, which only
	 * opening it again would tell. */
	if (health.generation == info.generation) {
		line(r, "far_memory:%" PRIu64, info.size_bytes);
		line(r, "maxmemory:%" PRIu64, info.size_bytes);
	}
	line(r, "maxmemory_clients:%" PRIu64, g->options->clients_bytes_max);
}

static void info_stats(const struct totals *t, struct reply *r)
{
	const struct gateway_stats *s = &t->stats;

	line(r, "# Stats");
	line(r, "total_connections_received:%" PRIu64, s->connections);
	line(r, "rejected_connections:%" PRIu64, s->connections_refused);
	line(r, "total_commands_processed:%" PRIu64, s->commands);
	line(r, "total_net_input_bytes:%" PRIu64, s->bytes_in);
	line(r, "total_net_output_bytes:%" PRIu64, s->bytes_out);
	line(r, "keyspace_hits:%" PRIu64, s->hits);
	line(r, "keyspace_misses:%" PRIu64, s->misses);
	line(r, "protocol_errors:%" PRIu64, s->errors_protocol);
	line(r, "evicted_clients:%" PRIu64, s->evicted);
	line(r, "client_query_buffer_limit_disconnections:%" PRIu64,
	     s->query_limit);
	line(r, "client_output_buffer_limit_disconnections:%" PRIu64,
	     s->output_limit);
	line(r, "acl_access_denied_auth:%" PRIu64, s->wrong_passwords);
	line(r, "far_gets:%" PRIu64, t->sum.far_gets);
	line(r, "far_get_round_trips:%" PRIu64, t->sum.far_get_trips);
}

static void info_replication(const struct totals *t, struct reply *r)
{
	(void)t;
	line(r, "# Replication");
	line(r, "role:master");
	line(r, "connected_slaves:0");
}

static void info_keyspace(const struct totals *t, struct reply *r)
{
	const struct gateway *g = t->g;
	uint64_t count;

	line(r, "# Keyspace");
	if (g->table.status != TABLE_LOST &&
	    aq_kv_count(g->kv_client, &count) == 0 && count)
		line(r, "db0:keys=%" PRIu64 ",expires=0,avg_ttl=0", count);
}

static const struct section {
	const char *name;
	void (*print)(const struct totals *t, struct reply *r);
} sections[] = {
	{"server", info_server},	   {"clients", info_clients},
	{"memory", info_memory},	   {"stats", info_stats},
	{"replication", info_replication}, {"keyspace", info_keyspace},
};

static bool section_wanted(const struct call *c, const struct section *s)
{
	if (c->argc == 1)
		return true;
	for (uint32_t i = 1; i < c->argc; i++)
		if (call_is(c, i, s->name) || call_is(c, i, "all") ||
		    call_is(c, i, "everything") || call_is(c, i, "default"))
			return true;
	return false;
}

void redis_info(struct call *c)
{
	struct reply *text = &c->gateway->scratch;
	struct totals t = {.g = c->gateway};

	text->len = 0;
	group_look_begin(c->gateway);
	group_sum(c->gateway, &t.stats, &t.sum);
	group_look_end(c->gateway);
	for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
		if (!section_wanted(c, &sections[i]))
			continue;
		if (text->len)
			reply_bytes(text, "\r\n", 2);
		sections[i].print(&t, text);
	}
	reply_verbatim(c->out, text->buf, text->len);
}

/* ---- CONFIG ------------------------------------------------------------- */

/* What clients and benchmarks ask for. */
static const char *const settings[] = {
	"maxmemory", "maxmemory-policy",   "maxclients", "databases",
	"save",	     "appendonly",	   "port",	 "timeout",
	"bind",	     "proto-max-bulk-len",
};

static void setting_text(const struct gateway *g, const char *name, char *out)
{
	const struct redis_options *o = g->options;
	struct aq_kv_info info;

	out[0] = 0;
	if (strcmp(name, "maxmemory") == 0) {
		aq_kv_get_info(g->kv, &info); /* as it was, where it is lost */
		(void)snprintf(out, SETTING_TEXT_MAX, "%" PRIu64,
			       info.size_bytes);
	} else if (strcmp(name, "maxmemory-policy") == 0) {
		(void)snprintf(out, SETTING_TEXT_MAX, "noeviction");
	} else if (strcmp(name, "maxclients") == 0) {
		(void)snprintf(out, SETTING_TEXT_MAX, "%u", o->clients_max);
	} else if (strcmp(name, "databases") == 0) {
		(void)snprintf(out, SETTING_TEXT_MAX, "1");
	} else if (strcmp(name, "appendonly") == 0) {
		(void)snprintf(out, SETTING_TEXT_MAX, "no");
	} else if (strcmp(name, "port") == 0) {
		(void)snprintf(out, SETTING_TEXT_MAX, "%u", g->port);
	} else if (strcmp(name, "timeout") == 0) {
		(void)snprintf(out, SETTING_TEXT_MAX, "%u", o->idle_timeout_s);
	} else if (strcmp(name, "bind") == 0) {
		(void)snprintf(out, SETTING_TEXT_MAX, "%s",
			       o->bind ? o->bind : "127.0.0.1");
	} else if (strcmp(name, "proto-max-bulk-len") == 0) {
		(void)snprintf(out, SETTING_TEXT_MAX, "%d", AQ_KV_VALUE_MAX);
	}
}

static bool setting_wanted(const struct call *c, const char *name)
{
	struct resp_str text = {name, strlen(name)};

	for (uint32_t i = 2; i < c->argc; i++)
		if (glob_match(call_arg(c, i), text, true))
			return true;
	return false;
}

void redis_config(struct call *c)
{
	char text[SETTING_TEXT_MAX];
	size_t count = 0;

	if (call_is(c, 1, "resetstat") && c->argc == 2) {
		group_reset(c->gateway);
		reply_simple(c->out, "OK");
		return;
	}
	if (!call_is(c, 1, "get") || c->argc < 3) {
		reply_error(c->out, "ERR only CONFIG GET and CONFIG RESETSTAT "
				    "are known here; settings are options of "
				    "'aquifer redis'");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		count += setting_wanted(c, settings[i]);
	reply_map(c->out, count);
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		if (!setting_wanted(c, settings[i]))
			continue;
		setting_text(c->gateway, settings[i], text);
		reply_bulk_text(c->out, settings[i]);
		reply_bulk_text(c->out, text);
	}
}

/* ---- COMMAND ------------------------------------------------------------ */

static void answer_command(struct reply *r, const struct command *cmd)
{
	unsigned flags = cmd->flags & (COMMAND_WRITE | COMMAND_READONLY |
				       COMMAND_FAST | COMMAND_NO_AUTH);

	reply_array(r, 10);
	reply_bulk_text(r, cmd->name);
	reply_int(r, cmd->arity);
	reply_set(r, (size_t)__builtin_popcount(flags));
	if (flags & COMMAND_WRITE)
		reply_simple(r, "write");
	if (flags & COMMAND_READONLY)
		reply_simple(r, "readonly");
	if (flags & COMMAND_FAST)
		reply_simple(r, "fast");
	if (flags & COMMAND_NO_AUTH)
		reply_simple(r, "no_auth");
	reply_int(r, cmd->key_first);
	reply_int(r, cmd->key_last);
	reply_int(r, cmd->key_step);
	reply_set(r, 0);   /* categories of access lists */
	reply_array(r, 0); /* hints */
	reply_array(r, 0); /* places of keys: the three numbers above */
	reply_array(r, 0); /* subcommands */
}

static void command_info(struct call *c)
{
	reply_array(c->out, c->argc - 2);
	for (uint32_t i = 2; i < c->argc; i++) {
		const struct command *cmd = command_find(call_arg(c, i));

		if (cmd)
			answer_command(c->out, cmd);
		else
			reply_nil(c->out);
	}
}

void redis_command(struct call *c)
{
	size_t count = 0;

	while (redis_commands[count].name)
		count++;
	if (c->argc == 1) {
		reply_array(c->out, count);
		for (size_t i = 0; i < count; i++)
			answer_command(c->out, &redis_commands[i]);
	} else if (call_is(c, 1, "count") && c->argc == 2) {
		reply_int(c->out, (int64_t)count);
	} else if (call_is(c, 1, "info")) {
		command_info(c);
	} else if (call_is(c, 1, "list") && c->argc == 2) {
		reply_set(c->out, count);
		for (size_t i = 0; i < count; i++)
			reply_bulk_text(c->out, redis_commands[i].name);
	} else if (call_is(c, 1, "docs")) {
		reply_map(c->out, 0); /* redis-cli goes on without */
	} else {
		reply_error(c->out,
			    "ERR unknown subcommand '%.*s'. Try COMMAND HELP.",
			    (int)u64_min(call_arg(c, 1).len, 64),
			    call_arg(c, 1).p);
	}
}
