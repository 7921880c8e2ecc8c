/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile or broken peer: packets made by hand. Whatever it sends, it meets a
 * counted drop, a NAK or an error completion, and memory changes only where a
 * key allows it. Every drop and denial counter is reached; those of bad answers
 * in test_nic_answer.c.
 */
#include "nic_peer.h"

/* ---- frames that are no packets -------------------------------------------
 */

struct frame {
	size_t len;
	uint8_t bytes[WIRE_FRAME_MAX];
};

enum {
	IP = WIRE_ETH_BYTES,
	UDP = IP + WIRE_IP4_BYTES,
	BTH = UDP + WIRE_UDP_BYTES,
};

static void reseal(struct frame *f)
{
	uint32_t sum = 0, icrc;
	size_t end = f->len - WIRE_ICRC_BYTES;
	unsigned i;

	f->bytes[IP + 10] = f->bytes[IP + 11] = 0;
	for (i = 0; i < WIRE_IP4_BYTES; i += 2)
		sum += (uint32_t)(f->bytes[IP + i] << 8 | f->bytes[IP + i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	f->bytes[IP + 10] = (uint8_t)(sum >> 8);
	f->bytes[IP + 11] = (uint8_t)sum;
	icrc = wire_icrc(f->bytes + IP, end - IP);
	memcpy(f->bytes + end, &icrc, sizeof(icrc));
}

static void cut_short(struct frame *f)
{
	f->len = BTH;
}

static void other_port(struct frame *f)
{
	f->bytes[UDP + 3] ^= 1;
}

static void bad_ip_checksum(struct frame *f)
{
	f->bytes[IP + 10] ^= 1;
}

static void udp_length(struct frame *f)
{
	f->bytes[UDP + 5] ^= 4;
	reseal(f);
}

static void damaged(struct frame *f)
{
	f->bytes[f->len - 9] ^= 0x10; /* in the payload */
}

static void bth_version(struct frame *f)
{
	f->bytes[BTH + 1] |= 1;
	reseal(f);
}

static void unknown_opcode(struct frame *f)
{
	f->bytes[BTH] = 0x1f;
	reseal(f);
}

static void ack_with_payload(struct frame *f)
{
	f->bytes[BTH] = WIRE_RC_ACK;
	reseal(f);
}

static void frames_that_are_no_packets(void **state)
{
	static const struct {
		void (*damage)(struct frame *f);
		enum nic_counter counter;
	} table[] = {
		{cut_short, NIC_C_drop_short},
		{other_port, NIC_C_drop_not_roce},
		{bad_ip_checksum, NIC_C_drop_ip},
		{udp_length, NIC_C_drop_length},
		{damaged, NIC_C_drop_icrc},
		{bth_version, NIC_C_drop_version},
		{unknown_opcode, NIC_C_drop_opcode},
		{ack_with_payload, NIC_C_drop_payload},
	};
	unsigned i;

	for (i = 0; i < ARRAY_LEN(table); i++) {
		struct wire_pkt pkt;
		struct frame f;
		struct conn c;

		begin(&c);
		pkt = request(&c, WIRE_RC_WRITE_ONLY, 0, 64);
		f.len = wire_build(&pkt, f.bytes);
		table[i].damage(&f);
		nic_input(c.e[1].nic, f.bytes, f.len, NIC_FROM_NET);
		nic_flush(c.e[1].nic);
		assert_int_equal(counter(&c.e[1], table[i].counter), 1);
		assert_int_equal(c.p.head, c.p.tail);
		assert_untouched(&c.e[1]);
		/* The undamaged one still works. */
		inject(&c.e[1], &pkt);
		assert_int_equal(c.e[1].mem[0], 0);
		done(&c);
	}
}

/* ---- packets of strangers -------------------------------------------------
 */

static void from_another_address(struct wire_pkt *pkt)
{
	pkt->src_ip[15] = 77;
}

static void to_another_address(struct wire_pkt *pkt)
{
	pkt->dst_ip[15] = 77;
}

static void other_partition(struct wire_pkt *pkt)
{
	pkt->pkey = 0x8001;
}

static void invalid_partition(struct wire_pkt *pkt)
{
	pkt->pkey = 0x8000;
}

static void datagram(struct wire_pkt *pkt)
{
	pkt->opcode = WIRE_UD_SEND_ONLY;
}

static void wrong_qpn(struct wire_pkt *pkt)
{
	pkt->dest_qpn ^= 1;
}

static void wrong_qpn_of_others(struct wire_pkt *pkt)
{
	pkt->dest_qpn ^= 1;
	pkt->dst_ip[15] = 77;
}

static void packets_of_strangers(void **state)
{
	static const struct {
		void (*change)(struct wire_pkt *pkt);
		enum nic_counter counter;
	} table[] = {
		{from_another_address, NIC_C_drop_peer},
		{to_another_address, NIC_C_drop_peer},
		{other_partition, NIC_C_drop_pkey},
		{invalid_partition, NIC_C_drop_pkey},
		{datagram, NIC_C_drop_transport},
		{wrong_qpn, NIC_C_drop_qpn},
		{wrong_qpn_of_others, NIC_C_drop_dst_ip},
	};
	unsigned i;

	for (i = 0; i < ARRAY_LEN(table); i++) {
		struct wire_pkt pkt;
		struct conn c;

		begin(&c);
		pkt = request(&c, WIRE_RC_WRITE_ONLY, 0, 64);
		table[i].change(&pkt);
		inject(&c.e[1], &pkt);
		nic_flush(c.e[1].nic);
		assert_int_equal(counter(&c.e[1], table[i].counter), 1);
		assert_int_equal(c.p.head, c.p.tail);
		assert_int_equal(nic_qp_state(c.e[1].qp), IBV_QPS_RTS);
		assert_untouched(&c.e[1]);
		done(&c);
	}
}

static void states_that_do_not_listen(void **state)
{
	static const enum ibv_qp_state deaf[] = {IBV_QPS_RESET, IBV_QPS_ERR};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct conn c;
	unsigned i;

	begin(&c);
	for (i = 0; i < ARRAY_LEN(deaf); i++) {
		qp_to(c.e[1].qp, deaf[i]);
		send_request(&c, WIRE_RC_WRITE_ONLY, 0, 64);
		assert_int_equal(counter(&c.e[1], NIC_C_drop_qp_state), i + 1);
	}
	qp_to(c.e[1].qp, IBV_QPS_RESET);
	assert_int_equal(nic_qp_modify(c.e[1].qp, &init,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	send_request(&c, WIRE_RC_WRITE_ONLY, 0, 64);
	assert_int_equal(counter(&c.e[1], NIC_C_drop_qp_state), 3);
	assert_untouched(&c.e[1]);
	done(&c);
}

static void strangers_do_not_reach_datagrams(void **state)
{
	struct conn c;
	struct end u;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct wire_pkt pkt;
	uint64_t drops;

	begin(&c);
	end_share(&u, &c.e[1], IBV_QPT_UD);
	assert_int_equal(nic_qp_modify(u.qp, &a,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT | IBV_QP_QKEY),
			 0);
	qp_to(u.qp, IBV_QPS_RTR);
	pkt = packet(&c.e[0], &u, WIRE_UD_SEND_ONLY, 0);
	pkt.qkey = 9;
	inject(&u, &pkt);
	assert_int_equal(counter(&u, NIC_C_drop_qkey), 1);
	pkt.qkey = 0;
	inject(&u, &pkt);
	assert_int_equal(counter(&u, NIC_C_drop_no_recv), 1);
	drops = counter(&u, NIC_C_drop_transport);
	pkt.opcode = WIRE_RC_WRITE_ONLY;
	inject(&u, &pkt);
	assert_int_equal(counter(&u, NIC_C_drop_transport), drops + 1);
	assert_int_equal(post_recv(&u, 1, 0, 39), 0);
	pkt.opcode = WIRE_UD_SEND_ONLY;
	inject(&u, &pkt);
	assert_int_equal(counter(&u, NIC_C_drop_ud_length), 1);
	expect_no_cqe(u.rcq);
	assert_int_equal(nic_qp_state(u.qp), IBV_QPS_RTR);
	nic_qp_destroy(u.qp);
	done(&c);
}

/* ---- one bad request ------------------------------------------------------
 */

struct bad_request {
	const char *what;
	uint8_t opcode;
	uint32_t len;
	int64_t dma_off; /* DMA length - payload */
	int64_t va_off;
	uint32_t key_xor;
	uint8_t nak;
	enum nic_counter counter;
};

#define INV WIRE_NAK_INVALID
#define ACC WIRE_NAK_ACCESS

static const struct bad_request bad_requests[] = {
	{"middle first", WIRE_RC_SEND_MIDDLE, MTU, 0, 0, 0, INV,
	 NIC_C_deny_sequence},
	{"last first", WIRE_RC_SEND_LAST, 8, 0, 0, 0, INV, NIC_C_deny_sequence},
	{"last imm first", WIRE_RC_SEND_LAST_IMM, 8, 0, 0, 0, INV,
	 NIC_C_deny_sequence},
	{"last inv first", WIRE_RC_SEND_LAST_INV, 8, 0, 0, 0, INV,
	 NIC_C_deny_sequence},
	{"write middle first", WIRE_RC_WRITE_MIDDLE, MTU, 0, 0, 0, INV,
	 NIC_C_deny_sequence},
	{"write last first", WIRE_RC_WRITE_LAST, 8, 0, 0, 0, INV,
	 NIC_C_deny_sequence},
	{"write last imm first", WIRE_RC_WRITE_LAST_IMM, 8, 0, 0, 0, INV,
	 NIC_C_deny_sequence},
	{"short first", WIRE_RC_SEND_FIRST, MTU - 1, 0, 0, 0, INV,
	 NIC_C_deny_length},
	{"long first", WIRE_RC_SEND_FIRST, MTU + 1, 0, 0, 0, INV,
	 NIC_C_deny_length},
	{"empty first", WIRE_RC_SEND_FIRST, 0, 0, 0, 0, INV, NIC_C_deny_length},
	{"long only", WIRE_RC_SEND_ONLY, MTU + 1, 0, 0, 0, INV,
	 NIC_C_deny_length},
	{"long write", WIRE_RC_WRITE_ONLY, MTU + 1, 0, 0, 0, INV,
	 NIC_C_deny_length},
	{"largest packet", WIRE_RC_WRITE_ONLY, WIRE_MTU_MAX, 0, 0, 0, INV,
	 NIC_C_deny_length},
	{"short write first", WIRE_RC_WRITE_FIRST, MTU - 1, MTU, 0, 0, INV,
	 NIC_C_deny_length},
	{"more than announced", WIRE_RC_WRITE_ONLY, 8, -1, 0, 0, INV,
	 NIC_C_deny_length},
	{"less than announced", WIRE_RC_WRITE_ONLY, 8, 1, 0, 0, INV,
	 NIC_C_deny_length},
	{"first is all", WIRE_RC_WRITE_FIRST, MTU, 0, 0, 0, INV,
	 NIC_C_deny_length},
	{"nothing announced", WIRE_RC_WRITE_FIRST, MTU, -MTU, 0, 0, INV,
	 NIC_C_deny_length},
	{"huge write", WIRE_RC_WRITE_FIRST, MTU, 1u << 30, 0, 0, INV,
	 NIC_C_deny_length},
	{"huge read", WIRE_RC_READ_REQ, 0, 0xffffffff, 0, 0, INV,
	 NIC_C_deny_length},
	{"no key", WIRE_RC_WRITE_ONLY, 8, 0, 0, 0x100, ACC, NIC_C_deny_key},
	{"wrong tag", WIRE_RC_READ_REQ, 0, 8, 0, 1, ACC, NIC_C_deny_key},
	{"key of an atomic", WIRE_RC_FAA, 0, 0, 0, 0x80000000, ACC,
	 NIC_C_deny_key},
	{"one behind", WIRE_RC_WRITE_ONLY, 8, 0, END_BYTES - 7, 0, ACC,
	 NIC_C_deny_bounds},
	{"one before", WIRE_RC_READ_REQ, 0, 8, -1, 0, ACC, NIC_C_deny_bounds},
	{"around the end", WIRE_RC_READ_REQ, 0, 1u << 30, INT64_MIN, 0, ACC,
	 NIC_C_deny_bounds},
	{"whole range at the start", WIRE_RC_WRITE_FIRST, MTU, END_BYTES, 0, 0,
	 ACC, NIC_C_deny_bounds},
	{"atomic behind", WIRE_RC_CAS, 0, 0, END_BYTES, 0, ACC,
	 NIC_C_deny_bounds},
	{"misaligned", WIRE_RC_CAS, 0, 0, 4, 0, INV, NIC_C_deny_align},
	{"misaligned masked", WIRE_RC_MASKED_FAA, 0, 0, 1, 0, INV,
	 NIC_C_deny_align},
};

static void bad_requests_are_refused(void **state)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(bad_requests); i++) {
		const struct bad_request *r = &bad_requests[i];
		struct wire_pkt pkt;
		struct conn c;

		begin(&c);
		assert_int_equal(post_recv(&c.e[1], 3, 0, END_BYTES), 0);
		pkt = request(&c, r->opcode, 0, r->len);
		pkt.dma_len = (uint32_t)(r->len + r->dma_off);
		pkt.va += (uint64_t)r->va_off;
		pkt.rkey ^= r->key_xor;
		inject(&c.e[1], &pkt);
		nic_flush(c.e[1].nic);
		if (counter(&c.e[1], r->counter) != 1)
			print_error("%s\n", r->what);
		assert_int_equal(counter(&c.e[1], r->counter), 1);
		expect_ack(&c.p, r->nak, END_PSN);
		assert_int_equal(nic_qp_state(c.e[1].qp), IBV_QPS_ERR);
		expect_event(&c.e[1].qp_o, r->nak == ACC
						   ? IBV_EVENT_QP_ACCESS_ERR
						   : IBV_EVENT_QP_REQ_ERR);
		expect_cqe(c.e[1].rcq, 3, IBV_WC_WR_FLUSH_ERR);
		assert_untouched(&c.e[1]);
		done(&c);
	}
}

static void rights_and_domains(void **state)
{
	struct nic_mr_attr attr = {.length = 4096,
				   .access = IBV_ACCESS_REMOTE_READ};
	unsigned i;

	for (i = 0; i < 3; i++) {
		static const enum nic_counter counters[] = {
			NIC_C_deny_access, NIC_C_deny_pd, NIC_C_deny_qp_access};
		struct ibv_qp_attr none = {.qp_access_flags = 0};
		struct wire_pkt pkt;
		struct nic_pd *pd;
		struct nic_mr *mr;
		struct conn c;

		begin(&c);
		attr.addr = c.e[1].mem;
		attr.iova = (uintptr_t)c.e[1].mem;
		assert_int_equal(nic_pd_create(c.e[1].nic, &pd), 0);
		assert_int_equal(
			nic_mr_reg(i == 1 ? pd : c.e[1].pd, &attr, &mr), 0);
		pkt = request(&c, WIRE_RC_WRITE_ONLY, 0, 64);
		pkt.rkey = nic_mr_key(mr);
		if (i == 2)
			assert_int_equal(nic_qp_modify(c.e[1].qp, &none,
						       IBV_QP_ACCESS_FLAGS),
					 0);
		inject(&c.e[1], &pkt);
		assert_int_equal(counter(&c.e[1], counters[i]), 1);
		expect_ack(&c.p, i == 2 ? INV : ACC, END_PSN);
		assert_untouched(&c.e[1]);
		assert_int_equal(nic_mr_dereg(mr), 0);
		assert_int_equal(nic_pd_destroy(pd), 0);
		done(&c);
	}
}

/* ---- a good packet, then a bad one ----------------------------------------
 */

struct bad_second {
	const char *what;
	uint8_t first;
	uint32_t total; /* announced by the first */
	uint8_t second;
	uint32_t len;
	enum nic_counter counter;
};

static const struct bad_second bad_seconds[] = {
	{"another message", WIRE_RC_WRITE_FIRST, 1000, WIRE_RC_WRITE_ONLY, 8,
	 NIC_C_deny_sequence},
	{"the same again", WIRE_RC_WRITE_FIRST, 1000, WIRE_RC_WRITE_FIRST, MTU,
	 NIC_C_deny_sequence},
	{"a read between", WIRE_RC_WRITE_FIRST, 1000, WIRE_RC_READ_REQ, 0,
	 NIC_C_deny_sequence},
	{"an atomic between", WIRE_RC_SEND_FIRST, 0, WIRE_RC_FAA, 0,
	 NIC_C_deny_sequence},
	{"a send in a write", WIRE_RC_WRITE_FIRST, 1000, WIRE_RC_SEND_MIDDLE,
	 MTU, NIC_C_deny_sequence},
	{"a write in a send", WIRE_RC_SEND_FIRST, 0, WIRE_RC_WRITE_LAST, 8,
	 NIC_C_deny_sequence},
	{"a write's end with imm", WIRE_RC_SEND_FIRST, 0,
	 WIRE_RC_WRITE_LAST_IMM, 8, NIC_C_deny_sequence},
	{"too short", WIRE_RC_WRITE_FIRST, 512, WIRE_RC_WRITE_LAST, 255,
	 NIC_C_deny_length},
	{"too long", WIRE_RC_WRITE_FIRST, 400, WIRE_RC_WRITE_LAST, 145,
	 NIC_C_deny_length},
	{"too early", WIRE_RC_WRITE_FIRST, 1000, WIRE_RC_WRITE_LAST, MTU,
	 NIC_C_deny_length},
	{"too early with imm", WIRE_RC_WRITE_FIRST, 1000,
	 WIRE_RC_WRITE_LAST_IMM, MTU, NIC_C_deny_length},
	{"no end", WIRE_RC_WRITE_FIRST, 512, WIRE_RC_WRITE_MIDDLE, MTU,
	 NIC_C_deny_length},
	{"short middle", WIRE_RC_WRITE_FIRST, 1000, WIRE_RC_WRITE_MIDDLE, 255,
	 NIC_C_deny_length},
	{"empty middle", WIRE_RC_SEND_FIRST, 0, WIRE_RC_SEND_MIDDLE, 0,
	 NIC_C_deny_length},
	{"empty last", WIRE_RC_SEND_FIRST, 0, WIRE_RC_SEND_LAST, 0,
	 NIC_C_deny_length},
	{"long last", WIRE_RC_SEND_FIRST, 0, WIRE_RC_SEND_LAST, MTU + 1,
	 NIC_C_deny_length},
};

static void messages_keep_their_form(void **state)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(bad_seconds); i++) {
		const struct bad_second *s = &bad_seconds[i];
		struct wire_pkt pkt;
		struct conn c;

		begin(&c);
		assert_int_equal(post_recv(&c.e[1], 3, 4096, 4096), 0);
		pkt = request(&c, s->first, 0, MTU);
		pkt.dma_len = s->total;
		pkt.ack_req = false;
		inject(&c.e[1], &pkt);
		send_request(&c, s->second, 1, s->len);
		nic_flush(c.e[1].nic);
		if (counter(&c.e[1], s->counter) != 1)
			print_error("%s\n", s->what);
		assert_int_equal(counter(&c.e[1], s->counter), 1);
		expect_ack(&c.p, INV, END_PSN + 1);
		expect_cqe(c.e[1].rcq, 3, IBV_WC_WR_FLUSH_ERR);
		/* Only what the first packet had brought is there. */
		assert_int_equal(c.e[1].mem[MTU], CANARY);
		assert_int_equal(c.e[1].mem[4096 + MTU], CANARY);
		done(&c);
	}
}

static void sends_that_outgrow_their_receive(void **state)
{
	struct conn c;

	begin(&c);
	assert_int_equal(post_recv(&c.e[1], 3, 0, 600), 0);
	send_request(&c, WIRE_RC_SEND_FIRST, 0, MTU);
	send_request(&c, WIRE_RC_SEND_MIDDLE, 1, MTU);
	send_request(&c, WIRE_RC_SEND_LAST, 2, 100);
	expect_ack(&c.p, INV, END_PSN + 2);
	expect_cqe(c.e[1].rcq, 3, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(c.e[1].mem[512], CANARY);
	done(&c);
}

/* ---- packet numbers -------------------------------------------------------
 */

static void packets_of_the_future(void **state)
{
	static const uint32_t ahead[] = {1, 2, 1000, (1u << 23) - 1};
	unsigned i;

	for (i = 0; i < ARRAY_LEN(ahead); i++) {
		struct conn c;

		begin(&c);
		send_request(&c, WIRE_RC_WRITE_ONLY, ahead[i], 64);
		send_request(&c, WIRE_RC_WRITE_ONLY, ahead[i], 64);
		nic_flush(c.e[1].nic);
		assert_int_equal(counter(&c.e[1], NIC_C_drop_psn), 2);
		expect_ack(&c.p, WIRE_NAK_PSN, END_PSN);
		assert_int_equal(c.p.head, c.p.tail); /* one NAK is enough */
		assert_untouched(&c.e[1]);
		send_request(&c, WIRE_RC_WRITE_ONLY, 0, 64);
		nic_flush(c.e[1].nic);
		expect_ack(&c.p, WIRE_ACK_UNLIMITED, END_PSN);
		done(&c);
	}
}

static void packets_of_the_past(void **state)
{
	struct conn c;

	begin(&c);
	assert_int_equal(post_recv(&c.e[1], 3, 0, 600), 0);
	/* Never sent in this connection, and still the past. */
	send_request(&c, WIRE_RC_WRITE_ONLY, (uint32_t)-1, 64);
	send_request(&c, WIRE_RC_SEND_ONLY, (uint32_t)-1000, 64);
	send_request(&c, WIRE_RC_SEND_LAST, (uint32_t) - (1 << 23), 64);
	nic_flush(c.e[1].nic);
	assert_int_equal(counter(&c.e[1], NIC_C_duplicates), 3);
	expect_ack(&c.p, WIRE_ACK_UNLIMITED, END_PSN - 1);
	assert_int_equal(c.p.head, c.p.tail);
	/* READs and atomics that it remembers nothing of. */
	send_request(&c, WIRE_RC_READ_REQ, (uint32_t)-1, 0);
	send_request(&c, WIRE_RC_FAA, (uint32_t)-1, 0);
	nic_flush(c.e[1].nic);
	assert_int_equal(counter(&c.e[1], NIC_C_drop_duplicate), 2);
	assert_int_equal(c.p.head, c.p.tail);
	expect_no_cqe(c.e[1].rcq);
	assert_untouched(&c.e[1]);
	done(&c);
}

static void read_again(struct conn *c, uint32_t psn_off, int64_t va_off,
		       uint32_t len, uint32_t key_xor)
{
	struct wire_pkt pkt = request(c, WIRE_RC_READ_REQ, psn_off, 0);

	pkt.va += (uint64_t)va_off;
	pkt.dma_len = len;
	pkt.rkey ^= key_xor;
	inject(&c->e[1], &pkt);
	nic_flush(c->e[1].nic);
}

/* A READ of three packets was answered. Again it may ask for what is left of
 * it from any packet on, and for nothing else. */
static void reads_are_repeated_as_they_were(void **state)
{
	static const struct {
		uint32_t psn_off;
		int64_t va_off;
		uint32_t len, key_xor, packets;
	} table[] = {
		{0, 0, 700, 0, 3},	    {1, 256, 444, 0, 2},
		{2, 512, 188, 0, 1},	    {0, 0, 700, 0x100, 0},
		{0, 0, 699, 0, 0},	    {0, 0, 701, 0, 0},
		{0, 1, 700, 0, 0},	    {1, 0, 700, 0, 0},
		{1, 256, 445, 0, 0},	    {2, 256, 444, 0, 0},
		{0, 0, 1u << 30, 0, 0},	    {0, -4096, 700, 0, 0},
		{2, 512, 0xffffffff, 0, 0},
	};
	struct wire_pkt pkt;
	struct conn c;
	unsigned i, n;

	begin(&c);
	read_again(&c, 0, 0, 700, 0);
	for (n = 0; n < 3; n++)
		assert_true(take_packet(&c.p, &pkt));
	for (i = 0; i < ARRAY_LEN(table); i++) {
		uint64_t drops = counter(&c.e[1], NIC_C_drop_duplicate);

		read_again(&c, table[i].psn_off, table[i].va_off, table[i].len,
			   table[i].key_xor);
		for (n = 0; n < table[i].packets; n++) {
			assert_true(take_packet(&c.p, &pkt));
			assert_int_equal(pkt.psn, (END_PSN + table[i].psn_off +
						   n) & WIRE_PSN_MASK);
			/* A response of its own, from FIRST to LAST. */
			assert_int_equal(!!(wire_opcodes[pkt.opcode].flags &
					    WIRE_OP_FIRST),
					 n == 0);
			assert_int_equal(!!(wire_opcodes[pkt.opcode].flags &
					    WIRE_OP_LAST),
					 n == table[i].packets - 1);
		}
		assert_false(take_packet(&c.p, &pkt));
		assert_int_equal(counter(&c.e[1], NIC_C_drop_duplicate) - drops,
				 table[i].packets ? 0 : 1);
	}
	/* An atomic in the place of a READ. */
	send_request(&c, WIRE_RC_FAA, 0, 0);
	assert_int_equal(counter(&c.e[1], NIC_C_drop_duplicate), 11);
	assert_untouched(&c.e[1]);
	done(&c);
}

static void atomics_are_executed_once(void **state)
{
	struct wire_pkt faa, pkt;
	struct conn c;
	unsigned i;

	begin(&c);
	*(uint64_t *)(void *)c.e[1].mem = 100;
	faa = request(&c, WIRE_RC_FAA, 0, 0);
	faa.atomic = (struct atomic_op){.is_add = true, .swap_add = 1};
	for (i = 0; i < 3; i++) {
		inject(&c.e[1], &faa);
		nic_flush(c.e[1].nic);
		assert_true(take_packet(&c.p, &pkt));
		assert_int_equal(pkt.opcode, WIRE_RC_ATOMIC_ACK);
		assert_int_equal(pkt.psn, END_PSN);
		assert_int_equal(pkt.original, 100);
		assert_int_equal(*(uint64_t *)(void *)c.e[1].mem, 101);
	}
	assert_int_equal(counter(&c.e[1], NIC_C_duplicate_atomics), 2);
	/* A READ in its place is not answered. */
	read_again(&c, 0, 0, 8, 0);
	assert_int_equal(counter(&c.e[1], NIC_C_drop_duplicate), 1);
	assert_false(take_packet(&c.p, &pkt));
	/* Out of memory after as many others as there are resources. */
	for (i = 0; i < END_RD_ATOMIC; i++) {
		faa.psn = (END_PSN + 1 + i) & WIRE_PSN_MASK;
		inject(&c.e[1], &faa);
		nic_flush(c.e[1].nic);
		assert_true(take_packet(&c.p, &pkt));
	}
	faa.psn = END_PSN;
	inject(&c.e[1], &faa);
	nic_flush(c.e[1].nic);
	assert_false(take_packet(&c.p, &pkt));
	assert_int_equal(counter(&c.e[1], NIC_C_drop_duplicate), 2);
	assert_int_equal(*(uint64_t *)(void *)c.e[1].mem, 109);
	done(&c);
}

static void more_reads_than_agreed(void **state)
{
	struct wire_pkt pkt;
	struct conn c;
	unsigned i;

	begin(&c);
	for (i = 0; i <= END_RD_ATOMIC; i++) {
		pkt = request(&c, WIRE_RC_READ_REQ, i, 0);
		pkt.dma_len = 8;
		inject(&c.e[1], &pkt);
	}
	assert_int_equal(counter(&c.e[1], NIC_C_deny_resources), 1);
	nic_flush(c.e[1].nic);
	for (i = 0; i < END_RD_ATOMIC; i++) {
		assert_true(take_packet(&c.p, &pkt));
		assert_int_equal(pkt.opcode, WIRE_RC_READ_RESP_ONLY);
		assert_int_equal(pkt.psn, (END_PSN + i) & WIRE_PSN_MASK);
	}
	expect_ack(&c.p, INV, END_PSN + END_RD_ATOMIC);
	assert_int_equal(nic_qp_state(c.e[1].qp), IBV_QPS_ERR);
	done(&c);
}

static void no_reads_agreed(void **state)
{
	struct ibv_qp_attr none = {.max_dest_rd_atomic = 0};
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct conn c;

		begin(&c);
		qp_to(c.e[1].qp, IBV_QPS_SQD);
		assert_int_equal(nic_qp_modify(c.e[1].qp, &none,
					       IBV_QP_MAX_DEST_RD_ATOMIC),
				 0);
		send_request(&c, i ? WIRE_RC_READ_REQ : WIRE_RC_FAA, 0, 0);
		assert_int_equal(counter(&c.e[1], NIC_C_deny_resources), 1);
		expect_ack(&c.p, INV, END_PSN);
		assert_untouched(&c.e[1]);
		done(&c);
	}
}

/* The answers to two repeated READs wait when a new one takes the place of the
 * first: the second used to be sent after the new one. */
static void answers_stay_in_order(void **state)
{
	struct wire_pkt pkt;
	struct conn c;
	unsigned i;

	begin(&c);
	for (i = 0; i < END_RD_ATOMIC; i++) {
		read_again(&c, i, 0, 8, 0);
		assert_true(take_packet(&c.p, &pkt));
	}
	for (i = 0; i <= END_RD_ATOMIC; i++) {
		pkt = request(&c, WIRE_RC_READ_REQ, i, 0);
		pkt.dma_len = 8;
		inject(&c.e[1], &pkt);
	}
	nic_flush(c.e[1].nic);
	for (i = 1; i <= END_RD_ATOMIC; i++) {
		assert_true(take_packet(&c.p, &pkt));
		assert_int_equal(pkt.psn, (END_PSN + i) & WIRE_PSN_MASK);
	}
	assert_false(take_packet(&c.p, &pkt));
	done(&c);
}

static void guessers_are_blocked(void **state)
{
	struct conn c;
	unsigned i;

	begin(&c);
	for (i = 0; i < NIC_KEY_FAILURES; i++) {
		struct wire_pkt pkt = request(&c, WIRE_RC_WRITE_ONLY, 0, 8);

		pkt.rkey ^= 0x100;
		inject(&c.e[1], &pkt);
		qp_to(c.e[1].qp, IBV_QPS_RESET);
		end_connect(&c.e[1], &c.e[0], IBV_MTU_256);
	}
	send_request(&c, WIRE_RC_WRITE_ONLY, 0, 8);
	assert_int_equal(counter(&c.e[1], NIC_C_drop_blocked), 1);
	assert_untouched(&c.e[1]);
	done(&c);
}

/* ---- the count ------------------------------------------------------------
 */

static void every_reason_was_met(void **state)
{
	unsigned i, missing = 0;

	for (i = 0; i < NIC_COUNTER_COUNT; i++) {
		const char *name = nic_counter_names[i];

		if (strncmp(name, "drop_", 5) && strncmp(name, "deny_", 5))
			continue;
		/* See test_nic_path.c. */
		if (i == NIC_C_drop_path)
			continue;
		/* See test_os_unmap.c. */
		if (i == NIC_C_deny_unmapped)
			continue;
		/* See test_nic_auth.c. */
		if (i == NIC_C_drop_auth)
			continue;
		/* See test_nic_hop.c. */
		if (i == NIC_C_drop_hop || i == NIC_C_drop_hop_full)
			continue;
		/* Responses: see test_nic_answer.c. */
		if (i == NIC_C_drop_response || i == NIC_C_drop_multi)
			continue;
		if (!reached[i]) {
			print_error("%s was never counted\n", name);
			missing++;
		}
	}
	assert_int_equal(missing, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_that_are_no_packets),
		cmocka_unit_test(packets_of_strangers),
		cmocka_unit_test(states_that_do_not_listen),
		cmocka_unit_test(strangers_do_not_reach_datagrams),
		cmocka_unit_test(bad_requests_are_refused),
		cmocka_unit_test(rights_and_domains),
		cmocka_unit_test(messages_keep_their_form),
		cmocka_unit_test(sends_that_outgrow_their_receive),
		cmocka_unit_test(packets_of_the_future),
		cmocka_unit_test(packets_of_the_past),
		cmocka_unit_test(reads_are_repeated_as_they_were),
		cmocka_unit_test(atomics_are_executed_once),
		cmocka_unit_test(more_reads_than_agreed),
		cmocka_unit_test(no_reads_agreed),
		cmocka_unit_test(answers_stay_in_order),
		cmocka_unit_test(guessers_are_blocked),
		cmocka_unit_test(every_reason_was_met),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
