/* SPDX-License-Identifier: Apache-2.0 */
/* The hash probe as a subject, and single reads of its records. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "offload_bench.h"
#include "probe.h"
#include "ticks.h"

enum {
	SEED = 20230910,
	SLOTS = 128, /* of times */
};

struct state {
	struct probe probe;
	struct offload_far far;
	struct hlog_queue *queue;
	const struct hlog_device_ops *ops;
	uint8_t *copy; /* all far records, where the way is local */
	size_t copy_bytes;
	uint64_t pending;
	uint64_t far_ops;
	uint64_t next; /* of a scan */
	uint64_t far_count;
	/* When each read began, by token. */
	uint64_t t0[SLOTS];
	uint64_t key[SLOTS];
};

void offload_probe_region(char name[OFFLOAD_NAME_MAX], uint32_t record_bytes)
{
	snprintf(name, OFFLOAD_NAME_MAX, "probe-%u", record_bytes);
}

static int setup_server(struct side *s, struct state *st, uint64_t bytes)
{
	const struct offload_param *p = s->param;
	int rc;

	if (!offload_way_has_server(p->way))
		return 0;
	rc = offload_far_open_server(s, &st->far, bytes, p->record_bytes);
	if (rc == 0)
		probe_far_fill(st->far.memory, 0, bytes / p->record_bytes,
			       p->record_bytes);
	return rc;
}

static int setup_client(struct side *s, struct state *st, uint64_t bytes)
{
	const struct offload_param *p = s->param;
	struct hlog_queue_options qo = {.depth = OFFLOAD_DEPTH,
					.read_max = p->record_bytes};
	char region[OFFLOAD_NAME_MAX];
	int rc;

	rc = probe_init(&st->probe, p->cfg->probe_records, p->record_bytes,
			SEED);
	if (rc < 0)
		return side_fail(s, rc, "index");
	if (p->way == WAY_LOCAL) {
		st->copy_bytes = bytes;
		st->copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (st->copy == MAP_FAILED)
			return side_fail(s, -ENOMEM, "records");
		probe_far_fill(st->copy, 0, bytes / p->record_bytes,
			       p->record_bytes);
		return 0;
	}
	offload_probe_region(region, p->record_bytes);
	rc = offload_far_open(s, &st->far, region, bytes, p->record_bytes);
	if (rc < 0)
		return rc;
	st->ops = st->far.device->ops;
	rc = st->ops->queue_open(st->far.device, &qo, &st->queue);
	return rc < 0 ? side_fail(s, rc, aq_last_error()) : 0;
}

static int probe_setup(struct side *s)
{
	const struct offload_param *p = s->param;
	struct state *st = calloc(1, sizeof(*st));
	uint64_t bytes =
		probe_far_bytes(p->cfg->probe_records, p->record_bytes);

	if (!st)
		return side_fail(s, -ENOMEM, "state");
	s->state = st;
	st->far_count = bytes / p->record_bytes;
	return s->role == SIDE_SERVER ? setup_server(s, st, bytes)
				      : setup_client(s, st, bytes);
}

static int probe_serve(struct side *s)
{
	const struct offload_param *p = s->param;
	struct state *st = s->state;

	return offload_way_has_server(p->way) ? offload_far_serve(s, &st->far)
					      : 0;
}

static void probe_teardown(struct side *s)
{
	struct state *st = s->state;

	if (st->queue)
		st->ops->queue_close(st->queue);
	offload_far_close(&st->far);
	probe_release(&st->probe);
	if (st->copy)
		munmap(st->copy, st->copy_bytes);
	free(st);
}

/* ---- throughput --------------------------------------------------------- */

static int check(struct side *s, const void *record, uint64_t key)
{
	const struct offload_param *p = s->param;

	if (LIKELY(probe_check(record, p->record_bytes, key)))
		return 0;
	return side_fail(s, -EBADMSG, "contents of a record");
}

/* The application's work before a batch of records: the same in all ways. Those
 * that are in this process are asked for meanwhile. */
static void draw(struct side *s, uint64_t key[OFFLOAD_BATCH],
		 uint64_t place[OFFLOAD_BATCH])
{
	const struct offload_param *p = s->param;
	struct state *st = s->state;

	if (p->is_lean)
		probe_draw_many(&st->probe, OFFLOAD_BATCH, key, place);
	for (unsigned i = 0; i < OFFLOAD_BATCH; i++) {
		if (p->is_scan) {
			uint64_t n = st->next++ % st->far_count;

			key[i] = probe_far_key(n);
			place[i] = n * p->record_bytes;
		} else if (!p->is_lean) {
			place[i] = probe_draw(&st->probe, &key[i]);
		}
		probe_ask(&st->probe, st->copy, place[i]);
	}
}

static int measure_local(struct side *s, uint64_t end, struct side_result *out)
{
	uint64_t key[OFFLOAD_BATCH], place[OFFLOAD_BATCH];
	struct state *st = s->state;

	do {
		draw(s, key, place);
		for (unsigned i = 0; i < OFFLOAD_BATCH; i++) {
			const uint8_t *r =
				place[i] & PROBE_NEAR
					? st->probe.near +
						  (place[i] & ~PROBE_NEAR)
					: st->copy + place[i];

			if (check(s, r, key[i]) < 0)
				return -EBADMSG;
		}
		out->ops += OFFLOAD_BATCH;
	} while (bench_ticks() < end);
	return 0;
}

/* Takes what has come. The token is the key: nothing else must be known. */
static int reap(struct side *s, struct side_result *out)
{
	struct state *st = s->state;
	struct hlog_io io[OFFLOAD_BATCH];
	int n = st->ops->poll(st->queue, io, OFFLOAD_BATCH);

	if (n < 0)
		return side_fail(s, n, "poll");
	for (int i = 0; i < n; i++) {
		int rc = io[i].err;

		if (rc < 0)
			return side_fail(s, rc, "read");
		rc = check(s, io[i].data, io[i].token);
		if (rc < 0)
			return rc;
	}
	st->pending -= (uint64_t)n;
	out->ops += (uint64_t)n;
	return n;
}

/* One record: near, or on its way. */
static inline int step(struct side *s, uint64_t key, uint64_t place,
		       struct side_result *out)
{
	const struct offload_param *p = s->param;
	struct state *st = s->state;
	int rc;

	if (place & PROBE_NEAR) {
		out->ops++;
		return check(s, st->probe.near + (place & ~PROBE_NEAR), key);
	}
	while ((rc = st->ops->read(st->queue, place, p->record_bytes, key)) ==
	       -EAGAIN) {
		/* Nothing else to do until something has come; a place may
		 * also come free without. */
		rc = reap(s, out);
		if (rc == 0)
			rc = reap(s, out);
		if (rc < 0)
			return rc;
	}
	if (rc < 0)
		return side_fail(s, rc, "read");
	st->pending++;
	st->far_ops++;
	return 0;
}

static int measure_far(struct side *s, uint64_t end, struct side_result *out)
{
	uint64_t key[OFFLOAD_BATCH], place[OFFLOAD_BATCH];
	const struct offload_param *p = s->param;
	struct state *st = s->state;
	/* A blocking way has its answer at once. */
	bool is_blocking = p->way == WAY_SYNC || p->way == WAY_TWO_SIDED;
	int rc;

	do {
		draw(s, key, place);
		for (unsigned i = 0; i < OFFLOAD_BATCH; i++) {
			rc = step(s, key[i], place[i], out);
			if (rc == 0 && (is_blocking || i == OFFLOAD_BATCH - 1))
				rc = reap(s, out);
			if (rc < 0)
				return rc;
		}
	} while (bench_ticks() < end);
	while (st->pending) {
		rc = reap(s, out);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int probe_measure(struct side *s, uint64_t window_ns,
			 struct side_result *out)
{
	const struct offload_param *p = s->param;
	struct state *st = s->state;
	uint64_t end = side_end_ticks(s, window_ns);
	int rc;

	out->ops = 0;
	st->far_ops = 0;
	rc = p->way == WAY_LOCAL ? measure_local(s, end, out)
				 : measure_far(s, end, out);
	if (out->ops)
		out->more[SIDE_MORE_FAR] =
			(double)st->far_ops / (double)out->ops;
	return rc;
}

const struct side_ops offload_probe_ops = {
	.setup = probe_setup,
	.serve = probe_serve,
	.measure = probe_measure,
	.teardown = probe_teardown,
	.is_shared = true,
};

/* ---- times -------------------------------------------------------------- */

/* Takes what has come, with its time. */
static int reap_times(struct side *s, struct side_result *out)
{
	struct state *st = s->state;
	struct hlog_io io[OFFLOAD_BATCH];
	int n = st->ops->poll(st->queue, io, OFFLOAD_BATCH);

	for (int i = 0; i < n; i++) {
		uint64_t slot = io[i].token;

		if (io[i].err < 0)
			return side_fail(s, io[i].err, "read");
		side_sample(s, 0, bench_ticks() - st->t0[slot]);
		if (check(s, io[i].data, st->key[slot]) < 0)
			return -EBADMSG;
		st->pending--;
		out->ops++;
	}
	return n < 0 ? side_fail(s, n, "poll") : 0;
}

/* p->depth reads, then all their ends, over and over. */
static int latency_measure(struct side *s, uint64_t window_ns,
			   struct side_result *out)
{
	const struct offload_param *p = s->param;
	uint64_t end = side_end_ticks(s, window_ns);
	struct state *st = s->state;
	int rc = 0;

	out->ops = 0;
	do {
		for (uint32_t i = 0; i < p->depth && rc == 0; i++) {
			uint64_t place;

			do
				place = probe_draw(&st->probe, &st->key[i]);
			while (place & PROBE_NEAR);
			st->t0[i] = bench_ticks();
			rc = st->ops->read(st->queue, place, p->record_bytes,
					   i);
			if (rc < 0)
				return side_fail(s, rc, "read");
			st->pending++;
		}
		while (st->pending && rc == 0)
			rc = reap_times(s, out);
	} while (rc == 0 && bench_ticks() < end);
	return rc;
}

const struct side_ops offload_latency_ops = {
	.setup = probe_setup,
	.serve = probe_serve,
	.measure = latency_measure,
	.teardown = probe_teardown,
	.is_shared = true,
};
