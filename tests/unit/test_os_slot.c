/* SPDX-License-Identifier: Apache-2.0 */
/* Slots are exclusive and end with their owner; strangers who knock with a bad
 * introduction are refused and counted, and leave nothing. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "os/cable_msg.h"
#include "os/cable_ring.h"
#include "os/pages.h"
#include "os/slot.h"
#include "os_end.h"

static const uint8_t ip[4] = {127, 0, 0, 1};

static struct rack_sockets rack_at(const char *rack)
{
	struct rack_sockets r;

	test_rundir();
	assert_int_equal(rack_sockets_open(rack, &r), 0);
	return r;
}

static void test_exclusive(void **state)
{
	static const uint8_t elsewhere[4] = {127, 0, 0, 2};
	struct rack_sockets r = rack_at("slots"), other = rack_at("slot");
	uint32_t slot[2];
	int fd[2], conn;

	assert_int_equal(slot_lease(&r, ip, 500, &slot[0], &fd[0]), 0);
	assert_int_equal(slot_lease(&r, ip, 500, &slot[1], &fd[1]), 0);
	assert_int_equal(slot[0], 501);
	assert_int_equal(slot[1], 502);
	assert_int_equal(slot_take(&r, ip, 502, &conn), -EADDRINUSE);
	assert_int_equal(slot_connect(&r, ip, 501, &conn), 0);
	close(conn);
	slot_release(&r, ip, 501, fd[0]);
	assert_int_equal(slot_connect(&r, ip, 501, &conn), -ECONNREFUSED);
	/* Other racks and addresses are other worlds. */
	assert_int_equal(slot_connect(&other, ip, 502, &conn), -ECONNREFUSED);
	assert_int_equal(slot_connect(&r, elsewhere, 502, &conn),
			 -ECONNREFUSED);
	assert_int_equal(slot_lease(&r, ip, 500, &slot[0], &fd[0]), 0);
	assert_int_equal(slot[0], 501);
	close(fd[0]); /* as when its owner is killed */
	assert_int_equal(slot_lease(&r, ip, 500, &slot[0], &fd[0]), 0);
	assert_int_equal(slot[0], 501);
	slot_release(&r, ip, 501, fd[0]);
	slot_release(&r, ip, 502, fd[1]);
	rack_sockets_close(&r);
	rack_sockets_close(&other);
}

static void test_all_taken(void **state)
{
	static int fd[OS_SLOT_COUNT];
	struct rack_sockets r = rack_at("full");
	struct rlimit lim = {2048, 2048};
	uint32_t slot;
	unsigned n = 0;
	int err;

	/* Without the descriptors for all, the limit is that of files. */
	(void)setrlimit(RLIMIT_NOFILE, &lim);
	while (!(err = slot_lease(&r, ip, n, &slot, &fd[n]))) {
		assert_true(slot >= OS_SLOT_FIRST && slot < OS_SLOT_COUNT);
		n++;
	}
	if (err != -EMFILE) {
		assert_int_equal(err, -EUSERS);
		assert_int_equal(n, OS_SLOT_COUNT - OS_SLOT_FIRST);
	}
	while (n)
		close(fd[--n]);
	/* The files that are left are in nobody's way. */
	assert_int_equal(slot_lease(&r, ip, 77, &slot, &fd[0]), 0);
	assert_int_equal(slot, 78);
	slot_release(&r, ip, slot, fd[0]);
	rack_sockets_close(&r);
}

/* ---- introductions ------------------------------------------------------ */

enum {
	RING = OS_RING_BYTES_MIN,
	SHARED = 3 * 4096 + 2 * RING,
};

struct caller {
	struct cable_msg msg;
	struct rack_sockets rack;
	int slot_fd;
	int sock;
	int fd[2];
	uint8_t *shared;
};

static void caller_init(struct caller *c, struct nic_host *host,
			const char *rack)
{
	uint32_t slot = nic_get_config(host->nic)->slot;

	c->rack = rack_at(rack);
	assert_int_equal(slot_connect(&c->rack, ip, slot, &c->sock), 0);
	cable_msg_init(&c->msg, CABLE_HELLO);
	assert_int_equal(
		slot_lease(&c->rack, ip, slot, &c->msg.hello.slot, &c->slot_fd),
		0);
	c->msg.hello.ring_bytes = RING;
	memcpy(c->msg.hello.ip, ip, 4);
	c->fd[0] = pages_memfd("ring", SHARED);
	c->fd[1] = pages_memfd("bell", 4096);
	assert_true(c->fd[0] >= 0 && c->fd[1] >= 0);
	c->shared = pages_map(c->fd[0], SHARED, true);
	assert_non_null(c->shared);
}

static void caller_seal(struct caller *c)
{
	assert_int_equal(pages_seal_size(c->fd[0]), 0);
	assert_int_equal(pages_seal_size(c->fd[1]), 0);
}

/* Sends the introduction and waits: the type of the answer, or -EPIPE. */
static int caller_call(struct caller *c, unsigned fd_count)
{
	struct cable_fds fds;
	struct cable_msg reply;
	int err;

	assert_int_equal(cable_msg_send(c->sock, &c->msg, c->fd, fd_count), 0);
	for (unsigned i = 0; i < 2000; i++) {
		err = cable_msg_recv(c->sock, &reply, &fds);
		if (err != -EAGAIN)
			break;
		test_sleep_ms(1);
	}
	cable_fds_close(&fds);
	return err ? err : (int)reply.type;
}

static void caller_release(struct caller *c)
{
	pages_free(c->shared, SHARED);
	close(c->sock);
	close(c->slot_fd);
	rack_sockets_close(&c->rack);
	for (unsigned i = 0; i < 2; i++)
		close(c->fd[i]);
}

/* The read end; returns the other. */
static int pipe_end(int *fd)
{
	int p[2];

	assert_int_equal(pipe(p), 0);
	*fd = p[0];
	return p[1];
}

/* A child leases a slot and lives; we claim to have it. */
static void steal_a_slot(struct nic_host *host, const char *rack)
{
	uint32_t theirs;
	struct caller c;
	int fd, p[2];
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	/* Before the call: it inherits the host's end of every cable. */
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		c.rack = rack_at(rack);
		NEED(slot_lease(&c.rack, ip, 900, &theirs, &fd) == 0);
		NEED(write(p[1], &theirs, sizeof(theirs)) == sizeof(theirs));
		for (;;)
			pause();
	}
	assert_int_equal(read(p[0], &theirs, sizeof(theirs)), sizeof(theirs));
	caller_init(&c, host, rack);
	caller_seal(&c);
	c.msg.hello.slot = theirs;
	assert_int_equal(caller_call(&c, 2), -EPIPE);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(p[0]);
	close(p[1]);
	caller_release(&c);
}

static void test_introductions(void **state)
{
	struct os_config cfg;
	struct nic_host *host;
	struct caller c;

	test_config(&cfg);
	host = test_host(&cfg);

	caller_init(&c, host, cfg.rack);
	caller_seal(&c);
	assert_int_equal(caller_call(&c, 2), CABLE_WELCOME);
	caller_release(&c);

	/* Another version is told which one we speak. */
	caller_init(&c, host, cfg.rack);
	caller_seal(&c);
	c.msg.major = CABLE_MAJOR + 1;
	assert_int_equal(caller_call(&c, 2), CABLE_REFUSE);
	assert_int_equal(test_stats(host).refused_version, 1);
	caller_release(&c);

	/* A ring that could shrink under us. */
	caller_init(&c, host, cfg.rack);
	assert_int_equal(caller_call(&c, 2), -EPIPE);
	caller_release(&c);

	/* Missing descriptors. */
	caller_init(&c, host, cfg.rack);
	caller_seal(&c);
	assert_int_equal(caller_call(&c, 1), -EPIPE);
	caller_release(&c);

	/* A size that does not fit the memory, and one that is none. */
	for (unsigned i = 0; i < 2; i++) {
		caller_init(&c, host, cfg.rack);
		caller_seal(&c);
		c.msg.hello.ring_bytes = i ? 2 * RING : RING + 64;
		assert_int_equal(caller_call(&c, 2), -EPIPE);
		caller_release(&c);
	}

	/* A pipe where the bell should be: whatever it is, nobody waits. */
	caller_init(&c, host, cfg.rack);
	caller_seal(&c);
	close(c.fd[1]);
	close(pipe_end(&c.fd[1]));
	assert_int_equal(caller_call(&c, 2), -EPIPE);
	caller_release(&c);

	/* A slot that nobody has, and one that is another process's: what is
	 * sent there would come to the caller. */
	caller_init(&c, host, cfg.rack);
	caller_seal(&c);
	close(c.slot_fd);
	c.slot_fd = -1;
	assert_int_equal(caller_call(&c, 2), -EPIPE);
	caller_release(&c);
	assert_int_equal(test_stats(host).refused_slot, 1);
	steal_a_slot(host, cfg.rack);
	assert_int_equal(test_stats(host).refused_slot, 2);

	/* An address that is not ours. */
	caller_init(&c, host, cfg.rack);
	caller_seal(&c);
	c.msg.hello.ip[3] = 2;
	assert_int_equal(caller_call(&c, 2), -EPIPE);
	caller_release(&c);

	/* Not an introduction at all. */
	caller_init(&c, host, cfg.rack);
	c.msg.magic = 1;
	assert_int_equal(caller_call(&c, 0), -EPIPE);
	caller_release(&c);

	assert_int_equal(test_stats(host).refused_hello, 8);
	assert_int_equal(test_stats(host).accepts, 1);
	host->ops->close(host);
}

/* It took a place of OS_PENDING_MAX for ever. */
static void silent_callers_are_closed(void **state)
{
	struct os_config cfg;
	struct nic_host *host;
	struct rack_sockets r;
	struct caller c;
	uint32_t slot;
	uint8_t byte;
	int sock;

	test_config(&cfg);
	host = test_host(&cfg);
	slot = nic_get_config(host->nic)->slot;
	r = rack_at(cfg.rack);
	assert_int_equal(slot_connect(&r, ip, slot, &sock), 0);
	/* Others are served meanwhile. */
	caller_init(&c, host, cfg.rack);
	caller_seal(&c);
	assert_int_equal(caller_call(&c, 2), CABLE_WELCOME);
	caller_release(&c);
	for (unsigned i = 0; i < 10000 && recv(sock, &byte, 1, MSG_DONTWAIT);
	     i++)
		test_sleep_ms(1);
	assert_int_equal(recv(sock, &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(test_stats(host).refused_silent, 1);
	close(sock);
	rack_sockets_close(&r);
	host->ops->close(host);
}

static void wait_for_break(struct nic_host *host, uint64_t count)
{
	for (unsigned i = 0; i < 2000; i++) {
		if (test_stats(host).broken_rings == count)
			return;
		test_sleep_ms(1);
	}
	fail_msg("the broken ring was not noticed");
}

/* A peer that behaves until it is let in, and then writes nonsense. */
static void test_hostile_rings(void **state)
{
	static const uint16_t bad[] = {0xffff, 1, RING_READY,
				       RING_READY | RING_WRAP};
	struct os_config cfg;
	struct nic_host *host;

	test_config(&cfg);
	host = test_host(&cfg);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		struct caller c;
		uint8_t byte;

		caller_init(&c, host, cfg.rack);
		caller_seal(&c);
		assert_int_equal(caller_call(&c, 2), CABLE_WELCOME);
		memset(c.shared + 3 * 4096 + 2, 0xee, RING - 2);
		atomic_store(ring_header(c.shared + 3 * 4096, 0), bad[i]);
		wait_for_break(host, i + 1);
		/* It hung up on us. */
		assert_int_equal(recv(c.sock, &byte, 1, 0), 0);
		caller_release(&c);
	}
	host->ops->close(host);
}

/* ---- guesses ------------------------------------------------------------ */

/* Asks for a mapping and waits: the status, or -EPIPE. */
static int ask(struct caller *c, uint32_t owner, uint32_t user, uint32_t rkey)
{
	struct cable_msg msg;
	struct cable_fds fds;
	int err = -EAGAIN;

	cable_msg_init(&msg, CABLE_MAP_REQ);
	msg.map_req = (struct cable_map_req){owner, user, rkey};
	if (cable_msg_send(c->sock, &msg, NULL, 0))
		return -EPIPE;
	for (unsigned i = 0; i < 2000 && err == -EAGAIN; i++) {
		err = cable_msg_recv(c->sock, &msg, &fds);
		if (!err && msg.type == CABLE_RING)
			err = -EAGAIN;
		if (err == -EAGAIN)
			test_sleep_ms(1);
	}
	if (err)
		return err;
	assert_int_equal(msg.type, CABLE_MAP_REP);
	cable_fds_close(&fds);
	return msg.map_rep.status;
}

/* They were free, unlimited and told apart which part was right. */
static void guesses_of_keys_end_the_cable(void **state)
{
	struct os_config cfg;
	struct nic_host *host;
	struct end_card peer;
	struct caller c;
	struct end e;
	uint32_t owner, user;
	unsigned asked;

	test_config(&cfg);
	host = test_host(&cfg);
	end_init(&e, host, END_GRANT);
	caller_init(&c, host, cfg.rack);
	caller_seal(&c);
	owner = e.card.qpn;
	user = c.msg.hello.slot << NIC_QPN_INDEX_BITS | 5;
	peer = (struct end_card){.qpn = user};
	memcpy(peer.gid, e.card.gid, 16);
	end_connect(&e, &peer);
	assert_int_equal(caller_call(&c, 2), CABLE_WELCOME);

	assert_int_equal(ask(&c, owner, user, e.card.rkey), 0);
	/* No connection, another's connection, another slot's queue pair. */
	assert_int_equal(ask(&c, owner ^ 1, user, e.card.rkey), -EACCES);
	assert_int_equal(ask(&c, owner, user ^ 1, e.card.rkey), -EACCES);
	assert_int_equal(
		ask(&c, owner, user ^ 1 << NIC_QPN_INDEX_BITS, e.card.rkey),
		-EACCES);
	assert_int_equal(nic_counter_get(host->nic, NIC_C_sources_blocked), 0);
	for (unsigned i = 1; i <= NIC_KEY_FAILURES; i++)
		assert_int_equal(ask(&c, owner, user, e.card.rkey ^ i << 8),
				 -EACCES);
	assert_int_equal(nic_counter_get(host->nic, NIC_C_sources_blocked), 1);
	/* From here on not even the right one, however often; the cable, which
	 * others of its connections use, stays. */
	for (asked = 0; asked <= 3 * NIC_KEY_FAILURES; asked++)
		assert_int_equal(ask(&c, owner, user, e.card.rkey), -EACCES);
	assert_int_equal(nic_counter_get(host->nic, NIC_C_sources_blocked), 1);
	caller_release(&c);
	end_release(&e);
	host->ops->close(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exclusive),
		cmocka_unit_test(test_all_taken),
		cmocka_unit_test(test_introductions),
		cmocka_unit_test(silent_callers_are_closed),
		cmocka_unit_test(test_hostile_rings),
		cmocka_unit_test(guesses_of_keys_end_the_cable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
