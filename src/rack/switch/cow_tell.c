/* SPDX-License-Identifier: Apache-2.0 */
/* Telling the application: the status of what failed, then the red block, whose
 * last word announces all that was sent before it. */
#include "base/plant.h"
#include "cow.h"

uint32_t cow_red_skip(const struct cow_session *s)
{
	return (OFFLOAD_NODES_MAX - s->node_count) *
	       (uint32_t)sizeof(struct offload_progress);
}

/* Sent again it says the same of requests: data of later ones is behind it. Of
 * what nodes have done it may say more. */
void cow_red_build(struct cow_session *s, uint32_t which,
		   struct offload_red *out)
{
	const struct cow_red *r = &s->red[which % COW_REDS];

	for (unsigned i = 0; i < s->node_count; i++) {
		const struct cow_node *n = &s->node[i];
		struct offload_progress *p =
			&out->node[OFFLOAD_NODES_MAX - 1 - i];

		*p = n->base;
		/* Until those of whom nobody knows are told. */
		if (n->err || n->past.unknown_seq > r->done[OFFLOAD_WR])
			continue;
		p->seq = (uint32_t)n->seq;
		p->skip = (uint32_t)n->ahead;
		p->psn = n->end[OFFLOAD_WR]->tx.una_psn |
			 (n->base.psn >> 24 << 24);
	}
	out->head = r->head;
	out->head_reads = r->head_reads;
	out->done.reads = (uint32_t)r->done[OFFLOAD_RD];
	out->done.writes = (uint32_t)r->done[OFFLOAD_WR];
	if (PLANTED(red_now)) {
		out->done.reads = (uint32_t)s->published[OFFLOAD_RD];
		out->done.writes = (uint32_t)s->published[OFFLOAD_WR];
	}
}

static void send_red(struct cow_session *s)
{
	struct cow_red *r = &s->red[s->red_sent % COW_REDS];
	struct cow_out *o = cow_out_next(s->ring, COW_RED);

	*r = (struct cow_red){
		.head = s->head,
		.head_reads = s->head_reads,
		.done = {s->published[OFFLOAD_RD], s->published[OFFLOAD_WR]}};
	o->which = s->red_sent++;
	cow_out_send(s->ring, WIRE_RC_WRITE_ONLY,
		     (uint32_t)sizeof(struct offload_red) - cow_red_skip(s));
}

void cow_publish_base(struct cow_session *s)
{
	send_red(s);
}

void cow_red_told(struct cow_session *s, uint32_t which)
{
	const struct cow_red *r = &s->red[which % COW_REDS];

	s->red_done = which + 1;
	while (s->told_reads < r->done[OFFLOAD_RD]) {
		uint32_t slot = s->order[OFFLOAD_RD][++s->told_reads & s->mask];

		cow_request_pass(s, &s->request[slot]);
	}
	s->told_head = r->head;
	if (s->state == COW_BASE)
		s->state = COW_RUN;
}

/* How far this kind can be told with the room there is. */
static void tell_kind(struct cow_session *s, unsigned kind)
{
	while (s->published[kind] < s->ready[kind]) {
		uint64_t seq = s->published[kind] + 1;
		uint32_t slot = s->order[kind][seq & s->mask];
		const struct cow_request *r = &s->request[slot];
		struct cow_out *o;

		if (r->err) {
			if (!cow_end_has_room(s->ring, false))
				return;
			o = cow_out_next(s->ring, COW_STATUS);
			o->pos = r->pos;
			cow_out_send(s->ring, WIRE_RC_WRITE_ONLY, 1);
		}
		s->published[kind] = seq;
	}
}

static void move_head(struct cow_session *s)
{
	while (s->head < s->next) {
		const struct cow_request *r = cow_slot(s, s->head);

		if (r->state != COW_READY || r->seq > s->published[r->kind])
			break;
		s->head_reads += r->kind == OFFLOAD_RD;
		s->head++;
	}
}

uint64_t cow_flush_ns(const struct cow_session *s)
{
	return s->ready_ns ? s->ready_ns + s->flush_ns : UINT64_MAX;
}

static uint64_t untold(const struct cow_session *s)
{
	return s->ready[OFFLOAD_RD] - s->published[OFFLOAD_RD] +
	       s->ready[OFFLOAD_WR] - s->published[OFFLOAD_WR];
}

static bool is_due(const struct cow_session *s)
{
	uint64_t count = untold(s);

	if (count == 0)
		return false;
	/* Nobody waits for company that is not on its way. */
	return count >= s->batch ||
	       (s->active == 0 && (s->next == s->fetched || s->is_held)) ||
	       cow_now_ns(s) >= cow_flush_ns(s);
}

void cow_publish(struct cow_session *s)
{
	/* One place is the red block's. */
	if (!is_due(s) || s->red_sent - s->red_done == COW_REDS ||
	    !cow_end_has_room(s->ring, false))
		return;
	s->ring->promised++;
	tell_kind(s, OFFLOAD_RD);
	tell_kind(s, OFFLOAD_WR);
	s->ring->promised--;
	move_head(s);
	s->ready_ns = untold(s) ? cow_now_ns(s) : 0;
	cow_count(s->cow, COW_C_publications, 1);
	send_red(s);
	/* The application has something to do now, and we to look for. */
	s->probe_gap_ns = s->cow->opt.probe_ns;
	s->probe_ns = u64_min(s->probe_ns, cow_now_ns(s) + s->probe_gap_ns);
}
