/* SPDX-License-Identifier: Apache-2.0 */
/* Small RoCE frames through the real switch and back, without NICs: what the
 * switch itself can forward. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "plug.h"
#include "stats.h"
#include "ticks.h"
#include "trio.h"
#include "wire/wire.h"

enum {
	SLOT_SHIFT = 14, /* of a queue pair number */
};

/* Not the NICs': those lease slots of theirs as they like. */
static const uint8_t address[16] = {[10] = 0xff, 0xff, 127, 0, 0, 99};

/* An acknowledgement, the smallest packet, to the other end. */
static size_t make_frame(uint32_t to_slot, uint8_t frame[WIRE_FRAME_MAX])
{
	struct wire_pkt pkt = {.opcode = WIRE_RC_ACK,
			       .ttl = 64,
			       .src_port = 0xc000,
			       .pkey = 0xffff,
			       .dest_qpn = to_slot << SLOT_SHIFT | 1,
			       .syndrome = WIRE_ACK_UNLIMITED};

	memcpy(pkt.src_ip, address, 16);
	memcpy(pkt.dst_ip, address, 16);
	pkt.src_mac[0] = pkt.dst_mac[0] = 2;
	return wire_build(&pkt, frame);
}

static int plug_in(struct trio *t, uint32_t slot)
{
	struct plug *plug;
	int rc = plug_open(t->rack, t->switch_name, slot, address, &plug);

	if (rc < 0)
		return trio_fail(t, rc, "plugging in");
	t->state = plug;
	return 0;
}

static int serve(struct trio *t)
{
	uint8_t frame[WIRE_FRAME_MAX];
	size_t len = make_frame(TRIO_SLOTS_CLIENT, frame), got;
	struct plug *p;

	if (plug_in(t, TRIO_SLOTS_SERVER) < 0)
		return -EIO;
	p = t->state;
	trio_ready(t);
	while (!trio_quits(t)) {
		if (!trio_awake(t))
			continue;
		for (unsigned i = 0; i < 256; i++) {
			unsigned n = 0;

			while (n < 64 && plug_rx(p, &got)) {
				plug_next(p);
				(void)!plug_tx(p, frame, len);
				n++;
			}
			if (n) {
				plug_done(p);
				plug_flush(p);
			} else {
				sched_yield();
			}
		}
	}
	plug_close(p);
	return 0;
}

static int setup(struct trio *t)
{
	return plug_in(t, TRIO_SLOTS_CLIENT);
}

static int measure(struct trio *t, uint64_t window_ns, uint32_t depth,
		   struct trio_result *out)
{
	uint8_t frame[WIRE_FRAME_MAX];
	size_t len = make_frame(TRIO_SLOTS_SERVER, frame), bytes;
	struct plug *p = t->state;
	uint64_t start_ns = bench_now_ns(), t0 = 0, sent = 0, got = 0;
	uint64_t end =
		bench_ticks() + (uint64_t)((double)window_ns * t->ticks_per_ns);
	uint64_t limit_ns = start_ns + window_ns + 2000000000ull;
	uint32_t samples = 0;
	bool over = false;

	while (!over || got < sent) {
		unsigned n = 0, m = 0;

		while (!over && sent - got < depth && plug_tx(p, frame, len)) {
			t0 = bench_ticks();
			sent++;
			m++;
		}
		if (m)
			plug_flush(p);
		while (plug_rx(p, &bytes)) {
			plug_next(p);
			got++;
			n++;
		}
		if (n == 0)
			sched_yield();
		else if (depth == 1)
			t->page->samples[samples++ % TRIO_SAMPLES] =
				(uint32_t)(bench_ticks() - t0);
		if (n)
			plug_done(p);
		over = bench_ticks() >= end;
		if (over && bench_now_ns() > limit_ns)
			return trio_fail(t, -EIO, "frames were lost");
	}
	out->ops = got;
	out->elapsed_ns = bench_now_ns() - start_ns;
	out->p50_ns = stats_quantile_u32(t->page->samples,
					 samples < TRIO_SAMPLES ? samples
								: TRIO_SAMPLES,
					 0.5) /
		      t->ticks_per_ns;
	return 0;
}

const struct trio_ops trio_pump = {
	.name = "switch_frames",
	.what = "62 B frames through the switch and back",
	.uses_switch = true,
	.serve = serve,
	.setup = setup,
	.measure = measure,
};
