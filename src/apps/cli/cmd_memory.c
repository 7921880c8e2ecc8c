/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer memory`: one memory node, until a signal ends it. */
#include <errno.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/error.h"
#include "base/node_bind.h"
#include "base/size.h"
#include "cli_daemon.h"
#include "memnode/memnode.h"
#include "probe/probe.h"
#include "tier/sysfs.h"

enum {
	READY_BYTES = 128 << 20, /* as rack.ini(5) says */
};

struct memory_args {
	struct cli_daemon base;
	struct mem_serve serve;
};

static int take_numa(void *args, const char *word)
{
	struct memory_args *a = args;
	uint64_t node;

	if (tier_sysfs_number(word, NODE_BIND_MAX, &node))
		return error_set(-EINVAL,
				 "--numa: value '%.40s' is not allowed; it is "
				 "a number from 0 to %d",
				 word, NODE_BIND_MAX);
	a->serve.has_numa = true;
	a->serve.numa = (uint32_t)node;
	return 0;
}

static int take_spill(void *args, const char *word)
{
	struct memory_args *a = args;
	const char *colon = strrchr(word, ':');
	size_t len = colon ? (size_t)(colon - word) : 0;

	if (!*word)
		return 0; /* of rack.ini: there is none */
	if (word[0] != '/' || !len || len >= sizeof(a->serve.spill_dir))
		return error_set(-EINVAL,
				 "--spill: '%.80s' is not /FOLDER:SIZE, for "
				 "example /var/spill:64G",
				 word);
	memcpy(a->serve.spill_dir, word, len);
	a->serve.spill_dir[len] = '\0';
	return opt_size("--spill", colon + 1, &a->serve.spill_bytes);
}

const struct opt cmd_memory_options[] = {
	OPT_SIZE(struct memory_args, serve.pool_bytes, "size", "SIZE", 1 << 20,
		 1ull << 46, "limit of the pool: 512M, 8G"),
	OPT_SIZE(struct memory_args, serve.shared_bytes, "shared", "SIZE", 0,
		 1ull << 40,
		 "memory that machines share coherently, beside the pool; "
		 "needs a switch"),
	OPT_TEXT(struct memory_args, serve.lead, "lead", "NODE",
		 "the node that leads shared memory (default: the first of "
		 "rack.ini that has some)"),
	OPT_CALL(take_numa, "numa", "N",
		 "the pool lies on this NUMA node, as CXL memory does"),
	OPT_CALL(take_spill, "spill", "DIR:SIZE",
		 "where blocks go that find no room in the pool"),
	OPT_SIZE(struct memory_args, serve.ready_bytes, "ready", "SIZE", 0,
		 1ull << 40,
		 "memory that is made before blocks need it, at most (128M)"),
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

	json_t *tree =
		json_pack("{s:s, s:s, s:s, s:I, s:i}", "node", d->options.name,
			  "rack", d->rack, "socket", d->socket, "size",
			  (json_int_t)s->pool_bytes, "port", (int)d->port);

	if (s->has_numa)
		(void)json_object_set_new(tree, "numa", json_integer(s->numa));
	if (s->spill_bytes)
		(void)json_object_set_new(
			tree, "spill",
			json_integer((json_int_t)s->spill_bytes));
	if (s->shared_bytes)
		(void)json_object_set_new(
			tree, "shared",
			json_integer((json_int_t)s->shared_bytes));
	cli_daemon_ready(d, tree, "memory node %s of rack %s: %s, socket %s\n",
			 d->options.name, d->rack, SIZE_TEXT(s->pool_bytes),
			 d->socket);
}

/* The pool is filled as it is used, so one that is too large would be found out
 * by clients, when the kernel ends the node. CLI_GO, or the exit code. */
static int check_size(uint64_t pool_bytes)
{
	uint64_t ram_bytes, swap_bytes;
	struct sysinfo info;

	if (sysinfo(&info))
		return CLI_GO;
	ram_bytes = (uint64_t)info.totalram * info.mem_unit;
	swap_bytes = (uint64_t)info.totalswap * info.mem_unit;
	if (pool_bytes <= ram_bytes)
		return CLI_GO;
	cli_error("%sa pool of %s is larger than this machine's memory of %s "
		  "with %s of swap; choose a smaller --size, or 'size' in "
		  "[memory NAME] of rack.ini",
		  pool_bytes > ram_bytes + swap_bytes ? "" : "warning: ",
		  SIZE_TEXT(pool_bytes), SIZE_TEXT(ram_bytes),
		  SIZE_TEXT(swap_bytes));
	return pool_bytes > ram_bytes + swap_bytes ? CLI_FAILED : CLI_GO;
}

/* A node that is not there, or smaller than the pool, is found out here and not
 * by the first client. CLI_GO, or the exit code. */
static int check_numa(const struct mem_serve *s)
{
	struct probe_facts f;

	if (!s->has_numa)
		return CLI_GO;
	if (probe_node_check(s->numa)) {
		cli_error("%s; 'aquifer tier probe' measures those there are",
			  error_last());
		return CLI_FAILED;
	}
	probe_node_read("/sys", s->numa, &f);
	if (s->pool_bytes <= f.free_bytes)
		return CLI_GO;
	cli_error("%sa pool of %s is larger than what NUMA node %u has: %s, of "
		  "which %s are free; choose a smaller --size",
		  s->pool_bytes > f.size_bytes ? "" : "warning: ",
		  SIZE_TEXT(s->pool_bytes), s->numa, SIZE_TEXT(f.size_bytes),
		  SIZE_TEXT(f.free_bytes));
	return s->pool_bytes > f.size_bytes ? CLI_FAILED : CLI_GO;
}

int cmd_memory(const struct cli_command *self, int argc, char **argv)
{
	struct memory_args a = {.base.daemon.options.name = "m0",
				.serve.ready_bytes = READY_BYTES};
	int code = cli_daemon_parse(self, argc, argv, &a.base);

	if (code == CLI_GO && !a.serve.pool_bytes) {
		cli_error("memory needs --size, for example --size 8G");
		return CLI_USAGE;
	}
	if (code == CLI_GO)
		code = check_size(a.serve.pool_bytes + a.serve.shared_bytes);
	if (code == CLI_GO)
		code = check_numa(&a.serve);
	return code != CLI_GO ? code
			      : cli_daemon_run(&a.base, &mem_daemon, &a.serve,
					       say_ready);
}
