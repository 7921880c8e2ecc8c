/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Going on where a predecessor stopped. Reads are simply done again. A write
 * must not be: somebody else may have overwritten it meanwhile. So for each
 * memory node it is found out, to the packet, what was executed there:
 *
 *   what the predecessor said     writes up to `seq` are done, and the next
 *   (offload_progress, in the     one goes on at packet number `psn`, after
 *   application's rings)          `skip` packets of it
 *   what the node says            the packet number it expected next when it
 *                                 ended the predecessor's queue pair
 *
 * The queue pair carried nothing but this session's writes in order, so the
 * difference of the packet numbers, walked along the requests in the ring, ends
 * exactly where the node stopped.
 *
 * Where one of the two is missing, the writes in question fail: they may have
 * been done, and doing them now may be wrong.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "engine_priv.h"

enum {
	PSN_MASK = 0xffffff,
	MTU_SHIFT_MIN = 8,
	MTU_SHIFT_MAX = 12,
	/* In offload_progress.skip: of the writes up to seq, nobody knows. */
	SKIP_UNKNOWN = -1,
	/* In offload_progress.psn: there was no queue pair. */
	PSN_NONE = -1,
};

static struct offload_progress *red_node(struct offload_red *red, unsigned i)
{
	return &red->node[OFFLOAD_NODES_MAX - 1 - i];
}

int offload_resume_read(struct offload_session *s)
{
	struct offload_preamble *p = (void *)s->mirror;
	uint64_t head_writes, tail;
	struct offload_red *red = &p->red;

	s->head = red->head;
	s->head_reads = red->head_reads;
	if (s->head_reads > s->head || s->head >> 62)
		return error_set(-EBADMSG, "the rings' head is impossible");
	head_writes = s->head - s->head_reads;
	s->seen[OFFLOAD_RD] = s->head_reads;
	s->seen[OFFLOAD_WR] = head_writes;
	s->ready[OFFLOAD_RD] = offload_extend(s->head_reads, red->done.reads);
	s->ready[OFFLOAD_WR] = offload_extend(head_writes, red->done.writes);
	tail = offload_extend(s->head, p->green.tail);
	if (tail - s->head > s->map.entries ||
	    s->ready[OFFLOAD_RD] - s->head_reads > s->map.entries ||
	    s->ready[OFFLOAD_WR] - head_writes > s->map.entries)
		return error_set(-EBADMSG, "the rings' counts are impossible");
	memcpy(s->published, s->ready, sizeof(s->published));
	s->told_reads = s->published[OFFLOAD_RD];
	s->next = s->head;
	s->fetched = s->head;
	s->fetching = tail;
	s->first_tail = tail;
	s->wdata_fetched = p->green.wdata_tail;
	return 0;
}

static uint32_t mtu_shift(uint32_t bytes)
{
	return (uint32_t)__builtin_ctz(bytes | 1u << MTU_SHIFT_MAX);
}

/* The 64-bit sequence near the head, on either side of it. */
static uint64_t seq_near(const struct offload_session *s, uint32_t low)
{
	uint64_t head = s->head - s->head_reads;
	int64_t seq = (int64_t)head + (int32_t)(low - (uint32_t)head);

	return seq < 0 ? 0 : (uint64_t)seq;
}

static void read_node(struct offload_session *s, unsigned i, uint64_t last)
{
	struct offload_preamble *p = (void *)s->mirror;
	const struct offload_progress *old = red_node(&p->red, i);
	const struct offload_node_config *c = &s->config.node[i];
	uint32_t shift = old->psn >> 24;
	struct node *n = &s->node[i];

	if (old->epoch == 0)
		return; /* nobody was here before */
	n->base_seq = seq_near(s, old->seq);
	if (old->skip == (uint32_t)SKIP_UNKNOWN)
		n->unknown_seq = n->base_seq;
	if (old->psn == (uint32_t)PSN_NONE)
		return;
	if (c->err || !c->has_final || c->final_epoch != old->epoch ||
	    shift < MTU_SHIFT_MIN || shift > MTU_SHIFT_MAX) {
		n->base_seq = n->unknown_seq = last;
		return;
	}
	n->budget = (c->final_psn - old->psn) & PSN_MASK;
	if (old->skip != (uint32_t)SKIP_UNKNOWN)
		n->budget += old->skip;
	n->budget_mtu = 1u << shift;
}

/* Takes the packets of one write's part out of the node's budget. Returns
 * whether all of it was done. */
static bool spend(struct node *n, uint64_t *budget, uint64_t len_bytes)
{
	uint64_t packets = (len_bytes + n->budget_mtu - 1) / n->budget_mtu;

	if (*budget < packets)
		return false;
	*budget -= packets;
	return true;
}

/* One write: nodes that have done all their parts of it move on. */
static void walk_write(struct offload_session *s, const struct offload_meta *m,
		       uint64_t seq, uint16_t *ended)
{
	const struct offload_region_config *r;
	uint64_t left[OFFLOAD_NODES_MAX], at;
	uint16_t met = 0, stuck = 0;
	struct spot spot;

	if (m->region >= s->config.region_count || m->len_bytes == 0 ||
	    m->len_bytes > s->map.wdata_bytes / 2)
		return; /* refused by whoever met it */
	r = &s->config.region[m->region];
	for (at = 0; at < m->len_bytes; at += spot.len_bytes) {
		unsigned i;

		spot = region_spot(r, m->resp_addr + at, m->len_bytes - at);
		i = r->piece[spot.piece].node;
		if (seq <= s->node[i].base_seq || s->node[i].budget == 0 ||
		    *ended & 1u << i)
			continue;
		if (!(met & 1u << i))
			left[i] = s->node[i].budget;
		met |= (uint16_t)(1u << i);
		if (!(stuck & 1u << i) &&
		    !spend(&s->node[i], &left[i], spot.len_bytes))
			stuck |= (uint16_t)(1u << i);
	}
	for (unsigned i = 0; i < s->config.node_count; i++) {
		if (!(met & 1u << i) || stuck & 1u << i)
			continue;
		s->node[i].base_seq = seq;
		s->node[i].budget = left[i];
	}
	/* What is left there belongs to this write and to no later one. */
	*ended |= stuck;
}

static void make_base(struct offload_session *s, unsigned i, uint64_t last)
{
	const struct offload_node_config *c = &s->config.node[i];
	struct node *n = &s->node[i];

	n->err = c->err;
	n->psn = c->write_psn & PSN_MASK;
	n->mtu = c->mtu_bytes ? c->mtu_bytes : 1u << MTU_SHIFT_MAX;
	/* Packets of another size cannot be taken over one by one. */
	if (n->budget && n->budget_mtu != n->mtu)
		n->budget = n->budget * n->budget_mtu / n->mtu;
	n->budget_mtu = n->mtu;
	/* There is one place for either; failing more is always right. */
	if (n->budget && n->unknown_seq > s->published[OFFLOAD_WR]) {
		n->base_seq = n->unknown_seq = last;
		n->budget = 0;
	}
	n->base = (struct offload_progress){
		.seq = (uint32_t)n->base_seq,
		.skip = (uint32_t)n->budget,
		.psn = n->psn | mtu_shift(n->mtu) << 24,
		.epoch = s->config.epoch,
	};
	if (n->unknown_seq > s->published[OFFLOAD_WR]) {
		n->base.seq = (uint32_t)n->unknown_seq;
		n->base.skip = (uint32_t)SKIP_UNKNOWN;
	}
	if (n->err)
		n->base.psn = (uint32_t)PSN_NONE;
	n->progress = n->base;
}

/* The sequence of the last write that a predecessor may have met. */
static uint64_t last_write(const struct offload_session *s)
{
	uint64_t seq = s->head - s->head_reads;
	struct offload_meta meta;
	unsigned kind;

	for (uint64_t pos = s->head; pos < s->first_tail; pos++)
		if (offload_request_read(s, pos, &meta, &kind) == 0)
			seq += kind == OFFLOAD_WR;
	return seq;
}

void offload_resume_walk(struct offload_session *s)
{
	uint64_t seq = s->head - s->head_reads, last = last_write(s);
	struct offload_meta meta;
	uint16_t ended = 0;
	unsigned i, kind;

	for (i = 0; i < s->config.node_count; i++)
		read_node(s, i, last);
	for (uint64_t pos = s->head; pos < s->first_tail; pos++) {
		if (offload_request_read(s, pos, &meta, &kind))
			break; /* dispatch ends the session there */
		if (kind == OFFLOAD_WR)
			walk_write(s, &meta, ++seq, &ended);
	}
	for (i = 0; i < s->config.node_count; i++)
		make_base(s, i, last);
}

uint64_t offload_resume_skip(struct node *n, uint64_t seq, uint64_t len_bytes)
{
	uint64_t packets;

	if (LIKELY(seq > n->base_seq && n->budget == 0))
		return 0;
	if (seq <= n->base_seq)
		return len_bytes;
	packets = (len_bytes + n->budget_mtu - 1) / n->budget_mtu;
	if (n->budget >= packets) {
		n->budget -= packets;
		return len_bytes;
	}
	packets = n->budget;
	n->budget = 0;
	return packets * n->budget_mtu;
}
