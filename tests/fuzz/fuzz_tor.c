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
#include "wire/vlist_layout.h"

enum {
	PORTS = 4,
	STEPS_MAX = 400,
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

static bool tx(void *ctx, const uint8_t *frame, size_t len_bytes,
	       const void *hint)
{
	struct fuzz *f = ctx;
	struct wire_pkt pkt;

	if (!(f->raw && len_bytes == f->raw_bytes &&
	      memcmp(frame, f->raw, len_bytes) == 0))
		ASSERT(wire_parse(frame, len_bytes, &pkt) == WIRE_OK);
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
	static const char *const heads[] = {"swordbox ", "fault reload ",
					    "fault ", "steer "};
	char text[96];
	size_t n = strlen(strcpy(text, heads[next_u8(&f->s) % 4]));
	size_t len = next_u8(&f->s) % 64;

	while (len-- && n < sizeof(text) - 1)
		text[n++] = (char)next_u8(&f->s);
	text[n] = '\0';
	/* Damage on purpose is not what is looked for here. */
	if (!strstr(text, "corrupt") && !strstr(text, "pattern"))
		tell(f, text);
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

static void set_ip(uint8_t ip[16], uint8_t last)
{
	memset(ip, 0, 16);
	ip[10] = ip[11] = 0xff;
	ip[12] = 10;
	ip[15] = last;
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
	if (flags & 128)
		about_versions(f, &pkt, payload);
	len = wire_build(&pkt, frame);
	f->raw = NULL;
	tor_begin(f->tor);
	tor_input(f->port[back ? 3 : client - 1], frame, len, NULL);
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
	tor_destroy(f.tor);
	return 0;
}
