/* SPDX-License-Identifier: Apache-2.0 */
/* The guard of memory that can be taken away: what a fault becomes, what others
 * see of a copy meanwhile, and what it costs. */
#include "os/fault_guard.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic_op.h"
#include "os/pages.h"
#include "step_rig.h"

/* The thread sanitizer holds a lock of its own during an atomic access; one
 * that faults and is left by a jump would keep it. */
#if defined(__SANITIZE_THREAD__)
#define ATOMICS_MAY_FAULT false
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ATOMICS_MAY_FAULT false
#endif
#endif
#ifndef ATOMICS_MAY_FAULT
#define ATOMICS_MAY_FAULT true
#endif

static sigjmp_buf out;

static void before_us(int sig)
{
	siglongjmp(out, 1);
}

static void test_guard(void **state)
{
	struct atomic_op add = {.is_add = true, .swap_add = 1};
	int fd = pages_memfd("guard", 2 * 4096);
	uint8_t buf[8192], *far;
	struct fault_range r;
	uint64_t old;

	assert_true(fd >= 0);
	far = pages_map(fd, 2 * 4096, true);
	assert_non_null(far);
	/* Whoever was there before still gets what is not ours. */
	signal(SIGBUS, before_us);
	assert_int_equal(fault_guard_install(), 0);
	r = (struct fault_range){far, 2 * 4096};
	memset(buf, 3, sizeof(buf));
	assert_int_equal(fault_guard_write(&r, far, buf, 8192), 0);
	assert_int_equal(fault_guard_read(&r, far, buf, 8192), 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	/* Half of it is still there. */
	assert_int_equal(fault_guard_read(&r, far, buf, 4096), 0);
	assert_int_equal(fault_guard_read(&r, far, buf, 8192), -EFAULT);
	for (unsigned i = 0; i < 3 && ATOMICS_MAY_FAULT; i++) {
		assert_int_equal(fault_guard_read(&r, far, buf, 8192), -EFAULT);
		assert_int_equal(fault_guard_write(&r, far, buf, 8192),
				 -EFAULT);
		assert_int_equal(fault_guard_write(&r, far + 4096, buf, 1),
				 -EFAULT);
		assert_int_equal(fault_guard_atomic(&r, &add, far + 4096, &old),
				 -EFAULT);
	}
	assert_int_equal(fault_guard_atomic(&r, &add, far, &old), 0);
	assert_int_equal(old, 0x0303030303030303ull);
	/* Outside an operation, or outside the range: not ours. */
	if (sigsetjmp(out, 1) == 0) {
		(void)*(const volatile uint8_t *)(far + 4096);
		fail_msg("no signal");
	}
	r.len_bytes = 4096;
	if (sigsetjmp(out, 1) == 0) {
		(void)!fault_guard_read(&r, far, buf, 8192);
		fail_msg("no signal");
	}
	signal(SIGBUS, SIG_DFL);
	munmap(far, 2 * 4096);
	close(fd);
}

static unsigned later_calls;
static struct sigaction later_found;

/* As of a program that hands on what is not its own. */
static void later(int sig, siginfo_t *info, void *context)
{
	later_calls++;
	later_found.sa_sigaction(sig, info, context);
}

static void install_later(void)
{
	struct sigaction sa = {.sa_sigaction = later, .sa_flags = SA_SIGINFO};

	assert_int_equal(sigaction(SIGBUS, &sa, &later_found), 0);
}

/* A handler that the program installs after us gets what is its own, and not
 * what is ours: at once where memory is registered, else soon. */
static void test_later_handlers(void **state)
{
	enum {
		SOON = 5000, /* copies; more than LOOK_EVERY of landing.c */
	};
	int fd = pages_memfd("guard", 4096);
	struct fault_range r;
	uint8_t buf[8], *far;

	assert_true(fd >= 0);
	far = pages_map(fd, 4096, true);
	assert_non_null(far);
	r = (struct fault_range){far, 4096};
	for (unsigned turn = 0; turn < 2; turn++) {
		signal(SIGBUS, before_us);
		assert_int_equal(fault_guard_install(), 0);
		install_later();
		if (turn)
			assert_int_equal(fault_guard_install(), 0);
		for (unsigned i = 0; i < SOON && !turn; i++)
			assert_int_equal(fault_guard_read(&r, far, buf, 8), 0);
		assert_int_equal(ftruncate(fd, 0), 0);
		later_calls = 0;
		assert_int_equal(fault_guard_read(&r, far, buf, 8), -EFAULT);
		assert_int_equal(later_calls, 0);
		/* Not ours: it goes to the last, from there to the first. */
		if (sigsetjmp(out, 1) == 0) {
			(void)*(const volatile uint8_t *)far;
			fail_msg("no signal");
		}
		assert_int_equal(later_calls, 1);
		assert_int_equal(ftruncate(fd, 4096), 0);
	}
	signal(SIGBUS, SIG_DFL);
	munmap(far, 4096);
	close(fd);
}

/* Words that their owner writes to are read whole, wherever they go to. */
static void test_guard_words(void **state)
{
	static const uint16_t lengths[] = {2, 4, 8, 24, 63, 264, 520};
	static _Alignas(64) uint8_t near[STEP_BYTES + 4];
	struct fault_range r = {(const uint8_t *)step_words,
				sizeof(step_words)};

	if (!STEP_WORKS)
		skip();
	for (unsigned i = 0; i < ARRAY_LEN(lengths); i++)
		for (unsigned k = 0; k < 4; k++) {
			unsigned at = k & 1 ? 4 : 0, to = k & 2 ? 4 : 0;
			int err;

			step_begin();
			err = fault_guard_read(&r, r.start + at, near + to,
					       lengths[i]);
			step_end();
			assert_int_equal(err, 0);
			step_check(near + to, at, lengths[i]);
		}
}

/* And they are written whole, the short ones as well. */
static void test_guard_writes_words(void **state)
{
	static const uint16_t lengths[] = {2, 4, 8, 22, 24, 264, 512, 516};
	static _Alignas(64) uint8_t near[STEP_BYTES];
	struct fault_range r = {(const uint8_t *)step_read, sizeof(step_read)};
	uint8_t *far = (uint8_t *)step_read;

	if (!STEP_WORKS)
		skip();
	memset(near, 0xff, sizeof(near));
	for (unsigned i = 0; i < ARRAY_LEN(lengths); i++)
		for (unsigned k = 0; k < 4; k++) {
			unsigned at = k & 1 ? 4 : 0, from = k & 2 ? 4 : 0;
			int err;

			step_from = at;
			step_to = at + lengths[i];
			step_begin();
			err = fault_guard_write(&r, far + at, near + from,
						lengths[i]);
			step_end();
			assert_int_equal(err, 0);
			step_check_written(at, lengths[i]);
		}
}

/* Of this thread alone: the machine may be busy. */
static uint64_t busy_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* A generous bound, against mistakes like a system call per copy. */
static void test_guard_cost(void **state)
{
	static uint64_t far[64];
	struct fault_range r = {(uint8_t *)far, sizeof(far)};
	uint64_t near[8] = {0}, t0, t1;
	const unsigned n = 100000;

	t0 = busy_ns();
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(
			fault_guard_read(&r, far + 8 * (i % 8), near, 64), 0);
	t1 = busy_ns();
	print_message("64 bytes: %.1f ns\n", (double)(t1 - t0) / n);
	assert_true((t1 - t0) / n < 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_later_handlers),
		cmocka_unit_test(test_guard_words),
		cmocka_unit_test(test_guard_writes_words),
		cmocka_unit_test(test_guard_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
