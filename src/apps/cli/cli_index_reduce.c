/* SPDX-License-Identifier: Apache-2.0 */
/* Adding up a range of an index: one number, or all of them as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli_index.h"
#include "cli_report.h"

static int reduce(const struct cli_index *a, uint32_t flags,
		  struct aq_index_reduced *out)
{
	const struct aq_index_range range = {
		.from = a->from,
		.from_len = a->from ? strlen(a->from) : 0,
		.to = a->to,
		.to_len = a->to ? strlen(a->to) : 0};

	return aq_index_reduce(a->client, &range, flags, out);
}

/* The number, or the same as JSON with the keys that it is of. */
static int print(const struct cli_index *a, const char *name, int64_t number,
		 uint64_t keys)
{
	struct aq_index_stats s;

	if (!a->common.json) {
		printf("%" PRId64 "\n", number);
		return 0;
	}
	aq_index_client_stats(a->client, &s);
	return cli_report_print(
		json_pack("{s:s, s:I, s:I, s:I, s:I}", "index",
			  a->common.word[0], "keys", (json_int_t)keys, name,
			  (json_int_t)number, CLI_FIELD(s, walks), "trips",
			  (json_int_t)s.scan_trips),
		true);
}

int cli_index_count(void *args)
{
	const struct cli_index *a = args;
	struct aq_index_reduced r;
	int err = reduce(a, AQ_INDEX_COUNT, &r);

	return err ? err : print(a, "count", (int64_t)r.count, r.count);
}

int cli_index_sum(void *args)
{
	const struct cli_index *a = args;
	struct aq_index_reduced r;
	int err = reduce(a, 0, &r);

	if (err)
		return err;
	if (r.sum_is_cut) {
		cli_error("the sum needs more than 64 bits");
		return CLI_FAILED;
	}
	return print(a, "sum", r.sum, r.count);
}

/* There is no least or greatest of nothing. */
static int extreme(const struct cli_index *a, const char *name)
{
	struct aq_index_reduced r;
	int err = reduce(a, 0, &r);

	if (err)
		return err;
	if (!r.count) {
		cli_error("there is no key in the range");
		return CLI_FAILED;
	}
	return print(a, name, strcmp(name, "min") == 0 ? r.min : r.max,
		     r.count);
}

int cli_index_min(void *args)
{
	return extreme(args, "min");
}

int cli_index_max(void *args)
{
	return extreme(args, "max");
}
