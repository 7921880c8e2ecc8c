/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer control`: one controller, until a signal ends it. */
#include "cli_daemon.h"
#include "controld/controld.h"

struct control_args {
	struct cli_daemon base;
	struct cd_serve_options serve;
};

const struct opt cmd_control_options[] = {
	CLI_DAEMON_NAME(struct control_args,
			"the controller's name (default c0)"),
	OPT_TEXT(struct control_args, serve.store, "store", "sqlite:PATH",
		 "where its state is kept (default: NAME.control.db in the "
		 "state directory); memory: nowhere"),
	CLI_DAEMON_HTTP(struct control_args),
	CLI_DAEMON_CONFINE(struct control_args),
	CLI_DAEMON_JSON(struct control_args,
			"say what was started as one JSON object"),
	OPT_END,
};

static void say_ready(struct daemon *d)
{
	cli_daemon_ready(d,
			 json_pack("{s:s, s:s, s:s, s:i}", "controller",
				   d->options.name, "rack", d->rack, "socket",
				   d->socket, "port", (int)d->port),
			 "controller %s of rack %s: socket %s\n",
			 d->options.name, d->rack, d->socket);
}

int cmd_control(const struct cli_command *self, int argc, char **argv)
{
	struct control_args a = {.base.daemon.options.name = "c0"};
	int code = cli_daemon_parse(self, argc, argv, &a.base);

	return code != CLI_GO ? code
			      : cli_daemon_run(&a.base, &cd_daemon, &a.serve,
					       say_ready);
}
