/* SPDX-License-Identifier: Apache-2.0 */
/* A session's life: the first look at the rings, what a predecessor left, then
 * probes and fetches. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cow.h"

enum {
	AHEAD = 3, /* of idle sessions, whose lines are fetched meanwhile */
};

/* ---- asking ---------------------------------------------------------------
 */

/* READs requests from `from` on, as many as one packet holds and the ring has
 * in one piece; returns behind the last. */
static uint64_t fetch(struct cow_session *s, enum cow_what what, uint64_t from,
		      uint64_t to)
{
	const uint32_t size = sizeof(struct offload_meta);
	uint64_t count = u64_min(to - from, s->cow->opt.fetch);
	struct cow_out *o = cow_out_next(s->ring, what);

	count = u64_min(count, s->mtu / size);
	count = u64_min(count, s->map.entries - (from & s->map.mask));
	o->pos = from;
	cow_count(s->cow, COW_C_fetches, 1);
	cow_out_send(s->ring, WIRE_RC_READ_REQ, (uint32_t)count * size);
	return from + count;
}

static void fetch_more(struct cow_session *s)
{
	uint64_t end = s->state == COW_RESUME
			       ? s->resume.tail
			       : u64_min(s->tail, s->told_head + s->mask + 1);

	while (s->fetching < end && cow_end_has_room(s->ring, true))
		s->fetching =
			fetch(s, s->state == COW_RESUME ? COW_SHOWN : COW_METAS,
			      s->fetching, end);
}

static void probe(struct cow_session *s)
{
	/* Who has not begun what is known need not know more. */
	if (s->is_asking || s->next < s->tail || cow_now_ns(s) < s->probe_ns ||
	    !cow_end_has_room(s->ring, true))
		return;
	(void)cow_out_next(s->ring, COW_GREEN);
	s->is_asking = true;
	cow_count(s->cow, COW_C_probes, 1);
	cow_out_send(s->ring, WIRE_RC_READ_REQ, sizeof(struct offload_green));
}

void cow_green_came(struct cow_session *s, const uint8_t *payload)
{
	struct offload_green green;
	uint64_t tail;

	memcpy(&green, payload, sizeof(green));
	s->is_asking = false;
	tail = offload_extend(s->tail, green.tail);
	if (tail - s->head > s->map.entries) {
		cow_session_break(s, -EBADMSG);
		return;
	}
	s->probe_ns = cow_now_ns(s) + s->probe_gap_ns;
	/* Idle sessions are looked at one behind the other: the switch and the
	 * applications' NICs wake up once for all of them. */
	if (s->probe_gap_ns == COW_PROBE_MAX_NS) {
		s->probe_ns -= s->probe_ns % COW_PROBE_MAX_NS;
		end_tx_rest(&s->ring->tx);
	}
	if (tail == s->tail) {
		/* The longer that lasts, the more rarely we ask. */
		cow_count(s->cow, COW_C_probes_empty, 1);
		if (!s->active)
			s->probe_gap_ns =
				u64_min(2 * s->probe_gap_ns, COW_PROBE_MAX_NS);
		return;
	}
	s->probe_gap_ns = s->cow->opt.probe_ns;
	s->tail = tail;
}

/* ---- the beginning --------------------------------------------------------
 */

void cow_session_start(struct cow_session *s)
{
	(void)cow_out_next(s->ring, COW_PREAMBLE);
	s->state = COW_START;
	cow_out_send(s->ring, WIRE_RC_READ_REQ,
		     sizeof(struct offload_preamble));
}

/* All that a predecessor may have met was shown. */
static void begin(struct cow_session *s)
{
	for (unsigned i = 0; i < s->node_count; i++) {
		struct cow_node *n = &s->node[i];
		struct offload_begin b = {
			.is_gone = n->err, .mtu = s->mtu, .epoch = s->epoch};

		if (!n->err)
			b.psn = n->end[OFFLOAD_WR]->tx.next_psn;
		n->base = offload_resume_end(&s->resume, i, &b);
		n->past = s->resume.node[i];
		n->seq = n->past.base_seq;
		n->ahead = n->past.budget;
	}
	s->fetching = s->head;
	s->state = COW_BASE;
	cow_publish_base(s);
}

void cow_preamble_came(struct cow_session *s, const uint8_t *payload)
{
	struct offload_preamble p;
	struct offload_resume *r = &s->resume;
	struct offload_final final[OFFLOAD_NODES_MAX];
	int err;

	memcpy(&p, payload, sizeof(p));
	for (unsigned i = 0; i < s->node_count; i++) {
		final[i] = s->node[i].final;
		final[i].is_known &= !s->node[i].err;
	}
	err = offload_preamble_check(&p, s->ring_bytes, &s->map);
	if (!err)
		err = offload_resume_begin(r, &p, &s->map, final,
					   s->node_count);
	if (err) {
		cow_session_break(s, err);
		return;
	}
	s->head = s->next = s->fetched = s->fetching = s->told_head = r->head;
	s->tail = r->tail;
	s->head_reads = r->head_reads;
	s->seen[OFFLOAD_RD] = r->head_reads;
	s->seen[OFFLOAD_WR] = r->head - r->head_reads;
	memcpy(s->ready, r->done, sizeof(s->ready));
	memcpy(s->published, r->done, sizeof(s->published));
	s->told_reads = r->done[OFFLOAD_RD];
	s->state = COW_RESUME;
	if (s->fetching == r->tail)
		begin(s);
}

void cow_metas_came(struct cow_session *s, const struct cow_out *o,
		    const uint8_t *payload)
{
	uint32_t count = o->len_bytes / (uint32_t)sizeof(struct offload_meta);

	for (uint32_t i = 0; i < count; i++) {
		struct offload_meta m;

		memcpy(&m, payload + i * sizeof(m), sizeof(m));
		if (o->what == COW_SHOWN) {
			offload_resume_show(&s->resume, &m, &s->map, s->region,
					    s->region_count);
		} else if (cow_request_take(s, o->pos + i, &m)) {
			s->fetched++;
		} else {
			cow_session_break(s, -EBADMSG);
			return;
		}
	}
	if (o->what == COW_SHOWN && o->pos + count == s->resume.tail)
		begin(s);
}

/* ---- turns ----------------------------------------------------------------
 */

static void idle(struct cow_session *s)
{
	struct cow *c = s->cow;

	s->is_idling = true;
	c->idle[c->idle_count++] = (uint16_t)(s - c->sessions);
	if (!timer_is_set(&c->idle_timer) ||
	    c->idle_timer.deadline_ns > s->probe_ns)
		timer_set(tor_timers(c->tor), &c->idle_timer, s->probe_ns);
}

void cow_idle_run(struct timer *timer, uint64_t now_ns)
{
	struct cow *c = container_of(timer, struct cow, idle_timer);
	uint32_t count = c->idle_count;

	/* Each may idle again at once: its place is free by then. */
	c->idle_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct cow_session *s = &c->sessions[c->idle[i]];

		if (i + 2 * AHEAD < count)
			cow_session_prefetch(
				&c->sessions[c->idle[i + 2 * AHEAD]]);
		if (i + AHEAD < count)
			cow_end_prefetch(c->sessions[c->idle[i + AHEAD]].ring);
		s->is_idling = false;
		cow_session_run(s);
	}
}

static void forget_idle(struct cow_session *s)
{
	struct cow *c = s->cow;
	uint32_t i = 0;

	if (!s->is_idling)
		return;
	while (c->sessions + c->idle[i] != s)
		i++;
	c->idle[i] = c->idle[--c->idle_count];
	s->is_idling = false;
}

static void set_timer(struct cow_session *s)
{
	struct timer_wheel *wheel = tor_timers(s->cow->tor);
	uint64_t flush_ns = cow_flush_ns(s), at_ns = flush_ns;
	bool is_idle = false;

	if (!s->is_asking && s->next == s->tail) {
		at_ns = u64_min(flush_ns, s->probe_ns);
		is_idle = s->probe_gap_ns == COW_PROBE_MAX_NS &&
			  s->probe_ns % COW_PROBE_MAX_NS == 0 &&
			  s->probe_ns > cow_now_ns(s);
	}
	if (s->state == COW_RUN && is_idle && !s->is_idling)
		idle(s);
	if (is_idle && s->is_idling)
		at_ns = flush_ns;
	if (s->state != COW_RUN || at_ns == UINT64_MAX)
		timer_cancel(wheel, &s->timer);
	else if (!timer_is_set(&s->timer) || s->timer.deadline_ns != at_ns)
		timer_set(wheel, &s->timer, at_ns);
}

void cow_session_prefetch(const struct cow_session *s)
{
	const uint8_t *at = (const uint8_t *)s;

	for (size_t i = 0; i < offsetof(struct cow_session, batch);
	     i += CACHE_LINE)
		PREFETCH_RW(at + i);
}

void cow_session_run(struct cow_session *s)
{
	if (s->state == COW_TOLD || s->state == COW_BROKEN)
		return;
	end_tx_go_on(&s->ring->tx);
	/* Otherwise none of them has anything under way. */
	for (unsigned i = 0; s->active && i < s->node_count; i++)
		if (!s->node[i].err)
			end_tx_go_on(&s->node[i].end[OFFLOAD_WR]->tx);
	if (s->state == COW_RESUME)
		fetch_more(s);
	if (s->state == COW_RUN) {
		fetch_more(s);
		cow_dispatch(s);
		cow_publish(s);
		probe(s);
	}
	set_timer(s);
}

void cow_session_run_soon(struct cow_session *s)
{
	struct cow *c = s->cow;

	if (s->is_due)
		return;
	if (c->due_count == c->opt.sessions) {
		cow_session_run(s);
		return;
	}
	s->is_due = true;
	c->due[c->due_count++] = (uint16_t)(s - c->sessions);
}

static void on_time(struct timer *timer, uint64_t now_ns)
{
	cow_session_run(container_of(timer, struct cow_session, timer));
}

void cow_session_break(struct cow_session *s, int err)
{
	if (s->state == COW_BROKEN)
		return;
	s->err = err;
	s->cow->changes++;
	log_info("cowbird", "session %u breaks: %s", s->id, strerror(-err));
	cow_count(s->cow, COW_C_broken, 1);
	timer_cancel(tor_timers(s->cow->tor), &s->timer);
	/* The rest of it stops; this one word is still said. */
	for (unsigned i = 0; i < s->node_count; i++)
		for (unsigned k = 0; k < OFFLOAD_KINDS; k++)
			if (s->node[i].end[k])
				cow_end_stop(s->node[i].end[k]);
	if (s->ring->tx.dead || end_tx_is_full(&s->ring->tx)) {
		s->state = COW_BROKEN;
		return;
	}
	(void)cow_out_next(s->ring, COW_STATE);
	cow_out_send(s->ring, WIRE_RC_WRITE_ONLY, sizeof(struct offload_state));
	s->state = COW_BROKEN;
}

/* ---- memory ---------------------------------------------------------------
 */

void cow_session_release(struct cow_session *s)
{
	struct cow *c = s->cow;

	timer_cancel(tor_timers(c->tor), &s->timer);
	forget_idle(s);
	c->changes++;
	if (s->used)
		cow_end_stop(s->ring);
	free(s->ring);
	for (unsigned i = 0; i < s->node_count; i++)
		for (unsigned k = 0; k < OFFLOAD_KINDS; k++) {
			if (s->node[i].end[k])
				cow_end_stop(s->node[i].end[k]);
			free(s->node[i].end[k]);
		}
	free(s->request);
	free(s->order[OFFLOAD_RD]);
	free(s->order[OFFLOAD_WR]);
	free(s->region);
	free(s->filter);
	*s = (struct cow_session){.cow = c};
}

int cow_session_init(struct cow_session *s)
{
	uint32_t requests = u32_pow2_ceil(s->cow->opt.requests);

	timer_init(&s->timer, on_time);
	s->mask = requests - 1;
	s->probe_gap_ns = s->cow->opt.probe_ns;
	s->batch = s->cow->opt.batch;
	s->flush_ns = s->cow->opt.flush_ns;
	s->request = calloc(requests, sizeof(*s->request));
	s->order[OFFLOAD_RD] = calloc(requests, sizeof(**s->order));
	s->order[OFFLOAD_WR] = calloc(requests, sizeof(**s->order));
	s->region = calloc(COW_REGIONS, sizeof(*s->region));
	s->ring = calloc(1, sizeof(*s->ring));
	if (s->cow->opt.filter) {
		s->filter = malloc(sizeof(*s->filter));
		if (!s->filter)
			return -ENOMEM;
		offload_filter_init(s->filter, FILTER_REGISTER_SHIFT);
	}
	return s->request && s->order[OFFLOAD_RD] && s->order[OFFLOAD_WR] &&
			       s->region && s->ring
		       ? 0
		       : -ENOMEM;
}
