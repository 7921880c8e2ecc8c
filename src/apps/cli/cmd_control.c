/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer control`: one controller, until a signal ends it. */
#include "cli_control.h"

const struct opt cmd_control_options[] = {
	CLI_DAEMON_NAME(struct cli_control,
			"the controller's name (default c0)"),
	OPT_TEXT(struct cli_control, serve.place.store, "store",
		 "sqlite:PATH|etcd:URL,...",
		 "where its state is kept (default: NAME.control.db in the "
		 "state directory); memory: nowhere"),
	OPT_TEXT(struct cli_control, serve.place.ca, "store-ca", "FILE",
		 "an etcd with https: certificates to trust"),
	OPT_TEXT(struct cli_control, serve.place.cert, "store-cert", "FILE",
		 "and what is shown to it: a PEM file"),
	OPT_TEXT(struct cli_control, serve.place.key, "store-key", "FILE",
		 "and its key"),
	CLI_DAEMON_HTTP(struct cli_control),
	CLI_DAEMON_CONFINE(struct cli_control),
	CLI_DAEMON_JSON(struct cli_control,
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
	struct cli_control a = {.base.daemon.options.name = "c0"};
	struct cli_words words;
	int code = cli_parse(self, argc, argv, OPT_WORDS_ANY, &a, &words);

	if (code == CLI_GO && words.count)
		return cli_control_copy(&a, &words);
	if (code == CLI_GO)
		code = cli_daemon_check(&a.base);
	return code != CLI_GO ? code
			      : cli_daemon_run(&a.base, &cd_daemon, &a.serve,
					       say_ready);
}
