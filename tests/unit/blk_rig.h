/* SPDX-License-Identifier: Apache-2.0 */
/* A block and its clients, for tests of the operators. */
#ifndef AQ_TEST_BLK_RIG_H
#define AQ_TEST_BLK_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "blk.h"

struct blk_rig {
	struct blk_block block;
	uint8_t *mem;
};

static inline void blk_rig_make(struct blk_rig *rig, enum block_kind kind,
				uint64_t bytes, uint64_t bound, bool is_first)
{
	struct blk_options o = {.kind = kind,
				.size_bytes = bytes,
				.generation = 7,
				.bound = bound,
				.is_first = is_first};

	rig->mem = calloc(1, bytes);
	assert_non_null(rig->mem);
	assert_int_equal(blk_init(&rig->block, &o, rig->mem), 0);
}

static inline void blk_rig_free(struct blk_rig *rig)
{
	blk_release(&rig->block);
	free(rig->mem);
}

static inline const uint8_t *blk_rig_session(unsigned client)
{
	static uint8_t id[BLOCK_SESSION_BYTES];

	memset(id, 0, sizeof(id));
	memcpy(id, &client, sizeof(client));
	return id;
}

static inline struct blk_answer blk_rig_do(struct blk_rig *rig, unsigned client,
					   struct blk_request r)
{
	struct blk_answer a;
	uint8_t *place;

	r.session = blk_rig_session(client);
	if (!r.inside_room)
		r.inside_room = BLOCK_INSIDE_MAX;
	place = blk_begin(&rig->block, &r, &a);
	assert_null(place);
	return a;
}

static inline struct blk_answer blk_rig_put(struct blk_rig *rig,
					    unsigned client, uint64_t sequence,
					    enum block_opcode opcode,
					    const char *text)
{
	return blk_rig_do(rig, client,
			  (struct blk_request){.opcode = opcode,
					       .sequence = sequence,
					       .acked = sequence - 1,
					       .length = (uint32_t)strlen(text),
					       .value = (const uint8_t *)text});
}

#endif
