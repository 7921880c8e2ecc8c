/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to a switch of this host: one line to its control socket, one answer.
 * Callers hold locks of their own, so a switch that hangs must not hold them
 * up: the first call that it does not answer is the last one until it answers
 * again, which ctl_switch_ask finds out. Any thread may call.
 */
#ifndef AQ_CTL_SWITCH_H
#define AQ_CTL_SWITCH_H

#include <jansson.h>
#include <stdatomic.h>

#include "base/base.h"

enum {
	CTL_SWITCH_PATH_MAX = 108, /* what a unix socket's address holds */
	CTL_SWITCH_RUN_TEXT = 20,
};

/* Takes a line to a switch and brings its answer, as ask_line (base/ask.h) does
 * over a control socket. */
typedef int (*ctl_switch_fn)(void *ctx, const char *line, char *reply,
			     size_t reply_bytes);

struct ctl_switch {
	char path[CTL_SWITCH_PATH_MAX]; /* of its control socket; "": none */
	ctl_switch_fn carry;		/* another way to it; or NULL */
	void *carry_ctx;
	atomic_bool is_away; /* it did not answer */
};

/* Where the switch of that name has its control socket. -ENAMETOOLONG. */
int ctl_switch_path(const char *rundir, const char *name,
		    char out[CTL_SWITCH_PATH_MAX]) MUST_CHECK;
/*
 * The answer is JSON; *out, if wanted, is the caller's to free. Blocks for a
 * second at most. -ENOENT, -ECONNREFUSED: no switch is there. -EAGAIN: it
 * hangs. -EREMOTEIO: it refuses. All with words.
 */
int ctl_switch_ask(struct ctl_switch *w, const char *line,
		   json_t **out) MUST_CHECK;
/* The same without an answer, and at once -EAGAIN if the last call got none. */
PRINTF(2, 3)
int ctl_switch_tell(struct ctl_switch *w, const char *fmt, ...) MUST_CHECK;

/* Which run of the switch has answered; NULL: it does not say. */
const char *ctl_switch_run(const json_t *answer);
/* A program's counters in the answer to "hello", or NULL: it does not run. */
const json_t *ctl_switch_program(const json_t *hello, const char *name);
/* The address of a switch's own ends, towards a peer with that address: no NIC
 * of a rack has it. */
const uint8_t *ctl_switch_ip(const uint8_t peer[16]);

#endif
