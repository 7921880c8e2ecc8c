/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs that the verifier accepts, with every instruction in them. */
#ifndef WALK_RANDOM_H
#define WALK_RANDOM_H

#include "base/rng.h"
#include "walk/build.h"

struct random_walk {
	struct rng *r;
	struct walk_build *b;
	uint32_t regs; /* in use, all written at the start */
	uint32_t load_bytes, pad_bytes;
	bool stores;
};

static inline uint8_t random_reg(struct random_walk *w)
{
	return (uint8_t)rng_below(w->r, w->regs);
}

static inline int32_t random_imm(struct random_walk *w)
{
	switch (rng_below(w->r, 4)) {
	case 0:
		return (int32_t)rng_below(w->r, 66);
	case 1:
		return -(int32_t)rng_below(w->r, 66);
	default:
		return (int32_t)rng_u64(w->r);
	}
}

static inline void random_access(struct random_walk *w)
{
	static const uint8_t plain[] = {WALK_OP_LDN1, WALK_OP_LDP1,
					WALK_OP_STP1, WALK_OP_STN1};
	static const uint8_t indexed[] = {WALK_OP_LDNX1, WALK_OP_LDPX1,
					  WALK_OP_STPX1, WALK_OP_STNX1};
	const unsigned kind = (unsigned)rng_below(w->r, w->stores ? 4 : 3);
	const unsigned log2 = (unsigned)rng_below(w->r, 4);
	const uint32_t room =
		kind == 0 || kind == 3 ? w->load_bytes : w->pad_bytes;
	const uint32_t last = room - (1u << log2);
	const uint8_t d = kind < 2 ? random_reg(w) : 0;

	if (rng_below(w->r, 2)) {
		walk_build_op(w->b, (uint8_t)(plain[kind] + log2), d,
			      kind < 2 ? 0 : random_reg(w), 0,
			      (int32_t)rng_between(w->r, 0, last));
	} else {
		const uint32_t imm = (uint32_t)rng_between(w->r, 0, last);
		const uint8_t a = random_reg(w);

		/* Mostly an AND, so that more than a few go on. */
		if (rng_below(w->r, 4))
			walk_build_op(w->b, WALK_OP_MODI, a, a, 0,
				      (int32_t)(last - imm) + 1);
		else
			walk_build_op(w->b, WALK_OP_BND, 0, a, 0,
				      (int32_t)(last - imm));
		walk_build_op(w->b, (uint8_t)(indexed[kind] + log2), d, a,
			      kind < 2 ? 0 : random_reg(w), (int32_t)imm);
	}
}

static inline void random_block(struct random_walk *w)
{
	const uint8_t op = (uint8_t)(WALK_OP_CPY + rng_below(w->r, 3));
	const uint32_t most = u32_min(w->load_bytes, w->pad_bytes);
	struct walk_block k = {
		.d = op == WALK_OP_CPY ? 0 : random_reg(w),
		.len_reg = WALK_REG_NONE,
		.node_reg = WALK_REG_NONE,
		.pad_reg = WALK_REG_NONE,
		.len = (uint32_t)rng_between(
			w->r, 1, rng_below(w->r, 2) ? u32_min(most, 40) : most),
	};

	k.node_at = (int32_t)rng_between(w->r, 0, w->load_bytes - k.len);
	if (op != WALK_OP_SUM)
		k.pad_at = (uint32_t)rng_between(w->r, 0, w->pad_bytes - k.len);
	if (rng_below(w->r, 3) == 0) {
		k.len_reg = 0;
		walk_build_op(w->b, WALK_OP_MINI, 0, 0, 0, (int32_t)k.len);
	}
	if (rng_below(w->r, 3) == 0) {
		k.node_reg = 1;
		walk_build_op(
			w->b, WALK_OP_MODI, 1, 1, 0,
			(int32_t)(w->load_bytes - k.len - (uint32_t)k.node_at) +
				1);
	}
	if (op != WALK_OP_SUM && rng_below(w->r, 3) == 0) {
		k.pad_reg = 2;
		walk_build_op(w->b, WALK_OP_MODI, 2, 2, 0,
			      (int32_t)(w->pad_bytes - k.len - k.pad_at) + 1);
	}
	walk_build_block(w->b, op, &k);
}

static inline void random_alu(struct random_walk *w)
{
	const uint8_t kind = (uint8_t)rng_below(w->r, 13);
	const uint8_t d = random_reg(w), a = random_reg(w);

	switch (rng_below(w->r, 6)) {
	case 0:
		walk_build_op(w->b, WALK_OP_ADD + kind, d, a, random_reg(w), 0);
		break;
	case 1:
		walk_build_op(w->b, WALK_OP_ADDI + kind, d, a, 0,
			      random_imm(w));
		break;
	case 2:
		walk_build_op(w->b, WALK_OP_ADD32 + kind, d, a, random_reg(w),
			      0);
		break;
	case 3:
		walk_build_op(w->b, WALK_OP_ADDI32 + kind, d, a, 0,
			      random_imm(w));
		break;
	case 4:
		walk_build_op(w->b,
			      (uint8_t)(WALK_OP_MOV + rng_below(w->r, 10)), d,
			      a, 0, 0);
		break;
	default:
		if (rng_below(w->r, 2))
			walk_build_op(w->b, WALK_OP_LDIH, d, 0, 0,
				      random_imm(w));
		else
			walk_build_const(w->b, d, rng_u64(w->r));
		break;
	}
}

static inline void random_atomic(struct random_walk *w)
{
	const int32_t imm = (int32_t)(rng_below(w->r, w->load_bytes / 8) * 8);

	if (!w->stores)
		return;
	if (rng_below(w->r, 2))
		walk_build_op(w->b, WALK_OP_FAAN, random_reg(w), random_reg(w),
			      0, imm);
	else
		walk_build_op(w->b, WALK_OP_CASN, random_reg(w), random_reg(w),
			      random_reg(w), imm);
}

static inline void random_jump(struct random_walk *w, int label)
{
	if (rng_below(w->r, 2))
		walk_build_jump(w->b,
				(uint8_t)(WALK_OP_JEQ + rng_below(w->r, 7)),
				random_reg(w), random_reg(w), label);
	else
		walk_build_jump_imm(
			w->b, (uint8_t)(WALK_OP_JEQI + rng_below(w->r, 11)),
			random_reg(w), (int16_t)random_imm(w), label);
}

static inline void random_end(struct random_walk *w)
{
	switch (rng_below(w->r, 4)) {
	case 0:
		walk_build_op(w->b, WALK_OP_NEXT, 0, random_reg(w), 0, 0);
		break;
	case 1:
		walk_build_op(w->b, WALK_OP_RET, 0, 0, 0, 0);
		break;
	case 2:
		walk_build_op(w->b, WALK_OP_FAIL, 0, 0, 0,
			      (int32_t)rng_below(w->r, 256));
		break;
	default:
		walk_build_op(w->b, WALK_OP_GO, 0, random_reg(w), 0, 0);
		break;
	}
}

enum {
	RANDOM_AHEAD = 16, /* groups that a jump can skip */
};

/* One group of instructions; no jump leads into its middle. */
static inline void random_group(struct random_walk *w, const int *labels)
{
	const uint64_t far = rng_between(w->r, 1, RANDOM_AHEAD - 1);

	switch (rng_below(w->r, 16)) {
	case 0 ... 4:
		random_access(w);
		break;
	case 5 ... 10:
		random_alu(w);
		break;
	case 11:
		random_block(w);
		break;
	case 12:
		random_atomic(w);
		break;
	case 13:
	case 14:
		random_jump(w, labels[far]);
		break;
	default: /* a way that ends, and one that goes around it */
		random_jump(w, labels[1]);
		if (rng_below(w->r, 2))
			random_end(w);
		else
			walk_build_jump_always(w->b, labels[far]);
		break;
	}
}

/* A builder that is ready for walk_build_end. */
static inline struct walk_build *random_walk_build(struct rng *r)
{
	struct random_walk w = {
		.r = r,
		.regs = (uint32_t)rng_between(r, 3, rng_below(r, 2) ? 8 : 64),
		.load_bytes = (uint32_t)rng_between(r, 8, 200),
		.pad_bytes = (uint32_t)rng_between(r, 8, 200),
		.stores = rng_below(r, 2),
	};
	const uint64_t groups = rng_between(r, 1, rng_below(r, 2) ? 12 : 120);
	int labels[RANDOM_AHEAD];

	w.b = walk_build_create("random", (int16_t)rng_u64(r),
				(uint16_t)w.load_bytes, (uint16_t)w.pad_bytes,
				w.stores ? WALK_STORES : 0);
	for (int i = 0; i < RANDOM_AHEAD; i++)
		labels[i] = walk_build_label(w.b);
	for (uint32_t i = 0; i < w.regs; i++) {
		if (i % 2)
			walk_build_op(w.b, WALK_OP_LDP8, (uint8_t)i, 0, 0,
				      (int32_t)(i % (w.pad_bytes - 7)));
		else
			walk_build_op(w.b, WALK_OP_LDN8, (uint8_t)i, 0, 0,
				      (int32_t)(i % (w.load_bytes - 7)));
	}
	for (uint64_t g = 0; g < groups; g++) {
		random_group(&w, labels);
		/* The label of the next group is the next one's own now. */
		walk_build_place(w.b, labels[1]);
		for (int i = 1; i < RANDOM_AHEAD - 1; i++)
			labels[i] = labels[i + 1];
		labels[RANDOM_AHEAD - 1] = walk_build_label(w.b);
	}
	for (int i = 0; i < RANDOM_AHEAD; i++) {
		if (i)
			walk_build_place(w.b, labels[i]);
	}
	random_end(&w);
	return w.b;
}

#endif
