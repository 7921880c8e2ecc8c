/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points of figures: every way to read gets the right bytes, the same seed
 * gives the same numbers, and the order of the ways is what it must be.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "figures/figures.h"
#include "figures/offload_costs.h"
#include "sim/model.h"
#include "sim/sim.h"

static struct fig_result run(enum fig_device device, uint32_t threads,
			     uint32_t bytes, bool burst)
{
	struct fig_config c = {.device = device,
			       .threads = threads,
			       .bytes = bytes,
			       .depth = burst ? 20 : 0,
			       .burst = burst,
			       .flush_ns = 2000,
			       .probe_ns = 500,
			       .far_ppm = 950000,
			       .app_ps = offload_costs.probe_ps,
			       .warm_ps = 60 * SIM_US,
			       .span_ps = 120 * SIM_US,
			       .seed = 7};
	struct fig_result r;

	assert_int_equal(fig_run(&c, &r), 0);
	assert_int_equal(r.wrong, 0);
	assert_in_range(r.requests, 40, UINT64_MAX);
	return r;
}

static void test_ways(void **state)
{
	double mops[FIG_DEVICES];

	(void)state;
	for (unsigned d = 0; d < FIG_DEVICES; d++)
		mops[d] = run((enum fig_device)d, 2, 64, false).mops;
	assert_true(mops[FIG_LOCAL] > mops[FIG_COW]);
	assert_true(mops[FIG_LOCAL] > mops[FIG_ASYNC]);
	assert_true(mops[FIG_ASYNC] > 5 * mops[FIG_SYNC]);
	assert_true(mops[FIG_ASYNC] > 5 * mops[FIG_TWO_SIDED]);
	assert_true(mops[FIG_TWO_SIDED] > mops[FIG_BLOCKING]);
}

/*
 * One price list: READs in lists cost their caller a doorbell and a completion
 * per queue pair, each alone a doorbell and a completion, and a request of the
 * rings what was measured, or its code alone.
 */
static void test_prices(void **state)
{
	struct fig_config c = {.device = FIG_ASYNC,
			       .threads = 1,
			       .bytes = 64,
			       .depth = 100,
			       .burst = true,
			       .flush_ns = 2000,
			       .probe_ns = 500,
			       .far_ppm = 1000000,
			       .warm_ps = 60 * SIM_US,
			       .span_ps = 120 * SIM_US,
			       .seed = 7};
	const double each = (double)(model_connectx5.cpu_post_ps +
				     model_connectx5.cpu_poll_ps) /
			    1000;
	struct fig_result list, alone, ring, warm, other;

	assert_int_equal(fig_run(&c, &list), 0);
	c.batch = 1;
	assert_int_equal(fig_run(&c, &alone), 0);
	c.batch = 0;
	c.device = FIG_COW;
	assert_int_equal(fig_run(&c, &ring), 0);
	c.is_warm = true;
	assert_int_equal(fig_run(&c, &warm), 0);
	c.is_warm = false;
	c.client_ps = 200000;
	assert_int_equal(fig_run(&c, &other), 0);
	/* Four lists of 25. */
	assert_true(fabs(list.caller_ns - (double)offload_costs.wqe_ps / 1000 -
			 each / 25) < 1);
	assert_true(fabs(ring.caller_ns -
			 (double)offload_costs.ring_client_ps / 1000) < 2);
	assert_true(warm.caller_ns < 0.5 * ring.caller_ns);
	assert_true(fabs(other.caller_ns - 200) < 8);
	assert_true(fabs(ring.issue_ns + ring.poll_ns - ring.caller_ns) < 0.01);
}

/* A seed changes what is drawn. */
static void test_seed(void **state)
{
	struct fig_config c = {.device = FIG_ASYNC,
			       .threads = 2,
			       .bytes = 64,
			       .far_ppm = 950000,
			       .app_ps = offload_costs.probe_ps,
			       .warm_ps = 30 * SIM_US,
			       .span_ps = 60 * SIM_US,
			       .seed = 1};
	struct fig_result a, b;

	assert_int_equal(fig_run(&c, &a), 0);
	c.seed = 2;
	assert_int_equal(fig_run(&c, &b), 0);
	assert_true(a.mops != b.mops || a.wire_bytes != b.wire_bytes);
}

/* What the program of the switch sends, by its options. */
static void test_program(void **state)
{
	struct fig_config c = {.device = FIG_SWITCH,
			       .threads = 2,
			       .bytes = 64,
			       .far_ppm = 950000,
			       .app_ps = offload_costs.probe_ps,
			       .warm_ps = 60 * SIM_US,
			       .span_ps = 120 * SIM_US,
			       .seed = 7};
	struct fig_result batched, each, mixed, filtered;

	assert_int_equal(fig_run(&c, &batched), 0);
	c.program.tell = c.program.fetch = 1;
	assert_int_equal(fig_run(&c, &each), 0);
	c.program = (struct fig_program){.no_filter = true};
	c.write_ppm = 500000;
	assert_int_equal(fig_run(&c, &mixed), 0);
	c.program.no_filter = false;
	assert_int_equal(fig_run(&c, &filtered), 0);
	assert_int_equal(
		batched.wrong + each.wrong + mixed.wrong + filtered.wrong, 0);
	/* A network without faults. */
	assert_int_equal(batched.lost + each.lost, 0);
	/* A record and its acknowledgement; each alone also a fetch, its
	 * answer, and what tells of it. */
	assert_true(batched.nic_packets >= 2 && batched.nic_packets < 2.5);
	assert_true(each.nic_packets > 4);
	assert_true(each.told > 4 * batched.told);
	/* A READ and a WRITE for each; some are caused by one packet. */
	assert_true(batched.program_packets >= 2 && batched.recirculated > 0);
	assert_true(filtered.mops > 2 * mixed.mops);
}

/* TCP beside four threads, whose requests are fetched and told one by one. */
static struct fig_config beside_tcp(enum fig_device device, bool rdma_first,
				    uint32_t nic_mpps)
{
	return (struct fig_config){.device = device,
				   .threads = 4,
				   .bytes = 512,
				   .engines = 4,
				   .flush_ns = 2000,
				   .probe_ns = 500,
				   .program = {.tell = 1, .fetch = 1},
				   .far_ppm = 733000,
				   .app_ps = offload_costs.store_512_ps,
				   .has_record = true,
				   .is_warm = true,
				   .tcp = true,
				   .rdma_first = rdma_first,
				   .nic_mpps = nic_mpps,
				   .warm_ps = 300 * SIM_US,
				   .span_ps = 60 * SIM_US,
				   .seed = 7};
}

static struct fig_result run_tcp(const struct fig_config *c)
{
	struct fig_result r;

	assert_int_equal(fig_run(c, &r), 0);
	assert_int_equal(r.wrong, 0);
	return r;
}

/* RDMA that goes first takes nothing as long as the NIC takes enough packets
 * for both, and all where it does not. */
static void test_tcp_nic(void **state)
{
	struct fig_config free = beside_tcp(FIG_SWITCH, true, 0);
	struct fig_config shared = beside_tcp(FIG_SWITCH, false, 50);
	struct fig_config both = beside_tcp(FIG_SWITCH, true, 50);
	struct fig_config spot = beside_tcp(FIG_COW, true, 50);
	struct fig_result a = run_tcp(&free), b = run_tcp(&shared);

	assert_true(a.tcp_gbps > 23 && b.tcp_gbps > 23);
	assert_true(b.mops < 0.9 * a.mops);
	assert_true(run_tcp(&both).tcp_gbps < 3);
	assert_true(run_tcp(&spot).tcp_gbps > 23);
}

/* Where the wire to the machine is full, acknowledgements do not come. */
static void test_tcp_wire(void **state)
{
	struct fig_config first = beside_tcp(FIG_SWITCH, true, 0), shared, acks;

	first.threads = 8;
	acks = shared = first;
	shared.rdma_first = false;
	acks.acks_first = true;
	assert_true(run_tcp(&first).tcp_gbps < 3);
	assert_true(run_tcp(&shared).tcp_gbps > 23);
	assert_true(run_tcp(&acks).tcp_gbps > 23);
}

static void test_same_numbers(void **state)
{
	struct fig_result a = run(FIG_COW, 3, 256, false);
	struct fig_result b = run(FIG_COW, 3, 256, false);

	(void)state;
	assert_int_equal(a.requests, b.requests);
	assert_true(a.p99_us == b.p99_us && a.wire_bytes == b.wire_bytes);
}

static void test_latency(void **state)
{
	struct fig_result r = run(FIG_COW, 1, 64, true);

	(void)state;
	assert_true(r.p50_us > 2 && r.p50_us <= r.p99_us && r.p99_us < 60);
}

static void test_bad_config(void **state)
{
	struct fig_config c = {.threads = FIG_THREADS_MAX + 1, .bytes = 8};
	struct fig_result r;

	(void)state;
	assert_int_equal(fig_run(&c, &r), -22);
	c.threads = 1;
	c.bytes = 0;
	assert_int_equal(fig_run(&c, &r), -22);
	c.bytes = 8;
	c.depth = FIG_DEPTH_MAX + 1;
	assert_int_equal(fig_run(&c, &r), -22);
	assert_null(figure_by_name(&offload_figures, "7"));
}

/* A whole small figure: the switch's tables, and runs that it rests on. */
static void test_figure(void **state)
{
	struct figure_run r;
	double kib = 0;

	figure_init(&r, &offload_figures,
		    figure_by_name(&offload_figures, "table5"),
		    offload_figures.defaults);
	assert_int_equal(r.figure->plan(&r), 0);
	assert_int_equal(figure_points_run(&r), 0);
	figure_judge(&r);
	/* SRAM, stages, then recirculations in two runs. */
	assert_int_equal(r.verdicts, 4);
	assert_true(r.verdict[2].ours > 0 && r.verdict[3].ours > 0);
	for (size_t i = 0; i < r.count; i++) {
		const struct offload_row *row = figure_row(&r, i);

		assert_int_equal(row->p.err, 0);
		assert_true(row->table.name ? row->table.kib > 0
					    : row->res.mops > 1);
		kib += row->table.kib;
	}
	assert_true(r.verdict[0].ours == kib);
	figure_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_prices),
		cmocka_unit_test(test_seed),
		cmocka_unit_test(test_program),
		cmocka_unit_test(test_tcp_nic),
		cmocka_unit_test(test_tcp_wire),
		cmocka_unit_test(test_same_numbers),
		cmocka_unit_test(test_latency),
		cmocka_unit_test(test_bad_config),
		cmocka_unit_test(test_figure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
