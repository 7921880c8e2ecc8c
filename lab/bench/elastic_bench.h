/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `bench elastic`, and what they share: a controller, a memory
 * node on the server's core, and redis-server, which counts at the better of
 * two places. */
#ifndef AQ_BENCH_ELASTIC_BENCH_H
#define AQ_BENCH_ELASTIC_BENCH_H

#include <aquifer/aquifer.h>
#include <aquifer/elastic.h>

#include "control_bench.h"
#include "elastic_helper.h"
#include "kv_bench.h"

enum {
	ELASTIC_VALUE = 64,
	ELASTIC_MANY = 16,
	ELASTIC_RUNS = 8, /* of a group */
};

struct elastic_bed {
	struct control_bed control;
	struct aq_rack *rack;
	struct elastic_helper helper;
	struct kv_redis *redis; /* NULL: it is not installed */
	unsigned names;		/* of objects, so far */
};

int elastic_bed_make(struct elastic_bed *bed) MUST_CHECK;
void elastic_bed_end(struct elastic_bed *bed);
/* A new name below /bench. */
void elastic_bed_name(struct elastic_bed *bed, char path[32]);
/* Puts a process on one of the two cores. */
void elastic_bed_pin(pid_t pid, int cpu);

/* One way to do something: for a window, recorded as a round of the track. */
struct elastic_run {
	struct subject_desc what;
	int (*run)(struct elastic_bed *bed, void *ctx, unsigned window_ms,
		   struct conduct_track *t, unsigned round);
	void *ctx;
	bool is_redis; /* measured with its server on either core */
};

/* All of them in turns; their rows and ratios. */
int elastic_turns(struct bench *b, struct elastic_bed *bed, const char *group,
		  const struct elastic_run *runs, unsigned count,
		  bench_row_fn more) MUST_CHECK;

/* Requests in Redis' own words. */
size_t elastic_redis_put(char *out, const char *const *words,
			 const size_t *lengths, unsigned count);
int elastic_redis_talk(int fd, const char *out, size_t out_bytes,
		       unsigned replies) MUST_CHECK;

/* Each returns 0, or -errno with words in error_last(). */
int elastic_bench_queue(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_kv(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_append(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_tmpfs(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_grow(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_split(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_notify(struct bench *b, struct elastic_bed *bed) MUST_CHECK;

#endif
