/* SPDX-License-Identifier: Apache-2.0 */
/* The tables and indexes of a rack, as rows for people and programs. */
#include "cli_list.h"

#include <aquifer/index.h>
#include <aquifer/kv.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli_rack.h"
#include "cli_report.h"

enum {
	NUMBER_BYTES = 24,
};

/* ---- rows --------------------------------------------------------------- */

static json_t *count_or_null(bool is_known, uint64_t count)
{
	return is_known ? json_integer((json_int_t)count) : json_null();
}

static int add_table(const struct aq_kv_listed *t, void *user)
{
	static const char *const words[] = {
		[AQ_KV_WHOLE] = "whole",     [AQ_KV_COPY_LOST] = "copy lost",
		[AQ_KV_PART_LOST] = "lost",  [AQ_KV_DAMAGED] = "damaged",
		[AQ_KV_UNKNOWN] = "unknown",
	};
	json_t *row = json_pack(
		"{s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:b, s:s, "
		"s:I}",
		"table", t->name, "keys", count_or_null(t->has_keys, t->keys),
		CLI_FIELD(*t, capacity), "size", (json_int_t)t->size_bytes,
		"nodes", (json_int_t)t->shards, CLI_FIELD(*t, copies),
		CLI_FIELD(*t, generation), "health", words[t->condition],
		"parts_lost", (json_int_t)t->shards_lost, "parts_single",
		(json_int_t)t->shards_single, "resizing", t->is_resizing,
		"grow", t->grows ? "auto" : "no", "max",
		(json_int_t)t->max_bytes);

	return json_array_append_new(user, row) ? -ENOMEM : 0;
}

static int add_index(const struct aq_index_listed *x, void *user)
{
	static const char *const words[] = {
		[AQ_INDEX_WHOLE] = "whole",
		[AQ_INDEX_DAMAGED] = "damaged",
		[AQ_INDEX_UNKNOWN] = "unknown",
	};
	json_t *row = json_pack(
		"{s:s, s:s, s:o, s:b, s:I, s:i, s:i, s:s}", "index", x->name,
		"kind", x->kind == AQ_INDEX_TREE ? "tree" : "versions", "keys",
		count_or_null(x->has_keys, x->keys), "estimate", x->is_estimate,
		"size", (json_int_t)x->size_bytes, "nodes", 1, "copies", 1,
		"health", words[x->condition]);

	return json_array_append_new(user, row) ? -ENOMEM : 0;
}

int cli_list_tables(struct aq_rack *rack, json_t **rows)
{
	*rows = json_array();
	return *rows ? aq_kv_each(rack, add_table, *rows) : -ENOMEM;
}

int cli_list_indexes(struct aq_rack *rack, json_t **rows)
{
	*rows = json_array();
	return *rows ? aq_index_each(rack, add_index, *rows) : -ENOMEM;
}

/* ---- lines -------------------------------------------------------------- */

static uint64_t number(const json_t *row, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(row, key));

	return n < 0 ? 0 : (uint64_t)n;
}

static const char *text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s ? s : "-";
}

static const char *keys_of(const json_t *row, char out[NUMBER_BYTES])
{
	const json_t *keys = json_object_get(row, "keys");

	if (!json_is_integer(keys))
		return "-";
	snprintf(out, NUMBER_BYTES, "%s%" PRIu64,
		 json_is_true(json_object_get(row, "estimate")) ? "~" : "",
		 number(row, "keys"));
	return out;
}

/* "auto", "no", or how far it grows. */
static const char *grow_of(const json_t *row, char out[16])
{
	const char *grow = text(row, "grow");

	return strcmp(grow, "auto") == 0 && number(row, "max")
		       ? cli_rack_size(number(row, "max"), out)
		       : grow;
}

void cli_list_print_tables(const json_t *rows)
{
	char keys[NUMBER_BYTES], size[16], grow[16];
	const json_t *row;
	size_t i;

	printf("%-28s %10s %10s %8s %6s %6s %6s  %s\n", "TABLE", "KEYS",
	       "CAPACITY", "SIZE", "GROW", "NODES", "COPIES", "HEALTH");
	json_array_foreach(rows, i, row) printf(
		"%-28s %10s %10" PRIu64 " %8s %6s %6" PRIu64 " %6" PRIu64
		"  %s%s\n",
		text(row, "table"), keys_of(row, keys), number(row, "capacity"),
		cli_rack_size(number(row, "size"), size), grow_of(row, grow),
		number(row, "nodes"), number(row, "copies"),
		text(row, "health"),
		json_is_true(json_object_get(row, "resizing")) ? ", resizing"
							       : "");
}

void cli_list_print_indexes(const json_t *rows)
{
	char keys[NUMBER_BYTES], size[16];
	const json_t *row;
	size_t i;

	printf("%-28s %-10s %10s %8s %6s %6s  %s\n", "INDEX", "KIND", "KEYS",
	       "SIZE", "NODES", "COPIES", "HEALTH");
	json_array_foreach(rows, i, row) printf(
		"%-28s %-10s %10s %8s %6" PRIu64 " %6" PRIu64 "  %s\n",
		text(row, "index"), text(row, "kind"), keys_of(row, keys),
		cli_rack_size(number(row, "size"), size), number(row, "nodes"),
		number(row, "copies"), text(row, "health"));
}

/* ---- regions ------------------------------------------------------------ */

bool cli_list_owner(const char *region, char out[CLI_LIST_OWNER_BYTES])
{
	char name[AQ_REGION_NAME_MAX + 1];

	if (aq_kv_owns_region(region, name))
		snprintf(out, CLI_LIST_OWNER_BYTES, "kv %s", name);
	else if (aq_index_owns_region(region, name))
		snprintf(out, CLI_LIST_OWNER_BYTES, "index %s", name);
	else
		return false;
	return true;
}
