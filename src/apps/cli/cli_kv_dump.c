/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables into files, and back.
 *
 * A scan passes a key over when an insert moves it from a row that comes later
 * to one that was read already. So the table is read again: for every group of
 * rows there is a sum over the hashes of the keys that were found in it, and
 * where the next pass, which reads keys only, finds another sum, the group is
 * dumped again. A key that is there all the time is missed by n passes only if
 * it moves 2n - 1 times meanwhile, each time when just one of its rows was
 * read. A key may be in the file twice; the later one counts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/siphash.h"
#include "cli_dump.h"
#include "cli_kv.h"

enum {
	PASSES = 5,
	ROWS_MIN = 16,	  /* of a group */
	GROUPS = 1 << 20, /* about; a sum of 8 bytes each */
	BATCH = 256,	  /* puts at a time */
	RETRIES = 8,	  /* of a put that was fenced */
	IS_NOT_EMPTY = 1,
};

/* What the sizes of the file's head are. */
enum {
	SIZE_CAPACITY,
	SIZE_EXTENT_BYTES,
	SIZE_ENTRY_BYTES,
	SIZE_ENTRIES_PER_ROW,
	SIZE_ROWS_PER_LOCK,
	SIZE_CLIENTS,
	SIZE_CHUNK_BYTES,
	SIZE_HASH,
	SIZE_LOCALITY,
	SIZE_FAILURE_MS,
	SIZE_NODES,
	SIZE_COPIES,
	SIZE_MAX_BYTES,
	SIZE_IS_FIXED, /* 1: it does not grow */
};

/* ---- dump --------------------------------------------------------------- */

struct kv_dump {
	struct cli_kv *a;
	struct cli_dump_out out;
	struct siphash_key hash;
	uint64_t rows; /* of a group */
	uint64_t sum;  /* of this group, so far */
	uint64_t *sums;
	size_t count, room;
};

static int add_sum(const struct aq_kv_item *item, void *user)
{
	struct kv_dump *d = user;

	d->sum += siphash(&d->hash, NULL, 0, item->key, item->key_len);
	return 0;
}

static int add_pair(const struct aq_kv_item *item, void *user)
{
	struct kv_dump *d = user;
	struct dump_pair pair = {.key = item->key,
				 .key_bytes = (uint32_t)item->key_len,
				 .value = item->value,
				 .value_bytes = (uint32_t)item->value_len,
				 .expire_at_ms = item->expire_at_ms};

	(void)add_sum(item, user); /* is always 0 */
	return cli_dump_out_add(&d->out, &pair);
}

static int keep_sum(struct kv_dump *d, size_t i)
{
	if (i == d->room) {
		size_t room = d->room ? 2 * d->room : 1024;
		uint64_t *sums = realloc(d->sums, room * sizeof(*sums));

		if (!sums)
			return error_set(-ENOMEM, "no memory for a dump");
		d->sums = sums;
		d->room = room;
	}
	d->sums[i] = d->sum;
	d->count = u64_max(d->count, i + 1);
	return 0;
}

/* All groups: `is_first` dumps them, later passes those that have changed. */
static int pass(struct kv_dump *d, bool is_first, bool *any)
{
	uint64_t cursor = 0, begin;
	size_t i = 0;
	int err;

	*any = false;
	do {
		begin = cursor;
		d->sum = 0;
		err = aq_kv_scan(d->a->client, &cursor, d->rows,
				 is_first ? 0 : AQ_KV_SCAN_KEYS,
				 is_first ? add_pair : add_sum, d);
		if (!err && !is_first &&
		    (i >= d->count || d->sum != d->sums[i])) {
			*any = true;
			d->sum = 0;
			err = aq_kv_scan(d->a->client, &begin, d->rows, 0,
					 add_pair, d);
		}
		if (!err)
			err = keep_sum(d, i++);
	} while (!err && cursor);
	return err;
}

static void describe(const struct cli_kv *a, const struct aq_kv_info *i,
		     struct dump_head *head)
{
	*head = (struct dump_head){
		.kind = DUMP_TABLE,
		.made_ms = clock_real_ms(),
		.size = {[SIZE_CAPACITY] = i->capacity,
			 [SIZE_EXTENT_BYTES] = i->extent_bytes,
			 [SIZE_ENTRY_BYTES] = i->entry_bytes,
			 [SIZE_ENTRIES_PER_ROW] = i->entries_per_row,
			 [SIZE_ROWS_PER_LOCK] = i->rows_per_lock,
			 [SIZE_CLIENTS] = i->clients,
			 [SIZE_CHUNK_BYTES] = i->chunk_bytes,
			 [SIZE_HASH] = i->hash,
			 [SIZE_LOCALITY] = i->locality_milli,
			 [SIZE_FAILURE_MS] = i->failure_ms,
			 [SIZE_NODES] = i->shards,
			 [SIZE_COPIES] = i->copies,
			 [SIZE_MAX_BYTES] = i->max_bytes,
			 [SIZE_IS_FIXED] = !i->grows}};
	memcpy(head->name, a->common.word[0],
	       strnlen(a->common.word[0], DUMP_NAME_BYTES - 1));
}

static int dump_all(struct kv_dump *d)
{
	bool any = true;
	int err = pass(d, true, &any);

	any = true;
	for (unsigned i = 1; i < PASSES && !err && any; i++)
		err = pass(d, false, &any);
	return err ? err : cli_dump_out_end(&d->out);
}

int cli_kv_dump(void *args)
{
	struct cli_kv *a = args;
	struct kv_dump d = {.a = a};
	uint8_t key[SIPHASH_KEY_BYTES];
	struct aq_kv_info info;
	struct dump_head head;
	uint64_t count = 0;
	int err = aq_kv_count(a->client, &count);

	if (!err && getrandom(key, sizeof(key), 0) != sizeof(key))
		err = error_set(-EIO, "the kernel has no random bytes");
	if (err)
		return err;
	d.hash = siphash_key(key);
	aq_kv_get_info(a->kv, &info);
	d.rows = u64_max(info.rows / GROUPS, ROWS_MIN);
	describe(a, &info, &head);
	err = cli_dump_out_open(&d.out, a->common.word[1], &head, count);
	if (!err)
		err = dump_all(&d);
	if (!err)
		err = cli_dump_out_report(&d.out, "table", a->common.word[0],
					  a->common.json);
	cli_dump_out_close(&d.out);
	free(d.sums);
	return err;
}

/* ---- load --------------------------------------------------------------- */

struct kv_load {
	struct cli_kv *a;
	struct cli_dump_in in;
	struct cli_loaded done;
	struct aq_kv_op op[BATCH];
	size_t count;
};

static int stop(const struct aq_kv_item *item, void *user)
{
	(void)item;
	(void)user;
	return IS_NOT_EMPTY;
}

static int must_be_empty(const struct cli_kv *a)
{
	uint64_t cursor = 0;
	int err;

	do
		err = aq_kv_scan(a->client, &cursor, GROUPS, AQ_KV_SCAN_KEYS,
				 stop, NULL);
	while (!err && cursor);
	if (err != IS_NOT_EMPTY)
		return err;
	return error_set(-EEXIST,
			 "table '%s' has keys already; --merge stores those "
			 "of the file over them",
			 a->common.word[0]);
}

/* What options say, else what the file says. */
static int take_sizes(struct kv_load *l)
{
	struct aq_kv_options *o = &l->a->options;
	const struct {
		unsigned which;
		uint32_t *to;
	} row[] = {
		{SIZE_ENTRY_BYTES, &o->entry_bytes},
		{SIZE_ENTRIES_PER_ROW, &o->entries_per_row},
		{SIZE_ROWS_PER_LOCK, &o->rows_per_lock},
		{SIZE_CLIENTS, &o->clients},
		{SIZE_CHUNK_BYTES, &o->chunk_bytes},
		{SIZE_HASH, &o->hash},
		{SIZE_LOCALITY, &o->locality_milli},
		{SIZE_FAILURE_MS, &o->failure_ms},
		{SIZE_NODES, &o->shards},
		{SIZE_COPIES, &o->copies},
	};
	int err =
		cli_dump_size(&l->in, SIZE_CAPACITY, 1ull << 48, &o->capacity);

	if (!err)
		err = cli_dump_size(&l->in, SIZE_EXTENT_BYTES, 1ull << 48,
				    &o->extent_bytes);
	if (!err)
		err = cli_dump_size(&l->in, SIZE_MAX_BYTES, 1ull << 48,
				    &o->max_bytes);
	for (size_t i = 0; i < ARRAY_LEN(row) && !err; i++)
		err = cli_dump_size_u32(&l->in, row[i].which, row[i].to);
	if (l->in.parser.head.size[SIZE_IS_FIXED])
		o->flags |= AQ_KV_FIXED;
	return err;
}

static int open_or_create(struct kv_load *l)
{
	struct cli_kv *a = l->a;
	const char *name = a->common.word[0];
	int err = aq_kv_open(a->common.rack, name, &a->kv);

	if (err == -ENOENT) {
		err = take_sizes(l);
		if (!err)
			err = aq_kv_create(a->common.rack, name, &a->options,
					   &a->kv);
		l->done.created = !err;
	}
	if (!err)
		err = aq_kv_client_open(a->kv, NULL, &a->client);
	if (err || l->done.created || a->merge)
		return err;
	return must_be_empty(a);
}

static int refuse_op(const struct kv_load *l, int err)
{
	return error_set(err, "%s: the pair before byte %llu cannot be stored",
			 l->in.name, (unsigned long long)l->in.parser.offset);
}

/* How many from the first on are done. */
static size_t count_done(struct kv_load *l, const struct aq_kv_op *op,
			 size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		bool is_put = op[i].kind == AQ_KV_OP_PUT;

		if (op[i].err && (is_put || op[i].err != -ENOENT))
			break;
		l->done.stored += is_put;
		l->done.stored -= !is_put && !op[i].err;
	}
	return i;
}

/* A client that was fenced has connected anew, and its put may be repeated;
 * and so are those behind it, because a key's last one counts. */
static int put_batch(struct kv_load *l)
{
	struct aq_kv_op *op = l->op;
	size_t left = l->count, done;

	for (unsigned tries = 0; left; tries++) {
		int err = aq_kv_batch(l->a->client, op, left);

		if (err)
			return err;
		done = count_done(l, op, left);
		op += done;
		left -= done;
		if (left && (op->err != -ESTALE || tries == RETRIES))
			return refuse_op(l, op->err);
	}
	l->count = 0;
	return 0;
}

/* A pair whose time is over is not stored; but the same key may have stood in
 * the file before, for longer. In a table that had keys of its own it may also
 * be one of those, which stays. */
static int load_block(struct kv_load *l)
{
	uint64_t now = clock_real_ms();
	struct dump_pair pair;
	int err = 0;

	while (!err && dump_next_pair(&l->in.parser, &pair)) {
		bool is_over = pair.expire_at_ms && pair.expire_at_ms <= now;

		l->done.expired += is_over;
		if (is_over && l->a->merge)
			continue;
		l->op[l->count++] = (struct aq_kv_op){
			.kind = is_over ? AQ_KV_OP_DEL : AQ_KV_OP_PUT,
			.key = pair.key,
			.key_len = pair.key_bytes,
			.value = (void *)(uintptr_t)pair.value, /* only read */
			.value_len = pair.value_bytes,
			.expire_at_ms = is_over ? 0 : pair.expire_at_ms};
		if (l->count == BATCH)
			err = put_batch(l);
	}
	return err ? err : put_batch(l);
}

static int load_all(struct kv_load *l)
{
	bool is_end = false;
	int err = 0;

	while (!err) {
		err = cli_dump_in_block(&l->in, &is_end);
		if (err || is_end)
			break;
		err = load_block(l);
	}
	return err;
}

/* A table that was made for this load goes with it when it fails. */
static void drop_again(struct kv_load *l)
{
	struct cli_kv *a = l->a;
	char words[ERROR_TEXT_MAX];
	int err = error_last_code();

	snprintf(words, sizeof(words), "%s", error_last());
	aq_kv_client_close(a->client);
	aq_kv_close(a->kv);
	a->client = NULL;
	a->kv = NULL;
	if (aq_kv_drop(a->common.rack, a->common.word[0]))
		cli_error("table '%s' was made by this load and is not whole",
			  a->common.word[0]);
	(void)error_set(err, "%s", words); /* is `err` */
}

int cli_kv_load(void *args)
{
	struct cli_kv *a = args;
	struct kv_load *l = calloc(1, sizeof(*l));
	const char *name = a->common.word[0];
	int err;

	if (!l)
		return error_set(-ENOMEM, "no memory for a load");
	l->a = a;
	err = cli_dump_in_open(&l->in, a->common.word[1]);
	if (!err && l->in.parser.head.kind != DUMP_TABLE)
		err = error_set(-EINVAL,
				"%s is the dump of an index; 'aquifer index "
				"load' takes it",
				l->in.name);
	if (!err)
		err = open_or_create(l);
	if (!err)
		err = load_all(l);
	if (!err)
		err = cli_dump_in_report(&l->in, &l->done, "table", name,
					 a->common.json);
	else if (l->done.created)
		drop_again(l);
	else
		err = cli_dump_in_broke_off(&l->done, name, err);
	cli_dump_in_close(&l->in);
	free(l);
	return err;
}
