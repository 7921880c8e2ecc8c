/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `bench kv`: the table by itself, counted round trips, speed. */
#ifndef AQ_BENCH_KV_BENCH_H
#define AQ_BENCH_KV_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	KV_BENCH_KEY_BYTES = 8,
	KV_BENCH_VALUE_BYTES = 8,
	KV_BENCH_PIPELINE = 16,
};

struct kv_bench {
	uint64_t fill_entries;	/* of the table in local memory */
	unsigned fill_seeds;	/* filled once more with each; 0: none */
	uint32_t trips_entries; /* where round trips are counted */
	uint64_t records;	/* of the speed test */
	unsigned rounds;
	unsigned window_ms;
	json_t *rows;
	json_t *ratios; /* name to number */
	json_t *voids;	/* name to why */
};

/* A row: group, name, value, unit, what it means. */
void kv_bench_row(struct kv_bench *b, const char *group, const char *name,
		  double value, const char *unit, const char *what);

/* Each returns 0 or -errno, after a line on stderr. */
int kv_bench_fill(struct kv_bench *b) __attribute__((warn_unused_result));
int kv_bench_trips(struct kv_bench *b) __attribute__((warn_unused_result));
int kv_bench_speed(struct kv_bench *b) __attribute__((warn_unused_result));
int kv_bench_gateway(struct kv_bench *b) __attribute__((warn_unused_result));

double kv_bench_median(double *v, unsigned n);

/* Numbers of records, drawn by Zipf 0.99; the caller frees them. */
uint32_t *kv_bench_zipf(uint64_t records, uint64_t draws, uint64_t seed);
void kv_bench_key(uint32_t number, char key[KV_BENCH_KEY_BYTES + 1]);

/* The peer: redis-server of this machine on a unix socket of its own. */
struct kv_redis;
int kv_redis_start(uint64_t records, struct kv_redis **out)
	__attribute__((warn_unused_result));
void kv_redis_stop(struct kv_redis *r);
const char *kv_redis_path(const struct kv_redis *r);
int kv_redis_fd(const struct kv_redis *r);
/* Connects to a server that is starting; *pid is 0 when it has ended. */
int kv_redis_dial(const char *path, pid_t *pid, int *fd)
	__attribute__((warn_unused_result));
/* The keys that redis-benchmark asks for. */
int kv_redis_fill(int fd, uint64_t records) __attribute__((warn_unused_result));
/* GETs, and with update_share of a thousand SETs, `depth` at a time, for a
 * window; operations per second. */
int kv_redis_run(struct kv_redis *r, const uint32_t *keys, uint64_t key_count,
		 unsigned depth, unsigned update_share, unsigned window_ms,
		 double *rate) __attribute__((warn_unused_result));

#endif
