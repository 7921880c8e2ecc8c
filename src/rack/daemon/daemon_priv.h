/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef AQ_DAEMON_PRIV_H
#define AQ_DAEMON_PRIV_H

#include "daemon.h"

/* drop.c: becomes another user if told to, and gives up what this daemon does
 * not need. Before the first thread. */
int drop_rights(struct daemon *d) MUST_CHECK;

/* notify.c: a datagram socket to the service manager, if there is one; else -1.
 * It is opened before confinement, which may forbid it. */
int notify_open(void);
/* "READY=1" or "STOPPING=1", as in sd_notify(3). */
void notify_send(int fd, const char *state);

#endif
