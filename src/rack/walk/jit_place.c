/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places of registers: one of the processor, or a slot of the stack. A place is
 * chosen when a register is written that had none, and stays until it is busy
 * no more (jit_live.c), so every way to an instruction has it in the same
 * place. Registers that a called function may change are taken first, because
 * they cost nothing to keep.
 */
#include "jit_priv.h"

static const uint8_t order[] = {R8, R9, R10, R11, RBX, RBP, R12, R13, R14, R15};

static int32_t slot_at(uint8_t place)
{
	return (int32_t)(place & (JIT_STACK - 1)) * 8;
}

unsigned jit_source(struct jit *j, uint8_t reg, unsigned spare)
{
	const uint8_t place = j->place[reg];

	ASSERT(place != JIT_NOWHERE);
	if (place < JIT_STACK)
		return place;
	x86_rm(&j->x, X86_64, 0x8b, spare, RSP, X86_NONE, slot_at(place));
	return spare;
}

/* A processor may guess that a load does not meet the store before it, and see
 * what the slot had earlier: no index, perhaps. Few programs have so many. */
unsigned jit_index(struct jit *j, uint8_t reg, unsigned spare)
{
	static const uint8_t lfence[] = {0x0f, 0xae, 0xe8};
	const unsigned r = jit_source(j, reg, spare);

	for (size_t i = 0; j->place[reg] >= JIT_STACK && i < sizeof(lfence);
	     i++)
		x86_byte(&j->x, lfence[i]);
	return r;
}

unsigned jit_dest(struct jit *j, unsigned spare)
{
	return j->dest < JIT_STACK ? j->dest : spare;
}

void jit_keep(struct jit *j, unsigned from)
{
	if (j->dest == JIT_NOWHERE || j->dest < JIT_STACK)
		return;
	x86_rm(&j->x, X86_64, 0x89, from, RSP, X86_NONE, slot_at(j->dest));
}

/* A place that no register of the set has. */
static uint8_t new_place(struct jit *j, uint64_t others)
{
	uint64_t slots = 0;
	uint32_t regs = 0, slot;

	for (; others; others &= others - 1) {
		const uint8_t place = j->place[__builtin_ctzll(others)];

		if (place < JIT_STACK)
			regs |= 1u << place;
		else if (place != JIT_NOWHERE)
			slots |= (uint64_t)1 << (place & (JIT_STACK - 1));
	}
	for (uint32_t i = 0; i < ARRAY_LEN(order); i++) {
		if (!(regs & 1u << order[i])) {
			j->used |= 1u << order[i];
			return order[i];
		}
	}
	slot = (uint32_t)__builtin_ctzll(~slots);
	j->slots = u32_max(j->slots, slot + 1);
	return (uint8_t)(JIT_STACK + slot);
}

void jit_begin_insn(struct jit *j, const struct walk_insn *insn)
{
	const uint64_t writes = walk_insn_writes(insn);
	const uint64_t after = j->plan.busy[j->at + 1];

	j->dest = JIT_NOWHERE;
	if (!(writes & after))
		return;
	j->dest = j->place[insn->d];
	/* It may have the place of an operand that is needed no more. */
	if (j->dest == JIT_NOWHERE)
		j->dest = new_place(j, after & j->plan.busy[j->at]);
}

void jit_end_insn(struct jit *j, const struct walk_insn *insn)
{
	uint64_t gone = j->plan.busy[j->at] & ~j->plan.busy[j->at + 1];

	for (; gone; gone &= gone - 1)
		j->place[__builtin_ctzll(gone)] = JIT_NOWHERE;
	if (j->dest != JIT_NOWHERE)
		j->place[insn->d] = j->dest;
}
