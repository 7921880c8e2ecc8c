/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of the simulator by tables: what is parsed is what --help
 * shows. */
#ifndef AQ_SIM_OPTIONS_H
#define AQ_SIM_OPTIONS_H

#include <stdio.h>

#include "net_fabric.h"

enum sim_option_kind {
	SIM_FLAG,   /* bool */
	SIM_NUMBER, /* uint64_t of 1 .. max */
	SIM_TEXT,   /* const char * */
	SIM_CHOICE, /* unsigned: the place in `names` */
	SIM_FABRIC, /* const struct sim_fabric_choice * */
	SIM_TAKE,   /* `take` parses it: 0, or -EINVAL */
};

struct sim_option {
	/* "--scale"; "": a word that is no option, which is a SIM_TEXT. */
	const char *name;
	const char *value; /* what --help calls its value; NULL: it has none */
	const char *help;
	enum sim_option_kind kind;
	size_t at;    /* in what the rows are about */
	uint64_t max; /* 0: 10,000 */
	const char *const *names;
	int (*take)(void *to, const char *value);
};

/* Rows that end with a NULL name, or none, and what they are offsets in. */
struct sim_options {
	const struct sim_option *rows;
	void *to;
};

/* Reads a whole line; who: "sim kv". -EINVAL: the reason was printed on stderr.
 * `all` ends with one whose `to` is NULL; `fabrics` may be NULL. */
int sim_options_parse(const char *who, const struct sim_options *all,
		      const struct sim_fabric_choice *fabrics, int argc,
		      char **argv) MUST_CHECK;
/* The row of that name, or NULL. */
const struct sim_option *sim_option_find(const struct sim_option *rows,
					 const char *name);
/* A line or more for each. */
void sim_options_help(FILE *f, const struct sim_option *rows);
/* A text in lines of at most 79 characters. */
void sim_text_print(FILE *f, const char *text);

#endif
