/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paper's engine in the switch, as a model: it stands in the network
 * without NIC and processor of its own, looks at each thread's rings at a fixed
 * rate, and turns every packet that comes back into the next one. So nothing is
 * batched: each record is written by itself, and so is the progress. Only
 * reads, which is all that figures do.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "fig_priv.h"

enum {
	DEPTH = 1024,	 /* work requests of a queue pair */
	PROBE_NS = 2000, /* the paper's, section 5.2 */
	CQES = 16,
	GREEN_AT = offsetof(struct offload_preamble, green),
	RED_AT = offsetof(struct offload_preamble, red.head),
};

/* Of the red block only what an application without writes needs. */
struct p4_news {
	uint64_t head;
	uint64_t head_reads;
	struct offload_done done;
};

STATIC_ASSERT(sizeof(struct p4_news) ==
		      sizeof(struct offload_red) -
			      offsetof(struct offload_red, head),
	      "the end of the red block");

/* Kinds of completions, in the upper half of a wr_id; the lower is the position
 * of a request. */
enum p4_wr {
	WR_PROBE = 1,
	WR_META,
	WR_DATA,
	WR_TOLD,
};

/* One application thread: the paper's "instance". */
struct fig_p4 {
	struct fig_thread *thread;
	struct ibv_cq *cq;
	struct rig_pair ring;
	struct rig_pair rail[RIG_NODES_MAX];
	uint8_t *mirror; /* of the rings; packets carry it in a switch */
	struct ibv_mr *mr;
	bool is_asking;
	uint64_t probe_ns;
	uint64_t fetched, asked; /* positions of requests */
	uint64_t done;		 /* all before it are complete and told */
	bool is_ready[DEPTH];
	/* Behind the mirror; one each, because they are sent later. */
	struct p4_news *news;
};

static void post(struct fig_p4 *p, struct ibv_qp *qp, enum ibv_wr_opcode op,
		 uint64_t near, uint64_t far, uint32_t rkey, uint32_t len_bytes,
		 uint64_t wr_id)
{
	struct ibv_sge sge = {near, len_bytes, p->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.wr_id = wr_id,
		      .sg_list = &sge,
		      .num_sge = 1,
		      .opcode = op,
		      .send_flags = wr_id ? IBV_SEND_SIGNALED : 0,
		      .wr.rdma = {.remote_addr = far, .rkey = rkey}};

	ASSERT(ibv_post_send(qp, &wr, &bad) == 0);
}

/* The same place of the rings and of their mirror. */
static void post_ring(struct fig_p4 *p, enum ibv_wr_opcode op, uint64_t at,
		      uint32_t len_bytes, uint64_t wr_id)
{
	const struct rig_app *a = p->thread->app;

	post(p, p->ring.near_qp, op, (uintptr_t)p->mirror + at,
	     (uintptr_t)a->memory + at, a->mr->rkey, len_bytes, wr_id);
}

static const struct offload_meta *meta_of(const struct fig_p4 *p, uint64_t pos)
{
	const struct offload_map *m = &p->thread->app->map;

	return (const void *)(p->mirror + m->meta_at +
			      (pos & m->mask) * sizeof(struct offload_meta));
}

static void take_probe(struct fig_p4 *p)
{
	const struct offload_map *m = &p->thread->app->map;
	const struct offload_preamble *pre = (void *)p->mirror;
	uint64_t tail = offload_extend(p->fetched, pre->green.tail);
	uint64_t from = p->fetched, n;

	p->is_asking = tail != from;
	p->asked = tail;
	for (; from < tail; from += n) {
		n = u64_min(tail - from, m->entries - (from & m->mask));
		post_ring(p, IBV_WR_RDMA_READ,
			  m->meta_at + (from & m->mask) *
					       sizeof(struct offload_meta),
			  (uint32_t)(n * sizeof(struct offload_meta)),
			  from + n == tail ? (uint64_t)WR_META << 32 : 0);
	}
}

static void take_meta(struct fig_p4 *p)
{
	struct rig *rig = &p->thread->fig->rig;
	const struct offload_map *m = &p->thread->app->map;

	p->is_asking = false;
	for (; p->fetched < p->asked; p->fetched++) {
		const struct offload_meta *r = meta_of(p, p->fetched);
		uint32_t node = rig_node_of(rig, r->req_addr);
		const struct rig_region *region = rig->node[node].region;
		uint64_t at =
			(uint64_t)(rig_byte(rig, r->req_addr) - region->mem);

		post(p, p->rail[node].near_qp, IBV_WR_RDMA_READ,
		     (uintptr_t)p->mirror + m->rdata_at + r->resp_addr,
		     region->addr + at, region->rkey, r->len_bytes,
		     (uint64_t)WR_DATA << 32 | (p->fetched & (DEPTH - 1)));
	}
}

/* A record came: it goes on to its place, and then the news of it, in the order
 * of the requests. */
static void take_data(struct fig_p4 *p, uint32_t slot)
{
	const struct rig_app *a = p->thread->app;

	p->is_ready[slot] = true;
	while (p->is_ready[p->done & (DEPTH - 1)]) {
		const struct offload_meta *r = meta_of(p, p->done);
		struct p4_news *news = &p->news[p->done & (DEPTH - 1)];

		p->is_ready[p->done & (DEPTH - 1)] = false;
		p->done++;
		post_ring(p, IBV_WR_RDMA_WRITE, a->map.rdata_at + r->resp_addr,
			  r->len_bytes, 0);
		*news = (struct p4_news){.head = p->done,
					 .head_reads = p->done,
					 .done = {.reads = (uint32_t)p->done}};
		post(p, p->ring.near_qp, IBV_WR_RDMA_WRITE, (uintptr_t)news,
		     (uintptr_t)a->memory + RED_AT, a->mr->rkey, sizeof(*news),
		     (uint64_t)WR_TOLD << 32);
	}
}

static bool take_all(struct fig_p4 *p)
{
	struct ibv_wc wc[CQES];
	int n = ibv_poll_cq(p->cq, CQES, wc);

	for (int i = 0; i < n; i++) {
		ASSERT(wc[i].status == IBV_WC_SUCCESS);
		switch ((enum p4_wr)(wc[i].wr_id >> 32)) {
		case WR_PROBE:
			take_probe(p);
			break;
		case WR_META:
			take_meta(p);
			break;
		case WR_DATA:
			take_data(p, (uint32_t)wc[i].wr_id);
			break;
		case WR_TOLD:
			break;
		}
	}
	return n > 0;
}

static void p4_main(void *arg)
{
	struct fig_p4 *p = arg;
	const struct client_clock *clock = &p->ring.near->clock;

	for (;;) {
		uint64_t now_ns = client_clock_now_ns(clock);

		if (!p->is_asking && now_ns >= p->probe_ns) {
			p->is_asking = true;
			p->probe_ns = now_ns + PROBE_NS;
			post_ring(p, IBV_WR_RDMA_READ, GREEN_AT,
				  sizeof(struct offload_green),
				  (uint64_t)WR_PROBE << 32);
		}
		if (!take_all(p))
			client_clock_relax(clock);
	}
}

static int open_pairs(struct fig_p4 *p, struct rig_host *at)
{
	struct rig *rig = &p->thread->fig->rig;
	struct rig_pair_options o = {.cq = p->cq, .send_depth = DEPTH};
	int err = rig_pair_open(at, p->thread->fig->host, &o, &p->ring);

	for (uint32_t i = 0; i < rig->node_count && !err; i++)
		err = rig_pair_open(at, rig->node[i].host, &o, &p->rail[i]);
	return err;
}

int fig_p4_open(struct fig_thread *t)
{
	struct fig *fig = t->fig;
	struct fig_p4 *p = calloc(1, sizeof(*p));
	uint64_t rings = align_up(t->app->map.total_bytes, CACHE_LINE);
	uint64_t bytes = align_up(rings + DEPTH * sizeof(struct p4_news), 4096);
	int err = 0;

	if (!p)
		return -ENOMEM;
	t->p4 = p;
	p->thread = t;
	ASSERT(t->app->map.entries <= DEPTH);
	if (!fig->in_switch)
		err = rig_host_add_ideal(fig->stage, "switch", &fig->in_switch);
	if (err)
		return err;
	p->mirror = aligned_alloc(4096, bytes);
	p->cq = rig_cq_create(fig->in_switch, 8 * DEPTH);
	if (!p->mirror || !p->cq)
		return -ENOMEM;
	memset(p->mirror, 0, bytes);
	p->news = (struct p4_news *)(void *)(p->mirror + rings);
	p->mr = ibv_reg_mr(fig->in_switch->pd, p->mirror, bytes,
			   IBV_ACCESS_LOCAL_WRITE);
	if (!p->mr)
		return -ENOMEM;
	err = open_pairs(p, fig->in_switch);
	return err ? err : rig_host_spawn(fig->in_switch, "p4", p4_main, p);
}

void fig_p4_close(struct fig_thread *t)
{
	struct fig_p4 *p = t->p4;

	if (!p)
		return;
	rig_pair_close(&p->ring);
	for (uint32_t i = 0; i < RIG_NODES_MAX; i++)
		rig_pair_close(&p->rail[i]);
	if (p->mr)
		(void)ibv_dereg_mr(p->mr);
	if (p->cq)
		(void)ibv_destroy_cq(p->cq);
	free(p->mirror);
	free(p);
}
