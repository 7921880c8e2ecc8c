/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses what a mistyped word was meant to be. */
#ifndef AQ_NEAR_H
#define AQ_NEAR_H

#include "base.h"

enum {
	NEAR_NOT = 1000, /* not a typo of that name */
};

/* How many typos are between two words: letters that are wrong, missing or too
 * many, or two that have changed places. 0: the beginning of the name, or all
 * of it. NEAR_NOT where more than half of the shorter one would be wrong. */
unsigned near_typos(const char *word, const char *name);

#endif
