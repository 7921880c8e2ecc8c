/* SPDX-License-Identifier: Apache-2.0 */
/* Turns among domains: who is done with his turn has all of it, beside one who
 * never is. Frames are counted, flush by flush. */
#include "core/nic_priv.h"
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
		cmocka_unit_test(test_greedy_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
