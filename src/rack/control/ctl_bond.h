/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What heartbeats keep alive: connections of a memory node, sessions of an
 * engine. The id of one is a random number, which is the right to use it, and
 * its place in the server's table.
 */
#ifndef AQ_CTL_BOND_H
#define AQ_CTL_BOND_H

#include "ctl_http.h"

enum {
	CTL_BOND_TEXT = 16 + 4 + 1,
};

void ctl_bond_format(uint64_t nonce, uint32_t slot, char out[CTL_BOND_TEXT]);
/* The two halves of an id; `what` is "a session" in the words of -EINVAL. */
int ctl_bond_parse(const char *what, const char *id, uint64_t *nonce,
		   uint32_t *slot) MUST_CHECK;

/* Notes that the client of this one lives; -ESTALE: it is gone, or somebody
 * else's. */
typedef int (*ctl_bond_fn)(void *ctx, struct ctl_call *call, const char *id);

/* Answers a request whose member `list` has up to `max` ids: {"lost": ids}. */
void ctl_bonds_heartbeat(void *ctx, struct ctl_call *call, const char *list,
			 unsigned max, ctl_bond_fn live);

#endif
