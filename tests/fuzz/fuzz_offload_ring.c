/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an engine finds in an application's rings:
 *
 *   8 bytes	green word at the start
 *   8 bytes	green word later on
 *   16 bytes	head and head_reads
 *   8 bytes	done word
 *   16 bytes	progress of node 0
 *   1 byte	1: the predecessor's last packet number is known; 2: region 1 is
 *		read-only; 4: another engine takes over; 8: the nodes gather
 *   the rest	metadata of requests, 24 bytes each, from place 0 on
 *
 * Whatever it is, the engine touches nothing but the rings and what was
 * granted, and either serves or says that the session is over.
 */
#define BED_PLAIN
#include "../unit/offload_bed.h"
#include "fuzz.h"

enum {
	ENTRIES = 64,
	FIXED = 8 + 8 + 16 + 8 + 16 + 1,
	STEPS = 1500,
};

static void fill(struct bed *b, const uint8_t *data, size_t len_bytes)
{
	struct offload_preamble *p = (void *)b->ring_mem;
	size_t meta = len_bytes - FIXED;

	memcpy(&p->green, data, 8);
	memcpy(&p->red.head, data + 16, 16);
	memcpy(&p->red.done, data + 32, 8);
	memcpy(&p->red.node[OFFLOAD_NODES_MAX - 1], data + 40, 16);
	if (meta > ENTRIES * sizeof(struct offload_meta))
		meta = ENTRIES * sizeof(struct offload_meta);
	memcpy(b->ring.meta, data + FIXED, meta);
	b->has_final[0] = data[56] & 1;
	b->final_epoch[0] = p->red.node[OFFLOAD_NODES_MAX - 1].epoch;
	b->final_psn[0] = p->red.node[OFFLOAD_NODES_MAX - 1].psn + 5;
	b->epoch = 7;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	struct offload_preamble *p;
	struct bed *b;

	if (len_bytes < FIXED)
		return 0;
	b = bed_make(data[0], 2, ENTRIES, 8192);
	bed_region(b, 1, 0, BED_NODE_BYTES);
	bed_region(b, 2, 8, BED_NODE_BYTES);
	b->config.region[1].is_read_only = data[56] & 2;
	b->gather_bytes = data[56] & 8 ? 4032 : 0;
	p = (void *)b->ring_mem;
	fill(b, data, len_bytes);
	bed_start(b);
	for (unsigned i = 0; i < STEPS; i++) {
		bed_step(b);
		if (i == STEPS / 2)
			memcpy(&p->green, data + 8, 8);
		if (i == STEPS / 3 && data[56] & 4)
			bed_start(b); /* it is taken over in the middle */
	}
	ASSERT(b->bad_access == 0);
	bed_free(b);
	return 0;
}
