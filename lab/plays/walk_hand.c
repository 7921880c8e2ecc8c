/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of the play "walk" that use links of their own: the one that writes
 * and inserts, and the guest whose key is taken back. */
#include "walk_seam.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "sim/fiber.h"
#include "walk_play_priv.h"

enum {
	CQ_DEPTH = 64,
	WRITER_OPS = 60,
	PAUSE_US_MAX = 60,
	GUEST_WALKS = 12,
};

/* ---- links --------------------------------------------------------------- */

int wp_hand_open(struct wp *p, struct wp_hand *h, const char *name,
		 unsigned stream)
{
	int err = rig_host_add(p->run.stage, name, &h->host);

	h->p = p;
	sim_rand_init(&h->rand, p->run.opt->seed, stream);
	if (!err)
		err = walk_rack_open(&p->nodes, h->host, &h->rack);
	if (err)
		return err;
	h->cq = ibv_create_cq(walk_rack_pd(h->rack)->context, CQ_DEPTH, NULL,
			      NULL, 0);
	h->mr = ibv_reg_mr(walk_rack_pd(h->rack), h->area, sizeof(h->area),
			   IBV_ACCESS_LOCAL_WRITE);
	return h->cq && h->mr ? 0 : -ENOMEM;
}

int wp_hand_attach(struct wp_hand *h, const char *name, uint32_t pieces,
		   bool is_revocable)
{
	const struct client_link_options o = {
		.share_cq = h->cq,
		.rights = CLIENT_LINK_ALL,
		.is_revocable = is_revocable,
	};
	char piece[PIECE_NAME_MAX];
	int err;

	wp_hand_detach(h);
	err = walk_region_open(h->rack, name, pieces, is_revocable, &h->region);
	for (uint32_t i = 0; i < pieces && !err; i++) {
		piece_name_write(name, i, pieces, PIECE_SHIFT_MIN, piece);
		err = client_link_open_at(h->rack, i, piece, &o, &h->link[i]);
	}
	if (err)
		wp_hand_detach(h);
	return err;
}

void wp_hand_detach(struct wp_hand *h)
{
	for (unsigned i = 0; i < WALK_NODES_MAX; i++) {
		if (h->link[i])
			client_link_close(h->link[i]);
		h->link[i] = NULL;
	}
	h->region = NULL;
}

void wp_hand_close(struct wp_hand *h)
{
	if (h->rack)
		wp_hand_detach(h);
	if (h->mr)
		(void)ibv_dereg_mr(h->mr);
	if (h->cq)
		(void)ibv_destroy_cq(h->cq);
}

struct wp_slot *wp_hand_look(const struct wp_hand *h, uint32_t slot)
{
	struct client_spot spot = client_map_find(walk_region_map(h->region),
						  wp_offset(slot), WP_SLOT);

	return (struct wp_slot *)(uintptr_t)(h->link[spot.piece]->addr +
					     spot.offset);
}

/* ---- one request at a time ----------------------------------------------- */

struct request {
	enum ibv_wr_opcode opcode;
	uint64_t at; /* offset in the region */
	uint32_t bytes;
	uint64_t compare, swap;
};

/* What is written stands in the area, where the old word of a swap goes. */
static int request(struct wp_hand *h, const struct request *r)
{
	struct client_spot spot =
		client_map_find(walk_region_map(h->region), r->at, r->bytes);
	struct client_link *link = h->link[spot.piece];
	struct ibv_sge sge = {.addr = (uintptr_t)h->area,
			      .length = r->bytes,
			      .lkey = h->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = r->opcode,
				       .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;
	int err;

	if (r->opcode == IBV_WR_RDMA_WRITE) {
		wr.wr.rdma.remote_addr = link->addr + spot.offset;
		wr.wr.rdma.rkey = link->rkey;
	} else {
		wr.wr.atomic.remote_addr = link->addr + spot.offset;
		wr.wr.atomic.rkey = link->rkey;
		wr.wr.atomic.compare_add = r->compare;
		wr.wr.atomic.swap = r->swap;
	}
	err = ibv_post_send(link->qp, &wr, &bad);
	while (!err && ibv_poll_cq(h->cq, 1, &wc) == 0)
		client_clock_relax(&h->host->clock);
	return err ? -err : client_wc_errno(wc.status);
}

static int put_word(struct wp_hand *h, uint64_t at, uint64_t word)
{
	memcpy(h->area, &word, sizeof(word));
	return request(h, &(struct request){.opcode = IBV_WR_RDMA_WRITE,
					    .at = at,
					    .bytes = sizeof(word)});
}

/* *was: what stood there. */
static int swap_word(struct wp_hand *h, uint64_t at, uint64_t compare,
		     uint64_t swap, uint64_t *was)
{
	int err = request(h,
			  &(struct request){.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
					    .at = at,
					    .bytes = sizeof(*was),
					    .compare = compare,
					    .swap = swap});

	if (!err)
		memcpy(was, h->area, sizeof(*was));
	return err;
}

/* ---- the writer ---------------------------------------------------------- */

static int64_t invoke(struct wp_hand *h, unsigned key, enum lin_call call,
		      uint64_t a, uint64_t b)
{
	struct play_run *r = &h->p->run;

	return lin_invoke(r->history, 10, lin_int(h->g->number * 64 + key),
			  call, lin_int(a), lin_int(b), play_now_ns(r));
}

static void finish(struct wp_hand *h, int64_t op, int err, enum lin_said said)
{
	struct play_run *r = &h->p->run;

	lin_return(r->history, op, err ? LIN_INFO : LIN_OK, said, lin_nil(),
		   play_now_ns(r));
}

/* A new node before the first of its chain. */
static int insert(struct wp_hand *h, unsigned key)
{
	struct wp *p = h->p;
	const uint64_t at = wp_offset(p->key[key]);
	const uint64_t head = wp_offset(p->bucket[(key - 1) % WP_BUCKETS]) +
			      offsetof(struct wp_slot, next);
	uint64_t value = wp_value(p, h->g, key), first = 0, was = 0;
	int64_t op = invoke(h, key, LIN_WRITE, value, 0);
	int err = put_word(h, at + offsetof(struct wp_slot, value), value);

	/* Whatever becomes of it, nobody inserts it again. */
	h->g->has[key] = WP_UNSURE;
	while (!err) {
		err = put_word(h, at + offsetof(struct wp_slot, next), first);
		if (!err)
			err = swap_word(h, head, first, at, &was);
		if (err || was == first)
			break;
		first = was;
	}
	finish(h, op, err, LIN_SAID_NOTHING);
	if (!err)
		h->g->has[key] = WP_LINKED;
	p->n->inserts += !err;
	return err;
}

static int write_blob(struct wp_hand *h, unsigned key)
{
	const uint8_t tag = ++h->g->tag[key];

	for (unsigned i = 0; i < WP_BLOB; i++)
		h->area[i] = wp_blob_byte(key, tag, i);
	return request(h,
		       &(struct request){.opcode = IBV_WR_RDMA_WRITE,
					 .at = wp_offset(h->p->key[key]) +
					       offsetof(struct wp_slot, blob),
					 .bytes = WP_BLOB});
}

static int change(struct wp_hand *h, unsigned key, uint64_t *known)
{
	struct wp *p = h->p;
	const uint64_t at =
		wp_offset(p->key[key]) + offsetof(struct wp_slot, value);
	uint64_t value = wp_value(p, h->g, key), was = 0;
	int64_t op;
	int err;

	if (sim_rand_below(&h->rand, 2)) {
		op = invoke(h, key, LIN_WRITE, value, 0);
		err = put_word(h, at, value);
		finish(h, op, err, LIN_SAID_NOTHING);
		*known = value;
		p->n->writes += !err;
		return err;
	}
	op = invoke(h, key, LIN_CAS, *known, value);
	err = swap_word(h, at, *known, value, &was);
	finish(h, op, err, was == *known ? LIN_YES : LIN_NO);
	if (!err && was != *known && !wp_value_is_of(was, h->g, key))
		play_fail(&p->run, "key %u had %#lx, which nobody wrote", key,
			  was);
	*known = was == *known ? value : was;
	p->n->cases += !err;
	return err;
}

/* The region of now, open; waits for it. */
static void follow(struct wp_hand *h)
{
	struct wp *p = h->p;

	while (!h->region || h->g != p->now || h->g->is_lost) {
		while (!p->now->is_ready)
			sim_fiber_sleep_ps(p->run.sim, 10 * SIM_US);
		h->g = p->now;
		if (wp_hand_attach(h, "live", p->nodes.count, false))
			sim_fiber_sleep_ps(p->run.sim, 10 * SIM_US);
	}
}

void wp_writer_main(void *arg)
{
	struct wp_hand *h = arg;
	struct wp *p = h->p;
	uint64_t known[WP_KEYS + 1] = {0};

	for (unsigned i = 0; i < WRITER_OPS; i++) {
		unsigned key = sim_rand_range(&h->rand, 1, WP_KEYS);
		int err;

		follow(h);
		if (h->g->has[key] == WP_ABSENT)
			err = insert(h, key);
		else if (h->g->has[key] == WP_UNSURE ||
			 sim_rand_below(&h->rand, 4) == 0)
			err = write_blob(h, key);
		else
			err = change(h, key, &known[key]);
		if (err) /* the key is dead, or the node */
			wp_hand_detach(h);
		sim_fiber_sleep_ps(p->run.sim,
				   sim_rand_below(&h->rand, PAUSE_US_MAX) *
					   SIM_US);
	}
	wp_hand_detach(h);
	p->writer_done = true;
}

/* ---- the guest ----------------------------------------------------------- */

uint64_t wp_guest_visits(const struct wp *p)
{
	uint64_t sum = 0;

	for (unsigned i = 1; i <= WP_GUEST_RING; i++)
		sum += wp_hand_look(&p->guest, i)->tally;
	return sum;
}

static void judge_circle(struct wp *p, const struct aq_walk_result *r,
			 const struct wp_store_pad *pad)
{
	if (r->err == -ELOOP)
		p->guest_acked += r->iterations;
	else
		p->guest_unknown += WP_CIRCLE_MAX;
	if (r->err == -ELOOP && pad->was != r->iterations)
		play_fail(&p->run, "a circle of %lu iterations counted %lu",
			  r->iterations, pad->was);
	/* Where its key was taken back, a refusal that is lost is silence. */
	if (r->err != -ELOOP && r->err != -ESTALE &&
	    !(r->err == -EHOSTDOWN && p->is_revoked) && !p->guest_lost)
		play_fail(&p->run, "a circle ended with %d, %s", r->err,
			  error_last());
}

/* Each iteration once, also where the key was taken back in between. */
static void check_circles(struct wp *p)
{
	uint64_t have = wp_guest_visits(p);

	if (have < p->guest_acked || have > p->guest_acked + p->guest_unknown)
		play_fail(&p->run,
			  "circles were gone round in %lu steps, but walks "
			  "made %lu, and %lu are unknown",
			  have, p->guest_acked, p->guest_unknown);
}

/* Walks for ever in a circle that counts, as long as its key opens it. */
void wp_guest_main(void *arg)
{
	struct wp_hand *h = arg;
	struct wp *p = h->p;
	int err = aq_walks_open(h->rack, 1, &p->guest_walks);

	if (!err)
		err = wp_ring_load(h->rack, &p->guest_walk);
	for (unsigned i = 0; i < GUEST_WALKS && !err; i++) {
		struct wp_store_pad pad = {0};
		struct aq_walk_result r;

		err = aq_walks_submit(p->guest_walks, p->guest_walk, h->region,
				      wp_offset(1), &pad, sizeof(pad), NULL);
		while (!err && aq_walks_poll(p->guest_walks, &r, 1) == 0)
			client_clock_relax(&h->host->clock);
		if (!err)
			judge_circle(p, &r, &pad);
	}
	aq_walks_close(p->guest_walks);
	p->guest_walks = NULL;
	if (!p->guest_lost)
		check_circles(p);
	p->guest_done = true;
}
