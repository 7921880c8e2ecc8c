/* SPDX-License-Identifier: Apache-2.0 */
/* A rack's inside for rooms above, see keepalive.h, and the thread of the
 * keepalives, which is not the one of the heartbeats: a tick may wait for a
 * node.
 */
#include "keepalive.h"
#include "base/lock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "client_priv.h"

/* ---- the keepalives' thread --------------------------------------------- */

static void wait_turn(struct aq_rack *rack)
{
	struct timespec ts =
		clock_timespec(clock_mono_ns() + CLIENT_KEEP_MS * 1000000ull);

	while (!rack->is_closing &&
	       pthread_cond_timedwait(&rack->keepalive_wake, &rack->lock,
				      &ts) == 0)
		;
}

/* The lock is held, except while a tick runs. A keepalive that is removed
 * meanwhile is waited for by who removes it, and the walk begins anew without
 * the rest: they have their turn soon. */
static void tick_keepalives(struct aq_rack *rack,
			    const struct client_caller *caller)
{
	struct list *l, *next;

	lock_assert_mutex_held(&rack->lock);
	for (l = rack->keepalives.next;
	     l != &rack->keepalives && !rack->is_closing; l = next) {
		struct client_keepalive *k =
			container_of(l, struct client_keepalive, link);

		rack->keeping = k;
		pthread_mutex_unlock(&rack->lock);
		k->tick(k, caller);
		pthread_mutex_lock(&rack->lock);
		next = l->next;
		rack->keeping = NULL;
		pthread_cond_broadcast(&rack->keepalive_wake);
	}
}

static void *keep_main(void *arg)
{
	struct aq_rack *rack = arg;
	struct client_caller caller = {.send = rack->transport->http,
				       .send_ctx = rack->transport_ctx,
				       .token = rack->token};

	if (client_http_create(&caller.http)) {
		log_warn("client", "nothing is kept: %s", error_last());
		return NULL;
	}
	pthread_mutex_lock(&rack->lock);
	while (!rack->is_closing) {
		tick_keepalives(rack, &caller);
		wait_turn(rack);
	}
	pthread_mutex_unlock(&rack->lock);
	client_http_destroy(caller.http);
	return NULL;
}

/* The lock is held. */
static int start(struct aq_rack *rack)
{
	int err;

	lock_assert_mutex_held(&rack->lock);
	if (rack->is_keeping)
		return 0;
	err = thread_start(&rack->keep, keep_main, rack);
	if (err)
		return error_set(err, "no thread that looks after things");
	rack->is_keeping = true;
	return 0;
}

int client_keep_add(struct aq_rack *rack, struct client_keepalive *k)
{
	int err;

	pthread_mutex_lock(&rack->lock);
	err = start(rack);
	if (!err)
		list_append(&rack->keepalives, &k->link);
	pthread_mutex_unlock(&rack->lock);
	return err;
}

void client_keep_remove(struct aq_rack *rack, struct client_keepalive *k)
{
	pthread_mutex_lock(&rack->lock);
	while (rack->keeping == k)
		pthread_cond_wait(&rack->keepalive_wake, &rack->lock);
	list_remove(&k->link);
	pthread_mutex_unlock(&rack->lock);
}

void client_keep_stop(struct aq_rack *rack)
{
	bool was_keeping;

	pthread_mutex_lock(&rack->lock);
	was_keeping = rack->is_keeping;
	rack->is_closing = true;
	pthread_cond_broadcast(&rack->keepalive_wake);
	pthread_mutex_unlock(&rack->lock);
	if (was_keeping)
		pthread_join(rack->keep, NULL);
}

/* ---- the rack's inside -------------------------------------------------- */

int client_keep_caller(struct aq_rack *rack, const struct client_caller **out)
{
	struct client_thread *t;
	int err = client_thread_get(rack, &t);

	if (!err)
		*out = &t->caller;
	return err;
}

int client_keep_device(struct aq_rack *rack, struct client_device *out)
{
	int err = client_rack_check(rack);

	if (err)
		return err;
	pthread_mutex_lock(&rack->lock);
	err = client_device_open(rack);
	pthread_mutex_unlock(&rack->lock);
	if (!err)
		*out = (struct client_device){rack->verbs, rack->context,
					      rack->pd};
	return err;
}

uint64_t client_keep_now_ns(const struct aq_rack *rack)
{
	return client_rack_now_ns(rack);
}

const struct client_node *client_keep_node(const struct aq_rack *rack,
					   uint32_t index)
{
	return &rack->node[index];
}

unsigned client_keep_engines(const struct aq_rack *rack,
			     struct client_node engines[CLIENT_NODE_MAX])
{
	return client_engines_find(client_rack_listed(rack), rack->rundir,
				   engines);
}

void client_keep_engine_token(const struct aq_rack *rack,
			      char token[CLIENT_TOKEN_MAX])
{
	client_engine_token(client_rack_listed(rack), rack->rundir, token);
}

int client_keep_shape(struct aq_region *region, struct client_shape *out)
{
	struct aq_rack *rack = region->rack;
	int err = client_rack_check(rack);

	if (!err)
		err = client_region_lock(region, client_rack_deadline_ns(rack));
	if (err)
		return err;
	if (region->is_stale)
		err = client_region_dead(region);
	out->rack = rack;
	memcpy(out->name, region->name, sizeof(out->name));
	out->is_read_only = region->flags & AQ_REGION_READ_ONLY;
	out->is_revocable = region->flags & AQ_REGION_REVOCABLE;
	out->map = region->map;
	pthread_mutex_unlock(&region->lock);
	return err;
}

bool client_keep_has_program(const struct aq_rack *rack, const char *program)
{
	return client_has_program(rack->config, program);
}

uint64_t client_keep_version(const struct aq_region *region)
{
	/* V1, pairs with V0; the map itself is read under the lock. */
	uint32_t version =
		atomic_load_explicit(&region->version, memory_order_relaxed);

	return region->serial << 32 | version;
}

int client_keep_refresh(struct aq_region *region, uint64_t deadline_ns)
{
	struct client_thread *t;
	int err = client_thread_get(region->rack, &t);

	return err ? err
		   : client_region_refresh(
			     region, t,
			     client_rack_until_ns(region->rack, deadline_ns));
}
