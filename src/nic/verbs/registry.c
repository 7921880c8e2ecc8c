/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry: which devices exist and which contexts are open in this
 * process. The API finds devices by no handle at all, so this is the one place
 * of the whole tree with global state.
 *
 * fork: the NIC, its thread and its lock stay with the parent. In the child
 * every inherited object is an empty shell; an inherited context opens a NIC of
 * its own as soon as it is used.
 */
#include <endian.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_priv.h"

static struct {
	pthread_once_t once;
	struct lock lock;
	const struct nic_provider *provider; /* NULL: the default one */
	struct verbs_device *devices;
	struct verbs_ctx *contexts;
} registry = {.once = PTHREAD_ONCE_INIT};

/* os/ defines the real one; without it there are no devices. */
__attribute__((weak)) const struct nic_provider *verbs_default_provider(void)
{
	return NULL;
}

/* The child must not see half a change of the lists. */
static void before_fork(void)
{
	struct verbs_ctx *ctx;

	lock_take(&registry.lock);
	for (ctx = registry.contexts; ctx; ctx = ctx->next)
		pthread_mutex_lock(&ctx->v.context.mutex);
}

static void after_fork_parent(void)
{
	struct verbs_ctx *ctx;

	for (ctx = registry.contexts; ctx; ctx = ctx->next)
		pthread_mutex_unlock(&ctx->v.context.mutex);
	lock_drop(&registry.lock);
}

static void after_fork_child(void)
{
	struct verbs_ctx *ctx;

	for (ctx = registry.contexts; ctx; ctx = ctx->next) {
		verbs_ctx_orphan(ctx);
		pthread_mutex_unlock(&ctx->v.context.mutex);
	}
	lock_drop(&registry.lock);
}

static void registry_start(void)
{
	/* Without memory for the handlers a forked child must not use what it
	 * inherited; it may not anyway. */
	(void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void verbs_set_provider(const struct nic_provider *provider)
{
	lock_take(&registry.lock);
	registry.provider = provider;
	lock_drop(&registry.lock);
}

const struct nic_provider *verbs_provider(void)
{
	const struct nic_provider *p;

	pthread_once(&registry.once, registry_start);
	lock_take(&registry.lock);
	p = registry.provider;
	lock_drop(&registry.lock);
	return p ? p : verbs_default_provider();
}

static void device_describe(struct verbs_device *dev)
{
	char name[64] = "";

	dev->provider->describe(dev->provider->ctx, dev->index, name,
				&dev->guid);
	dev->ibv.node_type = IBV_NODE_CA;
	dev->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(dev->ibv.name, sizeof(dev->ibv.name), "%.63s", name);
	snprintf(dev->ibv.dev_name, sizeof(dev->ibv.dev_name), "uverbs%u",
		 dev->index);
	snprintf(dev->ibv.dev_path, sizeof(dev->ibv.dev_path),
		 "/sys/class/infiniband_verbs/uverbs%u", dev->index);
	snprintf(dev->ibv.ibdev_path, sizeof(dev->ibv.ibdev_path),
		 "/sys/class/infiniband/%.63s", name);
}

struct verbs_device *verbs_device_get(const struct nic_provider *provider,
				      unsigned index)
{
	struct verbs_device *fresh = calloc(1, sizeof(*fresh));
	struct verbs_device *dev;

	if (!fresh)
		return NULL;
	fresh->provider = provider;
	fresh->index = index;
	/* Outside the lock: the provider has locks and fork handlers too. */
	device_describe(fresh);

	lock_take(&registry.lock);
	for (dev = registry.devices; dev; dev = dev->next)
		if (dev->provider == provider && dev->index == index &&
		    dev->guid == fresh->guid &&
		    !strcmp(dev->ibv.name, fresh->ibv.name))
			break;
	if (!dev) {
		dev = fresh;
		fresh = NULL;
		dev->next = registry.devices;
		registry.devices = dev;
	}
	dev->refs++;
	lock_drop(&registry.lock);
	free(fresh);
	return dev;
}

struct verbs_device *verbs_device_find(const struct ibv_device *device)
{
	struct verbs_device *dev;

	lock_take(&registry.lock);
	for (dev = registry.devices; dev; dev = dev->next)
		if (&dev->ibv == device)
			break;
	if (dev)
		dev->refs++;
	lock_drop(&registry.lock);
	return dev;
}

void verbs_device_put(struct verbs_device *dev)
{
	struct verbs_device **at;
	bool last;

	lock_take(&registry.lock);
	last = --dev->refs == 0;
	if (last) {
		for (at = &registry.devices; *at != dev; at = &(*at)->next)
			;
		*at = dev->next;
	}
	lock_drop(&registry.lock);
	if (last)
		free(dev);
}

void verbs_ctx_register(struct verbs_ctx *ctx)
{
	lock_take(&registry.lock);
	ctx->next = registry.contexts;
	ctx->prev = &registry.contexts;
	if (ctx->next)
		ctx->next->prev = &ctx->next;
	registry.contexts = ctx;
	lock_drop(&registry.lock);
}

void verbs_ctx_unregister(struct verbs_ctx *ctx)
{
	lock_take(&registry.lock);
	*ctx->prev = ctx->next;
	if (ctx->next)
		ctx->next->prev = ctx->prev;
	lock_drop(&registry.lock);
}
