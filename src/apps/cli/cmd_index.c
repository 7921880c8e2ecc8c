/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer index`: indexes in the rack, for people. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cli_index.h"
#include "cli_rack.h"
#include "cli_report.h"

/* ---- options ------------------------------------------------------------ */

static int parse_number(const char *option, const char *word, uint64_t max,
			uint64_t *out)
{
	char *end;
	unsigned long long v = strtoull(word, &end, 10);

	if (*word < '0' || *word > '9' || *end || v > max) {
		cli_error("%s: a number up to %llu, not '%s'", option,
			  (unsigned long long)max, word);
		return -EINVAL;
	}
	*out = v;
	return 0;
}

static int parse_u32(const char *option, const char *word, uint32_t max,
		     uint32_t *out)
{
	uint64_t v = 0;
	int err = parse_number(option, word, max, &v);

	if (!err)
		*out = (uint32_t)v;
	return err;
}

static int parse_kind(const char *word, uint32_t *out)
{
	if (strcmp(word, "tree") == 0)
		*out = AQ_INDEX_TREE;
	else if (strcmp(word, "versions") == 0)
		*out = AQ_INDEX_VERSIONS;
	else {
		cli_error("--kind is tree or versions, not '%s'", word);
		return -EINVAL;
	}
	return 0;
}

enum {
	OPT_FROM = 1000,
	OPT_TO,
	OPT_KEYS_ONLY,
	OPT_HOST_LOCKS,
	OPT_SWITCH_LOCKS,
	OPT_THREADS,
	OPT_ROOM,
};

static int take_option(int opt, char **argv, struct cli_index *a)
{
	struct aq_index_options *o = &a->options;

	switch (opt) {
	case 'j':
		a->json = true;
		return 0;
	case 'k':
		return parse_kind(optarg, &o->kind);
	case 'm':
		return cli_rack_parse_size("--memory", optarg, &o->size_bytes);
	case 'b':
		return parse_u32("--node-bytes", optarg, UINT32_MAX,
				 &o->node_bytes);
	case 'K':
		return parse_u32("--key", optarg, UINT32_MAX, &o->key_max);
	case 'V':
		return parse_u32("--value", optarg, UINT32_MAX, &o->value_max);
	case 'c':
		return parse_u32("--clients", optarg, UINT32_MAX, &o->clients);
	case 'f':
		return parse_u32("--failure", optarg, UINT32_MAX,
				 &o->failure_ms);
	case 'l':
		return parse_u32("--locks", optarg, UINT32_MAX, &o->locks);
	case 'o':
		o->node = optarg;
		return 0;
	case OPT_ROOM:
		return cli_rack_parse_size("--room", optarg, &o->keys);
	case OPT_HOST_LOCKS:
		o->flags |= AQ_INDEX_HOST_LOCKS;
		return 0;
	case OPT_SWITCH_LOCKS:
		o->flags |= AQ_INDEX_SWITCH_LOCKS;
		return 0;
	case OPT_FROM:
		a->from = optarg;
		return 0;
	case OPT_TO:
		a->to = optarg;
		return 0;
	case OPT_KEYS_ONLY:
		a->keys_only = true;
		return 0;
	case OPT_THREADS:
		return parse_u32("--threads", optarg, CLI_INDEX_THREADS_MAX,
				 &a->threads);
	case 'n':
		return parse_number("--count", optarg, 1ull << 40, &a->count);
	case 's':
		return parse_number("--size", optarg, AQ_INDEX_VALUE_MAX,
				    &a->value_bytes);
	case ':':
		cli_error("%s needs a value", argv[optind - 1]);
		return -EINVAL;
	default:
		cli_error("index has no option '%s'; see 'aquifer help index'",
			  argv[optind - 1]);
		return -EINVAL;
	}
}

/* argv[0] is the verb; `words` is how many have to follow. */
static int parse(int argc, char **argv, int words, struct cli_index *a)
{
	static const struct option longopts[] = {
		{"json", no_argument, NULL, 'j'},
		{"kind", required_argument, NULL, 'k'},
		{"memory", required_argument, NULL, 'm'},
		{"node-bytes", required_argument, NULL, 'b'},
		{"key", required_argument, NULL, 'K'},
		{"value", required_argument, NULL, 'V'},
		{"clients", required_argument, NULL, 'c'},
		{"failure", required_argument, NULL, 'f'},
		{"locks", required_argument, NULL, 'l'},
		{"node", required_argument, NULL, 'o'},
		{"room", required_argument, NULL, OPT_ROOM},
		{"host-locks", no_argument, NULL, OPT_HOST_LOCKS},
		{"switch-locks", no_argument, NULL, OPT_SWITCH_LOCKS},
		{"from", required_argument, NULL, OPT_FROM},
		{"to", required_argument, NULL, OPT_TO},
		{"keys", no_argument, NULL, OPT_KEYS_ONLY},
		{"threads", required_argument, NULL, OPT_THREADS},
		{"count", required_argument, NULL, 'n'},
		{"size", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int opt;

	memset(a, 0, sizeof(*a));
	a->value_bytes = 8;
	optind = 0;
	while ((opt = getopt_long(argc, argv, ":h", longopts, NULL)) != -1) {
		if (opt == 'h') {
			cli_command_help(
				cli_command_find(cli_commands, "index"),
				"aquifer");
			return CLI_OK;
		}
		if (take_option(opt, argv, a))
			return CLI_USAGE;
	}
	if (argc - optind != words) {
		cli_error("index %s takes %d word%s; see 'aquifer help index'",
			  argv[0], words, words == 1 ? "" : "s");
		return CLI_USAGE;
	}
	a->name = argv[optind];
	a->key = words > 1 ? argv[optind + 1] : NULL;
	a->value = words > 2 ? argv[optind + 2] : NULL;
	return CLI_GO;
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
