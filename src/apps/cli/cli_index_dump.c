/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes into files, and back. A scan misses no key, so one pass is enough. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli_dump.h"
#include "cli_index.h"

enum {
	RETRIES = 8, /* of a put whose client was fenced */
	IS_NOT_EMPTY = 1,
};

/* What the sizes of the file's head are. */
enum {
	SIZE_BYTES,
	SIZE_KEY_MAX,
	SIZE_VALUE_MAX,
	SIZE_NODE_BYTES,
	SIZE_CLIENTS,
	SIZE_FAILURE_MS,
	SIZE_LOCKS,
	SIZE_KEYS,
	SIZE_VERSIONS,
};

/* ---- dump --------------------------------------------------------------- */

static void describe(const struct cli_index *a, struct dump_head *head)
{
	bool is_tree = a->kind == AQ_INDEX_TREE;
	struct aq_index_info i;

	aq_index_get_info(a->index, &i);
	*head = (struct dump_head){
		.kind = is_tree ? DUMP_TREE : DUMP_VERSIONS,
		.made_ms = clock_real_ms(),
		.size = {[SIZE_BYTES] = is_tree ? i.size_bytes : 0,
			 [SIZE_KEY_MAX] = i.key_max,
			 [SIZE_VALUE_MAX] = i.value_max,
			 [SIZE_NODE_BYTES] = is_tree ? i.node_bytes : 0,
			 [SIZE_CLIENTS] = i.clients,
			 [SIZE_FAILURE_MS] = i.failure_ms,
			 [SIZE_LOCKS] = i.locks,
			 [SIZE_KEYS] = i.keys,
			 [SIZE_VERSIONS] = is_tree ? 0 : i.nodes}};
	memcpy(head->name, a->common.word[0],
	       strnlen(a->common.word[0], DUMP_NAME_BYTES - 1));
}

static int add_pair(void *user, const void *key, size_t key_len,
		    const void *value, size_t value_len)
{
	struct dump_pair pair = {.key = key,
				 .key_bytes = (uint32_t)key_len,
				 .value = value,
				 .value_bytes = (uint32_t)value_len};

	return cli_dump_out_add(user, &pair);
}

int cli_index_dump(void *args)
{
	const struct cli_index *a = args;
	const struct aq_index_range all = {0};
	struct cli_dump_out out;
	struct dump_head head;
	int err;

	describe(a, &head);
	err = cli_dump_out_open(&out, a->common.word[1], &head, 0);
	if (!err)
		err = aq_index_scan(a->client, &all, add_pair, &out);
	if (!err)
		err = cli_dump_out_end(&out);
	if (!err)
		err = cli_dump_out_report(&out, "index", a->common.word[0],
					  a->common.json);
	cli_dump_out_close(&out);
	return err;
}

/* ---- load --------------------------------------------------------------- */

struct index_load {
	struct cli_index *a;
	struct cli_dump_in in;
	struct cli_loaded done;
};

static int stop(void *user, const void *key, size_t key_len, const void *value,
		size_t value_len)
{
	(void)user;
	(void)key;
	(void)key_len;
	(void)value;
	(void)value_len;
	return IS_NOT_EMPTY;
}

static int must_be_empty(const struct cli_index *a)
{
	const struct aq_index_range all = {0};
	int err = aq_index_scan(a->client, &all, stop, NULL);

	if (err != IS_NOT_EMPTY)
		return err;
	return error_set(-EEXIST,
			 "index '%s' has keys already; --merge stores those "
			 "of the file over them",
			 a->common.word[0]);
}

/* What options say, else what the file says. */
static int take_sizes(struct index_load *l)
{
	struct aq_index_options *o = &l->a->options;
	const struct {
		unsigned which;
		uint32_t *to;
	} row[] = {
		{SIZE_KEY_MAX, &o->key_max},
		{SIZE_VALUE_MAX, &o->value_max},
		{SIZE_NODE_BYTES, &o->node_bytes},
		{SIZE_CLIENTS, &o->clients},
		{SIZE_FAILURE_MS, &o->failure_ms},
		{SIZE_LOCKS, &o->locks},
	};
	const struct {
		unsigned which;
		uint64_t *to;
	} wide[] = {
		{SIZE_BYTES, &o->size_bytes},
		{SIZE_KEYS, &o->keys},
		{SIZE_VERSIONS, &o->versions},
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(row) && !err; i++)
		err = cli_dump_size_u32(&l->in, row[i].which, row[i].to);
	for (size_t i = 0; i < ARRAY_LEN(wide) && !err; i++)
		err = cli_dump_size(&l->in, wide[i].which, 1ull << 48,
				    wide[i].to);
	o->kind = l->in.parser.head.kind == DUMP_TREE ? AQ_INDEX_TREE
						      : AQ_INDEX_VERSIONS;
	return err;
}

static int open_or_create(struct index_load *l)
{
	struct cli_index *a = l->a;
	const char *name = a->common.word[0];
	int err = aq_index_open(a->common.rack, name, &a->index);

	if (err == -ENOENT) {
		err = take_sizes(l);
		if (!err)
			err = aq_index_create(a->common.rack, name, &a->options,
					      &a->index);
		l->done.created = !err;
	}
	if (!err)
		err = aq_index_client_open(a->index, NULL, &a->client);
	if (err || l->done.created || a->merge)
		return err;
	return must_be_empty(a);
}

/* It is the same put each time, so one that may have happened does no harm. */
static int put(struct index_load *l, const struct dump_pair *pair)
{
	unsigned tries = 0;
	int err;

	do
		err = aq_index_put(l->a->client, pair->key, pair->key_bytes,
				   pair->value, pair->value_bytes);
	while ((err == -ESTALE || err == -ETIMEDOUT) && ++tries < RETRIES);
	l->done.stored += !err;
	if (!err)
		return 0;
	/* A key that cannot be is the file's fault, not the command's. */
	return error_prefix(err == -EINVAL ? -EBADMSG : err,
			    "%s: a pair before byte %llu: ", l->in.name,
			    (unsigned long long)l->in.parser.offset);
}

static int load_all(struct index_load *l)
{
	struct dump_pair pair;
	bool is_end = false;
	int err = 0;

	while (!err) {
		err = cli_dump_in_block(&l->in, &is_end);
		if (err || is_end)
			break;
		while (!err && dump_next_pair(&l->in.parser, &pair))
			err = put(l, &pair);
	}
	return err;
}

/* An index that was made for this load goes with it when it fails. */
static void drop_again(struct index_load *l)
{
	struct cli_index *a = l->a;
	char words[ERROR_TEXT_MAX];
	int err = error_last_code();

	snprintf(words, sizeof(words), "%s", error_last());
	aq_index_client_close(a->client);
	aq_index_close(a->index);
	a->client = NULL;
	a->index = NULL;
	if (aq_index_drop(a->common.rack, a->common.word[0]))
		cli_error("index '%s' was made by this load and is not whole",
			  a->common.word[0]);
	(void)error_set(err, "%s", words); /* is `err` */
}

int cli_index_load(void *args)
{
	struct index_load l = {.a = args};
	const char *name = l.a->common.word[0];
	int err = cli_dump_in_open(&l.in, l.a->common.word[1]);

	if (!err && l.in.parser.head.kind == DUMP_TABLE)
		err = error_set(-EINVAL,
				"%s is the dump of a table; 'aquifer kv load' "
				"takes it",
				l.in.name);
	if (!err)
		err = open_or_create(&l);
	if (!err)
		err = load_all(&l);
	if (!err)
		err = cli_dump_in_report(&l.in, &l.done, "index", name,
					 l.a->common.json);
	else if (l.done.created)
		drop_again(&l);
	else
		err = cli_dump_in_broke_off(&l.done, name, err);
	cli_dump_in_close(&l.in);
	return err;
}
