/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes and talk. */
#include "nic.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "pair/pair.h"

enum {
	PAGE = COHERENCE_PAGE_BYTES,
	LANDING_AT = 0,
	GIVES_AT = LANDING_AT + COHERENCE_LANES * PAGE,
	RECVS_AT = GIVES_AT + SHD_GIVES * PAGE,
	BUFFER_BYTES = RECVS_AT + SHD_RECVS * COHERENCE_INVAL_BYTES,
	CQ_DEPTH = 1024,
	TIMEOUT = 18, /* 1.07 s until a NIC repeats */
	PORT = 1,
	/* FINs in a row of which no completion is wanted: nobody waits for it,
	 * and it would wake the server once more for each INVAL. */
	FINS_QUIET = 15,
};

static uint64_t id_of(const struct shd_nic *n, enum shd_done_kind kind,
		      uint32_t index)
{
	return (uint64_t)n->turn << 32 | (uint32_t)kind << 16 | index;
}

/* ---- posting ------------------------------------------------------------- */

static void post(struct shd_nic *n, struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (n->is_broken || ibv_post_send(qp, wr, &bad))
		n->is_broken = true;
}

static void post_page(struct shd_nic *n, struct ibv_qp *qp, uint32_t at,
		      uint64_t page, uint32_t key, enum ibv_wr_opcode opcode,
		      uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)n->buffer + at, PAGE, n->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {page << COHERENCE_PAGE_SHIFT, key}};

	post(n, qp, &wr);
}

void shd_nic_get(struct shd_nic *n, const struct coh_get *get)
{
	post_page(n, n->lane[get->lane], LANDING_AT + get->lane * PAGE,
		  get->page,
		  get->right == COH_WRITE ? n->place.write_key
					  : n->place.read_key,
		  IBV_WR_RDMA_READ, id_of(n, SHD_DONE_LANE, get->lane));
}

const void *shd_nic_landing(const struct shd_nic *n, uint32_t lane)
{
	return n->buffer + LANDING_AT + lane * PAGE;
}

void *shd_nic_give_room(struct shd_nic *n, uint32_t *slot)
{
	for (uint32_t i = 0; i < SHD_GIVES; i++) {
		if (n->give_page[i])
			continue;
		*slot = i;
		return n->buffer + GIVES_AT + i * PAGE;
	}
	return NULL;
}

void shd_nic_give(struct shd_nic *n, uint32_t slot, uint64_t page)
{
	n->give_page[slot] = page;
	post_page(n, n->talk, GIVES_AT + slot * PAGE, page, n->place.give_key,
		  IBV_WR_RDMA_WRITE, id_of(n, SHD_DONE_GIVE, slot));
}

uint64_t shd_nic_given(struct shd_nic *n, uint32_t slot)
{
	uint64_t page = n->give_page[slot];

	n->give_page[slot] = 0;
	return page;
}

void shd_nic_say(struct shd_nic *n, const struct coh_record *r,
		 enum shd_done_kind kind, uint32_t index)
{
	uint8_t bytes[COHERENCE_INVAL_BYTES];
	struct ibv_sge sge = {.addr = (uintptr_t)bytes};
	struct ibv_send_wr wr = {.wr_id = id_of(n, kind, index),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags =
					 IBV_SEND_SIGNALED | IBV_SEND_INLINE};

	/* Nobody asks for so many answers at once. */
	if (n->says == SHD_SAYS) {
		n->is_broken = true;
		return;
	}
	if (kind == SHD_DONE_FIN) { /* its index: how many it stands for */
		n->fins++;
		wr.wr_id = id_of(n, kind, n->fins);
		if (n->fins > FINS_QUIET)
			n->fins = 0;
		else
			wr.send_flags = IBV_SEND_INLINE;
	}
	n->says++;
	sge.length = coh_record_build(r, bytes);
	ASSERT(sge.length <= COHERENCE_RECORD_BYTES);
	post(n, n->talk, &wr);
}

static int post_recv(struct shd_nic *n, uint32_t i)
{
	struct ibv_sge sge = {(uintptr_t)n->buffer + RECVS_AT +
				      i * COHERENCE_INVAL_BYTES,
			      COHERENCE_INVAL_BYTES, n->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id_of(n, SHD_DONE_RECORD, i),
				 .sg_list = &sge,
				 .num_sge = 1};
	struct ibv_recv_wr *bad;

	return ibv_post_recv(n->talk, &wr, &bad) ? -EIO : 0;
}

/* ---- completions --------------------------------------------------------- */

/* False: it was no record. */
static bool take_record(struct shd_nic *n, const struct ibv_wc *wc,
			struct shd_done *out)
{
	bool is_record =
		coh_record_parse(n->buffer + RECVS_AT +
					 out->index * COHERENCE_INVAL_BYTES,
				 wc->byte_len, &out->record) == 0;

	n->is_broken |= post_recv(n, out->index) != 0;
	n->strange += !is_record;
	return is_record;
}

bool shd_nic_next(struct shd_nic *n, struct shd_done *out)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(n->cq, 1, &wc) == 1) {
		if (wc.wr_id >> 32 != n->turn || !n->is_connected)
			continue; /* of a former connection */
		out->kind = (enum shd_done_kind)(wc.wr_id >> 16 & 0xffff);
		out->index = (uint32_t)wc.wr_id & 0xffff;
		if (wc.status != IBV_WC_SUCCESS) {
			n->is_broken = true;
			break;
		}
		if (out->kind == SHD_DONE_FIN)
			n->says -= out->index;
		else
			n->says -= out->kind == SHD_DONE_EVICT ||
				   out->kind == SHD_DONE_CLEAN;
		if (out->kind != SHD_DONE_RECORD || take_record(n, &wc, out))
			return true;
	}
	if (!n->is_broken || !n->is_connected)
		return false;
	n->is_connected = false;
	out->kind = SHD_DONE_BROKEN;
	return true;
}

void shd_nic_arm(struct shd_nic *n)
{
	if (ibv_req_notify_cq(n->cq, 0))
		n->is_broken = true;
}

void shd_nic_disarm(struct shd_nic *n)
{
	struct ibv_cq *cq;
	void *user;

	while (ibv_get_cq_event(n->channel, &cq, &user) == 0)
		ibv_ack_cq_events(cq, 1);
}

/* ---- connections --------------------------------------------------------- */

static void destroy(struct ibv_qp **qp)
{
	if (*qp)
		(void)ibv_destroy_qp(*qp); /* nothing refers to it */
	*qp = NULL;
}

void shd_nic_cut(struct shd_nic *n)
{
	n->is_connected = n->is_broken = false;
	n->turn++;
	destroy(&n->talk);
	for (uint32_t i = 0; i < COHERENCE_LANES; i++)
		destroy(&n->lane[i]);
	memset(n->give_page, 0, sizeof(n->give_page));
	n->says = n->fins = 0;
}

static int make(struct shd_nic *n, uint32_t sends, uint32_t recvs,
		struct ibv_qp **out)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = n->cq,
		.recv_cq = n->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = sends,
			.max_recv_wr = recvs,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = COHERENCE_RECORD_BYTES}};

	*out = ibv_create_qp(n->pd, &attr);
	return *out ? pair_init(ibv_modify_qp, *out, 0) : -errno;
}

int shd_nic_renew(struct shd_nic *n, struct shd_ends *ends)
{
	struct shd_ends e = {.lane_count = COHERENCE_LANES};
	struct ibv_port_attr port;
	uint8_t index;
	int err;

	shd_nic_cut(n);
	err = make(n, SHD_GIVES + SHD_SAYS, SHD_RECVS, &n->talk);
	for (uint32_t i = 0; !err && i < SHD_RECVS; i++)
		err = post_recv(n, i);
	if (!err)
		err = pair_psn(&e.talk_psn);
	for (uint32_t i = 0; !err && i < COHERENCE_LANES; i++) {
		err = make(n, 1, 1, &n->lane[i]);
		if (!err)
			err = pair_psn(&e.lane_psn[i]);
		if (!err)
			e.lane_qpn[i] = n->lane[i]->qp_num;
	}
	if (!err)
		err = pair_gid(n->context, NULL, &index, &e.gid);
	if (!err && ibv_query_port(n->context, PORT, &port))
		err = -EIO;
	if (err) {
		shd_nic_cut(n);
		return error_set(err, "no connections for shared memory: %s",
				 strerror(-err));
	}
	e.mtu = 128u << port.active_mtu;
	e.talk_qpn = n->talk->qp_num;
	*ends = e;
	return 0;
}

static int connect_qp(struct shd_nic *n, struct ibv_qp *qp, uint32_t far_qpn,
		      uint32_t far_psn, uint32_t own_psn, uint8_t reads)
{
	struct pair_end end = {.gid = n->place.gid,
			       .qpn = far_qpn,
			       .psn = far_psn,
			       .own_psn = own_psn,
			       .mtu = pair_mtu(n->place.mtu),
			       .reads_in = 0,
			       .reads_out = reads,
			       .timeout = TIMEOUT,
			       .retries = PAIR_RETRIES,
			       .rnr_timer = PAIR_RNR_TIMER};
	union ibv_gid own;
	int err = pair_gid(n->context, &end.gid, &end.gid_index, &own);

	return err ? err : pair_connect(ibv_modify_qp, qp, &end);
}

int shd_nic_connect(struct shd_nic *n, const struct shd_place *place,
		    const struct shd_ends *ends)
{
	int err;

	n->place = *place;
	err = connect_qp(n, n->talk, place->talk_qpn, place->talk_psn,
			 ends->talk_psn, 0);
	for (uint32_t i = 0; !err && i < ends->lane_count; i++)
		err = connect_qp(n, n->lane[i], place->lane_qpn[i], 0,
				 ends->lane_psn[i], 1);
	n->is_connected = !err;
	return err ? error_set(err, "cannot connect to the switch: %s",
			       strerror(-err))
		   : 0;
}

/* ---- the device ---------------------------------------------------------- */

static int open_device(struct shd_nic *n)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (list && list[0])
		n->context = ibv_open_device(list[0]);
	if (list)
		ibv_free_device_list(list);
	return n->context ? 0
			  : error_set(-ENODEV,
				      "no RDMA device can be opened; 'aquifer "
				      "doctor' says more");
}

int shd_nic_open(struct shd_nic *n)
{
	int err;

	*n = (struct shd_nic){0};
	err = open_device(n);
	if (err)
		return err;
	n->buffer = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	n->pd = ibv_alloc_pd(n->context);
	n->channel = ibv_create_comp_channel(n->context);
	if (n->channel)
		n->cq = ibv_create_cq(n->context, CQ_DEPTH, NULL, n->channel,
				      0);
	if (n->pd && n->buffer != MAP_FAILED)
		n->mr = ibv_reg_mr(n->pd, n->buffer, BUFFER_BYTES,
				   IBV_ACCESS_LOCAL_WRITE);
	if (n->cq && n->mr &&
	    fcntl(n->channel->fd, F_SETFL,
		  fcntl(n->channel->fd, F_GETFL) | O_NONBLOCK) == 0)
		return 0;
	err = error_set(-errno, "the NIC has no room: %s", strerror(errno));
	shd_nic_close(n);
	return err;
}

void shd_nic_close(struct shd_nic *n)
{
	if (!n->context)
		return;
	shd_nic_cut(n);
	if (n->mr)
		(void)ibv_dereg_mr(n->mr);
	if (n->cq)
		(void)ibv_destroy_cq(n->cq);
	if (n->channel)
		(void)ibv_destroy_comp_channel(n->channel);
	if (n->pd)
		(void)ibv_dealloc_pd(n->pd);
	if (n->buffer != MAP_FAILED)
		(void)munmap(n->buffer, BUFFER_BYTES);
	(void)ibv_close_device(n->context);
	n->context = NULL;
}
