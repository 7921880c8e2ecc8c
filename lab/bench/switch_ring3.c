/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bare forwarder: client, switch and server share rings of 64-byte slots,
 * the switch copies from one to the next and does nothing else. Who finds
 * nothing yields. The least that three processes can cost.
 */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "switch_bench.h"
#include "ticks.h"

enum {
	SLOTS = 1024,
	PAYLOAD = 56,
};

struct slot {
	/* TRIO-1: released by the writer after the payload, acquired by the
	 * reader before it. Counts from 1. */
	atomic_uint_fast64_t seq;
	uint8_t payload[PAYLOAD];
};

/* To the switch, to the server, and back. */
struct rings {
	struct slot up[SLOTS], to_server[SLOTS], back[SLOTS], down[SLOTS];
};

_Static_assert(sizeof(struct slot) == 64, "one cache line");
_Static_assert(sizeof(struct rings) <= SIDE_SHARED_BYTES, "fits");

static struct rings *rings_of(const struct side *s)
{
	return (struct rings *)(void *)s->shared;
}

static bool ready(struct slot *s, uint64_t seq)
{
	/* TRIO-1: no reader sees half a payload. */
	return atomic_load_explicit(&s->seq, memory_order_acquire) == seq;
}

static void put(struct slot *s, uint64_t seq, const uint8_t *payload)
{
	memcpy(s->payload, payload, PAYLOAD);
	atomic_store_explicit(&s->seq, seq, memory_order_release); /* TRIO-1 */
}

/* Moves what there is from one ring to another; returns how many. The window
 * of the client is smaller than a ring, so there is always room. */
static unsigned move(struct slot *from, struct slot *to, uint64_t *seq)
{
	unsigned n = 0;

	while (n < 64 && ready(&from[*seq % SLOTS], *seq + 1)) {
		put(&to[*seq % SLOTS], *seq + 1, from[*seq % SLOTS].payload);
		(*seq)++;
		n++;
	}
	return n;
}

/* Each process keeps its places in the rings from round to round. */
static int forward(struct side *s)
{
	static uint64_t up, down;
	struct rings *r = rings_of(s);

	while (!side_stopped(s))
		for (unsigned i = 0; i < 256; i++)
			if (!(move(r->up, r->to_server, &up) +
			      move(r->back, r->down, &down)))
				sched_yield();
	return 0;
}

static int serve(struct side *s)
{
	static uint64_t seq;
	struct rings *r = rings_of(s);

	while (!side_stopped(s))
		for (unsigned i = 0; i < 256; i++)
			if (!move(r->to_server, r->back, &seq))
				sched_yield();
	return 0;
}

static int measure(struct side *s, uint64_t window_ns, struct side_result *out)
{
	static uint64_t sent, got;
	uint32_t depth = *(const uint32_t *)s->param;
	struct rings *r = rings_of(s);
	uint8_t payload[PAYLOAD] = {0};
	uint64_t end = side_end_ticks(s, window_ns), first = got, t0 = 0;
	bool over = false;

	while (!over || got < sent) {
		unsigned n = 0;

		while (!over && sent - got < depth) {
			t0 = bench_ticks();
			put(&r->up[sent % SLOTS], sent + 1, payload);
			sent++;
		}
		while (ready(&r->down[got % SLOTS], got + 1)) {
			memcpy(payload, r->down[got % SLOTS].payload, PAYLOAD);
			got++;
			n++;
		}
		if (n == 0)
			sched_yield();
		else if (depth == 1)
			side_sample(s, 0, bench_ticks() - t0);
		over = bench_ticks() >= end;
	}
	out->ops = got - first;
	return 0;
}

const struct side_ops switch_ring3_ops = {
	.setup = side_no_setup,
	.serve = serve,
	.forward = forward,
	.measure = measure,
	.teardown = side_no_teardown,
};
