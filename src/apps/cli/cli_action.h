/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands whose actions work on things of a rack that have names: index, kv
 * and region. Such a command has a table of actions, and a struct for its
 * arguments that begins with a struct cli_action_args.
 */
#ifndef AQ_CLI_ACTION_H
#define AQ_CLI_ACTION_H

#include "cli.h"

struct aq_rack;

enum {
	CLI_ACTION_WORDS = 3,
};

struct cli_action_args {
	bool json;
	const char *word[CLI_ACTION_WORDS]; /* NULL: not given */
	uint64_t size;			    /* the word that is one */
	uint32_t deadline_ms;		    /* of a request; 0: the rack's */
	struct aq_rack *rack;
};

enum cli_action_needs {
	CLI_NEEDS_NOTHING,
	CLI_NEEDS_RACK,
	CLI_NEEDS_OPEN, /* the rack, and what cli_actions.open opens */
};

#define CLI_OPT_TIMEOUT(type)                                           \
	OPT_U32(type, common.deadline_ms, "timeout", "MILLISECONDS", 1, \
		3600000, "for each request (default 5000)")

struct cli_action {
	const char *name;
	int least, most;  /* words that have to follow */
	const char *size; /* what the last word is the size of, or NULL */
	enum cli_action_needs needs;
	/* 0, -errno with the words of aq_last_error(), or the exit code when it
	 * has printed itself what is wrong. */
	int (*run)(void *args);
	/* What it does, and after a colon the words that follow: "print a
	 * value: NAME KEY". */
	const char *summary;
};

struct cli_actions {
	const struct cli_action *action; /* ends with a row without a name */
	/* May be NULL, both of them. */
	int (*open)(void *args);
	void (*close)(void *args); /* also when nothing is open */
};

/* Runs the action that argv[1] names; `args` has the values of options that are
 * not given. */
int cli_actions_run(const struct cli_command *self,
		    const struct cli_actions *actions, int argc, char **argv,
		    void *args);

/* ---- cli_words.c ---- */

/* False when the action's first word is the name of a thing in the rack, and
 * this one cannot be; it says so. */
bool cli_action_name_is_valid(const struct cli_command *self,
			      const struct cli_action *a, const char *name);
/* Says what is missing or too much in words that are not as many as the action
 * takes. */
void cli_action_explain(const struct cli_command *self,
			const struct cli_action *a,
			const struct cli_words *words);

/* What an action on one key returns: says it when there is none. */
int cli_action_key_result(int err);

#endif
