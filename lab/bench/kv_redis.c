/* SPDX-License-Identifier: Apache-2.0 */
/* The peer of `bench kv`: redis-server as it is packaged, without persistence,
 * on a unix socket, and a client that does nothing but write and read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kv_bench.h"
#include "place.h"
#include "ticks.h"

enum {
	REQUEST_MAX = 128,
	REPLY_GET = 4 + KV_BENCH_VALUE_BYTES + 2, /* "$8\r\n" value "\r\n" */
	REPLY_SET = 5,				  /* "+OK\r\n" */
	LOAD_BATCH = 64,
	CLOCK_EVERY = 32,
	KEY_MAX = 32,
};

static int write_all(int fd, const char *p, size_t len)
{
	while (len) {
		ssize_t n = write(fd, p, len);

		if (n <= 0)
			return -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Exactly so many bytes of answers, which begin as they should. */
static int read_replies(int fd, size_t len, char *buf)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = read(fd, buf + got, len - got);

		if (n <= 0)
			return -EIO;
		got += (size_t)n;
	}
	return buf[0] == '$' || buf[0] == '+' ? 0 : -EPROTO;
}

static size_t put_get(char *out, const char *key)
{
	return (size_t)sprintf(out, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n",
			       KV_BENCH_KEY_BYTES, key);
}

static size_t put_set(char *out, const char *key, const char *value)
{
	return (size_t)sprintf(out,
			       "*3\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$%d\r\n%s\r\n",
			       strlen(key), key, KV_BENCH_VALUE_BYTES, value);
}

static void name_ours(uint64_t i, char key[KEY_MAX])
{
	kv_bench_key((uint32_t)i, key);
}

static void name_benchmark(uint64_t i, char key[KEY_MAX])
{
	snprintf(key, KEY_MAX, "key:%012llu", (unsigned long long)i);
}

static int load(int fd, uint64_t records, void (*name)(uint64_t, char *))
{
	char out[LOAD_BATCH * REQUEST_MAX], in[LOAD_BATCH * REPLY_GET];
	uint64_t i, n;
	int err = 0;

	for (i = 0; i < records && !err; i += n) {
		size_t len = 0;

		for (n = 0; n < LOAD_BATCH && i + n < records; n++) {
			char key[KEY_MAX];

			name(i + n, key);
			len += put_set(out + len, key,
				       key + strlen(key) -
					       KV_BENCH_VALUE_BYTES);
		}
		err = write_all(fd, out, len);
		if (!err)
			err = read_replies(fd, n * REPLY_SET, in);
	}
	return err;
}

int kv_redis_fill(int fd, uint64_t records)
{
	return load(fd, records, name_benchmark);
}

/* The package redis-tools has the server, too, under the name of a checker; it
 * goes by its first argument. */
static int start_server(struct kv_redis *r, uint16_t port)
{
	static const char *const files[] = {"redis-server", "redis-check-rdb"};
	char number[8];
	char *argv[] = {"redis-server", "--port", number, "--unixsocket",
			r->path,	"--save", "",	  "--appendonly",
			"no",		"--dir",  r->dir, NULL};
	int err = -ENOENT;

	snprintf(number, sizeof(number), "%u", port);
	for (size_t i = 0; i < ARRAY_LEN(files) && err; i++) {
		/* On the same core as the memory node. */
		r->pid = place_start(PLACE_SERVER, files[i], argv);
		err = place_dial(r->path, &r->pid, &r->fd);
	}
	return err;
}

int kv_redis_start(uint64_t records, uint16_t port, struct kv_redis **out)
{
	struct kv_redis *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->fd = -1;
	err = place_make(r->dir, "redis");
	snprintf(r->path, sizeof(r->path), "%s/s", r->dir);
	if (!err)
		err = start_server(r, port);
	if (!err)
		err = load(r->fd, records, name_ours);
	if (err)
		kv_redis_stop(r);
	else
		*out = r;
	return err;
}

void kv_redis_is_missing(struct conduct_track *t)
{
	snprintf(t->why, sizeof(t->why),
		 "redis-server does not start; is it installed?");
	t->is_absent = true;
}

void kv_redis_stop(struct kv_redis *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	place_end(r->pid);
	place_remove(r->dir);
	free(r);
}

int kv_redis_run(struct kv_redis *r, const uint32_t *keys, uint64_t key_count,
		 unsigned depth, unsigned update_share, unsigned window_ms,
		 struct conduct_track *t, unsigned round)
{
	char out[KV_BENCH_PIPELINE * REQUEST_MAX];
	char in[KV_BENCH_PIPELINE * REPLY_GET];
	uint64_t start = bench_now_ns(), end = start + window_ms * 1000000ull;
	uint64_t at = 0, done = 0, now = start;
	int err = 0;

	while (now < end && !err) {
		size_t len = 0, want = 0;
		unsigned i;

		for (i = 0; i < depth; i++, at++) {
			char key[KV_BENCH_KEY_BYTES + 1];

			kv_bench_key(keys[at % key_count], key);
			if ((at * 7919) % 1000 < update_share) {
				len += put_set(out + len, key, key);
				want += REPLY_SET;
			} else {
				len += put_get(out + len, key);
				want += REPLY_GET;
			}
		}
		err = write_all(r->fd, out, len);
		if (!err)
			err = read_replies(r->fd, want, in);
		done += depth;
		if (done / depth % CLOCK_EVERY == 0)
			now = bench_now_ns();
	}
	conduct_record(t, round, done, bench_now_ns() - start);
	return err;
}
