/* SPDX-License-Identifier: Apache-2.0 */
/* The listing. */
#include "show.h"

#include <stdio.h>
#include <string.h>

#include "op.h"

static const char *window_name(uint8_t window)
{
	return window == WALK_NODE ? "node" : "pad";
}

/* "[r3 + 16]", "[16]" */
static void put_place(char *out, size_t room, uint8_t reg, int64_t at)
{
	if (reg == WALK_REG_NONE)
		(void)snprintf(out, room, "[%lld]", (long long)at);
	else
		(void)snprintf(out, room, "[r%u + %lld]", reg, (long long)at);
}

static void show_block(const struct walk_insn *insn, const char *name,
		       char *text)
{
	const struct walk_block k = walk_block_get(insn);
	char node[40], pad[40], len[40];

	put_place(node, sizeof(node), k.node_reg, k.node_at);
	put_place(pad, sizeof(pad), k.pad_reg, k.pad_at);
	if (k.len_reg == WALK_REG_NONE)
		(void)snprintf(len, sizeof(len), "%u", k.len);
	else
		(void)snprintf(len, sizeof(len), "r%u (<= %u)", k.len_reg,
			       k.len);
	if (insn->op == WALK_OP_CPY)
		(void)snprintf(text, WALK_SHOW_MAX, "%s pad%s, node%s, %s",
			       name, pad, node, len);
	else if (insn->op == WALK_OP_CMP)
		(void)snprintf(text, WALK_SHOW_MAX, "%s r%u, pad%s, node%s, %s",
			       name, k.d, pad, node, len);
	else
		(void)snprintf(text, WALK_SHOW_MAX, "%s r%u, node%s, %s", name,
			       k.d, node, len);
}

/* All forms but BLOCK. snprintf cuts what is too long, which cannot be. */
static void show_one(const struct walk_insn *n, uint32_t target, char *text)
{
	const struct walk_op_info *info = walk_op_info(n->op);
	const char *name = info->name, *window = window_name(info->window);
	const size_t room = WALK_SHOW_MAX;

#define SHOW(...) ((void)snprintf(text, room, __VA_ARGS__))
	switch ((enum walk_form)info->form) {
	case WALK_FORM_LOAD:
		SHOW("%s r%u, %s[%d]", name, n->d, window, n->imm);
		break;
	case WALK_FORM_LOAD_X:
		SHOW("%s r%u, %s[r%u + %d]", name, n->d, window, n->a, n->imm);
		break;
	case WALK_FORM_STORE:
		SHOW("%s %s[%d], r%u", name, window, n->imm, n->a);
		break;
	case WALK_FORM_STORE_X:
		SHOW("%s %s[r%u + %d], r%u", name, window, n->a, n->imm, n->b);
		break;
	case WALK_FORM_CAS:
		SHOW("%s r%u, node[%d], r%u, r%u", name, n->d, n->imm, n->a,
		     n->b);
		break;
	case WALK_FORM_FAA:
		SHOW("%s r%u, node[%d], r%u", name, n->d, n->imm, n->a);
		break;
	case WALK_FORM_CONST:
	case WALK_FORM_CONST_HIGH:
		SHOW("%s r%u, %d", name, n->d, n->imm);
		break;
	case WALK_FORM_ALU:
		SHOW("%s r%u, r%u, r%u", name, n->d, n->a, n->b);
		break;
	case WALK_FORM_ALU_IMM:
		SHOW("%s r%u, r%u, %d", name, n->d, n->a, n->imm);
		break;
	case WALK_FORM_UNARY:
		SHOW("%s r%u, r%u", name, n->d, n->a);
		break;
	case WALK_FORM_BOUND:
		SHOW("%s r%u, %u", name, n->a, (uint32_t)n->imm);
		break;
	case WALK_FORM_JUMP:
		SHOW("%s r%u, r%u, %u", name, n->a, n->b, target);
		break;
	case WALK_FORM_JUMP_IMM:
		SHOW("%s r%u, %d, %u", name, n->a, walk_jump_const(n), target);
		break;
	case WALK_FORM_JUMP_ALWAYS:
		SHOW("%s %u", name, target);
		break;
	case WALK_FORM_END_REG:
		SHOW("%s r%u", name, n->a);
		break;
	case WALK_FORM_END_CODE:
		SHOW("%s %d", name, n->imm);
		break;
	case WALK_FORM_END:
	case WALK_FORM_ARG:
		SHOW("%s", name);
		break;
	case WALK_FORM_BLOCK: /* one whose second slot is missing */
	case WALK_FORM_NONE:
		SHOW("? %02x %02x %02x %02x %08x", n->op, n->d, n->a, n->b,
		     (uint32_t)n->imm);
		break;
	}
#undef SHOW
}

uint32_t walk_show(const struct walk_image *image, uint32_t i,
		   char text[WALK_SHOW_MAX])
{
	const struct walk_insn *insn = &image->insns[i];
	const struct walk_op_info *info = walk_op_info(insn->op);

	if (info->form == WALK_FORM_BLOCK && i + 1 < image->count &&
	    insn[1].op == WALK_OP_ARG) {
		show_block(insn, info->name, text);
		return 2;
	}
	show_one(insn, i + walk_jump_distance(insn), text);
	return 1;
}
