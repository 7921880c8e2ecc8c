/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of `bench elastic` that do tasks of jobs. They are made before the
 * benchmark has threads, so a task is a function of the benchmark. */
#ifndef AQ_BENCH_ELASTIC_WORKERS_H
#define AQ_BENCH_ELASTIC_WORKERS_H

#include <sys/types.h>

#include "base/base.h"

enum {
	ELASTIC_WORKERS = 8,
};

/* Memory that all of them share; a page of it exists once it is touched. */
#define ELASTIC_WORK_BYTES (320ull << 20)

struct aq_rack;

/* What a task gets. */
struct elastic_work {
	struct aq_rack *rack; /* of its process */
	void *shared;	      /* ELASTIC_WORK_BYTES */
	unsigned task;
};
typedef int (*elastic_task_fn)(const struct elastic_work *w);

struct elastic_workers {
	struct elastic_worker {
		pid_t pid;
		int to, from;
	} worker[ELASTIC_WORKERS];
	void *shared;
};

/* Before the process has threads. */
int elastic_workers_start(struct elastic_workers *w) MUST_CHECK;
void elastic_workers_end(struct elastic_workers *w);
/* Does tasks 0 to count - 1, so many at a time, on the cores in turn. Returns
 * when all are done: 0, or -errno with the words of one that failed. */
int elastic_workers_run(struct elastic_workers *w, elastic_task_fn fn,
			unsigned count, unsigned at_once) MUST_CHECK;

#endif
