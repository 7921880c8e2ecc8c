/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of 8 bytes to 128 MB, one synchronous client: a store of ours, keys
 * of redis-server and memcached, files of tmpfs; and what was published of six
 * systems with clients on AWS Lambda. Their curves were published as a picture:
 * numbers are known of 8 bytes, and that all that keep data in memory reach 75
 * to 80 MB/s from 128 KB on.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "elastic_bench.h"
#include "elastic_stream.h"
#include "place.h"
#include "shield.h"
#include "stats.h"
#include "ticks.h"

enum {
	TIMES_MAX = 500,
	SMALL_BLOCK = 64 << 20,
	LARGE_BLOCK = 512 << 20,
};

static const size_t sizes[] = {8,	1 << 10,  16 << 10, 128 << 10,
			       1 << 20, 16 << 20, 128 << 20};

struct objects {
	struct elastic_bed *bed;
	struct aq_ekv *kv;
	uint64_t kv_block; /* of that store */
	pid_t cached;	   /* memcached; 0: none */
	int cached_fd;
	char dir[64];
	char file[64]; /* in tmpfs */
	uint8_t *data; /* of the largest size */
};

/* ---- ours ---------------------------------------------------------------- */

/* Large values have larger blocks. */
static int kv_ready(struct objects *o, size_t size)
{
	uint64_t block = size > SMALL_BLOCK / 8 ? LARGE_BLOCK : SMALL_BLOCK;
	struct aq_elastic_options opt = {.flags = AQ_ELASTIC_NEW,
					 .block_bytes = block};
	char path[32];

	if (o->kv && o->kv_block == block)
		return 0;
	aq_ekv_close(o->kv);
	o->kv = NULL;
	o->kv_block = block;
	elastic_bed_name(o->bed, path);
	return aq_ekv_open(o->bed->rack, path, &opt, &o->kv);
}

static int kv_put(struct objects *o, size_t size)
{
	return aq_ekv_put(o->kv, "k", 1, o->data, size, AQ_EKV_ANY, NULL);
}

static int kv_get(struct objects *o, size_t size)
{
	size_t len;
	int err = aq_ekv_get(o->kv, "k", 1, o->data, size, &len, NULL);

	return !err && len != size ? error_set(-EIO, "a short value") : err;
}

/* ---- redis-server -------------------------------------------------------- */

static int redis_ready(struct objects *o, size_t size)
{
	if (!o->bed->redis)
		return error_set(-ENOENT, "redis-server does not start; is it "
					  "installed?");
	elastic_bed_pin(o->bed->redis->pid, SHIELD_CPU_SERVER);
	return 0;
}

static int redis_set(struct objects *o, size_t size)
{
	char head[64], line[ELASTIC_LINE];
	int fd = o->bed->redis->fd;
	int n = snprintf(head, sizeof(head),
			 "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%zu\r\n", size);
	int err = elastic_stream_write(fd, head, (size_t)n);

	if (!err)
		err = elastic_stream_write(fd, o->data, size);
	if (!err)
		err = elastic_stream_write(fd, "\r\n", 2);
	if (!err)
		err = elastic_stream_line(fd, line);
	return !err && line[0] != '+'
		       ? error_set(-EIO, "redis-server says %s", line)
		       : err;
}

/* What one value takes to be read with what is around it; the first line was
 * read. */
static int read_value(int fd, uint8_t *to, size_t size)
{
	char end[2];
	int err = elastic_stream_read(fd, to, size);

	return err ? err : elastic_stream_read(fd, end, sizeof(end));
}

static int redis_get(struct objects *o, size_t size)
{
	static const char ask[] = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
	char line[ELASTIC_LINE];
	int fd = o->bed->redis->fd;
	int err = elastic_stream_write(fd, ask, sizeof(ask) - 1);

	if (!err)
		err = elastic_stream_line(fd, line);
	if (!err && strtoull(line + 1, NULL, 10) != size)
		err = error_set(-EIO, "redis-server says %s", line);
	return err ? err : read_value(fd, o->data, size);
}

/* ---- memcached ----------------------------------------------------------- */

static int cached_ready(struct objects *o, size_t size)
{
	char path[80];
	char *argv[] = {"memcached", "-s", path,   "-I", "256m", "-m",
			"2048",	     "-u", "root", "-t", "1",	 NULL};

	if (o->cached > 0)
		return 0;
	(void)snprintf(path, sizeof(path), "%s/m", o->dir);
	o->cached = place_start(PLACE_SERVER | PLACE_QUIET, "memcached", argv);
	if (place_dial(path, &o->cached, &o->cached_fd))
		return error_set(-ENOENT, "memcached does not start; is it "
					  "installed?");
	return 0;
}

static int cached_set(struct objects *o, size_t size)
{
	char head[64], line[ELASTIC_LINE];
	int n = snprintf(head, sizeof(head), "set k 0 0 %zu\r\n", size);
	int err = elastic_stream_write(o->cached_fd, head, (size_t)n);

	if (!err)
		err = elastic_stream_write(o->cached_fd, o->data, size);
	if (!err)
		err = elastic_stream_write(o->cached_fd, "\r\n", 2);
	if (!err)
		err = elastic_stream_line(o->cached_fd, line);
	return !err && strcmp(line, "STORED") != 0
		       ? error_set(-EIO, "memcached says %s", line)
		       : err;
}

static int cached_get(struct objects *o, size_t size)
{
	char line[ELASTIC_LINE];
	int err = elastic_stream_write(o->cached_fd, "get k\r\n", 7);

	if (!err)
		err = elastic_stream_line(o->cached_fd, line);
	if (!err && strncmp(line, "VALUE ", 6) != 0)
		err = error_set(-EIO, "memcached says %s", line);
	if (!err)
		err = read_value(o->cached_fd, o->data, size);
	return err ? err : elastic_stream_line(o->cached_fd, line);
}

/* ---- tmpfs --------------------------------------------------------------- */

static int tmpfs_ready(struct objects *o, size_t size)
{
	(void)snprintf(o->file, sizeof(o->file), "/dev/shm/aquifer-bench-%d",
		       (int)getpid());
	return 0;
}

static int tmpfs_put(struct objects *o, size_t size)
{
	int fd = open(o->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t n = fd < 0 ? -1 : write(fd, o->data, size);

	if (fd >= 0)
		(void)close(fd);
	return n == (ssize_t)size
		       ? 0
		       : error_set(-EIO, "%s: %s", o->file, strerror(errno));
}

static int tmpfs_get(struct objects *o, size_t size)
{
	int fd = open(o->file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, o->data, size);

	if (fd >= 0)
		(void)close(fd);
	return n == (ssize_t)size
		       ? 0
		       : error_set(-EIO, "%s: %s", o->file, strerror(errno));
}

/* ---- the table ----------------------------------------------------------- */

static const struct kind {
	const char *name;
	const char *what;
	int (*ready)(struct objects *o, size_t size);
	int (*put)(struct objects *o, size_t size);
	int (*get)(struct objects *o, size_t size);
} kinds[] = {
	{"ekv", "a store of ours", kv_ready, kv_put, kv_get},
	{"redis", "SET and GET", redis_ready, redis_set, redis_get},
	{"memcached", "set and get", cached_ready, cached_set, cached_get},
	{"tmpfs", "a new file, and reading it", tmpfs_ready, tmpfs_put,
	 tmpfs_get},
};

/* Medians, in microseconds. */
static int measure(struct objects *o, const struct kind *k, size_t size,
		   bool is_quick, double *put_us, double *get_us)
{
	double put[TIMES_MAX], get[TIMES_MAX];
	unsigned times = (unsigned)u64_max(
		3, u64_min(TIMES_MAX, (64u << 20) / (size + (128 << 10))));
	int err = k->ready(o, size);

	times = is_quick ? 2 : times;
	/* The first one makes a block or a file. */
	if (!err)
		err = k->put(o, size);
	for (unsigned i = 0; i < times && !err; i++) {
		uint64_t start = bench_now_ns(), middle;

		err = k->put(o, size);
		middle = bench_now_ns();
		if (!err)
			err = k->get(o, size);
		put[i] = (double)(middle - start) / 1e3;
		get[i] = (double)(bench_now_ns() - middle) / 1e3;
	}
	if (!err) {
		*put_us = stats_median(put, times);
		*get_us = stats_median(get, times);
	}
	return err;
}

static void size_name(char out[24], const char *kind, size_t size)
{
	static const char *const unit[] = {"B", "KiB", "MiB"};
	unsigned i = 0;

	for (; size >= 1024 && i < 2; i++)
		size /= 1024;
	(void)snprintf(out, 24, "%s_%zu%s", kind, size, unit[i]);
}

static void add_row(struct bench *b, const struct kind *k, size_t size,
		    double put_us, double get_us)
{
	char name[24];

	size_name(name, k->name, size);
	json_object_update_new(
		bench_row(b, "sizes", name, get_us, "us", k->what),
		json_pack("{s:f, s:f}", "put_us", put_us, "mb_s",
			  (double)size / get_us));
}

static void add_published(struct bench *b)
{
	static const struct {
		const char *name;
		double get_us, put_us;
	} rows[] = {
		{"S3", 9600, 11200},  {"DynamoDB", 3900, 5400},
		{"Crail", 390, 760},  {"ElastiCache", 280, 280},
		{"Pocket", 460, 620}, {"Jiffy", 270, 260},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char name[24];

		size_name(name, rows[i].name, 8);
		(void)json_object_set_new(
			bench_row(b, "sizes", name, rows[i].get_us, "us",
				  "published; in memory 75 to 80 MB/s from 128 "
				  "KB on"),
			"put_us", json_real(rows[i].put_us));
	}
}

int elastic_bench_sizes(struct bench *b, struct elastic_bed *bed)
{
	struct objects o = {.bed = bed, .cached_fd = -1};
	size_t most = b->quick ? 1 << 20 : 128 << 20;
	double put_us = 0, get_us = 0;
	int err = place_make(o.dir, "sizes");

	o.data = malloc(most);
	if (err || !o.data)
		err = error_set(-ENOMEM, "no folder or no memory");
	else
		memset(o.data, 'a', most);
	for (size_t i = 0; i < ARRAY_LEN(sizes) && !err; i++)
		for (size_t k = 0; k < ARRAY_LEN(kinds) && !err; k++) {
			char name[24];

			if (sizes[i] > most)
				continue;
			err = measure(&o, &kinds[k], sizes[i], b->quick,
				      &put_us, &get_us);
			if (!err) {
				add_row(b, &kinds[k], sizes[i], put_us, get_us);
			} else if (err == -ENOENT) { /* it is not installed */
				size_name(name, kinds[k].name, sizes[i]);
				bench_row_failed(b, "sizes", name, "us",
						 error_last());
				err = 0;
			}
		}
	add_published(b);
	aq_ekv_close(o.kv);
	if (o.cached_fd >= 0)
		(void)close(o.cached_fd);
	place_end(o.cached);
	if (o.file[0])
		(void)unlink(o.file);
	place_remove(o.dir);
	free(o.data);
	return err;
}
