/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a group of subjects in turns, round by round, and keeps the rounds
 * without foreign load. */
#ifndef AQ_BENCH_CONDUCT_H
#define AQ_BENCH_CONDUCT_H

#include "subject.h"

enum {
	CONDUCT_ROUNDS_MAX = 101,
	CONDUCT_TRIES = 4,	/* of one round that meets foreign load */
	CONDUCT_SETTLE_MS = 12, /* before each round */
	CONDUCT_CALM_MS = 250,	/* after a round that was disturbed */
	CONDUCT_GROUP_MAX = 24, /* subjects in one group */
	CONDUCT_WHY_BYTES = 320,
};

/* A round with more than this many cores of other work is discarded. */
#define CONDUCT_FOREIGN_MAX 0.2

struct conduct_options {
	unsigned rounds;
	uint64_t window_ns;
	const char *helper;		   /* path of the UCX helper, or NULL */
	const struct subject_world *world; /* other processes, or NULL */
	bool keep_all;			   /* rounds with foreign load, too */
	bool is_together; /* the subjects of all groups take turns */
};

/* What one subject did. */
struct conduct_track {
	const struct subject_desc *desc;
	struct side_result round[CONDUCT_ROUNDS_MAX];
	bool is_clean[CONDUCT_ROUNDS_MAX]; /* round[i] counts */
	unsigned kept;			   /* rounds that count */
	unsigned discarded;
	double foreign_worst; /* cores, over all rounds */
	uint32_t shield;
	char why[CONDUCT_WHY_BYTES]; /* not empty: failed, nothing to report */
	bool is_absent; /* because it is not installed, which is no failure */
};

/* Fills tracks[i] for desc[i], count <= CONDUCT_GROUP_MAX. Failures are noted
 * in the tracks: one subject that fails does not stop the others. */
void conduct_run(struct conduct_track *tracks,
		 const struct subject_desc *const *desc, size_t count,
		 const struct conduct_options *opt);

/* What is compared. */
enum conduct_metric {
	METRIC_RATE, /* operations per second */
	METRIC_P50,  /* ns of one operation */
	METRIC_P99,
	METRIC_CALLER,	  /* ns to issue one and to poll for it */
	METRIC_COMM,	  /* share of the time inside the library */
	METRIC_COMM_BUSY, /* the same without waiting, on either side */
};

double conduct_metric_of(const struct side_result *r, enum conduct_metric m);
const char *conduct_unit(enum conduct_metric m);

/* Subjects that take turns, and what they did. */
struct conduct_group {
	const char *name;
	enum conduct_metric metric; /* of its rows */
	const struct subject_desc *subject[CONDUCT_GROUP_MAX];
	unsigned subject_count;
	struct conduct_track *track; /* one for each; NULL: it has not run */
};

/* Over the kept rounds. */
struct conduct_summary {
	uint64_t sample_count;
	uint64_t op_count;
	double median, min, max; /* of the metric */
	double p50_ns; /* medians of the rounds' percentiles: one operation */
	double p99_ns;
	double p999_ns;
};

void conduct_summarize(const struct conduct_track *track, enum conduct_metric m,
		       struct conduct_summary *out);

/*
 * The median over the rounds of ours / peer in the same round. Hosts move their
 * guests' cores about, and a cache line then takes up to four times as long;
 * two neighbouring rounds see the same placement, two medians need not. Returns
 * how many rounds were compared.
 */
unsigned conduct_paired(const struct conduct_track *ours,
			const struct conduct_track *peer, enum conduct_metric m,
			double *ratio) __attribute__((warn_unused_result));

/* The median of side_result.more at that index; or, for a sum over all
 * processes in a round, the part of one operation. */
double conduct_more(const struct conduct_track *t, unsigned more,
		    bool is_per_op);

/* The median over the kept rounds of a series' median. */
double conduct_series(const struct conduct_track *t, unsigned series);

/* Records a round that counts, for benchmarks that measure without subjects of
 * two processes. */
void conduct_record(struct conduct_track *track, unsigned round, uint64_t ops,
		    uint64_t elapsed_ns);

/* Enough clean rounds to speak of a median: more than half of those asked. */
bool conduct_is_sound(const struct conduct_track *track, unsigned rounds);

#endif
