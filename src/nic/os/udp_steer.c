/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several processes share an address, each with a socket of its own on port
 * 4791, and the kernel chooses among them. A small program (classic BPF, no
 * privilege needed) tells it which: the slot in the packet's queue pair number
 * names the process. The program must name sockets by their place in the
 * kernel's list, which nobody is told and which changes when a process ends.
 *
 * So a process that has to pass packets on asks: the program also takes hails
 * to whichever place they name, and who answers says its slot. What was learnt
 * becomes the new program. It is a hint and may be out of date at any time:
 * packets that come to the wrong process are passed on as ever, and when they
 * become many, somebody asks again.
 */
#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <unistd.h>

#include "base/hail.h"
#include "udp.h"

enum {
	CODES_FIXED = 8,
	CODES_MAX = CODES_FIXED + 2 * UDP_STEER_MAX,
	ASK_BATCH = 8,	   /* places asked at a time */
	FORWARDS_MIN = 32, /* passed on: worth asking */
};

#define STEER_WAIT_NS	  2000000ull	/* for answers */
#define STEER_REST_MIN_NS 20000000ull	/* between two rounds, doubled ... */
#define STEER_REST_MAX_NS 2000000000ull /* ... while they do not help */

/* ---- the program -------------------------------------------------------- */

static unsigned write_program(const struct udp_steer *s,
			      struct sock_filter *code)
{
	unsigned n = 0;

	/* A hail says itself where it wants to go. */
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0);
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						 HAIL_OPCODE, 0, 2);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_B | BPF_ABS,
						 HAIL_INDEX_AT);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
	/* Byte 4 is reserved; the queue pair's number follows. */
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K,
						 0xffffff);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_RSH | BPF_K,
						 NIC_QPN_INDEX_BITS);
	for (unsigned i = 0; i < s->count; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, s->slot[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							 s->place[i]);
	}
	/* No such place: the kernel chooses by its hash. */
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	return n;
}

static int attach(struct udp_port *u)
{
	struct sock_filter code[CODES_MAX];
	struct sock_fprog prog = {.filter = code};

	prog.len = (unsigned short)write_program(&u->steer, code);
	if (setsockopt(u->fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog,
		       sizeof(prog)) < 0)
		return -errno;
	u->path.host->stats->udp_steered++;
	return 0;
}

/* ---- questions ---------------------------------------------------------- */

static void ask_batch(struct udp_port *u)
{
	struct udp_steer *s = &u->steer;
	union udp_addr self;
	struct hail hail;

	udp_addr_set(&self, u->path.host->gid_ip.ip, WIRE_UDP_PORT);
	if (!u->ipv4)
		self.v6.sin6_scope_id = u->scope_id;
	for (unsigned i = 0; i < ASK_BATCH && s->asked < UDP_STEER_MAX; i++) {
		hail_init(&hail, (uint8_t)s->asked++, s->nonce);
		(void)sendto(s->fd, &hail, sizeof(hail), MSG_DONTWAIT, &self.sa,
			     udp_addr_len(&self)); /* as good as lost */
	}
	s->until_ns = host_now(u->path.host) + STEER_WAIT_NS;
}

/* Who answers for several places has the first: to one that does not exist,
 * the kernel gives somebody's. */
static void note(struct udp_steer *s, uint16_t slot, uint8_t place)
{
	unsigned i = 0;

	while (i < s->count && s->slot[i] != slot)
		i++;
	if (i == UDP_STEER_MAX)
		return;
	if (i == s->count) {
		s->slot[i] = slot;
		s->place[i] = place;
		s->count++;
	} else if (place < s->place[i]) {
		s->place[i] = place;
	}
}

static void hear(struct udp_port *u)
{
	struct udp_steer *s = &u->steer;
	uint8_t bytes[sizeof(struct hail)];
	struct hail hail;
	ssize_t n;

	while ((n = recv(s->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		if (hail_parse(bytes, (size_t)n, HAIL_ANSWER, &hail) &&
		    be64_get(hail.nonce) == s->nonce &&
		    be16_get(hail.slot) < NIC_SLOT_COUNT)
			note(s, be16_get(hail.slot), hail.index);
}

static int open_socket(struct udp_port *u)
{
	union udp_addr own;
	int fd;

	udp_addr_set(&own, u->path.host->gid_ip.ip, 0);
	if (!u->ipv4)
		own.v6.sin6_scope_id = u->scope_id;
	fd = socket(own.sa.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    0);
	if (fd < 0)
		return -errno;
	if (bind(fd, &own.sa, udp_addr_len(&own)) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

void udp_steer_stop(struct udp_port *u)
{
	if (u->steer.fd >= 0)
		close(u->steer.fd);
	u->steer.fd = -1;
}

static void begin(struct udp_port *u, uint64_t now_ns)
{
	struct udp_steer *s = &u->steer;

	s->rest_ns = s->rest_ns ? u64_min(2 * s->rest_ns, STEER_REST_MAX_NS)
				: STEER_REST_MIN_NS;
	s->again_ns = now_ns + s->rest_ns;
	s->forwards = 0;
	s->fd = open_socket(u);
	if (s->fd < 0)
		return;
	s->nonce = rng_u64(&u->rng);
	s->asked = s->count = 0;
	s->prepared = false;
	ask_batch(u);
}

static void go_on(struct udp_port *u, uint64_t now_ns)
{
	struct udp_steer *s = &u->steer;

	hear(u);
	if (now_ns < s->until_ns)
		return;
	/* One and the same for all places: the kernel has no program yet, so
	 * that hails went where a hash sent them. If it has one, it stays in
	 * force until there is something better. */
	if (s->count <= 1 && !s->prepared) {
		s->count = s->asked = 0;
		s->prepared = true;
		if (attach(u)) {
			udp_steer_stop(u);
			s->again_ns = UINT64_MAX; /* not here */
			return;
		}
		s->nonce = rng_u64(&u->rng);
		ask_batch(u);
		return;
	}
	/* All that were asked are different: there may be more. */
	if (s->count >= s->asked && s->asked < UDP_STEER_MAX) {
		ask_batch(u);
		return;
	}
	(void)attach(u); /* if not, things stay as they are */
	udp_steer_stop(u);
}

void udp_steer_forwarded(struct udp_port *u, uint64_t now_ns)
{
	struct udp_steer *s = &u->steer;

	if (s->fd >= 0) {
		go_on(u, now_ns);
		return;
	}
	if (++s->forwards < FORWARDS_MIN || now_ns < s->again_ns)
		return;
	/* It helped for long: what happens now is news. */
	if (now_ns - s->again_ns > STEER_REST_MAX_NS)
		s->rest_ns = 0;
	begin(u, now_ns);
}

void udp_steer_tick(struct udp_port *u)
{
	if (u->steer.fd >= 0)
		go_on(u, host_now(u->path.host));
}
