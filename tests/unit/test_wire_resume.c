/* SPDX-License-Identifier: Apache-2.0 */
/* What a successor of an engine finds out about its predecessor, from packet
 * numbers: where each node stopped, and of which writes nobody knows. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "wire/offload_resume.h"

enum {
	ENTRIES = 64,
	MTU = 1024,
	MTU_SHIFT = 10,
	OLD_PSN = 0xfffffe, /* so that numbers come round */
	NEW_PSN = 77,
	STRIPE_SHIFT = 12,
	REGION_BYTES = 1 << 20,
	WIDE = 0, /* a region of one piece, at node 0 */
	STRIPED,  /* over nodes 0 and 1 */
	READ_ONLY,
	REGIONS,
};

struct bed {
	struct offload_map map;
	struct offload_region_config region[REGIONS];
	struct offload_preamble preamble;
	struct offload_final final[2];
	struct offload_resume resume;
};

static void make(struct bed *b)
{
	memset(b, 0, sizeof(*b));
	assert_int_equal(offload_map_make(ENTRIES, 65536, 65536, &b->map), 0);
	for (unsigned i = 0; i < REGIONS; i++) {
		struct offload_region_config *r = &b->region[i];

		*r = (struct offload_region_config){
			.size_bytes = REGION_BYTES,
			.is_read_only = i == READ_ONLY,
			.piece_count = i == STRIPED ? 2 : 1,
			.stripe_shift = STRIPE_SHIFT,
			.piece = {{.node = 0, .size_bytes = REGION_BYTES},
				  {.node = 1, .size_bytes = REGION_BYTES}}};
		assert_int_equal(offload_region_check(r, 2), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		b->preamble.red.node[OFFLOAD_NODES_MAX - 1 - i] =
			(struct offload_progress){
				.psn = OLD_PSN | MTU_SHIFT << 24, .epoch = 3};
		b->final[i] = (struct offload_final){true, 3, OLD_PSN};
	}
}

static void begin(struct bed *b, uint32_t tail)
{
	b->preamble.green.tail = tail;
	assert_int_equal(offload_resume_begin(&b->resume, &b->preamble, &b->map,
					      b->final, 2),
			 0);
	assert_int_equal(b->resume.tail, tail);
}

/* This many packets reached a node before it ended the connection. */
static void executed(struct bed *b, unsigned node, uint32_t packets)
{
	b->final[node].psn = (OLD_PSN + packets) & 0xffffff;
}

static void show(struct bed *b, uint16_t rw_type, uint16_t region, uint64_t far,
		 uint32_t len_bytes)
{
	bool is_write = rw_type == OFFLOAD_WRITE;
	struct offload_meta m = {.rw_type = rw_type,
				 .region = region,
				 .len_bytes = len_bytes,
				 .req_addr = is_write ? 0 : far,
				 .resp_addr = is_write ? far : 0};

	offload_resume_show(&b->resume, &m, &b->map, b->region, REGIONS);
}

static struct offload_progress end(struct bed *b, unsigned node, uint32_t mtu)
{
	struct offload_begin begins = {.psn = NEW_PSN, .mtu = mtu, .epoch = 4};

	return offload_resume_end(&b->resume, node, &begins);
}

/* Nobody was here: all is to be done. */
static void first_engine(void **state)
{
	struct offload_progress p;
	struct bed b;

	make(&b);
	memset(&b.preamble.red, 0, sizeof(b.preamble.red));
	begin(&b, 1);
	show(&b, OFFLOAD_WRITE, WIDE, 0, 100);
	p = end(&b, 0, MTU);
	assert_int_equal(p.seq, 0);
	assert_int_equal(p.skip, 0);
	assert_int_equal(p.psn, NEW_PSN | MTU_SHIFT << 24);
	assert_int_equal(p.epoch, 4);
	assert_int_equal(offload_past_skip(&b.resume.node[0], 1, 100), 0);
}

/* Two writes whole, and of the third two packets of three. */
static void stops_inside(void **state)
{
	struct offload_past *n;
	struct offload_progress p;
	struct bed b;

	make(&b);
	executed(&b, 0, 1 + 2 + 2);
	begin(&b, 5);
	show(&b, OFFLOAD_WRITE, WIDE, 0, 100);
	show(&b, OFFLOAD_READ, WIDE, 0, 5000);
	show(&b, OFFLOAD_WRITE, WIDE, 0, MTU + 1);
	show(&b, OFFLOAD_WRITE, WIDE, 0, 3 * MTU);
	show(&b, OFFLOAD_WRITE, WIDE, 0, 8);
	p = end(&b, 0, MTU);
	assert_int_equal(p.seq, 2);
	assert_int_equal(p.skip, 2);
	n = &b.resume.node[0];
	assert_int_equal(offload_past_skip(n, 1, 100), 100);
	assert_int_equal(offload_past_skip(n, 2, MTU + 1), MTU + 1);
	assert_int_equal(offload_past_skip(n, 3, 3 * MTU), 2 * MTU);
	assert_int_equal(offload_past_skip(n, 4, 8), 0);
}

/* Each node by itself: one has its stripe of a write, the other has not. */
static void stripes(void **state)
{
	const uint32_t stripe = 1 << STRIPE_SHIFT;
	struct bed b;

	make(&b);
	executed(&b, 0, stripe / MTU);
	executed(&b, 1, 0);
	begin(&b, 1);
	show(&b, OFFLOAD_WRITE, STRIPED, 0, 2 * stripe);
	assert_int_equal(end(&b, 0, MTU).seq, 1);
	assert_int_equal(end(&b, 1, MTU).seq, 0);
	assert_int_equal(offload_past_skip(&b.resume.node[0], 1, stripe),
			 stripe);
	assert_int_equal(offload_past_skip(&b.resume.node[1], 1, stripe), 0);
}

/* No engine sends a packet for what it refuses: the one that was executed is
 * that of the write behind it. */
static void refused(void **state)
{
	static const struct {
		uint16_t region;
		uint64_t far;
		uint32_t len_bytes;
	} row[] = {
		{REGIONS, 0, 8},       {WIDE, 0, 0},
		{WIDE, 0, 40000},      {WIDE, REGION_BYTES, 8},
		{WIDE, UINT64_MAX, 8}, {STRIPED, REGION_BYTES - 4, 8},
		{READ_ONLY, 0, 8},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct bed b;

		make(&b);
		executed(&b, 0, 1);
		begin(&b, 2);
		show(&b, OFFLOAD_WRITE, row[i].region, row[i].far,
		     row[i].len_bytes);
		show(&b, OFFLOAD_WRITE, WIDE, 0, 8);
		assert_int_equal(end(&b, 0, MTU).seq, 2);
		assert_int_equal(offload_past_skip(&b.resume.node[0], 2, 8), 8);
	}
}

/* What cannot be known fails, up to the last write that may have been met. */
static void unknown(void **state)
{
	for (unsigned i = 0; i < 5; i++) {
		struct offload_progress p;
		struct bed b;

		make(&b);
		executed(&b, 0, i == 4 ? 4 : 3);
		if (i == 0)
			b.final[0].is_known = false;
		else if (i == 1)
			b.final[0].epoch = 2;
		else if (i == 2)
			b.preamble.red.node[OFFLOAD_NODES_MAX - 1].psn =
				OLD_PSN | 13u << 24;
		else if (i == 3) /* was before, and one behind it was done */
			b.preamble.red.node[OFFLOAD_NODES_MAX - 1]
				.skip = ~0u,
			      b.preamble.red.node[OFFLOAD_NODES_MAX - 1].seq =
				      1;
		begin(&b, 3);
		for (unsigned k = 0; k < 3; k++)
			show(&b, OFFLOAD_WRITE, WIDE, 0, 3 * MTU);
		/* The last: it stopped inside a write, and packets have another
		 * size from now on. */
		p = end(&b, 0, i == 4 ? 4 * MTU : MTU);
		assert_int_equal(p.skip, ~0u);
		assert_int_equal(p.seq, 3);
		assert_int_equal(b.resume.node[0].unknown_seq, 3);
	}
}

/* Between two writes the size of packets may change. */
static void other_size(void **state)
{
	struct offload_progress p;
	struct bed b;

	make(&b);
	executed(&b, 0, 3);
	begin(&b, 2);
	show(&b, OFFLOAD_WRITE, WIDE, 0, 3 * MTU);
	show(&b, OFFLOAD_WRITE, WIDE, 0, 3 * MTU);
	p = end(&b, 0, 4 * MTU);
	assert_int_equal(p.seq, 1);
	assert_int_equal(p.skip, 0);
	assert_int_equal(p.psn, NEW_PSN | (MTU_SHIFT + 2) << 24);
}

/* An engine ends at what is no request; of what is behind it nothing was
 * done. */
static void nonsense_behind(void **state)
{
	struct bed b;

	make(&b);
	executed(&b, 0, 2);
	begin(&b, 3);
	show(&b, OFFLOAD_WRITE, WIDE, 0, 8);
	show(&b, 7, WIDE, 0, 8);
	show(&b, OFFLOAD_WRITE, WIDE, 0, 8);
	assert_int_equal(end(&b, 0, MTU).seq, 1);
}

static void impossible(void **state)
{
	struct bed b;

	for (unsigned i = 0; i < 5; i++) {
		struct offload_red *red = &b.preamble.red;

		make(&b);
		red->head = 10;
		red->head_reads = 4;
		red->done = (struct offload_done){4, 6};
		b.preamble.green.tail = 10;
		if (i == 0)
			red->head_reads = 11;
		else if (i == 1)
			red->head = 1ull << 62;
		else if (i == 2)
			b.preamble.green.tail = 10 + ENTRIES + 1;
		else if (i == 3)
			red->done.reads = 4 + ENTRIES + 1;
		else
			red->done.writes = 5; /* before the head */
		assert_int_equal(offload_resume_begin(&b.resume, &b.preamble,
						      &b.map, b.final, 2),
				 -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_engine),
		cmocka_unit_test(stops_inside),
		cmocka_unit_test(stripes),
		cmocka_unit_test(refused),
		cmocka_unit_test(unknown),
		cmocka_unit_test(other_size),
		cmocka_unit_test(nonsense_behind),
		cmocka_unit_test(impossible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
