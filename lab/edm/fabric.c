/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The switch and the links of the EDM fabric: notification to scheduler, grant
 * to host, data through the switch, all at block-exact times.
 *
 * The scheduler's own delay stands before it: a demand enters when its grant
 * could leave. Holds are relative to grants, so this shifts nothing else, and
 * a grant is on its wire the moment it is made.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "fabric_priv.h"

/* ---- chunks -----------------------------------------------------------------
 */

static uint32_t chunk_get(struct fabric *f)
{
	uint32_t i = f->chunk_free;

	if (i != CHUNK_NONE) {
		f->chunk_free = fabric_chunk_at(f, i)->next;
		return i;
	}
	i = f->chunk_used++;
	if (!(i & (CHUNK_SLAB - 1))) {
		uint32_t slab = i >> CHUNK_SLAB_BITS;

		ASSERT(slab < CHUNK_SLABS_MAX);
		f->slab[slab] = malloc(CHUNK_SLAB * sizeof(**f->slab));
		ASSERT(f->slab[slab]);
	}
	return i;
}

static void chunk_put(struct fabric *f, uint32_t i)
{
	fabric_chunk_at(f, i)->next = f->chunk_free;
	f->chunk_free = i;
}

/* ---- grants
 * ------------------------------------------------------------------- */

/* The grant is a block of its own, or the request that the switch has kept. */
static void grant_send(struct fabric *f, uint32_t i)
{
	struct fabric_chunk *k = fabric_chunk_at(f, i);
	struct fabric_plane *p = &f->plane[k->plane];
	const struct edm_msg *m = &f->run->msg[k->msg];
	struct edm_wire *down = &p->down[k->src];
	uint64_t now = fabric_now(f), at;

	if (k->first && m->op != EDM_WRITE) {
		uint32_t blocks = fabric_request_blocks(f, m);

		/* The memory node starts with the first block of it. */
		at = edm_wire_request(down, &f->wire, now, blocks) +
		     f->t.request_ps;
	} else {
		at = edm_wire_control(down, &f->wire, now) +
		     (m->op == EDM_WRITE ? f->t.grant_ps : f->t.request_ps);
	}
	edm_run_push(f->run, at + fabric_link_ps(p, k->src), FABRIC_DATA, 0, i,
		     0);
}

static void on_grant(void *owner, const struct edm_grant *g)
{
	struct fabric_plane *p = owner;
	struct fabric *f = p->f;
	const struct edm_msg *m = &f->run->msg[g->handle];
	uint32_t i = chunk_get(f);

	*fabric_chunk_at(f, i) = (struct fabric_chunk){
		.msg = g->handle,
		.turn = m->turn,
		.bytes = g->bytes,
		.blocks = g->blocks,
		.src = g->src,
		.dst = g->dst,
		.plane = p->index,
		.attempt = m->attempt,
		.first = g->first,
		.last = g->last,
	};
	if (g->issue_ps > fabric_now(f))
		edm_run_push(f->run, g->issue_ps, FABRIC_EMIT, 0, i, 0);
	else
		grant_send(f, i);
}

static void on_wake(void *owner, uint64_t at_ps, uint32_t token)
{
	struct fabric_plane *p = owner;

	edm_run_push(p->f->run, at_ps, FABRIC_WAKE, p->index, token, 0);
}

/* ---- the way of a chunk
 * --------------------------------------------------------- */

/* Anything on the way of this chunk is gone: then so is the chunk. */
static bool chunk_dead(struct fabric *f, const struct fabric_chunk *k)
{
	const struct fabric_plane *p = &f->plane[k->plane];
	const struct edm_msg *m = &f->run->msg[k->msg];

	return p->dead || p->port_dead[k->src] || p->port_dead[k->dst] ||
	       !m->live || m->turn != k->turn ||
	       !(m->planes & 1u << k->plane) || m->attempt != k->attempt;
}

/* Its bytes are not there yet, or those before it wait. */
static bool is_early(const struct edm_msg *m, const struct fabric_chunk *k)
{
	return m->parked != EDM_MSG_NONE ||
	       m->sent_bytes[k->plane] + k->bytes > m->ready_bytes;
}

static void chunk_park(struct fabric *f, struct edm_msg *m, uint32_t i)
{
	fabric_chunk_at(f, i)->next = CHUNK_NONE;
	if (m->parked == EDM_MSG_NONE)
		m->parked = i;
	else
		fabric_chunk_at(f, m->parked_last)->next = i;
	m->parked_last = i;
}

static void on_data(struct fabric *f, uint32_t i)
{
	struct fabric_chunk *k = fabric_chunk_at(f, i);
	struct fabric_plane *p = &f->plane[k->plane];
	struct edm_msg *m = &f->run->msg[k->msg];
	uint64_t start;

	if (chunk_dead(f, k) || fabric_lost(f) || fabric_node_dead(f, k->src)) {
		chunk_put(f, i);
		return;
	}
	/* A grant that repeats one, after a notification was sent again. */
	if (m->sent_bytes[k->plane] + k->bytes > m->bytes &&
	    m->batch == EDM_MSG_NONE) {
		chunk_put(f, i);
		return;
	}
	if (m->deferred && !m->asked)
		edm_run_push(f->run, fabric_now(f) + m->patience_ps,
			     FABRIC_ABANDON, 0, k->msg, m->turn);
	if (m->op != EDM_WRITE)
		edm_run_request(f->run, k->msg);
	if (m->deferred && is_early(m, k)) {
		chunk_park(f, m, i);
		return;
	}
	k->offset = m->sent_bytes[k->plane];
	m->sent_bytes[k->plane] += k->bytes;
	start = edm_wire_data(&p->up[k->src], &f->wire, fabric_now(f),
			      k->blocks, &k->up_end_ps);
	edm_run_push(f->run,
		     start + fabric_link_ps(p, k->src) + f->t.forward_ps,
		     FABRIC_HEAD, 0, i, 0);
	if (m->sent_bytes[k->plane] >= m->bytes)
		edm_run_sent(f->run, k->msg);
	if (m->op == EDM_WRITE && k->last)
		fabric_host_freed(p, m->src, m->dst);
}

static void on_head(struct fabric *f, uint32_t i)
{
	struct fabric_chunk *k = fabric_chunk_at(f, i);
	struct fabric_plane *p = &f->plane[k->plane];
	uint64_t now = fabric_now(f), start;

	if (chunk_dead(f, k)) {
		chunk_put(f, i);
		return;
	}
	start = edm_wire_data(&p->down[k->dst], &f->wire, now, k->blocks,
			      &k->down_end_ps);
	f->egress_max_ps = u64_max(f->egress_max_ps, start - now);
	edm_run_push(f->run,
		     start + (k->blocks - 1) * f->t.block_ps +
			     fabric_link_ps(p, k->dst) + f->t.receive_ps,
		     FABRIC_LAST, 0, i, 0);
}

static void msg_complete(struct fabric_plane *p, uint32_t msg)
{
	struct fabric *f = p->f;

	/* Everything under one notification arrives together. */
	while (msg != EDM_MSG_NONE) {
		struct edm_msg *m = &f->run->msg[msg];
		uint32_t next = m->batch;

		if (m->op != EDM_WRITE)
			fabric_host_freed(p, m->src, m->dst);
		if (!m->done) {
			edm_run_done(f->run, msg, false);
			if (f->first_copy_ps && msg < f->first_copy_size)
				f->first_copy_ps[msg] = fabric_now(f);
		} else {
			f->duplicates++;
			if (f->first_copy_ps && msg < f->first_copy_size)
				f->copy_gap_ns +=
					(double)(fabric_now(f) -
						 f->first_copy_ps[msg]) /
					1000;
		}
		fabric_leave(p, msg);
		msg = next;
	}
}

static void on_last(struct fabric *f, uint32_t i)
{
	struct fabric_chunk *k = fabric_chunk_at(f, i);
	struct fabric_plane *p = &f->plane[k->plane];
	struct edm_msg *m = &f->run->msg[k->msg];
	uint64_t tail, up_tail, expected;

	if (chunk_dead(f, k) || fabric_node_dead(f, k->dst)) {
		chunk_put(f, i);
		return;
	}
	/* Control blocks that slipped in have moved the end. */
	tail = k->down_end_ps - f->t.block_ps + fabric_link_ps(p, k->dst) +
	       f->t.receive_ps;
	up_tail = k->up_end_ps - f->t.block_ps + fabric_link_ps(p, k->src) +
		  f->t.forward_ps + fabric_link_ps(p, k->dst) + f->t.receive_ps;
	tail = u64_max(tail, up_tail);
	if (tail > fabric_now(f)) {
		edm_run_push(f->run, tail, FABRIC_LAST, 0, i, 0);
		return;
	}
	expected = m->batch == EDM_MSG_NONE ? m->bytes : k->bytes;
	if (!m->done && m->batch == EDM_MSG_NONE)
		edm_run_bytes(f->run, k->msg, k->offset + k->bytes);
	m->got_bytes[k->plane] += k->bytes;
	if (m->got_bytes[k->plane] >= expected)
		msg_complete(p, k->msg);
	chunk_put(f, i);
}

/* ---- deferred reads ------------------------------------------------------ */

/* A grant that came before its data is used now: late, so the chunk may meet
 * another one at the egress port, where it waits its turn. */
static void on_ready(struct fabric *f, uint32_t msg, uint16_t turn,
		     uint32_t bytes)
{
	struct edm_msg *m = &f->run->msg[msg];
	uint32_t i = m->parked;

	if (!m->live || (uint16_t)m->turn != turn)
		return;
	m->ready_bytes = u32_max(m->ready_bytes, bytes);
	m->parked = EDM_MSG_NONE;
	while (i != EDM_MSG_NONE) {
		uint32_t next = fabric_chunk_at(f, i)->next;

		on_data(f, i);
		i = next;
	}
}

/* Whether more of its answer has come since it was looked at last. */
static void on_abandon(struct fabric *f, uint32_t msg, uint32_t turn)
{
	struct edm_msg *m = &f->run->msg[msg];

	if (!m->live || m->turn != turn || m->ready_bytes >= m->bytes)
		return;
	if (m->ready_bytes > m->seen_bytes) {
		m->seen_bytes = m->ready_bytes;
		edm_run_push(f->run, fabric_now(f) + m->patience_ps,
			     FABRIC_ABANDON, 0, msg, turn);
		return;
	}
	while (m->parked != EDM_MSG_NONE) {
		uint32_t i = m->parked;

		m->parked = fabric_chunk_at(f, i)->next;
		chunk_put(f, i);
	}
	for (unsigned i = 0; i < f->planes; i++) {
		struct fabric_plane *p = &f->plane[i];

		if (!(m->planes & 1u << i))
			continue;
		fabric_withdraw(p, msg);
		fabric_host_freed(p, m->src, m->dst);
		fabric_leave(p, msg);
	}
}

static void fabric_ready(void *proto, uint64_t at_ps, uint32_t msg,
			 uint32_t bytes)
{
	struct fabric *f = proto;

	edm_run_push(f->run, at_ps, FABRIC_READY, f->run->msg[msg].turn, msg,
		     bytes);
}

static void on_event(void *proto, const struct edm_event *e)
{
	struct fabric *f = proto;

	switch ((enum fabric_event)(e->kind - EDM_EV_PROTO)) {
	case FABRIC_NOTIFY:
		fabric_notify(&f->plane[e->port], e->a, e->b);
		return;
	case FABRIC_WAKE:
		if (!f->plane[e->port].dead)
			edm_sched_wake(f->plane[e->port].sched, e->at_ps, e->a);
		return;
	case FABRIC_EMIT:
		if (chunk_dead(f, fabric_chunk_at(f, e->a)))
			chunk_put(f, e->a);
		else
			grant_send(f, e->a);
		return;
	case FABRIC_DATA:
		on_data(f, e->a);
		return;
	case FABRIC_HEAD:
		on_head(f, e->a);
		return;
	case FABRIC_LAST:
		on_last(f, e->a);
		return;
	case FABRIC_TIMER:
		fabric_timer(&f->plane[e->port], e->a, e->b);
		return;
	case FABRIC_READY:
		on_ready(f, e->a, e->port, e->b);
		return;
	case FABRIC_ABANDON:
		on_abandon(f, e->a, e->b);
		return;
	case FABRIC_FAIL_SWITCH:
		fabric_fail_switch(f);
		return;
	case FABRIC_FAIL_LINK:
		fabric_fail_link(f);
		return;
	}
}

/* ---- life
 * ----------------------------------------------------------------------- */

static void fabric_destroy(void *proto)
{
	struct fabric *f = proto;

	for (unsigned i = 0; i < f->planes; i++) {
		struct fabric_plane *p = &f->plane[i];

		edm_sched_destroy(p->sched);
		free(p->up);
		free(p->down);
		free(p->skew_ps);
		free(p->port_dead);
		free(p->active);
		free(p->wait);
	}
	for (uint32_t i = 0; i < CHUNK_SLABS_MAX && f->slab[i]; i++)
		free(f->slab[i]);
	free(f->first_copy_ps);
	free(f);
}

static int plane_init(struct fabric *f, unsigned index)
{
	struct fabric_plane *p = &f->plane[index];
	const struct edm_config *c = &f->run->c;
	struct edm_sched_config sc;
	size_t n = f->nodes;

	p->f = f;
	p->index = (uint8_t)index;
	p->up = calloc(n, sizeof(*p->up));
	p->down = calloc(n, sizeof(*p->down));
	p->skew_ps = calloc(n, sizeof(*p->skew_ps));
	p->port_dead = calloc(n, sizeof(*p->port_dead));
	p->active = calloc(n * n, sizeof(*p->active));
	p->wait = malloc(n * n * sizeof(*p->wait));
	if (!p->up || !p->down || !p->skew_ps || !p->port_dead || !p->active ||
	    !p->wait)
		return -ENOMEM;
	for (size_t i = 0; i < n * n; i++)
		p->wait[i] = (struct fabric_wait){EDM_MSG_NONE, EDM_MSG_NONE};
	if (index && c->mirror_skew_ps)
		for (size_t i = 0; i < n; i++)
			p->skew_ps[i] = rng_below(&f->rng, c->mirror_skew_ps);
	edm_config_sched(c, &sc);
	sc.grant = on_grant;
	sc.wake = on_wake;
	sc.owner = p;
	return edm_sched_create(&sc, &p->sched);
}

static int fabric_create(struct edm_run *run, void **out)
{
	struct fabric *f = calloc(1, sizeof(*f));
	const struct edm_config *c = &run->c;
	int rc = 0;

	if (!f)
		return -ENOMEM;
	f->run = run;
	f->nodes = c->nodes;
	f->chunk_free = CHUNK_NONE;
	f->planes = c->mirror ? EDM_PLANES : 1;
	rng_init_stream(&f->rng, c->seed, 2);
	edm_timing_init(&f->t, c);
	if (c->discipline == EDM_PIM || c->timed)
		f->t.match_ps = 0; /* the scheduler takes its time itself */
	f->wire = (struct edm_wire_env){.block_ps = f->t.block_ps,
					.ip_load_ppm = c->ip_load_ppm,
					.ip_policy = c->ip_policy,
					.nest = c->nest,
					.rng = &f->rng};
	for (unsigned i = 0; i < f->planes && !rc; i++)
		rc = plane_init(f, i);
	if (!rc && c->mirror) {
		f->first_copy_size = 1u << 20;
		f->first_copy_ps =
			calloc(f->first_copy_size, sizeof(*f->first_copy_ps));
		rc = f->first_copy_ps ? 0 : -ENOMEM;
	}
	if (rc) {
		fabric_destroy(f);
		return rc;
	}
	if (c->fail_switch_ps)
		edm_run_push(run, c->fail_switch_ps, FABRIC_FAIL_SWITCH, 0, 0,
			     0);
	if (c->fail_link_ps)
		edm_run_push(run, c->fail_link_ps, FABRIC_FAIL_LINK, 0, 0, 0);
	*out = f;
	return 0;
}

static void on_submit(void *proto, uint32_t msg)
{
	fabric_submit(proto, msg);
}

/* The part of all links that frames took. */
static double frames_share(struct fabric *f)
{
	double now_ps = (double)fabric_now(f), sum_ps = 0;

	for (unsigned i = 0; i < f->planes; i++)
		for (uint32_t n = 0; n < f->nodes; n++)
			sum_ps += (double)(edm_wire_frames_ps(
						   &f->plane[i].up[n], &f->wire,
						   fabric_now(f)) +
					   edm_wire_frames_ps(
						   &f->plane[i].down[n],
						   &f->wire, fabric_now(f)));
	return now_ps > 0 ? sum_ps / now_ps / (2.0 * f->nodes * f->planes) : 0;
}

static void fabric_report(void *proto, struct edm_result *r)
{
	struct fabric *f = proto;
	struct edm_sched_stats s;

	r->ip_share = frames_share(f);

	for (unsigned i = 0; i < f->planes; i++) {
		edm_sched_stats(f->plane[i].sched, &s);
		r->grants += s.grants;
	}
	r->egress_blocks_max =
		(f->egress_max_ps + f->t.block_ps - 1) / f->t.block_ps;
	r->drops = f->drops;
	r->timeouts = f->timeouts;
	r->duplicates = f->duplicates;
	r->copy_gap_ns =
		f->duplicates ? f->copy_gap_ns / (double)f->duplicates : 0;
}

static uint64_t lead_ps(const struct edm_config *c)
{
	struct edm_timing t;

	edm_timing_init(&t, c);
	return t.make_ps;
}

const struct edm_proto_ops edm_proto_edm = {
	.create = fabric_create,
	.destroy = fabric_destroy,
	.submit = on_submit,
	.event = on_event,
	.report = fabric_report,
	.ready = fabric_ready,
	.lead_ps = lead_ps,
};
