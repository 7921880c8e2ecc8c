/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What walks cost on this machine: an instruction, and a load of bytes that no
 * cache has. Clients compare the two and decide whether a walk is worth the
 * processor here.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "walk/build.h"
#include "walks_priv.h"

enum {
	STEPS = 256,	  /* instructions of the program that is timed */
	RUNS = 512,	  /* of it, in one round */
	ROUNDS = 5,	  /* the best one counts: others may use the core */
	ARENA = 32 << 20, /* bytes, more than caches near a core have */
	LOADS = 512,	  /* in one round */
	LINE = 64,
};

/* ---- an instruction ------------------------------------------------------ */

/* Sums of words of the node, as most walks do little else. */
static int build_sums(struct walk_build *b, struct walk_image *image)
{
	walk_build_op(b, WALK_OP_LDI, 1, 0, 0, 0);
	for (unsigned i = 0; i < STEPS / 2 - 2; i++) {
		walk_build_op(b, WALK_OP_LDN8, 2, 0, 0, (int32_t)(i % 32) * 8);
		walk_build_op(b, WALK_OP_ADD, 1, 1, 2, 0);
	}
	walk_build_op(b, WALK_OP_STP8, 0, 1, 0, 0);
	walk_build_op(b, WALK_OP_RET, 0, 0, 0, 0);
	return walk_build_end(b, 0, image, NULL);
}

static uint64_t time_runs(const struct walk_program *p)
{
	uint8_t node[256] = {0}, pad[8] = {0};
	uint64_t start_ns = clock_mono_ns(), next;

	for (unsigned i = 0; i < RUNS; i++)
		(void)walk_program_step(p, node, pad, &next);
	return clock_mono_ns() - start_ns;
}

static int gauge_step(bool has_jit, uint32_t *step_ps)
{
	const struct walk_options options = {.interpret = !has_jit};
	struct walk_build *b = walk_build_create("gauge", 0, 256, 8, 0);
	struct walk_program *p = NULL;
	struct walk_image image;
	uint64_t best_ns = UINT64_MAX;
	int err = build_sums(b, &image);

	if (!err)
		err = walk_program_open(&image, &options, &p);
	for (unsigned i = 0; i < ROUNDS && !err; i++)
		best_ns = u64_min(best_ns, time_runs(p));
	if (!err)
		*step_ps = (uint32_t)u64_max(
			best_ns * 1000 / ((uint64_t)RUNS * p->facts.longest),
			1);
	walk_program_close(p);
	walk_build_destroy(b);
	return err;
}

/* ---- a load -------------------------------------------------------------- */

/* Each load says where the next one is, so they cannot overlap. */
static uint64_t time_loads(uint8_t *arena, uint32_t bytes, struct rng *rng)
{
	uint64_t sum = 0, at = 0, start_ns = clock_mono_ns();

	for (unsigned i = 0; i < LOADS; i++) {
		at = (rng_u64(rng) + sum) % (ARENA / 4096) * 4096;
		for (uint32_t k = 0; k < bytes; k += LINE)
			sum += *(const uint64_t *)(const void *)(arena + at +
								 k);
	}
	/* The sum is 0, which the compiler cannot know. */
	return clock_mono_ns() - start_ns + sum;
}

static int gauge_loads(uint32_t load_ns[MEM_WALK_LOADS])
{
	static const uint32_t sizes[MEM_WALK_LOADS] = {64, 256, 1024, 4096};
	uint8_t *arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rng rng;

	if (arena == MAP_FAILED)
		return error_set(-ENOMEM, "no memory to measure loads in");
	(void)madvise(arena, ARENA, MADV_HUGEPAGE); /* or it takes longer */
	rng_init(&rng, 1);
	for (uint32_t i = 0; i < ARENA; i += 4096)
		arena[i] = 0;
	for (unsigned s = 0; s < MEM_WALK_LOADS; s++) {
		uint64_t best_ns = UINT64_MAX;

		for (unsigned i = 0; i < ROUNDS; i++)
			best_ns = u64_min(best_ns,
					  time_loads(arena, sizes[s], &rng));
		load_ns[s] = (uint32_t)(best_ns / LOADS + 1);
	}
	(void)munmap(arena, ARENA); /* mapped above */
	return 0;
}

int mem_walk_gauge(bool has_jit, struct mem_walk_gauge *out)
{
	int err = gauge_step(has_jit, &out->step_ps);

	return err ? err : gauge_loads(out->load_ns);
}
