/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the windows of a walk and hands its code to the assembler, which has
 * it verified. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code.h"
#include "walk/build.h"

struct emit {
	struct walkc_code *code;
	struct walk_build *build;
	int64_t load_lo;
	int *label;	 /* of each block */
	uint32_t *insns; /* which instruction of bpf each slot comes from */
	uint32_t insn_count;
};

/* ---- windows ------------------------------------------------------------ */

/* What is loaded: as stated, the whole struct, or what is used of it. */
static int choose_load(const struct walkc_code *c, int64_t *lo, uint64_t *bytes)
{
	const struct code_window *w = &c->node;
	const struct walkc_function *f = c->flow->function;

	*lo = w->is_whole ? w->allowed.lo : w->is_used ? w->lo : 0;
	*bytes = w->is_whole  ? w->allowed.bytes
		 : w->is_used ? (uint64_t)(w->hi - w->lo)
			      : WALK_LOAD_MIN;
	/* The least that is loaded; upward only if the struct ends there. */
	if (*bytes < WALK_LOAD_MIN && !f->is_window_stated) {
		int64_t end = w->allowed.lo + (int64_t)w->allowed.bytes;

		if (w->allowed.bytes >= WALK_LOAD_MIN &&
		    *lo + WALK_LOAD_MIN > end)
			*lo = end - WALK_LOAD_MIN;
		*bytes = WALK_LOAD_MIN;
	}
	if (*bytes > WALK_LOAD_MAX || *bytes < WALK_LOAD_MIN)
		return walkc_refuse(
			f, 0,
			"a window of %llu bytes of the node, from byte %lld; a "
			"walk loads %d to %d. Move what it uses together, or "
			"state a part with AQ_WALK_WINDOW",
			(unsigned long long)*bytes, (long long)*lo,
			WALK_LOAD_MIN, WALK_LOAD_MAX);
	if (*lo < INT16_MIN || *lo > INT16_MAX)
		return walkc_refuse(f, 0,
				    "a window that begins %lld bytes from the "
				    "pointer; at most 32 KiB are possible",
				    (long long)*lo);
	return 0;
}

static int choose_pad(const struct walkc_code *c, uint64_t *bytes)
{
	const struct code_window *w = &c->pad;

	*bytes = w->is_whole  ? w->allowed.bytes
		 : w->is_used ? (uint64_t)w->hi
			      : 0;
	if (*bytes <= WALK_PAD_MAX)
		return 0;
	return walkc_refuse(c->flow->function, 0,
			    "a pad of %llu bytes; at most %d travel in a "
			    "packet",
			    (unsigned long long)*bytes, WALK_PAD_MAX);
}

/* ---- instructions ------------------------------------------------------- */

/* Remembers where the slots that were added come from. */
static void note(struct emit *e, uint32_t insn)
{
	uint32_t count = walk_build_count(e->build);

	while (e->insn_count < count && e->insn_count < WALK_INSNS_MAX)
		e->insns[e->insn_count++] = insn;
}

static void emit_insn(struct emit *e, const struct code_insn *i)
{
	struct walk_block block = i->block;
	int64_t value = i->value;

	switch (i->kind) {
	case CODE_CONST:
		walk_build_const(e->build, i->d, (uint64_t)i->value);
		break;
	case CODE_BLOCK:
		block.node_at = (int32_t)(block.node_at - e->load_lo);
		walk_build_block(e->build, i->op, &block);
		break;
	case CODE_OP:
		if (walk_op_info(i->op)->window == WALK_NODE)
			value -= e->load_lo;
		walk_build_op(e->build, i->op, i->d, i->a, i->b,
			      (int32_t)value);
		break;
	case CODE_BRANCH:
	case CODE_GONE:
		return;
	}
	note(e, i->insn);
}

/* The opposite of a branch; false: there is none. */
static bool invert(struct code_insn *i)
{
	static const uint8_t pairs[][2] = {
		{WALK_OP_JEQ, WALK_OP_JNE},	{WALK_OP_JEQI, WALK_OP_JNEI},
		{WALK_OP_JLTI, WALK_OP_JGEI},	{WALK_OP_JLEI, WALK_OP_JGTI},
		{WALK_OP_JSLTI, WALK_OP_JSGEI}, {WALK_OP_JSLEI, WALK_OP_JSGTI},
		{WALK_OP_JLT, WALK_OP_JLE},	{WALK_OP_JSLT, WALK_OP_JSLE},
	};

	for (size_t k = 0; k < ARRAY_LEN(pairs); k++) {
		bool is_first = i->op == pairs[k][0];
		uint8_t a = i->a;

		if (!is_first && i->op != pairs[k][1])
			continue;
		i->op = pairs[k][is_first];
		/* Not less than: the other one is less or equal. */
		if (!i->is_imm && i->op != WALK_OP_JEQ &&
		    i->op != WALK_OP_JNE) {
			i->a = i->b;
			i->b = a;
		}
		return true;
	}
	return false;
}

static void emit_branch(struct emit *e, const struct code_insn *i, int label)
{
	if (i->is_imm)
		walk_build_jump_imm(e->build, i->op, i->a, (int16_t)i->value,
				    label);
	else
		walk_build_jump(e->build, i->op, i->a, i->b, label);
	note(e, i->insn);
}

/* Goes to `to`, unless it comes next anyway. */
static void emit_go(struct emit *e, uint32_t to, uint32_t next, uint32_t insn)
{
	if (to == next)
		return;
	walk_build_jump_always(e->build, e->label[to]);
	note(e, insn);
}

/* The end of a block; `next` is the one that is emitted behind it. */
static void emit_end(struct emit *e, uint32_t at, uint32_t next)
{
	struct walkc_code *c = e->code;
	const struct walkc_block *b = &c->flow->blocks[at];
	uint32_t insn = b->end - 1;
	struct code_insn i;

	if (b->is_exit)
		return;
	if (c->is_decided[at] || b->next_count == 1 ||
	    b->next[0] == b->next[1]) {
		emit_go(e, c->is_decided[at] ? c->decided_to[at] : b->next[0],
			next, insn);
		return;
	}
	i = c->insns[c->end[at] - 1];
	ASSERT(i.kind == CODE_BRANCH);
	if (b->next[0] == next && invert(&i)) {
		emit_branch(e, &i, e->label[b->next[1]]);
		return;
	}
	emit_branch(e, &i, e->label[b->next[0]]);
	emit_go(e, b->next[1], next, insn);
}

static void emit_blocks(struct emit *e)
{
	struct walkc_code *c = e->code;
	const struct walkc_flow *flow = c->flow;
	uint32_t none = flow->block_count;

	for (uint32_t k = 0; k < flow->order_count; k++)
		if (c->is_reached[flow->order[k]])
			e->label[flow->order[k]] = walk_build_label(e->build);
	for (uint32_t k = 0; k < flow->order_count; k++) {
		uint32_t at = flow->order[k], after = k + 1;

		if (!c->is_reached[at])
			continue;
		walk_build_place(e->build, e->label[at]);
		for (uint32_t i = c->first[at]; i < c->end[at]; i++)
			emit_insn(e, &c->insns[i]);
		while (after < flow->order_count &&
		       !c->is_reached[flow->order[after]])
			after++;
		emit_end(e, at,
			 after < flow->order_count ? flow->order[after] : none);
	}
}

/* ---- the image ---------------------------------------------------------- */

/* The verifier names an instruction of the walk; people know lines. */
static int explain(const struct emit *e, int err)
{
	const struct walkc_function *f = e->code->flow->function;
	char words[ERROR_TEXT_MAX], named[WALK_NAME_BYTES + 16];
	const char *from = words;
	unsigned at = 0;
	int skip = 0;

	(void)snprintf(words, sizeof(words), "%s", error_last());
	(void)snprintf(named, sizeof(named), "walk '%s': ", f->name);
	if (strncmp(words, named, strlen(named)) == 0)
		from += strlen(named);
	if (err == -ENOMEM)
		return err;
	if (sscanf(from, "instruction %u (%*[^)]): %n", &at, &skip) < 1 ||
	    !skip || at >= e->insn_count)
		return walkc_refuse(f, 0, "%s", from);
	return walkc_refuse(f, e->insns[at], "%s", from + skip);
}

static int finish(const struct emit *e, uint32_t longest_max, void **image,
		  size_t *image_bytes)
{
	struct walk_image out;
	int err = walk_build_end(e->build, longest_max, &out, NULL);

	if (err)
		return explain(e, err);
	*image_bytes = walk_image_bytes(&out);
	*image = malloc(*image_bytes);
	if (!*image)
		return error_set(-ENOMEM, "no memory for an image");
	walk_image_write(&out, *image);
	return 0;
}

int walkc_code_emit(struct walkc_code *c, uint32_t longest_max, void **image,
		    size_t *image_bytes)
{
	const struct walkc_function *f = c->flow->function;
	uint64_t load_bytes, pad_bytes;
	struct emit e = {.code = c};
	int err = choose_load(c, &e.load_lo, &load_bytes);

	if (!err)
		err = choose_pad(c, &pad_bytes);
	if (err)
		return err;
	e.label = calloc(c->flow->block_count, sizeof(*e.label));
	e.insns = calloc(WALK_INSNS_MAX, sizeof(*e.insns));
	e.build = walk_build_create(f->name, (int16_t)e.load_lo,
				    (uint16_t)load_bytes, (uint16_t)pad_bytes,
				    c->has_stores ? WALK_STORES : 0);
	if (e.label && e.insns && e.build) {
		emit_blocks(&e);
		err = finish(&e, longest_max, image, image_bytes);
	} else {
		err = error_set(-ENOMEM, "no memory for %s", f->name);
	}
	walk_build_destroy(e.build);
	free(e.insns);
	free(e.label);
	return err;
}
