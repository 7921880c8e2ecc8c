/* SPDX-License-Identifier: Apache-2.0 */
/* What happens when one of our own invariants does not hold. */
#include <stdio.h>
#include <stdlib.h>

#include "base.h"

void base_assert_fail(const char *cond, const char *file, int line)
{
	fprintf(stderr, "aquifer: bug: %s:%d: %s does not hold\n", file, line,
		cond);
	abort();
}
