/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer engine`: one offload engine, until a signal ends it. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "cli.h"
#include "cli_confine.h"
#include "cli_report.h"
#include "cli_settings.h"
#include "engine/engined.h"

struct engine_args {
	bool json;
	struct cli_confine confine;
	const char *rack;
	struct eng_options options;
};

static bool parse_number(const char *what, enum config_kind kind, uint64_t min,
			 uint64_t max, uint64_t *out)
{
	const struct config_key key = {.section = "engine",
				       .key = what,
				       .kind = kind,
				       .min = min,
				       .max = max};

	if (config_key_parse(&key, optarg, out) == 0)
		return true;
	cli_error("--%s: %s", what, error_last());
	return false;
}

/* One option; false when it is wrong (and stderr says so). */
static bool take_option(const struct cli_command *self, int opt, char **argv,
			struct engine_args *a)
{
	struct eng_options *o = &a->options;
	uint64_t n = 0;

	if (cli_confine_take(&a->confine, opt, optarg))
		return true;
	switch (opt) {
	case 'j':
		a->json = true;
		return true;
	case 'n':
		o->name = optarg;
		return true;
	case 'r':
		a->rack = optarg;
		return true;
	case 'l':
		o->listen = optarg;
		return true;
	case 'c':
		o->tls_cert = optarg;
		return true;
	case 'k':
		o->tls_key = optarg;
		return true;
	case 'a':
		o->audit = optarg;
		return true;
	case 'A':
		o->audit_json = true;
		return true;
	case 'b':
		if (!parse_number("batch", CONFIG_INT, 1, 65536, &n))
			return false;
		o->batch = (uint32_t)n;
		return true;
	case 'f':
		if (!parse_number("flush-us", CONFIG_INT, 1, 1000000, &n))
			return false;
		o->flush_ns = 1000 * n;
		return true;
	case 'p':
		if (!parse_number("probe-max-us", CONFIG_INT, 1, 1000000, &n))
			return false;
		o->probe_max_ns = 1000 * n;
		return true;
	case 'm':
		return parse_number("memory", CONFIG_SIZE, 1 << 20, 1ull << 46,
				    &o->memory_bytes);
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
		 struct engine_args *a)
{
	static const struct option longopts[] = {
		{"help", no_argument, NULL, 'h'},
		{"json", no_argument, NULL, 'j'},
		{"name", required_argument, NULL, 'n'},
		{"rack", required_argument, NULL, 'r'},
		{"listen", required_argument, NULL, 'l'},
		{"tls-cert", required_argument, NULL, 'c'},
		{"tls-key", required_argument, NULL, 'k'},
		{"audit", required_argument, NULL, 'a'},
		{"audit-json", no_argument, NULL, 'A'},
		{"batch", required_argument, NULL, 'b'},
		{"flush-us", required_argument, NULL, 'f'},
		{"probe-max-us", required_argument, NULL, 'p'},
		{"memory", required_argument, NULL, 'm'},
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
	if ((a->options.tls_cert || a->options.tls_key) && !a->options.listen) {
		cli_error("--tls-cert and --tls-key go with --listen");
		return CLI_USAGE;
	}
	return CLI_GO;
}

/* One line for people and scripts: whoever reads it can attach. */
static void say_ready(void *ctx, const struct eng_ready *what)
{
	const struct engine_args *a = ctx;
	json_t *tree;

	if (!a->json) {
		printf("engine %s of rack %s: socket %s\n", what->name,
		       what->rack, what->socket);
		if (what->port)
			printf("listening on %s (port %u)%s\n",
			       a->options.listen, what->port,
			       a->options.tls_cert ? " with TLS" : "");
	} else {
		tree = json_object();
		cli_report_set(tree, "engine", "%s", what->name);
		cli_report_set(tree, "rack", "%s", what->rack);
		cli_report_set(tree, "socket", "%s", what->socket);
		(void)json_object_set_new(tree, "port",
					  json_integer(what->port));
		if (cli_report_print(tree, true) != 0)
			cli_error("cannot write the output");
	}
	(void)fflush(stdout); /* main reports a failure at the end */
}

static int confine(struct engine_args *a, const struct config *config)
{
	struct cli_confine *c = &a->confine;
	const char *audit = a->options.audit;
	int err;

	if (audit && strcmp(audit, "-") == 0)
		audit = NULL;
	cli_confine_listen(c, a->options.listen);
	if (cli_confine_begin(c, config) ||
	    cli_confine_add_parent(c, CONFINE_WRITE, audit))
		return CLI_FAILED;
	err = confine_add(&c->what, CONFINE_READ, a->options.tls_cert);
	if (!err)
		err = confine_add(&c->what, CONFINE_READ, a->options.tls_key);
	if (err)
		cli_error("%s", error_last());
	return err || cli_confine_start(c) ? CLI_FAILED : CLI_GO;
}

int cmd_engine(const struct cli_command *self, int argc, char **argv)
{
	struct engine_args a = {.options = {.name = "e0"}};
	struct cli_args none = {0};
	struct config *config;
	int code = parse(self, argc, argv, &a);

	if (code != CLI_GO)
		return code;
	/* The NIC in this process finds its rack where every program does. */
	if (a.rack && setenv("AQUIFER_RACK_NAME", a.rack, 1)) {
		cli_error("cannot set the environment");
		return CLI_FAILED;
	}
	if (cli_settings_load(&none, &config) != 0)
		return CLI_FAILED;
	a.options.rack = config_string(config, "rack", "name");
	a.options.has_auth =
		strcmp(config_string(config, "nic", "auth"), "psk") == 0;
	code = confine(&a, config);
	if (code == CLI_GO) {
		code = CLI_OK;
		if (eng_serve(&a.options, say_ready, &a) != 0) {
			cli_error("%s", error_last());
			code = CLI_FAILED;
		}
	}
	config_destroy(config);
	return code;
}
