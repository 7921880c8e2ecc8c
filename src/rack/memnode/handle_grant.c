/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/grants and /v1/connections/ID/grants. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "move.h"

enum {
	GRANT_ID_TEXT = 16 + 1,
};

static void format_id(const struct mem_grant *g, char out[GRANT_ID_TEXT])
{
	(void)snprintf(out, GRANT_ID_TEXT, "%016" PRIx64, g->id);
}

static json_t *describe(const struct mem_conn *c, const struct mem_grant *g)
{
	char id[GRANT_ID_TEXT], conn[CTL_BOND_TEXT];

	format_id(g, id);
	ctl_bond_format(c->nonce, c->slot, conn);
	return json_pack("{s:s, s:s, s:s, s:s, s:b}", "region", g->region->name,
			 "client", c->client, "connection", conn, "grant", id,
			 "revocable", g->mw != NULL);
}

/* Who has a key of what, and whether it can be taken back at once. */
void handle_grant_list(void *ctx, struct ctl_call *call)
{
	const struct mem_node *node = ctx;
	json_t *rows = json_array();

	for (unsigned i = 0; i < MEM_CONN_MAX; i++) {
		const struct mem_conn *c = node->conns[i];

		if (!c || c->tenant != call->caller)
			continue;
		for (const struct list *at = c->grants.next; at != &c->grants;
		     at = at->next)
			(void)json_array_append_new(
				rows,
				describe(c, container_of(at, struct mem_grant,
							 node)));
	}
	ctl_reply_json(call->reply, 200, json_pack("{s:o}", "grants", rows));
}

static int parse_rights(const char *text, int *access)
{
	static const struct {
		const char *text;
		int access;
	} rights[] = {
		{"r", IBV_ACCESS_REMOTE_READ},
		{"rw", IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE},
		{"rwa", IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_ATOMIC},
	};

	for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
		if (strcmp(rights[i].text, text) == 0) {
			*access = rights[i].access;
			return 0;
		}
	}
	return error_set(-EINVAL, "\"rights\" is \"r\", \"rw\" or \"rwa\"");
}

/* What is asked for, checked against what there is. */
static int parse_wish(struct mem_node *node, struct ctl_call *call,
		      const struct mem_conn *conn, struct grant_wish *w,
		      struct mem_region **out)
{
	const json_t *revocable = json_object_get(call->body, "revocable");
	struct mem_region *region;
	const char *name, *rights;
	int err = ctl_field_string(call->body, "region", true, &name);

	w->offset = 0;
	w->length = 0;
	if (!err)
		err = ctl_field_string(call->body, "rights", true, &rights);
	if (!err)
		err = parse_rights(rights, &w->access);
	if (!err)
		err = ctl_field_u64(call->body, "offset", false, 0, INT64_MAX,
				    &w->offset);
	if (!err)
		err = ctl_field_u64(call->body, "length", false, 0, INT64_MAX,
				    &w->length);
	if (!err && revocable && !json_is_boolean(revocable))
		err = error_set(-EINVAL, "\"revocable\" is true or false");
	if (err)
		return err;
	w->revocable = json_is_true(revocable);
	if (conn->role != MEM_ROLE_PLAIN)
		return error_set(-EACCES, "this connection has no regions");
	if (conn->read_only && w->access != IBV_ACCESS_REMOTE_READ)
		return error_set(-EACCES, "this connection may only read");
	err = narrow_check_region(call, name,
				  w->access != IBV_ACCESS_REMOTE_READ);
	if (err)
		return err;
	/* A window ends with the connection, and nobody can map it. */
	w->revocable |= call->scope != NULL;
	region = region_find(node, call->caller, name);
	err = move_check_grant(node, call, name, region, w);
	if (err)
		return err;
	if (w->offset >= region->size_bytes)
		return error_set(-EINVAL,
				 "\"offset\" lies behind the region's end");
	if (w->length == 0)
		w->length = region->size_bytes - w->offset;
	if (w->length > region->size_bytes - w->offset)
		return error_set(-EINVAL,
				 "\"length\" reaches behind the region's end");
	*out = region;
	return 0;
}

void handle_grant_create(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	char id[GRANT_ID_TEXT];
	struct mem_region *r = NULL;
	struct grant_wish w;
	struct mem_grant *g = NULL;
	struct mem_conn *c;
	int err = handle_find_conn(node, call, &c);

	if (!err)
		err = parse_wish(node, call, c, &w, &r);
	if (!err)
		err = grant_create(node, c, r, &w, &g);
	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	format_id(g, id);
	ctl_reply_json(
		call->reply, 200,
		json_pack("{s:s, s:I, s:I, s:I, s:I, s:i, s:s, s:b}", "grant",
			  id, "rkey",
			  (json_int_t)(g->mw ? g->mw->rkey : r->mr->rkey),
			  "addr", (json_int_t)((uintptr_t)r->addr + w.offset),
			  "length", (json_int_t)w.length, "epoch",
			  (json_int_t)r->epoch, "region_id", (int)r->id,
			  "incarnation", node->incarnation, "revocable",
			  g->mw != NULL));
}

void handle_grant_delete(void *ctx, struct ctl_call *call)
{
	char id[GRANT_ID_TEXT];
	struct mem_conn *c;
	struct list *at;
	int err = handle_find_conn(ctx, call, &c);

	if (err) {
		ctl_reply_last_error(call->reply, err);
		return;
	}
	for (at = c->grants.next; at != &c->grants; at = at->next) {
		struct mem_grant *g = container_of(at, struct mem_grant, node);

		format_id(g, id);
		if (strcmp(id, call->segment[1]) != 0)
			continue;
		grant_end(ctx, c, g);
		ctl_reply_none(call->reply);
		return;
	}
	ctl_reply_error(call->reply, -ENOENT, "there is no grant %s",
			call->segment[1]);
}
