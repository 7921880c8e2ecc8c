/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payload that its owner writes to while a frame is built: no word of it is
 * half old and half new. Where that can be, it takes hours to happen by chance,
 * so the owner here writes after every single instruction of the copy.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include "live.h"
#include "test_wire_pkt.h"
#include "wire_stamp.h"

enum {
	LEN_MAX = 520,
	WORDS = LEN_MAX / 8 + 1,
	TRAP_FLAG = 0x100, /* of x86: a signal after each instruction */
};

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
enum {
	CAN_STEP = 1
};
#else
enum {
	CAN_STEP = 0
}; /* the thread sanitizer keeps signals for later */
#endif

static uint64_t words[WORDS];
/* As the rings of a cable have them: two bytes before each frame. */
static _Alignas(64) uint8_t room[2 + WIRE_FRAME_MAX];
static uint8_t *const frame = room + 2;
static volatile sig_atomic_t steps, is_stepping;

static void on_step(int sig, siginfo_t *info, void *context)
{
#if defined(__x86_64__)
	ucontext_t *uc = context;

	if (is_stepping)
		uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
	else
		uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
#endif
	steps++;
	for (unsigned i = 0; i < WORDS; i++)
		words[i] = ~words[i];
}

static void step(void)
{
	memset(words, 0, sizeof(words));
	steps = 0;
	is_stepping = 1;
	assert_int_equal(raise(SIGTRAP), 0);
}

static void stop(void)
{
	is_stepping = 0;
}

/* Whatever is a word of `words` and was copied as a whole is whole. */
static void check_words(const uint8_t *copy, size_t at, size_t len)
{
	assert_true(steps > 4);
	for (size_t i = (at + 7) / 8 * 8; i + 8 <= at + len; i += 8) {
		uint64_t w;

		memcpy(&w, copy + i - at, 8);
		if (w != 0 && ~w != 0)
			fail_msg(
				"%zu bytes from %zu: the word at %zu is %016lx",
				len, at, i, (unsigned long)w);
	}
}

/* Up to the length from which libraries copy in aligned steps. */
static const uint16_t lengths[] = {8, 12, 24, 64, 224, LEN_MAX};
static const uint8_t offsets[] = {0, 4};

static void check_frame(uint64_t *seed, uint8_t opcode, size_t at, uint32_t len,
			bool is_stamped)
{
	uint8_t *payload = (uint8_t *)words + at;
	struct wire_pkt pkt, parsed;
	struct wire_stamp s;
	struct wire_vary v;
	size_t n;

	test_random_pkt(seed, opcode, true, payload, len, &pkt);
	if (is_stamped && !wire_stamp_make(&s, &pkt))
		return;
	v = wire_vary_of(&pkt);
	step();
	n = is_stamped ? wire_stamp_build(&s, &v, frame)
		       : wire_build(&pkt, frame);
	stop();
	assert_int_equal(wire_parse(frame, n, &parsed), WIRE_OK);
	assert_int_equal(parsed.payload_len, len);
	check_words(parsed.payload, at, len);
}

static void test_frames(void **state)
{
	static const uint8_t opcodes[] = {WIRE_RC_READ_RESP_ONLY,
					  WIRE_RC_WRITE_ONLY};
	uint64_t seed = 7;

	if (!CAN_STEP)
		skip();
	for (unsigned i = 0; i < ARRAY_LEN(lengths); i++)
		for (unsigned k = 0; k < ARRAY_LEN(offsets); k++)
			for (unsigned o = 0; o < 2; o++) {
				check_frame(&seed, opcodes[o], offsets[k],
					    lengths[i], true);
				check_frame(&seed, opcodes[o], offsets[k],
					    lengths[i], false);
			}
}

/* Shorter words, too. */
static void test_short_words(void **state)
{
	uint32_t four;
	uint16_t two;

	if (!CAN_STEP)
		skip();
	for (unsigned at = 0; at <= 6; at += 2) {
		step();
		live_move(frame + 1, (uint8_t *)words + at, 2);
		stop();
		memcpy(&two, frame + 1, 2);
		assert_true(two == 0 || two == 0xffff);
	}
	for (unsigned at = 0; at <= 4; at += 4) {
		step();
		live_move(frame + 1, (uint8_t *)words + at, 4);
		stop();
		memcpy(&four, frame + 1, 4);
		assert_true(four == 0 || ~four == 0);
	}
}

/* Every byte, and none besides; overlapping as well. */
static void test_bytes(void **state)
{
	uint8_t from[256], to[256], want[256];
	uint64_t seed = 9;

	test_random_bytes(&seed, from, sizeof(from));
	for (unsigned len = 0; len <= 200; len++)
		for (unsigned at = 0; at < 16; at++) {
			memset(to, 0x55, sizeof(to));
			memset(want, 0x55, sizeof(want));
			memcpy(want + 3, from + at, len);
			live_move(to + 3, from + at, len);
			assert_memory_equal(to, want, sizeof(to));
			memcpy(to, from, sizeof(to));
			memcpy(want, from, sizeof(want));
			memmove(want + 8, want + at, len);
			live_move(to + 8, to + at, len);
			assert_memory_equal(to, want, sizeof(to));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_short_words),
		cmocka_unit_test(test_bytes),
	};
	struct sigaction sa = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

	sigemptyset(&sa.sa_mask);
	if (sigaction(SIGTRAP, &sa, NULL))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
