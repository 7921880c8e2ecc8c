/* SPDX-License-Identifier: Apache-2.0 */
/* Small RoCE frames through the real switch and back, without NICs: what the
 * switch itself can forward. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "plug.h"
#include "switch_bench.h"
#include "ticks.h"
#include "wire/wire.h"

enum {
	SLOT_SHIFT = 14, /* of a queue pair number */
	/* Of the two ends at the switch, by role. */
	SLOT_OF_CLIENT = 101,
	SLOT_OF_SERVER = 102,
	LOST_NS = 2000000000,
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

static int setup(struct side *s)
{
	const struct switch_param *p = s->param;
	struct plug *plug;
	int rc = plug_open(p->rack, SWITCH_NAME,
			   s->role == SIDE_CLIENT ? SLOT_OF_CLIENT
						  : SLOT_OF_SERVER,
			   address, &plug);

	if (rc < 0)
		return side_fail(s, rc, "plugging in");
	s->state = plug;
	return 0;
}

static void teardown(struct side *s)
{
	plug_close(s->state);
}

static int serve(struct side *s)
{
	uint8_t frame[WIRE_FRAME_MAX];
	size_t len = make_frame(SLOT_OF_CLIENT, frame), got;
	struct plug *p = s->state;

	while (!side_stopped(s)) {
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
	return 0;
}

static int measure(struct side *s, uint64_t window_ns, struct side_result *out)
{
	uint8_t frame[WIRE_FRAME_MAX];
	size_t len = make_frame(SLOT_OF_SERVER, frame), bytes;
	const struct switch_param *param = s->param;
	struct plug *p = s->state;
	uint64_t end = side_end_ticks(s, window_ns), sent = 0, got = 0;
	uint64_t limit_ns = bench_now_ns() + window_ns + LOST_NS;
	bool over = false;

	while (!over || got < sent) {
		unsigned n = 0, m = 0;

		while (!over && sent - got < param->depth &&
		       plug_tx(p, frame, len)) {
			sent++;
			m++;
		}
		if (m)
			plug_flush(p);
		for (; plug_rx(p, &bytes); n++)
			plug_next(p);
		got += n;
		if (n)
			plug_done(p);
		else
			sched_yield();
		over = bench_ticks() >= end;
		if (over && bench_now_ns() > limit_ns)
			return side_fail(s, -EIO, "frames were lost");
	}
	out->ops = got;
	return 0;
}

const struct side_ops switch_pump_ops = {
	.setup = setup,
	.serve = serve,
	.measure = measure,
	.teardown = teardown,
};
