/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that its owner takes away under a live key. Whoever meets it gets an
 * error completion; no process ends, and others' connections go on.
 */
#include <pthread.h>
#include <signal.h>

#include "os/fault_guard.h"
#include "os_rig.h"

/* cmocka puts handlers of its own in front of ours: back again. */
static struct sigaction ours[2];

static int setup(void **state)
{
	return open_fixture(state, true);
}

/* Where nobody tells us, the fault does. */
static int setup_blind(void **state)
{
	return open_fixture(state, false);
}

static struct fixture *start(void **state)
{
	sigaction(SIGSEGV, &ours[0], NULL);
	sigaction(SIGBUS, &ours[1], NULL);
	return *state;
}

static uint64_t counter(const struct nic_host *host, enum nic_counter c)
{
	return nic_counter_get(host->nic, c);
}

static void test_remote(void **state)
{
	struct fixture *f = start(state);

	for (unsigned i = 0; i < 2 * ARRAY_LEN(remote); i++) {
		unsigned n = i % ARRAY_LEN(remote);
		bool drives = i >= ARRAY_LEN(remote);
		struct rig r;

		rig_make(&r, f, 1);
		for (unsigned k = 0; k < 3; k++) /* the short ways, too */
			assert_int_equal(end_do(&r.e[0], &r.card,
						remote[n].opcode, 0,
						remote[n].len),
					 IBV_WC_SUCCESS);
		munmap(r.mem, HOLE_BYTES);
		end_post(&r.e[0], &r.card, remote[n].opcode, 0, remote[n].len);
		if (drives) /* the thread that serves is the program's own */
			for (unsigned k = 0; k < 2000; k++)
				f->host[1]->ops->drive(f->host[1]);
		assert_int_equal(end_wait(&r.e[0], true, 5000),
				 IBV_WC_REM_OP_ERR);
		assert_int_equal(counter(f->host[1], NIC_C_deny_unmapped),
				 i + 1);
		assert_true(!r.watched || f->cfg.watch_unmap);
		others_go_on(f);
		rig_end(&r);
	}
}

/* A message that ends where there is nothing. */
static void test_receive(void **state)
{
	struct fixture *f = start(state);
	struct nic_mr *own;
	struct rig r;
	uint8_t *mem;

	rig_make(&r, f, 1);
	own = r.e[1].mr;
	mem = r.e[1].mem;
	r.e[1].mr = r.mr;
	r.e[1].mem = r.mem;
	end_post_recv(&r.e[1], 0, SMALL);
	r.e[1].mr = own;
	r.e[1].mem = mem;
	munmap(r.mem, HOLE_BYTES);
	assert_int_equal(end_do(&r.e[0], &r.card, IBV_WR_SEND, 0, SMALL),
			 IBV_WC_REM_OP_ERR);
	assert_int_equal(end_wait(&r.e[1], true, 5000), IBV_WC_LOC_PROT_ERR);
	rig_end(&r);
}

static const struct {
	enum ibv_wr_opcode opcode;
	uint32_t len;
} local[] = {
	{IBV_WR_RDMA_WRITE, SMALL},	  {IBV_WR_RDMA_WRITE, LARGE},
	{IBV_WR_RDMA_READ, SMALL},	  {IBV_WR_RDMA_READ, LARGE},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, 8}, {IBV_WR_SEND, SMALL},
};

static void check_local(struct fixture *f, enum end_memory memory)
{
	for (unsigned i = 0; i < ARRAY_LEN(local); i++) {
		struct rig r;
		struct end *a = &r.e[0], own;
		uint64_t before;

		rig_make_with(&r, f, 0, memory);
		own = *a;
		a->mr = r.mr;
		a->mem = r.mem;
		before = counter(f->host[0], NIC_C_direct_ops);
		/* The short ways, and the mapping, are for those who come
		 * again. */
		for (unsigned k = 0; k < 10000; k++) {
			if (local[i].opcode == IBV_WR_SEND)
				end_post_recv(&r.e[1], 0, LARGE);
			assert_int_equal(end_do(a, &r.e[1].card,
						local[i].opcode, 0,
						local[i].len),
					 IBV_WC_SUCCESS);
			if (memory == END_PLAIN ||
					    local[i].opcode == IBV_WR_SEND
				    ? k == 4
				    : counter(f->host[0], NIC_C_direct_ops) !=
					      before)
				break;
		}
		munmap(r.mem, HOLE_BYTES);
		if (local[i].opcode == IBV_WR_SEND)
			end_post_recv(&r.e[1], 0, LARGE);
		assert_int_equal(end_do(a, &r.e[1].card, local[i].opcode, 0,
					local[i].len),
				 IBV_WC_LOC_PROT_ERR);
		a->mr = own.mr;
		a->mem = own.mem;
		rig_end(&r);
	}
	others_go_on(f);
}

static void test_local(void **state)
{
	check_local(start(state), END_PLAIN);
}

/* The peer's memory is mapped here, and no packet is sent. */
static void test_local_direct(void **state)
{
	struct fixture *f = start(state);

	check_local(f, END_GRANT);
	assert_true(counter(f->host[0], NIC_C_direct_ops) > 0);
}

/* Rights that the pages lose, and a file that gets shorter, are the same. */
static void test_rights_and_ends(void **state)
{
	struct fixture *f = start(state);
	struct rig r;
	int fd = memfd_create("shrinks", MFD_CLOEXEC);

	assert_true(fd >= 0);
	rig_make(&r, f, 1);
	mprotect(r.mem, HOLE_BYTES, PROT_READ);
	assert_int_equal(end_do(&r.e[0], &r.card, IBV_WR_RDMA_READ, 0, SMALL),
			 IBV_WC_SUCCESS);
	assert_int_equal(end_do(&r.e[0], &r.card, IBV_WR_RDMA_WRITE, 0, SMALL),
			 IBV_WC_REM_OP_ERR);
	munmap(r.mem, HOLE_BYTES);
	rig_end(&r);
	rig_make(&r, f, 1);
	assert_int_equal(ftruncate(fd, HOLE_BYTES), 0);
	assert_true(mmap(r.mem, HOLE_BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == r.mem);
	assert_int_equal(ftruncate(fd, 4096), 0);
	rig_dereg(&r);
	rig_reg(&r, &r.e[1], r.mem);
	assert_int_equal(end_do(&r.e[0], &r.card, IBV_WR_RDMA_WRITE, 0, 4096),
			 IBV_WC_SUCCESS);
	assert_int_equal(end_do(&r.e[0], &r.card, IBV_WR_RDMA_WRITE, 4096, 8),
			 IBV_WC_REM_OP_ERR);
	munmap(r.mem, HOLE_BYTES);
	rig_end(&r);
	close(fd);
}

/* A queue that the NIC reads from memory of the program. */
static void test_chain(void **state)
{
	struct fixture *f = start(state);
	struct rig r;
	struct end e;
	struct nic_chain_attr chain = {.sq_blocks = 4};
	struct nic_qp_attr attr = {
		.type = IBV_QPT_RC,
		.cap = {.max_recv_wr = 1, .max_recv_sge = 1},
		.chain = &chain,
		.owner = &e,
	};

	rig_make(&r, f, 1);
	chain.sq_addr = (uintptr_t)r.mem;
	chain.sq_lkey = nic_mr_key(r.mr);
	e = *r.owner;
	attr.send_cq = attr.recv_cq = e.cq;
	lock_take(&e.host->lock);
	assert_int_equal(nic_qp_create(e.pd, &attr, &e.qp), 0);
	lock_drop(&e.host->lock);
	e.card.qpn = nic_qp_number(e.qp);
	end_connect(&e, &e.card);
	munmap(r.mem, HOLE_BYTES);
	lock_take(&e.host->lock);
	assert_int_equal(nic_qp_enable_send(e.qp, 1), 0);
	nic_qp_kick(e.qp);
	lock_drop(&e.host->lock);
	assert_int_equal(end_wait(&e, true, 5000), IBV_WC_LOC_PROT_ERR);
	lock_take(&e.host->lock);
	nic_qp_destroy(e.qp);
	lock_drop(&e.host->lock);
	rig_end(&r);
}

/* A thread that unmaps inside the NIC, as an allocator may, is not waited for;
 * and an end of watching is an end. */
static void test_unmap_under_the_lock(void **state)
{
	struct fixture *f = start(state);
	struct rig r;

	rig_make(&r, f, 1);
	lock_take(&f->host[1]->lock);
	munmap(r.mem, HOLE_BYTES);
	lock_drop(&f->host[1]->lock);
	assert_int_equal(end_do(&r.e[0], &r.card, IBV_WR_RDMA_WRITE, 0, SMALL),
			 IBV_WC_REM_OP_ERR);
	rig_end(&r);
	rig_make(&r, f, 1);
	rig_dereg(&r);
	lock_take(&f->host[1]->lock);
	munmap(r.mem, HOLE_BYTES);
	lock_drop(&f->host[1]->lock);
	rig_end_bare(&r);
}

/* Programs keep signals away from their threads; a fault whose signal is
 * blocked would end them. */
static void *serve_blocked(void *arg)
{
	struct fixture *f = arg;
	struct rig r;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	rig_make(&r, f, 0);
	munmap(r.mem, HOLE_BYTES);
	r.e[0].card = r.card;
	/* Both ends by this thread: it is the requester's memory. */
	NEED(end_do(&r.e[1], &r.card, IBV_WR_RDMA_WRITE, 0, SMALL) ==
	     IBV_WC_REM_OP_ERR);
	rig_end(&r);
	return NULL;
}

static void test_blocked_signals(void **state)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, serve_blocked, start(state)),
			 0);
	pthread_join(t, NULL);
}

static sigjmp_buf out;
static volatile sig_atomic_t own_faults;

static void programs_own(int sig)
{
	own_faults++;
	siglongjmp(out, 1);
}

/* What is not ours goes to whoever was there before. */
static void test_faults_of_the_program(void **state)
{
	uint8_t *mem = map_pages(NULL);

	(void)start(state);
	munmap(mem, HOLE_BYTES);
	for (int i = 0; i < 3; i++)
		if (sigsetjmp(out, 1) == 0) {
			*(volatile uint8_t *)mem = 1;
			fail_msg("no signal");
		}
	assert_int_equal(own_faults, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_remote, setup, teardown),
		cmocka_unit_test_setup_teardown(test_receive, setup, teardown),
		cmocka_unit_test_setup_teardown(test_local, setup, teardown),
		cmocka_unit_test_setup_teardown(test_local_direct, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_rights_and_ends, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_remote, setup_blind,
						teardown),
		cmocka_unit_test_setup_teardown(test_receive, setup_blind,
						teardown),
		cmocka_unit_test_setup_teardown(test_local, setup_blind,
						teardown),
		cmocka_unit_test_setup_teardown(test_local_direct, setup_blind,
						teardown),
		cmocka_unit_test_setup_teardown(test_chain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_chain, setup_blind,
						teardown),
		cmocka_unit_test_setup_teardown(test_unmap_under_the_lock,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_blocked_signals,
						setup_blind, teardown),
		cmocka_unit_test_setup_teardown(test_faults_of_the_program,
						setup, teardown),
	};

	signal(SIGSEGV, programs_own);
	NEED(fault_guard_install() == 0);
	sigaction(SIGSEGV, NULL, &ours[0]);
	sigaction(SIGBUS, NULL, &ours[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
