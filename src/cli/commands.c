/* SPDX-License-Identifier: Apache-2.0 */
/* The command table, lookup in it, and the guess at what a typo meant. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

const struct cli_command cli_commands[] = {
	{"help", cmd_help, "list the commands, or explain one",
	 "[COMMAND] [--json]\n"},
	{"version", cmd_version, "print version and commit", "[--json]\n"},
	{"info", cmd_info, "show the NIC, limits and settings in effect",
	 "[--nic soft|hw|auto] [--json]\n"
	 "  --nic   which NIC to describe (default: the configured one)\n"
	 "The field verbs_libdir names the folder of the private "
	 "libibverbs.so.1.\n"},
	{"doctor", cmd_doctor, "check this machine and say how to fix it",
	 "[--json] [ADDRESS...]\n"
	 "With addresses: also the way to the NICs there. Exit code 1 when\n"
	 "something essential is missing, or an address cannot be reached.\n"},
	{"exec", cmd_exec, "run a verbs program on the soft NIC",
	 "[--nic soft|hw|auto] [--facade auto|off] [--json] --\n"
	 "       PROGRAM [ARGUMENT...]\n"
	 "  --nic     soft: the NIC in user space; hw: the machine's own;\n"
	 "            auto: hw if there is an RDMA device, else soft\n"
	 "  --facade  auto: where allowed, show the soft NIC in the program's\n"
	 "            own /sys/class and /dev; off: only the library\n"
	 "  --json    print what would be run and with which environment,\n"
	 "            and do not run it\n"
	 "The exit code is the program's own, 126 if it cannot be started,\n"
	 "127 if there is no such program.\n"},
	{"run", cmd_run, "run an unmodified program on far memory",
	 "--local SIZE [--min-size SIZE] [--prefetch N] [--copies N]\n"
	 "       [--mode MODE] [--overflow keep|fail|SIZE]\n"
	 "       [--patience SECONDS] [--strict] [--pager-threads N]\n"
	 "       [--no-direct] [--no-move] [--stats] [--rack RACK]\n"
	 "       [--user NAME] [--json]\n"
	 "       -- PROGRAM [ARGUMENT...]\n"
	 "  --local     how much of the program's heap and anonymous mappings\n"
	 "              may be in this machine's memory: 256M, at least 1M\n"
	 "  --min-size  smaller mappings stay local (default 64K)\n"
	 "  --prefetch  pages to fetch ahead of a stream (default 64; 0: off)\n"
	 "  --copies    of every page, on different nodes (default 1)\n"
	 "  --mode      how the nodes find room for a page (default static)\n"
	 "  --overflow  what the rack has no room for: keep it in local\n"
	 "              memory (the default), SIGBUS for who needs it (fail),\n"
	 "              or keep so much more than --local\n"
	 "  --patience  how long a node may be silent before its pages are\n"
	 "              lost: 1 to 60 (default 30)\n"
	 "  --strict    a process whose memory cannot be bounded is an error\n"
	 "  --pager-threads  1, or 2: the second takes pages out (default:\n"
	 "              2 where it helps)\n"
	 "  --no-direct through the NICs, although the node is on this host\n"
	 "  --no-move   takes pages out as on kernels before Linux 6.8\n"
	 "  --stats     a line per second and a report at the end, on stderr\n"
	 "  --rack      the rack to use (default: as configured)\n"
	 "  --user      whom the program runs as (default: the caller, also\n"
	 "              the caller of sudo; root: stays root)\n"
	 "  --json      the report at the end as a JSON object, on stderr\n"
	 "The exit code is the program's own, 126 if it cannot be started,\n"
	 "127 if there is no such program.\n"},
	{"swap", cmd_swap, "use far memory as this machine's swap",
	 "on --size SIZE [--copies N] [--mode MODE] [--device DEVICE]\n"
	 "       [--priority N] [--timeout SECONDS] [--rack RACK] [--json]\n"
	 "       aquifer swap on --server ADDRESS:PORT [--device DEVICE]\n"
	 "       [--priority N] [--timeout SECONDS] [--json]\n"
	 "       aquifer swap off|status [--device DEVICE] [--json]\n"
	 "  --size      of the swap device: 16G\n"
	 "  --copies    of every page, on different nodes (default 1)\n"
	 "  --mode      how the nodes find room for a page (default chain)\n"
	 "  --device    an NBD device (default /dev/nbd0)\n"
	 "  --priority  of the device among others (default 100)\n"
	 "  --timeout   until the kernel gives the server up (default 60)\n"
	 "  --rack      the rack to use (default: as configured)\n"
	 "  --server    an nbdkit on another machine, instead of one here\n"
	 "  --json      on, off: print the commands and do not run them\n"
	 "Needs root, nbdkit, nbd-client and a kernel with NBD.\n"},
	{"memory", cmd_memory, "serve memory to the rack, until a signal",
	 "--size SIZE [--name NAME] [--rack RACK] [--listen ADDRESS:PORT\n"
	 "       [--tls-cert FILE --tls-key FILE]]\n"
	 "       [--audit FILE|- [--audit-json]] [--user NAME]\n"
	 "       [--no-confine] [--json]\n"
	 "  --size    limit of the pool: 512M, 8G\n"
	 "  --name    the node's name (default m0)\n"
	 "  --rack    the rack it belongs to (default: as configured)\n"
	 "  --listen  serve HTTP here too, beside the unix socket\n"
	 "  --tls-cert, --tls-key  with TLS: PEM files\n"
	 "  --audit   a line for each change and each refusal; -: stderr\n"
	 "  --audit-json  these lines as JSON objects\n"
	 "  --user    as root: become this user first\n"
	 "  --no-confine  keep privileges, files and system calls (debugging)\n"
	 "  --json    say what was started as one JSON object\n"},
	{"switch", cmd_switch, "run a programmable switch, until a signal",
	 "[--name NAME] [--port raw:INTERFACE|udp:ADDRESS]...\n"
	 "       [--fault OPTIONS]"
	 " [--program NAME[:OPTIONS]]... [--rack RACK]\n"
	 "       [--for SECONDS] [--trace FILE] [--user NAME] [--no-confine]\n"
	 "       [--json]\n"
	 "       aquifer switch --resources [--program ...]\n"
	 "       aquifer switch [--name NAME] --stats | --tell 'PROGRAM ...'\n"
	 "  --name       the switch's name (default s0); NICs of this machine\n"
	 "               plug in with nic.port = switch:NAME\n"
	 "  --port       an interface that is a port, or a UDP socket where\n"
	 "               hosts plug in with VXLAN; may be repeated\n"
	 "  --program    a program on the path, in the order given\n"
	 "  --fault      short for --program fault:OPTIONS, e.g. loss=1%\n"
	 "  --for        end after so many seconds\n"
	 "  --trace      write what comes in and goes out to a file\n"
	 "  --user       as root: become this user first\n"
	 "  --no-confine  keep privileges, files and system calls (debugging)\n"
	 "  --resources  print what the programs need in a real pipeline\n"
	 "  --stats      print a running switch's counters\n"
	 "  --tell       a control call, e.g. 'fault reload loss=0'\n"
	 "  --json       say what was started, and at the end the counters,\n"
	 "               as JSON objects\n"},
	{"engine", cmd_engine,
	 "move data for applications' asynchronous requests",
	 "[--name NAME] [--rack RACK] [--batch N] [--flush-us N]\n"
	 "       [--probe-max-us N] [--memory SIZE] [--listen ADDRESS:PORT\n"
	 "       [--tls-cert FILE --tls-key FILE]]\n"
	 "       [--audit FILE|- [--audit-json]] [--user NAME]\n"
	 "       [--no-confine] [--json]\n"
	 "  --name      the engine's name (default e0)\n"
	 "  --rack      the rack it belongs to (default: as configured)\n"
	 "  --batch     completions that may be told together (default 32;\n"
	 "              1: each at once)\n"
	 "  --flush-us  the longest that a completion waits for others\n"
	 "              (default 10)\n"
	 "  --probe-max-us  between looks at an idle application (default "
	 "10000)\n"
	 "  --memory    limit for copies of applications' rings\n"
	 "  --listen    serve HTTP here too, beside the unix socket\n"
	 "  --tls-cert, --tls-key  with TLS: PEM files\n"
	 "  --audit     a line for each change and each refusal; -: stderr\n"
	 "  --audit-json  these lines as JSON objects\n"
	 "  --user      as root: become this user first\n"
	 "  --no-confine  keep privileges, files and system calls (debugging)\n"
	 "  --json      say what was started as one JSON object\n"},
	{"up", cmd_up, "start the rack's switches, nodes and engines here",
	 "[RACK.INI] [--json]\n"
	 "Without a file, or without [memory NAME] sections in it: one node, "
	 "m0, of 1 GiB;\n"
	 "without [engine NAME]: one engine, e0. [switch NAME]: switches.\n"
	 "Logs are in the runtime directory, which 'aquifer info' shows.\n"},
	{"down", cmd_down, "end what 'up' started",
	 "[RACK.INI] [--json]\n"
	 "SIGTERM first, SIGKILL after 10 seconds.\n"},
	{"status", cmd_status, "show nodes, engines, pools and regions",
	 "[RACK.INI] [--json]\n"
	 "Exit code 1 when a node is down or there is none.\n"},
	{"top", cmd_top, "watch nodes and clients live",
	 "[--once] [--interval SECONDS] [--json]\n"
	 "  --once      one look, after one interval\n"
	 "  --interval  between two looks (default 1)\n"},
	{"region", cmd_region, "make, list, resize and delete regions",
	 "create NAME SIZE [--nodes N|all] [--stripe SIZE] [--node NAME]\n"
	 "                             [--switch-atomics]\n"
	 "       aquifer region list|stat NAME|grants [NAME]|resize NAME "
	 "SIZE|\n"
	 "                      delete NAME\n"
	 "       with [--timeout MILLISECONDS] [--json]\n"
	 "  --nodes   spread over that many memory nodes (default 1)\n"
	 "  --stripe  bytes that stay together on a node (default 64K)\n"
	 "  --node    on this node, not on the one with the most free "
	 "memory\n"
	 "  --switch-atomics  the rack's switch replaces atomics on it\n"},
	{"index", cmd_index, "indexes in far memory, ordered or of versions",
	 "create NAME [--kind tree|versions] [--value BYTES]\n"
	 "       [--clients N] [--failure MS] [--node NAME] [--json]\n"
	 "       tree: [--memory SIZE] [--key BYTES] [--node-bytes BYTES]\n"
	 "             [--locks N] [--host-locks] [--switch-locks]\n"
	 "       versions: --room KEYS\n"
	 "       aquifer index stat|drop|check NAME [--json]\n"
	 "       aquifer index get NAME KEY\n"
	 "       aquifer index put NAME KEY VALUE\n"
	 "       aquifer index del NAME KEY\n"
	 "       aquifer index scan NAME [--from KEY] [--to KEY] [--count N]\n"
	 "                          [--keys] [--json]\n"
	 "       aquifer index fill NAME [--count N] [--size BYTES]\n"
	 "                          [--threads N] [--json]\n"
	 "  --kind        tree: keys in order (default); versions: numbers,\n"
	 "                in no order, whose writes append\n"
	 "  --memory      of a tree (default 64M)\n"
	 "  --key         bytes that keys may have, up to 64 (default 32)\n"
	 "  --value       bytes that values may have (default 32, or 128)\n"
	 "  --node-bytes  of a node of the tree (default 1024)\n"
	 "  --host-locks  locks in host memory where the NIC has none left\n"
	 "  --switch-locks  locks that the rack's switch decides on\n"
	 "  --room        keys that an index of versions has room for\n"
	 "  --failure     a client that is silent for so long is dead\n"
	 "                (default 1000)\n"
	 "check exits with 1 when an invariant does not hold.\n"},
	{"kv", cmd_kv, "tables of keys and values in far memory",
	 "create NAME CAPACITY [--entry BYTES] [--row N] [--extents SIZE]\n"
	 "       [--rows-per-lock N] [--clients N] [--failure MS]\n"
	 "       [--hash dependent|block|independent] [--node NAME]\n"
	 "       [--host-locks] [--word-locks] [--json]\n"
	 "       aquifer kv stat|drop NAME [--json]\n"
	 "       aquifer kv check NAME [--repair] [--json]\n"
	 "       aquifer kv get NAME KEY\n"
	 "       aquifer kv put NAME KEY VALUE|- [--ttl MS]\n"
	 "       aquifer kv del NAME KEY\n"
	 "       aquifer kv scan NAME [--keys] [--json]\n"
	 "       aquifer kv fill NAME [--count N] [--size BYTES] [--json]\n"
	 "  --entry       bytes of an entry; key and value that fit into it\n"
	 "                less 8 are read in one round trip (default 64)\n"
	 "  --extents     memory for larger values (default 64M)\n"
	 "  --failure     a client that is silent for so long is dead\n"
	 "                (default 1000)\n"
	 "  --host-locks  locks in host memory where the NIC has none left\n"
	 "  --word-locks  as on NICs without masked atomics\n"
	 "  --repair      first clean up after clients that are gone\n"
	 "check exits with 1 when an invariant does not hold.\n"},
	{"redis", cmd_redis, "serve a key-value table to Redis clients",
	 "[--table NAME] [--port PORT] [--bind ADDRESS] [--socket PATH]\n"
	 "       [--password-file FILE] [--capacity N] [--values SIZE]\n"
	 "       [--max-clients N] [--timeout SECONDS] [--query-limit SIZE]\n"
	 "       [--output-limit SIZE] [--clients-memory SIZE]\n"
	 "       [--protected-mode yes|no] [--user NAME] [--no-confine]\n"
	 "       [--json]\n"
	 "  --table          the table (default redis); made if there is none\n"
	 "  --port, --bind   where to listen (default 6379 on 127.0.0.1)\n"
	 "  --socket         listen on a unix socket, too\n"
	 "  --password-file  its first line is what clients must know\n"
	 "  --capacity       entries of a new table (default 1M)\n"
	 "  --values         bytes for its larger values (default 256M)\n"
	 "  --query-limit, --output-limit, --clients-memory\n"
	 "                   memory for one client's commands (128M), for its\n"
	 "                   answers (256M), and of all clients (1G)\n"
	 "  --protected-mode yes (the default): without a password only on\n"
	 "                   loopback addresses\n"
	 "  --user           as root: become this user first\n"
	 "  --no-confine     keep privileges, files and system calls "
	 "(debugging)\n"},
	{"bench", cmd_bench, "measure, beside peers in the same run",
	 "NAME [OPTION...]\n"},
	{"sim", cmd_sim, "run the simulator", "NAME [OPTION...]\n"},
	{NULL, NULL, NULL, NULL},
};

const struct cli_command *cli_command_find(const struct cli_command *table,
					   const char *name)
{
	for (; table->name; table++)
		if (strcmp(table->name, name) == 0)
			return table;
	return NULL;
}

enum {
	NAME_MAX_CHARS = 32
};

/* Edits (insert, delete, replace) between two short names. */
static unsigned edit_distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_CHARS + 1];
	size_t blen = strlen(b);

	if (blen > NAME_MAX_CHARS)
		return NAME_MAX_CHARS;
	for (unsigned j = 0; j <= blen; j++)
		row[j] = j;
	for (unsigned i = 1; *a; a++, i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= blen; j++) {
			unsigned replace = diagonal + (*a != b[j - 1]);

			diagonal = row[j];
			row[j] = u32_min(u32_min(row[j], row[j - 1]) + 1,
					 replace);
		}
	}
	return row[blen];
}

const struct cli_command *cli_command_nearest(const struct cli_command *table,
					      const char *name)
{
	const struct cli_command *best = NULL;
	unsigned best_edits = 0;

	for (; table->name; table++) {
		size_t len = strlen(table->name);
		unsigned edits = edit_distance(name, table->name);

		/* An unfinished word counts as near. */
		if (*name && strncmp(table->name, name, strlen(name)) == 0)
			edits = 0;
		/* More than half the letters wrong is not a typo. */
		if (edits > 3 || edits * 2 > len)
			continue;
		if (!best || edits < best_edits) {
			best = table;
			best_edits = edits;
		}
	}
	return best;
}

void cli_command_help(const struct cli_command *cmd, const char *parent)
{
	printf("%s %s: %s\n\nusage: %s %s %s", parent, cmd->name, cmd->summary,
	       parent, cmd->name, cmd->usage);
}

int cli_dispatch(const struct cli_command *table, const char *parent, int argc,
		 char **argv)
{
	const struct cli_command *cmd = cli_command_find(table, argv[0]);

	if (cmd)
		return cmd->run(cmd, argc, argv);
	cmd = cli_command_nearest(table, argv[0]);
	if (cmd)
		cli_error("unknown command '%s'; did you mean '%s %s'?",
			  argv[0], parent, cmd->name);
	else
		cli_error("unknown command '%s'; '%s --help' lists them",
			  argv[0], parent);
	return CLI_USAGE;
}
