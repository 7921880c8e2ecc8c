/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that are built and parsed by stamp: the same bytes, the same checks,
 * and everything that is not like the last ones still goes the long way. */
#include <string.h>

#include "core/qp_priv.h"
#include "nic_pair.h"

enum {
	ROUNDS = 40,
};

/* The frame on the wire is what wire_build makes of the packet in it. */
static void check_frame(struct pair *p)
{
	const struct pair_frame *f = &p->queue[p->tail % PAIR_QUEUE];
	uint8_t again[WIRE_FRAME_MAX];
	struct wire_pkt pkt;

	assert_int_equal(wire_parse(f->bytes, f->len, &pkt), WIRE_OK);
	assert_int_equal(wire_build(&pkt, again), f->len);
	assert_memory_equal(again, f->bytes, f->len);
}

static void run_checked(struct pair *p)
{
	bool more = true;

	while (more) {
		while (p->tail != p->head) {
			check_frame(p);
			pair_deliver(p);
		}
		more = nic_flush(p->side[0].nic);
		more |= nic_flush(p->side[1].nic);
		more |= p->tail != p->head;
	}
}

static void do_one(struct conn *c, enum ibv_wr_opcode opcode, uint32_t at,
		   uint32_t len)
{
	struct end *a = &c->e[0], *b = &c->e[1];

	for (uint32_t i = 0; i < len; i++) {
		a->mem[at + i] = (uint8_t)(i + len);
		b->mem[at + i] = (uint8_t)(i * 3 + at);
	}
	assert_int_equal(post(a, b, opcode, at, at, len), 0);
	run_checked(&c->p);
	expect_cqe(a->scq, at, IBV_WC_SUCCESS);
	assert_memory_equal(a->mem + at, b->mem + at, len);
}

static unsigned stamps_used(const struct nic *nic)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WIRE_STAMP_COUNT; i++)
		n += (nic->stamps.tx[i].key != 0) +
		     (nic->stamps.rx[i].stamp.frame_len != 0);
	return n;
}

static void test_used(void **state)
{
	static const uint32_t sizes[] = {64, 8, 1, 61, 0, 256, 1024, 3000};
	struct conn c;

	conn_init(&c, IBV_MTU_1024);
	for (unsigned s = 0; s < ARRAY_LEN(sizes); s++)
		for (uint32_t i = 0; i < ROUNDS; i++) {
			do_one(&c, IBV_WR_RDMA_READ, 100 + i, sizes[s]);
			do_one(&c, IBV_WR_RDMA_WRITE, 200 + i, sizes[s]);
		}
	assert_true(stamps_used(c.p.side[0].nic) > 4);
	assert_true(stamps_used(c.p.side[1].nic) > 4);
	conn_release(&c);
}

static void test_twice(void **state)
{
	struct conn c;
	unsigned i;

	/* Never twice in a row at one place: nothing is learnt for nothing. */
	conn_init(&c, IBV_MTU_1024);
	for (i = 0; i < 2 * ROUNDS; i++)
		do_one(&c, IBV_WR_RDMA_WRITE, 0, i % 2 ? 64 : 68);
	for (i = 0; i < WIRE_STAMP_COUNT; i++)
		assert_true((c.p.side[0].nic->stamps.tx[i].key >> 24 & 0xff) !=
			    WIRE_RC_WRITE_ONLY);
	conn_release(&c);
}

/* A frame of a known kind in which one bit is wrong has no effect. */
static void test_damaged(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct pair_frame *f;
	uint64_t drops, rx;

	conn_init(&c, IBV_MTU_1024);
	for (unsigned i = 0; i < 4; i++)
		do_one(&c, IBV_WR_RDMA_WRITE, 0, 64);
	for (size_t bit = 0; bit < (70 + 64 + 4) * 8; bit++) {
		uint8_t was[64];

		memcpy(was, b->mem, sizeof(was));
		a->mem[0]++;
		assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, bit, 0, 64), 0);
		f = &c.p.queue[c.p.tail % PAIR_QUEUE];
		f->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		rx = counter(b, NIC_C_rx_frames);
		drops = 0;
		for (int d = NIC_C_drop_short; d <= NIC_C_drop_blocked; d++)
			drops -= counter(b, (enum nic_counter)d);
		nic_input(b->nic, f->bytes, f->len, NIC_FROM_NET);
		for (int d = NIC_C_drop_short; d <= NIC_C_drop_blocked; d++)
			drops += counter(b, (enum nic_counter)d);
		assert_int_equal(counter(b, NIC_C_rx_frames), rx + 1);
		if (drops == 0) {
			/* MAC addresses, and what the ICRC leaves out. */
			assert_memory_equal(a->mem, b->mem, 64);
		} else {
			assert_memory_equal(was, b->mem, 64);
		}
		f->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		pair_run(&c.p);
		expect_cqe(a->scq, bit, IBV_WC_SUCCESS);
		assert_memory_equal(a->mem, b->mem, 64);
	}
	conn_release(&c);
}

/* Queue pairs between the same two addresses have one flow, another traffic
 * class is another flow, and its frames say so. */
static void test_flows(void **state)
{
	struct conn c;
	struct wire_stamps *st;
	struct wire_pkt out;
	uint32_t first, n;

	conn_init(&c, IBV_MTU_1024);
	st = &c.p.side[0].nic->stamps;
	for (unsigned i = 0; i < 4; i++)
		do_one(&c, IBV_WR_RDMA_READ, 0, 64);
	out = c.e[0].qp->out;
	first = c.e[0].qp->flow;
	assert_int_not_equal(first, 0);
	assert_int_equal(wire_stamps_flow(st, &out), first);
	out.tos = 0x60;
	n = wire_stamps_flow(st, &out);
	assert_int_not_equal(n, first);
	assert_int_equal(wire_stamps_flow(st, &out), n);
	/* More flows than are remembered: never a number twice. */
	for (unsigned i = 0; i < 3 * WIRE_FLOW_COUNT; i++) {
		uint32_t next;

		out.src_port = (uint16_t)(i + 1);
		next = wire_stamps_flow(st, &out);
		assert_true(next > n);
		n = next;
	}
	st->flow_last = UINT32_MAX;
	out.ttl++;
	assert_int_equal(wire_stamps_flow(st, &out), 0);

	/* Without a number there is no stamp, and all works. */
	c.e[0].qp->flow = 0;
	do_one(&c, IBV_WR_RDMA_READ, 0, 64);
	conn_restart(&c);
	do_one(&c, IBV_WR_RDMA_READ, 0, 64);
	conn_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_used),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_flows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
