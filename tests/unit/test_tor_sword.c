/* SPDX-License-Identifier: Apache-2.0 */
/* SwordBox packet by packet: what each side of the switch sees, and the limits.
 * Whether it is right as a whole is test_play_sword's business. */
#include "sword_rig.h"

/* A compare and swap, all its packets, from an empty cache. */
static void one_cas(void **state)
{
	struct rig *r = make("", 1);
	uint64_t value = 5;
	struct wire_pkt w;

	send_cas(r, 1, 1000, 5, 6);
	w = at_server(r);
	assert_int_equal(w.opcode, WIRE_RC_WRITE_ONLY);
	assert_int_equal(w.psn, 1000);
	assert_int_equal(w.dma_len, 0);
	assert_true(w.ack_req);
	assert_int_equal(w.dest_qpn, 201);
	rig_clear(r);
	send_reply(r, 1, WIRE_RC_ACK, 1000, WIRE_ACK_UNLIMITED, NULL);
	assert_int_equal(r->ports[0].got, 0); /* not yet */
	w = at_server(r);
	assert_int_equal(w.opcode, WIRE_RC_READ_REQ);
	assert_int_equal(w.psn, 0xffffff);
	assert_int_equal(w.dest_qpn, SHARED_QPN);
	rig_clear(r);
	send_reply(r, 0, WIRE_RC_READ_RESP_ONLY, 0xffffff, 0x1f, &value);
	w = at_server(r);
	assert_int_equal(w.opcode, WIRE_RC_WRITE_ONLY);
	assert_int_equal(w.psn, 0);
	assert_int_equal(w.va, VA);
	assert_int_equal(w.payload_len, 8);
	assert_int_equal(w.payload[0], 6);
	rig_clear(r);
	send_reply(r, 0, WIRE_RC_ACK, 0, WIRE_ACK_UNLIMITED, NULL);
	assert_int_equal(r->ports[0].got, 1);
	w = rig_got(r, 0, 0);
	assert_int_equal(w.opcode, WIRE_RC_ATOMIC_ACK);
	assert_int_equal(w.psn, 1000);
	assert_int_equal(w.dest_qpn, 101);
	assert_int_equal(w.original, 5);
	/* Its answer is lost: the same again, and nothing for the server. */
	rig_clear(r);
	send_cas(r, 1, 1000, 5, 6);
	assert_int_equal(rig_got(r, 0, 0).original, 5);
	assert_int_equal(r->ports[SERVER_PORT].got, 0);
	rig_destroy(r);
}

/* Brings a word into the cache. */
static void warm(struct rig *r, unsigned client, uint32_t psn)
{
	uint64_t zero = 0;

	send_cas(r, client, psn, 77, 78);
	send_reply(r, client, WIRE_RC_ACK, psn, WIRE_ACK_UNLIMITED, NULL);
	send_reply(r, 0, WIRE_RC_READ_RESP_ONLY, 0xffffff, 0x1f, &zero);
	send_reply(r, 0, WIRE_RC_ACK, 0, WIRE_ACK_UNLIMITED, NULL);
	rig_clear(r);
}

/* Three clients, one acknowledgement for all, three answers in order. */
static void coalesced(void **state)
{
	struct rig *r = make("", 3);

	warm(r, 1, 1000);
	for (unsigned i = 1; i <= 3; i++) {
		uint32_t psn = i == 1 ? 1001 : 1000 * i;

		send_cas(r, i, psn, i - 1, i);
		send_reply(r, i, WIRE_RC_ACK, psn, WIRE_ACK_UNLIMITED, NULL);
	}
	assert_int_equal(r->ports[SERVER_PORT].got, 6);
	rig_clear(r);
	send_reply(r, 0, WIRE_RC_ACK, 3, WIRE_ACK_UNLIMITED, NULL);
	for (unsigned i = 1; i <= 3; i++) {
		struct wire_pkt w = rig_got(r, i - 1, 0);

		assert_int_equal(w.opcode, WIRE_RC_ATOMIC_ACK);
		assert_int_equal(w.original, i - 1);
	}
	rig_destroy(r);
}

/* A NAK on the shared connection, and a timeout, go back. */
static void goes_back(void **state)
{
	struct rig *r = make("rto_us=100", 2);

	warm(r, 1, 1000);
	send_cas(r, 1, 1001, 0, 1);
	send_reply(r, 1, WIRE_RC_ACK, 1001, WIRE_ACK_UNLIMITED, NULL);
	send_cas(r, 2, 2000, 1, 2);
	send_reply(r, 2, WIRE_RC_ACK, 2000, WIRE_ACK_UNLIMITED, NULL);
	rig_clear(r);
	send_reply(r, 0, WIRE_RC_ACK, 1, WIRE_NAK_PSN, NULL);
	assert_int_equal(r->ports[SERVER_PORT].got, 2);
	assert_int_equal(rig_got(r, SERVER_PORT, 0).psn, 1);
	assert_int_equal(rig_got(r, SERVER_PORT, 1).psn, 2);
	assert_int_equal(r->ports[0].got + r->ports[1].got, 0);
	/* This one also says that the first was executed. */
	rig_clear(r);
	send_reply(r, 0, WIRE_RC_ACK, 2, WIRE_NAK_PSN, NULL);
	assert_int_equal(rig_got(r, 0, 0).original, 0);
	assert_int_equal(r->ports[SERVER_PORT].got, 1);
	rig_clear(r);
	rig_pass(r, 200000);
	assert_int_equal(rig_got(r, SERVER_PORT, 0).psn, 2);
	/* Nobody answers for long: given up, and nothing is answered. */
	for (unsigned i = 0; i < 2 * END_TX_TRIES; i++) {
		rig_clear(r);
		rig_pass(r, END_TX_RTO_MAX_NS + 1);
	}
	assert_int_equal(r->ports[SERVER_PORT].got, 0);
	assert_int_equal(r->ports[1].got, 0);
	rig_destroy(r);
}

/* What follows an operation waits for its answer, and is then asked for. */
static void keeps_the_order(void **state)
{
	struct rig *r = make("", 1);
	struct wire_pkt read = request(1, WIRE_RC_READ_REQ, 1002);

	warm(r, 1, 1000);
	send_cas(r, 1, 1001, 0, 1);
	rig_clear(r);
	read.dma_len = 8;
	rig_send(r, 0, &read);
	assert_int_equal(r->ports[SERVER_PORT].got, 0);
	send_reply(r, 1, WIRE_RC_ACK, 1001, WIRE_ACK_UNLIMITED, NULL);
	send_reply(r, 0, WIRE_RC_ACK, 1, WIRE_ACK_UNLIMITED, NULL);
	assert_int_equal(r->ports[0].got, 2);
	assert_int_equal(rig_got(r, 0, 0).opcode, WIRE_RC_ATOMIC_ACK);
	assert_int_equal(rig_got(r, 0, 1).syndrome, WIRE_NAK_PSN);
	assert_int_equal(rig_got(r, 0, 1).psn, 1002);
	rig_clear(r);
	rig_send(r, 0, &read);
	assert_int_equal(r->ports[SERVER_PORT].got, 1);
	rig_destroy(r);
}

/* A WRITE of bytes inside a word changes those bytes only. */
static void small_write(void **state)
{
	struct rig *r = make("", 1);
	const uint8_t bytes[2] = {0xaa, 0xbb};
	struct wire_pkt w = request(1, WIRE_RC_WRITE_ONLY, 1001);

	warm(r, 1, 1000);
	w.va = VA + 3;
	w.dma_len = w.payload_len = 2;
	w.payload = bytes;
	rig_send(r, 0, &w);
	rig_clear(r);
	send_reply(r, 1, WIRE_RC_ACK, 1001, WIRE_ACK_UNLIMITED, NULL);
	w = at_server(r);
	assert_int_equal(w.va, VA);
	assert_int_equal(w.payload[2], 0);
	assert_int_equal(w.payload[3], 0xaa);
	assert_int_equal(w.payload[4], 0xbb);
	send_reply(r, 0, WIRE_RC_ACK, 1, WIRE_ACK_UNLIMITED, NULL);
	assert_int_equal(rig_got(r, 0, 0).opcode, WIRE_RC_ACK);
	rig_destroy(r);
}

/* A large WRITE over the words takes its own way, and they are read again. */
static void bulk_write(void **state)
{
	struct rig *r = make("", 2);
	uint8_t bytes[32] = {1};
	struct wire_pkt w = request(2, WIRE_RC_WRITE_ONLY, 2000);

	warm(r, 1, 1000);
	w.dma_len = w.payload_len = sizeof(bytes);
	w.payload = bytes;
	rig_send(r, 1, &w);
	w = at_server(r);
	assert_int_equal(w.payload_len, 32);
	assert_true(w.ack_req);
	rig_clear(r);
	send_cas(r, 1, 1001, 0, 1); /* refused for now */
	assert_int_equal(r->ports[SERVER_PORT].got, 0);
	send_reply(r, 2, WIRE_RC_ACK, 2000, WIRE_ACK_UNLIMITED, NULL);
	assert_int_equal(r->ports[1].got, 1);
	send_cas(r, 1, 1001, 0, 1);
	rig_clear(r);
	send_reply(r, 1, WIRE_RC_ACK, 1001, WIRE_ACK_UNLIMITED, NULL);
	assert_int_equal(at_server(r).opcode, WIRE_RC_READ_REQ);
	rig_destroy(r);
}

static void strangers_and_closed_doors(void **state)
{
	struct rig *r = make("", 1);
	struct rig *closed = rig_create(4, 24);

	send_cas(r, 2, 2000, 0, 1);
	assert_int_equal(r->ports[SERVER_PORT].got, 0);
	/* An acknowledgement for a client of a former switch. */
	send_reply(r, 2, WIRE_RC_ACK, 2000, WIRE_ACK_UNLIMITED, NULL);
	assert_int_equal(r->ports[1].got, 0);
	rig_destroy(r);
	assert_int_equal(tor_program_add(closed->tor, "swordbox", ""), 0);
	send_cas(closed, 1, 1000, 0, 1);
	assert_int_equal(tor_counter(closed->tor, TOR_C_program_drops), 1);
	tell(closed, 0, "swordbox ready");
	send_cas(closed, 1, 1000, 0, 1);
	assert_int_equal(tor_counter(closed->tor, TOR_C_flooded), 1);
	rig_destroy(closed);
}

/* More operations than are remembered: refused, not forgotten. */
static void deep_pipelines(void **state)
{
	struct rig *r = make("", 1);

	for (unsigned i = 0; i < 2 * SWORD_DEPTH; i++)
		send_cas(r, 1, 1000 + i, 0, 1);
	assert_int_equal(r->ports[SERVER_PORT].got, SWORD_DEPTH);
	rig_destroy(r);
}

/* The packet as one of the i-th of many connections. */
static void from_many(struct wire_pkt *pkt, unsigned i)
{
	pkt->src_ip[13] = 1;
	pkt->src_ip[14] = (uint8_t)(i / 250);
	pkt->src_ip[15] = (uint8_t)(i % 250 + 1);
	pkt->dest_qpn = i + 2;
}

/* Ten thousand connections, and not one more; each has its own operations. */
static void many_connections(void **state)
{
	struct rig *r = make("conns=10000", 0);
	struct wire_pkt pkt;
	char like[160];

	for (unsigned i = 0; i < 10000; i++)
		tell(r, 0,
		     "swordbox conn server=10.0.0.9 client=10.1.%u.%u "
		     "client_qpn=%u server_qpn=%u psn=1",
		     i / 250, i % 250 + 1, i + 2, i + 2);
	tell(r, -ENOSPC,
	     "swordbox conn server=10.0.0.9 client=10.2.0.1 client_qpn=9 "
	     "server_qpn=9 psn=1");
	for (unsigned i = 0; i < 20000; i++) {
		pkt = request(1, WIRE_RC_CAS, 1 + i / 10000);
		from_many(&pkt, i % 10000);
		rig_clear(r);
		rig_send(r, 0, &pkt);
		assert_int_equal(at_server(r).psn, 1 + i / 10000);
		assert_int_equal(at_server(r).dest_qpn, i % 10000 + 2);
	}
	snprintf(like, sizeof(like),
		 "swordbox end server=10.0.0.9 client=10.1.3.4 client_qpn=%d "
		 "server_qpn=%d",
		 3 * 250 + 3 + 2, 3 * 250 + 3 + 2);
	tell(r, 0, "%s", like);
	tell(r, -ENOENT, "%s", like);
	pkt = request(1, WIRE_RC_CAS, 1);
	from_many(&pkt, 3 * 250 + 3);
	rig_clear(r);
	rig_send(r, 0, &pkt);
	assert_int_equal(r->ports[SERVER_PORT].got, 0);
	/* The server comes back: all of them at once are gone. */
	tell(r, 0,
	     "swordbox server ip=10.0.0.9 own_ip=10.0.0.250 qpn=5 own_qpn=6 "
	     "psn=0");
	from_many(&pkt, 7);
	rig_send(r, 0, &pkt);
	assert_int_equal(r->ports[SERVER_PORT].got, 0);
	rig_destroy(r);
}

/* The server's port goes and comes back, with operations on their way: they are
 * done once, and their client hears of it. */
static void the_port_flaps(void **state)
{
	struct rig *r = make("rto_us=100", 1);
	struct wire_pkt hello = {.opcode = WIRE_UD_SEND_ONLY};

	warm(r, 1, 1000);
	send_cas(r, 1, 1001, 0, 1);
	send_reply(r, 1, WIRE_RC_ACK, 1001, WIRE_ACK_UNLIMITED, NULL);
	for (unsigned i = 0; i < 5; i++) {
		tor_port_remove(r->ports[SERVER_PORT].port);
		rig_pass(r, 1000000);
		rig_add_port(r, SERVER_PORT);
		rig_addresses(&hello, SERVER, 99);
		rig_send(r, SERVER_PORT, &hello);
	}
	rig_clear(r);
	rig_pass(r, END_TX_RTO_MAX_NS);
	assert_int_equal(at_server(r).psn, 1);
	assert_int_equal(at_server(r).payload[0], 1);
	send_reply(r, 0, WIRE_RC_ACK, 1, WIRE_ACK_UNLIMITED, NULL);
	assert_int_equal(rig_got(r, 0, 0).original, 0);
	rig_destroy(r);
}

/* Packet numbers come round: a connection that has read for long still has its
 * WRITEs executed, and a number that is used again is another operation. */
static void numbers_come_round(void **state)
{
	const uint32_t step = 1u << 21;
	struct rig *r = make("", 1);
	const uint8_t bytes[8] = {9};
	struct wire_pkt w;

	warm(r, 1, 1000);
	for (uint32_t i = 1; i < 8; i++) {
		w = request(1, WIRE_RC_READ_REQ, 1000 + i * step);
		w.rkey++;
		w.dma_len = 8;
		rig_send(r, 0, &w);
		assert_int_equal(r->ports[SERVER_PORT].got, 1);
		rig_clear(r);
		/* More than half of all numbers behind the first operation. */
		if (i != 5)
			continue;
		w = request(1, WIRE_RC_WRITE_ONLY, 1000 + i * step + 1);
		w.dma_len = w.payload_len = sizeof(bytes);
		w.payload = bytes;
		rig_send(r, 0, &w);
		assert_int_equal(r->ports[0].got, 0);
		assert_int_equal(at_server(r).psn, 1000 + i * step + 1);
		rig_clear(r);
		send_reply(r, 1, WIRE_RC_ACK, 1000 + i * step + 1,
			   WIRE_ACK_UNLIMITED, NULL);
		assert_int_equal(at_server(r).payload[0], 9);
		send_reply(r, 0, WIRE_RC_ACK, 1, WIRE_ACK_UNLIMITED, NULL);
		rig_clear(r);
	}
	send_cas(r, 1, 1000, 9, 10);
	assert_int_equal(r->ports[0].got, 0);
	assert_int_equal(at_server(r).psn, 1000);
	rig_destroy(r);
}

/* A queue pair's next connection is not ended by who means the one before. */
static void ends_the_right_one(void **state)
{
	struct rig *r = make("", 1);

	tell(r, -ENOENT,
	     "swordbox end server=10.0.0.9 client=10.0.0.1 client_qpn=101 "
	     "server_qpn=7");
	tell(r, -ENOENT,
	     "swordbox end server=10.0.0.9 client=10.0.0.1 client_qpn=7 "
	     "server_qpn=201");
	send_cas(r, 1, 1000, 5, 6);
	assert_int_equal(r->ports[SERVER_PORT].got, 1);
	rig_destroy(r);
}

/* Client 2 asks host 3, another server, whose word finds no place. */
static void ask_other(struct rig *r)
{
	struct wire_pkt w = request(2, WIRE_RC_CAS, 500);

	tell(r, 0,
	     "swordbox server ip=10.0.0.3 own_ip=10.0.0.251 qpn=8 own_qpn=9 "
	     "psn=0");
	tell(r, 0, "swordbox region server=10.0.0.3 rkey=%d va=%llu len=64",
	     RKEY, VA);
	tell(r, 0,
	     "swordbox conn server=10.0.0.3 client=10.0.0.2 client_qpn=102 "
	     "server_qpn=202 psn=500");
	rig_addresses(&w, 2, 3);
	rig_send(r, 1, &w);
	w = (struct wire_pkt){.opcode = WIRE_RC_ACK,
			      .psn = 500,
			      .syndrome = WIRE_ACK_UNLIMITED,
			      .dest_qpn = 102};
	rig_addresses(&w, 3, 2);
	rig_clear(r);
	rig_send(r, 2, &w);
	assert_int_equal(r->ports[2].got, 0); /* it waits */
}

/* Four words, all there is room for, with WRITEs that nobody acknowledges. */
static void fill_the_words(struct rig *r)
{
	uint64_t zero = 0;
	struct wire_pkt w;

	for (unsigned i = 0; i < 8; i++) {
		w = request(1, WIRE_RC_CAS, 1000 + i);
		w.va = VA + 8 * (i % 4);
		rig_send(r, 0, &w);
		send_reply(r, 1, WIRE_RC_ACK, 1000 + i, WIRE_ACK_UNLIMITED,
			   NULL);
		if (i >= 4)
			continue;
		send_reply(r, 0, WIRE_RC_READ_RESP_ONLY,
			   (0xffffff + 2 * i) & 0xffffff, 0x1f, &zero);
		send_reply(r, 0, WIRE_RC_ACK, 2 * i, WIRE_ACK_UNLIMITED, NULL);
	}
}

/* A word that waits for a place gets it when another server's are free. */
static void words_become_free(void **state)
{
	struct rig *r = make("rto_us=100,words=4", 1);

	fill_the_words(r);
	ask_other(r);
	rig_pass(r, 150000);
	assert_int_equal(r->ports[2].got, 0);
	send_reply(r, 0, WIRE_RC_ACK, 10, WIRE_ACK_UNLIMITED, NULL);
	rig_pass(r, 250000);
	assert_int_equal(rig_got(r, 2, 0).opcode, WIRE_RC_READ_REQ);
	rig_destroy(r);
}

/* A shared connection that was given up holds nothing back: its words' places
 * are others', and what used it ends. */
static void the_dead_let_go(void **state)
{
	struct rig *r = make("rto_us=100,words=4", 1);

	fill_the_words(r);
	ask_other(r);
	tell(r, -EBUSY,
	     "swordbox end server=10.0.0.9 client=10.0.0.1 client_qpn=101 "
	     "server_qpn=201");
	for (unsigned i = 0; i < 2 * END_TX_TRIES && !r->ports[2].got; i++) {
		rig_clear(r);
		rig_pass(r, END_TX_RTO_MAX_NS / 4);
	}
	assert_int_equal(rig_got(r, 2, 0).opcode, WIRE_RC_READ_REQ);
	send_cas(r, 1, 1008, 0, 1);
	send_reply(r, 1, WIRE_RC_ACK, 1008, WIRE_ACK_UNLIMITED, NULL);
	tell(r, 0,
	     "swordbox end server=10.0.0.9 client=10.0.0.1 client_qpn=101 "
	     "server_qpn=201");
	tell(r, 0, "swordbox gone server=10.0.0.9 rkey=%d", RKEY);
	rig_destroy(r);
}

/* A table that is full takes the place of who was silent for long enough. */
static void idle_connections_end(void **state)
{
	struct rig *r = make("conns=1,idle_s=1", 1);

	tell(r, -ENOSPC,
	     "swordbox conn server=10.0.0.9 client=10.0.0.2 client_qpn=102 "
	     "server_qpn=202 psn=1");
	rig_pass(r, 1500000000);
	move_conn(r, 2, 1);
	send_cas(r, 1, 1000, 5, 6);
	assert_int_equal(r->ports[SERVER_PORT].got, 0);
	rig_destroy(r);
}

static void says_what_is_wrong(void **state)
{
	static const char *const bad[] = {
		"dance",
		"server ip=10.0.0.9",
		"server ip=x own_ip=10.0.0.1 qpn=1 own_qpn=2 psn=0",
		"server ip=10.0.0.9 own_ip=fe80::1 qpn=1 own_qpn=2 psn=0",
		"server ip=10.0.0.9 own_ip=10.0.0.1 qpn=1 own_qpn=2 "
		"psn=99999999",
		"region server=10.0.0.9 rkey=1 va=4 len=8",
		"region server=10.0.0.9 rkey=1 va=8 len=0",
		"region server=10.0.0.9 rkey=1 va=18446744073709551608 len=16",
		"region server=10.0.0.9 rkey=1 va=8 len=8 color=red",
		"conn server=10.0.0.9 client=10.0.0.1 client_qpn=1 "
		"server_qpn=-1 "
		"psn=0",
	};
	struct rig *r = make("", 1);

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		tell(r, -EINVAL, "swordbox %s", bad[i]);
		assert_true(error_last()[0]);
	}
	tell(r, -ENOENT, "swordbox region server=10.0.0.8 rkey=1 va=8 len=8");
	tell(r, -EEXIST,
	     "swordbox conn server=10.0.0.9 client=10.0.0.1 client_qpn=101 "
	     "server_qpn=201 psn=0");
	assert_int_equal(
		tor_program_add(r->tor, "swordbox", "bug=early_answer"),
		-EINVAL);
	assert_int_equal(tor_program_add(r->tor, "swordbox", "conns=x"),
			 -EINVAL);
	for (unsigned i = 1; i < SWORD_REGIONS; i++)
		tell(r, 0, "swordbox region server=10.0.0.9 rkey=1 va=8 len=8");
	tell(r, -ENOSPC, "swordbox region server=10.0.0.9 rkey=1 va=8 len=8");
	/* Declared anew: nothing of before is left. */
	tell(r, 0,
	     "swordbox server ip=10.0.0.9 own_ip=10.0.0.250 qpn=5 own_qpn=6 "
	     "psn=0");
	tell(r, 0, "swordbox region server=10.0.0.9 rkey=1 va=8 len=8");
	/* By another one with the same address: neither would work. */
	tell(r, -EEXIST,
	     "swordbox server name=m1 ip=10.0.0.9 own_ip=10.0.0.250 qpn=7 "
	     "own_qpn=8 psn=0");
	tell(r, 0, "swordbox leave ip=10.0.0.9");
	tell(r, -ENOENT, "swordbox leave ip=10.0.0.9");
	tell(r, 0,
	     "swordbox server name=m1 ip=10.0.0.9 own_ip=10.0.0.250 qpn=7 "
	     "own_qpn=8 psn=0");
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_cas),
		cmocka_unit_test(coalesced),
		cmocka_unit_test(goes_back),
		cmocka_unit_test(keeps_the_order),
		cmocka_unit_test(small_write),
		cmocka_unit_test(bulk_write),
		cmocka_unit_test(strangers_and_closed_doors),
		cmocka_unit_test(deep_pipelines),
		cmocka_unit_test(many_connections),
		cmocka_unit_test(the_port_flaps),
		cmocka_unit_test(numbers_come_round),
		cmocka_unit_test(ends_the_right_one),
		cmocka_unit_test(words_become_free),
		cmocka_unit_test(the_dead_let_go),
		cmocka_unit_test(idle_connections_end),
		cmocka_unit_test(says_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
