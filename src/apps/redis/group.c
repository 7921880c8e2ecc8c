/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of one gateway: turns, counters of all, and who has most. */
#include "group.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/error.h"
#include "client.h"

int group_init(struct group *all)
{
	pthread_rwlockattr_t attr;
	int err = -pthread_rwlockattr_init(&attr);

	if (err)
		return error_set(err, "threads: %s", strerror(-err));
	/* Else threads that are busy would keep a writer waiting for ever. */
	(void)pthread_rwlockattr_setkind_np(
		&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	err = -pthread_rwlock_init(&all->turns, &attr);
	(void)pthread_rwlockattr_destroy(&attr); /* cannot fail */
	if (!err)
		err = -pthread_mutex_init(&all->changes, NULL);
	return err ? error_set(err, "threads: %s", strerror(-err)) : 0;
}

void group_release(struct group *all)
{
	(void)pthread_rwlock_destroy(&all->turns); /* nobody has them */
	(void)pthread_mutex_destroy(&all->changes);
}

void group_add(struct group *all, struct gateway *g)
{
	ASSERT(all->count < REDIS_THREADS_MAX);
	g->group = all;
	all->member[all->count++] = g;
}

/* ---- turns ---------------------------------------------------------------
 */

void group_turn_begin(struct group *all)
{
	pthread_rwlock_rdlock(&all->turns);
}

void group_turn_end(struct group *all)
{
	pthread_rwlock_unlock(&all->turns);
}

void group_look_begin(struct gateway *g)
{
	ASSERT(!g->stage && !g->batch_len);
	pthread_rwlock_unlock(&g->group->turns);
	pthread_rwlock_wrlock(&g->group->turns);
}

void group_look_end(struct gateway *g)
{
	pthread_rwlock_unlock(&g->group->turns);
	pthread_rwlock_rdlock(&g->group->turns);
}

void group_changes_begin(struct group *all)
{
	pthread_mutex_lock(&all->changes);
}

void group_changes_end(struct group *all)
{
	pthread_mutex_unlock(&all->changes);
}

/* ---- counters ------------------------------------------------------------
 */

/* They are nothing but counters. */
void gateway_stats_add(struct gateway_stats *sum, const struct gateway_stats *s)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)s;

	for (size_t i = 0; i < sizeof(*s) / sizeof(*from); i++)
		to[i] += from[i];
}

void group_sum(struct gateway *g, struct gateway_stats *stats,
	       struct group_sum *sum)
{
	uint64_t resets =
		atomic_load_explicit(&g->group->resets, memory_order_relaxed);

	*stats = (struct gateway_stats){0};
	*sum = (struct group_sum){0};
	for (uint32_t i = 0; i < g->group->count; i++) {
		const struct gateway *m = g->group->member[i];
		struct aq_kv_stats kv;

		if (m->resets == resets)
			gateway_stats_add(stats, &m->stats);
		sum->client_bytes += atomic_load_explicit(&m->client_bytes,
							  memory_order_relaxed);
		sum->client_count += m->client_count;
		aq_kv_client_stats(m->kv_client, &kv);
		sum->far_gets += kv.gets;
		sum->far_get_trips += kv.get_trips;
	}
}

void group_catch_up(struct gateway *g)
{
	uint64_t resets =
		atomic_load_explicit(&g->group->resets, memory_order_relaxed);

	if (g->resets == resets)
		return;
	g->resets = resets;
	g->stats = (struct gateway_stats){0};
	hist_init(&g->latency);
}

void group_reset(struct gateway *g)
{
	(void)atomic_fetch_add_explicit(&g->group->resets, 1,
					memory_order_relaxed);
	group_catch_up(g);
}

/* ---- the table -----------------------------------------------------------
 */

bool group_has_found(struct gateway *g)
{
	uint64_t finds =
		atomic_load_explicit(&g->group->finds, memory_order_relaxed);
	bool is_new = finds != g->table.finds;

	g->table.finds = finds;
	return is_new;
}

void group_found(struct gateway *g)
{
	(void)atomic_fetch_add_explicit(&g->group->finds, 1,
					memory_order_relaxed);
	(void)group_has_found(g); /* this one knows */
	for (uint32_t i = 0; i < g->group->count; i++)
		if (g->group->member[i] != g)
			(void)eventfd_write(g->group->member[i]->wake_fd, 1);
}

/* ---- memory --------------------------------------------------------------
 */

bool group_is_largest(const struct gateway *g)
{
	const struct gateway *most = g;
	uint64_t bytes = 0;

	if (atomic_load_explicit(&g->group->client_bytes,
				 memory_order_relaxed) <=
	    g->options->clients_bytes_max)
		return false;
	for (uint32_t i = 0; i < g->group->count; i++) {
		const struct gateway *m = g->group->member[i];
		uint64_t has = atomic_load_explicit(&m->client_bytes,
						    memory_order_relaxed);

		if (has > bytes) {
			bytes = has;
			most = m;
		}
	}
	/* It fails only if the other one has been woken often already. */
	if (most != g)
		(void)eventfd_write(most->wake_fd, 1);
	return most == g;
}
