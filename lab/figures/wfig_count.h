/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what iterations of a walk execute: a copy of its image in which every
 * straight piece of code first adds its cost to 8 bytes behind the pad. So the
 * shipped executor runs it, and the pad before those bytes comes out the same.
 */
#ifndef AQ_FIGURES_WFIG_COUNT_H
#define AQ_FIGURES_WFIG_COUNT_H

#include "walk/program.h"

enum {
	WFIG_COUNT_BYTES = 8, /* behind the image's own pad */
};

/* -ENOMEM; -EINVAL with words: the copy is larger than images may be. */
int wfig_count_open(const struct walk_image *image,
		    struct walk_program **out) MUST_CHECK;

/* One iteration; adds its units of cost to *cost. */
enum walk_step wfig_count_step(const struct walk_program *counted,
			       uint8_t *node, uint8_t *pad, uint64_t *next,
			       uint64_t *cost);

#endif
