/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight jobs at once on 40 % of the sum of their peaks. A job has stages; each
 * reads what the one before it has left, writes its own, and removes the
 * former. The jobs have the same stages and begin with different ones, so that
 * they need most at different times.
 *
 * Reserved: each job has its share of the memory for itself, Pocket's rule, and
 * what does not fit goes to a file on disk, by O_DIRECT. Ours: all take from
 * one pool, and what does not fit goes to the node's spill tier on that disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "elastic_bench.h"
#include "place.h"
#include "stats.h"
#include "ticks.h"

enum {
	JOBS = ELASTIC_WORKERS,
	PART = 128 << 10,
	PARTS_MB = (1 << 20) / PART,
	PART_ALIGN = 4096,
	ROUNDS = 3,
	LAPS = 2, /* through all stages */
	BLOCK = 512 << 10,
};

/* MiB that stages leave. The largest two in a row are the peak, 40, and all
 * eight peaks 320 MiB: ELASTIC_JOBS_SIZE is 40 % of that. */
static const unsigned stage_mb[] = {1, 2, 4, 8, 32, 8, 2, 1};
enum {
	STAGES = ARRAY_LEN(stage_mb),
	PEAK_MB = 40,
	SHARE_MB = PEAK_MB * 40 / 100,
};

/* At the beginning of the memory of all tasks. */
struct jobs {
	bool is_reserved;
	unsigned laps;
	char dir[64];	/* on disk */
	char names[32]; /* of files: job and stage follow */
	uint64_t spilled[JOBS];
};

/* What a stage has left: some parts in memory, then some on disk. */
struct output {
	struct aq_file *file;
	char path[64];
	unsigned in_memory, parts;
	int fd; /* -1: nothing is on disk */
	char disk[112];
};

struct job {
	const struct elastic_work *w;
	struct jobs *all;
	uint8_t *data;
	unsigned held; /* parts in memory, of both stages */
};

/* ---- one stage ----------------------------------------------------------- */

static int open_output(struct job *j, unsigned stage, struct output *o)
{
	struct aq_elastic_options opt = {.flags = AQ_ELASTIC_NEW,
					 .block_bytes = BLOCK};

	*o = (struct output){.fd = -1};
	(void)snprintf(o->path, sizeof(o->path), "%.31s-%u-%u", j->all->names,
		       j->w->task, stage);
	(void)snprintf(o->disk, sizeof(o->disk), "%.63s/%u-%u", j->all->dir,
		       j->w->task, stage);
	return aq_file_open(j->w->rack, o->path, &opt, &o->file);
}

static int put_disk(struct job *j, struct output *o)
{
	if (o->fd < 0)
		o->fd = open(o->disk,
			     O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC,
			     0600);
	if (o->fd < 0 ||
	    pwrite(o->fd, j->data, PART,
		   (off_t)(o->parts - o->in_memory) * PART) != PART)
		return error_set(-EIO, "%s: %s", o->disk, strerror(errno));
	j->all->spilled[j->w->task] += PART;
	return 0;
}

/* Memory first; whatever has begun to go to disk goes on there. */
static int put_part(struct job *j, struct output *o)
{
	bool may = o->in_memory == o->parts &&
		   (!j->all->is_reserved || j->held < SHARE_MB * PARTS_MB);
	int err = may ? aq_file_append(o->file, j->data, PART, NULL) : -ENOSPC;

	if (!err) {
		o->in_memory++;
		j->held++;
	} else if (err == -ENOSPC) { /* of the tier, too */
		err = put_disk(j, o);
	}
	o->parts += !err;
	return err;
}

static int get_part(struct job *j, struct output *o, unsigned i)
{
	size_t got = PART;

	if (i < o->in_memory) {
		int err = aq_file_read(o->file, (uint64_t)i * PART, j->data,
				       PART, &got);

		return !err && got != PART ? error_set(-EIO, "a short read")
					   : err;
	}
	return pread(o->fd, j->data, PART, (off_t)(i - o->in_memory) * PART) ==
			       PART
		       ? 0
		       : error_set(-EIO, "%s: %s", o->disk, strerror(errno));
}

static int drop_output(struct job *j, struct output *o)
{
	int err = 0;

	if (o->fd >= 0) {
		(void)close(o->fd);
		(void)unlink(o->disk);
	}
	if (o->file) {
		aq_file_close(o->file);
		err = aq_name_remove(j->w->rack, o->path, false);
	}
	j->held -= o->in_memory;
	*o = (struct output){.fd = -1};
	return err;
}

/* ---- a job --------------------------------------------------------------- */

static int run_job(const struct elastic_work *w)
{
	struct jobs *all = w->shared;
	struct job j = {
		.w = w, .all = all, .data = aligned_alloc(PART_ALIGN, PART)};
	struct output before = {.fd = -1}, now;
	int err = j.data ? 0 : error_set(-ENOMEM, "no memory"), left;

	if (j.data)
		memset(j.data, 'a', PART);
	for (unsigned i = 0; i < all->laps * STAGES && !err; i++) {
		unsigned parts = stage_mb[(w->task + i) % STAGES] * PARTS_MB;

		err = open_output(&j, i, &now);
		for (unsigned k = 0; k < before.parts && !err; k++)
			err = get_part(&j, &before, k);
		for (unsigned k = 0; k < parts && !err; k++)
			err = put_part(&j, &now);
		left = drop_output(&j, &before);
		err = err ? err : left;
		before = now;
	}
	left = drop_output(&j, &before);
	free(j.data);
	return err ? err : left;
}

static int nothing(const struct elastic_work *w)
{
	return 0;
}

/* ---- the benchmark ------------------------------------------------------- */

static int run_all(struct elastic_bed *bed, struct jobs *all, bool is_reserved,
		   double *seconds, double *spilled_mb)
{
	uint64_t start;
	int err;

	elastic_bed_name(bed, all->names);
	all->is_reserved = is_reserved;
	memset(all->spilled, 0, sizeof(all->spilled));
	start = bench_now_ns();
	err = elastic_workers_run(&bed->workers, run_job, JOBS, JOBS);
	*seconds = (double)(bench_now_ns() - start) / 1e9;
	*spilled_mb = 0;
	for (unsigned i = 0; i < JOBS; i++)
		*spilled_mb += (double)all->spilled[i] / (1 << 20);
	return err;
}

static void report(struct bench *b, const char *name, double *seconds,
		   double *spilled_mb, unsigned rounds, const char *what)
{
	(void)json_object_set_new(
		bench_row(b, "jobs", name, stats_median(seconds, rounds), "s",
			  what),
		"disk_mb", json_real(stats_median(spilled_mb, rounds)));
}

int elastic_bench_jobs(struct bench *b, struct elastic_bed *bed)
{
	unsigned rounds = (unsigned)u64_min(b->rounds, ROUNDS);
	double seconds[2][ROUNDS], spilled[2][ROUNDS], ratio[ROUNDS];
	struct jobs *all = bed->workers.shared;
	int err;

	*all = (struct jobs){.laps = b->quick ? 1 : LAPS};
	err = place_make(all->dir, "jobs");
	if (err)
		return error_set(err, "%s cannot be made", all->dir);
	err = elastic_workers_run(&bed->workers, nothing, JOBS, JOBS);
	for (unsigned i = 0; i < rounds && !err; i++) {
		for (unsigned k = 0; k < 2 && !err; k++)
			err = run_all(bed, all, k == 1, &seconds[k][i],
				      &spilled[k][i]);
		ratio[i] = seconds[1][i] / seconds[0][i];
	}
	place_remove(all->dir);
	if (err)
		return err;
	report(b, "ours", seconds[0], spilled[0], rounds,
	       "eight jobs, all memory for all, then the spill tier; "
	       "disk_mb found no room there either");
	report(b, "reserved", seconds[1], spilled[1], rounds,
	       "the same, each with its share of the memory");
	(void)bench_row(b, "jobs", "reserved_vs_ours",
			stats_median(ratio, rounds), "times",
			"time with reserved memory / ours");
	return 0;
}
