/* SPDX-License-Identifier: Apache-2.0 */
/* One heartbeat to one node or engine: for all that this rack handle has there,
 * in one request. When it is sent is heartbeat_plan.c's, and how is
 * heartbeat.c's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "client_priv.h"

/* Where it goes. */
static void address(struct heartbeat *b, uint32_t index)
{
	struct heartbeat_target *t = &b->target[index];
	struct aq_rack *rack = b->rack;

	if (index >= CLIENT_NODE_MAX) {
		const struct client_engine *e =
			&rack->engine[index - CLIENT_NODE_MAX];

		t->node = e->node;
		memcpy(t->token, e->token, sizeof(t->token));
	} else {
		t->node = rack->node[index];
		memcpy(t->token, rack->token, sizeof(t->token));
	}
}

bool heartbeat_name(void *ctx, uint32_t index, const struct client_bond *bond)
{
	struct heartbeat *b = ctx;
	struct heartbeat_target *t = &b->target[index];

	if (!t->ids) {
		t->ids = json_array();
		if (!t->ids)
			return false;
		address(b, index);
	}
	return json_array_append_new(t->ids, json_string(bond->id)) == 0;
}

int heartbeat_prepare(struct heartbeat *b, uint32_t index)
{
	struct heartbeat_target *t = &b->target[index];
	json_t *body = json_pack(
		"{s:o}", index >= CLIENT_NODE_MAX ? "sessions" : "connections",
		t->ids);

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
		.cert_path = t->node.cert_path[0] ? t->node.cert_path : NULL,
		.key_path = t->node.key_path,
		.body = t->text,
		.timeout_ms = CLIENT_HEARTBEAT_TIMEOUT_MS,
		.max_bytes = CLIENT_REPLY_MAX,
	};
	return 0;
}

/* A heartbeat_is_named_fn; ctx is the list. */
static bool is_named(void *ctx, const char *id)
{
	const json_t *list = ctx, *one;
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
static void lose(struct heartbeat *b, uint32_t index, json_t *list)
{
	pthread_mutex_lock(&b->rack->lock);
	heartbeat_plan_lose(&b->plan, index, &b->rack->bonds,
			    list ? is_named : NULL, list);
	pthread_mutex_unlock(&b->rack->lock);
}

static void hear(struct heartbeat *b, uint32_t index, bool is_silent)
{
	pthread_mutex_lock(&b->rack->lock);
	heartbeat_plan_hear(&b->plan, index, &b->rack->bonds, is_silent);
	pthread_mutex_unlock(&b->rack->lock);
}

void heartbeat_finish(struct heartbeat *b, uint32_t index, int err,
		      const struct client_http_reply *reply)
{
	struct heartbeat_target *t = &b->target[index];
	json_t *tree = NULL, *lost;

	err = client_reply_take(&t->node, err, reply, &tree);
	lost = json_object_get(tree, "lost");
	switch (heartbeat_plan_end(&b->plan, index, err,
				   client_http_may_live(t->http),
				   client_rack_now_ns(b->rack))) {
	case HEARTBEAT_LOSS_ALL:
		log_info("client", "connections are lost: %s", error_last());
		lose(b, index, NULL);
		break;
	case HEARTBEAT_LOSS_NONE:
		log_debug("client", "no heartbeat: %s", error_last());
		break;
	case HEARTBEAT_LOSS_SILENT:
		log_info("client", "an engine is silent: %s", error_last());
		hear(b, index, true);
		break;
	case HEARTBEAT_LOSS_SOME:
		hear(b, index, false);
		if (!json_array_size(lost))
			break;
		log_info("client", "node %s has forgotten %zu connections",
			 t->node.name, json_array_size(lost));
		lose(b, index, lost);
		break;
	}
	json_decref(tree);
	free(t->text);
	t->text = NULL;
}
