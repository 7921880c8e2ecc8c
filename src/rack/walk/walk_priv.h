/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room tell each other and nobody else. */
#ifndef AQ_WALK_PRIV_H
#define AQ_WALK_PRIV_H

#include "program.h"

/* Registers as a set: bit n is register n. */
uint64_t walk_insn_reads(const struct walk_insn *insn);
uint64_t walk_insn_writes(const struct walk_insn *insn);

/* The largest value that register d can have after `insn`, if `bound` has those
 * of all registers before it; for instructions that write a register. */
uint64_t walk_bound_after(const struct walk_insn *insn, const uint64_t bound[]);

/* The interpreter. */
struct walk_end walk_exec(const struct walk_program *program, uint8_t *node,
			  uint8_t *pad);

/* What interpreter and translated code both call. `len` is at most the limit
 * that the verifier knows. */
void walk_do_cpy(const uint8_t *node, uint8_t *pad, uint64_t len);
uint64_t walk_do_cmp(const uint8_t *node, const uint8_t *pad, uint64_t len);
uint64_t walk_do_sum(const uint8_t *node, const uint8_t *pad, uint64_t len);

/*
 * `at` if it is at most `last`, else 0, without a branch: a processor that
 * guesses past the check of an index must not read with a wrong one.
 */
static ALWAYS_INLINE uint64_t walk_clamp(uint64_t at, uint64_t last)
{
	uint64_t beyond;

#if defined(__x86_64__)
	__asm__("cmp %[at], %[last]\n\tsbb %[beyond], %[beyond]"
		: [beyond] "=r"(beyond)
		: [at] "r"(at), [last] "r"(last)
		: "cc");
#else
	beyond = 0 - (uint64_t)(at > last);
	/* The compiler must not make a branch of what it knows. */
	__asm__("" : "+r"(beyond));
#endif
	return at & ~beyond;
}

/* Translated code; pages that can be executed and not written. */
struct walk_code {
	void *pages;
	size_t bytes;
};

/* -EOPNOTSUPP on other processors; else why the system gave no such pages, with
 * error_last(). */
int walk_jit_make(const struct walk_image *image,
		  struct walk_code *code) MUST_CHECK;
void walk_jit_free(struct walk_code *code);

#endif
