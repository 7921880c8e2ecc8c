/* SPDX-License-Identifier: Apache-2.0 */
/* Places and their lanes: which connection leads to which bytes of a region. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "traverse_priv.h"

void lane_close(struct lane *lane)
{
	client_link_close(lane->link);
	*lane = (struct lane){0};
}

void place_close(struct place *p)
{
	for (unsigned i = 0; i < CLIENT_NODE_MAX; i++)
		if (p->lane[i].link)
			lane_close(&p->lane[i]);
	for (unsigned i = 0; i < TRAVERSE_FORWARDS; i++)
		if (p->forward[i].link)
			lane_close(&p->forward[i]);
	p->region = NULL;
}

/* Whether this process may load from the piece. The first question has the NIC
 * ask the node for the memory; the answer takes a while. */
static bool is_mapped(const struct client_link *link)
{
	uint64_t word;
	const struct aqdv_read probe = {.remote_addr = link->addr,
					.to = &word,
					.rkey = link->rkey,
					.len_bytes = sizeof(word)};

	return link->size_bytes >= sizeof(word) &&
	       aqdv_read_now(link->qp, &probe, 1) == 1;
}

/* Windows are never mapped, nor is what UDP leads to. */
static bool can_map(const struct place *p, const struct lane *lane)
{
	return !p->shape.is_read_only && !p->shape.is_revocable &&
	       !lane->link->peer[0];
}

bool lane_is_mapped(const struct place *p, struct lane *lane)
{
	if (lane->is_mapped || !can_map(p, lane))
		return lane->is_mapped;
	if (lane->probes < TRAVERSE_PROBES ||
	    lane->probes % TRAVERSE_PROBES == 0)
		lane->is_mapped = is_mapped(lane->link);
	lane->probes++;
	return lane->is_mapped;
}

/* Waits for the node's answer for a moment: connecting takes longer anyway. */
static void await_map(const struct place *p, struct lane *lane)
{
	const struct client_clock *clock = client_clock_real();
	uint64_t end_ns = client_clock_now_ns(clock) + TRAVERSE_MAP_NS;

	while (can_map(p, lane) && !lane_is_mapped(p, lane) &&
	       client_clock_now_ns(clock) < end_ns) {
		lane->probes = 0;
		client_clock_relax(clock);
	}
}

/* For that many requests at a time. */
static int lane_open(struct aq_walks *w, const struct place *p, uint32_t piece,
		     uint32_t depth, struct lane *lane)
{
	const struct client_map *m = &p->shape.map;
	struct client_link_options o = {
		.send_depth = 2 * depth, /* what is written first, too */
		.rd_atomic = depth,
		.rights = p->shape.is_read_only ? CLIENT_LINK_READ
						: CLIENT_LINK_ALL,
		.is_revocable = p->shape.is_revocable,
		.share_cq = w->cq,
		.deadline_ns = w->until_ns,
	};
	char name[PIECE_NAME_MAX];
	int err;

	piece_name_write(p->shape.name, piece, m->piece_count, m->stripe_shift,
			 name);
	err = facts_ask(w, m->piece[piece].node, &lane->facts);
	if (err)
		return err;
	if (lane->facts.has_walks)
		o.connect_more =
			json_pack("{s:{s:i, s:i}}", "walk", "depth", (int)depth,
				  "bytes", AQ_WALK_PAD_MAX);
	err = client_link_open_at(w->rack, m->piece[piece].node, name, &o,
				  &lane->link);
	json_decref(o.connect_more);
	/* It is gone, or on its way to that or to another node. */
	if (err)
		return err == -ENOENT || err == -EBUSY ? -ESTALE : err;
	if (lane->link->epoch != m->piece[piece].epoch ||
	    lane->link->size_bytes < m->piece[piece].size_bytes) {
		lane_close(lane);
		return error_set(-ESTALE, "region %s changed meanwhile",
				 p->shape.name);
	}
	lane->piece = piece;
	await_map(p, lane);
	return 0;
}

/* Nothing of it is under way, and nothing comes of it any more. */
static bool is_spent(const struct lane *lane)
{
	return UNLIKELY(lane->link && lane->busy == 0 &&
			(lane->err || client_link_is_lost(lane->link)));
}

bool lane_find_free(struct aq_walks *w, struct place *p, struct lane **out)
{
	uint32_t piece = (*out)->piece;
	struct lane *closed = NULL;

	/* Where others may come behind it, it would keep them waiting, and if
	 * it is lost too often, take them with it: also those that store and
	 * are not asked for again. */
	if (w->depth == 1)
		return (*out)->busy == 0;
	for (unsigned i = 0; i < TRAVERSE_FORWARDS; i++) {
		struct lane *lane = &p->forward[i];

		if (is_spent(lane))
			lane_close(lane);
		if (!lane->link) {
			closed = lane;
		} else if (lane->piece == piece && lane->busy == 0) {
			*out = lane;
			return true;
		}
	}
	if (!closed || p->has_no_more)
		return false;
	p->has_no_more = lane_open(w, p, piece, 1, closed) != 0;
	if (!p->has_no_more)
		*out = closed;
	return !p->has_no_more;
}

int lane_find(struct aq_walks *w, struct place *p, uint64_t at,
	      uint32_t len_bytes, struct lane **out, uint64_t *offset)
{
	const struct client_map *m = &p->shape.map;
	struct client_spot spot;
	int err = 0;

	if (at > m->size_bytes || len_bytes > m->size_bytes - at)
		return -EFAULT;
	spot = client_map_find(m, at, len_bytes);
	if (spot.len_bytes != len_bytes) /* two nodes have a part each */
		return -EFAULT;
	*out = &p->lane[spot.piece];
	*offset = spot.offset;
	if (is_spent(*out))
		lane_close(*out);
	if (UNLIKELY(!(*out)->link))
		err = lane_open(w, p, spot.piece, w->depth, *out);
	return err;
}

/* ---- places -------------------------------------------------------------- */

static void renew_lane(const struct place *p, const struct client_shape *shape,
		       struct lane *lane)
{
	const struct client_piece *a = &p->shape.map.piece[lane->piece];
	const struct client_piece *b = &shape->map.piece[lane->piece];

	if (!lane->link ||
	    (lane->piece < shape->map.piece_count && a->node == b->node &&
	     a->epoch == b->epoch && a->incarnation == b->incarnation))
		return;
	if (lane->busy)
		lane->err = -ESTALE;
	else
		lane_close(lane);
}

/* The map is another one: keys of the old pieces are dead. */
static int renew(struct place *p, uint64_t version)
{
	struct client_shape shape;
	int err = client_keep_shape(p->region, &shape);

	if (err)
		return err;
	for (uint32_t i = 0; i < CLIENT_NODE_MAX; i++)
		renew_lane(p, &shape, &p->lane[i]);
	for (uint32_t i = 0; i < TRAVERSE_FORWARDS; i++)
		renew_lane(p, &shape, &p->forward[i]);
	p->has_no_more = false;
	p->shape = shape;
	p->version = version;
	return 0;
}

/* A free entry, or the one that has not been used for the longest time. */
static struct place *make_room(struct aq_walks *w)
{
	struct place *best = NULL;

	for (unsigned i = 0; i < TRAVERSE_PLACES; i++) {
		struct place *p = &w->place[i];

		if (!p->region)
			return p;
		if (p->jobs == 0 && (!best || p->used < best->used))
			best = p;
	}
	if (best)
		place_close(best);
	return best;
}

int place_get(struct aq_walks *w, struct aq_region *region, struct place **out)
{
	uint64_t version = client_keep_version(region);
	struct place *p = NULL;
	int err = 0;

	for (unsigned i = 0; i < TRAVERSE_PLACES && !p; i++)
		if (w->place[i].region == region)
			p = &w->place[i];
	/* A handle that was closed, and another one at its address. */
	if (p && p->version >> 32 != version >> 32 && p->jobs == 0) {
		place_close(p);
		p = NULL;
	}
	if (!p) {
		p = make_room(w);
		if (!p)
			return error_set(-EBUSY,
					 "walks on %d regions are under way",
					 TRAVERSE_PLACES);
		memset(p, 0, sizeof(*p));
		p->region = region;
	}
	if (UNLIKELY(p->version != version)) {
		err = renew(p, version);
		if (err && p->jobs == 0)
			place_close(p);
	}
	p->used = ++w->uses;
	*out = p;
	return err;
}
