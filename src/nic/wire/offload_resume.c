/* SPDX-License-Identifier: Apache-2.0 */
/* What a predecessor has done, from packet numbers. */
#include "offload_resume.h"

#include <errno.h>

#include "base/error.h"

enum {
	PSN_MASK = 0xffffff,
	MTU_SHIFT_MIN = 8,
	MTU_SHIFT_MAX = 12,
	/* In offload_progress.skip: of the writes up to seq, nobody knows. */
	SKIP_UNKNOWN = -1,
	/* In offload_progress.psn: there was no queue pair. */
	PSN_NONE = -1,
};

/* The 64-bit sequence near the head, on either side of it. */
static uint64_t seq_near(const struct offload_resume *r, uint32_t low)
{
	uint64_t head = r->head - r->head_reads;
	int64_t seq = (int64_t)head + (int32_t)(low - (uint32_t)head);

	return seq < 0 ? 0 : (uint64_t)seq;
}

static void read_node(const struct offload_resume *r,
		      const struct offload_progress *old,
		      const struct offload_final *final, struct offload_past *n)
{
	uint32_t shift = old->psn >> 24;

	*n = (struct offload_past){0};
	if (old->epoch == 0)
		return; /* nobody was here before */
	n->base_seq = seq_near(r, old->seq);
	if (old->skip == (uint32_t)SKIP_UNKNOWN)
		n->unknown_seq = n->base_seq;
	if (old->psn == (uint32_t)PSN_NONE)
		return;
	if (!final->is_known || final->epoch != old->epoch ||
	    shift < MTU_SHIFT_MIN || shift > MTU_SHIFT_MAX) {
		n->is_unknown = true;
		return;
	}
	n->budget = (final->psn - old->psn) & PSN_MASK;
	if (old->skip != (uint32_t)SKIP_UNKNOWN)
		n->budget += old->skip;
	n->budget_mtu = 1u << shift;
}

int offload_resume_begin(struct offload_resume *r,
			 const struct offload_preamble *p,
			 const struct offload_map *map,
			 const struct offload_final *final, unsigned node_count)
{
	const struct offload_red *red = &p->red;
	uint64_t head_writes;

	*r = (struct offload_resume){.head = red->head,
				     .head_reads = red->head_reads,
				     .node_count = node_count};
	if (r->head_reads > r->head || r->head >> 62)
		return error_set(-EBADMSG, "the rings' head is impossible");
	head_writes = r->head - r->head_reads;
	r->writes = head_writes;
	r->done[OFFLOAD_RD] = offload_extend(r->head_reads, red->done.reads);
	r->done[OFFLOAD_WR] = offload_extend(head_writes, red->done.writes);
	r->tail = offload_extend(r->head, p->green.tail);
	if (r->tail - r->head > map->entries ||
	    r->done[OFFLOAD_RD] - r->head_reads > map->entries ||
	    r->done[OFFLOAD_WR] - head_writes > map->entries)
		return error_set(-EBADMSG, "the rings' counts are impossible");
	for (unsigned i = 0; i < node_count; i++)
		read_node(r, &red->node[OFFLOAD_NODES_MAX - 1 - i], &final[i],
			  &r->node[i]);
	return 0;
}

/* Takes the packets of one write's part out of the node's budget. Returns
 * whether all of it was done. */
static bool spend(const struct offload_past *n, uint64_t *budget,
		  uint64_t len_bytes)
{
	uint64_t packets = (len_bytes + n->budget_mtu - 1) / n->budget_mtu;

	if (*budget < packets)
		return false;
	*budget -= packets;
	return true;
}

/* One write: nodes that have done all their parts of it move on. */
static void walk_write(struct offload_resume *r, const struct offload_meta *m,
		       const struct offload_region_config *region)
{
	uint64_t left[OFFLOAD_NODES_MAX], at;
	uint16_t met = 0, stuck = 0;
	struct offload_spot spot;

	for (at = 0; at < m->len_bytes; at += spot.len_bytes) {
		unsigned i;

		spot = offload_region_spot(region, m->resp_addr + at,
					   m->len_bytes - at);
		i = region->piece[spot.piece].node;
		if (r->writes <= r->node[i].base_seq ||
		    r->node[i].budget == 0 || r->ended & 1u << i)
			continue;
		if (!(met & 1u << i))
			left[i] = r->node[i].budget;
		met |= (uint16_t)(1u << i);
		if (!(stuck & 1u << i) &&
		    !spend(&r->node[i], &left[i], spot.len_bytes))
			stuck |= (uint16_t)(1u << i);
	}
	for (unsigned i = 0; i < r->node_count; i++) {
		if (!(met & 1u << i) || stuck & 1u << i)
			continue;
		r->node[i].base_seq = r->writes;
		r->node[i].budget = left[i];
	}
	/* What is left there belongs to this write and to no later one. */
	r->ended |= stuck;
}

void offload_resume_show(struct offload_resume *r, const struct offload_meta *m,
			 const struct offload_map *map,
			 const struct offload_region_config *regions,
			 uint32_t region_count)
{
	int kind = offload_request_kind(m);

	if (kind < 0) {
		r->is_broken = true; /* engines end there */
		return;
	}
	if (kind != OFFLOAD_WR)
		return;
	r->writes++;
	/* What is refused was refused by all, and cost no packet. */
	if (!r->is_broken &&
	    !offload_request_check(m, map, regions, region_count))
		walk_write(r, m, &regions[m->region]);
}

struct offload_progress offload_resume_end(struct offload_resume *r, unsigned i,
					   const struct offload_begin *b)
{
	struct offload_past *n = &r->node[i];
	struct offload_progress base;
	uint32_t shift = (uint32_t)__builtin_ctz(b->mtu | 1u << MTU_SHIFT_MAX);

	/* Failing more is always right. It stopped inside a write whose packets
	 * have another size now; or there is one place to say what is unknown
	 * and what was done behind it. */
	if ((n->budget && n->budget_mtu != b->mtu) ||
	    (n->unknown_seq > r->done[OFFLOAD_WR] &&
	     (n->budget || n->base_seq > n->unknown_seq)))
		n->is_unknown = true;
	n->budget_mtu = b->mtu;
	if (n->is_unknown) {
		n->base_seq = n->unknown_seq = r->writes;
		n->budget = 0;
	}
	base = (struct offload_progress){
		.seq = (uint32_t)n->base_seq,
		.skip = (uint32_t)n->budget,
		.psn = (b->psn & PSN_MASK) | shift << 24,
		.epoch = b->epoch,
	};
	if (n->unknown_seq > r->done[OFFLOAD_WR]) {
		base.seq = (uint32_t)n->unknown_seq;
		base.skip = (uint32_t)SKIP_UNKNOWN;
	}
	if (b->is_gone)
		base.psn = (uint32_t)PSN_NONE;
	return base;
}

uint64_t offload_past_skip(struct offload_past *n, uint64_t seq,
			   uint64_t len_bytes)
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
