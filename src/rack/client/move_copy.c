/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a region that moves: READs from the one node, WRITEs to the
 * other, one of each under way. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "client_priv.h"
#include "move.h"

enum {
	CHUNK_BYTES = 1 << 20,
	SLOTS = 2,
	ALIGN = 4096,
	WAIT_NS = 1000000000, /* longer than a NIC tries, in tens */
	WAITS = 10,
};

/* One end: a connection and the key of the region there. */
struct end {
	struct client_link *link;
	struct client_key key;
	unsigned busy; /* requests under way */
};

struct copy {
	struct end from, to;
	uint8_t *buffer;
	struct ibv_mr *mr;
};

static int end_open(struct aq_rack *rack, uint32_t node, const char *name,
		    const char *move, bool writes, struct end *e)
{
	const struct client_link_options o = {.rights = CLIENT_LINK_READ};
	char path[CLIENT_PATH_MAX];
	json_t *reply = NULL;
	int err = client_link_join(rack, node, &o, &e->link);

	if (err)
		return err;
	(void)snprintf(path, sizeof(path), "/v1/connections/%s/grants",
		       client_link_name(e->link));
	err = client_link_call(e->link, "POST", path,
			       json_pack("{s:s, s:s, s:s, s:b}", "region", name,
					 "rights", writes ? "rw" : "r", "move",
					 move, "revocable", 1),
			       0, &reply);
	if (!err)
		err = client_key_take(reply, &e->key);
	json_decref(reply);
	return err;
}

static int post(const struct copy *c, struct end *e, enum ibv_wr_opcode opcode,
		unsigned slot, uint64_t at, uint32_t bytes)
{
	struct ibv_sge sge = {.addr = (uintptr_t)c->buffer +
				      (uintptr_t)slot * CHUNK_BYTES,
			      .length = bytes,
			      .lkey = c->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.wr_id = slot,
		      .sg_list = &sge,
		      .num_sge = 1,
		      .opcode = opcode,
		      .send_flags = IBV_SEND_SIGNALED,
		      .wr.rdma = {.remote_addr = e->key.addr + at,
				  .rkey = e->key.rkey}};

	if (ibv_post_send(e->link->qp, &wr, &bad))
		return error_set(-EIO, "the NIC takes no request");
	e->busy++;
	return 0;
}

/* Until at most so many are under way. */
static int settle(struct end *e, unsigned limit)
{
	const struct client_clock *clock = e->link->clock;
	uint64_t end_ns =
		client_clock_now_ns(clock) + (uint64_t)WAITS * WAIT_NS;
	struct ibv_wc wc;

	while (e->busy > limit) {
		int n = ibv_poll_cq(e->link->cq, 1, &wc);

		if (n > 0 && wc.status == IBV_WC_SUCCESS) {
			e->busy--;
			continue;
		}
		if (n != 0 || client_clock_now_ns(clock) > end_ns)
			return error_set(
				n > 0 ? client_wc_errno(wc.status) : -EHOSTDOWN,
				"node %s %s", client_link_node_name(e->link),
				n > 0 && client_wc_errno(wc.status) == -ESTALE
					? "has ended the move"
					: "does not answer");
		client_clock_polled(clock);
	}
	return 0;
}

static int run(struct copy *c, uint64_t size_bytes, client_move_fn keep,
	       void *ctx)
{
	unsigned slot = 0;
	int err = 0;

	for (uint64_t at = 0; at < size_bytes && !err; at += CHUNK_BYTES) {
		uint32_t n = (uint32_t)u64_min(size_bytes - at, CHUNK_BYTES);

		/* The slot's last WRITE is over, its neighbour's goes on. */
		err = settle(&c->to, SLOTS - 1);
		if (!err)
			err = post(c, &c->from, IBV_WR_RDMA_READ, slot, at, n);
		if (!err)
			err = settle(&c->from, 0);
		if (!err)
			err = post(c, &c->to, IBV_WR_RDMA_WRITE, slot, at, n);
		if (!err)
			err = keep(ctx);
		slot = (slot + 1) % SLOTS;
	}
	return err ? err : settle(&c->to, 0);
}

int client_move_copy(struct aq_rack *rack, uint32_t from, uint32_t to,
		     const char *name, const char *move, uint64_t size_bytes,
		     client_move_fn keep, void *ctx)
{
	struct copy c = {
		.buffer = aligned_alloc(ALIGN, (size_t)SLOTS * CHUNK_BYTES)};
	const struct client_verbs *verbs;
	char words[ERROR_TEXT_MAX];
	int err = c.buffer ? 0 : error_set(-ENOMEM, "no memory for a copy");

	if (!err)
		err = end_open(rack, from, name, move, false, &c.from);
	if (!err)
		err = end_open(rack, to, name, move, true, &c.to);
	if (!err && (c.from.key.size_bytes < size_bytes ||
		     c.to.key.size_bytes < size_bytes))
		err = error_set(-EPROTO, "region %s has another size", name);
	if (!err) {
		c.mr = c.from.link->verbs->reg_mr(c.from.link->pd, c.buffer,
						  (size_t)SLOTS * CHUNK_BYTES,
						  IBV_ACCESS_LOCAL_WRITE);
		err = c.mr ? 0
			   : error_set(-ENOMEM, "the NIC registers no memory");
	}
	if (!err)
		err = run(&c, size_bytes, keep, ctx);
	(void)snprintf(words, sizeof(words), "%s", err ? error_last() : "");
	verbs = c.from.link ? c.from.link->verbs : NULL;
	client_link_close(c.from.link);
	client_link_close(c.to.link);
	if (c.mr)
		(void)verbs->dereg_mr(c.mr); /* no request is left */
	free(c.buffer);
	return err ? error_set(err, "%s", words) : 0;
}
