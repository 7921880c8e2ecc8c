/* SPDX-License-Identifier: Apache-2.0 */
/* Scanning, filling and checking a table. */
#include "cli_kv.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_bytes.h"
#include "cli_report.h"

enum {
	SCAN_ROWS = 256,
	KEY_BYTES = 24,
};

static int show_item(const struct aq_kv_item *item, void *user)
{
	const struct cli_kv *a = user;

	cli_pair_print(a->common.json, item->key, item->key_len, item->value,
		       item->value_len, item->expire_at_ms);
	return cli_output_check();
}

int cli_kv_scan(void *args)
{
	struct cli_kv *a = args;
	uint64_t cursor = 0;
	int err;

	do
		err = aq_kv_scan(a->client, &cursor, SCAN_ROWS,
				 a->keys_only ? AQ_KV_SCAN_KEYS : 0, show_item,
				 a);
	while (!err && cursor);
	return err;
}

int cli_kv_fill(void *args)
{
	const struct cli_kv *a = args;
	struct aq_kv_info info;
	struct aq_kv_stats s;
	uint64_t i, count = a->count;
	uint8_t *value = calloc(1, a->value_bytes + 8);
	char key[KEY_BYTES];
	int err = value ? 0 : -ENOMEM;

	aq_kv_get_info(a->kv, &info);
	if (!count)
		count = info.capacity * 9 / 10;
	for (i = 0; i < count && !err; i++) {
		int len = snprintf(key, sizeof(key), "key:%012llu",
				   (unsigned long long)i);

		memcpy(value, &i, sizeof(i));
		err = aq_kv_put(a->client, key, (size_t)len, value,
				a->value_bytes, NULL);
	}
	free(value);
	if (err && err != -ENOSPC)
		return err;
	aq_kv_client_stats(a->client, &s);
	err = cli_report_print(
		json_pack("{s:s, s:I, s:I, s:I, s:f, s:b}", "table",
			  a->common.word[0], "stored",
			  (json_int_t)(s.inserts + s.updates), "inserted",
			  (json_int_t)s.inserts, "updated",
			  (json_int_t)s.updates, "trips_per_insert",
			  s.inserts ? (double)s.insert_trips / (double)s.inserts
				    : 0.0,
			  "is_full", err == -ENOSPC),
		a->common.json);
	return err;
}

int cli_kv_check(void *args)
{
	const struct cli_kv *a = args;
	struct aq_kv_report r;
	bool good;
	int err = a->repair ? aq_kv_repair(a->client) : 0;

	if (!err)
		err = aq_kv_check(a->client, &r);
	if (err)
		return err;
	good = !r.bad_rows && !r.bad_entries && !r.duplicates &&
	       !r.locks_held && !r.bad_extents && !r.leaked_extents &&
	       !r.shared_extents;
	err = cli_report_print(
		json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
			  "s:I, s:I, s:I, s:I, s:I}",
			  "table", a->common.word[0], "good", good,
			  CLI_FIELD(r, rows), "keys", (json_int_t)r.used,
			  CLI_FIELD(r, expired), "in_extents",
			  (json_int_t)r.extent_entries, CLI_FIELD(r, bad_rows),
			  CLI_FIELD(r, bad_entries), CLI_FIELD(r, duplicates),
			  CLI_FIELD(r, locks_held), CLI_FIELD(r, bad_extents),
			  CLI_FIELD(r, leaked_extents),
			  CLI_FIELD(r, shared_extents),
			  CLI_FIELD(r, count_error), CLI_FIELD(r, clients)),
		a->common.json);
	return err ? err : good ? CLI_OK : CLI_FAILED;
}
