/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The static mode: room for every page from the start, and one READ or WRITE
 * per job. Where the node's memory is mapped, the NIC makes that a copy.
 */
#include <errno.h>

#include "client/link.h"
#include "page_priv.h"

enum {
	POLL_BATCH = 32,
};

static int static_start(struct page_backend *backend)
{
	return 0;
}

static void static_release(struct page_backend *backend)
{
}

int page_rdma_post(struct client_link *link, const struct page_job *job,
		   uint64_t remote_addr, uint32_t rkey, uint32_t bytes)
{
	struct ibv_sge sge = {.addr = (uintptr_t)job->buf,
			      .length = bytes,
			      .lkey = job->lkey};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = job->tag,
			.opcode = job->kind == PAGE_LOAD ? IBV_WR_RDMA_READ
							 : IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
			.wr.rdma = {.remote_addr = remote_addr, .rkey = rkey},
		};

	return -ibv_post_send(link->qp, &wr, &bad);
}

static int static_post(struct page_backend *backend, const struct page_job *job)
{
	uint32_t bytes = backend->store->o.page_bytes;

	if (job->kind == PAGE_INVALIDATE)
		return 1;
	return page_rdma_post(backend->grant.link[0], job,
			      backend->grant.addr + job->index * bytes,
			      backend->grant.rkey, bytes);
}

int page_rdma_poll(struct page_backend *backend)
{
	struct ibv_wc wc[POLL_BATCH];
	int i, n = ibv_poll_cq(backend->grant.link[0]->cq, POLL_BATCH, wc);

	for (i = 0; i < n; i++) {
		/* The first error says it all: the queue pair is broken, and
		 * whoever gives the backend up ends the rest. */
		if (wc[i].status != IBV_WC_SUCCESS)
			return -EHOSTDOWN;
		page_job_end(backend->store, (uint32_t)wc[i].wr_id, 0);
	}
	return n < 0 ? -EIO : 0;
}

static uint64_t static_allocated(struct page_backend *backend)
{
	const struct page_store *s = backend->store;

	return s->per_node * s->o.copies * s->o.page_bytes;
}

const struct page_backend_ops page_backend_static = {
	.start = static_start,
	.release = static_release,
	.post = static_post,
	.poll = page_rdma_poll,
	.allocated_bytes = static_allocated,
};
