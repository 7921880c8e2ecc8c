/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of instructions. */
#include "code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROOM_FIRST = 256,
};

int walkc_code_open(struct walkc_code *c, const struct walkc_flow *flow)
{
	size_t n = flow->block_count;

	memset(c, 0, sizeof(*c));
	c->flow = flow;
	c->first = calloc(n, sizeof(*c->first));
	c->end = calloc(n, sizeof(*c->end));
	c->is_reached = calloc(n, sizeof(*c->is_reached));
	c->is_decided = calloc(n, sizeof(*c->is_decided));
	c->decided_to = calloc(n, sizeof(*c->decided_to));
	c->node.allowed = flow->function->node;
	c->node.is_whole = flow->function->is_window_stated;
	c->pad.allowed = flow->function->pad;
	c->pad.is_whole = c->pad.allowed.bytes != 0;
	if (c->first && c->end && c->is_reached && c->is_decided &&
	    c->decided_to)
		return 0;
	walkc_code_close(c);
	return error_set(-ENOMEM, "no memory for %s", flow->function->name);
}

void walkc_code_close(struct walkc_code *c)
{
	free(c->insns);
	free(c->first);
	free(c->end);
	free(c->is_reached);
	free(c->is_decided);
	free(c->decided_to);
	memset(c, 0, sizeof(*c));
}

static void add(struct walkc_code *c, struct code_insn insn)
{
	if (c->count == c->room && !c->failed) {
		uint32_t room = c->room ? 2 * c->room : ROOM_FIRST;
		struct code_insn *more =
			reallocarray(c->insns, room, sizeof(*more));

		c->failed = !more;
		if (more) {
			c->insns = more;
			c->room = room;
		}
	}
	if (c->failed)
		return;
	insn.insn = c->at;
	c->insns[c->count++] = insn;
}

void code_op(struct walkc_code *c, uint8_t op, unsigned d, unsigned a,
	     unsigned b, int64_t value)
{
	add(c, (struct code_insn){.kind = CODE_OP,
				  .op = op,
				  .d = (uint8_t)d,
				  .a = (uint8_t)a,
				  .b = (uint8_t)b,
				  .value = value});
}

void code_const(struct walkc_code *c, unsigned d, uint64_t value)
{
	add(c, (struct code_insn){.kind = CODE_CONST,
				  .op = WALK_OP_LDI,
				  .d = (uint8_t)d,
				  .value = (int64_t)value});
}

void code_block(struct walkc_code *c, uint8_t op,
		const struct walk_block *block)
{
	add(c, (struct code_insn){.kind = CODE_BLOCK,
				  .op = op,
				  .d = block->d,
				  .block = *block});
}

void code_branch(struct walkc_code *c, uint8_t op, unsigned a, unsigned b,
		 bool is_imm, int64_t value)
{
	add(c, (struct code_insn){.kind = CODE_BRANCH,
				  .op = op,
				  .a = (uint8_t)a,
				  .b = (uint8_t)b,
				  .is_imm = is_imm,
				  .value = value});
}
