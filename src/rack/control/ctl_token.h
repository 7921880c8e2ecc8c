/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bearer tokens: 32 random bytes, written as 64 hex digits. A node keeps only
 * their SHA-256. The token itself has 256 bits of entropy, so a plain hash is
 * enough: there is nothing to guess.
 */
#ifndef AQ_CTL_TOKEN_H
#define AQ_CTL_TOKEN_H

#include "base/base.h"

enum {
	CTL_TOKEN_BYTES = 32,
	CTL_TOKEN_CHARS = 2 * CTL_TOKEN_BYTES,
	CTL_TOKEN_TEXT = CTL_TOKEN_CHARS + 1, /* with the NUL */
};

struct ctl_token_hash {
	uint8_t bytes[32];
};

/* 64 lower-case hex digits. */
bool ctl_token_is_valid(const char *text);
void ctl_token_format(const uint8_t bytes[CTL_TOKEN_BYTES],
		      char text[CTL_TOKEN_TEXT]);
/* -EINVAL: not a token. */
int ctl_token_hash(const char *text, struct ctl_token_hash *out) MUST_CHECK;
/* Takes the same time wherever they differ. */
bool ctl_token_hash_equal(const struct ctl_token_hash *a,
			  const struct ctl_token_hash *b);
void ctl_token_hash_format(const struct ctl_token_hash *h,
			   char text[CTL_TOKEN_TEXT]);
int ctl_token_hash_parse(const char *text,
			 struct ctl_token_hash *out) MUST_CHECK;

/*
 * The token in <dir>/<name>, which is made (mode 0600, from the kernel's random
 * numbers) when there is none. The file appears complete or not at all, and a
 * second process reads what the first one made. error_last() has the words;
 * -EPERM: others may read the file.
 */
int ctl_token_file(const char *dir, const char *name,
		   char text[CTL_TOKEN_TEXT]) MUST_CHECK;

#endif
