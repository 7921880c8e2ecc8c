/* SPDX-License-Identifier: Apache-2.0 */
/* The Prometheus text, byte for byte; promtool has its say in the e2e tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the four above. */
#include <cmocka.h>

#include "base/release.h"
#include "control/ctl_metrics.h"

static void test_text(void **state)
{
	const char *labels[] = {"a", "1", "b", "q\"b\\n\n"};
	struct ctl_metrics m;
	size_t len;
	char *text;

	assert_int_equal(ctl_metrics_init(&m), 0);
	ctl_metrics_one(&m, CTL_METRIC_GAUGE, "x_bytes", "Help \\ \"it\".",
			UINT64_MAX);
	ctl_metrics_family(&m, CTL_METRIC_COUNTER, "y_total", "Two\nlines.");
	ctl_metrics_sample(&m, 7, labels, 2);
	ctl_metrics_sample(&m, 0, labels, 1);
	assert_int_equal(ctl_metrics_end(&m, &text, &len), 0);
	assert_string_equal(text, "# HELP x_bytes Help \\\\ \"it\".\n"
				  "# TYPE x_bytes gauge\n"
				  "x_bytes 18446744073709551615\n"
				  "# HELP y_total Two\\nlines.\n"
				  "# TYPE y_total counter\n"
				  "y_total{a=\"1\",b=\"q\\\"b\\\\n\\n\"} 7\n"
				  "y_total{a=\"1\"} 0\n");
	assert_int_equal(len, strlen(text));
	free(text);
}

static void test_histogram(void **state)
{
	const char *labels[] = {"a", "1"};
	const double bounds[] = {1e-6, 0.5};
	const uint64_t counts[] = {2, 3, 4}, many[] = {UINT64_MAX, 1, 1};
	struct ctl_metrics m;
	size_t len;
	char *text;

	assert_int_equal(ctl_metrics_init(&m), 0);
	ctl_metrics_family(&m, CTL_METRIC_HISTOGRAM, "x_seconds", "Time.");
	ctl_metrics_histogram(&m, bounds, counts, 2, 1.25, labels, 1);
	ctl_metrics_histogram(&m, bounds, many, 2, 0, NULL, 0);
	ctl_metrics_build(&m);
	assert_int_equal(ctl_metrics_end(&m, &text, &len), 0);
	assert_string_equal(text, "# HELP x_seconds Time.\n"
				  "# TYPE x_seconds histogram\n"
				  "x_seconds_bucket{a=\"1\",le=\"1e-06\"} 2\n"
				  "x_seconds_bucket{a=\"1\",le=\"0.5\"} 5\n"
				  "x_seconds_bucket{a=\"1\",le=\"+Inf\"} 9\n"
				  "x_seconds_sum{a=\"1\"} 1.25\n"
				  "x_seconds_count{a=\"1\"} 9\n"
				  "x_seconds_bucket{le=\"1e-06\"} "
				  "18446744073709551615\n"
				  "x_seconds_bucket{le=\"0.5\"} "
				  "18446744073709551615\n"
				  "x_seconds_bucket{le=\"+Inf\"} "
				  "18446744073709551615\n"
				  "x_seconds_sum 0\n"
				  "x_seconds_count 18446744073709551615\n"
				  "# HELP aquifer_build_info What is running "
				  "here; always 1.\n"
				  "# TYPE aquifer_build_info gauge\n"
				  "aquifer_build_info{version=\"" AQ_RELEASE
				  "\"} 1\n");
	free(text);
}

static const char *line_of(const char *text, const char *begin)
{
	const char *at = strstr(text, begin);

	assert_non_null(at);
	return at + strlen(begin);
}

static void a_histogram_adds_up(void **state)
{
	static struct hist h;
	struct ctl_metrics m;
	size_t len;
	char *text;

	hist_init(&h);
	hist_record(&h, 500);		/* below the first limit */
	hist_record_many(&h, 30000, 4); /* 30 us */
	hist_record(&h, 90000000000);	/* beyond the last one */
	assert_int_equal(ctl_metrics_init(&m), 0);
	ctl_metrics_family(&m, CTL_METRIC_HISTOGRAM, "t_seconds", "Time.");
	ctl_metrics_latency(&m, &h, NULL, 0);
	assert_int_equal(ctl_metrics_end(&m, &text, &len), 0);
	assert_int_equal(*line_of(text, "le=\"1e-06\"} "), '1');
	assert_int_equal(*line_of(text, "le=\"2e-05\"} "), '1');
	assert_int_equal(*line_of(text, "le=\"5e-05\"} "), '5');
	assert_int_equal(*line_of(text, "le=\"5\"} "), '5');
	assert_int_equal(*line_of(text, "le=\"+Inf\"} "), '6');
	assert_int_equal(*line_of(text, "t_seconds_count "), '6');
	assert_int_equal(
		strncmp(line_of(text, "t_seconds_sum "), "90.0001205\n", 11),
		0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_histogram),
		cmocka_unit_test(a_histogram_adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
