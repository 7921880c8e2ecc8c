/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer ekv`: elastic key-value stores, for people. */
#include <aquifer/elastic.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "cli_action.h"
#include "cli_report.h"

struct ekv_args {
	struct cli_action_args common; /* PATH, KEY, VALUE */
	struct aq_elastic_options options;
	uint64_t version; /* 0: any */
	bool is_new, is_number, is_min, is_max, appends, loads;
	struct aq_ekv *kv;
};

const struct opt cmd_ekv_options[] = {
	OPT_U64(struct ekv_args, options.copies, "copies", "N", 1, 8,
		"put, add: copies of what is made, on as many nodes "
		"(default: as its root says, or 1)"),
	OPT_SIZE(struct ekv_args, options.block_bytes, "block", "SIZE",
		 64 << 10, 1 << 30,
		 "put, add: bytes of a block of a store that is made "
		 "(default 8M)"),
	OPT_U64(struct ekv_args, version, "version", "N", 1, UINT64_MAX - 1,
		"put, del: only if the key has this version"),
	OPT_FLAG(struct ekv_args, is_new, "new",
		 "put: only if there is no such key"),
	OPT_FLAG(struct ekv_args, is_number, "number",
		 "get, put: the value is a number, as add has them"),
	OPT_FLAG(struct ekv_args, is_min, "min",
		 "add: keep the smaller of both numbers"),
	OPT_FLAG(struct ekv_args, is_max, "max",
		 "add: keep the larger of both numbers"),
	OPT_FLAG(struct ekv_args, appends, "append",
		 "add: bytes at the end of the value"),
	OPT_FLAG(struct ekv_args, loads, "load",
		 "bring it back from the vault first, if it is there"),
	CLI_OPT_TIMEOUT(struct ekv_args),
	OPT_FLAG(struct ekv_args, common.json, "json", "print JSON"),
	OPT_END,
};

static int open_kv(struct ekv_args *a, uint32_t flags)
{
	a->options.flags = flags | (a->loads ? AQ_ELASTIC_LOAD : 0);
	return aq_ekv_open(a->common.rack, a->common.word[0], &a->options,
			   &a->kv);
}

static void close_kv(void *args)
{
	struct ekv_args *a = args;

	aq_ekv_close(a->kv);
	a->kv = NULL;
}

static int parse_number(const char *text, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 0);
	return errno || end == text || *end
		       ? error_set(-EINVAL, "'%.60s' is no number", text)
		       : 0;
}

static json_t *text_json(const char *bytes, size_t len)
{
	json_t *text = json_stringn(bytes, len);

	if (!text)
		(void)error_set(-EILSEQ,
				"a key or value is not UTF-8; without --json "
				"it is printed as it is");
	return text;
}

/* ---- one key ------------------------------------------------------------- */

static int read_value(const struct ekv_args *a, const char *key, char **out,
		      size_t *len, uint64_t *version)
{
	size_t room = 64 << 10;
	char *buf = malloc(room), *more;
	int err = buf ? -EMSGSIZE : -ENOMEM;

	*len = room;
	while (err == -EMSGSIZE) {
		more = *len > room ? realloc(buf, *len) : buf;
		if (!more)
			break;
		room = u64_max(room, *len);
		buf = more;
		err = aq_ekv_get(a->kv, key, strlen(key), buf, room, len,
				 version);
	}
	if (err) {
		free(buf);
		return err == -ENOENT ? error_set(err, "%s has no key '%.60s'",
						  a->common.word[0], key)
				      : err;
	}
	*out = buf;
	return 0;
}

static int number_of(const char *value, size_t len, int64_t *out)
{
	le64 word;

	if (len != sizeof(word))
		return error_set(-EINVAL,
				 "the value is no number: it has %zu bytes",
				 len);
	memcpy(&word, value, sizeof(word));
	*out = (int64_t)le64_get(word);
	return 0;
}

static int print_value(const struct ekv_args *a, const char *value, size_t len,
		       uint64_t version)
{
	int64_t number = 0;
	json_t *json;
	int err = a->is_number ? number_of(value, len, &number) : 0;

	if (err)
		return err;
	if (a->common.json) {
		json = a->is_number ? json_integer((json_int_t)number)
				    : text_json(value, len);
		return json ? cli_report_print(
				      json_pack("{s:s, s:s, s:o, s:I}", "path",
						a->common.word[0], "key",
						a->common.word[1], "value",
						json, "version",
						(json_int_t)version),
				      true)
			    : -EILSEQ;
	}
	if (a->is_number)
		return printf("%" PRId64 "\n", number) > 0 ? 0 : -EIO;
	if (fwrite(value, 1, len, stdout) != len || putchar('\n') == EOF)
		return error_set(-EIO, "the output cannot be written");
	return 0;
}

static int ekv_get(void *args)
{
	struct ekv_args *a = args;
	uint64_t version = 0;
	char *value = NULL;
	size_t len = 0;
	int err = open_kv(a, 0);

	if (!err)
		err = read_value(a, a->common.word[1], &value, &len, &version);
	if (!err)
		err = print_value(a, value, len, version);
	free(value);
	return err;
}

static uint64_t expected(const struct ekv_args *a)
{
	if (a->is_new)
		return AQ_EKV_ABSENT;
	return a->version ? a->version : AQ_EKV_ANY;
}

static int print_version(const struct ekv_args *a, uint64_t version)
{
	return a->common.json ? cli_report_print(
					json_pack("{s:s, s:s, s:I}", "path",
						  a->common.word[0], "key",
						  a->common.word[1], "version",
						  (json_int_t)version),
					true)
			      : 0;
}

/* All of the standard input. */
static int read_input(char **out, size_t *len)
{
	size_t room = 64 << 10, n;
	char *buf = malloc(room), *more;

	*len = 0;
	while (buf && (n = fread(buf + *len, 1, room - *len, stdin))) {
		*len += n;
		if (*len < room)
			continue;
		room *= 2;
		more = realloc(buf, room);
		if (!more)
			free(buf);
		buf = more;
	}
	*out = buf;
	return buf ? 0 : error_set(-ENOMEM, "no memory for the input");
}

static int ekv_put(void *args)
{
	struct ekv_args *a = args;
	const char *key = a->common.word[1], *text = a->common.word[2];
	char *input = NULL;
	size_t len = text ? strlen(text) : 0;
	uint64_t version = 0;
	int64_t number;
	le64 word;
	int err = 0;

	if (!text || strcmp(text, "-") == 0) {
		err = read_input(&input, &len);
		text = input;
	} else if (a->is_number) {
		err = parse_number(text, &number);
		word = le64_put((uint64_t)number);
		text = (const char *)&word;
		len = sizeof(word);
	}
	if (!err)
		err = open_kv(a, AQ_ELASTIC_CREATE);
	if (!err)
		err = aq_ekv_put(a->kv, key, strlen(key), text, len,
				 expected(a), &version);
	free(input);
	return err ? err : print_version(a, version);
}

static int ekv_del(void *args)
{
	struct ekv_args *a = args;
	const char *key = a->common.word[1];
	int err = open_kv(a, 0);

	if (!err)
		err = aq_ekv_delete(a->kv, key, strlen(key), expected(a));
	return err == -ENOENT && a->kv ? error_set(err, "%s has no key '%.60s'",
						   a->common.word[0], key)
				       : err;
}

static int print_sum(const struct ekv_args *a, int64_t sum)
{
	if (a->common.json)
		return cli_report_print(json_pack("{s:s, s:s, s:I}", "path",
						  a->common.word[0], "key",
						  a->common.word[1], "value",
						  (json_int_t)sum),
					true);
	return printf("%" PRId64 "\n", sum) > 0 ? 0 : -EIO;
}

static int ekv_add(void *args)
{
	struct ekv_args *a = args;
	const char *key = a->common.word[1];
	const char *text = a->common.word[2] ? a->common.word[2] : "1";
	enum aq_ekv_how how = a->is_min	  ? AQ_EKV_MIN
			      : a->is_max ? AQ_EKV_MAX
					  : AQ_EKV_SUM;
	int64_t number = 0, sum = 0;
	uint64_t total = 0;
	int err = a->appends ? 0 : parse_number(text, &number);

	if (a->appends + a->is_min + a->is_max > 1)
		err = error_set(-EINVAL,
				"--min, --max and --append exclude each other");
	if (!err)
		err = open_kv(a, AQ_ELASTIC_CREATE);
	if (!err && a->appends)
		err = aq_ekv_append(a->kv, key, strlen(key), text, strlen(text),
				    &total);
	else if (!err)
		err = aq_ekv_add(a->kv, key, strlen(key), how, number, &sum);
	return err ? err : print_sum(a, a->appends ? (int64_t)total : sum);
}

/* ---- all keys ------------------------------------------------------------ */

static int print_entry(const struct ekv_args *a,
		       const struct aq_ekv_entry *entry, json_t *rows)
{
	json_t *key;

	if (!a->common.json) {
		if (fwrite(entry->key, 1, entry->key_bytes, stdout) !=
			    entry->key_bytes ||
		    putchar('\n') == EOF)
			return error_set(-EIO, "the output cannot be written");
		return 0;
	}
	key = text_json(entry->key, entry->key_bytes);
	if (!key)
		return -EILSEQ;
	(void)json_array_append_new(
		rows, json_pack("{s:o, s:I, s:I}", "key", key, "bytes",
				(json_int_t)entry->value_bytes, "version",
				(json_int_t)entry->version));
	return 0;
}

static int scan_all(const struct ekv_args *a, json_t *rows)
{
	struct aq_ekv_entry entry;
	struct aq_ekv_scan *scan;
	int err = aq_ekv_scan_begin(a->kv, &scan);

	if (err)
		return err;
	while (!err) {
		err = aq_ekv_scan_next(scan, &entry);
		if (!err)
			err = print_entry(a, &entry, rows);
	}
	aq_ekv_scan_end(scan);
	return err == -ENODATA ? 0 : err;
}

static int ekv_scan(void *args)
{
	struct ekv_args *a = args;
	json_t *rows = json_array();
	struct aq_ekv_stat stat;
	int err = open_kv(a, 0);

	if (!err)
		err = scan_all(a, rows);
	if (!err && a->common.json)
		err = aq_ekv_stat(a->kv, &stat);
	if (!err && a->common.json)
		err = cli_report_print(
			json_pack("{s:s, s:O, s:I, s:I, s:I}", "path",
				  a->common.word[0], "keys", rows, "count",
				  (json_int_t)stat.keys, "used",
				  (json_int_t)stat.used_bytes, "blocks",
				  (json_int_t)stat.blocks),
			true);
	json_decref(rows);
	return err;
}

int cmd_ekv(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"get", 2, 2, NULL, CLI_NEEDS_RACK, ekv_get,
		 "print the value of a key: PATH KEY"},
		{"put", 2, 3, NULL, CLI_NEEDS_RACK, ekv_put,
		 "set the value of a key, to the input without VALUE; make the "
		 "store if it is missing: PATH KEY [VALUE|-]"},
		{"del", 2, 2, NULL, CLI_NEEDS_RACK, ekv_del,
		 "delete a key: PATH KEY"},
		{"add", 2, 3, NULL, CLI_NEEDS_RACK, ekv_add,
		 "add to the number of a key and print the sum: PATH KEY "
		 "[NUMBER]"},
		{"scan", 1, 1, NULL, CLI_NEEDS_RACK, ekv_scan,
		 "print all keys: PATH"},
		{0},
	};
	static const struct cli_actions actions = {.action = table,
						   .close = close_kv};
	struct ekv_args args = {0};

	return cli_actions_run(self, &actions, argc, argv, &args);
}
