/* SPDX-License-Identifier: Apache-2.0 */
/* Bells: one ring for each sleep, a page that only its owner can write, and no
 * waiting for a peer that does not want to hear. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/bell.h"
#include "os/cable_msg.h"
#include "os/pages.h"

static unsigned rings_heard(int sock)
{
	struct cable_msg msg;
	struct cable_fds fds;
	unsigned n = 0;

	while (cable_msg_recv(sock, &msg, &fds) == 0) {
		assert_int_equal(msg.type, CABLE_RING);
		assert_int_equal(fds.count, 0);
		n++;
	}
	return n;
}

static void each_producer_rings_once_per_sleep(void **state)
{
	struct bell_peer p[2];
	struct bell b;
	int s[2][2];

	assert_int_equal(bell_init(&b), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(bell_peer_init(&p[i], b.page_fd), 0);
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s[i]),
				 0);
		assert_false(bell_ring(&p[i], s[i][0])); /* awake */
	}
	for (unsigned round = 0; round < 3; round++) {
		bell_sleep(&b, round != 1);
		assert_true(bell_is_asleep(&b));
		for (unsigned i = 0; i < 2; i++) {
			assert_true(bell_ring(&p[i], s[i][0]));
			assert_false(bell_ring(&p[i], s[i][0]));
			assert_int_equal(rings_heard(s[i][1]), 1);
		}
		/* Who goes to sleep again without having been awake looked
		 * into its rings anew, and needs a new ring. */
		bell_sleep(&b, false);
		assert_true(bell_ring(&p[0], s[0][0]));
		assert_int_equal(rings_heard(s[0][1]), 1);
		bell_wake(&b);
		bell_wake(&b);
		assert_false(bell_is_asleep(&b));
		assert_false(bell_ring(&p[1], s[1][0]));
		assert_int_equal(rings_heard(s[1][1]), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		bell_peer_release(&p[i]);
		close(s[i][0]);
		close(s[i][1]);
	}
	bell_release(&b);
}

/* A peer that says at every look that it has slept again is woken twice in a
 * turn, however many frames go to it, and an honest one is not left asleep. */
static void sleeping_again_is_rung_for_at_the_end(void **state)
{
	struct bell_peer p;
	unsigned rung = 0;
	struct bell b;
	int s[2];

	assert_int_equal(bell_init(&b), 0);
	assert_int_equal(bell_peer_init(&p, b.page_fd), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s), 0);
	for (unsigned i = 0; i < 100; i++) {
		bell_sleep(&b, false);
		assert_true(bell_must_ring(&p));
		rung += bell_ring_once(&p, s[0]);
	}
	assert_int_equal(rung, 1);
	assert_int_equal(rings_heard(s[1]), 1);
	assert_true(bell_settle(&p, s[0]));
	assert_false(bell_settle(&p, s[0]));
	assert_int_equal(rings_heard(s[1]), 1);
	/* The next turn rings at once again; and who is awake at the end of it
	 * has looked by itself. */
	for (unsigned i = 0; i < 2; i++) {
		bell_sleep(&b, false);
		assert_true(bell_must_ring(&p));
		assert_int_equal(bell_ring_once(&p, s[0]), i == 0);
	}
	bell_wake(&b);
	assert_false(bell_settle(&p, s[0]));
	assert_int_equal(rings_heard(s[1]), 1);
	bell_peer_release(&p);
	bell_release(&b);
	close(s[0]);
	close(s[1]);
}

/* Each producer rouses once for each doze, and several threads may doze. */
static void each_doze_is_ended_once(void **state)
{
	struct bell_peer p[2];
	struct bell b;

	assert_int_equal(bell_init(&b), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(bell_peer_init(&p[i], b.page_fd), 0);
	for (unsigned round = 0; round < 3; round++) {
		assert_false(bell_must_rouse(&p[0]));
		bell_doze_begin(&b);
		for (unsigned i = 0; i < 2; i++) {
			assert_true(bell_must_rouse(&p[i]));
			assert_false(bell_must_rouse(&p[i]));
		}
		bell_doze_begin(&b); /* another thread, which was not there */
		assert_true(bell_must_rouse(&p[0]));
		bell_doze_end(&b);
		assert_false(bell_must_rouse(&p[0]));
		assert_true(bell_must_rouse(&p[1]));
		bell_doze_end(&b);
	}
	/* Nobody is left. */
	assert_false(bell_must_rouse(&p[1]));
	assert_false(bell_is_asleep(&b));
	for (unsigned i = 0; i < 2; i++)
		bell_peer_release(&p[i]);
	bell_release(&b);
}

/* Who waits for an answer learns from the turns whether it could have come. */
static void turns_tell_who_does_not_run(void **state)
{
	struct bell_peer p = {0};
	struct bell b;
	uint64_t since;

	assert_int_equal(bell_peer_turns(&p), 0);
	assert_int_equal(bell_init(&b), 0);
	assert_int_equal(bell_peer_init(&p, b.page_fd), 0);
	since = bell_peer_turns(&p);
	assert_true(since > 0);
	for (unsigned i = 0; i < BELL_TURNS_TO_ANSWER; i++) {
		assert_false(bell_had_time(&p, since, true));
		assert_false(bell_had_time(&p, since, false));
		bell_turn(&b);
	}
	assert_true(bell_had_time(&p, since, true));
	assert_true(bell_had_time(&p, since, false));
	/* Asleep: what was not read yet is read when it wakes up. */
	since = bell_peer_turns(&p);
	bell_sleep(&b, false);
	for (unsigned i = 0; i < BELL_TURNS_TO_SLEEP; i++) {
		assert_true(bell_had_time(&p, since, true));
		assert_false(bell_had_time(&p, since, false));
		bell_turn(&b);
	}
	assert_true(bell_had_time(&p, since, false));
	bell_peer_release(&p);
	bell_release(&b);
}

/* A peer that could write it could put everybody to sleep for good. */
static void nobody_else_can_write_the_page(void **state)
{
	struct bell b;
	char path[64];
	int fd;

	assert_int_equal(bell_init(&b), 0);
	assert_ptr_equal(mmap(NULL, BELL_PAGE_BYTES, PROT_READ | PROT_WRITE,
			      MAP_SHARED, b.page_fd, 0),
			 MAP_FAILED);
	assert_true(write(b.page_fd, "x", 1) < 0);
	assert_true(ftruncate(b.page_fd, 0) < 0);
	/* Nor by opening it again, whatever the mode says to root. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", b.page_fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		assert_ptr_equal(mmap(NULL, BELL_PAGE_BYTES,
				      PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				      0),
				 MAP_FAILED);
		assert_true(pwrite(fd, "x", 1, 0) < 0);
		assert_true(ftruncate(fd, 0) < 0);
		close(fd);
	}
	bell_sleep(&b, true);
	assert_true(bell_is_asleep(&b));
	bell_release(&b);
}

/* It hung in write(2) on the peer's eventfd, with the NIC's lock. The sockets
 * here would make their caller wait, if anything could. */
static void a_deaf_peer_makes_nobody_wait(void **state)
{
	struct bell_peer p;
	struct bell b;
	int s[2];

	assert_int_equal(bell_init(&b), 0);
	assert_int_equal(bell_peer_init(&p, b.page_fd), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s), 0);
	for (unsigned i = 0; i < 5000; i++) {
		bell_sleep(&b, false);
		assert_true(bell_ring(&p, s[0]));
	}
	assert_true(rings_heard(s[1]) > 0); /* as many as had room */
	close(s[1]);
	bell_send(s[0]); /* and no signal */
	close(s[0]);
	bell_peer_release(&p);
	bell_release(&b);
}

static void other_descriptors_are_no_bells(void **state)
{
	struct bell_peer p = {0};
	int fd = pages_memfd("bell", BELL_PAGE_BYTES), pipes[2];

	assert_true(fd >= 0);
	assert_int_equal(bell_peer_init(&p, fd), -EPERM); /* could shrink */
	close(fd);
	fd = pages_memfd("bell", 2 * BELL_PAGE_BYTES);
	assert_true(fd >= 0);
	assert_int_equal(pages_seal_size(fd), 0);
	assert_int_equal(bell_peer_init(&p, fd), -EBADMSG);
	close(fd);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(bell_peer_init(&p, pipes[0]), -EPERM);
	close(pipes[0]);
	close(pipes[1]);
	assert_null(p.page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_producer_rings_once_per_sleep),
		cmocka_unit_test(sleeping_again_is_rung_for_at_the_end),
		cmocka_unit_test(each_doze_is_ended_once),
		cmocka_unit_test(turns_tell_who_does_not_run),
		cmocka_unit_test(nobody_else_can_write_the_page),
		cmocka_unit_test(a_deaf_peer_makes_nobody_wait),
		cmocka_unit_test(other_descriptors_are_no_bells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
