/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine in a switch costs everybody else: frames through the switch
 * while it looks at rings in which nothing happens, and through one without the
 * program. The rings are there during a subject's own rounds only, so that the
 * other one has the machine to itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "offload_bench.h"
#include "place.h"
#include "switch_bench.h"

enum {
	SESSIONS = 64,
	DEPTH = 64, /* frames under way */
	REQUESTS = 16,
	DATA_BYTES = 4096,
	/* An idle session is looked at every 10 ms at last; then so long. */
	SETTLE_MS = 60,
	WATCH_MS = 50,
};

struct state {
	struct switch_pump pump;
	struct aq_rack *rack;
	struct aq_async *idle[SESSIONS];
	bool is_begun; /* the warm-up of this round is over */
};

/* The first word of the shared memory: probes per second of this round. */
static double *probe_rate(const struct side *s)
{
	return (double *)(void *)s->shared;
}

static int frames_setup(struct side *s)
{
	const struct offload_param *p = s->param;
	bool has_program = p->way == WAY_P4;
	struct state *st = calloc(1, sizeof(*st));
	int rc;

	if (!st)
		return side_fail(s, -ENOMEM, "state");
	s->state = st;
	rc = switch_pump_open(s, getenv("AQUIFER_RACK_NAME"),
			      has_program ? OFFLOAD_SWITCH
					  : OFFLOAD_SWITCH_BARE,
			      has_program, &st->pump);
	if (rc == 0 && has_program && s->role == SIDE_SERVER) {
		/* The NIC of idle applications stands for others, elsewhere: it
		 * must not look for more on the core of the switch. */
		(void)setenv("AQUIFER_NIC_ENGINE_YIELDS", "1", 1);
		rc = place_rack(&st->rack);
		if (rc < 0)
			return side_fail(s, rc, aq_last_error());
	}
	return rc;
}

static void frames_teardown(struct side *s)
{
	struct state *st = s->state;

	switch_pump_close(&st->pump);
	aq_rack_close(st->rack);
	free(st);
}

static int sessions_open(struct side *s, struct state *st)
{
	struct aq_async_options opt = offload_async_options(WAY_P4);
	int rc = 0;

	opt.requests = REQUESTS;
	opt.read_bytes = opt.write_bytes = DATA_BYTES;
	for (unsigned i = 0; i < SESSIONS && rc == 0; i++)
		rc = aq_async_open(st->rack, &opt, &st->idle[i]);
	return rc < 0 ? side_fail(s, rc, aq_last_error()) : 0;
}

static void sessions_close(struct state *st)
{
	for (unsigned i = 0; i < SESSIONS; i++) {
		aq_async_close(st->idle[i]);
		st->idle[i] = NULL;
	}
}

static int watch_probes(struct side *s)
{
	double a[OFFLOAD_READ_COUNT], b[OFFLOAD_READ_COUNT];
	int rc;

	(void)usleep(SETTLE_MS * 1000);
	rc = offload_switch_read(a);
	(void)usleep(WATCH_MS * 1000);
	if (rc == 0)
		rc = offload_switch_read(b);
	if (rc < 0)
		return side_fail(s, rc, "the switch's counters");
	*probe_rate(s) = (b[OFFLOAD_READ_PROBES] - a[OFFLOAD_READ_PROBES]) *
			 1e9 / (b[OFFLOAD_READ_NS] - a[OFFLOAD_READ_NS]);
	return 0;
}

static int frames_serve(struct side *s)
{
	struct state *st = s->state;
	int rc = 0;

	if (st->rack) {
		rc = sessions_open(s, st);
		if (rc == 0)
			rc = watch_probes(s);
	} else {
		/* Both begin after the same pause: a host may move or slow down
		 * cores that idle. */
		(void)usleep((SETTLE_MS + WATCH_MS) * 1000);
	}
	if (rc == 0)
		rc = side_meet(s);
	if (rc == 0)
		rc = switch_pump_serve(s, &st->pump);
	if (st->rack)
		sessions_close(st);
	return rc;
}

static int frames_measure(struct side *s, uint64_t window_ns,
			  struct side_result *out)
{
	struct state *st = s->state;
	/* Twice in a round; the first one is not counted. */
	int rc = st->is_begun ? 0 : side_meet(s);

	st->is_begun = !st->is_begun;
	out->more[SIDE_MORE_OWN] = *probe_rate(s);
	return rc < 0 ? side_fail(s, rc, "the other side")
		      : switch_pump_measure(s, &st->pump, DEPTH, window_ns,
					    out);
}

const struct side_ops offload_frames_ops = {
	.setup = frames_setup,
	.serve = frames_serve,
	.measure = frames_measure,
	.teardown = frames_teardown,
	.is_shared = true,
};
