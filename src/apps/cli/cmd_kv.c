/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer kv`: tables of keys and values in the rack, for people. */
#include <aquifer/kv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli_kv.h"
#include "cli_report.h"

/* ---- options ------------------------------------------------------------ */

/* A number of nodes, or "all". */
static int take_nodes(void *args, const char *word)
{
	struct cli_kv *a = args;

	return opt_count_or_all("--nodes", word, AQ_KV_ALL_NODES - 1,
				AQ_KV_ALL_NODES, &a->options.shards);
}

const struct opt cmd_kv_options[] = {
	OPT_U32(struct cli_kv, options.entry_bytes, "entry", "BYTES", 0,
		UINT32_MAX,
		"create: bytes of an entry; key and value that fit into it "
		"less 8 are read in one round trip (default 64)"),
	OPT_U32(struct cli_kv, options.entries_per_row, "row", "N", 0,
		UINT32_MAX, "create: entries of a row"),
	OPT_SIZE(struct cli_kv, options.extent_bytes, "extents", "SIZE", 0,
		 1ull << 48, "create: memory for larger values (default 64M)"),
	OPT_U32(struct cli_kv, options.rows_per_lock, "rows-per-lock", "N", 0,
		UINT32_MAX, "create: rows that share a lock"),
	OPT_U32(struct cli_kv, options.clients, "clients", "N", 0, UINT32_MAX,
		"create: clients at a time"),
	OPT_U32(struct cli_kv, options.failure_ms, "failure", "MS", 0,
		UINT32_MAX,
		"create: a client that is silent for so long is dead (default "
		"1000)"),
	OPT_CHOICE(struct cli_kv, options.hash, "hash",
		   "dependent|block|independent",
		   "create: how the second row of a key is found"),
	OPT_TEXT(struct cli_kv, options.node, "node", "NAME",
		 "create: on this node"),
	OPT_CALL(take_nodes, "nodes", "N|all",
		 "create, resize: spread over so many nodes"),
	OPT_U32(struct cli_kv, options.copies, "copies", "N", 0, UINT32_MAX,
		"create, resize: of every part, on different nodes"),
	OPT_SIZE(struct cli_kv, options.capacity, "capacity", "N", 0,
		 1ull << 48, "resize: entries"),
	OPT_BITS(struct cli_kv, options.flags, AQ_KV_HOST_LOCKS, "host-locks",
		 "create: locks in host memory where the NIC has none left"),
	OPT_BITS(struct cli_kv, options.flags, AQ_KV_WORD_LOCKS, "word-locks",
		 "create: as on NICs without masked atomics"),
	OPT_FLAG(struct cli_kv, keys_only, "keys", "scan: without values"),
	OPT_FLAG(struct cli_kv, repair, "repair",
		 "check: first clean up after clients that are gone"),
	OPT_U64(struct cli_kv, ttl_ms, "ttl", "MS", 0, UINT32_MAX,
		"put: the key ends after so long"),
	OPT_U64(struct cli_kv, count, "count", "N", 0, 1ull << 40,
		"fill: keys (default: nine tenths of the capacity)"),
	OPT_U64(struct cli_kv, value_bytes, "size", "BYTES", 0, AQ_KV_VALUE_MAX,
		"fill: of a value (default 8)"),
	OPT_FLAG(struct cli_kv, common.json, "json", "print JSON"),
	OPT_END,
};

/* ---- a table, a client -------------------------------------------------- */

static int open_table(void *args)
{
	struct cli_kv *a = args;
	int err = aq_kv_open(a->common.rack, a->common.word[0], &a->kv);

	return err ? err : aq_kv_client_open(a->kv, NULL, &a->client);
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
		"s:I, s:b, s:b, s:I, s:I, s:I}",
		"table", a->common.word[0], CLI_FIELD(i, capacity), "size",
		(json_int_t)i.size_bytes, CLI_FIELD(i, entry_bytes),
		CLI_FIELD(i, inline_bytes), CLI_FIELD(i, entries_per_row),
		CLI_FIELD(i, row_bytes), CLI_FIELD(i, locks),
		CLI_FIELD(i, extent_bytes), CLI_FIELD(i, rows_per_lock), "hash",
		i.hash < 3 ? hashes[i.hash] : "?", "locality",
		i.locality_milli / 1000.0, CLI_FIELD(i, failure_ms),
		"masked_atomics", i.masked_atomics, "locks_on_device",
		i.locks_on_device, "nodes", (json_int_t)i.shards,
		CLI_FIELD(i, copies), CLI_FIELD(i, generation));
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

static int kv_drop(void *args)
{
	const struct cli_kv *a = args;

	return aq_kv_drop(a->common.rack, a->common.word[0]);
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
		(void)fwrite(buf, 1, len, stdout);
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
	return err;
}

static int kv_del(void *args)
{
	const struct cli_kv *a = args;
	const char *key = a->common.word[1];

	return cli_action_key_result(aq_kv_del(a->client, key, strlen(key)));
}

/* ---- the actions -------------------------------------------------------- */

int cmd_kv(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"create", 2, 2, "CAPACITY", CLI_NEEDS_RACK, kv_create,
		 "make a table: NAME CAPACITY"},
		{"drop", 1, 1, NULL, CLI_NEEDS_RACK, kv_drop,
		 "remove a table for everybody: NAME"},
		{"stat", 1, 1, NULL, CLI_NEEDS_OPEN, kv_stat,
		 "what a table is: NAME"},
		{"resize", 1, 1, NULL, CLI_NEEDS_OPEN, kv_resize,
		 "another size, while it is used: NAME --capacity N"},
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
		{0},
	};
	static const struct cli_actions actions = {table, open_table,
						   close_table};
	struct cli_kv a = {.value_bytes = 8};

	return cli_actions_run(self, &actions, argc, argv, &a);
}
