/* SPDX-License-Identifier: Apache-2.0 */
/* From a put until who sleeps for it has returned, beside PUBLISH and
 * SUBSCRIBE: one every 100 us; listener and sender on one core, the server on
 * the other. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/error.h"
#include "elastic_bench.h"
#include "shield.h"
#include "stats.h"
#include "ticks.h"

enum {
	PERIOD_NS = 100000,
};

void elastic_notify_sleep(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000),
			     (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) ==
	       EINTR)
		;
}

int elastic_notify_send(const struct elastic_sender *s)
{
	char item[ELASTIC_VALUE] = "", out[256];
	const char *words[] = {"PUBLISH", "c", item};
	const size_t bytes[] = {7, 1, ELASTIC_VALUE};
	uint64_t now_ns = bench_now_ns();

	memcpy(item, &now_ns, sizeof(now_ns));
	if (s->queue)
		return aq_queue_put(s->queue, item, sizeof(item), 0);
	return elastic_redis_talk(s->fd, out,
				  elastic_redis_put(out, words, bytes, 3), 1);
}

/* The median of a round, in microseconds. */
static int run(struct elastic_bed *bed, const struct elastic_sender *s,
	       unsigned count, double us[2], uint64_t *lost)
{
	struct elastic_helper *h = &bed->helper;
	uint64_t next;
	int err;

	h->shared->count = count;
	err = elastic_helper_begin(h);
	next = bench_now_ns();
	for (unsigned i = 0; i < count && !err; i++) {
		next = u64_max(next + PERIOD_NS, bench_now_ns());
		elastic_notify_sleep(next);
		err = elastic_notify_send(s);
	}
	if (!err)
		err = elastic_helper_wait(h);
	if (err)
		return err;
	*lost += h->shared->lost;
	us[0] = stats_quantile_u32(h->shared->ns, h->shared->heard, 0.5) / 1e3;
	us[1] = stats_quantile_u32(h->shared->ns, h->shared->heard, 0.99) / 1e3;
	return 0;
}

static int run_ours(struct elastic_bed *bed, unsigned count, double us[2],
		    uint64_t *lost)
{
	struct aq_elastic_options o = {.flags = AQ_ELASTIC_NEW};
	struct elastic_shared *shared = bed->helper.shared;
	struct elastic_sender s = {0};
	int err;

	shared->job = ELASTIC_WATCH;
	elastic_bed_name(bed, shared->path);
	err = aq_queue_open(bed->rack, shared->path, &o, &s.queue);
	/* Its first block is there before anybody is measured. */
	if (!err)
		err = aq_queue_put(s.queue, "first", 5, 0);
	if (!err)
		err = run(bed, &s, count, us, lost);
	aq_queue_close(s.queue);
	return err;
}

static int run_redis(struct elastic_bed *bed, unsigned count, double us[2],
		     uint64_t *lost)
{
	struct elastic_shared *shared = bed->helper.shared;
	struct elastic_sender s = {.fd = bed->redis->fd};

	elastic_bed_pin(bed->redis->pid, SHIELD_CPU_SERVER);
	shared->job = ELASTIC_SUBSCRIBE;
	(void)snprintf(shared->path, sizeof(shared->path), "%s",
		       bed->redis->path);
	return run(bed, &s, count, us, lost);
}

struct outcome {
	double p50[BENCH_ROUNDS_MAX], p99[BENCH_ROUNDS_MAX];
};

static void report(struct bench *b, const char *name, struct outcome *o,
		   const char *what)
{
	json_t *row = bench_row(b, "notify", name,
				stats_median(o->p50, b->rounds), "us", what);

	(void)json_object_set_new(row, "p99",
				  json_real(stats_median(o->p99, b->rounds)));
}

int elastic_bench_notify(struct bench *b, struct elastic_bed *bed)
{
	unsigned count = (unsigned)u64_min(
		ELASTIC_EVENTS_MAX, b->window_ms * 1000000ull / PERIOD_NS);
	struct outcome *o = calloc(2, sizeof(*o));
	double ratio[BENCH_ROUNDS_MAX], us[2];
	uint64_t lost = 0;
	int err = o ? 0 : error_set(-ENOMEM, "no memory");

	(void)prctl(PR_SET_TIMERSLACK, 1);
	for (unsigned i = 0; i < b->rounds && !err; i++) {
		err = run_ours(bed, count, us, &lost);
		o[0].p50[i] = us[0];
		o[0].p99[i] = us[1];
		if (err || !bed->redis)
			continue;
		err = run_redis(bed, count, us, &lost);
		o[1].p50[i] = us[0];
		o[1].p99[i] = us[1];
		ratio[i] = o[0].p50[i] / o[1].p50[i];
	}
	if (!err) {
		report(b, "watch", &o[0],
		       "from a put to the return of a sleeping watcher");
		(void)bench_row(b, "notify", "lost", (double)lost, "events",
				"that a watcher was too slow for");
	}
	if (!err && bed->redis) {
		report(b, "subscribe", &o[1], "PUBLISH to SUBSCRIBE");
		bench_ratio_add(b, "notify_vs_redis",
				stats_median(ratio, b->rounds));
	} else if (!err) {
		bench_void(b, "notify_vs_redis",
			   "redis-server does not start; is it installed?");
	}
	free(o);
	return err;
}
