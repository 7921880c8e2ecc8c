/* SPDX-License-Identifier: Apache-2.0 */
/* From a put until the last of 1 to 64 listeners has heard of it, beside
 * PUBLISH and SUBSCRIBE. All listeners are in one process, each with a
 * connection of its own, and sleep in between. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "elastic_bench.h"
#include "elastic_stream.h"
#include "place.h"
#include "shield.h"
#include "stats.h"
#include "ticks.h"

enum {
	PERIOD_NS = 4000000,
	EVENTS = 100,
	EVENTS_QUICK = 5,
	PATIENCE_MS = 5000,
};

/* ---- in the helper ------------------------------------------------------- */

/* Which event each listener hears next; an event is over when the last one has
 * heard it. */
struct hearing {
	unsigned next[ELASTIC_LISTENERS_MAX];
	unsigned heard[EVENTS];
};

static int hear(struct elastic_shared *s, struct hearing *h, unsigned listener,
		const void *data)
{
	unsigned event = h->next[listener]++;

	if (event >= s->count)
		return error_set(-EPROTO, "an event came twice");
	if (++h->heard[event] == s->listeners)
		elastic_helper_note(s, data);
	return 0;
}

/* What a watcher has, until it has no more: then its descriptor says when. */
static int drain(struct elastic_shared *s, struct hearing *h, unsigned i,
		 struct aq_watch *w)
{
	struct aq_event e;
	int err;

	while (!(err = aq_watch_next(w, &e, 0))) {
		if (e.kind == AQ_EVENT_LOST)
			return error_set(-EIO, "a watcher was too slow");
		err = hear(s, h, i, e.data);
		if (err)
			return err;
	}
	return err == -EAGAIN ? 0 : err;
}

int elastic_listen_watch(struct elastic_shared *s, struct aq_rack *rack,
			 int out)
{
	struct aq_watch_options o = {.events = 1u << AQ_EVENT_PUT};
	struct aq_watch *w[ELASTIC_LISTENERS_MAX] = {NULL};
	struct pollfd fd[ELASTIC_LISTENERS_MAX];
	struct hearing h = {0};
	int err = 0;

	for (unsigned i = 0; i < s->listeners && !err; i++) {
		err = aq_watch_open(rack, s->path, &o, &w[i]);
		if (!err)
			err = drain(s, &h, i, w[i]);
		if (!err)
			fd[i] = (struct pollfd){.fd = aq_watch_fd(w[i]),
						.events = POLLIN};
	}
	elastic_helper_say(out);
	while (!err && s->heard < s->count) {
		if (poll(fd, s->listeners, PATIENCE_MS) <= 0)
			err = error_set(-ETIMEDOUT, "an event did not come");
		for (unsigned i = 0; i < s->listeners && !err; i++)
			if (fd[i].revents)
				err = drain(s, &h, i, w[i]);
	}
	for (unsigned i = 0; i < s->listeners; i++)
		aq_watch_close(w[i]);
	return err;
}

/* Messages of "c" have one length, and end with what was published. */
static const char head[] = "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$64\r\n";
enum {
	MESSAGE = sizeof(head) - 1 + ELASTIC_VALUE + 2,
};

static int dial(const struct elastic_shared *s, int *fd)
{
	static const char ask[] = "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n";
	char in[64];
	pid_t self = getpid(); /* redis-server is there */
	int err = place_dial(s->path, &self, fd);

	if (!err)
		err = elastic_stream_write(*fd, ask, sizeof(ask) - 1);
	return !err && read(*fd, in, sizeof(in)) <= 0
		       ? error_set(-EIO, "redis-server is gone")
		       : err;
}

int elastic_listen_subscribe(struct elastic_shared *s, int out)
{
	struct pollfd fd[ELASTIC_LISTENERS_MAX];
	struct hearing h = {0};
	char in[MESSAGE];
	int err = 0;

	for (unsigned i = 0; i < s->listeners; i++)
		fd[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	for (unsigned i = 0; i < s->listeners && !err; i++)
		err = dial(s, &fd[i].fd);
	elastic_helper_say(out);
	while (!err && s->heard < s->count) {
		if (poll(fd, s->listeners, PATIENCE_MS) <= 0)
			err = error_set(-ETIMEDOUT, "an event did not come");
		for (unsigned i = 0; i < s->listeners && !err; i++) {
			if (!fd[i].revents)
				continue;
			err = elastic_stream_read(fd[i].fd, in, MESSAGE);
			if (!err)
				err = hear(s, &h, i, in + sizeof(head) - 1);
		}
	}
	for (unsigned i = 0; i < s->listeners; i++)
		if (fd[i].fd >= 0)
			(void)close(fd[i].fd);
	return err;
}

/* ---- the benchmark ------------------------------------------------------- */

/* The median of all events, in microseconds. */
static int run(struct elastic_bed *bed, const struct elastic_sender *s,
	       enum elastic_job job, unsigned listeners, unsigned count,
	       double *us)
{
	struct elastic_helper *h = &bed->helper;
	uint64_t next;
	int err;

	h->shared->job = job;
	h->shared->listeners = listeners;
	h->shared->count = count;
	err = elastic_helper_begin(h);
	next = bench_now_ns();
	for (unsigned i = 0; i < count && !err; i++) {
		next += PERIOD_NS;
		elastic_notify_sleep(next);
		err = elastic_notify_send(s);
	}
	if (!err)
		err = elastic_helper_wait(h);
	if (!err)
		*us = stats_quantile_u32(h->shared->ns, h->shared->heard, 0.5) /
		      1e3;
	return err;
}

static int run_ours(struct elastic_bed *bed, unsigned listeners, unsigned count,
		    double *us)
{
	struct aq_elastic_options o = {.flags = AQ_ELASTIC_NEW};
	struct elastic_sender s = {0};
	int err;

	elastic_bed_name(bed, bed->helper.shared->path);
	err = aq_queue_open(bed->rack, bed->helper.shared->path, &o, &s.queue);
	/* Its first block is there before anybody is measured. */
	if (!err)
		err = aq_queue_put(s.queue, "first", 5, 0);
	if (!err)
		err = run(bed, &s, ELASTIC_WATCH_MANY, listeners, count, us);
	aq_queue_close(s.queue);
	return err;
}

static int run_redis(struct elastic_bed *bed, unsigned listeners,
		     unsigned count, double *us)
{
	struct elastic_sender s = {.fd = bed->redis->fd};

	elastic_bed_pin(bed->redis->pid, SHIELD_CPU_SERVER);
	(void)snprintf(bed->helper.shared->path,
		       sizeof(bed->helper.shared->path), "%s",
		       bed->redis->path);
	return run(bed, &s, ELASTIC_SUBSCRIBE_MANY, listeners, count, us);
}

static int measure(struct bench *b, struct elastic_bed *bed, unsigned listeners,
		   double paper_us)
{
	unsigned count = b->quick ? EVENTS_QUICK : EVENTS;
	char name[16];
	double ours, redis = 0;
	json_t *row;
	int err = run_ours(bed, listeners, count, &ours);

	if (!err && bed->redis)
		err = run_redis(bed, listeners, count, &redis);
	if (err)
		return err;
	(void)snprintf(name, sizeof(name), "listeners%u", listeners);
	row = bench_row(b, "listeners", name, ours, "us",
			"from a put until the last of them has it, median; "
			"the paper's is of the same number");
	if (bed->redis)
		(void)json_object_set_new(row, "redis", json_real(redis));
	if (paper_us > 0)
		(void)json_object_set_new(row, "paper", json_real(paper_us));
	return 0;
}

int elastic_bench_listeners(struct bench *b, struct elastic_bed *bed)
{
	/* Published: 1, 64 and 512. */
	static const struct {
		unsigned listeners;
		double paper_us;
	} rows[] = {{1, 320}, {4, 0}, {16, 0}, {64, 1350}};
	int err = 0;

	(void)prctl(PR_SET_TIMERSLACK, 1);
	for (size_t i = 0; i < ARRAY_LEN(rows) && !err; i++)
		err = measure(b, bed, rows[i].listeners, rows[i].paper_us);
	return err;
}
