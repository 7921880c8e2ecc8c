/* SPDX-License-Identifier: Apache-2.0 */
/* Strict numbers. */
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FLOAT_DIGITS = 17, /* behind the point, as Redis prints */
	FLOAT_INPUT_MAX = 256,
};

bool number_parse(const char *text, size_t len, int64_t *out)
{
	bool negative = len > 1 && text[0] == '-';
	uint64_t limit = (uint64_t)INT64_MAX + negative;
	uint64_t v = 0;
	size_t i = negative;

	if (i >= len || len > 20)
		return false;
	if (text[i] == '0' && len > 1)
		return false;
	for (; i < len; i++) {
		unsigned digit = (unsigned)(text[i] - '0');

		if (digit > 9 || v > (limit - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*out = negative ? (int64_t)(~v + 1) : (int64_t)v;
	return true;
}

size_t number_format(int64_t n, char *out)
{
	uint64_t v = n < 0 ? ~(uint64_t)n + 1 : (uint64_t)n;
	char text[NUMBER_TEXT_MAX];
	size_t at = sizeof(text), len;

	text[--at] = 0;
	do
		text[--at] = (char)('0' + v % 10);
	while (v /= 10);
	if (n < 0)
		text[--at] = '-';
	len = sizeof(text) - at;
	memcpy(out, text + at, len);
	return len - 1;
}

bool number_parse_float(const char *text, size_t len, long double *out)
{
	char copy[FLOAT_INPUT_MAX];
	char *end;
	long double v;

	if (len == 0 || len >= sizeof(copy) || isspace((unsigned char)text[0]))
		return false;
	memcpy(copy, text, len);
	copy[len] = 0;
	errno = 0;
	v = strtold(copy, &end);
	if (end != copy + len || isnan(v) || (errno == ERANGE && isinf(v)))
		return false;
	*out = v;
	return true;
}

size_t number_format_float(long double v, char out[NUMBER_FLOAT_TEXT_MAX])
{
	size_t len = (size_t)snprintf(out, NUMBER_FLOAT_TEXT_MAX, "%.*Lf",
				      FLOAT_DIGITS, v);

	while (len && out[len - 1] == '0')
		len--;
	if (len && out[len - 1] == '.')
		len--;
	if (len == 2 && out[0] == '-' && out[1] == '0') {
		out[0] = '0';
		len = 1;
	}
	out[len] = 0;
	return len;
}
