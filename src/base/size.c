/* SPDX-License-Identifier: Apache-2.0 */
/* Writes sizes with the unit that fits. */
#include "size.h"

#include <stdio.h>

struct size_text size_text(uint64_t bytes)
{
	static const char units[] = "BKMGTPE";
	double value = (double)bytes;
	struct size_text out;
	unsigned unit = 0;

	while (value >= 1024 && units[unit + 1]) {
		value /= 1024;
		unit++;
	}
	(void)snprintf(out.text, sizeof(out.text),
		       value < 10 && unit && value != (double)(uint64_t)value
			       ? "%.1f%c"
			       : "%.0f%c",
		       value, units[unit]);
	return out;
}
