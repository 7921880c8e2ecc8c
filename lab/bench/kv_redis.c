/* SPDX-License-Identifier: Apache-2.0 */
/* The peer of `bench kv`: redis-server as it is packaged, without persistence,
 * on a unix socket, and a client that does nothing but write and read. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "guard.h"
#include "kv_bench.h"

enum {
	REQUEST_MAX = 128,
	REPLY_GET = 4 + KV_BENCH_VALUE_BYTES + 2, /* "$8\r\n" value "\r\n" */
	REPLY_SET = 5,				  /* "+OK\r\n" */
	START_MS = 20000, /* a busy machine is no reason to give up */
	LOAD_BATCH = 64,
	CLOCK_EVERY = 32,
	KEY_MAX = 32,
};

struct kv_redis {
	pid_t pid;
	int fd;
	char dir[64];
	char path[96];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int try_connect(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

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
static void run_server(const struct kv_redis *r)
{
	static const char *const files[] = {"redis-server", "redis-check-rdb"};

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		execlp(files[i], "redis-server", "--port", "0", "--unixsocket",
		       r->path, "--save", "", "--appendonly", "no", "--dir",
		       r->dir, (char *)NULL);
}

int kv_redis_dial(const char *path, pid_t *pid, int *fd)
{
	uint64_t end = now_ns() + START_MS * 1000000ull;

	do {
		usleep(10000);
		*fd = try_connect(path);
		if (*fd >= 0)
			return 0;
		if (waitpid(*pid, NULL, WNOHANG) == *pid) {
			*pid = 0;
			break;
		}
	} while (now_ns() < end);
	return -ENOENT;
}

const char *kv_redis_path(const struct kv_redis *r)
{
	return r->path;
}

int kv_redis_fd(const struct kv_redis *r)
{
	return r->fd;
}

int kv_redis_start(uint64_t records, struct kv_redis **out)
{
	struct kv_redis *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->fd = -1;
	snprintf(r->dir, sizeof(r->dir), "/tmp/aquifer-redis-XXXXXX");
	if (!mkdtemp(r->dir)) {
		free(r);
		return -errno;
	}
	snprintf(r->path, sizeof(r->path), "%s/s", r->dir);
	fflush(NULL);
	r->pid = fork();
	if (r->pid == 0) {
		/* As the memory node. */
		(void)guard_pin(GUARD_CPU_SERVER);
		(void)guard_enter_nice();
		if (freopen("/dev/null", "w", stdout))
			run_server(r);
		_exit(127);
	}
	err = kv_redis_dial(r->path, &r->pid, &r->fd);
	if (!err)
		err = load(r->fd, records, name_ours);
	if (err)
		kv_redis_stop(r);
	else
		*out = r;
	return err;
}

void kv_redis_stop(struct kv_redis *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	if (r->pid > 0) {
		kill(r->pid, SIGTERM);
		(void)waitpid(r->pid, NULL, 0);
	}
	(void)unlink(r->path);
	(void)rmdir(r->dir);
	free(r);
}

int kv_redis_run(struct kv_redis *r, const uint32_t *keys, uint64_t key_count,
		 unsigned depth, unsigned update_share, unsigned window_ms,
		 double *rate)
{
	char out[KV_BENCH_PIPELINE * REQUEST_MAX];
	char in[KV_BENCH_PIPELINE * REPLY_GET];
	uint64_t start = now_ns(), end = start + window_ms * 1000000ull;
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
			now = now_ns();
	}
	*rate = (double)done * 1e9 / (double)(now_ns() - start);
	return err;
}
