// SPDX-License-Identifier: Apache-2.0
/*
 * A peer of an rsocket that knows the protocol and breaks it: private data that
 * makes no sense, and messages that no sender may send. Each time the rsocket
 * must report an error, and its process must go on.
 */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(cond)                                                         \
	do {                                                                \
		if (!(cond)) {                                              \
			fprintf(stderr, "%s:%d: %s (errno %s)\n", __FILE__, \
				__LINE__, #cond, strerror(errno));          \
			exit(1);                                            \
		}                                                           \
	} while (0)

enum {
	HELLO = 40,
	RECEIVES = 64,
};

static struct sockaddr_in address;
static uint8_t memory[8192]; /* the rsocket tells us of its buffers here */
static int listener;

struct foe {
	int victim; /* the rsocket that it is connected to */
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t theirs[HELLO]; /* what the rsocket said */
};

static void put(uint8_t *at, uint64_t v, int bytes)
{
	while (bytes--) {
		at[bytes] = (uint8_t)v;
		v >>= 8;
	}
}

static uint64_t get(const uint8_t *at, int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *at++;
	return v;
}

static void good_hello(uint8_t h[HELLO])
{
	memset(h, 0, HELLO);
	h[0] = 1;
	put(h + 2, 16, 2);
	put(h + 8, (uintptr_t)memory, 8);
	put(h + 20, 2, 4);
	put(h + 24, (uintptr_t)memory + 4096, 8);
	put(h + 36, 4096, 4);
}

/* 0, or -1 when the rsocket did not want us. */
static int foe_connect(struct foe *foe, uint8_t h[HELLO], uint8_t bytes)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 64,
			.max_recv_wr = RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 16},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct rdma_conn_param param = {.private_data = h,
					.private_data_len = bytes,
					.retry_count = 7,
					.rnr_retry_count = 7};

	CHECK(!rdma_create_id(NULL, &foe->id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_resolve_addr(foe->id, NULL, (struct sockaddr *)&address,
				 2000));
	CHECK(!rdma_resolve_route(foe->id, 2000));
	CHECK(!rdma_create_qp(foe->id, NULL, &attr));
	foe->mr = ibv_reg_mr(foe->id->pd, memory, sizeof(memory),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(foe->mr);
	put(h + 16, foe->mr->rkey, 4);
	put(h + 32, foe->mr->rkey, 4);
	for (int i = 0; i < RECEIVES; i++)
		CHECK(!rdma_post_recvv(foe->id, NULL, NULL, 0));
	if (rdma_connect(foe->id, &param))
		return -1;
	CHECK(foe->id->event->param.conn.private_data_len >= HELLO);
	memcpy(foe->theirs, foe->id->event->param.conn.private_data, HELLO);
	/* From here on nobody takes completions but whoever calls for it. */
	foe->victim = raccept(listener, NULL, NULL);
	CHECK(foe->victim >= 0);
	return 0;
}

static void foe_end(struct foe *foe)
{
	rdma_destroy_qp(foe->id);
	CHECK(!ibv_dereg_mr(foe->mr));
	CHECK(!rdma_destroy_id(foe->id));
}

static void say(struct foe *foe, uint32_t word)
{
	struct ibv_send_wr
		wr =
			{
				.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				.imm_data = htobe32(word),
				.wr.rdma = {.remote_addr =
						    get(foe->theirs + 24, 8),
					    .rkey = (uint32_t)get(
						    foe->theirs + 32, 4)},
			},
		*bad;

	/* It may have ended the connection already. */
	(void)ibv_post_send(foe->id->qp, &wr, &bad);
}

/* The rsocket's side must end with `want`. */
static void expect(struct foe *foe, int want, const char *what)
{
	int b = foe->victim;
	ssize_t n;
	char buf[64];

	do {
		n = rrecv(b, buf, sizeof(buf), 0);
	} while (n > 0);
	if (n == 0 || errno != want) {
		fprintf(stderr, "%s: %zd, %s\n", what, n, strerror(errno));
		exit(1);
	}
	CHECK(rsend(b, buf, 1, 0) == -1);
	CHECK(!rclose(b));
	foe_end(foe);
	printf("ok: %s\n", what);
}

static void one_word(uint32_t word, const char *what)
{
	uint8_t h[HELLO];
	struct foe foe;

	good_hello(h);
	CHECK(!foe_connect(&foe, h, HELLO));
	say(&foe, word);
	expect(&foe, EPROTO, what);
}

static void too_many_messages(void)
{
	uint8_t h[HELLO];
	struct foe foe;
	unsigned credits;

	good_hello(h);
	CHECK(!foe_connect(&foe, h, HELLO));
	credits = (unsigned)get(foe.theirs + 2, 2);
	/* All have arrived before anybody looks, so no credit comes back. */
	for (unsigned i = 0; i < credits + 4; i++) {
		struct ibv_wc wc;

		say(&foe, 1);
		CHECK(rdma_get_send_comp(foe.id, &wc) == 1);
		CHECK(wc.status == IBV_WC_SUCCESS);
	}
	expect(&foe, EPROTO, "more messages than credits");
}

static void a_send(void)
{
	char data[64] = "";
	struct ibv_sge sge = {.addr = (uintptr_t)data, .length = 16};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_INLINE},
			   *bad;
	uint8_t h[HELLO];
	struct foe foe;

	good_hello(h);
	CHECK(!foe_connect(&foe, h, HELLO));
	CHECK(!ibv_post_send(foe.id->qp, &wr, &bad));
	expect(&foe, ECONNRESET, "a SEND into a queue without buffers");
}

static void bad_hello(unsigned at, uint64_t value, int bytes, const char *what)
{
	uint8_t h[HELLO];
	struct foe foe;

	good_hello(h);
	put(h + at, value, bytes);
	CHECK(foe_connect(&foe, h, HELLO) == -1);
	foe_end(&foe);
	printf("ok: %s\n", what);
}

/* After all that, two who keep the rules can talk. */
static void honest(void)
{
	int a = rsocket(AF_INET, SOCK_STREAM, 0), b;
	char c;

	CHECK(!rconnect(a, (struct sockaddr *)&address, sizeof(address)));
	b = raccept(listener, NULL, NULL);
	CHECK(b >= 0 && rsend(a, "!", 1, 0) == 1 && rrecv(b, &c, 1, 0) == 1);
	CHECK(!rclose(a) && !rclose(b) && !rclose(listener));
}

int main(void)
{
	struct foe foe;
	socklen_t len = sizeof(address);
	uint8_t h[HELLO];

	alarm(300); /* whatever hangs is a failure; others may have the cores */
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK(!rbind(listener, (struct sockaddr *)&address, sizeof(address)));
	CHECK(!rlisten(listener, 5));
	CHECK(!rgetsockname(listener, (struct sockaddr *)&address, &len));

	one_word(0x00000000, "data of no bytes");
	one_word(0x1fffffff, "more bytes than any buffer has");
	one_word(0x20000001, "a reserved message");
	one_word(0xa0000000, "another reserved message");
	one_word(0x80000001, "credits taken back");
	one_word(0x9fffffff, "credits beyond all numbers");
	one_word(0xc0000000, "a mapping in a table of none");
	one_word(0xe0000007, "an unknown control message");
	too_many_messages();
	a_send();
	bad_hello(0, 7, 1, "another version");
	bad_hello(2, 0, 2, "no credits");
	bad_hello(8, UINT64_MAX, 8, "tables at the end of memory");
	bad_hello(20, 1, 4, "a table of one entry");
	bad_hello(36, 0, 4, "a buffer of no bytes");
	memset(h, 0, sizeof(h));
	CHECK(foe_connect(&foe, h, 0) == -1);
	foe_end(&foe);
	honest();
	printf("ok: a peer that keeps the rules\n");
	return 0;
}
