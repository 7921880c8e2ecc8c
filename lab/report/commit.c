/* SPDX-License-Identifier: Apache-2.0 */
/* The commit in a file of its own, so that a new one compiles little anew. */
#include "commit.h"
#include "figure.h"

const char *report_commit(void)
{
	return REPORT_COMMIT;
}
