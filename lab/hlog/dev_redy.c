/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Far memory in the way of Redy: application threads hand their requests to an
 * I/O thread, which sends them in batches to a server beside the memory and
 * spreads the answers.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "redy.h"
#include "slots.h"

enum {
	EVENTS_MAX = 16,
	TOKEN_SLOT_BITS = 16, /* of a token; the queue is above */
	/* Turns without work before the I/O thread naps instead of yielding. */
	IDLE_TURNS = 2000,
	NAP_NS = 100000,
};

struct redy_job {
	uint64_t offset;
	const void *data; /* of a write */
	uint32_t len_bytes;
	uint32_t slot;
};

/* Two rings between an application thread and the I/O thread, each with one
 * writer and one reader. */
struct redy_queue {
	struct hlog_queue base;
	struct redy_device *device;
	uint32_t index; /* in the device */
	uint32_t depth;
	uint32_t mask;
	uint8_t *memory;
	uint32_t slot_bytes;
	struct slots slots; /* the application's */
	uint64_t *token;
	struct ibv_mr *write_mr;
	struct redy_job *job; /* ring of requests */
	struct hlog_io *done; /* ring of results; .token is a slot */
	bool *is_open;	      /* the I/O thread's: the slot has a request */
	/* What a ring holds is written before its tail moves: REDY-1 for jobs,
	 * REDY-2 for results. A head is its reader's own: a place comes back
	 * with its slot. */
	_Atomic uint32_t job_tail CACHE_ALIGNED;
	_Atomic uint32_t done_head;
	_Atomic uint32_t job_head CACHE_ALIGNED;
	_Atomic uint32_t done_tail;
};

struct redy_device {
	struct hlog_device base;
	struct hlog_redy_options opt;
	struct redy_port port;
	pthread_t thread;
	pthread_mutex_t lock; /* queues come and go between two turns */
	struct redy_queue *queue[REDY_QUEUES_MAX];
	uint32_t next_queue; /* whose turn it is */
	atomic_int failed;   /* relaxed: a code that carries nothing else */
	atomic_bool stop;    /* relaxed, too */
};

/* ---- the I/O thread ----------------------------------------------------- */

static void give(struct redy_queue *q, uint32_t slot, int err, const void *data)
{
	uint32_t t = atomic_load_explicit(&q->done_tail, memory_order_relaxed);

	q->is_open[slot] = false;
	q->done[t & q->mask] =
		(struct hlog_io){.token = slot, .err = err, .data = data};
	/* REDY-2, with redy_poll: what is done is all there. */
	atomic_store_explicit(&q->done_tail, t + 1, memory_order_release);
}

/* The next request of the queue, or false. */
static bool take_job(struct redy_queue *q, struct redy_job *out)
{
	uint32_t h = atomic_load_explicit(&q->job_head, memory_order_relaxed);

	/* REDY-1: a job that is counted is all there. */
	if (h == atomic_load_explicit(&q->job_tail, memory_order_acquire))
		return false;
	*out = q->job[h & q->mask];
	atomic_store_explicit(&q->job_head, h + 1, memory_order_relaxed);
	q->is_open[out->slot] = true;
	return true;
}

/* Collects reads into a message; answers how many. Writes go out at once. */
static uint32_t collect(struct redy_device *d, uint8_t *message)
{
	struct redy_request r;
	struct redy_job job;
	uint32_t count = 0;

	for (uint32_t k = 0; k < REDY_QUEUES_MAX; k++) {
		uint32_t i = (d->next_queue + k) % REDY_QUEUES_MAX;
		struct redy_queue *q = d->queue[i];

		while (q && count < d->opt.batch && take_job(q, &job)) {
			uint32_t token = i << TOKEN_SLOT_BITS | job.slot;
			int rc = 0;

			if (job.data) {
				rc = redy_port_write(&d->port, job.offset,
						     job.data, job.len_bytes,
						     q->write_mr->lkey, token);
				if (rc < 0)
					give(q, job.slot, rc, NULL);
				continue;
			}
			r = (struct redy_request){
				.offset = le64_put(job.offset),
				.len_bytes = le32_put(job.len_bytes),
				.token = le32_put(token)};
			memcpy(message + sizeof(struct redy_head) +
				       count++ * sizeof(r),
			       &r, sizeof(r));
		}
	}
	d->next_queue = (d->next_queue + 1) % REDY_QUEUES_MAX;
	return count;
}

static int send_batch(struct redy_device *d, bool *is_busy)
{
	uint8_t *message = redy_port_buffer(&d->port);
	struct redy_head head = {.magic = le32_put(REDY_MAGIC)};
	uint32_t count;

	if (!message)
		return 0;
	count = collect(d, message);
	if (!count)
		return 0;
	*is_busy = true;
	head.count = le32_put(count);
	memcpy(message, &head, sizeof(head));
	return redy_port_send(
		&d->port,
		(uint32_t)(sizeof(head) + count * sizeof(struct redy_request)));
}

/* The queue and slot of a token that came from outside, if it is under way. */
static struct redy_queue *find(struct redy_device *d, uint32_t token,
			       uint32_t *slot)
{
	uint32_t i = token >> TOKEN_SLOT_BITS;
	struct redy_queue *q = i < REDY_QUEUES_MAX ? d->queue[i] : NULL;

	*slot = token & ((1u << TOKEN_SLOT_BITS) - 1);
	return q && *slot < q->depth && q->is_open[*slot] ? q : NULL;
}

static int spread(struct redy_device *d, const struct redy_event *ev)
{
	uint32_t at = sizeof(struct redy_head), count;
	struct redy_head head;

	if (ev->len_bytes < sizeof(head))
		return -EBADMSG;
	memcpy(&head, ev->data, sizeof(head));
	count = le32_get(head.count);
	for (uint32_t i = 0; i < count; i++) {
		struct redy_answer a;
		struct redy_queue *q;
		uint32_t slot, len;
		uint8_t *to;

		if (ev->len_bytes - at < sizeof(a))
			return -EBADMSG;
		memcpy(&a, ev->data + at, sizeof(a));
		at += (uint32_t)sizeof(a);
		q = find(d, le32_get(a.token), &slot);
		len = le32_get(a.len_bytes);
		if (!q)
			return -EBADMSG;
		if (len == REDY_REFUSED) {
			give(q, slot, -ERANGE, NULL);
			continue;
		}
		if (len > q->slot_bytes ||
		    align_up(len, 8) > ev->len_bytes - at)
			return -EBADMSG;
		to = q->memory + (size_t)slot * q->slot_bytes;
		memcpy(to, ev->data + at, len);
		at += (uint32_t)align_up(len, 8);
		give(q, slot, 0, to);
	}
	return 0;
}

static int turn(struct redy_device *d, bool *is_busy)
{
	struct redy_event ev[EVENTS_MAX];
	int rc = send_batch(d, is_busy);
	int n = rc == 0 ? redy_port_poll(&d->port, ev, EVENTS_MAX) : rc;

	for (int i = 0; i < n; i++) {
		struct redy_queue *q;
		uint32_t slot;

		*is_busy = true;
		if (ev[i].kind == REDY_WRITTEN) {
			q = find(d, ev[i].index, &slot);
			if (q)
				give(q, slot, 0, NULL);
			continue;
		}
		rc = spread(d, &ev[i]);
		if (rc == 0)
			rc = redy_port_recycle(&d->port, ev[i].index);
		if (rc < 0)
			return rc;
	}
	return n < 0 ? n : 0;
}

static void *io_main(void *arg)
{
	static const struct timespec nap = {.tv_nsec = NAP_NS};
	struct redy_device *d = arg;
	const struct client_clock *c = d->opt.link->clock;
	unsigned idle = 0;

	while (!atomic_load_explicit(&d->stop, memory_order_relaxed)) {
		bool is_busy = false;
		int rc;

		pthread_mutex_lock(&d->lock);
		rc = turn(d, &is_busy);
		pthread_mutex_unlock(&d->lock);
		if (rc < 0) {
			atomic_store_explicit(&d->failed, rc,
					      memory_order_relaxed);
			break;
		}
		idle = is_busy ? 0 : idle + 1;
		if (idle > IDLE_TURNS)
			(void)nanosleep(&nap, NULL);
		else if (idle)
			c->relax(c->ctx);
	}
	return NULL;
}

/* ---- the application's side --------------------------------------------- */

static void redy_queue_close(struct hlog_queue *base)
{
	struct redy_queue *q = container_of(base, struct redy_queue, base);
	struct redy_device *d = q->device;

	pthread_mutex_lock(&d->lock);
	if (d->queue[q->index] == q)
		d->queue[q->index] = NULL;
	pthread_mutex_unlock(&d->lock);
	if (q->write_mr)
		(void)d->opt.link->verbs->dereg_mr(q->write_mr);
	slots_release(&q->slots);
	free(q->memory);
	free(q->token);
	free(q->job);
	free(q->done);
	free(q->is_open);
	free(q);
}

static int alloc_queue(struct redy_queue *q,
		       const struct hlog_queue_options *opt)
{
	uint32_t ring = u32_pow2_ceil(opt->depth);

	q->depth = opt->depth;
	q->mask = ring - 1;
	q->slot_bytes = (uint32_t)align_up(opt->read_max, CACHE_LINE);
	q->memory =
		aligned_alloc(CACHE_LINE, (size_t)opt->depth * q->slot_bytes);
	q->token = calloc(opt->depth, sizeof(*q->token));
	q->job = calloc(ring, sizeof(*q->job));
	q->done = calloc(ring, sizeof(*q->done));
	q->is_open = calloc(opt->depth, sizeof(*q->is_open));
	if (!q->memory || !q->token || !q->job || !q->done || !q->is_open)
		return -ENOMEM;
	return slots_init(&q->slots, opt->depth);
}

static int add_queue(struct redy_device *d, struct redy_queue *q)
{
	int rc = error_set(-ENOSPC, "more than %d threads", REDY_QUEUES_MAX);

	pthread_mutex_lock(&d->lock);
	for (uint32_t i = 0; i < REDY_QUEUES_MAX && rc < 0; i++) {
		if (d->queue[i])
			continue;
		d->queue[i] = q;
		q->index = i;
		rc = 0;
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}

static int redy_queue_open(struct hlog_device *dev,
			   const struct hlog_queue_options *opt,
			   struct hlog_queue **out)
{
	struct redy_device *d = container_of(dev, struct redy_device, base);
	struct client_link *link = d->opt.link;
	struct redy_queue *q;
	int rc;

	if (opt->read_max > d->opt.read_max ||
	    opt->depth > 1u << TOKEN_SLOT_BITS)
		return error_set(-EINVAL, "reads of %u bytes at most",
				 d->opt.read_max);
	q = aligned_alloc(CACHE_LINE, align_up(sizeof(*q), CACHE_LINE));
	if (!q)
		return -ENOMEM;
	memset(q, 0, sizeof(*q));
	q->base.device = dev;
	q->device = d;
	rc = alloc_queue(q, opt);
	if (rc == 0 && opt->write_from_bytes) {
		q->write_mr = link->verbs->reg_mr(link->pd, opt->write_from,
						  opt->write_from_bytes, 0);
		if (!q->write_mr)
			rc = error_set(-ENOMEM, "the NIC has no more keys");
	}
	if (rc == 0)
		rc = add_queue(d, q);
	if (rc < 0) {
		redy_queue_close(&q->base);
		return rc;
	}
	*out = &q->base;
	return 0;
}

static int push(struct redy_queue *q, struct redy_job job, uint64_t token)
{
	uint32_t t = atomic_load_explicit(&q->job_tail, memory_order_relaxed);
	uint64_t size = q->base.device->size_bytes;

	if (job.offset > size || job.len_bytes > size - job.offset)
		return -ERANGE;
	/* As many slots as places: the ring is never full. */
	job.slot = slots_get(&q->slots);
	if (job.slot == SLOTS_NONE)
		return -EAGAIN;
	q->token[job.slot] = token;
	q->job[t & q->mask] = job;
	/* REDY-1, with take_job. */
	atomic_store_explicit(&q->job_tail, t + 1, memory_order_release);
	return 0;
}

static int redy_read(struct hlog_queue *base, uint64_t offset,
		     uint32_t len_bytes, uint64_t token)
{
	struct redy_queue *q = container_of(base, struct redy_queue, base);

	if (len_bytes > q->slot_bytes)
		return -EMSGSIZE;
	return push(q,
		    (struct redy_job){.offset = offset, .len_bytes = len_bytes},
		    token);
}

static int redy_write(struct hlog_queue *base, uint64_t offset,
		      const void *data, uint32_t len_bytes, uint64_t token)
{
	struct redy_queue *q = container_of(base, struct redy_queue, base);

	if (!q->write_mr)
		return -EINVAL;
	return push(q,
		    (struct redy_job){.offset = offset,
				      .data = data,
				      .len_bytes = len_bytes},
		    token);
}

static int redy_poll(struct hlog_queue *base, struct hlog_io *done,
		     unsigned max)
{
	struct redy_queue *q = container_of(base, struct redy_queue, base);
	uint32_t h = atomic_load_explicit(&q->done_head, memory_order_relaxed);
	/* REDY-2, with give. */
	uint32_t t = atomic_load_explicit(&q->done_tail, memory_order_acquire);
	unsigned n = 0;

	slots_recycle(&q->slots);
	while (n < max && h != t) {
		uint32_t slot = (uint32_t)q->done[h & q->mask].token;

		done[n] = q->done[h++ & q->mask];
		done[n++].token = q->token[slot];
		slots_hand(&q->slots, slot);
	}
	atomic_store_explicit(&q->done_head, h, memory_order_relaxed);
	if (n == 0)
		return atomic_load_explicit(&q->device->failed,
					    memory_order_relaxed);
	return (int)n;
}

static void redy_destroy(struct hlog_device *dev)
{
	struct redy_device *d = container_of(dev, struct redy_device, base);

	atomic_store_explicit(&d->stop, true, memory_order_relaxed);
	pthread_join(d->thread, NULL);
	redy_port_release(&d->port);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static int start_thread(struct redy_device *d)
{
	pthread_attr_t attr;
	cpu_set_t set;
	int rc;

	pthread_attr_init(&attr);
	if (d->opt.io_cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET((size_t)d->opt.io_cpu, &set);
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	}
	rc = -pthread_create(&d->thread, &attr, io_main, d);
	pthread_attr_destroy(&attr);
	return rc < 0 ? error_set(rc, "the I/O thread cannot be started") : 0;
}

int hlog_device_redy_create(const struct hlog_redy_options *opt,
			    struct hlog_device **out)
{
	static const struct hlog_device_ops ops = {
		.queue_open = redy_queue_open,
		.queue_close = redy_queue_close,
		.read = redy_read,
		.write = redy_write,
		.poll = redy_poll,
		.destroy = redy_destroy,
	};
	struct redy_device *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return -ENOMEM;
	d->opt = *opt;
	d->opt.batch = u32_min(u32_max(opt->batch, 1), REDY_BATCH_MAX);
	d->base = (struct hlog_device){.ops = &ops,
				       .name = "redy",
				       .size_bytes = opt->size_bytes,
				       .clock = hlog_clock_real};
	pthread_mutex_init(&d->lock, NULL);
	rc = redy_port_init(&d->port, opt->link,
			    redy_message_bytes(d->opt.batch, opt->read_max));
	if (rc == 0) {
		rc = start_thread(d);
		if (rc < 0)
			redy_port_release(&d->port);
	}
	if (rc < 0) {
		free(d);
		return rc;
	}
	*out = &d->base;
	return 0;
}
