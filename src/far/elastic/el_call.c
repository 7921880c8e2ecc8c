/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to blocks, which are repeated until they are answered; and READs. */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "el_priv.h"
#include "wire/block_watch.h"

enum {
	SOON_TRIES = 40,
	SOON_GROWS = 3, /* to 400 us */
};

/* Whether another connection may help. */
static bool may_repeat(int err)
{
	return err == -EHOSTDOWN || err == -EIO || err == -EPROTO;
}

static bool reads(enum block_opcode opcode)
{
	return opcode == BLOCK_STAT || opcode == BLOCK_KV_GET ||
	       opcode == BLOCK_KV_SCAN || opcode == BLOCK_KV_LOOK ||
	       opcode == BLOCK_WATCH;
}

static void set_place(struct block_op *ops, unsigned count,
		      const struct el_place *at)
{
	for (unsigned i = 0; i < count; i++) {
		ops[i].index = at->index;
		ops[i].generation = at->generation;
	}
}

static bool is_elsewhere(const struct block_result *results, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (results[i].status == BLOCK_ELSEWHERE ||
		    results[i].status == BLOCK_STALE)
			return true;
	return false;
}

static bool changes_any(const struct block_op *ops, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (ops[i].sequence)
			return true;
	return false;
}

void el_port_address(struct el_port *p, struct block_op *ops, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ops[i].handle = p->handle;
	p->has_changed |= changes_any(ops, count);
}

/* One member of a chain, without patience: another one may have its place. */
static int call_member(struct el_object *o, const struct el_place *at,
		       struct block_op *ops, unsigned count,
		       struct block_result *results, uint64_t acked,
		       uint64_t deadline_ns)
{
	uint64_t until_ns =
		u64_min(deadline_ns, el_now_ns() + EL_MEMBER_MS * 1000000ull);
	struct el_port *p;
	int err = el_port_find(o, at->node, &p);

	if (!err)
		err = el_port_ready(o, p, false, until_ns);
	if (err)
		return err;
	set_place(ops, count, at);
	el_port_address(p, ops, count);
	err = el_port_exchange(o, p, ops, count, results, acked, until_ns);
	if (err)
		el_port_hang_up(p);
	return err;
}

static bool is_same(const struct el_place *a, const struct el_place *b)
{
	return a->generation == b->generation;
}

/*
 * A block with copies: who answers now is asked of the controller, and what was
 * sent to another one is sent again. The numbers of changes are the same, and
 * sessions are in all copies, so nothing happens twice.
 */
static int call_chain(struct el_object *o, uint64_t number,
		      struct block_op *ops, unsigned count,
		      struct block_result *results, uint64_t acked,
		      uint64_t deadline_ns)
{
	bool is_read = reads(ops[0].opcode);
	unsigned tries = 0;

	results[0].status = BLOCK_OK;
	for (;;) {
		const struct el_block *b = el_find(o, number);
		struct el_place at;
		bool is_over;
		int err;

		if (!b)
			return error_set(-ENODEV, "%s has lost block %llu",
					 o->path, (unsigned long long)number);
		at = is_read ? b->reader : b->head;
		err = call_member(o, &at, ops, count, results, acked,
				  deadline_ns);
		if (!err && !is_elsewhere(results, count))
			return 0;
		is_over = !el_pause(&tries, deadline_ns);
		if (is_over && err)
			return err;
		if (is_over)
			return el_error(o, BLOCK_ELSEWHERE);
		err = el_refresh(o, deadline_ns);
		if (err && err != -EHOSTDOWN && err != -EAGAIN)
			return err;
		b = el_find(o, number);
		/* It is not a matter of the chain. */
		if (!err && b && results[0].status == BLOCK_STALE &&
		    tries > 3 && is_same(&at, is_read ? &b->reader : &b->head))
			return 0;
		results[0].status = BLOCK_OK;
	}
}

int el_call_node(struct el_object *o, struct el_port *p, struct block_op *ops,
		 unsigned count, struct block_result *results, uint64_t acked,
		 bool is_repeat, uint64_t deadline_ns)
{
	unsigned tries = 0;
	int err;

	for (;;) {
		err = el_port_ready(o, p, is_repeat, deadline_ns);
		if (!err) {
			el_port_address(p, ops, count);
			err = el_port_exchange(o, p, ops, count, results, acked,
					       deadline_ns);
			is_repeat |= err != 0;
			o->stage.is_doubtful |= err != 0;
		}
		if (!err)
			return 0;
		el_port_hang_up(p);
		if (!may_repeat(err) || !el_pause(&tries, deadline_ns))
			return err;
	}
}

static int call_block(struct el_object *o, const struct el_block *b,
		      struct block_op *ops, unsigned count,
		      struct block_result *results, uint64_t acked,
		      uint64_t deadline_ns)
{
	struct el_port *p;
	int err = el_port_find(o, b->head.node, &p);

	set_place(ops, count, &b->head);
	return err ? err
		   : el_call_node(o, p, ops, count, results, acked, false,
				  deadline_ns);
}

/* A new block is there after some milliseconds, so the pauses begin to grow
 * only after as long. */
static bool pause_soon(unsigned *tries, uint64_t deadline_ns)
{
	unsigned at = *tries < SOON_TRIES ? u32_min(*tries, SOON_GROWS)
					  : *tries - SOON_TRIES;

	++*tries;
	return el_pause(&at, deadline_ns);
}

/* The first result asks for patience, or for a ticket that holds. */
static int settle(struct el_object *o, enum block_status status,
		  unsigned *tries, bool *is_renewed, uint64_t deadline_ns)
{
	struct el_port *p;

	if (status == BLOCK_DENIED && !*is_renewed) {
		*is_renewed = true;
		for (unsigned i = 0; i < o->port_count; i++) {
			p = o->port[i];
			if (p->link)
				el_port_hang_up(p);
		}
		return el_refresh(o, deadline_ns);
	}
	if (status != BLOCK_BUSY || !pause_soon(tries, deadline_ns))
		return el_error(o, status);
	/* A block that the node could not make leaves the map. */
	return *tries % 8 ? 0 : el_refresh(o, deadline_ns);
}

int el_call_once(struct el_object *o, uint64_t number, struct block_op *ops,
		 unsigned count, struct block_result *results, uint64_t acked,
		 uint64_t deadline_ns)
{
	const struct el_block *b = el_find(o, number);

	if (b && b->is_chained)
		return call_chain(o, number, ops, count, results, acked,
				  deadline_ns);
	return b ? call_block(o, b, ops, count, results, acked, deadline_ns)
		 : error_set(-ENODEV, "%s has lost block %llu", o->path,
			     (unsigned long long)number);
}

int el_call_as(struct el_object *o, uint64_t number, struct block_op *ops,
	       unsigned count, struct block_result *results, uint64_t acked,
	       uint64_t deadline_ns)
{
	bool is_renewed = false;
	unsigned tries = 0;
	int err;

	for (;;) {
		err = el_call_once(o, number, ops, count, results, acked,
				   deadline_ns);
		if (err)
			return err;
		if (results[0].status != BLOCK_BUSY &&
		    results[0].status != BLOCK_DENIED)
			return 0;
		err = settle(o, results[0].status, &tries, &is_renewed,
			     deadline_ns);
		if (err)
			return err;
	}
}

static bool is_change(enum block_opcode opcode)
{
	return opcode != BLOCK_STAT && opcode != BLOCK_BYE;
}

int el_call(struct el_object *o, uint64_t number, struct block_op *ops,
	    unsigned count, struct block_result *results, uint64_t deadline_ns)
{
	uint64_t acked = o->sequence;

	for (unsigned i = 0; i < count; i++)
		ops[i].sequence = is_change(ops[i].opcode) ? ++o->sequence : 0;
	return el_call_as(o, number, ops, count, results, acked, deadline_ns);
}

/* ---- waiting ------------------------------------------------------------- */

/* Another member may tell events now. Whatever becomes of that, who waits
 * pauses before it looks again. */
static int look_around(struct el_object *o, uint64_t deadline_ns)
{
	(void)!el_refresh(o, deadline_ns);
	return -EAGAIN;
}

int el_wait(struct el_object *o, uint64_t number, uint64_t serial,
	    uint32_t events, uint64_t until_ns, uint64_t deadline_ns)
{
	struct block_watch_ask_wire ask = {
		.serial = be64_put(serial),
		.events = be32_put(events),
		.flags = be32_put(BLOCK_WATCH_HOLD),
	};
	const struct el_block *b = el_find(o, number);
	struct block_op op = {.opcode = BLOCK_WATCH,
			      .length = sizeof(ask),
			      .value = (const uint8_t *)&ask};
	enum block_status status;
	struct block_result r = {.status = BLOCK_OK};
	struct el_stat stat;
	struct el_port *p;
	uint64_t member_ns = el_now_ns() + EL_MEMBER_MS * 1000000ull;
	bool is_chained = b && b->is_chained;
	int err = b ? el_port_find(o, b->reader.node, &p) : 0;

	if (!b || err)
		return err; /* who looks again finds out */
	set_place(&op, 1, &b->reader);
	/* Which may read the map anew. */
	err = el_port_ready(o, p, false,
			    is_chained ? u64_min(deadline_ns, member_ns)
				       : deadline_ns);
	if (err)
		return is_chained ? look_around(o, deadline_ns) : err;
	op.handle = p->handle;
	p->sleeps = p->link->channel != NULL;
	err = el_port_exchange(o, p, &op, 1, &r, o->sequence, until_ns);
	p->sleeps = false;
	/* The next message ends the wait at the node. Its answer has to be here
	 * before anything else is: all have one place. */
	if (err == -ETIMEDOUT)
		return el_stat(o, number, &stat, &status, deadline_ns);
	if (err)
		el_port_hang_up(p);
	if (is_chained && (err || r.status != BLOCK_OK))
		return look_around(o, deadline_ns);
	return err == -EHOSTDOWN || err == -EPROTO ? 0 : err;
}

/* ---- reading ------------------------------------------------------------- */

enum {
	READS = 4, /* under way at once, each to its part of staging memory */
	READ_BYTES = EL_STAGING_BYTES / READS,
};

static int post_read(struct el_object *o, struct el_port *p,
		     const struct el_block *b, uint64_t offset, uint32_t at,
		     uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)el_staging(o) + at,
			      .length = len,
			      .lkey = o->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.wr_id = EL_WR_READ,
		      .opcode = IBV_WR_RDMA_READ,
		      .send_flags = IBV_SEND_SIGNALED,
		      .sg_list = &sge,
		      .num_sge = 1,
		      .wr.rdma = {.remote_addr = b->address + offset,
				  .rkey = b->key}};

	return ibv_post_send(p->link->qp, &wr, &bad)
		       ? error_set(-EHOSTDOWN,
				   "the connection to node %s broke", p->name)
		       : 0;
}

/* By the NIC; what has come is copied while more is on its way. */
static int read_staged(struct el_object *o, struct el_port *p,
		       const struct el_block *b, uint64_t offset, uint8_t *data,
		       uint32_t len, uint64_t deadline_ns)
{
	uint32_t asked = 0;
	int err = 0;

	for (uint32_t at = 0; at < len && !err; at += READ_BYTES) {
		for (; asked < len && asked < at + READS * READ_BYTES && !err;
		     asked += READ_BYTES)
			err = post_read(o, p, b, offset + asked,
					asked % EL_STAGING_BYTES,
					u32_min(READ_BYTES, len - asked));
		if (!err)
			err = el_port_await(p, EL_WR_READ, 0, deadline_ns);
		if (!err)
			memcpy(data + at, el_staging(o) + at % EL_STAGING_BYTES,
			       u32_min(READ_BYTES, len - at));
	}
	return err;
}

static int read_part(struct el_object *o, struct el_port *p,
		     const struct el_block *b, uint64_t offset, void *data,
		     uint32_t len, uint64_t deadline_ns)
{
	struct aqdv_read now = {.to = data,
				.remote_addr = b->address + offset,
				.rkey = b->key,
				.len_bytes = len};

	/* Who asks reads the header before the data, in the order of calls. */
	return aqdv_read_now(p->link->qp, &now, 1) == 1
		       ? 0
		       : read_staged(o, p, b, offset, data, len, deadline_ns);
}

/* Where the block lies now, or another copy of it. */
static int look_again(struct el_object *o, uint64_t number,
		      const struct el_block **out, uint64_t deadline_ns)
{
	enum block_status status = BLOCK_OK;
	struct el_stat stat;
	struct el_block *b;
	int err = el_stat(o, number, &stat, &status, deadline_ns);

	if (err)
		return err;
	b = el_find(o, number);
	if (b && status != BLOCK_OK && status != BLOCK_STALE)
		return el_error(o, status);
	if (!b || status != BLOCK_OK)
		return error_set(-ESTALE, "%s has lost block %llu", o->path,
				 (unsigned long long)number);
	b->address = stat.address;
	b->key = stat.key;
	b->is_read = true;
	*out = b;
	return 0;
}

int el_read(struct el_object *o, uint64_t number, uint64_t offset, void *data,
	    size_t len_bytes, uint64_t deadline_ns)
{
	const struct el_block *b = el_find(o, number);
	unsigned tries = 0;
	struct el_port *p;
	uint8_t *to = data;
	int err = b ? el_port_find(o, b->reader.node, &p) : -ENODEV;

	while (!err && len_bytes) {
		/* A block may be mapped from one part on. */
		uint32_t n = (uint32_t)u64_min(len_bytes, EL_READ_BYTES);

		err = el_port_ready(o, p, false, deadline_ns);
		if (!err)
			err = read_part(o, p, b, offset, to, n, deadline_ns);
		if (!err) {
			to += n;
			offset += n;
			len_bytes -= n;
			continue;
		}
		el_port_hang_up(p);
		/* -ESTALE: its key has ended. */
		if ((!may_repeat(err) && err != -ESTALE) ||
		    !el_pause(&tries, deadline_ns))
			return err;
		/* It may be another copy, or somewhere else on its node. */
		err = look_again(o, number, &b, deadline_ns);
		if (!err)
			err = el_port_find(o, b->reader.node, &p);
	}
	return err;
}
