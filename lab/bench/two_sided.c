/* SPDX-License-Identifier: Apache-2.0 */
/* The two-sided peer: what every request-and-reply protocol does at least. */
#include "two_sided.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hlog/redy.h"

struct two_sided {
	struct hlog_device base;
	struct hlog_queue queue; /* the only one: a link has one owner */
	struct redy_port port;
	bool is_held; /* `index` is a message that was handed out */
	bool is_ready;
	uint32_t index;
	struct hlog_io io;
};

static struct two_sided *of_queue(struct hlog_queue *q)
{
	return container_of(q, struct two_sided, queue);
}

static int two_sided_queue_open(struct hlog_device *dev,
				const struct hlog_queue_options *opt,
				struct hlog_queue **out)
{
	struct two_sided *t = container_of(dev, struct two_sided, base);

	t->queue.device = dev;
	*out = &t->queue;
	return 0;
}

static void two_sided_queue_close(struct hlog_queue *q)
{
}

static int ask(struct two_sided *t, uint64_t offset, uint32_t len_bytes)
{
	struct redy_head head = {.magic = le32_put(REDY_MAGIC),
				 .count = le32_put(1)};
	struct redy_request r = {.offset = le64_put(offset),
				 .len_bytes = le32_put(len_bytes)};
	uint8_t *message = redy_port_buffer(&t->port);

	if (!message)
		return -ENOBUFS;
	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), &r, sizeof(r));
	return redy_port_send(&t->port, sizeof(head) + sizeof(r));
}

/* Waits for the answer. The conductor ends a process that waits too long. */
static int await(struct two_sided *t, uint32_t len_bytes)
{
	struct redy_event ev;
	struct redy_answer a;
	int n;

	do
		n = redy_port_poll(&t->port, &ev, 1);
	while (n == 0);
	if (n < 0)
		return n;
	memcpy(&a, ev.data + sizeof(struct redy_head), sizeof(a));
	t->index = ev.index;
	t->io.data = ev.data + sizeof(struct redy_head) + sizeof(a);
	t->io.err = le32_get(a.len_bytes) == len_bytes ? 0 : -EREMOTEIO;
	t->is_ready = true;
	return 0;
}

static int two_sided_read(struct hlog_queue *q, uint64_t offset,
			  uint32_t len_bytes, uint64_t token)
{
	struct two_sided *t = of_queue(q);
	int rc;

	if (t->is_ready)
		return -EAGAIN;
	if (t->is_held) {
		t->is_held = false;
		rc = redy_port_recycle(&t->port, t->index);
		if (rc < 0)
			return rc;
	}
	t->io.token = token;
	rc = ask(t, offset, len_bytes);
	return rc < 0 ? rc : await(t, len_bytes);
}

static int two_sided_write(struct hlog_queue *q, uint64_t offset,
			   const void *data, uint32_t len_bytes, uint64_t token)
{
	return -EOPNOTSUPP; /* the probe only reads */
}

static int two_sided_poll(struct hlog_queue *q, struct hlog_io *done,
			  unsigned max)
{
	struct two_sided *t = of_queue(q);

	if (!t->is_ready)
		return 0;
	t->is_ready = false;
	t->is_held = true;
	*done = t->io;
	return 1;
}

static void two_sided_destroy(struct hlog_device *dev)
{
	struct two_sided *t = container_of(dev, struct two_sided, base);

	redy_port_release(&t->port);
	free(t);
}

int two_sided_create(struct client_link *link, uint64_t size_bytes,
		     uint32_t read_max, struct hlog_device **out)
{
	static const struct hlog_device_ops ops = {
		.queue_open = two_sided_queue_open,
		.queue_close = two_sided_queue_close,
		.read = two_sided_read,
		.write = two_sided_write,
		.poll = two_sided_poll,
		.destroy = two_sided_destroy,
	};
	struct two_sided *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	rc = redy_port_init(&t->port, link, redy_message_bytes(1, read_max));
	if (rc < 0) {
		free(t);
		return rc;
	}
	t->base = (struct hlog_device){.ops = &ops,
				       .name = "two-sided",
				       .size_bytes = size_bytes,
				       .clock = hlog_clock_real};
	*out = &t->base;
	return 0;
}
