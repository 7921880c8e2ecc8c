/* SPDX-License-Identifier: Apache-2.0 */
/* Striping. */
#include "map.h"

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

/* The largest region that has piece `i` of its size. */
static uint64_t size_with(const struct client_map *m, uint32_t i)
{
	uint64_t own = m->piece[i].size_bytes >> m->stripe_shift;
	uint64_t rest =
		m->piece[i].size_bytes & ((1ull << m->stripe_shift) - 1);
	/* The first stripe that is not wholly in this piece. */
	uint64_t stripe = own * m->piece_count + i;

	return (stripe << m->stripe_shift) + rest;
}

uint64_t client_map_size(const struct client_map *m)
{
	uint64_t size = UINT64_MAX;
	uint32_t i;

	if (m->piece_count == 1)
		return m->piece[0].size_bytes;
	for (i = 0; i < m->piece_count; i++)
		size = u64_min(size, size_with(m, i));
	return size;
}

uint64_t client_map_size_of(const struct client_map *m, uint64_t have)
{
	uint64_t largest = UINT64_MAX, even;
	uint32_t i;

	if (m->piece_count == 1)
		return m->piece[0].size_bytes;
	for (i = 0; i < m->piece_count; i++)
		if (have & 1ull << i)
			largest = u64_min(largest, size_with(m, i));
	even = largest -
	       largest % ((uint64_t)m->piece_count << m->stripe_shift);
	for (i = 0; i < m->piece_count; i++)
		if (have & 1ull << i &&
		    client_piece_bytes(even, i, m->piece_count,
				       m->stripe_shift) !=
			    m->piece[i].size_bytes)
			return largest;
	return even;
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
