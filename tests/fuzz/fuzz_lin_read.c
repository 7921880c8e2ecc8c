/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a history's lines: read, check with a small limit, write. */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "sim/lin_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	const struct lin_limits limits = {.steps = 2000, .cache_bytes = 65536};
	const char *text = (const char *)data;
	struct lin_history *h;
	struct lin_reader *r;
	struct lin_result res;
	FILE *out;
	unsigned lines = 0, refused = 0;

	if (lin_history_create(&h))
		return 0;
	if (lin_reader_create(h, &r)) {
		lin_history_destroy(h);
		return 0;
	}
	while (len_bytes) {
		const char *end = memchr(text, '\n', len_bytes);
		size_t n = end ? (size_t)(end - text) + 1 : len_bytes;

		/* A bad line is refused; what came before stays good. */
		refused += lin_reader_line(r, text, n) != 0;
		text += n;
		lines++;
		len_bytes -= n;
	}
	lin_reader_destroy(r);
	ASSERT(lin_history_op_count(h) <= lines - refused);
	if (!lin_check(h, LIN_MODEL_KV, &limits, &res) &&
	    res.verdict == LIN_VIOLATED)
		ASSERT(res.op >= 0 && res.text[0]);
	out = fopen("/dev/null", "w");
	if (out) {
		ASSERT(!lin_history_write(h, out));
		lin_show_key(h, res.key, res.op, 10, out);
		(void)fclose(out); /* nobody reads it */
	}
	lin_history_destroy(h);
	return 0;
}
