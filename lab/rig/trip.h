/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Round trips of one client: requests that are posted together and waited for,
 * with a buffer of their own. For rivals and tools that are no clients of
 * far/kit.
 */
#ifndef AQ_RIG_TRIP_H
#define AQ_RIG_TRIP_H

#include "stage.h"

enum {
	RIG_TRIP_MAX = 4, /* requests of one */
};

struct rig_trip {
	struct client_link *link;
	struct rig_region *region;
	struct ibv_mr *mr;
	uint8_t *buf; /* what is written and read, by the caller's places */
	unsigned count;
	struct ibv_send_wr wr[RIG_TRIP_MAX];
	struct ibv_sge sge[RIG_TRIP_MAX];
};

/* Over a link to the region, which stays the caller's. All zeroes is none. */
int rig_trip_open(struct rig_trip *t, struct client_link *link,
		  struct rig_region *region, size_t buf_bytes) MUST_CHECK;
void rig_trip_close(struct rig_trip *t);

/* A READ or WRITE of what is `at` so many bytes in the region. */
void rig_trip_add(struct rig_trip *t, enum ibv_wr_opcode opcode, uint64_t at,
		  uint32_t buf_at, uint32_t len_bytes);
/* Of eight bytes; the old ones come to buf_at. */
void rig_trip_add_cas(struct rig_trip *t, uint64_t at, uint32_t buf_at,
		      uint64_t compare, uint64_t swap);
/* Posts what was added, and waits. -EIO: it failed. */
int rig_trip_go(struct rig_trip *t) MUST_CHECK;

#endif
