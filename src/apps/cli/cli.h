/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command table of `aquifer` and what its commands share.
 *
 * How to add a command NAME:
 *  1. write src/apps/cli/cmd_NAME.c with `int cmd_NAME(const struct cli_command
 *     *, int argc, char **argv)`; argv[0] is the command's name. Its options
 *     are a table, cmd_NAME_options (base/opt.h), with --json among them.
 *     Parse with cli_parse, which takes --rack and --help by itself, print
 *     with cli_report_print, complain with cli_error and cli_error_last, and
 *     return an exit code of enum cli_exit; cli_error_exit knows the one of an
 *     error. Never call exit: only main.c does;
 *  2. declare both below and add a row to commands[] in commands.c, which is in
 *     the order that `aquifer help` shows. --help is made from the two tables;
 *  3. add the file to src/apps/cli/meson.build;
 *  4. write man/aquifer-NAME.1.scd and name it in man/meson.build. The test
 *     cli_manpages fails until steps 2 and 4 agree;
 *  5. add it to the tables of the tests cli_usage (wrong arguments) and
 *     cli_json (every command, both ways).
 * `bench` and `sim` are programs of the laboratory (lab/main), with tables of
 * their own: a benchmark is a row of lab/bench, a play one of lab/plays.
 */
#ifndef AQ_CLI_H
#define AQ_CLI_H

#include "base/base.h"
#include "base/opt.h"

/* What the shell sees. exec and run return the program's own status instead. */
enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_CANNOT_RUN = 126, /* exec: found, but cannot be started */
	CLI_NOT_FOUND = 127,  /* exec: no such program */
};

struct cli_command {
	const char *name;
	int (*run)(const struct cli_command *self, int argc, char **argv);
	const char *summary;	   /* one line, no full stop */
	const char *usage;	   /* what follows its name, as one line */
	const struct opt *options; /* of the command or its verbs, or NULL */
	const char *notes;	   /* the end of --help, or NULL */
};

/* Ends with a row whose name is NULL. */
extern const struct cli_command cli_commands[];

int cmd_help(const struct cli_command *self, int argc, char **argv);
int cmd_version(const struct cli_command *self, int argc, char **argv);
int cmd_info(const struct cli_command *self, int argc, char **argv);
int cmd_doctor(const struct cli_command *self, int argc, char **argv);
int cmd_exec(const struct cli_command *self, int argc, char **argv);
int cmd_run(const struct cli_command *self, int argc, char **argv);
int cmd_swap(const struct cli_command *self, int argc, char **argv);
int cmd_memory(const struct cli_command *self, int argc, char **argv);
int cmd_engine(const struct cli_command *self, int argc, char **argv);
int cmd_control(const struct cli_command *self, int argc, char **argv);
int cmd_dashboard(const struct cli_command *self, int argc, char **argv);
int cmd_node(const struct cli_command *self, int argc, char **argv);
int cmd_ns(const struct cli_command *self, int argc, char **argv);
int cmd_up(const struct cli_command *self, int argc, char **argv);
int cmd_down(const struct cli_command *self, int argc, char **argv);
int cmd_status(const struct cli_command *self, int argc, char **argv);
int cmd_top(const struct cli_command *self, int argc, char **argv);
int cmd_switch(const struct cli_command *self, int argc, char **argv);
int cmd_index(const struct cli_command *self, int argc, char **argv);
int cmd_file(const struct cli_command *self, int argc, char **argv);
int cmd_queue(const struct cli_command *self, int argc, char **argv);
int cmd_ekv(const struct cli_command *self, int argc, char **argv);
int cmd_mount(const struct cli_command *self, int argc, char **argv);
int cmd_kv(const struct cli_command *self, int argc, char **argv);
int cmd_redis(const struct cli_command *self, int argc, char **argv);
int cmd_cert(const struct cli_command *self, int argc, char **argv);
int cmd_tenant(const struct cli_command *self, int argc, char **argv);
int cmd_tier(const struct cli_command *self, int argc, char **argv);
int cmd_token(const struct cli_command *self, int argc, char **argv);
int cmd_region(const struct cli_command *self, int argc, char **argv);
int cmd_shared(const struct cli_command *self, int argc, char **argv);
int cmd_walk(const struct cli_command *self, int argc, char **argv);
int cmd_lab(const struct cli_command *self, int argc, char **argv);

extern const struct opt cmd_run_options[];
extern const struct opt cmd_swap_options[];
extern const struct opt cmd_memory_options[];
extern const struct opt cmd_engine_options[];
extern const struct opt cmd_control_options[];
extern const struct opt cmd_dashboard_options[];
extern const struct opt cmd_ns_options[];
extern const struct opt cmd_top_options[];
extern const struct opt cmd_switch_options[];
extern const struct opt cmd_index_options[];
extern const struct opt cmd_file_options[];
extern const struct opt cmd_queue_options[];
extern const struct opt cmd_ekv_options[];
extern const struct opt cmd_mount_options[];
extern const struct opt cmd_kv_options[];
extern const struct opt cmd_redis_options[];
extern const struct opt cmd_region_options[];
extern const struct opt cmd_shared_options[];
extern const struct opt cmd_cert_options[];
extern const struct opt cmd_tenant_options[];
extern const struct opt cmd_tier_options[];
extern const struct opt cmd_token_options[];
extern const struct opt cmd_walk_options[];

/* The row called `name`, or NULL. */
const struct cli_command *cli_command_find(const struct cli_command *table,
					   const char *name);

/* The row whose name is nearest to a mistyped one, NULL if none is near. */
const struct cli_command *cli_command_nearest(const struct cli_command *table,
					      const char *name);

/* Its options, and those that all commands have. */
void cli_command_options(const struct cli_command *cmd,
			 struct opt out[OPT_ROWS_MAX]);

/* Prints --help of one command, as JSON if that is wanted; returns the exit
 * code. `parent` is "aquifer" or a group. */
int cli_command_help(const struct cli_command *cmd, const char *parent);

/* Finds argv[0] in the table and runs it; an unknown name is explained. */
int cli_dispatch(const struct cli_command *table, const char *parent, int argc,
		 char **argv);

/* ---- commands that are groups; actions: cli_action.h ---- */

/* A row of a sub-table. The function parses its own options, --help and --json
 * among them; argv[0] is the name. */
struct cli_entry {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
};

/* The row that argv[1] names; `table` ends with one whose name is NULL. NULL:
 * there is none, or help was wanted; *code is the exit code. */
const struct cli_entry *cli_group_find(const struct cli_command *self,
				       const struct cli_entry *table, int argc,
				       char **argv, int *code);
/* A group command: runs that row. */
int cli_group_run(const struct cli_command *self, const struct cli_entry *table,
		  int argc, char **argv);

/* ---- options ------------------------------------------------------------ */

/* Arguments of the commands that have no struct of their own. */
struct cli_args {
	bool json;
	const char *nic;     /* NULL: not given */
	uint32_t facade_off; /* 1: off */
};

/* The words that are not options. */
struct cli_words {
	int count;
	char **word;
};

enum {
	CLI_GO = -1
};

/* Reads self->options into `args`, and what all commands have: --rack and
 * --help. CLI_GO, or the exit code to return at once:
 * --help was printed, or the arguments are wrong and stderr says how. `words`
 * is NULL with OPT_WORDS_NONE. */
int cli_parse(const struct cli_command *self, int argc, char **argv,
	      enum opt_words accept, void *args,
	      struct cli_words *words) MUST_CHECK;

/* Bytes from a word: 4096, 64K. -EINVAL with a line on stderr. */
int cli_parse_size(const char *what, const char *word,
		   uint64_t *bytes) MUST_CHECK;

/* ---- the rack: --rack NAME|FILE ----------------------------------------- */

/* A word with a slash in it or .ini at its end is a file, others are names. */
bool cli_rack_is_file(const char *word);
/* From now on this process, and what it starts, uses that rack. CLI_GO, or the
 * exit code when stderr says what is wrong. A name that a file sets beats the
 * environment's. */
int cli_rack_choose(const char *word) MUST_CHECK;
int cli_rack_choose_file(const char *path) MUST_CHECK;
/* Whether the options that were read last had --rack. */
bool cli_rack_is_given(void);

/* ---- errors ------------------------------------------------------------- */

/* One line on stderr, "aquifer: what is wrong; what to do about it". With
 * --json cli_flush prints all of them, see base/complaint.h. */
void cli_error(const char *fmt, ...) PRINTF(1, 2);
/* The same with the words of the last error, or else those of the code. */
void cli_error_last(int err);
/* The exit code of an error of a call whose arguments the user gave: bad names,
 * sizes and the like are wrong arguments, all else is a failure. */
int cli_error_exit(int err) MUST_CHECK;

/* Whether the words before a "--" ask for JSON: until the options are read. */
bool cli_words_ask_json(int argc, char **argv);

/* Whether all that was printed so far could be written; -EIO, with words. Right
 * after printing, because errno says why. */
int cli_output_check(void) MUST_CHECK;
/* What main returns. A full pipe or disk must not look like success. */
int cli_flush(int code) MUST_CHECK;

/* ---- version ------------------------------------------------------------ */

const char *cli_version(void);
const char *cli_commit(void);

#endif
