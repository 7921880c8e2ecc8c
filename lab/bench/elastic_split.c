/* SPDX-License-Identifier: Apache-2.0 */
/* A block of a store that is split: what readers notice, and how long it takes
 * beside a copy of the bytes that move. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "elastic_bench.h"
#include "stats.h"
#include "ticks.h"

enum {
	BLOCK = 64 << 20,
	VALUE = 1024,
	LARGE = 100 << 10,
	LARGES = 64,
	GETS_MAX = 1 << 16,
	BEFORE = 2000, /* gets */
	ROUNDS = 3,    /* a block of 64 MiB takes its time to be filled */
};

struct gets {
	unsigned count;
	uint32_t ns[GETS_MAX];
	uint64_t end_ns[GETS_MAX];
	uint32_t chosen[GETS_MAX];
	char value[LARGE];
};

struct outcome {
	double median, p99; /* during / before */
	double split_s, copy_s;
};

static int key_of(char key[24], const char *prefix, unsigned i)
{
	return snprintf(key, 24, "%s%u", prefix, i);
}

/* Values of 1 KiB up to that share of the block, and some of 100 KB. */
static int fill(struct aq_ekv *kv, struct gets *g, double share)
{
	struct aq_ekv_stat stat = {0};
	char key[24];
	int err = 0;

	for (unsigned i = 0; i < LARGES && !err; i++)
		err = aq_ekv_put(kv, key, (size_t)key_of(key, "l", i), g->value,
				 LARGE, AQ_EKV_ANY, NULL);
	for (unsigned i = 0; !err && (double)stat.used_bytes < share * BLOCK;
	     i++) {
		err = aq_ekv_put(kv, key, (size_t)key_of(key, "v", i), g->value,
				 VALUE, AQ_EKV_ANY, NULL);
		if (!err && i % 1024 == 1023)
			err = aq_ekv_stat(kv, &stat);
	}
	return err ? err
	       : stat.blocks == 1
		       ? 0
		       : error_set(-EIO, "it was split before its time");
}

static int get_one(struct aq_ekv *kv, struct gets *g)
{
	uint64_t start = bench_now_ns();
	char key[24];
	size_t len;
	int err =
		aq_ekv_get(kv, key, (size_t)key_of(key, "l", g->count % LARGES),
			   g->value, LARGE, &len, NULL);

	g->end_ns[g->count] = bench_now_ns();
	g->ns[g->count] = (uint32_t)(g->end_ns[g->count] - start);
	g->count++;
	return err;
}

/* Gets that overlap the time from `from` to `to`. */
static unsigned choose(struct gets *g, uint64_t from, uint64_t to)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->count; i++)
		if (g->end_ns[i] > from && g->end_ns[i] - g->ns[i] < to)
			g->chosen[n++] = g->ns[i];
	return n;
}

/* While another process puts until the block is split. */
static int watch_split(struct elastic_bed *bed, struct aq_ekv *kv,
		       struct gets *g, struct outcome *out)
{
	struct elastic_shared *shared = bed->helper.shared;
	double median, p99;
	unsigned n;
	int err = 0;

	g->count = 0;
	for (unsigned i = 0; i < BEFORE && !err; i++)
		err = get_one(kv, g);
	memcpy(g->chosen, g->ns, g->count * sizeof(g->ns[0]));
	median = stats_quantile_u32(g->chosen, g->count, 0.5);
	p99 = stats_quantile_u32(g->chosen, g->count, 0.99);
	shared->split_end_ns = 0;
	shared->split_start_ns = 0;
	if (!err)
		err = elastic_helper_begin(&bed->helper);
	g->count = 0;
	while (!err && g->count < GETS_MAX &&
	       !elastic_helper_is_done(&bed->helper))
		err = get_one(kv, g);
	if (!err)
		err = elastic_helper_wait(&bed->helper);
	if (err)
		return err;
	n = choose(g, shared->split_start_ns, shared->split_end_ns);
	out->median = n ? stats_quantile_u32(g->chosen, n, 0.5) / median : NAN;
	out->p99 = n ? stats_quantile_u32(g->chosen, n, 0.99) / p99 : NAN;
	return 0;
}

/* A split that nobody disturbs. */
static int time_split(struct elastic_bed *bed, struct outcome *out)
{
	struct elastic_shared *shared = bed->helper.shared;
	int err = elastic_helper_begin(&bed->helper);

	if (!err)
		err = elastic_helper_wait(&bed->helper);
	out->split_s =
		(double)(shared->split_end_ns - shared->split_start_ns) / 1e9;
	return err;
}

/* As many bytes as moved, by WRITEs of 1 MiB. */
static int time_copy(struct elastic_bed *bed, struct outcome *out)
{
	const size_t part = 1 << 20, bytes = BLOCK / 2;
	struct aq_region *region = NULL;
	char name[24];
	uint8_t *data = calloc(1, part);
	uint64_t start;
	int err = data ? 0 : error_set(-ENOMEM, "no memory");

	(void)snprintf(name, sizeof(name), "copy%u", bed->names++);
	if (!err)
		err = aq_region_create(bed->rack, name, bytes, NULL, &region);
	for (size_t at = 0; at < bytes && !err; at += part)
		err = aq_write(region, at, data,
			       part); /* its pages are there */
	start = bench_now_ns();
	for (size_t at = 0; at < bytes && !err; at += part)
		err = aq_write(region, at, data, part);
	out->copy_s = (double)(bench_now_ns() - start) / 1e9;
	aq_region_close(region);
	free(data);
	return err;
}

static int run_once(struct elastic_bed *bed, struct gets *g, bool with_gets,
		    struct outcome *out)
{
	struct aq_elastic_options o = {.flags = AQ_ELASTIC_NEW,
				       .block_bytes = BLOCK};
	struct elastic_shared *shared = bed->helper.shared;
	struct aq_ekv *kv = NULL;
	int err;

	shared->job = ELASTIC_SPLIT;
	elastic_bed_name(bed, shared->path);
	err = aq_ekv_open(bed->rack, shared->path, &o, &kv);
	if (!err)
		err = fill(kv, g, 0.9);
	if (!err)
		err = with_gets ? watch_split(bed, kv, g, out)
				: time_split(bed, out);
	aq_ekv_close(kv);
	if (!err && !with_gets)
		err = time_copy(bed, out);
	return err ? err : aq_name_remove(bed->rack, shared->path, false);
}

int elastic_bench_split(struct bench *b, struct elastic_bed *bed)
{
	unsigned rounds = (unsigned)u64_min(b->rounds, ROUNDS);
	double median[ROUNDS], p99[ROUNDS], ratio[ROUNDS], split[ROUNDS];
	struct gets *g = malloc(sizeof(*g));
	int err = g ? 0 : error_set(-ENOMEM, "no memory");

	if (g)
		memset(g->value, 'a', sizeof(g->value));
	for (unsigned i = 0; i < rounds && !err; i++) {
		struct outcome o = {0};

		err = run_once(bed, g, true, &o);
		if (!err)
			err = run_once(bed, g, false, &o);
		median[i] = o.median;
		p99[i] = o.p99;
		split[i] = o.split_s * 1000;
		ratio[i] = o.split_s / o.copy_s;
	}
	free(g);
	if (err)
		return err;
	(void)json_object_set_new(
		bench_row(b, "split", "split", stats_median(split, rounds),
			  "ms",
			  "of a block of 64 MiB that is full of values of 1 "
			  "KiB; the paper's is of 128 MB over 10 Gb/s"),
		"paper", json_integer(290));
	bench_ratio_add(b, "split_get_median", stats_median(median, rounds));
	bench_ratio_add(b, "split_get_p99", stats_median(p99, rounds));
	bench_ratio_add(b, "split_vs_copy", stats_median(ratio, rounds));
	return 0;
}
