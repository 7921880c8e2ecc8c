/* SPDX-License-Identifier: Apache-2.0 */
/* Far faults alone: pages that went out come back while there is room, so that
 * nothing has to leave for them. */
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/rng.h"
#include "run_bench.h"
#include "stats.h"
#include "ticks.h"

enum {
	PAGE_WORDS = 512,
	SETTLE_MS = 50, /* until what was on its way out is out */
};

/* Pages in an order that nobody guesses, each once. */
static void shuffle(uint32_t *order, uint32_t count, uint64_t seed)
{
	struct rng r;

	rng_init(&r, seed);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t k = (uint32_t)rng_below(&r, i + 1);

		order[i] = order[k];
		order[k] = i;
	}
}

static uint64_t touch_far(uint64_t *words, uint32_t *order, uint32_t *times,
			  const struct run_work *w)
{
	double per_ns = bench_ticks_per_ns();
	uint32_t n = 0;

	for (; n < w->count; n++) {
		const uint64_t *at = words + (uint64_t)order[n] * PAGE_WORDS;
		uint64_t start = bench_ticks();
		bool ok = *(const volatile uint64_t *)at == order[n] + 1u;

		times[n] = (uint32_t)(bench_ticks() - start);
		if (!ok)
			return 0;
	}
	return (uint64_t)(stats_quantile_u32(times, n, 0.5) / per_ns);
}

/* A quarter went out, and the rest is given up. */
uint64_t run_fault(const struct run_work *w)
{
	const struct timespec settle = {0, SETTLE_MS * 1000000l};
	uint32_t pages = (uint32_t)(w->bytes / 4096), far = pages / 4;
	uint64_t *words = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *order = calloc(far, sizeof(*order));
	uint32_t *times = calloc(w->count, sizeof(*times));
	uint64_t ns = 0;

	if (words != MAP_FAILED && order && times && w->count <= far) {
		for (uint32_t i = 0; i < pages; i++)
			words[(uint64_t)i * PAGE_WORDS] = i + 1u;
		(void)nanosleep(&settle, NULL);
		shuffle(order, far, w->seed);
		if (madvise(words + (uint64_t)far * PAGE_WORDS,
			    (uint64_t)(pages - far) * 4096, MADV_DONTNEED) == 0)
			ns = touch_far(words, order, times, w);
	}
	free(order);
	free(times);
	return ns;
}
