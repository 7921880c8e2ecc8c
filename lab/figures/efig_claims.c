/* SPDX-License-Identifier: Apache-2.0 */
/* What the paper on Jiffy states in numbers, and what is asked of ours. */
#include <math.h>
#include <string.h>

#include "efig.h"

#define OURS   "ours"
#define REDIS  "ElastiCache-like"
#define POCKET "Pocket-like"

#define SLOW(series, x, published)                                            \
	{                                                                     \
		"slowdown", series ", " #x " %", "slowdown", series, x, NULL, \
			0, published, 0, 0, "x", "of its own at 100 %"        \
	}
#define USE(series, x, published)                                             \
	{                                                                     \
		"slowdown", series " uses, " #x " %", "use", series, x, NULL, \
			0, published, 0, 0, "%", ""                           \
	}
#define CHAIN(x, published)                                                \
	{                                                                  \
		"chain", "a change, " #x " copies", "write_us", "ours", x, \
			NULL, 0, published, 0, (published) / 10.0, "us",   \
			"a tenth at most"                                  \
	}
#define TELL(x, published)                                                    \
	{                                                                     \
		"subscribers", #x " subscribers", "last_us", "ours", x, NULL, \
			0, published, 0, published, "us", "the last of them"  \
	}
#define OVER(x, published)                                                 \
	{                                                                  \
		"slowdown", "Pocket-like slower than ours, " #x " %",      \
			"slowdown", POCKET, x, OURS, x, published, 1.6, 0, \
			"x", ""                                            \
	}

const struct figure_claim efig_claims[] = {
	{"workload", "mean use of the sum of tenants' peaks", "of_peaks",
	 "generated", 0, NULL, 0, 19, 0, 0, "%", "an input: fitted to it"},
	{"workload", "mean use of the peak of all", "of_peak", "generated", 0,
	 NULL, 0, 33, 0, 0, "%", "an input: fitted to it"},
	SLOW(REDIS, 80, 1.48),
	SLOW(REDIS, 60, 4.69),
	SLOW(REDIS, 40, 17.2),
	SLOW(REDIS, 20, 34),
	SLOW(POCKET, 80, 2.07),
	SLOW(POCKET, 60, 3.25),
	SLOW(POCKET, 40, 3.07),
	SLOW(POCKET, 20, 4.13),
	SLOW(OURS, 80, 1.09),
	SLOW(OURS, 60, 1.32),
	SLOW(OURS, 40, 1.75),
	{"slowdown", "ours, 20 %", "slowdown", OURS, 20, NULL, 0, 2.53, 0, 2.6,
	 "x", "of its own at 100 %"},
	OVER(80, 1.9),
	OVER(60, 2.46),
	OVER(40, 1.75),
	OVER(20, 1.63),
	USE(REDIS, 100, 33),
	USE(REDIS, 80, 38),
	USE(REDIS, 60, 31),
	USE(REDIS, 40, 37),
	USE(REDIS, 20, 34),
	USE(POCKET, 100, 33),
	USE(POCKET, 80, 36),
	USE(POCKET, 60, 29),
	USE(POCKET, 40, 28),
	USE(POCKET, 20, 24),
	USE(OURS, 100, 33),
	USE(OURS, 80, 42),
	USE(OURS, 60, 55),
	USE(OURS, 40, 79),
	{"slowdown", "ours uses, 20 %", "use", OURS, 20, NULL, 0, 99.5, 90, 0,
	 "%", ""},
	{"slowdown", "ours uses more than ElastiCache-like, 20 %", "use", OURS,
	 20, REDIS, 20, 2.93, 2.5, 0, "x", ""},
	{"slowdown", "ours uses more than Pocket-like, 20 %", "use", OURS, 20,
	 POCKET, 20, 4.15, 2.5, 0, "x", ""},
	{"life", "surplus", "surplus", "file", 600, NULL, 0, 0, 0, 25, "%",
	 "published in words: small"},
	{"life", "surplus", "surplus", "queue", 600, NULL, 0, 0, 0, 25, "%",
	 "published in words: small"},
	{"life", "a store's surplus is the largest", "surplus", "store", 600,
	 "file", 600, 0, 1, 0, "x", "published in words"},
	{"repartition", "a block more", "ms", "file, queue, 10 Gb/s", 0, NULL,
	 0, 1.85, 0, 2.3, "ms", "published: 1.85 to 2.3"},
	{"repartition", "a split", "ms", "store, 10 Gb/s", 0, NULL, 0, 290, 0,
	 100, "ms", "published: 134 to 500"},
	CHAIN(1, 109),
	CHAIN(2, 238),
	CHAIN(3, 386),
	CHAIN(4, 610),
	CHAIN(5, 741),
	{"chain", "a change, 5 copies", "write_us", "ours", 5, "ours", 1, 6.8,
	 3.4, 13.6, "x", "of one copy; a factor of two"},
	{"chain", "a read, 5 copies", "read_us", "ours", 5, "ours", 1, 1.25, 0,
	 1.25, "x", "of one copy"},
	TELL(1, 320),
	TELL(2, 310),
	TELL(4, 310),
	TELL(8, 420),
	TELL(16, 490),
	TELL(32, 820),
	TELL(64, 1350),
	TELL(128, 1940),
	TELL(256, 3400),
	TELL(512, 4800),
};

STATIC_ASSERT(ARRAY_LEN(efig_claims) == EFIG_CLAIMS, "how many claims");

/* A rule's jobs are compared with the same on all of the peak. */
void efig_judge_jobs(struct figure_run *r)
{
	for (size_t i = 0; i < r->count; i++) {
		struct efig_row *row = figure_row(r, i);
		const struct efig_row *all =
			figure_find(r, NULL, row->p.series, 100);

		if (all && all->res.times > 0)
			row->res.slowdown = row->res.times / all->res.times;
	}
}

/* Neighbours along a sweep whose surplus is in the published order. */
static void judge_order(struct figure_run *r, const char *panel,
			const char *what, double least)
{
	const struct efig_row *before = NULL;
	double good = 0, all = 0, low = 0, high = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct efig_row *row = figure_row(r, i);

		if (strcmp(row->p.panel, panel) != 0 || row->p.err)
			continue;
		if (before) {
			good += row->res.surplus >= before->res.surplus;
			all++;
		}
		low = before ? fmin(low, row->res.surplus) : row->res.surplus;
		high = fmax(high, row->res.surplus);
		before = row;
	}
	if (all > 0 && least > 0)
		figure_claim_add(
			r,
			&(struct figure_claim){.what = what,
					       .published = all,
					       .least = all,
					       .unit = "",
					       .note = "neighbours in order"},
			good);
	else if (all > 0)
		figure_claim_add(
			r,
			&(struct figure_claim){.what = what,
					       .most = 0.25,
					       .unit = "",
					       .note = "published in words: "
						       "hardly"},
			high - low);
}

void efig_judge_sweep(struct figure_run *r)
{
	judge_order(r, "block", "more with larger blocks", 1);
	judge_order(r, "lease", "more with longer leases", 1);
	judge_order(r, "high mark", "changes with the high mark by", 0);
}

/* Gets that meet the split, beside those before it. */
void efig_judge_split(struct figure_run *r)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct efig_row *row = figure_row(r, i);

		if (row->kind != EFIG_KIND_SPLIT || row->p.err ||
		    row->link != EFIG_LINK_10G)
			continue;
		figure_claim_add(
			r,
			&(struct figure_claim){.what = "p99 of gets during it",
					       .published = 1,
					       .most = 1.2,
					       .unit = "x",
					       .note = "published: the same "
						       "CDF"},
			row->res.p99_during_us / row->res.p99_us);
	}
}
