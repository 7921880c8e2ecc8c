/* SPDX-License-Identifier: Apache-2.0 */
/* Clients and servers at a switch, without NICs. */
#include "switch_ends.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "switchd/switchd.h"
#include "ticks.h"

enum {
	FRAMES = 64, /* that the server takes at one go */
	LOST_NS = 2000000000,
};

unsigned switch_ends_ip(const struct switch_param *p, unsigned last)
{
	return 10 * (p->number + 1) + last;
}

void switch_ends_address(const struct switch_param *p, unsigned last,
			 uint8_t ip[16])
{
	static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 127, 0, 7};

	memcpy(ip, mapped, 16);
	ip[15] = (uint8_t)switch_ends_ip(p, last);
}

uint32_t switch_ends_qpn(const struct switch_param *p, unsigned slot,
			 uint32_t low)
{
	return (slot + p->number) << SWITCH_SLOT_SHIFT | low;
}

struct wire_pkt switch_ends_packet(const struct switch_param *p, unsigned from,
				   unsigned to, uint8_t opcode)
{
	struct wire_pkt w = {.opcode = opcode,
			     .ttl = 64,
			     .src_port = 0xc000,
			     .pkey = 0xffff,
			     .syndrome = WIRE_ACK_UNLIMITED};

	switch_ends_address(p, from, w.src_ip);
	switch_ends_address(p, to, w.dst_ip);
	w.src_mac[0] = w.dst_mac[0] = 2;
	w.src_mac[5] = w.src_ip[15];
	w.dst_mac[5] = w.dst_ip[15];
	return w;
}

bool switch_ends_send(struct switch_ends *e, const struct wire_pkt *w)
{
	uint8_t frame[WIRE_FRAME_MAX];

	return plug_tx(e->plug, frame, wire_build(w, frame));
}

int switch_ends_say(struct side *s, const char *line)
{
	const struct switch_param *p = s->param;
	int err = switchd_ask(p->rack, p->name, line, NULL);

	return err ? side_fail(s, err, error_last()) : 0;
}

int switch_ends_setup(struct side *s, const struct switch_ends_ops *ops)
{
	const struct switch_param *p = s->param;
	bool is_client = s->role == SIDE_CLIENT;
	struct switch_ends *e = calloc(1, ops->bytes);
	uint8_t ip[16];
	int err;

	if (!e)
		return side_fail(s, -ENOMEM, "state");
	s->state = e;
	e->param = p;
	e->ops = ops;
	if (ops->begin)
		ops->begin(e);
	switch_ends_address(p, is_client ? SWITCH_IP_CLIENT : SWITCH_IP_SERVER,
			    ip);
	err = plug_open(p->rack, p->name,
			(is_client ? SWITCH_SLOT_CLIENT : SWITCH_SLOT_SERVER) +
				p->number,
			ip, &e->plug);
	if (err)
		return side_fail(s, err, "plugging in");
	return is_client && p->has_program ? ops->declare(s) : 0;
}

void switch_ends_teardown(struct side *s)
{
	struct switch_ends *e = s->state;

	plug_close(e->plug);
	free(e);
}

int switch_ends_serve(struct side *s)
{
	struct switch_ends *e = s->state;
	struct wire_pkt w;
	size_t len;

	while (!side_stopped(s)) {
		const uint8_t *frame;
		unsigned n = 0;

		for (; n < FRAMES && (frame = plug_rx(e->plug, &len)); n++) {
			if (wire_parse(frame, len, &w) == WIRE_OK)
				e->ops->execute(e, &w);
			plug_next(e->plug);
		}
		if (n) {
			plug_done(e->plug);
			plug_flush(e->plug);
		} else {
			sched_yield();
		}
	}
	return 0;
}

static int take(struct switch_ends *e, const uint8_t *frame, size_t len)
{
	struct wire_pkt w;
	uint32_t i;
	int err;

	if (wire_parse(frame, len, &w) != WIRE_OK)
		return -EPROTO;
	i = w.dest_qpn -
	    switch_ends_qpn(e->param, SWITCH_SLOT_CLIENT, SWITCH_FIRST_QPN);
	if (i >= SWITCH_CONNS || !e->conn[i].under_way ||
	    w.psn != e->conn[i].answer_psn)
		return -EPROTO;
	err = e->ops->take(e, i, &w);
	e->conn[i].under_way--;
	return err;
}

static uint64_t cpu_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Fills the connections; how many operations that is. */
static unsigned ask_all(struct switch_ends *e)
{
	unsigned m = 0;

	for (unsigned i = 0; i < SWITCH_CONNS; i++) {
		struct switch_conn *c = &e->conn[i];

		if (c->under_way < e->ops->depth && e->ops->ask(e, i)) {
			c->under_way++;
			m++;
		}
	}
	if (m)
		plug_flush(e->plug);
	return m;
}

int switch_ends_measure(struct side *s, uint64_t window_ns,
			struct side_result *out)
{
	uint64_t end = side_end_ticks(s, window_ns), under_way = 0, used_ns;
	uint64_t limit_ns = bench_now_ns() + window_ns + LOST_NS;
	struct switch_ends *e = s->state;
	const struct switch_param *p = e->param;
	const uint8_t *frame;
	bool over = false;
	size_t len;

	out->ops = 0;
	used_ns = cpu_ns(*p->pid);
	while (!over || under_way) {
		unsigned n = 0;

		under_way += over ? 0 : ask_all(e);
		for (; (frame = plug_rx(e->plug, &len)); n++) {
			if (take(e, frame, len))
				return side_fail(s, -EPROTO, "an answer");
			plug_next(e->plug);
		}
		under_way -= n;
		out->ops += n;
		if (n)
			plug_done(e->plug);
		else
			sched_yield();
		over = bench_ticks() >= end;
		if (over && bench_now_ns() > limit_ns)
			return side_fail(s, -EIO, "answers were lost");
	}
	used_ns = cpu_ns(*p->pid) - used_ns;
	out->more[SIDE_MORE_PER_CORE] =
		used_ns ? (double)out->ops * 1e3 / (double)used_ns : 0;
	return 0;
}
