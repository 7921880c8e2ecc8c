/* SPDX-License-Identifier: Apache-2.0 */
/* A pool in front of getrandom(2): keys and packet numbers are small. */
#include "entropy.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

static void fetch(uint8_t *buf, size_t len_bytes)
{
	while (len_bytes) {
		ssize_t n = getrandom(buf, len_bytes, 0);

		if (n < 0) {
			/* Every kernel this builds for has the call. */
			ASSERT(errno == EINTR);
			continue;
		}
		buf += n;
		len_bytes -= (size_t)n;
	}
}

void entropy_get(struct entropy *e, void *buf, size_t len_bytes)
{
	uint8_t *from;

	if (len_bytes > ENTROPY_POOL_BYTES) {
		fetch(buf, len_bytes);
		return;
	}
	if (e->left_bytes < len_bytes) {
		fetch(e->pool, sizeof(e->pool));
		e->left_bytes = sizeof(e->pool);
	}
	e->left_bytes -= len_bytes;
	from = e->pool + e->left_bytes;
	memcpy(buf, from, len_bytes);
	/* What was given out is a secret of its receiver. */
	explicit_bzero(from, len_bytes);
}
