/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory whose owner writes to it after every single instruction of the test,
 * to see whether a copy of it has words that are half old and half new. By
 * chance that takes hours to happen.
 */
#ifndef AQ_TEST_STEP_RIG_H
#define AQ_TEST_STEP_RIG_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include "base/base.h"

/* The thread sanitizer keeps signals for later. */
#if !defined(__x86_64__) || defined(__SANITIZE_THREAD__)
#define STEP_WORKS false
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STEP_WORKS false
#endif
#endif
#ifndef STEP_WORKS
#define STEP_WORKS true
#endif

enum {
	STEP_BYTES = 528,
	STEP_TRAP_FLAG = 0x100, /* of x86: a signal after each instruction */
};

/* All zeros, and all ones, in turn. */
static uint64_t step_words[STEP_BYTES / 8];
static volatile sig_atomic_t step_count, step_goes_on;
/* The other way round: somebody reads bytes [step_from, step_to) of these after
 * every instruction, and counts the words that are half written. */
static uint64_t step_read[STEP_BYTES / 8];
static size_t step_from, step_to;
static volatile sig_atomic_t step_torn;
/* And the last byte of what is written from the first one on, if it is set:
 * counts when that is there before another one. */
static const uint8_t *step_last;
static volatile sig_atomic_t step_early;

/* Words of two, four and eight bytes among `len` bytes, the first of which is
 * at an address `at`, that are neither all zeros nor all ones. */
static unsigned step_count_torn(const uint8_t *p, size_t at, size_t len)
{
	unsigned torn = 0;

	for (size_t size = 2; size <= 8; size *= 2)
		for (size_t i = (at + size - 1) / size * size;
		     i + size <= at + len; i += size) {
			const uint8_t *w = p + i - at;

			for (size_t k = 0; k < size; k++)
				if (w[k] != w[0] || (w[k] && w[k] != 0xff)) {
					torn++;
					break;
				}
		}
	return torn;
}

static void step_taken(int sig, siginfo_t *info, void *context)
{
#if defined(__x86_64__)
	ucontext_t *uc = context;

	if (step_goes_on)
		uc->uc_mcontext.gregs[REG_EFL] |= STEP_TRAP_FLAG;
	else
		uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)STEP_TRAP_FLAG;
#endif
	step_count++;
	for (unsigned i = 0; i < ARRAY_LEN(step_words); i++)
		step_words[i] = ~step_words[i];
	if (step_count_torn((const uint8_t *)step_read + step_from, step_from,
			    step_to - step_from))
		step_torn = step_torn + 1;
	for (const uint8_t *p = (const uint8_t *)step_read;
	     step_last && *step_last && p < step_last; p++)
		if (!*p)
			step_early = step_early + 1;
}

static inline void step_begin(void)
{
	struct sigaction sa = {.sa_sigaction = step_taken,
			       .sa_flags = SA_SIGINFO};

	sigemptyset(&sa.sa_mask);
	assert_int_equal(sigaction(SIGTRAP, &sa, NULL), 0);
	memset(step_words, 0, sizeof(step_words));
	memset(step_read, 0, sizeof(step_read));
	step_count = step_torn = step_early = 0;
	step_goes_on = 1;
	assert_int_equal(raise(SIGTRAP), 0);
}

static inline void step_end(void)
{
	step_goes_on = 0;
}

/* A copy of `len` bytes from `at` on: words that are in it as a whole are
 * whole. */
static inline void step_check(const uint8_t *copy, size_t at, size_t len)
{
	assert_true(step_count > 4);
	if (step_count_torn(copy, at, len))
		fail_msg("%zu bytes from %zu: a word is half old", len, at);
}

/* What writes `len` bytes at `at` of step_read, and has ended: nobody saw a
 * word half written. */
static inline void step_check_written(size_t at, size_t len)
{
	assert_true(step_count > 4);
	if (step_torn)
		fail_msg("%zu bytes to %zu: a word was half written", len, at);
	for (size_t i = 0; i < STEP_BYTES; i++)
		assert_int_equal(((const uint8_t *)step_read)[i],
				 i >= at && i < at + len ? 0xff : 0);
	step_from = step_to = 0;
}

#endif
