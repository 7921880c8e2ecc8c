/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that are never given twice, and things by their number. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"
#include "tree_priv.h"

/* The mark is written ahead, so that most ids cost no row; who leads next
 * begins at the mark. */
uint64_t cd_id_take(struct cd_core *core)
{
	struct cd_tree *tree = core->tree;

	if (tree->id_next >= tree->id_mark) {
		tree->id_mark = tree->id_next + CD_ID_STEP;
		cd_stage(core, "rack", "ids",
			 json_pack("{s:I}", "next", cd_int(tree->id_mark)));
	}
	return tree->id_next++;
}

/* As long as any other, so that rows come in the order of their ids. */
void cd_id_format(uint64_t id, char out[CD_ID_TEXT])
{
	(void)snprintf(out, CD_ID_TEXT, "%016" PRIx64, id);
}

bool cd_id_parse(const char *text, uint64_t *out)
{
	uint64_t id = 0;

	if (strlen(text) != CD_ID_TEXT - 1)
		return false;
	for (; *text; text++) {
		int digit = hex_digit(*text);

		if (digit < 0)
			return false;
		id = id << 4 | (uint64_t)digit;
	}
	*out = id;
	return id != 0 && id <= INT64_MAX;
}

/* The first row that is not below the id. */
static size_t place_of(const struct cd_ids *ids, uint64_t id)
{
	size_t low = 0, high = ids->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ids->row[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void *cd_ids_find(const struct cd_ids *ids, uint64_t id)
{
	size_t at = place_of(ids, id);

	return at < ids->count && ids->row[at].id == id ? ids->row[at].thing
							: NULL;
}

int cd_ids_add(struct cd_ids *ids, uint64_t id, void *thing)
{
	size_t at = place_of(ids, id);

	if (ids->count == ids->room) {
		size_t room = ids->room ? 2 * ids->room : 64;
		void *more = realloc(ids->row, room * sizeof(*ids->row));

		if (!more)
			return error_set(-ENOMEM, "no memory for names");
		ids->row = more;
		ids->room = room;
	}
	memmove(ids->row + at + 1, ids->row + at,
		(ids->count - at) * sizeof(*ids->row));
	ids->row[at].id = id;
	ids->row[at].thing = thing;
	ids->count++;
	return 0;
}

void cd_ids_remove(struct cd_ids *ids, uint64_t id)
{
	size_t at = place_of(ids, id);

	ASSERT(at < ids->count && ids->row[at].id == id);
	ids->count--;
	memmove(ids->row + at, ids->row + at + 1,
		(ids->count - at) * sizeof(*ids->row));
}
