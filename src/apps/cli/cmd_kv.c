/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer kv`: tables of keys and values in the rack, for people. */
#include <aquifer/kv.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli.h"
#include "cli_kv.h"
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

static int parse_u32(const char *option, const char *word, uint32_t *out)
{
	uint64_t v;
	int err = parse_number(option, word, UINT32_MAX, &v);

	if (!err)
		*out = (uint32_t)v;
	return err;
}

static int parse_hash(const char *word, uint32_t *out)
{
	if (strcmp(word, "dependent") == 0)
		*out = AQ_KV_HASH_DEPENDENT;
	else if (strcmp(word, "block") == 0)
		*out = AQ_KV_HASH_BLOCK;
	else if (strcmp(word, "independent") == 0)
		*out = AQ_KV_HASH_INDEPENDENT;
	else {
		cli_error("--hash is dependent, block or independent, not '%s'",
			  word);
		return -EINVAL;
	}
	return 0;
}

enum {
	OPT_HOST_LOCKS = 1000,
	OPT_WORD_LOCKS,
	OPT_KEYS,
	OPT_REPAIR,
	OPT_COPIES,
	OPT_CAPACITY,
};

/* A number of nodes, or "all". */
static int parse_nodes(const char *word, uint32_t *out)
{
	if (strcmp(word, "all") == 0) {
		*out = AQ_KV_ALL_NODES;
		return 0;
	}
	return parse_u32("--nodes", word, out);
}

static int take_option(int opt, char **argv, struct cli_kv *a)
{
	switch (opt) {
	case 'j':
		a->json = true;
		return 0;
	case 'x':
		return cli_rack_parse_size("--extents", optarg,
					   &a->options.extent_bytes);
	case 'e':
		return parse_u32("--entry", optarg, &a->options.entry_bytes);
	case 'r':
		return parse_u32("--row", optarg, &a->options.entries_per_row);
	case 'l':
		return parse_u32("--rows-per-lock", optarg,
				 &a->options.rows_per_lock);
	case 'c':
		return parse_u32("--clients", optarg, &a->options.clients);
	case 'f':
		return parse_u32("--failure", optarg, &a->options.failure_ms);
	case 'H':
		return parse_hash(optarg, &a->options.hash);
	case 'o':
		a->options.node = optarg;
		return 0;
	case 'N':
		return parse_nodes(optarg, &a->options.shards);
	case OPT_COPIES:
		return parse_u32("--copies", optarg, &a->options.copies);
	case OPT_CAPACITY:
		return cli_rack_parse_size("--capacity", optarg,
					   &a->options.capacity);
	case OPT_HOST_LOCKS:
		a->options.flags |= AQ_KV_HOST_LOCKS;
		return 0;
	case OPT_WORD_LOCKS:
		a->options.flags |= AQ_KV_WORD_LOCKS;
		return 0;
	case OPT_KEYS:
		a->keys_only = true;
		return 0;
	case OPT_REPAIR:
		a->repair = true;
		return 0;
	case 't':
		return parse_number("--ttl", optarg, UINT32_MAX, &a->ttl_ms);
	case 'n':
		return parse_number("--count", optarg, 1ull << 40, &a->count);
	case 's':
		return parse_number("--size", optarg, AQ_KV_VALUE_MAX,
				    &a->value_bytes);
	case ':':
		cli_error("%s needs a value", argv[optind - 1]);
		return -EINVAL;
	default:
		cli_error("kv has no option '%s'; see 'aquifer help kv'",
			  argv[optind - 1]);
		return -EINVAL;
	}
}

/* argv[0] is the verb; `words` is how many have to follow. */
static int parse(int argc, char **argv, int words, struct cli_kv *a)
{
	static const struct option longopts[] = {
		{"json", no_argument, NULL, 'j'},
		{"extents", required_argument, NULL, 'x'},
		{"entry", required_argument, NULL, 'e'},
		{"row", required_argument, NULL, 'r'},
		{"rows-per-lock", required_argument, NULL, 'l'},
		{"clients", required_argument, NULL, 'c'},
		{"failure", required_argument, NULL, 'f'},
		{"hash", required_argument, NULL, 'H'},
		{"node", required_argument, NULL, 'o'},
		{"nodes", required_argument, NULL, 'N'},
		{"copies", required_argument, NULL, OPT_COPIES},
		{"capacity", required_argument, NULL, OPT_CAPACITY},
		{"host-locks", no_argument, NULL, OPT_HOST_LOCKS},
		{"word-locks", no_argument, NULL, OPT_WORD_LOCKS},
		{"keys", no_argument, NULL, OPT_KEYS},
		{"repair", no_argument, NULL, OPT_REPAIR},
		{"ttl", required_argument, NULL, 't'},
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
			cli_command_help(cli_command_find(cli_commands, "kv"),
					 "aquifer");
			return CLI_OK;
		}
		if (take_option(opt, argv, a))
			return CLI_USAGE;
	}
	if (argc - optind != words) {
		cli_error("kv %s takes %d word%s; see 'aquifer help kv'",
			  argv[0], words, words == 1 ? "" : "s");
		return CLI_USAGE;
	}
	a->name = argv[optind];
	a->key = words > 1 ? argv[optind + 1] : NULL;
	a->value = words > 2 ? argv[optind + 2] : NULL;
	return CLI_GO;
}

/* ---- the rack, the table, a client -------------------------------------- */

static int begin(struct cli_kv *a)
{
	int err = aq_rack_open(NULL, &a->rack);

	if (!err)
		err = aq_kv_open(a->rack, a->name, &a->kv);
	if (!err)
		err = aq_kv_client_open(a->kv, NULL, &a->client);
	return err;
}

static int finish(struct cli_kv *a, int err)
{
	if (err)
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
	if (cli_rack_parse_size("CAPACITY", a.key, &a.options.capacity))
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

static int kv_stat(int argc, char **argv)
{
	struct aq_kv_health h;
	struct cli_kv a;
	uint64_t count;
	json_t *row;
	int err, code = parse(argc, argv, 1, &a);

	if (code != CLI_GO)
		return code;
	err = begin(&a);
	if (!err)
		err = aq_kv_get_health(a.client, &h);
	if (err)
		return finish(&a, err);
	row = describe(&a);
	/* With a part lost nobody can count. */
	if (!h.shards_lost) {
		err = aq_kv_count(a.client, &count);
		(void)json_object_set_new(row, "keys",
					  json_integer((json_int_t)count));
	}
	(void)json_object_set_new(row, "parts_lost",
				  json_integer(h.shards_lost));
	(void)json_object_set_new(row, "parts_single",
				  json_integer(h.shards_single));
	(void)json_object_set_new(row, "resizing", json_boolean(h.is_growing));
	if (!err)
		err = cli_report_print(row, a.json);
	else
		json_decref(row);
	return finish(&a, err);
}

static int kv_resize(int argc, char **argv)
{
	struct cli_kv a;
	int err, code = parse(argc, argv, 1, &a);

	if (code != CLI_GO)
		return code;
	err = begin(&a);
	if (!err)
		err = aq_kv_resize(a.client, &a.options);
	if (!err) { /* it is another one now */
		aq_kv_client_close(a.client);
		a.client = NULL;
		aq_kv_close(a.kv);
		a.kv = NULL;
		err = aq_kv_open(a.rack, a.name, &a.kv);
	}
	if (!err)
		err = cli_report_print(describe(&a), a.json);
	return finish(&a, err);
}

/* ---- one key ------------------------------------------------------------ */

static int kv_get(int argc, char **argv)
{
	size_t len = 0, room = 1 << 16;
	struct cli_kv a;
	char *buf = NULL;
	int err, code = parse(argc, argv, 2, &a);

	if (code != CLI_GO)
		return code;
	err = begin(&a);
	do {
		free(buf);
		buf = malloc(room);
		if (!err)
			err = buf ? aq_kv_get(a.client, a.key, strlen(a.key),
					      buf, room, &len)
				  : -ENOMEM;
		room = len;
		code = err;
		err = err == -EMSGSIZE ? 0 : err;
	} while (code == -EMSGSIZE);
	if (!err)
		(void)fwrite(buf, 1, len, stdout);
	free(buf);
	return finish(&a, err);
}

static int read_stdin(char **out, size_t *len)
{
	char *buf = malloc(AQ_KV_VALUE_MAX + 1);

	if (!buf)
		return -ENOMEM;
	*len = fread(buf, 1, AQ_KV_VALUE_MAX + 1, stdin);
	*out = buf;
	return 0;
}

static int kv_put(int argc, char **argv)
{
	struct aq_kv_put_options o = {0};
	char *from_stdin = NULL;
	struct cli_kv a;
	size_t len;
	int err = 0, code = parse(argc, argv, 3, &a);

	if (code != CLI_GO)
		return code;
	len = strlen(a.value);
	if (strcmp(a.value, "-") == 0)
		err = read_stdin(&from_stdin, &len);
	o.expire_at_ms = a.ttl_ms ? clock_real_ms() + a.ttl_ms : 0;
	if (!err)
		err = begin(&a);
	if (!err)
		err = aq_kv_put(a.client, a.key, strlen(a.key),
				from_stdin ? from_stdin : a.value, len, &o);
	free(from_stdin);
	return finish(&a, err);
}

static int kv_del(int argc, char **argv)
{
	struct cli_kv a;
	int err, code = parse(argc, argv, 2, &a);

	if (code != CLI_GO)
		return code;
	err = begin(&a);
	if (!err)
		err = aq_kv_del(a.client, a.key, strlen(a.key));
	return finish(&a, err);
}

/* ---- all of it ---------------------------------------------------------- */

static int run_whole(int argc, char **argv, int (*fn)(struct cli_kv *a))
{
	struct cli_kv a;
	int err, code = parse(argc, argv, 1, &a);

	if (code != CLI_GO)
		return code;
	err = begin(&a);
	if (!err)
		err = fn(&a);
	if (err > 0) { /* it has said why */
		(void)finish(&a, 0);
		return CLI_FAILED;
	}
	return finish(&a, err);
}

static int kv_scan(int argc, char **argv)
{
	return run_whole(argc, argv, cli_kv_scan);
}

static int kv_fill(int argc, char **argv)
{
	return run_whole(argc, argv, cli_kv_fill);
}

static int kv_check(int argc, char **argv)
{
	return run_whole(argc, argv, cli_kv_check);
}

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
