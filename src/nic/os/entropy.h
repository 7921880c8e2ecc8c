/* SPDX-License-Identifier: Apache-2.0 */
/* Unpredictable bytes from the kernel, fetched in blocks. */
#ifndef AQ_ENTROPY_H
#define AQ_ENTROPY_H

#include "base/base.h"

enum {
	ENTROPY_POOL_BYTES = 256,
};

/* Zero-initialised; guarded by its owner's lock. */
struct entropy {
	uint8_t pool[ENTROPY_POOL_BYTES];
	size_t left_bytes;
};

void entropy_get(struct entropy *e, void *buf, size_t len_bytes);

#endif
