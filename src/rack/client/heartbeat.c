/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heartbeats: one thread per rack handle tells the nodes that its connections
 * are alive, and tells the connections when a node has forgotten them, so that
 * an operation need not find out by waiting.
 *
 * Each node gets one request for all connections to it, and all requests are
 * under way at the same time: a node that hangs costs nobody a heartbeat but
 * itself, and gets its next one when the last has ended. Nothing else is done
 * on this thread. Who is due is heartbeat_plan.c's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "client_priv.h"

static int send_one(struct heartbeat *b, uint32_t index)
{
	struct aq_rack *rack = b->rack;
	struct heartbeat_target *t = &b->target[index];
	struct client_http_reply reply = {0};
	int err = t->http ? 0 : client_http_create(&t->http);

	if (!err)
		err = heartbeat_prepare(b, index);
	if (err)
		return err;
	heartbeat_plan_start(&b->plan, index, client_rack_now_ns(rack));
	if (!rack->transport->http)
		return client_http_set_start(rack->heartbeat_set, t->http,
					     &t->request);
	err = rack->transport->http(rack->transport_ctx, t->http, &t->request,
				    &reply);
	heartbeat_finish(b, index, err, &reply);
	return 0;
}

static void send_due(struct heartbeat *b)
{
	for (uint32_t i = 0; i < HEARTBEAT_TARGETS; i++) {
		struct heartbeat_target *t = &b->target[i];

		if (!heartbeat_plan_is_due(&b->plan, i) || !send_one(b, i))
			continue;
		log_warn("client", "no heartbeat: %s", error_last());
		json_decref(t->ids);
		t->ids = NULL;
		free(t->text);
		t->text = NULL;
		heartbeat_plan_fail(&b->plan, i, client_rack_now_ns(b->rack));
	}
}

static void take_answers(struct heartbeat *b)
{
	struct client_http_reply reply;
	struct client_http *h;
	int err = 0;

	for (;;) {
		memset(&reply, 0, sizeof(reply));
		h = client_http_set_next(b->rack->heartbeat_set, &err, &reply);
		if (!h)
			return;
		for (uint32_t i = 0; i < HEARTBEAT_TARGETS; i++)
			if (b->target[i].http == h)
				heartbeat_finish(b, i, err, &reply);
	}
}

static uint32_t left_ms(const struct heartbeat *b, uint32_t heartbeat_ms)
{
	uint64_t left_ns = heartbeat_plan_wait_ns(&b->plan, heartbeat_ms,
						  client_rack_now_ns(b->rack));

	return (uint32_t)((left_ns + 999999) / 1000000);
}

static void *heartbeat_main(void *arg)
{
	struct aq_rack *rack = arg;
	struct heartbeat *b = calloc(1, sizeof(*b));
	uint32_t heartbeat_ms;

	if (!b) {
		log_warn("client", "no memory for heartbeats");
		return NULL;
	}
	b->rack = rack;
	heartbeat_plan_init(&b->plan, CLIENT_HEARTBEAT_IDS);
	pthread_mutex_lock(&rack->lock);
	while (!rack->is_closing) {
		heartbeat_ms = rack->heartbeat_ms;
		heartbeat_plan_look(&b->plan, &rack->bonds, heartbeat_ms,
				    client_rack_now_ns(rack), heartbeat_name,
				    b);
		pthread_mutex_unlock(&rack->lock);
		send_due(b);
		client_http_set_wait(rack->heartbeat_set,
				     left_ms(b, heartbeat_ms));
		take_answers(b);
		pthread_mutex_lock(&rack->lock);
	}
	pthread_mutex_unlock(&rack->lock);
	for (unsigned i = 0; i < HEARTBEAT_TARGETS; i++) {
		if (b->target[i].http)
			client_http_set_drop(rack->heartbeat_set,
					     b->target[i].http);
		client_http_destroy(b->target[i].http);
		json_decref(b->target[i].ids);
		free(b->target[i].text);
	}
	free(b);
	return NULL;
}

/* The lock is held. */
static int start(struct aq_rack *rack)
{
	int err;

	lock_assert_mutex_held(&rack->lock);
	if (rack->has_heartbeat)
		return 0;
	err = client_http_set_create(&rack->heartbeat_set);
	if (err)
		return err;
	err = thread_start(&rack->heartbeat_thread, heartbeat_main, rack);
	if (err) {
		client_http_set_destroy(rack->heartbeat_set);
		rack->heartbeat_set = NULL;
		return error_set(err, "no thread for heartbeats");
	}
	rack->has_heartbeat = true;
	return 0;
}

/* ---- bonds -------------------------------------------------------------- */

void client_bond_init(struct client_bond *bond, uint32_t node)
{
	list_init(&bond->link);
	bond->node = node;
	bond->cycle = 0;
	bond->id[0] = '\0';
	bond->is_patient = false;
	atomic_init(&bond->is_lost, false);
	atomic_init(&bond->is_silent, false);
}

/* The lock is held. */
static int add(struct aq_rack *rack, struct client_bond *bond, uint32_t node,
	       uint32_t heartbeat_ms)
{
	int err = start(rack);

	lock_assert_mutex_held(&rack->lock);
	if (err)
		return err;
	bond->node = node;
	bond->cycle = 0;
	list_append(&rack->bonds, &bond->link);
	if (heartbeat_ms < rack->heartbeat_ms) {
		rack->heartbeat_ms = heartbeat_ms;
		client_http_set_wake(rack->heartbeat_set);
	}
	return 0;
}

int client_bond_add(struct aq_rack *rack, struct client_bond *bond,
		    uint32_t heartbeat_ms)
{
	int err;

	pthread_mutex_lock(&rack->lock);
	err = add(rack, bond, bond->node, heartbeat_ms);
	pthread_mutex_unlock(&rack->lock);
	return err;
}

static bool is_engine(const struct client_engine *e,
		      const struct client_node *node)
{
	return e->bonds && strcmp(e->node.name, node->name) == 0 &&
	       strcmp(e->node.address, node->address) == 0;
}

int client_bond_add_engine(struct aq_rack *rack, struct client_bond *bond,
			   const struct client_node *engine, const char *token,
			   uint32_t heartbeat_ms)
{
	struct client_engine *e = NULL;
	int err;

	pthread_mutex_lock(&rack->lock);
	for (unsigned i = 0; i < CLIENT_NODE_MAX; i++) {
		struct client_engine *at = &rack->engine[i];

		if (is_engine(at, engine)) {
			e = at;
			break;
		}
		if (!e && !at->bonds)
			e = at;
	}
	err = e ? add(rack, bond,
		      CLIENT_NODE_MAX + (uint32_t)(e - rack->engine),
		      heartbeat_ms)
		: error_set(-ENOSPC, "a process uses at most %d engines",
			    CLIENT_NODE_MAX);
	if (!err) {
		e->node = *engine;
		memcpy(e->token, token, sizeof(e->token));
		e->bonds++;
	}
	pthread_mutex_unlock(&rack->lock);
	return err;
}

void client_bond_remove(struct aq_rack *rack, struct client_bond *bond)
{
	pthread_mutex_lock(&rack->lock);
	if (!list_is_empty(&bond->link) && bond->node >= CLIENT_NODE_MAX)
		rack->engine[bond->node - CLIENT_NODE_MAX].bonds--;
	list_remove(&bond->link);
	pthread_mutex_unlock(&rack->lock);
}

void client_heartbeat_stop(struct aq_rack *rack)
{
	bool had_heartbeat;

	pthread_mutex_lock(&rack->lock);
	had_heartbeat = rack->has_heartbeat;
	rack->is_closing = true;
	if (had_heartbeat)
		client_http_set_wake(rack->heartbeat_set);
	pthread_mutex_unlock(&rack->lock);
	if (!had_heartbeat)
		return;
	pthread_join(rack->heartbeat_thread, NULL);
	client_http_set_destroy(rack->heartbeat_set);
}
