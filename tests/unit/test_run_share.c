/* SPDX-License-Identifier: Apache-2.0 */
/* What the pager shares cannot be resized, and descriptors that come with a
 * message are counted before they are used. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/fds.h"
#include "run/share.h"

enum {
	BUFFERS = 3,
	BUFFER_BYTES = RUN_BATCH_PAGES * RUN_PAGE_BYTES,
	SENT_MAX = 8,
};

static void a_share_keeps_its_size(void **state)
{
	struct share *s;
	int fd;

	(void)state;
	assert_int_equal(run_share_create(BUFFERS, &s, &fd), 0);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 1 << 30), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	(void)close(fd);
	run_share_put(s);
}

static void a_cleared_buffer_is_zeros_for_both(void **state)
{
	struct share *s;
	struct stat st;
	uint8_t *mem;
	int fd;

	(void)state;
	assert_int_equal(run_share_create(BUFFERS, &s, &fd), 0);
	mem = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	for (uint32_t i = 0; i < BUFFERS; i++)
		memset(run_share_page(s, i * RUN_BATCH_PAGES), (int)i + 1,
		       BUFFER_BYTES);
	run_share_clear(s, 1);
	for (uint32_t i = 0; i < BUFFERS; i++)
		assert_int_equal(mem[RUN_CHANNEL_BYTES + i * BUFFER_BYTES + 5],
				 i == 1 ? 0 : i + 1);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_blocks * 512 <= (BUFFERS - 1) * BUFFER_BYTES +
						  RUN_CHANNEL_BYTES +
						  RUN_PAGE_BYTES);
	/* A buffer's reference outlives the process's. */
	(void)run_share_get(s);
	run_share_put(s);
	assert_int_equal(*run_share_page(s, 0), 1);
	run_share_put(s);
	(void)munmap(mem, (size_t)st.st_size);
	(void)close(fd);
}

static unsigned count_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* As many descriptors as a sender likes, with room for two. */
static unsigned pass(unsigned sent, int *fd, unsigned max)
{
	char bytes[CMSG_SPACE(SENT_MAX * sizeof(int))] = {0};
	union fds_room room;
	char byte = 'x';
	struct iovec iov = {&byte, 1};
	struct msghdr out = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = bytes,
			     .msg_controllen = CMSG_SPACE(sent * sizeof(int))};
	struct msghdr in = {.msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &room,
			    .msg_controllen = sizeof(room)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&out);
	int pair[2];
	unsigned got;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sent * sizeof(int));
	for (unsigned i = 0; i < sent; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &pair[0], sizeof(int));
	assert_int_equal(sendmsg(pair[0], &out, 0), 1);
	assert_int_equal(recvmsg(pair[1], &in, MSG_CMSG_CLOEXEC), 1);
	got = fds_take(&in, fd, max);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return got;
}

static void descriptors_that_nobody_wants_are_closed(void **state)
{
	unsigned before = count_fds();

	(void)state;
	for (unsigned sent = 1; sent <= SENT_MAX; sent++)
		for (unsigned max = 0; max <= FDS_MAX; max++) {
			int fd[FDS_MAX + 2] = {-1, -1, -7, -7};
			unsigned got = pass(sent, fd, max);

			assert_true(got <= sent && got > 0);
			assert_int_equal(fd[2], -7); /* nothing behind */
			for (unsigned i = 0; got <= max && i < got; i++)
				assert_int_equal(close(fd[i]), 0);
			assert_int_equal(count_fds(), before);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_keeps_its_size),
		cmocka_unit_test(a_cleared_buffer_is_zeros_for_both),
		cmocka_unit_test(descriptors_that_nobody_wants_are_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
