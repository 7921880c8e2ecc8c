/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection is made of: memory, registered once, and its queues. */
#include <fcntl.h>
#include <sys/mman.h>

#include "rs_priv.h"

enum {
	PAGE = 4096,
};

static int open_queues(struct rsock *rs)
{
	struct rs_stream *s = &rs->s;
	struct rs_options *opt = &rs->opt;
	uint32_t sends = opt->sq_size + RS_CTRL_QUEUE;
	uint32_t recvs = opt->rq_size + RS_CTRL_QUEUE;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = sends,
			.max_recv_wr = recvs,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data =
				u32_max(opt->inline_size, RS_INLINE_MIN)},
	};
	int flags;

	s->channel = ibv_create_comp_channel(rs->id->verbs);
	if (!s->channel)
		return -errno;
	flags = fcntl(s->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(s->channel->fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	s->cq = ibv_create_cq(rs->id->verbs, (int)(sends + recvs), rs,
			      s->channel, 0);
	if (!s->cq)
		return -errno;
	attr.send_cq = attr.recv_cq = s->cq;
	if (rdma_create_qp(rs->id, NULL, &attr))
		return -errno;
	return 0;
}

/* The peer's table of mappings follows that of buffers: the protocol says so.
 */
static int open_memory(struct rsock *rs)
{
	struct rs_stream *s = &rs->s;
	size_t ring = rs->opt.rcvbuf;
	size_t tables = (size_t)RS_SLOTS * RS_SGE_BYTES +
			(size_t)rs->opt.iomap_count * RS_IOMAP_BYTES;
	size_t shared = align_up(ring + tables, PAGE);
	void *at;

	s->memory_bytes = shared + align_up(rs->opt.sndbuf, PAGE);
	at = mmap(NULL, s->memory_bytes, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	s->memory = s->rx_ring = at;
	s->tx_ring = s->memory + shared;
	s->iomaps = s->memory + ring + (size_t)RS_SLOTS * RS_SGE_BYTES;
	rs_rx_init(&s->rx, rs->opt.rcvbuf, (uint16_t)rs->opt.rq_size);
	rs_tx_init(&s->tx, rs->opt.sndbuf, rs->opt.sq_size + RS_CTRL_QUEUE,
		   (rs_slot *)(void *)(s->memory + ring));
	s->shared_mr =
		ibv_reg_mr(rs->id->pd, s->memory, ring + tables,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!s->shared_mr)
		return -errno;
	s->send_mr = ibv_reg_mr(rs->id->pd, s->tx_ring, rs->opt.sndbuf, 0);
	return s->send_mr ? 0 : -errno;
}

/* What was made is left to rs_stream_close. */
int rs_stream_open(struct rsock *rs)
{
	int err = open_memory(rs);

	if (!err)
		err = open_queues(rs);
	return err ? err : rs_stream_post_first(rs);
}

/* Order: nobody uses the memory once the queue pair is gone. Nothing of it can
 * be in use elsewhere, so nothing fails. */
void rs_stream_close(struct rsock *rs)
{
	struct rs_stream *s = &rs->s;

	if (rs->id->qp)
		rdma_destroy_qp(rs->id);
	if (s->cq)
		(void)ibv_destroy_cq(s->cq);
	if (s->channel)
		(void)ibv_destroy_comp_channel(s->channel);
	if (s->shared_mr)
		(void)ibv_dereg_mr(s->shared_mr);
	if (s->send_mr)
		(void)ibv_dereg_mr(s->send_mr);
	if (s->memory)
		munmap(s->memory, s->memory_bytes);
	*s = (struct rs_stream){0};
}
