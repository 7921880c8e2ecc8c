/* SPDX-License-Identifier: Apache-2.0 */
/* A peer process that is stopped and goes on is no dead peer, on a cable and by
 * UDP; one that is killed is. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "os_end.h"

enum {
	/* Longer than a peer that does not read was waited for once (5 s), and
	 * than eight times the timer's 67 ms. */
	STOP_MS = 6000,
	WAIT_MS = 60000,
};

/* A peer in a process of its own. */
struct far {
	struct nic_host *host;
	struct end e;
	struct end_card peer;
	pid_t pid;
};

static _Noreturn void serve(const struct os_config *cfg, int in, int out)
{
	struct nic_host *host = test_host(cfg);
	struct end_card card;
	struct end e;

	end_init(&e, host, END_PLAIN);
	memset(e.mem, 0x77, END_BYTES);
	NEED(write(out, &e.card, sizeof(e.card)) == sizeof(e.card));
	NEED(read(in, &card, sizeof(card)) == sizeof(card));
	end_connect(&e, &card);
	NEED(write(out, "r", 1) == 1);
	for (;;)
		pause();
}

static void far_open(struct far *f, const struct os_config *cfg)
{
	int to[2], from[2];
	char ready;

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (f->pid == 0) {
		/* With the test, also where an assertion ends that. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(cfg, to[0], from[1]);
	}
	close(from[1]);
	close(to[0]);
	f->host = test_host(cfg);
	end_init(&f->e, f->host, END_PLAIN);
	assert_int_equal(read(from[0], &f->peer, sizeof(f->peer)),
			 sizeof(f->peer));
	end_connect(&f->e, &f->peer);
	assert_int_equal(write(to[1], &f->e.card, sizeof(f->e.card)),
			 sizeof(f->e.card));
	assert_int_equal(read(from[0], &ready, 1), 1);
	close(to[1]);
	close(from[0]);
	assert_int_equal(end_do(&f->e, &f->peer, IBV_WR_RDMA_READ, 0, 64), 0);
}

static void far_close(struct far *f)
{
	end_release(&f->e);
	f->host->ops->close(f->host);
	(void)kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
}

/* Stops all its threads: the signal alone does not wait for them. */
static void far_stop(const struct far *f)
{
	int status;

	assert_int_equal(kill(f->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(f->pid, &status, WUNTRACED), f->pid);
	assert_true(WIFSTOPPED(status));
}

/* Loopback has many addresses. */
static void config_udp(struct os_config *cfg)
{
	test_config(cfg);
	cfg->port = OS_PORT_UDP;
	cfg->address[0] = 127;
	cfg->address[1] = (uint8_t)(getpid() >> 8 | 1);
	cfg->address[2] = (uint8_t)getpid();
	cfg->address[3] = 1;
}

static void check_goes_on(struct far *f)
{
	assert_int_equal(end_wait(&f->e, true, WAIT_MS), IBV_WC_SUCCESS);
	assert_int_equal(f->e.mem[63], 0x77);
	/* Neither direction is hurt. */
	assert_int_equal(end_do(&f->e, &f->peer, IBV_WR_RDMA_WRITE, 64, 64), 0);
}

static void a_stopped_process_is_waited_for(void **state)
{
	struct os_config cable, udp;
	struct far f[2];

	test_config(&cable);
	config_udp(&udp);
	far_open(&f[0], &cable);
	far_open(&f[1], &udp);
	for (unsigned i = 0; i < 2; i++) {
		far_stop(&f[i]);
		end_post(&f[i].e, &f[i].peer, IBV_WR_RDMA_READ, 0, 64);
	}
	test_sleep_ms(STOP_MS);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(kill(f[i].pid, SIGCONT), 0);
		check_goes_on(&f[i]);
	}
	for (unsigned i = 0; i < 2; i++)
		far_close(&f[i]);
}

/* Its socket is gone, also while nobody has read what was sent. */
static void a_dead_process_is_not_waited_for(void **state)
{
	struct os_config cfg[2];
	struct far f;

	test_config(&cfg[0]);
	config_udp(&cfg[1]);
	for (unsigned i = 0; i < 2; i++) {
		far_open(&f, &cfg[i]);
		far_stop(&f);
		end_post(&f.e, &f.peer, IBV_WR_RDMA_READ, 0, 64);
		assert_int_equal(end_wait(&f.e, true, 100), -ETIMEDOUT);
		assert_int_equal(kill(f.pid, SIGKILL), 0);
		assert_int_equal(end_wait(&f.e, true, WAIT_MS),
				 IBV_WC_RETRY_EXC_ERR);
		far_close(&f);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_process_is_waited_for),
		cmocka_unit_test(a_dead_process_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
