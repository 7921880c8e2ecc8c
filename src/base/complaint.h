/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command tells its user went wrong: "aquifer: what is wrong; what to do
 * about it" on stderr, at once; or with --json all of it at the end, as one
 * object. Commands run in one thread; where others find something wrong, they
 * tell it to that one.
 */
#ifndef AQ_COMPLAINT_H
#define AQ_COMPLAINT_H

#include "base.h"

/* Also decides the form of the log, which goes to stderr, too. */
void complaint_set_json(bool as_json);
bool complaint_is_json(void);

/* err: 0, or -errno: with JSON its name, and its advice where the words have
 * none. */
void complain(int err, const char *fmt, ...) PRINTF(2, 3);

/* Prints what is left to print, with the exit code. */
void complaint_flush(int exit_code);

#endif
