/* SPDX-License-Identifier: Apache-2.0 */
/* What a memory node does for a switch with the program swordbox. */
#ifndef AQ_SCENARIO_TOR_SWORD_H
#define AQ_SCENARIO_TOR_SWORD_H

#include "stage.h"

/* The server's end of the shared connection, ready to receive from the switch,
 * which is `own_qpn` at `own_ip`. The caller destroys it. */
int scenario_sword_shared(struct scenario_host *server,
			  const uint8_t own_ip[16], uint32_t own_qpn,
			  uint32_t psn, struct ibv_qp **out) MUST_CHECK;

#endif
