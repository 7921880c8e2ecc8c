/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From metadata to work requests. Requests are begun in the order of the ring;
 * one that may overlap with a request of the other kind waits until that one is
 * done, and all behind it with it.
 *
 * The application is not trusted: whatever its metadata says, the engine reads
 * and writes only the session's own mirror and the session's own grants.
 */
#include <errno.h>
#include <string.h>

#include "base/plant.h"
#include "engine_priv.h"

struct offload_meta offload_session_meta(const struct offload_session *s,
					 uint64_t pos)
{
	struct offload_meta meta;

	memcpy(&meta,
	       s->mirror + s->map.meta_at + (pos & s->map.mask) * sizeof(meta),
	       sizeof(meta));
	return meta;
}

/* What is wrong with it, as a positive errno, or 0. */
static int check(const struct offload_session *s, const struct offload_meta *m)
{
	int bad = offload_request_check(m, &s->map, s->config.region,
					s->config.region_count);

	return bad ? bad : -s->config.region[m->region].err;
}

/* ---- completion --------------------------------------------------------- */

static void forget_range(struct offload_session *s, struct request *r)
{
	if (r->filtered == FILTERED_WIDE)
		offload_filter_remove_wide(&s->filter, r->kind);
	else if (r->filtered == FILTERED_LINES)
		offload_filter_remove(&s->filter, r->kind, r->region, r->far,
				      r->len_bytes);
	r->filtered = FILTERED_NOT;
}

void offload_session_told(struct offload_session *s, uint32_t reads)
{
	while ((uint32_t)s->told_reads != reads) {
		uint64_t seq = ++s->told_reads;

		forget_range(
			s,
			&s->request[s->order[OFFLOAD_RD][seq & s->map.mask]]);
	}
}

static void make_ready(struct offload_session *s, struct request *r)
{
	struct offload_engine *e = s->engine;
	unsigned kind = r->kind;

	if (r->state == REQUEST_ACTIVE)
		s->active--;
	if (kind == OFFLOAD_WR)
		forget_range(s, r);
	r->state = REQUEST_READY;
	if (s->ready_ns == 0)
		s->ready_ns = e->now_ns;
	if (r->err)
		engine_count(e, OFFLOAD_C_ERRORS, 1);
	else
		engine_count(e,
			     kind == OFFLOAD_RD ? OFFLOAD_C_READ_BYTES
						: OFFLOAD_C_WRITE_BYTES,
			     r->len_bytes);
	while (s->ready[kind] < s->seen[kind]) {
		uint32_t slot =
			s->order[kind][(s->ready[kind] + 1) & s->map.mask];

		if (s->request[slot].state != REQUEST_READY)
			break;
		s->ready[kind]++;
	}
}

/* All of it was posted, so what is the last part at each node is known now. */
static void close_write(struct offload_session *s, uint64_t seq)
{
	for (unsigned i = 0; s->touched; i++) {
		struct node *n = &s->node[i];
		struct node_queue *q = &n->queue[OFFLOAD_WR];

		if (!(s->touched & 1u << i))
			continue;
		s->touched &= (uint16_t) ~(1u << i);
		if ((int32_t)(q->done - n->open_part) > 0) {
			n->progress.seq = (uint32_t)seq;
			n->progress.skip = 0;
			n->progress.psn = n->open_psn | n->base.psn >> 24 << 24;
		} else {
			q->part[n->open_part % OFFLOAD_NODE_DEPTH].is_last =
				true;
		}
	}
}

void offload_session_part_done(struct offload_session *s, unsigned node,
			       unsigned kind, uint32_t count)
{
	struct node *n = &s->node[node];
	struct node_queue *q = &n->queue[kind];

	q->moved_ns = s->engine->now_ns;
	while ((int32_t)(count - q->done) > 0) {
		const struct part *p = &q->part[q->done % OFFLOAD_NODE_DEPTH];
		struct request *r = &s->request[p->slot];

		q->done++;
		if (p->is_last) {
			n->progress.seq = (uint32_t)p->seq;
			n->progress.skip = 0;
			n->progress.psn = p->psn_next | n->base.psn >> 24 << 24;
		}
		r->parts--;
		if (r->parts == 0 && r->is_posted)
			make_ready(s, r);
	}
}

/* ---- requests ----------------------------------------------------------- */

/* Posts more of the open request: 1 while there is more to come in this turn,
 * 0 when it is complete, -EAGAIN when it has to wait. */
static int post_some(struct offload_session *s, struct request *r)
{
	const struct offload_region_config *region =
		&s->config.region[r->region];
	uint64_t left = r->len_bytes - s->part_at, skip = 0;
	struct offload_spot spot =
		offload_region_spot(region, r->far + s->part_at, left);
	const struct offload_piece_config *piece = &region->piece[spot.piece];
	struct node *n = &s->node[piece->node];
	struct node_queue *q = &n->queue[r->kind];
	uint8_t bad = 0;
	uint32_t len;
	int err;

	if (n->err)
		bad = (uint8_t)-n->err;
	else if (r->kind == OFFLOAD_WR && r->seq <= n->past.unknown_seq)
		bad = EREMOTEIO;
	else if (r->kind == OFFLOAD_WR && !PLANTED(no_skip))
		skip = offload_past_skip(&n->past, r->seq, spot.len_bytes);
	/* What fails at one node is executed at the others: a successor counts
	 * on its packets there. */
	if (bad || skip == spot.len_bytes) {
		s->part_at += spot.len_bytes;
		if (bad)
			r->err = bad;
		else
			engine_count(s->engine, OFFLOAD_C_SKIPPED, 1);
		return s->part_at < r->len_bytes;
	}
	/* What was skipped is done for good, also when this has to wait. */
	s->part_at += skip;
	spot.offset += skip;
	spot.len_bytes -= skip;
	if (q->posted - q->done == OFFLOAD_NODE_DEPTH || s->deficit <= 0)
		return -EAGAIN;
	len = (uint32_t)u64_min(spot.len_bytes, OFFLOAD_PART_BYTES);
	err = offload_session_add_part(s, r, piece, spot.offset, len);
	if (err)
		return err;
	r->parts++;
	s->part_at += len;
	s->deficit -= (int64_t)len + OFFLOAD_REQUEST_COST;
	if (s->engine->node_wrs[piece->node][r->kind].count ==
		    OFFLOAD_POST_MAX &&
	    offload_session_flush(s, piece->node, r->kind))
		return -EHOSTDOWN;
	return s->part_at < r->len_bytes;
}

/* So that requests of the other kind see it, while there are some. */
static void note_range(struct offload_session *s, struct request *r)
{
	if (s->mixed == 0) {
		offload_filter_add_wide(&s->filter, r->kind);
		r->filtered = FILTERED_WIDE;
		return;
	}
	s->mixed--;
	offload_filter_add(&s->filter, r->kind, r->region, r->far,
			   r->len_bytes);
	r->filtered = FILTERED_LINES;
}

/* Begins the next request; -EAGAIN: not yet. */
static int open_request(struct offload_session *s)
{
	uint32_t slot = (uint32_t)(s->next & s->map.mask);
	struct request *r = &s->request[slot];
	struct offload_meta meta = offload_session_meta(s, s->next);
	int kind = offload_request_kind(&meta), bad;

	if (kind < 0)
		return kind;
	bad = check(s, &meta);
	if (kind != s->last_kind) {
		s->last_kind = (uint8_t)kind;
		s->mixed = OFFLOAD_MIXED;
	}
	*r = (struct request){
		.seq = s->seen[kind] + 1,
		.far = kind == OFFLOAD_WR ? meta.resp_addr : meta.req_addr,
		.near = (uint32_t)(kind == OFFLOAD_WR ? meta.req_addr
						      : meta.resp_addr),
		.len_bytes = meta.len_bytes,
		.region = meta.region,
		.kind = (uint8_t)kind,
		.state = REQUEST_ACTIVE,
		.err = (uint8_t)bad,
	};
	/* It was complete before we came. */
	if (s->seen[kind] < s->published[kind])
		r->state = REQUEST_READY;
	else if (!bad &&
		 offload_filter_conflicts(&s->filter, (unsigned)kind,
					  meta.region, r->far, r->len_bytes) &&
		 !PLANTED(no_order)) {
		engine_count(s->engine, OFFLOAD_C_CONFLICTS, 1);
		r->state = REQUEST_FREE;
		s->is_held = true;
		return -EAGAIN;
	}
	s->is_held = false;
	s->seen[kind]++;
	s->order[kind][r->seq & s->map.mask] = slot;
	s->part_at = 0;
	s->is_open = true;
	if (r->state == REQUEST_READY)
		return 0;
	s->active++;
	engine_count(s->engine,
		     kind == OFFLOAD_RD ? OFFLOAD_C_READS : OFFLOAD_C_WRITES,
		     1);
	if (!bad)
		note_range(s, r);
	return 0;
}

/* One request, or what can be done of it. */
static int dispatch_one(struct offload_session *s)
{
	struct request *r = &s->request[s->next & s->map.mask];
	int more = 0;

	if (!s->is_open) {
		more = open_request(s);
		if (more)
			return more;
	}
	if (r->state == REQUEST_ACTIVE && !(r->err && s->part_at == 0))
		do {
			more = post_some(s, r);
		} while (more > 0);
	if (more < 0)
		return more;
	if (r->kind == OFFLOAD_WR)
		close_write(s, r->seq);
	s->is_open = false;
	s->next++;
	r->is_posted = true;
	if (r->state == REQUEST_ACTIVE &&
	    (r->parts == 0 || (r->kind == OFFLOAD_WR && PLANTED(early_ack))))
		make_ready(s, r);
	return 0;
}

unsigned offload_session_dispatch(struct offload_session *s)
{
	unsigned count = 0;
	int err = 0, flushed;

	if (s->next == s->fetched) {
		s->deficit = 0;
		return 0;
	}
	s->deficit += OFFLOAD_QUANTUM_BYTES;
	if (s->deficit > 2 * OFFLOAD_QUANTUM_BYTES)
		s->deficit = 2 * OFFLOAD_QUANTUM_BYTES;
	while (s->next < s->fetched && s->deficit > 0) {
		err = dispatch_one(s);
		if (err)
			break;
		count++;
	}
	flushed = offload_session_flush_all(s);
	if (err && err != -EAGAIN)
		flushed = err;
	if (flushed)
		offload_session_break(s, flushed);
	return count;
}
