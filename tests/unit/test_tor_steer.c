/* SPDX-License-Identifier: Apache-2.0 */
/* Steering packet by packet: what each side of the switch sees, and the limits.
 * Whether it is right as a whole is test_play_vlist's business. */
#include "tor_rig.h"

#include <stdio.h>

#include "base/error.h"
#include "switch/steer.h"

enum {
	SERVER = 9, /* host, and the port behind it */
	SERVER_PORT = 3,
	RKEY = 0x1234,
	NODE = 136,
	NODES_AT = 4096,
};

#define VA 0x100000ull

static void tell(struct rig *r, int want, const char *text)
{
	if (tor_control(r->tor, text, NULL) != want)
		fail_msg("%s: %s", text, error_last());
}

static uint64_t node(unsigned i)
{
	return vlist_pointer(NODES_AT + (uint64_t)i * NODE, 5);
}

static uint64_t va_of(uint64_t pointer)
{
	return VA + vlist_offset(pointer);
}

static struct wire_pkt request(unsigned client, uint8_t opcode, uint32_t psn)
{
	struct wire_pkt pkt = {.opcode = opcode,
			       .psn = psn,
			       .dest_qpn = 200 + client,
			       .rkey = RKEY};

	rig_addresses(&pkt, (uint8_t)client, SERVER);
	return pkt;
}

static struct wire_pkt answer(unsigned client, uint8_t opcode, uint32_t psn)
{
	struct wire_pkt pkt = {.opcode = opcode,
			       .psn = psn,
			       .syndrome = WIRE_ACK_UNLIMITED,
			       .dest_qpn = 100 + client};

	rig_addresses(&pkt, SERVER, (uint8_t)client);
	return pkt;
}

/* Hosts 1, 2, 3 at ports 0, 1, 2; the server at port 3. Each client has had an
 * answer, so that its requests from 1000 on are known to be new. */
static struct rig *make_with(const char *options, const char *conn)
{
	struct rig *r = rig_create(4, 24);
	struct wire_pkt pkt = {.opcode = WIRE_UD_SEND_ONLY};

	for (unsigned i = 0; i < 4; i++) {
		rig_addresses(&pkt, (uint8_t)(i == 3 ? SERVER : i + 1), 99);
		rig_send(r, i, &pkt);
	}
	assert_int_equal(tor_program_add(r->tor, "steer", options), 0);
	tell(r, 0,
	     "steer store server=10.0.0.9 rkey=4660 va=1048576 nodes_at=4096 "
	     "nodes=100 node_bytes=136");
	for (unsigned i = 1; i <= 3; i++) {
		char text[128];

		snprintf(text, sizeof(text),
			 "steer conn server=10.0.0.9 client=10.0.0.%u "
			 "client_qpn=%u server_qpn=%u%s",
			 i, 100 + i, 200 + i, conn);
		tell(r, 0, text);
		pkt = request(i, WIRE_RC_READ_REQ, 999);
		rig_send(r, i - 1, &pkt);
		pkt = answer(i, WIRE_RC_READ_RESP_ONLY, 999);
		rig_send(r, SERVER_PORT, &pkt);
	}
	rig_clear(r);
	return r;
}

static struct rig *make(const char *options)
{
	return make_with(options, " fresh=1");
}

static void write_node(struct rig *r, unsigned client, uint32_t psn,
		       uint64_t which, uint64_t key)
{
	struct wire_pkt pkt = request(client, WIRE_RC_WRITE_ONLY, psn);
	struct vlist_node n = {.next = le64_put(vlist_end_of(which)),
			       .self = le64_put(which),
			       .key = le64_put(key)};

	pkt.va = va_of(which);
	pkt.dma_len = pkt.payload_len = sizeof(n);
	pkt.payload = (const uint8_t *)&n;
	rig_send(r, client - 1, &pkt);
	rig_clear(r);
}

/* Sends an append; where it went. */
static uint64_t append(struct rig *r, unsigned client, uint32_t psn,
		       uint64_t place, uint64_t which)
{
	struct wire_pkt pkt = request(client, WIRE_RC_CAS, psn);
	uint64_t at;

	pkt.va = va_of(place);
	pkt.atomic = (struct atomic_op){.compare = vlist_end_of(place),
					.swap_add = which,
					.swap_mask = UINT64_MAX,
					.compare_mask = UINT64_MAX};
	rig_send(r, client - 1, &pkt);
	pkt = rig_got(r, SERVER_PORT, 0);
	assert_int_equal(pkt.opcode, WIRE_RC_CAS);
	assert_int_equal(pkt.psn, psn);
	assert_int_equal(pkt.atomic.swap_add, which);
	at = pkt.atomic.compare | VLIST_LINK;
	assert_int_equal(pkt.va, va_of(at));
	rig_clear(r);
	return at;
}

static void answer_append(struct rig *r, unsigned client, uint32_t psn,
			  uint64_t original)
{
	struct wire_pkt pkt = answer(client, WIRE_RC_ATOMIC_ACK, psn);

	pkt.original = original;
	rig_send(r, SERVER_PORT, &pkt);
}

static void check_told(struct rig *r, unsigned client, uint32_t psn,
		       uint64_t original)
{
	struct wire_pkt pkt = rig_got(r, client - 1, 0);

	assert_int_equal(r->ports[client - 1].got, 1);
	assert_int_equal(pkt.opcode, WIRE_RC_ATOMIC_ACK);
	assert_int_equal(pkt.psn, psn);
	assert_int_equal(pkt.dest_qpn, 100 + client);
	assert_int_equal(pkt.original, original);
}

/* Three clients aim at node 0: they become a chain. Answers out of order are
 * told in order. */
static void appends_become_a_chain(void **state)
{
	struct rig *r = make("");

	for (unsigned i = 1; i <= 3; i++)
		write_node(r, i, 1000, node(i), 7);
	assert_int_equal(append(r, 1, 1001, node(0), node(1)), node(0));
	assert_int_equal(append(r, 2, 1001, node(0), node(2)), node(1));
	assert_int_equal(append(r, 3, 1001, node(0), node(3)), node(2));
	/* A retransmission goes where it went. */
	assert_int_equal(append(r, 2, 1001, node(0), node(2)), node(1));
	answer_append(r, 2, 1001, vlist_end_of(node(1)));
	answer_append(r, 3, 1001, vlist_end_of(node(2)));
	assert_int_equal(r->ports[1].got + r->ports[2].got, 0);
	answer_append(r, 1, 1001, vlist_end_of(node(0)));
	check_told(r, 1, 1001, vlist_end_of(node(0)) | VLIST_COMMITTED);
	check_told(r, 2, 1001, vlist_end_of(node(1)) | VLIST_COMMITTED);
	check_told(r, 3, 1001, vlist_end_of(node(2)) | VLIST_COMMITTED);
	rig_destroy(r);
}

/* The first one fails: who hangs behind it waits for its second try. */
static void a_failure_is_tried_again(void **state)
{
	struct rig *r = make("");

	for (unsigned i = 1; i <= 3; i++)
		write_node(r, i, 1000, node(i), 7);
	(void)append(r, 1, 1001, node(0), node(1));
	(void)append(r, 2, 1001, node(0), node(2));
	answer_append(r, 2, 1001, vlist_end_of(node(1)));
	answer_append(r, 1, 1001, node(9)); /* node 9 was there first */
	check_told(r, 1, 1001, node(9));
	assert_int_equal(r->ports[1].got, 0);
	rig_clear(r);
	/* The list is forgotten: never behind node 2, its own successor. */
	assert_int_equal(append(r, 1, 1002, node(9), node(1)), node(9));
	answer_append(r, 1, 1002, vlist_end_of(node(9)));
	check_told(r, 1, 1002, vlist_end_of(node(9)) | VLIST_COMMITTED);
	/* Node 2 came along with it, and is the end. */
	check_told(r, 2, 1001, vlist_end_of(node(1)) | VLIST_COMMITTED);
	rig_clear(r);
	assert_int_equal(append(r, 3, 1001, node(0), node(3)), node(2));
	rig_destroy(r);
}

/* It is not tried again: who hangs behind it is told after a while what the
 * server said, and no more. */
static void a_failure_is_given_up(void **state)
{
	struct rig *r = make("");

	for (unsigned i = 1; i <= 2; i++)
		write_node(r, i, 1000, node(i), 7);
	(void)append(r, 1, 1001, node(0), node(1));
	(void)append(r, 2, 1001, node(0), node(2));
	answer_append(r, 2, 1001, vlist_end_of(node(1)));
	answer_append(r, 1, 1001, node(9));
	rig_clear(r);
	rig_pass(r, 3000000);
	rig_pass(r, 3000000);
	check_told(r, 2, 1001, vlist_end_of(node(1)));
	rig_destroy(r);
}

/* An answer may be so late that the append before it, long committed, has been
 * forgotten for others of its client: that is no failure. */
static void late_is_not_lost(void **state)
{
	struct rig *r = make("");
	uint32_t psn = 1002;

	write_node(r, 1, 1000, node(1), 7);
	write_node(r, 2, 1000, node(2), 7);
	(void)append(r, 1, 1001, node(0), node(1));
	assert_int_equal(append(r, 2, 1001, node(0), node(2)), node(1));
	answer_append(r, 1, 1001, vlist_end_of(node(0)));
	for (unsigned i = 0; i < STEER_DEPTH; i++) {
		write_node(r, 1, psn++, node(10 + i), 8);
		(void)append(r, 1, psn, node(9 + i), node(10 + i));
		answer_append(r, 1, psn++, vlist_end_of(node(9 + i)));
	}
	rig_clear(r);
	answer_append(r, 2, 1001, vlist_end_of(node(1)));
	check_told(r, 2, 1001, vlist_end_of(node(1)) | VLIST_COMMITTED);
	rig_destroy(r);
}

/* After a failure nothing is put behind what only was sent; what succeeded is
 * the end again. */
static void a_lost_end_is_learned(void **state)
{
	struct rig *r = make("");

	for (unsigned i = 1; i <= 3; i++)
		write_node(r, i, 1000, node(i), 7);
	(void)append(r, 1, 1001, node(0), node(1));
	answer_append(r, 1, 1001, node(9));
	assert_int_equal(append(r, 2, 1001, node(8), node(2)), node(8));
	assert_int_equal(append(r, 3, 1001, node(9), node(3)), node(9));
	answer_append(r, 2, 1001, node(9)); /* too old: no news */
	answer_append(r, 3, 1001, vlist_end_of(node(9)));
	rig_clear(r);
	assert_int_equal(append(r, 2, 1002, node(8), node(2)), node(3));
	rig_destroy(r);
}

/* The end as the switch knows it is an old use of the memory that a client aims
 * at. Sent to the old one, the append would fail with the name of the new one,
 * which is what its client takes for success. */
static void another_use_is_no_place(void **state)
{
	uint64_t reused = vlist_pointer(vlist_offset(node(1)), 6);
	struct rig *r = make("");

	for (unsigned i = 1; i <= 3; i++)
		write_node(r, i, 1000, node(i), 7);
	(void)append(r, 1, 1001, node(0), node(1));
	answer_append(r, 1, 1001, vlist_end_of(node(0)));
	rig_clear(r);
	/* Past this switch node 1 was collected and used again. */
	assert_int_equal(append(r, 2, 1001, reused, node(2)), reused);
	answer_append(r, 2, 1001, vlist_end_of(reused));
	check_told(r, 2, 1001, vlist_end_of(reused) | VLIST_COMMITTED);
	/* That is the list now; nobody is sent to what was before. */
	assert_int_equal(append(r, 3, 1001, node(0), node(3)), node(2));
	rig_destroy(r);
}

/* The other way round: the client is late, and the list stays known. */
static void an_old_use_fails_by_itself(void **state)
{
	uint64_t old = vlist_pointer(vlist_offset(node(1)), 4);
	struct rig *r = make("");

	for (unsigned i = 1; i <= 3; i++)
		write_node(r, i, 1000, node(i), 7);
	(void)append(r, 1, 1001, node(0), node(1));
	answer_append(r, 1, 1001, vlist_end_of(node(0)));
	rig_clear(r);
	assert_int_equal(append(r, 2, 1001, old, node(2)), old);
	answer_append(r, 2, 1001, vlist_end_of(node(1)));
	check_told(r, 2, 1001, vlist_end_of(node(1)));
	assert_int_equal(append(r, 3, 1001, node(0), node(3)), node(1));
	rig_destroy(r);
}

/* An append without an answer is sent again, in its client's name. */
static void silence_is_broken(void **state)
{
	struct rig *r = make("resend_us=100");
	struct wire_pkt pkt;

	write_node(r, 1, 1000, node(1), 7);
	(void)append(r, 1, 1001, node(0), node(1));
	rig_pass(r, 150000);
	pkt = rig_got(r, SERVER_PORT, 0);
	assert_int_equal(pkt.opcode, WIRE_RC_CAS);
	assert_int_equal(pkt.psn, 1001);
	assert_int_equal(pkt.dest_qpn, 201);
	assert_int_equal(pkt.va, va_of(node(0)));
	for (unsigned i = 0; i < 50; i++)
		rig_pass(r, 150000);
	assert_int_equal(r->ports[SERVER_PORT].got, STEER_TRIES);
	rig_destroy(r);
}

static struct wire_pkt send_read(struct rig *r, unsigned client, uint32_t psn,
				 uint64_t place, uint32_t len)
{
	struct wire_pkt pkt = request(client, WIRE_RC_READ_REQ, psn);

	pkt.va = va_of(place);
	pkt.dma_len = len;
	rig_clear(r);
	rig_send(r, client - 1, &pkt);
	pkt = rig_got(r, SERVER_PORT, 0);
	rig_clear(r);
	return pkt;
}

static void answer_read_next(struct rig *r, unsigned client, uint32_t psn,
			     uint64_t self, uint64_t word)
{
	uint8_t bytes[NODE] = {0};
	struct vlist_node n = {.next = le64_put(word), .self = le64_put(self)};
	struct wire_pkt pkt = answer(client, WIRE_RC_READ_RESP_ONLY, psn);

	memcpy(bytes, &n, sizeof(n));
	pkt.payload = bytes;
	pkt.payload_len = sizeof(bytes);
	rig_send(r, SERVER_PORT, &pkt);
}

/* What the client was told of the version's successor. */
static uint64_t told_next(struct rig *r, unsigned client)
{
	struct wire_pkt pkt = rig_got(r, client - 1, 0);
	le64 next;

	memcpy(&next, pkt.payload, sizeof(next));
	rig_clear(r);
	return le64_get(next);
}

static uint64_t answer_read(struct rig *r, unsigned client, uint32_t psn,
			    uint64_t self)
{
	answer_read_next(r, client, psn, self, vlist_end_of(self));
	return told_next(r, client);
}

/* An answer that overtakes the append it was sent to waits for it, but not for
 * ever, and not while another one waits for it. */
static void answers_wait_for_appends(void **state)
{
	struct rig *r = make("");

	write_node(r, 1, 1000, node(1), 7);
	(void)append(r, 1, 1001, node(0), node(1));
	(void)send_read(r, 2, 1001, node(0), NODE);
	answer_read_next(r, 2, 1001, node(1), vlist_end_of(node(1)));
	assert_int_equal(r->ports[1].got, 0);
	answer_append(r, 1, 1001, vlist_end_of(node(0)));
	assert_int_equal(told_next(r, 2),
			 vlist_end_of(node(1)) | VLIST_COMMITTED);
	/* The next append; its answer does not come. */
	write_node(r, 1, 1002, node(2), 7);
	(void)append(r, 1, 1003, node(1), node(2));
	(void)send_read(r, 2, 1002, node(0), NODE);
	answer_read_next(r, 2, 1002, node(2), vlist_end_of(node(2)));
	assert_int_equal(r->ports[1].got, 0);
	/* Another answer of the connection comes. */
	answer_read_next(r, 2, 1003, node(5), vlist_end_of(node(5)));
	assert_int_equal(r->ports[1].got, 2);
	assert_int_equal(rig_got(r, 1, 0).psn, 1002);
	rig_clear(r);
	(void)send_read(r, 3, 1001, node(0), NODE);
	answer_read_next(r, 3, 1001, node(2), vlist_end_of(node(2)));
	assert_int_equal(r->ports[2].got, 0);
	rig_pass(r, 2 * STEER_HOLD_NS);
	assert_int_equal(told_next(r, 3), vlist_end_of(node(2)));
	rig_destroy(r);
}

/* A successor that passed after the READ did is none yet for its client. */
static void later_successors_are_hidden(void **state)
{
	struct rig *r = make("");

	for (unsigned i = 1; i <= 3; i++)
		write_node(r, i, 1000, node(i), 7);
	(void)append(r, 1, 1001, node(0), node(1));
	answer_append(r, 1, 1001, vlist_end_of(node(0)));
	(void)send_read(r, 3, 1001, node(0), NODE);
	(void)append(r, 2, 1001, node(0), node(2));
	answer_read_next(r, 3, 1001, node(1), node(2));
	assert_int_equal(told_next(r, 3),
			 vlist_end_of(node(1)) | VLIST_COMMITTED);
	/* One that somebody appended by another way is not. */
	(void)send_read(r, 3, 1002, node(0), NODE);
	answer_append(r, 2, 1001, vlist_end_of(node(1)));
	rig_clear(r);
	answer_read_next(r, 3, 1002, node(2), node(9));
	assert_int_equal(told_next(r, 3), node(9) | VLIST_COMMITTED);
	rig_destroy(r);
}

/* Nor is one that may have passed a switch that was here before: its client may
 * only ask again, and others may have read it already. */
static void old_successors_are_not_hidden(void **state)
{
	struct rig *r = make_with("", "");

	for (unsigned i = 1; i <= 2; i++)
		write_node(r, i, 1000, node(i), 7);
	(void)append(r, 1, 1001, node(0), node(1));
	answer_append(r, 1, 1001, vlist_end_of(node(0)));
	(void)send_read(r, 3, 1001, node(0), NODE);
	(void)append(r, 2, 1001, node(0), node(2));
	answer_read_next(r, 3, 1001, node(1), node(2));
	assert_int_equal(told_next(r, 3), node(2) | VLIST_COMMITTED);
	answer_append(r, 2, 1001, vlist_end_of(node(1)));
	rig_clear(r);
	/* So many packets later it cannot be. */
	write_node(r, 1, 1000 + STEER_WINDOW, node(3), 7);
	(void)send_read(r, 3, 1002, node(0), NODE);
	(void)append(r, 1, 1001 + STEER_WINDOW, node(1), node(3));
	answer_read_next(r, 3, 1002, node(2), node(3));
	assert_int_equal(told_next(r, 3),
			 vlist_end_of(node(2)) | VLIST_COMMITTED);
	rig_destroy(r);
}

static void reads_go_to_the_end(void **state)
{
	struct rig *r = make("");

	write_node(r, 1, 1000, node(1), 7);
	(void)append(r, 1, 1001, node(0), node(1));
	/* Not answered yet: the newest all the same. */
	assert_int_equal(send_read(r, 2, 1001, node(0), NODE).va,
			 va_of(node(1)));
	answer_append(r, 1, 1001, vlist_end_of(node(0)));
	assert_int_equal(send_read(r, 2, 1002, node(0), NODE).va,
			 va_of(node(1)));
	assert_int_equal(answer_read(r, 2, 1002, node(1)),
			 vlist_end_of(node(1)) | VLIST_COMMITTED);
	/* Of other memory than it was sent to: no word. */
	(void)send_read(r, 2, 1003, node(0), NODE);
	assert_int_equal(answer_read(r, 2, 1003, node(4)),
			 vlist_end_of(node(4)));
	/* A shorter one is not steered, nor one of an unknown version. */
	assert_int_equal(send_read(r, 2, 1004, node(0), NODE - 8).va,
			 va_of(node(0)));
	assert_int_equal(send_read(r, 2, 1005, node(5), NODE).va,
			 va_of(node(5)));
	/* One that comes again goes as it went, though more is known now. */
	write_node(r, 1, 1002, node(2), 7);
	(void)append(r, 1, 1003, node(1), node(2));
	answer_append(r, 1, 1003, vlist_end_of(node(1)));
	assert_int_equal(send_read(r, 2, 1002, node(0), NODE).va,
			 va_of(node(1)));
	assert_int_equal(send_read(r, 2, 1004, node(0), NODE).va,
			 va_of(node(0)));
	assert_int_equal(send_read(r, 2, 1006, node(0), NODE).va,
			 va_of(node(2)));
	rig_destroy(r);
}

/* One place, several keys: the one that is written more gets it. */
static void the_hottest_keys_are_followed(void **state)
{
	struct rig *r = make("keys=1");
	uint32_t psn = 1000;

	for (unsigned i = 0; i < 6; i++) {
		write_node(r, 1, psn++, node(10 + i), 7);
		(void)append(r, 1, psn++, node(9 + i), node(10 + i));
		answer_append(r, 1, psn - 1, vlist_end_of(node(9 + i)));
	}
	/* A colder key is not followed. */
	write_node(r, 2, 1000, node(30), 8);
	(void)append(r, 2, 1001, node(29), node(30));
	write_node(r, 3, 1000, node(31), 8);
	assert_int_equal(append(r, 3, 1001, node(29), node(31)), node(29));
	/* The hot one still is. */
	write_node(r, 3, 1002, node(32), 7);
	assert_int_equal(append(r, 3, 1003, node(9), node(32)), node(15));
	rig_destroy(r);
}

/* A store that is gone leaves nothing: its memory may be another one's, and its
 * place is free. So does a server with all it had. */
static void stores_end(void **state)
{
	struct rig *r = make("");
	char text[160];

	write_node(r, 1, 1000, node(2), 7);
	assert_int_equal(append(r, 1, 1001, node(1), node(2)), node(1));
	tell(r, -ENOENT, "steer gone server=10.0.0.9 rkey=1");
	tell(r, 0, "steer gone server=10.0.0.9 rkey=4660");
	tell(r, -ENOENT, "steer gone server=10.0.0.9 rkey=4660");
	rig_clear(r);
	rig_pass(r, 100 * STEER_RESEND_NS);
	assert_int_equal(r->ports[SERVER_PORT].got, 0);
	for (unsigned i = 0; i < 2 * STEER_STORES; i++) {
		snprintf(text, sizeof(text),
			 "steer store server=10.0.0.9 rkey=%u va=1048576 "
			 "nodes_at=4096 nodes=100 node_bytes=136",
			 4660 + i % STEER_STORES);
		if (i == STEER_STORES)
			tell(r, 0, "steer gone server=10.0.0.9");
		tell(r, 0, text);
	}
	/* The same list, with the same key, in another store. */
	write_node(r, 2, 1000, node(3), 7);
	assert_int_equal(append(r, 2, 1001, node(1), node(3)), node(1));
	tell(r, 0,
	     "steer conn server=10.0.0.9 client=10.0.0.1 client_qpn=101 "
	     "server_qpn=201");
	rig_destroy(r);
}

static void says_what_is_wrong(void **state)
{
	static const char *const bad[] = {
		"steer dance",
		"steer store server=10.0.0.9",
		"steer store server=10.0.0.9 rkey=1 va=3 nodes_at=0 nodes=1 "
		"node_bytes=136",
		"steer store server=10.0.0.9 rkey=1 va=8 nodes_at=0 nodes=1 "
		"node_bytes=63",
		"steer conn server=10.0.0.9 client=x client_qpn=1 "
		"server_qpn=1",
	};
	struct rig *r = make("");

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		tell(r, -EINVAL, bad[i]);
		assert_true(error_last()[0]);
	}
	tell(r, -EEXIST,
	     "steer conn server=10.0.0.9 client=10.0.0.1 client_qpn=101 "
	     "server_qpn=201");
	tell(r, 0,
	     "steer end server=10.0.0.9 client=10.0.0.1 client_qpn=101 "
	     "server_qpn=201");
	tell(r, -ENOENT,
	     "steer end server=10.0.0.9 client=10.0.0.1 client_qpn=101 "
	     "server_qpn=201");
	assert_int_equal(tor_program_add(r->tor, "steer", "keys=0"), -EINVAL);
	assert_int_equal(tor_program_add(r->tor, "steer", "mode=no"), -EINVAL);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(appends_become_a_chain),
		cmocka_unit_test(a_failure_is_tried_again),
		cmocka_unit_test(a_failure_is_given_up),
		cmocka_unit_test(late_is_not_lost),
		cmocka_unit_test(a_lost_end_is_learned),
		cmocka_unit_test(another_use_is_no_place),
		cmocka_unit_test(an_old_use_fails_by_itself),
		cmocka_unit_test(silence_is_broken),
		cmocka_unit_test(reads_go_to_the_end),
		cmocka_unit_test(answers_wait_for_appends),
		cmocka_unit_test(later_successors_are_hidden),
		cmocka_unit_test(old_successors_are_not_hidden),
		cmocka_unit_test(the_hottest_keys_are_followed),
		cmocka_unit_test(stores_end),
		cmocka_unit_test(says_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
