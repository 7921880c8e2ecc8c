/* SPDX-License-Identifier: Apache-2.0 */
/* Files beside lists of redis-server and a file of tmpfs, and what growing
 * costs. A rate is of records; what is compared has the same length. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hist.h"
#include "elastic_bench.h"
#include "stats.h"
#include "ticks.h"

enum {
	SMALL = 64 << 10,
	LARGE = 1 << 20,
	SPAN = 64 << 20, /* bytes of a file, then it is made anew */
	GROW_BLOCKS = 64,
	GROW_BYTES = 1 << 20,
};

struct file_rig {
	struct aq_file *file;
	char path[32];
	char tmp[64]; /* in tmpfs */
	int fd;
	size_t record;
	uint8_t *data;
	char *request;
};

static int reopen(struct elastic_bed *bed, struct file_rig *r,
		  uint64_t block_bytes)
{
	struct aq_elastic_options o = {.flags = AQ_ELASTIC_NEW,
				       .block_bytes = block_bytes};
	int err = 0;

	aq_file_close(r->file);
	r->file = NULL;
	if (r->path[0])
		err = aq_name_remove(bed->rack, r->path, false);
	elastic_bed_name(bed, r->path);
	if (!err)
		err = aq_file_open(bed->rack, r->path, &o, &r->file);
	/* Its first block, before it is measured. */
	return err ? err : aq_file_append(r->file, "", 1, NULL);
}

/* ---- ours ---------------------------------------------------------------- */

static int run_append(struct elastic_bed *bed, void *ctx, unsigned window_ms,
		      struct conduct_track *t, unsigned round)
{
	struct file_rig *r = ctx;
	uint64_t spent = 0, window = window_ms * 1000000ull, done = 0;
	int err = 0;

	while (!err && spent < window) {
		uint64_t start;

		err = reopen(bed, r, 0);
		start = bench_now_ns();
		for (size_t at = 0; at < SPAN && !err; at += r->record, done++)
			err = aq_file_append(r->file, r->data, r->record, NULL);
		spent += bench_now_ns() - start;
	}
	conduct_record(t, round, done, spent);
	return err;
}

static int run_read(struct elastic_bed *bed, void *ctx, unsigned window_ms,
		    struct conduct_track *t, unsigned round)
{
	struct file_rig *r = ctx;
	uint64_t start, end, done = 0;
	int err = reopen(bed, r, 0);

	for (size_t at = 0; at < SPAN && !err; at += r->record)
		err = aq_file_append(r->file, r->data, r->record, NULL);
	start = bench_now_ns();
	for (end = start; !err && end - start < window_ms * 1000000ull;
	     end = bench_now_ns(), done++) {
		size_t got;

		err = aq_file_read(r->file,
				   1 + done * r->record % (SPAN - r->record),
				   r->data, r->record, &got);
		if (!err && got != r->record)
			err = error_set(-EIO, "a short read");
	}
	conduct_record(t, round, done, end - start);
	return err;
}

/* ---- peers --------------------------------------------------------------- */

static int run_push(struct elastic_bed *bed, void *ctx, unsigned window_ms,
		    struct conduct_track *t, unsigned round)
{
	static const char *const del[] = {"DEL", "f"};
	static const size_t del_bytes[] = {3, 1};
	struct file_rig *r = ctx;
	const char *push[] = {"RPUSH", "f", (const char *)r->data};
	const size_t push_bytes[] = {5, 1, r->record};
	uint64_t spent = 0, window = window_ms * 1000000ull, done = 0;
	int fd = bed->redis->fd, err = 0;

	while (!err && spent < window) {
		size_t len = elastic_redis_put(r->request, del, del_bytes, 2);
		uint64_t start;

		err = elastic_redis_talk(fd, r->request, len, 1);
		/* A client has the words around its data ready. */
		len = elastic_redis_put(r->request, push, push_bytes, 3);
		start = bench_now_ns();
		for (size_t at = 0; at < SPAN && !err; at += r->record, done++)
			err = elastic_redis_talk(fd, r->request, len, 1);
		spent += bench_now_ns() - start;
	}
	conduct_record(t, round, done, spent);
	return err;
}

static int open_tmp(struct file_rig *r)
{
	(void)snprintf(r->tmp, sizeof(r->tmp), "/dev/shm/aquifer-bench-%d",
		       (int)getpid());
	r->fd = open(r->tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return r->fd < 0 ? error_set(-errno, "%s: %s", r->tmp, strerror(errno))
			 : 0;
}

static void close_tmp(struct file_rig *r)
{
	if (r->fd < 0)
		return;
	(void)close(r->fd);
	(void)unlink(r->tmp);
	r->fd = -1;
}

static int write_span(struct file_rig *r, uint64_t *done)
{
	for (size_t at = 0; at < SPAN; at += r->record, ++*done)
		if (write(r->fd, r->data, r->record) != (ssize_t)r->record)
			return error_set(-EIO, "%s: %s", r->tmp,
					 strerror(errno));
	return 0;
}

static int run_tmp_write(struct elastic_bed *bed, void *ctx, unsigned window_ms,
			 struct conduct_track *t, unsigned round)
{
	struct file_rig *r = ctx;
	uint64_t spent = 0, window = window_ms * 1000000ull, done = 0;
	int err = 0;

	while (!err && spent < window) {
		uint64_t start;

		err = open_tmp(r);
		start = bench_now_ns();
		if (!err)
			err = write_span(r, &done);
		spent += bench_now_ns() - start;
		close_tmp(r);
	}
	conduct_record(t, round, done, spent);
	return err;
}

static int run_tmp_read(struct elastic_bed *bed, void *ctx, unsigned window_ms,
			struct conduct_track *t, unsigned round)
{
	struct file_rig *r = ctx;
	uint64_t start, end, done = 0, written = 0;
	int err = open_tmp(r);

	if (!err)
		err = write_span(r, &written);
	start = bench_now_ns();
	for (end = start; !err && end - start < window_ms * 1000000ull;
	     end = bench_now_ns(), done++)
		if (pread(r->fd, r->data, r->record,
			  (off_t)(done * r->record % SPAN)) !=
		    (ssize_t)r->record)
			err = error_set(-EIO, "%s: %s", r->tmp,
					strerror(errno));
	conduct_record(t, round, done, end - start);
	close_tmp(r);
	return err;
}

/* ---- groups -------------------------------------------------------------- */

static int make_rig(struct file_rig *r, size_t record)
{
	*r = (struct file_rig){.record = record, .fd = -1};
	r->data = malloc(record);
	r->request = malloc(record + 128);
	if (!r->data || !r->request)
		return error_set(-ENOMEM, "no memory");
	memset(r->data, 'a', record);
	return 0;
}

static void end_rig(struct file_rig *r)
{
	aq_file_close(r->file);
	free(r->data);
	free(r->request);
}

static void add_bytes(struct bench *b, const struct conduct_group *g,
		      const struct conduct_track *t, json_t *row)
{
	double rate = json_number_value(json_object_get(row, "value")) *
		      (strcmp(json_string_value(json_object_get(row, "group")),
			      "append") == 0
			       ? SMALL
			       : LARGE);

	(void)json_object_set_new(row, "mb_s", json_real(rate / 1e6));
}

int elastic_bench_append(struct bench *b, struct elastic_bed *bed)
{
	struct file_rig r;
	const struct elastic_run runs[] = {
		{{.name = "efile_64k", .what = "appends of 64 KiB"},
		 run_append,
		 &r,
		 false},
		{{.name = "redis_rpush_64k", .what = "RPUSH of 64 KiB"},
		 run_push,
		 &r,
		 true},
	};
	int err = make_rig(&r, SMALL);

	if (!err)
		err = elastic_turns(b, bed, "append", runs, ARRAY_LEN(runs),
				    add_bytes);
	end_rig(&r);
	return err;
}

int elastic_bench_tmpfs(struct bench *b, struct elastic_bed *bed)
{
	struct file_rig r;
	const struct elastic_run runs[] = {
		{{.name = "efile_1m", .what = "appends of 1 MiB"},
		 run_append,
		 &r,
		 false},
		{{.name = "tmpfs_write_1m", .what = "write(2), a new file"},
		 run_tmp_write,
		 &r,
		 false},
		{{.name = "efile_read_1m", .what = "reads of 1 MiB"},
		 run_read,
		 &r,
		 false},
		{{.name = "tmpfs_read_1m", .what = "read(2)"},
		 run_tmp_read,
		 &r,
		 false},
	};
	int err = make_rig(&r, LARGE);

	if (!err)
		err = elastic_turns(b, bed, "tmpfs", runs, ARRAY_LEN(runs),
				    add_bytes);
	end_rig(&r);
	return err;
}

/* ---- growing ------------------------------------------------------------- */

/* p99 of appends of 64 KiB: while the file gets 64 blocks, and into one block
 * that has room for as many. */
static int grow_once(struct elastic_bed *bed, struct file_rig *r, bool grows,
		     double *p99)
{
	struct hist *h = malloc(sizeof(*h));
	uint64_t bytes = (uint64_t)GROW_BLOCKS * GROW_BYTES;
	int err = h ? reopen(bed, r, grows ? GROW_BYTES : 2 * bytes)
		    : error_set(-ENOMEM, "no memory");

	if (h)
		hist_init(h);
	for (uint64_t at = 0; at < bytes && !err; at += SMALL) {
		uint64_t start = bench_now_ns();

		err = aq_file_append(r->file, r->data, SMALL, NULL);
		hist_record(h, bench_now_ns() - start);
	}
	if (!err)
		*p99 = (double)hist_percentile(h, HIST_P99);
	free(h);
	return err;
}

int elastic_bench_grow(struct bench *b, struct elastic_bed *bed)
{
	double grows[BENCH_ROUNDS_MAX], has_room[BENCH_ROUNDS_MAX];
	double ratio[BENCH_ROUNDS_MAX];
	struct file_rig r;
	int err = make_rig(&r, SMALL);

	for (unsigned i = 0; i < b->rounds && !err; i++) {
		err = grow_once(bed, &r, true, &grows[i]);
		if (!err)
			err = grow_once(bed, &r, false, &has_room[i]);
		if (!err)
			ratio[i] = grows[i] / has_room[i];
	}
	end_rig(&r);
	if (err)
		return err;
	(void)bench_row(b, "grow", "growing",
			stats_median(grows, b->rounds) / 1000, "us",
			"p99 of an append of 64 KiB while the file grows by 64 "
			"blocks of 1 MiB");
	(void)bench_row(b, "grow", "has_room",
			stats_median(has_room, b->rounds) / 1000, "us",
			"the same into one block with room");
	bench_ratio_add(b, "grow_p99", stats_median(ratio, b->rounds));
	return 0;
}
