/* SPDX-License-Identifier: Apache-2.0 */
/* What a register holds after an operation, and where two ways meet. */
#include "origin.h"

#include <string.h>

const char *origin_words(enum origin_kind kind)
{
	static const char *const words[] = {
		[ORIGIN_NONE] = "nothing",
		[ORIGIN_NUMBER] = "a number",
		[ORIGIN_NODE] = "the node",
		[ORIGIN_PAD] = "the pad",
		[ORIGIN_STACK] = "a variable",
		[ORIGIN_MIXED] = "several things",
	};

	return words[kind];
}

void walkc_state_init(struct walkc_state *s)
{
	memset(s, 0, sizeof(*s));
	s->reg[1] = origin_const(ORIGIN_NODE, 0);
	s->reg[2] = origin_const(ORIGIN_PAD, 0);
	s->reg[REG_FRAME] = origin_const(ORIGIN_STACK, 0);
	for (unsigned i = REG_STACK; i < WALK_REGS; i++)
		s->reg[i] = origin_const(ORIGIN_NUMBER, 0);
}

static struct walkc_origin join(struct walkc_origin a, struct walkc_origin b)
{
	if (a.kind == ORIGIN_NONE || b.kind == ORIGIN_NONE)
		return (struct walkc_origin){0};
	if (a.kind != b.kind)
		return (struct walkc_origin){.kind = ORIGIN_MIXED};
	a.is_const = a.is_const && b.is_const && a.value == b.value;
	a.max = u64_max(a.max, b.max);
	return a;
}

void walkc_state_join(struct walkc_state *s, const struct walkc_state *other)
{
	for (unsigned i = 0; i < WALK_REGS; i++)
		s->reg[i] = join(s->reg[i], other->reg[i]);
}

/* ---- numbers ------------------------------------------------------------ */

static uint64_t fold(unsigned op, unsigned width, uint64_t a, uint64_t b)
{
	switch (op) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_MOD:
		return b ? a % b : a;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return a << (b & (width - 1));
	case BPF_RSH:
		return a >> (b & (width - 1));
	case BPF_ARSH:
		return width == 32 ? (uint64_t)((int32_t)a >> (b & 31))
				   : (uint64_t)((int64_t)a >> (b & 63));
	case BPF_NEG:
		return -a;
	default: /* MOV */
		return b;
	}
}

/* As the verifier has it. It knows a second operand only where the instruction
 * has it in itself, so make_alu puts every constant that fits there. */
static uint64_t bound(unsigned op, unsigned width, struct walkc_origin a,
		      struct walkc_origin b)
{
	bool is_known = b.is_const && origin_fits(b.value);
	unsigned shift = (unsigned)(b.value & (width - 1));
	uint64_t out;

	switch (op) {
	case BPF_ADD:
		return __builtin_add_overflow(a.max, b.max, &out) ? UINT64_MAX
								  : out;
	case BPF_MUL:
		return __builtin_mul_overflow(a.max, b.max, &out) ? UINT64_MAX
								  : out;
	case BPF_DIV:
		return is_known && b.value ? a.max / b.value : a.max;
	case BPF_MOD:
		return is_known && b.value ? u64_min(a.max, b.value - 1)
					   : a.max;
	case BPF_AND:
		return u64_min(a.max, b.max);
	case BPF_LSH:
		if (!is_known ||
		    (a.max && shift > (unsigned)__builtin_clzll(a.max)))
			return UINT64_MAX;
		return a.max << shift;
	case BPF_RSH:
		return is_known ? a.max >> shift : a.max;
	case BPF_MOV:
		return b.max;
	default:
		return UINT64_MAX;
	}
}

static void numbers(unsigned op, bool is_32, struct walkc_origin a,
		    struct walkc_origin b, struct walkc_origin *out)
{
	unsigned width = is_32 ? 32 : 64;

	if (is_32) {
		a.value = (uint32_t)a.value;
		b.value = (uint32_t)b.value;
		a.max = u64_min(a.max, UINT32_MAX);
		b.max = u64_min(b.max, UINT32_MAX);
	}
	if ((a.is_const || op == BPF_MOV) && b.is_const)
		*out = origin_const(ORIGIN_NUMBER,
				    fold(op, width, a.value, b.value));
	else
		*out = origin_number(bound(op, width, a, b));
	if (is_32) {
		out->value = (uint32_t)out->value;
		out->max = out->is_const ? out->value
					 : u64_min(out->max, UINT32_MAX);
	}
}

/* ---- addresses ---------------------------------------------------------- */

static bool is_number(const struct walkc_origin *o)
{
	return o->kind == ORIGIN_NUMBER;
}

/* Address plus or minus a number, or the distance of two. */
static bool addresses(unsigned op, struct walkc_origin a, struct walkc_origin b,
		      struct walkc_origin *out)
{
	enum origin_kind kind = origin_is_address(&a) ? a.kind : b.kind;

	if (op == BPF_SUB && a.kind == b.kind)
		kind = ORIGIN_NUMBER;
	else if (op == BPF_ADD ? is_number(&a) == is_number(&b)
			       : op != BPF_SUB || !is_number(&b))
		return false;
	a.kind = b.kind = ORIGIN_NUMBER;
	numbers(op, false, a, b, out);
	out->kind = kind;
	return true;
}

const char *origin_alu(unsigned op, bool is_32, struct walkc_origin a,
		       struct walkc_origin b, struct walkc_origin *out)
{
	if (op == BPF_MOV && !is_32) {
		*out = b;
		return NULL;
	}
	if ((op == BPF_MOV || is_number(&a)) && is_number(&b)) {
		numbers(op, is_32, a, b, out);
		return NULL;
	}
	if (b.kind == ORIGIN_MIXED || (a.kind == ORIGIN_MIXED && op != BPF_MOV))
		return "uses what is a number on one way and an address on "
		       "another; use two variables";
	if (is_32)
		return "uses an address as a number of 32 bits; a walk does "
		       "not know where its node is";
	if (!addresses(op, a, b, out))
		return "computes with an address; only adding to it and "
		       "distances are possible, because a walk does not know "
		       "where its node is";
	return NULL;
}
