/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter. It trusts the verifier, but for one thing: indices are
 * clamped to their window once more, because a processor that guesses the next
 * instruction wrongly executes one that was never verified with these
 * registers.
 */
#include <string.h>

#include "base/crc.h"
#include "op.h"
#include "walk_priv.h"

/* ---- block instructions and atomics ---------------------------------------
 */

void walk_do_cpy(const uint8_t *node, uint8_t *pad, uint64_t len)
{
	memcpy(pad, node, len);
}

uint64_t walk_do_cmp(const uint8_t *node, const uint8_t *pad, uint64_t len)
{
	int order = memcmp(pad, node, len);

	return (uint64_t)(int64_t)((order > 0) - (order < 0));
}

uint64_t walk_do_sum(const uint8_t *node, const uint8_t *pad, uint64_t len)
{
	return ~crc32_raw(UINT32_MAX, node, len);
}

static COLD bool is_odd(const uint8_t *word)
{
	return (uintptr_t)word % 8;
}

static uint64_t block_reg(const uint64_t *r, uint8_t reg, uint64_t otherwise)
{
	return reg == WALK_REG_NONE ? otherwise : r[reg];
}

/* The result for register d; CPY's is not used. */
static uint64_t do_block(const struct walk_image *image,
			 const struct walk_insn *insn, const uint64_t *r,
			 uint8_t *node, uint8_t *pad)
{
	const struct walk_block k = walk_block_get(insn);
	const uint64_t len = walk_clamp(block_reg(r, k.len_reg, k.len), k.len);
	const uint64_t node_at =
		walk_clamp(block_reg(r, k.node_reg, 0) + (uint64_t)k.node_at,
			   image->load_bytes - k.len);
	const uint64_t pad_at = walk_clamp(
		block_reg(r, k.pad_reg, 0) + k.pad_at,
		insn->op == WALK_OP_SUM ? 0 : image->pad_bytes - k.len);

	if (insn->op == WALK_OP_CMP)
		return walk_do_cmp(node + node_at, pad + pad_at, len);
	if (insn->op == WALK_OP_SUM)
		return walk_do_sum(node + node_at, pad, len);
	walk_do_cpy(node + node_at, pad + pad_at, len);
	return 0;
}

/* ---- arithmetic ------------------------------------------------------------
 */

static ALWAYS_INLINE uint64_t div64(uint64_t a, uint64_t b)
{
	return b ? a / b : 0;
}

static ALWAYS_INLINE uint64_t mod64(uint64_t a, uint64_t b)
{
	return b ? a % b : a;
}

static ALWAYS_INLINE uint64_t sar(uint64_t a, uint64_t b)
{
	return (uint64_t)((int64_t)a >> (b & 63));
}

static ALWAYS_INLINE uint32_t sar32(uint32_t a, uint32_t b)
{
	return (uint32_t)((int32_t)a >> (b & 31));
}

/* Eight aligned bytes in one piece, for peers that look meanwhile. */
static ALWAYS_INLINE void store8(uint8_t *at, uint64_t v)
{
	if (LIKELY((uintptr_t)at % 8 == 0))
		__atomic_store_n((uint64_t *)(void *)at, v, __ATOMIC_RELAXED);
	else
		memcpy(at, &v, 8);
}

/* ---- the machine ------------------------------------------------------------
 */

#define A   (r[i->a])
#define B   (r[i->b])
#define D   (r[i->d])
#define IMM ((uint64_t)(int64_t)i->imm)
#define LAST(window, bytes) \
	((window) == node ? node_bytes - (bytes) : pad_bytes - (bytes))

#define DISPATCH() goto *labels[i->op]
#define STEP()              \
	do {                \
		i++;        \
		DISPATCH(); \
	} while (0)

#define LOAD(NAME, type, window)                  \
NAME : {                                          \
	type v;                                   \
                                                  \
	memcpy(&v, (window) + i->imm, sizeof(v)); \
	D = v;                                    \
	STEP();                                   \
}
#define LOAD_X(NAME, type, window)                                          \
NAME : {                                                                    \
	type v;                                                             \
                                                                            \
	memcpy(&v, (window) + walk_clamp(A + IMM, LAST(window, sizeof(v))), \
	       sizeof(v));                                                  \
	D = v;                                                              \
	STEP();                                                             \
}
#define STORE(NAME, type, window)                 \
NAME : {                                          \
	type v = (type)A;                         \
                                                  \
	memcpy((window) + i->imm, &v, sizeof(v)); \
	STEP();                                   \
}
#define STORE_X(NAME, type, window)                                         \
NAME : {                                                                    \
	type v = (type)B;                                                   \
                                                                            \
	memcpy((window) + walk_clamp(A + IMM, LAST(window, sizeof(v))), &v, \
	       sizeof(v));                                                  \
	STEP();                                                             \
}
#define SIZED(MACRO, NAME, window)       \
	MACRO(NAME##1, uint8_t, window)  \
	MACRO(NAME##2, uint16_t, window) \
	MACRO(NAME##4, uint32_t, window) \
	MACRO(NAME##8, uint64_t, window)

/* One operation in its four forms; x and y are its operands. */
#define ALU_FORM(NAME, type, right, expr) \
NAME : {                                  \
	type x = (type)A;                 \
	type y = (type)(right);           \
                                          \
	D = (type)(expr);                 \
	STEP();                           \
}
#define ALU(NAME, expr, expr32)                 \
	ALU_FORM(NAME, uint64_t, B, expr)       \
	ALU_FORM(NAME##I, uint64_t, IMM, expr)  \
	ALU_FORM(NAME##32, uint32_t, B, expr32) \
	ALU_FORM(NAME##I32, uint32_t, IMM, expr32)
#define UNARY(NAME, expr) \
NAME : {                  \
	uint64_t x = A;   \
                          \
	D = (expr);       \
	STEP();           \
}

#define JUMP(NAME, expr)          \
NAME : {                          \
	uint64_t x = A, y = B;    \
                                  \
	i += (expr) ? i->imm : 1; \
	DISPATCH();               \
}
#define JUMP_IMM(NAME, expr)                                    \
NAME : {                                                        \
	uint64_t x = A, y = (uint64_t)(int64_t)(int16_t)i->imm; \
                                                                \
	i += (expr) ? (uint32_t)i->imm >> 16 : 1;               \
	DISPATCH();                                             \
}
#define JUMP_BOTH(NAME, expr) \
	JUMP(NAME, expr)      \
	JUMP_IMM(NAME##I, expr)
#define END(step_, next_)                        \
	return (struct walk_end)                 \
	{                                        \
		.next = (next_), .step = (step_) \
	}

HOT struct walk_end walk_exec(const struct walk_program *program, uint8_t *node,
			      uint8_t *pad)
{
	static const void *const labels[256] = {
#define LABEL(id, name, num, form, window, bytes) [num] = &&id,
		WALK_OPS(LABEL)
#undef LABEL
	};
	const struct walk_image *image = &program->image;
	const uint64_t node_bytes = image->load_bytes;
	const uint64_t pad_bytes = image->pad_bytes;
	const struct walk_insn *i = image->insns;
	uint64_t r[WALK_REGS];

	DISPATCH();

	SIZED(LOAD, LDN, node)
	SIZED(LOAD, LDP, pad)
	SIZED(LOAD_X, LDNX, node)
	SIZED(LOAD_X, LDPX, pad)
	SIZED(STORE, STP, pad)
	SIZED(STORE_X, STPX, pad)
	STORE(STN1, uint8_t, node)
	STORE(STN2, uint16_t, node)
	STORE(STN4, uint32_t, node)
	STORE_X(STNX1, uint8_t, node)
	STORE_X(STNX2, uint16_t, node)
	STORE_X(STNX4, uint32_t, node)
STN8:
	store8(node + i->imm, A);
	STEP();
STNX8:
	store8(node + walk_clamp(A + IMM, node_bytes - 8), B);
	STEP();
CASN : {
	uint64_t *word = (void *)(node + i->imm);
	uint64_t expected = A;

	if (UNLIKELY(is_odd(node + i->imm)))
		END(WALK_STEP_FAULT, 0);
	/* WALK-1: the other end is any port that changes the word. */
	__atomic_compare_exchange_n(word, &expected, B, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	D = expected;
	STEP();
}
FAAN : {
	uint64_t *word = (void *)(node + i->imm);

	if (UNLIKELY(is_odd(node + i->imm)))
		END(WALK_STEP_FAULT, 0);
	/* WALK-1 */
	D = __atomic_fetch_add(word, A, __ATOMIC_SEQ_CST);
	STEP();
}
CPY:
	(void)do_block(image, i, r, node, pad); /* has no result */
	i += 2;
	DISPATCH();
CMP:
SUM:
	D = do_block(image, i, r, node, pad);
	i += 2;
	DISPATCH();

LDI:
	D = IMM;
	STEP();
LDIH:
	D = (uint32_t)D | IMM << 32;
	STEP();
	ALU(ADD, x + y, x + y)
	ALU(SUB, x - y, x - y)
	ALU(MUL, x * y, x * y)
	ALU(DIV, div64(x, y), div64(x, y))
	ALU(MOD, mod64(x, y), mod64(x, y))
	ALU(AND, x & y, x & y)
	ALU(OR, x | y, x | y)
	ALU(XOR, x ^ y, x ^ y)
	ALU(SHL, x << (y & 63), x << (y & 31))
	ALU(SHR, x >> (y & 63), x >> (y & 31))
	ALU(SAR, sar(x, y), sar32(x, y))
	ALU(MIN, x < y ? x : y, x < y ? x : y)
	ALU(MAX, x > y ? x : y, x > y ? x : y)
	UNARY(MOV, x)
	UNARY(MOV32, (uint32_t)x)
	UNARY(NEG, 0 - x)
	UNARY(NEG32, (uint32_t)(0 - x))
	UNARY(SX1, (uint64_t)(int64_t)(int8_t)x)
	UNARY(SX2, (uint64_t)(int64_t)(int16_t)x)
	UNARY(SX4, (uint64_t)(int64_t)(int32_t)x)
	UNARY(BSW2, __builtin_bswap16((uint16_t)x))
	UNARY(BSW4, __builtin_bswap32((uint32_t)x))
	UNARY(BSW8, __builtin_bswap64(x))
BND:
	if (UNLIKELY(A > (uint32_t)i->imm))
		END(WALK_STEP_FAULT, 0);
	A = walk_clamp(A, (uint32_t)i->imm);
	STEP();

	JUMP_BOTH(JEQ, x == y)
	JUMP_BOTH(JNE, x != y)
	JUMP_BOTH(JLT, x < y)
	JUMP_BOTH(JLE, x <= y)
	JUMP_BOTH(JSLT, (int64_t)x < (int64_t)y)
	JUMP_BOTH(JSLE, (int64_t)x <= (int64_t)y)
	JUMP_BOTH(JSET, x & y)
	JUMP_IMM(JGTI, x > y)
	JUMP_IMM(JGEI, x >= y)
	JUMP_IMM(JSGTI, (int64_t)x > (int64_t)y)
	JUMP_IMM(JSGEI, (int64_t)x >= (int64_t)y)
JA:
	i += i->imm;
	DISPATCH();
NEXT:
	END(WALK_STEP_NEXT, A);
GO:
	if (A == 0)
		END(WALK_STEP_DONE, 0);
	if (A >> 63)
		END(WALK_STEP_FAIL, (uint8_t)A);
	END(WALK_STEP_NEXT, A);
RET:
	END(WALK_STEP_DONE, 0);
FAIL:
	END(WALK_STEP_FAIL, (uint64_t)i->imm);
ARG: /* the verifier lets none be reached */
	END(WALK_STEP_FAULT, 0);
}
