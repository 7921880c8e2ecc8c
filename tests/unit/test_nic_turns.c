/* SPDX-License-Identifier: Apache-2.0 */
/* Turns among domains: who wants little has all of it, and who wants much has
 * half, beside one who wants everything. Frames are counted, flush by flush. */
#include "core/turn_priv.h"
#include "nic_pair.h"
#include "wire/wire.h"

enum {
	SMALL = 64,
	LARGE = 1 << 17,
	ROUNDS = 10,
};

struct world {
	struct conn modest;
	struct end greedy[2]; /* on the same NICs, in domains of their own */
};

static void world_init(struct world *w)
{
	struct pair *p = &w->modest.p;

	*w = (struct world){0};
	conn_init(&w->modest, IBV_MTU_1024);
	for (unsigned i = 0; i < 2; i++)
		end_init(&w->greedy[i], p->side[i].nic, IBV_QPT_RC);
	end_connect(&w->greedy[0], &w->greedy[1], IBV_MTU_1024);
	end_connect(&w->greedy[1], &w->greedy[0], IBV_MTU_1024);
}

static void world_release(struct world *w)
{
	end_release(&w->greedy[0]);
	end_release(&w->greedy[1]);
	conn_release(&w->modest);
}

/* As many READs as may be under way. */
static void ask(struct end *e, const struct end *peer, uint32_t len)
{
	for (unsigned i = 0; i < END_RD_ATOMIC; i++)
		assert_int_equal(post(e, peer, IBV_WR_RDMA_READ, i, 0, len), 0);
}

/* All that is under way arrives; answers to the greedy one are counted and go
 * no further, so that it asks for nothing new. */
static unsigned deliver(struct world *w)
{
	struct pair *p = &w->modest.p;
	uint32_t greedy = nic_qp_number(w->greedy[0].qp);
	unsigned count = 0;

	while (p->tail != p->head) {
		const struct pair_frame *f = &p->queue[p->tail % PAIR_QUEUE];
		struct wire_pkt pkt;

		assert_int_equal(wire_parse(f->bytes, f->len, &pkt), WIRE_OK);
		if (pkt.dest_qpn == greedy) {
			p->tail++;
			count++;
		} else {
			pair_deliver(p);
		}
	}
	return count;
}

static void test_done_beside_greedy(void **state)
{
	struct world w;
	struct nic *near, *node;
	unsigned greedy = 0;

	world_init(&w);
	near = w.modest.p.side[0].nic;
	node = w.modest.p.side[1].nic;
	ask(&w.greedy[0], &w.greedy[1], LARGE);
	(void)nic_flush(near);
	for (unsigned round = 0; round < ROUNDS; round++) {
		ask(&w.modest.e[0], &w.modest.e[1], SMALL);
		(void)nic_flush(near);
		greedy += deliver(&w);
		(void)nic_flush(node);
		greedy += deliver(&w);
		for (unsigned i = 0; i < END_RD_ATOMIC; i++)
			expect_cqe(w.modest.e[0].scq, i, IBV_WC_SUCCESS);
	}
	/* It gets on, too; packets of this size count twice. */
	assert_in_range(greedy, ROUNDS,
			NIC_TURN_CROWDED + ROUNDS * NIC_TURN_GREEDY);
	world_release(&w);
}

/* Answers that the node has sent to a domain, in the measure of turns. */
static unsigned deliver_none(struct world *w, unsigned work[2])
{
	struct pair *p = &w->modest.p;
	uint32_t greedy = nic_qp_number(w->greedy[0].qp);
	unsigned count = 0;

	for (; p->tail != p->head; p->tail++, count++) {
		const struct pair_frame *f = &p->queue[p->tail % PAIR_QUEUE];
		struct wire_pkt pkt;

		assert_int_equal(wire_parse(f->bytes, f->len, &pkt), WIRE_OK);
		work[pkt.dest_qpn == greedy] +=
			1 + (unsigned)(f->len >> NIC_TURN_SHIFT);
	}
	return count;
}

/* Both have more to send than a flush takes. */
static void test_both_greedy(void **state)
{
	unsigned work[2] = {0};
	struct world w;
	struct nic *near, *node;

	world_init(&w);
	near = w.modest.p.side[0].nic;
	node = w.modest.p.side[1].nic;
	/* One asks first and for more at a time. */
	ask(&w.greedy[0], &w.greedy[1], LARGE);
	(void)nic_flush(near);
	(void)deliver(&w);
	ask(&w.modest.e[0], &w.modest.e[1], LARGE / 4);
	(void)nic_flush(near);
	(void)deliver(&w);
	(void)deliver_none(&w, work);
	work[0] = work[1] = 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		(void)nic_flush(node);
		assert_true(deliver_none(&w, work) > 0);
	}
	assert_true(work[0] >= work[1]);
	assert_true(work[1] > 0);
	world_release(&w);
}

/* However long the other one has been served alone: one flush is enough. */
static void test_latecomer(void **state)
{
	struct world w;
	struct nic *near, *node;

	world_init(&w);
	near = w.modest.p.side[0].nic;
	node = w.modest.p.side[1].nic;
	ask(&w.greedy[0], &w.greedy[1], LARGE);
	(void)nic_flush(near);
	(void)deliver(&w);
	for (unsigned round = 0; round < ROUNDS; round++) {
		(void)nic_flush(node);
		(void)deliver(&w);
	}
	ask(&w.modest.e[0], &w.modest.e[1], SMALL);
	(void)nic_flush(near);
	(void)deliver(&w);
	(void)nic_flush(node);
	(void)deliver(&w);
	for (unsigned i = 0; i < END_RD_ATOMIC; i++)
		expect_cqe(w.modest.e[0].scq, i, IBV_WC_SUCCESS);
	world_release(&w);
}

/* A domain that has the turns of another one: both together have what one
 * would have, and neither ends before the other. */
static void test_shared_turns(void **state)
{
	struct nic_pd *one, *two;
	struct world w;
	struct nic *nic;

	world_init(&w);
	nic = w.modest.p.side[0].nic;
	assert_int_equal(nic_pd_create(nic, &one), 0);
	assert_int_equal(nic_pd_create(nic, &two), 0);
	assert_int_equal(nic_pd_share_turns(two, one), 0);
	assert_ptr_equal(two->turns, one);
	assert_int_equal(nic_pd_share_turns(two, one), -EINVAL);
	assert_int_equal(nic_pd_share_turns(one, two), -EINVAL);
	assert_int_equal(nic_pd_destroy(one), -EBUSY);
	assert_int_equal(nic_pd_destroy(two), 0);
	assert_int_equal(nic_pd_destroy(one), 0);
	world_release(&w);
}

/* Without others there are no short turns. */
static void test_greedy_alone(void **state)
{
	struct world w;
	struct nic *node;
	unsigned greedy;

	world_init(&w);
	node = w.modest.p.side[1].nic;
	ask(&w.greedy[0], &w.greedy[1], LARGE);
	(void)nic_flush(w.modest.p.side[0].nic);
	greedy = deliver(&w);
	for (unsigned round = 0; round < ROUNDS; round++) {
		(void)nic_flush(node);
		greedy += deliver(&w);
	}
	assert_true(greedy >= ROUNDS * NIC_TURN_PACKETS);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_done_beside_greedy),
		cmocka_unit_test(test_both_greedy),
		cmocka_unit_test(test_latecomer),
		cmocka_unit_test(test_shared_turns),
		cmocka_unit_test(test_greedy_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
