/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of one-sided requests on one link: posted together, executed in
 * order, and the last one is waited for. One batch is one round trip. Only for
 * this room.
 */
#ifndef AQ_INDEX_TRIP_H
#define AQ_INDEX_TRIP_H

#include <infiniband/verbs.h>

#include "base/base.h"
#include "client/link.h"

enum {
	TRIP_WR_MAX = 32, /* requests of one batch */
};

/* Memory at the other end. */
struct trip_space {
	uint64_t addr;
	uint32_t rkey;
};

struct trip {
	struct client_link *link;
	const struct client_clock *clock; /* also without a link */
	struct ibv_mr *mr;		  /* where all local addresses are */
	/* NULL: never. True stops this end for good: it posts what comes
	 * before this request and nothing any more. */
	bool (*crash)(void *ctx, int point);
	void *ctx;
	bool is_broken;
	bool is_crashed;
	uint64_t trips;
	unsigned count;
	struct ibv_send_wr wr[TRIP_WR_MAX];
	struct ibv_sge sge[TRIP_WR_MAX];
};

static inline uint64_t trip_now_ns(const struct trip *f)
{
	return client_clock_now_ns(f->clock);
}

void trip_begin(struct trip *f);
/* Behind an atomic it sees what that has done. */
void trip_read(struct trip *f, int point, const struct trip_space *s,
	       uint64_t offset, void *local, uint32_t len_bytes);
void trip_write(struct trip *f, int point, const struct trip_space *s,
		uint64_t offset, const void *local, uint32_t len_bytes);
void trip_cas(struct trip *f, int point, const struct trip_space *s,
	      uint64_t offset, uint64_t compare, uint64_t swap,
	      uint64_t *answer);
/* Posts the batch and waits for all of it. -ESTALE: the connection is broken;
 * -ESHUTDOWN: a test stopped the client. */
int trip_run(struct trip *f) MUST_CHECK;
void trip_pause(struct trip *f, uint64_t ns);

#endif
