/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the device and connects queue pairs; nothing here is measured. */
#include "ours_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aquifer/aqdv.h"
#include "pair/pair.h"

enum {
	GID_INDEX = 1, /* the address, as other hosts know it */
	FIRST_PSN = 0x1000,
	ACK_TIMEOUT = 14, /* 4.096 us * 2^14 = 67 ms */
};

/* What each side tells the other. */
struct ours_hello {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t rkey;
	uint32_t mtu;
	uint32_t rd_atomic;
	uint32_t qpn[OURS_QP_MAX];
};

static int open_device(struct side *s, struct ours_state *st)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0]) {
		if (list)
			ibv_free_device_list(list);
		return side_fail(s, -ENODEV, "no RDMA device");
	}
	st->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!st->context)
		return side_fail(s, -ENODEV, "ibv_open_device");
	st->pd = ibv_alloc_pd(st->context);
	if (!st->pd)
		return side_fail(s, -errno, "ibv_alloc_pd");
	st->cq = ibv_create_cq(st->context, 2 * OURS_DEPTH_MAX, NULL, NULL, 0);
	if (!st->cq)
		return side_fail(s, -errno, "ibv_create_cq");
	return 0;
}

static int make_memory(struct side *s, struct ours_state *st)
{
	const struct ours_param *p = s->param;
	bool server = s->role == SIDE_SERVER;

	st->buf_bytes = server ? side_buffer_bytes(p->block)
			       : OURS_DEPTH_MAX * (size_t)OURS_ALIGN;
	if (server && p->direct) {
		void *addr;
		/* The rights of the registration below: to read. */
		int rc = aqdv_alloc(st->context, st->buf_bytes,
				    AQDV_ALLOC_READ_ONLY, &addr);

		if (rc < 0)
			return side_fail(s, rc, "aqdv_alloc");
		st->buf = addr;
	} else {
		st->buf = aligned_alloc(OURS_ALIGN, st->buf_bytes);
	}
	if (!st->buf)
		return side_fail(s, -ENOMEM, "buffer");
	memset(st->buf, 0, st->buf_bytes);
	if (server)
		side_buffer_fill(st->buf, p->block);
	st->mr = ibv_reg_mr(st->pd, st->buf, st->buf_bytes,
			    IBV_ACCESS_LOCAL_WRITE |
				    (server ? IBV_ACCESS_REMOTE_READ : 0));
	if (!st->mr)
		return side_fail(s, -errno, "ibv_reg_mr");
	return 0;
}

static int make_qp(struct side *s, struct ours_state *st, uint32_t i)
{
	static const uint8_t key[AQDV_AUTH_KEY_BYTES] = {1};
	const struct ours_param *p = s->param;
	struct ibv_qp_init_attr init = {
		.send_cq = st->cq,
		.recv_cq = st->cq,
		.cap = {.max_send_wr = OURS_DEPTH_MAX,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	int rc;

	st->qp[i] = ibv_create_qp(st->pd, &init);
	if (!st->qp[i])
		return side_fail(s, -errno, "ibv_create_qp");
	rc = pair_init(ibv_modify_qp, st->qp[i], IBV_ACCESS_REMOTE_READ);
	if (rc)
		return side_fail(s, rc, "ibv_modify_qp to INIT");
	/* What the key is does not matter for what it costs. */
	if (p->auth)
		rc = aqdv_qp_set_auth(st->qp[i], key, sizeof(key));
	return rc ? side_fail(s, rc, "aqdv_qp_set_auth") : 0;
}

int ours_connect_qp(struct side *s, struct ibv_qp *qp, uint32_t peer_qpn,
		    const union ibv_gid *peer, uint32_t mtu, uint32_t rd_atomic,
		    uint8_t ack_timeout)
{
	const struct pair_end end = {.gid = *peer,
				     .gid_index = GID_INDEX,
				     .qpn = peer_qpn,
				     .psn = FIRST_PSN,
				     .own_psn = FIRST_PSN,
				     .mtu = (enum ibv_mtu)mtu,
				     .reads_in = (uint8_t)rd_atomic,
				     .reads_out = (uint8_t)rd_atomic,
				     .timeout = ack_timeout,
				     .retries = PAIR_RETRIES,
				     .rnr_timer = PAIR_RNR_TIMER};
	int rc = pair_connect(ibv_modify_qp, qp, &end);

	return rc ? side_fail(s, rc, "connecting a queue pair") : 0;
}

static int describe(struct side *s, struct ours_state *st,
		    struct ours_hello *mine)
{
	struct ibv_device_attr dev;
	struct ibv_port_attr port;
	int rc;

	rc = ibv_query_device(st->context, &dev);
	if (rc)
		return side_fail(s, -rc, "ibv_query_device");
	rc = ibv_query_port(st->context, PAIR_PORT, &port);
	if (rc)
		return side_fail(s, -rc, "ibv_query_port");
	if (ibv_query_gid(st->context, PAIR_PORT, GID_INDEX, &mine->gid))
		return side_fail(s, -EIO, "ibv_query_gid");
	mine->mtu = port.active_mtu;
	mine->rd_atomic = (uint32_t)dev.max_qp_rd_atom;
	if (mine->rd_atomic > OURS_DEPTH_MAX)
		mine->rd_atomic = OURS_DEPTH_MAX;
	mine->addr = (uintptr_t)st->buf;
	mine->rkey = st->mr->rkey;
	return 0;
}

static int connect_all(struct side *s, struct ours_state *st,
		       struct ours_hello *mine, struct ours_hello *peer)
{
	const struct ours_param *p = s->param;
	uint32_t mtu, rd_atomic;
	int rc;

	rc = side_exchange(s, mine, peer, sizeof(*mine));
	if (rc < 0)
		return rc;
	mtu = mine->mtu < peer->mtu ? mine->mtu : peer->mtu;
	rd_atomic = mine->rd_atomic < peer->rd_atomic ? mine->rd_atomic
						      : peer->rd_atomic;
	for (uint32_t i = 0; i < p->qp_count && rc == 0; i++)
		rc = ours_connect_qp(
			s, st->qp[i], peer->qpn[i], &peer->gid, mtu, rd_atomic,
			p->ack_timeout ? p->ack_timeout : ACK_TIMEOUT);
	if (rc < 0)
		return rc;
	st->remote = peer->addr;
	st->rkey = peer->rkey;
	/* Nobody sends before both are ready to receive. */
	return side_meet(s);
}

int ours_connect(struct side *s, struct ours_state *st)
{
	const struct ours_param *p = s->param;
	struct ours_hello *hello = calloc(2, sizeof(*hello));
	int rc;

	if (!hello)
		return side_fail(s, -ENOMEM, "hello");
	rc = open_device(s, st);
	if (rc == 0)
		rc = make_memory(s, st);
	for (uint32_t i = 0; i < p->qp_count && rc == 0; i++) {
		rc = make_qp(s, st, i);
		if (rc == 0)
			hello[0].qpn[i] = st->qp[i]->qp_num;
	}
	if (rc == 0)
		rc = describe(s, st, &hello[0]);
	if (rc == 0)
		rc = connect_all(s, st, &hello[0], &hello[1]);
	free(hello);
	return rc;
}

void ours_disconnect(struct side *s, struct ours_state *st)
{
	const struct ours_param *p = s->param;

	/* Results are in; an object that will not go ends with the process. */
	for (uint32_t i = 0; i < p->qp_count; i++)
		if (st->qp[i])
			(void)ibv_destroy_qp(st->qp[i]);
	if (st->mr)
		(void)ibv_dereg_mr(st->mr);
	if (s->role == SIDE_SERVER && p->direct && st->buf)
		(void)aqdv_free(st->context, st->buf);
	else
		free(st->buf);
	if (st->cq)
		(void)ibv_destroy_cq(st->cq);
	if (st->pd)
		(void)ibv_dealloc_pd(st->pd);
	if (st->context)
		(void)ibv_close_device(st->context);
}
