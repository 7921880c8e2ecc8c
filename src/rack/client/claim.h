/* SPDX-License-Identifier: Apache-2.0 */
/* The right to make a region of some name in a rack. */
#ifndef AQ_CLIENT_CLAIM_H
#define AQ_CLIENT_CLAIM_H

#include <stdint.h>

#include "base/base.h"

struct client_thread;

struct client_claim {
	uint64_t nodes; /* a bit for each that keeps it */
	char holder[17];
};

/* Waits while somebody else has it. -EHOSTDOWN: no node answers. */
int client_claim_take(struct client_thread *t, const char *name,
		      uint64_t deadline_ns, struct client_claim *c) MUST_CHECK;
/* Keeps the words of the last error. */
void client_claim_drop(struct client_thread *t, const char *name,
		       uint64_t deadline_ns, const struct client_claim *c);

#endif
