/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of a function, in an order in which every jump goes forward. clang
 * emits jumps backward also where there is no loop, so blocks are laid out
 * again; where that cannot be done there is a loop.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flow.h"

enum mark {
	MARK_START = 1,	 /* of a block */
	MARK_SECOND = 2, /* of two slots */
};

static bool is_jump(const struct bpf_insn *i)
{
	unsigned class = bpf_class(i);

	return (class == BPF_JMP && bpf_op(i) != BPF_CALL) ||
	       class == BPF_JMP32;
}

static bool is_exit(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_EXIT);
}

static bool is_always(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_JA);
}

/* Where it goes, or f->count, which is nowhere. */
static uint32_t target_of(const struct walkc_function *f, uint32_t at)
{
	int64_t to = (int64_t)at + 1 + f->insns[at].off;

	return to < 0 || to >= f->count ? f->count : (uint32_t)to;
}

static int mark_starts(const struct walkc_function *f, uint8_t *marks)
{
	for (uint32_t i = 0; i < f->count; i++) {
		if (!bpf_is_wide(&f->insns[i]))
			continue;
		/* Else it could be taken for a jump at the end of a block. */
		if (i + 1 == f->count || f->insns[i + 1].code)
			return walkc_refuse(f, i, "half an instruction");
		marks[++i] = MARK_SECOND;
	}
	marks[0] |= MARK_START;
	for (uint32_t i = 0; i < f->count; i++) {
		uint32_t to;

		if (marks[i] & MARK_SECOND || !is_jump(&f->insns[i]))
			continue;
		if (i + 1 < f->count)
			marks[i + 1] |= MARK_START;
		if (is_exit(&f->insns[i]))
			continue;
		to = target_of(f, i);
		if (to == f->count || marks[to] & MARK_SECOND)
			return walkc_refuse(f, i, "a jump out of the function");
		marks[to] |= MARK_START;
	}
	return 0;
}

/* What follows a block. A block that only goes to an exit ends itself. */
static int connect(struct walkc_flow *flow, const uint32_t *block_at,
		   struct walkc_block *b)
{
	const struct walkc_function *f = flow->function;
	const struct bpf_insn *last = &f->insns[b->end - 1];

	b->next_count = 0;
	b->is_exit = is_exit(last);
	if (b->is_exit)
		return 0;
	if (is_jump(last))
		b->next[b->next_count++] = block_at[target_of(f, b->end - 1)];
	if (!is_always(last)) {
		if (b->end == f->count)
			return walkc_refuse(f, b->end - 1,
					    "the function does not end");
		b->next[b->next_count++] = block_at[b->end];
	}
	if (b->next_count == 1 &&
	    is_exit(&f->insns[flow->blocks[b->next[0]].first])) {
		b->is_exit = true;
		b->next_count = 0;
	}
	return 0;
}

static int find_blocks(struct walkc_flow *flow, const uint8_t *marks)
{
	const struct walkc_function *f = flow->function;
	uint32_t *block_at = calloc(f->count, sizeof(*block_at));
	int err = 0;

	flow->blocks = calloc(f->count, sizeof(*flow->blocks));
	if (!block_at || !flow->blocks) {
		err = error_set(-ENOMEM, "no memory for %s", f->name);
		goto out;
	}
	for (uint32_t i = 0; i < f->count; i++) {
		if (marks[i] & MARK_START) {
			block_at[i] = flow->block_count;
			flow->blocks[flow->block_count++].first = i;
		}
		flow->blocks[flow->block_count - 1].end = i + 1;
	}
	for (uint32_t i = 0; i < flow->block_count && !err; i++)
		err = connect(flow, block_at, &flow->blocks[i]);
out:
	free(block_at);
	return err;
}

static int refuse_loop(const struct walkc_flow *flow, uint32_t to)
{
	return walkc_refuse(flow->function, flow->blocks[to].first,
			    "a loop that the compiler did not unroll; write it "
			    "as AQ_WALK_EACH(i, count) with a constant count, "
			    "or let each iteration be a node of its own");
}

/*
 * Depth first, without recursion: the order is the reverse of that in which
 * blocks are left. The way that falls through is visited last, so that it comes
 * right behind where it can.
 */
static int sort_blocks(struct walkc_flow *flow)
{
	enum {
		NEW,
		OPEN,
		LEFT
	};
	uint32_t *stack = calloc(flow->block_count, sizeof(*stack));
	uint8_t *state = calloc(flow->block_count, 1);
	uint8_t *tried = calloc(flow->block_count, 1);
	uint32_t depth = 0, place = flow->block_count;
	int err = 0;

	flow->order = calloc(flow->block_count, sizeof(*flow->order));
	if (!stack || !state || !tried || !flow->order) {
		err = error_set(-ENOMEM, "no memory for %s",
				flow->function->name);
		goto out;
	}
	stack[depth++] = 0;
	state[0] = OPEN;
	while (depth && !err) {
		uint32_t at = stack[depth - 1], to;
		const struct walkc_block *b = &flow->blocks[at];

		if (tried[at] == b->next_count) {
			state[at] = LEFT;
			flow->order[--place] = at;
			depth--;
			continue;
		}
		to = b->next[tried[at]++];
		if (state[to] == OPEN) {
			err = refuse_loop(flow, to);
		} else if (state[to] == NEW) {
			state[to] = OPEN;
			stack[depth++] = to;
		}
	}
	flow->order_count = flow->block_count - place;
	memmove(flow->order, flow->order + place,
		flow->order_count * sizeof(*flow->order));
out:
	free(tried);
	free(state);
	free(stack);
	return err;
}

int walkc_flow_open(struct walkc_flow *flow, const struct walkc_function *f)
{
	uint8_t *marks = calloc(f->count, 1);
	int err;

	memset(flow, 0, sizeof(*flow));
	flow->function = f;
	if (!marks)
		return error_set(-ENOMEM, "no memory for %s", f->name);
	err = mark_starts(f, marks);
	if (!err)
		err = find_blocks(flow, marks);
	if (!err)
		err = sort_blocks(flow);
	free(marks);
	if (err)
		walkc_flow_close(flow);
	return err;
}

void walkc_flow_close(struct walkc_flow *flow)
{
	free(flow->blocks);
	free(flow->order);
	memset(flow, 0, sizeof(*flow));
}
