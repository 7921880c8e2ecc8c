/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and builds dump files; who reads and writes them is elsewhere. */
#include "dump.h"

#include <errno.h>

#include "crc.h"

static uint64_t block_crc(const struct dump_block_head *h, const void *payload,
			  size_t bytes)
{
	return crc64(crc64(0, h, offsetof(struct dump_block_head, crc)),
		     payload, bytes);
}

/* ---- building ----------------------------------------------------------- */

/* Puts the head before a payload that is there already. */
static size_t seal(struct dump_builder *b, enum dump_block_type type,
		   uint8_t *block, size_t payload_bytes)
{
	struct dump_block_head h = {.type = le32_put(type),
				    .payload_bytes =
					    le32_put((uint32_t)payload_bytes),
				    .number = le64_put(b->blocks++)};

	h.crc = le64_put(block_crc(&h, block + sizeof(h), payload_bytes));
	memcpy(block, &h, sizeof(h));
	return sizeof(h) + payload_bytes;
}

void dump_start(struct dump_builder *b, const struct dump_head *head,
		uint8_t *to)
{
	struct dump_file_head f = {.magic = DUMP_MAGIC,
				   .version = le32_put(DUMP_VERSION)};
	struct dump_head_payload p = {.kind = le32_put(head->kind),
				      .made_ms = le64_put(head->made_ms)};

	*b = (struct dump_builder){0};
	for (unsigned i = 0; i < DUMP_SIZES; i++)
		p.size[i] = le64_put(head->size[i]);
	memcpy(p.name, head->name, strnlen(head->name, DUMP_NAME_BYTES - 1));
	memcpy(to, &f, sizeof(f));
	to += sizeof(f);
	memcpy(to + sizeof(struct dump_block_head), &p, sizeof(p));
	(void)seal(b, DUMP_BLOCK_HEAD, to, sizeof(p)); /* DUMP_START_BYTES */
}

void dump_block_begin(struct dump_builder *b, uint8_t *bytes, size_t room_bytes)
{
	ASSERT(room_bytes >= sizeof(struct dump_block_head));
	b->bytes = bytes;
	b->room_bytes = room_bytes;
	b->len_bytes = sizeof(struct dump_block_head);
}

size_t dump_block_room(size_t key_bytes, size_t value_bytes)
{
	return sizeof(struct dump_block_head) + sizeof(struct dump_pair_head) +
	       key_bytes + value_bytes;
}

bool dump_block_add(struct dump_builder *b, const struct dump_pair *pair)
{
	struct dump_pair_head h = {.key_bytes = le32_put(pair->key_bytes),
				   .value_bytes = le32_put(pair->value_bytes),
				   .expire_at_ms =
					   le64_put(pair->expire_at_ms)};
	size_t bytes = sizeof(h) + pair->key_bytes + pair->value_bytes;
	uint8_t *to = b->bytes + b->len_bytes;

	ASSERT(pair->key_bytes && pair->key_bytes <= DUMP_KEY_MAX &&
	       pair->value_bytes <= DUMP_VALUE_MAX);
	if (b->room_bytes - b->len_bytes < bytes)
		return false;
	memcpy(to, &h, sizeof(h));
	memcpy(to + sizeof(h), pair->key, pair->key_bytes);
	if (pair->value_bytes)
		memcpy(to + sizeof(h) + pair->key_bytes, pair->value,
		       pair->value_bytes);
	b->len_bytes += bytes;
	b->counts.pairs++;
	b->counts.key_bytes += pair->key_bytes;
	b->counts.value_bytes += pair->value_bytes;
	return true;
}

size_t dump_block_seal(struct dump_builder *b)
{
	size_t payload = b->len_bytes - sizeof(struct dump_block_head);

	return payload ? seal(b, DUMP_BLOCK_PAIRS, b->bytes, payload) : 0;
}

size_t dump_end(struct dump_builder *b, uint8_t *to)
{
	struct dump_end_payload e = {.pairs = le64_put(b->counts.pairs),
				     .key_bytes = le64_put(b->counts.key_bytes),
				     .value_bytes =
					     le64_put(b->counts.value_bytes)};

	memcpy(to + sizeof(struct dump_block_head), &e, sizeof(e));
	return seal(b, DUMP_BLOCK_END, to, sizeof(e));
}

/* ---- parsing ------------------------------------------------------------ */

static int bad(struct dump_parser *p, uint64_t at, const char *why)
{
	p->state = DUMP_IS_BAD;
	p->pairs_bytes = 0;
	p->why = why;
	p->bad_at = at;
	return -EBADMSG;
}

size_t dump_need(const struct dump_parser *p)
{
	switch (p->state) {
	case DUMP_AT_START:
		return sizeof(struct dump_file_head);
	case DUMP_AT_BLOCK:
		return sizeof(struct dump_block_head);
	case DUMP_AT_PAYLOAD:
		return le32_get(p->block.payload_bytes);
	case DUMP_AT_END:
	case DUMP_IS_BAD:
		break;
	}
	return 0;
}

static int take_start(struct dump_parser *p, const uint8_t *bytes)
{
	struct dump_file_head f;

	memcpy(&f, bytes, sizeof(f));
	if (memcmp(f.magic, DUMP_MAGIC, sizeof(f.magic)) != 0)
		return bad(p, 0, "this is not a dump of aquifer");
	if (le32_get(f.version) != DUMP_VERSION)
		return bad(p, offsetof(struct dump_file_head, version),
			   "a version of the format that this program does "
			   "not know");
	if (le32_get(f.zero))
		return bad(p, offsetof(struct dump_file_head, zero),
			   "a reserved field is not zero");
	p->state = DUMP_AT_BLOCK;
	return 0;
}

/* The lengths that the payload of each type may have. */
static bool length_is_right(uint32_t type, uint32_t bytes)
{
	switch (type) {
	case DUMP_BLOCK_HEAD:
		return bytes == sizeof(struct dump_head_payload);
	case DUMP_BLOCK_PAIRS:
		return bytes > sizeof(struct dump_pair_head) &&
		       bytes <= DUMP_PAYLOAD_MAX;
	case DUMP_BLOCK_END:
		return bytes == sizeof(struct dump_end_payload);
	default:
		return false;
	}
}

static int take_block(struct dump_parser *p, const uint8_t *bytes)
{
	uint32_t type;

	memcpy(&p->block, bytes, sizeof(p->block));
	type = le32_get(p->block.type);
	if (type < DUMP_BLOCK_HEAD || type > DUMP_BLOCK_END)
		return bad(p, p->offset, "a block of an unknown type");
	if ((type == DUMP_BLOCK_HEAD) != (p->blocks == 0))
		return bad(p, p->offset,
			   p->blocks ? "a second head"
				     : "the first block is no head");
	if (!length_is_right(type, le32_get(p->block.payload_bytes)))
		return bad(p,
			   p->offset + offsetof(struct dump_block_head,
						payload_bytes),
			   "a block with a length that it cannot have");
	if (le64_get(p->block.number) != p->blocks)
		return bad(p,
			   p->offset + offsetof(struct dump_block_head, number),
			   "a block is missing, doubled or out of place");
	p->state = DUMP_AT_PAYLOAD;
	return 0;
}

static int take_head(struct dump_parser *p, const uint8_t *bytes)
{
	struct dump_head_payload h;

	memcpy(&h, bytes, sizeof(h));
	if (le32_get(h.kind) < DUMP_TABLE || le32_get(h.kind) > DUMP_VERSIONS)
		return bad(p, p->offset, "a dump of an unknown kind");
	if (le32_get(h.zero))
		return bad(p,
			   p->offset + offsetof(struct dump_head_payload, zero),
			   "a reserved field is not zero");
	if (h.name[DUMP_NAME_BYTES - 1])
		return bad(p,
			   p->offset + offsetof(struct dump_head_payload, name),
			   "a name without an end");
	p->head.kind = (enum dump_kind)le32_get(h.kind);
	p->head.made_ms = le64_get(h.made_ms);
	for (unsigned i = 0; i < DUMP_SIZES; i++)
		p->head.size[i] = le64_get(h.size[i]);
	memcpy(p->head.name, h.name, DUMP_NAME_BYTES);
	return 0;
}

/* The pair at `at`, which lies inside the payload; its bytes, or 0. */
static size_t pair_at(const uint8_t *bytes, size_t left, struct dump_pair *out)
{
	struct dump_pair_head h;
	uint64_t key, value;

	if (left < sizeof(h))
		return 0;
	memcpy(&h, bytes, sizeof(h));
	key = le32_get(h.key_bytes);
	value = le32_get(h.value_bytes);
	if (!key || key > DUMP_KEY_MAX || value > DUMP_VALUE_MAX ||
	    sizeof(h) + key + value > left)
		return 0;
	*out = (struct dump_pair){.key = bytes + sizeof(h),
				  .value = bytes + sizeof(h) + key,
				  .key_bytes = (uint32_t)key,
				  .value_bytes = (uint32_t)value,
				  .expire_at_ms = le64_get(h.expire_at_ms)};
	return sizeof(h) + key + value;
}

/* All of them before the first is used. */
static int take_pairs(struct dump_parser *p, const uint8_t *bytes, size_t len)
{
	struct dump_pair pair;
	size_t at = 0, n;

	while (at < len) {
		n = pair_at(bytes + at, len - at, &pair);
		if (!n)
			return bad(p, p->offset + at,
				   "a pair with lengths that it cannot have");
		at += n;
		p->counts.pairs++;
		p->counts.key_bytes += pair.key_bytes;
		p->counts.value_bytes += pair.value_bytes;
	}
	p->pairs = bytes;
	p->pairs_bytes = len;
	return 0;
}

static int take_end(struct dump_parser *p, const uint8_t *bytes)
{
	struct dump_end_payload e;

	memcpy(&e, bytes, sizeof(e));
	if (le64_get(e.pairs) != p->counts.pairs ||
	    le64_get(e.key_bytes) != p->counts.key_bytes ||
	    le64_get(e.value_bytes) != p->counts.value_bytes)
		return bad(p, p->offset,
			   "the end counts other pairs than there are");
	p->state = DUMP_AT_END;
	return 0;
}

static int take_payload(struct dump_parser *p, const uint8_t *bytes)
{
	uint32_t len = le32_get(p->block.payload_bytes);

	if (block_crc(&p->block, bytes, len) != le64_get(p->block.crc))
		return bad(p, p->offset - sizeof(p->block),
			   "the checksum of this block is wrong");
	p->blocks++;
	p->state = DUMP_AT_BLOCK;
	switch (le32_get(p->block.type)) {
	case DUMP_BLOCK_HEAD:
		return take_head(p, bytes);
	case DUMP_BLOCK_PAIRS:
		return take_pairs(p, bytes, len);
	default:
		return take_end(p, bytes);
	}
}

int dump_parse(struct dump_parser *p, const uint8_t *bytes)
{
	size_t len = dump_need(p);
	int err = -EBADMSG;

	p->pairs_bytes = 0;
	switch (p->state) {
	case DUMP_AT_START:
		err = take_start(p, bytes);
		break;
	case DUMP_AT_BLOCK:
		err = take_block(p, bytes);
		break;
	case DUMP_AT_PAYLOAD:
		err = take_payload(p, bytes);
		break;
	case DUMP_AT_END:
		return bad(p, p->offset, "bytes follow the end of the dump");
	case DUMP_IS_BAD:
		break;
	}
	p->offset += len;
	return err;
}

int dump_parse_eof(struct dump_parser *p, size_t got)
{
	if (p->state == DUMP_AT_END)
		return 0;
	if (p->state == DUMP_AT_START && !got)
		return bad(p, 0, "the file is empty");
	if (p->state == DUMP_AT_START)
		return bad(p, got, "this is not a dump of aquifer");
	return bad(p, p->offset + got, "the file breaks off here");
}

bool dump_next_pair(struct dump_parser *p, struct dump_pair *pair)
{
	size_t n;

	if (!p->pairs_bytes)
		return false;
	n = pair_at(p->pairs, p->pairs_bytes, pair);
	ASSERT(n); /* take_pairs has seen it */
	p->pairs += n;
	p->pairs_bytes -= n;
	return true;
}
