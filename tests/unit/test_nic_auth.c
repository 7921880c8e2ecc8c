/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections with a key: whatever is forged, changed or sent again has no
 * effect, on a wire that loses and doubles nothing is lost, and packet numbers
 * may come back.
 */
#include <errno.h>
#include <string.h>

#include "core/qp_priv.h"
#include "nic_peer.h"

static const uint8_t key[NIC_AUTH_KEY_BYTES] = {1, 2, 3, [16] = 4, 5, 6};

/* Both ends with a key of their own choice; NULL: none. */
static void begin_with(struct conn *c, const uint8_t *key0, const uint8_t *key1,
		       bool near)
{
	memset(c, 0, sizeof(*c));
	pair_init_as(&c->p, near);
	c->mtu = IBV_MTU_256;
	for (unsigned i = 0; i < 2; i++) {
		const uint8_t *k = i ? key1 : key0;

		end_init(&c->e[i], c->p.side[i].nic, IBV_QPT_RC);
		if (k)
			assert_int_equal(nic_qp_set_auth(c->e[i].qp, k,
							 NIC_AUTH_KEY_BYTES),
					 0);
	}
	end_connect(&c->e[0], &c->e[1], c->mtu);
	end_connect(&c->e[1], &c->e[0], c->mtu);
	memset(c->e[1].mem, CANARY, END_BYTES);
}

static void do_write(struct conn *c, uint32_t at, uint32_t len, uint8_t value)
{
	memset(c->e[0].mem + at, value, len);
	assert_int_equal(
		post(&c->e[0], &c->e[1], IBV_WR_RDMA_WRITE, at, at, len), 0);
	pair_run(&c->p);
	expect_cqe(c->e[0].scq, at, IBV_WC_SUCCESS);
	assert_memory_equal(c->e[0].mem + at, c->e[1].mem + at, len);
}

static struct pair_frame next_frame(struct pair *p)
{
	(void)nic_flush(p->side[0].nic);
	(void)nic_flush(p->side[1].nic);
	assert_true(p->tail != p->head);
	return p->queue[p->tail % PAIR_QUEUE];
}

static void give(struct pair *p, const struct pair_frame *f)
{
	nic_input(p->side[f->to].nic, f->bytes, f->len, f->from);
}

/* ---- the good case ------------------------------------------------------- */

static void every_request_works(void **state)
{
	static const enum ibv_wr_opcode kinds[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND,
		IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct conn c;

	begin_with(&c, key, key, false);
	/* More packets than are left before the number wraps. */
	for (uint32_t i = 0; i < 64; i++) {
		enum ibv_wr_opcode kind = kinds[i % ARRAY_LEN(kinds)];
		uint32_t len = kind == IBV_WR_ATOMIC_FETCH_AND_ADD
				       ? 8
				       : 1 + i * 37 % 1500;

		if (kind == IBV_WR_SEND)
			assert_int_equal(post_recv(&c.e[1], i, 0, 4096), 0);
		assert_int_equal(
			post(&c.e[0], &c.e[1], kind, 8 * i, 8 * i, len), 0);
		while (c.p.tail != c.p.head || nic_has_ready(c.e[0].nic) ||
		       nic_has_ready(c.e[1].nic)) {
			struct wire_pkt pkt;
			struct pair_frame f = next_frame(&c.p);

			assert_int_equal(wire_parse(f.bytes, f.len, &pkt),
					 WIRE_OK);
			assert_true(pkt.has_mac);
			c.p.tail++;
			give(&c.p, &f);
			(void)nic_flush(c.e[0].nic);
			(void)nic_flush(c.e[1].nic);
		}
		expect_cqe(c.e[0].scq, 8 * i, IBV_WC_SUCCESS);
		if (kind == IBV_WR_SEND)
			expect_cqe(c.e[1].rcq, i, IBV_WC_SUCCESS);
	}
	assert_int_equal(counter(&c.e[0], NIC_C_drop_auth), 0);
	assert_int_equal(counter(&c.e[1], NIC_C_drop_auth), 0);
	done(&c);
}

/* What is lost or doubled is what it always was. */
static void over_a_bad_wire(void **state)
{
	struct conn c;
	struct rng rng;

	begin_with(&c, key, key, false);
	rng_init(&rng, 7);
	for (uint32_t i = 0; i < 200; i++) {
		unsigned tries = 0;

		memset(c.e[0].mem, (int)i, 1000);
		assert_int_equal(
			post(&c.e[0], &c.e[1],
			     i % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 0, 0,
			     1000),
			0);
		while (nic_cq_is_empty(c.e[0].scq)) {
			uint64_t dice = rng_below(&rng, 8);

			assert_true(++tries < 10000);
			(void)nic_flush(c.e[0].nic);
			(void)nic_flush(c.e[1].nic);
			if (c.p.tail == c.p.head) {
				c.p.now_ns += 5000000;
				nic_tick(c.e[0].nic);
				nic_tick(c.e[1].nic);
				continue;
			}
			if (dice == 0) {
				c.p.tail++;
				continue;
			}
			if (dice == 1)
				give(&c.p, &c.p.queue[c.p.tail % PAIR_QUEUE]);
			pair_deliver(&c.p);
		}
		expect_cqe(c.e[0].scq, 0, IBV_WC_SUCCESS);
		assert_memory_equal(c.e[0].mem, c.e[1].mem, 1000);
	}
	assert_int_equal(counter(&c.e[1], NIC_C_drop_auth), 0);
	assert_int_equal(counter(&c.e[0], NIC_C_drop_auth), 0);
	done(&c);
}

/* ---- the bad ones -------------------------------------------------------- */

/* Who knows addresses, numbers and memory key, but not the key. */
static void forged_packets_have_no_effect(void **state)
{
	static const uint64_t macs[] = {0, 1, UINT64_MAX};
	struct wire_pkt pkt;
	struct conn c;
	uint64_t n = 0;

	begin_with(&c, key, key, false);
	for (unsigned i = 0; i < ARRAY_LEN(macs) + 1; i++) {
		pkt = request(&c, WIRE_RC_WRITE_ONLY, 0, 64);
		pkt.has_mac = i < ARRAY_LEN(macs);
		pkt.mac = pkt.has_mac ? macs[i] : 0;
		inject(&c.e[1], &pkt);
		assert_int_equal(counter(&c.e[1], NIC_C_drop_auth), ++n);
		pkt = response(&c, WIRE_RC_ACK, 0, 0);
		pkt.has_mac = i < ARRAY_LEN(macs);
		pkt.syndrome = WIRE_NAK_ACCESS;
		inject(&c.e[0], &pkt);
		assert_int_equal(counter(&c.e[0], NIC_C_drop_auth), n);
	}
	assert_untouched(&c.e[1]);
	(void)nic_flush(c.e[1].nic);
	assert_int_equal(c.p.head, c.p.tail); /* silently */
	do_write(&c, 64, 64, 9);
	done(&c);
}

static bool is_same(const struct wire_pkt *a, const struct wire_pkt *b)
{
	return memcmp(a->src_ip, b->src_ip, 16) == 0 &&
	       memcmp(a->dst_ip, b->dst_ip, 16) == 0 &&
	       a->opcode == b->opcode && a->solicited == b->solicited &&
	       a->mig_req == b->mig_req && a->ack_req == b->ack_req &&
	       a->pkey == b->pkey && a->dest_qpn == b->dest_qpn &&
	       a->psn == b->psn && a->va == b->va && a->rkey == b->rkey &&
	       a->dma_len == b->dma_len && a->has_mac == b->has_mac &&
	       a->mac == b->mac && a->payload_len == b->payload_len &&
	       memcmp(a->payload, b->payload, a->payload_len) == 0;
}

/* Of one packet every bit in turn, with the ICRC put right. */
static void changed_packets_have_no_effect(void **state)
{
	struct pair_frame good;
	struct wire_pkt was;
	struct conn c;
	uint64_t before;

	begin_with(&c, key, key, false);
	memset(c.e[0].mem, 0x33, 16);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 0, 0, 16),
			 0);
	good = next_frame(&c.p);
	assert_int_equal(wire_parse(good.bytes, good.len, &was), WIRE_OK);
	for (size_t bit = 8 * WIRE_ETH_BYTES;
	     bit < 8 * (good.len - WIRE_ICRC_BYTES); bit++) {
		struct pair_frame f = good;
		struct wire_pkt pkt;
		uint32_t icrc;

		f.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		icrc = wire_icrc(f.bytes + WIRE_ETH_BYTES,
				 f.len - WIRE_ETH_BYTES - WIRE_ICRC_BYTES);
		memcpy(f.bytes + f.len - WIRE_ICRC_BYTES, &icrc, sizeof(icrc));
		if (wire_parse(f.bytes, f.len, &pkt) != WIRE_OK)
			continue;
		/* Marks, the source port, the checksum of UDP and bits that
		 * are nobody's may be changed. */
		if (is_same(&pkt, &was))
			continue;
		give(&c.p, &f);
		assert_int_equal(c.e[1].mem[0], CANARY);
	}
	assert_true(counter(&c.e[1], NIC_C_drop_auth) > 8 * (16 + 16 + 8));
	assert_int_equal(counter(&c.e[1], NIC_C_deny_key), 0);
	before = counter(&c.e[1], NIC_C_drop_auth);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 0, IBV_WC_SUCCESS);
	assert_int_equal(c.e[1].mem[15], 0x33);
	assert_int_equal(counter(&c.e[1], NIC_C_drop_auth), before);
	done(&c);
}

/* As if that many packets had gone by; 2^24 of them take seconds. */
static void skip_to(struct conn *c, uint32_t psn)
{
	struct requester *req = &c->e[0].qp->req;

	req->next_psn = req->una_psn = psn & WIRE_PSN_MASK;
	c->e[1].qp->rsp.epsn = psn & WIRE_PSN_MASK;
}

/* A packet that was right once: later it is a duplicate, and when its number
 * has come round again it is a stranger. */
static void old_packets_have_no_effect(void **state)
{
	struct pair_frame old;
	struct conn c;
	uint32_t i;

	begin_with(&c, key, key, false);
	memset(c.e[0].mem, 0x44, 64);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 0, 0, 64),
			 0);
	old = next_frame(&c.p);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 0, IBV_WC_SUCCESS);
	do_write(&c, 0, 64, 0x55);
	give(&c.p, &old);
	pair_run(&c.p);
	assert_int_equal(counter(&c.e[1], NIC_C_duplicates), 1);
	assert_int_equal(c.e[1].mem[0], 0x55);
	assert_int_equal(counter(&c.e[1], NIC_C_drop_auth), 0);
	for (i = 1; i <= 4; i++) {
		skip_to(&c, END_PSN + i * (1u << 22) - i / 4);
		do_write(&c, 0, 64, (uint8_t)(0x55 - 4 + i));
	}
	assert_int_equal(counter(&c.e[1], NIC_C_drop_auth), 0);
	give(&c.p, &old); /* its number is the one that comes next */
	pair_run(&c.p);
	assert_int_equal(counter(&c.e[1], NIC_C_drop_auth), 1);
	assert_int_equal(c.e[1].mem[0], 0x55);
	do_write(&c, 0, 64, 0x66);
	done(&c);
}

/* The packets of one direction are not those of the other. */
static void reflected_packets_have_no_effect(void **state)
{
	struct pair_frame f;
	struct wire_pkt pkt;
	struct conn c;

	begin_with(&c, key, key, false);
	memset(c.e[0].mem, CANARY, END_BYTES);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 0, 0, 64),
			 0);
	f = next_frame(&c.p);
	assert_int_equal(wire_parse(f.bytes, f.len, &pkt), WIRE_OK);
	memcpy(pkt.src_ip, nic_get_config(c.e[1].nic)->gids[0].ip, 16);
	memcpy(pkt.dst_ip, nic_get_config(c.e[0].nic)->gids[0].ip, 16);
	pkt.dest_qpn = nic_qp_number(c.e[0].qp);
	inject(&c.e[0], &pkt);
	assert_int_equal(counter(&c.e[0], NIC_C_drop_auth), 1);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 0, IBV_WC_SUCCESS);
	done(&c);
}

static void expect_deaf(const uint8_t *key0, const uint8_t *key1)
{
	struct conn c;

	begin_with(&c, key0, key1, false);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 0, 0, 64),
			 0);
	for (unsigned i = 0; i < 40; i++)
		pair_advance(&c.p, 10000000);
	expect_cqe(c.e[0].scq, 0, IBV_WC_RETRY_EXC_ERR);
	assert_untouched(&c.e[1]);
	assert_true(counter(&c.e[1], NIC_C_drop_auth) > 0);
	done(&c);
}

static void both_need_the_same_key(void **state)
{
	static const uint8_t other[NIC_AUTH_KEY_BYTES] = {1, 2, 3, [16] = 5};
	static const uint8_t other2[NIC_AUTH_KEY_BYTES] = {2, [16] = 4, 5, 6};

	expect_deaf(key, NULL);
	expect_deaf(NULL, key);
	expect_deaf(key, other2);
	expect_deaf(other2, other);
}

/* ---- the key ------------------------------------------------------------- */

static void keys_are_set_in_time(void **state)
{
	struct conn c;

	begin(&c);
	assert_int_equal(nic_qp_set_auth(c.e[0].qp, key, sizeof(key)), -EINVAL);
	qp_to(c.e[0].qp, IBV_QPS_ERR);
	assert_int_equal(nic_qp_set_auth(c.e[0].qp, key, sizeof(key)), -EINVAL);
	qp_to(c.e[0].qp, IBV_QPS_RESET);
	assert_int_equal(nic_qp_set_auth(c.e[0].qp, key, 16), -EINVAL);
	assert_int_equal(nic_qp_set_auth(c.e[0].qp, key, sizeof(key)), 0);
	/* And are forgotten: the next connection is one without. */
	qp_to(c.e[0].qp, IBV_QPS_RESET);
	qp_to(c.e[1].qp, IBV_QPS_RESET);
	end_connect(&c.e[0], &c.e[1], c.mtu);
	end_connect(&c.e[1], &c.e[0], c.mtu);
	do_write(&c, 0, 64, 3);
	done(&c);
}

/* On a cable the way says who sends: no MAC, and stamps as ever. */
static void cables_need_none(void **state)
{
	struct pair_frame f;
	struct wire_pkt pkt;
	struct conn c;

	begin_with(&c, key, NULL, true);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 0, 0, 64),
			 0);
	f = next_frame(&c.p);
	assert_int_equal(wire_parse(f.bytes, f.len, &pkt), WIRE_OK);
	assert_false(pkt.has_mac);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 0, IBV_WC_SUCCESS);
	done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_request_works),
		cmocka_unit_test(over_a_bad_wire),
		cmocka_unit_test(forged_packets_have_no_effect),
		cmocka_unit_test(changed_packets_have_no_effect),
		cmocka_unit_test(old_packets_have_no_effect),
		cmocka_unit_test(reflected_packets_have_no_effect),
		cmocka_unit_test(both_need_the_same_key),
		cmocka_unit_test(keys_are_set_in_time),
		cmocka_unit_test(cables_need_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
