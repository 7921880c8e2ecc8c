/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of a rack for walks, by requests to its nodes. */
#include "walk_rack_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

enum {
	SHIFT = PIECE_SHIFT_MIN,
};

static int take_piece(const json_t *reply, uint32_t node,
		      struct client_piece *out)
{
	uint64_t size, id, epoch, incarnation;
	int err = client_json_u64(reply, "size", INT64_MAX, &size);

	if (!err)
		err = client_json_u64(reply, "id", UINT16_MAX, &id);
	if (!err)
		err = client_json_u64(reply, "epoch", UINT32_MAX, &epoch);
	if (!err)
		err = client_json_hex(reply, "incarnation", &incarnation);
	if (!err)
		*out = (struct client_piece){.node = node,
					     .id = (uint32_t)id,
					     .epoch = (uint32_t)epoch,
					     .size_bytes = size,
					     .incarnation = incarnation};
	return err;
}

/* Piece i is on node i. */
static int ask_piece(struct aq_rack *rack, uint32_t i, const char *method,
		     const char *path, json_t *body, struct client_piece *out)
{
	json_t *reply;
	int err = walk_rack_ask(rack, i, method, path, body, &reply);

	if (!err && reply)
		err = take_piece(reply, i, out);
	json_decref(reply);
	return err;
}

static void piece_path(const char *name, uint32_t i, uint32_t pieces,
		       char path[CLIENT_PATH_MAX])
{
	char piece[PIECE_NAME_MAX];

	piece_name_write(name, i, pieces, SHIFT, piece);
	snprintf(path, CLIENT_PATH_MAX, "/v1/regions/%s", piece);
}

int walk_region_create(struct aq_rack *rack, const char *name,
		       uint64_t size_bytes, uint32_t pieces)
{
	struct client_piece piece;
	char text[PIECE_NAME_MAX];
	int err = 0;

	for (uint32_t i = 0; i < pieces && !err; i++) {
		uint64_t bytes =
			client_piece_bytes(size_bytes, i, pieces, SHIFT);

		piece_name_write(name, i, pieces, SHIFT, text);
		err = ask_piece(rack, i, "POST", "/v1/regions",
				json_pack("{s:s, s:I}", "name", text, "size",
					  (json_int_t)bytes),
				&piece);
	}
	return err;
}

int walk_region_resize(struct aq_rack *rack, const char *name,
		       uint64_t size_bytes, uint32_t pieces)
{
	struct client_piece piece;
	char path[CLIENT_PATH_MAX];
	int err = 0;

	for (uint32_t i = 0; i < pieces && !err; i++) {
		uint64_t bytes =
			client_piece_bytes(size_bytes, i, pieces, SHIFT);

		piece_path(name, i, pieces, path);
		err = ask_piece(rack, i, "PATCH", path,
				json_pack("{s:I}", "size", (json_int_t)bytes),
				&piece);
	}
	return err;
}

void walk_region_delete(struct aq_rack *rack, const char *name, uint32_t pieces)
{
	char path[CLIENT_PATH_MAX];
	json_t *reply;

	for (uint32_t i = 0; i < pieces; i++) {
		piece_path(name, i, pieces, path);
		(void)walk_rack_ask(rack, i, "DELETE", path, NULL, &reply);
		json_decref(reply);
	}
}

int walk_region_open(struct aq_rack *rack, const char *name, uint32_t pieces,
		     bool is_revocable, struct aq_region **out)
{
	struct aq_region *r = calloc(1, sizeof(*r));
	char path[CLIENT_PATH_MAX];
	int err = r ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < pieces && !err; i++) {
		piece_path(name, i, pieces, path);
		err = ask_piece(rack, i, "GET", path, NULL,
				&r->shape.map.piece[i]);
	}
	if (err) {
		free(r);
		return err;
	}
	r->rack = rack;
	r->serial = ++rack->serial;
	r->next = rack->regions;
	rack->regions = r;
	r->version = 1;
	r->shape.rack = rack;
	r->shape.is_revocable = is_revocable;
	r->shape.map.piece_count = pieces;
	r->shape.map.stripe_shift = pieces > 1 ? SHIFT : 0;
	r->shape.map.size_bytes = client_map_size(&r->shape.map);
	snprintf(r->shape.name, sizeof(r->shape.name), "%s", name);
	*out = r;
	return 0;
}

const struct client_map *walk_region_map(const struct aq_region *region)
{
	return &region->shape.map;
}

int client_keep_shape(struct aq_region *region, struct client_shape *out)
{
	*out = region->shape;
	return region->is_stale ? error_set(-ESTALE, "the region is gone") : 0;
}

uint64_t client_keep_version(const struct aq_region *region)
{
	return region->serial << 32 | region->version;
}

/* As client/region.c does it. */
int client_keep_refresh(struct aq_region *region, uint64_t deadline_ns)
{
	struct client_map fresh = region->shape.map;
	char path[CLIENT_PATH_MAX];
	int err = 0;

	region->rack->until_ns = deadline_ns;
	for (uint32_t i = 0; i < fresh.piece_count && !err; i++) {
		const struct client_piece *old = &region->shape.map.piece[i];

		piece_path(region->shape.name, i, fresh.piece_count, path);
		err = ask_piece(region->rack, i, "GET", path, NULL,
				&fresh.piece[i]);
		if (err == -ENOENT ||
		    (!err && (fresh.piece[i].incarnation != old->incarnation ||
			      fresh.piece[i].id != old->id))) {
			region->is_stale = true;
			region->version++;
			err = error_set(-ESTALE, "the region is gone");
		}
	}
	if (err)
		return err;
	fresh.size_bytes = client_map_size(&fresh);
	region->shape.map = fresh;
	region->version++;
	return 0;
}
