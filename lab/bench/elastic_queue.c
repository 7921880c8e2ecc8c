/* SPDX-License-Identifier: Apache-2.0 */
/* Queues beside lists of redis-server, and stores beside its keys. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "elastic_bench.h"

enum {
	REQUEST_BYTES = ELASTIC_MANY * 512,
	KV_BLOCKS = 16,
	KV_BLOCK_BYTES = 256 << 10,
	KV_DRAWS = 1 << 16,
};

/* ---- queues -------------------------------------------------------------- */

struct pairs {
	struct aq_queue *queue;
	unsigned many;
	char value[ELASTIC_MANY][ELASTIC_VALUE];
	char got[ELASTIC_MANY][ELASTIC_VALUE];
	/* What redis-server is asked: LPUSH, then RPOP. */
	char push[REQUEST_BYTES], pop[REQUEST_BYTES];
	size_t push_bytes, pop_bytes;
	int fd;
};

static int step_pair(void *ctx)
{
	struct pairs *p = ctx;
	size_t len;
	int err = aq_queue_put(p->queue, p->value[0], ELASTIC_VALUE, 0);

	return err ? err
		   : aq_queue_get(p->queue, p->got[0], ELASTIC_VALUE, &len, 0);
}

static int step_many(void *ctx)
{
	struct aq_item in[ELASTIC_MANY], out[ELASTIC_MANY];
	struct pairs *p = ctx;
	unsigned done = 0, got = 0;
	int err;

	for (unsigned i = 0; i < ELASTIC_MANY; i++) {
		in[i] = (struct aq_item){p->value[i], ELASTIC_VALUE};
		out[i] = (struct aq_item){p->got[i], ELASTIC_VALUE};
	}
	err = aq_queue_put_many(p->queue, in, ELASTIC_MANY, 0, &done);
	if (!err)
		err = aq_queue_get_many(p->queue, out, ELASTIC_MANY, 0, &got);
	return !err && got != ELASTIC_MANY
		       ? error_set(-EIO, "%u items came back", got)
		       : err;
}

static int run_queue(struct elastic_bed *bed, void *ctx, unsigned window_ms,
		     struct conduct_track *t, unsigned round)
{
	struct pairs *p = ctx;

	return elastic_step_for(p->many ? step_many : step_pair, p,
				p->many ? ELASTIC_MANY : 1, window_ms, t,
				round);
}

static int step_list(void *ctx)
{
	struct pairs *p = ctx;
	unsigned n = p->many ? ELASTIC_MANY : 1;
	int err = elastic_redis_talk(p->fd, p->push, p->push_bytes, n);

	return err ? err : elastic_redis_talk(p->fd, p->pop, p->pop_bytes, n);
}

static int run_list(struct elastic_bed *bed, void *ctx, unsigned window_ms,
		    struct conduct_track *t, unsigned round)
{
	static const char *const pop[] = {"RPOP", "q"};
	static const size_t pop_bytes[] = {4, 1};
	static const size_t push_bytes[] = {5, 1, ELASTIC_VALUE};
	struct pairs *p = ctx;
	unsigned n = p->many ? ELASTIC_MANY : 1;
	const char *push[] = {"LPUSH", "q", p->value[0]};

	p->fd = bed->redis->fd;
	p->push_bytes = p->pop_bytes = 0;
	for (unsigned i = 0; i < n; i++) {
		p->push_bytes += elastic_redis_put(p->push + p->push_bytes,
						   push, push_bytes, 3);
		p->pop_bytes += elastic_redis_put(p->pop + p->pop_bytes, pop,
						  pop_bytes, 2);
	}
	return elastic_step_for(step_list, p, n, window_ms, t, round);
}

int elastic_bench_queue(struct bench *b, struct elastic_bed *bed)
{
	struct aq_elastic_options o = {.flags = AQ_ELASTIC_NEW};
	struct pairs *p = calloc(2, sizeof(*p));
	const struct elastic_run runs[] = {
		{{.name = "equeue", .what = "put, then get, one client"},
		 run_queue,
		 &p[0],
		 false},
		{{.name = "redis_list", .what = "LPUSH, then RPOP"},
		 run_list,
		 &p[0],
		 true},
		{{.name = "equeue_many16", .what = "16 puts, then 16 gets"},
		 run_queue,
		 &p[1],
		 false},
		{{.name = "redis_list_p16", .what = "the same, pipelined"},
		 run_list,
		 &p[1],
		 true},
	};
	struct aq_queue *q = NULL;
	char path[32];
	int err = p ? 0 : error_set(-ENOMEM, "no memory");

	elastic_bed_name(bed, path);
	if (!err)
		err = aq_queue_open(bed->rack, path, &o, &q);
	if (!err) {
		for (unsigned i = 0; i < 2 * ELASTIC_MANY; i++)
			memset(p[i / ELASTIC_MANY].value[i % ELASTIC_MANY], 'a',
			       ELASTIC_VALUE);
		p[0].queue = p[1].queue = q;
		p[1].many = 1;
		err = step_pair(&p[0]); /* its first block is made */
	}
	if (!err)
		err = elastic_turns(b, bed, "queue", runs, ARRAY_LEN(runs),
				    NULL);
	aq_queue_close(q);
	free(p);
	return err;
}

/* ---- stores -------------------------------------------------------------- */

struct store {
	struct aq_ekv *kv;
	uint32_t *keys; /* by Zipf */
	uint64_t at;
	unsigned many;
	char value[ELASTIC_VALUE];
	char request[REQUEST_BYTES];
	int fd;
};

/* YCSB-A: one of two is a change. */
static bool is_change(uint64_t at)
{
	return at * 7919 % 1000 < 500;
}

static int step_store(void *ctx)
{
	struct store *s = ctx;
	char key[KV_BENCH_KEY_BYTES + 1], got[ELASTIC_VALUE];
	size_t len;

	kv_bench_key(s->keys[s->at % KV_DRAWS], key);
	return is_change(s->at++)
		       ? aq_ekv_put(s->kv, key, KV_BENCH_KEY_BYTES, s->value,
				    ELASTIC_VALUE, AQ_EKV_ANY, NULL)
		       : aq_ekv_get(s->kv, key, KV_BENCH_KEY_BYTES, got,
				    sizeof(got), &len, NULL);
}

/* As many as a pipeline of redis-server has. */
static int step_store_many(void *ctx)
{
	struct store *s = ctx;
	char key[ELASTIC_MANY][KV_BENCH_KEY_BYTES + 1];
	char got[ELASTIC_MANY][ELASTIC_VALUE];
	struct aq_ekv_op ops[ELASTIC_MANY];
	int err;

	for (unsigned i = 0; i < ELASTIC_MANY; i++) {
		bool changes = is_change(s->at);

		kv_bench_key(s->keys[s->at++ % KV_DRAWS], key[i]);
		ops[i] = (struct aq_ekv_op){
			.verb = changes ? AQ_EKV_PUT : AQ_EKV_GET,
			.key = key[i],
			.key_bytes = KV_BENCH_KEY_BYTES,
			.value = changes ? s->value : got[i],
			.value_bytes = ELASTIC_VALUE,
			.version = AQ_EKV_ANY,
		};
	}
	err = aq_ekv_many(s->kv, ops, ELASTIC_MANY);
	for (unsigned i = 0; i < ELASTIC_MANY && !err; i++)
		err = ops[i].error;
	return err;
}

static int run_store(struct elastic_bed *bed, void *ctx, unsigned window_ms,
		     struct conduct_track *t, unsigned round)
{
	struct store *s = ctx;

	return elastic_step_for(s->many ? step_store_many : step_store, s,
				s->many ? ELASTIC_MANY : 1, window_ms, t,
				round);
}

static size_t put_request(struct store *s, char *out)
{
	char key[KV_BENCH_KEY_BYTES + 1];
	bool changes = is_change(s->at);
	const char *words[] = {changes ? "SET" : "GET", key, s->value};
	const size_t bytes[] = {3, KV_BENCH_KEY_BYTES, ELASTIC_VALUE};

	kv_bench_key(s->keys[s->at++ % KV_DRAWS], key);
	return elastic_redis_put(out, words, bytes, changes ? 3 : 2);
}

static int step_keys(void *ctx)
{
	struct store *s = ctx;
	unsigned n = s->many ? ELASTIC_MANY : 1;
	size_t len = 0;

	for (unsigned i = 0; i < n; i++)
		len += put_request(s, s->request + len);
	return elastic_redis_talk(s->fd, s->request, len, n);
}

static int run_keys(struct elastic_bed *bed, void *ctx, unsigned window_ms,
		    struct conduct_track *t, unsigned round)
{
	struct store *s = ctx;

	s->fd = bed->redis->fd;
	return elastic_step_for(step_keys, s, s->many ? ELASTIC_MANY : 1,
				window_ms, t, round);
}

/* Until the store has so many blocks; the same keys at redis-server. */
static int fill(struct elastic_bed *bed, struct store *s, uint32_t *records)
{
	const size_t bytes[] = {3, KV_BENCH_KEY_BYTES, ELASTIC_VALUE};
	struct aq_ekv_stat stat = {0};
	int err = 0;

	for (*records = 0; !err && stat.blocks < KV_BLOCKS; ++*records) {
		char key[KV_BENCH_KEY_BYTES + 1];
		const char *words[] = {"SET", key, s->value};

		kv_bench_key(*records, key);
		err = aq_ekv_put(s->kv, key, KV_BENCH_KEY_BYTES, s->value,
				 ELASTIC_VALUE, AQ_EKV_ANY, NULL);
		if (!err && bed->redis)
			err = elastic_redis_talk(
				bed->redis->fd, s->request,
				elastic_redis_put(s->request, words, bytes, 3),
				1);
		if (!err && *records % 512 == 511)
			err = aq_ekv_stat(s->kv, &stat);
	}
	return err;
}

int elastic_bench_kv(struct bench *b, struct elastic_bed *bed)
{
	struct aq_elastic_options o = {.flags = AQ_ELASTIC_NEW,
				       .block_bytes = KV_BLOCK_BYTES};
	struct store *s = calloc(2, sizeof(*s));
	const struct elastic_run runs[] = {
		{{.name = "ekv", .what = "YCSB-A, one client"},
		 run_store,
		 &s[0],
		 false},
		{{.name = "redis_keys", .what = "the same, SET and GET"},
		 run_keys,
		 &s[0],
		 true},
		{{.name = "ekv_many16", .what = "16 operations at a time"},
		 run_store,
		 &s[1],
		 false},
		{{.name = "redis_keys_p16", .what = "the same, pipelined"},
		 run_keys,
		 &s[1],
		 true},
	};
	uint32_t records;
	char path[32];
	int err;

	if (!s)
		return error_set(-ENOMEM, "no memory");
	elastic_bed_name(bed, path);
	memset(s->value, 'a', ELASTIC_VALUE);
	err = aq_ekv_open(bed->rack, path, &o, &s->kv);
	if (!err)
		err = fill(bed, s, &records);
	if (!err) {
		s->keys = kv_bench_zipf(records, KV_DRAWS, 22);
		s[1] = s[0];
		s[1].many = 1;
		err = s->keys ? elastic_turns(b, bed, "kv", runs,
					      ARRAY_LEN(runs), NULL)
			      : error_set(-ENOMEM, "no memory");
	}
	aq_ekv_close(s->kv);
	free(s->keys);
	free(s);
	return err;
}
