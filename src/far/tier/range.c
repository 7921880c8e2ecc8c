/* SPDX-License-Identifier: Apache-2.0 */
/* Words for numbers: parsing only. */
#include "range.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
	NUMBER_MAX = 32, /* characters of one */
};

static int refuse(const char *word)
{
	return error_set(-EINVAL,
			 "value '%.40s' is not allowed; it is a number, or a "
			 "range: 2..20, or 1..2..0.25 with its step",
			 word);
}

/* One number that ends where a range goes on, or the word does. strtod alone
 * would take "nan", "inf" and "0x1p3", and the first dot of "2..20". */
static int take_number(const char **at, double *out)
{
	char text[NUMBER_MAX];
	size_t len = 0;
	char *end;

	while ((*at)[len] && strncmp(*at + len, "..", 2) != 0)
		len++;
	if (len == 0 || len >= sizeof(text) ||
	    strspn(*at, "0123456789.eE+-") < len)
		return -EINVAL;
	memcpy(text, *at, len);
	text[len] = '\0';
	errno = 0;
	*out = strtod(text, &end);
	if (errno || *end || !isfinite(*out))
		return -EINVAL;
	*at += len;
	return 0;
}

static bool is_whole(double v)
{
	return v == floor(v);
}

static int count_values(struct tier_range *r)
{
	double count;

	if (r->to < r->from)
		return error_set(-EINVAL, "%g..%g goes backwards", r->from,
				 r->to);
	if (r->step == 0)
		r->step = is_whole(r->from) && is_whole(r->to)
				  ? 1
				  : (r->to - r->from) / TIER_RANGE_STEPS;
	if (r->to == r->from) {
		r->count = 1;
		return 0;
	}
	/* A little more, so that the last of ten steps of 0.1 is there. */
	count = floor((r->to - r->from) / r->step + 1e-9) + 1;
	if (!(count <= TIER_RANGE_MAX))
		return error_set(-EINVAL,
				 "%g..%g in steps of %g has more than %d "
				 "values; give a larger step: %g..%g..%g",
				 r->from, r->to, r->step, TIER_RANGE_MAX,
				 r->from, r->to,
				 (r->to - r->from) / TIER_RANGE_STEPS);
	r->count = (unsigned)count;
	return 0;
}

int tier_range_parse(const char *word, struct tier_range *out)
{
	struct tier_range r = {.step = 0};
	const char *at = word;

	if (take_number(&at, &r.from))
		return refuse(word);
	r.to = r.from;
	if (*at) {
		at += 2;
		if (take_number(&at, &r.to))
			return refuse(word);
	}
	if (*at) {
		at += 2;
		if (take_number(&at, &r.step) || *at || r.step <= 0)
			return refuse(word);
	}
	*out = r;
	return count_values(out);
}

double tier_range_at(const struct tier_range *r, unsigned index)
{
	return fmin(r->from + index * r->step, r->to);
}
