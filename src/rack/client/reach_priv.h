/* SPDX-License-Identifier: Apache-2.0 */
/* What the two ends of a way share; see reach.h. */
#ifndef AQ_CLIENT_REACH_PRIV_H
#define AQ_CLIENT_REACH_PRIV_H

#include "hail_ask.h"
#include "reach.h"

enum {
	REACH_PAYLOAD_MIN = 256,
	REACH_PAYLOAD_MAX = 4096,
};

void reach_found(struct client_reach_result *out, enum client_reach_state state,
		 const char *fmt, ...) PRINTF(3, 4);
/* The same for what alone explains silence. */
void reach_cause(struct client_reach_result *out, enum client_reach_state state,
		 const char *fmt, ...) PRINTF(3, 4);
void reach_fix(struct client_reach_result *out, const char *fmt, ...)
	PRINTF(2, 3);

/* The NIC's address; the first, where there are several. */
bool reach_own_address(const struct config *config, uint16_t port,
		       union client_hail_addr *out) MUST_CHECK;
/* The largest payload of a packet where so many bytes fit on the wire. */
unsigned reach_payload(unsigned mtu);

#endif
