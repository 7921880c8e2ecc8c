/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adding up a range: one walk over its leaves, which is one round trip. Where
 * the walk gives up, or does not run at all, the rest is scanned: the pad says
 * what was added and where to go on, so nothing is added twice.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "tree_priv.h"

struct adding {
	struct tree_reduced *to;
	bool only_count;
};

/* What the pad has; false: nothing that a walk leaves. */
static bool take_pad(const struct tree_client *c, struct tree_reduced *out)
{
	const struct tree_pad *pad = c->pad;

	if (pad->key_len > c->g.key_max)
		return false;
	out->count = le64_get(pad->count);
	out->sum = le64_get(pad->sum);
	out->sum_high = le64_get(pad->sum_high);
	out->min = (int64_t)(le64_get(pad->min) ^ TREE_NUMBER_SIGN);
	out->max = (int64_t)(le64_get(pad->max) ^ TREE_NUMBER_SIGN);
	return true;
}

static void fill_pad(struct tree_client *c, const struct tree_range *r,
		     const struct tree_reduced *so_far)
{
	struct tree_pad *pad = c->pad;

	memset(pad, 0, tree_pad_bytes(&c->g, TREE_WALK_SUM));
	pad->count = le64_put(so_far->count);
	pad->sum = le64_put(so_far->sum);
	pad->sum_high = le64_put(so_far->sum_high);
	pad->min = le64_put((uint64_t)so_far->min ^ TREE_NUMBER_SIGN);
	pad->max = le64_put((uint64_t)so_far->max ^ TREE_NUMBER_SIGN);
	pad->key_len = (uint8_t)r->from_len;
	if (r->from_len)
		memcpy(pad->key, r->from, r->from_len);
	pad->has_to = r->to != NULL;
	pad->to_len = (uint8_t)r->to_len;
	if (r->to && r->to_len)
		memcpy(pad + 1, r->to, r->to_len);
}

/*
 * Walks as far as that leads. `rest` is what is left of the range then; its
 * first key is in `from`. A walk that only took too long has come further, and
 * another one goes on.
 */
static bool walk(struct tree_client *c, struct tree_range *rest,
		 uint8_t from[TREE_KEY_MAX], bool only_count,
		 struct tree_reduced *out)
{
	uint64_t before;
	int err;

	if (!c->pad)
		return false;
	do {
		before = out->count;
		fill_pad(c, rest, out);
		err = tree_walk_run(c, only_count ? TREE_WALK_COUNT
						  : TREE_WALK_SUM);
		if (err == -EOPNOTSUPP || !take_pad(c, out))
			return false;
		rest->from = from;
		rest->from_len = c->pad->key_len;
		memcpy(from, c->pad->key, rest->from_len);
	} while (err == -ETIMEDOUT && out->count != before);
	return !err && c->pad->is_done;
}

static int add(void *user, const void *key, size_t key_len, const void *value,
	       size_t len)
{
	const struct adding *a = user;
	struct tree_reduced *r = a->to;
	le64 word;
	uint64_t v;

	r->count++;
	if (a->only_count)
		return 0;
	if (len != TREE_NUMBER_BYTES)
		return error_set(-EDOM,
				 "the value of key '%.*s' has %zu bytes; a "
				 "number has %d",
				 (int)key_len, (const char *)key, len,
				 TREE_NUMBER_BYTES);
	memcpy(&word, value, sizeof(word));
	v = le64_get(word);
	r->sum += v;
	r->sum_high += (uint64_t)((int64_t)v >> 63) + (r->sum < v);
	r->min = (int64_t)v < r->min ? (int64_t)v : r->min;
	r->max = (int64_t)v > r->max ? (int64_t)v : r->max;
	return 0;
}

/* Without the first key itself: from the key that comes right after it. */
static bool begin_after(const struct tree_client *c, struct tree_range *r,
			uint8_t from[TREE_KEY_MAX])
{
	if (!r->is_after || r->from_len == c->g.key_max)
		return !r->is_after;
	if (r->from_len)
		memmove(from, r->from, r->from_len);
	from[r->from_len++] = 0;
	r->from = from;
	r->is_after = false;
	return true;
}

int tree_reduce(struct tree_client *c, const struct tree_range *range,
		bool only_count, struct tree_reduced *out)
{
	struct tree_reduced r = {.min = INT64_MAX, .max = INT64_MIN};
	struct adding a = {.to = &r, .only_count = only_count};
	struct tree_range rest = *range;
	uint64_t before = c->kit.trips;
	uint8_t from[TREE_KEY_MAX];
	bool is_done = false;
	int err = 0;

	if (range->from_len > c->g.key_max || range->to_len > c->g.key_max)
		return error_set(-EINVAL, "keys here have up to %u bytes",
				 c->g.key_max);
	kit_set_deadline(&c->kit, c->config.deadline_ms);
	if (begin_after(c, &rest, from))
		is_done = walk(c, &rest, from, only_count, &r);
	c->stats.scan_trips += c->kit.trips - before;
	if (!is_done)
		err = tree_scan(c, &rest, add, &a);
	if (err)
		return err;
	if (!r.count || only_count)
		r.min = r.max = 0;
	*out = r;
	return 0;
}
