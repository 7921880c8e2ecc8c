/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: completions in, then every session has its turn. Turns go round,
 * and each has as many bytes as any other (deficit round robin), so one session
 * with large requests does not hold up those with small ones. */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "engine_priv.h"

/* What is the same in every request of a list. */
static void make_chain(struct wr_list *c, enum ibv_wr_opcode opcode)
{
	for (unsigned i = 0; i < OFFLOAD_POST_MAX; i++)
		c->wr[i] = (struct ibv_send_wr){.next = &c->wr[i] + 1,
						.sg_list = &c->sge[i],
						.num_sge = 1,
						.opcode = opcode};
}

int offload_engine_create(const struct offload_engine_config *config,
			  struct offload_engine **out)
{
	struct offload_engine *e = calloc(1, sizeof(*e));
	struct offload_engine_config *c;

	if (!e)
		return error_set(-ENOMEM, "no memory for an engine");
	c = &e->config;
	*c = *config;
	if (c->sessions_max == 0 || c->sessions_max > OFFLOAD_SESSIONS_MAX)
		c->sessions_max = OFFLOAD_SESSIONS_MAX;
	if (c->batch == 0)
		c->batch = OFFLOAD_BATCH;
	if (c->flush_ns == 0)
		c->flush_ns = OFFLOAD_FLUSH_NS;
	if (c->probe_min_ns == 0)
		c->probe_min_ns = OFFLOAD_PROBE_MIN_NS;
	if (c->probe_max_ns == 0)
		c->probe_max_ns = OFFLOAD_PROBE_MAX_NS;
	c->probe_max_ns = u64_max(c->probe_max_ns, c->probe_min_ns);
	e->counters = c->counters ? c->counters : e->own_counters;
	e->now_ns = client_clock_now_ns(c->clock);
	for (unsigned i = 0; i < OFFLOAD_NODES_MAX; i++) {
		make_chain(&e->node_wrs[i][OFFLOAD_RD], IBV_WR_RDMA_READ);
		make_chain(&e->node_wrs[i][OFFLOAD_WR], IBV_WR_RDMA_WRITE);
	}
	*out = e;
	return 0;
}

void offload_engine_destroy(struct offload_engine *e)
{
	if (!e)
		return;
	ASSERT(e->session_count == 0);
	free(e);
}

static void fail(struct offload_session *s, enum wr_kind kind)
{
	offload_session_break(s, kind == WR_READ || kind == WR_WRITE ||
						 kind == WR_GATHER
					 ? -EHOSTDOWN
					 : -ECONNRESET);
}

static void complete(struct offload_engine *e, const struct ibv_wc *wc)
{
	enum wr_kind kind = (enum wr_kind)(wc->wr_id >> 60);
	unsigned node = wc->wr_id >> 56 & 0xf;
	uint32_t index = wc->wr_id >> 44 & 0xfff;
	uint32_t count = (uint32_t)wc->wr_id;
	struct offload_session *s =
		index < OFFLOAD_SESSIONS_MAX ? e->session[index] : NULL;

	/* Completions may outlive their session. */
	if (!s || (s->generation & 0xfff) != (wc->wr_id >> 32 & 0xfff) ||
	    s->err)
		return;
	if (wc->status != IBV_WC_SUCCESS)
		fail(s, kind);
	else if (kind == WR_READ || kind == WR_WRITE)
		offload_session_part_done(
			s, node, kind == WR_READ ? OFFLOAD_RD : OFFLOAD_WR,
			count);
	else if (kind == WR_GATHER)
		offload_gather_done(s, node, count);
	else
		offload_session_ring_done(s, kind, count);
}

static unsigned take_completions(struct offload_engine *e)
{
	struct ibv_wc wc[OFFLOAD_CQE_MAX];
	int n = ibv_poll_cq(e->config.cq, OFFLOAD_CQE_MAX, wc);

	for (int i = 0; i < n; i++)
		complete(e, &wc[i]);
	return n > 0 ? (unsigned)n : 0;
}

static unsigned run(struct offload_session *s)
{
	unsigned work;

	if (s->err || s->state != SESSION_RUN)
		return 0;
	work = offload_session_dispatch(s);
	if (!s->err)
		work += offload_session_publish(s);
	if (!s->err)
		work += offload_session_probe(s);
	return work;
}

unsigned offload_engine_step(struct offload_engine *e)
{
	unsigned work;

	e->now_ns = client_clock_now_ns(e->config.clock);
	work = take_completions(e);
	if (e->session_count)
		e->turn = (e->turn + 1) % e->session_count;
	for (uint32_t i = 0; i < e->session_count; i++) {
		struct offload_session *s =
			e->session[(e->turn + i) % e->session_count];

		if (s)
			work += run(s);
	}
	return work;
}

uint64_t offload_engine_next_ns(const struct offload_engine *e)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < e->session_count; i++) {
		const struct offload_session *s = e->session[i];

		if (!s || s->err)
			continue;
		if (s->state == SESSION_RUN && s->is_asking && !s->active &&
		    s->next == s->fetched &&
		    s->probe_gap_ns >= OFFLOAD_PROBE_IDLE_NS) {
			/* Nobody is in a hurry for the answer. */
			next = u64_min(next, e->now_ns + OFFLOAD_PROBE_IDLE_NS);
			continue;
		}
		if (s->is_asking || s->state != SESSION_RUN || s->active ||
		    s->ring_posted != s->ring_done || s->next < s->fetched)
			return 0;
		next = u64_min(next, u64_min(s->probe_ns,
					     offload_session_flush_ns(s)));
	}
	return next;
}
