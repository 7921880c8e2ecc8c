/* SPDX-License-Identifier: Apache-2.0 */
/* The fault program: each fault at the asked rate, its options, its schedule,
 * its seed. */
#include "tor_rig.h"

#include "base/error.h"
#include "base/json_out.h"

enum {
	MANY = 4000,
};

static uint8_t bytes[256];

static void send_psn(struct rig *r, uint32_t psn, uint8_t opcode)
{
	struct wire_pkt pkt = {.opcode = opcode, .psn = psn};

	if (wire_opcodes[opcode].flags & WIRE_OP_PAYLOAD) {
		pkt.payload = bytes;
		pkt.payload_len = pkt.dma_len = sizeof(bytes);
	}
	rig_addresses(&pkt, 1, 2);
	rig_send(r, 0, &pkt);
}

static struct rig *make(const char *options)
{
	struct rig *r = rig_create(2, 24);

	rig_introduce(r, 2);
	assert_int_equal(tor_program_add(r->tor, "fault", options), 0);
	return r;
}

static unsigned run(struct rig *r, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		send_psn(r, i, WIRE_RC_WRITE_ONLY);
	return r->ports[1].got;
}

static void loses(void **state)
{
	struct rig *r = make("loss=10%,seed=5");
	unsigned got = run(r, MANY);

	assert_in_range(got, MANY * 87 / 100, MANY * 93 / 100);
	assert_int_equal(tor_counter(r->tor, TOR_C_program_drops), MANY - got);
	rig_destroy(r);
}

static void same_seed_same_fate(void **state)
{
	struct rig *a = make("loss=0.2,seed=77");
	struct rig *b = make("loss=0.2,seed=77");
	unsigned got = run(a, 500);

	assert_int_equal(run(b, 500), got);
	for (unsigned i = 0; i < got; i++)
		assert_int_equal(rig_got(a, 1, i).psn, rig_got(b, 1, i).psn);
	rig_destroy(a);
	rig_destroy(b);
}

static void doubles(void **state)
{
	struct rig *r = make("dup=100%");

	assert_int_equal(run(r, 100), 200);
	assert_int_equal(rig_got(r, 1, 0).psn, rig_got(r, 1, 1).psn);
	rig_destroy(r);
}

static void damages(void **state)
{
	struct rig *r = make("corrupt=100%,seed=3");
	unsigned bad = 0;

	assert_int_equal(run(r, 300), 300);
	for (unsigned i = 0; i < 300; i++) {
		struct wire_pkt pkt;

		bad += wire_parse(r->ports[1].frame[i], r->ports[1].len[i],
				  &pkt) != WIRE_OK;
	}
	/* Bits that the ICRC leaves out (TTL, ECN) may be all that changed. */
	assert_true(bad > 285);
	rig_destroy(r);
	r = make("forge=100%");
	assert_int_equal(run(r, 50), 50);
	for (unsigned i = 0; i < 50; i++)
		assert_memory_not_equal(rig_got(r, 1, i).payload, bytes,
					sizeof(bytes));
	/* Nothing to forge in an ACK. */
	send_psn(r, 1, WIRE_RC_ACK);
	assert_int_equal(r->ports[1].got, 51);
	rig_destroy(r);
}

static void delays(void **state)
{
	struct rig *r = make("delay=1ms..2ms");

	assert_int_equal(run(r, 100), 0);
	rig_pass(r, 900000);
	assert_int_equal(r->ports[1].got, 0);
	rig_pass(r, 1200000);
	assert_int_equal(r->ports[1].got, 100);
	/* More than can be held pass at once. */
	rig_clear(r);
	assert_int_equal(run(r, TOR_FAULT_HELD + 10), 10);
	assert_true(tor_next_deadline_ns(r->tor) != UINT64_MAX);
	/* Its port goes while frames are held. */
	tor_port_remove(r->ports[0].port);
	rig_pass(r, 3000000);
	assert_int_equal(r->ports[1].got, TOR_FAULT_HELD + 10);
	rig_destroy(r);
}

static void reorders(void **state)
{
	struct rig *r = make("reorder=20%,reorder_by=10us,seed=9");
	unsigned late = 0;

	for (unsigned i = 0; i < 1000; i++) {
		send_psn(r, i, WIRE_RC_WRITE_ONLY);
		rig_pass(r, 1000);
	}
	rig_pass(r, 1000000);
	assert_int_equal(r->ports[1].got, 1000);
	for (unsigned i = 1; i < 1000; i++)
		late += rig_got(r, 1, i).psn < rig_got(r, 1, i - 1).psn;
	assert_in_range(late, 50, 250);
	rig_destroy(r);
}

static void follows_a_pattern(void **state)
{
	struct rig *r = make("pattern=.x.2");

	assert_int_equal(run(r, 8), 8);
	assert_int_equal(rig_got(r, 1, 0).psn, 0);
	assert_int_equal(rig_got(r, 1, 1).psn, 2);
	assert_int_equal(rig_got(r, 1, 2).psn, 3);
	assert_int_equal(rig_got(r, 1, 3).psn, 3);
	rig_destroy(r);
	r = make("nth=10");
	assert_int_equal(run(r, 100), 90);
	rig_destroy(r);
}

static void follows_a_schedule(void **state)
{
	struct rig *r = make("loss=100%,when=1ms..2ms,every=10ms");

	assert_int_equal(run(r, 10), 10);
	rig_pass(r, 1500000);
	assert_int_equal(run(r, 10), 10);
	rig_pass(r, 1000000);
	assert_int_equal(run(r, 10), 20);
	rig_pass(r, 9000000); /* at 11.5 ms: the second time */
	assert_int_equal(run(r, 10), 20);
	rig_destroy(r);
}

static void picks_kinds_and_ports(void **state)
{
	struct rig *r = make("loss=100%,only=ack+read;loss=100%,in=p1");
	struct wire_pkt back = {.opcode = WIRE_RC_SEND_ONLY};

	send_psn(r, 1, WIRE_RC_ACK);
	send_psn(r, 2, WIRE_RC_READ_REQ);
	send_psn(r, 3, WIRE_RC_WRITE_ONLY);
	assert_int_equal(r->ports[1].got, 1);
	assert_int_equal(rig_got(r, 1, 0).psn, 3);
	rig_addresses(&back, 2, 1);
	rig_send(r, 1, &back);
	assert_int_equal(r->ports[0].got, 0);
	rig_destroy(r);
}

/* Only RoCE packets suffer, unless told otherwise. */
static void leaves_others_alone(void **state)
{
	struct rig *r = make("loss=100%");
	uint8_t arp[60] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6};

	rig_input(r, 0, arp, sizeof(arp));
	assert_int_equal(r->ports[1].got, 1);
	assert_int_equal(
		tor_control(r->tor, "fault reload loss=100%,only=all", NULL),
		0);
	rig_input(r, 0, arp, sizeof(arp));
	assert_int_equal(r->ports[1].got, 1);
	rig_destroy(r);
}

static void cuts(void **state)
{
	struct rig *r = rig_create(3, 24);
	struct wire_pkt pkt = {.opcode = WIRE_RC_SEND_ONLY};

	rig_introduce(r, 3);
	assert_int_equal(tor_program_add(r->tor, "fault", "cut=p0/p1"), 0);
	rig_addresses(&pkt, 1, 2);
	rig_send(r, 0, &pkt);
	rig_addresses(&pkt, 2, 1);
	rig_send(r, 1, &pkt);
	assert_int_equal(r->ports[0].got + r->ports[1].got, 0);
	rig_addresses(&pkt, 1, 3);
	rig_send(r, 0, &pkt);
	assert_int_equal(r->ports[2].got, 1);
	/* Healed while it runs. A bad reload changes nothing. */
	assert_int_equal(tor_control(r->tor, "fault reload cut=p0", NULL),
			 -EINVAL);
	rig_addresses(&pkt, 1, 2);
	rig_send(r, 0, &pkt);
	assert_int_equal(r->ports[1].got, 0);
	assert_int_equal(tor_control(r->tor, "fault reload", NULL), 0);
	rig_send(r, 0, &pkt);
	assert_int_equal(r->ports[1].got, 1);
	rig_destroy(r);
}

static void refuses_nonsense(void **state)
{
	static const char *const bad[] = {
		"loss",	       "loss=",
		"loss=101%",   "loss=-1",
		"loss=1%%",    "loss=nan",
		"delay=3",     "delay=2ms..1ms",
		"pattern=abc", "pattern=",
		"when=2s",     "when=2s..1s",
		"only=what",   "cut=a",
		"cut=/b",      "nth=0",
		"nth=-1",      "every=1s",
		"speed=1",     "when=1s..2s,every=1s",
		"seed=x",      "in=0123456789012345678901234567890123456789",
	};
	struct rig *r = rig_create(1, 24);

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(tor_program_add(r->tor, "fault", bad[i]),
				 -EINVAL);
		assert_true(error_last()[0]);
	}
	rig_destroy(r);
}

/* Two programs in a row, and the second sees what the first makes. */
static void programs_stand_in_order(void **state)
{
	struct rig *r = make("dup=100%");

	assert_int_equal(tor_program_add(r->tor, "fault", "nth=2"), 0);
	assert_int_equal(run(r, 10), 10);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loses),
		cmocka_unit_test(same_seed_same_fate),
		cmocka_unit_test(doubles),
		cmocka_unit_test(damages),
		cmocka_unit_test(delays),
		cmocka_unit_test(reorders),
		cmocka_unit_test(follows_a_pattern),
		cmocka_unit_test(follows_a_schedule),
		cmocka_unit_test(picks_kinds_and_ports),
		cmocka_unit_test(leaves_others_alone),
		cmocka_unit_test(cuts),
		cmocka_unit_test(refuses_nonsense),
		cmocka_unit_test(programs_stand_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
