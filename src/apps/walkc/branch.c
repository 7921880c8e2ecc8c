/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional jumps: comparisons of 32 bits become those of 64, and constants
 * that do not fit go to a register. */
#include "branch.h"

#include "walk/image.h"

struct condition {
	unsigned op;
	bool is_32;
	bool is_imm;
	int64_t imm; /* sign extended */
	unsigned a, b;
	struct walkc_origin left, right;
};

static bool is_signed(unsigned op)
{
	return op == BPF_JSGT || op == BPF_JSGE || op == BPF_JSLT ||
	       op == BPF_JSLE;
}

static bool holds(unsigned op, uint64_t a, uint64_t b)
{
	int64_t x = (int64_t)a, y = (int64_t)b;

	switch (op) {
	case BPF_JEQ:
		return a == b;
	case BPF_JNE:
		return a != b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	case BPF_JLT:
		return a < b;
	case BPF_JLE:
		return a <= b;
	case BPF_JSGT:
		return x > y;
	case BPF_JSGE:
		return x >= y;
	case BPF_JSLT:
		return x < y;
	case BPF_JSLE:
		return x <= y;
	default: /* JSET */
		return a & b;
	}
}

/* What is known without running: constants. */
static enum walkc_way decide(const struct condition *c)
{
	uint64_t a = c->left.value, b = c->right.value;

	if (!c->left.is_const || !c->right.is_const)
		return WAY_BOTH;
	if (c->is_32) {
		a = is_signed(c->op) ? (uint64_t)(int32_t)a : (uint32_t)a;
		b = is_signed(c->op) ? (uint64_t)(int32_t)b : (uint32_t)b;
	}
	return holds(c->op, a, b) ? WAY_JUMP : WAY_THROUGH;
}

/* Comparisons of addresses: with null, and of two in the same window. */
static int decide_addresses(struct walkc_maker *m, const struct condition *c,
			    enum walkc_way *way)
{
	const struct walkc_function *f = m->code->flow->function;
	bool is_equality = c->op == BPF_JEQ || c->op == BPF_JNE;
	bool is_left = origin_is_address(&c->left);
	const struct walkc_origin *other = is_left ? &c->right : &c->left;

	if (c->left.kind == ORIGIN_NONE || c->right.kind == ORIGIN_NONE)
		return walkc_refuse(f, m->code->at,
				    "compares a variable that was not set on "
				    "every way here");
	if (c->is_32 || !is_equality ||
	    !(is_left || origin_is_address(&c->right)))
		goto refuse;
	if (other->kind == ORIGIN_NUMBER && other->is_const &&
	    other->value == 0) {
		*way = c->op == BPF_JEQ ? WAY_THROUGH : WAY_JUMP;
		return 0;
	}
	if (c->left.kind == c->right.kind)
		return 0;
refuse:
	return walkc_refuse(f, m->code->at,
			    "compares an address with something else; a walk "
			    "does not know where its node is");
}

/* ---- code --------------------------------------------------------------- */

/* The register in 64 bits, as the comparison of 32 sees it. */
static unsigned widen(struct walkc_maker *m, unsigned reg, bool is_signed_too,
		      unsigned scratch)
{
	uint64_t max = m->now->reg[reg].max;

	if (max <= (is_signed_too ? (uint64_t)INT32_MAX : UINT32_MAX))
		return reg;
	code_op(m->code, is_signed_too ? WALK_OP_SX4 : WALK_OP_MOV32, scratch,
		reg, 0, 0);
	return scratch;
}

static void widen_both(struct walkc_maker *m, struct condition *c)
{
	/* A negative constant is small only where it is signed. */
	bool sign =
		is_signed(c->op) || ((c->op == BPF_JEQ || c->op == BPF_JNE) &&
				     c->is_imm && c->imm < 0);

	c->a = widen(m, c->a, sign, REG_LEFT);
	if (!c->is_imm)
		c->b = widen(m, c->b, sign, REG_RIGHT);
	else if (!sign)
		c->imm = (int64_t)(uint32_t)c->imm;
}

/* By op of bpf: with a register, with a constant; greater is less, turned. */
struct forms {
	uint8_t op, reg, imm;
	bool is_turned;
};

static const struct forms *forms_of(unsigned op)
{
	static const struct forms all[] = {
		{BPF_JEQ, WALK_OP_JEQ, WALK_OP_JEQI, false},
		{BPF_JNE, WALK_OP_JNE, WALK_OP_JNEI, false},
		{BPF_JLT, WALK_OP_JLT, WALK_OP_JLTI, false},
		{BPF_JLE, WALK_OP_JLE, WALK_OP_JLEI, false},
		{BPF_JSLT, WALK_OP_JSLT, WALK_OP_JSLTI, false},
		{BPF_JSLE, WALK_OP_JSLE, WALK_OP_JSLEI, false},
		{BPF_JSET, WALK_OP_JSET, WALK_OP_JSETI, false},
		{BPF_JGT, WALK_OP_JLT, WALK_OP_JGTI, true},
		{BPF_JGE, WALK_OP_JLE, WALK_OP_JGEI, true},
		{BPF_JSGT, WALK_OP_JSLT, WALK_OP_JSGTI, true},
		{BPF_JSGE, WALK_OP_JSLE, WALK_OP_JSGEI, true},
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].op == op)
			return &all[i];
	return NULL;
}

static void make_jump(struct walkc_maker *m, struct condition *c)
{
	const struct forms *forms = forms_of(c->op);

	if (c->is_32)
		widen_both(m, c);
	if (c->is_imm && c->imm >= INT16_MIN && c->imm <= INT16_MAX) {
		code_branch(m->code, forms->imm, c->a, 0, true, c->imm);
		return;
	}
	if (c->is_imm) {
		code_const(m->code, REG_RIGHT, (uint64_t)c->imm);
		c->b = REG_RIGHT;
	}
	code_branch(m->code, forms->reg, forms->is_turned ? c->b : c->a,
		    forms->is_turned ? c->a : c->b, false, 0);
}

int walkc_branch(struct walkc_maker *m, enum walkc_way *way)
{
	const struct walkc_function *f = m->code->flow->function;
	const struct bpf_insn *i = &f->insns[m->code->at];
	struct condition c = {.op = bpf_op(i),
			      .is_32 = bpf_class(i) == BPF_JMP32,
			      .is_imm = !bpf_uses_register(i),
			      .imm = i->imm,
			      .a = bpf_dst(i),
			      .b = bpf_src(i)};
	int err;

	if (!forms_of(c.op) || c.a >= BPF_REGS || c.b >= BPF_REGS)
		return walkc_refuse(f, m->code->at,
				    "an instruction that is not known here "
				    "(code 0x%02x); compile with -mcpu=v3",
				    i->code);
	c.left = m->now->reg[c.a];
	c.right = c.is_imm ? origin_const(ORIGIN_NUMBER, (uint64_t)c.imm)
			   : m->now->reg[c.b];
	*way = WAY_BOTH;
	if (c.left.kind == ORIGIN_NUMBER && c.right.kind == ORIGIN_NUMBER) {
		*way = decide(&c);
	} else {
		err = decide_addresses(m, &c, way);
		if (err)
			return err;
	}
	if (*way == WAY_BOTH)
		make_jump(m, &c);
	return 0;
}
