/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a group of subjects in turns, round by round, and keeps what is clean.
 */
#ifndef AQ_BENCH_CONDUCT_H
#define AQ_BENCH_CONDUCT_H

#include "subject.h"

enum {
	CONDUCT_ROUNDS_MAX = 101,
	CONDUCT_TRIES = 4,	/* of one round that meets foreign load */
	CONDUCT_SETTLE_MS = 12, /* before each round */
	CONDUCT_CALM_MS = 250,	/* after a round that was disturbed */
	CONDUCT_GROUP_MAX = 10, /* subjects in one group */
	CONDUCT_WHY_BYTES = 320,
};

/* A round with more than this many cores of other work is discarded. */
#define CONDUCT_FOREIGN_MAX 0.2

struct conduct_options {
	unsigned rounds;
	uint64_t window_ns;
	const char *helper;		   /* path of the UCX helper, or NULL */
	const struct subject_world *world; /* who else takes part, or NULL */
	bool keep_all;			   /* rounds with foreign load, too */
};

/* What one subject did. */
struct conduct_track {
	const struct subject_desc *desc;
	struct side_result round[CONDUCT_ROUNDS_MAX];
	bool is_clean[CONDUCT_ROUNDS_MAX]; /* round[i] counts */
	unsigned kept;			   /* how many do */
	unsigned discarded;
	double foreign_worst; /* cores, over all rounds */
	uint32_t guard;
	char why[CONDUCT_WHY_BYTES]; /* not empty: failed, nothing to report */
};

/* Fills tracks[i] for desc[i], count <= CONDUCT_GROUP_MAX. Failures are told in
 * the tracks: one subject that fails does not stop the others. */
void conduct_group(struct conduct_track *tracks,
		   const struct subject_desc *const *desc, size_t count,
		   const struct conduct_options *opt);

/* Numbers over the kept rounds. */
struct conduct_summary {
	uint64_t sample_count;
	uint64_t op_count;
	double rate; /* operations per second: median of the rounds */
	double rate_min, rate_max;
	double p50_ns; /* medians of the rounds' percentiles */
	double p50_min_ns, p50_max_ns;
	double p99_ns;
	double p999_ns;
};

void conduct_summarize(const struct conduct_track *track, unsigned series,
		       struct conduct_summary *out);

/* Operations per second of one round. */
double conduct_round_rate(const struct side_result *r);

/* The track has samples of this series in a clean round. */
bool conduct_has_series(const struct conduct_track *track, unsigned series);

/* Enough clean rounds to speak of a median: more than half of those asked. */
bool conduct_is_sound(const struct conduct_track *track, unsigned rounds);

#endif
