/* SPDX-License-Identifier: Apache-2.0 */
/* Small RoCE frames through the real switch and back, without NICs: what the
 * switch itself can forward. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "plug.h"
#include "switch_bench.h"
#include "ticks.h"
#include "wire/wire.h"

enum {
	SLOT_SHIFT = 14,  /* of a queue pair number */
	SLOT_FIRST = 101, /* of the two ends at the switch, client first */
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

int switch_pump_open(struct side *s, const char *rack, const char *name,
		     unsigned number, struct switch_pump *out)
{
	uint32_t client = SLOT_FIRST + 2 * number, server = client + 1;
	bool is_client = s->role == SIDE_CLIENT;
	int rc = plug_open(rack, name, is_client ? client : server, address,
			   &out->plug);

	out->peer_slot = is_client ? server : client;
	return rc < 0 ? side_fail(s, rc, "plugging in") : 0;
}

void switch_pump_close(struct switch_pump *p)
{
	plug_close(p->plug);
	p->plug = NULL;
}

static int setup(struct side *s)
{
	const struct switch_param *p = s->param;
	struct switch_pump *pump = calloc(1, sizeof(*pump));

	if (!pump)
		return side_fail(s, -ENOMEM, "state");
	s->state = pump;
	return switch_pump_open(s, p->rack, SWITCH_NAME, 0, pump);
}

static void teardown(struct side *s)
{
	switch_pump_close(s->state);
	free(s->state);
}

int switch_pump_serve(struct side *s, const struct switch_pump *pump)
{
	uint8_t frame[WIRE_FRAME_MAX];
	size_t len = make_frame(pump->peer_slot, frame), got;
	struct plug *p = pump->plug;

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

static int serve(struct side *s)
{
	return switch_pump_serve(s, s->state);
}

int switch_pump_measure(struct side *s, const struct switch_pump *pump,
			uint32_t depth, uint64_t window_ns,
			struct side_result *out)
{
	uint8_t frame[WIRE_FRAME_MAX];
	size_t len = make_frame(pump->peer_slot, frame), bytes;
	struct plug *p = pump->plug;
	uint64_t end = side_end_ticks(s, window_ns), sent = 0, got = 0;
	uint64_t limit_ns = bench_now_ns() + window_ns + LOST_NS;
	bool over = false;

	while (!over || got < sent) {
		unsigned n = 0, m = 0;

		while (!over && sent - got < depth && plug_tx(p, frame, len)) {
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

static int measure(struct side *s, uint64_t window_ns, struct side_result *out)
{
	const struct switch_param *param = s->param;

	return switch_pump_measure(s, s->state, param->depth, window_ns, out);
}

const struct side_ops switch_pump_ops = {
	.setup = setup,
	.serve = serve,
	.measure = measure,
	.teardown = teardown,
};
