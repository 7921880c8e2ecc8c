/* SPDX-License-Identifier: Apache-2.0 */
/* Memory messages as blocks, with and without a check sum. */
#include "phy.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

/* With data blocks: MS, data of eight bytes each, MT, as few as possible. */
static uint32_t blocks_data(const struct edm_phy_config *c, uint32_t bytes)
{
	uint32_t start = wire_mem_room(c->map, WIRE_BLOCK_MEM_START);
	uint32_t ends = start + wire_mem_room(c->map, WIRE_BLOCK_MEM_END);

	if (bytes <= start)
		return 1;
	return 2 + (bytes > ends ? (bytes - ends + 7) / 8 : 0);
}

uint32_t edm_msg_blocks(const struct edm_phy_config *c, uint32_t bytes)
{
	uint32_t room = wire_mem_room(c->map, WIRE_BLOCK_MEM_DATA);

	bytes += c->crc ? EDM_CRC_BYTES : 0;
	if (c->md == EDM_MD_DATA)
		return blocks_data(c, bytes);
	return 1 + (bytes + room - 1) / room;
}

/* Bytes of payload in the first block. A head of the per-block mode carries
 * none, so that what it needs is known when it leaves. */
static uint32_t first_room(const struct edm_phy_config *c)
{
	return c->md == EDM_MD_DATA
		       ? wire_mem_room(c->map, WIRE_BLOCK_MEM_START)
		       : 0;
}

static void encode_rest(const struct edm_phy_config *c, const uint8_t *bytes,
			uint32_t blocks, struct wire_block *out)
{
	enum wire_block_error e;

	for (uint32_t i = 1; i < blocks; i++) {
		struct wire_xgmii x = {.control = 0};
		bool last = i + 1 == blocks;

		if (!last && c->md == EDM_MD_DATA) {
			memcpy(x.character, bytes, sizeof(x.character));
			bytes += sizeof(x.character);
			e = wire_block_encode(&x, &out[i]);
		} else {
			e = wire_mem_encode(c->map,
					    last ? WIRE_BLOCK_MEM_END
						 : WIRE_BLOCK_MEM_DATA,
					    NULL, bytes, &out[i]);
			bytes += wire_mem_room(c->map, WIRE_BLOCK_MEM_END);
		}
		ASSERT(e == WIRE_BLOCK_OK);
	}
}

int edm_msg_encode(const struct edm_phy_config *c,
		   const struct wire_mem_head *head, const uint8_t *payload,
		   struct wire_block out[EDM_MSG_BLOCKS_MAX])
{
	/* Zero behind the payload fills the last block. */
	uint8_t bytes[EDM_MSG_BYTES_MAX + EDM_CRC_BYTES + 16] = {0};
	static const uint8_t none[8];
	uint32_t n = edm_msg_bytes(head);
	uint32_t blocks, skip = first_room(c);
	uint64_t head_bits;
	uint16_t crc;

	if (n > EDM_MSG_BYTES_MAX)
		return error_set(
			-EMSGSIZE,
			"a message of %u bytes: at most %d go into one", n,
			EDM_MSG_BYTES_MAX);
	if (wire_mem_head_pack(head, &head_bits) != WIRE_BLOCK_OK)
		return error_set(-EINVAL, "this head of a message has no "
					  "encoding");
	if (n)
		memcpy(bytes, payload, n);
	if (c->crc) {
		crc = wire_mem_crc16(head_bits, payload, n);
		bytes[n] = (uint8_t)crc;
		bytes[n + 1] = (uint8_t)(crc >> 8);
	}
	blocks = edm_msg_blocks(c, n);
	if (wire_mem_encode(c->map,
			    blocks == 1 ? WIRE_BLOCK_MEM_SINGLE
					: WIRE_BLOCK_MEM_START,
			    head, skip ? bytes : none, &out[0]))
		return -EINVAL; /* not reached: the head was packed above */
	encode_rest(c, bytes + skip, blocks, out);
	return (int)blocks;
}

static void ctl_tail(const struct edm_phy_config *c, uint64_t head_bits,
		     uint8_t tail[8])
{
	uint16_t crc;

	memset(tail, 0, 8);
	if (!c->crc)
		return;
	if (wire_mem_tail_bytes(c->map) < EDM_CRC_BYTES) {
		tail[0] = wire_mem_crc8(head_bits);
		return;
	}
	crc = wire_mem_crc16(head_bits, NULL, 0);
	tail[0] = (uint8_t)crc;
	tail[1] = (uint8_t)(crc >> 8);
}

int edm_ctl_encode(const struct edm_phy_config *c, enum wire_block_kind kind,
		   const struct wire_mem_head *head, struct wire_block *out)
{
	uint64_t head_bits;
	uint8_t tail[8];

	ASSERT(kind == WIRE_BLOCK_MEM_NOTIFY || kind == WIRE_BLOCK_MEM_GRANT);
	if (wire_mem_head_pack(head, &head_bits) != WIRE_BLOCK_OK)
		return error_set(-EINVAL, "this notification or grant has no "
					  "encoding");
	ctl_tail(c, head_bits, tail);
	return wire_mem_encode(c->map, kind, head, tail, out) ? -EINVAL : 0;
}

bool edm_ctl_check(const struct edm_phy_config *c,
		   const struct wire_mem_head *head, const uint8_t tail[8])
{
	uint64_t head_bits;
	uint8_t good[8];

	if (wire_mem_head_pack(head, &head_bits) != WIRE_BLOCK_OK)
		return false;
	ctl_tail(c, head_bits, good);
	return !memcmp(tail, good, sizeof(good));
}
