/* SPDX-License-Identifier: Apache-2.0 */
/* Cowbird packet by packet: one application, one memory node, rings of
 * nonsense, and what control calls refuse. Whether it is right as a whole is
 * test_play_offload's business. */
#include "tor_rig.h"

#include <stdio.h>

#include "base/error.h"
#include "base/json_out.h"
#include "switch/cow.h"

enum {
	APP = 1, /* hosts; the port before is theirs */
	NODE = 2,
	OWN = 250,
	OWN_QPN = 0x800040,
	RING_QPN = 0x77,
	READ_QPN = 0x88,
	WRITE_QPN = 0x89,
	RING_RKEY = 0x1234,
	NODE_RKEY = 0x5678,
	PSN = 0xfffffe,
	ENTRIES = 16,
	DATA_BYTES = 4096,
	REGION_BYTES = 65536,
	TURNS = 400, /* of 100 us */
	BATCH = 64,
};

#define RING_VA 0x10000ull
#define NODE_VA 0x900000ull

struct bed {
	struct rig *r;
	struct offload_map map;
	struct offload_preamble *preamble;
	_Alignas(CACHE_LINE) uint8_t ring[65536];
	uint8_t node[REGION_BYTES];
	unsigned lose; /* the next so many packets to the application */
	bool is_mute;  /* the node does not answer WRITEs */
};

static int say(struct bed *b, const char *text)
{
	return tor_control(b->r->tor, text, NULL);
}

static void declare(struct bed *b)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "cowbird session id=7 app=10.0.0.%d own_ip=10.0.0.%d qpn=%d "
		 "psn=%d own_qpn=%d mtu=1024 addr=%llu bytes=%llu rkey=%d "
		 "epoch=1",
		 APP, OWN, RING_QPN, PSN, OWN_QPN, RING_VA,
		 (unsigned long long)b->map.total_bytes, RING_RKEY);
	assert_int_equal(say(b, text), 0);
	snprintf(text, sizeof(text),
		 "cowbird node id=7 ip=10.0.0.%d read_qpn=%d read_psn=5 "
		 "write_qpn=%d write_psn=9",
		 NODE, READ_QPN, WRITE_QPN);
	assert_int_equal(say(b, text), 0);
	snprintf(text, sizeof(text), "cowbird region id=7 size=%d",
		 REGION_BYTES);
	assert_int_equal(say(b, text), 0);
	snprintf(text, sizeof(text),
		 "cowbird piece id=7 node=0 read_rkey=%d write_rkey=%d "
		 "addr=%llu size=%d",
		 NODE_RKEY, NODE_RKEY, NODE_VA, REGION_BYTES);
	assert_int_equal(say(b, text), 0);
}

/* Without a session. */
static struct bed *make_bare(const char *options)
{
	struct bed *b = aligned_alloc(CACHE_LINE, sizeof(*b));

	assert_non_null(b);
	memset(b, 0, sizeof(*b));
	b->r = rig_create(2, 24);
	rig_introduce(b->r, 2);
	assert_int_equal(tor_program_add(b->r->tor, "cowbird", options), 0);
	assert_int_equal(
		offload_map_make(ENTRIES, DATA_BYTES, DATA_BYTES, &b->map), 0);
	assert_true(b->map.total_bytes <= sizeof(b->ring));
	b->preamble = (struct offload_preamble *)(void *)b->ring;
	offload_preamble_init(b->preamble, &b->map, "test");
	return b;
}

static struct bed *make(const char *options)
{
	struct bed *b = make_bare(options);

	declare(b);
	return b;
}

static void destroy(struct bed *b)
{
	rig_destroy(b->r);
	free(b);
}

/* The memory that a packet may touch. */
static uint8_t *memory_of(struct bed *b, const struct wire_pkt *w)
{
	if (w->rkey == RING_RKEY) {
		assert_true(w->va >= RING_VA &&
			    w->va + w->dma_len <= RING_VA + b->map.total_bytes);
		return b->ring + (w->va - RING_VA);
	}
	assert_int_equal(w->rkey, NODE_RKEY);
	assert_true(w->va >= NODE_VA &&
		    w->va + w->dma_len <= NODE_VA + REGION_BYTES);
	return b->node + (w->va - NODE_VA);
}

static void answer(struct bed *b, unsigned host, const struct wire_pkt *w)
{
	uint8_t *at = memory_of(b, w);
	uint32_t own = OWN_QPN;
	struct wire_pkt reply = {.psn = w->psn, .syndrome = WIRE_ACK_UNLIMITED};

	if (w->dest_qpn == READ_QPN)
		own += 1;
	else if (w->dest_qpn == WRITE_QPN)
		own += 2;
	reply.dest_qpn = own;
	if (w->opcode == WIRE_RC_READ_REQ) {
		reply.opcode = WIRE_RC_READ_RESP_ONLY;
		reply.payload = at;
		reply.payload_len = w->dma_len;
	} else {
		assert_int_equal(w->opcode, WIRE_RC_WRITE_ONLY);
		assert_int_equal(w->payload_len, w->dma_len);
		memcpy(at, w->payload, w->payload_len);
		reply.opcode = WIRE_RC_ACK;
	}
	rig_addresses(&reply, (uint8_t)host, OWN);
	rig_send(b->r, host - 1, &reply);
}

static void serve_host(struct bed *b, unsigned host)
{
	struct rig_port *p = &b->r->ports[host - 1];
	unsigned n = p->got < BATCH ? p->got : BATCH;
	static uint8_t copy[BATCH][2048];
	struct wire_pkt w[BATCH];

	for (unsigned i = 0; i < n; i++) {
		w[i] = rig_got(b->r, host - 1, i);
		assert_true(w[i].payload_len <= sizeof(copy[i]));
		if (w[i].payload_len)
			memcpy(copy[i], w[i].payload, w[i].payload_len);
		w[i].payload = copy[i];
	}
	p->got = 0;
	for (unsigned i = 0; i < n; i++) {
		if (wire_opcodes[w[i].opcode].flags & WIRE_OP_RESPONSE)
			continue; /* a stranger's, to nobody */
		if (host == APP && b->lose)
			b->lose--;
		else if (host == NODE && b->is_mute &&
			 w[i].opcode == WIRE_RC_WRITE_ONLY)
			continue;
		else
			answer(b, host, &w[i]);
	}
}

/* Both hosts answer what comes, for a while. */
static void serve(struct bed *b)
{
	for (unsigned turn = 0; turn < TURNS; turn++) {
		serve_host(b, APP);
		serve_host(b, NODE);
		rig_pass(b->r, 100000);
	}
}

static void put(struct bed *b, uint32_t pos, struct offload_meta m)
{
	memcpy(b->ring + b->map.meta_at + (pos % ENTRIES) * sizeof(m), &m,
	       sizeof(m));
	b->preamble->green.tail = pos + 1;
}

static void start(struct bed *b)
{
	assert_int_equal(say(b, "cowbird start id=7"), 0);
	serve(b);
}

/* The answer to a call, in `text`. */
static void ask(struct bed *b, const char *call, char *text, size_t size_bytes)
{
	FILE *f = fmemopen(text, size_bytes, "w");
	struct json_out out;

	assert_non_null(f);
	json_out_init(&out, f);
	json_out_object(&out, NULL);
	assert_int_equal(tor_control(b->r->tor, call, &out), 0);
	json_out_close(&out);
	assert_int_equal(json_out_end(&out), 0);
	fclose(f);
}

/* The state of the only session, in `text`. */
static const char *state_of(struct bed *b, char *text, size_t size_bytes)
{
	static const char key[] = "\"state\":\"";
	char *at;

	ask(b, "cowbird show", text, size_bytes);
	at = strstr(text, key);
	assert_non_null(at);
	at += strlen(key);
	at[strcspn(at, "\"")] = '\0';
	return at;
}

/* A write and a read of what it wrote, in two packets each. */
static void write_and_read(void **state)
{
	struct bed *b = make("");
	const uint32_t len = 2000;

	for (uint32_t i = 0; i < len; i++)
		b->ring[b->map.wdata_at + i] = (uint8_t)(i * 7 + 1);
	start(b);
	assert_int_equal(b->preamble->red.done.writes, 0);
	put(b, 0,
	    (struct offload_meta){OFFLOAD_WRITE, 0, len, 0, /* far */ 100});
	put(b, 1, (struct offload_meta){OFFLOAD_READ, 0, len, 100, 512});
	serve(b);
	assert_memory_equal(b->node + 100, b->ring + b->map.wdata_at, len);
	assert_int_equal(b->preamble->red.done.reads, 1);
	assert_int_equal(b->preamble->red.done.writes, 1);
	assert_int_equal(b->preamble->red.head, 2);
	assert_memory_equal(b->ring + b->map.rdata_at + 512,
			    b->ring + b->map.wdata_at, len);
	/* What the node has executed: packets 9 and 10. */
	assert_int_equal(b->preamble->red.node[OFFLOAD_NODES_MAX - 1].psn &
				 WIRE_PSN_MASK,
			 11);
	destroy(b);
}

/* The data of a read is lost on its way to the application: it is read again,
 * and comes under its own number, before what announces it. */
static void lost_data(void **state)
{
	struct bed *b = make("rto_us=50");

	start(b);
	memset(b->node + 4096, 0x5a, 64);
	put(b, 0, (struct offload_meta){OFFLOAD_READ, 0, 64, 4096, 0});
	for (unsigned i = 0; i < 12 && !b->preamble->red.done.reads; i++) {
		b->lose = i % 3;
		serve(b);
		rig_pass(b->r, 100000);
	}
	b->lose = 0;
	serve(b);
	assert_int_equal(b->preamble->red.done.reads, 1);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(b->ring[b->map.rdata_at + i], 0x5a);
	destroy(b);
}

/* Requests that cannot be executed fail alone, by their status. */
static void refused(void **state)
{
	static const struct {
		struct offload_meta meta;
		int err;
	} row[] = {
		{{OFFLOAD_READ, 1, 8, 0, 0}, EBADF},
		{{OFFLOAD_READ, 0, 0, 0, 0}, EMSGSIZE},
		{{OFFLOAD_READ, 0, DATA_BYTES, 0, 0}, EMSGSIZE},
		{{OFFLOAD_READ, 0, 8, REGION_BYTES - 4, 0}, ERANGE},
		{{OFFLOAD_READ, 0, 8, UINT64_MAX, 0}, ERANGE},
		{{OFFLOAD_READ, 0, 8, 0, DATA_BYTES}, EINVAL},
		{{OFFLOAD_WRITE, 0, 8, UINT64_MAX, 0}, EINVAL},
	};
	struct bed *b = make("");

	start(b);
	for (uint32_t i = 0; i < ARRAY_LEN(row); i++)
		put(b, i, row[i].meta);
	put(b, ARRAY_LEN(row), (struct offload_meta){OFFLOAD_READ, 0, 8, 0, 0});
	serve(b);
	for (uint32_t i = 0; i < ARRAY_LEN(row); i++)
		assert_int_equal(b->ring[b->map.status_at + i], row[i].err);
	assert_int_equal(b->ring[b->map.status_at + ARRAY_LEN(row)], 0);
	assert_int_equal(b->preamble->red.head, ARRAY_LEN(row) + 1);
	destroy(b);
}

/* Rings of nonsense end the session, with a word to the application. */
static void nonsense(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		struct bed *b = make("");

		if (i == 0)
			b->preamble->header.magic[0] ^= 1;
		else if (i == 1)
			b->preamble->red.head_reads = 9;
		start(b);
		if (i == 2) {
			b->preamble->green.tail = 1000;
			serve(b);
		} else if (i == 3) {
			put(b, 0, (struct offload_meta){9, 0, 8, 0, 0});
			serve(b);
		}
		assert_int_equal(b->preamble->state.epoch, 1);
		assert_int_equal(b->preamble->state.err, EBADMSG);
		destroy(b);
	}
}

/* Packets for nobody, and answers to what was not asked, change nothing. */
static void strangers(void **state)
{
	struct bed *b = make("");
	struct wire_pkt w = {.opcode = WIRE_RC_ACK,
			     .psn = PSN + 100,
			     .syndrome = WIRE_ACK_UNLIMITED};

	start(b);
	for (unsigned i = 0; i < COW_ENDS + 2; i++) {
		w.dest_qpn = OWN_QPN + i;
		rig_addresses(&w, APP, OWN);
		rig_send(b->r, APP - 1, &w);
		rig_addresses(&w, NODE, OWN);
		rig_send(b->r, NODE - 1, &w);
	}
	serve(b);
	put(b, 0, (struct offload_meta){OFFLOAD_READ, 0, 8, 0, 0});
	serve(b);
	assert_int_equal(b->preamble->red.done.reads, 1);
	destroy(b);
}

/* Who asks often is told sessions when one was declared, has broken or ended.
 */
static void sessions_are_listed_when_they_change(void **state)
{
	struct bed *b = make("");
	char text[4096];

	start(b);
	ask(b, "cowbird show", text, sizeof(text));
	assert_non_null(strstr(text, "\"changes\":2,"));
	assert_non_null(strstr(text, "\"id\":7"));
	ask(b, "cowbird show unless=2", text, sizeof(text));
	assert_null(strstr(text, "sessions"));
	assert_int_equal(say(b, "cowbird show unless=x"), -EINVAL);
	b->preamble->green.tail = 1000;
	serve(b);
	ask(b, "cowbird show unless=2", text, sizeof(text));
	assert_non_null(strstr(text, "broken"));
	assert_non_null(strstr(text, "\"changes\":3"));
	assert_int_equal(say(b, "cowbird end id=7"), 0);
	ask(b, "cowbird show unless=3", text, sizeof(text));
	assert_non_null(strstr(text, "\"sessions\":[]"));
	destroy(b);
}

/* A host that is no application, and guesses numbers well, answers a probe for
 * it: nonsense that would end its session. */
static void answers_of_another_port_are_nobodys(void **state)
{
	struct bed *b = make("");
	struct offload_green green = {.tail = 1000};
	struct wire_pkt w = {.opcode = WIRE_RC_READ_RESP_ONLY,
			     .dest_qpn = OWN_QPN,
			     .syndrome = WIRE_ACK_UNLIMITED,
			     .payload = (const uint8_t *)&green,
			     .payload_len = sizeof(green)};
	uint8_t ip[16] = {[10] = 0xff, 0xff, 10, 0, 0, APP};
	char text[4096];

	/* Its driver says where it is: that cannot be learned otherwise. */
	assert_int_equal(tor_port_claim(b->r->ports[0].port, ip, 0), 0);
	start(b);
	while (b->r->ports[APP - 1].got == 0)
		rig_pass(b->r, 1000000);
	w.psn = rig_got(b->r, APP - 1, 0).psn;
	rig_addresses(&w, APP, OWN);
	rig_send(b->r, NODE - 1, &w);
	assert_int_equal(tor_counter(b->r->tor, TOR_C_forged), 1);
	assert_string_equal(state_of(b, text, sizeof(text)), "run");
	serve(b);
	put(b, 0, (struct offload_meta){OFFLOAD_READ, 0, 8, 0, 0});
	serve(b);
	assert_int_equal(b->preamble->red.done.reads, 1);
	destroy(b);
}

/* A switch that was stopped has not read what its peers sent: that time is not
 * their silence. When it runs, their patience is as long as ever. */
static void time_without_running_is_nobodys_silence(void **state)
{
	struct bed *b = make("");
	char text[4096];

	start(b);
	put(b, 0, (struct offload_meta){OFFLOAD_READ, 0, 8, 0, 0});
	rig_pass(b->r, 20000000); /* a look at the rings is on its way */
	b->r->ports[APP - 1].got = 0;
	rig_pass(b->r, 2 * COW_PATIENCE_NS);
	assert_string_equal(state_of(b, text, sizeof(text)), "run");
	for (unsigned i = 0; i < 50; i++)
		rig_pass(b->r, COW_PATIENCE_NS / 40);
	assert_string_equal(state_of(b, text, sizeof(text)), "broken");
	destroy(b);
}

/* A read that touches no line of a write need not wait until that is executed,
 * one that does must. */
static void neighbours_pass_each_other(void **state)
{
	struct bed *b = make("filter=on,rto_us=1000000");

	b->is_mute = true;
	start(b);
	put(b, 0, (struct offload_meta){OFFLOAD_WRITE, 0, 64, 0, 1024});
	put(b, 1, (struct offload_meta){OFFLOAD_READ, 0, 64, 1024 + 64, 0});
	put(b, 2, (struct offload_meta){OFFLOAD_READ, 0, 64, 1024 - 64, 64});
	put(b, 3, (struct offload_meta){OFFLOAD_READ, 0, 64, 1024 - 1, 128});
	serve(b);
	assert_int_equal(b->preamble->red.done.writes, 0);
	assert_int_equal(b->preamble->red.done.reads, 2);
	destroy(b);
}

/* An acknowledgement from the application to the switch's first end. */
static void send_ack(struct bed *b)
{
	struct wire_pkt w = {.opcode = WIRE_RC_ACK,
			     .psn = PSN,
			     .dest_qpn = OWN_QPN,
			     .syndrome = WIRE_ACK_UNLIMITED};

	rig_addresses(&w, APP, OWN);
	rig_send(b->r, APP - 1, &w);
}

/* What comes for a session that has ended is nobody's: it is dropped and
 * counted, not sent to everybody. */
static void late_packets_reach_nobody(void **state)
{
	struct bed *b = make("");
	uint64_t flooded;

	start(b);
	assert_int_equal(say(b, "cowbird end id=7"), 0);
	b->r->ports[NODE - 1].got = 0;
	flooded = tor_counter(b->r->tor, TOR_C_flooded);
	send_ack(b);
	assert_int_equal(b->r->ports[NODE - 1].got, 0);
	assert_int_equal(tor_counter(b->r->tor, TOR_C_flooded), flooded);
	assert_int_equal(tor_counter(b->r->tor, TOR_C_own_late), 1);
	destroy(b);
}

/* That nobody wanted packets between two addresses is remembered until a
 * session has one of them. */
static void a_session_gets_what_passed_before(void **state)
{
	struct bed *b = make_bare("");

	send_ack(b);
	send_ack(b);
	declare(b);
	start(b);
	put(b, 0, (struct offload_meta){OFFLOAD_READ, 0, 8, 0, 0});
	serve(b);
	assert_int_equal(b->preamble->red.done.reads, 1);
	destroy(b);
}

/* One switch has applications with IPv4 and with IPv6 addresses. */
static void addresses_of_both_kinds(void **state)
{
	struct bed *b = make("");

	assert_int_equal(say(b, "cowbird session id=8 app=fd00::1 "
				"own_ip=fd00::fa qpn=1 psn=1 own_qpn=8388704 "
				"mtu=1024 addr=1 bytes=1 rkey=1 epoch=1"),
			 0);
	start(b);
	put(b, 0, (struct offload_meta){OFFLOAD_READ, 0, 8, 0, 0});
	serve(b);
	assert_int_equal(b->preamble->red.done.reads, 1);
	destroy(b);
}

static void options_have_words(void **state)
{
	struct cow_options o;

	assert_int_equal(cow_parse("", &o), 0);
	assert_int_equal(o.batch, 32);
	assert_int_equal(cow_parse("tell=each,fetch=1", &o), 0);
	assert_int_equal(o.batch, 1);
	assert_int_equal(o.fetch, 1);
	assert_int_equal(cow_parse("tell=7", &o), 0);
	assert_int_equal(o.batch, 7);
	assert_int_equal(cow_parse("tell=every", &o), -EINVAL);
	assert_int_equal(cow_parse("tell=0", &o), -EINVAL);
	assert_int_equal(cow_parse("tell", &o), -EINVAL);
}

static void bad_calls(void **state)
{
	static const char *const row[] = {
		"cowbird session",
		"cowbird session id=7 app=10.0.0.1 own_ip=10.0.0.250 qpn=1 "
		"psn=1 own_qpn=8388672 mtu=1024 addr=1 bytes=1 rkey=1 epoch=1",
		"cowbird session id=8 app=10.0.0.1 own_ip=10.0.0.250 qpn=1 "
		"psn=1 own_qpn=8388672 mtu=1024 addr=1 bytes=1 rkey=1 epoch=1",
		"cowbird session id=8 app=10.0.0.1 own_ip=fd00::fa qpn=1 "
		"psn=1 own_qpn=8388704 mtu=1024 addr=1 bytes=1 rkey=1 epoch=1",
		"cowbird node id=7 ip=fd00::2 read_qpn=1 read_psn=1 "
		"write_qpn=2 write_psn=1",
		"cowbird session id=8 app=10.0.0.1 own_ip=10.0.0.250 qpn=1 "
		"psn=1 own_qpn=8388705 mtu=1024 addr=1 bytes=1 rkey=1 epoch=1",
		"cowbird session id=8 app=10.0.0.1 own_ip=10.0.0.250 qpn=1 "
		"psn=1 own_qpn=8388704 mtu=256 addr=1 bytes=1 rkey=1 epoch=1",
		"cowbird session id=8 app=10.0.0.1 own_ip=10.0.0.250 qpn=1 "
		"psn=1 own_qpn=8388704 mtu=1024 addr=1 bytes=1 rkey=1 epoch=0",
		"cowbird session id=8 app=10.0.0.1 own_ip=10.0.0.250 qpn=1 "
		"psn=1 own_qpn=8388704 mtu=1024 addr=1 bytes=1 rkey=1 epoch=1 "
		"owner=123456789012345678901234567890123",
		"cowbird node id=9 err=112",
		"cowbird piece id=7 node=15 read_rkey=1 write_rkey=1 addr=1 "
		"size=1",
		"cowbird region id=7",
		"cowbird end id=9",
		"cowbird start id=9",
		"cowbird dance",
	};
	struct bed *b = make("");

	for (size_t i = 0; i < ARRAY_LEN(row); i++)
		if (say(b, row[i]) == 0)
			fail_msg("'%s' was accepted", row[i]);
	/* A region that its pieces do not hold. */
	assert_int_equal(say(b, "cowbird region id=7 size=4096"), 0);
	assert_int_equal(say(b, "cowbird start id=7"), -EINVAL);
	/* As many as an application may have. */
	for (unsigned i = 2; i < OFFLOAD_REGIONS_MAX; i++)
		assert_int_equal(say(b, "cowbird region id=7 size=1"), 0);
	assert_int_equal(say(b, "cowbird region id=7 size=1"), -ENOSPC);
	assert_int_equal(say(b, "cowbird end id=7"), 0);
	declare(b);
	start(b);
	assert_int_equal(say(b, "cowbird start id=7"), -EBUSY);
	assert_int_equal(say(b, "cowbird region id=7 size=4096"), -EBUSY);
	destroy(b);
}

/* Ports that say which NICs they lead to. */
static void nics_elsewhere(void **state)
{
	static const char elsewhere[] = "cowbird node id=7 ip=10.0.0.9 "
					"read_qpn=1 read_psn=1 write_qpn=2 "
					"write_psn=1";
	struct bed *b = make("");
	uint8_t ip[16] = {[10] = 0xff, 0xff, 10, 0, 0, NODE};

	/* Behind a port that claims nothing may be anybody. */
	assert_int_equal(tor_port_claim(b->r->ports[1].port, ip, 0), 0);
	assert_int_equal(say(b, elsewhere), 0);
	ip[15] = APP;
	assert_int_equal(tor_port_claim(b->r->ports[0].port, ip, 0), 0);
	assert_int_equal(say(b, elsewhere), -EHOSTUNREACH);
	assert_non_null(strstr(error_last(), "not at this switch"));
	assert_int_equal(say(b, "cowbird session id=8 app=10.0.0.9 "
				"own_ip=10.0.0.250 qpn=1 psn=1 own_qpn=8388704 "
				"mtu=1024 addr=1 bytes=1 rkey=1 epoch=1"),
			 -EHOSTUNREACH);
	/* One that is refused leaves nothing. */
	assert_int_equal(say(b, "cowbird session id=8 app=10.0.0.1 owner=e0 "
				"own_ip=10.0.0.250 qpn=1 psn=1 own_qpn=8388704 "
				"mtu=1024 addr=1 bytes=1 rkey=1 epoch=1"),
			 0);
	destroy(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_and_read),
		cmocka_unit_test(lost_data),
		cmocka_unit_test(refused),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(strangers),
		cmocka_unit_test(sessions_are_listed_when_they_change),
		cmocka_unit_test(answers_of_another_port_are_nobodys),
		cmocka_unit_test(options_have_words),
		cmocka_unit_test(bad_calls),
		cmocka_unit_test(nics_elsewhere),
		cmocka_unit_test(neighbours_pass_each_other),
		cmocka_unit_test(time_without_running_is_nobodys_silence),
		cmocka_unit_test(late_packets_reach_nobody),
		cmocka_unit_test(a_session_gets_what_passed_before),
		cmocka_unit_test(addresses_of_both_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
