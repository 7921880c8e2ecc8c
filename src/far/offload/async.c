/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous part of <aquifer/aquifer.h>: contexts and requests. Poll
 * groups are in poll.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "async_priv.h"
#include "base/error.h"
#include "base/hex.h"
#include "client/link.h"
#include "client/tally.h"

enum {
	HUGE_BYTES = 2 << 20,
};

static int make_memory(struct aq_async *a)
{
	a->memory = mmap(NULL, a->memory_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->memory == MAP_FAILED) {
		a->memory = NULL;
		return error_set(-ENOMEM, "no memory for rings");
	}
	/* Fewer entries of the TLB; without them it works as well. A child gets
	 * zeros, so that it notices and the NIC's pages stay ours. */
	if (a->memory_bytes >= HUGE_BYTES)
		(void)madvise(a->memory, a->memory_bytes, MADV_HUGEPAGE);
	(void)madvise(a->memory, a->memory_bytes, MADV_WIPEONFORK);
	a->is_own = a->memory;
	return 0;
}

static int make_rings(struct aq_async *a, const struct aq_async_options *o)
{
	struct offload_map map;
	int err = offload_map_make(
		o->requests ? o->requests : OFFLOAD_ENTRIES,
		o->write_bytes ? o->write_bytes : OFFLOAD_DATA_BYTES,
		o->read_bytes ? o->read_bytes : OFFLOAD_DATA_BYTES, &map);

	if (err)
		return error_set(err,
				 "rings have 16 to %d requests and 4 KiB to "
				 "%d MiB of data, powers of two",
				 AQ_ASYNC_REQUESTS_MAX,
				 AQ_ASYNC_BYTES_MAX >> 20);
	a->memory_bytes = align_up(map.total_bytes, 4096);
	err = make_memory(a);
	if (err)
		return err;
	err = offload_ring_init(&a->ring, &map, a->memory, "libaquifer");
	return err ? error_set(err, "no memory for rings") : 0;
}

static int make_keys(struct aq_async *a)
{
	const struct client_verbs *v;
	uint8_t random[ASYNC_SESSION_CHARS / 2];

	v = a->device.verbs;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return error_set(-EIO, "the kernel gives no random numbers");
	hex_write(a->session, random, sizeof(random));
	a->mr = v->reg_mr(a->device.pd, a->memory, a->memory_bytes,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				  IBV_ACCESS_REMOTE_WRITE);
	a->cq = a->mr ? v->create_cq(a->device.context, 4, NULL, NULL, 0)
		      : NULL;
	return a->cq ? 0
		     : error_set(-ENOMEM, "the NIC has no more queues or keys");
}

static void async_free(struct aq_async *a)
{
	client_tally_close(a->rack, a->ring.tally);
	client_bond_remove(a->rack, &a->bond);
	for (uint32_t i = 0; i < a->node_count; i++)
		offload_async_node_forget(a, i);
	if (a->cq)
		(void)a->device.verbs->destroy_cq(a->cq);
	if (a->mr)
		(void)a->device.verbs->dereg_mr(a->mr);
	if (a->memory)
		(void)munmap(a->memory, a->memory_bytes);
	offload_ring_release(&a->ring);
	for (uint32_t i = 0; i < a->region_count; i++)
		free(a->region[i]);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

/* From the application's thread: within the rack's deadline. */
static int attach_now(struct aq_async *a)
{
	const struct client_caller *caller;
	uint64_t deadline_ns = client_keep_now_ns(a->rack) +
			       1000000ull * aq_rack_deadline(a->rack);
	int err = client_keep_caller(a->rack, &caller);

	if (!err)
		err = offload_async_attach(a, caller, deadline_ns);
	/* A node was only slow. To callers -EAGAIN is a ring that is full. */
	return err == -EAGAIN ? -EHOSTDOWN : err;
}

static int check_options(const struct aq_async_options *o)
{
	if (o->engine && !client_node_name_is_valid(o->engine))
		return error_set(-EINVAL, "'%.40s' is no engine's name",
				 o->engine);
	if (o->flags & ~(uint32_t)AQ_ASYNC_DIRECT)
		return error_set(-EINVAL, "unknown flags 0x%x", o->flags);
	return 0;
}

int aq_async_open(struct aq_rack *rack, const struct aq_async_options *options,
		  struct aq_async **async)
{
	static const struct aq_async_options none;
	const struct aq_async_options *o = options ? options : &none;
	struct aq_async *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return error_set(-ENOMEM, "no memory for a context");
	a->rack = rack;
	a->batch = o->batch;
	a->flush_us = o->flush_us;
	a->keepalive.tick = offload_async_tick;
	list_init(&a->keepalive.link);
	client_bond_init(&a->bond, 0);
	atomic_init(&a->lost, 0);
	pthread_mutex_init(&a->lock, NULL);
	a->is_direct = o->flags & AQ_ASYNC_DIRECT;
	err = check_options(o);
	if (!err)
		err = client_keep_device(rack, &a->device);
	if (!err)
		err = make_rings(a, o);
	if (!err && o->engine)
		snprintf(a->engine_name, sizeof(a->engine_name), "%s",
			 o->engine);
	if (!err)
		err = make_keys(a);
	if (!err) {
		pthread_mutex_lock(&a->lock);
		err = attach_now(a);
		pthread_mutex_unlock(&a->lock);
	}
	if (!err) {
		a->ring.clock = client_clock_real();
		a->ring.tally = client_tally_open(rack, TALLY_ASYNC,
						  a->now.engine.name);
		err = client_keep_add(rack, &a->keepalive);
	}
	if (err) {
		if (a->memory)
			offload_async_fence(a);
		async_free(a);
		return err;
	}
	*async = a;
	return 0;
}

void aq_async_close(struct aq_async *a)
{
	const struct client_caller *caller;

	if (!a)
		return;
	/* In a child everything belongs to the parent, and a lock may be held
	 * by a thread that does not exist here. */
	if (client_keep_caller(a->rack, &caller))
		return;
	client_keep_remove(a->rack, &a->keepalive);
	pthread_mutex_lock(&a->lock);
	offload_async_detach(a, caller);
	pthread_mutex_unlock(&a->lock);
	async_free(a);
}

/* ---- regions ------------------------------------------------------------ */

/* The context's number of a rack's node. */
static int node_number(struct aq_async *a, uint32_t rack_node)
{
	uint32_t i = 0;

	while (i < a->node_count && a->node[i].rack_node != rack_node)
		i++;
	if (i == OFFLOAD_NODES_MAX)
		return error_set(-ENOSPC,
				 "a context uses at most %d memory nodes",
				 OFFLOAD_NODES_MAX);
	if (i == a->node_count) {
		memset(&a->node[i], 0, sizeof(a->node[i]));
		a->node[i].rack_node = rack_node;
		for (unsigned k = 0; k < OFFLOAD_KINDS; k++)
			client_bond_init(&a->node[i].bond[k], rack_node);
		a->node_count++;
	}
	return (int)i;
}

static int add_locked(struct aq_async *a, struct async_region *r)
{
	const struct client_map *m = &r->shape.map;
	uint32_t nodes = a->node_count;
	int n, number = 0;

	if (m->piece_count > OFFLOAD_NODES_MAX)
		return error_set(-ENOSPC,
				 "a region of a context is on at most %d "
				 "memory nodes",
				 OFFLOAD_NODES_MAX);
	for (uint32_t i = 0; i < m->piece_count && number >= 0; i++) {
		n = node_number(a, m->piece[i].node);
		if (n < 0)
			number = n;
		else
			r->piece[i].node = (uint32_t)n;
	}
	if (number >= 0)
		number = offload_ring_add(&a->ring, m->size_bytes,
					  r->shape.is_read_only);
	if (number < 0) {
		a->node_count = nodes;
		return number == -ENOSPC ? error_set(-ENOSPC,
						     "a context has at most %d "
						     "regions",
						     AQ_ASYNC_REGIONS_MAX)
					 : number;
	}
	a->region[a->region_count++] = r;
	return number;
}

int aq_async_add(struct aq_async *a, struct aq_region *region)
{
	struct async_region *r = calloc(1, sizeof(*r));
	uint32_t nodes;
	int err, number;

	if (!r)
		return error_set(-ENOMEM, "no memory for a region");
	err = async_is_own(a) ? client_keep_shape(region, &r->shape)
			      : error_set(-ESTALE, "the context was opened by "
						   "the parent process");
	if (!err && r->shape.rack != a->rack)
		err = error_set(-EINVAL, "the region is of another rack");
	if (err) {
		free(r);
		return err;
	}
	pthread_mutex_lock(&a->lock);
	nodes = a->node_count;
	number = add_locked(a, r);
	if (number < 0) {
		pthread_mutex_unlock(&a->lock);
		free(r);
		return number;
	}
	/* What is under way goes on with the session that follows. */
	err = attach_now(a);
	if (err) { /* no engine: nobody knows of it, so it never was */
		while (a->node_count > nodes)
			offload_async_node_forget(a, --a->node_count);
		a->region_count--;
		a->ring.region_count--;
		pthread_mutex_unlock(&a->lock);
		/* There was an engine. -ENOENT would speak of the region. */
		if (err == -ENOENT)
			err = error_prefix(-EHOSTDOWN,
					   "region %s: ", r->shape.name);
		free(r);
		return err;
	}
	if (r->err)
		err = error_set(r->err, "region %s is gone", r->shape.name);
	if (!err && a->node[r->piece[0].node].err)
		err = error_set(a->node[r->piece[0].node].err,
				"region %s: its memory node cannot be used",
				r->shape.name);
	if (err) /* the number exists, but the caller is not told */
		offload_ring_bound(&a->ring, (uint32_t)number, 0, err);
	pthread_mutex_unlock(&a->lock);
	return err ? err : number;
}

/* ---- requests ----------------------------------------------------------- */

HOT int64_t aq_async_read(struct aq_async *a, uint32_t region, uint64_t offset,
			  void *dest, size_t len_bytes)
{
	/* E1, pairs with E0. */
	int lost = atomic_load_explicit(&a->lost, memory_order_relaxed);

	if (UNLIKELY(lost || !async_is_own(a)))
		return lost ? lost : -ESTALE;
	return offload_ring_read(&a->ring, region, offset, dest, len_bytes);
}

HOT int64_t aq_async_write(struct aq_async *a, uint32_t region, uint64_t offset,
			   const void *src, size_t len_bytes)
{
	int lost = atomic_load_explicit(&a->lost, memory_order_relaxed);

	if (UNLIKELY(lost || !async_is_own(a)))
		return lost ? lost : -ESTALE;
	return offload_ring_write(&a->ring, region, offset, src, len_bytes);
}

int aq_async_done(struct aq_async *a, int64_t id)
{
	int err =
		LIKELY(async_is_own(a)) ? offload_ring_look(&a->ring) : -ESTALE;

	return UNLIKELY(err) ? err : offload_ring_result(&a->ring, id);
}

uint32_t aq_async_pending(const struct aq_async *a)
{
	return offload_ring_pending(&a->ring);
}
