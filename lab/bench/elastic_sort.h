/* SPDX-License-Identifier: Apache-2.0 */
/* What sorts inside the tasks of `bench elastic`'s sort: records of 64 bytes by
 * their first 8, and runs that are merged. */
#ifndef AQ_BENCH_ELASTIC_SORT_H
#define AQ_BENCH_ELASTIC_SORT_H

#include <string.h>

#include "base/base.h"

enum {
	SORT_RECORD = 64,
	SORT_TASKS = 8,		   /* of either kind */
	SORT_CHUNK = 1 << 20,	   /* bytes that are exchanged together */
	SORT_RUNS = SORT_TASKS,	   /* that are merged */
	SORT_CHUNKS_MAX = 1 << 12, /* of a merge */
};

/* The head of a chunk, as long as a record. */
struct sort_head {
	uint32_t task;	/* that has made it */
	uint32_t bytes; /* with the head */
	uint8_t zero[SORT_RECORD - 8];
};

static inline uint64_t sort_key(const uint8_t *record)
{
	uint64_t key;

	memcpy(&key, record, sizeof(key));
	return key;
}

/* The order of `count` records by their keys; `order` and `spare` have room for
 * as many. */
struct sort_item {
	uint64_t key;
	uint64_t at;
};
void sort_items(struct sort_item *order, struct sort_item *spare, size_t count);

/* Merges the chunks that lie one after the other in `in`: those of one task are
 * sorted. *sum and *count are of the keys in `out`. -EBADMSG. */
int sort_merge(const uint8_t *in, size_t bytes, uint8_t *out, size_t room,
	       uint64_t *sum, uint64_t *count) MUST_CHECK;

#endif
