/* SPDX-License-Identifier: Apache-2.0 */
/* The walker of a host that only gathers. */
#include "gatherer.h"

#include <errno.h>
#include <stdlib.h>

#include "stage_priv.h"
#include "walk/gather.h"
#include "wire/gather_wire.h"

struct rig_gatherer {
	struct rig_host *host;
	struct walk_gathers *gathers;
};

static int start(void *ctx, struct aqdv_walk *walk)
{
	struct rig_gatherer *g = ctx;

	return walk->program == GATHER_WIRE_PROGRAM
		       ? walk_gathers_start(g->gathers, walk, walk->pad,
					    walk->send_bytes, walk->pad_room,
					    &walk->answer_bytes)
		       : -ENOENT;
}

static bool turn(void *ctx, uint32_t iterations)
{
	struct rig_gatherer *g = ctx;

	(void)walk_gathers_turn(g->gathers, iterations);
	return walk_gathers_busy(g->gathers) > 0;
}

static void forget(void *ctx, struct aqdv_walk *walk)
{
	struct rig_gatherer *g = ctx;

	(void)walk_gathers_forget(g->gathers, walk); /* it is gone either way */
}

static enum walk_reach reach(void *ctx, void *handle, uint64_t at,
			     uint32_t len_bytes, bool write,
			     struct walk_span *span)
{
	return (enum walk_reach)aqdv_walk_span(handle, at, len_bytes, write,
					       (struct aqdv_walk_span *)span);
}

static void done(void *ctx, void *handle, enum walk_status status, uint64_t at,
		 uint32_t left, uint32_t took)
{
	aqdv_walk_done(handle, (enum aqdv_walk_status)status, at, left, took);
}

int rig_gatherer_open(struct rig_host *host, struct rig_gatherer **out)
{
	struct rig_gatherer *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return -ENOMEM;
	g->host = host;
	err = walk_gathers_open(
		&(struct walk_host){.reach = reach, .done = done}, &g->gathers);
	if (!err)
		err = aqdv_set_walker(host->context,
				      &(struct aqdv_walker){.ctx = g,
							    .start = start,
							    .turn = turn,
							    .forget = forget});
	if (err) {
		walk_gathers_close(g->gathers);
		free(g);
		return err;
	}
	*out = g;
	return 0;
}

void rig_gatherer_close(struct rig_gatherer *g)
{
	if (!g)
		return;
	ASSERT(aqdv_set_walker(g->host->context, NULL) == 0);
	walk_gathers_close(g->gathers);
	free(g);
}

int rig_gatherer_post(struct ibv_qp *qp, struct aqdv_walk_wr *wr,
		      struct aqdv_walk_wr **bad)
{
	struct rig_host *h = qp->qp_context;
	struct rig_meter *m = &h->meter;
	bool last = ++m->doorbells == m->kill_at;
	int err;

	m->requests++;
	if (last && m->kill_when != RIG_KILL_AFTER)
		rig_host_kill(h);
	err = aqdv_post_walk(qp, wr, bad);
	if (last)
		rig_host_kill(h);
	return err;
}
