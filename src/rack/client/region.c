/* SPDX-License-Identifier: Apache-2.0 */
/* Regions over one or several nodes: make, find, follow, remove. */
#include "client_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/log.h"

/* By trying: the holder talks to a node, so a nap more or less does not matter,
 * and the deadline is on the rack's own clock. */
int client_region_lock(struct aq_region *region, uint64_t deadline_ns)
{
	const struct timespec nap = {.tv_nsec = CLIENT_NAP_NS};
	struct aq_rack *rack = region->rack;

	while (pthread_mutex_trylock(&region->lock)) {
		if (client_rack_now_ns(rack) > deadline_ns)
			return error_set(-EHOSTDOWN,
					 "region %s: another thread waits for "
					 "its node beyond the deadline",
					 region->name);
		(void)nanosleep(&nap, NULL);
		rack->transport->relax(rack->transport_ctx);
	}
	return 0;
}

/* V0, pairs with V1: views with another version copy the map again. */
static void publish(struct aq_region *region)
{
	atomic_store_explicit(&region->size_bytes, region->map.size_bytes,
			      memory_order_relaxed);
	atomic_fetch_add_explicit(&region->version, 1, memory_order_relaxed);
}

int client_region_dead(const struct aq_region *region)
{
	if (region->is_closed)
		return error_set(-EBADF, "region %s was closed", region->name);
	return error_set(-ESTALE,
			 "region %s is not what was opened any more; open or "
			 "create it again",
			 region->name);
}

static int refresh_locked(struct aq_region *region, struct client_thread *t,
			  uint64_t deadline_ns)
{
	struct client_map *fresh = malloc(sizeof(*fresh));
	char name[CLIENT_PIECE_NAME_MAX];
	uint32_t i;
	int err = 0;

	if (!fresh)
		return error_set(-ENOMEM, "no memory for a region map");
	*fresh = region->map;
	for (i = 0; i < fresh->piece_count && !err; i++) {
		piece_name_write(region->name, i, fresh->piece_count,
				 fresh->stripe_shift, name);
		err = client_piece_follow(t, name, &region->map.piece[i],
					  deadline_ns, &fresh->piece[i]);
	}
	if (err == -ESTALE) {
		char why[ERROR_TEXT_MAX];

		(void)snprintf(why, sizeof(why), "%s", error_last());
		region->is_stale = true;
		publish(region);
		err = error_set(err, "region %s %s; open or create it again",
				region->name, why);
	}
	if (!err) {
		fresh->size_bytes = client_map_size(fresh);
		region->map = *fresh;
		publish(region);
	}
	free(fresh);
	return err;
}

int client_region_refresh(struct aq_region *region, struct client_thread *t,
			  uint64_t deadline_ns)
{
	int err = client_region_lock(region, deadline_ns);

	if (err)
		return err;
	err = region->is_stale ? client_region_dead(region)
			       : refresh_locked(region, t, deadline_ns);
	pthread_mutex_unlock(&region->lock);
	return err;
}

/* ---- handles ------------------------------------------------------------ */

int client_region_handle(struct aq_rack *rack, const char *name, unsigned flags,
			 const struct client_map *map, struct aq_region **out)
{
	struct aq_region *r = calloc(1, sizeof(*r));
	uint32_t slot = 0;

	if (!r)
		return error_set(-ENOMEM, "no memory for a region");
	pthread_mutex_lock(&rack->lock);
	while (slot < CLIENT_REGION_MAX && rack->slot_used[slot])
		slot++;
	if (slot < CLIENT_REGION_MAX) {
		rack->slot_used[slot] = 1;
		r->serial = ++rack->region_serial;
	}
	pthread_mutex_unlock(&rack->lock);
	if (slot == CLIENT_REGION_MAX) {
		free(r);
		return error_set(-EMFILE,
				 "a rack handle has at most %d open regions",
				 CLIENT_REGION_MAX);
	}
	r->rack = rack;
	r->slot = slot;
	r->flags = flags;
	r->map = *map;
	memcpy(r->name, name, strlen(name) + 1);
	atomic_init(&r->version, 1);
	atomic_init(&r->size_bytes, map->size_bytes);
	pthread_mutex_init(&r->lock, NULL);
	*out = r;
	return 0;
}

static void region_free(struct aq_region *region)
{
	if (!region)
		return;
	pthread_mutex_destroy(&region->lock);
	free(region);
}

void client_region_free_closed(struct aq_rack *rack)
{
	for (uint32_t i = 0; i < CLIENT_CLOSED_KEPT; i++)
		region_free(rack->closed[i]);
}

/* A handle that is used after this says so for a while: it is kept until so
 * many others were closed. */
void aq_region_close(struct aq_region *region)
{
	struct aq_region *oldest, **place;
	struct aq_rack *rack;
	bool again;

	if (!region)
		return;
	rack = region->rack;
	if (client_rack_check(rack)) { /* the lock may be another thread's */
		free(region);
		return;
	}
	pthread_mutex_lock(&region->lock);
	again = region->is_closed;
	region->is_closed = region->is_stale = true;
	publish(region);
	pthread_mutex_unlock(&region->lock);
	if (again)
		return;
	pthread_mutex_lock(&rack->lock);
	rack->slot_used[region->slot] = 0;
	place = &rack->closed[rack->closed_count++ % CLIENT_CLOSED_KEPT];
	oldest = *place;
	*place = region;
	pthread_mutex_unlock(&rack->lock);
	region_free(oldest);
}

int client_name_check(const char *name)
{
	if (piece_region_is_valid(name))
		return 0;
	return error_set(-EINVAL,
			 "'%.60s' is no region name: 1 to %d letters, digits, "
			 "'_' and '-', the first no '-'",
			 name, AQ_REGION_NAME_MAX);
}

int aq_region_open(struct aq_rack *rack, const char *name, unsigned flags,
		   struct aq_region **region)
{
	struct client_thread *t;
	struct client_map *map;
	int err = client_thread_get(rack, &t);

	if (!err)
		err = client_name_check(name);
	if (err)
		return err;
	if (flags & ~(unsigned)(AQ_REGION_READ_ONLY | AQ_REGION_REVOCABLE))
		return error_set(-EINVAL, "unknown flags %#x", flags);
	map = malloc(sizeof(*map));
	if (!map)
		return error_set(-ENOMEM, "no memory for a region map");
	err = client_region_find(t, name, client_rack_deadline_ns(rack), map);
	if (!err)
		err = client_region_handle(rack, name, flags, map, region);
	free(map);
	return err;
}

/* ---- size --------------------------------------------------------------- */

static int resize_pieces(struct aq_region *region, struct client_thread *t,
			 uint64_t size_bytes, bool force, uint64_t deadline_ns,
			 struct client_map *map)
{
	uint32_t i, n = map->piece_count;
	char name[CLIENT_PIECE_NAME_MAX];
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		piece_name_write(region->name, i, n, map->stripe_shift, name);
		err = client_piece_resize(
			t, map->piece[i].node, name,
			client_piece_bytes(size_bytes, i, n, map->stripe_shift),
			force, deadline_ns, &map->piece[i]);
	}
	map->size_bytes = client_map_size(map);
	return err == -ENOENT ? -ESTALE : err;
}

static int resize(struct aq_region *region, uint64_t size_bytes, bool force)
{
	struct aq_rack *rack = region->rack;
	char words[ERROR_TEXT_MAX];
	uint64_t before, deadline_ns;
	struct client_thread *t;
	int err = client_thread_get(rack, &t);

	if (err)
		return err;
	if (size_bytes == 0 || size_bytes >> 48)
		return error_set(-EINVAL,
				 "a region has 1 byte to 256 TiB, not %llu",
				 (unsigned long long)size_bytes);
	deadline_ns = client_rack_deadline_ns(rack);
	err = client_region_refresh(region, t, deadline_ns);
	if (!err)
		err = client_region_lock(region, deadline_ns);
	if (err)
		return err;
	before = region->map.size_bytes;
	err = resize_pieces(region, t, size_bytes, force, deadline_ns,
			    &region->map);
	if (err && region->map.piece_count > 1 && size_bytes > before) {
		/* One of several had no room: back to what all have. */
		snprintf(words, sizeof(words), "%s", error_last());
		if (resize_pieces(region, t, before, force, deadline_ns,
				  &region->map))
			log_warn("client", "region %s keeps uneven pieces: %s",
				 region->name, error_last());
		err = error_set(err, "%s", words);
	}
	publish(region);
	pthread_mutex_unlock(&region->lock);
	return err;
}

int aq_region_resize(struct aq_region *region, uint64_t size_bytes)
{
	return resize(region, size_bytes, false);
}

int aq_region_resize_forced(struct aq_region *region, uint64_t size_bytes)
{
	return resize(region, size_bytes, true);
}

int aq_region_stat(struct aq_region *region, struct aq_region_stat *stat)
{
	uint64_t deadline_ns;
	struct client_thread *t;
	int err = client_thread_get(region->rack, &t);

	if (err)
		return err;
	deadline_ns = client_rack_deadline_ns(region->rack);
	err = client_region_refresh(region, t, deadline_ns);
	if (!err)
		err = client_region_lock(region, deadline_ns);
	if (err)
		return err;
	client_map_stat(&region->map, stat);
	pthread_mutex_unlock(&region->lock);
	return 0;
}

uint64_t aq_region_size(struct aq_region *region)
{
	return atomic_load_explicit(&region->size_bytes, memory_order_relaxed);
}
