/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages about blocks and their answers, any bytes; the sum is made right, so
 * that mutations get past it. What is accepted can be built again to the same
 * bytes.
 */
#include <string.h>

#include "base/crc.h"
#include "fuzz.h"
#include "wire/block_wire.h"

static void check_message(const uint8_t *data, size_t len)
{
	static struct block_op op[BLOCK_OPS_MAX];
	static uint8_t again[BLOCK_MESSAGE_MAX];
	struct block_message m;
	struct block_writer w;

	if (block_message_parse(data, len, &m, op))
		return;
	block_message_begin(&w, again, sizeof(again));
	for (unsigned i = 0; i < m.count; i++) {
		ASSERT(!op[i].value ||
		       (op[i].value >= data &&
			op[i].value + op[i].length <= data + len));
		ASSERT(block_message_add(&w, &op[i]) == 0);
	}
	ASSERT(block_message_end(&w, &m) == len);
}

static void check_reply(const uint8_t *data, size_t len)
{
	static struct block_result r[BLOCK_OPS_MAX];
	unsigned count = 0;
	uint32_t tag;

	if (block_reply_parse(data, len, &tag, r, &count))
		return;
	ASSERT(count && count <= BLOCK_OPS_MAX);
	for (unsigned i = 0; i < count; i++)
		ASSERT(!r[i].data || r[i].data + r[i].length <= data + len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t buf[BLOCK_MESSAGE_MAX + 64];
	be32 word;

	if (len < sizeof(struct block_reply_wire) || len > sizeof(buf))
		return 0;
	check_message(data, len);
	check_reply(data, len);
	memcpy(buf, data, len);
	buf[0] = 0;
	buf[1] = BLOCK_WIRE_VERSION;
	word = be32_put((uint32_t)len);
	memcpy(buf + 4, &word, 4);
	memset(buf + 8, 0, 4);
	word = be32_put(crc32c(0, buf, len));
	memcpy(buf + 8, &word, 4);
	check_message(buf, len);
	check_reply(buf, len);
	return 0;
}
