/* SPDX-License-Identifier: Apache-2.0 */
/* Counts typos: the optimal string alignment distance. */
#include "near.h"

#include <string.h>

enum {
	LETTERS_MAX = 32,
	TYPOS_MAX = 3,
};

/* Of two words of up to LETTERS_MAX letters. */
static unsigned distance(const char *a, size_t alen, const char *b, size_t blen)
{
	unsigned d[LETTERS_MAX + 1][LETTERS_MAX + 1];

	for (unsigned i = 0; i <= alen; i++)
		d[i][0] = i;
	for (unsigned j = 0; j <= blen; j++)
		d[0][j] = j;
	for (unsigned i = 1; i <= alen; i++) {
		for (unsigned j = 1; j <= blen; j++) {
			unsigned best = u32_min(d[i - 1][j], d[i][j - 1]) + 1;

			best = u32_min(best, d[i - 1][j - 1] +
						     (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				best = u32_min(best, d[i - 2][j - 2] + 1);
			d[i][j] = best;
		}
	}
	return d[alen][blen];
}

unsigned near_typos(const char *word, const char *name)
{
	size_t len = strlen(word), name_len = strlen(name);
	unsigned typos;

	if (len == 0 || len > LETTERS_MAX || name_len > LETTERS_MAX)
		return NEAR_NOT;
	if (strncmp(name, word, len) == 0)
		return 0;
	typos = distance(word, len, name, name_len);
	if (typos > TYPOS_MAX || typos * 2 > (len < name_len ? len : name_len))
		return NEAR_NOT;
	return typos;
}
