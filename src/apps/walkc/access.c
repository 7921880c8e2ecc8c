/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores: offsets into windows are checked here or by an instruction;
 * the stack becomes registers. */
#include "access.h"

#include <errno.h>

#include "walk/image.h"

/* The op of that size; those of 1, 2, 4, 8 bytes follow each other. */
static uint8_t sized(uint8_t op_of_1, unsigned bytes)
{
	return (uint8_t)(op_of_1 + __builtin_ctz(bytes));
}

static uint64_t mask_of(unsigned bytes)
{
	return bytes == 8 ? UINT64_MAX : (1ull << (8 * bytes)) - 1;
}

static int refuse_base(struct walkc_maker *m, const struct walkc_origin *o)
{
	const struct walkc_function *f = m->code->flow->function;

	if (o->kind == ORIGIN_NONE)
		return walkc_refuse(f, m->code->at,
				    "uses a pointer that was not set on every "
				    "way here");
	if (o->kind == ORIGIN_MIXED)
		return walkc_refuse(f, m->code->at,
				    "a pointer that leads to the node on one "
				    "way and elsewhere on another; use two");
	return walkc_refuse(f, m->code->at,
			    "follows a pointer; a walk sees one node at a "
			    "time: return the pointer, and look at that node "
			    "in the next iteration");
}

/* ---- windows ------------------------------------------------------------ */

static struct code_window *window_of(struct walkc_maker *m,
				     enum origin_kind kind)
{
	return kind == ORIGIN_NODE ? &m->code->node : &m->code->pad;
}

static int refuse_outside(struct walkc_maker *m, enum origin_kind kind,
			  int64_t at, uint64_t bytes)
{
	const struct walkc_span *w = &window_of(m, kind)->allowed;

	return walkc_refuse(
		m->code->flow->function, m->code->at,
		"%llu bytes at byte %lld of %s, which has bytes %lld to %lld%s",
		(unsigned long long)bytes, (long long)at, origin_words(kind),
		(long long)w->lo, (long long)w->lo + (long long)w->bytes - 1,
		kind == ORIGIN_NODE ? "; AQ_WALK_WINDOW states other ones"
				    : "");
}

static int find_fixed(struct walkc_maker *m, enum origin_kind kind, int64_t at,
		      uint64_t bytes)
{
	struct code_window *w = window_of(m, kind);
	int64_t end = at + (int64_t)bytes;

	if (w->allowed.bytes
		    ? at < w->allowed.lo ||
			      end > w->allowed.lo + (int64_t)w->allowed.bytes
		    : kind == ORIGIN_PAD && at < 0)
		return refuse_outside(m, kind, at, bytes);
	if (!w->is_used || at < w->lo)
		w->lo = at;
	if (!w->is_used || end > w->hi)
		w->hi = end;
	w->is_used = true;
	return 0;
}

/* At a place that is known only when it runs. */
static int find_moving(struct walkc_maker *m, struct walkc_place p,
		       uint64_t bytes, unsigned scratch, struct walkc_spot *out)
{
	struct walkc_origin *o = &m->now->reg[p.reg];
	struct code_window *w = window_of(m, o->kind);
	const struct walkc_span *span = &w->allowed;
	int64_t from = p.off - span->lo, spare;

	if (!span->bytes)
		return walkc_refuse(m->code->flow->function, m->code->at,
				    "an index into %s, whose size is not known "
				    "here; compile with -g%s",
				    origin_words(o->kind),
				    o->kind == ORIGIN_NODE
					    ? " or state AQ_WALK_WINDOW"
					    : "");
	if (bytes > span->bytes)
		return refuse_outside(m, o->kind, p.off, bytes);
	w->is_whole = true;
	spare = (int64_t)(span->bytes - bytes);
	*out = (struct walkc_spot){true, (uint8_t)p.reg, p.off};
	if (from >= 0 && from <= spare && o->max <= (uint64_t)(spare - from))
		return 0;
	/* What may be negative is first made to count from the beginning. */
	if (from >= 0 && from <= spare && o->max < INT64_MAX / 2) {
		code_op(m->code, WALK_OP_BND, 0, p.reg, 0, spare - from);
		o->max = (uint64_t)(spare - from);
		return 0;
	}
	if (from < INT32_MIN || from > INT32_MAX)
		return refuse_outside(m, o->kind, p.off, bytes);
	code_op(m->code, WALK_OP_ADDI, scratch, p.reg, 0, from);
	code_op(m->code, WALK_OP_BND, 0, scratch, 0, spare);
	*out = (struct walkc_spot){true, (uint8_t)scratch, span->lo};
	return 0;
}

int access_find(struct walkc_maker *m, struct walkc_place p, uint64_t bytes,
		unsigned scratch, struct walkc_spot *out)
{
	const struct walkc_origin *o = &m->now->reg[p.reg];
	int64_t at;

	if (o->kind != ORIGIN_NODE && o->kind != ORIGIN_PAD)
		return refuse_base(m, o);
	if (!o->is_const)
		return find_moving(m, p, bytes, scratch, out);
	if (__builtin_add_overflow((int64_t)o->value, p.off, &at) ||
	    at < INT32_MIN / 2 || at > INT32_MAX / 2)
		return walkc_refuse(m->code->flow->function, m->code->at,
				    "an address far outside %s",
				    origin_words(o->kind));
	*out = (struct walkc_spot){.at = at};
	return find_fixed(m, o->kind, at, bytes);
}

/* ---- the stack ---------------------------------------------------------- */

struct slot {
	unsigned reg, shift; /* bits below it in the register */
};

static int find_slot(struct walkc_maker *m, struct walkc_place p,
		     unsigned bytes, struct slot *out)
{
	const struct walkc_origin *o = &m->now->reg[p.reg];
	const struct walkc_function *f = m->code->flow->function;
	int64_t at = STACK_BYTES + (int64_t)o->value + p.off, below;

	if (!o->is_const)
		return walkc_refuse(f, m->code->at,
				    "a variable index into an array of the "
				    "function's own; keep it in the pad");
	if (at < 0 || at + bytes > STACK_BYTES)
		return walkc_refuse(f, m->code->at,
				    "an access beyond the "
				    "function's variables");
	below = (STACK_BYTES - 1 - at) / 8;
	if (below >= STACK_REGS)
		return walkc_refuse(f, m->code->at,
				    "more than %d bytes of variables; keep "
				    "them in the pad",
				    8 * STACK_REGS);
	if (at % 8 + bytes > 8)
		return walkc_refuse(f, m->code->at,
				    "a variable that is not aligned; keep it "
				    "in the pad");
	out->reg = REG_STACK + (unsigned)below;
	out->shift = 8 * (unsigned)(at % 8);
	return 0;
}

static int refuse_part(struct walkc_maker *m)
{
	return walkc_refuse(m->code->flow->function, m->code->at,
			    "takes a part of an address");
}

static int load_slot(struct walkc_maker *m, unsigned d, struct walkc_place p,
		     unsigned bytes)
{
	struct slot s = {0};
	int err = find_slot(m, p, bytes, &s);
	struct walkc_origin *from;

	if (err)
		return err;
	from = &m->now->reg[s.reg];
	if (bytes == 8) {
		code_op(m->code, WALK_OP_MOV, d, s.reg, 0, 0);
		m->now->reg[d] = *from;
		return 0;
	}
	if (from->kind != ORIGIN_NUMBER)
		return refuse_part(m);
	m->now->reg[d] = origin_number(mask_of(bytes));
	if (from->is_const) {
		m->now->reg[d] = origin_const(
			ORIGIN_NUMBER, from->value >> s.shift & mask_of(bytes));
		code_const(m->code, d, m->now->reg[d].value);
		return 0;
	}
	code_op(m->code, WALK_OP_SHRI, d, s.reg, 0, s.shift);
	if (bytes == 4)
		code_op(m->code, WALK_OP_MOV32, d, d, 0, 0);
	else
		code_op(m->code, WALK_OP_ANDI, d, d, 0,
			(int64_t)mask_of(bytes));
	return 0;
}

static int store_slot(struct walkc_maker *m, struct walkc_place p, unsigned a,
		      unsigned bytes)
{
	struct walkc_origin value = m->now->reg[a], *to;
	struct slot s = {0};
	int err = find_slot(m, p, bytes, &s);
	uint64_t hole;

	if (err)
		return err;
	to = &m->now->reg[s.reg];
	if (bytes == 8) {
		code_op(m->code, WALK_OP_MOV, s.reg, a, 0, 0);
		*to = value;
		return 0;
	}
	if (value.kind != ORIGIN_NUMBER || to->kind != ORIGIN_NUMBER)
		return refuse_part(m);
	hole = ~(mask_of(bytes) << s.shift);
	if (value.is_const && to->is_const) {
		*to = origin_const(ORIGIN_NUMBER,
				   (to->value & hole) |
					   (value.value & mask_of(bytes))
						   << s.shift);
		code_const(m->code, s.reg, to->value);
		return 0;
	}
	code_const(m->code, REG_LEFT, mask_of(bytes));
	code_op(m->code, WALK_OP_AND, REG_LEFT, a, REG_LEFT, 0);
	code_op(m->code, WALK_OP_SHLI, REG_LEFT, REG_LEFT, 0, s.shift);
	code_const(m->code, REG_RIGHT, hole);
	code_op(m->code, WALK_OP_AND, s.reg, s.reg, REG_RIGHT, 0);
	code_op(m->code, WALK_OP_OR, s.reg, s.reg, REG_LEFT, 0);
	*to = origin_number(UINT64_MAX);
	return 0;
}

/* ---- both --------------------------------------------------------------- */

int access_load(struct walkc_maker *m, unsigned d, struct walkc_place p,
		unsigned bytes)
{
	enum origin_kind kind = m->now->reg[p.reg].kind;
	bool is_node = kind == ORIGIN_NODE;
	struct walkc_spot s = {0};
	int err;

	if (kind == ORIGIN_STACK)
		return load_slot(m, d, p, bytes);
	err = access_find(m, p, bytes, is_node ? REG_NODE_INDEX : REG_PAD_INDEX,
			  &s);
	if (err)
		return err;
	if (s.has_reg)
		code_op(m->code,
			sized(is_node ? WALK_OP_LDNX1 : WALK_OP_LDPX1, bytes),
			d, s.reg, 0, s.at);
	else
		code_op(m->code,
			sized(is_node ? WALK_OP_LDN1 : WALK_OP_LDP1, bytes), d,
			0, 0, s.at);
	m->now->reg[d] = origin_number(mask_of(bytes));
	return 0;
}

static int check_value(struct walkc_maker *m, unsigned a)
{
	const struct walkc_origin *o = &m->now->reg[a];
	const struct walkc_function *f = m->code->flow->function;

	if (o->kind == ORIGIN_NUMBER)
		return 0;
	if (origin_is_address(o))
		return walkc_refuse(f, m->code->at,
				    "stores the address of %s, which a walk "
				    "does not know; a node's own pointer can "
				    "be stored by whoever led to it",
				    origin_words(o->kind));
	return walkc_refuse(f, m->code->at,
			    "stores a variable that was not set on every way "
			    "here");
}

int access_store(struct walkc_maker *m, struct walkc_place p, unsigned a,
		 unsigned bytes)
{
	enum origin_kind kind = m->now->reg[p.reg].kind;
	bool is_node = kind == ORIGIN_NODE;
	struct walkc_spot s = {0};
	int err;

	if (kind == ORIGIN_STACK)
		return store_slot(m, p, a, bytes);
	err = access_find(m, p, bytes, is_node ? REG_NODE_INDEX : REG_PAD_INDEX,
			  &s);
	if (!err)
		err = check_value(m, a);
	if (err)
		return err;
	if (is_node)
		m->code->has_stores = true;
	if (s.has_reg)
		code_op(m->code,
			sized(is_node ? WALK_OP_STNX1 : WALK_OP_STPX1, bytes),
			0, s.reg, a, s.at);
	else
		code_op(m->code,
			sized(is_node ? WALK_OP_STN1 : WALK_OP_STP1, bytes), 0,
			a, 0, s.at);
	return 0;
}
