/* SPDX-License-Identifier: Apache-2.0 */
/* Captured frames through a link: all of them, under every policy. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/rng.h"
#include "edm/phy_frames.h"

enum {
	FRAMES = 200,
	ROOM = FRAMES * 2000,
};

/* As edm_pcap_read leaves it. */
static void capture_make(struct edm_pcap *p)
{
	struct rng r;

	rng_init(&r, 3);
	*p = (struct edm_pcap){.bytes = malloc(ROOM),
			       .frame = calloc(FRAMES, sizeof(*p->frame)),
			       .frames = FRAMES};
	assert_true(p->bytes && p->frame);
	rng_fill(&r, p->bytes, ROOM);
	for (uint32_t i = 0; i < FRAMES; i++) {
		p->frame[i].offset = p->len_bytes;
		p->frame[i].len_bytes =
			i % 9 ? (uint32_t)rng_between(&r, 14, 200) : 1514;
		p->len_bytes += p->frame[i].len_bytes;
	}
}

static void everything_arrives(void **state)
{
	struct edm_frames_result r;
	struct edm_pcap p;

	capture_make(&p);
	for (int k = 0; k < 4 * EDM_TX_POLICIES; k++) {
		struct edm_frames_config c = {
			.phy = {.md = k & 1,
				.crc = k >> 1 & 1,
				.start_align = 8},
			.policy = (enum edm_tx_policy)(k / 4),
			.seed = (uint64_t)k};

		assert_int_equal(edm_frames_run(&p, &c, &r), 0);
		assert_int_equal(r.frames, FRAMES);
		assert_int_equal(r.wrong, 0);
		assert_true(r.messages > 0);
		assert_in_range(r.fifo_max, 0, EDM_TX_FIFO);
	}
	edm_pcap_release(&p);
}

static void refused(void **state)
{
	struct edm_frames_config c = {.phy = {.start_align = 8}};
	struct edm_frames_result r;
	struct edm_pcap p = {.frames = 0};

	assert_int_equal(edm_frames_run(&p, &c, &r), -EINVAL);
	assert_non_null(strstr(error_last(), "no frame"));
	capture_make(&p);
	c.phy.start_align = 5;
	assert_int_equal(edm_frames_run(&p, &c, &r), -EINVAL);
	edm_pcap_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_arrives),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
