/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of nodes through their HTTP interface: to keep a program, and
 * what walks cost there. */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/hex.h"
#include "traverse_priv.h"

int install(const struct aq_walks *w, const struct aq_walk *walk,
	    struct lane *lane)
{
	char *text = malloc(2 * walk->image_bytes + 1);
	json_t *reply = NULL;
	int err;

	if (!text)
		return error_set(-ENOMEM, "no memory for a walk's image");
	hex_write(text, walk->image, walk->image_bytes);
	err = client_link_call(lane->link, "POST", "/v1/walks",
			       json_pack("{s:s}", "image", text), w->until_ns,
			       &reply);
	json_decref(reply);
	free(text);
	return err ? error_prefix(err, "node %s does not take walk %s: ",
				  client_link_node_name(lane->link),
				  walk->program->image.name)
		   : 0;
}

/* Its answer; a node without walks says nothing of them. */
static int parse(const json_t *reply, struct node_facts *out)
{
	const json_t *walk = json_object_get(reply, "walk");
	const json_t *loads = json_object_get(walk, "load_ns");
	uint64_t iterations, step_ps;
	int err;

	*out = (struct node_facts){.has_walks = walk != NULL};
	if (!walk)
		return 0;
	err = client_json_u64(walk, "iterations", UINT32_MAX, &iterations);
	if (!err)
		err = client_json_u64(walk, "step_ps", UINT32_MAX, &step_ps);
	if (err)
		return err;
	out->iterations = (uint32_t)iterations;
	out->step_ps = (uint32_t)step_ps;
	for (unsigned i = 0; i < TRAVERSE_LOADS; i++) {
		json_int_t ns = json_integer_value(json_array_get(loads, i));

		out->load_ns[i] = ns > 0 && ns < UINT32_MAX ? (uint32_t)ns : 0;
	}
	return 0;
}

static uint32_t left_ms(const struct aq_walks *w)
{
	uint64_t now_ns = client_keep_now_ns(w->rack);

	return w->until_ns > now_ns
		       ? (uint32_t)((w->until_ns - now_ns) / 1000000 + 1)
		       : 1;
}

int facts_ask(const struct aq_walks *w, uint32_t node, struct node_facts *out)
{
	const struct client_caller *caller;
	json_t *reply = NULL;
	int err = client_keep_caller(w->rack, &caller);

	if (!err)
		err = client_call(caller, client_keep_node(w->rack, node),
				  "GET", "/v1/status", NULL, left_ms(w),
				  CLIENT_REPLY_MAX, &reply);
	if (!err)
		err = parse(reply, out);
	json_decref(reply);
	return err;
}
