/* SPDX-License-Identifier: Apache-2.0 */
/* Connections for messages about blocks. Each has a session, which outlives
 * it: who comes back with the same one goes on where it was. */
#include <errno.h>
#include <inttypes.h>

#include "base/env.h"
#include "base/error.h"
#include "base/hex.h"
#include "blocks.h"

int block_conn_parse(const json_t *body, struct conn_peer *peer)
{
	const json_t *blocks = json_object_get(body, "blocks");
	uint64_t version = 0;
	int err;

	if (!blocks)
		return 0;
	if (!json_is_object(blocks) || json_object_size(blocks) != 2 ||
	    peer->role != MEM_ROLE_PLAIN)
		return error_set(-EINVAL,
				 "\"blocks\" is an object with \"version\" and "
				 "\"session\"");
	err = ctl_field_u64(blocks, "version", true, 1, UINT32_MAX, &version);
	if (err)
		return error_prefix(err, "\"blocks\": ");
	if (version != BLOCK_WIRE_VERSION)
		return error_set(-EPROTONOSUPPORT,
				 "the client's messages about blocks are of "
				 "version %" PRIu64 ", the node's of version "
				 "%d",
				 version, BLOCK_WIRE_VERSION);
	if (!hex_read(json_string_value(json_object_get(blocks, "session")),
		      peer->block_session, sizeof(peer->block_session)))
		return error_set(-EINVAL,
				 "\"blocks\": \"session\" has %d hexadecimal "
				 "digits",
				 2 * BLOCK_SESSION_BYTES);
	peer->role = MEM_ROLE_BLOCKS;
	return 0;
}

STATIC_ASSERT((int)BLK_BY_BYTES == (int)CTL_TICKET_BY_BYTES, "tokens");

int block_conn_open(struct mem_node *node, struct mem_conn *c,
		    const uint8_t session[BLOCK_SESSION_BYTES])
{
	bool is_new;
	int err = mem_blocks_start(node);

	if (err)
		return err;
	c->page_bytes = blk_guest_bytes();
	err = space_charge(node, c->tenant, 0, c->page_bytes);
	if (err)
		return err;
	err = blk_guest_create(node->blocks->server, c->tenant->pd,
			       c->tenant->name, c->token.bytes, session,
			       &is_new, &c->visitor);
	if (err)
		space_uncharge(node, c->tenant, 0, c->page_bytes);
	else
		c->qp = blk_guest_qp(c->visitor);
	return err;
}

void block_conn_close(struct mem_node *node, struct mem_conn *c, bool is_gone)
{
	blk_guest_destroy(c->visitor, is_gone, env_now_ns(node->env));
	space_uncharge(node, c->tenant, 0, c->page_bytes);
	c->qp = NULL;
}
