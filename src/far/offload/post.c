/* SPDX-License-Identifier: Apache-2.0 */
/* The work requests that a turn makes for memory nodes: lists that are posted
 * at one go, with one doorbell and one completion. */
#include <errno.h>

#include "engine_priv.h"

int offload_session_flush(struct offload_session *s, unsigned node,
			  unsigned kind)
{
	struct wr_list *c = &s->engine->node_wrs[node][kind];
	struct node_queue *q = &s->node[node].queue[kind];
	struct ibv_send_wr *bad, *last;
	int err;

	if (c->count == 0)
		return 0;
	last = &c->wr[c->count - 1];
	/* What was idle begins now; what is under way goes on counting. */
	if (q->posted - q->done == c->parts)
		q->moved_ns = s->engine->now_ns;
	c->count = c->parts = 0;
	last->next = NULL;
	last->send_flags = IBV_SEND_SIGNALED;
	last->wr_id = offload_session_wr_id(
		s, kind == OFFLOAD_RD ? WR_READ : WR_WRITE, node, q->posted);
	err = ibv_post_send(q->qp, c->wr, &bad);
	/* As offload_engine_create left it. */
	last->next = last + 1;
	last->send_flags = 0;
	return err ? -EHOSTDOWN : 0;
}

/* All of them, also behind one that failed: the lists are the engine's, and
 * what is left in them would be posted by the next session. */
int offload_session_flush_all(struct offload_session *s)
{
	int err = 0;

	for (unsigned i = 0; i < s->config.node_count; i++) {
		int failed = offload_gather_post(s, i);

		err = err ? err : failed;
		for (unsigned kind = 0; kind < OFFLOAD_KINDS; kind++) {
			failed = offload_session_flush(s, i, kind);
			err = err ? err : failed;
		}
	}
	return err;
}

bool offload_session_goes_on(const struct wr_list *c, const struct place *p)
{
	const struct ibv_send_wr *wr;
	const struct ibv_sge *sge;

	if (c->count == 0)
		return false;
	wr = &c->wr[c->count - 1];
	sge = &c->sge[c->count - 1];
	return sge->addr + sge->length == p->local &&
	       wr->wr.rdma.remote_addr + sge->length == p->remote &&
	       wr->wr.rdma.rkey == p->rkey &&
	       sge->length + p->len_bytes <= OFFLOAD_PART_BYTES;
}

void offload_session_add_wr(struct offload_session *s, unsigned node,
			    unsigned kind, const struct place *p)
{
	struct wr_list *c = &s->engine->node_wrs[node][kind];
	struct ibv_send_wr *wr = &c->wr[c->count];

	/* The rest of it never changes, see offload_engine_create. */
	c->sge[c->count++] = (struct ibv_sge){
		.addr = p->local, .length = p->len_bytes, .lkey = s->mr->lkey};
	/* For the case that it fails; only the last of the list is
	 * signalled. */
	wr->wr_id = offload_session_wr_id(
		s, kind == OFFLOAD_RD ? WR_READ : WR_WRITE, node, 0);
	wr->wr.rdma.remote_addr = p->remote;
	wr->wr.rdma.rkey = p->rkey;
}

/*
 * A read that goes on where the last one of the list ends, at the node and in
 * the ring, makes that one longer; else, if the node gathers, it leaves with
 * others. Writes stay apart: what was done of each is known by its packets.
 */
static int add_place(struct offload_session *s, unsigned node, unsigned kind,
		     const struct place *p)
{
	struct wr_list *c = &s->engine->node_wrs[node][kind];
	int taken = kind == OFFLOAD_RD ? offload_gather_take(s, node, p) : 0;

	if (taken < 0)
		return taken;
	if (taken)
		return 0;
	c->parts++;
	if (kind == OFFLOAD_RD && offload_session_goes_on(c, p))
		c->sge[c->count - 1].length += p->len_bytes;
	else
		offload_session_add_wr(s, node, kind, p);
	return 0;
}

int offload_session_add_part(struct offload_session *s, const struct request *r,
			     const struct offload_piece_config *piece,
			     uint64_t offset, uint32_t len_bytes)
{
	struct node *n = &s->node[piece->node];
	struct node_queue *q = &n->queue[r->kind];
	bool is_read = r->kind == OFFLOAD_RD;
	const struct place place = {
		.local = (uintptr_t)s->mirror +
			 (is_read ? s->map.rdata_at : s->map.wdata_at) +
			 r->near + s->part_at,
		.remote = piece->addr + offset,
		.far = r->far + s->part_at,
		.rkey = is_read ? piece->read_rkey : piece->write_rkey,
		.len_bytes = len_bytes,
	};
	struct part *p = &q->part[q->posted % OFFLOAD_NODE_DEPTH];
	int err = add_place(s, piece->node, r->kind, &place);

	if (err)
		return err;
	p->seq = r->seq;
	p->slot = (uint32_t)(r - s->request);
	p->is_last = false;
	if (!is_read) {
		n->psn =
			(n->psn + (len_bytes + n->mtu - 1) / n->mtu) & 0xffffff;
		p->psn_next = n->psn;
		n->open_part = q->posted;
		n->open_psn = n->psn;
		s->touched |= (uint16_t)(1u << piece->node);
	}
	q->posted++;
	return 0;
}
