/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a dump. Checksums are made right before parsing, so that what is
 * behind them is reached, too; what is accepted is built again and must be the
 * same bytes, except for how pairs are spread over blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/dump.h"
#include "fuzz.h"

/* The block at `at`, if it lies in the file. */
static void make_right(uint8_t *bytes, size_t len, size_t at)
{
	struct dump_block_head h;

	if (len - at < sizeof(h))
		return;
	memcpy(&h, bytes + at, sizeof(h));
	if (le32_get(h.payload_bytes) > len - at - sizeof(h))
		return;
	h.crc = le64_put(
		crc64(crc64(0, &h, offsetof(struct dump_block_head, crc)),
		      bytes + at + sizeof(h), le32_get(h.payload_bytes)));
	memcpy(bytes + at, &h, sizeof(h));
}

/* What was parsed, built anew with one pair in a block. */
static void add_again(struct dump_builder *b, const struct dump_pair *pair)
{
	size_t room = dump_block_room(pair->key_bytes, pair->value_bytes);
	uint8_t *bytes = malloc(room);

	ASSERT(bytes);
	dump_block_begin(b, bytes, room);
	ASSERT(dump_block_add(b, pair));
	ASSERT(dump_block_seal(b) == room);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	uint8_t *bytes = malloc(len_bytes + 1), start[DUMP_START_BYTES];
	struct dump_parser p = {0};
	struct dump_builder b = {0};
	struct dump_pair pair;
	size_t at = 0, need;
	int err = 0;

	ASSERT(bytes);
	memcpy(bytes, data, len_bytes);
	while (!err && (need = dump_need(&p)) > 0) {
		ASSERT(need <= DUMP_PAYLOAD_MAX && p.offset == at);
		if (len_bytes - at < need) {
			err = dump_parse_eof(&p, len_bytes - at);
			break;
		}
		if (p.state == DUMP_AT_BLOCK)
			make_right(bytes, len_bytes, at);
		err = dump_parse(&p, bytes + at);
		if (!err && p.blocks == 1 && p.state == DUMP_AT_BLOCK) {
			dump_start(&b, &p.head, start);
			ASSERT(!memcmp(start + 16, bytes + 16, 8));
		}
		while (dump_next_pair(&p, &pair))
			add_again(&b, &pair);
		at += need;
	}
	ASSERT(!err || (p.why && p.bad_at <= len_bytes));
	ASSERT(err || !memcmp(&b.counts, &p.counts, sizeof(b.counts)));
	free(bytes);
	return 0;
}
