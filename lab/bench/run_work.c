/* SPDX-License-Identifier: Apache-2.0 */
/* The works that are one loop, and all of them by name. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/rng.h"
#include "run_bench.h"
#include "shield.h"

enum {
	PAGE_WORDS = 512,
	SORT_SMALL = 16, /* then by insertion */
};

static const char *const names[RUN_WORK_COUNT] = {
	[RUN_WORK_TOUCH] = "touch",
	[RUN_WORK_FLOOR] = "floor",
	[RUN_WORK_FLOOR_SIGNAL] = "floor-signal",
	[RUN_WORK_FAULT] = "fault",
	[RUN_WORK_SORT] = "quicksort",
	[RUN_WORK_KMEANS] = "kmeans",
	[RUN_WORK_PAGERANK] = "pagerank",
	[RUN_WORK_BETWEEN] = "betweenness",
	[RUN_WORK_ETC] = "memcached-etc",
	[RUN_WORK_OLTP] = "sqlite3-oltp",
	[RUN_WORK_WEB] = "web",
	[RUN_WORK_TSV] = "tsv",
	[RUN_WORK_WEB_WALK] = "web-walk",
	[RUN_WORK_TSV_WALK] = "tsv-walk",
	[RUN_WORK_RANGE] = "range",
	[RUN_WORK_RANGE_WALK] = "range-walk",
	[RUN_WORK_RANGE_READS] = "range-reads",
};

const char *run_work_name(enum run_work_kind kind)
{
	return names[kind];
}

/* ---- touches ------------------------------------------------------------ */

/* Every page has its own number in its first word: read back, it proves that
 * the page is the right one. */
static uint64_t touch(uint64_t *words, const struct run_work *w, struct rng *r)
{
	uint64_t pages = w->bytes / 4096, start;
	bool ok = true;

	for (uint64_t i = 0; i < pages; i++)
		words[i * PAGE_WORDS] = i;
	start = bench_now_ns();
	for (uint64_t i = 0; i < w->count; i++) {
		uint64_t page = rng_below(r, pages);

		ok &= words[page * PAGE_WORDS] == page;
		words[page * PAGE_WORDS + 1]++;
	}
	return ok ? bench_now_ns() - start : 0;
}

/* ---- quicksort ---------------------------------------------------------- */

static void insertion(uint64_t *a, uint64_t n)
{
	for (uint64_t i = 1; i < n; i++) {
		uint64_t v = a[i], k = i;

		for (; k > 0 && a[k - 1] > v; k--)
			a[k] = a[k - 1];
		a[k] = v;
	}
}

/* Hoare's, the smaller half by recursion. */
static void quicksort(uint64_t *a, uint64_t n)
{
	while (n > SORT_SMALL) {
		uint64_t pivot = a[n / 2];
		uint64_t *i = a, *k = a + n - 1;

		while (i <= k) {
			while (*i < pivot)
				i++;
			while (*k > pivot)
				k--;
			if (i <= k) {
				uint64_t t = *i;

				*i++ = *k;
				*k-- = t;
			}
		}
		if (k - a < a + n - i) {
			quicksort(a, (uint64_t)(k - a + 1));
			n = (uint64_t)(a + n - i);
			a = i;
		} else {
			quicksort(i, (uint64_t)(a + n - i));
			n = (uint64_t)(k - a + 1);
		}
	}
	insertion(a, n);
}

static uint64_t sort(uint64_t *words, const struct run_work *w)
{
	uint64_t n = w->bytes / sizeof(*words);
	uint64_t start = bench_now_ns(), took;
	bool ok = true;

	quicksort(words, n);
	took = bench_now_ns() - start;
	for (uint64_t i = 1; i < n; i++)
		ok &= words[i - 1] <= words[i];
	return ok ? took : 0;
}

static uint64_t on_words(const struct run_work *w)
{
	uint64_t *words = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rng r;

	if (words == MAP_FAILED)
		return 0;
	rng_init(&r, w->seed);
	for (uint64_t i = 0; i < w->bytes / sizeof(*words); i++)
		words[i] = rng_u64(&r);
	return w->kind == RUN_WORK_TOUCH ? touch(words, w, &r) : sort(words, w);
}

/* ---- any ---------------------------------------------------------------- */

int run_work_main(const struct run_work *w)
{
	static uint64_t (*const works[RUN_WORK_COUNT])(
		const struct run_work *) = {
		[RUN_WORK_TOUCH] = on_words,
		[RUN_WORK_FLOOR] = run_floor,
		[RUN_WORK_FLOOR_SIGNAL] = run_floor,
		[RUN_WORK_FAULT] = run_fault,
		[RUN_WORK_SORT] = on_words,
		[RUN_WORK_KMEANS] = run_kmeans,
		[RUN_WORK_PAGERANK] = run_pagerank,
		[RUN_WORK_BETWEEN] = run_between,
		[RUN_WORK_ETC] = run_etc,
		[RUN_WORK_OLTP] = run_oltp,
		[RUN_WORK_WEB] = walk_work_native,
		[RUN_WORK_TSV] = walk_work_native,
		[RUN_WORK_WEB_WALK] = walk_work_remote,
		[RUN_WORK_TSV_WALK] = walk_work_remote,
		[RUN_WORK_RANGE] = walk_work_native,
		[RUN_WORK_RANGE_WALK] = walk_work_remote,
		[RUN_WORK_RANGE_READS] = walk_work_remote,
	};
	uint64_t ns;

	/* Not where the memory node is. Other people's programs are left to the
	 * scheduler, and so are the threads that take pages away. */
	if (w->kind != RUN_WORK_ETC && w->kind != RUN_WORK_OLTP)
		(void)shield_pin(SHIELD_CPU_CLIENT);
	ns = works[w->kind](w);

	if (!ns) {
		(void)fprintf(stderr,
			      "aquifer: bench: %s: wrong bytes, "
			      "or it cannot run\n",
			      names[w->kind]);
		return 1;
	}
	(void)printf("%" PRIu64 "\n", ns);
	return 0;
}

int run_work_from(char **argv)
{
	struct run_work w = {
		.kind = RUN_WORK_COUNT,
		.bytes = strtoull(argv[1], NULL, 10),
		.count = strtoull(argv[2], NULL, 10),
		.seed = strtoull(argv[3], NULL, 10),
	};

	for (unsigned i = 0; i < RUN_WORK_COUNT; i++)
		if (strcmp(argv[0], names[i]) == 0)
			w.kind = (enum run_work_kind)i;
	return w.kind == RUN_WORK_COUNT || w.bytes < 4096 ? 2
							  : run_work_main(&w);
}
