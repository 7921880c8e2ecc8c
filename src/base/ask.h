/* SPDX-License-Identifier: Apache-2.0 */
/* One line to a process that listens on a unix socket, and its answer. */
#ifndef AQ_ASK_H
#define AQ_ASK_H

#include "base.h"

/*
 * Sends the line and reads into `reply`, with a NUL, until the other side
 * closes. -ENOENT or -ECONNREFUSED: no process listens there. -EAGAIN: no
 * answer in time. -EMSGSIZE: the answer is longer. Blocks for up to timeout_ms
 * at each step.
 */
int ask_line(const char *path, const char *line, uint32_t timeout_ms,
	     char *reply, size_t reply_bytes) MUST_CHECK;

/* -EREMOTEIO if the answer, a JSON object of ours, has a member "error", whose
 * words are then in error_last(); else 0. */
int ask_error(const char *reply) MUST_CHECK;

#endif
