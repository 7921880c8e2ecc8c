/* SPDX-License-Identifier: Apache-2.0 */
/* What all devices share: the real clock, and waiting for one request. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/relax.h"
#include "hlog_device.h"
#include "hlog_limits.h"

static uint64_t real_now_ns(void *ctx)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void real_relax(void *ctx)
{
	relax_briefly();
}

const struct hlog_clock hlog_clock_real = {
	.now_ns = real_now_ns,
	.relax = real_relax,
};

/* One request, from its start to its end. */
static int perform(struct hlog_queue *q, uint64_t offset, const void *from,
		   uint32_t len_bytes, struct hlog_io *io)
{
	const struct hlog_device_ops *ops = q->device->ops;
	const struct hlog_clock *c = &q->device->clock;
	uint64_t deadline_ns = c->now_ns(c->ctx) + HLOG_DRAIN_MS * 1000000ull;
	bool is_begun = false;
	int rc;

	for (;;) {
		if (!is_begun) {
			rc = from ? ops->write(q, offset, from, len_bytes, 0)
				  : ops->read(q, offset, len_bytes, 0);
			if (rc < 0 && rc != -EAGAIN)
				return rc;
			is_begun = rc == 0;
		}
		/* Also what gives the place of an earlier request free. */
		rc = ops->poll(q, io, 1);
		if (rc != 0)
			return rc < 0 ? rc : io->err;
		if (c->now_ns(c->ctx) >= deadline_ns)
			return -ETIMEDOUT;
		c->relax(c->ctx);
	}
}

int hlog_device_read_wait(struct hlog_queue *q, uint64_t offset, void *buf,
			  uint32_t len_bytes)
{
	struct hlog_io io;
	int rc = perform(q, offset, NULL, len_bytes, &io);

	if (rc == 0)
		memcpy(buf, io.data, len_bytes);
	return rc;
}

int hlog_device_write_wait(struct hlog_queue *q, uint64_t offset,
			   const void *buf, uint32_t len_bytes)
{
	struct hlog_io io;

	return perform(q, offset, buf, len_bytes, &io);
}
