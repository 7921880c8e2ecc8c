/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of `bench elastic`, and turns of what is compared. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hist.h"
#include "elastic_bench.h"
#include "place.h"
#include "shield.h"
#include "ticks.h"

enum {
	REPLY_BYTES = 1 << 16,
};

/* ---- life ---------------------------------------------------------------- */

/* More than one of them would share the server's core. */
static int start_node(struct control_bed *bed, unsigned i, const char *size,
		      bool has_spill)
{
	char name[16], spill[sizeof(bed->dir) + 16];

	(void)snprintf(name, sizeof(name), "m%u", i);
	(void)snprintf(spill, sizeof(spill), "%s:%s", bed->dir,
		       ELASTIC_SPILL_SIZE);
	bed->node[i] = place_start_aquifer(PLACE_QUIET | PLACE_SERVER, "memory",
					   "--name", name, "--size", size,
					   has_spill ? "--spill" : (char *)NULL,
					   spill, (char *)NULL);
	return bed->node[i] < 0 ? error_set((int)bed->node[i],
					    "no process can be started")
				: control_bed_joined(bed, i + 1);
}

int elastic_bed_second(struct elastic_bed *bed)
{
	if (bed->control.node[1] > 0)
		return 0;
	return start_node(&bed->control, 1, ELASTIC_NODE_SIZE, false);
}

int elastic_bed_make(struct elastic_bed *bed, const char *node_size,
		     bool has_spill)
{
	double seconds;
	int err;

	memset(bed, 0, sizeof(*bed));
	err = control_bed_make(&bed->control);
	if (!err)
		err = control_bed_start(&bed->control, 0);
	if (!err)
		err = control_bed_await(&bed->control, &seconds);
	if (!err)
		err = start_node(&bed->control, 0, node_size, has_spill);
	if (!err)
		err = elastic_helper_start(&bed->helper);
	if (!err)
		err = elastic_workers_start(&bed->workers);
	/* Threads that are made from now on stay there, too. */
	(void)shield_pin(SHIELD_CPU_CLIENT);
	(void)shield_enter_nice();
	if (!err)
		err = place_rack(&bed->rack);
	if (!err) {
		struct aq_job_options o = {.on_expiry = "keep"};

		err = aq_job_create(bed->rack, "/bench", &o);
	}
	if (!err && kv_redis_start(0, 0, &bed->redis))
		bed->redis = NULL;
	return err;
}

void elastic_bed_end(struct elastic_bed *bed)
{
	if (bed->rack)
		aq_rack_close(bed->rack);
	elastic_helper_end(&bed->helper);
	elastic_workers_end(&bed->workers);
	shield_leave();
	kv_redis_stop(bed->redis);
	control_bed_end(&bed->control);
}

void elastic_bed_name(struct elastic_bed *bed, char path[32])
{
	(void)snprintf(path, 32, "/bench/o%u", bed->names++);
}

void elastic_bed_pin(pid_t pid, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	(void)!sched_setaffinity(pid, sizeof(one), &one); /* or it stays */
}

/* ---- turns --------------------------------------------------------------- */

static double rate_of(const struct conduct_track *t, unsigned round)
{
	return conduct_metric_of(&t->round[round], METRIC_RATE);
}

/* Its server on the other core, then on ours; the better one counts. */
static int run_redis(struct elastic_bed *bed, const struct elastic_run *r,
		     unsigned window_ms, struct conduct_track *t,
		     unsigned round)
{
	struct conduct_track *two = calloc(2, sizeof(*two));
	int err = two ? 0 : error_set(-ENOMEM, "no memory");

	for (int cpu = 0; cpu < 2 && !err; cpu++) {
		elastic_bed_pin(bed->redis->pid, cpu);
		err = r->run(bed, r->ctx, window_ms, &two[cpu], round);
	}
	if (!err) {
		int best = rate_of(&two[1], round) > rate_of(&two[0], round);

		t->round[round] = two[best].round[round];
		t->is_clean[round] = true;
		t->kept++;
	}
	free(two);
	return err;
}

int elastic_turns(struct bench *b, struct elastic_bed *bed, const char *group,
		  const struct elastic_run *runs, unsigned count,
		  bench_row_fn more)
{
	struct conduct_track *track = calloc(count, sizeof(*track));
	int err = track ? 0 : error_set(-ENOMEM, "no memory");

	for (unsigned k = 0; k < count && !err; k++) {
		track[k].desc = &runs[k].what;
		if (runs[k].is_redis && !bed->redis)
			kv_redis_is_missing(&track[k]);
	}
	for (unsigned i = 0; i < b->rounds && !err; i++)
		for (unsigned k = 0; k < count && !err; k++) {
			const struct elastic_run *r = &runs[k];

			if (!r->is_redis)
				err = r->run(bed, r->ctx, b->window_ms,
					     &track[k], i);
			else if (bed->redis)
				err = run_redis(bed, r, b->window_ms, &track[k],
						i);
		}
	if (!err)
		bench_report_tracks(b, group, track, count, more);
	free(track);
	return err;
}

int elastic_step_for(int (*step)(void *ctx), void *ctx, unsigned ops,
		     unsigned window_ms, struct conduct_track *t,
		     unsigned round)
{
	uint64_t start = bench_now_ns(), end = start + window_ms * 1000000ull;
	uint64_t now = start, done = 0, before;
	struct hist *h = malloc(sizeof(*h));
	int err = h ? 0 : error_set(-ENOMEM, "no memory");

	if (h)
		hist_init(h);
	while (now < end && !err) {
		before = now;
		err = step(ctx);
		now = bench_now_ns();
		if (!err)
			hist_record(h, now - before);
		done += ops;
	}
	if (!err) {
		conduct_record(t, round, done, now - start);
		t->round[round].series[0] = (struct side_series){
			.count = hist_count(h),
			.p50_ns = (double)hist_percentile(h, HIST_MEDIAN),
			.p99_ns = (double)hist_percentile(h, HIST_P99),
			.p999_ns = (double)hist_percentile(h, HIST_P999),
		};
	}
	free(h);
	return err;
}

/* ---- redis --------------------------------------------------------------- */

size_t elastic_redis_put(char *out, const char *const *words,
			 const size_t *lengths, unsigned count)
{
	size_t len = (size_t)sprintf(out, "*%u\r\n", count);

	for (unsigned i = 0; i < count; i++) {
		len += (size_t)sprintf(out + len, "$%zu\r\n", lengths[i]);
		memcpy(out + len, words[i], lengths[i]);
		len += lengths[i];
		memcpy(out + len, "\r\n", 2);
		len += 2;
	}
	return len;
}

/* How many whole answers these bytes are: status, number or bulk; *used says
 * how many bytes of them. -EPROTO. */
static int count_replies(const char *in, size_t len, size_t *used)
{
	int n = 0;

	*used = 0;
	while (*used < len) {
		const char *line = in + *used;
		const char *end = memchr(line, '\n', len - *used);
		size_t bytes;
		long bulk;

		if (!end)
			break;
		if (line[0] != '+' && line[0] != ':' && line[0] != '$')
			return -EPROTO;
		bytes = (size_t)(end - line) + 1;
		bulk = line[0] == '$' ? strtol(line + 1, NULL, 10) : -1;
		if (bulk >= 0)
			bytes += (size_t)bulk + 2;
		if (bytes > len - *used)
			break;
		*used += bytes;
		n++;
	}
	return n;
}

int elastic_redis_talk(int fd, const char *out, size_t out_bytes,
		       unsigned replies)
{
	static char in[REPLY_BYTES];
	size_t got = 0, used;

	while (out_bytes) {
		ssize_t n = write(fd, out, out_bytes);

		if (n <= 0)
			return error_set(-EIO, "redis-server is gone");
		out += n;
		out_bytes -= (size_t)n;
	}
	while (replies) {
		ssize_t n = read(fd, in + got, sizeof(in) - got);
		int whole;

		if (n <= 0)
			return error_set(-EIO, "redis-server is gone");
		got += (size_t)n;
		whole = count_replies(in, got, &used);
		if (whole < 0 || (unsigned)whole > replies)
			return error_set(-EPROTO, "redis-server says %.20s",
					 in);
		replies -= (unsigned)whole;
		memmove(in, in + used, got - used);
		got -= used;
	}
	return 0;
}
