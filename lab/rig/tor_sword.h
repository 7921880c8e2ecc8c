/* SPDX-License-Identifier: Apache-2.0 */
/* What a memory node does for a switch with the program swordbox. */
#ifndef AQ_SCENARIO_TOR_SWORD_H
#define AQ_SCENARIO_TOR_SWORD_H

#include "stage.h"
#include "tor_net.h"

/* The server's end of the shared connection, ready to receive from the switch,
 * which is `own_qpn` at `own_ip`. The caller destroys it. */
int scenario_sword_shared(struct scenario_host *server,
			  const uint8_t own_ip[16], uint32_t own_qpn,
			  uint32_t psn, struct ibv_qp **out) MUST_CHECK;

/* A switch that replaces the atomics on one region, in the middle of a stage.
 * Embedded; all zeroes is none, and then the calls do nothing. */
struct scenario_sword {
	struct scenario_tor *tor;
	struct scenario_host *server;
	struct scenario_region *region;
	struct ibv_qp *shared;
	uint32_t turn; /* of shared connections */
	char program[256];
};

/* options: of the program. When all hosts are there. */
int scenario_sword_create(struct scenario_sword *s, struct sim_net *net,
			  struct scenario_host *server,
			  struct scenario_region *region,
			  const char *options) MUST_CHECK;
/* Before the stage goes. */
void scenario_sword_destroy(struct scenario_sword *s);
/* Killed and started again; until it is told of the server nothing passes. */
int scenario_sword_restart(struct scenario_sword *s) MUST_CHECK;
/* Tells it of the server and of the region, with a shared connection that is
 * new. The caller has ended all connections that it was told of before. */
int scenario_sword_declare(struct scenario_sword *s) MUST_CHECK;
/* Of a connection that has not been used yet; more: " moved=1", or "". */
int scenario_sword_conn(struct scenario_sword *s, struct scenario_host *client,
			struct client_link *link, const char *more) MUST_CHECK;
void scenario_sword_end(struct scenario_sword *s, struct scenario_host *client,
			struct client_link *link);

#endif
