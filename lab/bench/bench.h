/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One benchmark: its options, its groups of subjects, and their outcome: rows,
 * ratios, bounds and verdicts, for people or as the one JSON object that all
 * benchmarks print (man page aquifer-bench(1), JSON).
 *
 * How to add one: write a struct bench_def with its tables and its run(), and
 * add it to bench_all in bench_all.c.
 */
#ifndef AQ_BENCH_H
#define AQ_BENCH_H

#include <jansson.h>

#include "base/base.h"
#include "conduct.h"

enum bench_exit {
	BENCH_RAN = 0,
	BENCH_FAILED = 1,
	BENCH_USAGE = 2,
	BENCH_MISSED = 3, /* a ratio missed its bound, with --check only */
};

enum {
	BENCH_OPTIONS_MAX = 24,
	BENCH_WHY_BYTES = 400,
	BENCH_ROUNDS_MAX = CONDUCT_ROUNDS_MAX,
};

/* An option; a table of them ends with a row without a name. */
struct bench_option {
	const char *name;
	/* What --help calls its value; "a|b": it is one of these words. */
	const char *arg;
	const char *help;
	/* The value is a number from `min`, which is not 0, to `max`; without
	 * that a word. */
	uint64_t min, max;
	uint64_t normal, quick; /* defaults of a number */
};

/* A ratio, or another number that is judged; a table of them ends with a row
 * without a name. */
struct bench_ratio {
	const char *name;
	const char *meaning;
	const char *group; /* that it is measured with */
	const char *must;  /* ">=", "<=", "<" or "=="; NULL: only printed */
	double bound;
	/* Two subjects of the group, which are compared round by round. Without
	 * a peer the ratio is the first one's number; without both,
	 * bench_ratio_add gives it. */
	const char *ours, *peer;
	enum conduct_metric metric;
	const char *paper; /* the published value, or NULL */
};

/* Rows of such a table: what two subjects did, and any other number. */
#define BENCH_RATIO(name_, meaning_, group_, must_, bound_, ours_, peer_,     \
		    metric_, paper_)                                          \
	{                                                                     \
		.name = name_, .meaning = meaning_, .group = group_,          \
		.must = must_, .bound = bound_, .ours = ours_, .peer = peer_, \
		.metric = metric_, .paper = paper_                            \
	}
#define BENCH_NUMBER(name_, meaning_, group_, must_, bound_)            \
	BENCH_RATIO(name_, meaning_, group_, must_, bound_, NULL, NULL, \
		    METRIC_RATE, NULL)
/* Rows of a table of options: a number, and a word. */
#define BENCH_OPTION(name_, arg_, help_, min_, max_, normal_, quick_)   \
	{                                                               \
		.name = name_, .arg = arg_, .help = help_, .min = min_, \
		.max = max_, .normal = normal_, .quick = quick_         \
	}
#define BENCH_WORD(name_, arg_, help_)                    \
	{                                                 \
		.name = name_, .arg = arg_, .help = help_ \
	}

struct bench;

struct bench_def {
	const char *name;
	const char *summary; /* one line */
	const char *about;   /* paragraphs of --help */
	unsigned rounds, rounds_quick;
	unsigned window_ms, window_ms_quick; /* 0: it has no windows */
	const struct bench_option *options;  /* its own; NULL: none */
	const struct bench_ratio *ratios;
	/* Groups without a ratio; ends with NULL, or NULL: none. */
	const char *const *more_groups;
	const char *const *columns; /* keys of rows that people see, or NULL */
	/* Measures the groups that it wants. 0, or -errno after bench_fail. */
	int (*run)(struct bench *b);
};

/* All benchmarks, the one that runs the others last; ends with NULL. */
extern const struct bench_def *const bench_all[];
extern const struct bench_def bench_verbs, bench_edm, bench_offload,
	bench_switch, bench_fair, bench_paging, bench_kv, bench_walk,
	bench_tier, bench_control, bench_mind, bench_elastic;

/* One run. */
struct bench {
	const struct bench_def *def;
	/* Options that all benchmarks have. */
	bool json, quick, check, busy;
	bool is_one_of_all; /* the command is `bench all` */
	uint32_t rounds, window_ms;
	bool has_rounds;  /* they were given */
	const char *only; /* NULL: everything */
	/* By place in def->options: what was given, or 0 and NULL. */
	uint64_t number[BENCH_OPTIONS_MAX];
	const char *word[BENCH_OPTIONS_MAX];
	/* The outcome. */
	json_t *rows, *ratios, *bounds, *voids;
	char why[BENCH_WHY_BYTES]; /* of a run that failed, or "" */
};

/* `aquifer bench NAME ...`; argv[0] is a name of bench_all. An exit code. */
int bench_cmd(int argc, char **argv);

/* ---- options (bench_options.c) ------------------------------------------ */

/* -1: go on; else an exit code, after --help or words on stderr. argv[0] is
 * the benchmark's name. */
int bench_parse(struct bench *b, int argc, char **argv) MUST_CHECK;
/* An option of its own, by name; a number that was not given is its default,
 * a word NULL. */
uint64_t bench_number(const struct bench *b, const char *name);
const char *bench_word(const struct bench *b, const char *name);
/* Whether --only selects the group, by its own name or by that of a ratio. */
bool bench_wants(const struct bench *b, const char *group);
bool bench_wants_ratio(const struct bench *b, const struct bench_ratio *r);
/* Whether --only selects anything at all. */
bool bench_wants_any(const struct bench *b);

/* ---- the outcome (bench_report.c) --------------------------------------- */

void bench_open(struct bench *b);
void bench_close(struct bench *b);

/* Adds a row; the caller may set more keys in it. It belongs to the bench. */
json_t *bench_row(struct bench *b, const char *group, const char *name,
		  double value, const char *unit, const char *what);
/* Adds a row for something that could not be measured. */
void bench_row_failed(struct bench *b, const char *group, const char *name,
		      const char *unit, const char *why);
/* Judges a ratio's number by its row in the table. If it is not a number, the
 * ratio is void. */
void bench_ratio_add(struct bench *b, const char *name, double value);
void bench_void(struct bench *b, const char *name, const char *fmt, ...)
	PRINTF(3, 4);
/* The run goes no further: says so on stderr, and all ratios that are not
 * known yet are void for this reason. Returns rc. */
int bench_fail(struct bench *b, int rc, const char *fmt, ...) PRINTF(3, 4);
/* One line on stderr for people who watch. */
void bench_progress(const struct bench *b, const char *fmt, ...) PRINTF(2, 3);

/* The whole object, at the end of the run; the caller owns it. */
json_t *bench_object(struct bench *b);
void bench_print(struct bench *b);
int bench_exit_code(const struct bench *b);

/* ---- subjects (bench_judge.c) ------------------------------------------- */

/* Adds keys, or rows, to the row of a track. */
typedef void (*bench_row_fn)(struct bench *b, const struct conduct_group *g,
			     const struct conduct_track *t, json_t *row);
/* Runs the groups that --only selects, their subjects in turns, and adds their
 * rows and the ratios of the table that name their subjects. */
int bench_run_groups(struct bench *b, struct conduct_group *groups,
		     unsigned count, const struct conduct_options *opt,
		     bench_row_fn more) MUST_CHECK;
/* The same for a benchmark that has measured rates itself, in turns. */
void bench_report_tracks(struct bench *b, const char *group,
			 struct conduct_track *track, unsigned count,
			 bench_row_fn more);
/* The ratios of groups that have run. */
void bench_judge(struct bench *b, const struct conduct_group *groups,
		 unsigned count);

#endif
