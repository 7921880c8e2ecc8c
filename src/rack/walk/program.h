/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program: a verified image, ready to run, translated to x86-64 where that is
 * allowed and possible. It does not change once it is open, so that threads may
 * share it.
 */
#ifndef AQ_WALK_PROGRAM_H
#define AQ_WALK_PROGRAM_H

#include "image.h"
#include "verify.h"

struct walk_options {
	bool interpret;	      /* do not translate */
	uint32_t longest_max; /* 0: WALK_LONGEST_DEFAULT */
};

enum walk_step {
	WALK_STEP_NEXT,	 /* go on at the pointer */
	WALK_STEP_DONE,	 /* the pad has the result */
	WALK_STEP_FAIL,	 /* the program gave up, with a code */
	WALK_STEP_FAULT, /* BND, or an atomic on a word that is not aligned */
};

/* How an iteration ended; two registers of the processor. */
struct walk_end {
	uint64_t next; /* pointer, code, or 0 */
	uint64_t step; /* enum walk_step */
};

struct walk_program;
typedef struct walk_end (*walk_run_fn)(const struct walk_program *program,
				       uint8_t *node, uint8_t *pad);

/* The part that callers may see, so that an iteration is one call. */
struct walk_program {
	walk_run_fn run;
	struct walk_image image; /* of its own */
	struct walk_facts facts;
};

/* Copies the image and verifies it; `options` may be NULL. -EINVAL, -ENOMEM. */
int walk_program_open(const struct walk_image *image,
		      const struct walk_options *options,
		      struct walk_program **out) MUST_CHECK;
void walk_program_close(struct walk_program *program); /* NULL: nothing */

static inline const struct walk_image *walk_program_image(
	const struct walk_program *program)
{
	return &program->image;
}

/* "translated", or why not: "interpreted: the system refuses ...". As long as
 * the program. */
const char *walk_program_how(const struct walk_program *program);
bool walk_program_is_translated(const struct walk_program *program);

/*
 * One iteration. node: load_bytes of the node, readable (and writable, where
 * the image has WALK_STORES); pad: pad_bytes. *next: the pointer of NEXT, the
 * code of FAIL, else 0. Others may change the node meanwhile; every load is one
 * load where it is aligned.
 */
static inline enum walk_step walk_program_step(
	const struct walk_program *program, uint8_t *node, uint8_t *pad,
	uint64_t *next)
{
	struct walk_end end = program->run(program, node, pad);

	*next = end.next;
	return (enum walk_step)end.step;
}

#endif
