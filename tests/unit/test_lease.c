/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of ports: exclusive, found by their address or at any, and what is
 * said over them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/lease.h"

static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
static struct rack_sockets rack;

static char top[] = "/tmp/test_lease_XXXXXX";

static int setup(void **state)
{
	if (!mkdtemp(top) || setenv("AQUIFER_RUNDIR", top, 1))
		return -1;
	return rack_sockets_open("test", &rack);
}

static int teardown(void **state)
{
	char command[64];

	rack_sockets_close(&rack);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static struct lease_port port_at(const uint8_t *ip, uint16_t number)
{
	struct lease_port p = {.ps = 0x106, .port = number};

	if (ip)
		memcpy(p.ip, ip, 16);
	return p;
}

static void test_exclusive(void **state)
{
	struct lease_port p = port_at(loopback, 0), q;
	int fd, fd2;

	assert_int_equal(lease_bind(&rack, &p, &fd), 0);
	assert_true(p.port >= 32768);
	q = p;
	assert_int_equal(lease_bind(&rack, &q, &fd2), -EADDRINUSE);
	/* Bound, but nobody listens. */
	assert_int_equal(lease_connect(&rack, &p, &fd2), -ECONNREFUSED);
	q.ps = 0x111; /* another port space */
	assert_int_equal(lease_bind(&rack, &q, &fd2), 0);
	lease_release(&rack, &q, fd2);
	close(fd); /* as when its owner is killed */
	assert_int_equal(lease_bind(&rack, &p, &fd), 0);
	lease_release(&rack, &p, fd);
}

static void test_any(void **state)
{
	struct lease_port any = port_at(NULL, 0), p;
	int fd, own, other;

	assert_true(lease_ip_is_any(any.ip));
	assert_false(lease_ip_is_any(loopback));
	assert_int_equal(lease_bind(&rack, &any, &fd), 0);
	assert_int_equal(listen(fd, 4), 0);
	p = port_at(loopback, any.port);
	assert_int_equal(lease_connect(&rack, &p, &other), 0);
	close(other);
	/* The one with the exact address goes first. */
	assert_int_equal(lease_bind(&rack, &p, &own), 0);
	assert_int_equal(listen(own, 4), 0);
	assert_int_equal(lease_connect(&rack, &p, &other), 0);
	assert_true(accept(own, NULL, NULL) >= 0);
	close(other);
	close(own);
	close(fd);
	assert_int_equal(lease_connect(&rack, &p, &other), -ECONNREFUSED);
}

static void test_messages(void **state)
{
	struct lease_msg m = {.kind = LEASE_HELLO, .qpn = 0x123001}, got;
	int s[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s), 0);
	assert_int_equal(lease_receive(s[1], &got), -EAGAIN);
	memcpy(m.gid, loopback, 16);
	assert_int_equal(lease_send(s[0], &m), 0);
	assert_int_equal(lease_receive(s[1], &got), 0);
	assert_memory_equal(&m, &got, sizeof(m));
	m.kind = LEASE_MAD;
	memset(m.mad, 0x5a, sizeof(m.mad));
	memcpy(m.local_gid, loopback, 16);
	assert_int_equal(lease_send(s[0], &m), 0);
	assert_int_equal(lease_receive(s[1], &got), 0);
	assert_memory_equal(&m, &got, sizeof(m));
	m.kind = 77;
	assert_int_equal(lease_send(s[0], &m), 0);
	assert_int_equal(lease_receive(s[1], &got), -EBADMSG);
	m.kind = LEASE_HELLO;
	m.qpn = 0;
	assert_int_equal(lease_send(s[0], &m), 0);
	assert_int_equal(lease_receive(s[1], &got), -EBADMSG);
	assert_int_equal(send(s[0], "x", 1, 0), 1);
	assert_int_equal(lease_receive(s[1], &got), -EBADMSG);
	close(s[0]);
	assert_int_equal(lease_receive(s[1], &got), -EPIPE);
	close(s[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exclusive),
		cmocka_unit_test(test_any),
		cmocka_unit_test(test_messages),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
