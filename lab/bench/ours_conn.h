/* SPDX-License-Identifier: Apache-2.0 */
/* Connected queue pairs between the two sides of a subject, by verbs. */
#ifndef AQ_BENCH_OURS_CONN_H
#define AQ_BENCH_OURS_CONN_H

#include <infiniband/verbs.h>

#include "peers.h"

enum {
	OURS_QP_MAX = 1000,
	OURS_DEPTH_MAX = 64,
	OURS_ALIGN = 4096,
};

/* One READ in flight, and its request, made once as programs do. */
struct ours_slot {
	uint64_t offset;
	uint64_t t0; /* 0: not sampled */
	struct ibv_send_wr wr;
	struct ibv_sge sge;
};

struct ours_state {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[OURS_QP_MAX];
	uint8_t *buf; /* the server's blocks, or where the client's READs go */
	size_t buf_bytes;
	uint64_t remote;
	uint32_t rkey;
	struct ours_slot slots[OURS_DEPTH_MAX];
	uint32_t next_qp;
};

/* Opens the first device, makes memory and queue pairs, and connects them with
 * the other side's over s->peer_fd. On failure s->why says what happened. */
int ours_connect(struct side *s, struct ours_state *st)
	__attribute__((warn_unused_result));
/* Moves a queue pair from INIT to RTS. `mtu` is an enum ibv_mtu. */
int ours_connect_qp(struct side *s, struct ibv_qp *qp, uint32_t peer_qpn,
		    const union ibv_gid *peer, uint32_t mtu, uint32_t rd_atomic,
		    uint8_t ack_timeout) __attribute__((warn_unused_result));
void ours_disconnect(struct side *s, struct ours_state *st);

#endif
