/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional jumps. */
#ifndef AQ_WALKC_BRANCH_H
#define AQ_WALKC_BRANCH_H

#include "access.h"

enum walkc_way {
	WAY_BOTH,
	WAY_JUMP,    /* it always jumps */
	WAY_THROUGH, /* it never does */
};

/* The conditional jump at m->code->at; no code where only one way is open. */
int walkc_branch(struct walkc_maker *m, enum walkc_way *way) MUST_CHECK;

#endif
