/* SPDX-License-Identifier: Apache-2.0 */
/* The UD queue pair of a datagram socket, its slots and its completions. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "rs_dgram_priv.h"

#define WR_RECV (1ull << 63)

enum {
	ALIGN = 64,
	PAGE = 4096,
};

uint8_t *rs_endpoint_slot(const struct rs_dgram *d, uint32_t slot)
{
	return d->memory + (size_t)slot * d->slot_bytes;
}

/* ---- making -------------------------------------------------------------- */

static uint32_t slots_for(uint32_t bytes, uint32_t slot_bytes)
{
	uint32_t n = bytes / slot_bytes;

	if (n < RS_DGRAM_SLOTS_MIN)
		return RS_DGRAM_SLOTS_MIN;
	return n > RS_DGRAM_SLOTS_MAX ? RS_DGRAM_SLOTS_MAX : n;
}

static int find_gid(struct rs_dgram *d, const struct ibv_port_attr *port)
{
	union ibv_gid *own = &d->id->route.addr.addr.ibaddr.sgid, gid;

	for (int i = 0; i < port->gid_tbl_len && i <= UINT8_MAX; i++) {
		if (!ibv_query_gid(d->id->verbs, 1, i, &gid) &&
		    !memcmp(gid.raw, own->raw, sizeof(gid.raw))) {
			d->gid_index = (uint8_t)i;
			return 0;
		}
	}
	return -ENETUNREACH;
}

/* The device that leads to `to`. */
static int find_device(struct rsock *rs, const struct rs_name *to)
{
	struct rs_dgram *d = rs->dgram;
	struct sockaddr_storage sa;
	struct ibv_port_attr port;
	int err;

	(void)rs_name_write(to, rs_name_is_ipv4(to) ? AF_INET : AF_INET6, &sa);
	if (rdma_create_id(NULL, &d->id, NULL, RDMA_PS_UDP)) {
		d->id = NULL;
		return -errno;
	}
	rs_watch_forks();
	if (rdma_resolve_addr(d->id, NULL, (struct sockaddr *)&sa,
			      RS_RESOLVE_MS))
		return errno == ENODEV ? -ENETUNREACH : -errno;
	err = ibv_query_port(d->id->verbs, 1, &port);
	if (err)
		return -err;
	d->mtu = u32_min(128u << port.active_mtu, RS_DGRAM_MAX);
	return find_gid(d, &port);
}

static int make_memory(struct rsock *rs)
{
	struct rs_dgram *d = rs->dgram;
	uint32_t total;
	void *at;

	d->slot_bytes = (uint32_t)align_up(RS_DGRAM_GRH + d->mtu, ALIGN);
	d->recv_slots = slots_for(rs->opt.rcvbuf, d->slot_bytes);
	d->send_slots = slots_for(rs->opt.sndbuf, d->slot_bytes);
	total = d->recv_slots + RS_DGRAM_PARKED + d->send_slots;
	d->memory_bytes = align_up((size_t)total * d->slot_bytes, PAGE);
	at = mmap(NULL, d->memory_bytes, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	d->memory = at;
	d->parked_free = calloc(RS_DGRAM_PARKED, sizeof(uint32_t));
	d->send_free = calloc(d->send_slots, sizeof(uint32_t));
	d->send_dest = calloc(d->send_slots, sizeof(struct rs_dest *));
	d->arrivals = calloc(d->recv_slots + RS_DGRAM_PARKED,
			     sizeof(struct rs_arrival));
	if (!d->parked_free || !d->send_free || !d->send_dest || !d->arrivals)
		return -ENOMEM;
	for (uint32_t i = 0; i < RS_DGRAM_PARKED; i++)
		d->parked_free[d->parked_count++] = d->recv_slots + i;
	for (uint32_t i = 0; i < d->send_slots; i++)
		d->send_free[d->send_count++] = i;
	d->mr = ibv_reg_mr(d->id->pd, d->memory, d->memory_bytes,
			   IBV_ACCESS_LOCAL_WRITE);
	return d->mr ? 0 : -errno;
}

static int post_recv(struct rs_dgram *d, uint32_t slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)rs_endpoint_slot(d, slot),
			      .length = d->slot_bytes,
			      .lkey = d->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = WR_RECV | slot,
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;

	return -ibv_post_recv(d->id->qp, &wr, &bad);
}

static int make_queues(struct rs_dgram *d)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = d->send_slots,
			.max_recv_wr = d->recv_slots,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	int flags, err = 0;

	d->channel = ibv_create_comp_channel(d->id->verbs);
	if (!d->channel)
		return -errno;
	flags = fcntl(d->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(d->channel->fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	d->cq = ibv_create_cq(d->id->verbs,
			      (int)(d->send_slots + d->recv_slots), NULL,
			      d->channel, 0);
	if (!d->cq)
		return -errno;
	attr.send_cq = attr.recv_cq = d->cq;
	if (rdma_create_qp(d->id, NULL, &attr))
		return -errno;
	for (uint32_t i = 0; i < d->recv_slots && !err; i++)
		err = post_recv(d, i);
	return err;
}

int rs_endpoint_open(struct rsock *rs, const struct rs_name *to)
{
	int err;

	if (rs->dgram->cq)
		return 0;
	err = find_device(rs, to);
	if (!err)
		err = make_memory(rs);
	if (!err)
		err = make_queues(rs->dgram);
	if (err)
		rs_endpoint_close(rs->dgram);
	return err;
}

/* Nothing of it can be in use elsewhere, so nothing fails. */
void rs_endpoint_close(struct rs_dgram *d)
{
	if (!d->id)
		return;
	rs_dests_close(d);
	if (d->id->qp)
		rdma_destroy_qp(d->id);
	if (d->cq)
		(void)ibv_destroy_cq(d->cq);
	if (d->channel)
		(void)ibv_destroy_comp_channel(d->channel);
	if (d->mr)
		(void)ibv_dereg_mr(d->mr);
	if (d->memory)
		munmap(d->memory, d->memory_bytes);
	(void)rdma_destroy_id(d->id);
	free(d->parked_free);
	free(d->send_free);
	free(d->send_dest);
	free(d->arrivals);
	d->id = NULL;
	d->cq = NULL;
	d->channel = NULL;
	d->mr = NULL;
	d->memory = NULL;
	d->parked_free = d->send_free = NULL;
	d->send_dest = NULL;
	d->arrivals = NULL;
	d->parked_count = d->send_count = 0;
	d->arrival_head = d->arrival_count = 0;
	d->armed = false;
}

/* ---- arrivals ------------------------------------------------------------ */

uint8_t *rs_endpoint_park(struct rs_dgram *d, uint32_t *slot)
{
	if (!d->parked_count)
		return NULL;
	*slot = d->parked_free[--d->parked_count];
	return rs_endpoint_slot(d, *slot);
}

/* There are as many places as slots, so there is one. */
void rs_endpoint_arrive(struct rs_dgram *d, const struct rs_arrival *a)
{
	uint32_t places = d->recv_slots + RS_DGRAM_PARKED;

	ASSERT(d->arrival_count < places);
	d->arrivals[(d->arrival_head + d->arrival_count++) % places] = *a;
}

static void give_back(struct rsock *rs, uint32_t slot)
{
	struct rs_dgram *d = rs->dgram;

	if (slot >= d->recv_slots)
		d->parked_free[d->parked_count++] = slot;
	else if (post_recv(d, slot))
		rs->so_error = EIO;
}

void rs_endpoint_release(struct rsock *rs)
{
	struct rs_dgram *d = rs->dgram;

	give_back(rs, d->arrivals[d->arrival_head].slot);
	d->arrival_head =
		(d->arrival_head + 1) % (d->recv_slots + RS_DGRAM_PARKED);
	d->arrival_count--;
}

/* ---- completions --------------------------------------------------------- */

static void on_recv(struct rsock *rs, const struct ibv_wc *wc)
{
	struct rs_arrival a = {.slot = (uint32_t)wc->wr_id};
	struct rs_dest *dest;
	int header;

	if (wc->byte_len < RS_DGRAM_GRH ||
	    wc->byte_len > rs->dgram->slot_bytes) {
		give_back(rs, a.slot);
		return;
	}
	a.length = wc->byte_len - RS_DGRAM_GRH;
	header = rs_ud_parse(rs_endpoint_slot(rs->dgram, a.slot) + RS_DGRAM_GRH,
			     a.length, &a.from);
	if (header < 0) {
		give_back(rs, a.slot);
		return;
	}
	a.offset = RS_DGRAM_GRH + (uint32_t)header;
	a.length -= (uint32_t)header;
	dest = rs_dest_find(rs->dgram, &a.from);
	if (dest && dest->qpn == wc->src_qp)
		dest->heard_ns = clock_mono_ns();
	/* A connected socket hears its peer only. */
	if (rs->dgram->connected && !rs_name_equal(&a.from, &rs->dgram->peer))
		give_back(rs, a.slot);
	else
		rs_endpoint_arrive(rs->dgram, &a);
}

static void on_send(struct rsock *rs, const struct ibv_wc *wc)
{
	struct rs_dgram *d = rs->dgram;
	uint32_t slot = (uint32_t)wc->wr_id;

	if (d->send_dest[slot])
		d->send_dest[slot]->posted--;
	d->send_dest[slot] = NULL;
	d->send_free[d->send_count++] = slot;
}

bool rs_endpoint_progress(struct rsock *rs)
{
	struct rs_dgram *d = rs->dgram;
	struct ibv_wc wc[RS_WCS];
	struct ibv_cq *cq;
	bool moved = false;
	unsigned signs = 0;
	void *context;
	int n;

	if (!d->cq)
		return false;
	while (d->armed && !ibv_get_cq_event(d->channel, &cq, &context))
		signs++;
	if (signs) {
		ibv_ack_cq_events(d->cq, signs);
		d->armed = false;
	}
	while ((n = ibv_poll_cq(d->cq, RS_WCS, wc)) > 0) {
		moved = true;
		for (int i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS)
				rs->so_error = EIO;
			if (!(wc[i].wr_id & WR_RECV))
				on_send(rs, &wc[i]);
			else if (wc[i].status == IBV_WC_SUCCESS)
				on_recv(rs, &wc[i]);
		}
		if (n < RS_WCS)
			break;
	}
	return moved;
}

int rs_endpoint_post(struct rsock *rs, struct rs_dest *dest, uint32_t bytes)
{
	struct rs_dgram *d = rs->dgram;
	uint32_t slot = d->send_free[d->send_count - 1];
	uint32_t place = d->recv_slots + RS_DGRAM_PARKED + slot;
	struct ibv_sge sge = {.addr = (uintptr_t)rs_endpoint_slot(d, place),
			      .length = bytes,
			      .lkey = d->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .wr_id = slot,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_SEND,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.ud = {.ah = dest->ah,
						     .remote_qpn = dest->qpn,
						     .remote_qkey =
							     RDMA_UDP_QKEY},
				   },
			   *bad;
	int err = ibv_post_send(d->id->qp, &wr, &bad);

	if (err)
		return -err;
	d->send_count--;
	d->send_dest[slot] = dest;
	dest->posted++;
	return 0;
}
