/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `aquifer sim claims`: what a command said, and the pages. */
#ifndef AQ_CLAIMS_PRIV_H
#define AQ_CLAIMS_PRIV_H

#include <jansson.h>
#include <signal.h>
#include <stdio.h>

#include "claims.h"

enum {
	CLAIMS_COMMANDS_MAX = 128,
	CLAIMS_QUICK_S = 15,	 /* the longest of --quick */
	CLAIMS_LONG_S = 30 * 60, /* what takes longer needs --full */
};

/* One of the commands that the claims name, and what it said. */
struct claims_command {
	const struct claim_command *is;
	/* The JSON that it printed, with "commit"; NULL: it has not run, or
	 * failed. */
	json_t *result;
	int exit_code; /* of its last run; 0 if there was none */
	double seconds;
};

/* All commands; `only` says which of them are to be run. */
struct claims_run {
	const char *only;  /* a document; NULL: all */
	const char *state; /* folder */
	sigset_t mask;	   /* of the commands */
	struct claims_command command[CLAIMS_COMMANDS_MAX];
	size_t count;
};

enum claims_verdict {
	CLAIMS_HOLDS,
	CLAIMS_SHORT,
	CLAIMS_INPUT,
	CLAIMS_NOT_TRIED,
	CLAIMS_NOT_RUN, /* yet */
	CLAIMS_FAILED,	/* the command, or it could not say this */
	CLAIMS_VERDICTS,
};

/* What a claim is here. */
struct claims_answer {
	enum claims_verdict verdict;
	bool has_value;
	double value;
	const char *unit; /* of the result, or "" */
	const char *why;  /* of CLAIMS_FAILED, or "" */
};

bool claims_wants(const struct claims_run *r, const struct claim_doc *doc);
/* NULL: there is none of these words, which may be NULL. */
const struct claims_command *claims_command_find(const struct claims_run *r,
						 const char *words);

/* ---- claims_answer.c ---------------------------------------------------- */

/* From the JSON of its command alone; texts live as long as the command. */
struct claims_answer claims_answer(const struct claim *c,
				   const struct claims_command *command);
/* Whether all claims that name it have a value. */
bool claims_is_complete(const struct claims_command *command);
const char *claims_verdict_name(enum claims_verdict verdict);
const char *claims_kind_name(enum claim_kind kind);

/* ---- claims_state.c ----------------------------------------------------- */

/* Makes the folder, and reads what former runs left in it. Signals that stop
 * the run wait from here to the close; close also after an error. */
int claims_state_open(struct claims_run *r) MUST_CHECK;
void claims_state_close(struct claims_run *r);
/* Runs a command in a process of its own. -EINTR: it was stopped by a signal
 * to this process, and counts as not run. A command that fails is no error
 * here. */
int claims_state_run(struct claims_run *r,
		     struct claims_command *command) MUST_CHECK;

/* ---- claims_page.c ------------------------------------------------------ */

/* Writes the page, whole or not at all. */
int claims_page_write(const struct claims_run *r, const char *path) MUST_CHECK;
void claims_list(const struct claims_run *r, FILE *out);
int claims_json(const struct claims_run *r, FILE *out) MUST_CHECK;

#endif
