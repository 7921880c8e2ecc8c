/* SPDX-License-Identifier: Apache-2.0 */
/* Books time of a resource; leaves what the time is for to model.c. */
#include "model_busy.h"

#include "base/base.h"

/* Room in one bin from `from` on, and where it begins. */
static uint64_t bin_room(struct model_busy *busy, uint64_t index, uint64_t from,
			 uint64_t *start)
{
	uint64_t begin = index << MODEL_BUSY_BIN_SHIFT;
	uint64_t end = begin + (1ull << MODEL_BUSY_BIN_SHIFT);
	uint64_t slot = index % MODEL_BUSY_BINS;

	if (busy->bin[slot].index > index)
		return 0; /* long past; its room is forgotten */
	if (busy->bin[slot].index < index) {
		busy->bin[slot].index = index;
		busy->bin[slot].used_ps = 0;
	}
	*start = u64_max(from, begin + busy->bin[slot].used_ps);
	/* Work before `from` in this bin leaves its length free after it. */
	return *start < end ? end - *start : 0;
}

uint64_t model_busy_take(struct model_busy *busy, uint64_t now,
			 uint64_t busy_ps, uint64_t *end_ps)
{
	uint64_t index = now >> MODEL_BUSY_BIN_SHIFT;
	uint64_t left = busy_ps, first = 0, at = now;
	bool begun = false;

	while (left > 0) {
		uint64_t start = 0;
		uint64_t room = bin_room(busy, index, now, &start);
		uint64_t part = u64_min(room, left);

		if (part > 0) {
			if (!begun)
				first = start;
			begun = true;
			busy->bin[index % MODEL_BUSY_BINS].used_ps += part;
			left -= part;
			at = start + part;
		}
		index++;
	}
	if (end_ps)
		*end_ps = at;
	return begun ? first : now;
}

bool model_busy_has_room(struct model_busy *busy, uint64_t now,
			 uint64_t *again_ps)
{
	uint64_t index = now >> MODEL_BUSY_BIN_SHIFT, start;

	*again_ps = (index + 1) << MODEL_BUSY_BIN_SHIFT;
	return bin_room(busy, index, now, &start) > 0;
}
