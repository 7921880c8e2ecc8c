/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small changes of programs that mostly leave them acceptable: an instruction
 * has another register, number or operation of its form, some are repeated or
 * left out and the jumps over them corrected, or there is another program. A
 * fuzzer that only changes bytes sees one refusal after the other.
 */
#ifndef WALK_MUTATE_H
#define WALK_MUTATE_H

#include <string.h>

#include "walk_random.h"

enum {
	MUTATE_HEAD = 8,  /* load_bytes, pad_bytes, flags, seed, 2 unused */
	MUTATE_RANGE = 8, /* instructions that are repeated or left out */
	MUTATE_TIMES = 4, /* changes at a time */
};

/* An image as fields and instructions, as fuzz_walk_image takes it. */
struct mutate {
	struct rng *r;
	uint16_t load_bytes, pad_bytes;
	uint8_t flags, seed;
	uint32_t count, max;
	struct walk_insn insns[WALK_INSNS_MAX];
};

static inline uint8_t mutate_form(const struct walk_insn *i)
{
	return walk_op_info(i->op)->form;
}

/* Where a jump leads to, from itself on; 0: it is none. */
static inline uint32_t mutate_distance(const struct walk_insn *i)
{
	switch (mutate_form(i)) {
	case WALK_FORM_JUMP:
	case WALK_FORM_JUMP_ALWAYS:
		return (uint32_t)i->imm;
	case WALK_FORM_JUMP_IMM:
		return (uint32_t)i->imm >> 16;
	default:
		return 0;
	}
}

static inline void mutate_set_distance(struct walk_insn *i, uint32_t distance)
{
	if (mutate_form(i) == WALK_FORM_JUMP_IMM)
		i->imm =
			(int32_t)(distance << 16 | ((uint32_t)i->imm & 0xffff));
	else
		i->imm = (int32_t)distance;
}

/* The jumps before `at` that lead behind it do so by `more`. */
static inline void mutate_mend_jumps(struct mutate *m, uint32_t at, int more)
{
	for (uint32_t i = 0; i < at && i < m->count; i++) {
		const uint32_t distance = mutate_distance(&m->insns[i]);

		if (distance && i + distance > at)
			mutate_set_distance(&m->insns[i],
					    distance + (uint32_t)more);
	}
}

/* From an instruction on that is no second half, up to one that is none. */
static inline uint32_t mutate_range(struct mutate *m, uint32_t *from)
{
	uint32_t len = (uint32_t)rng_between(m->r, 1, MUTATE_RANGE);

	*from = (uint32_t)rng_below(m->r, m->count);
	if (*from && m->insns[*from].op == WALK_OP_ARG)
		--*from;
	len = u32_min(len, m->count - *from);
	if (*from + len < m->count && m->insns[*from + len].op == WALK_OP_ARG)
		len++;
	return len;
}

static inline void mutate_repeat(struct mutate *m)
{
	struct walk_insn copy[MUTATE_RANGE + 2];
	uint32_t from, to;
	const uint32_t len = mutate_range(m, &from);

	(void)mutate_range(m, &to);
	if (m->count + len > m->max)
		return;
	memcpy(copy, m->insns + from, len * sizeof(copy[0]));
	mutate_mend_jumps(m, to, (int)len);
	memmove(m->insns + to + len, m->insns + to,
		(m->count - to) * sizeof(copy[0]));
	memcpy(m->insns + to, copy, len * sizeof(copy[0]));
	m->count += len;
}

static inline void mutate_leave_out(struct mutate *m)
{
	uint32_t from;
	const uint32_t len = mutate_range(m, &from);

	if (len >= m->count)
		return;
	mutate_mend_jumps(m, from, -(int)len);
	memmove(m->insns + from, m->insns + from + len,
		(m->count - from - len) * sizeof(m->insns[0]));
	m->count -= len;
}

static inline void mutate_op(struct mutate *m, struct walk_insn *i)
{
	const uint8_t form = mutate_form(i);

	for (int tries = 0; tries < 64; tries++) {
		const uint8_t op = (uint8_t)rng_u64(m->r);

		if (walk_op_info(op)->form == form) {
			i->op = op;
			return;
		}
	}
}

/* One that another instruction has, or any. */
static inline void mutate_reg(struct mutate *m, struct walk_insn *i)
{
	const struct walk_insn *other = &m->insns[rng_below(m->r, m->count)];
	const uint8_t reg = rng_below(m->r, 4)
				    ? other->d
				    : (uint8_t)rng_below(m->r, WALK_REGS + 1);

	switch (rng_below(m->r, 3)) {
	case 0:
		i->d = reg;
		break;
	case 1:
		i->a = reg;
		break;
	default:
		i->b = reg;
		break;
	}
}

/* By a little, at the edge of a window, or anything. */
static inline void mutate_imm(struct mutate *m, struct walk_insn *i)
{
	const int32_t near = (int32_t)rng_between(m->r, 1, 8);

	switch (rng_below(m->r, 6)) {
	case 0:
		i->imm = (int32_t)((uint32_t)i->imm + (uint32_t)near);
		break;
	case 1:
		i->imm = (int32_t)((uint32_t)i->imm - (uint32_t)near);
		break;
	case 2:
		i->imm = m->load_bytes - near;
		break;
	case 3:
		i->imm = m->pad_bytes - near;
		break;
	case 4:
		i->imm ^= (int32_t)(1u << rng_below(m->r, 32));
		break;
	default:
		i->imm = (int32_t)rng_u64(m->r);
		break;
	}
}

static inline void mutate_insn(struct mutate *m)
{
	struct walk_insn *i = &m->insns[rng_below(m->r, m->count)];
	const uint32_t at = (uint32_t)(i - m->insns);

	if (mutate_distance(i) && at + 2 < m->count && rng_below(m->r, 2)) {
		mutate_set_distance(
			i, (uint32_t)rng_between(m->r, 1, m->count - at - 1));
		return;
	}
	switch (rng_below(m->r, 3)) {
	case 0:
		mutate_op(m, i);
		break;
	case 1:
		mutate_reg(m, i);
		break;
	default:
		mutate_imm(m, i);
		break;
	}
}

static inline void mutate_fresh(struct mutate *m)
{
	struct walk_build *b = random_walk_build(m->r);
	struct walk_image image;

	if (b && walk_build_end(b, UINT32_MAX, &image, NULL) == 0 &&
	    image.count <= m->max) {
		m->load_bytes = image.load_bytes;
		m->pad_bytes = image.pad_bytes;
		m->flags = (uint8_t)image.flags;
		m->count = image.count;
		memcpy(m->insns, image.insns, image.count * sizeof(*m->insns));
	}
	walk_build_destroy(b);
}

static inline void mutate_sizes(struct mutate *m)
{
	uint16_t *bytes = rng_below(m->r, 2) ? &m->load_bytes : &m->pad_bytes;

	*bytes = (uint16_t)(*bytes + rng_between(m->r, 0, 16) -
			    (rng_below(m->r, 4) ? 0 : 16));
	m->seed = (uint8_t)rng_u64(m->r);
}

static inline void mutate_once(struct mutate *m)
{
	switch (rng_below(m->r, 16)) {
	case 0:
	case 1:
		mutate_repeat(m);
		break;
	case 2:
		mutate_leave_out(m);
		break;
	case 3:
		mutate_sizes(m);
		break;
	case 4:
		m->seed = (uint8_t)rng_u64(m->r);
		break;
	default:
		mutate_insn(m);
		break;
	}
}

/* Whether the verifier takes it. */
static inline bool mutate_fits(const struct mutate *m)
{
	const struct walk_image image = {.name = "mutate",
					 .load_bytes = m->load_bytes,
					 .pad_bytes = m->pad_bytes,
					 .flags = m->flags,
					 .count = m->count,
					 .insns = m->insns};

	return walk_verify(&image, UINT32_MAX, NULL) == 0;
}

static inline void mutate_take(struct mutate *m, const uint8_t *bytes,
			       size_t len)
{
	const size_t slots =
		len <= MUTATE_HEAD ? 0
				   : (len - MUTATE_HEAD) / sizeof(m->insns[0]);

	m->count = (uint32_t)u64_min(slots, m->max);
	if (!m->count)
		return;
	memcpy(&m->load_bytes, bytes, 2);
	memcpy(&m->pad_bytes, bytes + 2, 2);
	m->flags = bytes[4];
	m->seed = bytes[5];
	memcpy(m->insns, bytes + MUTATE_HEAD, m->count * sizeof(m->insns[0]));
}

static inline size_t mutate_give(const struct mutate *m, uint8_t *bytes)
{
	memset(bytes, 0, MUTATE_HEAD);
	memcpy(bytes, &m->load_bytes, 2);
	memcpy(bytes + 2, &m->pad_bytes, 2);
	bytes[4] = m->flags;
	bytes[5] = m->seed;
	memcpy(bytes + MUTATE_HEAD, m->insns, m->count * sizeof(m->insns[0]));
	return MUTATE_HEAD + m->count * sizeof(m->insns[0]);
}

static inline void mutate_copy(struct mutate *to, const struct mutate *from)
{
	memcpy(to, from, offsetof(struct mutate, insns));
	memcpy(to->insns, from->insns, from->count * sizeof(from->insns[0]));
}

/*
 * In place: an input of `len` bytes, with room for `max`. Returns its new
 * length. What the verifier refuses is mostly taken back and something else
 * tried, so that most programs run.
 */
static inline size_t walk_mutate(struct rng *r, uint8_t *bytes, size_t len,
				 size_t max)
{
	static struct mutate m, was;

	if (max < MUTATE_HEAD + sizeof(m.insns[0]))
		return len;
	m.r = r;
	m.max = (uint32_t)u64_min((max - MUTATE_HEAD) / sizeof(m.insns[0]),
				  WALK_INSNS_MAX);
	mutate_take(&m, bytes, len);
	if (!m.count || !mutate_fits(&m) || rng_below(r, 64) == 0)
		mutate_fresh(&m);
	for (uint64_t i = rng_between(r, 1, MUTATE_TIMES); i && m.count; i--) {
		mutate_copy(&was, &m);
		mutate_once(&m);
		if (rng_below(r, 16) && !mutate_fits(&m))
			mutate_copy(&m, &was);
	}
	return mutate_give(&m, bytes);
}

#endif
