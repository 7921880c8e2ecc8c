/* SPDX-License-Identifier: Apache-2.0 */
/* What people give and get: traces, options, tables, charts, figures. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "edm/edm_figure.h"
#include "edm/edm_golden.h"
#include "edm/edm_sizes.h"

static char *file_with(const char *text)
{
	static char path[64];
	int fd;

	strcpy(path, "/tmp/test_edm_XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	return path;
}

static void test_trace_good(void **state)
{
	char *path = file_with("# comment\n"
			       "0,0,1,64,0.000001\n"
			       "\n"
			       "1,3,2,5840,0.0000020,R\n"
			       "2,2,3,1, 0.000002 ,W\n");
	struct edm_arrival *a;
	uint64_t n = 0;

	assert_int_equal(edm_trace_read(path, 4, &a, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(a[0].at_ps, EDM_US);
	assert_int_equal(a[1].op, EDM_READ);
	assert_int_equal(a[1].bytes, 5840);
	assert_int_equal(a[2].op, EDM_WRITE);
	free(a);
	unlink(path);
}

static void test_trace_bad(void **state)
{
	static const struct {
		const char *text, *where;
	} row[] = {
		{"0,0,1,64\n", ":1: expected"},
		{"0,0,1,64,1,R,9\n", ":1: expected"},
		{"0,0,1,64,1\nx,0,1,64,1\n", ":2: the id"},
		{"0,4,1,64,1\n", ":1: the source"},
		{"0,-1,1,64,1\n", ":1: the source"},
		{"0,0.5,1,64,1\n", ":1: the source"},
		{"0,0,4,64,1\n", ":1: the destination"},
		{"0,1,1,64,1\n", ":1: source and destination"},
		{"0,0,1,0,1\n", ":1: the size"},
		{"0,0,1,1e99,1\n", ":1: the size"},
		{"0,0,1,nan,1\n", ":1: the size"},
		{"0,0,1,64,now\n", ":1: the start"},
		{"0,0,1,64,-1\n", ":1: the start"},
		{"0,0,1,64,2\n1,0,1,64,1\n", ":2: time goes backwards"},
		{"0,0,1,64,1,X\n", ":1: the operation"},
		{"", "no message"},
		{"#\n\n", "no message"},
	};
	struct edm_arrival *a;
	uint64_t n;
	char *path;

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		path = file_with(row[i].text);
		assert_int_equal(edm_trace_read(path, 4, &a, &n), -EINVAL);
		if (!strstr(error_last(), row[i].where))
			fail_msg("%s: %s", row[i].where, error_last());
		unlink(path);
	}
	assert_int_equal(edm_trace_read("/nowhere/at/all", 4, &a, &n), -ENOENT);
}

static void test_trace_line_too_long(void **state)
{
	char text[600];
	struct edm_arrival *a;
	uint64_t n;
	char *path;

	memset(text, '1', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	path = file_with(text);
	assert_int_equal(edm_trace_read(path, 4, &a, &n), -EINVAL);
	assert_non_null(strstr(error_last(), ":1: line too long"));
	unlink(path);
}

/* fgets would have taken the line for one without an end. */
static void test_trace_nul(void **state)
{
	static const char text[] = "0,0,1,64,1\n1,0,1,6\0004,1\n";
	FILE *f = fmemopen((void *)(uintptr_t)text, sizeof(text) - 1, "r");
	struct edm_arrival *a = NULL;
	uint64_t n = 0;

	assert_non_null(f);
	assert_int_equal(edm_trace_parse(f, "t", 4, &a, &n), -EINVAL);
	assert_string_equal(error_last(), "t:2: a NUL in the line");
	assert_null(a);
	fclose(f);
}

static void test_trace_runs(void **state)
{
	char *path = file_with("0,0,1,64,0.000001,W\n1,1,0,64,0.000002,R\n");
	struct edm_result *r = malloc(sizeof(*r));
	struct edm_config c;

	assert_non_null(r);
	edm_config_init(&c);
	c.nodes = 2;
	c.trace = path;
	c.messages = 1; /* is not for traces */
	assert_int_equal(edm_run_all(&c, NULL, r), 0);
	assert_int_equal(r->measured, 2);
	assert_int_equal(r->completed, 2);
	free(r);
	unlink(path);
}

static void test_options(void **state)
{
	static const struct {
		const char *name, *value;
	} bad[] = {
		{"load", "x"},	    {"load", ""},      {"load", "nan"},
		{"nodes", "1.5"},   {"nodes", "-3"},   {"nodes", "99999999999"},
		{"writes", "1.5"},  {"fabric", "tin"}, {"policy", ""},
		{"pim-ns", "1e99"}, {"loss", "2"},     {"unheard-of", "1"},
	};
	struct edm_config c;

	edm_config_init(&c);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(edm_option_set(&c, bad[i].name, bad[i].value),
				 -EINVAL);
		assert_non_null(strstr(error_last(), bad[i].name));
	}
	assert_int_equal(edm_option_set(&c, "fabric", "cxl"), 0);
	assert_int_equal(c.proto, EDM_PROTO_CXL);
	assert_int_equal(edm_option_set(&c, "timer-ns", "2.5"), 0);
	assert_int_equal(c.timer_ps, 2500);
	assert_int_equal(edm_option_set(&c, "writes", "0.25"), 0);
	assert_int_equal(c.write_ppm, 250000);
	assert_int_equal(edm_option_set(&c, "mirror", NULL), 0);
	assert_true(c.mirror);
}

static void test_config_check(void **state)
{
	struct edm_config good, c;

	edm_config_init(&good);
	assert_int_equal(edm_config_check(&good), 0);
#define BAD(change, word)                                         \
	do {                                                      \
		c = good;                                         \
		change;                                           \
		assert_int_equal(edm_config_check(&c), -EINVAL);  \
		assert_non_null(strstr(error_last(), "--" word)); \
	} while (0)
	BAD(c.nodes = 1, "nodes");
	BAD(c.nodes = 1025, "nodes");
	BAD(c.gbps = 33, "gbps");
	BAD(c.chunk_bytes = 4, "chunk");
	BAD(c.active_max = 0, "active");
	BAD(c.load = 0, "load");
	BAD(c.load = 3, "load");
	BAD(c.fixed_bytes = 0, "size");
	BAD(c.write_ppm = 800000; c.rmw_ppm = 300000, "writes");
	BAD(c.messages = 0, "messages");
	BAD(c.loss_ppm = 10, "loss");
	BAD(c.batch_bytes = 512, "batch");
	BAD(c.cxl_credits = 1, "cxl-credits");
	BAD(c.fail_port = 144, "fail-port");
	BAD(c.nodes = 3; c.pattern = EDM_PATTERN_SPLIT, "pattern");
	BAD(c.channels = 0, "channels");
	BAD(c.loss_ppm = 10, "loss: needs --timer-ns");
	BAD(c.read_retries = 201, "retries");
	BAD(c.pim_iterations = 0, "pim-iterations");
	BAD(c.pim_iterations = 65, "pim-iterations");
	BAD(c.pim_iteration_ps = 0, "pim-ns");
	BAD(c.ip_load_ppm = 1000001, "ip-load");
	BAD(c.warmup_ppm = 1000000, "warmup");
	BAD(c.fixed_bytes = (16 << 20) + 1, "size");
	BAD(c.load = NAN, "load");
	BAD(c.mirror_skew_ps = 1, "mirror-skew-ns");
	BAD(c.proto = EDM_PROTO_CXL; c.mirror = true, "mirror");
	BAD(c.proto = EDM_PROTO_IRD; c.timer_ps = 1, "timer-ns");
	BAD(c.proto = EDM_PROTO_PFC; c.fail_switch_ps = 1, "fail-switch-ns");
#undef BAD
}

/* The five distributions' means, as published with their traces. */
static void test_sizes(void **state)
{
	static const double mean[] = {108770, 106288, 109354, 120450, 145708};
	struct edm_config c;

	edm_config_init(&c);
	for (unsigned i = 0; i < ARRAY_LEN(mean); i++) {
		double ratio;

		c.sizes = (enum edm_sizes)(EDM_SIZES_HADOOP + i);
		ratio = edm_sizes_mean(&c) / mean[i];
		assert_true(ratio > 0.995 && ratio < 1.005);
	}
	assert_int_equal(edm_sizes_max(&c), 1216 * 1460);
}

/* A figure's JSON; with o->f.out its picture, too. */
static char *captured(const struct edm_figure_options *o, const char *name)
{
	struct figure_run r;
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	figure_init(&r, &edm_figures, figure_by_name(&edm_figures, name),
		    &o->f);
	assert_int_equal(r.figure->plan(&r), 0);
	assert_int_equal(edm_figures.run(&r), 0);
	figure_judge(&r);
	assert_int_equal(figure_print(&r, f), 0);
	if (o->f.out)
		assert_int_equal(figure_picture(&r, o->f.out), 0);
	figure_release(&r);
	fclose(f);
	return text;
}

static double field(const char *text, const char *row, const char *name)
{
	char key[64];
	const char *at = strstr(text, row);

	assert_non_null(at);
	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(at, key);
	assert_non_null(at);
	return atof(at + strlen(key));
}

static void close_to(double a, double b, double part)
{
	if (a < b * (1 - part) || a > b * (1 + part))
		fail_msg("%g is not near %g", a, b);
}

static void test_figure_6(void **state)
{
	struct edm_figure_options o = {.f = {.jobs = 1, .json = true},
				       .seeds = 1};
	char *text;

	edm_config_init(&o.base);
	text = captured(&o, "6");
	close_to(field(text, "\"A\"", "formula_edm"), 22.98, 0.001);
	close_to(field(text, "\"A\"", "formula_rdma"), 11.84, 0.001);
	close_to(field(text, "\"B\"", "formula_edm"), 7.37, 0.001);
	close_to(field(text, "\"F\"", "formula_rdma"), 9.19, 0.002);
	close_to(field(text, "\"A\"", "both_edm"), 5.87, 0.002);
	close_to(field(text, "\"B\"", "both_rdma"), 2.95, 0.002);
	close_to(field(text, "\"F\"", "both_ratio"), 1.09, 0.005);
	/* Formula and simulation agree where both count all blocks. */
	close_to(field(text, "\"B\"", "sim_edm"),
		 field(text, "\"B\"", "both_edm"), 0.03);
	close_to(field(text, "\"F\"", "sim_edm"),
		 field(text, "\"F\"", "both_edm"), 0.03);
	free(text);
}

/* Simulated, so a seed changes it, and it can leave its bound. */
static void test_figure_7(void **state)
{
	static const char *const row[] = {"100:10", "66:34", "50:50", "34:66",
					  "10:100"};
	struct edm_figure_options o = {
		.f = {.jobs = 1, .json = true}, .messages = 300, .seeds = 1};
	double worst, other, last = 0;
	char *text;

	edm_config_init(&o.base);
	text = captured(&o, "7");
	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		double edm = field(text, row[i], "edm");

		assert_true(edm > last);
		assert_true(field(text, row[i], "rdma") > edm);
		assert_true(field(text, row[i], "cxl") < edm);
		assert_true(field(text, row[i], "edm_sd") > 50);
		last = edm;
	}
	free(text);
	assert_int_equal(edm_figure_7_worst(300, 1, &worst), 0);
	assert_int_equal(edm_figure_7_worst(300, 2, &other), 0);
	assert_true(worst != other);
	assert_true(worst > 1 && worst <= 1.3);
}

static unsigned count(const char *text, const char *word)
{
	unsigned n = 0;

	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

/* Figures that need no cluster. */
static void test_figures_phy(void **state)
{
	struct edm_figure_options o = {.f = {.json = true}, .messages = 50};
	char *text;

	edm_config_init(&o.base);
	text = captured(&o, "table1");
	assert_int_equal(count(text, "\"total_ns\""), 8);
	assert_int_equal(count(text, "\"agrees\":false"), 2);
	assert_non_null(strstr(text, "299.52"));
	assert_non_null(strstr(text, "3779.68"));
	free(text);
	text = captured(&o, "ip");
	assert_int_equal(count(text, "\"ip_carried\""), 45);
	assert_int_equal(count(text, "\"no preemption\""), 9);
	free(text);
	text = captured(&o, "errors");
	assert_int_equal(count(text, "\"phantoms\""), 12);
	free(text);
	o.f.json = false;
	text = captured(&o, "table1");
	assert_non_null(strstr(text, "3.79 us    no"));
	assert_non_null(strstr(text, "measured by the authors"));
	free(text);
	text = captured(&o, "5");
	assert_non_null(strstr(text, "compute"));
	free(text);
}

/* Every figure runs and writes its picture. */
static void test_figures_run(void **state)
{
	static const char *const name[] = {
		"table1",     "5",     "6",	 "7",	 "8a",
		"8a-payload", "8b",    "golden", "ip",	 "ablation",
		"scale",      "fault", "errors", "cross"};
	struct edm_figure_options o = {.f = {.jobs = 2, .json = true},
				       .messages = 400,
				       .long_messages = 16,
				       .seeds = 2};
	char dir[] = "/tmp/test_edm_XXXXXX", path[128];
	char *text;

	assert_non_null(mkdtemp(dir));
	edm_config_init(&o.base);
	o.base.nodes = 8;
	o.f.out = dir;
	for (unsigned i = 0; i < ARRAY_LEN(name); i++) {
		if (!strcmp(name[i], "cross"))
			o.seeds = 1;
		text = captured(&o, name[i]);
		if (!strcmp(name[i], "8a")) {
			assert_non_null(strstr(text, "\"edm literal\""));
			assert_non_null(strstr(text, "\"edm best\""));
			/* Those are of another load. */
			assert_null(strstr(text, "\"golden\":1.35"));
			assert_non_null(strstr(text, "\"timed_own\":1."));
		} else if (!strcmp(name[i], "8a-payload")) {
			assert_non_null(strstr(text, "\"golden\":1.35"));
			assert_non_null(strstr(text, "\"payload\":0.811"));
		} else if (!strcmp(name[i], "8b")) {
			assert_non_null(strstr(text, "\"memcached\""));
		} else if (!strcmp(name[i], "fault")) {
			close_to(field(text, "first switch dies",
				       "undelivered") +
					 1,
				 1, 0);
		} else if (!strcmp(name[i], "ablation") ||
			   !strcmp(name[i], "scale")) {
			assert_non_null(strstr(text, "\"common_ci\":0."));
		} else if (!strcmp(name[i], "cross")) {
			assert_non_null(strstr(text, "\"over_best\":1"));
		}
		free(text);
		snprintf(path, sizeof(path), "%s/edm-%s.svg", dir, name[i]);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(dir), 0);
}

/* The published numbers of EDM, by the published rules. */
static void test_golden(void **state)
{
	static const struct {
		double load, slowdown;
	} row[] = {{0.128, 1.01},
		   {0.299, 1.05},
		   {0.512, 1.17},
		   {0.811, 1.35},
		   {0.896, 1.38}};
	struct edm_golden g;

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		double mean = 0;

		for (uint64_t seed = 1; seed <= 5; seed++) {
			assert_int_equal(
				edm_golden_run(row[i].load, 2000, seed, &g), 0);
			mean += g.slowdown / 5;
			assert_in_range(g.counted, 1700, 2000);
		}
		assert_true(fabs(mean - row[i].slowdown) < 0.05);
	}
	/* Alone: 74 slots. Ten times as many messages: another number. */
	assert_int_equal(edm_golden_run(0.0001, 50, 1, &g), 0);
	assert_true(g.mean_slots == 74);
	assert_int_equal(edm_golden_run(0.811, 20000, 1, &g), 0);
	assert_true(g.slowdown > 2);
}

static void test_picture_unwritable(void **state)
{
	struct edm_figure_options o = {.seeds = 1};
	struct figure_run r;

	edm_config_init(&o.base);
	figure_init(&r, &edm_figures, figure_by_name(&edm_figures, "table1"),
		    &o.f);
	assert_int_equal(r.figure->plan(&r), 0);
	assert_int_equal(figure_picture(&r, "/nowhere/at/all"), -ENOENT);
	assert_non_null(strstr(error_last(), "--out"));
	figure_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trace_good),
		cmocka_unit_test(test_trace_bad),
		cmocka_unit_test(test_trace_line_too_long),
		cmocka_unit_test(test_trace_nul),
		cmocka_unit_test(test_trace_runs),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_config_check),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_figure_6),
		cmocka_unit_test(test_figure_7),
		cmocka_unit_test(test_figures_phy),
		cmocka_unit_test(test_figures_run),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_picture_unwritable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
