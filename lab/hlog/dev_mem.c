/* SPDX-License-Identifier: Apache-2.0 */
/* The device that is memory of this process: what far memory is compared with.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "hlog_device.h"
#include "hlog_priv.h"

struct mem_device {
	struct hlog_device base;
	uint8_t *memory;
};

/* Requests are done when they are made; the queue only remembers them. */
struct mem_queue {
	struct hlog_queue base;
	uint8_t *memory;
	uint64_t size_bytes;
	uint32_t depth;
	uint32_t head; /* free-running */
	uint32_t tail;
	struct hlog_io io[];
};

static int mem_queue_open(struct hlog_device *dev,
			  const struct hlog_queue_options *opt,
			  struct hlog_queue **out)
{
	struct mem_device *d = container_of(dev, struct mem_device, base);
	uint32_t depth = u32_pow2_ceil(opt->depth);
	struct mem_queue *q = calloc(1, sizeof(*q) + depth * sizeof(q->io[0]));

	if (!q)
		return -ENOMEM;
	q->base.device = dev;
	q->memory = d->memory;
	q->size_bytes = dev->size_bytes;
	q->depth = depth;
	*out = &q->base;
	return 0;
}

static void mem_queue_close(struct hlog_queue *base)
{
	free(container_of(base, struct mem_queue, base));
}

static int push(struct mem_queue *q, uint64_t token, const void *data)
{
	q->io[q->tail++ & (q->depth - 1)] =
		(struct hlog_io){.token = token, .data = data};
	return 0;
}

static int check(const struct mem_queue *q, uint64_t offset, uint32_t len_bytes)
{
	if (q->tail - q->head == q->depth)
		return -EAGAIN;
	if (offset > q->size_bytes || len_bytes > q->size_bytes - offset)
		return -ERANGE;
	return 0;
}

static int mem_read(struct hlog_queue *base, uint64_t offset,
		    uint32_t len_bytes, uint64_t token)
{
	struct mem_queue *q = container_of(base, struct mem_queue, base);
	int rc = check(q, offset, len_bytes);

	if (rc < 0)
		return rc;
	/* As on every device the record is not touched yet: it comes while
	 * the caller does something else. */
	for (uint32_t at = 0; at < len_bytes; at += CACHE_LINE)
		PREFETCH(q->memory + offset + at);
	return push(q, token, q->memory + offset);
}

static int mem_write(struct hlog_queue *base, uint64_t offset, const void *data,
		     uint32_t len_bytes, uint64_t token)
{
	struct mem_queue *q = container_of(base, struct mem_queue, base);
	int rc = check(q, offset, len_bytes);

	if (rc < 0)
		return rc;
	memcpy(q->memory + offset, data, len_bytes);
	return push(q, token, NULL);
}

static int mem_poll(struct hlog_queue *base, struct hlog_io *done, unsigned max)
{
	struct mem_queue *q = container_of(base, struct mem_queue, base);
	unsigned n = 0;

	while (n < max && q->head != q->tail)
		done[n++] = q->io[q->head++ & (q->depth - 1)];
	return (int)n;
}

static void mem_destroy(struct hlog_device *dev)
{
	struct mem_device *d = container_of(dev, struct mem_device, base);

	munmap(d->memory, dev->size_bytes);
	free(d);
}

int hlog_device_mem_create(uint64_t size_bytes, struct hlog_device **out)
{
	static const struct hlog_device_ops ops = {
		.queue_open = mem_queue_open,
		.queue_close = mem_queue_close,
		.read = mem_read,
		.write = mem_write,
		.poll = mem_poll,
		.destroy = mem_destroy,
	};
	struct mem_device *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->memory = hlog_memory(size_bytes);
	if (!d->memory) {
		free(d);
		return error_set(-ENOMEM, "no memory for a log of %llu bytes",
				 (unsigned long long)size_bytes);
	}
	d->base = (struct hlog_device){.ops = &ops,
				       .name = "local",
				       .size_bytes = size_bytes,
				       .clock = hlog_clock_real};
	*out = &d->base;
	return 0;
}
