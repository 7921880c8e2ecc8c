/* SPDX-License-Identifier: Apache-2.0 */
/* Table 1 and Figure 5: every total to 0.01 ns, and where they come from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "edm/edm_timing.h"
#include "edm/latency.h"

/* Computed by hand from the lines of the table. */
static const uint64_t totals_ps[EDM_LAT_STACKS][EDM_LAT_OPS] = {
	[EDM_LAT_TCP] = {3779680, 1889840},
	[EDM_LAT_ROCE] = {2035680, 1017840},
	[EDM_LAT_ETHERNET] = {1114880, 557440},
	[EDM_LAT_EDM] = {299520, 296960},
};

static const uint64_t network_ps[EDM_LAT_STACKS][EDM_LAT_OPS] = {
	[EDM_LAT_TCP] = {3587680, 1793840},
	[EDM_LAT_ROCE] = {1843680, 921840},
	[EDM_LAT_ETHERNET] = {922880, 461440},
	[EDM_LAT_EDM] = {107520, 104960},
};

static void table1_totals(void **state)
{
	struct edm_table1 t;

	edm_table1(&t);
	for (int s = 0; s < EDM_LAT_STACKS; s++)
		for (int op = 0; op < EDM_LAT_OPS; op++) {
			assert_int_equal(t.total_ps[s][op], totals_ps[s][op]);
			assert_int_equal(t.network_ps[s][op],
					 network_ps[s][op]);
		}
}

/* Two totals of the paper do not follow from its own lines. */
static void table1_paper(void **state)
{
	struct edm_table1 t;
	int differ = 0;

	edm_table1(&t);
	for (int s = 0; s < EDM_LAT_STACKS; s++)
		for (int op = 0; op < EDM_LAT_OPS; op++)
			differ += !edm_table1_agrees(&t, s, op);
	assert_int_equal(differ, 2);
	assert_false(edm_table1_agrees(&t, EDM_LAT_TCP, EDM_LAT_READ));
	assert_false(edm_table1_agrees(&t, EDM_LAT_ROCE, EDM_LAT_READ));
}

static void table1_edm_lines(void **state)
{
	struct edm_table1 t;

	edm_table1(&t);
	/* PCS lines: compute 2 and 3 passes, switch 4 and 4, memory 2 and 1. */
	assert_int_equal(t.line[2].cell[EDM_LAT_EDM][0].count, 2);
	assert_int_equal(t.line[2].cell[EDM_LAT_EDM][0].extra_ps, 12800);
	assert_int_equal(t.line[2].cell[EDM_LAT_EDM][1].count, 3);
	assert_int_equal(t.line[2].cell[EDM_LAT_EDM][1].extra_ps, 28160);
	assert_int_equal(t.line[5].cell[EDM_LAT_EDM][0].count, 4);
	assert_int_equal(t.line[5].cell[EDM_LAT_EDM][0].extra_ps, 28160);
	assert_int_equal(t.line[5].cell[EDM_LAT_EDM][1].extra_ps, 28160);
	assert_int_equal(t.line[8].cell[EDM_LAT_EDM][0].count, 2);
	assert_int_equal(t.line[8].cell[EDM_LAT_EDM][0].extra_ps, 25600);
	assert_int_equal(t.line[8].cell[EDM_LAT_EDM][1].count, 1);
	assert_int_equal(t.line[8].cell[EDM_LAT_EDM][1].extra_ps, 7680);
}

static uint64_t total(enum edm_lat_op op, struct edm_lat_config c)
{
	struct edm_lat_path p;
	uint64_t sum = 0;

	assert_int_equal(edm_lat_path(op, &c, &p), 0);
	for (uint32_t i = 0; i < p.stages; i++)
		sum += p.stage[i].ps;
	assert_int_equal(sum, p.total_ps);
	return sum;
}

static void figure5(void **state)
{
	struct edm_lat_config c = {.gbps = 25, .data_bytes = 64};
	struct edm_lat_path p;

	assert_int_equal(total(EDM_LAT_WRITE, c), 296960 + 9 * 2560);
	assert_int_equal(total(EDM_LAT_READ, c), 299520 + (1 + 8) * 2560);
	c.gbps = 100;
	assert_int_equal(total(EDM_LAT_WRITE, c), 296960 + 9 * 640);
	/* The per-block mode takes a block more for the address and the data.
	 */
	c.md = EDM_MD_CONTROL;
	assert_int_equal(total(EDM_LAT_READ, c), 299520 + (2 + 10) * 640);
	/* At 3 GHz the switch's 11 cycles take 3.667 ns. */
	c = (struct edm_lat_config){.gbps = 100, .asic = true};
	assert_int_equal(total(EDM_LAT_READ, c), 299520 - 28160 + 3667);
	c.gbps = 30;
	assert_int_not_equal(edm_lat_path(EDM_LAT_READ, &c, &p), 0);
}

/* The cluster simulation and this model count the same steps. */
static void simulation_agrees(void **state)
{
	static const uint32_t rates[] = {25, 100, 400, 800};

	for (size_t i = 0; i < ARRAY_LEN(rates); i++)
		for (int md = 0; md < 2; md++)
			for (uint32_t bytes = 8; bytes <= 248; bytes += 8) {
				struct edm_lat_config c = {.gbps = rates[i],
							   .data_bytes = bytes,
							   .md = md};
				struct edm_config sim;

				edm_config_init(&sim);
				sim.gbps = rates[i];
				sim.md = md;
				assert_int_equal(edm_timing_alone_ps(
							 &sim, EDM_READ, bytes),
						 total(EDM_LAT_READ, c));
				assert_int_equal(edm_timing_alone_ps(&sim,
								     EDM_WRITE,
								     bytes),
						 total(EDM_LAT_WRITE, c));
			}
}

static void loopback(void **state)
{
	assert_int_equal(edm_lat_loopback_ps(), 154880);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table1_totals),
		cmocka_unit_test(table1_paper),
		cmocka_unit_test(table1_edm_lines),
		cmocka_unit_test(figure5),
		cmocka_unit_test(simulation_agrees),
		cmocka_unit_test(loopback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
