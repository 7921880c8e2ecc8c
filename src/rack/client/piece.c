/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of one node, through its HTTP interface. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client_priv.h"

#define PROTO_MAJOR 1

static int take_piece(const json_t *reply, uint32_t node,
		      struct client_piece *out)
{
	uint64_t size, id, epoch, incarnation = 0, birth = 0;
	int err = client_json_u64(reply, "size", INT64_MAX, &size);

	if (!err)
		err = client_json_u64(reply, "id", UINT16_MAX, &id);
	if (!err)
		err = client_json_u64(reply, "epoch", UINT32_MAX, &epoch);
	if (!err)
		err = client_json_hex(reply, "incarnation", &incarnation);
	if (!err && json_object_get(reply, "birth"))
		err = client_json_hex(reply, "birth", &birth);
	if (err)
		return err;
	*out = (struct client_piece){.node = node,
				     .id = (uint32_t)id,
				     .epoch = (uint32_t)epoch,
				     .size_bytes = size,
				     .incarnation = incarnation,
				     .birth = birth};
	return 0;
}

static void piece_path(const char *name, char path[CLIENT_PATH_MAX])
{
	snprintf(path, CLIENT_PATH_MAX, "/v1/regions/%s", name);
}

/* A request whose answer describes the region. */
static int ask(struct client_thread *t, uint32_t node, const char *method,
	       const char *path, json_t *body, uint64_t deadline_ns,
	       struct client_piece *out)
{
	json_t *reply = NULL;
	int err = client_thread_call(t, node, method, path, body, deadline_ns,
				     &reply);

	if (err)
		return err;
	err = take_piece(reply, node, out);
	json_decref(reply);
	return err;
}

int client_piece_create(struct client_thread *t, uint32_t node,
			const char *name, uint64_t size_bytes,
			const struct aq_region_options *o, uint64_t deadline_ns,
			struct client_piece *out)
{
	json_t *body = json_pack(
		"{s:s, s:I, s:s}", "name", name, "size", (json_int_t)size_bytes,
		"memory", o->flags & AQ_REGION_DEVICE ? "device" : "host");

	if (body && o->flags & AQ_REGION_SWITCH_ATOMICS)
		(void)json_object_set_new(body, "switch",
					  json_string("atomics"));
	if (body && o->part_of)
		(void)json_object_set_new(body, "part_of",
					  json_string(o->part_of));
	return ask(t, node, "POST", "/v1/regions", body, deadline_ns, out);
}

int client_piece_stat(struct client_thread *t, uint32_t node, const char *name,
		      uint64_t deadline_ns, struct client_piece *out)
{
	char path[CLIENT_PATH_MAX];

	piece_path(name, path);
	return ask(t, node, "GET", path, NULL, deadline_ns, out);
}

int client_piece_resize(struct client_thread *t, uint32_t node,
			const char *name, uint64_t size_bytes, bool force,
			uint64_t deadline_ns, struct client_piece *out)
{
	char path[CLIENT_PATH_MAX];

	piece_path(name, path);
	return ask(t, node, "PATCH", path,
		   json_pack("{s:I, s:b}", "size", (json_int_t)size_bytes,
			     "force", force),
		   deadline_ns, out);
}

int client_piece_delete(struct client_thread *t, uint32_t node,
			const char *name, bool force, uint64_t deadline_ns)
{
	char path[CLIENT_PATH_MAX];
	json_t *reply = NULL;
	int err;

	piece_path(name, path);
	err = client_thread_call(t, node, "DELETE", path,
				 force ? json_pack("{s:b}", "force", 1) : NULL,
				 deadline_ns, &reply);
	json_decref(reply);
	return err;
}

int client_piece_each(struct client_thread *t, uint32_t node,
		      uint64_t deadline_ns, client_piece_fn each, void *user)
{
	struct aq_rack *rack = t->rack;
	json_t *reply = NULL, *row;
	size_t i;
	int err =
		client_call(&t->caller, &rack->node[node], "GET", "/v1/regions",
			    NULL, client_rack_left_ms(rack, deadline_ns),
			    CLIENT_LIST_MAX, &reply);

	if (err)
		return err;
	json_array_foreach(json_object_get(reply, "regions"), i, row)
	{
		char name[CLIENT_PIECE_NAME_MAX];
		struct client_piece piece;

		/* Not one of ours, or too new for us: left out. */
		if (client_json_word(row, "name", name, sizeof(name)) ||
		    take_piece(row, node, &piece))
			continue;
		err = each(node, name, &piece, user);
		if (err)
			break;
	}
	json_decref(reply);
	return err;
}

/* "1.0": the number before the dot. */
static int check_proto(const struct client_node *node, const json_t *reply)
{
	const char *proto = json_string_value(json_object_get(reply, "proto"));
	char *end;

	if (!proto)
		return error_set(-EPROTO, "node %s names no protocol version",
				 node->name);
	if (strtoul(proto, &end, 10) != PROTO_MAJOR || *end != '.')
		return error_set(-EPROTONOSUPPORT,
				 "node %s speaks version %.16s, this library "
				 "speaks %d.0",
				 node->name, proto, PROTO_MAJOR);
	return 0;
}

int client_node_ask(struct client_thread *t, uint32_t node,
		    uint64_t deadline_ns, struct client_node_status *out)
{
	uint64_t free_bytes;
	json_t *reply = NULL;
	int err = client_thread_call(t, node, "GET", "/v1/status", NULL,
				     deadline_ns, &reply);

	if (err)
		return err;
	err = check_proto(&t->rack->node[node], reply);
	/* A node says nothing about its memory to who is nobody there. */
	if (!err && !json_object_get(reply, "pool"))
		err = error_set(-EACCES, "node %s does not know the token",
				t->rack->node[node].name);
	if (!err)
		err = client_json_u64(json_object_get(reply, "pool"), "free",
				      INT64_MAX, &free_bytes);
	if (!err)
		client_tally_name(t->rack, json_string_value(json_object_get(
						   reply, "tenant")));
	json_decref(reply);
	if (err)
		return err;
	out->free_bytes = free_bytes;
	return 0;
}
