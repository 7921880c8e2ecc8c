/* SPDX-License-Identifier: Apache-2.0 */
/* Finding regions in the rack: by name, and all of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client_priv.h"

struct search {
	const char *name;
	struct client_map *map;
	uint64_t have; /* one bit per piece */
};

enum {
	/* A piece that nobody has may be on its way between the two last steps
	 * of a move, of which the controller knows. */
	MISSING_NS = 1000000000,
};

static int match_piece(uint32_t node, const char *name,
		       const struct client_piece *piece, void *user)
{
	struct piece_name id;
	struct search *s = user;

	if (piece_name_parse(name, &id) || id.count == 1 ||
	    strcmp(id.region, s->name) != 0)
		return 0;
	/* Two striped regions of one name cannot be told apart. */
	if (s->have &&
	    (s->map->piece_count != id.count ||
	     s->map->stripe_shift != id.shift || s->have & 1ull << id.index))
		return error_set(-EEXIST, "region %s exists twice in this rack",
				 s->name);
	s->map->piece_count = id.count;
	s->map->stripe_shift = id.shift;
	s->map->piece[id.index] = *piece;
	s->have |= 1ull << id.index;
	return 0;
}

/* Nodes that do not answer are passed over, unless that may be why nothing
 * was found. */
static int look_for_pieces(struct client_thread *t, const char *name,
			   uint64_t deadline_ns, struct client_map *map,
			   bool *is_partial)
{
	struct search s = {.name = name, .map = map};
	uint32_t i, count = client_rack_nodes(t->rack);
	int err, down = 0;

	for (i = 0; i < count; i++) {
		err = client_piece_each(
			t, i,
			client_rack_share_ns(t->rack, deadline_ns, count - i),
			match_piece, &s);
		if (err == -EHOSTDOWN)
			down = err;
		else if (err)
			return err;
	}
	if (s.have &&
	    s.have == (map->piece_count == 64 ? UINT64_MAX
					      : (1ull << map->piece_count) - 1))
		return 0;
	*is_partial = s.have && !down;
	if (s.have)
		return error_set(-EHOSTDOWN,
				 "region %s: %u of its %u pieces are missing",
				 name,
				 map->piece_count -
					 (unsigned)__builtin_popcountll(s.have),
				 map->piece_count);
	if (down)
		return error_prefix(down,
				    "region %s is not on the nodes that "
				    "answer: ",
				    name);
	return error_set(-ENOENT, "there is no region %s in rack %s", name,
			 t->rack->name);
}

static int find_striped(struct client_thread *t, const char *name,
			uint64_t deadline_ns, struct client_map *map)
{
	uint64_t until_ns =
		u64_min(deadline_ns, client_rack_now_ns(t->rack) + MISSING_NS);
	bool is_partial;
	int err;

	do {
		is_partial = false;
		memset(map, 0, sizeof(*map));
		err = look_for_pieces(t, name, deadline_ns, map, &is_partial);
	} while (err && is_partial && client_follow_nap(t->rack, until_ns));
	return err;
}

/* -EBUSY: it is on its way from one node to another. */
static int find_once(struct client_thread *t, const char *name,
		     uint64_t deadline_ns, struct client_map *map)
{
	uint32_t i, count, hint = 0;
	bool is_busy = false;
	int err;

	client_rack_rescan(t->rack);
	count = client_rack_nodes(t->rack);
	memset(map, 0, sizeof(*map));
	if (client_control_find(t->rack, name, &hint) &&
	    client_piece_stat(t, hint, name,
			      client_rack_share_ns(t->rack, deadline_ns, 2),
			      &map->piece[0]) == 0)
		map->piece_count = 1;
	for (i = 0; i < count && !map->piece_count; i++) {
		/* They may have to be asked a second time, for stripes. */
		err = client_piece_stat(t, i, name,
					client_rack_share_ns(t->rack,
							     deadline_ns,
							     2 * count - i),
					&map->piece[0]);
		if (err == 0) {
			map->piece_count = 1;
			break;
		}
		is_busy |= err == -EBUSY;
		if (err != -ENOENT && err != -EHOSTDOWN && err != -EBUSY)
			return err;
	}
	if (!map->piece_count && is_busy)
		return error_set(-EBUSY,
				 "region %s is being made, changed, moved or "
				 "deleted",
				 name);
	if (!map->piece_count) {
		err = find_striped(t, name, deadline_ns, map);
		if (err)
			return err;
	}
	map->size_bytes = client_map_size(map);
	return 0;
}

int client_region_find(struct client_thread *t, const char *name,
		       uint64_t deadline_ns, struct client_map *map)
{
	int err;

	do
		err = find_once(t, name, deadline_ns, map);
	while (err == -EBUSY && client_follow_nap(t->rack, deadline_ns));
	return err;
}

/* ---- all of them -------------------------------------------------------- */

/* What was seen so far; grows by doubling. */
struct listing {
	struct listed {
		struct piece_name id; /* of whichever piece came first */
		struct client_map map;
		uint64_t have;
	} * row;
	size_t count;
	size_t room;
};

static struct listed *listing_row(struct listing *l,
				  const struct piece_name *id)
{
	size_t i;

	for (i = 0; i < l->count && id->count > 1; i++)
		if (l->row[i].id.count == id->count &&
		    l->row[i].id.shift == id->shift &&
		    strcmp(l->row[i].id.region, id->region) == 0)
			return &l->row[i];
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : 16;
		struct listed *row = realloc(l->row, room * sizeof(*row));

		if (!row)
			return NULL;
		l->row = row;
		l->room = room;
	}
	memset(&l->row[l->count], 0, sizeof(l->row[0]));
	l->row[l->count].id = *id;
	return &l->row[l->count++];
}

static int list_piece(uint32_t node, const char *name,
		      const struct client_piece *piece, void *user)
{
	struct piece_name id;
	struct listed *row;

	if (piece_name_parse(name, &id))
		return 0;
	row = listing_row(user, &id);
	if (!row)
		return error_set(-ENOMEM, "no memory for a list of regions");
	row->map.piece_count = id.count;
	row->map.stripe_shift = id.shift;
	row->map.piece[id.index] = *piece;
	row->have |= 1ull << id.index;
	return 0;
}

void client_map_stat(const struct client_map *map, struct aq_region_stat *out)
{
	*out = (struct aq_region_stat){
		.size_bytes = map->size_bytes,
		.stripe_bytes =
			map->piece_count > 1 ? 1ull << map->stripe_shift : 0,
		.nodes = map->piece_count,
		.id = map->piece[0].id,
		.epoch = map->piece[0].epoch,
	};
}

static int by_region(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return strcmp(x->id.region, y->id.region);
}

static int show(const struct listing *l, aq_region_fn each, void *user)
{
	size_t i;
	int err = 0;

	if (l->count)
		qsort(l->row, l->count, sizeof(l->row[0]), by_region);
	for (i = 0; i < l->count && !err; i++) {
		struct listed *row = &l->row[i];
		struct aq_region_stat stat;

		unsigned have = (unsigned)__builtin_popcountll(row->have);

		row->map.size_bytes =
			have == row->map.piece_count
				? client_map_size(&row->map)
				: client_map_size_of(&row->map, row->have);
		client_map_stat(&row->map, &stat);
		stat.nodes_missing = row->map.piece_count - have;
		err = each(row->id.region, &stat, user);
	}
	return err;
}

int aq_region_each(struct aq_rack *rack, aq_region_fn each, void *user)
{
	struct listing l = {0};
	uint64_t deadline_ns;
	struct client_thread *t;
	uint32_t i, count;
	int err = client_thread_get(rack, &t);

	if (err)
		return err;
	client_rack_rescan(rack);
	deadline_ns = client_rack_deadline_ns(rack);
	count = client_rack_nodes(rack);
	for (i = 0; i < count && !err; i++) {
		err = client_piece_each(
			t, i,
			client_rack_share_ns(rack, deadline_ns, count - i),
			list_piece, &l);
		/* The others can still be listed. */
		if (err == -EHOSTDOWN)
			err = 0;
	}
	if (!err)
		err = show(&l, each, user);
	free(l.row);
	return err;
}
