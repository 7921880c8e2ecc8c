/* SPDX-License-Identifier: Apache-2.0 */
/* The stream protocol's messages and tables as bytes. */
#include "rs_wire.h"

#include <errno.h>

#include "base/bytes.h"
#include "rs_limits.h"

enum {
	VERSION = 1,
	FLAG_BIG = 1,
	FLAG_IOMAP = 2,
	OP_SHIFT = 29,
	SCALE_EXACT = 128,
};

struct wire_sge {
	be64 addr;
	be32 key;
	be32 length;
};

struct wire_hello {
	uint8_t version;
	uint8_t flags;
	be16 credits;
	uint8_t reserved[3];
	uint8_t iomap_scale;
	struct wire_sge slots;
	struct wire_sge buf;
};

STATIC_ASSERT(sizeof(struct wire_sge) == RS_SGE_BYTES, "layout");
STATIC_ASSERT(sizeof(struct wire_hello) == RS_HELLO_BYTES, "layout");
STATIC_ASSERT(offsetof(struct wire_hello, slots) == 8, "layout");

static const bool host_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

/* ---- messages ------------------------------------------------------------ */

uint32_t rs_msg_build(enum rs_op op, uint32_t value)
{
	ASSERT(value <= RS_VALUE_MAX);
	return (uint32_t)op << OP_SHIFT | value;
}

int rs_msg_parse(uint32_t word, struct rs_msg *msg)
{
	uint32_t value = word & RS_VALUE_MAX;

	switch (word >> OP_SHIFT) {
	case RS_OP_DATA:
		if (!value)
			return -EBADMSG;
		break;
	case RS_OP_CREDIT:
	case RS_OP_IOMAP:
		break;
	case RS_OP_CTRL:
		if (value > RS_CTRL_SHUTDOWN)
			return -EBADMSG;
		break;
	default:
		return -EBADMSG;
	}
	msg->op = (enum rs_op)(word >> OP_SHIFT);
	msg->value = value;
	return 0;
}

/* ---- tables -------------------------------------------------------------- */

static void put32(uint32_t v, bool big, uint8_t *out)
{
	be32 b = be32_put(v);
	le32 l = le32_put(v);

	memcpy(out, big ? b.b : l.b, sizeof(v));
}

static void put64(uint64_t v, bool big, uint8_t *out)
{
	be64 b = be64_put(v);
	le64 l = le64_put(v);

	memcpy(out, big ? b.b : l.b, sizeof(v));
}

void rs_sge_build(const struct rs_sge *sge, bool big, uint8_t *out)
{
	put64(sge->addr, big, out);
	put32(sge->key, big, out + 8);
	put32(sge->length, big, out + 12);
}

void rs_sge_parse(const uint8_t *in, struct rs_sge *sge)
{
	memcpy(&sge->addr, in, sizeof(sge->addr));
	memcpy(&sge->key, in + 8, sizeof(sge->key));
	memcpy(&sge->length, in + 12, sizeof(sge->length));
}

void rs_iomap_build(const struct rs_iomap *map, bool big, uint8_t *out)
{
	put64(map->offset, big, out);
	rs_sge_build(&map->sge, big, out + 8);
}

void rs_iomap_parse(const uint8_t *in, struct rs_iomap *map)
{
	memcpy(&map->offset, in, sizeof(map->offset));
	rs_sge_parse(in + 8, &map->sge);
}

/* ---- private data -------------------------------------------------------- */

uint8_t rs_scale_build(uint16_t count)
{
	ASSERT(count <= SCALE_EXACT);
	return (uint8_t)count;
}

/* Above 128 the low seven bits count in steps of 256. */
uint16_t rs_scale_parse(uint8_t scale)
{
	if (scale <= SCALE_EXACT)
		return scale;
	return (uint16_t)((scale & (SCALE_EXACT - 1)) << 8);
}

static struct wire_sge pack(const struct rs_sge *s)
{
	return (struct wire_sge){
		.addr = be64_put(s->addr),
		.key = be32_put(s->key),
		.length = be32_put(s->length),
	};
}

static struct rs_sge unpack(const struct wire_sge *w)
{
	return (struct rs_sge){
		.addr = be64_get(w->addr),
		.key = be32_get(w->key),
		.length = be32_get(w->length),
	};
}

void rs_hello_build(const struct rs_hello *h, uint8_t out[RS_HELLO_BYTES])
{
	struct wire_hello w = {
		.version = VERSION,
		.flags = (uint8_t)(FLAG_IOMAP | (host_is_big ? FLAG_BIG : 0)),
		.credits = be16_put(h->credits),
		.iomap_scale = rs_scale_build(h->iomap_count),
		.slots = pack(&h->slots),
		.buf = pack(&h->buf),
	};

	memcpy(out, &w, sizeof(w));
}

int rs_hello_parse(const uint8_t *in, size_t len_bytes, struct rs_hello *hello)
{
	struct wire_hello w;
	struct rs_hello h;

	if (len_bytes < sizeof(w))
		return -EBADMSG;
	memcpy(&w, in, sizeof(w));
	if (w.version != VERSION)
		return -EPROTONOSUPPORT;
	h.credits = be16_get(w.credits);
	h.big = w.flags & FLAG_BIG;
	h.iomap_count =
		w.flags & FLAG_IOMAP ? rs_scale_parse(w.iomap_scale) : 0;
	h.slots = unpack(&w.slots);
	h.buf = unpack(&w.buf);
	/* One entry is in use while the next is written, so two it must be. */
	if (!h.credits || h.slots.length < RS_SLOTS || !h.buf.length)
		return -EBADMSG;
	/* The table of mappings lies behind that of buffers: no address that
	 * is computed later may wrap. */
	if (h.slots.addr > UINT64_MAX -
				   (uint64_t)h.slots.length * RS_SGE_BYTES -
				   (uint64_t)h.iomap_count * RS_IOMAP_BYTES ||
	    h.buf.addr > UINT64_MAX - h.buf.length)
		return -EBADMSG;
	*hello = h;
	return 0;
}
