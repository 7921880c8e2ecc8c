/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts, cables and the NIC thread: two NICs in one process and in two, death
 * of a peer, sleep and waking, forks, captures. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/thread.h"
#include "os/cable.h"
#include "os/os_priv.h"
#include "os_end.h"

struct fixture {
	struct os_config cfg;
	struct nic_host *host[2];
	struct end end[2];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	test_config(&f->cfg);
	for (unsigned i = 0; i < 2; i++) {
		f->host[i] = test_host(&f->cfg);
		end_init(&f->end[i], f->host[i], END_PLAIN);
	}
	end_connect(&f->end[0], &f->end[1].card);
	end_connect(&f->end[1], &f->end[0].card);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 2; i++) {
		end_release(&f->end[i]);
		f->host[i]->ops->close(f->host[i]);
	}
	assert_int_equal(test_sockets_of(f->cfg.rack), 0);
	free(f);
	return 0;
}

static void test_all_operations(void **state)
{
	struct fixture *f = *state;
	struct end *a = &f->end[0], *b = &f->end[1];

	memset(a->mem, 0x5a, 5000);
	assert_int_equal(end_do(a, &b->card, IBV_WR_RDMA_WRITE, 0, 5000), 0);
	end_sync(b);
	assert_memory_equal(a->mem, b->mem, 5000);
	memset(b->mem + 8192, 0xa5, 9000);
	end_sync(b);
	assert_int_equal(end_do(a, &b->card, IBV_WR_RDMA_READ, 8192, 9000), 0);
	assert_memory_equal(a->mem + 8192, b->mem + 8192, 9000);
	assert_int_equal(
		end_do(a, &b->card, IBV_WR_ATOMIC_FETCH_AND_ADD, 40000, 8), 0);
	end_sync(b);
	assert_int_equal(b->mem[40000], 1);
	end_post_recv(b, 50000, 100);
	assert_int_equal(end_do(a, &b->card, IBV_WR_SEND, 0, 100), 0);
	assert_int_equal(end_wait(b, true, 1000), 0);
	assert_int_equal(b->mem[50000], 0x5a);
}

/* The NIC threads do all the work, on both sides. */
static void test_nobody_drives(void **state)
{
	struct fixture *f = *state;
	struct end *a = &f->end[0], *b = &f->end[1];

	for (unsigned i = 0; i < 20; i++) {
		if (i % 5 == 4)
			test_sleep_ms(150); /* both NIC threads are asleep */
		end_post(a, &b->card, IBV_WR_RDMA_READ, 0, 64);
		assert_int_equal(end_wait(a, false, 2000), 0);
	}
	assert_true(test_stats(f->host[0]).engine_sleeps > 0);
}

/* The cable to a peer that has introduced itself. */
static struct cable *known_cable(struct os_host *h)
{
	struct cable *c = NULL;

	for (unsigned i = 0; i < 10000 && !c; i++) {
		lock_take(&h->base.lock);
		for (c = h->cables; c && !c->peer.page; c = c->next)
			;
		lock_drop(&h->base.lock);
		test_sleep_ms(1);
	}
	assert_non_null(c);
	return c;
}

struct dozer {
	struct end *end;
	unsigned count;
	atomic_uint heard;
};

static void *doze_for_all(void *arg)
{
	struct dozer *d = arg;
	struct nic_host *host = d->end->host;

	for (unsigned i = 0; i < d->count; i++) {
		while (!nic_cq_peek(d->end->cq))
			if (!host->ops->doze(host, 60000000000ull))
				sched_yield(); /* the NIC thread has the lock */
		nic_cq_pop(d->end->cq);
		atomic_fetch_add_explicit(&d->heard, 1, memory_order_relaxed);
	}
	NEED(host->ops->doze(host, 0));
	return NULL;
}

/* Frames end the sleep of a thread that has nothing else to do, which would be
 * a minute each; then the NIC thread hears them again. */
static void test_dozer(void **state)
{
	struct fixture *f = *state;
	struct end *a = &f->end[0], *b = &f->end[1];
	struct dozer d = {.end = b, .count = 20};
	pthread_t thread;

	/* Both know each other. */
	assert_int_equal(end_do(a, &b->card, IBV_WR_RDMA_WRITE, 0, 64), 0);
	(void)known_cable(host_of(f->host[1]));
	for (unsigned i = 0; i < d.count; i++)
		end_post_recv(b, 64 * i, 64);
	atomic_init(&d.heard, 0);
	assert_int_equal(thread_start(&thread, doze_for_all, &d), 0);
	for (unsigned i = 0; i < d.count; i++) {
		test_sleep_ms(i % 5 == 4 ? 150 : 1);
		assert_int_equal(end_do(a, &b->card, IBV_WR_SEND, 0, 64), 0);
		while (atomic_load_explicit(&d.heard, memory_order_relaxed) <=
		       i)
			test_sleep_ms(1);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(test_stats(f->host[1]).dozes > 0);
	for (unsigned i = 0; i < 3; i++) {
		test_sleep_ms(50);
		end_post(a, &b->card, IBV_WR_RDMA_READ, 0, 64);
		assert_int_equal(end_wait(a, false, 2000), 0);
	}
}

static void test_one_cable_per_pair(void **state)
{
	struct fixture *f = *state;
	struct end more[2];
	struct os_stats s[2];

	assert_int_equal(
		end_do(&f->end[0], &f->end[1].card, IBV_WR_RDMA_READ, 0, 8), 0);
	for (unsigned i = 0; i < 2; i++)
		end_init(&more[i], f->host[i], END_PLAIN);
	s[0] = test_stats(f->host[0]);
	s[1] = test_stats(f->host[1]);
	end_connect(&more[0], &more[1].card);
	end_connect(&more[1], &more[0].card);
	assert_int_equal(
		end_do(&more[0], &more[1].card, IBV_WR_RDMA_READ, 0, 8), 0);
	assert_int_equal(test_stats(f->host[0]).connects, s[0].connects);
	assert_int_equal(test_stats(f->host[1]).connects, s[1].connects);
	end_release(&more[0]);
	end_release(&more[1]);
}

/* A peer whose page says at every frame that it has slept again. */
static void test_wakes_of_a_turn(void **state)
{
	enum {
		FRAMES = 50,
	};
	struct fixture *f = *state;
	struct os_host *h = host_of(f->host[0]), *peer = host_of(f->host[1]);
	uint64_t sent, put_off;
	struct cable *c;

	assert_int_equal(
		end_do(&f->end[0], &f->end[1].card, IBV_WR_RDMA_WRITE, 0, 64),
		0);
	c = known_cable(h);
	/* Nobody else says anything meanwhile. */
	lock_take(&h->base.lock);
	lock_take(&peer->base.lock);
	sent = h->stats->wakes_sent;
	put_off = h->stats->wakes_put_off;
	h->in_turn = true;
	for (unsigned i = 0; i < FRAMES; i++) {
		uint8_t *frame = c->path.port->tx_begin(&c->path, 64);

		NEED(frame);
		memset(frame, 0, 64); /* which nobody understands */
		bell_sleep(&peer->bell, false);
		c->path.port->tx_end(&c->path, 64);
	}
	h->in_turn = false;
	cable_settle(h);
	sent = h->stats->wakes_sent - sent;
	put_off = h->stats->wakes_put_off - put_off;
	bell_wake(&peer->bell);
	lock_drop(&peer->base.lock);
	lock_drop(&h->base.lock);
	assert_int_equal(sent, 2);
	assert_int_equal(put_off, FRAMES - 1);
	assert_int_equal(
		end_do(&f->end[1], &f->end[0].card, IBV_WR_RDMA_READ, 0, 64),
		0);
}

static void test_loop_to_self(void **state)
{
	struct fixture *f = *state;
	struct end e[2];

	end_init(&e[0], f->host[0], END_PLAIN);
	end_init(&e[1], f->host[0], END_PLAIN);
	end_connect(&e[0], &e[1].card);
	end_connect(&e[1], &e[0].card);
	e[1].mem[77] = 42;
	end_sync(&e[1]);
	assert_int_equal(end_do(&e[0], &e[1].card, IBV_WR_RDMA_READ, 0, 30000),
			 0);
	assert_int_equal(e[0].mem[77], 42);
	test_sleep_ms(150);
	end_post(&e[0], &e[1].card, IBV_WR_RDMA_WRITE, 0, 100);
	assert_int_equal(end_wait(&e[0], false, 2000), 0);
	end_release(&e[0]);
	end_release(&e[1]);
}

/* Nobody at that slot, at that address: retries run out, nothing hangs. */
static void test_void(void **state)
{
	struct fixture *f = *state;
	struct end e;
	struct end_card nowhere = f->end[1].card;

	end_init(&e, f->host[0], END_PLAIN);
	nowhere.gid[15] = 77;
	end_connect(&e, &nowhere);
	end_post(&e, &nowhere, IBV_WR_RDMA_READ, 0, 8);
	assert_int_equal(end_wait(&e, false, 8000), IBV_WC_RETRY_EXC_ERR);
	end_release(&e);
}

/* More data than the ring holds, both ways at once. */
static void test_full_ring(void **state)
{
	struct fixture *f = *state;
	struct end *a = &f->end[0], *b = &f->end[1];

	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 32; i++) {
			end_post(a, &b->card, IBV_WR_RDMA_WRITE, 0, 60000);
			end_post(b, &a->card, IBV_WR_RDMA_WRITE, 0, 60000);
		}
		for (unsigned i = 0; i < 32; i++) {
			assert_int_equal(end_wait(a, true, 5000), 0);
			assert_int_equal(end_wait(b, true, 5000), 0);
		}
	}
}

static void test_idle_cost(void **state)
{
	struct rusage before, after;
	int64_t us;

	test_sleep_ms(300);
	getrusage(RUSAGE_SELF, &before);
	test_sleep_ms(1000);
	getrusage(RUSAGE_SELF, &after);
	us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec +
	      after.ru_stime.tv_sec - before.ru_stime.tv_sec) *
		     1000000 +
	     (after.ru_utime.tv_usec - before.ru_utime.tv_usec +
	      after.ru_stime.tv_usec - before.ru_stime.tv_usec);
	/* Two hosts, two connections: mostly under 1 % of a core together. It
	 * is a time, so the bound only tells a thread that spins. */
	assert_true(us < 150000);
}

/* ---- two processes ------------------------------------------------------ */

static void child_serve(const struct os_config *cfg, int in, int out)
{
	struct nic_host *host = test_host(cfg);
	struct end_card peer;
	struct end e;

	end_init(&e, host, END_PLAIN);
	memset(e.mem, 0x77, END_BYTES);
	NEED(write(out, &e.card, sizeof(e.card)) == sizeof(e.card));
	NEED(read(in, &peer, sizeof(peer)) == sizeof(peer));
	end_connect(&e, &peer);
	NEED(write(out, "", 1) == 1);
	/* A passive target: the application does nothing at all. */
	for (;;)
		pause();
}

static pid_t spawn(const struct os_config *cfg, struct end *e,
		   struct end_card *peer)
{
	int to[2], from[2];
	char ready;
	pid_t pid;

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		child_serve(cfg, to[0], from[1]);
		_exit(0);
	}
	/* A child that dies is the end of its pipe, not of our patience. */
	close(from[1]);
	close(to[0]);
	assert_int_equal(read(from[0], peer, sizeof(*peer)), sizeof(*peer));
	end_connect(e, peer);
	assert_int_equal(write(to[1], &e->card, sizeof(e->card)),
			 sizeof(e->card));
	assert_int_equal(read(from[0], &ready, 1), 1);
	close(to[1]);
	close(from[0]);
	return pid;
}

static void test_two_processes_and_death(void **state)
{
	struct os_config cfg;
	struct nic_host *host;
	struct end_card peer;
	struct end e;
	pid_t pid;

	test_config(&cfg);
	host = test_host(&cfg);
	end_init(&e, host, END_PLAIN);
	pid = spawn(&cfg, &e, &peer);
	assert_int_equal(end_do(&e, &peer, IBV_WR_RDMA_READ, 0, 20000), 0);
	assert_int_equal(e.mem[19999], 0x77);
	/* It sleeps deeply, and is woken. */
	test_sleep_ms(300);
	assert_int_equal(end_do(&e, &peer, IBV_WR_RDMA_READ, 0, 64), 0);

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* The death is noticed long before the retries run out. */
	end_post(&e, &peer, IBV_WR_RDMA_READ, 0, 64);
	assert_int_not_equal(end_wait(&e, false, 1000), 0);
	assert_true(test_stats(host).hangups > 0);
	end_release(&e);
	host->ops->close(host);
	assert_int_equal(test_sockets_of(cfg.rack), 0);
}

static void test_pcap(void **state)
{
	char path[] = "/tmp/aquifer-test-XXXXXX";
	int fd = mkstemp(path);
	uint32_t magic = 0;
	struct os_config cfg;
	struct nic_host *host[2];
	struct end e[2];

	assert_true(fd >= 0);
	test_config(&cfg);
	host[1] = test_host(&cfg);
	cfg.pcap_path = path;
	host[0] = test_host(&cfg);
	for (unsigned i = 0; i < 2; i++)
		end_init(&e[i], host[i], END_PLAIN);
	end_connect(&e[0], &e[1].card);
	end_connect(&e[1], &e[0].card);
	assert_int_equal(end_do(&e[0], &e[1].card, IBV_WR_RDMA_READ, 0, 64), 0);
	assert_int_equal(pread(fd, &magic, 4, 0), 4);
	assert_int_equal(magic, 0xa1b23c4d);
	/* File header, then a request of 74 bytes and its answer of 126. */
	assert_int_equal(lseek(fd, 0, SEEK_END), 24 + 16 + 74 + 16 + 126);
	for (unsigned i = 0; i < 2; i++) {
		end_release(&e[i]);
		host[i]->ops->close(host[i]);
	}
	close(fd);
	unlink(path);
}

static void test_bad_config(void **state)
{
	struct nic_host *host;
	struct os_config cfg;

	test_config(&cfg);
	cfg.ring_bytes = 100000;
	assert_int_equal(os_host_open(&cfg, &host), -EINVAL);
	test_config(&cfg);
	cfg.rack[0] = '\0';
	assert_int_equal(os_host_open(&cfg, &host), -EINVAL);
	test_config(&cfg);
	cfg.pcap_path = "/nonexistent/file";
	assert_int_equal(os_host_open(&cfg, &host), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_operations, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_nobody_drives, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_dozer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_cable_per_pair, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_wakes_of_a_turn, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_loop_to_self, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_void, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_ring, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_idle_cost, setup,
						teardown),
		cmocka_unit_test(test_two_processes_and_death),
		cmocka_unit_test(test_pcap),
		cmocka_unit_test(test_bad_config),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
