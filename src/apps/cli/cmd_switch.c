/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer switch`: one switch until a signal ends it, or a word to one. */
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
#include "switchd/switchd.h"

enum {
	FAULT_TEXT_MAX = 1024,
};

struct switch_args {
	bool json;
	struct cli_confine confine;
	bool resources;
	bool stats;
	const char *tell;
	const char *rack;
	char fault[FAULT_TEXT_MAX];
	struct switchd_options run;
};

static bool add(const char **list, unsigned *count, const char *option)
{
	if (*count == SWITCHD_PORT_MAX) {
		cli_error("%s can be given %d times", option, SWITCHD_PORT_MAX);
		return false;
	}
	list[(*count)++] = optarg;
	return true;
}

static bool take_fault(struct switch_args *a)
{
	if ((size_t)snprintf(a->fault, sizeof(a->fault), "fault:%s", optarg) >=
	    sizeof(a->fault)) {
		cli_error("--fault is too long");
		return false;
	}
	optarg = a->fault;
	return add(a->run.programs, &a->run.program_count, "--program");
}

static bool take_seconds(struct switch_args *a)
{
	char *end;
	double v = strtod(optarg, &end);

	if (end == optarg || *end || !(v > 0 && v < 1e8)) {
		cli_error("--for needs a number of seconds");
		return false;
	}
	a->run.run_ns = (uint64_t)(v * 1e9);
	return true;
}

static bool take_option(const struct cli_command *self, int opt, char **argv,
			struct switch_args *a)
{
	if (cli_confine_take(&a->confine, opt, optarg))
		return true;
	switch (opt) {
	case 'j':
		a->json = a->run.report = true;
		return true;
	case 'n':
		a->run.name = optarg;
		return true;
	case 'r':
		a->rack = optarg;
		return true;
	case 'p':
		return add(a->run.ports, &a->run.port_count, "--port");
	case 'P':
		return add(a->run.programs, &a->run.program_count, "--program");
	case 'f':
		return take_fault(a);
	case 's':
		return take_seconds(a);
	case 'T':
		a->run.trace = optarg;
		return true;
	case 'R':
		a->resources = true;
		return true;
	case 'S':
		a->stats = true;
		return true;
	case 't':
		a->tell = optarg;
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
		 struct switch_args *a)
{
	static const struct option longopts[] = {
		{"help", no_argument, NULL, 'h'},
		{"json", no_argument, NULL, 'j'},
		{"name", required_argument, NULL, 'n'},
		{"rack", required_argument, NULL, 'r'},
		{"port", required_argument, NULL, 'p'},
		{"program", required_argument, NULL, 'P'},
		{"fault", required_argument, NULL, 'f'},
		{"for", required_argument, NULL, 's'},
		{"resources", no_argument, NULL, 'R'},
		{"stats", no_argument, NULL, 'S'},
		{"tell", required_argument, NULL, 't'},
		{"trace", required_argument, NULL, 'T'},
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
	return CLI_GO;
}

/* One line: whoever reads it can plug in. */
static void say_ready(void *ctx, const struct switchd_ready *what)
{
	const struct switch_args *a = ctx;
	json_t *tree;

	if (!a->json) {
		printf("switch %s of rack %s: %u interfaces, nic.port = "
		       "switch:%s\n",
		       what->name, what->rack, what->ports, what->name);
	} else {
		tree = json_object();
		cli_report_set(tree, "switch", "%s", what->name);
		cli_report_set(tree, "rack", "%s", what->rack);
		cli_report_set(tree, "socket", "%s", what->socket);
		(void)json_object_set_new(tree, "interfaces",
					  json_integer(what->ports));
		if (cli_report_print(tree, true) != 0)
			cli_error("cannot write the output");
	}
	(void)fflush(stdout); /* main reports a failure at the end */
}

static int ask(const struct switch_args *a)
{
	char line[SWITCHD_REQUEST_MAX];

	if (a->stats)
		return switchd_ask(a->run.rack, a->run.name, "stats", stdout);
	if ((size_t)snprintf(line, sizeof(line), "tell %s", a->tell) >=
	    sizeof(line))
		return error_set(-1, "--tell is too long");
	return switchd_ask(a->run.rack, a->run.name, line, stdout);
}

static int serve(struct switch_args *a, const struct config *config)
{
	struct cli_confine *c = &a->confine;

	for (unsigned i = 0; i < a->run.port_count; i++)
		if (strncmp(a->run.ports[i], "raw:", 4) == 0)
			c->what.packets = true;
	if (cli_confine_begin(c, config) ||
	    cli_confine_add_parent(c, CONFINE_WRITE, a->run.trace) ||
	    cli_confine_start(c))
		return CLI_FAILED;
	return switchd_serve(&a->run, say_ready, a);
}

int cmd_switch(const struct cli_command *self, int argc, char **argv)
{
	struct switch_args a = {.run = {.name = "s0"}};
	struct cli_args none = {0};
	struct config *config;
	int code = parse(self, argc, argv, &a);
	int err;

	if (code != CLI_GO)
		return code;
	if (a.rack && setenv("AQUIFER_RACK_NAME", a.rack, 1)) {
		cli_error("cannot set the environment");
		return CLI_FAILED;
	}
	if (cli_settings_load(&none, &config) != 0)
		return CLI_FAILED;
	a.run.rack = config_string(config, "rack", "name");
	a.run.yields = (uint32_t)config_int(config, "nic", "engine_yields");
	if (a.resources)
		err = switchd_resources(&a.run, stdout);
	else if (a.stats || a.tell)
		err = ask(&a);
	else
		err = serve(&a, config);
	if (err < 0)
		cli_error("%s", error_last_code() == err ? error_last()
							 : error_text(err));
	config_destroy(config);
	return err ? CLI_FAILED : CLI_OK;
}
