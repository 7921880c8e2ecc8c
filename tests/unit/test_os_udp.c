/* SPDX-License-Identifier: Apache-2.0 */
/* The UDP port: operations between addresses, IPv6, a shared address, batches,
 * loss, a peer that is killed, and datagrams that are not what they seem. */
#include <arpa/inet.h>
#include <netinet/udp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/hail.h"
#include "os_end.h"
#include "wire/wire.h"

/* Children have the addresses of their parent. */
static uint32_t first_pid;

struct fixture {
	struct os_config cfg[2];
	struct nic_host *host[2];
	struct end end[2];
};

static struct fixture *fixture_new(const struct os_config *a,
				   const struct os_config *b, uint8_t timeout)
{
	struct fixture *f = calloc(1, sizeof(*f));

	NEED(f);
	f->cfg[0] = *a;
	f->cfg[1] = *b;
	for (unsigned i = 0; i < 2; i++) {
		f->host[i] = test_host(&f->cfg[i]);
		end_init(&f->end[i], f->host[i], END_PLAIN);
		f->end[i].timeout = timeout;
	}
	end_connect(&f->end[0], &f->end[1].card);
	end_connect(&f->end[1], &f->end[0].card);
	return f;
}

static void fixture_free(struct fixture *f)
{
	for (unsigned i = 0; i < 2; i++) {
		end_release(&f->end[i]);
		f->host[i]->ops->close(f->host[i]);
	}
	free(f);
}

/* Addresses of this process alone, on the loopback interface. */
static void own_address(uint8_t ip[4], uint8_t last)
{
	uint32_t pid = (uint32_t)getpid();

	if (!first_pid)
		first_pid = pid;
	ip[0] = 127;
	ip[1] = (uint8_t)(1 + (first_pid >> 8) % 250);
	ip[2] = (uint8_t)first_pid;
	ip[3] = last;
}

/* To each other, two addresses are two hosts. */
static void two_hosts(struct os_config cfg[2])
{
	for (unsigned i = 0; i < 2; i++) {
		test_config(&cfg[i]);
		own_address(cfg[i].address, (uint8_t)(1 + i));
	}
}

static struct fixture *two_hosts_new(uint32_t loss_ppm)
{
	struct os_config cfg[2];

	two_hosts(cfg);
	cfg[0].loss_ppm = cfg[1].loss_ppm = loss_ppm;
	return fixture_new(&cfg[0], &cfg[1], 14);
}

/* Where packets are counted: a peer that waits for its core longer than 67 ms
 * would have its packets sent twice. */
static struct fixture *patient_hosts_new(void)
{
	struct os_config cfg[2];

	two_hosts(cfg);
	return fixture_new(&cfg[0], &cfg[1], 20);
}

static uint64_t nic_count(struct nic_host *host, enum nic_counter c)
{
	uint64_t v;

	lock_take(&host->lock);
	v = nic_counter_get(host->nic, c);
	lock_drop(&host->lock);
	return v;
}

static void all_operations(struct fixture *f, bool drive)
{
	struct end *a = &f->end[0], *b = &f->end[1];

	for (unsigned i = 0; i < 5000; i++)
		a->mem[i] = (uint8_t)(i * 7);
	end_post(a, &b->card, IBV_WR_RDMA_WRITE, 0, 5000);
	assert_int_equal(end_wait(a, drive, 5000), 0);
	end_sync(b);
	assert_memory_equal(a->mem, b->mem, 5000);
	for (unsigned i = 0; i < 9000; i++)
		b->mem[8192 + i] = (uint8_t)(i * 11);
	end_sync(b);
	end_post(a, &b->card, IBV_WR_RDMA_READ, 8192, 9000);
	assert_int_equal(end_wait(a, drive, 5000), 0);
	assert_memory_equal(a->mem + 8192, b->mem + 8192, 9000);
	end_post(a, &b->card, IBV_WR_ATOMIC_FETCH_AND_ADD, 40000, 8);
	assert_int_equal(end_wait(a, drive, 5000), 0);
	end_sync(b);
	assert_int_equal(b->mem[40000], 1);
	end_post_recv(b, 50000, 100);
	end_post(a, &b->card, IBV_WR_SEND, 0, 100);
	assert_int_equal(end_wait(a, drive, 5000), 0);
	assert_int_equal(end_wait(b, drive, 5000), 0);
	assert_int_equal(b->mem[50001], 7);
}

static void test_all_operations(void **state)
{
	struct fixture *f = patient_hosts_new();
	struct os_stats s;

	all_operations(f, true);
	s = test_stats(f->host[0]);
	assert_true(s.udp_sends > 0 && s.udp_receives > 0);
	assert_int_equal(s.connects + s.accepts, 0); /* no cable */
	/* The first of the peer's packets says where its numbers begin. */
	assert_in_range(s.icrc_weak, 0, 1);
	assert_int_equal(nic_count(f->host[1], NIC_C_drop_icrc), 0);
	fixture_free(f);
}

static void test_nobody_drives(void **state)
{
	struct fixture *f = two_hosts_new(0);

	for (unsigned i = 0; i < 4; i++) {
		test_sleep_ms(120); /* both NIC threads are asleep */
		all_operations(f, false);
		memset(f->end[1].mem + 40000, 0, 8);
		end_sync(&f->end[1]);
	}
	fixture_free(f);
}

/* Datagrams without a UDP checksum, which IPv6 sockets refuse unless told:
 * nothing came from the kernel's rxe. A hail's answer shows that one came. */
static void without_checksum(void)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6,
				  .sin6_port = htons(4791),
				  .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct timeval limit = {.tv_sec = 5};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), one = 1;
	struct hail h, answer;

	NEED(fd >= 0);
	NEED(setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, &one, sizeof(one)) ==
	     0);
	/* The answer has a checksum. */
	NEED(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ==
	     0);
	hail_init(&h, HAIL_ANY_INDEX, 99);
	NEED(sendto(fd, &h, sizeof(h), 0, (struct sockaddr *)&to, sizeof(to)) ==
	     sizeof(h));
	assert_int_equal(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
	assert_true(hail_parse(&answer, sizeof(answer), HAIL_ANSWER, &answer));
	assert_int_equal(be64_get(answer.nonce), 99);
	close(fd);
}

static void test_ipv6(void **state)
{
	static const uint8_t self[16] = {[15] = 1};
	struct os_config cfg;
	struct fixture *f;
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	struct sockaddr_in6 sa = {.sin6_family = AF_INET6,
				  .sin6_addr = IN6ADDR_LOOPBACK_INIT};

	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		print_message("no IPv6 on this machine\n");
		close(fd);
		return;
	}
	close(fd);
	test_config(&cfg);
	memcpy(cfg.address6, self, 16);
	memcpy(cfg.address, self + 12, 4);
	cfg.port = OS_PORT_UDP;
	f = fixture_new(&cfg, &cfg, 14);
	all_operations(f, true);
	assert_true(test_stats(f->host[0]).udp_sends > 0);
	without_checksum();
	fixture_free(f);
}

/* Two processes behind one address: the kernel gives a datagram to any of them,
 * and whoever gets another's passes it on. */
static void test_shared_address(void **state)
{
	struct os_config cfg;
	struct fixture *f;
	struct os_stats s[2];

	test_config(&cfg);
	own_address(cfg.address, 1);
	cfg.port = OS_PORT_UDP;
	f = fixture_new(&cfg, &cfg, 14);
	all_operations(f, true);
	s[0] = test_stats(f->host[0]);
	s[1] = test_stats(f->host[1]);
	assert_true(s[0].udp_sends > 0);
	assert_int_equal(s[0].udp_no_slot + s[1].udp_no_slot, 0);
	assert_int_equal(nic_count(f->host[0], NIC_C_retry_exceeded), 0);
	fixture_free(f);
}

/* Four processes behind one address, and one that reads from all of them. */
struct crowd {
	struct nic_host *host[5]; /* the last is the reader */
	struct end server[4];
	struct end client[4];
};

static struct crowd *crowd_new(void)
{
	struct crowd *c = calloc(1, sizeof(*c));
	struct os_config cfg;

	NEED(c);
	test_config(&cfg);
	cfg.port = OS_PORT_UDP;
	for (unsigned i = 0; i < 5; i++) {
		own_address(cfg.address, i < 4 ? 1 : 2);
		c->host[i] = test_host(&cfg);
	}
	for (unsigned i = 0; i < 4; i++) {
		end_init(&c->server[i], c->host[i], END_PLAIN);
		end_init(&c->client[i], c->host[4], END_PLAIN);
		end_connect(&c->client[i], &c->server[i].card);
		end_connect(&c->server[i], &c->client[i].card);
		memset(c->server[i].mem, (int)(i + 1), 64);
		end_sync(&c->server[i]);
	}
	return c;
}

static void crowd_end(struct crowd *c, unsigned i)
{
	end_release(&c->client[i]);
	end_release(&c->server[i]);
	c->host[i]->ops->close(c->host[i]);
	c->host[i] = NULL;
}

/* READs from all that are left; returns how many packets were passed on. */
static uint64_t crowd_read(struct crowd *c, unsigned rounds)
{
	uint64_t before = 0, after = 0;

	for (unsigned i = 0; i < 4; i++)
		if (c->host[i])
			before += test_stats(c->host[i]).udp_forwarded;
	for (unsigned n = 0; n < rounds; n++) {
		struct end *to = &c->server[n % 4], *e = &c->client[n % 4];

		if (!c->host[n % 4])
			continue;
		memset(e->mem, 0, 64);
		end_post(e, &to->card, IBV_WR_RDMA_READ, 0, 64);
		NEED(end_wait(e, true, 10000) == 0);
		NEED(e->mem[63] == n % 4 + 1);
	}
	for (unsigned i = 0; i < 4; i++)
		if (c->host[i])
			after += test_stats(c->host[i]).udp_forwarded;
	return after - before;
}

/* The kernel learns which socket is whose, and learns anew when one is gone:
 * soon nothing is passed on any more. */
static void test_steering(void **state)
{
	struct crowd *c = crowd_new();
	uint64_t passed = 0, steered = 0, first = crowd_read(c, 100);

	/* Where hashes happen to be right there is nothing to learn. */
	for (unsigned i = 0; i < 200; i++) {
		passed = crowd_read(c, 100);
		if (i > 2 && passed == 0)
			break;
	}
	assert_int_equal(passed, 0);
	for (unsigned i = 0; i < 4; i++)
		steered += test_stats(c->host[i]).udp_steered;
	print_message("passed on: %u of 100, after %u programs none\n",
		      (unsigned)first, (unsigned)steered);
	/* The last one takes the place of the first. */
	crowd_end(c, 0);
	for (unsigned i = 0; i < 200; i++) {
		passed = crowd_read(c, 100);
		if (i > 2 && passed == 0)
			break;
	}
	assert_int_equal(passed, 0);
	for (unsigned i = 1; i < 4; i++)
		crowd_end(c, i);
	c->host[4]->ops->close(c->host[4]);
	free(c);
}

/* The hop limit of a connection is the TTL of its packets. */
static void test_hop_limit(void **state)
{
	static const uint8_t limits[] = {33, 64, 255};
	struct fixture *f = two_hosts_new(0);
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons(4791)};
	struct timeval patience = {.tv_sec = 5};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
	struct end_card nobody = f->end[1].card;

	own_address((uint8_t *)&sa.sin_addr, 77);
	memcpy(nobody.gid + 12, &sa.sin_addr, 4);
	NEED(fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
	NEED(setsockopt(fd, IPPROTO_IP, IP_RECVTTL, &on, sizeof(on)) == 0);
	NEED(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
			sizeof(patience)) == 0);
	for (unsigned i = 0; i < ARRAY_LEN(limits); i++) {
		uint8_t bytes[2048];
		_Alignas(struct cmsghdr) uint8_t control[64];
		struct iovec iov = {bytes, sizeof(bytes)};
		struct msghdr hdr = {.msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = control,
				     .msg_controllen = sizeof(control)};
		struct cmsghdr *c;
		struct end e;
		int ttl;

		end_init(&e, f->host[0], END_PLAIN);
		end_connect_hops(&e, &nobody, limits[i]);
		end_post(&e, &nobody, IBV_WR_RDMA_READ, 0, 8);
		do {
			e.host->ops->drive(e.host);
			NEED(recvmsg(fd, &hdr, 0) > 0);
			c = CMSG_FIRSTHDR(&hdr);
		} while (!c);
		assert_int_equal(c->cmsg_type, IP_TTL);
		memcpy(&ttl, CMSG_DATA(c), sizeof(ttl));
		assert_int_equal(ttl, limits[i]);
		end_release(&e);
		while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
	}
	close(fd);
	fixture_free(f);
}

/* Many requests at once leave in few sends, and every ICRC is right although
 * the kernel numbers the packets. */
static void test_batches(void **state)
{
	struct fixture *f = patient_hosts_new();
	struct end *a = &f->end[0], *b = &f->end[1];
	struct os_stats s;

	for (unsigned round = 0; round < 50; round++) {
		struct ibv_sge sge = {(uintptr_t)a->mem, 64, nic_mr_key(a->mr)};
		struct ibv_send_wr wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {.remote_addr = b->card.addr,
				    .rkey = b->card.rkey},
		};

		lock_take(&a->host->lock);
		for (unsigned i = 0; i < 32; i++)
			NEED(nic_qp_post_send(a->qp, &wr, NULL) == 0);
		nic_qp_kick(a->qp);
		lock_drop(&a->host->lock);
		for (unsigned i = 0; i < 32; i++)
			assert_int_equal(end_wait(a, true, 5000), 0);
	}
	s = test_stats(f->host[0]);
	assert_in_range(s.udp_sends, 50, 50 * 8);
	assert_int_equal(nic_count(f->host[1], NIC_C_drop_icrc), 0);
	assert_in_range(test_stats(f->host[1]).icrc_weak, 0, 1);
	fixture_free(f);
}

static void test_loss(void **state)
{
	struct fixture *f = two_hosts_new(20000);
	struct end *a = &f->end[0], *b = &f->end[1];

	for (unsigned i = 0; i < 30000; i++)
		b->mem[i] = (uint8_t)(i * 13 + i / 256);
	end_sync(b);
	for (unsigned i = 0; i < 60; i++) {
		memset(a->mem, 0, 30000);
		end_post(a, &b->card, IBV_WR_RDMA_READ, 0, 30000);
		assert_int_equal(end_wait(a, true, 5000), 0);
		assert_memory_equal(a->mem, b->mem, 30000);
	}
	assert_true(test_stats(f->host[0]).udp_fault_drops > 0);
	fixture_free(f);
}

/* ---- others ------------------------------------------------------------- */

/* A socket that is not a NIC, at an address of its own. */
static int stranger(uint8_t last)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons(4791)};
	uint8_t ip[4];
	int fd = socket(AF_INET, SOCK_DGRAM, 0), one = IP_PMTUDISC_DO;

	own_address(ip, last);
	memcpy(&sa.sin_addr, ip, 4);
	NEED(fd >= 0);
	NEED(setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &one, sizeof(one)) ==
	     0);
	one = 1;
	NEED(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) == 0);
	NEED(bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
	return fd;
}

/* A WRITE from `last` to end b, with a right ICRC for identification `id`. */
static void throw_at(int fd, uint8_t last, const struct end *b, uint32_t qpn,
		     uint32_t psn, uint16_t id)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(4791)};
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_pkt pkt = {
		.src_ip = {[10] = 0xff, 0xff},
		.dst_ip = {[10] = 0xff, 0xff},
		.src_port = 4791,
		.ip_id = id,
		.opcode = WIRE_RC_WRITE_ONLY,
		.pkey = 0xffff,
		.dest_qpn = qpn,
		.psn = psn,
		.ack_req = true,
		.va = b->card.addr + 60000,
		.rkey = b->card.rkey,
		.dma_len = 8,
		.payload = (const uint8_t *)"mischief",
		.payload_len = 8,
	};
	size_t len, skip = wire_outer_bytes(true);

	own_address(pkt.src_ip + 12, last);
	own_address(pkt.dst_ip + 12, 2);
	memcpy(&to.sin_addr, pkt.dst_ip + 12, 4);
	len = wire_build(&pkt, frame);
	NEED(sendto(fd, frame + skip, len - skip, 0, (struct sockaddr *)&to,
		    sizeof(to)) == (ssize_t)(len - skip));
}

static void await_count(struct nic_host *host, enum nic_counter c, uint64_t n)
{
	for (unsigned i = 0; i < 2000 && nic_count(host, c) < n; i++)
		test_sleep_ms(1);
	assert_true(nic_count(host, c) >= n);
}

static void test_strangers(void **state)
{
	struct fixture *f = patient_hosts_new();
	struct end *a = &f->end[0], *b = &f->end[1];
	int fd = stranger(9);
	uint64_t weak;
	int peer;

	end_post(a, &b->card, IBV_WR_RDMA_WRITE, 0, 64);
	assert_int_equal(end_wait(a, true, 5000), 0);
	/* As if from the connected peer itself; it has its datagrams, too. */
	peer = stranger(1);
	/* Not from the peer, though it knows everything else. */
	throw_at(fd, 9, b, b->card.qpn, 1, 0);
	await_count(f->host[1], NIC_C_drop_peer, 1);
	/* It says it is the peer, but the kernel says from where it came: the
	 * ICRC is wrong then. */
	throw_at(fd, 1, b, b->card.qpn, 1, 0);
	await_count(f->host[1], NIC_C_drop_icrc, 1);
	/* A replay of what was executed, and one from far ahead. */
	throw_at(peer, 1, b, b->card.qpn, 0, 0);
	await_count(f->host[1], NIC_C_duplicates, 1);
	throw_at(peer, 1, b, b->card.qpn, 1000, 0);
	await_count(f->host[1], NIC_C_drop_psn, 1);
	/* A queue pair, and a slot, that do not exist. */
	throw_at(fd, 9, b, b->card.qpn ^ 1, 0, 0);
	await_count(f->host[1], NIC_C_drop_qpn, 1);
	throw_at(fd, 9, b, b->card.qpn ^ 1 << NIC_QPN_INDEX_BITS, 0, 0);
	NEED(send(fd, "x", 0, 0) < 0);
	for (unsigned i = 0;
	     i < 2000 && test_stats(f->host[1]).udp_no_slot == 0; i++)
		test_sleep_ms(1);
	assert_int_equal(test_stats(f->host[1]).udp_no_slot, 1);
	weak = test_stats(f->host[1]).icrc_weak;
	assert_in_range(weak, 0, 1); /* the peer's first packet */
	/* A sender that numbers its packets, as most kernels do. */
	throw_at(peer, 1, b, b->card.qpn, 0, 35166);
	await_count(f->host[1], NIC_C_duplicates, 2);
	assert_int_equal(test_stats(f->host[1]).icrc_weak, weak + 1);
	/* Then they are expected to go on from there. */
	throw_at(peer, 1, b, b->card.qpn, 0, 35167);
	throw_at(peer, 1, b, b->card.qpn, 0, 35190);
	await_count(f->host[1], NIC_C_duplicates, 4);
	assert_int_equal(test_stats(f->host[1]).icrc_weak, weak + 1);
	end_sync(b);
	assert_int_equal(b->mem[60000], 0);
	close(fd);
	close(peer);
	fixture_free(f);
}

/* Whoever can send from other addresses, or does not know the packet numbers,
 * or repeats what it has seen, changes nothing; each packet is counted. */
static void test_a_million_forgeries(void **state)
{
	static const enum nic_counter fates[] = {
		NIC_C_drop_peer, NIC_C_drop_psn,     NIC_C_duplicates,
		NIC_C_drop_icrc, NIC_C_drop_blocked,
	};
	struct fixture *f = patient_hosts_new();
	struct end *a = &f->end[0], *b = &f->end[1];
	struct nic *nic = f->host[1]->nic;
	uint8_t frame[WIRE_FRAME_MAX];
	uint32_t seed = 1, next_psn;
	uint64_t counted = 0;

	end_post(a, &b->card, IBV_WR_RDMA_WRITE, 0, 64);
	assert_int_equal(end_wait(a, true, 5000), 0);
	lock_take(&f->host[1]->lock);
	/* On a busy machine the WRITE may have come twice. */
	for (unsigned i = 0; i < ARRAY_LEN(fates); i++)
		counted -= nic_counter_get(nic, fates[i]);
	next_psn = 1;
	for (unsigned i = 0; i < 1000000; i++) {
		struct wire_pkt pkt = {
			.src_ip = {[10] = 0xff, 0xff},
			.dst_ip = {[10] = 0xff, 0xff},
			.src_port = 4791,
			.opcode = WIRE_RC_WRITE_ONLY,
			.pkey = 0xffff,
			.dest_qpn = b->card.qpn,
			.va = b->card.addr + 60000,
			.rkey = b->card.rkey,
			.dma_len = 8,
			.payload = (const uint8_t *)"mischief",
			.payload_len = 8,
		};
		size_t len;

		seed = seed * 1664525u + 1013904223u;
		own_address(pkt.src_ip + 12, i % 4 == 0 ? 9 : 1);
		own_address(pkt.dst_ip + 12, 2);
		pkt.psn = i % 4 == 0   ? next_psn
			  : i % 4 == 1 ? 0 /* was executed */
				       : seed & WIRE_PSN_MASK;
		if (pkt.psn == next_psn && i % 4)
			pkt.psn++;
		len = wire_build(&pkt, frame);
		if (i % 4 == 3)
			frame[len - 1 - seed % 4] ^= 0x10; /* guessed */
		nic_input(nic, frame, len, NIC_FROM_NET);
	}
	for (unsigned i = 0; i < ARRAY_LEN(fates); i++)
		counted += nic_counter_get(nic, fates[i]);
	lock_drop(&f->host[1]->lock);
	assert_int_equal(counted, 1000000);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(b->mem[60000 + i], 0);
	/* The connection lives. */
	end_post(a, &b->card, IBV_WR_RDMA_WRITE, 0, 64);
	assert_int_equal(end_wait(a, true, 5000), 0);
	fixture_free(f);
}

/* The server is killed: the client's requests end with an error, in time. */
static void test_killed(void **state)
{
	struct os_config cfg[2];
	struct end_card cards[2];
	struct nic_host *host;
	uint64_t before;
	struct end e;
	int there[2], back[2], status;
	pid_t pid;

	two_hosts(cfg);
	NEED(pipe(there) == 0 && pipe(back) == 0);
	pid = fork();
	NEED(pid >= 0);
	host = test_host(&cfg[pid == 0]);
	end_init(&e, host, END_PLAIN);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		NEED(write(back[1], &e.card, sizeof(e.card)) == sizeof(e.card));
		NEED(read(there[0], &cards[0], sizeof(cards[0])) ==
		     sizeof(cards[0]));
		end_connect(&e, &cards[0]);
		NEED(write(back[1], "+", 1) == 1);
		for (;;)
			pause();
	}
	NEED(write(there[1], &e.card, sizeof(e.card)) == sizeof(e.card));
	NEED(read(back[0], &cards[1], sizeof(cards[1])) == sizeof(cards[1]));
	NEED(read(back[0], &status, 1) == 1);
	end_connect(&e, &cards[1]);
	assert_int_equal(end_do(&e, &cards[1], IBV_WR_RDMA_READ, 0, 64), 0);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	before = test_now_ns();
	/* Eight attempts of at least 4.096 us * 2^14 each: 537 ms. */
	assert_int_equal(end_do(&e, &cards[1], IBV_WR_RDMA_READ, 0, 64),
			 IBV_WC_RETRY_EXC_ERR);
	assert_true(test_now_ns() - before >= 500000000);
	end_release(&e);
	host->ops->close(host);
	for (unsigned i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
}

/* What a process cannot have is said in words. */
static void test_no_such_address(void **state)
{
	struct nic_host *host;
	struct os_config cfg;

	test_config(&cfg);
	memcpy(cfg.address, (uint8_t[4]){192, 0, 2, 1}, 4);
	cfg.port = OS_PORT_UDP;
	assert_int_equal(os_host_open(&cfg, &host), -EADDRNOTAVAIL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_operations),
		cmocka_unit_test(test_nobody_drives),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_shared_address),
		cmocka_unit_test(test_steering),
		cmocka_unit_test(test_hop_limit),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_a_million_forgeries),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_no_such_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
