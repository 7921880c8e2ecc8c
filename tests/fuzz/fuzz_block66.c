/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decode of 66-bit blocks, nine bytes each: any block is refused or gives
 * characters, or a memory block, that encode to a block of the same meaning.
 */
#include <string.h>

#include "edm/block66.h"
#include "fuzz.h"

static void check_standard(const struct wire_block *b)
{
	struct wire_xgmii x, again;
	struct wire_block c;
	enum wire_block_error e = wire_block_decode(b, &x);

	ASSERT(e == WIRE_BLOCK_OK || e == WIRE_BLOCK_E_SYNC ||
	       e == WIRE_BLOCK_E_TYPE || e == WIRE_BLOCK_E_CODE);
	if (e != WIRE_BLOCK_OK)
		return;
	ASSERT(wire_block_encode(&x, &c) == WIRE_BLOCK_OK);
	ASSERT(c.sync == b->sync);
	/* Only pad bits may differ. */
	ASSERT((c.payload & ~b->payload) == 0);
	ASSERT(wire_block_decode(&c, &again) == WIRE_BLOCK_OK);
	ASSERT(!memcmp(&x, &again, sizeof(x)));
}

static void check_memory(enum wire_mem_map map, const struct wire_block *b)
{
	enum wire_block_kind kind;
	struct wire_mem_head head;
	uint8_t payload[8];
	struct wire_block c;

	if (wire_mem_decode(map, b, &kind, &head, payload) != WIRE_BLOCK_OK)
		return;
	ASSERT(kind == wire_block_kind(map, b));
	ASSERT(wire_mem_encode(map, kind, &head, payload, &c) == WIRE_BLOCK_OK);
	ASSERT(c.sync == b->sync && c.payload == b->payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	for (; len_bytes >= 9; data += 9, len_bytes -= 9) {
		struct wire_block b = {0, data[0] & 3};

		memcpy(&b.payload, data + 1, sizeof(b.payload));
		check_standard(&b);
		for (int map = 0; map < WIRE_MAP_COUNT; map++)
			check_memory((enum wire_mem_map)map, &b);
	}
	return 0;
}
