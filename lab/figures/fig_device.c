/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to read, among them local memory and rings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "fig_priv.h"
#include "sim/model.h"

enum {
	RING_ENTRIES = 1024,
	RING_FEW_BYTES = 4096, /* nothing is written */
	RING_DATA_BYTES = 256 << 10,
};

/* ---- nothing far -------------------------------------------------------- */

static int local_open(struct fig_thread *t)
{
	return 0;
}

static void local_issue(struct fig_thread *t, uint32_t place)
{
	fig_complete(t, place, NULL);
}

static void local_look(struct fig_thread *t)
{
}

/* ---- rings -------------------------------------------------------------- */

static int cow_open(struct fig_thread *t)
{
	struct rig *rig = &t->fig->rig;
	/* An engine begins by reading all data that may be written. */
	uint64_t wdata_bytes =
		t->fig->cfg.write_ppm ? RING_DATA_BYTES : RING_FEW_BYTES;
	int err = rig_app_open(rig, t->fig->host, RING_ENTRIES, wdata_bytes,
			       RING_DATA_BYTES, &t->app);

	if (err)
		return err;
	return rig_attach(rig->engine[t->index % rig->engine_count], t->app);
}

/*
 * What a request of 64 B costs its caller as measured, beyond the code alone:
 * misses for what another core has just written, and whatever else there is
 * between two requests.
 */
static uint64_t more_ps(const struct fig_thread *t)
{
	const struct fig_config *c = &t->fig->cfg;
	uint64_t code_ps = offload_costs.ring_issue_ps +
			   offload_costs.ring_take_ps +
			   offload_costs.ring_copy_ps_per_byte * CACHE_LINE;
	uint64_t all_ps =
		c->client_ps ? c->client_ps : offload_costs.ring_client_ps;

	return c->is_warm || all_ps < code_ps ? 0 : all_ps - code_ps;
}

static void cow_issue(struct fig_thread *t, uint32_t place)
{
	uint32_t bytes = t->fig->cfg.bytes;
	uint64_t at = t->flight[place].record * bytes;
	uint32_t write_ppm = t->fig->cfg.write_ppm;
	bool is_write = write_ppm && rng_chance_ppm(&t->rng, write_ppm);
	int64_t id;

	fig_settle(t);
	/* What a record has already: readers cannot tell before from after. */
	if (is_write)
		memcpy(fig_buf(t, place), rig_byte(&t->fig->rig, at), bytes);
	id = is_write ? offload_ring_write(&t->app->ring, 0, at,
					   fig_buf(t, place), bytes)
		      : offload_ring_read(&t->app->ring, 0, at,
					  fig_buf(t, place), bytes);
	ASSERT(id > 0); /* the rings hold more than a window */
	t->flight[place].id = id;
	fig_issue_cost(t, offload_costs.ring_issue_ps);
}

/* Each kind completes in the order of its sequences. */
static void cow_look(struct fig_thread *t)
{
	struct offload_ring *r = &t->app->ring;
	uint64_t before = r->done[OFFLOAD_RD] + r->done[OFFLOAD_WR];
	uint32_t bytes = t->fig->cfg.bytes;

	fig_settle(t);
	ASSERT(offload_ring_look(r) == 0);
	fig_comm(t, offload_costs.ring_look_ps);
	if (r->done[OFFLOAD_RD] + r->done[OFFLOAD_WR] == before) {
		/* Who looks for nothing waits. */
		t->wait_ps += offload_costs.ring_look_ps;
		return;
	}
	/* As measured, it is in more_ps. */
	if (t->fig->cfg.is_warm)
		fig_comm(t, offload_costs.dma_news_ps);
	for (uint32_t i = 0; i < t->depth; i++) {
		struct fig_flight *f = &t->flight[i];

		if (!f->issued_ps || !f->id ||
		    offload_ring_result(r, f->id) != 1)
			continue;
		f->id = 0;
		fig_comm(t,
			 offload_costs.ring_take_ps + more_ps(t) +
				 offload_costs.ring_copy_ps_per_byte * bytes);
		fig_complete(t, i, fig_buf(t, i));
	}
}

const struct fig_ops fig_ops[FIG_DEVICES] = {
	[FIG_LOCAL] = {"local", local_open, local_issue, local_look},
	[FIG_COW] = {"cowbird", cow_open, cow_issue, cow_look},
	[FIG_ASYNC] = {"async", fig_verbs_open, fig_async_issue,
		       fig_verbs_look},
	[FIG_SYNC] = {"sync", fig_verbs_open, fig_sync_issue, local_look},
	[FIG_TWO_SIDED] = {"two-sided", fig_ask_open, fig_ask_issue,
			   local_look},
	[FIG_REDY] = {"redy", fig_redy_open, fig_redy_issue, fig_redy_look},
	[FIG_SWITCH] = {"cowbird-switch", cow_open, cow_issue, cow_look},
	[FIG_BLOCKING] = {"blocking", fig_ask_open, fig_ask_issue, local_look},
};

const char *fig_device_name(enum fig_device device)
{
	return fig_ops[device].name;
}
