/* SPDX-License-Identifier: Apache-2.0 */
/* Compare-and-swaps of one word through a switch that runs swordbox. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "switch_ends.h"

enum {
	SHARED_QPN = 2,
	OWN_QPN = 77, /* of the switch */
	WORDS = 64,
};

#define WORD_VA 0x10000ull

struct state {
	struct switch_ends ends;
	uint64_t asked[SWITCH_CONNS][SWITCH_CONN_DEPTH];
	uint64_t value; /* of the word: as the server has it, as is known */
};

static int declare(struct side *s)
{
	const struct switch_param *p = s->param;
	char line[SWITCH_SAY_BYTES];
	int err;

	snprintf(line, sizeof(line),
		 "tell swordbox server ip=::ffff:127.0.7.%u name=s%u qpn=%u "
		 "own_ip=::ffff:127.0.7.%u own_qpn=%u psn=0",
		 switch_ends_ip(p, SWITCH_IP_SERVER), p->number,
		 switch_ends_qpn(p, SWITCH_SLOT_SERVER, SHARED_QPN),
		 switch_ends_ip(p, SWITCH_IP_OWN), OWN_QPN);
	err = switch_ends_say(s, line);
	snprintf(line, sizeof(line),
		 "tell swordbox region server=::ffff:127.0.7.%u rkey=%u "
		 "va=%llu len=%u",
		 switch_ends_ip(p, SWITCH_IP_SERVER), SWITCH_RKEY, WORD_VA,
		 WORDS * 8);
	if (!err)
		err = switch_ends_say(s, line);
	for (unsigned i = 0; i < SWITCH_CONNS && !err; i++) {
		snprintf(line, sizeof(line),
			 "tell swordbox conn server=::ffff:127.0.7.%u "
			 "server_qpn=%u client=::ffff:127.0.7.%u "
			 "client_qpn=%u psn=0%s",
			 switch_ends_ip(p, SWITCH_IP_SERVER),
			 switch_ends_qpn(p, SWITCH_SLOT_SERVER,
					 SWITCH_FIRST_QPN + i),
			 switch_ends_ip(p, SWITCH_IP_CLIENT),
			 switch_ends_qpn(p, SWITCH_SLOT_CLIENT,
					 SWITCH_FIRST_QPN + i),
			 p->is_moved ? " moved=1" : "");
		err = switch_ends_say(s, line);
	}
	return err;
}

/* Every packet is acknowledged. */
static void execute(struct switch_ends *e, const struct wire_pkt *w)
{
	struct state *st = container_of(e, struct state, ends);
	const struct switch_param *p = e->param;
	uint32_t low = w->dest_qpn & ((1u << SWITCH_SLOT_SHIFT) - 1);
	bool is_shared = low == SHARED_QPN;
	struct wire_pkt a = switch_ends_packet(
		p, SWITCH_IP_SERVER,
		is_shared ? SWITCH_IP_OWN : SWITCH_IP_CLIENT, WIRE_RC_ACK);
	uint8_t bytes[8];

	a.dest_qpn = is_shared ? OWN_QPN
			       : switch_ends_qpn(p, SWITCH_SLOT_CLIENT, low);
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
	(void)!switch_ends_send(e, &a);
}

static bool ask(struct switch_ends *e, unsigned i)
{
	struct state *st = container_of(e, struct state, ends);
	struct switch_conn *c = &e->conn[i];
	struct wire_pkt w = switch_ends_packet(e->param, SWITCH_IP_CLIENT,
					       SWITCH_IP_SERVER, WIRE_RC_CAS);

	w.dest_qpn = switch_ends_qpn(e->param, SWITCH_SLOT_SERVER,
				     SWITCH_FIRST_QPN + i);
	w.psn = c->next_psn;
	w.ack_req = true;
	w.rkey = SWITCH_RKEY;
	w.va = WORD_VA;
	w.atomic = (struct atomic_op){.compare = st->value,
				      .swap_add = st->value + 1,
				      .compare_mask = UINT64_MAX,
				      .swap_mask = UINT64_MAX};
	if (!switch_ends_send(e, &w))
		return false;
	st->asked[i][c->next_psn % SWITCH_CONN_DEPTH] = st->value;
	c->next_psn = wire_psn_add(c->next_psn, 1);
	return true;
}

/* The word only grows. */
static int take(struct switch_ends *e, unsigned i, const struct wire_pkt *w)
{
	struct state *st = container_of(e, struct state, ends);
	struct switch_conn *c = &e->conn[i];
	uint64_t found = w->original;

	if (w->opcode != WIRE_RC_ATOMIC_ACK ||
	    found + SWITCH_CONNS * SWITCH_CONN_DEPTH < st->value)
		return -EPROTO;
	c->answer_psn = wire_psn_add(c->answer_psn, 1);
	if (found == st->asked[i][w->psn % SWITCH_CONN_DEPTH])
		found++;
	st->value = found > st->value ? found : st->value;
	return 0;
}

static const struct switch_ends_ops ends = {
	.bytes = sizeof(struct state),
	.depth = SWITCH_CONN_DEPTH,
	.declare = declare,
	.execute = execute,
	.ask = ask,
	.take = take,
};

static int setup(struct side *s)
{
	return switch_ends_setup(s, &ends);
}

const struct side_ops switch_sword_ops = {
	.setup = setup,
	.serve = switch_ends_serve,
	.measure = switch_ends_measure,
	.teardown = switch_ends_teardown,
};
