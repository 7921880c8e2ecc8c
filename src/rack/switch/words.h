/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "key=value" words of a program's options and control calls. The first error
 * is kept, and tor_words_end returns it, so callers need not check in between.
 * Errors have words, which start with the program's name.
 */
#ifndef AQ_TOR_WORDS_H
#define AQ_TOR_WORDS_H

#include "base/base.h"

enum {
	TOR_WORDS_MAX = 16,
	TOR_WORDS_BYTES = 512,
};

struct tor_words {
	const char *program;
	int err;
	char text[TOR_WORDS_BYTES];
	unsigned count;
	const char *key[TOR_WORDS_MAX];
	const char *value[TOR_WORDS_MAX];
	bool used[TOR_WORDS_MAX];
};

void tor_words_parse(struct tor_words *p, const char *program,
		     const char *text);
/* NULL: it is not there. "" for a word without a value. */
const char *tor_words_get(struct tor_words *p, const char *key);
/* A number that must be there, at most `max`. */
uint64_t tor_words_u64(struct tor_words *p, const char *key, uint64_t max);
uint32_t tor_words_u32(struct tor_words *p, const char *key, uint32_t max);
/* An optional number, at least 1; `fallback` if it is missing. */
uint64_t tor_words_opt(struct tor_words *p, const char *key, uint64_t max,
		       uint64_t fallback);
void tor_words_ip(struct tor_words *p, const char *key, uint8_t ip[16]);
/* The place of a name in a list; the first when the word is not there. */
unsigned tor_words_pick(struct tor_words *p, const char *key,
			const char *const *names, unsigned count);
/* 0 or the first error; a word that was not asked for is an error. */
int tor_words_end(struct tor_words *p) MUST_CHECK;

#endif
