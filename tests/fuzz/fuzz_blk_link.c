/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between members of a chain, any bytes, with the sum made right, so
 * that mutations get past it; and what a member does with them, in the middle
 * of a chain and as one that joins. What is accepted can be built again to the
 * same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "block/blk_chain.h"
#include "fuzz.h"

enum {
	BYTES = 64 << 10,
};

static bool send(void *ctx, const struct blk_member *to,
		 struct blk_link_message *m)
{
	return true;
}

static bool is_held(void *ctx)
{
	return false;
}

static void done(void *ctx, const struct blk_answer *a)
{
}

static void freed(void *ctx)
{
}

/* Whatever a peer says, the member lives; a copy may be refused. */
static void hear(const struct blk_link_message *m, unsigned at, unsigned kind)
{
	static uint8_t mem[BYTES] CACHE_ALIGNED;
	const struct blk_chain_carrier carrier = {
		.send = send, .is_held = is_held, .done = done, .freed = freed};
	struct blk_options options = {.kind = (enum block_kind)kind,
				      .size_bytes = BYTES,
				      .generation = 1,
				      .identity = 1,
				      .is_first = true};
	struct blk_chain_config config = {
		.epoch = 1,
		.count = 3,
		.full = 2,
		.at = at,
		.member = {{.generation = 1},
			   {.generation = 2},
			   {.generation = 3}},
	};
	static struct blk_chain c;
	struct blk_link_message as = *m;
	struct blk_block b;

	memset(mem, 0, sizeof(mem));
	if (blk_init(&b, &options, mem))
		return;
	blk_chain_init(&c, &b, at < 2, &carrier);
	blk_chain_configure(&c, &config, 1000000000);
	as.epoch = 1;
	as.from = m->from % 3 + 1;
	/* A copy is believed as a whole: nodes of a rack trust each other. */
	if (as.type != BLK_LINK_COPY)
		blk_chain_hear(&c, &as, 1001000000);
	blk_chain_tick(&c, 1100000000);
	blk_chain_tick(&c, 3000000000);
	blk_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t buf[sizeof(struct blk_link_wire) + BLK_LINK_DATA],
		again[sizeof(buf)];
	struct blk_link_message m;
	be32 word;

	if (len < sizeof(struct blk_link_wire) || len > sizeof(buf))
		return 0;
	(void)!blk_link_parse(data, len, &m);
	memcpy(buf, data, len);
	word = be32_put(BLK_LINK_MAGIC);
	memcpy(buf, &word, 4);
	buf[4] = 0;
	buf[5] = BLK_LINK_VERSION;
	word = be32_put((uint32_t)(len - sizeof(struct blk_link_wire)));
	memcpy(buf + 12, &word, 4);
	memset(buf + 8, 0, 4);
	word = be32_put(crc32c(0, buf, len));
	memcpy(buf + 8, &word, 4);
	if (blk_link_parse(buf, len, &m))
		return 0;
	ASSERT(blk_link_build(&m, again) == len &&
	       memcmp(buf, again, len) == 0);
	for (unsigned at = 0; at < 3; at++)
		for (unsigned k = BLOCK_FILE; k < BLOCK_KINDS; k++)
			hear(&m, at, k);
	return 0;
}
