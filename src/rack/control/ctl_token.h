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

#endif
