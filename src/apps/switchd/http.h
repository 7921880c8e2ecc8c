/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control calls and counters of a switch over HTTP, for who is on another
 * machine: the administrator, and nodes. A request becomes a line to the
 * switch's own socket, so the thread that moves frames knows of one kind of
 * calls only, and a switch that hangs says so.
 */
#ifndef AQ_SWITCHD_HTTP_H
#define AQ_SWITCHD_HTTP_H

#include "control/ctl_http.h"
#include "daemon/daemon.h"

struct switch_http;

/* -ENOMEM and what daemon_token returns, with words. */
int switch_http_create(const struct daemon *d,
		       struct switch_http **out) MUST_CHECK;
void switch_http_destroy(struct switch_http *h); /* NULL is fine */
/* Any thread. */
void switch_http_handle(struct switch_http *h,
			const struct ctl_request *request,
			struct ctl_reply *reply);

#endif
