/* SPDX-License-Identifier: Apache-2.0 */
/* What a memory node does for a switch with the program swordbox. */
#ifndef AQ_RIG_TOR_SWORD_H
#define AQ_RIG_TOR_SWORD_H

#include "stage.h"
#include "tor_net.h"

/* A switch that replaces the atomics on one region, in the middle of a stage.
 * Embedded; all zeroes is none, and then the calls do nothing. */
struct rig_sword {
	struct rig_tor *tor;
	struct rig_host *server;
	struct rig_region *region;
	struct ibv_qp *shared;
	/* Bytes of the region that atomics are replaced on, 0: all; and from
	 * where on it is data that only moves, 0: from nowhere. */
	uint64_t words_bytes, plain_at;
	uint32_t turn;	    /* of shared connections */
	uint64_t packet_ps; /* of the switch, see tor_net.h */
	char program[256];
};

/* options: of the program. When all hosts are there. */
int rig_sword_create(struct rig_sword *s, struct sim_net *net,
		     struct rig_host *server, struct rig_region *region,
		     const char *options) MUST_CHECK;
/* Call it before the stage is destroyed. */
void rig_sword_destroy(struct rig_sword *s);
/* Restarts the switch; nothing passes until it is told of the server. */
int rig_sword_restart(struct rig_sword *s) MUST_CHECK;
/* Tells it of the server and of the region, with a shared connection that is
 * new. The caller has ended all connections that it was told of before. */
int rig_sword_declare(struct rig_sword *s) MUST_CHECK;
/* The same with numbers of the caller's for the switch's end. */
int rig_sword_declare_as(struct rig_sword *s, uint32_t own_qpn,
			 uint32_t psn) MUST_CHECK;
/* "conn", with " psn=..." as more, or "end" of a connection. */
int rig_sword_say(struct rig_sword *s, const char *what,
		  struct rig_host *client, uint32_t client_qpn,
		  uint32_t server_qpn, const char *more) MUST_CHECK;
/* Of a connection that has not been used yet; more: " moved=1", or "". */
int rig_sword_conn(struct rig_sword *s, struct rig_host *client,
		   struct client_link *link, const char *more) MUST_CHECK;
void rig_sword_end(struct rig_sword *s, struct rig_host *client,
		   struct client_link *link);

#endif
