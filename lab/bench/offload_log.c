/* SPDX-License-Identifier: Apache-2.0 */
/* The store on a hybrid log as a subject: loaded once, then YCSB-C. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offload_bench.h"
#include "probe.h"
#include "ticks.h"
#include "timed.h"

enum {
	SEED = 1994,
	DONE_MAX = OFFLOAD_BATCH,
	PAGE_BYTES = 64 << 10,
	SHARDS = 4,
	/* The paper's: 5 of 18 GB with 64 B values, 5 of 24 GB with 512 B. */
	LOCAL_PART = 5,
	TOTAL_PART_SMALL = 18,
	TOTAL_PART_LARGE = 24,
};

struct state {
	struct offload_far far;
	struct hlog_device *timed; /* around the other, or NULL */
	struct hlog *store;
	struct hlog_session *session;
	struct ycsb_keys keys;
	struct ycsb gen;
	uint64_t record_count;
	uint32_t value_bytes;
	uint64_t far_ops;
};

static uint64_t record_count(const struct offload_param *p)
{
	return p->cfg->log_bytes / (p->record_bytes + 24);
}

static uint64_t device_bytes(const struct offload_param *p)
{
	return hlog_device_bytes(record_count(p), p->record_bytes, PAGE_BYTES,
				 SHARDS);
}

static uint32_t read_max(const struct offload_param *p)
{
	/* Recovery reads more at a time, but nothing is recovered here. */
	return p->record_bytes + 4096;
}

static void make_value(uint8_t *to, uint64_t key, uint32_t len)
{
	uint64_t word = probe_hash(key);

	for (uint32_t i = 0; i + 8 <= len; i += 8) {
		memcpy(to + i, &word, 8);
		word += key;
	}
}

static int load(struct side *s, struct state *st)
{
	uint8_t value[HLOG_VALUE_BYTES_MAX];
	struct hlog_done done[DONE_MAX];

	for (uint64_t r = 0; r < st->record_count; r++) {
		uint64_t key = ycsb_key(r);
		int rc;

		make_value(value, key, st->value_bytes);
		while ((rc = hlog_upsert(st->session, key, value,
					 st->value_bytes)) == -EAGAIN) {
			rc = hlog_poll(st->session, done, DONE_MAX);
			if (rc < 0)
				return side_fail(s, rc, "load");
		}
		if (rc < 0)
			return side_fail(s, rc, "load");
	}
	return 0;
}

static int setup_store(struct side *s, struct state *st)
{
	const struct offload_param *p = s->param;
	struct hlog_options opt = {
		.device = st->far.device,
		.record_count = st->record_count,
		.value_max = p->record_bytes,
		.page_bytes = PAGE_BYTES,
		.shard_count = SHARDS,
		.local_bytes = hlog_local_bytes(
			st->record_count, p->record_bytes, LOCAL_PART,
			p->record_bytes > 64 ? TOTAL_PART_LARGE
					     : TOTAL_PART_SMALL),
	};
	struct hlog_session_options so = {.depth = OFFLOAD_DEPTH};
	int rc;

	if (p->is_timed) {
		rc = timed_create(st->far.device, &st->timed);
		if (rc < 0)
			return side_fail(s, rc, "clock");
		opt.device = st->timed;
	}
	rc = hlog_create(&opt, &st->store);
	if (rc == 0)
		rc = hlog_session_open(st->store, &so, &st->session);
	if (rc < 0)
		return side_fail(s, rc, "store");
	return load(s, st);
}

static int log_setup(struct side *s)
{
	const struct offload_param *p = s->param;
	struct state *st = calloc(1, sizeof(*st));
	int rc;

	if (!st)
		return side_fail(s, -ENOMEM, "state");
	s->state = st;
	if (s->role == SIDE_SERVER)
		return offload_way_has_server(p->way)
			       ? offload_far_open_server(s, &st->far,
							 device_bytes(p),
							 read_max(p))
			       : 0;
	st->value_bytes = p->record_bytes;
	st->record_count = record_count(p);
	rc = ycsb_keys_init(&st->keys, YCSB_ZIPFIAN, st->record_count,
			    YCSB_THETA);
	if (rc < 0)
		return side_fail(s, rc, "workload");
	ycsb_init(&st->gen, YCSB_C, &st->keys, SEED, 0);
	rc = offload_far_open(s, &st->far, p->name, device_bytes(p),
			      read_max(p));
	return rc < 0 ? rc : setup_store(s, st);
}

static int log_serve(struct side *s)
{
	const struct offload_param *p = s->param;
	struct state *st = s->state;

	return offload_way_has_server(p->way) ? offload_far_serve(s, &st->far)
					      : 0;
}

static void log_teardown(struct side *s)
{
	struct state *st = s->state;

	hlog_session_close(st->session);
	hlog_destroy(st->store);
	hlog_device_destroy(st->timed);
	offload_far_close(&st->far);
	free(st);
}

static int check(struct side *s, const void *value, uint32_t len, uint64_t key)
{
	struct state *st = s->state;
	uint64_t first;

	memcpy(&first, value, 8);
	if (LIKELY(len == st->value_bytes && first == probe_hash(key)))
		return 0;
	return side_fail(s, -EBADMSG, "contents of a value");
}

static int reap(struct side *s, struct side_result *out)
{
	struct hlog_done done[DONE_MAX];
	struct state *st = s->state;
	int n = hlog_poll(st->session, done, DONE_MAX);

	if (n < 0)
		return side_fail(s, n, "poll");
	for (int i = 0; i < n; i++) {
		if (done[i].err < 0)
			return side_fail(s, done[i].err, "read");
		if (check(s, done[i].value, done[i].value_bytes, done[i].key) <
		    0)
			return -EBADMSG;
	}
	out->ops += (uint64_t)n;
	return n;
}

static inline int step(struct side *s, struct side_result *out)
{
	struct state *st = s->state;
	uint64_t key = ycsb_key(ycsb_next(&st->gen).record);
	uint8_t value[HLOG_VALUE_BYTES_MAX];
	int rc;

	for (;;) {
		uint32_t len = sizeof(value);

		rc = hlog_read(st->session, key, value, &len, 0);
		if (rc == 0) {
			out->ops++;
			return check(s, value, len, key);
		}
		if (rc == -EINPROGRESS) {
			st->far_ops++;
			return 0;
		}
		if (rc != -EAGAIN)
			return side_fail(s, rc, "read");
		/* Nothing else to do until something has come. */
		do
			rc = reap(s, out);
		while (rc == 0);
		if (rc < 0)
			return rc;
	}
}

static int run(struct side *s, uint64_t end, struct side_result *out)
{
	const struct offload_param *p = s->param;
	struct state *st = s->state;
	unsigned every = p->way == WAY_SYNC ? 1 : OFFLOAD_BATCH;
	int rc;

	do {
		for (unsigned i = 0; i < every; i++) {
			rc = step(s, out);
			if (rc < 0)
				return rc;
		}
		rc = reap(s, out);
		if (rc < 0)
			return rc;
	} while (bench_ticks() < end);
	while (hlog_pending(st->session)) {
		rc = reap(s, out);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int log_measure(struct side *s, uint64_t window_ns,
		       struct side_result *out)
{
	uint64_t t0 = bench_ticks();
	struct state *st = s->state;
	double spent;
	int rc;

	out->ops = 0;
	st->far_ops = 0;
	if (st->timed)
		timed_reset(st->timed);
	rc = run(s, t0 + (uint64_t)((double)window_ns * s->ticks_per_ns), out);
	spent = (double)(bench_ticks() - t0);
	if (st->timed) {
		struct timed_ticks t = timed_read(st->timed, s->tick_step);

		out->more[SIDE_MORE_COMM] = t.inside / (spent - t.clock);
		out->more[SIDE_MORE_EMPTY] = t.empty / (spent - t.clock);
	}
	if (out->ops)
		out->more[SIDE_MORE_FAR] =
			(double)st->far_ops / (double)out->ops;
	return rc;
}

const struct side_ops offload_log_ops = {
	.setup = log_setup,
	.serve = log_serve,
	.measure = log_measure,
	.teardown = log_teardown,
	.is_shared = true,
};
