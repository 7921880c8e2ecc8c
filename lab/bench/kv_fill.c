/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table without a network: the shipped hashing and search over rows in
 * local memory, filled until the first insert fails. Cuckoo paths, locks and
 * fill do not depend on where the rows are.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv/kv.h"
#include "kv_bench.h"

enum {
	ENTRY_BYTES = 32,
	SPANS = 34, /* powers of two */
	NEAR_ROWS = 32,
	FAR_ROWS = 2000,
	LOCALITY = 2300,  /* that of a table unless told otherwise: f * 1000 */
	SPREAD_PART = 10, /* of the entries: many tables are filled */
};

#define SEED 20240601

struct least {
	double fill, single;
};

struct filling {
	struct kv_geometry g;
	uint8_t *rows;
	struct kv_search *search;
	uint64_t count;
	uint64_t within_five;
	uint64_t single;      /* of the first nine tenths */
	uint64_t single_base; /* how many these were */
	uint64_t moved;	      /* entries, by inserts */
	/* Of the inserts up to 95 %: all, those whose path is near, those that
	 * move anything, and of these those whose path is far. */
	uint64_t inserts_95, near_95, movers_95, far_95;
	uint64_t distance[SPANS];
	uint64_t span[SPANS];
	uint64_t length[KV_PATH_MAX + 1];
};

static const uint8_t *row_of(void *ctx, uint64_t row, bool *usable)
{
	struct filling *f = ctx;

	*usable = true;
	return f->rows + row * f->g.row_bytes;
}

static unsigned bits_of(uint64_t v)
{
	return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

/* All rows of the path and both of the key, as an insert locks them. */
static bool needs_one_word(const struct kv_geometry *g,
			   const struct kv_place *place,
			   const struct kv_path *path)
{
	uint64_t word = kv_lock_of(g, place->row[0]) / 64;
	unsigned i;

	if (kv_lock_of(g, place->row[1]) / 64 != word)
		return false;
	for (i = 0; i < path->count; i++)
		if (kv_lock_of(g, path->step[i].row) / 64 != word)
			return false;
	return true;
}

static uint64_t span_of(const struct kv_path *path)
{
	uint64_t low = path->step[0].row, high = low;
	unsigned i;

	for (i = 1; i < path->count; i++) {
		low = path->step[i].row < low ? path->step[i].row : low;
		high = path->step[i].row > high ? path->step[i].row : high;
	}
	return high - low;
}

static void count_span(struct filling *f, const struct kv_path *path)
{
	uint64_t span = span_of(path);

	f->span[bits_of(span)]++;
	if (f->count >= f->g.rows * f->g.entries / 100 * 95)
		return;
	f->inserts_95++;
	f->near_95 += span <= NEAR_ROWS;
	f->movers_95 += path->count > 1;
	f->far_95 += span > FAR_ROWS;
}

static void apply(struct filling *f, const struct kv_path *path, uint64_t key)
{
	const struct kv_geometry *g = &f->g;
	unsigned i;

	for (i = path->count; i-- > 0;) {
		uint8_t *to = f->rows + path->step[i].row * g->row_bytes +
			      (size_t)path->step[i].entry * g->entry_bytes;

		if (i == 0)
			kv_entry_inline(g, to, &key, sizeof(key), &key,
					sizeof(key), 0);
		else
			memcpy(to,
			       f->rows + path->step[i - 1].row * g->row_bytes +
				       (size_t)path->step[i - 1].entry *
					       g->entry_bytes,
			       g->entry_bytes);
	}
}

/* False: there is no path. */
static bool insert(struct filling *f, uint64_t key)
{
	struct kv_view view = {row_of, f};
	struct kv_place place;
	struct kv_path path;
	uint64_t d;

	kv_place_of(&f->g, kv_hash_key(&f->g, &key, sizeof(key)), &place);
	if (kv_search_run(f->search, &f->g, &view, &place, AQ_KV_SEARCH_BFS,
			  &path))
		return false;
	d = place.row[0] > place.row[1] ? place.row[0] - place.row[1]
					: place.row[1] - place.row[0];
	f->within_five += d <= 5;
	f->distance[bits_of(d)]++;
	count_span(f, &path);
	f->length[path.count]++;
	f->moved += path.count - 1;
	if (f->count < f->g.rows * f->g.entries / 10 * 9) {
		f->single_base++;
		f->single += needs_one_word(&f->g, &place, &path);
	}
	apply(f, &path, key);
	f->count++;
	return true;
}

/* Of one way to hash, or one distribution. */
static void add_row(struct bench *b, const char *of, const char *name,
		    double value, const char *unit, const char *what)
{
	json_t *row = bench_row(b, "fill", name, value, unit, what);

	json_object_set_new(row, "of", json_string(of));
}

/* "d_le_2^k": the share of keys up to there, as in the published figures. */
static void add_cdf(struct bench *b, const char *group, const uint64_t *buckets,
		    uint64_t total)
{
	uint64_t sum = 0;
	char name[32];
	unsigned i;

	for (i = 0; i < SPANS && sum < total; i++) {
		sum += buckets[i];
		snprintf(name, sizeof(name), "below_%llu", 1ull << i);
		add_row(b, group, name, (double)sum / (double)total, "share",
			"rows apart, cumulative");
	}
}

static void report(struct bench *b, const struct filling *f, const char *mode,
		   bool is_main)
{
	double capacity = (double)(f->g.rows * f->g.entries);
	double fill = (double)f->count / capacity;
	double single = (double)f->single / (double)f->single_base;
	double five = (double)f->within_five / (double)f->count;

	add_row(b, mode, "max_fill", fill, "share",
		"first insert that finds no path");
	add_row(b, mode, "single_mcas_share", single, "share",
		"inserts up to 90 % whose rows (both of the key and all "
		"of the path) are under one word of locks");
	add_row(b, mode, "within_five", five, "share",
		"keys whose rows are at most five apart");
	add_row(b, mode, "no_move", (double)f->length[1] / (double)f->count,
		"share", "inserts that move nothing");
	add_row(b, mode, "moves_per_insert",
		(double)f->moved / (double)f->count, "entries",
		"moved by an insert, mean");
	if (!is_main)
		return;
	add_cdf(b, "distance_cdf", f->distance, f->count);
	add_cdf(b, "span_cdf", f->span, f->count);
	bench_ratio_add(b, "max_fill", fill);
	bench_ratio_add(b, "single_mcas_share", single);
	bench_ratio_add(b, "within_five", five);
}

/* One seed of several: its own numbers, and the least of all so far. */
static void report_seed(struct bench *b, const struct filling *f,
			struct least *least)
{
	double fill = (double)f->count / (double)(f->g.rows * f->g.entries);
	double single = (double)f->single / (double)f->single_base;
	char name[32];

	snprintf(name, sizeof(name), "max_fill_seed_%llu",
		 (unsigned long long)f->g.seed);
	add_row(b, "seeds", name, fill, "share", "dependent hashing");
	snprintf(name, sizeof(name), "single_mcas_seed_%llu",
		 (unsigned long long)f->g.seed);
	add_row(b, "seeds", name, single, "share", "dependent hashing");
	least->fill = fill < least->fill ? fill : least->fill;
	least->single = single < least->single ? single : least->single;
}

static void drop(struct filling *f)
{
	if (!f)
		return;
	kv_search_destroy(f->search);
	free(f->rows);
	free(f);
}

/* Until an insert finds no path. NULL: after bench_fail. */
static struct filling *fill_up(struct bench *b, uint64_t capacity,
			       uint32_t hash, uint32_t locality_milli,
			       uint64_t seed)
{
	/* Every row has its own lock's place in the order; none is virtual. */
	struct aq_kv_options o = {.capacity = capacity,
				  .entry_bytes = ENTRY_BYTES,
				  .extent_bytes = 1,
				  .hash = hash,
				  .locality_milli = locality_milli,
				  .lock_max = 1u << 30,
				  .seed = seed};
	struct filling *f = calloc(1, sizeof(*f));
	uint64_t key = 0;
	int err = f ? kv_geometry_make(&o, &f->g) : -ENOMEM;

	if (!err) {
		f->search = kv_search_create();
		f->rows = calloc(f->g.rows, f->g.row_bytes);
	}
	if (err || !f->rows || !f->search) {
		(void)bench_fail(b, err ? err : -ENOMEM,
				 "no memory for %llu entries",
				 (unsigned long long)capacity);
		drop(f);
		return NULL;
	}
	while (insert(f, key * 0x9e3779b97f4a7c15u))
		key++;
	return f;
}

/* least: one seed of several; NULL: the one that is reported in full. */
static int run_mode(struct bench *b, uint32_t hash, const char *mode,
		    uint64_t seed, struct least *least)
{
	struct filling *f =
		fill_up(b, bench_number(b, "entries"), hash, LOCALITY, seed);

	if (!f)
		return -ENOMEM;
	if (least)
		report_seed(b, f, least);
	else
		report(b, f, mode, hash == AQ_KV_HASH_DEPENDENT);
	drop(f);
	return 0;
}

/* ---- figures 3.4 to 3.6: both ways to hash, and several f -----------------
 */

static int report_spread(struct bench *b, uint32_t hash, uint32_t locality)
{
	uint64_t capacity = bench_number(b, "entries") / SPREAD_PART;
	struct filling *f =
		fill_up(b, capacity ? capacity : 1, hash, locality, SEED);
	char of[32] = "independent", group[48];
	double near, far;

	if (!f)
		return -ENOMEM;
	if (hash == AQ_KV_HASH_DEPENDENT)
		snprintf(of, sizeof(of), "f = %.1f", locality / 1000.0);
	report(b, f, of, false);
	snprintf(group, sizeof(group), "%s, distance", of);
	add_cdf(b, group, f->distance, f->count);
	snprintf(group, sizeof(group), "%s, span", of);
	add_cdf(b, group, f->span, f->count);
	near = (double)f->near_95 / (double)f->inserts_95;
	far = (double)f->far_95 / (double)(f->movers_95 ? f->movers_95 : 1);
	add_row(b, of, "span_up_to_32", near, "share",
		"inserts up to 95 % whose path spans so many rows at most");
	add_row(b, of, "movers_beyond_2000", far, "share",
		"of those that move anything, the ones that span more");
	if (hash == AQ_KV_HASH_DEPENDENT && locality == LOCALITY)
		bench_ratio_add(b, "span_up_to_32", near);
	if (hash == AQ_KV_HASH_INDEPENDENT)
		bench_ratio_add(b, "independent_beyond_2000", far);
	drop(f);
	return 0;
}

int kv_bench_spread(struct bench *b)
{
	static const uint32_t locality[] = {1900, 2100, LOCALITY, 2500, 2700};
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(locality) && !err; i++)
		err = report_spread(b, AQ_KV_HASH_DEPENDENT, locality[i]);
	return err ? err : report_spread(b, AQ_KV_HASH_INDEPENDENT, LOCALITY);
}

int kv_bench_fill(struct bench *b)
{
	struct least least = {1, 1};
	int err = run_mode(b, AQ_KV_HASH_DEPENDENT, "dependent", SEED, NULL);
	uint64_t i, seeds = bench_number(b, "fill-seeds");

	if (!err)
		err = run_mode(b, AQ_KV_HASH_BLOCK, "block", SEED, NULL);
	if (!err)
		err = run_mode(b, AQ_KV_HASH_INDEPENDENT, "independent", SEED,
			       NULL);
	for (i = 1; i <= seeds && !err; i++)
		err = run_mode(b, AQ_KV_HASH_DEPENDENT, NULL, i, &least);
	if (err || !seeds)
		return err;
	add_row(b, "seeds", "max_fill_least", least.fill, "share",
		"of these seeds");
	add_row(b, "seeds", "single_mcas_least", least.single, "share",
		"of these seeds");
	return 0;
}
