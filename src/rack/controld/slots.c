/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which block of a key-value store an image takes each slot from.
 *
 * Slots move between blocks while these are saved one after the other. A slot
 * of two saved blocks is taken from either: each was saved after the flush had
 * begun, so it has all that was acknowledged before. Slots that no block had
 * when it was saved were on their way: all blocks are saved again.
 *
 * A batch that is under way is still at its source, frozen, when it may be at
 * its target already, with changes that were acknowledged there. The target's
 * counts, if it has the batch. If it does not, the source's counts where no
 * block changes any more. In a store that is in use, it counts only if the
 * round before found the same batch at the source, and it was not at the target
 * then either: so the target did not have it when the flush began.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "vault_priv.h"

enum {
	SLOTS = 16384, /* of a store */
	LO = 0,
	HI,
	FROZEN_LO,
	FROZEN_HI,
	TO,
	TOKEN,
	BATCH,
	FIELDS,
};

static uint64_t number_at(const json_t *row, size_t i)
{
	const json_t *slots = json_object_get(row, "slots");

	return (uint64_t)json_integer_value(json_array_get(slots, i));
}

int cd_slots_check(const json_t *slots)
{
	uint64_t v[FIELDS] = {0};
	size_t i;
	const json_t *one;

	if (!slots)
		return 0;
	json_array_foreach(slots, i, one)
	{
		if (i == FIELDS || !json_is_integer(one) ||
		    json_integer_value(one) < 0)
			return -EINVAL;
		v[i] = (uint64_t)json_integer_value(one);
	}
	if (json_array_size(slots) != FIELDS || v[LO] > v[HI] ||
	    v[HI] > SLOTS || v[FROZEN_LO] > v[FROZEN_HI])
		return -EINVAL;
	/* What is frozen lies at one end. */
	if (v[FROZEN_LO] != v[FROZEN_HI] &&
	    (v[FROZEN_LO] < v[LO] || v[FROZEN_HI] > v[HI] ||
	     (v[FROZEN_LO] != v[LO] && v[FROZEN_HI] != v[HI])))
		return -EINVAL;
	return 0;
}

static bool is_frozen(const json_t *row)
{
	return number_at(row, FROZEN_LO) < number_at(row, FROZEN_HI);
}

static void sure_range(const json_t *row, uint64_t *lo, uint64_t *hi)
{
	*lo = number_at(row, LO);
	*hi = number_at(row, HI);
	if (!is_frozen(row))
		return;
	if (number_at(row, FROZEN_LO) == *lo)
		*lo = number_at(row, FROZEN_HI);
	else
		*hi = number_at(row, FROZEN_LO);
}

/* Whether the target of the row's batch had it when it was saved. */
static bool target_has(const json_t *saved, const json_t *row)
{
	const char *key;
	const json_t *other;
	uint64_t lo, hi;

	json_object_foreach((json_t *)(uintptr_t)saved, key, other)
	{
		if ((uint64_t)json_integer_value(json_object_get(
			    other, "generation")) != number_at(row, TO))
			continue;
		sure_range(other, &lo, &hi);
		return lo <= number_at(row, FROZEN_LO) &&
		       hi >= number_at(row, FROZEN_HI);
	}
	return false;
}

static bool is_same_batch(const json_t *row, const char *key,
			  const json_t *before)
{
	const json_t *old = json_object_get(before, key);

	return old && is_frozen(old) &&
	       number_at(old, TO) == number_at(row, TO) &&
	       number_at(old, TOKEN) == number_at(row, TOKEN) &&
	       number_at(old, BATCH) == number_at(row, BATCH);
}

/* The slots that may be taken from a block. */
static void range(const json_t *saved, const json_t *before, bool is_final,
		  const char *key, const json_t *row, uint64_t *lo,
		  uint64_t *hi)
{
	bool is_mine = is_final || (is_same_batch(row, key, before) &&
				    !target_has(before, row));

	sure_range(row, lo, hi);
	if (!is_frozen(row) || !is_mine || target_has(saved, row))
		return;
	*lo = number_at(row, LO);
	*hi = number_at(row, HI);
}

int cd_slots_choose(const json_t *saved, const json_t *before, bool is_final,
		    json_t **out)
{
	json_t *rows = json_array(), *row, *taken;
	uint64_t at = 0;
	const char *key;

	/* A store without a block has nothing in it. */
	while (json_object_size(saved) && at < SLOTS) {
		uint64_t lo, hi, far = at;
		const json_t *best = NULL;

		json_object_foreach((json_t *)(uintptr_t)saved, key, row)
		{
			range(saved, before, is_final, key, row, &lo, &hi);
			if (lo > at || hi <= far)
				continue;
			best = row;
			far = hi;
		}
		if (!best) {
			json_decref(rows);
			return error_set(-EAGAIN,
					 "slots of the store moved while it "
					 "was saved");
		}
		taken = json_deep_copy(best);
		(void)json_object_del(taken, "slots");
		(void)json_object_del(taken, "generation");
		(void)json_object_set_new(taken, "lo",
					  json_integer(cd_int(at)));
		(void)json_object_set_new(taken, "hi",
					  json_integer(cd_int(far)));
		(void)json_array_append_new(rows, taken);
		at = far;
	}
	*out = rows;
	return 0;
}
