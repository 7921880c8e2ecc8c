/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer kv`: tables of keys and values in the rack, for people. */
#include <aquifer/kv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli.h"
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
	OPT_FLAG(struct cli_kv, json, "json", "print JSON"),
	OPT_END,
};

/* argv[0] is the verb; `words` is how many have to follow. */
static int parse(int argc, char **argv, int words, struct cli_kv *a)
{
	const char *word[3] = {NULL};
	int code;

	*a = (struct cli_kv){.value_bytes = 8};
	code = cli_parse_verb(cli_command_find(cli_commands, "kv"), argc, argv,
			      words, words, a, word);
	a->name = word[0];
	a->key = word[1];
	a->value = word[2];
	return code;
}

/* ---- the rack, the table, a client -------------------------------------- */

static int finish(struct cli_kv *a, int err)
{
	if (err < 0)
		cli_error("%s (%s)",
			  err == -ENOENT && a->key ? "there is no such key"
						   : aq_last_error(),
			  aq_strerror(err));
	aq_kv_client_close(a->client);
	aq_kv_close(a->kv);
	aq_rack_close(a->rack);
	return err ? CLI_FAILED : CLI_OK;
}

static json_t *describe(const struct cli_kv *a)
{
	static const char *const hashes[] = {"dependent", "block",
					     "independent"};
	struct aq_kv_info i;

	aq_kv_get_info(a->kv, &i);
	return json_pack(
		"{s:s, s:I, s:I, s:i, s:i, s:i, s:i, s:I, s:I, s:i, s:s, s:f, "
		"s:i, s:b, s:b, s:i, s:i, s:i}",
		"table", a->name, "capacity", (json_int_t)i.capacity, "size",
		(json_int_t)i.size_bytes, "entry_bytes", (int)i.entry_bytes,
		"inline_bytes", (int)i.inline_bytes, "entries_per_row",
		(int)i.entries_per_row, "row_bytes", (int)i.row_bytes, "locks",
		(json_int_t)i.locks, "extent_bytes", (json_int_t)i.extent_bytes,
		"rows_per_lock", (int)i.rows_per_lock, "hash",
		i.hash < 3 ? hashes[i.hash] : "?", "locality",
		i.locality_milli / 1000.0, "failure_ms", (int)i.failure_ms,
		"masked_atomics", i.masked_atomics, "locks_on_device",
		i.locks_on_device, "nodes", (int)i.shards, "copies",
		(int)i.copies, "generation", (int)i.generation);
}

static int kv_create(int argc, char **argv)
{
	struct cli_kv a;
	int err, code = parse(argc, argv, 2, &a);

	if (code != CLI_GO)
		return code;
	if (cli_parse_size("CAPACITY", a.key, &a.options.capacity))
		return CLI_USAGE;
	a.key = NULL;
	err = aq_rack_open(NULL, &a.rack);
	if (!err)
		err = aq_kv_create(a.rack, a.name, &a.options, &a.kv);
	if (!err)
		err = cli_report_print(describe(&a), a.json);
	return finish(&a, err);
}

static int kv_drop(int argc, char **argv)
{
	struct cli_kv a;
	int err, code = parse(argc, argv, 1, &a);

	if (code != CLI_GO)
		return code;
	err = aq_rack_open(NULL, &a.rack);
	if (!err)
		err = aq_kv_drop(a.rack, a.name);
	return finish(&a, err);
}

/* With the table and a client of it. `fn` returns 0, -errno, or 1 when it has
 * said itself what is wrong. */
static int with_table(int argc, char **argv, int words,
		      int (*fn)(struct cli_kv *a))
{
	struct cli_kv a;
	int err, code = parse(argc, argv, words, &a);

	if (code != CLI_GO)
		return code;
	err = aq_rack_open(NULL, &a.rack);
	if (!err)
		err = aq_kv_open(a.rack, a.name, &a.kv);
	if (!err)
		err = aq_kv_client_open(a.kv, NULL, &a.client);
	return finish(&a, err ? err : fn(&a));
}

static int stat_table(struct cli_kv *a)
{
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
		return cli_report_print(row, a->json);
	json_decref(row);
	return err;
}

static int resize_table(struct cli_kv *a)
{
	int err = aq_kv_resize(a->client, &a->options);

	if (err)
		return err;
	aq_kv_client_close(a->client); /* it is another one now */
	a->client = NULL;
	aq_kv_close(a->kv);
	a->kv = NULL;
	err = aq_kv_open(a->rack, a->name, &a->kv);
	return err ? err : cli_report_print(describe(a), a->json);
}

/* ---- one key ------------------------------------------------------------ */

static int get_key(struct cli_kv *a)
{
	size_t len = 1 << 16;
	char *buf = NULL;
	int err;

	do { /* again, if it has grown meanwhile */
		size_t room = len;

		free(buf);
		buf = malloc(room);
		err = buf ? aq_kv_get(a->client, a->key, strlen(a->key), buf,
				      room, &len)
			  : -ENOMEM;
	} while (err == -EMSGSIZE);
	if (!err)
		(void)fwrite(buf, 1, len, stdout);
	free(buf);
	return err;
}

static int put_key(struct cli_kv *a)
{
	struct aq_kv_put_options o = {
		.expire_at_ms = a->ttl_ms ? clock_real_ms() + a->ttl_ms : 0};
	bool from_stdin = strcmp(a->value, "-") == 0;
	char *buf = from_stdin ? malloc(AQ_KV_VALUE_MAX + 1) : NULL;
	size_t len = buf ? fread(buf, 1, AQ_KV_VALUE_MAX + 1, stdin)
			 : strlen(a->value);
	int err = from_stdin && !buf
			  ? -ENOMEM
			  : aq_kv_put(a->client, a->key, strlen(a->key),
				      buf ? buf : a->value, len, &o);

	free(buf);
	return err;
}

static int del_key(struct cli_kv *a)
{
	return aq_kv_del(a->client, a->key, strlen(a->key));
}

/* ---- the verbs ---------------------------------------------------------- */

#define VERB(name, words, fn)                             \
	static int name(int argc, char **argv)            \
	{                                                 \
		return with_table(argc, argv, words, fn); \
	}

VERB(kv_stat, 1, stat_table)
VERB(kv_resize, 1, resize_table)
VERB(kv_get, 2, get_key)
VERB(kv_put, 3, put_key)
VERB(kv_del, 2, del_key)
VERB(kv_scan, 1, cli_kv_scan)
VERB(kv_fill, 1, cli_kv_fill)
VERB(kv_check, 1, cli_kv_check)

int cmd_kv(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_entry verbs[] = {
		{"create", kv_create, "make a table: NAME CAPACITY"},
		{"drop", kv_drop, "remove a table for everybody: NAME"},
		{"stat", kv_stat, "what a table is: NAME"},
		{"resize", kv_resize,
		 "another size, while it is used: NAME --capacity N"},
		{"get", kv_get, "print a value: NAME KEY"},
		{"put", kv_put, "store a value: NAME KEY VALUE|-"},
		{"del", kv_del, "remove a key: NAME KEY"},
		{"scan", kv_scan, "all keys and values: NAME"},
		{"fill", kv_fill, "store numbered keys: NAME"},
		{"check", kv_check, "verify every invariant: NAME"},
		{NULL, NULL, NULL},
	};

	return cli_group_run(self, verbs, argc, argv);
}
