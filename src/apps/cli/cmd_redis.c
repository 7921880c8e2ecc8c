/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer redis`: a Redis server over a table in far memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli_daemon.h"
#include "redis/redis.h"

struct redis_args {
	struct cli_daemon base;
	const char *password_file;
	char password[REDIS_PASSWORD_MAX + 1];
	struct redis_options serve;
};

static int take_port(void *args, const char *word)
{
	struct redis_args *a = args;
	char *end;
	long port = strtol(word, &end, 10);

	if (strcmp(word, "none") == 0)
		port = -1;
	else if (*word < '0' || *word > '9' || *end || port > 65535)
		return error_set(-EINVAL,
				 "--port: value '%.40s' is not allowed; a "
				 "whole number from 0 to 65535, or none",
				 word);
	a->serve.port = (int32_t)port;
	a->base.daemon.confine.low_port = port > 0 && port < 1024;
	return 0;
}

static int take_protection(void *args, const char *word)
{
	struct redis_args *a = args;

	a->serve.is_open_to_all = strcmp(word, "no") == 0;
	return a->serve.is_open_to_all || strcmp(word, "yes") == 0
		       ? 0
		       : error_set(-EINVAL, "--protected-mode is yes or no");
}

static int take_lost(void *args, const char *word)
{
	struct redis_args *a = args;

	a->serve.ends_when_lost = strcmp(word, "exit") == 0;
	return a->serve.ends_when_lost || strcmp(word, "recreate") == 0
		       ? 0
		       : error_set(-EINVAL, "--lost is recreate or exit");
}

const struct opt cmd_redis_options[] = {
	OPT_TEXT(struct redis_args, serve.table, "table", "NAME",
		 "the table (default redis); made if there is none"),
	OPT_CALL(take_port, "port", "PORT|none",
		 "where to listen (default 6379)"),
	OPT_TEXT(struct redis_args, serve.bind, "bind", "ADDRESS",
		 "and on which address (default 127.0.0.1)"),
	OPT_TEXT(struct redis_args, serve.unix_path, "socket", "PATH",
		 "listen on a unix socket, too"),
	OPT_TEXT(struct redis_args, password_file, "password-file", "FILE",
		 "its first line is what clients must know"),
	OPT_SIZE(struct redis_args, serve.capacity, "capacity", "N", 64,
		 1ull << 36, "entries of a new table (default 1M)"),
	OPT_SIZE(struct redis_args, serve.extent_bytes, "values", "SIZE",
		 1 << 20, 1ull << 46,
		 "bytes for its larger values (default 256M)"),
	OPT_U32(struct redis_args, serve.clients_max, "max-clients", "N", 1,
		100000, "clients at a time (default 10000)"),
	OPT_U32(struct redis_args, serve.threads, "threads", "N", 1,
		REDIS_THREADS_MAX,
		"threads that clients are spread over (default 1)"),
	OPT_U32(struct redis_args, serve.idle_timeout_s, "timeout", "SECONDS",
		0, 1 << 30, "a client that is silent for so long is ended"),
	OPT_SIZE(struct redis_args, serve.query_bytes_max, "query-limit",
		 "SIZE", 1 << 20, 1ull << 40,
		 "memory for one client's commands (default 128M)"),
	OPT_SIZE(struct redis_args, serve.output_bytes_max, "output-limit",
		 "SIZE", 1 << 20, 1ull << 40,
		 "memory for its answers (default 256M)"),
	OPT_SIZE(struct redis_args, serve.clients_bytes_max, "clients-memory",
		 "SIZE", 1 << 20, 1ull << 44,
		 "memory of all clients (default 1G)"),
	OPT_CALL(take_protection, "protected-mode", "yes|no",
		 "yes (the default): without a password only on loopback "
		 "addresses"),
	OPT_CALL(take_lost, "lost", "recreate|exit",
		 "when the table is gone: look for it and, where the whole "
		 "rack answers without it, make it anew (the default), or end"),
	OPT_TEXT(struct redis_args, serve.http, "http", "ADDRESS:PORT|PATH",
		 "serve /health and /metrics here; a path is a unix socket's"),
	CLI_DAEMON_CONFINE(struct redis_args),
	CLI_DAEMON_JSON(struct redis_args,
			"say what was started as one JSON object"),
	OPT_END,
};

/* The first line of the file: a secret does not belong on a command line. */
static int read_password(struct redis_args *a)
{
	FILE *f;
	bool ok;

	if (!a->password_file)
		return CLI_GO;
	f = fopen(a->password_file, "re");
	ok = f && fgets(a->password, sizeof(a->password), f);
	if (f)
		(void)fclose(f); /* only read */
	a->password[strcspn(a->password, "\r\n")] = 0;
	if (!ok || !a->password[0]) {
		cli_error("--password-file: %s cannot be read or its first "
			  "line is empty",
			  a->password_file);
		return CLI_FAILED;
	}
	a->serve.password = a->password;
	return CLI_GO;
}

static void say_ready(struct daemon *d)
{
	const struct redis_options *o = d->self;
	const char *address = o->bind ? o->bind : "127.0.0.1";
	char tcp[80] = "", local[160] = "";
	json_t *tree = json_pack("{s:s}", "table", o->table);

	if (o->port > 0) {
		(void)json_object_set_new(tree, "address",
					  json_string(address));
		(void)json_object_set_new(tree, "port", json_integer(o->port));
		(void)snprintf(tcp, sizeof(tcp), " redis-cli -h %s -p %d",
			       address, (int)o->port);
	}
	if (d->port)
		(void)json_object_set_new(tree, "http_port",
					  json_integer(d->port));
	if (o->unix_path) {
		(void)json_object_set_new(tree, "socket",
					  json_string(o->unix_path));
		(void)snprintf(local, sizeof(local), "%s redis-cli -s %s",
			       o->port > 0 ? ", or" : "", o->unix_path);
	}
	cli_daemon_ready(d, tree, "table %s as a Redis server:%s%s\n", o->table,
			 tcp, local);
}

int cmd_redis(const struct cli_command *self, int argc, char **argv)
{
	struct redis_args a = {.serve = {.table = "redis",
					 .capacity = 1 << 20,
					 .extent_bytes = 256 << 20,
					 .port = 6379}};
	int code = cli_daemon_parse(self, argc, argv, &a.base);

	if (code == CLI_GO && a.serve.port < 0 && !a.serve.unix_path) {
		cli_error("--port none goes with --socket");
		return CLI_USAGE;
	}
	if (code == CLI_GO)
		code = read_password(&a);
	return code != CLI_GO ? code
			      : cli_daemon_run(&a.base, &redis_daemon, &a.serve,
					       say_ready);
}
