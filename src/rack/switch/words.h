/* SPDX-License-Identifier: Apache-2.0 */
/* "key=value" words of a program's options and control calls. Errors have
 * words, which start with the program's name. */
#ifndef AQ_TOR_WORDS_H
#define AQ_TOR_WORDS_H

#include "base/base.h"

enum {
	TOR_WORDS_MAX = 16,
	TOR_WORDS_BYTES = 512,
};

struct tor_words {
	const char *program;
	char text[TOR_WORDS_BYTES];
	unsigned count;
	const char *key[TOR_WORDS_MAX];
	const char *value[TOR_WORDS_MAX];
	bool used[TOR_WORDS_MAX];
};

int tor_words_parse(struct tor_words *p, const char *program,
		    const char *text) MUST_CHECK;
/* NULL: it is not there. "" for a word without a value. */
const char *tor_words_get(struct tor_words *p, const char *key);
/* A number that must be there, at most `max`. */
int tor_words_u64(struct tor_words *p, const char *key, uint64_t max,
		  uint64_t *out) MUST_CHECK;
/* One that may be there: at least 1, else *out stays as it is. */
int tor_words_opt(struct tor_words *p, const char *key, uint64_t max,
		  uint64_t *out) MUST_CHECK;
int tor_words_ip(struct tor_words *p, const char *key,
		 uint8_t ip[16]) MUST_CHECK;
/* -EINVAL when there is a word that nobody asked for. */
int tor_words_end(const struct tor_words *p) MUST_CHECK;
/* The place of a name in a list; -EINVAL. */
int tor_words_pick(struct tor_words *p, const char *key,
		   const char *const *names, unsigned count,
		   unsigned *out) MUST_CHECK;

#endif
