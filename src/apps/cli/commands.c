/* SPDX-License-Identifier: Apache-2.0 */
/* The command table, and the options of commands that have few. */
#include "cli.h"

#define JSON	  OPT_FLAG(struct cli_args, json, "json", "print JSON")
#define NIC(help) OPT_WORD(struct cli_args, nic, "nic", "soft|hw|auto", help)

static const struct opt json_options[] = {JSON, OPT_END};

static const struct opt info_options[] = {
	NIC("which NIC to describe (default: the configured one)"),
	JSON,
	OPT_END,
};

static const struct opt exec_options[] = {
	NIC("soft: the NIC in user space; hw: the machine's own; auto: hw if "
	    "there is an RDMA device, else soft"),
	OPT_CHOICE(struct cli_args, facade_off, "facade", "auto|off",
		   "auto: where allowed, show the soft NIC in the program's "
		   "own /sys/class and /dev; off: only the library"),
	OPT_FLAG(struct cli_args, json, "json",
		 "print what would be run and with which environment, and do "
		 "not run it"),
	OPT_END,
};

#define PROGRAM_NOTES                                                        \
	"The exit code is the program's own, 126 if it cannot be started,\n" \
	"127 if there is no such program.\n"
#define CHECK_NOTES "check exits with 1 when an invariant does not hold.\n"

const struct cli_command cli_commands[] = {
	{"help", cmd_help, "list the commands, or explain one",
	 "[COMMAND] [--json]", json_options, NULL},
	{"version", cmd_version, "print version and commit", "[--json]",
	 json_options, NULL},
	{"info", cmd_info, "show the NIC, limits and settings in effect",
	 "[OPTION...]", info_options,
	 "The field verbs_libdir names the folder of the private "
	 "libibverbs.so.1.\n"},
	{"doctor", cmd_doctor, "check this machine and say how to fix it",
	 "[--json] [HOST...]", json_options,
	 "With addresses or names: also the way to the NICs there. Exit code 1 "
	 "when\n"
	 "something essential is missing, or a host cannot be reached.\n"},
	{"exec", cmd_exec, "run a verbs program on the soft NIC",
	 "[OPTION...] -- PROGRAM [ARGUMENT...]", exec_options, PROGRAM_NOTES},
	{"run", cmd_run, "run an unmodified program on far memory",
	 "--local SIZE [OPTION...] -- PROGRAM [ARGUMENT...]", cmd_run_options,
	 PROGRAM_NOTES},
	{"swap", cmd_swap, "use far memory as this machine's swap",
	 "on --size SIZE | on --server ADDRESS:PORT | off | status "
	 "[OPTION...]",
	 cmd_swap_options,
	 "Needs root, nbdkit, nbd-client and a kernel with NBD.\n"},
	{"memory", cmd_memory, "serve memory to the rack, until a signal",
	 "--size SIZE [OPTION...]", cmd_memory_options, NULL},
	{"control", cmd_control, "run the rack's controller, until a signal",
	 "[dump FILE | load FILE] [OPTION...]", cmd_control_options, NULL},
	{"switch", cmd_switch, "run a programmable switch, until a signal",
	 "[OPTION...]", cmd_switch_options, NULL},
	{"engine", cmd_engine,
	 "move data for applications' asynchronous requests", "[OPTION...]",
	 cmd_engine_options, NULL},
	{"up", cmd_up, "start the rack's switches, nodes and engines here",
	 "[RACK.INI | --rack NAME|FILE] [--json]", json_options,
	 "Without a file, or without [memory NAME] sections in it: one node, "
	 "m0, of 1 GiB;\n"
	 "without [engine NAME]: one engine, e0. [switch NAME]: switches.\n"
	 "Logs are in the runtime directory, which 'aquifer info' shows.\n"},
	{"down", cmd_down, "end what 'up' started",
	 "[RACK.INI | --rack NAME|FILE] [--json]", json_options,
	 "SIGTERM first, SIGKILL after 10 seconds.\n"},
	{"status", cmd_status, "show nodes, engines, pools, regions and tables",
	 "[RACK.INI | --rack NAME|FILE] [--json]", json_options,
	 "Exit code 1 when a node is down or there is none.\n"},
	{"top", cmd_top, "watch nodes and clients live", "[OPTION...]",
	 cmd_top_options, NULL},
	{"dashboard", cmd_dashboard, "watch the rack in a browser",
	 "[OPTION...]", cmd_dashboard_options,
	 "Needs a controller: rack.control names it.\n"},
	{"region", cmd_region, "make, list, resize and delete regions",
	 "create|stat|grants|resize|delete NAME [SIZE] | list [OPTION...]",
	 cmd_region_options, NULL},
	{"shared", cmd_shared, "memory that machines share coherently",
	 "create|stat|allow|repair|delete SEGMENT [...] | list | check | "
	 "machines | serve [OPTION...]",
	 cmd_shared_options, NULL},
	{"node", cmd_node, "list, drain and forget what joined the controller",
	 "drain|undrain|forget NODE | ls [--json]", json_options,
	 "Needs a controller: rack.control names it.\n"},
	{"ns", cmd_ns, "names of jobs, files and queues, and their leases",
	 "VERB [PATH [PATH]] [OPTION...] | hold PATH -- COMMAND [ARGUMENT...]",
	 cmd_ns_options, "Needs a controller: rack.control names it.\n"},
	{"tenant", cmd_tenant, "make, list, limit and remove tenants",
	 "create|quota|rm TENANT [SIZE] | ls [OPTION...]", cmd_tenant_options,
	 "All nodes of the rack are asked, or its controller if there is "
	 "one; exit code\n"
	 "1 when one failed.\n"},
	{"token", cmd_token, "show, replace and take away tokens",
	 "show | new [TENANT] | narrow [REGION] | revoke [TENANT] "
	 "[OPTION...]",
	 cmd_token_options,
	 "All nodes of the rack are asked; exit code 1 when one failed.\n"},
	{"cert", cmd_cert, "certificates for the machines of a rack",
	 "init | issue NAME | show [NAME] [OPTION...]", cmd_cert_options,
	 "show exits with 1 when a certificate is not valid now.\n"},
	{"index", cmd_index, "indexes in far memory, ordered or of versions",
	 "VERB NAME [KEY [VALUE]] [OPTION...]", cmd_index_options, CHECK_NOTES},
	{"file", cmd_file,
	 "files in far memory that grow and end by themselves",
	 "VERB PATH [FILE|-] [OPTION...]", cmd_file_options,
	 "Names and leases: aquifer ns --help."},
	{"queue", cmd_queue,
	 "queues in far memory that grow and end by themselves",
	 "VERB PATH [ITEM|-] [OPTION...]", cmd_queue_options,
	 "Names and leases: aquifer ns --help."},
	{"ekv", cmd_ekv, "key-value stores that grow and end by themselves",
	 "VERB PATH [KEY [VALUE|-]] [OPTION...]", cmd_ekv_options,
	 "Names and leases: aquifer ns --help."},
	{"mount", cmd_mount, "names of elastic memory as a file system",
	 "PATH FOLDER [OPTION...]", cmd_mount_options,
	 "umount FOLDER ends it."},
	{"kv", cmd_kv, "tables of keys and values in far memory",
	 "VERB NAME [CAPACITY | KEY [VALUE|-]] [OPTION...]", cmd_kv_options,
	 CHECK_NOTES},
	{"walk", cmd_walk, "follow pointers where the memory is",
	 "VERB [FILE [REGION [START]]] [OPTION...]", cmd_walk_options,
	 "build and check exit with 1 when it cannot be a walk.\n"},
	{"tier", cmd_tier, "measure memory of several speeds, and its cost",
	 "probe | cost [OPTION...]", cmd_tier_options, NULL},
	{"redis", cmd_redis, "serve a key-value table to Redis clients",
	 "[OPTION...]", cmd_redis_options, NULL},
	{"bench", cmd_lab, "measure, beside peers in the same run",
	 "NAME [OPTION...]", NULL, NULL},
	{"sim", cmd_lab, "run the simulator", "NAME [OPTION...]", NULL, NULL},
	{NULL, NULL, NULL, NULL, NULL, NULL},
};
