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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
