/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `bench kv`: the table by itself, counted round trips, speed. */
#ifndef AQ_BENCH_KV_BENCH_H
#define AQ_BENCH_KV_BENCH_H

#include <sys/types.h>

#include "bench.h"

enum {
	KV_BENCH_KEY_BYTES = 8,
	KV_BENCH_VALUE_BYTES = 8,
	KV_BENCH_PIPELINE = 16,
};

/* Each returns 0, or -errno after bench_fail. */
int kv_bench_fill(struct bench *b) MUST_CHECK;
int kv_bench_spread(struct bench *b) MUST_CHECK;
int kv_bench_live(struct bench *b) MUST_CHECK;
int kv_bench_trips(struct bench *b) MUST_CHECK;
int kv_bench_speed(struct bench *b) MUST_CHECK;
int kv_bench_gateway(struct bench *b) MUST_CHECK;

/* Numbers of records, drawn by Zipf 0.99; the caller frees them. */
uint32_t *kv_bench_zipf(uint64_t records, uint64_t draws, uint64_t seed);
void kv_bench_key(uint32_t number, char key[KV_BENCH_KEY_BYTES + 1]);

/* The peer: redis-server of this machine on a unix socket of its own, and at
 * that port of TCP; 0: none. */
struct kv_redis {
	pid_t pid;
	int fd; /* a connection */
	char dir[64];
	char path[96]; /* of its socket */
};
int kv_redis_start(uint64_t records, uint16_t port, struct kv_redis **out)
	__attribute__((warn_unused_result));
void kv_redis_stop(struct kv_redis *r);
/* The track of a peer that cannot be started. */
void kv_redis_is_missing(struct conduct_track *t);
/* The keys that redis-benchmark asks for. */
int kv_redis_fill(int fd, uint64_t records) __attribute__((warn_unused_result));
/* GETs, and with update_share of a thousand SETs, `depth` at a time, for a
 * window; recorded as that round. */
int kv_redis_run(struct kv_redis *r, const uint32_t *keys, uint64_t key_count,
		 unsigned depth, unsigned update_share, unsigned window_ms,
		 struct conduct_track *t, unsigned round)
	__attribute__((warn_unused_result));

#endif
