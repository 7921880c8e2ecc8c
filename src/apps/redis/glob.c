/* SPDX-License-Identifier: Apache-2.0 */
/* Matching with one place to come back to, the last star, so that no pattern
 * takes exponential time. */
#include "glob.h"

#include <ctype.h>

static int fold(char c, bool ignore_case)
{
	return ignore_case ? tolower((unsigned char)c) : (unsigned char)c;
}

/* The set that starts behind '['; *at moves behind its ']'. A set that is not
 * closed ends with the pattern. */
static bool in_set(struct resp_str p, size_t *at, int c, bool ignore_case)
{
	bool negate = *at < p.len && p.p[*at] == '^';
	bool found = false;

	*at += negate;
	while (*at < p.len && p.p[*at] != ']') {
		int low, high;

		if (p.p[*at] == '\\' && *at + 1 < p.len)
			(*at)++;
		low = high = fold(p.p[*at], ignore_case);
		if (*at + 2 < p.len && p.p[*at + 1] == '-') {
			high = fold(p.p[*at + 2], ignore_case);
			*at += 2;
		}
		if (low > high) {
			int swap = low;

			low = high;
			high = swap;
		}
		found |= c >= low && c <= high;
		(*at)++;
	}
	if (*at < p.len)
		(*at)++;
	return found != negate;
}

/* One element of the pattern other than a star against one byte. */
static bool match_one(struct resp_str p, size_t *at, char byte,
		      bool ignore_case)
{
	int c = fold(byte, ignore_case);
	char element = p.p[(*at)++];

	if (element == '?')
		return true;
	if (element == '[')
		return in_set(p, at, c, ignore_case);
	if (element == '\\' && *at < p.len)
		element = p.p[(*at)++];
	return fold(element, ignore_case) == c;
}

bool glob_match(struct resp_str p, struct resp_str t, bool ignore_case)
{
	size_t at = 0, i = 0;
	size_t star_at = SIZE_MAX, star_i = 0;

	while (i < t.len) {
		size_t next = at;

		if (at < p.len && p.p[at] == '*') {
			star_at = ++at;
			star_i = i;
		} else if (at < p.len &&
			   match_one(p, &next, t.p[i], ignore_case)) {
			at = next;
			i++;
		} else if (star_at != SIZE_MAX) {
			/* The star takes one byte more. */
			at = star_at;
			i = ++star_i;
		} else {
			return false;
		}
	}
	while (at < p.len && p.p[at] == '*')
		at++;
	return at == p.len;
}
