/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Far paging at hardware's costs, in small: every mode keeps its pages, chains
 * cost what their requests cost, optimisations pay, the processor is used by
 * the modes that need it, the same seed gives the same numbers, and the figures
 * can be planned and judged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "figures/figures.h"
#include "figures/paging_swap.h"
#include "pageframe/pframe_chain.h"
#include "sim/sim.h"

static struct paging_result run(struct paging_config cfg)
{
	struct paging_result r;

	cfg.clients = cfg.clients ? cfg.clients : 1;
	cfg.workers = cfg.workers ? cfg.workers : 1;
	cfg.cores = cfg.cores ? cfg.cores : 1;
	cfg.seed = 3;
	assert_int_equal(paging_run(&cfg, &r), 0);
	assert_int_equal(r.failed, 0);
	assert_true(r.ops > 0);
	return r;
}

static struct paging_result program(enum page_mode mode, uint32_t clients,
				    uint32_t cores)
{
	return run((struct paging_config){.mode = mode,
					  .work = PAGING_PROGRAM,
					  .program = &paging_programs[0],
					  .clients = clients,
					  .workers = 2,
					  .cores = cores,
					  .local_percent = 50,
					  .scale = 8192});
}

/* A worker alone: published are 2.9, 5.5, 4.6 and 9.4 us. */
static void test_latency(void **state)
{
	double read, load, mapped, unmapped, two_sided;

	read = run((struct paging_config){.mode = PAGE_STATIC}).mean_us;
	load = run((struct paging_config){.mode = PAGE_CHAIN}).mean_us;
	mapped = run((struct paging_config){.mode = PAGE_CHAIN,
					    .work = PAGING_MAPPED})
			 .mean_us;
	unmapped = run((struct paging_config){.mode = PAGE_CHAIN,
					      .work = PAGING_UNMAPPED})
			   .mean_us;
	two_sided = run((struct paging_config){.mode = PAGE_TWO_SIDED}).mean_us;
	assert_true(read > 2.5 && read < 4);
	assert_true(load > 4.5 && load < 7);
	assert_true(mapped > 4 && mapped < 7);
	assert_true(unmapped > 8 && unmapped < 16);
	assert_true(two_sided > 2.5 * read);
}

static void test_rates(void **state)
{
	struct paging_config cfg = {
		.workers = 8, .depth = 8, .span_ps = 100 * SIM_US};
	double read, load;

	cfg.mode = PAGE_STATIC;
	read = run(cfg).mops;
	cfg.mode = PAGE_CHAIN;
	load = run(cfg).mops;
	/* The link: 4,096 bytes and headers at 100 Gb/s. */
	assert_true(read > 2.7 && read < 3);
	assert_true(load > 0.87 * read && load < read);
}

static void test_ablation(void **state)
{
	uint32_t without = PAGE_WITHOUT_DECISION | PAGE_WITHOUT_ADDRESS |
			   PAGE_WITHOUT_RECYCLE | PAGE_WITHOUT_SWAP;
	double first = 0, last = 1e9;

	for (uint32_t i = 0; i < 5; i++) {
		double us = run((struct paging_config){.mode = PAGE_CHAIN,
						       .work = PAGING_UNMAPPED,
						       .without = without})
				    .mean_us;

		assert_true(us < last);
		first = i ? first : us;
		last = us;
		without &= without - 1;
	}
	assert_true(last <= 0.27 * first);
}

static void test_programs(void **state)
{
	struct paging_result fixed = program(PAGE_STATIC, 2, 1);
	struct paging_result chain = program(PAGE_CHAIN, 2, 1);
	struct paging_result two = program(PAGE_TWO_SIDED, 2, 1);
	struct paging_result two_4 = program(PAGE_TWO_SIDED, 2, 4);
	struct paging_result piece = program(PAGE_DYNAMIC_1M, 2, 1);

	assert_true(chain.elapsed_ms < 1.15 * fixed.elapsed_ms);
	assert_true(chain.mops > 0.87 * fixed.mops);
	assert_true(chain.cores == 0 && chain.steps > chain.ops);
	assert_true(chain.utilisation > 0.99 && fixed.utilisation < 0.9);
	assert_true(piece.utilisation < chain.utilisation);
	assert_true(two.cores > 0.3 && two.elapsed_ms > chain.elapsed_ms);
	assert_true(two_4.elapsed_ms < two.elapsed_ms);
}

/* Slots go one after the other into clusters of 256, wholly free ones first. */
static void test_slots(void **state)
{
	struct paging_swap *s;

	assert_int_equal(paging_swap_open(600, &s), 0);
	for (uint32_t i = 0; i < 300; i++)
		assert_int_equal(paging_swap_take(s), i);
	assert_false(paging_swap_is_full(s));
	/* A hole in a cluster that is in use is left alone ... */
	paging_swap_give(s, 10);
	assert_int_equal(paging_swap_take(s), 300);
	for (uint32_t i = 301; i < 600; i++)
		assert_int_equal(paging_swap_take(s), i);
	assert_true(paging_swap_is_full(s));
	/* ... until there is nothing else. */
	assert_int_equal(paging_swap_take(s), 10);
	assert_int_equal(paging_swap_take(s), PAGING_SWAP_NONE);
	/* A cluster that gets free is the next. */
	paging_swap_give(s, 599);
	for (uint32_t i = 256; i < 512; i++)
		paging_swap_give(s, i);
	assert_int_equal(paging_swap_take(s), 256);
	paging_swap_close(s);
}

/* Programs that give slots up: chains discard as many pages as they store anew,
 * pieces of 1 MB get full of holes, and every page is right. */
static void test_freed(void **state)
{
	static const enum page_mode modes[] = {PAGE_CHAIN, PAGE_DYNAMIC_1M,
					       PAGE_TWO_SIDED};

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct paging_result r = run(
			(struct paging_config){.mode = modes[i],
					       .work = PAGING_PROGRAM,
					       .program = &paging_programs[0],
					       .clients = 1,
					       .local_percent = 50,
					       .frees = true,
					       .scale = 2048});

		assert_true(r.discards > r.loads / 3);
		assert_true(r.unmapped > r.discards);
		if (modes[i] == PAGE_DYNAMIC_1M)
			assert_true(r.utilisation < 0.8);
		else
			assert_true(r.utilisation > 0.99);
	}
}

static void test_all_programs(void **state)
{
	for (unsigned i = 0; i < paging_program_count; i++) {
		struct paging_result r = run((struct paging_config){
			.mode = PAGE_CHAIN,
			.work = PAGING_PROGRAM,
			.program = &paging_programs[i],
			.workers = paging_programs[i].workers,
			.local_percent = 50,
			.scale = 4096});

		assert_true(r.faults > 0 && r.loads >= r.faults);
	}
}

static void test_pieces_cost_keys(void **state)
{
	struct paging_result r =
		run((struct paging_config){.mode = PAGE_DYNAMIC_4K,
					   .work = PAGING_ALLOCATE,
					   .span_ps = 3 * SIM_MS});

	/* One key after the other: 80 us each. */
	assert_true(r.mean_us > 80 && r.mean_us < 100);
	assert_true(r.cores > 0.9);
}

static void test_same_numbers(void **state)
{
	struct paging_result a = program(PAGE_CHAIN, 2, 1);
	struct paging_result b = program(PAGE_CHAIN, 2, 1);

	assert_int_equal(a.ops, b.ops);
	assert_int_equal(a.steps, b.steps);
	assert_true(a.elapsed_ms == b.elapsed_ms);
}

/*
 * Four clients send nothing but nonsense, as much as the node takes. Nobody
 * gets a wrong page, every page frame is in one place, and the others do at
 * least two thirds of what they do alone.
 */
static void test_flood(void **state)
{
	static const enum paging_work works[] = {PAGING_LOAD, PAGING_MAPPED,
						 PAGING_UNMAPPED};

	for (unsigned i = 0; i < ARRAY_LEN(works); i++) {
		struct paging_config cfg = {.mode = PAGE_CHAIN,
					    .work = works[i],
					    .clients = 2,
					    .workers = 2,
					    .span_ps = 300 * SIM_US};
		uint64_t alone = run(cfg).ops;
		struct paging_result r;

		cfg.flooders = PAGING_FLOODERS_MAX;
		r = run(cfg);
		assert_true(r.nonsense > 2000 && r.broken > 20);
		assert_true(3 * r.ops >= 2 * alone);
	}
}

static void test_figures(void **state)
{
	static const char *const names[] = {"1",  "7",	"8", "9",
					    "10", "11", "12"};
	unsigned claims = 0;

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		const struct figure *f =
			figure_by_name(&paging_figures, names[i]);
		struct figure_run r;

		assert_non_null(f);
		figure_init(&r, &paging_figures, f, paging_figures.defaults);
		assert_int_equal(f->plan(&r), 0);
		/* As if each had taken the same. */
		for (size_t k = 0; k < r.count; k++)
			((struct paging_row *)figure_row(&r, k))->res =
				(struct paging_result){.elapsed_ms = 1,
						       .mops = 1,
						       .mean_us = 1};
		figure_judge(&r);
		claims += r.verdicts;
		figure_release(&r);
	}
	assert_true(claims > 30);
	assert_null(figure_by_name(&paging_figures, "2"));
	assert_null(figure_by_name(&paging_figures, ""));
}

static void test_bad(void **state)
{
	struct paging_result r;
	struct paging_config cfg = {.clients = 1, .workers = 1};

	cfg.clients = PAGING_CLIENTS_MAX + 1;
	assert_int_equal(paging_run(&cfg, &r), -22);
	cfg.clients = 1;
	cfg.work = PAGING_PROGRAM; /* which? */
	assert_int_equal(paging_run(&cfg, &r), -22);
	cfg.work = PAGING_LOAD;
	cfg.mode = PAGE_TWO_SIDED; /* without a core */
	assert_int_equal(paging_run(&cfg, &r), -22);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_latency),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_ablation),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_freed),
		cmocka_unit_test(test_all_programs),
		cmocka_unit_test(test_pieces_cost_keys),
		cmocka_unit_test(test_same_numbers),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
