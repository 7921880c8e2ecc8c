/* SPDX-License-Identifier: Apache-2.0 */
/* The probe: what it reads in /sys, and that its windows count what happened.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/clock.h"
#include "base/error.h"
#include "base/size.h"
#include "probe/probe_priv.h"

/* ---- /sys --------------------------------------------------------------- */

/* Makes root/path, and all folders above it. */
static void put(const char *root, const char *path, const char *text)
{
	char full[512];
	FILE *f;

	(void)snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		(void)mkdir(full, 0700);
		*at = '/';
	}
	f = fopen(full, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

#define NODE "devices/system/node/node0/"

static void reads_what_the_firmware_says(void **state)
{
	char root[] = "/tmp/aquifer-sys.XXXXXX", command[64];
	struct probe_facts f;

	assert_non_null(mkdtemp(root));
	put(root, NODE "access0/initiators/read_latency", "110\n");
	put(root, NODE "access0/initiators/read_bandwidth", "67000\n");
	put(root, NODE "access1/initiators/read_latency", "120\n");
	put(root, NODE "access1/initiators/write_latency", "rubbish\n");
	put(root, NODE "access0/initiators/write_latency", "130\n");
	put(root, NODE "access0/initiators/write_bandwidth", "99999999999\n");
	put(root, "devices/virtual/memory_tiering/memory_tier4/nodelist",
	    "0-1\n");
	put(root, "devices/virtual/memory_tiering/memory_tier22/nodelist",
	    "2\n");
	probe_node_read(root, 0, &f);
	assert_int_equal(f.hmat_read_ns, 120); /* of processors */
	assert_int_equal(f.hmat_write_ns, 130);
	assert_int_equal(f.hmat_read_mbs, 67000);
	assert_int_equal(f.hmat_write_mbs, 0); /* no such number */
	assert_int_equal(f.memory_tier, 4);
	probe_node_read("/nowhere", 0, &f);
	assert_int_equal(f.hmat_read_ns, 0);
	assert_int_equal(f.memory_tier, 0);
	(void)snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static void the_largest_cache_counts(void **state)
{
	char root[] = "/tmp/aquifer-sys.XXXXXX", command[64];

	assert_non_null(mkdtemp(root));
	put(root, "devices/system/cpu/cpu3/cache/index0/size", "48K\n");
	put(root, "devices/system/cpu/cpu3/cache/index2/size", "32768K\n");
	put(root, "devices/system/cpu/cpu3/cache/index3/size", "rubbish\n");
	assert_int_equal(probe_cache_bytes(root, 3), 32 << 20);
	assert_int_equal(probe_cache_bytes(root, 4), 0);
	(void)snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static void names_the_nodes_there_are(void **state)
{
	struct tier_set nodes;

	if (probe_nodes_find(&nodes))
		skip();
	assert_int_equal(probe_node_check(TIER_NODE_MAX), -ENODEV);
	assert_non_null(strstr(error_last(), "no NUMA node 1023"));
	for (uint32_t n = 0; n <= TIER_NODE_MAX; n++)
		if (tier_set_has(&nodes, n))
			assert_int_equal(probe_node_check(n), 0);
}

/* ---- windows ------------------------------------------------------------ */

struct fake_port {
	struct probe_port base;
	_Atomic uint64_t reads, writes, cells;
	unsigned naps; /* cells that take long, without a processor */
	int err;
};

static int fake_chase(struct probe_port *p, uint32_t count)
{
	struct fake_port *f = container_of(p, struct fake_port, base);

	atomic_fetch_add_explicit(&f->cells, count, memory_order_relaxed);
	if (f->naps) {
		f->naps--;
		usleep(20000);
	}
	return f->err;
}

static int fake_move(struct probe_port *p, uint64_t block, bool is_write)
{
	struct fake_port *f = container_of(p, struct fake_port, base);

	assert_true(block < p->block_count);
	atomic_fetch_add_explicit(is_write ? &f->writes : &f->reads, 1,
				  memory_order_relaxed);
	return f->err;
}

static struct fake_port fake(int err)
{
	struct fake_port f = {.base = {.chase = fake_chase,
				       .move = fake_move,
				       .chase_count = 4,
				       .block_bytes = 4096,
				       .block_count = 7},
			      .err = err};

	probe_node_cpus(0, &f.base.cpus);
	return f;
}

static void mixes_reads_and_writes(void **state)
{
	static const struct tier_ratio mixes[] = {
		{1, 0}, {4, 1}, {3, 1}, {1, 1}, {0, 1}};

	for (size_t i = 0; i < ARRAY_LEN(mixes); i++) {
		struct fake_port f = fake(0);
		struct probe_load l = {.port = &f.base,
				       .mix = mixes[i],
				       .threads = 2,
				       .window_ns = 10000000};
		uint64_t all, reads;

		assert_int_equal(probe_load_run(&l), 0);
		reads = atomic_load(&f.reads);
		all = reads + atomic_load(&f.writes);
		/* Each of two threads may be in the middle of a round. */
		assert_true(reads * (mixes[i].top + mixes[i].slow) + 10 >=
			    all * mixes[i].top);
		assert_true(reads * (mixes[i].top + mixes[i].slow) <=
			    all * mixes[i].top + 10);
		assert_true(all > 0);
		/* A moved block counts in the window or before it. */
		assert_true(l.gbs >= 0);
		assert_int_equal(l.idle.samples, 0);
	}
}

static void counts_every_cell_of_the_chase(void **state)
{
	struct fake_port f = fake(0);
	struct probe_load l = {
		.port = &f.base, .window_ns = 5000000, .has_chase = true};

	assert_int_equal(probe_load_run(&l), 0);
	assert_true(l.idle.samples >= 16);
	assert_int_equal(atomic_load(&f.cells), 4ull * l.idle.samples);
	assert_true(l.idle.p50_ns <= l.idle.p90_ns &&
		    l.idle.p90_ns <= l.idle.p99_ns);
	assert_true(l.gbs == 0);
}

/* The first window is disturbed for sure; a machine with other work may disturb
 * the others, too, and then none is left. */
static void measures_again_when_others_ran(void **state)
{
	struct fake_port f = fake(0);
	struct probe_load l = {
		.port = &f.base, .window_ns = 10000000, .has_chase = true};
	uint32_t again = 0;

	f.naps = 1;
	assert_int_equal(probe_load_run_quiet(&l, &again), 0);
	assert_true(l.share < 0.6);
	f.naps = 1;
	again = 200;
	assert_int_equal(probe_load_run_quiet(&l, &again), 0);
	assert_true(again < 200);
	assert_true(l.share >= PROBE_SHARE_MIN || again == 0);
	/* The quietest one counts, not the last one. */
	f.naps = 60;
	again = 2;
	assert_int_equal(probe_load_run_quiet(&l, &again), 0);
	assert_int_equal(again, 0);
	assert_true(l.share < PROBE_SHARE_MIN);
}

static void ends_when_memory_is_lost(void **state)
{
	struct fake_port f = fake(-EHOSTDOWN);
	struct probe_load l = {.port = &f.base,
			       .mix = {1, 0},
			       .threads = 3,
			       .window_ns = 5000000,
			       .has_chase = true};

	assert_int_equal(probe_load_run(&l), -EHOSTDOWN);
	l.has_chase = false;
	assert_int_equal(probe_load_run(&l), -EHOSTDOWN);
}

/* A machine may be as busy as it likes: it takes no more time, and what was not
 * measured says so. */
static void ends_in_time(void **state)
{
	const struct probe_options o = {.node = -1, .limit_ms = 1};
	struct probe_report *report = calloc(1, sizeof(*report));
	struct tier_set nodes;

	assert_non_null(report);
	if (probe_nodes_find(&nodes)) {
		free(report);
		skip();
	}
	assert_int_equal(probe_run(&o, report), 0);
	assert_int_equal(report->count, tier_set_count(&nodes));
	for (unsigned i = 0; i < report->count; i++) {
		assert_int_equal(report->tier[i].err, -ETIME);
		assert_non_null(strstr(report->tier[i].why, "too busy"));
	}
	free(report);
}

/* ---- memory of a node --------------------------------------------------- */

static void follows_all_cells_before_any_again(void **state)
{
	struct probe_facts facts;
	struct probe_tier *tier = calloc(1, sizeof(*tier));
	const struct probe_memory none = {.memory = NULL};
	struct probe_memory lent = {.bytes = 1 << 20};
	struct probe_port *port;
	struct tier_set nodes;

	assert_non_null(tier);
	if (probe_nodes_find(&nodes) || !tier_set_has(&nodes, 0)) {
		free(tier);
		skip();
	}
	probe_node_read("/sys", 0, &facts);
	/* As if the node had little, so that the areas are small. */
	facts.free_bytes = 64 << 20;
	assert_int_equal(probe_numa_open(&facts, 0, 1, &none, tier, &port), 0);
	assert_true(tier->arena_bytes >= 2 << 20);
	assert_true(tier->arena_bytes <= 8 << 20);
	assert_int_equal(port->chase(port, 1000), 0);
	for (uint64_t b = 0; b < port->block_count; b++) {
		assert_int_equal(port->move(port, b, true), 0);
		assert_int_equal(port->move(port, b, false), 0);
	}
	/* Writing blocks has not touched the circle. */
	assert_int_equal(
		port->chase(port, (uint32_t)(tier->arena_bytes / CACHE_LINE)),
		0);
	probe_numa_close(port);
	/* Memory of the caller's is what threads load, and is not freed. */
	lent.memory = aligned_alloc(4096, lent.bytes);
	assert_non_null(lent.memory);
	memset(lent.memory, 0, lent.bytes);
	assert_int_equal(probe_numa_open(&facts, 0, 1, &lent, tier, &port), 0);
	assert_int_equal(tier->load_bytes, lent.bytes);
	assert_int_equal(port->block_count * port->block_bytes, lent.bytes);
	assert_int_equal(port->move(port, 3, true), 0);
	assert_int_equal(lent.memory[3 * port->block_bytes], 3);
	assert_int_equal(lent.memory[4 * port->block_bytes], 0);
	probe_numa_close(port);
	lent.memory[0] = 1;
	free(lent.memory);
	facts.free_bytes = 1 << 20;
	assert_int_equal(probe_numa_open(&facts, 0, 1, &none, tier, &port),
			 -ENOMEM);
	free(tier);
}

#ifdef __SSE2__
enum {
	LOADS = 20000,
	PAGE = 4096,
};

struct times {
	uint64_t ns[LOADS];
	size_t count;
};

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* That a twentieth of the loads is below. */
static uint64_t twentieth(struct times *t)
{
	qsort(t->ns, t->count, sizeof(t->ns[0]), compare);
	return t->ns[t->count / 20];
}

static bool is_odd_page(const uint64_t **cell)
{
	return (uintptr_t)cell / PAGE % 2 != 0;
}

/* Loads of a circle as it was made, and among them those of lines that were
 * taken out of all caches. If a part of the first comes from a cache, their
 * quickest twentieth takes less than half as long; whoever else uses this
 * memory disturbs both alike. */
static void a_new_circle_is_in_no_cache(void **state)
{
	uint64_t bytes = u64_max(64 << 20, 4 * probe_cache_bytes("/sys", 0));
	static struct times found, flushed;
	struct probe_arena a;
	const uint64_t **at;
	uint64_t **first;

	if (bytes > 1 << 30 || probe_arena_make(0, bytes, &a))
		skip();	       /* no such memory here */
	if (a.bytes < bytes) { /* not filled in time: some of it is cached */
		probe_arena_free(&a);
		skip();
	}
	assert_int_equal(probe_circle_link(&a, &first), 0);
	for (uint64_t page = PAGE; page < a.bytes; page += 2 * PAGE)
		for (unsigned i = 0; i < PAGE; i += CACHE_LINE)
			_mm_clflush(a.memory + page + i);
	_mm_mfence();
	at = (const uint64_t **)first;
	for (unsigned i = 0; i < LOADS; i++) {
		struct times *t = is_odd_page(at) ? &flushed : &found;
		uint64_t begin_ns = clock_mono_ns();

		at = (const uint64_t **)*at;
		/* The compiler must believe that somebody wants it. */
		__asm__ volatile("" : : "r"(at) : "memory");
		t->ns[t->count++] = clock_mono_ns() - begin_ns;
	}
	probe_arena_free(&a);
	assert_true(found.count > LOADS / 4 && flushed.count > LOADS / 4);
	print_message("as made %u ns, flushed %u ns\n",
		      (unsigned)twentieth(&found),
		      (unsigned)twentieth(&flushed));
	assert_true(twentieth(&found) * 100 >= twentieth(&flushed) * 75);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_the_firmware_says),
		cmocka_unit_test(the_largest_cache_counts),
		cmocka_unit_test(names_the_nodes_there_are),
		cmocka_unit_test(mixes_reads_and_writes),
		cmocka_unit_test(counts_every_cell_of_the_chase),
		cmocka_unit_test(measures_again_when_others_ran),
		cmocka_unit_test(ends_when_memory_is_lost),
		cmocka_unit_test(ends_in_time),
		cmocka_unit_test(follows_all_cells_before_any_again),
#ifdef __SSE2__
		cmocka_unit_test(a_new_circle_is_in_no_cache),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
