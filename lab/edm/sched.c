/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler's notification queues and port holds. Which message is granted
 * when a port is free is decided in sched_match.c and sched_pim.c.
 *
 * Every port has an unordered list of the pairs that compete for it, with the
 * key of each pair's head in the list itself. Looking for the best is a walk
 * over adjacent words; at the loads of interest the list has a few to a few
 * dozen elements, and hardware does it in one cycle anyway.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "edm_constants.h"
#include "sched_priv.h"

enum {
	ENTRIES_FIRST = 1024,
	ELASTIC_BLOCKS = 4, /* the transmitter's back-pressure path */
};

static int config_check(const struct edm_sched_config *c)
{
	if (c->ports < 2 || c->ports > EDM_NODES_MAX)
		return error_set(-EINVAL, "ports: %u is not in 2..%d", c->ports,
				 EDM_NODES_MAX);
	if (!c->lanes || c->lanes > 64)
		return error_set(-EINVAL, "lanes: %u is not in 1..64",
				 c->lanes);
	if (!c->active_max || c->active_max > UINT16_MAX)
		return error_set(-EINVAL,
				 "active: %u notifications per pair "
				 "is not in 1..65535",
				 c->active_max);
	if (c->chunk_bytes < 8 || c->chunk_bytes > 65536)
		return error_set(-EINVAL, "chunk: %u B is not in 8..65536",
				 c->chunk_bytes);
	if (!c->block_ps)
		return error_set(-EINVAL, "block time is 0");
	if (c->discipline == EDM_SLOT &&
	    c->slot_blocks <
		    edm_blocks(c->md, c->chunk_bytes + EDM_ADDRESS_BYTES))
		return error_set(-EINVAL,
				 "slot: %u blocks do not hold a chunk "
				 "of %u B",
				 c->slot_blocks, c->chunk_bytes);
	if (c->discipline == EDM_PIM &&
	    (!c->pim_iterations || !c->pim_iteration_ps))
		return error_set(-EINVAL, "PIM needs an iteration and a time");
	return 0;
}

static int memory_get(struct edm_sched *s)
{
	size_t n = s->c.ports, wide = n * s->c.lanes;

	s->pair = calloc(n * wide, sizeof(*s->pair));
	s->rival_memory = malloc(sizeof(struct sched_rival) * n * wide * 2);
	s->depth = calloc(n, sizeof(*s->depth));
	s->round = calloc(n, sizeof(*s->round));
	s->later = calloc(n, sizeof(*s->later));
	s->round_lane = calloc(n, sizeof(*s->round_lane));
	s->stir = calloc(2 * n, sizeof(*s->stir));
	s->in_round = calloc(2 * n, sizeof(*s->in_round));
	s->next_round = calloc(2 * n, sizeof(*s->next_round));
	s->entry = malloc(ENTRIES_FIRST * sizeof(*s->entry));
	s->entry_size = ENTRIES_FIRST;
	s->entry_used = 1;
	if (!s->pair || !s->rival_memory || !s->depth || !s->round ||
	    !s->later || !s->entry || !s->round_lane || !s->stir ||
	    !s->in_round || !s->next_round)
		return -ENOMEM;
	for (int side = 0; side < SCHED_SIDES; side++) {
		s->port[side] = calloc(n, sizeof(**s->port));
		if (!s->port[side])
			return -ENOMEM;
		for (uint32_t p = 0; p < n; p++)
			s->port[side][p].rival =
				s->rival_memory + (side * n + p) * wide;
	}
	return 0;
}

int edm_sched_create(const struct edm_sched_config *config,
		     struct edm_sched **out)
{
	struct edm_sched *s;
	int rc = config_check(config);

	if (rc)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->c = *config;
	rc = memory_get(s);
	if (rc) {
		edm_sched_destroy(s);
		return rc;
	}
	*out = s;
	return 0;
}

void edm_sched_destroy(struct edm_sched *s)
{
	if (!s)
		return;
	free(s->pair);
	free(s->rival_memory);
	free(s->depth);
	free(s->round);
	free(s->later);
	free(s->round_lane);
	free(s->stir);
	free(s->in_round);
	free(s->next_round);
	free(s->entry);
	free(s->age);
	free(s->age_order);
	free(s->port[SCHED_SRC]);
	free(s->port[SCHED_DST]);
	free(s);
}

uint32_t edm_sched_backlog(const struct edm_sched *s)
{
	return s->backlog;
}

bool edm_sched_src_free(const struct edm_sched *s, uint64_t now_ps, uint16_t p)
{
	return sched_free(s, SCHED_SRC, p, now_ps);
}

bool edm_sched_dst_free(const struct edm_sched *s, uint64_t now_ps, uint16_t p)
{
	return sched_free(s, SCHED_DST, p, now_ps);
}

void edm_sched_stats(const struct edm_sched *s, struct edm_sched_stats *out)
{
	*out = s->stats;
}

/* ---- entries and keys --------------------------------------------------- */

static uint32_t entry_get(struct edm_sched *s)
{
	uint32_t e = s->entry_free;

	if (e) {
		s->entry_free = s->entry[e].next;
		return e;
	}
	if (s->entry_used == s->entry_size) {
		s->entry_size *= 2;
		s->entry = realloc(s->entry, s->entry_size * sizeof(*s->entry));
		ASSERT(s->entry);
	}
	return s->entry_used++;
}

static void entry_put(struct edm_sched *s, uint32_t e)
{
	s->entry[e].live = false;
	s->entry[e].next = s->entry_free;
	s->entry_free = e;
	s->backlog--;
}

uint32_t sched_top(struct sched_port *p)
{
	uint32_t best = 0;

	if (p->top_known)
		return p->top;
	for (uint32_t i = 1; i < p->rival_count; i++)
		if (p->rival[i].key < p->rival[best].key)
			best = i;
	p->top = (uint16_t)best;
	p->top_known = true;
	return best;
}

static void rival_key_set(struct sched_port *p, uint32_t place, uint64_t key)
{
	uint64_t old = p->rival[place].key;

	p->rival[place].key = key;
	if (!p->top_known)
		return;
	if (p->top == place)
		p->top_known = key <= old;
	else if (key < p->rival[p->top].key)
		p->top = (uint16_t)place;
}

static void rival_add(struct edm_sched *s, int side, uint32_t port,
		      uint32_t peer, uint32_t lane, uint64_t key)
{
	struct sched_port *p = &s->port[side][port];
	uint32_t place = p->rival_count++;

	s->epoch++;
	p->rival[place] =
		(struct sched_rival){key, (uint16_t)peer, (uint16_t)lane};
	sched_pair_at(s, side, port, peer, lane)->place[side] = (uint16_t)place;
	if (p->rival_count == 1) {
		p->top = 0;
		p->top_known = true;
	} else if (p->top_known && key < p->rival[p->top].key) {
		p->top = (uint16_t)place;
	}
}

static void rival_remove(struct edm_sched *s, int side, uint32_t port,
			 uint32_t peer, uint32_t lane)
{
	struct sched_port *p = &s->port[side][port];
	uint32_t place = sched_pair_at(s, side, port, peer, lane)->place[side];
	uint32_t last = --p->rival_count;

	s->epoch++;
	if (p->top == place)
		p->top_known = false;
	else if (p->top == last)
		p->top = (uint16_t)place;
	if (place == last)
		return;
	p->rival[place] = p->rival[last];
	sched_pair_at(s, side, port, p->rival[place].peer, p->rival[place].lane)
		->place[side] = (uint16_t)place;
}

static void pair_show(struct edm_sched *s, uint32_t src, uint32_t dst,
		      uint32_t lane)
{
	struct sched_pair *pair = sched_pair_of(s, src, dst, lane);
	uint64_t key = sched_key(s, pair->head);

	rival_add(s, SCHED_SRC, src, dst, lane, key);
	rival_add(s, SCHED_DST, dst, src, lane, key);
}

static void pair_key_changed(struct edm_sched *s, uint32_t src, uint32_t dst,
			     uint32_t lane)
{
	struct sched_pair *pair = sched_pair_of(s, src, dst, lane);
	uint64_t key = sched_key(s, pair->head);

	s->epoch++;
	rival_key_set(&s->port[SCHED_SRC][src], pair->place[SCHED_SRC], key);
	rival_key_set(&s->port[SCHED_DST][dst], pair->place[SCHED_DST], key);
}

static void pair_head_done(struct edm_sched *s, uint32_t src, uint32_t dst,
			   uint32_t lane)
{
	struct sched_pair *pair = sched_pair_of(s, src, dst, lane);
	uint32_t e = pair->head;

	pair->head = s->entry[e].next;
	pair->count--;
	s->depth[dst]--;
	entry_put(s, e);
	if (pair->head) {
		pair_key_changed(s, src, dst, lane);
		return;
	}
	pair->tail = SCHED_NONE;
	rival_remove(s, SCHED_SRC, src, dst, lane);
	rival_remove(s, SCHED_DST, dst, src, lane);
}

/* ---- age cap ------------------------------------------------------------- */

static void age_push(struct edm_sched *s, uint32_t e)
{
	if (s->age_count == s->age_size) {
		uint32_t size = s->age_size ? 2 * s->age_size : ENTRIES_FIRST;
		uint32_t *age = malloc(size * sizeof(*age));
		uint64_t *order = malloc(size * sizeof(*order));

		ASSERT(age && order);
		for (uint32_t i = 0; i < s->age_count; i++) {
			uint32_t at = (s->age_head + i) % s->age_size;

			age[i] = s->age[at];
			order[i] = s->age_order[at];
		}
		free(s->age);
		free(s->age_order);
		s->age = age;
		s->age_order = order;
		s->age_size = size;
		s->age_head = 0;
	}
	s->age[(s->age_head + s->age_count) % s->age_size] = e;
	s->age_order[(s->age_head + s->age_count++) % s->age_size] =
		s->entry[e].order;
}

/* Messages that have waited too long compete by age from now on. A pair's
 * head is found through the rivals, so all heads are refreshed. */
static void age_apply(struct edm_sched *s, uint64_t now_ps)
{
	bool any = false;

	while (s->age_count) {
		struct sched_entry *e = &s->entry[s->age[s->age_head]];
		bool same = e->live && e->order == s->age_order[s->age_head];

		if (same && e->at_ps + s->c.age_cap_ps > now_ps)
			break;
		if (same)
			e->aged = any = true;
		s->age_head = (s->age_head + 1) % s->age_size;
		s->age_count--;
	}
	if (!any)
		return;
	for (uint32_t src = 0; src < s->c.ports; src++) {
		struct sched_port *p = &s->port[SCHED_SRC][src];

		for (uint32_t i = 0; i < p->rival_count; i++)
			pair_key_changed(s, src, p->rival[i].peer,
					 p->rival[i].lane);
	}
}

/* ---- holds and grants -----------------------------------------------------
 */

/*
 * A control block goes between the blocks of a chunk, or right behind it, and
 * moves what follows. Idle time makes up for that; what it does not make up for
 * is a port's debt. A few blocks of debt are left to the egress buffer, beyond
 * that the next hold is longer. Without it a saturated port would be overbooked
 * by one block per chunk, and its egress queue would grow without bound.
 */
static void control_charge(struct edm_sched *s, int side, uint32_t port,
			   uint32_t blocks)
{
	if (s->c.charge_control)
		s->port[side][port].debt_ps += blocks * s->c.block_ps;
}

uint64_t sched_lead_ps(const struct edm_sched *s, const struct sched_port *p)
{
	/* A matching is made while the chunk before it is on the wire, but not
	 * before that chunk itself was granted. */
	switch (s->c.discipline) {
	case EDM_PIM:
		return u64_min(s->c.pim_iterations * s->c.pim_iteration_ps,
			       p->hold_ps);
	case EDM_ASYNC:
	case EDM_RESERVE:
		return u64_min(s->c.match_ps, p->hold_ps);
	case EDM_SLOT:
		break;
	}
	return 0;
}

uint32_t sched_chunk_blocks(const struct edm_sched *s, uint32_t src,
			    uint32_t dst, uint32_t lane)
{
	const struct sched_entry *e =
		&s->entry[sched_pair_of(s, src, dst, lane)->head];

	return edm_blocks(s->c.md,
			  u32_min(e->left_bytes, s->c.chunk_bytes) +
				  (e->started ? 0 : e->first_extra_bytes));
}

static uint64_t port_hold(struct edm_sched *s, int side, uint32_t port,
			  uint64_t from_ps, uint64_t hold_ps)
{
	struct sched_port *p = &s->port[side][port];
	uint64_t idle_ps = from_ps - u64_min(from_ps, p->free_ps);
	uint64_t elastic_ps = ELASTIC_BLOCKS * s->c.block_ps;

	p->debt_ps -= u64_min(p->debt_ps, idle_ps);
	if (p->debt_ps > elastic_ps) {
		hold_ps += p->debt_ps - elastic_ps;
		p->debt_ps = elastic_ps;
	}
	p->free_ps = from_ps + hold_ps;
	p->round = s->round_number;
	p->hold_ps = hold_ps;
	p->wake_ps = p->free_ps - sched_lead_ps(s, p);
	return p->wake_ps;
}

void sched_grant(struct edm_sched *s, uint64_t now_ps, uint32_t src,
		 uint32_t dst, uint32_t lane)
{
	struct sched_pair *pair = sched_pair_of(s, src, dst, lane);
	struct sched_entry *e = &s->entry[pair->head];
	struct edm_grant g = {
		.issue_ps = u64_max(now_ps,
				    u64_max(s->port[SCHED_SRC][src].free_ps,
					    s->port[SCHED_DST][dst].free_ps)),
		.handle = e->handle,
		.bytes = u32_min(e->left_bytes, s->c.chunk_bytes),
		.blocks = sched_chunk_blocks(s, src, dst, lane),
		.src = (uint16_t)src,
		.dst = (uint16_t)dst,
		.first = !e->started,
	};
	uint64_t hold_ps = g.blocks * s->c.block_ps, src_ps, dst_ps;

	e->left_bytes -= g.bytes;
	e->started = true;
	g.last = e->left_bytes == 0;
	control_charge(s, SCHED_DST, src, g.first ? e->first_down_blocks : 1);
	src_ps = port_hold(s, SCHED_SRC, src, g.issue_ps, hold_ps);
	dst_ps = port_hold(s, SCHED_DST, dst, g.issue_ps, hold_ps);
	s->stats.grants++;
	if (g.last)
		pair_head_done(s, src, dst, lane);
	else
		pair_key_changed(s, src, dst, lane);
	s->c.grant(s->c.owner, &g);
	if (s->c.discipline == EDM_SLOT)
		return;
	s->c.wake(s->c.owner, src_ps, src << 16 | dst);
	if (dst_ps != src_ps)
		s->c.wake(s->c.owner, dst_ps, src << 16 | dst);
}

/* Somebody new waits behind the first message of this lane, which may be the
 * wanted one now: who was kept waiting for another is asked again. */
static void lane_pressed(struct edm_sched *s, uint64_t now_ps, uint32_t src,
			 uint32_t dst, uint32_t lane)
{
	pair_key_changed(s, src, dst, lane);
	sched_match_arrival(s, now_ps, src, dst, lane);
}

int edm_sched_notify(struct edm_sched *s, uint64_t now_ps,
		     const struct edm_demand *d)
{
	struct sched_pair *pair;
	uint32_t e;

	ASSERT(d->src < s->c.ports && d->dst < s->c.ports &&
	       d->lane < s->c.lanes && d->bytes);
	pair = sched_pair_of(s, d->src, d->dst, d->lane);
	if (s->port[SCHED_SRC][d->src].disabled ||
	    s->port[SCHED_DST][d->dst].disabled)
		return -ENETDOWN;
	if (pair->count >= s->c.active_max)
		return -ENOSPC;
	e = entry_get(s);
	s->entry[e] = (struct sched_entry){
		.order = s->order++,
		.at_ps = now_ps,
		.handle = d->handle,
		.left_bytes = d->bytes,
		.size_bytes = d->bytes,
		.first_extra_bytes = (uint16_t)d->first_extra_bytes,
		.first_down_blocks = (uint8_t)d->control_down_blocks,
		.live = true,
	};
	s->backlog++;
	s->stats.notifications++;
	s->depth[d->dst]++;
	s->stats.depth_max = u64_max(s->stats.depth_max, s->depth[d->dst]);
	pair->count++;
	control_charge(s, SCHED_SRC, d->control_port, d->control_up_blocks);
	if (s->c.age_cap_ps && s->c.policy != EDM_FCFS) {
		age_push(s, e);
		age_apply(s, now_ps);
	}
	if (pair->tail) {
		s->entry[pair->tail].next = e;
		pair->tail = e;
		if (s->c.policy == EDM_PAIR)
			lane_pressed(s, now_ps, d->src, d->dst, d->lane);
		return 0;
	}
	pair->head = pair->tail = e;
	pair_show(s, d->src, d->dst, d->lane);
	sched_match_arrival(s, now_ps, d->src, d->dst, d->lane);
	return 0;
}

/* A wake that is not the port's latest one is stale. */
static void release(struct edm_sched *s, uint64_t now_ps, int side,
		    uint32_t port)
{
	if (s->port[side][port].wake_ps == now_ps)
		sched_match_release(s, now_ps, side, port);
}

void edm_sched_wake(struct edm_sched *s, uint64_t now_ps, uint32_t token)
{
	uint32_t src = token >> 16, dst = token & 0xffff;

	if (s->c.age_cap_ps && s->c.policy != EDM_FCFS)
		age_apply(s, now_ps);
	if (token == SCHED_TOKEN_TICK) {
		sched_match_tick(s, now_ps);
		return;
	}
	release(s, now_ps, SCHED_SRC, src);
	release(s, now_ps, SCHED_DST, dst);
}

int edm_sched_renotify(struct edm_sched *s, uint64_t now_ps,
		       const struct edm_demand *d)
{
	struct sched_pair *pair = sched_pair_of(s, d->src, d->dst, d->lane);

	for (uint32_t e = pair->head; e; e = s->entry[e].next) {
		if (s->entry[e].handle != d->handle)
			continue;
		if (d->bytes > s->entry[e].left_bytes) {
			s->entry[e].left_bytes = d->bytes;
			s->entry[e].size_bytes =
				u32_max(s->entry[e].size_bytes, d->bytes);
			if (e == pair->head)
				pair_key_changed(s, d->src, d->dst, d->lane);
		}
		return 0;
	}
	return edm_sched_notify(s, now_ps, d);
}

void edm_sched_withdraw(struct edm_sched *s, const struct edm_demand *d)
{
	struct sched_pair *pair = sched_pair_of(s, d->src, d->dst, d->lane);
	uint32_t before = SCHED_NONE, e = pair->head;

	while (e && s->entry[e].handle != d->handle) {
		before = e;
		e = s->entry[e].next;
	}
	if (!e)
		return;
	if (!before) {
		pair_head_done(s, d->src, d->dst, d->lane);
		return;
	}
	s->entry[before].next = s->entry[e].next;
	if (pair->tail == e)
		pair->tail = before;
	pair->count--;
	s->depth[d->dst]--;
	entry_put(s, e);
}

void edm_sched_disable_port(struct edm_sched *s, uint16_t port,
			    void (*dropped)(void *owner, uint32_t handle))
{
	for (int side = 0; side < SCHED_SIDES; side++) {
		struct sched_port *p = &s->port[side][port];

		p->disabled = true;
		while (p->rival_count) {
			uint32_t peer = p->rival[0].peer;
			uint32_t lane = p->rival[0].lane;
			struct sched_pair *pair =
				sched_pair_at(s, side, port, peer, lane);

			if (dropped)
				dropped(s->c.owner,
					s->entry[pair->head].handle);
			if (side == SCHED_SRC)
				pair_head_done(s, port, peer, lane);
			else
				pair_head_done(s, peer, port, lane);
		}
	}
}

/* ---- derived sizes --------------------------------------------------------
 */

uint32_t edm_sched_iterations(uint32_t ports)
{
	uint32_t levels = 0;

	while ((1u << levels) < ports)
		levels++;
	return levels;
}

uint64_t edm_sched_matching_ps(uint32_t ports, uint32_t clock_mhz)
{
	return (EDM_CYCLES_ITERATION * UINT64_C(1000000) *
			edm_sched_iterations(ports) +
		clock_mhz - 1) /
	       clock_mhz;
}

uint32_t edm_sched_chunk_min(uint32_t ports, uint32_t clock_mhz, uint32_t gbps)
{
	uint64_t byte_ps = edm_block_ps(gbps) / 8;
	uint64_t bytes;

	if (!byte_ps)
		return 0;
	bytes = (edm_sched_matching_ps(ports, clock_mhz) + byte_ps - 1) /
		byte_ps;
	return u32_pow2_ceil((uint32_t)bytes);
}
