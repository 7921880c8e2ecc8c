/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of Clover (Tsai, Shan and Zhang, ATC 2020): the versions of a key are
 * a chain, and clients remember where they saw its end. Reads: the remembered
 * version together with the key's shortcut; from a version that has a successor
 * they go on to the end. Changes: a new version is written and linked to the
 * end by CAS, then the shortcut follows without being waited for. The metadata
 * server is left out: everybody knows where each key was at the start, and
 * memory comes for free. Both flatter it.
 */
#include <errno.h>
#include <stdlib.h>

#include "kv_fig_rival.h"

enum {
	VERSION_HEAD = 16, /* next, key */
	AREA_VERSIONS = 2048,
	CACHE_ENTRIES = 16384, /* of a client */
	BUF_VERSION = 0,
	BUF_SHORTCUT = 4096,
	BUF_ANSWER = 4104,
	BUF_LINK = 4112,
	BUF_NEW = 4160,
	HOPS_MAX = 1000,
};

struct clover {
	uint64_t version_bytes;
	uint64_t versions_at;
	struct scenario_region *region;
};

struct remembered {
	uint32_t record; /* and 1 */
	uint32_t version;
};

static int prepare(struct kvf *f)
{
	struct clover *u = calloc(1, sizeof(*u));
	uint64_t bytes, i, *shortcut;
	int err;

	if (!u)
		return -ENOMEM;
	f->rival = u;
	u->version_bytes = align_up(VERSION_HEAD + f->cfg.value_bytes, 64);
	u->versions_at = align_up(f->cfg.capacity * 8, 4096);
	/* Version 0 is nobody's, so that 0 is no successor. */
	bytes = u->versions_at + (1 + f->cfg.capacity +
				  (uint64_t)f->cfg.clients * AREA_VERSIONS) *
					 u->version_bytes;
	err = scenario_region_create(f->node[0], bytes, false, &u->region);
	if (err)
		return err;
	shortcut = (uint64_t *)(void *)u->region->mem;
	for (i = 0; i < f->cfg.capacity; i++)
		shortcut[i] = 1 + i;
	return 0;
}

static int open_one(struct kvf_client *c)
{
	struct clover *u = c->f->rival;
	struct rival *v = NULL;
	int err = rival_open(c, &u->region, 1, &v);

	if (err)
		return err;
	c->rival = v;
	v->own = calloc(CACHE_ENTRIES, sizeof(struct remembered));
	return v->own ? 0 : -ENOMEM;
}

static uint64_t at_version(const struct clover *u, uint64_t version)
{
	return u->versions_at + version * u->version_bytes;
}

static struct remembered *entry_of(struct rival *v, uint64_t record)
{
	return (struct remembered *)v->own + record % CACHE_ENTRIES;
}

static void remember(struct rival *v, uint64_t record, uint64_t version)
{
	*entry_of(v, record) =
		(struct remembered){(uint32_t)record + 1, (uint32_t)version};
}

/* What was remembered, or else where everybody knows the key to be from the
 * start. */
static uint64_t start(struct rival *v, uint64_t record)
{
	const struct remembered *e = entry_of(v, record);

	return e->record == record + 1 ? e->version : 1 + record;
}

static int read_one(struct kvf_client *c, uint64_t record)
{
	struct clover *u = c->f->rival;
	struct rival *v = c->rival;
	uint64_t version, next, hops;
	int err = 0;

	record %= c->f->cfg.capacity;
	version = start(v, record);
	for (hops = 0; !err && hops < HOPS_MAX; hops++) {
		rival_read(v, u->region, at_version(u, version), BUF_VERSION,
			   (uint32_t)u->version_bytes);
		if (hops == 0)
			rival_read(v, u->region, record * 8, BUF_SHORTCUT, 8);
		err = rival_go(c, v, 0);
		next = *rival_word(v, BUF_VERSION);
		if (err || !next)
			break;
		version = hops == 0 && *rival_word(v, BUF_SHORTCUT) != version
				  ? *rival_word(v, BUF_SHORTCUT)
				  : next;
	}
	if (!err)
		remember(v, record, version);
	return err;
}

static int change_one(struct kvf_client *c, uint64_t record)
{
	struct clover *u = c->f->rival;
	struct rival *v = c->rival;
	uint64_t fresh = 1 + c->f->cfg.capacity +
			 (uint64_t)c->index * AREA_VERSIONS +
			 c->inserted % AREA_VERSIONS;
	uint64_t version, hops;
	int err = 0;

	record %= c->f->cfg.capacity;
	c->inserted++;
	version = start(v, record);
	*rival_word(v, BUF_NEW) = 0;
	for (hops = 0; !err && hops < HOPS_MAX; hops++) {
		if (hops == 0)
			rival_write(v, u->region, at_version(u, fresh), BUF_NEW,
				    (uint32_t)u->version_bytes);
		rival_cas(v, u->region, at_version(u, version), BUF_ANSWER, 0,
			  fresh);
		if (hops == 0)
			rival_read(v, u->region, record * 8, BUF_SHORTCUT, 8);
		err = rival_go(c, v, 0);
		if (err || !*rival_word(v, BUF_ANSWER))
			break;
		version = hops == 0 && *rival_word(v, BUF_SHORTCUT) != version
				  ? *rival_word(v, BUF_SHORTCUT)
				  : *rival_word(v, BUF_ANSWER);
	}
	if (err)
		return err;
	remember(v, record, fresh);
	*rival_word(v, BUF_LINK) = fresh;
	rival_write(v, u->region, record * 8, BUF_LINK, 8);
	return rival_send(v, 0);
}

static void close_one(struct kvf_client *c)
{
	rival_close(c->rival);
	c->rival = NULL;
}

static void release(struct kvf *f)
{
	free(f->rival);
}

const struct kvf_ops kvf_clover_ops = {
	.name = "clover-like",
	.prepare = prepare,
	.open = open_one,
	.read = read_one,
	.change = change_one,
	.close = close_one,
	.release = release,
};
