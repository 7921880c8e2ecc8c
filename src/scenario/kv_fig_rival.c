/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the models of other stores. */
#include "kv_fig_rival.h"

#include <errno.h>
#include <stdlib.h>

#include "verbs_api.h"

int rival_open(struct kvf_client *c, struct scenario_region *const *region,
	       uint32_t regions, struct rival **out)
{
	struct client_link_options o = {.send_depth = 16,
					.rights = CLIENT_LINK_ALL};
	struct rival *v = calloc(1, sizeof(*v));
	uint32_t i;
	int err = 0;

	if (!v)
		return -ENOMEM;
	v->buf = calloc(1, RIVAL_BUF_BYTES);
	if (v->buf)
		v->mr = ibv_reg_mr(c->host->pd, v->buf, RIVAL_BUF_BYTES,
				   IBV_ACCESS_LOCAL_WRITE);
	if (!v->mr)
		err = -ENOMEM;
	for (i = 0; i < regions && !err; i++)
		err = scenario_link_open(c->host, region[i], &o, &v->link[i]);
	if (err)
		rival_close(v);
	else
		*out = v;
	return err;
}

void rival_close(struct rival *v)
{
	unsigned i;

	if (!v)
		return;
	for (i = 0; i < KV_FIG_MACHINES; i++)
		if (v->link[i])
			scenario_link_close(v->link[i]);
	if (v->mr)
		(void)ibv_dereg_mr(v->mr);
	free(v->buf);
	free(v->own);
	free(v);
}

static struct ibv_send_wr *add(struct rival *v, enum ibv_wr_opcode opcode,
			       uint32_t buf_at, uint32_t len_bytes)
{
	unsigned i = v->count++;

	ASSERT(i < RIVAL_REQUESTS_MAX);
	v->sge[i] = (struct ibv_sge){.addr = (uintptr_t)v->buf + buf_at,
				     .length = len_bytes,
				     .lkey = v->mr->lkey};
	v->wr[i] = (struct ibv_send_wr){
		.opcode = opcode, .sg_list = &v->sge[i], .num_sge = 1};
	if (i)
		v->wr[i - 1].next = &v->wr[i];
	return &v->wr[i];
}

static void add_rdma(struct rival *v, enum ibv_wr_opcode opcode,
		     const struct scenario_region *r, uint64_t at,
		     uint32_t buf_at, uint32_t len_bytes)
{
	struct ibv_send_wr *wr = add(v, opcode, buf_at, len_bytes);

	wr->wr.rdma.remote_addr = r->addr + at;
	wr->wr.rdma.rkey = r->rkey;
}

void rival_read(struct rival *v, const struct scenario_region *r, uint64_t at,
		uint32_t buf_at, uint32_t len_bytes)
{
	add_rdma(v, IBV_WR_RDMA_READ, r, at, buf_at, len_bytes);
}

void rival_write(struct rival *v, const struct scenario_region *r, uint64_t at,
		 uint32_t buf_at, uint32_t len_bytes)
{
	add_rdma(v, IBV_WR_RDMA_WRITE, r, at, buf_at, len_bytes);
}

void rival_cas(struct rival *v, const struct scenario_region *r, uint64_t at,
	       uint32_t buf_at, uint64_t compare, uint64_t swap)
{
	struct ibv_send_wr *wr = add(v, IBV_WR_ATOMIC_CMP_AND_SWP, buf_at, 8);

	wr->wr.atomic.remote_addr = r->addr + at;
	wr->wr.atomic.rkey = r->rkey;
	wr->wr.atomic.compare_add = compare;
	wr->wr.atomic.swap = swap;
}

int rival_send(struct rival *v, uint32_t node)
{
	struct ibv_send_wr *bad;

	v->count = 0;
	return -ibv_post_send(v->link[node]->qp, v->wr, &bad);
}

int rival_go(struct kvf_client *c, struct rival *v, uint32_t node)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	v->wr[v->count - 1].send_flags = IBV_SEND_SIGNALED;
	v->count = 0;
	if (ibv_post_send(v->link[node]->qp, v->wr, &bad))
		return -EIO;
	while ((n = ibv_poll_cq(v->link[node]->cq, 1, &wc)) == 0)
		client_clock_relax(&c->host->clock);
	return n == 1 && wc.status == IBV_WC_SUCCESS ? 0 : -EIO;
}
