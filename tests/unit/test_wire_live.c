/* SPDX-License-Identifier: Apache-2.0 */
/* Payload that its owner writes to while a frame is built: no word of it is
 * half old and half new. */
#include "step_rig.h"

#include "base/live.h"
#include "test_wire_pkt.h"
#include "wire/wire_stamp.h"

/* As the rings of a cable have them: two bytes before each frame. */
static _Alignas(64) uint8_t room[2 + WIRE_FRAME_MAX];
static uint8_t *const frame = room + 2;

/* Up to the length from which libraries copy in aligned steps. */
static const uint16_t lengths[] = {8, 12, 64, 520};
static const uint8_t offsets[] = {0, 4};

static void check_frame(uint64_t *seed, size_t at, uint32_t len,
			bool is_stamped)
{
	uint8_t *payload = (uint8_t *)step_words + at;
	struct wire_pkt pkt, parsed;
	struct wire_stamp s;
	struct wire_vary v;
	size_t n;

	test_random_pkt(seed, WIRE_RC_READ_RESP_ONLY, true, payload, len, &pkt);
	if (is_stamped)
		assert_true(wire_stamp_make(&s, &pkt));
	v = wire_vary_of(&pkt);
	step_begin();
	n = is_stamped ? wire_stamp_build(&s, &v, frame)
		       : wire_build(&pkt, frame);
	step_end();
	assert_int_equal(wire_parse(frame, n, &parsed), WIRE_OK);
	assert_int_equal(parsed.payload_len, len);
	step_check(parsed.payload, at, len);
}

static void test_frames(void **state)
{
	uint64_t seed = 7;

	if (!STEP_WORKS)
		skip();
	for (unsigned i = 0; i < ARRAY_LEN(lengths); i++)
		for (unsigned k = 0; k < ARRAY_LEN(offsets); k++) {
			check_frame(&seed, offsets[k], lengths[i], true);
			check_frame(&seed, offsets[k], lengths[i], false);
		}
}

/* Shorter words, too. */
static void test_short_words(void **state)
{
	uint32_t four;
	uint16_t two;

	if (!STEP_WORKS)
		skip();
	for (unsigned at = 0; at <= 6; at += 2) {
		step_begin();
		live_move(frame + 1, (uint8_t *)step_words + at, 2);
		step_end();
		memcpy(&two, frame + 1, 2);
		assert_true(two == 0 || two == 0xffff);
	}
	for (unsigned at = 0; at <= 4; at += 4) {
		step_begin();
		live_move(frame + 1, (uint8_t *)step_words + at, 4);
		step_end();
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

/* A message of no bytes may name no memory. */
static void test_nothing(void **state)
{
	live_move(NULL, NULL, 0);
	live_place(NULL, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_short_words),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
