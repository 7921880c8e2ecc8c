/* SPDX-License-Identifier: Apache-2.0 */
/* The program `walk`, packet by packet: what it carries on, what it leaves
 * alone, and what it drops. */
#include "tor_rig.h"

#include <stdio.h>

#include "base/error.h"
#include "base/json_out.h"
#include "switch/cross.h"

enum {
	CLIENT = 1, /* hosts; each is at the port before its number */
	M0,
	M1,
	STRANGER,
	OWN = 8,
	CLIENT_QPN = 0x123,
	PSN = 0x777,
	MSN = 0x55,
	SPACE = 4711,
	STRIPE = 4096,
	PAD = 48,
};

static const char *const node_words[] = {
	"walk node name=m0 server=10.0.0.2 qpn=20 own_ip=10.0.0.8",
	"walk node name=m1 server=10.0.0.3 qpn=30 own_ip=10.0.0.8",
};

#define PIECE0                                                             \
	"walk piece server=10.0.0.2 qpn=21 qkey=201 rkey=2001 space=4711 " \
	"index=0 count=2 shift=12 "
#define PIECE1                                                             \
	"walk piece server=10.0.0.3 qpn=31 qkey=301 rkey=3001 space=4711 " \
	"index=1 count=2 shift=12 "
#define OF "of=t/list token=abcd"

static void tell(struct rig *r, int want, const char *text)
{
	if (tor_control(r->tor, text, NULL) != want)
		fail_msg("%s: %s", text, error_last());
}

/* What the program has counted under that name; others may have it, too. */
static unsigned long counted(const struct rig *r, const char *name)
{
	struct json_out out;
	char *text = NULL, *at;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	unsigned long n;

	assert_non_null(f);
	json_out_init(&out, f);
	json_out_object(&out, NULL);
	tor_report_programs(r->tor, &out);
	json_out_close(&out);
	assert_int_equal(json_out_end(&out), 0);
	fclose(f);
	at = strstr(text, "\"walk\"");
	assert_non_null(at);
	at = strstr(at, name);
	assert_non_null(at);
	n = strtoul(strchr(at, ':') + 1, NULL, 10);
	free(text);
	return n;
}

/* With another program before or behind it, or NULL. */
static struct rig *make_beside(const char *before, const char *behind)
{
	struct rig *r = rig_create(4, 24);

	rig_introduce(r, 4);
	if (before)
		assert_int_equal(tor_program_add(r->tor, before, ""), 0);
	assert_int_equal(tor_program_add(r->tor, "walk", "spaces=4"), 0);
	if (behind)
		assert_int_equal(tor_program_add(r->tor, behind, ""), 0);
	tell(r, 0, node_words[0]);
	tell(r, 0, node_words[1]);
	tell(r, 0, PIECE0 OF);
	tell(r, 0, PIECE1 OF);
	return r;
}

static struct rig *make(void)
{
	return make_beside(NULL, NULL);
}

static const uint8_t *pad_bytes(void)
{
	static uint8_t pad[PAD];

	for (unsigned i = 0; i < PAD; i++)
		pad[i] = (uint8_t)(i * 7);
	return pad;
}

/* m0's answer: the walk goes on in the second stripe, which is m1's. */
static struct wire_pkt elsewhere(void)
{
	struct wire_pkt pkt = {
		.opcode = WIRE_RC_WALK_ANSWER,
		.dest_qpn = CLIENT_QPN,
		.psn = PSN,
		.msn = MSN,
		.syndrome = WIRE_ACK_UNLIMITED,
		.payload = pad_bytes(),
		.payload_len = PAD,
		.walk = {.at = STRIPE + 64,
			 .program = 0xabcdef,
			 .key = SPACE,
			 .left = 9,
			 .took = 3,
			 .pad_bytes = PAD,
			 .status = WALK_WIRE_ELSEWHERE},
	};

	rig_addresses(&pkt, M0, CLIENT);
	return pkt;
}

/* What a node makes of what it was sent, with another status and place. */
static struct wire_pkt back(const struct wire_pkt *on, uint8_t node,
			    uint8_t status, uint64_t at)
{
	struct wire_pkt pkt = *on;

	pkt.opcode = WIRE_UD_WALK_BACK;
	pkt.dest_qpn = on->src_qpn;
	pkt.src_qpn = on->dest_qpn;
	pkt.walk.status = status;
	pkt.walk.at = at;
	pkt.walk.key = 0;
	pkt.walk.left--;
	pkt.walk.took++;
	rig_addresses(&pkt, node, OWN);
	return pkt;
}

/* ---- its way ------------------------------------------------------------- */

static void there_and_back(struct rig *r)
{
	struct wire_pkt pkt = elsewhere(), on, home;
	const struct wire_walk was = pkt.walk;

	rig_send(r, M0 - 1, &pkt);
	assert_int_equal(r->ports[CLIENT - 1].got, 0);
	on = rig_got(r, M1 - 1, 0);
	assert_int_equal(on.opcode, WIRE_UD_WALK_ON);
	assert_int_equal(on.dest_qpn, 31);
	assert_int_equal(on.qkey, 301);
	assert_int_equal(on.dst_ip[15], M1);
	assert_int_equal(on.src_ip[15], OWN);
	assert_int_equal(on.walk.key, 3001);
	assert_int_equal(on.walk.at, was.at);
	assert_int_equal(on.walk.program, was.program);
	assert_int_equal(on.walk.left, was.left);
	assert_int_equal(on.walk.took, was.took);
	assert_int_equal(on.walk.hops, 1);
	assert_int_equal(on.walk.status, 0);
	assert_int_equal(on.payload_len, WALK_WIRE_ORIGIN + PAD);
	assert_memory_equal(on.payload + WALK_WIRE_ORIGIN, pad_bytes(), PAD);

	/* The third stripe is m0's again. */
	pkt = back(&on, M1, WALK_WIRE_ELSEWHERE, 2 * STRIPE);
	rig_send(r, M1 - 1, &pkt);
	on = rig_got(r, M0 - 1, 0);
	assert_int_equal(on.opcode, WIRE_UD_WALK_ON);
	assert_int_equal(on.dest_qpn, 21);
	assert_int_equal(on.qkey, 201);
	assert_int_equal(on.walk.key, 2001);
	assert_int_equal(on.walk.hops, 2);

	pkt = back(&on, M0, WALK_WIRE_DONE, 2 * STRIPE + 8);
	rig_send(r, M0 - 1, &pkt);
	home = rig_got(r, CLIENT - 1, 0);
	assert_int_equal(home.opcode, WIRE_RC_WALK_ANSWER);
	assert_int_equal(home.src_ip[15], M0);
	assert_int_equal(home.dst_ip[15], CLIENT);
	assert_int_equal(home.dest_qpn, CLIENT_QPN);
	assert_int_equal(home.psn, PSN);
	assert_int_equal(home.msn, MSN);
	assert_int_equal(home.syndrome, WIRE_ACK_UNLIMITED);
	assert_int_equal(home.walk.status, WALK_WIRE_DONE);
	assert_int_equal(home.walk.key, SPACE);
	assert_int_equal(home.walk.hops, 2);
	assert_int_equal(home.walk.took, was.took + 2);
	assert_int_equal(home.payload_len, PAD);
	assert_memory_equal(home.payload, pad_bytes(), PAD);
	assert_int_equal(counted(r, "carried"), 1);
	assert_int_equal(counted(r, "onward"), 1);
	assert_int_equal(counted(r, "answered"), 1);
	rig_destroy(r);
}

static void from_node_to_node_and_home(void **state)
{
	(void)state;
	there_and_back(make());
}

/* A rack's nodes declare to both what it wants to know. */
static void declare_sword(struct rig *r)
{
	tell(r, 0,
	     "swordbox server ip=10.0.0.2 own_ip=10.0.0.8 qpn=119 "
	     "own_qpn=8388609 psn=1");
	tell(r, 0,
	     "swordbox server ip=10.0.0.3 own_ip=10.0.0.8 qpn=119 "
	     "own_qpn=8388610 psn=1");
	tell(r, 0,
	     "swordbox conn server=10.0.0.2 client=10.0.0.1 client_qpn=291 "
	     "server_qpn=20 psn=1911");
	tell(r, 0, "swordbox ready");
}

static void ask(struct rig *r)
{
	struct wire_pkt pkt = {
		.opcode = WIRE_RC_WALK,
		.dest_qpn = 20,
		.psn = PSN,
		.ack_req = true,
		.payload = pad_bytes(),
		.payload_len = PAD,
		.walk = {.at = 64,
			 .program = 0xabcdef,
			 .left = 12,
			 .pad_bytes = PAD},
	};

	rig_addresses(&pkt, CLIENT, M0);
	rig_send(r, CLIENT - 1, &pkt);
	assert_int_equal(rig_got(r, M0 - 1, 0).opcode, WIRE_RC_WALK);
	rig_clear(r);
}

/* Programs that change other packets of the same nodes leave walks alone. */
static void beside_other_programs(void **state)
{
	(void)state;
	for (unsigned is_first = 0; is_first < 2; is_first++) {
		struct rig *r = make_beside(is_first ? "swordbox" : NULL,
					    is_first ? NULL : "swordbox");

		declare_sword(r);
		ask(r);
		there_and_back(r);
		r = make_beside(is_first ? "steer" : NULL,
				is_first ? NULL : "steer");
		ask(r);
		there_and_back(r);
	}
}

/* Two nodes that send a walk back and forth do so for a while. */
static void to_and_fro(void **state)
{
	struct rig *r = make();
	struct wire_pkt pkt = elsewhere();
	unsigned hops = 0;

	pkt.walk.left = 1000;
	rig_send(r, M0 - 1, &pkt);
	while (!r->ports[CLIENT - 1].got) {
		uint8_t at = ++hops % 2 ? M1 : M0, other = at == M1 ? M0 : M1;
		struct wire_pkt on = rig_got(r, at - 1u, 0);

		assert_int_equal(on.walk.hops, hops);
		pkt = back(&on, at, WALK_WIRE_ELSEWHERE,
			   other == M1 ? STRIPE : 2 * STRIPE);
		rig_clear(r);
		rig_send(r, at - 1u, &pkt);
	}
	assert_int_equal(hops, WALK_WIRE_HOPS_MAX - 1);
	pkt = rig_got(r, CLIENT - 1, 0);
	assert_int_equal(pkt.walk.status, WALK_WIRE_ELSEWHERE);
	assert_int_equal(pkt.walk.hops, hops);
	rig_destroy(r);
}

/* ---- what passes --------------------------------------------------------- */

static void expect_pass(struct rig *r, unsigned port, const char *why,
			const struct wire_pkt *pkt)
{
	struct wire_pkt got;

	rig_clear(r);
	rig_send(r, port, pkt);
	if (r->ports[CLIENT - 1].got != 1 || r->ports[M0 - 1].got ||
	    r->ports[M1 - 1].got)
		fail_msg("%s: was not left alone", why);
	got = rig_got(r, CLIENT - 1, 0);
	assert_int_equal(got.opcode, WIRE_RC_WALK_ANSWER);
	assert_int_equal(got.walk.status, pkt->walk.status);
	assert_int_equal(got.psn, pkt->psn);
}

static void answers_that_are_left_to_the_client(void **state)
{
	struct rig *r = make();
	struct wire_pkt pkt = elsewhere();

	for (unsigned s = 0; s < WALK_WIRE_STATUSES; s++) {
		pkt.walk.status = (uint8_t)s;
		if (s != WALK_WIRE_ELSEWHERE)
			expect_pass(r, M0 - 1, "another status", &pkt);
	}
	pkt = elsewhere();
	pkt.walk.left = 0;
	expect_pass(r, M0 - 1, "no iterations left", &pkt);
	pkt = elsewhere();
	pkt.walk.hops = WALK_WIRE_HOPS_MAX;
	expect_pass(r, M0 - 1, "it stays", &pkt);
	pkt = elsewhere();
	pkt.walk.key = SPACE + 1;
	expect_pass(r, M0 - 1, "an unknown space", &pkt);
	pkt.walk.key = 0;
	expect_pass(r, M0 - 1, "no space", &pkt);
	pkt = elsewhere();
	pkt.walk.at = 2 * STRIPE;
	expect_pass(r, M0 - 1, "the node has it itself", &pkt);
	pkt = elsewhere();
	pkt.payload_len = PAD - 4;
	expect_pass(r, M0 - 1, "another pad than it says", &pkt);
	rig_destroy(r);
}

/* ---- what is forged ------------------------------------------------------ */

/* A stranger with a node's address, while a claim says where the node is. */
/* A node whose packets are smaller would drop it: its client brings it there.
 */
static void a_node_with_a_smaller_mtu(void **state)
{
	static const struct {
		const char *mtu;
		bool fits;
	} rows[] = {{"mtu=111", false}, {"mtu=112", true}, {"", true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct rig *r = make();
		struct wire_pkt pkt = elsewhere();
		char text[128];

		snprintf(text, sizeof(text), "%s %s", node_words[1],
			 rows[i].mtu);
		tell(r, 0, text);
		tell(r, 0, PIECE1 OF);
		r->now_ns += 10000000000ull; /* nothing old is on its way */
		rig_send(r, M0 - 1, &pkt);
		assert_int_equal(r->ports[M1 - 1].got, rows[i].fits);
		assert_int_equal(r->ports[CLIENT - 1].got, !rows[i].fits);
		rig_destroy(r);
	}
}

static void only_ports_of_nodes_are_believed(void **state)
{
	const uint8_t m0[16] = {[10] = 0xff, 0xff, 10, 0, 0, M0};
	struct rig *r = make();
	struct wire_pkt pkt = elsewhere(), on;

	assert_int_equal(tor_port_claim(r->ports[M0 - 1].port, m0, 0), 0);
	expect_pass(r, STRANGER - 1, "from another port", &pkt);
	rig_clear(r);
	rig_send(r, M0 - 1, &pkt);
	on = rig_got(r, M1 - 1, 0);

	/* Nobody sends these but the switch. */
	rig_addresses(&on, OWN, M1);
	rig_clear(r);
	for (unsigned port = 0; port < 4; port++)
		rig_send(r, port, &on);
	assert_int_equal(counted(r, "forged_on"), 4);

	/* These come from a node, with the origin that it was sent. */
	pkt = back(&on, M0, WALK_WIRE_DONE, 64);
	rig_send(r, STRANGER - 1, &pkt);
	pkt = back(&on, STRANGER, WALK_WIRE_DONE, 64);
	rig_send(r, STRANGER - 1, &pkt);
	pkt = back(&on, M0, WALK_WIRE_DONE, 64);
	rig_addresses(&pkt, M0, CLIENT);
	rig_send(r, M0 - 1, &pkt);
	assert_int_equal(counted(r, "forged_back"), 3);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(r->ports[i].got, 0);
	rig_destroy(r);
}

static void an_origin_that_was_changed(void **state)
{
	struct rig *r = make();
	struct wire_pkt pkt = elsewhere(), on, forged;
	uint8_t payload[WALK_WIRE_ORIGIN + PAD];
	unsigned forgeries = 0;

	rig_send(r, M0 - 1, &pkt);
	on = rig_got(r, M1 - 1, 0);
	memcpy(payload, on.payload, sizeof(payload));
	forged = back(&on, M1, WALK_WIRE_DONE, 64);
	forged.payload = payload;
	rig_clear(r);
	for (unsigned i = 0; i < WALK_WIRE_ORIGIN; i++) {
		payload[i] ^= 0x10;
		rig_send(r, M1 - 1, &forged);
		payload[i] ^= 0x10;
		forgeries++;
	}
	forged.payload_len = WALK_WIRE_ORIGIN - 4;
	rig_send(r, M1 - 1, &forged);
	forged.payload_len = WALK_WIRE_ORIGIN + PAD - 4;
	rig_send(r, M1 - 1, &forged);
	assert_int_equal(counted(r, "forged_back"), forgeries + 2);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(r->ports[i].got, 0);
	/* As it is, it is an answer. */
	forged.payload_len = sizeof(payload);
	rig_send(r, M1 - 1, &forged);
	assert_int_equal(r->ports[CLIENT - 1].got, 1);
	rig_destroy(r);
}

/* ---- declarations -------------------------------------------------------- */

static void declarations_that_are_refused(void **state)
{
	static const char *const bad[] = {
		"walk node name=x server=10.0.0.9 qpn=1",
		"walk node name=x server=10.0.0.9 qpn=1 own_ip=fd00::1",
		"walk node server=10.0.0.9 qpn=1 own_ip=10.0.0.8",
		"walk piece server=10.0.0.2 qpn=21 qkey=1 rkey=1 space=0 "
		"index=0 count=2 shift=12 " OF,
		"walk piece server=10.0.0.2 qpn=21 qkey=1 rkey=1 space=5 "
		"index=0 count=1 shift=12 " OF,
		"walk piece server=10.0.0.2 qpn=21 qkey=1 rkey=1 space=5 "
		"index=0 count=65 shift=12 " OF,
		"walk piece server=10.0.0.2 qpn=21 qkey=1 rkey=1 space=5 "
		"index=2 count=2 shift=12 " OF,
		"walk piece server=10.0.0.2 qpn=21 qkey=1 rkey=1 space=5 "
		"index=1 count=2 shift=63 " OF,
		"walk piece server=10.0.0.2 qpn=21 qkey=1 rkey=1 space=5 "
		"index=1 count=2 shift=12 of=t/list",
		PIECE0 OF " and=more",
		"walk bounce",
	};
	struct rig *r = make();

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		tell(r, -EINVAL, bad[i]);
	tell(r, -ENOENT,
	     "walk piece server=10.0.0.9 qpn=21 qkey=1 rkey=1 space=5 index=0 "
	     "count=2 shift=12 " OF);
	tell(r, -ENOENT, "walk gone server=10.0.0.9 qpn=21");
	tell(r, -ENOENT, "walk gone server=10.0.0.2 qpn=21 space=5");
	/* The number is that of t/list, of the tenant with that token. */
	tell(r, -EEXIST, PIECE0 "of=u/list token=abcd");
	tell(r, -EEXIST, PIECE0 "of=t/list token=ffff");
	tell(r, -EEXIST,
	     "walk piece server=10.0.0.2 qpn=21 qkey=1 rkey=1 space=4711 "
	     "index=0 count=2 shift=13 " OF);
	tell(r, -EEXIST,
	     "walk piece server=10.0.0.2 qpn=21 qkey=1 rkey=1 space=4711 "
	     "index=1 count=2 shift=12 " OF);
	for (unsigned i = 0; i < 4; i++) {
		char text[160];

		snprintf(text, sizeof(text),
			 "walk piece server=10.0.0.2 qpn=21 qkey=1 rkey=1 "
			 "space=%u index=0 count=2 shift=12 of=t/x token=1",
			 i + 1);
		tell(r, i < 3 ? 0 : -ENOSPC, text);
	}
	rig_destroy(r);
}

static void settle(struct rig *r)
{
	rig_pass(r, CROSS_SETTLE_MS * 1000000ull);
}

static void what_is_gone_is_not_reached(void **state)
{
	struct rig *r = make();
	struct wire_pkt pkt = elsewhere();

	tell(r, 0, "walk gone server=10.0.0.3 qpn=31 space=4711");
	expect_pass(r, M0 - 1, "the other piece is gone", &pkt);
	tell(r, 0, PIECE1 OF);
	settle(r);
	rig_clear(r);
	rig_send(r, M0 - 1, &pkt);
	assert_int_equal(r->ports[M1 - 1].got, 1);
	/* A node that comes again has nothing, until it says so. */
	tell(r, 0, node_words[1]);
	expect_pass(r, M0 - 1, "the node came again", &pkt);
	tell(r, 0, PIECE1 OF);
	tell(r, 0, "walk gone server=10.0.0.2 qpn=20");
	expect_pass(r, M0 - 1, "the node that answers is gone", &pkt);
	/* With the last piece the number is free for others. */
	tell(r, 0, "walk gone server=10.0.0.3 qpn=30");
	tell(r, 0, node_words[0]);
	tell(r, 0, PIECE0 "of=u/other token=1");
	rig_destroy(r);
}

/* A walk that began in a region went on in the next one of that name. */
static void the_next_region_of_a_name_is_another_one(void **state)
{
	struct rig *r = make();
	struct wire_pkt first = elsewhere(), on, pkt;

	rig_send(r, M0 - 1, &first);
	on = rig_got(r, M1 - 1, 0);
	tell(r, 0, "walk gone server=10.0.0.2 qpn=21 space=4711");
	tell(r, 0, "walk gone server=10.0.0.3 qpn=31 space=4711");
	tell(r, 0, PIECE0 OF);
	tell(r, 0, PIECE1 OF);
	expect_pass(r, M0 - 1, "an answer of the former region", &first);
	pkt = back(&on, M1, WALK_WIRE_ELSEWHERE, 2 * STRIPE);
	rig_clear(r);
	rig_send(r, M1 - 1, &pkt);
	assert_int_equal(r->ports[M0 - 1].got, 0);
	assert_int_equal(rig_got(r, CLIENT - 1, 0).walk.status,
			 WALK_WIRE_ELSEWHERE);
	settle(r);
	rig_clear(r);
	rig_send(r, M0 - 1, &first);
	assert_int_equal(r->ports[M1 - 1].got, 1);
	/* The same where nobody said that the former one went. */
	tell(r, 0,
	     "walk piece server=10.0.0.3 qpn=31 qkey=301 rkey=3002 space=4711 "
	     "index=1 count=2 shift=12 " OF);
	expect_pass(r, M0 - 1, "a piece with another key", &first);
	rig_destroy(r);
}

/* Without a port to the next node, the client is told at once. */
static void a_node_without_a_port(void **state)
{
	struct rig *r = make();
	struct wire_pkt pkt = elsewhere();

	tor_port_remove(r->ports[M1 - 1].port);
	expect_pass(r, M0 - 1, "no way to the node", &pkt);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_node_to_node_and_home),
		cmocka_unit_test(beside_other_programs),
		cmocka_unit_test(to_and_fro),
		cmocka_unit_test(answers_that_are_left_to_the_client),
		cmocka_unit_test(only_ports_of_nodes_are_believed),
		cmocka_unit_test(a_node_with_a_smaller_mtu),
		cmocka_unit_test(an_origin_that_was_changed),
		cmocka_unit_test(declarations_that_are_refused),
		cmocka_unit_test(what_is_gone_is_not_reached),
		cmocka_unit_test(the_next_region_of_a_name_is_another_one),
		cmocka_unit_test(a_node_without_a_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
