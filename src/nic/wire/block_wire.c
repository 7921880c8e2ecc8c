/* SPDX-License-Identifier: Apache-2.0 */
/* Block messages and their answers: parse and build. */
#include "block_wire.h"

#include <errno.h>
#include <stddef.h>

#include "base/crc.h"

/* ---- both ---------------------------------------------------------------- */

static size_t padded(size_t bytes)
{
	return align_up(bytes, 8);
}

/* The sum is computed with 0 in its own place. */
static uint32_t sum(const uint8_t *buf, size_t bytes, size_t at)
{
	static const uint8_t none[4];
	uint32_t crc = crc32c(0, buf, at);

	crc = crc32c(crc, none, sizeof(none));
	return crc32c(crc, buf + at + 4, bytes - at - 4);
}

STATIC_ASSERT(offsetof(struct block_message_wire, crc) ==
		      offsetof(struct block_reply_wire, crc),
	      "one place of the sum");

enum {
	CRC_AT = offsetof(struct block_reply_wire, crc),
};

/* The first 16 bytes of both are the same. */
static int check_head(const uint8_t *buf, size_t len, size_t least,
		      unsigned *count)
{
	struct block_reply_wire h;

	if (len < least || len > BLOCK_MESSAGE_MAX)
		return -EINVAL;
	memcpy(&h, buf, sizeof(h));
	if (be16_get(h.version) != BLOCK_WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if (be32_get(h.bytes) != len)
		return -EINVAL;
	if (be32_get(h.crc) != sum(buf, len, CRC_AT))
		return -EBADMSG;
	*count = be16_get(h.count);
	return *count == 0 || *count > BLOCK_OPS_MAX ? -EINVAL : 0;
}

static size_t seal(struct block_writer *w, void *head, uint32_t tag)
{
	struct block_reply_wire h = {
		.version = be16_put(BLOCK_WIRE_VERSION),
		.count = be16_put((uint16_t)w->count),
		.bytes = be32_put((uint32_t)w->used_bytes),
		.tag = be32_put(tag),
	};

	memcpy(head, &h, sizeof(h));
	h.crc = be32_put(sum(w->buf, w->used_bytes, CRC_AT));
	memcpy(head, &h, sizeof(h));
	return w->used_bytes;
}

static void begin(struct block_writer *w, void *buf, size_t room, size_t head)
{
	ASSERT(room >= head);
	*w = (struct block_writer){
		.buf = buf, .room_bytes = room, .used_bytes = head};
	memset(buf, 0, head);
}

static bool has_room(const struct block_writer *w, size_t fixed, size_t inside)
{
	return w->count < BLOCK_OPS_MAX &&
	       fixed + padded(inside) <= w->room_bytes - w->used_bytes;
}

/* A fixed part and, in whole eights, what is inside. */
static void add(struct block_writer *w, const void *fixed, size_t fixed_bytes,
		const void *inside, size_t inside_bytes)
{
	uint8_t *p = w->buf + w->used_bytes;

	memcpy(p, fixed, fixed_bytes);
	p += fixed_bytes;
	if (inside_bytes) {
		memcpy(p, inside, inside_bytes);
		memset(p + inside_bytes, 0,
		       padded(inside_bytes) - inside_bytes);
	}
	w->used_bytes += fixed_bytes + padded(inside_bytes);
	w->count++;
}

/* ---- messages ------------------------------------------------------------ */

static int take_op(const uint8_t *buf, size_t len, size_t *at,
		   struct block_op *op)
{
	struct block_op_wire w;
	uint16_t opcode, flags;

	if (len - *at < sizeof(w))
		return -EINVAL;
	memcpy(&w, buf + *at, sizeof(w));
	*at += sizeof(w);
	opcode = be16_get(w.opcode);
	flags = be16_get(w.flags);
	if (!opcode || opcode >= BLOCK_OPCODES || flags > BLOCK_OP_INSIDE)
		return -EINVAL;
	*op = (struct block_op){
		.opcode = (enum block_opcode)opcode,
		.handle = be32_get(w.handle),
		.index = be32_get(w.index),
		.generation = be64_get(w.generation),
		.sequence = be64_get(w.sequence),
		.arg = be64_get(w.arg),
		.address = be64_get(w.address),
		.key = be32_get(w.key),
		.length = be32_get(w.length),
		.room = be32_get(w.room),
	};
	if (!(flags & BLOCK_OP_INSIDE))
		return 0;
	if (op->length > BLOCK_INSIDE_MAX || padded(op->length) > len - *at)
		return -EINVAL;
	op->value = buf + *at;
	*at += padded(op->length);
	return 0;
}

int block_message_parse(const void *buf, size_t len_bytes,
			struct block_message *m,
			struct block_op ops[BLOCK_OPS_MAX])
{
	struct block_message_wire w;
	size_t at = sizeof(w);
	unsigned count = 0;
	int err = check_head(buf, len_bytes, sizeof(w), &count);

	if (err)
		return err;
	memcpy(&w, buf, sizeof(w));
	*m = (struct block_message){
		.tag = be32_get(w.tag),
		.count = count,
		.acked = be64_get(w.acked),
		.reply_at = be64_get(w.reply_at),
		.reply_key = be32_get(w.reply_key),
		.reply_bytes = be32_get(w.reply_bytes),
	};
	memcpy(m->session, w.session, sizeof(m->session));
	for (unsigned i = 0; i < count && !err; i++)
		err = take_op(buf, len_bytes, &at, &ops[i]);
	return err ? err : at == len_bytes ? 0 : -EINVAL;
}

void block_message_begin(struct block_writer *w, void *buf, size_t room_bytes)
{
	begin(w, buf, room_bytes, sizeof(struct block_message_wire));
}

int block_message_add(struct block_writer *w, const struct block_op *op)
{
	struct block_op_wire f = {
		.opcode = be16_put((uint16_t)op->opcode),
		.flags = be16_put(op->value ? BLOCK_OP_INSIDE : 0),
		.handle = be32_put(op->handle),
		.index = be32_put(op->index),
		.generation = be64_put(op->generation),
		.sequence = be64_put(op->sequence),
		.arg = be64_put(op->arg),
		.address = be64_put(op->address),
		.key = be32_put(op->key),
		.length = be32_put(op->length),
		.room = be32_put(op->room),
	};
	size_t inside = op->value ? op->length : 0;

	ASSERT(inside <= BLOCK_INSIDE_MAX);
	if (!has_room(w, sizeof(f), inside))
		return -ENOSPC;
	add(w, &f, sizeof(f), op->value, inside);
	return 0;
}

size_t block_message_end(struct block_writer *w, const struct block_message *m)
{
	struct block_message_wire h = {
		.acked = be64_put(m->acked),
		.reply_at = be64_put(m->reply_at),
		.reply_key = be32_put(m->reply_key),
		.reply_bytes = be32_put(m->reply_bytes),
	};

	memcpy(h.session, m->session, sizeof(h.session));
	memcpy(w->buf, &h, sizeof(h));
	return seal(w, w->buf, m->tag);
}

/* ---- answers ------------------------------------------------------------- */

static int take_result(const uint8_t *buf, size_t len, size_t *at,
		       struct block_result *r)
{
	struct block_result_wire w;
	uint32_t status, flags;

	if (len - *at < sizeof(w))
		return -EINVAL;
	memcpy(&w, buf + *at, sizeof(w));
	*at += sizeof(w);
	status = be32_get(w.status);
	flags = be32_get(w.flags);
	if (status >= BLOCK_STATUSES || flags > BLOCK_OP_INSIDE)
		return -EINVAL;
	*r = (struct block_result){
		.status = (enum block_status)status,
		.length = be32_get(w.length),
		.value = be64_get(w.value),
	};
	if (!(flags & BLOCK_OP_INSIDE))
		return 0;
	if (r->length > BLOCK_BATCH_MAX || padded(r->length) > len - *at)
		return -EINVAL;
	r->data = buf + *at;
	*at += padded(r->length);
	return 0;
}

int block_reply_parse(const void *buf, size_t len_bytes, uint32_t *tag,
		      struct block_result results[BLOCK_OPS_MAX],
		      unsigned *count)
{
	struct block_reply_wire w;
	size_t at = sizeof(w);
	unsigned n = 0;
	int err = check_head(buf, len_bytes, sizeof(w), &n);

	if (err)
		return err;
	memcpy(&w, buf, sizeof(w));
	for (unsigned i = 0; i < n && !err; i++)
		err = take_result(buf, len_bytes, &at, &results[i]);
	if (err || at != len_bytes)
		return err ? err : -EINVAL;
	*tag = be32_get(w.tag);
	*count = n;
	return 0;
}

void block_reply_begin(struct block_writer *w, void *buf, size_t room_bytes)
{
	begin(w, buf, room_bytes, sizeof(struct block_reply_wire));
}

bool block_reply_has_room(const struct block_writer *w, size_t data_bytes)
{
	return has_room(w, sizeof(struct block_result_wire), data_bytes);
}

int block_reply_add(struct block_writer *w, const struct block_result *r)
{
	struct block_result_wire f = {
		.status = be32_put((uint32_t)r->status),
		.length = be32_put(r->length),
		.value = be64_put(r->value),
		.flags = be32_put(r->data ? BLOCK_OP_INSIDE : 0),
	};
	size_t inside = r->data ? r->length : 0;

	ASSERT(inside <= BLOCK_BATCH_MAX);
	if (!block_reply_has_room(w, inside))
		return -ENOSPC;
	add(w, &f, sizeof(f), r->data, inside);
	return 0;
}

size_t block_reply_end(struct block_writer *w, uint32_t tag)
{
	return seal(w, w->buf, tag);
}

/* ---- words --------------------------------------------------------------- */

static const struct {
	int err;
	const char *text;
} words[BLOCK_STATUSES] = {
	[BLOCK_OK] = {0, "done"},
	[BLOCK_SEALED] = {-EAGAIN, "the block is sealed"},
	[BLOCK_CLOSED] = {-EROFS, "it is sealed: nothing more can be added"},
	[BLOCK_NO_ROOM] = {-ENOSPC, "the block has no room"},
	[BLOCK_FULL] = {-EAGAIN, "the queue is full"},
	[BLOCK_NO_CREDIT] = {-EAGAIN, "items before the block are not known"},
	[BLOCK_EMPTY] = {-EAGAIN, "the queue is empty"},
	[BLOCK_DRAINED] = {-EAGAIN, "the block is empty for ever"},
	[BLOCK_PARKED] = {-EAGAIN, "the rest waits for acknowledgements"},
	[BLOCK_STALE] = {-ESTALE, "the block belongs to something else now"},
	[BLOCK_DENIED] = {-EACCES, "the ticket does not allow it"},
	[BLOCK_TOO_LONG] = {-EMSGSIZE, "too long"},
	[BLOCK_BUSY] = {-EAGAIN, "too much is under way on the block"},
	[BLOCK_LATER] = {-EAGAIN, "the answer had no room"},
	[BLOCK_LOST] = {-EFAULT, "the node cannot reach the client's memory"},
	[BLOCK_BAD] = {-EPROTO, "the node does not understand the request"},
	[BLOCK_MOVED] = {-EAGAIN, "the key is in another block"},
	[BLOCK_FROZEN] = {-EAGAIN, "the key moves to another block"},
	[BLOCK_NO_KEY] = {-ENOENT, "there is no such key"},
	[BLOCK_VERSION] = {-ECANCELED, "the key has another version"},
	[BLOCK_NO_NUMBER] = {-EINVAL, "the value is no number of eight bytes"},
	[BLOCK_REFUSED] = {-ENOSPC, "what was to be moved has no room there"},
	[BLOCK_ELSEWHERE] = {-EAGAIN, "the chain of the block has changed"},
	[BLOCK_BROKEN] = {-EIO, "a part of it was on a disk that failed"},
};

const char *block_status_text(enum block_status status)
{
	return words[status].text;
}

int block_status_errno(enum block_status status)
{
	return words[status].err;
}
