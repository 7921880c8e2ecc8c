/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the Redis protocol, in two pieces and in one: both read the same.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "redis/resp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct resp_limits limits = {.bulk_max = 1 << 16};
	struct resp_parser whole = {0}, pieces = {0};
	size_t cut, len;
	char *a, *b;
	int ra, rb;

	if (size < 2)
		return 0;
	cut = data[0] * (size - 1) / 255;
	len = size - 1;
	a = malloc(len);
	b = malloc(len);
	if (!a || !b)
		abort();
	memcpy(a, data + 1, len);
	memcpy(b, data + 1, len);
	ra = resp_parse(&whole, a, len, &limits);
	rb = resp_parse(&pieces, b, cut, &limits);
	if (rb == 0)
		rb = resp_parse(&pieces, b, len, &limits);
	if (ra != rb || (ra == 1 && (whole.argc != pieces.argc ||
				     whole.at != pieces.at || whole.at > len)))
		abort();
	for (uint32_t i = 0; ra == 1 && i < whole.argc; i++) {
		struct resp_str s = resp_arg(&whole, a, i);
		struct resp_str t = resp_arg(&pieces, b, i);

		if (s.len != t.len || memcmp(s.p, t.p, s.len) != 0)
			abort();
	}
	resp_parser_release(&whole);
	resp_parser_release(&pieces);
	free(a);
	free(b);
	return 0;
}
