/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a user writes about tiers. */
#include "spec.h"

#include <errno.h>
#include <string.h>

#include "base/config_key.h"
#include "base/error.h"
#include "base/opt.h"
#include "promote.h"

enum {
	WORD_MAX = 64,
	BYTES_MIN = 4096,
};

static int number(const char *what, const char *word, uint64_t max,
		  uint64_t *out)
{
	const struct config_key key = {
		.kind = CONFIG_INT, .min = 0, .max = max};
	int err = config_key_parse(&key, word, out);

	return err ? error_prefix(err, "%s: ", what) : 0;
}

/* Copies text up to `end`, a byte that may stand there, or the end of the text;
 * *rest is behind it, or NULL. */
static int take_word(const char *text, char end, char word[WORD_MAX],
		     const char **rest)
{
	const char *at = strchr(text, end);
	size_t len = at ? (size_t)(at - text) : strlen(text);

	if (len == 0 || len >= WORD_MAX)
		return error_set(-EINVAL,
				 len ? "too long a word" : "a word is missing");
	memcpy(word, text, len);
	word[len] = '\0';
	*rest = at ? at + 1 : NULL;
	return 0;
}

/* "top=2G@0" */
static int parse_node(char *text, struct tier_spec *s)
{
	char *size = strchr(text, '='), *at = strchr(text, '@');
	struct tier_spec_node *n = NULL;
	uint64_t bytes, node;
	int err;

	if (!size || !at || at < size)
		return error_set(-EINVAL, "%s: not TIER=SIZE@NODE", text);
	*size++ = '\0';
	*at++ = '\0';
	for (unsigned t = TIER_TOP; t < TIER_FAR; t++)
		if (strcmp(text, tier_word(t)) == 0)
			n = &s->at[t];
	if (!n)
		return error_set(-EINVAL, "%s: neither top nor slow", text);
	if (n->bytes)
		return error_set(-EINVAL, "%s: twice", text);
	err = opt_size(text, size, &bytes);
	if (!err)
		err = number(text, at, TIER_NODE_MAX, &node);
	if (err)
		return err;
	if (bytes < BYTES_MIN)
		return error_set(-EINVAL, "%s: less than a page", text);
	*n = (struct tier_spec_node){bytes, (uint32_t)node};
	return 0;
}

int tier_spec_parse(const char *text, struct tier_spec *out)
{
	struct tier_spec s = {0};

	while (text) {
		char word[WORD_MAX];
		int err = take_word(text, ',', word, &text);

		if (!err)
			err = parse_node(word, &s);
		if (err)
			return err;
	}
	if (!s.at[TIER_TOP].bytes)
		return error_set(-EINVAL, "top is missing");
	if (s.at[TIER_SLOW].bytes &&
	    s.at[TIER_SLOW].node == s.at[TIER_TOP].node)
		return error_set(-EINVAL,
				 "top and slow are the same NUMA node");
	*out = s;
	return 0;
}

int tier_ratio_parse(const char *text, struct tier_ratio *out)
{
	char word[WORD_MAX];
	uint64_t top, slow;
	const char *rest;
	int err = take_word(text, ':', word, &rest);

	if (!err && !rest)
		err = error_set(-EINVAL, "%s: not N:M, as 3:1", word);
	if (!err)
		err = number("N", word, TIER_WEIGHT_MAX, &top);
	if (!err)
		err = number("M", rest, TIER_WEIGHT_MAX, &slow);
	if (!err && top + slow == 0)
		err = error_set(-EINVAL, "0:0: one of the two is at least 1");
	if (!err)
		*out = (struct tier_ratio){(uint32_t)top, (uint32_t)slow};
	return err;
}

int tier_promote_parse(const char *text, uint64_t *limit_mb)
{
	if (strcmp(text, "on") == 0)
		*limit_mb = TIER_PROMOTE_AUTO;
	else if (strcmp(text, "off") == 0)
		*limit_mb = 0;
	else if (number("MiB a second", text, TIER_LIMIT_MB_MAX, limit_mb))
		return error_prefix(-EINVAL, "on, off or ");
	return 0;
}
