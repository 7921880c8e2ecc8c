/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory beside IP traffic on one link, and bit errors: the bounds that the
 * design promises.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "edm/phy_errors.h"
#include "edm/phy_load.h"

static const uint32_t loads[] = {500, 900, 1000};
static const uint32_t sizes[] = {64, 1518, 9018};

static struct edm_load_result run(enum edm_md md, enum edm_tx_policy policy,
				  uint32_t size, uint32_t load)
{
	struct edm_load_config c = {
		.md = md,
		.policy = policy,
		.frame_bytes = size,
		.frame_permille = load,
		.message_bytes = 64,
		.memory_permille = 50,
		.messages = 600,
		.seed = 1,
	};
	struct edm_load_result r;

	assert_int_equal(edm_load_run(&c, &r), 0);
	assert_in_range(r.fifo_max, 0, EDM_TX_FIFO);
	return r;
}

/* A memory block waits for at most one block of a frame; a whole message that
 * goes first is not later at all. */
static void per_block_mode_waits_one_block(void **state)
{
	for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
		for (size_t i = 0; i < ARRAY_LEN(loads); i++) {
			struct edm_load_result r =
				run(EDM_MD_CONTROL, EDM_TX_FAIR, sizes[s],
				    loads[i]);

			assert_in_range(r.block_wait_max, 0, 1);
			assert_in_range(r.first_wait_max, 0, 1);
			r = run(EDM_MD_CONTROL, EDM_TX_MEMORY, sizes[s],
				loads[i]);
			assert_in_range(r.whole_rise_max, 0, 1);
			assert_in_range(r.block_wait_max, 0, 1);
		}
}

/* With data blocks a message is not interrupted: memory first costs nothing
 * either, and fair sharing makes the next message wait as long as the last one
 * was. */
static void whole_message_mode(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(loads); i++) {
		struct edm_load_result r =
			run(EDM_MD_DATA, EDM_TX_MEMORY, 1518, loads[i]);

		assert_in_range(r.whole_rise_max, 0, 1);
		r = run(EDM_MD_DATA, EDM_TX_FAIR, 1518, loads[i]);
		assert_in_range(r.first_wait_max, 0, 9);
	}
}

/* What a MAC without preemption costs: up to a frame, half of one on average
 * at full load. */
static void without_preemption(void **state)
{
	struct edm_load_result r =
		run(EDM_MD_DATA, EDM_TX_NO_SPLIT, 9018, 1000);

	assert_in_range(r.first_wait_max, 1000, EDM_FRAME_BLOCKS_MAX);
	assert_true(r.first_rise_mean > 400);
}

/* Frames lose what memory takes, and one frame time in the receiver. */
static void what_frames_lose(void **state)
{
	struct edm_load_result r =
		run(EDM_MD_CONTROL, EDM_TX_MEMORY, 1518, 1000);

	assert_true(r.carried > 0.945 && r.carried < 0.955);
	assert_true(r.transit_plain == 191);
	assert_true(r.transit_mean > 2 * 191 - 1);
	assert_true(r.transit_mean < 2.2 * 191);
	assert_in_range(r.buffer_max, 191, 191 + 8);
	r = run(EDM_MD_CONTROL, EDM_TX_MEMORY, 1518, 500);
	assert_true(r.carried > r.offered - 0.01);
	assert_true(r.carried > 0.4 && r.carried < 0.6);
}

static void load_parameters_refused(void **state)
{
	struct edm_load_config good = {.frame_bytes = 64,
				       .frame_permille = 500,
				       .message_bytes = 64,
				       .memory_permille = 10,
				       .messages = 10};
	struct edm_load_config c;
	struct edm_load_result r;

	assert_int_equal(edm_load_run(&good, &r), 0);
	c = good;
	c.frame_bytes = 63;
	assert_true(edm_load_run(&c, &r) < 0);
	c = good;
	c.frame_permille = 1001;
	assert_true(edm_load_run(&c, &r) < 0);
	c = good;
	c.memory_permille = 0;
	assert_true(edm_load_run(&c, &r) < 0);
	c = good;
	c.message_bytes = EDM_MSG_BYTES_MAX + 1;
	assert_true(edm_load_run(&c, &r) < 0);
	c = good;
	c.messages = 0;
	assert_true(edm_load_run(&c, &r) < 0);
	/* Gaps alone do not carry half a link. */
	c = good;
	c.policy = EDM_TX_GAPS;
	c.frame_permille = 1000;
	c.memory_permille = 500;
	c.messages = 3000;
	assert_true(edm_load_run(&c, &r) < 0);
}

static struct edm_errors_result errors(enum edm_md md, enum wire_mem_map map,
				       bool crc, double rate)
{
	struct edm_errors_config c = {
		.phy = {.md = md, .map = map, .crc = crc, .start_align = 8},
		.error_rate = rate,
		.message_bytes = 64,
		.messages = 8000,
		.frame_bytes = 256,
		.seed = 5,
	};
	struct edm_errors_result r;

	assert_int_equal(edm_errors_run(&c, &r), 0);
	assert_int_equal(r.right + r.wrong + r.lost, r.sent);
	return r;
}

static void no_errors_no_loss(void **state)
{
	struct edm_errors_result r =
		errors(EDM_MD_DATA, WIRE_MAP_COSET, true, 0);

	assert_int_equal(r.right, r.sent);
	assert_int_equal(r.flips, 0);
	assert_int_equal(r.frames_right, r.frames_sent);
}

/* Without a check sum most hit messages arrive wrong; with it none did in these
 * runs, in either mode and every map. Frames are kept by their FCS. */
static void check_sum_detects(void **state)
{
	for (int k = 0; k < 2 * WIRE_MAP_COUNT; k++) {
		enum wire_mem_map map = (enum wire_mem_map)(k / 2);
		enum edm_md md = (enum edm_md)(k % 2);
		struct edm_errors_result r = errors(md, map, false, 1e-4);

		assert_true(r.wrong > 100);
		assert_int_equal(r.frames_wrong, 0);
		r = errors(md, map, true, 1e-4);
		assert_int_equal(r.wrong, 0);
		assert_int_equal(r.phantoms, 0);
		assert_true(r.rx.bad_crc > 100);
		assert_true(r.lost > 100);
		assert_int_equal(r.frames_wrong, 0);
	}
}

/* A line as bad as this loses its lock, which is what disables a link. */
static void lock_is_lost(void **state)
{
	struct edm_errors_result r =
		errors(EDM_MD_DATA, WIRE_MAP_COSET, true, 0.2);

	assert_true(r.lock_lost > 0);
	assert_int_equal(r.right, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(per_block_mode_waits_one_block),
		cmocka_unit_test(whole_message_mode),
		cmocka_unit_test(without_preemption),
		cmocka_unit_test(what_frames_lose),
		cmocka_unit_test(load_parameters_refused),
		cmocka_unit_test(no_errors_no_loss),
		cmocka_unit_test(check_sum_detects),
		cmocka_unit_test(lock_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
