/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory in the switch, packet by packet: two machines, a memory node
 * whose memory is an array. */
#include "tor_rig.h"

#include <stdio.h>

#include "base/error.h"
#include "base/json_out.h"
#include "switch/coh.h"

enum {
	NODE = 3, /* host, at port 2 */
	NODE_PORT = 2,
	OWN = 250,
	MTU = 1024,
	PARTS = COHERENCE_PAGE_BYTES / MTU,
	LANES = 2,
	ARENA_PAGES = 16,
	NODE_QPN = 0x90,
	NODE_OWN_QPN = 0x9000,
	RKEY = 0x55,
	READ_KEY = 1000, /* + machine */
	WRITE_KEY = 2000,
	GIVE_KEY = 3000,
};

#define ADDR 0x70000000ull

struct bed {
	struct rig *r;
	uint8_t memory[ARENA_PAGES * COHERENCE_PAGE_BYTES];
	uint32_t node_psn;	    /* what comes next there */
	uint64_t write_at;	    /* of a WRITE that is open */
	uint32_t psn[2][LANES + 1]; /* next, of each connection */
	unsigned seen[RIG_PORTS];   /* frames that were looked at */
	bool node_is_dead;
};

static void tell(struct bed *b, int want, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void tell(struct bed *b, int want, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (tor_control(b->r->tor, text, NULL) != want)
		fail_msg("%s: %s", text, error_last());
}

/* Connection `lane` of machine 0 or 1; LANES is its talk. */
static uint32_t own_qpn(unsigned machine, unsigned lane)
{
	return 0x100 * (machine + 1) + lane;
}

static void connect(struct bed *b, unsigned machine)
{
	tell(b, 0,
	     "coherence machine machine=%u ip=10.0.0.%u own_ip=10.0.0.%d "
	     "qpn=%u own_qpn=%u psn=%u own_psn=500 mtu=%d",
	     machine, machine + 1, OWN, 0x40 + LANES, own_qpn(machine, LANES),
	     0xfffffe, MTU);
	for (unsigned i = 0; i < LANES; i++)
		tell(b, 0,
		     "coherence lane machine=%u lane=%u qpn=%u own_qpn=%u "
		     "psn=%u",
		     machine, i, 0x40 + i, own_qpn(machine, i), 0xfffffe);
	tell(b, 0, "coherence key machine=%u domain=7 read=%u write=%u give=%u",
	     machine, READ_KEY + machine, WRITE_KEY + machine,
	     GIVE_KEY + machine);
	for (unsigned i = 0; i <= LANES; i++)
		b->psn[machine][i] = 0xfffffe;
}

/* Memory, and who may use it. */
static void declare(struct bed *b)
{
	tell(b, 0,
	     "coherence node node=0 ip=10.0.0.%d own_ip=10.0.0.%d qpn=%d "
	     "own_qpn=%d psn=9 mtu=%d rkey=%d addr=%llu size=%d",
	     NODE, OWN, NODE_QPN, NODE_OWN_QPN, MTU, RKEY, ADDR,
	     ARENA_PAGES * COHERENCE_PAGE_BYTES);
	tell(b, 0, "coherence allow domain=7 va=%llu size=%d right=rw",
	     COHERENCE_BASE, 8 * COHERENCE_PAGE_BYTES);
	b->node_psn = 9;
}

static struct bed *make(const char *options)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->r = rig_create(3, 24);
	rig_introduce(b->r, 3);
	assert_int_equal(tor_program_add(b->r->tor, "coherence", options), 0);
	tell(b, 0, "coherence begin term=5");
	declare(b);
	connect(b, 0);
	connect(b, 1);
	for (size_t i = 0; i < sizeof(b->memory); i++)
		b->memory[i] = (uint8_t)(i >> COHERENCE_PAGE_SHIFT);
	return b;
}

/* What the program answers to a call, without what is behind the first 255
 * characters. */
static const char *said(struct bed *b, const char *line)
{
	static char text[256];
	char *out = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&out, &len);
	struct json_out json;

	json_out_init(&json, f);
	json_out_object(&json, NULL);
	assert_int_equal(tor_control(b->r->tor, line, &json), 0);
	json_out_close(&json);
	assert_int_equal(json_out_end(&json), 0);
	fclose(f);
	snprintf(text, sizeof(text), "%s", out);
	free(out);
	return text;
}

static void destroy(struct bed *b)
{
	assert_string_equal(said(b, "coherence check"), "{\"wrong\":\"\"}\n");
	rig_destroy(b->r);
	free(b);
}

/* ---- the memory node
 * ---------------------------------------------------------- */

static void node_says(struct bed *b, uint8_t opcode, uint32_t psn,
		      const uint8_t *bytes, uint32_t len)
{
	struct wire_pkt w = {.opcode = opcode,
			     .psn = psn,
			     .dest_qpn = NODE_OWN_QPN,
			     .syndrome = WIRE_ACK_UNLIMITED,
			     .payload = bytes,
			     .payload_len = len};

	rig_addresses(&w, NODE, OWN);
	rig_send(b->r, NODE_PORT, &w);
}

static void node_takes(struct bed *b, const struct wire_pkt *w)
{
	uint64_t at = w->va - ADDR;

	assert_int_equal(w->dest_qpn, NODE_QPN);
	if (w->opcode == WIRE_RC_READ_REQ) {
		assert_int_equal(w->rkey, RKEY);
		assert_true(at + w->dma_len <= sizeof(b->memory));
		for (uint32_t i = 0; i * MTU < w->dma_len; i++)
			node_says(b, WIRE_RC_READ_RESP_MIDDLE,
				  wire_psn_add(w->psn, i),
				  b->memory + at + i * MTU, MTU);
		return;
	}
	if (wire_opcodes[w->opcode].flags & WIRE_OP_FIRST)
		b->write_at = at;
	assert_true(b->write_at + w->payload_len <= sizeof(b->memory));
	memcpy(b->memory + b->write_at, w->payload, w->payload_len);
	b->write_at += w->payload_len;
	node_says(b, WIRE_RC_ACK, w->psn, NULL, 0);
}

/* Lets the memory node do all that it was asked. */
static void serve(struct bed *b)
{
	while (b->seen[NODE_PORT] < b->r->ports[NODE_PORT].got) {
		struct wire_pkt w =
			rig_got(b->r, NODE_PORT, b->seen[NODE_PORT]++);

		if (!b->node_is_dead)
			node_takes(b, &w);
	}
}

/* ---- machines
 * ------------------------------------------------------------------ */

static struct wire_pkt from(struct bed *b, unsigned machine, unsigned lane,
			    uint8_t opcode)
{
	struct wire_pkt w = {.opcode = opcode,
			     .psn = b->psn[machine][lane],
			     .ack_req = true,
			     .dest_qpn = own_qpn(machine, lane)};

	rig_addresses(&w, (uint8_t)(machine + 1), OWN);
	return w;
}

static void get_psn(struct bed *b, unsigned machine, unsigned lane,
		    uint32_t psn, uint64_t page, uint32_t key)
{
	struct wire_pkt w = from(b, machine, lane, WIRE_RC_READ_REQ);

	w.psn = psn;
	w.rkey = key;
	w.va = COHERENCE_BASE + page * COHERENCE_PAGE_BYTES;
	w.dma_len = COHERENCE_PAGE_BYTES;
	rig_send(b->r, machine, &w);
}

static void get(struct bed *b, unsigned machine, unsigned lane, uint64_t page,
		bool write)
{
	get_psn(b, machine, lane, b->psn[machine][lane], page,
		(write ? WRITE_KEY : READ_KEY) + machine);
	b->psn[machine][lane] = wire_psn_add(b->psn[machine][lane], PARTS);
	serve(b);
}

static void give(struct bed *b, unsigned machine, uint64_t page, uint8_t byte)
{
	static const uint8_t opcodes[PARTS] = {
		WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_MIDDLE, WIRE_RC_WRITE_MIDDLE,
		WIRE_RC_WRITE_LAST};
	uint8_t bytes[MTU];

	memset(bytes, byte, sizeof(bytes));
	for (unsigned i = 0; i < PARTS; i++) {
		struct wire_pkt w = from(b, machine, LANES, opcodes[i]);

		w.rkey = GIVE_KEY + machine;
		w.va = COHERENCE_BASE + page * COHERENCE_PAGE_BYTES;
		w.dma_len = COHERENCE_PAGE_BYTES;
		w.payload = bytes;
		w.payload_len = MTU;
		w.ack_req = i + 1 == PARTS;
		rig_send(b->r, machine, &w);
		b->psn[machine][LANES] =
			wire_psn_add(b->psn[machine][LANES], 1);
	}
}

static void say(struct bed *b, unsigned machine, const struct coh_record *r)
{
	uint8_t bytes[COHERENCE_INVAL_BYTES];
	struct wire_pkt w = from(b, machine, LANES, WIRE_RC_SEND_ONLY);

	w.payload_len = coh_record_build(r, bytes);
	w.payload = bytes;
	rig_send(b->r, machine, &w);
	b->psn[machine][LANES] = wire_psn_add(b->psn[machine][LANES], 1);
	serve(b);
}

/* The next frame that a machine has got. */
static struct wire_pkt next(struct bed *b, unsigned machine)
{
	return rig_got(b->r, machine, b->seen[machine]++);
}

static void nothing(struct bed *b, unsigned machine)
{
	assert_int_equal(b->seen[machine], b->r->ports[machine].got);
}

/* The answer to a get, a page full of this byte. */
static void answer(struct bed *b, unsigned machine, unsigned lane, uint8_t byte)
{
	static const uint8_t opcodes[PARTS] = {
		WIRE_RC_READ_RESP_FIRST, WIRE_RC_READ_RESP_MIDDLE,
		WIRE_RC_READ_RESP_MIDDLE, WIRE_RC_READ_RESP_LAST};

	for (unsigned i = 0; i < PARTS; i++) {
		struct wire_pkt w = next(b, machine);

		assert_int_equal(w.opcode, opcodes[i]);
		assert_int_equal(w.dest_qpn, 0x40 + lane);
		assert_int_equal(w.payload_len, MTU);
		assert_int_equal(w.payload[0], byte);
		assert_int_equal(w.payload[MTU - 1], byte);
		assert_int_equal(w.psn,
				 wire_psn_add(b->psn[machine][lane],
					      (i - PARTS) & WIRE_PSN_MASK));
	}
}

/* A record for a machine, which acknowledges it. */
static struct coh_record record(struct bed *b, unsigned machine)
{
	struct wire_pkt w = next(b, machine), ack;
	struct coh_record r;

	assert_int_equal(w.opcode, WIRE_RC_SEND_ONLY);
	assert_int_equal(coh_record_parse(w.payload, w.payload_len, &r), 0);
	ack = from(b, machine, LANES, WIRE_RC_ACK);
	ack.psn = w.psn;
	ack.syndrome = WIRE_ACK_UNLIMITED;
	rig_send(b->r, machine, &ack);
	return r;
}

/* What was sent again and again is looked at once. */
static void skip_repetitions(struct bed *b, unsigned machine)
{
	b->seen[machine] = b->r->ports[machine].got - 1;
}

static void acked(struct bed *b, unsigned machine)
{
	struct wire_pkt w = next(b, machine);

	assert_int_equal(w.opcode, WIRE_RC_ACK);
	assert_int_equal(w.syndrome, WIRE_ACK_UNLIMITED);
	assert_int_equal(w.psn,
			 wire_psn_add(b->psn[machine][LANES], WIRE_PSN_MASK));
}

static void fin(struct bed *b, unsigned machine, const struct coh_record *r)
{
	say(b, machine,
	    &(struct coh_record){
		    .kind = COHERENCE_FIN,
		    .fin = {r->inval.range, r->inval.term, r->inval.seq}});
}

/* ---- gets
 * ------------------------------------------------------------------------ */

static void readers_share(void **state)
{
	struct bed *b = make("");

	get(b, 0, 0, 2, false);
	answer(b, 0, 0, 2);
	get(b, 1, 1, 2, false);
	answer(b, 1, 1, 2);
	nothing(b, 0);
	destroy(b);
}

static void a_writer_takes_it_from_readers(void **state)
{
	struct bed *b = make("");
	struct coh_record r;

	get(b, 0, 0, 2, false);
	answer(b, 0, 0, 2);
	get(b, 0, 1, 3, false);
	answer(b, 0, 1, 3);
	get(b, 1, 0, 2, true);
	nothing(b, 1);
	r = record(b, 0);
	assert_int_equal(r.kind, COHERENCE_INVAL);
	assert_int_equal(r.inval.to, COH_NONE);
	assert_int_equal(r.inval.term, 5);
	assert_int_equal(r.inval.range.count, 4);
	assert_int_equal(r.inval.range.page,
			 COHERENCE_BASE >> COHERENCE_PAGE_SHIFT);
	assert_int_equal(r.inval.granted[0], 1);
	assert_int_equal(r.inval.granted[1], 1);
	nothing(b, 1);
	fin(b, 0, &r);
	acked(b, 0);
	answer(b, 1, 0, 2);
	destroy(b);
}

/* Who reads has the page as soon as the owner gave it, and the FIN later. */
static void a_reader_is_answered_by_the_owner(void **state)
{
	struct bed *b = make("");
	struct coh_record r;

	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	get(b, 1, 0, 1, false);
	r = record(b, 0);
	assert_int_equal(r.inval.to, COH_READ);
	give(b, 0, 1, 0xaa);
	answer(b, 1, 0, 0xaa);
	nothing(b, 0); /* memory has not got it yet */
	serve(b);
	acked(b, 0);
	assert_int_equal(b->memory[COHERENCE_PAGE_BYTES], 0xaa);
	fin(b, 0, &r);
	acked(b, 0);
	/* Nothing is false here, and memory has it for everybody. */
	get(b, 0, 1, 1, false);
	answer(b, 0, 1, 0xaa);
	destroy(b);
}

/* The copy was read before the page was given back: it is made again. When the
 * page has moved, nothing is written where it was. */
static void a_page_that_moves_takes_give_backs_along(void **state)
{
	struct bed *b = make("");
	const uint8_t *old = b->memory + COHERENCE_PAGE_BYTES;
	const uint8_t *new = b->memory + 12 * COHERENCE_PAGE_BYTES;

	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	tell(b, -EBUSY, "coherence moved");
	tell(b, 0, "coherence move va=%llu size=4096 node=0 at=49152",
	     COHERENCE_BASE + COHERENCE_PAGE_BYTES);
	tell(b, -EBUSY, "coherence moved");
	tell(b, -EBUSY, "coherence move va=%llu size=4096 node=0 at=49152",
	     COHERENCE_BASE);
	give(b, 0, 1, 0xaa);
	nothing(b, 0);
	serve(b);
	acked(b, 0);
	assert_int_equal(old[0], 0xaa);
	assert_int_equal(new[0], 0xaa);
	assert_int_equal(new[COHERENCE_PAGE_BYTES - 1], 0xaa);
	tell(b, 0, "coherence moved");
	give(b, 0, 1, 0xbb);
	serve(b);
	acked(b, 0);
	assert_int_equal(old[0], 0xaa);
	assert_int_equal(new[0], 0xbb);
	/* And back; or not after all. */
	tell(b, 0, "coherence move va=%llu size=4096 node=0 at=4096",
	     COHERENCE_BASE + COHERENCE_PAGE_BYTES);
	serve(b);
	tell(b, 0, "coherence unmove");
	give(b, 0, 1, 0xcc);
	serve(b);
	acked(b, 0);
	assert_int_equal(old[0], 0xbb);
	assert_int_equal(new[0], 0xcc);
	destroy(b);
}

/* Node 0 has page 1 at its own place, or in page 12; node 1, which does not
 * answer, has it, too. */
static void pair_with_nobody(struct bed *b, bool is_first)
{
	tell(b, 0, "coherence node node=1 va=%llu size=65536 away",
	     COHERENCE_BASE + ARENA_PAGES * COHERENCE_PAGE_BYTES);
	if (!is_first)
		tell(b, 0, "coherence outlier va=%llu size=4096 node=1 at=0",
		     COHERENCE_BASE + COHERENCE_PAGE_BYTES);
	tell(b, 0, "coherence pair va=%llu size=4096 node=%d at=%d",
	     COHERENCE_BASE + COHERENCE_PAGE_BYTES, is_first,
	     is_first ? 0 : 12 * COHERENCE_PAGE_BYTES);
}

/* What only one of two nodes has is acknowledged when that is noted. */
static void what_one_of_two_nodes_has_is_held(void **state)
{
	struct bed *b = make("");

	pair_with_nobody(b, true);
	tell(b, -EEXIST, "coherence pair va=%llu size=8192 node=1 at=0",
	     COHERENCE_BASE);
	tell(b, -EINVAL, "coherence pair va=%llu size=4096 node=0 at=0",
	     COHERENCE_BASE);
	tell(b, -EBUSY, "coherence move va=%llu size=8192 node=0 at=49152",
	     COHERENCE_BASE);
	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	give(b, 0, 1, 0xaa);
	serve(b);
	nothing(b, 0);
	assert_int_equal(b->memory[COHERENCE_PAGE_BYTES], 0xaa);
	tell(b, -ENOENT, "coherence single va=%llu size=4096 node=0 at=0",
	     COHERENCE_BASE);
	nothing(b, 0);
	tell(b, 0, "coherence single va=%llu size=4096 node=0 at=4096",
	     COHERENCE_BASE + COHERENCE_PAGE_BYTES);
	acked(b, 0);
	give(b, 0, 1, 0xbb);
	serve(b);
	acked(b, 0);
	destroy(b);
}

/* Nobody is expelled for what the keeper makes it wait for. */
static void who_waits_for_the_keeper_is_not_silent(void **state)
{
	struct bed *b = make("fin_ms=100,peer_ms=100");

	pair_with_nobody(b, true);
	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	give(b, 0, 1, 0xaa);
	serve(b);
	get(b, 1, 0, 1, true); /* it takes no INVAL, and says no FIN */
	for (unsigned i = 0; i < 400; i++)
		rig_pass(b->r, 1000000);
	assert_non_null(strstr(said(b, "coherence show"), "\"members\":3,"));
	tell(b, 0, "coherence single va=%llu size=4096 node=0 at=4096",
	     COHERENCE_BASE + COHERENCE_PAGE_BYTES);
	for (unsigned i = 0; i < 400; i++)
		rig_pass(b->r, 1000000);
	assert_null(strstr(said(b, "coherence show"), "\"members\":3,"));
	destroy(b);
}

/* The first one does not answer: the other one is read at once, and what is
 * written there counts when it is the only one. */
static void the_second_node_is_read(void **state)
{
	struct bed *b = make("");

	pair_with_nobody(b, false);
	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 12);
	give(b, 0, 1, 0xaa);
	serve(b);
	nothing(b, 0);
	tell(b, 0, "coherence single va=%llu size=4096 node=0 at=%d",
	     COHERENCE_BASE + COHERENCE_PAGE_BYTES, 12 * COHERENCE_PAGE_BYTES);
	acked(b, 0);
	give(b, 0, 1, 0xbb);
	serve(b);
	acked(b, 0);
	assert_int_equal(b->memory[12 * COHERENCE_PAGE_BYTES], 0xbb);
	assert_int_equal(b->memory[COHERENCE_PAGE_BYTES], 1);
	destroy(b);
}

/* Both do not answer: it is nowhere, and nobody waits for ever. */
static void what_no_node_has_is_void(void **state)
{
	struct bed *b = make("node_ms=100");

	pair_with_nobody(b, true);
	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	give(b, 0, 1, 0xaa);
	serve(b); /* node 0 has it, which dies then */
	nothing(b, 0);
	b->node_is_dead = true;
	get(b, 0, 1, 2, false);
	for (unsigned i = 0; i < 400; i++) {
		rig_pass(b->r, 1000000);
		b->seen[NODE_PORT] = b->r->ports[NODE_PORT].got;
	}
	acked(b, 0);
	destroy(b);
}

/* A copy that is ready stays: both are written from then on. */
static void a_copy_becomes_one_of_two(void **state)
{
	struct bed *b = make("");

	tell(b, 0, "coherence node node=1 va=%llu size=65536 away",
	     COHERENCE_BASE + ARENA_PAGES * COHERENCE_PAGE_BYTES);
	tell(b, 0, "coherence outlier va=%llu size=4096 node=1 at=0",
	     COHERENCE_BASE + 2 * COHERENCE_PAGE_BYTES);
	tell(b, -EBUSY, "coherence paired");
	tell(b, 0, "coherence move va=%llu size=4096 node=0 at=49152",
	     COHERENCE_BASE + 2 * COHERENCE_PAGE_BYTES);
	serve(b);
	/* Its old node does not answer, so it is no copy. */
	tell(b, -EBUSY, "coherence paired");
	destroy(b);
}

static void a_writer_waits_for_the_fin(void **state)
{
	struct bed *b = make("");
	struct coh_record r;

	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	get(b, 1, 0, 1, true);
	r = record(b, 0);
	/* A neighbour that nobody asked for, and the target. */
	give(b, 0, 0, 0xbb);
	give(b, 0, 1, 0xcc);
	serve(b);
	nothing(b, 1);
	(void)next(b, 0);
	acked(b, 0);
	fin(b, 0, &r);
	acked(b, 0);
	answer(b, 1, 0, 0xcc);
	assert_int_equal(b->memory[0], 0xbb);
	destroy(b);
}

/* A second get waits behind the first one's FINs, and is served in turn. */
static void who_meets_a_busy_region_waits(void **state)
{
	struct bed *b = make("");
	struct coh_record r;

	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	get(b, 1, 0, 1, true);
	get(b, 1, 1, 2, true);
	r = record(b, 0);
	nothing(b, 0);
	fin(b, 0, &r);
	acked(b, 0);
	answer(b, 1, 0, 1);
	answer(b, 1, 1, 2);
	destroy(b);
}

/* ---- repetitions
 * ------------------------------------------------------------------- */

static void a_lost_answer_is_read_again(void **state)
{
	struct bed *b = make("");
	struct wire_pkt w;

	get_psn(b, 0, 0, 0xfffffe, 2, READ_KEY);
	get_psn(b, 0, 0, 0xfffffe, 2, READ_KEY); /* while it waits */
	b->psn[0][0] = wire_psn_add(0xfffffe, PARTS);
	serve(b);
	answer(b, 0, 0, 2);
	nothing(b, 0);
	get_psn(b, 0, 0, 0xfffffe, 2, READ_KEY);
	serve(b);
	answer(b, 0, 0, 2);
	/* The last packet alone, as a requester asks that has the others. */
	w = from(b, 0, 0, WIRE_RC_READ_REQ);
	w.psn = 1;
	w.rkey = READ_KEY;
	w.va = COHERENCE_BASE + 2 * COHERENCE_PAGE_BYTES + 3 * MTU;
	w.dma_len = MTU;
	rig_send(b->r, 0, &w);
	serve(b);
	w = next(b, 0);
	assert_int_equal(w.opcode, WIRE_RC_READ_RESP_ONLY);
	assert_int_equal(w.psn, 1);
	nothing(b, 0);
	/* A part that was not asked for so is none. */
	w = from(b, 0, 0, WIRE_RC_READ_REQ);
	w.psn = 0;
	w.va = COHERENCE_BASE;
	w.dma_len = MTU;
	rig_send(b->r, 0, &w);
	serve(b);
	nothing(b, 0);
	destroy(b);
}

static void give_backs_are_acknowledged_again(void **state)
{
	struct bed *b = make("");
	struct wire_pkt w;

	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	give(b, 0, 1, 0xdd);
	serve(b);
	acked(b, 0);
	rig_clear(b->r);
	memset(b->seen, 0, sizeof(b->seen));
	/* The last packet comes again. */
	w = from(b, 0, LANES, WIRE_RC_WRITE_LAST);
	w.psn = wire_psn_add(w.psn, WIRE_PSN_MASK);
	rig_send(b->r, 0, &w);
	acked(b, 0);
	assert_int_equal(b->r->ports[NODE_PORT].got, 0);
	/* One is missing: it is asked for. */
	w = from(b, 0, LANES, WIRE_RC_SEND_ONLY);
	w.psn = wire_psn_add(w.psn, 1);
	rig_send(b->r, 0, &w);
	w = next(b, 0);
	assert_int_equal(w.syndrome, WIRE_NAK_PSN);
	assert_int_equal(w.psn, b->psn[0][LANES]);
	destroy(b);
}

/* ---- refusals
 * ------------------------------------------------------------------------ */

/* A NIC that repeats a message sends some of it, and waits for a word. */
static void parts_are_acknowledged_if_asked(void **state)
{
	uint8_t bytes[MTU] = {0};
	struct bed *b = make("");
	struct wire_pkt w;

	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	w = from(b, 0, LANES, WIRE_RC_WRITE_FIRST);
	w.rkey = GIVE_KEY;
	w.va = COHERENCE_BASE + COHERENCE_PAGE_BYTES;
	w.dma_len = COHERENCE_PAGE_BYTES;
	w.payload = bytes;
	w.payload_len = MTU;
	rig_send(b->r, 0, &w);
	b->psn[0][LANES] = wire_psn_add(b->psn[0][LANES], 1);
	acked(b, 0);
	rig_send(b->r, 0, &w);
	acked(b, 0);
	nothing(b, 0);
	destroy(b);
}

/* A get that the domain has no right to is told so, and its lane lives. */
static void rights_are_looked_at(void **state)
{
	struct bed *b = make("");
	struct coh_record r;

	get(b, 0, 0, 8, false);
	r = record(b, 0);
	assert_int_equal(r.kind, COHERENCE_LOST);
	assert_int_equal(r.why, COHERENCE_WHY_RIGHT);
	assert_int_equal(r.lane, 0);
	assert_int_equal(r.serial, 1);
	answer(b, 0, 0, 0xdb);
	/* Far behind every arena, and before the first one. */
	for (unsigned i = 0; i < 2; i++) {
		get(b, 0, 0, i ? (uint64_t)-1 : 1ull << 40, false);
		r = record(b, 0);
		assert_int_equal(r.kind, COHERENCE_LOST);
		assert_int_equal(r.why, COHERENCE_WHY_RIGHT);
		answer(b, 0, 0, 0xdb);
	}
	get(b, 0, 0, 7, false);
	answer(b, 0, 0, 7);
	tell(b, 0, "coherence allow domain=7 va=%llu size=4096 right=r",
	     COHERENCE_BASE);
	get(b, 0, 0, 0, true);
	assert_int_equal(record(b, 0).why, COHERENCE_WHY_RIGHT);
	answer(b, 0, 0, 0xdb);
	destroy(b);
}

static void what_no_machine_asks_ends_the_lane(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t key, len;
		uint64_t at;
		uint8_t syndrome;
	} bad[] = {
		{WIRE_RC_READ_REQ, READ_KEY + 1, 4096, 0, WIRE_NAK_ACCESS},
		{WIRE_RC_READ_REQ, GIVE_KEY, 4096, 0, WIRE_NAK_ACCESS},
		{WIRE_RC_READ_REQ, 4711, 4096, 0, WIRE_NAK_ACCESS},
		{WIRE_RC_READ_REQ, READ_KEY, 4096, 8, WIRE_NAK_INVALID},
		{WIRE_RC_READ_REQ, READ_KEY, 64, 0, WIRE_NAK_INVALID},
		{WIRE_RC_READ_REQ, READ_KEY, 8192, 0, WIRE_NAK_INVALID},
		{WIRE_RC_CAS, READ_KEY, 0, 0, WIRE_NAK_INVALID},
		{WIRE_RC_WRITE_ONLY, GIVE_KEY, 0, 0, WIRE_NAK_INVALID},
		{WIRE_RC_SEND_ONLY, 0, 0, 0, WIRE_NAK_INVALID},
	};

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		struct bed *b = make("");
		struct wire_pkt w = from(b, 0, 0, bad[i].opcode);

		w.rkey = bad[i].key;
		w.va = COHERENCE_BASE + bad[i].at;
		w.dma_len = bad[i].len;
		rig_send(b->r, 0, &w);
		if (next(b, 0).syndrome != bad[i].syndrome)
			fail_msg("row %u", i);
		/* Nothing more of it is heard. */
		get(b, 0, 0, 1, false);
		nothing(b, 0);
		destroy(b);
	}
}

/* Forged FINs change nothing; a give-back of who owns nothing ends it. */
static void forged_words_have_no_effect(void **state)
{
	struct bed *b = make("");
	struct coh_record r;

	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	get(b, 1, 0, 1, true);
	r = record(b, 0);
	fin(b, 1, &r);
	acked(b, 1);
	r.inval.seq++;
	fin(b, 0, &r);
	acked(b, 0);
	nothing(b, 1);
	give(b, 1, 1, 0xee);
	assert_int_equal(next(b, 1).syndrome, WIRE_NAK_ACCESS);
	assert_int_equal(b->memory[COHERENCE_PAGE_BYTES], 1);
	/* It is no member any more, and what it asked is forgotten. */
	get(b, 1, 1, 2, false);
	nothing(b, 1);
	rig_pass(b->r, 10 * COH_STEP_NS);
	tell(b, -ENOENT, "coherence gone machine=1");
	destroy(b);
}

static void bad_messages_end_the_talk(void **state)
{
	static const uint8_t bytes[COHERENCE_INVAL_BYTES] = {9};

	for (unsigned i = 0; i < 3; i++) {
		struct bed *b = make("");
		struct wire_pkt w =
			from(b, 0, LANES,
			     i ? WIRE_RC_WRITE_ONLY : WIRE_RC_SEND_ONLY);

		w.payload = bytes;
		w.payload_len = w.dma_len = 64;
		w.rkey = GIVE_KEY;
		w.va = COHERENCE_BASE;
		if (i == 2)
			w.dma_len = COHERENCE_PAGE_BYTES;
		rig_send(b->r, 0, &w);
		assert_false(wire_syndrome_is_ack(next(b, 0).syndrome));
		destroy(b);
	}
}

/* ---- deaths
 * ----------------------------------------------------------------------------
 */

static void a_dead_owner_is_told(void **state)
{
	struct bed *b = make("");

	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	get(b, 1, 0, 1, true);
	(void)record(b, 0);
	tell(b, 0, "coherence gone machine=0");
	for (unsigned i = 0; i < 1000; i++)
		rig_pass(b->r, COH_STEP_NS);
	skip_repetitions(b, 1);
	assert_int_equal(record(b, 1).why, COHERENCE_WHY_LOST);
	answer(b, 1, 0, 0xdb);
	tell(b, 0, "coherence repair va=%llu size=4096", COHERENCE_BASE);
	get(b, 1, 0, 1, true);
	answer(b, 1, 0, 1);
	/* The machine may come again, with nothing. */
	connect(b, 0);
	destroy(b);
}

/* The keeper would note that it is gone, and the next switch take both nodes
 * for the same: so that is not said while one of two nodes alone has what it
 * gave back last. */
static void who_writes_to_two_nodes_is_not_gone(void **state)
{
	struct bed *b = make("");

	pair_with_nobody(b, true);
	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	give(b, 0, 1, 0xaa);
	serve(b);
	nothing(b, 0);
	tell(b, 0, "coherence gone machine=0");
	for (unsigned i = 0; i < 1000; i++)
		rig_pass(b->r, COH_STEP_NS);
	/* Others need not wait to hear what is lost. */
	get(b, 1, 0, 1, false);
	assert_int_equal(record(b, 1).why, COHERENCE_WHY_LOST);
	assert_non_null(strstr(said(b, "coherence show"), "\"going\""));
	tell(b, 0, "coherence single va=%llu size=4096 node=0 at=4096",
	     COHERENCE_BASE + COHERENCE_PAGE_BYTES);
	for (unsigned i = 0; i < 1000; i++)
		rig_pass(b->r, COH_STEP_NS);
	assert_null(strstr(said(b, "coherence show"), "\"going\""));
	connect(b, 0);
	destroy(b);
}

/* Where memory's bytes shall count nobody is refused; that ends with the
 * range. */
static void a_range_goes_on_with_memorys_bytes(void **state)
{
	struct bed *b = make("region_pages=1");
	char line[64];

	tell(b, 0, "coherence last va=%llu size=8192", COHERENCE_BASE);
	tell(b, 0, "coherence last va=%llu size=8192", COHERENCE_BASE);
	tell(b, -EEXIST, "coherence last va=%llu size=4096", COHERENCE_BASE);
	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	get(b, 0, 1, 2, true); /* behind it */
	answer(b, 0, 1, 2);
	tell(b, 0, "coherence gone machine=0");
	for (unsigned i = 0; i < 1000; i++)
		rig_pass(b->r, COH_STEP_NS);
	get(b, 1, 0, 1, false);
	answer(b, 1, 0, 1);
	get(b, 1, 0, 2, false);
	assert_int_equal(record(b, 1).why, COHERENCE_WHY_LOST);
	answer(b, 1, 0, 0xdb);
	snprintf(line, sizeof(line), "coherence clear va=%llu size=4096",
		 COHERENCE_BASE);
	assert_string_equal(said(b, line), "{\"left\":0}\n");
	tell(b, 0, "coherence last va=%llu size=4096", COHERENCE_BASE);
	destroy(b);
}

/* A machine that takes INVALs and never answers is expelled. */
static void who_does_not_answer_is_expelled(void **state)
{
	struct bed *b = make("fin_ms=1000");

	get(b, 0, 0, 1, false);
	answer(b, 0, 0, 1);
	get(b, 1, 0, 1, true);
	(void)record(b, 0);
	for (unsigned i = 0; i < 3000; i++)
		rig_pass(b->r, 1000000);
	answer(b, 1, 0, 1);
	destroy(b);
}

/* Its process has ended, and the switch knows at once. */
static void a_machine_goes_with_its_port(void **state)
{
	static const uint8_t ip[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
	struct bed *b = make("");

	assert_int_equal(tor_port_claim(b->r->ports[0].port, ip, 0), 0);
	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	get(b, 1, 0, 1, true);
	(void)record(b, 0);
	tor_port_remove(b->r->ports[0].port);
	for (unsigned i = 0; i < 1000; i++)
		rig_pass(b->r, COH_STEP_NS);
	skip_repetitions(b, 1);
	assert_int_equal(record(b, 1).why, COHERENCE_WHY_LOST);
	answer(b, 1, 0, 0xdb);
	assert_non_null(strstr(said(b, "coherence show"), "\"members\":2,"));
	destroy(b);
}

static void a_lost_memory_node_is_an_error(void **state)
{
	struct bed *b = make("node_ms=100");

	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	b->node_is_dead = true;
	get(b, 0, 1, 2, false);
	for (unsigned i = 0; i < 400; i++) {
		rig_pass(b->r, 1000000);
		b->seen[NODE_PORT] = b->r->ports[NODE_PORT].got;
	}
	skip_repetitions(b, 0);
	assert_int_equal(record(b, 0).why, COHERENCE_WHY_NODE);
	answer(b, 0, 1, 0xdb);
	/* What is given back is void, and nobody is held up. */
	give(b, 0, 1, 0xaa);
	acked(b, 0);
	get(b, 1, 0, 1, false);
	assert_int_equal(record(b, 1).why, COHERENCE_WHY_NODE);
	answer(b, 1, 0, 0xdb);
	/* An answer that was lost cannot be read again either. */
	get_psn(b, 0, 0, 0xfffffe, 1, WRITE_KEY);
	assert_int_equal(record(b, 0).why, COHERENCE_WHY_NODE);
	answer(b, 0, 0, 0xdb);
	destroy(b);
}

/* Members of a former term clean up before anybody gets anything. */
static void a_new_term_waits_for_the_old_members(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->r = rig_create(3, 24);
	rig_introduce(b->r, 3);
	assert_int_equal(tor_program_add(b->r->tor, "coherence", ""), 0);
	tell(b, 0, "coherence begin term=6 unclean=1");
	tell(b, -EBUSY, "coherence begin term=6");
	tell(b, -EBUSY, "coherence begin term=7 by=m1");
	declare(b);
	connect(b, 0);
	connect(b, 1);
	get(b, 1, 0, 1, false);
	nothing(b, 1);
	give(b, 0, 1, 0x77);
	serve(b);
	acked(b, 0);
	say(b, 0, &(struct coh_record){.kind = COHERENCE_CLEAN, .term = 6});
	acked(b, 0);
	answer(b, 1, 0, 0x77);
	destroy(b);
}

/* The keeper was restarted, or wants its memory node back: nothing of the
 * former term counts any more, and its members clean up. */
static void a_term_follows_another_in_one_switch(void **state)
{
	struct bed *b = make("");

	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	get(b, 1, 0, 1, false); /* waits for machine 0 */
	(void)record(b, 0);
	tell(b, 0, "coherence begin term=6 unclean=3");
	/* Nobody has the former connections. */
	give(b, 0, 1, 0x55);
	nothing(b, 0);
	declare(b);
	connect(b, 0);
	connect(b, 1);
	get(b, 1, 0, 1, false);
	say(b, 1, &(struct coh_record){.kind = COHERENCE_CLEAN, .term = 6});
	acked(b, 1);
	give(b, 0, 1, 0x77);
	serve(b);
	acked(b, 0);
	say(b, 0, &(struct coh_record){.kind = COHERENCE_CLEAN, .term = 6});
	acked(b, 0);
	answer(b, 1, 0, 0x77);
	destroy(b);
}

/* What was given back to a node that did not answer is nowhere. */
static void stores_that_went_nowhere_are_lost_in_the_next_term(void **state)
{
	struct bed *b = make("node_ms=100");

	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	b->node_is_dead = true;
	give(b, 0, 1, 0xaa);
	for (unsigned i = 0; i < 400; i++) {
		rig_pass(b->r, 1000000);
		b->seen[NODE_PORT] = b->r->ports[NODE_PORT].got;
	}
	acked(b, 0);
	tell(b, 0, "coherence begin term=6");
	b->node_is_dead = false;
	declare(b);
	connect(b, 0);
	get(b, 0, 0, 5, false);
	assert_int_equal(record(b, 0).why, COHERENCE_WHY_LOST);
	answer(b, 0, 0, 0xdb);
	tell(b, -EBUSY, "coherence clear va=%llu size=32768", COHERENCE_BASE);
	tell(b, 0, "coherence repair va=%llu size=4096", COHERENCE_BASE);
	get(b, 0, 0, 5, false);
	answer(b, 0, 0, 5);
	destroy(b);
}

/* ---- control calls
 * ----------------------------------------------------------------------- */

static void bad_calls_say_why(void **state)
{
	static const char *const bad[] = {
		"coherence",
		"coherence nonsense",
		"coherence begin",
		"coherence node node=64",
		"coherence machine machine=16 ip=10.0.0.1",
		"coherence lane machine=9 lane=0 qpn=1 own_qpn=1 psn=1",
		"coherence lane machine=0 lane=0 qpn=1 own_qpn=1 psn=1",
		"coherence lane machine=0 lane=16 qpn=1 own_qpn=1 psn=1",
		"coherence key machine=0 domain=1 read=1 write=1 give=2",
		"coherence key machine=0 domain=1 read=1000 write=1 give=2",
		"coherence allow domain=1 va=0 size=0 right=r",
		"coherence allow domain=1 va=1 size=4096 right=r",
		"coherence allow domain=1 va=0 size=4096 right=x",
		"coherence gone machine=7",
		"coherence find",
		"coherence outlier va=0 size=4096 node=9 addr=0",
		"coherence split va=35184372088832 size=4096",
		"coherence join va=35184372088832 size=4096",
		"coherence node node=1 ip=10.0.0.3 own_ip=fd00::1 qpn=1 "
		"own_qpn=5 psn=1 rkey=1 addr=0 size=4096",
		"coherence node node=1 ip=10.0.0.3 own_ip=10.0.0.250 qpn=1 "
		"own_qpn=36864 psn=1 rkey=1 addr=0 size=4096",
		"coherence node node=1 ip=10.0.0.3 own_ip=10.0.0.250 qpn=1 "
		"own_qpn=5 psn=1 rkey=1 addr=0 size=4096 mtu=300",
	};
	struct bed *b = make("");

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		if (tor_control(b->r->tor, bad[i], NULL) >= 0)
			fail_msg("'%s' is accepted", bad[i]);
	/* None of them changed anything. */
	get(b, 0, 0, 1, false);
	answer(b, 0, 0, 1);
	destroy(b);
	assert_true(tor_program_find("coherence") != NULL);
}

static void bad_options_are_refused(void **state)
{
	static const char *const bad[] = {"region_pages=3", "machines=17",
					  "lanes=17", "entries=0", "x=1"};
	struct rig *r = rig_create(1, 24);

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(tor_program_add(r->tor, "coherence", bad[i]),
				 -EINVAL);
	rig_destroy(r);
}

/* With one entry a second region takes it away from the first. */
static void a_full_directory_recalls(void **state)
{
	struct bed *b = make("entries=1");
	struct coh_record r;

	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	get(b, 1, 0, 5, false);
	nothing(b, 1);
	r = record(b, 0);
	assert_int_equal(r.inval.to, COH_NONE);
	give(b, 0, 1, 0x11);
	serve(b);
	acked(b, 0);
	fin(b, 0, &r);
	acked(b, 0);
	answer(b, 1, 0, 5);
	destroy(b);
}

/* Before memory is somebody else's, all copies of it are gone, and so is what
 * was lost there. */
static void a_range_is_cleared(void **state)
{
	struct bed *b = make("region_pages=1");
	char line[64];
	struct coh_record r;

	snprintf(line, sizeof(line), "coherence clear va=%llu size=8192",
		 COHERENCE_BASE);
	assert_string_equal(said(b, line), "{\"left\":0}\n");
	get(b, 0, 0, 1, true);
	answer(b, 0, 0, 1);
	get(b, 1, 0, 2, true); /* behind the range */
	answer(b, 1, 0, 2);
	tell(b, 0, "coherence lost va=%llu size=4096", COHERENCE_BASE);
	assert_string_equal(said(b, line), "{\"left\":1}\n");
	r = record(b, 0);
	assert_int_equal(r.inval.to, COH_NONE);
	assert_string_equal(said(b, line), "{\"left\":1}\n");
	give(b, 0, 1, 0x11);
	serve(b);
	acked(b, 0);
	fin(b, 0, &r);
	acked(b, 0);
	assert_string_equal(said(b, line), "{\"left\":0}\n");
	nothing(b, 1);
	get(b, 1, 1, 0, false);
	answer(b, 1, 1, 0);
	destroy(b);
}

/* What was elsewhere is where the arena has it, for who comes next. */
static void a_cleared_range_is_at_home(void **state)
{
	struct bed *b = make("");
	char line[64];

	tell(b, 0, "coherence outlier va=%llu size=4096 node=0 at=49152",
	     COHERENCE_BASE + COHERENCE_PAGE_BYTES);
	snprintf(line, sizeof(line), "coherence clear va=%llu size=4096",
		 COHERENCE_BASE + COHERENCE_PAGE_BYTES);
	assert_string_equal(said(b, line), "{\"left\":0}\n");
	get(b, 0, 0, 1, false);
	answer(b, 0, 0, 1);
	destroy(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_share),
		cmocka_unit_test(a_writer_takes_it_from_readers),
		cmocka_unit_test(a_reader_is_answered_by_the_owner),
		cmocka_unit_test(a_page_that_moves_takes_give_backs_along),
		cmocka_unit_test(what_one_of_two_nodes_has_is_held),
		cmocka_unit_test(who_waits_for_the_keeper_is_not_silent),
		cmocka_unit_test(the_second_node_is_read),
		cmocka_unit_test(what_no_node_has_is_void),
		cmocka_unit_test(a_copy_becomes_one_of_two),
		cmocka_unit_test(a_writer_waits_for_the_fin),
		cmocka_unit_test(who_meets_a_busy_region_waits),
		cmocka_unit_test(a_lost_answer_is_read_again),
		cmocka_unit_test(give_backs_are_acknowledged_again),
		cmocka_unit_test(parts_are_acknowledged_if_asked),
		cmocka_unit_test(rights_are_looked_at),
		cmocka_unit_test(what_no_machine_asks_ends_the_lane),
		cmocka_unit_test(forged_words_have_no_effect),
		cmocka_unit_test(bad_messages_end_the_talk),
		cmocka_unit_test(a_dead_owner_is_told),
		cmocka_unit_test(who_writes_to_two_nodes_is_not_gone),
		cmocka_unit_test(a_range_goes_on_with_memorys_bytes),
		cmocka_unit_test(who_does_not_answer_is_expelled),
		cmocka_unit_test(a_machine_goes_with_its_port),
		cmocka_unit_test(a_lost_memory_node_is_an_error),
		cmocka_unit_test(a_new_term_waits_for_the_old_members),
		cmocka_unit_test(a_term_follows_another_in_one_switch),
		cmocka_unit_test(
			stores_that_went_nowhere_are_lost_in_the_next_term),
		cmocka_unit_test(bad_calls_say_why),
		cmocka_unit_test(bad_options_are_refused),
		cmocka_unit_test(a_full_directory_recalls),
		cmocka_unit_test(a_range_is_cleared),
		cmocka_unit_test(a_cleared_range_is_at_home),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
