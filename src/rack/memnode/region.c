/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: named memory of a tenant, one grant and one registration each. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/size.h"
#include "memory_priv.h"
#include "ruled.h"
#include "stock.h"

uint64_t region_pages(uint64_t size_bytes)
{
	return align_up(size_bytes, (uint64_t)sysconf(_SC_PAGESIZE));
}

struct mem_region *region_find(const struct mem_node *node,
			       const struct mem_tenant *tenant,
			       const char *name)
{
	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		struct mem_region *r = node->regions[i];

		if (r && r->tenant == tenant && strcmp(r->name, name) == 0)
			return r;
	}
	return NULL;
}

static struct memory memory_of(const struct mem_region *r)
{
	return (struct memory){
		.addr = r->addr,
		.mr = r->mr,
		.size_bytes = r->size_bytes,
		.from_aqdv = r->from_aqdv,
		.dm = r->dm,
		.can_bind = r->can_bind,
	};
}

static void memory_give(struct mem_node *node, struct mem_region *r,
			const struct memory *m)
{
	r->addr = m->addr;
	r->mr = m->mr;
	r->size_bytes = m->size_bytes;
	r->from_aqdv = m->from_aqdv;
	r->dm = m->dm;
	r->can_bind = m->can_bind;
	/* One counter for all regions, so no epoch comes twice, not even for a
	 * region that was made again under an old name. */
	r->epoch = ++node->last_epoch;
}

/* Takes `more` bytes from the quota and the pool. */
static int charge(struct mem_node *node, struct mem_region *r, uint64_t more)
{
	struct mem_tenant *t = r->tenant;

	int err = ruled_admit(node);

	if (!err)
		err = ruled_charge(node, t, more);
	if (err)
		return err;
	if (more > node->pool_bytes - node->used_bytes)
		return error_set(-ENOSPC,
				 "the pool of %s has %s left; %s more do not "
				 "fit",
				 node->name,
				 SIZE_TEXT(node->pool_bytes - node->used_bytes),
				 SIZE_TEXT(more));
	t->used_bytes += more;
	node->used_bytes += more;
	mem_stock_yield(node->stock, 0);
	r->charged_bytes += more;
	return 0;
}

/* The NIC's own memory is none of the pool's. */
static int charge_device(struct mem_region *r, uint64_t size_bytes)
{
	uint64_t bytes = align_up(size_bytes, DEVICE_ALIGN);
	int err = tenant_take(r->tenant, MEM_LIMIT_DEVICE, bytes);

	if (!err)
		r->device_bytes = bytes;
	return err;
}

static void uncharge(struct mem_node *node, struct mem_region *r, uint64_t less)
{
	r->tenant->used_bytes -= less;
	node->used_bytes -= less;
	r->charged_bytes -= less;
}

/* Ids go round, so that an old one means something else as late as possible.
 * There are far fewer regions than ids. */
static uint16_t next_id(struct mem_node *node)
{
	bool taken = true;

	while (taken) {
		if (++node->last_region_id == 0)
			node->last_region_id = 1;
		taken = false;
		for (unsigned i = 0; i < MEM_REGION_MAX && !taken; i++)
			taken = node->regions[i] &&
				node->regions[i]->id == node->last_region_id;
	}
	return node->last_region_id;
}

static int insert(struct mem_node *node, struct mem_tenant *tenant,
		  const char *name, struct mem_region **out)
{
	struct mem_region *r;
	unsigned place = 0;
	int err;

	if (!ctl_name_is_valid(name, MEM_REGION_NAME_MAX))
		return error_set(-EINVAL,
				 "a region's name has 1 to %d letters, digits, "
				 "'-', '_' and '.', and does not begin with "
				 "'-' or '.'",
				 MEM_REGION_NAME_MAX);
	if (region_find(node, tenant, name))
		return error_set(-EEXIST, "there is a region %s already", name);
	while (place < MEM_REGION_MAX && node->regions[place])
		place++;
	if (place == MEM_REGION_MAX)
		return error_set(-EAGAIN, "this node has %d regions at most",
				 MEM_REGION_MAX);
	err = tenant_take(tenant, MEM_LIMIT_REGIONS, 1);
	if (err)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r) {
		tenant_give(tenant, MEM_LIMIT_REGIONS, 1);
		return error_set(-ENOMEM, "no memory for a region");
	}
	(void)snprintf(r->name, sizeof(r->name), "%s", name);
	r->tenant = tenant;
	env_random(node->env, &r->birth, sizeof(r->birth));
	r->id = next_id(node);
	r->busy = true;
	node->regions[place] = r;
	node->region_count++;
	*out = r;
	return 0;
}

static void extract(struct mem_node *node, struct mem_region *r)
{
	uncharge(node, r, r->charged_bytes);
	for (unsigned i = 0; i < MEM_REGION_MAX; i++)
		if (node->regions[i] == r)
			node->regions[i] = NULL;
	node->region_count--;
	tenant_give(r->tenant, MEM_LIMIT_REGIONS, 1);
	tenant_give(r->tenant, MEM_LIMIT_DEVICE, r->device_bytes);
	node->regions_gone++;
	life_end(node, &r->life);
}

/* Without the lock: the region is busy. */
static int place(struct mem_node *node, const struct mem_region *r,
		 struct memory *m)
{
	int err = walks_place(r, m->mr);

	if (err)
		memory_free(node, m);
	return err;
}

int region_create(struct mem_node *node, struct mem_tenant *tenant,
		  const char *name, uint64_t size_bytes, bool on_device,
		  struct mem_region **out)
{
	struct mem_region *r = NULL;
	struct memory m;
	int err = insert(node, tenant, name, &r);

	lock_assert_mutex_held(&node->lock);
	if (err)
		return err;
	err = on_device ? charge_device(r, size_bytes)
			: charge(node, r, region_pages(size_bytes));
	if (!err) {
		pthread_mutex_unlock(&node->lock);
		err = on_device ? memory_make_device(node, tenant->pd,
						     size_bytes, &m)
				: memory_make(node, tenant->pd, size_bytes, &m);
		if (!err)
			err = place(node, r, &m);
		pthread_mutex_lock(&node->lock);
	}
	if (!err && tenant->state == MEM_TENANT_ENDING) {
		pthread_mutex_unlock(&node->lock);
		memory_free(node, &m);
		pthread_mutex_lock(&node->lock);
		err = error_set(-ESTALE, "tenant %s was deleted", tenant->name);
	}
	if (err) {
		extract(node, r);
		return err;
	}
	memory_give(node, r, &m);
	r->busy = false;
	*out = r;
	return 0;
}

static int make_busy(struct mem_region *r)
{
	if (r->busy)
		return error_set(-EBUSY,
				 "region %s is being made, changed or deleted",
				 r->name);
	r->busy = true;
	return 0;
}

int region_resize(struct mem_node *node, struct mem_region *r,
		  uint64_t size_bytes)
{
	uint64_t before = r->charged_bytes, after = region_pages(size_bytes);
	struct memory old = memory_of(r), m;
	int err;

	lock_assert_mutex_held(&node->lock);
	if (r->dm)
		return error_set(-EOPNOTSUPP,
				 "region %s is device memory, which keeps its "
				 "size",
				 r->name);
	if (r->declared.kind != MEM_DECLARED_NOT)
		return error_set(-EOPNOTSUPP,
				 "the switch knows region %s, which keeps its "
				 "size",
				 r->name);
	err = make_busy(r);
	if (err)
		return err;
	if (after > before)
		err = charge(node, r, after - before);
	if (!err) {
		pthread_mutex_unlock(&node->lock);
		err = memory_make(node, r->tenant->pd, size_bytes, &m);
		if (!err)
			err = place(node, r, &m);
		pthread_mutex_lock(&node->lock);
		if (err && after > before)
			uncharge(node, r, after - before);
	}
	if (err) {
		r->busy = false;
		return err;
	}
	grant_revoke_region(node, r);
	pthread_mutex_unlock(&node->lock);
	/* The key first, so that what is copied is the last word. */
	memory_close(&old);
	memory_settle(&old);
	memcpy(m.addr, old.addr, u64_min(old.size_bytes, size_bytes));
	memory_free(node, &old);
	pthread_mutex_lock(&node->lock);
	node->bytes_scrubbed += before;
	if (after < before)
		uncharge(node, r, before - after);
	memory_give(node, r, &m);
	r->busy = false;
	declare_region_anew(node, r);
	return 0;
}

int region_delete(struct mem_node *node, struct mem_region *r)
{
	struct memory old = memory_of(r);
	int err = make_busy(r);

	lock_assert_mutex_held(&node->lock);
	if (err)
		return err;
	grant_revoke_region(node, r);
	pthread_mutex_unlock(&node->lock);
	declare_region_end(node, r);
	memory_free(node, &old);
	pthread_mutex_lock(&node->lock);
	node->bytes_scrubbed += r->charged_bytes;
	extract(node, r);
	return 0;
}

void region_expire(struct mem_node *node)
{
	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		struct mem_region *r = node->regions[i];
		const struct mem_conn *owner;
		int err;

		if (!r || r->busy || !r->owner_nonce)
			continue;
		owner = node->conns[r->owner_slot];
		if (owner && owner->nonce == r->owner_nonce)
			continue;
		log_info("memnode", "region %s ends with its owner", r->name);
		err = region_delete(node, r);
		ASSERT(err == 0); /* it was not busy */
	}
}
