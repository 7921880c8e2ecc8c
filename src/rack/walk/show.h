/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions in words: "jlt r1, r2, 14", for listings and messages. */
#ifndef AQ_WALK_SHOW_H
#define AQ_WALK_SHOW_H

#include "image.h"

enum {
	WALK_SHOW_MAX = 160,
};

/*
 * Writes instruction `i` (< count) of an image that need not be verified; jumps
 * name the instruction that they lead to. Returns how many slots it takes: 2
 * for a block instruction, else 1.
 */
uint32_t walk_show(const struct walk_image *image, uint32_t i,
		   char text[WALK_SHOW_MAX]);

#endif
