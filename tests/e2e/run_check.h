/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of the run_* tests do about what must not be: they end with
 * 3 and the line, by no way that needs memory. */
#ifndef RUN_CHECK_H
#define RUN_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define CHECK(cond)                                                           \
	do {                                                                  \
		if (!(cond)) {                                                \
			fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, \
				#cond, errno);                                \
			_exit(3);                                             \
		}                                                             \
	} while (0)

#endif
