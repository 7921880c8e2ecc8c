/* SPDX-License-Identifier: Apache-2.0 */
/* Walks that a switch carries on: what a node makes of them, which it drops and
 * which it sends back, and how those wait that ask for it. */
#include "nic_walk.h"

enum {
	QKEY = 0x4321,
	HOPS = 4,
	SPACE = 7,
	LIST = 256,
	PAD = sizeof(struct walk_pad),
};

#define SWITCH_QPN (1u << NIC_QPN_INDEX_BITS | 5)

/* The second end takes walks; in place of the first is a switch. */
struct bed {
	struct conn c;
	struct follower f;
	struct end *e;
	uint8_t payload[WALK_WIRE_ORIGIN + PAD];
};

static void set_space(struct nic_mr *mr, uint32_t space)
{
	const struct nic_place place = {.space = space, .count = 1};

	assert_int_equal(nic_mr_set_place(mr, &place), 0);
}

static void start(struct bed *b)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	assert_int_equal(nic_qp_modify(b->e->qp, &a,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT | IBV_QP_QKEY),
			 0);
	qp_to(b->e->qp, IBV_QPS_RTR);
	a.qp_state = IBV_QPS_RTS;
	assert_int_equal(
		nic_qp_modify(b->e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void init(struct bed *b)
{
	const uint8_t *from;

	memset(b, 0, sizeof(*b));
	pair_init(&b->c.p);
	for (unsigned i = 0; i < 2; i++)
		end_init(&b->c.e[i], b->c.p.side[i].nic, IBV_QPT_UD);
	b->e = &b->c.e[1];
	from = nic_get_config(b->c.e[0].nic)->gids[0].ip;
	assert_int_equal(nic_qp_set_hops(b->e->qp, 0, from), -EINVAL);
	assert_int_equal(nic_qp_set_hops(b->e->qp, NIC_HOPS_MAX + 1, from),
			 -EINVAL);
	assert_int_equal(nic_qp_set_hops(b->e->qp, HOPS, from), 0);
	assert_int_equal(nic_qp_set_hops(b->e->qp, HOPS, from), -EINVAL);
	follower_init(&b->f, HOPS);
	assert_int_equal(nic_set_walker(b->e->nic, &b->f.hook), 0);
	set_space(b->e->mr, SPACE);
	start(b);
	for (unsigned i = 0; i < 3; i++)
		*(struct walk_node *)(b->e->mem + LIST + i * 64) =
			(struct walk_node){.key = i + 1,
					   .value = 1000 + i,
					   .next = i < 2 ? LIST + (i + 1) * 64
							 : 0};
	for (unsigned i = 0; i < WALK_WIRE_ORIGIN; i++)
		b->payload[i] = (uint8_t)(i * 5);
}

static void release(struct bed *b)
{
	conn_release(&b->c);
}

static struct wire_pkt carried_on(struct bed *b, uint64_t program, uint64_t key)
{
	struct wire_pkt pkt = {
		.opcode = WIRE_UD_WALK_ON,
		.ttl = 64,
		.pkey = 0xffff,
		.dest_qpn = nic_qp_number(b->e->qp),
		.qkey = QKEY,
		.src_qpn = SWITCH_QPN,
		.payload = b->payload,
		.payload_len = sizeof(b->payload),
		.walk = {.at = LIST,
			 .program = program,
			 .key = b->e->key,
			 .left = 9,
			 .took = 4,
			 .pad_bytes = PAD,
			 .hops = 6},
	};
	struct walk_pad pad = {.key = key};

	memcpy(b->payload + WALK_WIRE_ORIGIN, &pad, sizeof(pad));
	memcpy(pkt.src_ip, nic_get_config(b->c.e[0].nic)->gids[0].ip, 16);
	memcpy(pkt.dst_ip, nic_get_config(b->e->nic)->gids[0].ip, 16);
	return pkt;
}

static void arrive(struct bed *b, const struct wire_pkt *pkt)
{
	uint8_t frame[WIRE_FRAME_MAX];
	size_t len = wire_build(pkt, frame);

	nic_input(b->e->nic, frame, len, NIC_FROM_NET);
}

/* Until the node has nothing to do any more; nobody takes its frames. */
static void work(struct bed *b)
{
	for (unsigned i = 0; i < 100; i++)
		if (!nic_flush(b->e->nic) && !nic_has_walks(b->e->nic))
			return;
}

/* The one packet that the node has sent. */
static struct wire_pkt sent(struct bed *b)
{
	struct pair *p = &b->c.p;
	struct wire_pkt pkt;

	assert_int_equal(p->head - p->tail, 1);
	assert_int_equal(wire_parse(p->queue[p->tail % PAIR_QUEUE].bytes,
				    p->queue[p->tail % PAIR_QUEUE].len, &pkt),
			 WIRE_OK);
	p->tail++;
	return pkt;
}

static void executed_and_sent_back(void **state)
{
	struct wire_pkt pkt, back;
	struct walk_pad pad;
	struct bed b;

	init(&b);
	pkt = carried_on(&b, FIND, 3);
	arrive(&b, &pkt);
	work(&b);
	back = sent(&b);
	assert_int_equal(back.opcode, WIRE_UD_WALK_BACK);
	assert_int_equal(back.dest_qpn, SWITCH_QPN);
	assert_int_equal(back.src_qpn, pkt.dest_qpn);
	assert_memory_equal(back.dst_ip, pkt.src_ip, 16);
	assert_memory_equal(back.src_ip, pkt.dst_ip, 16);
	assert_int_equal(back.walk.status, WALK_WIRE_DONE);
	assert_int_equal(back.walk.took, 4 + 3);
	assert_int_equal(back.walk.left, 9 - 3);
	assert_int_equal(back.walk.hops, 6);
	assert_int_equal(back.walk.key, SPACE);
	assert_int_equal(back.payload_len, WALK_WIRE_ORIGIN + PAD);
	assert_memory_equal(back.payload, b.payload, WALK_WIRE_ORIGIN);
	memcpy(&pad, back.payload + WALK_WIRE_ORIGIN, sizeof(pad));
	assert_true(pad.found && pad.value == 1002 && pad.visited == 3);
	assert_int_equal(counter(b.e, NIC_C_hops), 1);

	pkt = carried_on(&b, 99, 3);
	arrive(&b, &pkt);
	work(&b);
	back = sent(&b);
	assert_int_equal(back.walk.status, WALK_WIRE_NO_PROGRAM);
	assert_int_equal(back.walk.took, 4);
	release(&b);
}

static void dropped(struct bed *b, const char *why, enum nic_counter which,
		    const struct wire_pkt *pkt)
{
	uint64_t before = counter(b->e, which);

	arrive(b, pkt);
	work(b);
	if (counter(b->e, which) != before + 1 || b->c.p.head != b->c.p.tail ||
	    b->f.begun)
		fail_msg("%s: not dropped", why);
}

static void what_is_not_a_switchs(void **state)
{
	struct wire_pkt good, pkt;
	struct bed b;

	init(&b);
	good = pkt = carried_on(&b, FIND, 3);
	pkt.qkey ^= 1;
	dropped(&b, "queue key", NIC_C_drop_qkey, &pkt);
	pkt = good;
	pkt.src_ip[15] = 77;
	dropped(&b, "another sender", NIC_C_drop_hop, &pkt);
	pkt = good;
	pkt.opcode = WIRE_UD_WALK_BACK;
	dropped(&b, "an answer", NIC_C_drop_hop, &pkt);
	pkt = good;
	pkt.payload_len = WALK_WIRE_ORIGIN - 4;
	dropped(&b, "no origin", NIC_C_drop_hop, &pkt);
	pkt = good;
	pkt.walk.pad_bytes = NIC_WALK_PAD_MAX + 1;
	dropped(&b, "a large pad", NIC_C_drop_hop, &pkt);
	pkt = good;
	pkt.walk.left = 0;
	dropped(&b, "nothing left", NIC_C_drop_hop, &pkt);
	pkt = good;
	pkt.walk.status = WALK_WIRE_ELSEWHERE;
	dropped(&b, "a status", NIC_C_drop_hop, &pkt);
	assert_int_equal(nic_set_walker(b.e->nic, NULL), 0);
	dropped(&b, "no walker", NIC_C_drop_hop, &good);
	release(&b);
}

/* A queue pair for other datagrams takes none. */
static void other_queue_pairs_take_none(void **state)
{
	struct wire_pkt pkt;
	struct bed b;

	init(&b);
	nic_qp_destroy(b.e->qp);
	{
		struct nic_qp_attr attr = {.type = IBV_QPT_UD,
					   .send_cq = b.e->scq,
					   .recv_cq = b.e->rcq,
					   .owner = &b.e->qp_o};

		assert_int_equal(nic_qp_create(b.e->pd, &attr, &b.e->qp), 0);
	}
	start(&b);
	pkt = carried_on(&b, FIND, 3);
	dropped(&b, "no room was made", NIC_C_drop_hop, &pkt);
	release(&b);
}

static void refused(struct bed *b, const struct wire_pkt *pkt)
{
	uint64_t before = counter(b->e, NIC_C_hops_refused);
	struct wire_pkt back;

	arrive(b, pkt);
	work(b);
	back = sent(b);
	assert_int_equal(back.walk.status, WALK_WIRE_ELSEWHERE);
	assert_int_equal(back.walk.at, pkt->walk.at);
	assert_int_equal(back.walk.left, pkt->walk.left);
	assert_int_equal(back.walk.took, pkt->walk.took);
	assert_memory_equal(back.payload, b->payload, sizeof(b->payload));
	assert_int_equal(b->f.begun, 0);
	assert_int_equal(counter(b->e, NIC_C_hops_refused), before + 1);
}

static void keys_that_open_nothing(void **state)
{
	struct nic_mr_attr attr = {.length = END_BYTES,
				   .access = IBV_ACCESS_LOCAL_WRITE |
					     IBV_ACCESS_REMOTE_READ};
	struct wire_pkt pkt;
	struct nic_mr *other;
	struct nic_pd *pd;
	struct bed b;

	init(&b);
	attr.addr = b.e->mem;
	pkt = carried_on(&b, FIND, 3);
	pkt.walk.key ^= 1;
	refused(&b, &pkt);
	/* Another tenant's, declared as well. */
	assert_int_equal(nic_pd_create(b.e->nic, &pd), 0);
	assert_int_equal(nic_mr_reg(pd, &attr, &other), 0);
	set_space(other, SPACE);
	pkt = carried_on(&b, FIND, 3);
	pkt.walk.key = nic_mr_key(other);
	refused(&b, &pkt);
	assert_int_equal(counter(b.e, NIC_C_deny_pd), 1);
	/* Its own, which the switch was not told of. */
	set_space(b.e->mr, 0);
	pkt = carried_on(&b, FIND, 3);
	refused(&b, &pkt);
	assert_int_equal(nic_mr_dereg(other), 0);
	assert_int_equal(nic_pd_destroy(pd), 0);
	release(&b);
}

static void nothing_is_stored(void **state)
{
	struct wire_pkt pkt, back;
	struct bed b;

	init(&b);
	pkt = carried_on(&b, MARK, 3);
	arrive(&b, &pkt);
	work(&b);
	back = sent(&b);
	assert_int_equal(back.walk.status, WALK_WIRE_NO_RIGHT);
	assert_int_equal(back.walk.hops, WALK_WIRE_HOPS_MAX);
	assert_int_equal(((const struct walk_node *)(b.e->mem + LIST))->visits,
			 0);
	release(&b);
}

static void more_than_there_is_room_for(void **state)
{
	struct wire_pkt pkt;
	struct bed b;

	init(&b);
	b.f.held = true;
	pkt = carried_on(&b, FIND, 3);
	for (unsigned i = 0; i < HOPS + 2; i++)
		arrive(&b, &pkt);
	assert_int_equal(counter(b.e, NIC_C_drop_hop_full), 2);
	b.f.held = false;
	work(&b);
	assert_int_equal(b.c.p.head - b.c.p.tail, HOPS);
	b.c.p.tail = b.c.p.head;
	/* A full path keeps what is due. */
	arrive(&b, &pkt);
	b.c.p.capacity = 0;
	work(&b);
	assert_int_equal(b.c.p.head, b.c.p.tail);
	b.c.p.capacity = 1024;
	work(&b);
	(void)sent(&b);
	/* Who goes takes its walks along. */
	b.f.held = true;
	arrive(&b, &pkt);
	arrive(&b, &pkt);
	qp_to(b.e->qp, IBV_QPS_RESET);
	assert_int_equal(b.f.forgotten, 2);
	start(&b);
	b.f.held = false;
	arrive(&b, &pkt);
	work(&b);
	(void)sent(&b);
	release(&b);
}

/* ---- asking for it ------------------------------------------------------- */

/* Requests on the wire; delivers them, and the answers. */
static unsigned on_the_way(struct walk_conn *w, uint8_t *hops)
{
	struct pair *p = &w->c.p;
	unsigned n = 0;

	(void)nic_flush(w->c.e[0].nic);
	for (uint32_t i = p->tail; i != p->head; i++) {
		struct wire_pkt pkt;

		assert_int_equal(wire_parse(p->queue[i % PAIR_QUEUE].bytes,
					    p->queue[i % PAIR_QUEUE].len, &pkt),
				 WIRE_OK);
		assert_int_equal(pkt.opcode, WIRE_RC_WALK);
		*hops = pkt.walk.hops;
		n++;
	}
	return n;
}

static void answer_all(struct walk_conn *w)
{
	for (unsigned i = 0; i < 100; i++) {
		walk_arrive(w);
		if (!nic_has_walks(w->c.e[1].nic))
			break;
	}
	while (w->c.p.tail != w->c.p.head)
		pair_deliver(&w->c.p);
}

static void alone_on_its_connection(void **state)
{
	struct walk_ask ask = {.program = FIND, .at = 256, .key = 3};
	struct walk_ask forward = ask;
	struct walk_conn w;
	uint8_t hops;

	walk_init(&w, 8);
	make_list(&w, 256, 3, 64);
	forward.forward = true;
	assert_int_equal(walk_post(&w, 1, &ask), 0);
	assert_int_equal(walk_post(&w, 2, &forward), 0);
	assert_int_equal(walk_post(&w, 3, &ask), 0);
	assert_int_equal(walk_post(&w, 4, &ask), 0);
	nic_qp_kick(w.c.e[0].qp);
	assert_int_equal(on_the_way(&w, &hops), 1);
	assert_int_equal(hops, WALK_WIRE_HOPS_MAX);
	answer_all(&w);
	assert_int_equal(on_the_way(&w, &hops), 1);
	assert_int_equal(hops, 0);
	answer_all(&w);
	assert_int_equal(on_the_way(&w, &hops), 2);
	answer_all(&w);
	for (uint64_t id = 1; id <= 4; id++) {
		assert_int_equal(nic_cq_peek(w.c.e[0].scq)->wr_id, id);
		nic_cq_pop(w.c.e[0].scq);
		assert_int_equal(walk_answer(&w, id).value, 1002);
	}
	/* It is lost, and asked again: the others still wait. */
	walk_ask(&w, 5, &forward);
	walk_ask(&w, 6, &ask);
	assert_int_equal(on_the_way(&w, &hops), 1);
	w.c.p.tail = w.c.p.head;
	walk_wait(&w);
	pair_run(&w.c.p);
	assert_int_equal(nic_cq_peek(w.c.e[0].scq)->wr_id, 5);
	nic_cq_pop(w.c.e[0].scq);
	assert_int_equal(nic_cq_peek(w.c.e[0].scq)->wr_id, 6);
	nic_cq_pop(w.c.e[0].scq);
	walk_release(&w);
}

/* A switch must not carry it on, whatever its client says. */
static void one_that_stores_stays(void **state)
{
	struct walk_ask ask = {
		.program = MARK, .at = 256, .key = 3, .forward = true};
	struct walk_conn w;

	walk_init(&w, 4);
	make_list(&w, 256, 3, 64);
	walk_ask(&w, 1, &ask);
	walk_wait(&w);
	assert_int_equal(walk_result(&w, 1).status, WALK_WIRE_DONE);
	assert_int_equal(walk_result(&w, 1).hops, WALK_WIRE_HOPS_MAX);
	ask.program = FIND;
	walk_ask(&w, 2, &ask);
	walk_wait(&w);
	pair_run(&w.c.p);
	assert_int_equal(walk_result(&w, 2).hops, 0);
	nic_cq_pop(w.c.e[0].scq);
	nic_cq_pop(w.c.e[0].scq);
	walk_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(executed_and_sent_back),
		cmocka_unit_test(what_is_not_a_switchs),
		cmocka_unit_test(other_queue_pairs_take_none),
		cmocka_unit_test(keys_that_open_nothing),
		cmocka_unit_test(nothing_is_stored),
		cmocka_unit_test(more_than_there_is_room_for),
		cmocka_unit_test(alone_on_its_connection),
		cmocka_unit_test(one_that_stores_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
