/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several operations at once. All that goes to one node is one message, also to
 * several of its blocks, and messages to several nodes are under way together.
 *
 * A node executes a message in order and stops at what it cannot do. That
 * operation is repeated alone, which finds where its key is now, or makes room
 * for it; what came after it goes with the next round, and so does what follows
 * a refused change of the same key (block/blk_order.h). So operations on one
 * key keep their order: they are in the same message, or in later ones.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "el_ekv_priv.h"

enum {
	/* A session's changes that are not acknowledged must be that close
	 * together: a block keeps so many answers. */
	WINDOW = BLOCK_OPS_MAX,
	HEAD = sizeof(struct block_message_wire),
	EACH = sizeof(struct block_op_wire),
};

/* What goes to a node in a round. */
struct group {
	struct el_port *port;
	unsigned count;
	uint8_t at[WINDOW]; /* which of the window */
	size_t bytes;	    /* of its message */
	bool is_closed;	    /* no more, or the order would not hold */
	bool is_sent;
};

struct el_window {
	struct aq_ekv *kv;
	struct aq_ekv_op *ops;
	unsigned count;
	unsigned left; /* without an answer */
	struct el_kv_ask ask[WINDOW];
	bool is_done[WINDOW];
	bool is_alone[WINDOW]; /* this round */
	le64 number[WINDOW];   /* operands */
	/* What is to be split or merged, if anything. */
	uint32_t use, use_slot;
	bool has_use;
	unsigned group_count;
	struct group group[CLIENT_NODE_MAX];
	struct block_op op[WINDOW];
	struct block_result result[WINDOW];
	uint8_t inside[BLOCK_MESSAGE_MAX];
	uint64_t deadline_ns;
};

/* ---- one operation ------------------------------------------------------- */

static int describe(struct el_window *w, unsigned i)
{
	static const enum block_opcode opcodes[] = {
		[AQ_EKV_GET] = BLOCK_KV_GET,
		[AQ_EKV_PUT] = BLOCK_KV_PUT,
		[AQ_EKV_DELETE] = BLOCK_KV_DELETE,
		[AQ_EKV_ADD] = BLOCK_KV_ADD,
	};
	const struct aq_ekv_op *op = &w->ops[i];
	struct el_kv_ask *ask = &w->ask[i];

	if (op->verb < AQ_EKV_GET || op->verb > AQ_EKV_ADD ||
	    (op->verb == AQ_EKV_ADD && op->how > AQ_EKV_MAX))
		return error_set(-EINVAL, "there is no such operation");
	*ask = (struct el_kv_ask){
		.opcode = opcodes[op->verb],
		.key = op->key,
		.key_bytes = op->key_bytes,
		.version = op->version,
	};
	if (op->verb == AQ_EKV_GET) {
		ask->version = 0;
		ask->out = op->value ? op->value : &w->number[i];
		ask->room_bytes = op->value ? op->value_bytes : 0;
	} else if (op->verb == AQ_EKV_PUT) {
		ask->value = op->value;
		ask->value_bytes = op->value_bytes;
	} else if (op->verb == AQ_EKV_ADD) {
		w->number[i] = le64_put((uint64_t)op->number);
		ask->version = 0;
		ask->value = &w->number[i];
		ask->value_bytes = sizeof(w->number[i]);
		ask->how = (uint64_t)op->how;
	}
	return el_kv_check(w->kv, ask);
}

static void end(struct el_window *w, unsigned i, int err)
{
	w->ops[i].error = err;
	w->is_done[i] = true;
	w->left--;
}

static void note_use(struct el_window *w, unsigned i, uint32_t use)
{
	/* A full block is more urgent than one that is nearly empty. */
	if (!w->has_use || use > w->use) {
		w->use = use;
		w->use_slot = w->ask[i].slot;
	}
	w->has_use = true;
}

/* Its answer has come; data of a get is where it belongs. */
static void take(struct el_window *w, unsigned i, const struct block_result *r)
{
	struct aq_ekv_op *op = &w->ops[i];
	bool is_get = op->verb == AQ_EKV_GET;

	if (is_get && (r->status == BLOCK_OK || r->status == BLOCK_TOO_LONG)) {
		op->value_bytes = r->length;
		if (r->length > w->ask[i].room_bytes) {
			end(w, i, -EMSGSIZE);
			return;
		}
	}
	if (r->status != BLOCK_OK) {
		end(w, i, el_kv_error(w->kv, &w->ask[i], r->status));
		return;
	}
	if (op->verb == AQ_EKV_ADD)
		op->number = (int64_t)r->value;
	else if (op->verb != AQ_EKV_DELETE)
		op->version = r->value;
	/* What answers a repetition does not say how full the block is. */
	if (!is_get && (r->length || op->verb == AQ_EKV_DELETE))
		note_use(w, i, r->length);
	end(w, i, 0);
}

/* All answers up to here have come. */
static void acknowledge(struct el_window *w)
{
	w->kv->acked = w->kv->object.sequence;
	for (unsigned i = 0; i < w->count; i++)
		if (!w->is_done[i] && w->ask[i].sequence) {
			w->kv->acked = w->ask[i].sequence - 1;
			break;
		}
}

static int ask_alone(struct el_window *w, unsigned i)
{
	struct block_result r;
	int err;

	acknowledge(w);
	err = el_kv_ask(w->kv, &w->ask[i], &r, w->deadline_ns);
	if (!err)
		take(w, i, &r);
	return err;
}

/* ---- a round ------------------------------------------------------------- */

/* So that all know where they go; the map may change meanwhile. */
static int route_all(struct el_window *w)
{
	unsigned tries = 0;
	uint64_t number;

	for (unsigned i = 0; i < w->count; i++) {
		int err = w->is_done[i]
				  ? 0
				  : el_kv_route(w->kv, &w->ask[i], &number,
						&tries, w->deadline_ns);

		if (err == -ENODATA)
			take(w, i,
			     &(struct block_result){.status = BLOCK_NO_KEY});
		else if (err)
			return err;
	}
	return 0;
}

static struct group *group_of(struct el_window *w, struct el_port *p)
{
	struct group *g;

	for (unsigned i = 0; i < w->group_count; i++)
		if (w->group[i].port == p)
			return &w->group[i];
	ASSERT(w->group_count < CLIENT_NODE_MAX); /* as there are ports */
	g = &w->group[w->group_count++];
	g->port = p;
	g->count = 0;
	g->bytes = HEAD;
	g->is_closed = false;
	g->is_sent = false;
	return g;
}

static int place(struct el_window *w, unsigned i)
{
	const struct el_look *look = el_kv_find_slot(w->kv, w->ask[i].slot);
	struct el_object *o = &w->kv->object;
	const struct el_block *b = look ? el_find(o, look->number) : NULL;
	size_t bytes = el_kv_bytes(&w->ask[i]);
	struct el_port *p;
	struct group *g;
	int err;

	if (!b) {
		w->kv->look_count = 0; /* the next round looks */
		return 0;
	}
	/* Who answers for a chain is found out for each by itself. */
	w->is_alone[i] = b->is_chained;
	err = b->is_chained ? 0 : el_port_find(o, b->head.node, &p);
	if (err || b->is_chained)
		return err;
	g = group_of(w, p);
	if (g->is_closed)
		return 0;
	if (bytes > BLOCK_INSIDE_MAX ||
	    g->bytes + EACH + align_up(bytes, 8) > BLOCK_MESSAGE_MAX) {
		g->is_closed = true;
		w->is_alone[i] = !g->count;
		return 0;
	}
	w->op[i] = (struct block_op){
		.opcode = w->ask[i].opcode,
		.sequence = w->ask[i].sequence,
		.arg = w->ask[i].slot | w->ask[i].how << BLOCK_KV_HOW_SHIFT,
		.length = (uint32_t)bytes,
		.index = b->head.index,
		.generation = b->head.generation,
	};
	g->at[g->count++] = (uint8_t)i;
	g->bytes += EACH + align_up(bytes, 8);
	return 0;
}

/* The operations of a group, one after the other, with what they carry. */
static void pack(struct el_window *w, const struct group *g,
		 struct block_op op[WINDOW])
{
	size_t used = 0;

	for (unsigned k = 0; k < g->count; k++) {
		op[k] = w->op[g->at[k]];
		el_kv_fill(&w->ask[g->at[k]], w->inside + used);
		op[k].value = w->inside + used;
		used += align_up(op[k].length, 8);
	}
}

static void send(struct el_window *w, struct group *g)
{
	struct el_object *o = &w->kv->object;
	struct block_op op[WINDOW];
	int err = el_port_ready(o, g->port, false, w->deadline_ns);

	if (!err)
		err = el_port_own(o, g->port);
	if (err)
		return; /* who receives tries again, and says why */
	pack(w, g, op);
	el_port_address(g->port, op, g->count);
	g->is_sent = !el_port_send(o, g->port, &g->port->own, op, g->count,
				   w->kv->acked);
}

static int receive(struct el_window *w, struct group *g)
{
	struct el_object *o = &w->kv->object;
	struct block_op op[WINDOW];
	int err = g->is_sent ? el_port_receive(g->port, &g->port->own, g->count,
					       w->result, w->deadline_ns)
			     : -EHOSTDOWN;

	if (!err)
		return 0;
	el_port_hang_up(g->port);
	if (err == -ETIMEDOUT)
		return err;
	pack(w, g, op);
	return el_call_node(o, g->port, op, g->count, w->result, w->kv->acked,
			    g->is_sent, w->deadline_ns);
}

/* Whether the answer is the caller's, as it is. */
static bool is_answer(const struct el_window *w, unsigned i,
		      const struct block_result *r)
{
	const struct el_kv_ask *ask = &w->ask[i];

	/* With room of its own it would have come. */
	if (r->status == BLOCK_TOO_LONG && ask->out &&
	    r->length <= ask->room_bytes)
		return false;
	return el_kv_is_answer(r->status) && r->status != BLOCK_BUSY &&
	       r->status != BLOCK_DENIED;
}

static int take_group(struct el_window *w, const struct group *g)
{
	for (unsigned k = 0; k < g->count; k++) {
		const struct block_result *r = &w->result[k];
		const struct el_kv_ask *ask = &w->ask[g->at[k]];

		/* What was left undone goes with the next round. */
		if (!is_answer(w, g->at[k], r)) {
			w->is_alone[g->at[k]] = r->status != BLOCK_LATER || !k;
			continue;
		}
		if (r->status == BLOCK_OK && ask->out && r->length) {
			if (!r->data)
				return error_set(-EPROTO,
						 "a node sent too much");
			if (r->length <= ask->room_bytes)
				memcpy(ask->out, r->data, r->length);
		}
		take(w, g->at[k], r);
	}
	return 0;
}

static int run_round(struct el_window *w)
{
	int err = route_all(w), first = err;

	w->group_count = 0;
	memset(w->is_alone, 0, sizeof(w->is_alone));
	for (unsigned i = 0; i < w->count && !first; i++)
		if (!w->is_done[i])
			first = place(w, i);
	if (first)
		return first;
	acknowledge(w);
	for (unsigned k = 0; k < w->group_count; k++)
		if (w->group[k].count)
			send(w, &w->group[k]);
	/* All that were sent, also after one that failed. */
	for (unsigned k = 0; k < w->group_count; k++) {
		struct group *g = &w->group[k];

		err = g->count ? receive(w, g) : 0;
		if (!err && g->count)
			err = take_group(w, g);
		first = first ? first : err;
	}
	for (unsigned i = 0; i < w->count && !first; i++)
		if (w->is_alone[i])
			first = ask_alone(w, i);
	return first;
}

/* ---- all of them --------------------------------------------------------- */

static int run_window(struct el_window *w)
{
	struct aq_ekv *kv = w->kv;
	unsigned tries = 0, before;
	int err = 0;

	w->left = w->count;
	w->has_use = false;
	w->deadline_ns = el_deadline_ns(&kv->object);
	for (unsigned i = 0; i < w->count; i++) {
		w->is_done[i] = false;
		err = describe(w, i);
		if (err)
			end(w, i, err);
		else if (w->ops[i].verb != AQ_EKV_GET)
			w->ask[i].sequence = ++kv->object.sequence;
	}
	error_clear();
	err = 0;
	while (w->left && !err) {
		before = w->left;
		err = run_round(w);
		if (!err && w->left == before &&
		    !el_pause(&tries, w->deadline_ns))
			err = error_set(-ETIMEDOUT, "%s did not answer in time",
					kv->object.path);
	}
	for (unsigned i = 0; i < w->count; i++)
		if (!w->is_done[i])
			end(w, i, err);
	kv->acked = kv->object.sequence;
	if (!err && w->has_use)
		el_kv_look_after(kv, w->use_slot, w->use, w->deadline_ns);
	return err;
}

int aq_ekv_many(struct aq_ekv *kv, struct aq_ekv_op *ops, unsigned count)
{
	struct el_window *w = kv->window;
	unsigned at = 0;
	int err = 0;

	error_clear();
	if (!w) {
		w = kv->window = calloc(1, sizeof(*w));
		if (!w)
			return error_set(-ENOMEM, "no memory for a window");
		w->kv = kv;
	}
	for (; at < count && !err; at += w->count) {
		w->ops = ops + at;
		w->count = u32_min(count - at, WINDOW);
		err = run_window(w);
	}
	for (; at < count; at++)
		ops[at].error = err;
	return err;
}
