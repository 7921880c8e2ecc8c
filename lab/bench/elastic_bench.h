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
#include "elastic_workers.h"
#include "kv_bench.h"

enum {
	ELASTIC_VALUE = 64,
	ELASTIC_MANY = 16,
	ELASTIC_RUNS = 8, /* of a group */
};

#define ELASTIC_NODE_SIZE  "2G"
#define ELASTIC_JOBS_SIZE  "128M"
#define ELASTIC_SPILL_SIZE "1G"

struct elastic_bed {
	struct control_bed control;
	struct aq_rack *rack;
	struct elastic_helper helper;
	struct elastic_workers workers;
	struct kv_redis *redis; /* NULL: it is not installed */
	unsigned names;		/* of objects, so far */
};

/* `has_spill`: the node has a spill tier, too. */
int elastic_bed_make(struct elastic_bed *bed, const char *node_size,
		     bool has_spill) MUST_CHECK;
void elastic_bed_end(struct elastic_bed *bed);
/* Another memory node on the server's core, from now on. */
int elastic_bed_second(struct elastic_bed *bed) MUST_CHECK;
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

/* Does `step` for a window; each time it is so many operations. */
int elastic_step_for(int (*step)(void *ctx), void *ctx, unsigned ops,
		     unsigned window_ms, struct conduct_track *t,
		     unsigned round) MUST_CHECK;

/* Requests in Redis' own words. */
size_t elastic_redis_put(char *out, const char *const *words,
			 const size_t *lengths, unsigned count);
int elastic_redis_talk(int fd, const char *out, size_t out_bytes,
		       unsigned replies) MUST_CHECK;

/* Who publishes: a put, or PUBLISH on channel "c"; with the time. */
struct elastic_sender {
	struct aq_queue *queue; /* NULL: redis-server */
	int fd;
};
int elastic_notify_send(const struct elastic_sender *s) MUST_CHECK;
void elastic_notify_sleep(uint64_t until_ns);

/* Each returns 0, or -errno with words in error_last(). */
int elastic_bench_queue(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_kv(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_append(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_tmpfs(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_grow(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_split(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_notify(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_listeners(struct bench *b,
			    struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_sort(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_paper(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_sizes(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_faces(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
int elastic_bench_chain(struct bench *b, struct elastic_bed *bed) MUST_CHECK;
/* With a memory node of ELASTIC_JOBS_SIZE and a spill tier. */
int elastic_bench_jobs(struct bench *b, struct elastic_bed *bed) MUST_CHECK;

#endif
