/* SPDX-License-Identifier: Apache-2.0 */
/* Reaching: what goes by the system, what does not, and that nothing happens
 * any more once a key, a connection or memory is gone. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/nic_limits.h"
#include "os/cable.h"
#include "os/os_priv.h"
#include "os/reach_call.h"
#include "os_end.h"

enum {
	LARGE = 8192,
	PAGE = 4096,
	RACES = 60,
};

struct fixture {
	struct nic_host *host[2];
	struct end end[2]; /* 0 reaches into the memory of 1 */
};

static void connect_ends(struct fixture *f)
{
	end_connect(&f->end[0], &f->end[1].card);
	end_connect(&f->end[1], &f->end[0].card);
}

static void fixture_init(struct fixture *f)
{
	struct os_config cfg;

	test_config(&cfg);
	for (unsigned i = 0; i < 2; i++) {
		f->host[i] = test_host(&cfg);
		end_init(&f->end[i], f->host[i], i ? END_WATCHED : END_PLAIN);
	}
	connect_ends(f);
	if (!f->end[1].watched || !reach_call_is_able())
		skip();
}

static void fixture_release(struct fixture *f)
{
	for (unsigned i = 0; i < 2; i++)
		end_release(&f->end[i]);
	for (unsigned i = 0; i < 2; i++)
		f->host[i]->ops->close(f->host[i]);
}

static uint64_t reach_ops(struct fixture *f)
{
	return nic_counter_get(f->host[0]->nic, NIC_C_reach_ops);
}

static int transfer(struct fixture *f, enum ibv_wr_opcode op, uint32_t at,
		    uint32_t len)
{
	return end_do(&f->end[0], &f->end[1].card, op, at, len);
}

/* The first requests go by frames while the key is asked for. */
static void become_reached(struct fixture *f)
{
	uint64_t before = reach_ops(f);

	for (unsigned i = 0; i < 2000 && reach_ops(f) == before; i++) {
		assert_int_equal(transfer(f, IBV_WR_RDMA_READ, 0, LARGE), 0);
		test_sleep_ms(1);
	}
	assert_true(reach_ops(f) > before);
}

/* Small requests reach until then, whatever answers were late. */
static void set_until(struct fixture *f, uint64_t until_ns)
{
	struct os_host *h = host_of(f->host[0]);

	lock_take(&h->base.lock);
	h->reach.strikes = 0;
	h->reach.until_ns = until_ns;
	lock_drop(&h->base.lock);
}

static void test_operations(void **state)
{
	struct fixture f;
	struct end *a = &f.end[0], *b = &f.end[1];
	uint64_t before, bytes, n = 0;

	fixture_init(&f);
	become_reached(&f);
	before = reach_ops(&f);
	bytes = nic_counter_get(f.host[0]->nic, NIC_C_reach_bytes);
	for (uint32_t len = NIC_REACH_LARGE; len < 20000; len += 1237, n++) {
		uint32_t at = len % 13 * 8;

		for (uint32_t i = 0; i < len; i++)
			a->mem[at + i] = (uint8_t)(i * 5 + len);
		assert_int_equal(transfer(&f, IBV_WR_RDMA_WRITE, at, len), 0);
		assert_memory_equal(a->mem + at, b->mem + at, len);
		memset(a->mem, 0, END_BYTES);
		assert_int_equal(transfer(&f, IBV_WR_RDMA_READ, at, len), 0);
		assert_memory_equal(a->mem + at, b->mem + at, len);
		bytes += 2 * len;
	}
	assert_int_equal(reach_ops(&f), before + 2 * n);
	assert_int_equal(nic_counter_get(f.host[0]->nic, NIC_C_reach_bytes),
			 bytes);
	assert_int_equal(test_stats(f.host[1]).reach_grants, 1);
	/* Atomics are the owner's to execute, and it answers small requests. */
	b->mem[4096] = 1;
	assert_int_equal(transfer(&f, IBV_WR_ATOMIC_FETCH_AND_ADD, 4096, 8), 0);
	assert_int_equal(*(_Atomic uint8_t *)&b->mem[4096], 2);
	set_until(&f, 0);
	assert_int_equal(transfer(&f, IBV_WR_RDMA_WRITE, 0, 64), 0);
	/* So it does a page, as long as it is prompt. */
	set_until(&f, 0);
	assert_int_equal(transfer(&f, IBV_WR_RDMA_READ, 0, PAGE), 0);
	assert_int_equal(reach_ops(&f), before + 2 * n);
	set_until(&f, UINT64_MAX);
	assert_int_equal(transfer(&f, IBV_WR_RDMA_READ, 0, PAGE), 0);
	assert_int_equal(reach_ops(&f), ++before + 2 * n);
	set_until(&f, 0);
	/* Words could be torn where the two sides do not begin alike. */
	end_post(a,
		 &(struct end_card){
			 b->card.qpn, b->card.rkey, b->card.addr - 1, {0}},
		 IBV_WR_RDMA_READ, 1, LARGE);
	assert_int_equal(end_wait(a, true, 2000), 0);
	assert_memory_equal(a->mem + 1, b->mem, LARGE);
	assert_int_equal(transfer(&f, IBV_WR_RDMA_WRITE, 3, LARGE), 0);
	assert_int_equal(reach_ops(&f), before + 2 * n);
	/* Out of bounds goes to the owner, to be refused. */
	end_post(a,
		 &(struct end_card){b->card.qpn,
				    b->card.rkey,
				    b->card.addr + END_BYTES - LARGE + 1,
				    {0}},
		 IBV_WR_RDMA_READ, 0, LARGE);
	assert_int_equal(end_wait(a, true, 2000), IBV_WC_REM_ACCESS_ERR);
	fixture_release(&f);
}

static void note_late(struct fixture *f)
{
	struct os_host *h = host_of(f->host[0]);

	lock_take(&h->base.lock);
	reach_note_late(h, host_now(h));
	lock_drop(&h->base.lock);
}

/* Two late answers in a row, and the peer is not waited for. */
static void test_small_after_late_answers(void **state)
{
	struct fixture f;
	uint64_t before;

	fixture_init(&f);
	become_reached(&f);
	set_until(&f, 0);
	note_late(&f);
	note_late(&f);
	assert_true(host_of(f.host[0])->reach.until_ns > 0);
	set_until(&f, UINT64_MAX);
	before = reach_ops(&f);
	for (uint32_t len = 1; len <= 40; len++) {
		memset(f.end[0].mem, (int)len, 64);
		memset(f.end[1].mem, 0, 64);
		assert_int_equal(transfer(&f, IBV_WR_RDMA_WRITE, 8, len), 0);
		assert_memory_equal(f.end[0].mem + 8, f.end[1].mem + 8, len);
		assert_int_equal(f.end[1].mem[8 + len], 0);
	}
	assert_int_equal(reach_ops(&f), before + 40);
	fixture_release(&f);
}

/* In the queue they do not begin at a word. Most programs that poll memory send
 * their few bytes so. */
static void test_inline(void **state)
{
	struct fixture f;
	struct end *a = &f.end[0], *b = &f.end[1];
	uint64_t before;

	fixture_init(&f);
	become_reached(&f);
	set_until(&f, UINT64_MAX);
	before = reach_ops(&f);
	for (uint32_t len = 1; len <= 40; len++) {
		memset(a->mem, (int)len, 64);
		memset(b->mem, 0, 64);
		end_post_flags(a, &b->card, IBV_WR_RDMA_WRITE, 8, len,
			       IBV_SEND_INLINE);
		assert_int_equal(end_wait(a, true, 2000), 0);
		assert_memory_equal(a->mem + 8, b->mem + 8, len);
		assert_int_equal(b->mem[8 + len], 0);
	}
	assert_int_equal(reach_ops(&f), before + 40);
	fixture_release(&f);
}

static void test_dereg_takes_back(void **state)
{
	struct fixture f;
	struct end *b = &f.end[1];

	fixture_init(&f);
	become_reached(&f);
	lock_take(&b->host->lock);
	assert_int_equal(nic_mr_dereg(b->mr), 0);
	lock_drop(&b->host->lock);
	b->mr = NULL;
	assert_int_equal(test_stats(f.host[1]).reach_revokes, 1);
	memset(f.end[0].mem, 7, LARGE);
	assert_int_equal(transfer(&f, IBV_WR_RDMA_WRITE, 0, LARGE),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(b->mem[0], 0);
	fixture_release(&f);
}

static void test_connection_ends(void **state)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct fixture f;
	uint64_t before;

	fixture_init(&f);
	become_reached(&f);
	lock_take(&f.host[1]->lock);
	assert_int_equal(nic_qp_modify(f.end[1].qp, &error, IBV_QP_STATE), 0);
	lock_drop(&f.host[1]->lock);
	before = reach_ops(&f);
	memset(f.end[0].mem, 7, LARGE);
	end_post(&f.end[0], &f.end[1].card, IBV_WR_RDMA_WRITE, 0, LARGE);
	assert_int_equal(end_wait(&f.end[0], true, 20000),
			 IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(reach_ops(&f), before);
	assert_int_equal(f.end[1].mem[0], 0);
	fixture_release(&f);
}

/* What is mapped where memory was is none of the key's business. */
static void test_unmapped(void **state)
{
	struct fixture f;
	struct end *b = &f.end[1];
	void *p;

	fixture_init(&f);
	become_reached(&f);
	memset(f.end[0].mem, 7, LARGE);
	assert_int_equal(munmap(b->mem, LARGE), 0);
	p = mmap(b->mem, LARGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_ptr_equal(p, b->mem);
	assert_int_equal(transfer(&f, IBV_WR_RDMA_WRITE, 0, LARGE),
			 IBV_WC_REM_OP_ERR);
	assert_int_equal(b->mem[0], 0);
	fixture_release(&f);
}

static void *unmap_first(void *arg)
{
	struct end *b = arg;

	return munmap(b->mem, LARGE) ? NULL : b->mem;
}

/* Who unmaps does not wait for the NIC's lock for ever, and still nobody
 * begins to reach, nor is given anything to reach, once it goes on. */
static void test_unmapped_without_the_lock(void **state)
{
	struct os_host *owner;
	struct fixture f;
	pthread_t thread;
	uint32_t epoch;
	void *p;

	fixture_init(&f);
	become_reached(&f);
	owner = host_of(f.host[1]);
	epoch = bell_page_epoch(owner->bell.page);
	lock_take(&owner->base.lock);
	assert_int_equal(pthread_create(&thread, NULL, unmap_first, &f.end[1]),
			 0);
	pthread_join(thread, &p);
	assert_ptr_equal(p, f.end[1].mem);
	assert_int_not_equal(bell_page_epoch(owner->bell.page), epoch);
	assert_true(owner->reach.is_barred);
	lock_drop(&owner->base.lock);
	assert_int_equal(transfer(&f, IBV_WR_RDMA_WRITE, 0, LARGE),
			 IBV_WC_REM_OP_ERR);
	for (unsigned i = 0; i < 2000 && owner->reach.is_barred; i++)
		test_sleep_ms(1);
	assert_false(owner->reach.is_barred);
	p = mmap(p, LARGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_ptr_equal(p, f.end[1].mem); /* for who frees it */
	fixture_release(&f);
}

/* ---- races --------------------------------------------------------------- */

static void *write_on(void *arg)
{
	struct fixture *f = arg;

	/* Until it is refused. */
	while (transfer(f, IBV_WR_RDMA_WRITE, 0, END_BYTES) == 0)
		;
	return NULL;
}

/* When a key has ended, nothing is written by it any more. */
static void test_dereg_under_writes(void **state)
{
	for (unsigned i = 0; i < RACES; i++) {
		struct fixture f;
		struct end *b = &f.end[1];
		pthread_t thread;

		fixture_init(&f);
		become_reached(&f);
		memset(f.end[0].mem, 7, END_BYTES);
		assert_int_equal(pthread_create(&thread, NULL, write_on, &f),
				 0);
		while (*(_Atomic uint8_t *)&b->mem[END_BYTES - 1] != 7)
			sched_yield();
		lock_take(&b->host->lock);
		assert_int_equal(nic_mr_dereg(b->mr), 0);
		lock_drop(&b->host->lock);
		b->mr = NULL;
		memset(b->mem, 1, END_BYTES);
		pthread_join(thread, NULL);
		for (uint32_t k = 0; k < END_BYTES; k++)
			assert_int_equal(b->mem[k], 1);
		fixture_release(&f);
	}
}

static struct cable *cable_of_user(struct fixture *f)
{
	struct cable *c = host_of(f->host[1])->cables;

	while (c && !c->has_reach)
		c = c->next;
	assert_non_null(c);
	return c;
}

static void *end_reach_later(void *arg)
{
	struct os_host *h = arg;

	test_sleep_ms(30);
	bell_reach_end(&h->bell);
	return NULL;
}

/* Who reaches is waited for while it may run, and not while it is stopped. */
static void test_waits_for_who_runs(void **state)
{
	struct fixture f;
	struct os_host *user;
	pthread_t thread;
	uint64_t reaches;
	pid_t pid;

	fixture_init(&f);
	become_reached(&f);
	user = host_of(f.host[0]);
	bell_reach_begin(&user->bell);
	reaches = bell_page_reaches(user->bell.page);
	assert_int_equal(pthread_create(&thread, NULL, end_reach_later, user),
			 0);
	lock_take(&f.host[1]->lock);
	reach_revoke(host_of(f.host[1]));
	lock_drop(&f.host[1]->lock);
	assert_true(bell_page_reaches(user->bell.page) != reaches);
	pthread_join(thread, NULL);

	become_reached(&f);
	pid = fork();
	if (pid == 0) {
		(void)raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	bell_reach_begin(&user->bell);
	lock_take(&f.host[1]->lock);
	cable_of_user(&f)->pid = pid;
	reach_revoke(host_of(f.host[1]));
	lock_drop(&f.host[1]->lock);
	bell_reach_end(&user->bell);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	fixture_release(&f);
}

/* The word changes although nobody tells it. */
static void test_death_is_seen(void **state)
{
	struct bell b;
	uint32_t life;
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(bell_init(&b), 0);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		byte = bell_live(&b);
		(void)!write(ready[1], &byte, 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 1);
	life = bell_page_life(b.page);
	assert_int_equal(life, pid);
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(bell_page_life(b.page) != life);
	assert_true(bell_page_life(b.page) & BELL_LIFE_DIED);
	close(ready[0]);
	close(ready[1]);
	bell_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_small_after_late_answers),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_dereg_takes_back),
		cmocka_unit_test(test_connection_ends),
		cmocka_unit_test(test_unmapped),
		cmocka_unit_test(test_unmapped_without_the_lock),
		cmocka_unit_test(test_dereg_under_writes),
		cmocka_unit_test(test_waits_for_who_runs),
		cmocka_unit_test(test_death_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
