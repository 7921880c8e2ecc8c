/* SPDX-License-Identifier: Apache-2.0 */
/* READs of 64 B by verbs from a passive server, through the switch or over a
 * cable between the two. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ours_conn.h"
#include "stats.h"
#include "trio.h"

/* Without special priorities a process may wait long for its turn on a busy
 * machine: the timeout is a second. */
static const struct ours_param one = {
	.block = 64, .depth = 1, .qp_count = 1, .ack_timeout = 18};
static const struct ours_param many = {
	.block = 64, .depth = 64, .qp_count = 1, .ack_timeout = 18};

/* A side of `bench verbs` in the clothes of a trio's process. */
static int connect_side(struct trio *t, enum side_role role, struct side **out)
{
	struct side *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	s->role = role;
	s->peer_fd = t->peer_fd[role];
	s->param = t->depth == 1 ? &one : &many;
	s->ticks_per_ns = t->ticks_per_ns;
	s->tick_step = 1;
	for (unsigned i = 0; i < SIDE_SERIES_MAX; i++) {
		s->samples[i].ticks =
			malloc(SIDE_SAMPLES_MAX * sizeof(uint32_t));
		if (!s->samples[i].ticks)
			return -ENOMEM;
	}
	rc = ours_ops.setup(s);
	if (rc < 0)
		return trio_fail(t, rc, s->why[0] ? s->why : "connecting");
	*out = s;
	return 0;
}

/* The application sleeps; its NIC answers. */
static int serve(struct trio *t)
{
	struct side *s;

	if (connect_side(t, SIDE_SERVER, &s) < 0)
		return -EIO;
	trio_ready(t);
	while (!trio_quits(t))
		trio_nap();
	ours_ops.teardown(s);
	return 0;
}

static int setup(struct trio *t)
{
	struct side *s;
	int rc = connect_side(t, SIDE_CLIENT, &s);

	t->state = s;
	return rc;
}

static int measure(struct trio *t, uint64_t window_ns, uint32_t depth,
		   struct trio_result *out)
{
	struct side_result r = {0};
	struct side *s = t->state;
	uint64_t count;
	int rc;

	s->samples[0].count = 0;
	rc = ours_ops.measure(s, window_ns, &r);
	if (rc < 0)
		return trio_fail(t, rc, s->why[0] ? s->why : "READ");
	count = s->samples[0].count < SIDE_SAMPLES_MAX ? s->samples[0].count
						       : SIDE_SAMPLES_MAX;
	out->ops = r.ops;
	out->elapsed_ns = window_ns;
	out->p50_ns = stats_quantile_u32(s->samples[0].ticks, count, 0.5) /
		      t->ticks_per_ns;
	return 0;
}

const struct trio_ops trio_read = {
	.name = "switch_read64",
	.what = "READ 64 B through the switch",
	.uses_switch = true,
	.serve = serve,
	.setup = setup,
	.measure = measure,
};

const struct trio_ops trio_cable = {
	.name = "cable_read64",
	.what = "READ 64 B over a cable",
	.serve = serve,
	.setup = setup,
	.measure = measure,
};
