/* SPDX-License-Identifier: Apache-2.0 */
/* More about links: other keys on the same connection, and the connections of
 * others, by the names that their node gave them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "client_priv.h"

int client_key_take(const json_t *reply, struct client_key *out)
{
	uint64_t rkey, addr, length, epoch;
	int err = client_json_u64(reply, "rkey", UINT32_MAX, &rkey);

	if (!err)
		err = client_json_u64(reply, "addr", INT64_MAX, &addr);
	if (!err)
		err = client_json_u64(reply, "length", INT64_MAX, &length);
	if (!err)
		err = client_json_u64(reply, "epoch", UINT32_MAX, &epoch);
	if (err)
		return err;
	*out = (struct client_key){.addr = addr,
				   .size_bytes = length,
				   .rkey = (uint32_t)rkey,
				   .epoch = (uint32_t)epoch};
	return 0;
}

int client_link_key(struct client_link *link, const char *name,
		    uint64_t length_bytes, struct client_key *out)
{
	struct client_link_inside *l =
		container_of(link, struct client_link_inside, link);
	char path[CLIENT_PATH_MAX];
	struct client_thread *t;
	json_t *reply = NULL;
	int err = client_thread_get(l->rack, &t);

	if (err)
		return err;
	snprintf(path, sizeof(path), "/v1/connections/%s/grants", l->bond.id);
	err = client_thread_call(t, l->bond.node, "POST", path,
				 json_pack("{s:s, s:s, s:I}", "region", name,
					   "rights", "rwa", "length",
					   (json_int_t)length_bytes),
				 client_rack_deadline_ns(l->rack), &reply);
	if (!err)
		err = client_key_take(reply, out);
	json_decref(reply);
	return err;
}

int client_link_call(struct client_link *link, const char *method,
		     const char *path, json_t *body, uint64_t deadline_ns,
		     json_t **reply)
{
	struct client_link_inside *l =
		container_of(link, struct client_link_inside, link);
	struct client_thread *t;
	int err = client_thread_get(l->rack, &t);

	if (err) {
		json_decref(body);
		return err;
	}
	return client_thread_call(t, l->bond.node, method, path, body,
				  client_rack_until_ns(l->rack, deadline_ns),
				  reply);
}

const char *client_link_name(const struct client_link *link)
{
	return container_of(link, struct client_link_inside, link)->bond.id;
}

const char *client_link_node_name(const struct client_link *link)
{
	const struct client_link_inside *l =
		container_of(link, struct client_link_inside, link);

	return l->rack->node[l->bond.node].name;
}

int client_link_end(struct aq_rack *rack, uint32_t node, const char *name)
{
	char path[CLIENT_PATH_MAX];
	struct client_thread *t;
	json_t *reply = NULL;
	int err = client_thread_get(rack, &t);

	if (err)
		return err;
	snprintf(path, sizeof(path), "/v1/connections/%s", name);
	err = client_thread_call(t, node, "DELETE", path, NULL,
				 client_rack_deadline_ns(rack), &reply);
	json_decref(reply);
	/* What it does not know it does not execute. */
	return err == -ENOENT || err == -ESTALE ? 0 : err;
}

int client_link_is_known(struct aq_rack *rack, uint32_t node, const char *name,
			 uint32_t wait_ms)
{
	struct client_thread *t;
	json_t *reply = NULL, *row;
	size_t i;
	uint32_t left_ms =
		client_rack_left_ms(rack, client_rack_deadline_ns(rack));
	int known = 0, err = client_thread_get(rack, &t);

	if (!err)
		err = client_call(&t->caller, &rack->node[node], "GET",
				  "/v1/connections", NULL,
				  u32_min(wait_ms, left_ms), CLIENT_LIST_MAX,
				  &reply);
	if (err)
		return err;
	json_array_foreach(json_object_get(reply, "connections"), i, row)
	{
		const char *id =
			json_string_value(json_object_get(row, "connection"));

		known |= id && strcmp(id, name) == 0;
	}
	json_decref(reply);
	return known;
}

int client_hosts_silent(struct aq_rack *rack, char name[CLIENT_NODE_NAME_MAX])
{
	struct client_node_status status;
	struct client_thread *t;
	uint32_t i;
	int silent = 0, err = client_thread_get(rack, &t);

	if (err)
		return err;
	for (i = 0; i < client_rack_nodes(rack); i++) {
		if (!client_node_ask(t, i, client_rack_deadline_ns(rack),
				     &status))
			continue;
		snprintf(name, CLIENT_NODE_NAME_MAX, "%s", rack->node[i].name);
		silent++;
	}
	return silent;
}

int client_hosts(struct aq_rack *rack, struct client_host *out, unsigned max)
{
	struct client_node_status status;
	struct client_thread *t;
	uint32_t i, n = 0;
	int err = client_thread_get(rack, &t);

	if (err)
		return err;
	client_rack_rescan(rack);
	for (i = 0; i < client_rack_nodes(rack) && n < max; i++) {
		err = client_node_ask(t, i, client_rack_deadline_ns(rack),
				      &status);
		if (err)
			continue;
		snprintf(out[n].node, sizeof(out[n].node), "%s",
			 rack->node[i].name);
		out[n++].free_bytes = status.free_bytes;
	}
	return n ? (int)n : err;
}
