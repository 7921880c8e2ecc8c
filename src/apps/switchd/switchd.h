/* SPDX-License-Identifier: Apache-2.0 */
/* The process around a switch: os/ gives the links, switch/ decides; one thread
 * moves frames, sleeps when there are none, and answers control calls. */
#ifndef AQ_SWITCHD_H
#define AQ_SWITCHD_H

#include <stdio.h>

#include "base/base.h"
#include "daemon/daemon.h"

enum {
	SWITCHD_PORT_MAX = 64, /* interfaces named by options */
	SWITCHD_ADDRESS_MAX = 2,
	SWITCHD_REPLY_MAX = 1 << 20,
	SWITCHD_REQUEST_MAX = 4096,
};

/* What d->self of a struct daemon points to. */
struct switchd_options {
	const char *ports[SWITCHD_PORT_MAX]; /* "raw:IFACE", "udp:ADDRESS" */
	unsigned port_count;
	const char *programs[SWITCHD_PORT_MAX]; /* "NAME:OPTIONS", in order */
	unsigned program_count;
	const char *addresses[SWITCHD_ADDRESS_MAX]; /* of the switch itself */
	unsigned address_count;
	const char *trace; /* a file for what passes, or NULL */
	uint32_t yields;   /* idle turns before it sleeps; 0: as configured */
	uint64_t run_ns;   /* 0: until a signal */
	bool report;	   /* at the end, as one JSON object on stdout */
};

/* A switch until a signal, or for run_ns; see daemon/daemon.h. */
extern const struct daemon_kind switchd_daemon;
/* Where a running one takes control calls, from `ready` on. */
const char *switchd_socket(const struct daemon *d);

/* What the programs would need in a real pipeline, as one JSON object. */
int switchd_resources(const struct switchd_options *o, FILE *out) MUST_CHECK;

/*
 * Sends a line to a running switch and copies its answer, a JSON object, to
 * `out` (if not NULL): "hello" (which run of the switch it is, which programs
 * it has), "stats", "resources", or "tell PROGRAM ...". -ECONNREFUSED or
 * -ENOENT: no such switch; -EREMOTEIO: the answer is an error, its words in
 * error_last().
 */
int switchd_ask(const char *rack, const char *name, const char *line,
		FILE *out) MUST_CHECK;

#endif
