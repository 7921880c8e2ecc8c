/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memcpy, memset and memcmp, which clang leaves as calls where they are long.
 * Between node and pad they are one instruction; other copies of constant
 * length become loads and stores.
 */
#include <string.h>

#include "memory_call.h"
#include "walk/image.h"

enum {
	MOVES_MAX = 128, /* loads and stores of one copy */
};

/* What is called, with its parameters in registers 1 to 3. */
struct call {
	const char *name;
	struct walkc_maker *m;
	struct walkc_origin a, b, len;
};

#define REFUSE(call, ...)                                                  \
	walkc_refuse((call)->m->code->flow->function, (call)->m->code->at, \
		     __VA_ARGS__)

/* ---- one instruction ---------------------------------------------------- */

/* How many bytes a window has from there on. */
static uint64_t rest_of(const struct code_window *w, struct walkc_origin at)
{
	uint64_t from = at.value - (uint64_t)w->allowed.lo;

	return at.is_const && w->allowed.bytes >= from ? w->allowed.bytes - from
						       : w->allowed.bytes;
}

/* The length: as it is, or a register that is held to what fits. */
static int find_length(struct call *c, unsigned node, unsigned pad,
		       struct walk_block *block)
{
	struct walkc_code *code = c->m->code;
	uint64_t limit;

	block->len_reg = WALK_REG_NONE;
	block->len = (uint32_t)c->len.value;
	if (c->len.is_const && c->len.value <= WALK_BLOCK_MAX)
		return 0;
	if (c->len.is_const)
		return REFUSE(c, "%s of %llu bytes, and at most %d are loaded",
			      c->name, (unsigned long long)c->len.value,
			      WALK_BLOCK_MAX);
	limit = u64_min(rest_of(&code->node, c->m->now->reg[node]),
			rest_of(&code->pad, c->m->now->reg[pad]));
	if (!limit || !code->node.allowed.bytes || !code->pad.allowed.bytes ||
	    limit > WALK_BLOCK_MAX)
		return REFUSE(c,
			      "%s of a length that is not constant, and what "
			      "would limit it is not known",
			      c->name);
	if (c->len.max > limit) {
		code_op(code, WALK_OP_BND, 0, 3, 0, (int64_t)limit);
		c->m->now->reg[3].max = limit;
	} else {
		limit = c->len.max;
	}
	block->len_reg = 3;
	block->len = (uint32_t)limit;
	return 0;
}

/* CPY or CMP of what two registers point to. */
static int between(struct call *c, uint8_t op, unsigned node, unsigned pad)
{
	struct walk_block block = {0};
	struct walkc_spot in_node, in_pad;
	int err = find_length(c, node, pad, &block);

	if (!err && block.len == 0)
		return 0;
	if (!err)
		err = access_find(c->m, (struct walkc_place){node, 0},
				  block.len, REG_NODE_INDEX, &in_node);
	if (!err)
		err = access_find(c->m, (struct walkc_place){pad, 0}, block.len,
				  REG_PAD_INDEX, &in_pad);
	if (err)
		return err;
	block.node_reg = in_node.has_reg ? in_node.reg : WALK_REG_NONE;
	block.node_at = (int32_t)in_node.at;
	block.pad_reg = in_pad.has_reg ? in_pad.reg : WALK_REG_NONE;
	block.pad_at = (uint32_t)in_pad.at;
	code_block(c->m->code, op, &block);
	return 0;
}

static int compare(struct call *c)
{
	bool is_pad_first = c->a.kind == ORIGIN_PAD;
	int err;

	if (!(is_pad_first && c->b.kind == ORIGIN_NODE) &&
	    !(c->a.kind == ORIGIN_NODE && c->b.kind == ORIGIN_PAD))
		return REFUSE(c,
			      "%s compares bytes of the node with bytes of "
			      "the pad, and no others",
			      c->name);
	/* Of length 0 they are equal. */
	code_const(c->m->code, 0, 0);
	err = between(c, WALK_OP_CMP, is_pad_first ? 2 : 1,
		      is_pad_first ? 1 : 2);
	if (!err && !is_pad_first)
		code_op(c->m->code, WALK_OP_NEG, 0, 0, 0, 0);
	c->m->now->reg[0] = origin_number(UINT64_MAX);
	return err;
}

/* ---- loads and stores --------------------------------------------------- */

static unsigned piece(uint64_t left)
{
	return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

static int check_length(const struct call *c)
{
	if (!c->len.is_const)
		return REFUSE(c,
			      "%s of a length that is not constant is "
			      "possible from the node to the pad only",
			      c->name);
	if (c->len.value > 8 * MOVES_MAX)
		return REFUSE(c,
			      "%s of more than %d bytes is possible from "
			      "the node to the pad only",
			      c->name, 8 * MOVES_MAX);
	return 0;
}

static int copy(struct call *c)
{
	int err;

	if (c->a.kind == ORIGIN_PAD && c->b.kind == ORIGIN_NODE)
		return between(c, WALK_OP_CPY, 2, 1);
	if (strcmp(c->name, "memmove") == 0 && c->a.kind == c->b.kind)
		return REFUSE(c,
			      "memmove inside %s; memcpy of what does not "
			      "overlap is possible",
			      origin_words(c->a.kind));
	err = check_length(c);
	for (uint64_t at = 0; !err && at < c->len.value;) {
		unsigned bytes = piece(c->len.value - at);

		err = access_load(c->m, REG_VALUE,
				  (struct walkc_place){2, (int64_t)at}, bytes);
		if (!err)
			err = access_store(c->m,
					   (struct walkc_place){1, (int64_t)at},
					   REG_VALUE, bytes);
		at += bytes;
	}
	return err;
}

static int fill(struct call *c)
{
	int err = check_length(c);

	if (!err && (!c->b.is_const || c->b.kind != ORIGIN_NUMBER))
		return REFUSE(c, "memset to a byte that is not constant");
	if (err)
		return err;
	c->m->now->reg[REG_VALUE] = origin_const(
		ORIGIN_NUMBER, 0x0101010101010101 * (c->b.value & 0xff));
	code_const(c->m->code, REG_VALUE, c->m->now->reg[REG_VALUE].value);
	for (uint64_t at = 0; !err && at < c->len.value;) {
		unsigned bytes = piece(c->len.value - at);

		err = access_store(c->m, (struct walkc_place){1, (int64_t)at},
				   REG_VALUE, bytes);
		at += bytes;
	}
	return err;
}

/* ---- which one ---------------------------------------------------------- */

static int refuse_call(struct call *c, const struct walkc_name *n)
{
	if (n && *n->symbol && !*n->section)
		return REFUSE(c,
			      "calls %s, which is not there; a walk can "
			      "call what is inlined, memcpy, memset and "
			      "memcmp",
			      n->symbol);
	return REFUSE(c,
		      "calls %s, which the compiler did not inline; declare "
		      "it with AQ_WALK_INLINE",
		      n && *n->symbol ? n->symbol : "a function");
}

int walkc_memory_call(struct walkc_maker *m)
{
	const struct walkc_function *f = m->code->flow->function;
	const struct bpf_insn *insn = &f->insns[m->code->at];
	const struct walkc_name *n = walkc_name_of(f, m->code->at);
	struct walkc_state *now = m->now;
	struct call c = {"", m, now->reg[1], now->reg[2], now->reg[3]};
	struct walkc_origin result = now->reg[1];
	int err;

	if (!n && bpf_src(insn) == 0)
		return REFUSE(&c,
			      "calls function %d of a kernel; a walk has "
			      "none",
			      insn->imm);
	if (!n || *n->section)
		return refuse_call(&c, n);
	c.name = n->symbol;
	if (now->reg[3].kind != ORIGIN_NUMBER)
		return refuse_call(&c, n);
	if (strcmp(c.name, "memcmp") == 0 || strcmp(c.name, "bcmp") == 0) {
		err = compare(&c);
		result = now->reg[0];
	} else {
		if (strcmp(c.name, "memcpy") == 0 ||
		    strcmp(c.name, "memmove") == 0)
			err = copy(&c);
		else if (strcmp(c.name, "memset") == 0)
			err = fill(&c);
		else
			err = refuse_call(&c, n);
		code_op(m->code, WALK_OP_MOV, 0, 1, 0, 0);
	}
	now->reg[0] = result;
	for (unsigned i = 1; i <= 5; i++)
		now->reg[i] = (struct walkc_origin){0};
	return err;
}
