/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dump files (base/dump.h) for commands: written so that nobody ever finds half
 * of one under its name, and read as what a stranger may have written.
 */
#ifndef AQ_CLI_DUMP_H
#define AQ_CLI_DUMP_H

#include "base/base.h"
#include "base/dump.h"

/* What a terminal shows meanwhile, on stderr. */
struct cli_progress {
	const char *verb;  /* NULL: nothing is shown */
	uint64_t expected; /* pairs, about; 0: not known */
	uint64_t start_ms;
	uint64_t shown_ms;
};

void cli_progress_start(struct cli_progress *p, const char *verb,
			uint64_t expected);
void cli_progress_show(struct cli_progress *p, uint64_t pairs, uint64_t bytes);
/* Ends the line; the seconds that it took, never 0. */
double cli_progress_end(struct cli_progress *p);

/* ---- writing ------------------------------------------------------------ */

struct cli_dump_out {
	const char *name; /* for messages */
	char *path;	  /* where it goes in the end; NULL: written in place */
	char *temporary;  /* the name it has until then; NULL: none */
	int fd;
	uint64_t written;
	struct dump_builder builder;
	uint8_t *block;
	size_t block_bytes;
	struct cli_progress progress;
};

/* The word FILE: NULL and "-" are standard output. 0, -errno with words, or an
 * exit code after a message. Call _close in any case. */
int cli_dump_out_open(struct cli_dump_out *o, const char *word,
		      const struct dump_head *head,
		      uint64_t expected) MUST_CHECK;
int cli_dump_out_add(struct cli_dump_out *o,
		     const struct dump_pair *pair) MUST_CHECK;
/* Writes the end, and gives the file its name once it is on the disk. */
int cli_dump_out_end(struct cli_dump_out *o) MUST_CHECK;
/* A file that has not come to its end is gone with this. */
void cli_dump_out_close(struct cli_dump_out *o);
/* The summary; nothing where standard output has the dump. */
int cli_dump_out_report(struct cli_dump_out *o, const char *what,
			const char *table, bool as_json) MUST_CHECK;

/* ---- reading ------------------------------------------------------------ */

struct cli_dump_in {
	const char *name;
	int fd;
	struct dump_parser parser; /* head and pairs */
	uint8_t *bytes;
	size_t room_bytes;
	uint64_t file_pairs; /* 0: not known */
	struct cli_progress progress;
};

/* Reads up to the head. All of a file that can be read twice is checked first,
 * so that nothing is loaded from a damaged one. As above. */
int cli_dump_in_open(struct cli_dump_in *in, const char *word) MUST_CHECK;
/* The next block of pairs: dump_next_pair(&in->parser) has them until the next
 * call. *is_end: there was none left, and the end is right. */
int cli_dump_in_block(struct cli_dump_in *in, bool *is_end) MUST_CHECK;
void cli_dump_in_close(struct cli_dump_in *in);

/* What a load did. */
struct cli_loaded {
	uint64_t stored;
	uint64_t expired; /* not stored, because their time was over */
	bool created;	  /* the table */
};

int cli_dump_in_report(struct cli_dump_in *in, const struct cli_loaded *l,
		       const char *what, const char *table,
		       bool as_json) MUST_CHECK;
/* Says what has become of the table when a load breaks off; returns `err`. */
int cli_dump_in_broke_off(const struct cli_loaded *l, const char *table,
			  int err);

/* Takes a number of the head where an option has not set one. -EBADMSG: it is
 * larger than `most`. */
int cli_dump_size(const struct cli_dump_in *in, unsigned which, uint64_t most,
		  uint64_t *to) MUST_CHECK;
int cli_dump_size_u32(const struct cli_dump_in *in, unsigned which,
		      uint32_t *to) MUST_CHECK;

#endif
