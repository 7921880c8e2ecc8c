/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shipped version list, which is made after Clover, as one of the stores of
 * a figure. A client remembers where it saw each key last, and by itself: of
 * Clover the clients of one machine share that. At the start all of them know
 * where everything is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "index/vlist.h"
#include "kv_fig_priv.h"

enum {
	VALUE_MAX = 2048,
	DEADLINE_MS = 1000,
};

struct kvf_vlist {
	struct vlist_geometry g;
	struct rig_region *region;
	struct vlist_places *places[KV_FIG_MACHINES];
};

static int open_remote(struct kvf_client *c, struct kit_remote *remote)
{
	struct kvf_vlist *u = c->f->rival;
	struct client_link_options o = {.rights = CLIENT_LINK_ALL};

	*remote = (struct kit_remote){.addr = u->region->addr,
				      .size_bytes = u->region->size_bytes,
				      .rkey = u->region->rkey,
				      .fence = kvf_fence_nobody,
				      .is_alive = kvf_all_are_alive};
	snprintf(remote->conn, sizeof(remote->conn), "%u", c->index);
	return rig_link_open(c->host, u->region, &o, &remote->link);
}

static int connect_one(struct kvf_client *c, const struct kit_remote *remote)
{
	struct kvf_vlist *u = c->f->rival;
	struct vlist_config cfg = {
		.deadline_ms = DEADLINE_MS,
		.cache_keys = (uint32_t)c->f->cfg.capacity,
		.no_steer = true /* there is no switch */,
		.shortcut = true,
		.places = u->places[c->index % KV_FIG_MACHINES],
	};

	return vlist_client_create(remote, &u->g, &cfg,
				   (struct vlist_client **)&c->rival);
}

/* Numbers of which no two are remembered in the same place. */
static uint64_t key_of(uint64_t record)
{
	return record << 32;
}

static int change_one(struct kvf_client *c, uint64_t record)
{
	uint8_t value[VALUE_MAX] = {0};

	return vlist_put(c->rival, key_of(record), value,
			 c->f->cfg.value_bytes);
}

static int read_one(struct kvf_client *c, uint64_t record)
{
	uint8_t buf[VALUE_MAX];
	size_t len;

	return vlist_get(c->rival, key_of(record), buf, sizeof(buf), &len);
}

static int load(struct kvf_client *c)
{
	struct kvf_vlist *u = c->f->rival;
	struct kit_remote remote;
	uint64_t i;
	int err = open_remote(c, &remote);

	if (!err)
		err = vlist_format(&remote, &u->g);
	if (!err)
		err = connect_one(c, &remote);
	for (i = 0; i < c->f->records && !err; i++)
		err = change_one(c, i);
	return err;
}

static int prepare(struct kvf *f)
{
	struct kvf_vlist *u = calloc(1, sizeof(*u));
	struct vlist_options o = {.keys = f->cfg.capacity,
				  .value_max = f->cfg.value_bytes,
				  .clients = f->cfg.clients + 1};
	int err;

	if (!u)
		return -ENOMEM;
	f->rival = u;
	err = vlist_geometry_make(&o, &u->g);
	for (unsigned i = 0; !err && i < KV_FIG_MACHINES; i++)
		err = vlist_places_create((uint32_t)f->cfg.capacity,
					  &u->places[i]);
	if (!err)
		err = rig_region_create(f->node[0], u->g.size_bytes, false,
					&u->region);
	return err ? err : kvf_load(f, load);
}

static int open_one(struct kvf_client *c)
{
	struct kit_remote remote;
	int err = open_remote(c, &remote);

	if (!err)
		err = connect_one(c, &remote);
	if (!err)
		vlist_client_learn(c->rival, c->f->loader.rival);
	return err;
}

static void close_one(struct kvf_client *c)
{
	vlist_client_destroy(c->rival);
	c->rival = NULL;
}

static void release(struct kvf *f)
{
	struct kvf_vlist *u = f->rival;

	vlist_client_abandon(f->loader.rival);
	for (unsigned i = 0; u && i < KV_FIG_MACHINES; i++)
		vlist_places_destroy(u->places[i]);
	free(u);
}

const struct kvf_ops kvf_vlist_ops = {
	.name = "clover-like",
	.prepare = prepare,
	.open = open_one,
	.read = read_one,
	.change = change_one,
	.close = close_one,
	.release = release,
};
