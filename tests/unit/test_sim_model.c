/* SPDX-License-Identifier: Apache-2.0 */
/* The host cost model: its published figures, and each resource by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "figures/commands.h"
#include "figures/model_check.h"
#include "figures/model_drive.h"
#include "sim/model_busy.h"
#include "sim/model_limits.h"

/*
 * Rows that the model is known not to reproduce. The published curve of host
 * CAS turns at six requests per queue pair, those of WRITE and of device
 * memory at five; the model has one threshold for all.
 */
static const char *const known_off[] = {"CAS, 120 in flight"};

static bool is_known_off(const char *what)
{
	for (size_t i = 0; i < ARRAY_LEN(known_off); i++)
		if (!strcmp(what, known_off[i]))
			return true;
	return false;
}

static void test_published_figures(void **state)
{
	static const char *const figures[] = {
		"1.1", "1.2", "2.1", "2.2", "2.3", "3.1", "ODRP 10", "ODRP 11"};
	struct model_row rows[MODEL_ROWS_MAX];
	bool seen[ARRAY_LEN(figures)] = {false};
	size_t n = 0;

	(void)state;
	assert_int_equal(model_check_run(&model_connectx5, rows, &n), 0);
	for (size_t i = 0; i < n; i++) {
		enum model_verdict v = model_row_verdict(&rows[i]);

		if ((v == MODEL_OFF) != is_known_off(rows[i].what))
			fail_msg("%s, %s: published %g, model %g",
				 rows[i].figure, rows[i].what,
				 rows[i].published, rows[i].model);
		/* A tolerance that forgives anything would prove nothing. */
		assert_true(rows[i].tolerance <= 0.5);
		for (size_t f = 0; f < ARRAY_LEN(figures); f++)
			seen[f] |= v == MODEL_REPRODUCED &&
				   !strcmp(rows[i].figure, figures[f]);
	}
	for (size_t f = 0; f < ARRAY_LEN(figures); f++)
		if (!seen[f])
			fail_msg("nothing of figure %s", figures[f]);
}

static void test_verdict(void **state)
{
	struct model_row r = {.published = 100, .tolerance = 0.1};

	(void)state;
	r.model = 109;
	assert_int_equal(model_row_verdict(&r), MODEL_REPRODUCED);
	r.model = 111;
	assert_int_equal(model_row_verdict(&r), MODEL_OFF);
	r.model = 89;
	assert_int_equal(model_row_verdict(&r), MODEL_OFF);
	r.model = -1;
	assert_int_equal(model_row_verdict(&r), MODEL_NOT_MODELLED);
}

static void test_wire_bytes(void **state)
{
	struct model_op op = {.kind = MODEL_WRITE, .bytes = 8};
	const struct model_params *p = &model_connectx5;

	(void)state;
	/* 106 B at 100 Gb/s is 8.48 ns: the 117.9 Mops of figure 2.1. */
	assert_int_equal(model_request_bytes(p, &op), 106);
	assert_int_equal(model_response_bytes(p, &op), 86);
	op.kind = MODEL_READ;
	assert_int_equal(model_request_bytes(p, &op), 98);
	assert_int_equal(model_response_bytes(p, &op), 94);
	op.kind = MODEL_CAS;
	assert_int_equal(model_request_bytes(p, &op), 110);
	assert_int_equal(model_response_bytes(p, &op), 94);
	op = (struct model_op){.kind = MODEL_WRITE, .bytes = 3 * 4096};
	assert_int_equal(model_request_bytes(p, &op), 3 * (82 + 4096) + 16);
	op.kind = MODEL_SEND;
	op.bytes = 0;
	assert_int_equal(model_request_bytes(p, &op), 82);
}

static void test_busy(void **state)
{
	static struct model_busy b;
	uint64_t bin = 1ull << MODEL_BUSY_BIN_SHIFT, end = 0, start;

	(void)state;
	memset(&b, 0, sizeof(b));
	/* Work booked for later does not block the time before it. */
	assert_int_equal(model_busy_take(&b, 10 * bin, 1000, &end), 10 * bin);
	assert_int_equal(end, 10 * bin + 1000);
	assert_int_equal(model_busy_take(&b, 5, 1000, &end), 5);
	assert_int_equal(end, 1005);
	/* Longer than a bin, around what is there. */
	start = model_busy_take(&b, 9 * bin, 3 * bin, &end);
	assert_int_equal(start, 9 * bin);
	assert_int_equal(end, 12 * bin + 1000);
	/* Nothing to book costs nothing. */
	assert_int_equal(model_busy_take(&b, 7, 0, &end), 7);
	assert_int_equal(end, 7);
	/* Saturated: the total is exact, also beyond the bins we keep. */
	for (uint32_t i = 0; i < 5000; i++) {
		start = model_busy_take(&b, 100 * bin, bin / 2, &end);
		assert_true(start >= 100 * bin);
	}
	assert_int_equal(end, 100 * bin + 2500 * bin);
}

static struct model_nic *quiet_nic(void)
{
	struct model_params p = model_connectx5;
	struct model_nic *nic = NULL;

	p.stall_every_ps = 0;
	assert_int_equal(model_nic_create(&p, 1, &nic), 0);
	return nic;
}

static uint64_t cas(struct model_nic *nic, uint32_t qpn, uint64_t addr)
{
	struct model_op op = {
		.kind = MODEL_CAS, .bytes = 8, .qpn = qpn, .addr = addr};

	return model_rx_request(nic, &op, 0, NULL);
}

static void test_atomics_exclude(void **state)
{
	struct model_nic *nic = quiet_nic();
	uint64_t first, other, same, alias, plain, waits;
	struct model_op read = {.kind = MODEL_READ, .bytes = 8, .qpn = 9};
	struct model_counters count;

	(void)state;
	first = cas(nic, 1, 64);
	other = cas(nic, 2, 128);
	same = cas(nic, 3, 64);
	alias = cas(nic, 4, 64 + 4096);
	assert_true(other < first + model_connectx5.cas_host_ps / 2);
	assert_int_equal(same, first + model_connectx5.cas_host_ps);
	assert_int_equal(alias, same + model_connectx5.cas_host_ps);
	/* A READ of the word waits for the atomic, one elsewhere does not. */
	read.addr = 4096 + 64;
	waits = model_rx_request(nic, &read, 0, NULL);
	read.qpn = 10;
	read.addr = 3 * 4096;
	plain = model_rx_request(nic, &read, 0, NULL);
	assert_true(waits >= alias);
	assert_true(plain < same);
	model_nic_counters(nic, &count);
	assert_int_equal(count.atomic_waits, 2);
	assert_int_equal(count.ops, 6);
	model_nic_destroy(nic);
}

static void test_order_of_replies(void **state)
{
	enum {
		QPS = 7,
		OPS = 20000
	};
	static const enum model_kind kinds[] = {
		MODEL_READ, MODEL_WRITE, MODEL_SEND, MODEL_CAS, MODEL_FAA};
	struct model_nic *nic = NULL;
	uint64_t last[QPS] = {0}, latest = 0;
	uint32_t crossed = 0, rng = 1;

	(void)state;
	assert_int_equal(model_nic_create(&model_connectx5, 5, &nic), 0);
	for (uint32_t i = 0; i < OPS; i++) {
		rng = rng * 1664525 + 1013904223;
		struct model_op op = {
			.kind = kinds[(rng >> 8) % ARRAY_LEN(kinds)],
			.bytes = 8,
			.qpn = (rng >> 16) % QPS,
			.addr = (rng >> 12) % 64 * 8,
			.in_device = rng >> 31};
		uint64_t seen = 0;
		uint64_t t = model_rx_request(nic, &op, i * 300000ull, &seen);

		assert_true(t > i * 300000ull);
		assert_true(seen >= t);
		/* One queue pair answers in order, several need not. */
		assert_true(t >= last[op.qpn]);
		last[op.qpn] = t;
		crossed += t < latest;
		latest = u64_max(latest, t);
	}
	assert_true(crossed > 0);
	model_nic_destroy(nic);
}

static void test_same_seed(void **state)
{
	struct drive_order a, b, c;
	const struct model_params *p = &model_connectx5;

	(void)state;
	assert_int_equal(drive_reordering(p, 32, 20000, 1000000, 3, &a), 0);
	assert_int_equal(drive_reordering(p, 32, 20000, 1000000, 3, &b), 0);
	assert_int_equal(drive_reordering(p, 32, 20000, 1000000, 4, &c), 0);
	assert_true(a.in_order == b.in_order && a.max_step == b.max_step);
	assert_true(a.in_order != c.in_order);
	/* One queue pair never reorders. */
	assert_int_equal(drive_reordering(p, 1, 20000, 1000000, 3, &a), 0);
	assert_true(a.in_order == 1.0);
	assert_int_equal(a.max_step, 1);
}

static double read_mops(uint32_t qps)
{
	struct drive_config config = {.params = &model_connectx5,
				      .kind = MODEL_READ,
				      .bytes = 16,
				      .qps = qps,
				      .depth = 1,
				      .addrs = 1 << 16,
				      .span_ps = 300000000,
				      .seed = 1};
	struct drive_result result = {0};

	assert_int_equal(drive_closed_loop(&config, &result), 0);
	return result.mops;
}

static void test_qp_contexts(void **state)
{
	double few = read_mops(512), many = read_mops(4096);
	struct model_nic *nic = quiet_nic();
	struct model_op op = {.kind = MODEL_WRITE, .bytes = 8};
	struct model_counters count;

	(void)state;
	/* More queue pairs than contexts: every request may miss. */
	assert_true(few > 80);
	assert_true(many < few / 2);
	/* More queue pairs than the table remembers: no harm. */
	for (uint32_t i = 0; i < 3 * MODEL_QPS_MAX; i++) {
		op.qpn = i;
		(void)model_rx_request(nic, &op, i * 100000ull, NULL);
	}
	model_nic_counters(nic, &count);
	assert_true(count.qp_misses > 2 * MODEL_QPS_MAX);
	model_nic_destroy(nic);
}

static void test_bad_parameters(void **state)
{
	struct model_params p = model_connectx5;
	struct model_nic *nic;
	struct drive_config config = {.params = &model_connectx5,
				      .qps = DRIVE_QPS_MAX + 1,
				      .depth = 1,
				      .addrs = 1,
				      .span_ps = 1};
	struct drive_result result;

	(void)state;
	p.atomic_slots = 0;
	assert_int_equal(model_nic_create(&p, 1, &nic), -EINVAL);
	p = model_connectx5;
	p.atomic_buckets = MODEL_BUCKETS_MAX + 1;
	assert_int_equal(model_nic_create(&p, 1, &nic), -EINVAL);
	p = model_connectx5;
	p.qp_cache = MODEL_CACHE_MAX + 1;
	assert_int_equal(model_nic_create(&p, 1, &nic), -EINVAL);
	assert_int_equal(drive_closed_loop(&config, &result), -EINVAL);
	config.qps = DRIVE_QPS_MAX;
	config.depth = DRIVE_EVENTS_MAX;
	assert_int_equal(drive_closed_loop(&config, &result), -EINVAL);
}

static void test_command(void **state)
{
	char name[] = "nic-model", help[] = "--help", odd[] = "--odd";
	char list[] = "--constants", json[] = "--json";
	char *with_help[] = {name, help, NULL}, *with_odd[] = {name, odd, NULL};
	char *with_list[] = {name, list, json, NULL},
	     *with_json[] = {name, json, NULL};

	(void)state;
	assert_int_equal(model_figure_cmd(2, with_help), 0);
	assert_int_equal(model_figure_cmd(2, with_odd), 2);
	assert_int_equal(model_figure_cmd(3, with_list), 0);
	assert_int_equal(model_figure_cmd(2, with_json), 0);
	assert_int_equal(model_figure_cmd(1, with_help), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_figures),
		cmocka_unit_test(test_verdict),
		cmocka_unit_test(test_wire_bytes),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_atomics_exclude),
		cmocka_unit_test(test_order_of_replies),
		cmocka_unit_test(test_same_seed),
		cmocka_unit_test(test_qp_contexts),
		cmocka_unit_test(test_bad_parameters),
		cmocka_unit_test(test_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
