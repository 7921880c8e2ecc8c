/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier: the form of every instruction, one pass forward with what is
 * known of the registers, one backward for the cost of the longest path. Jumps
 * go forward only, so that one pass sees all ways to an instruction before the
 * instruction itself.
 */
#include "verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"
#include "op.h"
#include "walk_priv.h"

enum {
	NO_STATE = 0xffff,
	COST_BYTES = 32, /* of a block instruction, per unit */
};

/* What is known of the registers before an instruction. */
struct state {
	uint64_t defined; /* bit n: register n was written on every way */
	uint64_t bound[WALK_REGS]; /* of those: the largest value */
};

struct pass {
	const struct walk_image *image;
	uint32_t at;	 /* the instruction that is looked at */
	bool is_reached; /* control may come to it from the one before */
	struct state now;
	struct state *states;	       /* of targets that were jumped to */
	uint16_t slot[WALK_INSNS_MAX]; /* NO_STATE: no target, or not yet */
	uint32_t used;
	bool is_second[WALK_INSNS_MAX]; /* of a block instruction */
	uint32_t cost[WALK_INSNS_MAX];
	struct walk_facts facts;
};

enum {
	HAS_D = 1,
	HAS_A = 2,
	HAS_B = 4,
	HAS_IMM = 8,
};

static const uint8_t fields[] = {
	[WALK_FORM_LOAD] = HAS_D | HAS_IMM,
	[WALK_FORM_LOAD_X] = HAS_D | HAS_A | HAS_IMM,
	[WALK_FORM_CONST] = HAS_D | HAS_IMM,
	[WALK_FORM_CONST_HIGH] = HAS_D | HAS_IMM,
	[WALK_FORM_STORE] = HAS_A | HAS_IMM,
	[WALK_FORM_STORE_X] = HAS_A | HAS_B | HAS_IMM,
	[WALK_FORM_CAS] = HAS_D | HAS_A | HAS_B | HAS_IMM,
	[WALK_FORM_FAA] = HAS_D | HAS_A | HAS_IMM,
	[WALK_FORM_ALU] = HAS_D | HAS_A | HAS_B,
	[WALK_FORM_ALU_IMM] = HAS_D | HAS_A | HAS_IMM,
	[WALK_FORM_UNARY] = HAS_D | HAS_A,
	[WALK_FORM_BOUND] = HAS_A | HAS_IMM,
	[WALK_FORM_JUMP] = HAS_A | HAS_B | HAS_IMM,
	[WALK_FORM_JUMP_IMM] = HAS_A | HAS_IMM,
	[WALK_FORM_JUMP_ALWAYS] = HAS_IMM,
	[WALK_FORM_END_REG] = HAS_A,
	[WALK_FORM_END] = 0,
	[WALK_FORM_END_CODE] = HAS_IMM,
};

static int refuse(const struct pass *p, const char *words)
{
	const struct walk_insn *insn = &p->image->insns[p->at];
	const char *name = walk_op_info(insn->op)->name;

	return error_set(-EINVAL, "instruction %u (%s): %s", p->at,
			 name ? name : "?", words);
}

/* ---- the form of instructions -------------------------------------------- */

static int check_block_form(struct pass *p, const struct walk_insn *insn)
{
	const bool is_sum = insn->op == WALK_OP_SUM;
	struct walk_block k;

	if (p->at + 1 >= p->image->count || insn[1].op != WALK_OP_ARG)
		return refuse(p, "its second slot is missing");
	p->is_second[p->at + 1] = true;
	k = walk_block_get(insn);
	if ((insn->op == WALK_OP_CPY && k.d) || insn->b || insn[1].d ||
	    (is_sum && (k.pad_at || k.pad_reg != WALK_REG_NONE)))
		return refuse(p, "a field that it does not use is not 0");
	if (k.d >= WALK_REGS ||
	    (k.len_reg >= WALK_REGS && k.len_reg != WALK_REG_NONE) ||
	    (k.node_reg >= WALK_REGS && k.node_reg != WALK_REG_NONE) ||
	    (k.pad_reg >= WALK_REGS && k.pad_reg != WALK_REG_NONE))
		return refuse(p, "there are registers r0 to r63 only");
	if (k.len < 1 || k.len > WALK_BLOCK_MAX)
		return refuse(p, "its length is not 1 to 4096");
	return 0;
}

static int check_form(struct pass *p)
{
	const struct walk_insn *insn = &p->image->insns[p->at];
	const uint8_t form = walk_op_info(insn->op)->form;
	uint8_t has;

	if (form == WALK_FORM_NONE)
		return error_set(-EINVAL,
				 "instruction %u: there is no operation %#x; "
				 "the image is of a newer version or damaged",
				 p->at, insn->op);
	if (form == WALK_FORM_ARG)
		return p->is_second[p->at]
			       ? 0
			       : refuse(p, "a second slot stands alone");
	if (form == WALK_FORM_BLOCK)
		return check_block_form(p, insn);
	has = fields[form];
	if ((!(has & HAS_D) && insn->d) || (!(has & HAS_A) && insn->a) ||
	    (!(has & HAS_B) && insn->b) || (!(has & HAS_IMM) && insn->imm))
		return refuse(p, "a field that it does not use is not 0");
	if (insn->d >= WALK_REGS || insn->a >= WALK_REGS ||
	    insn->b >= WALK_REGS)
		return refuse(p, "there are registers r0 to r63 only");
	if (form == WALK_FORM_END_CODE && (insn->imm < 0 || insn->imm > 255))
		return refuse(p, "its code is not 0 to 255");
	return 0;
}

/* ---- forward: ways, registers, windows ------------------------------------
 */

/* What is known after two ways have met. */
static void join(struct state *into, const struct state *from)
{
	if (PLANTED(walk_no_join))
		return;
	into->defined &= from->defined;
	for (unsigned r = 0; r < WALK_REGS; r++)
		into->bound[r] = u64_max(into->bound[r], from->bound[r]);
}

static bool is_jump(uint8_t form)
{
	return form == WALK_FORM_JUMP || form == WALK_FORM_JUMP_IMM ||
	       form == WALK_FORM_JUMP_ALWAYS;
}

static bool is_end(uint8_t form)
{
	return form == WALK_FORM_END || form == WALK_FORM_END_REG ||
	       form == WALK_FORM_END_CODE;
}

static int take_jump(struct pass *p, const struct walk_insn *insn)
{
	const uint32_t distance = walk_jump_distance(insn);
	uint32_t target;

	/* As an unsigned number, a jump back is too far. */
	if (distance < 1 || distance >= p->image->count - p->at)
		return refuse(p, "jumps go forward, to an instruction; unroll "
				 "the loop");
	target = p->at + distance;
	if (p->is_second[target])
		return refuse(p, "jumps into a block instruction");
	if (p->slot[target] == NO_STATE) {
		p->slot[target] = (uint16_t)p->used;
		p->states[p->used++] = p->now;
	} else {
		join(&p->states[p->slot[target]], &p->now);
	}
	return 0;
}

/* `bytes` at offset imm, plus a register's value where there is one. */
static int check_access(const struct pass *p, uint8_t window, uint8_t reg,
			int32_t imm, uint32_t bytes)
{
	const bool is_node = window == WALK_NODE;
	const uint32_t room =
		is_node ? p->image->load_bytes : p->image->pad_bytes;
	const uint64_t bound = reg == WALK_REG_NONE ? 0 : p->now.bound[reg];
	const char *name = walk_op_info(p->image->insns[p->at].op)->name;

	if (imm < 0 || (uint32_t)imm + bytes > room)
		return error_set(-EINVAL,
				 "instruction %u (%s): bytes %d to %" PRId64
				 " are not in the %s, which has %u; make the "
				 "window larger",
				 p->at, name, imm, (int64_t)imm + bytes - 1,
				 is_node ? "node" : "pad", room);
	if (bound > room - bytes - (uint32_t)imm && !PLANTED(walk_no_bound))
		return error_set(-EINVAL,
				 "instruction %u (%s): r%u may be %" PRIu64
				 ", which leads out of the %s of %u bytes; put "
				 "'bnd r%u, %u' before it",
				 p->at, name, reg, bound,
				 is_node ? "node" : "pad", room, reg,
				 room - bytes - (uint32_t)imm);
	return 0;
}

static int check_block(struct pass *p, const struct walk_insn *insn)
{
	const struct walk_block k = walk_block_get(insn);
	int err;

	if (k.len_reg != WALK_REG_NONE && p->now.bound[k.len_reg] > k.len)
		return refuse(p, "its length register may be larger than the "
				 "limit; put a 'bnd' before it");
	err = check_access(p, WALK_NODE, k.node_reg, k.node_at, k.len);
	if (err || insn->op == WALK_OP_SUM)
		return err;
	return check_access(p, WALK_PAD, k.pad_reg, (int32_t)k.pad_at, k.len);
}

static int check_windows(struct pass *p, const struct walk_insn *insn)
{
	const struct walk_op_info *info = walk_op_info(insn->op);
	const bool has_index = info->form == WALK_FORM_LOAD_X ||
			       info->form == WALK_FORM_STORE_X;
	const bool is_load =
		info->form == WALK_FORM_LOAD || info->form == WALK_FORM_LOAD_X;

	if (info->form == WALK_FORM_BLOCK) {
		p->facts.loads++;
		return check_block(p, insn);
	}
	if (info->window == WALK_NO_WINDOW)
		return 0;
	if (info->window == WALK_NODE && is_load)
		p->facts.loads++;
	if (info->window == WALK_NODE && !is_load) {
		p->facts.stores++;
		if (!(p->image->flags & WALK_STORES))
			return refuse(p, "the image does not say that it "
					 "stores; build it with the flag");
	}
	return check_access(p, info->window,
			    has_index ? insn->a : WALK_REG_NONE, insn->imm,
			    info->bytes);
}

/* The instruction's effect on what is known. */
static int visit(struct pass *p)
{
	const struct walk_insn *insn = &p->image->insns[p->at];
	const uint8_t form = walk_op_info(insn->op)->form;
	const uint64_t unknown = walk_insn_reads(insn) & ~p->now.defined;
	const uint64_t writes = walk_insn_writes(insn);
	int err;

	if (unknown)
		return error_set(-EINVAL,
				 "instruction %u (%s): r%d was not written on "
				 "every way here; registers do not last from "
				 "one node to the next",
				 p->at, walk_op_info(insn->op)->name,
				 __builtin_ctzll(unknown));
	err = check_windows(p, insn);
	if (err)
		return err;
	if (form == WALK_FORM_BOUND)
		p->now.bound[insn->a] =
			u64_min(p->now.bound[insn->a], (uint32_t)insn->imm);
	if (writes) {
		p->now.bound[insn->d] = walk_bound_after(insn, p->now.bound);
		p->now.defined |= writes;
	}
	if (is_jump(form)) {
		err = take_jump(p, insn);
		if (err)
			return err;
	}
	p->is_reached = !is_end(form) && form != WALK_FORM_JUMP_ALWAYS;
	return 0;
}

static int forward(struct pass *p)
{
	int err;

	p->is_reached = true;
	for (p->at = 0; p->at < p->image->count; p->at++) {
		const uint16_t slot = p->slot[p->at];

		if (p->is_second[p->at])
			continue;
		if (slot != NO_STATE && p->is_reached)
			join(&p->now, &p->states[slot]);
		else if (slot != NO_STATE)
			p->now = p->states[slot];
		else if (!p->is_reached)
			return refuse(p, "no way leads here; leave it out");
		err = visit(p);
		if (err)
			return err;
	}
	p->at = p->image->count - 1;
	return p->is_reached
		       ? refuse(p, "the program runs off its end; end it with "
				   "next, go, ret or fail")
		       : 0;
}

/* ---- backward: cost -------------------------------------------------------
 */

static void backward(struct pass *p)
{
	for (uint32_t i = p->image->count; i-- > 0;) {
		const struct walk_insn *insn = &p->image->insns[i];
		const uint8_t form = walk_op_info(insn->op)->form;
		uint32_t own = 1, then = 0;

		if (p->is_second[i])
			continue;
		if (form == WALK_FORM_BLOCK) {
			own += walk_block_get(insn).len / COST_BYTES;
			then = p->cost[i + 2];
		} else if (!is_end(form) && form != WALK_FORM_JUMP_ALWAYS) {
			then = p->cost[i + 1];
		}
		if (is_jump(form))
			then = u32_max(then,
				       p->cost[i + walk_jump_distance(insn)]);
		p->cost[i] = own + then;
	}
	p->facts.longest = p->cost[0];
}

static int run_passes(struct pass *p, uint32_t longest_max)
{
	uint32_t jumps = 0;
	int err;

	for (p->at = 0; p->at < p->image->count; p->at++) {
		err = check_form(p);
		if (err)
			return err;
		jumps += is_jump(walk_op_info(p->image->insns[p->at].op)->form);
		p->slot[p->at] = NO_STATE;
	}
	p->states = malloc((jumps + 1) * sizeof(*p->states));
	if (!p->states)
		return error_set(-ENOMEM, "no memory to verify a walk");
	err = forward(p);
	free(p->states);
	if (err)
		return err;
	backward(p);
	if (p->facts.longest > longest_max)
		return error_set(-EINVAL,
				 "the longest path costs %u, more than the "
				 "limit of %u; do less per node",
				 p->facts.longest, longest_max);
	return 0;
}

int walk_verify(const struct walk_image *image, uint32_t longest_max,
		struct walk_facts *facts)
{
	struct pass *p;
	int err = walk_image_check(image);

	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(-ENOMEM, "no memory to verify a walk");
	p->image = image;
	err = run_passes(p, longest_max ? longest_max : WALK_LONGEST_DEFAULT);
	if (!err && facts)
		*facts = p->facts;
	free(p);
	return err;
}
