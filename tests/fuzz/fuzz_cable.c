/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a peer says on the socket of a cable, from its first word on; any number
 * of messages, each:
 *
 *   1 byte	type; above 15 the magic is wrong
 *   1 byte	length in bytes; 0: as it should be
 *   1 byte	how many descriptors (modulo 6), then a byte for the kind of
 * each 1 byte	how many bytes to change (modulo 8), then place and value of
 * each
 *
 * Whatever it is, the host says yes or hangs up, and when the peer is gone no
 * descriptor is left or missing.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "fuzz_count.h"
#include "os/cable.h"
#include "os/pages.h"
#include "os/slot.h"

enum {
	RING = OS_RING_BYTES_MIN,
	SHARED = CABLE_RINGS_AT + 2 * RING,
	FD_MAX = 5,
	MESSAGES_MAX = 32,
	FDS = 128, /* more than are ever open */
};

static char top[] = "/tmp/aquifer-fuzz.XXXXXX";

struct input {
	const uint8_t *at, *end;
};

static uint8_t next(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static void rundir_remove(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", top);
	if (system(command))
		fprintf(stderr, "%s is left\n", top);
}

static struct os_host *host(void)
{
	static struct os_host *h;
	struct os_config cfg;
	struct nic_host *base;

	if (h)
		return h;
	setenv("AQUIFER_LOG", "err", 1);
	if (!mkdtemp(top) || setenv("AQUIFER_RUNDIR", top, 1) ||
	    atexit(rundir_remove))
		abort();
	os_config_init(&cfg);
	cfg.port = OS_PORT_CABLE;
	if (os_host_open(&cfg, &base))
		abort();
	h = host_of(base);
	return h;
}

/* Which of the lowest numbers are descriptors. poll(2) tells of all at once;
 * listing /proc/self/fd took half of the time. */
static void open_descriptors(bool open[FDS])
{
	struct pollfd p[FDS];

	for (int i = 0; i < FDS; i++)
		p[i] = (struct pollfd){.fd = i};
	if (poll(p, FDS, 0) < 0)
		abort();
	for (int i = 0; i < FDS; i++)
		open[i] = !(p[i].revents & POLLNVAL);
}

static int sealed(size_t len_bytes)
{
	int fd = pages_memfd("fuzz", len_bytes);

	if (fd < 0 || pages_seal_size(fd))
		abort();
	return fd;
}

static int descriptor(uint8_t kind)
{
	int p[2];

	switch (kind % 7) {
	case 0:
		return sealed(SHARED);
	case 1:
		return sealed(BELL_PAGE_BYTES);
	case 2:
		return pages_memfd("fuzz", SHARED);
	case 3:
		return sealed(64);
	case 4:
		return eventfd(0, EFD_CLOEXEC);
	case 5:
		if (pipe2(p, O_CLOEXEC) < 0)
			abort();
		close(p[1]);
		return p[0];
	default:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	}
}

static void speak(int sock, struct input *in, uint32_t slot)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FD_MAX * sizeof(int))];
	} control = {0};
	struct cable_msg msg;
	struct iovec iov = {&msg, sizeof(msg)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	int fds[FD_MAX];
	uint8_t type = next(in), len = next(in);
	unsigned count = next(in) % (FD_MAX + 1);

	cable_msg_init(&msg, (enum cable_msg_type)(type & 15));
	if (type > 15)
		msg.magic ^= type;
	msg.hello.slot = slot;
	msg.hello.ring_bytes = RING;
	memcpy(msg.hello.ip, (const uint8_t[4]){127, 0, 0, 1}, 4);
	for (unsigned i = 0; i < count; i++)
		fds[i] = descriptor(next(in));
	for (unsigned n = next(in) % 8; n; n--) {
		uint8_t place = next(in) % sizeof(msg);

		((uint8_t *)&msg)[place] = next(in);
	}
	if (len)
		iov.iov_len = len < sizeof(msg) ? len : sizeof(msg);
	if (count) {
		struct cmsghdr *c = &control.align;

		mh.msg_control = control.bytes;
		mh.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	/* The host may have hung up already. */
	(void)!sendmsg(sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	for (unsigned i = 0; i < count; i++)
		close(fds[i]);
}

/* The host looks at all that was said; the engine may be quicker. */
static void hear(struct os_host *h)
{
	lock_take(&h->base.lock);
	cable_accept_all(h);
	for (struct cable *c = h->cables; c; c = c->next)
		if (!c->doomed && c->sock >= 0)
			cable_event(c);
	lock_drop(&h->base.lock);
}

static bool is_quiet(struct os_host *h)
{
	bool quiet;

	lock_take(&h->base.lock);
	cable_accept_all(h);
	quiet = !h->cables && !h->pending_count;
	lock_drop(&h->base.lock);
	return quiet;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	struct input in = {data, data + len_bytes};
	struct os_host *h = host();
	bool before[FDS], after[FDS];
	int sock;

	while (!is_quiet(h))
		sched_yield();
	open_descriptors(before);
	if (slot_connect(&h->sockets, h->cfg.address, h->slot, &sock))
		abort();
	for (unsigned i = 0; i < MESSAGES_MAX && in.at < in.end; i++) {
		fuzz_operations++;
		speak(sock, &in, h->slot);
		hear(h);
	}
	close(sock);
	hear(h);
	while (!is_quiet(h))
		sched_yield();
	open_descriptors(after);
	if (memcmp(before, after, sizeof(before)) != 0)
		abort();
	return 0;
}
