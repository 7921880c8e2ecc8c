/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer kv`: tables of keys and values in the rack, for people. */
#include <aquifer/kv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli_bytes.h"
#include "cli_kv.h"
#include "cli_list.h"
#include "cli_report.h"

/* ---- options ------------------------------------------------------------ */

/* A number of nodes, or "all". */
static int take_nodes(void *args, const char *word)
{
	struct cli_kv *a = args;

	return opt_count_or_all("--nodes", word, AQ_KV_ALL_NODES - 1,
				AQ_KV_ALL_NODES, &a->options.shards);
}

static int take_grow(void *args, const char *word)
{
	struct cli_kv *a = args;

	if (strcmp(word, "no") == 0)
		a->options.flags |= AQ_KV_FIXED;
	else if (strcmp(word, "auto") == 0)
		a->options.flags &= ~(uint32_t)AQ_KV_FIXED;
	else
		return error_set(-EINVAL, "--grow is auto or no, not '%s'",
				 word);
	return 0;
}

const struct opt cmd_kv_options[] = {
	OPT_U32(struct cli_kv, options.entry_bytes, "entry", "BYTES", 0,
		UINT32_MAX,
		"create, load: bytes of an entry; key and value that fit into "
		"it "
		"less 8 are read in one round trip (default 64)"),
	OPT_U32(struct cli_kv, options.entries_per_row, "row", "N", 0,
		UINT32_MAX, "create, load: entries of a row"),
	OPT_SIZE(struct cli_kv, options.extent_bytes, "extents", "SIZE", 0,
		 1ull << 48,
		 "create, load, resize: memory for larger values (default 4M "
		 "on each node, "
		 "64M with --grow no)"),
	OPT_CALL(take_grow, "grow", "auto|no",
		 "create, load: whether it grows by itself when it gets full "
		 "(default auto)"),
	OPT_SIZE(
		struct cli_kv, options.max_bytes, "max", "SIZE", 0, 1ull << 48,
		"create, load: it grows by itself up to so much memory, copies "
		"included"),
	OPT_U32(struct cli_kv, options.rows_per_lock, "rows-per-lock", "N", 0,
		UINT32_MAX, "create, load: rows that share a lock"),
	OPT_U32(struct cli_kv, options.clients, "clients", "N", 0, UINT32_MAX,
		"create, load: clients at a time"),
	OPT_U32(struct cli_kv, options.failure_ms, "failure", "MS", 0,
		UINT32_MAX,
		"create, load: a client that is silent for so long is dead "
		"(default "
		"1000)"),
	OPT_CHOICE(struct cli_kv, options.hash, "hash",
		   "dependent|block|independent",
		   "create, load: how the second row of a key is found"),
	OPT_TEXT(struct cli_kv, options.node, "node", "NAME",
		 "create, load: on this node"),
	OPT_CALL(take_nodes, "nodes", "N|all",
		 "create, load, resize: spread over so many nodes"),
	OPT_U32(struct cli_kv, options.copies, "copies", "N", 0, UINT32_MAX,
		"create, load, resize: of every part, on different nodes"),
	OPT_SIZE(struct cli_kv, options.capacity, "capacity", "N", 0,
		 1ull << 48, "resize, load: entries"),
	OPT_BITS(struct cli_kv, options.flags, AQ_KV_HOST_LOCKS, "host-locks",
		 "create, load: locks in host memory where the NIC has none "
		 "left"),
	OPT_BITS(struct cli_kv, options.flags, AQ_KV_WORD_LOCKS, "word-locks",
		 "create, load: as on NICs without masked atomics"),
	OPT_FLAG(struct cli_kv, walk, "walk",
		 "get: the memory node walks from the rows to the value"),
	OPT_FLAG(struct cli_kv, keys_only, "keys", "scan: without values"),
	OPT_FLAG(struct cli_kv, merge, "merge",
		 "load: also into a table that has keys"),
	OPT_FLAG(struct cli_kv, repair, "repair",
		 "check: first clean up after clients that are gone"),
	OPT_U64(struct cli_kv, ttl_ms, "ttl", "MS", 0, UINT32_MAX,
		"put: the key ends after so long"),
	OPT_U64(struct cli_kv, count, "count", "N", 0, 1ull << 40,
		"fill: keys (default: nine tenths of the capacity)"),
	OPT_U64(struct cli_kv, value_bytes, "size", "BYTES", 0, AQ_KV_VALUE_MAX,
		"fill: of a value (default 8)"),
	CLI_OPT_TIMEOUT(struct cli_kv),
	OPT_FLAG(struct cli_kv, common.json, "json", "print JSON"),
	OPT_END,
};

/* ---- a table, a client -------------------------------------------------- */

static int open_table(void *args)
{
	struct cli_kv *a = args;
	const struct aq_kv_client_options o = {.flags = a->walk ? AQ_KV_WALK
								: 0};
	int err = aq_kv_open(a->common.rack, a->common.word[0], &a->kv);

	return err ? err : aq_kv_client_open(a->kv, &o, &a->client);
}

static void close_table(void *args)
{
	struct cli_kv *a = args;

	aq_kv_client_close(a->client);
	aq_kv_close(a->kv);
	a->client = NULL;
	a->kv = NULL;
}

static json_t *describe(const struct cli_kv *a)
{
	static const char *const hashes[] = {"dependent", "block",
					     "independent"};
	struct aq_kv_info i;

	aq_kv_get_info(a->kv, &i);
	return json_pack(
		"{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, "
		"s:I, s:b, s:b, s:I, s:I, s:I, s:s, s:I}",
		"table", a->common.word[0], CLI_FIELD(i, capacity), "size",
		(json_int_t)i.size_bytes, CLI_FIELD(i, entry_bytes),
		CLI_FIELD(i, inline_bytes), CLI_FIELD(i, entries_per_row),
		CLI_FIELD(i, row_bytes), CLI_FIELD(i, locks),
		CLI_FIELD(i, extent_bytes), CLI_FIELD(i, rows_per_lock), "hash",
		i.hash < 3 ? hashes[i.hash] : "?", "locality",
		i.locality_milli / 1000.0, CLI_FIELD(i, failure_ms),
		"masked_atomics", i.masked_atomics, "locks_on_device",
		i.locks_on_device, "nodes", (json_int_t)i.shards,
		CLI_FIELD(i, copies), CLI_FIELD(i, generation), "grow",
		i.grows ? "auto" : "no", "max", (json_int_t)i.max_bytes);
}

static int kv_create(void *args)
{
	struct cli_kv *a = args;
	int err;

	a->options.capacity = a->common.size;
	err = aq_kv_create(a->common.rack, a->common.word[0], &a->options,
			   &a->kv);
	return err ? err : cli_report_print(describe(a), a->common.json);
}

static int kv_list(void *args)
{
	const struct cli_kv *a = args;
	json_t *rows = NULL;
	int err = cli_list_tables(a->common.rack, &rows);

	if (!err && a->common.json)
		err = cli_report_print(json_pack("{s:O}", "tables", rows),
				       true);
	else if (!err)
		cli_list_print_tables(rows);
	json_decref(rows);
	return err;
}

static int kv_drop(void *args)
{
	const struct cli_kv *a = args;
	const char *name = a->common.word[0];
	int err = aq_kv_drop(a->common.rack, name);

	return err || !a->common.json
		       ? err
		       : cli_report_print(json_pack("{s:s, s:b}", "table", name,
						    "dropped", 1),
					  true);
}

static int kv_stat(void *args)
{
	const struct cli_kv *a = args;
	struct aq_kv_health h;
	uint64_t count;
	json_t *row;
	int err = aq_kv_get_health(a->client, &h);

	if (err)
		return err;
	row = describe(a);
	/* With a part lost nobody can count. */
	if (!h.shards_lost) {
		err = aq_kv_count(a->client, &count);
		(void)json_object_set_new(row, "keys",
					  json_integer((json_int_t)count));
	}
	(void)json_object_set_new(row, "parts_lost",
				  json_integer(h.shards_lost));
	(void)json_object_set_new(row, "parts_single",
				  json_integer(h.shards_single));
	(void)json_object_set_new(row, "resizing", json_boolean(h.is_growing));
	if (!err)
		return cli_report_print(row, a->common.json);
	json_decref(row);
	return err;
}

static int kv_resize(void *args)
{
	struct cli_kv *a = args;
	int err = aq_kv_resize(a->client, &a->options);

	if (err)
		return err;
	close_table(a); /* it is another one now */
	err = aq_kv_open(a->common.rack, a->common.word[0], &a->kv);
	return err ? err : cli_report_print(describe(a), a->common.json);
}

/* What open clients do by themselves in time, at once. */
static int kv_repair(void *args)
{
	const struct cli_kv *a = args;
	struct aq_kv_health h = {0};
	bool healed = false;
	int err = aq_kv_repair(a->client);

	if (!err)
		err = aq_kv_heal(a->client, &healed);
	if (!err)
		err = aq_kv_get_health(a->client, &h);
	if (err)
		return err;
	return cli_report_print(
		json_pack("{s:s, s:b, s:I, s:I, s:b}", "table",
			  a->common.word[0], "healed", healed, "parts_lost",
			  (json_int_t)h.shards_lost, "parts_single",
			  (json_int_t)h.shards_single, "resizing",
			  h.is_growing),
		a->common.json);
}

/* ---- one key ------------------------------------------------------------ */

static int kv_get(void *args)
{
	const struct cli_kv *a = args;
	const char *key = a->common.word[1];
	size_t len = 1 << 16;
	char *buf = NULL;
	int err;

	do { /* again, if it has grown meanwhile */
		size_t room = len;

		free(buf);
		buf = malloc(room);
		err = buf ? aq_kv_get(a->client, key, strlen(key), buf, room,
				      &len)
			  : -ENOMEM;
	} while (err == -EMSGSIZE);
	if (!err)
		cli_value_print(a->common.json, key, strlen(key), buf, len);
	free(buf);
	return cli_action_key_result(err);
}

static int kv_put(void *args)
{
	const struct cli_kv *a = args;
	const char *key = a->common.word[1], *value = a->common.word[2];
	struct aq_kv_put_options o = {
		.expire_at_ms = a->ttl_ms ? clock_real_ms() + a->ttl_ms : 0};
	bool from_stdin = strcmp(value, "-") == 0;
	char *buf = from_stdin ? malloc(AQ_KV_VALUE_MAX + 1) : NULL;
	size_t len =
		buf ? fread(buf, 1, AQ_KV_VALUE_MAX + 1, stdin) : strlen(value);
	int err = from_stdin && !buf ? -ENOMEM
				     : aq_kv_put(a->client, key, strlen(key),
						 buf ? buf : value, len, &o);

	free(buf);
	if (!err)
		cli_key_done(a->common.json, "stored", key, strlen(key));
	return err;
}

static int kv_del(void *args)
{
	const struct cli_kv *a = args;
	const char *key = a->common.word[1];

	int err = aq_kv_del(a->client, key, strlen(key));

	if (!err)
		cli_key_done(a->common.json, "deleted", key, strlen(key));
	return cli_action_key_result(err);
}

/* ---- the actions -------------------------------------------------------- */

int cmd_kv(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"create", 2, 2, "CAPACITY", CLI_NEEDS_RACK, kv_create,
		 "make a table: NAME CAPACITY"},
		{"list", 0, 0, NULL, CLI_NEEDS_RACK, kv_list,
		 "all tables of this user"},
		{"drop", 1, 1, NULL, CLI_NEEDS_RACK, kv_drop,
		 "remove a table for everybody: NAME"},
		{"stat", 1, 1, NULL, CLI_NEEDS_OPEN, kv_stat,
		 "what a table is: NAME"},
		{"resize", 1, 1, NULL, CLI_NEEDS_OPEN, kv_resize,
		 "another size, while it is used: NAME --capacity N"},
		{"repair", 1, 1, NULL, CLI_NEEDS_OPEN, kv_repair,
		 "make lost copies, clean up after dead clients: NAME"},
		{"get", 2, 2, NULL, CLI_NEEDS_OPEN, kv_get,
		 "print a value: NAME KEY"},
		{"put", 3, 3, NULL, CLI_NEEDS_OPEN, kv_put,
		 "store a value: NAME KEY VALUE|-"},
		{"del", 2, 2, NULL, CLI_NEEDS_OPEN, kv_del,
		 "remove a key: NAME KEY"},
		{"scan", 1, 1, NULL, CLI_NEEDS_OPEN, cli_kv_scan,
		 "all keys and values: NAME"},
		{"fill", 1, 1, NULL, CLI_NEEDS_OPEN, cli_kv_fill,
		 "store numbered keys: NAME"},
		{"check", 1, 1, NULL, CLI_NEEDS_OPEN, cli_kv_check,
		 "verify every invariant: NAME"},
		{"dump", 1, 2, NULL, CLI_NEEDS_OPEN, cli_kv_dump,
		 "all of a table to a file: NAME [FILE|-]"},
		{"load", 1, 2, NULL, CLI_NEEDS_RACK, cli_kv_load,
		 "a table from such a file: NAME [FILE|-]"},
		{0},
	};
	static const struct cli_actions actions = {table, open_table,
						   close_table};
	struct cli_kv a = {.value_bytes = 8};

	return cli_actions_run(self, &actions, argc, argv, &a);
}
