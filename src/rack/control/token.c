/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens and their hashes. */
#include "ctl_token.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/error.h"
#include "base/secret.h"

STATIC_ASSERT((int)CTL_TOKEN_CHARS == (int)SECRET_CHARS, "one kind of token");

STATIC_ASSERT(sizeof(struct ctl_token_hash) == crypto_hash_sha256_BYTES,
	      "token hash");

bool ctl_token_is_valid(const char *text)
{
	return secret_is_valid(text);
}

void ctl_token_format(const uint8_t bytes[CTL_TOKEN_BYTES],
		      char text[CTL_TOKEN_TEXT])
{
	sodium_bin2hex(text, CTL_TOKEN_TEXT, bytes, CTL_TOKEN_BYTES);
}

int ctl_token_hash(const char *text, struct ctl_token_hash *out)
{
	if (!ctl_token_is_valid(text))
		return error_set(-EINVAL, "a token has %d hex digits",
				 CTL_TOKEN_CHARS);
	crypto_hash_sha256(out->bytes, (const unsigned char *)text,
			   CTL_TOKEN_CHARS);
	return 0;
}

/* Word by word, because a server compares each caller's with all it knows, and
 * without an early end. */
bool ctl_token_hash_equal(const struct ctl_token_hash *a,
			  const struct ctl_token_hash *b)
{
	uint64_t differs = 0;

	for (unsigned i = 0; i < sizeof(a->bytes); i += sizeof(uint64_t)) {
		uint64_t x, y;

		memcpy(&x, a->bytes + i, sizeof(x));
		memcpy(&y, b->bytes + i, sizeof(y));
		differs |= x ^ y;
	}
	return !differs;
}

void ctl_token_hash_format(const struct ctl_token_hash *h,
			   char text[CTL_TOKEN_TEXT])
{
	sodium_bin2hex(text, CTL_TOKEN_TEXT, h->bytes, sizeof(h->bytes));
}

int ctl_token_hash_parse(const char *text, struct ctl_token_hash *out)
{
	if (!ctl_token_is_valid(text) ||
	    sodium_hex2bin(out->bytes, sizeof(out->bytes), text,
			   CTL_TOKEN_CHARS, NULL, NULL, NULL))
		return error_set(-EINVAL, "a hash has %d hex digits",
				 CTL_TOKEN_CHARS);
	return 0;
}
