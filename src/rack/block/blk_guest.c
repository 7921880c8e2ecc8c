/* SPDX-License-Identifier: Apache-2.0 */
/* One client's connection to the block server, and its session. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "blk_server_priv.h"

enum {
	SLOT_BYTES = BLOCK_MESSAGE_MAX + BLOCK_REPLY_MAX,
	BUF_BYTES = BLK_SLOTS * SLOT_BYTES,
};

uint64_t blk_guest_bytes(void)
{
	return BUF_BYTES + sizeof(struct blk_guest);
}

struct ibv_qp *blk_guest_qp(const struct blk_guest *g)
{
	return g->qp;
}

uint8_t *blk_guest_message(const struct blk_guest *g, uint32_t slot)
{
	return g->buf + (size_t)slot * SLOT_BYTES;
}

uint8_t *blk_guest_reply(const struct blk_guest *g, uint32_t slot)
{
	return blk_guest_message(g, slot) + BLOCK_MESSAGE_MAX;
}

/* ---- coming -------------------------------------------------------------- */

static struct blk_client *find_client(struct blk_server *s,
				      const struct ibv_pd *pd,
				      const uint8_t *session)
{
	for (struct list *l = s->clients.next; l != &s->clients; l = l->next) {
		struct blk_client *c = container_of(l, struct blk_client, link);

		if (c->pd == pd && !memcmp(c->id, session, sizeof(c->id)))
			return c;
	}
	return NULL;
}

static int join_session(struct blk_guest *g, const uint8_t *session,
			bool *is_new)
{
	struct blk_client *c = find_client(g->server, g->pd, session);

	*is_new = !c;
	g->was_known = c;
	if (!c) {
		if (g->line->sessions == BLK_LINE_SESSIONS)
			return error_set(-EAGAIN,
					 "a tenant has %d sessions at a node "
					 "at most",
					 BLK_LINE_SESSIONS);
		c = calloc(1, sizeof(*c));
		if (!c)
			return error_set(-ENOMEM, "no memory for a session");
		memcpy(c->id, session, sizeof(c->id));
		c->pd = g->pd;
		list_append(&g->server->clients, &c->link);
		g->line->sessions++;
	} else if (c->guest) {
		/* What it has sent and is not executed yet never will be. */
		c->guest->is_fenced = true;
		c->guest->client = NULL;
	}
	c->guest = g;
	g->client = c;
	blk_server_welcome(g->server, c);
	return 0;
}

static int admit(struct blk_guest *g, const uint8_t *session, bool *is_new)
{
	struct blk_server *s = g->server;
	struct blk_line *l = blk_line_join(s, g->pd);
	int err;

	if (!l || l->guests == BLK_LINE_GUESTS)
		return error_set(-EAGAIN,
				 "a tenant has %d connections for blocks at a "
				 "node at most",
				 BLK_LINE_GUESTS);
	for (unsigned i = 0; i < BLK_GUESTS_MAX; i++) {
		uint32_t id = ++s->next_id & INT32_MAX;

		if (s->guest[id % BLK_GUESTS_MAX])
			continue;
		g->id = id;
		g->line = l;
		err = join_session(g, session, is_new);
		if (err) {
			g->line = NULL;
			return err;
		}
		s->guest[id % BLK_GUESTS_MAX] = g;
		l->guests++;
		atomic_store_explicit(&l->is_looked, true,
				      memory_order_relaxed);
		return 0;
	}
	return error_set(-EAGAIN, "the node has %d connections for blocks",
			 BLK_GUESTS_MAX);
}

static int make_queues(struct blk_guest *g)
{
	struct ibv_qp_init_attr init = {
		.send_cq = g->line->cq,
		.recv_cq = g->line->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = BLK_SLOTS * (BLK_PUSHES + 2),
			.max_recv_wr = BLK_SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	g->buf = mmap(NULL, BUF_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (g->buf == MAP_FAILED) {
		g->buf = NULL;
		return -ENOMEM;
	}
	g->buf_mr =
		ibv_reg_mr(g->pd, g->buf, BUF_BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!g->buf_mr)
		return -ENOMEM;
	g->qp = ibv_create_qp(g->pd, &init);
	return g->qp ? 0 : -errno;
}

static void release(struct blk_guest *g)
{
	if (g->buf_mr)
		(void)ibv_dereg_mr(g->buf_mr);
	if (g->buf)
		(void)munmap(g->buf, BUF_BYTES);
	free(g);
}

int blk_guest_create(struct blk_server *s, struct ibv_pd *pd,
		     const char *tenant, const uint8_t by[BLK_BY_BYTES],
		     const uint8_t session[BLOCK_SESSION_BYTES], bool *is_new,
		     struct blk_guest **out)
{
	struct blk_guest *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return error_set(-ENOMEM, "no memory for a connection");
	g->server = s;
	g->pd = pd;
	memcpy(g->tenant, tenant, strnlen(tenant, BLK_TENANT_MAX));
	memcpy(g->by, by, sizeof(g->by));
	for (uint32_t i = 0; i < BLK_SLOTS; i++) {
		g->job[i].guest = g;
		g->job[i].slot = i;
	}
	pthread_mutex_lock(&s->lock);
	err = admit(g, session, is_new);
	pthread_mutex_unlock(&s->lock);
	if (err) {
		release(g);
		return err;
	}
	err = make_queues(g);
	if (err) {
		blk_guest_destroy(g, *is_new, 0);
		return error_set(err, "the block server has no room: %s",
				 strerror(-err));
	}
	*out = g;
	return 0;
}

int blk_guest_arm(struct blk_guest *g)
{
	int err = 0;

	for (uint32_t i = 0; i < BLK_SLOTS && !err; i++)
		err = blk_guest_receive(g, i);
	return err;
}

/* ---- going --------------------------------------------------------------- */

void blk_guest_settle(struct blk_guest *g)
{
	for (unsigned i = 0; i < BLK_SLOTS; i++)
		blk_job_drop(&g->job[i]);
}

void blk_guest_destroy(struct blk_guest *g, bool is_gone, uint64_t now_ns)
{
	struct blk_server *s = g->server;

	/* What of it is left in the queue finds nobody, and nothing goes on
	 * that would be answered over it. */
	pthread_mutex_lock(&s->lock);
	s->guest[g->id % BLK_GUESTS_MAX] = NULL;
	for (unsigned i = 0; i < BLK_SLOTS; i++)
		blk_job_detach(&g->job[i]);
	pthread_mutex_unlock(&s->lock);
	if (g->qp)
		(void)ibv_destroy_qp(g->qp);
	pthread_mutex_lock(&s->lock);
	blk_guest_settle(g);
	g->line->guests--;
	if (g->client) {
		g->client->guest = NULL;
		g->client->left_ns = now_ns;
		if (is_gone)
			blk_server_end_session(s, g->client);
	}
	/* Those that waited for a block which it was filling: nothing else may
	 * happen that would let them go on. */
	blk_server_go_on(s);
	(void)blk_hold_run(s, UINT32_MAX);
	pthread_mutex_unlock(&s->lock);
	release(g);
}

void blk_guest_break(struct blk_guest *g)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	g->is_fenced = true;
	(void)ibv_modify_qp(g->qp, &attr, IBV_QP_STATE); /* it may be so */
}

int blk_guest_receive(struct blk_guest *g, uint32_t slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)blk_guest_message(g, slot),
			      .length = BLOCK_MESSAGE_MAX,
			      .lkey = g->buf_mr->lkey};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = (uint64_t)g->id << 32 | BLK_WR_RECEIVE | slot,
		      .sg_list = &sge,
		      .num_sge = 1};

	return -ibv_post_recv(g->qp, &wr, &bad);
}
