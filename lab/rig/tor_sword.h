/* SPDX-License-Identifier: Apache-2.0 */
/* What a memory node does for a switch with the program swordbox. */
#ifndef AQ_RIG_TOR_SWORD_H
#define AQ_RIG_TOR_SWORD_H

#include "stage.h"
#include "tor_net.h"

/* The server's end of the shared connection, ready to receive from the switch,
 * which is `own_qpn` at `own_ip`. The caller destroys it. */
int rig_sword_shared(struct rig_host *server, const uint8_t own_ip[16],
		     uint32_t own_qpn, uint32_t psn,
		     struct ibv_qp **out) MUST_CHECK;

/* A switch that replaces the atomics on one region, in the middle of a stage.
 * Embedded; all zeroes is none, and then the calls do nothing. */
struct rig_sword {
	struct rig_tor *tor;
	struct rig_host *server;
	struct rig_region *region;
	struct ibv_qp *shared;
	uint32_t turn; /* of shared connections */
	char program[256];
};

/* options: of the program. When all hosts are there. */
int rig_sword_create(struct rig_sword *s, struct sim_net *net,
		     struct rig_host *server, struct rig_region *region,
		     const char *options) MUST_CHECK;
/* Before the stage goes. */
void rig_sword_destroy(struct rig_sword *s);
/* Killed and started again; until it is told of the server nothing passes. */
int rig_sword_restart(struct rig_sword *s) MUST_CHECK;
/* Tells it of the server and of the region, with a shared connection that is
 * new. The caller has ended all connections that it was told of before. */
int rig_sword_declare(struct rig_sword *s) MUST_CHECK;
/* Of a connection that has not been used yet. */
int rig_sword_conn(struct rig_sword *s, struct rig_host *client,
		   struct client_link *link) MUST_CHECK;
void rig_sword_end(struct rig_sword *s, struct rig_host *client,
		   struct client_link *link);

#endif
