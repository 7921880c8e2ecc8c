/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which registers of the walk must be kept where. Jumps go forward only, so one
 * pass from the end finds what every instruction needs. A register that is
 * needed at the target of a jump keeps its place over all that is jumped over.
 */
#include "jit_priv.h"

#include "op.h"
#include "walk_priv.h"

static bool falls_through(uint8_t form)
{
	return form != WALK_FORM_JUMP_ALWAYS && form != WALK_FORM_END &&
	       form != WALK_FORM_END_REG && form != WALK_FORM_END_CODE;
}

/* live[i]: registers whose values instruction i or a later one reads. */
static void find_live(const struct walk_image *image, uint64_t *live)
{
	live[image->count] = 0;
	for (uint32_t i = image->count; i-- > 0;) {
		const struct walk_insn *insn = &image->insns[i];
		const uint8_t form = walk_op_info(insn->op)->form;
		const uint32_t distance = walk_jump_distance(insn);
		uint64_t out = 0;

		if (form == WALK_FORM_ARG) {
			live[i] = live[i + 1];
			continue;
		}
		if (falls_through(form))
			out |= live[i + 1];
		if (distance)
			out |= live[i + distance];
		live[i] =
			walk_insn_reads(insn) | (out & ~walk_insn_writes(insn));
	}
}

void jit_find_busy(const struct walk_image *image, struct jit_plan *plan)
{
	uint32_t *first = plan->first;

	find_live(image, plan->live);
	for (uint32_t i = 0; i <= image->count; i++) {
		plan->busy[i] = plan->live[i];
		first[i] = UINT32_MAX;
	}
	for (uint32_t i = 0; i < image->count; i++) {
		const uint32_t distance = walk_jump_distance(&image->insns[i]);

		if (distance && first[i + distance] == UINT32_MAX)
			first[i + distance] = i;
	}
	for (uint32_t j = 0; j < image->count; j++) {
		if (first[j] == UINT32_MAX)
			continue;
		for (uint32_t k = first[j] + 1; k < j; k++)
			plan->busy[k] |= plan->live[j];
	}
}
