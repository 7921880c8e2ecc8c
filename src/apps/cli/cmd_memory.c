/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer memory`: one memory node, until a signal ends it. */
#include <inttypes.h>

#include "cli_daemon.h"
#include "memnode/memnode.h"

struct memory_args {
	struct cli_daemon base;
	struct mem_serve serve;
};

const struct opt cmd_memory_options[] = {
	OPT_SIZE(struct memory_args, serve.pool_bytes, "size", "SIZE", 1 << 20,
		 1ull << 46, "limit of the pool: 512M, 8G"),
	CLI_DAEMON_NAME(struct memory_args, "the node's name (default m0)"),
	CLI_DAEMON_HTTP(struct memory_args),
	CLI_DAEMON_CONFINE(struct memory_args),
	CLI_DAEMON_JSON(struct memory_args,
			"say what was started as one JSON object"),
	OPT_END,
};

static void say_ready(struct daemon *d)
{
	const struct mem_serve *s = d->self;

	cli_daemon_ready(
		d,
		json_pack("{s:s, s:s, s:s, s:I, s:i}", "node", d->options.name,
			  "rack", d->rack, "socket", d->socket, "size",
			  (json_int_t)s->pool_bytes, "port", (int)d->port),
		"memory node %s of rack %s: %" PRIu64 " MiB, socket %s\n",
		d->options.name, d->rack, s->pool_bytes >> 20, d->socket);
}

int cmd_memory(const struct cli_command *self, int argc, char **argv)
{
	struct memory_args a = {.base.daemon.options.name = "m0"};
	int code = cli_daemon_parse(self, argc, argv, &a.base);

	if (code == CLI_GO && !a.serve.pool_bytes) {
		cli_error("memory needs --size, for example --size 8G");
		return CLI_USAGE;
	}
	return code != CLI_GO ? code
			      : cli_daemon_run(&a.base, &mem_daemon, &a.serve,
					       say_ready);
}
