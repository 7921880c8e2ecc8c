/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of hlog/: values that tell what they are, and a device that is
 * memory but late, out of order, sometimes full, and can fail or lose power.
 */
#ifndef AQ_TEST_HLOG_FIXTURE_H
#define AQ_TEST_HLOG_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "hlog/hlog.h"

enum {
	FX_VALUE_MAX = 200,
	FX_LATE_MAX = 512,
};

static inline uint32_t fx_value(uint8_t *out, uint64_t key, uint32_t version,
				uint32_t len)
{
	struct rng r;

	rng_init_stream(&r, key, version);
	rng_fill(&r, out, len);
	if (len >= 4)
		memcpy(out, &version, 4);
	return len;
}

static inline void fx_check(const void *value, uint32_t len, uint64_t key,
			    uint32_t version, uint32_t want_len)
{
	uint8_t want[FX_VALUE_MAX];

	assert_int_equal(len, want_len);
	fx_value(want, key, version, len);
	assert_memory_equal(value, want, len);
}

/* Does what must be done while an operation says -EAGAIN; drops results. */
#define FX_INSIST(s, call)                                             \
	({                                                             \
		struct hlog_done fx_done_[4];                          \
		int fx_rc_;                                            \
                                                                       \
		while ((fx_rc_ = (call)) == -EAGAIN)                   \
			assert_true(hlog_poll((s), fx_done_, 4) >= 0); \
		fx_rc_;                                                \
	})

/* A read that waits; nothing else may be pending. 0 or -errno. */
static inline int fx_get(struct hlog_session *s, uint64_t key, uint8_t *value,
			 uint32_t *len)
{
	struct hlog_done d;
	int rc;

	*len = FX_VALUE_MAX;
	rc = FX_INSIST(s, hlog_read(s, key, value, len, 77));
	if (rc != -EINPROGRESS)
		return rc;
	while ((rc = hlog_poll(s, &d, 1)) == 0)
		;
	assert_int_equal(rc, 1);
	assert_int_equal(d.user, 77);
	assert_true(d.key == key && d.kind == HLOG_READ);
	if (d.err == 0) {
		memcpy(value, d.value, d.value_bytes);
		*len = d.value_bytes;
	}
	return d.err;
}

/* ---- the late device ---------------------------------------------------- */

struct fx_late {
	struct hlog_device base;
	struct hlog_device *inner;
	struct rng rng;
	/* Chances in a million. */
	uint32_t full_ppm;
	uint32_t late_ppm; /* that a poll passes a request over */
	uint32_t fail_write_ppm;
	bool is_dead; /* writes are lost from here on ... */
	bool is_torn; /* ... the first of them in its middle */
};

struct fx_late_request {
	uint64_t offset;
	const void *data; /* of a write */
	uint32_t len_bytes;
	uint64_t token;
};

struct fx_late_queue {
	struct hlog_queue base;
	struct hlog_queue *inner;
	struct fx_late_request req[FX_LATE_MAX];
	uint32_t count;
	uint8_t *buf; /* what the last poll gave */
	uint32_t read_max;
};

static int fx_late_queue_open(struct hlog_device *dev,
			      const struct hlog_queue_options *opt,
			      struct hlog_queue **out)
{
	struct fx_late *d = container_of(dev, struct fx_late, base);
	struct fx_late_queue *q = calloc(1, sizeof(*q));
	int rc;

	assert_non_null(q);
	q->base.device = dev;
	q->read_max = opt->read_max;
	q->buf = calloc(FX_LATE_MAX, opt->read_max);
	assert_non_null(q->buf);
	rc = d->inner->ops->queue_open(d->inner, opt, &q->inner);
	assert_int_equal(rc, 0);
	*out = &q->base;
	return 0;
}

static void fx_late_queue_close(struct hlog_queue *base)
{
	struct fx_late_queue *q =
		container_of(base, struct fx_late_queue, base);

	q->inner->device->ops->queue_close(q->inner);
	free(q->buf);
	free(q);
}

static int fx_late_add(struct hlog_queue *base, struct fx_late_request req)
{
	struct fx_late *d = container_of(base->device, struct fx_late, base);
	struct fx_late_queue *q =
		container_of(base, struct fx_late_queue, base);

	if (q->count == FX_LATE_MAX || rng_chance_ppm(&d->rng, d->full_ppm))
		return -EAGAIN;
	q->req[q->count++] = req;
	return 0;
}

static int fx_late_read(struct hlog_queue *base, uint64_t offset,
			uint32_t len_bytes, uint64_t token)
{
	return fx_late_add(base,
			   (struct fx_late_request){.offset = offset,
						    .len_bytes = len_bytes,
						    .token = token});
}

static int fx_late_write(struct hlog_queue *base, uint64_t offset,
			 const void *data, uint32_t len_bytes, uint64_t token)
{
	return fx_late_add(base,
			   (struct fx_late_request){.offset = offset,
						    .data = data,
						    .len_bytes = len_bytes,
						    .token = token});
}

static int fx_late_do(struct fx_late *d, struct fx_late_queue *q,
		      const struct fx_late_request *req, uint8_t *buf)
{
	uint32_t len = req->len_bytes;

	if (!req->data)
		return hlog_device_read_wait(q->inner, req->offset, buf, len);
	if (rng_chance_ppm(&d->rng, d->fail_write_ppm))
		return -EIO;
	if (d->is_dead) {
		if (!d->is_torn)
			return 0;
		d->is_torn = false;
		len /= 2;
	}
	return hlog_device_write_wait(q->inner, req->offset, req->data, len);
}

static int fx_late_poll(struct hlog_queue *base, struct hlog_io *done,
			unsigned max)
{
	struct fx_late *d = container_of(base->device, struct fx_late, base);
	struct fx_late_queue *q =
		container_of(base, struct fx_late_queue, base);
	uint32_t i = 0;
	unsigned n = 0;

	while (i < q->count && n < max) {
		struct fx_late_request req = q->req[i];
		uint8_t *buf = q->buf + (size_t)n * q->read_max;

		if (rng_chance_ppm(&d->rng, d->late_ppm)) {
			i++;
			continue;
		}
		/* The last one takes its place: order is not kept. */
		q->req[i] = q->req[--q->count];
		done[n++] = (struct hlog_io){
			.token = req.token,
			.err = fx_late_do(d, q, &req, buf),
			.data = buf,
		};
	}
	return (int)n;
}

static void fx_late_destroy(struct hlog_device *dev)
{
	free(container_of(dev, struct fx_late, base));
}

/* `inner` stays the caller's. */
static inline struct fx_late *fx_late_create(struct hlog_device *inner,
					     uint64_t seed)
{
	static const struct hlog_device_ops ops = {
		.queue_open = fx_late_queue_open,
		.queue_close = fx_late_queue_close,
		.read = fx_late_read,
		.write = fx_late_write,
		.poll = fx_late_poll,
		.destroy = fx_late_destroy,
	};
	struct fx_late *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	d->base = (struct hlog_device){.ops = &ops,
				       .name = "late",
				       .size_bytes = inner->size_bytes,
				       .clock = hlog_clock_real};
	d->inner = inner;
	d->full_ppm = 100000;
	d->late_ppm = 600000;
	rng_init(&d->rng, seed);
	return d;
}

#endif
