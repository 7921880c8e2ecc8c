/* SPDX-License-Identifier: Apache-2.0 */
/* Making regions, on one node or on several, and removing them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "claim.h"
#include "client_priv.h"

struct choice {
	uint32_t node;
	uint64_t free_bytes;
};

static int by_free(const void *a, const void *b)
{
	const struct choice *x = a, *y = b;

	return x->free_bytes < y->free_bytes   ? 1
	       : x->free_bytes > y->free_bytes ? -1
					       : 0;
}

/* The controller's choice, which also knows what others are making now. */
static bool let_choose(struct client_thread *t,
		       const struct aq_region_options *o, uint64_t size_bytes,
		       struct client_map *map)
{
	uint32_t node[CLIENT_NODE_MAX], wanted = o->nodes ? o->nodes : 1;

	if (o->node || wanted == AQ_REGION_NODES_ALL ||
	    wanted > CLIENT_NODE_MAX ||
	    !client_control_place(t->rack, size_bytes / wanted + 1, wanted,
				  node))
		return false;
	map->piece_count = wanted;
	for (uint32_t i = 0; i < wanted; i++)
		map->piece[i].node = node[i];
	return true;
}

/* Fills in map->piece[].node and piece_count. */
static int choose_nodes(struct client_thread *t,
			const struct aq_region_options *o, uint64_t deadline_ns,
			struct client_map *map)
{
	uint32_t i, usable = 0, count = client_rack_nodes(t->rack);
	uint32_t wanted = o->nodes ? o->nodes : 1;
	struct choice choice[CLIENT_NODE_MAX];
	struct client_node_status status;
	int err = 0;

	for (i = 0; i < count; i++) {
		if (o->node && strcmp(o->node, t->rack->node[i].name) != 0)
			continue;
		/* As much again is left to make the pieces. */
		err = client_node_ask(t, i,
				      client_rack_share_ns(t->rack, deadline_ns,
							   count - i + 1),
				      &status);
		if (!err)
			choice[usable++] =
				(struct choice){i, status.free_bytes};
	}
	if (wanted == AQ_REGION_NODES_ALL)
		wanted = usable;
	if (usable == 0 && err)
		return err;
	if (usable == 0)
		return error_set(-ENOENT, "rack %s has no node %s",
				 t->rack->name, o->node ? o->node : "at all");
	if (wanted > usable)
		return error_set(-EHOSTDOWN,
				 "%u nodes are wanted, but rack %s has %u that "
				 "answer",
				 wanted, t->rack->name, usable);
	qsort(choice, usable, sizeof(choice[0]), by_free);
	map->piece_count = wanted;
	for (i = 0; i < wanted; i++)
		map->piece[i].node = choice[i].node;
	return 0;
}

static int check_options(const struct aq_region_options *o, uint64_t size_bytes,
			 uint32_t *shift)
{
	uint64_t stripe = o->stripe_bytes;

	if (size_bytes == 0 || size_bytes >> 48)
		return error_set(-EINVAL,
				 "a region has 1 byte to 256 TiB, not %llu",
				 (unsigned long long)size_bytes);
	if (o->flags &
		    ~(uint32_t)(AQ_REGION_DEVICE | AQ_REGION_SWITCH_ATOMICS) ||
	    (o->flags & AQ_REGION_DEVICE && o->nodes > 1))
		return error_set(-EINVAL, "device memory is on one node, and "
					  "nobody knows other flags");
	if (o->node && o->nodes > 1)
		return error_set(-EINVAL, "a node is named, but %u are wanted",
				 o->nodes);
	if (!stripe)
		stripe = 1ull << CLIENT_STRIPE_SHIFT;
	if (stripe & (stripe - 1) || stripe < 1ull << CLIENT_STRIPE_SHIFT_MIN ||
	    stripe > 1ull << CLIENT_STRIPE_SHIFT_MAX)
		return error_set(-EINVAL, "stripe_bytes is a power of two from "
					  "4096 to 1073741824");
	*shift = (uint32_t)__builtin_ctzll(stripe);
	return 0;
}

static int make_pieces(struct client_thread *t, const char *name,
		       uint64_t size_bytes, const struct aq_region_options *o,
		       uint64_t deadline_ns, struct client_map *map)
{
	uint32_t i, n = map->piece_count;
	char piece[CLIENT_PIECE_NAME_MAX], words[200];
	int err = 0, code;

	for (i = 0; i < n && !err; i++) {
		piece_name_write(name, i, n, map->stripe_shift, piece);
		err = client_piece_create(
			t, map->piece[i].node, piece,
			client_piece_bytes(size_bytes, i, n, map->stripe_shift),
			o, deadline_ns, &map->piece[i]);
	}
	if (!err) {
		map->size_bytes = client_map_size(map);
		return 0;
	}
	/* Taking back may fail too; the first reason is the one to tell. */
	code = err;
	snprintf(words, sizeof(words), "%s", error_last());
	for (i--; i-- > 0;) {
		piece_name_write(name, i, n, map->stripe_shift, piece);
		if (client_piece_delete(t, map->piece[i].node, piece, true,
					deadline_ns))
			log_warn("client", "piece %s is left over: %s", piece,
				 error_last());
	}
	return error_set(code, "%s", words);
}

/* A name is taken in the whole rack, not only on the chosen node. */
static int check_absent(struct client_thread *t, const char *name,
			uint64_t deadline_ns, struct client_map *map)
{
	int err = client_region_find(t, name, deadline_ns, map);

	if (err == 0 || err == -EEXIST)
		return error_set(-EEXIST, "region %s exists already", name);
	return err == -ENOENT || err == -EHOSTDOWN ? 0 : err;
}

/* With the claim of its name. */
static int make_region(struct client_thread *t, const char *name,
		       uint64_t size_bytes, const struct aq_region_options *o,
		       uint32_t shift, uint64_t deadline_ns,
		       struct client_map *map)
{
	int err = check_absent(t, name, deadline_ns, map);

	memset(map, 0, sizeof(*map));
	if (!err && !let_choose(t, o, size_bytes, map))
		err = choose_nodes(t, o, deadline_ns, map);
	if (err)
		return err;
	map->stripe_shift = map->piece_count > 1 ? shift : 0;
	return make_pieces(t, name, size_bytes, o, deadline_ns, map);
}

int aq_region_create(struct aq_rack *rack, const char *name,
		     uint64_t size_bytes,
		     const struct aq_region_options *options,
		     struct aq_region **region)
{
	static const struct aq_region_options none;
	const struct aq_region_options *o = options ? options : &none;
	uint64_t deadline_ns;
	struct client_thread *t;
	struct client_claim claim;
	struct client_map *map;
	uint32_t shift = 0;
	int err = client_thread_get(rack, &t);

	if (!err)
		err = client_name_check(name);
	if (!err)
		err = check_options(o, size_bytes, &shift);
	if (err)
		return err;
	map = calloc(1, sizeof(*map));
	if (!map)
		return error_set(-ENOMEM, "no memory for a region map");
	deadline_ns = client_rack_deadline_ns(rack);
	err = client_claim_take(t, name, deadline_ns, &claim);
	if (!err) {
		err = make_region(t, name, size_bytes, o, shift, deadline_ns,
				  map);
		client_claim_drop(t, name, deadline_ns, &claim);
	}
	if (!err)
		err = client_region_handle(rack, name, 0, map, region);
	free(map);
	return err;
}

static int delete_region(struct aq_rack *rack, const char *name, bool force)
{
	uint64_t deadline_ns;
	struct client_thread *t;
	struct client_map *map;
	char piece[CLIENT_PIECE_NAME_MAX];
	uint32_t i;
	int err = client_thread_get(rack, &t), one;

	if (!err)
		err = client_name_check(name);
	if (err)
		return err;
	map = malloc(sizeof(*map));
	if (!map)
		return error_set(-ENOMEM, "no memory for a region map");
	deadline_ns = client_rack_deadline_ns(rack);
	err = client_region_find(t, name, deadline_ns, map);
	for (i = 0; !err && i < map->piece_count; i++) {
		piece_name_write(name, i, map->piece_count, map->stripe_shift,
				 piece);
		one = client_piece_delete(t, map->piece[i].node, piece, force,
					  deadline_ns);
		/* Somebody else may be deleting it as well. */
		if (one && one != -ENOENT)
			err = one;
	}
	free(map);
	return err;
}

int aq_region_delete(struct aq_rack *rack, const char *name)
{
	return delete_region(rack, name, false);
}

int aq_region_delete_forced(struct aq_rack *rack, const char *name)
{
	return delete_region(rack, name, true);
}
