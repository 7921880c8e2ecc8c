/* SPDX-License-Identifier: Apache-2.0 */
/* One heartbeat to one node or engine: for all that this rack handle has there,
 * in one request. When and how it is sent is beat.c's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"
#include "error.h"
#include "log.h"

/* Where it goes; the lock is held. */
static void address(struct aq_rack *rack, struct beat_target *t, uint32_t index)
{
	t->beat_ms = rack->beat_ms;
	t->is_engine = index >= CLIENT_NODE_MAX;
	if (t->is_engine) {
		const struct client_engine *e =
			&rack->engine[index - CLIENT_NODE_MAX];

		t->node = e->node;
		memcpy(t->token, e->token, sizeof(t->token));
	} else {
		t->node = rack->node[index];
		memcpy(t->token, rack->token, sizeof(t->token));
	}
}

/* Whether this target can be told something now. Without memory for the list
 * it is told at the next look. */
static bool is_due(struct aq_rack *rack, struct beat_target *t, uint32_t index,
		   uint64_t now_ns)
{
	if (t->is_busy || (now_ns < t->next_ns && !t->has_more))
		return false;
	if (t->ids)
		return true;
	t->ids = json_array();
	if (!t->ids)
		return false;
	address(rack, t, index);
	if (!t->has_more)
		t->cycle++;
	t->has_more = false;
	return true;
}

void beat_collect(struct aq_rack *rack,
		  struct beat_target target[2 * CLIENT_NODE_MAX],
		  uint64_t now_ns)
{
	struct list *l;

	for (unsigned i = 0; i < 2 * CLIENT_NODE_MAX; i++)
		target[i].is_used = false;
	for (l = rack->bonds.next; l != &rack->bonds; l = l->next) {
		struct client_bond *bond =
			container_of(l, struct client_bond, link);
		struct beat_target *t = &target[bond->node];

		t->is_used = true;
		if (!is_due(rack, t, bond->node, now_ns) ||
		    bond->cycle == t->cycle)
			continue;
		if (json_array_size(t->ids) == CLIENT_BEAT_IDS)
			t->has_more = true;
		else if (json_array_append_new(t->ids, json_string(bond->id)) ==
			 0)
			bond->cycle = t->cycle;
	}
}

int beat_prepare(struct beat_target *t)
{
	json_t *body = json_pack(
		"{s:o}", t->is_engine ? "sessions" : "connections", t->ids);

	t->ids = NULL;
	t->text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	json_decref(body);
	if (!t->text)
		return error_set(-ENOMEM, "no memory for a heartbeat");
	t->request = (struct client_http_request){
		.method = "POST",
		.address = t->node.address,
		.path = "/v1/heartbeat",
		.token = t->token[0] ? t->token : NULL,
		.ca_path = t->node.ca_path[0] ? t->node.ca_path : NULL,
		.body = t->text,
		.timeout_ms = CLIENT_BEAT_TIMEOUT_MS,
		.max_bytes = CLIENT_REPLY_MAX,
	};
	return 0;
}

/* Whether it is certain that nobody there knows us. A node that is only slow is
 * not lost: its silence has a deadline of its own in every operation. Of
 * engines there are others. */
static bool are_all_lost(const struct beat_target *t, int err, uint64_t took_ns)
{
	if (!err)
		return false;
	if (t->is_engine || err == -ENOENT || err == -ESTALE || err == -EACCES)
		return true;
	return err == -EHOSTDOWN && !client_http_is_crowded(t->http) &&
	       took_ns < CLIENT_BEAT_TIMEOUT_MS * 1000000ull / 2;
}

static bool names(const json_t *list, const char *id)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *s = json_string_value(one);

		if (s && strcmp(s, id) == 0)
			return true;
	}
	return false;
}

/* All that this heartbeat was for, or only those in the list. */
static void mark_lost(struct aq_rack *rack, const struct beat_target *t,
		      uint32_t index, bool all, const json_t *list)
{
	struct list *l;

	pthread_mutex_lock(&rack->lock);
	for (l = rack->bonds.next; l != &rack->bonds; l = l->next) {
		struct client_bond *bond =
			container_of(l, struct client_bond, link);

		/* L2, pairs with L3. */
		if (bond->node == index && bond->cycle == t->cycle &&
		    (all || names(list, bond->id)))
			atomic_store_explicit(&bond->is_lost, true,
					      memory_order_relaxed);
	}
	pthread_mutex_unlock(&rack->lock);
}

void beat_finish(struct aq_rack *rack, struct beat_target *t, uint32_t index,
		 int err, const struct client_http_reply *reply)
{
	uint64_t now_ns = client_rack_now_ns(rack);
	uint64_t took_ns = now_ns - t->start_ns;
	const json_t *lost;
	json_t *tree = NULL;

	err = client_reply_take(&t->node, err, reply, &tree);
	lost = json_object_get(tree, "lost");
	if (are_all_lost(t, err, took_ns)) {
		log_info("client", "connections are lost: %s", error_last());
		mark_lost(rack, t, index, true, NULL);
	} else if (err) {
		log_debug("client", "no heartbeat: %s", error_last());
	} else if (json_array_size(lost)) {
		log_info("client", "node %s has forgotten %zu connections",
			 t->node.name, json_array_size(lost));
		mark_lost(rack, t, index, false, lost);
	}
	json_decref(tree);
	free(t->text);
	t->text = NULL;
	t->is_busy = false;
	if (err) /* the rest would wait for the same */
		t->has_more = false;
	/* A little sooner than it has to be: threads are late at times. */
	t->next_ns = t->start_ns + t->beat_ms * 900000ull;
}
