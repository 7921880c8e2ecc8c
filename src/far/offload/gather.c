/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small reads of one memory node leave together, in one packet, and come back
 * in one, where the node gathers (wire/gather_wire.h). Two packets of its own
 * are most of what a small record costs on a software NIC.
 *
 * The list and the answer have a place beside the mirror; the answer is copied
 * from there to where its records belong. Gathers and READs of a session are on
 * one queue pair, and begin and end in the order of its parts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "engine_priv.h"
#include "wire/gather_wire.h"

enum {
	/* Of the slot of one gather: what aqdv_post_walk wants, then the pad.
	 */
	PAD_AT = AQDV_WALK_RESULT_BYTES,
	SLOT_BYTES = 4096,
	/* Packets that bring less are not worth it, and larger records, or of
	 * which a packet brings fewer, are worth packets of their own. */
	PAD_LEAST = 256,
	RECORD_MAX = 1008,
	RECORDS_LEAST = 4,
};
STATIC_ASSERT((int)PAD_AT + (int)AQDV_WALK_PAD_MAX <= (int)SLOT_BYTES,
	      "a slot");

/* Where a record belongs in the mirror. */
struct home {
	uint32_t at;
	uint32_t len_bytes;
};

struct gather {
	uint32_t count; /* of places */
	uint32_t bytes; /* of the answer */
	uint32_t parts;
	struct place first; /* for one that stays alone */
	uint64_t end;	    /* in the region, of the last place */
	struct home home[GATHER_WIRE_PLACES];
};

struct gathers {
	uint32_t bytes_max;  /* of a list, and of an answer */
	uint32_t record_max; /* that is gathered */
	uint32_t posted;     /* since the beginning */
	uint32_t done;
	bool is_open; /* the one behind `posted` has places */
	uint8_t *slots;
	struct gather gather[OFFLOAD_GATHERS];
};

static bool is_wanted(const struct offload_session *s, unsigned node)
{
	const struct offload_node_config *c = &s->config.node[node];

	return s->engine->config.post_walk && !c->err &&
	       c->gather_bytes >= PAD_LEAST;
}

uint64_t offload_gather_memory(const struct offload_session *s)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < s->config.node_count; i++)
		if (is_wanted(s, i))
			bytes += OFFLOAD_GATHERS * SLOT_BYTES;
	return bytes;
}

int offload_gather_open(struct offload_session *s, uint8_t *memory)
{
	for (unsigned i = 0; i < s->config.node_count; i++) {
		struct gathers *g;

		if (!is_wanted(s, i))
			continue;
		g = calloc(1, sizeof(*g));
		if (!g)
			return error_set(-ENOMEM, "no memory for a session");
		g->bytes_max = u32_min(s->config.node[i].gather_bytes,
				       AQDV_WALK_PAD_MAX);
		g->record_max =
			u32_min(RECORD_MAX, g->bytes_max / RECORDS_LEAST);
		g->slots = memory;
		memory += OFFLOAD_GATHERS * SLOT_BYTES;
		s->node[i].gathers = g;
	}
	return 0;
}

void offload_gather_close(struct offload_session *s)
{
	for (unsigned i = 0; i < s->config.node_count; i++)
		free(s->node[i].gathers);
}

static uint8_t *slot_of(const struct gathers *g, uint32_t number)
{
	return g->slots + (size_t)(number % OFFLOAD_GATHERS) * SLOT_BYTES;
}

/* ---- places ---------------------------------------------------------------
 */

/* Whether it goes on where the last place ends, in the region and at home. */
static bool goes_on(const struct offload_session *s, const struct gather *g,
		    const struct place *p)
{
	const struct home *last = &g->home[g->count - 1];

	return g->end == p->far &&
	       (uintptr_t)s->mirror + last->at + last->len_bytes == p->local;
}

static bool has_room(const struct offload_session *s, const struct gathers *gs,
		     const struct place *p)
{
	const struct gather *g = &gs->gather[gs->posted % OFFLOAD_GATHERS];

	if (p->rkey != g->first.rkey ||
	    g->bytes + gather_place_room(p->len_bytes) > gs->bytes_max)
		return false;
	return goes_on(s, g, p) ||
	       (g->count < GATHER_WIRE_PLACES &&
		(g->count + 1) * sizeof(le64) <= gs->bytes_max);
}

static void open_one(struct gathers *gs, const struct place *p)
{
	struct gather *g = &gs->gather[gs->posted % OFFLOAD_GATHERS];

	g->count = g->bytes = g->parts = 0;
	g->first = *p;
	gs->is_open = true;
}

static void add(struct offload_session *s, struct gathers *gs,
		const struct place *p)
{
	struct gather *g = &gs->gather[gs->posted % OFFLOAD_GATHERS];
	uint8_t *list = slot_of(gs, gs->posted) + PAD_AT;
	uint64_t at = p->far;
	le64 word;

	if (g->count && goes_on(s, g, p)) {
		struct home *last = &g->home[--g->count];

		g->bytes -= gather_place_room(last->len_bytes);
		at -= last->len_bytes;
		last->len_bytes += p->len_bytes;
	} else {
		g->home[g->count] = (struct home){
			.at = (uint32_t)(p->local - (uintptr_t)s->mirror),
			.len_bytes = p->len_bytes};
	}
	word = gather_place_put((struct gather_place){
		.at = at, .len_bytes = g->home[g->count].len_bytes});
	memcpy(list + g->count * sizeof(word), &word, sizeof(word));
	g->bytes += gather_place_room(g->home[g->count].len_bytes);
	g->count++;
	g->parts++;
	g->end = p->far + p->len_bytes;
}

int offload_gather_take(struct offload_session *s, unsigned node,
			const struct place *p)
{
	struct wr_list *c = &s->engine->node_wrs[node][OFFLOAD_RD];
	struct gathers *gs = s->node[node].gathers;
	bool is_small;
	int err = 0;

	if (!gs)
		return 0;
	is_small = p->len_bytes <= gs->record_max &&
		   p->far + p->len_bytes <= 1ull << GATHER_WIRE_AT_BITS;
	/* Requests are posted in the order of their parts. */
	if (gs->is_open && (!is_small || !has_room(s, gs, p)))
		err = offload_gather_post(s, node);
	if (err || !is_small)
		return err;
	if (!gs->is_open) {
		if (offload_session_goes_on(c, p))
			return 0;
		err = offload_session_flush(s, node, OFFLOAD_RD);
		if (!err && gs->posted - gs->done == OFFLOAD_GATHERS)
			err = -EAGAIN;
		if (err)
			return err;
		open_one(gs, p);
	}
	add(s, gs, p);
	return 1;
}

/* ---- out, and back --------------------------------------------------------
 */

/* What stays alone is a READ, which may become a longer one. */
static void post_alone(struct offload_session *s, unsigned node,
		       const struct gather *g)
{
	struct place p = g->first;

	p.len_bytes = g->home[0].len_bytes;
	s->engine->node_wrs[node][OFFLOAD_RD].parts += g->parts;
	offload_session_add_wr(s, node, OFFLOAD_RD, &p);
}

int offload_gather_post(struct offload_session *s, unsigned node)
{
	struct node_queue *q = &s->node[node].queue[OFFLOAD_RD];
	struct gathers *gs = s->node[node].gathers;
	struct aqdv_walk_wr wr, *bad;
	struct ibv_sge sge;
	struct gather *g;
	uint32_t list_bytes;

	if (!gs || !gs->is_open)
		return 0;
	g = &gs->gather[gs->posted % OFFLOAD_GATHERS];
	gs->is_open = false;
	if (g->count == 1) {
		post_alone(s, node, g);
		return 0;
	}
	list_bytes = g->count * (uint32_t)sizeof(le64);
	sge = (struct ibv_sge){.addr = (uintptr_t)slot_of(gs, gs->posted),
			       .length = PAD_AT + u32_max(list_bytes, g->bytes),
			       .lkey = s->mr->lkey};
	wr = (struct aqdv_walk_wr){
		.wr_id = offload_session_wr_id(s, WR_GATHER, node, q->posted),
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.program = GATHER_WIRE_PROGRAM,
		.rkey = g->first.rkey,
		.iterations = g->count,
		.send_bytes = list_bytes};
	if (q->posted - q->done == g->parts)
		q->moved_ns = s->engine->now_ns;
	gs->posted++;
	engine_count(s->engine, OFFLOAD_C_GATHERS, 1);
	return s->engine->config.post_walk(q->qp, &wr, &bad) ? -EHOSTDOWN : 0;
}

/* Records that lie one behind the other in both are copied at once. */
static void bring_home(struct offload_session *s, const struct gather *g,
		       const uint8_t *from)
{
	for (uint32_t i = 0; i < g->count;) {
		uint32_t at = g->home[i].at, len = g->home[i].len_bytes;

		while (++i < g->count && g->home[i].at == at + len &&
		       len % GATHER_WIRE_ALIGN == 0)
			len += g->home[i].len_bytes;
		memcpy(s->mirror + at, from, len);
		from += gather_place_room(len);
	}
}

void offload_gather_done(struct offload_session *s, unsigned node,
			 uint32_t count)
{
	struct gathers *gs = s->node[node].gathers;
	const struct gather *g = &gs->gather[gs->done % OFFLOAD_GATHERS];
	const uint8_t *slot = slot_of(gs, gs->done);
	struct aqdv_walk_result result;

	memcpy(&result, slot, sizeof(result));
	gs->done++;
	if (result.status != AQDV_WALK_DONE || result.pad_bytes != g->bytes) {
		log_info("offload", "a memory node ends a gather with %u",
			 result.status);
		offload_session_break(s, -EHOSTDOWN);
		return;
	}
	bring_home(s, g, slot + PAD_AT);
	offload_session_part_done(s, node, OFFLOAD_RD, count);
}
