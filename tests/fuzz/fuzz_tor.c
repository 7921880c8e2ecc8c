/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole switch: raw frames, packets of declared and other connections,
 * control calls, time, ports that come and go. Nothing crashes, nothing leaves
 * that was changed and is not a packet with a right ICRC.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "fuzz.h"
#include "switch/tor_program.h"
#include "tor_rings.h"
#include "wire/coherence_wire.h"
#include "wire/vlist_layout.h"

enum {
	PORTS = 4,
	STEPS_MAX = 400,
	OWN_WALK = 7, /* the address of the switch towards nodes */
	SPACE = 5,
};

struct input {
	const uint8_t *at;
	size_t left;
};

struct fuzz {
	struct input s;
	struct env env;
	uint64_t now_ns;
	struct tor *tor;
	struct tor_port *port[PORTS];
	const uint8_t *raw; /* the frame that was given as it is */
	size_t raw_bytes;
	bool full;
	struct rings rings;
	/* The walk that was carried on last, as its node got it. */
	struct wire_pkt on;
	uint8_t on_payload[WIRE_MTU_MAX];
	/* Next packets of machines: their talk and their lane. */
	uint32_t talk_psn[2], lane_psn[2];
	/* The last packets to machines and to their memory node. */
	bool has_asked[3];
	struct wire_pkt asked[3];
	uint32_t seq; /* of the last INVAL */
};

static uint8_t next_u8(struct input *s)
{
	if (!s->left)
		return 0;
	s->left--;
	return *s->at++;
}

static uint64_t env_now(struct env *env)
{
	return container_of(env, struct fuzz, env)->now_ns;
}

static void env_bytes(struct env *env, void *buf, size_t len_bytes)
{
	memset(buf, 7, len_bytes);
}

/* What memory and machines were asked last, so that they can answer. */
static void note_shared(struct fuzz *f, const struct wire_pkt *pkt)
{
	if (pkt->dest_qpn == 60)
		f->asked[2] = *pkt;
	else if (pkt->dest_qpn == 70 || pkt->dest_qpn == 80)
		f->asked[pkt->dest_qpn == 80] = *pkt;
	else
		return;
	if (pkt->payload_len == COHERENCE_INVAL_BYTES) {
		struct coherence_record r;

		memcpy(&r, pkt->payload, sizeof(r));
		f->seq = be32_get(r.seq);
	}
	f->has_asked[pkt->dest_qpn == 60 ? 2 : pkt->dest_qpn == 80] = true;
}

static bool tx(void *ctx, const uint8_t *frame, size_t len_bytes,
	       const void *hint)
{
	struct fuzz *f = ctx;
	struct wire_pkt pkt;

	if (!(f->raw && len_bytes == f->raw_bytes &&
	      memcmp(frame, f->raw, len_bytes) == 0))
		ASSERT(wire_parse(frame, len_bytes, &pkt) == WIRE_OK);
	if (!f->full && wire_parse(frame, len_bytes, &pkt) == WIRE_OK) {
		rings_note(&f->rings, &pkt);
		note_shared(f, &pkt);
		if (pkt.opcode == WIRE_UD_WALK_ON &&
		    pkt.src_ip[15] == OWN_WALK) {
			f->on = pkt;
			f->on.payload = f->on_payload;
			memcpy(f->on_payload, pkt.payload, pkt.payload_len);
		}
	}
	return !f->full;
}

static void flush(void *ctx)
{
}

static void add_port(struct fuzz *f, unsigned i)
{
	static const struct tor_port_ops ops = {.tx = tx, .flush = flush};
	char name[3] = {'p', (char)('0' + i)};
	struct tor_port_config cfg = {.name = name, .ops = &ops, .ctx = f};
	uint8_t ip[16] = {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(i + 1)};

	ASSERT(tor_port_add(f->tor, &cfg, &f->port[i]) == 0);
	if (i % 2)
		ASSERT(tor_port_claim(f->port[i], ip, 0) == 0);
}

static void tell(struct fuzz *f, const char *text)
{
	char *out = NULL;
	size_t len = 0;
	FILE *stream = open_memstream(&out, &len);
	struct json_out json;

	ASSERT(stream);
	json_out_init(&json, stream);
	json_out_object(&json, NULL);
	(void)!tor_control(f->tor, text, &json); /* may be refused */
	json_out_close(&json);
	ASSERT(json_out_end(&json) == 0);
	fclose(stream);
	free(out);
}

/* Text of the fuzzer's own, behind the name of a program. */
static void tell_any(struct fuzz *f)
{
	static const char *const heads[] = {
		"swordbox ", "fault reload ", "fault ",	   "steer ",
		"cowbird ",  "walk ",	      "coherence "};
	char text[96];
	size_t n =
		strlen(strcpy(text, heads[next_u8(&f->s) % ARRAY_LEN(heads)]));
	size_t len = next_u8(&f->s) % 64;

	while (len-- && n < sizeof(text) - 1)
		text[n++] = (char)next_u8(&f->s);
	text[n] = '\0';
	/* Damage on purpose is not what is looked for here. */
	if (!strstr(text, "corrupt") && !strstr(text, "pattern"))
		tell(f, text);
}

/* An application at port 1, and at port 3 a memory node that is no server of
 * swordbox. */
static void declare_session(struct fuzz *f)
{
	char text[256];

	rings_init(&f->rings);
	ASSERT(tor_program_add_text(f->tor, "cowbird:sessions=2,requests=8,"
					    "rto_us=50,filter=on") == 0);
	snprintf(text, sizeof(text),
		 "cowbird session id=1 owner=e0 app=10.0.0.1 own_ip=10.0.0.8 "
		 "qpn=%d psn=%d own_qpn=%d mtu=512 addr=%d bytes=%llu rkey=1 "
		 "epoch=1 patience_ms=5",
		 RINGS_QPN, RINGS_PSN, RINGS_OWN_QPN, RINGS_AT,
		 (unsigned long long)f->rings.map.total_bytes);
	tell(f, text);
	snprintf(text, sizeof(text),
		 "cowbird node id=1 ip=10.0.0.3 read_qpn=%d read_psn=1 "
		 "write_qpn=%d write_psn=%d",
		 RINGS_NODE_QPN, RINGS_NODE_QPN + 1, RINGS_PSN);
	tell(f, text);
	tell(f, "cowbird region id=1 size=4096");
	tell(f, "cowbird piece id=1 node=0 read_rkey=1 write_rkey=1 addr=64 "
		"size=4096");
	tell(f, "cowbird start id=1");
}

static void set_ip(uint8_t ip[16], uint8_t last)
{
	memset(ip, 0, 16);
	ip[10] = ip[11] = 0xff;
	ip[12] = 10;
	ip[15] = last;
}

/* Memory nodes at ports 2 and 3, with a region on both. The first has to say
 * something, so that it is known where it is. */
static void declare_walks(struct fuzz *f)
{
	struct wire_pkt pkt = {
		.opcode = WIRE_RC_ACK, .ttl = 64, .pkey = 0xffff};
	uint8_t frame[WIRE_FRAME_MAX];

	set_ip(pkt.src_ip, 3);
	set_ip(pkt.dst_ip, 1);
	tor_begin(f->tor);
	tor_input(f->port[2], frame, wire_build(&pkt, frame), NULL);
	tor_end(f->tor);
	ASSERT(tor_program_add_text(f->tor, "walk:spaces=2") == 0);
	tell(f, "walk node name=m0 server=10.0.0.3 qpn=1 own_ip=10.0.0.7");
	tell(f, "walk node name=m1 server=10.0.0.4 qpn=1 own_ip=10.0.0.7");
	tell(f, "walk piece server=10.0.0.3 qpn=31 qkey=1 rkey=1 space=5 "
		"index=0 count=2 shift=6 of=t/r token=1");
	tell(f, "walk piece server=10.0.0.4 qpn=41 qkey=1 rkey=1 space=5 "
		"index=1 count=2 shift=6 of=t/r token=1");
}

/* Shared memory: machines at ports 0 and 1, a memory node at port 2. */
static void declare_shared(struct fuzz *f)
{
	static const char *const calls[] = {
		"coherence begin term=1 unclean=2",
		"coherence node node=0 ip=10.0.0.3 own_ip=10.0.0.9 qpn=60 "
		"own_qpn=61 psn=16777215 mtu=256 rkey=1 addr=4096 size=65536",
		"coherence allow domain=1 va=35184372088832 size=32768 "
		"right=rw",
		"coherence machine machine=0 ip=10.0.0.1 own_ip=10.0.0.9 "
		"qpn=70 own_qpn=71 psn=5 own_psn=6 mtu=256",
		"coherence lane machine=0 lane=0 qpn=72 own_qpn=73 psn=5",
		"coherence key machine=0 domain=1 read=1 write=2 give=3",
		"coherence machine machine=1 ip=10.0.0.2 own_ip=10.0.0.9 "
		"qpn=80 own_qpn=81 psn=5 own_psn=6 mtu=256",
		"coherence lane machine=1 lane=0 qpn=82 own_qpn=83 psn=5",
		"coherence key machine=1 domain=1 read=1 write=2 give=3",
	};

	ASSERT(tor_program_add_text(f->tor,
				    "coherence:entries=3,machines=2,lanes=2,"
				    "region_pages=2,rto_us=50,epoch_ms=1,"
				    "fin_ms=20,peer_ms=20,node_ms=20") == 0);
	for (unsigned i = 0; i < ARRAY_LEN(calls); i++)
		tell(f, calls[i]);
}

static void send_shared(struct fuzz *f, unsigned port, struct wire_pkt *pkt)
{
	uint8_t frame[WIRE_FRAME_MAX];
	size_t len;

	pkt->ttl = 64;
	pkt->pkey = 0xffff;
	pkt->ack_req = true;
	set_ip(pkt->src_ip, (uint8_t)(port + 1));
	set_ip(pkt->dst_ip, 9);
	len = wire_build(pkt, frame);
	f->raw = NULL;
	tor_begin(f->tor);
	tor_input(f->port[port], frame, len, NULL);
	tor_end(f->tor);
}

/* A machine asks, gives back, or says something. */
static void machine_speaks(struct fuzz *f)
{
	static uint8_t payload[256];
	uint8_t what = next_u8(&f->s), arg = next_u8(&f->s);
	unsigned m = what & 1;
	uint32_t own = m ? 81 : 71;
	struct wire_pkt pkt = {.rkey = 1 + arg % 4,
			       .va = 35184372088832ull + (arg >> 2 & 7) * 4096u,
			       .dma_len = 4096,
			       .payload = payload};
	struct coherence_record r = {
		.version = COHERENCE_VERSION,
		.kind = (uint8_t)(COHERENCE_FIN + arg % 3),
		.term = be32_put(1),
		.seq = be32_put(f->seq - (arg >> 7)),
		.count = be32_put(1u << (arg >> 5 & 1)),
		.page = be64_put((35184372088832ull >> 12) + (arg >> 2 & 7))};
	uint32_t *psn = what & 6 ? &f->talk_psn[m] : &f->lane_psn[m];
	uint8_t part = what >> 3 & 15;

	pkt.dest_qpn = what & 6 ? own : own + 2;
	pkt.psn = wire_psn_add(5, *psn);
	if (!(what & 6)) {
		pkt.opcode = WIRE_RC_READ_REQ;
		pkt.payload = NULL;
		*psn += 16;
	} else if (what & 4) {
		pkt.opcode = WIRE_RC_SEND_ONLY;
		memcpy(payload, &r, sizeof(r));
		pkt.payload_len = arg & 64 ? 60 : 64;
		*psn += 1;
	} else {
		pkt.rkey = 3;
		pkt.opcode = part == 0	  ? WIRE_RC_WRITE_FIRST
			     : part == 15 ? WIRE_RC_WRITE_LAST
					  : WIRE_RC_WRITE_MIDDLE;
		pkt.payload_len = 256;
		*psn += 1;
	}
	if (arg == 255)
		*psn -= 3;
	send_shared(f, m, &pkt);
}

/* Whoever was asked last answers, or does not. */
static void peer_answers(struct fuzz *f)
{
	static const uint8_t payload[256];
	uint8_t what = next_u8(&f->s);
	unsigned who = what % 3;
	const struct wire_pkt *asked = &f->asked[who];
	struct wire_pkt pkt = {.opcode = WIRE_RC_ACK,
			       .psn = wire_psn_add(asked->psn, what >> 4),
			       .syndrome = what & 8 ? what >> 1
						    : WIRE_ACK_UNLIMITED,
			       .dest_qpn = who == 2 ? 61
					   : who    ? 81
						    : 71};

	if (!f->has_asked[who])
		return;
	if (who == 2 && asked->opcode == WIRE_RC_READ_REQ) {
		pkt.opcode = WIRE_RC_READ_RESP_MIDDLE;
		pkt.payload = payload;
		pkt.payload_len = 256;
	}
	send_shared(f, who, &pkt);
}

/* The directory, lanes and what was said stay consistent, whatever comes. */
static void check_shared(struct fuzz *f)
{
	char *out = NULL;
	size_t len = 0;
	FILE *stream = open_memstream(&out, &len);
	struct json_out json;

	ASSERT(stream);
	json_out_init(&json, stream);
	json_out_object(&json, NULL);
	ASSERT(tor_control(f->tor, "coherence check", &json) == 0);
	json_out_close(&json);
	ASSERT(json_out_end(&json) == 0);
	fclose(stream);
	if (!strstr(out, "\"wrong\":\"\""))
		fprintf(stderr, "%s\n", out);
	ASSERT(strstr(out, "\"wrong\":\"\""));
	free(out);
}

static void setup(struct fuzz *f)
{
	static const struct env_ops ops = {.now_ns = env_now,
					   .random = env_bytes};
	struct tor_config cfg = {
		.env = &f->env, .slot_shift = 24, .fdb_entries = 64};

	f->env.ops = &ops;
	f->now_ns = 1000;
	ASSERT(tor_create(&cfg, &f->tor) == 0);
	for (unsigned i = 0; i < PORTS; i++)
		add_port(f, i);
	ASSERT(tor_program_add_text(f->tor,
				    "fault:dup=10%,reorder=5%,seed=1") == 0);
	ASSERT(tor_program_add_text(
		       f->tor, "steer:conns=4,keys=2,history=4,resend_us=50") ==
	       0);
	tell(f, "steer store server=10.0.0.4 rkey=1 va=64 nodes_at=0 nodes=8 "
		"node_bytes=64");
	tell(f, "steer conn server=10.0.0.4 client=10.0.0.1 client_qpn=11 "
		"server_qpn=21");
	tell(f, "steer conn server=10.0.0.4 client=10.0.0.2 client_qpn=12 "
		"server_qpn=22");
	declare_session(f);
	declare_walks(f);
	declare_shared(f);
	ASSERT(tor_program_add_text(
		       f->tor, "swordbox:open,conns=4,words=4,rto_us=50") == 0);
	tell(f, "swordbox server ip=10.0.0.4 own_ip=10.0.0.9 qpn=7 own_qpn=8 "
		"psn=16777210");
	tell(f, "swordbox region server=10.0.0.4 rkey=1 va=64 len=64");
	tell(f, "swordbox conn server=10.0.0.4 client=10.0.0.1 client_qpn=11 "
		"server_qpn=21 psn=100");
	tell(f, "swordbox conn server=10.0.0.4 client=10.0.0.2 client_qpn=12 "
		"server_qpn=22 psn=16777215");
}

/* A packet about versions of a list: written, appended, read, answered. */
static void about_versions(struct fuzz *f, struct wire_pkt *pkt,
			   uint8_t payload[64])
{
	uint8_t which = next_u8(&f->s);
	uint64_t a = vlist_pointer((which & 7) * 64u, 1 + (which >> 6));
	uint64_t b = vlist_pointer((which >> 3 & 7) * 64u, 1);
	struct vlist_node n = {.next = le64_put(vlist_end_of(a)),
			       .self = le64_put(a),
			       .key = le64_put(which >> 6)};

	pkt->va = 64 + vlist_offset(a);
	pkt->dma_len = 64;
	pkt->atomic.compare = vlist_end_of(a);
	pkt->atomic.swap_add = b;
	pkt->original = which & 1 ? vlist_end_of(b) : b;
	memcpy(payload, &n, sizeof(n));
	if (wire_opcodes[pkt->opcode].flags & WIRE_OP_PAYLOAD)
		pkt->payload_len = 64;
}

static void send_packet(struct fuzz *f)
{
	static uint8_t payload[64], frame[WIRE_FRAME_MAX];
	uint8_t who = next_u8(&f->s), what = next_u8(&f->s);
	uint8_t flags = next_u8(&f->s);
	unsigned client = who % 3 + 1;
	bool back = who & 4;
	struct wire_pkt pkt = {.ttl = 64, .pkey = 0xffff, .ack_req = flags & 1};
	size_t len;

	while (!wire_opcodes[what].name)
		what++;
	pkt.opcode = what;
	set_ip(back ? pkt.dst_ip : pkt.src_ip, (uint8_t)client);
	set_ip(back ? pkt.src_ip : pkt.dst_ip, 4);
	pkt.dest_qpn = (back ? 10 : 20) + client;
	if (back && client == 3) {
		set_ip(pkt.dst_ip, 9);
		pkt.dest_qpn = 8;
	}
	pkt.psn = wire_psn_add(client == 1 ? 100 : 0xffffff, who >> 3);
	if (back && client == 3)
		pkt.psn = wire_psn_add(16777210, who >> 3);
	pkt.rkey = 1;
	pkt.va = 64 + (flags >> 1) % 72;
	pkt.msn = flags;
	pkt.syndrome = flags & 2 ? next_u8(&f->s) : WIRE_ACK_UNLIMITED;
	pkt.atomic = (struct atomic_op){.is_add = wire_opcodes[what].flags &
						  WIRE_OP_ADD,
					.compare = flags & 3,
					.swap_add = flags >> 2,
					.swap_mask = UINT64_MAX,
					.compare_mask = UINT64_MAX};
	if (wire_opcodes[what].flags & WIRE_OP_PAYLOAD) {
		pkt.payload = payload;
		pkt.payload_len = flags & 4 ? 8 : flags % 64;
	}
	pkt.dma_len = flags & 64 ? next_u8(&f->s) : pkt.payload_len;
	pkt.walk = (struct wire_walk){.at = next_u8(&f->s),
				      .key = SPACE,
				      .left = flags >> 5,
				      .pad_bytes = (uint16_t)pkt.payload_len,
				      .status = flags & 2 ? flags >> 3
							  : WALK_WIRE_ELSEWHERE,
				      .hops = flags & 8 ? 254 : 0};
	if (flags & 128)
		about_versions(f, &pkt, payload);
	len = wire_build(&pkt, frame);
	f->raw = NULL;
	tor_begin(f->tor);
	tor_input(f->port[back ? 3 : client - 1], frame, len, NULL);
	tor_end(f->tor);
}

/* An answer to one of the session's ends, while the rings may change; now and
 * then from a host that only pretends. */
static void send_answer(struct fuzz *f)
{
	static uint8_t zeros[WIRE_MTU_MAX], frame[WIRE_FRAME_MAX];
	uint8_t how = next_u8(&f->s), poke = how >> 4;
	struct wire_pkt pkt = {.ttl = 64, .pkey = 0xffff};
	size_t len;

	while (poke && poke-- < 4) {
		size_t at = next_u8(&f->s) * 256u + next_u8(&f->s);

		f->rings.memory[at % RINGS_BYTES] = next_u8(&f->s);
	}
	if (!rings_answer(&f->rings, how, zeros, &pkt))
		return;
	set_ip(pkt.src_ip,
	       pkt.dest_qpn == RINGS_OWN_QPN ? RINGS_APP : RINGS_NODE);
	set_ip(pkt.dst_ip, RINGS_OWN);
	len = wire_build(&pkt, frame);
	f->raw = NULL;
	tor_begin(f->tor);
	tor_input(f->port[(pkt.src_ip[15] - 1u + (how >> 4 == 15)) % PORTS],
		  frame, len, NULL);
	tor_end(f->tor);
}

/* What a node answers to the last walk that came to it, or a liar. */
static void send_back(struct fuzz *f)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	uint8_t how = next_u8(&f->s), at = next_u8(&f->s);
	struct wire_pkt pkt = f->on;

	if (!pkt.opcode)
		return;
	pkt.opcode = WIRE_UD_WALK_BACK;
	memcpy(pkt.src_ip, f->on.dst_ip, 16);
	memcpy(pkt.dst_ip, f->on.src_ip, 16);
	pkt.dest_qpn = f->on.src_qpn;
	pkt.src_qpn = f->on.dest_qpn;
	pkt.walk.status = how & 1 ? WALK_WIRE_ELSEWHERE : how >> 5;
	pkt.walk.at = at;
	if (how & 2)
		pkt.payload_len = at;
	if (how & 4)
		f->on_payload[at % WALK_WIRE_ORIGIN] ^= how;
	pkt.walk.pad_bytes =
		(uint16_t)(how & 8 ? how : pkt.payload_len - WALK_WIRE_ORIGIN);
	f->raw = NULL;
	tor_begin(f->tor);
	tor_input(f->port[how & 16 ? at % PORTS : pkt.src_ip[15] - 1u], frame,
		  wire_build(&pkt, frame), NULL);
	tor_end(f->tor);
}

static void send_raw(struct fuzz *f)
{
	size_t n = next_u8(&f->s);
	struct tor_port *port = f->port[next_u8(&f->s) % PORTS];
	uint8_t *exact;

	n = n < f->s.left ? n : f->s.left;
	exact = malloc(n ? n : 1); /* so that ASan guards its end */
	ASSERT(exact);
	memcpy(exact, f->s.at, n);
	f->s.at += n;
	f->s.left -= n;
	f->raw = exact;
	f->raw_bytes = n;
	tor_begin(f->tor);
	tor_input(port, exact, n, n & 64 ? exact : NULL);
	tor_end(f->tor);
	/* Held ones leave later. */
	f->now_ns += 1000000;
	tor_tick(f->tor);
	f->raw = NULL;
	free(exact);
}

static void step(struct fuzz *f)
{
	uint8_t what = next_u8(&f->s);
	unsigned i = what >> 4;

	switch (what % 16) {
	case 0:
	case 1:
		send_raw(f);
		break;
	case 2:
		tell_any(f);
		break;
	case 3:
		f->now_ns += (uint64_t)next_u8(&f->s) << (what >> 3);
		tor_tick(f->tor);
		break;
	case 4:
		tor_port_remove(f->port[i % PORTS]);
		add_port(f, i % PORTS);
		break;
	case 5:
		tor_port_set_up(f->port[i % PORTS], what & 128);
		break;
	case 6:
		f->full = !f->full;
		break;
	case 7:
	case 8:
		send_answer(f);
		break;
	case 9:
		send_back(f);
		break;
	case 10:
	case 11:
		machine_speaks(f);
		break;
	case 12:
	case 13:
		peer_answers(f);
		break;
	default:
		send_packet(f);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	struct fuzz f = {.s = {data, len_bytes}};

	setup(&f);
	for (unsigned n = 0; f.s.left && n < STEPS_MAX; n++)
		step(&f);
	tell(&f, "swordbox show");
	tell(&f, "cowbird show");
	tell(&f, "walk show");
	tell(&f, "coherence show");
	check_shared(&f);
	tor_destroy(f.tor);
	return 0;
}
