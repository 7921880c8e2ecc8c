/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of memcpy, memset and memcmp; there are no others. */
#ifndef AQ_WALKC_MEMORY_CALL_H
#define AQ_WALKC_MEMORY_CALL_H

#include "access.h"

/* The call at m->code->at. */
int walkc_memory_call(struct walkc_maker *m) MUST_CHECK;

#endif
