/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histories as JSON lines, in the shape that Jepsen's tools use:
 *
 *   {"process":3,"type":"invoke","f":"cas","key":"k1","value":[4,5],"time":9}
 *   {"process":3,"type":"ok","f":"cas","key":"k1","value":[4,5],"time":12}
 *
 * `type`: invoke, ok, fail (certainly not done), info (not known; the
 * process may not be used again). `f`: read or get, write or put, cas, delete
 * or del, insert, update, faa (gives the value before), add or incr (gives the
 * value after). `key` may be left out: one key. A process has one operation
 * open at a time. Other members are ignored. docs: aquifer-sim-check(1).
 */
#ifndef AQ_SIM_LIN_FILE_H
#define AQ_SIM_LIN_FILE_H

#include "lin.h"

enum {
	LIN_LINE_MAX = 1 << 20,	   /* bytes of one line */
	LIN_PROCESS_MAX = 1 << 22, /* largest process number, and 1 */
};

struct lin_reader;

/* The history is the caller's and must be empty. */
int lin_reader_create(struct lin_history *h,
		      struct lin_reader **out) MUST_CHECK;
void lin_reader_destroy(struct lin_reader *r);
/* One line, without or with its newline; empty lines are skipped. -EBADMSG:
 * error_last() says what is wrong and names the line. */
int lin_reader_line(struct lin_reader *r, const char *line,
		    size_t len_bytes) MUST_CHECK;

/* A whole stream. `name` is for messages. */
int lin_history_read(struct lin_history *h, FILE *in,
		     const char *name) MUST_CHECK;
/* Writes what lin_history_read reads. Each operation that runs beside others
 * gets a process number of its own; the recorded one is "thread". */
int lin_history_write(const struct lin_history *h, FILE *out) MUST_CHECK;

/* `aquifer sim check`. */
int sim_check_cmd(int argc, char **argv);

#endif
