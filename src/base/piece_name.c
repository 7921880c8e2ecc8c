/* SPDX-License-Identifier: Apache-2.0 */
/* The names of regions and of their pieces. */
#include "piece_name.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

bool piece_region_is_valid(const char *name)
{
	size_t len = strlen(name);
	size_t i;

	if (len == 0 || len >= PIECE_REGION_MAX || name[0] == '-')
		return false;
	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' &&
		    name[i] != '-')
			return false;
	return true;
}

void piece_name_write(const char *region, uint32_t index, uint32_t count,
		      uint32_t shift, char out[PIECE_NAME_MAX])
{
	if (count == 1)
		snprintf(out, PIECE_NAME_MAX, "%s", region);
	else
		snprintf(out, PIECE_NAME_MAX, "%s.%x-%x-%x", region, index,
			 count, shift);
}

int piece_name_parse(const char *name, struct piece_name *out)
{
	struct piece_name id = {.count = 1};
	char again[PIECE_NAME_MAX];
	const char *dot = strchr(name, '.');
	size_t len = dot ? (size_t)(dot - name) : strlen(name);

	if (len >= sizeof(id.region))
		return -EINVAL;
	memcpy(id.region, name, len);
	if (!piece_region_is_valid(id.region))
		return -EINVAL;
	if (dot) {
		if (sscanf(dot, ".%2x-%2x-%2x", &id.index, &id.count,
			   &id.shift) != 3)
			return -EINVAL;
		if (id.count < 2 || id.count > PIECE_COUNT_MAX ||
		    id.index >= id.count || id.shift < PIECE_SHIFT_MIN ||
		    id.shift > PIECE_SHIFT_MAX)
			return -EINVAL;
		/* One name, one meaning: no signs, blanks or zeros in front. */
		piece_name_write(id.region, id.index, id.count, id.shift,
				 again);
		if (strcmp(again, name) != 0)
			return -EINVAL;
	}
	*out = id;
	return 0;
}
