/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier. What it accepts reads and writes only its two windows, reads no
 * register that was not written, and ends after at most `longest` units of
 * cost. It does not trust whoever made the image.
 */
#ifndef AQ_WALK_VERIFY_H
#define AQ_WALK_VERIFY_H

#include "image.h"

enum {
	WALK_LONGEST_DEFAULT = 1024,
};

struct walk_facts {
	uint32_t longest; /* cost of the longest path; see docs/walks.md */
	uint32_t loads;	  /* instructions that read the node */
	uint32_t stores;  /* instructions that change the node */
};

/*
 * -EINVAL and error_last(): "instruction 12: ...". -ENOMEM. `facts` may be
 * NULL; written on success only. longest_max 0: WALK_LONGEST_DEFAULT.
 */
int walk_verify(const struct walk_image *image, uint32_t longest_max,
		struct walk_facts *facts) MUST_CHECK;

#endif
