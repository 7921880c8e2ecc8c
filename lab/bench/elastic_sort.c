/* SPDX-License-Identifier: Apache-2.0 */
#include "elastic_sort.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

enum {
	DIGIT_BITS = 11,
	DIGITS = 1 << DIGIT_BITS,
};

/* Least digit first: one pass of counting for each. */
void sort_items(struct sort_item *order, struct sort_item *spare, size_t count)
{
	struct sort_item *from = order, *to = spare, *swap;
	unsigned passes = 0;

	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS, passes++) {
		size_t at[DIGITS] = {0}, sum = 0;

		for (size_t i = 0; i < count; i++)
			at[from[i].key >> shift & (DIGITS - 1)]++;
		for (unsigned d = 0; d < DIGITS; d++) {
			size_t n = at[d];

			at[d] = sum;
			sum += n;
		}
		for (size_t i = 0; i < count; i++)
			to[at[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
	if (passes % 2)
		memcpy(order, spare, count * sizeof(*order));
}

/* ---- merging ------------------------------------------------------------- */

struct run {
	uint32_t chunk[SORT_CHUNKS_MAX]; /* offsets, in units of a record */
	unsigned count, now;
	const uint8_t *at, *end;
};

static bool advance(const uint8_t *in, struct run *r)
{
	const struct sort_head *head;

	if (r->at < r->end)
		return true;
	if (r->now == r->count)
		return false;
	head = (const void *)(in + (size_t)r->chunk[r->now++] * SORT_RECORD);
	r->at = (const uint8_t *)(head + 1);
	r->end = (const uint8_t *)head + head->bytes;
	return r->at < r->end;
}

static int find_runs(const uint8_t *in, size_t bytes, struct run *runs)
{
	for (size_t at = 0; at < bytes;) {
		const struct sort_head *head = (const void *)(in + at);
		struct run *r;

		if (bytes - at < sizeof(*head) || head->task >= SORT_RUNS ||
		    head->bytes < sizeof(*head) || head->bytes > bytes - at ||
		    head->bytes % SORT_RECORD)
			return error_set(-EBADMSG, "no chunk lies at %zu", at);
		r = &runs[head->task];
		if (r->count == SORT_CHUNKS_MAX)
			return error_set(-EBADMSG, "too many chunks");
		r->chunk[r->count++] = (uint32_t)(at / SORT_RECORD);
		at += head->bytes;
	}
	return 0;
}

static struct run *least(const uint8_t *in, struct run *runs)
{
	struct run *best = NULL;
	uint64_t best_key = 0;

	for (unsigned i = 0; i < SORT_RUNS; i++) {
		uint64_t key;

		if (!advance(in, &runs[i]))
			continue;
		key = sort_key(runs[i].at);
		if (!best || key < best_key) {
			best = &runs[i];
			best_key = key;
		}
	}
	return best;
}

int sort_merge(const uint8_t *in, size_t bytes, uint8_t *out, size_t room,
	       uint64_t *sum, uint64_t *count)
{
	static struct run runs[SORT_RUNS];
	uint64_t last = 0;
	struct run *r;
	size_t at = 0;
	int err;

	memset(runs, 0, sizeof(runs));
	err = find_runs(in, bytes, runs);
	*sum = *count = 0;
	while (!err && (r = least(in, runs))) {
		uint64_t key = sort_key(r->at);

		if (key < last || room - at < SORT_RECORD)
			return error_set(-EBADMSG, "a run is not sorted, or "
						   "too long");
		last = key;
		memcpy(out + at, r->at, SORT_RECORD);
		at += SORT_RECORD;
		r->at += SORT_RECORD;
		*sum += key;
		++*count;
	}
	return err;
}
