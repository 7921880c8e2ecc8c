/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between members of a chain: build and parse. */
#include "blk_link.h"

#include <errno.h>
#include <stddef.h>

#include "base/crc.h"

enum {
	CRC_AT = offsetof(struct blk_link_wire, crc),
};

static uint32_t sum(const uint8_t *bytes, size_t len_bytes)
{
	static const uint8_t none[4];
	uint32_t crc = crc32c(0, bytes, CRC_AT);

	crc = crc32c(crc, none, sizeof(none));
	return crc32c(crc, bytes + CRC_AT + 4, len_bytes - CRC_AT - 4);
}

size_t blk_link_build(const struct blk_link_message *m, uint8_t *out)
{
	size_t len = sizeof(struct blk_link_wire) + m->bytes;
	struct blk_link_wire w = {
		.magic = be32_put(BLK_LINK_MAGIC),
		.version = be16_put(BLK_LINK_VERSION),
		.type = be16_put((uint16_t)m->type),
		.bytes = be32_put(m->bytes),
		.index = be32_put(m->index),
		.flags = be32_put(m->flags),
		.to = be64_put(m->to),
		.from = be64_put(m->from),
		.epoch = be64_put(m->epoch),
		.position = be64_put(m->position),
		.stamp = be64_put(m->stamp),
		.offset = be64_put(m->offset),
		.total = be64_put(m->total),
		.acked = be64_put(m->acked),
		.sequence = be64_put(m->sequence),
		.arg = be64_put(m->arg),
		.opcode = be32_put(m->opcode),
		.length = be32_put(m->length),
		.inside_room = be32_put(m->inside_room),
		.buffer_bytes = be32_put(m->buffer_bytes),
	};

	ASSERT(m->bytes <= BLK_LINK_DATA);
	memcpy(w.session, m->session, sizeof(w.session));
	memcpy(out, &w, sizeof(w));
	if (m->bytes)
		memcpy(out + sizeof(w), m->data, m->bytes);
	w.crc = be32_put(sum(out, len));
	memcpy(out, &w, sizeof(w));
	return len;
}

int blk_link_parse(const uint8_t *bytes, size_t len_bytes,
		   struct blk_link_message *out)
{
	struct blk_link_wire w;
	uint16_t type;

	if (len_bytes < sizeof(w) || len_bytes > sizeof(w) + BLK_LINK_DATA)
		return -EINVAL;
	memcpy(&w, bytes, sizeof(w));
	if (be32_get(w.magic) != BLK_LINK_MAGIC)
		return -EINVAL;
	if (be16_get(w.version) != BLK_LINK_VERSION)
		return -EPROTONOSUPPORT;
	if (be32_get(w.crc) != sum(bytes, len_bytes))
		return -EBADMSG;
	type = be16_get(w.type);
	if (!type || type >= BLK_LINK_TYPES ||
	    be32_get(w.bytes) != len_bytes - sizeof(w) ||
	    !be32_get(w.opcode) == (type == BLK_LINK_OP) ||
	    be32_get(w.opcode) >= BLOCK_OPCODES)
		return -EINVAL;
	*out = (struct blk_link_message){
		.type = (enum blk_link_type)type,
		.index = be32_get(w.index),
		.flags = be32_get(w.flags),
		.to = be64_get(w.to),
		.from = be64_get(w.from),
		.epoch = be64_get(w.epoch),
		.position = be64_get(w.position),
		.stamp = be64_get(w.stamp),
		.offset = be64_get(w.offset),
		.total = be64_get(w.total),
		.acked = be64_get(w.acked),
		.sequence = be64_get(w.sequence),
		.arg = be64_get(w.arg),
		.opcode = be32_get(w.opcode),
		.length = be32_get(w.length),
		.inside_room = be32_get(w.inside_room),
		.buffer_bytes = be32_get(w.buffer_bytes),
		.bytes = be32_get(w.bytes),
		.data = bytes + sizeof(w),
	};
	memcpy(out->session, w.session, sizeof(out->session));
	return 0;
}
