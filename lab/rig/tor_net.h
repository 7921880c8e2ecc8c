/* SPDX-License-Identifier: Apache-2.0 */
/* The shipped switch in the middle of a simulated network. */
#ifndef AQ_SCENARIO_TOR_NET_H
#define AQ_SCENARIO_TOR_NET_H

#include <netinet/in.h>

#include "sim/net.h"
#include "switch/tor.h"

enum {
	SCENARIO_TOR_PROGRAMS = 16,
};

struct scenario_tor;

struct scenario_tor_config {
	const char *programs[SCENARIO_TOR_PROGRAMS]; /* "NAME:OPTIONS" */
	unsigned program_count;
};

/* Takes the place of the network's own switch. Ports that are attached by now
 * keep their addresses. */
int scenario_tor_create(struct sim_net *net,
			const struct scenario_tor_config *cfg,
			struct scenario_tor **out) MUST_CHECK;
/* Call it before the network is destroyed. */
void scenario_tor_destroy(struct scenario_tor *t);
/* Killed and started again: it has forgotten everything. */
int scenario_tor_restart(struct scenario_tor *t) MUST_CHECK;
struct tor *scenario_tor_get(struct scenario_tor *t);
/* A control call to its programs; 0 or -errno. */
PRINTF(2, 3)
int scenario_tor_tell(struct scenario_tor *t, const char *fmt, ...) MUST_CHECK;
/* A number of its report by that name, since it was started last; 0: it has
 * none, or there is no switch (NULL). */
uint64_t scenario_tor_count(struct scenario_tor *t, const char *name);
/* An address as those calls have it. */
void scenario_ip_text(const uint8_t ip[16], char out[INET6_ADDRSTRLEN]);

#endif
