/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer switch`: one switch until a signal ends it, or a word to one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli_daemon.h"
#include "switchd/switchd.h"

enum {
	FAULT_TEXT_MAX = 1024,
};

struct switch_args {
	struct cli_daemon base;
	bool resources;
	bool stats;
	const char *tell;
	char fault[FAULT_TEXT_MAX];
	struct switchd_options serve;
};

static int add(const char **list, unsigned *count, unsigned max,
	       const char *option, const char *word)
{
	if (*count == max)
		return error_set(-EINVAL, "%s can be given %u times", option,
				 max);
	list[(*count)++] = word;
	return 0;
}

static int take_port(void *args, const char *word)
{
	struct switch_args *a = args;

	if (strncmp(word, "raw:", 4) == 0)
		a->base.daemon.confine.packets = true;
	return add(a->serve.ports, &a->serve.port_count, SWITCHD_PORT_MAX,
		   "--port", word);
}

static int take_address(void *args, const char *word)
{
	struct switchd_options *o = &((struct switch_args *)args)->serve;

	return add(o->addresses, &o->address_count, SWITCHD_ADDRESS_MAX,
		   "--address", word);
}

static int take_program(void *args, const char *word)
{
	struct switchd_options *o = &((struct switch_args *)args)->serve;

	return add(o->programs, &o->program_count, SWITCHD_PORT_MAX,
		   "--program", word);
}

static int take_fault(void *args, const char *word)
{
	struct switch_args *a = args;

	if ((size_t)snprintf(a->fault, sizeof(a->fault), "fault:%s", word) >=
	    sizeof(a->fault))
		return error_set(-EINVAL, "--fault is too long");
	return take_program(args, a->fault);
}

static int take_seconds(void *args, const char *word)
{
	struct switch_args *a = args;
	char *end;
	double v = strtod(word, &end);

	if (end == word || *end || !(v > 0 && v < 1e8))
		return error_set(-EINVAL, "--for needs a number of seconds");
	a->serve.run_ns = (uint64_t)(v * 1e9);
	return 0;
}

const struct opt cmd_switch_options[] = {
	CLI_DAEMON_NAME(struct switch_args,
			"the switch's name (default s0); NICs of this machine "
			"plug in with nic.port = switch:NAME"),
	OPT_CALL(take_port, "port", "raw:INTERFACE|udp:ADDRESS",
		 "an interface that is a port, or a UDP socket where hosts "
		 "plug in with VXLAN; may be repeated"),
	OPT_CALL(take_address, "address", "IP",
		 "an address of the switch itself, which hosts find by ARP or "
		 "neighbour discovery; may be repeated"),
	OPT_CALL(take_program, "program", "NAME[:OPTIONS]",
		 "a program on the path, in the order given"),
	OPT_CALL(take_fault, "fault", "OPTIONS",
		 "short for --program fault:OPTIONS, e.g. loss=1%"),
	OPT_CALL(take_seconds, "for", "SECONDS", "end after so long"),
	OPT_TEXT(struct switch_args, serve.trace, "trace", "FILE",
		 "write what comes in and goes out to a file"),
	CLI_DAEMON_HTTP(struct switch_args),
	CLI_DAEMON_CONFINE(struct switch_args),
	OPT_FLAG(struct switch_args, resources, "resources",
		 "print what the programs need in a real pipeline, and end"),
	OPT_FLAG(struct switch_args, stats, "stats",
		 "print a running switch's counters"),
	OPT_TEXT(struct switch_args, tell, "tell", "'PROGRAM ...'",
		 "a control call to one, e.g. 'fault reload loss=0'"),
	CLI_DAEMON_JSON(struct switch_args,
			"say what was started, and at the end the counters, as "
			"JSON objects"),
	OPT_END,
};

static void say_ready(struct daemon *d)
{
	const struct switchd_options *o = d->self;

	cli_daemon_ready(d,
			 json_pack("{s:s, s:s, s:s, s:i, s:i}", "switch",
				   d->options.name, "rack", d->rack, "socket",
				   switchd_socket(d), "interfaces",
				   (int)o->port_count, "port", (int)d->port),
			 "switch %s of rack %s: %u interfaces, nic.port = "
			 "switch:%s\n",
			 d->options.name, d->rack, o->port_count,
			 d->options.name);
}

/* A word to a switch that runs. */
static int ask(const struct switch_args *a)
{
	const struct daemon_options *o = &a->base.daemon.options;
	char line[SWITCHD_REQUEST_MAX];
	struct config *config;
	const char *rack;
	int err;

	err = config_open(NULL, &config);
	if (err)
		return err;
	rack = config_string(config, "rack", "name");
	if (a->stats)
		err = switchd_ask(rack, o->name, "stats", stdout);
	else if ((size_t)snprintf(line, sizeof(line), "tell %s", a->tell) >=
		 sizeof(line))
		err = error_set(-EINVAL, "--tell is too long");
	else
		err = switchd_ask(rack, o->name, line, stdout);
	config_destroy(config);
	return err;
}

int cmd_switch(const struct cli_command *self, int argc, char **argv)
{
	struct switch_args a = {.base.daemon.options.name = "s0"};
	int err, code = cli_daemon_parse(self, argc, argv, &a.base);

	if (code != CLI_GO)
		return code;
	a.serve.report = a.base.json;
	if (!a.resources && !a.stats && !a.tell)
		return cli_daemon_run(&a.base, &switchd_daemon, &a.serve,
				      say_ready);
	err = a.resources ? switchd_resources(&a.serve, stdout) : ask(&a);
	if (err)
		cli_error_last(err);
	return cli_error_exit(err);
}
