/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an error code means here and what to do about it. Functions return 0 or
 * -errno; the words beside it, which name the file, key or peer in question,
 * are kept per thread until the next failure of that thread.
 */
#ifndef AQ_ERROR_H
#define AQ_ERROR_H

#include "base.h"

enum {
	ERROR_TEXT_MAX = 512,
};

/* What the code says in Aquifer, for example "-EHOSTDOWN: a node of the rack
 * was lost". Accepts err and -err; static text, never NULL. */
const char *error_text(int err);
/* What to do about it; "" where there is no general advice. */
const char *error_advice(int err);
/* "EHOSTDOWN"; NULL for a code that has no name. */
const char *error_name(int err);

/* Keeps the text as this thread's last error and returns err, so that a
 * failing function can end with `return error_set(-EINVAL, ...)`. */
int error_set(int err, const char *fmt, ...) PRINTF(2, 3);
/* Puts words before the last error's text: "reading rack.ini: " + text. */
int error_prefix(int err, const char *fmt, ...) PRINTF(2, 3);

/* This thread's last error: its text ("" before the first) and its code. The
 * text stays valid until the thread's next error_set. */
const char *error_last(void);
int error_last_code(void);
void error_clear(void);

#endif
