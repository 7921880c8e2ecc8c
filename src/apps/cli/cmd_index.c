/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer index`: indexes in the rack, for people. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cli_index.h"
#include "cli_report.h"

/* ---- options ------------------------------------------------------------ */

const struct opt cmd_index_options[] = {
	OPT_CHOICE(struct cli_index, options.kind, "kind", "tree|versions",
		   "create: tree: keys in order (default); versions: numbers, "
		   "in no order, whose writes append"),
	OPT_U32(struct cli_index, options.value_max, "value", "BYTES", 0,
		UINT32_MAX,
		"create: bytes that values may have (default 32, or 128)"),
	OPT_U32(struct cli_index, options.clients, "clients", "N", 0,
		UINT32_MAX, "create: clients at a time"),
	OPT_U32(struct cli_index, options.failure_ms, "failure", "MS", 0,
		UINT32_MAX,
		"create: a client that is silent for so long is dead (default "
		"1000)"),
	OPT_TEXT(struct cli_index, options.node, "node", "NAME",
		 "create: on this node"),
	OPT_SIZE(struct cli_index, options.size_bytes, "memory", "SIZE", 0,
		 1ull << 48, "tree: its memory (default 64M)"),
	OPT_U32(struct cli_index, options.key_max, "key", "BYTES", 0,
		UINT32_MAX,
		"tree: bytes that keys may have, up to 64 (default 32)"),
	OPT_U32(struct cli_index, options.node_bytes, "node-bytes", "BYTES", 0,
		UINT32_MAX, "tree: of a node (default 1024)"),
	OPT_U32(struct cli_index, options.locks, "locks", "N", 0, UINT32_MAX,
		"tree: lock words"),
	OPT_BITS(struct cli_index, options.flags, AQ_INDEX_HOST_LOCKS,
		 "host-locks",
		 "tree: locks in host memory where the NIC has none left"),
	OPT_BITS(struct cli_index, options.flags, AQ_INDEX_SWITCH_LOCKS,
		 "switch-locks",
		 "tree: locks that the rack's switch decides on"),
	OPT_SIZE(struct cli_index, options.keys, "room", "KEYS", 0, 1ull << 48,
		 "versions: keys that there is room for"),
	OPT_TEXT(struct cli_index, from, "from", "KEY", "scan: the first key"),
	OPT_TEXT(struct cli_index, to, "to", "KEY",
		 "scan: the first key that is not wanted"),
	OPT_FLAG(struct cli_index, keys_only, "keys", "scan: without values"),
	OPT_U64(struct cli_index, count, "count", "N", 0, 1ull << 40,
		"scan, fill: so many keys"),
	OPT_U64(struct cli_index, value_bytes, "size", "BYTES", 0,
		AQ_INDEX_VALUE_MAX, "fill: of a value (default 8)"),
	OPT_U32(struct cli_index, threads, "threads", "N", 0,
		CLI_INDEX_THREADS_MAX, "fill: at a time"),
	OPT_FLAG(struct cli_index, json, "json", "print JSON"),
	OPT_END,
};

/* argv[0] is the verb; `words` is how many have to follow. */
static int parse(int argc, char **argv, int words, struct cli_index *a)
{
	const char *word[3] = {NULL};
	int code;

	*a = (struct cli_index){.value_bytes = 8};
	code = cli_parse_verb(cli_command_find(cli_commands, "index"), argc,
			      argv, words, words, a, word);
	a->name = word[0];
	a->key = word[1];
	a->value = word[2];
	return code;
}

/* ---- the rack, the index, a client -------------------------------------- */

static int begin(struct cli_index *a)
{
	struct aq_index_info info;
	int err = aq_rack_open(NULL, &a->rack);

	if (!err)
		err = aq_index_open(a->rack, a->name, &a->index);
	if (!err)
		err = aq_index_client_open(a->index, NULL, &a->client);
	if (!err) {
		aq_index_get_info(a->index, &info);
		a->kind = (enum aq_index_kind)info.kind;
	}
	return err;
}

static int finish(struct cli_index *a, int err)
{
	if (err < 0)
		cli_error("%s (%s)",
			  err == -ENOENT && a->client ? "there is no such key"
						      : aq_last_error(),
			  aq_strerror(err));
	aq_index_client_close(a->client);
	aq_index_close(a->index);
	aq_rack_close(a->rack);
	return err ? CLI_FAILED : CLI_OK;
}

static json_t *describe(const struct cli_index *a)
{
	struct aq_index_info i;

	aq_index_get_info(a->index, &i);
	if (i.kind == AQ_INDEX_VERSIONS)
		return json_pack("{s:s, s:s, s:I, s:i, s:I, s:i, s:i}", "index",
				 a->name, "kind", "versions", "size",
				 (json_int_t)i.size_bytes, "value_max",
				 (int)i.value_max, "versions",
				 (json_int_t)i.nodes, "clients", (int)i.clients,
				 "failure_ms", (int)i.failure_ms);
	return json_pack(
		"{s:s, s:s, s:I, s:i, s:i, s:i, s:i, s:i, s:I, s:i, "
		"s:b, s:b, s:i, s:i}",
		"index", a->name, "kind", "tree", "size",
		(json_int_t)i.size_bytes, "key_max", (int)i.key_max,
		"value_max", (int)i.value_max, "node_bytes", (int)i.node_bytes,
		"entries_per_leaf", (int)i.entries_per_leaf,
		"entries_per_inner", (int)i.entries_per_inner, "nodes",
		(json_int_t)i.nodes, "locks", (int)i.locks, "locks_on_device",
		i.locks_on_device, "locks_at_switch", i.locks_at_switch,
		"clients", (int)i.clients, "failure_ms", (int)i.failure_ms);
}

static int index_create(int argc, char **argv)
{
	struct cli_index a;
	int err, code = parse(argc, argv, 1, &a);

	if (code != CLI_GO)
		return code;
	err = aq_rack_open(NULL, &a.rack);
	if (!err)
		err = aq_index_create(a.rack, a.name, &a.options, &a.index);
	if (!err)
		err = cli_report_print(describe(&a), a.json);
	return finish(&a, err);
}

static int index_drop(int argc, char **argv)
{
	struct cli_index a;
	int err, code = parse(argc, argv, 1, &a);

	if (code != CLI_GO)
		return code;
	err = aq_rack_open(NULL, &a.rack);
	if (!err)
		err = aq_index_drop(a.rack, a.name);
	return finish(&a, err);
}

static int show(struct cli_index *a)
{
	return cli_report_print(describe(a), a->json);
}

/* ---- one key ------------------------------------------------------------ */

static int get_one(struct cli_index *a, const uint8_t *key, size_t key_len)
{
	char *buf = malloc(AQ_INDEX_VALUE_MAX * 2);
	size_t len = 0;
	int err = buf ? aq_index_get(a->client, key, key_len, buf,
				     AQ_INDEX_VALUE_MAX * 2, &len)
		      : -ENOMEM;

	if (!err)
		(void)fwrite(buf, 1, len, stdout);
	free(buf);
	return err;
}

static int put_one(struct cli_index *a, const uint8_t *key, size_t key_len)
{
	return aq_index_put(a->client, key, key_len, a->value,
			    strlen(a->value));
}

static int del_one(struct cli_index *a, const uint8_t *key, size_t key_len)
{
	return aq_index_del(a->client, key, key_len);
}

static int run_one(int argc, char **argv, int words,
		   int (*fn)(struct cli_index *a, const uint8_t *key,
			     size_t key_len))
{
	uint8_t key[AQ_INDEX_KEY_MAX];
	struct cli_index a;
	size_t len;
	int err, code = parse(argc, argv, words, &a);

	if (code != CLI_GO)
		return code;
	err = begin(&a);
	if (!err && cli_index_key(&a, a.key, key, &len)) {
		(void)finish(&a, 0);
		return CLI_USAGE;
	}
	return finish(&a, err ? err : fn(&a, key, len));
}

static int index_get(int argc, char **argv)
{
	return run_one(argc, argv, 2, get_one);
}

static int index_put(int argc, char **argv)
{
	return run_one(argc, argv, 3, put_one);
}

static int index_del(int argc, char **argv)
{
	return run_one(argc, argv, 2, del_one);
}

/* ---- all of it ---------------------------------------------------------- */

static int run_whole(int argc, char **argv, int (*fn)(struct cli_index *a))
{
	struct cli_index a;
	int err, code = parse(argc, argv, 1, &a);

	if (code != CLI_GO)
		return code;
	err = begin(&a);
	return finish(&a, err ? err : fn(&a));
}

static int index_stat(int argc, char **argv)
{
	return run_whole(argc, argv, show);
}

static int index_scan(int argc, char **argv)
{
	return run_whole(argc, argv, cli_index_scan);
}

static int index_fill(int argc, char **argv)
{
	return run_whole(argc, argv, cli_index_fill);
}

static int index_check(int argc, char **argv)
{
	return run_whole(argc, argv, cli_index_check);
}

int cmd_index(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_entry verbs[] = {
		{"create", index_create, "make an index: NAME"},
		{"drop", index_drop, "remove an index for everybody: NAME"},
		{"stat", index_stat, "what an index is: NAME"},
		{"get", index_get, "print a value: NAME KEY"},
		{"put", index_put, "store a value: NAME KEY VALUE"},
		{"del", index_del, "remove a key: NAME KEY"},
		{"scan", index_scan, "keys and values in their order: NAME"},
		{"fill", index_fill, "store and read numbered keys: NAME"},
		{"check", index_check, "verify every invariant: NAME"},
		{NULL, NULL, NULL},
	};

	return cli_group_run(self, verbs, argc, argv);
}
