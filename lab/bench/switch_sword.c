/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compare-and-swaps of one word through a switch that runs swordbox, without
 * NICs: a client with several connections, and a server that executes what
 * reaches it and acknowledges every packet. What the switch can do is the
 * number of operations per second of its own processor time, which other load
 * does not change.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "plug.h"
#include "switch_bench.h"
#include "switchd/switchd.h"
#include "ticks.h"
#include "wire/wire.h"

enum {
	SLOT_SHIFT = 14, /* of a queue pair number */
	/* Of the two ends, by role, and of each subject. */
	SLOT_OF_CLIENT = 111,
	SLOT_OF_SERVER = 121,
	CONNS = 16,
	/* Numbers of their queue pairs below the slot's. */
	FIRST_QPN = 16,
	SHARED_QPN = 2,
	OWN_QPN = 77, /* of the switch */
	RKEY = 4711,
	WORDS = 64,
	SAY_BYTES = 256,
	LOST_NS = 2000000000,
};

#define WORD_VA 0x10000ull

struct conn {
	uint32_t next_psn;   /* to be sent */
	uint32_t answer_psn; /* that is waited for */
	uint64_t asked[SWITCH_CONN_DEPTH];
};

struct state {
	struct plug *plug;
	struct conn conn[CONNS];
	uint64_t value; /* of the word: as the server has it, as is known */
	unsigned at;	/* whose turn it is to send */
};

static const struct switch_param *param_of(const struct side *s)
{
	return s->param;
}

/* Each subject's server and client have addresses of their own. */
static void address(const struct switch_param *p, unsigned last, uint8_t ip[16])
{
	static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 127, 0, 7};

	memcpy(ip, mapped, 16);
	ip[15] = (uint8_t)(10 * (p->number + 1) + last);
}

enum {
	CLIENT_IP = 1,
	SERVER_IP,
	SWITCH_IP,
};

static uint32_t qpn(const struct switch_param *p, unsigned slot, uint32_t low)
{
	return (slot + p->number) << SLOT_SHIFT | low;
}

static struct wire_pkt packet(const struct switch_param *p, unsigned from,
			      unsigned to, uint8_t opcode)
{
	struct wire_pkt w = {.opcode = opcode,
			     .ttl = 64,
			     .src_port = 0xc000,
			     .pkey = 0xffff,
			     .syndrome = WIRE_ACK_UNLIMITED};

	address(p, from, w.src_ip);
	address(p, to, w.dst_ip);
	w.src_mac[0] = w.dst_mac[0] = 2;
	w.src_mac[5] = w.src_ip[15];
	w.dst_mac[5] = w.dst_ip[15];
	return w;
}

/* ---- what the switch is told --------------------------------------------- */

static int say(struct side *s, const char *line)
{
	const struct switch_param *p = param_of(s);
	int err = switchd_ask(p->rack, p->name, line, NULL);

	return err ? side_fail(s, err, error_last()) : 0;
}

static int declare(struct side *s)
{
	const struct switch_param *p = param_of(s);
	unsigned ip = 10 * (p->number + 1);
	char line[SAY_BYTES];
	int err;

	snprintf(line, sizeof(line),
		 "tell swordbox server ip=::ffff:127.0.7.%u name=s%u qpn=%u "
		 "own_ip=::ffff:127.0.7.%u own_qpn=%u psn=0",
		 ip + SERVER_IP, p->number, qpn(p, SLOT_OF_SERVER, SHARED_QPN),
		 ip + SWITCH_IP, OWN_QPN);
	err = say(s, line);
	snprintf(line, sizeof(line),
		 "tell swordbox region server=::ffff:127.0.7.%u rkey=%u "
		 "va=%llu len=%u",
		 ip + SERVER_IP, RKEY, WORD_VA, WORDS * 8);
	if (!err)
		err = say(s, line);
	for (unsigned i = 0; i < CONNS && !err; i++) {
		snprintf(line, sizeof(line),
			 "tell swordbox conn server=::ffff:127.0.7.%u "
			 "server_qpn=%u client=::ffff:127.0.7.%u "
			 "client_qpn=%u psn=0%s",
			 ip + SERVER_IP, qpn(p, SLOT_OF_SERVER, FIRST_QPN + i),
			 ip + CLIENT_IP, qpn(p, SLOT_OF_CLIENT, FIRST_QPN + i),
			 p->is_moved ? " moved=1" : "");
		err = say(s, line);
	}
	return err;
}

static int setup(struct side *s)
{
	const struct switch_param *p = param_of(s);
	bool is_client = s->role == SIDE_CLIENT;
	struct state *st = calloc(1, sizeof(*st));
	uint8_t ip[16];
	int err;

	if (!st)
		return side_fail(s, -ENOMEM, "state");
	s->state = st;
	address(p, is_client ? CLIENT_IP : SERVER_IP, ip);
	err = plug_open(p->rack, p->name,
			(is_client ? SLOT_OF_CLIENT : SLOT_OF_SERVER) +
				p->number,
			ip, &st->plug);
	if (err)
		return side_fail(s, err, "plugging in");
	return is_client && p->has_program ? declare(s) : 0;
}

static void teardown(struct side *s)
{
	struct state *st = s->state;

	plug_close(st->plug);
	free(st);
}

/* ---- the server -----------------------------------------------------------
 */

/* Executes a request and sends what a NIC would. */
static void execute(const struct switch_param *p, struct state *st,
		    const struct wire_pkt *w)
{
	bool is_shared = (w->dest_qpn & ((1u << SLOT_SHIFT) - 1)) == SHARED_QPN;
	struct wire_pkt a = packet(
		p, SERVER_IP, is_shared ? SWITCH_IP : CLIENT_IP, WIRE_RC_ACK);
	uint8_t frame[WIRE_FRAME_MAX];
	uint8_t bytes[8];

	a.dest_qpn = is_shared ? OWN_QPN
			       : qpn(p, SLOT_OF_CLIENT,
				     w->dest_qpn & ((1u << SLOT_SHIFT) - 1));
	a.psn = w->psn;
	a.msn = (w->psn + 1) & WIRE_PSN_MASK;
	if (w->opcode == WIRE_RC_WRITE_ONLY && w->payload_len == 8) {
		memcpy(&st->value, w->payload, 8);
	} else if (w->opcode == WIRE_RC_CAS) {
		a.opcode = WIRE_RC_ATOMIC_ACK;
		a.original = st->value;
		st->value = atomic_op_result(&w->atomic, st->value);
	} else if (w->opcode == WIRE_RC_READ_REQ) {
		memcpy(bytes, &st->value, 8);
		a.opcode = WIRE_RC_READ_RESP_ONLY;
		a.payload = bytes;
		a.payload_len = 8;
	}
	(void)!plug_tx(st->plug, frame, wire_build(&a, frame));
}

static int serve(struct side *s)
{
	struct state *st = s->state;
	struct plug *p = st->plug;
	struct wire_pkt w;
	size_t len;

	while (!side_stopped(s)) {
		const uint8_t *frame;
		unsigned n = 0;

		for (; n < 64 && (frame = plug_rx(p, &len)); n++) {
			if (wire_parse(frame, len, &w) == WIRE_OK)
				execute(param_of(s), st, &w);
			plug_next(p);
		}
		if (n) {
			plug_done(p);
			plug_flush(p);
		} else {
			sched_yield();
		}
	}
	return 0;
}

/* ---- the client -----------------------------------------------------------
 */

static bool ask(const struct switch_param *p, struct state *st, unsigned i)
{
	struct conn *c = &st->conn[i];
	struct wire_pkt w = packet(p, CLIENT_IP, SERVER_IP, WIRE_RC_CAS);
	uint8_t frame[WIRE_FRAME_MAX];

	w.dest_qpn = qpn(p, SLOT_OF_SERVER, FIRST_QPN + i);
	w.psn = c->next_psn;
	w.ack_req = true;
	w.rkey = RKEY;
	w.va = WORD_VA;
	w.atomic = (struct atomic_op){.compare = st->value,
				      .swap_add = st->value + 1,
				      .compare_mask = UINT64_MAX,
				      .swap_mask = UINT64_MAX};
	if (!plug_tx(st->plug, frame, wire_build(&w, frame)))
		return false;
	c->asked[c->next_psn % SWITCH_CONN_DEPTH] = st->value;
	c->next_psn = wire_psn_add(c->next_psn, 1);
	return true;
}

/* -EPROTO: it is no answer to what was asked. The word only grows. */
static int take(const struct switch_param *p, struct state *st,
		const uint8_t *frame, size_t len)
{
	struct wire_pkt w;
	struct conn *c;
	uint32_t i;

	if (wire_parse(frame, len, &w) != WIRE_OK)
		return -EPROTO;
	i = w.dest_qpn - qpn(p, SLOT_OF_CLIENT, FIRST_QPN);
	if (w.opcode != WIRE_RC_ATOMIC_ACK || i >= CONNS)
		return -EPROTO;
	c = &st->conn[i];
	if (w.psn != c->answer_psn ||
	    w.original + CONNS * SWITCH_CONN_DEPTH < st->value)
		return -EPROTO;
	c->answer_psn = wire_psn_add(c->answer_psn, 1);
	if (w.original == c->asked[w.psn % SWITCH_CONN_DEPTH])
		w.original++;
	st->value = w.original > st->value ? w.original : st->value;
	return 0;
}

static bool may_ask(const struct conn *c)
{
	return wire_psn_diff(c->next_psn, c->answer_psn) < SWITCH_CONN_DEPTH;
}

static uint64_t cpu_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int measure(struct side *s, uint64_t window_ns, struct side_result *out)
{
	const struct switch_param *p = param_of(s);
	uint64_t end = side_end_ticks(s, window_ns), under_way = 0, used_ns;
	uint64_t limit_ns = bench_now_ns() + window_ns + LOST_NS;
	struct state *st = s->state;
	const uint8_t *frame;
	bool over = false;
	size_t len;

	out->ops = 0;
	used_ns = cpu_ns(*p->pid);
	while (!over || under_way) {
		unsigned n = 0, m = 0;

		for (unsigned i = 0; i < CONNS && !over; i++)
			if (may_ask(&st->conn[i]) && ask(p, st, i))
				m++;
		if (m)
			plug_flush(st->plug);
		for (; (frame = plug_rx(st->plug, &len)); n++) {
			if (take(p, st, frame, len))
				return side_fail(s, -EPROTO, "an answer");
			plug_next(st->plug);
		}
		under_way += m;
		under_way -= n;
		out->ops += n;
		if (n)
			plug_done(st->plug);
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

const struct side_ops switch_sword_ops = {
	.setup = setup,
	.serve = serve,
	.measure = measure,
	.teardown = teardown,
};
