/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer: the round trip of a raw ring in shared memory, the least that a
 * request and its answer between two cores can cost. The sequence number lives
 * in the 64-byte slot with its payload, so one cache line carries both.
 */
#include "peers.h"

#include <stdatomic.h>
#include <string.h>

#include "ticks.h"

enum {
	RING_SLOTS = 64,
	RING_PAYLOAD_BYTES = 56,
	STOP_CHECK_TRIES = 1024, /* the stop flag must not cost every try */
};

struct ring_slot {
	/* PEER-1: released by the writer after the payload, acquired by the
	 * reader before it. Counts from 1; 0 is a slot never written. */
	atomic_uint_fast64_t seq;
	uint8_t payload[RING_PAYLOAD_BYTES];
};

struct ring_pair {
	struct ring_slot request[RING_SLOTS];
	struct ring_slot response[RING_SLOTS];
	atomic_uint_fast64_t next; /* the server's place, kept over rounds */
};

_Static_assert(sizeof(struct ring_slot) == 64, "one cache line");
_Static_assert(sizeof(struct ring_pair) <= SIDE_SHARED_BYTES, "fits");

static struct ring_pair *ring_of(const struct side *s)
{
	return (struct ring_pair *)s->shared;
}

static void slot_put(struct ring_slot *slot, uint64_t seq, const void *payload)
{
	memcpy(slot->payload, payload, RING_PAYLOAD_BYTES);
	atomic_store_explicit(&slot->seq, seq,
			      memory_order_release); /* PEER-1 */
}

static bool slot_ready(struct ring_slot *slot, uint64_t seq)
{
	/* PEER-1: no reader sees half a payload. */
	return atomic_load_explicit(&slot->seq, memory_order_acquire) == seq;
}

static int ring_serve(struct side *s)
{
	struct ring_pair *ring = ring_of(s);
	uint64_t seq = atomic_load_explicit(&ring->next, memory_order_relaxed);

	while (!side_stopped(s)) {
		for (int i = 0; i < STOP_CHECK_TRIES; i++) {
			struct ring_slot *in = &ring->request[seq % RING_SLOTS];

			if (!slot_ready(in, seq + 1))
				continue;
			slot_put(&ring->response[seq % RING_SLOTS], seq + 1,
				 in->payload);
			seq++;
		}
	}
	atomic_store_explicit(&ring->next, seq, memory_order_relaxed);
	return 0;
}

static int ring_measure(struct side *s, uint64_t window_ns,
			struct side_result *out)
{
	struct ring_pair *ring = ring_of(s);
	uint64_t seq = atomic_load_explicit(&ring->request[0].seq,
					    memory_order_relaxed);
	uint64_t end = side_end_ticks(s, window_ns);
	uint8_t payload[RING_PAYLOAD_BYTES] = {0};
	uint64_t t0, t1;

	/* Every round starts where the last one stopped: the newest number in
	 * the ring. */
	for (unsigned i = 0; i < RING_SLOTS; i++) {
		uint64_t v = atomic_load_explicit(&ring->request[i].seq,
						  memory_order_relaxed);
		if (v > seq)
			seq = v;
	}
	out->ops = 0;
	do {
		struct ring_slot *answer = &ring->response[seq % RING_SLOTS];

		t0 = bench_ticks();
		slot_put(&ring->request[seq % RING_SLOTS], seq + 1, payload);
		while (!slot_ready(answer, seq + 1))
			;
		memcpy(payload, answer->payload, sizeof(payload));
		t1 = bench_ticks();
		side_sample(s, 0, t1 - t0);
		seq++;
		out->ops++;
	} while (t1 < end);
	return 0;
}

const struct side_ops ring_peer_ops = {
	.setup = side_no_setup,
	.serve = ring_serve,
	.measure = ring_measure,
	.teardown = side_no_teardown,
};
