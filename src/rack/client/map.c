/* SPDX-License-Identifier: Apache-2.0 */
/* Striping and the names of pieces. */
#include "map.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool client_name_is_valid(const char *name)
{
	size_t len = strlen(name);
	size_t i;

	if (len == 0 || len >= CLIENT_REGION_NAME_MAX || name[0] == '-')
		return false;
	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' &&
		    name[i] != '-')
			return false;
	return true;
}

void client_piece_name(const char *region, uint32_t index, uint32_t count,
		       uint32_t shift, char out[CLIENT_PIECE_NAME_MAX])
{
	if (count == 1)
		snprintf(out, CLIENT_PIECE_NAME_MAX, "%s", region);
	else
		snprintf(out, CLIENT_PIECE_NAME_MAX, "%s.%x-%x-%x", region,
			 index, count, shift);
}

int client_piece_parse(const char *name, struct client_piece_id *out)
{
	struct client_piece_id id = {.count = 1};
	char again[CLIENT_PIECE_NAME_MAX];
	const char *dot = strchr(name, '.');
	size_t len = dot ? (size_t)(dot - name) : strlen(name);

	if (len >= sizeof(id.region))
		return -EINVAL;
	memcpy(id.region, name, len);
	if (!client_name_is_valid(id.region))
		return -EINVAL;
	if (dot) {
		if (sscanf(dot, ".%2x-%2x-%2x", &id.index, &id.count,
			   &id.shift) != 3)
			return -EINVAL;
		if (id.count < 2 || id.count > CLIENT_NODE_MAX ||
		    id.index >= id.count ||
		    id.shift < CLIENT_STRIPE_SHIFT_MIN ||
		    id.shift > CLIENT_STRIPE_SHIFT_MAX)
			return -EINVAL;
		/* One name, one meaning: no signs, blanks or zeros in front. */
		client_piece_name(id.region, id.index, id.count, id.shift,
				  again);
		if (strcmp(again, name) != 0)
			return -EINVAL;
	}
	*out = id;
	return 0;
}

uint64_t client_piece_bytes(uint64_t size_bytes, uint32_t index, uint32_t count,
			    uint32_t shift)
{
	uint64_t full, rest, own;

	if (count == 1)
		return size_bytes;
	full = size_bytes >> shift;
	rest = size_bytes & ((1ull << shift) - 1);
	own = (full / count + (index < full % count)) << shift;
	if (index == full % count)
		own += rest;
	/* A node makes no empty region; a page in reserve does no harm. */
	return own ? own : 1ull << CLIENT_STRIPE_SHIFT_MIN;
}

uint64_t client_map_size(const struct client_map *m)
{
	uint64_t size = UINT64_MAX;
	uint32_t i;

	if (m->piece_count == 1)
		return m->piece[0].size_bytes;
	for (i = 0; i < m->piece_count; i++) {
		uint64_t own = m->piece[i].size_bytes >> m->stripe_shift;
		uint64_t rest = m->piece[i].size_bytes &
				((1ull << m->stripe_shift) - 1);
		/* The first stripe that is not wholly in this piece. */
		uint64_t stripe = own * m->piece_count + i;

		size = u64_min(size, (stripe << m->stripe_shift) + rest);
	}
	return size;
}

struct client_spot client_map_find(const struct client_map *m, uint64_t offset,
				   uint64_t len_bytes)
{
	struct client_spot s = {.offset = offset, .len_bytes = len_bytes};
	uint64_t stripe, inside;

	if (m->piece_count == 1)
		return s;
	stripe = offset >> m->stripe_shift;
	inside = offset & ((1ull << m->stripe_shift) - 1);
	s.piece = (uint32_t)(stripe % m->piece_count);
	s.offset = (stripe / m->piece_count << m->stripe_shift) + inside;
	s.len_bytes = u64_min(len_bytes, (1ull << m->stripe_shift) - inside);
	return s;
}
