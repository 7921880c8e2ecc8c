/* SPDX-License-Identifier: Apache-2.0 */
/* The lead of a rack: the memory node which is asked for segments of coherent
 * shared memory, whichever nodes have them (docs/mind.md). */
#ifndef AQ_CLIENT_SHARED_H
#define AQ_CLIENT_SHARED_H

#include "client.h"

struct client_lead {
	uint32_t node; /* its index in the rack */
	uint64_t size_bytes;
};

/* Addresses of shared memory, as the status of the node that leads it tells; 0:
 * this one does not. */
uint64_t client_shared_size(const json_t *status);
/* -EOPNOTSUPP: no node that answers has shared memory. */
int client_shared_find(struct aq_rack *rack,
		       struct client_lead *out) MUST_CHECK;
/* One request; see client_call. */
int client_shared_call(struct aq_rack *rack, const struct client_lead *lead,
		       const char *method, const char *path, json_t *body,
		       json_t **reply) MUST_CHECK;
/* The rack's name, which names its runtime directory. */
const char *client_shared_rack(const struct aq_rack *rack);

#endif
