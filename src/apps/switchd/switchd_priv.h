/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the switch process; one thread owns all of it. */
#ifndef AQ_SWITCHD_PRIV_H
#define AQ_SWITCHD_PRIV_H

#include <sys/un.h>

#include "base/counter.h"
#include "http.h"
#include "os/board.h"
#include "switch/tor.h"
#include "switchd.h"

enum {
	CTL_CLIENTS = 8, /* control calls at a time */
};

struct trace;

struct switchd {
	struct daemon *daemon;
	const struct switchd_options *opt;
	struct trace *trace; /* or NULL */
	struct os_board *board;
	struct tor *tor;
	struct counter_file *counters;
	struct switch_http *http; /* NULL: nobody listens */
	char run[17];		  /* hex; random, shows that it was restarted */
	/* Control calls: a listener, and connections without a line yet. */
	int ctl_fd;
	char ctl_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int clients[CTL_CLIENTS]; /* -1: free */
};

/* control.c */
int control_path(const char *rack, const char *name,
		 struct sockaddr_un *sa) MUST_CHECK;
int control_open(struct switchd *s) MUST_CHECK;
void control_close(struct switchd *s);
/* A descriptor of it is readable; false: not one of these. */
bool control_event(struct switchd *s, int fd);

/* trace.c: everything that enters and leaves the switch, as text. All calls
 * with a NULL trace do nothing. */
int trace_open(const char *path, struct trace **out) MUST_CHECK;
int trace_close(struct trace *t); /* 0, or that it could not be written */
/* Call it before a batch ('b'), before timers run ('t'), or after them (0); the
 * time is read when something happens. */
void trace_turn(struct trace *t, const struct tor *tor, char kind);
/* Timers ran, also if nothing came of it: they may have been set again. */
void trace_tick(struct trace *t);
void trace_program(struct trace *t, const char *text);
void trace_address(struct trace *t, const uint8_t ip[16]);
void trace_port(struct trace *t, const struct tor_port *port, bool up);
void trace_claim(struct trace *t, const struct tor_port *port,
		 const uint8_t ip[16], uint32_t slot);
void trace_in(struct trace *t, const struct tor_port *port,
	      const uint8_t *frame, size_t len_bytes);
void trace_out(struct trace *t, const struct tor_port *port,
	       const uint8_t *frame, size_t len_bytes);
void trace_tell(struct trace *t, const char *text);
void trace_result(struct trace *t, int err);

#endif
