/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and numbers as the kernel writes them. */
#include "sysfs.h"

#include <errno.h>
#include <string.h>

/* Digits up to `max`; NULL: there are none, or too many. */
static const char *take_number(const char *at, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	if (*at < '0' || *at > '9')
		return NULL;
	for (; *at >= '0' && *at <= '9'; at++) {
		uint64_t digit = (uint64_t)(*at - '0');

		if (v > (max - digit) / 10 || digit > max)
			return NULL;
		v = v * 10 + digit;
	}
	*out = v;
	return at;
}

static bool is_end(const char *at)
{
	return *at == '\0' || strcmp(at, "\n") == 0;
}

uint32_t tier_set_count(const struct tier_set *s)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < ARRAY_LEN(s->word); i++)
		count += (uint32_t)__builtin_popcountll(s->word[i]);
	return count;
}

int tier_sysfs_list(const char *text, struct tier_set *out)
{
	struct tier_set s = {{0}};
	const char *at = text;

	while (!is_end(at)) {
		uint64_t from, to;

		at = take_number(at, TIER_NODE_MAX, &from);
		if (!at)
			return -EBADMSG;
		to = from;
		if (*at == '-')
			at = take_number(at + 1, TIER_NODE_MAX, &to);
		if (!at || to < from)
			return -EBADMSG;
		for (; from <= to; from++)
			s.word[from / 64] |= 1ull << from % 64;
		if (*at != ',')
			break;
		at++;
		if (is_end(at))
			return -EBADMSG;
	}
	if (!is_end(at))
		return -EBADMSG;
	*out = s;
	return 0;
}

int tier_sysfs_number(const char *text, uint64_t max, uint64_t *out)
{
	uint64_t v;
	const char *at = take_number(text, max, &v);

	if (!at || !is_end(at))
		return -EBADMSG;
	*out = v;
	return 0;
}

int tier_sysfs_size(const char *text, uint64_t *out)
{
	uint64_t v;
	const char *at = take_number(text, UINT64_MAX >> 10, &v);

	if (!at || *at != 'K' || !is_end(at + 1))
		return -EBADMSG;
	*out = v << 10;
	return 0;
}
