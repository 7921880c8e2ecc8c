/* SPDX-License-Identifier: Apache-2.0 */
/* The shipped switch in the middle of a simulated network. */
#ifndef AQ_RIG_TOR_NET_H
#define AQ_RIG_TOR_NET_H

#include <netinet/in.h>

#include "sim/net.h"
#include "switch/tor.h"

enum {
	RIG_TOR_PROGRAMS = 16,
};

struct rig_tor;

struct rig_tor_config {
	const char *programs[RIG_TOR_PROGRAMS]; /* "NAME:OPTIONS" */
	unsigned program_count;
	/* What a packet costs the one core that is the switch; 0: nothing, as
	 * in hardware. Packets wait for their turn. */
	uint64_t packet_ps;
};

/* Takes the place of the network's own switch. Ports that are attached by now
 * keep their addresses. */
int rig_tor_create(struct sim_net *net, const struct rig_tor_config *cfg,
		   struct rig_tor **out) MUST_CHECK;
/* Call it before the network is destroyed. */
void rig_tor_destroy(struct rig_tor *t);
/* Killed and started again: it has forgotten everything. */
int rig_tor_restart(struct rig_tor *t) MUST_CHECK;
/* Restarts it at this frame, counted from 1 on: before it is taken, after the
 * first packet that it causes has left, or after it. Then `fn` is called. */
void rig_tor_restart_at(struct rig_tor *t, uint64_t frame, unsigned when,
			void (*fn)(void *ctx), void *ctx);
/* Which life it is in, from 1 on. */
unsigned rig_tor_runs(const struct rig_tor *t);
/* Frames that came so far. */
uint64_t rig_tor_frames(const struct rig_tor *t);
struct tor *rig_tor_get(struct rig_tor *t);
/* A control call to its programs; 0 or -errno. */
PRINTF(2, 3)
int rig_tor_tell(struct rig_tor *t, const char *fmt, ...) MUST_CHECK;
/* The words of its answer to a control call; "": none, or an error. */
void rig_tor_ask(struct rig_tor *t, const char *line, char *out,
		 size_t out_bytes);
/* A number of its report by that name, since it was started last; 0: it has
 * none, or there is no switch (NULL). */
uint64_t rig_tor_count(struct rig_tor *t, const char *name);
/* An address as those calls have it. */
void rig_ip_text(const uint8_t ip[16], char out[INET6_ADDRSTRLEN]);

#endif
