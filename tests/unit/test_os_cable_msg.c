/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a cable whose descriptors are not what was agreed: they are
 * refused, and no descriptor of theirs, nor one of ours, is lost or closed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/cable_msg.h"

enum {
	GUARD = 64, /* ints around what is received into */
	FD_MANY = 64,
};

static unsigned open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

struct packet {
	struct cable_msg msg;
	size_t len_bytes;
	unsigned parts;	   /* control messages ... */
	unsigned per_part; /* ... of so many descriptors each */
};

static void send_packet(int sock, const struct packet *p)
{
	union {
		struct cmsghdr align;
		char bytes[4096];
	} control;
	struct iovec iov = {(void *)(uintptr_t)&p->msg, p->len_bytes};
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes};
	int fds[FD_MANY];

	memset(&control, 0, sizeof(control));
	for (unsigned i = 0; i < p->per_part; i++) {
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
	for (unsigned i = 0; i < p->parts; i++) {
		struct cmsghdr *c = (void *)(control.bytes + mh.msg_controllen);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(p->per_part * sizeof(int));
		memcpy(CMSG_DATA(c), fds, p->per_part * sizeof(int));
		mh.msg_controllen += CMSG_SPACE(p->per_part * sizeof(int));
	}
	assert_int_equal(sendmsg(sock, &mh, MSG_NOSIGNAL), p->len_bytes);
	for (unsigned i = 0; i < p->per_part; i++)
		close(fds[i]);
}

/* Receives between two guards, closes what came and compares. */
static int receive(int sock, unsigned *count)
{
	struct {
		int before[GUARD];
		struct cable_fds fds;
		int after[GUARD];
	} frame;
	struct cable_msg msg;
	int err;

	memset(&frame, 0x5a, sizeof(frame));
	err = cable_msg_recv(sock, &msg, &frame.fds);
	for (unsigned i = 0; i < GUARD; i++) {
		assert_int_equal(frame.before[i], 0x5a5a5a5a);
		assert_int_equal(frame.after[i], 0x5a5a5a5a);
	}
	assert_true(frame.fds.count <= CABLE_FD_MAX);
	*count = frame.fds.count;
	cable_fds_close(&frame.fds);
	return err;
}

static void odd_descriptors_are_refused_and_closed(void **state)
{
	static const struct {
		unsigned parts, per_part;
		size_t len_bytes;
		int err;
	} rows[] = {
		{0, 0, sizeof(struct cable_msg), 0},
		{1, 1, sizeof(struct cable_msg), 0},
		{1, CABLE_FD_MAX, sizeof(struct cable_msg), 0},
		/* A control buffer is rounded up: one more has room. */
		{1, CABLE_FD_MAX + 1, sizeof(struct cable_msg), -EBADMSG},
		{1, CABLE_FD_MAX + 2, sizeof(struct cable_msg), -EBADMSG},
		{1, FD_MANY, sizeof(struct cable_msg), -EBADMSG},
		/* The kernel joins parts; the sum is what counts. */
		{2, CABLE_FD_MAX, sizeof(struct cable_msg), -EBADMSG},
		{5, 1, sizeof(struct cable_msg), -EBADMSG},
		/* Descriptors with a message that is none. */
		{1, 2, sizeof(struct cable_msg) - 1, -EBADMSG},
		{1, 2, 1, -EBADMSG},
		{1, 2, 0, -EPIPE},
	};
	int s[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s), 0);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct packet p = {.parts = rows[i].parts,
				   .per_part = rows[i].per_part,
				   .len_bytes = rows[i].len_bytes};
		unsigned before = open_descriptors(), count;
		int err;

		cable_msg_init(&p.msg, CABLE_HELLO);
		send_packet(s[0], &p);
		err = receive(s[1], &count);
		assert_int_equal(err, rows[i].err);
		assert_int_equal(count, err ? 0 : p.parts * p.per_part);
		assert_int_equal(open_descriptors(), before);
	}
	close(s[0]);
	close(s[1]);
}

/* A longer packet than any message: what was cut off may not be guessed. */
static void long_packets_are_refused(void **state)
{
	struct {
		struct cable_msg msg;
		char more;
	} large;
	unsigned count;
	int s[2];

	memset(&large, 0, sizeof(large));
	cable_msg_init(&large.msg, CABLE_HELLO);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s), 0);
	assert_int_equal(send(s[0], &large, sizeof(large), 0), sizeof(large));
	assert_int_equal(receive(s[1], &count), -EBADMSG);
	close(s[0]);
	assert_int_equal(receive(s[1], &count), -EPIPE);
	close(s[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(odd_descriptors_are_refused_and_closed),
		cmocka_unit_test(long_packets_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
