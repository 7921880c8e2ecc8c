/* SPDX-License-Identifier: Apache-2.0 */
/* Scanning, filling and checking an index. */
#include "cli_index.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "cli_bytes.h"
#include "cli_report.h"

enum {
	COUNT = 10000, /* keys of a fill, unless told */
	STOPPED = 1,   /* a scan has what it was asked for */
};

/* ---- scan --------------------------------------------------------------- */

struct scan {
	const struct cli_index *a;
	uint64_t count;
};

static int show_pair(void *user, const void *key, size_t key_len,
		     const void *value, size_t value_len)
{
	struct scan *s = user;
	char number[24];
	int err;

	/* As `put` takes it. */
	if (s->a->kind == AQ_INDEX_VERSIONS && !s->a->common.json) {
		key_len = (size_t)snprintf(
			number, sizeof(number), "%llu",
			(unsigned long long)be64_get(*(const be64 *)key));
		key = number;
	}
	cli_pair_print(s->a->common.json, key, key_len,
		       s->a->keys_only ? NULL : value, value_len, 0);
	err = cli_output_check();
	if (err)
		return err;
	return ++s->count == s->a->count ? STOPPED : 0;
}

int cli_index_scan(void *args)
{
	const struct cli_index *a = args;
	struct scan s = {.a = a};
	struct aq_index_range r = {.from = a->from,
				   .from_len = a->from ? strlen(a->from) : 0,
				   .to = a->to,
				   .to_len = a->to ? strlen(a->to) : 0};
	int err = aq_index_scan(a->client, &r, show_pair, &s);

	return err == STOPPED ? 0 : err;
}

/* ---- fill --------------------------------------------------------------- */

/* One thread: its share of the keys, stored in an order of its own, then read
 * again. */
struct filler {
	struct cli_index *a;
	pthread_t thread;
	uint64_t from, count;
	uint64_t stored;
	double put_s, get_s;
	struct aq_index_stats put, get; /* get: of the reads alone */
	int err;
	char words[200];
};

static double now_s(void)
{
	return (double)clock_mono_ns() / 1e9;
}

static size_t make_key(const struct cli_index *a, uint64_t i, uint8_t key[32])
{
	if (a->kind == AQ_INDEX_VERSIONS) {
		aq_index_key_u64(i, key);
		return 8;
	}
	return (size_t)snprintf((char *)key, 32, "key:%012llu",
				(unsigned long long)i);
}

/* The i-th of a round through all of them that is neither up nor down. */
static uint64_t shuffled(const struct filler *f, uint64_t i)
{
	return f->from + (i * UINT64_C(2654435761) + 7) % f->count;
}

static int put_all(struct filler *f, struct aq_index_client *c, uint8_t *value)
{
	uint8_t key[32];
	int err = 0;

	for (uint64_t i = 0; i < f->count && !err; i++) {
		uint64_t k = shuffled(f, i);

		memcpy(value, &k, sizeof(k));
		err = aq_index_put(c, key, make_key(f->a, k, key), value,
				   f->a->value_bytes);
		f->stored += !err;
	}
	return err;
}

static int get_all(struct filler *f, struct aq_index_client *c, uint8_t *value)
{
	uint8_t key[32];
	size_t len;
	int err = 0;

	for (uint64_t i = 0; i < f->stored && !err; i++)
		err = aq_index_get(c, key, make_key(f->a, shuffled(f, i), key),
				   value, f->a->value_bytes + 8, &len);
	return err;
}

static void *fill_main(void *arg)
{
	struct filler *f = arg;
	struct aq_index_client *c = NULL;
	uint8_t *value = calloc(1, f->a->value_bytes + 8);
	double start = now_s();
	bool is_full;

	f->err = value ? aq_index_client_open(f->a->index, NULL, &c) : -ENOMEM;
	if (!f->err)
		f->err = put_all(f, c, value);
	f->put_s = now_s() - start;
	is_full = f->err == -ENOSPC;
	if (c)
		aq_index_client_stats(c, &f->put);
	if (is_full)
		f->err = 0;
	if (!f->err) {
		start = now_s();
		f->err = get_all(f, c, value);
		f->get_s = now_s() - start;
	}
	if (c)
		aq_index_client_stats(c, &f->get);
	snprintf(f->words, sizeof(f->words), "%s", aq_last_error());
	aq_index_client_close(c);
	free(value);
	if (!f->err && is_full)
		f->err = -ENOSPC;
	return NULL;
}

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0.0;
}

static int report(const struct cli_index *a, const struct filler *f)
{
	uint64_t stored = 0, splits = 0, handed = 0, fails = 0;
	uint64_t put_trips = 0, get_trips = 0;
	double put_s = 0, get_s = 0;
	bool is_full = false;

	for (uint32_t i = 0; i < a->threads; i++) {
		stored += f[i].stored;
		splits += f[i].put.splits;
		handed += f[i].put.handed;
		fails += f[i].put.lock_fails;
		put_trips +=
			f[i].put.put_trips +
			(a->kind == AQ_INDEX_TREE ? 0 : f[i].put.get_trips);
		get_trips += f[i].get.get_trips - f[i].put.get_trips;
		put_s = f[i].put_s > put_s ? f[i].put_s : put_s;
		get_s = f[i].get_s > get_s ? f[i].get_s : get_s;
		is_full |= f[i].err == -ENOSPC;
	}
	return cli_report_print(
		json_pack("{s:s, s:I, s:b, s:I, s:f, s:f, s:f, s:f, s:I, s:I, "
			  "s:I}",
			  "index", a->common.word[0], "stored",
			  (json_int_t)stored, "is_full", is_full,
			  CLI_FIELD(*a, threads), "trips_per_put",
			  ratio(put_trips, stored), "trips_per_get",
			  ratio(get_trips, stored), "puts_per_s",
			  put_s > 0 ? (double)stored / put_s : 0.0,
			  "gets_per_s",
			  get_s > 0 ? (double)stored / get_s : 0.0, "splits",
			  (json_int_t)splits, "locks_handed_on",
			  (json_int_t)handed, "lock_fails", (json_int_t)fails),
		a->common.json);
}

int cli_index_fill(void *args)
{
	struct cli_index *a = args;
	uint64_t count = a->count ? a->count : COUNT;
	struct filler *f;
	uint32_t started = 0;
	int err = 0;

	a->threads = a->threads ? a->threads : 1;
	f = calloc(a->threads, sizeof(*f));
	if (!f)
		return -ENOMEM;
	for (; started < a->threads && !err; started++) {
		struct filler *one = &f[started];

		one->a = a;
		one->from = count * started / a->threads;
		one->count = count * (started + 1) / a->threads - one->from;
		if (!one->count)
			one->count = 1;
		err = -pthread_create(&one->thread, NULL, fill_main, one);
	}
	started -= err ? 1 : 0;
	for (uint32_t i = 0; i < started; i++) {
		(void)pthread_join(f[i].thread, NULL);
		if (f[i].err && f[i].err != -ENOSPC && !err) {
			err = CLI_FAILED;
			cli_error("%s (%s)", f[i].words, aq_strerror(f[i].err));
		}
	}
	if (!err)
		err = report(a, f);
	free(f);
	return err;
}

/* ---- check -------------------------------------------------------------- */

int cli_index_check(void *args)
{
	const struct cli_index *a = args;
	struct aq_index_report r;
	bool good;
	int err = aq_index_check(a->client, &r);

	if (err)
		return err;
	good = !r.bad_nodes && !r.bad_entries && !r.bad_links;
	err = cli_report_print(
		json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
			  "s:I, s:I, s:I, s:I, s:I}",
			  "index", a->common.word[0], "good", good,
			  CLI_FIELD(r, keys), CLI_FIELD(r, levels),
			  CLI_FIELD(r, leaves), CLI_FIELD(r, inner_nodes),
			  CLI_FIELD(r, versions), CLI_FIELD(r, bad_nodes),
			  CLI_FIELD(r, bad_entries), CLI_FIELD(r, bad_links),
			  CLI_FIELD(r, unfinished), CLI_FIELD(r, locks_held),
			  CLI_FIELD(r, clients), CLI_FIELD(r, chunks),
			  CLI_FIELD(r, chunks_taken)),
		a->common.json);
	return err ? err : good ? CLI_OK : CLI_FAILED;
}
