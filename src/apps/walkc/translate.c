/* SPDX-License-Identifier: Apache-2.0 */
/* Translates a function, instruction by instruction, in the order of flow.c:
 * what registers hold is known at every point, because all ways to it came
 * first. */
#include <errno.h>
#include <stdlib.h>

#include "branch.h"
#include "memory_call.h"
#include "walk/image.h"

struct translation {
	struct walkc_flow flow;
	struct walkc_code code;
	struct walkc_state **before; /* by block; NULL: not reached */
	struct walkc_state now;
	struct walkc_maker maker;
};

#define REFUSE(t, ...) \
	walkc_refuse((t)->flow.function, (t)->code.at, __VA_ARGS__)

static int refuse_unknown(struct translation *t, const struct bpf_insn *i)
{
	return REFUSE(t,
		      "an instruction that is not known here (code 0x%02x); "
		      "compile with -mcpu=v3",
		      i->code);
}

static int refuse_unset(struct translation *t)
{
	return REFUSE(t, "uses a variable that was not set on every way here");
}

/* ---- arithmetic --------------------------------------------------------- */

/* Instructions by op of bpf; in the order ALU, with imm, 32, 32 with imm. */
static const uint8_t *forms_of(unsigned op)
{
	static const uint8_t forms[][5] = {
#define FORMS(bpf, walk)                                             \
	{bpf, WALK_OP_##walk, WALK_OP_##walk##I, WALK_OP_##walk##32, \
	 WALK_OP_##walk##I32}
		FORMS(BPF_ADD, ADD), FORMS(BPF_SUB, SUB),  FORMS(BPF_MUL, MUL),
		FORMS(BPF_DIV, DIV), FORMS(BPF_MOD, MOD),  FORMS(BPF_OR, OR),
		FORMS(BPF_AND, AND), FORMS(BPF_XOR, XOR),  FORMS(BPF_LSH, SHL),
		FORMS(BPF_RSH, SHR), FORMS(BPF_ARSH, SAR),
#undef FORMS
	};

	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		if (forms[i][0] == op)
			return &forms[i][1];
	return NULL;
}

/* The order of bytes: to big-endian they turn round, to little-endian the rest
 * is cut off. */
static int swap(struct translation *t, const struct bpf_insn *i)
{
	unsigned d = bpf_dst(i);
	bool is_big = bpf_uses_register(i);
	uint64_t max = i->imm == 16   ? UINT16_MAX
		       : i->imm == 32 ? UINT32_MAX
				      : UINT64_MAX;

	if (bpf_class(i) != BPF_ALU32 ||
	    (i->imm != 16 && i->imm != 32 && i->imm != 64))
		return refuse_unknown(t, i);
	if (t->now.reg[d].kind != ORIGIN_NUMBER)
		return refuse_unset(t);
	if (is_big)
		code_op(&t->code,
			i->imm == 16   ? WALK_OP_BSW2
			: i->imm == 32 ? WALK_OP_BSW4
				       : WALK_OP_BSW8,
			d, d, 0, 0);
	else if (i->imm == 16)
		code_op(&t->code, WALK_OP_ANDI, d, d, 0, UINT16_MAX);
	else if (i->imm == 32)
		code_op(&t->code, WALK_OP_MOV32, d, d, 0, 0);
	/* The verifier need not know how small it is. */
	t->now.reg[d] = origin_number(is_big ? UINT64_MAX : max);
	return 0;
}

static void make_alu(struct translation *t, const struct bpf_insn *i,
		     const struct walkc_origin *a, const struct walkc_origin *b,
		     const struct walkc_origin *result)
{
	bool is_32 = bpf_class(i) == BPF_ALU32;
	unsigned op = bpf_op(i), d = bpf_dst(i), s = bpf_src(i);

	if (result->is_const)
		code_const(&t->code, d, result->value);
	else if (op == BPF_MOV)
		code_op(&t->code, is_32 ? WALK_OP_MOV32 : WALK_OP_MOV, d, s, 0,
			0);
	else if (op == BPF_NEG)
		code_op(&t->code, is_32 ? WALK_OP_NEG32 : WALK_OP_NEG, d, d, 0,
			0);
	else if (op == BPF_ADD && !is_32 && a->is_const &&
		 origin_fits(a->value))
		code_op(&t->code, WALK_OP_ADDI, d, s, 0, (int64_t)a->value);
	else if (b->is_const && origin_fits(b->value))
		code_op(&t->code, forms_of(op)[is_32 ? 3 : 1], d, d, 0,
			(int64_t)b->value);
	else
		code_op(&t->code, forms_of(op)[is_32 ? 2 : 0], d, d, s, 0);
}

static int alu(struct translation *t, const struct bpf_insn *i)
{
	bool is_32 = bpf_class(i) == BPF_ALU32;
	unsigned op = bpf_op(i), d = bpf_dst(i);
	struct walkc_origin a = t->now.reg[d], b, result;
	const char *why;

	if (op == BPF_END)
		return swap(t, i);
	if (i->off || d == REG_FRAME ||
	    (op != BPF_MOV && op != BPF_NEG && !forms_of(op)))
		return refuse_unknown(t, i);
	b = bpf_uses_register(i) && op != BPF_NEG
		    ? t->now.reg[bpf_src(i)]
		    : origin_const(ORIGIN_NUMBER, (uint64_t)(int64_t)i->imm);
	if (b.kind == ORIGIN_NONE || (op != BPF_MOV && a.kind == ORIGIN_NONE))
		return refuse_unset(t);
	why = origin_alu(op, is_32, a, b, &result);
	if (why)
		return REFUSE(t, "%s", why);
	make_alu(t, i, &a, &b, &result);
	t->now.reg[d] = result;
	return 0;
}

/* ---- memory ------------------------------------------------------------- */

static int wide(struct translation *t, const struct bpf_insn *i)
{
	const struct walkc_name *n =
		walkc_name_of(t->flow.function, t->code.at);
	uint64_t value = (uint32_t)i->imm | (uint64_t)(uint32_t)i[1].imm << 32;

	if (n && *n->section)
		return REFUSE(t,
			      "uses data that is not in the node or in the pad "
			      "(%s%s%s); a walk has none of its own: make "
			      "constants part of the code, and tables part of "
			      "the pad",
			      n->section, *n->symbol ? ": " : "", n->symbol);
	if (n || bpf_src(i))
		return REFUSE(t,
			      "uses %s, which is not there; a walk has its "
			      "node and its pad only",
			      n && *n->symbol ? n->symbol : "data of a kernel");
	if (bpf_dst(i) == REG_FRAME)
		return refuse_unknown(t, i);
	code_const(&t->code, bpf_dst(i), value);
	t->now.reg[bpf_dst(i)] = origin_const(ORIGIN_NUMBER, value);
	return 0;
}

static int atomic(struct translation *t, const struct bpf_insn *i)
{
	unsigned reg = bpf_dst(i), s = bpf_src(i);
	const struct walkc_origin *o = &t->now.reg[reg];
	struct walkc_spot spot;
	int err;

	if (o->kind == ORIGIN_PAD || o->kind == ORIGIN_STACK)
		return REFUSE(t,
			      "an atomic operation on %s, which is this "
			      "walk's alone; a plain one does",
			      origin_words(o->kind));
	if (bpf_bytes(i) != 8 ||
	    (i->imm != BPF_ATOMIC_CMPXCHG && (i->imm & ~BPF_ATOMIC_FETCH)))
		return REFUSE(t, "an atomic operation that is neither "
				 "compare-and-swap nor fetch-and-add of 8 "
				 "bytes");
	if (o->kind == ORIGIN_NODE && !o->is_const)
		return REFUSE(t, "an atomic operation at an index; it needs a "
				 "fixed place in the node");
	err = access_find(&t->maker, (struct walkc_place){reg, i->off}, 8,
			  REG_NODE_INDEX, &spot);
	if (err)
		return err;
	if (t->now.reg[s].kind != ORIGIN_NUMBER ||
	    (i->imm == BPF_ATOMIC_CMPXCHG &&
	     t->now.reg[0].kind != ORIGIN_NUMBER))
		return REFUSE(t, "an atomic operation with an address");
	t->code.has_stores = true;
	if (i->imm == BPF_ATOMIC_CMPXCHG) {
		code_op(&t->code, WALK_OP_CASN, REG_VALUE, 0, s, spot.at);
		s = 0;
	} else {
		code_op(&t->code, WALK_OP_FAAN, REG_VALUE, s, 0, spot.at);
	}
	if (i->imm & BPF_ATOMIC_FETCH) {
		code_op(&t->code, WALK_OP_MOV, s, REG_VALUE, 0, 0);
		t->now.reg[s] = origin_number(UINT64_MAX);
	}
	return 0;
}

static int store(struct translation *t, const struct bpf_insn *i)
{
	struct walkc_place to = {bpf_dst(i), i->off};
	unsigned mode = i->code & BPF_MODE;
	unsigned from = bpf_src(i);

	if (bpf_class(i) == BPF_STX && mode == BPF_MODE_ATOMIC)
		return atomic(t, i);
	if (mode != BPF_MODE_MEM)
		return refuse_unknown(t, i);
	if (bpf_class(i) == BPF_ST) {
		from = REG_VALUE;
		t->now.reg[from] =
			origin_const(ORIGIN_NUMBER, (uint64_t)(int64_t)i->imm);
		code_const(&t->code, from, t->now.reg[from].value);
	}
	return access_store(&t->maker, to, from, bpf_bytes(i));
}

static int load(struct translation *t, const struct bpf_insn *i)
{
	if ((i->code & BPF_MODE) != BPF_MODE_MEM || bpf_dst(i) == REG_FRAME)
		return refuse_unknown(t, i);
	return access_load(&t->maker, bpf_dst(i),
			   (struct walkc_place){bpf_src(i), i->off},
			   bpf_bytes(i));
}

/* ---- blocks ------------------------------------------------------------- */

static int make_exit(struct translation *t)
{
	const struct walkc_origin *r = &t->now.reg[0];

	if (r->kind == ORIGIN_NONE)
		return REFUSE(t, "returns nothing on some way; return "
				 "AQ_WALK_DONE or the next pointer");
	if (r->kind != ORIGIN_NUMBER)
		return REFUSE(t,
			      "returns the address of %s; return a pointer "
			      "that the node or the pad contains",
			      origin_words(r->kind));
	if (r->is_const && r->value == 0)
		code_op(&t->code, WALK_OP_RET, 0, 0, 0, 0);
	else if (r->is_const && r->value >> 63)
		code_op(&t->code, WALK_OP_FAIL, 0, 0, 0,
			(int64_t)(r->value & 0xff));
	else
		code_op(&t->code, WALK_OP_GO, 0, 0, 0, 0);
	return 0;
}

static int one(struct translation *t, const struct bpf_insn *i)
{
	if (bpf_dst(i) >= BPF_REGS || bpf_src(i) >= BPF_REGS)
		return refuse_unknown(t, i);
	switch (bpf_class(i)) {
	case BPF_ALU32:
	case BPF_ALU64:
		return alu(t, i);
	case BPF_LDX:
		return load(t, i);
	case BPF_ST:
	case BPF_STX:
		return store(t, i);
	case BPF_LD:
		return bpf_is_wide(i) ? wide(t, i) : refuse_unknown(t, i);
	default:
		return i->code == (BPF_JMP | BPF_CALL)
			       ? walkc_memory_call(&t->maker)
			       : refuse_unknown(t, i);
	}
}

/* What holds at the end of a block holds where it leads. */
static int pass_on(struct translation *t, uint32_t to)
{
	if (t->before[to]) {
		walkc_state_join(t->before[to], &t->now);
		return 0;
	}
	t->before[to] = malloc(sizeof(t->now));
	if (!t->before[to])
		return error_set(-ENOMEM, "no memory for %s",
				 t->flow.function->name);
	*t->before[to] = t->now;
	t->code.is_reached[to] = true;
	return 0;
}

static bool is_jump(const struct bpf_insn *i)
{
	return (bpf_class(i) == BPF_JMP && bpf_op(i) != BPF_CALL) ||
	       bpf_class(i) == BPF_JMP32;
}

static int make_end(struct translation *t, uint32_t at)
{
	const struct walkc_block *b = &t->flow.blocks[at];
	enum walkc_way way = WAY_BOTH;
	int err = 0;

	if (b->is_exit)
		return make_exit(t);
	if (b->next_count == 2)
		err = walkc_branch(&t->maker, &way);
	if (way != WAY_BOTH) {
		t->code.is_decided[at] = true;
		t->code.decided_to[at] = b->next[way == WAY_JUMP ? 0 : 1];
		return err ? err : pass_on(t, t->code.decided_to[at]);
	}
	for (unsigned i = 0; i < b->next_count && !err; i++)
		err = pass_on(t, b->next[i]);
	return err;
}

static int make_block(struct translation *t, uint32_t at)
{
	const struct walkc_block *b = &t->flow.blocks[at];
	const struct bpf_insn *insns = t->flow.function->insns;
	int err = 0;

	t->now = *t->before[at];
	t->code.first[at] = t->code.count;
	for (uint32_t i = b->first; i < b->end && !err; i++) {
		t->code.at = i;
		if (is_jump(&insns[i]))
			break; /* always the last one */
		err = one(t, &insns[i]);
		i += bpf_is_wide(&insns[i]);
	}
	if (!err)
		err = make_end(t, at);
	t->code.end[at] = t->code.count;
	if (!err && t->code.failed)
		err = error_set(-ENOMEM, "no memory for %s",
				t->flow.function->name);
	return err;
}

/* Registers that the caller of a walk sets, and the stack; what is not used
 * does not stay. */
static void make_start(struct translation *t)
{
	for (unsigned i = 0; i < WALK_REGS; i++)
		if (t->now.reg[i].is_const)
			code_const(&t->code, i, t->now.reg[i].value);
}

static int make_all(struct translation *t)
{
	uint32_t entry = t->flow.order[0];
	int err;

	walkc_state_init(&t->now);
	err = pass_on(t, entry);
	make_start(t);
	for (uint32_t i = 0; i < t->flow.order_count && !err; i++)
		if (t->before[t->flow.order[i]])
			err = make_block(t, t->flow.order[i]);
	t->code.first[entry] = 0;
	return err;
}

int walkc_translate(const struct walkc_object *o, unsigned i,
		    uint32_t longest_max, void **image, size_t *image_bytes)
{
	struct translation *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return error_set(-ENOMEM, "no memory for a walk");
	t->maker = (struct walkc_maker){&t->code, &t->now};
	err = walkc_flow_open(&t->flow, walkc_object_function(o, i));
	if (err) {
		free(t);
		return err;
	}
	t->before = calloc(t->flow.block_count, sizeof(struct walkc_state *));
	err = t->before ? walkc_code_open(&t->code, &t->flow)
			: error_set(-ENOMEM, "no memory for a walk");
	if (!err) {
		err = make_all(t);
		if (!err)
			err = walkc_code_trim(&t->code);
		if (!err)
			err = walkc_code_emit(&t->code, longest_max, image,
					      image_bytes);
		walkc_code_close(&t->code);
	}
	for (uint32_t b = 0; t->before && b < t->flow.block_count; b++)
		free(t->before[b]);
	free(t->before);
	walkc_flow_close(&t->flow);
	free(t);
	return err;
}
