/* SPDX-License-Identifier: Apache-2.0 */
/* What the models of other stores share: requests of one client, posted
 * together and waited for. */
#ifndef AQ_SCENARIO_KV_FIG_RIVAL_H
#define AQ_SCENARIO_KV_FIG_RIVAL_H

#include "kv_fig_priv.h"

enum {
	RIVAL_REQUESTS_MAX = 4,
	RIVAL_BUF_BYTES = 8192,
};

/* One client's memory and connections, one per node. */
struct rival {
	struct client_link *link[KV_FIG_MACHINES];
	struct ibv_mr *mr;
	uint8_t *buf; /* RIVAL_BUF_BYTES */
	unsigned count;
	struct ibv_send_wr wr[RIVAL_REQUESTS_MAX];
	struct ibv_sge sge[RIVAL_REQUESTS_MAX];
	void *own; /* the store's, freed with it */
};

/* Opens connections to the nodes that have these regions. */
int rival_open(struct kvf_client *c, struct scenario_region *const *region,
	       uint32_t regions, struct rival **out) MUST_CHECK;
void rival_close(struct rival *v);

void rival_read(struct rival *v, const struct scenario_region *r, uint64_t at,
		uint32_t buf_at, uint32_t len_bytes);
void rival_write(struct rival *v, const struct scenario_region *r, uint64_t at,
		 uint32_t buf_at, uint32_t len_bytes);
void rival_cas(struct rival *v, const struct scenario_region *r, uint64_t at,
	       uint32_t buf_at, uint64_t compare, uint64_t swap);
/* Posts what was added, and does not wait. */
int rival_send(struct rival *v, uint32_t node) MUST_CHECK;
/* One round trip to a node: posts what was added, and waits. */
int rival_go(struct kvf_client *c, struct rival *v, uint32_t node) MUST_CHECK;

static inline uint64_t *rival_word(struct rival *v, uint32_t buf_at)
{
	return (uint64_t *)(void *)(v->buf + buf_at);
}

#endif
