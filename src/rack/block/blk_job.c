/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message, operation by operation. It stops where a value has to be fetched,
 * or where another message fetches one for the same block, and goes on later;
 * it holds one block at a time, so nobody waits for ever. What is left undone
 * after an operation that could not be done says blk_order.h.
 */
#include <endian.h>
#include <errno.h>

#include "blk_server_priv.h"

static struct blk_server *server_of(const struct blk_job *j)
{
	return j->guest->server;
}

static uint64_t now_ns(const struct blk_job *j)
{
	const struct blk_server_config *c = &server_of(j)->config;

	return c->now_ns(c->ctx);
}

static uint64_t wr_id(const struct blk_job *j, uint32_t what)
{
	return (uint64_t)j->guest->id << 32 | what | j->slot;
}

/* ---- what needs no block ------------------------------------------------- */

static void open_handle(struct blk_job *j, const struct block_op *op,
			struct block_result *r)
{
	const struct blk_server_config *c = &server_of(j)->config;
	struct blk_guest *g = j->guest;
	unsigned i = 0;

	r->status = BLOCK_BAD;
	if (!op->value)
		return;
	while (i < BLK_HANDLES && g->handle[i].is_used)
		i++;
	r->status = BLOCK_BUSY;
	if (i == BLK_HANDLES)
		return;
	r->status = c->judge(c->ctx, g->tenant, g->by, op->value, op->length,
			     &g->handle[i].right);
	r->value = i | (g->was_known ? BLOCK_OPEN_KNOWN : 0);
	g->handle[i].is_used = r->status == BLOCK_OK;
}

static void close_handle(struct blk_job *j, const struct block_op *op,
			 struct block_result *r)
{
	r->status = BLOCK_DENIED;
	if (op->handle >= BLK_HANDLES || !j->guest->handle[op->handle].is_used)
		return;
	j->guest->handle[op->handle].is_used = false;
	r->status = BLOCK_OK;
}

/* It stays a session without anything, for as long as the connection is
 * there. */
static void bye(struct blk_job *j)
{
	blk_server_leave(server_of(j), j->guest->pd, j->message.session);
}

/* ---- rights -------------------------------------------------------------- */

static bool changes(enum block_opcode opcode)
{
	return opcode != BLOCK_STAT && opcode != BLOCK_KV_GET &&
	       opcode != BLOCK_KV_SCAN && opcode != BLOCK_KV_LOOK &&
	       opcode != BLOCK_WATCH;
}

static enum block_status find(struct blk_job *j, const struct block_op *op,
			      struct blk_entry **out)
{
	struct blk_server *s = server_of(j);
	const struct blk_handle *h =
		op->handle < BLK_HANDLES ? &j->guest->handle[op->handle] : NULL;
	struct blk_entry *e =
		op->index < BLK_INDEX_MAX ? s->entry[op->index] : NULL;

	if (!h || !h->is_used ||
	    s->config.wall_s(s->config.ctx) > h->right.end_s)
		return BLOCK_DENIED;
	/* A block of another tenant is none at all. */
	if (e && e->pd != j->guest->pd)
		e = NULL;
	if (!e || e->generation != op->generation || e->is_leaving ||
	    e->is_frozen)
		/* An order to make a block may come after its first client. */
		return op->index < BLK_INDEX_MAX &&
				       op->generation > s->heard[op->index]
			       ? BLOCK_BUSY
			       : BLOCK_STALE;
	if (e->object != h->right.object ||
	    (changes(op->opcode) && !h->right.may_change))
		return BLOCK_DENIED;
	if (blk_spill_is_broken(e))
		return BLOCK_BROKEN;
	*out = e;
	return BLOCK_OK;
}

/* ---- data ---------------------------------------------------------------- */

static int pull(struct blk_job *j, struct blk_entry *e, uint8_t *place,
		const struct block_op *op)
{
	struct ibv_sge sge = {.addr = (uintptr_t)place,
			      .length = op->length,
			      .lkey = e->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = wr_id(j, BLK_WR_PULL),
					 .opcode = IBV_WR_RDMA_READ,
					 .send_flags = IBV_SEND_SIGNALED,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .wr.rdma = {.remote_addr = op->address,
						     .rkey = op->key},
				 };

	return -ibv_post_send(j->guest->qp, &wr, &bad);
}

/* Before the answer, on the same queue pair: so it is there first. */
static int push(struct blk_job *j, struct blk_entry *e,
		const struct blk_answer *a, const struct block_op *op)
{
	struct ibv_sge sge = {.addr = (uintptr_t)a->data,
			      .length = a->length,
			      .lkey = e->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .opcode = IBV_WR_RDMA_WRITE,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .wr.rdma = {.remote_addr = op->address,
						     .rkey = op->key},
				 };
	int err = -ibv_post_send(j->guest->qp, &wr, &bad);

	if (err)
		return err;
	j->pins[j->push_count] = a->pins;
	j->push[j->push_count++] = e;
	e->under_way++;
	if (a->pins)
		++*a->pins;
	server_of(j)->counts.pushed_bytes += a->length;
	return 0;
}

static void give_back(struct blk_job *j)
{
	for (unsigned i = 0; i < j->push_count; i++) {
		j->push[i]->under_way--;
		if (j->pins[i])
			--*j->pins[i];
	}
	j->push_count = 0;
}

void blk_job_let_in(struct blk_entry *e)
{
	while (!list_is_empty(&e->waiting)) {
		struct blk_job *next =
			container_of(e->waiting.next, struct blk_job, link);

		list_remove(&next->link);
		next->state = BLK_JOB_RUNS;
		list_append(&e->server->ready, &next->link);
	}
}

/* The block is free for who waits. */
static void let_go(struct blk_entry *e)
{
	e->busy = NULL;
	blk_job_let_in(e);
}

/* ---- one operation ------------------------------------------------------- */

static uint32_t inside_room(const struct blk_job *j)
{
	const struct block_writer *w = &j->reply;
	size_t rest = (size_t)(j->message.count - j->at) *
		      sizeof(struct block_result_wire);
	size_t left = w->room_bytes - w->used_bytes;

	return left > rest + 8 ? (uint32_t)(left - rest - 8) : 0;
}

static void request_of(const struct blk_job *j, const struct block_op *op,
		       struct blk_request *r)
{
	*r = (struct blk_request){
		.session = j->message.session,
		.acked = j->message.acked,
		.opcode = op->opcode,
		.sequence = op->sequence,
		.arg = op->arg,
		.length = op->length,
		.value = op->value,
		.inside_room = inside_room(j),
		.buffer_bytes =
			op->key && j->push_count < BLK_PUSHES
				? u32_max(op->room, op->value ? 0 : op->length)
				: 0,
	};
}

static void add_result(struct blk_job *j, const struct block_result *r)
{
	int err = block_reply_add(&j->reply, r);

	ASSERT(err == 0); /* inside_room leaves room for all */
	j->since_ns = 0;
	j->at++;
	server_of(j)->counts.ops++;
}

static void add(struct blk_job *j, const struct block_result *r)
{
	blk_order_note(&j->order, &j->op[j->at], r->status);
	add_result(j, r);
}

static void add_status(struct blk_job *j, enum block_status status)
{
	struct blk_guest *g = j->guest;

	add(j, &(struct block_result){.status = status});
	if (status == BLOCK_DENIED || status == BLOCK_STALE)
		server_of(j)->counts.refused++;
	if (status == BLOCK_OK)
		g->denials = 0;
	else if (status == BLOCK_DENIED && ++g->denials == BLK_DENIALS_MAX)
		blk_guest_break(g);
}

static void add_stat(struct blk_job *j, const struct blk_entry *e)
{
	struct block_stat_wire stat = {
		.address = be64_put((uintptr_t)e->block.mem),
		.key = be32_put(e->mr->rkey),
		.flags = be32_put(e->block.flags),
		.size = be64_put(e->block.size_bytes),
	};

	e->block.kind->stat(&e->block, &stat);
	if (inside_room(j) < sizeof(stat))
		add_status(j, BLOCK_LATER);
	else
		add(j, &(struct block_result){.status = BLOCK_OK,
					      .length = sizeof(stat),
					      .data = (uint8_t *)&stat});
}

static void add_answer(struct blk_job *j, struct blk_entry *e,
		       const struct block_op *op, const struct blk_answer *a)
{
	struct block_result r = {
		.status = a->status, .length = a->length, .value = a->value};
	uint8_t inside[BLOCK_INSIDE_MAX];

	if (a->status == BLOCK_OK && op->opcode == BLOCK_STAT) {
		add_stat(j, e);
		return;
	}
	if (a->data && a->length <= inside_room(j) &&
	    (a->length <= BLOCK_INSIDE_MAX || a->is_inside))
		r.data = a->data;
	else if (a->data && push(j, e, a, op))
		r.status = BLOCK_LOST; /* the queue pair is broken */
	/* What lies in a file is read where a fault does no harm. */
	if (e->is_spilled && r.data && r.length <= sizeof(inside)) {
		if (blk_spill_copy(e, inside, r.data, r.length))
			r.data = inside;
		else
			r = (struct block_result){.status = BLOCK_BROKEN};
	}
	add(j, &r);
}

static bool wait(struct blk_job *j, struct blk_entry *e)
{
	if (e->chain && !j->since_ns)
		j->since_ns = now_ns(j);
	j->state = BLK_JOB_WAITS;
	list_append(&e->waiting, &j->link);
	return false;
}

/* A change of a block with copies. False: it goes on later. */
static bool chain(struct blk_job *j, struct blk_entry *e,
		  const struct block_op *op)
{
	struct blk_request r;
	struct blk_answer a;
	uint8_t *place = NULL;

	if (!blk_chain_is_head(e->chain)) {
		add_status(j, BLOCK_ELSEWHERE);
		return true;
	}
	if (e->busy || !blk_chain_is_open(e->chain))
		return wait(j, e);
	request_of(j, op, &r);
	e->busy = j;
	j->state = BLK_JOB_CHAINS;
	j->since_ns = now_ns(j);
	e->is_called = true;
	switch (blk_chain_change(e->chain, &r, &a, &place, j->since_ns)) {
	case BLK_CHAIN_ANSWER:
		blk_job_chained(j, e, &a);
		break;
	case BLK_CHAIN_FETCH:
		j->state = BLK_JOB_PULLS;
		e->under_way++;
		if (pull(j, e, place, op)) {
			e->under_way--;
			e->busy = NULL;
			add_status(j, BLOCK_LOST);
		}
		break;
	case BLK_CHAIN_TAKEN:
		break;
	}
	e->is_called = false;
	return e->busy != j;
}

void blk_job_chained(struct blk_job *j, struct blk_entry *e,
		     const struct blk_answer *a)
{
	const struct block_op *op = &j->op[j->at];

	if (e->busy == j)
		e->busy = NULL;
	j->since_ns = 0;
	if (a->status == BLOCK_ELSEWHERE)
		add_status(j, a->status);
	else
		add_answer(j, e, op, a);
	if (e->is_called)
		return; /* who has called goes on */
	if (j->state == BLK_JOB_WAITS)
		list_remove(&j->link);
	j->state = BLK_JOB_RUNS;
	list_append(&server_of(j)->ready, &j->link);
}

static void watch(struct blk_job *j, const struct block_op *op)
{
	struct block_result r = {.status = BLOCK_OK};
	struct blk_entry *e = NULL;

	r.status = find(j, op, &e);
	if (r.status == BLOCK_OK && e->chain &&
	    !blk_chain_may_read(e->chain, now_ns(j)))
		r.status = BLOCK_ELSEWHERE;
	if (r.status == BLOCK_OK) {
		blk_hold_watch(j, e, op, inside_room(j), &r);
		add(j, &r);
	} else if (r.status == BLOCK_STALE) {
		blk_hold_gone(j, op, &r);
		add(j, &r);
	} else {
		add_status(j, r.status);
	}
}

/* False: it goes on later. */
static bool execute(struct blk_job *j, const struct block_op *op)
{
	struct blk_entry *e = NULL;
	enum block_status status = find(j, op, &e);
	struct blk_request r;
	struct blk_answer a;
	uint8_t *place;

	if (status != BLOCK_OK) {
		add_status(j, status);
		return true;
	}
	if (e->halted_by && changes(op->opcode) &&
	    (!e->chain || blk_chain_is_head(e->chain)))
		return wait(j, e);
	if (e->chain && changes(op->opcode))
		return chain(j, e, op);
	if (e->chain && !blk_chain_may_read(e->chain, now_ns(j))) {
		add_status(j, BLOCK_ELSEWHERE);
		return true;
	}
	if ((e->busy && e->busy->state == BLK_JOB_PULLS) ||
	    (e->busy && !e->chain) || (e->chain && blk_chain_is_busy(e->chain)))
		return wait(j, e);
	request_of(j, op, &r);
	if (e->chain)
		r.acked = 0; /* that is for the head to hear */
	place = blk_spill_begin(e, &r, &a);
	if (place && r.length) {
		if (pull(j, e, place, op)) {
			add_status(j, BLOCK_LOST);
			return true;
		}
		j->state = BLK_JOB_PULLS;
		e->busy = j;
		e->under_way++;
		return false;
	}
	if (place)
		blk_spill_finish(e, &r, &a);
	add_answer(j, e, op, &a);
	blk_hold_wake(server_of(j), e, false);
	return true;
}

static bool step(struct blk_job *j)
{
	const struct block_op *op = &j->op[j->at];
	struct block_result r = {.status = BLOCK_OK};

	if (!blk_order_may(&j->order, op)) {
		add_result(j, &(struct block_result){.status = BLOCK_LATER});
		return true;
	}
	if (op->opcode == BLOCK_OPEN) {
		open_handle(j, op, &r);
		if (r.status != BLOCK_OK) {
			add_status(j, r.status);
			return true;
		}
	} else if (op->opcode == BLOCK_CLOSE) {
		close_handle(j, op, &r);
	} else if (op->opcode == BLOCK_BYE) {
		bye(j);
	} else if (op->opcode == BLOCK_WATCH) {
		watch(j, op);
		return true;
	} else {
		return execute(j, op);
	}
	add(j, &r);
	return true;
}

/* ---- the message --------------------------------------------------------- */

static void answer(struct blk_job *j)
{
	struct blk_guest *g = j->guest;
	size_t bytes = block_reply_end(&j->reply, j->message.tag);
	struct ibv_sge sge = {.addr = (uintptr_t)j->reply.buf,
			      .length = (uint32_t)bytes,
			      .lkey = g->buf_mr->lkey};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = wr_id(j, BLK_WR_ANSWER),
			.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
			.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
			.imm_data = htobe32(j->message.tag),
			.sg_list = &sge,
			.num_sge = 1,
			.wr.rdma = {.remote_addr = j->message.reply_at,
				    .rkey = j->message.reply_key},
		};

	j->state = BLK_JOB_ANSWERS;
	/* One that cannot be sent is as good as lost. */
	if (ibv_post_send(g->qp, &wr, &bad))
		blk_guest_break(g);
}

void blk_job_go_on(struct blk_job *j)
{
	j->state = BLK_JOB_RUNS;
	while (j->at < j->message.count)
		if (!step(j))
			return;
	if (!blk_hold_park(j))
		answer(j);
}

void blk_job_begin(struct blk_job *j)
{
	j->at = 0;
	j->order = (struct blk_order){0};
	j->has_news = false;
	j->since_ns = 0;
	j->push_count = 0;
	block_reply_begin(&j->reply, blk_guest_reply(j->guest, j->slot),
			  u32_min(BLOCK_REPLY_MAX, j->message.reply_bytes));
}

static bool is_sound(const struct blk_job *j)
{
	const struct block_message *m = &j->message;
	size_t least = sizeof(struct block_reply_wire) +
		       m->count * sizeof(struct block_result_wire);

	return j->guest->client && m->reply_bytes >= least &&
	       !memcmp(m->session, j->guest->client->id, sizeof(m->session));
}

void blk_job_start(struct blk_job *j, uint32_t len_bytes)
{
	struct blk_guest *g = j->guest;
	int err = block_message_parse(blk_guest_message(g, j->slot), len_bytes,
				      &j->message, j->op);

	server_of(j)->counts.messages++;
	if (err || !is_sound(j)) {
		server_of(j)->counts.bad++;
		blk_guest_break(g);
		return;
	}
	/* What a client asks for now comes after what it waited for. */
	if (j->op[0].opcode != BLOCK_WATCH)
		blk_hold_finish(g);
	j->may_hold = false;
	j->may_not_hold = false;
	blk_job_begin(j);
	blk_job_go_on(j);
}

/* The value is at its place: the others get it, too. */
static void pulled_for_chain(struct blk_job *j, struct blk_entry *e,
			     const struct block_op *op)
{
	struct blk_request r;
	struct blk_answer a;
	uint8_t *place;

	j->state = BLK_JOB_CHAINS;
	if (!blk_chain_is_open(e->chain)) {
		a = (struct blk_answer){.status = BLOCK_ELSEWHERE};
		blk_job_chained(j, e, &a);
		return;
	}
	request_of(j, op, &r);
	/* Nothing has happened to the block: it is the same place again. */
	if (blk_prepare(&e->block, &r, &a, &place) == BLK_READY)
		blk_chain_take(e->chain, &r, BLK_READY, place, NULL, now_ns(j));
	else
		blk_job_chained(j, e, &a);
}

void blk_job_pulled(struct blk_job *j, bool is_ok)
{
	const struct block_op *op = &j->op[j->at];
	struct blk_server *s = server_of(j);
	struct blk_entry *e = s->entry[op->index];
	struct blk_request r;
	struct blk_answer a;

	ASSERT(j->state == BLK_JOB_PULLS && e && e->busy == j);
	e->under_way--;
	if (is_ok && !j->guest->is_fenced && e->chain && changes(op->opcode)) {
		s->counts.pulled_bytes += op->length;
		pulled_for_chain(j, e, op);
		return;
	}
	if (is_ok && !j->guest->is_fenced) {
		s->counts.pulled_bytes += op->length;
		request_of(j, op, &r);
		if (e->chain)
			r.acked = 0;
		blk_spill_finish(e, &r, &a);
		add_answer(j, e, op, &a);
		blk_hold_wake(s, e, false);
	} else {
		add_status(j, BLOCK_LOST);
	}
	let_go(e);
	blk_job_go_on(j);
}

void blk_job_answered(struct blk_job *j)
{
	give_back(j);
	j->state = BLK_JOB_IDLE;
	if (!j->guest->is_fenced && blk_guest_receive(j->guest, j->slot))
		blk_guest_break(j->guest);
}

/* Data that it has sent may still be on its way: that is given back later. */
void blk_job_detach(struct blk_job *j)
{
	switch (j->state) {
	case BLK_JOB_WAITS:
	case BLK_JOB_RUNS: /* on the list of those that may go on */
		list_remove(&j->link);
		break;
	case BLK_JOB_CHAINS: /* it happens all the same */
		server_of(j)->entry[j->op[j->at].index]->busy = NULL;
		break;
	case BLK_JOB_HELD:
		blk_hold_drop(j);
		break;
	case BLK_JOB_IDLE:
	case BLK_JOB_PULLS:
	case BLK_JOB_ANSWERS:
		return;
	}
	j->is_woken = false;
	j->state = BLK_JOB_ANSWERS;
}

void blk_job_drop(struct blk_job *j)
{
	struct blk_entry *e;

	blk_job_detach(j);
	switch (j->state) {
	case BLK_JOB_PULLS:
		e = server_of(j)->entry[j->op[j->at].index];
		e->under_way--;
		let_go(e);
		break;
	case BLK_JOB_WAITS:
	case BLK_JOB_RUNS:
	case BLK_JOB_CHAINS:
	case BLK_JOB_HELD:
	case BLK_JOB_IDLE:
	case BLK_JOB_ANSWERS:
		break;
	}
	give_back(j);
	j->state = BLK_JOB_IDLE;
}
