/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the pager listens: a socket in a directory of the run.
 *
 *	/run/aquifer-run-<pid>-<random>/<name>	as root
 *	<runtime directory>/run/run-<pid>/<name>	else
 *
 * The second can be entered by its owner only. In the first one every user may
 * look a name up, because a program that started as root may become any user;
 * but no other user may list it, and the name is a secret of 128 bits, which
 * /proc/net/unix does not show either. The secret keeps strangers from making
 * the pager work; what protects the program are the pager's checks of processes
 * that connect (peer.h, and the token).
 */
#ifndef AQ_RUN_PLACE_H
#define AQ_RUN_PLACE_H

#include "base/base.h"

struct run_place {
	char dir[80];
	char name[40];
	int dir_fd;
};

/* Makes the directory; -errno, with words in error_last(). */
int run_place_make(struct run_place *p) MUST_CHECK;
/* Removes socket and directory; more than once does no harm. */
void run_place_remove(const struct run_place *p);
/* A socket that listens there, not blocking; -errno. */
int run_place_listen(const struct run_place *p) MUST_CHECK;

#endif
