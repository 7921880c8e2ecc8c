/* SPDX-License-Identifier: Apache-2.0 */
/* A request that ends at once is not waited for. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/http.h"

/* Nobody listens there. The test's own timeout is shorter than this wait. */
static void who_is_refused_need_not_wait_for_others(void **state)
{
	struct client_http_request request = {
		.method = "GET",
		.address = "unix:/nowhere/at/all.sock",
		.path = "/v1/status",
		.timeout_ms = 3600000,
		.max_bytes = 1000,
	};
	struct client_http_reply reply = {0};
	struct client_http_set *set;
	struct client_http *http;
	int err = 0;

	(void)state;
	assert_int_equal(client_http_set_create(&set), 0);
	assert_int_equal(client_http_create(&http), 0);
	assert_int_equal(client_http_set_start(set, http, &request), 0);
	client_http_set_wait(set, 3600000);
	assert_ptr_equal(client_http_set_next(set, &err, &reply), http);
	assert_int_equal(err, -EHOSTDOWN);
	assert_null(client_http_set_next(set, &err, &reply));
	client_http_destroy(http);
	client_http_set_destroy(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_refused_need_not_wait_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
