/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every claim of the publications that this project follows, and what became
 * of it here: `aquifer sim claims` runs the commands that show them and writes
 * the page docs/claims.md.
 *
 * How to add a claim: a row in the table of its document (claims_NAME.c), with
 * the command whose JSON has its value, one of claim_commands. A value is never
 * written by hand: it is the claim of a figure, which has its bounds there, a
 * ratio of a benchmark, whose bounds for the publication stand in the row, or a
 * point of a figure. test_claims finds rows that no command can answer.
 *
 * How to add a document: a table, and a row in claim_docs (claims_docs.c).
 */
#ifndef AQ_CLAIMS_H
#define AQ_CLAIMS_H

#include <stddef.h>

#include "base/base.h"

enum claim_kind {
	CLAIM_NOT_TRIED,
	CLAIM_MEASURED,	 /* real processes, on this machine's clock */
	CLAIM_SIMULATED, /* this tree's code, on hardware's costs */
	CLAIM_MODEL,	 /* one of the two sides is a model of somebody's */
	CLAIM_INPUT, /* the model was made from it: no claim can be shown by it
		      */
};

struct claim {
	enum claim_kind kind;
	const char *where;   /* section, figure or table */
	const char *text;    /* in our words, with the published number */
	const char *command; /* what follows `aquifer`; NULL: not tried */
	/* Of a figure: the claim's words and, where several have the same,
	 * its note. Of a benchmark: the ratio. With `column` that of the
	 * figure's point which has these words in its cells. */
	const char *what, *note, *column;
	double least, most; /* of a benchmark's ratio; 0: none */
	const char *remark; /* why it is not tried; NULL: nothing to say */
};

#define CLAIM_OF_FIGURE(kind_, where_, text_, command_, what_, note_)    \
	{                                                                \
		.kind = kind_, .where = where_, .text = text_,           \
		.command = "sim " command_, .what = what_, .note = note_ \
	}
#define CLAIM_OF_BENCH(where_, text_, command_, what_, least_, most_)         \
	{                                                                     \
		.kind = CLAIM_MEASURED, .where = where_, .text = text_,       \
		.command = "bench " command_, .what = what_, .least = least_, \
		.most = most_                                                 \
	}
#define CLAIM_OF_INPUT(where_, text_, command_, column_, what_, note_)    \
	{                                                                 \
		.kind = CLAIM_INPUT, .where = where_, .text = text_,      \
		.command = "sim " command_, .what = what_, .note = note_, \
		.column = column_                                         \
	}
#define CLAIM_UNTRIED(where_, text_, why_)                               \
	{                                                                \
		.kind = CLAIM_NOT_TRIED, .where = where_, .text = text_, \
		.remark = why_                                           \
	}

struct claim_doc {
	const char *name;  /* of --only */
	const char *title; /* with where it was published */
	const struct claim *claims;
	size_t count;
};

/* In the order of the page; ends with NULL. */
extern const struct claim_doc *const claim_docs[];

#define CLAIM_DOC_EACH(d)                                                      \
	for (const struct claim_doc *const *d##_at = claim_docs, *d = *d##_at; \
	     d; d = *++d##_at)

/* The commands that the claims name, the shortest first, and about how long
 * each takes on two processors. Ends with words NULL. */
struct claim_command {
	const char *words;
	unsigned seconds;
};

extern const struct claim_command claim_commands[];

/* `aquifer sim claims`: an exit code. argv[0] is "claims". */
int sim_claims_cmd(int argc, char **argv);

#endif
