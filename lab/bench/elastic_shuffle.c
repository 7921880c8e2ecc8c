/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sort: 8 tasks partition what they have by its key and sort each part, and 8
 * others merge what is theirs; two tasks run at a time, on two cores. Between
 * them lie files, one for each merge, to which all of the former append; or as
 * many lists of redis-server.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rng.h"
#include "elastic_bench.h"
#include "elastic_sort.h"
#include "elastic_stream.h"
#include "place.h"
#include "stats.h"
#include "ticks.h"

enum {
	AT_ONCE = 2,
	ROUNDS = 3,
	POP = 4, /* chunks that redis-server is asked for at a time */
};

#define INPUT_BYTES	  (256ull << 20)
#define INPUT_BYTES_QUICK (8ull << 20)

/* At the beginning of the memory of all tasks. */
struct shuffle {
	uint64_t input_bytes;
	char names[32]; /* of the files: a number follows */
	char redis[96]; /* its socket; "": files */
	struct {
		uint64_t sum, count;
	} merged[SORT_TASKS];
};

static uint8_t *input_of(struct shuffle *s)
{
	return (uint8_t *)s + 4096;
}

/* ---- redis-server -------------------------------------------------------- */

static int push(int fd, unsigned list, const void *chunk, size_t bytes)
{
	char head[80], line[ELASTIC_LINE];
	int n = snprintf(head, sizeof(head),
			 "*3\r\n$5\r\nRPUSH\r\n$2\r\ns%u\r\n$%zu\r\n", list,
			 bytes);
	int err = elastic_stream_write(fd, head, (size_t)n);

	if (!err)
		err = elastic_stream_write(fd, chunk, bytes);
	if (!err)
		err = elastic_stream_write(fd, "\r\n", 2);
	if (!err)
		err = elastic_stream_line(fd, line);
	return !err && line[0] != ':'
		       ? error_set(-EPROTO, "redis-server says %.20s", line)
		       : err;
}

/* All of a list, some elements at a time, as each copy of them costs. */
static int pop_all(int fd, unsigned list, uint8_t *to, size_t room, size_t *got)
{
	char ask[64], line[ELASTIC_LINE];
	long count, bytes;
	int n = snprintf(ask, sizeof(ask),
			 "*3\r\n$4\r\nLPOP\r\n$2\r\ns%u\r\n$1\r\n%d\r\n", list,
			 POP);
	int err;

	for (*got = 0;;) {
		err = elastic_stream_write(fd, ask, (size_t)n);
		if (!err)
			err = elastic_stream_line(fd, line);
		count = err ? 0 : strtol(line + 1, NULL, 10);
		if (err || line[0] != '*' || count <= 0)
			return err;
		for (; count && !err; count--) {
			err = elastic_stream_line(fd, line);
			bytes = err ? 0 : strtol(line + 1, NULL, 10);
			if (!err && (line[0] != '$' || bytes < 0 ||
				     (size_t)bytes > room - *got))
				err = error_set(-EPROTO,
						"redis-server says %.20s",
						line);
			if (!err)
				err = elastic_stream_read(fd, to + *got,
							  (size_t)bytes);
			if (!err)
				err = elastic_stream_read(fd, line, 2);
			*got += (size_t)bytes;
		}
		if (err)
			return err;
	}
}

/* ---- either way ---------------------------------------------------------- */

struct exchange {
	int fd; /* -1: files */
	struct aq_file *file[SORT_TASKS];
};

static int open_file(const struct elastic_work *w, unsigned i,
		     struct exchange *x)
{
	const struct shuffle *s = w->shared;
	struct aq_elastic_options o = {.flags = AQ_ELASTIC_CREATE};
	char path[48];

	(void)snprintf(path, sizeof(path), "%.31s-%u", s->names, i);
	return aq_file_open(w->rack, path, &o, &x->file[i]);
}

static int open_exchange(const struct elastic_work *w, unsigned first,
			 unsigned end, struct exchange *x)
{
	const struct shuffle *s = w->shared;
	pid_t self = getpid(); /* redis-server is there */
	int err = 0;

	*x = (struct exchange){.fd = -1};
	if (s->redis[0])
		return place_dial(s->redis, &self, &x->fd);
	for (unsigned i = first; i < end && !err; i++)
		err = open_file(w, i, x);
	return err;
}

static void close_exchange(struct exchange *x)
{
	if (x->fd >= 0)
		(void)close(x->fd);
	for (unsigned i = 0; i < SORT_TASKS; i++)
		aq_file_close(x->file[i]);
}

static int put_chunk(struct exchange *x, unsigned part, const void *chunk,
		     size_t bytes)
{
	return x->fd >= 0 ? push(x->fd, part, chunk, bytes)
			  : aq_file_append(x->file[part], chunk, bytes, NULL);
}

static int get_all(struct exchange *x, unsigned part, uint8_t *to, size_t room,
		   size_t *got)
{
	size_t n = 1;
	int err = 0;

	if (x->fd >= 0)
		return pop_all(x->fd, part, to, room, got);
	for (*got = 0; n && !err && *got < room; *got += n) {
		n = 0;
		err = aq_file_read(x->file[part], *got, to + *got,
				   u64_min(SORT_CHUNK, room - *got), &n);
	}
	return err;
}

/* ---- tasks --------------------------------------------------------------- */

static unsigned part_of(uint64_t key)
{
	return (unsigned)(key >> 61);
}

/* Chunks of the records in their order; a chunk has records of one part. */
static int put_sorted(struct exchange *x, const uint8_t *in,
		      const struct sort_item *order, size_t count,
		      unsigned task, uint8_t *chunk)
{
	size_t used = SORT_RECORD;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		unsigned part = part_of(order[i].key);
		bool is_last =
			i + 1 == count || part_of(order[i + 1].key) != part;

		memcpy(chunk + used, in + order[i].at * SORT_RECORD,
		       SORT_RECORD);
		used += SORT_RECORD;
		if (!is_last && used < SORT_CHUNK)
			continue;
		*(struct sort_head *)(void *)chunk = (struct sort_head){
			.task = task, .bytes = (uint32_t)used};
		err = put_chunk(x, part, chunk, used);
		used = SORT_RECORD;
	}
	return err;
}

static int partition(const struct elastic_work *w)
{
	struct shuffle *s = w->shared;
	uint64_t bytes = s->input_bytes / SORT_TASKS;
	size_t count = bytes / SORT_RECORD;
	const uint8_t *in = input_of(s) + w->task * bytes;
	struct sort_item *order = malloc(count * sizeof(*order));
	struct sort_item *spare = malloc(count * sizeof(*spare));
	uint8_t *chunk = aligned_alloc(4096, SORT_CHUNK);
	struct exchange x;
	int err = open_exchange(w, 0, SORT_TASKS, &x);

	if (!order || !spare || !chunk)
		err = error_set(-ENOMEM, "no memory");
	for (size_t i = 0; i < count && !err; i++)
		order[i] =
			(struct sort_item){sort_key(in + i * SORT_RECORD), i};
	if (!err) {
		sort_items(order, spare, count);
		err = put_sorted(&x, in, order, count, w->task, chunk);
	}
	close_exchange(&x);
	free(order);
	free(spare);
	free(chunk);
	return err;
}

static int merge(const struct elastic_work *w)
{
	struct shuffle *s = w->shared;
	/* Parts are not quite alike. */
	size_t room = s->input_bytes / SORT_TASKS * 5 / 4 + SORT_CHUNK;
	uint8_t *in = malloc(room), *out = malloc(room);
	struct exchange x;
	size_t got = 0;
	int err = open_exchange(w, w->task, w->task + 1, &x);

	if (!in || !out)
		err = error_set(-ENOMEM, "no memory");
	if (!err)
		err = get_all(&x, w->task, in, room, &got);
	if (!err)
		err = sort_merge(in, got, out, room, &s->merged[w->task].sum,
				 &s->merged[w->task].count);
	close_exchange(&x);
	free(in);
	free(out);
	return err;
}

/* Opens the rack of its process. */
static int nothing(const struct elastic_work *w)
{
	return 0;
}

/* ---- the benchmark ------------------------------------------------------- */

static uint64_t make_input(struct shuffle *s)
{
	uint8_t *in = input_of(s);
	uint64_t sum = 0;
	struct rng rng;

	rng_init(&rng, 22);
	for (uint64_t at = 0; at < s->input_bytes; at += SORT_RECORD) {
		uint64_t key = rng_u64(&rng);

		memset(in + at, 'a', SORT_RECORD);
		memcpy(in + at, &key, sizeof(key));
		sum += key;
	}
	return sum;
}

/* All is there again, and in order: each merge has seen that of its part. */
static int check(const struct shuffle *s, uint64_t sum)
{
	uint64_t got = 0, count = 0;

	for (unsigned i = 0; i < SORT_TASKS; i++) {
		got += s->merged[i].sum;
		count += s->merged[i].count;
	}
	return got == sum && count == s->input_bytes / SORT_RECORD
		       ? 0
		       : error_set(-EIO, "of %llu records %llu came out",
				   (unsigned long long)s->input_bytes /
					   SORT_RECORD,
				   (unsigned long long)count);
}

static int sort_once(struct elastic_bed *bed, struct shuffle *s, uint64_t sum,
		     double *seconds)
{
	uint64_t start = bench_now_ns();
	int err;

	memset(s->merged, 0, sizeof(s->merged));
	err = elastic_workers_run(&bed->workers, partition, SORT_TASKS,
				  AT_ONCE);
	if (!err)
		err = elastic_workers_run(&bed->workers, merge, SORT_TASKS,
					  AT_ONCE);
	*seconds = (double)(bench_now_ns() - start) / 1e9;
	return err ? err : check(s, sum);
}

static int sort_files(struct elastic_bed *bed, struct shuffle *s, uint64_t sum,
		      double *seconds)
{
	char path[48];
	int err;

	s->redis[0] = '\0';
	elastic_bed_name(bed, s->names);
	err = sort_once(bed, s, sum, seconds);
	for (unsigned i = 0; i < SORT_TASKS && !err; i++) {
		(void)snprintf(path, sizeof(path), "%.31s-%u", s->names, i);
		err = aq_name_remove(bed->rack, path, false);
	}
	return err;
}

/* With its server on either core. */
static int sort_redis(struct elastic_bed *bed, struct shuffle *s, uint64_t sum,
		      double *seconds)
{
	static const char flush[] = "*1\r\n$8\r\nFLUSHALL\r\n";
	double one;
	int err = 0;

	(void)snprintf(s->redis, sizeof(s->redis), "%s", bed->redis->path);
	*seconds = INFINITY;
	for (int cpu = 0; cpu < 2 && !err; cpu++) {
		elastic_bed_pin(bed->redis->pid, cpu);
		err = elastic_redis_talk(bed->redis->fd, flush,
					 sizeof(flush) - 1, 1);
		if (!err)
			err = sort_once(bed, s, sum, &one);
		*seconds = err ? *seconds : fmin(*seconds, one);
	}
	return err;
}

static void report(struct bench *b, const char *name, double *seconds,
		   unsigned rounds, const struct shuffle *s, const char *what)
{
	double median = stats_median(seconds, rounds);

	(void)json_object_set_new(
		bench_row(b, "sort", name, median, "s", what), "mb_s",
		json_real((double)s->input_bytes / median / 1e6));
}

int elastic_bench_sort(struct bench *b, struct elastic_bed *bed)
{
	unsigned rounds = (unsigned)u64_min(b->rounds, ROUNDS);
	double files[ROUNDS], lists[ROUNDS], ratio[ROUNDS];
	struct shuffle *s = bed->workers.shared;
	uint64_t sum;
	int err;

	*s = (struct shuffle){.input_bytes = b->quick ? INPUT_BYTES_QUICK
						      : INPUT_BYTES};
	sum = make_input(s);
	err = elastic_workers_run(&bed->workers, nothing, AT_ONCE, AT_ONCE);
	for (unsigned i = 0; i < rounds && !err; i++) {
		err = sort_files(bed, s, sum, &files[i]);
		if (!err && bed->redis)
			err = sort_redis(bed, s, sum, &lists[i]);
		ratio[i] = lists[i] / files[i];
	}
	if (err)
		return err;
	report(b, "files", files, rounds, s,
	       "8 partition tasks, then 8 merges, two at a time");
	if (!bed->redis) {
		bench_void(b, "sort_vs_redis",
			   "redis-server does not start; is it installed?");
		return 0;
	}
	report(b, "redis_lists", lists, rounds, s,
	       "the same with lists of redis-server between them");
	bench_ratio_add(b, "sort_vs_redis", stats_median(ratio, rounds));
	return 0;
}
