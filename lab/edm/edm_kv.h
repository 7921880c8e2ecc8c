/* SPDX-License-Identifier: Apache-2.0 */
/* A key-value store whose records are partly in another node's memory, one
 * request at a time, over a simulated fabric. */
#ifndef AQ_EDM_KV_H
#define AQ_EDM_KV_H

#include "edm_config.h"

struct edm_kv_config {
	enum edm_proto proto;
	uint32_t gbps;
	double remote; /* share of the keys */
	double writes;
	uint32_t requests;
	uint64_t seed;
};

struct edm_kv_result {
	double mean_ns, deviation_ns;
	double remote;	/* share of the requests */
	uint32_t wrong; /* records with other bytes than were put */
};

int edm_kv_run(const struct edm_kv_config *c,
	       struct edm_kv_result *out) MUST_CHECK;

#endif
