/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer redis`: a Redis server over a table in far memory. */
#include <aquifer/kv.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "cli.h"
#include "cli_confine.h"
#include "cli_report.h"
#include "cli_settings.h"
#include "redis/redis.h"

struct redis_args {
	bool json;
	struct cli_confine confine;
	uint64_t capacity;
	uint64_t values_bytes;
	const char *password_file;
	char password[REDIS_PASSWORD_MAX + 1];
	struct redis_options serve;
};

static bool parse_number(const char *option, const char *text,
			 enum config_kind kind, uint64_t min, uint64_t max,
			 uint64_t *out)
{
	const struct config_key key = {
		.section = "redis",
		.key = option,
		.kind = kind,
		.min = min,
		.max = max,
	};

	if (config_key_parse(&key, text, out) == 0)
		return true;
	cli_error("--%s: %s", option, error_last());
	return false;
}

/* One option; false when it is wrong (and stderr says so). */
static bool take_option(const struct cli_command *self, int opt, char **argv,
			struct redis_args *a)
{
	uint64_t n;

	if (cli_confine_take(&a->confine, opt, optarg))
		return true;
	switch (opt) {
	case 'j':
		a->json = true;
		return true;
	case 't':
		a->serve.table = optarg;
		return true;
	case 'p':
		if (strcmp(optarg, "none") == 0) {
			a->serve.port = -1;
			return true;
		}
		if (!parse_number("port", optarg, CONFIG_INT, 0, 65535, &n))
			return false;
		a->serve.port = (int32_t)n;
		return true;
	case 'b':
		a->serve.bind = optarg;
		return true;
	case 's':
		a->serve.unix_path = optarg;
		return true;
	case 'w':
		a->password_file = optarg;
		return true;
	case 'c':
		return parse_number("capacity", optarg, CONFIG_SIZE, 64,
				    1ull << 36, &a->capacity);
	case 'v':
		return parse_number("values", optarg, CONFIG_SIZE, 1 << 20,
				    1ull << 46, &a->values_bytes);
	case 'm':
		if (!parse_number("max-clients", optarg, CONFIG_INT, 1, 100000,
				  &n))
			return false;
		a->serve.clients_max = (uint32_t)n;
		return true;
	case 'i':
		if (!parse_number("timeout", optarg, CONFIG_INT, 0, 1 << 30,
				  &n))
			return false;
		a->serve.idle_timeout_s = (uint32_t)n;
		return true;
	case 'P':
		a->serve.is_open_to_all = strcmp(optarg, "no") == 0;
		if (a->serve.is_open_to_all || strcmp(optarg, "yes") == 0)
			return true;
		cli_error("--protected-mode is yes or no");
		return false;
	case 'q':
		return parse_number("query-limit", optarg, CONFIG_SIZE, 1 << 20,
				    1ull << 40, &a->serve.query_bytes_max);
	case 'o':
		return parse_number("output-limit", optarg, CONFIG_SIZE,
				    1 << 20, 1ull << 40,
				    &a->serve.output_bytes_max);
	case 'M':
		return parse_number("clients-memory", optarg, CONFIG_SIZE,
				    1 << 20, 1ull << 44,
				    &a->serve.clients_bytes_max);
	case ':':
		cli_error("%s needs a value", argv[optind - 1]);
		return false;
	default:
		cli_error("%s has no option '%s'; see 'aquifer help %s'",
			  self->name, argv[optind - 1], self->name);
		return false;
	}
}

static int parse(const struct cli_command *self, int argc, char **argv,
		 struct redis_args *a)
{
	static const struct option longopts[] = {
		{"help", no_argument, NULL, 'h'},
		{"json", no_argument, NULL, 'j'},
		{"table", required_argument, NULL, 't'},
		{"port", required_argument, NULL, 'p'},
		{"bind", required_argument, NULL, 'b'},
		{"socket", required_argument, NULL, 's'},
		{"password-file", required_argument, NULL, 'w'},
		{"capacity", required_argument, NULL, 'c'},
		{"values", required_argument, NULL, 'v'},
		{"max-clients", required_argument, NULL, 'm'},
		{"timeout", required_argument, NULL, 'i'},
		{"protected-mode", required_argument, NULL, 'P'},
		{"query-limit", required_argument, NULL, 'q'},
		{"output-limit", required_argument, NULL, 'o'},
		{"clients-memory", required_argument, NULL, 'M'},
		CLI_CONFINE_LONGOPTS,
		{NULL, 0, NULL, 0},
	};
	int opt;

	optind = 0;
	while ((opt = getopt_long(argc, argv, "+:h", longopts, NULL)) != -1) {
		if (opt == 'h') {
			cli_command_help(self, "aquifer");
			return CLI_OK;
		}
		if (!take_option(self, opt, argv, a))
			return CLI_USAGE;
	}
	if (optind < argc) {
		cli_error("%s does not understand '%s'; see 'aquifer help %s'",
			  self->name, argv[optind], self->name);
		return CLI_USAGE;
	}
	if (a->serve.port < 0 && !a->serve.unix_path) {
		cli_error("--port none goes with --socket");
		return CLI_USAGE;
	}
	return CLI_GO;
}

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

static void say_ready(void *ctx, uint16_t port)
{
	const struct redis_args *a = ctx;
	const char *address = a->serve.bind ? a->serve.bind : "127.0.0.1";
	json_t *tree;

	if (!a->json) {
		printf("table %s as a Redis server:", a->serve.table);
		if (port)
			printf(" redis-cli -h %s -p %u", address, port);
		if (a->serve.unix_path)
			printf("%s redis-cli -s %s", port ? ", or" : "",
			       a->serve.unix_path);
		printf("\n");
	} else {
		tree = json_object();
		cli_report_set(tree, "table", "%s", a->serve.table);
		if (port) {
			cli_report_set(tree, "address", "%s", address);
			(void)json_object_set_new(tree, "port",
						  json_integer(port));
		}
		if (a->serve.unix_path)
			cli_report_set(tree, "socket", "%s",
				       a->serve.unix_path);
		if (cli_report_print(tree, true) != 0)
			cli_error("cannot write the output");
	}
	(void)fflush(stdout); /* main reports a failure at the end */
}

/* Several gateways may start at once: whoever comes second opens. */
static int open_table(struct aq_rack *rack, const struct redis_args *a,
		      struct aq_kv **kv)
{
	struct aq_kv_options o = {.capacity = a->capacity,
				  .extent_bytes = a->values_bytes};
	int err = aq_kv_open(rack, a->serve.table, kv);

	if (err != -ENOENT)
		return err;
	err = aq_kv_create(rack, a->serve.table, &o, kv);
	return err == -EEXIST ? aq_kv_open(rack, a->serve.table, kv) : err;
}

static int serve(struct redis_args *a)
{
	struct aq_rack *rack;
	sigset_t signals;
	int err;

	/* Before any thread exists, so that only the server gets them. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0)
		return error_set(-EINVAL, "cannot set up signals");
	err = aq_rack_open(NULL, &rack);
	if (err)
		return err;
	err = open_table(rack, a, &a->serve.kv);
	if (!err) {
		err = redis_serve(&a->serve, say_ready, a);
		aq_kv_close(a->serve.kv);
	}
	aq_rack_close(rack);
	return err;
}

static int confine(struct redis_args *a, const struct config *config)
{
	struct cli_confine *c = &a->confine;

	c->what.low_port = a->serve.port > 0 && a->serve.port < 1024;
	return cli_confine_begin(c, config) ||
			       cli_confine_add_parent(c, CONFINE_SOCKET,
						      a->serve.unix_path) ||
			       cli_confine_start(c)
		       ? CLI_FAILED
		       : CLI_GO;
}

int cmd_redis(const struct cli_command *self, int argc, char **argv)
{
	struct redis_args a = {
		.capacity = 1 << 20,
		.values_bytes = 256 << 20,
		.serve = {.table = "redis", .port = 6379},
	};
	struct cli_args none = {0};
	struct config *config;
	int code = parse(self, argc, argv, &a);

	if (code == CLI_GO)
		code = read_password(&a);
	if (code != CLI_GO)
		return code;
	if (cli_settings_load(&none, &config) != 0)
		return CLI_FAILED;
	code = confine(&a, config);
	if (code == CLI_GO) {
		code = CLI_OK;
		if (serve(&a) != 0) {
			cli_error("%s", error_last());
			code = CLI_FAILED;
		}
	}
	config_destroy(config);
	return code;
}
