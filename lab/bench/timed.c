/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the clock before and after each call of a device. */
#include "timed.h"

#include <errno.h>
#include <stdlib.h>

#include "ticks.h"

struct timed {
	struct hlog_device base;
	struct hlog_device *inner;
	uint64_t inside;
	uint64_t empty;
	uint64_t calls;
	uint64_t empty_calls;
};

struct timed_queue {
	struct hlog_queue base;
	struct timed *timed;
	struct hlog_queue *inner;
};

static struct timed_queue *of(struct hlog_queue *q)
{
	return container_of(q, struct timed_queue, base);
}

static int timed_queue_open(struct hlog_device *dev,
			    const struct hlog_queue_options *opt,
			    struct hlog_queue **out)
{
	struct timed *t = container_of(dev, struct timed, base);
	struct timed_queue *q = calloc(1, sizeof(*q));
	int rc;

	if (!q)
		return -ENOMEM;
	q->base.device = dev;
	q->timed = t;
	rc = t->inner->ops->queue_open(t->inner, opt, &q->inner);
	if (rc < 0) {
		free(q);
		return rc;
	}
	*out = &q->base;
	return 0;
}

static void timed_queue_close(struct hlog_queue *base)
{
	struct timed_queue *q = of(base);

	q->timed->inner->ops->queue_close(q->inner);
	free(q);
}

static void add(struct timed *t, uint64_t t0)
{
	t->inside += bench_ticks() - t0;
	t->calls++;
}

static int timed_io_read(struct hlog_queue *base, uint64_t offset,
			 uint32_t len_bytes, uint64_t token)
{
	struct timed_queue *q = of(base);
	uint64_t t0 = bench_ticks();
	int rc = q->timed->inner->ops->read(q->inner, offset, len_bytes, token);

	add(q->timed, t0);
	return rc;
}

static int timed_io_write(struct hlog_queue *base, uint64_t offset,
			  const void *data, uint32_t len_bytes, uint64_t token)
{
	struct timed_queue *q = of(base);
	uint64_t t0 = bench_ticks();
	int rc = q->timed->inner->ops->write(q->inner, offset, data, len_bytes,
					     token);

	add(q->timed, t0);
	return rc;
}

static int timed_io_poll(struct hlog_queue *base, struct hlog_io *done,
			 unsigned max)
{
	struct timed_queue *q = of(base);
	struct timed *t = q->timed;
	uint64_t t0 = bench_ticks(), spent;
	int n = t->inner->ops->poll(q->inner, done, max);

	spent = bench_ticks() - t0;
	t->inside += spent;
	t->calls++;
	if (n == 0) {
		t->empty += spent;
		t->empty_calls++;
	}
	return n;
}

int timed_create(struct hlog_device *inner, struct hlog_device **out)
{
	static const struct hlog_device_ops ops = {
		.queue_open = timed_queue_open,
		.queue_close = timed_queue_close,
		.read = timed_io_read,
		.write = timed_io_write,
		.poll = timed_io_poll,
	};
	struct timed *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->base = *inner;
	t->base.ops = &ops;
	t->inner = inner;
	*out = &t->base;
	return 0;
}

void timed_reset(struct hlog_device *dev)
{
	struct timed *t = container_of(dev, struct timed, base);

	t->inside = t->empty = t->calls = t->empty_calls = 0;
}

struct timed_ticks timed_read(const struct hlog_device *dev, double tick_step)
{
	const struct timed *t = container_of(dev, struct timed, base);

	/* A pair of looks shows one look's cost inside, and one outside. */
	return (struct timed_ticks){
		.inside = (double)t->inside - tick_step * (double)t->calls,
		.empty = (double)t->empty - tick_step * (double)t->empty_calls,
		.clock = 2 * tick_step * (double)t->calls,
	};
}
