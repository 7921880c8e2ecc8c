/* SPDX-License-Identifier: Apache-2.0 */
/* The trace reader on any file: what it takes is a workload that can be run,
 * and what it refuses has a line number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "edm/edm_workload.h"
#include "fuzz.h"

enum {
	NODES = 16,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	struct edm_arrival *a = NULL;
	uint64_t count = 0, last_ps = 0;
	FILE *f;
	int rc;

	if (!len_bytes)
		return 0; /* fmemopen refuses that */
	f = fmemopen((void *)(uintptr_t)data, len_bytes, "r");
	ASSERT(f);
	rc = edm_trace_parse(f, "input", NODES, &a, &count);
	(void)fclose(f); /* only read from */
	if (rc) {
		ASSERT(!a);
		ASSERT(!strncmp(error_last(), "input:", 6));
		return 0;
	}
	ASSERT(count);
	for (uint64_t i = 0; i < count; i++) {
		ASSERT(a[i].src < NODES && a[i].dst < NODES);
		ASSERT(a[i].src != a[i].dst);
		ASSERT(a[i].bytes >= 1 && a[i].bytes <= 16u << 20);
		ASSERT(a[i].at_ps >= last_ps);
		ASSERT(a[i].op == EDM_WRITE || a[i].op == EDM_READ);
		last_ps = a[i].at_ps;
	}
	free(a);
	return 0;
}
