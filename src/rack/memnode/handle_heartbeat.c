/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/heartbeat: one request says that all of a client's connections live. */
#include <errno.h>

#include "base/env.h"
#include "base/error.h"
#include "mem_priv.h"

/* One of the list. Who is not there, or is somebody else's, is lost. */
static int heartbeat_one(struct mem_node *node, struct ctl_call *call,
			 const json_t *one, uint64_t now_ns, json_t *lost)
{
	const char *id = json_string_value(one);
	struct mem_conn *c;
	int err = id ? conn_find(node, call->caller, id, &c)
		     : error_set(-EINVAL, "\"connections\" is a list of ids");

	if (!err)
		c->seen_ns = now_ns;
	if (err != -ESTALE)
		return err;
	return json_array_append_new(lost, json_string(id))
		       ? error_set(-ENOMEM, "no memory for an answer")
		       : 0;
}

void handle_heartbeat(void *ctx, struct ctl_call *call)
{
	const json_t *list = json_object_get(call->body, "connections"), *one;
	struct mem_node *node = ctx;
	uint64_t now_ns = env_now_ns(node->env);
	json_t *lost = json_array();
	size_t i;
	int err = 0;

	if (!json_is_array(list) || json_array_size(list) > MEM_HEARTBEAT_MAX)
		err = error_set(-EINVAL,
				"\"connections\" is a list of up to %d ids",
				MEM_HEARTBEAT_MAX);
	if (!err)
		json_array_foreach(list, i, one)
		{
			err = heartbeat_one(node, call, one, now_ns, lost);
			if (err)
				break;
		}
	if (err) {
		json_decref(lost);
		ctl_reply_last_error(call->reply, err);
		return;
	}
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "lost", lost));
}
