/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the switch process; one thread owns all of it. */
#ifndef AQ_SWITCHD_PRIV_H
#define AQ_SWITCHD_PRIV_H

#include <sys/un.h>

#include "board.h"
#include "counter.h"
#include "switchd.h"
#include "tor.h"

enum {
	CTL_CLIENTS = 8, /* control calls at a time */
};

struct switchd {
	const struct switchd_options *opt;
	struct os_board *board;
	struct tor *tor;
	struct counter_file *counters;
	bool stop;
	char run[17]; /* hex; of this process, so that others know it anew */
	int signal_fd;
	/* Control calls: a listener and those that have not said a line yet. */
	int ctl_fd;
	int clients[CTL_CLIENTS]; /* -1: free */
	char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

/* control.c */
int control_path(const char *rack, const char *name,
		 struct sockaddr_un *sa) MUST_CHECK;
int control_open(struct switchd *s) MUST_CHECK;
void control_close(struct switchd *s);
/* A descriptor of it is readable; false: not one of these. */
bool control_event(struct switchd *s, int fd);

#endif
