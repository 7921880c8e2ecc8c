/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bare forwarder: client, switch and server share rings of 64-byte slots,
 * the switch copies from one to the next and does nothing else. Who finds
 * nothing yields. The least that three processes can cost.
 */
#include <sched.h>
#include <string.h>

#include "stats.h"
#include "ticks.h"
#include "trio.h"

enum {
	SLOTS = 1024,
	PAYLOAD = 56,
};

struct slot {
	/* R0: released by the writer after the payload, R1: acquired by the
	 * reader before it. Counts from 1. */
	atomic_uint_fast64_t seq;
	uint8_t payload[PAYLOAD];
};

/* To the switch, to the server, and back. */
struct rings {
	struct slot up[SLOTS], to_server[SLOTS], back[SLOTS], down[SLOTS];
};

_Static_assert(sizeof(struct slot) == 64, "one cache line");
_Static_assert(sizeof(struct rings) <= TRIO_SHARED_BYTES, "fits");

static struct rings *rings_of(const struct trio *t)
{
	return (struct rings *)(void *)t->shared;
}

static bool ready(struct slot *s, uint64_t seq)
{
	/* R1, pairs with R0 in put. */
	return atomic_load_explicit(&s->seq, memory_order_acquire) == seq;
}

static void put(struct slot *s, uint64_t seq, const uint8_t *payload)
{
	memcpy(s->payload, payload, PAYLOAD);
	atomic_store_explicit(&s->seq, seq, memory_order_release); /* R0 */
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

static int forward(struct trio *t)
{
	struct rings *r = rings_of(t);
	uint64_t up = 0, down = 0;

	trio_ready(t);
	while (!trio_quits(t)) {
		if (!trio_awake(t))
			continue;
		for (unsigned i = 0; i < 256; i++)
			if (!(move(r->up, r->to_server, &up) +
			      move(r->back, r->down, &down)))
				sched_yield();
	}
	return 0;
}

static int serve(struct trio *t)
{
	struct rings *r = rings_of(t);
	uint64_t seq = 0;

	trio_ready(t);
	while (!trio_quits(t)) {
		if (!trio_awake(t))
			continue;
		for (unsigned i = 0; i < 256; i++)
			if (!move(r->to_server, r->back, &seq))
				sched_yield();
	}
	return 0;
}

static int measure(struct trio *t, uint64_t window_ns, uint32_t depth,
		   struct trio_result *out)
{
	static uint64_t sent, got;
	struct rings *r = rings_of(t);
	uint8_t payload[PAYLOAD] = {0};
	uint64_t start_ns = bench_now_ns(), first = got, t0 = 0;
	uint64_t end =
		bench_ticks() + (uint64_t)((double)window_ns * t->ticks_per_ns);
	uint32_t samples = 0;
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
			t->page->samples[samples++ % TRIO_SAMPLES] =
				(uint32_t)(bench_ticks() - t0);
		over = bench_ticks() >= end;
	}
	out->ops = got - first;
	out->elapsed_ns = bench_now_ns() - start_ns;
	out->p50_ns = stats_quantile_u32(t->page->samples,
					 samples < TRIO_SAMPLES ? samples
								: TRIO_SAMPLES,
					 0.5) /
		      t->ticks_per_ns;
	return 0;
}

const struct trio_ops trio_ring3 = {
	.name = "ring3",
	.what = "bare rings of 64 B slots through a forwarder",
	.forward = forward,
	.serve = serve,
	.measure = measure,
};
