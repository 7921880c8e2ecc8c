/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer engine`: one offload engine, until a signal ends it. */
#include "cli_daemon.h"
#include "engine/engined.h"

struct engine_args {
	struct cli_daemon base;
	struct eng_options serve;
};

const struct opt cmd_engine_options[] = {
	CLI_DAEMON_NAME(struct engine_args, "the engine's name (default e0)"),
	OPT_TEXT(struct engine_args, serve.switch_name, "switch", "NAME",
		 "the program cowbird of that switch moves the data"),
	OPT_U32(struct engine_args, serve.batch, "batch", "N", 1, 65536,
		"completions that may be told together (default 32; 1: each at "
		"once)"),
	OPT_U32(struct engine_args, serve.flush_us, "flush-us", "N", 1, 1000000,
		"the longest that a completion waits for others (default 10)"),
	OPT_U32(struct engine_args, serve.probe_max_us, "probe-max-us", "N", 1,
		1000000,
		"between looks at an idle application (default 10000)"),
	OPT_SIZE(struct engine_args, serve.memory_bytes, "memory", "SIZE",
		 1 << 20, 1ull << 46,
		 "limit for copies of applications' rings"),
	OPT_U32(struct engine_args, serve.sessions, "sessions", "N", 1, 256,
		"application threads that it serves at most (default 256)"),
	OPT_U32(struct engine_args, serve.threads, "threads", "N", 1,
		ENG_THREAD_MAX, "threads that share them (default 1)"),
	OPT_CHOICE(struct engine_args, serve.gather_off, "gather", "on|off",
		   "small reads leave many at a time, where the memory node "
		   "can (default on)"),
	CLI_DAEMON_HTTP(struct engine_args),
	CLI_DAEMON_CONFINE(struct engine_args),
	CLI_DAEMON_JSON(struct engine_args,
			"say what was started as one JSON object"),
	OPT_END,
};

static void say_ready(struct daemon *d)
{
	cli_daemon_ready(d,
			 json_pack("{s:s, s:s, s:s, s:i}", "engine",
				   d->options.name, "rack", d->rack, "socket",
				   d->socket, "port", (int)d->port),
			 "engine %s of rack %s: socket %s\n", d->options.name,
			 d->rack, d->socket);
}

int cmd_engine(const struct cli_command *self, int argc, char **argv)
{
	struct engine_args a = {.base.daemon.options.name = "e0"};
	int code = cli_daemon_parse(self, argc, argv, &a.base);

	return code != CLI_GO ? code
			      : cli_daemon_run(&a.base, &eng_daemon, &a.serve,
					       say_ready);
}
