/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is unmapped under a live key, and mapped again: what came later
 * is none of the key's business.
 */
#include "os_rig.h"

static int setup(void **state)
{
	return open_fixture(state, true);
}

/* Ways to have something else at the same address. */
static void *map_over(uint8_t *at)
{
	return map_pages(at);
}

static void *map_again(uint8_t *at)
{
	munmap(at, HOLE_BYTES);
	return map_pages(at);
}

static void *move_onto(uint8_t *at)
{
	uint8_t *other = map_pages(NULL);

	return mremap(other, HOLE_BYTES, HOLE_BYTES,
		      MREMAP_MAYMOVE | MREMAP_FIXED, at);
}

static void *move_away(uint8_t *at)
{
	uint8_t *to = map_pages(NULL);

	assert_true(mremap(at, HOLE_BYTES, HOLE_BYTES,
			   MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
	munmap(to, HOLE_BYTES);
	return map_pages(at);
}

/* A mapping that came later is neither written nor read. */
static void test_remapped(void **state)
{
	static void *(*const remap[])(uint8_t * at) = {map_over, map_again,
						       move_onto, move_away};
	struct fixture *f = *state;

	for (unsigned i = 0; i < ARRAY_LEN(remap) * ARRAY_LEN(remote); i++) {
		unsigned n = i % ARRAY_LEN(remote);
		uint8_t canary[HOLE_BYTES];
		struct rig r;

		rig_make(&r, f, 1);
		if (!r.watched) {
			print_message("no userfaultfd here\n");
			rig_end(&r);
			skip();
		}
		assert_true(remap[i / ARRAY_LEN(remote)](r.mem) == r.mem);
		memset(r.mem, 0x77, HOLE_BYTES);
		memset(canary, 0x77, HOLE_BYTES);
		assert_int_equal(end_do(&r.e[0], &r.card, remote[n].opcode, 0,
					remote[n].len),
				 IBV_WC_REM_OP_ERR);
		end_sync(r.owner);
		assert_memory_equal(r.mem, canary, HOLE_BYTES);
		others_go_on(f);
		rig_end(&r);
		munmap(r.mem, HOLE_BYTES);
	}
}

/* What is left of a region goes on; so does a new one on the same pages. */
static void test_part_is_gone(void **state)
{
	struct fixture *f = *state;
	struct rig r, young;

	rig_make(&r, f, 1);
	if (!r.watched) {
		rig_end(&r);
		skip();
	}
	assert_true(mmap(r.mem + 4096, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) == r.mem + 4096);
	assert_int_equal(end_do(&r.e[0], &r.card, IBV_WR_RDMA_WRITE, 0, 4096),
			 IBV_WC_SUCCESS);
	assert_int_equal(end_do(&r.e[0], &r.card, IBV_WR_RDMA_READ, 8192, 8192),
			 IBV_WC_SUCCESS);
	young = r;
	rig_reg(&young, &r.e[1], r.mem);
	assert_int_equal(
		end_do(&r.e[0], &young.card, IBV_WR_RDMA_WRITE, 0, HOLE_BYTES),
		IBV_WC_SUCCESS);
	assert_int_equal(end_do(&r.e[0], &r.card, IBV_WR_RDMA_WRITE, 4000, 100),
			 IBV_WC_REM_OP_ERR);
	rig_dereg(&young);
	rig_end(&r);
	munmap(r.mem, HOLE_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_remapped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_part_is_gone, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
