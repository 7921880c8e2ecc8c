/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to another node's block server: messages of chains, each in a
 * buffer of its own. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/error.h"
#include "blk_server_priv.h"

enum {
	BUFFERS = 240, /* of either direction; what is not used is no memory */
	BUFFER_BYTES = sizeof(struct blk_link_wire) + BLK_LINK_DATA,
	ALL_BYTES = 2 * BUFFERS * BUFFER_BYTES,
	CQ_DEPTH = BLK_TRUNKS_MAX * BUFFERS * 2,
	TURN = 16,
	WR_SEND = 1 << 8,
};

struct blk_trunk {
	struct blk_server *server;
	unsigned slot;
	uint32_t serial; /* of all trunks: what is left of another one */
	struct ibv_qp *qp;
	uint8_t *buf; /* first those that receive */
	struct ibv_mr *mr;
	bool is_armed;
	atomic_bool is_broken; /* relaxed: looked at now and then */
	unsigned free_count;
	uint8_t free[BUFFERS];
};

static uint64_t wr_id(const struct blk_trunk *t, uint32_t low)
{
	return (uint64_t)t->serial << 32 | t->slot << 16 | low;
}

struct ibv_qp *blk_trunk_qp(const struct blk_trunk *t)
{
	return t->qp;
}

bool blk_trunk_is_broken(const struct blk_trunk *t)
{
	return atomic_load_explicit(&t->is_broken, memory_order_relaxed);
}

static void set_broken(struct blk_trunk *t)
{
	atomic_store_explicit(&t->is_broken, true, memory_order_relaxed);
}

/* ---- life ---------------------------------------------------------------- */

static int make_cq(struct blk_server *s)
{
	if (s->trunk_cq)
		return 0;
	s->trunk_cq =
		ibv_create_cq(s->config.context, CQ_DEPTH, NULL, s->channel, 0);
	if (!s->trunk_cq)
		return error_set(-ENOMEM, "no completion queue for chains");
	/* BLKTRUNK-1: who sees the flag sees the queue. */
	atomic_store_explicit(&s->has_trunks, true, memory_order_release);
	return 0;
}

static int make_queues(struct blk_trunk *t, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr init = {
		.send_cq = t->server->trunk_cq,
		.recv_cq = t->server->trunk_cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = BUFFERS,
			.max_recv_wr = BUFFERS,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	t->buf = mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t->buf == MAP_FAILED) {
		t->buf = NULL;
		return -ENOMEM;
	}
	t->mr = ibv_reg_mr(pd, t->buf, ALL_BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!t->mr)
		return -ENOMEM;
	t->qp = ibv_create_qp(pd, &init);
	return t->qp ? 0 : -errno;
}

int blk_trunk_create(struct blk_server *s, struct ibv_pd *pd, unsigned slot,
		     struct blk_trunk **out)
{
	struct blk_trunk *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return error_set(-ENOMEM, "no memory for a connection");
	ASSERT(slot < BLK_TRUNKS_MAX);
	t->server = s;
	t->slot = slot;
	t->free_count = BUFFERS;
	for (unsigned i = 0; i < BUFFERS; i++)
		t->free[i] = (uint8_t)i;
	pthread_mutex_lock(&s->lock);
	t->serial = ++s->next_id & INT32_MAX;
	err = make_cq(s);
	if (!err && s->trunk[slot])
		err = error_set(-EEXIST, "there is a connection");
	if (!err)
		err = make_queues(t, pd);
	if (!err)
		s->trunk[slot] = t;
	pthread_mutex_unlock(&s->lock);
	if (!err) {
		*out = t;
		return 0;
	}
	if (t->mr)
		(void)ibv_dereg_mr(t->mr);
	if (t->buf)
		(void)munmap(t->buf, ALL_BYTES);
	free(t);
	return error_set(err, "no queue pair for chains");
}

void blk_trunk_destroy(struct blk_trunk *t)
{
	struct blk_server *s = t->server;

	pthread_mutex_lock(&s->lock);
	s->trunk[t->slot] = NULL;
	pthread_mutex_unlock(&s->lock);
	(void)ibv_destroy_qp(t->qp);
	(void)ibv_dereg_mr(t->mr);
	(void)munmap(t->buf, ALL_BYTES);
	free(t);
}

static int receive(struct blk_trunk *t, uint32_t i)
{
	struct ibv_sge sge = {.addr = (uintptr_t)t->buf +
				      (uint64_t)i * BUFFER_BYTES,
			      .length = BUFFER_BYTES,
			      .lkey = t->mr->lkey};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = wr_id(t, i), .sg_list = &sge, .num_sge = 1};

	return -ibv_post_recv(t->qp, &wr, &bad);
}

int blk_trunk_arm(struct blk_trunk *t)
{
	int err = 0;

	for (uint32_t i = 0; i < BUFFERS && !err; i++)
		err = receive(t, i);
	pthread_mutex_lock(&t->server->lock);
	t->is_armed = !err;
	pthread_mutex_unlock(&t->server->lock);
	return err;
}

/* ---- messages ------------------------------------------------------------ */

bool blk_trunk_send(struct blk_server *s, const struct blk_member *to,
		    struct blk_link_message *m)
{
	struct blk_trunk *t =
		to->node < BLK_TRUNKS_MAX ? s->trunk[to->node] : NULL;
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED,
				       .sg_list = &sge,
				       .num_sge = 1};
	uint32_t i;

	if (!t || !t->is_armed || !t->free_count || blk_trunk_is_broken(t)) {
		s->counts.link_dropped++;
		return false;
	}
	i = t->free[--t->free_count];
	sge.addr = (uintptr_t)t->buf + (uint64_t)(BUFFERS + i) * BUFFER_BYTES;
	sge.lkey = t->mr->lkey;
	sge.length = (uint32_t)blk_link_build(m, (uint8_t *)sge.addr);
	wr.wr_id = wr_id(t, WR_SEND | i);
	if (ibv_post_send(t->qp, &wr, &bad))
		set_broken(t);
	return true;
}

static void hear(struct blk_server *s, const uint8_t *bytes, uint32_t len,
		 uint64_t now_ns)
{
	struct blk_link_message m;
	struct blk_entry *e;

	s->counts.link_messages++;
	if (blk_link_parse(bytes, len, &m)) {
		s->counts.bad++;
		return;
	}
	e = m.index < BLK_INDEX_MAX ? s->entry[m.index] : NULL;
	if (!e || e->generation != m.to || !e->chain || e->is_leaving) {
		s->counts.link_dropped++;
		return;
	}
	blk_chain_hear(e->chain, &m, now_ns);
}

static void take(struct blk_server *s, const struct ibv_wc *wc, uint64_t now_ns)
{
	struct blk_trunk *t = s->trunk[wc->wr_id >> 16 & 0xffff];
	uint32_t i = wc->wr_id & 0xff;

	if (!t || t->serial != wc->wr_id >> 32)
		return;
	if (wc->wr_id & WR_SEND)
		t->free[t->free_count++] = (uint8_t)i;
	if (wc->status != IBV_WC_SUCCESS) {
		set_broken(t);
		return;
	}
	if (wc->wr_id & WR_SEND)
		return;
	hear(s, t->buf + (size_t)i * BUFFER_BYTES, wc->byte_len, now_ns);
	if (receive(t, i))
		set_broken(t);
}

unsigned blk_trunks_look(struct blk_server *s)
{
	struct ibv_wc wc[TURN];
	uint64_t now_ns = s->config.now_ns(s->config.ctx);
	int n = ibv_poll_cq(s->trunk_cq, TURN, wc);

	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < n; i++)
		take(s, &wc[i], now_ns);
	blk_chained_tick(s, now_ns);
	blk_server_go_on(s);
	s->has_woken = !list_is_empty(&s->woken);
	pthread_mutex_unlock(&s->lock);
	return n > 0 ? (unsigned)n : 0;
}
