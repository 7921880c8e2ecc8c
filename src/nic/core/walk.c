/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The responder's half of walks: what was asked for and what was answered stay
 * in the responder resource, so a duplicate never executes anything. Who
 * executes a walk is the walker of the NIC; this is where it gets walks from,
 * learns where memory is, and leaves results.
 */
#include "walk_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "access_priv.h"
#include "base/clamp.h"
#include "turn_priv.h"

/* ---- room ---------------------------------------------------------------- */

int nic_qp_set_walk_pad(struct nic_qp *qp, uint32_t pad_bytes)
{
	if (qp->type != IBV_QPT_RC || pad_bytes > NIC_WALK_PAD_MAX ||
	    (qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_INIT))
		return -EINVAL;
	qp->walk_pad = pad_bytes;
	return 0;
}

int walk_res_init(struct nic_qp *qp, uint32_t res_count)
{
	size_t each = align_up(qp->walk_pad, CACHE_LINE);
	struct walk_res *walks = NULL;
	uint8_t *pads = NULL;

	if (qp->walk_pad && res_count) {
		walks = calloc(res_count, sizeof(*walks));
		pads = aligned_alloc(CACHE_LINE, res_count * each);
		if (!walks || !pads) {
			free(walks);
			free(pads);
			return -ENOMEM;
		}
	}
	walk_res_release(qp);
	for (uint32_t i = 0; walks && i < res_count; i++) {
		walks[i].qp = qp;
		walks[i].walk.pad = pads + i * each;
		walks[i].walk.pad_room = qp->walk_pad;
		list_init(&walks[i].wait);
	}
	qp->rsp.walks = walks;
	return 0;
}

void walk_res_release(struct nic_qp *qp)
{
	walk_forget_all(qp);
	/* The pads are one piece of memory, which the first begins. */
	if (qp->rsp.walks)
		free(qp->rsp.walks[0].walk.pad);
	free(qp->rsp.walks);
	qp->rsp.walks = NULL;
}

/* ---- requests ------------------------------------------------------------ */

bool walk_is_allowed(const struct nic_qp *qp)
{
	return qp->rsp.walks && qp->nic->walker.start;
}

enum key_verdict walk_check_key(const struct nic_qp *qp, uint32_t rkey,
				const struct nic_key **key)
{
	uint8_t *host;

	/* Where the walk goes is looked at on its way. */
	*key = key_find(&qp->nic->keys, rkey);
	return key_covers(qp, *key, *key ? (*key)->iova : 0, 0,
			  IBV_ACCESS_REMOTE_READ, &host);
}

/* The key, if it still opens anything for this queue pair. */
static const struct nic_key *find_key(struct walk_res *w)
{
	const struct key_table *keys = &w->qp->nic->keys;
	const struct nic_key *k;
	enum key_verdict v;

	if (LIKELY(w->epoch == keys->epoch))
		return w->key;
	v = walk_check_key(w->qp, w->rkey, &k);
	if (v != KEY_OK) {
		/* Counted once, however often the walker asks. */
		if (!w->refused)
			key_count_denial(w->qp->nic, v);
		w->refused = WIRE_NAK_ACCESS;
		return NULL;
	}
	w->key = k;
	w->epoch = keys->epoch;
	return k;
}

bool walk_is_open(const struct walk_res *w)
{
	const struct nic_key *k;

	return w->epoch == w->qp->nic->keys.epoch ||
	       walk_check_key(w->qp, w->rkey, &k) == KEY_OK;
}

bool walk_fits(const struct nic_qp *qp, const struct wire_pkt *pkt)
{
	return pkt->payload_len <= qp->walk_pad &&
	       pkt->walk.pad_bytes <= qp->walk_pad &&
	       pkt->walk.pad_bytes <= qp->mtu - WALK_WIRE_OVERHEAD;
}

void walk_fill(struct walk_res *w, const struct wire_walk *asked,
	       const uint8_t *pad, uint32_t pad_bytes)
{
	struct nic_walk *walk = &w->walk;
	const struct nic_key *k;

	w->rkey = asked->key;
	w->pad_bytes = asked->pad_bytes;
	w->hops = asked->hops;
	w->stores = false;
	w->refused = 0;
	w->took = 0;
	w->epoch = 0;
	k = find_key(w);
	w->space = k ? k->place.space : 0;
	walk->qp_owner = w->qp->owner;
	walk->at = asked->at;
	walk->program = asked->program;
	walk->iterations = asked->left;
	walk->send_bytes = pad_bytes;
	walk->answer_bytes = asked->pad_bytes;
	walk->job = NULL;
	memcpy(walk->pad, pad, pad_bytes);
	/* What lies there of the walk before must not travel. */
	if (asked->pad_bytes > pad_bytes)
		memset(walk->pad + pad_bytes, 0, asked->pad_bytes - pad_bytes);
}

void walk_take(struct nic_qp *qp, struct resp_res *res,
	       const struct wire_pkt *pkt)
{
	struct walk_res *w = walk_of(&qp->rsp, res);

	w->res = res;
	walk_fill(w, &pkt->walk, pkt->payload, pkt->payload_len);
}

/* ---- who has room for them ------------------------------------------------
 */

int nic_set_walker(struct nic *nic, const struct nic_walker *walker)
{
	if (nic->walking)
		return -EBUSY;
	nic->walker = walker ? *walker : (struct nic_walker){.start = NULL};
	return 0;
}

bool nic_has_walks(const struct nic *nic)
{
	return nic->walk_due;
}

/* False: the walker has no room. */
static bool start(struct walk_res *w)
{
	struct nic *nic = w->qp->nic;
	int err;

	w->state = WALK_RUNS;
	nic->walk_due = true;
	err = nic->walker.start(nic->walker.ctx, &w->walk);
	if (LIKELY(!err))
		return true;
	w->state = WALK_WAITS;
	if (err == -EAGAIN)
		return false;
	nic_walk_done(&w->walk, WALK_WIRE_NO_PROGRAM, w->walk.at,
		      w->walk.iterations, 0);
	return true;
}

void walk_start(struct walk_res *w)
{
	struct nic_pd *pd = w->qp->pd->turns;
	struct nic *nic = w->qp->nic;

	nic->walking++;
	if (w->res)
		w->res->kind = RESP_WALKING;
	/* Who waits already comes first. */
	if (list_is_empty(&pd->walks) && start(w))
		return;
	count(nic, NIC_C_walk_waits);
	w->state = WALK_WAITS;
	list_append(&pd->walks, &w->wait);
	if (list_is_empty(&pd->walk_turn))
		list_append(&nic->walk_waits, &pd->walk_turn);
}

/* Domains in turn, so that many walks of one do not keep another's waiting. */
static void start_waiting(struct nic *nic)
{
	while (!list_is_empty(&nic->walk_waits)) {
		struct nic_pd *pd = container_of(nic->walk_waits.next,
						 struct nic_pd, walk_turn);
		struct walk_res *w =
			container_of(pd->walks.next, struct walk_res, wait);

		if (!start(w))
			return;
		list_remove(&w->wait);
		list_remove(&pd->walk_turn);
		if (!list_is_empty(&pd->walks))
			list_append(&nic->walk_waits, &pd->walk_turn);
	}
}

void walk_turn(struct nic *nic)
{
	const struct nic_walker *walker = &nic->walker;

	nic->walk_due = nic->walking &&
			walker->turn(walker->ctx, nic->crowd ? NIC_WALK_CROWDED
							     : NIC_WALK_TURN);
	start_waiting(nic);
	nic->walk_due = nic->walk_due && nic->walking;
}

static void end(struct walk_res *w)
{
	struct nic_pd *pd = w->qp->pd->turns;

	ASSERT(w->qp->nic->walking);
	list_remove(&w->wait);
	if (list_is_empty(&pd->walks))
		list_remove(&pd->walk_turn);
	w->state = WALK_IDLE;
	if (w->res)
		w->res->kind = RESP_WALK;
	w->qp->nic->walking--;
}

void walk_forget(struct walk_res *w)
{
	const struct nic_walker *walker = &w->qp->nic->walker;

	if (w->state == WALK_IDLE)
		return;
	if (w->state == WALK_RUNS)
		walker->forget(walker->ctx, &w->walk);
	end(w);
}

void walk_forget_all(struct nic_qp *qp)
{
	for (uint32_t i = 0; qp->rsp.walks && i < qp->rsp.res_count; i++)
		walk_forget(&qp->rsp.walks[i]);
	hop_forget_all(qp);
}

/* ---- what the walker asks and says --------------------------------------- */

enum nic_walk_where nic_walk_span(struct nic_walk *walk, uint64_t at,
				  uint32_t len_bytes, bool write,
				  struct nic_walk_span *span)
{
	struct walk_res *w = container_of(walk, struct walk_res, walk);
	const struct nic_key *k = find_key(w);
	const struct nic_place *place;
	uint64_t offset = at, room;

	if (UNLIKELY(!k))
		return NIC_WALK_NO_RIGHT;
	w->stores |= write;
	if (write && !(k->access & w->qp->access & IBV_ACCESS_REMOTE_WRITE) &&
	    !PLANTED(walk_forward_store))
		return NIC_WALK_NO_RIGHT;
	place = &k->place;
	if (place->count > 1) {
		uint64_t stripe = at >> place->shift;
		uint64_t whole = 1ull << place->shift;
		uint64_t inside = at & (whole - 1);

		if (stripe % place->count != place->index &&
		    !PLANTED(walk_wrong_stripe))
			return NIC_WALK_ELSEWHERE;
		if (len_bytes > whole - inside)
			return NIC_WALK_FAULT;
		offset = (stripe / place->count << place->shift) + inside;
	}
	/* A window begins later than the region whose place it has. */
	offset -= k->window_at;
	room = k->holes ? k->holes->length : k->length;
	if (PLANTED(walk_any_pointer) && offset > room)
		offset = 0;
	if (UNLIKELY(offset > room || len_bytes > room - offset ||
		     (k->holes &&
		      key_holes_cover(k, offset, len_bytes) != KEY_OK)))
		return NIC_WALK_FAULT;
	/* A stripe ends soon, and holes are anywhere. */
	if (place->count > 1 || k->holes || PLANTED(walk_any_pointer))
		*span = (struct nic_walk_span){
			at, len_bytes,
			k->host + clamp_offset(offset, len_bytes, room)};
	else
		*span = (struct nic_walk_span){k->window_at, room, k->host};
	return NIC_WALK_HERE;
}

const uint32_t *nic_walk_epoch(const struct nic *nic)
{
	return &nic->keys.epoch;
}

enum nic_walk_where nic_walk_reach(struct nic_walk *walk, uint64_t at,
				   uint32_t len_bytes, bool write,
				   uint8_t **host)
{
	struct nic_walk_span span;
	enum nic_walk_where where =
		nic_walk_span(walk, at, len_bytes, write, &span);

	if (where == NIC_WALK_HERE)
		*host = span.host +
			clamp_offset(at - span.from, len_bytes, span.len);
	return where;
}

void nic_walk_done(struct nic_walk *walk, uint8_t status, uint64_t at,
		   uint32_t left, uint32_t took)
{
	struct walk_res *w = container_of(walk, struct walk_res, walk);
	struct nic *nic = w->qp->nic;

	ASSERT(w->state != WALK_IDLE && status < WALK_WIRE_STATUSES);
	/* A key that is gone is no reason to refuse what did not need it. Nor
	 * is a walk refused that was executed in part: its peer has to know how
	 * far it got, or it would do the same once more. */
	if (status != WALK_WIRE_NO_RIGHT || took)
		w->refused = 0;
	w->answer = (struct wire_walk){
		.at = at,
		.program = walk->program,
		.key = w->space,
		.left = left,
		.took = w->took + took,
		.pad_bytes =
			(uint16_t)u32_min(walk->answer_bytes, w->pad_bytes),
		.status = status,
		/* Who carries it on does not know what was executed already. */
		.hops = w->stores && !PLANTED(walk_forward_store)
				? WALK_WIRE_HOPS_MAX
				: w->hops,
	};
	count(nic, NIC_C_walks);
	nic->counters[NIC_C_walk_iterations] += took;
	if (status == WALK_WIRE_FAULT)
		count(nic, NIC_C_walk_faults);
	else if (status == WALK_WIRE_ELSEWHERE)
		count(nic, NIC_C_walk_elsewhere);
	turn_count(w->qp->pd->turns, took / NIC_TURN_ITERATIONS);
	end(w);
	if (!w->res)
		hop_ended(w);
	qp_make_ready(w->qp);
}
