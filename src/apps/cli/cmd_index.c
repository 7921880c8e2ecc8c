/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer index`: indexes in the rack, for people. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_bytes.h"
#include "cli_index.h"
#include "cli_list.h"
#include "cli_report.h"

/* ---- options ------------------------------------------------------------ */

const struct opt cmd_index_options[] = {
	OPT_CHOICE(struct cli_index, options.kind, "kind", "tree|versions",
		   "create, load: tree: keys in order (default); versions: "
		   "numbers, "
		   "in no order, whose writes append"),
	OPT_U32(struct cli_index, options.value_max, "value", "BYTES", 0,
		UINT32_MAX,
		"create, load: bytes that values may have (default 32, or "
		"128)"),
	OPT_U32(struct cli_index, options.clients, "clients", "N", 0,
		UINT32_MAX, "create, load: clients at a time"),
	OPT_U32(struct cli_index, options.failure_ms, "failure", "MS", 0,
		UINT32_MAX,
		"create, load: a client that is silent for so long is dead "
		"(default "
		"1000)"),
	OPT_TEXT(struct cli_index, options.node, "node", "NAME",
		 "create, load: on this node"),
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
	OPT_TEXT(struct cli_index, from, "from", "KEY",
		 "scan, count, sum, min, max: the first key"),
	OPT_TEXT(struct cli_index, to, "to", "KEY",
		 "scan, count, sum, min, max: the first key that is not "
		 "wanted"),
	OPT_FLAG(struct cli_index, walk, "walk",
		 "get: the memory node walks from the root to the leaf"),
	OPT_FLAG(struct cli_index, keys_only, "keys", "scan: without values"),
	OPT_FLAG(struct cli_index, merge, "merge",
		 "load: also into an index that has keys"),
	OPT_U64(struct cli_index, count, "count", "N", 0, 1ull << 40,
		"scan, fill: so many keys"),
	OPT_U64(struct cli_index, value_bytes, "size", "BYTES", 0,
		AQ_INDEX_VALUE_MAX, "fill: of a value (default 8)"),
	OPT_U32(struct cli_index, threads, "threads", "N", 0,
		CLI_INDEX_THREADS_MAX, "fill: at a time"),
	CLI_OPT_TIMEOUT(struct cli_index),
	OPT_FLAG(struct cli_index, common.json, "json", "print JSON"),
	OPT_END,
};

/* ---- an index, a client ------------------------------------------------- */

static int open_index(void *args)
{
	struct cli_index *a = args;
	const struct aq_index_client_options o = {
		.flags = a->walk ? AQ_INDEX_WALK : 0};
	struct aq_index_info info;
	int err = aq_index_open(a->common.rack, a->common.word[0], &a->index);

	if (!err)
		err = aq_index_client_open(a->index, &o, &a->client);
	if (!err) {
		aq_index_get_info(a->index, &info);
		a->kind = (enum aq_index_kind)info.kind;
	}
	return err;
}

static void close_index(void *args)
{
	struct cli_index *a = args;

	aq_index_client_close(a->client);
	aq_index_close(a->index);
}

static int index_stat(void *args)
{
	const struct cli_index *a = args;
	const char *name = a->common.word[0];
	struct aq_index_info i;
	json_t *row;

	aq_index_get_info(a->index, &i);
	if (i.kind == AQ_INDEX_VERSIONS)
		row = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "index",
				name, "kind", "versions", "size",
				(json_int_t)i.size_bytes,
				CLI_FIELD(i, value_max), "versions",
				(json_int_t)i.nodes, CLI_FIELD(i, clients),
				CLI_FIELD(i, failure_ms));
	else
		row = json_pack(
			"{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
			"s:b, s:b, s:I, s:I}",
			"index", name, "kind", "tree", "size",
			(json_int_t)i.size_bytes, CLI_FIELD(i, key_max),
			CLI_FIELD(i, value_max), CLI_FIELD(i, node_bytes),
			CLI_FIELD(i, entries_per_leaf),
			CLI_FIELD(i, entries_per_inner), CLI_FIELD(i, nodes),
			CLI_FIELD(i, locks), "locks_on_device",
			i.locks_on_device, "locks_at_switch", i.locks_at_switch,
			CLI_FIELD(i, clients), CLI_FIELD(i, failure_ms));
	return cli_report_print(row, a->common.json);
}

static int index_create(void *args)
{
	struct cli_index *a = args;
	int err = aq_index_create(a->common.rack, a->common.word[0],
				  &a->options, &a->index);

	return err ? err : index_stat(a);
}

static int index_list(void *args)
{
	const struct cli_index *a = args;
	json_t *rows = NULL;
	int err = cli_list_indexes(a->common.rack, &rows);

	if (!err && a->common.json)
		err = cli_report_print(json_pack("{s:O}", "indexes", rows),
				       true);
	else if (!err)
		cli_list_print_indexes(rows);
	json_decref(rows);
	return err;
}

static int index_drop(void *args)
{
	const struct cli_index *a = args;
	const char *name = a->common.word[0];
	int err = aq_index_drop(a->common.rack, name);

	return err || !a->common.json
		       ? err
		       : cli_report_print(json_pack("{s:s, s:b}", "index", name,
						    "dropped", 1),
					  true);
}

/* ---- one key ------------------------------------------------------------ */

/* The word KEY as a key of the index: its bytes, or a number for versions. 0,
 * or the exit code. */
static int take_key(const struct cli_index *a, uint8_t key[AQ_INDEX_KEY_MAX],
		    size_t *len)
{
	const char *word = a->common.word[1];
	unsigned long long number;
	char *end;

	if (a->kind == AQ_INDEX_TREE) {
		*len = strlen(word);
		if (!*len || *len > AQ_INDEX_KEY_MAX) {
			cli_error("a key has 1 to %d bytes", AQ_INDEX_KEY_MAX);
			return CLI_USAGE;
		}
		memcpy(key, word, *len);
		return 0;
	}
	errno = 0;
	number = strtoull(word, &end, 10);
	if (*word < '0' || *word > '9' || *end || errno) {
		cli_error("keys of this index are numbers, not '%s'", word);
		return CLI_USAGE;
	}
	aq_index_key_u64(number, key);
	*len = 8;
	return 0;
}

static int index_get(void *args)
{
	const struct cli_index *a = args;
	uint8_t key[AQ_INDEX_KEY_MAX];
	char *buf = malloc(AQ_INDEX_VALUE_MAX * 2);
	size_t key_len, len = 0;
	int err = buf ? take_key(a, key, &key_len) : -ENOMEM;

	if (!err)
		err = aq_index_get(a->client, key, key_len, buf,
				   AQ_INDEX_VALUE_MAX * 2, &len);
	if (!err)
		cli_value_print(a->common.json, key, key_len, buf, len);
	free(buf);
	return cli_action_key_result(err);
}

static int index_put(void *args)
{
	const struct cli_index *a = args;
	const char *value = a->common.word[2];
	uint8_t key[AQ_INDEX_KEY_MAX];
	size_t len;
	int err = take_key(a, key, &len);

	if (!err)
		err = aq_index_put(a->client, key, len, value, strlen(value));
	if (!err)
		cli_key_done(a->common.json, "stored", key, len);
	return err;
}

static int index_del(void *args)
{
	const struct cli_index *a = args;
	uint8_t key[AQ_INDEX_KEY_MAX];
	size_t len;
	int err = take_key(a, key, &len);

	if (!err)
		err = aq_index_del(a->client, key, len);
	if (!err)
		cli_key_done(a->common.json, "deleted", key, len);
	return cli_action_key_result(err);
}

/* ---- the actions -------------------------------------------------------- */

int cmd_index(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"create", 1, 1, NULL, CLI_NEEDS_RACK, index_create,
		 "make an index: NAME"},
		{"list", 0, 0, NULL, CLI_NEEDS_RACK, index_list,
		 "all indexes of this user"},
		{"drop", 1, 1, NULL, CLI_NEEDS_RACK, index_drop,
		 "remove an index for everybody: NAME"},
		{"stat", 1, 1, NULL, CLI_NEEDS_OPEN, index_stat,
		 "what an index is: NAME"},
		{"get", 2, 2, NULL, CLI_NEEDS_OPEN, index_get,
		 "print a value: NAME KEY"},
		{"put", 3, 3, NULL, CLI_NEEDS_OPEN, index_put,
		 "store a value: NAME KEY VALUE"},
		{"del", 2, 2, NULL, CLI_NEEDS_OPEN, index_del,
		 "remove a key: NAME KEY"},
		{"scan", 1, 1, NULL, CLI_NEEDS_OPEN, cli_index_scan,
		 "keys and values, a tree's in their order: NAME"},
		{"count", 1, 1, NULL, CLI_NEEDS_OPEN, cli_index_count,
		 "how many keys there are in a range of a tree: NAME"},
		{"sum", 1, 1, NULL, CLI_NEEDS_OPEN, cli_index_sum,
		 "the sum of their values, numbers of 8 bytes: NAME"},
		{"min", 1, 1, NULL, CLI_NEEDS_OPEN, cli_index_min,
		 "the least of them: NAME"},
		{"max", 1, 1, NULL, CLI_NEEDS_OPEN, cli_index_max,
		 "the greatest of them: NAME"},
		{"fill", 1, 1, NULL, CLI_NEEDS_OPEN, cli_index_fill,
		 "store and read numbered keys: NAME"},
		{"check", 1, 1, NULL, CLI_NEEDS_OPEN, cli_index_check,
		 "verify every invariant: NAME"},
		{"dump", 1, 2, NULL, CLI_NEEDS_OPEN, cli_index_dump,
		 "all of an index to a file: NAME [FILE|-]"},
		{"load", 1, 2, NULL, CLI_NEEDS_RACK, cli_index_load,
		 "an index from such a file: NAME [FILE|-]"},
		{0},
	};
	static const struct cli_actions actions = {table, open_index,
						   close_index};
	struct cli_index a = {.value_bytes = 8};

	return cli_actions_run(self, &actions, argc, argv, &a);
}
