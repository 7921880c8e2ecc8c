/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of the PHY can be made, and both forms say the same. With a number
 * of messages as argument it prints them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "edm/phy_report.h"

static struct edm_load_row loads[EDM_LOAD_ROWS];
static struct edm_error_row errors[EDM_ERROR_ROWS];

static void count_rows(void *owner, unsigned rows_done)
{
	assert_int_equal(++*(unsigned *)owner, rows_done);
}

static void print_all(FILE *f, uint32_t messages)
{
	struct edm_lat_config c = {.gbps = 25, .data_bytes = 64};
	unsigned done = 0;

	edm_table1_print(f);
	assert_int_equal(edm_figure5_print(f, &c), 0);
	assert_int_equal(edm_load_rows(messages, 1, loads, count_rows, &done),
			 0);
	assert_int_equal(done, EDM_LOAD_ROWS);
	edm_load_print(f, loads, edm_block_ps(100));
	done = 0;
	assert_int_equal(
		edm_error_rows(20 * messages, 1, errors, count_rows, &done), 0);
	assert_int_equal(done, EDM_ERROR_ROWS);
	edm_error_print(f, errors);
}

static unsigned count(const char *text, const char *word)
{
	unsigned n = 0;

	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

static void tables(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	print_all(f, 50);
	fclose(f);
	assert_non_null(strstr(text, "299.52"));
	assert_non_null(strstr(text, "3779.68"));
	assert_non_null(strstr(text, "3.79 us*"));
	assert_int_equal(count(text, "no preemption"), 9);
	free(text);
}

static void json(void **state)
{
	struct edm_lat_config c = {.gbps = 100, .data_bytes = 64};
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	struct json_out j;

	assert_non_null(f);
	json_out_init(&j, f);
	json_out_object(&j, NULL);
	edm_table1_json(&j);
	assert_int_equal(edm_figure5_json(&j, &c), 0);
	edm_load_json(&j, loads, edm_block_ps(100));
	edm_error_json(&j, errors);
	json_out_close(&j);
	assert_int_equal(json_out_end(&j), 0);
	fclose(f);
	assert_int_equal(count(text, "\"total_ns\""), 8);
	assert_int_equal(count(text, "\"agrees\":false"), 2);
	assert_int_equal(count(text, "\"ip_carried\""), EDM_LOAD_ROWS);
	assert_int_equal(count(text, "\"phantoms\""), EDM_ERROR_ROWS);
	free(text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables),
		cmocka_unit_test(json),
	};

	if (argc > 1) {
		print_all(stdout, (uint32_t)strtoul(argv[1], NULL, 10));
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
