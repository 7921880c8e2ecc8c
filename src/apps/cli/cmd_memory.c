/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer memory`: one memory node, until a signal ends it. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "cli.h"
#include "cli_confine.h"
#include "cli_report.h"
#include "cli_settings.h"
#include "memnode/memnode.h"

struct memory_args {
	bool json;
	struct cli_confine confine;
	struct mem_serve_options serve;
};

static bool parse_size(const char *text, uint64_t *size_bytes)
{
	static const struct config_key key = {
		.section = "memory",
		.key = "size",
		.kind = CONFIG_SIZE,
		.min = 1 << 20,
		.max = 1ull << 46,
	};

	if (config_key_parse(&key, text, size_bytes) == 0)
		return true;
	cli_error("--size: %s", error_last());
	return false;
}

/* One option; false when it is wrong (and stderr says so). */
static bool take_option(const struct cli_command *self, int opt, char **argv,
			struct memory_args *a)
{
	if (cli_confine_take(&a->confine, opt, optarg))
		return true;
	switch (opt) {
	case 'j':
		a->json = true;
		return true;
	case 's':
		return parse_size(optarg, &a->serve.pool_bytes);
	case 'n':
		a->serve.name = optarg;
		return true;
	case 'r':
		a->serve.rack = optarg;
		return true;
	case 'l':
		a->serve.listen = optarg;
		return true;
	case 'c':
		a->serve.tls_cert = optarg;
		return true;
	case 'k':
		a->serve.tls_key = optarg;
		return true;
	case 'a':
		a->serve.audit = optarg;
		return true;
	case 'A':
		a->serve.audit_json = true;
		return true;
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
		 struct memory_args *a)
{
	static const struct option longopts[] = {
		{"help", no_argument, NULL, 'h'},
		{"json", no_argument, NULL, 'j'},
		{"size", required_argument, NULL, 's'},
		{"name", required_argument, NULL, 'n'},
		{"rack", required_argument, NULL, 'r'},
		{"listen", required_argument, NULL, 'l'},
		{"tls-cert", required_argument, NULL, 'c'},
		{"tls-key", required_argument, NULL, 'k'},
		{"audit", required_argument, NULL, 'a'},
		{"audit-json", no_argument, NULL, 'A'},
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
	if (!a->serve.pool_bytes) {
		cli_error("memory needs --size, for example --size 8G");
		return CLI_USAGE;
	}
	if ((a->serve.tls_cert || a->serve.tls_key) && !a->serve.listen) {
		cli_error("--tls-cert and --tls-key go with --listen");
		return CLI_USAGE;
	}
	return CLI_GO;
}

/* One line for people and scripts: whoever reads it can connect. */
static void say_ready(void *ctx, const struct mem_serve_ready *what)
{
	const struct memory_args *a = ctx;
	json_t *tree;

	if (!a->json) {
		printf("memory node %s of rack %s: %" PRIu64
		       " MiB, socket %s\n",
		       what->name, what->rack, what->pool_bytes >> 20,
		       what->socket);
		if (what->port)
			printf("listening on %s (port %u)%s\n", a->serve.listen,
			       what->port,
			       a->serve.tls_cert ? " with TLS" : "");
	} else {
		tree = json_object();
		cli_report_set(tree, "node", "%s", what->name);
		cli_report_set(tree, "rack", "%s", what->rack);
		cli_report_set(tree, "socket", "%s", what->socket);
		(void)json_object_set_new(
			tree, "size",
			json_integer((json_int_t)what->pool_bytes));
		(void)json_object_set_new(tree, "port",
					  json_integer(what->port));
		if (cli_report_print(tree, true) != 0)
			cli_error("cannot write the output");
	}
	(void)fflush(stdout); /* main reports a failure at the end */
}

/* The NIC in this process finds its rack where every program does. */
static int settle_rack(struct memory_args *a, struct config **config)
{
	struct cli_args none = {0};
	const char *port;

	if (a->serve.rack && setenv("AQUIFER_RACK_NAME", a->serve.rack, 1)) {
		cli_error("cannot set the environment");
		return CLI_FAILED;
	}
	if (cli_settings_load(&none, config) != 0)
		return CLI_FAILED;
	a->serve.rack = config_string(*config, "rack", "name");
	port = config_string(*config, "nic", "port");
	if (strncmp(port, "switch:", 7) == 0)
		a->serve.switch_name = port + 7;
	a->serve.has_auth =
		strcmp(config_string(*config, "nic", "auth"), "psk") == 0;
	return CLI_GO;
}

static int confine(struct memory_args *a, const struct config *config)
{
	struct cli_confine *c = &a->confine;
	const char *audit = a->serve.audit;
	char state[MEM_STATE_PATH_MAX];
	int err;

	if (audit && strcmp(audit, "-") == 0)
		audit = NULL;
	cli_confine_listen(c, a->serve.listen);
	if (cli_confine_begin(c, config))
		return CLI_FAILED;
	/* All below $AQUIFER_STATEDIR: a file system may be mounted over the
	 * rack's own while the node runs. */
	err = mem_state_dir(a->serve.rack, state);
	if (!err && (cli_confine_add_parent(c, CONFINE_WRITE, state) ||
		     cli_confine_add_parent(c, CONFINE_WRITE, audit)))
		return CLI_FAILED;
	if (!err)
		err = confine_add(&c->what, CONFINE_READ, a->serve.tls_cert);
	if (!err)
		err = confine_add(&c->what, CONFINE_READ, a->serve.tls_key);
	if (err)
		cli_error("%s", error_last());
	return err || cli_confine_start(c) ? CLI_FAILED : CLI_GO;
}

int cmd_memory(const struct cli_command *self, int argc, char **argv)
{
	struct memory_args a = {.serve = {.name = "m0"}};
	struct config *config;
	int code = parse(self, argc, argv, &a);

	if (code == CLI_GO)
		code = settle_rack(&a, &config);
	if (code != CLI_GO)
		return code;
	code = confine(&a, config);
	if (code == CLI_GO) {
		code = CLI_OK;
		if (mem_serve(&a.serve, say_ready, &a) != 0) {
			cli_error("%s", error_last());
			code = CLI_FAILED;
		}
	}
	config_destroy(config);
	return code;
}
