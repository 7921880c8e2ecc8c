/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heartbeats: one thread per rack tells the nodes that its connections are
 * alive, and tells the connections when a node has forgotten them, so that an
 * operation need not find out by waiting.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client_priv.h"
#include "error.h"
#include "log.h"

/* A connection as the thread needs it outside the lock. */
struct beat {
	uint32_t node;
	char id[CLIENT_ID_MAX];
};

/* Copies the connections; the rack's lock is held. */
static struct beat *collect(struct aq_rack *rack, unsigned *count)
{
	struct beat *beats;
	struct list *l;
	unsigned n = 0;

	for (l = rack->bonds.next; l != &rack->bonds; l = l->next)
		n++;
	beats = calloc(n ? n : 1, sizeof(*beats));
	*count = beats ? n : 0;
	if (!beats)
		return NULL;
	n = 0;
	for (l = rack->bonds.next; l != &rack->bonds; l = l->next) {
		struct client_bond *bond =
			container_of(l, struct client_bond, link);

		beats[n].node = bond->node;
		memcpy(beats[n++].id, bond->id, sizeof(bond->id));
	}
	return beats;
}

static void mark_lost(struct aq_rack *rack, const struct beat *b)
{
	struct list *l;

	pthread_mutex_lock(&rack->lock);
	for (l = rack->bonds.next; l != &rack->bonds; l = l->next) {
		struct client_bond *bond =
			container_of(l, struct client_bond, link);

		/* L2, pairs with L3. */
		if (bond->node == b->node && strcmp(bond->id, b->id) == 0)
			atomic_store_explicit(&bond->is_lost, true,
					      memory_order_relaxed);
	}
	pthread_mutex_unlock(&rack->lock);
}

static void beat_once(struct aq_rack *rack, const struct client_caller *caller,
		      const struct beat *b)
{
	char path[CLIENT_PATH_MAX];
	json_t *reply = NULL;
	uint64_t start_ns = client_rack_now_ns(rack);
	uint64_t took_ns;
	int err;

	snprintf(path, sizeof(path), "/v1/connections/%s/heartbeat", b->id);
	err = client_call(caller, &rack->node[b->node], "POST", path, NULL,
			  CLIENT_BEAT_TIMEOUT_MS, CLIENT_REPLY_MAX, &reply);
	json_decref(reply);
	took_ns = client_rack_now_ns(rack) - start_ns;
	/* A node that is only slow is not lost: its silence has a deadline of
	 * its own in every operation. */
	if (err == -ENOENT || err == -ESTALE || err == -EACCES ||
	    (err == -EHOSTDOWN &&
	     took_ns < CLIENT_BEAT_TIMEOUT_MS * 1000000ull / 2)) {
		log_info("client", "a connection is lost: %s", error_last());
		mark_lost(rack, b);
	}
}

static void wait_turn(struct aq_rack *rack)
{
	uint32_t ms = list_is_empty(&rack->keepers)
			      ? rack->beat_ms
			      : u32_min(rack->beat_ms, CLIENT_KEEP_MS);
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += ms / 1000;
	ts.tv_nsec += (long)(ms % 1000) * 1000000;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_nsec -= 1000000000;
		ts.tv_sec++;
	}
	while (!rack->is_closing &&
	       pthread_cond_timedwait(&rack->beat_wake, &rack->lock, &ts) == 0)
		;
}

/* The lock is held, except while a tick runs. A keeper that is removed
 * meanwhile is waited for by who removes it, and the walk begins anew without
 * the rest: they have their turn soon. */
static void tick_keepers(struct aq_rack *rack,
			 const struct client_caller *caller)
{
	struct list *l, *next;

	for (l = rack->keepers.next; l != &rack->keepers && !rack->is_closing;
	     l = next) {
		struct client_keeper *k =
			container_of(l, struct client_keeper, link);

		rack->keeping = k;
		pthread_mutex_unlock(&rack->lock);
		k->tick(k, caller);
		pthread_mutex_lock(&rack->lock);
		next = l->next;
		rack->keeping = NULL;
		pthread_cond_broadcast(&rack->beat_wake);
	}
}

static void *beat_main(void *arg)
{
	struct aq_rack *rack = arg;
	struct client_caller caller = {.send = rack->transport->http,
				       .send_ctx = rack->transport_ctx,
				       .token = rack->token};
	uint64_t beat_ns = 0, now_ns;
	struct beat *beats;
	unsigned i, count;

	if (client_http_create(&caller.http)) {
		log_warn("client", "no heartbeats: %s", error_last());
		return NULL;
	}
	pthread_mutex_lock(&rack->lock);
	for (;;) {
		wait_turn(rack);
		if (rack->is_closing)
			break;
		tick_keepers(rack, &caller);
		now_ns = client_rack_now_ns(rack);
		if (now_ns < beat_ns)
			continue;
		beat_ns = now_ns + rack->beat_ms * 900000ull;
		beats = collect(rack, &count);
		pthread_mutex_unlock(&rack->lock);
		for (i = 0; i < count; i++)
			beat_once(rack, &caller, &beats[i]);
		free(beats);
		pthread_mutex_lock(&rack->lock);
	}
	pthread_mutex_unlock(&rack->lock);
	client_http_destroy(caller.http);
	return NULL;
}

static int start(struct aq_rack *rack)
{
	sigset_t all, before;
	int err;

	/* Signals are the application's: its threads shall get them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&rack->beat, NULL, beat_main, rack);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return error_set(-err, "no thread for heartbeats");
	rack->is_beating = true;
	return 0;
}

int client_beat_add(struct aq_rack *rack, struct client_bond *bond,
		    uint32_t beat_ms)
{
	int err = 0;

	pthread_mutex_lock(&rack->lock);
	rack->beat_ms = u32_min(rack->beat_ms, beat_ms);
	if (!rack->is_beating)
		err = start(rack);
	if (!err)
		list_append(&rack->bonds, &bond->link);
	pthread_mutex_unlock(&rack->lock);
	return err;
}

void client_beat_remove(struct aq_rack *rack, struct client_bond *bond)
{
	pthread_mutex_lock(&rack->lock);
	list_remove(&bond->link);
	pthread_mutex_unlock(&rack->lock);
}

int client_keep_add(struct aq_rack *rack, struct client_keeper *k)
{
	int err = 0;

	pthread_mutex_lock(&rack->lock);
	if (!rack->is_beating)
		err = start(rack);
	if (!err) {
		list_append(&rack->keepers, &k->link);
		pthread_cond_broadcast(&rack->beat_wake);
	}
	pthread_mutex_unlock(&rack->lock);
	return err;
}

void client_keep_remove(struct aq_rack *rack, struct client_keeper *k)
{
	pthread_mutex_lock(&rack->lock);
	while (rack->keeping == k)
		pthread_cond_wait(&rack->beat_wake, &rack->lock);
	list_remove(&k->link);
	pthread_mutex_unlock(&rack->lock);
}

void client_beat_stop(struct aq_rack *rack)
{
	bool was_beating;

	pthread_mutex_lock(&rack->lock);
	was_beating = rack->is_beating;
	rack->is_closing = true;
	pthread_cond_broadcast(&rack->beat_wake);
	pthread_mutex_unlock(&rack->lock);
	if (was_beating)
		pthread_join(rack->beat, NULL);
}
