/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the hostile tenant asks for by verbs: one-sided requests beyond its
 * rights, lies to the page server and to its chains, keys that it has kept.
 */
#include <string.h>

#include "client/verbs_api.h"
#include "hostile_play_priv.h"

enum {
	TAG_OTHERS = HP_KEYS, /* tags below are those of pieces */
};

static struct hp_foe_desk *desk_of(const struct hp_foe *f)
{
	return (struct hp_foe_desk *)f->desk->mem;
}

static uint64_t far_of(const struct hp_foe *f, const void *at)
{
	return f->desk->addr + (uint64_t)((const uint8_t *)at - f->desk->mem);
}

/* ---- one-sided ---------------------------------------------------------- */

struct target {
	uint64_t addr;
	uint32_t rkey;
	uint32_t bytes;
	bool is_known; /* what it reads there is no secret */
};

static void use(struct hp_foe *f, enum ibv_wr_opcode opcode,
		const struct target *t)
{
	struct hp_foe_desk *d = desk_of(f);
	bool is_atomic = opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	uint8_t *near = opcode == IBV_WR_RDMA_WRITE ? d->out
			: t->is_known		    ? d->aside
						    : d->in;
	struct ibv_sge sge = {.addr = (uintptr_t)near,
			      .length = is_atomic ? 8 : t->bytes,
			      .lkey = f->desk->mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = opcode,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .send_flags = IBV_SEND_SIGNALED};
	struct ibv_qp *qp = f->conn[sim_rand_below(&f->rand, HP_CONNS)].near_qp;

	if (is_atomic) {
		wr.wr.atomic.remote_addr = t->addr;
		wr.wr.atomic.rkey = t->rkey;
		wr.wr.atomic.swap = sim_rand_below(&f->rand, HP_TELLTALE);
	} else {
		wr.wr.rdma.remote_addr = t->addr;
		wr.wr.rdma.rkey = t->rkey;
	}
	/* A queue pair that is full or broken does not matter to it. */
	if (qp)
		(void)!ibv_post_send(qp, &wr, &bad);
}

static enum ibv_wr_opcode some_opcode(struct hp_foe *f)
{
	static const enum ibv_wr_opcode all[] = {
		IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_CMP_AND_SWP};

	return all[sim_rand_below(&f->rand, ARRAY_LEN(all))];
}

void hp_ask_own(struct hp_foe *f)
{
	uint32_t at = sim_rand_below(&f->rand, HP_REGION_BYTES / 8) * 8;
	struct target t = {
		.addr = (uintptr_t)f->tenant.mem + at,
		.rkey = f->tenant.mr->rkey,
		.bytes = sim_rand_range(&f->rand, 1, HP_REGION_BYTES - at)};

	use(f, some_opcode(f), &t);
}

void hp_ask_beyond(struct hp_foe *f)
{
	const struct hp_client *c =
		&f->p->client[sim_rand_below(&f->rand, HP_HONEST)];
	uint32_t bytes = sim_rand_range(&f->rand, 1, 64);
	uint32_t over = sim_rand_range(&f->rand, 1, 8);
	struct target t = {.addr = (uintptr_t)f->tenant.mem,
			   .rkey = f->tenant.mr->rkey,
			   .bytes = bytes};
	enum ibv_wr_opcode opcode = some_opcode(f);

	f->p->n->lies++;
	switch (sim_rand_below(&f->rand, 12)) {
	case 0: /* with somebody's own key */
		t.addr = (uintptr_t)c->tenant.mem;
		t.rkey = c->tenant.mr->rkey;
		break;
	case 1: /* what it may read */
		t = (struct target){.addr = (uintptr_t)f->grant_mr->addr,
				    .rkey = f->grant_mr->rkey,
				    .bytes = bytes,
				    .is_known = true};
		opcode = IBV_WR_RDMA_READ;
		break;
	case 2: /* and may not write */
		t.addr = (uintptr_t)f->grant_mr->addr;
		t.rkey = f->grant_mr->rkey;
		opcode = IBV_WR_RDMA_WRITE;
		break;
	case 3:
		t.addr = (uintptr_t)f->grant_mr->addr + HP_GRANT_BYTES;
		t.rkey = f->grant_mr->rkey;
		break;
	case 4: /* its own region from before its beginning */
		t.addr -= over;
		break;
	case 5:
		t.addr = rng_u64(&f->rand);
		break;
	default: /* over its end by a little */
		t.bytes = over;
		t.addr += HP_REGION_BYTES -
			  (over > 1 ? sim_rand_below(&f->rand, over) : 0);
	}
	use(f, opcode, &t);
}

void hp_ask_guess(struct hp_foe *f)
{
	struct target t = {.addr = (uintptr_t)f->p->client[0].tenant.mem,
			   .rkey = (uint32_t)rng_u64(&f->rand),
			   .bytes = 1};

	f->p->n->guesses++;
	use(f, some_opcode(f), &t);
}

/* ---- messages ----------------------------------------------------------- */

static uint64_t some_index(struct hp_foe *f)
{
	switch (sim_rand_below(&f->rand, 24)) {
	case 0:
		return rng_u64(&f->rand);
	case 1:
	case 2:
		return HP_FOE_PAGES + sim_rand_below(&f->rand, HP_FOE_ENTRIES);
	default:
		return sim_rand_below(&f->rand, HP_FOE_PAGES);
	}
}

static void receive(struct ibv_qp *qp)
{
	struct ibv_recv_wr wr = {0}, *bad;

	(void)!ibv_post_recv(qp, &wr, &bad); /* may be broken */
}

/* `bytes` in all, of which the first are the head's. */
static void send(struct hp_foe *f, struct ibv_qp *qp, const void *head,
		 uint32_t head_bytes, uint32_t bytes, const uint32_t *imm)
{
	struct page_request *at = &desk_of(f)->head[f->next_head++ % HP_HEADS];
	struct ibv_sge sge[2] = {{.addr = (uintptr_t)at,
				  .length = u32_min(head_bytes, bytes),
				  .lkey = f->desk->mr->lkey},
				 {.addr = (uintptr_t)desk_of(f)->out,
				  .lkey = f->desk->mr->lkey}};
	struct ibv_send_wr *bad,
		wr = {.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		      .imm_data = imm ? htobe32(*imm) : 0,
		      .sg_list = head_bytes ? sge : &sge[1],
		      .num_sge = head_bytes ? 2 : 1,
		      .send_flags = IBV_SEND_SIGNALED};

	memcpy(at, head, head_bytes);
	sge[1].length = bytes - sge[0].length;
	(void)!ibv_post_send(qp, &wr, &bad); /* may be full or broken */
}

static void remember_free(struct hp_foe *f, unsigned guest, uint64_t index)
{
	for (unsigned i = 0; i < HP_KEYS; i++)
		if (f->key[i].index == index && f->key[i].guest == guest)
			f->key[i].is_stale = true;
}

static void ask(struct hp_foe *f, unsigned space, enum page_wire_kind kind,
		uint32_t tag)
{
	unsigned n = sim_rand_below(&f->rand, HP_GUESTS);
	struct hp_guest *g = &f->guest[space][n];
	struct page_request r = {
		.kind = be32_put(kind),
		.tag = be32_put(tag),
		.index = be64_put(some_index(f)),
		.buf = be64_put(far_of(f, desk_of(f)->in)),
		.rkey = be32_put(sim_rand_below(&f->rand, 60)
					 ? f->desk->rkey
					 : (uint32_t)rng_u64(&f->rand))};
	uint32_t bytes = sizeof(r);

	if (!g->guest)
		return;
	if (tag < HP_KEYS) {
		r.buf = be64_put(
			far_of(f, desk_of(f)->aside +
					  tag * sizeof(struct page_piece)));
		f->key[tag] = (struct hp_piece){.index = be64_get(r.index),
						.guest = n};
	}
	if (kind == PAGE_WIRE_FREE)
		remember_free(f, n, be64_get(r.index));
	if (kind == PAGE_WIRE_STORE)
		bytes += HP_PAGE_BYTES;
	if (sim_rand_below(&f->rand, 16) == 0)
		bytes = sim_rand_range(&f->rand, 1, bytes + 8);
	f->p->n->calls++;
	if (kind == PAGE_WIRE_LOAD && sim_rand_below(&f->rand, 2)) {
		f->p->n->withheld++;
		g->withheld++;
	} else {
		receive(g->pair.near_qp);
	}
	send(f, g->pair.near_qp, &r, sizeof(r), bytes, NULL);
}

void hp_ask_page(struct hp_foe *f)
{
	static const enum page_wire_kind kinds[] = {
		PAGE_WIRE_STORE,      PAGE_WIRE_STORE, PAGE_WIRE_LOAD,
		PAGE_WIRE_LOAD,	      PAGE_WIRE_LOAD,  PAGE_WIRE_INVALIDATE,
		PAGE_WIRE_INVALIDATE, PAGE_WIRE_FREE,  0};

	ask(f, HP_BY_SERVER, kinds[sim_rand_below(&f->rand, ARRAY_LEN(kinds))],
	    TAG_OTHERS);
}

static void use_piece(struct hp_foe *f)
{
	struct hp_piece *k = &f->key[sim_rand_below(&f->rand, HP_KEYS)];
	uint32_t at = sim_rand_below(&f->rand, HP_PAGE_BYTES);
	struct target t = {
		.addr = k->addr + at,
		.rkey = k->rkey,
		.bytes = sim_rand_range(&f->rand, 1, HP_PAGE_BYTES - at)};

	/* One that it has given up by itself is not worth a connection. */
	if (!k->rkey || (k->is_stale && sim_rand_below(&f->rand, 16)))
		return;
	f->p->n->pieces++;
	use(f,
	    sim_rand_below(&f->rand, 2) ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
	    &t);
}

void hp_ask_piece(struct hp_foe *f)
{
	switch (sim_rand_below(&f->rand, 8)) {
	case 0:
	case 1:
	case 2:
		ask(f, HP_BY_PIECES, PAGE_WIRE_ALLOCATE,
		    sim_rand_below(&f->rand, HP_KEYS));
		break;
	case 3:
	case 4:
		ask(f, HP_BY_PIECES, PAGE_WIRE_FREE, TAG_OTHERS);
		break;
	default:
		use_piece(f);
	}
}

/* ---- chains ------------------------------------------------------------- */

void hp_ask_chain(struct hp_foe *f)
{
	enum page_chain chain = sim_rand_below(&f->rand, PAGE_CHAIN_COUNT);
	uint64_t entry = some_index(f) * PAGE_CHAIN_ENTRY_BYTES +
			 (sim_rand_below(&f->rand, 40) == 0);
	struct page_chain_load load = page_chain_load_of(
		entry, TAG_OTHERS, far_of(f, desk_of(f)->in), f->desk->rkey);
	struct page_chain_call give = {.entry = be64_put(entry),
				       .imm = be32_put(TAG_OTHERS)};
	struct ibv_qp *qp = f->pair[chain].near_qp;
	uint32_t imm = (uint32_t)entry;

	if (!qp)
		return;
	f->p->n->chained++;
	if (chain == PAGE_CHAIN_LOAD && sim_rand_below(&f->rand, 2)) {
		f->p->n->withheld++;
		f->chain_withheld[chain]++;
	} else {
		receive(qp);
	}
	if (chain == PAGE_CHAIN_LOAD)
		send(f, qp, &load, sizeof(load), sizeof(load), NULL);
	else if (chain == PAGE_CHAIN_INVALIDATE)
		send(f, qp, &give, sizeof(give), sizeof(give), NULL);
	else
		send(f, qp, &give, 0,
		     sim_rand_below(&f->rand, 20)
			     ? HP_PAGE_BYTES
			     : sim_rand_range(&f->rand, 1, HP_PAGE_BYTES),
		     &imm);
}

/* ---- answers ------------------------------------------------------------ */

void hp_ask_receive(struct hp_foe *f)
{
	unsigned i = sim_rand_below(&f->rand, HP_GUESTS + PAGE_CHAIN_COUNT);

	if (i < HP_GUESTS) {
		struct hp_guest *g = &f->guest[HP_BY_SERVER][i];

		for (; g->guest && g->withheld; g->withheld--)
			receive(g->pair.near_qp);
		return;
	}
	i -= HP_GUESTS;
	for (; f->pair[i].near_qp && f->chain_withheld[i];
	     f->chain_withheld[i]--)
		receive(f->pair[i].near_qp);
}

void hp_ask_poll(struct hp_foe *f)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(f->cq, 1, &wc) > 0) {
		uint32_t imm = be32toh(wc.imm_data);
		const struct page_piece *piece =
			(const void *)(desk_of(f)->aside +
				       imm * sizeof(*piece));

		if (wc.status != IBV_WC_SUCCESS || !(wc.opcode & IBV_WC_RECV) ||
		    imm >= HP_KEYS)
			continue;
		f->key[imm].addr = be64_get(piece->addr);
		f->key[imm].rkey = be32_get(piece->rkey);
	}
}
