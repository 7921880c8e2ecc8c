/* SPDX-License-Identifier: Apache-2.0 */
/* A peer: plain memcpy, what reading the same blocks costs when they are near.
 */
#include "peers.h"

#include <errno.h>
#include <stdlib.h>

#include "ticks.h"

enum {
	COPY_BATCH = 64,
	COPY_ALIGN = 4096,
};

struct copy_state {
	uint8_t *from;
	uint8_t *to;
};

static int copy_setup(struct side *s)
{
	uint32_t block = *(const uint32_t *)s->param;
	struct copy_state *st;

	if (s->role == SIDE_SERVER)
		return 0;
	st = calloc(1, sizeof(*st));
	if (!st)
		return side_fail(s, -ENOMEM, "copy");
	s->state = st;
	st->from = aligned_alloc(COPY_ALIGN, side_buffer_bytes(block));
	st->to = aligned_alloc(COPY_ALIGN, COPY_BATCH * (size_t)COPY_ALIGN);
	if (!st->from || !st->to)
		return side_fail(s, -ENOMEM, "copy");
	side_buffer_fill(st->from, block);
	return 0;
}

static int copy_measure(struct side *s, uint64_t window_ns,
			struct side_result *out)
{
	uint32_t block = *(const uint32_t *)s->param;
	uint32_t len = side_buffer_bytes(block);
	struct copy_state *st = s->state;
	uint64_t end = side_end_ticks(s, window_ns);
	uint64_t t0, t1;

	out->ops = 0;
	do {
		uint64_t off = 0;

		t0 = bench_ticks();
		for (uint32_t i = 0; i < COPY_BATCH; i++) {
			uint8_t *to = st->to + (size_t)i * block;

			off = side_offset(out->ops + i, block, len);
			__builtin_memcpy(to, st->from + off, block);
			/* Keeps the copy: the compiler must believe that
			 * somebody reads it. */
			__asm__ volatile("" : : "r"(to) : "memory");
		}
		t1 = bench_ticks();
		if (!side_block_ok(st->to + (size_t)(COPY_BATCH - 1) * block,
				   off))
			return side_fail(s, -EBADMSG, "copied block");
		side_sample(s, 0, (t1 - t0) / COPY_BATCH);
		out->ops += COPY_BATCH;
	} while (t1 < end);
	return 0;
}

static void copy_teardown(struct side *s)
{
	struct copy_state *st = s->state;

	if (!st)
		return;
	free(st->from);
	free(st->to);
	free(st);
}

const struct side_ops copy_peer_ops = {
	.setup = copy_setup,
	.measure = copy_measure,
	.teardown = copy_teardown,
};
