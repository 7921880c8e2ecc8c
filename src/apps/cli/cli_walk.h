/* SPDX-License-Identifier: Apache-2.0 */
/* The actions of `aquifer walk` that need a rack: run, plan, list, drop. */
#ifndef AQ_CLI_WALK_H
#define AQ_CLI_WALK_H

#include <aquifer/walk.h>

#include "cli_action.h"

struct cli_walk_args {
	struct cli_action_args common;
	const char *pad; /* hexadecimal digits, or @FILE */
	bool is_here;
	bool is_there;
	const char *cross; /* NULL, "switch" or "bounce" */
	uint32_t iterations;
};

/* Of these actions, for the table of the command's options. */
#define CLI_WALK_OPTIONS                                                       \
	OPT_TEXT(struct cli_walk_args, pad, "pad", "HEX|@FILE",                \
		 "run: the first bytes of the scratch pad; the rest is zero"), \
		OPT_FLAG(struct cli_walk_args, is_here, "here",                \
			 "run, plan: in this process, which reads each node"), \
		OPT_FLAG(struct cli_walk_args, is_there, "there",              \
			 "run, plan: on the memory node"),                     \
		OPT_TEXT(struct cli_walk_args, cross, "cross",                 \
			 "switch|bounce",                                      \
			 "run, plan: how it changes from node to node"),       \
		OPT_U32(struct cli_walk_args, iterations, "iterations", "N",   \
			1, UINT32_MAX,                                         \
			"run: nodes to visit at most (default 65536)")

/* Run functions of struct cli_action. */
int cli_walk_run(void *args);
int cli_walk_plan(void *args);
int cli_walk_list(void *args);
int cli_walk_drop(void *args);

#endif
